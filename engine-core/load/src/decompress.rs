//! Bytes of a file: decompressed as the end of its name says, buffered, without a byte order mark.

use crate::error::{Error, ReadError};
use crate::rows::file_error;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;

/// Size of the buffers, in bytes.
pub(crate) const BUFFER_BYTES: usize = 128 << 10;

/// A buffered file.
pub(crate) type Input = BufReader<io::Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>>;

/// Decompresses a file by the extension of its name: `.gz`, `.bz2`.
///
/// # Errors
///
/// [`Error::File`] if the file cannot be read, or does not begin as its extension says.
pub(crate) fn decompressed(
    reader: impl Read + Send + 'static,
    name: &str,
) -> Result<Box<dyn Read + Send>, Error> {
    let lower = name.to_ascii_lowercase();
    Ok(if lower.ends_with(".gz") {
        Box::new(flate2::bufread::MultiGzDecoder::new(compressed(reader, name, "gzip", b"\x1f\x8b")?))
    } else if lower.ends_with(".bz2") {
        Box::new(bzip2::bufread::MultiBzDecoder::new(compressed(reader, name, "bzip2", b"BZh")?))
    } else {
        Box::new(reader)
    })
}

/// Buffers a file and skips the byte order mark of UTF-8.
///
/// # Errors
///
/// Those of the reader.
pub(crate) fn without_mark(mut reader: Box<dyn Read + Send>) -> io::Result<Input> {
    let mut start = Vec::with_capacity(3);
    reader.by_ref().take(3).read_to_end(&mut start)?;
    if start == b"\xef\xbb\xbf" {
        start.clear();
    }
    Ok(BufReader::with_capacity(BUFFER_BYTES, Cursor::new(start).chain(reader)))
}

/// Buffers a compressed file and checks the first bytes of its format. A file that ends within them is cut short, which
/// the decompression reports.
fn compressed<R: Read>(
    mut reader: R,
    name: &str,
    format: &'static str,
    magic: &[u8],
) -> Result<impl BufRead + use<R>, Error> {
    let file = Arc::from(name);
    let mut start = Vec::with_capacity(magic.len());
    let read = reader.by_ref().take(magic.len() as u64).read_to_end(&mut start);
    read.map_err(|error| file_error(&file, 0, error))?;
    if start.is_empty() || !magic.starts_with(&start) {
        let found = match &start[..] {
            [] => "the file is empty".to_owned(),
            _ => format!("it begins with {:?}", String::from_utf8_lossy(&start)),
        };
        let source = ReadError::Format { format, found };
        return Err(Error::File { file, rows: 0, cause: source.cause(), source });
    }
    Ok(BufReader::with_capacity(BUFFER_BYTES, Cursor::new(start).chain(reader)))
}

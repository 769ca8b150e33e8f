//! Divides a large file into parts that are read independently. Each part is whole records and has the number of its
//! first line.
//!
//! The end of a record depends on the quotes of all text before it, so one pass reads the whole file. Text without
//! quotes is skipped quickly: from one newline to the last one before the next quote.

use crate::records::{Outcome, Records};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Cursor, Read};

const BUFFER_BYTES: usize = 1 << 20;

/// A part of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// Number of the first line; the header of the file is line 1.
    pub line: u64,
}

/// Divides a file that is not compressed into parts of about `part_bytes` bytes. The header is in no part.
///
/// # Errors
///
/// The errors of `reader`.
pub fn split(mut reader: impl Read, part_bytes: u64, max_record_bytes: usize) -> io::Result<Vec<Part>> {
    let mut start = Vec::with_capacity(3);
    reader.by_ref().take(3).read_to_end(&mut start)?;
    let mut at = 0;
    if start == b"\xef\xbb\xbf" {
        start.clear();
        at = 3;
    }
    let inner = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(start).chain(reader));
    let mut records = Records::new(Counted { inner, at }, max_record_bytes);
    let mut parts = Vec::new();
    // The header.
    let mut outcome = records.next()?;
    let mut part = Part { start: records.input().at, end: 0, line: records.next_line()? };
    while outcome != Outcome::End {
        let at = records.input().at;
        if at - part.start >= part_bytes {
            parts.push(Part { end: at, ..part });
            part = Part { start: at, end: at, line: records.next_line()? };
        }
        let most = part.start + part_bytes - at;
        if !records.skip_unquoted(usize::try_from(most).unwrap_or(usize::MAX))? {
            outcome = records.next()?;
        }
    }
    let end = records.input().at;
    if end > part.start {
        parts.push(Part { end, ..part });
    }
    Ok(parts)
}

/// A reader that counts the bytes read from it.
pub(crate) struct Counted<R> {
    inner: R,
    at: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes as u64;
        self.inner.consume(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::options::Options;
    use crate::rows::{self, Problem, Row};
    use proptest::prelude::*;

    /// Returns line and id of a row, or the reason why it was refused.
    fn told(item: Result<Row, Problem>) -> (u64, String) {
        match item {
            Ok(Row::Vertex(row)) => (row.line, format!("{} {:?}", row.id, row.properties)),
            Ok(Row::Edge(_)) => unreachable!("no edge file"),
            Err(Problem::Row(rejected)) => (rejected.line, rejected.reason),
            Err(Problem::File(error)) => (0, error.to_string()),
        }
    }

    fn check(text: &[u8], part_bytes: u64) {
        let options = Options { max_record_bytes: 64, ..Options::default() };
        let open = |bytes: Vec<u8>| rows::open(Cursor::new(bytes), "v.csv", Some(Dialect::GREMLIN), &options);
        let whole: Vec<_> = open(text.to_vec()).unwrap().map(told).collect();
        let header = open(text.to_vec()).unwrap().header().clone();
        let parts = split(Cursor::new(text.to_vec()), part_bytes, options.max_record_bytes).unwrap();
        let mut found = Vec::new();
        let mut end = None;
        for part in parts {
            assert!(end.is_none_or(|end| end == part.start), "{part:?} after {end:?}");
            end = Some(part.end);
            let bytes = text[part.start as usize..part.end as usize].to_vec();
            let reader = rows::open_part(Cursor::new(bytes), "v.csv", header.clone(), part.line, &options);
            found.extend(reader.map(told));
        }
        assert_eq!(found, whole, "{:?} in parts of {part_bytes}", String::from_utf8_lossy(text));
    }

    #[test]
    fn parts_have_the_rows_of_the_whole() {
        let text = b"\xef\xbb\xbf~id,s\r\na,1\r\n\r\nb,\"x\ny\"\r\n\"c\"\"\n\",2\nd,3\n\ne,\"open";
        for bytes in [1, 2, 5, 10, 1000] {
            check(text, bytes);
        }
        check(b"~id\n", 1);
        check(b"~id", 1);
    }

    proptest! {
        #[test]
        fn parts_of_anything_have_the_rows_of_the_whole(
            pieces in prop::collection::vec(
                prop::sample::select(vec!["a", ",", "\"", "\n", "\r\n", " ", "\"\"", "bcdefgh", "\r", "a,b\n"]),
                0..60,
            ),
            part_bytes in 1_u64..40,
        ) {
            check(format!("~id,s\n{}", pieces.concat()).as_bytes(), part_bytes);
        }
    }
}

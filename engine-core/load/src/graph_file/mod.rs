//! Files that hold a graph: GraphSON and GraphML, as Gremlin's `io()` reads them.
//!
//! A file is read once for its vertices and once for its edges, so that an edge may come before its ends and nothing of
//! the file has to be kept between.
//!
//! Flow: [`open`] checks the address and finds the file, [`GraphReader::step`] reads on by at most one buffer or one
//! element, so that its caller can check whether to go on and charge what the next step will hold.
//!
//! Must never: hold more than one line (GraphSON) or element (GraphML), or more of it than the limit; read what is not
//! allowed; resolve an entity other than those that XML itself defines.

mod graphml;
mod graphson;

use crate::decompress::{BUFFER_BYTES, Input, decompressed, without_mark};
use crate::error::Error;
use crate::options::DEFAULT_MAX_RECORD_BYTES;
use crate::rows::file_error;
use crate::source::{Access, Source};
use std::io::Read;
use std::sync::Arc;
use tidegraph_types::{Elements, FileElement, GraphFormat};

/// What a reader of a format does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It may have read elements, and goes on.
    More,
    /// The file has no more elements.
    End,
}

/// Opens the file at an absolute path, or at a `file://` or `s3://` address, and decompresses it as the end of its name
/// says.
///
/// # Errors
///
/// * [`Error::NotAllowed`] if the address is outside of what is allowed.
/// * [`Error::Source`] if the address has another scheme, is relative, or names no file.
/// * [`Error::File`] if the file cannot be read or is not compressed as its name says.
/// * Errors of the object store.
pub fn open(
    uri: &str,
    format: GraphFormat,
    elements: Elements,
    access: &Access<'_>,
) -> Result<GraphReader, Error> {
    if !uri.contains("://") && !uri.starts_with('/') {
        let reason = "it is no address of a file, expected /PATH, file:///PATH or s3://BUCKET/KEY";
        return Err(Error::Source { source_uri: uri.to_owned(), reason: reason.into() });
    }
    let source = Source::open_file(uri, access)?;
    let [file] = source.files() else { return Err(Error::Internal("an address names one file")) };
    GraphReader::new(source.reader(file)?, &file.name, format, elements)
}

/// Reads the vertices or the edges of one file.
///
/// ```
/// use tidegraph_load::graph_file::{GraphReader, Step};
/// use tidegraph_types::{Elements, GraphFormat, Value};
///
/// let text = br#"{"id":1,"label":"person","properties":{"name":[{"id":0,"value":"Ada"}]}}"#;
/// let mut reader = GraphReader::new(&text[..], "people.json", GraphFormat::GraphSon, Elements::Vertices)?;
/// let mut found = vec![];
/// while reader.step(&mut found)? == Step::More {}
/// assert_eq!(found[0].id, Some(Value::Int(1)));
/// assert_eq!(found[0].properties[0].value, "Ada".into());
/// # Ok::<(), tidegraph_load::Error>(())
/// ```
pub struct GraphReader {
    file: Arc<str>,
    format: Format,
    /// Number of elements read before, for errors of the disk or the store.
    read: u64,
    ended: bool,
}

enum Format {
    GraphSon(graphson::Lines),
    GraphMl(Box<graphml::Document>),
}

/// Why a reader of a format cannot go on.
enum Failure {
    /// The bytes cannot be read.
    Io(std::io::Error),
    /// An element is wrong: the line, and what is wrong.
    Element(u64, String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl GraphReader {
    /// Reads a file that is open. `name` tells its compression, and errors name it.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if `reader` fails, or its bytes are not compressed as the name says.
    pub fn new(
        reader: impl Read + Send + 'static,
        name: &str,
        format: GraphFormat,
        elements: Elements,
    ) -> Result<Self, Error> {
        Self::with_limit(reader, name, format, elements, DEFAULT_MAX_RECORD_BYTES)
    }

    /// As [`GraphReader::new`], with a limit of the bytes of a line or an element.
    fn with_limit(
        reader: impl Read + Send + 'static,
        name: &str,
        format: GraphFormat,
        elements: Elements,
        limit: usize,
    ) -> Result<Self, Error> {
        let file: Arc<str> = name.into();
        let reader = decompressed(reader, name)?;
        let input: Input = without_mark(reader).map_err(|error| file_error(&file, 0, error))?;
        let format = match format {
            GraphFormat::GraphSon => Format::GraphSon(graphson::Lines::new(input, elements, limit)),
            GraphFormat::GraphMl => Format::GraphMl(Box::new(graphml::Document::new(input, elements, limit))),
        };
        Ok(Self { file, format, read: 0, ended: false })
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Reads on, by a bounded number of bytes. Adds the elements that it completes to `found`.
    ///
    /// # Errors
    ///
    /// [`Error::Record`] for an element that is wrong or too long, with its line; [`Error::File`] if the file cannot be
    /// read. The reader has ended after an error.
    pub fn step(&mut self, found: &mut Vec<FileElement>) -> Result<Step, Error> {
        if self.ended {
            return Ok(Step::End);
        }
        let before = found.len();
        let step = match &mut self.format {
            Format::GraphSon(lines) => lines.step(found),
            Format::GraphMl(document) => document.step(found),
        };
        self.read += (found.len() - before) as u64;
        self.ended = !matches!(step, Ok(Step::More));
        step.map_err(|failure| match failure {
            Failure::Io(error) => file_error(&self.file, self.read, error),
            Failure::Element(line, reason) => Error::Record { file: self.file.clone(), line, reason },
        })
    }

    /// Returns the bytes of memory that the reader holds, with those that the next step takes at most.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        BUFFER_BYTES
            + match &self.format {
                Format::GraphSon(lines) => lines.held_bytes(),
                Format::GraphMl(document) => document.held_bytes(),
            }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

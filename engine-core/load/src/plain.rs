//! Plain CSV files: records of any columns, which a query gives their meaning (`LOAD CSV`).
//!
//! The format is that of Neo4j. It differs from the format of bulk loads (`records`) in what `csv-core` does not do:
//! spaces are part of a field, the terminator of fields is any character, `\"` and `\\` in quotes stand for a quote and
//! a backslash while every other backslash stays, and text after a closing quote is an error. So the fields are cut
//! here; a test compares them with the crate `csv` where both formats are the same.
//!
//! Flow: [`open`] checks the address and finds the file, [`PlainReader::step`] reads on by at most one buffer, so that its
//! caller can check whether to go on.
//!
//! Must never: hold more than one record, or more of a record than the limit; read what is not allowed.

use crate::decompress::{BUFFER_BYTES, Input, decompressed, without_mark};
use crate::error::Error;
use crate::options::DEFAULT_MAX_RECORD_BYTES;
use crate::records::{Lines, MAX_FIELDS};
use crate::rows::file_error;
use crate::source::{Access, Source};
use std::io::{BufRead, Read};
use std::sync::Arc;

/// A character that may end fields. The default is a comma.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terminator(char);

impl Default for Terminator {
    fn default() -> Self {
        Self(',')
    }
}

impl Terminator {
    /// Returns the terminator; `None` if the character is a quote or ends lines.
    #[must_use]
    pub fn new(character: char) -> Option<Self> {
        (!matches!(character, '"' | '\n' | '\r')).then_some(Self(character))
    }
}

/// Result of reading on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A record was read; [`PlainReader::fields`] returns it.
    Record,
    /// There is no whole record yet: read on.
    Pause,
    /// The file has no more records.
    End,
}

/// Opens the file at a `file://` or `s3://` address, and decompresses it as the end of its name says.
///
/// # Errors
///
/// * [`Error::NotAllowed`] if the address is outside of what is allowed.
/// * [`Error::Source`] if the address has another scheme, or names no file.
/// * [`Error::File`] if the file cannot be read or is not in the format that its name says.
/// * Errors of the object store.
pub fn open(uri: &str, terminator: Terminator, access: &Access<'_>) -> Result<PlainReader, Error> {
    if !uri.contains("://") {
        let reason = "it is no address of a file, expected file:///PATH or s3://BUCKET/KEY";
        return Err(Error::Source { source_uri: uri.to_owned(), reason: reason.into() });
    }
    let source = Source::open_file(uri, access)?;
    let [file] = source.files() else { return Err(Error::Internal("an address names one file")) };
    PlainReader::new(source.reader(file)?, &file.name, terminator)
}

/// Reads the records of one file.
///
/// ```
/// use tidegraph_load::plain::{PlainReader, Step, Terminator};
///
/// let text = "name;born\n\"Ada\";1815\nGrace;\n".as_bytes();
/// let mut reader = PlainReader::new(text, "people.csv", Terminator::new(';').unwrap_or_default())?;
/// let mut names = vec![];
/// loop {
///     match reader.step()? {
///         Step::Record => names.push(reader.fields().map(|field| field.map(str::to_owned)).collect::<Vec<_>>()),
///         Step::Pause => {}
///         Step::End => break,
///     }
/// }
/// assert_eq!(names[1], [Some("Ada".to_owned()), Some("1815".to_owned())]);
/// assert_eq!(names[2], [Some("Grace".to_owned()), None]);
/// # Ok::<(), tidegraph_load::Error>(())
/// ```
pub struct PlainReader {
    input: Input,
    file: Arc<str>,
    cutter: Cutter,
    records: u64,
    ended: bool,
}

impl PlainReader {
    /// Reads a file that is open. `name` tells its compression, and errors name it.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if `reader` fails, or its bytes are not in the format that the name says.
    pub fn new(
        reader: impl Read + Send + 'static,
        name: &str,
        terminator: Terminator,
    ) -> Result<Self, Error> {
        Self::with_limit(reader, name, terminator, DEFAULT_MAX_RECORD_BYTES)
    }

    /// As [`PlainReader::new`], with a limit of the bytes of a record.
    fn with_limit(
        reader: impl Read + Send + 'static,
        name: &str,
        terminator: Terminator,
        limit: usize,
    ) -> Result<Self, Error> {
        let file: Arc<str> = name.into();
        let reader = decompressed(reader, name)?;
        let input = without_mark(reader).map_err(|error| file_error(&file, 0, error))?;
        Ok(Self { input, file, cutter: Cutter::new(terminator, limit), records: 0, ended: false })
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Reads on: to the end of the next record, or by one buffer.
    ///
    /// # Errors
    ///
    /// [`Error::Record`] for a record that is wrong or too long, [`Error::File`] if the file cannot be read. The reader
    /// cannot continue after an error.
    pub fn step(&mut self) -> Result<Step, Error> {
        if self.ended {
            return Ok(Step::End);
        }
        let buffer = self.input.fill_buf().map_err(|error| file_error(&self.file, self.records, error))?;
        let is_whole = if buffer.is_empty() {
            self.ended = true;
            self.cutter.finish()
        } else {
            self.cutter.read(buffer).map(|(read, is_whole)| {
                self.input.consume(read);
                is_whole
            })
        };
        match is_whole
            .and_then(|is_whole| if is_whole { self.cutter.check().map(|()| true) } else { Ok(false) })
        {
            Ok(true) => {
                self.records += 1;
                Ok(Step::Record)
            }
            Ok(false) if self.ended => Ok(Step::End),
            Ok(false) => Ok(Step::Pause),
            Err(reason) => {
                self.ended = true;
                Err(Error::Record { file: self.file.clone(), line: self.cutter.line, reason })
            }
        }
    }

    /// Returns the fields of the record that [`PlainReader::step`] read last. An empty field without quotes is `None`.
    pub fn fields(&self) -> impl Iterator<Item = Option<&str>> {
        self.cutter.fields()
    }

    /// Returns the bytes of memory that the reader holds.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        BUFFER_BYTES + self.cutter.data.capacity() + self.cutter.fields.capacity() * size_of::<Field>()
    }
}

#[derive(Clone, Copy)]
struct Field {
    end: usize,
    quoted: bool,
}

/// Where in a record the next byte is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// At the first byte of a field.
    Start,
    /// In a field without quotes.
    Bare,
    /// In quotes.
    Quoted,
    /// After a backslash in quotes.
    Escaped,
    /// After the quote that may close a field, and this many bytes of a terminator.
    Closed(u8),
}

/// Cuts bytes into the fields of records.
struct Cutter {
    terminator: [u8; 4],
    /// Number of bytes of the terminator.
    width: u8,
    limit: usize,
    state: State,
    /// Whether the record is whole: the next byte begins another one.
    is_whole: bool,
    /// Bytes of all fields.
    data: Vec<u8>,
    fields: Vec<Field>,
    /// Line on which the record begins.
    line: u64,
    lines: Lines,
}

impl Cutter {
    fn new(terminator: Terminator, limit: usize) -> Self {
        let mut bytes = [0; 4];
        let width = terminator.0.encode_utf8(&mut bytes).len() as u8;
        Self {
            terminator: bytes,
            width,
            limit,
            state: State::Start,
            is_whole: false,
            data: vec![],
            fields: vec![],
            line: 1,
            lines: Lines::new(),
        }
    }

    fn last_of_terminator(&self) -> u8 {
        self.terminator[usize::from(self.width) - 1]
    }

    /// Reads bytes up to the end of a record. Returns how many it read, and whether the record is whole.
    fn read(&mut self, bytes: &[u8]) -> Result<(usize, bool), String> {
        if std::mem::take(&mut self.is_whole) {
            self.data.clear();
            self.fields.clear();
            // One long record must not hold memory to the end of the file.
            self.data.shrink_to(BUFFER_BYTES);
        }
        let mut at = 0;
        while let Some(byte) = bytes.get(at).copied() {
            let rest = &bytes[at..];
            let is_line_end = matches!(byte, b'\n' | b'\r');
            match self.state {
                State::Start if self.fields.is_empty() && is_line_end => {
                    // A line without a byte, or the second byte of `\r\n`.
                    self.lines.see(&rest[..1]);
                    at += 1;
                }
                State::Start => {
                    if self.fields.is_empty() {
                        self.lines.end();
                        self.line = self.lines.line;
                    }
                    if byte == b'"' {
                        self.state = State::Quoted;
                        at += 1;
                    } else {
                        self.state = State::Bare;
                    }
                }
                State::Bare => {
                    let found = memchr::memchr3(self.last_of_terminator(), b'\n', b'\r', rest);
                    let (plain, end) = rest.split_at(found.unwrap_or(rest.len()));
                    self.keep(plain)?;
                    at += plain.len();
                    let Some(byte) = end.first() else { break };
                    at += 1;
                    if matches!(byte, b'\n' | b'\r') {
                        self.end_field(0, false)?;
                        return Ok((at, self.end_record(*byte)));
                    }
                    // A longer terminator ends with bytes that were kept before.
                    let before = usize::from(self.width) - 1;
                    let start = self.fields.last().map_or(0, |field| field.end);
                    let is_terminator = self.data[start..].ends_with(&self.terminator[..before]);
                    if is_terminator { self.end_field(before, false)? } else { self.keep(&[*byte])? }
                }
                State::Quoted => {
                    let found = memchr::memchr2(b'"', b'\\', rest);
                    let (plain, end) = rest.split_at(found.unwrap_or(rest.len()));
                    self.lines.see(plain);
                    self.keep(plain)?;
                    at += plain.len();
                    let Some(byte) = end.first() else { break };
                    self.lines.see(&[*byte]);
                    self.state = if *byte == b'"' { State::Closed(0) } else { State::Escaped };
                    at += 1;
                }
                State::Escaped => {
                    if matches!(byte, b'"' | b'\\') {
                        self.keep(&[byte])?;
                        at += 1;
                    } else {
                        self.keep(b"\\")?;
                    }
                    self.state = State::Quoted;
                }
                State::Closed(0) if byte == b'"' => {
                    self.keep(b"\"")?;
                    self.state = State::Quoted;
                    at += 1;
                }
                State::Closed(0) if is_line_end => {
                    self.end_field(0, true)?;
                    return Ok((at + 1, self.end_record(byte)));
                }
                State::Closed(seen) if self.terminator[usize::from(seen)] == byte => {
                    at += 1;
                    self.state = State::Closed(seen + 1);
                    if seen + 1 == self.width {
                        self.end_field(0, true)?;
                    }
                }
                State::Closed(_) => return Err(self.after_quote()),
            }
        }
        Ok((at, false))
    }

    /// Ends the file. Returns whether its last record ends with it.
    fn finish(&mut self) -> Result<bool, String> {
        if std::mem::take(&mut self.is_whole) {
            return Ok(false);
        }
        match self.state {
            State::Start if self.fields.is_empty() => return Ok(false),
            State::Start | State::Bare => self.end_field(0, false)?,
            State::Closed(0) => self.end_field(0, true)?,
            State::Closed(_) => return Err(self.after_quote()),
            State::Quoted | State::Escaped => return Err("the file ends inside a quoted field".to_owned()),
        }
        self.is_whole = true;
        Ok(true)
    }

    fn after_quote(&self) -> String {
        let field = self.fields.len() + 1;
        format!("field {field} goes on after its closing quote: a quote inside of quotes is written \"\"")
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.data.len() + bytes.len() > self.limit {
            return Err(format!("the record has more than {} bytes, the limit", self.limit));
        }
        self.data.extend_from_slice(bytes);
        Ok(())
    }

    /// Ends a field without its last bytes, which are a part of the terminator.
    fn end_field(&mut self, cut: usize, quoted: bool) -> Result<(), String> {
        if self.fields.len() == MAX_FIELDS {
            return Err(format!("the record has more than {MAX_FIELDS} fields, the limit"));
        }
        self.data.truncate(self.data.len() - cut);
        self.fields.push(Field { end: self.data.len(), quoted });
        self.state = State::Start;
        Ok(())
    }

    fn end_record(&mut self, byte: u8) -> bool {
        self.lines.see(&[byte]);
        self.is_whole = true;
        true
    }

    /// Checks that each field is UTF-8.
    fn check(&self) -> Result<(), String> {
        // One check for the whole record is several times faster than one for each field. It is enough where no
        // character straddles two fields.
        if let Ok(text) = std::str::from_utf8(&self.data)
            && self.fields.iter().all(|field| text.is_char_boundary(field.end))
        {
            return Ok(());
        }
        match self.raw().position(|(bytes, _)| std::str::from_utf8(bytes).is_err()) {
            Some(at) => Err(format!("field {} is not valid UTF-8", at + 1)),
            None => Ok(()),
        }
    }

    fn raw(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.fields.iter().scan(0, |start, field| {
            let bytes = &self.data[*start..field.end];
            *start = field.end;
            Some((bytes, field.quoted))
        })
    }

    fn fields(&self) -> impl Iterator<Item = Option<&str>> {
        self.raw().map(|(bytes, quoted)| {
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            (quoted || !text.is_empty()).then_some(text)
        })
    }
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;

//! Turns files into rows: [`open`] reads the header, [`RowReader`] iterates over the rows.
//!
//! Flow: bytes are decompressed by the extension of the file, cut into fields by [`crate::records`], and each field
//! gets the meaning of its column here. A file keeps each label and key once; rows hold indexes ([`Name`]), so that the
//! caller looks up a token once for each name of a file.
//!
//! A bad row is one [`Problem::Row`], and reading continues. [`Problem::File`] is the last item.
//!
//! Must never: hold more than one record.

use crate::convert::{self, Type};
use crate::decompress::{BUFFER_BYTES, Input, decompressed, without_mark};
use crate::dialect::Dialect;
use crate::error::{Cause, Error, ReadError};
use crate::header::{self, FileKind, Header, Role};
use crate::options::Options;
use crate::records::{Outcome, Records};
use crate::reject::{Code, Rejected};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use tidegraph_types::{Cardinality, Str, Value};

/// Label that a vertex of the Gremlin dialect gets if no row gives it one.
pub const DEFAULT_LABEL: &str = "vertex";

/// Index of a label or property key in [`RowReader::names`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(pub u32);

/// One value of one property.
#[derive(Clone, PartialEq, Debug)]
pub struct Property {
    /// The key.
    pub name: Name,
    /// Cardinality of the column.
    pub cardinality: Cardinality,
    /// The value.
    pub value: Value,
}

/// A row of a vertex file.
#[derive(Clone, PartialEq, Debug)]
pub struct VertexRow {
    /// Line on which the row begins, from 1.
    pub line: u64,
    /// Its id.
    pub id: Str,
    /// Its labels, distinct, in order; empty if the row has none. The reader adds no [`DEFAULT_LABEL`]: the vertex may
    /// have a label from another row.
    pub labels: SmallVec<[Name; 2]>,
    /// Its properties, in the order of the columns.
    pub properties: Vec<Property>,
}

/// A row of an edge file.
#[derive(Clone, PartialEq, Debug)]
pub struct EdgeRow {
    /// Line on which the row begins, from 1.
    pub line: u64,
    /// Its id, if the file has ids.
    pub id: Option<Str>,
    /// Id of the source vertex.
    pub from: Str,
    /// Id of the target vertex.
    pub to: Str,
    /// Its label.
    pub label: Name,
    /// Its properties, one for each key.
    pub properties: Vec<Property>,
}

/// A row.
#[derive(Clone, PartialEq, Debug)]
pub enum Row {
    /// A row of a vertex file.
    Vertex(VertexRow),
    /// A row of an edge file.
    Edge(EdgeRow),
}

/// Why an item of a [`RowReader`] is not a row.
#[derive(Debug)]
pub enum Problem {
    /// This row is refused. Reading continues with the next one.
    Row(Rejected),
    /// The file cannot be read further. No item follows.
    File(Error),
}

/// Opens a file and reads its header.
///
/// Decompresses by the extension of `name` (`.gz`, `.bz2`) and skips a byte order mark. If `dialect` is `None`, the
/// header tells it.
///
/// # Errors
///
/// * [`Error::Header`] if the header is not one of the dialect.
/// * [`Error::File`] if `reader` fails.
///
/// # Examples
///
/// ```
/// use tidegraph_load::{Options, Problem, Row};
/// use tidegraph_types::Value;
///
/// let text = "~id,~label,age:Int(single)\nann,Person,42\nbob,Person,old\n";
/// let mut rows = tidegraph_load::open(text.as_bytes(), "people.csv", None, &Options::default())?;
///
/// let Some(Ok(Row::Vertex(ann))) = rows.next() else { panic!("ann is a vertex") };
/// assert_eq!(ann.id, "ann");
/// assert_eq!(ann.properties[0].value, Value::Int(42));
///
/// let Some(Err(Problem::Row(refused))) = rows.next() else { panic!("bob's age is not a number") };
/// assert_eq!(
///     refused.to_string(),
///     "people.csv, line 3, column age:Int(single), value \"old\": not a whole number, as int asks for",
/// );
/// assert!(rows.next().is_none());
/// # Ok::<(), tidegraph_load::Error>(())
/// ```
pub fn open(
    reader: impl Read + Send + 'static,
    name: &str,
    dialect: Option<Dialect>,
    options: &Options,
) -> Result<RowReader, Error> {
    let reader = decompressed(reader, name)?;
    RowReader::new(reader, Arc::from(name), dialect, options)
}

/// Opens a part of a file that is not compressed. The part is whole records; the first begins on `line`. `header` is
/// that of the file.
#[must_use]
pub fn open_part(
    reader: impl Read + Send + 'static,
    name: &str,
    header: Header,
    line: u64,
    options: &Options,
) -> RowReader {
    let reader: Box<dyn Read + Send> = Box::new(reader);
    let input = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(Vec::new()).chain(reader));
    let records = Records::new(input, options.max_record_bytes).at_line(line);
    RowReader::of(records, header, Arc::from(name), options)
}

/// Iterator over the rows of one file.
pub struct RowReader {
    records: Records<Input>,
    header: Header,
    file: Arc<str>,
    options: Options,
    names: Vec<Str>,
    labels: FxHashMap<Str, Name>,
    last_label: Option<(Str, Name)>,
    rows: u64,
    finished: bool,
}

impl RowReader {
    fn new(
        reader: Box<dyn Read + Send>,
        file: Arc<str>,
        dialect: Option<Dialect>,
        options: &Options,
    ) -> Result<Self, Error> {
        let failed = |e| file_error(&file, 0, e);
        let input = without_mark(reader).map_err(failed)?;
        let mut records = Records::new(input, options.max_record_bytes);
        let outcome = records.next().map_err(failed)?;
        let header = read_header(&records, outcome, &file, dialect, options)?;
        Ok(Self::of(records, header, file, options))
    }

    fn of(records: Records<Input>, header: Header, file: Arc<str>, options: &Options) -> Self {
        Self {
            records,
            names: header.names.clone(),
            header,
            file,
            options: options.clone(),
            labels: FxHashMap::default(),
            last_label: None,
            rows: 0,
            finished: false,
        }
    }

    /// Returns the header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn file(&self) -> &Arc<str> {
        &self.file
    }

    /// Returns the labels and keys met so far: first the keys of the header, then labels in the order of their rows.
    /// Names are only ever appended.
    #[must_use]
    pub fn names(&self) -> &[Str] {
        &self.names
    }

    /// Returns the number of rows read so far, refused ones included.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn label(&mut self, text: &str) -> Name {
        // Nearly every file has one label.
        if let Some((last, name)) = &self.last_label
            && last == text
        {
            return *name;
        }
        let name = match self.labels.get(text) {
            Some(name) => *name,
            None => {
                let name = Name(self.names.len() as u32);
                self.names.push(text.into());
                self.labels.insert(text.into(), name);
                name
            }
        };
        self.last_label = Some((text.into(), name));
        name
    }

    fn reject(&self, code: Code, reason: impl Into<String>) -> Rejected {
        Rejected::new(&self.file, self.records.line(), code, reason)
    }

    fn reject_field(&self, index: usize, code: Code, reason: impl Into<String>) -> Rejected {
        let column = self.header.columns.get(index).map_or("", |c| c.text.as_str());
        self.reject(code, reason).at(column, self.records.bytes(index))
    }

    fn row(&mut self) -> Result<Row, Rejected> {
        let expected = self.header.columns.len();
        if self.records.len() != expected {
            let found = self.records.len();
            return Err(self.reject(Code::Parsing, format!("{found} fields, the header has {expected}")));
        }
        if let Err(index) = self.records.check_utf8() {
            return Err(self.reject_field(index, Code::Parsing, "not valid UTF-8"));
        }
        let (mut id, mut from, mut to) = (None, None, None);
        let mut labels: SmallVec<[Name; 2]> = SmallVec::new();
        let mut properties = Vec::with_capacity(self.header.names.len());
        for index in 0..expected {
            match &self.header.columns[index].role {
                Role::Property { name, kind, array, cardinality } => {
                    let (name, kind, cardinality) = (Name(*name), *kind, *cardinality);
                    if *array {
                        self.array(index, name, kind, &mut properties)?;
                    } else if let Some(value) = self.value(index, kind)? {
                        properties.push(Property { name, cardinality, value });
                    }
                }
                Role::Id { space, property } => {
                    let property = *property;
                    id = Some(self.id(index, space.as_ref())?);
                    if let Some(name) = property {
                        let value = Value::string(self.records.text(index));
                        properties.push(Property {
                            name: Name(name),
                            cardinality: Cardinality::Single,
                            value,
                        });
                    }
                }
                Role::From { space } => from = Some(self.id(index, space.as_ref())?),
                Role::To { space } => to = Some(self.id(index, space.as_ref())?),
                Role::Label => labels = self.labels(index)?,
            }
        }
        let line = self.records.line();
        match (self.header.kind, id, from, to) {
            (FileKind::Vertices, Some(id), _, _) => {
                Ok(Row::Vertex(VertexRow { line, id, labels, properties }))
            }
            (FileKind::Edges, id, Some(from), Some(to)) => {
                let label = match labels.first() {
                    Some(label) => *label,
                    None => self.label("edge"),
                };
                Ok(Row::Edge(EdgeRow { line, id, from, to, label, properties }))
            }
            // The header was refused if one of these columns is missing.
            _ => Err(self.reject(Code::Internal, "a required column is missing")),
        }
    }

    fn id(&self, index: usize, space: Option<&Str>) -> Result<Str, Rejected> {
        let text = self.records.text(index);
        if text.is_empty() && !self.is_empty_text(index) {
            return Err(self.reject_field(index, Code::Parsing, "the id is missing"));
        }
        Ok(match space {
            Some(space) if !space.is_empty() => Str::from(format!("{space}:{text}")),
            _ => Str::from(text),
        })
    }

    /// Whether an empty field of a system column is an empty text; otherwise it is absent.
    fn is_empty_text(&self, index: usize) -> bool {
        self.records.quoted(index) && self.header.dialect.rules().quoted_empty_is_text()
    }

    fn labels(&mut self, index: usize) -> Result<SmallVec<[Name; 2]>, Rejected> {
        let mut labels = SmallVec::new();
        let text = self.records.text(index);
        if text.is_empty() {
            return if self.is_empty_text(index) {
                Err(self.reject_field(index, Code::Parsing, "a label cannot be empty"))
            } else {
                Ok(labels)
            };
        }
        if self.header.kind == FileKind::Edges || !text.contains(';') {
            if let Some((last, name)) = &self.last_label
                && last == text
            {
                labels.push(*name);
                return Ok(labels);
            }
            let text = Str::from(text);
            labels.push(self.label(&text));
            return Ok(labels);
        }
        let text = text.to_owned();
        for part in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
            let name = self.label(part);
            if !labels.contains(&name) {
                labels.push(name);
            }
        }
        Ok(labels)
    }

    fn value(&self, index: usize, kind: Type) -> Result<Option<Value>, Rejected> {
        let text = self.records.text(index);
        if text.is_empty() {
            let kept = kind == Type::String && self.options.allow_empty_strings && self.records.quoted(index);
            return Ok(kept.then(|| Value::string("")));
        }
        convert::parse(kind, text).map(Some).map_err(|e| self.reject_field(index, Code::Datatype, e))
    }

    fn array(
        &self,
        index: usize,
        name: Name,
        kind: Type,
        properties: &mut Vec<Property>,
    ) -> Result<(), Rejected> {
        let text = self.records.text(index);
        if text.is_empty() {
            return Ok(());
        }
        let first = properties.len();
        for part in split_array(text) {
            let part: &str = if kind == Type::String { &part } else { part.trim() };
            if part.is_empty() && !(kind == Type::String && self.options.allow_empty_strings) {
                continue;
            }
            let value =
                convert::parse(kind, part).map_err(|e| self.reject_field(index, Code::Datatype, e))?;
            // A set: equal values in one field are one value. Fields are short, so a scan is enough.
            let small = properties.len() - first < 64;
            if small && properties[first..].iter().any(|p| p.value == value) {
                continue;
            }
            properties.push(Property { name, cardinality: Cardinality::Set, value });
        }
        Ok(())
    }
}

impl Iterator for RowReader {
    type Item = Result<Row, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let outcome = match self.records.next() {
            Ok(outcome) => outcome,
            Err(e) => {
                self.finished = true;
                return Some(Err(Problem::File(file_error(&self.file, self.rows, e))));
            }
        };
        let refused = match outcome {
            Outcome::End => {
                self.finished = true;
                return None;
            }
            Outcome::Record => None,
            Outcome::TooLong => {
                let limit = self.options.max_record_bytes;
                Some(format!("the record has more than {limit} bytes, the limit"))
            }
            Outcome::Unclosed => Some("the file ends inside a quoted field".to_owned()),
        };
        self.rows += 1;
        Some(match refused {
            Some(reason) => Err(Problem::Row(self.reject(Code::Parsing, reason))),
            None => self.row().map_err(Problem::Row),
        })
    }
}

fn read_header<R: BufRead>(
    records: &Records<R>,
    outcome: Outcome,
    file: &Arc<str>,
    dialect: Option<Dialect>,
    options: &Options,
) -> Result<Header, Error> {
    let refuse = |column: &str, reason: String| {
        let rejected = Rejected::new(file, records.line().max(1), Code::Parsing, reason);
        Error::Header(Box::new(if column.is_empty() {
            rejected
        } else {
            rejected.at(column, column.as_bytes())
        }))
    };
    match outcome {
        Outcome::Record => {}
        Outcome::End => return Err(refuse("", "the file is empty, it has no header".into())),
        Outcome::TooLong => {
            let limit = options.max_record_bytes;
            return Err(refuse("", format!("the header has more than {limit} bytes, the limit")));
        }
        Outcome::Unclosed => return Err(refuse("", "the header ends inside a quoted field".into())),
    }
    if let Err(index) = records.check_utf8() {
        let text = String::from_utf8_lossy(records.bytes(index)).into_owned();
        return Err(refuse(&text, "the header is not valid UTF-8".into()));
    }
    let fields: Vec<&str> = (0..records.len()).map(|i| records.text(i)).collect();
    let Some(dialect) = dialect.or_else(|| Dialect::detect(fields.iter().copied())) else {
        return Err(refuse(fields[0], Dialect::not_detected()));
    };
    header::parse(dialect, options, &fields)
        .map_err(|wrong| refuse(wrong.column.as_deref().unwrap_or_default(), wrong.reason))
}

/// Makes the error of a file that was opened and could not be read to its end.
pub(crate) fn file_error(file: &Arc<str>, rows: u64, error: io::Error) -> Error {
    let source = ReadError::from(error);
    let cause = match (source.cause(), &source) {
        // Credentials that worked at the start have expired, and may be renewed.
        (Cause::Denied, ReadError::Objects(_)) => Cause::Store,
        (cause, _) => cause,
    };
    Error::File { file: file.clone(), rows, cause, source }
}

/// Splits at semicolons without a backslash before them. `\;` becomes `;`; every other backslash stays.
fn split_array(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let bytes = text.as_bytes();
        let end = (0..bytes.len()).find(|i| bytes[*i] == b';' && (*i == 0 || bytes[i - 1] != b'\\'));
        let part = match end {
            Some(end) => {
                rest = Some(&text[end + 1..]);
                &text[..end]
            }
            None => {
                rest = None;
                text
            }
        };
        Some(if part.contains("\\;") { Cow::Owned(part.replace("\\;", ";")) } else { Cow::Borrowed(part) })
    })
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;

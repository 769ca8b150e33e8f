//! The messages of Gremlin Server's protocol.

use crate::argument::Argument;
use crate::binary;
use crate::graphson::{self, Item, Nothing, Object, Version};
use serde::Serialize;
use serde_json::Value as Json;
use std::io::{self, Write};
use tidegraph_types::{Budget, NoMemory, Str, Value};
use uuid::Uuid;

/// The first byte of a message in GraphBinary 1.
const BINARY_VERSION: u8 = 0x81;
/// Memory that a value of JSON takes at most besides its text, in bytes.
const JSON_VALUE_BYTES: usize = 256;

/// The form of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// GraphBinary 1.
    Binary,
    /// GraphSON 2 with types.
    GraphSon2,
    /// GraphSON 3 with types.
    GraphSon3,
    /// GraphSON without types; of which version only its name differs.
    Untyped(&'static str),
}

impl Format {
    /// Returns the format of a media type such as `application/vnd.gremlin-v3.0+json`; `None` if there is none.
    ///
    /// ```
    /// use tidegraph_gremlin_io::Format;
    ///
    /// assert_eq!(Format::of_media_type("application/vnd.graphbinary-v1.0"), Some(Format::Binary));
    /// assert_eq!(Format::of_media_type("application/json"), Some(Format::GraphSon3));
    /// assert_eq!(Format::of_media_type("text/html"), None);
    /// ```
    #[must_use]
    pub fn of_media_type(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let has_types =
            !parts.any(|parameter| parameter.replace(' ', "").eq_ignore_ascii_case("types=false"));
        Some(match (kind.as_str(), has_types) {
            ("application/vnd.graphbinary-v1.0", _) => Self::Binary,
            ("application/vnd.gremlin-v2.0+json", true) => Self::GraphSon2,
            ("application/vnd.gremlin-v3.0+json" | "application/json", true) => Self::GraphSon3,
            ("application/json", false) => Self::Untyped("application/json"),
            ("application/vnd.gremlin-v1.0+json", _) => Self::Untyped("application/vnd.gremlin-v1.0+json"),
            ("application/vnd.gremlin-v2.0+json", false) => {
                Self::Untyped("application/vnd.gremlin-v2.0+json;types=false")
            }
            ("application/vnd.gremlin-v3.0+json", false) => {
                Self::Untyped("application/vnd.gremlin-v3.0+json;types=false")
            }
            _ => return None,
        })
    }

    /// Returns the media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Binary => "application/vnd.graphbinary-v1.0",
            Self::GraphSon2 => "application/vnd.gremlin-v2.0+json",
            Self::GraphSon3 => "application/vnd.gremlin-v3.0+json",
            Self::Untyped(name) => name,
        }
    }

    /// Whether messages are text.
    #[must_use]
    pub const fn is_text(self) -> bool {
        !matches!(self, Self::Binary)
    }

    const fn version(self) -> Option<Version> {
        match self {
            Self::GraphSon2 => Some(Version::V2),
            Self::GraphSon3 => Some(Version::V3),
            Self::Binary | Self::Untyped(_) => None,
        }
    }
}

/// A message of a client.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// Its id, which all responses to it have.
    pub id: Uuid,
    /// What it asks for: `eval`, `bytecode`, `authentication`, `close` …
    pub op: Str,
    /// Who is to do it: nobody in particular, `traversal` or `session`.
    pub processor: Str,
    arguments: Vec<(Str, Argument)>,
}

/// Why a message is not read.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct RequestError {
    /// The id of the message, if it could be read.
    pub id: Option<Uuid>,
    /// The cause.
    pub cause: RequestCause,
}

/// The causes of a [`RequestError`].
#[derive(Debug, thiserror::Error)]
pub enum RequestCause {
    /// Bytes that are not GraphBinary.
    #[error("the message is not valid GraphBinary: {0}")]
    Binary(#[from] binary::Error),
    /// Text that is not GraphSON.
    #[error("{0}")]
    GraphSon(#[from] graphson::Error),
    /// A version that is not supported.
    #[error("byte 0: {0:#04X} is not version 1 of GraphBinary")]
    Version(u8),
    /// A field that is missing, or has another form.
    #[error("the message has no {0}, or it is not {1}")]
    Field(&'static str, &'static str),
    /// All queries together leave no memory for the message.
    #[error("all queries together leave no memory for the message")]
    Memory,
}

impl From<NoMemory> for RequestCause {
    fn from(_: NoMemory) -> Self {
        Self::Memory
    }
}

impl RequestError {
    /// Whether only memory was missing.
    #[must_use]
    pub const fn is_for_memory(&self) -> bool {
        matches!(self.cause, RequestCause::Memory | RequestCause::Binary(binary::Error::Memory))
    }
}

impl Request {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`RequestError`].
    pub fn read<'a>(format: Format, bytes: &'a [u8], mut budget: Budget<'a>) -> Result<Self, RequestError> {
        let mut id = None;
        let request = if format == Format::Binary {
            Self::read_binary(bytes, budget, &mut id)
        } else {
            let values = bytes.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
            let taken = budget.take(2 * bytes.len() + JSON_VALUE_BYTES * values);
            taken.map_err(RequestCause::from).and_then(|()| Self::read_graphson(bytes, &mut id))
        };
        request.map_err(|cause| RequestError { id, cause })
    }

    fn read_binary<'a>(
        bytes: &'a [u8],
        budget: Budget<'a>,
        id: &mut Option<Uuid>,
    ) -> Result<Self, RequestCause> {
        let mut reader = binary::Reader::new(bytes, budget);
        let [version] = reader.array()?;
        if version != BINARY_VERSION {
            return Err(RequestCause::Version(version));
        }
        let read = Uuid::from_bytes(reader.array()?);
        *id = Some(read);
        let (op, processor) = (reader.text()?, reader.text()?);
        let arguments = named(reader.entries()?)?;
        reader.end()?;
        Ok(Self { id: read, op, processor, arguments })
    }

    fn read_graphson(bytes: &[u8], id: &mut Option<Uuid>) -> Result<Self, RequestCause> {
        let message: Object = serde_json::from_slice(bytes).map_err(graphson::Error::Json)?;
        let given = match message.get("requestId") {
            Some(Json::Object(typed)) => typed.get("@value"),
            other => other,
        };
        let read = given.and_then(Json::as_str).and_then(|text| text.parse().ok());
        let read = read.ok_or(RequestCause::Field("requestId", "a UUID"))?;
        *id = Some(read);
        let text = |name| message.get(name).and_then(Json::as_str).unwrap_or_default().into();
        let arguments = match message.get("args").map(graphson::argument).transpose()? {
            None => vec![],
            Some(Argument::Map(entries)) => named(entries)?,
            Some(_) => return Err(RequestCause::Field("args", "a map")),
        };
        Ok(Self { id: read, op: text("op"), processor: text("processor"), arguments })
    }

    /// Returns an argument.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|(of, _)| of == name).map(|(_, argument)| argument)
    }
}

fn named(entries: Vec<(Argument, Argument)>) -> Result<Vec<(Str, Argument)>, RequestCause> {
    let entry = |(key, value): (Argument, Argument)| match key.as_text() {
        Some(name) => Ok((name.clone(), value)),
        None => Err(RequestCause::Field("args", "a map whose keys are text")),
    };
    entries.into_iter().map(entry).collect()
}

/// How much of an element an answer shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shown {
    /// Id, label and properties.
    #[default]
    All,
    /// Id and label.
    Reference,
}

/// A message of a server.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The id of the request.
    pub id: &'a str,
    /// A code of Gremlin Server: 200, 204, 206, 407 …
    pub code: u16,
    /// What is wrong, if anything.
    pub message: &'a str,
    /// More about the outcome.
    pub attributes: &'a [(&'a str, Value)],
}

/// How the values of an answer are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// The format of the message.
    pub format: Format,
    /// Whether the client wants traversers, as it does for a traversal that it sent step by step.
    pub traversers: bool,
    /// How much of an element is shown.
    pub shown: Shown,
}

/// A message whose values are written one by one.
#[derive(Clone, Copy, Debug)]
pub struct OpenResponse {
    form: Form,
    code_at: usize,
    /// Where the number of values is; `None` in a format without it.
    count_at: Option<usize>,
    count: usize,
}

/// What replaces the first guess in a message: its place from the begin of the message, and the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Correction {
    /// Place of the first byte.
    pub at: usize,
    /// Which of the bytes of `bytes` are meant.
    len: usize,
    bytes: [u8; 4],
}

impl Correction {
    fn new(at: usize, new: &[u8]) -> Self {
        let mut bytes = [0; 4];
        let len = new.len().min(4);
        bytes[..len].copy_from_slice(&new[..len]);
        Self { at, len, bytes }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Response<'_> {
    /// Writes the message without values.
    ///
    /// # Errors
    ///
    /// If `out` fails, or something is too large for the format.
    pub fn write(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        let head = self.head(format)?;
        out.write_all(&head.bytes)?;
        if format == Format::Binary {
            return binary::write_value(&Value::Null, true, out);
        }
        out.write_all(b"null")?;
        graphson_end(format, out)
    }

    /// Writes the message up to its values, of which there will be `count`. If the code or the count turn out to be others,
    /// [`OpenResponse::corrections`] says what to replace.
    ///
    /// # Errors
    ///
    /// If `out` fails, or something is too large for the format.
    pub fn begin(&self, form: Form, count: usize, out: &mut impl Write) -> io::Result<OpenResponse> {
        let Head { mut bytes, code_at } = self.head(form.format)?;
        let mut count_at = None;
        match form.format {
            Format::Binary => {
                bytes.extend([binary::code::LIST, 0x00]);
                count_at = Some(bytes.len());
                binary::write_count(count, &mut bytes)?;
            }
            format if format.version() == Some(Version::V3) => bytes.extend(LIST_BEGIN),
            _ => bytes.push(b'['),
        }
        out.write_all(&bytes)?;
        Ok(OpenResponse { form, code_at, count_at, count: 0 })
    }

    /// Writes what comes before the data of the result.
    fn head(&self, format: Format) -> io::Result<Head> {
        let mut bytes = vec![];
        let code_at = if format == Format::Binary {
            self.binary_head(&mut bytes)
        } else {
            self.graphson_head(format, &mut bytes)
        }?;
        Ok(Head { bytes, code_at })
    }

    fn binary_head(&self, out: &mut Vec<u8>) -> io::Result<usize> {
        const NULL: u8 = 0x01;
        const THERE: u8 = 0x00;
        out.push(BINARY_VERSION);
        match self.id.parse::<Uuid>() {
            Ok(id) => {
                out.push(THERE);
                out.extend(id.as_bytes());
            }
            Err(_) => out.push(NULL),
        }
        let code_at = out.len();
        out.extend(u32::from(self.code).to_be_bytes());
        if self.message.is_empty() {
            out.push(NULL);
        } else {
            out.push(THERE);
            binary::write_text(self.message, out)?;
        }
        binary::write_count(self.attributes.len(), out)?;
        for (name, value) in self.attributes {
            binary::write_value(&Value::from(*name), true, out)?;
            binary::write_value(value, true, out)?;
        }
        // No facts about the answer.
        binary::write_count(0, out)?;
        Ok(code_at)
    }

    fn graphson_head(&self, format: Format, out: &mut Vec<u8>) -> io::Result<usize> {
        out.extend(b"{\"requestId\":");
        serde_json::to_writer(&mut *out, self.id)?;
        out.extend(b",\"status\":{\"message\":");
        serde_json::to_writer(&mut *out, self.message)?;
        out.extend(b",\"code\":");
        let code_at = out.len();
        serde_json::to_writer(&mut *out, &self.code)?;
        out.extend(b",\"attributes\":");
        let attributes = Attributes { all: self.attributes, version: format.version() };
        serde_json::to_writer(&mut *out, &attributes)?;
        out.extend(b"},\"result\":{\"data\":");
        Ok(code_at)
    }
}

struct Head {
    bytes: Vec<u8>,
    code_at: usize,
}

/// A list with its type in GraphSON 3.
const LIST_BEGIN: &[u8] = b"{\"@type\":\"g:List\",\"@value\":[";
const LIST_END: &[u8] = b"]}";

fn graphson_end(format: Format, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b",\"meta\":")?;
    serde_json::to_writer(&mut *out, &Nothing(format.version()))?;
    out.write_all(b"}}")
}

impl OpenResponse {
    /// Returns the number of values that were written.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Writes a value.
    ///
    /// # Errors
    ///
    /// If `out` fails, or something is too large for the format.
    pub fn value(&mut self, value: &Value, out: &mut impl Write) -> io::Result<()> {
        let Form { format, traversers, shown } = self.form;
        let properties = shown == Shown::All;
        if format == Format::Binary {
            if traversers {
                out.write_all(&[binary::code::TRAVERSER, 0x00])?;
                out.write_all(&1_u64.to_be_bytes())?;
            }
            binary::write_value(value, properties, out)?;
        } else {
            if self.count > 0 {
                out.write_all(b",")?;
            }
            let item = Item { value, version: format.version(), properties, traversers };
            serde_json::to_writer(out, &item)?;
        }
        self.count += 1;
        Ok(())
    }

    /// Writes what follows the values.
    ///
    /// # Errors
    ///
    /// If `out` fails.
    pub fn end(&self, out: &mut impl Write) -> io::Result<()> {
        match self.form.format {
            Format::Binary => return Ok(()),
            format if format.version() == Some(Version::V3) => out.write_all(LIST_END)?,
            _ => out.write_all(b"]")?,
        }
        graphson_end(self.form.format, out)
    }

    /// Returns what to replace in the message if `code`, of three digits, is right, and the number of values is the one
    /// that were written.
    ///
    /// # Errors
    ///
    /// If the values are too many for the format.
    pub fn corrections(&self, code: u16) -> io::Result<impl Iterator<Item = Correction> + use<>> {
        let code = if self.form.format == Format::Binary {
            Correction::new(self.code_at, &u32::from(code).to_be_bytes())
        } else {
            Correction::new(self.code_at, code.to_string().as_bytes())
        };
        let mut count = vec![];
        binary::write_count(self.count, &mut count)?;
        let count = self.count_at.map(|at| Correction::new(at, &count));
        Ok([Some(code), count].into_iter().flatten())
    }
}

struct Attributes<'a> {
    all: &'a [(&'a str, Value)],
    version: Option<Version>,
}

impl Serialize for Attributes<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.all.is_empty() {
            return Nothing(self.version).serialize(serializer);
        }
        let map = self.all.iter().map(|(name, value)| (Value::from(*name), value.clone()));
        let map = Value::map(map.collect());
        match self.version {
            Some(version) => graphson::typed(&map, version).serialize(serializer),
            None => crate::Untyped { value: &map, properties: true }.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes values one by one under a wrong code and a wrong count, and corrects both.
    fn written(format: Format, traversers: bool, values: &[Value]) -> Vec<u8> {
        let id = "41d2e28a-20a4-4ab0-b379-d810dede3786";
        let response = Response { id, code: 206, message: "", attributes: &[] };
        let mut bytes = vec![];
        let mut open = response.begin(Form { format, traversers, shown: Shown::All }, 0, &mut bytes).unwrap();
        values.iter().for_each(|value| open.value(value, &mut bytes).unwrap());
        open.end(&mut bytes).unwrap();
        for correction in open.corrections(200).unwrap() {
            let new = correction.bytes();
            bytes[correction.at..correction.at + new.len()].copy_from_slice(new);
        }
        bytes
    }

    fn text(format: Format, traversers: bool, values: &[Value]) -> String {
        String::from_utf8(written(format, traversers, values)).unwrap()
    }

    #[test]
    fn values_follow_the_head_in_graphson() {
        let values = [Value::Int(1), Value::from("two")];
        let typed = r#"{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","status":{"message":"","code":200,"attributes":{"@type":"g:Map","@value":[]}},"result":{"data":{"@type":"g:List","@value":[{"@type":"g:Int32","@value":1},"two"]},"meta":{"@type":"g:Map","@value":[]}}}"#;
        assert_eq!(text(Format::GraphSon3, false, &values), typed);
        let two = r#"{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","status":{"message":"","code":200,"attributes":{}},"result":{"data":[{"@type":"g:Int32","@value":1},"two"],"meta":{}}}"#;
        assert_eq!(text(Format::GraphSon2, false, &values), two);
        let untyped = r#"{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","status":{"message":"","code":200,"attributes":{}},"result":{"data":[1,"two"],"meta":{}}}"#;
        assert_eq!(text(Format::Untyped("application/json"), false, &values), untyped);
        let traverser = text(Format::GraphSon3, true, &values[1..]);
        let expected =
            r#"[{"@type":"g:Traverser","@value":{"bulk":{"@type":"g:Int64","@value":1},"value":"two"}}]"#;
        assert!(traverser.contains(expected), "{traverser}");
    }

    #[test]
    fn the_code_and_the_count_are_corrected_in_graph_binary() {
        let bytes = written(Format::Binary, false, &[Value::Int(1), Value::Int(2)]);
        assert_eq!(bytes[18..22], 200_u32.to_be_bytes());
        // No message, no attributes, no meta.
        assert_eq!(bytes[22..31], [1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[31..37], [binary::code::LIST, 0, 0, 0, 0, 2]);
        assert_eq!(bytes.len(), 37 + 2 * 6);
    }
}

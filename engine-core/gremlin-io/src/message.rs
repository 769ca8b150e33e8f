//! The messages of Gremlin Server's protocol.

use crate::argument::Argument;
use crate::binary;
use crate::graphson::{self, Column, Nothing, Object, Version};
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

/// Rows of an answer, of which the first column is sent.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The rows.
    pub rows: &'a [Vec<Value>],
    /// Whether the client wants traversers, as it does for a traversal that it sent step by step.
    pub traversers: bool,
    /// How much of an element is shown.
    pub shown: Shown,
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
    /// The rows; `None` if there is no answer.
    pub rows: Option<Rows<'a>>,
}

impl Response<'_> {
    /// Writes the message.
    ///
    /// # Errors
    ///
    /// If `out` fails, or something is too large for the format.
    pub fn write(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        if format == Format::Binary { self.write_binary(out) } else { self.write_graphson(format, out) }
    }

    fn write_binary(&self, out: &mut impl Write) -> io::Result<()> {
        const NULL: &[u8] = &[0x01];
        const THERE: &[u8] = &[0x00];
        out.write_all(&[BINARY_VERSION])?;
        match self.id.parse::<Uuid>() {
            Ok(id) => {
                out.write_all(THERE)?;
                out.write_all(id.as_bytes())?;
            }
            Err(_) => out.write_all(NULL)?,
        }
        out.write_all(&u32::from(self.code).to_be_bytes())?;
        if self.message.is_empty() {
            out.write_all(NULL)?;
        } else {
            out.write_all(THERE)?;
            binary::write_text(self.message, out)?;
        }
        binary::write_count(self.attributes.len(), out)?;
        for (name, value) in self.attributes {
            binary::write_value(&Value::from(*name), true, out)?;
            binary::write_value(value, true, out)?;
        }
        // No facts about the answer.
        binary::write_count(0, out)?;
        let Some(Rows { rows, traversers, shown }) = self.rows else {
            return binary::write_value(&Value::Null, true, out);
        };
        out.write_all(&[binary::code::LIST, 0x00])?;
        binary::write_count(rows.iter().filter(|row| !row.is_empty()).count(), out)?;
        for value in rows.iter().filter_map(|row| row.first()) {
            if traversers {
                out.write_all(&[binary::code::TRAVERSER, 0x00])?;
                out.write_all(&1_u64.to_be_bytes())?;
            }
            binary::write_value(value, shown == Shown::All, out)?;
        }
        Ok(())
    }

    fn write_graphson(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Message<'a> {
            request_id: &'a str,
            status: Status<'a>,
            result: Answer<'a>,
        }
        #[derive(Serialize)]
        struct Status<'a> {
            message: &'a str,
            code: u16,
            attributes: Attributes<'a>,
        }
        #[derive(Serialize)]
        struct Answer<'a> {
            data: Option<Column<'a>>,
            meta: Nothing,
        }
        let version = format.version();
        let data = self.rows.map(|Rows { rows, traversers, shown }| Column {
            rows,
            version,
            properties: shown == Shown::All,
            traversers,
        });
        let attributes = Attributes { all: self.attributes, version };
        let status = Status { message: self.message, code: self.code, attributes };
        let result = Answer { data, meta: Nothing(version) };
        Ok(serde_json::to_writer(out, &Message { request_id: self.id, status, result })?)
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

//! Messages of clients and of the server.

use crate::Version;
use crate::chunks::write_chunks;
use crate::packstream::{
    self, Dialect, Reader, write_list_header, write_map_header, write_structure, write_text, write_value,
};
use indexmap::IndexMap;
use std::io;
use tidegraph_types::{Budget, Map, Str, Value};

mod tags {
    pub const HELLO: u8 = 0x01;
    pub const GOODBYE: u8 = 0x02;
    pub const RESET: u8 = 0x0F;
    pub const RUN: u8 = 0x10;
    pub const BEGIN: u8 = 0x11;
    pub const COMMIT: u8 = 0x12;
    pub const ROLLBACK: u8 = 0x13;
    pub const DISCARD: u8 = 0x2F;
    pub const PULL: u8 = 0x3F;
    pub const TELEMETRY: u8 = 0x54;
    pub const ROUTE: u8 = 0x66;
    pub const LOGON: u8 = 0x6A;
    pub const LOGOFF: u8 = 0x6B;
    pub const SUCCESS: u8 = 0x70;
    pub const RECORD: u8 = 0x71;
    pub const IGNORED: u8 = 0x7E;
    pub const FAILURE: u8 = 0x7F;
}

/// A message of a client.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// Names the client; before Bolt 5.1 with its credentials.
    Hello(Map),
    /// The client's credentials.
    Logon(Map),
    /// Forgets the credentials.
    Logoff,
    /// The client will close the connection.
    Goodbye,
    /// Ends whatever runs, and forgets a failure.
    Reset,
    /// Runs a query.
    Run(Run),
    /// Asks for rows of an open answer.
    Pull(Pull),
    /// Drops rows of an open answer.
    Discard(Pull),
    /// Opens a transaction.
    Begin(Map),
    /// Commits the open transaction.
    Commit,
    /// Ends the open transaction without effect.
    Rollback,
    /// Asks for the addresses of the database.
    Route {
        /// The routing context: how the client reached this server.
        routing: Map,
        /// Database and user.
        extra: Map,
    },
    /// Says which function of the driver is in use.
    Telemetry,
}

/// A query of a client.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The text.
    pub text: Str,
    /// The parameters.
    pub parameters: IndexMap<Str, Value>,
    /// Bookmarks, time limit, mode, database and others.
    pub extra: Map,
}

/// Which rows a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pull {
    /// How many; `None` for all.
    pub rows: Option<u64>,
    /// Of which answer of a transaction; `None` for the last.
    pub answer: Option<i64>,
}

/// Why a message is not understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RequestError {
    /// Its bytes are not values.
    #[error(transparent)]
    Value(#[from] packstream::Error),
    /// A message that the version does not have.
    #[error("Bolt {version} has no message {tag:#04X}")]
    Unknown {
        /// Version of the connection.
        version: Version,
        /// Tag of the message.
        tag: u8,
    },
    /// A wrong number of fields.
    #[error("{message} has {expected} fields, not {found}")]
    Fields {
        /// Name of the message.
        message: &'static str,
        /// Number of its fields.
        expected: usize,
        /// Number of fields that arrived.
        found: usize,
    },
    /// A field of a wrong type.
    #[error("{message}: {field} must be {expected}, not {found}")]
    Field {
        /// Name of the message.
        message: &'static str,
        /// Name of the field.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What arrived.
        found: String,
    },
}

impl Request {
    /// Bytes of [`Request::Reset`]: it is looked for while a query runs.
    pub const RESET: [u8; 2] = [0xB0, tags::RESET];

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`RequestError`].
    pub fn read<'a>(bytes: &'a [u8], version: Version, budget: Budget<'a>) -> Result<Self, RequestError> {
        let mut reader = Reader::new(bytes, budget);
        let (count, tag) = reader.structure()?;
        let since = |minor: u8| version >= Version::new(5, minor);
        let mut fields = Fields { reader: &mut reader, message: "", count };
        let request = match tag {
            tags::HELLO => Self::Hello(fields.of("HELLO", 1)?.map("extra")?),
            tags::LOGON if since(1) => Self::Logon(fields.of("LOGON", 1)?.map("auth")?),
            tags::LOGOFF if since(1) => fields.of("LOGOFF", 0).map(|_| Self::Logoff)?,
            tags::GOODBYE => fields.of("GOODBYE", 0).map(|_| Self::Goodbye)?,
            tags::RESET => fields.of("RESET", 0).map(|_| Self::Reset)?,
            tags::RUN => {
                let fields = fields.of("RUN", 3)?;
                let text = fields.text("query")?;
                let parameters = fields.map("parameters")?;
                let parameters = parameters.into_iter().filter_map(|(key, value)| match key {
                    Value::String(name) => Some((name, value)),
                    _ => None,
                });
                Self::Run(Run { text, parameters: parameters.collect(), extra: fields.map("extra")? })
            }
            tags::PULL => Self::Pull(fields.of("PULL", 1)?.pull()?),
            tags::DISCARD => Self::Discard(fields.of("DISCARD", 1)?.pull()?),
            tags::BEGIN => Self::Begin(fields.of("BEGIN", 1)?.map("extra")?),
            tags::COMMIT => fields.of("COMMIT", 0).map(|_| Self::Commit)?,
            tags::ROLLBACK => fields.of("ROLLBACK", 0).map(|_| Self::Rollback)?,
            tags::ROUTE => {
                let fields = fields.of("ROUTE", 3)?;
                let routing = fields.map("routing")?;
                fields.list("bookmarks")?;
                Self::Route { routing, extra: fields.map("extra")? }
            }
            tags::TELEMETRY if since(4) => {
                fields.of("TELEMETRY", 1)?.reader.value()?;
                Self::Telemetry
            }
            tag => return Err(RequestError::Unknown { version, tag }),
        };
        reader.end()?;
        Ok(request)
    }

    /// Returns the name of the message.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "HELLO",
            Self::Logon(_) => "LOGON",
            Self::Logoff => "LOGOFF",
            Self::Goodbye => "GOODBYE",
            Self::Reset => "RESET",
            Self::Run(_) => "RUN",
            Self::Pull(_) => "PULL",
            Self::Discard(_) => "DISCARD",
            Self::Begin(_) => "BEGIN",
            Self::Commit => "COMMIT",
            Self::Rollback => "ROLLBACK",
            Self::Route { .. } => "ROUTE",
            Self::Telemetry => "TELEMETRY",
        }
    }
}

/// The fields of a message.
struct Fields<'r, 'a> {
    reader: &'r mut Reader<'a>,
    message: &'static str,
    count: usize,
}

impl Fields<'_, '_> {
    fn of(&mut self, message: &'static str, expected: usize) -> Result<&mut Self, RequestError> {
        self.message = message;
        if self.count == expected {
            Ok(self)
        } else {
            Err(RequestError::Fields { message, expected, found: self.count })
        }
    }

    fn wrong(&self, field: &'static str, expected: &'static str, found: &Value) -> RequestError {
        RequestError::Field { message: self.message, field, expected, found: found.for_message() }
    }

    fn text(&mut self, field: &'static str) -> Result<Str, RequestError> {
        match self.reader.value()? {
            Value::String(text) => Ok(text),
            other => Err(self.wrong(field, "text", &other)),
        }
    }

    fn map(&mut self, field: &'static str) -> Result<Map, RequestError> {
        match self.reader.value()? {
            Value::Map(map) => Ok(std::sync::Arc::unwrap_or_clone(map)),
            other => Err(self.wrong(field, "a map", &other)),
        }
    }

    fn list(&mut self, field: &'static str) -> Result<(), RequestError> {
        match self.reader.value()? {
            Value::List(_) => Ok(()),
            other => Err(self.wrong(field, "a list", &other)),
        }
    }

    fn pull(&mut self) -> Result<Pull, RequestError> {
        let extra = self.map("extra")?;
        let rows = match extra.get(&Value::from("n")) {
            Some(Value::Long(-1)) => None,
            Some(Value::Long(rows @ 1..)) => Some(rows.cast_unsigned()),
            other => {
                let found = other.unwrap_or(&Value::Null);
                return Err(self.wrong("n", "-1 or a positive integer", found));
            }
        };
        let answer = match extra.get(&Value::from("qid")) {
            None | Some(Value::Long(-1)) => None,
            Some(Value::Long(id)) => Some(*id),
            Some(other) => return Err(self.wrong("qid", "an integer", other)),
        };
        Ok(Pull { rows, answer })
    }
}

/// A message of the server, but for rows.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// The request succeeded.
    Success(Vec<(&'static str, Value)>),
    /// The request failed.
    Failure(Vec<(&'static str, Value)>),
    /// The request was not looked at, because an earlier one failed.
    Ignored,
}

impl Reply {
    /// Writes the message in chunks.
    pub fn write(&self, output: &mut Vec<u8>) {
        let mut message = vec![];
        match self {
            Self::Success(entries) => write_entries(tags::SUCCESS, entries, &mut message),
            Self::Failure(entries) => write_entries(tags::FAILURE, entries, &mut message),
            Self::Ignored => write_structure(tags::IGNORED, 0, &mut message),
        }
        let written = write_chunks(&message, output);
        debug_assert!(written.is_ok(), "a vector takes all bytes");
    }

    /// Writes a row in chunks. `scratch` is overwritten: a caller that keeps it saves allocations.
    ///
    /// # Errors
    ///
    /// If the output refuses the bytes.
    pub fn write_record(
        row: &[Value],
        dialect: Dialect,
        scratch: &mut Vec<u8>,
        output: &mut impl io::Write,
    ) -> io::Result<()> {
        scratch.clear();
        write_structure(tags::RECORD, 1, scratch);
        write_list_header(row.len(), scratch);
        for value in row {
            write_value(value, dialect, scratch);
        }
        write_chunks(scratch, output)
    }
}

fn write_entries(tag: u8, entries: &[(&'static str, Value)], output: &mut Vec<u8>) {
    // Metadata holds no elements, so the dialect does not matter.
    let dialect = Dialect { element_ids: true, utc: true };
    write_structure(tag, 1, output);
    write_map_header(entries.len(), output);
    for (key, value) in entries {
        write_text(key, output);
        write_value(value, dialect, output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(bytes: &[u8], version: Version) -> Result<Request, RequestError> {
        Request::read(bytes, version, Budget::new(&mut |_| true))
    }

    fn read(bytes: &[u8]) -> Result<Request, RequestError> {
        read_as(bytes, Version::new(5, 8))
    }

    #[test]
    fn a_query_has_a_text_parameters_and_more() {
        let bytes = [
            &[0xB3, 0x10, 0x88][..],
            b"RETURN 1",
            &[0xA1, 0x81, b'a', 1, 0xA1, 0x84],
            b"mode",
            &[0x81, b'r'],
        ];
        let Ok(Request::Run(run)) = read(&bytes.concat()) else { panic!("a RUN") };
        assert_eq!((run.text.as_str(), &run.parameters["a"]), ("RETURN 1", &Value::Long(1)));
        assert_eq!(run.extra.get(&Value::from("mode")), Some(&Value::from("r")));
    }

    #[test]
    fn rows_are_asked_for_by_number() {
        let pull = |n: u8| read(&[0xB1, 0x3F, 0xA1, 0x81, b'n', n]);
        assert_eq!(pull(0xFF), Ok(Request::Pull(Pull { rows: None, answer: None })));
        assert_eq!(pull(7), Ok(Request::Pull(Pull { rows: Some(7), answer: None })));
        let refused = pull(0).unwrap_err().to_string();
        assert_eq!(refused, "PULL: n must be -1 or a positive integer, not 0");
        assert!(read(&[0xB1, 0x2F, 0xA0]).unwrap_err().to_string().starts_with("DISCARD: n must be"));
    }

    #[test]
    fn messages_belong_to_versions() {
        let logon = [0xB1, 0x6A, 0xA0];
        assert!(read_as(&logon, Version::new(5, 1)).is_ok());
        let refused = read_as(&logon, Version::new(5, 0)).unwrap_err().to_string();
        assert_eq!(refused, "Bolt 5.0 has no message 0x6A");
        assert!(read_as(&[0xB1, 0x54, 1], Version::new(5, 3)).is_err());
        assert_eq!(read_as(&[0xB1, 0x54, 1], Version::new(5, 4)), Ok(Request::Telemetry));
    }

    #[test]
    fn wrong_messages_are_named() {
        let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert_eq!(message(&[0xB0, 0x10]), "RUN has 3 fields, not 0");
        assert_eq!(message(&[0xB1, 0x01, 0x01]), "HELLO: extra must be a map, not 1");
        assert_eq!(message(&[0xB0, 0x0F, 0]), "byte 2: the message goes on after its last field");
        assert_eq!(message(&[0xC0]), "byte 0: the message ends within a value");
        assert_eq!(read(&Request::RESET), Ok(Request::Reset));
    }

    #[test]
    fn replies_are_structures_in_chunks() {
        let written = |reply: &Reply| {
            let mut bytes = vec![];
            reply.write(&mut bytes);
            bytes
        };
        assert_eq!(written(&Reply::Ignored), [0, 2, 0xB0, 0x7E, 0, 0]);
        let success = Reply::Success(vec![("has_more", Value::Bool(true))]);
        let expected = [&[0, 13, 0xB1, 0x70, 0xA1, 0x88][..], b"has_more", &[0xC3, 0, 0]].concat();
        assert_eq!(written(&success), [&[0, 13][..], &expected[2..]].concat());
        let (mut scratch, mut row) = (vec![9], vec![]);
        let dialect = Dialect { element_ids: true, utc: true };
        Reply::write_record(&[Value::Int(1), Value::Null], dialect, &mut scratch, &mut row).unwrap();
        assert_eq!(row, [0, 5, 0xB1, 0x71, 0x92, 1, 0xC0, 0, 0]);
    }
}

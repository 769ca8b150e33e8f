//! Reads values.

use super::{DEPTH_LIMIT, tags};
use jiff::civil;
use jiff::tz::TimeZone;
use tidegraph_types::{Budget, Map, NoMemory, Str, Value};

/// Memory of an entry of a map besides what its key and value refer to.
const ENTRY_BYTES: usize = 2 * size_of::<Value>() + 24;

/// Why bytes are not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The bytes end within a value.
    #[error("byte {at}: the message ends within a value")]
    Ended {
        /// Where the value begins.
        at: usize,
    },
    /// A claimed length is longer than what is left.
    #[error("byte {at}: {claimed} {unit} do not fit into the {left} bytes that are left")]
    Truncated {
        /// Where the value begins.
        at: usize,
        /// The claimed length.
        claimed: usize,
        /// What it counts.
        unit: &'static str,
        /// Bytes that are left.
        left: usize,
    },
    /// A byte that begins no value.
    #[error("byte {at}: {marker:#04X} is not a marker of PackStream")]
    Marker {
        /// Where it is.
        at: usize,
        /// The byte.
        marker: u8,
    },
    /// Bytes of a text that are not UTF-8.
    #[error("byte {at}: the text is not valid UTF-8")]
    NotUtf8 {
        /// Where the text begins.
        at: usize,
    },
    /// A key that is not text.
    #[error("byte {at}: a key of a map must be text")]
    Key {
        /// Where it is.
        at: usize,
    },
    /// A key that the map has already.
    #[error("byte {at}: the map has the key {key:?} twice")]
    SecondKey {
        /// Where the second one is.
        at: usize,
        /// The key.
        key: Str,
    },
    /// A value that the engine has no type for.
    #[error("byte {at}: values of the type {name} are not supported")]
    Unsupported {
        /// Where it is.
        at: usize,
        /// Name of its type.
        name: &'static str,
    },
    /// A structure that Bolt does not have.
    #[error("byte {at}: there is no structure with the tag {tag:#04X}")]
    Structure {
        /// Where it is.
        at: usize,
        /// Its tag.
        tag: u8,
    },
    /// A structure whose fields do not fit.
    #[error("byte {at}: {problem}")]
    Field {
        /// Where the structure is.
        at: usize,
        /// What is wrong.
        problem: String,
    },
    /// Bytes after the last value.
    #[error("byte {at}: the message goes on after its last field")]
    Rest {
        /// Where they begin.
        at: usize,
    },
    /// Nesting beyond [`DEPTH_LIMIT`].
    #[error("lists, maps and structures are nested more than {DEPTH_LIMIT} deep")]
    Deep,
    /// The budget does not grant the memory that the values need.
    #[error("all queries together leave no memory for the parameters")]
    Memory,
}

impl From<NoMemory> for Error {
    fn from(_: NoMemory) -> Self {
        Self::Memory
    }
}

/// Reads values from bytes.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    budget: Budget<'a>,
}

impl<'a> Reader<'a> {
    /// Makes a reader.
    pub fn new(bytes: &'a [u8], budget: Budget<'a>) -> Self {
        Self { bytes, at: 0, depth: 0, budget }
    }

    /// Reads the head of a structure: its number of fields and its tag.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn structure(&mut self) -> Result<(usize, u8), Error> {
        let at = self.at;
        match self.array()? {
            [marker @ 0xB0..=0xBF, tag] => Ok((usize::from(marker & 0x0F), tag)),
            [marker, _] => Err(Error::Marker { at, marker }),
        }
    }

    /// Checks that there are no bytes left.
    ///
    /// # Errors
    ///
    /// [`Error::Rest`].
    pub fn end(&self) -> Result<(), Error> {
        if self.at < self.bytes.len() { Err(Error::Rest { at: self.at }) } else { Ok(()) }
    }

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub fn value(&mut self) -> Result<Value, Error> {
        let at = self.at;
        let [marker] = self.array()?;
        Ok(match marker {
            0x00..=0x7F | 0xF0..=0xFF => Value::Long(i64::from(marker.cast_signed())),
            0xC0 => Value::Null,
            0xC1 => Value::Double(f64::from_be_bytes(self.array()?)),
            0xC2 => Value::Bool(false),
            0xC3 => Value::Bool(true),
            0xC8 => Value::Long(i64::from(i8::from_be_bytes(self.array()?))),
            0xC9 => Value::Long(i64::from(i16::from_be_bytes(self.array()?))),
            0xCA => Value::Long(i64::from(i32::from_be_bytes(self.array()?))),
            0xCB => Value::Long(i64::from_be_bytes(self.array()?)),
            0xCC..=0xCE => {
                let length = self.length(1 << (marker - 0xCC))?;
                self.take(length, at, "bytes")?;
                return Err(Error::Unsupported { at, name: "bytes" });
            }
            0x80..=0x8F => self.text(usize::from(marker & 0x0F), at)?,
            0xD0..=0xD2 => {
                let length = self.length(1 << (marker - 0xD0))?;
                self.text(length, at)?
            }
            0x90..=0x9F => self.list(usize::from(marker & 0x0F), at)?,
            0xD4..=0xD6 => {
                let length = self.length(1 << (marker - 0xD4))?;
                self.list(length, at)?
            }
            0xA0..=0xAF => self.map(usize::from(marker & 0x0F), at)?,
            0xD8..=0xDA => {
                let length = self.length(1 << (marker - 0xD8))?;
                self.map(length, at)?
            }
            0xB0..=0xBF => {
                let [tag] = self.array()?;
                self.deeper(|reader| reader.fields(tag, usize::from(marker & 0x0F), at))?
            }
            _ => return Err(Error::Marker { at, marker }),
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let Some(bytes) = self.bytes[self.at..].first_chunk() else {
            return Err(Error::Ended { at: self.at });
        };
        self.at += N;
        Ok(*bytes)
    }

    /// Reads a length of 1, 2 or 4 bytes.
    fn length(&mut self, bytes: usize) -> Result<usize, Error> {
        Ok(match bytes {
            1 => usize::from(u8::from_be_bytes(self.array()?)),
            2 => usize::from(u16::from_be_bytes(self.array()?)),
            _ => u32::from_be_bytes(self.array()?) as usize,
        })
    }

    /// Checks a claimed length. Each of the things that it counts takes at least one byte.
    fn ensure(&self, claimed: usize, at: usize, unit: &'static str) -> Result<(), Error> {
        let left = self.bytes.len() - self.at;
        if claimed > left { Err(Error::Truncated { at, claimed, unit, left }) } else { Ok(()) }
    }

    fn take(&mut self, length: usize, at: usize, unit: &'static str) -> Result<&'a [u8], Error> {
        self.ensure(length, at, unit)?;
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == DEPTH_LIMIT {
            return Err(Error::Deep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn text(&mut self, length: usize, at: usize) -> Result<Value, Error> {
        let bytes = self.take(length, at, "bytes")?;
        let text = str::from_utf8(bytes).map_err(|_| Error::NotUtf8 { at })?;
        self.budget.take(length)?;
        Ok(Value::string(text))
    }

    fn list(&mut self, length: usize, at: usize) -> Result<Value, Error> {
        self.ensure(length, at, "values")?;
        self.budget.take(length * size_of::<Value>())?;
        self.deeper(|reader| {
            let mut values = Vec::with_capacity(length);
            for _ in 0..length {
                values.push(reader.value()?);
            }
            Ok(Value::list(values))
        })
    }

    fn map(&mut self, length: usize, at: usize) -> Result<Value, Error> {
        self.ensure(length, at, "entries")?;
        self.budget.take(length * ENTRY_BYTES)?;
        self.deeper(|reader| {
            let mut map = Map::with_capacity(length);
            for _ in 0..length {
                let at = reader.at;
                let Value::String(key) = reader.value()? else { return Err(Error::Key { at }) };
                let value = reader.value()?;
                if map.insert(Value::String(key.clone()), value).is_some() {
                    return Err(Error::SecondKey { at, key });
                }
            }
            Ok(Value::map(map))
        })
    }

    fn fields(&mut self, tag: u8, count: usize, at: usize) -> Result<Value, Error> {
        use tags::{DATE_TIME, DATE_TIME_ZONE, LEGACY_DATE_TIME, LEGACY_DATE_TIME_ZONE};
        let Some(name) = tags::name(tag) else { return Err(Error::Structure { at, tag }) };
        let is_point_in_time =
            matches!(tag, DATE_TIME | DATE_TIME_ZONE | LEGACY_DATE_TIME | LEGACY_DATE_TIME_ZONE);
        if !is_point_in_time {
            return Err(Error::Unsupported { at, name });
        }
        let wrong = |problem: String| Error::Field { at, problem };
        if count != 3 {
            return Err(wrong(format!("a {name} has 3 fields, not {count}")));
        }
        let (seconds, nanos, zone) = (self.value()?, self.value()?, self.value()?);
        let (Value::Long(seconds), Value::Long(nanos @ 0..=999_999_999)) = (&seconds, &nanos) else {
            let (seconds, nanos) = (seconds.for_message(), nanos.for_message());
            return Err(wrong(format!("{seconds} seconds and {nanos} nanoseconds are not a point in time")));
        };
        let time = jiff::Timestamp::new(*seconds, *nanos as i32).map_err(|error| wrong(error.to_string()))?;
        let at_zone = |zone: &TimeZone| {
            let local: civil::DateTime = TimeZone::UTC.to_datetime(time);
            zone.to_timestamp(local).map_err(|error| wrong(error.to_string()))
        };
        let is_local = matches!(tag, LEGACY_DATE_TIME | LEGACY_DATE_TIME_ZONE);
        Ok(Value::DateTime(match zone {
            Value::Long(offset) if matches!(tag, DATE_TIME | LEGACY_DATE_TIME) => {
                let seconds = i32::try_from(offset).ok();
                let offset = seconds.and_then(|seconds| jiff::tz::Offset::from_seconds(seconds).ok());
                let offset = offset.ok_or_else(|| wrong("the offset is beyond a day".to_owned()))?;
                if is_local { at_zone(&offset.to_time_zone())? } else { time }
            }
            Value::String(name) if matches!(tag, DATE_TIME_ZONE | LEGACY_DATE_TIME_ZONE) => {
                let zone = TimeZone::get(&name)
                    .map_err(|_| wrong(format!("{name:?} is not the name of a time zone")))?;
                if is_local { at_zone(&zone)? } else { time }
            }
            other => return Err(wrong(format!("{} is not a zone of a {name}", other.for_message()))),
        }))
    }
}

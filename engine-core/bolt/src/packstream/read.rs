//! Reads values.

use super::{DEPTH_LIMIT, tags};
use jiff::tz::TimeZone;
use std::sync::Arc;
use tidegraph_types::point::Crs;
use tidegraph_types::temporal::{self, Duration, OffsetTime};
use tidegraph_types::{Budget, Map, NoMemory, Point, Str, Temporal, Value};

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
        let Some(name) = tags::name(tag) else { return Err(Error::Structure { at, tag }) };
        let Some(expected) = tags::fields(tag) else { return Err(Error::Unsupported { at, name }) };
        let wrong = |problem: String| Error::Field { at, problem };
        if count != expected {
            let plural = if expected == 1 { "" } else { "s" };
            return Err(wrong(format!("a {name} has {expected} field{plural}, not {count}")));
        }
        let mut fields = [Value::Null, Value::Null, Value::Null, Value::Null];
        for field in &mut fields[..count] {
            *field = self.value()?;
        }
        structure(tag, name, &fields[..count]).map_err(wrong)
    }
}

/// Makes the value of a structure. The error says which field is wrong.
fn structure(tag: u8, name: &'static str, fields: &[Value]) -> Result<Value, String> {
    let integer = |index: usize| match fields.get(index) {
        Some(Value::Long(number)) => Ok(*number),
        other => Err(format!("{} is not an integer of a {name}", shown(other))),
    };
    let day = temporal::SECONDS_OF_DAY * temporal::NANOS_OF_SECOND;
    let time = || match integer(0)? {
        nanos if (0..day).contains(&nanos) => Ok(temporal::time_of_nanos(i128::from(nanos))),
        nanos => Err(format!("{nanos} nanoseconds are not a time of day")),
    };
    let offset = |seconds: i64| temporal::offset_of_seconds(seconds).map_err(|problem| problem.0);
    let local = || {
        let (seconds, nanos) = (integer(0)?, integer(1)?);
        i32::try_from(nanos)
            .ok()
            .and_then(|nanos| temporal::local_of_epoch_seconds(seconds, nanos))
            .ok_or_else(|| format!("{seconds} seconds and {nanos} nanoseconds are not a point in time"))
    };
    Ok(match tag {
        tags::DATE => {
            let days = integer(0)?;
            let date = temporal::date_of_epoch_days(days);
            Value::Temporal(Temporal::Date(
                date.ok_or_else(|| format!("{days} days are not in the years -9999 to 9999"))?,
            ))
        }
        tags::LOCAL_TIME => Value::Temporal(Temporal::LocalTime(time()?)),
        tags::TIME => {
            Value::Temporal(Temporal::Time(OffsetTime { time: time()?, offset: offset(integer(1)?)? }))
        }
        tags::LOCAL_DATE_TIME => Value::Temporal(Temporal::LocalDateTime(local()?)),
        tags::DURATION => {
            let nanos = i128::from(integer(3)?);
            let duration = Duration::new(integer(0)?, integer(1)?, integer(2)?, nanos);
            let duration = duration.ok_or_else(|| "the duration is too long".to_owned())?;
            Value::Temporal(Temporal::Duration(Arc::new(duration)))
        }
        tags::POINT_2D | tags::POINT_3D => {
            let srid = integer(0)?;
            let crs = Crs::of_srid(srid).ok_or_else(|| format!("{srid} is not a known SRID"))?;
            let mut coordinates = [0.0; 3];
            let given = fields.len() - 1;
            for (index, coordinate) in coordinates[..given].iter_mut().enumerate() {
                let field = &fields[index + 1];
                let number = field.as_f64();
                *coordinate = number.ok_or_else(|| format!("{} is not a coordinate", shown(Some(field))))?;
            }
            Value::Point(Arc::new(Point::new(crs, &coordinates[..given])?))
        }
        // What remains are points in time: of UTC, or of a local time before Bolt 5.
        _ => {
            let local = local()?;
            let zone = match &fields[2] {
                Value::Long(seconds) if matches!(tag, tags::DATE_TIME | tags::LEGACY_DATE_TIME) => {
                    TimeZone::fixed(offset(*seconds)?)
                }
                Value::String(zone) if matches!(tag, tags::DATE_TIME_ZONE | tags::LEGACY_DATE_TIME_ZONE) => {
                    temporal::parse_zone(zone).map_err(|problem| problem.0)?
                }
                other => return Err(format!("{} is not a zone of a {name}", shown(Some(other)))),
            };
            let is_local = matches!(tag, tags::LEGACY_DATE_TIME | tags::LEGACY_DATE_TIME_ZONE);
            let zoned = if is_local {
                temporal::zoned_from_local(local, &zone).map_err(|problem| problem.0)?
            } else {
                let at = temporal::zoned_from_local(local, &TimeZone::UTC).map_err(|problem| problem.0)?;
                at.with_time_zone(zone)
            };
            temporal::zoned(zoned)
        }
    })
}

fn shown(field: Option<&Value>) -> String {
    field.map_or_else(|| "nothing".to_owned(), Value::for_message)
}

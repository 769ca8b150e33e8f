//! Reads arguments.

use super::code;
use crate::argument::{Argument, Bytecode, ConstantOwner, Instruction, Predicate};
use crate::script::class_name;
use crate::{Budget, DEPTH_LIMIT};
use jiff::Timestamp;
use jiff::civil;
use jiff::tz::Offset;
use tidegraph_types::{Big, BigDecimal, BigInt, NoMemory, Str, Value};
use uuid::Uuid;

/// Bit of a list's flag that says that each item has a count.
const BULKED: u8 = 0x02;
const NANOS_A_SECOND: i64 = 1_000_000_000;

/// Why bytes are not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The bytes end within a value.
    #[error("byte {at}: the message ends within a value")]
    Ended {
        /// Where the value begins.
        at: usize,
    },
    /// A claimed length that does not fit.
    #[error("byte {at}: {claimed} {unit} do not fit into the {left} bytes that are left")]
    Length {
        /// Where the length is.
        at: usize,
        /// The claimed length.
        claimed: i32,
        /// What it counts.
        unit: &'static str,
        /// Bytes that are left.
        left: usize,
    },
    /// A byte that is no code of a type.
    #[error("byte {at}: {code:#04X} is not a type of GraphBinary")]
    Code {
        /// Where it is.
        at: usize,
        /// The byte.
        code: u8,
    },
    /// A byte that is no flag of a value.
    #[error("byte {at}: {flag:#04X} does not say whether there is a value")]
    Flag {
        /// Where it is.
        at: usize,
        /// The byte.
        flag: u8,
    },
    /// Bytes of a text that are not UTF-8.
    #[error("byte {at}: the text is not valid UTF-8")]
    NotUtf8 {
        /// Where the text begins.
        at: usize,
    },
    /// A type that the engine has no values for.
    #[error("byte {at}: values of the type {name} are not supported")]
    Unsupported {
        /// Where it is.
        at: usize,
        /// Name of the type.
        name: &'static str,
    },
    /// A value that does not fit its place.
    #[error("byte {at}: {problem}")]
    Wrong {
        /// Where it is.
        at: usize,
        /// What is wrong.
        problem: String,
    },
    /// Bytes after the last value.
    #[error("byte {at}: the message goes on after its last value")]
    Rest {
        /// Where they begin.
        at: usize,
    },
    /// Nesting beyond the limit.
    #[error("values are nested more than {DEPTH_LIMIT} deep")]
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
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    budget: Budget<'a>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], budget: Budget<'a>) -> Self {
        Self { bytes, at: 0, depth: 0, budget }
    }

    /// Checks that there are no bytes left.
    pub(crate) fn end(&self) -> Result<(), Error> {
        if self.at < self.bytes.len() { Err(Error::Rest { at: self.at }) } else { Ok(()) }
    }

    /// Reads a value with its type.
    pub(crate) fn argument(&mut self) -> Result<Argument, Error> {
        let at = self.at;
        let [code, flag] = self.array()?;
        match (code, flag) {
            (code::NULL, 0x01) => return Ok(Argument::Value(Value::Null)),
            (code::LIST | code::SET, 0x00 | BULKED) | (_, 0x00) => {}
            (_, 0x01) => {
                return if is_known(code) {
                    Ok(Argument::Value(Value::Null))
                } else {
                    Err(Error::Code { at, code })
                };
            }
            _ => return Err(Error::Flag { at: at + 1, flag }),
        }
        self.deeper(|reader| reader.body(code, flag, at))
    }

    fn body(&mut self, code: u8, flag: u8, at: usize) -> Result<Argument, Error> {
        let wrong = |problem: String| Error::Wrong { at, problem };
        Ok(Argument::Value(match code {
            code::INT => Value::Int(i32::from_be_bytes(self.array()?)),
            code::LONG => Value::Long(i64::from_be_bytes(self.array()?)),
            code::SHORT => Value::Short(i16::from_be_bytes(self.array()?)),
            code::BYTE => Value::Byte(i8::from_be_bytes(self.array()?)),
            code::DOUBLE => Value::Double(f64::from_be_bytes(self.array()?)),
            code::FLOAT => Value::Float(f32::from_be_bytes(self.array()?)),
            code::STRING => Value::String(self.text()?),
            code::BOOLEAN => match self.array()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                [other] => return Err(wrong(format!("{other:#04X} is not a boolean"))),
            },
            code::DATE | code::TIMESTAMP => {
                let ms = i64::from_be_bytes(self.array()?);
                let time = Timestamp::from_millisecond(ms);
                Value::DateTime(time.map_err(|_| wrong(format!("{ms} milliseconds are not a date")))?)
            }
            code::INSTANT | code::OFFSET_DATE_TIME | code::ZONED_DATE_TIME => self.point_in_time(code, at)?,
            code::UUID => Value::Uuid(Uuid::from_bytes(self.array()?)),
            code::BIG_INTEGER => {
                let digits = self.integer()?;
                Big::integer(digits)
                    .ok_or(Error::Unsupported { at, name: "BigInteger of more than 4,096 bits" })?
            }
            code::BIG_DECIMAL => {
                let scale = i32::from_be_bytes(self.array()?);
                let number = BigDecimal::new(self.integer()?, i64::from(scale));
                let name = "BigDecimal of more than 4,096 bits or 1,300 places";
                Big::decimal(number).ok_or(Error::Unsupported { at, name })?
            }
            code::CHAR => self.character(at)?,
            code::LIST => return Ok(Argument::List(self.items(flag == BULKED)?)),
            code::SET => return Ok(Argument::Set(self.items(flag == BULKED)?)),
            code::MAP => return Ok(Argument::Map(self.entries()?)),
            code::CLASS => return Ok(Argument::Class(class_name(&self.text()?))),
            code::BINDING => {
                let name = self.text()?;
                return Ok(Argument::Binding(name, Box::new(self.argument()?)));
            }
            code::BYTECODE => return Ok(Argument::Bytecode(self.bytecode()?)),
            code::PREDICATE | code::TEXT_PREDICATE => {
                let is_of_text = code == code::TEXT_PREDICATE;
                let name = self.text()?;
                let operands = self.items(false)?;
                return Ok(Argument::Predicate(Predicate { is_of_text, name, operands }));
            }
            code::STRATEGY => {
                let name = class_name(&self.text()?);
                return Ok(Argument::Strategy(name, self.entries()?));
            }
            code::LAMBDA => {
                self.text()?;
                self.text()?;
                let _: [u8; 4] = self.array()?;
                return Ok(Argument::Lambda);
            }
            code::VERTEX | code::EDGE | code::VERTEX_PROPERTY => return self.element(code),
            code::PROPERTY => {
                self.text()?;
                let value = self.argument()?;
                self.argument()?;
                return Ok(value);
            }
            _ => match (ConstantOwner::of_code(code), code::unsupported(code)) {
                (Some(owner), _) => {
                    let name = self.argument()?;
                    let name =
                        name.as_text().ok_or_else(|| wrong(format!("{} is not a name", name.describe())))?;
                    return Ok(Argument::Constant(owner, name.clone()));
                }
                (None, Some(name)) => return Err(Error::Unsupported { at, name }),
                (None, None) => return Err(Error::Code { at, code }),
            },
        }))
    }

    /// Reads entries without a type: a number of them, keys and values.
    pub(crate) fn entries(&mut self) -> Result<Vec<(Argument, Argument)>, Error> {
        let count = self.count("entries")?;
        self.budget.take(count * size_of::<(Argument, Argument)>())?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            entries.push((self.argument()?, self.argument()?));
        }
        Ok(entries)
    }

    /// Reads a text without a type.
    pub(crate) fn text(&mut self) -> Result<Str, Error> {
        let at = self.at;
        let length = self.count("bytes")?;
        let bytes = &self.bytes[self.at..self.at + length];
        self.at += length;
        let text = str::from_utf8(bytes).map_err(|_| Error::NotUtf8 { at })?;
        self.budget.take(length)?;
        Ok(Str::from(text))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let Some(bytes) = self.bytes[self.at..].first_chunk() else {
            return Err(Error::Ended { at: self.at });
        };
        self.at += N;
        Ok(*bytes)
    }

    /// Reads a number of things, each of which takes at least one byte.
    fn count(&mut self, unit: &'static str) -> Result<usize, Error> {
        let at = self.at;
        let claimed = i32::from_be_bytes(self.array()?);
        let left = self.bytes.len() - self.at;
        let count = usize::try_from(claimed).ok().filter(|count| *count <= left);
        count.ok_or(Error::Length { at, claimed, unit, left })
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

    fn items(&mut self, are_bulked: bool) -> Result<Vec<Argument>, Error> {
        let count = self.count("values")?;
        self.budget.take(count * size_of::<Argument>())?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            let at = self.at;
            items.push(self.argument()?);
            if are_bulked && i64::from_be_bytes(self.array()?) != 1 {
                return Err(Error::Unsupported { at, name: "list with counts" });
            }
        }
        Ok(items)
    }

    fn bytecode(&mut self) -> Result<Bytecode, Error> {
        let steps = self.instructions()?;
        Ok(Bytecode { steps, sources: self.instructions()? })
    }

    fn instructions(&mut self) -> Result<Vec<Instruction>, Error> {
        let count = self.count("instructions")?;
        self.budget.take(count * size_of::<Instruction>())?;
        let mut instructions = Vec::with_capacity(count);
        for _ in 0..count {
            instructions.push(Instruction { name: self.text()?, arguments: self.items(false)? });
        }
        Ok(instructions)
    }

    /// Reads an element, of which only the id matters.
    fn element(&mut self, code: u8) -> Result<Argument, Error> {
        let id = Box::new(self.argument()?);
        self.text()?;
        if code == code::EDGE {
            for _ in 0..2 {
                self.argument()?;
                self.text()?;
            }
        }
        let others = if code == code::VERTEX { 1 } else { 2 + usize::from(code == code::VERTEX_PROPERTY) };
        for _ in 0..others {
            self.argument()?;
        }
        Ok(if code == code::EDGE { Argument::Edge(id) } else { Argument::Element(id) })
    }

    fn character(&mut self, at: usize) -> Result<Value, Error> {
        let [first] = self.array()?;
        let more = match first {
            0xC0..=0xDF => 1,
            0xE0..=0xEF => 2,
            0xF0..=0xF7 => 3,
            _ => 0,
        };
        let mut bytes = vec![first];
        for _ in 0..more {
            bytes.extend(self.array::<1>()?);
        }
        let text = str::from_utf8(&bytes).map_err(|_| Error::NotUtf8 { at })?;
        Ok(Value::string(text))
    }

    /// Reads an integer of any length.
    fn integer(&mut self) -> Result<BigInt, Error> {
        let length = self.count("bytes")?;
        let bytes = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(BigInt::from_signed_bytes_be(bytes))
    }

    fn point_in_time(&mut self, code: u8, at: usize) -> Result<Value, Error> {
        let wrong = || Error::Wrong { at, problem: "the value is not a point in time".to_owned() };
        if code == code::INSTANT {
            let (seconds, nanos) = (i64::from_be_bytes(self.array()?), i32::from_be_bytes(self.array()?));
            return Timestamp::new(seconds, nanos).map(Value::DateTime).map_err(|_| wrong());
        }
        let year = i16::try_from(i32::from_be_bytes(self.array()?)).map_err(|_| wrong())?;
        let [month, day] = self.array::<2>()?.map(u8::cast_signed);
        let nanos = i64::from_be_bytes(self.array()?);
        let offset = Offset::from_seconds(i32::from_be_bytes(self.array()?)).map_err(|_| wrong())?;
        let midnight = civil::Date::new(year, month, day).map_err(|_| wrong())?.at(0, 0, 0, 0);
        let time = jiff::SignedDuration::new(
            nanos.div_euclid(NANOS_A_SECOND),
            i32::try_from(nanos.rem_euclid(NANOS_A_SECOND)).map_err(|_| wrong())?,
        );
        let local = midnight.checked_add(time).map_err(|_| wrong())?;
        offset.to_timestamp(local).map(Value::DateTime).map_err(|_| wrong())
    }
}

/// Whether a type has this code.
fn is_known(code: u8) -> bool {
    let is_read = matches!(
        code,
        code::INT..=code::PROPERTY
            | code::VERTEX..=code::VERTEX_PROPERTY
            | code::BINDING..=code::BYTECODE
            | code::LAMBDA..=code::PREDICATE
            | code::BYTE
            | code::SHORT..=code::STRATEGY
            | code::BIG_DECIMAL
            | code::BIG_INTEGER
            | code::CHAR
            | code::INSTANT
            | code::OFFSET_DATE_TIME
            | code::ZONED_DATE_TIME
    );
    is_read || ConstantOwner::of_code(code).is_some() || code::unsupported(code).is_some()
}

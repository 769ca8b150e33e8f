//! Reads arguments.

use crate::argument::{Argument, Bytecode, ConstantOwner, Instruction, Predicate};
use crate::script::class_name;
use jiff::Timestamp;
use serde_json::Value as Json;
use tidegraph_types::{Big, Str, Value};

/// An object of JSON.
pub(crate) type Object = serde_json::Map<String, Json>;

/// Why a message is not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Text that is not JSON.
    #[error("the message is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A type that GraphSON does not have, or the engine has no values for.
    #[error("values of the type {0:?} are not supported")]
    Unsupported(String),
    /// A value that does not fit its type.
    #[error("{found} is not a value of the type {tag:?}")]
    Wrong {
        /// The type.
        tag: String,
        /// The value, as far as a message shows it.
        found: String,
    },
}

const SHOWN_CHARS: usize = 60;

fn wrong(tag: &str, found: &Json) -> Error {
    let mut found = found.to_string();
    if let Some((end, _)) = found.char_indices().nth(SHOWN_CHARS) {
        found.truncate(end);
        found.push('…');
    }
    Error::Wrong { tag: tag.to_owned(), found }
}

/// Reads a value with or without a type. The parser of JSON limits how deep values nest.
pub(crate) fn argument(json: &Json) -> Result<Argument, Error> {
    Ok(Argument::Value(match json {
        Json::Null => Value::Null,
        Json::Bool(v) => Value::Bool(*v),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => i32::try_from(int).map_or(Value::Long(int), Value::Int),
            (None, Some(float)) if !number.is_u64() => Value::Double(float),
            _ => return Err(wrong("g:Int64", json)),
        },
        Json::String(text) => Value::string(text.as_str()),
        Json::Array(all) => return Ok(Argument::List(items(all)?)),
        Json::Object(entries) => {
            return match (entries.get("@type"), entries.get("@value")) {
                (Some(Json::String(tag)), value) => typed(tag, value.unwrap_or(&Json::Null)),
                _ => Ok(Argument::Map(entries_of(entries)?)),
            };
        }
    }))
}

/// Reads a value of a file in GraphSON, with or without a type.
///
/// # Errors
///
/// The type that is not known, or the value that does not fit its type. An element, and a part of a traversal, is no
/// value.
pub fn graphson_value(json: &Json) -> Result<Value, Error> {
    let argument = argument(json)?;
    if let Some(what) = part(&argument) {
        return Err(Error::Unsupported(what.to_owned()));
    }
    argument.to_value().map_err(|what| Error::Unsupported(what.to_owned()))
}

/// Names the first element in an argument, whose id would otherwise stand for it.
fn part(argument: &Argument) -> Option<&'static str> {
    match argument {
        Argument::Element(_) => Some("g:Vertex"),
        Argument::Edge(_) => Some("g:Edge"),
        Argument::Binding(..) => Some("g:Binding"),
        Argument::List(items) | Argument::Set(items) => items.iter().find_map(part),
        Argument::Map(entries) => entries.iter().find_map(|(key, value)| part(key).or_else(|| part(value))),
        _ => None,
    }
}

fn items(all: &[Json]) -> Result<Vec<Argument>, Error> {
    all.iter().map(argument).collect()
}

fn entries_of(entries: &Object) -> Result<Vec<(Argument, Argument)>, Error> {
    let entry =
        |(key, value): (&String, &Json)| Ok((Argument::Value(Value::string(key.as_str())), argument(value)?));
    entries.iter().map(entry).collect()
}

/// Returns the text of a number; `None` if it is a JSON number with more digits than survive in a double.
fn number_text(value: &Json) -> Option<String> {
    const KEPT_DIGITS: usize = 15;
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => {
            let text = number.to_string();
            let digits =
                text.bytes().take_while(|b| !b.eq_ignore_ascii_case(&b'e')).filter(u8::is_ascii_digit);
            (!number.is_f64() || digits.count() <= KEPT_DIGITS).then_some(text)
        }
        _ => None,
    }
}

fn typed(tag: &str, value: &Json) -> Result<Argument, Error> {
    let wrong = || wrong(tag, value);
    let text = || value.as_str().ok_or_else(wrong);
    let int = || value.as_i64().ok_or_else(wrong);
    let ms = || {
        let time = Timestamp::from_millisecond(int()?);
        time.map(Value::DateTime).map_err(|_| wrong())
    };
    let field = |name: &str| value.get(name).ok_or_else(wrong);
    Ok(Argument::Value(match tag {
        "g:Int32" => Value::Int(i32::try_from(int()?).map_err(|_| wrong())?),
        "g:Int64" => Value::Long(int()?),
        "gx:Int16" => Value::Short(i16::try_from(int()?).map_err(|_| wrong())?),
        "gx:Byte" => Value::Byte(i8::try_from(int()?).map_err(|_| wrong())?),
        // More digits than 64 bits hold come as text: a number has been rounded when it arrives here.
        "gx:BigInteger" => Big::parse_integer(&number_text(value).ok_or_else(wrong)?).ok_or_else(wrong)?,
        "gx:BigDecimal" => Big::parse_decimal(&number_text(value).ok_or_else(wrong)?).ok_or_else(wrong)?,
        "g:Double" => Value::Double(float(value).ok_or_else(wrong)?),
        "g:Float" => Value::Float(float(value).ok_or_else(wrong)? as f32),
        "g:Date" | "g:Timestamp" => ms()?,
        "gx:Instant" | "gx:OffsetDateTime" | "gx:ZonedDateTime" => {
            Value::DateTime(text()?.parse().map_err(|_| wrong())?)
        }
        "g:UUID" => Value::Uuid(text()?.parse().map_err(|_| wrong())?),
        "gx:Char" => Value::string(text()?),
        "g:List" => return Ok(Argument::List(items(value.as_array().ok_or_else(wrong)?)?)),
        "g:Set" => return Ok(Argument::Set(items(value.as_array().ok_or_else(wrong)?)?)),
        "g:Map" => {
            let (pairs, rest) = value.as_array().ok_or_else(wrong)?.as_chunks::<2>();
            if !rest.is_empty() {
                return Err(wrong());
            }
            let pair = |[key, value]: &[Json; 2]| Ok((argument(key)?, argument(value)?));
            return Ok(Argument::Map(pairs.iter().map(pair).collect::<Result<_, Error>>()?));
        }
        "g:Bytecode" => {
            let part = |name| match value.get(name) {
                None | Some(Json::Null) => Ok(vec![]),
                Some(part) => instructions(part).ok_or_else(wrong)?,
            };
            return Ok(Argument::Bytecode(Bytecode { sources: part("source")?, steps: part("step")? }));
        }
        "g:P" | "g:TextP" => {
            let name = field("predicate")?.as_str().ok_or_else(wrong)?;
            let operands = match argument(field("value")?)? {
                // Those that take several operands send them as a list.
                Argument::List(operands) if name != "within" && name != "without" => operands,
                operand => vec![operand],
            };
            let is_of_text = tag == "g:TextP";
            return Ok(Argument::Predicate(Predicate { is_of_text, name: name.into(), operands }));
        }
        "g:Binding" => {
            let name = field("key")?.as_str().ok_or_else(wrong)?;
            return Ok(Argument::Binding(name.into(), Box::new(argument(field("value")?)?)));
        }
        "g:Vertex" | "g:VertexProperty" => {
            return Ok(Argument::Element(Box::new(argument(field("id")?)?)));
        }
        "g:Edge" => return Ok(Argument::Edge(Box::new(argument(field("id")?)?))),
        "g:Property" => return argument(field("value")?),
        "g:Class" => return Ok(Argument::Class(class_name(text()?))),
        "g:Lambda" => return Ok(Argument::Lambda),
        _ if tag.ends_with("Strategy") => {
            // Some drivers put the configuration into a field of its own.
            let configuration = value.get("conf").unwrap_or(value);
            let entries = match argument(configuration)? {
                Argument::Map(entries) => entries,
                _ => vec![],
            };
            return Ok(Argument::Strategy(class_name(tag.rsplit(':').next().unwrap_or(tag)), entries));
        }
        _ => match ConstantOwner::of_tag(tag) {
            Some(owner) => return Ok(Argument::Constant(owner, Str::from(text()?))),
            None => return Err(Error::Unsupported(tag.to_owned())),
        },
    }))
}

fn float(value: &Json) -> Option<f64> {
    match value.as_str() {
        None => value.as_f64(),
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(_) => None,
    }
}

/// Reads `[[name, argument…]…]`; `None` if it has another form.
fn instructions(json: &Json) -> Option<Result<Vec<Instruction>, Error>> {
    let mut all = Vec::new();
    for instruction in json.as_array()? {
        let (name, arguments) = instruction.as_array()?.split_first()?;
        let name = Str::from(name.as_str()?);
        match items(arguments) {
            Ok(arguments) => all.push(Instruction { name, arguments }),
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(all))
}

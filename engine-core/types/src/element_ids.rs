//! How the ids of a graph's elements are read: as strings, or as strings, integers and UUIDs.
//!
//! Storage, log, loads and openCypher know ids as text only. In a graph whose ids have types, the text says the type,
//! and each text is exactly one id:
//!
//! | text | id |
//! |---|---|
//! | an integer of 64 bits in decimal, without a plus sign and without leading zeros | the integer |
//! | 32 hexadecimal digits in lower case, in groups of 8, 4, 4, 4 and 12 | the UUID |
//! | `string:` once or several times, then one of the two forms above | the string without the first `string:` |
//! | any other text | the string |
//!
//! Integers of all widths are one type of id, because both languages take equal numbers for the same value, and because a
//! look-up by id must ask for one text.

use crate::{Cardinality, Str, Value};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Stands before the text of a string that would otherwise be read as an integer or a UUID.
const ESCAPE: &str = "string:";

/// The types that the ids of a graph have in Gremlin. It is fixed when the graph is made.
///
/// ```
/// use tidegraph_types::{ElementIds, Value};
///
/// let ids = ElementIds::Typed;
/// assert_eq!(ids.text(&Value::Int(1)).as_deref(), Some("1"));
/// assert_eq!(ids.text(&"1".into()).as_deref(), Some("string:1"));
/// assert_eq!(ids.value(&"1".into()), Value::Int(1));
/// assert_eq!(ids.value(&"string:1".into()), "1".into());
/// assert_eq!(ElementIds::Strings.value(&"1".into()), "1".into());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementIds {
    /// Every id is a string; a number or a UUID stands for its text.
    #[default]
    Strings,
    /// Ids are strings, integers and UUIDs. An integer is an `Integer` if 32 bits hold it, and otherwise a `Long`.
    Typed,
    /// The same as `Typed`, but every integer is a `Long`.
    Longs,
}

impl ElementIds {
    /// Whether ids have types.
    #[must_use]
    pub fn have_types(self) -> bool {
        self != Self::Strings
    }

    /// Returns the id that a text stands for.
    #[must_use]
    pub fn value(self, text: &Str) -> Value {
        match self.read(text) {
            Read::String(0) => Value::String(text.clone()),
            Read::String(start) => Value::string(&text[start..]),
            Read::Integer(id) => match (self, i32::try_from(id)) {
                (Self::Typed, Ok(short)) => Value::Int(short),
                _ => Value::Long(id),
            },
            Read::Uuid(id) => Value::Uuid(id),
        }
    }

    /// Returns the text of an id as people write it: `v[1]` has the id `1`, whether that is an integer or a string.
    #[must_use]
    pub fn shown(self, text: &str) -> &str {
        match self.read(text) {
            Read::String(start) => &text[start..],
            Read::Integer(_) | Read::Uuid(_) => text,
        }
    }

    /// Returns the text of an id; `None` for a value that cannot be one.
    #[must_use]
    pub fn text(self, id: &Value) -> Option<Str> {
        match id {
            Value::String(text) if self.have_types() && (is_typed(text) || is_escaped(text)) => {
                Some(Str::from(format!("{ESCAPE}{text}")))
            }
            Value::String(text) => Some(text.clone()),
            Value::Uuid(uuid) => Some(Str::from(uuid.to_string())),
            Value::Big(number) => match number.as_i64() {
                Some(int) => Some(Str::from(int.to_string())),
                None => (self == Self::Strings).then(|| Str::from(number.to_string())),
            },
            other => match (other.as_i64(), other.as_f64()) {
                (Some(int), _) => Some(Str::from(int.to_string())),
                (None, Some(float)) if self == Self::Strings => Some(Str::from(float.to_string())),
                _ => None,
            },
        }
    }

    fn read(self, text: &str) -> Read {
        if self == Self::Strings {
            return Read::String(0);
        }
        if let Some(id) = integer(text) {
            return Read::Integer(id);
        }
        if let Some(id) = uuid(text) {
            return Read::Uuid(id);
        }
        Read::String(if is_escaped(text) { ESCAPE.len() } else { 0 })
    }
}

/// The settings of a graph that decide what Gremlin means by a text. They are fixed when the graph is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GremlinSettings {
    /// The types of ids.
    pub ids: ElementIds,
    /// The cardinality of a vertex property that is written without one.
    pub default_cardinality: Cardinality,
}

impl Default for GremlinSettings {
    /// Returns those of Neptune.
    fn default() -> Self {
        Self { ids: ElementIds::Strings, default_cardinality: Cardinality::Set }
    }
}

impl GremlinSettings {
    /// Whether these are the settings of a graph that was made without any.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What a text stands for.
enum Read {
    /// The string from this byte on.
    String(usize),
    Integer(i64),
    Uuid(Uuid),
}

fn is_typed(text: &str) -> bool {
    integer(text).is_some() || uuid(text).is_some()
}

/// Whether a text is that of an integer or a UUID behind one escape or several.
fn is_escaped(text: &str) -> bool {
    let Some(mut rest) = text.strip_prefix(ESCAPE) else { return false };
    while let Some(after) = rest.strip_prefix(ESCAPE) {
        rest = after;
    }
    is_typed(rest)
}

/// Reads an integer in its only form.
fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.len() < 19 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if plain { text.parse().ok() } else { None }
}

/// Reads a UUID in its only form.
fn uuid(text: &str) -> Option<Uuid> {
    let plain = text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
    if plain { Uuid::try_parse(text).ok() } else { None }
}

impl FromStr for ElementIds {
    type Err = UnknownElementIds;

    fn from_str(text: &str) -> Result<Self, UnknownElementIds> {
        match text {
            "strings" => Ok(Self::Strings),
            "typed" => Ok(Self::Typed),
            "longs" => Ok(Self::Longs),
            _ => Err(UnknownElementIds(text.to_owned())),
        }
    }
}

impl fmt::Display for ElementIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strings => "strings",
            Self::Typed => "typed",
            Self::Longs => "longs",
        })
    }
}

/// A text that names no types of ids.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownElementIds(String);

impl fmt::Display for UnknownElementIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ids cannot be {:?}: use strings, typed or longs", self.0)
    }
}

impl std::error::Error for UnknownElementIds {}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "5b30bd14-8ae7-4b5d-9f7a-0123456789ab";

    #[test]
    fn each_text_is_one_id_and_each_id_one_text() {
        let uuid = Value::Uuid(Uuid::try_parse(UUID).expect("a UUID"));
        let escaped = format!("string:{UUID}");
        let twice = format!("string:{escaped}");
        let pairs = [
            ("1", Value::Int(1)),
            ("0", Value::Int(0)),
            ("-7", Value::Int(-7)),
            ("2147483647", Value::Int(i32::MAX)),
            ("2147483648", Value::Long(2_147_483_648)),
            ("-9223372036854775808", Value::Long(i64::MIN)),
            ("9223372036854775808", "9223372036854775808".into()),
            (UUID, uuid),
            ("string:1", "1".into()),
            ("string:string:1", "string:1".into()),
            (&escaped, UUID.into()),
            (&twice, escaped.as_str().into()),
            ("", "".into()),
            ("ann", "ann".into()),
            ("string:", "string:".into()),
            ("string:ann", "string:ann".into()),
            ("-0", "-0".into()),
            ("007", "007".into()),
            ("+1", "+1".into()),
            ("1.0", "1.0".into()),
            ("-", "-".into()),
            ("5B30BD14-8AE7-4B5D-9F7A-0123456789AB", "5B30BD14-8AE7-4B5D-9F7A-0123456789AB".into()),
        ];
        for (text, id) in pairs {
            let found = ElementIds::Typed.value(&text.into());
            assert_eq!((&found, found.type_name()), (&id, id.type_name()), "{text}");
            assert_eq!(ElementIds::Typed.text(&id).as_deref(), Some(text), "{id:?}");
            assert_eq!(ElementIds::Strings.value(&text.into()), text.into());
            assert_eq!(ElementIds::Strings.text(&text.into()).as_deref(), Some(text));
        }
    }

    #[test]
    fn integers_of_all_widths_are_one_type_of_id() {
        for id in [Value::Byte(1), Value::Short(1), Value::Int(1), Value::Long(1)] {
            assert_eq!(ElementIds::Typed.text(&id).as_deref(), Some("1"));
        }
        assert!(matches!(ElementIds::Longs.value(&"1".into()), Value::Long(1)));
        assert!(matches!(ElementIds::Typed.value(&"1".into()), Value::Int(1)));
    }

    #[test]
    fn other_values_are_no_ids() {
        for value in [Value::Bool(true), Value::Double(1.5), Value::Null, Value::list(vec![1.into()])] {
            assert_eq!(ElementIds::Typed.text(&value), None, "{value:?}");
        }
        assert_eq!(ElementIds::Strings.text(&Value::Double(1.5)).as_deref(), Some("1.5"));
        assert_eq!(ElementIds::Strings.text(&Value::Bool(true)), None);
    }

    #[test]
    fn people_see_no_escapes() {
        assert_eq!(ElementIds::Typed.shown("string:1"), "1");
        assert_eq!(ElementIds::Typed.shown("string:ann"), "string:ann");
        assert_eq!(ElementIds::Strings.shown("string:1"), "string:1");
    }

    #[test]
    fn names_round_trip() {
        for ids in [ElementIds::Strings, ElementIds::Typed, ElementIds::Longs] {
            assert_eq!(ids.to_string().parse(), Ok(ids));
        }
        let refused = "uuids".parse::<ElementIds>().map_err(|error| error.to_string());
        assert_eq!(refused, Err("ids cannot be \"uuids\": use strings, typed or longs".to_owned()));
    }
}

//! Vertices, edges and their properties: as handles inside a query, as data in an answer.

use crate::{ElementIds, Gui, Sid, Str, Token, Value};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

/// Direction in which a traversal follows an edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From source to target.
    Out,
    /// From target to source.
    In,
    /// Either way.
    Both,
}

impl Direction {
    /// Returns the direction of the same edge seen from its other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
            Self::Both => Self::Both,
        }
    }
}

/// Number of values that a vertex property key may have, and the effect of writing another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cardinality {
    /// One value, which a new one replaces.
    #[default]
    Single,
    /// Distinct values.
    Set,
    /// Any values, in the order of writing.
    List,
}

impl std::str::FromStr for Cardinality {
    type Err = UnknownCardinality;

    fn from_str(text: &str) -> Result<Self, UnknownCardinality> {
        match text {
            "single" => Ok(Self::Single),
            "set" => Ok(Self::Set),
            "list" => Ok(Self::List),
            _ => Err(UnknownCardinality(text.to_owned())),
        }
    }
}

impl std::fmt::Display for Cardinality {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Single => "single",
            Self::Set => "set",
            Self::List => "list",
        })
    }
}

/// A text that names no cardinality.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownCardinality(String);

impl std::fmt::Display for UnknownCardinality {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no cardinality {:?}: use single, set or list", self.0)
    }
}

impl std::error::Error for UnknownCardinality {}

/// Handle of an edge: what a traversal needs without a look-up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Edge {
    /// Identifies the edge.
    pub sid: Sid,
    /// Source vertex; its partition holds the edge's properties.
    pub source: Gui,
    /// Target vertex.
    pub target: Gui,
    /// Edge label.
    pub label: Token,
}

/// A vertex in an answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VertexData {
    /// Engine identifier.
    pub gui: Gui,
    /// Text of the user's id.
    pub id: Str,
    /// How the text is read.
    pub ids: ElementIds,
    /// Labels in the order in which they were given.
    pub labels: Vec<Str>,
    /// Properties, one entry for each key.
    pub properties: Vec<PropertyData>,
}

/// One property key of an element with its values.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PropertyData {
    /// Property key.
    pub key: Str,
    /// Cardinality under which it was written.
    pub cardinality: Cardinality,
    /// At least one value; exactly one for `Single`.
    pub values: smallvec::SmallVec<[Value; 1]>,
    /// Meta-properties of the values, in order of values: index of the value, key, value.
    pub meta: Vec<(u32, Str, Value)>,
}

impl PropertyData {
    /// Returns the meta-properties of the value with index `value`.
    pub fn meta_of(&self, value: usize) -> impl Iterator<Item = (&Str, &Value)> + Clone {
        self.meta.iter().filter(move |(of, ..)| *of as usize == value).map(|(_, key, value)| (key, value))
    }
}

/// An edge in an answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EdgeData {
    /// Handle of the edge.
    pub edge: Edge,
    /// Text of the user's id, or of the one generated from source and SID.
    pub id: Str,
    /// How the texts of the three ids are read.
    pub ids: ElementIds,
    /// Edge label.
    pub label: Str,
    /// Text of the id of the source vertex.
    pub source_id: Str,
    /// Text of the id of the target vertex.
    pub target_id: Str,
    /// Labels of the source vertex.
    pub source_labels: Vec<Str>,
    /// Labels of the target vertex.
    pub target_labels: Vec<Str>,
    /// Properties; an edge has one value for each key.
    pub properties: Vec<(Str, Value)>,
}

/// One property statement as a value in a traversal (Gremlin `properties()`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PropertyRef {
    /// `Value::Vertex` or `Value::Edge`; for a meta-property the `Value::Property` of a vertex.
    pub owner: Value,
    /// Property key.
    pub key: Str,
    /// The value.
    pub value: Value,
    /// Index among the equivalent values of the owner for the key; almost always 0.
    pub nth: u32,
}

impl PropertyRef {
    /// Whether it is a property of a vertex. Such a property has an identity and may have properties itself.
    #[must_use]
    pub fn is_of_vertex(&self) -> bool {
        self.owner.as_vertex().is_some()
    }
}

/// Computes the id that TinkerPop's vertex properties have: a hash of owner, key, value, and position among equal
/// values. It is stable and needs no storage.
#[must_use]
pub fn property_id(owner: &str, key: &str, value: &Value, nth: u32) -> i32 {
    let mut bytes: SmallVec<[u8; 128]> = SmallVec::new();
    for part in [owner, key] {
        bytes.extend_from_slice(part.as_bytes());
        bytes.push(0);
    }
    bytes.extend_from_slice(value.type_name().as_bytes());
    bytes.push(0);
    match value {
        Value::String(text) => bytes.extend_from_slice(text.as_bytes()),
        other => match other.as_i64() {
            Some(int) => bytes.extend_from_slice(&int.to_le_bytes()),
            None => bytes.extend_from_slice(format!("{other:?}").as_bytes()),
        },
    }
    if nth > 0 {
        bytes.push(0);
        bytes.extend_from_slice(&nth.to_le_bytes());
    }
    xxh3_64(&bytes) as i32
}

/// Generates the id of an edge without an id of the user: source GUI and SID, so that the edge is found without an
/// index.
///
/// ```
/// use tidegraph_types::element::{generated_edge_id, parse_generated_edge_id};
/// use tidegraph_types::{Gui, Sid};
///
/// let id = generated_edge_id(Gui(7), Sid(1));
/// assert_eq!(parse_generated_edge_id(&id), Some((Gui(7), Sid(1))));
/// assert_eq!(parse_generated_edge_id("knows-1"), None);
/// ```
#[must_use]
pub fn generated_edge_id(source: Gui, sid: Sid) -> Str {
    Str::from(format!("{:016x}-{:x}", source.0, sid.0))
}

/// Parses a generated edge id; `None` if the text is not one.
#[must_use]
pub fn parse_generated_edge_id(id: &str) -> Option<(Gui, Sid)> {
    let (source, sid) = id.split_once('-')?;
    let hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if source.len() != 16 || !hex(source) || sid.is_empty() || sid.len() > 16 || !hex(sid) {
        return None;
    }
    Some((Gui(u64::from_str_radix(source, 16).ok()?), Sid(u64::from_str_radix(sid, 16).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_edge_ids_round_trip() {
        for (gui, sid) in [(0, 0), (1, 255), (u64::MAX, u64::MAX)] {
            let id = generated_edge_id(Gui(gui), Sid(sid));
            assert_eq!(parse_generated_edge_id(&id), Some((Gui(gui), Sid(sid))));
        }
        for bad in ["", "e1", "00-1", "0000000000000000-", "000000000000000G-1", "0000000000000000-+1"] {
            assert_eq!(parse_generated_edge_id(bad), None, "{bad}");
        }
    }
}

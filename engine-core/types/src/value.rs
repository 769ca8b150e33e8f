//! Values of properties and of queries.
//!
//! `Eq` and `Hash` are *equivalence*, the relation of grouping, distinct and map keys: null is equivalent to null, NaN
//! to NaN, and numbers of any type to each other if they are the same number. The languages' `=` is
//! [`order::equals`](crate::order::equals).
//!
//! Values are serialized for files that live no longer than their process: the form may change with each release.

use crate::point::Point;
use crate::temporal::{Iso, Temporal};
use crate::{Big, Edge, EdgeData, Gui, PropertyRef, Str, VertexData};
use indexmap::IndexMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

/// A map with keys of any type, in order of insertion.
pub type Map = IndexMap<Value, Value>;

/// A value. Clones are cheap, because large values are shared.
///
/// ```
/// use tidegraph_types::{Value, order};
///
/// let text = Value::string("tide");
/// assert_eq!(text.as_str(), Some("tide"));
/// assert_eq!(Value::from(7).as_i64(), Some(7));
///
/// // Null is equivalent to null, but whether they are equal is unknown.
/// assert_eq!(Value::Null, Value::Null);
/// assert_eq!(order::equals(&Value::Null, &Value::Null), None);
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub enum Value {
    /// openCypher's null; never stored.
    #[default]
    Null,
    /// No value: a Gremlin `by()` without a result. Never stored, never in an answer.
    Unbound,
    /// Boolean.
    Bool(bool),
    /// 8-bit integer.
    Byte(i8),
    /// 16-bit integer.
    Short(i16),
    /// 32-bit integer.
    Int(i32),
    /// 64-bit integer: openCypher's INTEGER.
    Long(i64),
    /// 32-bit float.
    Float(f32),
    /// 64-bit float: openCypher's FLOAT.
    Double(f64),
    /// A number that 64 bits do not hold, or an exact decimal (Gremlin only).
    Big(Arc<Big>),
    /// UTF-8 text.
    String(Str),
    /// A point in time in UTC, with nanoseconds.
    DateTime(Timestamp),
    /// A date, a time, a point in time with a zone, or a duration.
    Temporal(Temporal),
    /// A point of a plane, of space, or of the Earth.
    Point(Arc<Point>),
    /// A UUID (Gremlin only).
    Uuid(#[serde(with = "bytes_of_uuid")] Uuid),
    /// Ordered values.
    List(Arc<Vec<Value>>),
    /// Distinct values, in order of insertion (Gremlin only).
    Set(Arc<Vec<Value>>),
    /// Keys to values.
    Map(Arc<Map>),
    /// Handle of a vertex.
    Vertex(Gui),
    /// Handle of an edge.
    Edge(Edge),
    /// A path.
    Path(Arc<Path>),
    /// One property statement.
    Property(Arc<PropertyRef>),
    /// One entry of a map (Gremlin `unfold()` of a map).
    Entry(Arc<(Value, Value)>),
    /// Gremlin's `T.id`, `T.label`, `Direction.OUT` … as map keys.
    Symbol(Symbol),
    /// A vertex with its data, in answers.
    VertexData(Arc<VertexData>),
    /// An edge with its data, in answers.
    EdgeData(Arc<EdgeData>),
    /// Gremlin's `tree()`: objects, each with the tree of what follows it.
    Tree(Arc<Map>),
    /// Gremlin's `subgraph()`.
    Graph(Arc<Subgraph>),
}

/// A UUID as its bytes.
mod bytes_of_uuid {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use uuid::Uuid;

    pub fn serialize<S: Serializer>(uuid: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        uuid.as_bytes().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        <[u8; 16]>::deserialize(deserializer).map(Uuid::from_bytes)
    }
}

/// Edges, and the vertices at their ends.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Subgraph {
    /// The vertices, each once.
    pub vertices: Vec<Value>,
    /// The edges, each once.
    pub edges: Vec<Value>,
}

impl Subgraph {
    /// Returns all vertices and then all edges.
    pub fn elements(&self) -> impl Iterator<Item = &Value> {
        self.vertices.iter().chain(&self.edges)
    }
}

/// Gremlin's enum constants that appear as map keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Symbol {
    /// `T.id`
    Id,
    /// `T.label`
    Label,
    /// `T.key`
    Key,
    /// `T.value`
    Value,
    /// `Direction.OUT`
    Out,
    /// `Direction.IN`
    In,
}

impl Symbol {
    /// Returns its name as a key of a JSON map.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Label => "label",
            Self::Key => "key",
            Self::Value => "value",
            Self::Out => "OUT",
            Self::In => "IN",
        }
    }
}

/// The path of a traversal. In openCypher vertices and edges alternate, and there are no labels.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Path {
    /// The visited objects, in order.
    pub objects: Vec<Value>,
    /// The `as()` labels of each object; empty, or as long as `objects`.
    pub labels: Vec<Vec<Str>>,
}

impl Value {
    /// Makes a string value.
    pub fn string(text: impl Into<Str>) -> Self {
        Self::String(text.into())
    }

    /// Makes a list value.
    #[must_use]
    pub fn list(values: Vec<Value>) -> Self {
        Self::List(Arc::new(values))
    }

    /// Makes a map value.
    #[must_use]
    pub fn map(map: Map) -> Self {
        Self::Map(Arc::new(map))
    }

    /// Formats the value for a message. Cuts text after 100 characters; shows only the type of a value that holds
    /// others.
    #[must_use]
    pub fn for_message(&self) -> String {
        const SHOWN_CHARS: usize = 100;
        match self {
            Self::String(text) => match text.char_indices().nth(SHOWN_CHARS) {
                Some((cut, _)) => format!("{:?}…", &text[..cut]),
                None => format!("{text:?}"),
            },
            Self::Bool(truth) => truth.to_string(),
            Self::DateTime(at) => Iso(*at).to_string(),
            Self::Temporal(temporal) => temporal.to_string(),
            Self::Point(point) => point.to_string(),
            Self::Uuid(uuid) => uuid.to_string(),
            Self::Big(big) => big.to_string().chars().take(SHOWN_CHARS).collect(),
            other => match (other.as_i64(), other.as_f64()) {
                (Some(whole), _) => whole.to_string(),
                (None, Some(float)) => format!("{float:?}"),
                (None, None) => other.type_name().to_owned(),
            },
        }
    }

    /// Returns the name of the type, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Unbound => "unbound",
            Self::Bool(_) => "boolean",
            Self::Byte(_) => "byte",
            Self::Short(_) => "short",
            Self::Int(_) => "int",
            Self::Long(_) => "long",
            Self::Float(_) => "float",
            Self::Double(_) => "double",
            Self::Big(big) => match **big {
                Big::Integer(_) => "big integer",
                Big::Decimal(_) => "big decimal",
            },
            Self::String(_) => "string",
            Self::DateTime(_) => "datetime",
            Self::Temporal(temporal) => temporal.type_name(),
            Self::Point(_) => "point",
            Self::Uuid(_) => "uuid",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Map(_) => "map",
            Self::Vertex(_) | Self::VertexData(_) => "vertex",
            Self::Edge(_) | Self::EdgeData(_) => "edge",
            Self::Path(_) => "path",
            Self::Property(_) => "property",
            Self::Entry(_) => "map entry",
            Self::Symbol(_) => "token",
            Self::Tree(_) => "tree",
            Self::Graph(_) => "graph",
        }
    }

    /// Whether this is null or unbound.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::Unbound)
    }

    /// Whether the value is one that properties hold, and no list.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        matches!(
            self,
            Self::Bool(_)
                | Self::Byte(_)
                | Self::Short(_)
                | Self::Int(_)
                | Self::Long(_)
                | Self::Float(_)
                | Self::Double(_)
                | Self::String(_)
                | Self::DateTime(_)
                | Self::Temporal(_)
                | Self::Point(_)
                | Self::Uuid(_)
        )
    }

    /// Whether a property can hold the value: a scalar, or a list of scalars of one type. Numbers of all widths are one
    /// type here, points in time with and without a zone too.
    #[must_use]
    pub fn is_storable(&self) -> bool {
        match self {
            Self::List(items) => match items.split_first() {
                None => true,
                Some((first, rest)) => {
                    let class = first.list_class();
                    class.is_some() && rest.iter().all(|item| item.list_class() == class)
                }
            },
            scalar => scalar.is_scalar(),
        }
    }

    /// Returns a number for the types that may stand together in a stored list; `None` for values that no list holds.
    fn list_class(&self) -> Option<u32> {
        Some(match self {
            Self::Bool(_) => 0,
            Self::Byte(_)
            | Self::Short(_)
            | Self::Int(_)
            | Self::Long(_)
            | Self::Float(_)
            | Self::Double(_) => 1,
            Self::String(_) => 2,
            Self::DateTime(_) => 3,
            Self::Temporal(temporal) => match temporal {
                Temporal::DateTime(_) => 3,
                Temporal::Date(_) => 4,
                Temporal::LocalTime(_) => 5,
                Temporal::Time(_) => 6,
                Temporal::LocalDateTime(_) => 7,
                Temporal::Duration(_) => 8,
            },
            Self::Uuid(_) => 9,
            Self::Point(point) => 16 + point.srid(),
            _ => return None,
        })
    }

    /// Returns an integer of any width.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Byte(v) => Some(i64::from(*v)),
            Self::Short(v) => Some(i64::from(*v)),
            Self::Int(v) => Some(i64::from(*v)),
            Self::Long(v) => Some(*v),
            _ => None,
        }
    }

    /// Returns a number of any type as the nearest double.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(v) => Some(f64::from(*v)),
            Self::Double(v) => Some(*v),
            Self::Big(big) => Some(big.to_f64()),
            other => other.as_i64().map(|v| v as f64),
        }
    }

    /// Returns the seconds since 1970 in UTC of a point in time, a date, or a date and time.
    #[must_use]
    pub fn epoch_seconds(&self) -> Option<f64> {
        let at = match self {
            Self::DateTime(at) => Some(*at),
            Self::Temporal(temporal) => temporal.instant(),
            _ => None,
        };
        at.map(|at| at.as_second() as f64)
    }

    /// Returns the text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the items of a list or set.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[Value]> {
        match self {
            Self::List(items) | Self::Set(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the GUI of a vertex, handle or data.
    #[must_use]
    pub fn as_vertex(&self) -> Option<Gui> {
        match self {
            Self::Vertex(gui) => Some(*gui),
            Self::VertexData(data) => Some(data.gui),
            _ => None,
        }
    }

    /// Returns the handle of an edge, handle or data.
    #[must_use]
    pub fn as_edge(&self) -> Option<Edge> {
        match self {
            Self::Edge(edge) => Some(*edge),
            Self::EdgeData(data) => Some(data.edge),
            _ => None,
        }
    }

    /// Estimates the heap memory of the value in bytes, for memory limits.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::String(text) if text.is_heap_allocated() => text.len() + 16,
            Self::Temporal(temporal) => temporal.heap_bytes(),
            Self::Point(_) => size_of::<Point>() + 16,
            Self::Big(big) => big.heap_bytes(),
            Self::List(items) | Self::Set(items) => {
                24 + items.iter().map(|v| size_of::<Value>() + v.heap_bytes()).sum::<usize>()
            }
            Self::Graph(graph) => {
                64 + graph.elements().map(|v| size_of::<Value>() + v.heap_bytes()).sum::<usize>()
            }
            Self::Map(map) | Self::Tree(map) => {
                64 + map
                    .iter()
                    .map(|(k, v)| 2 * size_of::<Value>() + 16 + k.heap_bytes() + v.heap_bytes())
                    .sum::<usize>()
            }
            Self::Path(path) => {
                64 + path.objects.iter().map(|v| size_of::<Value>() + v.heap_bytes()).sum::<usize>()
                    + path.labels.iter().map(|l| 24 + l.len() * size_of::<Str>()).sum::<usize>()
            }
            Self::Entry(entry) => 2 * size_of::<Value>() + entry.0.heap_bytes() + entry.1.heap_bytes(),
            Self::Property(p) => size_of::<PropertyRef>() + p.owner.heap_bytes() + p.value.heap_bytes(),
            Self::VertexData(data) => {
                size_of::<VertexData>()
                    + data
                        .properties
                        .iter()
                        .flat_map(|p| &p.values)
                        .map(|v| 96 + v.heap_bytes())
                        .sum::<usize>()
            }
            Self::EdgeData(data) => {
                size_of::<EdgeData>()
                    + data.properties.iter().map(|(_, v)| 64 + v.heap_bytes()).sum::<usize>()
            }
            _ => 0,
        }
    }
}

impl From<bool> for Value {
    fn from(v: bool) -> Self {
        Self::Bool(v)
    }
}
impl From<i32> for Value {
    fn from(v: i32) -> Self {
        Self::Int(v)
    }
}
impl From<i64> for Value {
    fn from(v: i64) -> Self {
        Self::Long(v)
    }
}
impl From<f64> for Value {
    fn from(v: f64) -> Self {
        Self::Double(v)
    }
}
impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Self::String(v.into())
    }
}
impl From<Str> for Value {
    fn from(v: Str) -> Self {
        Self::String(v)
    }
}

//! Requests: what a caller can ask, with the shapes that also travel over the wire.

use crate::PropertyCell;
use tidegraph_types::{Direction, Epoch, Gui, Sid, Str, Token, Value, Version};

/// Where in time a request reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct At {
    /// Everything committed up to and including this version is visible, nothing else.
    pub version: Version,
    /// Epoch of the partition map that the caller routed by.
    pub epoch: Epoch,
}

/// Which properties an answer holds.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Projection {
    /// None.
    #[default]
    None,
    /// Every one.
    All,
    /// Those with one of these keys.
    Keys(Vec<Token>),
}

/// What to read of vertices.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VertexRead {
    /// Fill `ids`.
    pub ids: bool,
    /// Fill `labels`.
    pub labels: bool,
    /// Fill `cells`.
    pub properties: Projection,
    /// Fill `meta`: the meta-properties of these properties.
    pub meta: bool,
}

/// What to answer about ids besides their vertices.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LookUp {
    /// What is read of the vertices that are found; `None`: nothing.
    pub read: Option<VertexRead>,
    /// Whether the places of ids that no vertex has are answered too.
    pub places: bool,
}

impl VertexRead {
    /// Whether an answer to this one has all that another asks for.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let properties = match (&self.properties, &other.properties) {
            (_, Projection::None) => return (self.ids || !other.ids) && (self.labels || !other.labels),
            (Projection::All, _) => true,
            (Projection::Keys(ours), Projection::Keys(theirs)) => theirs.iter().all(|key| ours.contains(key)),
            _ => false,
        };
        properties && (self.ids || !other.ids) && (self.labels || !other.labels) && (self.meta || !other.meta)
    }
}

/// What to read of edges.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EdgeRead {
    /// Fill `ids`.
    pub ids: bool,
    /// Fill `cells`.
    pub properties: Projection,
}

/// Where an edge would be, and the id that it would have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdgePlace {
    /// Its source.
    pub source: Gui,
    /// Its SID.
    pub sid: Sid,
    /// The id that its user chose; `None`: the generated one.
    pub id: Option<Str>,
}

/// Which edges to follow from a frontier.
#[derive(Clone, PartialEq, Debug)]
pub struct Expand {
    /// Which way.
    pub direction: Direction,
    /// Only these labels; `None`: any. An empty list matches nothing.
    pub labels: Option<Vec<Token>>,
    /// Stop after about this many rows and return a cursor. At least 1.
    pub max_rows: u32,
    /// With `Direction::Both`: answer a self-loop once (openCypher) instead of once for each end (Gremlin).
    pub loops_once: bool,
    /// Only `row` and `neighbour` of the answer are wanted; its other columns need not be filled.
    pub neighbours_only: bool,
}

/// Where an `expand` goes on: a position in the frontier and one in that vertex's adjacency.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    /// Row of the frontier.
    pub row: u32,
    /// Position inside its adjacency; its meaning is the storage's.
    pub offset: u64,
    /// Whose position it is, where there are replicas: no other one can go on there. 0: anybody's.
    pub replica: u16,
}

/// Where a scan goes on; its meaning is the storage's. The default is the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanCursor {
    /// Partition.
    pub partition: u16,
    /// Position inside it.
    pub position: u64,
    /// Whether the scan looks up in indexes.
    pub by_index: bool,
    /// Which labels are answered from indexes while the others are scanned; 0: no such division.
    pub cover: u16,
    /// Whose position it is, where there are replicas: no other one can go on there. 0: anybody's.
    pub replica: u16,
}

/// A test of one property key. An element passes when any value of the key passes.
#[derive(Clone, PartialEq, Debug)]
pub struct PropertyPredicate {
    /// Property key.
    pub key: Token,
    /// The test.
    pub test: Test,
    /// The value that passes must be the only one of the key, as openCypher has it: to it several values are a list.
    pub sole: bool,
}

impl PropertyPredicate {
    /// An element passes when any value of the key passes.
    #[must_use]
    pub fn any(key: Token, test: Test) -> Self {
        Self { key, test, sole: false }
    }

    /// Whether an element with these values of the key passes.
    pub fn passes<'v>(&self, mut values: impl Iterator<Item = &'v Value>) -> bool {
        if self.sole {
            let first = values.next();
            return first.is_some_and(|value| self.test.passes(value)) && values.next().is_none();
        }
        values.any(|value| self.test.passes(value))
    }

    /// Whether an element with these values passes, those of other keys among them.
    #[must_use]
    pub fn passes_among(&self, cells: &[PropertyCell]) -> bool {
        self.passes(cells.iter().filter(|cell| cell.key == self.key).map(|cell| &cell.value))
    }
}

/// Tests that storage knows. Numbers compare by value, whatever their width; other types only with their own.
#[derive(Clone, PartialEq, Debug)]
pub enum Test {
    /// The key has a value.
    Exists,
    /// Equal to a scalar.
    Equals(Value),
    /// Equal to one of several scalars.
    Within(Vec<Value>),
    /// Between bounds (value, whether it is itself inside); at least one bound is given.
    Range {
        /// Lower bound.
        low: Option<(Value, bool)>,
        /// Upper bound.
        high: Option<(Value, bool)>,
    },
    /// A string that starts with this.
    StartsWith(String),
}

/// Which vertices to scan.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VertexScan {
    /// For each group, the vertex has at least one of its labels; no group: any vertex.
    pub labels: Vec<Vec<Token>>,
    /// All of these hold.
    pub predicates: Vec<PropertyPredicate>,
    /// Stop after about this many rows and return a cursor. At least 1. Storage may stop before, even without a row,
    /// when it has looked at much.
    pub max_rows: u32,
}

/// Which edges to scan.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EdgeScan {
    /// Only these labels; `None`: any.
    pub labels: Option<Vec<Token>>,
    /// All of these hold.
    pub predicates: Vec<PropertyPredicate>,
    /// Stop after about this many rows and return a cursor. At least 1. Storage may stop before, even without a row,
    /// when it has looked at much.
    pub max_rows: u32,
}

impl Test {
    /// Whether a property value passes. Every implementation of APL uses this, so that they agree.
    #[must_use]
    pub fn passes(&self, value: &Value) -> bool {
        use std::cmp::Ordering;
        use tidegraph_types::order::{compare, equals};
        match self {
            Self::Exists => true,
            Self::Equals(other) => equals(value, other) == Some(true),
            Self::Within(others) => others.iter().any(|other| equals(value, other) == Some(true)),
            Self::Range { low, high } => {
                let above = |(bound, inside): &(Value, bool)| match compare(value, bound) {
                    Some(Ordering::Greater) => true,
                    Some(Ordering::Equal) => *inside,
                    _ => false,
                };
                let below = |(bound, inside): &(Value, bool)| match compare(value, bound) {
                    Some(Ordering::Less) => true,
                    Some(Ordering::Equal) => *inside,
                    _ => false,
                };
                low.as_ref().is_none_or(above) && high.as_ref().is_none_or(below)
            }
            Self::StartsWith(prefix) => value.as_str().is_some_and(|text| text.starts_with(prefix.as_str())),
        }
    }
}

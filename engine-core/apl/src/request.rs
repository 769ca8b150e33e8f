//! Requests: what a caller can ask. The same shapes travel over the wire.

use crate::PropertyCell;
use tidegraph_types::{Direction, Epoch, Gui, Sid, Str, Token, Value, Version, order};

/// Where in time a request reads. A request has one `At`, so its answer is of one version (APL-1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct At {
    /// Everything that was committed up to and including this version is visible, and nothing else.
    pub version: Version,
    /// Epoch of the partition map by which the caller routed the request (APL-2).
    pub epoch: Epoch,
}

/// Messages between processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Number of messages to other processes. Each asks for data of one or more partitions.
    pub requests: u64,
    /// Bytes of these messages and of their answers.
    pub bytes: u64,
}

impl Traffic {
    /// Returns what was moved since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

impl std::ops::Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { requests: self.requests + other.requests, bytes: self.bytes + other.bytes }
    }
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Which properties an answer holds.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Projection {
    /// No property.
    #[default]
    None,
    /// Every property.
    All,
    /// The properties with one of these keys.
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

/// What [`Apl::look_up`](crate::Apl::look_up) answers about ids besides their vertices.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LookUp {
    /// What to read of the vertices that are found; `None`: nothing.
    pub read: Option<VertexRead>,
    /// Whether to answer also the places of ids that no vertex has.
    pub places: bool,
}

impl VertexRead {
    /// Returns whether the answer to this read contains everything that `other` asks for.
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

/// Where an edge may be stored, and the id that it must have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdgePlace {
    /// Its source.
    pub source: Gui,
    /// Its SID.
    pub sid: Sid,
    /// The id that its user chose; `None`: the generated id.
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
    /// Only `row` and `neighbour` of the answer are needed; storage may leave the other columns empty.
    pub neighbours_only: bool,
}

impl Expand {
    /// Follows every edge in one direction, without a bound on the rows.
    #[must_use]
    pub fn all(direction: Direction) -> Self {
        Self { direction, labels: None, max_rows: u32::MAX, loops_once: false, neighbours_only: false }
    }
}

/// Where an expansion continues: a row of the frontier and a position in the
/// adjacency of that vertex. The default is the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    /// Row of the frontier.
    pub row: u32,
    /// Position in its adjacency, which only storage interprets.
    pub offset: u64,
    /// Number of the replica that gave the position; no other replica can continue there (APL-2). 0: any replica can.
    pub replica: u16,
}

/// Where a scan continues. Only storage interprets the position. The default is the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanCursor {
    /// Partition.
    pub partition: u16,
    /// Position in the partition.
    pub position: u64,
    /// Whether the scan reads indexes.
    pub by_index: bool,
    /// Which labels are read from indexes while the others are scanned; 0: the scan is not divided.
    pub cover: u16,
    /// Number of the replica that gave the position; no other replica can continue there (APL-2). 0: any replica can.
    pub replica: u16,
}

impl ScanCursor {
    /// The cover of scans of one partition.
    pub const ONE_PARTITION: u16 = u16::MAX;

    /// Returns the start of a scan of one partition, which reads no index. Those of all partitions find together what one
    /// scan finds. Only for storage in this process.
    #[must_use]
    pub fn of_partition(partition: u16) -> Self {
        Self { partition, cover: Self::ONE_PARTITION, ..Self::default() }
    }
}

/// A test of one property key. An element passes when any value of the key passes.
///
/// ```
/// use tidegraph_apl::{PropertyPredicate, Test};
/// use tidegraph_types::{Token, Value};
///
/// let test = Test::Range { low: Some((Value::Long(18), true)), high: None };
/// let any = PropertyPredicate::any(Token(1), test);
/// let sole = PropertyPredicate { sole: true, ..any.clone() };
/// let values = [Value::Long(7), Value::Double(18.0)];
/// assert!(any.passes(values.iter()));
/// assert!(!sole.passes(values.iter()), "the key has two values");
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct PropertyPredicate {
    /// Property key.
    pub key: Token,
    /// The test.
    pub test: Test,
    /// The value that passes must be the only value of the key. openCypher needs
    /// this: it sees several values as a list.
    pub sole: bool,
}

impl PropertyPredicate {
    /// Makes a predicate that an element passes when any value of the key passes.
    #[must_use]
    pub fn any(key: Token, test: Test) -> Self {
        Self { key, test, sole: false }
    }

    /// Returns whether an element passes that has these values of the key.
    pub fn passes<'v>(&self, mut values: impl Iterator<Item = &'v Value>) -> bool {
        if self.sole {
            let first = values.next();
            return first.is_some_and(|value| self.test.passes(value)) && values.next().is_none();
        }
        values.any(|value| self.test.passes(value))
    }

    /// Returns whether an element passes that has these cells. Cells of other keys are ignored.
    #[must_use]
    pub fn passes_among(&self, cells: &[PropertyCell]) -> bool {
        self.passes(cells.iter().filter(|cell| cell.key == self.key).map(|cell| &cell.value))
    }
}

/// Tests that storage knows. Numbers compare by value, whatever their width; values of other types compare only with
/// their own type.
#[derive(Clone, PartialEq, Debug)]
pub enum Test {
    /// The key has a value.
    Exists,
    /// Equal to a scalar.
    Equals(Value),
    /// Equal to one of several scalars.
    Within(OneOf),
    /// Between bounds, each a value and whether the value itself is inside. At least one bound is given.
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
    /// All of these predicates hold.
    pub predicates: Vec<PropertyPredicate>,
    /// Stop after about this many rows and return a cursor. At least 1. Storage may stop earlier, even without a row,
    /// once it has looked at many elements.
    pub max_rows: u32,
}

/// Which edges to scan.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EdgeScan {
    /// Only these labels; `None`: any.
    pub labels: Option<Vec<Token>>,
    /// All of these predicates hold.
    pub predicates: Vec<PropertyPredicate>,
    /// Stop after about this many rows and return a cursor. At least 1. Storage may stop earlier, even without a row,
    /// once it has looked at many elements.
    pub max_rows: u32,
}

/// Scalars in openCypher's total order, each once, so that one is found among a million of them in 20 steps.
///
/// ```
/// use tidegraph_apl::OneOf;
/// use tidegraph_types::Value;
///
/// let numbers = OneOf::new(vec![Value::Long(7), Value::Double(2.0), Value::Int(7)]);
/// assert_eq!(numbers.len(), 2);
/// assert!(numbers.has(&Value::Long(2)) && !numbers.has(&Value::string("7")));
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OneOf(Vec<Value>);

impl OneOf {
    /// Sorts scalars, and leaves out those that are equal to another.
    #[must_use]
    pub fn new(mut values: Vec<Value>) -> Self {
        // Lists come sorted from other processes.
        values.sort_by(order::order);
        values.dedup();
        Self(values)
    }

    /// Returns whether a value is equal to one of them. NaN equals nothing.
    #[must_use]
    pub fn has(&self, value: &Value) -> bool {
        let found = self.0.binary_search_by(|one| order::order(one, value));
        found.is_ok_and(|place| order::equals(&self.0[place], value) == Some(true))
    }
}

impl std::ops::Deref for OneOf {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0
    }
}

impl FromIterator<Value> for OneOf {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        Self::new(values.into_iter().collect())
    }
}

impl Test {
    /// Returns whether a property value passes. Every implementation of the APL uses this, so that they agree.
    #[must_use]
    pub fn passes(&self, value: &Value) -> bool {
        use std::cmp::Ordering;
        use tidegraph_types::order::{compare, equals};
        match self {
            Self::Exists => true,
            Self::Equals(other) => equals(value, other) == Some(true),
            Self::Within(others) => others.has(value),
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

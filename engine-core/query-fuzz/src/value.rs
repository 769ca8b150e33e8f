//! Values of the reference evaluators, with equality, comparison and order as the languages define them.
//!
//! Nothing here uses the engine's values, so that a defect there is not repeated here.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A value. Nodes and edges are indexes into the graph.
#[derive(Clone, Debug)]
pub enum Val {
    /// Null.
    Null,
    /// Boolean.
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Floating-point number, never NaN.
    Float(f64),
    /// Text.
    Str(String),
    /// List.
    List(Vec<Val>),
    /// Map with keys of any type, in order of the keys.
    Map(Vec<(Val, Val)>),
    /// Node by its index.
    Node(usize),
    /// Edge by its index.
    Edge(usize),
    /// Nodes and edges of a path.
    Path(Vec<Val>),
}

impl Val {
    /// Whether this is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns a truth value; `None` is unknown.
    #[must_use]
    pub fn truth(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// Makes a truth value; `None` is null.
    #[must_use]
    pub fn of_truth(truth: Option<bool>) -> Self {
        truth.map_or(Self::Null, Self::Bool)
    }

    /// Returns a number.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            #[allow(clippy::cast_precision_loss, reason = "the generator's integers are small")]
            Self::Int(int) => Some(*int as f64),
            Self::Float(float) => Some(*float),
            _ => None,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Map(_) => 0,
            Self::Node(_) => 1,
            Self::Edge(_) => 2,
            Self::List(_) => 3,
            Self::Path(_) => 4,
            Self::Str(_) => 5,
            Self::Bool(_) => 6,
            Self::Int(_) | Self::Float(_) => 7,
            Self::Null => 8,
        }
    }
}

/// `a = b` in three-valued logic.
#[must_use]
pub fn equals(a: &Val, b: &Val) -> Option<bool> {
    match (a, b) {
        (Val::Null, _) | (_, Val::Null) => None,
        (Val::List(x), Val::List(y)) if x.len() == y.len() => {
            let mut known = Some(true);
            for (a, b) in x.iter().zip(y) {
                match equals(a, b) {
                    Some(false) => return Some(false),
                    Some(true) => {}
                    None => known = None,
                }
            }
            known
        }
        (Val::List(_), Val::List(_)) => Some(false),
        _ => Some(order(a, b) == Ordering::Equal),
    }
}

/// `a < b` and its kin: `None` if the two cannot be compared.
#[must_use]
pub fn compare(a: &Val, b: &Val) -> Option<Ordering> {
    match (a, b) {
        (Val::Str(_), Val::Str(_)) | (Val::Bool(_), Val::Bool(_)) => Some(order(a, b)),
        _ => a.number()?.partial_cmp(&b.number()?),
    }
}

/// The total order of `ORDER BY`: null last. Equal values are one value for `DISTINCT` and for groups.
#[must_use]
pub fn order(a: &Val, b: &Val) -> Ordering {
    match (a, b) {
        (Val::Str(x), Val::Str(y)) => x.cmp(y),
        (Val::Bool(x), Val::Bool(y)) => x.cmp(y),
        (Val::Node(x), Val::Node(y)) | (Val::Edge(x), Val::Edge(y)) => x.cmp(y),
        (Val::List(x), Val::List(y)) | (Val::Path(x), Val::Path(y)) => order_lists(x, y),
        (Val::Map(x), Val::Map(y)) => {
            for ((k, v), (l, w)) in x.iter().zip(y) {
                let by = order(k, l).then_with(|| order(v, w));
                if by != Ordering::Equal {
                    return by;
                }
            }
            x.len().cmp(&y.len())
        }
        _ => match (a.number(), b.number()) {
            (Some(x), Some(y)) => x.total_cmp(&y),
            _ => a.rank().cmp(&b.rank()),
        },
    }
}

/// Orders lists item by item.
#[must_use]
pub fn order_lists(x: &[Val], y: &[Val]) -> Ordering {
    for (a, b) in x.iter().zip(y) {
        let by = order(a, b);
        if by != Ordering::Equal {
            return by;
        }
    }
    x.len().cmp(&y.len())
}

/// A value as the key of a group.
#[derive(Clone, Debug)]
pub struct GroupKey(pub Vec<Val>);

impl PartialEq for GroupKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for GroupKey {}
impl PartialOrd for GroupKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for GroupKey {
    fn cmp(&self, other: &Self) -> Ordering {
        order_lists(&self.0, &other.0)
    }
}

/// Groups rows by their keys.
pub fn group_by<T>(rows: impl IntoIterator<Item = (Vec<Val>, T)>) -> BTreeMap<GroupKey, Vec<T>> {
    let mut groups: BTreeMap<GroupKey, Vec<T>> = BTreeMap::new();
    for (key, row) in rows {
        groups.entry(GroupKey(key)).or_default().push(row);
    }
    groups
}

/// Formats a number so that equal numbers are equal texts, up to rounding.
#[must_use]
pub fn show_number(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        format!("{number:.0}")
    } else {
        format!("{number:.9e}")
    }
}

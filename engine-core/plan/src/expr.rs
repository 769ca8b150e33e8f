//! Expressions: computed for each row from its slots. They never contain plans; a subquery is bound to a slot first
//! ([`crate::Op::Bind`]).

use crate::Slot;
use tidegraph_types::{Str, Value};

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A constant.
    Literal(Value),
    /// A parameter of the request; an error when the request lacks it.
    Parameter(Str),
    /// Value of a slot.
    Slot(Slot),
    /// `base.key`. Of an element: its property (null if absent, the value, or a list if it has several; its id if the key
    /// is `~id`). Of a map: the entry or null. Of null: null. Of anything else: a type error.
    Property(Box<Expr>, Str),
    /// `base[index]`: list by position (negative from the end, null outside), map by key, element by property key.
    Index(Box<Expr>, Box<Expr>),
    /// `base[from..to]`.
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    /// Three-valued conjunction; true when empty.
    And(Vec<Expr>),
    /// Three-valued disjunction; false when empty.
    Or(Vec<Expr>),
    /// Three-valued exclusive or.
    Xor(Box<Expr>, Box<Expr>),
    /// Three-valued negation.
    Not(Box<Expr>),
    /// Whether the value is null (or unbound). Never null itself.
    IsNull(Box<Expr>),
    /// Whether the slot is bound. Never null.
    IsBound(Slot),
    /// A comparison, three-valued.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// `item IN list`, three-valued.
    In(Box<Expr>, Box<Expr>),
    /// Arithmetic; `+` also joins strings and lists as openCypher says. Integer overflow and division by zero are
    /// errors.
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// `-x`.
    Negate(Box<Expr>),
    /// Whether a vertex has all (or an edge one) of the labels. Null for null.
    HasLabels(Box<Expr>, Vec<Str>),
    /// Whether an element has at least one of the labels (Gremlin `hasLabel`). False for what is no element.
    HasAnyLabel(Box<Expr>, Vec<Str>),
    /// A list.
    List(Vec<Expr>),
    /// A map with string keys.
    Map(Vec<(Str, Expr)>),
    /// `CASE`: the first branch whose condition is true, else `otherwise`. The simple form compares with `=` in the
    /// conditions.
    Case {
        /// Condition and result.
        branches: Vec<(Expr, Expr)>,
        /// `ELSE`; null when the text has none.
        otherwise: Box<Expr>,
    },
    /// `[variable IN list WHERE filter | map]`.
    Comprehension {
        /// Local slot of the item.
        variable: Slot,
        /// The list; null gives null.
        list: Box<Expr>,
        /// Kept when true.
        filter: Option<Box<Expr>>,
        /// Result; the item itself when absent.
        map: Option<Box<Expr>>,
    },
    /// `all|any|none|single(variable IN list WHERE predicate)`, three-valued.
    Quantified {
        /// Which.
        quantifier: Quantifier,
        /// Local slot of the item.
        variable: Slot,
        /// The list; null gives null.
        list: Box<Expr>,
        /// The predicate.
        predicate: Box<Expr>,
    },
    /// `reduce(accumulator = start, variable IN list | step)`.
    Reduce {
        /// Local slot of the accumulator.
        accumulator: Slot,
        /// Its first value.
        start: Box<Expr>,
        /// Local slot of the item.
        variable: Slot,
        /// The list.
        list: Box<Expr>,
        /// Next value of the accumulator.
        step: Box<Expr>,
    },
    /// A function of its arguments.
    Call(Function, Vec<Expr>),
}

/// Comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// Arithmetic operators. Two integers give a 64-bit integer (32-bit when both have at most 32 bits and it fits).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`; of integers truncates.
    Divide,
    /// `%`
    Modulo,
    /// `^`; always a double.
    Power,
}

/// Quantifiers over a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantifier {
    /// True for all.
    All,
    /// True for at least one.
    Any,
    /// True for none.
    None,
    /// True for exactly one.
    Single,
}

/// Functions. Arguments are in the order of the language's text. Unless said otherwise null gives null, and a wrong
/// type is an error that names function, value and type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "named as in the languages; the comments say what is not obvious")]
pub enum Function {
    // ---- elements; null for null
    /// The user's id of an element, a string. Gremlin: also of a property (owner id, key, value joined).
    Id,
    /// openCypher `labels(vertex)`: list of strings.
    Labels,
    /// openCypher `type(edge)`.
    Type,
    /// Gremlin `label()`: an edge's label; a vertex's labels joined by `::`; a property's key.
    Label,
    /// openCypher `keys(element or map)`.
    Keys,
    /// openCypher `properties(element or map)`: a map.
    PropertyMap,
    /// Gremlin `values(keys…)`: args element, then literal key strings; list of all values, in key order; no key: all.
    PropertyValues,
    /// Gremlin `properties(keys…)`: the same as `PropertyValues` with `Value::Property` items.
    Properties,
    /// Gremlin `valueMap`: args element, bool include id and label, then keys. Vertex values are lists, edge values single.
    ValueMap,
    /// Gremlin `elementMap`: args element, then keys. Values single (the last of several), with id, label, and for edges IN and OUT maps.
    ElementMap,
    /// Gremlin `propertyMap`: args element, then keys: key → list of properties.
    GremlinPropertyMap,
    /// Gremlin `key()` of a property (or entry).
    PropertyKey,
    /// Gremlin `value()` of a property (or entry).
    PropertyValue,
    /// Gremlin `element()` of a property: what it is a property of.
    PropertyOwner,
    /// Source vertex of an edge.
    StartNode,
    /// Target vertex of an edge.
    EndNode,
    /// Args edge, vertex: the end that is not the vertex (the vertex itself for a loop).
    OtherNode,
    /// Whether the element has the property: args element, key. False for null.
    HasProperty,
    /// Args value, literal string: the value. A null value is an error that says the string (openCypher: MERGE with a null
    /// property).
    RequireNotNull,

    // ---- paths
    /// openCypher `nodes(path)`.
    Nodes,
    /// openCypher `relationships(path)`.
    Relationships,
    /// openCypher `length(path)`: its edges. Gremlin `count(local)` is `CountLocal`.
    Length,
    /// Args path (or Unbound for an empty one), object, then literal strings, its labels: the longer path.
    PathAppend,
    /// Args path, then literal label strings: the path with these labels added to its last object.
    PathLabel,
    /// Whether no object of the path stands in it twice.
    PathIsSimple,
    /// Makes an openCypher path: args alternate vertex, edge or list of edges (from a variable length pattern), vertex…; the
    /// vertices inside a list of edges are derived.
    MakePath,
    /// Args path, label: list of all objects with the label (Gremlin `select(Pop.all, …)`).
    PathSelectAll,
    // ---- Gremlin maps and tests
    /// Args current value, key: the map's entry if the value is a map that has it, else Unbound.
    MapGet,
    /// Gremlin `select(keys)`: list of a map's keys (an entry's key).
    MapKeys,
    /// Gremlin `select(values)`: list of a map's values (an entry's value).
    MapValues,
    /// Makes a map of any keys: args key, value, key, value…; pairs whose value is Unbound are left out.
    MakeMap,
    /// The items that Gremlin `unfold()` gives: list and set items, map entries, path objects, else the value itself; a list.
    Unfold,
    /// Gremlin TextP (also openCypher STARTS WITH, ENDS WITH, CONTAINS): null if one is no string.
    StartsWith,
    EndsWith,
    Contains,
    /// Gremlin TextP.regex: a match anywhere. openCypher's `=~` is `MatchesWhole`.
    Regex,
    MatchesWhole,
    /// Gremlin local scope, over lists, sets and map values or entries.
    CountLocal,
    SumLocal,
    MinLocal,
    MaxLocal,
    MeanLocal,
    /// Distinct items, order kept.
    DedupLocal,
    /// The ids that a value names for a look-up: a string itself, the distinct strings of a list or set; null for anything else.
    IdTexts,
    /// Args list or map, low, high (-1: no end).
    RangeLocal,
    /// Args list or map, n.
    TailLocal,
    /// Args list (or map, by values), bool descending.
    OrderLocal,
    // ---- scalars and lists (openCypher)
    /// The first argument that is not null.
    Coalesce,
    Size,
    Head,
    Last,
    /// All but the first.
    ListTail,
    Reverse,
    /// `range(start, end[, step])`, both inside.
    Range,
    ToInteger,
    ToFloat,
    ToText,
    ToBoolean,
    Abs,
    Ceil,
    Floor,
    Round,
    Sign,
    Sqrt,
    Exp,
    Log,
    Log10,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Atan2,
    Degrees,
    Radians,
    Pi,
    Euler,
    /// Uniform in [0, 1); anew for each row.
    Rand,
    /// Gremlin `sample()`: args weight, a number that is not negative. A random key; the `n` largest keys of a stream are a
    /// sample in which each has a chance by its weight.
    SampleKey,
    /// Gremlin `sample(local, n)`: args list, set or map, n: so many of its items, or all, in their order.
    SampleLocal,
    Substring,
    Left,
    Right,
    Trim,
    LTrim,
    RTrim,
    ToLower,
    ToUpper,
    Replace,
    Split,
    /// Milliseconds since 1970 at the start of the request.
    Timestamp,
    /// `datetime()` now, or of an ISO 8601 string or epoch milliseconds.
    DateTime,
}

/// Aggregates. Null and Unbound inputs are skipped, except where it says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AggregateKind {
    /// `count(*)`: rows.
    CountRows,
    /// Values that are not null.
    Count,
    /// Sum; integers stay integers (0 of nothing for openCypher; see `AggregateItem::empty_is_unbound`).
    Sum,
    /// Mean as a double.
    Average,
    /// Smallest by the total order.
    Min,
    /// Largest by the total order.
    Max,
    /// A list.
    Collect,
    /// A list with the nulls in it; only Unbound is skipped (Gremlin `fold`).
    CollectAll,
    /// One map of all pairs; args are a key and a value expression (the end of Gremlin `group`: first grouping by keys,
    /// then this).
    CollectMap,
    /// A set of the distinct values.
    CollectSet,
    /// Sample standard deviation.
    StdDev,
    /// Population standard deviation.
    StdDevP,
}

impl Expr {
    /// A literal.
    pub fn literal(value: impl Into<Value>) -> Self {
        Self::Literal(value.into())
    }

    /// A comparison.
    #[must_use]
    pub fn compare(comparison: Comparison, left: Expr, right: Expr) -> Self {
        Self::Compare(comparison, Box::new(left), Box::new(right))
    }

    /// Conjunction of two, flattened.
    #[must_use]
    pub fn and(self, other: Expr) -> Self {
        match (self, other) {
            (Self::And(mut left), Self::And(right)) => {
                left.extend(right);
                Self::And(left)
            }
            (Self::And(mut left), right) => {
                left.push(right);
                Self::And(left)
            }
            (left, Self::And(mut right)) => {
                right.insert(0, left);
                Self::And(right)
            }
            (left, right) => Self::And(vec![left, right]),
        }
    }
}

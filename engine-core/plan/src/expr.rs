//! Expressions, which are computed for each row from its slots. They contain no plans: a subquery is bound to a slot
//! before ([`crate::Op::Bind`]).

use crate::{GremlinType, Register, Slot, TypeTest};
use tidegraph_types::{Str, Value};

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A constant.
    Literal(Value),
    /// A parameter of the request. A missing one is an error.
    Parameter(Str),
    /// The value of a slot.
    Slot(Slot),
    /// The value of a register as it is now; unbound if no row has set it.
    Register(Register),
    /// `base.key`. For an element, its property (null if absent, the value, or a list of several values), or its id if
    /// the key is `~id`. For a map, the entry or null. For null, null. For any other value, a type error.
    Property(Box<Expr>, Str),
    /// `base[index]`: an item of a list by position (negative from the end, null outside), a map's entry by key, or an
    /// element's property by key.
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
    /// Whether the value, which may be null, has one of the types. Never null itself.
    IsType(Box<Expr>, Box<TypeTest>),
    /// Whether the slot is bound. Never null.
    IsBound(Slot),
    /// A comparison, three-valued.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// `item IN list`, three-valued.
    In(Box<Expr>, Box<Expr>),
    /// Whether the edge in the slot is none of the edges in the other slots, each of which holds an edge or a list of
    /// edges. One expression instead of a comparison with each: a pattern of n edges needs n² / 2 comparisons.
    Unused(Slot, Vec<Slot>),
    /// Arithmetic. `+` also joins strings and lists, as in openCypher. Integer overflow and division by zero are
    /// errors.
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// `-x`.
    Negate(Box<Expr>),
    /// Whether a vertex has all of the labels, or an edge has one of them. Null for null.
    HasLabels(Box<Expr>, Vec<Str>),
    /// Whether an element has at least one of the labels (Gremlin `hasLabel`). False for other values.
    HasAnyLabel(Box<Expr>, Vec<Str>),
    /// A list.
    List(Vec<Expr>),
    /// A map with string keys.
    Map(Vec<(Str, Expr)>),
    /// `CASE`: the result of the first branch whose condition is true, or else `otherwise`. The simple form has
    /// conditions that compare with `=`.
    Case {
        /// Condition and result.
        branches: Vec<(Expr, Expr)>,
        /// `ELSE`; null if the text has none.
        otherwise: Box<Expr>,
    },
    /// `[variable IN list WHERE filter | map]`.
    Comprehension {
        /// The local slot of an item.
        variable: Slot,
        /// The list; null gives null.
        list: Box<Expr>,
        /// The condition under which an item is kept.
        filter: Option<Box<Expr>>,
        /// The result for an item; absent: the item itself.
        map: Option<Box<Expr>>,
    },
    /// `all|any|none|single(variable IN list WHERE predicate)`, three-valued.
    Quantified {
        /// The quantifier.
        quantifier: Quantifier,
        /// The local slot of an item.
        variable: Slot,
        /// The list; null gives null.
        list: Box<Expr>,
        /// The predicate.
        predicate: Box<Expr>,
    },
    /// `reduce(accumulator = start, variable IN list | step)`.
    Reduce {
        /// The local slot of the accumulator.
        accumulator: Slot,
        /// The accumulator's first value.
        start: Box<Expr>,
        /// The local slot of an item.
        variable: Slot,
        /// The list.
        list: Box<Expr>,
        /// The accumulator's next value.
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

/// Arithmetic operators. Two integers give a 64-bit integer, or a 32-bit one if both have at most 32 bits and it fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`; truncates for integers.
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

/// Functions. Arguments are in the order of the language's text. Unless a function says otherwise, null gives null, and
/// a wrong type is an error that names function, value and type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "named as in the languages; the comments say what is not obvious")]
pub enum Function {
    // ---- elements; null for null
    /// The user's id of an element, a string. In Gremlin also of a property: owner id, key and value, joined.
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
    /// Gremlin `values(keys…)`: args element, then literal key strings. A list of all values, in the order of the
    /// keys. Without keys, the values of all keys.
    PropertyValues,
    /// Gremlin `properties(keys…)`: the same as `PropertyValues` with `Value::Property` items.
    Properties,
    /// Gremlin `valueMap`: args element, the tokens to include (a bool for all or none, or one symbol), then keys. Values
    /// of vertices are lists, values of edges single.
    ValueMap,
    /// Gremlin `elementMap`: args element, then keys. Values are single (the last of several). The map also has id and
    /// label, and for edges the maps IN and OUT.
    ElementMap,
    /// Gremlin `propertyMap`: args element, then keys: key → list of properties.
    GremlinPropertyMap,
    /// Gremlin `key()` of a property (or entry).
    PropertyKey,
    /// Gremlin `value()` of a property (or entry).
    PropertyValue,
    /// Gremlin `element()` of a property: its owner.
    PropertyOwner,
    /// Source vertex of an edge.
    StartNode,
    /// Target vertex of an edge.
    EndNode,
    /// Args edge, vertex: the end of the edge that is not the vertex; for a loop, the vertex itself.
    OtherNode,
    /// Args element, key: whether the element has the property. False for null.
    HasProperty,
    /// Args value, literal string: the value. A null value is an error with the string as its message (openCypher MERGE
    /// with a null property).
    RequireNotNull,

    // ---- paths
    /// openCypher `nodes(path)`.
    Nodes,
    /// openCypher `relationships(path)`.
    Relationships,
    /// openCypher `length(path)`: the number of its edges. Gremlin `count(local)` is `CountLocal`.
    Length,
    /// Args path (Unbound: an empty path), object, then its labels, literal strings: the path with the object added.
    PathAppend,
    /// Args path, then labels, literal strings: the path with these labels added to its last object.
    PathLabel,
    /// Whether no object occurs in the path twice.
    PathIsSimple,
    /// Whether no object occurs in the path twice, except that its last vertex may be its first.
    PathIsSimpleOrCycle,
    /// Args path, label or null, label or null: the part of a path from the last object with the first label to the last one with
    /// the second label (Gremlin `from` and `to` of a path). A label that the path does not have is an error.
    PathPart,
    /// Args list of paths: their tree (Gremlin `tree`).
    MakeTree,
    /// Args list of edges: the graph of these edges and their ends (Gremlin `subgraph`).
    MakeGraph,
    /// Makes an openCypher path. Args alternate between a vertex and an edge, or a list of edges of a variable length
    /// pattern, whose inner vertices are derived.
    MakePath,
    /// Args path, label: the list of all objects with the label (Gremlin `select(Pop.all, …)`).
    PathSelectAll,
    // ---- Gremlin maps and tests
    /// Args value, key: the entry if the value is a map that has the key, otherwise Unbound.
    MapGet,
    /// Gremlin `select(keys)`: the list of a map's keys, or an entry's key.
    MapKeys,
    /// Gremlin `select(values)`: the list of a map's values, or an entry's value.
    MapValues,
    /// Makes a map with any keys: args key, value, key, value … Pairs whose value is Unbound are left out.
    MakeMap,
    /// Gremlin `unfold()` as a list: the items of a list or set, the entries of a map, the objects of a path, or the
    /// value itself.
    Unfold,
    /// Gremlin `TextP` and openCypher STARTS WITH, ENDS WITH, CONTAINS. Null if an argument is not a string.
    StartsWith,
    EndsWith,
    Contains,
    /// Gremlin `TextP.regex`, which matches anywhere. openCypher `=~` is `MatchesWhole`.
    Regex,
    MatchesWhole,
    /// Gremlin steps with local scope, over lists, sets, and values or entries of maps.
    CountLocal,
    SumLocal,
    MinLocal,
    MaxLocal,
    MeanLocal,
    /// Distinct items in their order.
    DedupLocal,
    /// The ids in a value, for a look-up: a string itself, or the distinct strings of a list or set. Null for other
    /// values.
    IdTexts,
    /// Args list or map, low, high (-1: no end), and whether one item of a list stays a list (false if absent).
    RangeLocal,
    /// Args list or map, n, and the last argument of `RangeLocal`.
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
    /// Args number, places, mode (such as `HALF_UP`).
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
    /// A random number, uniform in [0, 1), for each row.
    Rand,
    /// Gremlin with a seed: arg the place of the step in the text. The next number of Java's generator of this step, uniform in
    /// [0, 1).
    SeededRand,
    /// Gremlin `sample()`: args weight, a number that is not negative. A random key. The rows with the `n` largest keys
    /// are a weighted sample.
    SampleKey,
    /// Gremlin `sample(local, n)`: args list, set or map, n, and with a seed the place of the step in the text. At most `n`
    /// random items, in their order, or with a seed in the order of Java's picks.
    SampleLocal,
    Substring,
    Left,
    Right,
    /// `trim(text[, characters])`: without `characters`, removes white space.
    Trim,
    LTrim,
    RTrim,
    ToLower,
    ToUpper,
    Replace,
    /// Args text, delimiter or list of delimiters.
    Split,
    /// Args text, form (`NFC`, `NFD`, `NFKC`, `NFKD`): the text in the Unicode normal form.
    Normalize,
    /// Args text, form: whether the text is in the form; null if the value is no string.
    IsNormalized,
    /// Whether a list, map or string is empty.
    IsEmpty,
    IsNaN,
    /// Like `ToInteger` and its kin, but null for a value of another type.
    ToIntegerOrNull,
    ToFloatOrNull,
    ToTextOrNull,
    ToBooleanOrNull,
    /// The converted items of a list, null where an item has no counterpart.
    ToIntegerList,
    ToFloatList,
    ToTextList,
    ToBooleanList,
    /// Args value, value: null if they are equal, or else the first.
    NullIf,
    /// The name of a value's type.
    ValueType,
    Sinh,
    Cosh,
    Tanh,
    Coth,
    /// Args list of strings, delimiter: the strings as one text (Neptune `join`).
    Join,
    /// Args text, part, from, to: the position of the first occurrence between two positions, or -1. A `to` of -1 is the
    /// end of the text (Neptune `textIndexOf`).
    TextIndexOf,
    /// Args map, key: the map without the key (Neptune `removeKeyFromMap`).
    RemoveKey,
    /// One map with the entries of all arguments; of equal keys, the last one wins (openCypher `n{.*, key: value}`).
    MergeMaps,
    /// Neptune `collToSet`: the distinct items of a list, in their order.
    ToSet,
    /// Args list, list: the distinct items of the first that the second does not have (Neptune `collSubtract`).
    Subtract,
    /// Args list, list: the distinct items of the first that the second has too (Neptune `collIntersection`).
    Intersect,
    /// Args list, keys, orders, skip, limit: the sorted items. `keys` has a list of values for each item, and `orders` a
    /// map for each of these values, whose entry `order` is `asc` or `desc`. A limit of -1 is no limit (Neptune
    /// `collSort…`).
    SortBy,
    /// The text of a random UUID, for each row.
    RandomUuid,
    /// A random UUID, for each row (Gremlin).
    MakeUuid,
    /// Milliseconds since 1970 of a point in time (Neptune `epochmillis`).
    EpochMillis,
    /// The year, month and day of a point in time, in UTC.
    Year,
    Month,
    Day,
    /// Milliseconds since 1970 at the start of the request.
    Timestamp,
    /// A value of a text, a map, or a value of another temporal type; a `datetime` of epoch milliseconds too.
    Temporal(TemporalType),
    /// The time of the request, in the zone that the argument names, else in UTC.
    Now(TemporalType),
    /// Args unit, value, map: the beginning of the unit that the value is in, with the components of the map. Without a
    /// value, the time of the request.
    Truncate(TemporalType),
    /// The duration from one value to another.
    Between(Between),
    /// Args seconds since 1970, nanoseconds: a point in time.
    FromEpoch,
    /// Args milliseconds since 1970: a point in time.
    FromEpochMillis,
    /// A point of a map of coordinates.
    Point,
    /// The distance of two points.
    Distance,
    /// Args point, lower left corner, upper right corner: whether the point is inside.
    WithinBox,

    // ---- Gremlin's steps over strings, lists, numbers and dates
    /// Gremlin `asString()`: the text of any value, as TinkerPop shows it (`v[1]`, `[a, b]`, `{k=v}`).
    AsText,
    /// Gremlin `concat()`: the strings as one. Nulls are skipped; of nulls alone it is null.
    Concat,
    /// Gremlin `length()`: the number of characters of a string, a 32-bit integer.
    TextLength,
    /// Gremlin `substring()`: args text, start, end (the end of the text if absent). A negative position counts from the
    /// end.
    TextPart,
    /// Gremlin `split()`: args text, separator. Adjacent separators count as one. A null separator is white space.
    SplitWhole,
    /// Gremlin `reverse()`: a reversed string or list; any other value as it is.
    ReverseItems,
    /// Gremlin's steps over lists.
    Lists(ListFunction),
    /// Gremlin's `Operator`: args value so far, next value.
    Operate(Operator),
    /// Gremlin `asNumber()`: a number of the type, or without a type of the narrowest one that has the value.
    AsNumber(Option<GremlinType>),
    /// Gremlin `asBool()`.
    AsBool,
    /// Gremlin `P.typeOf()`: whether a value, which may be null, has the type. Never null.
    TypeOf(GremlinType),
    /// Gremlin `asDate()`: a point in time of an ISO 8601 text, of milliseconds since 1970 or of a temporal value.
    AsDate,
    /// Gremlin `dateAdd()`: args point in time, integer.
    DateAdd(DateUnit),
    /// Gremlin `dateDiff()`: the milliseconds from the second point in time to the first one. Null is 1970.
    DateDiff,
    /// A number as an operand of Gremlin `math()`: a double.
    MathOperand,
    /// A double as a divisor of Gremlin `math()`. Zero is an error.
    MathDivisor,
    Cbrt,
    /// `ln(1 + x)`
    Log1p,
    /// `exp(x) - 1`
    Expm1,
}

/// Gremlin's steps over a list, set or path, and over another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ListFunction {
    /// `combine`: a list of all items of both.
    Combine,
    /// `difference`: the set of the items that the other one does not have.
    Difference,
    /// `disjunct`: the set of the items that only one of both has.
    Disjunct,
    /// `intersect`: the set of the items that both have.
    Intersect,
    /// `merge`: the set of the items of both; of two maps, one map.
    Merge,
    /// `product`: a list of all pairs.
    Product,
    /// The items of one list, set or path as a list, for `conjoin`.
    Items,
    /// `index`: a list of pairs of item and position. A value that is no collection is its only item.
    Index,
    /// `index` with maps: a map from position to item.
    IndexMap,
}

/// Gremlin's operators, which join a value with the next one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operator {
    /// The sum of two numbers. Here and in the next three a null leaves the first number as it is.
    Sum,
    /// The sum of two integers as a 64-bit integer.
    SumLong,
    /// The difference.
    Minus,
    /// The product.
    Mult,
    /// The quotient; of two integers it is one.
    Div,
    /// The smaller one; a null is left out.
    Min,
    /// The larger one; a null is left out.
    Max,
    /// The next value.
    Assign,
    /// Whether both are true.
    And,
    /// Whether one is true.
    Or,
    /// The items of both lists, of both sets, or the entries of both maps.
    AddAll,
}

/// Units of Gremlin `dateAdd()`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "named as in the language")]
pub enum DateUnit {
    Second,
    Minute,
    Hour,
    Day,
}

/// Types with a constructor in openCypher.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TemporalType {
    /// `date`
    Date,
    /// `localtime`
    LocalTime,
    /// `time`: a time of day with an offset
    Time,
    /// `localdatetime`
    LocalDateTime,
    /// `datetime`: a point in time
    DateTime,
    /// `duration`
    Duration,
}

/// Units of a duration between two values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Between {
    /// Months, days and seconds.
    Parts,
    /// Whole months.
    Months,
    /// Whole days.
    Days,
    /// Seconds.
    Seconds,
}

/// Aggregates. They skip null and Unbound inputs, unless an aggregate says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AggregateKind {
    /// `count(*)`: the number of rows.
    CountRows,
    /// The number of values that are not null.
    Count,
    /// The sum; integers stay integers. Without input 0 in openCypher; see `AggregateItem::empty_is_unbound`.
    Sum,
    /// The sum; integers keep the widest of their types as far as it holds the sum. Of nulls alone it is null.
    SumOfTypes,
    /// The mean, a double.
    Average,
    /// The mean of values that were added before: args their sum, their number.
    AverageOfSums,
    /// The smallest value of the total order.
    Min,
    /// The largest value of the total order.
    Max,
    /// The first value that is not null, in the order of the rows.
    First,
    /// A list.
    Collect,
    /// A list that includes nulls and skips only Unbound (Gremlin `fold`).
    CollectAll,
    /// One map of all pairs: args key, value. It ends a Gremlin `group`, which first groups by keys.
    CollectMap,
    /// A set of the distinct values.
    CollectSet,
    /// The sample standard deviation.
    StdDev,
    /// The population standard deviation.
    StdDevP,
    /// The value below which a part of the values lies, interpolated: args value, part from 0 to 1.
    PercentileCont,
    /// The value at or below which a part of the values lies, one of the inputs: args value, part from 0 to 1.
    PercentileDisc,
}

impl Expr {
    /// Makes a literal.
    pub fn literal(value: impl Into<Value>) -> Self {
        Self::Literal(value.into())
    }

    /// Makes a comparison.
    #[must_use]
    pub fn compare(comparison: Comparison, left: Expr, right: Expr) -> Self {
        Self::Compare(comparison, Box::new(left), Box::new(right))
    }

    /// Joins two conditions into one flat conjunction.
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

//! Operators: rows in, rows out.

use crate::pattern::Shortest;
use crate::{AggregateKind, Expr, Length, MatchPattern};
use std::fmt;
use tidegraph_types::{Cardinality, Direction, Str};

/// Number of a slot in a row. Slots are numbered from 0 within one plan, subplans included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u32);

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.0)
    }
}

/// A whole request.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The operators.
    pub root: Op,
    /// How many slots there are; all numbers are below.
    pub slots: u32,
    /// What is answered, in order; no columns: the request answers nothing.
    pub columns: Vec<Column>,
}

/// A column of the answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Its name.
    pub name: Str,
    /// Where its value stands.
    pub slot: Slot,
}

/// Pushed-down conditions of a vertex scan. All must hold; each is exact for scalar operands.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScanFilter {
    /// For each group, at least one of its labels.
    pub labels: Vec<Vec<Str>>,
    /// Any value of the key passes. The expressions must not use slots of the row being made.
    pub predicates: Vec<(Str, ScanTest)>,
    /// Conditions that only the scan checks.
    pub conditions: Vec<ScanCondition>,
}

/// A condition that a scan checks so that no filter need follow. Where its operands are no scalars, or cannot be
/// computed, the scan checks `condition` for each vertex instead of the test.
#[derive(Clone, PartialEq, Debug)]
pub struct ScanCondition {
    /// Property key.
    pub key: Str,
    /// What storage tests. The expressions must not use slots of the row being made.
    pub test: ScanTest,
    /// The value that passes must be the only one of the key (openCypher, to which several are a list).
    pub sole: bool,
    /// The condition itself, over the slot of the vertex.
    pub condition: Expr,
}

/// A pushed-down test. Its operands are evaluated for each outer row; a null operand passes nothing. An operand that is
/// no scalar (a list, say) passes everything: whoever pushes down an operand of unknown type keeps the filter as well.
#[derive(Clone, PartialEq, Debug)]
pub enum ScanTest {
    /// The key has a value.
    Exists,
    /// Equal to a scalar.
    Equals(Expr),
    /// Equal to an item of a list.
    Within(Expr),
    /// Within bounds (operand, whether the bound itself passes).
    Range {
        /// Lower bound.
        low: Option<(Expr, bool)>,
        /// Upper bound.
        high: Option<(Expr, bool)>,
    },
    /// A string with this prefix.
    StartsWith(Expr),
}

/// One subplan of several, with the condition under which a row takes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Branch {
    /// The first branch whose condition is true is taken.
    pub condition: Expr,
    /// What it does.
    pub plan: Op,
}

/// A condition inside `repeat`: true for a row when the subplan yields a row for it.
#[derive(Clone, PartialEq, Debug)]
pub struct RepeatTest {
    /// Tested before the body (while-do) instead of after it (do-while).
    pub before: bool,
    /// The condition; `Op::Argument` alone is always true.
    pub plan: Box<Op>,
}

/// What `Apply` does with the rows of its subplan.
#[derive(Clone, PartialEq, Debug)]
pub enum ApplyKind {
    /// Yields the subplan's rows (which carry the outer slots).
    Cross,
    /// As `Cross`; an outer row without inner rows is yielded with these slots null (OPTIONAL MATCH).
    Optional(Vec<Slot>),
    /// Yields outer rows that have an inner row.
    Semi,
    /// Yields outer rows that have no inner row.
    Anti,
    /// Runs the subplan for its effects on the graph and yields the outer rows.
    Discard,
}

/// What `Bind` binds for each outer row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BindKind {
    /// Whether there is a row.
    Exists,
    /// The slot's value in the first row; Unbound if there is none.
    First(Slot),
    /// List of the slot's values in all rows.
    Collect(Slot),
    /// Number of rows.
    Count,
}

/// The total orders of `types::order`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TotalOrder {
    /// openCypher's: null last.
    OpenCypher,
    /// Gremlin's: null first.
    Gremlin,
}

/// Key of a sort.
#[derive(Clone, PartialEq, Debug)]
pub struct SortKey {
    /// What to sort by.
    pub expr: Expr,
    /// How values of several types are ordered.
    pub order: TotalOrder,
    /// Largest first.
    pub descending: bool,
}

/// One aggregate.
#[derive(Clone, PartialEq, Debug)]
pub struct AggregateItem {
    /// Where the result goes.
    pub out: Slot,
    /// Which.
    pub kind: AggregateKind,
    /// Arguments: none for `CountRows`, two for `CollectMap`, else one.
    pub args: Vec<Expr>,
    /// Only distinct values.
    pub distinct: bool,
    /// With no input: no row at all (Gremlin sum, min, max, mean) instead of 0 or null (openCypher). Only looked at when
    /// there are no keys.
    pub empty_is_unbound: bool,
}

/// A property written with a new element.
#[derive(Clone, PartialEq, Debug)]
pub struct PropertyAssignment {
    /// Property key: an expression that must give a string.
    pub key: Expr,
    /// The value. Null writes nothing when creating, and removes the key when setting.
    pub value: Expr,
    /// Single replaces the values that are there; ignored for edges and for properties of vertices.
    pub cardinality: Cardinality,
    /// Meta-properties of the value: keys and values; a null value removes. Only of `SetProperties`, and of vertices.
    pub meta: Vec<(Expr, Expr)>,
}

impl PropertyAssignment {
    /// Key and value, and then those of each meta-property.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        [&self.key, &self.value].into_iter().chain(self.meta.iter().flat_map(|(key, value)| [key, value]))
    }
}

/// An operator. `input` is where its rows come from.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "fields of one-line operators are explained by the operator's comment")]
pub enum Op {
    /// At the root: one row with nothing bound. In a subplan: the outer rows.
    Argument,
    /// For each input row, a row for each vertex that passes. `columns`: binds these properties of the vertex too (null,
    /// the value, or a list if it has several), as a pass found that they are used.
    ScanVertices { input: Box<Op>, out: Slot, filter: ScanFilter, columns: Vec<(Str, Slot)> },
    /// For each input row, a row for each edge of one of the labels (none given: any).
    ScanEdges { input: Box<Op>, out: Slot, labels: Vec<Str> },
    /// For each input row, a row for each vertex named by `ids`: an id, a vertex, or a list of them; numbers count as
    /// their decimal text. Unknown ids give no row, null neither.
    LookupVertices { input: Box<Op>, ids: Expr, out: Slot },
    /// The same for edges.
    LookupEdges { input: Box<Op>, ids: Expr, out: Slot },
    /// A row for each edge at `from` with its other end. `from` null: no row; no vertex: a type error.
    Expand {
        /// Rows in.
        input: Box<Op>,
        /// Vertex to start from.
        from: Slot,
        /// Which way.
        direction: Direction,
        /// One of these labels; empty: any.
        labels: Vec<Str>,
        /// Where the edge goes.
        edge: Option<Slot>,
        /// Where the other end goes.
        to: Option<Slot>,
        /// `to` is bound already: only edges that end there are kept.
        into: bool,
        /// With `Both`: a self-loop once (openCypher) instead of twice (Gremlin).
        loops_once: bool,
        /// Input slots that later operators use; `None`: all. Set by a pass.
        keep: Option<Vec<Slot>>,
    },
    /// A row for each walk of `length` edges from `from` in which no edge stands twice.
    VarExpand {
        /// Rows in.
        input: Box<Op>,
        /// Vertex to start from.
        from: Slot,
        /// Which way.
        direction: Direction,
        /// One of these labels; empty: any.
        labels: Vec<Str>,
        /// How many edges.
        length: Length,
        /// Where the list of edges goes.
        edges: Option<Slot>,
        /// Where the last vertex goes.
        to: Slot,
        /// `to` is bound already.
        into: bool,
        /// Each edge must satisfy this: local slot of the edge, predicate.
        edge_filter: Option<(Slot, Box<Expr>)>,
        /// Edges of these slots (an edge or a list) must not be used.
        exclude: Vec<Slot>,
    },
    /// Shortest walk (or all shortest) between two bound vertices; no row where there is none.
    ShortestPath {
        /// Rows in.
        input: Box<Op>,
        /// First vertex.
        from: Slot,
        /// Last vertex.
        to: Slot,
        /// Which way.
        direction: Direction,
        /// One of these labels; empty: any.
        labels: Vec<Str>,
        /// How many edges.
        length: Length,
        /// One or all.
        which: Shortest,
        /// Where the list of edges goes.
        edges: Slot,
        /// Each edge must satisfy this: local slot of the edge, predicate.
        edge_filter: Option<(Slot, Box<Expr>)>,
    },
    /// A pattern whose order is not chosen yet. `passes::match_order` replaces it; the executor refuses it.
    Match { input: Box<Op>, pattern: MatchPattern },
    /// Rows for which the predicate is true.
    Filter { input: Box<Op>, predicate: Expr },
    /// Binds slots, one after the other (later ones see earlier ones).
    Let { input: Box<Op>, bindings: Vec<(Slot, Expr)> },
    /// Keeps these slots only; the rest becomes unbound.
    Keep { input: Box<Op>, slots: Vec<Slot> },
    /// A row for each item of a list (set). Null: no row. Any other value: one row with it.
    Unwind { input: Box<Op>, list: Expr, out: Slot },
    /// Groups by keys; only keys and aggregates are bound afterwards. Without keys there is exactly one row (for each
    /// origin) even if there is no input, unless `empty_is_unbound` holds.
    Aggregate { input: Box<Op>, keys: Vec<(Slot, Expr)>, items: Vec<AggregateItem> },
    /// First row of each group of rows with equivalent values.
    Distinct { input: Box<Op>, by: Vec<Expr> },
    /// Sorted rows; stable.
    Sort { input: Box<Op>, keys: Vec<SortKey> },
    /// Without the first `skip`, at most `limit`. Expressions must not use slots; negative or no integer: an error.
    Slice { input: Box<Op>, skip: Option<Expr>, limit: Option<Expr> },
    /// The first `count` of the sorted rows. Unlike a slice of a sort it begins anew in each round of a repeat.
    Top { input: Box<Op>, keys: Vec<SortKey>, count: Expr },
    /// The last `count` rows.
    Tail { input: Box<Op>, count: Expr },
    /// All rows are read before the first is yielded.
    Eager { input: Box<Op> },
    /// Runs a subplan for each row and yields by kind.
    Apply { input: Box<Op>, plan: Box<Op>, kind: ApplyKind },
    /// Runs a subplan for each row and binds its result.
    Bind { input: Box<Op>, plan: Box<Op>, out: Slot, kind: BindKind },
    /// Rows of all subplans, for each row in their order.
    Union { input: Box<Op>, branches: Vec<Op> },
    /// Rows of the first subplan that yields any, for each row.
    Coalesce { input: Box<Op>, branches: Vec<Op> },
    /// Each row takes the first branch whose condition is true, else `otherwise`; without it the row is dropped.
    Choose { input: Box<Op>, branches: Vec<Branch>, otherwise: Option<Box<Op>> },
    /// Runs the body over and over. The body reads and leaves the same slots. State of stateful operators in the body
    /// (distinct, slice) lasts over all rounds.
    Repeat {
        /// Rows in.
        input: Box<Op>,
        /// One round.
        body: Box<Op>,
        /// Leaves the loop when true.
        until: Option<RepeatTest>,
        /// Also yields the row when true, while it goes on.
        emit: Option<RepeatTest>,
        /// Leaves after this many rounds; evaluated once. Negative or 0: as 0 rounds when `times_before`, else 1.
        times: Option<Expr>,
        /// `times` was written before `repeat` (while-do).
        times_before: bool,
        /// Slot of the round's number (Gremlin `loops()`): 0 in the first body, after a body the number of rounds done.
        loops: Slot,
    },
    /// Makes a vertex for each row.
    CreateVertex {
        /// Rows in.
        input: Box<Op>,
        /// Where it goes.
        out: Slot,
        /// Its id: a string (numbers count as their decimal text); absent or null: a UUID. An existing id is an error.
        id: Option<Expr>,
        /// Its labels, strings; a list expression adds all its items. None: `vertex` is for the front end to say.
        labels: Vec<Expr>,
        /// Its properties.
        properties: Vec<PropertyAssignment>,
        /// More properties, from a map.
        properties_from: Option<Expr>,
    },
    /// Makes an edge for each row.
    CreateEdge {
        /// Rows in.
        input: Box<Op>,
        /// Where it goes.
        out: Slot,
        /// Its id, as for a vertex; absent: a generated one.
        id: Option<Expr>,
        /// Its label, a string.
        label: Expr,
        /// Source vertex.
        from: Expr,
        /// Target vertex.
        to: Expr,
        /// Its properties.
        properties: Vec<PropertyAssignment>,
        /// More properties, from a map.
        properties_from: Option<Expr>,
    },
    /// Writes properties of an element, or meta-properties of a property of a vertex. Null element: nothing happens. With a null value the key is removed.
    SetProperties { input: Box<Op>, element: Expr, properties: Vec<PropertyAssignment> },
    /// Writes all entries of a map (or of another element's properties). `replace`: other keys are removed.
    SetPropertyMap { input: Box<Op>, element: Expr, map: Expr, replace: bool },
    /// Adds or removes labels of a vertex.
    SetLabels { input: Box<Op>, element: Expr, add: Vec<Str>, remove: Vec<Str> },
    /// Deletes vertices, edges, paths, properties, or lists of them. `detach`: edges of a vertex too; else a vertex that
    /// still has edges at the end of the request is an error. Null: nothing happens.
    Delete { input: Box<Op>, targets: Vec<Expr>, detach: bool },
    /// For each row, one after the other: the rows of `matching` or, if there are none, of `create`. Each sees what the
    /// rows before it wrote.
    Merge { input: Box<Op>, matching: Box<Op>, create: Box<Op> },
}

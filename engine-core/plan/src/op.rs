//! Operators: rows in, rows out.

use crate::digest::Digest;
use crate::pattern::{Selection, Shortest};
use crate::{AggregateKind, Expr, Length, MatchPattern, Operator, Procedure};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::{Cardinality, Direction, GraphFormat, Str};

/// The number of a slot in a row. The slots of a plan, subplans included, are numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u32);

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.0)
    }
}

/// The number of a register: a value of the whole request, to which rows add (Gremlin's side effects).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Register(pub u32);

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// What a row does to a register. A row whose value is unbound does nothing.
#[derive(Clone, PartialEq, Debug)]
pub enum Collected {
    /// The value becomes that of the register. A register that was never set is unbound.
    Start(Expr),
    /// The value becomes one more item of a list or set.
    Item(Expr),
    /// The register's value and the row's are joined.
    Joined(Operator, Expr),
    /// The list of the values of all rows, or of one row unless the operator is eager, becomes the register's value.
    Replace(Expr),
    /// The entry of the key, a number, grows by one.
    Count(Expr),
    /// The value becomes one more item of the list that is the entry of the key. Without a value, the key has an entry all
    /// the same.
    Group {
        /// The key.
        key: Expr,
        /// The value.
        value: Expr,
    },
}

impl Collected {
    /// Returns the expressions that are computed for each row.
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Self::Start(value)
            | Self::Item(value)
            | Self::Joined(_, value)
            | Self::Replace(value)
            | Self::Count(value) => vec![value],
            Self::Group { key, value } => vec![key, value],
        }
    }
}

/// The plan of a request.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The last operator; the others are its inputs.
    pub root: Op,
    /// Number of slots; all slots have smaller numbers.
    pub slots: u32,
    /// Columns of the answer, in order. None: the request has no answer.
    pub columns: Vec<Column>,
    /// The time limit that the text sets for itself, if it does.
    pub timeout: Option<Duration>,
    /// Seed of the random numbers of its functions and samples, if the text says so.
    pub seed: Option<u64>,
    /// Whether elements of the answer have their ids and labels, but no properties.
    pub references: bool,
}

/// A column of the answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Name of the column in the answer.
    pub name: Str,
    /// The slot of its value.
    pub slot: Slot,
}

/// Conditions that a vertex scan checks. All must hold. Each is exact for scalar operands.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScanFilter {
    /// Groups of labels; a vertex must have at least one label of each group.
    pub labels: Vec<Vec<Str>>,
    /// Keys with tests; one value of the key must pass. The operands must not use slots that the scan binds.
    pub predicates: Vec<(Str, ScanTest)>,
    /// Conditions that only the scan checks.
    pub conditions: Vec<ScanCondition>,
}

/// A condition that a scan checks, so that no filter need follow. If an operand is not a scalar or cannot be computed,
/// the scan evaluates `condition` for each vertex instead of the test.
#[derive(Clone, PartialEq, Debug)]
pub struct ScanCondition {
    /// Property key.
    pub key: Str,
    /// The test that storage makes. The operands must not use slots that the scan binds.
    pub test: ScanTest,
    /// Whether the value that passes must be the only one of the key, because several values are a list in openCypher.
    pub sole: bool,
    /// The condition over the slot of the vertex.
    pub condition: Expr,
}

/// A test that a scan makes. Its operands are evaluated for each input row. A null operand passes nothing. An operand
/// other than a scalar (such as a list) passes everything, so that an operand of unknown type needs a filter after the
/// scan too.
#[derive(Clone, PartialEq, Debug)]
pub enum ScanTest {
    /// The key has a value.
    Exists,
    /// Equal to a scalar.
    Equals(Expr),
    /// Equal to an item of a list.
    Within(Expr),
    /// Between two bounds; `true`: a value equal to the bound passes.
    Range {
        /// Lower bound.
        low: Option<(Expr, bool)>,
        /// Upper bound.
        high: Option<(Expr, bool)>,
    },
    /// A string with this prefix.
    StartsWith(Expr),
}

/// A subplan of `Choose`, with the condition under which a row takes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Branch {
    /// A row takes the first branch whose condition is true.
    pub condition: Expr,
    /// The subplan.
    pub plan: Op,
}

/// A condition of `Repeat`. It is true for a row if the subplan yields a row for it.
#[derive(Clone, PartialEq, Debug)]
pub struct RepeatTest {
    /// Whether the test runs before the body (while-do) or after it (do-while).
    pub before: bool,
    /// The condition; `Op::Argument` alone is always true.
    pub plan: Box<Op>,
}

/// A part of the walks that [`Op::PathSearch`] finds: one edge, or what a quantifier repeats.
#[derive(Clone, PartialEq, Debug)]
pub struct PathPart {
    /// A row for each repetition from the vertex in `first`.
    pub body: Op,
    /// The slot where a repetition starts, bound in the rows that the body gets.
    pub first: Slot,
    /// The slot where a repetition ends.
    pub last: Slot,
    /// Slots of the edges of a repetition, from left to right; at least one.
    pub steps: Vec<Slot>,
    /// Bounds of the number of repetitions; `None`: the part is one edge.
    pub length: Option<Length>,
    /// The slot of the edge, or of the list of all edges of a part that is repeated.
    pub edges: Option<Slot>,
    /// Slots of a repetition, each with the slot of the list of its values.
    pub groups: Vec<(Slot, Slot)>,
    /// The slot of the vertex where the part ends.
    pub end: Slot,
    /// A condition on this vertex.
    pub check: Option<Expr>,
}

/// The use that `Apply` makes of the rows of its subplan.
#[derive(Clone, PartialEq, Debug)]
pub enum ApplyKind {
    /// Yields the subplan's rows (which carry the outer slots).
    Cross,
    /// Like `Cross`, but also yields outer rows without inner rows, with these slots null (OPTIONAL MATCH).
    Optional(Vec<Slot>),
    /// Yields outer rows that have an inner row.
    Semi,
    /// Yields outer rows that have no inner row.
    Anti,
    /// Runs the subplan for its effects on the graph and yields the outer rows.
    Discard,
}

/// What [`Op::Draw`] does with its rows.
#[derive(Clone, PartialEq, Debug)]
pub enum Drawn {
    /// Yields all of them, in the order that `Collections.shuffle` of Java makes.
    Shuffled,
    /// Yields at most `count` of them, in the order of the picks. A row is picked with a probability that its weight says, which
    /// is a number that is not negative.
    Sample {
        /// The number of rows.
        count: Expr,
        /// The weight of a row.
        weight: Expr,
    },
}

/// The value that `Bind` binds for each outer row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BindKind {
    /// Whether there is a row.
    Exists,
    /// The slot's value in the first row; unbound if there is no row.
    First(Slot),
    /// The list of the slot's values in all rows.
    Collect(Slot),
    /// The number of rows.
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
    /// The expression to sort by.
    pub expr: Expr,
    /// The order of values, also of different types.
    pub order: TotalOrder,
    /// Whether the largest value comes first.
    pub descending: bool,
}

/// One aggregate.
#[derive(Clone, PartialEq, Debug)]
pub struct AggregateItem {
    /// The slot of the result.
    pub out: Slot,
    /// The function.
    pub kind: AggregateKind,
    /// Arguments: none for `CountRows`, two for `CollectMap`, `AverageOfSums` and percentiles, else one; and then the weight,
    /// if there is one.
    pub args: Vec<Expr>,
    /// Whether equal values count once.
    pub distinct: bool,
    /// Whether the aggregate yields no row without input (Gremlin `sum`, `min`, `max`, `mean`), or 0 or null
    /// (openCypher). This matters only without keys.
    pub empty_is_unbound: bool,
    /// Whether a last argument says how many equal rows a row stands for ([`Op::Bulk`]); unbound means one.
    pub weighted: bool,
}

/// A write of a property.
#[derive(Clone, PartialEq, Debug)]
pub struct PropertyAssignment {
    /// The property key, an expression that must give a string.
    pub key: Expr,
    /// The value. Null writes nothing when creating, and removes the key when setting.
    pub value: Expr,
    /// `Single` replaces existing values. It is ignored for edges and for properties of vertices.
    pub cardinality: Cardinality,
    /// Keys and values of meta-properties; a null value removes the key. Only for `SetProperties` on vertices.
    pub meta: Vec<(Expr, Expr)>,
}

impl PropertyAssignment {
    /// Returns the key and the value, and then those of each meta-property.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        [&self.key, &self.value].into_iter().chain(self.meta.iter().flat_map(|(key, value)| [key, value]))
    }
}

/// A property that a scan of vertices binds to a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScanColumn {
    /// Key of the property.
    pub key: Str,
    /// Where it is bound.
    pub slot: Slot,
    /// Whether the column holds what an `Unwind` takes apart: null, one value, or a list of the values, in which a value
    /// that is a list is an item. Otherwise it holds null, the value, or a list of several values.
    pub each: bool,
}

/// The edges of one bound vertex of an [`Op::Intersect`].
#[derive(Clone, PartialEq, Debug)]
pub struct Arm {
    /// The bound vertex.
    pub from: Slot,
    /// The direction of the edges, from the bound vertex.
    pub direction: Direction,
    /// Labels of edges; empty: any label.
    pub labels: Vec<Str>,
    /// The slot of the edge.
    pub edge: Option<Slot>,
    /// Whether a self-loop gives one row (openCypher) or two (Gremlin) in the direction `Both`.
    pub loops_once: bool,
}

/// A step of a pattern that is counted, and the steps of the pattern from its end on: the edges of a vertex, each as many
/// times as the product of what the further steps count at its other end.
#[derive(Clone, PartialEq, Debug)]
pub struct CountStep {
    /// The direction of the edges.
    pub direction: Direction,
    /// Labels of edges; empty: any label.
    pub labels: Vec<Str>,
    /// Whether a self-loop counts once (openCypher) or twice (Gremlin) in the direction `Both`.
    pub loops_once: bool,
    /// A local slot for the vertex at the other end, and a condition on it, which uses no other slot.
    pub condition: Option<(Slot, Box<Expr>)>,
    /// The steps from the other end on.
    pub then: Vec<CountStep>,
    /// Whether a vertex without any counts once (OPTIONAL MATCH).
    pub optional: bool,
}

/// What an [`Op::Intersect`] counts.
#[derive(Clone, PartialEq, Debug)]
pub struct CountChoices {
    /// The slot of the number.
    pub out: Slot,
    /// For each arm, the slots of edges, or of lists of edges, that it must not use.
    pub except: Vec<Vec<Slot>>,
    /// Pairs of arms that must not use the same edge.
    pub differ: Vec<(usize, usize)>,
}

/// An algorithm over all vertices of a graph. It follows edges from one end to the other and computes a value for each vertex.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Algorithm {
    /// Computes a rank, a floating-point number. In each round a vertex passes a part of its rank on along its edges; the rest
    /// is spread over all vertices. The algorithm ends early when the ranks hardly change.
    PageRank {
        /// The part of the rank that edges pass on, from 0 to 1.
        damping: f64,
        /// Number of rounds after the first distribution.
        rounds: u32,
    },
    /// Computes a cluster, named by the id of a vertex. In each round a vertex joins the cluster with most votes: its own vote
    /// and those of the vertices whose edges lead to it. The algorithm ends early when no vertex changes its cluster.
    PeerPressure {
        /// Largest number of rounds.
        rounds: u32,
    },
    /// Computes a component, named by the least id among the vertex and all vertices from which edges lead to it.
    ConnectedComponent,
}

/// An operator. Its rows come from `input`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "fields of one-line operators are explained by the operator's comment")]
pub enum Op {
    /// At the root: one row with nothing bound. In a subplan: the outer rows.
    Argument,
    /// For each input row, a row for each vertex that passes. `columns`, which a pass sets: properties of the vertex to
    /// bind too.
    ScanVertices { input: Box<Op>, out: Slot, filter: ScanFilter, columns: Vec<ScanColumn> },
    /// Fewer rows than the vertices that pass a scan, made where the vertices are stored. It begins a plan.
    DigestScan {
        /// `Op::Argument`.
        input: Box<Op>,
        /// Selects the vertices.
        filter: ScanFilter,
        /// What the rows are.
        digest: Digest,
        /// Rows with the same slots that say the same, made of every vertex in turn. The executor takes them if the request
        /// has changed the graph or records what it reads, if storage cannot test all conditions, or if memory is short.
        rows: Box<Op>,
    },
    /// For each input row, a row for each edge with one of the labels. No labels: any edge.
    ScanEdges { input: Box<Op>, out: Slot, labels: Vec<Str> },
    /// For each input row, a row for each vertex of `ids`: an id, a vertex, or a list of them. A number stands for its
    /// decimal text. Unknown ids and null give no row.
    LookupVertices { input: Box<Op>, ids: Expr, out: Slot },
    /// Like `LookupVertices`, for edges.
    LookupEdges { input: Box<Op>, ids: Expr, out: Slot },
    /// A row for each edge at `from`, with its other end. A null `from` gives no row; any other value than a vertex is
    /// a type error.
    Expand {
        /// The input.
        input: Box<Op>,
        /// The vertex to start from.
        from: Slot,
        /// The direction of the edges.
        direction: Direction,
        /// Labels of edges; empty: any label.
        labels: Vec<Str>,
        /// The slot of the edge.
        edge: Option<Slot>,
        /// The slot of the other end.
        to: Option<Slot>,
        /// Whether `to` is already bound: then only edges that end there pass.
        into: bool,
        /// Whether a self-loop gives one row (openCypher) or two (Gremlin) in the direction `Both`.
        loops_once: bool,
        /// Input slots that later operators use, as a pass finds; `None`: all slots.
        keep: Option<Vec<Slot>>,
    },
    /// The rows whose vertex is the start of a step, with the number of times that it is: see [`CountStep`].
    CountEdges {
        /// The input.
        input: Box<Op>,
        /// The vertex.
        from: Slot,
        /// The step that is counted.
        step: CountStep,
        /// Slots of edges, or of lists of edges, that are not counted.
        except: Vec<Slot>,
        /// Slots of vertices; edges to them are not counted. A null in one of them leaves no edge.
        except_ends: Vec<Slot>,
        /// The slot of the number.
        out: Slot,
    },
    /// A row for each vertex that an edge of each arm joins to the vertex of that arm, and for each choice of such edges:
    /// the last steps of cycles. With `count`, a row for each input row that has choices, with their number.
    Intersect {
        /// The input.
        input: Box<Op>,
        /// The bound vertices, at least two, and the edges from them.
        arms: Vec<Arm>,
        /// The slot of the vertex where the edges meet.
        to: Slot,
        /// The same rows by one step after the other. The executor takes them where reading the lists of all arms would
        /// cost more.
        steps: Box<Op>,
        /// Counts the choices instead.
        count: Option<CountChoices>,
        /// Input slots that later operators use, as a pass finds; `None`: all slots.
        keep: Option<Vec<Slot>>,
    },
    /// A row for each walk of `length` edges from `from` that repeats no edge.
    VarExpand {
        /// The input.
        input: Box<Op>,
        /// The vertex to start from.
        from: Slot,
        /// The direction of the edges.
        direction: Direction,
        /// Labels of edges; empty: any label.
        labels: Vec<Str>,
        /// Bounds of the number of edges.
        length: Length,
        /// The slot of the list of edges.
        edges: Option<Slot>,
        /// The slot of the last vertex.
        to: Slot,
        /// Whether `to` is already bound.
        into: bool,
        /// A local slot for an edge, and a predicate that each edge must satisfy.
        edge_filter: Option<(Slot, Box<Expr>)>,
        /// Slots of edges, or of lists of edges, that the walk must not use.
        exclude: Vec<Slot>,
        /// Whether each end of a row is yielded once, however many walks lead to it, as a pass finds. `edges` is `None`
        /// then, and the least length at most 1.
        ends_only: bool,
    },
    /// A row for each walk from `from` that repeats `body`.
    QuantifiedPath {
        /// The input.
        input: Box<Op>,
        /// The vertex to start from.
        from: Slot,
        /// The slot of the last vertex.
        to: Slot,
        /// Whether `to` is already bound.
        into: bool,
        /// A row for each repetition from the vertex in `first`.
        body: Box<Op>,
        /// The slot where a repetition starts, bound in the rows that the body gets.
        first: Slot,
        /// The slot where a repetition ends.
        last: Slot,
        /// Slots of the edges of a repetition, from left to right.
        steps: Vec<Slot>,
        /// Bounds of the number of repetitions.
        length: Length,
        /// Whether the walk starts at the right end of the pattern, so that its last repetition comes first in lists.
        reversed: bool,
        /// The slot of the list of all edges.
        edges: Option<Slot>,
        /// Slots of a repetition, each with the slot of the list of its values.
        groups: Vec<(Slot, Slot)>,
        /// Slots of edges, or of lists of edges, that the walk must not use.
        exclude: Vec<Slot>,
        /// Whether a walk may have an edge twice.
        repeats: bool,
        /// Which of the walks between two vertices are yielded; `None`: all.
        selection: Option<Selection>,
        /// Input slots that the body uses, as a pass finds; `None`: all slots.
        uses: Option<Vec<Slot>>,
    },
    /// A row for each walk that is chosen among those between two vertices: as many of the shortest as `count`, or all that
    /// have one of the `count` smallest lengths (`groups`). A walk goes through the parts, one after the other. A search finds
    /// them, which reads the edges of each vertex once for each place in the parts.
    PathSearch {
        /// The input.
        input: Box<Op>,
        /// The vertex to start from.
        from: Slot,
        /// The slot of the last vertex.
        to: Slot,
        /// Whether `to` is already bound.
        into: bool,
        /// The parts, in the order of the search.
        parts: Vec<PathPart>,
        /// Whether the search starts at the right end of the pattern, so that what it finds last comes first in lists.
        reversed: bool,
        /// Whether a walk may have an edge twice.
        repeats: bool,
        /// The largest number of walks, or of their lengths.
        count: u32,
        /// Whether `count` is about lengths.
        groups: bool,
        /// Input slots that bodies and checks use, as a pass finds; `None`: all slots.
        uses: Option<Vec<Slot>>,
    },
    /// The shortest walk, or all shortest walks, between two bound vertices. Without one, no row.
    ShortestPath {
        /// The input.
        input: Box<Op>,
        /// The first vertex.
        from: Slot,
        /// The last vertex.
        to: Slot,
        /// The direction of the edges.
        direction: Direction,
        /// Labels of edges; empty: any label.
        labels: Vec<Str>,
        /// Bounds of the number of edges.
        length: Length,
        /// One or all.
        which: Shortest,
        /// The slot of the list of edges.
        edges: Slot,
        /// A local slot for an edge, and a predicate that each edge must satisfy.
        edge_filter: Option<(Slot, Box<Expr>)>,
    },
    /// A row for each path of the least sum of distances between two bound vertices, and a path of no edges from a vertex to
    /// itself. No vertex comes twice in a path. Without one, no row.
    NearestPath {
        /// The input.
        input: Box<Op>,
        /// The first vertex.
        from: Slot,
        /// The last vertex.
        to: Slot,
        /// The edges at a vertex: rows for the vertex in `at`.
        steps: Box<Op>,
        /// The vertex of the rows that `steps` gets.
        at: Slot,
        /// The slot of the edge; the path goes on at its other end.
        edge: Slot,
        /// The slot of its distance, a number that is not negative.
        distance: Slot,
        /// The largest sum of distances of a path.
        most: Option<f64>,
        /// The slot of the list of edges.
        edges: Slot,
    },
    /// The rows, after an algorithm has run on the whole graph. Its result is a property of the vertices, which later operators read
    /// in place of the one that the graph has. Nothing is written. Without rows the algorithm does not run.
    Analyze {
        /// The input.
        input: Box<Op>,
        /// The algorithm.
        algorithm: Algorithm,
        /// The key of the result.
        key: Str,
        /// The vertex of a row, if the first weight of a vertex is its number of rows; `None`: all vertices have the same.
        weights: Option<Slot>,
        /// The edges that it follows: rows of all of them for one row with nothing bound.
        steps: Box<Op>,
        /// The slot of the vertex where an edge begins.
        at: Slot,
        /// The slot of the edge; it leads to its other end.
        edge: Slot,
    },
    /// A pattern without an order of evaluation. `passes::match_order` replaces it; the executor refuses it.
    Match { input: Box<Op>, pattern: MatchPattern },
    /// The rows for which the predicate is true.
    Filter { input: Box<Op>, predicate: Expr },
    /// Binds slots in order; later expressions see earlier slots.
    Let { input: Box<Op>, bindings: Vec<(Slot, Expr)> },
    /// Keeps only these slots; the others become unbound.
    Keep { input: Box<Op>, slots: Vec<Slot> },
    /// A row for each item of a list or set. Null gives no row, any other value one row with the value.
    Unwind { input: Box<Op>, list: Expr, out: Slot },
    /// A row for each row that the procedure yields for the input row. `yields`: numbers of the procedure's columns, and
    /// the slots that get them.
    CallProcedure { input: Box<Op>, procedure: Arc<Procedure>, args: Vec<Expr>, yields: Vec<(usize, Slot)> },
    /// A row for each record of the CSV file at an address, which must be a string.
    LoadCsv {
        /// The input.
        input: Box<Op>,
        /// The address.
        url: Expr,
        /// Whether the first record names the fields, so that a row has a map instead of a list.
        headers: bool,
        /// The character that ends fields.
        terminator: char,
        /// The slot of the record's fields: strings, or null for an empty field.
        out: Slot,
        /// The slot of the number of the record in its file, from 1; a pass removes it if nothing uses it.
        number: Option<Slot>,
        /// The slot of the file's name; a pass removes it if nothing uses it.
        file: Option<Slot>,
    },
    /// Groups rows by keys; only keys and aggregates are bound afterwards. Without keys there is exactly one row for
    /// each origin, even without input, unless `empty_is_unbound` is set.
    Aggregate { input: Box<Op>, keys: Vec<(Slot, Expr)>, items: Vec<AggregateItem> },
    /// The first row of each group of rows with equivalent values.
    Distinct { input: Box<Op>, by: Vec<Expr> },
    /// The rows with the smallest lengths, the short ones first, of those with equivalent values in `by`: as many as `count`, or
    /// all that have one of the `count` smallest lengths (`groups`). `length` is a whole number.
    ///
    /// Over a `Match` of one path, `by` are the ends of the path and `length` is the number of its edges.
    ChoosePaths { input: Box<Op>, by: Vec<Expr>, length: Expr, count: u32, groups: bool },
    /// The rows, sorted; the sort is stable.
    Sort { input: Box<Op>, keys: Vec<SortKey> },
    /// At most `limit` rows after the first `skip`. Both must not use slots. A value that is negative or no integer is
    /// an error.
    Slice { input: Box<Op>, skip: Option<Expr>, limit: Option<Expr> },
    /// The first `count` of the sorted rows. Unlike a slice of a sort, it starts again in each round of a repeat.
    Top { input: Box<Op>, keys: Vec<SortKey>, count: Expr },
    /// Rows that are drawn with the numbers of Java's generator that the step at this place of the text has.
    Draw { input: Box<Op>, drawn: Drawn, place: u32 },
    /// The last `count` rows.
    Tail { input: Box<Op>, count: Expr },
    /// The rows that come within a time from the first one on. After it, the operator reads no more rows.
    TimeLimit { input: Box<Op>, millis: u64 },
    /// The rows, after all of them have been read.
    Eager { input: Box<Op> },
    /// The rows, one in each batch, so that the operators above have passed each row on before they get the next one. With `by`,
    /// rows of a batch that agree in these slots stay together.
    Each { input: Box<Op>, by: Vec<Slot> },
    /// The rows; each changes a register as `what` says. `eager`: all rows do, before the first one is yielded.
    Collect { input: Box<Op>, register: Register, what: Collected, eager: bool },
    /// The first of the rows whose values in `by` are identical. Rows that nothing tells apart thus become one, with a weight.
    /// It may yield several of them all the same: it holds a limited number of rows, and stops comparing where few are equal.
    Bulk {
        /// The input.
        input: Box<Op>,
        /// The slots that are compared.
        by: Vec<Slot>,
        /// The slot of the number of rows that a row stands for; unbound means one. `None`: nobody asks for it.
        weight: Option<Slot>,
        /// In the body of a repeat: whether rows of earlier rounds count too, so that each is walked on from once.
        over_rounds: bool,
    },
    /// Runs a subplan for each row, and yields rows as `kind` says.
    Apply { input: Box<Op>, plan: Box<Op>, kind: ApplyKind },
    /// Runs a subplan for each row, and binds its result as `kind` says.
    Bind { input: Box<Op>, plan: Box<Op>, out: Slot, kind: BindKind },
    /// For each row, the rows of all subplans in their order.
    Union { input: Box<Op>, branches: Vec<Op> },
    /// For each row, the rows of the first subplan that yields any.
    Coalesce { input: Box<Op>, branches: Vec<Op> },
    /// For each row, the rows of the first branch whose condition is true, or else of `otherwise`, if there is one.
    Choose { input: Box<Op>, branches: Vec<Branch>, otherwise: Option<Box<Op>> },
    /// Runs the body in rounds. The body reads and writes the same slots. A distinct in the body holds over all
    /// rounds; a slice counts the rows of each round.
    Repeat {
        /// The input.
        input: Box<Op>,
        /// One round.
        body: Box<Op>,
        /// A row leaves the loop if this is true.
        until: Option<RepeatTest>,
        /// A row that stays in the loop is also yielded if this is true.
        emit: Option<RepeatTest>,
        /// Number of rounds, evaluated once. 0 or less means 0 rounds if `times_before` is set, otherwise 1 round.
        times: Option<Expr>,
        /// Whether `times` precedes `repeat` in the text (while-do).
        times_before: bool,
        /// The slot of the loop counter (Gremlin `loops()`): 0 in the first round, and after a round the number of
        /// rounds done.
        loops: Slot,
    },
    /// Creates a vertex for each row.
    CreateVertex {
        /// The input.
        input: Box<Op>,
        /// The slot of the new element.
        out: Slot,
        /// Its id, a string; a number stands for its decimal text. Absent or null: a UUID. An existing id is an error.
        id: Option<Expr>,
        /// Its labels, strings; a list adds all its items. The front end adds a default label such as `vertex`.
        labels: Vec<Expr>,
        /// Its properties.
        properties: Vec<PropertyAssignment>,
        /// More properties, from a map.
        properties_from: Option<Expr>,
    },
    /// Creates an edge for each row.
    CreateEdge {
        /// The input.
        input: Box<Op>,
        /// The slot of the new element.
        out: Slot,
        /// Its id, as for a vertex; absent or null: a generated one.
        id: Option<Expr>,
        /// Its label, a string.
        label: Expr,
        /// The source vertex.
        from: Expr,
        /// The target vertex.
        to: Expr,
        /// Its properties.
        properties: Vec<PropertyAssignment>,
        /// More properties, from a map.
        properties_from: Option<Expr>,
    },
    /// Writes properties of an element, or meta-properties of a property of a vertex. A null element is skipped. A null
    /// value removes the key.
    SetProperties { input: Box<Op>, element: Expr, properties: Vec<PropertyAssignment> },
    /// Writes all entries of a map, or all properties of another element. `replace`: removes all other keys.
    SetPropertyMap {
        /// The input.
        input: Box<Op>,
        /// The element.
        element: Expr,
        /// The map, or the other element.
        map: Expr,
        /// Whether all other keys are removed.
        replace: bool,
        /// The cardinality of the entries of a map, if the element is a vertex. Properties of another element keep theirs.
        cardinality: Cardinality,
    },
    /// Adds or removes labels of a vertex.
    /// Each label is a string; a list stands for all its items.
    SetLabels { input: Box<Op>, element: Expr, add: Vec<Expr>, remove: Vec<Expr> },
    /// Creates the vertices and edges of the file at an address, which must be a string, for each row.
    ReadGraph {
        /// The input.
        input: Box<Op>,
        /// The address.
        url: Expr,
        /// The format; `None`: the end of the address tells it.
        format: Option<GraphFormat>,
        /// The cardinality of vertex properties that have one value in the file. Those with several keep all of them.
        cardinality: Cardinality,
    },
    /// Deletes vertices, edges, paths, properties, or lists of them. `detach`: also deletes the edges of a vertex;
    /// otherwise a vertex that still has edges at the end of the request is an error. Null is skipped.
    Delete { input: Box<Op>, targets: Vec<Expr>, detach: bool },
    /// For each row, the rows of `matching` or, if there are none, of `create`. Each row sees the writes of earlier
    /// rows.
    Merge { input: Box<Op>, matching: Box<Op>, create: Box<Op> },
}

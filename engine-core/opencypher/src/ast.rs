//! The syntax tree of a query, before names are resolved.
//!
//! Equality of trees ignores places, so that two occurrences of an expression are the same grouping key. Names keep
//! their case. The parser bounds the height of expressions, so that a recursive walk cannot exhaust the stack.

use std::fmt;
use std::time::Duration;
use tidegraph_plan::{Arithmetic, Comparison, Function, Length, Quantifier, Shortest, TypeTest};
use tidegraph_types::{Direction, Str};

/// A byte offset into the text. All places are equal, as the module explains.
#[derive(Clone, Copy, Default)]
pub struct Place(pub u32);

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

/// A query.
#[derive(Clone, PartialEq, Debug)]
pub struct Query {
    /// The only part, or several that UNION joins.
    pub parts: Vec<SingleQuery>,
    /// Whether the parts are joined by `UNION ALL`, which keeps duplicates. Meaningless for one part.
    pub union_all: bool,
    /// The time limit of `USING QUERY:TIMEOUTMILLISECONDS`.
    pub timeout: Option<Duration>,
}

/// Clauses up to a UNION.
#[derive(Clone, PartialEq, Debug)]
pub struct SingleQuery {
    /// Clauses in the order of the text.
    pub clauses: Vec<Clause>,
    /// Where it starts.
    pub place: Place,
}

/// A clause with its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Clause {
    /// The clause itself.
    pub kind: ClauseKind,
    /// Where it starts.
    pub place: Place,
}

/// Kinds of clauses.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "named as in the language")]
pub enum ClauseKind {
    Match { optional: bool, patterns: Vec<PathPattern>, predicate: Option<Expr> },
    Unwind { list: Expr, variable: Name },
    LoadCsv { headers: bool, url: Expr, variable: Name, terminator: char },
    With(Box<Projection>),
    Return(Box<Projection>),
    Create(Vec<PathPattern>),
    Merge { pattern: PathPattern, on_create: Vec<SetItem>, on_match: Vec<SetItem> },
    Set(Vec<SetItem>),
    Remove(Vec<RemoveItem>),
    Delete { detach: bool, targets: Vec<Expr> },
    Foreach { variable: Name, list: Expr, body: Vec<Clause> },
    Call(Box<Call>),
    Subquery(Box<Subquery>),
    Finish,
}

/// `CALL (variable, …) { … }`
#[derive(Clone, PartialEq, Debug)]
pub struct Subquery {
    /// Whether rows for which the subquery yields none are kept.
    pub optional: bool,
    /// The variables in parentheses; `None` without parentheses: then a first WITH in the braces imports variables.
    pub imports: Option<Imports>,
    /// What stands in the braces.
    pub query: Query,
    /// `IN TRANSACTIONS`.
    pub batches: Option<Batches>,
}

/// The variables that a subquery sees.
#[derive(Clone, PartialEq, Debug)]
pub enum Imports {
    /// `CALL (*)`
    All,
    /// `CALL (a, b)`
    Names(Vec<Name>),
}

/// `IN n CONCURRENT TRANSACTIONS OF size ROWS ON ERROR … REPORT STATUS AS status`
#[derive(Clone, PartialEq, Debug)]
pub struct Batches {
    /// How many batches may run at the same time. It has no effect: they run one after the other.
    pub concurrency: Option<Expr>,
    /// The number of rows of a batch; `None`: the default.
    pub size: Option<Expr>,
    /// `RETRY`, and for how many seconds if the text says it.
    pub retry: Option<Option<Expr>>,
    /// What happens after an error.
    pub on_error: tidegraph_plan::OnError,
    /// The variable that gets the status of a row's batch.
    pub status: Option<Name>,
    /// Where it starts.
    pub place: Place,
}

/// `CALL procedure(args) YIELD column AS variable WHERE predicate`
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Whether rows for which the procedure yields none are kept.
    pub optional: bool,
    /// The name of the procedure, with its dots.
    pub name: Name,
    /// The arguments; `None`: no parentheses, so that they are the parameters with their names.
    pub args: Option<Vec<Expr>>,
    /// What it yields.
    pub yields: Yield,
    /// `WHERE`.
    pub predicate: Option<Expr>,
}

/// The columns of a procedure that a `CALL` uses.
#[derive(Clone, PartialEq, Debug)]
pub enum Yield {
    /// No `YIELD`: all columns if the query has no other clause, or else none.
    Omitted,
    /// `YIELD *`.
    All,
    /// `YIELD column AS variable, …`; a column without `AS` is a variable of that name.
    Columns(Vec<(Str, Name)>),
}

/// An occurrence of a variable's name.
#[derive(Clone, PartialEq)]
pub struct Name {
    /// The name without backticks.
    pub text: Str,
    /// Where the name starts.
    pub place: Place,
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.text)
    }
}

/// The body of WITH or RETURN.
#[derive(Clone, PartialEq, Debug)]
pub struct Projection {
    /// Whether the text has `DISTINCT`.
    pub distinct: bool,
    /// Whether `*` precedes the items.
    pub star: bool,
    /// The items.
    pub items: Vec<Item>,
    /// `ORDER BY`.
    pub order: Vec<SortItem>,
    /// `SKIP`.
    pub skip: Option<Expr>,
    /// `LIMIT`.
    pub limit: Option<Expr>,
    /// `WHERE`, of WITH only.
    pub predicate: Option<Expr>,
}

impl Projection {
    /// Returns the projection `*`.
    pub(crate) fn star() -> Self {
        let (items, order) = (vec![], vec![]);
        Self { distinct: false, star: true, items, order, skip: None, limit: None, predicate: None }
    }
}

/// An item of a projection.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// The expression to compute.
    pub expr: Expr,
    /// `AS`.
    pub alias: Option<Name>,
    /// The text of the expression, which names the column.
    pub text: Str,
}

/// An item of ORDER BY.
#[derive(Clone, PartialEq, Debug)]
pub struct SortItem {
    /// What to sort by.
    pub expr: Expr,
    /// Whether the text has `DESC`.
    pub descending: bool,
}

/// An item of SET.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "named as in the language")]
pub enum SetItem {
    /// `base.key = value`
    Property { base: Expr, key: Str, value: Expr },
    /// `variable = map`, `variable += map`
    Map { variable: Name, map: Expr, replace: bool },
    /// `base[key] = value`
    Computed { base: Expr, key: Expr, value: Expr },
    /// `variable:Label:Label`
    Labels { variable: Name, labels: Vec<Label> },
}

/// An item of REMOVE.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "named as in the language")]
pub enum RemoveItem {
    /// `base.key`
    Property { base: Expr, key: Str },
    /// `base[key]`
    Computed { base: Expr, key: Expr },
    /// `variable:Label:Label`
    Labels { variable: Name, labels: Vec<Label> },
}

/// One label or relationship type.
#[derive(Clone, PartialEq, Debug)]
pub enum Label {
    /// Its name.
    Name(Str),
    /// `$(expression)`: a string, or a list of strings; `true`: one of them is enough (`$any(…)`).
    Computed(Box<Expr>, bool),
}

/// A condition over labels, or over the type of a relationship.
#[derive(Clone, PartialEq, Debug)]
pub enum LabelTest {
    /// Has the label.
    Has(Label),
    /// `%`: has any label.
    Any,
    /// `!`
    Not(Box<LabelTest>),
    /// `&`, or `:` between labels.
    And(Vec<LabelTest>),
    /// `|`
    Or(Vec<LabelTest>),
}

impl LabelTest {
    /// Returns the labels of a conjunction; `None`: it is something else.
    pub(crate) fn all(&self) -> Option<Vec<&Label>> {
        match self {
            Self::Has(label) => Some(vec![label]),
            Self::And(parts) => {
                parts.iter().map(Self::all).collect::<Option<Vec<_>>>().map(|all| all.concat())
            }
            _ => None,
        }
    }

    /// Returns the names of a disjunction; `None`: it is something else.
    pub(crate) fn one_of(&self) -> Option<Vec<&Str>> {
        match self {
            Self::Has(Label::Name(name)) => Some(vec![name]),
            Self::Or(parts) => {
                parts.iter().map(Self::one_of).collect::<Option<Vec<_>>>().map(|all| all.concat())
            }
            _ => None,
        }
    }

    /// Calls `visit` for the expressions of computed labels.
    pub(crate) fn for_each_expr<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            Self::Has(Label::Computed(expr, _)) => visit(expr),
            Self::Has(Label::Name(_)) | Self::Any => {}
            Self::Not(part) => part.for_each_expr(visit),
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.for_each_expr(visit)),
        }
    }
}

/// `p = shortestPath((a)-[r]->(b))`: vertices and the edges between them, one edge fewer than vertices.
#[derive(Clone, PartialEq, Debug)]
pub struct PathPattern {
    /// `p`.
    pub variable: Option<Name>,
    /// Whether `p = ` is inside the parentheses around the path, whose `WHERE` then sees it.
    pub named_inside: bool,
    /// `REPEATABLE ELEMENTS`: whether a relationship may match what another one of the clause matches.
    pub repeats: bool,
    /// `shortestPath` or `allShortestPaths` around it, or a selector before it.
    pub shortest: Option<Shortest>,
    /// `SHORTEST k` and its kin before a path of one quantified path pattern.
    pub choice: Option<Choice>,
    /// The same before another path, such as one of several quantified path patterns.
    pub picks: Option<Choice>,
    /// `TRAIL` and its kin before the path.
    pub mode: Option<PathMode>,
    /// Whether `shortest` is a selector (`ANY SHORTEST`), which chooses paths before the WHERE of its clause.
    pub selector: bool,
    /// Vertices, from left to right.
    pub nodes: Vec<NodePattern>,
    /// Edges, from left to right.
    pub edges: Vec<EdgePattern>,
    /// `WHERE` inside the parentheses around it.
    pub filter: Option<Box<Expr>>,
    /// Where it starts.
    pub place: Place,
}

/// Elements that a path may repeat; without `REPEATABLE ELEMENTS` no relationship occurs twice in one MATCH in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathMode {
    /// Nodes and relationships.
    Walk,
    /// Nodes.
    Trail,
    /// None.
    Acyclic,
    /// None, except that the last node may be the first.
    Simple,
}

impl PathMode {
    /// Whether a path has no relationship twice.
    pub(crate) fn is_trail(self) -> bool {
        self != Self::Walk
    }

    /// Returns the test that a path of the mode passes.
    pub(crate) fn test(self) -> Option<Function> {
        match self {
            Self::Walk | Self::Trail => None,
            Self::Acyclic => Some(Function::PathIsSimple),
            Self::Simple => Some(Function::PathIsSimpleOrCycle),
        }
    }
}

/// The number of paths, or of their lengths (`groups`), that a selector chooses between two vertices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "explained by the comment")]
pub struct Choice {
    pub count: u32,
    pub groups: bool,
}

/// `(variable:Label {key: value})`.
#[derive(Clone, PartialEq, Debug)]
pub struct NodePattern {
    /// Its name.
    pub variable: Option<Name>,
    /// Its labels.
    pub labels: Option<LabelTest>,
    /// Its properties.
    pub properties: Properties,
    /// `WHERE`.
    pub filter: Option<Box<Expr>>,
    /// Where it starts.
    pub place: Place,
}

/// `-[variable:TYPE|TYPE *1..2 {key: value}]->`.
#[derive(Clone, PartialEq, Debug)]
pub struct EdgePattern {
    /// Its name.
    pub variable: Option<Name>,
    /// Its type.
    pub types: Option<LabelTest>,
    /// Its properties.
    pub properties: Properties,
    /// `WHERE`.
    pub filter: Option<Box<Expr>>,
    /// Direction, read from left to right.
    pub direction: Direction,
    /// Bounds, if the length is variable.
    pub length: Option<Length>,
    /// Whether the bounds stand after the arrow (`-[r:T WHERE r.k = 1]->{1,3}`), so that `WHERE` is about each relationship.
    pub quantified: bool,
    /// The path in the parentheses of a quantified path pattern (`((a)-[r]->(b)){1,3}`), whose repetitions `length` bounds.
    /// Then the fields before are empty.
    pub group: Option<Box<PathPattern>>,
    /// Where it starts.
    pub place: Place,
}

/// Properties in a pattern.
#[derive(Clone, PartialEq, Debug)]
pub enum Properties {
    /// No properties.
    None,
    /// `{key: value}`.
    Map(Vec<(Str, Expr)>),
    /// `$map`.
    Parameter(Str, Place),
}

/// An expression with its place.
#[derive(Clone, PartialEq)]
pub struct Expr {
    /// The expression itself.
    pub kind: ExprKind,
    /// Where it starts; for an operator, the place of the operator.
    pub place: Place,
    /// Length of the longest path down to a leaf.
    pub(crate) height: Height,
}

/// Height of an expression; equality ignores it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Height(pub u16);

impl PartialEq for Height {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

/// Kinds of expressions.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "named as in the language")]
pub enum ExprKind {
    Literal(Literal),
    Parameter(Str),
    Variable(Str),
    Property(Box<Expr>, Str),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    HasLabels(Box<Expr>, LabelTest),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Xor(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    /// `operand IS NULL`; `true`: `IS NOT NULL`.
    IsNull(Box<Expr>, bool),
    /// `operand IS :: TYPE`; `true`: `IS NOT :: TYPE`.
    IsType(Box<Expr>, Box<TypeTest>, bool),
    /// `operand IS NFC NORMALIZED`; `true`: `IS NOT NORMALIZED`.
    IsNormalized(Box<Expr>, Str, bool),
    Negate(Box<Expr>),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// `a < b <= c`: true if each pair compares so.
    Comparison(Box<Expr>, Vec<(Comparison, Expr)>),
    In(Box<Expr>, Box<Expr>),
    StartsWith(Box<Expr>, Box<Expr>),
    EndsWith(Box<Expr>, Box<Expr>),
    Contains(Box<Expr>, Box<Expr>),
    /// `=~`
    Matches(Box<Expr>, Box<Expr>),
    List(Vec<Expr>),
    Map(Vec<(Str, Expr)>),
    /// `variable{.*, .key, key: value}`
    MapProjection(Box<Expr>, Vec<MapItem>),
    /// In a branch, `Condition` holds a condition over the subject, whose name is empty.
    Case {
        subject: Option<Box<Expr>>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Comprehension {
        variable: Name,
        list: Box<Expr>,
        filter: Option<Box<Expr>>,
        map: Option<Box<Expr>>,
    },
    Quantified {
        quantifier: Quantifier,
        variable: Name,
        list: Box<Expr>,
        predicate: Box<Expr>,
    },
    Reduce {
        accumulator: Name,
        start: Box<Expr>,
        variable: Name,
        list: Box<Expr>,
        step: Box<Expr>,
    },
    Call {
        name: Str,
        distinct: bool,
        args: Vec<Expr>,
    },
    /// `count(*)`
    CountRows,
    /// A pattern as a predicate or in `exists(…)`; with `shortest`, a path.
    Pattern(Box<PathPattern>),
    PatternComprehension {
        pattern: Box<PathPattern>,
        filter: Option<Box<Expr>>,
        map: Box<Expr>,
    },
    /// A condition of a CASE with a subject, over the variable with the empty name.
    Condition(Box<Expr>),
    /// `EXISTS { … }`
    Exists(Box<Query>),
    /// `COUNT { … }`
    Count(Box<Query>),
    /// `COLLECT { … }`
    Collect(Box<Query>),
}

/// An item of a map projection.
#[derive(Clone, PartialEq, Debug)]
pub enum MapItem {
    /// `.*`: all properties.
    All,
    /// `key: value`; also `.key`, whose value is the property, and `variable`.
    Entry(Str, Expr),
}

/// A constant of the text. Numbers of different types are different literals.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "named as in the language")]
pub enum Literal {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(Str),
}

impl Expr {
    /// Calls `visit` for each expression directly inside this one, except those in patterns and subqueries.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match &self.kind {
            ExprKind::Literal(_)
            | ExprKind::Parameter(_)
            | ExprKind::Variable(_)
            | ExprKind::CountRows
            | ExprKind::Pattern(_)
            | ExprKind::Exists(_)
            | ExprKind::Count(_)
            | ExprKind::Collect(_) => {}
            ExprKind::HasLabels(a, test) => {
                visit(a);
                test.for_each_expr(visit);
            }
            ExprKind::Property(a, _)
            | ExprKind::Not(a)
            | ExprKind::IsNull(a, _)
            | ExprKind::IsType(a, ..)
            | ExprKind::IsNormalized(a, ..)
            | ExprKind::Condition(a)
            | ExprKind::Negate(a) => visit(a),
            ExprKind::Index(a, b)
            | ExprKind::Xor(a, b)
            | ExprKind::Arithmetic(_, a, b)
            | ExprKind::In(a, b)
            | ExprKind::StartsWith(a, b)
            | ExprKind::EndsWith(a, b)
            | ExprKind::Contains(a, b)
            | ExprKind::Matches(a, b)
            | ExprKind::Quantified { list: a, predicate: b, .. } => {
                visit(a);
                visit(b);
            }
            ExprKind::Slice(base, from, to) => {
                visit(base);
                from.iter().chain(to).for_each(|e| visit(e));
            }
            ExprKind::And(all)
            | ExprKind::Or(all)
            | ExprKind::List(all)
            | ExprKind::Call { args: all, .. } => {
                all.iter().for_each(visit);
            }
            ExprKind::Comparison(first, rest) => {
                visit(first);
                rest.iter().for_each(|(_, e)| visit(e));
            }
            ExprKind::Map(entries) => entries.iter().for_each(|(_, e)| visit(e)),
            ExprKind::MapProjection(base, items) => {
                visit(base);
                let values = items.iter().filter_map(|item| match item {
                    MapItem::All => None,
                    MapItem::Entry(_, value) => Some(value),
                });
                values.for_each(visit);
            }
            ExprKind::Case { subject, branches, otherwise } => {
                subject.iter().chain(otherwise).for_each(|e| visit(e));
                for (condition, result) in branches {
                    visit(condition);
                    visit(result);
                }
            }
            ExprKind::Comprehension { list, filter, map, .. } => {
                visit(list);
                filter.iter().chain(map).for_each(|e| visit(e));
            }
            ExprKind::Reduce { start, list, step, .. } => {
                visit(start);
                visit(list);
                visit(step);
            }
            ExprKind::PatternComprehension { filter, map, .. } => {
                filter.iter().for_each(|e| visit(e));
                visit(map);
            }
        }
    }

    /// Whether this expression or one inside it satisfies the test. Patterns and subqueries are not searched.
    pub(crate) fn any(&self, test: &dyn Fn(&Expr) -> bool) -> bool {
        let mut found = test(self);
        self.for_each_child(&mut |child| found = found || child.any(test));
        found
    }
}

//! The queries that the generator draws: a subset of openCypher, and its text.

use crate::graph::literal;
use crate::value::Val;
use std::fmt;

/// A query: parts joined by `UNION` or `UNION ALL`.
#[derive(Clone, Debug)]
pub struct Query {
    /// Parts; all return the same columns.
    pub parts: Vec<Vec<Clause>>,
    /// Whether parts are joined by `UNION ALL`.
    pub all: bool,
}

/// A clause.
#[derive(Clone, Debug)]
pub enum Clause {
    /// `[OPTIONAL] MATCH … [WHERE …]`
    #[allow(missing_docs, reason = "the text above names them")]
    Match { optional: bool, patterns: Vec<Pattern>, filter: Option<Expr> },
    /// `WITH …`, or `RETURN …` if it is the last clause.
    Project(Projection),
    /// `UNWIND list AS name`
    Unwind(Expr, String),
    /// `[OPTIONAL] CALL (imports) { query }`
    #[allow(missing_docs, reason = "the text above names them")]
    Call { optional: bool, imports: Vec<String>, query: Query },
    /// `CALL procedure() YIELD column AS name`
    #[allow(missing_docs, reason = "the text above names them")]
    Procedure { procedure: Procedure, name: String },
    /// `CREATE …`
    Create(Vec<Pattern>),
    /// `MERGE … ON CREATE SET … ON MATCH SET …`
    #[allow(missing_docs, reason = "the text above names them")]
    Merge { pattern: Pattern, on_create: Option<SetItem>, on_match: Option<SetItem> },
    /// `SET …`
    Set(SetItem),
    /// `REMOVE variable.key`
    RemoveProperty(String, String),
    /// `REMOVE variable:label`
    RemoveLabel(String, String),
    /// `[DETACH] DELETE variable`
    #[allow(missing_docs, reason = "the text above names them")]
    Delete { detach: bool, name: String },
}

/// A procedure whose rows the graph determines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Procedure {
    /// `db.labels()`
    Labels,
    /// `db.relationshipTypes()`
    Types,
}

/// What `SET` sets.
#[derive(Clone, Debug)]
pub enum SetItem {
    /// `variable.key = value`
    Property(String, String, Expr),
    /// `variable:label`
    Label(String, String),
    /// `variable += {key: value, …}`, or `=` if it replaces.
    #[allow(missing_docs, reason = "the text above names them")]
    Map { name: String, replace: bool, entries: Vec<(String, Expr)> },
}

/// The body of `WITH` or `RETURN`.
#[derive(Clone, Debug)]
pub struct Projection {
    /// `DISTINCT`
    pub distinct: bool,
    /// Expressions with their names.
    pub items: Vec<(Expr, String)>,
    /// Keys of `ORDER BY`; `true` is descending.
    pub order: Vec<(Expr, bool)>,
    /// `SKIP`
    pub skip: Option<usize>,
    /// `LIMIT`
    pub limit: Option<usize>,
    /// `WHERE` after `WITH`
    pub filter: Option<Expr>,
}

/// A path pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Name of the path.
    pub path: Option<String>,
    /// `SHORTEST k GROUPS` before it.
    pub shortest: Option<u8>,
    /// First node.
    pub start: NodePattern,
    /// Edges with the nodes behind them.
    pub steps: Vec<(EdgePattern, NodePattern)>,
}

/// A node of a pattern.
#[derive(Clone, Debug, Default)]
pub struct NodePattern {
    /// Variable.
    pub name: Option<String>,
    /// Labels that it must have.
    pub labels: Vec<String>,
    /// Properties that it must have.
    pub properties: Vec<(String, Expr)>,
}

/// An edge of a pattern.
#[derive(Clone, Debug)]
pub struct EdgePattern {
    /// Variable.
    pub name: Option<String>,
    /// Allowed types; empty: all.
    pub types: Vec<String>,
    /// Direction.
    pub direction: Direction,
    /// Bounds of the number of edges, if it is variable.
    pub range: Option<(Option<usize>, Option<usize>)>,
    /// Properties that each edge must have.
    pub properties: Vec<(String, Expr)>,
    /// What a quantified path pattern repeats; then the edge has a range and no name, types or properties.
    pub group: Option<Box<Group>>,
}

/// `(left)-[edge]->(right) WHERE filter`, which a quantified path pattern repeats.
#[derive(Clone, Debug)]
pub struct Group {
    /// Node on the left.
    pub left: NodePattern,
    /// The edge.
    pub edge: EdgePattern,
    /// Node on the right.
    pub right: NodePattern,
    /// A condition on each repetition.
    pub filter: Option<Expr>,
}

impl Group {
    /// Returns the names of its variables.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        [&self.left.name, &self.edge.name, &self.right.name].into_iter().flatten()
    }
}

/// The direction of an edge, read from left to right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// `-->`
    Right,
    /// `<--`
    Left,
    /// `--`
    Any,
}

/// An expression.
#[derive(Clone, Debug)]
pub enum Expr {
    /// Literal.
    Literal(Val),
    /// Variable.
    Name(String),
    /// `name.key`
    Property(String, String),
    /// `left OP right` with `= <> < <= > >= AND OR XOR IN STARTS WITH … + - *`
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `NOT x`
    Not(Box<Expr>),
    /// `x IS NULL`
    IsNull(Box<Expr>),
    /// `x IS NOT NULL`
    IsNotNull(Box<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `variable:label`
    HasLabel(String, String),
    /// `name(arguments)`, not an aggregate.
    Call(&'static str, Vec<Expr>),
    /// `CASE WHEN condition THEN value … ELSE value END`
    Case(Vec<(Expr, Expr)>, Box<Expr>),
    /// `EXISTS { MATCH … WHERE … }`
    Exists(Vec<Pattern>, Option<Box<Expr>>),
    /// `COUNT { MATCH … WHERE … }`
    Count(Vec<Pattern>, Option<Box<Expr>>),
    /// `[name IN list WHERE filter | value]`
    #[allow(missing_docs, reason = "the text above names them")]
    Comprehension { name: String, list: Box<Expr>, filter: Option<Box<Expr>>, value: Box<Expr> },
    /// `all(name IN list WHERE filter)`, also `any`, `none`, `single`.
    #[allow(missing_docs, reason = "the text above names them")]
    Quantifier { kind: &'static str, name: String, list: Box<Expr>, filter: Box<Expr> },
    /// `list[index]`
    Index(Box<Expr>, Box<Expr>),
    /// `name{.*, key: value}`
    #[allow(missing_docs, reason = "the text above names them")]
    MapProjection { name: String, all: bool, entries: Vec<(String, Expr)> },
    /// Aggregate; `count(*)` has no argument.
    #[allow(missing_docs, reason = "the text above names them")]
    Aggregate { function: &'static str, distinct: bool, of: Option<Box<Expr>> },
}

impl Expr {
    /// Whether it is an aggregate. The generator draws them only as whole items.
    #[must_use]
    pub fn is_aggregate(&self) -> bool {
        matches!(self, Self::Aggregate { .. })
    }
}

impl Clause {
    /// Whether the clause changes the graph.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Self::Match { .. } | Self::Project(_) | Self::Unwind(..) | Self::Procedure { .. } => false,
            Self::Call { query, .. } => query.writes(),
            _ => true,
        }
    }
}

impl Query {
    /// Whether the query changes the graph.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.parts.iter().flatten().any(Clause::writes)
    }

    /// Whether lists of the answer have no defined order: those of `collect`.
    #[must_use]
    pub fn has_bags(&self) -> bool {
        self.to_string().contains("collect(")
    }

    /// Whether the rows of the answer are ordered: the last projection sorts by all of its columns.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        let [part] = self.parts.as_slice() else { return false };
        match part.last() {
            Some(Clause::Project(last)) => last.is_totally_ordered(),
            _ => false,
        }
    }
}

impl Projection {
    /// Whether rows that differ are never equal in the order.
    #[must_use]
    pub fn is_totally_ordered(&self) -> bool {
        self.items.iter().all(|(_, name)| {
            self.order.iter().any(|(key, _)| match key {
                Expr::Name(key) => key == name,
                Expr::Call("id", arguments) => matches!(&arguments[..], [Expr::Name(key)] if key == name),
                _ => false,
            })
        })
    }
}

fn join<T: fmt::Display>(items: &[T], between: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

fn map(entries: &[(String, Expr)]) -> String {
    let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    format!("{{{}}}", entries.join(", "))
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                f.write_str(if self.all { " UNION ALL " } else { " UNION " })?;
            }
            for (index, clause) in part.iter().enumerate() {
                if index > 0 {
                    f.write_str(" ")?;
                }
                match clause {
                    Clause::Project(projection) => {
                        let last = index + 1 == part.len();
                        write!(f, "{} {projection}", if last { "RETURN" } else { "WITH" })?;
                    }
                    other => write!(f, "{other}")?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.distinct {
            f.write_str("DISTINCT ")?;
        }
        let items: Vec<String> = self
            .items
            .iter()
            .map(|(expr, name)| match expr {
                Expr::Name(same) if same == name => name.clone(),
                _ => format!("{expr} AS {name}"),
            })
            .collect();
        f.write_str(&items.join(", "))?;
        if !self.order.is_empty() {
            let keys: Vec<String> = self
                .order
                .iter()
                .map(|(key, down)| format!("{key}{}", if *down { " DESC" } else { "" }))
                .collect();
            write!(f, " ORDER BY {}", keys.join(", "))?;
        }
        if let Some(skip) = self.skip {
            write!(f, " SKIP {skip}")?;
        }
        if let Some(limit) = self.limit {
            write!(f, " LIMIT {limit}")?;
        }
        match &self.filter {
            Some(filter) => write!(f, " WHERE {filter}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Match { optional, patterns, filter } => {
                write!(f, "{}MATCH {}", if *optional { "OPTIONAL " } else { "" }, join(patterns, ", "))?;
                match filter {
                    Some(filter) => write!(f, " WHERE {filter}"),
                    None => Ok(()),
                }
            }
            Self::Project(projection) => write!(f, "WITH {projection}"),
            Self::Unwind(list, name) => write!(f, "UNWIND {list} AS {name}"),
            Self::Call { optional, imports, query } => {
                let imports =
                    if imports.is_empty() { String::new() } else { format!("({}) ", imports.join(", ")) };
                write!(f, "{}CALL {imports}{{ {query} }}", if *optional { "OPTIONAL " } else { "" })
            }
            Self::Procedure { procedure: Procedure::Labels, name } => {
                write!(f, "CALL db.labels() YIELD label AS {name}")
            }
            Self::Procedure { procedure: Procedure::Types, name } => {
                write!(f, "CALL db.relationshipTypes() YIELD relationshipType AS {name}")
            }
            Self::Create(patterns) => write!(f, "CREATE {}", join(patterns, ", ")),
            Self::Merge { pattern, on_create, on_match } => {
                write!(f, "MERGE {pattern}")?;
                if let Some(item) = on_create {
                    write!(f, " ON CREATE SET {item}")?;
                }
                if let Some(item) = on_match {
                    write!(f, " ON MATCH SET {item}")?;
                }
                Ok(())
            }
            Self::Set(item) => write!(f, "SET {item}"),
            Self::RemoveProperty(name, key) => write!(f, "REMOVE {name}.{key}"),
            Self::RemoveLabel(name, label) => write!(f, "REMOVE {name}:{label}"),
            Self::Delete { detach, name } => {
                write!(f, "{}DELETE {name}", if *detach { "DETACH " } else { "" })
            }
        }
    }
}

impl fmt::Display for SetItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Property(name, key, value) => write!(f, "{name}.{key} = {value}"),
            Self::Label(name, label) => write!(f, "{name}:{label}"),
            Self::Map { name, replace, entries } => {
                write!(f, "{name} {} {}", if *replace { "=" } else { "+=" }, map(entries))
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{path} = ")?;
        }
        if let Some(lengths) = self.shortest {
            write!(f, "SHORTEST {lengths} GROUPS ")?;
        }
        write!(f, "{}", self.start)?;
        for (edge, node) in &self.steps {
            // A selector takes quantifiers instead of variable lengths, which mean the same.
            match self.shortest {
                Some(_) => write!(f, "{edge:#}{node}")?,
                None => write!(f, "{edge}{node}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for NodePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}", self.name.as_deref().unwrap_or_default())?;
        for label in &self.labels {
            write!(f, ":{label}")?;
        }
        if !self.properties.is_empty() {
            write!(f, " {}", map(&self.properties))?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}{}{}", self.left, self.edge, self.right)?;
        if let Some(filter) = &self.filter {
            write!(f, " WHERE {filter}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for EdgePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(group), Some((from, to))) = (&self.group, self.range) {
            let to = to.map(|to| to.to_string()).unwrap_or_default();
            return write!(f, "{group}{{{},{to}}}", from.unwrap_or(1));
        }
        f.write_str(if self.direction == Direction::Left { "<-[" } else { "-[" })?;
        f.write_str(self.name.as_deref().unwrap_or_default())?;
        if !self.types.is_empty() {
            write!(f, ":{}", self.types.join("|"))?;
        }
        if let Some((from, to)) = self.range.filter(|_| !f.alternate()) {
            let bound = |bound: Option<usize>| bound.map(|bound| bound.to_string()).unwrap_or_default();
            write!(f, "*{}..{}", bound(from), bound(to))?;
        }
        if !self.properties.is_empty() {
            write!(f, " {}", map(&self.properties))?;
        }
        f.write_str(if self.direction == Direction::Right { "]->" } else { "]-" })?;
        match self.range.filter(|_| f.alternate()) {
            Some((from, Some(to))) => write!(f, "{{{},{to}}}", from.unwrap_or(1)),
            Some((from, None)) => write!(f, "{{{},}}", from.unwrap_or(1)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filtered = |filter: &Option<Box<Expr>>| match filter {
            Some(filter) => format!(" WHERE {filter}"),
            None => String::new(),
        };
        match self {
            Self::Literal(value) => f.write_str(&literal(value)),
            Self::Name(name) => f.write_str(name),
            Self::Property(name, key) => write!(f, "{name}.{key}"),
            Self::Binary(operator, a, b) => write!(f, "({a} {operator} {b})"),
            Self::Not(a) => write!(f, "(NOT {a})"),
            Self::IsNull(a) => write!(f, "({a} IS NULL)"),
            Self::IsNotNull(a) => write!(f, "({a} IS NOT NULL)"),
            Self::List(items) => write!(f, "[{}]", join(items, ", ")),
            Self::HasLabel(name, label) => write!(f, "({name}:{label})"),
            Self::Call(name, arguments) => write!(f, "{name}({})", join(arguments, ", ")),
            Self::Case(branches, otherwise) => {
                f.write_str("CASE")?;
                for (condition, value) in branches {
                    write!(f, " WHEN {condition} THEN {value}")?;
                }
                write!(f, " ELSE {otherwise} END")
            }
            Self::Exists(patterns, filter) => {
                write!(f, "EXISTS {{ MATCH {}{} }}", join(patterns, ", "), filtered(filter))
            }
            Self::Count(patterns, filter) => {
                write!(f, "COUNT {{ MATCH {}{} }}", join(patterns, ", "), filtered(filter))
            }
            Self::Comprehension { name, list, filter, value } => {
                write!(f, "[{name} IN {list}{} | {value}]", filtered(filter))
            }
            Self::Quantifier { kind, name, list, filter } => {
                write!(f, "{kind}({name} IN {list} WHERE {filter})")
            }
            Self::Index(list, index) => write!(f, "{list}[{index}]"),
            Self::MapProjection { name, all, entries } => {
                let all = all.then(|| ".*".to_owned());
                let entries = entries.iter().map(|(key, value)| format!("{key}: {value}"));
                write!(f, "{name}{{{}}}", join(&all.into_iter().chain(entries).collect::<Vec<_>>(), ", "))
            }
            Self::Aggregate { function, distinct, of } => match of {
                None => write!(f, "{function}(*)"),
                Some(of) => write!(f, "{function}({}{of})", if *distinct { "DISTINCT " } else { "" }),
            },
        }
    }
}

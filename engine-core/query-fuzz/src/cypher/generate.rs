//! Draws queries. Every expression has the type that its place needs, so that both sides answer instead of refusing.

mod calls;

use super::ast::{
    Clause, Direction, EdgePattern, Expr, Group, NodePattern, Pattern, Projection, Query, SetItem,
};
use crate::graph::{INT_KEYS, LABELS, MIXED_KEY, TEXT_KEY, TYPES, random_key, random_value};
use crate::value::Val;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// What the value of a variable is. All may also be null.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Node,
    Edge,
    /// A list of edges or of nodes.
    Edges,
    Path,
    Int,
    Text,
    Bool,
    Mixed,
    Ints,
    /// Whatever may only be returned.
    Other,
}

/// Draws queries.
pub struct Generator<'a> {
    rng: &'a mut ChaCha8Rng,
    scope: Vec<(String, Kind)>,
    names: usize,
    /// How deep subqueries may still nest.
    subqueries: usize,
    /// Whether subqueries and procedures may be called.
    calls: bool,
    /// Largest number of edges of a pattern, and of a variable part of it; none if the graph is small.
    longest: Option<usize>,
}

impl<'a> Generator<'a> {
    /// Makes a generator.
    pub fn new(rng: &'a mut ChaCha8Rng) -> Self {
        Self { rng, scope: vec![], names: 0, subqueries: 1, calls: true, longest: None }
    }

    /// Draws a query that reads.
    pub fn read(&mut self) -> Query {
        let part = if self.coin(0.08) { self.counted_product() } else { self.part() };
        let mut parts = vec![part];
        if self.coin(0.06) {
            let Some(Clause::Project(first)) = parts[0].last() else { return Query { parts, all: false } };
            let names: Vec<String> = first.items.iter().map(|(_, name)| name.clone()).collect();
            self.scope.clear();
            let mut other = self.part_before_return();
            let mut body = self.projection(names.len(), false);
            body.order.clear();
            for ((_, name), wanted) in body.items.iter_mut().zip(&names) {
                name.clone_from(wanted);
            }
            if body.items.len() == names.len() {
                other.push(Clause::Project(body));
                if let Some(Clause::Project(first)) = parts[0].last_mut() {
                    (first.order, first.skip, first.limit) = (vec![], None, None);
                }
                parts.push(other);
            }
        }
        Query { parts, all: self.rng.random() }
    }

    /// Draws the number of combinations of short patterns. Storage and several threads may count these without rows.
    fn counted_product(&mut self) -> Vec<Clause> {
        let longest = self.longest.replace(1);
        let outer = self.scope.clone();
        let patterns = (0..self.rng.random_range(1..4)).map(|_| self.pattern(&outer, true)).collect();
        self.longest = longest;
        let filter = self.coin(0.8).then(|| self.truth(2));
        let count = Expr::Aggregate { function: "count", distinct: false, of: None };
        let body = Projection::new(vec![(count, self.fresh("x"))]);
        vec![Clause::Match { optional: false, patterns, filter }, Clause::Project(body)]
    }

    /// Draws a query that writes.
    pub fn write(&mut self) -> Query {
        let mut clauses = vec![];
        if self.coin(0.7) {
            clauses.push(self.matching(false));
        } else if self.coin(0.5) {
            clauses.push(self.unwind());
        }
        for _ in 0..self.rng.random_range(1..3) {
            let outer = self.scope.clone();
            if let Some(clause) = self.update() {
                let may_call = !outer.is_empty() && !matches!(clause, Clause::Delete { .. });
                if may_call && self.coin(0.15) {
                    if clauses.last().is_some_and(Clause::writes) {
                        let all = outer.iter().map(|(name, _)| (Expr::Name(name.clone()), name.clone()));
                        clauses.push(Clause::Project(Projection::new(all.collect())));
                    }
                    clauses.push(self.writing_call(clause, outer));
                    continue;
                }
                let deletes = matches!(clause, Clause::Delete { .. });
                clauses.push(clause);
                if deletes {
                    let count = Expr::Aggregate { function: "count", distinct: false, of: None };
                    let items = vec![(count, self.fresh("x"))];
                    clauses.push(Clause::Project(Projection::new(items)));
                    return Query { parts: vec![clauses], all: false };
                }
            }
        }
        if self.coin(0.3) {
            let all = self.scope.iter().map(|(name, _)| (Expr::Name(name.clone()), name.clone())).collect();
            if !self.scope.is_empty() {
                clauses.push(Clause::Project(Projection::new(all)));
                clauses.push(self.matching(true));
            }
        }
        let count = self.rng.random_range(1..4);
        let body = self.projection(count, false);
        clauses.push(Clause::Project(body));
        Query { parts: vec![clauses], all: false }
    }

    /// Draws the patterns of a `MATCH`, a condition over its variables, and a projection without aggregates. Lengths
    /// of paths are bounded, since the graph may be large.
    pub(crate) fn conditional(&mut self) -> (Vec<Pattern>, Expr, Projection) {
        self.longest = Some(2);
        let mut patterns = vec![];
        for _ in 0..if self.coin(0.15) { 2 } else { 1 } {
            let pattern = self.pattern(&[], true);
            patterns.push(pattern);
        }
        // A subquery for each row of a product would take long.
        self.subqueries = usize::from(patterns.len() == 1);
        let condition = self.truth(3);
        let count = self.rng.random_range(1..4);
        let items = (0..count).map(|_| (self.output(), self.fresh("x"))).collect();
        (patterns, condition, Projection::new(items))
    }

    fn part(&mut self) -> Vec<Clause> {
        let mut clauses = self.part_before_return();
        let count = self.rng.random_range(1..4);
        clauses.push(Clause::Project(self.projection(count, true)));
        clauses
    }

    fn part_before_return(&mut self) -> Vec<Clause> {
        let mut clauses = vec![if self.coin(0.85) { self.matching(false) } else { self.unwind() }];
        for _ in 0..self.rng.random_range(0..3) {
            if self.calls && self.coin(0.15) {
                clauses.push(self.call());
                continue;
            }
            clauses.push(match self.rng.random_range(0..10) {
                0..=2 => self.matching(true),
                3..=4 => self.matching(false),
                5 => self.unwind(),
                _ => {
                    let count = self.rng.random_range(1..4);
                    let mut body = self.projection(count, true);
                    let items = body.items.iter();
                    self.scope = items.map(|(expr, name)| (name.clone(), self.kind_of(expr))).collect();
                    if self.coin(0.3) {
                        body.filter = Some(self.truth(2));
                    }
                    Clause::Project(body)
                }
            });
        }
        clauses
    }

    fn coin(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn name_of(&mut self, kind: Kind) -> Option<String> {
        let fitting: Vec<&(String, Kind)> = self.scope.iter().filter(|(_, k)| *k == kind).collect();
        fitting.choose(self.rng).map(|(name, _)| name.clone())
    }

    /// A node or an edge.
    fn element(&mut self) -> Option<String> {
        let kind = if self.coin(0.7) { Kind::Node } else { Kind::Edge };
        self.name_of(kind).or_else(|| self.name_of(Kind::Node)).or_else(|| self.name_of(Kind::Edge))
    }

    fn kind_of(&self, expr: &Expr) -> Kind {
        let named = |name: &String| self.scope.iter().find(|(n, _)| n == name).map(|(_, kind)| *kind);
        match expr {
            Expr::Name(name) => named(name).unwrap_or(Kind::Other),
            Expr::Property(_, key) if key == TEXT_KEY => Kind::Text,
            Expr::Property(_, key) if key == MIXED_KEY => Kind::Mixed,
            Expr::Property(..) | Expr::Count(..) => Kind::Int,
            Expr::Binary("+" | "-" | "*", ..) => Kind::Int,
            Expr::Aggregate { function: "count" | "sum", .. } => Kind::Int,
            Expr::Aggregate { function: "min" | "max", of: Some(of), .. } => self.kind_of(of),
            Expr::Call("size" | "length" | "abs", _) => Kind::Int,
            Expr::Call("id" | "type" | "toUpper", _) => Kind::Text,
            Expr::Call("startNode" | "endNode", _) => Kind::Node,
            Expr::Exists(..) | Expr::Not(_) | Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::HasLabel(..) => {
                Kind::Bool
            }
            Expr::Binary(..) => Kind::Bool,
            Expr::Literal(Val::Int(_)) => Kind::Int,
            Expr::Literal(Val::Str(_)) => Kind::Text,
            Expr::List(_) | Expr::Call("collToSet" | "collSubtract" | "collIntersection" | "collSort", _) => {
                Kind::Ints
            }
            _ => Kind::Other,
        }
    }

    fn matching(&mut self, optional: bool) -> Clause {
        let mut patterns = vec![];
        let outer = self.scope.clone();
        for _ in 0..if self.coin(0.2) { 2 } else { 1 } {
            let pattern = self.pattern(&outer, true);
            patterns.push(pattern);
        }
        if let [Pattern { shortest, steps, .. }] = &mut patterns[..]
            // A quantifier has an upper bound of at least 1.
            && steps.iter().all(|(edge, _)| edge.range.is_none_or(|(_, to)| to != Some(0)))
            && self.coin(if steps.iter().any(|(edge, _)| edge.range.is_some()) { 0.4 } else { 0.05 })
        {
            *shortest = Some(self.rng.random_range(1..3));
        }
        let filter = self.coin(0.5).then(|| self.truth(3));
        Clause::Match { optional, patterns, filter }
    }

    /// Draws a pattern. Operands in it use only variables of `outer`.
    fn pattern(&mut self, outer: &[(String, Kind)], may_name: bool) -> Pattern {
        let start = self.node(outer, may_name);
        let mut steps = vec![];
        let count: usize = [0, 1, 1, 1, 2, 2, 3][self.rng.random_range(0..7)];
        for _ in 0..count.min(self.longest.unwrap_or(count)) {
            let edge = if self.coin(0.1) { self.group(outer, may_name) } else { self.edge(outer, may_name) };
            steps.push((edge, self.node(outer, may_name)));
        }
        let path = (may_name && self.coin(0.1)).then(|| self.fresh("p"));
        if let Some(path) = &path {
            self.scope.push((path.clone(), Kind::Path));
        }
        Pattern { path, shortest: None, start, steps }
    }

    fn node(&mut self, outer: &[(String, Kind)], may_name: bool) -> NodePattern {
        let known = if self.coin(0.3) { self.name_of(Kind::Node) } else { None };
        let mut node = NodePattern { name: known, ..NodePattern::default() };
        if node.name.is_none() && may_name && self.coin(0.75) {
            let name = self.fresh("n");
            self.scope.push((name.clone(), Kind::Node));
            node.name = Some(name);
        }
        if self.coin(0.3) {
            node.labels.push(self.label());
            if self.coin(0.15) {
                node.labels.push(self.label());
            }
        }
        node.properties = self.constraints(outer, 0.12);
        node
    }

    fn label(&mut self) -> String {
        let last = if self.coin(0.03) { 4 } else { 3 };
        LABELS[self.rng.random_range(0..last)].to_owned()
    }

    fn edge(&mut self, outer: &[(String, Kind)], may_name: bool) -> EdgePattern {
        let range = self.coin(0.2).then(|| match self.rng.random_range(0..6) {
            0 => (None, Some(2)),
            1 => (Some(0), Some(self.rng.random_range(0..3))),
            2 => (Some(2), Some(3)),
            3 => (Some(1), None),
            4 => (Some(0), None),
            _ => (Some(1), Some(2)),
        });
        let range = match self.longest {
            Some(longest) => range.map(|(from, to)| {
                let to = to.unwrap_or(longest).min(longest);
                (from.map(|from| from.min(to)), Some(to))
            }),
            None => range,
        };
        let name = (may_name && self.coin(0.4)).then(|| self.fresh("r"));
        if let Some(name) = &name {
            self.scope.push((name.clone(), if range.is_some() { Kind::Edges } else { Kind::Edge }));
        }
        let types = TYPES.iter().filter(|_| self.rng.random_bool(0.25)).map(|t| (*t).to_owned()).collect();
        let direction = [Direction::Right, Direction::Left, Direction::Any][self.rng.random_range(0..3)];
        EdgePattern { name, types, direction, range, properties: self.constraints(outer, 0.08), group: None }
    }

    /// Draws a quantified path pattern. Its variables have no other meaning, and its condition sees these and `outer`.
    fn group(&mut self, outer: &[(String, Kind)], may_name: bool) -> EdgePattern {
        let mut inner = outer.to_vec();
        let mut node = |this: &mut Self| {
            let mut node = NodePattern { properties: this.constraints(outer, 0.1), ..NodePattern::default() };
            if this.coin(0.2) {
                node.labels.push(this.label());
            }
            if may_name && this.coin(0.6) {
                let name = this.fresh("g");
                inner.push((name.clone(), Kind::Node));
                node.name = Some(name);
            }
            node
        };
        let (left, right) = (node(self), node(self));
        let mut edge = self.edge(outer, false);
        edge.range = None;
        if may_name && self.coin(0.6) {
            let name = self.fresh("g");
            inner.push((name.clone(), Kind::Edge));
            edge.name = Some(name);
        }
        let new = inner[outer.len()..].iter().map(|(name, _)| (name.clone(), Kind::Edges));
        let after = self.scope.iter().cloned().chain(new).collect();
        self.scope = inner;
        let filter = self.coin(0.4).then(|| self.truth(2));
        self.scope = after;
        let (from, to) =
            [(0, Some(1)), (0, None), (1, Some(2)), (1, None), (2, Some(3))][self.rng.random_range(0..5)];
        let to = self.longest.map_or(to, |longest| Some(to.unwrap_or(longest).min(longest)));
        let range = Some((Some(to.map_or(from, |to| to.min(from))), to));
        let group = Some(Box::new(Group { left, edge, right, filter }));
        EdgePattern {
            name: None,
            types: vec![],
            direction: Direction::Right,
            range,
            properties: vec![],
            group,
        }
    }

    fn constraints(&mut self, outer: &[(String, Kind)], probability: f64) -> Vec<(String, Expr)> {
        if !self.coin(probability) {
            return vec![];
        }
        let key = random_key(self.rng);
        let nodes: Vec<&String> = outer.iter().filter(|(_, k)| *k == Kind::Node).map(|(n, _)| n).collect();
        let value = match nodes.choose(self.rng) {
            Some(node) if self.coin(0.3) => Expr::Property((*node).clone(), key.to_owned()),
            _ => Expr::Literal(random_value(self.rng, key)),
        };
        vec![(key.to_owned(), value)]
    }

    fn unwind(&mut self) -> Clause {
        let list = match self.rng.random_range(0..5) {
            0 => {
                Expr::Call("range", vec![int(self.rng.random_range(-1..2)), int(self.rng.random_range(0..4))])
            }
            1 => self.name_of(Kind::Ints).map_or_else(|| Expr::List(vec![]), Expr::Name),
            _ => {
                let count = self.rng.random_range(0..4);
                Expr::List((0..count).map(|_| self.int(1)).collect())
            }
        };
        let name = self.fresh("u");
        self.scope.push((name.clone(), Kind::Int));
        Clause::Unwind(list, name)
    }

    fn projection(&mut self, count: usize, may_slice: bool) -> Projection {
        let aggregates = self.coin(0.35);
        let mut items = vec![];
        for _ in 0..count {
            let expr = if aggregates && self.coin(0.6) { self.aggregate() } else { self.output() };
            let name = match &expr {
                Expr::Name(name) if !items.iter().any(|(_, other)| other == name) && self.coin(0.7) => {
                    name.clone()
                }
                _ => self.fresh("x"),
            };
            items.push((expr, name));
        }
        let kinds: Vec<(String, Kind)> =
            items.iter().map(|(expr, name)| (name.clone(), self.kind_of(expr))).collect();
        let mut body = Projection { distinct: self.coin(0.2), ..Projection::new(items) };
        let sortable = |kind: &Kind| !matches!(kind, Kind::Edges | Kind::Path | Kind::Other | Kind::Ints);
        if may_slice && self.coin(0.35) && kinds.iter().all(|(_, kind)| sortable(kind)) {
            for (name, kind) in kinds {
                let key = Expr::Name(name);
                let id = matches!(kind, Kind::Node | Kind::Edge);
                body.order.push((if id { Expr::Call("id", vec![key]) } else { key }, self.rng.random()));
            }
            body.skip = self.coin(0.3).then(|| self.rng.random_range(0..4));
            body.limit = self.coin(0.5).then(|| self.rng.random_range(0..6));
        }
        body
    }

    fn output(&mut self) -> Expr {
        let any = self.scope.choose(self.rng).cloned();
        match (self.rng.random_range(0..10), any) {
            (0..=3, Some((name, _))) => Expr::Name(name),
            (4, _) => self.truth(2),
            (5, _) => self.int(2),
            (6, Some((name, Kind::Path))) => Expr::Call("nodes", vec![Expr::Name(name)]),
            (7, _) => self.list_value(),
            (8, Some((name, Kind::Node | Kind::Edge))) => self.map_projection(name),
            _ => match self.element() {
                Some(name) => Expr::Property(name, random_key(self.rng).to_owned()),
                None => self.int(1),
            },
        }
    }

    fn list_value(&mut self) -> Expr {
        match (self.name_of(Kind::Edges), self.name_of(Kind::Path)) {
            (Some(edges), _) if self.coin(0.5) => {
                let item = self.fresh("i");
                let value = Expr::Property(item.clone(), random_key(self.rng).to_owned());
                Expr::Comprehension {
                    name: item,
                    list: Box::new(Expr::Name(edges)),
                    filter: None,
                    value: Box::new(value),
                }
            }
            (_, Some(path)) if self.coin(0.5) => Expr::Call("relationships", vec![Expr::Name(path)]),
            _ => {
                let (item, list) = (self.fresh("i"), self.ints());
                let outer = self.scope.len();
                self.scope.push((item.clone(), Kind::Int));
                // Subqueries over such a variable are not supported.
                let subqueries = std::mem::take(&mut self.subqueries);
                let filter = self.coin(0.5).then(|| Box::new(self.truth(1)));
                let value = Box::new(self.int(1));
                self.subqueries = subqueries;
                self.scope.truncate(outer);
                Expr::Comprehension { name: item, list: Box::new(list), filter, value }
            }
        }
    }

    fn map_projection(&mut self, name: String) -> Expr {
        let all = self.coin(0.6);
        let mut entries = vec![];
        for _ in 0..self.rng.random_range(0..3) {
            let key = if self.coin(0.5) { random_key(self.rng) } else { "other" };
            // A later entry takes the place of an earlier one, as in the engine.
            entries.push((key.to_owned(), self.scalar()));
        }
        Expr::MapProjection { name, all, entries }
    }

    fn ints(&mut self) -> Expr {
        if self.coin(0.2) {
            let (list, other) = (self.plain_ints(), self.plain_ints());
            return match self.rng.random_range(0..4) {
                0 => Expr::Call("collToSet", vec![list]),
                1 => Expr::Call("collSubtract", vec![list, other]),
                2 => Expr::Call("collIntersection", vec![list, other]),
                _ => Expr::Call("collSort", vec![list]),
            };
        }
        self.plain_ints()
    }

    fn plain_ints(&mut self) -> Expr {
        match self.name_of(Kind::Ints) {
            Some(name) if self.coin(0.5) => Expr::Name(name),
            _ => {
                let count = self.rng.random_range(0..4);
                Expr::List((0..count).map(|_| self.int(1)).collect())
            }
        }
    }

    fn aggregate(&mut self) -> Expr {
        let distinct = self.coin(0.3);
        let (function, of) = match self.rng.random_range(0..8) {
            0..=1 => return Expr::Aggregate { function: "count", distinct: false, of: None },
            2 => ("count", self.output()),
            3 => ("sum", self.int(2)),
            4 => ("avg", self.int(1)),
            5 => ("min", self.scalar()),
            6 => ("max", self.scalar()),
            _ => ("collect", self.output()),
        };
        Expr::Aggregate { function, distinct, of: Some(Box::new(of)) }
    }

    fn scalar(&mut self) -> Expr {
        match self.element() {
            Some(name) if self.coin(0.7) => Expr::Property(name, random_key(self.rng).to_owned()),
            _ => self.int(1),
        }
    }

    fn int(&mut self, depth: usize) -> Expr {
        let key = INT_KEYS[self.rng.random_range(0..2)].to_owned();
        match self.rng.random_range(0..if depth == 0 { 5 } else { 11 }) {
            0..=2 => match self.element() {
                Some(name) => Expr::Property(name, key),
                None => int(self.rng.random_range(-2..5)),
            },
            3 => match self.name_of(Kind::Int) {
                Some(name) => Expr::Name(name),
                None => int(self.rng.random_range(-2..5)),
            },
            4 => match self.rng.random_range(0..8) {
                0 => Expr::Literal(Val::Null),
                _ => int(self.rng.random_range(-2..5)),
            },
            5..=6 => {
                let operator = ["+", "-", "*"][self.rng.random_range(0..3)];
                Expr::Binary(operator, Box::new(self.int(depth - 1)), Box::new(self.int(depth - 1)))
            }
            7 => match (self.name_of(Kind::Edges), self.name_of(Kind::Path)) {
                (Some(name), _) => Expr::Call("size", vec![Expr::Name(name)]),
                (_, Some(name)) => Expr::Call("length", vec![Expr::Name(name)]),
                _ => match self.name_of(Kind::Node) {
                    Some(name) => {
                        let of = if self.coin(0.5) { "labels" } else { "keys" };
                        Expr::Call("size", vec![Expr::Call(of, vec![Expr::Name(name)])])
                    }
                    None => int(1),
                },
            },
            8 => Expr::Call("coalesce", vec![self.int(depth - 1), self.int(depth - 1)]),
            9 => {
                let condition = self.truth(depth - 1);
                Expr::Case(vec![(condition, self.int(depth - 1))], Box::new(self.int(depth - 1)))
            }
            _ => match self.subquery() {
                Some((patterns, filter)) => Expr::Count(patterns, filter),
                None => int(2),
            },
        }
    }

    fn text(&mut self) -> Expr {
        match self.rng.random_range(0..6) {
            0 => Expr::Literal(random_value(self.rng, TEXT_KEY)),
            1 => match self.name_of(Kind::Edge) {
                Some(name) => Expr::Call("type", vec![Expr::Name(name)]),
                None => Expr::Literal(Val::Str("x".into())),
            },
            2 => match self.name_of(Kind::Text) {
                Some(name) => Expr::Name(name),
                None => Expr::Literal(Val::Str("y".into())),
            },
            _ => match self.element() {
                Some(name) => Expr::Property(name, TEXT_KEY.to_owned()),
                None => Expr::Literal(Val::Str("xy".into())),
            },
        }
    }

    fn subquery(&mut self) -> Option<(Vec<Pattern>, Option<Box<Expr>>)> {
        self.subqueries = self.subqueries.checked_sub(1)?;
        let outer = self.scope.clone();
        let mut pattern = self.pattern(&outer, true);
        if let Some(name) = self.scope[..outer.len()].iter().rfind(|(_, kind)| *kind == Kind::Node)
            && self.rng.random_bool(0.7)
        {
            let fresh = pattern.start.name.replace(name.0.clone());
            // Nothing else may use the name that the start had, if it was its own.
            if let Some(fresh) = fresh.filter(|fresh| !outer.iter().any(|(n, _)| n == fresh)) {
                self.scope.retain(|(n, _)| *n != fresh);
                for (_, node) in &mut pattern.steps {
                    node.name.take_if(|n| *n == fresh);
                }
            }
        }
        let filter = self.coin(0.4).then(|| Box::new(self.truth(1)));
        self.scope = outer;
        self.subqueries += 1;
        Some((vec![pattern], filter))
    }

    /// Draws a condition.
    pub(crate) fn truth(&mut self, depth: usize) -> Expr {
        match self.rng.random_range(0..if depth == 0 { 6 } else { 14 }) {
            0..=2 => self.comparison(depth),
            3 => match self.element() {
                Some(name) => {
                    let of = Box::new(Expr::Property(name, random_key(self.rng).to_owned()));
                    if self.coin(0.5) { Expr::IsNull(of) } else { Expr::IsNotNull(of) }
                }
                None => Expr::Literal(Val::Bool(true)),
            },
            4 => match self.name_of(Kind::Node) {
                Some(name) => Expr::HasLabel(name, self.label()),
                None => Expr::Literal(Val::Bool(false)),
            },
            5 => {
                let operator = ["STARTS WITH", "ENDS WITH", "CONTAINS"][self.rng.random_range(0..3)];
                Expr::Binary(operator, Box::new(self.text()), Box::new(self.text()))
            }
            6..=8 => {
                let operator = ["AND", "OR", "AND", "OR", "XOR"][self.rng.random_range(0..5)];
                Expr::Binary(operator, Box::new(self.truth(depth - 1)), Box::new(self.truth(depth - 1)))
            }
            9 => Expr::Not(Box::new(self.truth(depth - 1))),
            10 => {
                let value = self.int(depth - 1);
                let list = self.ints();
                Expr::Binary("IN", Box::new(value), Box::new(list))
            }
            11 => {
                let (name, list) = (self.fresh("i"), self.ints());
                let outer = self.scope.len();
                self.scope.push((name.clone(), Kind::Int));
                let filter = Box::new(self.truth(0));
                self.scope.truncate(outer);
                let kind = ["all", "any", "none", "single"][self.rng.random_range(0..4)];
                Expr::Quantifier { kind, name, list: Box::new(list), filter }
            }
            12 => match (self.name_of(Kind::Node), self.name_of(Kind::Node)) {
                (Some(a), Some(b)) => {
                    let operator = if self.coin(0.5) { "=" } else { "<>" };
                    Expr::Binary(operator, Box::new(Expr::Name(a)), Box::new(Expr::Name(b)))
                }
                _ => self.comparison(depth),
            },
            _ => match self.subquery() {
                Some((patterns, filter)) => Expr::Exists(patterns, filter),
                None => self.comparison(depth),
            },
        }
    }

    fn comparison(&mut self, depth: usize) -> Expr {
        let operator = ["=", "<>", "<", "<=", ">", ">="][self.rng.random_range(0..6)];
        let (a, b) = match self.rng.random_range(0..6) {
            0 => (self.text(), self.text()),
            1 => {
                let mixed = match self.element() {
                    Some(name) => Expr::Property(name, MIXED_KEY.to_owned()),
                    None => self.int(0),
                };
                let other = match self.element() {
                    Some(name) if self.coin(0.3) => Expr::Property(name, random_key(self.rng).to_owned()),
                    _ => Expr::Literal(random_value(self.rng, MIXED_KEY)),
                };
                (mixed, other)
            }
            2..=3 => (self.int(0), int(self.rng.random_range(-2..5))),
            _ => (self.int(depth.min(1)), self.int(depth.min(1))),
        };
        Expr::Binary(operator, Box::new(a), Box::new(b))
    }

    fn update(&mut self) -> Option<Clause> {
        let node = self.name_of(Kind::Node);
        let element = self.element();
        Some(match self.rng.random_range(0..12) {
            0..=1 => self.create(),
            2..=3 => self.merge(),
            4..=6 => Clause::Set(self.set_item(element?, true)),
            7 => Clause::RemoveProperty(element?, random_key(self.rng).to_owned()),
            8 => Clause::RemoveLabel(node?, self.label()),
            9 => Clause::Set(SetItem::Label(node?, self.label())),
            10 => Clause::Delete { detach: true, name: node? },
            _ => Clause::Delete { detach: false, name: self.name_of(Kind::Edge)? },
        })
    }

    /// Draws what `SET` sets. The result does not depend on the order of rows.
    fn set_item(&mut self, name: String, computes: bool) -> SetItem {
        let key = random_key(self.rng).to_owned();
        match self.rng.random_range(0..6) {
            0 => {
                let entries = vec![(key.clone(), Expr::Literal(random_value(self.rng, &key)))];
                SetItem::Map { name, replace: self.coin(0.3), entries }
            }
            1 => SetItem::Property(name, key, Expr::Literal(Val::Null)),
            2..=3 if computes => {
                let one = Box::new(int(self.rng.random_range(1..3)));
                let own = Box::new(Expr::Property(name.clone(), INT_KEYS[0].to_owned()));
                let target = INT_KEYS[self.rng.random_range(0..2)].to_owned();
                SetItem::Property(name, target, Expr::Binary("+", own, one))
            }
            _ => {
                let value = Expr::Literal(random_value(self.rng, &key));
                SetItem::Property(name, key, value)
            }
        }
    }

    /// Draws a node to create. Its values use only variables of `outer`.
    fn new_node(&mut self, outer: &[(String, Kind)]) -> NodePattern {
        let name = self.fresh("n");
        let labels = if self.coin(0.8) { vec![self.label()] } else { vec![] };
        let mut properties = vec![];
        if self.coin(0.7) {
            let scope = std::mem::replace(&mut self.scope, outer.to_vec());
            // Whether a subquery sees other parts of the same CREATE is open.
            let subqueries = std::mem::take(&mut self.subqueries);
            let value = self.int(1);
            (self.scope, self.subqueries) = (scope, subqueries);
            properties.push((INT_KEYS[0].to_owned(), value));
        }
        self.scope.push((name.clone(), Kind::Node));
        NodePattern { name: Some(name), labels, properties }
    }

    fn create(&mut self) -> Clause {
        let outer = self.scope.clone();
        let start = match self.name_of(Kind::Node) {
            // A variable may be null after OPTIONAL MATCH, but updates come before it.
            Some(name) if self.coin(0.5) => NodePattern { name: Some(name), ..NodePattern::default() },
            _ => self.new_node(&outer),
        };
        let mut steps = vec![];
        let bound = start.labels.is_empty() && start.properties.is_empty();
        if self.coin(0.6) || bound {
            let edge = self.new_edge();
            let to = match self.name_of(Kind::Node) {
                Some(name) if self.coin(0.4) => NodePattern { name: Some(name), ..NodePattern::default() },
                _ => self.new_node(&outer),
            };
            steps.push((edge, to));
        }
        Clause::Create(vec![Pattern { path: None, shortest: None, start, steps }])
    }

    fn new_edge(&mut self) -> EdgePattern {
        let direction = if self.coin(0.5) { Direction::Right } else { Direction::Left };
        let kind = TYPES[self.rng.random_range(0..3)].to_owned();
        let properties = if self.coin(0.5) {
            vec![(INT_KEYS[1].to_owned(), Expr::Literal(random_value(self.rng, INT_KEYS[1])))]
        } else {
            vec![]
        };
        EdgePattern { name: None, types: vec![kind], direction, range: None, properties, group: None }
    }

    fn merge(&mut self) -> Clause {
        let start;
        let mut steps = vec![];
        match (self.name_of(Kind::Node), self.name_of(Kind::Node)) {
            (Some(a), Some(b)) if self.coin(0.5) => {
                start = NodePattern { name: Some(a), ..NodePattern::default() };
                let to = NodePattern { name: Some(b), ..NodePattern::default() };
                steps.push((self.new_edge(), to));
            }
            _ => {
                let value = match self.name_of(Kind::Int) {
                    Some(name) => Expr::Call("coalesce", vec![Expr::Name(name), int(0)]),
                    None => int(self.rng.random_range(-1..3)),
                };
                let name = self.fresh("n");
                start = NodePattern {
                    name: Some(name.clone()),
                    labels: vec![self.label()],
                    properties: vec![(INT_KEYS[0].to_owned(), value)],
                };
                self.scope.push((name, Kind::Node));
            }
        }
        let target = start.name.clone().unwrap_or_default();
        let mut item = || {
            let key = TEXT_KEY.to_owned();
            let value = Expr::Literal(random_value(self.rng, TEXT_KEY));
            self.rng.random_bool(0.4).then(|| SetItem::Property(target.clone(), key, value))
        };
        let (on_create, on_match) = if steps.is_empty() { (item(), item()) } else { (None, None) };
        Clause::Merge { pattern: Pattern { path: None, shortest: None, start, steps }, on_create, on_match }
    }
}

fn int(value: i64) -> Expr {
    Expr::Literal(Val::Int(value))
}

impl Projection {
    /// Makes a projection of these items.
    #[must_use]
    pub fn new(items: Vec<(Expr, String)>) -> Self {
        Self { distinct: false, items, order: vec![], skip: None, limit: None, filter: None }
    }
}

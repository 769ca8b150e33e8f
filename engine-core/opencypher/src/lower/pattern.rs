//! Patterns of MATCH and of expressions: trees to `plan::MatchPattern`, each variable once.

use super::expression::{ID_KEY, id_of};
use super::matching::Conditions;
use super::types::Types;
use super::{
    Lowering, OPERATORS_OF_EDGE, OPERATORS_OF_NODE, OPERATORS_OF_OTHER_EDGE, Origin, Pending,
    already_declared, label,
};
use crate::ast::{
    Choice, EdgePattern, Expr as Tree, LabelTest, Name, NodePattern, PathMode, PathPattern, Properties,
};
use crate::fault::{Fault, Result};
use std::slice::from_ref;
use tidegraph_plan::{
    Comparison, Expr, Function, Length, MatchPattern, NamedPath, Op, PatternBody, PatternEdge, PatternNode,
    Quantifier, Selection, Slot,
};
use tidegraph_types::{Direction, Str};

/// The meaning of a name that is not in scope.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// A new variable.
    New,
    /// An error.
    Known,
}

/// A pattern with its variables in scope.
pub(super) struct Matched {
    pub pattern: MatchPattern,
    /// For each node of the text, in its order, the index in the pattern. Edges keep the order of the text.
    pub nodes: Vec<usize>,
    /// Slots of its new variables.
    pub new: Vec<Slot>,
    /// Conditions on its elements that the pattern itself cannot hold.
    pub conditions: Conditions,
}

impl<'a> Lowering<'a> {
    /// Lowers a pattern with its labels, properties and conditions.
    pub(super) fn match_pattern(&mut self, paths: &'a [PathPattern], names: Names) -> Result<Matched> {
        let first_slot = self.slots;
        let mut matched = self.shape(paths, names)?;
        let own = first_slot..self.slots;
        let (mut node, mut edge) = (0, 0);
        for path in paths {
            for tree in &path.nodes {
                let index = matched.nodes[node];
                node += 1;
                let slot = matched.pattern.nodes[index].slot;
                for test in tree.labels.iter().flat_map(|test| label::split(test).1) {
                    let condition = self.label_test(&Expr::Slot(slot), Types::NODE, test)?;
                    self.refuse_pending(tree.place.0)?;
                    require(&mut matched.pattern, condition);
                }
                for (key, value) in entries(&tree.properties)? {
                    let (value, pending) = self.value_and_pending(value)?;
                    if !pending.is_empty() {
                        let condition = property_equals(&Expr::Slot(slot), key, value);
                        matched.conditions.after(pending, condition);
                        continue;
                    }
                    if let Some(condition) = as_condition(key, &value, &own, &Expr::Slot(slot)) {
                        require(&mut matched.pattern, condition);
                    } else {
                        matched.pattern.nodes[index].properties.push((key.clone(), value));
                    }
                }
                if let Some(filter) = &tree.filter {
                    self.add_conditions(filter, &mut matched.conditions)?;
                }
            }
            for tree in &path.edges {
                let index = edge;
                edge += 1;
                let (slot, length) = {
                    let edge = &matched.pattern.edges[index];
                    (edge.slot, edge.length)
                };
                if let Some(test) = tree.types.as_ref().filter(|test| test.one_of().is_none()) {
                    let each = if length.is_some() { self.slot() } else { slot };
                    let condition = self.label_test(&Expr::Slot(each), Types::EDGE, test)?;
                    self.refuse_pending(tree.place.0)?;
                    if length.is_some() {
                        matched.pattern.edges[index].filter = Some((each, condition));
                    } else {
                        require(&mut matched.pattern, condition);
                    }
                }
                if let Some(filter) = tree.filter.as_ref().filter(|_| tree.quantified) {
                    let (each, condition) = self.each_filter(tree.variable.as_ref(), filter)?;
                    let before = matched.pattern.edges[index].filter.take();
                    matched.pattern.edges[index].filter = Some(match before {
                        None => (each, condition),
                        Some((label, test)) => (each, renamed(test, label, each).and(condition)),
                    });
                } else if let Some(filter) = &tree.filter {
                    if length.is_some() {
                        let message = "WHERE inside a relationship pattern of variable length, \
                                       expected all(r IN relationships(p) WHERE …) after the pattern";
                        return Err(Fault::syntax(filter.place.0, message));
                    }
                    self.add_conditions(filter, &mut matched.conditions)?;
                }
                for (key, value) in entries(&tree.properties)? {
                    let (value, pending) = self.value_and_pending(value)?;
                    if !pending.is_empty() {
                        let each = if length.is_some() { self.slot() } else { slot };
                        let mut condition = property_equals(&Expr::Slot(each), key, value);
                        if length.is_some() {
                            condition = of_all(each, slot, condition);
                        }
                        matched.conditions.after(pending, condition);
                        continue;
                    }
                    let item = if length.is_some() { self.slot() } else { slot };
                    match as_condition(key, &value, &own, &Expr::Slot(item)) {
                        Some(condition) if length.is_some() => {
                            require(&mut matched.pattern, of_all(item, slot, condition));
                        }
                        Some(condition) => require(&mut matched.pattern, condition),
                        None => matched.pattern.edges[index].properties.push((key.clone(), value)),
                    }
                }
            }
        }
        for condition in matched.conditions.take_plain() {
            require(&mut matched.pattern, condition);
        }
        let mut edges = 0;
        for path in paths {
            match &path.filter {
                _ if path.choice.is_some() => self.accept(path, edges, &mut matched.pattern)?,
                Some(filter) => self.add_conditions(filter, &mut matched.conditions)?,
                None => {}
            }
            edges += path.edges.len();
        }
        Ok(matched)
    }

    /// Lowers what a path behind a selector has to be, whose pattern has one edge: its mode, and the WHERE of its
    /// parentheses.
    fn accept(&mut self, path: &'a PathPattern, edge: usize, pattern: &mut MatchPattern) -> Result<()> {
        let Some(found) = pattern.edges.get(edge) else { return Ok(()) };
        let ends = [found.left, found.right].map(|end| pattern.nodes.get(end).map(|node| node.slot));
        let slots = [ends[0], Some(found.slot), ends[1]];
        let whole = Expr::Call(Function::MakePath, slots.into_iter().flatten().map(Expr::Slot).collect());
        let of_mode = path.mode.and_then(PathMode::test).map(|test| Expr::Call(test, vec![whole.clone()]));
        let of_filter = path.filter.as_ref().map(|filter| self.accepted(filter, path, whole, pattern));
        let conditions = of_mode.into_iter().chain(of_filter.transpose()?);
        let body = pattern.edges.get_mut(edge).and_then(|edge| edge.body.as_mut());
        if let Some(selection) = body.and_then(|body| body.selection.as_mut()) {
            selection.accept = conditions.reduce(Expr::and);
        }
        Ok(())
    }

    /// Lowers the WHERE of the parentheses behind a selector. `whole`: makes the path.
    fn accepted(
        &mut self,
        filter: &'a Tree,
        path: &PathPattern,
        whole: Expr,
        pattern: &MatchPattern,
    ) -> Result<Expr> {
        let before = std::mem::take(&mut self.pending);
        let condition = self.boolean(filter)?;
        if !std::mem::replace(&mut self.pending, before).is_empty() {
            let construct = "subquery inside the WHERE of a path behind a selector";
            return Err(Fault::unsupported(filter.place.0, construct));
        }
        let mut named = None;
        condition.for_each_slot(&mut |slot| {
            named = named.or(pattern.paths.iter().map(|path| path.slot).find(|path| *path == slot));
        });
        let own = path.variable.as_ref().filter(|_| path.named_inside);
        let own = own.and_then(|name| self.find(&name.text)).map(|variable| variable.slot);
        match named {
            None => Ok(condition),
            Some(slot) if Some(slot) == own => Ok(replaced(condition, slot, &whole)),
            Some(_) => {
                let message = "the WHERE of a path behind a selector does not see the path, expected its \
                               variables, or the name inside the parentheses";
                Err(Fault::syntax(filter.place.0, message))
            }
        }
    }

    /// Lowers the WHERE of a quantified relationship, in which its name means each relationship. Returns the local slot of
    /// that, and the condition.
    fn each_filter(&mut self, name: Option<&'a Name>, filter: &'a Tree) -> Result<(Slot, Expr)> {
        let before = std::mem::take(&mut self.pending);
        let (slot, mark) = self.local(name.map_or("", |name| &name.text), Types::EDGE);
        let condition = self.boolean(filter)?;
        self.scope.truncate(mark);
        if !std::mem::replace(&mut self.pending, before).is_empty() {
            let construct = "subquery inside the WHERE of a quantified relationship";
            return Err(Fault::unsupported(filter.place.0, construct));
        }
        Ok((slot, condition))
    }

    /// Lowers a value, and returns the subqueries that must be bound before it is computed.
    fn value_and_pending(&mut self, tree: &'a Tree) -> Result<(Expr, Vec<Pending>)> {
        let before = std::mem::take(&mut self.pending);
        let value = self.value(tree)?;
        Ok((value, std::mem::replace(&mut self.pending, before)))
    }

    /// Lowers a pattern without its properties.
    pub(super) fn shape(&mut self, paths: &'a [PathPattern], names: Names) -> Result<Matched> {
        let mut shape = Shape {
            first_slot: Slot(self.slots),
            first_variable: self.scope.len(),
            names,
            matched: Matched {
                pattern: MatchPattern::default(),
                nodes: vec![],
                new: vec![],
                conditions: Conditions::default(),
            },
        };
        for path in paths {
            let mut left = self.shape_node(&mut shape, path.nodes.first())?;
            let start = left;
            let first_edge = shape.matched.pattern.edges.len();
            for (edge, node) in path.edges.iter().zip(path.nodes.iter().skip(1)) {
                // The edge first, so that the first error of the text is reported.
                let at = shape.matched.pattern.edges.len();
                let bound = match &edge.group {
                    Some(group) => self.shape_group(&mut shape, edge, group, path)?,
                    None => self.shape_edge(&mut shape, edge, path)?,
                };
                shape.matched.pattern.edges.push(bound);
                let right = self.shape_node(&mut shape, Some(node))?;
                let bound = &mut shape.matched.pattern.edges[at];
                (bound.left, bound.right) = (left, right);
                left = right;
            }
            if path.shortest.is_some() && path.edges.len() != 1 {
                let message = "shortestPath() takes a pattern of one relationship";
                return Err(Fault::syntax(path.place.0, message));
            }
            // A selector chooses among the paths that pass.
            let test = path.mode.and_then(PathMode::test).filter(|_| path.choice.is_none());
            let named = match &path.variable {
                Some(name) => {
                    let slot = self.declare_new(name, Types::PATH)?;
                    shape.matched.new.push(slot);
                    Some(slot)
                }
                None => test.map(|_| self.slot()),
            };
            if path.repeats {
                let all = shape.matched.pattern.edges.len();
                shape.repeat_elements(first_edge..all, path.mode.is_some_and(PathMode::is_trail));
            }
            if let Some(slot) = named {
                if let Some(test) = test {
                    require(&mut shape.matched.pattern, Expr::Call(test, vec![Expr::Slot(slot)]));
                }
                let edges = (first_edge..shape.matched.pattern.edges.len()).map(|e| (e, true)).collect();
                shape.matched.pattern.paths.push(NamedPath { slot, start, edges });
            }
        }
        Ok(shape.matched)
    }

    /// Returns the index of a node in the pattern.
    fn shape_node(&mut self, shape: &mut Shape, tree: Option<&'a NodePattern>) -> Result<usize> {
        let variable = tree.and_then(|tree| tree.variable.as_ref());
        let labels = tree.and_then(|tree| tree.labels.as_ref()).map(|test| label::split(test).0);
        let (slot, bound) = match variable {
            None => (self.slot(), false),
            Some(name) => match self.known(name, Types::NODE, shape.names)? {
                Some(slot) => (slot, slot < shape.first_slot),
                None => {
                    let slot = self.slot();
                    self.declare(&name.text, slot, Types::NODE, Origin::Clause);
                    shape.matched.new.push(slot);
                    (slot, false)
                }
            },
        };
        let nodes = &mut shape.matched.pattern.nodes;
        let index = nodes.iter().position(|n| n.slot == slot).unwrap_or(nodes.len());
        if index == nodes.len() {
            self.count_operators(OPERATORS_OF_NODE, tree.map_or(self.place, |tree| tree.place.0))?;
            nodes.push(PatternNode { slot, bound, labels: vec![], properties: vec![] });
        }
        for label in labels.unwrap_or_default() {
            if !nodes[index].labels.contains(label) {
                nodes[index].labels.push(label.clone());
            }
        }
        shape.matched.nodes.push(index);
        Ok(index)
    }

    /// Lowers an edge whose ends the caller sets.
    fn shape_edge(
        &mut self,
        shape: &mut Shape,
        tree: &'a EdgePattern,
        path: &'a PathPattern,
    ) -> Result<PatternEdge> {
        let mut length = tree.length;
        if path.shortest.is_some() {
            if let Some(name) = tree.variable.as_ref().filter(|_| length.is_none()) {
                return Err(Fault::unsupported(
                    name.place.0,
                    "named relationship of fixed length in shortestPath()",
                ));
            }
            let given = *length.get_or_insert(Length { min: 1, max: Some(1) });
            if given.min > 1 {
                let message = format!("shortestPath() from length {}, expected 0 or 1", given.min);
                return Err(Fault::syntax(tree.place.0, message));
            }
        }
        let types = if length.is_some() { Types::LIST } else { Types::EDGE };
        let (slot, bound) = match &tree.variable {
            None => (self.slot(), false),
            Some(name) => match self.known(name, types, shape.names)? {
                Some(slot) if slot >= shape.first_slot => return Err(already_declared(name)),
                Some(slot) if shape.matched.pattern.edges.iter().any(|e| e.slot == slot) => {
                    return Err(already_declared(name));
                }
                Some(slot) => (slot, true),
                None => {
                    let slot = self.slot();
                    self.declare(&name.text, slot, types, Origin::Clause);
                    shape.matched.new.push(slot);
                    (slot, false)
                }
            },
        };
        let plain = length.is_none() && !bound;
        let operators = if plain { OPERATORS_OF_EDGE } else { OPERATORS_OF_OTHER_EDGE };
        self.count_operators(operators, tree.place.0)?;
        let names = tree.types.as_ref().and_then(LabelTest::one_of).unwrap_or_default();
        let labels = names.into_iter().cloned().collect();
        Ok(PatternEdge {
            slot,
            bound,
            left: 0,
            right: 0,
            direction: tree.direction,
            labels,
            properties: vec![],
            filter: None,
            length,
            shortest: path.shortest,
            body: None,
        })
    }

    /// Lowers a quantified path pattern, whose ends the caller sets. It sees the variables of earlier clauses; outside, its
    /// own variables are lists.
    fn shape_group(
        &mut self,
        shape: &mut Shape,
        tree: &'a EdgePattern,
        group: &'a PathPattern,
        path: &'a PathPattern,
    ) -> Result<PatternEdge> {
        if path.shortest.is_some() {
            let message = "shortestPath() takes a pattern of one relationship";
            return Err(Fault::syntax(tree.place.0, message));
        }
        let names = group.nodes.iter().map(|node| &node.variable).chain([&group.variable]);
        for name in names.chain(group.edges.iter().map(|edge| &edge.variable)).flatten() {
            if self.find(&name.text).is_some() {
                return Err(already_declared(name));
            }
        }
        self.count_operators(OPERATORS_OF_OTHER_EDGE, tree.place.0)?;
        self.limits.spend(self.scope.len())?;
        let scope = self.scope.clone();
        self.scope.truncate(shape.first_variable);
        let hint = self
            .hint
            .replace("a quantified path pattern sees its own variables and those of earlier clauses");
        let matched = self.match_pattern(from_ref(group), shape.names)?;
        let named: Vec<(&'a str, Slot)> = self
            .scope
            .iter()
            .skip(shape.first_variable)
            .map(|variable| (variable.name, variable.slot))
            .collect();
        let edges = &matched.pattern.edges;
        let steps = edges.iter().map(|edge| edge.slot).collect();
        let direction = edges.first().map_or(Direction::Both, |edge| edge.direction);
        let any_label = edges.iter().any(|edge| edge.labels.is_empty());
        let labels = edges.iter().flat_map(|edge| &edge.labels).filter(|_| !any_label).cloned().collect();
        let first = matched.nodes.first().copied().unwrap_or_default();
        let last = matched.nodes.last().copied().unwrap_or_default();
        let plan = self.matched_rows(Op::Argument, from_ref(group), matched)?;
        self.scope = scope;
        self.hint = hint;

        let selection = path.choice.map(|Choice { count, groups }| {
            let directed = direction != Direction::Both;
            Selection { count, groups, directed, accept: None }
        });
        let mut groups = Vec::with_capacity(named.len());
        for (name, slot) in named {
            let list = self.slot();
            self.declare(name, list, Types::LIST, Origin::Clause);
            shape.matched.new.push(list);
            groups.push((slot, list));
        }
        Ok(PatternEdge {
            slot: self.slot(),
            bound: false,
            left: 0,
            right: 0,
            direction,
            labels,
            properties: vec![],
            filter: None,
            length: tree.length,
            shortest: None,
            body: Some(Box::new(PatternBody {
                plan,
                first,
                last,
                steps,
                groups,
                selection,
                repeats: group.repeats,
            })),
        })
    }

    /// Returns the slot of a name in scope, if its value may be of the type that the pattern needs.
    fn known(&self, name: &Name, types: Types, names: Names) -> Result<Option<Slot>> {
        if self.find(&name.text).is_none() && names == Names::New {
            return Ok(None);
        }
        let (slot, known) = self.resolve(&name.text, name.place.0)?;
        if !known.meets(types) {
            return Err(conflict(name, known, types));
        }
        Ok(Some(slot))
    }
}

/// A pattern under construction.
struct Shape {
    /// The pattern's slots have this number or a higher one.
    first_slot: Slot,
    /// Number of the variables of earlier clauses in scope.
    first_variable: usize,
    names: Names,
    matched: Matched,
}

impl Shape {
    /// Lets each of these edges match what others match, or keeps them apart from the others only (`is_trail`).
    fn repeat_elements(&mut self, edges: std::ops::Range<usize>, is_trail: bool) {
        let clauses = &mut self.matched.pattern.clauses;
        let next = clauses.iter().max().map_or(0, |last| last + 1);
        let own = edges.len() as u32;
        clauses.extend((0..own).map(|edge| if is_trail { next } else { next + edge }));
    }
}

/// Returns the error that a variable is not of the type that its place needs.
pub(super) fn conflict(name: &Name, known: Types, wanted: Types) -> Fault {
    let message = format!("variable `{}` is {}, expected {}", name.text, known.describe(), wanted.describe());
    Fault::syntax(name.place.0, message)
}

/// Returns the properties of a pattern to be matched.
fn entries(properties: &Properties) -> Result<&[(Str, Tree)]> {
    match properties {
        Properties::None => Ok(&[]),
        Properties::Map(entries) => Ok(entries),
        Properties::Parameter(name, place) => {
            let message = format!(
                "parameter ${name} as the properties of a pattern is not allowed here, expected '{{'"
            );
            Err(Fault::syntax(place.0, message))
        }
    }
}

/// Returns the condition that an entry of a pattern stands for, if the pattern itself cannot hold it: an id is no
/// property, and a value over variables of the pattern (`own`) is known only after they are matched.
fn as_condition(key: &Str, value: &Expr, own: &std::ops::Range<u32>, element: &Expr) -> Option<Expr> {
    if key == ID_KEY {
        return Some(Expr::compare(Comparison::Equal, id_of(element.clone()), value.clone()));
    }
    let mut depends = false;
    value.for_each_slot(&mut |slot| depends |= own.contains(&slot.0));
    let property = || Expr::Property(Box::new(element.clone()), key.clone());
    depends.then(|| Expr::compare(Comparison::Equal, property(), value.clone()))
}

/// Returns an expression with another number for a slot.
pub(super) fn renamed(mut expr: Expr, from: Slot, to: Slot) -> Expr {
    fn rename(expr: &mut Expr, from: Slot, to: Slot) {
        if let Expr::Slot(slot) = expr
            && *slot == from
        {
            *slot = to;
        }
        expr.children_mut().into_iter().for_each(|child| rename(child, from, to));
    }
    rename(&mut expr, from, to);
    expr
}

/// Returns an expression with another one in place of a slot.
fn replaced(mut expr: Expr, slot: Slot, by: &Expr) -> Expr {
    fn replace(expr: &mut Expr, slot: Slot, by: &Expr) {
        if *expr == Expr::Slot(slot) {
            *expr = by.clone();
        } else {
            expr.children_mut().into_iter().for_each(|child| replace(child, slot, by));
        }
    }
    replace(&mut expr, slot, by);
    expr
}

fn property_equals(element: &Expr, key: &Str, value: Expr) -> Expr {
    if key == ID_KEY {
        return Expr::compare(Comparison::Equal, id_of(element.clone()), value);
    }
    Expr::compare(Comparison::Equal, Expr::Property(Box::new(element.clone()), key.clone()), value)
}

/// Returns the test that all edges of a list satisfy a condition on the local slot `item`.
fn of_all(item: Slot, edges: Slot, condition: Expr) -> Expr {
    Expr::Quantified {
        quantifier: Quantifier::All,
        variable: item,
        list: Box::new(Expr::Slot(edges)),
        predicate: Box::new(condition),
    }
}

/// Adds a condition to a pattern.
pub(super) fn require(pattern: &mut MatchPattern, condition: Expr) {
    pattern.predicate = Some(match pattern.predicate.take() {
        Some(predicate) => predicate.and(condition),
        None => condition,
    });
}

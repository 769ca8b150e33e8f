//! Patterns of MATCH and of expressions: trees to `plan::MatchPattern`, each variable once.

use super::expression::{ID_KEY, id_of};
use super::types::Types;
use super::{
    Lowering, OPERATORS_OF_EDGE, OPERATORS_OF_NODE, OPERATORS_OF_OTHER_EDGE, Origin, already_declared,
};
use crate::ast::{EdgePattern, Expr as Tree, Name, NodePattern, PathPattern, Properties};
use crate::fault::{Fault, Result};
use tidegraph_plan::{
    Comparison, Expr, Length, MatchPattern, NamedPath, PatternEdge, PatternNode, Quantifier, Slot,
};
use tidegraph_types::Str;

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
}

impl<'a> Lowering<'a> {
    /// Lowers a pattern with its labels and properties.
    pub(super) fn match_pattern(&mut self, paths: &'a [PathPattern], names: Names) -> Result<Matched> {
        let first_slot = self.slots;
        let mut matched = self.shape(paths, names)?;
        let own = first_slot..self.slots;
        let (mut node, mut edge) = (0, 0);
        for path in paths {
            for tree in &path.nodes {
                let index = matched.nodes[node];
                node += 1;
                for (key, value) in entries(&tree.properties)? {
                    let value = self.value(value)?;
                    let slot = matched.pattern.nodes[index].slot;
                    if let Some(condition) = as_condition(key, &value, &own, &Expr::Slot(slot)) {
                        require(&mut matched.pattern, condition);
                    } else {
                        matched.pattern.nodes[index].properties.push((key.clone(), value));
                    }
                }
            }
            for tree in &path.edges {
                let index = edge;
                edge += 1;
                for (key, value) in entries(&tree.properties)? {
                    let value = self.value(value)?;
                    let (slot, length) = {
                        let edge = &matched.pattern.edges[index];
                        (edge.slot, edge.length)
                    };
                    let item = if length.is_some() { self.slot() } else { slot };
                    match as_condition(key, &value, &own, &Expr::Slot(item)) {
                        Some(condition) if length.is_some() => {
                            let condition = Expr::Quantified {
                                quantifier: Quantifier::All,
                                variable: item,
                                list: Box::new(Expr::Slot(slot)),
                                predicate: Box::new(condition),
                            };
                            require(&mut matched.pattern, condition);
                        }
                        Some(condition) => require(&mut matched.pattern, condition),
                        None => matched.pattern.edges[index].properties.push((key.clone(), value)),
                    }
                }
            }
        }
        if let Some(path) = paths.first()
            && !self.pending.is_empty()
        {
            return Err(Fault::unsupported(path.place.0, "subquery inside the properties of a pattern"));
        }
        Ok(matched)
    }

    /// Lowers a pattern without its properties.
    pub(super) fn shape(&mut self, paths: &'a [PathPattern], names: Names) -> Result<Matched> {
        let mut shape = Shape {
            first_slot: Slot(self.slots),
            names,
            matched: Matched { pattern: MatchPattern::default(), nodes: vec![], new: vec![] },
        };
        for path in paths {
            let mut left = self.shape_node(&mut shape, path.nodes.first())?;
            let start = left;
            let first_edge = shape.matched.pattern.edges.len();
            for (edge, node) in path.edges.iter().zip(path.nodes.iter().skip(1)) {
                // The edge first, so that the first error of the text is reported.
                let at = shape.matched.pattern.edges.len();
                let bound = self.shape_edge(&mut shape, edge, path)?;
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
            if let Some(name) = &path.variable {
                let slot = self.declare_new(name, Types::PATH)?;
                shape.matched.new.push(slot);
                let edges = (first_edge..shape.matched.pattern.edges.len()).map(|e| (e, true)).collect();
                shape.matched.pattern.paths.push(NamedPath { slot, start, edges });
            }
        }
        Ok(shape.matched)
    }

    /// Returns the index of a node in the pattern.
    fn shape_node(&mut self, shape: &mut Shape, tree: Option<&'a NodePattern>) -> Result<usize> {
        let (variable, labels) = tree.map_or((None, &[][..]), |t| (t.variable.as_ref(), &t.labels[..]));
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
        for label in labels {
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
                Some(_) if length.is_some() => {
                    let construct = "variable length relationship that is bound already";
                    return Err(Fault::unsupported(name.place.0, construct));
                }
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
        let labels = tree.types.clone();
        let (direction, shortest, properties) = (tree.direction, path.shortest, vec![]);
        Ok(PatternEdge { slot, bound, left: 0, right: 0, direction, labels, properties, length, shortest })
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
    names: Names,
    matched: Matched,
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

/// Adds a condition to a pattern.
pub(super) fn require(pattern: &mut MatchPattern, condition: Expr) {
    pattern.predicate = Some(match pattern.predicate.take() {
        Some(predicate) => predicate.and(condition),
        None => condition,
    });
}

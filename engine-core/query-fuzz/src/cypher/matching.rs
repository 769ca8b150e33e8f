//! Finds the matches of patterns by trying every node and every edge.

use super::ast::{Direction, EdgePattern, Expr, Group, NodePattern, Pattern};
use super::evaluate::{Reader, Row};
use crate::Stop;
use crate::value::{Val, equals};
use std::collections::BTreeSet;

/// One `MATCH`: no edge is used twice in it.
pub(super) struct Matcher<'a> {
    reader: Reader<'a>,
    patterns: &'a [Pattern],
    found: Vec<Row>,
    /// For each row: the first and last node of the last pattern, and the number of its edges.
    trails: Vec<(usize, usize, usize)>,
}

/// A match that is not complete.
#[derive(Clone)]
struct Partial {
    row: Row,
    used: Vec<usize>,
    /// Nodes and edges of the present pattern.
    trail: Vec<Val>,
}

impl<'a> Matcher<'a> {
    /// Returns all extensions of a row that match all patterns.
    pub(super) fn all(reader: Reader<'a>, patterns: &'a [Pattern], row: &Row) -> Result<Vec<Row>, Stop> {
        let mut matcher = Self { reader, patterns, found: vec![], trails: vec![] };
        matcher.pattern(0, Partial { row: row.clone(), used: vec![], trail: vec![] })?;
        match patterns {
            [Pattern { shortest: Some(lengths), .. }] => Ok(matcher.shortest(usize::from(*lengths))),
            _ => Ok(matcher.found),
        }
    }

    /// Returns the rows whose paths have one of the smallest lengths of all paths between the same nodes.
    fn shortest(self, lengths: usize) -> Vec<Row> {
        let trails = &self.trails;
        let is_chosen = |index: usize| {
            let (first, last, length) = &trails[index];
            let same = trails.iter().filter(|(a, b, _)| (a, b) == (first, last));
            let shorter: BTreeSet<usize> =
                same.map(|(_, _, other)| *other).filter(|other| other < length).collect();
            shorter.len() < lengths
        };
        let rows = self.found.into_iter().enumerate();
        rows.filter(|(index, _)| is_chosen(*index)).map(|(_, row)| row).collect()
    }

    fn pattern(&mut self, index: usize, mut partial: Partial) -> Result<(), Stop> {
        let Some(pattern) = self.patterns.get(index) else {
            if let (Some(Val::Node(first)), Some(Val::Node(last))) =
                (partial.trail.first(), partial.trail.last())
            {
                self.trails.push((*first, *last, partial.trail.len() / 2));
            }
            self.found.push(partial.row);
            return self.reader.budget.rows(self.found.len());
        };
        partial.trail.clear();
        for (node, _) in self.reader.graph.live_nodes() {
            if let Some(next) = self.node(&pattern.start, node, &partial)? {
                self.step(index, 0, node, next)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, index: usize, step: usize, at: usize, mut partial: Partial) -> Result<(), Stop> {
        self.reader.budget.step()?;
        let pattern = &self.patterns[index];
        let Some((edge, node)) = pattern.steps.get(step) else {
            if let Some(path) = &pattern.path {
                partial.row.insert(path.clone(), Val::Path(partial.trail.clone()));
            }
            return self.pattern(index + 1, partial);
        };
        if let Some((from, to)) = edge.range {
            let bounds = (from.unwrap_or(1), to.unwrap_or(usize::MAX));
            return self.walk(index, step, at, partial, bounds, &mut vec![]);
        }
        for (next, to) in self.edges(edge, at, &partial)? {
            let mut partial = partial.clone();
            partial.used.push(next);
            partial.trail.push(Val::Edge(next));
            if let Some(name) = &edge.name {
                partial.row.insert(name.clone(), Val::Edge(next));
            }
            if let Some(partial) = self.node(node, to, &partial)? {
                self.step(index, step + 1, to, partial)?;
            }
        }
        Ok(())
    }

    /// Walks any number of edges within the bounds.
    fn walk(
        &mut self,
        index: usize,
        step: usize,
        at: usize,
        partial: Partial,
        (from, to): (usize, usize),
        walked: &mut Vec<[usize; 3]>,
    ) -> Result<(), Stop> {
        self.reader.budget.step()?;
        let (edge, node) = &self.patterns[index].steps[step];
        if walked.len() >= from && walked.len() <= to {
            let mut partial = partial.clone();
            if let Some(name) = &edge.name {
                let edges = walked.iter().map(|[_, edge, _]| Val::Edge(*edge)).collect();
                partial.row.insert(name.clone(), Val::List(edges));
            }
            if let Some(group) = &edge.group {
                bind_lists(group, walked, &mut partial.row);
            }
            // The walk has put its last node into the trail; the check of the node puts it there again.
            if !walked.is_empty() {
                partial.trail.pop();
            }
            let before = partial.trail.clone();
            if let Some(mut partial) = self.node(node, at, &partial)? {
                if walked.is_empty() {
                    partial.trail = before;
                }
                self.step(index, step + 1, at, partial)?;
            }
        }
        if walked.len() < to {
            let found = match &edge.group {
                Some(group) => self.repetitions(group, at, &partial)?,
                None => self.edges(edge, at, &partial)?,
            };
            for (next, to_node) in found {
                let mut partial = partial.clone();
                partial.used.push(next);
                partial.trail.extend([Val::Edge(next), Val::Node(to_node)]);
                walked.push([at, next, to_node]);
                self.walk(index, step, to_node, partial, (from, to), walked)?;
                walked.pop();
            }
        }
        Ok(())
    }

    /// Returns the unused edges at a node that one repetition of a quantified path pattern may have, with their other ends.
    fn repetitions(&self, group: &Group, at: usize, partial: &Partial) -> Result<Vec<(usize, usize)>, Stop> {
        let mut found = vec![];
        let Some(left) = self.node(&group.left, at, partial)? else { return Ok(found) };
        for (edge, to) in self.edges(&group.edge, at, &left)? {
            let mut partial = left.clone();
            if let Some(name) = &group.edge.name {
                partial.row.insert(name.clone(), Val::Edge(edge));
            }
            let Some(partial) = self.node(&group.right, to, &partial)? else { continue };
            let passes = match &group.filter {
                Some(filter) => self.reader.value(filter, &partial.row)?.truth() == Some(true),
                None => true,
            };
            if passes {
                found.push((edge, to));
            }
        }
        Ok(found)
    }

    /// Returns the unused edges at a node that a pattern allows, with their other ends.
    fn edges(
        &self,
        pattern: &EdgePattern,
        at: usize,
        partial: &Partial,
    ) -> Result<Vec<(usize, usize)>, Stop> {
        let mut found = vec![];
        for (index, edge) in self.reader.graph.live_edges() {
            self.reader.budget.step()?;
            let out = edge.source == at && pattern.direction != Direction::Left;
            let back = edge.target == at && pattern.direction != Direction::Right;
            let typed = pattern.types.is_empty() || pattern.types.contains(&edge.kind);
            if !(out || back) || !typed || partial.used.contains(&index) {
                continue;
            }
            if self.has(&pattern.properties, &Val::Edge(index), &partial.row)? {
                found.push((index, if out { edge.target } else { edge.source }));
            }
        }
        Ok(found)
    }

    /// Binds a node to a pattern; `None` if it does not fit.
    fn node(&self, pattern: &NodePattern, node: usize, partial: &Partial) -> Result<Option<Partial>, Stop> {
        let Some(data) = self.reader.graph.node(node) else { return Ok(None) };
        if let Some(bound) = pattern.name.as_ref().and_then(|name| partial.row.get(name))
            && !matches!(bound, Val::Node(other) if *other == node)
        {
            return Ok(None);
        }
        if !pattern.labels.iter().all(|label| data.labels.contains(label))
            || !self.has(&pattern.properties, &Val::Node(node), &partial.row)?
        {
            return Ok(None);
        }
        let mut partial = partial.clone();
        partial.trail.push(Val::Node(node));
        if let Some(name) = &pattern.name {
            partial.row.insert(name.clone(), Val::Node(node));
        }
        Ok(Some(partial))
    }

    fn has(&self, wanted: &[(String, Expr)], of: &Val, row: &Row) -> Result<bool, Stop> {
        for (key, value) in wanted {
            let value = self.reader.value(value, row)?;
            if equals(&self.reader.graph.property(of, key), &value) != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Binds the variables of a quantified path pattern to the lists of what its repetitions matched.
fn bind_lists(group: &Group, walked: &[[usize; 3]], row: &mut Row) {
    let mut bind = |name: &Option<String>, value: fn(&[usize; 3]) -> Val| {
        if let Some(name) = name {
            row.insert(name.clone(), Val::List(walked.iter().map(value).collect()));
        }
    };
    bind(&group.left.name, |[left, _, _]| Val::Node(*left));
    bind(&group.edge.name, |[_, edge, _]| Val::Edge(*edge));
    bind(&group.right.name, |[_, _, right]| Val::Node(*right));
}

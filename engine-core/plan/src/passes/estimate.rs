//! Estimates of row counts from the graph's statistics.

use super::Knowledge;
use crate::op::ScanTest;
use crate::{Expr, Length, Op, PatternBody, PatternEdge};
use std::collections::BTreeMap;
use tidegraph_apl::{DegreeStatistics, KeyStatistics, SetStatistics};
use tidegraph_types::{Direction, Str, Token};

/// Share of vertices that an equality is assumed to pass, without statistics.
const EQUALITY: f64 = 0.05;
/// Share of vertices that a range or prefix is assumed to pass, without statistics.
const RANGE: f64 = 0.3;

/// Share of the repetitions of a quantified path pattern that a condition in it is assumed to pass.
const STEP_CONDITION: f64 = 0.5;

/// Number of ids sampled from a list to estimate the rest.
const NAMED: usize = 8;

/// Statistics of a property key.
struct Key {
    /// Number of vertices that have it.
    vertices: f64,
    /// Number of distinct values.
    distinct: f64,
    /// Smallest and largest value, if all values are numbers.
    bounds: Option<(f64, f64)>,
}

/// Returns the operand if it is a constant number.
fn number_of(operand: &Expr) -> Option<f64> {
    match operand {
        Expr::Literal(value) => value.as_f64().or_else(|| value.epoch_seconds()),
        Expr::Negate(inner) => number_of(inner).map(|value| -value),
        _ => None,
    }
}

/// Number of vertices with such edges in a sample of all vertices from which on their mean degree is trusted.
const ENOUGH: u64 = 32;

/// Share of the edges of a label, as a sample estimates it, from which on they are taken as all of them.
const NEARLY_ALL: f64 = 0.8;

/// Returns whether edges of a direction leave a vertex (`true`), enter it (`false`), or both.
fn sides(direction: Direction) -> impl Iterator<Item = bool> {
    let is_side = move |outgoing: &bool| direction != if *outgoing { Direction::In } else { Direction::Out };
    [true, false].into_iter().filter(is_side)
}

/// Returns the mean number of pairs of edges at a vertex by the square of its mean number of edges.
fn pairs(of: &DegreeStatistics) -> Option<f64> {
    let vertices = of.vertices.max(1) as f64;
    let mean = of.edges as f64 / vertices;
    // The middle of the degrees 2^bucket to 2^(bucket + 1) - 1.
    let middle = |bucket: usize| 1.5 * (bucket as f64).exp2() - 0.5;
    let pairs = |(bucket, count): (usize, &u64)| *count as f64 * middle(bucket) * (middle(bucket) - 1.0);
    let pairs: f64 = of.histogram.iter().enumerate().map(pairs).sum();
    (mean > 0.0).then(|| pairs / vertices / (mean * mean))
}

/// Computes estimates from the knowledge of the graph.
pub(super) struct Estimate<'k> {
    knowledge: &'k Knowledge<'k>,
}

impl<'k> Estimate<'k> {
    pub fn new(knowledge: &'k Knowledge<'k>) -> Self {
        Self { knowledge }
    }

    /// Returns an upper bound of the number of vertices with all of these labels.
    pub fn vertices(&self, labels: &[Str]) -> f64 {
        let statistics = self.knowledge.statistics;
        let count =
            |label: &Str| self.knowledge.catalog.token(label).map_or(0.0, |token| self.of_label(token));
        labels.iter().map(count).fold(statistics.vertices as f64, f64::min)
    }

    fn of_label(&self, label: Token) -> f64 {
        let counts = &self.knowledge.statistics.vertices_by_label;
        counts.iter().find(|(token, _)| *token == label).map_or(0.0, |(_, count)| *count as f64)
    }

    /// Estimates the share of the vertices with these labels that pass a test, and returns whether an index finds them.
    pub fn share(&self, labels: &[Str], key: &Str, test: &ScanTest) -> (f64, bool) {
        let all = self.vertices(labels).max(1.0);
        let known = self.key(labels, key);
        let (of_value, by_index) = match (self.rows_of_value(labels, key), &known) {
            (Some(rows), _) => ((rows / all).min(1.0), true),
            (None, Some(key)) => ((key.vertices / key.distinct.max(1.0) / all).min(1.0), false),
            (None, None) => (EQUALITY, false),
        };
        // The share that has the key.
        let present = known.as_ref().map_or(1.0, |key| (key.vertices / all).min(1.0));
        let between = |low: Option<f64>, high: Option<f64>| {
            let (least, greatest) = known.as_ref().and_then(|key| key.bounds)?;
            let (low, high) = (low.unwrap_or(least).max(least), high.unwrap_or(greatest).min(greatest));
            Some(if low > high {
                0.0
            } else {
                ((high - low) / (greatest - least).max(f64::MIN_POSITIVE)).min(1.0)
            })
        };
        match test {
            ScanTest::Exists => (present, false),
            ScanTest::Equals(operand) => {
                let bounds = known.as_ref().and_then(|key| key.bounds);
                let outside = number_of(operand)
                    .zip(bounds)
                    .is_some_and(|(value, (least, greatest))| value < least || value > greatest);
                (if outside { 0.5 / all } else { of_value }, by_index)
            }
            ScanTest::Within(list) => {
                let values = match list {
                    Expr::List(items) => items.len() as f64,
                    Expr::Literal(value) => value.as_slice().map_or(1.0, |items| items.len() as f64),
                    _ => 4.0,
                };
                ((of_value * values).min(1.0), by_index)
            }
            ScanTest::Range { low, high } => {
                let bound =
                    |bound: &Option<(Expr, bool)>| bound.as_ref().map(|(operand, _)| number_of(operand));
                let guess = if low.is_some() && high.is_some() { RANGE * RANGE } else { RANGE };
                let share = match (bound(low), bound(high)) {
                    (Some(None), _) | (_, Some(None)) => None,
                    (low, high) => between(low.flatten(), high.flatten()),
                };
                (share.map_or(guess * present, |share| (share * present).max(of_value)), by_index)
            }
            ScanTest::StartsWith(_) => (RANGE * present, by_index),
        }
    }

    /// Estimates a key of the vertices with these labels from the characteristic sets. `None`: there are no sets.
    fn key(&self, labels: &[Str], key: &Str) -> Option<Key> {
        let Knowledge { statistics, catalog, .. } = self.knowledge;
        if statistics.sets.is_empty() {
            return None;
        }
        let mut found = Key { vertices: 0.0, distinct: 1.0, bounds: None };
        let Some(key) = catalog.token(key) else { return Some(found) };
        let labels: Vec<Option<Token>> = labels.iter().map(|label| catalog.token(label)).collect();
        let has_all = |set: &&SetStatistics| {
            labels.iter().all(|label| label.is_some_and(|label| set.labels.contains(&label)))
        };
        let mut bounds = Some((f64::INFINITY, f64::NEG_INFINITY));
        let mut everywhere = 0.0;
        for set in &statistics.sets {
            let Some(there) = set.keys.iter().find(|there| there.key == key) else { continue };
            everywhere += set.elements as f64;
            if has_all(&set) {
                found.vertices += set.elements as f64;
                bounds = bounds.zip(there.bounds).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
            }
        }
        found.bounds = bounds.filter(|(least, greatest)| least <= greatest);
        let distinct =
            statistics.distinct.iter().find(|(token, _)| *token == key).map(|(_, count)| *count as f64);
        // Distinct values are counted over all labels. A label with a small share of the key's vertices has fewer of
        // them.
        found.distinct = distinct.map_or(1.0 / EQUALITY, |all| {
            (all * (found.vertices / f64::max(everywhere, 1.0)).sqrt()).clamp(1.0, found.vertices.max(1.0))
        });
        Some(found)
    }

    /// Returns the mean number of vertices for one value of a key. `None`: no index counts them.
    fn rows_of_value(&self, labels: &[Str], key: &Str) -> Option<f64> {
        let Knowledge { statistics, catalog, .. } = self.knowledge;
        if statistics.keys.is_empty() {
            return None;
        }
        let key = catalog.token(key)?;
        let labels: Vec<_> = labels.iter().filter_map(|label| catalog.token(label)).collect();
        let of_one = |k: &KeyStatistics| k.values as f64 / k.distinct.max(1) as f64;
        let of_key = statistics.keys.iter().filter(|k| k.key == key);
        if labels.is_empty() {
            // Vertices of each label may have the value.
            return of_key.map(of_one).reduce(|a, b| a + b);
        }
        of_key.filter(|k| labels.contains(&k.label)).map(of_one).min_by(f64::total_cmp)
    }

    /// Estimates the rows for each input row when an edge is followed from its left or right end. `labels`: those that the
    /// vertices of the pattern have. `named`: ids of the vertices at that end, if the query gives them.
    pub fn fan_out(
        &self,
        edge: &PatternEdge,
        from_left: bool,
        labels: &[Vec<Str>],
        named: Option<&[Str]>,
    ) -> f64 {
        self.fan(edge, from_left, &labels[if from_left { edge.left } else { edge.right }], named)
    }

    fn fan(&self, edge: &PatternEdge, from_left: bool, labels: &[Str], named: Option<&[Str]>) -> f64 {
        let direction = if from_left { edge.direction } else { edge.direction.reversed() };
        let mean = || sides(direction).map(|outgoing| self.mean_degree(labels, &edge.labels, outgoing)).sum();
        let mean: f64 =
            named.and_then(|ids| self.degree_of(ids, direction, &edge.labels)).unwrap_or_else(mean);
        match edge.length {
            None => mean,
            Some(Length { max, .. }) => {
                let step = edge.body.as_deref().map_or(mean, |body| self.repetition(body, from_left));
                step.max(1.5).powi(max.unwrap_or(8).min(8) as i32) * 4.0
            }
        }
    }

    /// Estimates the edges in a direction, with one of `edge_labels`, at a vertex with all `vertex_labels`.
    pub fn degree(&self, direction: Direction, vertex_labels: &[Str], edge_labels: &[Str]) -> f64 {
        sides(direction).map(|outgoing| self.mean_degree(vertex_labels, edge_labels, outgoing)).sum()
    }

    /// Returns the label that vertices with an edge of one of these labels have, if nearly all of them have one: of several
    /// such labels the one with the fewest vertices. `direction`: that of the edge, from the vertex.
    pub fn implied(&self, direction: Direction, edge_labels: &[Str]) -> Option<Str> {
        let Knowledge { statistics, catalog, .. } = self.knowledge;
        let tokens: Vec<Token> = edge_labels.iter().filter_map(|label| catalog.token(label)).collect();
        let edges = statistics.edges_by_label.iter().filter(|(label, _)| tokens.contains(label));
        let edges: f64 = edges.map(|(_, count)| *count as f64).sum();
        if edges == 0.0 {
            return None;
        }
        // Edges at the vertices of each label, those out of them and those into them.
        let mut at_labels: BTreeMap<Token, [f64; 2]> = BTreeMap::new();
        for of in statistics.degrees.iter().filter(|of| tokens.contains(&of.edge_label)) {
            let Some(label) = of.vertex_label else { continue };
            let mean = of.edges as f64 / of.vertices.max(1) as f64;
            at_labels.entry(label).or_default()[usize::from(of.outgoing)] += mean * self.of_label(label);
        }
        let has_most =
            |at: &[f64; 2]| sides(direction).all(|outgoing| at[usize::from(outgoing)] >= NEARLY_ALL * edges);
        let labels = at_labels.into_iter().filter(|(_, at)| has_most(at)).map(|(label, _)| label);
        let fewest = labels.min_by(|a, b| self.of_label(*a).total_cmp(&self.of_label(*b)));
        fewest.map(|label| catalog.name(label))
    }

    /// Estimates the matches of one repetition of a quantified path pattern from one of its ends.
    fn repetition(&self, body: &PatternBody, from_left: bool) -> f64 {
        let mut op = Some(&body.plan);
        while let Some(found) = op {
            let Op::Match { pattern, .. } = found else {
                op = found.input();
                continue;
            };
            let fans = pattern.edges.iter().map(|edge| {
                let from = if from_left { edge.left } else { edge.right };
                self.fan(edge, from_left, &pattern.nodes[from].labels, None)
            });
            let of_edges = pattern.edges.iter().map(|edge| edge.properties.len());
            let of_nodes = pattern.nodes.iter().map(|node| node.properties.len() + node.labels.len());
            let predicate = pattern.predicate.as_ref().map_or(0, |condition| match condition {
                Expr::And(all) => all.len(),
                _ => 1,
            });
            let conditions = predicate + of_edges.chain(of_nodes).sum::<usize>();
            return fans.product::<f64>() * STEP_CONDITION.powi(conditions.min(3) as i32);
        }
        1.0
    }

    /// Estimates the chance that an edge joins a vertex with the labels of its left end and one with those of its right
    /// end. `fan`: its fan-out from both ends.
    pub fn chance(&self, edge: &PatternEdge, fan: [f64; 2]) -> f64 {
        let all = self.knowledge.statistics.vertices.max(1) as f64 * self.fan(edge, true, &[], None);
        if all > 0.0 { fan[0] * fan[1] / all } else { 0.0 }
    }

    /// Estimates how many more pairs of such edges meet at the vertices of one end than if all of them had the same
    /// degree, as a square root. 1 if the sample does not tell.
    /// `labels`: those that the vertices of the pattern have.
    pub fn spread(&self, edge: &PatternEdge, at_left: bool, labels: &[Vec<Str>]) -> f64 {
        let Knowledge { statistics, catalog, .. } = self.knowledge;
        let ([label], None) = (&edge.labels[..], edge.length) else { return 1.0 };
        let Some(label) = catalog.token(label) else { return 1.0 };
        let labels = &labels[if at_left { edge.left } else { edge.right }];
        let of_vertices: Vec<_> = labels.iter().filter_map(|label| catalog.token(label)).collect();
        let direction = if at_left { edge.direction } else { edge.direction.reversed() };
        let found = |outgoing: bool| {
            let degrees = statistics.degrees.iter();
            let mut of = degrees.filter(|of| (of.edge_label, of.outgoing) == (label, outgoing));
            let known =
                |of: &&DegreeStatistics| of.vertex_label.is_some_and(|own| of_vertices.contains(&own));
            let any = of.clone().find(|of| of.vertex_label.is_none());
            pairs(of.find(known).or(any)?)
        };
        sides(direction)
            .filter_map(found)
            .reduce(f64::max)
            .map_or(1.0, |pairs| pairs.sqrt().clamp(0.1, 100.0))
    }

    /// Returns the mean number of edges with one of these labels at the vertices with these ids.
    fn degree_of(&self, ids: &[Str], direction: Direction, labels: &[Str]) -> Option<f64> {
        let Knowledge { catalog, instances, .. } = self.knowledge;
        let tokens: Vec<Token> = labels.iter().filter_map(|label| catalog.token(label)).collect();
        let labels = (!labels.is_empty()).then_some(&tokens[..]);
        let asked = ids.get(..ids.len().min(NAMED)).filter(|ids| !ids.is_empty())?;
        let degrees = asked.iter().map(|id| (*instances)?.degree(id, direction, labels));
        let sum = degrees.sum::<Option<u64>>()?;
        Some(sum as f64 / asked.len() as f64)
    }

    /// Estimates the number of edges, with one of `edge_labels` and in one direction, at a vertex with all
    /// `vertex_labels`.
    fn mean_degree(&self, vertex_labels: &[Str], edge_labels: &[Str], outgoing: bool) -> f64 {
        let Knowledge { statistics, catalog, .. } = self.knowledge;
        let vertices = statistics.vertices.max(1) as f64;
        let of_label = |token: Token| {
            let count = statistics.edges_by_label.iter().find(|(label, _)| *label == token);
            count.map_or(0.0, |(_, count)| *count as f64)
        };
        let tokens: Vec<Token> = if edge_labels.is_empty() {
            statistics.edges_by_label.iter().map(|(label, _)| *label).collect()
        } else {
            edge_labels.iter().filter_map(|label| catalog.token(label)).collect()
        };
        let mean = |token: Token| {
            let edges = of_label(token);
            let labels = vertex_labels.iter().filter_map(|label| catalog.token(label));
            let own = labels.filter_map(|label| self.mean_of_label(label, token, outgoing, edges));
            // Of several labels, the one with the fewest edges counts.
            own.min_by(f64::total_cmp).unwrap_or(edges / vertices)
        };
        if statistics.edges_by_label.is_empty() && edge_labels.is_empty() {
            return statistics.edges as f64 / vertices;
        }
        tokens.into_iter().map(mean).sum()
    }

    /// Estimates the mean number of edges of a label, of which there are `edges`, in one direction at the vertices of a
    /// label. `None`: the sample has no vertex with the label, or no such edge at all.
    fn mean_of_label(
        &self,
        vertex_label: Token,
        edge_label: Token,
        outgoing: bool,
        edges: f64,
    ) -> Option<f64> {
        let degrees = &self.knowledge.statistics.degrees;
        let of = |label: Option<Token>| {
            degrees
                .iter()
                .find(|of| (of.vertex_label, of.edge_label, of.outgoing) == (label, edge_label, outgoing))
        };
        let mean = |of: &DegreeStatistics| of.edges as f64 / of.vertices.max(1) as f64;
        let own = match of(Some(vertex_label)) {
            Some(own) => mean(own),
            // The sample has vertices with the label, but none of them has such an edge.
            None => {
                let seen = degrees.iter().find(|of| of.vertex_label == Some(vertex_label))?;
                0.5 / seen.vertices.max(1) as f64
            }
        };
        let all = self.knowledge.statistics.vertices.max(1) as f64;
        let estimate = match of(None) {
            // The number of edges is exact. The sample tells how this label differs from all, if it has seen enough.
            Some(sample) if sample.histogram.iter().sum::<u64>() >= ENOUGH => {
                own / mean(sample) * edges / all
            }
            _ => own,
        };
        // All of these edges may be at vertices of the label.
        Some(estimate.min(edges / self.of_label(vertex_label).max(1.0)))
    }
}

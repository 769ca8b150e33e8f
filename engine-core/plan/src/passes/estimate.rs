//! How many rows there will be, as far as the graph's statistics tell.

use super::Knowledge;
use crate::op::ScanTest;
use crate::{Expr, Length, PatternEdge, PatternNode};
use tidegraph_apl::KeyStatistics;
use tidegraph_types::{Direction, Str, Token};

/// Without statistics an equality is taken to pass one vertex in this many.
const EQUALITY: f64 = 0.05;
/// Without statistics a range or prefix is taken to pass this share.
const RANGE: f64 = 0.3;

/// Answers from what is known of the graph.
pub(super) struct Estimate<'k> {
    knowledge: &'k Knowledge<'k>,
}

impl<'k> Estimate<'k> {
    pub fn new(knowledge: &'k Knowledge<'k>) -> Self {
        Self { knowledge }
    }

    /// Vertices that have all of some labels, at most.
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

    /// Which share of the vertices with some labels pass a test, and whether an index finds them.
    pub fn share(&self, labels: &[Str], key: &Str, test: &ScanTest) -> (f64, bool) {
        let all = self.vertices(labels).max(1.0);
        let (of_value, by_index) = match self.rows_of_value(labels, key) {
            Some(rows) => ((rows / all).min(1.0), true),
            None => (EQUALITY, false),
        };
        match test {
            ScanTest::Exists => (1.0, false),
            ScanTest::Equals(_) => (of_value, by_index),
            ScanTest::Within(list) => {
                let values = match list {
                    Expr::List(items) => items.len() as f64,
                    Expr::Literal(value) => value.as_slice().map_or(1.0, |items| items.len() as f64),
                    _ => 4.0,
                };
                ((of_value * values).min(1.0), by_index)
            }
            ScanTest::Range { low: Some(_), high: Some(_) } => (RANGE * RANGE, by_index),
            ScanTest::Range { .. } | ScanTest::StartsWith(_) => (RANGE, by_index),
        }
    }

    /// How many vertices one value of a key has, where that is known: there is an index then.
    fn rows_of_value(&self, labels: &[Str], key: &Str) -> Option<f64> {
        let Knowledge { statistics, catalog } = self.knowledge;
        if statistics.keys.is_empty() {
            return None;
        }
        let key = catalog.token(key)?;
        let labels: Vec<_> = labels.iter().filter_map(|label| catalog.token(label)).collect();
        let of_one = |k: &KeyStatistics| k.values as f64 / k.distinct.max(1) as f64;
        let of_key = statistics.keys.iter().filter(|k| k.key == key);
        if labels.is_empty() {
            // Vertices of every label may have the value.
            return of_key.map(of_one).reduce(|a, b| a + b);
        }
        of_key.filter(|k| labels.contains(&k.label)).map(of_one).min_by(f64::total_cmp)
    }

    /// Rows out for each row in when an edge is followed, from its left end or its right one.
    pub fn fan_out(&self, edge: &PatternEdge, _from_left: bool, _nodes: &[PatternNode]) -> f64 {
        let statistics = self.knowledge.statistics;
        let edges: f64 = if edge.labels.is_empty() {
            statistics.edges as f64
        } else {
            let count = |label: &Str| {
                let token = self.knowledge.catalog.token(label)?;
                statistics.edges_by_label.iter().find(|(t, _)| *t == token).map(|(_, n)| *n as f64)
            };
            edge.labels.iter().filter_map(count).sum()
        };
        let mean = edges / (statistics.vertices.max(1) as f64);
        let mean = if edge.direction == Direction::Both { 2.0 * mean } else { mean };
        match edge.length {
            None => mean,
            Some(Length { max, .. }) => mean.max(1.5).powi(max.unwrap_or(8).min(8) as i32) * 4.0,
        }
    }
}

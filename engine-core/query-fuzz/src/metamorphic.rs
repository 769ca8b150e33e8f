//! Compares answers of the engine with each other, on graphs that are too large for the reference evaluators.
//!
//! Four relations hold for every query that begins with a `MATCH`:
//! * the rows where a condition is true, false and unknown are together the rows without the condition;
//! * a condition that is always true changes nothing;
//! * an index changes nothing;
//! * the order of the patterns of a `MATCH` changes nothing, and neither does the side from which each is written.

use crate::campaign::{Difference, Outcome, ask, create};
use crate::cypher::ast::{Clause, Direction, EdgePattern, Expr, Pattern, Projection, Query};
use crate::cypher::generate::Generator;
use crate::graph::{Graph, INT_KEYS, LABELS, TEXT_KEY, show_answer};
use crate::value::Val;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use tidegraph_engine::{Database, Error, Language};

/// Runs the queries of one seed.
///
/// # Errors
///
/// The engine does not create the graph or an index.
pub fn run_seed(seed: u64, queries: u64) -> Result<Outcome, Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (nodes, edges) = [(20, 30), (40, 60), (90, 110)][rng.random_range(0..3)];
    let graph = Graph::random(&mut rng, nodes, edges);
    let (plain, indexed) = (create(&graph)?, create(&graph)?);
    for (label, key) in [(LABELS[0], INT_KEYS[0]), (LABELS[1], TEXT_KEY), (LABELS[2], INT_KEYS[1])] {
        let command = format!("CREATE INDEX FOR (n:{label}) ON (n.{key})");
        ask(&indexed, Language::OpenCypher, &command)?;
    }
    let tester = Tester { seed, known: graph.ids(), plain: &plain, indexed: &indexed };
    let mut outcome = Outcome::default();
    for _ in 0..queries {
        tester.test(&mut rng, &mut outcome);
    }
    Ok(outcome)
}

/// Queries with more matches are skipped.
const MAX_ROWS: i64 = 1_000;

struct Tester<'a> {
    seed: u64,
    known: BTreeSet<String>,
    plain: &'a Database,
    indexed: &'a Database,
}

impl Tester<'_> {
    fn test(&self, rng: &mut ChaCha8Rng, outcome: &mut Outcome) {
        let mut generator = Generator::new(rng);
        let (matching, condition, body) = generator.conditional();
        let query = |patterns: &[Pattern], filter: Option<Expr>| {
            let patterns = patterns.to_vec();
            let matching = Clause::Match { optional: false, patterns, filter };
            Query { parts: vec![vec![matching, Clause::Project(body.clone())]], all: true }
        };
        let whole = query(&matching, None);
        if self.count(&matching).is_none_or(|count| count > MAX_ROWS) {
            outcome.skipped += 1;
            return;
        }
        let Some(all) = self.rows(self.plain, &whole) else {
            outcome.wrong.push(format!("seed {}: the engine refuses {whole}", self.seed));
            return;
        };
        outcome.compared += 1;
        outcome.with_rows += u64::from(!all.is_empty());
        let boxed = || Box::new(condition.clone());
        let thirds = [condition.clone(), Expr::Not(boxed()), Expr::IsNull(boxed())];
        let mut parted = vec![];
        for third in &thirds {
            let query = query(&matching, Some(third.clone()));
            let (rows, others) = (self.rows(self.plain, &query), self.rows(self.indexed, &query));
            self.same(outcome, "an index changes the rows", &query, others, &rows);
            parted.extend(rows.unwrap_or_default());
        }
        parted.sort();
        self.same(
            outcome,
            "the parts are not the whole",
            &query(&matching, Some(condition)),
            Some(parted),
            &Some(all.clone()),
        );
        let all = Some(all);
        let yes =
            Expr::Binary("=", Box::new(Expr::Literal(Val::Int(1))), Box::new(Expr::Literal(Val::Int(1))));
        let either =
            Expr::Binary("OR", Box::new(thirds[2].clone()), Box::new(Expr::IsNotNull(boxed_of(&thirds[0]))));
        for always in [yes, either] {
            let query = query(&matching, Some(always));
            self.same(
                outcome,
                "a true condition changes the rows",
                &query,
                self.rows(self.plain, &query),
                &all,
            );
        }
        let mut turned: Vec<Pattern> = matching.iter().map(|pattern| turn(rng, pattern)).collect();
        turned.shuffle(rng);
        let query = query(&turned, None);
        self.same(
            outcome,
            "the order of patterns changes the rows",
            &query,
            self.rows(self.plain, &query),
            &all,
        );
    }

    /// Returns the number of matches; `None` if the engine refuses the query.
    fn count(&self, patterns: &[Pattern]) -> Option<i64> {
        let matching = Clause::Match { optional: false, patterns: patterns.to_vec(), filter: None };
        let count = Expr::Aggregate { function: "count", distinct: false, of: None };
        let body = Projection::new(vec![(count, "x".to_owned())]);
        let query = Query { parts: vec![vec![matching, Clause::Project(body)]], all: true };
        ask(self.plain, Language::OpenCypher, &query.to_string()).ok()?.first()?.first()?.as_i64()
    }

    /// Returns the rows as text, sorted; `None` if the engine refuses the query.
    fn rows(&self, database: &Database, query: &Query) -> Option<Vec<String>> {
        let rows = ask(database, Language::OpenCypher, &query.to_string()).ok()?;
        let show = |row: Vec<_>| {
            let values = row.iter().map(|value| show_answer(value, false, &self.known));
            values.collect::<Vec<_>>().join(" | ")
        };
        let mut rows: Vec<String> = rows.into_iter().map(show).collect();
        rows.sort();
        Some(rows)
    }

    fn same(
        &self,
        outcome: &mut Outcome,
        what: &str,
        query: &Query,
        got: Option<Vec<String>>,
        expected: &Option<Vec<String>>,
    ) {
        if got == *expected {
            return;
        }
        let count = |rows: &Option<Vec<String>>| match rows {
            Some(rows) => format!("{} rows: {:?}", rows.len(), &rows[..rows.len().min(5)]),
            None => "an error".to_owned(),
        };
        outcome.differences.push(Difference {
            seed: self.seed,
            graph: "as drawn".to_owned(),
            query: query.to_string(),
            got: count(&got),
            expected: count(expected),
            original: what.to_owned(),
        });
    }
}

fn boxed_of(expr: &Expr) -> Box<Expr> {
    Box::new(expr.clone())
}

/// Writes a pattern from its other end, or as it is.
fn turn(rng: &mut ChaCha8Rng, pattern: &Pattern) -> Pattern {
    let is_list = |edge: &EdgePattern| {
        let names_lists = edge.group.as_ref().is_some_and(|group| group.names().next().is_some());
        names_lists || (edge.range.is_some() && edge.name.is_some())
    };
    let has_lists = pattern.steps.iter().any(|(edge, _)| is_list(edge));
    // Paths and lists of edges have an order.
    if pattern.path.is_some() || has_lists || rng.random_bool(0.5) {
        return pattern.clone();
    }
    let mut nodes = vec![pattern.start.clone()];
    let mut edges = vec![];
    for (edge, node) in &pattern.steps {
        let mut edge = turned_edge(edge);
        if let Some(group) = &mut edge.group {
            std::mem::swap(&mut group.left, &mut group.right);
            group.edge = turned_edge(&group.edge);
        }
        edges.push(edge);
        nodes.push(node.clone());
    }
    nodes.reverse();
    edges.reverse();
    let mut nodes = nodes.into_iter();
    let start = nodes.next().unwrap_or_default();
    Pattern { path: None, shortest: pattern.shortest, start, steps: edges.into_iter().zip(nodes).collect() }
}

fn turned_edge(edge: &EdgePattern) -> EdgePattern {
    let direction = match edge.direction {
        Direction::Right => Direction::Left,
        Direction::Left => Direction::Right,
        Direction::Any => Direction::Any,
    };
    EdgePattern { direction, ..edge.clone() }
}

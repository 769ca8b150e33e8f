//! Algorithms of Gremlin on drawn graphs, against the definitions: what each vertex computes in a round of TinkerPop's programs.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use support::{refused, run};
use tidegraph_engine::{Database, Language, Options, Parameters, Query, Transaction};
use tidegraph_types::{ErrorCode, Value};

/// Random numbers that are the same in each run (Lehmer's generator, modulus 2^31 - 1).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        self.0 % limit
    }
}

/// A graph of vertices with the ids `0`, `1` …, and its edges with their weights.
struct Graph {
    database: Arc<Database>,
    vertices: usize,
    edges: Vec<(usize, usize, u64)>,
}

impl Graph {
    fn drawn(seed: u64, vertices: usize, edges: usize, options: Options) -> Self {
        let mut random = Random(seed);
        let mut end = || random.below(vertices as u64);
        let edges: Vec<(usize, usize, u64)> =
            (0..edges).map(|_| (end() as usize, end() as usize, end() % 4)).collect();
        let database = Database::open(options).expect("an empty graph");
        for first in (0..vertices).step_by(500) {
            let last = (first + 500).min(vertices) - 1;
            let create = "CREATE (:V {`~id`: toString(n), n: n})";
            run(&database, &format!("UNWIND range({first}, {last}) AS n {create}"));
        }
        for part in edges.chunks(200) {
            let rows: Vec<String> = part.iter().map(|(a, b, w)| format!("[{a}, {b}, {w}]")).collect();
            run(
                &database,
                &format!(
                    "UNWIND [{}] AS e MATCH (a) WHERE id(a) = toString(e[0]) MATCH (b) WHERE id(b) = toString(e[1]) \
                     CREATE (a)-[:X {{w: e[2]}}]->(b)",
                    rows.join(", ")
                ),
            );
        }
        Self { database, vertices, edges }
    }

    /// The ends of the edges that begin at a vertex.
    fn out(&self, vertex: usize) -> Vec<usize> {
        self.edges.iter().filter(|(from, ..)| *from == vertex).map(|(_, to, _)| *to).collect()
    }

    /// Runs a traversal whose rows are maps of `n` and `value`, and returns the values by `n`.
    fn values(&self, traversal: &str) -> BTreeMap<usize, Value> {
        let parameters = Parameters::default();
        let text = format!("{traversal}.project('n', 'value').by('n').by('value')");
        let query = Query::new(Language::Gremlin, &text, &parameters);
        let rows = self.database.query(&query).unwrap_or_else(|error| panic!("{text}: {error}")).rows;
        let pair = |row: &Vec<Value>| {
            let Value::Map(map) = &row[0] else { panic!("{row:?}") };
            let n = map[&Value::from("n")].as_i64().expect("a number");
            (usize::try_from(n).expect("a vertex"), map[&Value::from("value")].clone())
        };
        let values: BTreeMap<usize, Value> = rows.iter().map(pair).collect();
        assert_eq!(values.len(), self.vertices, "{text}");
        values
    }
}

/// Ranks as the definition has them: what arrives along edges, and an equal part of what was left over.
fn ranks(graph: &Graph, damping: f64, rounds: usize) -> Vec<f64> {
    let count = graph.vertices as f64;
    let mut ranks = vec![1.0 / count; graph.vertices];
    for _ in 0..rounds {
        let mut next = vec![0.0; graph.vertices];
        let mut left = 0.0;
        for (vertex, rank) in ranks.iter().enumerate() {
            let out = graph.out(vertex);
            left += (1.0 - damping) * rank + if out.is_empty() { damping * rank } else { 0.0 };
            out.iter().for_each(|end| next[*end] += damping * rank / out.len() as f64);
        }
        ranks = next.iter().map(|rank| rank + left / count).collect();
    }
    ranks
}

#[test]
fn ranks_are_those_of_the_definition() {
    for (seed, damping, rounds) in [(1, 0.85, 20), (2, 0.5, 3), (3, 1.0, 1)] {
        let graph = Graph::drawn(seed, 40, 90, Options { partitions: 4, ..Options::default() });
        let text = format!(
            "g.V().pageRank({damping:?}d).with(PageRank.times, {rounds}).with(PageRank.propertyName, 'value')"
        );
        let found = graph.values(&text);
        for (vertex, rank) in ranks(&graph, damping, rounds).into_iter().enumerate() {
            let value = found[&vertex].as_f64().expect("a number");
            // The algorithm may end when the ranks hardly change.
            assert!((value - rank).abs() < 1e-4, "seed {seed}: {vertex} has {value}, not {rank}");
        }
    }
}

#[test]
fn components_are_named_by_the_least_id_that_leads_there() {
    for (seed, edges, along) in [(4, 30, ""), (5, 60, ".with(ConnectedComponent.edges, outE('X'))")] {
        let graph = Graph::drawn(seed, 50, edges, Options { partitions: 2, ..Options::default() });
        let both = along.is_empty();
        let mut names: Vec<String> = (0..graph.vertices).map(|n| n.to_string()).collect();
        loop {
            let before = names.clone();
            for (from, to, _) in &graph.edges {
                names[*to] = names[*to].clone().min(names[*from].clone());
                if both {
                    names[*from] = names[*to].clone().min(names[*from].clone());
                }
            }
            if names == before {
                break;
            }
        }
        let text =
            format!("g.V().connectedComponent(){along}.with(ConnectedComponent.propertyName, 'value')");
        for (vertex, name) in graph.values(&text) {
            assert_eq!(name, Value::from(names[vertex].as_str()), "seed {seed}: {vertex}");
        }
    }
}

#[test]
fn clusters_are_those_with_most_votes() {
    let graph = Graph::drawn(6, 40, 100, Options { partitions: 2, ..Options::default() });
    let mut clusters: Vec<String> = (0..graph.vertices).map(|n| n.to_string()).collect();
    for _ in 0..30 {
        let mut votes: Vec<BTreeMap<String, u32>> =
            clusters.iter().map(|own| BTreeMap::from([(own.clone(), 1)])).collect();
        for (from, to, _) in &graph.edges {
            *votes[*to].entry(clusters[*from].clone()).or_default() += 1;
        }
        let winner = |votes: &BTreeMap<String, u32>| {
            let most = votes.values().max().expect("its own vote");
            votes.iter().find(|(_, count)| *count == most).expect("a winner").0.clone()
        };
        clusters = votes.iter().map(winner).collect();
    }
    let found = graph.values("g.V().peerPressure().with(PeerPressure.propertyName, 'value')");
    for (vertex, cluster) in found {
        assert_eq!(cluster, Value::from(clusters[vertex].as_str()), "{vertex}");
    }
}

/// All paths from a vertex that pass no vertex twice, with their sums.
fn simple_paths(graph: &Graph, path: &mut Vec<usize>, sum: u64, found: &mut Vec<(Vec<usize>, u64)>) {
    found.push((path.clone(), sum));
    let last = *path.last().expect("a start");
    for (from, to, weight) in &graph.edges {
        if *from == last && !path.contains(to) {
            path.push(*to);
            simple_paths(graph, path, sum + weight, found);
            path.pop();
        }
    }
}

#[test]
fn nearest_paths_are_the_least_of_all_simple_paths() {
    for seed in 7..12 {
        let graph = Graph::drawn(seed, 9, 20, Options { partitions: 2, ..Options::default() });
        let mut all = vec![];
        simple_paths(&graph, &mut vec![0], 0, &mut all);
        let mut expected = BTreeSet::new();
        for target in 0..graph.vertices {
            let to = |(path, _): &&(Vec<usize>, u64)| path.last() == Some(&target);
            let least = all.iter().filter(to).map(|(_, sum)| *sum).min();
            for (path, _) in all.iter().filter(to).filter(|(_, sum)| Some(*sum) == least) {
                let names: Vec<String> = path.iter().map(|vertex| format!("v[{vertex}]")).collect();
                expected.insert(format!("<{}>", names.join(", ")));
            }
        }
        let text =
            "g.V('0').shortestPath().with(ShortestPath.edges, outE()).with(ShortestPath.distance, 'w')";
        let found: BTreeSet<String> = run(&graph.database, text).into_iter().collect();
        assert_eq!(found, expected, "seed {seed}");
    }
}

#[test]
fn lists_are_charged_before_they_are_made() {
    // The rows of the scan fit, and what the algorithms hold does not.
    let options = Options { query_memory_bytes: 450_000, ..Options::default() };
    let graph = Graph::drawn(13, 3_000, 6_000, options);
    for step in [
        "pageRank()",
        "peerPressure()",
        "connectedComponent()",
        "hasLabel('V').pageRank()",
        "limit(1).shortestPath().with(ShortestPath.edges, bothE()).with(ShortestPath.distance, constant(1))",
    ] {
        let message = refused(&graph.database, &format!("g.V().{step}.count()"));
        assert!(message.starts_with("QueryLimitExceededException"), "{step}: {message}");
    }
}

#[test]
fn algorithms_end_at_the_time_limit() {
    let graph = Graph::drawn(14, 600, 1_200, Options::default());
    // A rank that goes back and forth.
    run(&graph.database, "CREATE (a:W {`~id`: 'a'})-[:Y]->(b:W), (b)-[:Y]->(a)");
    let parameters = Parameters::default();
    for text in [
        "g.V('a').identity().pageRank(1.0d).with(PageRank.edges, outE('Y')).with(PageRank.times, 4000000000).count()",
        "g.V().shortestPath().with(ShortestPath.distance, constant(1)).count()",
    ] {
        let query = Query {
            timeout: Some(Duration::from_millis(50)),
            ..Query::new(Language::Gremlin, text, &parameters)
        };
        let error = graph.database.query(&query).expect_err(text);
        assert_eq!(error.code(), ErrorCode::TimeLimitExceeded, "{text}: {error}");
    }
}

#[test]
fn an_algorithm_sees_the_writes_of_its_transaction_and_adds_none() {
    let graph = Graph::drawn(15, 3, 0, Options::default());
    let parameters = Parameters::default();
    let mut transaction = Transaction::new(None, None, false);
    let mut within = |text: &str| {
        let query = Query::new(Language::Gremlin, text, &parameters);
        graph
            .database
            .query_within(&mut transaction, &query)
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    within("g.addV('V').property(id, 'new').property('n', 9).as('a').V('0').addE('X').to('a')");
    let components = within(
        "g.V().connectedComponent().with(ConnectedComponent.propertyName, 'value').has('value', '0').values('n').order().fold()",
    );
    assert_eq!(components.rows, [[Value::list(vec![Value::Long(0), Value::Int(9)])]]);
    assert!(!components.wrote);
    assert!(within("g.V().has('value')").rows.is_empty());
    graph.database.commit_transaction(transaction).expect("it is committed");
    assert_eq!(run(&graph.database, "g.V().count()"), ["4"]);
    assert_eq!(run(&graph.database, "g.V().has('value').count()"), ["0"]);
}

#[test]
fn aggregations_on_several_threads_see_computed_properties() {
    let graph = Graph::drawn(16, 300, 900, Options { partitions: 4, ..Options::default() });
    let sum =
        "g.V().pageRank().with(PageRank.propertyName, 'value').V().hasLabel('V').values('value').count()";
    assert_eq!(run(&graph.database, sum), [(300 * 300).to_string()]);
    let all = "g.V().limit(1).connectedComponent().with(ConnectedComponent.propertyName, 'value').V().has('value', 'none').count()";
    assert_eq!(run(&graph.database, all), ["0"]);
}

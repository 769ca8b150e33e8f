//! Prints times of aggregations in a fleet of three nodes in this process, over sockets, beside those of an embedded database
//! (ADR 0028): `cargo run --locked -p tidegraph-fleet --all-features --example digest_times`.

// It measures: without an answer there is nothing to print.
#![allow(clippy::unwrap_used)]

#[path = "../tests/support/mod.rs"]
mod support;

use support::TestFleet;
use tidegraph_engine::Language::OpenCypher;
use tidegraph_engine::{Database, Explain, Options, Parameters, Query, Transaction};
use tidegraph_fleet::NodeConfig;
use tidegraph_types::{Cardinality, CommitRequest, Edge, Gui, Mutation, PropertyWrite, Sid, Str, Value};

/// Creates the graph of the fleet workload of the benchmarks: vertices with ten edges each.
fn fill(database: &Database, vertices: u64) {
    const DEGREE: u64 = 10;
    let tokens = database.catalog().intern(&["Person".into(), "age".into(), "KNOWS".into()]).unwrap();
    let id = |number: u64| Str::from(format!("person-{number}"));
    let guis: Vec<Gui> = (0..vertices).map(|number| database.plain_gui(&id(number))).collect();
    let sids = database.catalog().allocate_sids(vertices * DEGREE).unwrap();
    let vertex = |number: u64| {
        let value = Value::Long((number % 100) as i64);
        let properties = vec![PropertyWrite { key: tokens[1], cardinality: Cardinality::Single, value }];
        let (gui, labels) = (guis[number as usize], vec![tokens[0]]);
        Mutation::CreateVertex { gui, id: id(number), labels, properties }
    };
    // A linear congruential generator, so that both graphs are the same.
    let mut state = 1_u64;
    let edge = |(number, sid): (u64, u64)| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (source, target) = (guis[(number / DEGREE) as usize], guis[(state >> 33) as usize % guis.len()]);
        let edge = Edge { sid: Sid(sid), source, target, label: tokens[2] };
        Mutation::CreateEdge { edge, id: None, properties: vec![] }
    };
    let all: Vec<Mutation> = (0..vertices).map(vertex).chain((0..).zip(sids).map(edge)).collect();
    for mutations in all.chunks(1_000) {
        let request = CommitRequest { mutations: mutations.to_vec(), ..CommitRequest::default() };
        database.commit(request).unwrap();
    }
}

fn main() {
    let fleet = TestFleet::start(16, 3, 2, 64, NodeConfig::default());
    let (worker, _) = fleet.worker();
    let embedded = Database::open(Options::default()).unwrap();
    [&embedded, &worker].into_iter().for_each(|database| fill(database, 20_000));
    let parameters: Parameters = {
        let ids = (0..1_000).map(|number| Value::string(format!("person-{}", number * 17))).collect();
        [("ids".into(), Value::list(ids))].into_iter().collect()
    };
    println!("query | embedded ms | fleet ms | ratio | row by row ms | messages | bytes");
    for text in [
        "MATCH (a)-[:KNOWS]->()-[:KNOWS]->(c) RETURN count(*)",
        "MATCH (a:Person)-[:KNOWS]->()-[:KNOWS]->(c) RETURN count(*)",
        "MATCH (a:Person)-[:KNOWS]->(b:Person)-[:KNOWS]->(c:Person) RETURN count(*)",
        "UNWIND $ids AS id MATCH (a) WHERE id(a) = id MATCH (a)-[:KNOWS]->()-[:KNOWS]->(c) RETURN count(*)",
        "MATCH (a:Person)-[:KNOWS]->(b) RETURN b.age, count(*)",
        "MATCH (a:Person)-[:KNOWS]->(b) RETURN b.age, sum(b.age), avg(b.age)",
        "MATCH (p:Person) RETURN p.age, count(*), sum(p.age)",
        "MATCH (p:Person) WHERE p.age > 30 RETURN sum(p.age), count(*)",
        "MATCH (p:Person) RETURN id(p), p.age ORDER BY p.age DESC LIMIT 10",
    ] {
        let query = Query::new(OpenCypher, text, &parameters);
        let median = |run: &mut dyn FnMut() -> usize| {
            let mut times: Vec<f64> = (0..11)
                .map(|_| {
                    let start = fleet.clock.now();
                    assert!(run() > 0);
                    (fleet.clock.now() - start).as_secs_f64() * 1e3
                })
                .collect();
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        let here = median(&mut || embedded.query(&query).unwrap().rows.len());
        let there = median(&mut || worker.query(&query).unwrap().rows.len());
        // A transaction that wrote takes rows.
        let mut transaction = Transaction::new(None, None, false);
        let write = Query::new(OpenCypher, "CREATE (:Other)", &parameters);
        worker.query_within(&mut transaction, &write).unwrap();
        let by_row = median(&mut || worker.query_within(&mut transaction, &query).unwrap().rows.len());
        let profile = Query { explain: Some(Explain::Profile), ..query };
        let profile = worker.query(&profile).unwrap().rows;
        let sum = |at: usize| profile.iter().filter_map(|row| row[at].as_i64()).sum::<i64>();
        let ratio = there / here;
        println!("{text} | {here:.2} | {there:.2} | {ratio:.2} | {by_row:.2} | {} | {}", sum(5), sum(6));
    }
}

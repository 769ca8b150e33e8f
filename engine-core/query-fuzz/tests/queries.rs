//! Drawn queries of both languages without a difference to the reference evaluators, and answers that must agree with
//! each other.

use tidegraph_query_fuzz::campaign::{Languages, Outcome, QUERIES_PER_SEED, run_seed};
use tidegraph_query_fuzz::{concurrent, metamorphic};

const SEEDS: u64 = 120;

fn all(run: impl Fn(u64) -> Outcome) -> Outcome {
    let mut all = Outcome::default();
    for seed in 0..SEEDS {
        all.add(run(seed));
    }
    let differences: Vec<String> = all.differences.iter().map(ToString::to_string).collect();
    assert!(
        differences.is_empty(),
        "replay with: npm run fuzz-queries -- --queries 50 --seed N\n{}",
        differences.join("\n\n")
    );
    assert_eq!(all.wrong, Vec::<String>::new(), "the generator draws queries without a defined answer");
    all
}

fn languages(languages: Languages) {
    let all = all(|seed| run_seed(seed, QUERIES_PER_SEED, languages).expect("the graph is created"));
    // Queries that were skipped, or that find nothing, would show nothing.
    assert!(all.compared > SEEDS * QUERIES_PER_SEED * 9 / 10, "only {} compared", all.compared);
    assert!(all.with_rows > all.compared / 5, "only {} of {} with rows", all.with_rows, all.compared);
    assert!(all.writes > all.compared / 20, "only {} of {} write", all.writes, all.compared);
}

#[test]
fn opencypher_answers_as_the_reference_evaluator() {
    languages(Languages::Cypher);
}

#[test]
fn gremlin_answers_as_the_reference_evaluator() {
    languages(Languages::Gremlin);
}

#[test]
fn queries_that_mean_the_same_have_the_same_answers() {
    let all = all(|seed| metamorphic::run_seed(seed, QUERIES_PER_SEED).expect("the graph is created"));
    assert!(all.compared > SEEDS * QUERIES_PER_SEED / 2, "only {} compared", all.compared);
    assert!(all.with_rows > all.compared / 5, "only {} of {} with rows", all.with_rows, all.compared);
}

#[test]
fn statements_beside_each_other_are_a_serial_order() {
    const ROUNDS: u64 = 3_000;
    let mut all = concurrent::Outcome::default();
    for seed in 0..ROUNDS {
        all.add(concurrent::run_seed(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}")));
    }
    let anomalies: Vec<String> = all.anomalies.iter().map(ToString::to_string).collect();
    assert!(
        anomalies.is_empty(),
        "replay with: npm run fuzz-queries -- --concurrent --queries 1 --seed N\n{}",
        anomalies.join("\n")
    );
    // Rounds without overlap, or without a conflict, would show nothing.
    assert!(all.rounds > ROUNDS * 4 / 5, "only {} rounds compared", all.rounds);
    assert!(all.overlapping > ROUNDS / 10, "only {} rounds overlap", all.overlapping);
    assert!(all.conflicts > ROUNDS / 50, "only {} conflicts", all.conflicts);
}

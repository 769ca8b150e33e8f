//! Drawn queries of both languages without a difference to the reference evaluators, and answers that must agree with
//! each other.

use tidegraph_engine::Error;
use tidegraph_query_fuzz::campaign::{Languages, Outcome, QUERIES_PER_SEED, run_seed, run_seed_in};
use tidegraph_query_fuzz::concurrent::{self, Fleet, Forced};
use tidegraph_query_fuzz::metamorphic;

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

/// Nodes make a part of the answers.
#[test]
fn a_fleet_answers_as_the_reference_evaluator() {
    const SEEDS_OF_FLEET: u64 = 24;
    let (fleet, mut all) = (Fleet::start(), Outcome::default());
    for seed in 0..SEEDS_OF_FLEET {
        let run = run_seed_in(&fleet, seed, QUERIES_PER_SEED, Languages::Both);
        all.add(run.expect("the graph is created"));
    }
    let differences: Vec<String> = all.differences.iter().map(ToString::to_string).collect();
    let replay = "replay with: npm run fuzz-queries -- --fleet --queries 50 --seed N";
    assert!(differences.is_empty(), "{replay}\n{}", differences.join("\n\n"));
    assert!(all.compared > SEEDS_OF_FLEET * QUERIES_PER_SEED * 8 / 10, "only {} compared", all.compared);
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

/// Runs rounds, none of which may be an anomaly.
fn rounds(
    rounds: u64,
    option: &str,
    mut run: impl FnMut(u64) -> Result<concurrent::Outcome, Error>,
) -> concurrent::Outcome {
    let mut all = concurrent::Outcome::default();
    for seed in 0..rounds {
        all.add(run(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}")));
    }
    let anomalies: Vec<String> = all.anomalies.iter().map(ToString::to_string).collect();
    assert!(
        anomalies.is_empty(),
        "replay with: npm run fuzz-queries -- --concurrent {option} --queries 1 --seed N\n{}",
        anomalies.join("\n")
    );
    // Rounds without overlap would show nothing.
    assert!(all.rounds > rounds * 4 / 5, "{all}");
    assert!(all.overlapping > rounds / 10, "{all}");
    all
}

#[test]
fn statements_beside_each_other_are_a_serial_order() {
    let all = rounds(3_000, "", |seed| concurrent::run_seed(seed, Forced::default()));
    assert!(all.conflicts > 50 && all.refused > 30 && all.at_hand.0 > 600 && all.at_hand.1 > 60, "{all}");
}

#[test]
fn what_constraints_refuse_agrees_with_the_serial_order() {
    let forced = Forced { constraints: true, ..Forced::default() };
    let all = rounds(1_000, "--constraints", |seed| concurrent::run_seed(seed, forced));
    assert!(all.conflicts > 30 && all.refused > 40, "{all}");
}

#[test]
fn statements_that_are_tried_at_hand_are_a_serial_order() {
    let forced = Forced { at_hand: true, ..Forced::default() };
    let all = rounds(1_000, "--at-hand", |seed| concurrent::run_seed(seed, forced));
    // A conflict makes a statement run again, so it loses none.
    assert!(all.conflicts == 0 && all.at_hand.0 > 1_000 && all.at_hand.1 > 100, "{all}");
}

#[test]
fn statements_at_workers_of_a_fleet_are_a_serial_order() {
    let mut fleet = Fleet::start();
    let all = rounds(300, "--fleet", |seed| concurrent::run_seed_in(&mut fleet, seed, Forced::default()));
    assert!(all.refused > 3 && all.in_the_past > 30, "{all}");
}

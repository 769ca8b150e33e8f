//! Events and answers match `contracts/golden/rebalance.json`, which the schemas are checked against too.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::path::Path;
use tidegraph_cluster::{Action, Goal, Lease, Move, NodeId, NodeState, Release, ScaleAction, UpgradeState};
use tidegraph_rebalance::{Answer, Lot, Needed, OfGraph, Request};
use tidegraph_types::{Epoch, PartitionId};

fn golden(part: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contracts/golden/rebalance.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[part].as_array().unwrap().clone()
}

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

#[test]
fn events_of_the_contract_are_read_and_others_refused() {
    for event in golden("events") {
        Request::read(event.clone()).unwrap_or_else(|error| panic!("{event}: {error}"));
    }
    for event in golden("refused") {
        assert!(Request::read(event.clone()).is_err(), "{event}");
    }
}

#[test]
fn answers_are_those_of_the_contract() {
    let lease = Lease {
        holder: "other".into(),
        endpoint: String::new(),
        epoch: Epoch(3),
        counter: 7,
        ttl_ms: 120_000,
    };
    let whole = Move {
        partition: PartitionId(7),
        to: Some(node("b")),
        from: Some(node("a")),
        is_begun: true,
        others: 2,
    };
    let name = |what: &str| format!("{what}-17-2971000");
    let answers = [
        Answer::Detected {
            needed: Needed::Drain,
            node: Some(node("i-0123")),
            lost: vec![node("i-0456")],
            name: name("drain"),
        },
        Answer::Detected { needed: Needed::Nothing, node: None, lost: vec![], name: name("nothing") },
        Answer::DetectedAll {
            graphs: vec![
                OfGraph {
                    graph: "orders".into(),
                    needed: Needed::Heal,
                    node: None,
                    lost: vec![node("i-0456")],
                    name: "heal-orders-17-2971000".into(),
                    error: None,
                },
                OfGraph {
                    graph: "people".into(),
                    needed: Needed::Nothing,
                    node: None,
                    lost: vec![],
                    name: String::new(),
                    error: Some("graph \"people\" is not in the map".into()),
                },
            ],
        },
        Answer::Graphs { graphs: vec!["orders".into(), "people".into()] },
        Answer::Silent { nodes: vec![node("i-0456")] },
        Answer::Acquired { ours: false, lease, wait_seconds: 145 },
        Answer::Drains { state: NodeState::Draining, held: Some(4) },
        Answer::Drains { state: NodeState::Up, held: None },
        Answer::Planned {
            goal: Goal::Repair,
            done: false,
            lots: vec![Lot { moves: vec![whole.clone()] }],
            moves: 1,
            coming: 2,
            short: 3,
            bytes: 4096,
        },
        Answer::Moved {
            done: false,
            moves: vec![Move { to: None, is_begun: false, ..whole }],
            void: 1,
            looks: 4,
        },
        Answer::Verified {
            whole: false,
            partitions: 64,
            whole_partitions: 63,
            dark: 0,
            moves: 1,
            reason: "1 moves are left".into(),
        },
        Answer::Released { released: true },
        Answer::UpgradeBegan {
            ours: false,
            holder: "t".into(),
            release: Release { major: 0, minor: 2, patch: 0 },
            capacity: 3,
        },
        Answer::UpgradeNext {
            action: Action::End,
            node: Some(node("i-0123")),
            capacity: 3,
            is_canary: true,
            is_last: false,
            upgraded: 1,
            left: 3,
            reason: "node i-0123 holds nothing".into(),
        },
        Answer::UpgradeNext {
            action: Action::Launch,
            node: None,
            capacity: 4,
            is_canary: false,
            is_last: false,
            upgraded: 0,
            left: 3,
            reason: "3 machines are left".into(),
        },
        Answer::UpgradeEnded { state: UpgradeState::Stopped },
        Answer::ScaleNext {
            action: ScaleAction::Drain,
            node: Some(node("i-0123")),
            capacity: 4,
            reason: "4 nodes are idle: node i-0123 leaves".into(),
        },
        Answer::ScaleNext {
            action: ScaleAction::Nothing,
            node: None,
            capacity: 4,
            reason: "an upgrade runs".into(),
        },
    ];
    let told: Vec<Value> = answers.iter().map(|answer| serde_json::to_value(answer).unwrap()).collect();
    assert_eq!(told, golden("answers"));
}

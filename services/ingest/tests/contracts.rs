//! Events and answers match `contracts/golden/ingest.json`, which the schemas are checked against too.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::path::Path;
use tidegraph_engine::loads::Stage;
use tidegraph_ingest::{Answer, Error, Request};
use tidegraph_types::ErrorCode;

fn golden(part: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contracts/golden/ingest.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[part].as_array().unwrap().clone()
}

#[test]
fn events_of_the_contract_are_read_and_others_refused() {
    for event in golden("events") {
        Request::read(event.clone()).unwrap_or_else(|error| panic!("{event}: {error}"));
    }
    for event in golden("refused") {
        let error = Request::read(event.clone()).expect_err(&event.to_string());
        assert_eq!(error.name(), "Invalid", "{event}");
    }
}

#[test]
fn answers_are_those_of_the_contract() {
    let load_id = "0f8fad5b-d9cb-569f-a165-70867728950e".to_owned();
    let ahead = |stage, round, tasks: &[u32], status: Option<&'static str>| Answer::Ahead {
        load_id: load_id.clone(),
        stage,
        round,
        tasks: tasks.to_vec(),
        status,
        report: status.map(|_| format!("ingest/{load_id}/report.json")),
    };
    let answers = [
        ahead("parse", 0, &[0, 1, 2], None),
        ahead("vertices", 1, &[3], None),
        ahead("commit", 0, &[], None),
        ahead("ended", 0, &[], Some("LOAD_COMPLETED")),
        ahead("ended", 0, &[], Some("LOAD_CANCELLED_DUE_TO_ERRORS")).in_folder(None),
        ahead("ended", 0, &[], Some("LOAD_COMPLETED")).in_folder(Some("graphs/people")),
        Answer::Worked { stage: Stage::Parse, task: 7, rows: 120_000, rejected: 2 },
    ];
    let told: Vec<Value> = answers.iter().map(|answer| serde_json::to_value(answer).unwrap()).collect();
    assert_eq!(told, golden("answers"));
}

#[test]
fn error_names_decide_whether_to_retry() {
    let of = |code| Error::from(tidegraph_engine::Error::new(code, "why")).name();
    for code in [ErrorCode::Unavailable, ErrorCode::ConcurrentModification] {
        assert_eq!(of(code), "Unavailable");
    }
    for code in [ErrorCode::BadRequest, ErrorCode::BulkLoadIdNotFound, ErrorCode::Corrupt] {
        assert_eq!(of(code), "Invalid");
    }
    assert_eq!(of(ErrorCode::Internal), "Defect");
}

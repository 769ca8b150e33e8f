//! Tests that `contracts/errors.json` and `ErrorCode` are the same table.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

use serde_json::Value;
use std::path::Path;
use tidegraph_types::{ErrorCode, Kind};

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Invalid => "invalid",
        Kind::NotFound => "not_found",
        Kind::Conflict => "conflict",
        Kind::Throttled => "throttled",
        Kind::Unavailable => "unavailable",
        Kind::Unknown => "unknown",
        Kind::Timeout => "timeout",
        Kind::Corrupt => "corrupt",
        Kind::Internal => "internal",
    }
}

#[test]
fn the_contract_lists_exactly_the_codes_of_the_code() {
    // Tests run in the folder of their package, which may have moved since they were built.
    let path = Path::new("../../contracts/errors.json").to_owned();
    let text = std::fs::read_to_string(path).expect("contracts/errors.json can be read");
    let table: Value = serde_json::from_str(&text).expect("contracts/errors.json is JSON");
    let listed: Vec<(String, String, u64)> = table["errors"]
        .as_array()
        .expect("`errors` is an array")
        .iter()
        .map(|row| {
            let text = |field: &str| row[field].as_str().expect("a string").to_owned();
            (text("code"), text("kind"), row["httpStatus"].as_u64().expect("a number"))
        })
        .collect();
    let coded: Vec<(String, String, u64)> = ErrorCode::ALL
        .iter()
        .map(|code| {
            (code.as_str().to_owned(), kind_name(code.kind()).to_owned(), u64::from(code.http_status()))
        })
        .collect();
    assert_eq!(listed, coded, "contracts/errors.json and engine-core/types/src/error.rs have parted");
}

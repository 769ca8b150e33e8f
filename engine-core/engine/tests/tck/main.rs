//! Scenarios of openCypher, run through the whole engine in one process: our own ones in `tests/scenarios/opencypher/`,
//! and those of the Technology Compatibility Kit, whose failures stand in `expected_failures.txt`.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod suite;

use std::path::Path;
use std::sync::Arc;
use suite::{Graph, Refusal, Rows};
use tidegraph_engine::plan::Procedures;
use tidegraph_engine::{Database, Language, Options, Parameters, Query};

/// Folder of our own scenarios. Tests run in the folder of their package, wherever it was when they were built.
#[allow(dead_code, reason = "who runs these modules elsewhere has one of its own")]
pub const SCENARIOS: &str = "tests/scenarios";

/// Creates a graph for a scenario, whose queries may call these procedures.
#[allow(dead_code, reason = "who runs these modules elsewhere has one of its own")]
pub fn graph_with(procedures: Procedures) -> Arc<Database> {
    let query_timeout = std::time::Duration::from_secs(120);
    let options = Options { partitions: 2, query_timeout, procedures, ..Options::default() };
    Database::open(options).expect("an empty graph")
}

impl Graph for Arc<Database> {
    fn ask(&self, text: &str, parameters: &Parameters) -> Result<Rows, Refusal> {
        let answer = self.query(&Query::new(Language::OpenCypher, text, parameters));
        let answer = answer.map_err(|error| Refusal { code: error.code(), message: error.to_string() })?;
        let columns = answer.columns.iter().map(ToString::to_string).collect();
        Ok(Rows { columns: Some(columns), rows: answer.rows })
    }
}

fn make(procedures: Procedures) -> Box<dyn Graph> {
    Box::new(crate::graph_with(procedures))
}

#[test]
fn own_scenarios() {
    suite::check_all(&Path::new(crate::SCENARIOS).join("opencypher"), &make);
}

#[test]
fn tck() {
    suite::check_kit(&make, &[include_str!("expected_failures.txt")]);
}

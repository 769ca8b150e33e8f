//! Scenarios in the notation of openCypher's Technology Compatibility Kit (TCK), run
//! through the whole engine in one process.
//!
//! Our own scenarios in `tests/scenarios/opencypher/` always run and must pass. The kit itself is not part of this
//! repository. To run it, set `TCK_FEATURES` to the folder into which `org.opencypher:tck` was unpacked (the one
//! with `features/` and `graphs/`). Scenarios that use unsupported parts of the language are counted. Failures
//! must be listed in `expected_failures.txt` with their reason, and a listed scenario that passes must be removed
//! from the list. If `TCK_ONLY` is set, only scenarios whose name contains its text run, for a closer look.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod compare;
mod expected;
mod feature;
mod graph;
mod notation;
mod run;

use feature::Scenario;
use run::Outcome;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_engine::{Database, Options};

/// Folder of our own scenarios. Tests run in the folder of their package, wherever it was when they were built.
#[allow(dead_code, reason = "who runs these modules elsewhere has one of its own")]
pub const SCENARIOS: &str = "tests/scenarios";

/// Creates a graph for a scenario.
#[allow(dead_code, reason = "who runs these modules elsewhere has one of its own")]
pub fn empty_graph() -> Arc<Database> {
    let options =
        Options { partitions: 2, query_timeout: std::time::Duration::from_secs(20), ..Options::default() };
    Database::open(options).expect("an empty graph")
}

#[test]
fn own_scenarios() {
    let folder = Path::new(crate::SCENARIOS).join("opencypher");
    let scenarios = feature::read_folder(&folder);
    assert!(scenarios.len() >= 40, "only {} scenarios in {}", scenarios.len(), folder.display());
    let faults: Vec<String> = scenarios
        .iter()
        .filter_map(|scenario| match run::run(scenario, &folder) {
            Outcome::Passed => None,
            Outcome::Unsupported(name) => Some(format!("{}\n  unsupported: {name}", scenario.name)),
            Outcome::Failed(message) => Some(format!("{}\n  {message}", scenario.name)),
        })
        .collect();
    assert!(faults.is_empty(), "{} scenarios failed:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn tck() {
    let Some(folder) = std::env::var_os("TCK_FEATURES").map(PathBuf::from) else {
        println!("TCK_FEATURES is not set: the TCK was not run");
        return;
    };
    let only = std::env::var("TCK_ONLY").unwrap_or_default();
    let graphs = folder.join("graphs");
    let scenarios: Vec<Scenario> =
        feature::read_folder(&folder).into_iter().filter(|scenario| scenario.name.contains(&only)).collect();
    assert!(!scenarios.is_empty(), "no scenarios in {}", folder.display());
    let expected = expected::list();
    let mut passed = 0;
    let mut unsupported: BTreeMap<String, usize> = BTreeMap::new();
    let (mut failed, mut faults) = (0, vec![]);
    for scenario in &scenarios {
        let reason = expected.get(&*scenario.name);
        match run::run(scenario, &graphs) {
            Outcome::Passed => {
                passed += 1;
                if reason.is_some() {
                    faults.push(format!("{}\n  passes, but is listed as an expected failure", scenario.name));
                }
            }
            Outcome::Unsupported(name) => {
                *unsupported.entry(name).or_default() += 1;
                if reason.is_some() {
                    faults.push(format!(
                        "{}\n  is unsupported, but is listed as an expected failure",
                        scenario.name
                    ));
                }
            }
            Outcome::Failed(message) => {
                failed += 1;
                if reason.is_none() {
                    faults.push(format!("{}\n  {message}", scenario.name));
                }
            }
        }
    }
    if only.is_empty() {
        for name in expected.keys().filter(|name| scenarios.iter().all(|s| s.name != **name)) {
            faults.push(format!("{name}\n  is listed as an expected failure, but there is no such scenario"));
        }
    }
    let refused: usize = unsupported.values().sum();
    println!("{} scenarios: {passed} passed, {refused} unsupported, {failed} failed", scenarios.len());
    for (name, count) in &unsupported {
        println!("{count:6} {name}");
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

//! Scenarios in the notation of openCypher's Technology Compatibility Kit (TCK), run over any [`Graph`].
//!
//! The kit is not part of this repository. To run it, set `TCK_FEATURES` to the folder into which `org.opencypher:tck`
//! was unpacked (the one with `features/` and `graphs/`). Scenarios that use unsupported parts of the language are
//! counted. Failures must be listed with their reason, and a listed scenario that passes must be removed from the list.
//! If `TCK_ONLY` is set, only scenarios whose name contains its text run, for a closer look.

mod compare;
mod expected;
mod feature;
mod graph;
mod notation;
mod procedures;
mod run;

use feature::Scenario;
use run::Outcome;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tidegraph_engine::Parameters;
use tidegraph_engine::plan::Procedures;
use tidegraph_types::{ErrorCode, Kind, Value};

/// A graph that answers queries, in this process or behind a protocol.
pub trait Graph {
    /// Runs a query.
    fn ask(&self, text: &str, parameters: &Parameters) -> Result<Rows, Refusal>;

    /// Whether answers are plain JSON, in which a path is the list of its elements, and temporal values, NaN and infinities
    /// are texts.
    fn is_plain(&self) -> bool {
        false
    }
}

/// Makes an empty graph whose queries may call these procedures.
pub type Make<'a> = dyn Fn(Procedures) -> Box<dyn Graph> + 'a;

/// The answer to a query.
pub struct Rows {
    /// Names of the columns; `None`: an answer without rows does not tell them.
    pub columns: Option<Vec<String>>,
    pub rows: Vec<Vec<Value>>,
}

/// Why a query has no answer.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
}

impl Refusal {
    /// Whether the query is wrong, rather than the graph not able to answer.
    fn is_invalid(&self) -> bool {
        self.code.kind() == Kind::Invalid
    }

    /// Whether the query was refused before it ran.
    fn is_early(&self) -> bool {
        matches!(self.code, ErrorCode::MalformedQuery | ErrorCode::MissingParameter)
    }
}

/// Runs the scenarios of a folder, all of which have to pass.
#[allow(dead_code, reason = "not all who run the kit run scenarios of their own")]
pub fn check_all(folder: &Path, make: &Make<'_>) {
    let scenarios = feature::read_folder(folder);
    assert!(scenarios.len() >= 40, "only {} scenarios in {}", scenarios.len(), folder.display());
    let faults: Vec<String> = scenarios
        .iter()
        .filter_map(|scenario| match run::run(scenario, folder, make) {
            Outcome::Passed => None,
            Outcome::Unsupported(name) => Some(format!("{}\n  unsupported: {name}", scenario.name)),
            Outcome::Failed(message) => Some(format!("{}\n  {message}", scenario.name)),
        })
        .collect();
    assert!(faults.is_empty(), "{} scenarios failed:\n{}", faults.len(), faults.join("\n"));
}

/// Runs the kit, if there is one. `expected`: the texts of lists of scenarios that fail.
pub fn check_kit(make: &Make<'_>, expected: &[&str]) {
    let Some(folder) = std::env::var_os("TCK_FEATURES").map(PathBuf::from) else {
        println!("TCK_FEATURES is not set: the TCK was not run");
        return;
    };
    let only = std::env::var("TCK_ONLY").unwrap_or_default();
    let graphs = folder.join("graphs");
    let scenarios: Vec<Scenario> =
        feature::read_folder(&folder).into_iter().filter(|scenario| scenario.name.contains(&only)).collect();
    assert!(!scenarios.is_empty(), "no scenarios in {}", folder.display());
    let expected: BTreeMap<&str, &str> = expected.iter().flat_map(|text| expected::list(text)).collect();
    let mut passed = 0;
    let mut unsupported: BTreeMap<String, usize> = BTreeMap::new();
    let (mut failed, mut faults) = (0, vec![]);
    for scenario in &scenarios {
        let listed = expected.contains_key(&*scenario.name);
        match run::run(scenario, &graphs, make) {
            Outcome::Passed => {
                passed += 1;
                if listed {
                    faults.push(format!("{}\n  passes, but is listed as an expected failure", scenario.name));
                }
            }
            Outcome::Unsupported(name) => {
                *unsupported.entry(name).or_default() += 1;
                if listed {
                    faults.push(format!(
                        "{}\n  is unsupported, but is listed as an expected failure",
                        scenario.name
                    ));
                }
            }
            Outcome::Failed(message) => {
                failed += 1;
                if !listed {
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

//! Gherkin scenarios about Gremlin, run through the whole engine in one process.
//!
//! There are two sources: the project's own scenarios (`tests/scenarios/gremlin`), in
//! which every step must be supported, and TinkerPop's features, if `GREMLIN_FEATURES` and `GREMLIN_3_8_FEATURES`
//! name directories with them (the unpacked `gremlin-test` jars of 3.7 and 3.8). If `GREMLIN_GRATEFUL`
//! names `grateful-dead-v1.json` of such a jar, the scenarios on that graph run too.
//!
//! The engine may refuse one of TinkerPop's scenarios as not supported yet. Any other failure must be
//! listed in `expected_failures.txt` or `expected_failures_3_8.txt` with its reason. A listed scenario that passes
//! fails the test as well. Few scenarios presuppose settings of TinkerGraph and get a graph that has them
//! (`graphs/settings.txt`). All scenarios also run on graphs with the settings of TinkerGraph; the lists
//! whose names end with `_typed` say which outcomes differ there.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod graphs;
mod notation;
mod scenario;

use gherkin::{Feature, GherkinEnv};
pub use graphs::readable_files;

use graphs::Graphs;
use scenario::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_engine::{Database, GremlinVersion, Options};
use tidegraph_types::{Cardinality, ElementIds, GremlinSettings};

/// Folder of our own scenarios. Tests run in the folder of their package, wherever it was when they were built.
#[allow(dead_code, reason = "who runs these modules elsewhere has one of its own")]
pub const SCENARIOS: &str = "tests/scenarios";

/// Whether TinkerPop's scenarios also run on graphs with the settings of TinkerGraph.
#[allow(dead_code, reason = "who runs these modules elsewhere has one of its own")]
pub const TYPED_SUITES: bool = true;

/// The settings that TinkerGraph has.
const TINKERGRAPH: GremlinSettings =
    GremlinSettings { ids: ElementIds::Typed, default_cardinality: Cardinality::Single };

/// Creates a graph for a scenario.
#[allow(dead_code, reason = "who runs these modules elsewhere has one of its own")]
pub fn empty_graph(gremlin: GremlinSettings) -> Arc<Database> {
    let options = Options {
        partitions: 2,
        ids: Some(gremlin.ids),
        default_cardinality: Some(gremlin.default_cardinality),
        load_from: readable_files(),
        ..Options::default()
    };
    Database::open(options).expect("an empty graph")
}

/// Collects the feature files below a directory, sorted.
fn features(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory of features") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            features(&path, found);
        } else if path.extension().is_some_and(|e| e == "feature") {
            found.push(path);
        }
    }
    found.sort();
}

/// Features that TinkerPop lets a graph lack, by the tags of the scenarios that need them.
const UNDECLARED: [(&str, &str); 5] = [
    ("AllowNullPropertyValues", "nulls are stored"),
    ("AllowMapPropertyValues", "maps are stored"),
    ("AllowSetPropertyValues", "sets are stored"),
    ("InsertionOrderingRequired", "elements come in the order in which they were made"),
    ("UserSuppliedVertexPropertyIds", "properties of vertices have ids"),
];

/// A scenario that ran.
struct Ran {
    /// File and title.
    name: String,
    outcome: Outcome,
    /// The feature that the graph lacks, if the scenario needs one.
    lacks: Option<&'static str>,
}

/// Runs every scenario below a directory.
fn run(directory: &Path, version: Option<GremlinVersion>, gremlin: GremlinSettings) -> Vec<Ran> {
    let mut files = vec![];
    features(directory, &mut files);
    assert!(!files.is_empty(), "no feature files in {}", directory.display());
    let only = std::env::var("GREMLIN_SCENARIO").unwrap_or_default();
    let mut graphs = Graphs::of(version, gremlin);
    let settings = expected_failures(include_str!("graphs/settings.txt"));
    let mut of_tinkergraph = Graphs::of(version, TINKERGRAPH);
    let mut all = vec![];
    for file in files {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let feature = Feature::parse(text + "\n", GherkinEnv::default())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for scenario in feature.scenarios {
            let name = format!("{stem}: {}", scenario.name);
            if name.contains(&only) {
                let needs = |(tag, _): &&(&str, _)| scenario.tags.iter().any(|other| other == tag);
                let lacks = UNDECLARED.iter().find(needs).map(|(_, feature)| *feature);
                let presupposes = version.is_some() && settings.contains_key(name.as_str());
                let graphs = if presupposes { &mut of_tinkergraph } else { &mut graphs };
                all.push(Ran { name, outcome: scenario::run(&scenario, graphs), lacks });
            }
        }
    }
    all
}

#[test]
fn own_scenarios_hold() {
    own_scenarios_hold_in("gremlin", GremlinSettings::default());
}

#[test]
fn own_scenarios_of_typed_ids_hold() {
    own_scenarios_hold_in("gremlin_typed", TINKERGRAPH);
}

/// Runs our scenarios in a folder, on graphs with these settings.
fn own_scenarios_hold_in(folder: &str, gremlin: GremlinSettings) {
    let directory = Path::new(crate::SCENARIOS).join(folder);
    let mut wrong = vec![];
    for Ran { name, outcome, .. } in run(&directory, None, gremlin) {
        match outcome {
            Outcome::Passed => {}
            Outcome::Unsupported(what) => wrong.push(format!("{name}\n    not supported: {what}")),
            Outcome::LeftOut(why) => wrong.push(format!("{name}\n    left out: {why}")),
            Outcome::Failed(why) => wrong.push(format!("{name}\n    {why}")),
        }
    }
    assert!(wrong.is_empty(), "{} scenarios fail\n{}", wrong.len(), wrong.join("\n"));
}

/// Reads the reviewed list, which has a line `name | reason` for each scenario that is known to fail.
fn expected_failures(list: &'static str) -> BTreeMap<&'static str, &'static str> {
    list.lines().filter_map(failure).collect()
}

/// Reads a line of a list; `None` for a comment.
fn failure(line: &'static str) -> Option<(&'static str, &'static str)> {
    let is_text = !line.is_empty() && !line.starts_with('#');
    is_text.then(|| line.split_once(" | ").unwrap_or_else(|| panic!("no reason given: {line}")))
}

#[test]
fn tinkerpop_scenarios_hold() {
    let expected = expected_failures(include_str!("expected_failures.txt"));
    scenarios_hold("GREMLIN_FEATURES", GremlinVersion::V3_7, GremlinSettings::default(), expected);
}

#[test]
fn tinkerpop_scenarios_hold_with_typed_ids() {
    if crate::TYPED_SUITES {
        let expected = expected_failures(include_str!("expected_failures.txt"));
        let expected = differing(expected, include_str!("expected_failures_typed.txt"));
        scenarios_hold("GREMLIN_FEATURES", GremlinVersion::V3_7, TINKERGRAPH, expected);
    }
}

#[test]
fn tinkerpop_3_8_scenarios_hold_with_typed_ids() {
    if crate::TYPED_SUITES {
        let expected = expected_failures(include_str!("expected_failures_3_8.txt"));
        let expected = differing(expected, include_str!("expected_failures_3_8_typed.txt"));
        scenarios_hold("GREMLIN_3_8_FEATURES", GremlinVersion::V3_8, TINKERGRAPH, expected);
    }
}

/// Changes a list of failures: a line that begins with `- ` names a scenario that passes, every other one adds a failure.
fn differing(
    mut expected: BTreeMap<&'static str, &'static str>,
    list: &'static str,
) -> BTreeMap<&'static str, &'static str> {
    for name in list.lines().filter_map(|line| line.strip_prefix("- ")) {
        assert!(expected.remove(name).is_some(), "{name} is in no list");
    }
    let added = list.lines().filter(|line| !line.starts_with("- "));
    expected.extend(added.filter_map(failure));
    expected
}

#[test]
fn tinkerpop_3_8_scenarios_hold() {
    let expected = expected_failures(include_str!("expected_failures_3_8.txt"));
    scenarios_hold("GREMLIN_3_8_FEATURES", GremlinVersion::V3_8, GremlinSettings::default(), expected);
}

/// Runs the scenarios of a version in the directory that a variable names, on graphs with these settings.
fn scenarios_hold(
    variable: &str,
    version: GremlinVersion,
    gremlin: GremlinSettings,
    mut expected: BTreeMap<&'static str, &'static str>,
) {
    assert!(expected.values().all(|reason| !reason.trim().is_empty()), "a listed failure lacks its reason");
    // TinkerPop's features are not part of this repository.
    let Ok(directory) = std::env::var(variable) else { return };
    let (mut passed, mut listed, mut wrong) = (0, 0, vec![]);
    let (mut unsupported, mut left_out) = (BTreeMap::<String, u32>::new(), BTreeMap::<String, u32>::new());
    let mut seen = BTreeSet::new();
    for Ran { name, outcome, lacks } in run(Path::new(&directory), Some(version), gremlin) {
        assert!(seen.insert(name.clone()), "two scenarios are named {name}");
        let known = expected.remove(name.as_str());
        match (outcome, known) {
            (Outcome::Passed, None) => passed += 1,
            (Outcome::Failed(_), Some(_)) => match lacks {
                Some(feature) => *left_out.entry(format!("needs that {feature}")).or_default() += 1,
                None => listed += 1,
            },
            (Outcome::Failed(why), None) => wrong.push(format!("{name}\n    {why}")),
            (_, Some(_)) => wrong.push(format!("{name}\n    is listed as a failure and does not fail")),
            (Outcome::Unsupported(what), None) => *unsupported.entry(what).or_default() += 1,
            (Outcome::LeftOut(why), None) => *left_out.entry(why).or_default() += 1,
        }
    }
    let total = |counts: &BTreeMap<String, u32>| counts.values().sum::<u32>();
    println!(
        "{} scenarios: {passed} pass, {} not supported yet, {} left out, {listed} listed failures, {} wrong",
        seen.len(),
        total(&unsupported),
        total(&left_out),
        wrong.len()
    );
    let counted = passed + listed + total(&unsupported);
    println!(
        "{} of them ran on graphs with settings of TinkerGraph that they presuppose",
        expected_failures(include_str!("graphs/settings.txt")).len()
    );
    println!(
        "{:.2} % of {counted} scenarios pass, without those that are left out",
        100.0 * f64::from(passed) / f64::from(counted.max(1))
    );
    for (title, counts) in [("not supported yet", unsupported), ("left out", left_out)] {
        println!("{title}:");
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), name.clone()));
        for (name, count) in counts {
            println!("{count:5} {name}");
        }
    }
    if std::env::var("GREMLIN_SCENARIO").is_err() {
        let presupposing = expected_failures(include_str!("graphs/settings.txt")).into_keys();
        let missing = presupposing.filter(|name| !seen.contains(*name));
        wrong.extend(missing.map(|name| format!("{name}\n    needs settings and does not exist")));
        wrong.extend(
            expected.keys().map(|name| format!("{name}\n    is listed as a failure and does not exist")),
        );
    }
    assert!(wrong.is_empty(), "{} scenarios are wrong\n{}", wrong.len(), wrong.join("\n"));
}

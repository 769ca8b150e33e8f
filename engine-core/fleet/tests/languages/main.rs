//! Runs the scenarios of both languages against a fleet, as the engine's tests run them in one
//! process. Our own scenarios always run; those of openCypher's and TinkerPop's kits run if
//! `TCK_FEATURES` and `GREMLIN_FEATURES` name them. The lists of expected failures are the same.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

#[path = "../../../engine/tests/gremlin_features/main.rs"]
mod gremlin_features;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../engine/tests/tck/main.rs"]
mod tck;

use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{TestFleet, ask};
use tidegraph_engine::plan::Procedures;
use tidegraph_engine::{Database, Language, Options};
use tidegraph_fleet::{NodeConfig, Worker};
use tidegraph_types::GremlinSettings;

/// Folder of the engine's scenarios.
pub const SCENARIOS: &str = "../engine/tests/scenarios";

struct Graph {
    database: Arc<Database>,
    procedures: Procedures,
    worker: Arc<Worker>,
    fleet: TestFleet,
}

/// All graphs created so far. A graph that no test holds is reused.
static GRAPHS: Mutex<Vec<Graph>> = Mutex::new(Vec::new());

/// TinkerPop's scenarios run on fleets with the default settings only: what other settings change is the work of a worker.
pub const TYPED_SUITES: bool = false;

/// Returns an empty graph with these settings that no other test holds.
pub fn empty_graph(gremlin: GremlinSettings) -> Arc<Database> {
    graph_of(gremlin, Procedures::default())
}

/// Returns an empty graph that no other test holds. Its queries may call these procedures.
pub fn graph_with(procedures: Procedures) -> Arc<Database> {
    graph_of(GremlinSettings::default(), procedures)
}

fn graph_of(gremlin: GremlinSettings, procedures: Procedures) -> Arc<Database> {
    // A test that panicked while it held the lock left the graphs unchanged.
    let mut graphs = GRAPHS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let is_free =
        |graph: &&mut Graph| Arc::strong_count(&graph.database) == 1 && graph.fleet.graph.gremlin == gremlin;
    if let Some(graph) = graphs.iter_mut().find(is_free) {
        if graph.procedures != procedures {
            graph.database = graph.fleet.database(options(&procedures), &graph.worker);
            graph.procedures = procedures;
        }
        ask(&graph.database, Language::OpenCypher, "MATCH (n) DETACH DELETE n").unwrap();
        return graph.database.clone();
    }
    let config = NodeConfig { beat: Duration::from_millis(500), ..NodeConfig::default() };
    let fleet = TestFleet::start_with(gremlin, 4, 2, 2, config);
    let (_, worker) = fleet.worker();
    let database = fleet.database(options(&procedures), &worker);
    graphs.push(Graph { database: database.clone(), procedures, worker, fleet });
    database
}

fn options(procedures: &Procedures) -> Options {
    let load_from = gremlin_features::readable_files();
    Options { procedures: procedures.clone(), load_from, ..Options::default() }
}

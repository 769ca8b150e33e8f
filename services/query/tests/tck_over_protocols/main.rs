//! Scenarios of openCypher's Technology Compatibility Kit, run against the service over HTTP and over Bolt. The engine's
//! tests run them in one process and the fleet's tests against a fleet; here a scenario fails if the service changes a
//! query, its parameters, its answer or its error on the way.
//!
//! One service serves all scenarios, and is emptied before each. Scenarios that declare procedures get a service each,
//! because a database has its procedures for life.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests are clients, which open sockets")]

#[allow(dead_code, reason = "the tests of Bolt need more of it")]
#[path = "../bolt/client.rs"]
mod client;
mod over_bolt;
mod over_http;
#[path = "../../../../engine-core/engine/tests/tck/suite/mod.rs"]
mod suite;

use client::{Server, WIDE};
use std::cell::OnceCell;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use suite::Graph;
use tidegraph_engine::plan::Procedures;
use tidegraph_engine::{Options, Parameters};
use tokio::runtime::Runtime;

/// Folder of the engine's own scenarios.
const OWN: &str = "../../engine-core/engine/tests/scenarios/opencypher";

/// Scenarios that fail in the engine, and so over each protocol.
const EXPECTED: &str = include_str!("../../../../engine-core/engine/tests/tck/expected_failures.txt");

const QUERY_TIMEOUT: Duration = Duration::from_secs(120);
const MEMORY_TOTAL_BYTES: u64 = 256 << 20;

/// Runs the engine's own scenarios, and the kit if there is one, against services to which `connect` connects.
/// `expected`: the list of scenarios of the kit that fail only over this protocol.
fn check<G>(expected: &str, connect: impl Fn(Rc<Runtime>, SocketAddr) -> G)
where
    G: 'static,
    Rc<G>: Graph,
{
    let runtime = Rc::new(Runtime::new().unwrap());
    let start = |procedures| {
        let options = Options { query_timeout: QUERY_TIMEOUT, procedures, ..Options::default() };
        let server = runtime.block_on(Server::of(options, MEMORY_TOTAL_BYTES, WIDE, None));
        Rc::new(connect(runtime.clone(), server.address))
    };
    let shared = OnceCell::new();
    let make = |procedures| -> Box<dyn Graph> {
        if procedures != Procedures::default() {
            return Box::new(start(procedures));
        }
        let graph: &Rc<G> = shared.get_or_init(|| start(procedures));
        graph.ask("MATCH (n) DETACH DELETE n", &Parameters::default()).unwrap();
        Box::new(graph.clone())
    };
    suite::check_all(Path::new(OWN), &make);
    suite::check_kit(&make, &[EXPECTED, expected]);
}

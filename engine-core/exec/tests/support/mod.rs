//! A graph in memory, and short functions that build and run plans.

#![allow(dead_code, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, reason = "only tests call this")]

pub mod plans;

use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_apl::At;
pub use tidegraph_apl::testing::MemoryGraph as Graph;
use tidegraph_exec::{
    Context, Entropy, Execution, Interrupt, Limits, NeverInterrupted, Parameters, Summary, View,
};
use tidegraph_plan::Plan;
use tidegraph_types::Value;

/// A source of randomness that counts up.
#[derive(Default)]
pub struct Counting(AtomicU64);

impl Entropy for Counting {
    fn random_u64(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Runs a plan with all settings. Returns its rows and summary.
pub fn execute(
    graph: &Graph,
    plan: &Plan,
    parameters: &Parameters,
    limits: Limits,
    interrupt: &dyn Interrupt,
) -> tidegraph_exec::Result<(Vec<Vec<Value>>, Summary)> {
    let view = View::new(graph, graph, At::default(), plan.root.writes());
    let entropy = Counting::default();
    let ctx = Context::new(view, parameters, limits, interrupt, &entropy, jiff::Timestamp::UNIX_EPOCH);
    Execution::new(plan, ctx)?.run()
}

/// Runs a plan. Returns its rows and summary.
pub fn try_run(graph: &Graph, plan: &Plan) -> tidegraph_exec::Result<(Vec<Vec<Value>>, Summary)> {
    execute(graph, plan, &Parameters::default(), Limits::default(), &NeverInterrupted)
}

/// Runs a plan that must succeed. Returns its rows as short text: vertices and edges by
/// id, other values as in openCypher.
pub fn rows(graph: &Graph, plan: &Plan) -> Vec<String> {
    let (rows, _) = try_run(graph, plan).unwrap_or_else(|e| panic!("{e}"));
    rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(" ")).collect()
}

/// Like [`rows`], but sorted.
pub fn sorted(graph: &Graph, plan: &Plan) -> Vec<String> {
    let mut rows = rows(graph, plan);
    rows.sort();
    rows
}

/// Runs a plan that writes, and applies its commit.
pub fn run_and_apply(graph: &mut Graph, plan: &Plan) -> (Vec<String>, Summary) {
    let (rows, outcome) = try_run(graph, plan).unwrap_or_else(|e| panic!("{e}"));
    if let Some(commit) = &outcome.commit {
        graph.apply(commit);
    }
    (rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(" ")).collect(), outcome)
}

/// Formats a value as short text.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Unbound => "unbound".into(),
        Value::Bool(v) => v.to_string(),
        Value::String(v) => v.to_string(),
        Value::VertexData(v) => v.id.to_string(),
        Value::EdgeData(e) => format!("{}-{}->{}", e.source_id, e.label, e.target_id),
        Value::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        other => match (other.as_i64(), other.as_f64()) {
            (Some(int), _) => int.to_string(),
            (None, Some(float)) => float.to_string(),
            _ => format!("{other:?}"),
        },
    }
}

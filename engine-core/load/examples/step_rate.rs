//! Loads a source in steps, one task after the other, against an empty graph, and prints how fast each stage is and how much memory its
//! largest task takes: `cargo run --release -p tidegraph-load --example step_rate -- SOURCE`. Without a source it generates an identity
//! graph of 20,000 golden entities first.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use tidegraph_load::generate::{Graph, Spec, files};
use tidegraph_load::run::steps::{Next, Request, Round, Steps};
use tidegraph_load::run::{Found, LoadTarget, Status};
use tidegraph_load::{Dialect, Error};
use tidegraph_platform::{Clock, Objects, RealClock};
use tidegraph_types::{Edge, Gui, GuiHasher, PartitionCount, Str, Token, Value};

/// A graph with nothing in it but names.
#[derive(Default)]
struct Nothing {
    tokens: RefCell<HashMap<Str, Token>>,
    next_sid: RefCell<u64>,
}

impl LoadTarget for Nothing {
    fn graph(&self) -> &str {
        "empty"
    }
    fn partitions(&self) -> PartitionCount {
        PartitionCount::new(64).unwrap_or(PartitionCount::ONE)
    }
    fn hasher(&self) -> GuiHasher {
        GuiHasher::default()
    }
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(true)
    }
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        let mut tokens = self.tokens.borrow_mut();
        let mut token = |name: &Str| {
            let next = Token(tokens.len() as u32);
            *tokens.entry(name.clone()).or_insert(next)
        };
        Ok(names.iter().map(&mut token).collect())
    }
    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        let first = self.next_sid.replace_with(|n| *n + count);
        Ok(first..first + count)
    }
    fn vertices(&self, ids: &[Str]) -> Result<Vec<Found>, Error> {
        Ok(vec![Found::Absent; ids.len()])
    }
    fn occupied(&self, guis: &[Gui]) -> Result<Vec<bool>, Error> {
        Ok(vec![false; guis.len()])
    }
    fn vertex_values(&self, wanted: &[(Gui, Token)]) -> Result<Vec<Vec<Value>>, Error> {
        Ok(vec![Vec::new(); wanted.len()])
    }
    fn edges(&self, ids: &[Str]) -> Result<Vec<Option<Edge>>, Error> {
        Ok(vec![None; ids.len()])
    }
    fn edge_values(&self, wanted: &[(Edge, Token)]) -> Result<Vec<Option<Value>>, Error> {
        Ok(vec![None; wanted.len()])
    }
}

/// Peak memory of the process since [`forget_peak`], in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

fn forget_peak() {
    // Without it the peak is that of all stages so far, which is no smaller.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = RealClock::new();
    let work = std::env::temp_dir().join(format!("tidegraph-step-rate-{}", std::process::id()));
    let uri = match std::env::args().nth(1) {
        Some(uri) => uri,
        None => {
            let dir = work.join("files");
            let spec = Spec { graph: Graph::Identity, scale: 20_000, seed: 1 };
            files::write(&spec, Dialect::Gremlin, false, &dir, |_, _| {})?;
            dir.to_string_lossy().into_owned()
        }
    };
    let objects = Objects::local(&work.join("objects"))?;
    let request = Request { chunk_bytes: 32 << 20, group_bytes: 32 << 20, ..Request::new(uri) };
    let target = Nothing::default();
    let start = clock.now();
    let steps = Steps::begin("rate", &request, &target, &objects)?;
    steps.begin_round(0, &Round { version: 0, unique: Vec::new() })?;
    println!(
        "plan: {:.2} s for {} MB",
        (clock.now() - start).as_secs_f64(),
        steps.plan().bytes() / 1_000_000
    );
    let mut next = steps.first();
    let mut stages = Vec::new();
    while let Next::Work(stage, tasks) = next {
        let (mut seconds, mut peak) = (0.0, 0);
        for task in &tasks {
            forget_peak();
            let start = clock.now();
            steps.work(stage, 0, *task, "one")?;
            seconds += (clock.now() - start).as_secs_f64();
            peak = peak_mib().max(peak);
        }
        stages.push((stage, tasks.len(), seconds, peak));
        next = steps.next(stage, 0)?;
    }
    let outcome = steps.outcome(0, Status::Completed)?;
    let records = outcome.counts.total_records as f64;
    let total: f64 = stages.iter().map(|(_, _, seconds, _)| seconds).sum();
    println!(
        "{} vertices, {} edges, {records} statements, {} refused, {} segments",
        outcome.vertices,
        outcome.edges,
        outcome.counts.errors(),
        outcome.segments.len()
    );
    for (stage, tasks, seconds, peak) in stages {
        println!(
            "{:8} {tasks:4} tasks, {seconds:6.2} s, {:9.0} statements/s, at most {peak} MiB",
            stage.name(),
            records / seconds
        );
    }
    let elements = (outcome.vertices + outcome.edges) as f64;
    println!(
        "one task after the other: {:.0} elements/s, {:.0} statements/s",
        elements / total,
        records / total
    );
    std::fs::remove_dir_all(&work)?;
    Ok(())
}

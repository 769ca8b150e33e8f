//! `micro step-rate`: loads a source in steps, one task after the other, against an empty graph. It prints the rate of
//! each stage and the memory of the stage's largest task.

use super::target::EmptyGraph;
use tidegraph_load::Dialect;
use tidegraph_load::generate::{Graph, Spec, files};
use tidegraph_load::run::Status;
use tidegraph_load::run::steps::{Next, Request, Round, Steps};
use tidegraph_platform::{Clock, Objects, RealClock};

/// Returns the peak memory of the process since [`forget_peak`], in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

fn forget_peak() {
    // If this fails, the peak is that of all stages so far.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Prints the rates; without a source it generates one.
pub fn run(source: Option<String>) -> anyhow::Result<()> {
    let clock = RealClock::new();
    let work = std::env::temp_dir().join(format!("tidegraph-step-rate-{}", std::process::id()));
    let uri = match source {
        Some(uri) => uri,
        None => {
            let dir = work.join("files");
            let spec = Spec { graph: Graph::Identity, scale: 20_000, seed: 1 };
            files::write(&spec, Dialect::GREMLIN, false, &dir, |_, _| {})?;
            dir.to_string_lossy().into_owned()
        }
    };
    let objects = Objects::local(&work.join("objects"))?;
    let request = Request { chunk_bytes: 32 << 20, group_bytes: 32 << 20, ..Request::new(uri) };
    let target = EmptyGraph::new(64);
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

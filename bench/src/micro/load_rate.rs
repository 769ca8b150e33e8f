//! `micro load-rate`: loads a source into segments in memory, against an empty graph, and prints rates.

use super::target::EmptyGraph;
use tidegraph_load::generate::{Graph, Spec, files};
use tidegraph_load::run::{Config, run as load};
use tidegraph_load::source::{Access, Allowed};
use tidegraph_load::{Dialect, Source};
use tidegraph_platform::{Clock, Objects, RealClock};

/// Prints the rates; without a source it generates one.
pub fn run(source: Option<String>) -> anyhow::Result<()> {
    let clock = RealClock::new();
    let uri = match source {
        Some(uri) => uri,
        None => {
            let dir = std::env::temp_dir().join("tidegraph-load-rate");
            let spec = Spec { graph: Graph::Identity, scale: 5_000, seed: 1 };
            files::write(&spec, Dialect::GREMLIN, false, &dir, |_, _| {})?;
            dir.to_string_lossy().into_owned()
        }
    };
    let source = Source::open(&uri, &Access::to(&Allowed::everything()))?;
    let config = Config { fail_on_error: false, ..Config::new("rate", Dialect::GREMLIN) };
    let start = clock.now();
    let outcome = load(&config, &source, &EmptyGraph::new(8), &Objects::memory()?, &())?;
    let seconds = (clock.now() - start).as_secs_f64();
    let elements = outcome.vertices + outcome.edges;
    let bytes: u64 = outcome.segments.iter().map(|s| s.bytes).sum();
    println!(
        "{} vertices, {} edges, {} statements, {} refused, {} segments of {} MB in {seconds:.2} s",
        outcome.vertices,
        outcome.edges,
        outcome.counts.total_records,
        outcome.counts.errors(),
        outcome.segments.len(),
        bytes / 1_000_000,
    );
    println!(
        "{:.0} elements/s, {:.0} statements/s",
        elements as f64 / seconds,
        outcome.counts.total_records as f64 / seconds
    );
    outcome.errors.iter().take(5).for_each(|e| println!("{e}"));
    Ok(())
}

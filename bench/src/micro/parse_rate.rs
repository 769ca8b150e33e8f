//! `micro parse-rate`: reads files on one thread and prints rates.

use std::path::PathBuf;
use tidegraph_load::generate::{Graph, Spec, files};
use tidegraph_load::{Dialect, Options, Problem, Row};
use tidegraph_platform::{Clock, RealClock};

/// Prints the rates; without a file it generates an identity graph.
pub fn run(mut paths: Vec<PathBuf>) -> anyhow::Result<()> {
    let clock = RealClock::new();
    if paths.is_empty() {
        let dir = std::env::temp_dir().join("tidegraph-parse-rate");
        let spec = Spec { graph: Graph::Identity, scale: 5_000, seed: 1 };
        let start = clock.now();
        let written = files::write(&spec, Dialect::GREMLIN, false, &dir, |_, _| {})?;
        println!("generated in {:.2} s", (clock.now() - start).as_secs_f64());
        paths = written.into_iter().map(|w| w.path).collect();
    }
    let (mut all_rows, mut all_values, mut all_bytes, mut all_seconds) = (0_u64, 0_u64, 0_u64, 0.0);
    for path in paths {
        let bytes = std::fs::metadata(&path)?.len();
        let start = clock.now();
        let reader = tidegraph_load::open(
            std::fs::File::open(&path)?,
            &path.to_string_lossy(),
            None,
            &Options::default(),
        )?;
        let (mut rows, mut values, mut refused) = (0_u64, 0_u64, 0_u64);
        for item in reader {
            match item {
                Ok(Row::Vertex(row)) => values += row.properties.len() as u64,
                Ok(Row::Edge(row)) => values += row.properties.len() as u64,
                Err(Problem::Row(_)) => refused += 1,
                Err(Problem::File(error)) => return Err(error.into()),
            }
            rows += 1;
        }
        let seconds = (clock.now() - start).as_secs_f64();
        println!(
            "{}: {rows} rows ({refused} refused), {values} values, {:.0} rows/s, {:.0} values/s, {:.0} MB/s",
            path.display(),
            rows as f64 / seconds,
            values as f64 / seconds,
            bytes as f64 / seconds / 1e6,
        );
        all_rows += rows;
        all_values += values;
        all_bytes += bytes;
        all_seconds += seconds;
    }
    println!(
        "all: {all_rows} rows, {all_values} values in {all_seconds:.2} s on one thread: {:.0} rows/s, {:.0} values/s, {:.0} MB/s",
        all_rows as f64 / all_seconds,
        all_values as f64 / all_seconds,
        all_bytes as f64 / all_seconds / 1e6,
    );
    Ok(())
}

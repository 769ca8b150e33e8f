//! Loads a source into segments in memory, against an empty graph, and prints how fast:
//! `cargo run --release -p tidegraph-load --example load_rate -- SOURCE`. Without a source it generates an identity
//! graph of 5,000 golden entities first.

use std::cell::RefCell;
use std::ops::Range;
use tidegraph_load::generate::{Graph, Spec, files};
use tidegraph_load::run::{Config, Found, LoadTarget, run};
use tidegraph_load::{Dialect, Error, Source};
use tidegraph_platform::{Clock, Objects, RealClock};
use tidegraph_types::{Edge, Gui, GuiHasher, PartitionCount, Str, Token, Value};

/// A graph with nothing in it.
#[derive(Default)]
struct Nothing {
    tokens: RefCell<Vec<Str>>,
    next_sid: RefCell<u64>,
}

impl LoadTarget for Nothing {
    fn graph(&self) -> &str {
        "empty"
    }
    fn partitions(&self) -> PartitionCount {
        PartitionCount::new(8).unwrap_or(PartitionCount::ONE)
    }
    fn hasher(&self) -> GuiHasher {
        GuiHasher::default()
    }
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(true)
    }
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        let mut tokens = self.tokens.borrow_mut();
        let first = tokens.len() as u32;
        tokens.extend_from_slice(names);
        Ok((first..tokens.len() as u32).map(Token).collect())
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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = RealClock::new();
    let uri = match std::env::args().nth(1) {
        Some(uri) => uri,
        None => {
            let dir = std::env::temp_dir().join("tidegraph-load-rate");
            let spec = Spec { graph: Graph::Identity, scale: 5_000, seed: 1 };
            files::write(&spec, Dialect::Gremlin, false, &dir, |_, _| {})?;
            dir.to_string_lossy().into_owned()
        }
    };
    let source = Source::open(&uri, None, &[])?;
    let config = Config { fail_on_error: false, ..Config::new("rate", Dialect::Gremlin) };
    let start = clock.now();
    let outcome = run(&config, &source, &Nothing::default(), &Objects::memory()?, &())?;
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

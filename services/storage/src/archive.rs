//! `tidegraph-node archive`, and the flags by which the sequencer's node archives.

use crate::backup::{PlaceArgs, SourceArgs, open, print, time};
use clap::Args;
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_cluster::Graph;
use tidegraph_fleet::backup::{ArchiveConfig, Archiver, Source, Turn};
use tidegraph_log::LogBackend;
use tidegraph_platform::{Clock, Objects, RealClock, RealRandom};

/// Pause between two turns, and after a failure.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(20);

/// How often a pause looks whether a signal ends it.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Flags of `archive`.
#[derive(Args, Debug)]
pub struct ArchiveLog {
    #[command(flatten)]
    source: SourceArgs,
    /// Go on until SIGTERM, and write an archive this number of seconds after the first record that is in none. Default:
    /// archive what there is, and end.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: Option<u64>,
    /// Number of segments that are copied at once. Each takes up to 40 MiB of memory.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
}

/// Flags of `serve` that archive the log.
#[derive(Args, Debug)]
pub struct ArchiveArgs {
    /// Archive the log to the place of backups while this node is the sequencer: what `backup --to` was given. The log is
    /// trimmed only up to what is archived, or after an hour.
    #[arg(long, value_name = "URL", env = "TIDEGRAPH_ARCHIVE_TO")]
    archive_to: Option<String>,
    /// Seconds from the first record that is in no archive until one is written.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "TIDEGRAPH_ARCHIVE_EVERY_S",
        default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    archive_every_s: u64,
    #[command(flatten)]
    place: PlaceArgs,
}

impl ArchiveArgs {
    /// Makes the archiver of a graph, if there is a place for archives.
    pub fn archiver(
        &self,
        graph: &Graph,
        log: Arc<dyn LogBackend>,
        objects: Arc<Objects>,
        clock: Arc<dyn Clock>,
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<Option<Archiver>> {
        let Some(url) = &self.archive_to else { return Ok(None) };
        let config =
            ArchiveConfig { every: Duration::from_secs(self.archive_every_s), ..ArchiveConfig::default() };
        let to = open(url, &self.place, &graph.name)?;
        let random = Arc::new(RealRandom);
        let source = Source { graph: graph.clone(), objects, log, clock, random };
        Ok(Some(Archiver::new(source, to, config, stop)))
    }
}

impl ArchiveLog {
    pub fn run(self) -> anyhow::Result<()> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let (source, to) = self.source.open(&clock)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, stop.clone())?;
        }
        let every = self.every.map_or(ArchiveConfig::default().every, Duration::from_secs);
        let config =
            ArchiveConfig { every, parallel: usize::from(self.parallel), ..ArchiveConfig::default() };
        let mut archiver = Archiver::new(source, to, config, stop.clone());
        if self.every.is_some() {
            return follow(&mut archiver, &*clock, &stop);
        }
        let turn = archiver.archive_all()?;
        let mut value = shown(&turn);
        value["version"] = json!(archiver.archived().map(|version| version.0));
        print(&value);
        Ok(())
    }
}

/// Archives until a signal comes, and what was read at its end. Prints a line for each turn that wrote an archive.
fn follow(archiver: &mut Archiver, clock: &dyn Clock, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut told = None;
    while !stop.load(Ordering::Acquire) {
        let pause = match archiver.turn() {
            Ok(turn) => {
                told = None;
                tell(&turn);
                PAUSE
            }
            Err(error) => {
                let text = error.to_string();
                if told.as_ref() != Some(&text) {
                    tracing::warn!(%error, "the log is not archived; this is tried again");
                    told = Some(text);
                }
                PAUSE_AFTER_FAILURE
            }
        };
        let end = clock.now() + pause;
        while clock.now() < end && !stop.load(Ordering::Acquire) {
            clock.sleep(LOOK_EVERY);
        }
    }
    tell(&Turn { written: archiver.cut()?, ..Turn::default() });
    Ok(())
}

/// Prints what a turn wrote as one line.
#[allow(clippy::print_stdout)]
fn tell(turn: &Turn) {
    if !turn.written.is_empty() || turn.gap.is_some() {
        println!("{}", shown(turn));
    }
}

fn shown(turn: &Turn) -> Value {
    let archives = turn.written.iter().map(|archive| {
        json!({
            "series": archive.series,
            "first": archive.log.first,
            "last": archive.log.last,
            "time": time(archive.cut_ms),
            "segments": archive.objects.len(),
            "bytes": archive.bytes(),
        })
    });
    let gap = turn.gap.map(|(after, kept_from)| json!({ "after": after.0, "until": kept_from.0 }));
    json!({ "archives": archives.collect::<Vec<_>>(), "gap": gap })
}

//! Runs simulated fleets from the command line.

use clap::Parser;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;
use tidegraph_simulation::{Bug, Config, Counts, Invariant, Report, run};

/// Runs simulated fleets, each in a world drawn from a seed.
#[derive(Parser, Debug)]
#[command(name = "simulate")]
struct Arguments {
    /// Range of seeds to run, FROM..TO.
    #[arg(long, value_parser = seeds, default_value = "0..200", conflicts_with = "seed")]
    seeds: Range<u64>,
    /// One seed to run.
    #[arg(long)]
    seed: Option<u64>,
    /// Prints every event.
    #[arg(long)]
    trace: bool,
    /// Plants a defect next to the real code: acknowledge-early, skip-epoch-check, apply-out-of-order, hide-reads,
    /// strip-reads, rename-commits, hide-changes, strip-constraints, turn-early or
    /// lose-while-splitting.
    #[arg(long, value_parser = planted)]
    bug: Option<Bug>,
    /// Duration of the faults, in simulated seconds.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Number of threads; each runs its own worlds.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

fn planted(text: &str) -> Result<Bug, String> {
    Bug::named(text).ok_or_else(|| format!("there is no defect {text:?}"))
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or_else(|| format!("{text:?} is not FROM..TO"))?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    Ok(number(from)?..number(to)?)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seeds = arguments.seed.map_or(arguments.seeds.clone(), |seed| seed..seed.saturating_add(1));
    let of = |seed: u64| -> Report {
        let faults = Duration::from_secs(arguments.seconds);
        let report =
            run(&Config { bug: arguments.bug, keep_lines: arguments.trace, faults, ..Config::new(seed) });
        let text: String = report.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let ended = match &report.violation {
            Some(violation) => format!("VIOLATION {violation}"),
            None => "no violation".to_owned(),
        };
        println!("{text}seed {seed}: hash {:016x}, {}; {ended}", report.hash, report.counts);
        report
    };
    let next = std::sync::atomic::AtomicU64::new(seeds.start);
    let work = || {
        let (mut counts, mut wrong) = (Counts::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if seed >= seeds.end {
                return (counts, wrong);
            }
            let report = of(seed);
            counts = counts.plus(report.counts);
            wrong.extend(report.violation.map(|violation| (seed, violation)));
        }
    };
    let (mut counts, mut wrong) = (Counts::default(), Vec::new());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.threads.max(1)).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let (some, found) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            counts = counts.plus(some);
            wrong.extend(found);
        }
    });
    wrong.sort_by_key(|(seed, _)| *seed);
    println!("{} worlds: {counts}", seeds.end.saturating_sub(seeds.start));
    println!("checked: {}", Invariant::ALL.map(Invariant::name).join(", "));
    for (seed, violation) in &wrong {
        println!("VIOLATION seed {seed}: {violation}; replay with --seed {seed} --trace");
        println!("  {} says: {}", violation.invariant, violation.invariant.statement().unwrap_or_default());
    }
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

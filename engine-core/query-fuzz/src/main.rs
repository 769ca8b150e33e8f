//! Draws queries, gives them to the engine and to the reference evaluators, and prints what differs.

use clap::{Parser, ValueEnum};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_query_fuzz::campaign::{Languages, Outcome, QUERIES_PER_SEED, run_seed, run_seed_in};
use tidegraph_query_fuzz::concurrent::{self, Fleet, Forced};
use tidegraph_query_fuzz::metamorphic;

/// Compares answers of the engine with those of naive evaluators.
#[derive(Parser, Debug)]
#[command(name = "fuzz-queries")]
struct Arguments {
    /// Number of queries.
    #[arg(long, default_value_t = 100_000)]
    queries: u64,
    /// The first seed. Each seed has a graph and 50 queries.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The language to draw.
    #[arg(long, value_enum, default_value_t = Choice::Both)]
    language: Choice,
    /// Compares answers of the engine with each other instead, on larger graphs.
    #[arg(long)]
    metamorphic: bool,
    /// Runs two or three statements beside each other and compares them with every serial order; each seed is one round
    /// of them.
    #[arg(long, conflicts_with = "metamorphic")]
    concurrent: bool,
    /// With `--concurrent`: every round has unique constraints. Without it a part of the rounds has.
    #[arg(long, requires = "concurrent")]
    constraints: bool,
    /// With `--concurrent`: every statement is tried at hand first, as the service does. Without it a part of them is.
    #[arg(long, requires = "concurrent", conflicts_with = "fleet")]
    at_hand: bool,
    /// The queries run at a worker of a fleet of three nodes; with `--concurrent`, the statements run at two workers.
    #[arg(long, conflicts_with = "metamorphic")]
    fleet: bool,
    /// Number of threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Stops after this many differences.
    #[arg(long, default_value_t = 20)]
    differences: usize,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum Choice {
    Both,
    Opencypher,
    Gremlin,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.concurrent {
        return run_rounds(&arguments);
    }
    let languages = match arguments.language {
        Choice::Both => Languages::Both,
        Choice::Opencypher => Languages::Cypher,
        Choice::Gremlin => Languages::Gremlin,
    };
    let last = arguments.seed + arguments.queries.div_ceil(QUERIES_PER_SEED);
    let next = AtomicU64::new(arguments.seed);
    let work = || {
        let mut outcome = Outcome::default();
        let fleet = arguments.fleet.then(Fleet::start);
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= last || outcome.differences.len() >= arguments.differences {
                return outcome;
            }
            let queries = QUERIES_PER_SEED.min(arguments.queries);
            let found = if arguments.metamorphic {
                metamorphic::run_seed(seed, queries)
            } else if let Some(fleet) = &fleet {
                run_seed_in(fleet, seed, queries, languages)
            } else {
                run_seed(seed, queries, languages)
            };
            match found {
                Ok(found) => {
                    found.differences.iter().for_each(|difference| println!("{difference}\n"));
                    outcome.add(found);
                }
                Err(error) => {
                    eprintln!("seed {seed}: {error}");
                    outcome.wrong.push(format!("seed {seed}: {error}"));
                }
            }
        }
    };
    let mut all = Outcome::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.threads.max(1)).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            all.add(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    for reason in all.wrong.iter().take(10) {
        println!("not compared: {reason}");
    }
    for query in all.timed_out.iter().take(10) {
        println!("not answered in time: {query}");
    }
    println!(
        "{} queries compared ({} with rows, {} writes), {} skipped, {} not answered in time, {} without a defined \
         answer, {} differences",
        all.compared,
        all.with_rows,
        all.writes,
        all.skipped,
        all.timed_out.len(),
        all.wrong.len(),
        all.differences.len()
    );
    if all.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Rounds of one fleet.
const ROUNDS_OF_FLEET: u64 = 1_000;

/// Runs one round of concurrent statements for each seed.
fn run_rounds(arguments: &Arguments) -> ExitCode {
    let mut all = concurrent::Outcome::default();
    let mut failed = false;
    let forced = Forced { constraints: arguments.constraints, at_hand: arguments.at_hand };
    let mut fleet = None;
    for (number, seed) in (0..arguments.queries).zip(arguments.seed..) {
        if arguments.fleet && number % ROUNDS_OF_FLEET == 0 {
            fleet = Some(Fleet::start());
        }
        let found = match &mut fleet {
            Some(fleet) => concurrent::run_seed_in(fleet, seed, forced),
            None => concurrent::run_seed(seed, forced),
        };
        match found {
            Ok(found) => {
                found.anomalies.iter().for_each(|anomaly| println!("{anomaly}"));
                all.add(found);
            }
            Err(error) => {
                eprintln!("seed {seed}: {error}");
                failed = true;
                // A round that was not prepared leaves it in any state.
                fleet = fleet.map(|_| Fleet::start());
            }
        }
        if all.anomalies.len() >= arguments.differences {
            break;
        }
    }
    println!("{all}");
    if failed || !all.anomalies.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

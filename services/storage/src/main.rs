//! The daemon of a fleet: storage node and candidate for the sequencer.
//!
//! `tidegraph-node serve` holds replicas of partitions and answers reads, and may be the sequencer. `init` creates a
//! graph (table, log, map), `drop-graph` removes one, `place` distributes its partitions, `map` prints the map, `restart-log` starts a new log from
//! checkpoints, `backup` copies a graph to another place, `archive` copies the log behind it and `restore` makes a graph of such copies, `doctor` looks at the machine,
//! and `log-latency` measures the log.

mod admin;
mod archive;
mod backup;
mod connect;
mod doctor;
mod drop_graph;
mod latency;
mod restart_log;
mod serve;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A node of a Tidegraph fleet.
#[derive(Parser, Debug)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Runs a node until SIGTERM.
    Serve(Box<serve::Serve>),
    /// Creates a graph: the table of maps, the log and the graph's own map. Parts that exist stay.
    Init(admin::Init),
    /// Starts a new log from the checkpoints, after the brokers lost the old one.
    RestartLog(restart_log::RestartLog),
    /// Copies the graph to a place of backups, while it is used, and prints what the backup has as JSON.
    Backup(Box<backup::BackUp>),
    /// Copies the log behind the newest archive or backup to the place of backups, once or until SIGTERM.
    Archive(Box<archive::ArchiveLog>),
    /// Prints the backups of a graph as JSON, and up to where archives go on behind them.
    Backups(backup::ListBackups),
    /// Reads a backup and the archives behind it, compares them with their checksums, and prints what it has as JSON.
    VerifyBackup(backup::VerifyBackup),
    /// Makes a new graph of a backup and the archives behind it. Refuses a graph, a log or a bucket that is in use.
    Restore(Box<backup::Restore>),
    /// Removes a graph with all its data: its map, the topic of its log, its checkpoints and its segments. Its backups stay.
    DropGraph(drop_graph::DropGraph),
    /// Waits for a number of nodes and distributes the partitions among them.
    Place(admin::Place),
    /// Prints the map as JSON.
    Map(admin::Map),
    /// Looks at this machine and the daemon on it: disk, clock, metrics, files, heartbeats. Says what to do about what is
    /// wrong, and fails then.
    Doctor(Box<doctor::Doctor>),
    /// Measures how long the log's brokers take to acknowledge a message, and prints it as JSON.
    LogLatency(latency::LogLatency),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let result = tidegraph_telemetry::start("tidegraph-node").and_then(|_telemetry| match command {
        Command::Serve(serve) => serve.run(),
        Command::Init(init) => init.run(),
        Command::RestartLog(restart) => restart.run(),
        Command::Backup(backup) => backup.run(),
        Command::Archive(archive) => archive.run(),
        Command::Backups(list) => list.run(),
        Command::VerifyBackup(verify) => verify.run(),
        Command::Restore(restore) => restore.run(),
        Command::DropGraph(drop) => drop.run(),
        Command::Place(place) => place.run(),
        Command::Map(map) => map.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::LogLatency(latency) => latency.run(),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // For people, so not in the debug form.
            #[allow(clippy::print_stderr)]
            {
                eprintln!("error: {}", tidegraph_platform::chain(error.as_ref()));
            }
            ExitCode::FAILURE
        }
    }
}

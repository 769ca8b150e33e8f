//! The commands of the `tidegraph` binary, a file each.

mod access;
mod client;
#[cfg(feature = "fleet")]
mod fleet;
mod generate;
mod load;
#[cfg(feature = "fleet")]
mod map;
mod metrics_log;
#[cfg(feature = "fleet")]
mod prove;
mod query;
mod serve;
mod size;
mod status;
mod user;
#[cfg(feature = "fleet")]
mod worker;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Tidegraph: a graph database that speaks openCypher and Gremlin.
#[derive(Parser, Debug)]
#[command(name = "tidegraph", version, about, propagate_version = true)]
pub struct Tidegraph {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the service with a database of its own.
    Serve(Box<serve::Serve>),
    /// Run a worker of a fleet, which answers queries over the data of storage nodes.
    #[cfg(feature = "fleet")]
    Worker(Box<worker::Worker>),
    /// Plan and carry out moves of replicas: heal, add and drain nodes of a fleet.
    #[cfg(feature = "fleet")]
    Fleet(fleet::FleetCommand),
    /// Load files into a running service and show the progress.
    Load(load::Load),
    /// Run a query, or an interactive session on a terminal.
    Query(query::Query),
    /// Write a generated graph to files.
    Generate(generate::Generate),
    /// Show the status of a running service.
    Status(status::Status),
    /// Print a proof of who you are in AWS, for a service with `--iam-callers`.
    #[cfg(feature = "fleet")]
    Prove(prove::Prove),
    /// Hash passwords, and edit a file of users for `--users`.
    User(user::User),
}

impl Tidegraph {
    /// Runs the command and returns the exit code of the process.
    ///
    /// # Errors
    ///
    /// The reason why the command failed, for standard error.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let _telemetry = tidegraph_telemetry::start("tidegraph")?;
        match self.command {
            Command::Serve(command) => command.run(),
            #[cfg(feature = "fleet")]
            Command::Worker(command) => command.run(),
            #[cfg(feature = "fleet")]
            Command::Fleet(command) => command.run(),
            Command::Load(command) => command.run(),
            Command::Query(command) => command.run(),
            Command::Generate(command) => command.run(),
            Command::Status(command) => command.run(),
            #[cfg(feature = "fleet")]
            Command::Prove(command) => command.run(),
            Command::User(command) => command.run(),
        }
    }
}

//! The `tidegraph` command.

use clap::Parser;
use std::process::ExitCode;

// Short queries allocate many small things on several threads; the system allocator costs a fifth of their time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command = tidegraph_query::cli::Tidegraph::parse();
    match command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tidegraph: {error:#}");
            ExitCode::FAILURE
        }
    }
}

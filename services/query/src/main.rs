//! The `tidegraph` command.

use clap::Parser;
use std::process::ExitCode;

// Short queries allocate many small objects on several threads; with the system allocator this takes a fifth of their
// time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs before `main`, because the allocator takes its first memory before it.
#[ctor::ctor(unsafe)]
fn set_up_allocator() {
    tidegraph_query::allocator::take_memory_as_it_is_used();
}

fn main() -> ExitCode {
    let command = tidegraph_query::cli::Tidegraph::parse();
    match command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tidegraph: {}", tidegraph_platform::chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

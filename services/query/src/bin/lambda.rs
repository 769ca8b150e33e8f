//! `tidegraph-lambda`: a worker as a Lambda function. It is deployed under the name `bootstrap`, which Lambda starts.

use std::process::ExitCode;
use tidegraph_query::lambda::{Configuration, run};

// As in `tidegraph`: short queries allocate many small things on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs before `main`, because the allocator takes its first memory before it.
#[ctor::ctor(unsafe)]
fn set_up_allocator() {
    tidegraph_query::allocator::take_memory_as_it_is_used();
}

fn main() -> ExitCode {
    tidegraph_function::write_logs();
    let ended =
        Configuration::read(tidegraph_function::variables()).map_err(anyhow::Error::from).and_then(run);
    tidegraph_function::exit_code("tidegraph-lambda", ended)
}

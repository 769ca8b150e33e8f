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
    let configured = || Configuration::read(tidegraph_function::variables()).map_err(anyhow::Error::from);
    let telemetry = tidegraph_telemetry::start("tidegraph-lambda");
    let ended = telemetry.and_then(|_telemetry| configured().and_then(run));
    tidegraph_function::exit_code("tidegraph-lambda", ended)
}

//! `tidegraph-lambda`: a worker as a Lambda function. It is deployed under the name `bootstrap`, which Lambda starts.

use std::process::ExitCode;
use tidegraph_query::lambda::{Configuration, run};

// As in `tidegraph`: short queries allocate many small things on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tidegraph_function::write_logs();
    let ended =
        Configuration::read(tidegraph_function::variables()).map_err(anyhow::Error::from).and_then(run);
    tidegraph_function::exit_code("tidegraph-lambda", ended)
}

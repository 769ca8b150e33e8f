//! `tidegraph-lambda`: a worker as a Lambda function. It is deployed under the name `bootstrap`, which Lambda starts.

use std::process::ExitCode;
use tidegraph_query::lambda::{Configuration, run};

// As in `tidegraph`: short queries allocate many small things on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns the environment variables. Bytes that are not UTF-8 are replaced; a variable of Tidegraph with such a value
/// is refused by its reader.
#[expect(clippy::disallowed_methods, reason = "configuration is read here")]
fn variables() -> impl Iterator<Item = (String, String)> {
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("TIDEGRAPH_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // Lambda writes standard error to the log group of the function.
    tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter).with_writer(std::io::stderr).init();
    let ended = Configuration::read(variables()).map_err(anyhow::Error::from).and_then(run);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidegraph-lambda: {error:#}");
            ExitCode::FAILURE
        }
    }
}

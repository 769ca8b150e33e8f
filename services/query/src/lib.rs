//! The query service and the command line: the embedded database behind an HTTP port shaped like Neptune's.
//!
//! `http` is the service, `json` how values are written, `cli` the commands of the one binary,
//! `bench` its workloads; `lambda` is the worker as a function.
//! Nothing here knows how a query is run: that is `tidegraph-engine`.

pub mod bench;
pub mod cli;
pub mod http;
pub mod json;
#[cfg(feature = "lambda")]
pub mod lambda;

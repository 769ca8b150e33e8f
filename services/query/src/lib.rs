//! The query service and the command line: the embedded database behind an HTTP API shaped like Neptune's.
//!
//! Roles: [`admission`] decides which queries run and when; [`http`] is the service; [`server`] holds its connections;
//! [`json`] reads and writes values; [`cli`] holds the commands of the `tidegraph` binary; `lambda` is the worker as a
//! Lambda function. Queries run in `tidegraph-engine`.

pub mod admission;
pub mod cli;
pub mod http;
pub mod json;
#[cfg(feature = "lambda")]
pub mod lambda;
pub mod server;

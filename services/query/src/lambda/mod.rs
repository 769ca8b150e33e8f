//! The worker as an AWS Lambda function behind a REST API of API Gateway: the same router as `tidegraph worker`, in
//! another shell.
//!
//! Roles: [`Configuration`] holds the settings from the function's environment variables; [`Shell`] holds the
//! connection to the fleet and answers requests; [`run`] connects it to the Runtime API.
//!
//! Flow of a cold start: read the variables → read the map and the lease at the same time → ask the sequencer for
//! the newest version → ask for the first event. Flow of a request: ask for the newest version (Lambda may have
//! frozen the process since the last request) → router → answer. The function talks to the map, the sequencer and
//! the nodes, never to Kafka, whose brokers accept few new connections.
//!
//! What must never happen: an answer at a version from before a freeze; work that continues after the answer, because
//! Lambda may freeze the process in the middle of it. Therefore a function runs no bulk loads.

mod configuration;
mod shell;

pub use configuration::{Configuration, Invalid, Responses};
pub use shell::Shell;

use crate::admission::MOST_PARKED;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use lambda_http::service_fn;
use std::convert::Infallible;
use std::sync::Arc;
use tidegraph_platform::chain;

/// Connects to the fleet and answers events until Lambda ends the process.
///
/// # Errors
///
/// If the runtime cannot be started or the Runtime API fails. An unreachable fleet is not an error: requests retry.
pub fn run(configuration: Configuration) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(configuration.limits.queries.concurrent_queries.max(1) + MOST_PARKED + 8)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let responses = configuration.responses;
        let shell = Arc::new(Shell::new(configuration));
        // Before asking for the first event, because Lambda gives the start a whole processor. If it fails, each
        // request tries again and answers with the reason.
        if let Err(error) = shell.connect().await {
            tracing::error!(error = %chain(error.as_ref()), "the fleet cannot be reached; requests will retry");
        }
        let ended = match responses {
            Responses::Stream => {
                let service = service_fn(move |request: lambda_http::Request| {
                    let shell = shell.clone();
                    async move { Ok::<_, Infallible>(shell.answer(request).await) }
                });
                lambda_http::run_with_streaming_response_concurrent(service).await
            }
            Responses::Buffer => {
                let service = service_fn(move |request: lambda_http::Request| {
                    let shell = shell.clone();
                    async move { Ok::<_, Infallible>(whole(shell.answer(request).await).await) }
                });
                lambda_http::run_concurrent(service).await
            }
        };
        ended.map_err(|error| anyhow::anyhow!("the Runtime API failed: {error}"))
    })
}

/// Collects an answer into one piece.
async fn whole(answer: Response<Body>) -> Response<lambda_http::Body> {
    let (parts, body) = answer.into_parts();
    // The whole answer is in memory already.
    match axum::body::to_bytes(body, usize::MAX).await {
        Ok(bytes) => {
            let body = String::from_utf8(bytes.into())
                .map_or_else(|error| lambda_http::Body::Binary(error.into_bytes()), lambda_http::Body::Text);
            Response::from_parts(parts, body)
        }
        Err(error) => {
            let mut answer = Response::new(lambda_http::Body::Text(error.to_string()));
            *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            answer
        }
    }
}

//! The worker as an AWS Lambda function behind a REST API of API Gateway: the same router as `tidegraph worker`, in another
//! shell.
//!
//! Roles: [`Configuration`] is what the function's environment variables say; [`Shell`] holds the connection to the fleet and
//! answers one request; [`run`] puts it behind the Runtime API.
//!
//! Flow of a cold start: variables → map and lease at the same time → the sequencer is asked for the newest version → the first
//! event is asked for. Flow of a request: the newest version is asked for (the process may have been stopped since the last
//! request) → router → answer. The function speaks with the map, the sequencer and the nodes; never with Kafka, whose brokers
//! take few new connections.
//!
//! What must never happen: an answer at a version from before the process was stopped; work that goes on after the answer,
//! for then the process may be stopped in the middle of it. So a function takes no bulk loads.

mod configuration;
mod shell;

pub use configuration::{Configuration, Invalid, Responses};
pub use shell::Shell;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use lambda_http::service_fn;
use std::convert::Infallible;
use std::sync::Arc;

/// Connects to the fleet and answers events until the process is ended.
pub fn run(configuration: Configuration) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(configuration.limits.queries.concurrent_queries.max(1) + 8)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let responses = configuration.responses;
        let shell = Arc::new(Shell::new(configuration));
        // Before the first event is asked for: that time is the start's, which has a whole processor. When it fails, each
        // request tries again, and says why it cannot be answered.
        if let Err(error) = shell.connect().await {
            tracing::error!(%error, "the fleet cannot be reached yet");
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

/// An answer as one piece.
async fn whole(answer: Response<Body>) -> Response<lambda_http::Body> {
    let (parts, body) = answer.into_parts();
    // It is in memory as a whole already.
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

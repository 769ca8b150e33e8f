//! Blocking requests to DynamoDB: a small async runtime sends them, and the caller waits
//! for the answer on a channel.

use super::DynamoOptions;
use crate::{Cause, Error};
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::ConsumedCapacity;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Requests to DynamoDB so far, as DynamoDB counts them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// Answered requests.
    pub requests: u64,
    /// Read request units.
    pub read_units: f64,
    /// Write request units.
    pub write_units: f64,
}

/// Sends requests and waits for them.
pub(super) struct Requests {
    pub client: Client,
    runtime: Option<Runtime>,
    usage: Mutex<Usage>,
}

impl Requests {
    pub fn new(options: &DynamoOptions) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("map-requests")
            .enable_all()
            .build()
            .map_err(|error| Error::unavailable("open the map", error))?;
        let client = runtime.block_on(connect(options));
        Ok(Self { client, runtime: Some(runtime), usage: Mutex::default() })
    }

    pub fn usage(&self) -> Usage {
        *self.usage.lock()
    }

    /// Counts a request and its capacity units.
    pub fn count<'a>(&self, consumed: impl IntoIterator<Item = &'a ConsumedCapacity>, writes: bool) {
        let units: f64 = consumed.into_iter().filter_map(ConsumedCapacity::capacity_units).sum();
        let mut usage = self.usage.lock();
        usage.requests += 1;
        if writes {
            usage.write_units += units;
        } else {
            usage.read_units += units;
        }
    }

    /// Waits for a request, which is bounded by its attempts and their timeouts.
    pub fn wait<T: Send + 'static>(
        &self,
        operation: &'static str,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Error> {
        let gone = || Error::unavailable(operation, "the process is going down");
        let runtime = self.runtime.as_ref().ok_or_else(gone)?;
        let (sender, answer) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            // The receiver is gone if the caller's thread is.
            let _ = sender.send(request.await);
        });
        answer.recv().map_err(|_| gone())
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // Does not block, so that this may be dropped inside another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn connect(options: &DynamoOptions) -> Client {
    let attempts = options.attempts.max(1);
    let retries = RetryConfig::standard()
        .with_max_attempts(attempts)
        .with_initial_backoff(Duration::from_millis(50))
        .with_max_backoff(Duration::from_secs(1));
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(options.attempt())
        .operation_attempt_timeout(options.attempt())
        .operation_timeout(options.attempt().saturating_mul(attempts) + Duration::from_secs(1))
        .build();
    let builder = if options.local {
        let any = Credentials::new("local", "local", None, None, "DynamoDB Local");
        Builder::new().behavior_version(BehaviorVersion::latest()).credentials_provider(any)
    } else if options.from_environment {
        let builder = Builder::new().behavior_version(BehaviorVersion::latest());
        builder.credentials_provider(EnvironmentVariableCredentialsProvider::new())
    } else {
        Builder::from(&aws_config::load_defaults(BehaviorVersion::latest()).await)
    };
    let mut builder = builder.retry_config(retries).timeout_config(timeouts);
    if let Some(region) = &options.region {
        builder = builder.region(Region::new(region.clone()));
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.endpoint_url(endpoint);
    }
    Client::from_conf(builder.build())
}

/// The [`Error`] of a failed request that the caller does not handle. DynamoDB's error code decides its kind.
pub(super) fn failed<E, R>(operation: &'static str, error: SdkError<E, R>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    let code = error.code().unwrap_or_default();
    if code == "ResourceNotFoundException" {
        return Error::NotFound { what: "table for the map: create it first".into() };
    }
    let is_throttled = THROTTLING_CODES.contains(&code);
    let message = match code {
        "" => causes(&error),
        code => format!("{code}: {}", error.message().unwrap_or_default()),
    };
    let reason: Cause = Arc::new(Failed { message, source: Box::new(error) });
    match is_throttled {
        true => Error::Throttled { operation, reason },
        false => Error::Unavailable { operation, reason },
    }
}

/// Error codes of DynamoDB and of AWS in general for too many requests.
const THROTTLING_CODES: [&str; 6] = [
    "ItemCollectionSizeLimitExceededException",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
];

/// A failed request, with DynamoDB's code and message where it gave them.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Failed {
    message: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// An error and all its sources as text.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

//! Requests to DynamoDB for threads: sent on a small runtime of our own, waited for on a plain channel.

use super::DynamoOptions;
use crate::Error;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::ConsumedCapacity;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// What was asked of DynamoDB so far, as it counts itself.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// Requests that were answered.
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
            .map_err(|error| Error::Unavailable { operation: "open the map", reason: error.to_string() })?;
        let client = runtime.block_on(connect(options));
        Ok(Self { client, runtime: Some(runtime), usage: Mutex::default() })
    }

    pub fn usage(&self) -> Usage {
        *self.usage.lock()
    }

    /// Notes what a request took.
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

    /// Waits for a request. It ends by itself: attempts and their times are bounded.
    pub fn wait<T: Send + 'static>(
        &self,
        operation: &'static str,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Error> {
        let gone = || Error::Unavailable { operation, reason: "the process is going down".into() };
        let runtime = self.runtime.as_ref().ok_or_else(gone)?;
        let (sender, answer) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            // Nobody waits any more when the caller's thread is gone.
            let _ = sender.send(request.await);
        });
        answer.recv().map_err(|_| gone())
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // Never blocks, so that it may be dropped inside another runtime.
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

/// An error of a request that is none of ours.
pub(super) fn failed<E, R>(operation: &'static str, error: SdkError<E, R>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug + 'static,
{
    let (code, message) = (error.code().unwrap_or_default(), error.message().unwrap_or_default());
    let reason = match code {
        "" => causes(&error),
        code => format!("{code}: {message}"),
    };
    let throttled =
        code.contains("Throttl") || code.contains("ThroughputExceeded") || code.contains("LimitExceeded");
    if throttled {
        return Error::Throttled { operation, reason };
    }
    if code == "ResourceNotFoundException" {
        return Error::NotFound { what: "table for the map: it has to be made first".into() };
    }
    Error::Unavailable { operation, reason }
}

/// An error with all that caused it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

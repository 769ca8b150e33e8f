//! Settings of the map in DynamoDB.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Settings of the map in DynamoDB.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DynamoOptions {
    /// Prefix of the table's name; `map` follows.
    pub table_prefix: String,
    /// An endpoint instead of the region's: `http://127.0.0.1:8000`.
    pub endpoint: Option<String>,
    /// A region instead of the environment's.
    pub region: Option<String>,
    /// Whether the endpoint is DynamoDB Local, which accepts any credentials, so none are looked for.
    pub local: bool,
    /// Whether to look for credentials only in environment variables, where a Lambda function has them. Setting up the
    /// other sources takes milliseconds of a cold start.
    pub from_environment: bool,
    /// How long one attempt of a request may take.
    pub attempt_timeout: Duration,
    /// Number of attempts of a request.
    pub attempts: u32,
    /// How long to retry a change while others change the map.
    pub change_timeout: Duration,
}

impl Default for DynamoOptions {
    fn default() -> Self {
        Self {
            table_prefix: "tidegraph-".into(),
            endpoint: None,
            region: None,
            local: false,
            from_environment: false,
            attempt_timeout: Duration::from_secs(1),
            attempts: 3,
            change_timeout: Duration::from_secs(10),
        }
    }
}

impl DynamoOptions {
    /// Settings for DynamoDB Local.
    #[must_use]
    pub fn local(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: Some(endpoint.into()),
            region: Some("us-east-1".into()),
            local: true,
            ..Self::default()
        }
    }

    /// Name of the table.
    #[must_use]
    pub fn table(&self) -> String {
        format!("{}map", self.table_prefix)
    }

    pub(super) fn attempt(&self) -> Duration {
        self.attempt_timeout.max(Duration::from_millis(1))
    }
}

//! Where the table is and how patiently it is asked.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Settings of the map in DynamoDB.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DynamoOptions {
    /// What the table's name begins with; `map` follows.
    pub table_prefix: String,
    /// Another endpoint than the region's: `http://127.0.0.1:8000`.
    pub endpoint: Option<String>,
    /// Another region than the environment's.
    pub region: Option<String>,
    /// The endpoint is DynamoDB Local, which takes any credentials: none are looked for.
    pub local: bool,
    /// Credentials stand in the environment, as a Lambda function's do, and are looked for nowhere else: setting up all the other
    /// places takes milliseconds of a cold start.
    pub from_environment: bool,
    /// How long one attempt at a request may take.
    pub attempt_ms: u64,
    /// How often a request is tried that failed in passing.
    pub attempts: u32,
    /// How long a change is tried again while others change the map.
    pub patience_ms: u64,
}

impl Default for DynamoOptions {
    fn default() -> Self {
        Self {
            table_prefix: "tidegraph-".into(),
            endpoint: None,
            region: None,
            local: false,
            from_environment: false,
            attempt_ms: 1000,
            attempts: 3,
            patience_ms: 10_000,
        }
    }
}

impl DynamoOptions {
    /// For DynamoDB Local.
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
        Duration::from_millis(self.attempt_ms.max(1))
    }
}

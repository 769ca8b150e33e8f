//! Creates the table, for one machine and for tests. A deployment creates it in its template.

use super::client::failed;
use super::{BY_EPOCH, DynamoMap, items, unbuilt};
use crate::Error;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, LocalSecondaryIndex, Projection,
    ProjectionType, ScalarAttributeType, TableStatus,
};
use std::time::Duration;

/// How long a new table may take.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);

impl DynamoMap {
    /// Creates the table, billed by requests, and waits until it can be used. Does nothing if it exists.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::Throttled`] if DynamoDB refuses, or if the table is not ready in a minute.
    pub fn create_tables(&self) -> Result<(), Error> {
        let operation = "make the table";
        let bad = |error| unbuilt(operation, error);
        let attribute = |name: &str, kind| {
            AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build()
        };
        let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
        let index = LocalSecondaryIndex::builder()
            .index_name(BY_EPOCH)
            .key_schema(key(items::GRAPH, KeyType::Hash).map_err(bad)?)
            .key_schema(key(items::CHANGED_AT, KeyType::Range).map_err(bad)?)
            .projection(Projection::builder().projection_type(ProjectionType::All).build())
            .build()
            .map_err(bad)?;
        let request = self
            .client()
            .create_table()
            .table_name(&self.table)
            .billing_mode(BillingMode::PayPerRequest)
            .attribute_definitions(attribute(items::GRAPH, ScalarAttributeType::S).map_err(bad)?)
            .attribute_definitions(attribute(items::ITEM, ScalarAttributeType::S).map_err(bad)?)
            .attribute_definitions(attribute(items::CHANGED_AT, ScalarAttributeType::N).map_err(bad)?)
            .key_schema(key(items::GRAPH, KeyType::Hash).map_err(bad)?)
            .key_schema(key(items::ITEM, KeyType::Range).map_err(bad)?)
            .local_secondary_indexes(index);
        match self.requests.wait(operation, request.send())? {
            Ok(_) => {}
            Err(error) => match error.as_service_error() {
                Some(CreateTableError::ResourceInUseException(_)) => {}
                _ => return Err(failed(operation, error)),
            },
        }
        let end = self.clock.now() + PATIENCE;
        loop {
            let request = self.client().describe_table().table_name(&self.table);
            let answer = self.requests.wait(operation, request.send())?.map_err(|e| failed(operation, e))?;
            if answer.table().and_then(|table| table.table_status()) == Some(&TableStatus::Active) {
                return Ok(());
            }
            if self.clock.now() > end {
                let reason = format!("it is not ready after {} s", PATIENCE.as_secs());
                return Err(Error::unavailable(operation, reason));
            }
            self.clock.sleep(LOOK);
        }
    }
}

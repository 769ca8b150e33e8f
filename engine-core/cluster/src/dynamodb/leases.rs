//! Leases, and conditional writes of single items.
//!
//! The client may repeat a write whose answer was lost, and the second write then finds the item of the first.
//! So if a condition fails, the item is compared: an item that already has the wanted content is not a conflict.

use super::client::failed;
use super::items::{self, Attributes, Read, number};
use super::{Client, DynamoMap};
use crate::memory::{describe, is_held};
use crate::{Claim, Error, Lease};
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure,
};

impl DynamoMap {
    /// Writes an item if a condition holds; returns the stored item if it does not.
    pub(super) fn put(
        &self,
        operation: &'static str,
        item: Attributes,
        condition: &str,
        names: &[(&str, &str)],
        values: &[(&str, AttributeValue)],
    ) -> Result<Option<Attributes>, Error> {
        let mut request = self
            .client()
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression(condition)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        for (name, attribute) in names {
            request = request.expression_attribute_names(*name, *attribute);
        }
        for (name, value) in values {
            request = request.expression_attribute_values(*name, value.clone());
        }
        use aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException;
        match self.requests.wait(operation, request.send())? {
            Ok(answer) => {
                self.requests.count(answer.consumed_capacity(), true);
                Ok(None)
            }
            Err(error) => match error.as_service_error() {
                Some(ConditionalCheckFailedException(refused)) => {
                    Ok(Some(refused.item().cloned().unwrap_or_default()))
                }
                _ => Err(failed(operation, error)),
            },
        }
    }

    fn decode(graph: &str, attributes: Option<&Attributes>) -> Result<Option<Lease>, Error> {
        let found = attributes.filter(|attributes| !attributes.is_empty());
        found.map(|found| Read::new(graph, found.clone())?.value(graph)).transpose()
    }

    pub(super) fn read_lease(&self, graph: &str, name: &str) -> Result<Option<Lease>, Error> {
        self.graph(graph)?;
        let read = self.get("read a lease", graph, &items::lease_key(name))?;
        read.map(|read| read.value(graph)).transpose()
    }

    pub(super) fn write_lease(
        &self,
        graph: &str,
        name: &str,
        seen: Option<&Lease>,
        claim: &Claim,
    ) -> Result<Lease, Error> {
        self.graph(graph)?;
        let next = Lease::next(seen, claim);
        let item = items::item(graph, &items::lease_key(name), None, &next)?;
        let names = [("#h", "holder"), ("#e", "epoch"), ("#c", "counter")];
        let refused = match seen {
            None => {
                let key = [("#i", items::ITEM)];
                self.put("take a lease", item, "attribute_not_exists(#i)", &key, &[])?
            }
            Some(seen) => {
                let values = [
                    (":h", AttributeValue::S(seen.holder.clone())),
                    (":e", number(seen.epoch.0)),
                    (":c", number(seen.counter)),
                ];
                self.put("take a lease", item, "#h = :h AND #e = :e AND #c = :c", &names, &values)?
            }
        };
        let Some(found) = refused else { return Ok(next) };
        let found = Self::decode(graph, Some(&found))?;
        // No other process has this name, so an earlier attempt of this call wrote it.
        match found.as_ref() == Some(&next) {
            true => Ok(next),
            false => Err(conflict(name, found.as_ref())),
        }
    }

    /// Builds an update of a lease, on condition that it is still held.
    fn update(&self, graph: &str, name: &str, lease: &Lease) -> UpdateItemFluentBuilder {
        let client: Client = self.client();
        client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(items::key(graph, &items::lease_key(name))))
            .condition_expression("#h = :h AND #e = :e")
            .expression_attribute_names("#h", "holder")
            .expression_attribute_names("#e", "epoch")
            .expression_attribute_values(":h", AttributeValue::S(lease.holder.clone()))
            .expression_attribute_values(":e", number(lease.epoch.0))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
    }

    /// Sends an update; returns the new lease, or the stored one if the lease is no longer held.
    fn send_update(
        &self,
        operation: &'static str,
        graph: &str,
        update: UpdateItemFluentBuilder,
    ) -> Result<Result<Lease, Option<Lease>>, Error> {
        match self.requests.wait(operation, update.send())? {
            Ok(answer) => {
                self.requests.count(answer.consumed_capacity(), true);
                let lease = Self::decode(graph, answer.attributes())?;
                lease.map(Ok).ok_or_else(|| Error::unavailable(operation, "the updated item is empty"))
            }
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                    Ok(Err(Self::decode(graph, refused.item())?))
                }
                _ => Err(failed(operation, error)),
            },
        }
    }

    pub(super) fn raise_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<Lease, Error> {
        let update = self
            .update(graph, name, lease)
            .update_expression("ADD #c :one")
            .expression_attribute_names("#c", "counter")
            .expression_attribute_values(":one", number(1));
        self.send_update("renew a lease", graph, update)?.map_err(|found| conflict(name, found.as_ref()))
    }

    pub(super) fn free_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<(), Error> {
        let update = self
            .update(graph, name, lease)
            .update_expression("SET #h = :none, #p = :none")
            .expression_attribute_names("#p", "endpoint")
            .expression_attribute_values(":none", AttributeValue::S(String::new()));
        match self.send_update("give a lease back", graph, update)? {
            Ok(_) => Ok(()),
            // The lease was not taken meanwhile: an earlier attempt of this call gave it back.
            Err(Some(found)) if found.is_free() && found.epoch == lease.epoch => Ok(()),
            Err(found) => {
                debug_assert!(!found.as_ref().is_some_and(|found| is_held(found, lease)));
                Err(conflict(name, found.as_ref()))
            }
        }
    }
}

fn conflict(name: &str, found: Option<&Lease>) -> Error {
    Error::Conflict { item: format!("lease {name}"), found: describe(found) }
}

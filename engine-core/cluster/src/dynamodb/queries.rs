//! Reads of single items, and of the items of a graph in the order of a key.

use super::client::failed;
use super::items::{self, Attributes, Read, number};
use super::{BY_EPOCH, DynamoMap};
use crate::Error;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use tidegraph_types::Epoch;

/// Which items of a graph are read, and how.
#[derive(Clone)]
pub(super) struct Selection<'a> {
    operation: &'static str,
    graph: &'a str,
    condition: &'static str,
    /// Attribute by which the condition selects, and by which the items are sorted.
    key: &'static str,
    /// What the key of an item is compared with.
    value: AttributeValue,
    index: Option<&'static str>,
    consistent: bool,
    forward: bool,
}

impl<'a> Selection<'a> {
    /// The items whose names begin with `prefix`.
    fn named(operation: &'static str, graph: &'a str, prefix: &str) -> Self {
        Self {
            operation,
            graph,
            condition: "#g = :g AND begins_with(#k, :k)",
            key: items::ITEM,
            value: AttributeValue::S(prefix.into()),
            index: None,
            consistent: true,
            forward: true,
        }
    }

    /// All items of a graph.
    pub fn all(operation: &'static str, graph: &'a str) -> Self {
        // Every key comes after a space. DynamoDB takes no empty text as the beginning of a key.
        Self { condition: "#g = :g AND #k > :k", ..Self::named(operation, graph, " ") }
    }

    /// The items of a map that were changed at an epoch or after it, the oldest change first. The graph's own item is among
    /// them if the map was at this epoch.
    pub fn changed_since(graph: &'a str, epoch: Epoch, consistent: bool) -> Self {
        Self {
            operation: "read the map",
            graph,
            condition: "#g = :g AND #k >= :k",
            key: items::CHANGED_AT,
            value: number(epoch.0),
            index: Some(BY_EPOCH),
            consistent,
            forward: true,
        }
    }

    /// The same items, the newest change first.
    pub fn newest_first(self) -> Self {
        Self { forward: false, ..self }
    }
}

impl DynamoMap {
    /// Reads an item as it is in the table; after all answered writes if `consistent`.
    pub(super) fn get_attributes(
        &self,
        operation: &'static str,
        graph: &str,
        key: &str,
        consistent: bool,
    ) -> Result<Option<Attributes>, Error> {
        let request = self
            .client()
            .get_item()
            .table_name(&self.table)
            .set_key(Some(items::key(graph, key)))
            .consistent_read(consistent)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = self.requests.wait(operation, request.send())?.map_err(|e| failed(operation, e))?;
        self.requests.count(answer.consumed_capacity(), false);
        Ok(answer.item)
    }

    /// Reads an item, after all answered writes.
    pub(super) fn get(&self, operation: &'static str, graph: &str, key: &str) -> Result<Option<Read>, Error> {
        let found = self.get_attributes(operation, graph, key, true)?;
        found.map(|item| Read::new(graph, item)).transpose()
    }

    /// Reads the items of a graph whose keys begin with `prefix`.
    pub(super) fn query(
        &self,
        operation: &'static str,
        graph: &str,
        prefix: &str,
    ) -> Result<Vec<Read>, Error> {
        self.pages(&Selection::named(operation, graph, prefix), None)
    }

    /// Reads items, those after `from` if it is given.
    pub(super) fn pages(
        &self,
        selection: &Selection<'_>,
        mut from: Option<Attributes>,
    ) -> Result<Vec<Read>, Error> {
        let mut found = Vec::new();
        loop {
            let (page, next) = self.page(selection, None, from)?;
            found.extend(page);
            from = next;
            if from.is_none() {
                return Ok(found);
            }
        }
    }

    /// Reads the first items after `from`, at most `limit` of them. Also returns from where to go on, if there may be more.
    pub(super) fn page(
        &self,
        selection: &Selection<'_>,
        limit: Option<i32>,
        from: Option<Attributes>,
    ) -> Result<(Vec<Read>, Option<Attributes>), Error> {
        let operation = selection.operation;
        let request = self
            .client()
            .query()
            .table_name(&self.table)
            .set_index_name(selection.index.map(str::to_owned))
            .key_condition_expression(selection.condition)
            .expression_attribute_names("#g", items::GRAPH)
            .expression_attribute_names("#k", selection.key)
            .expression_attribute_values(":g", AttributeValue::S(selection.graph.into()))
            .expression_attribute_values(":k", selection.value.clone())
            .set_exclusive_start_key(from)
            .set_limit(limit)
            .scan_index_forward(selection.forward)
            .consistent_read(selection.consistent)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let page = self.requests.wait(operation, request.send())?.map_err(|e| failed(operation, e))?;
        self.requests.count(page.consumed_capacity(), false);
        let items = page.items.unwrap_or_default().into_iter();
        let found: Result<Vec<Read>, Error> = items.map(|item| Read::new(selection.graph, item)).collect();
        Ok((found?, page.last_evaluated_key.filter(|key| !key.is_empty())))
    }
}

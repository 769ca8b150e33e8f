//! The items about checkpoints: the newest one of each partition.

use super::client::failed;
use super::items::{self, CheckpointItem, number};
use super::{DynamoMap, may_be_repeated, unbuilt};
use crate::change::no_partition;
use crate::memory::made_again;
use crate::{Checkpoint, Error};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, Put, ReturnConsumedCapacity, TransactWriteItem, Update,
};

/// Why DynamoDB refused a part of a transaction whose condition does not hold.
const UNMET: &str = "ConditionalCheckFailed";

impl DynamoMap {
    /// Notes a checkpoint in one transaction with a look at the graph's item. A node that writes a checkpoint may have missed
    /// that the graph was dropped: the note would be one of the next graph of the name.
    pub(super) fn put_checkpoint(&self, graph: &str, checkpoint: &Checkpoint) -> Result<(), Error> {
        let operation = "note a checkpoint";
        let known = self.graph(graph)?;
        if !known.graph.may_have(checkpoint.partition) {
            return Err(no_partition(&known.graph, checkpoint.partition));
        }
        let key = items::checkpoint_key(checkpoint.partition);
        let item = items::item(graph, &key, None, &CheckpointItem::new(checkpoint))?;
        let note = Put::builder()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(#v) OR #v < :v")
            .expression_attribute_names("#v", "version")
            .expression_attribute_values(":v", number(checkpoint.version.0));
        // An update that changes nothing: a check of a condition alone needs a permission of its own.
        let look = Update::builder()
            .table_name(&self.table)
            .set_key(Some(items::key(graph, items::GRAPH_KEY)))
            .update_expression("SET #c = #c")
            .expression_attribute_names("#c", items::CHANGES)
            .expression_attribute_names("#i", items::INCARNATION)
            .expression_attribute_names("#d", items::DROPPING);
        let look = match &known.incarnation {
            Some(incarnation) => look
                .condition_expression("#i = :i AND attribute_not_exists(#d)")
                .expression_attribute_values(":i", AttributeValue::S(incarnation.as_str().into())),
            None => look.condition_expression(
                "attribute_exists(#c) AND attribute_not_exists(#i) AND attribute_not_exists(#d)",
            ),
        };
        let look = look.build().map_err(|error| unbuilt(operation, error))?;
        let note = note.build().map_err(|error| unbuilt(operation, error))?;
        let (look, note) = (
            TransactWriteItem::builder().update(look).build(),
            TransactWriteItem::builder().put(note).build(),
        );
        let end = self.clock.now() + self.patience;
        for attempt in 0.. {
            let request = self
                .client()
                .transact_write_items()
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .transact_items(look.clone())
                .transact_items(note.clone());
            match self.requests.wait(operation, request.send())? {
                Ok(answer) => {
                    self.requests.count(answer.consumed_capacity(), true);
                    return Ok(());
                }
                Err(error) => match error.as_service_error() {
                    Some(service) if unmet(service, 0) => return Err(made_again(graph)),
                    // A newer checkpoint is stored, which is as good.
                    Some(service) if unmet(service, 1) => return Ok(()),
                    Some(service) if may_be_repeated(service) => {}
                    _ => return Err(failed(operation, error)),
                },
            }
            if self.clock.now() > end {
                break;
            }
            self.back_off(attempt);
        }
        Err(Error::unavailable(operation, "others change the graph's item all the time"))
    }

    pub(super) fn read_checkpoints(&self, graph: &str) -> Result<Vec<Checkpoint>, Error> {
        self.graph(graph)?;
        let reads = self.query("read checkpoints", graph, items::CHECKPOINT)?.into_iter();
        reads
            .map(|read| {
                let key = read.key.clone();
                read.value::<CheckpointItem>(graph)?.into_checkpoint(graph, &key)
            })
            .collect()
    }
}

/// Whether the condition of a part of a transaction did not hold.
fn unmet(error: &TransactWriteItemsError, part: usize) -> bool {
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else { return false };
    let reason = cancelled.cancellation_reasons().get(part);
    reason.and_then(CancellationReason::code) == Some(UNMET)
}

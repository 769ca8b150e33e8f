//! Reading a map of which this process knows nothing.

use super::super::items::Attributes;
use super::super::queries::Selection;
use super::super::{DynamoMap, put_together};
use super::{FIRST_PAGE, Stored, items};
use crate::{Error, PartitionMap};
use aws_sdk_dynamodb::types::AttributeValue;
use tidegraph_types::Epoch;

impl DynamoMap {
    /// One attempt to read the whole map, which may not add up. Returns `None` if there is no such graph, or, without
    /// strong consistency, if the snapshot and the items do not fit.
    pub(in super::super) fn read_unknown(
        &self,
        graph: &str,
        consistent: bool,
    ) -> Result<Option<PartitionMap>, Error> {
        let all = Selection::changed_since(graph, Epoch(0), consistent).newest_first();
        let (mut reads, next) = self.page(&all, Some(FIRST_PAGE as i32), None)?;
        let Some(next) = next else { return put_together(graph, reads, None) };
        if !reads.iter().any(|read| read.key == items::GRAPH_KEY) {
            reads.extend(self.pages(&all, Some(next))?);
            return put_together(graph, reads, None);
        }
        let Some(mut newest) = put_together(graph, reads, None)? else { return Ok(None) };
        let mut next = Some(next);
        if let Some(mut map) = self.read_snapshot(graph, consistent)? {
            next = self.read_back_to(map.epoch(), &all, next, &mut newest)?;
            if next.is_none() {
                return Ok(Some(newest));
            }
            if map.leads_to(&newest) {
                map.absorb(newest);
                return Ok(Some(map));
            }
            // It may be newer than the items, whose replica lags.
            if !consistent {
                return Ok(None);
            }
            tracing::warn!(graph, "the snapshot does not fit the items of the map: all of them are read");
        }
        for read in self.pages(&all, next)? {
            read.put_into(&mut newest)?;
        }
        Ok(Some(newest))
    }

    /// Reads more of the newest items, from `next` on, until one of them did not change after `epoch`. So there is at
    /// least one that has to be in the snapshot of that epoch as it is. Returns from where to go on, if there may be more.
    fn read_back_to(
        &self,
        epoch: Epoch,
        all: &Selection<'_>,
        mut next: Option<Attributes>,
        newest: &mut PartitionMap,
    ) -> Result<Option<Attributes>, Error> {
        let mut limit = FIRST_PAGE as i32;
        while let Some(last) = next.take_if(|last| changed_at(last).is_none_or(|at| at > epoch)) {
            let (reads, further) = self.page(all, Some(limit), Some(last))?;
            reads.into_iter().try_for_each(|read| read.put_into(newest))?;
            next = further;
            limit *= 2;
        }
        Ok(next)
    }

    /// Reads the map of the snapshot, if there is one that this release can use.
    fn read_snapshot(&self, graph: &str, consistent: bool) -> Result<Option<PartitionMap>, Error> {
        let operation = "read the snapshot of the map";
        let Some(item) = self.get_attributes(operation, graph, items::SNAPSHOT, consistent)? else {
            return Ok(None);
        };
        match Stored::decode(graph, &item) {
            Ok(stored) => Ok(stored.and_then(|stored| stored.map)),
            Err(error) => {
                tracing::warn!(graph, %error, "all items of the map are read instead of the snapshot");
                Ok(None)
            }
        }
    }
}

/// The epoch of the last change of the item at which a page ends.
fn changed_at(last: &Attributes) -> Option<Epoch> {
    match last.get(items::CHANGED_AT) {
        Some(AttributeValue::N(text)) => text.parse().ok().map(Epoch),
        _ => None,
    }
}

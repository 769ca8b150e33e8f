//! The items about releases: one for each node, and one for the last upgrade.

use super::client::failed;
use super::items::{self, Read, number};
use super::{DynamoMap, Own, decode_graph, may_be_repeated, unbuilt};
use crate::map::Mark;
use crate::memory::{describe_upgrade, made_again};
use crate::upgrade::check_begin;
use crate::{Error, NodeId, NodeRelease, NodeReleases, Upgrade};
use aws_sdk_dynamodb::types::{Put, ReturnConsumedCapacity, TransactWriteItem};
use tidegraph_types::Epoch;

impl DynamoMap {
    pub(super) fn put_release(&self, graph: &str, node: &NodeId, release: &NodeRelease) -> Result<(), Error> {
        self.graph(graph)?;
        let item = items::item(graph, &format!("{}{node}", items::RELEASE), None, release)?;
        let (names, values) = ([("#n", "generation")], [(":n", number(release.generation))]);
        let condition = "attribute_not_exists(#n) OR #n <= :n";
        match self.put("note a release", item, condition, &names, &values)? {
            None => Ok(()),
            Some(found) => {
                let found = Read::new(graph, found)?.value::<NodeRelease>(graph)?.generation;
                let item = format!("release of node {node}");
                Err(Error::Conflict { item, found: format!("generation {found}") })
            }
        }
    }

    pub(super) fn read_releases(&self, graph: &str) -> Result<NodeReleases, Error> {
        self.graph(graph)?;
        let reads = self.query("read releases", graph, items::RELEASE)?.into_iter();
        reads
            .map(|read| {
                let id = NodeId::new(read.key.strip_prefix(items::RELEASE).unwrap_or_default())
                    .map_err(|error| items::damaged(graph, &read.key, error))?;
                Ok((id, read.value(graph)?))
            })
            .collect()
    }

    pub(super) fn read_upgrade(&self, graph: &str) -> Result<Option<Upgrade>, Error> {
        self.graph(graph)?;
        let read = self.get("read the upgrade", graph, items::UPGRADE)?;
        read.map(|read| read.value(graph)).transpose()
    }

    pub(super) fn put_upgrade(
        &self,
        graph: &str,
        seen: Option<&Upgrade>,
        next: &Upgrade,
    ) -> Result<(), Error> {
        self.graph(graph)?;
        if next.begins(seen) {
            return self.begin_upgrade(graph, seen, next);
        }
        let item = items::item(graph, items::UPGRADE, None, next)?;
        let names = [("#s", items::SERIAL)];
        let refused = match seen {
            None => self.put("write the upgrade", item, "attribute_not_exists(#s)", &names, &[])?,
            Some(seen) => {
                let values = [(":s", number(seen.serial))];
                self.put("write the upgrade", item, "#s = :s", &names, &values)?
            }
        };
        let Some(found) = refused else { return Ok(()) };
        let found = match found.is_empty() {
            true => None,
            false => Some(Read::new(graph, found)?.value::<Upgrade>(graph)?),
        };
        written_before(found.as_ref(), next)
    }

    /// Writes an upgrade in one transaction with the next epoch of the map, on condition that the map is still the one
    /// without a split that was read. A split begins at the epoch at which no upgrade was seen, so only one of them begins.
    fn begin_upgrade(&self, graph: &str, seen: Option<&Upgrade>, next: &Upgrade) -> Result<(), Error> {
        let operation = "begin the upgrade";
        let item = items::item(graph, items::UPGRADE, None, next)?;
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(item))
            .expression_attribute_names("#s", items::SERIAL);
        let put = match seen {
            None => put.condition_expression("attribute_not_exists(#s)"),
            Some(seen) => {
                put.condition_expression("#s = :s").expression_attribute_values(":s", number(seen.serial))
            }
        };
        let put = put.build().map_err(|error| unbuilt(operation, error))?;
        let end = self.clock.now() + self.patience;
        for attempt in 0.. {
            let found = self.read_upgrade(graph)?;
            if found.as_ref() != seen {
                return written_before(found.as_ref(), next);
            }
            let Some(own) = self.get(operation, graph, items::GRAPH_KEY)? else {
                return Err(made_again(graph));
            };
            let Own { graph: properties, incarnation, mark } = decode_graph(graph, own)?;
            check_begin(next.release, &properties)?;
            let epoch = Mark { changed_at: Epoch(mark.changed_at.0 + 1), ..mark };
            let own = Put::builder()
                .table_name(&self.table)
                .set_item(Some(items::graph_item(&properties, incarnation.as_ref(), epoch)?))
                .condition_expression("#e = :e")
                .expression_attribute_names("#e", items::CHANGED_AT)
                .expression_attribute_values(":e", number(mark.changed_at.0));
            let own = own.build().map_err(|error| unbuilt(operation, error))?;
            let request = self
                .client()
                .transact_write_items()
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .transact_items(TransactWriteItem::builder().put(own).build())
                .transact_items(TransactWriteItem::builder().put(put.clone()).build());
            match self.requests.wait(operation, request.send())? {
                Ok(answer) => {
                    self.requests.count(answer.consumed_capacity(), true);
                    return Ok(());
                }
                Err(error) if error.as_service_error().is_some_and(may_be_repeated) => {}
                Err(error) => return Err(failed(operation, error)),
            }
            if self.clock.now() > end {
                break;
            }
            self.back_off(attempt);
        }
        Err(Error::unavailable(operation, "others change the map all the time"))
    }
}

/// Returns an error if another upgrade was found than the one that was to be written. An earlier attempt of the call may
/// have written it, and its answer was lost.
fn written_before(found: Option<&Upgrade>, next: &Upgrade) -> Result<(), Error> {
    if found == Some(next) {
        return Ok(());
    }
    let found = found.map_or("there is none any more".into(), describe_upgrade);
    Err(Error::Conflict { item: "the upgrade".into(), found })
}

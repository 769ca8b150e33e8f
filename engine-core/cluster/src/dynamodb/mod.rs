//! The map in DynamoDB: one table for all graphs of a deployment, with an item for each node, partition and lease.
//!
//! Flow of a load: query the index, which is sorted by the epoch of the last change, from the
//! known epoch on. All other items are unchanged. The numbers of changes show whether all
//! items belong to one epoch ([`crate::PartitionMap`], MAP-1). So cheap reads from lagging
//! replicas are good enough; if the numbers do not add up, the load reads again, consistently. The graph's own item is
//! always among the items that are read. It has the graph's incarnation, a text that is drawn when the graph is made: a
//! process that knows a graph learns by it that the graph was dropped and another one was made under its name. A process that
//! knows no map begins with the snapshot of a large one (`snapshot`).
//!
//! Flow of a change: one serializable read of the graph's item and the items that the
//! change touches, then one transaction that writes the next epoch on condition that the
//! map is still at the epoch that was read. If it is not, the change starts again.
//!
//! What must never happen: a write without a condition on what was read; a request
//! without a limit on its attempts, their duration and the time of its retries.

mod checkpoints;
mod client;
mod drops;
mod items;
mod leases;
mod options;
mod queries;
mod snapshot;
mod tables;
#[cfg(test)]
mod tests;
mod upgrades;

use crate::change::{Scope, Touched};
use crate::map::Mark;
use crate::memory::made_again;
use crate::watch::jitter;
use crate::{
    Change, Checkpoint, Claim, Error, Graph, Heartbeat, Incarnation, Lease, MapStore, NodeId, NodeRelease,
    NodeReleases, PartitionMap, Upgrade,
};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    CancellationReason, Get, Put, ReturnConsumedCapacity, TransactGetItem, TransactWriteItem,
};
pub use client::Usage;
use client::{Requests, failed};
use items::{PartitionItem, Read, number};
pub use options::DynamoOptions;
use parking_lot::Mutex;
use queries::Selection;
use snapshot::Kept;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{Clock, Random};
use tidegraph_types::Epoch;

/// Index of the items of a map by the epoch of their last change.
const BY_EPOCH: &str = "by-epoch";

/// Time between the first two attempts. Each is drawn around it, and they grow up to ten times it.
const BACK_OFF: Duration = Duration::from_millis(20);

/// Attempts to read a map until it adds up.
const LOADS: u64 = 12;

/// From this attempt on, the whole map is read and not only what changed.
const READ_ALL: u64 = 4;

/// Attempts of a process that knows no map to use the snapshot. Afterwards it reads all items.
const WITH_SNAPSHOT: u64 = 2;

/// The map in a table of DynamoDB.
pub struct DynamoMap {
    requests: Requests,
    table: String,
    patience: Duration,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// Properties of the graphs as they were first read: what a split changes may be outdated.
    graphs: Mutex<BTreeMap<String, Arc<Own>>>,
    /// Snapshots that this process refreshes.
    snapshots: Mutex<BTreeMap<String, Kept>>,
}

impl std::fmt::Debug for DynamoMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DynamoMap").field("table", &self.table).finish_non_exhaustive()
    }
}

impl DynamoMap {
    /// Finds credentials and region. Sends no request yet.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the runtime of the client cannot be started.
    pub fn open(
        options: &DynamoOptions,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, Error> {
        Ok(Self {
            requests: Requests::new(options)?,
            table: options.table(),
            patience: options.change_timeout,
            clock,
            random,
            graphs: Mutex::default(),
            snapshots: Mutex::default(),
        })
    }

    /// Requests to DynamoDB so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.requests.usage()
    }

    fn client(&self) -> Client {
        self.requests.client.clone()
    }

    fn back_off(&self, attempt: u64) {
        self.clock.sleep(jitter(&*self.random, BACK_OFF * (attempt + 1).min(10) as u32));
    }

    /// The item of a graph as this process first read it.
    fn graph(&self, name: &str) -> Result<Arc<Own>, Error> {
        if let Some(graph) = self.graphs.lock().get(name) {
            return Ok(graph.clone());
        }
        let Some(read) = self.get("read the graph", name, items::GRAPH_KEY)? else {
            return Err(Error::NotFound { what: format!("graph {name}") });
        };
        let graph = Arc::new(decode_graph(name, read)?);
        self.graphs.lock().insert(name.into(), graph.clone());
        Ok(graph)
    }

    /// One attempt to read the whole map, which may not add up.
    fn read_since(
        &self,
        graph: &str,
        known: Option<&PartitionMap>,
        consistent: bool,
    ) -> Result<Option<PartitionMap>, Error> {
        let since = known.map_or(Epoch(0), PartitionMap::epoch);
        put_together(graph, self.pages(&Selection::changed_since(graph, since, consistent), None)?, known)
    }

    /// Reads the whole map, or what changed after `known`; with strong consistency from the first attempt on if
    /// `consistent`.
    fn load_verified(
        &self,
        graph: &str,
        known: Option<&Arc<PartitionMap>>,
        consistent: bool,
    ) -> Result<Arc<PartitionMap>, Error> {
        let mut reason = String::new();
        let mut epochs = Vec::new();
        for attempt in 0..LOADS {
            if attempt > 0 {
                self.back_off(attempt);
            }
            let base = known.filter(|_| attempt < READ_ALL);
            let consistent = consistent || attempt > 0;
            let read = match known {
                None if attempt < WITH_SNAPSHOT => self.read_unknown(graph, consistent)?,
                _ => self.read_since(graph, base.map(|known| &**known), consistent)?,
            };
            let is_the_known = |map: &PartitionMap| known.is_none_or(|known| map.is_of_graph_of(known));
            let Some(map) = read.filter(is_the_known) else {
                // Otherwise a replica may lag.
                if consistent {
                    return Err(match known {
                        Some(_) => made_again(graph),
                        None => Error::NotFound { what: format!("graph {graph}") },
                    });
                }
                continue;
            };
            match map.is_torn() {
                None => {
                    check_replicas(&map)?;
                    return Ok(match known {
                        Some(known) if **known == map => known.clone(),
                        _ => Arc::new(map),
                    });
                }
                Some(torn) => reason = torn,
            }
            epochs.push(map.epoch());
        }
        // No writer changes it, and it does not add up.
        if epochs.first() == epochs.last() {
            return Err(items::damaged(graph, items::GRAPH_KEY, reason));
        }
        Err(Error::unavailable("read the map", format!("others change it all the time: {reason}")))
    }

    /// Reads the graph's item and the items that a change touches in one transaction.
    fn read_scope(&self, graph: &str, touched: &Touched) -> Result<Option<(Mark, PartitionMap)>, Error> {
        let operation = "change the map";
        let keys = std::iter::once(items::GRAPH_KEY.to_owned())
            .chain(touched.nodes.iter().map(items::node_key))
            .chain(touched.partitions.iter().map(|partition| items::partition_key(*partition)));
        let mut request =
            self.client().transact_get_items().return_consumed_capacity(ReturnConsumedCapacity::Total);
        for key in keys {
            let get = Get::builder().table_name(&self.table).set_key(Some(items::key(graph, &key)));
            let get = get.build().map_err(|error| unbuilt(operation, error))?;
            request = request.transact_items(TransactGetItem::builder().get(get).build());
        }
        let answer = match self.requests.wait(operation, request.send())? {
            Ok(answer) => answer,
            // Another writer is changing these items.
            Err(error) if error.as_service_error().is_some_and(|e| e.is_transaction_canceled_exception()) => {
                return Ok(None);
            }
            Err(error) => return Err(failed(operation, error)),
        };
        self.requests.count(answer.consumed_capacity(), false);
        let mut reads = answer.responses.unwrap_or_default().into_iter().map(|response| response.item);
        let Some(own) = reads.next().flatten() else {
            return Err(Error::NotFound { what: format!("graph {graph}") });
        };
        let own = decode_graph(graph, Read::new(graph, own)?)?;
        let (mark, mut part) = (own.mark, own.into_map());
        for item in reads.flatten() {
            Read::new(graph, item)?.put_into(&mut part)?;
        }
        Ok(Some((mark, part)))
    }

    /// Writes the changed items and the next epoch. Returns false if the map is no longer at the epoch that was read.
    fn write_scope(
        &self,
        mark: Mark,
        part: &PartitionMap,
        before: &Scope,
        after: &Scope,
    ) -> Result<bool, Error> {
        let operation = "change the map";
        let graph = after.graph.name.as_str();
        let epoch = Epoch(mark.changed_at.0 + 1);
        let mut written = Vec::new();
        for (id, node) in &after.nodes {
            if let Some(node) = node.as_ref().filter(|node| before.nodes[id].as_ref() != Some(*node)) {
                let mark = part.node_mark(id).next(epoch);
                written.push(items::item(graph, &items::node_key(id), Some(mark), node)?);
            }
        }
        for (partition, replicas) in &after.partitions {
            if before.partitions[partition] != *replicas {
                let mark = part.partition_mark(*partition).next(epoch);
                let (key, value) = (items::partition_key(*partition), PartitionItem::new(replicas));
                written.push(items::item(graph, &key, Some(mark), &value)?);
            }
        }
        let changes = mark.changes + written.len() as u64;
        let own = items::graph_item(&after.graph, part.incarnation(), Mark { changed_at: epoch, changes })?;
        let own = Put::builder()
            .table_name(&self.table)
            .set_item(Some(own))
            .condition_expression("#e = :e")
            .expression_attribute_names("#e", items::CHANGED_AT)
            .expression_attribute_values(":e", number(mark.changed_at.0));
        let puts =
            written.into_iter().map(|item| Put::builder().table_name(&self.table).set_item(Some(item)));
        let mut request =
            self.client().transact_write_items().return_consumed_capacity(ReturnConsumedCapacity::Total);
        for put in std::iter::once(own).chain(puts) {
            let put = put.build().map_err(|error| unbuilt(operation, error))?;
            request = request.transact_items(TransactWriteItem::builder().put(put).build());
        }
        match self.requests.wait(operation, request.send())? {
            Ok(answer) => {
                self.requests.count(answer.consumed_capacity(), true);
                Ok(true)
            }
            Err(error) => match error.as_service_error() {
                Some(service) if may_be_repeated(service) => Ok(false),
                _ => Err(failed(operation, error)),
            },
        }
    }
}

/// Whether a refused transaction is to be made again from what is in the table then: another one committed first, or an
/// earlier attempt of the same one arrived, whose end is not known. DynamoDB Local tells some of these attempts as
/// transactions with another content.
fn may_be_repeated(error: &TransactWriteItemsError) -> bool {
    use TransactWriteItemsError::TransactionCanceledException;
    if error.is_transaction_in_progress_exception() || error.is_idempotent_parameter_mismatch_exception() {
        return true;
    }
    let TransactionCanceledException(cancelled) = error else { return false };
    let reasons = cancelled.cancellation_reasons().iter().filter_map(CancellationReason::code);
    reasons.into_iter().any(|code| matches!(code, "ConditionalCheckFailed" | "TransactionConflict"))
}

fn unbuilt(operation: &'static str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::unavailable(operation, error)
}

/// The graph's own item.
#[derive(Debug)]
struct Own {
    graph: Graph,
    incarnation: Option<Incarnation>,
    mark: Mark,
}

impl Own {
    /// The map without nodes and partitions.
    fn into_map(self) -> PartitionMap {
        let Self { graph, incarnation, mark } = self;
        PartitionMap::new(graph, mark.changed_at, mark.changes).of_incarnation(incarnation)
    }
}

fn decode_graph(name: &str, mut read: Read) -> Result<Own, Error> {
    if read.take_dropping() {
        return Err(drops::is_dropping(name));
    }
    decode_any_graph(name, read)
}

/// Decodes the item of a graph that may be being dropped.
fn decode_any_graph(name: &str, mut read: Read) -> Result<Own, Error> {
    read.take_dropping();
    let (incarnation, mark) = (read.take_incarnation(name)?, read.mark(name)?);
    let graph: Graph = read.value(name)?;
    graph.check().map_err(|error| items::damaged(name, items::GRAPH_KEY, error))?;
    if graph.name != name {
        let reason = format!("it is of graph {}", graph.name);
        return Err(items::damaged(name, items::GRAPH_KEY, reason));
    }
    Ok(Own { graph, incarnation, mark })
}

/// Makes a map of items that were read, and of the rest of a known map. The result may not add up. `None`: the graph's
/// item is missing, or the graph is another one than that of the known map.
fn put_together(
    graph: &str,
    mut reads: Vec<Read>,
    known: Option<&PartitionMap>,
) -> Result<Option<PartitionMap>, Error> {
    let own = reads.iter().position(|read| read.key == items::GRAPH_KEY).map(|at| reads.swap_remove(at));
    let Some(own) = own else { return Ok(None) };
    let mut map = decode_graph(graph, own)?.into_map();
    if let Some(known) = known {
        if !map.is_of_graph_of(known) {
            return Ok(None);
        }
        let (graph, epoch, changes) = (map.graph().clone(), map.epoch(), map.changes());
        map = known.clone();
        map.set_graph(graph);
        map.set_epoch(epoch, changes);
    }
    reads.into_iter().try_for_each(|read| read.put_into(&mut map))?;
    Ok(Some(map))
}

impl MapStore for DynamoMap {
    fn create_graph(&self, graph: &Graph) -> Result<(), Error> {
        graph.check()?;
        let operation = "make the graph";
        let mark = Mark { changed_at: Epoch(1), changes: 0 };
        let incarnation = Incarnation::of(self.random.next_u64());
        let item = items::graph_item(graph, Some(&incarnation), mark)?;
        let condition = "attribute_not_exists(#g)";
        if self.put(operation, item, condition, &[("#g", items::GRAPH)], &[])?.is_none() {
            // This process may know an earlier graph of the name.
            self.graphs.lock().remove(&graph.name);
            return Ok(());
        }
        match self.graph(&graph.name)?.graph.unsplit() == graph.unsplit() {
            true => Ok(()),
            false => Err(Error::Exists { graph: graph.name.clone() }),
        }
    }

    fn load(&self, graph: &str, known: Option<&Arc<PartitionMap>>) -> Result<Arc<PartitionMap>, Error> {
        self.load_verified(graph, known, false)
    }

    fn refresh_snapshot(&self, graph: &str, map: &PartitionMap) -> Result<(), Error> {
        self.refresh(graph, map)
    }

    fn change(&self, graph: &str, expected: Option<Epoch>, changes: &[Change]) -> Result<Epoch, Error> {
        let touched = Touched::by(changes)?;
        let end = self.clock.now() + self.patience;
        for attempt in 0.. {
            if let Some((mark, part)) = self.read_scope(graph, &touched)? {
                let found = mark.changed_at;
                if let Some(expected) = expected.filter(|expected| *expected != found) {
                    return Err(Error::Stale { expected, found });
                }
                let before = touched.of(&part);
                let mut after = before.clone();
                after.apply(changes)?;
                if after == before {
                    return Ok(found);
                }
                if self.write_scope(mark, &part, &before, &after)? {
                    return Ok(Epoch(found.0 + 1));
                }
            }
            if self.clock.now() > end {
                break;
            }
            self.back_off(attempt);
        }
        Err(Error::unavailable("change the map", "others change it all the time"))
    }

    fn heartbeat(&self, graph: &str, node: &NodeId, beat: &Heartbeat) -> Result<(), Error> {
        self.graph(graph)?;
        let key = format!("{}{node}", items::BEAT);
        let item = items::item(graph, &key, None, beat)?;
        let condition = "attribute_not_exists(#n) OR #n <= :n";
        let generation = number(beat.generation);
        match self.put(
            "store a heartbeat",
            item,
            condition,
            &[("#n", "generation")],
            &[(":n", generation)],
        )? {
            None => Ok(()),
            Some(found) => {
                let found =
                    format!("generation {}", Read::new(graph, found)?.value::<Heartbeat>(graph)?.generation);
                Err(Error::Conflict { item: format!("heartbeat of node {node}"), found })
            }
        }
    }

    fn heartbeats(&self, graph: &str) -> Result<BTreeMap<NodeId, Heartbeat>, Error> {
        self.graph(graph)?;
        let reads = self.query("read heartbeats", graph, items::BEAT)?.into_iter();
        reads
            .map(|read| {
                let id = NodeId::new(read.key.strip_prefix(items::BEAT).unwrap_or_default())
                    .map_err(|error| items::damaged(graph, &read.key, error))?;
                Ok((id, read.value(graph)?))
            })
            .collect()
    }

    fn note_release(&self, graph: &str, node: &NodeId, release: &NodeRelease) -> Result<(), Error> {
        self.put_release(graph, node, release)
    }

    fn releases(&self, graph: &str) -> Result<NodeReleases, Error> {
        self.read_releases(graph)
    }

    fn upgrade(&self, graph: &str) -> Result<Option<Upgrade>, Error> {
        self.read_upgrade(graph)
    }

    fn write_upgrade(&self, graph: &str, seen: Option<&Upgrade>, next: &Upgrade) -> Result<(), Error> {
        self.put_upgrade(graph, seen, next)
    }

    fn note_checkpoint(&self, graph: &str, checkpoint: &Checkpoint) -> Result<(), Error> {
        self.put_checkpoint(graph, checkpoint)
    }

    fn checkpoints(&self, graph: &str) -> Result<Vec<Checkpoint>, Error> {
        self.read_checkpoints(graph)
    }

    fn lease(&self, graph: &str, name: &str) -> Result<Option<Lease>, Error> {
        self.read_lease(graph, name)
    }

    fn take_lease(
        &self,
        graph: &str,
        name: &str,
        seen: Option<&Lease>,
        claim: &Claim,
    ) -> Result<Lease, Error> {
        self.write_lease(graph, name, seen, claim)
    }

    fn renew_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<Lease, Error> {
        self.raise_lease(graph, name, lease)
    }

    fn release_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<(), Error> {
        self.free_lease(graph, name, lease)
    }
}

/// Refuses a replica on a node that does not exist, and one of a partition that the graph does not have.
fn check_replicas(map: &PartitionMap) -> Result<(), Error> {
    for (partition, replicas) in map.held() {
        if !map.graph().has(partition) {
            let reason = "the graph has no such partition now";
            return Err(items::damaged(&map.graph().name, &items::partition_key(partition), reason));
        }
        if let Some(replica) = replicas.iter().find(|replica| map.node(&replica.node).is_none()) {
            let reason = format!("there is no node {}", replica.node);
            return Err(items::damaged(&map.graph().name, &items::partition_key(partition), reason));
        }
    }
    Ok(())
}

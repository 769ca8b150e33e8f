//! The whole map at one epoch (MAP-1).
//!
//! Every item has the number of its changes and the epoch of the last one; the graph's item has the sum of these
//! numbers. A map that was assembled from items is whole if no item is newer than the graph's and the numbers add up.
//! So a reader needs no snapshot. It may read item by item, from replicas that lag, or only the changed items: the
//! result adds up, or the reader reads again.

use crate::model::{Graph, Incarnation, Node, NodeId, Replica};
use std::collections::BTreeMap;
use tidegraph_types::{Epoch, Layout, PartitionId};

/// The changes of an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mark {
    /// Epoch of the last change.
    pub changed_at: Epoch,
    /// Number of changes.
    pub changes: u64,
}

impl Mark {
    /// The mark after one more change.
    pub fn next(self, epoch: Epoch) -> Self {
        Self { changed_at: epoch, changes: self.changes + 1 }
    }
}

/// Which nodes hold which partitions of a graph, at one epoch. Immutable: a new epoch is a new map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionMap {
    graph: Graph,
    incarnation: Option<Incarnation>,
    epoch: Epoch,
    /// Sum of the changes of all nodes and partitions.
    changes: u64,
    nodes: BTreeMap<NodeId, (Node, Mark)>,
    /// Each in order of node. Those that the graph no longer has are here without replicas.
    partitions: BTreeMap<PartitionId, (Vec<Replica>, Mark)>,
}

impl PartitionMap {
    /// The map of a new graph, without nodes and replicas.
    pub(crate) fn new(graph: Graph, epoch: Epoch, changes: u64) -> Self {
        Self { graph, incarnation: None, epoch, changes, nodes: BTreeMap::new(), partitions: BTreeMap::new() }
    }

    /// The same map, of this incarnation of the graph.
    pub(crate) fn of_incarnation(self, incarnation: Option<Incarnation>) -> Self {
        Self { incarnation, ..self }
    }

    /// The properties of the graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Tells the graph from others that had its name before. `None` if a release before incarnations made the graph.
    #[must_use]
    pub fn incarnation(&self) -> Option<&Incarnation> {
        self.incarnation.as_ref()
    }

    /// Whether both are maps of one graph, and not of two that had the same name one after the other.
    #[must_use]
    pub fn is_of_graph_of(&self, other: &Self) -> bool {
        self.incarnation == other.incarnation && self.graph.unsplit() == other.graph.unsplit()
    }

    /// Grows with every change of the map.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// All nodes that ever registered, in order of id.
    pub fn nodes(&self) -> impl Iterator<Item = (&NodeId, &Node)> {
        self.nodes.iter().map(|(id, (node, _))| (id, node))
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.nodes.get(id).map(|(node, _)| node)
    }

    /// The replicas of a partition, in order of node; none if the graph has no such partition.
    #[must_use]
    pub fn replicas(&self, partition: PartitionId) -> &[Replica] {
        self.partitions.get(&partition).map_or(&[], |(replicas, _)| replicas)
    }

    /// All partitions that readers ask, with their replicas, in order.
    pub fn partitions(&self) -> impl Iterator<Item = (PartitionId, &[Replica])> {
        self.partitions_of(self.graph.layout())
    }

    /// Some partitions with their replicas, in order.
    pub fn partitions_of(&self, layout: Layout) -> impl Iterator<Item = (PartitionId, &[Replica])> {
        layout.all().map(|partition| (partition, self.replicas(partition)))
    }

    /// All partitions that have a replica, in order: those that readers ask, those into which the graph is being split,
    /// and those before the last split.
    pub fn held(&self) -> impl Iterator<Item = (PartitionId, &[Replica])> {
        let all = self.partitions.iter().map(|(partition, (replicas, _))| (*partition, replicas.as_slice()));
        all.filter(|(_, replicas)| !replicas.is_empty())
    }

    /// The nodes that answer reads of a partition. Those with a leaving replica come last, draining nodes before them.
    #[must_use]
    pub fn serving(&self, partition: PartitionId) -> Vec<(&NodeId, &Node)> {
        let mut found: Vec<_> = self
            .replicas(partition)
            .iter()
            .filter(|replica| replica.state.answers())
            .filter_map(|replica| Some((replica, self.node(&replica.node)?)))
            .filter(|(_, node)| node.answers())
            .map(|(replica, node)| (&replica.node, node, replica.state))
            .collect();
        found.sort_by_key(|(_, node, state)| {
            (*state == crate::ReplicaState::Leaving, node.state == crate::NodeState::Draining)
        });
        found.into_iter().map(|(id, node, _)| (id, node)).collect()
    }

    /// The partitions of which a node has a replica, in any state.
    pub fn held_by<'a>(&'a self, node: &'a NodeId) -> impl Iterator<Item = (PartitionId, &'a Replica)> {
        self.held().filter_map(move |(partition, replicas)| {
            Some((partition, replicas.iter().find(|replica| replica.node == *node)?))
        })
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn set_graph(&mut self, graph: Graph) {
        self.graph = graph;
    }

    pub(crate) fn set_epoch(&mut self, epoch: Epoch, changes: u64) {
        (self.epoch, self.changes) = (epoch, changes);
    }

    pub(crate) fn node_mark(&self, id: &NodeId) -> Mark {
        self.nodes.get(id).map(|(_, mark)| *mark).unwrap_or_default()
    }

    pub(crate) fn partition_mark(&self, partition: PartitionId) -> Mark {
        self.partitions.get(&partition).map(|(_, mark)| *mark).unwrap_or_default()
    }

    /// Adds an item, unless a newer one is here.
    pub(crate) fn put_node(&mut self, id: NodeId, node: Node, mark: Mark) {
        if mark.changes > self.node_mark(&id).changes {
            self.nodes.insert(id, (node, mark));
        }
    }

    /// Adds an item, unless a newer one is here. Returns false if the graph can have no such partition.
    pub(crate) fn put_partition(
        &mut self,
        partition: PartitionId,
        replicas: Vec<Replica>,
        mark: Mark,
    ) -> bool {
        if !self.graph.may_have(partition) {
            return false;
        }
        let slot = self.partitions.entry(partition).or_default();
        if mark.changes > slot.1.changes {
            *slot = (replicas, mark);
        }
        true
    }

    /// Returns the reason why this is not the whole map at its epoch, or `None` if it is
    /// (MAP-1). A map in memory is always whole.
    #[cfg(any(test, feature = "dynamodb", feature = "testing"))]
    pub(crate) fn is_torn(&self) -> Option<String> {
        let marks =
            self.nodes.values().map(|(_, mark)| mark).chain(self.partitions.values().map(|(_, mark)| mark));
        let (mut sum, mut newest) = (0, Epoch(0));
        for mark in marks {
            sum += mark.changes;
            newest = newest.max(mark.changed_at);
        }
        if newest > self.epoch {
            return Some(format!("an item has epoch {newest}, the graph has epoch {}", self.epoch));
        }
        (sum != self.changes).then(|| format!("the items have {sum} changes, the graph has {}", self.changes))
    }
}

/// What snapshots need.
#[cfg(feature = "dynamodb")]
impl PartitionMap {
    /// All nodes with their marks, in order of id.
    pub(crate) fn marked_nodes(&self) -> impl Iterator<Item = (&NodeId, &Node, Mark)> {
        self.nodes.iter().map(|(id, (node, mark))| (id, node, *mark))
    }

    /// All partitions that ever had a replica, with their marks, in order.
    pub(crate) fn marked_partitions(&self) -> impl Iterator<Item = (PartitionId, &[Replica], Mark)> {
        self.partitions.iter().map(|(partition, (replicas, mark))| (*partition, replicas.as_slice(), *mark))
    }

    fn marks(&self) -> impl Iterator<Item = Mark> {
        let nodes = self.nodes.values().map(|(_, mark)| *mark);
        nodes.chain(self.partitions.values().map(|(_, mark)| *mark))
    }

    /// Number of items, with the graph's own.
    pub(crate) fn item_count(&self) -> usize {
        1 + self.nodes.len() + self.partitions.len()
    }

    /// Number of nodes and partitions that changed after `epoch`.
    pub(crate) fn changed_after(&self, epoch: Epoch) -> usize {
        self.marks().filter(|mark| mark.changed_at > epoch).count()
    }

    /// Whether this map can be an earlier state of the map of which `newer` has some items: every item of `newer` that did
    /// not change since is the same one here, and every other one changed more often than here.
    pub(crate) fn leads_to(&self, newer: &Self) -> bool {
        let fits = |mark: Mark, here: Mark, is_same: bool| match mark.changed_at > self.epoch {
            true => mark.changes > here.changes,
            false => mark == here && is_same,
        };
        let graph_fits = match self.epoch.cmp(&newer.epoch) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => self.graph == newer.graph && self.changes == newer.changes,
            std::cmp::Ordering::Greater => false,
        };
        graph_fits
            && self.is_of_graph_of(newer)
            && newer
                .marked_nodes()
                .all(|(id, node, mark)| fits(mark, self.node_mark(id), self.node(id) == Some(node)))
            && newer.marked_partitions().all(|(partition, replicas, mark)| {
                fits(mark, self.partition_mark(partition), self.replicas(partition) == replicas)
            })
    }

    /// Takes the items of `newer` that changed more often than those that are here, its graph and its epoch. For maps that
    /// [lead to](Self::leads_to) it.
    pub(crate) fn absorb(&mut self, newer: Self) {
        newer.nodes.into_iter().for_each(|(id, (node, mark))| self.put_node(id, node, mark));
        for (partition, (replicas, mark)) in newer.partitions {
            // Both graphs may have the same partitions: they are the same graph without its splits.
            self.put_partition(partition, replicas, mark);
        }
        self.set_graph(newer.graph);
        self.set_epoch(newer.epoch, newer.changes);
    }
}

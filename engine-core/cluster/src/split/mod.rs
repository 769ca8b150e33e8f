//! Splits the partitions of a graph while it runs, in steps that the command line calls.
//!
//! Roles: the methods of [`Rebalance`] are the steps; [`SplitRun`] calls them in order, as one run of the command.
//!
//! Flow: [`Rebalance::begin_split`] notes the number of the next partitions in the map →
//! [`Rebalance::advance_split`] places their replicas, as a repair places missing ones; nodes restore each from the
//! checkpoint of the partition from which it comes, and the log → when all replicas serve, one change of the graph's item
//! makes readers ask the next partitions → after a time in which readers notice,
//! [`Rebalance::drop_former_partitions`] takes the partitions before the split from the nodes. Up to the change that
//! makes readers turn, [`Rebalance::abort_split`] takes the next partitions back.
//!
//! What must never happen (MAP-4): readers turn to partitions of which one lacks a replica; nodes hold partitions of three
//! layouts; state between two steps that is not in the map. So any process continues where another was stopped. The lease
//! of rebalancing saves work; safety does not depend on it.

mod run;

pub use run::SplitRun;

use crate::model::Graph;
use crate::planner::{FleetState, Goal};
use crate::rebalance::Rebalance;
use crate::upgrade::{Release, UpgradeState, release_of};
use crate::{Change, Error, MOST_ITEMS, NodeState, PartitionMap};
use serde::Serialize;
use std::sync::Arc;
use tidegraph_types::{Epoch, Layout, PartitionCount};

/// The stage of a split.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitStage {
    /// No split was begun, or it was aborted.
    None,
    /// Nodes restore the next partitions.
    Restoring,
    /// Readers ask the next partitions. Nodes hold those before the split too, for readers that have not noticed.
    Turned,
    /// Nodes hold only the partitions after the split.
    Done,
}

/// How far a split is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SplitProgress {
    /// Its stage.
    pub stage: SplitStage,
    /// Number of replicas that the next partitions should have; after readers have turned, number of those that they
    /// have.
    pub replicas: usize,
    /// Number of these replicas that serve.
    pub serving: usize,
    /// Number of these replicas that no node can take, because there are too few nodes.
    pub short: usize,
    /// Number of replicas of the partitions before the split that nodes still hold.
    pub former: usize,
}

/// Attempts to begin a split while others change the map.
const BEGINS: u32 = 10;

/// The error for a split that cannot be.
fn refused(into: PartitionCount, reason: String) -> Error {
    Error::Refused { change: format!("split into {} partitions", into.get()), reason }
}

/// The error for a split that cannot be taken back any more.
fn not_abortable(graph: &Graph) -> Error {
    let reason = format!("readers ask its {} partitions already", graph.partitions.get());
    Error::Refused { change: "abort the split".into(), reason }
}

/// Counts the replicas of some partitions, and those that serve on nodes that answer.
fn count(map: &PartitionMap, layout: Layout) -> (usize, usize) {
    let serving = layout.all().map(|partition| map.serving(partition).len()).sum();
    (map.partitions_of(layout).map(|(_, replicas)| replicas.len()).sum(), serving)
}

impl Rebalance {
    fn graph_of(&self) -> Result<Arc<PartitionMap>, Error> {
        self.store.load(&self.graph, None)
    }

    /// Returns the properties of the graph.
    ///
    /// # Errors
    /// The same as [`MapStore::load`](crate::MapStore::load).
    pub fn graph(&self) -> Result<Graph, Error> {
        Ok(self.graph_of()?.graph().clone())
    }

    /// Checks that a split into a number of partitions may begin or continue, and returns how far it is.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason: the graph has as many partitions or more, another split is unfinished, a
    /// partition lacks a replica, replicas move, the fleet is being upgraded, or a node runs an earlier release, which
    /// cannot read the map of a graph that was split.
    pub fn check_split(&self, into: PartitionCount) -> Result<SplitProgress, Error> {
        self.checked(into).map(|(_, progress)| progress)
    }

    /// Checks a split, and returns the epoch of the map for which the result holds. An upgrade that begins later raises it.
    fn checked(&self, into: PartitionCount) -> Result<(Epoch, SplitProgress), Error> {
        // Before the look for an upgrade.
        let map = self.graph_of()?;
        let graph = map.graph();
        let stage = match (graph.splits.into, graph.splits.from) {
            (Some(running), _) if running == into => SplitStage::Restoring,
            (_, Some(_)) if graph.partitions == into => SplitStage::Turned,
            (None, None) if graph.partitions == into && graph.splits.created_with.is_some() => {
                SplitStage::Done
            }
            _ => SplitStage::None,
        };
        if stage == SplitStage::None {
            self.check_new_split(&map, into)?;
        }
        Ok((map.epoch(), self.progress(&map, into, stage)?))
    }

    fn progress(
        &self,
        map: &PartitionMap,
        into: PartitionCount,
        stage: SplitStage,
    ) -> Result<SplitProgress, Error> {
        let graph = map.graph();
        let created = graph.created_with();
        let layout = Layout::new(created, into).map_err(|reason| refused(into, reason))?;
        let (mut replicas, serving) = count(map, layout);
        if matches!(stage, SplitStage::None | SplitStage::Restoring) {
            replicas = usize::from(into.get()) * usize::from(graph.replication_factor);
        }
        let former = graph.former_layout().map_or(0, |layout| count(map, layout).0);
        Ok(SplitProgress { stage, replicas, serving, short: 0, former })
    }

    fn check_new_split(&self, map: &PartitionMap, into: PartitionCount) -> Result<(), Error> {
        let graph = map.graph();
        if let Some(running) = graph.splits.into {
            let reason = format!(
                "a split into {0} partitions is unfinished: finish it with `--partitions {0}`, or take it back with \
                 `--abort`",
                running.get()
            );
            return Err(refused(into, reason));
        }
        if graph.splits.from.is_some() {
            let reason = format!(
                "the last split is unfinished: nodes still hold partitions before it; finish it with `--partitions {}`",
                graph.partitions.get()
            );
            return Err(refused(into, reason));
        }
        if into.get() <= graph.partitions.get() {
            let reason = format!("the graph has {}, and their number can only grow", graph.partitions.get());
            return Err(refused(into, reason));
        }
        if let Some(upgrade) =
            self.store.upgrade(&self.graph)?.filter(|upgrade| upgrade.state == UpgradeState::Running)
        {
            return Err(refused(into, format!("the fleet is being upgraded to {}", upgrade.release)));
        }
        let releases = self.store.releases(&self.graph)?;
        for (id, _) in map.nodes().filter(|(_, node)| node.state != NodeState::Gone) {
            let release = release_of(map, &releases, id);
            if release.is_none_or(|release| release.line() < Release::THIS.line()) {
                let found = release.map_or("a release that states none".into(), |found| found.to_string());
                let reason = format!(
                    "node {id} runs {found}: upgrade the fleet and all workers to {} first",
                    Release::THIS
                );
                return Err(refused(into, reason));
            }
        }
        let coverage = self.verify()?;
        if coverage.whole < coverage.partitions {
            let (whole, all) = (coverage.whole, coverage.partitions);
            let reason = format!(
                "{whole} of {all} partitions have all their replicas: run `tidegraph fleet heal` first"
            );
            return Err(refused(into, reason));
        }
        let plan = self.fleet()?.plan(Goal::Repair);
        if !plan.is_empty() || !plan.coming.is_empty() {
            return Err(refused(into, "replicas are being moved: finish that first".into()));
        }
        Ok(())
    }

    /// Begins a split that [`Rebalance::check_split`] allows. Does nothing if it was begun.
    ///
    /// # Errors
    /// Those of [`Rebalance::check_split`]; otherwise as [`MapStore::change`](crate::MapStore::change).
    pub fn begin_split(&self, into: PartitionCount) -> Result<(), Error> {
        let mut attempts = BEGINS;
        loop {
            let (epoch, progress) = self.checked(into)?;
            if progress.stage != SplitStage::None {
                return Ok(());
            }
            attempts -= 1;
            // An upgrade may have begun since the check, or anything else have changed.
            match self.store.change(&self.graph, Some(epoch), &[Change::BeginSplit { into }]) {
                Err(Error::Stale { .. }) if attempts > 0 => {}
                begun => return begun.map(drop),
            }
        }
    }

    /// Makes the next changes of a split that was begun: gives nodes replicas of the next partitions, at most `moves` at
    /// once and `restores_per_node` on one node, and makes readers ask these partitions once all of them have their
    /// replicas.
    ///
    /// # Errors
    /// [`Error::Refused`] if no such split was begun; otherwise as [`MapStore::change`](crate::MapStore::change).
    pub fn advance_split(
        &self,
        into: PartitionCount,
        moves: usize,
        restores_per_node: usize,
    ) -> Result<SplitProgress, Error> {
        let map = self.graph_of()?;
        if map.graph().splits.into != Some(into) {
            let progress = self.check_split(into)?;
            return match progress.stage {
                SplitStage::None => Err(refused(into, "it was aborted".into())),
                _ => Ok(progress),
            };
        }
        let mut progress = self.progress(&map, into, SplitStage::Restoring)?;
        let Some(layout) = map.graph().next_layout() else { return Ok(progress) };
        let beats = self.store.heartbeats(&self.graph)?;
        let plan = FleetState::of_layout(&map, &beats, layout).plan(Goal::Repair);
        progress.short = plan.short;
        if !plan.moves.is_empty() {
            let next: Vec<_> = plan.next(moves, restores_per_node).into_iter().cloned().collect();
            self.advance(&next)?;
            return Ok(progress);
        }
        let is_whole =
            |partition| map.serving(partition).len() >= usize::from(map.graph().replication_factor);
        if !layout.all().all(is_whole) {
            return Ok(progress);
        }
        // MAP-4: at the epoch of the map in which all of them have their replicas.
        match self.store.change(&self.graph, Some(map.epoch()), &[Change::CompleteSplit { into }]) {
            Ok(_) => self.check_split(into),
            // The next call looks again.
            Err(Error::Stale { .. }) => Ok(progress),
            Err(error) => Err(error),
        }
    }

    /// Takes the partitions before the last split from the nodes. Queries that began before readers turned and still ask
    /// them are run again, or fail.
    ///
    /// # Errors
    /// The same as [`MapStore::load`](crate::MapStore::load) and [`MapStore::change`](crate::MapStore::change).
    pub fn drop_former_partitions(&self) -> Result<(), Error> {
        self.drop_all(Graph::former_layout, &Change::EndSplit)
    }

    /// Takes back a split whose partitions readers do not ask yet. Returns whether one ran.
    ///
    /// # Errors
    /// [`Error::Refused`] if readers ask the partitions already, also if another run completed the split meanwhile;
    /// otherwise as [`MapStore::change`](crate::MapStore::change).
    pub fn abort_split(&self) -> Result<bool, Error> {
        let begun = self.abortable()?.splits.into;
        if begun.is_none() {
            return Ok(false);
        }
        self.drop_all(Graph::next_layout, &Change::AbortSplit)?;
        // Another run ended it, if this one did not: it completed it, or took it back.
        let graph = self.abortable()?;
        if begun == Some(graph.partitions) {
            return Err(not_abortable(&graph));
        }
        Ok(true)
    }

    /// Returns the graph, unless its split is complete.
    fn abortable(&self) -> Result<Graph, Error> {
        let graph = self.graph()?;
        match (graph.splits.into, graph.splits.from) {
            (None, Some(_)) => Err(not_abortable(&graph)),
            _ => Ok(graph),
        }
    }

    /// Drops all replicas of some partitions that readers do not ask, and makes a last change when there are none.
    fn drop_all(&self, which: impl Fn(&Graph) -> Option<Layout>, last: &Change) -> Result<(), Error> {
        let mut done: Option<Epoch> = None;
        loop {
            let map = self.graph_of()?;
            let Some(layout) = which(map.graph()) else { return Ok(()) };
            let drops: Vec<Change> = map
                .partitions_of(layout)
                .flat_map(|(partition, replicas)| replicas.iter().map(move |replica| (partition, replica)))
                .map(|(partition, replica)| Change::DropReplica { partition, node: replica.node.clone() })
                .take(MOST_ITEMS)
                .collect();
            let (changes, is_last) = match drops.is_empty() {
                true => (vec![last.clone()], true),
                false => (drops, false),
            };
            match self.store.change(&self.graph, Some(map.epoch()), &changes) {
                Ok(_) if is_last => return Ok(()),
                Ok(_) => {}
                // Somebody else changed the map; if it stays as it was, the change was refused for another reason.
                Err(Error::Stale { .. }) if done != Some(map.epoch()) => done = Some(map.epoch()),
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests;

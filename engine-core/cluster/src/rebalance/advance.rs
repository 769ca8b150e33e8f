//! Moves, a step further.

use super::Rebalance;
use crate::model::{NodeState, Replica, ReplicaState};
use crate::{Change, Error, MOST_ITEMS, Move, NodeId, PartitionMap};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How often drops are decided anew because the map was changed in between.
const ATTEMPTS: usize = 8;

/// How a move stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "stage")]
pub enum Stage {
    /// The new replica was added, or is restored from a checkpoint.
    Restoring,
    /// The new replica replays the log.
    CatchingUp,
    /// The new replica serves. Too few others do for the old one to be dropped: they come up by themselves.
    Waits,
    /// Readers ask the old replica last; it is dropped next.
    Leaving,
    /// There is nothing left to do.
    Done,
    /// It cannot be any more: plan anew.
    Void {
        /// Why.
        reason: String,
    },
}

impl Stage {
    /// Whether the move is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Done | Self::Void { .. })
    }
}

/// A move and how it stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Advanced {
    /// The move.
    #[serde(rename = "move")]
    pub of: Move,
    /// How it stands.
    #[serde(flatten)]
    pub stage: Stage,
}

impl Rebalance {
    /// Does what is next of each move, and says how it stands then. May be called for moves that are over, were never begun, or are carried out by
    /// somebody else too.
    pub fn advance(&self, moves: &[Move]) -> Result<Vec<Advanced>, Error> {
        let mut advanced = Vec::with_capacity(moves.len());
        // A move touches a partition and a node.
        for lot in moves.chunks(MOST_ITEMS / 2) {
            advanced.extend(self.advance_lot(lot)?);
        }
        Ok(advanced)
    }

    fn advance_lot(&self, moves: &[Move]) -> Result<Vec<Advanced>, Error> {
        let mut known = None;
        for attempt in 1.. {
            let map = self.store.load(&self.graph, known.as_ref())?;
            let mut touched = BTreeSet::new();
            let mut changes = Vec::new();
            let mut advanced = Vec::with_capacity(moves.len());
            for of in moves {
                let (change, stage) = next(&map, of);
                // Of one partition one change at a time: the second was decided on without the first.
                let stage = match change {
                    Some(change) if touched.insert(of.partition) => {
                        changes.push(change);
                        stage
                    }
                    Some(_) => Stage::Waits,
                    None => stage,
                };
                advanced.push(Advanced { of: of.clone(), stage });
            }
            if changes.is_empty() {
                return Ok(advanced);
            }
            match self.store.change(&self.graph, Some(map.epoch()), &changes) {
                Ok(_) => return Ok(advanced),
                Err(Error::Stale { .. }) if attempt < ATTEMPTS => known = Some(map),
                Err(error) => return Err(error),
            }
        }
        Ok(Vec::new())
    }
}

/// The next change of a move, and how it stands after that.
fn next(map: &PartitionMap, of: &Move) -> (Option<Change>, Stage) {
    let partition = of.partition;
    let void = |reason: String| (None, Stage::Void { reason });
    if usize::from(partition.0) >= map.partitions().count() {
        return void(format!("there is no partition {partition}"));
    }
    let replicas = map.replicas(partition);
    let on = |node: &NodeId| replicas.iter().find(|replica| replica.node == *node);
    if let Some(to) = &of.to {
        let state = map.node(to).map(|node| node.state);
        match (on(to), state) {
            (None, Some(NodeState::Up)) => {
                let add = Change::AddReplica { partition, node: to.clone() };
                return (Some(add), Stage::Restoring);
            }
            (Some(replica), Some(NodeState::Up)) => match replica.state {
                ReplicaState::Restoring => return (None, Stage::Restoring),
                ReplicaState::CatchingUp => return (None, Stage::CatchingUp),
                ReplicaState::Serving | ReplicaState::Leaving => {}
            },
            (_, Some(state)) => return void(format!("node {to} is {state}")),
            (_, None) => return void(format!("there is no node {to}")),
        }
    }
    let Some(old) = of.from.as_ref().and_then(on) else { return (None, Stage::Done) };
    let alive = |replica: &&Replica| {
        replica.state.answers() && map.node(&replica.node).is_some_and(|node| node.answers())
    };
    let others = replicas.iter().filter(|other| other.node != old.node).filter(alive).count();
    // Whatever the move says: the last one stays.
    if others < of.others.max(1) {
        return (None, Stage::Waits);
    }
    if alive(&old) && old.state == ReplicaState::Serving {
        let leave = Change::SetReplica { partition, node: old.node.clone(), state: ReplicaState::Leaving };
        return (Some(leave), Stage::Leaving);
    }
    (Some(Change::DropReplica { partition, node: old.node.clone() }), Stage::Done)
}

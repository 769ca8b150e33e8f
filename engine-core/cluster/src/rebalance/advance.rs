//! Makes the next change of some moves.

use super::Rebalance;
use crate::model::{NodeState, Replica, ReplicaState};
use crate::{Change, Error, MOST_ITEMS, Move, NodeId, PartitionMap};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Number of attempts when others change the map between the decision and the write.
const ATTEMPTS: usize = 8;

/// The stage of a move.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "stage")]
pub enum Stage {
    /// The new replica was added, or is restored from a checkpoint.
    Restoring,
    /// The new replica replays the log.
    CatchingUp,
    /// The new replica serves, and too few others do for the old one to be dropped. Those come up without a move.
    Waits,
    /// Readers ask the old replica last. It is dropped next.
    Leaving,
    /// The move is complete.
    Done,
    /// The move is no longer possible. Plan again.
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

/// A move and its stage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Advanced {
    /// The move.
    #[serde(rename = "move")]
    pub of: Move,
    /// Its stage.
    #[serde(flatten)]
    pub stage: Stage,
}

impl Rebalance {
    /// Makes the next change of each move; returns their stages after it. May be called for moves that are over, were
    /// never begun, or are advanced by another process too.
    ///
    /// # Errors
    /// [`Error::Stale`] if others changed the map at every attempt; otherwise as
    /// [`MapStore::change`](crate::MapStore::change).
    pub fn advance(&self, moves: &[Move]) -> Result<Vec<Advanced>, Error> {
        let mut advanced = Vec::with_capacity(moves.len());
        // A move touches a partition and a node.
        for batch in moves.chunks(MOST_ITEMS / 2) {
            advanced.extend(self.advance_batch(batch)?);
        }
        Ok(advanced)
    }

    fn advance_batch(&self, moves: &[Move]) -> Result<Vec<Advanced>, Error> {
        let mut known = None;
        for attempt in 1.. {
            let map = self.store.load(&self.graph, known.as_ref())?;
            let mut touched = BTreeSet::new();
            let mut changes = Vec::new();
            let mut advanced = Vec::with_capacity(moves.len());
            for of in moves {
                let (change, stage) = next(&map, of);
                // One change of a partition at a time: the second was decided on without the first.
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

/// The next change of a move, and its stage after that.
fn next(map: &PartitionMap, of: &Move) -> (Option<Change>, Stage) {
    let partition = of.partition;
    let void = |reason: String| (None, Stage::Void { reason });
    if !map.graph().has(partition) {
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
    // MAP-2: whatever the move says, the last replica stays.
    if others < of.others.max(1) {
        return (None, Stage::Waits);
    }
    if alive(&old) && old.state == ReplicaState::Serving {
        let leave = Change::SetReplica { partition, node: old.node.clone(), state: ReplicaState::Leaving };
        return (Some(leave), Stage::Leaving);
    }
    (Some(Change::DropReplica { partition, node: old.node.clone() }), Stage::Done)
}

//! One run of the command that splits a graph: which step comes next, and when nodes may drop the former partitions.
//!
//! Another run continues where this one stopped. It only waits for readers once more, since it does not know how long
//! they have been asking the next partitions.

use super::{SplitProgress, SplitStage};
use crate::Error;
use crate::rebalance::Rebalance;
use std::time::Duration;
use tidegraph_types::PartitionCount;

/// The steps of a split in their order, for one process.
#[derive(Clone, Debug)]
pub struct SplitRun {
    into: PartitionCount,
    moves: usize,
    restores_per_node: usize,
    readers: Duration,
    has_begun: bool,
    /// When this run first saw that readers ask the next partitions.
    turned: Option<Duration>,
}

impl SplitRun {
    /// A run that splits a graph into `into` partitions. It restores at most `moves` replicas at once and
    /// `restores_per_node` on one node, and lets nodes keep the former partitions for `readers` after readers turned.
    #[must_use]
    pub fn new(into: PartitionCount, moves: usize, restores_per_node: usize, readers: Duration) -> Self {
        Self { into, moves, restores_per_node, readers, has_begun: false, turned: None }
    }

    /// Takes the next step, and returns how far the split is after it. `now` is the time of one clock for the whole run.
    /// The split is over at [`SplitStage::Done`], and was taken back at [`SplitStage::None`]. After an error that passes
    /// by itself the step may be repeated.
    ///
    /// # Errors
    /// The same as [`Rebalance::begin_split`], [`Rebalance::advance_split`] and [`Rebalance::drop_former_partitions`].
    pub fn step(&mut self, rebalance: &Rebalance, now: Duration) -> Result<SplitProgress, Error> {
        if !self.has_begun {
            rebalance.begin_split(self.into)?;
            self.has_begun = true;
        }
        let progress = rebalance.advance_split(self.into, self.moves, self.restores_per_node)?;
        if progress.stage != SplitStage::Turned {
            return Ok(progress);
        }
        let since = *self.turned.get_or_insert(now);
        if now.saturating_sub(since) < self.readers {
            return Ok(progress);
        }
        rebalance.drop_former_partitions()?;
        rebalance.check_split(self.into)
    }
}

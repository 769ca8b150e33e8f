//! How records of the log reach storage: from the sequencer while it runs, from the log itself at recovery.

use std::sync::Arc;
use tidegraph_load::segments::SegmentReader;
use tidegraph_log::{Body, Record};
use tidegraph_platform::Objects;
use tidegraph_storage::Store;
use tidegraph_types::{Mutation, PartitionId};

/// Blocks of a segment, about 256 KiB each, that are read before the ones before them are applied.
const BLOCKS_AHEAD: usize = 4;

/// Applies records to a store and publishes their versions.
#[derive(Clone)]
pub(crate) struct StoreApplier {
    pub store: Arc<Store>,
    /// Where segments of bulk loads are.
    pub objects: Arc<Objects>,
}

impl StoreApplier {
    /// Applies one record. An error means that a segment of a committed load, or a page of properties that was moved out of
    /// memory, cannot be read: the graph cannot go on without it.
    pub fn try_apply(&self, record: &Record) -> Result<(), crate::Error> {
        match &record.body {
            Body::Commit { mutations, .. } => self.store.apply(record.version, mutations),
            Body::Load { segments, .. } => {
                let mut load = self.store.begin_load(record.version);
                self.for_each_block(segments, |block| load.apply(&block))?;
                load.finish();
            }
            Body::Tokens { .. } | Body::EpochStart => {}
        }
        self.store.check_applied()?;
        self.store.publish(record.version);
        Ok(())
    }
}

impl StoreApplier {
    /// Hands out the mutations of segments, in order. Another thread reads ahead by some blocks.
    fn for_each_block(
        &self,
        segments: &[String],
        mut each: impl FnMut(Vec<Mutation>),
    ) -> Result<(), crate::Error> {
        std::thread::scope(|scope| {
            let (sender, blocks) = crossbeam_channel::bounded(BLOCKS_AHEAD);
            let reading = scope.spawn(move || -> Result<(), crate::Error> {
                for segment in segments {
                    let mut reader = SegmentReader::open(&self.objects, segment)?;
                    let partition = reader.header().partition;
                    while let Some(mut block) = reader.next_block()? {
                        block.retain(|mutation| self.is_here(mutation, partition));
                        if sender.send(block).is_err() {
                            return Ok(());
                        }
                    }
                }
                Ok(())
            });
            blocks.into_iter().for_each(&mut each);
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// An edge stands in the segments of its source, its target and its id, for stores that hold one partition each. This
    /// one holds all and takes it once, from its source's.
    fn is_here(&self, mutation: &Mutation, partition: PartitionId) -> bool {
        match mutation {
            Mutation::CreateEdge { edge, .. } => self.store.config().partitions.of(edge.source) == partition,
            _ => true,
        }
    }
}

impl tidegraph_txn::Applier for StoreApplier {
    fn apply(&mut self, record: &Record) {
        if let Err(error) = self.try_apply(record) {
            // The record is durable, so it cannot be taken back: stop rather than serve a graph that lacks it.
            panic!("record {} cannot be applied: {error}", record.version);
        }
    }
}

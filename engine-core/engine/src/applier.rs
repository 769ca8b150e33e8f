//! Applies records of the log to storage: the sequencer's records while it runs, and the
//! records in the log at recovery.

use crossbeam_channel::Sender;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegraph_load::segments::{Kind, SegmentReader};
use tidegraph_log::{Body, Record};
use tidegraph_platform::Objects;
use tidegraph_storage::Store;
use tidegraph_types::{Mutation, PartitionId};

/// Number of blocks, of about 256 KiB each, that a reader of segments may be ahead of the applier.
const BLOCKS_AHEAD: usize = 4;
/// Maximum number of threads that read segments.
const MAX_READERS: usize = 16;

/// Returns the common prefix of the names of a partition's segments of one kind.
fn lane_of(segment: &str) -> &str {
    segment.rsplit_once('-').map_or(segment, |(lane, _)| lane)
}

/// Applies records to a store and publishes their versions.
#[derive(Clone, Debug)]
pub struct StoreApplier {
    /// The store.
    pub store: Arc<Store>,
    /// The segments of bulk loads.
    pub objects: Arc<Objects>,
}

impl StoreApplier {
    /// Applies one record and publishes its version.
    ///
    /// # Errors
    ///
    /// A segment of a committed load, or a page of properties that was moved to disk, cannot be read. The graph cannot
    /// continue without it.
    pub fn try_apply(&self, record: &Record) -> Result<(), crate::Error> {
        match &record.body {
            Body::Commit { mutations, .. } => self.store.apply(record.version, mutations),
            Body::Load { segments, .. } => {
                let mut load = self.store.begin_load(record.version);
                self.for_each_batch(segments, |batch, keeps_values| {
                    load.keep_values(keeps_values);
                    load.apply(batch);
                })?;
                load.finish();
            }
            Body::Tokens { .. } | Body::EpochStart | Body::Reserve { .. } => {}
        }
        self.store.check_applied()?;
        self.store.publish(record.version);
        Ok(())
    }
}

impl StoreApplier {
    /// Passes the mutations of segments to `each`, with whether elements keep their single values: one kind after the
    /// other, and those of one partition in order.
    /// Blocks of several partitions are read and passed together, so that they can be applied in parallel.
    fn for_each_batch(
        &self,
        segments: &[String],
        mut each: impl FnMut(&[Mutation], bool),
    ) -> Result<(), crate::Error> {
        segments.chunk_by(|a, b| Kind::of(a) == Kind::of(b)).try_for_each(|phase| {
            let lanes: Vec<&[String]> = phase.chunk_by(|a, b| lane_of(a) == lane_of(b)).collect();
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let readers = cores.min(MAX_READERS).min(lanes.len());
            let next = AtomicUsize::new(0);
            let (lanes, next) = (&lanes, &next);
            std::thread::scope(|scope| {
                let (sender, blocks) = crossbeam_channel::bounded(readers * BLOCKS_AHEAD);
                let reading: Vec<_> = (0..readers)
                    .map(|_| {
                        let sender = sender.clone();
                        scope.spawn(move || -> Result<(), crate::Error> {
                            while let Some(lane) = lanes.get(next.fetch_add(1, Ordering::Relaxed)) {
                                if !self.read_lane(lane, &sender)? {
                                    break;
                                }
                            }
                            Ok(())
                        })
                    })
                    .collect();
                drop(sender);
                while let Ok((mut batch, keeps_values)) = blocks.recv() {
                    // The segments of a load agree on `keeps_values`.
                    (1..readers * BLOCKS_AHEAD)
                        .map_while(|_| blocks.try_recv().ok())
                        .for_each(|(mut more, _)| batch.append(&mut more));
                    each(&batch, keeps_values);
                }
                reading.into_iter().try_for_each(|reader| {
                    reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
            })
        })
    }

    /// Sends the mutations of one partition's segments, in order; returns `false` if the receiver is gone.
    fn read_lane(
        &self,
        lane: &[String],
        sender: &Sender<(Vec<Mutation>, bool)>,
    ) -> Result<bool, crate::Error> {
        for segment in lane {
            let mut reader = SegmentReader::open(&self.objects, segment)?;
            let (partition, keeps_values) = (reader.header().partition, reader.header().keeps_values);
            if !self.is_of_store(partition) {
                continue;
            }
            while let Some(mut block) = reader.next_block()? {
                block.retain(|mutation| self.is_here(mutation, partition));
                if sender.send((block, keeps_values)).is_err() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether the store holds a partition.
    fn is_of_store(&self, partition: PartitionId) -> bool {
        self.store.config().scope.is_none_or(|scope| scope.partition == partition)
    }

    /// Whether to apply a mutation of a partition's segment. An edge is in the segments of its source, its target and
    /// its id, for stores of one partition each. A store of all partitions applies it once, from its source's segment.
    fn is_here(&self, mutation: &Mutation, partition: PartitionId) -> bool {
        match mutation {
            Mutation::CreateEdge { edge, .. } if self.store.config().scope.is_none() => {
                self.store.config().partitions.of(edge.source) == partition
            }
            _ => true,
        }
    }
}

impl tidegraph_txn::Applier for StoreApplier {
    fn apply(&mut self, record: &Record) {
        if let Err(error) = self.try_apply(record) {
            // The record is durable and cannot be undone: stop rather than serve a graph without it.
            panic!("record {} cannot be applied: {}", record.version, error.chain());
        }
    }
}

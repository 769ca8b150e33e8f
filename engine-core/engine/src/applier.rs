//! Applies records of the log to storage: the sequencer's records while it runs, and the
//! records in the log at recovery.

use crossbeam_channel::Sender;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegraph_load::segments::{Kind, SegmentReader};
use tidegraph_log::{Body, Record};
use tidegraph_platform::Objects;
use tidegraph_storage::{Scope, Store};
use tidegraph_types::Mutation;

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
            let keeps_values = reader.header().keeps_values;
            let of =
                Scope { partitions: reader.header().partition_count, partition: reader.header().partition };
            if !self.is_of_store(of) {
                continue;
            }
            while let Some(mut block) = reader.next_block()? {
                block.retain(|mutation| self.is_here(mutation, of));
                if sender.send((block, keeps_values)).is_err() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether a segment may have what the store holds. A load that a split overtakes was written for fewer partitions,
    /// or for more, than there are when the store reads it.
    fn is_of_store(&self, segment: Scope) -> bool {
        self.store.config().scope.is_none_or(|scope| scope.covers(segment) || segment.covers(scope))
    }

    /// Whether to apply a mutation of a partition's segment. An edge is in the segments of its source, its target and
    /// its id, for stores of one partition each. A store that reads several of them applies the edge once, from the
    /// first of these segments that it reads.
    fn is_here(&self, mutation: &Mutation, segment: Scope) -> bool {
        let Mutation::CreateEdge { edge, id, .. } = mutation else { return true };
        let store = &self.store;
        if store.config().scope.is_none() {
            return store.config().partitions.of(edge.source) == segment.partition;
        }
        let id = id.as_ref().map(|id| store.config().hasher.edge_id(id));
        let held =
            [Some(edge.source), Some(edge.target), id].into_iter().flatten().find(|gui| store.holds(*gui));
        held.is_some_and(|gui| segment.holds(gui))
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

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_load::segments::SegmentWriter;
    use tidegraph_platform::ManualClock;
    use tidegraph_storage::StoreConfig;
    use tidegraph_types::{
        Cardinality, Edge, Epoch, GuiHasher, PartitionCount, PartitionId, PropertyWrite, ShardId, Sid, Str,
        Token, Value, Version,
    };

    fn load() -> Vec<Mutation> {
        let hasher = GuiHasher::default();
        let vertex = |n: u64| {
            let id = Str::from(format!("v{n}"));
            let write =
                PropertyWrite { key: Token(9), cardinality: Cardinality::Single, value: Value::Int(1) };
            Mutation::CreateVertex {
                gui: hasher.gui(&id),
                id,
                labels: vec![Token(1)],
                properties: vec![write],
            }
        };
        let edge = |n: u64| {
            let end = |n: u64| hasher.gui(&format!("v{}", n % 300));
            let (source, target) = (end(n), end(n * 7 + 1));
            let id = n.is_multiple_of(2).then(|| Str::from(format!("e{n}")));
            let properties = vec![(Token(10), Value::Int(2))];
            Mutation::CreateEdge {
                edge: Edge { sid: Sid(n), source, target, label: Token(3) },
                id,
                properties,
            }
        };
        (0..300).map(vertex).chain((1..2_000).map(edge)).collect()
    }

    /// A split may overtake a load: what was written for some partitions is applied to fewer, larger ones and to more,
    /// smaller ones, with the same result as segments that fit.
    #[test]
    fn segments_fit_partitions_before_and_after_a_split() {
        let (objects, hasher) = (Objects::memory().unwrap(), GuiHasher::default());
        let count = |count: u16| PartitionCount::new(count).unwrap();
        let stores = |partitions: u16, segments: u16| {
            let load_id = format!("load-{segments}");
            let mut writer =
                SegmentWriter::new(objects.clone(), "g", &load_id, count(segments), hasher, 20_000);
            load().iter().for_each(|mutation| writer.push(mutation).unwrap());
            let segments = writer.finish().unwrap().into_iter().map(|segment| segment.object).collect();
            let body = Body::Load { load_id, segments, next_sid: Sid(3_000) };
            let record = Record { shard: ShardId(0), epoch: Epoch(1), version: Version(1), body };
            (0..partitions)
                .map(|number| {
                    let scope = Scope { partitions: count(partitions), partition: PartitionId(number) };
                    let config = StoreConfig::new(Arc::new(ManualClock::default())).of_partition(scope);
                    let store = Arc::new(Store::new(config));
                    let applier = StoreApplier { store: store.clone(), objects: Arc::new(objects.clone()) };
                    applier.try_apply(&record).unwrap();
                    (store.totals(), store.counts().edges_by_label)
                })
                .collect::<Vec<_>>()
        };
        for partitions in [4, 16] {
            let expected = stores(partitions, partitions);
            let sum = expected.iter().fold((0, 0), |sum, (one, _)| (sum.0 + one.0, sum.1 + one.1));
            assert_eq!(sum, (300, 1_999));
            for segments in [1, 4, 16, 64] {
                let found = stores(partitions, segments);
                assert_eq!(found, expected, "segments of {segments} partitions, for {partitions}");
            }
        }
    }
}

//! Scans over all vertices or edges, partition after partition, a piece of slots under each taking of the lock.

use super::Store;
use crate::partition::{Filter, Partition, pass_all};
use tidegraph_apl::{At, EdgeScan, Error, ScanCursor, VertexScan};
use tidegraph_types::{Edge, Gui, Token};

/// Slots that are looked at under one taking of the lock.
const PIECE_SLOTS: u32 = 4096;
/// Edges that are answered under one taking of the lock.
const PIECE_EDGES: usize = 1 << 16;

/// Which label sets pass all groups, found once for each set and piece.
struct LabelTest<'r> {
    groups: &'r [Vec<Token>],
    /// 0: not looked at yet, 1: fails, 2: passes.
    known: Vec<u8>,
}

impl<'r> LabelTest<'r> {
    fn new(groups: &'r [Vec<Token>], partition: &Partition) -> Self {
        Self { groups, known: vec![0; partition.label_sets().len()] }
    }

    fn passes(&mut self, partition: &Partition, set: u32) -> bool {
        let known = &mut self.known[set as usize];
        if *known == 0 {
            let labels = partition.label_sets().get(set);
            let passes = self.groups.iter().all(|group| group.iter().any(|label| labels.contains(label)));
            *known = 1 + u8::from(passes);
        }
        *known == 2
    }
}

impl Store {
    pub(super) fn scan_all_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        out: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        self.versions.check(at.version)?;
        let limit = out.len().saturating_add(scan.max_rows.max(1) as usize);
        let mut candidates = Vec::new();
        let mut next = from.position as u32;
        for number in usize::from(from.partition)..self.partitions.len() {
            loop {
                let partition = self.lock_one(at, number)?;
                candidates.clear();
                // The group with the fewest members, so that the rest is a test of few.
                let members = partition.members();
                let size = |group: &&Vec<Token>| group.iter().map(|label| members.count(*label)).sum::<u64>();
                let after = match scan.labels.iter().min_by_key(size) {
                    Some(group) => {
                        members.candidates(group, next, PIECE_SLOTS as usize, &mut candidates);
                        let more = candidates.len() == PIECE_SLOTS as usize;
                        candidates.last().filter(|_| more).map(|last| last + 1)
                    }
                    None => {
                        let end = next.saturating_add(PIECE_SLOTS).min(partition.end());
                        candidates.extend(next..end);
                        (end < partition.end()).then_some(end)
                    }
                };
                let mut test = LabelTest::new(&scan.labels, &partition);
                for &slot in &candidates {
                    let passes = if scan.predicates.is_empty() {
                        partition
                            .read_labels(slot, at.version)
                            .is_some_and(|set| test.passes(&partition, set))
                    } else {
                        partition
                            .read_vertex(slot, at.version, |_, set, cells| {
                                test.passes(&partition, set) && pass_all(&scan.predicates, cells)
                            })
                            .unwrap_or(false)
                    };
                    if passes {
                        out.push(partition.node(slot).gui);
                        if out.len() >= limit {
                            let position = u64::from(slot) + 1;
                            return Ok(Some(ScanCursor { partition: number as u16, position }));
                        }
                    }
                }
                match after {
                    Some(after) => next = after,
                    None => break,
                }
            }
            next = 0;
        }
        Ok(None)
    }

    pub(super) fn scan_all_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut Vec<Edge>,
    ) -> Result<Option<ScanCursor>, Error> {
        self.versions.check(at.version)?;
        let limit = out.len().saturating_add(scan.max_rows.max(1) as usize);
        let filter = Filter::of(scan.labels.as_deref());
        // Slot in the high half, place in its hub in the low one.
        let (mut slot, mut after) = ((from.position >> 32) as u32, from.position as u32);
        for number in usize::from(from.partition)..self.partitions.len() {
            loop {
                let partition = self.lock_one(at, number)?;
                let pause = limit.min(out.len().saturating_add(PIECE_EDGES));
                let end = slot.saturating_add(PIECE_SLOTS).min(partition.end());
                while slot < end && out.len() < pause {
                    let place = partition.scan_out_edges(
                        slot,
                        filter,
                        &scan.predicates,
                        at.version,
                        after,
                        pause,
                        out,
                    );
                    after = place.unwrap_or(0);
                    slot += u32::from(place.is_none());
                }
                if out.len() >= limit {
                    let position = u64::from(slot) << 32 | u64::from(after);
                    return Ok(Some(ScanCursor { partition: number as u16, position }));
                }
                if slot >= partition.end() {
                    break;
                }
            }
            (slot, after) = (0, 0);
        }
        Ok(None)
    }
}

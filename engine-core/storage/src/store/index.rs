//! Indexes of the store: keeping them while the graph changes, filling them, looking up in them.
//!
//! Flow of a change: what the vertex has now under the keys that are concerned, the change, what it has then; both go to
//! [`crate::index`]. Flow of a scan: if an index answers one of its tests and finds few candidates in the first
//! partition, all partitions are answered from indexes, each candidate looked at like any vertex of a scan; else
//! columns and label sets are read. A scan that began one way goes on that way (`ScanCursor::by_index`): candidates come in
//! order of GUI, so that any index, and in the end none, can go on where another one stopped.

use super::Store;
use super::pipeline::walk;
use crate::index::{self, Held, Index, Span, ValueKey};
use crate::partition::{Partition, Writer};
use crate::properties::{Row, Want};
use crossbeam_epoch::pin;
use std::sync::Arc;
use tidegraph_apl::{
    Apl, At, Error, Projection, PropertyPredicate, ScanCursor, Test, VertexRead, VertexRows, VertexScan,
};
use tidegraph_types::{Epoch, Gui, IndexDefinition, Mutation, PropertyWrite, Str, Value, Version};

/// A look at a candidate costs as much as reading about this many rows one after the other.
const ROWS_A_CANDIDATE: u64 = 32;
/// So few candidates are always looked at.
const FEW: usize = 64;
/// Candidates that are looked at under one epoch guard.
const PIECE: usize = 64;
/// Candidates after which a call ends with the partition at hand, whatever passed: some milliseconds of work.
const MOST_LOOKED: usize = 1 << 14;
/// Vertices that are put into an index at once.
const FILLED_AT_ONCE: u32 = 1024;
/// The newest state: nothing has been removed at the highest version but what has been removed at all.
const NEWEST: Version = Version(u64::MAX - 1);

/// An index of the graph, as people ask for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexState {
    /// What it is over.
    pub definition: IndexDefinition,
    /// Whether look-ups use it; else it is being filled.
    pub complete: bool,
    /// Values with their vertices.
    pub entries: usize,
}

/// Two vertices that have one value where it must be unique.
#[derive(Clone, PartialEq, Debug)]
pub struct Duplicate {
    /// Their ids.
    pub ids: [Str; 2],
    /// The value that both have.
    pub value: Value,
}

/// What a change may take from or give to indexes.
pub(super) struct Watch {
    list: Arc<Vec<Index>>,
    concerned: Vec<usize>,
    gui: Gui,
    pub before: Held,
}

impl Watch {
    /// The vertex that changes.
    pub fn gui(&self) -> Gui {
        self.gui
    }

    /// Which of its values belong into the indexes now.
    pub fn look(&self, partition: &Partition) -> Held {
        let mut held = Held::new();
        let guard = pin();
        let Some(slot) = partition.slot(self.gui, &guard) else { return held };
        let keys = self.concerned.iter().map(|&index| self.list[index].definition.key).collect();
        let want = Want { id: false, properties: &Projection::Keys(keys) };
        let Some(row) = partition.read_vertex(slot, NEWEST, want, &guard) else { return held };
        row.for_each(want, |key, _, value| {
            for &index in &self.concerned {
                let definition = &self.list[index].definition;
                if definition.key == key && row.labels().contains(&definition.label) {
                    held.extend(ValueKey::of(&value).map(|key| (index, key)));
                }
            }
        });
        held
    }
}

/// Whether a row passes a scan, whose keys were wanted.
fn passes(row: &Row<'_>, scan: &VertexScan) -> bool {
    scan.labels.iter().all(|group| group.iter().any(|label| row.labels().contains(label)))
        && row.passes(&scan.predicates)
}

impl Store {
    /// All indexes, in the order in which they were made.
    #[must_use]
    pub fn indexes(&self) -> Vec<IndexState> {
        let state = |index: &Index| IndexState {
            definition: index.definition.clone(),
            complete: index.is_complete(),
            entries: index.len(),
        };
        self.indexes.list().iter().map(state).collect()
    }

    pub(crate) fn define_index(&self, definition: &IndexDefinition, since: Version) {
        self.indexes.define(definition, self.partitions.len(), since);
    }

    /// Which indexes a mutation concerns; `None` when none.
    pub(super) fn watch(&self, mutation: &Mutation) -> Option<Watch> {
        if self.indexes.is_empty() {
            return None;
        }
        let list = self.indexes.list();
        let (gui, concerned) = match mutation {
            Mutation::CreateVertex { gui, labels, properties, .. } => {
                let keys = |key| properties.iter().any(|write| write.key == key);
                (*gui, index::concerned(&list, labels, keys)?)
            }
            Mutation::DeleteVertex { gui } => (*gui, (0..list.len()).collect()),
            Mutation::AddLabels { gui, labels } | Mutation::RemoveLabels { gui, labels } => {
                (*gui, index::concerned(&list, labels, |_| false)?)
            }
            Mutation::SetVertexProperty { gui, write } => return self.watch_writes(*gui, &[write]),
            Mutation::RemoveVertexProperty { gui, key, .. } => {
                (*gui, index::concerned(&list, &[], |other| other == *key)?)
            }
            _ => return None,
        };
        Some(Watch { list, concerned, gui, before: Held::new() })
    }

    /// Which indexes the writing of values to one vertex concerns; `None` when none.
    pub(super) fn watch_writes(&self, gui: Gui, writes: &[&PropertyWrite]) -> Option<Watch> {
        if self.indexes.is_empty() {
            return None;
        }
        let list = self.indexes.list();
        let concerned = index::concerned(&list, &[], |key| writes.iter().any(|write| write.key == key))?;
        Some(Watch { list, concerned, gui, before: Held::new() })
    }

    /// Brings the indexes up to date after a change.
    pub(super) fn changed(&self, w: &Writer<'_>, watch: Watch, partition: &Partition) {
        let after = watch.look(partition);
        let Watch { list, gui, before, .. } = watch;
        self.indexes.change(&list, self.number(gui), gui, w.version, before, &after);
    }

    /// Fills every index that is not complete, from the newest version that can be read, while writes go on. Answers
    /// when they are complete, or when `stop` says so.
    pub fn fill_indexes(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), Error> {
        // After the pin, so that the pinned version is not from before one of them.
        let list = self.indexes.list();
        let open: Vec<&Index> = list.iter().filter(|index| !index.is_complete()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let pin = self.pin_published();
        let at = At { version: pin.version(), epoch: Epoch::default() };
        let next = std::sync::atomic::AtomicUsize::new(0);
        let work = || -> Result<bool, Error> {
            loop {
                let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if number >= self.partitions.len() {
                    return Ok(true);
                }
                for index in &open {
                    if !self.fill(index, at, number, stop)? {
                        return Ok(false);
                    }
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(self.partitions.len());
        let filled = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_fold(true, |all, worker| match worker.join() {
                Ok(result) => result.map(|filled| all && filled),
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        if filled {
            open.iter().for_each(|index| index.complete());
        }
        Ok(())
    }

    /// Fills the part of an index that is of one partition; false if it was stopped.
    fn fill(&self, index: &Index, at: At, number: usize, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        let definition = &index.definition;
        let scan = VertexScan {
            labels: vec![vec![definition.label]],
            predicates: vec![PropertyPredicate { key: definition.key, test: Test::Exists }],
            max_rows: FILLED_AT_ONCE,
        };
        let read = VertexRead { properties: Projection::Keys(vec![definition.key]), ..VertexRead::default() };
        let (mut guis, mut rows) = (Vec::new(), VertexRows::default());
        let mut cursor = ScanCursor { partition: number as u16, ..ScanCursor::default() };
        loop {
            guis.clear();
            rows.clear();
            let next = self.scan_rows(at, &scan, cursor, number + 1, &mut guis)?;
            self.vertices(at, &read, &guis, &mut rows)?;
            for (row, gui) in guis.iter().enumerate() {
                for cell in rows.cells_of(row) {
                    if let Some(key) = ValueKey::of(&cell.value) {
                        index.add(number, key, *gui);
                    }
                }
            }
            match next {
                Some(_) if stop() => return Ok(false),
                Some(next) => cursor = next,
                None => return Ok(true),
            }
        }
    }

    /// Vertices that share a value under a unique index, as the newest version that can be read has them.
    pub fn duplicate(&self, name: &str) -> Result<Option<Duplicate>, Error> {
        let list = self.indexes.list();
        let Some(index) = list.iter().find(|index| index.definition.name == name) else { return Ok(None) };
        let pin = self.pin_published();
        let at = At { version: pin.version(), epoch: Epoch::default() };
        let definition = &index.definition;
        let read = VertexRead { ids: true, labels: true, properties: Projection::Keys(vec![definition.key]) };
        let (mut rows, mut found) = (VertexRows::default(), Ok(None));
        index.shared_keys(|guis| {
            rows.clear();
            if let Err(error) = self.vertices(at, &read, guis, &mut rows) {
                found = Err(error);
                return false;
            }
            let mut seen: Vec<(usize, &Value)> = Vec::new();
            for row in (0..guis.len()).filter(|&row| rows.labels_of(row).contains(&definition.label)) {
                for cell in rows.cells_of(row) {
                    let test = Test::Equals(cell.value.clone());
                    match seen.iter().find(|(other, value)| *other != row && test.passes(value)) {
                        Some((other, _)) => {
                            let ids = [rows.ids[*other].clone(), rows.ids[row].clone()];
                            found = Ok(Some(Duplicate { ids, value: cell.value.clone() }));
                            return false;
                        }
                        None => seen.push((row, &cell.value)),
                    }
                }
            }
            true
        });
        found
    }

    /// Answers a scan from indexes; `None` when that is not the way to answer it.
    pub(super) fn scan_indexes(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        out: &mut Vec<Gui>,
    ) -> Result<Option<Option<ScanCursor>>, Error> {
        let begins = from == ScanCursor::default();
        if !from.by_index && (!begins || self.indexes.is_empty()) {
            return Ok(None);
        }
        let list = self.indexes.list();
        let ways = ways(&list, scan, at.version);
        if ways.is_empty() && !from.by_index {
            return Ok(None);
        }
        self.versions.check(at.version)?;
        let mut most = if begins { self.most_candidates(scan) } else { usize::MAX };
        let limit = out.len().saturating_add(scan.max_rows.max(1) as usize);
        let keys = scan.predicates.iter().map(|predicate| predicate.key).collect();
        let want = Want { id: false, properties: &Projection::Keys(keys) };
        let mut position = from.position;
        let mut looked = 0;
        for number in usize::from(from.partition)..self.partitions.len() {
            let candidates = match candidates(&ways, number, at.version, most) {
                Some(candidates) => candidates,
                None if most < usize::MAX => return Ok(None),
                None => self.candidates_without(at, scan, number)?,
            };
            most = usize::MAX;
            let oldest = self.indexes.reclaimed();
            if at.version < oldest {
                return Err(Error::TooOld { oldest, asked: at.version });
            }
            let start = candidates.partition_point(|gui| gui.0 < position);
            for piece in candidates[start..].chunks(PIECE) {
                let reading = self.reading();
                let guard = &reading.epoch;
                let prefetch = |partition: &Partition, slot| partition.prefetch_row(slot, want, guard);
                let mut stopped = None;
                walk(
                    &reading,
                    piece,
                    |_, _| {},
                    prefetch,
                    |row, partition, slot| {
                        if out.len() >= limit {
                            let position = piece[row].0;
                            stopped = Some(ScanCursor { partition: number as u16, position, by_index: true });
                            return false;
                        }
                        let found =
                            slot.and_then(|slot| partition.read_vertex(slot, at.version, want, guard));
                        if found.is_some_and(|row| passes(&row, scan)) {
                            out.push(piece[row]);
                        }
                        true
                    },
                );
                if stopped.is_some() {
                    return Ok(Some(stopped));
                }
            }
            position = 0;
            looked += candidates.len() - start;
            let enough = out.len() >= limit || looked >= MOST_LOOKED;
            if enough && number + 1 < self.partitions.len() {
                let cursor = ScanCursor { partition: number as u16 + 1, position: 0, by_index: true };
                return Ok(Some(Some(cursor)));
            }
        }
        Ok(Some(None))
    }

    /// How many candidates in one partition are not more work than reading its rows.
    fn most_candidates(&self, scan: &VertexScan) -> usize {
        let counts = self.counts.lock();
        let of = |group: &Vec<_>| -> i64 {
            group.iter().map(|label| counts.vertices_by_label.get(label).copied().unwrap_or(0)).sum()
        };
        let rows = scan.labels.iter().map(of).min().unwrap_or(counts.vertices).unsigned_abs();
        FEW + (rows / self.partitions.len() as u64 / ROWS_A_CANDIDATE) as usize
    }

    /// The vertices of a partition that pass, in order of GUI, when the index that the scan began with is gone.
    fn candidates_without(&self, at: At, scan: &VertexScan, number: usize) -> Result<Vec<Gui>, Error> {
        let mut guis = Vec::new();
        let mut cursor = ScanCursor { partition: number as u16, ..ScanCursor::default() };
        while let Some(next) = self.scan_rows(at, scan, cursor, number + 1, &mut guis)? {
            cursor = next;
        }
        guis.sort_unstable();
        Ok(guis)
    }
}

/// The indexes that can answer one of the tests of a scan, and with which keys.
fn ways<'l>(list: &'l [Index], scan: &VertexScan, at: Version) -> Vec<(&'l Index, Vec<Span>)> {
    let mut ways = Vec::new();
    for predicate in &scan.predicates {
        for index in list {
            let definition = &index.definition;
            let labelled = || scan.labels.iter().any(|group| group[..] == [definition.label]);
            if definition.key == predicate.key
                && index.answers(at)
                && labelled()
                && let Some(spans) = Span::of(&predicate.test)
            {
                ways.push((index, spans));
            }
        }
    }
    ways
}

/// The fewest candidates that an index has in a partition, each once, in order; `None` if all have more than `most`.
fn candidates(ways: &[(&Index, Vec<Span>)], partition: usize, at: Version, most: usize) -> Option<Vec<Gui>> {
    let mut best: Option<Vec<Gui>> = None;
    for (index, spans) in ways {
        let most = best.as_ref().map_or(most, Vec::len);
        let mut guis = Vec::new();
        if spans.iter().all(|span| index.candidates(partition, span, at, most, &mut guis)) {
            best = Some(guis);
        }
    }
    let mut best = best?;
    best.sort_unstable();
    best.dedup();
    Some(best)
}

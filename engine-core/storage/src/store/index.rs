//! Indexes of the store: keeps them current, fills them, looks up in them.
//!
//! Flow of a change: collect the indexed values that the vertex has before the change and after it, and hand both to
//! [`crate::index`]. Flow of a scan: if indexes answer one of its tests and find few candidates in the first
//! partition, all partitions are answered from indexes, and each candidate is checked like any vertex of a scan;
//! otherwise columns and label sets are read. A scan continues the way it began (`ScanCursor::by_index`). Candidates
//! come in order of GUI, so another index, or none, can continue where an index stopped.
//!
//! A scan that does not name the labels with indexes is divided: vertices with one of those labels (the *cover*,
//! whose number is part of the cursor) are found in the indexes first; then the rows of sets with none of these
//! labels are read. The cover of a scan stays the same until its end, whatever happens to the indexes.
//!
//! What must never happen: a vertex that passes a scan and that an index does not find (STO-3).

use super::pipeline::walk;
use super::{Generation, Store};
use crate::index::{self, Index, IndexedValues, Span, ValueKey};
use crate::parallel::try_parallel;
use crate::partition::{Partition, Writer};
use crate::properties::{Listed, Row, RowRequest, VertexSink};
use crossbeam_epoch::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegraph_apl::{
    Apl, At, Error, Projection, PropertyPredicate, ScanCursor, Test, VertexRead, VertexRows, VertexScan,
};
use tidegraph_types::{Epoch, Gui, IndexDefinition, Mutation, PropertyWrite, Str, Token, Value, Version};

/// Checking a candidate costs as much as reading about this many rows in sequence.
const ROWS_PER_CANDIDATE: usize = 32;
/// Number of candidates that are always worth checking.
const FEW: usize = 64;
/// Candidates that are checked under one epoch guard.
const PIECE: usize = 64;
/// Number of candidates after which a call ends with the current partition: some milliseconds of work.
const MOST_LOOKED: usize = 1 << 14;
/// Vertices that are added to an index at a time.
const FILLED_AT_ONCE: u32 = 1024;
/// Above every version, so that it sees exactly what was not removed.
const NEWEST: Version = Version(u64::MAX - 1);

/// State of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexState {
    /// What the index covers.
    pub definition: IndexDefinition,
    /// Whether look-ups use the index; false while it is being filled.
    pub complete: bool,
    /// Number of pairs of value and vertex.
    pub entries: usize,
}

/// Two vertices that have the same value under a unique index.
#[derive(Clone, PartialEq, Debug)]
pub struct Duplicate {
    /// The ids of the vertices.
    pub ids: [Str; 2],
    /// The value.
    pub value: Value,
}

/// The indexes that a change of a vertex concerns, and the vertex's values in them before the change.
pub(super) struct IndexUpdate {
    list: Arc<Vec<Index>>,
    concerned: Vec<usize>,
    gui: Gui,
    pub before: IndexedValues,
}

impl IndexUpdate {
    /// Returns the vertex.
    pub fn gui(&self) -> Gui {
        self.gui
    }

    /// Returns the vertex's current values in these indexes.
    pub fn indexed_values(&self, partition: &Partition) -> IndexedValues {
        let mut held = IndexedValues::new();
        let guard = pin();
        let Some(slot) = partition.slot(self.gui, &guard) else { return held };
        let keys = self.concerned.iter().map(|&index| self.list[index].definition.key).collect();
        let want = RowRequest { id: false, properties: &Projection::Keys(keys) };
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

/// Returns whether a row passes a scan. The keys of the predicates must have been read.
fn passes(row: &Row<'_>, scan: &VertexScan) -> bool {
    scan.labels.iter().all(|group| group.iter().any(|label| row.labels().contains(label)))
        && row.passes(&scan.predicates)
}

impl Store {
    /// Returns all indexes, in order of their creation.
    #[must_use]
    pub fn indexes(&self) -> Vec<IndexState> {
        self.newest().indexes()
    }

    /// Returns pairs of label and property key under which no two vertices of the label may have the same value at a
    /// version. What was dropped since may be missing. Indexes that are being filled are left out: they are checked as
    /// a whole when they are complete.
    ///
    /// # Errors
    ///
    /// [`Error::Behind`] if the asked version is not published here, [`Error::TooOld`] if it may have been reclaimed.
    /// [`Error::Unavailable`] if a constraint was confirmed elsewhere while this replica has not filled its part yet.
    pub fn unique_keys(&self, asked: Version) -> Result<Vec<(Token, Token)>, Error> {
        let newest = self.newest();
        let keys = newest.unique_keys(asked)?;
        // A store that was restored knows since when it has a constraint only back to its checkpoint.
        let oldest = self.of_version(asked).forgotten();
        if asked < oldest && !newest.indexes.is_empty() {
            return Err(Error::TooOld { oldest, asked });
        }
        Ok(keys)
    }

    /// Fills every incomplete index from the newest version that can be read, while writes continue. Returns when all
    /// are complete or `stop` returns true. A reset makes all indexes complete.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] or [`Error::Corrupt`] if a spilled page cannot be read back.
    pub fn fill_indexes(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), Error> {
        let filled = self.newest();
        filled.fill_indexes(&|| stop() || filled.since < self.newest().since)
    }

    /// Returns two vertices that have the same value under a unique index at the newest version.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] or [`Error::Corrupt`] if a spilled page cannot be read back.
    pub fn duplicate(&self, name: &str) -> Result<Option<Duplicate>, Error> {
        self.newest().duplicate(name)
    }
}

impl Generation {
    /// Returns all indexes, in order of their creation.
    pub fn indexes(&self) -> Vec<IndexState> {
        let state = |index: &Index| IndexState {
            definition: index.definition.clone(),
            complete: index.is_complete(),
            entries: index.len(),
        };
        self.indexes.list().iter().map(state).collect()
    }

    /// Returns the property keys of all uniqueness constraints, filled or not, so that all replicas return the same.
    pub(super) fn keys_of_constraints(&self) -> Vec<Token> {
        if self.indexes.is_empty() {
            return Vec::new();
        }
        let list = self.indexes.list();
        list.iter().filter(|index| index.definition.unique).map(|index| index.definition.key).collect()
    }

    /// Creates an index, to be filled, that a version defines.
    pub(crate) fn define_index(&self, definition: &IndexDefinition, version: Version) {
        self.indexes.define(definition, self.partitions.len(), version, version);
    }

    /// Returns the indexes that a mutation concerns; `None` if there are none.
    pub(super) fn index_update(&self, mutation: &Mutation) -> Option<IndexUpdate> {
        if self.indexes.is_empty() {
            return None;
        }
        let list = self.indexes.list();
        let (gui, concerned) = match mutation {
            Mutation::CreateVertex { gui, labels, properties, .. } => {
                let keys = |key| properties.iter().any(|write| write.key == key);
                (*gui, index::concerned(&list, labels, keys)?)
            }
            Mutation::DeleteVertex { gui, .. } => (*gui, (0..list.len()).collect()),
            Mutation::AddLabels { gui, labels } | Mutation::RemoveLabels { gui, labels } => {
                (*gui, index::concerned(&list, labels, |_| false)?)
            }
            Mutation::SetVertexProperty { gui, write } => return self.index_update_of(*gui, &[write]),
            Mutation::RemoveVertexProperty { gui, key, .. } => {
                (*gui, index::concerned(&list, &[], |other| other == *key)?)
            }
            _ => return None,
        };
        Some(IndexUpdate { list, concerned, gui, before: IndexedValues::new() })
    }

    /// Returns the indexes that writes to one vertex concern; `None` if there are none.
    pub(super) fn index_update_of(&self, gui: Gui, writes: &[&PropertyWrite]) -> Option<IndexUpdate> {
        if self.indexes.is_empty() {
            return None;
        }
        let list = self.indexes.list();
        let concerned = index::concerned(&list, &[], |key| writes.iter().any(|write| write.key == key))?;
        Some(IndexUpdate { list, concerned, gui, before: IndexedValues::new() })
    }

    /// STO-3: updates the indexes after a change, before its version is published.
    pub(super) fn update_indexes(&self, w: &Writer<'_>, update: IndexUpdate, partition: &Partition) {
        let after = update.indexed_values(partition);
        let IndexUpdate { list, gui, before, .. } = update;
        self.indexes.change(&list, self.number(gui), gui, w.version, before, &after);
    }

    /// Implements [`Store::unique_keys`].
    pub fn unique_keys(&self, asked: Version) -> Result<Vec<(Token, Token)>, Error> {
        let applied = self.published();
        if asked > applied {
            return Err(Error::Behind { applied, asked });
        }
        let list = self.indexes.list();
        let unique = || list.iter().filter(|index| index.definition.unique && index.defined <= asked);
        if let Some(late) = unique().find(|index| index.is_late()) {
            let name = &late.definition.name;
            return Err(Error::Unavailable(format!("constraint `{name}` is still being filled here")));
        }
        let complete = unique().filter(|index| index.is_complete());
        Ok(complete.map(|index| (index.definition.label, index.definition.key)).collect())
    }

    /// Implements [`Store::fill_indexes`].
    pub fn fill_indexes(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), Error> {
        // After the pin, so that the pinned version is not older than an index of the list.
        let list = self.indexes.list();
        let open: Vec<&Index> = list.iter().filter(|index| !index.is_complete()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let pin = self.pin_published();
        let at = At { version: pin.version(), epoch: Epoch::default() };
        let stopped = AtomicBool::new(false);
        try_parallel(self.partitions.len(), |number| {
            for index in &open {
                if stopped.load(Ordering::Relaxed) || !self.fill(index, at, number, stop)? {
                    stopped.store(true, Ordering::Relaxed);
                    break;
                }
            }
            Ok::<_, Error>(())
        })?;
        if !stopped.into_inner() {
            open.iter().for_each(|index| index.complete());
        }
        Ok(())
    }

    /// Fills one partition's part of an index; returns false if `stop` ended it.
    fn fill(&self, index: &Index, at: At, number: usize, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        let definition = &index.definition;
        let scan = VertexScan {
            labels: vec![vec![definition.label]],
            predicates: vec![PropertyPredicate::any(definition.key, Test::Exists)],
            max_rows: FILLED_AT_ONCE,
        };
        let read = VertexRead { properties: Projection::Keys(vec![definition.key]), ..VertexRead::default() };
        let (mut guis, mut rows) = (Vec::new(), VertexRows::default());
        let mut cursor = ScanCursor { partition: number as u16, ..ScanCursor::default() };
        loop {
            guis.clear();
            rows.clear();
            let mut listed = Listed { out: &mut guis, limit: FILLED_AT_ONCE as usize };
            let next = self.scan_rows(at, &scan, cursor, number + 1, &mut listed)?;
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

    /// Implements [`Store::duplicate`].
    pub fn duplicate(&self, name: &str) -> Result<Option<Duplicate>, Error> {
        let list = self.indexes.list();
        let Some(index) = list.iter().find(|index| index.definition.name == name) else { return Ok(None) };
        let pin = self.pin_published();
        let at = At { version: pin.version(), epoch: Epoch::default() };
        let definition = &index.definition;
        let read = VertexRead {
            ids: true,
            labels: true,
            properties: Projection::Keys(vec![definition.key]),
            meta: false,
        };
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

    /// Answers a scan from indexes if that is cheaper than reading rows.
    pub(super) fn look_up(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        found: &mut impl VertexSink,
    ) -> Result<IndexAnswer, Error> {
        let begins = !from.by_index;
        if begins && (self.indexes.is_empty() || scan.predicates.is_empty()) {
            return Ok(IndexAnswer::Not);
        }
        let list = self.indexes.list();
        let partitions = self.partitions.len();
        let cover = self.indexes.cover(from.cover);
        let (ways, number, cover) = match begins {
            false => (ways_on(&list, scan, at.version, &cover), from.cover, cover),
            true => match begin(&list, scan, at.version, partitions) {
                None => return Ok(IndexAnswer::Not),
                Some((ways, labels)) => match self.indexes.number_of_cover(&labels) {
                    Some(number) => (ways, number, self.indexes.cover(number)),
                    None => return Ok(IndexAnswer::Not),
                },
            },
        };
        self.versions.check(at.version)?;
        let cover = (number > 0).then_some(&*cover);
        let keys = scan.predicates.iter().map(|predicate| predicate.key).collect();
        let want = RowRequest { id: false, properties: &Projection::Keys(keys) };
        let to = |partition: usize, position: u64| {
            let partition = partition as u16;
            IndexAnswer::To(ScanCursor { partition, position, by_index: true, cover: number, ..from })
        };
        let mut position = from.position;
        let mut looked = 0;
        for number in usize::from(from.partition)..partitions {
            let candidates = match candidates(&ways, number, at.version) {
                Some(candidates) => candidates,
                None => self.candidates_without(at, scan, cover, number)?,
            };
            let oldest = self.indexes.reclaimed();
            if at.version < oldest {
                return Err(Error::TooOld { oldest, asked: at.version });
            }
            let start = candidates.partition_point(|gui| gui.0 < position);
            for piece in candidates[start..].chunks(PIECE) {
                self.make_room();
                let reading = self.reading();
                let guard = &reading.epoch;
                let prefetch = |partition: &Partition, slot| partition.prefetch_row(slot, want, guard);
                let mut stopped = None;
                walk(&reading, piece, prefetch, |row, partition, slot| {
                    if found.full() {
                        stopped = Some(piece[row].0);
                        return false;
                    }
                    let seen = slot.and_then(|slot| partition.read_vertex(slot, at.version, want, guard));
                    if seen.is_some_and(|row| passes(&row, scan) && cover.is_none_or(|c| has_any(&row, c))) {
                        found.one(piece[row]);
                    }
                    true
                });
                if let Some(position) = stopped {
                    return Ok(to(number, position));
                }
            }
            position = 0;
            looked += candidates.len() - start;
            if (found.full() || looked >= MOST_LOOKED) && number + 1 < partitions {
                return Ok(to(number + 1, 0));
            }
        }
        Ok(IndexAnswer::All(number))
    }

    /// Returns the vertices of a partition that pass and have a label of the cover, in order of GUI. Used when the
    /// index with which the scan began no longer exists.
    fn candidates_without(
        &self,
        at: At,
        scan: &VertexScan,
        cover: Option<&[Token]>,
        number: usize,
    ) -> Result<Vec<Gui>, Error> {
        let mut scan = scan.clone();
        scan.labels.extend(cover.map(<[Token]>::to_vec));
        let mut guis = Vec::new();
        let mut cursor = ScanCursor { partition: number as u16, ..ScanCursor::default() };
        let mut listed = Listed { out: &mut guis, limit: usize::MAX };
        while let Some(next) = self.scan_rows(at, &scan, cursor, number + 1, &mut listed)? {
            cursor = next;
        }
        guis.sort_unstable();
        Ok(guis)
    }
}

/// How far a look-up in indexes answered a scan.
pub(super) enum IndexAnswer {
    /// Not at all: rows have to be scanned.
    Not,
    /// Up to this cursor.
    To(ScanCursor),
    /// Everything that has a label of this cover; 0 means everything.
    All(u16),
}

/// Indexes over one key that together answer one test for vertices of several labels.
struct AccessPath<'l> {
    indexes: Vec<&'l Index>,
    spans: Vec<Span>,
}

impl<'l> AccessPath<'l> {
    /// Returns the path for vertices of these labels, if each label has an index that answers at the version.
    fn of(list: &'l [Index], predicate: &PropertyPredicate, labels: &[Token], at: Version) -> Option<Self> {
        let index = |label: &Token| {
            let is_it = |index: &&Index| {
                (index.definition.label, index.definition.key) == (*label, predicate.key) && index.answers(at)
            };
            list.iter().find(is_it)
        };
        let indexes = labels.iter().map(index).collect::<Option<Vec<_>>>()?;
        Some(Self { indexes, spans: Span::of(&predicate.test)? })
    }

    /// Returns the number of candidates in one partition up to which checking them is cheaper than reading rows.
    fn most(&self, partitions: usize) -> usize {
        FEW + self.indexes.iter().map(|index| index.len()).sum::<usize>() / partitions / ROWS_PER_CANDIDATE
    }

    /// Appends the candidates of a partition; returns false if there are more than `most`.
    fn candidates(&self, partition: usize, at: Version, most: usize, out: &mut Vec<Gui>) -> bool {
        let pairs = self.indexes.iter().flat_map(|index| self.spans.iter().map(move |span| (index, span)));
        pairs.into_iter().all(|(index, span)| index.candidates(partition, span, at, most, out))
    }
}

/// Returns whether a row has one of the labels.
fn has_any(row: &Row<'_>, labels: &[Token]) -> bool {
    labels.iter().any(|label| row.labels().contains(label))
}

/// Chooses how a scan begins in indexes, if the first partition shows that it is cheaper than reading rows. Returns
/// paths, each of which finds everything that has one of the labels; an empty list of labels stands for everything
/// that passes.
fn begin<'l>(
    list: &'l [Index],
    scan: &VertexScan,
    at: Version,
    partitions: usize,
) -> Option<(Vec<AccessPath<'l>>, Vec<Token>)> {
    let pays = |way: &AccessPath<'_>| way.candidates(0, at, way.most(partitions), &mut Vec::new());
    let whole = ways_on(list, scan, at, &[]);
    if !whole.is_empty() {
        return whole.iter().any(pays).then_some((whole, Vec::new()));
    }
    // Vertices of labels with an index over the key come from the indexes, the others row by row.
    scan.predicates.iter().find_map(|predicate| {
        let of_key = list.iter().filter(|i| i.definition.key == predicate.key && i.answers(at));
        let mut labels: Vec<Token> = of_key.map(|index| index.definition.label).collect();
        labels.sort_unstable();
        labels.dedup();
        let way = AccessPath::of(list, predicate, &labels, at)
            .filter(|way| !way.indexes.is_empty() && pays(way))?;
        Some((vec![way], labels))
    })
}

/// Returns the paths to everything that passes a scan and has a label of the cover; without a cover, to everything
/// that passes.
fn ways_on<'l>(list: &'l [Index], scan: &VertexScan, at: Version, cover: &[Token]) -> Vec<AccessPath<'l>> {
    let way = |predicate, labels: &[Token]| AccessPath::of(list, predicate, labels, at);
    let of = |predicate| -> Vec<AccessPath<'l>> {
        if cover.is_empty() {
            scan.labels.iter().filter_map(|group| way(predicate, group)).collect()
        } else {
            way(predicate, cover).into_iter().collect()
        }
    };
    scan.predicates.iter().flat_map(of).collect()
}

/// Returns the smallest set of candidates that a path has in a partition, sorted and distinct; `None` if there is no
/// path.
fn candidates(ways: &[AccessPath<'_>], partition: usize, at: Version) -> Option<Vec<Gui>> {
    let mut best: Option<Vec<Gui>> = None;
    for way in ways {
        let most = best.as_ref().map_or(usize::MAX, Vec::len);
        let mut guis = Vec::new();
        if way.candidates(partition, at, most, &mut guis) {
            best = Some(guis);
        }
    }
    let mut best = best?;
    best.sort_unstable();
    best.dedup();
    Some(best)
}

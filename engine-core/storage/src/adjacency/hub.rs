//! Adjacency of a vertex with many edges: a directory of chunks in order of label and SID, each of them a block.
//!
//! A chunk holds the entries from its key up to the key of the next one. SIDs grow, so new entries go to the last
//! chunk of their label. If it is full, a new one is started; if the entry belongs in its middle, it is cut in two.
//! One label is read without the chunks of others. Chunks to fold are queued by key.
//!
//! Each chunk has a number, from which a reader that stopped behind the chunk continues. When a chunk is
//! cut, its right part keeps the number: then everything that was in the chunk comes before what follows.
//! A new chunk behind a full one holds only entries that the stopped reader's version does not see.
//!
//! What must never happen: a chunk removed while a readable version sees an entry of it (STO-1).

use super::block::{Block, FoundEntry, Op};
use super::draft::{Draft, Key};
use super::{Ended, Labels, Link, Links, Sink};
use crate::arena::Arena;
use crossbeam_epoch::{Atomic, Guard, Owned};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use tidegraph_types::{Sid, Token, Version};

#[cfg(test)]
thread_local! {
    /// Number of chunks that this thread has looked at.
    pub(super) static CHUNKS_READ: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Smallest spare room of a growing chunk, in operations.
const CHUNK_SLACK: usize = 64;

/// A chunk in the directory. All fields are atomics because the last places are filled while readers hold the
/// directory; readers look only below its length.
#[derive(Default)]
struct Slot {
    sid: AtomicU64,
    label: AtomicU32,
    number: AtomicU32,
    chunk: AtomicU32,
    /// Version of the newest note for this chunk. Only the writer reads it.
    noted: AtomicU64,
}

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    number: u32,
    chunk: u32,
    noted: u64,
}

impl Slot {
    fn key(&self) -> Key {
        (Token(self.label.load(Ordering::Relaxed)), Sid(self.sid.load(Ordering::Relaxed)))
    }

    fn set(&self, entry: Entry) {
        self.sid.store(entry.key.1.0, Ordering::Relaxed);
        self.label.store(entry.key.0.0, Ordering::Relaxed);
        self.number.store(entry.number, Ordering::Relaxed);
        self.noted.store(entry.noted, Ordering::Relaxed);
        self.chunk.store(entry.chunk, Ordering::Release);
    }

    fn get(&self) -> Entry {
        Entry {
            key: self.key(),
            number: self.number.load(Ordering::Relaxed),
            chunk: self.chunk.load(Ordering::Acquire),
            noted: self.noted.load(Ordering::Relaxed),
        }
    }

    /// Moves the chunk into a fresh segment.
    fn relocate(&self, links: &Links, guard: &Guard) {
        let chunk = self.chunk.load(Ordering::Relaxed);
        links.move_block(chunk, guard, |new, _| self.chunk.store(new, Ordering::Release));
    }

    fn block<'g>(&self, arena: &'g Arena, _: &'g Guard) -> Block<'g> {
        let chunk = self.chunk.load(Ordering::Acquire);
        // SAFETY: a chunk is filled before the slot names it and retired after the slot, or the whole directory, was
        // replaced. The guard was pinned before the directory was loaded, so the block outlives it.
        unsafe { Block::at(arena.address(chunk)) }
    }
}

struct Directory {
    slots: Box<[Slot]>,
    len: AtomicUsize,
    /// All labels that ever had an entry here, in order.
    labels: Vec<Token>,
}

impl Directory {
    fn new(entries: &[Entry], labels: Vec<Token>) -> Self {
        let room = entries.len() + entries.len() / 2 + 4;
        let mut slots = Vec::new();
        slots.resize_with(room, Slot::default);
        for (slot, entry) in slots.iter().zip(entries) {
            slot.set(*entry);
        }
        Self { slots: slots.into_boxed_slice(), len: AtomicUsize::new(entries.len()), labels }
    }

    fn slots(&self) -> &[Slot] {
        &self.slots[..self.len.load(Ordering::Acquire)]
    }

    fn entries(&self) -> Vec<Entry> {
        self.slots().iter().map(Slot::get).collect()
    }

    /// Returns the index of the chunk that a key belongs to. The first chunk also takes everything before it.
    fn place(&self, key: Key) -> usize {
        self.slots().partition_point(|slot| slot.key() <= key).saturating_sub(1)
    }

    fn has_label(&self, label: Token) -> bool {
        self.labels.binary_search(&label).is_ok()
    }
}

/// A list of many chunks.
pub(super) struct Hub {
    directory: Atomic<Directory>,
    state: Mutex<HubState>,
}

/// State that only the writer needs.
struct HubState {
    next_number: u32,
    /// Chunks to fold, each by a key within it, in order of versions.
    pending: VecDeque<(Version, Key)>,
}

impl Drop for Hub {
    fn drop(&mut self) {
        let directory = std::mem::replace(&mut self.directory, Atomic::null());
        // SAFETY: `&mut self` proves that no reader is left, and only this hub owns the directory.
        drop(unsafe { directory.try_into_owned() });
    }
}

impl Hub {
    /// Makes a hub of a folded draft.
    pub fn new(links: &Links, mut draft: Draft) -> Self {
        let mut pending: Vec<(Version, Key)> = Vec::new();
        pending.extend(draft.adds.iter().map(|(link, version)| (*version, link.key())));
        pending.extend(draft.ends.iter().map(|(key, version)| (*version, *key)));
        pending.sort_unstable();
        let mut labels: Vec<Token> =
            draft.base.iter().chain(draft.adds.iter().map(|(link, _)| link)).map(|l| l.label).collect();
        labels.sort_unstable();
        labels.dedup();
        let mut state = HubState { next_number: 1, pending: pending.into() };
        let mut entries = Vec::new();
        write_pieces(links, &mut draft, (Token(0), Sid(0)), &mut state, &mut entries);
        Self { directory: Atomic::new(Directory::new(&entries, labels)), state: Mutex::new(state) }
    }

    fn directory<'g>(&self, guard: &'g Guard) -> &'g Directory {
        // SAFETY: there is always a directory, published complete and retired through the epoch.
        unsafe { self.directory.load(Ordering::Acquire, guard).deref() }
    }

    fn replace(&self, entries: &[Entry], labels: Vec<Token>, guard: &Guard) {
        let old = self.directory.swap(Owned::new(Directory::new(entries, labels)), Ordering::AcqRel, guard);
        // SAFETY: no new reader can find the old one.
        unsafe { guard.defer_destroy(old) };
    }

    /// Passes the entries that are visible at a version and have one of the labels to `sink`, starting behind chunk
    /// `after` (0: at the start). Returns the number of the chunk behind which it stopped because the sink is full.
    pub fn read(
        &self,
        arena: &Arena,
        at: Version,
        labels: Labels<'_>,
        after: u32,
        guard: &Guard,
        sink: &mut impl Sink,
    ) -> Option<u32> {
        let directory = self.directory(guard);
        let slots = directory.slots();
        let mut place = match after {
            0 => 0,
            number => 1 + slots.iter().position(|s| s.number.load(Ordering::Relaxed) == number)?,
        };
        while place < slots.len() {
            if let Labels::These(wanted) = labels {
                let first = if place == 0 { Token(0) } else { slots[place].key().0 };
                let next = slots.get(place + 1).map(|slot| slot.key());
                // The last label that the chunk can hold is that of the next chunk, unless the next chunk begins with
                // it.
                let reaches = |label: Token| {
                    next.is_none_or(|(next, sid)| label < next || (label == next && sid > Sid(0)))
                };
                if !wanted.iter().any(|&label| label >= first && reaches(label)) {
                    let later = wanted.iter().copied().filter(|&label| label >= first).min()?;
                    place = directory.place((later, Sid(0))).max(place + 1);
                    continue;
                }
            }
            let slot = &slots[place];
            if let Some(ahead) = slots.get(place + 1) {
                crate::hints::prefetch_address(arena.address(ahead.chunk.load(Ordering::Relaxed)));
            }
            #[cfg(test)]
            CHUNKS_READ.set(CHUNKS_READ.get() + 1);
            let before = sink.len();
            slot.block(arena, guard).read(at, |label| labels.pass(label), |run| sink.take(run));
            place += 1;
            // Not behind a chunk in which this version sees nothing: it may be gone by the next call.
            if sink.full() && sink.len() > before && place < slots.len() {
                return Some(slot.number.load(Ordering::Relaxed));
            }
        }
        None
    }

    /// Finds the entry of a SID, ended or not, with the index of its chunk.
    fn locate(
        &self,
        arena: &Arena,
        sid: Sid,
        label: Option<Token>,
        guard: &Guard,
    ) -> Option<(usize, FoundEntry)> {
        let directory = self.directory(guard);
        let look = |label: Token| {
            let place = directory.place((label, sid));
            let found = directory.slots()[place].block(arena, guard).find(sid)?;
            (found.link.label == label).then_some((place, found))
        };
        // The caller usually knows the label.
        label
            .filter(|label| directory.has_label(*label))
            .and_then(look)
            .or_else(|| directory.labels.iter().copied().find_map(look))
    }

    /// Finds the entry of a SID, ended or not.
    pub fn find(&self, arena: &Arena, sid: Sid, label: Option<Token>, guard: &Guard) -> Option<FoundEntry> {
        self.locate(arena, sid, label, guard).map(|(_, found)| found)
    }

    fn note(&self, slot: &Slot, version: Version, key: Key) {
        if slot.noted.swap(version.0, Ordering::Relaxed) != version.0 {
            self.state.lock().pending.push_back((version, key));
        }
    }

    /// Replaces the block of a chunk.
    fn exchange(&self, links: &Links, slot: &Slot, old: &Block<'_>, new: u32, guard: &Guard) {
        let before = slot.chunk.swap(new, Ordering::AcqRel);
        links.arena.retire(before, old.shape.granules(), guard);
    }

    /// Adds an entry at a version.
    pub fn push(&self, links: &Links, link: Link, version: Version, oldest: Version, guard: &Guard) {
        let directory = self.directory(guard);
        let key = link.key();
        let place = directory.place(key);
        let slot = &directory.slots()[place];
        let block = slot.block(&links.arena, guard);
        let used = block.tail.map_or(0, |tail| tail.ops().len());
        let fits = block.neighbours.len() + used < links.chunk;
        if fits
            && directory.has_label(link.label)
            && block.tail.is_some_and(|t| t.push(Op::add(link, version)))
        {
            self.note(slot, version, key);
            return;
        }
        if !directory.has_label(link.label) {
            let mut labels = directory.labels.clone();
            labels.insert(labels.partition_point(|label| *label < link.label), link.label);
            self.replace(&directory.entries(), labels, guard);
            return self.push(links, link, version, oldest, guard);
        }
        let mut draft = Draft::default();
        draft.take(&block);
        let last = draft.base.last().map(Link::key).max(draft.adds.iter().map(|(l, _)| l.key()).max());
        if draft.len() >= links.chunk && last < Some(key) {
            let mut right = Draft { adds: vec![(link, version)], ..Draft::default() };
            right.fold(oldest);
            let mut state = self.state.lock();
            let chunk = right.write(&links.arena, CHUNK_SLACK, links.compacting());
            let entry = Entry { key, number: state.number(), chunk, noted: version.0 };
            // The full chunk is rewritten once, without spare room.
            state.pending.push_back((version, slot.key()));
            state.pending.push_back((version, key));
            drop(state);
            let used = directory.slots().len();
            if place + 1 == used && used < directory.slots.len() {
                directory.slots[used].set(entry);
                directory.len.store(used + 1, Ordering::Release);
            } else {
                let mut entries = directory.entries();
                entries.insert(place + 1, entry);
                self.replace(&entries, directory.labels.clone(), guard);
            }
            return;
        }
        draft.adds.push((link, version));
        draft.fold(oldest);
        if draft.len() <= links.chunk {
            let more = CHUNK_SLACK.max(draft.len() / 4);
            self.exchange(links, slot, &block, draft.write(&links.arena, more, links.compacting()), guard);
            self.note(slot, version, key);
        } else {
            self.cut(links, directory, place, &mut draft, version, guard);
        }
    }

    /// Replaces a chunk by the pieces of a draft.
    fn cut(
        &self,
        links: &Links,
        directory: &Directory,
        place: usize,
        draft: &mut Draft,
        version: Version,
        guard: &Guard,
    ) {
        let old = directory.slots()[place].get();
        let granules = directory.slots()[place].block(&links.arena, guard).shape.granules();
        let mut entries = directory.entries();
        let mut pieces = Vec::new();
        let mut state = self.state.lock();
        write_pieces(links, draft, old.key, &mut state, &mut pieces);
        // Earlier notes name only one of the pieces, so each gets a note that comes after all of its operations.
        for piece in &mut pieces {
            state.pending.push_back((version, piece.key));
            piece.noted = version.0;
        }
        drop(state);
        if let Some(last) = pieces.last_mut() {
            last.number = old.number;
        }
        entries.splice(place..=place, pieces);
        self.replace(&entries, directory.labels.clone(), guard);
        links.arena.retire(old.chunk, granules, guard);
    }

    /// Adds entries, in order of their keys.
    pub fn push_all(&self, links: &Links, new: &[Link], version: Version, oldest: Version, guard: &Guard) {
        let directory = self.directory(guard);
        let mut labels = directory.labels.clone();
        for run in new.chunk_by(|a, b| a.label == b.label) {
            if let Err(at) = labels.binary_search(&run[0].label) {
                labels.insert(at, run[0].label);
            }
        }
        let slots = directory.slots();
        let (mut entries, mut retired) = (Vec::with_capacity(slots.len()), Vec::new());
        let mut rest = new;
        let mut state = self.state.lock();
        for (place, slot) in slots.iter().enumerate() {
            let entry = slot.get();
            let here = match slots.get(place + 1) {
                Some(next) => rest.partition_point(|link| link.key() < next.key()),
                None => rest.len(),
            };
            let (some, after) = rest.split_at(here);
            rest = after;
            if some.is_empty() {
                if links.compacting() {
                    let (chunk, granules) = links.copy_block(entry.chunk, guard);
                    retired.push((entry.chunk, granules));
                    entries.push(Entry { chunk, ..entry });
                } else {
                    entries.push(entry);
                }
                continue;
            }
            let block = slot.block(&links.arena, guard);
            let mut draft = Draft::default();
            draft.take(&block);
            draft.adds.extend(some.iter().map(|link| (*link, version)));
            draft.fold(oldest);
            retired.push((entry.chunk, block.shape.granules()));
            let start = entries.len();
            write_pieces(links, &mut draft, entry.key, &mut state, &mut entries);
            // Each piece needs a look once the version is old.
            for piece in &mut entries[start..] {
                state.pending.push_back((version, piece.key));
                piece.noted = version.0;
            }
            if let Some(last) = entries.last_mut() {
                last.number = entry.number;
            }
        }
        drop(state);
        self.replace(&entries, labels, guard);
        for (chunk, granules) in retired {
            links.arena.retire(chunk, granules, guard);
        }
    }

    /// Ends an entry at a version; returns `None` if there is no live one.
    pub fn end(
        &self,
        links: &Links,
        sid: Sid,
        label: Token,
        version: Version,
        oldest: Version,
        guard: &Guard,
    ) -> Option<Ended> {
        let (place, found) = self.locate(&links.arena, sid, Some(label), guard)?;
        if !found.live() {
            return None;
        }
        let key = found.link.key();
        let slot = &self.directory(guard).slots()[place];
        let block = slot.block(&links.arena, guard);
        if !block.tail.is_some_and(|tail| tail.push(Op::end(found.place, key.0, sid, version))) {
            let mut draft = Draft::default();
            draft.take(&block);
            draft.ends.push((key, version));
            draft.fold(oldest);
            let more = CHUNK_SLACK.max((draft.adds.len() + draft.ends.len()) / 2);
            self.exchange(links, slot, &block, draft.write(&links.arena, more, links.compacting()), guard);
        }
        self.note(slot, version, key);
        Some(if found.begin == version { Ended::Gone } else { Ended::Kept })
    }

    /// Folds the chunks that have notes of versions up to `oldest`. Returns true if no entry is left.
    pub fn fold(&self, links: &Links, oldest: Version, exact: bool, guard: &Guard) -> bool {
        let mut due: Vec<Key> = Vec::new();
        let mut state = self.state.lock();
        while let Some((_, key)) = state.pending.front().copied().filter(|(version, _)| *version <= oldest) {
            state.pending.pop_front();
            due.push(key);
        }
        let waits = !state.pending.is_empty();
        if !waits {
            state.pending.shrink_to(16);
        }
        drop(state);
        let directory = self.directory(guard);
        due.sort_unstable();
        let mut places: Vec<usize> = due.iter().map(|key| directory.place(*key)).collect();
        places.dedup();
        if exact && links.compacting() {
            // Moves the other chunks together as well.
            for (place, slot) in directory.slots().iter().enumerate() {
                if places.binary_search(&place).is_err() {
                    slot.relocate(links, guard);
                }
            }
        }
        let mut empty = Vec::new();
        for place in places {
            let slot = &directory.slots()[place];
            let block = slot.block(&links.arena, guard);
            let mut draft = Draft::default();
            if !links.is_due_to_fold(&block, oldest, exact, &mut draft) {
                continue;
            }
            if draft.len() == 0 {
                empty.push(place);
                continue;
            }
            let more = if draft.adds.len() + draft.ends.len() > 0 { CHUNK_SLACK } else { 0 };
            self.exchange(links, slot, &block, draft.write(&links.arena, more, links.compacting()), guard);
        }
        if empty.is_empty() {
            return false;
        }
        if empty.len() == directory.slots().len() {
            return true;
        }
        let mut entries = directory.entries();
        let mut gone = Vec::new();
        let mut place = 0;
        entries.retain(|entry| {
            let goes = empty.binary_search(&place).is_ok();
            if goes {
                gone.push((
                    entry.chunk,
                    directory.slots()[place].block(&links.arena, guard).shape.granules(),
                ));
            }
            place += 1;
            !goes
        });
        self.replace(&entries, directory.labels.clone(), guard);
        for (chunk, granules) in gone {
            links.arena.retire(chunk, granules, guard);
        }
        false
    }

    /// Moves all chunks into fresh segments.
    pub fn relocate(&self, links: &Links, guard: &Guard) {
        self.directory(guard).slots().iter().for_each(|slot| slot.relocate(links, guard));
    }

    /// Retires all chunks of a hub that no new reader can find.
    pub fn retire_chunks(&self, links: &Links, guard: &Guard) {
        for slot in self.directory(guard).slots() {
            let granules = slot.block(&links.arena, guard).shape.granules();
            links.arena.retire(slot.chunk.load(Ordering::Relaxed), granules, guard);
        }
    }

    /// Returns the bytes of the hub without its chunks.
    pub fn bytes(&self, guard: &Guard) -> usize {
        let directory = self.directory(guard);
        size_of::<Self>()
            + directory.slots.len() * size_of::<Slot>()
            + directory.labels.capacity() * 4
            + self.state.lock().pending.capacity() * size_of::<(Version, Key)>()
    }

    #[cfg(test)]
    pub fn chunks(&self, guard: &Guard) -> usize {
        self.directory(guard).slots().len()
    }
}

impl HubState {
    fn number(&mut self) -> u32 {
        let number = self.next_number;
        // Numbers repeat only after four billion cuts of one hub.
        self.next_number = self.next_number.checked_add(1).unwrap_or(1);
        number
    }
}

/// Writes a draft as chunks, the first of which begins at `first`.
fn write_pieces(
    links: &Links,
    draft: &mut Draft,
    first: Key,
    state: &mut HubState,
    entries: &mut Vec<Entry>,
) {
    let cuts = draft.cuts(links.chunk);
    let mut pieces: Vec<(Key, Draft)> = Vec::with_capacity(cuts.len());
    for cut in cuts.iter().rev() {
        pieces.push((*cut, draft.split_off(*cut)));
    }
    let mut write = |key: Key, draft: &mut Draft| {
        let chunk = draft.write(&links.arena, 0, links.compacting());
        entries.push(Entry { key, number: state.number(), chunk, noted: 0 });
    };
    write(first, draft);
    for (key, piece) in pieces.iter_mut().rev() {
        write(*key, piece);
    }
}

//! A block of adjacency: the layout of its words, and reading it at a version.
//!
//! | words | what |
//! |---|---|
//! | 1 | number of base entries; their label, or the number of runs if they have several labels |
//! | 1 | least SID (56 bits) and flags |
//! | 0 or 1 | version that the base entries begin at; left out if all readers may see them |
//! | runs | label and end of each run, if there are several |
//! | entries | neighbours, in order of label and SID |
//! | entries / 2 | differences of SIDs to the least one, 32 bits each; 64 bits if they do not fit |
//! | 0 or 1 | room of the tail, and the part of it in use |
//! | 4 each | the tail: entries added and entries ended, each with its version |
//!
//! Everything but the tail is written before the block is published and never again. The writer puts an operation
//! behind the end of the tail and then moves the end past it (Release). Readers look only up to the end that they
//! loaded.

use super::Link;
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use tidegraph_types::{Gui, Sid, Token, Version};

pub(super) const WIDE: u64 = 1;
pub(super) const RUNS: u64 = 2;
pub(super) const BEGIN: u64 = 4;
pub(super) const TAIL: u64 = 8;
pub(super) const SID_BITS: u32 = 56;
pub(super) const SID_MASK: u64 = (1 << SID_BITS) - 1;
/// Words of an operation.
const OP_WORDS: usize = 4;
/// Kind of an operation that ends an entry.
const ENDS: u32 = 1;

/// End version of an entry that has not ended.
pub(crate) const NEVER: Version = Version(u64::MAX);

/// Size and flags of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub entries: usize,
    /// Number of runs; a block with one run needs no table.
    pub runs: usize,
    pub wide: bool,
    pub begin: bool,
    pub tail: usize,
}

impl Shape {
    fn table_words(self) -> usize {
        if self.runs > 1 { self.runs } else { 0 }
    }

    fn head_words(self) -> usize {
        2 + usize::from(self.begin) + self.table_words()
    }

    fn sid_words(self) -> usize {
        if self.wide { self.entries } else { self.entries.div_ceil(2) }
    }

    fn words(self) -> usize {
        let tail = if self.tail > 0 { 1 + self.tail * OP_WORDS } else { 0 };
        self.head_words() + self.entries + self.sid_words() + tail
    }

    pub fn granules(self) -> u32 {
        self.words().div_ceil(crate::arena::GRANULE_WORDS) as u32
    }
}

/// SIDs of a run of entries, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sids<'b> {
    Narrow { least: u64, above: &'b [u32] },
    Wide(&'b [u64]),
}

impl Sids<'_> {
    #[inline]
    pub fn get(&self, index: usize) -> Sid {
        match self {
            Self::Narrow { least, above } => Sid(least + u64::from(above[index])),
            Self::Wide(sids) => Sid(sids[index]),
        }
    }

    /// Appends all of them to a column.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<Sid>) {
        match self {
            Self::Narrow { least, above } => {
                out.extend(above.iter().map(|above| Sid(least + u64::from(*above))));
            }
            Self::Wide(sids) => out.extend(sids.iter().map(|sid| Sid(*sid))),
        }
    }

    fn slice(&self, from: usize, to: usize) -> Self {
        match self {
            Self::Narrow { least, above } => Self::Narrow { least: *least, above: &above[from..to] },
            Self::Wide(sids) => Self::Wide(&sids[from..to]),
        }
    }

    fn position(&self, sid: Sid) -> Option<usize> {
        match self {
            Self::Narrow { least, above } => {
                let above_least = u32::try_from(sid.0.checked_sub(*least)?).ok()?;
                above.binary_search(&above_least).ok()
            }
            Self::Wide(sids) => sids.binary_search(&sid.0).ok(),
        }
    }
}

/// Visible entries of one label, in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'b> {
    pub label: Token,
    pub neighbours: &'b [u64],
    pub sids: Sids<'b>,
}

impl Run<'_> {
    /// Returns the entries one by one.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        self.neighbours.iter().enumerate().map(|(index, &neighbour)| Link {
            neighbour: Gui(neighbour),
            sid: self.sids.get(index),
            label: self.label,
        })
    }
}

/// An operation of a tail.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Op {
    /// The neighbour of an entry that is added, or the index of the one that ends. Indexes count base entries first,
    /// then the operations of the tail.
    pub what: u64,
    pub sid: u64,
    pub version: u64,
    pub label: u32,
    kind: u32,
}

const _: () = assert!(size_of::<Op>() == OP_WORDS * 8);

impl Op {
    pub fn add(link: Link, version: Version) -> Self {
        let Link { neighbour, sid, label } = link;
        Self { what: neighbour.0, sid: sid.0, version: version.0, label: label.0, kind: 0 }
    }

    pub fn end(place: usize, label: Token, sid: Sid, version: Version) -> Self {
        Self { what: place as u64, sid: sid.0, version: version.0, label: label.0, kind: ENDS }
    }

    pub fn ends(&self) -> bool {
        self.kind == ENDS
    }

    pub fn link(&self) -> Link {
        Link { neighbour: Gui(self.what), sid: Sid(self.sid), label: Token(self.label) }
    }
}

/// The part of a block that grows.
#[derive(Clone, Copy)]
pub(super) struct Tail<'b> {
    end: &'b AtomicU32,
    pub room: usize,
    ops: *mut Op,
}

impl<'b> Tail<'b> {
    pub fn ops(&self) -> &'b [Op] {
        let length = self.end.load(Ordering::Acquire) as usize;
        // SAFETY: the operations up to the end were written before the end moved past them, and do not change while
        // the block lives.
        unsafe { std::slice::from_raw_parts(self.ops, length) }
    }

    /// Appends an operation; returns false if there is no room. Only the writer calls it.
    pub fn push(&self, op: Op) -> bool {
        let length = self.end.load(Ordering::Relaxed);
        if length as usize >= self.room {
            return false;
        }
        // SAFETY: within the room, and no reader looks past the end.
        unsafe { self.ops.add(length as usize).write(op) };
        self.end.store(length + 1, Ordering::Release);
        true
    }
}

/// An entry, its index, and the versions between which it is visible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundEntry {
    pub link: Link,
    pub begin: Version,
    pub end: Version,
    pub(super) place: usize,
}

impl FoundEntry {
    pub fn visible(&self, at: Version) -> bool {
        self.begin <= at && at < self.end
    }

    /// Returns whether nothing has ended the entry.
    pub fn live(&self) -> bool {
        self.end == NEVER
    }
}

/// A block in readable form.
#[derive(Clone, Copy)]
pub(super) struct Block<'b> {
    /// The label of all entries; or the table of runs, with label and end of each.
    single: Token,
    table: &'b [[u32; 2]],
    pub neighbours: &'b [u64],
    pub sids: Sids<'b>,
    pub begin: Version,
    pub tail: Option<Tail<'b>>,
    pub shape: Shape,
    life: PhantomData<&'b ()>,
}

impl<'b> Block<'b> {
    /// # Safety
    ///
    /// `words` is the start of a block that [`write`] has filled and that is not filled again during `'b`.
    #[inline]
    pub unsafe fn at(words: *mut u64) -> Self {
        // SAFETY: the caller promises that the words exist, are initialised, and do not change except in the tail;
        // the lengths are those that `write` wrote. The end of the tail is only accessed as an atomic.
        unsafe {
            let (first, second) = (*words, *words.add(1));
            let (entries, label) = (first as u32 as usize, (first >> 32) as u32);
            let (least, flags) = (second & SID_MASK, second >> SID_BITS);
            let shape = Shape {
                entries,
                runs: if flags & RUNS != 0 { label as usize } else { 1 },
                wide: flags & WIDE != 0,
                begin: flags & BEGIN != 0,
                tail: 0,
            };
            let mut next = words.add(2);
            let mut begin = Version(0);
            if shape.begin {
                begin = Version(*next);
                next = next.add(1);
            }
            let table = std::slice::from_raw_parts(next.cast::<[u32; 2]>(), shape.table_words());
            next = next.add(table.len());
            let neighbours = std::slice::from_raw_parts(next.cast_const(), entries);
            next = next.add(entries);
            let sids = if shape.wide {
                Sids::Wide(std::slice::from_raw_parts(next.cast_const(), entries))
            } else {
                Sids::Narrow { least, above: std::slice::from_raw_parts(next.cast::<u32>(), entries) }
            };
            next = next.add(shape.sid_words());
            let tail = (flags & TAIL != 0).then(|| Tail {
                room: *next.cast::<u32>() as usize,
                end: AtomicU32::from_ptr(next.cast::<u32>().add(1)),
                ops: next.add(1).cast(),
            });
            let shape = Shape { tail: tail.map_or(0, |tail| tail.room), ..shape };
            Self { single: Token(label), table, neighbours, sids, begin, tail, shape, life: PhantomData }
        }
    }

    /// Returns label, start and end of each run of base entries.
    #[inline]
    pub fn runs(&self) -> impl Iterator<Item = (Token, usize, usize)> {
        let several = self.table.iter().scan(0, |start, &[label, end]| {
            let from = std::mem::replace(start, end as usize);
            Some((Token(label), from, end as usize))
        });
        let single = self.table.is_empty().then_some((self.single, 0, self.neighbours.len()));
        single.into_iter().chain(several)
    }

    #[inline]
    fn slice(&self, label: Token, from: usize, to: usize) -> Run<'b> {
        Run { label, neighbours: &self.neighbours[from..to], sids: self.sids.slice(from, to) }
    }

    /// STO-1: passes on exactly the entries that are visible at a version and whose label passes.
    #[inline]
    pub fn read(&self, at: Version, passes: impl Fn(Token) -> bool, mut visit: impl FnMut(Run<'_>)) {
        let Some(tail) = self.tail else {
            // Nothing has changed since it was folded.
            if self.begin <= at {
                if self.table.is_empty() {
                    if passes(self.single) && !self.neighbours.is_empty() {
                        visit(Run { label: self.single, neighbours: self.neighbours, sids: self.sids });
                    }
                } else {
                    self.runs()
                        .filter(|(label, ..)| passes(*label))
                        .for_each(|(label, from, to)| visit(self.slice(label, from, to)));
                }
            }
            return;
        };
        let ops = tail.ops();
        let mut dead: SmallVec<[usize; 16]> = SmallVec::new();
        dead.extend(ops.iter().filter(|op| op.ends() && op.version <= at.0).map(|op| op.what as usize));
        dead.sort_unstable();
        if self.begin <= at && !self.neighbours.is_empty() {
            for (label, from, to) in self.runs() {
                if !passes(label) {
                    continue;
                }
                let mut start = from;
                if !dead.is_empty() {
                    let first = dead.partition_point(|&place| place < from);
                    for &place in dead[first..].iter().take_while(|&&place| place < to) {
                        if start < place {
                            visit(self.slice(label, start, place));
                        }
                        start = place + 1;
                    }
                }
                if start < to {
                    visit(self.slice(label, start, to));
                }
            }
        }
        for (index, op) in ops.iter().enumerate() {
            if !op.ends()
                && op.version <= at.0
                && passes(Token(op.label))
                && (dead.is_empty() || dead.binary_search(&(self.neighbours.len() + index)).is_err())
            {
                visit(Run {
                    label: Token(op.label),
                    neighbours: std::slice::from_ref(&op.what),
                    sids: Sids::Wide(std::slice::from_ref(&op.sid)),
                });
            }
        }
    }

    /// Finds the entry of a SID, ended or not.
    pub fn find(&self, sid: Sid) -> Option<FoundEntry> {
        let ops = self.tail.map_or(&[][..], |tail| tail.ops());
        let base = self.runs().find_map(|(label, from, to)| {
            let place = from + self.sids.slice(from, to).position(sid)?;
            let link = Link { neighbour: Gui(self.neighbours[place]), sid, label };
            Some(FoundEntry { link, begin: self.begin, end: NEVER, place })
        });
        let mut found = base.or_else(|| {
            let index = ops.iter().position(|op| !op.ends() && op.sid == sid.0)?;
            let op = ops[index];
            let place = self.neighbours.len() + index;
            Some(FoundEntry { link: op.link(), begin: Version(op.version), end: NEVER, place })
        })?;
        if let Some(end) = ops.iter().find(|op| op.ends() && op.what as usize == found.place) {
            found.end = Version(end.version);
        }
        Some(found)
    }
}

/// Fills a block. The entries are in order of label and SID.
///
/// # Safety
///
/// The words from `words` on, as many as the shape takes, belong to the caller alone.
pub(super) unsafe fn write(
    words: *mut u64,
    shape: Shape,
    least: u64,
    begin: Version,
    entries: &[Link],
    ops: &[Op],
) {
    debug_assert!(shape.entries == entries.len() && shape.tail >= ops.len());
    let mut flags = 0;
    for (flag, set) in
        [(WIDE, shape.wide), (RUNS, shape.runs > 1), (BEGIN, shape.begin), (TAIL, shape.tail > 0)]
    {
        flags |= if set { flag } else { 0 };
    }
    let label = if shape.runs > 1 { shape.runs as u32 } else { entries.first().map_or(0, |e| e.label.0) };
    // SAFETY: every write is within the words of the shape, which are the caller's.
    unsafe {
        *words = entries.len() as u64 | u64::from(label) << 32;
        *words.add(1) = least | flags << SID_BITS;
        let mut next = words.add(2);
        if shape.begin {
            *next = begin.0;
            next = next.add(1);
        }
        if shape.runs > 1 {
            let mut end = 0;
            for run in entries.chunk_by(|a, b| a.label == b.label) {
                end += run.len() as u32;
                next.cast::<[u32; 2]>().write([run[0].label.0, end]);
                next = next.add(1);
            }
        }
        for entry in entries {
            *next = entry.neighbour.0;
            next = next.add(1);
        }
        if shape.wide {
            for (index, entry) in entries.iter().enumerate() {
                *next.add(index) = entry.sid.0;
            }
        } else {
            for (index, entry) in entries.iter().enumerate() {
                *next.cast::<u32>().add(index) = (entry.sid.0 - least) as u32;
            }
        }
        next = next.add(shape.sid_words());
        if shape.tail > 0 {
            *next.cast::<u32>() = shape.tail as u32;
            *next.cast::<u32>().add(1) = ops.len() as u32;
            let to: *mut Op = next.add(1).cast();
            for (index, op) in ops.iter().enumerate() {
                to.add(index).write(*op);
            }
        }
    }
}

//! A decomposed list, which is changed and then written as new blocks.
//!
//! Folding reclaims versions: an entry that every reader may see joins the base, an entry that no reader can see is
//! dropped. Entries of a load join base entries of the same load, whatever can be read.

use super::Link;
use super::block::{self, Block, Op, Shape};
use crate::arena::Arena;
use tidegraph_types::{Sid, Token, Version};

/// Sort key of entries.
pub(super) type Key = (Token, Sid);

impl Link {
    #[inline]
    pub(super) fn key(&self) -> Key {
        (self.label, self.sid)
    }
}

/// Returns the index of an entry among added ones, which are in order of their keys.
fn find_add(adds: &[(Link, Version)], key: Key) -> Option<usize> {
    adds.binary_search_by_key(&key, |(link, _)| link.key()).ok()
}

/// The entries of a list, base and tail.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Base entries in order of their keys.
    pub base: Vec<Link>,
    /// Version that the base entries begin at.
    pub begin: Version,
    pub adds: Vec<(Link, Version)>,
    pub ends: Vec<(Key, Version)>,
}

impl Draft {
    /// Adds the content of a block.
    pub fn take(&mut self, block: &Block<'_>) {
        self.begin = block.begin;
        self.base.reserve(block.neighbours.len() + 1);
        for (label, from, to) in block.runs() {
            self.base.extend((from..to).map(|index| Link {
                neighbour: tidegraph_types::Gui(block.neighbours[index]),
                sid: block.sids.get(index),
                label,
            }));
        }
        for op in block.tail.map_or(&[][..], |tail| tail.ops()) {
            if op.ends() {
                self.ends.push(((Token(op.label), Sid(op.sid)), Version(op.version)));
            } else {
                self.adds.push((op.link(), Version(op.version)));
            }
        }
    }

    /// Returns the number of entries, ended ones included.
    pub fn len(&self) -> usize {
        self.base.len() + self.adds.len()
    }

    /// STO-1: merges entries into the base, and drops ended ones, as far as no reader from `oldest` on sees a
    /// difference.
    pub fn fold(&mut self, oldest: Version) {
        if !self.ends.is_empty() {
            self.drop_ended(oldest);
        }
        let level = |version: Version| if version <= oldest { Version(0) } else { version };
        self.begin = match self.base.first() {
            Some(_) => level(self.begin),
            // There is no base yet. Start it with the oldest entries, which are probably the most.
            None => self.adds.iter().map(|(_, version)| level(*version)).min().unwrap_or_default(),
        };
        let before = self.base.len();
        let (base, begin) = (&mut self.base, self.begin);
        self.adds.retain(|(link, version)| {
            let joins = level(*version) == begin;
            if joins {
                base.push(*link);
            }
            !joins
        });
        if base.len() > before {
            let in_order = base[before.saturating_sub(1)..].is_sorted_by_key(Link::key);
            if !in_order {
                // Stable, because it is fast on runs that are in order already.
                base.sort_by_key(Link::key);
            }
        }
    }

    fn drop_ended(&mut self, oldest: Version) {
        self.adds.sort_unstable_by_key(|(link, _)| link.key());
        let (base, begin, adds) = (&self.base, self.begin, &self.adds);
        let mut gone: Vec<Key> = Vec::new();
        self.ends.retain(|(key, version)| {
            let goes = *version <= oldest || {
                // An entry that began and ended at the same version is visible to no reader.
                let begun = match base.binary_search_by_key(key, Link::key) {
                    Ok(_) => Some(begin),
                    Err(_) => find_add(adds, *key).map(|index| adds[index].1),
                };
                begun == Some(*version)
            };
            if goes {
                gone.push(*key);
            }
            !goes
        });
        if gone.is_empty() {
            return;
        }
        gone.sort_unstable();
        let keep = |link: &Link| gone.binary_search(&link.key()).is_err();
        self.base.retain(keep);
        self.adds.retain(|(link, _)| keep(link));
    }

    /// Splits off the entries from a key on.
    pub fn split_off(&mut self, key: Key) -> Self {
        let at = self.base.partition_point(|link| link.key() < key);
        let mut right = Self { base: self.base.split_off(at), begin: self.begin, ..Self::default() };
        (right.adds, self.adds) = self.adds.drain(..).partition(|(link, _)| link.key() >= key);
        (right.ends, self.ends) = self.ends.drain(..).partition(|(end, _)| *end >= key);
        right
    }

    /// Returns the keys at which to cut into pieces of about equal size, none larger than `most` entries. The first
    /// piece has no key.
    pub fn cuts(&self, most: usize) -> Vec<Key> {
        let pieces = self.len().div_ceil(most);
        if pieces < 2 {
            return Vec::new();
        }
        let mut keys: Vec<Key> = self.base.iter().map(Link::key).collect();
        keys.extend(self.adds.iter().map(|(link, _)| link.key()));
        keys.sort_unstable();
        (1..pieces).map(|piece| keys[piece * keys.len() / pieces]).collect()
    }

    /// Writes the draft as a block with room for `more` operations, in a `fresh` segment or anywhere.
    pub fn write(&mut self, arena: &Arena, more: usize, fresh: bool) -> u32 {
        let (mut least, mut most) = (u64::MAX, 0);
        for link in &self.base {
            (least, most) = (least.min(link.sid.0), most.max(link.sid.0));
        }
        let least = if self.base.is_empty() { 0 } else { least };
        let shape = Shape {
            entries: self.base.len(),
            runs: self.base.chunk_by(|a, b| a.label == b.label).count().max(1),
            wide: most.saturating_sub(least) > u64::from(u32::MAX),
            begin: self.begin > Version(0),
            tail: self.adds.len() + self.ends.len() + more,
        };
        if !self.ends.is_empty() {
            self.adds.sort_unstable_by_key(|(link, _)| link.key());
        }
        let mut ops: Vec<Op> = Vec::with_capacity(self.adds.len() + self.ends.len());
        ops.extend(self.adds.iter().map(|(link, version)| Op::add(*link, *version)));
        for ((label, sid), version) in &self.ends {
            let key = (*label, *sid);
            let place = self
                .base
                .binary_search_by_key(&key, Link::key)
                .ok()
                .or_else(|| Some(self.base.len() + find_add(&self.adds, key)?));
            debug_assert!(place.is_some(), "what ends is there: {key:?}");
            if let Some(place) = place {
                ops.push(Op::end(place, *label, *sid, *version));
            }
        }
        let granules = shape.granules();
        let block = arena.allocate(granules, fresh);
        // SAFETY: the arena has just allocated the block with this size, and nobody else knows it.
        unsafe { block::write(arena.address(block), shape, least, self.begin, &self.base, &ops) };
        block
    }
}

//! A list taken apart, to be changed and put together again as new blocks.
//!
//! Folding is what makes versions go: an entry that every reader may see joins the settled ones, an entry that no
//! reader can see is left out. What a load adds joins settled entries of the same load, whatever can be read.

use super::Link;
use super::block::{self, Block, Op, Shape};
use crate::arena::Arena;
use tidegraph_types::{Sid, Token, Version};

/// Order of entries.
pub(super) type Key = (Token, Sid);

impl Link {
    #[inline]
    pub(super) fn key(&self) -> Key {
        (self.label, self.sid)
    }
}

/// Index of an entry among added ones in order of their keys.
fn find_add(adds: &[(Link, Version)], key: Key) -> Option<usize> {
    adds.binary_search_by_key(&key, |(link, _)| link.key()).ok()
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// In order of their keys.
    pub settled: Vec<Link>,
    /// What the settled ones begin at.
    pub begin: Version,
    pub adds: Vec<(Link, Version)>,
    pub ends: Vec<(Key, Version)>,
}

impl Draft {
    /// Takes over what a block has.
    pub fn take(&mut self, block: &Block<'_>) {
        self.begin = block.begin;
        self.settled.reserve(block.neighbours.len() + 1);
        for (label, from, to) in block.runs() {
            self.settled.extend((from..to).map(|index| Link {
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

    /// Entries, ended ones among them.
    pub fn len(&self) -> usize {
        self.settled.len() + self.adds.len()
    }

    /// Joins and leaves out what readers from `oldest` on allow. See the module.
    pub fn fold(&mut self, oldest: Version) {
        if !self.ends.is_empty() {
            self.drop_ended(oldest);
        }
        let level = |version: Version| if version <= oldest { Version(0) } else { version };
        self.begin = match self.settled.first() {
            Some(_) => level(self.begin),
            // Nothing settled yet: begin with those that most probably are the most.
            None => self.adds.iter().map(|(_, version)| level(*version)).min().unwrap_or_default(),
        };
        let before = self.settled.len();
        let (settled, begin) = (&mut self.settled, self.begin);
        self.adds.retain(|(link, version)| {
            let joins = level(*version) == begin;
            if joins {
                settled.push(*link);
            }
            !joins
        });
        if settled.len() > before {
            let in_order = settled[before.saturating_sub(1)..].is_sorted_by_key(Link::key);
            if !in_order {
                // Stable: made for runs that are in order already.
                settled.sort_by_key(Link::key);
            }
        }
    }

    fn drop_ended(&mut self, oldest: Version) {
        self.adds.sort_unstable_by_key(|(link, _)| link.key());
        let (settled, begin, adds) = (&self.settled, self.begin, &self.adds);
        let mut gone: Vec<Key> = Vec::new();
        self.ends.retain(|(key, version)| {
            let goes = *version <= oldest || {
                // Begun and ended by one version: no reader can be between.
                let begun = match settled.binary_search_by_key(key, Link::key) {
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
        self.settled.retain(keep);
        self.adds.retain(|(link, _)| keep(link));
    }

    /// Cuts off the entries from a key on.
    pub fn split_off(&mut self, key: Key) -> Self {
        let at = self.settled.partition_point(|link| link.key() < key);
        let mut right = Self { settled: self.settled.split_off(at), begin: self.begin, ..Self::default() };
        (right.adds, self.adds) = self.adds.drain(..).partition(|(link, _)| link.key() >= key);
        (right.ends, self.ends) = self.ends.drain(..).partition(|(end, _)| *end >= key);
        right
    }

    /// The keys at which pieces of about equal size begin, none larger than `most`; not the first one.
    pub fn cuts(&self, most: usize) -> Vec<Key> {
        let pieces = self.len().div_ceil(most);
        if pieces < 2 {
            return Vec::new();
        }
        let mut keys: Vec<Key> = self.settled.iter().map(Link::key).collect();
        keys.extend(self.adds.iter().map(|(link, _)| link.key()));
        keys.sort_unstable();
        (1..pieces).map(|piece| keys[piece * keys.len() / pieces]).collect()
    }

    /// A block of this, with room for `more` operations, in a `fresh` segment or anywhere.
    pub fn write(&mut self, arena: &Arena, more: usize, fresh: bool) -> u32 {
        let (mut least, mut most) = (u64::MAX, 0);
        for link in &self.settled {
            (least, most) = (least.min(link.sid.0), most.max(link.sid.0));
        }
        let least = if self.settled.is_empty() { 0 } else { least };
        let shape = Shape {
            entries: self.settled.len(),
            runs: self.settled.chunk_by(|a, b| a.label == b.label).count().max(1),
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
                .settled
                .binary_search_by_key(&key, Link::key)
                .ok()
                .or_else(|| Some(self.settled.len() + find_add(&self.adds, key)?));
            debug_assert!(place.is_some(), "what ends is there: {key:?}");
            if let Some(place) = place {
                ops.push(Op::end(place, *label, *sid, *version));
            }
        }
        let granules = shape.granules();
        let block = arena.allocate(granules, fresh);
        // SAFETY: the arena has just handed out the block, of this size, and nobody else knows it.
        unsafe { block::write(arena.address(block), shape, least, self.begin, &self.settled, &ops) };
        block
    }
}

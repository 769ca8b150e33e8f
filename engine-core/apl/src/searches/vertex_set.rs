//! A set of vertices that is read far more often than it grows: the vertices that a search reached.
//!
//! One hash addresses two tables: a bit filter with 16 bits for each place, which stays in the cache and excludes most
//! vertices, and the table of GUIs, which decides.
//!
//! Must never: answer from the filter alone that a vertex is in the set.

use std::fmt;
use tidegraph_types::Gui;

/// Number of low hash bits that are dropped. The remaining, better bits address up to 2^36 places.
const HASH_SHIFT: u32 = 24;
/// Bits of the filter for each place of the table, as a power of two.
const FILTER_BITS: u32 = 4;
/// Vertices that are looked up together.
const GROUP: usize = 4;
/// Places of the smallest table, as a power of two.
const SMALLEST: u32 = 6;

/// A set of vertices, read far more often than it grows.
#[derive(Clone)]
pub struct VertexSet {
    filter: Vec<u64>,
    /// GUIs, with open addressing; 0: empty.
    places: Vec<u64>,
    len: usize,
    /// Whether the GUI 0 is in the set. It has no place, because 0 marks an empty one.
    zero: bool,
}

impl Default for VertexSet {
    fn default() -> Self {
        Self::with_size(SMALLEST)
    }
}

impl FromIterator<Gui> for VertexSet {
    fn from_iter<I: IntoIterator<Item = Gui>>(guis: I) -> Self {
        let mut set = Self::default();
        for gui in guis {
            set.insert(gui);
        }
        set
    }
}

impl fmt::Debug for VertexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut guis: Vec<Gui> = self.iter().collect();
        guis.sort_unstable();
        f.debug_set().entries(guis).finish()
    }
}

impl PartialEq for VertexSet {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().all(|gui| other.contains(gui))
    }
}

impl VertexSet {
    fn with_size(bits: u32) -> Self {
        let filter = vec![0; 1 << (bits + FILTER_BITS - 6)];
        Self { filter, places: vec![0; 1 << bits], len: 0, zero: false }
    }

    /// Returns the number of vertices in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size on the heap in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.filter.len() + self.places.len()) * 8
    }

    /// Returns all vertices of the set, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Gui> + '_ {
        let zero = self.zero.then_some(Gui(0));
        zero.into_iter().chain(self.places.iter().filter(|gui| **gui != 0).map(|gui| Gui(*gui)))
    }

    /// GUIs are hashes already, but a caller may have chosen them by some of their bits.
    #[inline(always)]
    fn hash(gui: Gui) -> usize {
        (gui.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> HASH_SHIFT) as usize
    }

    /// Returns the word of the filter and the bit in it.
    #[inline(always)]
    fn bit(&self, hash: usize) -> (usize, u64) {
        (hash >> 6 & (self.filter.len() - 1), 1 << (hash & 63))
    }

    /// Returns the place at which the search for a vertex begins.
    #[inline(always)]
    fn home(&self, hash: usize) -> usize {
        hash >> FILTER_BITS & (self.places.len() - 1)
    }

    /// Returns whether a vertex may be in the set: false for most vertices that are not in it.
    #[inline(always)]
    #[must_use]
    pub fn may_contain(&self, gui: Gui) -> bool {
        let (word, bit) = self.bit(Self::hash(gui));
        self.filter[word] & bit != 0
    }

    /// Returns whether a vertex is in the set.
    #[inline(always)]
    #[must_use]
    pub fn contains(&self, gui: Gui) -> bool {
        self.may_contain(gui) && self.place_of(gui).is_ok()
    }

    /// Returns the index of the first vertex that is in the set, given the numbers of GUIs.
    #[inline]
    #[must_use]
    pub fn first_inside(&self, guis: &[u64]) -> Option<usize> {
        let mut base = 0;
        for group in guis.chunks(GROUP) {
            let mut maybe = self.bits_of(group);
            while maybe != 0 {
                let place = maybe.trailing_zeros() as usize;
                if self.place_of(Gui(group[place])).is_ok() {
                    return Some(base + place);
                }
                maybe &= maybe - 1;
            }
            base += GROUP;
        }
        None
    }

    /// Returns the index of any vertex that is not in the set, given the numbers of GUIs.
    #[inline]
    #[must_use]
    pub fn any_outside(&self, guis: &[u64]) -> Option<usize> {
        let mut base = 0;
        for group in guis.chunks(GROUP) {
            let outside = !self.bits_of(group) & ((1 << group.len()) - 1);
            if outside != 0 {
                return Some(base + outside.trailing_zeros() as usize);
            }
            base += GROUP;
        }
        guis.iter().position(|gui| self.place_of(Gui(*gui)).is_err())
    }

    /// Returns one bit for each vertex of a group: whether it may be in the set. The vertices are looked up together,
    /// because a branch for each would be mispredicted.
    #[inline(always)]
    fn bits_of(&self, group: &[u64]) -> u32 {
        if let Ok(group) = <&[u64; GROUP]>::try_from(group) {
            return group
                .iter()
                .rev()
                .fold(0, |bits, gui| bits << 1 | u32::from(self.may_contain(Gui(*gui))));
        }
        group.iter().rev().fold(0, |bits, gui| bits << 1 | u32::from(self.may_contain(Gui(*gui))))
    }

    /// Returns the place of a vertex, or as error the place that it would get.
    #[inline]
    fn place_of(&self, gui: Gui) -> Result<usize, usize> {
        if gui.0 == 0 {
            return if self.zero { Ok(0) } else { Err(0) };
        }
        let mask = self.places.len() - 1;
        let mut at = self.home(Self::hash(gui));
        loop {
            match self.places[at] {
                there if there == gui.0 => return Ok(at),
                0 => return Err(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Adds a vertex. Returns whether it was new.
    #[inline]
    pub fn insert(&mut self, gui: Gui) -> bool {
        let Err(at) = self.place_of(gui) else { return false };
        if gui.0 == 0 {
            self.zero = true;
        } else {
            self.places[at] = gui.0;
        }
        let (word, bit) = self.bit(Self::hash(gui));
        self.filter[word] |= bit;
        self.len += 1;
        if self.len * 4 > self.places.len() * 3 {
            self.grow(1);
        }
        true
    }

    /// Removes a vertex. Returns whether it was in the set.
    pub fn remove(&mut self, gui: Gui) -> bool {
        let Ok(mut hole) = self.place_of(gui) else { return false };
        self.len -= 1;
        if gui.0 == 0 {
            self.zero = false;
            return true;
        }
        // Vertices behind the hole move up, unless that would put them before their home. The filter bit stays: a bit
        // says only that a vertex may be in the set.
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let there = self.places[at];
            if there == 0 {
                break;
            }
            let home = self.home(Self::hash(Gui(there)));
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.places[hole] = there;
                hole = at;
            }
        }
        self.places[hole] = 0;
        true
    }

    /// Makes room for `more` more vertices.
    pub fn reserve(&mut self, more: usize) {
        let mut doublings = 0;
        while (self.len + more) * 4 > (self.places.len() << doublings) * 3 {
            doublings += 1;
        }
        if doublings > 0 {
            self.grow(doublings);
        }
    }

    #[cold]
    fn grow(&mut self, doublings: u32) {
        let old = std::mem::replace(self, Self::with_size(self.places.len().ilog2() + doublings));
        for gui in old.iter() {
            self.insert(gui);
        }
    }

    /// Empties the set and keeps its memory.
    pub fn clear(&mut self) {
        self.filter.fill(0);
        self.places.fill(0);
        (self.len, self.zero) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tidegraph_types::GuiHasher;

    #[test]
    fn holds_what_was_put_in_and_nothing_else() {
        let (mut set, mut model) = (VertexSet::default(), BTreeSet::new());
        let mut state = 3_u64;
        for step in 0..20_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Hashes, small numbers (truncated hashes would be as bad), and the number that stands for no vertex.
            let gui = Gui(if step % 3 == 0 { state >> 54 } else { state });
            if step % 5 == 4 {
                assert_eq!(set.remove(gui), model.remove(&gui), "{gui}");
            }
            assert_eq!(set.insert(gui), model.insert(gui), "{gui}");
            if step % 2 == 0 {
                let gone = Gui(state.rotate_left(17) >> 54);
                assert_eq!(set.remove(gone), model.remove(&gone), "{gone}");
            }
            assert_eq!(set.len(), model.len());
        }
        set.insert(Gui(0));
        model.insert(Gui(0));
        assert_eq!(set.iter().collect::<BTreeSet<_>>(), model);
        for gui in (0..5000).map(Gui).chain(model.iter().map(|gui| Gui(gui.0 ^ 1))) {
            assert_eq!(set.contains(gui), model.contains(&gui), "{gui}");
        }
        let mixed: Vec<u64> = (0..5000).chain(model.iter().map(|gui| gui.0)).collect();
        for some in (0..4900).map(|from| &mixed[from..from + from % 9]) {
            let inside = some.iter().position(|gui| model.contains(&Gui(*gui)));
            assert_eq!(set.first_inside(some), inside, "{some:?}");
            let outside = some.iter().any(|gui| !model.contains(&Gui(*gui)));
            let found = set.any_outside(some);
            assert_eq!(found.is_some(), outside, "{some:?}");
            assert!(found.is_none_or(|at| !model.contains(&Gui(some[at]))), "{some:?}");
        }
        let mut other = VertexSet::default();
        other.reserve(model.len());
        let bytes = other.bytes();
        model.iter().rev().for_each(|gui| assert!(other.insert(*gui)));
        assert_eq!((other.bytes(), &other), (bytes, &set), "it was large enough from the start");
        other.clear();
        assert!(other.is_empty() && model.iter().all(|gui| !other.contains(*gui)));
    }

    #[test]
    fn most_others_are_refused_by_a_bit() {
        // GUIs as a graph has them. A sequence multiplied by a number would form patterns
        // with the multiplier of the hash.
        let gui = |n: u64| GuiHasher::default().gui(&format!("v{n}"));
        let set: VertexSet = (1..=10_000).map(gui).collect();
        let others = (20_000..120_000).map(gui);
        let passed = others.filter(|gui| set.may_contain(*gui)).count();
        assert!(passed < 10_000, "{passed} of 100,000 pass the filter");
    }
}

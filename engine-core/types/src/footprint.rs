//! What a bulk load depends on, in a bounded number of bytes.
//!
//! A load that conflicted with transactions again and again gets a *turn*: until it has committed, the sequencer sets
//! aside commits that would conflict with it. It recognises them by the load's [`Footprint`].

use crate::{Gui, Key, LoadChange};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The vertices and edge ids that a bulk load has met: a Bloom filter with two bits for each. So it may contain more
/// than the load has met, but never less.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Footprint {
    /// A power of two of words; `None`: the load may have met everything.
    words: Option<Box<[u64]>>,
}

/// Seeds of the hashes. Processes of different releases exchange footprints, so these and the positions of bits must
/// not change.
const VERTEX: u64 = 0x7469_6465_7475_726e;
const EDGE: u64 = VERTEX + 1;
/// With 16 bits for each entry, one of 70 vertices that the load has not met looks as if it had.
const BITS_OF_ENTRY: usize = 16;
const LEAST_WORDS: usize = 16;

impl Footprint {
    /// Maximum size in bytes. From 500,000 entries on, the more there are, the more of the others look like them.
    pub const MOST_BYTES: usize = 1 << 20;

    /// Returns the footprint of a load of which it is not known what it has met.
    #[must_use]
    pub fn everything() -> Self {
        Self { words: None }
    }

    /// Returns an empty footprint, of a size for this number of entries.
    #[must_use]
    pub fn with_capacity(entries: usize) -> Self {
        let words = entries.saturating_mul(BITS_OF_ENTRY) / 64;
        let words = words.clamp(LEAST_WORDS, Self::MOST_BYTES / 8).next_power_of_two();
        Self { words: Some(vec![0; words].into()) }
    }

    /// Adds a vertex.
    pub fn add_vertex(&mut self, gui: Gui) {
        self.add(gui, VERTEX);
    }

    /// Adds the hash of an edge's id.
    pub fn add_edge_id(&mut self, hash: Gui) {
        self.add(hash, EDGE);
    }

    fn add(&mut self, hash: Gui, seed: u64) {
        if let Some(words) = &mut self.words {
            for (word, bit) in positions(hash, seed, words.len()) {
                words[word] |= bit;
            }
        }
    }

    /// Whether a change concerns the load, or may.
    #[must_use]
    pub fn may_meet(&self, change: LoadChange) -> bool {
        let Some(words) = &self.words else { return true };
        let (hash, seed) = match change {
            LoadChange::Deleted(gui) => (gui, VERTEX),
            LoadChange::EdgeId(hash) => (hash, EDGE),
            LoadChange::Any => return true,
        };
        positions(hash, seed, words.len()).into_iter().all(|(word, bit)| words[word] & bit != 0)
    }

    /// Returns the bytes that [`Footprint::from_bytes`] reads; none for [`Footprint::everything`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Reads the bytes of [`Footprint::to_bytes`].
    ///
    /// # Errors
    ///
    /// A text that says what is wrong with their number.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.is_empty() {
            return Ok(Self::everything());
        }
        let (chunks, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() || !chunks.len().is_power_of_two() || bytes.len() > Self::MOST_BYTES {
            let most = Self::MOST_BYTES;
            return Err(format!(
                "a footprint of {} bytes, not of a power of two from 8 to {most}",
                bytes.len()
            ));
        }
        Ok(Self { words: Some(chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect()) })
    }
}

/// Words and bits of an entry in a footprint of a power of two of words.
fn positions(hash: Gui, seed: u64, words: usize) -> [(usize, u64); 2] {
    let mixed = xxh3_64_with_seed(&hash.0.to_le_bytes(), seed);
    [mixed, mixed >> 32].map(|half| ((half >> 6) as u32 as usize & (words - 1), 1 << (half & 63)))
}

/// A turn that a bulk load asks for after conflicts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadTurn {
    /// What the load has met in its last attempt.
    pub footprint: Footprint,
    /// Keys that it has read.
    pub read_keys: Vec<Key>,
    /// Longest time of the turn.
    pub limit: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_met_is_missing_and_little_else_is_there() {
        for entries in [0_u64, 10, 5_000, 400_000] {
            let mut footprint = Footprint::with_capacity(2 * entries as usize);
            for n in 0..entries {
                footprint.add_vertex(Gui(n));
                footprint.add_edge_id(Gui(n << 40));
            }
            assert!((0..entries).all(|n| footprint.may_meet(LoadChange::Deleted(Gui(n)))));
            assert!((0..entries).all(|n| footprint.may_meet(LoadChange::EdgeId(Gui(n << 40)))));
            let others = (1..=10_000).map(|n| LoadChange::Deleted(Gui(n << 30)));
            let found = others.filter(|other| footprint.may_meet(*other)).count();
            assert!(found < 400, "{found} of 10000 for {entries}");
            // A vertex is no edge.
            let edges =
                (0..entries.min(10_000)).filter(|n| footprint.may_meet(LoadChange::EdgeId(Gui(n | 1 << 63))));
            assert!(edges.count() < 400);
            assert!(footprint.may_meet(LoadChange::Any));
            assert_eq!(Footprint::from_bytes(&footprint.to_bytes()), Ok(footprint));
        }
    }

    #[test]
    fn everything_is_everything_and_its_bytes_are_none() {
        let everything = Footprint::everything();
        assert!(
            everything.may_meet(LoadChange::Deleted(Gui(7)))
                && everything.may_meet(LoadChange::EdgeId(Gui(7)))
        );
        assert_eq!(Footprint::from_bytes(&everything.to_bytes()), Ok(everything));
    }

    #[test]
    fn bytes_of_another_number_are_refused() {
        for bytes in [1, 24, 2 * Footprint::MOST_BYTES] {
            let error = Footprint::from_bytes(&vec![0; bytes]).unwrap_err();
            assert!(error.contains(&bytes.to_string()), "{error}");
        }
        let huge = Footprint::with_capacity(usize::MAX);
        assert_eq!(huge.to_bytes().len(), Footprint::MOST_BYTES);
    }

    /// Another release reads the same bits.
    #[test]
    fn the_positions_of_bits_stay_as_they_are() {
        let mut footprint = Footprint::with_capacity(0);
        footprint.add_vertex(Gui(1));
        footprint.add_edge_id(Gui(1));
        let set = |bytes: Vec<u8>| -> Vec<usize> {
            let bit = |n: &usize| bytes[n / 8] & 1 << (n % 8) != 0;
            (0..8 * bytes.len()).filter(bit).collect()
        };
        assert_eq!(set(footprint.to_bytes()), [1, 288, 453, 587]);
    }
}

//! Random numbers that a seed repeats.

use crate::Random;
use parking_lot::Mutex;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A generator that gives the same numbers for the same seed, on every machine and in every release (ChaCha, 8 rounds).
#[derive(Debug)]
pub struct SeededRandom(Mutex<ChaCha8Rng>);

impl SeededRandom {
    /// Makes a generator that starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(ChaCha8Rng::seed_from_u64(seed)))
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        self.0.lock().fill_bytes(bytes);
    }

    fn next_u64(&self) -> u64 {
        self.0.lock().next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays() {
        let draw = |seed| {
            let random = SeededRandom::new(seed);
            (0..8).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!(draw(7).iter().all(|n| *n < 1000));
        assert_eq!(SeededRandom::new(1).below(0), 0);
    }
}

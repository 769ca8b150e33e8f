//! Randomness: from the machine, or from a seed that replays a run.

use parking_lot::Mutex;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fmt::Debug;

/// Where random numbers come from.
pub trait Random: Send + Sync + Debug {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);

    /// A number below 2⁶⁴, all equally likely.
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `end`, all as good as equally likely; 0 when `end` is 0.
    fn below(&self, end: u64) -> u64 {
        // The high half of the product: a bias of at most end / 2⁶⁴, without a division.
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Whether something happens that happens once in `times` times.
    fn one_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// The generator of the machine: seeded by the operating system, fit for identifiers that must not be guessed.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealRandom;

impl Random for RealRandom {
    fn fill(&self, bytes: &mut [u8]) {
        rand::rng().fill_bytes(bytes);
    }

    fn next_u64(&self) -> u64 {
        rand::rng().random()
    }
}

/// The same numbers for the same seed, on every machine and in every release (ChaCha, 8 rounds).
#[derive(Debug)]
pub struct SeededRandom(Mutex<ChaCha8Rng>);

impl SeededRandom {
    /// A generator for a seed.
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

    #[test]
    fn the_machine_does_not_repeat_itself() {
        assert_ne!(RealRandom.next_u64(), RealRandom.next_u64());
    }
}

//! Random numbers: from the machine, or from a seed that replays a run (`SeededRandom`, with the feature `testing`).

use rand::{Rng, RngCore};
use std::fmt::Debug;

/// A source of random numbers.
pub trait Random: Send + Sync + Debug {
    /// Fills `bytes` with random bytes.
    fn fill(&self, bytes: &mut [u8]);

    /// Returns a number from 0 to 2⁶⁴ - 1, uniformly distributed.
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Returns a number below `end`, uniformly distributed up to a bias of `end` / 2⁶⁴; 0 if `end` is 0.
    fn below(&self, end: u64) -> u64 {
        // The high half of the product needs no division.
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Returns true with probability 1 / `times`.
    fn one_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// The generator of the machine. The operating system seeds it, so its numbers cannot be guessed.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealRandom;

impl Random for RealRandom {
    #[expect(clippy::disallowed_methods, reason = "the one place that draws random numbers of the machine")]
    fn fill(&self, bytes: &mut [u8]) {
        rand::rng().fill_bytes(bytes);
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that draws random numbers of the machine")]
    fn next_u64(&self) -> u64 {
        rand::rng().random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_does_not_repeat_itself() {
        assert_ne!(RealRandom.next_u64(), RealRandom.next_u64());
    }
}

//! The random numbers that Java draws with a seed.
//!
//! A traversal with a seed picks in TinkerPop what `java.util.Random` says, and tests of users count on these picks. Java
//! defines the numbers: <https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/Random.html>.

/// A linear congruential generator of 48 bits.
///
/// Its numbers are no good for anything but to repeat Java's.
#[derive(Clone, Debug)]
pub(crate) struct JavaRandom(u64);

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

impl JavaRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self((seed ^ MULTIPLIER) & MASK)
    }

    /// Returns up to 31 random bits.
    fn bits(&mut self, count: u32) -> u32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        (self.0 >> (48 - count)) as u32
    }

    /// Returns a number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        let (high, low) = (u64::from(self.bits(26)), u64::from(self.bits(27)));
        ((high << 27) + low) as f64 * (-53_f64).exp2()
    }

    /// Returns a number below `bound`, which is at least 1 and below 2^31.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let drawn = self.bits(31);
        if bound.is_power_of_two() {
            return ((u64::from(bound) * u64::from(drawn)) >> 31) as u32;
        }
        let mut drawn = drawn;
        loop {
            let found = drawn % bound;
            // The last numbers are no whole multiple of the bound.
            if drawn - found + (bound - 1) < 1 << 31 {
                return found;
            }
            drawn = self.bits(31);
        }
    }

    /// Puts items into a random order, as `Collections.shuffle` does. Calls `step` for each of them.
    pub(crate) fn shuffle<T, E>(
        &mut self,
        items: &mut [T],
        mut step: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        for end in (2..=items.len()).rev() {
            step()?;
            // A list of Java, and what is in memory here, has fewer items than 2^31.
            let other = self.below(u32::try_from(end).unwrap_or(i32::MAX as u32).min(i32::MAX as u32));
            items.swap(end - 1, other as usize);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Java 17 printed these numbers.
    #[test]
    fn the_numbers_are_those_of_java() {
        let mut random = JavaRandom::new(999_999);
        let units: Vec<f64> = (0..3).map(|_| random.unit()).collect();
        assert_eq!(units, [0.37776208404219835, 0.7943445643820927, 0.8870080637032544]);
        let mut random = JavaRandom::new(999_999);
        let bounded: Vec<u32> = [8, 7, 6, 5, 10].into_iter().map(|bound| random.below(bound)).collect();
        assert_eq!(bounded, [3, 6, 2, 0, 7]);
        let mut random = JavaRandom::new((-1_i64).cast_unsigned());
        assert_eq!([random.below(1_500_000_000), random.below(1_500_000_000)], [577_549_913, 943_952_225]);
        let mut items = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        JavaRandom::new(42).shuffle(&mut items, || Ok::<(), ()>(())).unwrap();
        assert_eq!(items, [4, 6, 2, 1, 7, 9, 8, 5, 3, 0]);
    }
}

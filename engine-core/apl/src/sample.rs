//! Uniform samples of a stream of unknown length.
//!
//! A [`Reservoir`] holds up to a given number of items. It knows how many of the following items it will skip (Li's
//! algorithm L), so a caller that offers a run of items reads only those that are taken: a hub is sampled without
//! reading its edges. The state is plain data, so that a sample can continue in another call.
//!
//! Must never: offer an item twice or not at all; draw an unseeded random number.

/// Seeded random numbers (splitmix64): the same stream on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draw(pub u64);

impl Draw {
    /// Returns 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Returns a uniform number in (0, 1).
    fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// Returns a uniform number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }
}

/// The size of a sample, and the seed that decides which items are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Number of items to take; all items if there are fewer.
    pub count: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Sample {
    /// Returns the sample for one row of a frontier. Its seed depends on the row only, not on the rest of the frontier.
    #[must_use]
    pub fn of_row(self, row: usize) -> Self {
        let mut draw = Draw(self.seed ^ (row as u64).rotate_left(32));
        Self { count: self.count, seed: draw.next_u64() }
    }
}

/// A sample that is being taken.
///
/// ```
/// use tidegraph_apl::{Reservoir, Sample};
///
/// let mut reservoir = Reservoir::new(Sample { count: 3, seed: 7 });
/// // A run of a million items, of which only those that are taken are looked at.
/// let mut looks = 0;
/// reservoir.offer_run(1_000_000, |index| {
///     looks += 1;
///     Some(index)
/// });
/// assert_eq!(reservoir.items.len(), 3);
/// assert!(looks < 1_000);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Reservoir<T> {
    /// Number of items to take.
    pub count: u32,
    /// The items taken so far.
    pub items: Vec<T>,
    /// Source of random numbers.
    pub draw: Draw,
    /// Algorithm L's `W`: the largest of the random keys of the items taken so far.
    pub weight: f64,
    /// Number of following items that are skipped.
    pub skip: u64,
}

impl<T> Reservoir<T> {
    /// Makes an empty reservoir.
    #[must_use]
    pub fn new(sample: Sample) -> Self {
        Self { count: sample.count, items: Vec::new(), draw: Draw(sample.seed), weight: 1.0, skip: 0 }
    }

    /// Offers one item, which is made only if it is taken.
    pub fn offer(&mut self, item: impl FnOnce() -> T) {
        let mut item = Some(item);
        self.offer_run(1, |_| item.take().map(|make| make()));
    }

    /// Offers a run of `len` items. Calls `item` with the index of each item to take, in order; takes nothing if it
    /// returns `None`.
    pub fn offer_run(&mut self, len: u64, mut item: impl FnMut(u64) -> Option<T>) {
        let count = self.count as usize;
        let mut at = 0;
        while at < len && count > 0 {
            if self.items.len() < count {
                self.items.extend(item(at));
                at += 1;
                if self.items.len() == count {
                    self.next_skip();
                }
                continue;
            }
            if self.skip >= len - at {
                self.skip -= len - at;
                return;
            }
            at += self.skip;
            if let Some(item) = item(at) {
                let place = self.draw.below(count as u64) as usize;
                self.items[place] = item;
            }
            at += 1;
            self.next_skip();
        }
    }

    fn next_skip(&mut self) {
        self.weight *= (self.draw.unit().ln() / f64::from(self.count)).exp();
        let skip = self.draw.unit().ln() / (-self.weight).ln_1p();
        // A cast saturates: past the end of any stream.
        self.skip = skip as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_all_taken() {
        let mut reservoir = Reservoir::new(Sample { count: 5, seed: 1 });
        reservoir.offer_run(3, Some);
        reservoir.offer(|| 3);
        assert_eq!(reservoir.items, [0, 1, 2, 3]);
        let mut none = Reservoir::new(Sample { count: 0, seed: 1 });
        none.offer_run(10, Some);
        assert!(none.items.is_empty());
    }

    #[test]
    fn every_item_has_the_same_chance() {
        const ITEMS: u64 = 40;
        const ROUNDS: u64 = 20_000;
        let mut taken = [0_u64; ITEMS as usize];
        for seed in 0..ROUNDS {
            let mut reservoir = Reservoir::new(Sample { count: 4, seed });
            // Items arrive in runs of several lengths, as from pages and chunks.
            reservoir.offer_run(1, Some);
            reservoir.offer_run(6, |at| Some(1 + at));
            reservoir.offer_run(33, |at| Some(7 + at));
            assert_eq!(reservoir.items.len(), 4);
            reservoir.items.iter().for_each(|item| taken[*item as usize] += 1);
        }
        // The mean is 2,000, the standard deviation 42.
        for (item, count) in taken.iter().enumerate() {
            assert!((1_780..=2_220).contains(count), "{item} was taken {count} times: {taken:?}");
        }
    }

    #[test]
    fn a_run_is_only_looked_at_where_it_is_taken() {
        let mut reservoir = Reservoir::new(Sample { count: 10, seed: 7 });
        let mut looks = 0;
        reservoir.offer_run(10_000_000, |at| {
            looks += 1;
            Some(at)
        });
        assert!(looks < 1_000, "{looks} looks");
        assert!(reservoir.items.iter().any(|item| *item > 100_000));
    }
}

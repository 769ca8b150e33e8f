//! Names of partitions. A graph that is split gets new partitions with new names, so a name means the same vertices for
//! ever: in the map, in heartbeats, in requests and in the paths of checkpoints.

use crate::{Gui, PartitionCount, PartitionId};

/// The partitions of a graph while it has a number of them.
///
/// A graph is made with the partitions 0 to P - 1. After it was split into N, its partitions are N to 2N - 1: N plus the
/// last bits of the part of a GUI that selects its partition.
///
/// ```
/// use tidegraph_types::{Gui, Layout, PartitionCount, PartitionId};
///
/// let made = PartitionCount::new(8)?;
/// let split = Layout::new(made, PartitionCount::new(32)?)?;
/// let gui = Gui(0x001d_0000_0000_0000);
/// assert_eq!(Layout::made(made).of(gui), PartitionId(5));
/// assert_eq!(split.of(gui), PartitionId(32 + 29));
/// assert_eq!(split.coarser(PartitionId(32 + 29), made), PartitionId(5));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    made: PartitionCount,
    count: PartitionCount,
}

impl Layout {
    /// Returns the partitions of a graph that was made with `made` of them, while it has `count`.
    ///
    /// # Errors
    ///
    /// A message if there are fewer than the graph was made with.
    pub fn new(made: PartitionCount, count: PartitionCount) -> Result<Self, String> {
        if count.get() >= made.get() {
            return Ok(Self { made, count });
        }
        Err(format!("{} partitions of a graph that was made with {}", count.get(), made.get()))
    }

    /// Returns the partitions of a graph that was never split.
    #[must_use]
    pub const fn made(count: PartitionCount) -> Self {
        Self { made: count, count }
    }

    /// Returns the partitions among which `partition` is, of a graph that was made with `made` partitions; `None` if no
    /// partition of such a graph has the name.
    #[must_use]
    pub fn of_partition(made: PartitionCount, partition: PartitionId) -> Option<Self> {
        if partition.0 < made.get() {
            return Some(Self::made(made));
        }
        let count = PartitionCount::new(1 << partition.0.checked_ilog2()?).ok()?;
        (count.get() > made.get()).then_some(Self { made, count })
    }

    /// Returns the number of partitions.
    #[must_use]
    pub fn count(self) -> PartitionCount {
        self.count
    }

    fn first(self) -> u16 {
        if self.count == self.made { 0 } else { self.count.get() }
    }

    /// Returns the partition that holds a vertex, its properties and its out-edges.
    #[inline]
    #[must_use]
    pub fn of(self, gui: Gui) -> PartitionId {
        self.at(self.count.of(gui).0)
    }

    /// Returns the partition with a number below the count.
    #[inline]
    #[must_use]
    pub fn at(self, number: u16) -> PartitionId {
        PartitionId(self.first() + number)
    }

    /// Returns the number of a partition, below the count; `None` if the partition is of another layout.
    #[inline]
    #[must_use]
    pub fn number(self, partition: PartitionId) -> Option<u16> {
        partition.0.checked_sub(self.first()).filter(|number| *number < self.count.get())
    }

    /// Returns the partition of `count` that holds the vertices of a partition of this layout, and others. `count` is at
    /// least what the graph was made with, and at most that of this layout.
    #[must_use]
    pub fn coarser(self, partition: PartitionId, count: PartitionCount) -> PartitionId {
        Self { count, ..self }.at(partition.0 & (count.get() - 1))
    }

    /// Returns the partitions that hold the vertices of a partition of this layout, and others, in graphs that were
    /// split less often: the smallest first.
    pub fn ancestors(self, partition: PartitionId) -> impl Iterator<Item = PartitionId> {
        let smaller = std::iter::successors(PartitionCount::new(self.count.get() / 2).ok(), |count| {
            PartitionCount::new(count.get() / 2).ok()
        });
        let made = self.made.get();
        smaller.take_while(move |count| count.get() >= made).map(move |count| self.coarser(partition, count))
    }

    /// Returns all partitions in order.
    pub fn all(self) -> impl Iterator<Item = PartitionId> {
        (0..self.count.get()).map(move |number| self.at(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(count: u16) -> PartitionCount {
        PartitionCount::new(count).unwrap()
    }

    #[test]
    fn no_two_layouts_share_a_name() {
        for made in [1, 2, 8, 1024] {
            let mut seen = std::collections::BTreeSet::new();
            let counts = (0..16).map(|bit| count(1 << bit)).filter(|count| count.get() >= made);
            for layout in counts.map(|count| Layout::new(super::tests::count(made), count).unwrap()) {
                for (number, partition) in (0..).zip(layout.all()) {
                    assert!(seen.insert(partition), "{partition} of {layout:?}");
                    assert_eq!(layout.number(partition), Some(number));
                    assert_eq!(Layout::of_partition(count(made), partition), Some(layout));
                }
            }
        }
        assert_eq!(Layout::new(count(8), count(32_768)).unwrap().all().last(), Some(PartitionId(u16::MAX)));
    }

    #[test]
    fn names_that_no_layout_has() {
        for name in [8, 15] {
            assert_eq!(Layout::of_partition(count(8), PartitionId(name)), None);
        }
        assert!(Layout::new(count(8), count(4)).is_err());
        assert_eq!(Layout::new(count(8), count(32)).unwrap().number(PartitionId(7)), None);
        assert_eq!(Layout::new(count(8), count(32)).unwrap().number(PartitionId(64)), None);
    }

    #[test]
    fn a_vertex_stays_below_the_ancestors_of_its_partition() {
        let layout = Layout::new(count(8), count(64)).unwrap();
        for step in 0..10_000u64 {
            let gui = Gui(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let above: Vec<PartitionId> = layout.ancestors(layout.of(gui)).collect();
            let expected = [32, 16, 8].map(|c| Layout::new(count(8), count(c)).unwrap().of(gui));
            assert_eq!(above, expected);
        }
        assert_eq!(Layout::made(count(8)).ancestors(PartitionId(3)).count(), 0);
    }
}

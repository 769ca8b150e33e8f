//! Identifiers: newtypes around integers, so that a version is never taken for an epoch.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// Globally unique identifier of a vertex: a 64-bit hash of its id, salted if two ids collide (IDS-1).
    ///
    /// ```
    /// use tidegraph_types::GuiHasher;
    ///
    /// let hasher = GuiHasher::default();
    /// assert_eq!(hasher.gui("ann"), hasher.gui("ann"));
    /// assert_ne!(hasher.gui("ann"), hasher.salted("ann", 1));
    /// ```
    Gui,
    u64
);
id!(
    /// Statement identifier: names one edge. It is never given to another edge (IDS-1).
    Sid,
    u64
);
id!(
    /// Integer for a label, edge label or property key; a graph has one dictionary of them.
    Token,
    u32
);
id!(
    /// Random id of a commit request. A client that sends a request again keeps its id, so the request is committed
    /// once.
    RequestId,
    u128
);

impl RequestId {
    /// Returns the id of a request that a unique text names, such as the id of a bulk load.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        Self(xxhash_rust::xxh3::xxh3_128(text.as_bytes()))
    }

    /// Returns the id of a request that its caller named by a key. The upper half tells the keys of all callers apart,
    /// the lower half the requests that were sent with one key.
    ///
    /// `request` must be the same text for the same request, in every process of the graph.
    #[must_use]
    pub fn of_key(caller: &str, key: &str, request: fmt::Arguments<'_>) -> Self {
        let hash = |text: fmt::Arguments<'_>| {
            let mut hasher = HashedText(xxhash_rust::xxh3::Xxh3::new());
            // The hasher takes every text.
            let _ = fmt::write(&mut hasher, text);
            hasher.0.digest()
        };
        let upper = hash(format_args!("{caller:?}{key:?}"));
        Self(u128::from(upper) << 64 | u128::from(hash(request)))
    }

    /// Returns the ids that share this one's key; see [`RequestId::of_key`].
    #[must_use]
    pub fn of_same_key(self) -> std::ops::RangeInclusive<Self> {
        let lower = u128::from(u64::MAX);
        Self(self.0 & !lower)..=Self(self.0 | lower)
    }
}

/// Hashes text as it is written, so that a long request is never copied.
struct HashedText(xxhash_rust::xxh3::Xxh3);

impl fmt::Write for HashedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

id!(
    /// A point in the log. Version 0 is the empty graph; each committed record has the next version.
    Version,
    u64
);
id!(
    /// Term of one sequencer; grows with every take-over.
    Epoch,
    u64
);
id!(
    /// Name of a partition. [`Layout`](crate::Layout) says which partitions a graph has.
    PartitionId,
    u16
);
id!(
    /// Number of a log shard (a group of partitions). Embedded graphs have shard 0 only.
    ShardId,
    u16
);

impl Version {
    /// Returns the version after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Number of low bits of a GUI, below those that select its partition.
const PARTITION_SHIFT: u32 = 48;
/// Mask of the bits of a GUI that select its partition, whatever the number of partitions.
const PARTITION_BITS: u64 = u64::MAX << PARTITION_SHIFT;

/// Number of partitions of a graph: a power of two. It is raised when the graph is split.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct PartitionCount(u16);

impl PartitionCount {
    /// One partition.
    pub const ONE: Self = Self(1);

    /// Makes a partition count.
    ///
    /// # Errors
    ///
    /// A message if `count` is not a power of two between 1 and 32,768.
    pub fn new(count: u16) -> Result<Self, String> {
        if count.is_power_of_two() {
            Ok(Self(count))
        } else {
            Err(format!("partition count {count} is not a power of two"))
        }
    }

    /// Returns the number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }

    /// Returns the number of the partition that holds a vertex, its properties and its out-edges.
    #[inline]
    #[must_use]
    pub fn of(self, gui: Gui) -> PartitionId {
        // The high bits: hash tables inside a partition use the low ones.
        PartitionId(((gui.0 >> PARTITION_SHIFT) as u16) & (self.0 - 1))
    }

    /// Returns all partitions in order.
    pub fn all(self) -> impl Iterator<Item = PartitionId> {
        (0..self.0).map(PartitionId)
    }
}

impl TryFrom<u16> for PartitionCount {
    type Error = String;
    fn try_from(count: u16) -> Result<Self, String> {
        Self::new(count)
    }
}

impl From<PartitionCount> for u16 {
    fn from(count: PartitionCount) -> u16 {
        count.0
    }
}

/// Division of the partitions of a graph among the shards of its log: each shard has consecutive partitions. It is
/// fixed when the graph is created: what comes of a partition when the graph is split is in the shard of that partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sharding {
    partitions: PartitionCount,
    shards: u16,
}

impl Sharding {
    /// One shard for one partition.
    pub const ONE: Self = Self { partitions: PartitionCount::ONE, shards: 1 };

    /// Divides `partitions` among `shards`.
    ///
    /// # Errors
    ///
    /// A message if `shards` is 0 or greater than the number of partitions.
    pub fn new(partitions: PartitionCount, shards: u16) -> Result<Self, String> {
        if (1..=partitions.get()).contains(&shards) {
            return Ok(Self { partitions, shards });
        }
        let partitions = partitions.get();
        Err(format!(
            "{shards} shards of {partitions} partitions: there has to be one, and at most one a partition"
        ))
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn shards(self) -> u16 {
        self.shards
    }

    /// Returns the shard with the changes of a partition.
    #[must_use]
    pub fn of(self, partition: PartitionId) -> ShardId {
        // The last bits of the name are those of the partition from which it came.
        let made = partition.0 & (self.partitions.get() - 1);
        let scaled = u32::from(made) * u32::from(self.shards);
        ShardId((scaled / u32::from(self.partitions.0)) as u16)
    }

    /// Returns the shard with the changes of the partition of a GUI.
    #[must_use]
    pub fn home(self, gui: Gui) -> ShardId {
        self.of(self.partitions.of(gui))
    }

    /// Returns all shards in order.
    pub fn all(self) -> impl Iterator<Item = ShardId> {
        (0..self.shards).map(ShardId)
    }
}

/// Computes GUIs from ids, the same on every machine.
///
/// A graph uses 64 bits. Tests use fewer, so that ids collide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuiHasher {
    bits: u32,
}

impl Default for GuiHasher {
    fn default() -> Self {
        Self { bits: 64 }
    }
}

impl GuiHasher {
    /// Makes a hasher with 2^`bits` different hashes, `bits` from 1 to 64.
    #[must_use]
    pub fn with_bits(bits: u32) -> Self {
        Self { bits: bits.clamp(1, 64) }
    }

    /// Returns the number of bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Returns the GUI of an id that collides with no other.
    #[must_use]
    pub fn gui(self, id: &str) -> Gui {
        self.salted(id, 0)
    }

    /// Returns the GUI of an id after `salt` collisions; with salt 0 that of [`GuiHasher::gui`].
    #[must_use]
    pub fn salted(self, id: &str, salt: u64) -> Gui {
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(id.as_bytes(), salt);
        if salt > 0 {
            // The partition is that of the unsalted hash, so it does not depend on collisions.
            return Gui(self.gui(id).0 & PARTITION_BITS | hash & !PARTITION_BITS);
        }
        if self.bits == 64 {
            return Gui(hash);
        }
        // Spread the few bits over the whole range, so that several partitions are used.
        Gui(xxhash_rust::xxh3::xxh3_64(&(hash & ((1 << self.bits) - 1)).to_le_bytes()))
    }

    /// Returns the key under which an edge id of the user is indexed.
    #[must_use]
    pub fn edge_id(self, id: &str) -> Gui {
        Gui(xxhash_rust::xxh3::xxh3_64_with_seed(id.as_bytes(), 0x0065_6467_655f_6964))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_count_must_be_a_power_of_two() {
        assert!(PartitionCount::new(0).is_err());
        assert_eq!(PartitionCount::new(3), Err("partition count 3 is not a power of two".into()));
        assert_eq!(PartitionCount::new(8).map(PartitionCount::get), Ok(8));
    }

    #[test]
    fn shards_are_groups_of_neighbours() {
        let partitions = PartitionCount::new(8).unwrap();
        let of = |shards: u16| -> Vec<u16> {
            let sharding = Sharding::new(partitions, shards).unwrap();
            partitions.all().map(|partition| sharding.of(partition).0).collect()
        };
        assert_eq!(of(1), [0; 8]);
        assert_eq!(of(2), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(of(3), [0, 0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(of(8), [0, 1, 2, 3, 4, 5, 6, 7]);
        for bad in [0, 9, u16::MAX] {
            let refused = Sharding::new(partitions, bad).unwrap_err();
            assert!(refused.starts_with(&format!("{bad} shards of 8 partitions")), "{refused}");
        }
        let most = PartitionCount::new(1 << 15).unwrap();
        let sharding = Sharding::new(most, 1 << 15).unwrap();
        assert_eq!(sharding.of(PartitionId((1 << 15) - 1)), ShardId((1 << 15) - 1));
    }

    #[test]
    fn gui_of_an_id_never_changes() {
        // Stored graphs depend on this value: it must be the same in every release.
        assert_eq!(GuiHasher::default().gui("person-1").0, xxhash_rust::xxh3::xxh3_64(b"person-1"));
    }

    #[test]
    fn cut_hash_collides_and_salt_separates() {
        let hasher = GuiHasher::with_bits(1);
        let guis: std::collections::BTreeSet<_> = (0..100).map(|i| hasher.gui(&format!("v{i}"))).collect();
        assert_eq!(guis.len(), 2);
        assert_ne!(hasher.gui("v1"), hasher.salted("v1", 1));
        assert_ne!(hasher.salted("v1", 1), hasher.salted("v1", 2));
    }

    #[test]
    fn a_salted_id_stays_in_its_partition() {
        let partitions = PartitionCount::new(1 << 15).unwrap();
        for (hasher, n) in [GuiHasher::default(), GuiHasher::with_bits(3)].into_iter().zip([7, 8]) {
            let id = format!("v{n}");
            let plain = partitions.of(hasher.gui(&id));
            assert!((1..100).all(|salt| partitions.of(hasher.salted(&id, salt)) == plain));
        }
    }

    #[test]
    fn a_split_changes_no_shard() {
        let made = PartitionCount::new(8).unwrap();
        let sharding = Sharding::new(made, 3).unwrap();
        let split = crate::Layout::new(made, PartitionCount::new(64).unwrap()).unwrap();
        for step in 0..1_000u64 {
            let gui = Gui(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            assert_eq!(sharding.of(split.of(gui)), sharding.home(gui));
        }
    }
}

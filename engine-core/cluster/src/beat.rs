//! What a node says again and again: that it is there, and how far its replicas are. No change of the map.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tidegraph_types::{PartitionId, Version};

/// The last sign of life of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Beat {
    /// How often the node had registered. A beat of an earlier generation is refused.
    pub generation: u64,
    /// Grows with every beat. Whoever watches compares counters over a time of his own clock, and no clocks.
    pub counter: u64,
    /// Whether its disk is full: it gets no replicas.
    pub disk_full: bool,
    /// Bytes that its replicas take.
    pub used_bytes: u64,
    /// The version up to which each of its replicas was applied.
    pub applied: Applied,
}

impl Beat {
    /// Whether a watcher has to take this for newer than `other`.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        (self.generation, self.counter) > (other.generation, other.counter)
    }
}

/// Versions by partition. As text, replicas of one version stand together: `4711:0-15,32;4709:16`. A node follows the
/// log with one reader for all its replicas, so that there are few versions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Applied(pub BTreeMap<PartitionId, Version>);

impl Applied {
    /// The text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut by_version: BTreeMap<Version, Vec<u16>> = BTreeMap::new();
        for (partition, version) in &self.0 {
            by_version.entry(*version).or_default().push(partition.0);
        }
        let mut text = String::new();
        for (version, partitions) in by_version.iter().rev() {
            let separator = if text.is_empty() { "" } else { ";" };
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{version}:");
            let runs = partitions.chunk_by(|a, b| a + 1 == *b);
            for (index, run) in runs.enumerate() {
                let separator = if index == 0 { "" } else { "," };
                let (first, last) = (run[0], run[run.len() - 1]);
                let _ = match first == last {
                    true => write!(text, "{separator}{first}"),
                    false => write!(text, "{separator}{first}-{last}"),
                };
            }
        }
        text
    }

    /// Reads the text; the error says what is wrong.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut applied = BTreeMap::new();
        for group in text.split(';').filter(|group| !group.is_empty()) {
            let bad = || format!("{group:?} is not VERSION:FIRST-LAST,…");
            let (version, runs) = group.split_once(':').ok_or_else(bad)?;
            let version = Version(version.parse().map_err(|_| bad())?);
            for run in runs.split(',') {
                let (first, last) = run.split_once('-').unwrap_or((run, run));
                let first: u16 = first.parse().map_err(|_| bad())?;
                let last: u16 = last.parse().map_err(|_| bad())?;
                if first > last {
                    return Err(bad());
                }
                for partition in first..=last {
                    if applied.insert(PartitionId(partition), version).is_some() {
                        return Err(format!("partition {partition} stands there twice"));
                    }
                }
            }
        }
        Ok(Self(applied))
    }
}

impl Serialize for Applied {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for Applied {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_text(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn applied(pairs: &[(u16, u64)]) -> Applied {
        Applied(pairs.iter().map(|(p, v)| (PartitionId(*p), Version(*v))).collect())
    }

    #[test]
    fn replicas_of_one_version_stand_together() {
        let text = applied(&[(0, 7), (1, 7), (2, 7), (4, 7), (3, 6)]).to_text();
        assert_eq!(text, "7:0-2,4;6:3");
        assert_eq!(applied(&[]).to_text(), "");
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["7", "7:", "x:1", "7:2-1", "7:1,1", "7:1;6:1", "7:70000", "7:1-2-3", "-1:2"] {
            assert!(Applied::from_text(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn text_says_all(pairs in proptest::collection::btree_map(0_u16..200, 0_u64..4, 0..150)) {
            let applied = Applied(pairs.into_iter().map(|(p, v)| (PartitionId(p), Version(v))).collect());
            prop_assert_eq!(Applied::from_text(&applied.to_text()).unwrap(), applied);
        }
    }
}

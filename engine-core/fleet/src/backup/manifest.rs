//! The manifest of a backup: what belongs to it. It is JSON, so that people can read it.

use super::Error;
use crate::restart::CHECKPOINTS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use tidegraph_cluster::Graph;
use tidegraph_types::{Formats, PartitionId, Version};

/// Formats of backups.
pub const FORMATS: Formats = Formats::only(1);

/// Folders of a graph's objects.
pub const FOLDERS: [&str; 3] = [CHECKPOINTS, "loads/", "jobs/"];

/// Largest manifest that is read, in bytes: some 2 million objects.
const MOST_BYTES: u64 = 256 << 20;

/// A backup of a graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Backup {
    /// Its name, unique among the graph's backups. Names sort by the time at which they were begun.
    pub name: String,
    /// The graph.
    pub graph: Graph,
    /// The release that made it.
    pub release: String,
    /// When it was begun, in milliseconds since 1970. It has everything that was acknowledged before.
    pub begun_ms: i64,
    /// When the log was cut, in milliseconds since 1970. It has everything that was acknowledged before.
    pub cut_ms: i64,
    /// The oldest version that can be restored: that of the newest checkpoint.
    pub earliest: u64,
    /// When the log took that version, or a later time, in milliseconds since 1970; `None` if the log keeps no times.
    pub earliest_ms: Option<i64>,
    /// The newest version that can be restored: the cut.
    pub version: u64,
    /// The highest epoch of a checkpoint or a record.
    pub epoch: u64,
    /// The checkpoint of each partition that has one, in order of partition.
    pub checkpoints: Vec<BackupCheckpoint>,
    /// Objects with the records of the log, in order.
    pub log: Vec<LogObject>,
    /// Objects of checkpoints and of loads, in order of path.
    pub objects: Vec<CopiedObject>,
}

/// The checkpoint of a partition in a backup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackupCheckpoint {
    /// The partition.
    pub partition: u16,
    /// Its version.
    pub version: u64,
    /// Path of its manifest, one of [`Backup::objects`].
    pub manifest: String,
}

/// A part of the log in a backup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogObject {
    /// Path below the folder of the backup.
    pub path: String,
    /// Version of its first record.
    pub first: u64,
    /// Version of its last record.
    pub last: u64,
    /// Time of the first record, in milliseconds since 1970; `None` if the log keeps no times.
    pub first_ms: Option<i64>,
    /// Size in bytes.
    pub bytes: u64,
    /// CRC-32C of its bytes.
    pub crc32c: u32,
}

/// A copied object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CopiedObject {
    /// Path in the object store of the graph. The copy is below `objects/` in the folder of the backup.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// CRC-32C of its bytes.
    pub crc32c: u32,
}

/// The object of a manifest.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Envelope {
    format: u64,
    /// CRC-32C of the backup as compact JSON.
    crc32c: u32,
    backup: Backup,
}

/// The part of the object that every format has.
#[derive(Deserialize)]
struct AnyFormat {
    format: u64,
}

/// Refuses a manifest that is too large, or of a format that this release does not read. Archives have the formats of
/// backups.
pub(super) fn check_format(object: &str, bytes: &[u8], most_bytes: u64) -> Result<(), Error> {
    let unreadable = |reason: String| Error::Unreadable { object: object.to_owned(), reason };
    if bytes.len() as u64 > most_bytes {
        return Err(unreadable(format!("it has {} bytes, {most_bytes} are allowed", bytes.len())));
    }
    let any: AnyFormat = serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
    if u32::try_from(any.format).is_ok_and(|format| FORMATS.reads(format)) {
        return Ok(());
    }
    Err(Error::UnknownFormat { object: object.to_owned(), found: any.format, known: FORMATS })
}

impl Backup {
    /// Returns the number of bytes of all objects.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let log: u64 = self.log.iter().map(|object| object.bytes).sum();
        log + self.objects.iter().map(|object| object.bytes).sum::<u64>()
    }

    /// Returns the paths of all objects below the folder of the backup, with their sizes and checksums.
    pub fn stored(&self) -> impl Iterator<Item = CopiedObject> {
        let copied = self
            .objects
            .iter()
            .map(|object| CopiedObject { path: format!("objects/{}", object.path), ..object.clone() });
        let log = self.log.iter().map(|object| CopiedObject {
            path: object.path.clone(),
            bytes: object.bytes,
            crc32c: object.crc32c,
        });
        copied.chain(log)
    }

    /// Encodes the object of the manifest.
    ///
    /// # Errors
    /// None for a backup that was made or decoded.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let crc32c = crc32c::crc32c(&serde_json::to_vec(self)?);
        serde_json::to_vec_pretty(&Envelope {
            format: u64::from(FORMATS.newest),
            crc32c,
            backup: self.clone(),
        })
    }

    /// Decodes the object of a manifest, and checks what restoring relies on.
    ///
    /// # Errors
    /// [`Error::UnknownFormat`] if this release does not read the format; [`Error::Unreadable`] if the object is damaged or
    /// contradicts itself.
    pub fn decode(object: &str, bytes: &[u8]) -> Result<Self, Error> {
        let unreadable = |reason: String| Error::Unreadable { object: object.to_owned(), reason };
        check_format(object, bytes, MOST_BYTES)?;
        let envelope: Envelope =
            serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
        let again = serde_json::to_vec(&envelope.backup).map_err(|error| unreadable(error.to_string()))?;
        if crc32c::crc32c(&again) != envelope.crc32c {
            return Err(unreadable("its checksum does not match".into()));
        }
        envelope.backup.check().map_err(unreadable)?;
        Ok(envelope.backup)
    }

    /// Checks what restoring relies on.
    fn check(&self) -> Result<(), String> {
        self.graph.check().map_err(|error| error.to_string())?;
        if self.earliest > self.version {
            return Err(format!("its versions {} to {} are none", self.earliest, self.version));
        }
        let is_of_graph = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
        let foreign = self.objects.iter().map(|object| &object.path).find(|path| !is_of_graph(path));
        let foreign =
            foreign.or(self.log.iter().map(|object| &object.path).find(|path| !path.starts_with("log/")));
        if let Some(path) = foreign {
            return Err(format!("it names the object {path:?}, which is none of a graph"));
        }
        let paths: BTreeSet<&str> = self.objects.iter().map(|object| object.path.as_str()).collect();
        for checkpoint in &self.checkpoints {
            let (partition, version) = (checkpoint.partition, checkpoint.version);
            if !self.graph.may_have(PartitionId(partition)) || version > self.earliest {
                return Err(format!("it has a checkpoint of partition {partition} at version {version}"));
            }
            if !paths.contains(checkpoint.manifest.as_str()) {
                return Err(format!("it lacks the object {}", checkpoint.manifest));
            }
        }
        Ok(())
    }

    /// Returns the version behind which the log begins to be needed: that of the oldest checkpoint, or 0 if a partition
    /// has none.
    pub(super) fn lowest(&self) -> u64 {
        let found = |of| self.checkpoints.iter().find(|found| PartitionId(found.partition) == of);
        let newest = |of| found(of).map(|found| Version(found.version));
        if !self.graph.restored_from(newest).1.is_empty() {
            return 0;
        }
        self.checkpoints.iter().map(|checkpoint| checkpoint.version).min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::PartitionCount;

    fn backup() -> Backup {
        Backup {
            name: "20261126T050000Z-01234567".into(),
            graph: Graph {
                name: "g".into(),
                partitions: PartitionCount::new(2).unwrap(),
                shards: 1,
                hash_bits: 64,
                replication_factor: 2,
                gremlin: Default::default(),
                splits: Default::default(),
                shares_objects: false,
            },
            release: "0.1.0".into(),
            begun_ms: 1_764_000_000_000,
            cut_ms: 1_764_000_001_000,
            earliest: 7,
            earliest_ms: Some(1_764_000_000_500),
            version: 9,
            epoch: 3,
            checkpoints: vec![BackupCheckpoint {
                partition: 1,
                version: 7,
                manifest: "checkpoints/p00001/n-1-1/manifest-00000000000000000007-000000".into(),
            }],
            log: vec![LogObject {
                path: "log/00000000000000000001".into(),
                first: 1,
                last: 9,
                first_ms: None,
                bytes: 100,
                crc32c: 5,
            }],
            objects: vec![CopiedObject {
                path: "checkpoints/p00001/n-1-1/manifest-00000000000000000007-000000".into(),
                bytes: 200,
                crc32c: 6,
            }],
        }
    }

    #[test]
    fn a_manifest_comes_back() {
        let bytes = backup().encode().unwrap();
        assert_eq!(Backup::decode("m", &bytes).unwrap(), backup());
        assert_eq!((backup().bytes(), backup().lowest()), (300, 0));
        let paths: Vec<_> = backup().stored().map(|object| object.path).collect();
        assert_eq!(paths[1], "log/00000000000000000001");
        assert!(paths[0].starts_with("objects/checkpoints/"));
    }

    #[test]
    fn other_formats_and_damage_are_refused_by_name() {
        let text = String::from_utf8(backup().encode().unwrap()).unwrap();
        let refused = |from: &str, to: &str| {
            assert!(text.contains(from), "{text}");
            Backup::decode("m.json", text.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
        };
        let other = refused("\"format\": 1", "\"format\": 2");
        assert!(other.contains("m.json has format 2, this release reads 1"), "{other}");
        assert!(refused("\"bytes\": 200", "\"bytes\": 201").contains("its checksum does not match"));
        assert!(refused("\"cutMs\"", "\"cutAtMs\"").contains("cutAtMs"));
        assert!(refused("{", "").contains("m.json"));
    }

    #[test]
    fn a_manifest_that_contradicts_itself_is_refused() {
        let refused = |change: &dyn Fn(&mut Backup)| {
            let mut changed = backup();
            change(&mut changed);
            Backup::decode("m", &changed.encode().unwrap()).unwrap_err().to_string()
        };
        assert!(refused(&|b| b.earliest = 10).contains("10 to 9"));
        assert!(refused(&|b| b.checkpoints[0].partition = 2).contains("partition 2"));
        assert!(refused(&|b| b.checkpoints[0].version = 8).contains("version 8"));
        for path in ["restore.json", "../checkpoints/x", "log/1"] {
            assert!(refused(&|b| b.objects[0].path = path.into()).contains(path));
        }
        assert!(refused(&|b| b.log[0].path = "objects/x".into()).contains("objects/x"));
        assert!(refused(&|b| b.objects.clear()).contains("lacks the object checkpoints/p00001"));
    }
}

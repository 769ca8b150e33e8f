//! The manifest: what belongs to a checkpoint, and how to find the newest.

use super::{FORMAT, MANIFEST_MAGIC, MOST_OLDER};
use crate::{Error, Scope};
use rustc_hash::FxHashSet;
use std::io::Read;
use tidegraph_platform::{ObjectError, ObjectInfo, Objects};
use tidegraph_types::{
    Epoch, Gui, GuiHasher, IndexDefinition, PartitionCount, PartitionId, Str, Token, Version,
};
use tidegraph_wire::frame::{self, FrameReader};
use tidegraph_wire::{Message, mutation, proto};

/// A manifest as it stands in object storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// Path of the manifest itself.
    pub object: String,
    /// Name of the graph.
    pub graph: String,
    /// Partition count of the graph.
    pub partition_count: PartitionCount,
    /// The one partition of a larger graph that it holds, if it does not hold all of the graph.
    pub scope: Option<Scope>,
    /// Computes the GUIs of the graph.
    pub hasher: GuiHasher,
    /// The version that the checkpoint holds; recovery goes on with the record after it.
    pub version: Version,
    /// Epoch of the record of that version.
    pub epoch: Epoch,
    /// The lowest SID that was not handed out.
    pub next_sid: u64,
    /// The whole dictionary.
    pub tokens: Vec<(Token, Str)>,
    /// Ids whose GUI is salted.
    pub exceptions: Vec<(Str, Gui)>,
    /// The indexes that there are.
    pub indexes: Vec<IndexDefinition>,
    /// One entry for each partition, in order.
    pub partitions: Vec<ManifestPartition>,
}

/// Where the chunks of one partition are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestPartition {
    /// The object that was written with the checkpoint, then older ones that are still in use.
    pub objects: Vec<ManifestObject>,
    /// Where the directory begins in the first object; it reaches to the end.
    pub directory_offset: u64,
    /// CRC-32C of the directory.
    pub directory_crc32c: u32,
    /// Vertices in the chunks.
    pub vertices: u64,
    /// Out-edges in the chunks.
    pub edges: u64,
}

/// An object with chunks of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestObject {
    /// Its path.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Version and attempt in the name of a manifest or data directory.
pub(super) type Number = (Version, u32);

pub(super) fn numbered(prefix: &str, kind: &str, (version, attempt): Number) -> String {
    format!("{prefix}/{kind}-{:020}-{attempt:06}", version.0)
}

fn number_in(prefix: &str, kind: &str, path: &str) -> Option<Number> {
    let rest = path.strip_prefix(prefix)?.strip_prefix('/')?.strip_prefix(kind)?.strip_prefix('-')?;
    let (version, rest) = rest.split_once('-')?;
    let attempt = rest.split('/').next()?;
    Some((Version(version.parse().ok()?), attempt.parse().ok()?))
}

pub(super) fn object_error(object: &str) -> impl FnOnce(ObjectError) -> Error {
    let object = object.to_owned();
    move |source| Error::Object { object, source: source.into() }
}

pub(super) fn damaged(object: &str, offset: u64, reason: impl ToString) -> Error {
    Error::Damaged { object: object.to_owned(), offset, reason: reason.to_string() }
}

/// Numbers of all objects of a kind, sorted.
pub(super) fn numbers(objects: &Objects, prefix: &str, kind: &str) -> Result<Vec<Number>, Error> {
    let listed = objects.list(&format!("{prefix}/")).map_err(object_error(prefix))?;
    Ok(numbers_in(&listed, prefix, kind))
}

/// Numbers of the objects of a kind in a listing, sorted.
pub(super) fn numbers_in(listed: &[ObjectInfo], prefix: &str, kind: &str) -> Vec<Number> {
    let mut numbers: Vec<Number> =
        listed.iter().filter_map(|object| number_in(prefix, kind, &object.path)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

impl Manifest {
    /// The newest manifest that can be read; damaged ones are passed over. `None` if there is none. Whether its
    /// partitions can be read shows only when it is restored.
    pub fn latest(objects: &Objects, prefix: &str) -> Result<Option<Self>, Error> {
        for number in numbers(objects, prefix, "manifest")?.into_iter().rev() {
            match Self::read(objects, &numbered(prefix, "manifest", number)) {
                Ok(manifest) => return Ok(Some(manifest)),
                Err(Error::Damaged { .. } | Error::Format { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Reads one manifest.
    pub fn read(objects: &Objects, object: &str) -> Result<Self, Error> {
        let bytes = objects.get(object).map_err(object_error(object))?;
        Self::decode(object, &bytes)
    }

    pub(super) fn decode(object: &str, mut bytes: &[u8]) -> Result<Self, Error> {
        let mut magic = [0; 8];
        if bytes.read_exact(&mut magic).is_err() || magic[..7] != MANIFEST_MAGIC[..7] {
            return Err(damaged(object, 0, "it does not begin like a manifest"));
        }
        let format = u32::from(magic[7]);
        if format != FORMAT {
            return Err(Error::Format { object: object.to_owned(), format, known: FORMAT });
        }
        let mut frames = FrameReader::at(bytes, 8);
        let message = match frames.next_frame() {
            Ok(Some(payload)) => proto::CheckpointManifest::decode(payload).map_err(|e| e.to_string()),
            Ok(None) => Err("it ends after its magic".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let message = message.map_err(|reason| damaged(object, 8, reason))?;
        if !matches!(frames.next_frame(), Ok(None)) {
            return Err(damaged(object, frames.offset(), "something follows the manifest"));
        }
        if message.format != FORMAT {
            return Err(Error::Format { object: object.to_owned(), format: message.format, known: FORMAT });
        }
        Self::of(object, message).map_err(|reason| damaged(object, 8, reason))
    }

    fn of(object: &str, message: proto::CheckpointManifest) -> Result<Self, String> {
        let count = u16::try_from(message.partition_count).map_err(|e| e.to_string())?;
        let partition_count = PartitionCount::new(count)?;
        if message.partitions.len() != usize::from(count) {
            return Err(format!("{} of {count} partitions are listed", message.partitions.len()));
        }
        let mut partitions = Vec::with_capacity(message.partitions.len());
        for (expected, partition) in (0..).zip(message.partitions) {
            if partition.partition != expected {
                return Err(format!("partition {} stands in place {expected}", partition.partition));
            }
            let own = partition.objects.first().map_or(0, |own| own.bytes);
            if own < partition.directory_offset || partition.objects.len() > 1 + MOST_OLDER {
                return Err(format!(
                    "partition {expected} has {} objects and a directory at {} of {own} bytes",
                    partition.objects.len(),
                    partition.directory_offset
                ));
            }
            let objects = partition.objects.into_iter();
            partitions.push(ManifestPartition {
                objects: objects.map(|o| ManifestObject { path: o.path, bytes: o.bytes }).collect(),
                directory_offset: partition.directory_offset,
                directory_crc32c: partition.directory_crc32c,
                vertices: partition.vertices,
                edges: partition.edges,
            });
        }
        let scope = match message.scope_partitions {
            0 => None,
            partitions => {
                let partitions = PartitionCount::new(u16::try_from(partitions).map_err(|e| e.to_string())?)?;
                let partition = u16::try_from(message.scope_partition).ok().map(PartitionId);
                let partition = partition.filter(|partition| partition.0 < partitions.get());
                let partition = partition.ok_or_else(|| {
                    format!("partition {} of {}", message.scope_partition, partitions.get())
                })?;
                Some(Scope { partitions, partition })
            }
        };
        Ok(Self {
            object: object.to_owned(),
            graph: message.graph,
            partition_count,
            scope,
            hasher: match message.gui_bits {
                0 => GuiHasher::default(),
                bits @ 1..=64 => GuiHasher::with_bits(bits),
                bits => return Err(format!("hashes of {bits} bits")),
            },
            version: Version(message.version),
            epoch: Epoch(message.epoch),
            next_sid: message.next_sid,
            tokens: message.tokens.into_iter().map(|t| (Token(t.token), Str::from(t.name))).collect(),
            exceptions: message.exceptions.into_iter().map(|e| (Str::from(e.id), Gui(e.gui))).collect(),
            indexes: message.indexes.into_iter().map(mutation::decode_index).collect(),
            partitions,
        })
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, tidegraph_wire::Error> {
        let message = proto::CheckpointManifest {
            format: FORMAT,
            graph: self.graph.clone(),
            partition_count: u32::from(self.partition_count.get()),
            version: self.version.0,
            epoch: self.epoch.0,
            next_sid: self.next_sid,
            tokens: self
                .tokens
                .iter()
                .map(|(token, name)| proto::TokenEntry { token: token.0, name: name.to_string() })
                .collect(),
            exceptions: self
                .exceptions
                .iter()
                .map(|(id, gui)| proto::AddException { id: id.to_string(), gui: gui.0 })
                .collect(),
            partitions: (0..)
                .zip(&self.partitions)
                .map(|(partition, p)| proto::CheckpointPartition {
                    partition,
                    objects: p
                        .objects
                        .iter()
                        .map(|o| proto::CheckpointObject { path: o.path.clone(), bytes: o.bytes })
                        .collect(),
                    directory_offset: p.directory_offset,
                    directory_crc32c: p.directory_crc32c,
                    vertices: p.vertices,
                    edges: p.edges,
                })
                .collect(),
            indexes: self.indexes.iter().map(mutation::encode_index).collect(),
            gui_bits: if self.hasher.bits() == 64 { 0 } else { self.hasher.bits() },
            scope_partitions: self.scope.map_or(0, |scope| u32::from(scope.partitions.get())),
            scope_partition: self.scope.map_or(0, |scope| u32::from(scope.partition.0)),
        };
        let mut bytes = MANIFEST_MAGIC.to_vec();
        frame::write_frame(&mut bytes, &message.encode_to_vec())?;
        Ok(bytes)
    }
}

/// Removes all checkpoints but the newest `keep` whose manifests can be read, but for the objects that these still use, and
/// what failed attempts before the newest of these left behind. Answers how many objects were removed. Keeps at least one.
pub fn prune(objects: &Objects, prefix: &str, keep: usize) -> Result<usize, Error> {
    let mut kept: Vec<Number> = Vec::new();
    let mut used: FxHashSet<String> = FxHashSet::default();
    let manifests = numbers(objects, prefix, "manifest")?;
    for &number in manifests.iter().rev() {
        if kept.len() >= keep.max(1) {
            break;
        }
        match Manifest::read(objects, &numbered(prefix, "manifest", number)) {
            Ok(manifest) => {
                kept.push(number);
                let objects = manifest.partitions.into_iter().flat_map(|partition| partition.objects);
                used.extend(objects.map(|object| object.path));
            }
            Err(Error::Damaged { .. } | Error::Format { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let Some(&newest) = kept.first() else { return Ok(0) };
    let mut removed = 0;
    // Manifests first, so that none ever names objects that are gone.
    for number in manifests.into_iter().filter(|number| *number < newest && !kept.contains(number)) {
        let object = numbered(prefix, "manifest", number);
        objects.delete(&object).map_err(object_error(&object))?;
        removed += 1;
    }
    for object in objects.list(&format!("{prefix}/data-")).map_err(object_error(prefix))? {
        let Some(number) = number_in(prefix, "data", &object.path) else { continue };
        if number < newest && !used.contains(&object.path) {
            objects.delete(&object.path).map_err(object_error(&object.path))?;
            removed += 1;
        }
    }
    Ok(removed)
}

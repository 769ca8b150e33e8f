//! The manifest: lists what belongs to a checkpoint. This file also finds and prunes manifests.

use super::format::{Format, ObjectKind, v2};
use crate::error::Cause;
use crate::{Error, Scope};
use rustc_hash::FxHashSet;
use tidegraph_platform::{ObjectError, ObjectInfo, Objects};
use tidegraph_types::{Epoch, Gui, GuiHasher, IndexDefinition, PartitionCount, Str, Token, Version};

/// A manifest in object storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// Path of the manifest itself.
    pub object: String,
    /// Version of the format of the checkpoint.
    pub format: Format,
    /// Name of the graph.
    pub graph: String,
    /// Partition count of the graph.
    pub partition_count: PartitionCount,
    /// The one partition of a larger graph that it holds; `None` if it holds the whole graph.
    pub scope: Option<Scope>,
    /// Computes the GUIs of the graph.
    pub hasher: GuiHasher,
    /// The version of the checkpoint. Recovery continues with the record after it.
    pub version: Version,
    /// Epoch of the record of that version.
    pub epoch: Epoch,
    /// The lowest SID that was not handed out.
    pub next_sid: u64,
    /// The whole dictionary.
    pub tokens: Vec<(Token, Str)>,
    /// Ids whose GUI is salted.
    pub exceptions: Vec<(Str, Gui)>,
    /// Definitions of the indexes.
    pub indexes: Vec<IndexDefinition>,
    /// One entry for each partition, in order.
    pub partitions: Vec<ManifestPartition>,
}

/// Where the chunks of one partition are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestPartition {
    /// The object that was written with the checkpoint, followed by older ones that it uses.
    pub objects: Vec<ManifestObject>,
    /// Offset of the directory in the first object; it reaches to the object's end.
    pub directory_offset: u64,
    /// CRC-32C of the directory.
    pub directory_crc32c: u32,
    /// Number of vertices in the chunks.
    pub vertices: u64,
    /// Number of out-edges in the chunks.
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

/// Returns the path of a manifest or data directory.
pub(super) fn numbered(prefix: &str, kind: &str, (version, attempt): Number) -> String {
    format!("{prefix}/{kind}-{:020}-{attempt:06}", version.0)
}

fn number_in(prefix: &str, kind: &str, path: &str) -> Option<Number> {
    let rest = path.strip_prefix(prefix)?.strip_prefix('/')?.strip_prefix(kind)?.strip_prefix('-')?;
    let (version, rest) = rest.split_once('-')?;
    let attempt = rest.split('/').next()?;
    Some((Version(version.parse().ok()?), attempt.parse().ok()?))
}

/// Wraps errors of the object store with the name of the object.
pub(super) fn object_error(object: &str) -> impl FnOnce(ObjectError) -> Error {
    let object = object.to_owned();
    move |source| Error::Object { object, source: source.into() }
}

/// Makes the error of a damaged object.
pub(super) fn damaged(object: &str, offset: u64, reason: impl Into<Cause>) -> Error {
    Error::Damaged { object: object.to_owned(), offset, reason: reason.into() }
}

/// Returns the numbers of all objects of a kind, sorted.
pub(super) fn numbers(objects: &Objects, prefix: &str, kind: &str) -> Result<Vec<Number>, Error> {
    let listed = objects.list(&format!("{prefix}/")).map_err(object_error(prefix))?;
    Ok(numbers_in(&listed, prefix, kind))
}

/// Returns the numbers of the objects of a kind in a listing, sorted.
pub(super) fn numbers_in(listed: &[ObjectInfo], prefix: &str, kind: &str) -> Vec<Number> {
    let mut numbers: Vec<Number> =
        listed.iter().filter_map(|object| number_in(prefix, kind, &object.path)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

impl Manifest {
    /// Returns the newest manifest that can be read, skipping damaged ones; `None` if there is none. Only restoring
    /// shows whether its partitions can be read.
    ///
    /// # Errors
    ///
    /// [`Error::Object`] if the object store fails.
    pub fn latest(objects: &Objects, prefix: &str) -> Result<Option<Self>, Error> {
        for number in numbers(objects, prefix, "manifest")?.into_iter().rev() {
            match Self::read(objects, &numbered(prefix, "manifest", number)) {
                Ok(manifest) => return Ok(Some(manifest)),
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Reads one manifest.
    ///
    /// # Errors
    ///
    /// [`Error::Object`] if the object store fails; [`Error::Damaged`] or [`Error::UnknownFormat`] if the object
    /// cannot be decoded.
    pub fn read(objects: &Objects, object: &str) -> Result<Self, Error> {
        let bytes = objects.get(object).map_err(object_error(object))?;
        Self::decode(object, &bytes)
    }

    /// Returns the objects with the chunks of all partitions.
    pub fn objects(&self) -> impl Iterator<Item = &ManifestObject> {
        self.partitions.iter().flat_map(|partition| &partition.objects)
    }

    /// Encodes the manifest as an object, also one that was changed after it was read.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] if it is too large.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        match self.format {
            Format::V2 => v2::encode_manifest(self)
                .map_err(|source| Error::Encode { object: self.object.clone(), source: Box::new(source) }),
        }
    }

    fn decode(object: &str, bytes: &[u8]) -> Result<Self, Error> {
        let format = Format::of_magic(object, ObjectKind::Manifest, bytes)?;
        format.reader().manifest(object, &bytes[Format::MAGIC_BYTES..])
    }
}

/// Removes all checkpoints but the newest `keep` (at least one) whose manifests can be read, and what failed attempts
/// before the newest of these left behind. Keeps objects that a kept checkpoint uses. Returns the number of objects
/// removed.
///
/// # Errors
///
/// [`Error::Object`] if the object store fails; what was removed until then stays removed.
pub fn prune(objects: &Objects, prefix: &str, keep: usize) -> Result<usize, Error> {
    let kept = Kept::newest(objects, prefix, keep.max(1))?;
    match kept.numbers.first() {
        Some(&newest) => kept.remove_others(objects, prefix, newest),
        None => Ok(0),
    }
}

/// Removes the checkpoints below a version, and what failed attempts below it left behind. Keeps objects that a newer
/// checkpoint under the prefix uses. Returns the number of objects removed.
///
/// `is_written` says whether another process may be writing a checkpoint under the prefix. Such a checkpoint may build
/// on the newest one, whatever its version: that one and what is newer stay.
///
/// # Errors
///
/// [`Error::Object`] if the object store fails; what was removed until then stays removed.
pub fn prune_below(
    objects: &Objects,
    prefix: &str,
    version: Version,
    is_written: bool,
) -> Result<usize, Error> {
    let newer = numbers(objects, prefix, "manifest")?.iter().filter(|number| number.0 >= version).count();
    let kept = Kept::newest(objects, prefix, newer.max(usize::from(is_written)))?;
    let below = (version, 0);
    match kept.numbers.first() {
        Some(&newest) if is_written => kept.remove_others(objects, prefix, newest.min(below)),
        None if is_written => Ok(0),
        _ => kept.remove_others(objects, prefix, below),
    }
}

/// The checkpoints that pruning keeps.
struct Kept {
    /// Numbers of all manifests under the prefix.
    manifests: Vec<Number>,
    /// Numbers of the kept manifests, newest first.
    numbers: Vec<Number>,
    /// Paths of the objects that these use.
    used: FxHashSet<String>,
}

impl Kept {
    /// Chooses the newest manifests that can be read.
    fn newest(objects: &Objects, prefix: &str, count: usize) -> Result<Self, Error> {
        let manifests = numbers(objects, prefix, "manifest")?;
        let mut kept = Self { numbers: Vec::new(), used: FxHashSet::default(), manifests };
        for &number in kept.manifests.iter().rev() {
            if kept.numbers.len() >= count {
                break;
            }
            match Manifest::read(objects, &numbered(prefix, "manifest", number)) {
                Ok(manifest) => {
                    kept.numbers.push(number);
                    let objects = manifest.partitions.into_iter().flat_map(|partition| partition.objects);
                    kept.used.extend(objects.map(|object| object.path));
                }
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(kept)
    }

    /// Removes what is below a number and not kept.
    fn remove_others(&self, objects: &Objects, prefix: &str, below: Number) -> Result<usize, Error> {
        let mut removed = 0;
        // Manifests first, so that no manifest ever names objects that are gone.
        for &number in self.manifests.iter().filter(|number| **number < below) {
            if self.numbers.contains(&number) {
                continue;
            }
            let object = numbered(prefix, "manifest", number);
            objects.delete(&object).map_err(object_error(&object))?;
            removed += 1;
        }
        for object in objects.list(&format!("{prefix}/data-")).map_err(object_error(prefix))? {
            let Some(number) = number_in(prefix, "data", &object.path) else { continue };
            if number < below && !self.used.contains(&object.path) {
                objects.delete(&object.path).map_err(object_error(&object.path))?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

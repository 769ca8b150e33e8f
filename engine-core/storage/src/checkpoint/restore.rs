//! Restores the newest checkpoint that is complete. A store of one partition can be restored from a checkpoint of the
//! partition that it came from, when the graph was split.

use super::copies::Sources;
use super::directory::{ChunkEntry, ChunkKind, Directory};
use super::format::{Format, ObjectKind};
use super::manifest::{damaged, numbered, numbers, object_error};
use super::reads::{READ_BYTES, RestoreReads};
use super::{BaseCheckpoint, Manifest, ManifestObject, ManifestPartition};
use crate::parallel::try_parallel;
use crate::partition::{Excerpt, Misread, Rebuild, Rebuilt};
use crate::store::Generation;
use crate::{Error, Scope, Store, StoreConfig};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use tidegraph_platform::{ObjectError, Objects, metric};
use tidegraph_wire::frame::is_intact;

/// A restored store.
#[derive(Debug)]
pub struct Restored {
    /// The store, at the manifest's version.
    pub store: Store,
    /// The manifest of the checkpoint.
    pub manifest: Manifest,
    /// Newer checkpoints that were refused.
    pub refused: Vec<Refused>,
}

/// A checkpoint that was refused, and why.
#[derive(Debug)]
pub struct Refused {
    /// Path of its manifest.
    pub manifest: String,
    /// What is wrong with it, with object and offset.
    pub error: Error,
}

/// Restores the newest complete checkpoint under a prefix; returns `None` if there is no checkpoint at all. Partition
/// count and hash are those of the checkpoint, whatever `config` says. If `config` is of one partition, the checkpoint
/// may be that of a partition from which it came when the graph was split: see [`Scope::covers`].
///
/// # Errors
///
/// If there are checkpoints and all are refused, the error of the newest: [`Error::Damaged`],
/// [`Error::UnknownFormat`], or [`Error::Object`] for a missing object. Other errors of the object store, as
/// [`Error::Object`], end the search at once. [`Error::Apl`] if the local disk loses a page.
pub fn restore_newest(
    config: &StoreConfig,
    objects: &Objects,
    prefix: &str,
) -> Result<Option<Restored>, Error> {
    let prefix = prefix.trim_end_matches('/');
    let mut refused = Vec::new();
    for number in numbers(objects, prefix, "manifest")?.into_iter().rev() {
        let object = numbered(prefix, "manifest", number);
        let restored = Manifest::read(objects, &object)
            .and_then(|manifest| Ok((restore(config, objects, &manifest)?, manifest)));
        match restored {
            Ok((store, manifest)) => return Ok(Some(Restored { store, manifest, refused })),
            Err(error) if is_unusable(&error) => {
                tracing::error!(manifest = object, %error, "a checkpoint cannot be used");
                metric::refused(metric::Refused::Checkpoint);
                refused.push(Refused { manifest: object, error });
            }
            // The object store may recover soon; an older checkpoint would hide that.
            Err(error) => return Err(error),
        }
    }
    match refused.into_iter().next() {
        Some(newest) => Err(newest.error),
        None => Ok(None),
    }
}

/// Whether another checkpoint may help where a restore failed: this one is damaged, or one of its objects is gone.
/// Otherwise the object store may recover soon.
#[must_use]
pub fn is_unusable(error: &Error) -> bool {
    let gone = match error {
        Error::Object { source, .. } => matches!(**source, ObjectError::NotFound { .. }),
        _ => false,
    };
    gone || error.is_damage()
}

/// Restores a checkpoint, from local copies of its objects where there are some. If a copy is damaged, it is forgotten,
/// and the restore begins again. The last attempt reads no copies.
fn restore(config: &StoreConfig, objects: &Objects, manifest: &Manifest) -> Result<Store, Error> {
    let mut attempts = manifest.objects().count();
    loop {
        let copies = config.copies.as_deref().filter(|copies| attempts > 0 && copies.has_any(manifest));
        let error = match restore_from(config, Sources { objects, copies }, manifest) {
            Err(error) => error,
            restored => return restored,
        };
        let (Some(copies), Some(object)) = (copies, object_of(&error)) else { return Err(error) };
        attempts = if copies.forget_cause(object, &error) { attempts - 1 } else { 0 };
    }
}

/// Returns the object in which a restore found an error.
fn object_of(error: &Error) -> Option<&str> {
    match error {
        Error::Damaged { object, .. }
        | Error::UnknownFormat { object, .. }
        | Error::Object { object, .. } => Some(object),
        _ => None,
    }
}

fn restore_from(config: &StoreConfig, sources: Sources<'_>, manifest: &Manifest) -> Result<Store, Error> {
    let larger = match (manifest.scope, config.scope) {
        (Some(held), Some(wanted)) if held != wanted && held.covers(wanted) => Some(held),
        _ => None,
    };
    if config.scope != manifest.scope && larger.is_none() {
        let what = |scope: Option<Scope>| match scope {
            Some(Scope { partitions, partition }) => format!("partition {partition} of {}", partitions.get()),
            None => "all of a graph".to_owned(),
        };
        let reason = format!("it holds {}, the store needs {}", what(manifest.scope), what(config.scope));
        return Err(damaged(&manifest.object, 0, reason));
    }
    let config =
        StoreConfig { partitions: manifest.partition_count, hasher: manifest.hasher, ..config.clone() };
    let reads = config.reads.clone();
    let restored = Store::at(config, manifest.version);
    let store = restored.newest();
    store.note_changes();
    let partition = |number: usize| {
        let entry = &manifest.partitions[number];
        let reads = &reads;
        let source = PartitionSource { sources, reads, store: &store, manifest, entry, number, larger };
        let directory = source.directory()?;
        let rebuilt = source.rebuild(&directory);
        // If an evicted page could not be read back, the checkpoint is not at fault.
        store.check_lost()?;
        let rebuilt = rebuilt?;
        store.count(rebuilt.tally);
        Ok::<_, Error>((directory, rebuilt.left, rebuilt.arrived))
    };
    let partitions = try_parallel(manifest.partitions.len(), partition)?;
    let sum =
        |part: fn(&(Directory, u64, u64)) -> u64| partitions.iter().map(part).fold(0, u64::wrapping_add);
    if sum(|partition| partition.1) != sum(|partition| partition.2) {
        return Err(damaged(&manifest.object, 0, "out-edges and in-edges differ"));
    }
    let exceptions = manifest.exceptions.iter().filter(|(_, gui)| store.holds(*gui)).cloned();
    store.add_exceptions(&exceptions.collect::<Vec<_>>());
    manifest.indexes.iter().for_each(|index| store.define_index(index, manifest.version));
    // A checkpoint of a larger partition has other places, so the next checkpoint writes every chunk.
    if larger.is_none() {
        let directories = partitions.into_iter().map(|(directory, ..)| directory).collect();
        let base = BaseCheckpoint { manifest: manifest.clone(), directories, rewritten_bytes: 0 };
        store.set_base(Arc::new(base));
    }
    drop(store);
    Ok(restored)
}

/// The part of a checkpoint that a partition is restored from.
struct PartitionSource<'r> {
    sources: Sources<'r>,
    reads: &'r Arc<RestoreReads>,
    store: &'r Generation,
    manifest: &'r Manifest,
    entry: &'r ManifestPartition,
    number: usize,
    /// The partition that the checkpoint holds, if it is larger than the one to restore.
    larger: Option<Scope>,
}

impl PartitionSource<'_> {
    fn own(&self) -> &str {
        self.entry.objects.first().map_or(&self.manifest.object, |own| &own.path)
    }

    /// Checks all objects and reads the directory.
    fn directory(&self) -> Result<Directory, Error> {
        self.check_sizes()?;
        self.check_formats()?;
        let (start, own) = (self.entry.directory_offset, self.own());
        let end = self.entry.objects.first().map_or(start, |own| own.bytes);
        let mut ahead = self.reads.ahead(self.sources, std::iter::once((own, start..end)));
        let part = ahead.next_part()?;
        let bytes: &[u8] = part.as_deref().unwrap_or_default();
        let found = crc32c::crc32c(bytes);
        if !is_intact(found, self.entry.directory_crc32c) {
            let reason = format!(
                "its directory has checksum {found:08x} instead of {:08x}",
                self.entry.directory_crc32c
            );
            return Err(damaged(own, start, reason));
        }
        self.manifest.format.reader().directory(bytes, self.entry)
    }

    /// Checks that all objects are there and have their sizes.
    fn check_sizes(&self) -> Result<(), Error> {
        let ask = |object: &'_ ManifestObject| {
            let asked = self.sources.objects.start_head(&object.path).map_err(object_error(&object.path))?;
            Ok::<_, Error>((object.clone(), asked))
        };
        let elsewhere = self.entry.objects.iter().filter(|object| !self.sources.is_kept(object));
        for (object, asked) in elsewhere.map(ask).collect::<Result<Vec<_>, _>>()? {
            let path = &object.path;
            let found = asked.wait().map_err(object_error(path))?.bytes;
            if found != object.bytes {
                let reason = format!("it has {found} bytes, the manifest states {}", object.bytes);
                return Err(damaged(path, found.min(object.bytes), reason));
            }
        }
        Ok(())
    }

    /// Checks the first bytes of all objects.
    fn check_formats(&self) -> Result<(), Error> {
        let magic = |object: &'_ ManifestObject| 0..object.bytes.min(Format::MAGIC_BYTES as u64);
        let objects = self.entry.objects.iter();
        let mut ahead = self
            .reads
            .ahead(self.sources, objects.clone().map(|object| (object.path.as_str(), magic(object))));
        for ManifestObject { path, .. } in objects {
            let Some(magic) = ahead.next_part()? else { break };
            let format = Format::of_magic(path, ObjectKind::Partition, &magic)?;
            let named = self.manifest.format;
            if format != named {
                let reason = format!("it has format {format}, the manifest names format {named}");
                return Err(damaged(path, 7, reason));
            }
        }
        Ok(())
    }

    /// Returns the excerpt of a larger partition; `None` if the checkpoint is that of the partition itself.
    fn excerpt(&self, directory: &Directory) -> Result<Option<Excerpt>, Error> {
        let Some(larger) = self.larger else { return Ok(None) };
        let (reader, mut edges) = (self.manifest.format.reader(), FxHashSet::default());
        self.each_chunk(directory, &[ChunkKind::Nodes], |_, _, bytes| {
            reader.out_edges(bytes, &mut |gui, links| {
                if self.store.holds(gui) {
                    edges.extend(links.iter().map(|link| link.sid));
                }
            })
        })?;
        Ok(Some(Excerpt::new(larger, edges)))
    }

    fn rebuild(&self, directory: &Directory) -> Result<Rebuilt, Error> {
        let reader = self.manifest.format.reader();
        let excerpt = self.excerpt(directory)?;
        // Vertices and ids are divided by a hash, so each excerpt has about as many.
        let share = self
            .larger
            .zip(self.store.config().scope)
            .map_or(1, |(larger, own)| usize::from(own.partitions.get() / larger.partitions.get()));
        let mut rebuild = Rebuild::new(self.store, self.number, excerpt);
        // The directory's counts are not trusted: no more is reserved than the chunks' bytes can hold.
        let most = |kind| {
            let least = reader.least_record_bytes(kind);
            directory.of(kind).iter().map(|entry| entry.length / least).sum::<u64>()
        };
        let vertices = directory.counts().0.min(most(ChunkKind::Nodes));
        rebuild.reserve(vertices as usize / share, most(ChunkKind::EdgeIds) as usize / share);
        self.each_chunk(directory, &ChunkKind::ALL, |kind, entry, bytes| {
            reader.chunk(kind, entry.number, bytes, &mut rebuild)?;
            rebuild.make_room();
            Ok(())
        })?;
        let (start, own) = (self.entry.directory_offset, self.own());
        let rebuilt = rebuild.finish().map_err(|reason| damaged(own, start, reason))?;
        let vertices = rebuilt.tally.vertices.unsigned_abs() + rebuilt.left_out.0;
        let edges = rebuilt.tally.edges.unsigned_abs() + rebuilt.left_out.1;
        if (vertices, edges) != (self.entry.vertices, self.entry.edges) {
            let reason = format!(
                "it has {vertices} vertices and {edges} edges, the manifest states {} and {}",
                self.entry.vertices, self.entry.edges
            );
            return Err(damaged(own, start, reason));
        }
        Ok(rebuilt)
    }

    /// Reads all chunks of some kinds (adjacent ones together, and several parts ahead), checks their checksums, and
    /// calls `take` with each, in the order of the directory.
    fn each_chunk(
        &self,
        directory: &Directory,
        kinds: &[ChunkKind],
        mut take: impl FnMut(ChunkKind, &ChunkEntry, &[u8]) -> Result<(), Misread>,
    ) -> Result<(), Error> {
        let of = |kind: &ChunkKind| {
            let kind = *kind;
            adjacent(directory.of(kind)).map(move |some| (kind, some))
        };
        let all = kinds.iter().flat_map(of);
        let part = |(_, some): (ChunkKind, &[ChunkEntry])| {
            let (start, object) = some.first().map_or((0, 0), |first| (first.offset, first.object));
            let end = some.last().map_or(start, |last| last.offset + last.length);
            (self.entry.objects[object as usize].path.as_str(), start..end)
        };
        let mut ahead = self.reads.ahead(self.sources, all.clone().map(part));
        for (kind, some) in all {
            let Some(bytes) = ahead.next_part()? else { break };
            let first = some.first().map_or(0, |first| first.offset);
            for entry in some {
                let object = &self.entry.objects[entry.object as usize].path;
                let start = (entry.offset - first) as usize;
                let chunk = &bytes[start..start + entry.length as usize];
                let found = crc32c::crc32c(chunk);
                if !is_intact(found, entry.crc32c) {
                    let reason =
                        format!("the chunk has checksum {found:08x} instead of {:08x}", entry.crc32c);
                    return Err(damaged(object, entry.offset, reason));
                }
                take(kind, entry, chunk)
                    .map_err(|Misread { at, reason }| damaged(object, entry.offset + at as u64, reason))?;
            }
        }
        Ok(())
    }
}

/// Divides chunks into runs that lie in one object without a gap, of up to [`READ_BYTES`] or one chunk.
fn adjacent(entries: &[ChunkEntry]) -> impl Iterator<Item = &[ChunkEntry]> + Clone {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let mut end = first.offset;
        let together = rest.iter().take_while(|entry| {
            let fits = end == first.offset || end - first.offset + entry.length <= READ_BYTES;
            let next = entry.object == first.object && entry.offset == end && fits;
            if next {
                end += entry.length;
            }
            next
        });
        let (some, more) = rest.split_at(together.count().max(1));
        rest = more;
        Some(some)
    })
}

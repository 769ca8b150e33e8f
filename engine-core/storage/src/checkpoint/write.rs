//! Writes a checkpoint while reads and writes continue.

use super::directory::{ChunkEntry, ChunkKind, Directory};
use super::format::{Format, ObjectKind, v2};
use super::manifest::{numbered, numbers_in, object_error};
use super::{BaseCheckpoint, CheckpointMeta, MOST_OLDER, Manifest, ManifestObject, ManifestPartition};
use crate::Error;
use crate::parallel::try_parallel;
use crate::partition::{Image, NodeCounts, Partition};
use crate::store::Generation;
use std::io::Write;
use std::sync::Arc;
use tidegraph_platform::{ObjectInfo, ObjectWriter, Objects};
use tidegraph_types::Version;

/// Writes all partitions and then the manifest.
pub(crate) fn write(
    store: &Generation,
    version: Version,
    objects: &Objects,
    prefix: &str,
    meta: CheckpointMeta,
) -> Result<Manifest, Error> {
    let pin = store.pin(version)?;
    let prefix = prefix.trim_end_matches('/');
    let listed = objects.list(&format!("{prefix}/")).map_err(object_error(prefix))?;
    // Names of a failed attempt are not reused: a slow upload of it may still be in progress.
    let taken = |kind| {
        let numbers = numbers_in(&listed, prefix, kind);
        numbers.iter().filter(|(v, _)| *v == version).map(|(_, attempt)| attempt + 1).max().unwrap_or(0)
    };
    let number = (version, taken("manifest").max(taken("data")));
    let directory = numbered(prefix, "data", number);
    let base =
        store.base().filter(|base| base.manifest.version <= version && is_there(base, objects, &listed));
    let write = |index: usize| {
        let object = format!("{directory}/partition-{index:05}");
        let before = base.as_ref().map(|base| PreviousPartition {
            version: base.manifest.version,
            partition: &base.manifest.partitions[index],
            directory: &base.directories[index],
        });
        write_partition(store, index, version, before, objects, object)
    };
    let (partitions, directories): (_, Vec<_>) =
        try_parallel(store.partitions().len(), write)?.into_iter().unzip();
    let before = base.iter().flat_map(|base| &base.directories);
    let rewritten_bytes = before.zip(&directories).map(|(before, now)| now.rewritten_bytes(before)).sum();
    let manifest = Manifest {
        object: numbered(prefix, "manifest", number),
        format: Format::WRITTEN,
        graph: meta.graph,
        partition_count: store.config().partitions,
        scope: store.config().scope,
        hasher: store.config().hasher,
        version,
        epoch: meta.epoch,
        next_sid: meta.next_sid,
        tokens: meta.tokens,
        // The list may be newer than the version. That does no harm, because the version has no such ids.
        exceptions: store.exceptions(),
        // The same holds for indexes: a record that defines one again has no effect.
        indexes: store.indexes().into_iter().map(|index| index.definition).collect(),
        partitions,
    };
    let bytes = v2::encode_manifest(&manifest).map_err(encode_error(&manifest.object))?;
    objects.put(&manifest.object, bytes).map_err(object_error(&manifest.object))?;
    drop(pin);
    store.set_base(Arc::new(BaseCheckpoint { manifest: manifest.clone(), directories, rewritten_bytes }));
    Ok(manifest)
}

fn encode_error(object: &str) -> impl FnOnce(tidegraph_wire::Error) -> Error {
    let object = object.to_owned();
    move |source| Error::Encode { object, source: source.into() }
}

/// Returns whether the next checkpoint can build on `base`: it has the written format, and it is under this prefix of
/// this object store with everything that it names.
fn is_there(base: &BaseCheckpoint, objects: &Objects, listed: &[ObjectInfo]) -> bool {
    let size = |path: &str| {
        listed.binary_search_by(|object| object.path.as_str().cmp(path)).ok().map(|at| listed[at].bytes)
    };
    let manifest = &base.manifest;
    manifest.format == Format::WRITTEN
        && size(&manifest.object).is_some()
        && manifest.partitions.iter().flat_map(|p| &p.objects).all(|o| size(&o.path) == Some(o.bytes))
        && Manifest::read(objects, &manifest.object).is_ok_and(|there| there == *manifest)
}

/// A partition in the checkpoint before.
struct PreviousPartition<'b> {
    version: Version,
    partition: &'b ManifestPartition,
    directory: &'b Directory,
}

impl Partition {
    fn chunks(&self, kind: ChunkKind) -> u32 {
        match kind {
            ChunkKind::Pages => self.page_count(),
            ChunkKind::Nodes => self.node_groups(),
            ChunkKind::EdgeIds => self.edge_id_groups(),
        }
    }

    fn modified(&self, kind: ChunkKind, number: u32) -> Version {
        match kind {
            ChunkKind::Pages => self.page_modified(number),
            ChunkKind::Nodes => self.nodes_modified(number),
            ChunkKind::EdgeIds => self.edge_ids_modified(number),
        }
    }
}

impl PreviousPartition<'_> {
    /// Returns the number that each of its objects gets in the next checkpoint; `None` for those that are left
    /// behind.
    fn kept(&self, partition: &Partition) -> Vec<Option<u32>> {
        let mut used = vec![0_u64; self.partition.objects.len()];
        for (kind, entry) in self.directory.all() {
            if partition.modified(kind, entry.number) <= self.version {
                used[entry.object as usize] += entry.length;
            }
        }
        let mut worth: Vec<usize> = (0..used.len())
            .filter(|&object| used[object] > 0 && used[object] * 2 >= self.partition.objects[object].bytes)
            .collect();
        // If there are too many, those with the least in use are rewritten together.
        worth.sort_unstable_by_key(|&object| (std::cmp::Reverse(used[object]), object));
        worth.truncate(MOST_OLDER);
        let mut kept = vec![None; used.len()];
        (1..).zip(worth).for_each(|(number, object)| kept[object] = Some(number));
        kept
    }
}

struct Output {
    object: String,
    writer: ObjectWriter,
    offset: u64,
}

impl Output {
    fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.offset += bytes.len() as u64;
        let sent = self.writer.write_all(bytes);
        sent.map_err(|source| Error::Upload { object: self.object.clone(), source })
    }
}

fn write_partition(
    store: &Generation,
    index: usize,
    at: Version,
    before: Option<PreviousPartition<'_>>,
    objects: &Objects,
    object: String,
) -> Result<(ManifestPartition, Directory), Error> {
    let partition = &store.partitions()[index];
    let kept = before.as_ref().map_or_else(Vec::new, |before| before.kept(partition));
    let writer = objects.writer(&object).map_err(object_error(&object))?;
    let mut out = Output { object, writer, offset: 0 };
    out.send(&Format::WRITTEN.magic(ObjectKind::Partition))?;
    let mut directory = Directory::default();
    let (mut image, mut bytes) = (Image::default(), Vec::new());
    for kind in ChunkKind::ALL {
        let mut older = before.as_ref().map_or(&[][..], |before| before.directory.of(kind)).iter().peekable();
        for number in 0..partition.chunks(kind) {
            let older = older.next_if(|entry| entry.number == number);
            let same = before.as_ref().is_some_and(|b| partition.modified(kind, number) <= b.version);
            match older.map(|entry| (entry, kept[entry.object as usize])) {
                // The version before saw nothing of the chunk, and so does this one.
                None if same => continue,
                Some((entry, Some(object))) if same => {
                    directory.push(kind, ChunkEntry { object, ..*entry });
                    continue;
                }
                _ => {}
            }
            bytes.clear();
            let mut counts = NodeCounts::default();
            match kind {
                ChunkKind::Pages => {
                    let written = partition.append_page(number, at, &mut image, &mut bytes);
                    written.map_err(encode_error(&out.object))?;
                }
                ChunkKind::Nodes => counts = partition.append_nodes(number, at, &mut image, &mut bytes),
                ChunkKind::EdgeIds => {
                    partition.append_edge_ids(number, at, &mut image, &mut bytes, |entry| {
                        // Another store knows whether the edge is there. An entry too many is a candidate that leads to
                        // no edge; a missing one loses the id.
                        if !store.holds(entry.source) {
                            return true;
                        }
                        let source =
                            &store.partitions()[usize::from(store.config().partitions.of(entry.source).0)];
                        source.find_edge(entry.source, entry.sid, at, &crossbeam_epoch::pin()).is_some()
                    })
                }
            }
            store.check_lost()?;
            store.make_room();
            if bytes.is_empty() {
                continue;
            }
            directory.push(
                kind,
                ChunkEntry {
                    number,
                    object: 0,
                    offset: out.offset,
                    length: bytes.len() as u64,
                    crc32c: crc32c::crc32c(&bytes),
                    vertices: counts.vertices,
                    edges: counts.edges,
                },
            );
            out.send(&bytes)?;
        }
    }
    let (directory_offset, bytes) = (out.offset, v2::encode_directory(&directory));
    out.send(&bytes)?;
    let Output { object, writer, .. } = out;
    let own = writer.finish().map_err(object_error(&object))?;
    let mut manifest_objects = vec![ManifestObject { path: object, bytes: own }];
    let mut older: Vec<(u32, &ManifestObject)> = Vec::new();
    if let Some(before) = &before {
        let kept = kept.iter().zip(&before.partition.objects);
        older.extend(kept.filter_map(|(number, object)| Some(((*number)?, object))));
    }
    older.sort_unstable_by_key(|(number, _)| *number);
    manifest_objects.extend(older.into_iter().map(|(_, object)| object.clone()));
    let (vertices, edges) = directory.counts();
    let entry = ManifestPartition {
        objects: manifest_objects,
        directory_offset,
        directory_crc32c: crc32c::crc32c(&bytes),
        vertices,
        edges,
    };
    Ok((entry, directory))
}

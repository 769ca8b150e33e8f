//! Writing a checkpoint while reads and writes go on.

use super::manifest::{numbered, numbers, object_error};
use super::{CheckpointMeta, Manifest, ManifestPartition, PARTITION_MAGIC};
use crate::partition::{EdgeIdEntry, Progress};
use crate::{Error, Store};
use std::io::Write;
use tidegraph_apl::Expansion;
use tidegraph_platform::{ObjectWriter, Objects};
use tidegraph_types::Version;
use tidegraph_wire::proto::{CheckpointBlock, EdgeIdEntry as EdgeIdImage};
use tidegraph_wire::{Message, frame, mutation};

/// Writes all partitions and then the manifest.
pub(crate) fn write(
    store: &Store,
    version: Version,
    objects: &Objects,
    prefix: &str,
    meta: CheckpointMeta,
) -> Result<Manifest, Error> {
    let pin = store.pin(version)?;
    let prefix = prefix.trim_end_matches('/');
    // Names of an attempt that failed half-way are not used again: a slow upload of it may still be under way.
    let taken = |kind| -> Result<u32, Error> {
        let numbers = numbers(objects, prefix, kind)?;
        Ok(numbers.iter().filter(|(v, _)| *v == version).map(|(_, attempt)| attempt + 1).max().unwrap_or(0))
    };
    let number = (version, taken("manifest")?.max(taken("data")?));
    let directory = numbered(prefix, "data", number);
    let mut partitions = Vec::with_capacity(store.partitions().len());
    for index in 0..store.partitions().len() {
        let object = format!("{directory}/partition-{index:05}");
        partitions.push(write_partition(store, index, version, objects, object)?);
    }
    let manifest = Manifest {
        object: numbered(prefix, "manifest", number),
        graph: meta.graph,
        partition_count: store.config().partitions,
        hasher: store.config().hasher,
        version,
        epoch: meta.epoch,
        next_sid: meta.next_sid,
        tokens: meta.tokens,
        // May hold newer ones than the version: they do no harm, nobody has their ids yet.
        exceptions: store.exceptions(),
        // The same holds: a record that defines one again has no effect.
        indexes: store.indexes().into_iter().map(|index| index.definition).collect(),
        partitions,
    };
    let bytes = manifest.encode().map_err(encode_error(&manifest.object))?;
    objects.put(&manifest.object, bytes).map_err(object_error(&manifest.object))?;
    drop(pin);
    Ok(manifest)
}

fn encode_error(object: &str) -> impl FnOnce(tidegraph_wire::Error) -> Error {
    let object = object.to_owned();
    move |source| Error::Encode { object, source: source.into() }
}

struct Output {
    object: String,
    writer: ObjectWriter,
    buffer: Vec<u8>,
    crc32c: u32,
}

impl Output {
    fn send(&mut self) -> Result<(), Error> {
        self.crc32c = crc32c::crc32c_append(self.crc32c, &self.buffer);
        self.writer
            .write_all(&self.buffer)
            .map_err(|source| Error::Upload { object: self.object.clone(), source })?;
        self.buffer.clear();
        Ok(())
    }

    fn block(&mut self, block: &CheckpointBlock) -> Result<(), Error> {
        if block.vertices.is_empty() && block.edge_ids.is_empty() {
            return Ok(());
        }
        frame::write_frame(&mut self.buffer, &block.encode_to_vec()).map_err(encode_error(&self.object))?;
        self.send()
    }
}

fn write_partition(
    store: &Store,
    index: usize,
    at: Version,
    objects: &Objects,
    object: String,
) -> Result<ManifestPartition, Error> {
    let writer = objects.writer(&object).map_err(object_error(&object))?;
    let mut out = Output { object, writer, buffer: PARTITION_MAGIC.to_vec(), crc32c: 0 };
    out.send()?;
    let mut progress = Progress::default();
    let mut edges = Expansion::default();
    loop {
        let block = store.partitions()[index].vertex_block(at, &mut progress, &mut edges);
        match block.map_err(encode_error(&out.object))? {
            Some(block) => out.block(&block)?,
            None => break,
        }
    }
    let mut entries: Vec<EdgeIdEntry> = Vec::new();
    loop {
        entries.clear();
        let more = store.partitions()[index].edge_id_piece(&mut progress, &mut entries);
        out.block(&edge_id_block(store, &entries, at))?;
        if !more {
            break;
        }
    }
    let Output { object, writer, crc32c, .. } = out;
    let bytes = writer.finish().map_err(object_error(&object))?;
    Ok(ManifestPartition { object, bytes, crc32c, vertices: progress.vertices, edges: progress.edges })
}

fn edge_id_block(store: &Store, entries: &[EdgeIdEntry], at: Version) -> CheckpointBlock {
    let mut block = CheckpointBlock::default();
    let count = store.config().partitions;
    let mut entries: Vec<&EdgeIdEntry> = entries.iter().collect();
    entries.sort_unstable_by_key(|entry| count.of(entry.source));
    for group in entries.chunk_by(|a, b| count.of(a.source) == count.of(b.source)) {
        let source = &store.partitions()[usize::from(count.of(group[0].source).0)];
        for entry in group {
            if let Some((edge, id)) = source.edge_with_its_id(entry, at) {
                let edge = Some(mutation::encode_edge(&edge));
                block.edge_ids.push(EdgeIdImage { id: id.to_string(), edge });
            }
        }
    }
    block
}

//! Restoring the newest checkpoint that is whole.

use super::manifest::{damaged, numbered, numbers, object_error};
use super::{FORMAT, Manifest, ManifestPartition, PARTITION_MAGIC};
use crate::adjacency::Link;
use crate::partition::{Open, Tally, content_of, edge_content_of};
use crate::{Error, Store, StoreConfig};
use std::io::{BufReader, Read};
use tidegraph_platform::Objects;
use tidegraph_types::{Edge, Gui, PartitionId, Sid, Str, Token};
use tidegraph_wire::frame::FrameReader;
use tidegraph_wire::proto::{CheckpointBlock, VertexImage};
use tidegraph_wire::{Message, mutation};

/// A store out of a checkpoint.
#[derive(Debug)]
pub struct Restored {
    /// The store, at the manifest's version.
    pub store: Store,
    /// The checkpoint that it came from.
    pub manifest: Manifest,
    /// Newer checkpoints that were not used.
    pub refused: Vec<Refused>,
}

/// A checkpoint that was not used, and why.
#[derive(Debug)]
pub struct Refused {
    /// Path of its manifest.
    pub manifest: String,
    /// What is wrong with it: names the object and the offset.
    pub error: Error,
}

/// Restores the newest checkpoint under a prefix that is whole; `None` if there is no checkpoint at all. If there are
/// some and none is whole, the error of the newest. Partition count and hash are the checkpoint's, whatever `config`
/// says.
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
            Err(error) if is_damage(&error) => {
                tracing::error!(manifest = object, %error, "a checkpoint cannot be used");
                refused.push(Refused { manifest: object, error });
            }
            // The object store may be back soon; an older checkpoint would hide that.
            Err(error) => return Err(error),
        }
    }
    match refused.into_iter().next() {
        Some(newest) => Err(newest.error),
        None => Ok(None),
    }
}

fn is_damage(error: &Error) -> bool {
    use tidegraph_platform::ObjectError;
    match error {
        Error::Damaged { .. } | Error::Format { .. } => true,
        Error::Object { source, .. } => matches!(**source, ObjectError::NotFound { .. }),
        Error::Apl(_) | Error::Encode { .. } | Error::Upload { .. } => false,
    }
}

fn restore(config: &StoreConfig, objects: &Objects, manifest: &Manifest) -> Result<Store, Error> {
    let config =
        StoreConfig { partitions: manifest.partition_count, hasher: manifest.hasher, ..config.clone() };
    let store = Store::at(config, manifest.version);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(manifest.partitions.len());
    let work = || -> Result<(), Error> {
        loop {
            let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(entry) = manifest.partitions.get(number) else { return Ok(()) };
            let mut tally = Tally::default();
            let partition = store.partitions()[number].open();
            Reader { objects, manifest, entry, number, partition, tally: &mut tally }.run()?;
            store.count(tally);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    store.add_exceptions(&manifest.exceptions);
    manifest.indexes.iter().for_each(|index| store.define_index(index, manifest.version));
    Ok(store)
}

struct Reader<'r> {
    objects: &'r Objects,
    manifest: &'r Manifest,
    entry: &'r ManifestPartition,
    number: usize,
    partition: Open<'r>,
    tally: &'r mut Tally,
}

/// Sums up what passes through.
struct Checked<R> {
    inner: R,
    crc32c: u32,
    bytes: u64,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(out)?;
        self.crc32c = crc32c::crc32c_append(self.crc32c, &out[..n]);
        self.bytes += n as u64;
        Ok(n)
    }
}

impl Reader<'_> {
    fn damaged(&self, offset: u64, reason: impl ToString) -> Error {
        damaged(&self.entry.object, offset, reason)
    }

    fn run(&mut self) -> Result<(), Error> {
        let object = &self.entry.object;
        let reader = self.objects.reader(object).map_err(object_error(object))?;
        let found = reader.size_bytes();
        if found != self.entry.bytes {
            let reason = format!("it has {found} bytes, the manifest says {}", self.entry.bytes);
            return Err(self.damaged(found.min(self.entry.bytes), reason));
        }
        let mut checked = Checked { inner: BufReader::with_capacity(1 << 20, reader), crc32c: 0, bytes: 0 };
        let mut magic = [0; 8];
        checked.read_exact(&mut magic).map_err(|e| self.damaged(0, e))?;
        if magic[..7] != PARTITION_MAGIC[..7] {
            return Err(self.damaged(0, "it does not begin like a checkpoint"));
        }
        if u32::from(magic[7]) != FORMAT {
            return Err(Error::Format { object: object.clone(), format: u32::from(magic[7]), known: FORMAT });
        }
        // No more than the bytes could hold, whatever the manifest says.
        let vertices_at_most = self.entry.vertices.min(self.entry.bytes / 9);
        self.partition.reserve(vertices_at_most as usize);
        let mut frames = FrameReader::at(&mut checked, 8);
        let mut vertices = 0;
        loop {
            let offset = frames.offset();
            let block = match frames.next_frame() {
                Ok(None) => break,
                Ok(Some(payload)) => CheckpointBlock::decode(payload).map_err(|e| self.damaged(offset, e))?,
                Err(error) => return Err(self.damaged(offset, error)),
            };
            self.take(block, &mut vertices).map_err(|reason| self.damaged(offset, reason))?;
        }
        let (crc32c, bytes) = (checked.crc32c, checked.bytes);
        if crc32c != self.entry.crc32c {
            let reason = format!("its checksum is {crc32c:08x} instead of {:08x}", self.entry.crc32c);
            return Err(self.damaged(0, reason));
        }
        let edges = self.tally.edges.unsigned_abs();
        if (vertices, edges) != (self.entry.vertices, self.entry.edges) {
            let reason = format!(
                "it has {vertices} vertices and {edges} edges, the manifest says {} and {}",
                self.entry.vertices, self.entry.edges
            );
            return Err(self.damaged(bytes, reason));
        }
        Ok(())
    }

    fn take(&mut self, block: CheckpointBlock, vertices: &mut u64) -> Result<(), String> {
        for image in block.vertices {
            *vertices += u64::from(!image.continued);
            self.take_vertex(image)?;
        }
        for entry in block.edge_ids {
            let edge = mutation::decode_edge(entry.edge, "EdgeIdEntry").map_err(|e| e.to_string())?;
            let hash = self.manifest.hasher.edge_id(&entry.id);
            self.belongs_here(hash)?;
            self.partition.add_edge_id(hash.0, edge.source, edge.sid);
        }
        Ok(())
    }

    fn belongs_here(&self, gui: Gui) -> Result<(), String> {
        let home = self.manifest.partition_count.of(gui);
        if home == PartitionId(self.number as u16) {
            Ok(())
        } else {
            Err(format!("{gui} belongs to partition {home}"))
        }
    }

    fn take_vertex(&mut self, image: VertexImage) -> Result<(), String> {
        let gui = Gui(image.gui);
        self.belongs_here(gui)?;
        if !image.continued {
            let labels: Vec<Token> = image.labels.into_iter().map(Token).collect();
            let content = content_of(image.properties).map_err(|e| e.to_string())?;
            if !self.partition.restore_vertex(self.tally, gui, Str::from(image.id), &labels, &content) {
                return Err(format!("vertex {gui} stands there twice"));
            }
        }
        let mut out_links = Vec::with_capacity(image.out_edges.len());
        for out in image.out_edges {
            let edge =
                Edge { sid: Sid(out.sid), source: gui, target: Gui(out.target), label: Token(out.label) };
            let content = edge_content_of(out.properties).map_err(|e| e.to_string())?;
            self.partition.restore_content(self.tally, &edge, out.id.map(Str::from), &content);
            out_links.push(Link { neighbour: edge.target, sid: edge.sid, label: edge.label });
        }
        let mut in_links: Vec<Link> = image
            .in_edges
            .iter()
            .map(|edge| Link { neighbour: Gui(edge.source), sid: Sid(edge.sid), label: Token(edge.label) })
            .collect();
        if !self.partition.restore_links(gui, &mut out_links, &mut in_links) {
            return Err(format!("edges come before their vertex {gui}"));
        }
        Ok(())
    }
}

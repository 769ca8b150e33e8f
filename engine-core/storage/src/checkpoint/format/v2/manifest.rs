//! A manifest of version 2: one frame with a `CheckpointManifest` message.

use crate::checkpoint::format::{Format, ObjectKind};
use crate::checkpoint::manifest::damaged;
use crate::checkpoint::{MOST_OLDER, Manifest, ManifestObject, ManifestPartition};
use crate::error::Cause;
use crate::{Error, Scope};
use tidegraph_types::{Epoch, Gui, GuiHasher, PartitionCount, PartitionId, Str, Token, Version};
use tidegraph_wire::frame::{self, FrameReader};
use tidegraph_wire::{Message, mutation, proto};

const MAGIC_BYTES: u64 = Format::MAGIC_BYTES as u64;

/// Decodes the manifest `object` from the bytes that follow its magic.
///
/// # Errors
///
/// [`Error::Damaged`] if the bytes are not exactly one valid message; [`Error::UnknownFormat`] if the message states a
/// version that this release does not know.
pub(super) fn decode(object: &str, bytes: &[u8]) -> Result<Manifest, Error> {
    let mut frames = FrameReader::at(bytes, MAGIC_BYTES);
    let message = match frames.next_frame() {
        Ok(Some(payload)) => proto::CheckpointManifest::decode(payload).map_err(Cause::from),
        Ok(None) => Err("it ends after its first 8 bytes".into()),
        Err(error) => Err(error.into()),
    };
    let message = message.map_err(|cause| damaged(object, MAGIC_BYTES, cause))?;
    if !matches!(frames.next_frame(), Ok(None)) {
        return Err(damaged(object, frames.offset(), "bytes follow the manifest"));
    }
    let stated = Format::of_number(object, message.format)?;
    if stated != Format::V2 {
        let reason = format!("it begins with format {} and its message states {stated}", Format::V2);
        return Err(damaged(object, MAGIC_BYTES, reason));
    }
    manifest(object, message).map_err(|cause| damaged(object, MAGIC_BYTES, cause))
}

fn manifest(object: &str, message: proto::CheckpointManifest) -> Result<Manifest, Cause> {
    let count = u16::try_from(message.partition_count)?;
    let partition_count = PartitionCount::new(count)?;
    if message.partitions.len() != usize::from(count) {
        return Err(format!("{} of {count} partitions are listed", message.partitions.len()).into());
    }
    let partitions = (0..).zip(message.partitions).map(|(expected, entry)| partition(expected, entry));
    Ok(Manifest {
        object: object.to_owned(),
        format: Format::V2,
        partition_count,
        scope: scope(message.scope_partitions, message.scope_partition)?,
        hasher: match message.gui_bits {
            0 => GuiHasher::default(),
            bits @ 1..=64 => GuiHasher::with_bits(bits),
            bits => return Err(format!("hashes have {bits} bits, more than 64").into()),
        },
        version: Version(message.version),
        epoch: Epoch(message.epoch),
        next_sid: message.next_sid,
        tokens: message.tokens.into_iter().map(|t| (Token(t.token), Str::from(t.name))).collect(),
        exceptions: message.exceptions.into_iter().map(|e| (Str::from(e.id), Gui(e.gui))).collect(),
        indexes: message.indexes.into_iter().map(mutation::decode_index).collect(),
        partitions: partitions.collect::<Result<_, _>>()?,
        graph: message.graph,
    })
}

fn partition(expected: u32, partition: proto::CheckpointPartition) -> Result<ManifestPartition, Cause> {
    if partition.partition != expected {
        return Err(format!("partition {} is listed as number {expected}", partition.partition).into());
    }
    let own = partition.objects.first().map_or(0, |own| own.bytes);
    if own < partition.directory_offset || partition.objects.len() > 1 + MOST_OLDER {
        return Err(format!(
            "partition {expected} has {} objects and a directory at {} of {own} bytes",
            partition.objects.len(),
            partition.directory_offset
        )
        .into());
    }
    let objects = partition.objects.into_iter();
    Ok(ManifestPartition {
        objects: objects.map(|o| ManifestObject { path: o.path, bytes: o.bytes }).collect(),
        directory_offset: partition.directory_offset,
        directory_crc32c: partition.directory_crc32c,
        vertices: partition.vertices,
        edges: partition.edges,
    })
}

fn scope(partitions: u32, partition: u32) -> Result<Option<Scope>, Cause> {
    if partitions == 0 {
        return Ok(None);
    }
    let partitions = PartitionCount::new(u16::try_from(partitions)?)?;
    let id = u16::try_from(partition).ok().map(PartitionId).filter(|id| id.0 < partitions.get());
    match id {
        Some(partition) => Ok(Some(Scope { partitions, partition })),
        None => Err(format!("partition {partition} of {}", partitions.get()).into()),
    }
}

/// Returns the bytes of a manifest, with its magic.
///
/// # Errors
///
/// [`tidegraph_wire::Error::TooLong`] if the message does not fit in a frame.
pub(in crate::checkpoint) fn encode(manifest: &Manifest) -> Result<Vec<u8>, tidegraph_wire::Error> {
    let tokens = manifest.tokens.iter();
    let exceptions = manifest.exceptions.iter();
    let message = proto::CheckpointManifest {
        format: u32::from(Format::V2.number()),
        graph: manifest.graph.clone(),
        partition_count: u32::from(manifest.partition_count.get()),
        version: manifest.version.0,
        epoch: manifest.epoch.0,
        next_sid: manifest.next_sid,
        tokens: tokens.map(|(t, name)| proto::TokenEntry { token: t.0, name: name.to_string() }).collect(),
        exceptions: exceptions
            .map(|(id, gui)| proto::AddException { id: id.to_string(), gui: gui.0 })
            .collect(),
        partitions: (0..).zip(&manifest.partitions).map(encode_partition).collect(),
        indexes: manifest.indexes.iter().map(mutation::encode_index).collect(),
        gui_bits: if manifest.hasher.bits() == 64 { 0 } else { manifest.hasher.bits() },
        scope_partitions: manifest.scope.map_or(0, |scope| u32::from(scope.partitions.get())),
        scope_partition: manifest.scope.map_or(0, |scope| u32::from(scope.partition.0)),
    };
    let mut bytes = Format::V2.magic(ObjectKind::Manifest).to_vec();
    frame::write_frame(&mut bytes, &message.encode_to_vec())?;
    Ok(bytes)
}

fn encode_partition((number, partition): (u32, &ManifestPartition)) -> proto::CheckpointPartition {
    let objects = partition.objects.iter();
    proto::CheckpointPartition {
        partition: number,
        objects: objects.map(|o| proto::CheckpointObject { path: o.path.clone(), bytes: o.bytes }).collect(),
        directory_offset: partition.directory_offset,
        directory_crc32c: partition.directory_crc32c,
        vertices: partition.vertices,
        edges: partition.edges,
    }
}

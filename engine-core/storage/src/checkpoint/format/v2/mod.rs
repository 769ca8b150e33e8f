//! Version 2 of the checkpoint format, byte by byte in `docs/formats/checkpoint.md`.
//!
//! Roles: `manifest` and `directory` read and write; `groups` reads the groups of nodes and of edge ids that
//! `partition::image` writes. The bytes of a property page are those of `properties::bytes`.

mod directory;
pub(crate) mod groups;
mod manifest;

pub(in crate::checkpoint) use directory::encode as encode_directory;
pub(in crate::checkpoint) use manifest::encode as encode_manifest;

use super::{ChunkKind, Directory};
use crate::Error;
use crate::adjacency::Link;
use crate::checkpoint::{Manifest, ManifestPartition};
use crate::partition::{Misread, Rebuild};
use tidegraph_types::Gui;

/// Reads version 2.
pub(super) struct V2;

impl super::FormatReader for V2 {
    fn manifest(&self, object: &str, bytes: &[u8]) -> Result<Manifest, Error> {
        manifest::decode(object, bytes)
    }

    fn directory(&self, bytes: &[u8], partition: &ManifestPartition) -> Result<Directory, Error> {
        directory::decode(bytes, partition)
    }

    fn least_record_bytes(&self, kind: ChunkKind) -> u64 {
        match kind {
            ChunkKind::Pages => 1,
            // A GUI, the place of a row, and two empty lists.
            ChunkKind::Nodes => 14,
            ChunkKind::EdgeIds => 24,
        }
    }

    fn out_edges(&self, bytes: &[u8], each: &mut dyn FnMut(Gui, &[Link])) -> Result<(), Misread> {
        groups::out_edges(bytes, each)
    }

    fn chunk(
        &self,
        kind: ChunkKind,
        number: u32,
        bytes: &[u8],
        rebuild: &mut Rebuild<'_>,
    ) -> Result<(), Misread> {
        match kind {
            ChunkKind::Pages => rebuild.page(number, bytes),
            ChunkKind::Nodes => groups::nodes(number, bytes, rebuild),
            ChunkKind::EdgeIds => groups::edge_ids(number, bytes, rebuild),
        }
    }
}

//! Checkpoints: an image of every partition at one version, in object storage. The bytes are in
//! `docs/formats/checkpoint.md`.
//!
//! Names: under a prefix, `data-VERSION-ATTEMPT/partition-NUMBER` for each partition and, written last,
//! `manifest-VERSION-ATTEMPT`. Numbers are padded, so that the newest manifest sorts last; the attempt grows when a
//! version is written again, so that no object that a manifest names is ever overwritten.
//!
//! Flow of writing: pin the version; for each partition take the lock for a block at a time, encode and upload
//! without it; put the manifest. A crash before that leaves objects that no manifest names; [`prune`] removes them.
//!
//! Flow of restoring: try manifests from the newest on. A damaged one, or one with a damaged, missing or short object,
//! is refused with object, offset and reason, and the one before is tried.
//!
//! What must never happen: a store made of a damaged checkpoint; a checkpoint that mixes versions.

mod manifest;
mod restore;
mod write;

pub use manifest::{Manifest, ManifestPartition, prune};
pub use restore::{Refused, Restored, restore_newest};
pub(crate) use write::write;

use tidegraph_types::{Epoch, Str, Token};

/// First bytes of the object of a partition.
pub(crate) const PARTITION_MAGIC: &[u8; 8] = b"TIDECKP\x01";
/// First bytes of a manifest.
pub(crate) const MANIFEST_MAGIC: &[u8; 8] = b"TIDEMAN\x01";
/// The format that this release writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// What a checkpoint keeps besides the data of the store.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckpointMeta {
    /// Name of the graph.
    pub graph: String,
    /// Epoch of the record of the version.
    pub epoch: Epoch,
    /// The lowest SID that was not handed out at the version.
    pub next_sid: u64,
    /// The whole dictionary.
    pub tokens: Vec<(Token, Str)>,
}

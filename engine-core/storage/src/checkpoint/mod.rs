//! Checkpoints: an image of every partition at one version, in object storage. The bytes are in
//! `docs/formats/checkpoint.md`.
//!
//! Names: under a prefix, `data-VERSION-ATTEMPT/partition-NUMBER` for each partition and, written last,
//! `manifest-VERSION-ATTEMPT`. Numbers are padded, so that the newest manifest sorts last; the attempt grows when a
//! version is written again, so that no object that a manifest names is ever overwritten.
//!
//! The image of a partition is a set of chunks: pages, groups of nodes, groups of edge ids. The object of a partition holds
//! those that changed since the checkpoint before, and a directory of all of them: where each lies, in this object or in an
//! older one, and its checksum.
//!
//! Flow of writing: pin the version; partitions in parallel; each looks what changed since the checkpoint before, encodes
//! that chunk by chunk from under the writer's hands, and uploads; put the manifest. A crash before that leaves objects
//! that no manifest names; [`prune`] removes them. An older object of which less than half is in use is left behind: what
//! it still has is written anew.
//!
//! Flow of restoring: try manifests from the newest on. A damaged one, or one with a damaged, missing or short object,
//! is refused with object, offset and reason, and the one before is tried. Partitions are restored in parallel.
//!
//! What must never happen: a store made of a damaged checkpoint; a checkpoint that mixes versions; an object removed that a
//! manifest names.

mod directory;
pub(crate) mod format;
mod manifest;
mod restore;
mod write;

pub use format::Format;
pub use manifest::{Manifest, ManifestObject, ManifestPartition, prune};
pub use restore::{Refused, Restored, restore_newest};
pub(crate) use write::write;

use tidegraph_types::{Epoch, Str, Token};

/// Older objects that a partition's chunks may lie in.
const MOST_OLDER: usize = 15;

/// A checkpoint that later ones may refer to.
#[derive(Debug)]
pub(crate) struct Base {
    manifest: Manifest,
    /// One for each partition.
    directories: Vec<directory::Directory>,
    /// Bytes of chunks that it wrote although the one before it had them.
    rewritten_bytes: u64,
}

impl Base {
    pub fn rewritten_bytes(&self) -> u64 {
        self.rewritten_bytes
    }
}

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

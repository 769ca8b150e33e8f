//! Checkpoints: an image of every partition at one version, in object storage. `docs/formats/checkpoint.md` describes
//! the bytes, [`format`] maps versions of them to code.
//!
//! Names: under a prefix, `data-VERSION-ATTEMPT/partition-NUMBER` for each partition and, written last,
//! `manifest-VERSION-ATTEMPT`. Numbers are padded, so the newest manifest sorts last. The attempt grows when a
//! version is written again, so no object that a manifest names is ever overwritten.
//!
//! The image of a partition is a set of chunks: pages, groups of nodes, groups of edge ids. The object of a partition
//! holds the chunks that changed since the checkpoint before, and a directory of all chunks: the object and offset of
//! each, in this object or an older one, and its checksum.
//!
//! Flow of writing: pin the version; for each partition, in parallel, find the chunks that changed since the
//! checkpoint before, encode them one by one while the writer continues, and upload them; put the manifest. A crash
//! before that leaves objects that no manifest names; [`prune`] removes them. An older object of which less than half
//! is in use is left behind: its remaining chunks are written again.
//!
//! Flow of restoring: try manifests from the newest on. If a manifest is damaged, or one of its objects is damaged,
//! missing or short, it is refused with object, offset and reason, and the one before is tried. Partitions are
//! restored in parallel, and each reads parts of its objects ahead ([`RestoreReads`]), from the local disk where it has
//! copies of them ([`LocalCopies`]).
//!
//! What must never happen: a store made of a damaged checkpoint; a checkpoint that mixes versions (STO-1); an object
//! removed that a manifest names.

mod copies;
mod directory;
pub(crate) mod format;
mod manifest;
mod reads;
mod restore;
mod write;

pub use copies::{Kept, LocalCopies};
pub use format::Format;
pub use manifest::{Manifest, ManifestObject, ManifestPartition, prune, prune_below};
pub use reads::RestoreReads;
pub use restore::{Refused, Restored, is_unusable, restore_newest};
pub(crate) use write::write;

use tidegraph_types::{Epoch, Str, Token};

/// Largest number of older objects that a partition's chunks may be in.
const MOST_OLDER: usize = 15;

/// A checkpoint on which later ones may build.
#[derive(Debug)]
pub(crate) struct BaseCheckpoint {
    manifest: Manifest,
    /// Directories by partition.
    directories: Vec<directory::Directory>,
    /// Bytes of chunks that it wrote although the one before it had them in an older state.
    rewritten_bytes: u64,
}

impl BaseCheckpoint {
    /// Returns the bytes of chunks that it wrote although the one before it had them in an older state.
    pub fn rewritten_bytes(&self) -> u64 {
        self.rewritten_bytes
    }
}

/// What a checkpoint stores besides the data of the store.
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

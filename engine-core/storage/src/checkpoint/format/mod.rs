//! Versions of the checkpoint format, and the code that reads each of them.
//!
//! A manifest and the object of a partition begin with seven letters that say what they are and one byte with the
//! version of their format. [`Format`] lists the versions that this release knows. [`Format::reader`] is the only
//! place that maps a version to code: restoring reads everything through the [`FormatReader`] of the version that the
//! manifest names.
//!
//! All objects that a manifest names have its version. A checkpoint is therefore only built upon one of
//! [`Format::WRITTEN`]; after an upgrade the first checkpoint writes every chunk.
//!
//! To add a version: add a variant here, a module beside `v2` that implements [`FormatReader`], and golden files in
//! `contracts/golden`. Restoring, the manifest's envelope and the errors need no change.

pub(crate) mod v2;

use super::directory::{ChunkKind, Directory};
use super::manifest::damaged;
use super::{Manifest, ManifestPartition};
use crate::Error;
use crate::adjacency::Link;
use crate::partition::{Misread, Rebuild};
use std::fmt;
use tidegraph_types::{Formats, Gui};

/// A version of the checkpoint format that this release reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// Chunks and a directory for each partition; a checkpoint may refer to objects of earlier ones.
    V2,
}

/// Which object begins with a magic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ObjectKind {
    Manifest,
    Partition,
}

impl ObjectKind {
    fn letters(self) -> &'static [u8; 7] {
        match self {
            Self::Manifest => b"TIDEMAN",
            Self::Partition => b"TIDECKP",
        }
    }
}

/// Reads manifests and partitions of one version of the format.
pub(super) trait FormatReader: Sync {
    /// Decodes the manifest `object` from the bytes that follow its magic.
    fn manifest(&self, object: &str, bytes: &[u8]) -> Result<Manifest, Error>;

    /// Decodes the directory of a partition and checks that every chunk lies inside the objects of the partition.
    fn directory(&self, bytes: &[u8], partition: &ManifestPartition) -> Result<Directory, Error>;

    /// Returns the fewest bytes that one record takes in a chunk: it bounds what is allocated for a directory's counts.
    fn least_record_bytes(&self, kind: ChunkKind) -> u64;

    /// Decodes a chunk of nodes without adding them, and calls `each` with the out-edges of each vertex.
    fn out_edges(&self, bytes: &[u8], each: &mut dyn FnMut(Gui, &[Link])) -> Result<(), Misread>;

    /// Decodes one chunk and adds its records to a partition. Chunks come in the order of [`ChunkKind::ALL`], and each
    /// kind in the order of its numbers.
    fn chunk(
        &self,
        kind: ChunkKind,
        number: u32,
        bytes: &[u8],
        rebuild: &mut Rebuild<'_>,
    ) -> Result<(), Misread>;
}

impl Format {
    /// Every version that this release reads.
    pub const ALL: &[Self] = &[Self::V2];
    /// The version that this release writes.
    pub const WRITTEN: Self = Self::V2;
    /// Bytes of a magic.
    pub(super) const MAGIC_BYTES: usize = 8;

    /// Returns the versions that this release reads, as numbers.
    #[must_use]
    pub fn formats() -> Formats {
        let numbers = || Self::ALL.iter().map(|format| u32::from(format.number()));
        let written = u32::from(Self::WRITTEN.number());
        Formats::new(numbers().min().unwrap_or(written), written)
    }

    /// Returns the version as manifests and objects state it.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V2 => 2,
        }
    }

    /// Returns the code that reads the version.
    pub(super) fn reader(self) -> &'static dyn FormatReader {
        match self {
            Self::V2 => &v2::V2,
        }
    }

    /// Finds the version that `object` states.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownFormat`] if this release does not read that version.
    pub(super) fn of_number(object: &str, found: u32) -> Result<Self, Error> {
        let known = Self::ALL.iter().find(|format| u32::from(format.number()) == found);
        known.copied().ok_or_else(|| Error::UnknownFormat {
            object: object.to_owned(),
            found,
            known: Self::formats(),
        })
    }

    /// Finds the version that the first bytes of `object` state.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if they are not the magic of `kind`; [`Error::UnknownFormat`] as [`Self::of_number`].
    pub(super) fn of_magic(object: &str, kind: ObjectKind, bytes: &[u8]) -> Result<Self, Error> {
        match bytes.strip_prefix(kind.letters()) {
            Some([number, ..]) => Self::of_number(object, u32::from(*number)),
            _ => Err(damaged(
                object,
                0,
                match kind {
                    ObjectKind::Manifest => "it does not begin with the letters of a manifest",
                    ObjectKind::Partition => "it does not begin with the letters of a partition",
                },
            )),
        }
    }

    /// Returns the first bytes of an object of the version.
    pub(super) fn magic(self, kind: ObjectKind) -> [u8; Self::MAGIC_BYTES] {
        let mut magic = [self.number(); Self::MAGIC_BYTES];
        magic[..7].copy_from_slice(kind.letters());
        magic
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

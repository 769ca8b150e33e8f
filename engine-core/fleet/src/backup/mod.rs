//! Backups: a graph at one version, copied to another bucket, the log archived behind it, and graphs restored from there.
//!
//! A backup is the newest checkpoint of each partition, the records of the log from the oldest of these checkpoints up to
//! one version, the *cut*, and the segments of loads that these records name. It needs no other backup and nothing of the
//! graph. Dictionary, indexes and constraints are in the checkpoints and the records.
//!
//! Roles: [`Backups`] is the place of a graph's backups and archives: it lists, checks and removes them. [`Source::back_up`]
//! makes a backup, [`Archiver`] archives the log behind it, and [`LeaderArchive`] does so while its process is the sequencer.
//! A [`History`] is a backup with the archives behind it. [`Target::restore`] makes a graph of one. [`Backup`] and
//! [`Archive`] are the manifests. `docs/formats/backup.md` has the bytes.
//!
//! Flow of a backup, while the graph is used:
//! 1. Choose the newest checkpoint of each partition.
//! 2. Read the log from the oldest of them on, and write it to the backup. This goes on until the end, because the log may
//!    be trimmed meanwhile.
//! 3. Copy the objects of the checkpoints. Nodes may remove them meanwhile; then a newer checkpoint of the partition takes
//!    the place of the first one.
//! 4. End the log at a version that is not below any checkpoint: the cut. Each record is a whole transaction, so every
//!    transaction is in the backup, or no part of it.
//! 5. Write the manifest. Without it there is no backup.
//!
//! A backup can be restored to every version from its newest checkpoint to its cut, and with archives to every version up to
//! the end of the last one.
//!
//! What must never happen: a manifest that names an object that is not there; a graph restored over another one; a
//! restored graph that has a part of a transaction, or records of two logs.

mod archive;
mod archiver;
mod archives;
mod catalog;
mod copier;
mod create;
mod error;
mod history;
mod leader;
mod log;
mod manifest;
mod restore;

pub use archive::{Archive, Mark};
pub use archiver::{ArchiveConfig, Archiver, Turn};
pub use catalog::{Backups, Listed, Point, Removed, Retention, Verified};
pub use create::{BackupConfig, Source};
pub use error::Error;
pub use history::{History, ListedHistory};
pub use leader::LeaderArchive;
pub use manifest::{Backup, BackupCheckpoint, CopiedObject, FOLDERS, FORMATS, LogObject};
pub use restore::{Restored, Target};

//! Errors of backups.

use tidegraph_types::{Formats, PartitionId, Version};

/// Number of objects that an error names.
const NAMED: usize = 10;

/// An error of a backup or a restore.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The prefix of backups cannot be part of the path of an object.
    #[error("the prefix {prefix:?} of backups cannot be part of the name of an object: {reason}")]
    InvalidPrefix {
        /// The prefix.
        prefix: String,
        /// Why not.
        reason: &'static str,
    },
    /// The graph has nothing to back up.
    #[error("graph {graph:?} has neither a checkpoint nor a record: its nodes have not started yet")]
    Empty {
        /// The graph.
        graph: String,
    },
    /// Objects of checkpoints or loads are not there, although the graph still needs them.
    #[error("the graph lacks objects that it needs, so it cannot be backed up: {}", named(.objects))]
    SourceLacks {
        /// Their paths.
        objects: Vec<String>,
    },
    /// Segments of loads were removed before the log was read that names them.
    #[error("objects were removed before they were copied: {}", named(.objects))]
    Removed {
        /// Their paths.
        objects: Vec<String>,
    },
    /// Checkpoints were removed faster than they were copied.
    #[error(
        "checkpoints of partition {partition} and others were removed before they were copied, {rounds} times: copy \
         faster, with a higher --parallel or on a machine with more bandwidth"
    )]
    TooSlow {
        /// The first partition that lacks objects.
        partition: PartitionId,
        /// Number of attempts.
        rounds: usize,
    },
    /// The log ends before a checkpoint.
    #[error(
        "the log ends at version {reached}, and a checkpoint has version {wanted}: do the flags name the log of this graph?"
    )]
    LogEnds {
        /// The last version of the log.
        reached: Version,
        /// The version of the checkpoint.
        wanted: Version,
    },
    /// Something else failed while objects were copied.
    #[error("copying ended before all objects were copied")]
    Interrupted,
    /// An object could not be copied.
    #[error("cannot copy object {object}: {source}")]
    Copy {
        /// Its path.
        object: String,
        /// Why not.
        source: std::io::Error,
    },
    /// An object changed while it was copied, or differs from what its backup says.
    #[error("object {object} has {found}, and should have {expected}")]
    Differs {
        /// Its path.
        object: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// There is no such backup.
    #[error("there is no backup {name:?} at {place}: `tidegraph-node backups` lists those that there are")]
    NoBackup {
        /// Its name.
        name: String,
        /// Where it should be.
        place: String,
    },
    /// No backup has the version or the time that was asked for.
    #[error("no backup at {place} has {wanted}: {}", named(.ranges))]
    NoneHas {
        /// The version or the time.
        wanted: String,
        /// Where backups are.
        place: String,
        /// What they have.
        ranges: Vec<String>,
    },
    /// A manifest cannot be read.
    #[error("the manifest {object} of a backup or an archive cannot be read: {reason}")]
    Unreadable {
        /// Its path.
        object: String,
        /// Why not.
        reason: String,
    },
    /// A backup or an archive of a format that this release does not read.
    #[error(
        "{object} has format {found}, this release reads {known}: restore it with the release that wrote it"
    )]
    UnknownFormat {
        /// Path of its manifest.
        object: String,
        /// The format.
        found: u64,
        /// The formats that this release reads.
        known: Formats,
    },
    /// A backup lacks objects, or they have another size.
    #[error("backup {name} is not whole: {}", named(.objects))]
    Incomplete {
        /// Its name.
        name: String,
        /// The objects, with what is wrong.
        objects: Vec<String>,
    },
    /// The target of a restore is in use.
    #[error("{what}. A backup is only restored into a graph that is not there: {remedy}")]
    Taken {
        /// What is in the way.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The records of a backup are not contiguous.
    #[error("the log of the backup is not whole: version {found} follows version {after} in {object}")]
    Gap {
        /// The object.
        object: String,
        /// The last version before.
        after: Version,
        /// The version found.
        found: Version,
    },
    /// The records of a backup end too early.
    #[error("the log of backup {name} ends at version {found}, and should have version {wanted}")]
    TooShort {
        /// The backup.
        name: String,
        /// The last version.
        found: Version,
        /// The version that it should have.
        wanted: Version,
    },
    /// An archive is missing, or its manifest cannot be read.
    #[error(
        "the archive {object} {reason}. What comes before it can be restored, up to version {last}, and what newer backups \
         have"
    )]
    BrokenArchive {
        /// Path of its manifest.
        object: String,
        /// The last version that can be restored without it.
        last: Version,
        /// What is wrong.
        reason: String,
    },
    /// An archive has another record of a version than the backup or the archive before it.
    #[error(
        "{object} is of another log than what it follows: it has {found}, and there is {expected} before it"
    )]
    OtherLog {
        /// The object with its records.
        object: String,
        /// The record of the archive.
        found: String,
        /// The record of the backup or the archive before it.
        expected: String,
    },
    /// There is no backup that an archive could follow.
    #[error("there is no backup of graph {graph:?} at {place} that an archive could follow: make one first")]
    NothingToFollow {
        /// The graph.
        graph: String,
        /// Where backups should be.
        place: String,
    },
    /// The log no longer has what follows the newest archive or backup.
    #[error(
        "the log cannot be archived: {reason}. What there is ends with {end}, and what was committed since can be restored \
         again from the next backup on: make one"
    )]
    NotArchived {
        /// The last record that is archived.
        end: String,
        /// Why the log does not continue there.
        reason: String,
    },
    /// The log has records, and does not hand them out.
    #[error("the log does not answer: no record came for {} s, and its end is not reached", .0.as_secs())]
    LogSilent(std::time::Duration),
}

/// Writes names, at most some of them.
fn named(names: &[String]) -> String {
    if names.is_empty() {
        return "there is none".to_owned();
    }
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}

//! The embedded store: all partitions of one graph, readable at any kept version, with checkpoints.
//!
//! Roles: [`Store`] is the interface of the crate. The engine's apply thread calls [`Store::apply`] with the
//! mutations of each log record in order, or [`Store::begin_load`] for a load, and then [`Store::publish`]. Queries
//! [`Store::pin`] a version and read it through [`tidegraph_apl::Apl`]. [`Store::checkpoint`] writes an image to
//! object storage, and [`checkpoint::restore_newest`] reads one back. Inside, `partition` holds the records,
//! `adjacency` the edges in blocks of an `arena`, and `properties` ids, labels and properties in pages with undo
//! records. Pages go to a local file if they exceed the memory budget.
//!
//! A fast reset of the graph begins a new generation of partitions and indexes inside the [`Store`]. Versions before it are
//! read from the generation before.
//!
//! Flow of a write: the store finds the partitions that a mutation concerns (for an edge: source, target, and the
//! hash of its id if the user chose one) and opens each for that change alone. Records get the version of the log
//! record. Readers see nothing of it before `publish`, because no reader may ask for a version above the published
//! one.
//!
//! Flow of a read: readers take no lock. The store checks the version and pins an epoch, which keeps everything that
//! writers replace meanwhile. It looks up the slots of a piece of the frontier with prefetch, appends rows to the
//! caller's columns, and unpins the epoch. A cursor leads to the next piece. At the end the store checks that nothing
//! of the version was reclaimed in between.
//!
//! Invariants (ARCHITECTURE.md, comments name them where they are held): STO-1, a read at a version sees that version
//! and no other; STO-2, both copies of an edge agree at every version; STO-3, an index finds every vertex that a scan
//! finds; STO-4, labels that an edge implies are those of all its ends. A version is never reclaimed while it is pinned, and no epoch guard is held between two calls.

mod adjacency;
mod arena;
pub mod checkpoint;
mod error;
mod hints;
mod index;
mod memory;
mod parallel;
mod partition;
mod pin_sync;
mod properties;
mod slot_index;
mod slots;
mod store;
mod versions;
mod virtual_array;
mod write_permit;

pub use checkpoint::{CheckpointMeta, Manifest};
pub use error::Error;
pub use memory::Memory;
pub use store::{
    BulkLoad, Duplicate, IndexState, LoadOutcome, MemoryBudget, MemoryUse, Scope, Store, StoreConfig,
};
pub use versions::Pin;

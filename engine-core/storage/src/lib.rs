//! The embedded store: all partitions of one graph, readable at any kept version, with checkpoints.
//!
//! Roles: [`Store`] is the whole face. The engine's apply thread calls [`Store::apply`] with the mutations of each log
//! record, in order, or [`Store::begin_load`] for a load, and then [`Store::publish`]; queries [`Store::pin`] a version
//! and read it through [`tidegraph_apl::Apl`]; [`Store::checkpoint`] and [`checkpoint::restore_newest`] write and read
//! images in object storage. Inside, `partition` holds the records, `adjacency` the edges in blocks of an `arena`,
//! `properties` ids, labels and properties in pages with their undo records, which go to a local file when a
//! memory budget leaves no room for them.
//!
//! Flow of a write: the store finds the partitions that a mutation concerns (an edge: source, target, and the hash of
//! its id if the user chose one) and opens each for that change alone; records get the version of the log record.
//! Nothing of it is visible before `publish`, because no reader may ask for a version above the published one.
//!
//! Flow of a read: no lock is taken. The version is checked, an epoch guard keeps what the partitions replace meanwhile,
//! slots of a piece of the frontier are looked up with prefetch, rows are appended to the caller's columns, the guard
//! goes. A cursor leads on. Last it is checked that nothing of the version was forgotten on the way.
//!
//! What must never happen: a read at a version that sees anything of another (STO-1); the two copies of an edge parting
//! at any version (STO-2); a version dropped while it is pinned; a guard held between two calls.

mod adjacency;
mod arena;
pub mod checkpoint;
mod error;
mod index;
mod memory;
mod partition;
mod pin_sync;
mod prefetch;
mod properties;
mod slot_index;
mod slots;
mod store;
mod turn;
mod versions;
mod virtual_array;

pub use checkpoint::{CheckpointMeta, Manifest};
pub use error::Error;
pub use memory::Memory;
pub use store::{
    BulkLoad, Duplicate, IndexState, LoadOutcome, MemoryBudget, MemoryUse, Scope, Store, StoreConfig,
};
pub use versions::Pin;

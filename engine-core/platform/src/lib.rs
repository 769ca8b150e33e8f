//! Access to the machine behind traits: time, randomness, disk, object stores, threads.
//!
//! Roles: the engine uses [`Clock`], [`Random`] and [`Disk`]; [`RealClock`], [`RealRandom`] and [`RealDisk`] implement
//! them with the machine. [`folder`] reaches files of users without following links. [`Objects`] is a blocking
//! interface of the `object_store` crate, which has its own backends. [`spawn`] starts threads. [`metric`] has the
//! names of all metrics; [`traces`] says which span a message belongs to.
//!
//! With the feature `testing` there are doubles for tests and simulations: `ManualClock`, `SeededRandom`, `FaultyDisk`.
//!
//! Must never: be bypassed. No other crate reads a clock, sleeps, draws unseeded random numbers, starts threads or
//! opens files of the database directly. `clippy.toml` enforces it.

mod bucket;
mod cache_folder;
mod chain;
pub mod clock;
pub mod disk;
pub mod folder;
pub mod memory;
pub mod metric;
pub mod objects;
mod pending;
pub mod random;
mod real_disk;
mod secret;
#[cfg(any(test, feature = "testing"))]
mod testing;
mod thread;
pub mod traces;

pub use bucket::{check_bucket, check_region};
pub use chain::{Chain, chain};
pub use clock::{Clock, RealClock};
pub use disk::{Disk, DiskFile, DiskLock, Error as DiskError, FileInfo, Operation, ScratchFile};
pub use objects::{Error as ObjectError, ObjectInfo, ObjectWriter, Objects};
pub use pending::Pending;
pub use random::{Random, RealRandom};
pub use real_disk::RealDisk;
pub use secret::{read_secret, read_secret_file, read_secret_file_up_to};
#[cfg(any(test, feature = "testing"))]
pub use testing::{FaultyDisk, ManualClock, SeededRandom, free_port, process};
pub use thread::{lower_priority, spawn};

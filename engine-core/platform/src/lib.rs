//! The outside world behind traits: time, randomness, disk, object stores.
//!
//! Roles: [`Clock`], [`Random`] and [`Disk`] are what the rest of the engine sees; `Real…` reaches the machine,
//! [`ManualClock`], [`SeededRandom`] and [`FaultyDisk`] let a test or a simulation decide what happens. [`Objects`] is
//! a blocking face of the `object_store` crate, which already has its own backends for that. [`metric`] has the names of all
//! metrics.
//!
//! Must never: be gone around. No other crate reads a clock, sleeps, draws random numbers or opens files of the
//! database directly; `clippy.toml` enforces what it can.

pub mod clock;
pub mod disk;
mod faulty_disk;
mod faulty_scratch;
pub mod memory;
pub mod metric;
pub mod objects;
pub mod random;
mod real_disk;

pub use clock::{Clock, ManualClock, RealClock};
pub use disk::{Disk, DiskFile, DiskLock, Error as DiskError, FileInfo, Operation, ScratchFile};
pub use faulty_disk::FaultyDisk;
pub use objects::{Error as ObjectError, ObjectInfo, ObjectWriter, Objects};
pub use random::{Random, RealRandom, SeededRandom};
pub use real_disk::RealDisk;

//! Doubles for tests and simulations, behind the feature `testing`.
//!
//! [`FaultyDisk`] fails and crashes on demand, [`ManualClock`] moves only when told, [`SeededRandom`] repeats its
//! numbers. [`process`] stops processes, [`free_port`] finds
//! a port for a server. The feature is for `[dev-dependencies]` and for `engine-core/simulation`: no product contains these types.

mod clock;
pub(crate) mod disk;
mod port;
pub mod process;
mod random;
pub(crate) mod scratch;

pub use clock::ManualClock;
pub use disk::FaultyDisk;
pub use port::free_port;
pub use random::SeededRandom;

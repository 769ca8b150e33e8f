//! A fleet in a simulated world: seeded, on one thread, replayed exactly.
//!
//! Roles: `world` has time, the queue of events and the network; `node` is a process of a fleet, made of the real storage node,
//! candidate and caretaker; `client` runs transactions as a worker does; `broker`, `map`, `objects` and `process` are the world behind the
//! seams that the real code has (log, partition map, object store, clock) and let it go wrong; `faults` draws what goes
//! wrong; `rest` heals all and compares; [`checker`] looks for an order in what clients saw; `model` is the graph in the simplest way.
//!
//! Flow: [`run`] draws a world from a seed, lets clients write and read while things go wrong, heals all, waits until
//! the fleet is at rest, and compares replicas, reads and answers with the log. What must never happen has a name
//! (`invariants`), and the first violation ends the world.
//!
//! What must never happen here: a decision that a second run of the seed would make otherwise.

mod baton;
mod broker;
pub mod checker;
mod client;
mod commit;
mod config;
mod exchange;
mod faults;
mod invariants;
mod map;
mod model;
mod node;
mod objects;
mod process;
mod report;
mod rest;
mod start;
mod trace;
mod transaction;
mod worker;
mod workers;
mod world;

pub use config::{Bug, Config};
pub use invariants::{CHECKED, Violation};
pub use report::{Counts, Report};
pub use world::run;

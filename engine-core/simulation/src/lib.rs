//! A fleet in a simulated world: drawn from a seed, run on one thread, replayed exactly.
//!
//! Roles: `world` has the time, the queue of events and the network; `node` is a process of a fleet,
//! made of the real storage node, candidate and leader's maintenance; `client` runs transactions by
//! the rules of a worker; `worker` runs the real worker, and the engine over it: `statement` draws statements of
//! the query languages, `statements` compares their answers with what the log says about the vertices that they write
//! (`items`); `load` draws bulk loads of workers, `loads` compares what their jobs say with the log, and `steps`
//! lets several workers do one load; `split` runs the command that raises the number of partitions; `copies` is the
//! disk of a node with its copies of checkpoints; `broker`, `map`, `objects` and `process`
//! implement the traits that the real code depends on (log, partition map, object store, clock) and
//! inject faults; `faults` draws the faults; `rest` heals all faults and compares; [`checker`]
//! searches for an order that explains what clients saw; `eras` prepares histories with resets for
//! it; `model` is the graph in its simplest form.
//!
//! Flow: [`run`] draws a world from a seed, lets clients write and read under faults, heals
//! all faults, waits until the fleet is at rest, and compares replicas, reads and answers with
//! the log. Each check names an [`Invariant`], and the first [`Violation`] ends the world.
//!
//! What must never happen here: a decision that a second run of the seed would make differently.

mod broker;
pub mod checker;
mod client;
mod commit;
mod config;
mod copies;
mod eras;
mod exchange;
mod faults;
mod invariants;
mod items;
mod load;
mod loader;
mod loads;
mod map;
mod model;
mod network;
mod node;
mod objects;
mod process;
mod report;
mod rest;
mod run_token;
mod split;
mod stalls;
mod start;
mod statement;
mod statements;
mod steps;
mod trace;
mod transaction;
mod worker;
mod workers;
mod world;

pub use config::{Bug, Config};
pub use invariants::{Invariant, Violation};
pub use report::{Counts, Report};
pub use world::run;

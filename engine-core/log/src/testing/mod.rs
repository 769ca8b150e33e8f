//! Support for tests and simulations of a log. Only with the feature `testing`.
//!
//! [`log_test_suite`] is the suite of tests that every [`LogStore`](crate::LogStore)
//! passes, in this crate or another. [`SharedLog`] and [`SharedShards`] are logs in memory
//! that several processes of a simulation share, as processes share a log in Kafka.

mod shared_log;
mod shared_shards;
mod suite;

pub use shared_log::{SharedLog, SharedLogFollower, SharedLogHandle};
pub use shared_shards::{Carrier, Delivery, ShardsObserver, SharedShard, SharedShards};
#[cfg(test)]
pub(crate) use shared_shards::{Writer, begin};
pub use suite::{commit, log_test_suite, read_all};

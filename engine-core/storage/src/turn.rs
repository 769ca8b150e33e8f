//! The writer's turn: who holds it is the one writer of a partition.
//!
//! Records of a partition are read without locks, so all that changes them takes `&self`. That there is one writer at a
//! time is said by this token instead: each partition has one, behind a lock that only writers take. A method that
//! wants `&mut Turn` may load, think and store without a reader or another writer coming between.

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Turn(());

impl Turn {
    /// The turn of something new. One for each partition, made with it.
    #[cfg_attr(not(test), allow(dead_code, reason = "partitions make theirs by default"))]
    pub fn new() -> Self {
        Self(())
    }
}

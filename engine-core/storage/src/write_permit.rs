//! The permit to write a partition: its holder is the only writer.
//!
//! Readers look at the records of a partition without locks, so every method that changes them takes `&self`. This
//! token proves instead that there is one writer at a time: each partition has one permit, behind a lock that only
//! writers take. A method that takes `&mut WritePermit` may load, compute and store without another writer in
//! between.

/// Proof that the holder is the only writer of a partition.
#[derive(Debug, Default)]
pub(crate) struct WritePermit(());

impl WritePermit {
    /// Makes the permit of a new partition.
    #[cfg_attr(not(test), allow(dead_code, reason = "partitions make theirs by default"))]
    pub fn new() -> Self {
        Self(())
    }
}

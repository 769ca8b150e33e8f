//! Test support for every implementation of [`Apl`]. Only with the feature `testing`.
//!
//! [`TestGraph`] makes a graph from a seed, as transactions for storage, and knows what can be asked about it. [`agree`]
//! asks two implementations that hold the same graph every request, and compares their answers. Differences that
//! are allowed (the order of a scan, which edges a sample takes) are not compared.
//!
//! [`MemoryGraph`] is a graph in maps, for tests of callers. [`FallbacksOnly`] answers from another implementation, with
//! the composed requests answered by [`crate::fallback`]: what a faster answer is compared with.

mod agree;
mod fallbacks_only;
mod graph;
mod memory;

pub use agree::agree;
pub use fallbacks_only::FallbacksOnly;
pub use graph::TestGraph;
pub use memory::{MemoryGraph, StoredEdge, StoredVertex};

#[cfg(doc)]
use crate::Apl;

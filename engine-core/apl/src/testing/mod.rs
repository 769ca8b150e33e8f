//! Test support for every implementation of [`Apl`]. Only with the feature `testing`.
//!
//! [`TestGraph`] makes a graph from a seed, as transactions for storage, and knows the ids that a test can
//! ask for. [`agree`] sends every request to two implementations that hold the same graph, and compares
//! their answers. Allowed differences (the order of a scan, which edges a sample takes) are not compared.
//!
//! [`MemoryGraph`] is a graph in maps, for tests of callers. [`FallbacksOnly`] forwards the basic requests to
//! another implementation and composes the others with [`crate::fallback`]; optimised answers are compared with it.

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

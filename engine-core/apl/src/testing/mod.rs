//! One suite of tests for every implementation of [`Apl`], in process or over the wire: it must answer what another one
//! answers that holds the same graph.
//!
//! [`TestGraph`] makes a graph by seed, as transactions for storage, and knows what can be asked about it; [`agree`] asks
//! both sides everything and compares. What may differ (the order of a scan, which edges a sample takes) is not compared.
//! Only with the feature `testing`.

mod agree;
mod graph;

pub use agree::agree;
pub use graph::TestGraph;

#[cfg(doc)]
use crate::Apl;

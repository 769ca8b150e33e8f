//! Computes expressions, functions and aggregates over batches, and turns handles into data for the answer.

mod error;

pub use error::Error;

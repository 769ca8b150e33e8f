//! GraphBinary 1: a byte of the type, a byte that says whether there is a value, and the value.

pub(crate) mod code;
mod read;
mod write;

pub use read::Error;
pub(crate) use read::Reader;
pub(crate) use write::{write_count, write_text, write_value};

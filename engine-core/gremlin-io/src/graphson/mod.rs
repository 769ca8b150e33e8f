//! GraphSON, TinkerPop's JSON: versions 2 and 3 with types, and the untyped form of all versions.

mod read;
mod write;

pub use read::{Error, graphson_value};
pub(crate) use read::{Object, argument};
pub use write::Untyped;
pub(crate) use write::{Item, Nothing, Version, typed};

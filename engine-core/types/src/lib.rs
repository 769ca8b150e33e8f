//! Pure data that every other crate speaks: identifiers, values, elements, mutations and error kinds.
//!
//! Nothing here does I/O, reads a clock or draws a random number. The words are those of `docs/glossary.md`.

pub mod element;
pub mod error;
pub mod ids;
pub mod mutation;
pub mod order;
pub mod value;

pub use element::{Cardinality, Direction, Edge, EdgeData, PropertyData, PropertyRef, VertexData};
pub use error::{ErrorCode, Kind};
pub use ids::{
    Epoch, Gui, GuiHasher, PartitionCount, PartitionId, RequestId, ShardId, Sharding, Sid, Token, Version,
};
pub use mutation::{CommitRequest, IndexDefinition, Key, MadeSince, MadeVertex, Mutation, PropertyWrite};
pub use smol_str::SmolStr as Str;
pub use value::{Map, Path, Symbol, Value};

//! Pure data that every other crate uses: identifiers, values, elements, mutations and error codes.
//!
//! Nothing here does I/O, reads a clock or draws a random number. `docs/glossary.md` defines the terms.
//!
//! ```
//! use tidegraph_types::{GuiHasher, PartitionCount, Value};
//!
//! // The id of a vertex decides its GUI, and the GUI its partition, on every machine.
//! let gui = GuiHasher::default().gui("person-1");
//! let partition = PartitionCount::new(8)?.of(gui);
//! assert!(partition.0 < 8);
//!
//! // Values are equivalent if they are the same number, whatever their types.
//! assert_eq!(Value::Int(2), Value::Double(2.0));
//! # Ok::<(), String>(())
//! ```

pub mod big;
pub mod budget;
pub mod change;
pub mod element;
pub mod element_ids;
pub mod error;
pub mod footprint;
pub mod format;
pub mod graph_file;
pub mod graph_name;
pub mod ids;
pub mod integers;
pub mod layout;
pub mod mutation;
pub mod order;
pub mod point;
pub mod temporal;
pub mod value;

pub use big::Big;
pub use bigdecimal::{BigDecimal, num_bigint::BigInt};
pub use budget::{Budget, NoMemory};
pub use change::{
    Change, Changed, Changes, ChangesFrom, ChangesOfCommit, ChangesPage, ChangesRequest, EventId, NoChanges,
};
pub use element::{Cardinality, Direction, Edge, EdgeData, PropertyData, PropertyRef, VertexData};
pub use element_ids::{ElementIds, GremlinSettings};
pub use error::{ErrorCode, Kind};
pub use footprint::{Footprint, LoadTurn};
pub use format::{Formats, UnknownFormat};
pub use graph_file::{Elements, FileElement, FileProperty, GraphFormat, NoFormat};
pub use graph_name::is_graph_name;
pub use ids::{
    Epoch, Gui, GuiHasher, PartitionCount, PartitionId, RequestId, ShardId, Sharding, Sid, Token, Version,
};
pub use integers::{Integers, Width};
pub use layout::Layout;
pub use mutation::{
    CommitRequest, IndexDefinition, Key, LoadChange, LoadChanges, MadeSince, MadeVertex, Mutation,
    PropertyWrite,
};
pub use point::Point;
pub use smol_str::SmolStr as Str;
pub use temporal::Temporal;
pub use uuid::Uuid;
pub use value::{Map, Path, Subgraph, Symbol, Value};

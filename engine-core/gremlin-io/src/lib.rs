//! What Gremlin's drivers and servers say to each other: GraphSON and GraphBinary, in both directions.
//!
//! Roles: [`Format`] is the form of a message; [`Request`] is a message of a client, whose arguments are [`Argument`]s;
//! [`Script`] turns a traversal that a driver sends step by step ([`Bytecode`]) into gremlin-lang text with parameters;
//! [`Response`] writes messages of a server, [`OpenResponse`] their values one by one. Nothing here knows a socket or the engine.
//!
//! Flow: bytes → [`Request::read`] → [`Script::of`] → the engine's Gremlin, which thus has one front end → rows →
//! [`Response::begin`].
//!
//! Sources: <https://tinkerpop.apache.org/docs/3.7.5/dev/io/> for both formats,
//! <https://tinkerpop.apache.org/docs/3.7.5/dev/provider/#_graph_driver_provider_requirements> for the messages.
//!
//! What must never happen: bytes of a client end the process, or take more memory than a [`Budget`] grants; a name that
//! a client sends becomes anything else than a name in the text of its traversal; code of a client is evaluated.

mod argument;
mod binary;
mod element;
mod graphson;
mod message;
mod script;

pub use argument::{Argument, Bytecode, ConstantOwner, Instruction, Predicate};
pub use graphson::{Error as GraphSonError, Untyped, graphson_value};
pub use message::{Correction, Form, Format, OpenResponse, Request, RequestError, Response, Shown};
pub use script::{Options, Script, ScriptError};
pub use tidegraph_types::Budget;

/// Deepest nesting of values that is read.
pub const DEPTH_LIMIT: usize = 128;

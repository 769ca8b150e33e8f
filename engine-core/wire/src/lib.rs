//! Messages of the log, of segments, of checkpoints and of the APL, and their conversion to the engine's types.
//!
//! Roles: [`proto`] is generated from `contracts/proto` and is the only definition of the bytes; [`value`],
//! [`mutation`] and [`change`] translate between it and `tidegraph-types`; [`frame`] is the envelope (length, checksum, payload)
//! that every file uses; [`segment`] reads and writes the files of a bulk load, and [`load`] the rows between its
//! steps; [`apl`] defines the requests of the access pattern language between processes.
//!
//! Flow, writing: engine type → `encode` → message → frame → file. Reading is the same backwards, and trusts
//! nothing: whatever the bytes are, the result is a value or an [`Error`], never a panic, and memory grows with the
//! bytes read, not with what a length field claims.
//!
//! Must never: drop a field or a kind that it does not understand. A kind that a newer version wrote is
//! [`Error::UnknownKind`].

pub mod apl;
pub mod change;
mod error;
pub mod frame;
pub mod load;
pub mod mutation;
pub mod segment;
pub mod value;

pub use error::Error;
/// The codec behind the generated messages, for `encode_to_vec`, `decode` and `encoded_len`.
pub use prost::Message;

/// Generated messages; their documentation is in `contracts/proto`.
#[allow(missing_docs, clippy::all)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/tidegraph.v1.rs"));
}

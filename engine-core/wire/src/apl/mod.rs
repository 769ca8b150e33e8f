//! APL between processes: each request of the trait `tidegraph_apl::Apl` as a value, its answer, and their messages.
//!
//! Roles: [`Request`] defines one request in one place: its fields, its answer, the messages of both, and the call of
//! the trait that a server makes for it. The table in `request/mod.rs` lists all requests; [`AnyRequest`] and
//! [`AnyAnswer`], their encoding and a server's dispatch are made from it. The compiler checks the table against the
//! messages: a kind of the contract that is not in the table, or an entry without a kind, does not compile.
//!
//! A decoded answer is safe to use: columns that belong together have one length, and the ends of rows rise and stay
//! within what they index. Bytes from a peer must never make the caller index out of bounds.

mod column;
mod error;
pub mod request;
mod shapes;
mod values;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

pub use request::{Allowance, AnyAnswer, AnyRequest, Request};

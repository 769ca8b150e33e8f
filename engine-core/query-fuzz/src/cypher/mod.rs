//! openCypher: queries, their generator, their reference evaluator, and smaller versions of a failing query.

pub mod ast;
pub mod evaluate;
pub mod generate;
mod matching;
pub mod shrink;

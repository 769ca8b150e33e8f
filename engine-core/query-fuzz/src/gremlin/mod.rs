//! Gremlin: traversals, their generator, and their reference evaluator.

pub mod ast;
pub mod evaluate;
pub mod generate;

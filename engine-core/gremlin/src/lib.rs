//! The Gremlin front end: gremlin-lang text to a [`Plan`].
//!
//! **Flow.** text → `lexer` (tokens) → `parser` ([`ast`]) → `compile` (a file for each family of steps) → [`Plan`] with one
//! column, `result`.
//!
//! **Rules.** What TinkerPop's grammar accepts is never a syntax error here; what is not there yet answers
//! [`FrontEndError::Unsupported`] with its name and place, never a wrong result. No text makes it panic or exhausts the
//! stack ([`MAX_DEPTH`], [`MAX_STEPS`]). Nothing is evaluated here, and no step is special-cased for one query.
//!
//! `docs/gremlin.md` lists the steps and where this dialect parts from TinkerPop's.

pub mod ast;
mod compile;
mod error;
mod lexer;
mod names;
mod parser;

pub use parser::{MAX_DEPTH, MAX_STEPS};
pub use tidegraph_plan::FrontEndError;

use tidegraph_plan::Plan;

/// Translates a request. A bare name that is no word of the language is a parameter of the plan.
///
/// # Errors
/// Text that does not parse or names what cannot be, and parts of Gremlin that are not supported yet.
pub fn compile(text: &str) -> Result<Plan, FrontEndError> {
    parser::parse(text).and_then(|request| compile::compile(&request)).map_err(|e| e.in_text(text))
}

/// The syntax tree of a request.
///
/// # Errors
/// Text that does not parse.
pub fn parse(text: &str) -> Result<ast::Request<'_>, FrontEndError> {
    parser::parse(text).map_err(|e| e.in_text(text))
}

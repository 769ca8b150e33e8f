//! openCypher: text to the language-neutral plan.
//!
//! **Flow.** text → `lexer` (tokens) → `parser` (syntax tree, [`ast`]) → `lower` (names to slots, the checks that
//! need no data, [`Plan`]). Parameters stay in the plan, so that it can be cached and run with others.
//!
//! Commands about indexes and constraints have no plan; [`schema_command`] knows them.
//!
//! **Errors.** Whatever does not parse or names what cannot be is `FrontEndError::Syntax` with line, column and what was
//! expected. A part of the language that is not there yet is `FrontEndError::Unsupported`.
//!
//! What must never happen: a panic for any text; a plan that computes something other than what the text says (rather
//! say "not supported yet"); looking at data.

pub mod ast;
mod fault;
mod lexer;
mod literal;
mod lower;
mod parser;
mod schema;
mod token;

pub use schema::SchemaCommand;
use tidegraph_plan::{FrontEndError, Plan};

/// Translates a request to a plan.
///
/// # Errors
/// The text is no openCypher, names what cannot be, or uses a part of the language that is not there yet.
pub fn compile(text: &str) -> Result<Plan, FrontEndError> {
    parser::parse(text).and_then(|query| lower::lower(&query)).map_err(|fault| fault.locate(text))
}

/// Parses a request without looking at what its names mean.
///
/// # Errors
/// The text is no openCypher, or uses a part of its grammar that is not there yet.
pub fn parse(text: &str) -> Result<ast::Query, FrontEndError> {
    parser::parse(text).map_err(|fault| fault.locate(text))
}

/// The command about indexes or constraints that the text is; `None` when it is something else.
///
/// # Errors
/// The text begins like such a command and goes on otherwise, or asks for a kind that is not there yet.
pub fn schema_command(text: &str) -> Result<Option<SchemaCommand>, FrontEndError> {
    // Most texts are something else, and are not to be read twice.
    let start = text.trim_start();
    let word = start.get(..start.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(start.len()));
    let may_be = |word: &str| {
        // After comments, perhaps.
        word.is_empty() || ["CREATE", "DROP", "SHOW"].iter().any(|first| word.eq_ignore_ascii_case(first))
    };
    let after = word.and_then(|word| start.get(word.len()..)).unwrap_or_default().trim_start();
    if !word.is_some_and(may_be) || after.starts_with('(') {
        return Ok(None);
    }
    parser::parse_schema(text).map_err(|fault| fault.locate(text))
}

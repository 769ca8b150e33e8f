//! The openCypher front end: text to the language-neutral [`Plan`].
//!
//! **Flow.** text → `lexer` (tokens) → `parser` (syntax tree, [`ast`]) → `lower` (variables to slots, clauses to
//! operators, the checks that need no data) → [`Plan`]. Parameters stay in the plan, so that one cached plan serves
//! all their values.
//!
//! Commands, such as those about indexes and constraints, have no plan; [`command()`] parses them.
//!
//! **Errors.** Text that does not parse or is invalid gives `FrontEndError::Syntax` with line, column and what was
//! expected. A part of the language that is not supported yet gives `FrontEndError::Unsupported`.
//!
//! **Invariants.** No text causes a panic. A plan computes what the text says, or the text is refused. Nothing here
//! reads data.

pub mod ast;
mod command;
mod fault;
mod lexer;
mod literal;
mod lower;
mod parser;
mod prefix;
mod token;

pub use command::{Command, Show, TERMINATED_COLUMNS, TransactionCommand};
pub use prefix::Prefix;
use tidegraph_plan::{BatchedPlan, FrontEndError, Limits, Plan, Procedures};

/// Translates a query to a plan.
///
/// # Errors
/// [`FrontEndError::Syntax`] if the text is not openCypher or is invalid (an unknown variable, an aggregation in the
/// wrong place), [`FrontEndError::Unsupported`] if it uses a part of the language that is not supported yet. Both have
/// the place.
///
/// # Examples
/// ```
/// let plan = tidegraph_opencypher::compile("UNWIND [1, 2] AS n RETURN n")?;
/// assert_eq!(plan.to_string(), "unwind $0 of [1, 2]\nanswer n=$0\n");
///
/// let refused = tidegraph_opencypher::compile("MATCH (n) RETURN m").unwrap_err();
/// assert_eq!(refused.to_string(), "variable `m` is not defined at 1:18");
/// # Ok::<(), tidegraph_plan::FrontEndError>(())
/// ```
pub fn compile(text: &str) -> Result<Plan, FrontEndError> {
    compile_within(text, Procedures::builtin(), &Limits::none())
}

/// Translates a query of a client, within limits. It may call the procedures of the registry.
///
/// # Errors
/// As [`compile`], and [`FrontEndError::Stopped`] if a limit was reached.
pub fn compile_within(
    text: &str,
    procedures: &Procedures,
    limits: &Limits<'_>,
) -> Result<Plan, FrontEndError> {
    let tree = parser::parse(text, limits);
    tree.and_then(|query| lower::lower(&query, procedures, limits)).map_err(|fault| fault.locate(text))
}

/// Translates a query with a subquery `IN TRANSACTIONS`. `None`: the query has none.
///
/// # Errors
/// As [`compile_within`].
pub fn compile_batched(
    text: &str,
    procedures: &Procedures,
    limits: &Limits<'_>,
) -> Result<Option<BatchedPlan>, FrontEndError> {
    const WORD: &[u8] = b"TRANSACTIONS";
    // Most texts are other queries, which should not be parsed twice.
    if !text.as_bytes().windows(WORD.len()).any(|part| part.eq_ignore_ascii_case(WORD)) {
        return Ok(None);
    }
    // Commands about transactions are no queries.
    if command(text)?.is_some() {
        return Ok(None);
    }
    let tree = parser::parse(text, limits);
    tree.and_then(|query| lower::batches::lower(&query, procedures, limits))
        .map_err(|fault| fault.locate(text))
}

/// Returns the functions of the language, each with its category.
pub fn functions() -> impl Iterator<Item = (&'static str, &'static str)> {
    lower::call::LISTED.iter().flat_map(|(category, names)| names.iter().map(|name| (*name, *category)))
}

/// Parses a query without resolving its names.
///
/// # Errors
/// [`FrontEndError::Syntax`] if the text does not parse, [`FrontEndError::Unsupported`] if it uses a part of the
/// grammar that is not supported yet.
pub fn parse(text: &str) -> Result<ast::Query, FrontEndError> {
    parser::parse(text, &Limits::none()).map_err(|fault| fault.locate(text))
}

/// Parses a command. `None`: the text is something else.
///
/// # Errors
/// [`FrontEndError::Syntax`] if the text begins like such a command but does not parse, [`FrontEndError::Unsupported`]
/// if it asks for a kind of index or constraint that is not supported yet.
pub fn command(text: &str) -> Result<Option<Command>, FrontEndError> {
    // Most texts are queries, which should not be parsed twice.
    let start = text.trim_start();
    let word = start.get(..start.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(start.len()));
    let may_be = |word: &str| {
        // No word: comments may stand before the command.
        word.is_empty()
            || ["CREATE", "DROP", "SHOW", "TERMINATE"].iter().any(|first| word.eq_ignore_ascii_case(first))
    };
    let after = word.and_then(|word| start.get(word.len()..)).unwrap_or_default().trim_start();
    if !word.is_some_and(may_be) || after.starts_with('(') {
        return Ok(None);
    }
    parser::parse_command(text).map_err(|fault| fault.locate(text))
}

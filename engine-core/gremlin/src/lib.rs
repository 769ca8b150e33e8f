//! The Gremlin front end: gremlin-lang text to a [`Plan`].
//!
//! **Flow.** text → `lexer` (tokens) → `parser` ([`ast`]) → `compile` (a file for each family of steps) →
//! [`Plan`] with one column, `result`.
//!
//! **Rules.** The parser accepts all of TinkerPop's grammar. A part that is not supported yet gives
//! [`FrontEndError::Unsupported`] with its name and place, never a wrong result. No text causes a panic or exhausts the
//! stack ([`MAX_DEPTH`], [`MAX_STEPS`]). Nothing is evaluated here, and no step is special-cased for one query.
//!
//! **A new step** is a row of [`ast::StepName`] (`names/step.rs`), an arm of the compiler's match over all steps
//! (`compile/step.rs`) and a function in the file of its family. `docs/gremlin.md` lists the steps and the differences
//! from TinkerPop.

pub mod ast;
mod compile;
mod fault;
mod lexer;
mod names;
mod parser;
mod report;
mod version;

pub use parser::{MAX_DEPTH, MAX_STEPS};
pub use report::Report;
pub use tidegraph_plan::FrontEndError;
pub use version::{Dialect, UnknownLanguage, UnknownVersion, Version};

use tidegraph_plan::{Limits, Plan, Procedures};

/// Translates a traversal to a plan, or several, which run one after the other and answer as the last does. A name outside the vocabulary of the language is a parameter of the plan.
///
/// # Errors
/// [`FrontEndError::Syntax`] if the text does not parse or is invalid (a step with arguments that it does not take),
/// [`FrontEndError::Unsupported`] if it uses a part of Gremlin that is not supported yet. Both have the place.
///
/// # Examples
/// ```
/// let plan = tidegraph_gremlin::compile("g.V('1').out('knows').limit(n)")?;
/// assert_eq!(
///     plan.to_string(),
///     "look up vertices $0 of '1'\nexpand $0 -[knows]-> $1\nslice limit @n\nanswer result=$1\n"
/// );
///
/// let refused = tidegraph_gremlin::compile("g.V().values('x').pageRank()").unwrap_err();
/// assert_eq!(refused.to_string(), "not supported yet: pageRank() of what may be no vertex at 1:19");
/// # Ok::<(), tidegraph_gremlin::FrontEndError>(())
/// ```
pub fn compile(text: &str) -> Result<Plan, FrontEndError> {
    compile_within(text, Version::default(), Procedures::builtin(), &Limits::none())
}

/// Translates a traversal of a client as a version of Gremlin and the settings of the graph mean it, within limits. It may call the services that a program added to the registry.
///
/// # Errors
/// As [`compile`], and [`FrontEndError::Stopped`] if a limit was reached.
pub fn compile_within(
    text: &str,
    dialect: impl Into<Dialect>,
    procedures: &Procedures,
    limits: &Limits<'_>,
) -> Result<Plan, FrontEndError> {
    let dialect = dialect.into();
    let statements = parser::parse(text, dialect.version, limits);
    statements
        .and_then(|statements| compile::compile(&statements, dialect, procedures, limits))
        .map_err(|e| e.locate(text))
}

/// Parses the statements of a text; there is at least one.
///
/// # Errors
/// [`FrontEndError::Syntax`] if the text does not parse, [`FrontEndError::Unsupported`] for the few constructs of the
/// grammar that have no syntax tree, such as `g.tx()`.
pub fn parse(text: &str) -> Result<Vec<ast::Request<'_>>, FrontEndError> {
    parser::parse(text, Version::default(), &Limits::none()).map_err(|e| e.locate(text))
}

//! The syntax tree: steps with their arguments, each with its byte offset in the text.
//!
//! The tree has the form of the text and no meaning: modulators (`by`, `from`, `until` …) are steps like any other.

pub use crate::names::{Constant, PredicateName, SourceCall, StepName, Terminal};

use std::borrow::Cow;
use tidegraph_plan::GremlinType;
use tidegraph_types::{Cardinality, Str, Value};

/// A statement of a request: `g` with its configuration, its steps and the call that ends it.
#[derive(Clone, PartialEq, Debug)]
pub struct Request<'t> {
    /// Calls that configure the source: `with`, `withSideEffect` …
    pub configuration: Vec<Step<'t, SourceCall>>,
    /// The traversal's steps.
    pub steps: Vec<Step<'t>>,
    /// The call that ends the traversal, such as `next` or `toList`, if the text has one.
    pub terminal: Option<Step<'t, Terminal>>,
}

/// A name with arguments: a step, or a call before the first or after the last step.
#[derive(Clone, PartialEq, Debug)]
pub struct Step<'t, N = StepName> {
    /// Byte offset of the name.
    pub at: usize,
    /// Name of the step or call.
    pub name: N,
    /// Arguments in the order of the text.
    pub args: Vec<Arg<'t>>,
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub struct Arg<'t> {
    /// Byte offset of its first character.
    pub at: usize,
    /// The argument itself.
    pub kind: ArgKind<'t>,
}

/// The kinds of arguments.
#[derive(Clone, PartialEq, Debug)]
pub enum ArgKind<'t> {
    /// A string.
    Text(Str),
    /// A number, boolean, date or null.
    Value(Value),
    /// `datetime()`: the time of the request.
    Now,
    /// `UUID()`: a random UUID, the same wherever the request reads it.
    RandomUuid,
    /// A parameter: a name that the request binds.
    Variable(&'t str),
    /// An enum constant, without its enum: `T.id` and `id` are the same.
    Constant(Constant),
    /// `[a, b]`, or all items of a range such as `1..5`.
    List(Vec<Arg<'t>>),
    /// `{a, b}`
    Set(Vec<Arg<'t>>),
    /// `[k: v]`
    Map(Vec<(Arg<'t>, Arg<'t>)>),
    /// `P` or `TextP`.
    Predicate(Predicate<'t>),
    /// An anonymous traversal.
    Traversal(Vec<Step<'t>>),
    /// The id of `Vertex(id, label)`.
    Vertex(Box<Arg<'t>>),
    /// The id of `Edge(id, label)`, as which drivers' edges are written.
    Edge(Box<Arg<'t>>),
    /// `single(value)`, `set(value)` or `list(value)` in a map of properties: cardinality and value.
    Cardinality(Cardinality, Box<Arg<'t>>),
    /// A type: `GType.INT`.
    Type(GremlinType),
    /// A strategy with its settings: an argument of `withStrategies` and `withoutStrategies`.
    Strategy(&'t str, Vec<(&'t str, Arg<'t>)>),
    /// The name of a part of gremlin-lang that the compiler does not support.
    Other(Cow<'t, str>),
}

/// A predicate.
#[derive(Clone, PartialEq, Debug)]
pub enum Predicate<'t> {
    /// A named test with its operands.
    Test(PredicateName, Vec<Arg<'t>>),
    /// `a.and(b)`
    And(Box<Predicate<'t>>, Box<Predicate<'t>>),
    /// `a.or(b)`
    Or(Box<Predicate<'t>>, Box<Predicate<'t>>),
    /// `a.negate()`, `not(a)`
    Not(Box<Predicate<'t>>),
}

impl<'t> Arg<'t> {
    /// Names the argument for an error message.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            ArgKind::Text(text) => format!("string '{}'", crate::lexer::shorten(text)),
            ArgKind::Value(value) => match value.as_i64() {
                Some(int) => format!("number {int}"),
                None => value.type_name().into(),
            },
            ArgKind::Now => "a datetime".into(),
            ArgKind::RandomUuid => "a UUID".into(),
            ArgKind::Variable(name) => format!("variable {name}"),
            ArgKind::Constant(constant) => format!("constant {constant}"),
            ArgKind::List(_) => "a list".into(),
            ArgKind::Set(_) => "a set".into(),
            ArgKind::Map(_) => "a map".into(),
            ArgKind::Predicate(_) => "a predicate".into(),
            ArgKind::Traversal(_) => "a traversal".into(),
            ArgKind::Vertex(_) => "a vertex".into(),
            ArgKind::Edge(_) => "an edge".into(),
            ArgKind::Cardinality(..) => "a cardinality".into(),
            ArgKind::Type(_) => "a type".into(),
            ArgKind::Strategy(name, _) => format!("the strategy {}", crate::lexer::shorten(name)),
            ArgKind::Other(name) => name.to_string(),
        }
    }

    /// Returns the steps if the argument is a traversal.
    pub(crate) fn steps(&self) -> Option<&[Step<'t>]> {
        match &self.kind {
            ArgKind::Traversal(steps) => Some(steps),
            _ => None,
        }
    }

    /// Returns the constant if the argument is one.
    pub(crate) fn constant(&self) -> Option<Constant> {
        match self.kind {
            ArgKind::Constant(constant) => Some(constant),
            _ => None,
        }
    }

    /// Returns the text if the argument is a string.
    pub(crate) fn text(&self) -> Option<&Str> {
        match &self.kind {
            ArgKind::Text(text) => Some(text),
            _ => None,
        }
    }
}

//! The syntax tree: steps with their arguments, each with its place in the text. It says what was written and nothing of
//! what it means: modulators (`by`, `from`, `until` …) are steps like any other here.

use std::borrow::Cow;
use tidegraph_types::{Str, Value};

/// A whole request: `g` with its configuration, steps and terminal step.
#[derive(Clone, PartialEq, Debug)]
pub struct Request<'t> {
    /// Calls that configure the source: `with`, `withSideEffect` …
    pub configuration: Vec<Step<'t>>,
    /// The traversal's steps.
    pub steps: Vec<Step<'t>>,
    /// `next`, `toList` …, if written.
    pub terminal: Option<Step<'t>>,
}

/// One step.
#[derive(Clone, PartialEq, Debug)]
pub struct Step<'t> {
    /// Byte offset of its name.
    pub at: usize,
    /// Its name.
    pub name: &'t str,
    /// Its arguments.
    pub args: Vec<Arg<'t>>,
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub struct Arg<'t> {
    /// Byte offset of its first character.
    pub at: usize,
    /// What it is.
    pub kind: ArgKind<'t>,
}

/// What an argument is.
#[derive(Clone, PartialEq, Debug)]
pub enum ArgKind<'t> {
    /// A string.
    Text(Str),
    /// A number, boolean, date or null.
    Value(Value),
    /// `datetime()`: the present.
    Now,
    /// A name that the request binds.
    Variable(&'t str),
    /// An enum constant, without its enum: `T.id` and `id` are both `id`.
    Constant(&'t str),
    /// `[a, b]`, or a range that was written out.
    List(Vec<Arg<'t>>),
    /// `{a, b}`
    Set(Vec<Arg<'t>>),
    /// `[k: v]`
    Map(Vec<(Arg<'t>, Arg<'t>)>),
    /// `P` or `TextP`.
    Predicate(Predicate<'t>),
    /// An anonymous traversal.
    Traversal(Vec<Step<'t>>),
    /// `Vertex(id, label)`: the id.
    Vertex(Box<Arg<'t>>),
    /// `single(value)` and the like inside a property map: cardinality and value.
    Cardinality(&'t str, Box<Arg<'t>>),
    /// Something that gremlin-lang has and the compiler does not: its name.
    Other(Cow<'t, str>),
}

/// A predicate.
#[derive(Clone, PartialEq, Debug)]
pub enum Predicate<'t> {
    /// A named test with its operands.
    Test(&'t str, Vec<Arg<'t>>),
    /// `a.and(b)`
    And(Box<Predicate<'t>>, Box<Predicate<'t>>),
    /// `a.or(b)`
    Or(Box<Predicate<'t>>, Box<Predicate<'t>>),
    /// `a.negate()`, `not(a)`
    Not(Box<Predicate<'t>>),
}

impl<'t> Arg<'t> {
    /// How an error message names the argument.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            ArgKind::Text(text) => format!("string '{}'", crate::lexer::shorten(text)),
            ArgKind::Value(value) => match value.as_i64() {
                Some(int) => format!("number {int}"),
                None => value.type_name().into(),
            },
            ArgKind::Now => "a datetime".into(),
            ArgKind::Variable(name) => format!("variable {name}"),
            ArgKind::Constant(name) => format!("constant {name}"),
            ArgKind::List(_) => "a list".into(),
            ArgKind::Set(_) => "a set".into(),
            ArgKind::Map(_) => "a map".into(),
            ArgKind::Predicate(_) => "a predicate".into(),
            ArgKind::Traversal(_) => "a traversal".into(),
            ArgKind::Vertex(_) => "a vertex".into(),
            ArgKind::Cardinality(..) => "a cardinality".into(),
            ArgKind::Other(name) => name.to_string(),
        }
    }

    /// The steps, if it is a traversal.
    pub(crate) fn steps(&self) -> Option<&[Step<'t>]> {
        match &self.kind {
            ArgKind::Traversal(steps) => Some(steps),
            _ => None,
        }
    }

    /// The constant's name, if it is one.
    pub(crate) fn constant(&self) -> Option<&'t str> {
        match self.kind {
            ArgKind::Constant(name) => Some(name),
            _ => None,
        }
    }

    /// The text, if it is a string.
    pub(crate) fn text(&self) -> Option<&Str> {
        match &self.kind {
            ArgKind::Text(text) => Some(text),
            _ => None,
        }
    }
}

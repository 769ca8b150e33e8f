//! Regular expressions, compiled once for each request.

use super::error::Error;
use regex::{Regex, RegexBuilder};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use tidegraph_types::{Str, Value};

/// Maximum number of bytes of one compiled expression: a short text must not cost much memory.
const COMPILED_BYTES: usize = 1 << 20;
/// Maximum number of compiled expressions that are kept. Beyond this (patterns that differ from row to row) all are
/// dropped.
const KEPT: usize = 64;

/// Compiled regular expressions of one request.
#[derive(Default, Debug)]
pub struct Patterns {
    compiled: RefCell<FxHashMap<(Str, bool), Regex>>,
}

impl Patterns {
    /// Whether a text matches, anywhere or as a whole.
    pub(crate) fn matches(
        &self,
        name: &'static str,
        text: &str,
        pattern: &Str,
        whole: bool,
    ) -> Result<bool, Error> {
        let mut compiled = self.compiled.borrow_mut();
        if let Some(regex) = compiled.get(&(pattern.clone(), whole)) {
            return Ok(regex.is_match(text));
        }
        let source = if whole { format!(r"\A(?:{pattern})\z") } else { pattern.to_string() };
        let regex = RegexBuilder::new(&source).size_limit(COMPILED_BYTES).build().map_err(|error| {
            let problem = match error {
                regex::Error::CompiledTooBig(_) => "takes no regular expression as large as this",
                _ => "takes a regular expression, this is none",
            };
            Error::argument(name, problem, &Value::String(pattern.clone()))
        })?;
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        let matched = regex.is_match(text);
        compiled.insert((pattern.clone(), whole), regex);
        Ok(matched)
    }
}

//! Regular expressions, compiled once for each request.
//!
//! A call of the `regex` crate cannot be interrupted. In the worst case it takes a step for each part of the pattern and
//! each byte of the text, so only short texts are given to it. Longer ones are walked with the lazy automaton that
//! `regex` itself is built on, a few bytes between two checks of the deadline.

use super::error::Error;
use crate::{Context, Result};
use regex::{Regex, RegexBuilder};
use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use tidegraph_types::{Str, Value};

/// Maximum number of bytes of one compiled expression: a short text must not cost much memory.
const COMPILED_BYTES: usize = 1 << 20;
/// Maximum number of compiled expressions that are kept. Beyond this (patterns that differ from row to row) all are
/// dropped.
const KEPT: usize = 64;
/// Longest text, in bytes, that is matched in one call.
const ONE_CALL_BYTES: usize = 4 << 10;
/// Bytes between two checks of the deadline. The largest patterns need about 0.1 ms for a byte.
const PIECE_BYTES: usize = 64;
/// Largest product of a text's bytes and a pattern's states that is matched in one call if the automaton cannot.
const ONE_CALL_STEPS: usize = 1 << 30;

/// Compiled regular expressions of one request.
#[derive(Default, Debug)]
pub struct Patterns {
    compiled: RefCell<FxHashMap<(Str, bool), Regex>>,
    /// The expression that a long text was matched against last. Its tables take up to about 2 MiB.
    stepwise: RefCell<Option<((Str, bool), Stepwise)>>,
}

impl Patterns {
    /// Returns whether a text matches, anywhere or as a whole.
    ///
    /// # Errors
    ///
    /// `Error::Argument` for a pattern that does not parse or is too large; [`crate::Error::Stopped`] if the request has
    /// to end.
    pub(crate) fn matches(
        &self,
        ctx: &Context<'_>,
        name: &'static str,
        text: &str,
        pattern: &Str,
        whole: bool,
    ) -> Result<bool> {
        let regex = self.compiled(name, pattern, whole)?;
        if text.len() <= ONE_CALL_BYTES {
            return Ok(regex.is_match(text));
        }
        let mut stepwise = self.stepwise.borrow_mut();
        let key = (pattern.clone(), whole);
        let (_, automaton) = match &mut *stepwise {
            Some(last) if last.0 == key => last,
            other => {
                let made = Stepwise::new(regex.as_str()).ok_or_else(|| too_large(name, pattern))?;
                other.insert((key, made))
            }
        };
        if let Some(matched) = automaton.matches(ctx, text)? {
            return Ok(matched);
        }
        if text.len().saturating_mul(automaton.dfa.get_nfa().states().len()) > ONE_CALL_STEPS {
            let problem = "takes no word boundary in a text of this length with characters beyond ASCII";
            return Err(Error::argument(name, problem, &Value::String(pattern.clone())).into());
        }
        Ok(regex.is_match(text))
    }

    /// Returns the compiled expression; a clone shares its program.
    fn compiled(&self, name: &'static str, pattern: &Str, whole: bool) -> Result<Regex, Error> {
        let mut compiled = self.compiled.borrow_mut();
        if let Some(regex) = compiled.get(&(pattern.clone(), whole)) {
            return Ok(regex.clone());
        }
        let source = if whole { format!(r"\A(?:{pattern})\z") } else { pattern.to_string() };
        let regex =
            RegexBuilder::new(&source).size_limit(COMPILED_BYTES).build().map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => too_large(name, pattern),
                _ => {
                    let problem = "takes a regular expression, this is none";
                    Error::argument(name, problem, &Value::String(pattern.clone()))
                }
            })?;
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        compiled.insert((pattern.clone(), whole), regex.clone());
        Ok(regex)
    }
}

fn too_large(name: &'static str, pattern: &Str) -> Error {
    let problem = "takes no regular expression as large as this";
    Error::argument(name, problem, &Value::String(pattern.clone()))
}

/// An automaton that reads a text in pieces. It makes its states when it first needs them.
#[derive(Debug)]
struct Stepwise {
    dfa: DFA,
    states: Cache,
}

impl Stepwise {
    /// Compiles an expression; `None` if it is too large.
    fn new(source: &str) -> Option<Self> {
        let of_pattern = thompson::Config::new().nfa_size_limit(Some(COMPILED_BYTES));
        let of_states = DFA::config()
            // A Unicode word boundary is decided for ASCII only; other bytes end the walk.
            .unicode_word_boundary(true)
            .skip_cache_capacity_check(true);
        let dfa = DFA::builder().thompson(of_pattern).configure(of_states).build(source).ok()?;
        let states = dfa.create_cache();
        Some(Self { dfa, states })
    }

    /// Returns whether the text matches anywhere; `None` if the automaton cannot decide that.
    fn matches(&mut self, ctx: &Context<'_>, text: &str) -> Result<Option<bool>> {
        let Self { dfa, states } = self;
        let Ok(mut state) = dfa.start_state_forward(states, &Input::new(text)) else { return Ok(None) };
        for piece in text.as_bytes().chunks(PIECE_BYTES) {
            ctx.check()?;
            for byte in piece {
                let Ok(next) = dfa.next_state(states, state, *byte) else { return Ok(None) };
                state = next;
                if !state.is_tagged() {
                    continue;
                }
                if state.is_match() {
                    return Ok(Some(true));
                }
                if state.is_dead() {
                    return Ok(Some(false));
                }
                if state.is_quit() {
                    return Ok(None);
                }
            }
        }
        Ok(dfa.next_eoi_state(states, state).ok().map(|state| state.is_match()))
    }
}

//! Errors on their way out: a byte offset instead of a place, so that the common case computes no line numbers.

use tidegraph_plan::FrontEndError;

/// Why the text was refused, and where.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Failure {
    at: usize,
    text: String,
    unsupported: bool,
}

impl Failure {
    /// The text does not parse, or names what cannot be.
    pub(crate) fn syntax(at: usize, message: String) -> Self {
        Self { at, text: message, unsupported: false }
    }

    /// A part of Gremlin that is not there yet.
    pub(crate) fn unsupported(at: usize, name: impl Into<String>) -> Self {
        Self { at, text: name.into(), unsupported: true }
    }

    /// The error with its line and column, both from 1, columns in characters.
    pub(crate) fn in_text(self, source: &str) -> FrontEndError {
        let before = &source[..source.floor_char_boundary(self.at)];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        let place = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (line, column) = (place(line), place(column));
        if self.unsupported {
            FrontEndError::Unsupported { name: self.text, line, column }
        } else {
            FrontEndError::Syntax { message: self.text, line, column }
        }
    }
}

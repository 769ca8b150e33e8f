//! Errors inside this crate. They hold a byte offset; line and column are computed when an error leaves the crate.

use tidegraph_plan::{FrontEndError, Stopped};

/// An error with a byte offset into the text.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Fault {
    at: usize,
    text: String,
    unsupported: bool,
    /// A limit was reached; then nothing else counts.
    stopped: Option<Stopped>,
}

impl From<Stopped> for Fault {
    fn from(stopped: Stopped) -> Self {
        Self { stopped: Some(stopped), ..Self::syntax(0, String::new()) }
    }
}

impl Fault {
    /// Text that does not parse or is invalid.
    pub(crate) fn syntax(at: usize, message: String) -> Self {
        Self { at, text: message, unsupported: false, stopped: None }
    }

    /// A part of Gremlin that is not supported yet.
    pub(crate) fn unsupported(at: usize, name: impl Into<String>) -> Self {
        Self { at, text: name.into(), unsupported: true, stopped: None }
    }

    /// Converts to the public error. Line and column count from 1, columns in characters.
    pub(crate) fn locate(self, source: &str) -> FrontEndError {
        if let Some(stopped) = self.stopped {
            return stopped.into();
        }
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

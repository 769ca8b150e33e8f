//! Errors inside this crate. They hold a byte offset; line and column are computed when an error leaves the crate.

use tidegraph_plan::{FrontEndError, Stopped};

/// Result of this crate's internal functions.
pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// An error with a byte offset into the text.
#[derive(Debug)]
pub(crate) struct Fault {
    offset: u32,
    unsupported: bool,
    message: String,
    /// A limit was reached; then nothing else counts.
    stopped: Option<Stopped>,
}

impl From<Stopped> for Fault {
    fn from(stopped: Stopped) -> Self {
        Self { stopped: Some(stopped), ..Self::syntax(0, "") }
    }
}

impl Fault {
    /// Text that does not parse or is invalid.
    pub(crate) fn syntax(offset: u32, message: impl Into<String>) -> Self {
        Self { offset, unsupported: false, message: message.into(), stopped: None }
    }

    /// A construct that is not supported yet.
    pub(crate) fn unsupported(offset: u32, name: impl Into<String>) -> Self {
        Self { offset, unsupported: true, message: name.into(), stopped: None }
    }

    /// Converts to the public error. Lines end at `\n`; columns count characters.
    pub(crate) fn locate(self, text: &str) -> FrontEndError {
        if let Some(stopped) = self.stopped {
            return stopped.into();
        }
        let before = text.get(..self.offset as usize).unwrap_or(text);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let line = count(before.matches('\n').count() + 1);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = count(before[start..].chars().count() + 1);
        if self.unsupported {
            FrontEndError::Unsupported { name: self.message, line, column }
        } else {
            FrontEndError::Syntax { message: self.message, line, column }
        }
    }
}

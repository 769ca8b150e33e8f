//! Errors with their causes, for logs and terminals.

use std::error::Error;
use std::fmt;

/// Displays an error and its causes, each once: see [`chain`].
#[derive(Clone, Copy, Debug)]
pub struct Chain<'e>(&'e (dyn Error + 'static));

/// Displays the message of an error and the messages of its causes, separated by colons.
///
/// Most messages end with that of their cause; such a cause is not repeated.
///
/// ```
/// let error = std::io::Error::other("the disk is full");
/// assert_eq!(tidegraph_platform::chain(&error).to_string(), "the disk is full");
/// ```
#[must_use]
pub fn chain<'e>(error: &'e (dyn Error + 'static)) -> Chain<'e> {
    Chain(error)
}

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.to_string();
        f.write_str(&shown)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if !shown.contains(&text) {
                write!(f, ": {text}")?;
                shown = text;
            }
            next = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<dyn Error + 'static>>,
    }

    fn layer(text: &'static str, source: Option<Layer>) -> Layer {
        Layer { text, source: source.map(|source| Box::new(source) as _) }
    }

    #[test]
    fn each_cause_is_said_once() {
        let disk = layer("the disk is full", None);
        let write = layer("cannot write a: the disk is full", Some(disk));
        let commit = layer("the commit failed", Some(write));
        assert_eq!(chain(&commit).to_string(), "the commit failed: cannot write a: the disk is full");
    }
}

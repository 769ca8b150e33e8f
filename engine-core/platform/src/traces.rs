//! Traces that cross processes: which span a message belongs to.
//!
//! Code makes spans with `tracing`, like those of logs. A program that exports traces installs a [`Propagation`], once;
//! from then on a message to another process carries the context of its span, and the other process makes that span
//! the parent of its own. Without it, everything here does nothing and costs one load.

use std::sync::OnceLock;
use tracing::Span;

/// Largest number of spans of messages in one request. A query may send millions of messages, of which the first ones
/// show what is slow.
pub const MOST_MESSAGES: u64 = 256;

/// What turns spans into contexts and back.
pub trait Propagation: Send + Sync {
    /// Returns the context of a span as the value of W3C's header `traceparent`; `None` if the span is not recorded.
    fn context(&self, span: &Span) -> Option<String>;

    /// Makes a span of another process the parent of `span`, before `span` is entered. `field` finds the header fields
    /// `traceparent`, `tracestate` and `x-amzn-trace-id`. A missing or malformed context is ignored, as W3C asks for.
    fn adopt(&self, span: &Span, field: &dyn Fn(&str) -> Option<String>);

    /// Sends the spans that have ended.
    fn flush(&self);
}

static PROPAGATION: OnceLock<Box<dyn Propagation>> = OnceLock::new();

/// Installs the propagation of this process. Returns `false` if there is one already.
pub fn install(propagation: Box<dyn Propagation>) -> bool {
    PROPAGATION.set(propagation).is_ok()
}

/// Returns whether this process records traces.
pub fn is_on() -> bool {
    PROPAGATION.get().is_some()
}

/// Returns the span of the caller; one that is not recorded if this process records no traces.
#[must_use]
pub fn current() -> Span {
    if is_on() { Span::current() } else { Span::none() }
}

/// Returns the context of a span for a message; empty if the span is not recorded.
#[must_use]
pub fn context(span: &Span) -> String {
    let known = PROPAGATION.get().filter(|_| !span.is_none());
    known.and_then(|propagation| propagation.context(span)).unwrap_or_default()
}

/// Makes the sender's span the parent of `span`. `field` finds a header field of the message by its lower-case name.
pub fn adopt(span: &Span, field: impl Fn(&str) -> Option<String>) {
    if let Some(propagation) = PROPAGATION.get() {
        propagation.adopt(span, &field);
    }
}

/// Sends the spans that have ended, and waits until they are sent: for a process that may be frozen after an answer.
pub fn flush() {
    if let Some(propagation) = PROPAGATION.get() {
        propagation.flush();
    }
}

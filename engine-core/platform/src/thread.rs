//! Threads, each with a name.
//!
//! Names appear in panics, debuggers and `top -H`, where a thread without a name cannot be found.
//! A simulation starts no threads of the code that it drives: that code offers a `step` instead.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread called `name` that runs `work`.
///
/// Linux shows the first 15 bytes of the name.
///
/// # Errors
///
/// The system's error if it cannot start another thread; `work` is dropped.
///
/// # Panics
///
/// If `name` holds a null byte.
#[expect(clippy::disallowed_methods, reason = "the one place that starts threads")]
pub fn spawn<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(work)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_has_its_name_and_returns_its_result() {
        let thread = super::spawn("named", || std::thread::current().name().map(str::to_owned)).unwrap();
        assert_eq!(thread.join().unwrap().as_deref(), Some("named"));
    }
}

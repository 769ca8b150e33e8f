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

/// The nice value of threads that give way to others. While all processors are busy, such a thread gets about a third of
/// the time of another one.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// Makes the calling thread, and threads that it starts, give way to others. Does nothing where the system knows
/// priorities of processes only, or refuses.
pub fn lower_priority() {
    // Linux has a priority for each thread; elsewhere this would concern the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "cannot lower the priority of a thread");
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_with_lower_priority_changes_no_other_one() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        let within = super::spawn("lower", move || {
            super::lower_priority();
            (nice(), super::spawn("its child", nice).unwrap().join().unwrap())
        });
        // A process that was started with less priority keeps it.
        let lowered = before.max(super::NICE);
        assert_eq!(within.unwrap().join().unwrap(), (lowered, lowered));
        assert_eq!(nice(), before);
    }

    #[test]
    fn a_thread_has_its_name_and_returns_its_result() {
        let thread = super::spawn("named", || std::thread::current().name().map(str::to_owned)).unwrap();
        assert_eq!(thread.join().unwrap().as_deref(), Some("named"));
    }
}

//! The trace of a world: a hash of all lines, and the lines themselves if the caller asks for them.

use parking_lot::Mutex;
use std::fmt;
use xxhash_rust::xxh3::Xxh3Default;

/// The trace of one world. Two runs of a seed are equal if their hashes are.
#[derive(Default)]
pub(crate) struct Trace(Mutex<State>);

#[derive(Default)]
struct State {
    hash: Xxh3Default,
    lines: Option<Vec<String>>,
    count: u64,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("count", &self.0.lock().count).finish_non_exhaustive()
    }
}

impl Trace {
    pub fn new(keep_lines: bool) -> Self {
        let lines = keep_lines.then(Vec::new);
        Self(Mutex::new(State { lines, ..State::default() }))
    }

    /// Adds a line: the time in microseconds, the process, and the event.
    pub fn note(&self, micros: u64, who: &str, what: fmt::Arguments<'_>) {
        let line = format!("{:>10.3} {who:<4} {what}", micros as f64 / 1000.0);
        let mut state = self.0.lock();
        state.hash.update(line.as_bytes());
        state.hash.update(b"\n");
        state.count += 1;
        if let Some(lines) = &mut state.lines {
            lines.push(line);
        }
    }

    /// Returns the hash and the number of all lines, and the kept lines.
    pub fn end(&self) -> (u64, u64, Vec<String>) {
        let mut state = self.0.lock();
        (state.hash.digest(), state.count, state.lines.take().unwrap_or_default())
    }
}

//! What one request may use: the graph as it sees it, parameters, limits, interruption, time and randomness.
//!
//! A [`Context`] is made by the caller for one request and handed to every operator and expression by shared
//! reference; what changes inside it (pending writes, memory in use) sits behind cells. A request runs on one thread.
//!
//! What must never happen: a clock read or a random number drawn here. The caller brings both, so that a simulation
//! can drive them.

use crate::{Error, Result, View};
use jiff::Timestamp;
use std::cell::Cell;
use tidegraph_types::{Str, Value};

/// Parameters of a request by name.
pub type Parameters = indexmap::IndexMap<Str, Value>;

/// Why the caller stops a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stop {
    /// The client asked for it or went away.
    #[error("the query was cancelled")]
    Cancelled,
    /// It ran longer than its limit.
    #[error("the query ran longer than its limit of {limit_ms} ms")]
    TimedOut {
        /// The limit.
        limit_ms: u64,
    },
}

/// Tells a request to stop. Asked at least once for each batch, so it must be cheap.
pub trait Interrupt: Sync {
    /// `Err` when the request must stop now.
    fn check(&self) -> Result<(), Stop>;
}

/// A request that is never stopped.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverInterrupted;

impl Interrupt for NeverInterrupted {
    fn check(&self) -> Result<(), Stop> {
        Ok(())
    }
}

/// Randomness for `rand()` and for ids of new vertices.
pub trait Entropy: Sync {
    /// 64 random bits.
    fn random_u64(&self) -> u64;

    /// A version 4 UUID in its usual text form.
    fn uuid(&self) -> Str {
        let bits = u128::from(self.random_u64()) << 64 | u128::from(self.random_u64());
        let uuid = uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid();
        Str::from(&*uuid.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()))
    }

    /// Uniform in [0, 1).
    fn random_unit(&self) -> f64 {
        // 53 bits: every double of this form is exact.
        (self.random_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Limits of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Memory for everything that is buffered, pending writes included.
    pub memory_bytes: u64,
    /// Rows of the answer.
    pub result_rows: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: 1 << 30, result_rows: 10_000_000 }
    }
}

/// The request's memory account. Sizes are estimates; what matters is that nothing grows without being charged.
#[derive(Debug)]
pub struct Memory {
    used: Cell<u64>,
    peak: Cell<u64>,
    limit_bytes: u64,
}

impl Memory {
    /// An empty account.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self { used: Cell::new(0), peak: Cell::new(0), limit_bytes }
    }

    /// Takes memory; an error (and nothing taken) when that is more than the limit.
    pub fn charge(&self, bytes: usize) -> Result<()> {
        let used = self.used.get().saturating_add(bytes as u64);
        if used > self.limit_bytes {
            return Err(Error::Limit { what: "bytes of memory", allowed: self.limit_bytes });
        }
        self.used.set(used);
        self.peak.set(self.peak.get().max(used));
        Ok(())
    }

    /// Gives memory back.
    pub fn release(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes as u64));
    }

    /// Bytes in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.get()
    }

    /// Most bytes that were in use at one time.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak.get()
    }
}

/// Everything that one request may use.
pub struct Context<'a> {
    /// The graph at the request's version with its own writes; `view.catalog()` is the dictionary.
    pub view: View<'a>,
    /// Parameters by name.
    pub parameters: &'a Parameters,
    /// Limits that are not memory.
    pub limits: Limits,
    /// Memory account.
    pub memory: Memory,
    /// Asked whether to go on.
    pub interrupt: &'a dyn Interrupt,
    /// Random numbers.
    pub entropy: &'a dyn Entropy,
    /// Start of the request.
    pub now: Timestamp,
    /// Whether it is an error to read labels or properties of an element that the request deleted (openCypher). Else
    /// there are none (Gremlin).
    pub deleted_is_error: bool,
    /// Regular expressions of the request, compiled.
    pub patterns: crate::value::Patterns,
    /// What the plan reads of vertices, if storage is far away.
    pub(crate) ahead: Option<crate::value::ReadAhead>,
    /// What is charged for the view's answers to it.
    ahead_bytes: Cell<usize>,
}

impl<'a> Context<'a> {
    /// A context; the memory account starts empty, and what was deleted reads as empty.
    #[must_use]
    pub fn new(
        view: View<'a>,
        parameters: &'a Parameters,
        limits: Limits,
        interrupt: &'a dyn Interrupt,
        entropy: &'a dyn Entropy,
        now: Timestamp,
    ) -> Self {
        let memory = Memory::new(limits.memory_bytes);
        let patterns = crate::value::Patterns::default();
        let (deleted_is_error, ahead, ahead_bytes) = (false, None, Cell::new(0));
        Self {
            view,
            parameters,
            limits,
            memory,
            interrupt,
            entropy,
            now,
            deleted_is_error,
            patterns,
            ahead,
            ahead_bytes,
        }
    }

    /// Charges the request for what the view keeps of answers ahead, instead of what it kept before. Where there is no room for
    /// them they are let go: nobody needs them, they only save a way.
    pub(crate) fn charge_ahead(&self) {
        let bytes = self.view.ahead_bytes();
        self.memory.release(self.ahead_bytes.replace(0));
        if self.memory.charge(bytes).is_ok() {
            self.ahead_bytes.set(bytes);
        } else {
            self.view.forget_ahead();
        }
    }

    /// Error when the caller wants the request to stop. To be called in every loop that may be long.
    pub fn check(&self) -> Result<()> {
        Ok(self.interrupt.check()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(u64);
    impl Entropy for Fixed {
        fn random_u64(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn uuids_have_version_and_variant() {
        for bits in [0, u64::MAX, 0x0123_4567_89ab_cdef] {
            let id = Fixed(bits).uuid();
            assert_eq!(id.len(), 36, "{id}");
            assert_eq!(&id[14..15], "4", "{id}");
            assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
        }
        assert!(Fixed(u64::MAX).random_unit() < 1.0);
    }

    #[test]
    fn memory_is_refused_beyond_the_limit() {
        let memory = Memory::new(10);
        memory.charge(8).expect("within");
        assert_eq!(
            memory.charge(3).expect_err("beyond").to_string(),
            "the query needs more than its limit of 10 bytes of memory"
        );
        memory.release(8);
        assert_eq!((memory.used(), memory.peak()), (0, 8));
    }
}

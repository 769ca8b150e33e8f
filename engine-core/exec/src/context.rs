//! The context of a request: its view of the graph, parameters, limits, interruption, time and randomness.
//!
//! The caller makes a [`Context`] for one request. Operators and expressions get it by shared reference; pending writes
//! and memory in use are in cells, so a context belongs to one thread. [`Helpers`] have contexts of their own.
//!
//! What must never happen: this crate reads a clock or draws a random number itself, but for those that the seed of a plan
//! repeats. The caller provides both, so that a simulation can control them.

use crate::java_random::JavaRandom;
use crate::registers::Registers;
use crate::{Error, Reservation, Result, View};
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{At, Statistics};
use tidegraph_plan::Procedures;
use tidegraph_types::{ElementIds, IndexDefinition, Str, Value};

/// The parameters of a request by name.
pub type Parameters = indexmap::IndexMap<Str, Value>;

/// Why the caller stops a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stop {
    /// The client cancelled the request or disconnected.
    #[error("the query was cancelled")]
    Cancelled,
    /// The request ran longer than its limit.
    #[error("the query ran longer than its limit of {} ms", limit.as_millis())]
    TimedOut {
        /// The limit.
        limit: Duration,
    },
}

/// Tells a request to stop. Checked at least once for each batch, so a check must be cheap.
pub trait Interrupt: Sync {
    /// Checks whether the request may continue.
    ///
    /// # Errors
    ///
    /// The reason to stop, if the request must stop now.
    fn check(&self) -> Result<(), Stop>;

    /// Returns the time since the request started, by the caller's clock.
    fn elapsed(&self) -> Duration;
}

/// An interrupt that never stops a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverInterrupted;

impl Interrupt for NeverInterrupted {
    fn check(&self) -> Result<(), Stop> {
        Ok(())
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// Random numbers for `rand()` and for the ids of new vertices.
pub trait Entropy: Sync {
    /// Returns 64 random bits.
    fn random_u64(&self) -> u64;

    /// Returns a version 4 UUID in its usual text form.
    fn uuid(&self) -> Str {
        let bits = u128::from(self.random_u64()) << 64 | u128::from(self.random_u64());
        let uuid = uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid();
        Str::from(&*uuid.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()))
    }
}

/// Makes a number in [0, 1) of random bits. It has 53 bits: every double of this form is exact.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Statistics of the graph, for procedures about it as a whole.
pub trait StatisticsSource: Sync {
    /// Returns the statistics of the graph as they are at a version, or later.
    ///
    /// # Errors
    ///
    /// Those of storage.
    fn statistics(&self, at: At) -> Result<Arc<Statistics>, tidegraph_apl::Error>;

    /// Returns the definitions of the indexes, each with whether it is in use.
    ///
    /// # Errors
    ///
    /// Those of storage.
    fn indexes(&self) -> Result<Vec<(IndexDefinition, bool)>, tidegraph_apl::Error>;
}

/// Other threads that work for a request which only reads, on a graph in this process.
pub trait Helpers: Sync {
    /// Returns the number of partitions of the graph, which threads scan one at a time.
    fn partitions(&self) -> u16;

    /// Whether the request has run for so long that it is worth it to start threads.
    fn is_long(&self) -> bool;

    /// Calls `own` on this thread with a function that starts other threads, as many as are free. Each of them calls `work`
    /// with a context of its own, of the same request: with the same version and the same time, but with memory of its
    /// own. Returns when all have ended. A panic of a thread goes on here.
    fn beside(&self, work: &(dyn Fn(&Context<'_>) + Sync), own: &mut dyn FnMut(&mut dyn FnMut()));
}

/// The limits of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Memory limit in bytes, for what operators buffer, pending writes, and the rows of the answer.
    pub memory_bytes: u64,
    /// Maximum number of rows of the answer.
    pub result_rows: u64,
    /// Whether rows beyond the memory limit may go to files, for which the thread waits.
    pub spills: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: 1 << 30, result_rows: 10_000_000, spills: true }
    }
}

/// The request's memory account. Sizes are estimates; everything that grows must be charged.
///
/// ```
/// use tidegraph_exec::{Error, Memory};
///
/// let memory = Memory::new(100);
/// memory.charge(80)?;
/// let refused = memory.charge(30);
/// assert!(matches!(refused, Err(Error::Memory { limit_bytes: 100, held_bytes: 80, asked_bytes: 30 })));
/// memory.release(80);
/// assert_eq!((memory.used(), memory.peak()), (0, 80));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Memory {
    used: Cell<u64>,
    peak: Cell<u64>,
    limit_bytes: u64,
    /// The request's part of the memory that all requests share.
    shared: Option<Arc<Reservation>>,
}

impl Memory {
    /// Makes an empty account with a limit.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self::drawing(limit_bytes, None)
    }

    /// Makes an empty account whose memory also counts in a reservation. The reservation keeps what the account held
    /// at its end, so that the caller can keep the rows of the answer.
    #[must_use]
    pub fn drawing(limit_bytes: u64, shared: Option<Arc<Reservation>>) -> Self {
        if let Some(shared) = &shared {
            shared.shrink_to(0);
        }
        Self { used: Cell::new(0), peak: Cell::new(0), limit_bytes, shared }
    }

    /// Charges memory.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] if the account would exceed its limit, [`Error::AllMemory`] if all requests together would
    /// exceed theirs; then nothing is charged.
    pub fn charge(&self, bytes: usize) -> Result<()> {
        let used = self.used.get().saturating_add(bytes as u64);
        if used > self.limit_bytes {
            let (limit_bytes, held_bytes) = (self.limit_bytes, self.used.get());
            return Err(Error::Memory { limit_bytes, held_bytes, asked_bytes: bytes as u64 });
        }
        if let Some(shared) = &self.shared {
            shared.grow_to(used)?;
        }
        self.used.set(used);
        self.peak.set(self.peak.get().max(used));
        Ok(())
    }

    /// Checks whether there is room for a value that is about to be made, without charging it.
    ///
    /// # Errors
    ///
    /// The same as [`Memory::charge`].
    pub fn ensure(&self, bytes: usize) -> Result<()> {
        self.charge(bytes)?;
        self.release(bytes);
        Ok(())
    }

    /// Returns the bytes that can still be charged.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used.get())
    }

    /// Releases memory.
    pub fn release(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes as u64));
        if let Some(shared) = &self.shared {
            shared.shrink_to(self.used.get());
        }
    }

    /// Returns the bytes in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.get()
    }

    /// Returns the most bytes that were in use at one time.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak.get()
    }
}

/// Everything that one request may use.
pub struct Context<'a> {
    /// The graph at the request's version, with the request's writes; `view.catalog()` is the dictionary.
    pub view: View<'a>,
    /// Parameters by name.
    pub parameters: &'a Parameters,
    /// The limits; `memory` enforces the one of memory.
    pub limits: Limits,
    /// The memory account.
    pub memory: Memory,
    /// Tells the request to stop.
    pub interrupt: &'a dyn Interrupt,
    /// Random numbers.
    pub entropy: &'a dyn Entropy,
    /// The time at which the request started.
    pub now: Timestamp,
    /// How the request reads the text of ids. openCypher sees the text itself.
    pub ids: ElementIds,
    /// Whether it is an error to read labels or properties of an element that the request deleted, as in openCypher. In
    /// Gremlin such an element has none.
    pub deleted_is_error: bool,
    /// Statistics of the graph, if the caller has any.
    pub statistics: Option<&'a dyn StatisticsSource>,
    /// The CSV files that the request may read, if the caller has any.
    pub csv_files: Option<&'a dyn crate::CsvFiles>,
    /// The files that hold graphs, which the request may read, if the caller has any.
    pub graph_files: Option<&'a dyn crate::GraphFiles>,
    /// Files for rows beyond the memory of the request, if it may use any.
    pub spill: Option<&'a dyn crate::SpillFiles>,
    /// Threads that take a part of the work, if the request may have any.
    pub helpers: Option<&'a dyn Helpers>,
    /// The procedures that `dbms.procedures()` lists.
    pub procedures: &'a Procedures,
    /// The compiled regular expressions of the request.
    pub patterns: crate::value::Patterns,
    /// Measures the operators, if the caller wants to know.
    pub profile: Option<crate::Profile<'a>>,
    /// What the plan reads of vertices, if storage is on other machines.
    pub(crate) ahead: Option<crate::value::ReadAhead>,
    /// Bytes charged for the answers that the view read ahead.
    ahead_bytes: Cell<usize>,
    /// Steps of work since the last check of the interrupt.
    steps: Cell<usize>,
    /// The registers of the request.
    pub(crate) registers: Registers,
    /// The seed of the plan; 0 without one.
    seed: u64,
    /// Java's generators of a plan with a seed, by the place of the step that draws.
    generators: RefCell<FxHashMap<u32, JavaRandom>>,
}

/// Steps of work between two checks of the interrupt: well below a millisecond.
const STEPS_PER_CHECK: usize = 16_384;

impl<'a> Context<'a> {
    /// Returns the files for rows beyond the memory limit, if the request may use any.
    pub(crate) fn spill_files(&self) -> Option<&'a dyn crate::SpillFiles> {
        self.spill.filter(|_| self.limits.spills)
    }

    /// Makes a context with an empty memory account. Ids are strings, and reads of deleted elements find nothing (`deleted_is_error` is
    /// `false`).
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
        let (deleted_is_error, ahead, ahead_bytes, steps) = (false, None, Cell::new(0), Cell::new(0));
        Self {
            view,
            parameters,
            limits,
            memory,
            interrupt,
            entropy,
            now,
            ids: ElementIds::Strings,
            deleted_is_error,
            statistics: None,
            csv_files: None,
            graph_files: None,
            spill: None,
            helpers: None,
            procedures: Procedures::builtin(),
            patterns,
            profile: None,
            ahead,
            ahead_bytes,
            steps,
            registers: Registers::default(),
            seed: 0,
            generators: RefCell::default(),
        }
    }

    /// Sets the seed of the numbers that [`Context::seeded`] draws.
    pub(crate) fn seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Draws from the generator of the step at a place of the text. As in TinkerPop, each step has one that begins with the
    /// seed.
    pub(crate) fn seeded<T>(&self, place: u32, draw: impl FnOnce(&mut JavaRandom) -> T) -> T {
        let mut generators = self.generators.borrow_mut();
        draw(generators.entry(place).or_insert_with(|| JavaRandom::new(self.seed)))
    }

    /// Returns 64 random bits for a function or a sample.
    pub(crate) fn draw(&self) -> u64 {
        self.entropy.random_u64()
    }

    /// Returns a random number for a function, uniform in [0, 1).
    pub(crate) fn draw_unit(&self) -> f64 {
        unit(self.draw())
    }

    /// Replaces the charge for the answers that the view read ahead. If there is no room for them, the view drops them:
    /// they only save round trips.
    pub(crate) fn charge_ahead(&self) {
        let bytes = self.view.ahead_bytes();
        self.memory.release(self.ahead_bytes.replace(0));
        if self.memory.charge(bytes).is_ok() {
            self.ahead_bytes.set(bytes);
        } else {
            self.view.forget_ahead();
        }
    }

    /// Checks whether the request may continue. Every loop that may be long must call this.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`] if the caller wants the request to stop.
    pub fn check(&self) -> Result<()> {
        Ok(self.interrupt.check()?)
    }

    /// Counts steps of work, each of about ten nanoseconds, and checks from time to time whether the request may
    /// continue. Loops call this before they work, and functions before they process a long value.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`] if the caller wants the request to stop.
    pub fn spend(&self, steps: usize) -> Result<()> {
        let steps = self.steps.get().saturating_add(steps);
        if steps < STEPS_PER_CHECK {
            self.steps.set(steps);
            return Ok(());
        }
        self.steps.set(0);
        self.check()
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
        assert!(unit(u64::MAX) < 1.0);
    }

    #[test]
    fn memory_is_refused_beyond_the_limit() {
        let memory = Memory::new(10);
        memory.charge(8).expect("within");
        assert_eq!(
            memory.charge(3).expect_err("beyond").to_string(),
            "the query holds 8 bytes of memory and needs 3 more, over its limit of 10: \
             filter or aggregate earlier, return less, or raise the limit"
        );
        memory.release(8);
        assert_eq!((memory.used(), memory.peak()), (0, 8));
    }
}

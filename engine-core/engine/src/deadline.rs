//! When a request must end.

use crate::Error;
use crate::backend::ReadOptions;
use crate::plans::CachedPlan;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_exec::{Interrupt, Stop};
use tidegraph_plan::Stopped;
use tidegraph_platform::Clock;

/// Stops a request at its deadline, or when its caller cancels it.
pub(crate) struct Deadline<'a> {
    clock: &'a dyn Clock,
    at: Duration,
    limit: Duration,
    cancel: Option<&'a Arc<AtomicBool>>,
}

impl<'a> Deadline<'a> {
    pub(crate) fn new(clock: &'a dyn Clock, limit: Duration, cancel: Option<&'a Arc<AtomicBool>>) -> Self {
        Self { clock, at: clock.now() + limit, limit, cancel }
    }

    /// Returns the same with the limit that a plan sets for itself, if that is shorter.
    pub(crate) fn within(&self, planned: &CachedPlan) -> Self {
        let limit = planned.plan.timeout.map_or(self.limit, |own| own.min(self.limit));
        Self { at: self.at - self.limit + limit, limit, ..*self }
    }

    /// Returns the options of reads that end with it.
    pub(crate) fn options(&self) -> ReadOptions<'a> {
        ReadOptions { deadline: Some(self.at), cancel: self.cancel }
    }

    /// Returns the error of planning that was stopped: by the time limit, by the caller, or by its memory.
    pub(crate) fn error_of(&self, stopped: Stopped) -> Error {
        match (stopped, self.ensure()) {
            (Stopped::Interrupted, Err(error)) => error,
            (stopped, _) => Error::caused_by(stopped.code(), stopped),
        }
    }

    /// [`Interrupt::check`] with the engine's error.
    pub(crate) fn ensure(&self) -> Result<(), Error> {
        Ok(self.check().map_err(tidegraph_exec::Error::from)?)
    }
}

impl Interrupt for Deadline<'_> {
    fn check(&self) -> Result<(), Stop> {
        if self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Stop::Cancelled);
        }
        if self.clock.now() >= self.at {
            return Err(Stop::TimedOut { limit: self.limit });
        }
        Ok(())
    }

    fn elapsed(&self) -> Duration {
        self.clock.now().saturating_sub(self.at.saturating_sub(self.limit))
    }
}

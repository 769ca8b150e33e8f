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
    trial: Option<&'a Trial>,
}

/// A time at which a run ends without an answer, unless the request has got rows by then.
pub(crate) struct Trial {
    at: Duration,
    has_ended: AtomicBool,
    /// Whether the request has rows already, so that the run must go on.
    pub(crate) is_over: Arc<AtomicBool>,
}

impl Trial {
    pub(crate) fn until(at: Duration) -> Self {
        Self { at, has_ended: AtomicBool::new(false), is_over: Arc::default() }
    }

    /// Whether the run was ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    fn ends(&self, now: Duration) -> bool {
        let ends = now >= self.at && !self.is_over.load(Ordering::Relaxed);
        if ends {
            self.has_ended.store(true, Ordering::Relaxed);
        }
        ends
    }
}

impl<'a> Deadline<'a> {
    pub(crate) fn new(clock: &'a dyn Clock, limit: Duration, cancel: Option<&'a Arc<AtomicBool>>) -> Self {
        Self { clock, at: clock.now() + limit, limit, cancel, trial: None }
    }

    /// Returns the same with the limit that a plan sets for itself, if that is shorter.
    pub(crate) fn within(&self, planned: &CachedPlan) -> Self {
        let limit = planned.plan.timeout.map_or(self.limit, |own| own.min(self.limit));
        Self { at: self.at - self.limit + limit, limit, ..*self }
    }

    /// Returns the same for a run on trial.
    pub(crate) fn on_trial<'t>(&'t self, trial: &'t Trial) -> Deadline<'t> {
        Deadline { trial: Some(trial), ..*self }
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
        let now = self.clock.now();
        if now >= self.at || self.trial.is_some_and(|trial| trial.ends(now)) {
            return Err(Stop::TimedOut { limit: self.limit });
        }
        Ok(())
    }

    fn elapsed(&self) -> Duration {
        self.clock.now().saturating_sub(self.at.saturating_sub(self.limit))
    }
}

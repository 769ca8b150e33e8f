//! Loads of other processes into the same graph: the workers of a fleet.
//!
//! Each process has its own queue, and all share the files of jobs. A process reports on all jobs. It writes
//! the files of its own jobs repeatedly until they end. A job that has not ended, and whose file has not
//! been written for a long time, has lost its process; the sequencer then knows the outcome of the load.
//!
//! What must never happen: a segment is removed while a process may replay the record that names it.

use super::job::{Job, LoadState};
use super::{JOBS, SEGMENTS, Shared, job_path, no_such, steps};
use crate::Error;
use crate::backend::LoadOutcome;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_platform::Objects;
use tidegraph_types::{ErrorCode, Version};

/// Time between two writes of the file of a job that has not ended.
const WRITE_EVERY: Duration = Duration::from_secs(10);
/// A job that has not ended and was not written for this time has lost its process.
const LOST_AFTER_S: i64 = 60;

/// Time for which the segments of a failed load are kept: a process that was only paused may still commit them.
const KEEP_FAILED_FOR: SignedDuration = SignedDuration::from_hours(24);

impl Shared {
    /// Reads a job from its file.
    pub(super) fn read(&self, id: &str) -> Result<Arc<Job>, Error> {
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(no_such(id));
        }
        let bytes = self.objects.get(&job_path(id)).map_err(|error| match error.code() {
            ErrorCode::NotFound => no_such(id),
            _ => error.into(),
        })?;
        let job = Job::parse(&bytes).map_err(|error| {
            let message = format!("the job of load {id} is damaged: {error}");
            Error::new(ErrorCode::Corrupt, message).with_source(error)
        })?;
        let job = Arc::new(job);
        self.resolve_lost_job(&job);
        let mut state = self.state.lock();
        match state.jobs.iter_mut().find(|other| other.id() == id) {
            // The job was submitted to this process meanwhile.
            Some(own) if own.elsewhere().is_none() => return Ok(own.clone()),
            Some(old) => *old = job.clone(),
            None => {
                let at = state.jobs.partition_point(|other| other.number() <= job.number());
                state.jobs.insert(at, job.clone());
            }
        }
        Ok(job)
    }

    /// Reads the jobs of other processes that this one has not read yet.
    pub(super) fn look_for_others(&self) {
        let listed = match self.objects.list(&format!("{JOBS}/")) {
            Ok(listed) => listed,
            Err(error) => {
                tracing::warn!(%error, "cannot list the loads of other workers");
                return;
            }
        };
        for object in listed {
            let name =
                object.path.strip_prefix(JOBS).and_then(|name| name.strip_prefix('/')?.strip_suffix(".json"));
            let Some(id) = name else { continue };
            if self.state.lock().jobs.iter().any(|job| job.id() == id) {
                continue;
            }
            if let Err(error) = self.read(id) {
                tracing::warn!(load = id, %error, "cannot read a load of another worker");
            }
        }
    }

    /// Ends a job of another process if that process is gone.
    pub(super) fn resolve_lost_job(&self, job: &Job) {
        let now = self.clock.wall();
        let patience = job.patience_s().unwrap_or(LOST_AFTER_S);
        let lost = job.elsewhere().is_some_and(|written| now.as_second() - written.as_second() > patience);
        if job.is_resolved() || !(lost || job.state().is_final()) {
            return;
        }
        let gone = "the worker that ran the load is gone";
        match self.backend.load_outcome(job.id(), job.not_at()) {
            Ok(LoadOutcome::Visible(version)) => {
                job.committed(version);
                job.end(LoadState::Completed, None, now);
            }
            Ok(LoadOutcome::NotVisible) => job.end(LoadState::Failed, Some(gone.into()), now),
            Ok(LoadOutcome::Unknown) if !job.state().is_final() => {
                job.end_open(format!("{gone}, and it is unknown whether the load is visible"), now);
            }
            Ok(LoadOutcome::Unknown) => return,
            Err(error) => {
                tracing::debug!(load = job.id(), %error, "the outcome of a load is not known yet");
                return;
            }
        }
        self.save(job);
    }

    /// Writes the jobs of this process that have not ended, so that other processes see that they are not lost.
    pub(super) fn write_again(&self) {
        let mut written = self.clock.now();
        loop {
            let own: Vec<Arc<Job>> = {
                let mut state = self.state.lock();
                // `stop` sets the flag, takes the lock, and then wakes this thread.
                if self.stopping.load(Ordering::Relaxed) {
                    return;
                }
                self.changed.wait_for(&mut state, WRITE_EVERY);
                if self.clock.now().saturating_sub(written) < WRITE_EVERY {
                    continue;
                }
                let is_ours = |job: &&Arc<Job>| job.elsewhere().is_none() && !job.state().is_final();
                state.jobs.iter().filter(is_ours).cloned().collect()
            };
            own.iter().for_each(|job| self.save(job));
            written = self.clock.now();
        }
    }
}

/// Removes segments of a graph that several processes load into: those of loads that became visible at `version` or
/// before, which no remaining checkpoint needs, and those of loads that failed at least 24 hours before `now`.
///
/// # Errors
///
/// `Unavailable` if the object store does not answer.
pub fn sweep_below(objects: &Objects, version: Version, now: Timestamp) -> Result<(), Error> {
    let long_ago = now.checked_sub(KEEP_FAILED_FOR).unwrap_or(Timestamp::MIN);
    let mut of_load: Option<(String, bool)> = None;
    for object in objects.list(&format!("{SEGMENTS}/"))? {
        let id = object.path.split('/').nth(1).unwrap_or_default();
        let is_needless = match &of_load {
            Some((last, is_needless)) if last == id => *is_needless,
            _ => {
                let is_needless = is_needless(objects, id, version, long_ago)?;
                of_load = Some((id.to_owned(), is_needless));
                is_needless
            }
        };
        if is_needless {
            objects.delete(&object.path)?;
        }
    }
    Ok(())
}

/// Whether no process needs the segments of a load, nor ever will.
fn is_needless(objects: &Objects, id: &str, version: Version, long_ago: Timestamp) -> Result<bool, Error> {
    let Some(job) = objects.get(&job_path(id)).ok().and_then(|bytes| Job::parse(&bytes).ok()) else {
        return Ok(false);
    };
    if job.has_segments_below(version) {
        return Ok(true);
    }
    if !job.has_failed_by(long_ago) {
        return Ok(false);
    }
    // Another process may have begun to commit a load in steps before the load failed. If that process goes on only
    // now, it finds this decision. If it has asked the sequencer already, the sequencer refuses it after so long a
    // silence.
    if job.patience_s().is_some() {
        steps::decide(objects, id, steps::Fate::Removed)?;
    }
    Ok(true)
}

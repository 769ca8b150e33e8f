//! Loads of other processes into the same graph: the workers of a fleet.
//!
//! Each process has a queue of its own. They share the jobs' files: each tells of all, writes its own again and again while they
//! are not over, and takes one that was not written for long for one whose process is gone. What became of that load the
//! sequencer knows.
//!
//! What must never happen: a segment that is removed while somebody may replay the record that names it.

use super::job::{Job, LoadState};
use super::{JOBS, SEGMENTS, Shared, job_path, no_such};
use crate::Error;
use crate::backend::LoadOutcome;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_platform::Objects;
use tidegraph_types::{ErrorCode, Version};

/// How often the file of a job that is not over is written where others look at it.
const WRITE_EVERY: Duration = Duration::from_secs(10);
/// A job that is not over and was not written for so long has lost its process.
const LOST_AFTER_S: i64 = 60;

/// What a load that failed has left stays so long: a process that was only paused could still commit it.
const LEFT_FOR: SignedDuration = SignedDuration::from_hours(24);

impl Shared {
    /// A job as its file has it.
    pub(super) fn read(&self, id: &str) -> Result<Arc<Job>, Error> {
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(no_such(id));
        }
        let bytes = self.objects.get(&job_path(id)).map_err(|error| match error.code() {
            ErrorCode::NotFound => no_such(id),
            _ => error.into(),
        })?;
        let job = Job::parse(&bytes).map_err(|error| {
            Error::new(ErrorCode::Corrupt, format!("the job of load {id} is damaged: {error}"))
        })?;
        let job = Arc::new(job);
        self.settle_elsewhere(&job);
        let mut state = self.state.lock();
        match state.jobs.iter_mut().find(|known| known.id() == id) {
            // It was submitted here meanwhile.
            Some(known) if known.elsewhere().is_none() => return Ok(known.clone()),
            Some(known) => *known = job.clone(),
            None => {
                let at = state.jobs.partition_point(|other| other.number() <= job.number());
                state.jobs.insert(at, job.clone());
            }
        }
        Ok(job)
    }

    /// Reads the jobs of others that are not known yet.
    pub(super) fn look_for_others(&self) {
        let listed = match self.objects.list(&format!("{JOBS}/")) {
            Ok(listed) => listed,
            Err(error) => {
                tracing::warn!(%error, "the loads of other workers cannot be listed");
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
                tracing::warn!(load = id, %error, "a load of another worker cannot be told of");
            }
        }
    }

    /// Gives a job of another process its end, if that one is gone.
    pub(super) fn settle_elsewhere(&self, job: &Job) {
        let now = self.clock.wall();
        let patience = job.patience_s().unwrap_or(LOST_AFTER_S);
        let lost = job.elsewhere().is_some_and(|written| now.as_second() - written.as_second() > patience);
        if job.is_settled() || !(lost || job.state().is_final()) {
            return;
        }
        let gone = "the worker that had it is gone";
        match self.backend.load_outcome(job.id(), job.not_at()) {
            Ok(LoadOutcome::Visible(version)) => {
                job.committed(version);
                job.end(LoadState::Completed, None, now);
            }
            Ok(LoadOutcome::NotVisible) => job.end(LoadState::Failed, Some(gone.into()), now),
            Ok(LoadOutcome::Unknown) if !job.state().is_final() => {
                job.end_open(format!("{gone}, and whether the load is visible is not known"), now);
            }
            Ok(LoadOutcome::Unknown) => return,
            Err(error) => {
                tracing::debug!(load = job.id(), %error, "what became of a load cannot be asked now");
                return;
            }
        }
        self.save(job);
    }

    /// Writes the jobs of this process that are not over, so that others see that they are not lost.
    pub(super) fn write_again(&self) {
        let mut written = self.clock.now();
        loop {
            let own: Vec<Arc<Job>> = {
                let mut state = self.state.lock();
                // Whoever sets it takes the lock before he wakes others.
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

/// Removes the segments of loads that are visible since a version or an earlier one: no checkpoint is older any more that
/// somebody may go on from; and of those that failed a day ago, which a process that is gone may have left. For a graph that several
/// processes load into.
pub fn sweep_below(objects: &Objects, version: Version, now: Timestamp) -> Result<(), Error> {
    let long_ago = now.checked_sub(LEFT_FOR).unwrap_or(Timestamp::MIN);
    let mut of_load: Option<(String, bool)> = None;
    for object in objects.list(&format!("{SEGMENTS}/"))? {
        let id = object.path.split('/').nth(1).unwrap_or_default();
        let is_needless = match &of_load {
            Some((known, is_needless)) if known == id => *is_needless,
            _ => {
                let is_needless = match objects.get(&job_path(id)) {
                    Ok(bytes) => Job::parse(&bytes)
                        .is_ok_and(|job| job.has_segments_below(version) || job.has_failed_by(long_ago)),
                    Err(_) => false,
                };
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

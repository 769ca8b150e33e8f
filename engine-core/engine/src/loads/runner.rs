//! Runs one job.

use super::job::{DoneFile, Job, LoadState};
use super::target::GraphTarget;
use super::turn::{LOST_BEFORE_TURN, Turn, turn_after};
use super::{KEPT_ERRORS, Shared};
use crate::backend::{LoadCommitError, LoadHold, ReadOptions};
use crate::{Error, Retry};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_apl::At;
use tidegraph_load::Options;
use tidegraph_load::run::{self, Config, Control, Outcome, Progress, Status, VertexIds};
use tidegraph_load::source::{Access, Source};
use tidegraph_txn::{LoadCommit, NewVertices};
use tidegraph_types::{Epoch, ErrorCode, Gui, Key, LoadChange, Str, Version};

/// How often a load is checked again after a conflict with a transaction.
const MAX_CHECKS: u32 = 8;

struct Watched<'a> {
    shared: &'a Shared,
    job: &'a Job,
    hold: &'a dyn LoadHold,
}

impl Control for Watched<'_> {
    fn cancelled(&self) -> bool {
        self.job.is_cancelled() || self.shared.stopping.load(Ordering::Relaxed)
    }

    fn progress(&self, progress: &Progress) {
        self.job.progress(progress);
        self.hold.go_on();
    }
}

/// What a load has met, for the check against what transactions created and changed meanwhile (IDS-1).
#[derive(Debug)]
pub(super) struct Loaded(pub VertexIds);

impl NewVertices for Loaded {
    fn collision(&self, made: &mut dyn Iterator<Item = (Version, Gui, &Str)>) -> Option<Version> {
        for (version, gui, id) in made {
            if self.0.collides(gui, id) {
                return Some(version);
            }
        }
        None
    }

    fn depends_on(&self, changes: &mut dyn Iterator<Item = (Version, LoadChange)>) -> Option<Version> {
        let concerns = |change| match change {
            LoadChange::Deleted(gui) => self.0.has_vertex(gui),
            LoadChange::EdgeId(hash) => self.0.has_edge_id(hash),
            LoadChange::Any => true,
        };
        for (version, change) in changes {
            if concerns(change) {
                return Some(version);
            }
        }
        None
    }
}

impl Shared {
    /// Runs a job to its end and saves the outcome.
    pub(super) fn run(&self, job: &Job) {
        let now = || self.clock.wall();
        if let Some(id) = self.unsatisfied(job) {
            let message = format!("load {id}, which this one depends on, did not complete");
            job.end(LoadState::DependencyNotSatisfied, Some(message), now());
            self.save(job);
            return;
        }
        job.begin(now());
        self.save(job);
        tracing::info!(load = job.id(), source = %job.spec().sources.join(","), "a load begins");
        let (state, message) = match self.load(job) {
            Ok(Status::Completed) => (LoadState::Completed, job.skipped()),
            Ok(Status::Failed) => {
                (LoadState::Failed, Some("a row was refused and failOnError is TRUE".to_owned()))
            }
            Err(LoadCommitError { error, open: true }) => {
                let message = format!("it is unknown whether the load is visible: {error}");
                tracing::error!(load = job.id(), message, "a load ended; its segments stay");
                job.end_open(message, now());
                self.save(job);
                return;
            }
            Err(_) if job.is_cancelled() && !self.stopping.load(Ordering::Relaxed) => {
                (LoadState::Cancelled, None)
            }
            Err(LoadCommitError { error, .. }) => {
                let state = match error.code() {
                    ErrorCode::AccessDenied => LoadState::AccessDenied,
                    ErrorCode::NotFound => LoadState::ReadError,
                    _ => LoadState::Failed,
                };
                (state, Some(error.to_string()))
            }
        };
        tracing::info!(load = job.id(), state = state.as_str(), message, "a load ended");
        if state != LoadState::Completed {
            self.remove_segments(job.id());
        }
        job.end(state, message, now());
        self.save(job);
    }

    fn unsatisfied<'a>(&self, job: &'a Job) -> Option<&'a str> {
        let is_completed = |id: &str| self.find(id).is_ok_and(|other| other.state() == LoadState::Completed);
        job.spec().dependencies.iter().map(String::as_str).find(|id| !is_completed(id))
    }

    fn remove_segments(&self, id: &str) {
        let removed = self
            .objects
            .list(&format!("{}/{id}/", super::SEGMENTS))
            .and_then(|objects| objects.iter().try_for_each(|object| self.objects.delete(&object.path)));
        if let Err(error) = removed {
            tracing::warn!(load = id, %error, "segments of a failed load stay until the next start");
        }
    }

    fn load(&self, job: &Job) -> Result<Status, LoadCommitError> {
        let spec = job.spec();
        let cancelled = || job.is_cancelled() || self.stopping.load(Ordering::Relaxed);
        let access = Access { allowed: job.allowed(), region: spec.region.as_deref(), cancelled: &cancelled };
        let source = Source::open_all(&spec.sources, &access)?;
        let options = Options {
            allow_empty_strings: spec.allow_empty_strings,
            user_provided_edge_ids: spec.user_provided_edge_ids,
            ..Options::default()
        };
        let dialect = match spec.dialect {
            Some(dialect) => dialect,
            None => source.detect(&options)?,
        };
        let mut config = Config::new(job.id(), dialect);
        config.options = options;
        config.fail_on_error = spec.fail_on_error;
        config.update_single_cardinality_properties = spec.update_single_cardinality_properties;
        config.edge_only = spec.edge_only_load;
        config.parallelism = spec.parallelism;
        config.done = job.done_before();
        config.max_errors = KEPT_ERRORS;
        let (mut checks, mut longest) = (0, Duration::ZERO);
        let hold = self.backend.begin_load(job.id())?;
        let mut turn: Option<Turn<'_>> = None;
        loop {
            self.backend.check_room()?;
            let began = self.clock.now();
            // Taken after `begin_load`, so that no transaction in between is missed.
            let snapshot = self.backend.snapshot(turn.as_ref().map(|turn| turn.since))?;
            job.set_not_at(snapshot.at.version);
            let target = GraphTarget::new(&*self.backend, &*self.clock, snapshot.at);
            config.attempt = checks;
            let outcome = run::run(
                &config,
                &source,
                &target,
                &self.objects,
                &Watched { shared: self, job, hold: &*hold },
            )?;
            job.outcome(&outcome);
            if outcome.status == Status::Failed {
                return Ok(Status::Failed);
            }
            if job.is_cancelled() {
                return Err(Error::new(ErrorCode::Cancelled, "the load was cancelled").into());
            }
            let has_segments = !outcome.segments.is_empty();
            let read_keys = if has_segments { self.read_keys(snapshot.at.version)? } else { Vec::new() };
            // In case this attempt ends with a conflict: the next one meets about the same.
            let footprint = (checks + 1 >= LOST_BEFORE_TURN).then(|| outcome.vertex_ids.footprint());
            match self.commit(job, outcome, snapshot.at.version, read_keys.clone(), &*hold) {
                Err(LoadCommitError { error, open: false })
                    if error.retry() == Retry::NewerVersion && checks < MAX_CHECKS =>
                {
                    checks += 1;
                    tracing::info!(
                        load = job.id(),
                        checks,
                        "a load conflicts with a transaction and is checked again"
                    );
                    self.remove_segments(job.id());
                    longest = longest.max(self.clock.now().saturating_sub(began));
                    // Commits that waited for the last turn go on before the next one.
                    drop(turn.take());
                    turn = footprint.and_then(|footprint| {
                        Turn::begin(&*self.backend, job.id(), turn_after(footprint, &read_keys, longest))
                    });
                }
                Err(error) => return Err(error),
                Ok(()) => return Ok(Status::Completed),
            }
        }
    }

    /// Returns the keys of the constraints that a load checks; a change of constraints conflicts.
    fn read_keys(&self, read_version: Version) -> Result<Vec<Key>, Error> {
        let at = At { version: read_version, epoch: Epoch::default() };
        let unique = self.backend.reader(ReadOptions::default()).unique_keys(at)?.into_iter();
        let unique = unique.map(|(label, key)| Key::any_unique(label, key));
        Ok(std::iter::once(Key::constraints()).chain(unique).collect())
    }

    fn commit(
        &self,
        job: &Job,
        outcome: Outcome,
        read_version: Version,
        read_keys: Vec<Key>,
        hold: &dyn LoadHold,
    ) -> Result<(), LoadCommitError> {
        let done = outcome.done().map(DoneFile::of).collect();
        self.backend.check_room()?;
        #[cfg(test)]
        if let Some(act) = &mut *self.before_commit.lock() {
            act();
        }
        let _together = self.commit.lock();
        if !outcome.segments.is_empty() {
            let segments = outcome.segments.iter().map(|s| s.object.clone()).collect();
            let vertices = Box::new(Loaded(outcome.vertex_ids));
            let load_id = job.id().to_owned();
            let commit = LoadCommit {
                load_id,
                segments,
                read_version,
                read_keys,
                compared: read_version,
                changes_compared: read_version,
                first_asked: None,
                vertices,
            };
            let go_on = || !job.is_cancelled() && !self.stopping.load(Ordering::Relaxed);
            job.committed(hold.commit(commit, &go_on)?);
        }
        job.done(done);
        job.end(LoadState::Completed, job.skipped(), self.clock.wall());
        self.save(job);
        Ok(())
    }
}

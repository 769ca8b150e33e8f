//! A load in steps, which several processes do in sequence or in parallel. They share the job's file, on which any
//! worker of the fleet reports, and the results of earlier steps in the object store.
//!
//! Flow: [`Ingest::begin`] plans → [`Ingest::work`] does tasks → [`Ingest::next`] returns
//! the next step, until that is [`Ingest::commit`]. A caller that missed an answer may
//! repeat the call. [`Ingest::abandon`] ends a load after a step has failed permanently.
//!
//! A load outlives each of these processes, so no process records the vertices that transactions create
//! meanwhile. The commit checks them itself: at a version from which on the sequencer records created
//! vertices, no vertex of the graph may have a GUI that the load gives to another id (IDS-1). The sequencer knows which
//! vertices were deleted and which edge ids were taken since the load read. If one of them concerns the load, or if the
//! constraints have changed, the load goes over its rows again in another *round*. After three such rounds each further
//! one has a turn, which begins before the round takes its version: commits that concern the load wait until it is
//! committed, or until the time limit of the turn.
//!
//! What must never happen: segments are removed while a process may commit them; a
//! visible load is reported as failed.

use super::job::{DoneFile, Job, LoadState};
use super::target::GraphTarget;
use super::turn::{self, LOST_BEFORE_TURN, turn_after};
use super::{Allowed, KEPT_ERRORS, LoadSpec, SEGMENTS, job_path};
use crate::backend::{Backend, LoadCommitError, LoadOutcome, ReadOptions};
use crate::{Error, Retry};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{At, VertexRead, VertexRows};
use tidegraph_load::Options;
use tidegraph_load::run::steps::{FOLDER, Next, Request, Round, Stage, Steps};
use tidegraph_load::run::{Outcome, Progress, Status, VertexIds};
use tidegraph_platform::{Clock, Objects, Random};
use tidegraph_txn::LoadCommit;
use tidegraph_types::{ErrorCode, Gui, Key, LoadTurn, Version};

/// Maximum number of rounds of a load.
const MAX_ROUNDS: u32 = 8;
/// A job without a step for this time is lost; a state machine needs less time for one step.
const PATIENCE_S: i64 = 24 * 3600;
/// Vertices that are compared at once.
const COMPARED: usize = 8_192;

/// Does the steps of loads.
pub struct Ingest {
    backend: Arc<dyn Backend>,
    objects: Arc<Objects>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// Approximate bytes of text that one task reads, and that go to one group of partitions.
    task_bytes: u64,
    allowed: Allowed,
}

/// The next step of a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ahead {
    /// Do these tasks of a stage.
    Work {
        /// The stage.
        stage: Stage,
        /// The round.
        round: u32,
        /// Numbers of the tasks.
        tasks: Vec<u32>,
    },
    /// Commit the load.
    Commit {
        /// The round.
        round: u32,
    },
    /// The load has ended.
    Ended {
        /// Its final state.
        state: LoadState,
        /// Path of its report in the object store.
        report: String,
    },
}

impl Ingest {
    /// Makes the steps of loads into a graph. `objects` holds segments and jobs.
    #[must_use]
    pub fn new(
        backend: Arc<dyn Backend>,
        objects: Arc<Objects>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        task_bytes: u64,
    ) -> Self {
        Self { backend, objects, clock, random, task_bytes, allowed: Allowed::everything() }
    }

    /// Sets what loads may read. Before that it is whatever the process can.
    #[must_use]
    pub fn within(mut self, allowed: Allowed) -> Self {
        self.allowed = allowed;
        self
    }

    /// Plans a load of `files` below the source, or of all files there.
    ///
    /// # Errors
    ///
    /// `InvalidParameter` if the request has not exactly one source; `Unavailable` or `Internal` if the step can be
    /// repeated. Other errors of the source end the load, and are in its report.
    pub fn begin(&self, load_id: &str, spec: LoadSpec, files: Option<Vec<String>>) -> Result<Ahead, Error> {
        let [source] = &spec.sources[..] else {
            return Err(Error::new(ErrorCode::InvalidParameter, "a load in steps needs exactly one source"));
        };
        let request = Request {
            allowed: self.allowed.clone(),
            region: spec.region.clone(),
            files: files.map(|files| files.into_iter().map(|file| (file, None)).collect()),
            dialect: spec.dialect,
            options: Options {
                allow_empty_strings: spec.allow_empty_strings,
                user_provided_edge_ids: spec.user_provided_edge_ids,
                ..Options::default()
            },
            fail_on_error: spec.fail_on_error,
            update_single_cardinality_properties: spec.update_single_cardinality_properties,
            chunk_bytes: self.task_bytes,
            group_bytes: self.task_bytes,
            ..Request::new(source.clone())
        };
        let job = match self.job(load_id)? {
            Some(job) if job.state().is_final() => return Ok(ended(&job)),
            Some(job) => job,
            None => {
                let now = self.clock.wall();
                // A time, so that it is greater than the numbers of all earlier jobs of all processes.
                let number = u64::try_from(now.as_millisecond()).unwrap_or_default();
                let mut job = Job::new(load_id.to_owned(), number, spec, None, None, false, now);
                job.set_patience(PATIENCE_S);
                job.begin(now);
                self.save(&job)?;
                tracing::info!(load = load_id, source = %request.source, "a load begins");
                job
            }
        };
        self.backend.check_room()?;
        let round = self.look(None)?;
        let target = self.target_at(Version(round.version));
        let steps = match Steps::begin(load_id, &request, &target, &self.objects) {
            Ok(steps) => steps,
            Err(error) if may_pass(error.code()) => return Err(error.into()),
            Err(error) => return self.fail(&job, error.into()),
        };
        let round = steps.begin_round(0, &round)?;
        job.set_not_at(Version(round.version));
        job.progress(&Progress { bytes_total: steps.plan().bytes(), ..Progress::default() });
        self.save(&job)?;
        self.ahead(&steps, &job, 0, steps.first())
    }

    /// Does a task; returns the numbers of its rows and of the refused ones.
    ///
    /// # Errors
    ///
    /// The errors of reading, of the graph and of the object store. `Unavailable` and `Internal` can be repeated.
    pub fn work(&self, load_id: &str, stage: Stage, round: u32, task: u32) -> Result<(u64, u64), Error> {
        let begun = Steps::open(load_id, &self.target_at(Version(0)), &self.objects)?.round(round)?;
        // At the newest version, because at an older one the graph may be empty. Never before the round's own: changes up
        // to that one are not compared when the load is committed.
        let target = self.target_at(self.backend.snapshot(Some(Version(begun.version)))?.at.version);
        let steps = Steps::open(load_id, &target, &self.objects)?;
        let attempt = format!("{:016x}", self.random.next_u64());
        let done = steps.work(stage, round, task, &attempt)?;
        tracing::debug!(load = load_id, ?stage, round, task, rows = done.rows(), "a task is done");
        Ok((done.rows(), done.rejected))
    }

    /// Returns the next step after all tasks of a stage.
    ///
    /// # Errors
    ///
    /// `BulkLoadIdNotFound` for an unknown load, and the errors of the object store.
    pub fn next(&self, load_id: &str, stage: Stage, round: u32) -> Result<Ahead, Error> {
        let job = self.known(load_id)?;
        if job.state().is_final() {
            return Ok(ended(&job));
        }
        let target = self.target_at(Version(0));
        let steps = Steps::open(load_id, &target, &self.objects)?;
        let next = steps.next(stage, round)?;
        let counts = steps.outcome(round, Status::Completed)?.counts;
        job.progress(&Progress {
            bytes_read: steps.plan().bytes(),
            bytes_total: steps.plan().bytes(),
            rows: counts.rows,
            records: counts.total_records,
            ..Progress::default()
        });
        self.save(&job)?;
        self.ahead(&steps, &job, round, next)
    }

    /// Makes a load visible, or returns the first step of another round.
    ///
    /// # Errors
    ///
    /// `BulkLoadIdNotFound` for an unknown load; `Unavailable` or `Internal` if the call can be repeated. Other errors
    /// end the load, and are in its report.
    pub fn commit(&self, load_id: &str, round: u32) -> Result<Ahead, Error> {
        let job = self.known(load_id)?;
        if job.state().is_final() {
            return Ok(ended(&job));
        }
        // An earlier attempt whose answer was lost may have committed the load.
        if let LoadOutcome::Visible(version) = self.backend.load_outcome(load_id, job.not_at())? {
            let target = self.target_at(version);
            let steps = Steps::open(load_id, &target, &self.objects)?;
            let outcome = steps.outcome(round, Status::Completed)?;
            return self.completed(&steps, &job, &outcome, Some(version));
        }
        self.backend.check_room()?;
        let hold = self.backend.begin_load(load_id)?;
        // Read after `begin_load`, so that no transaction in between is missed.
        let now = self.look(None)?;
        let at = Version(now.version);
        let target = self.target_at(at);
        let steps = Steps::open(load_id, &target, &self.objects)?;
        let begun = steps.round(round)?;
        let outcome = steps.outcome(round, Status::Completed)?;
        if outcome.segments.is_empty() {
            return self.completed(&steps, &job, &outcome, None);
        }
        let vertex_ids = steps.vertex_ids(round)?;
        let mut read_keys = vec![Key::constraints()];
        read_keys.extend(now.unique.iter().map(|(label, key)| Key::any_unique(*label, *key)));
        // In case this round ends with a conflict: the next one meets about the same.
        let turn = (round + 1 >= LOST_BEFORE_TURN)
            .then(|| turn_after(vertex_ids.footprint(), &read_keys, self.time_of_rounds(&job)));
        if now.unique != begun.unique || (now.version != begun.version && self.collides(&vertex_ids, at)?) {
            drop(hold);
            return self.again(&steps, &job, round, turn);
        }
        let commit = LoadCommit {
            load_id: load_id.to_owned(),
            segments: outcome.segments.iter().map(|segment| segment.object.clone()).collect(),
            read_version: Version(begun.version),
            read_keys,
            compared: at,
            changes_compared: Version(begun.version),
            first_asked: None,
            vertices: Box::new(super::runner::Loaded(vertex_ids)),
        };
        if self.fate(load_id, Fate::Commit)? == Fate::Removed {
            let message = "another process ended the load and removes its segments";
            return self.fail(&job, Error::new(ErrorCode::Cancelled, message));
        }
        let committed = hold.commit(commit, &|| true);
        drop(hold);
        match committed {
            Ok(version) => self.completed(&steps, &job, &outcome, Some(version)),
            Err(LoadCommitError { error, open: false }) if error.retry() == Retry::NewerVersion => {
                self.again(&steps, &job, round, turn)
            }
            Err(LoadCommitError { error, open: true }) => {
                let message = format!("it is unknown whether the load is visible: {error}");
                tracing::error!(load = load_id, message, "a load ended; its segments stay");
                job.outcome(&outcome);
                job.end_open(message, self.clock.wall());
                self.over(&job)
            }
            Err(LoadCommitError { error, .. }) if may_pass(error.code()) => Err(error),
            Err(LoadCommitError { error, .. }) => self.fail(&job, error),
        }
    }

    /// Ends a load after one of its steps failed permanently.
    ///
    /// # Errors
    ///
    /// `BulkLoadIdNotFound` for an unknown load, and the errors of the sequencer and of the object store.
    pub fn abandon(&self, load_id: &str, error: &str, cause: &str) -> Result<Ahead, Error> {
        let job = self.known(load_id)?;
        if job.state().is_final() {
            return Ok(ended(&job));
        }
        // The request of a process that is gone may still be under way. The load begins again, so that it commits nothing.
        drop(self.backend.begin_load(load_id)?);
        if let LoadOutcome::Visible(version) = self.backend.load_outcome(load_id, job.not_at())? {
            let target = self.target_at(version);
            let steps = Steps::open(load_id, &target, &self.objects)?;
            let outcome = steps.outcome(steps.last_round()?, Status::Completed)?;
            return self.completed(&steps, &job, &outcome, Some(version));
        }
        let mut cause = cause.to_owned();
        if let Some((at, _)) = cause.char_indices().nth(2_000) {
            cause.truncate(at);
        }
        self.fail(&job, Error::new(ErrorCode::Internal, format!("{error}: {cause}")))
    }

    /// Returns the time of all rounds of a load so far, which is no less than that of the longest one.
    fn time_of_rounds(&self, job: &Job) -> Duration {
        Duration::from_secs(job.status(self.clock.wall()).overall.seconds_spent)
    }

    /// Returns the newest version with its constraints, for a new round.
    fn look(&self, at_least: Option<Version>) -> Result<Round, Error> {
        let at = self.backend.snapshot(at_least)?.at;
        let mut unique = self.backend.reader(ReadOptions::default()).unique_keys(at)?;
        unique.sort_unstable();
        Ok(Round { version: at.version.0, unique })
    }

    fn target_at(&self, version: Version) -> GraphTarget<'_> {
        let at = At { version, epoch: self.backend.status().epoch };
        GraphTarget::new(&*self.backend, &*self.clock, at)
    }

    /// Whether the graph has a vertex under a GUI that the load gives to another id.
    fn collides(&self, vertex_ids: &VertexIds, at: Version) -> Result<bool, Error> {
        let target = self.target_at(at);
        let read = VertexRead { ids: true, ..VertexRead::default() };
        let mut guis = vertex_ids.guis();
        loop {
            let some: Vec<Gui> = guis.by_ref().take(COMPARED).collect();
            if some.is_empty() {
                return Ok(false);
            }
            let rows: VertexRows = target.vertex_rows(&read, &some)?;
            let mut found = some.iter().zip(&rows.present).zip(&rows.ids);
            if found.any(|((gui, present), id)| *present && vertex_ids.collides(*gui, id)) {
                return Ok(true);
            }
        }
    }

    fn again(
        &self,
        steps: &Steps<'_>,
        job: &Job,
        round: u32,
        turn: Option<LoadTurn>,
    ) -> Result<Ahead, Error> {
        let next = round + 1;
        if next >= MAX_ROUNDS {
            let message = format!("the load conflicted with transactions in {MAX_ROUNDS} rounds: load again");
            return self.fail(job, Error::new(ErrorCode::ConcurrentModification, message));
        }
        tracing::info!(
            load = job.id(),
            round,
            "a load conflicts with a transaction and begins another round"
        );
        let since = turn.and_then(|turn| turn::begin(&*self.backend, job.id(), turn));
        steps.begin_round(next, &self.look(since)?)?;
        self.ahead(steps, job, next, steps.again(next)?)
    }

    fn ahead(&self, steps: &Steps<'_>, job: &Job, round: u32, next: Next) -> Result<Ahead, Error> {
        match next {
            Next::Work(stage, tasks) => Ok(Ahead::Work { stage, round, tasks }),
            Next::Commit => Ok(Ahead::Commit { round }),
            Next::Failed => {
                job.outcome(&steps.outcome(round, Status::Failed)?);
                let message = "a row was refused and failOnError is TRUE";
                self.fail(job, Error::new(ErrorCode::BadRequest, message))
            }
        }
    }

    fn completed(
        &self,
        steps: &Steps<'_>,
        job: &Job,
        outcome: &Outcome,
        version: Option<Version>,
    ) -> Result<Ahead, Error> {
        job.outcome(outcome);
        if let Some(version) = version {
            job.committed(version);
        }
        job.done(outcome.done().map(DoneFile::of).collect());
        job.end(LoadState::Completed, None, self.clock.wall());
        let ended = self.over(job)?;
        if let Err(error) = steps.clear() {
            tracing::warn!(load = job.id(), %error, "cannot remove the files of a load's steps: they stay for some days");
        }
        Ok(ended)
    }

    fn fail(&self, job: &Job, error: Error) -> Result<Ahead, Error> {
        let state = match error.code() {
            ErrorCode::AccessDenied => LoadState::AccessDenied,
            ErrorCode::NotFound => LoadState::ReadError,
            _ => LoadState::Failed,
        };
        // After an attempt to commit, the segments stay for a day: another process may still commit them.
        if self.fate(job.id(), Fate::Removed)? == Fate::Removed {
            let fate = fate_path(job.id());
            for folder in [SEGMENTS, FOLDER] {
                for object in self.objects.list(&format!("{folder}/{}/", job.id()))? {
                    // This one stays, for a commit that begins later.
                    if object.path != fate {
                        self.objects.delete(&object.path)?;
                    }
                }
            }
        }
        job.end(state, Some(error.to_string()), self.clock.wall());
        self.over(job)
    }

    fn fate(&self, load_id: &str, wanted: Fate) -> Result<Fate, Error> {
        decide(&self.objects, load_id, wanted)
    }

    /// Writes the report and the job of a load that has ended.
    fn over(&self, job: &Job) -> Result<Ahead, Error> {
        self.backend.end_turn(job.id());
        let status = job.status(self.clock.wall());
        tracing::info!(
            load = job.id(),
            state = job.state().as_str(),
            message = status.overall.message,
            "a load ended"
        );
        let (overall, counts) = (&status.overall, &status.overall.counts);
        let report = json!({
            "loadId": job.id(),
            "status": overall.state.as_str(),
            "source": overall.full_uri,
            "version": status.version,
            "totalRecords": counts.total_records,
            "totalDuplicates": counts.total_duplicates,
            "parsingErrors": counts.parsing_errors,
            "datatypeMismatchErrors": counts.datatype_mismatch_errors,
            "insertErrors": counts.insert_errors,
            "startTime": overall.start_unix_s,
            "totalTimeSpent": overall.seconds_spent,
            "message": overall.message,
            "errorLogs": status.errors[..status.errors.len().min(KEPT_ERRORS)],
        });
        self.objects.put(&report_path(job.id()), format!("{report:#}\n").into_bytes())?;
        // The job comes last: a reader that finds it ended must find the report.
        self.save(job)?;
        Ok(ended(job))
    }

    fn known(&self, load_id: &str) -> Result<Job, Error> {
        self.job(load_id)?.ok_or_else(|| super::no_such(load_id))
    }

    fn job(&self, load_id: &str) -> Result<Option<Job>, Error> {
        let bytes = match self.objects.get(&job_path(load_id)) {
            Ok(bytes) => bytes,
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Job::parse(&bytes).map(Some).map_err(|error| {
            let message = format!("the job of load {load_id} is damaged: {error}");
            Error::new(ErrorCode::Corrupt, message).with_source(error)
        })
    }

    fn save(&self, job: &Job) -> Result<(), Error> {
        Ok(self.objects.put(&job_path(job.id()), job.to_bytes(self.clock.wall())?)?)
    }
}

impl std::fmt::Debug for Ingest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ingest").finish_non_exhaustive()
    }
}

/// Whether another attempt may succeed.
fn may_pass(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::Unavailable | ErrorCode::Internal)
}

fn ended(job: &Job) -> Ahead {
    Ahead::Ended { state: job.state(), report: report_path(job.id()) }
}

fn report_path(load_id: &str) -> String {
    format!("{FOLDER}/{load_id}/report.json")
}

/// What happens to the segments of a load. Decided once, see [`decide`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// They may be committed, so they stay.
    Commit,
    /// They are removed, so they are never committed.
    Removed,
}

/// Decides the fate of a load's segments, unless another process has decided it, and returns the decision.
///
/// The first process that creates the object decides. So a load is never committed without its segments, whatever
/// processes do at the same time.
pub(super) fn decide(objects: &Objects, load_id: &str, wanted: Fate) -> Result<Fate, Error> {
    let path = fate_path(load_id);
    if objects.put_new(&path, wanted.word())? {
        return Ok(wanted);
    }
    // An earlier release wrote an empty object before a commit.
    let decided = objects.get(&path)?;
    Ok(if *decided == *Fate::Removed.word().as_bytes() { Fate::Removed } else { Fate::Commit })
}

impl Fate {
    /// Returns the content of the object.
    fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Removed => "removed",
        }
    }
}

/// Path of the object that holds the fate of the load's segments.
fn fate_path(load_id: &str) -> String {
    format!("{FOLDER}/{load_id}/asked")
}

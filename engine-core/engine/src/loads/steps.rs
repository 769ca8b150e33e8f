//! A load whose steps other processes do, one after the other or beside each other: what holds them together is the job's file, which
//! any worker of the fleet tells of, and what the steps left in the object store.
//!
//! Flow: [`Ingest::begin`] plans → [`Ingest::work`] does tasks → [`Ingest::next`] says what comes next, until that is
//! [`Ingest::commit`]. Each may be asked again by somebody who did not hear the answer. [`Ingest::abandon`] ends a load of which a
//! step failed for good.
//!
//! A load takes longer than any of these processes lives, so nobody notes for it which vertices transactions make. The commit
//! looks itself: at a version from which on the sequencer notes, no vertex of the graph may have a GUI that the load gives to another
//! id. If there is one, or what is unique has changed, the load goes over its rows again in another *round*.
//!
//! What must never happen: segments that are removed while somebody may have them committed; a load that is told to have
//! failed and is visible.

use super::job::{Job, LoadState};
use super::target::GraphTarget;
use super::{KEPT_ERRORS, LoadSpec, SEGMENTS, job_path};
use crate::Error;
use crate::backend::{Asking, Backend, LoadOutcome, Uncommitted};
use serde_json::json;
use std::sync::Arc;
use tidegraph_apl::{At, VertexRead, VertexRows};
use tidegraph_load::Options;
use tidegraph_load::run::steps::{FOLDER, Next, Request, Round, Stage, Steps};
use tidegraph_load::run::{Outcome, Progress, Status, VertexIds};
use tidegraph_platform::{Clock, Objects, Random};
use tidegraph_txn::LoadCommit;
use tidegraph_types::{ErrorCode, Gui, Key, Version};

/// How often a load goes over its rows again.
const MOST_ROUNDS: u32 = 8;
/// A job whose steps say nothing for so long is lost: longer than a state machine may take over one.
const PATIENCE_S: i64 = 24 * 3600;
/// How many vertices are compared at once.
const COMPARED: usize = 8_192;

/// Carries out steps.
pub struct Ingest {
    backend: Arc<dyn Backend>,
    objects: Arc<Objects>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// About how many bytes of text one task reads, and go to one group of partitions.
    task_bytes: u64,
}

/// What comes next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ahead {
    /// These tasks of a stage.
    Work {
        /// The stage.
        stage: Stage,
        /// Which try to commit they are for.
        round: u32,
        /// Numbers of the tasks.
        tasks: Vec<u32>,
    },
    /// The load is to be committed.
    Commit {
        /// Which try it is.
        round: u32,
    },
    /// The load is over.
    Ended {
        /// How.
        state: LoadState,
        /// Where its report is.
        report: String,
    },
}

impl Ingest {
    /// Steps of loads into a graph, whose segments and jobs are in `objects`.
    #[must_use]
    pub fn new(
        backend: Arc<dyn Backend>,
        objects: Arc<Objects>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        task_bytes: u64,
    ) -> Self {
        Self { backend, objects, clock, random, task_bytes }
    }

    /// Plans a load. `files`: those below the source, or all.
    pub fn begin(&self, load_id: &str, spec: LoadSpec, files: Option<Vec<String>>) -> Result<Ahead, Error> {
        let [source] = &spec.sources[..] else {
            return Err(Error::new(ErrorCode::InvalidParameter, "a load in steps has one source"));
        };
        let request = Request {
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
                // Later than all that were submitted before, wherever that was.
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
        let round = self.look()?;
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

    /// Does a task; how many rows it had, and how many it refused.
    pub fn work(&self, load_id: &str, stage: Stage, round: u32, task: u32) -> Result<(u64, u64), Error> {
        // The newest version: at an older one the graph may have been empty.
        let target = self.target_at(self.backend.snapshot(None)?.at.version);
        let steps = Steps::open(load_id, &target, &self.objects)?;
        let attempt = format!("{:016x}", self.random.next_u64());
        let done = steps.work(stage, round, task, &attempt)?;
        tracing::debug!(load = load_id, ?stage, round, task, rows = done.rows(), "a task is done");
        Ok((done.rows(), done.rejected))
    }

    /// All tasks of a stage are done.
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

    /// Makes a load visible, or says that it has to go over its rows again.
    pub fn commit(&self, load_id: &str, round: u32) -> Result<Ahead, Error> {
        let job = self.known(load_id)?;
        if job.state().is_final() {
            return Ok(ended(&job));
        }
        // An attempt of which nobody heard may have done it.
        if let LoadOutcome::Visible(version) = self.backend.load_outcome(load_id, job.not_at())? {
            let target = self.target_at(version);
            let steps = Steps::open(load_id, &target, &self.objects)?;
            let outcome = steps.outcome(round, Status::Completed)?;
            return self.completed(&steps, &job, &outcome, Some(version));
        }
        self.backend.check_room()?;
        let hold = self.backend.begin_load(load_id)?;
        // After the watch began, so that nothing in between is missed.
        let now = self.look()?;
        let at = Version(now.version);
        let target = self.target_at(at);
        let steps = Steps::open(load_id, &target, &self.objects)?;
        let begun = steps.round(round)?;
        let outcome = steps.outcome(round, Status::Completed)?;
        if outcome.segments.is_empty() {
            return self.completed(&steps, &job, &outcome, None);
        }
        let vertex_ids = steps.vertex_ids(round)?;
        if now.unique != begun.unique || (now.version != begun.version && self.collides(&vertex_ids, at)?) {
            drop(hold);
            return self.again(&steps, &job, round);
        }
        let mut read_keys = vec![Key::constraints()];
        read_keys.extend(now.unique.iter().map(|(label, key)| Key::any_unique(*label, *key)));
        let commit = LoadCommit {
            load_id: load_id.to_owned(),
            segments: outcome.segments.iter().map(|segment| segment.object.clone()).collect(),
            read_version: Version(begun.version),
            read_keys,
            compared: at,
            first_asked: None,
            vertices: Box::new(super::runner::Loaded(vertex_ids)),
        };
        self.objects.put(&asked_path(load_id), Vec::new())?;
        match hold.commit(commit, &|| true) {
            Ok(version) => self.completed(&steps, &job, &outcome, Some(version)),
            Err(Uncommitted { error, open: false }) if error.code() == ErrorCode::ConcurrentModification => {
                self.again(&steps, &job, round)
            }
            Err(Uncommitted { error, open: true }) => {
                let message = format!("whether the load is visible is not known: {error}");
                tracing::error!(load = load_id, message, "a load ended; its segments stay");
                job.outcome(&outcome);
                job.end_open(message, self.clock.wall());
                self.over(&job)
            }
            Err(Uncommitted { error, .. }) if may_pass(error.code()) => Err(error),
            Err(Uncommitted { error, .. }) => self.fail(&job, error),
        }
    }

    /// Ends a load of which a step failed for good.
    pub fn abandon(&self, load_id: &str, error: &str, cause: &str) -> Result<Ahead, Error> {
        let job = self.known(load_id)?;
        if job.state().is_final() {
            return Ok(ended(&job));
        }
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

    /// The newest version, and what is unique then.
    fn look(&self) -> Result<Round, Error> {
        let at = self.backend.snapshot(None)?.at;
        let mut unique = self.backend.reader(Asking::default()).unique_keys(at)?;
        unique.sort_unstable();
        Ok(Round { version: at.version.0, unique })
    }

    fn target_at(&self, version: Version) -> GraphTarget<'_> {
        let at = At { version, epoch: self.backend.standing().epoch };
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

    fn again(&self, steps: &Steps<'_>, job: &Job, round: u32) -> Result<Ahead, Error> {
        let next = round + 1;
        if next >= MOST_ROUNDS {
            let message = format!("transactions went over what the load had checked {MOST_ROUNDS} times");
            return self.fail(job, Error::new(ErrorCode::ConcurrentModification, message));
        }
        tracing::info!(load = job.id(), round, "a transaction went over what the load had checked: again");
        steps.begin_round(next, &self.look()?)?;
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
        job.done(outcome.done().map(ToString::to_string).collect());
        job.end(LoadState::Completed, None, self.clock.wall());
        let ended = self.over(job)?;
        if let Err(error) = steps.clear() {
            tracing::warn!(load = job.id(), %error, "what the steps of a load left stays for some days");
        }
        Ok(ended)
    }

    fn fail(&self, job: &Job, error: Error) -> Result<Ahead, Error> {
        let state = match error.code() {
            ErrorCode::AccessDenied => LoadState::AccessDenied,
            ErrorCode::NotFound => LoadState::ReadError,
            _ => LoadState::Failed,
        };
        // If it was asked to be committed, they stay for a day: somebody may still be at it.
        let was_asked = match self.objects.head(&asked_path(job.id())) {
            Ok(_) => true,
            Err(error) if error.code() == ErrorCode::NotFound => false,
            Err(error) => return Err(error.into()),
        };
        if !was_asked {
            for folder in [SEGMENTS, FOLDER] {
                for object in self.objects.list(&format!("{folder}/{}/", job.id()))? {
                    self.objects.delete(&object.path)?;
                }
            }
        }
        job.end(state, Some(error.to_string()), self.clock.wall());
        self.over(job)
    }

    /// Writes down how a load ended.
    fn over(&self, job: &Job) -> Result<Ahead, Error> {
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
        // Last: whoever finds the job ended finds its report.
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
        let damaged =
            |error| Error::new(ErrorCode::Corrupt, format!("the job of load {load_id} is damaged: {error}"));
        Job::parse(&bytes).map(Some).map_err(damaged)
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

/// Whether another try may come to something else.
fn may_pass(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::Unavailable | ErrorCode::Internal)
}

fn ended(job: &Job) -> Ahead {
    Ahead::Ended { state: job.state(), report: report_path(job.id()) }
}

fn report_path(load_id: &str) -> String {
    format!("{FOLDER}/{load_id}/report.json")
}

/// There from when on the load was asked to be committed.
fn asked_path(load_id: &str) -> String {
    format!("{FOLDER}/{load_id}/asked")
}

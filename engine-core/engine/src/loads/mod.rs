//! Bulk loads: a queue of jobs that run one at a time. Each load becomes visible as a whole or not at all (LOAD-1).
//!
//! ```
//! use tidegraph_engine::loads::{Dialect, LoadSpec, LoadState};
//! use tidegraph_engine::{Database, Language, Options, Parameters, Query};
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("people.csv");
//! std::fs::write(&file, "~id,~label,name:String\n1,Person,Ada\n2,Person,Grace\n")?;
//!
//! let database = Database::open(Options::default())?;
//! let spec = LoadSpec::new(vec![format!("file://{}", file.display())], Some(Dialect::GREMLIN));
//! let id = database.loads().submit(spec)?;
//! let status = database.loads().wait(&id)?;
//! assert_eq!(status.overall.state, LoadState::Completed, "{status:?}");
//!
//! let text = "MATCH (p:Person) RETURN p.name AS name ORDER BY name";
//! let answer = database.query(&Query::new(Language::OpenCypher, text, &Parameters::default()))?;
//! assert_eq!(answer.rows.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Roles: [`Loads`] queues jobs and keeps their files (`jobs/<id>.json`). `runner` runs a job. `target` answers a
//! load's questions about the graph. `others` follows the loads of other processes. [`Ingest`] does the steps of a load
//! that several processes share. `turn` asks for the turn of a load that lost
//! several times. `watch` turns folders of the drop directory into jobs.
//!
//! Flow: submit → queue → files become segments under `loads/<id>/` → the sequencer writes one record that names
//! them → storage applies them → the job is completed. A crash before the record leaves segments that no record
//! names; the next start removes them. A crash after the record changes nothing.
//!
//! What must never happen: a job is completed while its record is not in the log; a dropped folder is loaded twice.

mod job;
mod others;
mod runner;
mod spec;
mod steps;
mod target;
mod turn;
mod watch;

pub use job::{LoadState, LoadStatus, RunStatus};
pub use others::sweep_below;
pub use spec::{LoadSpec, Mode};
pub use steps::{Ahead, Ingest};
pub use tidegraph_load::Dialect;
pub use tidegraph_load::run::steps::Stage;
pub use tidegraph_load::run::{Counts, Parallelism};
pub use tidegraph_load::source::Allowed;

use crate::Error;
use crate::backend::Backend;
use job::Job;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tidegraph_load::source::{Access, Source};
use tidegraph_platform::{Clock, Objects, Random};
use tidegraph_types::{ErrorCode, Version};

/// Maximum number of jobs in the queue: Neptune's limit.
const LONGEST_QUEUE: usize = 64;
/// Maximum number of jobs that are kept.
const KEPT_JOBS: usize = 1_024;
/// Maximum number of refused rows that are kept of a job.
const KEPT_ERRORS: usize = 10_000;
const JOBS: &str = "jobs";
const SEGMENTS: &str = "loads";

/// The loads of one database.
pub struct Loads {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The state that the threads of the loader share.
pub(crate) struct Shared {
    backend: Arc<dyn Backend>,
    objects: Arc<Objects>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// Held while a load's record and its job's file are written, and while a checkpoint is written. So the job of a
    /// load is completed before the load's record can leave the log.
    commit: Arc<Mutex<()>>,
    /// Whether no other process loads into the graph.
    sole: bool,
    /// Held while a job's file is written, so that the last write is the newest state.
    saving: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
    stopping: AtomicBool,
    /// What a test does between each attempt of a load and its commit.
    #[cfg(test)]
    before_commit: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

#[derive(Default)]
struct State {
    /// Oldest first.
    jobs: VecDeque<Arc<Job>>,
    queue: VecDeque<Arc<Job>>,
    running: Option<Arc<Job>>,
}

/// The parts of the database that `Loads::open` needs.
pub(crate) struct Parts {
    pub backend: Arc<dyn Backend>,
    pub objects: Arc<Objects>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub commit: Arc<Mutex<()>>,
    /// Loads whose records were replayed, with their versions. `None` if other processes load into the graph too; then
    /// unknown segments are not removed.
    pub replayed: Option<Vec<(String, Version)>>,
    /// Whether threads run the jobs; otherwise [`Loads::run_queued`] does.
    pub threads: bool,
}

impl Loads {
    /// Reads the jobs of earlier processes, removes the segments that a crash left,
    /// and starts the thread that runs jobs.
    pub(crate) fn open(parts: Parts) -> Result<Self, Error> {
        let Parts { backend, objects, clock, random, commit, replayed, threads } = parts;
        let mut jobs: Vec<Arc<Job>> = vec![];
        for object in objects.list(&format!("{JOBS}/"))? {
            let bytes = objects.get(&object.path)?;
            match Job::parse(&bytes) {
                Ok(job) => jobs.push(Arc::new(job)),
                // The graph does not need the file: it is only a report.
                Err(error) => {
                    tracing::warn!(object = %object.path, %error, "the file of a job is damaged and ignored")
                }
            }
        }
        jobs.sort_by_key(|job| job.number());
        let shared = Arc::new(Shared {
            backend,
            objects,
            clock,
            random,
            commit,
            sole: replayed.is_some(),
            saving: Mutex::default(),
            state: Mutex::new(State { jobs: jobs.into(), ..State::default() }),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            #[cfg(test)]
            before_commit: Mutex::default(),
        });
        shared.recover_jobs(replayed.as_deref())?;
        let this = Self { shared: shared.clone(), threads: Mutex::new(vec![]) };
        if !threads {
            return Ok(this);
        }
        let beating = (!shared.sole).then(|| shared.clone());
        this.spawn("loads", move || shared.work())?;
        if let Some(shared) = beating {
            this.spawn("jobs", move || shared.write_again())?;
        }
        Ok(this)
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = tidegraph_platform::spawn(name, work);
        let thread = thread.map_err(|e| {
            Error::new(ErrorCode::Internal, format!("no thread for {name}: {e}")).with_source(e)
        })?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Queues a load that may read whatever the process can, and returns its id.
    ///
    /// # Errors
    ///
    /// As [`Loads::submit_within`].
    pub fn submit(&self, spec: LoadSpec) -> Result<String, Error> {
        self.submit_within(spec, &Allowed::everything())
    }

    /// Queues a load that may read what is allowed, and returns its id.
    ///
    /// # Errors
    ///
    /// `MissingParameter` without a source, `AccessDenied` for one that is not allowed, `BadRequest` for one that does
    /// not exist, `InvalidParameter` for a wrong bucket or region, an unknown dependency or nothing to resume,
    /// `LoadQueueFull` if the queue is full or the load must not wait, `Unavailable` while the database closes.
    pub fn submit_within(&self, spec: LoadSpec, allowed: &Allowed) -> Result<String, Error> {
        Ok(self.shared.submit(spec, None, allowed)?.id().to_owned())
    }

    /// Watches a drop folder: loads the folders in it, now and later.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the folder cannot be made, `Internal` if no thread can be started.
    #[expect(clippy::disallowed_methods, reason = "the drop folder is that of users")]
    pub fn watch(&self, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(|e| {
            let message = format!("cannot make the drop folder {}: {e}", folder.display());
            Error::new(ErrorCode::Unavailable, message).with_source(e)
        })?;
        let mut allowed = Allowed::nothing();
        allowed.add_folder(folder)?;
        let (shared, folder) = (self.shared.clone(), folder.to_owned());
        self.spawn("drop folder", move || watch::watch(&shared, &folder, &allowed))
    }

    /// Runs the jobs that wait, one after the other, on the thread of the caller. Only for a database without threads
    /// of its own ([`Database::connect_without_threads`](crate::Database::connect_without_threads)).
    pub fn run_queued(&self) {
        loop {
            let mut state = self.shared.state.lock();
            let Some(job) = state.queue.pop_front() else { return };
            state.running = Some(job.clone());
            drop(state);
            self.shared.run_to_end(&job);
        }
    }

    /// Returns the ids of at most `limit` jobs, newest first.
    #[must_use]
    pub fn list(&self, limit: usize, include_queued: bool) -> Vec<String> {
        if !self.shared.sole {
            self.shared.look_for_others();
        }
        let state = self.shared.state.lock();
        let shown = state.jobs.iter().rev().filter(|job| include_queued || job.state() != LoadState::InQueue);
        shown.take(limit).map(|job| job.id().to_owned()).collect()
    }

    /// Returns the status of a load.
    ///
    /// # Errors
    ///
    /// `BulkLoadIdNotFound` for an unknown id, `Unavailable` if the job's file cannot be read.
    pub fn status(&self, id: &str) -> Result<LoadStatus, Error> {
        Ok(self.shared.find(id)?.status(self.shared.clock.wall()))
    }

    /// Waits for the end of a load and returns its status. Does not wait for the load of another process.
    ///
    /// # Errors
    ///
    /// The same as [`Loads::status`].
    pub fn wait(&self, id: &str) -> Result<LoadStatus, Error> {
        let job = self.shared.find(id)?;
        let mut state = self.shared.state.lock();
        while !job.state().is_final() && job.elsewhere().is_none() {
            self.shared.changed.wait(&mut state);
        }
        Ok(job.status(self.shared.clock.wall()))
    }

    /// Cancels a load that waits or runs.
    ///
    /// # Errors
    ///
    /// `BulkLoadIdNotFound` for an unknown id, `BadRequest` if the load has ended, `UnsupportedOperation` if another
    /// worker has it.
    pub fn cancel(&self, id: &str) -> Result<(), Error> {
        let job = self.shared.find(id)?;
        let mut state = self.shared.state.lock();
        if job.state().is_final() {
            let message = format!("load {id} has ended as {}", job.state().as_str());
            return Err(Error::new(ErrorCode::BadRequest, message));
        }
        if job.elsewhere().is_some() {
            let message = format!("another worker runs load {id}: cancel it there");
            return Err(Error::new(ErrorCode::UnsupportedOperation, message));
        }
        job.cancel();
        let waits = state.queue.iter().position(|other| other.id() == id);
        if let Some(at) = waits {
            state.queue.remove(at);
            job.end(LoadState::Cancelled, None, self.shared.clock.wall());
        }
        drop(state);
        self.shared.changed.notify_all();
        if waits.is_some() {
            // Requests about other loads need not wait for the object store.
            self.shared.save(&job);
        }
        Ok(())
    }

    /// Cancels the running job and stops the threads. The next start ends the waiting jobs.
    pub(crate) fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        if let Some(job) = &self.shared.state.lock().running {
            job.cancel();
        }
        self.shared.changed.notify_all();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a thread of the loader panicked");
            }
        }
    }

    /// Removes the segments of loads up to the version of the oldest kept checkpoint.
    pub(crate) fn sweep(&self, below: Version) -> Result<(), Error> {
        self.shared.sweep(below)
    }
}

impl Shared {
    fn find(&self, id: &str) -> Result<Arc<Job>, Error> {
        let job = self.state.lock().jobs.iter().find(|job| job.id() == id).cloned();
        match job {
            Some(job) if self.sole || job.elsewhere().is_none() || job.is_resolved() => Ok(job),
            None if self.sole => Err(no_such(id)),
            _ => self.read(id),
        }
    }

    /// Makes a job from a request and queues it.
    fn submit(
        &self,
        spec: LoadSpec,
        drop_folder: Option<String>,
        allowed: &Allowed,
    ) -> Result<Arc<Job>, Error> {
        if spec.sources.is_empty() {
            return Err(Error::new(ErrorCode::MissingParameter, "the load has no source"));
        }
        let cancelled = || self.stopping.load(Ordering::Relaxed);
        let access = Access { allowed, region: spec.region.as_deref(), cancelled: &cancelled };
        spec.sources.iter().try_for_each(|uri| Source::check(uri, &access))?;
        if !self.sole {
            self.look_for_others();
        }
        let mut state = self.state.lock();
        if self.stopping.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorCode::Unavailable, "the service is going down"));
        }
        // A load that is visible already does not count, though its thread may still clean up.
        let runs = state.running.as_ref().is_some_and(|job| !job.state().is_final());
        let busy = runs || !state.queue.is_empty();
        if busy && !spec.queue_request {
            let message = "a load runs already, and the request does not allow to queue it (queueRequest)";
            return Err(Error::new(ErrorCode::LoadQueueFull, message));
        }
        if state.queue.len() >= LONGEST_QUEUE {
            let message = format!("the queue has {LONGEST_QUEUE} loads, its limit: try again later");
            return Err(Error::new(ErrorCode::LoadQueueFull, message));
        }
        for id in &spec.dependencies {
            if !state.jobs.iter().any(|job| job.id() == id) {
                let message = format!("the load depends on {id:?}, which is not known");
                return Err(Error::new(ErrorCode::InvalidParameter, message));
            }
        }
        let earlier = state.jobs.iter().rev().find(|job| job.spec().sources == spec.sources);
        if spec.mode == Mode::Resume && earlier.is_none() {
            let message = format!("there is no earlier load of {} to resume", spec.sources.join(", "));
            return Err(Error::new(ErrorCode::InvalidParameter, message));
        }
        let retry_of = match spec.mode {
            Mode::New => None,
            Mode::Resume | Mode::Auto => earlier.cloned(),
        };
        let number = state.jobs.back().map_or(1, |job| job.number() + 1);
        let id = self.new_id();
        let now = self.clock.wall();
        let mut job = Job::new(id, number, spec, drop_folder, retry_of.as_deref(), busy, now);
        job.allow(allowed.clone());
        let job = Arc::new(job);
        self.save(&job);
        state.jobs.push_back(job.clone());
        state.queue.push_back(job.clone());
        self.forget(&mut state);
        drop(state);
        self.changed.notify_all();
        Ok(job)
    }

    fn new_id(&self) -> String {
        let (a, b) = (self.random.next_u64(), self.random.next_u64());
        let (a2, a3) = ((a >> 16) & 0xffff, a & 0xfff);
        let b1 = ((b >> 48) & 0x3fff) | 0x8000;
        format!("{:08x}-{a2:04x}-4{a3:03x}-{b1:04x}-{:012x}", a >> 32, b & 0xffff_ffff_ffff)
    }

    /// Drops the oldest ended jobs beyond the number to keep.
    fn forget(&self, state: &mut State) {
        while state.jobs.len() > KEPT_JOBS {
            let Some(at) = state.jobs.iter().position(|job| job.is_resolved() && !self.has_segments(job))
            else {
                return;
            };
            if let Some(job) = state.jobs.remove(at)
                && let Err(error) = self.objects.delete(&job_path(job.id()))
            {
                tracing::warn!(job = job.id(), %error, "the file of a dropped job cannot be deleted");
            }
        }
    }

    /// Whether a job has segments. In a fleet another process may have removed them.
    fn has_segments(&self, job: &Job) -> bool {
        let is_listed = || {
            let listed = self.objects.list(&format!("{SEGMENTS}/{}/", job.id()));
            listed.map_or(true, |objects| !objects.is_empty())
        };
        job.has_segments() && (self.sole || is_listed())
    }

    fn save(&self, job: &Job) {
        let _one = self.saving.lock();
        if let Err(error) = job
            .to_bytes(self.clock.wall())
            .and_then(|bytes| Ok(self.objects.put(&job_path(job.id()), bytes)?))
        {
            tracing::error!(job = job.id(), %error, "the outcome of a load cannot be saved");
        }
    }

    /// At a start, ends the jobs that had not ended, and removes the segments that no record names.
    fn recover_jobs(&self, replayed: Option<&[(String, Version)]>) -> Result<(), Error> {
        let now = self.clock.wall();
        let Some(replayed) = replayed else {
            let jobs: Vec<Arc<Job>> = self.state.lock().jobs.iter().cloned().collect();
            jobs.iter().for_each(|job| self.resolve_lost_job(job));
            return Ok(());
        };
        let state = self.state.lock();
        for job in &state.jobs {
            match replayed.iter().find(|(id, _)| id == job.id()) {
                Some((_, version)) if job.state() != LoadState::Completed => {
                    job.committed(*version);
                    job.end(LoadState::Completed, None, now);
                    self.save(job);
                }
                None if !job.is_resolved() => {
                    job.segments_removed();
                    job.end(
                        LoadState::Failed,
                        Some("the service stopped before the load was complete".into()),
                        now,
                    );
                    self.save(job);
                }
                _ => {}
            }
        }
        for object in self.objects.list(&format!("{SEGMENTS}/"))? {
            let id = object.path.split('/').nth(1).unwrap_or_default();
            let known = replayed.iter().any(|(other, _)| other == id)
                || state.jobs.iter().any(|job| job.id() == id && job.has_segments());
            if !known {
                self.objects.delete(&object.path)?;
            }
        }
        Ok(())
    }

    fn sweep(&self, below: Version) -> Result<(), Error> {
        let done: Vec<Arc<Job>> = {
            let state = self.state.lock();
            state.jobs.iter().filter(|job| job.has_segments_below(below)).cloned().collect()
        };
        for job in done {
            for object in self.objects.list(&format!("{SEGMENTS}/{}/", job.id()))? {
                self.objects.delete(&object.path)?;
            }
            job.segments_removed();
            self.save(&job);
        }
        Ok(())
    }

    /// Runs jobs until the database closes.
    fn work(&self) {
        loop {
            let job = {
                let mut state = self.state.lock();
                loop {
                    if self.stopping.load(Ordering::Relaxed) {
                        return;
                    }
                    if let Some(job) = state.queue.pop_front() {
                        state.running = Some(job.clone());
                        break job;
                    }
                    self.changed.wait(&mut state);
                }
            };
            self.run_to_end(&job);
        }
    }

    fn run_to_end(&self, job: &Arc<Job>) {
        self.run(job);
        self.state.lock().running = None;
        self.changed.notify_all();
    }
}

fn job_path(id: &str) -> String {
    format!("{JOBS}/{id}.json")
}

fn no_such(id: &str) -> Error {
    Error::new(ErrorCode::BulkLoadIdNotFound, format!("no load has the id {id:?}"))
}

#[cfg(test)]
mod tests;

//! Bulk loads: a queue of jobs, one at a time, each visible as a whole or not at all.
//!
//! Roles: [`Loads`] takes jobs, keeps them in order and remembers them (`jobs/<id>.json`); `runner` carries one out;
//! `target` answers what a load asks of the graph; `others` knows of the loads of other processes; [`Ingest`] does the
//! steps of a load that is spread over several; `watch` turns folders of the drop directory into jobs.
//!
//! Flow: submit → queue → files become segments under `loads/<id>/` → the sequencer writes one record that names them
//! → storage applies them → the job is completed. A crash before the record leaves segments that nobody names, which
//! are removed at the next start; a crash after it changes nothing.
//!
//! What must never happen: a job that says completed while its record is not in the log; a load of a dropped folder a
//! second time.

mod job;
mod others;
mod runner;
mod spec;
mod steps;
mod target;
mod watch;

pub use job::{LoadState, LoadStatus, RunStatus};
pub use others::sweep_below;
pub use spec::{LoadSpec, Mode};
pub use steps::{Ahead, Ingest};
pub use tidegraph_load::Dialect;
pub use tidegraph_load::run::steps::Stage;
pub use tidegraph_load::run::{Counts, Parallelism};

use crate::Error;
use crate::backend::Backend;
use job::Job;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tidegraph_platform::{Clock, Objects, Random};
use tidegraph_types::{ErrorCode, Version};

/// Jobs that may wait, as Neptune has it.
const LONGEST_QUEUE: usize = 64;
/// Jobs that are remembered.
const KEPT_JOBS: usize = 1_024;
/// Refused rows that are kept of a job.
const KEPT_ERRORS: usize = 10_000;
const JOBS: &str = "jobs";
const SEGMENTS: &str = "loads";

/// The loads of one database.
pub struct Loads {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What the threads of the loader share.
pub(crate) struct Shared {
    backend: Arc<dyn Backend>,
    objects: Arc<Objects>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// Held while a load's record and its job's file are written, and while a checkpoint is: so that a load whose
    /// record the log no longer has is known by its job.
    commit: Arc<Mutex<()>>,
    /// Whether nobody else loads into the graph.
    sole: bool,
    /// Held while a job's file is written, so that the last one to be written is the newest.
    saving: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
    stopping: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Oldest first.
    jobs: VecDeque<Arc<Job>>,
    queue: VecDeque<Arc<Job>>,
    running: Option<Arc<Job>>,
}

/// What `Loads::open` needs of the database.
pub(crate) struct Parts {
    pub backend: Arc<dyn Backend>,
    pub objects: Arc<Objects>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub commit: Arc<Mutex<()>>,
    /// Loads whose records were replayed, with their versions; `None`: others load into this graph too, so what is not
    /// known here is not removed.
    pub replayed: Option<Vec<(String, Version)>>,
}

impl Loads {
    /// Reads the jobs of earlier runs, removes what a crash left, and starts the thread that runs jobs.
    pub(crate) fn open(parts: Parts) -> Result<Self, Error> {
        let Parts { backend, objects, clock, random, commit, replayed } = parts;
        let mut jobs: Vec<Arc<Job>> = vec![];
        for object in objects.list(&format!("{JOBS}/"))? {
            let bytes = objects.get(&object.path)?;
            match Job::parse(&bytes) {
                Ok(job) => jobs.push(Arc::new(job)),
                // A job is only a report: the graph does not need it.
                Err(error) => {
                    tracing::warn!(object = %object.path, %error, "a job's file is damaged and left out")
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
        });
        shared.settle(replayed.as_deref())?;
        let this = Self { shared: shared.clone(), threads: Mutex::new(vec![]) };
        let beating = (!shared.sole).then(|| shared.clone());
        this.spawn("loads", move || shared.work())?;
        if let Some(shared) = beating {
            this.spawn("jobs", move || shared.write_again())?;
        }
        Ok(this)
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = tidegraph_platform::spawn(name, work);
        let thread =
            thread.map_err(|e| Error::new(ErrorCode::Internal, format!("no thread for {name}: {e}")))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Takes a job; its id.
    pub fn submit(&self, spec: LoadSpec) -> Result<String, Error> {
        Ok(self.shared.submit(spec, None)?.id().to_owned())
    }

    /// Loads what is dropped into a folder from now on, and what was dropped before.
    #[expect(clippy::disallowed_methods, reason = "the drop folder is that of users")]
    pub fn watch(&self, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(|e| {
            Error::new(
                ErrorCode::Unavailable,
                format!("the drop folder {} cannot be made: {e}", folder.display()),
            )
        })?;
        let (shared, folder) = (self.shared.clone(), folder.to_owned());
        self.spawn("drop folder", move || watch::watch(&shared, &folder))
    }

    /// Ids of jobs, newest first.
    #[must_use]
    pub fn list(&self, limit: usize, include_queued: bool) -> Vec<String> {
        if !self.shared.sole {
            self.shared.look_for_others();
        }
        let state = self.shared.state.lock();
        let shown = state.jobs.iter().rev().filter(|job| include_queued || job.state() != LoadState::InQueue);
        shown.take(limit).map(|job| job.id().to_owned()).collect()
    }

    /// What became of a job.
    pub fn status(&self, id: &str) -> Result<LoadStatus, Error> {
        Ok(self.shared.find(id)?.status(self.shared.clock.wall()))
    }

    /// Waits for the end of a job of this process; what is known of another's is answered at once.
    pub fn wait(&self, id: &str) -> Result<LoadStatus, Error> {
        let job = self.shared.find(id)?;
        let mut state = self.shared.state.lock();
        while !job.state().is_final() && job.elsewhere().is_none() {
            self.shared.changed.wait(&mut state);
        }
        Ok(job.status(self.shared.clock.wall()))
    }

    /// Ends a job that waits or runs. One that has ended stays as it is, and that is an error.
    pub fn cancel(&self, id: &str) -> Result<(), Error> {
        let job = self.shared.find(id)?;
        let mut state = self.shared.state.lock();
        if job.state().is_final() {
            let message = format!("load {id} has ended as {}", job.state().as_str());
            return Err(Error::new(ErrorCode::BadRequest, message));
        }
        if job.elsewhere().is_some() {
            let message = format!("load {id} was taken by another worker, which is to be asked");
            return Err(Error::new(ErrorCode::UnsupportedOperation, message));
        }
        job.cancel();
        if let Some(at) = state.queue.iter().position(|other| other.id() == id) {
            state.queue.remove(at);
            job.end(LoadState::Cancelled, None, self.shared.clock.wall());
            self.shared.save(&job);
        }
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Cancels what runs and ends the threads. What waits is told so at the next start.
    pub(crate) fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        if let Some(job) = &self.shared.state.lock().running {
            job.cancel();
        }
        self.shared.changed.notify_all();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a thread of the loader ended by a defect");
            }
        }
    }

    /// Removes the segments of loads that no kept checkpoint needs.
    pub(crate) fn sweep(&self, below: Version) -> Result<(), Error> {
        self.shared.sweep(below)
    }
}

impl Shared {
    fn find(&self, id: &str) -> Result<Arc<Job>, Error> {
        let known = self.state.lock().jobs.iter().find(|job| job.id() == id).cloned();
        match known {
            Some(job) if self.sole || job.elsewhere().is_none() || job.is_settled() => Ok(job),
            None if self.sole => Err(no_such(id)),
            _ => self.read(id),
        }
    }

    /// Makes a job of a request and puts it in the queue.
    fn submit(&self, spec: LoadSpec, drop_folder: Option<String>) -> Result<Arc<Job>, Error> {
        if spec.sources.is_empty() {
            return Err(Error::new(ErrorCode::MissingParameter, "the load has no source"));
        }
        if !self.sole {
            self.look_for_others();
        }
        let mut state = self.state.lock();
        if self.stopping.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorCode::Unavailable, "the service is going down"));
        }
        // A load that is visible already keeps nobody waiting, though its thread may still be tidying up.
        let runs = state.running.as_ref().is_some_and(|job| !job.state().is_final());
        let busy = runs || !state.queue.is_empty();
        if busy && !spec.queue_request {
            let message = "a load runs already, and the request does not ask to wait (queueRequest)";
            return Err(Error::new(ErrorCode::LoadQueueFull, message));
        }
        if state.queue.len() >= LONGEST_QUEUE {
            let message = format!("{LONGEST_QUEUE} loads wait already");
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
        let job = Arc::new(Job::new(id, number, spec, drop_folder, retry_of.as_deref(), busy, now));
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

    /// Drops the oldest ended jobs beyond what is kept.
    fn forget(&self, state: &mut State) {
        while state.jobs.len() > KEPT_JOBS {
            let Some(at) = state.jobs.iter().position(|job| job.is_settled() && !self.has_segments(job))
            else {
                return;
            };
            if let Some(job) = state.jobs.remove(at)
                && let Err(error) = self.objects.delete(&job_path(job.id()))
            {
                tracing::warn!(job = job.id(), %error, "a forgotten job's file is left");
            }
        }
    }

    /// Whether there are segments of a job. Of a fleet others may have removed them.
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
            tracing::error!(job = job.id(), %error, "what became of a load cannot be kept over a restart");
        }
    }

    /// After a start: jobs that had not ended get their end, and segments that no record names are removed.
    fn settle(&self, replayed: Option<&[(String, Version)]>) -> Result<(), Error> {
        let now = self.clock.wall();
        let Some(replayed) = replayed else {
            let jobs: Vec<Arc<Job>> = self.state.lock().jobs.iter().cloned().collect();
            jobs.iter().for_each(|job| self.settle_elsewhere(job));
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
                None if !job.is_settled() => {
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

    /// Runs jobs until the end.
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
            self.run(&job);
            self.state.lock().running = None;
            self.changed.notify_all();
        }
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

//! Thread pools shared by all connections: one for requests that use a processor, a larger one for requests that wait,
//! and one for commits.
//!
//! Threads are started on demand, up to a limit. Further jobs wait in a queue of bounded length. If it is full, the
//! connection that hands over a read waits too; a commit is refused, since the log may not answer for long.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;

type Job = Box<dyn FnOnce() + Send>;

pub(super) struct Pool {
    name: &'static str,
    most: usize,
    shared: Arc<Shared>,
}

// Not a channel of crossbeam: its receivers yield the processor four times before
// they sleep, which costs more than most jobs.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Signals a new job.
    work: Condvar,
    /// Signals that the queue has become shorter.
    room: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Number of threads started.
    started: usize,
    /// Number of threads that wait for a job.
    idle: usize,
    /// Whether the pool was dropped.
    closed: bool,
}

impl Pool {
    pub fn new(name: &'static str, most: usize) -> Self {
        Self { name, most: most.max(1), shared: Arc::default() }
    }

    /// Returns the number of jobs that run and wait at most.
    pub fn capacity(&self) -> usize {
        5 * self.most
    }

    /// Hands a job to a thread. Waits while all threads are busy and the queue is full.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state.lock();
        while self.is_full(&state) {
            self.shared.room.wait(&mut state);
        }
        self.add(state, Box::new(job));
    }

    /// Hands a request to a thread that does `job`. Returns the request if all threads are busy and the queue is full.
    pub fn try_run<R: Send + 'static>(
        &self,
        request: R,
        job: impl FnOnce(R) + Send + 'static,
    ) -> Result<(), R> {
        let state = self.shared.state.lock();
        if self.is_full(&state) {
            return Err(request);
        }
        self.add(state, Box::new(move || job(request)));
        Ok(())
    }

    fn is_full(&self, state: &State) -> bool {
        state.jobs.len() >= 4 * self.most
    }

    fn add(&self, mut state: MutexGuard<'_, State>, job: Job) {
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() || state.started >= self.most {
            drop(state);
            self.shared.work.notify_one();
            return;
        }
        let number = state.started;
        state.started += 1;
        drop(state);
        let shared = self.shared.clone();
        if let Err(error) =
            tidegraph_platform::spawn(format!("{}-{number}", self.name), move || shared.serve())
        {
            tracing::warn!(%error, pool = self.name, "cannot start a thread");
            self.shared.state.lock().started -= 1;
            self.shared.work.notify_one();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    /// Runs jobs until the pool is dropped, and then the remaining ones.
    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                self.room.notify_one();
                job();
                state = self.state.lock();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                self.work.wait(&mut state);
                state.idle -= 1;
            }
        }
    }
}

//! Threads that work for all connections: some for what takes a processor, more for what waits.
//!
//! Threads are made when they are needed, up to a number; what finds none waits in a queue of bounded length, and with
//! it the connection that it came from.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;

type Job = Box<dyn FnOnce() + Send>;

pub(super) struct Pool {
    name: &'static str,
    most: usize,
    shared: Arc<Shared>,
}

// Not a channel of crossbeam: who waits for one gives the processor away four times before it sleeps, which costs more than most jobs.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// A job waits.
    work: Condvar,
    /// The queue is shorter.
    room: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Threads that were made.
    made: usize,
    /// Threads that wait for work.
    idle: usize,
    /// The pool is gone.
    closed: bool,
}

impl Pool {
    pub fn new(name: &'static str, most: usize) -> Self {
        Self { name, most: most.max(1), shared: Arc::default() }
    }

    /// Hands a job to a thread. Waits while all work and the queue is full.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state.lock();
        while state.jobs.len() >= 4 * self.most {
            self.shared.room.wait(&mut state);
        }
        state.jobs.push_back(Box::new(job));
        if state.idle >= state.jobs.len() || state.made >= self.most {
            drop(state);
            self.shared.work.notify_one();
            return;
        }
        let number = state.made;
        state.made += 1;
        drop(state);
        let shared = self.shared.clone();
        if let Err(error) =
            tidegraph_platform::spawn(format!("{}-{number}", self.name), move || shared.serve())
        {
            tracing::warn!(%error, pool = self.name, "no thread can be made");
            self.shared.state.lock().made -= 1;
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
    /// Does what comes until the pool is gone, and then what is left.
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

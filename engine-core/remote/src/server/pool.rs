//! Threads that work for all connections: some for what takes a processor, more for what waits.
//!
//! Threads are made when they are needed, up to a number; what finds none waits in a queue of bounded length, and with
//! it the connection that it came from.

use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Job = Box<dyn FnOnce() + Send>;

pub(super) struct Pool {
    name: &'static str,
    most: usize,
    /// Threads that were made.
    made: AtomicUsize,
    /// Threads that wait for work.
    idle: Arc<AtomicUsize>,
    jobs: Sender<Job>,
    queue: Receiver<Job>,
}

impl Pool {
    pub fn new(name: &'static str, most: usize) -> Self {
        let (jobs, queue) = bounded(4 * most.max(1));
        Self { name, most: most.max(1), made: AtomicUsize::new(0), idle: Arc::default(), jobs, queue }
    }

    /// Hands a job to a thread. Waits while all work and the queue is full.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.see_to_threads();
        // It fails only when there is no receiver, of which this holds one.
        let _ = self.jobs.send(Box::new(job));
    }

    fn see_to_threads(&self) {
        let made = self.made.load(Ordering::Relaxed);
        if made >= self.most || self.idle.load(Ordering::Relaxed) > self.queue.len() {
            return;
        }
        if self.made.compare_exchange(made, made + 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        let (queue, idle) = (self.queue.clone(), self.idle.clone());
        let thread = std::thread::Builder::new().name(format!("{}-{made}", self.name));
        let spawned = thread.spawn(move || {
            idle.fetch_add(1, Ordering::Relaxed);
            while let Ok(job) = queue.recv() {
                idle.fetch_sub(1, Ordering::Relaxed);
                job();
                idle.fetch_add(1, Ordering::Relaxed);
            }
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, pool = self.name, "no thread can be made");
            self.made.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

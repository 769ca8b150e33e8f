//! Work that a stranger can ask for and that takes long: a few at once, and a few that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

/// Callers that wait for their proof to be looked at.
const MOST_WAITING: usize = 128;

/// Places for slow work.
pub(super) struct Slow {
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// Too many callers wait.
#[derive(Debug)]
pub(super) struct Busy;

impl Slow {
    pub(super) fn new(at_once: usize) -> Self {
        Self { slots: Arc::new(Semaphore::new(at_once)), waiting: AtomicUsize::new(0) }
    }

    /// Runs work on a thread for blocking work. The work keeps its place to its end, even if its caller goes away.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let _waits = Waits::new(&self.waiting)?;
        let slot = self.slots.clone().acquire_owned().await.map_err(|_| Busy)?;
        let work = move || {
            let done = work();
            drop(slot);
            done
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| Busy)
    }
}

/// A caller that waits.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(waiting: &'a AtomicUsize) -> Result<Self, Busy> {
        let waits = Self(waiting);
        if waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING { Err(Busy) } else { Ok(waits) }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Slow {
        /// No work runs from now on.
        pub(crate) fn close(&self) {
            self.slots.close();
        }
    }

    #[tokio::test]
    async fn only_a_few_wait() {
        let slow = Slow::new(1);
        slow.waiting.store(MOST_WAITING, Ordering::Relaxed);
        assert!(slow.run(|| 1).await.is_err());
        assert_eq!(slow.waiting.load(Ordering::Relaxed), MOST_WAITING);
        slow.waiting.store(0, Ordering::Relaxed);
        assert_eq!(slow.run(|| 1).await.ok(), Some(1));
        assert_eq!(slow.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn work_whose_caller_went_away_keeps_its_place() {
        let slow = Arc::new(Slow::new(1));
        let (started, runs) = std::sync::mpsc::channel();
        let (end, may_end) = std::sync::mpsc::channel::<()>();
        let caller = slow.clone();
        let task = tokio::spawn(async move {
            let work = move || {
                started.send(()).ok();
                may_end.recv().ok();
            };
            caller.run(work).await.ok();
        });
        tokio::task::spawn_blocking(move || runs.recv()).await.unwrap().unwrap();
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(slow.slots.available_permits(), 0);
        drop(end);
        slow.run(|| ()).await.unwrap();
    }
}

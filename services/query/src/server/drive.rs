//! Drives a connection, or a request of HTTP/2, to its end or to its deadline.
//!
//! hyper often wakes the task that polls it at this moment, for example once an answer is written. The runtime would then put
//! the task into its queue and wake another thread for it, which takes longer than a point read. So a connection that was
//! woken while it was polled is polled again at once, some times, before other tasks have their turn.

use super::progress::{Overdue, Progress, Reason};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Sleep, sleep_until};

/// Time that a client has for the rest of a body once the service stops.
const BODY_WHILE_STOPPING: Duration = Duration::from_secs(1);

/// How often a connection is polled before other tasks have their turn.
const MOST_POLLS: usize = 8;

/// Wakes the task of a connection; while the connection is polled, it only notes that.
struct OwnWaker {
    task: Waker,
    state: AtomicU8,
}

/// Nobody polls the connection.
const AT_REST: u8 = 0;
const POLLED: u8 = 1;
const WOKEN_WHILE_POLLED: u8 = 2;

impl OwnWaker {
    fn new(task: Waker) -> (Arc<Self>, Waker) {
        let own = Arc::new(Self { task, state: AtomicU8::new(AT_REST) });
        let waker = Waker::from(own.clone());
        (own, waker)
    }

    /// Polls a future; returns also whether it was woken meanwhile.
    fn poll<F: Future>(&self, waker: &Waker, future: Pin<&mut F>) -> (Poll<F::Output>, bool) {
        self.state.store(POLLED, Ordering::Release);
        let result = future.poll(&mut Context::from_waker(waker));
        (result, self.state.swap(AT_REST, Ordering::AcqRel) == WOKEN_WHILE_POLLED)
    }
}

impl Wake for OwnWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted =
            self.state.compare_exchange(POLLED, WOKEN_WHILE_POLLED, Ordering::AcqRel, Ordering::Acquire);
        if noted == Err(AT_REST) {
            self.task.wake_by_ref();
        }
    }
}

/// Polls a future until it ends, or until a deadline of its progress passes. Returns why it was given up, if it was.
pub(super) async fn drive(
    future: impl Future<Output = ()>,
    progress: &Progress,
    mut stopped: watch::Receiver<bool>,
) -> Option<Reason> {
    let mut future = pin!(future);
    let mut stop = pin!(async move { is_stopped(&mut stopped).await });
    let mut is_stopping = false;
    let mut timer = pin!(sleep_until(progress.next_check()));
    let mut own: Option<(Arc<OwnWaker>, Waker)> = None;
    poll_fn(|context| {
        if !is_stopping && stop.as_mut().poll(context).is_ready() {
            is_stopping = true;
            progress.stop(BODY_WHILE_STOPPING);
        }
        if !own.as_ref().is_some_and(|(own, _)| own.task.will_wake(context.waker())) {
            own = None;
        }
        let (own, waker) = own.get_or_insert_with(|| OwnWaker::new(context.waker().clone()));
        let mut polls = 0;
        loop {
            polls += 1;
            let (result, was_woken) = own.poll(waker, future.as_mut());
            if result.is_ready() {
                return Poll::Ready(None);
            }
            progress.is_polled_by(context);
            match progress.overdue() {
                Some(Overdue::Close(reason)) => return Poll::Ready(Some(reason)),
                // The handler learns of its late body from the body, and answers; HTTP/2 learns of the end from the
                // progress.
                Some(Overdue::Body | Overdue::Goodbye) => continue,
                None => {}
            }
            if was_woken && polls < MOST_POLLS {
                continue;
            }
            if was_woken {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !fires(timer.as_mut(), progress, context) {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Waits until the service stops.
pub(super) async fn is_stopped(stopped: &mut watch::Receiver<bool>) {
    // The sender is dropped only after it has sent, so the result does not matter.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Sets the timer to the next deadline, and returns whether that has come already.
fn fires(mut timer: Pin<&mut Sleep>, progress: &Progress, context: &mut Context<'_>) -> bool {
    let next = progress.next_check();
    // A timer that is too early costs one poll later; setting it at each step would cost more.
    if next < timer.deadline() || timer.is_elapsed() {
        timer.as_mut().reset(next);
    }
    timer.poll(context).is_ready()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Limits;
    use crate::server::connections::Connections;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A future that wakes its task, or its waker's, each time it is polled, and ends with the last poll.
    fn wakes_itself(polls: usize, polled: &AtomicUsize) -> impl Future<Output = ()> {
        poll_fn(move |context| {
            context.waker().wake_by_ref();
            let count = polled.fetch_add(1, Ordering::Relaxed) + 1;
            if count < polls { Poll::Pending } else { Poll::Ready(()) }
        })
    }

    #[tokio::test]
    async fn a_connection_that_wakes_itself_is_polled_again_without_waking_its_task() {
        let (wakes, polled) = (Arc::new(Wakes::default()), AtomicUsize::new(0));
        let place = Connections::new(Limits::default()).open();
        let (_sender, stopped) = watch::channel(false);
        let mut drive = pin!(drive(wakes_itself(20, &polled), place.progress(), stopped));
        let waker = Waker::from(wakes.clone());
        let mut context = Context::from_waker(&waker);
        let seen = || (polled.load(Ordering::Relaxed), wakes.0.load(Ordering::Relaxed));
        // Others have their turn after some polls.
        assert!(drive.as_mut().poll(&mut context).is_pending());
        assert_eq!(seen(), (MOST_POLLS, 1));
        assert!(drive.as_mut().poll(&mut context).is_pending());
        assert_eq!(seen(), (2 * MOST_POLLS, 2));
        assert_eq!(drive.as_mut().poll(&mut context), Poll::Ready(None));
        assert_eq!(seen(), (20, 2));
    }

    #[tokio::test]
    async fn a_connection_at_rest_wakes_its_task() {
        let wakes = Arc::new(Wakes::default());
        let place = Connections::new(Limits::default()).open();
        let (_sender, stopped) = watch::channel(false);
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let connection = async {
            let _ = receiver.await;
        };
        let mut drive = pin!(drive(connection, place.progress(), stopped));
        let waker = Waker::from(wakes.clone());
        let mut context = Context::from_waker(&waker);
        assert!(drive.as_mut().poll(&mut context).is_pending());
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
        sender.send(()).unwrap();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert_eq!(drive.as_mut().poll(&mut context), Poll::Ready(None));
    }
}

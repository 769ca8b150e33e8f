//! Drives a connection, or a request of HTTP/2, to its end or to its deadline.

use super::progress::{Overdue, Progress, Reason};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Sleep, sleep_until};

/// Time that a client has for the rest of a body once the service stops.
const BODY_WHILE_STOPPING: Duration = Duration::from_secs(1);

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
    poll_fn(|context| {
        if !is_stopping && stop.as_mut().poll(context).is_ready() {
            is_stopping = true;
            progress.stop(BODY_WHILE_STOPPING);
        }
        loop {
            if future.as_mut().poll(context).is_ready() {
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

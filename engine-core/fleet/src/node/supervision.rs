//! Supervision of a node's threads: a thread that panics ends the node, with the reason.
//!
//! A node that went on without its feed would report that it is alive, and answer nothing that is newer. So the node
//! leaves the map, stops its other threads and its heartbeats, and says why in its log and its status. The
//! process ends too ([`StorageNode::failure`](super::StorageNode::failure)), and whoever started it starts it again.

use super::Shared;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use tidegraph_cluster::NodeState;

impl Shared {
    /// Runs the work of a thread. If it panics, the node fails.
    pub fn supervise(&self, thread: &str, work: impl FnOnce()) {
        // What the work held when it panicked is not used again, since the node ends.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            self.fail(format!("the thread `{thread}` panicked: {}", panic_text(&*panic)));
        }
    }

    /// Ends the node for a reason. The first reason counts.
    pub(super) fn fail(&self, reason: String) {
        tracing::error!(node = self.id.as_str(), reason, "the node fails: it leaves the map and ends");
        self.failure.lock().get_or_insert(reason);
        // Without heartbeats the node counts as lost, also if the map cannot be told now.
        self.stopping.store(true, Ordering::Release);
        if let Err(error) = self.set_node(NodeState::Gone) {
            tracing::warn!(%error, "cannot tell the map that the node leaves");
        }
    }
}

/// Returns the message of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

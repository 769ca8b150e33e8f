//! Bulk loads: what a load learns while it runs, and how it is committed.
//!
//! A load of another process is *asked* to compare itself with the last changes, and *reports* ([`NewVertices::compare`]).
//! Until then no request is served. A question has a thread, which lets requests go on after the report, and when its time
//! is over, even if no request comes any more ([`Sequencer::watch_report`]).
//!
//! [`NewVertices::compare`]: crate::NewVertices::compare

use super::Sequencer;
use crate::Error;
use crate::created::LoadWatch;
use crate::queue::Queue;
use crate::request::{Callback, LoadCommit, LoadProgress, Reply, Request};
use parking_lot::{Condvar, Mutex};
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_types::{LoadChanges, MadeSince, RequestId, Version};

impl Sequencer {
    /// Starts to watch for a bulk load, which then reads at the newest version or a later one.
    #[must_use]
    pub fn begin_load(&self) -> LoadWatch {
        let watch = LoadWatch::new(&self.shared.loads);
        // The leader holds the lock until its whole group is applied.
        if let Some(committer) = &mut *self.committer.lock() {
            committer.watch();
        }
        watch
    }

    /// Returns vertices that transactions created after a version, about `most_bytes` of them; `None` if they were not
    /// recorded, because the watch began later.
    #[must_use]
    pub fn made_since(&self, _watch: &LoadWatch, version: Version, most_bytes: usize) -> Option<MadeSince> {
        self.committer.lock().as_ref()?.made_above(version, most_bytes)
    }

    /// Returns changes after a version that loads depend on, about `most` of them. Those up to the version that they are
    /// recorded since are missing.
    #[must_use]
    pub fn load_changes(&self, above: Version, most: usize) -> LoadChanges {
        let committer = self.committer.lock();
        let unknown = LoadChanges { since: Version(u64::MAX), upto: above, changes: Vec::new() };
        committer.as_ref().map_or(unknown, |committer| committer.changes_above(above, most))
    }

    /// Forgets the recorded vertices up to a version that every running load has compared with its own.
    pub fn forget_made(&self, upto: Version) {
        if let Some(committer) = &mut *self.committer.lock() {
            committer.forget_made(upto);
        }
    }

    /// Returns the version of the newest committed bulk load in the part of the log that
    /// was read; 0 for none. Set before that version can be read.
    #[must_use]
    pub fn newest_load(&self) -> Version {
        Version(self.shared.newest_load.load(Ordering::Acquire))
    }

    /// Commits a bulk load that was started with a watch and that compares itself; returns its version, from which on the
    /// load can be read.
    ///
    /// # Errors
    /// Those of [`Sequencer::commit_or_ask_load`].
    pub fn commit_load(&self, watch: &LoadWatch, load: LoadCommit) -> Result<Version, Error> {
        match self.commit_or_ask_load(watch, load)? {
            LoadProgress::Committed(version) => Ok(version),
            LoadProgress::Asked(_) => Err(Error::in_doubt("the load was asked to report")),
        }
    }

    /// Commits a bulk load that was started with a watch, or asks it to compare itself first. The caller lets
    /// [`Sequencer::watch_report`] limit the wait for the report.
    ///
    /// # Errors
    /// [`Error::Conflict`] if what the load checked may no longer hold: since its read version, a transaction deleted a
    /// vertex, created an edge with an id of the user's, added an exception, wrote one of the load's read keys, or gave
    /// another id the GUI of a vertex of the load; or another load was committed. Otherwise as [`Sequencer::commit`].
    pub fn commit_or_ask_load(&self, _watch: &LoadWatch, load: LoadCommit) -> Result<LoadProgress, Error> {
        let id = RequestId::of_text(&load.load_id);
        let progress = self.ask(|reply| Request::Load { load, yields: false, reply })?;
        if let LoadProgress::Committed(_) = progress {
            self.end_turn(id);
        }
        Ok(progress)
    }

    /// Reports for a load that was asked to compare itself: a version that conflicts with it, or `None`; then the load is
    /// committed. `number` names the question; `None`: any. Returns whether the report was waited for. The outcome of the
    /// load is learned by another request for its commit.
    ///
    /// `leads` says whether the caller commits what waits. Otherwise the thread of [`Sequencer::watch_report`] does, and
    /// this waits for nothing.
    pub fn report_load(
        &self,
        load: RequestId,
        number: Option<u64>,
        collision: Option<Version>,
        leads: bool,
    ) -> bool {
        let me = self.me.clone();
        let on_answer = move |answer: Result<LoadProgress, Error>| match (answer, me.upgrade()) {
            (Ok(LoadProgress::Committed(_)), Some(me)) => me.end_turn(load),
            (answer, _) => tracing::debug!(%load, ?answer, "a load that has reported is not committed"),
        };
        let reply = Reply::Callback(Callback::new(Box::new(on_answer)));
        let is_waited_for = self.queue.lock().report(load, number, collision, reply);
        self.turn_changed.notify_all();
        if leads {
            self.lead_after_report();
        }
        is_waited_for
    }

    /// Leads if requests can be served and nobody leads.
    fn lead_after_report(&self) {
        let takes_lead = self.queue.lock().takes_lead();
        if takes_lead {
            self.lead();
        }
    }

    /// Starts a thread that lets requests go on when a load has reported on a question, or does not in time. Without it,
    /// they go on when the next request comes.
    ///
    /// # Errors
    /// The error of the system, if it gives no thread. Then the load is refused.
    pub fn watch_report(&self, load: RequestId, number: u64) -> std::io::Result<()> {
        let (me, queue, changed) = (self.me.clone(), self.queue.clone(), self.turn_changed.clone());
        let thread =
            tidegraph_platform::spawn("load-report", move || watch_report(&me, &queue, &changed, number));
        if thread.is_err() {
            self.report_load(load, Some(number), Some(self.version()), true);
        }
        thread.map(drop)
    }

    /// Lets commits go on if the time of a load's report is over.
    pub fn end_late_report(&self) {
        self.advance_turn();
    }

    /// Returns the time for which commits still wait for the report of a load; `None` if they do not wait. A simulation
    /// delivers nothing else meanwhile: it has one thread, which must not wait.
    #[must_use]
    pub fn report_due(&self) -> Option<Duration> {
        self.queue.lock().report_due(None)
    }
}

/// Lets requests go on when a load has reported, or when its time is over.
fn watch_report(me: &Weak<Sequencer>, queue: &Mutex<Queue>, changed: &Condvar, number: u64) {
    {
        let mut queue = queue.lock();
        while let Some(left) = queue.report_due(Some(number)).filter(|left| !left.is_zero()) {
            changed.wait_for(&mut queue, left);
        }
        queue.advance();
    }
    if let Some(sequencer) = me.upgrade() {
        sequencer.lead_after_report();
    }
}

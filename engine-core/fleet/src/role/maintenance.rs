//! The periodic work that a graph needs once: trimming the log, removing segments of loads that the log no longer
//! names and checkpoints of partitions before a split, marking nodes as lost, stopping writes at a record that no replica
//! can apply, and refreshing the snapshot of the map. The process that holds the sequencer's lease does it.

use super::ArchivePosition;
use super::failure_detector::FailureDetector;
use super::former_checkpoints::FormerCheckpoints;
use crate::Error;
use crate::sequencing::{Candidate, Leadership};
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_cluster::{
    Change, Heartbeats, MapStore, NodeState, PartitionMap, is_applied_elsewhere, record_that_none_applies,
};
use tidegraph_platform::{Clock, Objects, metric};
use tidegraph_types::Version;

/// Settings of the leader's maintenance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MaintenanceConfig {
    /// Time without a heartbeat after which a node is lost.
    pub lost_after: Duration,
    /// Time between two rounds.
    pub step: Duration,
    /// Longest time that records which may be trimmed wait until they are archived.
    pub hold: Duration,
    /// Shortest time between two refreshes of the map's snapshot.
    pub snapshot_every: Duration,
}

impl Default for MaintenanceConfig {
    fn default() -> Self {
        Self {
            lost_after: Duration::from_secs(10),
            step: Duration::from_secs(2),
            hold: Duration::from_secs(3600),
            snapshot_every: Duration::from_secs(5),
        }
    }
}

/// Runs the maintenance while its candidate holds the lease.
#[derive(Debug)]
pub struct LeaderMaintenance {
    state: Arc<Mutex<State>>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    graph: String,
    map_store: Arc<dyn MapStore>,
    objects: Arc<Objects>,
    candidate: Arc<Candidate>,
    clock: Arc<dyn Clock>,
    config: MaintenanceConfig,
    failure_detector: FailureDetector,
    /// The map as of the last round, so that a round reads only what changed.
    map: Option<Arc<PartitionMap>>,
    /// The lowest version of the partitions' newest checkpoints, as of the round before.
    lowest: Version,
    /// The version up to which the checkpoints allow to trim, and the one up to which the log was trimmed.
    due: Version,
    trimmed: Version,
    /// How far the log is archived, if this process archives it, and since when the trim waits for it.
    archive: Option<Arc<ArchivePosition>>,
    waits_since: Option<Duration>,
    /// When the snapshot of the map was refreshed last.
    refreshed: Option<Duration>,
    former: FormerCheckpoints,
}

impl LeaderMaintenance {
    /// Starts a thread that runs a round every [`MaintenanceConfig::step`].
    ///
    /// # Errors
    /// The error of the system, if it gives no thread.
    pub fn start(
        graph: &str,
        map_store: Arc<dyn MapStore>,
        objects: Arc<Objects>,
        candidate: Arc<Candidate>,
        clock: Arc<dyn Clock>,
        config: MaintenanceConfig,
    ) -> std::io::Result<Self> {
        let step = config.step;
        let mut maintenance = Self::without_thread(graph, map_store, objects, candidate, clock, config);
        let (state, stopped) = (maintenance.state.clone(), maintenance.stop.clone());
        let run = move || {
            let (stopped, woken) = &*stopped;
            let mut stopped = stopped.lock();
            loop {
                woken.wait_while_for(&mut stopped, |stopped| !*stopped, step);
                if *stopped {
                    return;
                }
                parking_lot::MutexGuard::unlocked(&mut stopped, || state.lock().step());
            }
        };
        maintenance.thread = Some(tidegraph_platform::spawn("maintenance", run)?);
        Ok(maintenance)
    }

    /// Creates a maintenance that works only inside of [`LeaderMaintenance::step`]. For simulations.
    #[must_use]
    pub fn without_thread(
        graph: &str,
        map_store: Arc<dyn MapStore>,
        objects: Arc<Objects>,
        candidate: Arc<Candidate>,
        clock: Arc<dyn Clock>,
        config: MaintenanceConfig,
    ) -> Self {
        let state = State {
            graph: graph.to_owned(),
            map_store,
            objects,
            candidate,
            clock,
            config,
            failure_detector: FailureDetector::default(),
            map: None,
            lowest: Version(0),
            due: Version(0),
            trimmed: Version(0),
            archive: None,
            waits_since: None,
            refreshed: None,
            former: FormerCheckpoints::default(),
        };
        Self { state: Arc::new(Mutex::new(state)), stop: Arc::default(), thread: None }
    }

    /// Trims only what is archived from now on, or has waited for [`MaintenanceConfig::hold`]. Each round also sets the
    /// metric of the archive's lag.
    pub fn wait_for(&self, archive: Arc<ArchivePosition>) {
        self.state.lock().archive = Some(archive);
    }

    /// Runs one round.
    pub fn step(&self) {
        self.state.lock().step();
    }

    /// Stops the thread.
    pub fn stop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the maintenance thread panicked");
        }
    }
}

impl Drop for LeaderMaintenance {
    fn drop(&mut self) {
        self.stop();
    }
}

impl State {
    fn step(&mut self) {
        // Here, because a turn of the archiver may take long.
        if let Some(archive) = &self.archive {
            metric::archive_lag(&self.graph, archive.lag(self.clock.now()));
        }
        let Some(leading) = self.candidate.leadership() else {
            self.failure_detector.clear();
            self.map = None;
            self.former = FormerCheckpoints::default();
            metric::halted(&self.graph, 0);
            return;
        };
        match self.look() {
            Ok((map, beats)) => {
                self.check_replicas(&leading, &map, &beats);
                if let Err(error) = self.mark_lost(&map, &beats) {
                    tracing::warn!(%error, "cannot mark lost nodes");
                }
                if let Err(error) = self.refresh_snapshot(&map) {
                    tracing::warn!(%error, "cannot refresh the snapshot of the map: starts read more of it");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot find out which nodes are lost, and whether replicas apply all records");
            }
        }
        if let Err(error) = leading.sequencer().announce_complete() {
            tracing::warn!(%error, "cannot announce to readers up to where the log is complete");
        }
        if let Err(error) = self.trim(leading.sequencer()) {
            tracing::warn!(%error, "cannot trim the log");
        }
        if let Err(error) = self.former.remove_some(&self.objects) {
            tracing::warn!(%error, "cannot remove checkpoints of partitions before a split");
        }
    }

    /// Returns the newest map.
    fn newest_map(&mut self) -> Result<Arc<PartitionMap>, tidegraph_cluster::Error> {
        let map = self.map_store.load(&self.graph, self.map.as_ref())?;
        self.map = Some(map.clone());
        Ok(map)
    }

    /// Returns the newest map, and the heartbeats after it.
    fn look(&mut self) -> Result<(Arc<PartitionMap>, Heartbeats), tidegraph_cluster::Error> {
        Ok((self.newest_map()?, self.map_store.heartbeats(&self.graph)?))
    }

    /// Marks lost nodes as gone in the map. A node that is alive joins again by itself.
    fn mark_lost(&mut self, map: &PartitionMap, beats: &Heartbeats) -> Result<(), tidegraph_cluster::Error> {
        let now = self.clock.now();
        for node in self.failure_detector.find_silent(map, beats, now, self.config.lost_after) {
            let change = Change::SetNode { node, state: NodeState::Gone };
            tracing::warn!(%change, "a node sends no heartbeats");
            self.map_store.change(&self.graph, None, &[change])?;
        }
        Ok(())
    }

    /// Refreshes the snapshot with which processes start. Also after a failure, the next refresh is not before its time.
    fn refresh_snapshot(&mut self, map: &PartitionMap) -> Result<(), tidegraph_cluster::Error> {
        let now = self.clock.now();
        let is_due = |last: Duration| now.saturating_sub(last) >= self.config.snapshot_every;
        if !self.refreshed.is_none_or(is_due) {
            return Ok(());
        }
        self.refreshed = Some(now);
        self.map_store.refresh_snapshot(&self.graph, map)
    }

    /// Stops commits while there is a record that no replica of its partition can apply. They go on once a replica that
    /// answers reads has applied it: until then restarting nodes say nothing about the record.
    fn check_replicas(&self, leading: &Leadership, map: &PartitionMap, beats: &Heartbeats) {
        let partitions = map.graph().layout().all();
        let found = partitions.filter_map(|partition| record_that_none_applies(map, beats, partition));
        let known = leading.halted();
        let still = known
            .as_deref()
            .filter(|stuck| !is_applied_elsewhere(map, beats, stuck.partition, stuck.version, None));
        let first = found.chain(still).min_by_key(|stuck| stuck.version);
        metric::halted(&self.graph, first.map_or(0, |stuck| stuck.version.0));
        leading.halt(first.cloned());
    }

    /// Trims the log up to the version that every partition has in a checkpoint, and had in the round before: a reader
    /// that is just restoring an older checkpoint finds the rest of the log. Some versions below stay in the log, for
    /// requests that are sent again (TXN-4).
    fn trim(&mut self, sequencer: &tidegraph_txn::Sequencer) -> Result<(), Error> {
        let noted = self.map_store.checkpoints(&self.graph)?;
        let map = self.newest_map()?;
        let Some(restorable) = map.graph().restorable(&noted) else { return Ok(()) };
        let lowest = restorable.iter().map(|noted| noted.version).min().unwrap_or_default();
        let before = std::mem::replace(&mut self.lowest, lowest);
        if before > Version(0) && before < lowest {
            self.due = before;
        }
        let upto = self.archived_of(self.due);
        if upto > self.trimmed {
            self.trimmed = upto;
            // An archive goes on where the record is with which it ends.
            let most = if self.archive.is_some() { upto } else { upto.next() };
            let below =
                Version(self.due.next().0.saturating_sub(self.candidate.config().asked_again)).min(most);
            sequencer.trim(below)?;
            tracing::debug!(%below, "trimmed the log");
            self.former.note(map.graph(), &noted, upto);
            tidegraph_engine::sweep_below(&self.objects, upto, self.clock.wall())?;
        }
        Ok(())
    }

    /// Returns the version up to which records are archived, at most `due`. It is `due` if nobody archives, or if records
    /// have waited for too long: a log that fills its disk is worse than a gap in the archive.
    fn archived_of(&mut self, due: Version) -> Version {
        let archived = self.archive.as_ref().map_or(due, |archive| archive.get().min(due));
        if archived >= due {
            self.waits_since = None;
            return due;
        }
        let now = self.clock.now();
        let since = *self.waits_since.get_or_insert(now);
        if now.saturating_sub(since) < self.config.hold {
            return archived;
        }
        tracing::warn!(%archived, %due, "records are trimmed that are not archived: the archive is too far behind");
        self.waits_since = None;
        due
    }
}

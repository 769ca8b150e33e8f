//! What is to be done once for a graph, by whoever is its sequencer: trimming the log, removing the segments of loads that it does not name
//! any more, and finding nodes that are lost.

use super::silence::Silence;
use crate::sequencing::Candidate;
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_cluster::{Change, MapStore, NodeState};
use tidegraph_platform::{Clock, Objects};
use tidegraph_types::{PartitionCount, Version};

/// Settings of a caretaker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CaretakerConfig {
    /// A node without a sign of life for so long is lost.
    pub lost_after: Duration,
    /// Time between two looks.
    pub step: Duration,
}

impl Default for CaretakerConfig {
    fn default() -> Self {
        Self { lost_after: Duration::from_secs(10), step: Duration::from_secs(2) }
    }
}

/// Works while its candidate has the lease.
#[derive(Debug)]
pub struct Caretaker {
    care: Arc<Mutex<Care>>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Care {
    graph: String,
    partitions: PartitionCount,
    map_store: Arc<dyn MapStore>,
    objects: Arc<Objects>,
    candidate: Arc<Candidate>,
    clock: Arc<dyn Clock>,
    config: CaretakerConfig,
    silence: Silence,
    /// The lowest version of the newest checkpoints, as it was at the look before this one.
    lowest: Version,
}

impl Caretaker {
    /// Begins.
    pub fn start(
        graph: &str,
        partitions: PartitionCount,
        map_store: Arc<dyn MapStore>,
        objects: Arc<Objects>,
        candidate: Arc<Candidate>,
        clock: Arc<dyn Clock>,
        config: CaretakerConfig,
    ) -> std::io::Result<Self> {
        let step = config.step;
        let mut caretaker =
            Self::without_thread(graph, partitions, map_store, objects, candidate, clock, config);
        let (care, stopped) = (caretaker.care.clone(), caretaker.stop.clone());
        let run = move || {
            let (stopped, woken) = &*stopped;
            let mut stopped = stopped.lock();
            loop {
                woken.wait_while_for(&mut stopped, |stopped| !*stopped, step);
                if *stopped {
                    return;
                }
                parking_lot::MutexGuard::unlocked(&mut stopped, || care.lock().step());
            }
        };
        caretaker.thread = Some(std::thread::Builder::new().name("caretaker".into()).spawn(run)?);
        Ok(caretaker)
    }

    /// Is there, and does something only when [`Caretaker::step`] is called: for simulations.
    #[must_use]
    pub fn without_thread(
        graph: &str,
        partitions: PartitionCount,
        map_store: Arc<dyn MapStore>,
        objects: Arc<Objects>,
        candidate: Arc<Candidate>,
        clock: Arc<dyn Clock>,
        config: CaretakerConfig,
    ) -> Self {
        let care = Care {
            graph: graph.to_owned(),
            partitions,
            map_store,
            objects,
            candidate,
            clock,
            config,
            silence: Silence::default(),
            lowest: Version(0),
        };
        Self { care: Arc::new(Mutex::new(care)), stop: Arc::default(), thread: None }
    }

    /// One look.
    pub fn step(&self) {
        self.care.lock().step();
    }

    /// Ends.
    pub fn stop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the caretaker ended by a defect");
        }
    }
}

impl Drop for Caretaker {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Care {
    fn step(&mut self) {
        let Some(leading) = self.candidate.leading() else {
            self.silence.clear();
            return;
        };
        if let Err(error) = self.find_lost() {
            tracing::warn!(%error, "whether nodes are lost cannot be told");
        }
        if let Err(error) = leading.sequencer().settle() {
            tracing::warn!(%error, "the log's readers could not be told how far it is complete");
        }
        if let Err(error) = self.trim(leading.sequencer()) {
            tracing::warn!(error, "the log could not be trimmed");
        }
    }

    /// Tells the map of nodes that are lost. They join again by themselves if they are there.
    fn find_lost(&mut self) -> Result<(), tidegraph_cluster::Error> {
        let now = self.clock.now();
        let lost = self.silence.look(&*self.map_store, &self.graph, now, self.config.lost_after)?;
        for node in lost {
            let change = Change::SetNode { node, state: NodeState::Gone };
            tracing::warn!(%change, "no sign of life");
            self.map_store.change(&self.graph, None, &[change])?;
        }
        Ok(())
    }

    /// Lets the log forget what every partition has in a checkpoint, and had at the last look: so that whoever reads an older one
    /// just now finds the rest. Some versions below are kept, for requests that are asked again.
    fn trim(&mut self, sequencer: &tidegraph_txn::Sequencer) -> Result<(), String> {
        let noted = self.map_store.checkpoints(&self.graph).map_err(|error| error.to_string())?;
        if noted.len() < usize::from(self.partitions.get()) {
            return Ok(());
        }
        let lowest = noted.iter().map(|noted| noted.version).min().unwrap_or_default();
        let before = std::mem::replace(&mut self.lowest, lowest);
        if before > Version(0) && before < lowest {
            let below = Version(before.next().0.saturating_sub(self.candidate.config().asked_again));
            sequencer.trim(below).map_err(|error| error.to_string())?;
            tracing::debug!(%below, "the log is trimmed");
            let now = self.clock.wall();
            tidegraph_engine::sweep_below(&self.objects, before, now).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

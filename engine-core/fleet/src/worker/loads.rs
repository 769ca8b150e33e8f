//! Bulk loads of this worker.
//!
//! Roles: [`FleetLoad`] is a load that runs: a thread of its own asks the sequencer what transactions make meanwhile, and says so
//! that the load is still there. [`Gate`] holds readers back at the version before a load until the replicas have it.
//!
//! When the sequencer changes, nobody noted what was made in between: the load begins again at the next one, and what it read
//! before is read anew (the caller does that after a conflict).
//!
//! What must never happen: a load that is said to be refused while a sequencer may still commit it.

use super::Shared;
use super::told;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_engine::{LoadHold, Uncommitted};
use tidegraph_remote::{Commits, Error, LoadRequest, LoadStep, Outcome, RequestId};
use tidegraph_txn::LoadCommit;
use tidegraph_types::{ErrorCode, MadeVertex, Version};

/// How often a load says that it is there.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long a commit waits between attempts when a sequencer is away for long.
const REST: Duration = Duration::from_millis(500);
/// So few vertices in a piece are about the last ones: others are made all the time.
const FEW: usize = 1_000;
/// How often a load may be told that too much was made meanwhile, or that it answered too late.
const MOST_ROUNDS: u32 = 64;
/// How long readers are held back at the version before a load, at most: older ones are not kept for much longer.
const LONGEST_GATE: Duration = Duration::from_secs(45);
/// How often replicas are asked whether they have a load.
const GATE_LOOK: Duration = Duration::from_millis(50);

/// The sequencer's name for a load.
pub(super) fn id_of(load_id: &str) -> RequestId {
    RequestId(tidegraph_types::RequestId::of_text(load_id).0.to_le_bytes())
}

/// A load that runs.
pub(super) struct FleetLoad {
    watched: Arc<Watched>,
    thread: Option<JoinHandle<()>>,
}

struct Watched {
    shared: Arc<Shared>,
    id: RequestId,
    made: Mutex<Made>,
    over: Mutex<bool>,
    ended: Condvar,
}

/// What transactions made while the load ran.
#[derive(Default)]
struct Made {
    /// Everything above this version is known.
    since: Version,
    /// Up to here.
    upto: Version,
    vertices: Vec<MadeVertex>,
}

impl FleetLoad {
    pub fn begin(shared: &Arc<Shared>, load_id: &str) -> Result<Self, tidegraph_engine::Error> {
        let watched = Arc::new(Watched {
            shared: shared.clone(),
            id: id_of(load_id),
            made: Mutex::default(),
            over: Mutex::default(),
            ended: Condvar::new(),
        });
        shared.sequencer.ask(|sequencer| watched.begin_at(sequencer)).map_err(told)?;
        let of = watched.clone();
        let thread = std::thread::Builder::new().name("load".into()).spawn(move || of.run());
        let thread = thread.map_err(|error| {
            tidegraph_engine::Error::new(ErrorCode::Internal, format!("no thread for a load: {error}"))
        })?;
        Ok(Self { watched, thread: Some(thread) })
    }
}

impl Drop for FleetLoad {
    fn drop(&mut self) {
        *self.watched.over.lock() = true;
        self.watched.ended.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of a load ended by a defect");
        }
        // One that does not hear of it forgets the load by itself.
        let id = self.watched.id;
        if let Err(error) = self.watched.shared.sequencer.ask_once(|sequencer| sequencer.end_load(id)) {
            tracing::debug!(%error, "the sequencer was not told that a load is over");
        }
    }
}

impl Watched {
    fn run(&self) {
        loop {
            {
                let mut over = self.over.lock();
                self.ended.wait_while_for(&mut over, |over| !*over, ASK_EVERY);
                if *over {
                    return;
                }
            }
            if let Err(error) = self.shared.sequencer.ask_once(|sequencer| self.catch_up(sequencer)) {
                tracing::debug!(%error, "a load could not ask what was made meanwhile");
            }
        }
    }

    /// Begins at a sequencer that does not know the load.
    fn begin_at(&self, sequencer: &impl Commits) -> Result<(), Error> {
        let mut made = self.made.lock();
        let begun = sequencer.watch_load(self.id, None)?;
        *made = Made { since: begun.upto, upto: begun.upto, vertices: Vec::new() };
        // What the load reads from here on has all that was made before.
        self.shared.at_least(begun.upto, begun.upto);
        Ok(())
    }

    /// Asks what was made since the last time.
    fn catch_up(&self, sequencer: &impl Commits) -> Result<(), Error> {
        loop {
            let above = self.made.lock().upto;
            let piece = match sequencer.watch_load(self.id, Some(above)) {
                Err(Error::LoadUnknown(reason)) => {
                    tracing::info!(reason, "a load begins again at another sequencer");
                    return self.begin_at(sequencer);
                }
                piece => piece?,
            };
            // What comes last is asked about when the load is committed.
            let is_last = piece.vertices.len() < FEW;
            let mut made = self.made.lock();
            if made.upto == above {
                made.vertices.extend(piece.vertices);
                made.upto = piece.upto.max(above);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// One attempt to commit: until it is committed, refused, or another attempt is to be made (`None`).
    fn attempt(&self, load: &LoadCommit, first_asked: Version) -> Result<Option<Version>, Error> {
        let sequencer = &self.shared.sequencer;
        let read_version = load.read_version;
        let conflict = |written| Error::Conflict { read_version, written };
        let compared = {
            let made = self.made.lock();
            // What was made before that nobody noted.
            let compared = load.compared.max(read_version);
            if made.since > compared {
                return Err(conflict(made.since));
            }
            let after = made.vertices.iter().filter(|made| made.version > compared);
            let mut after = after.map(|made| (made.version, made.gui, &made.id));
            if let Some(written) = load.vertices.collision(&mut after) {
                return Err(conflict(written));
            }
            made.upto.max(compared)
        };
        let request = LoadRequest {
            load_id: load.load_id.clone(),
            segments: load.segments.clone(),
            read_version,
            read_keys: load.read_keys.clone(),
            compared,
            first_asked,
        };
        match sequencer.ask_once(|sequencer| sequencer.commit_load(self.id, request))? {
            LoadStep::Committed(version) => Ok(Some(version)),
            LoadStep::Ask => {
                sequencer.ask_once(|sequencer| self.catch_up(sequencer))?;
                Ok(None)
            }
            LoadStep::Rest(rest) => {
                let mut rows = rest.iter().map(|made| (made.version, made.gui, &made.id));
                let collision = load.vertices.collision(&mut rows);
                // If it is too late, the next attempt hears so.
                if let Err(error) = sequencer.ask_once(|sequencer| sequencer.settle_load(self.id, collision))
                {
                    tracing::debug!(%error, "a load could not settle in time");
                }
                match collision {
                    // It never says anything else about this attempt, so nobody commits it.
                    Some(written) => Err(conflict(written)),
                    None => Ok(None),
                }
            }
        }
    }
}

impl LoadHold for FleetLoad {
    fn commit(&self, load: LoadCommit, go_on: &dyn Fn() -> bool) -> Result<Version, Uncommitted> {
        let (watched, shared) = (&*self.watched, &*self.watched.shared);
        let caught_up = shared.sequencer.ask(|sequencer| watched.catch_up(sequencer));
        caught_up.map_err(told)?;
        let first_asked = shared.newest_version();
        let (mut rounds, mut doubt) = (0, false);
        let version = loop {
            let error = match watched.attempt(&load, first_asked) {
                Ok(Some(version)) => break version,
                Ok(None) if rounds < MOST_ROUNDS => {
                    rounds += 1;
                    // It may be committed just now: the next attempt hears of it.
                    doubt = true;
                    continue;
                }
                Ok(None) => {
                    rounds += 1;
                    Error::Unavailable("transactions make more vertices than a load can compare".into())
                }
                Err(error) => error,
            };
            if super::sequencer::another_may(&error) && rounds <= MOST_ROUNDS && go_on() {
                // A sequencer that is away may take its time; one that is there and fails says no more after some attempts.
                if let Error::InDoubt(_) = error {
                    doubt = true;
                    rounds += 1;
                }
                tracing::debug!(%error, "a load is to be committed again");
                shared.clock.sleep(REST);
                continue;
            }
            if let Error::LoadUnknown(_) = error
                && let Err(error) = shared.sequencer.ask(|sequencer| watched.catch_up(sequencer))
            {
                tracing::debug!(%error, "a load could not begin again");
            }
            if !doubt {
                return Err(told(error).into());
            }
            // One that knows says what became of the attempts that were not answered.
            match shared.sequencer.ask(|sequencer| sequencer.outcome(watched.id, first_asked)) {
                Ok(Outcome::Committed(version)) => break version,
                Ok(Outcome::Refused) => return Err(told(error).into()),
                Ok(Outcome::Unknown) => return Err(Uncommitted { error: told(error), open: true }),
                Err(unanswered) if go_on() => {
                    tracing::debug!(error = %unanswered, "what became of a load cannot be asked now");
                    shared.clock.sleep(REST);
                }
                Err(_) => return Err(Uncommitted { error: told(error), open: true }),
            }
        };
        // It is there; whoever asks here next is to find it soon.
        while go_on() && shared.gate.holds(version) && shared.applied_everywhere(version).is_err() {
            shared.clock.sleep(GATE_LOOK);
        }
        shared.made_here(version, version);
        Ok(version)
    }
}

/// Holds readers back at the version before a bulk load until all replicas have it: a large one takes a while to apply, and
/// they would wait for it.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// The newest load that is committed.
    load: AtomicU64,
    /// The newest one that is known to be everywhere, or that nobody waits for any more.
    open: AtomicU64,
    /// Whether a thread looks.
    looking: AtomicBool,
}

impl Gate {
    /// Readers wait for this load, and for those before it.
    pub fn pass(&self, load: Version) {
        self.load.fetch_max(load.0, Ordering::AcqRel);
        self.open.fetch_max(load.0, Ordering::AcqRel);
    }

    /// A load is committed.
    pub fn hear(&self, load: Version) {
        self.load.fetch_max(load.0, Ordering::AcqRel);
    }

    /// Whether readers are held back before a load.
    pub fn holds(&self, load: Version) -> bool {
        self.open.load(Ordering::Acquire) < load.0
    }

    /// The version to read at, of a graph at this one.
    pub fn before(&self, newest: Version) -> Version {
        let load = self.load.load(Ordering::Acquire);
        if load > self.open.load(Ordering::Acquire) && load <= newest.0 { Version(load - 1) } else { newest }
    }
}

/// Looks for replicas that have the newest load, on a thread of its own, until they do.
pub(super) fn look_through_gate(shared: &Arc<Shared>) {
    let gate = &shared.gate;
    let load = Version(gate.load.load(Ordering::Acquire));
    if !gate.holds(load) || gate.looking.swap(true, Ordering::AcqRel) {
        return;
    }
    let of = shared.clone();
    let spawned = std::thread::Builder::new().name("load-gate".into()).spawn(move || {
        let end = of.clock.now() + LONGEST_GATE;
        while let Err(error) = of.applied_everywhere(load) {
            if of.clock.now() >= end {
                tracing::warn!(%load, %error, "a load is not everywhere; readers wait for it from now on");
                break;
            }
            if of.stopping.load(Ordering::Acquire) {
                break;
            }
            of.clock.sleep(GATE_LOOK);
        }
        of.gate.pass(load);
        of.gate.looking.store(false, Ordering::Release);
    });
    if let Err(error) = spawned {
        tracing::warn!(%error, "no thread to look for a load");
        gate.pass(load);
        gate.looking.store(false, Ordering::Release);
    }
}

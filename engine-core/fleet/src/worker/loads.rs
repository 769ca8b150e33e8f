//! Bulk loads of this worker.
//!
//! Roles: [`FleetLoad`] is a running load: its thread asks the sequencer which vertices transactions create meanwhile,
//! which also shows that the load is alive; a worker without threads asks between two batches of rows. Before its commit it asks which vertices they deleted and which edge ids
//! they took since it read. [`LoadGate`] keeps readers at the version before a load until the replicas
//! have applied it.
//!
//! When the sequencer changes, no process has recorded the vertices created in between. So the load
//! begins again at the next sequencer, and its caller reads the graph again, as after a conflict.
//!
//! What must never happen: a load is reported as refused while a sequencer may still commit it.

use super::Shared;
use super::to_engine_error;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_engine::{LoadCommitError, LoadHold};
use tidegraph_remote::{CommitOutcome, Commits, Committed, Error, LoadRequest, LoadStep, RequestId};
use tidegraph_txn::LoadCommit;
use tidegraph_types::{ErrorCode, LoadTurn, MadeVertex, Version};

/// Time between two requests of a load for created vertices.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Pause between two attempts to commit while no sequencer answers.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// An answer with fewer vertices is taken for the last one; transactions always create more.
const FEW: usize = 1_000;
/// Limit of attempts that fail because too many vertices were created, or the report came too late.
const MOST_ROUNDS: u32 = 64;
/// Longest time for which readers stay at the version before a load; nodes keep older versions for not much longer.
const LONGEST_GATE: Duration = Duration::from_secs(45);
/// Pause between two checks whether replicas have applied a load.
const GATE_POLL: Duration = Duration::from_millis(50);

/// A running load.
pub(super) struct FleetLoad {
    tracker: Arc<LoadTracker>,
    thread: Option<JoinHandle<()>>,
}

struct LoadTracker {
    shared: Arc<Shared>,
    id: RequestId,
    made: Mutex<MadeMeanwhile>,
    /// When it last asked, by the worker's clock.
    asked: Mutex<Duration>,
    over: Mutex<bool>,
    ended: Condvar,
}

/// Vertices that transactions created while the load ran.
#[derive(Default)]
struct MadeMeanwhile {
    /// The vertices of all versions above this one are known...
    since: Version,
    /// ...up to this version.
    upto: Version,
    vertices: Vec<MadeVertex>,
    /// The number with which the load last began.
    beginning: u64,
}

/// The changes that a load has compared before its commit.
struct ComparedChanges {
    /// Up to this version.
    upto: Version,
    /// Whether it has to ask for more before the next attempt.
    is_due: bool,
    /// Whether the sequencer tells them; one of an earlier release does not.
    is_told: bool,
}

impl FleetLoad {
    pub fn begin(shared: &Arc<Shared>, load_id: &str) -> Result<Self, tidegraph_engine::Error> {
        let tracker = Arc::new(LoadTracker {
            shared: shared.clone(),
            id: RequestId::of_text(load_id),
            made: Mutex::default(),
            asked: Mutex::new(shared.clock.now()),
            over: Mutex::default(),
            ended: Condvar::new(),
        });
        shared.sequencer.call(|sequencer| tracker.begin_at(sequencer)).map_err(to_engine_error)?;
        if !shared.threads {
            return Ok(Self { tracker, thread: None });
        }
        let of = tracker.clone();
        let thread = tidegraph_platform::spawn("load", move || of.run());
        let thread = thread.map_err(|error| {
            tidegraph_engine::Error::new(
                ErrorCode::Internal,
                format!("cannot start a thread for a load: {error}"),
            )
        })?;
        Ok(Self { tracker, thread: Some(thread) })
    }
}

impl Drop for FleetLoad {
    fn drop(&mut self) {
        *self.tracker.over.lock() = true;
        self.tracker.ended.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of a load panicked");
        }
        // A sequencer that does not get this request forgets the load by itself.
        let id = self.tracker.id;
        if let Err(error) = self.tracker.shared.sequencer.call_once(|sequencer| sequencer.end_load(id)) {
            tracing::debug!(%error, "cannot tell the sequencer that a load has ended");
        }
    }
}

impl LoadTracker {
    fn run(&self) {
        loop {
            {
                let mut over = self.over.lock();
                self.ended.wait_while_for(&mut over, |over| !*over, ASK_EVERY);
                if *over {
                    return;
                }
            }
            self.step();
        }
    }

    /// Asks once for the vertices that transactions created.
    fn step(&self) {
        *self.asked.lock() = self.shared.clock.now();
        if let Err(error) = self.shared.sequencer.call_once(|sequencer| self.catch_up(sequencer)) {
            tracing::debug!(%error, "a load cannot ask for created vertices");
        }
    }

    /// Begins the load at a sequencer that does not know it, or again at one that does. After that, no request that was
    /// sent before commits the load.
    fn begin_at(&self, sequencer: &impl Commits) -> Result<(), Error> {
        let mut made = self.made.lock();
        let beginning = self.shared.random.next_u64().max(1);
        let begun = sequencer.begin_load(self.id, beginning)?;
        *made = MadeMeanwhile { since: begun, upto: begun, vertices: Vec::new(), beginning };
        // Later reads of the load see all vertices created up to here.
        self.shared.note_version(begun, begun, None)
    }

    /// Asks for the vertices created since the last time.
    fn catch_up(&self, sequencer: &impl Commits) -> Result<(), Error> {
        loop {
            let above = self.made.lock().upto;
            let piece = match sequencer.watch_load(self.id, above) {
                Err(Error::LoadUnknown(reason)) => {
                    tracing::info!(reason, "a load begins again at another sequencer");
                    return self.begin_at(sequencer);
                }
                piece => piece?,
            };
            // The last vertices are compared when the load is committed.
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

    /// Compares the changes since the last time with a load.
    fn compare_changes(&self, load: &LoadCommit, compared: &mut ComparedChanges) -> Result<(), Error> {
        let conflict = |written| Error::Conflict { read_version: load.read_version, written };
        while compared.is_due {
            let above = compared.upto;
            let piece = match self.shared.sequencer.call_once(|sequencer| sequencer.load_changes(above)) {
                Err(Error::Unknown(_)) => {
                    (compared.is_due, compared.is_told) = (false, false);
                    return Ok(());
                }
                piece => piece?,
            };
            if piece.since > above {
                return Err(conflict(piece.since));
            }
            if let Some(written) = load.vertices.depends_on(&mut piece.changes.iter().copied()) {
                return Err(conflict(written));
            }
            compared.upto = above.max(piece.upto);
            // The last changes are compared when the load is committed.
            compared.is_due = piece.changes.len() >= FEW;
        }
        Ok(())
    }

    /// Makes one attempt to commit. Returns the version, or `None` if another attempt is needed.
    fn attempt(
        &self,
        load: &LoadCommit,
        first_asked: Version,
        changes: &mut ComparedChanges,
    ) -> Result<Option<Version>, Error> {
        let sequencer = &self.shared.sequencer;
        let read_version = load.read_version;
        let conflict = |written| Error::Conflict { read_version, written };
        self.compare_changes(load, changes)?;
        let (compared, beginning) = {
            let made = self.made.lock();
            // No process recorded the vertices created before `since`.
            let compared = load.compared.max(read_version);
            if made.since > compared {
                return Err(conflict(made.since));
            }
            let after = made.vertices.iter().filter(|made| made.version > compared);
            let mut after = after.map(|made| (made.version, made.gui, &made.id));
            if let Some(written) = load.vertices.collision(&mut after) {
                return Err(conflict(written));
            }
            (made.upto.max(compared), made.beginning)
        };
        let request = LoadRequest {
            load_id: load.load_id.clone(),
            segments: load.segments.clone(),
            read_version,
            read_keys: load.read_keys.clone(),
            compared,
            changes_compared: changes.is_told.then_some(changes.upto),
            first_asked,
            beginning,
        };
        match sequencer.call_once(|sequencer| sequencer.commit_load(self.id, request))? {
            LoadStep::Committed(version) => Ok(Some(version)),
            LoadStep::Ask => {
                changes.is_due = true;
                sequencer.call_once(|sequencer| self.catch_up(sequencer))?;
                Ok(None)
            }
            LoadStep::Rest(rest) => {
                let mut rows = rest.vertices.iter().map(|made| (made.version, made.gui, &made.id));
                let collision = load.vertices.conflict(&mut rows, &mut rest.changes.iter().copied());
                // If the report comes too late, the next attempt learns it.
                if let Err(error) = sequencer
                    .call_once(|sequencer| sequencer.report_load_collision(self.id, rest.question, collision))
                {
                    tracing::debug!(%error, "a load could not report in time");
                }
                match collision {
                    // This attempt is never reported as free of collisions, so it is not committed.
                    Some(written) => Err(conflict(written)),
                    None => Ok(None),
                }
            }
        }
    }
}

impl LoadHold for FleetLoad {
    fn go_on(&self) {
        let tracker = &*self.tracker;
        let is_due = || tracker.shared.clock.now().saturating_sub(*tracker.asked.lock()) >= ASK_EVERY;
        if self.thread.is_none() && is_due() {
            tracker.step();
        }
    }

    fn commit(&self, load: LoadCommit, go_on: &dyn Fn() -> bool) -> Result<Version, LoadCommitError> {
        let (tracker, shared) = (&*self.tracker, &*self.tracker.shared);
        let caught_up = shared.sequencer.call(|sequencer| tracker.catch_up(sequencer));
        caught_up.map_err(to_engine_error)?;
        let first_asked = shared.newest_version();
        let mut changes = ComparedChanges {
            upto: load.changes_compared.max(load.read_version),
            is_due: true,
            is_told: true,
        };
        let (mut rounds, mut doubt) = (0, false);
        let version = loop {
            let error = match tracker.attempt(&load, first_asked, &mut changes) {
                Ok(Some(version)) => break version,
                Ok(None) if rounds < MOST_ROUNDS => {
                    rounds += 1;
                    // It may be committed right now: the next attempt learns it.
                    doubt = true;
                    continue;
                }
                Ok(None) => {
                    rounds += 1;
                    Error::Unavailable(
                        "transactions create vertices faster than the load can compare them".into(),
                    )
                }
                Err(error) => error,
            };
            if super::sequencer::is_retryable(&error) && rounds <= MOST_ROUNDS && go_on() {
                // A sequencer may stay away for long, but the number of attempts that it leaves in doubt is limited.
                if let Error::InDoubt(_) = error {
                    doubt = true;
                    rounds += 1;
                }
                tracing::debug!(%error, "a commit of a load has to be sent again");
                shared.clock.sleep(RETRY_AFTER);
                continue;
            }
            if let Error::LoadUnknown(_) = error
                && let Err(error) = shared.sequencer.call(|sequencer| tracker.catch_up(sequencer))
            {
                tracing::debug!(%error, "a load cannot begin again");
            }
            shared.catch_up_after(&error);
            if !doubt {
                return Err(to_engine_error(error).into());
            }
            // The sequencer knows the outcome of the attempts that got no answer, once it takes none of them any more.
            let outcome = shared.sequencer.call(|sequencer| {
                tracker.begin_at(sequencer)?;
                sequencer.outcome(tracker.id, first_asked)
            });
            match outcome {
                Ok(CommitOutcome::Committed(version)) => break version,
                Ok(CommitOutcome::Refused) => return Err(to_engine_error(error).into()),
                Ok(CommitOutcome::Unknown | CommitOutcome::OtherRequest(_)) => {
                    return Err(LoadCommitError { error: to_engine_error(error), open: true });
                }
                Err(unanswered) if go_on() => {
                    tracing::debug!(error = %unanswered, "cannot ask for the outcome of a load");
                    shared.clock.sleep(RETRY_AFTER);
                }
                Err(_) => return Err(LoadCommitError { error: to_engine_error(error), open: true }),
            }
        };
        // The load is committed. The next reader here should find it soon.
        while go_on() && shared.gate.holds(version) && shared.applied_everywhere(version).is_err() {
            shared.clock.sleep(GATE_POLL);
        }
        shared.note_own_commit(Committed { version, schema: version, newest_token: None, earlier: None });
        Ok(version)
    }
}

/// Asks for the turn of a load; see [`tidegraph_engine::Backend::begin_turn`].
pub(super) fn begin_turn(
    shared: &Shared,
    load_id: &str,
    turn: LoadTurn,
) -> Result<Option<Version>, tidegraph_engine::Error> {
    let id = RequestId::of_text(load_id);
    let begun = shared.sequencer.call(|sequencer| match sequencer.load_turn(id, Some(turn.clone())) {
        // A sequencer of an earlier release gives no turns.
        Err(Error::Unknown(_)) => Ok(None),
        begun => begun,
    });
    let since = begun.map_err(to_engine_error)?;
    if let Some(since) = since {
        // The load reads at this version.
        shared.note_version(since, since, None).map_err(to_engine_error)?;
    }
    Ok(since)
}

/// Ends the turn of a load. A sequencer that does not get this request ends it after its time limit.
pub(super) fn end_turn(shared: &Shared, load_id: &str) {
    let id = RequestId::of_text(load_id);
    match shared.sequencer.call_once(|sequencer| sequencer.load_turn(id, None)) {
        Ok(_) | Err(Error::Unknown(_)) => {}
        Err(error) => tracing::debug!(%error, "cannot tell the sequencer that the turn of a load has ended"),
    }
}

/// Keeps readers at the version before a bulk load until all replicas have applied it. Otherwise they would wait while
/// replicas apply a large load.
#[derive(Debug, Default)]
pub(super) struct LoadGate {
    /// Version of the newest committed load.
    load: AtomicU64,
    /// Version of the newest load that all replicas have applied, or that is no longer waited for.
    opened: AtomicU64,
    /// Whether a thread asks replicas.
    looking: AtomicBool,
}

impl LoadGate {
    /// Lets readers pass a load and all earlier ones.
    pub fn open(&self, load: Version) {
        self.load.fetch_max(load.0, Ordering::AcqRel);
        self.opened.fetch_max(load.0, Ordering::AcqRel);
    }

    /// Notes a committed load.
    pub fn note(&self, load: Version) {
        self.load.fetch_max(load.0, Ordering::AcqRel);
    }

    /// Whether readers stay before a load.
    pub fn holds(&self, load: Version) -> bool {
        self.opened.load(Ordering::Acquire) < load.0
    }

    /// Returns the version to read at, for a graph whose newest version is `newest`.
    pub fn before(&self, newest: Version) -> Version {
        let load = self.load.load(Ordering::Acquire);
        if load > self.opened.load(Ordering::Acquire) && load <= newest.0 {
            Version(load - 1)
        } else {
            newest
        }
    }
}

/// Starts a thread that opens the gate when all replicas have applied the newest load.
pub(super) fn watch_gate(shared: &Arc<Shared>) {
    let gate = &shared.gate;
    let load = Version(gate.load.load(Ordering::Acquire));
    if !gate.holds(load) || gate.looking.swap(true, Ordering::AcqRel) {
        return;
    }
    let of = shared.clone();
    let spawned = tidegraph_platform::spawn("load-gate", move || {
        let end = of.clock.now() + LONGEST_GATE;
        while let Err(error) = of.applied_everywhere(load) {
            if of.clock.now() >= end {
                tracing::warn!(%load, %error, "some replicas have not applied a load; readers wait for them from now on");
                break;
            }
            if of.stopping.load(Ordering::Acquire) {
                break;
            }
            of.clock.sleep(GATE_POLL);
        }
        of.gate.open(load);
        of.gate.looking.store(false, Ordering::Release);
    });
    if let Err(error) = spawned {
        tracing::warn!(%error, "cannot start a thread that waits for a load");
        gate.open(load);
        gate.looking.store(false, Ordering::Release);
    }
}

//! Bulk loads of workers, as the sequencer sees them.
//!
//! A load reads the graph, writes segments, and is then committed by one record. A vertex that a transaction creates
//! meanwhile must not share a GUI with another id of the load (IDS-1). A vertex that a transaction deletes, or an edge id
//! that it takes, must not be one that the load has met. The sequencer records the created vertices and the changes; the
//! load, which knows its ids, compares.
//!
//! Flow:
//! 1. The load *begins*: the sequencer starts to record. The load asks for created vertices repeatedly, which also
//!    shows that it is alive; vertices that all loads have compared are forgotten.
//! 2. The load asks for its *commit*, and says up to which version it has compared. The sequencer sends it the vertices
//!    and changes after that, and serves no other request until the load answers or 500 ms have passed; it holds no lock
//!    and no thread of a caller meanwhile. If there are too many, it tells the load to ask for them first.
//! 3. The load *reports* whether one of them conflicts with it. The sequencer then writes the
//!    record, or refuses the load as a conflict.
//!
//! A load that has asked for its commit without an answer, and gives that attempt up, begins again. Then a request of
//! before that is late commits nothing, and the load may remove the segments that it names.
//!
//! What must never happen: a load that is committed twice (its record has its id:
//! LOAD-1), or together with vertices that it did not compare, or with segments that it has removed; an answer that a
//! load is not committed while it still may be, or by a process that cannot know.

use super::to_remote_error;
use crate::sequencing::Leadership;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use tidegraph_platform::Clock;
use tidegraph_remote::{Error, LastChanges, LoadRequest, LoadStep, RequestId};
use tidegraph_txn::{Comparison, LoadCommit, LoadProgress, LoadWatch, NewVertices, ReportLimit};
use tidegraph_types::{Epoch, Gui, LoadChange, MadeSince, MadeVertex, Str, Version};

/// Silence after which a load is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// How long the sequencer waits for a load's report on the last vertices.
const REPORT_WITHIN: Duration = Duration::from_millis(500);
/// Limit of vertices, and of changes, that a load compares while the sequencer waits.
const MOST_LAST: usize = 4_096;
/// Changes in one answer.
pub(super) const CHANGES_AT_ONCE: usize = 1 << 16;
/// Bytes of vertices in one answer.
const PIECE_BYTES: usize = 4 << 20;
/// Limit of the beginnings of one load at one sequencer.
const MOST_BEGINNINGS: usize = 4_096;
/// Limit of loads at the same time.
const MOST_LOADS: usize = 1_024;

/// The running loads, by request id.
#[derive(Debug, Default)]
pub(super) struct ActiveLoads(Mutex<FxHashMap<RequestId, ActiveLoad>>);

#[derive(Debug)]
struct ActiveLoad {
    watch: Arc<LoadWatch>,
    /// Epoch of the sequencer that records for the load.
    epoch: Epoch,
    /// The number with which the load last began, and those of its earlier beginnings.
    beginning: u64,
    earlier: Vec<u64>,
    /// Version up to which the load has asked.
    compared: Version,
    heard: Duration,
    /// Number of attempts that may commit the load.
    committing: Arc<AtomicUsize>,
}

/// An attempt that may commit a load. It is over when this is dropped.
#[derive(Debug)]
struct Attempt(Arc<AtomicUsize>);

impl Attempt {
    fn new(committing: &Arc<AtomicUsize>) -> Self {
        committing.fetch_add(1, Ordering::AcqRel);
        Self(committing.clone())
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a load has to do before it can be committed.
enum LoadTask {
    Compare(LastChanges),
    /// There is too much to compare while all commits wait.
    Ask,
}

impl ActiveLoads {
    /// Forgets loads that are silent, and their turns, or loads that began at an earlier sequencer.
    pub fn sweep(&self, leading: &Leadership, now: Duration) {
        leading.sequencer().end_late_report();
        let mut silent = Vec::new();
        self.0.lock().retain(|id, load| {
            let is_silent = now.saturating_sub(load.heard) >= FORGOTTEN_AFTER;
            if is_silent {
                silent.push(*id);
            }
            load.epoch == leading.epoch() && !is_silent
        });
        silent.into_iter().for_each(|id| leading.sequencer().end_turn(id));
    }

    /// Begins a load, or begins it again: from then on it is not committed by a request of an earlier beginning.
    pub fn begin(
        &self,
        leading: &Leadership,
        now: Duration,
        id: RequestId,
        beginning: u64,
    ) -> Result<Version, Error> {
        let watch = Arc::new(leading.sequencer().begin_load());
        let upto = leading.sequencer().version();
        let mut held = self.0.lock();
        let known = held.len();
        let earlier = match held.get_mut(&id) {
            Some(load) if load.is_committing() => {
                return Err(Error::Unavailable("the load is being committed".into()));
            }
            Some(load) if beginning != 0 && load.earlier.contains(&beginning) => {
                return Err(unknown("it has begun again since this request was sent"));
            }
            Some(load) if load.earlier.len() >= MOST_BEGINNINGS => {
                return Err(Error::Limit(format!("the load has begun {MOST_BEGINNINGS} times, the limit")));
            }
            Some(load) => {
                let mut earlier = std::mem::take(&mut load.earlier);
                if load.beginning != beginning {
                    earlier.push(load.beginning);
                }
                earlier
            }
            None if known >= MOST_LOADS => {
                return Err(Error::Limit(format!("{MOST_LOADS} loads run already, the limit")));
            }
            None => Vec::new(),
        };
        let load = ActiveLoad {
            watch,
            epoch: leading.epoch(),
            beginning,
            earlier,
            compared: upto,
            heard: now,
            committing: Arc::default(),
        };
        held.insert(id, load);
        Ok(upto)
    }

    /// Whether the load has begun here.
    pub fn is_known(&self, id: RequestId) -> bool {
        self.0.lock().contains_key(&id)
    }

    pub fn made_since(
        &self,
        leading: &Leadership,
        now: Duration,
        id: RequestId,
        above: Version,
    ) -> Result<MadeSince, Error> {
        let watch = self.with(leading, now, id, |load| load.watch.clone())?;
        let made = leading.sequencer().made_since(&watch, above, PIECE_BYTES);
        let made = made.ok_or_else(|| unknown("vertices created since that version were not recorded"))?;
        let all = {
            let mut held = self.0.lock();
            if let Some(load) = held.get_mut(&id) {
                load.compared = load.compared.max(above);
            }
            held.values().map(|load| load.compared).min()
        };
        if let Some(all) = all {
            leading.sequencer().forget_made(all);
        }
        Ok(made)
    }

    pub fn end(&self, id: RequestId) {
        self.0.lock().remove(&id);
    }

    /// Whether the load may be committed at any moment.
    pub fn is_committing(&self, id: RequestId) -> bool {
        self.0.lock().get(&id).is_some_and(ActiveLoad::is_committing)
    }

    /// Commits a load, or returns what it has to compare first. `watched` says whether a thread limits the wait for its
    /// report.
    pub fn commit(
        &self,
        leading: &Leadership,
        clock: &Arc<dyn Clock>,
        watched: bool,
        id: RequestId,
        load: LoadRequest,
    ) -> Result<LoadStep, Error> {
        if id != RequestId::of_text(&load.load_id) {
            return Err(Error::NotAllowed(format!(
                "the id of the request is not that of load {:?}",
                load.load_id
            )));
        }
        let (tasks, task) = channel();
        // Together: a load that begins again either sees this attempt, or refuses it.
        let found = self.with(leading, clock.now(), id, |held| {
            // A process of an earlier release draws no numbers.
            if load.beginning != held.beginning && load.beginning != 0 {
                return Err(unknown("it has begun again since this request was sent"));
            }
            Ok((held.watch.clone(), Attempt::new(&held.committing)))
        });
        let (watch, attempt) = match found.flatten() {
            Ok(found) => found,
            Err(error) => return committed_before(leading, id, load.first_asked, error),
        };
        let commit = LoadCommit {
            load_id: load.load_id,
            segments: load.segments,
            read_version: load.read_version,
            read_keys: load.read_keys,
            compared: load.compared,
            changes_compared: load.changes_compared.unwrap_or(load.read_version),
            first_asked: Some(load.first_asked),
            vertices: Box::new(RemoteVertices {
                tasks,
                limit: ReportLimit { clock: clock.clone(), within: REPORT_WITHIN },
                compares_changes: load.changes_compared.is_some(),
                _watch: watch.clone(),
                _attempt: attempt,
            }),
        };
        match (leading.sequencer().commit_or_ask_load(&watch, commit), task.try_recv()) {
            (Ok(LoadProgress::Committed(version)), _) => Ok(LoadStep::Committed(version)),
            (Ok(LoadProgress::Asked(number)), Ok(LoadTask::Compare(rest))) => {
                if watched {
                    leading.sequencer().watch_report(id, number).map_err(|error| {
                        Error::Unavailable(format!("cannot start a thread for the load: {error}"))
                    })?;
                }
                Ok(LoadStep::Rest(LastChanges { question: number, ..rest }))
            }
            (_, Ok(LoadTask::Ask)) => Ok(LoadStep::Ask),
            (Ok(LoadProgress::Asked(_)), Err(_)) => {
                Err(Error::InDoubt("the load has nothing to compare".into()))
            }
            (Err(error), _) => {
                if let tidegraph_txn::Error::Conflict { .. } | tidegraph_txn::Error::LoadTurn { .. } = error {
                    // A deposed sequencer does not know whether its successor has committed the load (TXN-4).
                    leading.sequencer().prove().map_err(to_remote_error)?;
                }
                Err(to_remote_error(error))
            }
        }
    }

    /// Gives a load that was heard of to a function, under the lock.
    fn with<T>(
        &self,
        leading: &Leadership,
        now: Duration,
        id: RequestId,
        with: impl FnOnce(&mut ActiveLoad) -> T,
    ) -> Result<T, Error> {
        let mut held = self.0.lock();
        let load = held.get_mut(&id).filter(|load| load.epoch == leading.epoch());
        let load =
            load.ok_or_else(|| unknown("it began at another sequencer, or was silent for too long"))?;
        load.heard = now;
        Ok(with(load))
    }
}

impl ActiveLoad {
    fn is_committing(&self) -> bool {
        self.committing.load(Ordering::Acquire) > 0
    }
}

/// Answers for a load that is not known here: an earlier sequencer may have
/// committed it, or it was forgotten after its commit.
fn committed_before(
    leading: &Leadership,
    id: RequestId,
    first_asked: Version,
    unknown: Error,
) -> Result<LoadStep, Error> {
    // After this no record of an earlier sequencer can reach the log any more.
    leading.sequencer().prove().map_err(to_remote_error)?;
    match leading.sequencer().outcome(id, first_asked).map_err(to_remote_error)? {
        Some(version) => Ok(LoadStep::Committed(version)),
        None => Err(unknown),
    }
}

fn unknown(reason: &str) -> Error {
    Error::LoadUnknown(reason.into())
}

/// The vertices of a load that another process runs.
#[derive(Debug)]
struct RemoteVertices {
    tasks: Sender<LoadTask>,
    limit: ReportLimit,
    /// Whether that process compares changes; one of an earlier release does not.
    compares_changes: bool,
    /// What transactions create is recorded until the attempt is over.
    _watch: Arc<LoadWatch>,
    _attempt: Attempt,
}

impl NewVertices for RemoteVertices {
    fn collision(&self, made: &mut dyn Iterator<Item = (Version, Gui, &Str)>) -> Option<Version> {
        made.next().map(|(version, ..)| version)
    }

    fn compare(
        &self,
        made: &mut dyn Iterator<Item = (Version, Gui, &Str)>,
        changes: &mut dyn Iterator<Item = (Version, LoadChange)>,
    ) -> Comparison {
        let mut rest = LastChanges::default();
        let too_many = |version| {
            // The commit is refused; the load only hears that it has to ask first.
            let _ = self.tasks.send(LoadTask::Ask);
            Comparison::Conflict(version)
        };
        for (version, change) in changes {
            if !self.compares_changes {
                return Comparison::Conflict(version);
            }
            if rest.changes.len() == MOST_LAST {
                return too_many(version);
            }
            rest.changes.push((version, change));
        }
        for (version, gui, id) in made {
            if rest.vertices.len() == MOST_LAST {
                return too_many(version);
            }
            rest.vertices.push(MadeVertex { version, gui, id: id.clone() });
        }
        let changed = rest.changes.first().map(|(version, _)| *version);
        let Some(first) = changed.or_else(|| rest.vertices.first().map(|made| made.version)) else {
            return Comparison::Free;
        };
        match self.tasks.send(LoadTask::Compare(rest)) {
            Ok(()) => Comparison::Asked(self.limit.clone()),
            Err(_) => Comparison::Conflict(first),
        }
    }
}

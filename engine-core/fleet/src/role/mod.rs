//! The duties of the sequencer besides sequencing: it answers requests to commit, trims the log, and finds lost nodes.
//!
//! Roles: [`SequencerService`] answers other processes with the sequencer of this one, and for bulk loads with
//! `loads.rs`; [`CheckpointRecovery`] says from which version a new sequencer continues; [`LeaderMaintenance`] works
//! while this process holds the lease, with `failure_detector.rs` and `former_checkpoints.rs`.
//!
//! What must never happen: a log that is trimmed above a version that some partition lacks in its checkpoints.

mod archive_position;
mod failure_detector;
mod former_checkpoints;
mod loads;
mod maintenance;

pub use archive_position::ArchivePosition;
pub use maintenance::{LeaderMaintenance, MaintenanceConfig};

use crate::sequencing::{Candidate, Leadership, RecoveryBase, RecoverySource};
use loads::ActiveLoads;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegraph_cluster::MapStore;
use tidegraph_engine::{ChangeFeed, FeedError};
use tidegraph_log::{FirstShard, LogBackend, LogStore};
use tidegraph_platform::{Clock, Objects, metric};
use tidegraph_remote::{
    ChangesAnswer, CommitOutcome, Commits, Committed, Earlier, Error, LoadRequest, LoadStep, Newest,
    RequestId,
};
use tidegraph_storage::Manifest;
use tidegraph_types::{
    ChangesRequest, CommitRequest, Epoch, LoadChanges, LoadTurn, MadeSince, Sid, Str, Token, Version,
};

/// Answers requests to the sequencer, if this process is it. It exists before its candidate does.
#[derive(Clone, Debug, Default)]
pub struct SequencerService {
    candidate: Arc<OnceLock<Arc<Candidate>>>,
    loads: Arc<ActiveLoads>,
    /// Reads the log for the change stream.
    feed: Arc<OnceLock<ChangeFeed>>,
}

impl SequencerService {
    /// Tells the change stream from now on, with readers of this log.
    pub fn tell_changes_of(&self, log: Arc<dyn LogBackend>, clock: Arc<dyn Clock>) {
        // A service has one log.
        let _ = self.feed.set(ChangeFeed::new(Arc::new(FirstShard(log)), clock));
    }

    /// Answers with the sequencer of `candidate` from now on.
    pub fn attach(&self, candidate: &Arc<Candidate>) {
        // A service has one candidate.
        let _ = self.candidate.set(candidate.clone());
    }

    /// Returns the time of day, in milliseconds since 1970.
    fn now_ms(&self) -> i64 {
        self.candidate.get().map_or(0, |candidate| candidate.clock().wall().as_millisecond())
    }

    fn candidate(&self) -> Result<&Arc<Candidate>, Error> {
        self.candidate.get().ok_or_else(|| Error::NotSequencer("it is no candidate".into()))
    }

    fn leadership(&self) -> Result<Arc<Leadership>, Error> {
        Ok(self.leadership_now()?.0)
    }

    /// Returns the sequencer, and the time of its clock.
    fn leadership_now(&self) -> Result<(Arc<Leadership>, Duration), Error> {
        let leading = self
            .candidate
            .get()
            .and_then(|candidate| Some((candidate.leadership()?, candidate.clock().now())));
        leading.ok_or_else(|| Error::NotSequencer("another process holds the lease, or none does".into()))
    }
}

/// Fails if no replica can apply a record of the log: what is committed after it could not be read.
fn check_halted(leading: &Leadership) -> Result<(), Error> {
    let Some(stuck) = leading.halted() else { return Ok(()) };
    let (partition, version, reason) = (stuck.partition, stuck.version, &stuck.reason);
    Err(Error::Halted(format!(
        "writes are stopped, because no replica of partition {partition} can apply the record of version {version}: \
         {reason}. Reads go on at version {}",
        version.0.saturating_sub(1)
    )))
}

/// Converts an error of the sequencer to one for other processes.
fn to_remote_error(error: tidegraph_txn::Error) -> Error {
    use tidegraph_txn::Error as Txn;
    match error {
        Txn::Conflict { read_version, written } => Error::Conflict { read_version, written },
        // Processes of an earlier release run their transaction again after this error.
        Txn::LoadTurn { read_version } => Error::Conflict { read_version, written: read_version.next() },
        // The request is not committed now, but may have been before. A caller that sends it for the first time runs
        // its transaction again; one that sent it before asks for its outcome (TXN-4).
        Txn::Forgotten { read_version, forgotten, .. } => {
            Error::Conflict { read_version, written: forgotten }
        }
        error @ (Txn::TooLarge { .. } | Txn::DictionaryFull { .. }) => Error::Limit(error.to_string()),
        error @ Txn::NotStorable { .. } => Error::NotAllowed(error.to_string()),
        // The caller sends the request again, to this sequencer or the next one, and learns whether it is committed.
        error @ (Txn::Unavailable { .. } | Txn::InDoubt { .. }) => Error::InDoubt(error.to_string()),
        other => Error::NotAllowed(other.to_string()),
    }
}

impl SequencerService {
    /// Commits requests of several callers as one group, as [`Commits::commit`] does for calls at the same moment. For
    /// simulations, which have one thread.
    ///
    /// # Errors
    /// [`Error::NotSequencer`] for all; each answer has the errors of [`Commits::commit`].
    #[cfg(feature = "testing")]
    pub fn commit_together(
        &self,
        requests: Vec<(RequestId, CommitRequest)>,
    ) -> Result<Vec<Result<Version, Error>>, Error> {
        let leading = self.leadership()?;
        check_halted(&leading)?;
        let now_ms = || self.now_ms();
        let known = |(id, request): (_, CommitRequest)| {
            CommitRequest { request: Some(id), ..request }.taken_at(now_ms)
        };
        let requests = requests.into_iter().map(known).collect();
        let answers = leading.sequencer().commit_together(requests);
        Ok(answers.into_iter().map(|answer| answer.map_err(to_remote_error)).collect())
    }
}

impl Commits for SequencerService {
    fn commit(&self, id: RequestId, request: CommitRequest) -> Result<Committed, Error> {
        let leading = self.leadership()?;
        let request = CommitRequest { request: Some(id), ..request };
        let request = request.taken_at(|| self.now_ms());
        check_halted(&leading)?;
        let begun = leading.now();
        let committed = leading.sequencer().commit(request);
        let outcome = match &committed {
            Ok(_) | Err(tidegraph_txn::Error::Repeated { .. }) => "committed",
            Err(tidegraph_txn::Error::Conflict { .. } | tidegraph_txn::Error::LoadTurn { .. }) => "conflict",
            Err(tidegraph_txn::Error::Unavailable { .. } | tidegraph_txn::Error::InDoubt { .. }) => {
                "unavailable"
            }
            Err(_) => "refused",
        };
        let graph = self.candidate.get().map_or("", |candidate| candidate.graph());
        metric::commit(graph, outcome, leading.now().saturating_sub(begun));
        let (version, earlier) = match committed {
            Err(tidegraph_txn::Error::Repeated { version }) => (version, Some(Earlier::Same)),
            Err(tidegraph_txn::Error::KeyReused { version }) => (version, Some(Earlier::OtherRequest)),
            committed => (committed.map_err(to_remote_error)?, None),
        };
        let sequencer = leading.sequencer();
        let (schema, newest_token) = (sequencer.newest_schema(), Some(sequencer.newest_token()));
        Ok(Committed { version, schema, newest_token, earlier })
    }

    fn outcome(&self, id: RequestId, since: Version) -> Result<CommitOutcome, Error> {
        let leading = self.leadership()?;
        leading.sequencer().end_late_report();
        if self.loads.is_committing(id) {
            return Err(Error::Unavailable("the load is being committed".into()));
        }
        // After this no record of an earlier sequencer can reach the log any more, so the answer stays true (TXN-4).
        leading.sequencer().prove().map_err(to_remote_error)?;
        match leading.sequencer().outcome(id, since) {
            Ok(Some(version)) => Ok(CommitOutcome::Committed(version)),
            Ok(None) => Ok(CommitOutcome::Refused),
            Err(tidegraph_txn::Error::Forgotten { .. }) => Ok(CommitOutcome::Unknown),
            Err(error) => Err(to_remote_error(error)),
        }
    }

    fn outcome_of_key(&self, id: RequestId, since: Version) -> Result<CommitOutcome, Error> {
        match self.leadership()?.sequencer().outcome_of_key(id, since) {
            Ok(Some(version)) => Ok(CommitOutcome::Committed(version)),
            Ok(None) => Ok(CommitOutcome::Refused),
            Err(tidegraph_txn::Error::KeyReused { version }) => Ok(CommitOutcome::OtherRequest(version)),
            Err(tidegraph_txn::Error::Forgotten { .. }) => Ok(CommitOutcome::Unknown),
            Err(error) => Err(to_remote_error(error)),
        }
    }

    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        let leading = self.leadership()?;
        check_halted(&leading)?;
        leading.sequencer().intern(names).map_err(to_remote_error)
    }

    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        let leading = self.leadership()?;
        check_halted(&leading)?;
        leading.sequencer().hand_out_sids(count).map_err(to_remote_error)
    }

    fn newest(&self) -> Result<Newest, Error> {
        let (leading, now) = self.leadership_now()?;
        self.loads.sweep(&leading, now);
        // In this order: the answer names all loads, changes of the schema and tokens up to its version.
        let version = leading.newest().map_err(to_remote_error)?;
        let sequencer = leading.sequencer();
        let (load, schema) = (sequencer.newest_load(), sequencer.newest_schema());
        let newest_token = sequencer.newest_token();
        let halted = leading.halted().map(|stuck| stuck.version);
        Ok(Newest { version, epoch: leading.epoch(), load, schema, newest_token, halted })
    }

    fn changes(&self, request: &ChangesRequest, stop: &dyn Fn() -> bool) -> Result<ChangesAnswer, Error> {
        let leading = self.leadership()?;
        let feed = self.feed.get();
        let feed =
            feed.ok_or_else(|| Error::Unknown("this node reads no log for the change stream".into()))?;
        match feed.page(request, leading.sequencer().version(), stop) {
            Ok(page) => Ok(ChangesAnswer::Page(page)),
            Err(FeedError::None(none)) => Ok(ChangesAnswer::None(none)),
            Err(FeedError::Busy) => Ok(ChangesAnswer::Busy),
            Err(FeedError::Stopped) => Err(Error::Overdue),
            Err(error @ FeedError::Log(_)) => Err(Error::Unavailable(error.to_string())),
        }
    }

    fn tokens(&self, above: Token) -> Result<Vec<(Token, Str)>, Error> {
        let tokens = self.leadership()?.sequencer().tokens();
        Ok(tokens.into_iter().filter(|(token, _)| *token > above).collect())
    }

    fn begin_load(&self, id: RequestId, beginning: u64) -> Result<Version, Error> {
        let (leading, now) = self.leadership_now()?;
        self.loads.sweep(&leading, now);
        // A load that begins again may only want to know that it will not be committed.
        if !self.loads.is_known(id) {
            check_halted(&leading)?;
        }
        self.loads.begin(&leading, now, id, beginning)
    }

    fn watch_load(&self, id: RequestId, above: Version) -> Result<MadeSince, Error> {
        let (leading, now) = self.leadership_now()?;
        self.loads.sweep(&leading, now);
        self.loads.made_since(&leading, now, id, above)
    }

    fn load_changes(&self, above: Version) -> Result<LoadChanges, Error> {
        Ok(self.leadership()?.sequencer().load_changes(above, loads::CHANGES_AT_ONCE))
    }

    fn load_turn(&self, id: RequestId, turn: Option<LoadTurn>) -> Result<Option<Version>, Error> {
        let leading = self.leadership()?;
        let Some(turn) = turn else {
            leading.sequencer().end_turn(id);
            return Ok(None);
        };
        check_halted(&leading)?;
        leading.sequencer().begin_turn(id, turn, self.candidate()?.clock()).map_err(to_remote_error)
    }

    fn end_load(&self, id: RequestId) -> Result<(), Error> {
        self.loads.end(id);
        Ok(())
    }

    fn commit_load(&self, id: RequestId, load: LoadRequest) -> Result<LoadStep, Error> {
        let leading = self.leadership()?;
        check_halted(&leading)?;
        let candidate = self.candidate()?;
        self.loads.commit(&leading, candidate.clock(), candidate.has_threads(), id, load)
    }

    fn report_load_collision(
        &self,
        id: RequestId,
        question: u64,
        collision: Option<Version>,
    ) -> Result<(), Error> {
        // A process of an earlier release does not say which question it answers.
        let question = (question > 0).then_some(question);
        // This may run on the thread that reads a connection. With threads, another one waits for the log.
        let leads = !self.candidate()?.has_threads();
        if self.leadership()?.sequencer().report_load(id, question, collision, leads) {
            return Ok(());
        }
        Err(Error::LoadUnknown("no commit waits for its report".into()))
    }
}

/// Recovers a new sequencer from the oldest among the partitions' newest
/// checkpoints: the log is never trimmed above it.
pub struct CheckpointRecovery {
    /// The graph's name.
    pub graph: String,
    /// The map, which notes checkpoints.
    pub map_store: Arc<dyn MapStore>,
    /// The object store with the checkpoints.
    pub objects: Arc<Objects>,
    /// The log.
    pub log: Arc<dyn LogBackend>,
}

impl std::fmt::Debug for CheckpointRecovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckpointRecovery").field("graph", &self.graph).finish_non_exhaustive()
    }
}

impl RecoverySource for CheckpointRecovery {
    fn base(&self) -> Result<RecoveryBase, crate::Error> {
        let noted = self.map_store.checkpoints(&self.graph)?;
        let map = self.map_store.load(&self.graph, None)?;
        let restorable = map.graph().restorable(&noted).unwrap_or_default();
        let Some(oldest) = restorable.into_iter().min_by_key(|noted| noted.version) else {
            return Ok(RecoveryBase::default());
        };
        let manifest = Manifest::latest(&self.objects, &oldest.prefix)?;
        let manifest = manifest.ok_or_else(|| crate::Error::CheckpointGone {
            partition: oldest.partition,
            prefix: oldest.prefix.clone(),
        })?;
        Ok(RecoveryBase {
            version: manifest.version,
            epoch: manifest.epoch,
            next_sid: Sid(manifest.next_sid),
            tokens: manifest.tokens,
        })
    }

    fn open_log(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, tidegraph_log::Error> {
        self.log.open(epoch)
    }
}

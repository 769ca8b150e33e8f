//! What a node does as the sequencer, beside sequencing: it answers commits, sees to the log's length, and notices nodes
//! that are lost.
//!
//! Roles: [`SequencerDoor`] answers others from the candidate of this process, about bulk loads with `loads.rs`; [`FromCheckpoints`] says from where a new
//! sequencer goes on; [`Caretaker`] works while this process has the lease.
//!
//! What must never happen: a log that is trimmed above what a checkpoint of each partition holds.

mod caretaker;
mod loads;
mod silence;

pub use caretaker::{Caretaker, CaretakerConfig};

use crate::node::LogAccess;
use crate::sequencing::{Base, Candidate, Leading, Takeover};
use loads::HeldLoads;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegraph_cluster::MapStore;
use tidegraph_log::LogStore;
use tidegraph_platform::{Objects, metric};
use tidegraph_remote::{Commits, Committed, Error, LoadRequest, LoadStep, Newest, Outcome, RequestId};
use tidegraph_storage::Manifest;
use tidegraph_types::{CommitRequest, Epoch, MadeSince, PartitionCount, Sid, Str, Token, Version};

/// Answers for the sequencer, if this process is it. There before the candidate is.
#[derive(Clone, Debug, Default)]
pub struct SequencerDoor {
    candidate: Arc<OnceLock<Arc<Candidate>>>,
    loads: Arc<HeldLoads>,
}

impl SequencerDoor {
    /// From now on there is a candidate behind it.
    pub fn open(&self, candidate: &Arc<Candidate>) {
        // A door has one candidate.
        let _ = self.candidate.set(candidate.clone());
    }

    fn leading(&self) -> Result<Arc<Leading>, Error> {
        Ok(self.now_leading()?.0)
    }

    /// The sequencer, and the time by its clock.
    fn now_leading(&self) -> Result<(Arc<Leading>, Duration), Error> {
        let leading =
            self.candidate.get().and_then(|candidate| Some((candidate.leading()?, candidate.clock().now())));
        leading.ok_or_else(|| Error::NotSequencer("another process has the lease, or nobody".into()))
    }
}

/// What another process is told of an error of the sequencer.
fn told(error: tidegraph_txn::Error) -> Error {
    use tidegraph_txn::Error as Txn;
    match error {
        Txn::Conflict { read_version, written } => Error::Conflict { read_version, written },
        // It is not committed now, and may have been before. Who never asked before knows that it was not and runs it again; who did
        // asks for its outcome.
        Txn::Forgotten { read_version, forgotten, .. } => {
            Error::Conflict { read_version, written: forgotten }
        }
        error @ (Txn::TooLarge { .. } | Txn::DictionaryFull { .. }) => Error::Limit(error.to_string()),
        error @ Txn::NotStorable { .. } => Error::NotAllowed(error.to_string()),
        // Whether it is committed shows when it is asked again, of this sequencer or the next one.
        error @ Txn::Unavailable { .. } => Error::InDoubt(error.to_string()),
        other => Error::NotAllowed(other.to_string()),
    }
}

impl SequencerDoor {
    /// As [`Commits::commit`] for several callers who came at the same moment: for simulations, which have one thread.
    pub fn commit_together(
        &self,
        requests: Vec<(RequestId, CommitRequest)>,
    ) -> Result<Vec<Result<Version, Error>>, Error> {
        let leading = self.leading()?;
        let known = |(id, request)| CommitRequest { request: Some(id_of(id)), ..request };
        let requests = requests.into_iter().map(known).collect();
        let answers = leading.sequencer().commit_together(requests);
        Ok(answers.into_iter().map(|answer| answer.map_err(told)).collect())
    }
}

fn id_of(id: RequestId) -> tidegraph_types::RequestId {
    tidegraph_types::RequestId(u128::from_le_bytes(id.0))
}

impl Commits for SequencerDoor {
    fn commit(&self, id: RequestId, request: CommitRequest) -> Result<Committed, Error> {
        let request = CommitRequest { request: Some(id_of(id)), ..request };
        let leading = self.leading()?;
        let begun = leading.now();
        let committed = leading.sequencer().commit(request);
        let outcome = match &committed {
            Ok(_) => "committed",
            Err(tidegraph_txn::Error::Conflict { .. }) => "conflict",
            Err(tidegraph_txn::Error::Unavailable { .. }) => "unavailable",
            Err(_) => "refused",
        };
        metric::commit(outcome, leading.now().saturating_sub(begun));
        let version = committed.map_err(told)?;
        Ok(Committed { version, schema: leading.sequencer().newest_schema() })
    }

    fn outcome(&self, id: RequestId, since: Version) -> Result<Outcome, Error> {
        let leading = self.leading()?;
        if self.loads.is_committing(id) {
            return Err(Error::Unavailable("the load is being committed".into()));
        }
        // What an earlier sequencer sent cannot arrive any more after this.
        leading.sequencer().prove().map_err(told)?;
        match leading.sequencer().outcome(id_of(id), since) {
            Ok(Some(version)) => Ok(Outcome::Committed(version)),
            Ok(None) => Ok(Outcome::Refused),
            Err(tidegraph_txn::Error::Forgotten { .. }) => Ok(Outcome::Unknown),
            Err(error) => Err(told(error)),
        }
    }

    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        self.leading()?.sequencer().intern(names).map_err(told)
    }

    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        self.leading()?.sequencer().hand_out_sids(count).map_err(told)
    }

    fn newest(&self) -> Result<Newest, Error> {
        let (leading, now) = self.now_leading()?;
        self.loads.sweep(&leading, now);
        // The others second: whoever is told a version is told of the loads and indexes below it.
        let version = leading.newest().map_err(told)?;
        let sequencer = leading.sequencer();
        let (load, schema) = (sequencer.newest_load(), sequencer.newest_schema());
        Ok(Newest { version, epoch: leading.epoch(), load, schema })
    }

    fn tokens(&self, above: Token) -> Result<Vec<(Token, Str)>, Error> {
        let tokens = self.leading()?.sequencer().tokens();
        Ok(tokens.into_iter().filter(|(token, _)| *token > above).collect())
    }

    fn watch_load(&self, id: RequestId, above: Option<Version>) -> Result<MadeSince, Error> {
        let (leading, now) = self.now_leading()?;
        self.loads.sweep(&leading, now);
        match above {
            None => self.loads.begin(&leading, now, id),
            Some(above) => self.loads.made_since(&leading, now, id, above),
        }
    }

    fn end_load(&self, id: RequestId) -> Result<(), Error> {
        self.loads.end(id);
        Ok(())
    }

    fn commit_load(&self, id: RequestId, load: LoadRequest) -> Result<LoadStep, Error> {
        let (leading, now) = self.now_leading()?;
        self.loads.commit(&leading, now, id, load)
    }

    fn settle_load(&self, id: RequestId, collision: Option<Version>) -> Result<(), Error> {
        self.loads.settle(id, collision)
    }
}

/// A new sequencer goes on from the oldest of the partitions' newest checkpoints: the log is trimmed no further.
pub struct FromCheckpoints {
    /// The graph's name.
    pub graph: String,
    /// How many partitions it has.
    pub partitions: PartitionCount,
    /// Where checkpoints are noted.
    pub map_store: Arc<dyn MapStore>,
    /// Where they are.
    pub objects: Arc<Objects>,
    /// The log.
    pub log: Arc<dyn LogAccess>,
}

impl std::fmt::Debug for FromCheckpoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FromCheckpoints").field("graph", &self.graph).finish_non_exhaustive()
    }
}

impl Takeover for FromCheckpoints {
    fn base(&self) -> Result<Base, String> {
        let noted = self.map_store.checkpoints(&self.graph).map_err(|error| error.to_string())?;
        if noted.len() < usize::from(self.partitions.get()) {
            return Ok(Base::default());
        }
        let Some(oldest) = noted.iter().min_by_key(|noted| noted.version) else { return Ok(Base::default()) };
        let manifest = Manifest::latest(&self.objects, &oldest.prefix).map_err(|error| error.to_string())?;
        let Some(manifest) = manifest else {
            return Err(format!(
                "the checkpoint of partition {} at {} is gone",
                oldest.partition, oldest.prefix
            ));
        };
        Ok(Base {
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

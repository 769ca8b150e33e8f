//! The handle that every thread shares.

use crate::dictionary::Dictionary;
use crate::owner::Owner;
use crate::request::{self, LoadCommit, Reply, Request};
use crate::{Error, SequencerConfig};
use crossbeam_channel::Sender;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use tidegraph_log::{LogStore, Record};
use tidegraph_types::{CommitRequest, Epoch, Sid, Str, Token, Version};

/// Carries committed records into storage. Called on the owner thread, in order of version, once for each record.
pub trait Applier: Send {
    /// Applies a record, all of it, so that it can be read when this returns. It is durable and cannot be refused: a
    /// panic stops the sequencer.
    fn apply(&mut self, record: &Record);
}

/// Where a graph stands when the sequencer takes over: what the newest checkpoint and the log after it said.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recovered {
    /// The newest version; the last one in the log.
    pub version: Version,
    /// The epoch of that version. The sequencer takes the next one.
    pub epoch: Epoch,
    /// The lowest SID that was never handed out.
    pub next_sid: Sid,
    /// The dictionary, in any order; the same entry may come twice.
    pub tokens: Vec<(Token, Str)>,
}

/// What the handle and the owner thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub version: AtomicU64,
    pub next_sid: AtomicU64,
    pub log_bytes: AtomicU64,
    pub dictionary: Dictionary,
    /// Why no write is possible any more.
    pub stopped: Mutex<Option<String>>,
}

/// Gives versions, checks conflicts, appends to the log. See the crate's documentation.
#[derive(Debug)]
pub struct Sequencer {
    shared: Arc<Shared>,
    config: SequencerConfig,
    epoch: Epoch,
    requests: Sender<Request>,
    owner: Mutex<Option<JoinHandle<()>>>,
}

impl Sequencer {
    /// Starts the owner thread. Nothing is written before the first request: then the first record says that the next
    /// epoch began. If the graph and the log do not agree, every write is refused with the reason.
    pub fn start(
        config: SequencerConfig,
        log: Box<dyn LogStore>,
        recovered: Recovered,
        applier: Box<dyn Applier>,
    ) -> Arc<Self> {
        let mut stopped = match log.tail() {
            Some(tail) if tail.version != recovered.version => Some(format!(
                "the log ends at version {}, the graph is at version {}",
                tail.version, recovered.version
            )),
            _ => None,
        };
        let dictionary = Dictionary::new(recovered.tokens).unwrap_or_else(|reason| {
            stopped = Some(format!("the dictionary is damaged: {reason}"));
            Dictionary::default()
        });
        if let Some(reason) = &stopped {
            tracing::error!(reason, "the sequencer refuses writes");
        }
        let epoch = Epoch(recovered.epoch.0 + 1);
        let shared = Arc::new(Shared {
            version: AtomicU64::new(recovered.version.0),
            next_sid: AtomicU64::new(recovered.next_sid.0),
            log_bytes: AtomicU64::new(log.bytes()),
            dictionary,
            stopped: Mutex::new(stopped),
        });
        let (requests, queue) = crossbeam_channel::bounded(config.queued_requests.max(1));
        let mut owner = Owner::new(shared.clone(), &config, log, applier, recovered.version, epoch);
        let owner = std::thread::Builder::new().name("sequencer".into()).spawn(move || owner.run(&queue));
        let owner = owner.inspect_err(|error| {
            // The queue went with the closure, so every request is refused.
            tracing::error!(%error, "the sequencer's thread could not be started");
        });
        Arc::new(Self { shared, config, epoch, requests, owner: Mutex::new(owner.ok()) })
    }

    /// Commits a transaction; answers its version, which can be read from then on. Waits for the log.
    ///
    /// A request without mutations is answered at once with its read version.
    pub fn commit(&self, request: CommitRequest) -> Result<Version, Error> {
        if request.mutations.is_empty() {
            return Ok(request.read_version);
        }
        let bytes = request::check(&request, &self.config)?;
        self.ask(|reply| Request::Commit { request, bytes, reply })
    }

    /// Makes a bulk load visible; answers its version. [`Error::Conflict`] when, since its read version, a transaction
    /// deleted a vertex, made an edge with an id of the user's or added an exception, or another load was committed:
    /// what the load checked may no longer hold.
    pub fn commit_load(&self, load: LoadCommit) -> Result<Version, Error> {
        self.ask(|reply| Request::Load { load, reply })
    }

    /// The tokens of names, in the same order. New ones are assigned, and durable when this returns; known ones cost a
    /// look-up.
    pub fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        match self.shared.dictionary.lookup_all(names) {
            Some(tokens) => Ok(tokens),
            None => self.ask(|reply| Request::Intern { names: names.to_vec(), reply }),
        }
    }

    /// The token of a name.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Option<Token> {
        self.shared.dictionary.lookup(name)
    }

    /// The name of a token.
    #[must_use]
    pub fn name(&self, token: Token) -> Option<Str> {
        self.shared.dictionary.name(token)
    }

    /// The whole dictionary, in order of token.
    #[must_use]
    pub fn tokens(&self) -> Vec<(Token, Str)> {
        self.shared.dictionary.entries()
    }

    /// Hands out `count` SIDs that nobody else gets. Those that are never committed are lost, which does no harm.
    #[must_use]
    pub fn allocate_sids(&self, count: u64) -> Range<u64> {
        let start = self.shared.next_sid.fetch_add(count, Ordering::Relaxed);
        start..start + count
    }

    /// The lowest SID that was not handed out.
    #[must_use]
    pub fn next_sid(&self) -> Sid {
        Sid(self.shared.next_sid.load(Ordering::Relaxed))
    }

    /// The newest version that can be read.
    #[must_use]
    pub fn version(&self) -> Version {
        Version(self.shared.version.load(Ordering::Acquire))
    }

    /// The epoch of this sequencer.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether a write may succeed.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.stopped().is_none()
    }

    /// Why no write can succeed any more; `None` while one can.
    #[must_use]
    pub fn stopped(&self) -> Option<String> {
        self.shared.stopped.lock().clone()
    }

    /// Bytes of the log, trimmed ones too: tells when a checkpoint is due.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.shared.log_bytes.load(Ordering::Relaxed)
    }

    /// Lets the log forget versions below `below`, which a durable checkpoint holds.
    pub fn trim(&self, below: Version) -> Result<(), Error> {
        self.ask(|reply| Request::Trim { below, reply })
    }

    /// Finishes what was asked before and ends the owner thread; later requests are refused. Does nothing when
    /// called again.
    pub fn shutdown(&self) {
        let Some(owner) = self.owner.lock().take() else { return };
        // Fails only when the thread is gone already.
        let _ = self.requests.send(Request::Stop);
        if owner.join().is_err() {
            tracing::error!("the sequencer's thread ended by a defect");
        }
        self.shared.stopped.lock().get_or_insert_with(|| GOING_DOWN.into());
    }

    fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Error> {
        if let Some(reason) = self.stopped() {
            return Err(Error::Unavailable { reason });
        }
        let (reply, answer) = crossbeam_channel::bounded(1);
        if self.requests.send(request(reply)).is_err() {
            return Err(self.gone());
        }
        answer.recv().unwrap_or_else(|_| Err(self.gone()))
    }

    fn gone(&self) -> Error {
        Error::unavailable(self.stopped().unwrap_or_else(|| GOING_DOWN.into()))
    }
}

pub(crate) const GOING_DOWN: &str = "the service is going down";

impl Drop for Sequencer {
    fn drop(&mut self) {
        self.shutdown();
    }
}

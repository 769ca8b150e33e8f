//! The handle that all threads share.

mod loads;
mod turn;

use crate::committed_requests::CommittedRequests;
use crate::committer::Committer;
use crate::dictionary::Dictionary;
use crate::error::cause;
use crate::queue::Queue;
use crate::request::{self, AskedLoad, Callback, Handover, LoadProgress, OnAnswer, Reply, Request, Wakeup};
use crate::{Error, SequencerConfig};
use parking_lot::{Condvar, Mutex};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock, Weak};
use tidegraph_log::{Body, Cause, LogStore, Record};
use tidegraph_types::{CommitRequest, Epoch, RequestId, Sid, Str, Token, Version};

/// Applies committed records to storage. Called by one thread at a time, in order of version, once for each record.
pub trait Applier: Send {
    /// Applies a whole record, so that it can be read when this returns. The record is durable and cannot be refused: a
    /// panic stops the sequencer.
    fn apply(&mut self, record: &Record);
}

/// State of a graph when the sequencer takes over, from the newest checkpoint and the log after it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recovered {
    /// The newest version, which is the last one in the log.
    pub version: Version,
    /// The epoch of that version. [`Sequencer::start`] takes the next one.
    pub epoch: Epoch,
    /// The lowest SID that was neither handed out nor reserved for other processes.
    pub next_sid: Sid,
    /// Committed requests that have an id, in order of version.
    pub requests: Vec<(Version, RequestId)>,
    /// The version of the newest bulk load that was found; 0 for none.
    pub load: Version,
    /// `requests` may lack requests of this version and earlier ones, which the checkpoint holds.
    pub forgotten: Version,
    /// The dictionary, in any order. The same entry may occur twice.
    pub tokens: Vec<(Token, Str)>,
}

impl Recovered {
    /// Advances by the next record of the log.
    pub fn note(&mut self, record: &Record) {
        self.version = record.version;
        self.epoch = self.epoch.max(record.epoch);
        if let Some(next_sid) = record.body.next_sid() {
            self.next_sid = self.next_sid.max(next_sid);
        }
        match &record.body {
            Body::Tokens { assigned } => self.tokens.extend(assigned.iter().cloned()),
            Body::Commit { request: Some(request), .. } => self.requests.push((record.version, *request)),
            Body::Load { load_id, .. } => {
                self.load = record.version;
                self.requests.push((record.version, RequestId::of_text(load_id)));
            }
            _ => {}
        }
    }
}

/// State that the handle and the committer share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub version: AtomicU64,
    pub next_sid: AtomicU64,
    /// SIDs below this one are reserved in the log; 0 if none are.
    pub reserved_sid: AtomicU64,
    pub log_bytes: AtomicU64,
    /// Version of the newest bulk load.
    pub newest_load: AtomicU64,
    /// No index or constraint was created or dropped after this version.
    pub newest_schema: AtomicU64,
    pub dictionary: Dictionary,
    /// Number of running bulk loads.
    pub loads: Arc<AtomicUsize>,
    /// Why no write is possible any more.
    pub stopped: Mutex<Option<Cause>>,
}

impl Shared {
    pub fn reserved(&self) -> u64 {
        self.reserved_sid.load(Ordering::Acquire)
    }
}

/// Gives versions, checks conflicts and appends to the log. See the crate's documentation.
#[derive(Debug)]
pub struct Sequencer {
    shared: Arc<Shared>,
    config: SequencerConfig,
    epoch: Epoch,
    /// Whether appends wait for nothing, so that any caller may lead.
    late: bool,
    queue: Arc<Mutex<Queue>>,
    /// Signals the thread of a turn that something changed.
    turn_changed: Arc<Condvar>,
    /// Locked by the leader; `None` after the shutdown.
    committer: Mutex<Option<Committer>>,
    /// Wakes the thread that leads for callers that do not wait. Started when it is first needed; `None` if it cannot
    /// be.
    leader: OnceLock<Option<Sender<Arc<Self>>>>,
    me: Weak<Self>,
}

impl Sequencer {
    /// Takes over in the next epoch. Nothing is written before the first request; then the first record starts the
    /// epoch. If graph and log do not agree, the sequencer refuses every write with the reason.
    pub fn start(
        config: SequencerConfig,
        log: Box<dyn LogStore>,
        recovered: Recovered,
        applier: Box<dyn Applier>,
    ) -> Arc<Self> {
        let epoch = Epoch(recovered.epoch.0 + 1);
        Self::start_in(epoch, config, log, recovered, applier)
    }

    /// Takes over in an epoch that was given to this sequencer alone. It must be above the epoch of the log: otherwise
    /// the sequencer refuses every write.
    pub fn start_in(
        epoch: Epoch,
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
            _ if epoch <= recovered.epoch => {
                Some(format!("epoch {epoch} is not above epoch {} of the log", recovered.epoch))
            }
            _ => None,
        };
        let dictionary = Dictionary::new(recovered.tokens).unwrap_or_else(|reason| {
            stopped = Some(format!("the dictionary is damaged: {reason}"));
            Dictionary::default()
        });
        if let Some(reason) = &stopped {
            tracing::error!(reason, "the sequencer refuses writes");
        }
        let remembered =
            CommittedRequests::new(config.remembered_requests, recovered.forgotten, recovered.requests);
        let shared = Arc::new(Shared {
            version: AtomicU64::new(recovered.version.0),
            next_sid: AtomicU64::new(recovered.next_sid.0),
            reserved_sid: AtomicU64::new(0),
            log_bytes: AtomicU64::new(log.bytes()),
            newest_load: AtomicU64::new(recovered.load.0),
            // An earlier sequencer may have changed the schema at any version.
            newest_schema: AtomicU64::new(recovered.version.0),
            dictionary,
            loads: Arc::default(),
            stopped: Mutex::new(stopped.map(cause)),
        });
        let late = log.syncs_later();
        let committer =
            Committer::new(shared.clone(), &config, log, applier, remembered, recovered.version, epoch);
        let queue = Arc::new(Mutex::new(Queue::new(&config, epoch)));
        Arc::new_cyclic(|me| Self {
            shared,
            config,
            epoch,
            late,
            queue,
            turn_changed: Arc::default(),
            committer: Mutex::new(Some(committer)),
            leader: OnceLock::new(),
            me: me.clone(),
        })
    }

    /// Commits a transaction; returns its version, which can be read from then on. Waits for the log.
    ///
    /// A request without mutations gets its read version at once. A request whose id was committed before gets the
    /// version of that commit (TXN-4), or [`Error::Repeated`] if the id is made from a key of the caller.
    ///
    /// # Errors
    /// [`Error::Conflict`] if something that the transaction read was written since (TXN-2), and [`Error::LoadTurn`] if
    /// it concerns a bulk load that has its turn: run it again. [`Error::TooLarge`], [`Error::NotStorable`] and [`Error::FutureVersion`] if the request can never be committed.
    /// [`Error::Repeated`] and [`Error::KeyReused`] if a request with its key was committed.
    /// [`Error::Forgotten`] if the id may belong to a commit that is too old to know. [`Error::Unavailable`] if the log
    /// does not take the record; only then may the transaction be committed all the same.
    pub fn commit(&self, request: CommitRequest) -> Result<Version, Error> {
        if request.mutations.is_empty() {
            return Ok(request.read_version);
        }
        let bytes = request::check(&request, &self.config)?;
        self.ask(|reply| Request::Commit { request, bytes, yields: false, reply })
    }

    /// Like [`Sequencer::commit`], for a caller that does not wait: `on_answer` is called once with the answer, mostly
    /// on another thread.
    pub fn commit_later(&self, request: CommitRequest, on_answer: OnAnswer<Version>) {
        if request.mutations.is_empty() {
            return on_answer(Ok(request.read_version));
        }
        let bytes = match (request::check(&request, &self.config), self.stop_reason()) {
            (Ok(bytes), None) => bytes,
            (Err(error), _) => return on_answer(Err(error)),
            (_, Some(reason)) => return on_answer(Err(Error::Unavailable { reason })),
        };
        let reply = Reply::Callback(Callback::new(on_answer));
        if self.put(Request::Commit { request, bytes, yields: false, reply }) {
            self.lead_for_one_without();
        }
    }

    /// Leads on the thread of a caller that must not wait, or makes another thread lead.
    fn lead_for_one_without(&self) {
        if self.late {
            for _ in 0..BRIEF_GROUPS {
                if self.serve(Request::is_brief) != Handover::NoThread {
                    return;
                }
            }
        }
        if !self.sends_leader() {
            self.lead();
        }
    }

    /// Makes the sequencer's own thread lead; returns false if there is none.
    fn sends_leader(&self) -> bool {
        let made = self.leader.get_or_init(|| {
            let (sender, wanted) = mpsc::channel::<Arc<Self>>();
            let run = move || {
                while let Ok(sequencer) = wanted.recv() {
                    sequencer.lead_for_those_without();
                }
            };
            let thread = tidegraph_platform::spawn("sequencer", run);
            thread
                .inspect_err(|error| tracing::warn!(%error, "callers lead, because no thread can be started"))
                .ok()?;
            Some(sender)
        });
        // While the sequencer is dropped, no caller is left to serve.
        match (made, self.me.upgrade()) {
            (Some(leader), Some(me)) => leader.send(me).is_ok(),
            _ => false,
        }
    }

    /// Commits several transactions as one group, as if as many callers had arrived at the same
    /// moment. Returns their results in the same order. For simulations, which have one thread, so that commits must
    /// not wait for the turn of a load ([`SequencerConfig::turn_wait`]).
    #[cfg(any(test, feature = "testing"))]
    pub fn commit_together(&self, requests: Vec<CommitRequest>) -> Vec<Result<Version, Error>> {
        let mut queue = self.queue.lock();
        queue.advance();
        let enqueue = |request: CommitRequest| {
            if request.mutations.is_empty() {
                return Err(Ok(request.read_version));
            }
            let bytes = request::check(&request, &self.config).map_err(Err)?;
            if let Some(reason) = self.stop_reason() {
                return Err(Err(Error::Unavailable { reason }));
            }
            let (reply, words) = mpsc::sync_channel(1);
            let request = Request::Commit { request, bytes, yields: false, reply: Reply::Waits(reply) };
            let meets = queue.claim().is_some_and(|claim| claim.meets(&request));
            queue.place(request, meets);
            Ok(words)
        };
        let queued: Vec<_> = requests.into_iter().map(enqueue).collect();
        let mut lead = queue.takes_lead();
        drop(queue);
        let answer = |queued: Result<Receiver<Wakeup<Version>>, Result<Version, Error>>| match queued {
            Ok(words) => self.wait(&words, std::mem::take(&mut lead)),
            Err(known) => known,
        };
        queued.into_iter().map(answer).collect()
    }

    /// Returns the number of requests that wait for the next group.
    #[cfg(test)]
    pub(crate) fn queued(&self) -> usize {
        self.queue.lock().waiting.len()
    }

    /// Looks up a request that read at version `since` or later: returns the version of its commit, or `None` if it was
    /// committed neither by an earlier sequencer nor by this one from the requests before this call (TXN-4).
    ///
    /// A sequencer of an earlier epoch may still commit the request, unless [`Sequencer::prove`] succeeded before.
    ///
    /// # Errors
    /// [`Error::Forgotten`] if the request may have been committed so long ago that its id is forgotten;
    /// [`Error::Unavailable`] if the sequencer has stopped.
    pub fn outcome(&self, id: RequestId, since: Version) -> Result<Option<Version>, Error> {
        self.ask(|reply| Request::Outcome { id, since, by_key: false, reply })
    }

    /// Looks up a request whose id is made from a key of the caller, as [`Sequencer::outcome`] does. `since` is a
    /// version that the caller saw before it first sent the key.
    ///
    /// # Errors
    /// Those of [`Sequencer::outcome`]; [`Error::KeyReused`] if another request with the key was committed.
    pub fn outcome_of_key(&self, id: RequestId, since: Version) -> Result<Option<Version>, Error> {
        self.ask(|reply| Request::Outcome { id, since, by_key: true, reply })
    }

    /// Writes a record that changes nothing, which proves that the log takes records of this epoch; returns its
    /// version. All versions that existed when this was called are below it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the log does not take the record.
    pub fn prove(&self) -> Result<Version, Error> {
        self.ask(|reply| Request::Reserve { count: 0, reply })
    }

    /// A version after which no index or constraint was created or dropped (TXN-3). Set before the version of such a
    /// change can be read.
    #[must_use]
    pub fn newest_schema(&self) -> Version {
        Version(self.shared.newest_schema.load(Ordering::Acquire))
    }

    /// Returns the tokens of names, in the same order. New names get tokens, which are durable when this returns. If
    /// all names are known, this is a look-up.
    ///
    /// # Errors
    /// [`Error::DictionaryFull`] if no tokens are left; [`Error::Unavailable`] if the log does not take the new ones.
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

    /// The highest token. A token has its name before the first version that uses it.
    #[must_use]
    pub fn newest_token(&self) -> Token {
        // All tokens are used if there is no next one.
        self.shared.dictionary.next().map_or(Token(u32::MAX), |next| Token(next.0.saturating_sub(1)))
    }

    /// The whole dictionary, in order of token.
    #[must_use]
    pub fn tokens(&self) -> Vec<(Token, Str)> {
        self.shared.dictionary.entries()
    }

    /// Hands out `count` SIDs that no other caller gets, for use in this process. The log learns of them with the next
    /// commit; after a restart, SIDs that the log does not know are handed out again. SIDs that are never committed are
    /// lost, which does no harm.
    #[must_use]
    pub fn allocate_sids(&self, count: u64) -> Range<u64> {
        let start = self.shared.next_sid.fetch_add(count, Ordering::Relaxed);
        start..start + count
    }

    /// Hands out `count` SIDs for another process, which may still use them when the next sequencer takes over: they
    /// are reserved in the log first. Waits for the log once for many SIDs.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the log does not take the reservation.
    pub fn hand_out_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        let next = &self.shared.next_sid;
        loop {
            let reserved = self.shared.reserved();
            let within = |start: u64| start.checked_add(count).filter(|end| *end <= reserved);
            if let Ok(start) = next.fetch_update(Ordering::AcqRel, Ordering::Acquire, within) {
                return Ok(start..start + count);
            }
            let count = count.max(self.config.sids_ahead);
            self.ask(|reply| Request::Reserve { count, reply })?;
        }
    }

    /// The lowest SID that was neither handed out nor reserved for other processes.
    #[must_use]
    pub fn next_sid(&self) -> Sid {
        Sid(self.shared.next_sid.load(Ordering::Relaxed).max(self.shared.reserved()))
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

    /// Whether the sequencer takes writes.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.stopped().is_none()
    }

    /// Why the sequencer takes no more writes; `None` while it does.
    #[must_use]
    pub fn stopped(&self) -> Option<String> {
        self.stop_reason().map(|reason| reason.to_string())
    }

    fn stop_reason(&self) -> Option<Cause> {
        self.shared.stopped.lock().clone()
    }

    /// Bytes of the log, including trimmed ones. Decides when a checkpoint is due.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.shared.log_bytes.load(Ordering::Relaxed)
    }

    /// Trims the log below `below`. A durable checkpoint must hold these versions.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the log fails or the sequencer has stopped.
    pub fn trim(&self, below: Version) -> Result<(), Error> {
        self.ask(|reply| Request::Trim { below, reply })
    }

    /// Makes all committed records durable. Waits for the log if it syncs later.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the sync fails; the sequencer has stopped then.
    pub fn sync(&self) -> Result<(), Error> {
        if self.late { self.ask(|reply| Request::Sync { reply }) } else { Ok(()) }
    }

    /// Makes the log tell its readers again which records are complete, if an earlier mark was lost (LOG-4).
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the sequencer has stopped.
    pub fn announce_complete(&self) -> Result<(), Error> {
        self.trim(Version(0))
    }

    /// Finishes earlier requests and closes the log. Later requests are refused. A second call does nothing.
    pub fn shutdown(&self) {
        if self.committer.lock().is_none() {
            return;
        }
        self.queue.lock().close();
        self.turn_changed.notify_all();
        // Refused only if the log is unusable; it is closed all the same.
        let _ = self.enter(|reply| Request::Stop { reply });
        self.committer.lock().take();
    }

    fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Error> {
        if let Some(reason) = self.stop_reason() {
            return Err(Error::Unavailable { reason });
        }
        self.enter(request)
    }

    /// Queues a request and waits for its answer. Leads if no caller does, or if the leader hands over.
    fn enter<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Error> {
        let (reply, words) = mpsc::sync_channel(1);
        let lead = self.put(request(Reply::Waits(reply)));
        self.wait(&words, lead)
    }

    /// Queues a request, or sets it aside for the turn of a load. Returns whether the caller leads.
    fn put(&self, request: Request) -> bool {
        // The claim that the request was compared with. A large transaction takes a while, so the queue is not locked.
        let mut compared = None;
        loop {
            let claim = {
                let mut queue = self.queue.lock();
                queue.advance();
                let meets = match (queue.claim(), compared) {
                    (None, _) => Ok(false),
                    (Some(claim), Some((number, meets))) if claim.number == number => Ok(meets),
                    (Some(claim), _) => Err(claim.clone()),
                };
                match meets {
                    Ok(meets) => {
                        if !queue.place(request, meets) {
                            return queue.takes_lead();
                        }
                        self.after_turn(queue);
                        return false;
                    }
                    Err(claim) => claim,
                }
            };
            compared = Some((claim.number, claim.meets(&request)));
        }
    }

    /// Waits for the answer of a queued request. Leads if the leader hands over.
    fn wait<T>(&self, words: &Receiver<Wakeup<T>>, mut lead: bool) -> Result<T, Error> {
        loop {
            if std::mem::take(&mut lead) {
                self.lead();
            }
            match words.recv() {
                Ok(Wakeup::Answer(answer)) => return answer,
                Ok(Wakeup::Lead) => lead = true,
                // The leader panicked between taking the request and answering it.
                Err(_) => {
                    let reason = self.stop_reason().unwrap_or_else(|| cause(request::LOST));
                    return Err(Error::InDoubt { reason });
                }
            }
        }
    }

    /// Commits one group and makes the next caller lead.
    fn lead(&self) {
        if self.serve(|_| true) == Handover::NoThread && !self.sends_leader() {
            self.lead_for_those_without();
        }
    }

    /// Commits groups as long as the next caller has no thread to lead with.
    fn lead_for_those_without(&self) {
        while self.serve(|_| true) == Handover::NoThread {}
    }

    /// Commits the longest prefix of the queue that matches `is_served` as one group, and returns who leads next.
    /// [`Handover::Gone`]: no request waits.
    fn serve(&self, is_served: impl Fn(&Request) -> bool) -> Handover {
        let mut taken = Vec::new();
        {
            let mut queue = self.queue.lock();
            let mut bytes = 0;
            while bytes < self.config.group_bytes
                && let Some(request) = queue.waiting.pop_front_if(|request| is_served(request))
            {
                bytes += request.bytes();
                // A load may have to report before it is committed, and nothing may be committed meanwhile.
                let is_last = matches!(request, Request::Load { .. });
                taken.push(request);
                if is_last {
                    break;
                }
            }
        }
        let mut committer = self.committer.lock();
        let served = match &mut *committer {
            Some(committer) => catch_unwind(AssertUnwindSafe(|| {
                let asked = committer.take(taken);
                if self.queue.lock().waiting.is_empty() {
                    committer.on_idle();
                }
                asked
            })),
            None => {
                taken.into_iter().for_each(|request| request.refuse(self.gone()));
                Ok(None)
            }
        };
        if served.is_err() {
            // The state of log and graph is now unknown. The callers of this group get `Error::InDoubt`.
            tracing::error!("the sequencer stops because of a defect");
            self.shared.stopped.lock().get_or_insert_with(|| cause(DEFECT));
        }
        drop(committer);
        let mut queue = self.queue.lock();
        if queue.claim().is_some() && !self.is_writable() {
            queue.end_turn("the sequencer has stopped");
            self.turn_changed.notify_all();
        }
        let answer = served.ok().flatten().map(|AskedLoad { load, limit, reply }| {
            let asked = queue.ask(load, limit).map(LoadProgress::Asked);
            (reply, asked.ok_or_else(|| self.gone()))
        });
        let next = hand_over(&mut queue);
        drop(queue);
        if let Some((reply, answer)) = answer {
            reply.send(answer);
        }
        next
    }

    fn gone(&self) -> Error {
        Error::Unavailable { reason: self.stop_reason().unwrap_or_else(|| cause(GOING_DOWN)) }
    }
}

/// Makes the first caller lead that can, or gives up the lead if no request can be served.
fn hand_over(queue: &mut Queue) -> Handover {
    loop {
        match queue.waiting.front().filter(|_| !queue.is_asking()) {
            None => {
                queue.has_leader = false;
                return Handover::Gone;
            }
            Some(next) => match next.lead() {
                Handover::Gone => queue.waiting.pop_front(),
                taken => return taken,
            },
        };
    }
}

/// Number of groups that a caller that must not wait commits before another one leads.
const BRIEF_GROUPS: u32 = 8;

pub(crate) const GOING_DOWN: &str = "the service is going down";
const DEFECT: &str = "a defect stopped the sequencer; restart the service";

impl Drop for Sequencer {
    fn drop(&mut self) {
        self.shutdown();
    }
}

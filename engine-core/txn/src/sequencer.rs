//! The handle that every thread shares.

use crate::dictionary::Dictionary;
use crate::made::LoadWatch;
use crate::owner::Owner;
use crate::remembered::Remembered;
use crate::request::{self, Called, Ended, LoadCommit, Reply, Request, Turn, Word};
use crate::{Error, SequencerConfig};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock, Weak};
use tidegraph_log::{Body, LogStore, Record};
use tidegraph_types::{CommitRequest, Epoch, MadeSince, RequestId, Sid, Str, Token, Version};

/// Carries committed records into storage. Called by one thread at a time, in order of version, once for each record.
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
    /// The lowest SID that was never handed out, nor reserved for other processes.
    pub next_sid: Sid,
    /// Requests that were committed, as far as they are known by an id, in order of version.
    pub requests: Vec<(Version, RequestId)>,
    /// The version of the newest bulk load that was met.
    pub load: Version,
    /// Of this version and those before it, `requests` may lack some: those that the checkpoint holds.
    pub forgotten: Version,
    /// The dictionary, in any order; the same entry may come twice.
    pub tokens: Vec<(Token, Str)>,
}

impl Recovered {
    /// Goes on by a record of the log, the next one.
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

/// What the handle and the owner share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub version: AtomicU64,
    pub next_sid: AtomicU64,
    /// SIDs below this one are reserved in the log; 0 when none are.
    pub reserved_sid: AtomicU64,
    pub log_bytes: AtomicU64,
    /// Version of the newest bulk load.
    pub newest_load: AtomicU64,
    /// No index or constraint was made or dropped after this version.
    pub newest_schema: AtomicU64,
    pub dictionary: Dictionary,
    /// Bulk loads that run.
    pub loads: Arc<AtomicUsize>,
    /// Why no write is possible any more.
    pub stopped: Mutex<Option<String>>,
}

impl Shared {
    pub fn reserved(&self) -> u64 {
        self.reserved_sid.load(Ordering::Acquire)
    }
}

/// Gives versions, checks conflicts, appends to the log. See the crate's documentation.
#[derive(Debug)]
pub struct Sequencer {
    shared: Arc<Shared>,
    config: SequencerConfig,
    epoch: Epoch,
    /// Whether appends wait for nothing, so that anybody may lead.
    late: bool,
    door: Mutex<Door>,
    /// Locked by whoever leads; `None` after the end.
    owner: Mutex<Option<Owner>>,
    /// A thread that leads where those whose turn it is have none; made when it is needed first.
    leader: OnceLock<Option<Sender<Arc<Self>>>>,
    me: Weak<Self>,
}

/// Who waits, in order of coming.
#[derive(Debug, Default)]
struct Door {
    queue: VecDeque<Request>,
    /// Whether one of the callers leads. It passes that on, or ends it when the queue is empty.
    led: bool,
}

impl Sequencer {
    /// Takes over, in the next epoch. Nothing is written before the first request: then the first record says that the
    /// epoch began. If the graph and the log do not agree, every write is refused with the reason.
    pub fn start(
        config: SequencerConfig,
        log: Box<dyn LogStore>,
        recovered: Recovered,
        applier: Box<dyn Applier>,
    ) -> Arc<Self> {
        let epoch = Epoch(recovered.epoch.0 + 1);
        Self::start_in(epoch, config, log, recovered, applier)
    }

    /// Takes over in an epoch that somebody gave, who gives every epoch once. It must be above that of the log.
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
        let remembered = Remembered::new(config.remembered_requests, recovered.forgotten, recovered.requests);
        let shared = Arc::new(Shared {
            version: AtomicU64::new(recovered.version.0),
            next_sid: AtomicU64::new(recovered.next_sid.0),
            reserved_sid: AtomicU64::new(0),
            log_bytes: AtomicU64::new(log.bytes()),
            newest_load: AtomicU64::new(recovered.load.0),
            // Who was before may have changed it at any version.
            newest_schema: AtomicU64::new(recovered.version.0),
            dictionary,
            loads: Arc::default(),
            stopped: Mutex::new(stopped),
        });
        let late = log.is_late();
        let owner = Owner::new(shared.clone(), &config, log, applier, remembered, recovered.version, epoch);
        Arc::new_cyclic(|me| Self {
            shared,
            config,
            epoch,
            late,
            door: Mutex::default(),
            owner: Mutex::new(Some(owner)),
            leader: OnceLock::new(),
            me: me.clone(),
        })
    }

    /// Commits a transaction; answers its version, which can be read from then on. Waits for the log.
    ///
    /// A request without mutations is answered at once with its read version. One whose id was committed before is answered
    /// with the version that it got then.
    pub fn commit(&self, request: CommitRequest) -> Result<Version, Error> {
        if request.mutations.is_empty() {
            return Ok(request.read_version);
        }
        let bytes = request::check(&request, &self.config)?;
        self.ask(|reply| Request::Commit { request, bytes, reply })
    }

    /// As [`Sequencer::commit`], for a caller who does not wait: `ended` is called with the answer, mostly on another thread.
    pub fn commit_later(&self, request: CommitRequest, ended: Ended<Version>) {
        if request.mutations.is_empty() {
            return ended(Ok(request.read_version));
        }
        let bytes = match (request::check(&request, &self.config), self.stopped()) {
            (Ok(bytes), None) => bytes,
            (Err(error), _) => return ended(Err(error)),
            (_, Some(reason)) => return ended(Err(Error::Unavailable { reason })),
        };
        let lead = {
            let mut door = self.door.lock();
            let reply = Reply::Called(Called::new(ended));
            door.queue.push_back(Request::Commit { request, bytes, reply });
            !std::mem::replace(&mut door.led, true)
        };
        if lead {
            self.lead_for_one_without();
        }
    }

    /// Leads on the thread of a caller who must not wait, or has another do so.
    fn lead_for_one_without(&self) {
        if self.late {
            for _ in 0..BRIEF_GROUPS {
                if self.serve(Request::is_brief) != Turn::NoThread {
                    return;
                }
            }
        }
        if !self.sends_leader() {
            self.lead();
        }
    }

    /// Has its own thread lead; false where there is none.
    fn sends_leader(&self) -> bool {
        let made = self.leader.get_or_init(|| {
            let (sender, wanted) = mpsc::channel::<Arc<Self>>();
            let run = move || {
                while let Ok(sequencer) = wanted.recv() {
                    sequencer.lead_for_those_without();
                }
            };
            let thread = tidegraph_platform::spawn("sequencer", run);
            thread.inspect_err(|error| tracing::warn!(%error, "callers lead: no thread can be made")).ok()?;
            Some(sender)
        });
        // At its end there is nobody left to hand it on.
        match (made, self.me.upgrade()) {
            (Some(leader), Some(me)) => leader.send(me).is_ok(),
            _ => false,
        }
    }

    /// Commits several transactions as one group, as if as many callers had come at the same moment; answers them in the
    /// same order. For simulations, which have one thread.
    pub fn commit_together(&self, requests: Vec<CommitRequest>) -> Vec<Result<Version, Error>> {
        let mut door = self.door.lock();
        let queue = |request: CommitRequest| {
            if request.mutations.is_empty() {
                return Err(Ok(request.read_version));
            }
            let bytes = request::check(&request, &self.config).map_err(Err)?;
            if let Some(reason) = self.stopped() {
                return Err(Err(Error::Unavailable { reason }));
            }
            let (reply, words) = mpsc::sync_channel(1);
            door.queue.push_back(Request::Commit { request, bytes, reply: Reply::Waits(reply) });
            Ok(words)
        };
        let queued: Vec<_> = requests.into_iter().map(queue).collect();
        let mut lead = !door.queue.is_empty() && !std::mem::replace(&mut door.led, true);
        drop(door);
        let answer = |queued: Result<Receiver<Word<Version>>, Result<Version, Error>>| match queued {
            Ok(words) => self.wait(&words, std::mem::take(&mut lead)),
            Err(known) => known,
        };
        queued.into_iter().map(answer).collect()
    }

    /// What became of a request that read at version `since` or a later one: its version, or `None` if it was not committed by
    /// anybody before this sequencer took over, nor by this one from what was asked before. [`Error::Forgotten`] when it may have been
    /// committed so long ago that nobody remembers.
    ///
    /// It says nothing of what a sequencer of an earlier epoch may still write, unless [`Sequencer::prove`] succeeded before.
    pub fn outcome(&self, id: RequestId, since: Version) -> Result<Option<Version>, Error> {
        self.ask(|reply| Request::Outcome { id, since, reply })
    }

    /// Writes a record that changes nothing, and so shows that the log takes records of this epoch; answers its version. The
    /// newest version was not older than that when this was called.
    pub fn prove(&self) -> Result<Version, Error> {
        self.ask(|reply| Request::Reserve { count: 0, reply })
    }

    /// Begins a bulk load, which reads at a version that is the newest when this returns, or at a later one.
    #[must_use]
    pub fn begin_load(&self) -> LoadWatch {
        let watch = LoadWatch::new(&self.shared.loads);
        // Whoever leads has the lock until its whole group is applied.
        if let Some(owner) = &mut *self.owner.lock() {
            owner.watch();
        }
        watch
    }

    /// Vertices that transactions made after a version, about so many bytes of them; `None` if that was not noted: the watch began
    /// later.
    #[must_use]
    pub fn made_since(&self, _watch: &LoadWatch, version: Version, most_bytes: usize) -> Option<MadeSince> {
        self.owner.lock().as_ref()?.made_above(version, most_bytes)
    }

    /// Lets go of what was made up to a version, which every load that runs has compared with what it makes itself.
    pub fn forget_made(&self, upto: Version) {
        if let Some(owner) = &mut *self.owner.lock() {
            owner.forget_made(upto);
        }
    }

    /// The version of the newest bulk load that is committed, as far back as the log was read; 0 for none. Known before
    /// that version is.
    #[must_use]
    pub fn newest_load(&self) -> Version {
        Version(self.shared.newest_load.load(Ordering::Acquire))
    }

    /// No index or constraint was made or dropped after this version. Known before a version that does is.
    #[must_use]
    pub fn newest_schema(&self) -> Version {
        Version(self.shared.newest_schema.load(Ordering::Acquire))
    }

    /// Makes a bulk load visible that was begun with a watch; answers its version. [`Error::Conflict`] when, since its
    /// read version, a transaction deleted a vertex, made an edge with an id of the user's, added an exception, wrote one
    /// of the load's read keys, or gave another id the GUI of a vertex that the load makes, or another load was
    /// committed: what the load checked may no longer hold.
    pub fn commit_load(&self, _watch: &LoadWatch, load: LoadCommit) -> Result<Version, Error> {
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

    /// Hands out `count` SIDs that nobody else gets. Those that are never committed are lost, which does no harm. They are for
    /// this process: the log learns of them when something that comes after them is committed, and after a restart those that it
    /// did not learn of are handed out again.
    #[must_use]
    pub fn allocate_sids(&self, count: u64) -> Range<u64> {
        let start = self.shared.next_sid.fetch_add(count, Ordering::Relaxed);
        start..start + count
    }

    /// Hands out `count` SIDs for another process, which may still have them when the next sequencer takes over: the log says
    /// before that they are taken. Waits for the log once for many SIDs.
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

    /// The lowest SID that was not handed out, nor reserved for other processes.
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

    /// Makes everything durable that was committed. Waits for the log if that is late.
    pub fn sync(&self) -> Result<(), Error> {
        if self.late { self.ask(|reply| Request::Sync { reply }) } else { Ok(()) }
    }

    /// Lets the log say what it still owes its readers, if a message that should have said it was lost.
    pub fn settle(&self) -> Result<(), Error> {
        self.trim(Version(0))
    }

    /// Finishes what was asked before and closes the log; later requests are refused. Does nothing when called again.
    pub fn shutdown(&self) {
        if self.owner.lock().is_none() {
            return;
        }
        // Refused only when the log cannot be used any more; it is closed all the same.
        let _ = self.enter(|reply| Request::Stop { reply });
        self.owner.lock().take();
    }

    fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Error> {
        if let Some(reason) = self.stopped() {
            return Err(Error::Unavailable { reason });
        }
        self.enter(request)
    }

    /// Queues a request and waits for its answer; leads when nobody does, or when told to.
    fn enter<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Error> {
        let (reply, words) = mpsc::sync_channel(1);
        let lead = {
            let mut door = self.door.lock();
            door.queue.push_back(request(Reply::Waits(reply)));
            !std::mem::replace(&mut door.led, true)
        };
        self.wait(&words, lead)
    }

    /// Waits for the answer of what was queued; leads when told to.
    fn wait<T>(&self, words: &Receiver<Word<T>>, mut lead: bool) -> Result<T, Error> {
        loop {
            if std::mem::take(&mut lead) {
                self.lead();
            }
            match words.recv() {
                Ok(Word::Answer(answer)) => return answer,
                Ok(Word::Lead) => lead = true,
                Err(_) => return Err(self.gone()),
            }
        }
    }

    /// Serves one group and passes the lead on.
    fn lead(&self) {
        if self.serve(|_| true) == Turn::NoThread && !self.sends_leader() {
            self.lead_for_those_without();
        }
    }

    /// Serves groups as long as whoever comes next has no thread to lead.
    fn lead_for_those_without(&self) {
        while self.serve(|_| true) == Turn::NoThread {}
    }

    /// Serves one group, of the first requests that are such; says who leads now. [`Turn::Gone`]: nobody waits.
    fn serve(&self, is_served: impl Fn(&Request) -> bool) -> Turn {
        let mut taken = Vec::new();
        {
            let mut door = self.door.lock();
            let mut bytes = 0;
            while bytes < self.config.group_bytes
                && let Some(request) = door.queue.pop_front_if(|request| is_served(request))
            {
                bytes += request.bytes();
                taken.push(request);
            }
        }
        let mut owner = self.owner.lock();
        let served = match &mut *owner {
            Some(owner) => catch_unwind(AssertUnwindSafe(|| {
                let goes_on = owner.take(taken);
                if self.door.lock().queue.is_empty() {
                    owner.rest();
                }
                goes_on
            })),
            None => {
                taken.into_iter().for_each(|request| request.refuse(self.gone()));
                Ok(true)
            }
        };
        if served.is_err() {
            // What the log and the graph hold now is not known. Callers of this group hear that their request is gone.
            tracing::error!("the sequencer stops because of a defect");
            self.shared.stopped.lock().get_or_insert_with(|| DEFECT.into());
        }
        drop(owner);
        let mut door = self.door.lock();
        loop {
            match door.queue.front() {
                None => {
                    door.led = false;
                    return Turn::Gone;
                }
                Some(next) => match next.lead() {
                    Turn::Gone => door.queue.pop_front(),
                    taken => return taken,
                },
            };
        }
    }

    fn gone(&self) -> Error {
        Error::unavailable(self.stopped().unwrap_or_else(|| GOING_DOWN.into()))
    }
}

/// Groups that a caller serves who must not wait, before another one does.
const BRIEF_GROUPS: u32 = 8;

pub(crate) const GOING_DOWN: &str = "the service is going down";
const DEFECT: &str = "a defect stopped the sequencer; restart the service";

impl Drop for Sequencer {
    fn drop(&mut self) {
        self.shutdown();
    }
}

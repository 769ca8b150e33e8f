//! A client of the fleet: runs one transaction after the other, by the rules of a worker.
//!
//! It reads at the newest version that it knows, or asks the sequencer for a newer one. It
//! asks replicas in turn until one has the version. It sends all attempts of a commit under
//! one id to the holder of the lease, until it learns the outcome or reaches its time limit.
//!
//! What must never happen here: the answer to one request is taken as the answer to another.

use crate::checker::Ended;
use crate::commit::request;
use crate::map::SimMap;
use crate::model::Seen;
use crate::process::Process;
use crate::start::SetupError;
use crate::transaction::{Common, FinishedTransaction, NAMES, TransactionGenerator, TransactionPlan, edge};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tidegraph_apl::{At, Error as AplError};
use tidegraph_cluster::{MapStore, MapWatch, SEQUENCER};
use tidegraph_platform::Random;
use tidegraph_remote::{CommitOutcome, Error, RequestId};
use tidegraph_types::{CommitRequest, Epoch, Gui, PartitionId, Str, Token, Version};

/// Time limit of a client for one transaction, in microseconds.
const PATIENCE: u64 = 8_000_000;

/// A request to a node.
#[derive(Clone, Debug)]
pub(crate) enum ClientRequest {
    Read { partition: PartitionId, at: At, list: Token, gui: Gui },
    Commit { id: RequestId, request: CommitRequest },
    Outcome { id: RequestId, since: Version },
    Newest,
    Sids(u64),
    Intern(Vec<Str>),
}

/// A reply of a node.
#[derive(Clone, Debug)]
pub(crate) enum NodeReply {
    Seen(Result<Seen, Arc<AplError>>),
    Committed(Result<Version, Error>),
    Outcome(Result<CommitOutcome, Error>),
    Newest(Result<Version, Error>),
    Sids(Result<Range<u64>, Error>),
    Tokens(Result<Vec<Token>, Error>),
}

/// A request of a client, with its number.
#[derive(Clone, Debug)]
pub(crate) struct ClientCall {
    pub client: usize,
    pub number: u64,
    pub what: ClientRequest,
    /// Whether it is a duplicate of the message. Its answer is dropped: a connection delivers one answer to each
    /// request, and breaks if that is lost.
    pub copy: bool,
}

/// Actions that the world carries out for a client.
#[derive(Debug, Default)]
pub(crate) struct ClientActions {
    pub asks: Vec<(usize, ClientCall)>,
    /// Microseconds until the client is called again.
    pub wake: Option<u64>,
    pub done: Option<FinishedTransaction>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Tokens,
    Newest,
    Reading,
    Sids,
    Committing,
    /// Asks for the outcome of the commit, because a refusal may be of a later attempt only.
    Asking,
}

/// A running transaction.
#[derive(Debug)]
struct InFlight {
    phase: Phase,
    work: TransactionPlan,
    commit: Option<(RequestId, CommitRequest)>,
    /// Number of times that the commit was sent.
    sent: u32,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub process: Arc<Process>,
    generator: TransactionGenerator,
    watch: MapWatch,
    map: Arc<SimMap>,
    common: Arc<Common>,
    /// The newest version that this client knows.
    pub known: Version,
    tokens: Option<[Token; 3]>,
    sids: Range<u64>,
    asked: u64,
    /// Requests without an answer, with the number of the key for a read.
    pending: BTreeMap<u64, usize>,
    sequencer: Option<usize>,
    doing: Option<InFlight>,
}

impl Client {
    pub fn new(
        index: usize,
        process: Arc<Process>,
        map: Arc<SimMap>,
        common: Arc<Common>,
        seed: u64,
    ) -> Result<Self, SetupError> {
        let watch = MapWatch::without_thread(map.clone(), &common.graph)?;
        Ok(Self {
            process,
            generator: TransactionGenerator::new(index, common.clone(), seed),
            watch,
            map,
            common,
            known: Version(0),
            tokens: None,
            sids: 0..0,
            asked: 0,
            pending: BTreeMap::new(),
            sequencer: None,
            doing: None,
        })
    }

    pub fn is_idle(&self) -> bool {
        self.doing.is_none()
    }

    /// Continues, or begins a transaction if `may_begin`. `bookmark` is a version that any client was told.
    pub fn wake(&mut self, now: u64, bookmark: Version, may_begin: bool) -> ClientActions {
        let mut out = ClientActions::default();
        if self.doing.is_none() && may_begin {
            let work = self.generator.begin(now, self.known, bookmark);
            let phase = if self.tokens.is_none() { Phase::Tokens } else { Phase::Newest };
            self.doing = Some(InFlight { phase, work, commit: None, sent: 0 });
        }
        self.go_on(now, &mut out);
        out
    }

    /// Returns the node that holds the sequencer's lease, as far as the client knows.
    fn find(&mut self) -> Option<usize> {
        if self.sequencer.is_none() {
            let lease = self.map.lease(&self.common.graph, SEQUENCER).ok().flatten()?;
            let number: usize = lease.endpoint.strip_prefix('n')?.parse().ok()?;
            self.sequencer = Some(number).filter(|number| *number < self.common.nodes);
        }
        self.sequencer
    }

    fn ask(&mut self, node: usize, key: usize, what: ClientRequest, out: &mut ClientActions) {
        self.asked += 1;
        self.pending.insert(self.asked, key);
        out.asks
            .push((node, ClientCall { client: self.generator.index, number: self.asked, what, copy: false }));
    }

    fn ask_sequencer(&mut self, what: ClientRequest, out: &mut ClientActions) -> bool {
        match self.find() {
            Some(node) => {
                self.ask(node, 0, what, out);
                true
            }
            None => {
                out.wake = Some(20_000 + self.generator.random.below(60_000));
                false
            }
        }
    }

    /// Sends the requests of the current phase.
    fn go_on(&mut self, now: u64, out: &mut ClientActions) {
        let Some(doing) = &mut self.doing else { return };
        if now.saturating_sub(doing.work.began) > PATIENCE {
            let ended = if doing.sent > 0 { Ended::Unknown } else { Ended::Refused };
            return self.finish(now, ended, None, out);
        }
        let phase = doing.phase;
        match phase {
            _ if phase != Phase::Reading && !self.pending.is_empty() => {}
            Phase::Tokens => {
                let names = NAMES.iter().map(|name| Str::from(*name)).collect();
                self.ask_sequencer(ClientRequest::Intern(names), out);
            }
            Phase::Newest => {
                // A worker that knows a version may read at it without asking.
                let enough = doing.work.need <= self.known && self.known > Version(0);
                if enough && self.generator.random.one_in(2) {
                    doing.work.read_at = self.known;
                    doing.phase = Phase::Reading;
                    self.go_on(now, out);
                } else {
                    self.ask_sequencer(ClientRequest::Newest, out);
                }
            }
            Phase::Reading => self.read(now, out),
            Phase::Sids => {
                self.ask_sequencer(ClientRequest::Sids(3), out);
            }
            Phase::Committing => {
                let Some((id, request)) = doing.commit.clone() else { return };
                if self.ask_sequencer(ClientRequest::Commit { id, request }, out)
                    && let Some(doing) = &mut self.doing
                {
                    doing.sent += 1;
                }
            }
            Phase::Asking => {
                let Some((id, request)) = &doing.commit else { return };
                let what = ClientRequest::Outcome { id: *id, since: request.read_version };
                self.ask_sequencer(what, out);
            }
        }
    }

    fn read(&mut self, now: u64, out: &mut ClientActions) {
        let (Some(doing), Some([list, ..])) = (&self.doing, self.tokens) else { return };
        let version = doing.work.read_at;
        let asked: Vec<usize> = self.pending.values().copied().collect();
        let missing = doing.work.reads.iter().filter(|key| !doing.work.seen.contains_key(key));
        let missing: Vec<usize> = missing.copied().collect();
        if missing.is_empty() {
            return self.write(now, out);
        }
        let map = self.watch.map();
        for key in missing.into_iter().filter(|key| !asked.contains(key)) {
            let gui = self.common.keys[key].1;
            let partition = map.graph().layout().of(gui);
            let serving = map.serving(partition);
            let Some(node) = (!serving.is_empty())
                .then(|| &serving[self.generator.random.below(serving.len() as u64) as usize].1.endpoint)
                .and_then(|endpoint| endpoint.strip_prefix('n')?.parse().ok())
            else {
                self.watch.look();
                out.wake = Some(30_000);
                continue;
            };
            let at = At { version, epoch: map.epoch() };
            self.ask(node, key, ClientRequest::Read { partition, at, list, gui }, out);
        }
    }

    /// All keys are read: sends the commit, or finishes.
    fn write(&mut self, now: u64, out: &mut ClientActions) {
        let (Some(doing), Some(tokens)) = (&mut self.doing, self.tokens) else { return };
        self.generator.note(&doing.work.seen);
        if let Some(ends) = self.generator.ends(&doing.work) {
            if self.sids.is_empty() {
                doing.phase = Phase::Sids;
                return self.go_on(now, out);
            }
            doing.work.edge = Some(edge(self.sids.start, ends, tokens[2]));
            self.sids.start += 1;
        }
        let request = request(&doing.work, &self.common, tokens);
        if request.mutations.is_empty() {
            return self.finish(now, Ended::Acknowledged, None, out);
        }
        let mut id = [0; 16];
        self.generator.random.fill(&mut id);
        doing.commit = Some((RequestId(u128::from_le_bytes(id)), request));
        doing.phase = Phase::Committing;
        self.go_on(now, out);
    }

    /// Takes an answer.
    pub fn hear(&mut self, now: u64, number: u64, said: NodeReply) -> ClientActions {
        let mut out = ClientActions::default();
        let Some(key) = self.pending.remove(&number) else { return out };
        let Some(doing) = &mut self.doing else { return out };
        match said {
            NodeReply::Seen(Ok(seen)) => {
                doing.work.seen.insert(key, seen);
                self.go_on(now, &mut out);
            }
            NodeReply::Seen(Err(error)) => {
                // No replica keeps the version any more, so the transaction cannot read its other keys.
                if let AplError::TooOld { .. } = *error {
                    self.finish(now, Ended::Refused, None, &mut out);
                    return out;
                }
                if self.generator.random.one_in(3) {
                    self.watch.look();
                }
                out.wake = Some(2_000 + self.generator.random.below(30_000));
            }
            NodeReply::Newest(Ok(version)) => {
                self.known = self.known.max(version);
                if doing.work.need <= self.known {
                    doing.work.read_at = self.known;
                    doing.phase = Phase::Reading;
                    self.go_on(now, &mut out);
                } else {
                    out.wake = Some(10_000);
                }
            }
            NodeReply::Tokens(Ok(tokens)) => {
                self.tokens = <[Token; 3]>::try_from(tokens).ok();
                doing.phase = Phase::Newest;
                self.go_on(now, &mut out);
            }
            NodeReply::Sids(Ok(sids)) => {
                self.sids = sids;
                doing.phase = Phase::Reading;
                self.go_on(now, &mut out);
            }
            NodeReply::Committed(Ok(version)) => {
                self.finish(now, Ended::Acknowledged, Some(version), &mut out)
            }
            // A sequencer that took over in between may not know earlier attempts.
            NodeReply::Committed(Err(Error::Conflict { .. })) if doing.sent > 1 => {
                doing.phase = Phase::Asking;
                self.go_on(now, &mut out);
            }
            NodeReply::Committed(Err(Error::Conflict { .. } | Error::Limit(_)))
            | NodeReply::Outcome(Ok(CommitOutcome::Refused)) => {
                self.finish(now, Ended::Refused, None, &mut out);
            }
            NodeReply::Outcome(Ok(CommitOutcome::Committed(version))) => {
                self.finish(now, Ended::Acknowledged, Some(version), &mut out);
            }
            // Too long ago: the sequencer has forgotten it.
            NodeReply::Outcome(Ok(CommitOutcome::Unknown | CommitOutcome::OtherRequest(_))) => {
                self.finish(now, Ended::Unknown, None, &mut out)
            }
            NodeReply::Committed(Err(_))
            | NodeReply::Outcome(Err(_))
            | NodeReply::Newest(Err(_))
            | NodeReply::Tokens(Err(_))
            | NodeReply::Sids(Err(_)) => {
                self.sequencer = None;
                out.wake = Some(30_000 + self.generator.random.below(40_000));
            }
        }
        out
    }

    /// Gives up a request that got no answer in time.
    pub fn overdue(&mut self, now: u64, number: u64) -> ClientActions {
        let mut out = ClientActions::default();
        if self.pending.remove(&number).is_some() {
            self.sequencer = None;
            self.watch.look();
            self.go_on(now, &mut out);
        }
        out
    }

    fn finish(&mut self, now: u64, ended: Ended, version: Option<Version>, out: &mut ClientActions) {
        let Some(doing) = self.doing.take() else { return };
        self.pending.clear();
        let InFlight { work, commit, sent, .. } = doing;
        let whole = work.reads.iter().all(|key| work.seen.contains_key(key));
        if let Some(version) = version {
            self.known = self.known.max(version);
        }
        if whole && ended == Ended::Acknowledged {
            self.known = self.known.max(work.read_at);
        }
        let done = self.generator.end(work, now, ended, version);
        let (id, mutations) =
            commit.filter(|_| sent > 0).map(|(id, request)| (id, request.mutations)).unzip();
        out.done = Some(FinishedTransaction { id, mutations: mutations.unwrap_or_default(), ..done });
        out.asks.clear();
        out.wake = Some(500 + self.generator.random.below(20_000));
    }
}

/// The epoch of requests that no map routed.
pub(crate) const NO_EPOCH: Epoch = Epoch(0);

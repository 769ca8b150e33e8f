//! A client of the fleet: transactions one after the other, by the rules that a worker keeps.
//!
//! It reads at the newest version that it knows, or asks the sequencer for a newer one; it asks replicas in turn until one has
//! the version; it sends its commit under one id however often, to whoever has the lease, until somebody knows what became
//! of it or patience ends.
//!
//! What must never happen here: an answer to another question taken for the one that is waited for.

use crate::checker::{Ended, Transaction};
use crate::commit::request;
use crate::map::SimMap;
use crate::model::Seen;
use crate::process::Process;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use tidegraph_apl::At;
use tidegraph_cluster::{MapStore, MapWatch, SEQUENCER};
use tidegraph_platform::{Random, SeededRandom};
use tidegraph_remote::{Error, Outcome, RequestId};
use tidegraph_types::{
    CommitRequest, Edge, Epoch, Gui, GuiHasher, PartitionCount, PartitionId, Sid, Str, Token, Version,
};

/// How long a client tries, in microseconds.
const PATIENCE: u64 = 8_000_000;
/// Names of the list, the label and the edges' label.
pub(crate) const NAMES: [&str; 3] = ["list", "Vertex", "EDGE"];

/// What a node is asked.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Read { partition: PartitionId, at: At, list: Token, gui: Gui },
    Commit { id: RequestId, request: CommitRequest },
    Outcome { id: RequestId, since: Version },
    Newest,
    Sids(u64),
    Intern(Vec<Str>),
}

/// What a node answers.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Seen(Result<Seen, String>),
    Committed(Result<Version, Error>),
    Outcome(Result<Outcome, Error>),
    Newest(Result<Version, Error>),
    Sids(Result<Range<u64>, Error>),
    Tokens(Result<Vec<Token>, Error>),
}

/// A question of a client, by its number.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub client: usize,
    pub number: u64,
    pub what: What,
}

/// What a client wants of its surroundings.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub asks: Vec<(usize, Ask)>,
    /// To be called again after so many microseconds.
    pub wake: Option<u64>,
    pub done: Option<Done>,
}

/// A transaction that is over.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub transaction: Transaction,
    pub read_at: Version,
    pub version: Option<Version>,
    pub id: Option<RequestId>,
    /// What was read, whole.
    pub seen: Vec<(Gui, Seen)>,
}

/// What all clients share.
#[derive(Debug)]
pub(crate) struct Common {
    pub graph: String,
    pub partitions: PartitionCount,
    /// Vertices that stay and have lists, then those that come and go.
    pub keys: Vec<(Str, Gui)>,
    pub lists: usize,
    pub nodes: usize,
    /// Whether commits do not say that lists were read: a defect that is planted.
    pub hides_reads: bool,
}

/// How many vertices come and go.
const FICKLE: u64 = 4;

impl Common {
    pub fn new(graph: &str, partitions: PartitionCount, lists: u64, nodes: usize) -> Self {
        let key = |number: u64| {
            let id = Str::from(format!("k{number}"));
            let gui = GuiHasher::default().gui(&id);
            (id, gui)
        };
        let keys = (0..lists + FICKLE).map(key).collect();
        Self { graph: graph.into(), partitions, keys, lists: lists as usize, nodes, hides_reads: false }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Tokens,
    Newest,
    Reading,
    Sids,
    Committing,
    /// Asks what became of the commit: a refusal may be of a later attempt only.
    Asking,
}

/// What a transaction writes besides numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extra {
    None,
    /// An edge between the two keys that are read.
    Edge,
    /// One of the client's own edges goes.
    Unedge(Edge),
    /// A vertex that comes and goes comes, or goes: with its edges, or after they were removed one by one.
    Fickle {
        one_by_one: bool,
    },
}

/// A transaction that is under way.
#[derive(Debug)]
pub(crate) struct Doing {
    pub phase: Phase,
    pub began: u64,
    pub need: Version,
    /// Keys that are read, and those that get a number.
    pub reads: Vec<usize>,
    pub appends: Vec<(usize, i64)>,
    pub extra: Extra,
    pub edge: Option<Edge>,
    pub read_at: Version,
    pub seen: BTreeMap<usize, Seen>,
    pub commit: Option<(RequestId, CommitRequest)>,
    /// How often the commit was sent.
    pub sent: u32,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub index: usize,
    pub process: Arc<Process>,
    watch: MapWatch,
    map: Arc<SimMap>,
    common: Arc<Common>,
    random: SeededRandom,
    /// The newest version that this client knows.
    pub known: Version,
    tokens: Option<[Token; 3]>,
    sids: Range<u64>,
    /// Keys that it saw, which are never removed.
    there: BTreeSet<usize>,
    edges: Vec<Edge>,
    asked: u64,
    /// Questions without an answer, with the key for a read.
    pending: BTreeMap<u64, usize>,
    sequencer: Option<usize>,
    numbers: i64,
    doing: Option<Doing>,
}

impl Client {
    pub fn new(
        index: usize,
        process: Arc<Process>,
        map: Arc<SimMap>,
        common: Arc<Common>,
        seed: u64,
    ) -> Result<Self, String> {
        let watch =
            MapWatch::without_thread(map.clone(), &common.graph).map_err(|error| error.to_string())?;
        Ok(Self {
            index,
            process,
            watch,
            map,
            common,
            random: SeededRandom::new(seed),
            known: Version(0),
            tokens: None,
            sids: 0..0,
            there: BTreeSet::new(),
            edges: Vec::new(),
            asked: 0,
            pending: BTreeMap::new(),
            sequencer: None,
            numbers: 0,
            doing: None,
        })
    }

    pub fn is_idle(&self) -> bool {
        self.doing.is_none()
    }

    /// Goes on, or begins something new where `may_begin`; `bookmark` is a version that somebody else was told.
    pub fn wake(&mut self, now: u64, bookmark: Version, may_begin: bool) -> Out {
        let mut out = Out::default();
        if self.doing.is_none() && may_begin {
            self.doing = Some(self.begin(now, bookmark));
        }
        self.go_on(now, &mut out);
        out
    }

    fn pick(&self, count: u64) -> Vec<usize> {
        self.pick_of(self.common.lists, count)
    }

    fn pick_of(&self, keys: usize, count: u64) -> Vec<usize> {
        let mut picked = Vec::new();
        for _ in 0..count {
            let key = self.random.below(keys as u64) as usize;
            if !picked.contains(&key) {
                picked.push(key);
            }
        }
        picked
    }

    fn begin(&mut self, now: u64, bookmark: Version) -> Doing {
        let count = 1 + self.random.below(3);
        let mut extra = Extra::None;
        let (reads, written) = match self.random.below(14) {
            // Only reads.
            0..3 => (self.pick_of(self.common.keys.len(), count + 1), vec![]),
            // Only writes.
            3..5 => {
                let known = self.pick(count).into_iter().filter(|key| self.there.contains(key)).collect();
                (vec![], known)
            }
            5 | 6 => {
                extra = Extra::Edge;
                (self.pick_of(self.common.keys.len(), 4), vec![])
            }
            12 | 13 => {
                extra = Extra::Fickle { one_by_one: self.random.one_in(2) };
                (vec![self.common.lists + self.random.below(FICKLE) as usize], vec![])
            }
            7 if !self.edges.is_empty() => {
                let own = self.random.below(self.edges.len() as u64) as usize;
                extra = Extra::Unedge(self.edges.swap_remove(own));
                (vec![], vec![])
            }
            // Reads some, writes one of them: two of this kind can each miss the other's write.
            7..9 => {
                let reads = self.pick(count + 1);
                let one = reads[self.random.below(reads.len() as u64) as usize];
                (reads, vec![one])
            }
            _ => {
                let reads = self.pick(count);
                let mut written = reads.clone();
                written.extend(self.pick(1).into_iter().filter(|key| self.there.contains(key)));
                written.sort_unstable();
                written.dedup();
                (reads, written)
            }
        };
        let mut next = || {
            self.numbers += 1;
            self.index as i64 * 1_000_000 + self.numbers
        };
        let appends: Vec<(usize, i64)> = written.into_iter().map(|key| (key, next())).collect();
        let need = if self.random.one_in(3) { bookmark } else { self.known };
        Doing {
            phase: if self.tokens.is_none() { Phase::Tokens } else { Phase::Newest },
            began: now,
            need: need.max(self.known),
            reads,
            appends,
            extra,
            edge: None,
            read_at: Version(0),
            seen: BTreeMap::new(),
            commit: None,
            sent: 0,
        }
    }

    /// The node that has the sequencer's lease, as far as is known.
    fn find(&mut self) -> Option<usize> {
        if self.sequencer.is_none() {
            let lease = self.map.lease(&self.common.graph, SEQUENCER).ok().flatten()?;
            let number: usize = lease.endpoint.strip_prefix('n')?.parse().ok()?;
            self.sequencer = Some(number).filter(|number| *number < self.common.nodes);
        }
        self.sequencer
    }

    fn ask(&mut self, node: usize, key: usize, what: What, out: &mut Out) {
        self.asked += 1;
        self.pending.insert(self.asked, key);
        out.asks.push((node, Ask { client: self.index, number: self.asked, what }));
    }

    fn ask_sequencer(&mut self, what: What, out: &mut Out) -> bool {
        match self.find() {
            Some(node) => {
                self.ask(node, 0, what, out);
                true
            }
            None => {
                out.wake = Some(20_000 + self.random.below(60_000));
                false
            }
        }
    }

    /// Asks what is to be asked now.
    fn go_on(&mut self, now: u64, out: &mut Out) {
        let Some(doing) = &mut self.doing else { return };
        if now.saturating_sub(doing.began) > PATIENCE {
            let ended = if doing.sent > 0 { Ended::Unknown } else { Ended::Refused };
            return self.finish(now, ended, None, out);
        }
        let phase = doing.phase;
        match phase {
            _ if phase != Phase::Reading && !self.pending.is_empty() => {}
            Phase::Tokens => {
                let names = NAMES.iter().map(|name| Str::from(*name)).collect();
                self.ask_sequencer(What::Intern(names), out);
            }
            Phase::Newest => {
                // A worker that knows of a version may read at it without asking.
                let enough = doing.need <= self.known && self.known > Version(0);
                if enough && self.random.one_in(2) {
                    doing.read_at = self.known;
                    doing.phase = Phase::Reading;
                    self.go_on(now, out);
                } else {
                    self.ask_sequencer(What::Newest, out);
                }
            }
            Phase::Reading => self.read(now, out),
            Phase::Sids => {
                self.ask_sequencer(What::Sids(3), out);
            }
            Phase::Committing => {
                let Some((id, request)) = doing.commit.clone() else { return };
                if self.ask_sequencer(What::Commit { id, request }, out)
                    && let Some(doing) = &mut self.doing
                {
                    doing.sent += 1;
                }
            }
            Phase::Asking => {
                let Some((id, request)) = &doing.commit else { return };
                let what = What::Outcome { id: *id, since: request.read_version };
                self.ask_sequencer(what, out);
            }
        }
    }

    fn read(&mut self, now: u64, out: &mut Out) {
        let (Some(doing), Some([list, ..])) = (&self.doing, self.tokens) else { return };
        let version = doing.read_at;
        let asked: Vec<usize> = self.pending.values().copied().collect();
        let missing = doing.reads.iter().filter(|key| !doing.seen.contains_key(key));
        let missing: Vec<usize> = missing.copied().collect();
        if missing.is_empty() {
            return self.write(now, out);
        }
        let map = self.watch.map();
        for key in missing.into_iter().filter(|key| !asked.contains(key)) {
            let gui = self.common.keys[key].1;
            let partition = self.common.partitions.of(gui);
            let serving = map.serving(partition);
            let Some(node) = (!serving.is_empty())
                .then(|| &serving[self.random.below(serving.len() as u64) as usize].1.endpoint)
                .and_then(|endpoint| endpoint.strip_prefix('n')?.parse().ok())
            else {
                self.watch.look();
                out.wake = Some(30_000);
                continue;
            };
            let at = At { version, epoch: map.epoch() };
            self.ask(node, key, What::Read { partition, at, list, gui }, out);
        }
    }

    /// All is read: makes the commit, or is done.
    fn write(&mut self, now: u64, out: &mut Out) {
        let (Some(doing), Some(tokens)) = (&mut self.doing, self.tokens) else { return };
        self.there.extend(doing.seen.iter().filter(|(_, seen)| seen.present).map(|(key, _)| *key));
        if doing.extra == Extra::Edge {
            let ends: Vec<usize> =
                doing.reads.iter().copied().filter(|key| doing.seen[key].present).collect();
            if let [source, target, ..] = ends[..] {
                if self.sids.is_empty() {
                    doing.phase = Phase::Sids;
                    return self.go_on(now, out);
                }
                let sid = Sid(self.sids.start);
                self.sids.start += 1;
                let (source, target) = (self.common.keys[source].1, self.common.keys[target].1);
                doing.edge = Some(Edge { sid, source, target, label: tokens[2] });
            }
        }
        let request = request(doing, &self.common, tokens);
        if request.mutations.is_empty() {
            return self.finish(now, Ended::Acknowledged, None, out);
        }
        let mut id = [0; 16];
        self.random.fill(&mut id);
        doing.commit = Some((RequestId(id), request));
        doing.phase = Phase::Committing;
        self.go_on(now, out);
    }

    /// An answer came.
    pub fn hear(&mut self, now: u64, number: u64, said: Said) -> Out {
        let mut out = Out::default();
        let Some(key) = self.pending.remove(&number) else { return out };
        let Some(doing) = &mut self.doing else { return out };
        match said {
            Said::Seen(Ok(seen)) => {
                doing.seen.insert(key, seen);
                self.go_on(now, &mut out);
            }
            // Forgotten by all: the transaction cannot be read to its end.
            Said::Seen(Err(error)) if error.contains("no longer kept") => {
                self.finish(now, Ended::Refused, None, &mut out);
            }
            Said::Seen(Err(_)) => {
                if self.random.one_in(3) {
                    self.watch.look();
                }
                out.wake = Some(2_000 + self.random.below(30_000));
            }
            Said::Newest(Ok(version)) => {
                self.known = self.known.max(version);
                if doing.need <= self.known {
                    doing.read_at = self.known;
                    doing.phase = Phase::Reading;
                    self.go_on(now, &mut out);
                } else {
                    out.wake = Some(10_000);
                }
            }
            Said::Tokens(Ok(tokens)) => {
                self.tokens = <[Token; 3]>::try_from(tokens).ok();
                doing.phase = Phase::Newest;
                self.go_on(now, &mut out);
            }
            Said::Sids(Ok(sids)) => {
                self.sids = sids;
                doing.phase = Phase::Reading;
                self.go_on(now, &mut out);
            }
            Said::Committed(Ok(version)) => self.finish(now, Ended::Acknowledged, Some(version), &mut out),
            // A sequencer that took over since may not know of earlier attempts.
            Said::Committed(Err(Error::Conflict { .. })) if doing.sent > 1 => {
                doing.phase = Phase::Asking;
                self.go_on(now, &mut out);
            }
            Said::Committed(Err(Error::Conflict { .. } | Error::Limit(_)))
            | Said::Outcome(Ok(Outcome::Refused)) => {
                self.finish(now, Ended::Refused, None, &mut out);
            }
            Said::Outcome(Ok(Outcome::Committed(version))) => {
                self.finish(now, Ended::Acknowledged, Some(version), &mut out);
            }
            // So long ago that nobody remembers.
            Said::Outcome(Ok(Outcome::Unknown)) => self.finish(now, Ended::Unknown, None, &mut out),
            Said::Committed(Err(_))
            | Said::Outcome(Err(_))
            | Said::Newest(Err(_))
            | Said::Tokens(Err(_))
            | Said::Sids(Err(_)) => {
                self.sequencer = None;
                out.wake = Some(30_000 + self.random.below(40_000));
            }
        }
        out
    }

    /// No answer came in time.
    pub fn overdue(&mut self, now: u64, number: u64) -> Out {
        let mut out = Out::default();
        if self.pending.remove(&number).is_some() {
            self.sequencer = None;
            self.watch.look();
            self.go_on(now, &mut out);
        }
        out
    }

    fn finish(&mut self, now: u64, ended: Ended, version: Option<Version>, out: &mut Out) {
        let Some(doing) = self.doing.take() else { return };
        self.pending.clear();
        let whole = doing.reads.iter().all(|key| doing.seen.contains_key(key));
        if let Some(version) = version {
            self.known = self.known.max(version);
            self.there.extend(doing.appends.iter().map(|(key, _)| *key));
            self.edges.extend(doing.edge);
        }
        if whole && ended == Ended::Acknowledged {
            self.known = self.known.max(doing.read_at);
        }
        let gui = |key: &usize| self.common.keys[*key].1;
        let seen: Vec<(Gui, Seen)> = doing.seen.iter().map(|(key, seen)| (gui(key), seen.clone())).collect();
        let transaction = Transaction {
            client: self.index,
            began: doing.began,
            ended_at: now,
            ended,
            reads: doing
                .seen
                .iter()
                .filter(|(key, _)| **key < self.common.lists)
                .map(|(key, seen)| (*key as u64, seen.list.clone()))
                .collect(),
            appends: doing.appends.iter().map(|(key, number)| (*key as u64, *number)).collect(),
        };
        let id = doing.commit.as_ref().filter(|_| doing.sent > 0).map(|(id, _)| *id);
        out.done = Some(Done { transaction, read_at: doing.read_at, version, id, seen });
        out.asks.clear();
        out.wake = Some(500 + self.random.below(20_000));
    }
}

/// The epoch of a map that nobody routed by.
pub(crate) const NO_EPOCH: Epoch = Epoch(0);

//! A client of the fleet: transactions one after the other, by the rules that a worker keeps.
//!
//! It reads at the newest version that it knows, or asks the sequencer for a newer one; it asks replicas in turn until one has
//! the version; it sends its commit under one id however often, to whoever has the lease, until somebody knows what became
//! of it or patience ends.
//!
//! What must never happen here: an answer to another question taken for the one that is waited for.

use crate::checker::Ended;
use crate::commit::request;
use crate::map::SimMap;
use crate::model::Seen;
use crate::process::Process;
use crate::transaction::{Common, Done, Maker, NAMES, Work, edge};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tidegraph_apl::At;
use tidegraph_cluster::{MapStore, MapWatch, SEQUENCER};
use tidegraph_platform::Random;
use tidegraph_remote::{Error, Outcome, RequestId};
use tidegraph_types::{CommitRequest, Epoch, Gui, PartitionId, Str, Token, Version};

/// How long a client tries, in microseconds.
const PATIENCE: u64 = 8_000_000;
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
    /// Whether it is the same message a second time. What is answered to that one nobody hears: a connection gives one answer to
    /// a request, and where that is lost, so is the connection.
    pub copy: bool,
}

/// What a client wants of its surroundings.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub asks: Vec<(usize, Ask)>,
    /// To be called again after so many microseconds.
    pub wake: Option<u64>,
    pub done: Option<Done>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Tokens,
    Newest,
    Reading,
    Sids,
    Committing,
    /// Asks what became of the commit: a refusal may be of a later attempt only.
    Asking,
}

/// A transaction that is under way.
#[derive(Debug)]
struct Doing {
    phase: Phase,
    work: Work,
    commit: Option<(RequestId, CommitRequest)>,
    /// How often the commit was sent.
    sent: u32,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub process: Arc<Process>,
    maker: Maker,
    watch: MapWatch,
    map: Arc<SimMap>,
    common: Arc<Common>,
    /// The newest version that this client knows.
    pub known: Version,
    tokens: Option<[Token; 3]>,
    sids: Range<u64>,
    asked: u64,
    /// Questions without an answer, with the key for a read.
    pending: BTreeMap<u64, usize>,
    sequencer: Option<usize>,
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
            process,
            maker: Maker::new(index, common.clone(), seed),
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

    /// Goes on, or begins something new where `may_begin`; `bookmark` is a version that somebody else was told.
    pub fn wake(&mut self, now: u64, bookmark: Version, may_begin: bool) -> Out {
        let mut out = Out::default();
        if self.doing.is_none() && may_begin {
            let work = self.maker.begin(now, self.known, bookmark);
            let phase = if self.tokens.is_none() { Phase::Tokens } else { Phase::Newest };
            self.doing = Some(Doing { phase, work, commit: None, sent: 0 });
        }
        self.go_on(now, &mut out);
        out
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
        out.asks.push((node, Ask { client: self.maker.index, number: self.asked, what, copy: false }));
    }

    fn ask_sequencer(&mut self, what: What, out: &mut Out) -> bool {
        match self.find() {
            Some(node) => {
                self.ask(node, 0, what, out);
                true
            }
            None => {
                out.wake = Some(20_000 + self.maker.random.below(60_000));
                false
            }
        }
    }

    /// Asks what is to be asked now.
    fn go_on(&mut self, now: u64, out: &mut Out) {
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
                self.ask_sequencer(What::Intern(names), out);
            }
            Phase::Newest => {
                // A worker that knows of a version may read at it without asking.
                let enough = doing.work.need <= self.known && self.known > Version(0);
                if enough && self.maker.random.one_in(2) {
                    doing.work.read_at = self.known;
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
            let partition = self.common.partitions.of(gui);
            let serving = map.serving(partition);
            let Some(node) = (!serving.is_empty())
                .then(|| &serving[self.maker.random.below(serving.len() as u64) as usize].1.endpoint)
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
        self.maker.note(&doing.work.seen);
        if let Some(ends) = self.maker.ends(&doing.work) {
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
        self.maker.random.fill(&mut id);
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
                doing.work.seen.insert(key, seen);
                self.go_on(now, &mut out);
            }
            // Forgotten by all: the transaction cannot be read to its end.
            Said::Seen(Err(error)) if error.contains("no longer kept") => {
                self.finish(now, Ended::Refused, None, &mut out);
            }
            Said::Seen(Err(_)) => {
                if self.maker.random.one_in(3) {
                    self.watch.look();
                }
                out.wake = Some(2_000 + self.maker.random.below(30_000));
            }
            Said::Newest(Ok(version)) => {
                self.known = self.known.max(version);
                if doing.work.need <= self.known {
                    doing.work.read_at = self.known;
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
                out.wake = Some(30_000 + self.maker.random.below(40_000));
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
        let Doing { work, commit, sent, .. } = doing;
        let whole = work.reads.iter().all(|key| work.seen.contains_key(key));
        if let Some(version) = version {
            self.known = self.known.max(version);
        }
        if whole && ended == Ended::Acknowledged {
            self.known = self.known.max(work.read_at);
        }
        let done = self.maker.end(work, now, ended, version);
        let (id, mutations) =
            commit.filter(|_| sent > 0).map(|(id, request)| (id, request.mutations)).unzip();
        out.done = Some(Done { id, mutations: mutations.unwrap_or_default(), ..done });
        out.asks.clear();
        out.wake = Some(500 + self.maker.random.below(20_000));
    }
}

/// The epoch of a map that nobody routed by.
pub(crate) const NO_EPOCH: Epoch = Epoch(0);

//! A real worker in the world: the code that queries of a process run on, over a network that loses, delays and repeats.
//!
//! It does one transaction after the other, by what the engine calls (`Backend`): takes a snapshot, reads from all partitions at
//! once, commits. Which replica is asked, who is asked again, when a second one is, where the sequencer is, what became
//! of a commit without an answer: all that is the worker's own code.

use crate::baton::{Baton, Wish, WorkerClock};
use crate::checker::Ended;
use crate::commit::request;
use crate::map::SimMap;
use crate::node::see;
use crate::process::Process;
use crate::transaction::{Done, Extra, Maker, NAMES, Work, edge};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_engine::{Asking, Backend};
use tidegraph_fleet::{Worker, WorkerConfig, WorkerParts};
use tidegraph_platform::{Clock, Random, SeededRandom};
use tidegraph_remote::{Answer, Error, FleetConfig, Network, Security};
use tidegraph_types::{ErrorCode, Str, Token, Version};
use tidegraph_wire::{Message, proto};

/// How long a read may take.
const READ: Duration = Duration::from_secs(3);
/// Before a worker that could not start tries again.
const START_AGAIN: Duration = Duration::from_millis(50);

/// The lives of nodes, as who connects to them learns of them; 0: it does not run.
pub(crate) type Lives = Arc<Vec<AtomicU64>>;

/// A request that a worker sent.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub worker: usize,
    pub life: u64,
    pub number: u64,
    pub node: usize,
    /// The life of the node that it was sent to.
    pub node_life: u64,
    pub bytes: Vec<u8>,
    /// Whether it is the same message a second time, as in [`crate::client::Ask`].
    pub copy: bool,
    /// How often it was found to be too early.
    pub early: u32,
}

/// What a worker and the world leave for each other.
#[derive(Debug, Default)]
struct Shelf {
    sent: Vec<(u64, usize, u64, Vec<u8>)>,
    waiting: BTreeMap<u64, Answer>,
    asked: u64,
    bookmark: Version,
    done: Option<Done>,
    /// What must never be, and was.
    wrong: Option<String>,
}

/// The network as a worker has it.
struct Line {
    clock: Arc<WorkerClock>,
    lives: Lives,
    random: SeededRandom,
    shelf: Arc<Mutex<Shelf>>,
    /// Whether each attempt of a commit gets another name: a defect that is planted.
    renames: bool,
}

/// A call as it is, but a commit under the name of one attempt.
fn renamed(bytes: Vec<u8>, attempt: u64) -> Vec<u8> {
    let Ok(mut call) = proto::Call::decode(&bytes[..]) else { return bytes };
    if let Some(proto::call::Kind::Commit(commit)) = &mut call.kind {
        commit.request_id.truncate(8);
        commit.request_id.extend(attempt.to_le_bytes());
    }
    call.encode_to_vec()
}

impl Network for Line {
    fn send(&self, address: &str, call: Vec<u8>, answer: Answer) -> Result<u64, Error> {
        let unreachable = || Error::Unreachable { peer: address.into(), reason: "it does not run".into() };
        let node = address.strip_prefix('n').and_then(|number| number.parse::<usize>().ok());
        let node = node.filter(|node| *node < self.lives.len()).ok_or_else(unreachable)?;
        let life = self.lives[node].load(Ordering::Relaxed);
        // A connection to one that is gone may look well for a while.
        if !self.clock.process.is_alive() || (life == 0 && self.random.one_in(2)) {
            return Err(unreachable());
        }
        let mut shelf = self.shelf.lock();
        shelf.asked += 1;
        let number = shelf.asked;
        let call = if self.renames { renamed(call, number) } else { call };
        shelf.sent.push((number, node, life, call));
        shelf.waiting.insert(number, answer);
        Ok(life)
    }

    fn sleep(&self, at_most: Duration) {
        self.clock.rest(at_most, true);
    }
}

/// What one life of a worker is made of.
pub(crate) struct Parts {
    pub index: usize,
    pub process: Arc<Process>,
    pub map: Arc<SimMap>,
    pub lives: Lives,
    pub maker: Maker,
    pub config: WorkerConfig,
    pub seed: u64,
}

/// One life of a worker.
pub(crate) struct SimWorker {
    pub life: u64,
    pub process: Arc<Process>,
    /// Counts its turns: who wants to wake it says in which sleep.
    pub turn: u64,
    /// Whether it waits for something to do.
    pub rests: bool,
    /// Whether an answer wakes it.
    pub hears: bool,
    baton: Arc<Baton>,
    shelf: Arc<Mutex<Shelf>>,
    thread: Option<JoinHandle<()>>,
}

/// What a worker did in a turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub sent: Vec<Call>,
    pub done: Option<Done>,
    pub wish: Wish,
    pub wrong: Option<String>,
}

impl SimWorker {
    /// Starts a thread, which does nothing before its first turn.
    pub fn start(parts: Parts, life: u64) -> Result<Self, String> {
        let (baton, shelf) = (Arc::new(Baton::default()), Arc::new(Mutex::new(Shelf::default())));
        let (process, index) = (parts.process.clone(), parts.index);
        let (its_baton, its_shelf) = (baton.clone(), shelf.clone());
        let run = move || {
            its_baton.wait();
            let ran = catch_unwind(AssertUnwindSafe(|| live(parts, &its_baton, &its_shelf)));
            let panic = ran.err().map(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
            });
            its_baton.give_back(Wish::End(panic));
        };
        let thread = std::thread::Builder::new().name(format!("worker-{index}")).spawn(run);
        let thread = Some(thread.map_err(|error| error.to_string())?);
        Ok(Self { life, process, turn: 0, rests: false, hears: false, baton, shelf, thread })
    }

    /// Its turn, until it wants something. `bookmark` is a version that somebody else was told.
    pub fn go_on(&mut self, index: usize, bookmark: Version) -> Turn {
        self.shelf.lock().bookmark = bookmark;
        self.turn += 1;
        let wish = self.baton.pass();
        self.rests = matches!(wish, Wish::Rest);
        self.hears = matches!(wish, Wish::Sleep { answers: true, .. });
        let mut shelf = self.shelf.lock();
        let (life, worker) = (self.life, index);
        let calls = std::mem::take(&mut shelf.sent).into_iter();
        let sent = calls
            .map(|(number, node, node_life, bytes)| Call {
                worker,
                life,
                number,
                node,
                node_life,
                bytes,
                copy: false,
                early: 0,
            })
            .collect();
        Turn { sent, done: shelf.done.take(), wish, wrong: shelf.wrong.take() }
    }

    /// An answer has come; says whether it is one that is waited for.
    pub fn hear(&self, number: u64, content: Result<Bytes, Error>) -> bool {
        let waiting = self.shelf.lock().waiting.remove(&number);
        waiting.is_some_and(|answer| {
            answer.give(content);
            self.hears
        })
    }

    /// Its process is gone; what its thread still does reaches nobody. Answers the transaction that was under way.
    pub fn kill(&mut self, index: usize) -> Turn {
        self.process.alive.store(false, Ordering::Relaxed);
        let turn = self.go_on(index, Version(0));
        if let Some(thread) = self.thread.take().filter(|_| matches!(turn.wish, Wish::End(_))) {
            // What it panicked of is in its last wish.
            let _ = thread.join();
        }
        turn
    }
}

/// Between two transactions it waits to be told; ends when its process is killed.
fn live(parts: Parts, baton: &Arc<Baton>, shelf: &Arc<Mutex<Shelf>>) {
    let Parts { index: _, process, map, lives, mut maker, config, seed } = parts;
    let clock = WorkerClock::new(process.clock.clone(), baton.clone(), process.clone());
    let random: Arc<dyn Random> = Arc::new(SeededRandom::new(seed));
    let line_random = SeededRandom::new(random.next_u64());
    let renames = maker.common.renames_commits;
    let line =
        Arc::new(Line { clock: clock.clone(), lives, random: line_random, shelf: shelf.clone(), renames });
    let worker = loop {
        let parts = WorkerParts {
            graph: maker.common.graph.clone(),
            map_store: map.clone(),
            security: Security::none(),
            clock: clock.clone(),
            random: random.clone(),
        };
        match Worker::without_threads(config.clone(), parts, line.clone()) {
            Ok(worker) => break worker,
            Err(error) => process.note(format_args!("cannot start: {error}")),
        }
        if !process.is_alive() {
            return;
        }
        clock.sleep(START_AGAIN);
    };
    let mut tokens = None;
    loop {
        baton.give_back(Wish::Rest);
        if !process.is_alive() {
            return;
        }
        let bookmark = shelf.lock().bookmark;
        let known = worker.standing().version;
        let work = maker.begin(process.clock.world_micros(), known, bookmark);
        let doing = Doing { worker: &worker, process: &process, clock: &clock, shelf };
        let done = doing.transaction(&mut maker, &mut tokens, work);
        let mut shelf = shelf.lock();
        // Nobody was told what a killed process only read.
        shelf.done = Some(done).filter(|done| process.is_alive() || !done.mutations.is_empty());
        drop(shelf);
        if !process.is_alive() {
            return;
        }
    }
}

struct Doing<'a> {
    worker: &'a Worker,
    process: &'a Process,
    clock: &'a WorkerClock,
    shelf: &'a Mutex<Shelf>,
}

impl Doing<'_> {
    fn transaction(&self, maker: &mut Maker, tokens: &mut Option<[Token; 3]>, mut work: Work) -> Done {
        let writes = !work.appends.is_empty() || work.extra != Extra::None;
        // As the engine does: what writes may read a little in the past, for its commit checks what was read.
        let at_hand = maker.common.at_hand && writes && maker.random.one_in(2);
        let mut read = self.read(maker, tokens, &mut work, at_hand);
        if let Ok(tokens) = read
            && at_hand
            && request(&work, &maker.common, tokens).mutations.is_empty()
        {
            work.seen.clear();
            read = self.read(maker, &mut Some(tokens), &mut work, false);
        }
        let end = |maker: &mut Maker, work: Work, ended: Ended, version: Option<Version>| {
            maker.end(work, self.process.clock.world_micros(), ended, version)
        };
        let tokens = match read {
            Ok(tokens) => tokens,
            Err(error) => {
                self.process.note(format_args!("cannot read: {error}"));
                self.is_no_mistake("a read", error.code(), &error);
                // What was seen of it nobody was told.
                work.seen.clear();
                return end(maker, work, Ended::Refused, None);
            }
        };
        let request = request(&work, &maker.common, tokens);
        if request.mutations.is_empty() {
            return end(maker, work, Ended::Acknowledged, None);
        }
        let mutations = request.mutations.clone();
        let (ended, version) = match self.worker.commit(request) {
            Ok(version) => (Ended::Acknowledged, Some(version)),
            Err(error) => {
                self.process.note(format_args!("cannot commit: {error}"));
                self.is_no_mistake("a commit", error.code(), &error);
                match error.code() {
                    ErrorCode::ConcurrentModification | ErrorCode::QueryLimitExceeded => {
                        (Ended::Refused, None)
                    }
                    _ => (Ended::Unknown, None),
                }
            }
        };
        if at_hand && ended != Ended::Acknowledged {
            // Nobody was told what was seen, nor has a commit checked it.
            work.seen.clear();
        }
        Done { mutations, ..end(maker, work, ended, version) }
    }

    /// Reads what is to be read; answers the tokens of names.
    fn read(
        &self,
        maker: &mut Maker,
        known: &mut Option<[Token; 3]>,
        work: &mut Work,
        at_hand: bool,
    ) -> Result<[Token; 3], tidegraph_engine::Error> {
        if maker.random.one_in(2) {
            self.worker.look();
        }
        let tokens = match *known {
            Some(tokens) => tokens,
            None => {
                let names: Vec<Str> = NAMES.iter().map(|name| Str::from(*name)).collect();
                let tokens = self.worker.catalog().intern(&names)?;
                let tokens = <[Token; 3]>::try_from(tokens).map_err(|_| {
                    tidegraph_engine::Error::new(ErrorCode::InvalidArgument, "not a token for each name")
                })?;
                *known = Some(tokens);
                tokens
            }
        };
        let early = if at_hand { self.worker.snapshot_at_hand() } else { None };
        let checked = early.is_some();
        let snapshot = match early {
            Some(snapshot) => snapshot,
            None => self.worker.snapshot(Some(work.need))?,
        };
        work.read_at = snapshot.at.version;
        if work.read_at < work.need && !checked {
            let what = format!("a snapshot at {} where {} was asked for", work.read_at, work.need);
            self.shelf.lock().wrong.get_or_insert(what);
        }
        let asking = Asking { deadline: Some(self.clock.now() + READ), cancel: None };
        let reader = self.worker.reader(asking);
        let guis: Vec<_> = work.reads.iter().map(|key| maker.common.keys[*key].1).collect();
        let seen = see(&*reader, snapshot.at, tokens[0], &guis).map_err(tidegraph_engine::Error::from)?;
        work.seen = work.reads.iter().copied().zip(seen).collect();
        maker.note(&work.seen);
        if let Some(ends) = maker.ends(work) {
            let sids = self.worker.catalog().allocate_sids(1)?;
            work.edge = Some(edge(sids.start, ends, tokens[2]));
        }
        Ok(tokens)
    }

    /// A client made no mistake here, so none may be called one.
    fn is_no_mistake(&self, what: &str, code: ErrorCode, error: &dyn std::fmt::Display) {
        if code == ErrorCode::InvalidArgument {
            self.shelf.lock().wrong.get_or_insert(format!("{what} is called a mistake: {error}"));
        }
    }
}

/// Settings of workers in a world.
pub(crate) fn config() -> WorkerConfig {
    WorkerConfig {
        answer_ms: 1_200,
        patience_ms: 8_000,
        fleet: FleetConfig { longest_ms: 5_000, ..FleetConfig::default() },
        ..WorkerConfig::default()
    }
}

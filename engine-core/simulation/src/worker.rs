//! A real worker in the world: the code that a process runs queries on, over a network
//! that loses, delays and repeats messages.
//!
//! It runs one transaction after the other through the engine's trait `Backend`: takes a snapshot, reads
//! from all partitions at once, commits. The worker's own code decides which replica to ask, which one
//! to ask next and when, where the sequencer is, and what the outcome of an unanswered commit is. In some worlds it also
//! runs statements and bulk loads, on the engine over the worker.

use crate::checker::Ended;
use crate::commit::request;
use crate::load::LoadEnd;
use crate::loader::{LoadFolder, Loader};
use crate::map::SimMap;
use crate::model::Seen;
use crate::network::{Panicked, SimNetwork};
use crate::node::see;
use crate::process::Process;
use crate::run_token::{Killed, RunToken, WorkerClock, Yield};
use crate::start::SetupError;
use crate::statement::{Statement, rows_of};
use crate::statements::StatementEnd;
use crate::transaction::{Extra, FinishedTransaction, NAMES, TransactionGenerator, TransactionPlan, edge};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_apl::{Apl, At, ScanCursor, VertexScan};
use tidegraph_engine::{Backend, Database, Options, Query, ReadOptions, Retry};
use tidegraph_fleet::{Worker, WorkerConfig, WorkerParts};
use tidegraph_platform::{Clock, Objects, Random, SeededRandom};
use tidegraph_remote::{Answer, Error, FleetConfig, Security};
use tidegraph_types::{ErrorCode, Gui, Str, Token, Version};

/// Time limit of a read.
const READ: Duration = Duration::from_secs(3);
/// Time limit of a statement.
const STATEMENT: Duration = Duration::from_secs(6);
/// How often a scan runs again because a replica was lost.
const MOST_AGAIN: u64 = 3;
/// One of this many things that a worker does is a load, in worlds with loads.
const LOADS: u64 = 3;
/// Pause before a worker that could not start tries again.
const START_AGAIN: Duration = Duration::from_millis(50);

/// The current life of each node, as connections see it; 0 if the node does not run.
pub(crate) type NodeLives = Arc<Vec<AtomicU64>>;

/// A request of a worker.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub worker: usize,
    pub life: u64,
    pub number: u64,
    pub node: usize,
    /// Life of the node that it was sent to.
    pub node_life: u64,
    pub bytes: Vec<u8>,
    /// Whether it is a duplicate of the message, as in [`crate::client::ClientCall`].
    pub copy: bool,
    /// Number of times that the node had not reached its version.
    pub early: u32,
}

/// A statement that ended, and the newest version that the process knew when it began.
pub(crate) type EndedStatement = (Statement, Version, StatementEnd);

/// What the world asks of a worker that rests.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    Statement(Statement),
    /// Runs a statement that is drawn.
    AnyStatement,
    /// Runs a load.
    Load,
    /// Does the next step of a load in steps.
    Step(String),
    /// Reports on a load, of whatever worker.
    Report(String),
}

/// A load, and what a worker says about it.
pub(crate) type EndedLoad = (String, LoadEnd);

/// Messages between a worker and the world.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    pub sent: Vec<(u64, usize, u64, Vec<u8>)>,
    pub waiting: BTreeMap<u64, Answer>,
    pub asked: u64,
    pub bookmark: Version,
    pub done: Option<FinishedTransaction>,
    /// What to do next; `None`: what is drawn.
    pub wish: Option<Wish>,
    /// The statement that runs, and the newest version that the process knew when it began.
    pub running: Option<(Statement, Version)>,
    pub ended: Option<EndedStatement>,
    pub load: Option<EndedLoad>,
    /// The rule that the worker broke, if any.
    pub wrong: Option<String>,
}

/// The parts of one life of a worker.
pub(crate) struct Parts {
    pub index: usize,
    pub process: Arc<Process>,
    pub map: Arc<SimMap>,
    pub lives: NodeLives,
    pub generator: TransactionGenerator,
    pub config: WorkerConfig,
    /// Where loads put their files.
    pub objects: Arc<Objects>,
    /// Whether it runs statements beside transactions.
    pub statements: bool,
    /// The folder for files of loads, and the loads of all workers; `None`: it runs no loads.
    pub loads: Option<LoadFolder>,
    /// Whether code panics.
    pub panics: bool,
    pub seed: u64,
}

/// One life of a worker.
pub(crate) struct SimWorker {
    pub life: u64,
    pub process: Arc<Process>,
    /// Counts the turns, so that a wake-up names the sleep that it ends.
    pub turn: u64,
    /// Whether it waits for its next transaction.
    pub rests: bool,
    /// Whether an answer ends its sleep.
    pub hears: bool,
    token: Arc<RunToken>,
    mailbox: Arc<Mutex<Mailbox>>,
    thread: Option<JoinHandle<()>>,
}

/// The result of a worker's turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub sent: Vec<Call>,
    pub done: Option<FinishedTransaction>,
    pub statement: Option<EndedStatement>,
    pub load: Option<EndedLoad>,
    pub yielded: Yield,
    pub wrong: Option<String>,
}

impl SimWorker {
    /// Starts a thread, which waits for its first turn.
    pub fn start(parts: Parts, life: u64) -> Result<Self, SetupError> {
        let (token, mailbox) = (Arc::new(RunToken::default()), Arc::new(Mutex::new(Mailbox::default())));
        let (process, index) = (parts.process.clone(), parts.index);
        let (its_token, its_mailbox) = (token.clone(), mailbox.clone());
        let run = move || {
            its_token.wait_for_turn();
            let ran = catch_unwind(AssertUnwindSafe(|| run_process(parts, &its_token, &its_mailbox)));
            let panic = ran.err().filter(|panic| !panic.is::<Killed>()).map(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
            });
            its_token.yield_turn(Yield::Exit(panic));
        };
        let thread = tidegraph_platform::spawn(format!("worker-{index}"), run);
        let thread = Some(thread?);
        Ok(Self { life, process, turn: 0, rests: false, hears: false, token, mailbox, thread })
    }

    /// Runs the worker until it yields. `bookmark` is a version that any client was told.
    pub fn go_on(&mut self, index: usize, bookmark: Version) -> Turn {
        self.mailbox.lock().bookmark = bookmark;
        self.turn += 1;
        let yielded = self.token.run_worker();
        self.rests = matches!(yielded, Yield::Idle);
        self.hears = matches!(yielded, Yield::Sleep { answers: true, .. });
        let mut mailbox = self.mailbox.lock();
        let (life, worker) = (self.life, index);
        let calls = std::mem::take(&mut mailbox.sent).into_iter();
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
        let (done, statement, load) = (mailbox.done.take(), mailbox.ended.take(), mailbox.load.take());
        Turn { sent, done, statement, load, yielded, wrong: mailbox.wrong.take() }
    }

    /// Returns the statement that runs, if any.
    pub fn statement(&self) -> Option<Statement> {
        self.mailbox.lock().running.as_ref().map(|(statement, _)| statement.clone())
    }

    /// Returns whether the worker rests, and nothing was asked of it.
    pub fn is_idle(&self) -> bool {
        self.rests && self.mailbox.lock().wish.is_none()
    }

    /// Asks for something at the next turn, if the worker rests.
    pub fn wish(&self, wish: Wish) {
        self.mailbox.lock().wish = Some(wish);
    }

    /// Delivers an answer. Returns whether it ends the worker's sleep.
    pub fn hear(&self, number: u64, content: Result<Bytes, Error>) -> bool {
        let waiting = self.mailbox.lock().waiting.remove(&number);
        waiting.is_some_and(|answer| {
            answer.give(content);
            self.hears
        })
    }

    /// Kills the process; its thread no longer reaches any service. Returns the transaction that was running.
    pub fn kill(&mut self, index: usize) -> Turn {
        self.process.alive.store(false, Ordering::Relaxed);
        let running = self.mailbox.lock().running.take();
        let mut turn = self.go_on(index, Version(0));
        turn.statement = running.map(|(statement, since)| (statement, since, StatementEnd::Unknown));
        if let Some(thread) = self.thread.take().filter(|_| matches!(turn.yielded, Yield::Exit(_))) {
            // The last yield contains the panic.
            let _ = thread.join();
        }
        turn
    }
}

/// Runs transactions, and waits for a turn before each. Ends when the process is killed.
fn run_process(parts: Parts, token: &Arc<RunToken>, mailbox: &Arc<Mutex<Mailbox>>) {
    let Parts {
        process, map, lives, mut generator, config, objects, statements, loads, panics, seed, ..
    } = parts;
    let clock = WorkerClock::new(process.clock.clone(), token.clone(), process.clone());
    let random: Arc<dyn Random> = Arc::new(SeededRandom::new(seed));
    let network_random = SeededRandom::new(random.next_u64());
    let (renames, strips) = (generator.common.renames_commits, generator.common.strips);
    let line = Arc::new(SimNetwork {
        clock: clock.clone(),
        lives,
        random: network_random,
        mailbox: mailbox.clone(),
        renames,
        strips,
        panics,
    });
    let worker = loop {
        let parts = WorkerParts {
            graph: generator.common.graph.clone(),
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
    let worker = Arc::new(worker);
    let database = if statements {
        let options = Options { query_timeout: STATEMENT, ..Options::default() };
        let (objects, random) = (objects.clone(), random.clone());
        match Database::connect_without_threads(options, worker.clone(), objects, clock.clone(), random) {
            Ok(database) => Some(database),
            Err(error) => return process.note(format_args!("cannot open the graph: {error}")),
        }
    } else {
        None
    };
    let (mut tokens, mut count) = (None, 0);
    loop {
        token.yield_turn(Yield::Idle);
        if !process.is_alive() {
            return;
        }
        let bookmark = mailbox.lock().bookmark;
        let known = worker.status().version;
        let wish = mailbox.lock().wish.take();
        if let (Some(database), Some(loads)) = (&database, &loads)
            && (matches!(wish, Some(Wish::Load | Wish::Step(_) | Wish::Report(_)))
                || wish.is_none() && generator.random.one_in(LOADS))
        {
            count += 1;
            let loader = Loader {
                database,
                loads,
                process: &process,
                objects: &objects,
                clock: &clock,
                random: &random,
            };
            let end = loader.work(&worker, &generator, count, wish).unwrap_or_else(|error| {
                process.note(format_args!("cannot load: {error}"));
                None
            });
            // Nobody is told what a killed process says.
            mailbox.lock().load = end.filter(|_| process.is_alive());
            continue;
        }
        if let Some(database) = &database
            && (wish.is_some() || !generator.random.one_in(3))
        {
            count += 1;
            let draw = || Statement::draw(&generator.random, generator.index, count, loads.is_some());
            let statement = match wish {
                Some(Wish::Statement(statement)) => statement,
                _ => draw(),
            };
            let at_least = generator.random.one_in(2).then_some(bookmark);
            let since = worker.status().version.max(at_least.unwrap_or_default());
            mailbox.lock().running = Some((statement.clone(), since));
            let ran = catch_unwind(AssertUnwindSafe(|| run_statement(database, &statement, at_least)));
            let end = match ran {
                Ok(end) => end,
                // The service catches it, and goes on with the same database.
                Err(panic) if panic.is::<Panicked>() => StatementEnd::Unknown,
                Err(panic) => resume_unwind(panic),
            };
            let mut mailbox = mailbox.lock();
            // The world takes the statement of a killed process.
            mailbox.ended = mailbox.running.take().map(|(statement, since)| (statement, since, end));
            continue;
        }
        let now = process.clock.world_micros();
        let scans = generator.common.scans && generator.random.one_in(3);
        let work = if scans {
            generator.begin_scan(now, known, bookmark)
        } else {
            generator.begin(now, known, bookmark)
        };
        let doing = InFlight { worker: &worker, process: &process, clock: &clock, mailbox };
        let done = doing.transaction(&mut generator, &mut tokens, work);
        let mut mailbox = mailbox.lock();
        // No client was told the reads of a killed process.
        mailbox.done = Some(done).filter(|done| process.is_alive() || !done.mutations.is_empty());
        drop(mailbox);
        if !process.is_alive() {
            return;
        }
    }
}

/// Runs a statement on the engine.
fn run_statement(database: &Database, statement: &Statement, at_least: Option<Version>) -> StatementEnd {
    let (language, text, parameters) = statement.query();
    let mut query = Query::new(language, &text, &parameters);
    query.at_least = at_least;
    match database.query(&query) {
        Ok(answer) => {
            let rows = rows_of(&answer.rows);
            StatementEnd::Answered { version: answer.version, wrote: answer.wrote, rows }
        }
        Err(error) if error.code() == ErrorCode::CommitOutcomeUnknown => StatementEnd::Unknown,
        Err(error) => StatementEnd::Refused { code: error.code(), text: error.to_string() },
    }
}

struct InFlight<'a> {
    worker: &'a Worker,
    process: &'a Process,
    clock: &'a WorkerClock,
    mailbox: &'a Mutex<Mailbox>,
}

impl InFlight<'_> {
    fn transaction(
        &self,
        generator: &mut TransactionGenerator,
        tokens: &mut Option<[Token; 3]>,
        mut work: TransactionPlan,
    ) -> FinishedTransaction {
        if work.extra == Extra::Scan {
            return self.scan(generator, tokens, work);
        }
        let writes = !work.appends.is_empty() || work.extra != Extra::None;
        // As in the engine: a transaction that writes may read a little in the past,
        // because its commit checks its reads.
        let at_hand = generator.common.at_hand && writes && generator.random.one_in(2);
        let mut read = self.read(generator, tokens, &mut work, at_hand);
        if let Ok(tokens) = read
            && at_hand
            && request(&work, &generator.common, tokens).mutations.is_empty()
        {
            work.seen.clear();
            read = self.read(generator, &mut Some(tokens), &mut work, false);
        }
        let end = |generator: &mut TransactionGenerator,
                   work: TransactionPlan,
                   ended: Ended,
                   version: Option<Version>| {
            generator.end(work, self.process.clock.world_micros(), ended, version)
        };
        let tokens = match read {
            Ok(tokens) => tokens,
            Err(error) => {
                self.process.note(format_args!("cannot read: {error}"));
                self.is_no_mistake("a read", error.code(), &error);
                // No client was told the reads.
                work.seen.clear();
                return end(generator, work, Ended::Refused, None);
            }
        };
        let request = request(&work, &generator.common, tokens);
        if request.mutations.is_empty() {
            return end(generator, work, Ended::Acknowledged, None);
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
            // No client was told the reads, and no commit checked them.
            work.seen.clear();
        }
        FinishedTransaction { mutations, ..end(generator, work, ended, version) }
    }

    /// Finds all vertices of a label by a scan in small pieces, with pauses, and reads them. A scan that loses its replica
    /// runs again at the same version, as a query of the engine does.
    fn scan(
        &self,
        generator: &mut TransactionGenerator,
        tokens: &mut Option<[Token; 3]>,
        mut work: TransactionPlan,
    ) -> FinishedTransaction {
        let mut again = 0;
        let found = self.names(generator, tokens).and_then(|tokens| {
            let snapshot = self.worker.snapshot(Some(work.need))?;
            work.read_at = snapshot.at.version;
            let options = ReadOptions { deadline: Some(self.clock.now() + 2 * READ), cancel: None };
            let scan = VertexScan { labels: vec![vec![tokens[1]]], max_rows: 1, ..VertexScan::default() };
            loop {
                let reader = self.worker.reader(options);
                match self.pieces(generator, &*reader, snapshot.at, &scan, tokens[0]) {
                    Ok(seen) => return Ok(seen),
                    Err(error) if error.retry() == Retry::OtherReplica && again < MOST_AGAIN => again += 1,
                    Err(error) => return Err(error),
                }
            }
        });
        let ended = match found {
            Ok(seen) => {
                let unread = Seen::default();
                let keys =
                    generator.common.keys.iter().map(|(_, gui)| seen.get(gui).unwrap_or(&unread).clone());
                work.seen = keys.enumerate().collect();
                Ended::Acknowledged
            }
            Err(error) => {
                self.process.note(format_args!("cannot scan: {error}"));
                self.is_no_mistake("a scan", error.code(), &error);
                Ended::Refused
            }
        };
        let done = generator.end(work, self.process.clock.world_micros(), ended, None);
        FinishedTransaction { scan: Some(again), ..done }
    }

    fn pieces(
        &self,
        generator: &TransactionGenerator,
        apl: &dyn Apl,
        at: At,
        scan: &VertexScan,
        list: Token,
    ) -> Result<BTreeMap<Gui, Seen>, tidegraph_engine::Error> {
        let (mut seen, mut from) = (BTreeMap::new(), Some(ScanCursor::default()));
        while let Some(cursor) = from {
            let mut guis = Vec::new();
            from = apl.scan_vertices(at, scan, cursor, &mut guis)?;
            for (gui, vertex) in guis.iter().zip(see(apl, at, list, &guis)?) {
                if seen.insert(*gui, vertex).is_some() {
                    self.mailbox
                        .lock()
                        .wrong
                        .get_or_insert(format!("a scan at {} has {gui:?} twice", at.version));
                }
            }
            self.clock.sleep(Duration::from_micros(generator.random.below(100_000)));
        }
        Ok(seen)
    }

    /// Returns the tokens of the names.
    fn names(
        &self,
        generator: &TransactionGenerator,
        known: &mut Option<[Token; 3]>,
    ) -> Result<[Token; 3], tidegraph_engine::Error> {
        if generator.random.one_in(2) {
            self.worker.refresh_version();
        }
        if let Some(tokens) = *known {
            return Ok(tokens);
        }
        let names: Vec<Str> = NAMES.iter().map(|name| Str::from(*name)).collect();
        let tokens = self.worker.catalog().intern(&names)?;
        let tokens = <[Token; 3]>::try_from(tokens).map_err(|_| {
            tidegraph_engine::Error::new(
                ErrorCode::InvalidArgument,
                "the dictionary did not return one token for each name",
            )
        })?;
        *known = Some(tokens);
        Ok(tokens)
    }

    /// Reads the keys of a transaction, and returns the tokens of the names.
    fn read(
        &self,
        generator: &mut TransactionGenerator,
        known: &mut Option<[Token; 3]>,
        work: &mut TransactionPlan,
        at_hand: bool,
    ) -> Result<[Token; 3], tidegraph_engine::Error> {
        let tokens = self.names(generator, known)?;
        let early = if at_hand { self.worker.applied_snapshot() } else { None };
        let checked = early.is_some();
        let snapshot = match early {
            Some(snapshot) => snapshot,
            None => self.worker.snapshot(Some(work.need))?,
        };
        work.read_at = snapshot.at.version;
        if work.read_at < work.need && !checked {
            let what = format!("a snapshot at {} where {} was asked for", work.read_at, work.need);
            self.mailbox.lock().wrong.get_or_insert(what);
        }
        let options = ReadOptions { deadline: Some(self.clock.now() + READ), cancel: None };
        let reader = self.worker.reader(options);
        let guis: Vec<_> = work.reads.iter().map(|key| generator.common.keys[*key].1).collect();
        let seen = see(&*reader, snapshot.at, tokens[0], &guis).map_err(tidegraph_engine::Error::from)?;
        work.seen = work.reads.iter().copied().zip(seen).collect();
        generator.note(&work.seen);
        if let Some(ends) = generator.ends(work) {
            let sids = self.worker.catalog().allocate_sids(1)?;
            work.edge = Some(edge(sids.start, ends, tokens[2]));
        }
        Ok(tokens)
    }

    /// Reports an error that blames the client, because clients here send no invalid requests.
    fn is_no_mistake(&self, what: &str, code: ErrorCode, error: &dyn std::fmt::Display) {
        if code == ErrorCode::InvalidArgument {
            self.mailbox.lock().wrong.get_or_insert(format!("{what} is refused as invalid: {error}"));
        }
    }
}

/// Returns the settings of workers in a world.
pub(crate) fn config() -> WorkerConfig {
    WorkerConfig {
        answer_within: Duration::from_millis(1_200),
        patience: Duration::from_secs(8),
        fleet: FleetConfig { longest_query: Duration::from_secs(5), ..FleetConfig::default() },
        ..WorkerConfig::default()
    }
}

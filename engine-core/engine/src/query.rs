//! From a text to an answer: front end, plan cache, execution, commit, and again after a conflict.
//!
//! A request is one transaction. It reads at one version, which it pins; what it writes is handed to the sequencer at
//! its end, all or nothing. When another transaction wrote what it read, it is run again from the start. So it is, a few
//! times and at the same version, when a replica is lost in the middle of it: nothing was written nor answered by then.
//!
//! A request may name a version that it wants to see at least. One that is not here yet is waited for, for a while.
//!
//! [`Database::query`] may take its time and may wait for the disk. [`Database::query_briefly`] is for a thread that
//! serves others too: it gives up soon, without having changed anything, and the request goes to `query` then. What it writes is
//! committed by [`Database::commit_later`], for which no thread waits.

use crate::backend::{Asking, Ended, Reader, Snapshot};
use crate::{Database, Error, Principal};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tidegraph_apl::{Catalog, Expand};
use tidegraph_exec::{Context, Entropy, Execution, Interrupt, Limits, Parameters, Stop, View};
use tidegraph_opencypher::SchemaCommand;
use tidegraph_plan::Plan;
use tidegraph_plan::passes::{Instances, Knowledge, optimize};
use tidegraph_platform::{Clock, Random};
use tidegraph_types::{CommitRequest, Direction, ErrorCode, Str, Token, Value, Version};

/// Languages of requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Language {
    /// Gremlin text.
    Gremlin,
    /// openCypher.
    OpenCypher,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Which language.
    pub language: Language,
    /// The text.
    pub text: &'a str,
    /// Parameters that it names.
    pub parameters: &'a Parameters,
    /// Longest time; the database's own limit holds as well.
    pub timeout: Option<Duration>,
    /// Set by somebody else to end the request early.
    pub cancel: Option<&'a Arc<AtomicBool>>,
    /// A version that the caller knows of: it reads that one or a later one.
    pub at_least: Option<Version>,
    /// Who asks.
    pub principal: &'a Principal,
}

impl<'a> Query<'a> {
    /// An anonymous request without a time of its own or a way to cancel it.
    #[must_use]
    pub fn new(language: Language, text: &'a str, parameters: &'a Parameters) -> Self {
        let principal = &Principal::Anonymous;
        Self { language, text, parameters, timeout: None, cancel: None, at_least: None, principal }
    }
}

/// What a request answers.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Names of the columns; one named `result` for Gremlin.
    pub columns: Arc<[Str]>,
    /// Rows, as long as `columns`; elements with their data.
    pub rows: Vec<Vec<Value>>,
    /// The version that was read, or for a write the one that it made.
    pub version: Version,
}

/// What a request came to on a thread that serves others too.
#[derive(Debug)]
pub struct Brought {
    /// The answer. Of a write it holds once the commit has succeeded, and then of that version.
    pub answer: Answer,
    /// What is to be committed: by [`Database::commit_later`]. If that fails by a conflict, the request is to be run again.
    pub commit: Option<CommitRequest>,
}

/// How far a request may go on a thread that serves others too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Brief {
    /// Longest time.
    pub time: Duration,
    /// Most memory.
    pub memory_bytes: u64,
    /// Most rows of the answer.
    pub rows: u64,
}

/// A plan, and what it was made for.
pub(crate) struct CachedPlan {
    plan: Plan,
    columns: Arc<[Str]>,
    writes: bool,
    /// Vertices and edges of the graph then.
    planned_for: (u64, u64),
    /// Of brief tries.
    brief: Doubts,
    /// Of tries where replicas are.
    at_hand: Doubts,
}

/// What speaks against another try of something: grows by each that was in vain, falls by each request.
#[derive(Default)]
struct Doubts(AtomicU32);

impl Doubts {
    /// Whether it is worth a try.
    fn allow(&self) -> bool {
        // Read first: mostly there are none, and threads that share them should not write to them.
        let doubts = self.0.load(Ordering::Relaxed);
        if doubts > 0 {
            self.0.store(doubts - 1, Ordering::Relaxed);
        }
        doubts < TOO_MANY_DOUBTS
    }

    /// One was in vain.
    fn grow(&self) {
        let more = |doubts: u32| Some((doubts + DOUBTS_OF_A_TRY).min(MOST_DOUBTS));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

/// Key of the plan cache.
pub(crate) type PlanKey = (Language, Box<str>);

/// A key that borrows its text. Hashes as [`PlanKey`] does: both field by field.
#[derive(Hash)]
struct PlanLookup<'a>(Language, &'a str);

impl quick_cache::Equivalent<PlanKey> for PlanLookup<'_> {
    fn equivalent(&self, key: &PlanKey) -> bool {
        self.0 == key.0 && *self.1 == *key.1
    }
}

pub(crate) struct Watch<'a> {
    clock: &'a dyn Clock,
    deadline: Duration,
    limit_ms: u64,
    cancel: Option<&'a Arc<AtomicBool>>,
}

impl<'a> Watch<'a> {
    fn new(clock: &'a dyn Clock, limit: Duration, cancel: Option<&'a Arc<AtomicBool>>) -> Self {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Self { clock, deadline: clock.now() + limit, limit_ms, cancel }
    }
}

impl Interrupt for Watch<'_> {
    fn check(&self) -> Result<(), Stop> {
        if self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Stop::Cancelled);
        }
        if self.clock.now() >= self.deadline {
            return Err(Stop::TimedOut { limit_ms: self.limit_ms });
        }
        Ok(())
    }
}

struct Dice<'a>(&'a dyn Random);

impl Entropy for Dice<'_> {
    fn random_u64(&self) -> u64 {
        self.0.next_u64()
    }
}

/// Texts longer than this are not kept in the plan cache: they are bulk writes that come once.
const LONGEST_CACHED_TEXT_BYTES: usize = 4_096;

/// A try in vain. One alone tells little: of a brief one its thread may have waited for the processor meanwhile.
const DOUBTS_OF_A_TRY: u32 = 32;
/// From here on requests go without a try.
const TOO_MANY_DOUBTS: u32 = 64;
/// Bounds how many do so in a row.
const MOST_DOUBTS: u32 = 128;

/// How often a request is run again because a replica was lost.
const MOST_LOSSES: u32 = 3;
/// How long a version that the caller knows of is waited for, if the request has so much time.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Time between two looks for it.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A text of at most this many bytes cannot make a plan that is too deep for the smallest stack of a thread.
const SHALLOW_TEXT_BYTES: usize = 512;
/// What the deepest plan that the languages let through needs, twice over.
const DEEP_STACK_BYTES: usize = 24 << 20;

/// Plans are walked by recursion, by the languages, the passes and the executor: one of thousands of steps needs more
/// stack than a thread has by default, and what overflows takes the whole process with it.
pub(crate) fn with_room_for<T>(text: &str, work: impl FnOnce() -> T) -> T {
    if text.len() <= SHALLOW_TEXT_BYTES {
        return work();
    }
    stacker::maybe_grow(DEEP_STACK_BYTES, DEEP_STACK_BYTES + (8 << 20), work)
}

impl Database {
    /// Runs a request to its end, on the caller's thread, whatever the size of its stack.
    pub fn query(&self, query: &Query<'_>) -> Result<Answer, Error> {
        let _span =
            tracing::debug_span!("query", language = ?query.language, principal = %query.principal).entered();
        with_room_for(query.text, || self.query_here(query))
    }

    fn query_here(&self, query: &Query<'_>) -> Result<Answer, Error> {
        let limit = Duration::from_millis(self.options.query_timeout_ms);
        let limit = query.timeout.map_or(limit, |asked| asked.min(limit));
        let clock = &*self.clock;
        let watch = Watch::new(clock, limit, query.cancel);
        if let Some(command) = schema_command(query.language, query.text)? {
            self.snapshot_for(query.at_least, &watch)?;
            return self.schema(&command, &watch);
        }
        let planned = self.plan(query.language, query.text)?;
        if let Some(answer) = self.write_at_hand(&planned, query, &watch) {
            return answer;
        }
        let (mut conflicts, mut losses) = (0, 0);
        let mut same: Option<Snapshot> = None;
        loop {
            let snapshot = match same.take() {
                Some(snapshot) => snapshot,
                // What it lost against is to be seen by the next try.
                None if conflicts > 0 && self.backend.has_replicas() => {
                    let newest = self.backend.standing().version;
                    self.snapshot_for(Some(query.at_least.unwrap_or_default().max(newest)), &watch)?
                }
                None => self.snapshot_for(query.at_least, &watch)?,
            };
            let failed = match self.run(&planned, query, &watch, self.limits(), &snapshot) {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let code = failed.error.code();
            if code == ErrorCode::ConcurrentModification && conflicts < self.options.conflict_retries {
                watch.check().map_err(tidegraph_exec::Error::from)?;
                // Those who lost draw lots, so that they don't meet again.
                let most_us = 50_u64 << conflicts.min(8);
                clock.sleep(Duration::from_micros(self.random.next_u64() % most_us));
                conflicts += 1;
            } else if failed.replica_lost && self.backend.has_replicas() && losses < MOST_LOSSES {
                watch.check().map_err(tidegraph_exec::Error::from)?;
                tracing::debug!(error = %failed.error, "a replica was lost in the middle of a query: again");
                losses += 1;
                same = Some(snapshot);
            } else {
                return Err(failed.error);
            }
        }
    }

    /// Runs a write where it can read without waiting for replicas to apply what was committed last. Its commit checks all that it read, so
    /// that it holds as if it had been read then. `None`: nothing was written, and the request is to be run where everything is seen:
    /// another wrote what it read, or it failed, or wrote nothing and nobody checked what it read.
    fn write_at_hand(
        &self,
        planned: &CachedPlan,
        query: &Query<'_>,
        watch: &Watch<'_>,
    ) -> Option<Result<Answer, Error>> {
        if !planned.writes || !planned.at_hand.allow() {
            return None;
        }
        let snapshot = self.backend.snapshot_at_hand()?;
        let catalog = self.backend.catalog();
        let brought = self.bring(planned, query, watch, self.limits(), &snapshot, catalog);
        let Ok(Brought { answer, commit: Some(request) }) = brought else {
            planned.at_hand.grow();
            return None;
        };
        match self.backend.commit(request) {
            Ok(version) => Some(Ok(Answer { version, ..answer })),
            Err(error) if error.code() == ErrorCode::ConcurrentModification => {
                planned.at_hand.grow();
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Where to read now. A version that the caller knows of and that is not here yet is waited for.
    fn snapshot_for(&self, at_least: Option<Version>, watch: &Watch<'_>) -> Result<Snapshot, Error> {
        let Some(asked) = at_least else { return self.backend.snapshot(None) };
        let until = self.clock.now() + LONGEST_WAIT;
        loop {
            let error = match self.backend.snapshot(Some(asked)) {
                Err(error) if error.code() == ErrorCode::Unavailable => error,
                other => return other,
            };
            let stop = watch.check();
            if let Err(Stop::Cancelled) = stop {
                return Err(tidegraph_exec::Error::from(Stop::Cancelled).into());
            }
            if stop.is_err() || self.clock.now() >= until {
                let message = format!("version {asked} is not here yet: {error}; try again");
                return Err(Error::new(ErrorCode::Unavailable, message));
            }
            self.clock.sleep(LOOK_AGAIN);
        }
    }

    /// Runs a request if it is soon over: one of a text that was planned before, within the bounds; of a write all but its commit.
    /// `None`: it is not, nothing came of it, and [`Database::query`] is to be asked. Never waits for the disk.
    pub fn query_briefly(&self, query: &Query<'_>, brief: Brief) -> Option<Result<Brought, Error>> {
        if self.backend.may_wait() {
            return None;
        }
        let planned = self.cached(query.language, query.text).filter(|planned| planned.brief.allow())?;
        let allowed = query.timeout.unwrap_or(Duration::MAX);
        let own = Duration::from_millis(self.options.query_timeout_ms);
        if allowed.min(own) <= brief.time {
            // Its own limit comes first, and the error has to name that.
            return None;
        }
        let snapshot = match self.backend.snapshot(query.at_least) {
            Ok(snapshot) => snapshot,
            // What is not here yet is waited for elsewhere.
            Err(_) if query.at_least.is_some() => return None,
            Err(error) => return Some(Err(error)),
        };
        let most = self.limits();
        let limits = Limits {
            memory_bytes: most.memory_bytes.min(brief.memory_bytes),
            result_rows: most.result_rows.min(brief.rows),
        };
        let watch = Watch::new(&*self.clock, brief.time, query.cancel);
        let known = KnownNames(self.backend.catalog());
        let result =
            with_room_for(query.text, || self.bring(&planned, query, &watch, limits, &snapshot, &known));
        let result = result.map_err(|failed| failed.error);
        let code = result.as_ref().err().map(Error::code);
        if matches!(code, Some(ErrorCode::TimeLimitExceeded | ErrorCode::QueryLimitExceeded)) {
            planned.brief.grow();
            return None;
        }
        Some(result)
    }

    /// Commits what [`Database::query_briefly`] brought; `ended` is called with the version, or why there is none, and must not wait.
    pub fn commit_later(&self, request: CommitRequest, ended: Ended) {
        self.backend.commit_later(request, ended);
    }

    /// A new id for a request.
    #[must_use]
    pub fn request_id(&self) -> Str {
        Dice(&*self.random).uuid()
    }

    fn limits(&self) -> Limits {
        Limits { memory_bytes: self.options.query_memory_bytes, result_rows: self.options.query_rows }
    }

    /// The plan of a text that was planned before, while the graph is much as it was then.
    fn cached(&self, language: Language, text: &str) -> Option<Arc<CachedPlan>> {
        let cached = self.plans.get(&PlanLookup(language, text))?;
        (!has_drifted(cached.planned_for, self.backend.totals())).then_some(cached)
    }

    fn plan(&self, language: Language, text: &str) -> Result<Arc<CachedPlan>, Error> {
        if let Some(cached) = self.cached(language, text) {
            return Ok(cached);
        }
        self.plan_anew(language, text, optimize)
    }

    /// Plans a text and puts the plan into the cache, in place of an earlier one.
    pub(crate) fn plan_anew(
        &self,
        language: Language,
        text: &str,
        optimize: impl FnOnce(Plan, &Knowledge<'_>) -> Plan,
    ) -> Result<Arc<CachedPlan>, Error> {
        let plan = match language {
            Language::Gremlin => tidegraph_gremlin::compile(text)?,
            Language::OpenCypher => tidegraph_opencypher::compile(text)?,
        };
        let statistics = self.backend.statistics();
        let asked =
            AskStore { apl: self.backend.reader(Asking::default()), at: self.backend.snapshot(None)? };
        let knowledge =
            Knowledge { statistics: &statistics, catalog: self.backend.catalog(), instances: Some(&asked) };
        let plan = optimize(plan, &knowledge);
        drop(asked);
        tracing::debug!(%plan, "planned");
        let cached = Arc::new(CachedPlan {
            columns: plan.columns.iter().map(|column| column.name.clone()).collect(),
            writes: plan.root.writes(),
            plan,
            planned_for: (statistics.vertices, statistics.edges),
            brief: Doubts::default(),
            at_hand: Doubts::default(),
        });
        if text.len() <= LONGEST_CACHED_TEXT_BYTES {
            self.plans.insert((language, text.into()), cached.clone());
        }
        Ok(cached)
    }

    fn run(
        &self,
        planned: &CachedPlan,
        query: &Query<'_>,
        watch: &Watch<'_>,
        limits: Limits,
        snapshot: &Snapshot,
    ) -> Result<Answer, Failed> {
        let catalog = self.backend.catalog();
        let Brought { answer, commit } = self.bring(planned, query, watch, limits, snapshot, catalog)?;
        let Some(request) = commit else { return Ok(answer) };
        match self.backend.commit(request) {
            Ok(version) => Ok(Answer { version, ..answer }),
            Err(error) => Err(Failed { error, replica_lost: false }),
        }
    }

    /// Runs a request up to its commit.
    fn bring(
        &self,
        planned: &CachedPlan,
        query: &Query<'_>,
        watch: &Watch<'_>,
        limits: Limits,
        snapshot: &Snapshot,
        catalog: &dyn Catalog,
    ) -> Result<Brought, Failed> {
        let at = snapshot.at;
        let apl = self.backend.reader(Asking { deadline: Some(watch.deadline), cancel: query.cancel });
        let view = View::new(&*apl, catalog, at, planned.writes);
        let dice = Dice(&*self.random);
        let mut context = Context::new(view, query.parameters, limits, watch, &dice, self.clock.wall());
        context.deleted_is_error = query.language == Language::OpenCypher;
        let mut execution = Execution::new(&planned.plan, context)?;
        let mut rows = vec![];
        while let Some(more) = execution.next_rows()? {
            if rows.is_empty() {
                rows = more;
            } else {
                rows.extend(more);
            }
        }
        let outcome = execution.finish()?;
        let answer = Answer { columns: planned.columns.clone(), rows, version: at.version };
        Ok(Brought { answer, commit: outcome.commit })
    }
}

/// A catalog that makes no names: that would wait for the disk.
struct KnownNames<'c>(&'c dyn Catalog);

impl Catalog for KnownNames<'_> {
    fn token(&self, name: &str) -> Option<Token> {
        self.0.token(name)
    }

    fn name(&self, token: Token) -> Str {
        self.0.name(token)
    }

    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, tidegraph_apl::Error> {
        let known: Option<Vec<Token>> = names.iter().map(|name| self.0.token(name)).collect();
        // It takes longer than is allowed here.
        known.ok_or(tidegraph_apl::Error::Overdue)
    }

    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, tidegraph_apl::Error> {
        self.0.allocate_sids(count)
    }
}

/// Why a run of a request ended early.
struct Failed {
    error: Error,
    /// Whether a replica could not answer, before anything was handed to the sequencer.
    replica_lost: bool,
}

impl From<tidegraph_exec::Error> for Failed {
    fn from(error: tidegraph_exec::Error) -> Self {
        use tidegraph_exec::Error::Storage;
        let replica_lost = matches!(error, Storage(tidegraph_apl::Error::Unavailable(_)));
        Self { error: error.into(), replica_lost }
    }
}

/// Answers what the planner asks about single vertices.
struct AskStore<'d> {
    apl: Reader<'d>,
    at: Snapshot,
}

impl Instances for AskStore<'_> {
    fn degree(&self, id: &Str, direction: Direction, labels: Option<&[Token]>) -> Option<u64> {
        let at = self.at.at;
        let (mut found, mut degrees) = (vec![], vec![]);
        self.apl.resolve_vertices(at, std::slice::from_ref(id), &mut found).ok()?;
        let request = Expand { labels: labels.map(<[Token]>::to_vec), ..Expand::all(direction) };
        // What is not there has no edges.
        let Some(gui) = found.pop().flatten() else { return Some(0) };
        self.apl.degrees(at, &request, &[gui], &mut degrees).ok()?;
        degrees.pop()
    }
}

/// The command about indexes or constraints that a text is.
pub(crate) fn schema_command(language: Language, text: &str) -> Result<Option<SchemaCommand>, Error> {
    match language {
        Language::Gremlin => Ok(None),
        Language::OpenCypher => Ok(tidegraph_opencypher::schema_command(text)?),
    }
}

/// Whether the graph has changed so much that another order of evaluation may be better.
fn has_drifted(then: (u64, u64), now: (u64, u64)) -> bool {
    let far = |a: u64, b: u64| {
        let (low, high) = (a.min(b), a.max(b));
        high > 1_000 && high / 4 > low
    };
    far(then.0, now.0) || far(then.1, now.1)
}

//! From a text to an answer: front end, plan cache, execution, commit, and again after a conflict.
//!
//! A request is one transaction. It reads at one version, which it pins; what it writes is handed to the sequencer at
//! its end, all or nothing. When another transaction wrote what it read, it is run again from the start.

use crate::{Database, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_apl::At;
use tidegraph_exec::{Context, Entropy, Execution, Interrupt, Limits, Parameters, Stop, View};
use tidegraph_plan::Plan;
use tidegraph_plan::passes::{Knowledge, optimize};
use tidegraph_platform::{Clock, Random};
use tidegraph_types::{Epoch, ErrorCode, Str, Value, Version};

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
    pub cancel: Option<&'a AtomicBool>,
}

impl<'a> Query<'a> {
    /// A request without a time of its own or a way to cancel it.
    #[must_use]
    pub fn new(language: Language, text: &'a str, parameters: &'a Parameters) -> Self {
        Self { language, text, parameters, timeout: None, cancel: None }
    }
}

/// What a request answers.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Names of the columns; one named `result` for Gremlin.
    pub columns: Vec<Str>,
    /// Rows, as long as `columns`; elements with their data.
    pub rows: Vec<Vec<Value>>,
    /// The version that was read, or for a write the one that it made.
    pub version: Version,
}

/// A plan, and what it was made for.
pub(crate) struct CachedPlan {
    plan: Plan,
    writes: bool,
    /// Vertices and edges then.
    planned_for: (u64, u64),
}

/// Key of the plan cache.
pub(crate) type PlanKey = (Language, Box<str>);

struct Watch<'a> {
    clock: &'a dyn Clock,
    deadline: Duration,
    limit_ms: u64,
    cancel: Option<&'a AtomicBool>,
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

/// A text of at most this many bytes cannot make a plan that is too deep for the smallest stack of a thread.
const SHALLOW_TEXT_BYTES: usize = 512;
/// What the deepest plan that the languages let through needs, twice over.
const DEEP_STACK_BYTES: usize = 24 << 20;

/// Plans are walked by recursion, by the languages, the passes and the executor: one of thousands of steps needs more
/// stack than a thread has by default, and what overflows takes the whole process with it.
fn with_room_for<T>(text: &str, work: impl FnOnce() -> T) -> T {
    if text.len() <= SHALLOW_TEXT_BYTES {
        return work();
    }
    stacker::maybe_grow(DEEP_STACK_BYTES, DEEP_STACK_BYTES + (8 << 20), work)
}

impl Database {
    /// Runs a request to its end, on the caller's thread, whatever the size of its stack.
    pub fn query(&self, query: &Query<'_>) -> Result<Answer, Error> {
        with_room_for(query.text, || self.query_here(query))
    }

    fn query_here(&self, query: &Query<'_>) -> Result<Answer, Error> {
        let limit = Duration::from_millis(self.options.query_timeout_ms);
        let limit = query.timeout.map_or(limit, |asked| asked.min(limit));
        let clock = &*self.clock;
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let watch = Watch { clock, deadline: clock.now() + limit, limit_ms, cancel: query.cancel };
        let planned = self.plan(query.language, query.text)?;
        let mut attempt = 0;
        loop {
            match self.run(&planned, query, &watch) {
                Err(error) if error.code() == ErrorCode::ConcurrentModification => {
                    if attempt >= self.options.conflict_retries {
                        return Err(error);
                    }
                    watch.check().map_err(tidegraph_exec::Error::from)?;
                    // Those who lost draw lots, so that they don't meet again.
                    let most_us = 50_u64 << attempt.min(8);
                    clock.sleep(Duration::from_micros(self.random.next_u64() % most_us));
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    /// The plan of a text, as text.
    pub fn explain(&self, language: Language, text: &str) -> Result<String, Error> {
        with_room_for(text, || Ok(self.plan(language, text)?.plan.to_string()))
    }

    fn plan(&self, language: Language, text: &str) -> Result<Arc<CachedPlan>, Error> {
        let key: PlanKey = (language, text.into());
        if let Some(cached) = self.plans.get(&key)
            && !has_drifted(cached.planned_for, self.store.totals())
        {
            return Ok(cached);
        }
        let plan = match language {
            Language::Gremlin => tidegraph_gremlin::compile(text)?,
            Language::OpenCypher => tidegraph_opencypher::compile(text)?,
        };
        let statistics = self.store.counts();
        let plan = optimize(plan, &Knowledge { statistics: &statistics, catalog: &self.catalog });
        tracing::debug!(%plan, "planned");
        let planned_for = (statistics.vertices, statistics.edges);
        let cached = Arc::new(CachedPlan { writes: plan.root.writes(), plan, planned_for });
        if text.len() <= LONGEST_CACHED_TEXT_BYTES {
            self.plans.insert(key, cached.clone());
        }
        Ok(cached)
    }

    fn run(&self, planned: &CachedPlan, query: &Query<'_>, watch: &Watch<'_>) -> Result<Answer, Error> {
        let pin = self.store.pin_published();
        let at = At { version: pin.version(), epoch: Epoch::default() };
        let view = View::new(&*self.store, &self.catalog, at, planned.writes);
        let limits =
            Limits { memory_bytes: self.options.query_memory_bytes, result_rows: self.options.query_rows };
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
        let version = match outcome.commit {
            Some(request) => self.sequencer.commit(request)?,
            None => at.version,
        };
        drop(pin);
        Ok(Answer { columns: planned.plan.columns.iter().map(|c| c.name.clone()).collect(), rows, version })
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

//! The plans of texts: makes them, keeps them, and makes them again when the graph has changed.
//!
//! A plan is kept by its text and the version of its language. Its [`Backoff`] counters remember which of the short paths of a request are not worth an
//! attempt.

use crate::deadline::Deadline;
use crate::instances::StoreInstances;
use crate::learning::Learning;
use crate::query::{Language, Query};
use crate::{Database, Error, helpers};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tidegraph_exec::Interrupt as _;
use tidegraph_gremlin::{Dialect, Version as GremlinVersion};
use tidegraph_plan::passes::{Knowledge, optimize};
use tidegraph_plan::{FrontEndError, Limits as PlanLimits, Plan, Stopped};
use tidegraph_types::Str;

/// Longer texts are not kept in the plan cache: they are bulk writes that run once.
const LONGEST_CACHED_TEXT_BYTES: usize = 4_096;

/// Weight of one failed attempt. One failure or two say little: their thread may have waited for the processor.
const BACKOFF_STEP: u32 = 24;
/// Requests skip the attempt while the counter is at or above this.
const BACKOFF_THRESHOLD: u32 = 64;
/// Bounds how many requests in a row skip the attempt.
const BACKOFF_MAX: u32 = 128;

/// A plan, with the statistics from which the planner made it.
pub(crate) struct CachedPlan {
    pub(crate) plan: Plan,
    pub(crate) columns: Arc<[Str]>,
    pub(crate) writes: bool,
    /// Whether the plan reads files, which may take long.
    pub(crate) reads_files: bool,
    /// Whether threads may share the work.
    pub(crate) splits: bool,
    /// Whether rows keep the handles of elements, to be parameters of another request.
    pub(crate) keeps_handles: bool,
    /// Numbers of vertices and edges of the graph at that time.
    planned_for: (u64, u64),
    /// What its runs taught.
    pub(crate) learning: Learning,
    /// Backoff of inline attempts.
    pub(crate) inline: Backoff,
    /// Backoff of writes that read at a version that the replicas have applied already.
    pub(crate) applied: Backoff,
}

/// Backoff counter: incremented by each failed attempt, decremented by each request, and halved by each success.
#[derive(Default)]
pub(crate) struct Backoff(AtomicU32);

impl Backoff {
    /// Whether an attempt is worthwhile.
    pub(crate) fn allows(&self) -> bool {
        // Read first: the counter is mostly 0, and threads that share it should not write to it.
        let count = self.0.load(Ordering::Relaxed);
        if count > 0 {
            self.0.store(count - 1, Ordering::Relaxed);
        }
        count < BACKOFF_THRESHOLD
    }

    /// Counts an attempt that succeeded, so that a few failures among many successes are soon forgotten.
    pub(crate) fn succeeded(&self) {
        let count = self.0.load(Ordering::Relaxed);
        if count > 0 {
            self.0.store(count / 2, Ordering::Relaxed);
        }
    }

    /// Counts a failed attempt.
    pub(crate) fn failed(&self) {
        let more = |count: u32| Some((count + BACKOFF_STEP).min(BACKOFF_MAX));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

/// Key of the plan cache.
pub(crate) type PlanKey = (Language, GremlinVersion, Box<str>);

/// A plan key that borrows its text. It must hash as [`PlanKey`] does: field by field.
#[derive(Hash)]
struct PlanLookup<'a>(Language, GremlinVersion, &'a str);

impl quick_cache::Equivalent<PlanKey> for PlanLookup<'_> {
    fn equivalent(&self, key: &PlanKey) -> bool {
        self.0 == key.0 && self.1 == key.1 && *self.2 == *key.2
    }
}

impl Database {
    /// Returns the version of Gremlin that a request speaks. For other languages it is always the same.
    fn gremlin_version(&self, query: &Query<'_>) -> GremlinVersion {
        match query.language {
            Language::Gremlin => query.gremlin_version.unwrap_or(self.options.gremlin_version),
            Language::OpenCypher => GremlinVersion::default(),
        }
    }

    /// Returns the cached plan of a text, unless the graph has changed much since it was planned.
    pub(crate) fn cached(&self, query: &Query<'_>) -> Option<Arc<CachedPlan>> {
        let cached = self.plans.get(&PlanLookup(query.language, self.gremlin_version(query), query.text))?;
        (!has_drifted(cached.planned_for, self.backend.totals())).then_some(cached)
    }

    pub(crate) fn plan(&self, query: &Query<'_>, deadline: &Deadline<'_>) -> Result<Arc<CachedPlan>, Error> {
        if let Some(cached) = self.cached(query) {
            return Ok(cached);
        }
        self.plan_anew(query, deadline, |plan, knowledge| optimize(plan, knowledge, |_, _| {}))
    }

    /// Plans a text and puts the plan into the cache, in place of an earlier one.
    pub(crate) fn plan_anew(
        &self,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
        optimize: impl FnOnce(Plan, &Knowledge<'_>) -> Result<Plan, Stopped>,
    ) -> Result<Arc<CachedPlan>, Error> {
        let _span = tracing::debug_span!("plan").entered();
        let cached = Arc::new(self.planned_with(query, deadline, Learning::default(), optimize)?);
        self.cache(query, cached.clone());
        Ok(cached)
    }

    /// Puts the plan of a text into the cache, in place of an earlier one.
    pub(crate) fn cache(&self, query: &Query<'_>, planned: Arc<CachedPlan>) {
        if query.text.len() <= LONGEST_CACHED_TEXT_BYTES {
            let key = (query.language, self.gremlin_version(query), query.text.into());
            self.plans.insert(key, planned);
        }
    }

    /// Plans a text with what was learned of it.
    pub(crate) fn planned_with(
        &self,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
        learning: Learning,
        optimize: impl FnOnce(Plan, &Knowledge<'_>) -> Result<Plan, Stopped>,
    ) -> Result<CachedPlan, Error> {
        let go_on = || deadline.check().is_ok();
        let take = |bytes| query.memory.is_none_or(|memory| memory.grow_to(bytes).is_ok());
        let limits = &PlanLimits::new(self.options.query_memory_bytes, &go_on).taking(&take);
        let (language, text, version) = (query.language, query.text, self.gremlin_version(query));
        let procedures = &self.options.procedures;
        let compiled = match language {
            Language::Gremlin => {
                let dialect = Dialect { version, settings: self.gremlin };
                tidegraph_gremlin::compile_within(text, dialect, procedures, limits)
            }
            Language::OpenCypher => tidegraph_opencypher::compile_within(text, procedures, limits),
        };
        let plan = match compiled {
            Err(FrontEndError::Stopped(stopped)) => return Err(deadline.error_of(stopped)),
            compiled => compiled?,
        };
        self.optimized(plan, limits, deadline, learning, optimize)
    }

    /// Optimises the plan of a front end.
    pub(crate) fn optimized(
        &self,
        plan: Plan,
        limits: &PlanLimits<'_>,
        deadline: &Deadline<'_>,
        learning: Learning,
        optimize: impl FnOnce(Plan, &Knowledge<'_>) -> Result<Plan, Stopped>,
    ) -> Result<CachedPlan, Error> {
        let statistics = &self.backend.statistics();
        let asked =
            StoreInstances { apl: self.backend.reader(deadline.options()), at: self.backend.snapshot(None)? };
        let (catalog, is_far) = (self.backend.catalog(), asked.apl.is_far());
        let lessons = Some(&learning.lessons);
        let knowledge = Knowledge { statistics, catalog, instances: Some(&asked), lessons, limits, is_far };
        let plan = optimize(plan, &knowledge).map_err(|stopped| deadline.error_of(stopped))?;
        drop(asked);
        tracing::debug!(%plan, "planned");
        Ok(CachedPlan {
            columns: plan.columns.iter().map(|column| column.name.clone()).collect(),
            writes: plan.root.writes(),
            reads_files: plan.root.reads_files(),
            splits: helpers::splits(&plan.root, self),
            keeps_handles: false,
            plan,
            planned_for: (statistics.vertices, statistics.edges),
            learning,
            inline: Backoff::default(),
            applied: Backoff::default(),
        })
    }
}

/// Whether the graph has changed so much that another plan may be better: by a factor of 4, above 1,000 elements.
fn has_drifted(then: (u64, u64), now: (u64, u64)) -> bool {
    let far = |a: u64, b: u64| {
        let (low, high) = (a.min(b), a.max(b));
        high > 1_000 && high / 4 > low
    };
    far(then.0, now.0) || far(then.1, now.1)
}

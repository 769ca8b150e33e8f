//! Plans that are made again with what was seen.
//!
//! Flow: a plan of the cache that took long is counted in its next run: the rows of each operator, on one thread. If an
//! estimate was wrong by [`WRONG`] times, the text is planned again with the [`Lessons`] of the run. The new plan is on
//! trial: its first run is counted, too. If its operators made more rows than those of the plan before, or if it reached
//! a limit, the plan before comes back and stays. A trial that takes [`TRIAL`] times as long as the plan before ends at once,
//! and the request runs by that one.
//!
//! What must never happen: a new plan that is worse runs a second time, or to its end when it is much worse; plans change without end. A text is planned again
//! at most [`MOST_TRIES`] times, until the graph has changed so much that it is planned from the start.

use crate::plans::CachedPlan;
use crate::query::Query;
use crate::{Database, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_exec::Execution;
use tidegraph_plan::Plan;
use tidegraph_plan::passes::{EstimatedRows, Judgement, Knowledge, Lessons, optimize};
use tidegraph_platform::metric;
use tidegraph_types::ErrorCode;

/// A plan that took as long is counted the next time.
const LONG: Duration = Duration::from_millis(100);
/// The ratio of estimated and seen rows from which on a plan is made again.
const WRONG: f64 = 100.0;
/// A new plan may take this many times as long as the one before it.
const TRIAL: u32 = 2;
/// How often a text is planned again.
const MOST_TRIES: u8 = 3;

/// Nothing is known of the plan.
const UNKNOWN: u8 = 0;
/// Its next run is counted.
const COUNTED: u8 = 1;
/// It stays.
const SETTLED: u8 = 2;

/// What was learned of a cached plan.
#[derive(Default)]
pub(crate) struct Learning {
    state: AtomicU8,
    /// The lessons that it was made with.
    pub(crate) lessons: Lessons,
    tries: u8,
    /// The plan before it.
    before: Option<Before>,
}

/// A plan that was replaced.
struct Before {
    plan: Arc<CachedPlan>,
    /// The rows that its operators made.
    rows: u64,
    /// How long it took, on one thread and counted.
    time: Duration,
}

impl Learning {
    /// Whether the next run is counted.
    pub(crate) fn counts(&self) -> bool {
        self.state.load(Ordering::Relaxed) == COUNTED
    }

    /// Returns the plan that answers if the trial of this one takes too long, and how long it may take.
    pub(crate) fn trial(&self) -> Option<(&Arc<CachedPlan>, Duration)> {
        let before = self.before.as_ref().filter(|_| self.counts())?;
        Some((&before.plan, before.time * TRIAL))
    }

    /// Notes how long a run took that was not counted.
    pub(crate) fn took(&self, time: Duration) {
        if time >= LONG {
            let _ = self.state.compare_exchange(UNKNOWN, COUNTED, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn settle(&self) {
        self.state.store(SETTLED, Ordering::Relaxed);
    }
}

/// The largest ratio of estimated and seen rows since the start.
#[derive(Debug, Default)]
pub(crate) struct WorstRatio(AtomicU64);

impl WorstRatio {
    /// Ratios are positive, and positive floats have the order of their bits.
    fn note(&self, ratio: f64) {
        let worst = self.0.fetch_max(ratio.to_bits(), Ordering::Relaxed).max(ratio.to_bits());
        metric::plan_worst_ratio(f64::from_bits(worst));
    }
}

impl Database {
    /// Estimates the rows of a plan's operators, from the statistics of now.
    pub(crate) fn estimated_rows(&self, plan: &Plan, lessons: &Lessons) -> EstimatedRows {
        let statistics = self.backend.statistics();
        let (catalog, limits) = (self.backend.catalog(), &tidegraph_plan::Limits::none());
        let (statistics, lessons) = (&*statistics, Some(lessons));
        // Only passes that change plans ask where storage is.
        let knowledge = Knowledge { statistics, catalog, instances: None, lessons, limits, is_far: false };
        EstimatedRows::of(plan, &knowledge)
    }

    /// Judges a run that was counted and has yielded all rows.
    pub(crate) fn judged(&self, planned: &CachedPlan, execution: &Execution<'_, '_>) -> Judgement {
        let lessons = &planned.learning.lessons;
        let estimated = self.estimated_rows(&planned.plan, lessons);
        let profile = execution.context().profile.as_ref();
        let seen = |op: &tidegraph_plan::Op| Some(profile?.measure(op)?.rows);
        let judgement = lessons.learn(&planned.plan, &estimated, &seen);
        self.worst_ratio.note(judgement.worst);
        judgement
    }

    /// Makes the plan of a text again, or puts the one before back, as the run of a plan advises, which took a time.
    pub(crate) fn learn(
        &self,
        planned: &CachedPlan,
        query: &Query<'_>,
        judgement: Judgement,
        time: Duration,
    ) {
        planned.learning.settle();
        let Some(current) = self.is_cached(planned, query) else { return };
        let Learning { before, tries, .. } = &planned.learning;
        if let Some(before) = before
            && judgement.rows > before.rows
        {
            self.put_back(&before.plan, query);
            return;
        }
        if judgement.worst < WRONG || *tries >= MOST_TRIES || judgement.lessons == planned.learning.lessons {
            return;
        }
        let learning = Learning {
            state: AtomicU8::new(COUNTED),
            lessons: judgement.lessons,
            tries: tries + 1,
            before: Some(Before { plan: current, rows: judgement.rows, time }),
        };
        // The request has its answer already, so that planning has a time limit of its own.
        let deadline = self.deadline_of(&Query { cancel: None, ..*query });
        match self
            .planned_with(query, &deadline, learning, |plan, knowledge| optimize(plan, knowledge, |_, _| {}))
        {
            Ok(new) if new.plan.root != planned.plan.root => {
                tracing::debug!(ratio = judgement.worst, plan = %new.plan, "planned again");
                metric::plan_remade("made");
                self.cache(query, Arc::new(new));
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "not planned again"),
        }
    }

    /// Puts the plan before a new one back if the new one has reached a limit.
    pub(crate) fn learn_of_error(&self, planned: &CachedPlan, query: &Query<'_>, error: &Error) {
        let is_limit = matches!(
            error.code(),
            ErrorCode::TimeLimitExceeded | ErrorCode::QueryLimitExceeded | ErrorCode::MemoryLimitExceeded
        );
        if let Some(before) = &planned.learning.before
            && is_limit
            && planned.learning.counts()
            && self.is_cached(planned, query).is_some()
        {
            self.put_back(&before.plan, query);
        }
    }

    fn put_back(&self, before: &Arc<CachedPlan>, query: &Query<'_>) {
        before.learning.settle();
        metric::plan_remade("put_back");
        self.cache(query, before.clone());
    }

    /// Returns a plan if it is the one that the cache has for the text.
    fn is_cached(&self, planned: &CachedPlan, query: &Query<'_>) -> Option<Arc<CachedPlan>> {
        self.cached(query).filter(|current| std::ptr::eq(&**current, planned))
    }
}

#[cfg(test)]
mod tests {
    use crate::database::Environment;
    use crate::{Database, Language, Options, Parameters, Query};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;
    use tidegraph_platform::{Clock, RealDisk, RealRandom};
    use tidegraph_types::Value;

    /// A clock for which each query is long.
    #[derive(Debug, Default)]
    struct Racing(AtomicU64);

    impl Clock for Racing {
        fn now(&self) -> Duration {
            Duration::from_millis(200 * self.0.fetch_add(1, Ordering::Relaxed))
        }

        fn wall(&self) -> jiff::Timestamp {
            jiff::Timestamp::UNIX_EPOCH
        }

        fn sleep(&self, duration: Duration) {
            self.0.fetch_add(duration.as_millis() as u64, Ordering::Relaxed);
        }
    }

    fn run(database: &Database, text: &str) -> Vec<Vec<Value>> {
        let none = Parameters::default();
        database.query(&Query::new(Language::OpenCypher, text, &none)).expect("it runs").rows
    }

    /// Opens a graph in which nearly all of `A` have one of 201 values, and a tenth of `B` has each of ten; each vertex of
    /// `A` has an edge to one of `B`.
    fn graph() -> Arc<Database> {
        graph_with(Arc::default())
    }

    fn graph_with(clock: Arc<Racing>) -> Arc<Database> {
        let options = Options { query_timeout: Duration::from_secs(1 << 40), ..Options::default() };
        let environment = Environment { clock, random: Arc::new(RealRandom), disk: Arc::new(RealDisk) };
        let database = Database::open_with(options, environment).expect("opens");
        run(
            &database,
            "UNWIND range(0, 3999) AS i
             CREATE (:A {i: i, k: CASE WHEN i < 200 THEN 'k' + i ELSE 'hot' END})-[:E]->(:B {j: i % 10})",
        );
        database
    }

    const TEXT: &str = "MATCH (a:A {k: 'hot'})-[:E]->(b:B {j: 1}) RETURN a.i AS i";

    /// Returns what the plan of the cache begins with, and the rows of its operators.
    fn profile(database: &Database) -> (String, i64) {
        let rows = run(database, &format!("PROFILE {TEXT}"));
        let first = rows[0][0].as_str().unwrap_or_default().to_owned();
        (first, rows.iter().filter_map(|row| row[2].as_i64()).sum())
    }

    fn answer(database: &Database) -> Vec<i64> {
        let mut all: Vec<i64> = run(database, TEXT).iter().filter_map(|row| row[0].as_i64()).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_plan_that_was_wrong_is_made_again_and_better() {
        let database = graph();
        let (before, work) = profile(&database);
        assert!(before.contains(":A"), "{before}");
        let expected: Vec<i64> = (200..4_000).filter(|i| i % 10 == 1).collect();
        // The first run is long, the second is counted, and the third has another plan.
        for _ in 0..4 {
            assert_eq!(answer(&database), expected);
        }
        let (after, less) = profile(&database);
        assert!(after.contains(":B"), "{after}");
        assert!(less * 2 < work, "{less} rows instead of {work}");
        assert!(f64::from_bits(database.worst_ratio.0.load(Ordering::Relaxed)) > 100.0);
    }

    #[test]
    fn a_new_plan_that_is_worse_runs_once() {
        let database = graph();
        let expected = answer(&database).len();
        assert_eq!(answer(&database).len(), expected);
        assert!(profile(&database).0.contains(":B"));
        // Before the new plan has run, what was rare becomes frequent.
        run(&database, "UNWIND range(1, 10000) AS i CREATE (:B {j: 1})<-[:E]-(:C)");
        assert_eq!(answer(&database).len(), expected);
        let (back, _) = profile(&database);
        assert!(back.contains(":A"), "{back}");
        for _ in 0..5 {
            assert_eq!(answer(&database).len(), expected);
        }
        assert_eq!(profile(&database).0, back);
    }
    #[test]
    fn a_trial_that_takes_too_long_ends_and_the_plan_before_answers() {
        let clock = Arc::<Racing>::default();
        let database = graph_with(clock.clone());
        let ticks = || clock.0.load(Ordering::Relaxed);
        let expected = answer(&database);
        let begun = ticks();
        assert_eq!(answer(&database), expected);
        let counted = ticks() - begun;
        // What was rare becomes so frequent that the new plan takes many times as long.
        for _ in 0..4 {
            run(&database, "UNWIND range(1, 20000) AS i CREATE (:B {j: 1})<-[:E]-(:C)");
        }
        let begun = ticks();
        assert_eq!(answer(&database), expected);
        let trial = ticks() - begun;
        assert!(trial < 6 * counted, "{trial} looks at the clock, {counted} for the plan before");
        let (back, _) = profile(&database);
        assert!(back.contains(":A"), "{back}");
    }
}

//! Threads that take a part of the work of a long query.
//!
//! A process has one thread fewer of them than processors, for all queries together: so queries that come at the same time
//! do not slow each other down, and a query alone uses all processors. Most queries end before they ask for any.

use crate::Database;
use crate::backend::Snapshot;
use crate::deadline::Deadline;
use crate::plans::CachedPlan;
use crate::query::{PlatformEntropy, Query, with_deep_stack};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegraph_exec::view::View;
use tidegraph_exec::{Context, Helpers, Limits};
use tidegraph_plan::Op;

/// The threads of a process that are free.
#[derive(Debug)]
pub(crate) struct FreeThreads(AtomicUsize);

impl FreeThreads {
    /// `most`: threads of a query, with its own; `None`: as many as there are processors.
    pub fn new(most: Option<usize>) -> Self {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        Self(AtomicUsize::new(most.unwrap_or_else(processors).saturating_sub(1)))
    }

    fn take(&self, most: usize) -> usize {
        let taken = |free: usize| Some(free - free.min(most));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).map_or(0, |free| free.min(most))
    }

    fn give_back(&self, threads: usize) {
        self.0.fetch_add(threads, Ordering::Relaxed);
    }

    fn are_none(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Gives threads back, also after a panic.
struct Taken<'a>(&'a FreeThreads, usize);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.give_back(self.1);
    }
}

/// The threads of a query.
pub(crate) struct QueryHelpers<'a> {
    database: &'a Database,
    query: &'a Query<'a>,
    deadline: &'a Deadline<'a>,
    snapshot: &'a Snapshot,
    limits: Limits,
    partitions: u16,
    now: jiff::Timestamp,
    began: Duration,
    alone: Duration,
}

impl<'a> QueryHelpers<'a> {
    /// `None`: the query has to run on its own thread.
    pub fn new(
        database: &'a Database,
        planned: &CachedPlan,
        query: &'a Query<'a>,
        deadline: &'a Deadline<'a>,
        snapshot: &'a Snapshot,
        limits: Limits,
    ) -> Option<Self> {
        // A query that must not wait for a disk must not wait for threads.
        if !planned.splits || !limits.spills || database.threads.are_none() {
            return None;
        }
        let partitions = database.backend.partitions().get();
        let (now, began) = (database.clock.wall(), database.clock.now());
        let alone = database.options.query_alone;
        Some(Self { database, query, deadline, snapshot, limits, partitions, now, began, alone })
    }

    /// Returns the time of day of the query.
    pub fn now(&self) -> jiff::Timestamp {
        self.now
    }

    fn work(&self, threads: usize, work: &(dyn Fn(&Context<'_>) + Sync)) {
        let Self { database, query, deadline, snapshot, .. } = *self;
        let apl = database.backend.reader(deadline.options());
        let view = View::new(&*apl, database.backend.catalog(), snapshot.at, false);
        let entropy = PlatformEntropy(&*database.random);
        let memory_bytes = self.limits.memory_bytes / (threads as u64 + 1);
        let limits = Limits { memory_bytes, spills: false, ..self.limits };
        // The query's own thread alone changes its reservation.
        let memory = query.memory.map(|memory| memory.sibling());
        let query = &Query { memory: memory.as_ref(), ..*query };
        let mut context = database.context(view, query, deadline, limits, &entropy);
        context.now = self.now;
        with_deep_stack(query.text, || work(&context));
    }
}

/// Whether an aggregation of a plan can be split: the graph is in this process, nothing is written, and the scan does not
/// use an index, which is faster.
pub(crate) fn splits(op: &Op, database: &Database) -> bool {
    database.local.is_some() && !op.writes() && splits_below(op, database)
}

fn splits_below(op: &Op, database: &Database) -> bool {
    match op.split_scan() {
        None => op.children().into_iter().any(|child| splits_below(child, database)),
        Some(filter) => {
            let catalog = database.backend.catalog();
            let indexes = database.backend.indexes().unwrap_or_default();
            let is_indexed = |key| indexes.iter().any(|index| Some(index.definition.key) == key);
            !filter.tests().any(|(key, _)| is_indexed(catalog.token(key)))
        }
    }
}

impl Helpers for QueryHelpers<'_> {
    fn partitions(&self) -> u16 {
        self.partitions
    }

    fn is_long(&self) -> bool {
        self.database.clock.now().saturating_sub(self.began) >= self.alone
    }

    fn beside(&self, work: &(dyn Fn(&Context<'_>) + Sync), own: &mut dyn FnMut(&mut dyn FnMut())) {
        let free = &self.database.threads;
        let mut taken = None;
        std::thread::scope(|scope| {
            own(&mut || {
                let Taken(_, threads) = *taken.insert(Taken(free, free.take(usize::from(self.partitions))));
                for number in 0..threads {
                    let builder = std::thread::Builder::new().name(format!("query-{number}"));
                    if let Err(error) = builder.spawn_scoped(scope, move || self.work(threads, work)) {
                        tracing::warn!(%error, "no thread helps a query");
                    }
                }
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::database::Environment;
    use crate::{Database, Error, Language, Options, Parameters, Query};
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};
    use std::thread::ThreadId;
    use std::time::Duration;
    use tidegraph_plan::{Procedure, Procedures, Signature, TypeTest, ValueType};
    use tidegraph_platform::{Clock, RealDisk, RealRandom};
    use tidegraph_types::{ErrorCode, Value};

    /// A clock for which each query is long.
    #[derive(Debug, Default)]
    struct Racing(AtomicU64);

    impl Clock for Racing {
        fn now(&self) -> Duration {
            Duration::from_millis(10 * self.0.fetch_add(1, Ordering::Relaxed))
        }

        fn wall(&self) -> jiff::Timestamp {
            jiff::Timestamp::UNIX_EPOCH
        }

        fn sleep(&self, duration: Duration) {
            self.0.fetch_add(duration.as_millis() as u64, Ordering::Relaxed);
        }
    }

    type Seen = Arc<Mutex<BTreeSet<String>>>;

    /// Opens a graph of 4,000 vertices, the same each time, whose procedure `seen()` notes the thread that calls it.
    fn graph(threads: usize, memory: u64) -> (Arc<Database>, Seen) {
        let seen = Seen::default();
        let noted = seen.clone();
        let signature = Signature::new("seen").argument("n", TypeTest::or_null(ValueType::Any));
        let signature = signature.column("n", TypeTest::or_null(ValueType::Any));
        let procedure = Procedure::new(signature, move |arguments, rows| {
            let id: ThreadId = std::thread::current().id();
            noted.lock().unwrap().insert(format!("{id:?}"));
            rows.add(arguments.to_vec())
        });
        let options = Options {
            query_threads: Some(threads),
            query_memory_bytes: memory,
            query_timeout: Duration::from_secs(1 << 40),
            procedures: Procedures::default().with(procedure).unwrap(),
            ..Options::default()
        };
        let clock = Arc::<Racing>::default();
        let environment = Environment { clock, random: Arc::new(RealRandom), disk: Arc::new(RealDisk) };
        let database = Database::open_with(options, environment).unwrap();
        for first in (0..4_000).step_by(500) {
            let text = format!(
                "UNWIND range({first}, {first} + 499) AS i
                 CREATE (n:N {{`~id`: toString(i), i: i, k: i % 7, h: i / 4.0, t: 'text ' + i % 300,
                               d: duration({{days: i % 5}})}})
                 WITH n, i MATCH (m:N) WHERE m.i = i / 2 CREATE (n)-[:E {{w: i % 3}}]->(m)"
            );
            rows(&database, &text).unwrap();
        }
        (database, seen)
    }

    fn rows(database: &Database, text: &str) -> Result<Vec<Vec<Value>>, Error> {
        let language = if text.starts_with("g.") { Language::Gremlin } else { Language::OpenCypher };
        Ok(database.query(&Query::new(language, text, &Parameters::default()))?.rows)
    }

    const QUERIES: &[&str] = &[
        "MATCH (n:N) WHERE n.i % 2 = 0 RETURN count(*), sum(n.i), avg(n.i), min(n.t), max(n.h), stDev(n.k) > 1",
        "MATCH (n:N) RETURN n.k AS k, count(*), sum(n.h), collect(n.i)[..5], percentileCont(n.i, 0.25), sum(n.d)",
        "MATCH (n:N) RETURN n.t AS t, count(DISTINCT n.k), collect(DISTINCT n.k), percentileDisc(DISTINCT n.i, 0.5)",
        "MATCH (n:N)-[e:E]->(m)<-[f:E]-(o) WHERE n.k < o.k RETURN e.w, f.w, count(*), max(m.i)",
        "MATCH (n:N)-[:E*1..4]->(m) RETURN count(*), count(DISTINCT m)",
        "MATCH (n:N) WHERE EXISTS { (n)<-[:E]-(:N {k: 3}) } RETURN count(n)",
        "MATCH (n:N) OPTIONAL MATCH (n)<-[:E]-(m) WITH n.k AS k, count(m) AS c RETURN k, c ORDER BY c DESC, k",
        "MATCH (a:N)-[:E]->(b:N)-[:E]->(c:N) RETURN count(*)",
        "MATCH (a:N)-[:E]->(b)-[:E]->(c)-[:E]->(d:N), (b)<-[:E]-(e:N) WHERE a.k < 5 RETURN a.k, count(*)",
        "MATCH (a:N)-[:E]->(b)<-[:E]-(c), (a)-[:E]->(d)<-[:E]-(c) RETURN count(*)",
        "MATCH (n:N) WHERE n.i % 3 = 1 AND n.h > 5 RETURN count(*)",
        "MATCH (n:N) WHERE n.k > 2 RETURN count(*)",
        "MATCH (n:N), (m:N) WHERE n.i < 50 AND m.i < n.k RETURN count(*)",
        "MATCH (n:N), (m:N) WHERE n.i < 9 AND m.k < 3 RETURN count(m)",
        "MATCH (n:N) WHERE n.t STARTS WITH 'text 1' RETURN count(n)",
        "MATCH (n:N {k: 9}) RETURN count(*), sum(n.i), collect(n)",
        "MATCH (n:N) UNWIND [1, 2] AS x RETURN n, x, count(*) ORDER BY x, n.i LIMIT 3",
        "g.V().hasLabel('N').groupCount().by('k')",
        "g.V().hasLabel('N').out('E').group().by('k').by(count())",
    ];

    #[test]
    fn threads_give_the_answer_of_one() {
        let ((alone, _), (together, seen)) = (graph(1, 1 << 30), graph(4, 1 << 30));
        for text in QUERIES {
            assert_eq!(rows(&alone, text).unwrap(), rows(&together, text).unwrap(), "{text}");
        }
        let noted = "MATCH (n:N) CALL (n) { CALL seen(n.i) YIELD n AS x RETURN x } RETURN count(x)";
        // The thread of the query may end before the others begin.
        let several = || seen.lock().unwrap().len() > 1;
        assert!((0..1_000).any(|_| rows(&together, noted).is_ok() && several()), "no thread helped");
        assert_eq!(rows(&together, noted).unwrap(), [[Value::Long(4_000)]]);
        assert!(!together.threads.are_none(), "they are free again");
    }

    #[test]
    fn threads_leave_the_memory_of_all_queries_as_it_was() {
        let (together, _) = graph(4, 1 << 30);
        let pool = crate::MemoryPool::new(64 << 20);
        let memory = pool.reserve();
        let none = Parameters::default();
        let text = "MATCH (n:N) UNWIND range(1, 3) AS x RETURN n.t + n.i + x AS key, collect(n.t) AS c ORDER BY key LIMIT 1";
        for _ in 0..20 {
            let query = Query { memory: Some(&memory), ..Query::new(Language::OpenCypher, text, &none) };
            assert_eq!(together.query(&query).unwrap().rows.len(), 1);
            // What the threads had is given back; the query's own part is all that is left.
            assert_eq!(pool.used_bytes(), memory.bytes());
        }
        drop(memory);
        assert_eq!(pool.used_bytes(), 0);
    }

    #[test]
    fn groups_that_do_not_fit_are_made_on_one_thread() {
        let ((alone, _), (together, _)) = (graph(1, 1 << 30), graph(4, 2 << 20));
        for text in [
            "MATCH (n:N) RETURN n.t + n.i AS key, count(*) AS c, collect(n.t) ORDER BY key LIMIT 10",
            "MATCH (n:N) UNWIND range(1, 4) AS x WITH n.t + n.i + x AS key, count(*) AS c RETURN count(key), sum(c)",
            "MATCH (n:N) UNWIND range(1, 20) AS x RETURN count(DISTINCT n.t + n.i + x), max(x)",
        ] {
            assert_eq!(rows(&alone, text).unwrap(), rows(&together, text).unwrap(), "{text}");
        }
    }

    #[test]
    fn the_first_error_is_that_of_one_thread() {
        let ((alone, _), (together, _)) = (graph(1, 1 << 30), graph(4, 1 << 30));
        for text in [
            "MATCH (n:N) RETURN sum(10 / (n.i - 3999))",
            "MATCH (n:N) RETURN n.k, sum(CASE WHEN n.i > 3000 THEN n.d ELSE n.i END)",
        ] {
            let errors = [&alone, &together].map(|database| rows(database, text).unwrap_err());
            assert_eq!(errors[0].code(), ErrorCode::InvalidArgument, "{}", errors[0]);
            assert_eq!(errors[0].code(), errors[1].code(), "{text}");
        }
        assert!(!together.threads.are_none(), "they are free again");
    }
}

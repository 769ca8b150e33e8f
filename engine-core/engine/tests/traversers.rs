//! Walks of Gremlin against lists of walks: equal traversers are merged, repeats pull lazily, and searches end.

mod support;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use support::{empty, refused, run};
use tidegraph_engine::{Database, Language, Options};

/// Random numbers that are the same in each run (Lehmer's generator, modulus 2^31 - 1).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> usize {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        (self.0 % limit) as usize
    }
}

/// A graph of vertices `0`, `1` … and its edges as lists of ends.
struct Graph {
    database: Arc<Database>,
    out: Vec<Vec<usize>>,
}

impl Graph {
    fn drawn(seed: u64, vertices: usize, edges: usize, options: Options) -> Self {
        let mut random = Random(seed);
        let drawn = (0..edges).map(|_| (random.below(vertices as u64), random.below(vertices as u64)));
        Self::of(vertices, &drawn.collect::<Vec<_>>(), options)
    }

    fn of(vertices: usize, edges: &[(usize, usize)], options: Options) -> Self {
        let database = Database::open(options).expect("an empty graph");
        run(
            &database,
            &format!(
                "UNWIND range(0, {}) AS n CREATE (:V {{`~id`: toString(n), n: n, part: n % 3}})",
                vertices - 1
            ),
        );
        let mut out = vec![vec![]; vertices];
        for part in edges.chunks(200) {
            let pairs: Vec<String> = part.iter().map(|(from, to)| format!("[{from}, {to}]")).collect();
            run(
                &database,
                &format!(
                    "UNWIND [{}] AS pair MATCH (a:V {{`~id`: toString(pair[0])}}), (b:V {{`~id`: toString(pair[1])}}) \
                     CREATE (a)-[:X]->(b)",
                    pairs.join(", ")
                ),
            );
        }
        edges.iter().for_each(|(from, to)| out[*from].push(*to));
        Self { database, out }
    }

    /// The ends of all walks of a number of steps through vertices that may be entered.
    fn walks(&self, starts: &[usize], steps: u32, may_enter: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut at = starts.to_vec();
        for _ in 0..steps {
            at = at.iter().flat_map(|v| &self.out[*v]).copied().filter(|v| may_enter(*v)).collect();
        }
        at
    }

    /// The number of steps of a shortest walk to each vertex.
    fn distances(&self, start: usize) -> BTreeMap<usize, usize> {
        let mut found = BTreeMap::from([(start, 0)]);
        let mut waiting = VecDeque::from([start]);
        while let Some(vertex) = waiting.pop_front() {
            for next in &self.out[vertex] {
                if !found.contains_key(next) {
                    found.insert(*next, found[&vertex] + 1);
                    waiting.push_back(*next);
                }
            }
        }
        found
    }

    fn plan(&self, text: &str) -> String {
        self.database.explain(Language::Gremlin, text).expect("a plan")
    }

    fn one(&self, text: &str) -> String {
        let rows = run(&self.database, text);
        assert_eq!(rows.len(), 1, "{text}: {rows:?}");
        rows[0].clone()
    }
}

fn counts(walks: &[usize]) -> String {
    let mut counts: BTreeMap<usize, i64> = BTreeMap::new();
    walks.iter().for_each(|end| *counts.entry(*end).or_default() += 1);
    let mut entries: Vec<String> = counts.iter().map(|(end, count)| format!("{end}: {count}")).collect();
    entries.sort();
    format!("{{{}}}", entries.join(", "))
}

#[test]
fn reductions_of_walks_agree_with_lists_of_them() {
    for seed in [5, 21, 300] {
        let graph = Graph::drawn(seed, 9, 20, Options::default());
        let all: Vec<usize> = (0..9).collect();
        for rounds in 1..=6_u32 {
            // Written out, as rounds, and with a condition between.
            for (body, times, walks) in [
                ("out()", format!("times({rounds})"), graph.walks(&all, rounds, |_| true)),
                ("out().has('n', lt(7))", format!("times({rounds})"), graph.walks(&all, rounds, |v| v < 7)),
                ("out()", format!("until(loops().is({rounds}))"), graph.walks(&all, rounds, |_| true)),
                ("outE().inV()", format!("until(loops().is({rounds}))"), graph.walks(&all, rounds, |_| true)),
            ] {
                if walks.is_empty() {
                    continue;
                }
                let walk = format!("g.V().repeat({body}).{times}");
                let sum: usize = walks.iter().sum();
                let ends: BTreeSet<usize> = walks.iter().copied().collect();
                assert_eq!(graph.one(&format!("{walk}.count()")), walks.len().to_string(), "{walk}");
                assert_eq!(graph.one(&format!("{walk}.groupCount().by(id)")), counts(&walks), "{walk}");
                assert_eq!(graph.one(&format!("{walk}.values('n').sum()")), sum.to_string(), "{walk}");
                let mean: f64 = graph.one(&format!("{walk}.values('n').mean()")).parse().expect("a number");
                assert!((mean - sum as f64 / walks.len() as f64).abs() < 1e-9, "{walk}: {mean}");
                assert_eq!(graph.one(&format!("{walk}.dedup().count()")), ends.len().to_string(), "{walk}");
                assert_eq!(
                    graph.one(&format!("{walk}.values('n').max()")),
                    ends.last().expect("an end").to_string()
                );
                let folded = graph.one(&format!("{walk}.values('n').fold().count(local)"));
                assert_eq!(folded, walks.len().to_string(), "{walk}");
                let parts: Vec<usize> = walks.iter().map(|end| end % 3).collect();
                let grouped = graph.one(&format!("{walk}.barrier().group().by('part').by(count())"));
                assert_eq!(grouped, counts(&parts), "{walk}");
            }
        }
    }
}

#[test]
fn emitted_walks_count_as_often_as_they_come() {
    for seed in [8, 77] {
        let graph = Graph::drawn(seed, 8, 18, Options::default());
        let walks: Vec<Vec<usize>> = (0..=4).map(|steps| graph.walks(&[0], steps, |_| true)).collect();
        let after: Vec<usize> = walks[1..].concat();
        let text = "g.V('0').repeat(out()).emit().times(4).groupCount().by(id)";
        assert_eq!(graph.one(text), counts(&after));
        let text = "g.V('0').emit().repeat(out()).times(4).groupCount().by(id)";
        assert_eq!(graph.one(text), counts(&walks.concat()));
        let odd: Vec<usize> = after.iter().copied().filter(|v| v % 3 == 1).collect();
        let last: Vec<usize> = walks[4].iter().copied().filter(|v| v % 3 != 1).collect();
        let text = "g.V('0').repeat(out()).emit(has('part', 1)).times(4).groupCount().by(id)";
        assert_eq!(graph.one(text), counts(&[odd, last].concat()));
    }
}

#[test]
fn rows_that_nothing_tells_apart_become_one() {
    // Each vertex has two edges to the next one.
    let ring: Vec<(usize, usize)> = (0..12).flat_map(|v| [(v, (v + 1) % 12); 2]).collect();
    let graph = Graph::of(12, &ring, Options { query_memory_bytes: 4 << 20, ..Options::default() });
    let text = "g.V().repeat(out()).times(50).count()";
    assert!(graph.plan(text).contains("bulk ["), "{}", graph.plan(text));
    assert_eq!(graph.one(text), (12_i64 << 50).to_string());
    assert_eq!(
        graph.one("g.V('3').repeat(out()).times(40).groupCount().by('n')"),
        format!("{{7: {}}}", 1_i64 << 40)
    );
    assert_eq!(
        graph.one("g.V().repeat(out()).times(55).has('n', 4).values('part').sum()"),
        (1_i64 << 55).to_string()
    );
    assert_eq!(graph.one("g.V('0').repeat(out()).until(loops().is(45)).count()"), (1_i64 << 45).to_string());
    let nested = "g.V('0').repeat(repeat(out()).times(10)).times(4).count()";
    assert_eq!(graph.one(nested), (1_i64 << 40).to_string());
    for text in ["g.V().repeat(out()).times(70).count()", "g.V().repeat(out()).times(70).values('n').sum()"] {
        let error = refused(&graph.database, text);
        assert!(error.contains("overflow"), "{text}: {error}");
    }
    // openCypher asks for the same rows.
    let text =
        "MATCH (a:V)-[:X]->(b) WITH b MATCH (b)-[:X]->(c) RETURN c.part AS part, count(*) AS n ORDER BY part";
    assert_eq!(run(&graph.database, text), ["0 | 16", "1 | 16", "2 | 16"]);
}

#[test]
fn values_of_different_types_stay_apart() {
    let graph = Graph::of(3, &[(0, 1), (1, 2), (0, 2)], Options::default());
    run(&graph.database, "MATCH (a {n: 1}) SET a.w = 1 WITH 1 AS one MATCH (b {n: 2}) SET b.w = 1.0");
    let text = "MATCH (:V)-[:X]->(b) WITH b.w AS w MATCH (:V {n: 0})-[:X]->(t) RETURN valueType(w) AS t, count(t.n) AS c \
                ORDER BY t";
    assert_eq!(run(&graph.database, text), ["FLOAT NOT NULL | 4", "INTEGER NOT NULL | 2"]);
}

/// Reads a path such as `<v[1], v[2]>` of vertices.
fn path(text: &str) -> Vec<usize> {
    let inner = text.trim_start_matches('<').trim_end_matches('>');
    inner
        .split(", ")
        .map(|v| v.trim_start_matches("v[").trim_end_matches(']').parse().expect("a vertex"))
        .collect()
}

#[test]
fn the_first_path_is_a_shortest_one_and_is_found_in_little_memory() {
    for seed in [4, 90] {
        let options =
            Options { query_memory_bytes: 6 << 20, query_spill_bytes: Some(0), ..Options::default() };
        let graph = Graph::drawn(seed, 400, 3_000, options);
        let distances = graph.distances(0);
        for end in [17, 123, 399] {
            for (step, prefix) in
                [("out().simplePath()", ""), ("out()", ""), ("outE().inV().simplePath()", "e")]
            {
                let text = format!("g.V('0').repeat({step}).until(has('n', {end})).limit(1).path()");
                assert!(graph.plan(&text).contains("over all rounds"), "{}", graph.plan(&text));
                let rows = run(&graph.database, &text);
                match distances.get(&end) {
                    None => assert!(rows.is_empty(), "{text}: {rows:?}"),
                    Some(steps) if prefix == "e" => {
                        assert_eq!(rows[0].split(", ").count(), 2 * steps + 1, "{rows:?}")
                    }
                    Some(steps) => {
                        let path = path(&rows[0]);
                        assert_eq!(path.len(), steps + 1, "{text}: {rows:?}");
                        assert!(
                            path.windows(2).all(|pair| graph.out[pair[0]].contains(&pair[1])),
                            "{rows:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_first_path_does_not_enter_what_the_traverser_has_seen() {
    // 0 -> 1 -> 2 -> 3 is shorter than 0 -> 1 -> 4 -> 5 -> 3, but 2 is on the path already.
    let edges = [(2, 0), (0, 1), (1, 2), (2, 3), (1, 4), (4, 5), (5, 3)];
    let graph = Graph::of(6, &edges, Options::default());
    let found = run(
        &graph.database,
        "g.V('2').out().has('n', 0).repeat(out().simplePath()).until(has('n', 3)).limit(1).path()",
    );
    assert_eq!(found, ["<v[2], v[0], v[1], v[4], v[5], v[3]>"]);
    // Two traversers at the same vertex that have come along different ways.
    let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 1), (1, 4)];
    let graph = Graph::of(5, &edges, Options::default());
    let text = "g.V('0').out().out().repeat(out().simplePath()).until(has('n', 4)).limit(1).path()";
    assert_eq!(run(&graph.database, text), ["<v[0], v[2], v[3], v[1], v[4]>"]);
}

#[test]
fn repeats_without_an_end_stop_at_a_limit() {
    let options = Options { query_memory_bytes: 8 << 20, ..Options::default() };
    let graph = Graph::drawn(12, 300, 3_000, options);
    assert_eq!(run(&graph.database, "g.V('0').repeat(out()).emit().limit(20)").len(), 20);
    let text = "g.V('0').repeat(out().simplePath()).until(has('part', 2)).limit(30).path()";
    let paths: BTreeSet<String> = run(&graph.database, text).into_iter().collect();
    assert!(
        paths.len() > 1 && paths.iter().all(|found| path(found).last().expect("an end") % 3 == 2),
        "{paths:?}"
    );
    assert!(run(&graph.database, "g.V('0').repeat(both()).until(has('n', -1)).limit(1)").is_empty());
    assert_eq!(run(&graph.database, "g.V('0').repeat(out()).emit(has('part', 1)).next()").len(), 1);
    let reached: Vec<usize> = graph.distances(0).into_keys().collect();
    let all = graph.one("g.V('0').emit().repeat(out()).dedup().count()");
    assert_eq!(all, reached.len().to_string());
    let text = "g.V('0').repeat(out()).until(has('part', 2)).dedup().values('n').order().fold()";
    let ends: Vec<usize> = reached.iter().copied().filter(|v| v % 3 == 2).collect();
    assert_eq!(graph.one(text), format!("{ends:?}"));
    let text = "g.V().where(repeat(out()).until(has('n', 7))).count()";
    let there = (0..300).filter(|v| graph.out[*v].iter().any(|next| graph.distances(*next).contains_key(&7)));
    assert_eq!(graph.one(text), there.count().to_string());
}

#[test]
fn ends_after_a_number_of_rounds_are_searched_for() {
    let graph = Graph::drawn(31, 200, 1_500, Options::default());
    for rounds in [3, 12] {
        let text = format!("g.V('0').repeat(out()).times({rounds}).dedup().count()");
        assert!(graph.plan(&text).contains("bulk ["), "{}", graph.plan(&text));
        let mut ends = BTreeSet::from([0]);
        for _ in 0..rounds {
            ends = ends.iter().flat_map(|v| &graph.out[*v]).copied().collect();
        }
        assert_eq!(graph.one(&text), ends.len().to_string());
    }
}

#[test]
fn an_empty_graph_has_no_walks() {
    let database = empty();
    assert_eq!(run(&database, "g.V().repeat(out()).times(20).count()"), ["0"]);
    assert!(run(&database, "g.V().repeat(out()).times(20).values('n').sum()").is_empty());
}

#[test]
fn a_seed_repeats_random_numbers() {
    let graph = Graph::drawn(11, 60, 200, Options::default());
    let draws = [
        "V().coin(0.5).id().fold()",
        "V().order().by(shuffle).id().fold()",
        "V().sample(7).id().fold()",
        "V().fold().sample(local, 7).unfold().id().fold()",
    ];
    for draw in draws {
        let seeded =
            |seed: i64| run(&graph.database, &format!("g.withStrategies(SeedStrategy(seed: {seed})).{draw}"));
        assert_eq!(seeded(-5), seeded(-5), "{draw}");
        let different: BTreeSet<String> = (0..8).map(|seed| format!("{:?}", seeded(seed))).collect();
        assert!(different.len() > 1, "{draw}: {different:?}");
    }
    // Ids of new vertices do not repeat.
    for _ in 0..2 {
        run(&graph.database, "g.withStrategies(SeedStrategy(seed: 1)).addV('new')");
    }
    let error = refused(&graph.database, "g.withStrategies(SeedStrategy).V()");
    assert!(error.contains("SeedStrategy needs an integer as seed"), "{error}");
}

#[test]
fn a_time_limit_ends_a_walk_without_an_end() {
    let graph = Graph::of(2, &[(0, 1), (1, 0)], Options::default());
    // Each of them would end at the time limit of the request, which is an error.
    for walk in [
        "g.V('0').repeat(out()).emit().timeLimit(50).count()",
        "g.V('0').repeat(timeLimit(50).out()).emit().count()",
        "g.V('0').repeat(out().timeLimit(50)).until(loops().is(-1)).count()",
    ] {
        let counts = run(&graph.database, walk);
        assert_eq!(counts.len(), 1, "{walk}: {counts:?}");
    }
    assert_eq!(run(&graph.database, "g.V().timeLimit(0).count()"), ["0"]);
    assert_eq!(run(&graph.database, "g.V().timeLimit(600000).id().order()"), ["0", "1"]);
    let error = refused(&graph.database, "g.V().timeLimit(-1)");
    assert!(error.contains("timeLimit() does not take number -1"), "{error}");
}

/// More vertices than a batch has rows: where batches of the input end must not show.
#[test]
fn a_distinct_and_a_loop_that_sorts_see_a_whole_round() {
    let vertices = 3_000;
    let ring: Vec<(usize, usize)> = (0..vertices).map(|n| (n, (n + 1) % vertices)).collect();
    let graph = Graph::of(vertices, &ring, Options::default());
    let count = |rounds: u32| {
        run(&graph.database, &format!("g.V().repeat(__.dedup().out()).times({rounds}).count()"))
    };
    assert_eq!(count(1), ["3000"]);
    // The second round meets only what the first one has met.
    assert_eq!(count(2), ["0"]);
    let found = run(
        &graph.database,
        "g.V().repeat(__.out().repeat(__.order().by('n')).times(1)).times(1).values('n')",
    );
    let sorted: Vec<String> = (0..vertices).map(|n| n.to_string()).collect();
    assert!(found == sorted, "{:?}", &found[..5]);
}

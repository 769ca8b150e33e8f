//! Selectors (`SHORTEST k`, `ANY`, `ALL SHORTEST`, `GROUPS`) before paths of several parts, compared with all paths of small
//! random graphs, found by trying every edge.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

mod support;

use std::collections::BTreeMap;
use support::{empty, run};
use tidegraph_engine::{Database, Language, Parameters, Query};
use tidegraph_types::{ErrorCode, Value};

const NODES: u64 = 5;
const EDGES: u64 = 8;

/// Draws numbers, the same for a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// A small graph: labels of nodes, and edges with source, target and label.
struct Graph {
    labels: Vec<&'static str>,
    edges: Vec<(usize, usize, &'static str)>,
    /// Whether a path may have an edge twice.
    repeats: bool,
}

impl Graph {
    fn draw(random: &mut Random) -> Self {
        let labels = (0..NODES).map(|_| ["X", "Y"][random.below(2) as usize]).collect();
        let mut node = || random.below(NODES) as usize;
        let ends: Vec<(usize, usize)> = (0..EDGES).map(|_| (node(), node())).collect();
        let edges = ends.into_iter().map(|(a, b)| (a, b, ["R", "S"][random.below(2) as usize])).collect();
        Self { labels, edges, repeats: false }
    }

    fn store(&self) -> std::sync::Arc<Database> {
        let database = empty();
        for (n, label) in self.labels.iter().enumerate() {
            run(&database, &format!("CREATE (:{label} {{n: {n}}})"));
        }
        for (i, (source, target, label)) in self.edges.iter().enumerate() {
            run(
                &database,
                &format!(
                    "MATCH (a {{n: {source}}}), (b {{n: {target}}}) CREATE (a)-[:{label} {{i: {i}}}]->(b)"
                ),
            );
        }
        database
    }
}

#[derive(Clone, Copy)]
enum Way {
    Right,
    Left,
    Both,
}

/// Steps of one edge each, which are repeated, and the label of the node behind them.
struct Part {
    steps: Vec<(Option<&'static str>, Way)>,
    /// `None`: the steps occur once, without a quantifier.
    length: Option<(usize, Option<usize>)>,
    behind: Option<&'static str>,
}

impl Part {
    fn draw(random: &mut Random) -> Self {
        let count = [1, 1, 1, 2][random.below(4) as usize];
        let step = |random: &mut Random| {
            let label = [Some("R"), Some("S"), None][random.below(3) as usize];
            (label, [Way::Right, Way::Right, Way::Left, Way::Both][random.below(4) as usize])
        };
        let steps: Vec<_> = (0..count).map(|_| step(random)).collect();
        let lengths = [
            None,
            Some((1, None)),
            Some((0, Some(2))),
            Some((1, Some(2))),
            Some((0, None)),
            Some((2, Some(3))),
        ];
        let length = if count > 1 { Some((1, Some(2))) } else { lengths[random.below(6) as usize] };
        let behind = [Some("X"), Some("Y"), None, None][random.below(4) as usize];
        Self { steps, length, behind }
    }

    fn text(&self, number: u64) -> String {
        let quantifier = self
            .length
            .map(|(min, max)| format!("{{{min},{}}}", max.map(|max| max.to_string()).unwrap_or_default()));
        let arrow = |(label, way): &(Option<&str>, Way)| {
            let label = label.map(|label| format!(":{label}")).unwrap_or_default();
            match way {
                Way::Right => format!("-[{label}]->"),
                Way::Left => format!("<-[{label}]-"),
                Way::Both => format!("-[{label}]-"),
            }
        };
        let behind = self.behind.map(|label| format!(":{label}")).unwrap_or_default();
        let steps: Vec<String> = self.steps.iter().map(arrow).collect();
        match (&steps[..], quantifier) {
            ([step], quantifier) => format!("{step}{} (b{number}{behind})", quantifier.unwrap_or_default()),
            (steps, quantifier) => {
                format!(
                    " ({}){} (b{number}{behind})",
                    steps.join("()").replacen("", "()", 1) + "()",
                    quantifier.unwrap_or_default()
                )
            }
        }
    }
}

/// Finds all paths without repeated edges that match the parts from a node on.
fn paths(
    graph: &Graph,
    parts: &[Part],
    at: usize,
    path: &mut Vec<usize>,
    found: &mut Vec<(usize, Vec<usize>)>,
) {
    let Some((part, rest)) = parts.split_first() else {
        found.push((at, path.clone()));
        return;
    };
    let (min, max) = part.length.unwrap_or((1, Some(1)));
    repeat(graph, part, rest, (at, 0, 0), (min, max), path, found);
}

/// `at`: the node, the repetitions that are done, and the step of the current one.
fn repeat(
    graph: &Graph,
    part: &Part,
    rest: &[Part],
    (at, done, step): (usize, usize, usize),
    (min, max): (usize, Option<usize>),
    path: &mut Vec<usize>,
    found: &mut Vec<(usize, Vec<usize>)>,
) {
    if step == 0 {
        if done >= min && part.behind.is_none_or(|label| graph.labels[at] == label) {
            paths(graph, rest, at, path, found);
        }
        if max.is_some_and(|max| done >= max) {
            return;
        }
    }
    let (wanted, way) = part.steps[step];
    for (edge, (source, target, label)) in graph.edges.iter().enumerate() {
        if path.contains(&edge) && !graph.repeats || wanted.is_some_and(|wanted| wanted != *label) {
            continue;
        }
        let mut ends = vec![];
        if *source == at && matches!(way, Way::Right | Way::Both) {
            ends.push(*target);
        }
        if *target == at && matches!(way, Way::Left | Way::Both) && (source != target || ends.is_empty()) {
            ends.push(*source);
        }
        for end in ends {
            path.push(edge);
            let next = (step + 1) % part.steps.len();
            repeat(graph, part, rest, (end, done + usize::from(next == 0), next), (min, max), path, found);
            path.pop();
        }
    }
}

/// Paths by their ends.
type ByEnds = BTreeMap<(i64, i64), Vec<Vec<i64>>>;

fn by_ends(rows: impl Iterator<Item = (i64, i64, Vec<i64>)>) -> ByEnds {
    let mut all = ByEnds::new();
    for (start, end, path) in rows {
        all.entry((start, end)).or_default().push(path);
    }
    for paths in all.values_mut() {
        paths.sort_by_key(|path| (path.len(), path.clone()));
    }
    all
}

fn answered(database: &Database, text: &str) -> ByEnds {
    let rows = rows(database, text);
    let number = |value: &Value| value.as_i64().unwrap();
    by_ends(rows.iter().map(|row| {
        let path = row[2].as_slice().unwrap().iter().map(number).collect();
        (number(&row[0]), number(&row[1]), path)
    }))
}

fn rows(database: &Database, text: &str) -> Vec<Vec<Value>> {
    let none = Parameters::default();
    let answer = database.query(&Query::new(Language::OpenCypher, text, &none));
    answer.unwrap_or_else(|error| panic!("{text}: {error}")).rows
}

/// The lengths of paths.
fn lengths(paths: &[Vec<i64>]) -> Vec<usize> {
    paths.iter().map(Vec::len).collect()
}

/// Selectors with the largest number of paths, or of their lengths.
const SELECTORS: [(&str, usize, bool); 6] = [
    ("ANY", 1, false),
    ("ANY 2", 2, false),
    ("ANY SHORTEST", 1, false),
    ("ALL SHORTEST", 1, true),
    ("SHORTEST 3", 3, false),
    ("SHORTEST 2 GROUPS", 2, true),
];

/// Finds all paths of the graph that match.
fn all_paths(graph: &Graph, parts: &[Part]) -> ByEnds {
    let mut all = vec![];
    for start in 0..graph.labels.len() {
        let mut found = vec![];
        paths(graph, parts, start, &mut vec![], &mut found);
        let as_row = |(end, path): (usize, Vec<usize>)| {
            (start as i64, end as i64, path.into_iter().map(|edge| edge as i64).collect())
        };
        all.extend(found.into_iter().map(as_row));
    }
    by_ends(all.into_iter())
}

/// Compares the paths that a selector chose with all. Returns their number, and how often it left some out.
fn check_choice(text: &str, answer: &ByEnds, all: &ByEnds, count: usize, groups: bool) -> (usize, usize) {
    let (mut chosen, mut several) = (0, 0);
    assert_eq!(answer.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>(), "{text}");
    for (ends, paths) in all {
        let found = &answer[ends];
        chosen += found.len();
        several += usize::from(paths.len() > found.len());
        if groups {
            let mut different = lengths(paths);
            different.dedup();
            let longest = different[different.len().min(count) - 1];
            let wanted: Vec<_> = paths.iter().filter(|path| path.len() <= longest).cloned().collect();
            assert_eq!(*found, wanted, "{text} from {ends:?}");
            continue;
        }
        assert_eq!(lengths(found), lengths(&paths[..count.min(paths.len())]), "{text} from {ends:?}");
        // Each of them once.
        let mut left = paths.clone();
        for path in found {
            let at = left.iter().position(|other| other == path);
            left.remove(at.unwrap_or_else(|| panic!("{text} from {ends:?}: {path:?}")));
        }
    }
    (chosen, several)
}

fn drawn_parts(random: &mut Random, least: u64) -> (Vec<Part>, String) {
    let parts: Vec<Part> = (0..least + random.below(2)).map(|_| Part::draw(random)).collect();
    let text = parts.iter().zip(1..).map(|(part, number)| part.text(number)).collect();
    (parts, text)
}

#[test]
fn selectors_choose_among_all_paths_of_several_parts() {
    let mut random = Random(0x5eed_1234_5678_9abc);
    let (mut chosen, mut several) = (0, 0);
    for _ in 0..14 {
        let graph = Graph::draw(&mut random);
        let database = graph.store();
        for _ in 0..14 {
            let (parts, text) = drawn_parts(&mut random, 1);
            let mut all = all_paths(&graph, &parts);
            let returned = format!("RETURN a.n, b{}.n, [r IN relationships(p) | r.i]", parts.len());
            // The ends are bound before, by a property, or not at all.
            let (before, start, wanted) = match random.below(4) {
                0 => {
                    let [first, last] = [(); 2].map(|()| random.below(NODES) as i64);
                    let before = format!("MATCH (a {{n: {first}}}), (b{} {{n: {last}}}) ", parts.len());
                    (before, "(a)".to_owned(), Some((Some(first), Some(last))))
                }
                1 => {
                    let last = random.below(NODES) as i64;
                    (
                        format!("MATCH (b{} {{n: {last}}}) ", parts.len()),
                        "(a)".to_owned(),
                        Some((None, Some(last))),
                    )
                }
                2 => {
                    let first = random.below(NODES) as i64;
                    (String::new(), format!("(a {{n: {first}}})"), Some((Some(first), None)))
                }
                _ => (String::new(), "(a)".to_owned(), None),
            };
            all.retain(|(first, last), _| {
                let fits = |wanted: Option<i64>, is: i64| wanted.is_none_or(|wanted| wanted == is);
                wanted.is_none_or(|(start, end)| fits(start, *first) && fits(end, *last))
            });
            for (selector, count, groups) in SELECTORS {
                let text = format!("{before}MATCH p = {selector} {start}{text} {returned}");
                let (found, left_out) = check_choice(&text, &answered(&database, &text), &all, count, groups);
                chosen += found;
                several += left_out;
            }
        }
    }
    assert!(chosen > 1_000 && several > 100, "{chosen} paths, {several} choices");
}

#[test]
fn selectors_choose_among_walks_where_elements_repeat() {
    let mut random = Random(0x1e55_0f77_3311_9abd);
    let (mut chosen, mut longer) = (0, 0);
    for _ in 0..10 {
        let mut graph = Graph::draw(&mut random);
        let database = graph.store();
        for _ in 0..24 {
            let (parts, text) = drawn_parts(&mut random, 2);
            let longest = |part: &Part| match part.length {
                None => Some(part.steps.len()),
                Some((_, max)) => max.map(|max| max * part.steps.len()),
            };
            // Of longer walks there are too many to compare.
            if parts.iter().map(longest).sum::<Option<usize>>().is_none_or(|longest| longest > 5) {
                continue;
            }
            graph.repeats = false;
            let without: usize = all_paths(&graph, &parts).values().map(Vec::len).sum();
            graph.repeats = true;
            let all = all_paths(&graph, &parts);
            longer += usize::from(all.values().map(Vec::len).sum::<usize>() > without);
            for (selector, count, groups) in SELECTORS {
                let returned = format!("RETURN a.n, b{}.n, [r IN relationships(p) | r.i]", parts.len());
                let text = format!("MATCH REPEATABLE ELEMENTS p = {selector} (a){text} {returned}");
                chosen += check_choice(&text, &answered(&database, &text), &all, count, groups).0;
            }
        }
    }
    assert!(chosen > 500 && longer > 5, "{chosen} paths, {longer} patterns");
}

/// Creates a chain of 40 squares, through which 2^40 paths lead, and ways out at its end.
fn squares() -> std::sync::Arc<Database> {
    let database = empty();
    run(&database, "UNWIND range(0, 40) AS n CREATE (:Corner {n: n, `~id`: 'c' + toString(n)})");
    run(
        &database,
        "UNWIND range(0, 39) AS n MATCH (a) WHERE id(a) = 'c' + toString(n) \
         MATCH (b) WHERE id(b) = 'c' + toString(n + 1) \
         CREATE (a)-[:R {w: 1}]->(:Side {n: n})-[:R {w: 1}]->(b), (a)-[:R {w: 2}]->(:Side {n: -n})-[:R {w: 1}]->(b)",
    );
    run(
        &database,
        "MATCH (c:Corner {n: 40}) CREATE (c)-[:S]->(:Out {n: 1}), (c)-[:R]->(:Out {n: 2})-[:S]->(:Out {n: 3})",
    );
    database
}

#[test]
fn selectors_search_where_paths_are_too_many_to_enumerate() {
    let database = squares();
    let path = "(a:Corner {n: 0})-[:R]->+(b)-[:S]->(c)";
    let returned = "RETURN c.n, length(p) ORDER BY c.n, length(p)";
    let row = |n: i64, length: i64| vec![Value::Long(n), Value::Long(length)];
    let any = |text: &str| rows(&database, text);
    for path in [
        path,
        "(a:Corner {n: 0})((x)-[:R]->(y)-[:R]->(z))+(d)-[:R]->*(b)-[:S]->(c:Out)",
        "(a:Corner {n: 0})-[:R]->+(m)-[:R]->*(b)-[:S]->(c)",
        "(a:Corner {n: 0})-[r:R WHERE r.w > 0 OR r.w IS NULL]->+(b WHERE b.n > 1)-[s:S]->(c)",
    ] {
        let text = format!("MATCH p = ANY SHORTEST {path} {returned}");
        assert_eq!(any(&text), [row(1, 81), row(3, 82)], "{text}");
        let text = format!("MATCH p = SHORTEST 3 {path} {returned}");
        let three = [row(1, 81), row(1, 81), row(1, 81), row(3, 82), row(3, 82), row(3, 82)];
        assert_eq!(any(&text), three, "{text}");
    }
    // Conditions that leave one way.
    let narrow = "(a:Corner {n: 0})-[r:R WHERE r.w = 1]->+(b)-[:S]->(c)";
    assert_eq!(any(&format!("MATCH p = SHORTEST 2 GROUPS {narrow} {returned}")), [row(1, 81)]);
    // Both ends are known, from the right end on, and in several groups.
    let bound = "MATCH (a:Corner {n: 0}), (c:Out {n: 3}) MATCH p = SHORTEST 2 (a)-[:R]->+()-[:S]->(c)";
    assert_eq!(any(&format!("{bound} {returned}")), [row(3, 82), row(3, 82)]);
    let from_right = "MATCH (c:Out {n: 1}) MATCH p = ANY SHORTEST (a:Corner)-[:R]->+()-[:S]->(c)";
    let lengths = any(&format!("{from_right} RETURN a.n, length(p) ORDER BY a.n"));
    let wanted: Vec<_> = (0..40).map(|n| row(n, 2 * (40 - n) + 1)).collect();
    assert_eq!(lengths, wanted);
    // No edge twice, although the same edge would fit both parts.
    run(&database, "CREATE (:Twin {n: 1})-[:T]->(:Twin {n: 2}), (:Alone {n: 9})-[:T]->(:Alone {n: 10})");
    run(&database, "MATCH (a:Twin {n: 1}), (b:Twin {n: 2}) CREATE (b)-[:T]->(a)");
    let back =
        "MATCH p = ANY SHORTEST (a:Twin {n: 1})-[:T]->+(b)-[:T]->+(c) RETURN c.n, length(p) ORDER BY c.n";
    assert_eq!(any(back), [row(1, 2)]);
    let repeated = back.replace("MATCH p", "MATCH REPEATABLE ELEMENTS p").replace("->+", "->{1,9}");
    assert_eq!(any(&repeated), [row(1, 2), row(2, 3)]);
}

#[test]
fn a_search_of_paths_has_limits() {
    let database = squares();
    let text = "MATCH p = ALL SHORTEST (a:Corner {n: 0})-[:R]->+(b)-[:S]->(c) RETURN count(p)";
    let none = Parameters::default();
    let timeout = Some(std::time::Duration::from_millis(300));
    let query = Query { timeout, ..Query::new(Language::OpenCypher, text, &none) };
    let error = database.query(&query).unwrap_err();
    let is_limit = matches!(error.code(), ErrorCode::TimeLimitExceeded | ErrorCode::MemoryLimitExceeded);
    assert!(is_limit, "{error}");
}

/// Ids of the edges of the chosen paths, in their order.
fn edges(database: &Database, text: &str) -> Vec<Value> {
    rows(database, text).into_iter().map(|mut row| row.remove(0)).collect()
}

#[test]
fn conditions_inside_come_before_the_choice_and_others_after_it() {
    let database = empty();
    // From a to d: over b in 2 steps, over b and c in 3, over c alone in 4.
    run(
        &database,
        "CREATE (a:A {n: 'a'}), (b:M {n: 'b'}), (c:M {n: 'c'}), (d:D {n: 'd'}),
                (a)-[:R {i: 1}]->(b), (b)-[:S {i: 2}]->(d), (b)-[:R {i: 3}]->(c), (c)-[:S {i: 4}]->(d),
                (a)-[:R {i: 5}]->(:M {n: 'x'})-[:R {i: 6}]->(:M {n: 'y'})-[:R {i: 7}]->(c)",
    );
    let ids = |ids: &[i64]| Value::list(ids.iter().map(|id| Value::Long(*id)).collect());
    let path = "(a:A)-[:R]->+(m:M)-[:S]->+(d:D)";
    let returned = "RETURN [r IN relationships(p) | r.i]";
    assert_eq!(edges(&database, &format!("MATCH p = ANY SHORTEST {path} {returned}")), [ids(&[1, 2])]);
    let two = [ids(&[1, 2]), ids(&[1, 3, 4])];
    assert_eq!(edges(&database, &format!("MATCH p = SHORTEST 2 {path} {returned}")), two);
    assert_eq!(edges(&database, &format!("MATCH p = SHORTEST 2 GROUPS {path} {returned}")), two);
    // After the choice: none is left.
    let after = format!("MATCH p = ANY SHORTEST {path} WHERE m.n = 'c' {returned}");
    assert_eq!(edges(&database, &after), Vec::<Value>::new());
    let inside = format!("MATCH p = ANY SHORTEST ({path} WHERE m.n = 'c') {returned}");
    assert_eq!(edges(&database, &inside), [ids(&[1, 3, 4])]);
    let subquery =
        format!("MATCH p = ANY SHORTEST ({path} WHERE NOT EXISTS {{ (:A)-[:R]->(m) }}) {returned}");
    assert_eq!(edges(&database, &subquery), [ids(&[1, 3, 4])]);
    // Each row of the input has its own choice, and OPTIONAL MATCH keeps rows without paths.
    let answer = rows(
        &database,
        "MATCH (a:A) UNWIND ['b', 'c', 'none'] AS n
         OPTIONAL MATCH p = ALL SHORTEST ((a)-[r:R]->+(m:M)-[:S]->(d) WHERE m.n = n)
         RETURN n, length(p), size(r) ORDER BY n",
    );
    let row = |n: &str, numbers: [Value; 2]| [vec![Value::from(n)], numbers.to_vec()].concat();
    assert_eq!(
        answer,
        [
            row("b", [Value::Long(2), Value::Long(1)]),
            row("c", [Value::Long(3), Value::Long(2)]),
            row("none", [Value::Null, Value::Null]),
        ]
    );
}

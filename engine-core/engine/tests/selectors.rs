//! Selectors (`SHORTEST k`, `ANY`, `ALL SHORTEST`, `GROUPS`) before paths of several parts, compared with all paths of small
//! random graphs, found by trying every edge.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

mod support;

use std::collections::BTreeMap;
use support::{empty, run};
use tidegraph_engine::{Database, Language, Parameters, Query};
use tidegraph_types::Value;

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
}

impl Graph {
    fn draw(random: &mut Random) -> Self {
        let labels = (0..NODES).map(|_| ["X", "Y"][random.below(2) as usize]).collect();
        let mut node = || random.below(NODES) as usize;
        let ends: Vec<(usize, usize)> = (0..EDGES).map(|_| (node(), node())).collect();
        let edges = ends.into_iter().map(|(a, b)| (a, b, ["R", "S"][random.below(2) as usize])).collect();
        Self { labels, edges }
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
        if path.contains(&edge) || wanted.is_some_and(|wanted| wanted != *label) {
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

#[test]
fn selectors_choose_among_all_paths_of_several_parts() {
    let mut random = Random(0x5eed_1234_5678_9abc);
    let (mut chosen, mut several) = (0, 0);
    for _ in 0..12 {
        let graph = Graph::draw(&mut random);
        let database = graph.store();
        for _ in 0..12 {
            let parts: Vec<Part> = (0..2 + random.below(2)).map(|_| Part::draw(&mut random)).collect();
            let text: String = parts.iter().zip(1..).map(|(part, number)| part.text(number)).collect();
            let mut all = vec![];
            for start in 0..graph.labels.len() {
                let mut found = vec![];
                paths(&graph, &parts, start, &mut vec![], &mut found);
                let as_row = |(end, path): (usize, Vec<usize>)| {
                    (start as i64, end as i64, path.into_iter().map(|edge| edge as i64).collect())
                };
                all.extend(found.into_iter().map(as_row));
            }
            let all = by_ends(all.into_iter());
            let last = parts.len();
            let returned = format!("RETURN a.n, b{last}.n, [r IN relationships(p) | r.i]");
            for (selector, count, groups) in [
                ("ANY", 1, false),
                ("ANY 2", 2, false),
                ("ANY SHORTEST", 1, false),
                ("ALL SHORTEST", 1, true),
                ("SHORTEST 3", 3, false),
                ("SHORTEST 2 GROUPS", 2, true),
            ] {
                let text = format!("MATCH p = {selector} (a){text} {returned}");
                let answer = answered(&database, &text);
                assert_eq!(answer.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>(), "{text}");
                for (ends, paths) in &all {
                    let found = &answer[ends];
                    chosen += found.len();
                    several += usize::from(paths.len() > found.len());
                    if groups {
                        let mut different = lengths(paths);
                        different.dedup();
                        let longest = different[different.len().min(count) - 1];
                        let wanted: Vec<_> =
                            paths.iter().filter(|path| path.len() <= longest).cloned().collect();
                        assert_eq!(*found, wanted, "{text} from {ends:?}");
                        continue;
                    }
                    assert_eq!(
                        lengths(found),
                        lengths(&paths[..count.min(paths.len())]),
                        "{text} from {ends:?}"
                    );
                    // Each of them once.
                    let mut left = paths.clone();
                    for path in found {
                        let at = left.iter().position(|other| other == path);
                        left.remove(at.unwrap_or_else(|| panic!("{text} from {ends:?}: {path:?}")));
                    }
                }
            }
        }
    }
    assert!(chosen > 1_000 && several > 100, "{chosen} paths, {several} choices");
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

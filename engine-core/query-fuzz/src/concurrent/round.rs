//! Draws rounds, and makes them smaller.

use super::Forced;
use crate::campaign::{Drawn, Languages, ask, draw, smaller_graphs};
use crate::cypher::ast::{Clause, Expr, NodePattern, Pattern, Projection, Query, SetItem};
use crate::graph::{Graph, TEXT_KEY, random_value};
use crate::gremlin::ast::{Step, Traversal};
use crate::value::{Val, order};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cmp::Ordering;
use std::fmt;
use tidegraph_engine::{Database, Error, Language};

/// Labels and keys of indexes.
const INDEXES: [(&str, &str); 2] = [("A", "a"), ("B", "s")];
/// Labels and keys whose values are unique.
const UNIQUE: [(&str, &str); 3] = [("A", "a"), ("B", "s"), ("C", "m")];

/// Rounds of a fleet one after the other that have the same indexes and constraints.
const ROUNDS_OF_SCHEMA: u64 = 25;

/// Indexes and constraints of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schema {
    /// None.
    Nothing,
    /// Indexes.
    Indexes,
    /// Unique constraints.
    Constraints,
}

impl Schema {
    /// Creates it.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub fn create(self, database: &Database) -> Result<(), Error> {
        let (pairs, text): (&[_], fn(&str, &str) -> String) = match self {
            Self::Nothing => (&[], |_, _| String::new()),
            Self::Indexes => {
                (&INDEXES, |label, key| format!("CREATE INDEX i{label} FOR (n:{label}) ON (n.{key})"))
            }
            Self::Constraints => (&UNIQUE, |label, key| {
                format!("CREATE CONSTRAINT u{label} FOR (n:{label}) REQUIRE n.{key} IS UNIQUE")
            }),
        };
        pairs
            .iter()
            .try_for_each(|(label, key)| ask(database, Language::OpenCypher, &text(label, key)).map(drop))
    }

    /// Removes it.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub fn drop_from(self, database: &Database) -> Result<(), Error> {
        let (pairs, kind): (&[_], _) = match self {
            Self::Nothing => (&[], ""),
            Self::Indexes => (&INDEXES, "INDEX i"),
            Self::Constraints => (&UNIQUE, "CONSTRAINT u"),
        };
        pairs.iter().try_for_each(|(label, _)| {
            ask(database, Language::OpenCypher, &format!("DROP {kind}{label}")).map(drop)
        })
    }

    /// Whether a graph breaks a constraint.
    pub fn is_broken_by(self, graph: &Graph) -> bool {
        self == Self::Constraints && UNIQUE.iter().any(|(label, key)| duplicate(graph, label, key).is_some())
    }
}

/// Returns a node whose value another node of the label has too.
fn duplicate(graph: &Graph, label: &str, key: &str) -> Option<usize> {
    let mut seen: Vec<&Val> = vec![];
    for (index, node) in graph.live_nodes().filter(|(_, node)| node.labels.contains(label)) {
        let Some(value) = node.properties.get(key) else { continue };
        if seen.iter().any(|other| order(other, value) == Ordering::Equal) {
            return Some(index);
        }
        seen.push(value);
    }
    None
}

/// Draws a statement that writes a unique value, which another node may have, or another statement may write.
fn meeting(rng: &mut ChaCha8Rng, graph: &Graph) -> Drawn {
    let (label, key) = UNIQUE[rng.random_range(0..UNIQUE.len())];
    let value = random_value(rng, key);
    let ids: Vec<String> = graph.live_nodes().map(|(_, node)| node.id.clone()).collect();
    if rng.random_bool(0.4) {
        let start = match ids.choose(rng) {
            Some(id) if rng.random_bool(0.5) => Step::V(vec![id.clone()]),
            _ => Step::AddV(label.to_owned()),
        };
        return Drawn::Gremlin(Traversal::new(vec![start, Step::Property(true, key.to_owned(), value)]));
    }
    let name = "n1".to_owned();
    let start = |labels: &[&str], properties: Vec<(String, Expr)>| {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let start = NodePattern { name: Some(name.clone()), labels, properties };
        Pattern { path: None, shortest: None, start, steps: vec![] }
    };
    let with_value = || start(&[label], vec![(key.to_owned(), Expr::Literal(value.clone()))]);
    let matched = |filter| Clause::Match { optional: false, patterns: vec![start(&[], vec![])], filter };
    let mut clauses = match rng.random_range(0..4) {
        0 => vec![Clause::Create(vec![with_value()])],
        1 => vec![Clause::Merge { pattern: with_value(), on_create: None, on_match: None }],
        2 => vec![matched(None), Clause::Set(SetItem::Label(name.clone(), label.to_owned()))],
        _ => {
            let own = Box::new(Expr::Property(name.clone(), TEXT_KEY.to_owned()));
            let text = Box::new(Expr::Literal(random_value(rng, TEXT_KEY)));
            let set = SetItem::Property(name.clone(), key.to_owned(), Expr::Literal(value.clone()));
            vec![matched(Some(Expr::Binary("=", own, text))), Clause::Set(set)]
        }
    };
    let keys = vec![(Expr::Property(name.clone(), key.to_owned()), "x1".to_owned())];
    clauses.push(Clause::Project(Projection::new(keys)));
    Drawn::Cypher(Query { parts: vec![clauses], all: false })
}

/// How a statement runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// It reads when it begins, and its writes are committed later. A conflict ends it.
    Steps,
    /// As [`Way::Steps`], but it runs as a whole if it does not end within small limits, and again after a conflict. Its
    /// plan may be unknown.
    AtHand { planned: bool, rows: u64 },
    /// As a transaction of one request, whose commit a thread asks for. A conflict ends it.
    Transaction,
    /// As a whole, on a thread.
    Whole,
}

/// A statement of a round.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The statement.
    pub drawn: Drawn,
    /// How it runs.
    pub way: Way,
    /// Number of the database that it is sent to.
    pub site: usize,
    /// Whether its caller asks for the newest version that another caller has seen.
    pub follows: bool,
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { drawn, way, site, follows } = self;
        let follows = if *follows { ", follows" } else { "" };
        write!(f, "{drawn}   [{way:?} at {site}{follows}]")
    }
}

/// What a statement does at a point of the schedule. Each does these one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The statement of this number begins.
    Begins(usize),
    /// It asks for its commit.
    Commits(usize),
    /// Its commit is answered.
    Ends(usize),
}

impl Event {
    /// Returns the number of the statement.
    fn number(self) -> usize {
        match self {
            Self::Begins(number) | Self::Commits(number) | Self::Ends(number) => number,
        }
    }

    /// Returns the same event of another statement.
    fn of(self, number: usize) -> Self {
        match self {
            Self::Begins(_) => Self::Begins(number),
            Self::Commits(_) => Self::Commits(number),
            Self::Ends(_) => Self::Ends(number),
        }
    }
}

/// Statements that run beside each other.
#[derive(Clone, Debug)]
pub struct Round {
    /// The graph before them.
    pub graph: Graph,
    /// Its indexes and constraints.
    pub schema: Schema,
    /// The statements.
    pub statements: Vec<Statement>,
    /// When they do what.
    pub schedule: Vec<Event>,
}

impl Round {
    /// Draws a round for a number of databases of one graph: one is embedded, several are the workers of a fleet.
    pub fn draw(seed: u64, forced: Forced, sites: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let rng = &mut rng;
        let (nodes, edges) = [(3, 3), (6, 8)][rng.random_range(0..2)];
        let mut graph = Graph::random(rng, nodes, edges);
        // A fleet takes longer to make an index than to run a round.
        let mut of_fleet = ChaCha8Rng::seed_from_u64(seed / ROUNDS_OF_SCHEMA);
        let schema = match if sites > 1 { &mut of_fleet } else { &mut *rng }.random_range(0..4) {
            _ if forced.constraints => Schema::Constraints,
            0 => Schema::Nothing,
            1 => Schema::Constraints,
            _ => Schema::Indexes,
        };
        if schema == Schema::Constraints {
            for (label, key) in UNIQUE {
                while let Some(index) = duplicate(&graph, label, key) {
                    graph.nodes[index].iter_mut().for_each(|node| drop(node.properties.remove(key)));
                }
            }
        }
        let count = rng.random_range(2..=3);
        let statements: Vec<Statement> = (0..count)
            .map(|_| {
                let meets = schema == Schema::Constraints && rng.random_bool(0.5);
                let drawn =
                    if meets { meeting(rng, &graph) } else { draw(rng, Languages::Both, &graph, 0.8) };
                let way = match rng.random_range(0..4) {
                    0..=1 if sites > 1 => Way::Transaction,
                    _ if sites > 1 => Way::Whole,
                    part if part == 0 || forced.at_hand => {
                        let rows = if rng.random_bool(0.1) { 1 } else { 1_024 };
                        Way::AtHand { planned: rng.random_bool(0.9), rows }
                    }
                    _ => Way::Steps,
                };
                let (site, follows) = (rng.random_range(0..sites), rng.random_bool(0.5));
                Statement { drawn, way, site, follows }
            })
            .collect();
        let each = |number| [Event::Begins(number), Event::Commits(number), Event::Ends(number)];
        let mut schedule: Vec<Event> = (0..count).flat_map(each).collect();
        schedule.shuffle(rng);
        for number in 0..count {
            let places: Vec<usize> =
                (0..schedule.len()).filter(|at| schedule[*at].number() == number).collect();
            for (at, event) in places.into_iter().zip(each(number)) {
                schedule[at] = event;
            }
        }
        Self { graph, schema, statements, schedule }
    }

    /// Returns rounds that are a little smaller.
    pub fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        if self.statements.len() > 2 {
            for gone in 0..self.statements.len() {
                let mut smaller = self.clone();
                smaller.statements.remove(gone);
                smaller.schedule.retain(|event| event.number() != gone);
                for event in &mut smaller.schedule {
                    let number = event.number();
                    *event = event.of(number - usize::from(number > gone));
                }
                all.push(smaller);
            }
        }
        for (number, statement) in self.statements.iter().enumerate() {
            for candidate in statement.drawn.smaller() {
                let mut smaller = self.clone();
                smaller.statements[number].drawn = candidate;
                all.push(smaller);
            }
        }
        for graph in smaller_graphs(&self.graph) {
            if !self.schema.is_broken_by(&graph) {
                all.push(Self { graph, ..self.clone() });
            }
        }
        if self.schema != Schema::Nothing {
            all.push(Self { schema: Schema::Nothing, ..self.clone() });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_rounds_keep_their_rules() {
        for seed in 0..300 {
            let sites = 1 + seed as usize % 2;
            let round = Round::draw(seed, Forced { constraints: true, at_hand: true }, sites);
            assert!(round.schema == Schema::Constraints && !round.schema.is_broken_by(&round.graph));
            for (number, statement) in round.statements.iter().enumerate() {
                let events: Vec<Event> =
                    round.schedule.iter().copied().filter(|event| event.number() == number).collect();
                assert_eq!(events, [Event::Begins(number), Event::Commits(number), Event::Ends(number)]);
                assert_eq!(sites == 1, matches!(statement.way, Way::AtHand { .. }));
            }
        }
    }
}

//! Runs drawn statements beside each other, and compares what came of them with every serial order.
//!
//! A round has a small graph, two or three statements of either language, and a schedule that is drawn too: when each
//! statement reads, and when it asks for its commit. A statement reads one version of the graph and keeps its writes
//! until its commit, which is refused if another one changed what it read. The statements that were committed, with
//! their answers, and the graph that is left must be what the reference evaluators find for these statements one after
//! the other in some order. The order must agree with time: a statement that ended before another one began comes
//! first.

use crate::Stop;
use crate::campaign::{Drawn, Languages, ask, create, draw, in_text, read};
use crate::graph::{Graph, show_answer};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::mpsc;
use std::time::Duration;
use tidegraph_engine::{Database, Error, InlineLimits, Language, Parameters, Query};
use tidegraph_types::{CommitRequest, ErrorCode};

const LIMITS: InlineLimits =
    InlineLimits { time: Duration::from_secs(60), memory_bytes: 16 << 20, rows: 10_000 };

/// Indexes that half of the rounds have.
const INDEXES: [&str; 2] = ["CREATE INDEX FOR (n:A) ON (n.a)", "CREATE INDEX FOR (n:B) ON (n.s)"];

/// What one statement does at a point of the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// The statement of this number reads the newest version.
    Reads(usize),
    /// It asks for its commit.
    Commits(usize),
}

/// Statements that run beside each other.
#[derive(Clone, Debug)]
struct Round {
    graph: Graph,
    has_indexes: bool,
    statements: Vec<Drawn>,
    schedule: Vec<Event>,
}

/// What became of a statement.
#[derive(Clone, Debug)]
struct Ended {
    /// Its answer, one text a row; `None` if it or its commit was refused.
    rows: Option<Vec<String>>,
    /// When it began and ended, as places in the schedule.
    time: (usize, usize),
}

/// A round that is no serial order of its statements.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// The seed of the round.
    pub seed: u64,
    round: Round,
    found: String,
    orders: Vec<String>,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, round, found, orders } = self;
        let graph = round.graph.to_cypher().unwrap_or_default();
        writeln!(f, "seed {seed}\n  graph:    {graph}\n  indexes:  {}", round.has_indexes)?;
        for (number, statement) in round.statements.iter().enumerate() {
            writeln!(f, "  {number}:        {statement}")?;
        }
        writeln!(f, "  schedule: {:?}\n  found:    {found}", round.schedule)?;
        orders.iter().try_for_each(|order| writeln!(f, "  instead:  {order}"))
    }
}

/// What rounds have shown.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Rounds that were compared.
    pub rounds: u64,
    /// Rounds in which at least two statements that overlap were committed and one of them wrote.
    pub overlapping: u64,
    /// Commits that were refused.
    pub conflicts: u64,
    /// Rounds that were not compared: an evaluator took too many steps, or the engine did not run a statement up to its
    /// commit only.
    pub skipped: u64,
    /// Rounds that are no serial order.
    pub anomalies: Vec<Anomaly>,
}

impl Outcome {
    /// Adds another outcome.
    pub fn add(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.overlapping += other.overlapping;
        self.conflicts += other.conflicts;
        self.skipped += other.skipped;
        self.anomalies.extend(other.anomalies);
    }
}

/// Draws a round from a seed, runs it and compares it.
///
/// # Errors
///
/// The engine does not create the graph or an index, or it refuses a statement for another reason than a conflict.
pub fn run_seed(seed: u64) -> Result<Outcome, Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let round = Round::draw(&mut rng);
    let mut outcome = Outcome::default();
    match compare(&round)? {
        Compared::Serial { conflicts, overlap } => {
            outcome.rounds = 1;
            outcome.conflicts = conflicts;
            outcome.overlapping = overlap.into();
        }
        Compared::Skipped => outcome.skipped = 1,
        Compared::Anomaly { found, orders } => {
            outcome.rounds = 1;
            outcome.anomalies.push(shrink(Anomaly { seed, round, found, orders }));
        }
    }
    Ok(outcome)
}

impl Round {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        let (nodes, edges) = [(3, 3), (6, 8)][rng.random_range(0..2)];
        let graph = Graph::random(rng, nodes, edges);
        let has_indexes = rng.random_bool(0.5);
        let count = rng.random_range(2..=3);
        let statements: Vec<Drawn> = (0..count).map(|_| draw(rng, Languages::Both, &graph, 0.8)).collect();
        let mut schedule: Vec<Event> =
            (0..count).flat_map(|number| [Event::Reads(number), Event::Commits(number)]).collect();
        schedule.shuffle(rng);
        // Each statement reads before it commits.
        for number in 0..count {
            let mut places = (0..schedule.len())
                .filter(|at| matches!(schedule[*at], Event::Reads(n) | Event::Commits(n) if n == number));
            if let (Some(first), Some(second)) = (places.next(), places.next()) {
                (schedule[first], schedule[second]) = (Event::Reads(number), Event::Commits(number));
            }
        }
        Self { graph, has_indexes, statements, schedule }
    }
}

enum Compared {
    Serial { conflicts: u64, overlap: bool },
    Anomaly { found: String, orders: Vec<String> },
    Skipped,
}

fn compare(round: &Round) -> Result<Compared, Error> {
    let known = round.graph.ids();
    let database = create(&round.graph)?;
    if round.has_indexes {
        INDEXES.iter().try_for_each(|text| ask(&database, Language::OpenCypher, text).map(drop))?;
    }
    let Some((ended, conflicts)) = run(&database, round, &known)? else { return Ok(Compared::Skipped) };
    let left = read(&database)?.lines(&known);
    let committed: Vec<usize> = (0..ended.len()).filter(|number| ended[*number].rows.is_some()).collect();
    let mut orders = Vec::new();
    for order in permutations(&committed) {
        let is_in_time = order.iter().enumerate().all(|(at, number)| {
            let (began, _) = ended[*number].time;
            order[at + 1..].iter().all(|later| ended[*later].time.1 > began)
        });
        if !is_in_time {
            continue;
        }
        match serial(round, &order, &known) {
            Err(Stop::TooMuch) => return Ok(Compared::Skipped),
            // A statement that has no answer in this order was answered in another one.
            Err(Stop::Wrong(reason)) => orders.push(format!("{order:?} has no answer: {reason}")),
            Ok((answers, graph)) => {
                let same = |number: &usize| Some(&answers[*number]) == ended[*number].rows.as_ref();
                if graph == left && order.iter().all(same) {
                    let overlaps = |one: usize, other: usize| {
                        let (one, other) = (ended[one].time, ended[other].time);
                        one.0 < other.1 && other.0 < one.1
                    };
                    let writes = |number: usize| round.statements[number].writes();
                    let overlap = committed.iter().any(|one| {
                        committed.iter().any(|other| one != other && writes(*one) && overlaps(*one, *other))
                    });
                    return Ok(Compared::Serial { conflicts, overlap });
                }
                orders.push(describe(&order, |number| Some(&answers[number]), &graph));
            }
        }
    }
    let found = describe(&(0..ended.len()).collect::<Vec<_>>(), |number| ended[number].rows.as_ref(), &left);
    Ok(Compared::Anomaly { found, orders })
}

fn describe<'a>(
    order: &[usize],
    rows: impl Fn(usize) -> Option<&'a Vec<String>>,
    graph: &[String],
) -> String {
    let answers = order.iter().map(|number| match rows(*number) {
        Some(rows) => format!("{number} answers {}", in_text(rows)),
        None => format!("{number} is refused"),
    });
    format!("{}; left are {}", answers.collect::<Vec<_>>().join(", "), graph.join("; "))
}

/// A statement that has read and not ended.
struct Open {
    rows: Vec<String>,
    commit: Option<CommitRequest>,
}

/// Runs the statements by the schedule. Returns what became of them, and how many commits were refused; `None` if the
/// engine does not run one of them up to its commit only.
fn run(
    database: &Database,
    round: &Round,
    known: &BTreeSet<String>,
) -> Result<Option<(Vec<Ended>, u64)>, Error> {
    let mut conflicts = 0;
    let parameters = Parameters::default();
    let mut open: Vec<Option<Open>> = round.statements.iter().map(|_| None).collect();
    let mut ended: Vec<Ended> = round.statements.iter().map(|_| Ended { rows: None, time: (0, 0) }).collect();
    for (at, event) in round.schedule.iter().enumerate() {
        match *event {
            Event::Reads(number) => {
                let statement = &round.statements[number];
                let text = statement.to_string();
                // A statement whose plan is not cached does not run in this way.
                database.explain(statement.language(), &text)?;
                let query = Query::new(statement.language(), &text, &parameters);
                let Some(answer) = database.query_inline(&query, LIMITS) else { return Ok(None) };
                let answer = match answer {
                    Ok(answer) => answer,
                    Err(error) if error.code() == ErrorCode::Internal => return Err(error),
                    // The generator draws statements that are right for the first graph. Another statement may have
                    // taken away what they need. What is refused changes nothing, so it stands in no order.
                    Err(_) => continue,
                };
                let show = |value| show_answer(value, statement.has_bags(), known);
                let rows =
                    answer.answer.rows.iter().map(|row| row.iter().map(show).collect::<Vec<_>>().join(" | "));
                open[number] = Some(Open { rows: in_order(statement, rows), commit: answer.commit });
                ended[number].time.0 = at;
            }
            Event::Commits(number) => {
                let Some(Open { rows, commit }) = open[number].take() else { continue };
                // What only reads has ended with its answer.
                let Some(commit) = commit else {
                    ended[number].rows = Some(rows);
                    ended[number].time.1 = ended[number].time.0;
                    continue;
                };
                ended[number].time.1 = at;
                let (done, outcome) = mpsc::channel();
                database.commit_later(commit, Box::new(move |committed| drop(done.send(committed))));
                match outcome.recv() {
                    Ok(Ok(_)) => ended[number].rows = Some(rows),
                    Ok(Err(error)) if error.code() == ErrorCode::ConcurrentModification => conflicts += 1,
                    Ok(Err(error)) => return Err(error),
                    Err(_) => return Ok(None),
                }
            }
        }
    }
    Ok(Some((ended, conflicts)))
}

fn in_order(statement: &Drawn, rows: impl Iterator<Item = String>) -> Vec<String> {
    let mut rows: Vec<String> = rows.collect();
    if !statement.is_ordered() {
        rows.sort();
    }
    rows
}

/// Evaluates statements one after the other. Returns their answers by their numbers, and the graph that is left.
fn serial(
    round: &Round,
    order: &[usize],
    known: &BTreeSet<String>,
) -> Result<(Vec<Vec<String>>, Vec<String>), Stop> {
    let mut graph = round.graph.clone();
    let mut answers = vec![Vec::new(); round.statements.len()];
    for number in order {
        let statement = &round.statements[*number];
        let rows = statement.evaluate(&mut graph)?;
        let show = |value| graph.show(value, statement.has_bags(), known);
        let rows = rows.iter().map(|row| row.iter().map(show).collect::<Vec<_>>().join(" | "));
        answers[*number] = in_order(statement, rows);
    }
    Ok((answers, graph.lines(known)))
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    let Some((first, rest)) = items.split_first() else { return vec![vec![]] };
    let places = |order: Vec<usize>| {
        (0..=order.len()).map(move |at| {
            let mut longer = order.clone();
            longer.insert(at, *first);
            longer
        })
    };
    permutations(rest).into_iter().flat_map(places).collect()
}

/// Makes the statements and the graph of an anomaly smaller while it remains one.
fn shrink(mut anomaly: Anomaly) -> Anomaly {
    const MAX_TRIES: usize = 500;
    let mut tries = 0;
    'again: while tries < MAX_TRIES {
        for candidate in smaller(&anomaly.round) {
            tries += 1;
            if let Ok(Compared::Anomaly { found, orders }) = compare(&candidate) {
                anomaly = Anomaly { round: candidate, found, orders, ..anomaly };
                continue 'again;
            }
        }
        break;
    }
    anomaly
}

fn smaller(round: &Round) -> Vec<Round> {
    let mut all = Vec::new();
    if round.statements.len() > 2 {
        for gone in 0..round.statements.len() {
            let mut smaller = round.clone();
            smaller.statements.remove(gone);
            let after = |number: usize| number - usize::from(number > gone);
            smaller
                .schedule
                .retain(|event| !matches!(event, Event::Reads(n) | Event::Commits(n) if *n == gone));
            smaller.schedule.iter_mut().for_each(|event| {
                *event = match *event {
                    Event::Reads(number) => Event::Reads(after(number)),
                    Event::Commits(number) => Event::Commits(after(number)),
                };
            });
            all.push(smaller);
        }
    }
    for (number, statement) in round.statements.iter().enumerate() {
        for candidate in statement.smaller() {
            let mut smaller = round.clone();
            smaller.statements[number] = candidate;
            all.push(smaller);
        }
    }
    for graph in crate::campaign::smaller_graphs(&round.graph) {
        all.push(Round { graph, ..round.clone() });
    }
    if round.has_indexes {
        all.push(Round { has_indexes: false, ..round.clone() });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_once() {
        let orders: BTreeSet<Vec<usize>> = permutations(&[4, 5, 6]).into_iter().collect();
        assert_eq!(orders.len(), 6);
        assert!(orders.iter().all(|order| order.iter().sum::<usize>() == 15));
    }
}

//! Runs drawn statements beside each other, and compares what came of them with every serial order.
//!
//! A round has a small graph, two or three statements of either language, and a schedule that is drawn too: when each
//! statement begins, when it asks for its commit, and when it ends. The statements that were answered, those that a
//! constraint refused, and the graph that is left must be what the reference evaluators find for these statements one
//! after the other in some order. The order must agree with time: a statement that ended before another one began comes
//! first.
//!
//! Roles: `round` draws rounds and makes them smaller; `run` runs one on an embedded database or a fleet; `serial`
//! evaluates the orders; `fleet` has the fleet.
//!
//! A statement runs in one of several ways (`round::Way`): up to its commit only, so that it ends with a conflict or
//! without; as the service does, which tries it at hand first and runs it as a whole if that did not succeed; and in a
//! fleet as a transaction of one request, or as a whole on a thread of its own.

mod fleet;
mod round;
mod run;
mod serial;

pub use fleet::Fleet;

use crate::Stop;
use crate::campaign::{create, in_text};
use crate::graph::Graph;
use round::Round;
use run::{Became, Ran};
use std::fmt;
use tidegraph_engine::Error;
use tidegraph_types::ErrorCode;

/// What every round has. What is not set is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Forced {
    /// Unique constraints.
    pub constraints: bool,
    /// Statements that are all tried at hand. A fleet tries none.
    pub at_hand: bool,
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
        writeln!(f, "seed {seed}\n  graph:    {graph}\n  schema:   {:?}", round.schema)?;
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
    /// Rounds in which two statements of a serial order overlap, one of which wrote.
    pub overlapping: u64,
    /// Statements that ended with a conflict.
    pub conflicts: u64,
    /// Statements that a unique constraint refused.
    pub refused: u64,
    /// Statements that were answered at hand, and statements that were tried at hand and ran as a whole then.
    pub at_hand: (u64, u64),
    /// Writes of a fleet that could read at a version that replicas had applied, because there were newer ones.
    pub in_the_past: u64,
    /// Rounds that were not compared: an evaluator took too many steps, a statement took too long, or the engine did not
    /// run it up to its commit only.
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
        self.refused += other.refused;
        self.at_hand.0 += other.at_hand.0;
        self.at_hand.1 += other.at_hand.1;
        self.in_the_past += other.in_the_past;
        self.skipped += other.skipped;
        self.anomalies.extend(other.anomalies);
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, overlapping, conflicts, refused, at_hand: (tried, again), .. } = self;
        write!(
            f,
            "{rounds} rounds compared ({overlapping} overlap, {conflicts} statements with a conflict, {refused} refused by \
             a constraint, {tried} answered at hand, {again} tried at hand and run again, {} could read in the past), \
             {} skipped, {} anomalies",
            self.in_the_past,
            self.skipped,
            self.anomalies.len()
        )
    }
}

/// Where rounds run.
trait Place {
    /// Makes the graph and the schema of a round, and nothing else. Returns the databases for its statements.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    fn prepare(&mut self, round: &Round) -> Result<run::Sites, Error>;

    /// How many smaller rounds to try after an anomaly.
    fn tries(&self) -> usize;
}

/// An embedded database, a new one for each round.
struct Embedded;

impl Place for Embedded {
    fn prepare(&mut self, round: &Round) -> Result<run::Sites, Error> {
        let database = create(&round.graph)?;
        round.schema.create(&database)?;
        Ok(run::Sites::embedded(database))
    }

    fn tries(&self) -> usize {
        500
    }
}

/// Draws a round from a seed, runs it in an embedded database and compares it.
///
/// # Errors
///
/// The engine does not create the graph, or it refuses a statement that is not wrong for another reason than a conflict.
pub fn run_seed(seed: u64, forced: Forced) -> Result<Outcome, Error> {
    run_round(seed, Round::draw(seed, forced, 1), &mut Embedded)
}

/// Draws a round from a seed, runs it in a fleet and compares it. Statements run on threads, so a seed does not replay
/// how they overlapped.
///
/// # Errors
///
/// Those of [`run_seed`], and those of a fleet.
pub fn run_seed_in(fleet: &mut Fleet, seed: u64, forced: Forced) -> Result<Outcome, Error> {
    run_round(seed, Round::draw(seed, forced, fleet.workers()), fleet)
}

fn run_round(seed: u64, round: Round, place: &mut dyn Place) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    match compare(&round, place)? {
        Compared::Serial { overlap, ran } => {
            outcome.rounds = 1;
            outcome.overlapping = overlap.into();
            outcome.conflicts = ran.conflicts;
            outcome.at_hand = ran.at_hand;
            outcome.in_the_past = ran.in_the_past;
            outcome.refused = ran.ended.iter().filter(|ended| ended.became == Became::Refused).count() as u64;
        }
        Compared::Skipped => outcome.skipped = 1,
        Compared::Anomaly { found, orders } => {
            outcome.rounds = 1;
            outcome.anomalies.push(shrink(Anomaly { seed, round, found, orders }, place));
        }
    }
    Ok(outcome)
}

enum Compared {
    Serial { overlap: bool, ran: Ran },
    Anomaly { found: String, orders: Vec<String> },
    Skipped,
}

fn compare(round: &Round, place: &mut dyn Place) -> Result<Compared, Error> {
    if serial::is_too_much(round) {
        return Ok(Compared::Skipped);
    }
    let known = round.graph.ids();
    let sites = place.prepare(round)?;
    let ran = match run::run(&sites, round, &known) {
        Ok(Some(ran)) => ran,
        Ok(None) => return Ok(Compared::Skipped),
        Err(error) if error.code() == ErrorCode::TimeLimitExceeded => return Ok(Compared::Skipped),
        Err(error) => return Err(error),
    };
    let left = read_at(&sites, &ran)?.lines(&known);
    let ended = &ran.ended;
    let all: Vec<usize> = (0..ended.len()).filter(|number| ended[*number].became != Became::Lost).collect();
    let mut orders = Vec::new();
    for order in serial::orders(&all) {
        if !serial::is_in_time(&order, ended) {
            continue;
        }
        match serial::evaluate(round, &order, &known) {
            Err(Stop::TooMuch) => return Ok(Compared::Skipped),
            // A statement that has no answer in this order was answered in another one.
            Err(Stop::Wrong(reason)) => orders.push(format!("{order:?} has no answer: {reason}")),
            Ok((became, graph)) => {
                if graph == left && order.iter().all(|number| became[*number] == ended[*number].became) {
                    let overlap = serial::overlap(&all, ended);
                    return Ok(Compared::Serial { overlap, ran });
                }
                orders.push(format!("{order:?}: {}", describe(&order, |number| &became[number], &graph)));
            }
        }
    }
    let found = describe(&(0..ended.len()).collect::<Vec<_>>(), |number| &ended[number].became, &left);
    Ok(Compared::Anomaly { found, orders })
}

/// Reads the graph that a round has left, all of whose statements have ended.
fn read_at(sites: &run::Sites, ran: &Ran) -> Result<Graph, Error> {
    let nodes = sites.ask(0, ran.newest, "MATCH (n) RETURN n")?;
    let edges = sites.ask(0, ran.newest, "MATCH ()-[r]->() RETURN r")?;
    Ok(Graph::from_answers(&nodes, &edges))
}

fn describe<'a>(order: &[usize], became: impl Fn(usize) -> &'a Became, graph: &[String]) -> String {
    let answers = order.iter().map(|number| match became(*number) {
        Became::Answered(rows) => format!("{number} answers {}", in_text(rows)),
        Became::Refused => format!("{number} breaks a constraint"),
        Became::Lost => format!("{number} has a conflict"),
    });
    format!("{}; left are {}", answers.collect::<Vec<_>>().join(", "), graph.join("; "))
}

/// Makes the statements and the graph of an anomaly smaller while it remains one.
fn shrink(mut anomaly: Anomaly, place: &mut dyn Place) -> Anomaly {
    let mut tries = 0;
    'again: while tries < place.tries() {
        for candidate in anomaly.round.smaller() {
            tries += 1;
            if let Ok(Compared::Anomaly { found, orders }) = compare(&candidate, place) {
                anomaly = Anomaly { round: candidate, found, orders, ..anomaly };
                continue 'again;
            }
        }
        break;
    }
    anomaly
}

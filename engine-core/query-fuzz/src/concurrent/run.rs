//! Runs the statements of a round by its schedule.

use super::round::{Event, Round, Statement, Way};
use crate::campaign::Drawn;
use crate::graph::show_answer;
use std::collections::BTreeSet;
use std::sync::{Arc, mpsc};
use std::thread::ScopedJoinHandle;
use std::time::Duration;
use tidegraph_engine::{Backend, Database, Error, InlineLimits, Language, Parameters, Query, Transaction};
use tidegraph_types::{CommitRequest, ErrorCode, Kind, Value, Version};

/// Longest time of a statement. What takes longer is not compared.
const LONGEST: Duration = Duration::from_secs(20);

/// The service's limits of a try, but for time: what is tried must not depend on how busy the machine is.
const LIMITS: InlineLimits = InlineLimits { time: LONGEST, memory_bytes: 2 << 20, rows: 10_000 };

/// The databases of a round, which have one graph.
pub struct Sites {
    databases: Vec<Arc<Database>>,
    backends: Vec<Arc<dyn Backend>>,
    /// The version at which the round begins.
    begun: Version,
}

impl Sites {
    /// An embedded database.
    pub fn embedded(database: Arc<Database>) -> Self {
        Self { databases: vec![database], backends: vec![], begun: Version(0) }
    }

    /// The workers of a fleet, all of which have reached the version.
    pub fn fleet(databases: Vec<Arc<Database>>, backends: Vec<Arc<dyn Backend>>, begun: Version) -> Self {
        Self { databases, backends, begun }
    }

    /// Asks a database at a version or a later one.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub fn ask(&self, site: usize, at_least: Version, text: &str) -> Result<Vec<Vec<Value>>, Error> {
        let none = Parameters::default();
        let query = Query { at_least: Some(at_least), ..Query::new(Language::OpenCypher, text, &none) };
        Ok(self.databases[site].query(&query)?.rows)
    }
}

/// What became of a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Became {
    /// It was answered, and committed if it wrote. One text a row.
    Answered(Vec<String>),
    /// A unique constraint refused it.
    Refused,
    /// A conflict ended it, or it is wrong for the graph that it met. It changed nothing, so it stands in no order.
    Lost,
}

/// A statement that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What became of it.
    pub became: Became,
    /// When it began and ended, as places in the schedule.
    pub time: (usize, usize),
    /// The database that ran it.
    pub site: usize,
    /// Whether it was committed, so that all that it read was checked.
    pub wrote: bool,
    /// Whether it read at the newest version that any caller had seen, or later.
    pub follows: bool,
}

impl Ended {
    /// Whether it must come before another one in every serial order. A read may be behind writes that a caller of
    /// another worker has seen, unless it asks for their version.
    pub fn precedes(&self, other: &Self) -> bool {
        let is_up_to_date = other.wrote || other.follows || other.site == self.site;
        self.time.1 < other.time.0 && is_up_to_date
    }
}

/// A round that has run.
pub struct Ran {
    /// What became of its statements.
    pub ended: Vec<Ended>,
    /// How many of them ended with a conflict.
    pub conflicts: u64,
    /// How many were answered at hand, and how many were run as a whole after a try at hand.
    pub at_hand: (u64, u64),
    /// How many writes of a fleet could read at a version that replicas had applied.
    pub in_the_past: u64,
    /// The newest version.
    pub newest: Version,
}

/// What a statement has answered: its rows, the version, and whether it wrote.
struct Answered {
    rows: Vec<String>,
    version: Version,
    wrote: bool,
}

/// A statement that has not ended.
enum Open<'scope> {
    /// It has not begun, or has ended.
    No,
    /// It has read.
    Read(Vec<String>, CommitRequest),
    /// It was asked to commit.
    Asked(Vec<String>, mpsc::Receiver<Result<Version, Error>>),
    /// It has read in a transaction.
    Within(Vec<String>, Version, Box<Transaction>),
    /// A thread waits for its answer.
    Running(ScopedJoinHandle<'scope, Result<Answered, Error>>),
}

/// Runs the statements by the schedule; `None` if the engine does not run one of them up to its commit only.
///
/// # Errors
///
/// The engine fails, or it refuses a statement that is neither wrong nor in conflict.
pub fn run(sites: &Sites, round: &Round, known: &BTreeSet<String>) -> Result<Option<Ran>, Error> {
    let blank = |statement: &Statement| Ended {
        became: Became::Lost,
        time: (0, 0),
        site: statement.site,
        wrote: false,
        follows: statement.follows,
    };
    let ran = Ran {
        ended: round.statements.iter().map(blank).collect(),
        conflicts: 0,
        at_hand: (0, 0),
        in_the_past: 0,
        newest: sites.begun,
    };
    std::thread::scope(|scope| {
        let mut open: Vec<Open<'_>> = round.statements.iter().map(|_| Open::No).collect();
        let mut run = Running { sites, round, known, ran };
        for (at, event) in round.schedule.iter().enumerate() {
            match *event {
                Event::Begins(number) => {
                    run.ran.ended[number].time = (at, at);
                    match run.begin(scope, number)? {
                        Some(begun) => open[number] = begun,
                        None => return Ok(None),
                    }
                }
                Event::Commits(number) => {
                    let now = std::mem::replace(&mut open[number], Open::No);
                    open[number] = run.commit(scope, number, now);
                }
                Event::Ends(number) => {
                    let now = std::mem::replace(&mut open[number], Open::No);
                    run.end(number, now, at)?;
                }
            }
        }
        Ok(Some(run.ran))
    })
}

struct Running<'r> {
    sites: &'r Sites,
    round: &'r Round,
    known: &'r BTreeSet<String>,
    ran: Ran,
}

impl<'r> Running<'r> {
    /// Begins a statement; `None` if it does not run up to its commit only.
    fn begin<'scope>(
        &mut self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        number: usize,
    ) -> Result<Option<Open<'scope>>, Error>
    where
        'r: 'scope,
    {
        let statement = &self.round.statements[number];
        let at_least = (statement.follows && !self.sites.backends.is_empty()).then_some(self.ran.newest);
        match statement.way {
            Way::Steps => self.try_at_hand(number, true, LIMITS.rows),
            Way::AtHand { planned, rows } => self.try_at_hand(number, planned, rows),
            Way::Transaction => self.read_within(number, at_least).map(Some),
            Way::Whole => {
                let past = self.sites.backends[statement.site].applied_snapshot();
                self.ran.in_the_past += u64::from(statement.drawn.writes() && past.is_some());
                let (database, known) = (&*self.sites.databases[statement.site], self.known);
                let whole = move || whole(database, &statement.drawn, known, at_least);
                Ok(Some(Open::Running(scope.spawn(whole))))
            }
        }
    }

    fn try_at_hand<'scope>(
        &mut self,
        number: usize,
        planned: bool,
        rows: u64,
    ) -> Result<Option<Open<'scope>>, Error> {
        let statement = &self.round.statements[number];
        let database = &*self.sites.databases[statement.site];
        let text = statement.drawn.to_string();
        if planned {
            // A statement whose plan is not cached is not tried.
            database.explain(statement.drawn.language(), &text)?;
        }
        let parameters = Parameters::default();
        let query = Query::new(statement.drawn.language(), &text, &parameters);
        let tried = database.query_inline(&query, InlineLimits { rows, ..LIMITS });
        let is_at_hand = matches!(statement.way, Way::AtHand { .. });
        match tried {
            None if is_at_hand => self.run_again(number)?,
            None => return Ok(None),
            Some(Err(error)) => self.refuse(number, error)?,
            Some(Ok(pending)) => {
                let rows = shown(&statement.drawn, &pending.answer.rows, self.known);
                match pending.commit {
                    Some(commit) => return Ok(Some(Open::Read(rows, commit))),
                    // What only reads has ended with its answer.
                    None => {
                        self.ran.at_hand.0 += u64::from(is_at_hand);
                        self.ran.ended[number].became = Became::Answered(rows);
                    }
                }
            }
        }
        Ok(Some(Open::No))
    }

    fn read_within<'scope>(
        &mut self,
        number: usize,
        at_least: Option<Version>,
    ) -> Result<Open<'scope>, Error> {
        let statement = &self.round.statements[number];
        let mut transaction = Transaction::new(at_least, None, false);
        let (text, parameters) = (statement.drawn.to_string(), Parameters::default());
        let timeout = Some(LONGEST);
        let query = Query { timeout, ..Query::new(statement.drawn.language(), &text, &parameters) };
        match self.sites.databases[statement.site].query_within(&mut transaction, &query) {
            Err(error) => self.refuse(number, error)?,
            Ok(answer) => {
                let rows = shown(&statement.drawn, &answer.rows, self.known);
                if answer.wrote {
                    return Ok(Open::Within(rows, answer.version, Box::new(transaction)));
                }
                self.answered(number, Answered { rows, version: answer.version, wrote: false });
            }
        }
        Ok(Open::No)
    }

    /// Asks for the commit of a statement that has read.
    fn commit<'scope>(
        &self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        number: usize,
        open: Open<'scope>,
    ) -> Open<'scope>
    where
        'r: 'scope,
    {
        let database = &*self.sites.databases[self.round.statements[number].site];
        match open {
            Open::Read(rows, commit) => {
                let (done, outcome) = mpsc::channel();
                database.commit_later(commit, Box::new(move |committed| drop(done.send(committed))));
                Open::Asked(rows, outcome)
            }
            Open::Within(rows, read, transaction) => {
                let commit = move || {
                    let version = database.commit_transaction(*transaction)?;
                    // What sets a label that is there changes nothing, so nothing checks what it read.
                    Ok(Answered { rows, version, wrote: version > read })
                };
                Open::Running(scope.spawn(commit))
            }
            other => other,
        }
    }

    /// Waits for the end of a statement.
    fn end(&mut self, number: usize, open: Open<'_>, at: usize) -> Result<(), Error> {
        let ended = match open {
            Open::Asked(rows, outcome) => {
                let lost = |_| Error::new(ErrorCode::Internal, "a commit was never answered");
                let committed = outcome.recv().map_err(lost)?;
                committed.map(|version| Answered { rows, version, wrote: true })
            }
            Open::Running(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // It had ended before.
            Open::No | Open::Read(..) | Open::Within(..) => return Ok(()),
        };
        self.ran.ended[number].time.1 = at;
        let is_at_hand = matches!(self.round.statements[number].way, Way::AtHand { .. });
        match ended {
            Ok(answered) => {
                self.ran.at_hand.0 += u64::from(is_at_hand);
                self.answered(number, answered);
                Ok(())
            }
            Err(error) if is_at_hand && error.code() == ErrorCode::ConcurrentModification => {
                self.run_again(number)
            }
            Err(error) => self.refuse(number, error),
        }
    }

    /// Runs a statement as a whole that was tried at hand.
    fn run_again(&mut self, number: usize) -> Result<(), Error> {
        self.ran.at_hand.1 += 1;
        let statement = &self.round.statements[number];
        match whole(&self.sites.databases[statement.site], &statement.drawn, self.known, None) {
            Ok(answered) => {
                self.answered(number, answered);
                Ok(())
            }
            Err(error) => self.refuse(number, error),
        }
    }

    fn answered(&mut self, number: usize, answered: Answered) {
        let Answered { rows, version, wrote } = answered;
        self.ran.newest = self.ran.newest.max(version);
        self.ran.ended[number].became = Became::Answered(rows);
        self.ran.ended[number].wrote = wrote;
    }

    fn refuse(&mut self, number: usize, error: Error) -> Result<(), Error> {
        match error.code() {
            ErrorCode::UniqueViolation => self.ran.ended[number].became = Became::Refused,
            ErrorCode::ConcurrentModification => self.ran.conflicts += 1,
            // The generator draws statements that are right for the first graph. Another statement may have taken away
            // what they need.
            code if matches!(code.kind(), Kind::Invalid | Kind::NotFound) => {}
            _ => return Err(error),
        }
        Ok(())
    }
}

/// Runs a statement as a whole.
fn whole(
    database: &Database,
    drawn: &Drawn,
    known: &BTreeSet<String>,
    at_least: Option<Version>,
) -> Result<Answered, Error> {
    let (text, parameters) = (drawn.to_string(), Parameters::default());
    let timeout = Some(LONGEST);
    let query = Query { at_least, timeout, ..Query::new(drawn.language(), &text, &parameters) };
    let answer = database.query(&query)?;
    let rows = shown(drawn, &answer.rows, known);
    Ok(Answered { rows, version: answer.version, wrote: answer.wrote })
}

fn shown(drawn: &Drawn, rows: &[Vec<Value>], known: &BTreeSet<String>) -> Vec<String> {
    let show = |value| show_answer(value, drawn.has_bags(), known);
    in_order(drawn, rows.iter().map(|row| row.iter().map(show).collect::<Vec<_>>().join(" | ")))
}

/// Returns rows so that they can be compared: sorted, unless the statement gives them an order.
pub fn in_order(drawn: &Drawn, rows: impl Iterator<Item = String>) -> Vec<String> {
    let mut rows: Vec<String> = rows.collect();
    if !drawn.is_ordered() {
        rows.sort();
    }
    rows
}

//! Whether what clients saw can have happened in one order: a checker in the manner of Elle (Kingsbury, Alvaro, VLDB 2020) for
//! lists to which numbers are appended.
//!
//! Each number is appended once in a history, so a list that somebody read says in which order its writers were, and who
//! reads a list depends on the one whose number is last in it. From that come edges between transactions: *ww* (appended
//! before), *wr* (read what was appended), *rw* (read before it was appended). Two more are told from outside: *session*, since a
//! client never goes back in time, and *real time*, since a transaction that began after the answer of another one comes
//! after it (between those that write; a read may be of an older version). A cycle means that there is no order.
//!
//! Before that it looks for what needs no cycle: a number that was read and belongs to a transaction that failed, stands there
//! twice, or is not there although it was acknowledged; transactions of which a part is there; lists that do not continue each other.

mod cycle;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How a transaction ended, as its client knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It is committed.
    Acknowledged,
    /// It is not, and never will be.
    Refused,
    /// Nobody told the client.
    Unknown,
}

/// A transaction as a client saw it. It reads before it appends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// Who asked for it.
    pub client: usize,
    /// When it began and ended, on one clock.
    pub began: u64,
    /// When the client knew how it ended, or gave up.
    pub ended_at: u64,
    /// How it ended.
    pub ended: Ended,
    /// Lists that were read, by key.
    pub reads: Vec<(u64, Vec<i64>)>,
    /// What was appended, one number to a key.
    pub appends: Vec<(u64, i64)>,
}

/// Why a history is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Anomaly {
    /// A number stands in a list twice.
    Twice(u64, i64),
    /// A number of nobody, or of a transaction that was refused.
    Aborted(u64, i64),
    /// An acknowledged number is not there.
    Lost(u64, i64),
    /// Of the numbers of a transaction some are there and some are not.
    Half(usize),
    /// A list was read that is no beginning of what it was at the end.
    Order(u64, Vec<i64>),
    /// Transactions that would each have to come before the next one, with the reasons.
    Cycle(Vec<(usize, Reason)>),
}

/// Why a transaction comes before another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// It appended before.
    Ww(u64),
    /// The other one read what it appended.
    Wr(u64),
    /// It read before the other one appended.
    Rw(u64),
    /// The client asked for it before.
    Session,
    /// It had ended before the other one began.
    RealTime,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(key, number) => write!(f, "{number} stands in list {key} twice"),
            Self::Aborted(key, number) => {
                write!(f, "{number} in list {key} is of a transaction that was refused, or of nobody")
            }
            Self::Lost(key, number) => write!(f, "{number} was acknowledged and is not in list {key}"),
            Self::Half(transaction) => write!(f, "transaction {transaction} is there in part"),
            Self::Order(key, read) => write!(f, "list {key} was read as {read:?}, and ended otherwise"),
            Self::Cycle(cycle) => {
                write!(f, "no order:")?;
                for (transaction, reason) in cycle {
                    write!(f, " {transaction} -{reason:?}->")?;
                }
                write!(f, " {}", cycle.first().map_or(0, |(first, _)| *first))
            }
        }
    }
}

/// Looks for what is wrong; `lists` is what all lists are at the end.
#[must_use]
pub fn check(history: &[Transaction], lists: &BTreeMap<u64, Vec<i64>>) -> Option<Anomaly> {
    let mut writers: BTreeMap<(u64, i64), usize> = BTreeMap::new();
    for (index, transaction) in history.iter().enumerate() {
        writers.extend(transaction.appends.iter().map(|append| (*append, index)));
    }
    check_lists(history, lists, &writers)
        .or_else(|| check_reads(history, lists))
        .or_else(|| find_cycle(history, lists, &writers))
}

/// What the lists say by themselves.
fn check_lists(
    history: &[Transaction],
    lists: &BTreeMap<u64, Vec<i64>>,
    writers: &BTreeMap<(u64, i64), usize>,
) -> Option<Anomaly> {
    let mut there = BTreeSet::new();
    for (key, list) in lists {
        for number in list {
            if !there.insert((*key, *number)) {
                return Some(Anomaly::Twice(*key, *number));
            }
            let writer = writers.get(&(*key, *number)).map(|writer| history[*writer].ended);
            if writer.is_none_or(|ended| ended == Ended::Refused) {
                return Some(Anomaly::Aborted(*key, *number));
            }
        }
    }
    for (index, transaction) in history.iter().enumerate() {
        let missing = transaction.appends.iter().find(|append| !there.contains(append));
        let Some((key, number)) = missing else { continue };
        if transaction.ended == Ended::Acknowledged {
            return Some(Anomaly::Lost(*key, *number));
        }
        if transaction.appends.iter().any(|append| there.contains(append)) {
            return Some(Anomaly::Half(index));
        }
    }
    None
}

/// What was read must be how the lists began.
fn check_reads(history: &[Transaction], lists: &BTreeMap<u64, Vec<i64>>) -> Option<Anomaly> {
    let reads = history.iter().flat_map(|transaction| &transaction.reads);
    let wrong = reads.into_iter().find(|(key, read)| {
        let list = lists.get(key).map_or(&[][..], Vec::as_slice);
        !list.starts_with(read)
    });
    wrong.map(|(key, read)| Anomaly::Order(*key, read.clone()))
}

fn find_cycle(
    history: &[Transaction],
    lists: &BTreeMap<u64, Vec<i64>>,
    writers: &BTreeMap<(u64, i64), usize>,
) -> Option<Anomaly> {
    let mut edges: BTreeMap<(usize, usize), Reason> = BTreeMap::new();
    let mut add = |from: usize, to: usize, reason: Reason| {
        if from != to {
            edges.entry((from, to)).or_insert(reason);
        }
    };
    for (key, list) in lists {
        let order: Vec<usize> = list.iter().map(|number| writers[&(*key, *number)]).collect();
        order.windows(2).for_each(|pair| add(pair[0], pair[1], Reason::Ww(*key)));
    }
    for (reader, transaction) in history.iter().enumerate() {
        if transaction.ended == Ended::Refused {
            continue;
        }
        for (key, read) in &transaction.reads {
            let list = lists.get(key).map_or(&[][..], Vec::as_slice);
            if let Some(last) = read.last() {
                add(writers[&(*key, *last)], reader, Reason::Wr(*key));
            }
            // Its own number comes after what it read; who comes after that is told by the order of writers.
            if let Some(next) = list.get(read.len()) {
                add(reader, writers[&(*key, *next)], Reason::Rw(*key));
            }
        }
    }
    let is_done = |transaction: &Transaction| transaction.ended == Ended::Acknowledged;
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, transaction) in history.iter().enumerate().filter(|(_, one)| is_done(one)) {
        if let Some(before) = last.insert(transaction.client, index) {
            add(before, index, Reason::Session);
        }
    }
    let writes = |one: &&(usize, &Transaction)| !one.1.appends.is_empty();
    let done: Vec<(usize, &Transaction)> =
        history.iter().enumerate().filter(|(_, one)| is_done(one)).collect();
    for (before, first) in done.iter().filter(writes) {
        for (after, _) in done.iter().filter(writes).filter(|(_, second)| first.ended_at < second.began) {
            add(*before, *after, Reason::RealTime);
        }
    }
    cycle::find(history.len(), &edges).map(Anomaly::Cycle)
}

//! Checks whether some order of all transactions explains what clients saw. It works like
//! Elle (Kingsbury, Alvaro, VLDB 2020), for lists to which numbers are appended.
//!
//! Each number is appended once in a history. So a list that a client read shows the order of its writers,
//! and a reader depends on the writer of the last number. This gives edges between transactions: *ww*
//! (appended before), *wr* (read what was appended), *rw* (read before it was appended). Two more kinds of
//! edges come from outside: *session*, because a client never goes back in time, and *real time*, because
//! a transaction that began after the answer to another one comes after it (only between transactions that
//! write; a read may use an older version). A cycle means that there is no such order (TXN-2).
//!
//! Some anomalies need no cycle and are checked first: a number that was read and belongs to a
//! refused transaction, is in a list twice, or is missing although it was acknowledged (FLT-2);
//! transactions that are visible only in part (FLT-2); lists that are no prefixes of each other.

mod cycle;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How a transaction ended, as far as its client knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It was committed.
    Acknowledged,
    /// It was not committed, and never will be.
    Refused,
    /// The client does not know.
    Unknown,
}

/// A transaction as its client saw it. It reads before it appends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// Number of the client.
    pub client: usize,
    /// When it began, in microseconds of true time.
    pub began: u64,
    /// When the client learned how it ended, or gave up.
    pub ended_at: u64,
    /// How it ended.
    pub ended: Ended,
    /// The lists that it read, by key.
    pub reads: Vec<(u64, Vec<i64>)>,
    /// The numbers that it appended, by key.
    pub appends: Vec<(u64, i64)>,
}

/// Why no order explains a history. Pairs are a key and a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Anomaly {
    /// A number is in a list twice.
    Twice(u64, i64),
    /// A list has a number that a refused transaction, or none, appended.
    Aborted(u64, i64),
    /// A list lacks the number of an acknowledged transaction.
    Lost(u64, i64),
    /// Lists have some numbers of a transaction, and lack others.
    Half(usize),
    /// A client read a list that is not a prefix of the final one.
    Order(u64, Vec<i64>),
    /// Each of these transactions comes before the next one and the last before the first, for the given reasons.
    Cycle(Vec<(usize, Reason)>),
}

/// Why a transaction comes before another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// It appended to the key before the other one did.
    Ww(u64),
    /// The other one read its number.
    Wr(u64),
    /// It read the key before the other one appended.
    Rw(u64),
    /// The same client ran it before the other one.
    Session,
    /// It ended before the other one began.
    RealTime,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(key, number) => write!(f, "{number} is in list {key} twice"),
            Self::Aborted(key, number) => {
                write!(f, "{number} in list {key} was appended by a refused transaction, or by none")
            }
            Self::Lost(key, number) => write!(f, "{number} was acknowledged and is not in list {key}"),
            Self::Half(transaction) => write!(f, "only a part of transaction {transaction} is in the lists"),
            Self::Order(key, read) => {
                write!(f, "list {key} was read as {read:?}, which is no prefix of the final list")
            }
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

/// Searches a history for an anomaly. `lists` are the final lists, by key.
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

/// Searches the final lists for anomalies.
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

/// Checks that every list that was read is a prefix of the final one.
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
            // The reader comes before the writer of the next number. The order of writers
            // gives everything after that.
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

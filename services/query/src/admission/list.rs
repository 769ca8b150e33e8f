//! The list of waiting and running queries, and of open transactions.

use super::Error;
use crate::audit::{Protocol, Source};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegraph_engine::{Language, Principal, Running, RunningStatement, RunningTransaction};

/// A waiting or running query, as it was when the list was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningQuery {
    /// Id of the query.
    pub id: String,
    /// Language of the text.
    pub language: Language,
    /// Text of the query.
    pub text: String,
    /// The principal of the request.
    pub principal: Principal,
    /// When the query arrived.
    pub started: jiff::Timestamp,
    /// Whether the query was asked to end early.
    pub cancelled: bool,
}

/// An entry of the list: a query, and the flag that cancels it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) language: Language,
    pub(super) text: String,
    pub(super) principal: Principal,
    pub(super) source: Source,
    /// The transaction of several queries that it is a part of.
    pub(super) within: Option<Arc<OpenTransaction>>,
    /// Set to end the query early.
    pub(super) cancel: Arc<AtomicBool>,
    pub(super) started: jiff::Timestamp,
}

impl Entry {
    fn describe(&self, id: &str) -> RunningQuery {
        RunningQuery {
            id: id.to_owned(),
            language: self.language,
            text: self.text.clone(),
            principal: self.principal.clone(),
            started: self.started,
            cancelled: self.cancel.load(Ordering::Relaxed),
        }
    }
}

/// A transaction of several queries.
#[derive(Debug)]
pub(super) struct OpenTransaction {
    id: String,
    principal: Principal,
    source: Source,
    started: jiff::Timestamp,
    /// Set to end it: its queries, and its commit, fail from then on.
    terminated: AtomicBool,
}

impl OpenTransaction {
    pub(super) fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Relaxed)
    }
}

/// All waiting and running queries, and all open transactions.
#[derive(Debug, Default)]
pub(super) struct RunningQueries {
    lists: Mutex<Lists>,
    /// Number of transactions of several queries since the start.
    begun: AtomicU64,
}

#[derive(Debug, Default)]
struct Lists {
    /// By the ids of the queries.
    queries: BTreeMap<String, Entry>,
    /// By their ids.
    transactions: BTreeMap<String, Arc<OpenTransaction>>,
}

impl RunningQueries {
    /// Adds a query until the returned guard is dropped. One of a transaction that was terminated is cancelled.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateId`] if the list has a query with this id.
    pub(super) fn insert(self: &Arc<Self>, id: &str, entry: Entry) -> Result<Listed, Error> {
        let mut lists = self.lists();
        let is_over = entry.within.as_ref().is_some_and(|within| within.is_terminated());
        match lists.queries.entry(id.to_owned()) {
            Place::Occupied(_) => return Err(Error::DuplicateId { id: id.to_owned() }),
            Place::Vacant(place) => place.insert(entry).cancel.fetch_or(is_over, Ordering::Relaxed),
        };
        Ok(Listed { list: self.clone(), id: id.to_owned() })
    }

    /// Adds a transaction until the returned guard is dropped.
    pub(super) fn open(
        self: &Arc<Self>,
        principal: &Principal,
        source: Source,
        started: jiff::Timestamp,
    ) -> ListedTransaction {
        let id = format!("transaction-{}", self.begun.fetch_add(1, Ordering::Relaxed));
        let (principal, terminated) = (principal.clone(), AtomicBool::new(false));
        let open = Arc::new(OpenTransaction { id: id.clone(), principal, source, started, terminated });
        self.lists().transactions.insert(id, open.clone());
        ListedTransaction { list: self.clone(), open }
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.lists().queries.contains_key(id)
    }

    pub(super) fn all(&self) -> Vec<RunningQuery> {
        self.lists().queries.iter().map(|(id, entry)| entry.describe(id)).collect()
    }

    pub(super) fn find(&self, id: &str) -> Option<RunningQuery> {
        self.lists().queries.get(id).map(|entry| entry.describe(id))
    }

    /// Sets the flag that ends a query early. Returns whether the list has a query with this id.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let lists = self.lists();
        let entry = lists.queries.get(id);
        if let Some(entry) = entry {
            entry.cancel(id);
        }
        entry.is_some()
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn cancel(&self, id: &str) {
        self.cancel.store(true, Ordering::Relaxed);
        tracing::debug!(id, principal = %self.principal, "a query is cancelled");
    }

    fn statement(&self, id: &str) -> RunningStatement {
        RunningStatement { id: id.to_owned(), text: self.text.clone(), started: self.started }
    }
}

impl Running for RunningQueries {
    fn visible_to(&self, asker: &Principal) -> Vec<RunningTransaction> {
        let lists = self.lists();
        let mut statements = BTreeMap::new();
        let mut all = vec![];
        for (id, entry) in &lists.queries {
            if !asker.may_see_requests_of(&entry.principal) {
                continue;
            }
            match &entry.within {
                Some(within) => drop(statements.insert(&within.id, entry.statement(id))),
                None => all.push(RunningTransaction {
                    id: id.clone(),
                    query: Some(entry.statement(id)),
                    principal: entry.principal.clone(),
                    address: entry.source.address,
                    protocol: name_of(entry.source.protocol),
                    started: entry.started,
                    terminated: entry.cancel.load(Ordering::Relaxed),
                }),
            }
        }
        for (id, open) in &lists.transactions {
            if asker.may_see_requests_of(&open.principal) {
                all.push(RunningTransaction {
                    id: id.clone(),
                    query: statements.remove(id),
                    principal: open.principal.clone(),
                    address: open.source.address,
                    protocol: name_of(open.source.protocol),
                    started: open.started,
                    terminated: open.is_terminated(),
                });
            }
        }
        all
    }

    fn terminate(&self, id: &str, asker: &Principal) -> Option<Principal> {
        let lists = self.lists();
        if let Some(open) = lists.transactions.get(id) {
            if !asker.may_see_requests_of(&open.principal) {
                return None;
            }
            open.terminated.store(true, Ordering::Relaxed);
            for (query, entry) in &lists.queries {
                if entry.within.as_ref().is_some_and(|within| within.id == id) {
                    entry.cancel(query);
                }
            }
            return Some(open.principal.clone());
        }
        let entry = lists
            .queries
            .get(id)
            .filter(|entry| entry.within.is_none() && asker.may_see_requests_of(&entry.principal))?;
        entry.cancel(id);
        Some(entry.principal.clone())
    }
}

fn name_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http => "http",
        Protocol::WebSocket => "websocket",
        Protocol::Bolt => "bolt",
    }
}

/// Removes a query from the list when it is dropped. It moves to the thread of the query, so that the query stays on
/// the list as long as it waits or runs.
#[derive(Debug)]
pub(super) struct Listed {
    list: Arc<RunningQueries>,
    id: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.list.lists().queries.remove(&self.id);
    }
}

/// Removes a transaction from the list when it is dropped.
#[derive(Debug)]
pub(super) struct ListedTransaction {
    list: Arc<RunningQueries>,
    open: Arc<OpenTransaction>,
}

impl ListedTransaction {
    pub(super) fn open(&self) -> &Arc<OpenTransaction> {
        &self.open
    }
}

impl Drop for ListedTransaction {
    fn drop(&mut self) {
        self.list.lists().transactions.remove(&self.open.id);
    }
}

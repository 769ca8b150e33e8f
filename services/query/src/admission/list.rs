//! The list of waiting and running queries.

use super::Error;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegraph_engine::{Language, Principal};

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

/// All waiting and running queries by id.
#[derive(Debug, Default)]
pub(super) struct RunningQueries(Mutex<BTreeMap<String, Entry>>);

impl RunningQueries {
    /// Adds a query until the returned guard is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateId`] if the list has a query with this id.
    pub(super) fn insert(self: &Arc<Self>, id: &str, entry: Entry) -> Result<Listed, Error> {
        match self.entries().entry(id.to_owned()) {
            Place::Occupied(_) => return Err(Error::DuplicateId { id: id.to_owned() }),
            Place::Vacant(place) => place.insert(entry),
        };
        Ok(Listed { list: self.clone(), id: id.to_owned() })
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.entries().contains_key(id)
    }

    pub(super) fn all(&self) -> Vec<RunningQuery> {
        self.entries().iter().map(|(id, entry)| entry.describe(id)).collect()
    }

    pub(super) fn find(&self, id: &str) -> Option<RunningQuery> {
        self.entries().get(id).map(|entry| entry.describe(id))
    }

    /// Sets the flag that ends a query early. Returns whether the list has a query with this id.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let entries = self.entries();
        let entry = entries.get(id);
        if let Some(entry) = entry {
            entry.cancel.store(true, Ordering::Relaxed);
            tracing::debug!(id, principal = %entry.principal, "a query is cancelled");
        }
        entry.is_some()
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.list.entries().remove(&self.id);
    }
}

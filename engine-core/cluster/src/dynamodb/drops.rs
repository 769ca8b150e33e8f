//! Dropping a graph. Its own item is marked first, and removed last: until then a caller that was stopped can go on.
//!
//! A marked graph is gone for all processes: each call about it fails with [`Error::NotFound`]. Processes that keep the map
//! learn of it with their next look, because the mark is a change of the map.

use super::client::failed;
use super::items::{self, Read, number};
use super::queries::Selection;
use super::{DynamoMap, Own, decode_any_graph};
use crate::map::Mark;
use crate::{Error, Graph};
use aws_sdk_dynamodb::types::AttributeValue;
use tidegraph_types::Epoch;

/// Returns the error of calls about a graph that is being dropped.
pub(super) fn is_dropping(name: &str) -> Error {
    Error::NotFound { what: format!("graph {name}: it is being dropped") }
}

impl DynamoMap {
    /// Marks a graph as being dropped, and returns it. A graph that is marked already stays so.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no graph of this name; otherwise see [`MapStore`](crate::MapStore).
    pub fn begin_drop(&self, name: &str) -> Result<Graph, Error> {
        let operation = "mark the graph as being dropped";
        let end = self.clock.now() + self.patience;
        for attempt in 0.. {
            let Some(mut read) = self.get(operation, name, items::GRAPH_KEY)? else {
                return Err(Error::NotFound { what: format!("graph {name}") });
            };
            let is_marked = read.take_dropping();
            let Own { graph, incarnation, mark } = decode_any_graph(name, read)?;
            self.graphs.lock().remove(name);
            if is_marked {
                return Ok(graph);
            }
            let next = Mark { changed_at: Epoch(mark.changed_at.0 + 1), ..mark };
            let mut item = items::graph_item(&graph, incarnation.as_ref(), next)?;
            item.insert(items::DROPPING.into(), AttributeValue::Bool(true));
            let (names, values) = ([("#e", items::CHANGED_AT)], [(":e", number(mark.changed_at.0))]);
            if self.put(operation, item, "#e = :e", &names, &values)?.is_none() {
                return Ok(graph);
            }
            if self.clock.now() > end {
                break;
            }
            self.back_off(attempt);
        }
        Err(Error::unavailable(operation, "others change it all the time"))
    }

    /// Whether a graph is marked as being dropped.
    ///
    /// # Errors
    /// See [`MapStore`](crate::MapStore).
    pub fn is_dropping(&self, name: &str) -> Result<bool, Error> {
        let read = self.get("read the graph", name, items::GRAPH_KEY)?;
        Ok(read.is_some_and(|mut read| read.take_dropping()))
    }

    /// Returns the signs of life of a graph's processes: their heartbeats and their leases, as text. Those of a graph that
    /// nobody serves stay as they are.
    ///
    /// # Errors
    /// See [`MapStore`](crate::MapStore).
    pub fn signs_of_life(&self, name: &str) -> Result<Vec<String>, Error> {
        let mut signs = Vec::new();
        for prefix in [items::BEAT, items::LEASE] {
            let reads = self.query("look for processes of the graph", name, prefix)?;
            signs.extend(reads.into_iter().map(|read| read.counted()));
        }
        Ok(signs)
    }

    /// Removes all items of a graph that is marked as being dropped, its own one last.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the graph is not marked; otherwise see [`MapStore`](crate::MapStore).
    pub fn finish_drop(&self, name: &str) -> Result<(), Error> {
        let operation = "remove an item of the graph";
        let Some(mut own) = self.get(operation, name, items::GRAPH_KEY)? else { return Ok(()) };
        if !own.take_dropping() {
            let found = "it is not marked as being dropped".into();
            return Err(Error::Conflict { item: format!("graph {name}"), found });
        }
        // First, so that replicas which lag have forgotten it when the name is free.
        self.remove(operation, name, items::SNAPSHOT)?;
        let is_own = |read: &Read| read.key == items::GRAPH_KEY;
        for read in self.items_of(operation, name)?.iter().filter(|read| !is_own(read)) {
            self.remove(operation, name, &read.key)?;
        }
        self.graphs.lock().remove(name);
        self.remove(operation, name, items::GRAPH_KEY)
    }

    /// Reads all items of a graph.
    pub(super) fn items_of(&self, operation: &'static str, graph: &str) -> Result<Vec<Read>, Error> {
        self.pages(&Selection::all(operation, graph), None)
    }

    pub(super) fn remove(&self, operation: &'static str, graph: &str, key: &str) -> Result<(), Error> {
        let request =
            self.client().delete_item().table_name(&self.table).set_key(Some(items::key(graph, key)));
        self.requests.wait(operation, request.send())?.map_err(|error| failed(operation, error))?;
        Ok(())
    }
}

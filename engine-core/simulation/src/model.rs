//! The graph as the log defines it, in its simplest form. Checks compare replicas and reads with it.

use crate::items::is_item;
use std::collections::BTreeMap;
use tidegraph_log::{Body, Record};
use tidegraph_types::{Edge, Gui, Mutation, Sid, Value};

/// A vertex as a reader sees it: whether it exists, its list, and the SIDs of its edges.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    pub present: bool,
    pub list: Vec<i64>,
    /// SIDs of outgoing edges with their targets, in order.
    pub outgoing: Vec<(u64, u64)>,
    pub incoming: Vec<(u64, u64)>,
}

/// Vertices, each with one list, and edges.
#[derive(Debug, Default)]
pub(crate) struct Model {
    lists: BTreeMap<Gui, Vec<i64>>,
    edges: BTreeMap<Sid, Edge>,
}

/// Returns the number of a list element.
pub(crate) fn number(value: &Value) -> i64 {
    match value {
        Value::Long(number) => *number,
        // No transaction writes this number, so the checker finds it.
        _ => i64::MIN,
    }
}

impl Model {
    /// Applies a record.
    pub fn apply(&mut self, record: &Record) {
        let Body::Commit { mutations, .. } = &record.body else { return };
        for mutation in mutations {
            match mutation {
                // `items.rs` has these.
                Mutation::CreateVertex { id, .. } if is_item(id) => {}
                Mutation::CreateVertex { gui, properties, .. } => {
                    let list = self.lists.entry(*gui).or_default();
                    list.extend(properties.iter().map(|write| number(&write.value)));
                }
                Mutation::SetVertexProperty { gui, write } => {
                    if let Some(list) = self.lists.get_mut(gui) {
                        list.push(number(&write.value));
                    }
                }
                Mutation::CreateEdge { edge, .. }
                    if self.lists.contains_key(&edge.source) && self.lists.contains_key(&edge.target) =>
                {
                    self.edges.insert(edge.sid, *edge);
                }
                Mutation::DeleteEdge { edge, .. } => {
                    self.edges.remove(&edge.sid);
                }
                Mutation::DeleteVertex { gui, .. } => {
                    self.lists.remove(gui);
                    self.edges.retain(|_, edge| edge.source != *gui && edge.target != *gui);
                }
                Mutation::Reset => *self = Self::default(),
                // Clients write no other mutations.
                _ => {}
            }
        }
    }

    /// Returns a vertex as a reader must see it.
    pub fn see(&self, gui: Gui) -> Seen {
        let Some(list) = self.lists.get(&gui) else { return Seen::default() };
        let ends = |end: fn(&Edge) -> Gui, other: fn(&Edge) -> Gui| {
            let of = self.edges.values().filter(|edge| end(edge) == gui);
            of.map(|edge| (edge.sid.0, other(edge).0)).collect()
        };
        Seen {
            present: true,
            list: list.clone(),
            outgoing: ends(|edge| edge.source, |edge| edge.target),
            incoming: ends(|edge| edge.target, |edge| edge.source),
        }
    }

    /// Returns all vertices.
    pub fn vertices(&self) -> impl Iterator<Item = Gui> {
        self.lists.keys().copied()
    }

    /// Returns all edges.
    pub fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.edges.values()
    }
}

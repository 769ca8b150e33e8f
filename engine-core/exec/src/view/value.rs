//! Writes to a single value of a vertex property: removing it, and its meta-properties.
//!
//! A value is identified by itself and by its number among equivalent values, since a list may hold it several times.
//! The number counts the values as they are now, after the request's earlier writes.

use super::View;
use super::pending::{PendingCell, PendingVertex};
use crate::{Error, Result};
use tidegraph_types::{Cardinality, Gui, Mutation, PropertyWrite, Token, Value};

/// A value of a vertex property, as the owner of meta-properties.
#[derive(Clone, PartialEq, Debug)]
pub struct MetaOwner {
    /// The vertex.
    pub gui: Gui,
    /// Property key.
    pub key: Token,
    /// The value.
    pub value: Value,
    /// Number among the equivalent values, in order of writing.
    pub nth: u32,
}

impl View<'_> {
    /// Removes values of a vertex property. Each is given with its number among the equivalent values; if there are
    /// fewer of them, the last is removed. Of equivalent values the caller lists the last first.
    ///
    /// # Errors
    ///
    /// `Error::Gone` if the vertex does not exist, `Error::Storage` if storage does not answer.
    pub fn remove_vertex_values(&self, gui: Gui, key: Token, values: &[(&Value, u32)]) -> Result<()> {
        self.with_vertex("removing a property", gui, &[key], |vertex| {
            let place = |vertex: &PendingVertex, value: &Value, nth: u32| {
                let last = vertex.count_of(key, value).saturating_sub(1);
                vertex.place_of(key, value, nth.min(last as u32))
            };
            let cells = vertex.cells_of(key).map_or(&[][..], Vec::as_slice);
            let numbered = values.iter().any(|(_, nth)| *nth > 0);
            if !numbered || cells.iter().all(|cell| cell.meta.is_empty()) {
                // Equivalent values without meta-properties are interchangeable: the log names only the value.
                let mut all = vec![];
                for (value, _) in values {
                    if let Some(at) = place(vertex, value, 0) {
                        vertex.cells_mut(key).remove(at);
                        let value = Some((*value).clone());
                        all.push(Mutation::RemoveVertexProperty { gui, key, value });
                    }
                }
                return all;
            }
            let mut gone: Vec<usize> = vec![];
            for (value, nth) in values {
                gone.extend(place(vertex, value, *nth).filter(|at| !gone.contains(at)));
            }
            if gone.is_empty() {
                return vec![];
            }
            let mut at = 0;
            vertex.cells_mut(key).retain(|_| {
                at += 1;
                !gone.contains(&(at - 1))
            });
            // Removes the key and writes the remaining values again.
            let mut all = vec![Mutation::RemoveVertexProperty { gui, key, value: None }];
            all.extend(vertex.cells_mut(key).iter().map(|PendingCell { cell, .. }| {
                let write = PropertyWrite { key, cardinality: cell.cardinality, value: cell.value.clone() };
                Mutation::SetVertexProperty { gui, write }
            }));
            all.extend(vertex.meta_writes(gui, Some(key)));
            all
        })?;
        self.pending.borrow_mut().properties_written += values.len() as u64;
        Ok(())
    }

    /// Returns the number, among the equivalent values, of the value that a write just added or found.
    pub fn written_value(&self, gui: Gui, write: &PropertyWrite) -> u32 {
        let pending = self.pending.borrow();
        let count = pending.vertices.get(&gui).map_or(0, |v| v.count_of(write.key, &write.value));
        if write.cardinality == Cardinality::List { count.saturating_sub(1) as u32 } else { 0 }
    }

    /// Writes a meta-property of a value of a vertex property; `None` removes it.
    ///
    /// # Errors
    ///
    /// `Error::Gone` if the vertex or the value does not exist, `Error::Storage` if storage does not answer.
    pub fn set_meta_property(&self, of: MetaOwner, meta_key: Token, value: Option<Value>) -> Result<()> {
        const PLACE: &str = "setting a property of a property";
        let MetaOwner { gui, key, value: of, nth } = of;
        let bytes = of.heap_bytes() + 2 * value.as_ref().map_or(0, Value::heap_bytes);
        let mut found = false;
        self.with_vertex(PLACE, gui, &[key], |vertex| {
            let Some(at) = vertex.place_of(key, &of, nth) else { return vec![] };
            found = true;
            let meta = &mut vertex.cells_mut(key)[at].meta;
            match (meta.iter().position(|(key, _)| *key == meta_key), value.clone()) {
                (None, None) => return vec![],
                (Some(there), None) => drop(meta.remove(there)),
                (Some(there), Some(new)) => meta[there].1 = new,
                (None, Some(new)) => meta.push((meta_key, new)),
            }
            vec![Mutation::SetMetaProperty { gui, key, of, nth, meta_key, value: value.clone() }]
        })?;
        if !found && value.is_some() {
            return Err(Error::Gone { place: PLACE, element: "the property".to_owned() });
        }
        let mut pending = self.pending.borrow_mut();
        pending.properties_written += 1;
        pending.bytes += bytes + size_of::<(Token, Value)>();
        Ok(())
    }
}

//! Vertex rows → `CreateVertex`.
//!
//! A row of a vertex that exists already, in the graph or in this load, is merged: its labels are added, its values
//! join the set. The dialects differ in single-cardinality values. Gremlin: another value is a violation unless
//! `updateSingleCardinalityProperties` is on. openCypher: values of the graph stay; among the rows of one load the last
//! one applied wins.
//!
//! IDS-1: an id gets its unsalted GUI only if no other id of the graph or of the load has it.

use super::target::Found;
use super::waiting::WaitingVertex;
use super::{Load, Stop};
use crate::dialect::OnConflict;
use crate::error::Error;
use crate::reject::Code;
use crate::rows::{Name, VertexRow};
use tidegraph_types::{Cardinality, Gui, Mutation, PropertyWrite, Str, Token, Value};

impl Load<'_> {
    pub(super) fn vertex_rows(&mut self, file: usize, rows: Vec<VertexRow>) -> Result<(), Stop> {
        let found = self.find_vertices(rows.iter().map(|r| &r.id))?;
        let mut merging = Vec::new();
        for row in rows {
            let records = (row.labels.len() + row.properties.len()).max(1) as u64;
            self.files.reports[file].counts.total_records += records;
            self.tally.progress.records += records;
            let known = match self.ids.get(&row.id) {
                Some(gui) => Some((gui, true)),
                None => match found.get(&row.id) {
                    Some(Found::Present(gui)) => {
                        self.ids.insert(&row.id, *gui);
                        Some((*gui, false))
                    }
                    _ => None,
                },
            };
            let Some((gui, in_load)) = known else {
                let claim = match self.claim(file, None, &row)? {
                    Ok(claim) => claim,
                    Err(rejected) => {
                        self.reject(file, rejected)?;
                        continue;
                    }
                };
                let taken = found.get(&row.id) == Some(&Found::Taken);
                let gui = self.new_vertex(&row.id, taken)?;
                self.tally.vertices += 1;
                self.unique.enter(gui, claim);
                self.create_vertex(file, gui, row, true)?;
                continue;
            };
            let repeated = self.rules(file).duplicates(records);
            self.files.reports[file].counts.total_duplicates += repeated;
            merging.push((row, gui, in_load));
        }
        if merging.is_empty() { Ok(()) } else { self.merge_vertices(file, merging) }
    }

    /// Asks the graph for those of `ids` that this load has not met.
    pub(super) fn find_vertices<'i>(
        &self,
        ids: impl Iterator<Item = &'i Str>,
    ) -> Result<rustc_hash::FxHashMap<Str, Found>, Error> {
        if self.context.graph_is_empty {
            return Ok(rustc_hash::FxHashMap::default());
        }
        let mut unknown: Vec<Str> = ids.filter(|id| self.ids.get(id).is_none()).cloned().collect();
        unknown.sort();
        unknown.dedup();
        if unknown.is_empty() {
            return Ok(rustc_hash::FxHashMap::default());
        }
        let found = self.context.target.vertices(&unknown)?;
        Ok(unknown.into_iter().zip(found).collect())
    }

    /// Returns the GUI of a new vertex: its unsalted one, or the first salted one that is free (IDS-1).
    fn new_vertex(&mut self, id: &Str, taken_in_graph: bool) -> Result<Gui, Error> {
        let plain = self.ids.hasher().gui(id);
        if !taken_in_graph && !self.ids.taken(plain) {
            self.ids.insert(id, plain);
            return Ok(plain);
        }
        for salt in 1.. {
            let gui = self.ids.hasher().salted(id, salt);
            if self.ids.taken(gui) {
                continue;
            }
            if !self.context.graph_is_empty && self.context.target.occupied(&[gui])?.first() != Some(&false) {
                continue;
            }
            self.ids.insert(id, gui);
            self.writer.push(&Mutation::AddException { id: id.clone(), gui })?;
            return Ok(gui);
        }
        Err(Error::Internal("no free GUI"))
    }

    pub(super) fn create_vertex(
        &mut self,
        file: usize,
        gui: Gui,
        row: VertexRow,
        new: bool,
    ) -> Result<(), Error> {
        let token = |name| self.names.token(file, name);
        let mut labels: Vec<Token> = row.labels.iter().map(|name| token(*name)).collect();
        let writes = row.properties.into_iter().map(|p| PropertyWrite {
            key: token(p.name),
            cardinality: p.cardinality,
            value: p.value,
        });
        let properties = writes.collect();
        if new && labels.is_empty() {
            labels.extend(self.default_label(file)?);
        }
        self.writer.push(&Mutation::CreateVertex { gui, id: row.id, labels, properties })
    }

    fn merge_vertices(&mut self, file: usize, rows: Vec<(VertexRow, Gui, bool)>) -> Result<(), Stop> {
        let single = |r: &VertexRow| r.properties.iter().any(|p| p.cardinality == Cardinality::Single);
        let update = self.context.config.update_single_cardinality_properties;
        let on_conflict = self.rules(file).on_conflict(update);
        let (mut asked, mut plain) = (Vec::new(), Vec::new());
        for (row, gui, in_load) in rows {
            if on_conflict == OnConflict::Replace || !single(&row) {
                plain.push((row, gui));
            } else if in_load && on_conflict == OnConflict::Refuse {
                self.waiting.push_vertex(WaitingVertex { file, gui, row });
            } else {
                asked.push((row, gui));
            }
        }
        for (row, gui) in plain {
            self.merge_vertex(file, gui, row)?;
        }
        let wanted: Vec<(Gui, Token)> =
            asked.iter().flat_map(|(r, g)| self.single_keys(file, r, *g)).collect();
        let mut values = self.graph_vertex_values(&wanted)?.into_iter();
        for (mut row, gui) in asked {
            let mut violation = None;
            let column_of = |load: &Self, name: Name| load.key_name(file, name);
            let mut kept = Vec::with_capacity(row.properties.len());
            for property in row.properties {
                if property.cardinality != Cardinality::Single {
                    kept.push(property);
                    continue;
                }
                match values.next().unwrap_or_default().first() {
                    None => kept.push(property),
                    Some(old) if on_conflict == OnConflict::Keep || *old == property.value => {}
                    Some(old) => {
                        violation.get_or_insert((
                            column_of(self, property.name),
                            show(old),
                            show(&property.value),
                        ));
                    }
                }
            }
            row.properties = kept;
            match violation {
                Some((key, old, new)) => {
                    let rejected = self.single_violation(file, row.line, "vertex", &row.id, &key, &old, &new);
                    self.reject(file, rejected)?;
                }
                None => {
                    self.merge_vertex(file, gui, row)?;
                }
            }
        }
        if self.waiting.bytes > self.context.config.waiting_bytes {
            self.apply_waiting_vertices()
        } else {
            Ok(())
        }
    }

    /// Merges a row into an existing vertex unless it would break a constraint. Returns whether it was written.
    pub(super) fn merge_vertex(&mut self, file: usize, gui: Gui, row: VertexRow) -> Result<bool, Stop> {
        match self.claim(file, Some(gui), &row)? {
            Ok(claim) => {
                self.unique.enter(gui, claim);
                self.create_vertex(file, gui, row, false)?;
                Ok(true)
            }
            Err(rejected) => self.reject(file, rejected).map(|()| false),
        }
    }

    pub(super) fn single_keys(&self, file: usize, row: &VertexRow, gui: Gui) -> Vec<(Gui, Token)> {
        let single = row.properties.iter().filter(|p| p.cardinality == Cardinality::Single);
        single.map(|p| (gui, self.names.token(file, p.name))).collect()
    }

    pub(super) fn graph_vertex_values(&self, wanted: &[(Gui, Token)]) -> Result<Vec<Vec<Value>>, Error> {
        if self.context.graph_is_empty || wanted.is_empty() {
            return Ok(vec![Vec::new(); wanted.len()]);
        }
        self.context.target.vertex_values(wanted)
    }

    /// Returns the text of a key, for messages.
    pub(super) fn key_name(&self, file: usize, name: Name) -> String {
        self.names.text(self.names.token(file, name))
    }

    pub(super) fn single_violation(
        &self,
        file: usize,
        line: u64,
        what: &str,
        id: &str,
        key: &str,
        old: &str,
        new: &str,
    ) -> crate::Rejected {
        let reason = format!("{what} {id:?} has the value {old} for the single-cardinality property {key:?}");
        self.refuse(file, line, Code::SingleCardinality, reason).at(key, new.as_bytes())
    }
}

/// Formats a value for a message.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Bool(v) => v.to_string(),
        Value::Float(v) => v.to_string(),
        Value::Double(v) => v.to_string(),
        Value::DateTime(_) | Value::Temporal(_) => value.for_message(),
        other => other.as_i64().map_or_else(|| other.type_name().to_owned(), |v| v.to_string()),
    }
}

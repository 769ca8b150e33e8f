//! Vertex rows → `CreateVertex`.
//!
//! A row of a vertex that is there already, in the graph or in this load, merges: its labels are added, its values
//! join the set. Single-cardinality values are where the dialects differ. Gremlin: another value is a violation, unless
//! `updateSingleCardinalityProperties` asks to replace. openCypher: what the graph has stays as it is; among the
//! rows of one load the last one applied wins.

use super::settle::WaitingVertex;
use super::target::Found;
use super::{Load, Stop};
use crate::error::Error;
use crate::reject::Code;
use crate::rows::{DEFAULT_LABEL, Name, VertexRow};
use tidegraph_types::{Cardinality, Gui, Mutation, PropertyWrite, Str, Token, Value};

impl Load<'_> {
    pub(super) fn vertex_rows(&mut self, file: usize, rows: Vec<VertexRow>) -> Result<(), Stop> {
        let found = self.find_vertices(rows.iter().map(|r| &r.id))?;
        let mut merging = Vec::new();
        for row in rows {
            let records = (row.labels.len() + row.properties.len()).max(1) as u64;
            self.files[file].counts.total_records += records;
            self.progress.records += records;
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
                self.vertices += 1;
                self.unique.enter(gui, claim);
                self.create_vertex(file, gui, row, true)?;
                continue;
            };
            let repeated = if self.opencypher(file) { 1 } else { records };
            self.files[file].counts.total_duplicates += repeated;
            merging.push((row, gui, in_load));
        }
        if merging.is_empty() { Ok(()) } else { self.merge_vertices(file, merging) }
    }

    /// Asks the graph for the ids that this load has not met.
    pub(super) fn find_vertices<'i>(
        &self,
        ids: impl Iterator<Item = &'i Str>,
    ) -> Result<rustc_hash::FxHashMap<Str, Found>, Error> {
        if self.graph_is_empty {
            return Ok(rustc_hash::FxHashMap::default());
        }
        let mut unknown: Vec<Str> = ids.filter(|id| self.ids.get(id).is_none()).cloned().collect();
        unknown.sort();
        unknown.dedup();
        if unknown.is_empty() {
            return Ok(rustc_hash::FxHashMap::default());
        }
        let found = self.target.vertices(&unknown)?;
        Ok(unknown.into_iter().zip(found).collect())
    }

    /// GUI of a vertex that is nowhere yet: its plain one, or the first salted one that is free.
    fn new_vertex(&mut self, id: &Str, taken_in_graph: bool) -> Result<Gui, Error> {
        let plain = self.ids.hasher.gui(id);
        if !taken_in_graph && !self.ids.taken(plain) {
            self.ids.insert(id, plain);
            return Ok(plain);
        }
        for salt in 1.. {
            let gui = self.ids.hasher.salted(id, salt);
            if self.ids.taken(gui) {
                continue;
            }
            if !self.graph_is_empty && self.target.occupied(&[gui])?.first() != Some(&false) {
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
        let token = |name| self.tokens.token(file, name);
        let mut labels: Vec<Token> = row.labels.iter().map(|name| token(*name)).collect();
        let writes = row.properties.into_iter().map(|p| PropertyWrite {
            key: token(p.name),
            cardinality: p.cardinality,
            value: p.value,
        });
        let properties = writes.collect();
        if new && labels.is_empty() && !self.opencypher(file) {
            labels = self.intern(&[Str::new_static(DEFAULT_LABEL)])?;
        }
        self.writer.push(&Mutation::CreateVertex { gui, id: row.id, labels, properties })
    }

    fn merge_vertices(&mut self, file: usize, rows: Vec<(VertexRow, Gui, bool)>) -> Result<(), Stop> {
        let single = |r: &VertexRow| r.properties.iter().any(|p| p.cardinality == Cardinality::Single);
        let opencypher = self.opencypher(file);
        let check = opencypher || !self.config.update_single_cardinality_properties;
        let (mut asked, mut plain) = (Vec::new(), Vec::new());
        for (row, gui, in_load) in rows {
            if !check || !single(&row) {
                plain.push((row, gui));
            } else if in_load && !opencypher {
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
                    Some(old) if opencypher || *old == property.value => {}
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
        if self.waiting.bytes > self.config.waiting_bytes { self.settle_vertices() } else { Ok(()) }
    }

    /// Writes a row of a vertex that is there, unless it would break a constraint; whether it did.
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
        single.map(|p| (gui, self.tokens.token(file, p.name))).collect()
    }

    pub(super) fn graph_vertex_values(&self, wanted: &[(Gui, Token)]) -> Result<Vec<Vec<Value>>, Error> {
        if self.graph_is_empty || wanted.is_empty() {
            return Ok(vec![Vec::new(); wanted.len()]);
        }
        self.target.vertex_values(wanted)
    }

    /// Name of a key, for messages.
    pub(super) fn key_name(&self, file: usize, name: Name) -> String {
        let token = self.tokens.token(file, name);
        let found = self.interned.iter().find(|(_, t)| **t == token);
        found.map(|(n, _)| n.to_string()).unwrap_or_default()
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

/// A value in a message.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Bool(v) => v.to_string(),
        Value::Float(v) => v.to_string(),
        Value::Double(v) => v.to_string(),
        Value::DateTime(v) => v.to_string(),
        other => other.as_i64().map_or_else(|| other.type_name().to_owned(), |v| v.to_string()),
    }
}

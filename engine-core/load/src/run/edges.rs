//! Edge rows → `CreateEdge`.
//!
//! Both ends must be in the graph or in this load; an edge that names another vertex is refused, as the loader API
//! documents (`FROM_OR_TO_VERTEX_ARE_MISSING`). Rows with an id that is there already: Gremlin applies them to the one
//! edge, if they agree on its ends and label, and refuses another value of a property unless
//! `updateSingleCardinalityProperties` asks to replace; openCypher keeps the first row of a load, and adds to an edge of
//! the graph only properties that it lacks.

use super::ids::EdgeId;
use super::settle::WaitingEdge;
use super::target::Found;
use super::vertices::show;
use super::{Load, Stop};
use crate::error::Error;
use crate::reject::{Code, Rejected};
use crate::rows::EdgeRow;
use rustc_hash::FxHashMap;
use tidegraph_types::{Edge, Gui, Mutation, Sid, Str, Token, Value};

/// An edge row whose names are resolved.
pub(super) struct Resolved {
    pub line: u64,
    pub id: Option<Str>,
    pub source: Gui,
    pub target: Gui,
    pub label: Token,
    pub properties: Vec<(Token, Value)>,
}

/// Which end of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    From,
    To,
}

impl Load<'_> {
    pub(super) fn edge_rows(&mut self, file: usize, rows: Vec<EdgeRow>) -> Result<(), Stop> {
        let ends = self.find_vertices(rows.iter().flat_map(|r| [&r.from, &r.to]))?;
        let mut resolved = Vec::with_capacity(rows.len());
        for row in rows {
            self.count_edge(file, row.properties.len());
            let (source, target) = match self.ends(file, &row, &ends) {
                Ok(ends) => ends,
                Err(rejected) => {
                    self.reject(file, *rejected)?;
                    continue;
                }
            };
            let token = |name| self.tokens.token(file, name);
            let label = token(row.label);
            let properties = row.properties.into_iter().map(|p| (token(p.name), p.value)).collect();
            resolved.push(Resolved { line: row.line, id: row.id, source, target, label, properties });
        }
        self.resolved_edges(file, resolved)
    }

    /// Counts the statements of an edge row.
    pub(super) fn count_edge(&mut self, file: usize, properties: usize) {
        let records = 1 + properties as u64;
        self.files[file].counts.total_records += records;
        self.progress.records += records;
    }

    /// Makes edges of rows whose ends are there, or changes the edges that have their ids.
    pub(super) fn resolved_edges(&mut self, file: usize, rows: Vec<Resolved>) -> Result<(), Stop> {
        let existing = self.find_edges(rows.iter().filter_map(|r| r.id.as_ref()))?;
        let opencypher = self.opencypher(file);
        let mut in_graph = Vec::new();
        for row in rows {
            let repeated = if opencypher { 1 } else { 1 + row.properties.len() as u64 };
            let known = match &row.id {
                None => EdgeId::New,
                Some(id) => self.ids.edge_known(id),
            };
            if known != EdgeId::New {
                self.files[file].counts.total_duplicates += repeated;
                if known == EdgeId::Unsure || !opencypher {
                    self.waiting.push_edge(WaitingEdge { file, row });
                }
                continue;
            }
            if let Some(id) = &row.id {
                self.ids.insert_edge(id);
            }
            match row.id.as_ref().and_then(|id| existing.get(id)).copied().flatten() {
                Some(edge) => {
                    self.files[file].counts.total_duplicates += repeated;
                    in_graph.push((row, edge));
                }
                None => {
                    self.create_edge(row)?;
                }
            }
        }
        self.merge_graph_edges(file, in_graph)?;
        if self.waiting.bytes > self.config.waiting_bytes { self.settle_edges() } else { Ok(()) }
    }

    fn merge_graph_edges(&mut self, file: usize, rows: Vec<(Resolved, Edge)>) -> Result<(), Stop> {
        let keys = |(row, edge): &(Resolved, Edge)| {
            let edge = *edge;
            row.properties.iter().map(move |(key, _)| (edge, *key)).collect::<Vec<_>>()
        };
        let wanted: Vec<(Edge, Token)> = rows.iter().flat_map(keys).collect();
        let mut values =
            if wanted.is_empty() { Vec::new() } else { self.target.edge_values(&wanted)? }.into_iter();
        for (row, edge) in rows {
            let old = row.properties.iter().filter_map(|(key, _)| Some((*key, values.next()??)));
            let old = old.collect();
            self.merge_edge(file, row, edge, &old)?;
        }
        Ok(())
    }

    pub(super) fn find_edges<'i>(
        &self,
        ids: impl Iterator<Item = &'i Str>,
    ) -> Result<FxHashMap<Str, Option<Edge>>, Error> {
        if self.graph_is_empty {
            return Ok(FxHashMap::default());
        }
        let mut ids: Vec<Str> = ids.cloned().collect();
        ids.sort();
        ids.dedup();
        if ids.is_empty() {
            return Ok(FxHashMap::default());
        }
        let found = self.target.edges(&ids)?;
        Ok(ids.into_iter().zip(found).collect())
    }

    fn ends(
        &self,
        file: usize,
        row: &EdgeRow,
        found: &FxHashMap<Str, Found>,
    ) -> Result<(Gui, Gui), Box<Rejected>> {
        let missing = |end, id: &Str| Box::new(self.missing(file, row.line, end, id));
        let source = self.end(&row.from, found).ok_or_else(|| missing(End::From, &row.from))?;
        let target = self.end(&row.to, found).ok_or_else(|| missing(End::To, &row.to))?;
        Ok((source, target))
    }

    /// The vertex of an id, if it is in this load or was found in the graph.
    pub(super) fn end(&self, id: &Str, found: &FxHashMap<Str, Found>) -> Option<Gui> {
        match (self.ids.get(id), found.get(id)) {
            (Some(gui), _) => Some(gui),
            (None, Some(Found::Present(gui))) => Some(*gui),
            (None, _) => None,
        }
    }

    /// Refuses a row for an end that is nowhere.
    pub(super) fn missing(&self, file: usize, line: u64, end: End, id: &Str) -> Rejected {
        let columns = self.columns[file].as_ref();
        let column = columns.map(|c| if end == End::To { c.to.clone() } else { c.from.clone() });
        let name = if end == End::To { "to" } else { "from" };
        let reason = format!("the {name} vertex {id:?} is neither in the graph nor in this load");
        self.refuse(file, line, Code::MissingVertex, reason).at(&column.unwrap_or_default(), id.as_bytes())
    }

    pub(super) fn create_edge(&mut self, row: Resolved) -> Result<Edge, Error> {
        let sid = Sid(self.sid()?);
        let edge = Edge { sid, source: row.source, target: row.target, label: row.label };
        self.edges += 1;
        self.writer.push(&Mutation::CreateEdge { edge, id: row.id, properties: row.properties })?;
        Ok(edge)
    }

    /// Applies a row to an edge that is there, with these values; gives what it wrote.
    pub(super) fn merge_edge(
        &mut self,
        file: usize,
        row: Resolved,
        edge: Edge,
        old: &FxHashMap<Token, Value>,
    ) -> Result<Vec<(Token, Value)>, Stop> {
        let id = row.id.clone().unwrap_or_default();
        if (edge.source, edge.target, edge.label) != (row.source, row.target, row.label) {
            let column = self.columns[file].as_ref().map(|c| c.id.clone()).unwrap_or_default();
            let reason =
                format!("the edge id {id:?} is that of another edge, with other ends or another label");
            let rejected = self.refuse(file, row.line, Code::EdgeIdReused, reason).at(&column, id.as_bytes());
            self.reject(file, rejected)?;
            return Ok(Vec::new());
        }
        let opencypher = self.opencypher(file);
        let update = self.config.update_single_cardinality_properties && !opencypher;
        let mut writes = Vec::new();
        for (key, value) in row.properties {
            match old.get(&key) {
                None => writes.push((key, value)),
                Some(found) if *found == value || opencypher => {}
                Some(_) if update => writes.push((key, value)),
                Some(found) => {
                    let name = self.interned.iter().find(|(_, t)| **t == key);
                    let name = name.map(|(n, _)| n.to_string()).unwrap_or_default();
                    let (found, new) = (show(found), show(&value));
                    let rejected = self.single_violation(file, row.line, "edge", &id, &name, &found, &new);
                    self.reject(file, rejected)?;
                    return Ok(Vec::new());
                }
            }
        }
        for (key, value) in &writes {
            self.writer.push(&Mutation::SetEdgeProperty { edge, key: *key, value: value.clone() })?;
        }
        Ok(writes)
    }
}

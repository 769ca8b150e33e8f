//! Edge rows → `CreateEdge`.
//!
//! Both ends of an edge must be in the graph or in this load. Otherwise the row is refused, as the loader API documents
//! (`FROM_OR_TO_VERTEX_ARE_MISSING`).
//!
//! The effect of a row with an existing id depends on the dialect. Gremlin applies it to the existing edge if both
//! agree on ends and label, and refuses another value of a property unless `updateSingleCardinalityProperties` is
//! on. openCypher keeps the first row of a load, and adds to an edge of the graph only properties that it lacks.

use super::ids::{EdgeHashes, EdgeId, Met};
use super::target::Found;
use super::vertices::show;
use super::waiting::WaitingEdge;
use super::{Load, Stop};
use crate::dialect::OnConflict;
use crate::error::Error;
use crate::reject::{Code, Rejected};
use crate::rows::EdgeRow;
use rustc_hash::FxHashMap;
use tidegraph_types::{Edge, Gui, GuiHasher, Mutation, Sid, Str, Token, Value};

/// Returns the vertex of an id if the graph has it.
fn in_graph(id: &Str, found: &FxHashMap<Str, Found>) -> Option<Gui> {
    match found.get(id) {
        Some(Found::Present(gui)) => Some(*gui),
        _ => None,
    }
}

/// An edge row with GUIs and tokens in place of ids and names.
pub(super) struct Resolved {
    pub line: u64,
    pub id: Option<EdgeName>,
    pub source: Gui,
    pub target: Gui,
    pub label: Token,
    pub properties: Vec<(Token, Value)>,
}

/// The id of an edge, with its hashes.
pub(super) struct EdgeName {
    pub text: Str,
    pub hashes: EdgeHashes,
}

impl EdgeName {
    pub(super) fn new(text: Str, hasher: GuiHasher) -> Self {
        let hashes = EdgeHashes::of(&text, hasher);
        Self { text, hashes }
    }
}

impl Resolved {
    /// Returns the id, empty if there is none.
    pub(super) fn id_text(&self) -> Str {
        self.id.as_ref().map(|id| id.text.clone()).unwrap_or_default()
    }
}

/// What a thread that reads edges looks up of a row: the ends that the load has met, and the hashes of its id.
pub(super) struct LookedUp {
    pub ends: [Option<Gui>; 2],
    pub id: Option<EdgeHashes>,
}

impl LookedUp {
    /// Looks the ends of some rows up. All ids are hashed first: nothing stands between the steps into the table, which is
    /// larger than the caches, so the processor takes many at a time.
    pub(super) fn of_rows<'r>(rows: impl Iterator<Item = &'r EdgeRow> + Clone, met: &Met) -> Vec<Self> {
        let hashes: Vec<_> = rows.clone().map(|row| [met.hashes(&row.from), met.hashes(&row.to)]).collect();
        let ends: Vec<_> = rows
            .clone()
            .zip(hashes)
            .map(|(row, [from, to])| [met.find(&row.from, from), met.find(&row.to, to)])
            .collect();
        let id = |row: &EdgeRow| row.id.as_ref().map(|id| EdgeHashes::of(id, met.hasher));
        rows.zip(ends).map(|(row, ends)| Self { ends, id: id(row) }).collect()
    }
}

/// Which end of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    From,
    To,
}

impl Load<'_> {
    /// Takes rows of edges. `looked_up`: for each row, or empty.
    pub(super) fn edge_rows(
        &mut self,
        file: usize,
        rows: Vec<EdgeRow>,
        mut looked_up: Vec<LookedUp>,
    ) -> Result<(), Stop> {
        if looked_up.is_empty() {
            looked_up = LookedUp::of_rows(rows.iter(), self.ids.met());
        }
        let ids = rows.iter().zip(&looked_up).flat_map(|(row, looked_up)| {
            let unknown = |(id, gui): (_, Option<Gui>)| gui.is_none().then_some(id);
            [&row.from, &row.to].into_iter().zip(looked_up.ends).filter_map(unknown)
        });
        let found = self.find_vertices(ids)?;
        self.note_ends(&found);
        let mut resolved = Vec::with_capacity(rows.len());
        for (row, looked_up) in rows.into_iter().zip(looked_up) {
            self.count_edge(file, row.properties.len());
            let (source, target) = match self.ends(file, &row, looked_up.ends, &found) {
                Ok(ends) => ends,
                Err(rejected) => {
                    self.reject(file, *rejected)?;
                    continue;
                }
            };
            let token = |name| self.names.token(file, name);
            let label = token(row.label);
            let properties = row.properties.into_iter().map(|p| (token(p.name), p.value)).collect();
            let id = row.id.zip(looked_up.id).map(|(text, hashes)| EdgeName { text, hashes });
            resolved.push(Resolved { line: row.line, id, source, target, label, properties });
        }
        self.resolved_edges(file, resolved)
    }

    /// Notes which vertices of the graph are ends of edges.
    pub(super) fn note_ends(&mut self, found: &FxHashMap<Str, Found>) {
        for found in found.values() {
            if let Found::Present(gui) = found {
                self.ids.insert_end(*gui);
            }
        }
    }

    /// Counts the statements of an edge row: one for the edge, one for each property.
    pub(super) fn count_edge(&mut self, file: usize, properties: usize) {
        let records = 1 + properties as u64;
        self.files.reports[file].counts.total_records += records;
        self.tally.progress.records += records;
    }

    /// Creates the edges of rows whose ends exist, or merges the rows into the edges that have their ids.
    pub(super) fn resolved_edges(&mut self, file: usize, rows: Vec<Resolved>) -> Result<(), Stop> {
        let existing = self.find_edges(rows.iter().filter_map(|r| Some(&r.id.as_ref()?.text)))?;
        let rules = self.rules(file);
        // All at once, for the same reason as in `LookedUp::of_rows`.
        let met: Vec<EdgeId> = rows
            .iter()
            .map(|row| row.id.as_ref().map_or(EdgeId::New, |id| self.ids.meet_edge(id.hashes)))
            .collect();
        let mut in_graph = Vec::new();
        for (row, known) in rows.into_iter().zip(met) {
            let repeated = rules.duplicates(1 + row.properties.len() as u64);
            if known != EdgeId::New {
                self.files.reports[file].counts.total_duplicates += repeated;
                if known == EdgeId::Unsure || !rules.first_edge_row_wins() {
                    self.waiting.push_edge(WaitingEdge { file, row });
                }
                continue;
            }
            match row.id.as_ref().and_then(|id| existing.get(&id.text)).copied().flatten() {
                Some(edge) => {
                    self.files.reports[file].counts.total_duplicates += repeated;
                    in_graph.push((row, edge));
                }
                None => {
                    self.create_edge(row)?;
                }
            }
        }
        self.merge_graph_edges(file, in_graph)?;
        if self.waiting.bytes > self.context.config.waiting_bytes {
            self.apply_waiting_edges()
        } else {
            Ok(())
        }
    }

    fn merge_graph_edges(&mut self, file: usize, rows: Vec<(Resolved, Edge)>) -> Result<(), Stop> {
        let keys = |(row, edge): &(Resolved, Edge)| {
            let edge = *edge;
            row.properties.iter().map(move |(key, _)| (edge, *key)).collect::<Vec<_>>()
        };
        let wanted: Vec<(Edge, Token)> = rows.iter().flat_map(keys).collect();
        let mut values =
            if wanted.is_empty() { Vec::new() } else { self.context.target.edge_values(&wanted)? }
                .into_iter();
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
        if self.context.graph_is_empty {
            return Ok(FxHashMap::default());
        }
        let mut ids: Vec<Str> = ids.cloned().collect();
        ids.sort();
        ids.dedup();
        if ids.is_empty() {
            return Ok(FxHashMap::default());
        }
        let found = self.context.target.edges(&ids)?;
        Ok(ids.into_iter().zip(found).collect())
    }

    fn ends(
        &self,
        file: usize,
        row: &EdgeRow,
        [source, target]: [Option<Gui>; 2],
        found: &FxHashMap<Str, Found>,
    ) -> Result<(Gui, Gui), Box<Rejected>> {
        let missing = |end, id: &Str| Box::new(self.missing(file, row.line, end, id));
        let source = source.or_else(|| in_graph(&row.from, found));
        let source = source.ok_or_else(|| missing(End::From, &row.from))?;
        let target = target.or_else(|| in_graph(&row.to, found));
        let target = target.ok_or_else(|| missing(End::To, &row.to))?;
        Ok((source, target))
    }

    /// Returns the vertex of an id if it is in this load or in the graph.
    pub(super) fn end(&self, id: &Str, found: &FxHashMap<Str, Found>) -> Option<Gui> {
        self.ids.get(id).or_else(|| in_graph(id, found))
    }

    /// Builds the refusal of a row whose end is neither in the graph nor in this load.
    pub(super) fn missing(&self, file: usize, line: u64, end: End, id: &Str) -> Rejected {
        let columns = self.files.columns[file].as_ref();
        let column = columns.map(|c| if end == End::To { c.to.clone() } else { c.from.clone() });
        let name = if end == End::To { "to" } else { "from" };
        let reason = format!("the {name} vertex {id:?} is neither in the graph nor in this load");
        self.refuse(file, line, Code::MissingVertex, reason).at(&column.unwrap_or_default(), id.as_bytes())
    }

    pub(super) fn create_edge(&mut self, row: Resolved) -> Result<Edge, Error> {
        let sid = Sid(self.sid()?);
        let edge = Edge { sid, source: row.source, target: row.target, label: row.label };
        self.tally.edges += 1;
        let id = row.id.as_ref().map(|id| (&id.text, id.hashes.hash));
        self.writer.push_edge(&edge, id, &row.properties)?;
        Ok(edge)
    }

    /// Merges a row into an existing edge that has the values `old`. Returns what it wrote.
    pub(super) fn merge_edge(
        &mut self,
        file: usize,
        row: Resolved,
        edge: Edge,
        old: &FxHashMap<Token, Value>,
    ) -> Result<Vec<(Token, Value)>, Stop> {
        let id = row.id_text();
        if (edge.source, edge.target, edge.label) != (row.source, row.target, row.label) {
            let column = self.files.columns[file].as_ref().map(|c| c.id.clone()).unwrap_or_default();
            let reason =
                format!("the edge id {id:?} is that of another edge, with other ends or another label");
            let rejected = self.refuse(file, row.line, Code::EdgeIdReused, reason).at(&column, id.as_bytes());
            self.reject(file, rejected)?;
            return Ok(Vec::new());
        }
        let update = self.context.config.update_single_cardinality_properties;
        let on_conflict = self.rules(file).on_conflict(update);
        let mut writes = Vec::new();
        for (key, value) in row.properties {
            let Some(found) = old.get(&key) else {
                writes.push((key, value));
                continue;
            };
            if *found == value {
                continue;
            }
            match on_conflict {
                OnConflict::Keep => {}
                OnConflict::Replace => writes.push((key, value)),
                OnConflict::Refuse => {
                    let name = self.names.text(key);
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

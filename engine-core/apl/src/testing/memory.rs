//! A graph in maps, for tests of callers.
//!
//! It honours `max_rows` to the row, so that tests meet every cursor. It applies commits,
//! so that tests see the result of a transaction. It has one version, whatever [`At`]
//! says, and panics if a caller breaks the rules of the trait.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "only tests call this")]

use crate::{
    Apl, At, Catalog, CellMeta, Cursor, EdgeCandidates, EdgePlace, EdgeRead, EdgeRows, EdgeRuns, EdgeScan,
    EndCounts, Error, Expand, Expansion, Grouping, Groups, LookUp, LookedUp, Projection, PropertyCell,
    Reservoir, Sample, ScanCursor, ScannedValues, Statistics, TopEdges, TopVertices, Traffic, VertexRead,
    VertexRows, VertexScan, fallback,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_types::element::{generated_edge_id, parse_generated_edge_id};
use tidegraph_types::{
    Cardinality, CommitRequest, Direction, Edge, Gui, GuiHasher, Mutation, PropertyWrite, Sid, Str, Token,
    Value,
};

/// A vertex of a [`MemoryGraph`].
#[derive(Clone, Debug, PartialEq)]
pub struct StoredVertex {
    /// Id of the vertex.
    pub id: Str,
    /// Labels of the vertex.
    pub labels: Vec<Token>,
    /// Property values in the order in which they were written.
    pub cells: Vec<PropertyCell>,
    /// Meta-properties: key, value, and number of the value among equal ones; key and value of the meta-property.
    pub meta: Vec<(Token, Value, u32, Token, Value)>,
}

/// An edge of a [`MemoryGraph`].
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEdge {
    /// The edge.
    pub edge: Edge,
    /// The id that the user chose; `None` for the generated id.
    pub id: Option<Str>,
    /// Properties of the edge.
    pub properties: Vec<(Token, Value)>,
}

/// A graph in maps. It answers every request and counts its answers.
///
/// ```
/// use tidegraph_apl::testing::MemoryGraph;
/// use tidegraph_apl::{Apl, At, VertexScan, ScanCursor};
///
/// let mut graph = MemoryGraph::new();
/// let ada = graph.vertex("ada", &["Person"], &[("age", 36.into())]);
/// let scan = VertexScan { max_rows: 10, ..VertexScan::default() };
/// let mut found = Vec::new();
/// assert_eq!(graph.scan_vertices(At::default(), &scan, ScanCursor::default(), &mut found)?, None);
/// assert_eq!(found, [ada]);
/// # Ok::<(), tidegraph_apl::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryGraph {
    /// The vertices.
    pub vertices: BTreeMap<Gui, StoredVertex>,
    /// The edges.
    pub edges: BTreeMap<Sid, StoredEdge>,
    /// Computes GUIs of ids.
    pub hasher: GuiHasher,
    names: Mutex<Vec<Str>>,
    next_sid: AtomicU64,
    /// Number of rows that `expand` and `scan_vertices` answered.
    pub rows_read: AtomicU64,
    /// Number of calls of `vertices` and `edges`.
    pub element_calls: AtomicU64,
    /// Number of vertices and edges that these calls asked for.
    pub elements_asked: AtomicU64,
}

impl MemoryGraph {
    /// Makes an empty graph.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty graph whose GUIs have this many hash bits, so that ids collide.
    #[must_use]
    pub fn with_bits(bits: u32) -> Self {
        Self { hasher: GuiHasher::with_bits(bits), ..Self::default() }
    }

    /// Returns the GUI of a vertex. Panics if no vertex has the id.
    #[must_use]
    pub fn gui(&self, id: &str) -> Gui {
        self.vertices
            .iter()
            .find(|(_, v)| v.id == id)
            .map_or_else(|| panic!("no vertex {id}"), |(gui, _)| *gui)
    }

    /// Returns the token of a name, and makes it if it is missing.
    pub fn tok(&self, name: &str) -> Token {
        self.intern(&[name.into()]).unwrap()[0]
    }

    /// Adds a vertex with single-valued properties. Returns its GUI.
    pub fn vertex(&mut self, id: &str, labels: &[&str], properties: &[(&str, Value)]) -> Gui {
        let mut places = vec![];
        self.place(At::default(), &[(id.into(), 0)], &mut places).unwrap();
        let labels = labels.iter().map(|l| self.tok(l)).collect();
        let cells = (properties.iter())
            .map(|(k, v)| PropertyCell {
                key: self.tok(k),
                cardinality: Cardinality::Single,
                value: v.clone(),
            })
            .collect();
        self.vertices.insert(places[0].0, StoredVertex { id: id.into(), labels, cells, meta: vec![] });
        places[0].0
    }

    /// Adds an edge with a generated id between two vertices, given by their ids.
    pub fn edge(&mut self, from: &str, label: &str, to: &str) -> Edge {
        self.edge_with(from, label, to, None, &[])
    }

    /// Adds an edge between two vertices, given by their ids.
    pub fn edge_with(
        &mut self,
        from: &str,
        label: &str,
        to: &str,
        id: Option<&str>,
        properties: &[(&str, Value)],
    ) -> Edge {
        let sid = Sid(self.allocate_sids(1).unwrap().start);
        let edge = Edge { sid, source: self.gui(from), target: self.gui(to), label: self.tok(label) };
        let properties = properties.iter().map(|(k, v)| (self.tok(k), v.clone())).collect();
        self.edges.insert(sid, StoredEdge { edge, id: id.map(Str::from), properties });
        edge
    }

    /// Returns the id of a vertex. Panics if there is no such vertex.
    #[must_use]
    pub fn id(&self, gui: Gui) -> String {
        self.vertices[&gui].id.to_string()
    }

    /// Returns the values of a vertex's property key.
    pub fn property(&self, id: &str, key: &str) -> Vec<Value> {
        let key = self.tok(key);
        let cells = &self.vertices[&self.gui(id)].cells;
        cells.iter().filter(|c| c.key == key).map(|c| c.value.clone()).collect()
    }

    /// Returns the names of a vertex's labels.
    pub fn labels(&self, id: &str) -> Vec<String> {
        self.vertices[&self.gui(id)].labels.iter().map(|t| self.name(*t).to_string()).collect()
    }

    fn write(vertex: &mut StoredVertex, write: &PropertyWrite) {
        let same = |c: &PropertyCell| c.key == write.key;
        match write.cardinality {
            Cardinality::Single => {
                vertex.cells.retain(|c| !same(c));
                vertex.meta.retain(|m| m.0 != write.key);
            }
            Cardinality::Set if vertex.cells.iter().any(|c| same(c) && c.value == write.value) => return,
            _ => {}
        }
        vertex.cells.iter_mut().filter(|c| same(c)).for_each(|c| c.cardinality = write.cardinality);
        vertex.cells.push(PropertyCell {
            key: write.key,
            cardinality: write.cardinality,
            value: write.value.clone(),
        });
    }

    /// Applies a commit. Panics if a mutation does not fit the graph.
    pub fn apply(&mut self, request: &CommitRequest) {
        for mutation in &request.mutations {
            match mutation.clone() {
                Mutation::CreateVertex { gui, id, labels, properties } => {
                    let mut vertex = StoredVertex { id, labels, cells: vec![], meta: vec![] };
                    properties.iter().for_each(|w| Self::write(&mut vertex, w));
                    assert!(self.vertices.insert(gui, vertex).is_none(), "vertex exists");
                }
                Mutation::DeleteVertex { gui, .. } => {
                    assert!(!self.edges.values().any(|e| e.edge.source == gui || e.edge.target == gui));
                    self.vertices.remove(&gui).expect("vertex to delete");
                }
                Mutation::AddLabels { gui, labels } => {
                    self.vertices.get_mut(&gui).expect("vertex").labels.extend(labels);
                }
                Mutation::RemoveLabels { gui, labels } => {
                    self.vertices.get_mut(&gui).expect("vertex").labels.retain(|l| !labels.contains(l));
                }
                Mutation::SetVertexProperty { gui, write } => {
                    Self::write(self.vertices.get_mut(&gui).expect("vertex"), &write);
                }
                Mutation::RemoveVertexProperty { gui, key, value } => {
                    let StoredVertex { cells, meta, .. } = self.vertices.get_mut(&gui).expect("vertex");
                    match value {
                        None => {
                            cells.retain(|c| c.key != key);
                            meta.retain(|m| m.0 != key);
                        }
                        Some(value) => {
                            let at = cells.iter().position(|c| c.key == key && c.value == value);
                            cells.remove(at.expect("value"));
                            meta.retain(|m| m.0 != key || m.1 != value || m.2 > 0);
                            let moved = meta.iter_mut().filter(|m| m.0 == key && m.1 == value);
                            moved.for_each(|m| m.2 -= 1);
                        }
                    }
                }
                Mutation::SetMetaProperty { gui, key, of, nth, meta_key, value } => {
                    let StoredVertex { cells, meta, .. } = self.vertices.get_mut(&gui).expect("vertex");
                    let equal = cells.iter().filter(|c| c.key == key && c.value == of).count();
                    assert!((nth as usize) < equal, "{of:?} is there {equal} times");
                    meta.retain(|m| (m.0, &m.1, m.2, m.3) != (key, &of, nth, meta_key));
                    meta.extend(value.map(|value| (key, of, nth, meta_key, value)));
                }
                Mutation::CreateEdge { edge, id, properties } => {
                    assert!(
                        self.vertices.contains_key(&edge.source) && self.vertices.contains_key(&edge.target)
                    );
                    assert!(self.edges.insert(edge.sid, StoredEdge { edge, id, properties }).is_none());
                }
                Mutation::DeleteEdge { edge, id } => {
                    assert_eq!(self.edges.remove(&edge.sid).expect("edge to delete").id, id);
                }
                Mutation::SetEdgeProperty { edge, key, value } => {
                    let properties = &mut self.edges.get_mut(&edge.sid).expect("edge").properties;
                    properties.retain(|(k, _)| *k != key);
                    properties.push((key, value));
                }
                Mutation::RemoveEdgeProperty { edge, key } => {
                    self.edges.get_mut(&edge.sid).expect("edge").properties.retain(|(k, _)| *k != key);
                }
                Mutation::AddException { .. } | Mutation::DefineIndex { .. } | Mutation::DropIndex { .. } => {
                }
                Mutation::Reset => {
                    self.vertices.clear();
                    self.edges.clear();
                }
            }
        }
    }

    fn count_elements(&self, asked: usize) {
        self.element_calls.fetch_add(1, Ordering::Relaxed);
        self.elements_asked.fetch_add(asked as u64, Ordering::Relaxed);
    }

    fn adjacent(&self, request: &Expand, gui: Gui) -> Vec<(Gui, Edge, bool)> {
        let mut all = vec![];
        for stored in self.edges.values() {
            let e = stored.edge;
            if request.labels.as_ref().is_some_and(|labels| !labels.contains(&e.label)) {
                continue;
            }
            if e.source == gui && request.direction != Direction::In {
                all.push((e.target, e, true));
            }
            let once = request.loops_once && request.direction == Direction::Both && e.source == e.target;
            if e.target == gui && request.direction != Direction::Out && !once {
                all.push((e.source, e, false));
            }
        }
        all
    }
}

fn wants(projection: &Projection, key: Token) -> bool {
    match projection {
        Projection::None => false,
        Projection::All => true,
        Projection::Keys(keys) => keys.contains(&key),
    }
}

impl Apl for MemoryGraph {
    fn is_far(&self) -> bool {
        false
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn look_up(&self, at: At, ids: &[Str], wish: &LookUp, out: &mut LookedUp) -> Result<(), Error> {
        fallback::look_up(self, at, ids, wish, out)
    }

    fn edge_candidates(&self, at: At, ids: &[Str], out: &mut EdgeCandidates) -> Result<(), Error> {
        fallback::edge_candidates(self, at, ids, out)
    }

    fn find_edges(&self, at: At, places: &[EdgePlace], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        fallback::find_edges(self, at, places, out)
    }

    fn resolve_vertices(&self, _: At, ids: &[Str], out: &mut Vec<Option<Gui>>) -> Result<(), Error> {
        out.extend(ids.iter().map(|id| self.vertices.iter().find(|(_, v)| v.id == *id).map(|(g, _)| *g)));
        Ok(())
    }

    fn resolve_edges(&self, _: At, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        out.extend(ids.iter().map(|id| {
            let chosen = self.edges.values().find(|e| e.id.as_ref() == Some(id));
            let generated = || {
                let (source, sid) = parse_generated_edge_id(id)?;
                self.edges.get(&sid).filter(|e| e.edge.source == source && e.id.is_none())
            };
            chosen.or_else(generated).map(|e| e.edge)
        }));
        Ok(())
    }

    fn place(&self, _: At, ids: &[(Str, u64)], out: &mut Vec<(Gui, u64)>) -> Result<(), Error> {
        for (id, from) in ids {
            let free = (*from..).map(|salt| (self.hasher.salted(id, salt), salt));
            out.extend(free.into_iter().find(|(gui, _)| !self.vertices.contains_key(gui)));
        }
        Ok(())
    }

    fn vertices(
        &self,
        _: At,
        read: &VertexRead,
        frontier: &[Gui],
        out: &mut VertexRows,
    ) -> Result<(), Error> {
        assert!(out.present.is_empty(), "the caller clears");
        self.count_elements(frontier.len());
        for gui in frontier {
            let vertex = self.vertices.get(gui);
            out.present.push(vertex.is_some());
            if read.ids {
                out.ids.push(vertex.map(|v| v.id.clone()).unwrap_or_default());
            }
            if read.labels {
                out.labels.extend(vertex.iter().flat_map(|v| &v.labels));
                out.label_ends.push(out.labels.len() as u32);
            }
            if read.properties != Projection::None {
                let mut cells: Vec<&PropertyCell> = vertex.iter().flat_map(|v| &v.cells).collect();
                // Values of one key follow each other.
                let keys: Vec<Token> = cells.iter().map(|c| c.key).collect();
                cells.sort_by_key(|c| keys.iter().position(|key| *key == c.key));
                cells.retain(|c| wants(&read.properties, c.key));
                for (at, cell) in cells.iter().enumerate() {
                    let nth = cells[..at].iter().filter(|c| (c.key, &c.value) == (cell.key, &cell.value));
                    let nth = nth.count() as u32;
                    let number = out.cells.len() as u32;
                    out.cells.push((*cell).clone());
                    let own = vertex.iter().flat_map(|v| &v.meta).filter(|_| read.meta);
                    let own = own.filter(|m| (m.0, &m.1, m.2) == (cell.key, &cell.value, nth));
                    out.meta.extend(own.map(|m| CellMeta { cell: number, key: m.3, value: m.4.clone() }));
                }
                out.cell_ends.push(out.cells.len() as u32);
            }
        }
        Ok(())
    }

    fn edges(&self, _: At, read: &EdgeRead, frontier: &[Edge], out: &mut EdgeRows) -> Result<(), Error> {
        assert!(out.present.is_empty(), "the caller clears");
        self.count_elements(frontier.len());
        for edge in frontier {
            let stored = self.edges.get(&edge.sid);
            out.present.push(stored.is_some());
            if read.ids {
                let id = |e: &StoredEdge| {
                    e.id.clone().unwrap_or_else(|| generated_edge_id(e.edge.source, e.edge.sid))
                };
                out.ids.push(stored.map(id).unwrap_or_default());
            }
            if read.properties != Projection::None {
                for (key, value) in stored.iter().flat_map(|e| &e.properties) {
                    if wants(&read.properties, *key) {
                        let cardinality = Cardinality::Single;
                        out.cells.push(PropertyCell { key: *key, cardinality, value: value.clone() });
                    }
                }
                out.cell_ends.push(out.cells.len() as u32);
            }
        }
        Ok(())
    }

    fn expand(
        &self,
        _: At,
        request: &Expand,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        assert!(out.is_empty(), "the caller clears");
        for row in from.row..frontier.len() as u32 {
            let skip = if row == from.row { from.offset } else { 0 };
            for (offset, (to, e, outgoing)) in
                self.adjacent(request, frontier[row as usize]).into_iter().enumerate().skip(skip as usize)
            {
                if out.len() >= request.max_rows as usize {
                    return Ok(Some(Cursor { row, offset: offset as u64, ..Cursor::default() }));
                }
                self.rows_read.fetch_add(1, Ordering::Relaxed);
                if request.neighbours_only {
                    out.row.push(row);
                    out.neighbour.push(to);
                    continue;
                }
                out.push(row, to, e.sid, e.label, outgoing);
            }
        }
        Ok(None)
    }

    fn degrees(&self, _: At, request: &Expand, frontier: &[Gui], out: &mut Vec<u64>) -> Result<(), Error> {
        out.extend(frontier.iter().map(|gui| self.adjacent(request, *gui).len() as u64));
        Ok(())
    }

    fn edges_imply_labels(
        &self,
        _: At,
        edge_labels: &[Token],
        direction: Direction,
        labels: &[Token],
    ) -> bool {
        let has_all = |gui: Gui| {
            let vertex = self.vertices.get(&gui);
            vertex.is_some_and(|vertex| labels.iter().all(|label| vertex.labels.contains(label)))
        };
        let mut edges = self.edges.values().map(|stored| stored.edge);
        edges.all(|edge| {
            !edge_labels.contains(&edge.label)
                || match direction {
                    Direction::Out => has_all(edge.source),
                    Direction::In => has_all(edge.target),
                    Direction::Both => has_all(edge.source) && has_all(edge.target),
                }
        }) && !edge_labels.is_empty()
    }

    fn scan_vertices(
        &self,
        _: At,
        scan: &VertexScan,
        from: ScanCursor,
        out: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        let mut read = 0;
        for (position, (gui, v)) in self.vertices.iter().enumerate().skip(from.position as usize) {
            if read >= scan.max_rows {
                return Ok(Some(ScanCursor { position: position as u64, ..ScanCursor::default() }));
            }
            let labels = scan.labels.iter().all(|group| group.iter().any(|l| v.labels.contains(l)));
            let passes = scan.predicates.iter().all(|p| p.passes_among(&v.cells));
            if labels && passes {
                self.rows_read.fetch_add(1, Ordering::Relaxed);
                read += 1;
                out.push(*gui);
            }
        }
        Ok(None)
    }

    fn group_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        grouping: &Grouping,
        from: ScanCursor,
        out: &mut Groups,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::group_vertices(self, at, scan, grouping, from, out)
    }

    fn count_ends(
        &self,
        at: At,
        scan: &VertexScan,
        expand: &Expand,
        from: ScanCursor,
        out: &mut EndCounts,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::count_ends(self, at, scan, expand, from, out)
    }

    fn scan_edges(
        &self,
        _: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut EdgeRuns,
    ) -> Result<Option<ScanCursor>, Error> {
        let mut read = 0;
        for (position, e) in self.edges.values().enumerate().skip(from.position as usize) {
            if read >= scan.max_rows {
                return Ok(Some(ScanCursor { position: position as u64, ..ScanCursor::default() }));
            }
            if scan.labels.as_ref().is_none_or(|labels| labels.contains(&e.edge.label)) {
                read += 1;
                out.push(e.edge);
            }
        }
        Ok(None)
    }

    fn sample_edges(
        &self,
        at: At,
        request: &Expand,
        sample: Sample,
        frontier: &[Gui],
        out: &mut Expansion,
    ) -> Result<(), Error> {
        fallback::sample_edges(self, at, request, sample, frontier, out)
    }

    fn top_edges(
        &self,
        at: At,
        request: &Expand,
        top: &TopEdges,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        fallback::top_edges(self, at, request, top, frontier, from, out)
    }

    fn scan_values(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::scan_values(self, at, scan, keys, from, out)
    }

    fn top_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        top: &TopVertices,
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::top_vertices(self, at, scan, keys, top, from, out)
    }

    fn count_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        count: &mut u64,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::count_vertices(self, at, scan, from, count)
    }

    fn sample_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        sample: &mut Reservoir<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::sample_vertices(self, at, scan, from, sample)
    }

    fn scan_edge_rows(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut Vec<Edge>,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::scan_edge_rows(self, at, scan, from, out)
    }

    fn unique_keys(&self, _: At) -> Result<Vec<(Token, Token)>, Error> {
        Ok(Vec::new())
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}

impl Catalog for MemoryGraph {
    fn token(&self, name: &str) -> Option<Token> {
        self.names.lock().unwrap().iter().position(|n| n == name).map(|i| Token(i as u32))
    }

    fn name(&self, token: Token) -> Str {
        self.names.lock().unwrap()[token.0 as usize].clone()
    }

    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        let mut known = self.names.lock().unwrap();
        Ok(names
            .iter()
            .map(|name| {
                let at = known.iter().position(|n| n == name).unwrap_or_else(|| {
                    known.push(name.clone());
                    known.len() - 1
                });
                Token(at as u32)
            })
            .collect())
    }

    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        let start = self.next_sid.fetch_add(count, Ordering::Relaxed);
        Ok(start..start + count)
    }
}

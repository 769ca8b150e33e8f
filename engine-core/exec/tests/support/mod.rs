//! A graph in maps that answers APL, and short ways to write plans and run them.
//!
//! The graph honours `max_rows` to the row, so that every cursor is exercised, and applies commit requests, so that a
//! test sees what a transaction leaves behind.

#![allow(dead_code, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, reason = "only tests call this")]

pub mod plans;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_apl::{
    Apl, At, Catalog, CellMeta, Cursor, EdgeRead, EdgeRows, EdgeRuns, EdgeScan, Error, Expand, Expansion,
    Projection, PropertyCell, ScanCursor, Statistics, VertexRead, VertexRows, VertexScan,
};
use tidegraph_exec::{
    Context, Entropy, Execution, Interrupt, Limits, NeverInterrupted, Parameters, Summary, View,
};
use tidegraph_plan::Plan;
use tidegraph_types::{
    Cardinality, CommitRequest, Direction, Edge, Gui, GuiHasher, Mutation, PropertyWrite, Sid, Str, Token,
    Value, element::generated_edge_id, element::parse_generated_edge_id,
};

/// One vertex.
#[derive(Clone, Debug, PartialEq)]
pub struct Vertex {
    pub id: Str,
    pub labels: Vec<Token>,
    pub cells: Vec<PropertyCell>,
    /// Meta-properties: key, value and its number among the equal ones; key and value of the meta-property.
    pub meta: Vec<(Token, Value, u32, Token, Value)>,
}

/// One edge with its chosen id.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEdge {
    pub edge: Edge,
    pub id: Option<Str>,
    pub properties: Vec<(Token, Value)>,
}

/// A graph in maps.
#[derive(Default)]
pub struct Graph {
    pub vertices: BTreeMap<Gui, Vertex>,
    pub edges: BTreeMap<Sid, StoredEdge>,
    pub hasher: GuiHasher,
    names: Mutex<Vec<Str>>,
    next_sid: AtomicU64,
    /// Rows that `expand` and scans answered.
    pub rows_read: AtomicU64,
}

impl Graph {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with_bits(bits: u32) -> Self {
        Self { hasher: GuiHasher::with_bits(bits), ..Self::default() }
    }

    pub fn gui(&self, id: &str) -> Gui {
        self.vertices
            .iter()
            .find(|(_, v)| v.id == id)
            .map_or_else(|| panic!("no vertex {id}"), |(gui, _)| *gui)
    }

    pub fn tok(&self, name: &str) -> Token {
        self.intern(&[name.into()]).unwrap()[0]
    }

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
        self.vertices.insert(places[0].0, Vertex { id: id.into(), labels, cells, meta: vec![] });
        places[0].0
    }

    pub fn edge(&mut self, from: &str, label: &str, to: &str) -> Edge {
        self.edge_with(from, label, to, None, &[])
    }

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

    pub fn id(&self, gui: Gui) -> String {
        self.vertices[&gui].id.to_string()
    }

    pub fn property(&self, id: &str, key: &str) -> Vec<Value> {
        let key = self.tok(key);
        let cells = &self.vertices[&self.gui(id)].cells;
        cells.iter().filter(|c| c.key == key).map(|c| c.value.clone()).collect()
    }

    pub fn labels(&self, id: &str) -> Vec<String> {
        self.vertices[&self.gui(id)].labels.iter().map(|t| self.name(*t).to_string()).collect()
    }

    fn write(vertex: &mut Vertex, write: &PropertyWrite) {
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

    /// Applies a commit; strict, so that a request that could not be applied as it stands fails the test.
    pub fn apply(&mut self, request: &CommitRequest) {
        for mutation in &request.mutations {
            match mutation.clone() {
                Mutation::CreateVertex { gui, id, labels, properties } => {
                    let mut vertex = Vertex { id, labels, cells: vec![], meta: vec![] };
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
                    let Vertex { cells, meta, .. } = self.vertices.get_mut(&gui).expect("vertex");
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
                    let Vertex { cells, meta, .. } = self.vertices.get_mut(&gui).expect("vertex");
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
            }
        }
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

impl Apl for Graph {
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
                // Values of one key stand together.
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

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}

impl Catalog for Graph {
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

/// Random numbers that count up.
#[derive(Default)]
pub struct Counting(AtomicU64);

impl Entropy for Counting {
    fn random_u64(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Rows and outcome of a plan, with everything that can be set.
pub fn execute(
    graph: &Graph,
    plan: &Plan,
    parameters: &Parameters,
    limits: Limits,
    interrupt: &dyn Interrupt,
) -> tidegraph_exec::Result<(Vec<Vec<Value>>, Summary)> {
    let view = View::new(graph, graph, At::default(), plan.root.writes());
    let entropy = Counting::default();
    let ctx = Context::new(view, parameters, limits, interrupt, &entropy, jiff::Timestamp::UNIX_EPOCH);
    Execution::new(plan, ctx)?.run()
}

/// Rows and outcome of a plan.
pub fn try_run(graph: &Graph, plan: &Plan) -> tidegraph_exec::Result<(Vec<Vec<Value>>, Summary)> {
    execute(graph, plan, &Parameters::default(), Limits::default(), &NeverInterrupted)
}

/// Rows of a plan that must succeed, as short text: vertices and edges by id, the rest as in openCypher.
pub fn rows(graph: &Graph, plan: &Plan) -> Vec<String> {
    let (rows, _) = try_run(graph, plan).unwrap_or_else(|e| panic!("{e}"));
    rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(" ")).collect()
}

/// The same without their order.
pub fn sorted(graph: &Graph, plan: &Plan) -> Vec<String> {
    let mut rows = rows(graph, plan);
    rows.sort();
    rows
}

/// Runs a plan that writes and applies its commit.
pub fn run_and_apply(graph: &mut Graph, plan: &Plan) -> (Vec<String>, Summary) {
    let (rows, outcome) = try_run(graph, plan).unwrap_or_else(|e| panic!("{e}"));
    if let Some(commit) = &outcome.commit {
        graph.apply(commit);
    }
    (rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(" ")).collect(), outcome)
}

/// A value as short text.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Unbound => "unbound".into(),
        Value::Bool(v) => v.to_string(),
        Value::String(v) => v.to_string(),
        Value::VertexData(v) => v.id.to_string(),
        Value::EdgeData(e) => format!("{}-{}->{}", e.source_id, e.label, e.target_id),
        Value::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        other => match (other.as_i64(), other.as_f64()) {
            (Some(int), _) => int.to_string(),
            (None, Some(float)) => float.to_string(),
            _ => format!("{other:?}"),
        },
    }
}

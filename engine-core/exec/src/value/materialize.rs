//! Replaces handles in result rows by data: the last step before rows leave the executor.
//!
//! Flow: collect the handles, nested ones included → read the distinct vertices, the edges and the ends of edges, in
//! chunks → put the data in place of the handles. Values without handles are not copied. An element that no longer
//! exists keeps what its handle says and has neither labels nor properties.
//!
//! The data is charged to the request's memory chunk by chunk, each element once for a batch of rows, so that one row
//! with a list of all vertices is refused before all of them are in memory.

use crate::batch::{BATCH_ROWS, shares};
use crate::{Context, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;
use tidegraph_apl::{CellMeta, EdgeRead, EdgeRows, Projection, PropertyCell, VertexRead, VertexRows};
use tidegraph_types::{
    Edge, EdgeData, Gui, Map, PropertyData, PropertyRef, Sid, Str, Token, Value, VertexData,
    element::generated_edge_id,
};

/// Elements that are read and charged at once.
const CHUNK_ELEMENTS: usize = 16 * BATCH_ROWS;

/// Replaces every handle in the rows by data, also inside lists, maps, paths and properties; unbound becomes null.
/// Charges the data to the request's memory, and nothing for the rows themselves. `references`: elements get no properties.
///
/// # Errors
///
/// `Error::Storage` if storage does not answer, `Error::Memory` if the data exceeds the request's memory limit,
/// `Error::Stopped` if the caller stops the request.
pub fn materialize(rows: &mut [Vec<Value>], references: bool, ctx: &Context<'_>) -> Result<()> {
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut found = Found::default();
    for column in 0..width {
        for (at, row) in rows.iter().enumerate() {
            if let Some(value) = row.get(column)
                && !shares_with(rows, at.checked_sub(1), column, value)
            {
                found.look(value);
            }
        }
    }
    if !found.any {
        return Ok(());
    }
    let properties = if references { Projection::None } else { Projection::All };
    let data = Data::read(found, &properties, ctx)?;
    for column in 0..width {
        // Successive rows that share a list, map or path share what replaces it.
        let mut replaced: Option<Value> = None;
        for at in 0..rows.len() {
            let Some(value) = rows[at].get(column) else { continue };
            let goes_on = shares_with(rows, Some(at + 1), column, value);
            let value = match replaced.take() {
                Some(replaced) => replaced,
                None if goes_on => data.replaced(value),
                None => {
                    data.replace(&mut rows[at][column]);
                    continue;
                }
            };
            replaced = goes_on.then(|| value.clone());
            rows[at][column] = value;
        }
    }
    Ok(())
}

/// Whether a value of a column is the same allocation as the one in row `other`.
fn shares_with(rows: &[Vec<Value>], other: Option<usize>, column: usize, value: &Value) -> bool {
    let other = other.and_then(|row| rows.get(row)).and_then(|row| row.get(column));
    other.is_some_and(|other| shares(other, value))
}

/// The distinct handles in the order in which they were met.
#[derive(Default)]
struct Found {
    vertices: Vec<Gui>,
    edges: Vec<Edge>,
    seen_vertices: FxHashSet<Gui>,
    seen_edges: FxHashSet<Sid>,
    /// Whether there is anything to replace.
    any: bool,
}

impl Found {
    fn look(&mut self, value: &Value) {
        match value {
            Value::Unbound => self.any = true,
            Value::Vertex(gui) => {
                self.any = true;
                if self.seen_vertices.insert(*gui) {
                    self.vertices.push(*gui);
                }
            }
            Value::Edge(edge) => {
                self.any = true;
                if self.seen_edges.insert(edge.sid) {
                    self.edges.push(*edge);
                }
            }
            Value::List(items) | Value::Set(items) => items.iter().for_each(|item| self.look(item)),
            Value::Graph(graph) => graph.elements().for_each(|item| self.look(item)),
            Value::Map(map) | Value::Tree(map) => map.iter().for_each(|(key, item)| {
                self.look(key);
                self.look(item);
            }),
            Value::Path(path) => path.objects.iter().for_each(|object| self.look(object)),
            Value::Entry(entry) => {
                self.look(&entry.0);
                self.look(&entry.1);
            }
            Value::Property(property) => {
                self.look(&property.owner);
                self.look(&property.value);
            }
            _ => {}
        }
    }
}

/// Whether something in the value is to be replaced: what is shared must not be copied for nothing.
fn has_handle(value: &Value) -> bool {
    match value {
        Value::Unbound | Value::Vertex(_) | Value::Edge(_) => true,
        Value::List(items) | Value::Set(items) => items.iter().any(has_handle),
        Value::Graph(graph) => graph.elements().any(has_handle),
        Value::Map(map) | Value::Tree(map) => {
            map.iter().any(|(key, item)| has_handle(key) || has_handle(item))
        }
        Value::Path(path) => path.objects.iter().any(has_handle),
        Value::Entry(entry) => has_handle(&entry.0) || has_handle(&entry.1),
        Value::Property(property) => has_handle(&property.owner) || has_handle(&property.value),
        _ => false,
    }
}

/// Data of all handles.
struct Data {
    vertices: FxHashMap<Gui, Arc<VertexData>>,
    edges: FxHashMap<Sid, Arc<EdgeData>>,
}

impl Data {
    fn read(found: Found, wanted: &Projection, ctx: &Context<'_>) -> Result<Self> {
        let mut names = Names { ctx, names: FxHashMap::default() };
        let mut vertices = FxHashMap::default();
        vertices.reserve(found.vertices.len());
        let read = VertexRead {
            ids: true,
            labels: true,
            properties: wanted.clone(),
            meta: *wanted == Projection::All,
        };
        for chunk in found.vertices.chunks(CHUNK_ELEMENTS) {
            ctx.check()?;
            let mut rows = VertexRows::default();
            ctx.view.vertices(&read, chunk, &mut rows)?;
            let mut bytes = 0;
            for (row, gui) in chunk.iter().enumerate() {
                let data = VertexData {
                    gui: *gui,
                    id: rows.ids.get(row).cloned().unwrap_or_default(),
                    ids: ctx.ids,
                    labels: names.all(rows.labels_of(row)),
                    properties: properties(&rows, row, &mut names),
                };
                bytes += vertex_bytes(&data);
                vertices.insert(*gui, Arc::new(data));
            }
            ctx.memory.charge(bytes)?;
        }
        let edges = read_edges(&found.edges, &vertices, wanted, &mut names)?;
        Ok(Self { vertices, edges })
    }

    fn replace(&self, value: &mut Value) {
        match value {
            Value::Unbound => *value = Value::Null,
            Value::Vertex(gui) => {
                if let Some(data) = self.vertices.get(gui) {
                    *value = Value::VertexData(Arc::clone(data));
                }
            }
            Value::Edge(edge) => {
                if let Some(data) = self.edges.get(&edge.sid) {
                    *value = Value::EdgeData(Arc::clone(data));
                }
            }
            nested if !has_handle(nested) => {}
            Value::List(items) | Value::Set(items) => {
                for item in Arc::make_mut(items) {
                    self.replace(item);
                }
            }
            Value::Graph(graph) => {
                let graph = Arc::make_mut(graph);
                graph.vertices.iter_mut().chain(&mut graph.edges).for_each(|item| self.replace(item));
            }
            Value::Map(map) | Value::Tree(map) => {
                let mut replaced = Map::with_capacity(map.len());
                for (key, item) in map.iter() {
                    replaced.insert(self.replaced(key), self.replaced(item));
                }
                *map = Arc::new(replaced);
            }
            Value::Path(path) => {
                for object in &mut Arc::make_mut(path).objects {
                    self.replace(object);
                }
            }
            Value::Entry(entry) => {
                *entry = Arc::new((self.replaced(&entry.0), self.replaced(&entry.1)));
            }
            Value::Property(property) => {
                *property = Arc::new(PropertyRef {
                    owner: self.replaced(&property.owner),
                    key: property.key.clone(),
                    value: self.replaced(&property.value),
                    nth: property.nth,
                });
            }
            _ => {}
        }
    }

    fn replaced(&self, value: &Value) -> Value {
        let mut value = value.clone();
        self.replace(&mut value);
        value
    }
}

/// Names of tokens, looked up once each.
struct Names<'c, 'a> {
    ctx: &'c Context<'a>,
    names: FxHashMap<Token, Str>,
}

impl Names<'_, '_> {
    fn one(&mut self, token: Token) -> Str {
        self.names.entry(token).or_insert_with(|| self.ctx.view.name(token)).clone()
    }

    fn all(&mut self, tokens: &[Token]) -> Vec<Str> {
        tokens.iter().map(|token| self.one(*token)).collect()
    }
}

fn properties(rows: &VertexRows, row: usize, names: &mut Names<'_, '_>) -> Vec<PropertyData> {
    let mut first = rows.first_cell_of(row);
    let of_key = |cells: &[PropertyCell]| {
        let own = first..first + cells.len();
        first = own.end;
        let meta = if rows.meta.is_empty() { &[] } else { rows.meta_of(own.clone()) };
        let named = |meta: &CellMeta| (meta.cell - own.start as u32, names.one(meta.key), meta.value.clone());
        let meta = meta.iter().map(named).collect();
        PropertyData {
            key: names.one(cells[0].key),
            cardinality: cells[0].cardinality,
            values: cells.iter().map(|cell| cell.value.clone()).collect::<SmallVec<[Value; 1]>>(),
            meta,
        }
    };
    rows.cells_of(row).chunk_by(|a, b| a.key == b.key).map(of_key).collect()
}

/// Reads edges, and those vertices at their ends that were not read before.
fn read_edges(
    edges: &[Edge],
    vertices: &FxHashMap<Gui, Arc<VertexData>>,
    wanted: &Projection,
    names: &mut Names<'_, '_>,
) -> Result<FxHashMap<Sid, Arc<EdgeData>>> {
    let mut data = FxHashMap::default();
    data.reserve(edges.len());
    let ctx = names.ctx;
    let mut ends: FxHashMap<Gui, (Str, Vec<Str>)> = FxHashMap::default();
    for chunk in edges.chunks(CHUNK_ELEMENTS) {
        ctx.check()?;
        let mut rows = EdgeRows::default();
        ctx.view.edges(&EdgeRead { ids: true, properties: wanted.clone() }, chunk, &mut rows)?;
        read_ends(chunk, vertices, &mut ends, names)?;
        let end = |gui: Gui| match vertices.get(&gui) {
            Some(vertex) => (vertex.id.clone(), vertex.labels.clone()),
            None => ends.get(&gui).cloned().unwrap_or_default(),
        };
        let mut bytes = 0;
        for (row, edge) in chunk.iter().enumerate() {
            let id = rows.ids.get(row).filter(|id| !id.is_empty()).cloned();
            let (source_id, source_labels) = end(edge.source);
            let (target_id, target_labels) = end(edge.target);
            let cells = rows.cells_of(row).iter();
            let edge_data = EdgeData {
                edge: *edge,
                id: id.unwrap_or_else(|| generated_edge_id(edge.source, edge.sid)),
                ids: ctx.ids,
                label: names.one(edge.label),
                source_id,
                target_id,
                source_labels,
                target_labels,
                properties: cells.map(|cell| (names.one(cell.key), cell.value.clone())).collect(),
            };
            bytes += edge_bytes(&edge_data);
            data.insert(edge.sid, Arc::new(edge_data));
        }
        ctx.memory.charge(bytes)?;
    }
    Ok(data)
}

/// Adds id and labels of the vertices at the ends of `edges` that are neither in `vertices` nor in `ends`.
fn read_ends(
    edges: &[Edge],
    vertices: &FxHashMap<Gui, Arc<VertexData>>,
    ends: &mut FxHashMap<Gui, (Str, Vec<Str>)>,
    names: &mut Names<'_, '_>,
) -> Result<()> {
    let mut missing: Vec<Gui> = edges.iter().flat_map(|e| [e.source, e.target]).collect();
    missing.sort_unstable();
    missing.dedup();
    missing.retain(|gui| !vertices.contains_key(gui) && !ends.contains_key(gui));
    if missing.is_empty() {
        return Ok(());
    }
    let read = VertexRead { ids: true, labels: true, ..VertexRead::default() };
    let mut rows = VertexRows::default();
    names.ctx.view.vertices(&read, &missing, &mut rows)?;
    for (row, gui) in missing.iter().enumerate() {
        let id = rows.ids.get(row).cloned().unwrap_or_default();
        ends.insert(*gui, (id, names.all(rows.labels_of(row))));
    }
    Ok(())
}

/// Bytes of a vertex's data. Names of labels and keys belong to the dictionary.
fn vertex_bytes(data: &VertexData) -> usize {
    size_of::<VertexData>()
        + text_bytes(&data.id)
        + data.labels.capacity() * size_of::<Str>()
        + data.properties.iter().map(property_bytes).sum::<usize>()
}

fn property_bytes(property: &PropertyData) -> usize {
    let PropertyData { values, meta, .. } = property;
    let spilled = if values.spilled() { values.capacity() * size_of::<Value>() } else { 0 };
    size_of::<PropertyData>()
        + spilled
        + values.iter().map(Value::heap_bytes).sum::<usize>()
        + meta.capacity() * size_of::<(u32, Str, Value)>()
        + meta.iter().map(|(.., value)| value.heap_bytes()).sum::<usize>()
}

/// Bytes of an edge's data.
fn edge_bytes(data: &EdgeData) -> usize {
    let EdgeData { id, source_id, target_id, source_labels, target_labels, properties, .. } = data;
    size_of::<EdgeData>()
        + [id, source_id, target_id].into_iter().map(text_bytes).sum::<usize>()
        + (source_labels.capacity() + target_labels.capacity()) * size_of::<Str>()
        + properties.capacity() * size_of::<(Str, Value)>()
        + properties.iter().map(|(_, value)| value.heap_bytes()).sum::<usize>()
}

/// Bytes of a text outside of its `Str`; short ones have none.
fn text_bytes(text: &Str) -> usize {
    if text.is_heap_allocated() { text.len() } else { 0 }
}

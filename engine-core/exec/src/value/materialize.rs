//! Turns handles in result rows into data: the last step before an answer leaves the executor.
//!
//! Flow: find all handles, nested ones too → read the distinct vertices, edges and ends of edges, one call each → put
//! the data in their place. Values without handles are not touched. Elements that are gone are answered as far as
//! their handle is known: without labels and properties.

use crate::{Context, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;
use tidegraph_apl::{CellMeta, EdgeRead, EdgeRows, Projection, PropertyCell, VertexRead, VertexRows};
use tidegraph_types::{
    Edge, EdgeData, Gui, Map, PropertyData, PropertyRef, Sid, Str, Token, Value, VertexData,
    element::generated_edge_id,
};

/// Replaces every handle in the rows by data, also inside lists, maps, paths and properties; unbound becomes null.
pub fn materialize(rows: &mut [Vec<Value>], ctx: &Context<'_>) -> Result<()> {
    let mut found = Found::default();
    for value in rows.iter().flatten() {
        found.look(value);
    }
    if !found.any {
        return Ok(());
    }
    let data = Data::read(found, ctx)?;
    for value in rows.iter_mut().flatten() {
        data.replace(value);
    }
    Ok(())
}

/// The distinct handles in the order in which they were met.
#[derive(Default)]
struct Found {
    vertices: Vec<Gui>,
    edges: Vec<Edge>,
    known_vertices: FxHashSet<Gui>,
    known_edges: FxHashSet<Sid>,
    /// Whether there is anything to replace.
    any: bool,
}

impl Found {
    fn look(&mut self, value: &Value) {
        match value {
            Value::Unbound => self.any = true,
            Value::Vertex(gui) => {
                self.any = true;
                if self.known_vertices.insert(*gui) {
                    self.vertices.push(*gui);
                }
            }
            Value::Edge(edge) => {
                self.any = true;
                if self.known_edges.insert(edge.sid) {
                    self.edges.push(*edge);
                }
            }
            Value::List(items) | Value::Set(items) => items.iter().for_each(|item| self.look(item)),
            Value::Map(map) => map.iter().for_each(|(key, item)| {
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
        Value::Map(map) => map.iter().any(|(key, item)| has_handle(key) || has_handle(item)),
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
    fn read(found: Found, ctx: &Context<'_>) -> Result<Self> {
        let mut names = Names { ctx, known: FxHashMap::default() };
        let mut vertices = FxHashMap::default();
        if !found.vertices.is_empty() {
            let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: true };
            let mut rows = VertexRows::default();
            ctx.view.vertices(&read, &found.vertices, &mut rows)?;
            vertices.reserve(found.vertices.len());
            for (row, gui) in found.vertices.iter().enumerate() {
                let data = VertexData {
                    gui: *gui,
                    id: rows.ids.get(row).cloned().unwrap_or_default(),
                    labels: names.all(rows.labels_of(row)),
                    properties: properties(&rows, row, &mut names),
                };
                vertices.insert(*gui, Arc::new(data));
            }
        }
        let edges = read_edges(&found.edges, &vertices, &mut names)?;
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
            Value::Map(map) => {
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
    known: FxHashMap<Token, Str>,
}

impl Names<'_, '_> {
    fn one(&mut self, token: Token) -> Str {
        let catalog = self.ctx.view.catalog();
        self.known.entry(token).or_insert_with(|| catalog.name(token)).clone()
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

/// Edges, and of the vertices at their ends those that were not read already.
fn read_edges(
    edges: &[Edge],
    vertices: &FxHashMap<Gui, Arc<VertexData>>,
    names: &mut Names<'_, '_>,
) -> Result<FxHashMap<Sid, Arc<EdgeData>>> {
    let mut data = FxHashMap::default();
    if edges.is_empty() {
        return Ok(data);
    }
    let view = &names.ctx.view;
    let mut rows = EdgeRows::default();
    view.edges(&EdgeRead { ids: true, properties: Projection::All }, edges, &mut rows)?;

    let mut missing: Vec<Gui> = edges.iter().flat_map(|e| [e.source, e.target]).collect();
    missing.sort_unstable();
    missing.dedup();
    missing.retain(|gui| !vertices.contains_key(gui));
    let mut ends: FxHashMap<Gui, (Str, Vec<Str>)> = FxHashMap::default();
    if !missing.is_empty() {
        let read = VertexRead { ids: true, labels: true, ..VertexRead::default() };
        let mut rows = VertexRows::default();
        view.vertices(&read, &missing, &mut rows)?;
        for (row, gui) in missing.iter().enumerate() {
            let id = rows.ids.get(row).cloned().unwrap_or_default();
            ends.insert(*gui, (id, names.all(rows.labels_of(row))));
        }
    }
    let end = |gui: Gui| match vertices.get(&gui) {
        Some(vertex) => (vertex.id.clone(), vertex.labels.clone()),
        None => ends.get(&gui).cloned().unwrap_or_default(),
    };
    data.reserve(edges.len());
    for (row, edge) in edges.iter().enumerate() {
        let id = rows.ids.get(row).filter(|id| !id.is_empty()).cloned();
        let (source_id, source_labels) = end(edge.source);
        let (target_id, target_labels) = end(edge.target);
        let edge_data = EdgeData {
            edge: *edge,
            id: id.unwrap_or_else(|| generated_edge_id(edge.source, edge.sid)),
            label: names.one(edge.label),
            source_id,
            target_id,
            source_labels,
            target_labels,
            properties: rows
                .cells_of(row)
                .iter()
                .map(|cell| (names.one(cell.key), cell.value.clone()))
                .collect(),
        };
        data.insert(edge.sid, Arc::new(edge_data));
    }
    Ok(data)
}

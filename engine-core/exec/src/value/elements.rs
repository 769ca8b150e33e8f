//! Data of the elements that a batch's expressions read, read in batches.
//!
//! Elements in slots are read when the evaluator is prepared, with one call for each slot and kind. Other elements
//! (items of a list, ends of an edge) are read into a cache that lives as long as the batch: in full, or what the
//! expressions use of all of them, if that is known.
//!
//! What must never happen: a call for each row of a slot; a cache that outlives its batch, since the request may write
//! between two batches.

use super::need::Need;
use super::record::Record;
use crate::{Batch, Column, Context, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tidegraph_apl::{EdgeRead, EdgeRows, Projection, PropertyCell, VertexRead, VertexRows};
use tidegraph_plan::Slot;
use tidegraph_types::{Edge, ElementIds, Gui, Sid, Str, Token, Value};

/// Marks a row of the batch for which nothing was read.
const NO_ROW: u32 = u32::MAX;

/// Maps rows of the batch to rows of an answer.
enum RowMap {
    /// The same row.
    Same,
    /// The first row for all: a constant.
    First,
    /// The listed row for each.
    Listed(Vec<u32>),
}

impl RowMap {
    fn get(&self, row: usize) -> Option<usize> {
        match self {
            Self::Same => Some(row),
            Self::First => Some(0),
            Self::Listed(rows) => rows.get(row).filter(|r| **r != NO_ROW).map(|r| *r as usize),
        }
    }
}

/// The data of one slot's elements.
struct SlotData {
    slot: Slot,
    vertices: Option<(VertexRows, RowMap)>,
    edges: Option<(EdgeRows, RowMap)>,
}

/// What was read of a slot that holds a vertex in every row.
#[derive(Clone, Copy)]
pub(crate) struct SlotVertices<'s> {
    rows: &'s VertexRows,
    map: &'s RowMap,
}

impl<'s> SlotVertices<'s> {
    /// Borrows the only value of a key in a row; `None` if there is none or there are several, or the vertex is absent.
    #[inline]
    pub fn single(self, row: usize, key: Token) -> Option<&'s Value> {
        match self.rows.cells_of(self.map.get(row)?) {
            [one] => (one.key == key).then_some(&one.value),
            cells => {
                let mut values = cells.iter().filter(|cell| cell.key == key).map(|cell| &cell.value);
                let first = values.next();
                if values.next().is_some() { None } else { first }
            }
        }
    }

    /// Returns the labels in a row; `None` if the vertex is absent.
    #[inline]
    pub fn labels(self, row: usize) -> Option<&'s [Token]> {
        let row = self.map.get(row)?;
        self.rows.present.get(row).is_some_and(|present| *present).then(|| self.rows.labels_of(row))
    }
}

/// A row of an answer; all elements that were read together share the answer.
type Cached<R> = (Rc<R>, u32);

/// A name and its token; `None` if the dictionary lacks the name.
type NamedToken = (Str, Option<Token>);

/// Id and label of a vertex at one end of an edge.
pub(crate) type End = (Str, Str);

/// The data of elements for one batch.
pub(crate) struct Elements<'p, 'a> {
    ctx: &'p Context<'a>,
    slots: SmallVec<[SlotData; 2]>,
    vertices: RefCell<FxHashMap<Gui, Cached<VertexRows>>>,
    edges: RefCell<FxHashMap<Sid, Cached<EdgeRows>>>,
    ends: RefCell<FxHashMap<Gui, End>>,
    /// What is used of elements that are not in slots; `None`: everything.
    by_value: RefCell<Option<Need>>,
    names: RefCell<FxHashMap<Token, Str>>,
    tokens: RefCell<SmallVec<[NamedToken; 4]>>,
    /// Bytes charged to the request's memory for the data.
    charged: Cell<usize>,
}

impl Drop for Elements<'_, '_> {
    fn drop(&mut self) {
        self.ctx.memory.release(self.charged.get());
    }
}

impl<'p, 'a> Elements<'p, 'a> {
    /// Returns how the request reads the text of ids.
    pub fn ids(&self) -> ElementIds {
        self.ctx.ids
    }

    /// Reads what expressions need of the elements in slots. `by_value`: what they use of others, if that is known.
    pub fn read(
        ctx: &'p Context<'a>,
        batch: &Batch,
        needs: &[(Slot, Need)],
        by_value: Option<&Need>,
    ) -> Result<Self> {
        let mut elements = Self {
            ctx,
            slots: SmallVec::new(),
            vertices: RefCell::default(),
            edges: RefCell::default(),
            ends: RefCell::default(),
            by_value: RefCell::new(by_value.cloned()),
            names: RefCell::default(),
            tokens: RefCell::default(),
            charged: Cell::new(0),
        };
        for (slot, need) in needs {
            if let Some(column) = batch.column(*slot) {
                elements.read_slot(*slot, need, column)?;
            }
        }
        Ok(elements)
    }

    fn read_slot(&mut self, slot: Slot, need: &Need, column: &Column) -> Result<()> {
        let mut data = SlotData { slot, vertices: None, edges: None };
        match column {
            Column::Vertices(guis) => data.vertices = self.read_vertices(need, guis)?,
            Column::Edges(edges) => data.edges = self.read_edges(need, edges, RowMap::Same)?,
            Column::Constant(value, _) => {
                if let Some(gui) = value.as_vertex() {
                    data.vertices = self.read_vertices(need, &[gui])?.map(|(rows, _)| (rows, RowMap::First));
                } else if let Some(edge) = value.as_edge() {
                    data.edges = self.read_edges(need, &[edge], RowMap::First)?;
                }
            }
            Column::Integers(_) => {}
            Column::Values(values) => {
                let (guis, map) = listed(values, Value::as_vertex);
                if !guis.is_empty() {
                    let rows = self.vertex_rows(&vertex_read(self, need), &guis)?;
                    data.vertices = Some((rows, map));
                }
                let (edges, map) = listed(values, Value::as_edge);
                if !edges.is_empty() {
                    data.edges = self.read_edges(need, &edges, map)?;
                }
                if need.ids || need.all || !need.keys.is_empty() {
                    // A property is read through its owner.
                    self.warm(values.iter().filter(|value| matches!(value, Value::Property(_))), false)?;
                }
            }
        }
        if data.vertices.is_some() || data.edges.is_some() {
            self.slots.push(data);
        }
        Ok(())
    }

    /// Reads vertices. Successive equal ones, as an expansion makes them, are read once.
    fn read_vertices(&self, need: &Need, guis: &[Gui]) -> Result<Option<(VertexRows, RowMap)>> {
        let read = vertex_read(self, need);
        if !guis.windows(2).any(|pair| pair[0] == pair[1]) {
            return Ok(Some((self.vertex_rows(&read, guis)?, RowMap::Same)));
        }
        let mut frontier: Vec<Gui> = Vec::new();
        let mut rows = Vec::with_capacity(guis.len());
        for gui in guis {
            if frontier.last() != Some(gui) {
                frontier.push(*gui);
            }
            rows.push(frontier.len() as u32 - 1);
        }
        Ok(Some((self.vertex_rows(&read, &frontier)?, RowMap::Listed(rows))))
    }

    fn vertex_rows(&self, read: &VertexRead, guis: &[Gui]) -> Result<VertexRows> {
        let mut rows = VertexRows::default();
        self.ctx.view.vertices(read, guis, &mut rows)?;
        self.charge(&rows.cells)?;
        Ok(rows)
    }

    fn edge_rows(&self, read: &EdgeRead, edges: &[Edge]) -> Result<EdgeRows> {
        let mut rows = EdgeRows::default();
        self.ctx.view.edges(read, edges, &mut rows)?;
        self.charge(&rows.cells)?;
        Ok(rows)
    }

    /// Charges cells without the long strings in them, which are shared with storage.
    fn charge(&self, cells: &[PropertyCell]) -> Result<()> {
        let bytes = size_of_val(cells);
        self.ctx.memory.charge(bytes)?;
        self.charged.set(self.charged.get() + bytes);
        Ok(())
    }

    fn read_edges(&self, need: &Need, edges: &[Edge], map: RowMap) -> Result<Option<(EdgeRows, RowMap)>> {
        if need.ends {
            self.read_ends(edges)?;
        }
        let properties = self.projection(need);
        if !need.ids && properties == Projection::None {
            // The handle holds everything else.
            return Ok(None);
        }
        let rows = self.edge_rows(&EdgeRead { ids: need.ids, properties }, edges)?;
        Ok(Some((rows, map)))
    }

    fn projection(&self, need: &Need) -> Projection {
        if need.all {
            Projection::All
        } else if need.keys.is_empty() {
            Projection::None
        } else {
            Projection::Keys(need.keys.iter().filter_map(|key| self.token(key)).collect())
        }
    }

    /// Returns the request's context.
    pub fn ctx(&self) -> &'p Context<'a> {
        self.ctx
    }

    /// Reads ids and labels of the vertices at the ends of edges.
    fn read_ends(&self, edges: &[Edge]) -> Result<()> {
        let mut missing: Vec<Gui> = edges.iter().flat_map(|e| [e.source, e.target]).collect();
        missing.sort_unstable();
        missing.dedup();
        missing.retain(|gui| !self.ends.borrow().contains_key(gui));
        if missing.is_empty() {
            return Ok(());
        }
        let read = VertexRead { ids: true, labels: true, ..VertexRead::default() };
        let rows = self.vertex_rows(&read, &missing)?;
        let ends = missing.iter().enumerate().map(|(row, gui)| {
            let id = rows.ids.get(row).cloned().unwrap_or_default();
            (*gui, (id, self.joined(rows.labels_of(row))))
        });
        self.ends.borrow_mut().extend(ends);
        Ok(())
    }

    /// Returns id and label of the vertex at one end of an edge.
    pub fn end(&self, edge: Edge, gui: Gui) -> Result<End> {
        if let Some(end) = self.ends.borrow().get(&gui) {
            return Ok(end.clone());
        }
        self.read_ends(&[edge])?;
        Ok(self.ends.borrow().get(&gui).cloned().unwrap_or_default())
    }

    /// Returns what was read of a slot of the batch; `None` if a row may hold no vertex, or nothing was read.
    pub fn vertices_in<'s>(&'s self, batch: &Batch, slot: Slot) -> Option<SlotVertices<'s>> {
        let column = batch.column(slot)?;
        let data = self.slots.iter().find(|data| data.slot == slot)?;
        let (rows, map) = data.vertices.as_ref()?;
        matches!(**column, Column::Vertices(_)).then_some(SlotVertices { rows, map })
    }

    /// Returns the element in a slot's row, if the row holds one that was read or needs no read.
    pub fn in_slot<'s>(&'s self, batch: &Batch, slot: Slot, row: usize) -> Option<Record<'s>> {
        let column = batch.column(slot)?;
        let data = self.slots.iter().find(|data| data.slot == slot);
        if let Some(gui) = column.vertex(row) {
            let (rows, map) = data?.vertices.as_ref()?;
            return Some(Record::vertex(gui, rows, map.get(row)?));
        }
        let edge = column.edge(row)?;
        match data.and_then(|data| data.edges.as_ref()) {
            Some((rows, map)) => Some(Record::edge(edge, rows, map.get(row)?)),
            None => Some(Record::handle(edge)),
        }
    }

    /// Calls `use_it` with the data of any element; returns `None` if the value is no element.
    pub fn with<R>(&self, value: &Value, use_it: impl FnOnce(Record<'_>) -> Result<R>) -> Option<Result<R>> {
        if let Some(gui) = value.as_vertex() {
            let mut known = self.vertices.borrow().get(&gui).cloned();
            if known.is_none() {
                if let Err(error) = self.cache(&[gui], &[]) {
                    return Some(Err(error));
                }
                known = self.vertices.borrow().get(&gui).cloned();
            }
            let (rows, row) = known?;
            Some(use_it(Record::vertex(gui, &rows, row as usize)))
        } else if let Some(edge) = value.as_edge() {
            let mut known = self.edges.borrow().get(&edge.sid).cloned();
            if known.is_none() {
                if let Err(error) = self.cache(&[], &[edge]) {
                    return Some(Err(error));
                }
                known = self.edges.borrow().get(&edge.sid).cloned();
            }
            let (rows, row) = known?;
            Some(use_it(Record::edge(edge, &rows, row as usize)))
        } else {
            None
        }
    }

    /// Calls `use_it` with all data of the vertex that owns a property, as [`Elements::with`] does.
    pub fn with_owner<R>(
        &self,
        owner: &Value,
        use_it: impl FnOnce(Record<'_>) -> Result<R>,
    ) -> Option<Result<R>> {
        self.read_in_full();
        self.with(owner, use_it)
    }

    /// Reads elements that are not in slots in full from now on: no expression says what is used of a property's owner.
    fn read_in_full(&self) {
        if self.by_value.take().is_some() {
            self.vertices.borrow_mut().clear();
            self.edges.borrow_mut().clear();
        }
    }

    /// Reads into the cache the elements that these values are or belong to; with `items` also those in lists.
    pub fn warm<'v>(&self, values: impl Iterator<Item = &'v Value>, items: bool) -> Result<()> {
        let (mut guis, mut edges) = (vec![], vec![]);
        for value in values {
            let values =
                if items { value.as_slice().unwrap_or_default() } else { std::slice::from_ref(value) };
            if values.iter().any(|value| matches!(value, Value::Property(_))) {
                self.read_in_full();
            }
            guis.extend(values.iter().filter_map(|value| match value {
                Value::Property(property) => property.owner.as_vertex(),
                other => other.as_vertex(),
            }));
            edges.extend(values.iter().filter_map(Value::as_edge));
        }
        // Rows of an expansion have the same elements one after the other.
        guis.dedup();
        edges.dedup();
        self.cache(&guis, &edges)
    }

    /// Reads the elements that are not in the cache.
    fn cache(&self, guis: &[Gui], edges: &[Edge]) -> Result<()> {
        let mut missing: SmallVec<[Gui; 1]> = SmallVec::new();
        missing.extend(guis.iter().copied().filter(|gui| !self.vertices.borrow().contains_key(gui)));
        if missing.len() > 1 {
            missing.sort_unstable();
            missing.dedup();
        }
        if !missing.is_empty() {
            let read =
                self.by_value.borrow().as_ref().map_or_else(whole_vertex, |need| vertex_read(self, need));
            let rows = Rc::new(self.vertex_rows(&read, &missing)?);
            let entries = missing.iter().zip(0..).map(|(gui, row)| (*gui, (Rc::clone(&rows), row)));
            self.vertices.borrow_mut().extend(entries);
        }
        let mut missing: SmallVec<[Edge; 1]> = SmallVec::new();
        missing.extend(edges.iter().copied().filter(|e| !self.edges.borrow().contains_key(&e.sid)));
        if missing.len() > 1 {
            missing.sort_unstable();
            missing.dedup();
        }
        if !missing.is_empty() {
            let whole = || EdgeRead { ids: true, properties: Projection::All };
            let used = |need: &Need| EdgeRead { ids: need.ids, properties: self.projection(need) };
            let read = self.by_value.borrow().as_ref().map_or_else(whole, used);
            let rows = Rc::new(self.edge_rows(&read, &missing)?);
            let entries = missing.iter().zip(0..).map(|(e, row)| (e.sid, (Rc::clone(&rows), row)));
            self.edges.borrow_mut().extend(entries);
        }
        Ok(())
    }

    /// Returns the token of a name. The first ones are cached, since rows use the same few names.
    pub fn token(&self, name: &Str) -> Option<Token> {
        let mut tokens = self.tokens.borrow_mut();
        if let Some((_, token)) = tokens.iter().find(|(known, _)| known == name) {
            return *token;
        }
        let token = self.ctx.view.token(name);
        // Computed keys may be many; literal ones come first.
        if tokens.len() < 32 {
            tokens.push((name.clone(), token));
        }
        token
    }

    /// Returns the name of a token.
    pub fn name(&self, token: Token) -> Str {
        let mut names = self.names.borrow_mut();
        names.entry(token).or_insert_with(|| self.ctx.view.name(token)).clone()
    }

    /// Returns the labels of a vertex as Gremlin shows them: as one text.
    pub fn joined(&self, labels: &[Token]) -> Str {
        match labels {
            [one] => self.name(*one),
            several => {
                let names: Vec<Str> = several.iter().map(|label| self.name(*label)).collect();
                Str::from(names.join("::"))
            }
        }
    }
}

/// Everything that a vertex has.
fn whole_vertex() -> VertexRead {
    VertexRead { ids: true, labels: true, properties: Projection::All, meta: true }
}

fn vertex_read(elements: &Elements<'_, '_>, need: &Need) -> VertexRead {
    // Meta-properties are read with their vertex, into the cache.
    VertexRead { ids: need.ids, labels: need.labels, properties: elements.projection(need), meta: false }
}

/// Returns the handles of one kind among values, successive equal ones once, and the map of rows to them.
fn listed<H: Copy + PartialEq>(values: &[Value], handle: impl Fn(&Value) -> Option<H>) -> (Vec<H>, RowMap) {
    let mut handles: Vec<H> = Vec::new();
    let rows = values.iter().map(|value| match handle(value) {
        Some(h) => {
            if handles.last() != Some(&h) {
                handles.push(h);
            }
            handles.len() as u32 - 1
        }
        None => NO_ROW,
    });
    let rows = rows.collect();
    (handles, RowMap::Listed(rows))
}

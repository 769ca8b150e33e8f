//! Writes that create and delete elements. A batch is written at once; its rows are yielded in their order, with the
//! new element bound.

use super::{Boxed, Feed, Operator, Want, compute};
use crate::view::{MetaOwner, NewEdge, NewVertex};
use crate::{Batch, Column, Context, Error, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegraph_apl::{EdgeRead, EdgeRows, Projection, VertexRead, VertexRows};
use tidegraph_plan::{Expr, Op, PropertyAssignment, Slot};
use tidegraph_types::{
    Big, Cardinality, Edge, ElementIds, Gui, PropertyRef, PropertyWrite, Str, Token, Value,
};

/// Tokens of the names that an operator writes; missing ones are added to the dictionary.
#[derive(Default)]
pub(super) struct Tokens {
    known: FxHashMap<Str, Token>,
}

impl Tokens {
    /// Ensures that all names have tokens, with one call for the missing ones.
    pub(super) fn intern<'n>(
        &mut self,
        names: impl Iterator<Item = &'n Str>,
        ctx: &Context<'_>,
    ) -> Result<()> {
        let mut missing: Vec<Str> = names.filter(|name| !self.known.contains_key(*name)).cloned().collect();
        if !missing.is_empty() {
            missing.sort_unstable();
            missing.dedup();
            let tokens = ctx.view.catalog().intern(&missing)?;
            self.known.extend(missing.into_iter().zip(tokens));
        }
        Ok(())
    }

    /// Returns the token of an interned name.
    pub(super) fn of(&self, name: &Str) -> Result<Token> {
        match self.known.get(name) {
            Some(token) => Ok(*token),
            None => Err(Error::Plan(format!("the name {name:?} was not interned"))),
        }
    }
}

/// Checks that a property can hold a value; returns `None` for null. An integer of any size is stored as one of 64 bits,
/// if it is one.
pub(super) fn storable(key: &Str, value: Value) -> Result<Option<Value>> {
    let value = match &value {
        Value::Big(big) => match (&**big, big.as_i64()) {
            (Big::Integer(_), Some(whole)) => Value::Long(whole),
            _ => value,
        },
        _ => value,
    };
    match value {
        value if value.is_null() => Ok(None),
        value if value.is_storable() => Ok(Some(value)),
        value => Err(Error::NotStorable { key: key.clone(), type_name: value.type_name() }),
    }
}

/// A property key.
pub(super) fn key_text(place: &'static str, value: &Value) -> Result<Str> {
    match value {
        Value::String(key) => Ok(key.clone()),
        other => Err(Error::of_type(place, "a string as property key", other)),
    }
}

/// Returns the entries of a map, or the properties of an element, as properties to write.
pub(super) fn entries(
    place: &'static str,
    value: &Value,
    ctx: &Context<'_>,
) -> Result<Vec<(Str, Cardinality, Value)>> {
    let name = |token| ctx.view.catalog().name(token);
    match value {
        Value::Null | Value::Unbound => Ok(vec![]),
        Value::Map(map) => map
            .iter()
            .map(|(key, value)| Ok((key_text(place, key)?, Cardinality::Single, value.clone())))
            .collect(),
        other => {
            if let Some(gui) = other.as_vertex() {
                let read = VertexRead { properties: Projection::All, ..VertexRead::default() };
                let mut rows = VertexRows::default();
                ctx.view.vertices(&read, &[gui], &mut rows)?;
                let cell = |c: tidegraph_apl::PropertyCell| (name(c.key), c.cardinality, c.value);
                Ok(rows.cells.into_iter().map(cell).collect())
            } else if let Some(edge) = other.as_edge() {
                let read = EdgeRead { ids: false, properties: Projection::All };
                let mut rows = EdgeRows::default();
                ctx.view.edges(&read, &[edge], &mut rows)?;
                Ok(rows.cells.into_iter().map(|c| (name(c.key), Cardinality::Single, c.value)).collect())
            } else {
                Err(Error::of_type(place, "a map", other))
            }
        }
    }
}

/// Charges the growth of the pending writes since they had `before` bytes.
pub(super) fn charge_pending(before: usize, ctx: &Context<'_>) -> Result<()> {
    ctx.memory.charge(ctx.view.pending_bytes().saturating_sub(before))
}

/// The columns of a new element's properties.
struct Properties<'p> {
    assignments: &'p [PropertyAssignment],
    from: Option<&'p Expr>,
}

/// A property of a new element, before its key has a token.
type Named = (Str, Cardinality, Value);

impl Properties<'_> {
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.assignments.iter().flat_map(|a| [&a.key, &a.value]).chain(self.from)
    }

    /// Returns the properties of a row, from the columns of `exprs`.
    fn row(
        &self,
        place: &'static str,
        columns: &[Arc<Column>],
        row: usize,
        ctx: &Context<'_>,
    ) -> Result<Vec<Named>> {
        let mut all = vec![];
        for (assignment, pair) in self.assignments.iter().zip(columns.chunks(2)) {
            let key = key_text(place, &pair[0].get(row))?;
            if let Some(value) = storable(&key, pair[1].get(row))? {
                all.push((key, assignment.cardinality, value));
            }
        }
        if let (Some(_), Some(column)) = (self.from, columns.last()) {
            for (key, cardinality, value) in entries(place, &column.get(row), ctx)? {
                if let Some(value) = storable(&key, value)? {
                    all.push((key, cardinality, value));
                }
            }
        }
        Ok(all)
    }
}

fn chosen_id(
    place: &'static str,
    column: Option<&Arc<Column>>,
    row: usize,
    ids: ElementIds,
) -> Result<Option<Str>> {
    let Some(value) = column.map(|column| column.get(row)).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    match ids.text(&value) {
        Some(id) => Ok(Some(id)),
        None if ids.have_types() => {
            Err(Error::of_type(place, "a string, an integer or a UUID as id", &value))
        }
        None => Err(Error::of_type(place, "a string as id", &value)),
    }
}

/// The element to create for each row.
enum Shape<'p> {
    /// A vertex with these labels.
    Vertex(&'p [Expr]),
    /// An edge: label, source, target.
    Edge([&'p Expr; 3]),
}

/// A new element, before its names have tokens. An edge has one label and its ends.
struct Draft {
    id: Option<Str>,
    labels: SmallVec<[Str; 1]>,
    ends: Option<(Gui, Gui)>,
    properties: Vec<Named>,
}

/// Creates a vertex or an edge for each row.
pub(super) struct Create<'p> {
    input: Boxed<'p>,
    out: Slot,
    id: Option<&'p Expr>,
    shape: Shape<'p>,
    properties: Properties<'p>,
    tokens: Tokens,
}

impl<'p> Create<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let (out, id, shape, assignments, from) = match op {
            Op::CreateVertex { out, id, labels, properties, properties_from, .. } => {
                (out, id, Shape::Vertex(labels), properties, properties_from)
            }
            Op::CreateEdge { out, id, label, from, to, properties, properties_from, .. } => {
                (out, id, Shape::Edge([label, from, to]), properties, properties_from)
            }
            _ => return Err(Error::Plan("not a creation".to_owned())),
        };
        let properties = Properties { assignments, from: from.as_ref() };
        Ok(Self { input, out: *out, id: id.as_ref(), shape, properties, tokens: Tokens::default() })
    }

    fn place(&self) -> &'static str {
        match self.shape {
            Shape::Vertex(_) => "creating a vertex",
            Shape::Edge(_) => "creating an edge",
        }
    }

    fn drafts(&self, batch: &Batch, ctx: &Context<'_>) -> Result<Vec<Draft>> {
        let place = self.place();
        let own: SmallVec<[&Expr; 3]> = match &self.shape {
            Shape::Vertex(labels) => labels.iter().collect(),
            Shape::Edge(parts) => parts.iter().copied().collect(),
        };
        let count = own.len();
        let exprs = self.id.into_iter().chain(own).chain(self.properties.exprs());
        let columns = compute::columns(exprs, batch, ctx)?;
        let (id, rest) = columns.split_at(usize::from(self.id.is_some()));
        let (own, properties) = rest.split_at(count);
        let draft = |row| {
            let mut labels = SmallVec::new();
            let ends = match &self.shape {
                Shape::Vertex(_) => {
                    own.iter().try_for_each(|column| add_labels(&column.get(row), &mut labels))?;
                    None
                }
                Shape::Edge(_) => {
                    match own[0].get(row) {
                        Value::String(label) => labels.push(label),
                        other => return Err(Error::of_type(place, "a string as label", &other)),
                    }
                    Some((end(&own[1], row)?, end(&own[2], row)?))
                }
            };
            let id = chosen_id(place, id.first(), row, ctx.ids)?;
            Ok(Draft { id, labels, ends, properties: self.properties.row(place, properties, row, ctx)? })
        };
        (0..batch.len).map(draft).collect()
    }

    fn create(&mut self, batch: &Batch, ctx: &Context<'_>) -> Result<Column> {
        let drafts = self.drafts(batch, ctx)?;
        let names = drafts.iter().flat_map(|d| d.labels.iter().chain(d.properties.iter().map(|(k, _, _)| k)));
        self.tokens.intern(names, ctx)?;
        let (mut vertices, mut edges) = (vec![], vec![]);
        for Draft { id, labels, ends, properties } in drafts {
            let mut labels = labels.iter().map(|name| self.tokens.of(name));
            let properties = properties.into_iter().map(|(key, cardinality, value)| {
                Ok(PropertyWrite { key: self.tokens.of(&key)?, cardinality, value })
            });
            match (ends, labels.next()) {
                (Some((source, target)), Some(label)) => {
                    let properties = properties.map(|p: Result<_>| p.map(|p| (p.key, p.value)));
                    let properties = properties.collect::<Result<_>>()?;
                    edges.push(NewEdge { id, source, target, label: label?, properties });
                }
                (_, first) => vertices.push(NewVertex {
                    id,
                    labels: first.into_iter().chain(labels).collect::<Result<_>>()?,
                    properties: properties.collect::<Result<_>>()?,
                }),
            }
        }
        match self.shape {
            Shape::Vertex(_) => Ok(Column::Vertices(ctx.view.create_vertices(vertices, ctx.entropy)?)),
            Shape::Edge(_) => Ok(Column::Edges(ctx.view.create_edges(edges)?)),
        }
    }
}

fn add_labels(value: &Value, out: &mut SmallVec<[Str; 1]>) -> Result<()> {
    match value {
        Value::String(label) => out.push(label.clone()),
        Value::List(items) | Value::Set(items) => {
            items.iter().try_for_each(|item| add_labels(item, out))?;
        }
        other => return Err(Error::of_type("creating a vertex", "a string as label", other)),
    }
    Ok(())
}

/// Returns the vertex at one end of a new edge.
fn end(column: &Column, row: usize) -> Result<Gui> {
    match column.vertex(row) {
        Some(gui) => Ok(gui),
        None => Err(Error::of_type("creating an edge", "a vertex at both ends", &column.get(row))),
    }
}

impl Operator for Create<'_> {
    fn next(&mut self, ctx: &Context<'_>, _: Want<'_>) -> Result<Option<Batch>> {
        let Some(mut batch) = self.input.next(ctx, Want::ALL)? else { return Ok(None) };
        ctx.check()?;
        let before = ctx.view.pending_bytes();
        let made = self.create(&batch, ctx)?;
        charge_pending(before, ctx)?;
        batch.set(self.out, made);
        Ok(Some(batch))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.input.feed(ctx, feed);
    }
}

/// Deletes elements and properties.
pub(super) struct Delete<'p> {
    input: Boxed<'p>,
    targets: &'p [Expr],
    detach: bool,
}

/// The elements and properties that a batch deletes.
#[derive(Default)]
struct Doomed {
    vertices: Vec<Gui>,
    edges: Vec<Edge>,
    properties: Vec<Arc<PropertyRef>>,
}

impl Doomed {
    fn add(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Null | Value::Unbound => {}
            Value::List(items) | Value::Set(items) => items.iter().try_for_each(|item| self.add(item))?,
            Value::Path(path) => path.objects.iter().try_for_each(|object| self.add(object))?,
            Value::Property(property) => self.properties.push(Arc::clone(property)),
            other => {
                if let Some(gui) = other.as_vertex() {
                    self.vertices.push(gui);
                } else if let Some(edge) = other.as_edge() {
                    self.edges.push(edge);
                } else {
                    return Err(Error::of_type("delete", "vertices, edges, paths or properties", other));
                }
            }
        }
        Ok(())
    }

    fn delete(mut self, detach: bool, ctx: &Context<'_>) -> Result<()> {
        // All values of a vertex's key together, the last of equivalent values first: the numbers of the others stay.
        self.properties.sort_by(|a, b| {
            let by_owner = a.owner.as_vertex().cmp(&b.owner.as_vertex()).then_with(|| a.key.cmp(&b.key));
            by_owner.then_with(|| b.nth.cmp(&a.nth))
        });
        let together = |a: &Arc<PropertyRef>, b: &Arc<PropertyRef>| {
            a.is_of_vertex() && a.owner == b.owner && a.key == b.key
        };
        for several in self.properties.chunk_by(together) {
            let property = &several[0];
            // No element has a key that the dictionary lacks.
            let Some(key) = ctx.view.catalog().token(&property.key) else { continue };
            if let Some(gui) = property.owner.as_vertex() {
                if ctx.view.vertex_exists(gui)? {
                    let values: Vec<(&Value, u32)> = several.iter().map(|p| (&p.value, p.nth)).collect();
                    ctx.view.remove_vertex_values(gui, key, &values)?;
                }
            } else if let Some(edge) = property.owner.as_edge() {
                if ctx.view.edge_exists(edge)? {
                    ctx.view.set_edge_property(edge, key, None)?;
                }
            } else if let Some(of) = meta_owner(&property.owner, ctx)
                && ctx.view.vertex_exists(of.gui)?
            {
                ctx.view.set_meta_property(of, key, None)?;
            }
        }
        if !self.edges.is_empty() {
            ctx.view.delete_edges(&self.edges)?;
        }
        if !self.vertices.is_empty() {
            ctx.view.delete_vertices(&self.vertices, detach)?;
        }
        Ok(())
    }
}

/// Returns the value of a vertex property as an owner of meta-properties; `None` for any other value, and for a key
/// that the dictionary lacks.
pub(super) fn meta_owner(value: &Value, ctx: &Context<'_>) -> Option<MetaOwner> {
    let Value::Property(property) = value else { return None };
    let gui = property.owner.as_vertex()?;
    let key = ctx.view.catalog().token(&property.key)?;
    Some(MetaOwner { gui, key, value: property.value.clone(), nth: property.nth })
}

impl<'p> Delete<'p> {
    pub(super) fn new(input: Boxed<'p>, targets: &'p [Expr], detach: bool) -> Self {
        Self { input, targets, detach }
    }
}

impl Operator for Delete<'_> {
    fn next(&mut self, ctx: &Context<'_>, _: Want<'_>) -> Result<Option<Batch>> {
        let Some(batch) = self.input.next(ctx, Want::ALL)? else { return Ok(None) };
        ctx.check()?;
        let before = ctx.view.pending_bytes();
        let mut doomed = Doomed::default();
        for column in compute::columns(self.targets, &batch, ctx)? {
            match &*column {
                Column::Vertices(guis) => doomed.vertices.extend_from_slice(guis),
                Column::Edges(edges) => doomed.edges.extend_from_slice(edges),
                other => (0..batch.len).try_for_each(|row| doomed.add(&other.get(row)))?,
            }
        }
        doomed.delete(self.detach, ctx)?;
        charge_pending(before, ctx)?;
        Ok(Some(batch))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.input.feed(ctx, feed);
    }
}

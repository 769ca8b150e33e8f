//! Writes of properties and labels.
//!
//! Rows are written one after the other. If a value is computed from elements (`SET n.x = n.x + 1`), a row must see the
//! writes of the rows before it. So a batch is cut before each row that reads an element that an earlier row of the cut
//! wrote; the values of a cut are computed at once. Values that read no element need no cuts.

use super::write::{Tokens, charge_pending, entries, key_text, meta_owner, storable};
use super::{Boxed, Feed, Operator, Want, compute};
use crate::view::MetaOwner;
use crate::{Batch, Column, Context, Error, Result};
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::sync::Arc;
use tidegraph_apl::{EdgeRead, EdgeRows, Projection, VertexRead, VertexRows};
use tidegraph_plan::{Expr, PropertyAssignment, Slot};
use tidegraph_types::{Cardinality, Edge, Gui, PropertyWrite, Str, Token, Value};

/// The element or property that a row writes to.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Target {
    Vertex(Gui),
    Edge(Edge),
    /// A property of a vertex.
    Property(Value),
}

impl Target {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Property(property) if property.is_of_vertex() => Some(Self::Property(value.clone())),
            _ => value.as_vertex().map(Self::Vertex).or_else(|| value.as_edge().map(Self::Edge)),
        }
    }
}

/// Returns the target of each row; `None` where it is null.
fn targets(
    place: &'static str,
    element: &Expr,
    batch: &Batch,
    ctx: &Context<'_>,
) -> Result<Vec<Option<Target>>> {
    let column = compute::column(element, batch, ctx)?;
    (0..batch.len)
        .map(|row| match Target::of(&column.get(row)) {
            None if !column.is_null(row) => Err(not_a_target(place, &column.get(row))),
            target => Ok(target),
        })
        .collect()
}

fn not_a_target(place: &'static str, value: &Value) -> Error {
    match value {
        Value::Property(property) if property.owner.as_edge().is_some() => {
            Error::NoMetaProperties { key: property.key.clone(), of: "the property of an edge" }
        }
        Value::Property(property) => {
            Error::NoMetaProperties { key: property.key.clone(), of: "a meta-property" }
        }
        other => Error::of_type(place, "a vertex, an edge or a property of a vertex", other),
    }
}

/// Loads what changes of these elements need, with one read for all.
fn prepare(targets: &[Option<Target>], keys: &[Token], ctx: &Context<'_>) -> Result<()> {
    let (mut vertices, mut edges) = (vec![], vec![]);
    for target in targets.iter().flatten() {
        match target {
            Target::Vertex(gui) => vertices.push(*gui),
            Target::Edge(edge) => edges.push(*edge),
            // Loaded with its values by the write.
            Target::Property(_) => {}
        }
    }
    if !vertices.is_empty() {
        ctx.view.prepare_vertices(&vertices, keys)?;
    }
    if !edges.is_empty() {
        ctx.view.prepare_edges(&edges)?;
    }
    Ok(())
}

/// Whether a value may depend on the contents of elements.
fn reads_elements(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Property(..) | Expr::Index(..) | Expr::HasLabels(..) | Expr::HasAnyLabel(..) | Expr::Call(..)
    ) || expr.children().into_iter().any(reads_elements)
}

/// Cuts a batch so that no row of a cut reads an element that an earlier row of the cut wrote.
fn cuts(batch: &Batch, targets: &[Option<Target>], exprs: &[&Expr]) -> Vec<Range<usize>> {
    if batch.len <= 1 || !exprs.iter().any(|expr| reads_elements(expr)) {
        return std::iter::once(0..batch.len).collect();
    }
    let mut slots: Vec<Slot> = vec![];
    for expr in exprs {
        expr.for_each_slot(&mut |slot| {
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        });
    }
    let mut cuts = vec![];
    let mut written: FxHashSet<Target> = FxHashSet::default();
    let mut start = 0;
    for (row, target) in targets.iter().enumerate() {
        let clash = target.as_ref().is_some_and(|target| written.contains(target))
            || slots.iter().filter_map(|slot| batch.column(*slot)).any(|column| match column.get(row) {
                // These may hold any elements.
                Value::List(_) | Value::Set(_) | Value::Map(_) | Value::Path(_) | Value::Property(_) => true,
                value => Target::of(&value).is_some_and(|target| written.contains(&target)),
            });
        if clash && row > start {
            cuts.push(start..row);
            start = row;
            written.clear();
        }
        written.extend(target.clone());
    }
    cuts.push(start..batch.len);
    cuts
}

/// Returns the rows of a cut as a batch.
fn part(batch: &Batch, cut: &Range<usize>) -> Batch {
    if cut.len() == batch.len {
        return batch.clone();
    }
    let rows: Vec<u32> = cut.clone().map(|row| row as u32).collect();
    batch.gather(&rows)
}

/// Writes one value; `None` removes the key.
fn write(
    target: &Target,
    key: Token,
    cardinality: Cardinality,
    value: Option<Value>,
    ctx: &Context<'_>,
) -> Result<()> {
    match (target, value) {
        (Target::Vertex(gui), Some(value)) => {
            ctx.view.set_vertex_property(*gui, PropertyWrite { key, cardinality, value })
        }
        (Target::Vertex(gui), None) => ctx.view.remove_vertex_property(*gui, key),
        (Target::Edge(edge), value) => ctx.view.set_edge_property(*edge, key, value),
        (Target::Property(property), value) => match meta_owner(property, ctx) {
            Some(of) => ctx.view.set_meta_property(of, key, value),
            None => Err(Error::Gone { place: "setting a property", element: "the property".to_owned() }),
        },
    }
}

/// A property to write: key, value, meta-properties.
struct Write {
    target: Target,
    key: Str,
    cardinality: Cardinality,
    value: Option<Value>,
    meta: Vec<(Str, Option<Value>)>,
}

impl Write {
    fn keys(&self) -> impl Iterator<Item = &Str> {
        std::iter::once(&self.key).chain(self.meta.iter().map(|(key, _)| key))
    }

    fn run(self, tokens: &Tokens, ctx: &Context<'_>) -> Result<()> {
        let key = tokens.of(&self.key)?;
        if self.meta.is_empty() {
            return write(&self.target, key, self.cardinality, self.value, ctx);
        }
        let Target::Vertex(gui) = self.target else {
            let of = match self.target {
                Target::Edge(_) => "the property of an edge",
                _ => "a meta-property",
            };
            return Err(Error::NoMetaProperties { key: self.key, of });
        };
        let Some(value) = self.value else { return ctx.view.remove_vertex_property(gui, key) };
        let write = PropertyWrite { key, cardinality: self.cardinality, value };
        ctx.view.set_vertex_property(gui, write.clone())?;
        let nth = ctx.view.written_value(gui, &write);
        for (meta_key, value) in self.meta {
            let of = MetaOwner { gui, key, value: write.value.clone(), nth };
            ctx.view.set_meta_property(of, tokens.of(&meta_key)?, value)?;
        }
        Ok(())
    }
}

/// Writes properties of an element for each row.
pub(super) struct SetProperties<'p> {
    input: Boxed<'p>,
    element: &'p Expr,
    properties: &'p [PropertyAssignment],
    tokens: Tokens,
}

impl<'p> SetProperties<'p> {
    pub(super) fn new(input: Boxed<'p>, element: &'p Expr, properties: &'p [PropertyAssignment]) -> Self {
        Self { input, element, properties, tokens: Tokens::default() }
    }

    /// Writes some assignments of a cut, after computing their values.
    fn write(
        &mut self,
        assignments: &[PropertyAssignment],
        batch: &Batch,
        targets: &[Option<Target>],
        ctx: &Context<'_>,
    ) -> Result<()> {
        const PLACE: &str = "setting a property";
        let columns = compute::columns(assignments.iter().flat_map(PropertyAssignment::exprs), batch, ctx)?;
        let mut writes = Vec::with_capacity(batch.len * assignments.len());
        for (row, target) in targets.iter().enumerate() {
            let Some(target) = target else { continue };
            let mut pairs = columns.chunks(2).map(|pair| {
                let key = key_text(PLACE, &pair[0].get(row))?;
                let value = storable(&key, pair[1].get(row))?;
                Ok((key, value))
            });
            for PropertyAssignment { cardinality, meta, .. } in assignments {
                let mut own = pairs.by_ref().take(1 + meta.len());
                let Some((key, value)) = own.next().transpose()? else { continue };
                let meta = own.collect::<Result<_>>()?;
                writes.push(Write { target: target.clone(), key, cardinality: *cardinality, value, meta });
            }
        }
        self.tokens.intern(writes.iter().flat_map(Write::keys), ctx)?;
        let mut multiple: Vec<Token> = vec![];
        for write in &writes {
            let key = self.tokens.of(&write.key)?;
            if write.cardinality != Cardinality::Single && !multiple.contains(&key) {
                multiple.push(key);
            }
        }
        prepare(targets, &multiple, ctx)?;
        writes.into_iter().try_for_each(|write| write.run(&self.tokens, ctx))
    }
}

impl Operator for SetProperties<'_> {
    fn next(&mut self, ctx: &Context<'_>, _: Want<'_>) -> Result<Option<Batch>> {
        let Some(batch) = self.input.next(ctx, Want::ALL)? else { return Ok(None) };
        ctx.check()?;
        let before = ctx.view.pending_bytes();
        let targets = targets("setting a property", self.element, &batch, ctx)?;
        let assignments = self.properties;
        let exprs: Vec<&Expr> = assignments.iter().flat_map(PropertyAssignment::exprs).collect();
        let one_by_one = assignments.len() > 1 && exprs.iter().any(|expr| reads_elements(expr));
        for cut in cuts(&batch, &targets, &exprs) {
            ctx.check()?;
            let (part, targets) = (part(&batch, &cut), &targets[cut]);
            if one_by_one {
                // A later assignment sees the effect of an earlier one.
                for assignment in assignments {
                    self.write(std::slice::from_ref(assignment), &part, targets, ctx)?;
                }
            } else {
                self.write(assignments, &part, targets, ctx)?;
            }
        }
        charge_pending(before, ctx)?;
        Ok(Some(batch))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.input.feed(ctx, feed);
    }
}

/// Writes all entries of a map for each row.
pub(super) struct SetPropertyMap<'p> {
    input: Boxed<'p>,
    element: &'p Expr,
    map: &'p Expr,
    replace: bool,
    cardinality: Cardinality,
    tokens: Tokens,
}

impl<'p> SetPropertyMap<'p> {
    pub(super) fn new(
        input: Boxed<'p>,
        element: &'p Expr,
        map: &'p Expr,
        replace: bool,
        cardinality: Cardinality,
    ) -> Self {
        Self { input, element, map, replace, cardinality, tokens: Tokens::default() }
    }

    fn write(&mut self, target: &Target, map: &Value, ctx: &Context<'_>) -> Result<()> {
        let of_map = matches!((map, target), (Value::Map(_), Target::Vertex(_)));
        let entries: Vec<(Str, Cardinality, Option<Value>)> = entries("setting properties", map, ctx)?
            .into_iter()
            .map(|(key, cardinality, value)| {
                let cardinality = if of_map { self.cardinality } else { cardinality };
                Ok((key.clone(), cardinality, storable(&key, value)?))
            })
            .collect::<Result<_>>()?;
        self.tokens.intern(entries.iter().map(|(key, _, _)| key), ctx)?;
        let keys: Vec<Token> =
            entries.iter().map(|(key, _, _)| self.tokens.of(key)).collect::<Result<_>>()?;
        if self.replace {
            for key in keys_of(target, ctx)? {
                // A key that gets several values is cleared before the first.
                let multiple = (keys.iter().zip(&entries))
                    .any(|(k, (_, cardinality, _))| *k == key && *cardinality != Cardinality::Single);
                if !keys.contains(&key) || multiple {
                    write(target, key, Cardinality::Single, None, ctx)?;
                }
            }
        }
        for (key, (_, cardinality, value)) in keys.into_iter().zip(entries) {
            write(target, key, cardinality, value, ctx)?;
        }
        Ok(())
    }
}

/// Returns the property keys of an element.
fn keys_of(target: &Target, ctx: &Context<'_>) -> Result<Vec<Token>> {
    let cells = match target {
        // Only openCypher replaces all properties by a map, and it has no meta-properties.
        Target::Property(_) => return Ok(vec![]),
        Target::Vertex(gui) => {
            let read = VertexRead { properties: Projection::All, ..VertexRead::default() };
            let mut rows = VertexRows::default();
            ctx.view.vertices(&read, &[*gui], &mut rows)?;
            rows.cells
        }
        Target::Edge(edge) => {
            let read = EdgeRead { ids: false, properties: Projection::All };
            let mut rows = EdgeRows::default();
            ctx.view.edges(&read, &[*edge], &mut rows)?;
            rows.cells
        }
    };
    let mut keys: Vec<Token> = cells.into_iter().map(|cell| cell.key).collect();
    keys.dedup();
    Ok(keys)
}

impl Operator for SetPropertyMap<'_> {
    fn next(&mut self, ctx: &Context<'_>, _: Want<'_>) -> Result<Option<Batch>> {
        let Some(batch) = self.input.next(ctx, Want::ALL)? else { return Ok(None) };
        ctx.check()?;
        let before = ctx.view.pending_bytes();
        let targets = targets("setting properties", self.element, &batch, ctx)?;
        prepare(&targets, &[], ctx)?;
        // A slot may hold an element; its properties are read when its row is written.
        for cut in cuts(&batch, &targets, &[self.map]) {
            ctx.check()?;
            let part = part(&batch, &cut);
            let maps = compute::column(self.map, &part, ctx)?;
            for (row, target) in targets[cut].iter().enumerate() {
                if let Some(target) = target {
                    self.write(target, &maps.get(row), ctx)?;
                }
            }
        }
        charge_pending(before, ctx)?;
        Ok(Some(batch))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.input.feed(ctx, feed);
    }
}

/// Adds and removes labels for each row.
pub(super) struct SetLabels<'p> {
    input: Boxed<'p>,
    element: &'p Expr,
    add: &'p [Expr],
    remove: &'p [Expr],
    tokens: Tokens,
}

impl<'p> SetLabels<'p> {
    pub(super) fn new(input: Boxed<'p>, element: &'p Expr, add: &'p [Expr], remove: &'p [Expr]) -> Self {
        Self { input, element, add, remove, tokens: Tokens::default() }
    }

    /// Returns the names that a row gives: each value is a name or a list of names.
    fn names(columns: &[Arc<Column>], row: usize) -> Result<Vec<Str>> {
        let mut names = vec![];
        for column in columns {
            let value = column.get(row);
            let items = value.as_slice().unwrap_or(std::slice::from_ref(&value));
            for item in items {
                match item {
                    Value::String(name) => names.push(name.clone()),
                    other => return Err(Error::of_type(LABELS, "strings as labels", other)),
                }
            }
        }
        Ok(names)
    }
}

const LABELS: &str = "setting labels";

impl Operator for SetLabels<'_> {
    fn next(&mut self, ctx: &Context<'_>, _: Want<'_>) -> Result<Option<Batch>> {
        let Some(batch) = self.input.next(ctx, Want::ALL)? else { return Ok(None) };
        ctx.check()?;
        let before = ctx.view.pending_bytes();
        let column: Arc<Column> = compute::column(self.element, &batch, ctx)?;
        let add = compute::columns(self.add, &batch, ctx)?;
        let remove = compute::columns(self.remove, &batch, ctx)?;
        let is_fixed = self.add.iter().chain(self.remove).all(|label| matches!(label, Expr::Literal(_)));
        let mut vertices = Vec::with_capacity(batch.len);
        for row in 0..batch.len {
            match column.vertex(row) {
                Some(gui) => vertices.push((row, gui)),
                None if column.is_null(row) => {}
                None => return Err(Error::of_type(LABELS, "a vertex", &column.get(row))),
            }
        }
        let guis: Vec<Gui> = vertices.iter().map(|(_, gui)| *gui).collect();
        let mut labels: Option<(Vec<Token>, Vec<Token>)> = None;
        for (at, (row, gui)) in vertices.into_iter().enumerate() {
            if at == 0 {
                ctx.view.prepare_vertices(&guis, &[])?;
            }
            ctx.spend(1)?;
            let (add, remove) = match labels.take().filter(|_| is_fixed) {
                Some(same) => same,
                None => {
                    let added = Self::names(&add, row)?;
                    self.tokens.intern(added.iter(), ctx)?;
                    let added = added.iter().map(|name| self.tokens.of(name)).collect::<Result<_>>()?;
                    let removed = Self::names(&remove, row)?;
                    (added, tidegraph_apl::tokens_of(ctx.view.catalog(), &removed))
                }
            };
            ctx.view.set_labels(gui, &add, &remove)?;
            labels = Some((add, remove));
        }
        charge_pending(before, ctx)?;
        Ok(Some(batch))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.input.feed(ctx, feed);
    }
}

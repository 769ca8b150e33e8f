//! Elements by id.

use super::{Boxed, Feed, Operator, Want, compute};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use smallvec::SmallVec;
use tidegraph_plan::{Expr, Slot};
use tidegraph_types::{ElementIds, Str, Value};

/// The kind of elements to look up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Vertices,
    Edges,
}

impl Kind {
    fn takes(self) -> (&'static str, &'static str) {
        match self {
            Self::Vertices => ("looking up vertices", "an id, a vertex or a list of them"),
            Self::Edges => ("looking up edges", "an id, an edge or a list of them"),
        }
    }
}

/// Yields a row for each element that an id names.
pub(super) struct Lookup<'p> {
    input: Boxed<'p>,
    ids: &'p Expr,
    out: Slot,
    kind: Kind,
    /// A batch with the rows and elements that were found, and how many of them were yielded.
    found: Option<(Batch, Vec<u32>, Vec<Value>, usize)>,
}

/// An id of a list, or the element itself.
enum Named {
    Id(Str),
    Element(Value),
}

impl<'p> Lookup<'p> {
    pub(super) fn new(input: Boxed<'p>, ids: &'p Expr, out: Slot, kind: Kind) -> Self {
        Self { input, ids, out, kind, found: None }
    }

    fn name(
        &self,
        row: u32,
        value: &Value,
        ids: ElementIds,
        out: &mut SmallVec<[(u32, Named); 4]>,
    ) -> Result<()> {
        let named = match value {
            Value::Null | Value::Unbound => return Ok(()),
            Value::List(items) | Value::Set(items) => {
                return items.iter().try_for_each(|item| self.name(row, item, ids, out));
            }
            other => match (self.kind, ids.text(other)) {
                (_, Some(id)) => Named::Id(id),
                (Kind::Vertices, None) if other.as_vertex().is_some() => Named::Element(other.clone()),
                (Kind::Edges, None) if other.as_edge().is_some() => Named::Element(other.clone()),
                _ => {
                    let (place, expected) = self.kind.takes();
                    return Err(Error::of_type(place, expected, other));
                }
            },
        };
        out.push((row, named));
        Ok(())
    }

    fn find(&self, batch: &Batch, ctx: &Context<'_>) -> Result<(Vec<u32>, Vec<Value>)> {
        let ids = compute::column(self.ids, batch, ctx)?;
        let mut named = SmallVec::new();
        for row in 0..batch.len {
            match &*ids {
                Column::Values(values) => self.name(row as u32, &values[row], ctx.ids, &mut named)?,
                other => self.name(row as u32, &other.get(row), ctx.ids, &mut named)?,
            }
        }
        let texts: SmallVec<[Str; 4]> = named
            .iter()
            .filter_map(|(_, n)| if let Named::Id(id) = n { Some(id.clone()) } else { None })
            .collect();
        let mut resolved = Vec::with_capacity(texts.len());
        match self.kind {
            Kind::Vertices => {
                let mut found = Vec::with_capacity(texts.len());
                let next = ctx.ahead.as_ref().map(|ahead| ahead.read(self.out, ctx.view.catalog()));
                ctx.view.resolve_vertices(&texts, next, &mut found)?;
                ctx.charge_ahead();
                resolved.extend(found.into_iter().map(|gui| gui.map(Value::Vertex)));
            }
            Kind::Edges => {
                let mut found = Vec::with_capacity(texts.len());
                ctx.view.resolve_edges(&texts, &mut found)?;
                resolved.extend(found.into_iter().map(|edge| edge.map(Value::Edge)));
            }
        }
        let mut resolved = resolved.into_iter();
        let (mut rows, mut values) = (Vec::with_capacity(named.len()), Vec::with_capacity(named.len()));
        for (row, named) in named {
            let value = match named {
                Named::Id(_) => resolved.next().flatten(),
                Named::Element(value) => {
                    value.as_vertex().map(Value::Vertex).or(value.as_edge().map(Value::Edge))
                }
            };
            if let Some(value) = value {
                rows.push(row);
                values.push(value);
            }
        }
        Ok((rows, values))
    }
}

impl Operator for Lookup<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            if let Some((batch, rows, values, at)) = &mut self.found {
                let end = rows.len().min(*at + want.rows.min(BATCH_ROWS));
                if *at < end {
                    let mut out = batch.gather(&rows[*at..end]);
                    out.set(self.out, Column::from_values(values[*at..end].to_vec()));
                    *at = end;
                    return Ok(Some(out));
                }
                self.found = None;
            }
            let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
            ctx.check()?;
            let (rows, values) = self.find(&batch, ctx)?;
            self.found = Some((batch, rows, values, 0));
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.found = None;
        self.input.feed(ctx, feed);
    }
}

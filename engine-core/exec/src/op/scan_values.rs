//! A scan that returns vertices with values of their properties: storage reads them where it finds the vertices.
//!
//! The planner uses it only where a plan begins. So there is one input row, or one for each origin of a fed plan.

use super::scan::{Source, Vertices};
use super::{Boxed, Feed, Operator, Want, compute};
use crate::batch::BATCH_ROWS;
use crate::view::ScanState;
use crate::{Batch, Column, Context, Result};
use std::sync::Arc;
use tidegraph_apl::{ScannedColumn, ScannedValues};
use tidegraph_plan::{ScanColumn, ScanFilter, Slot, TopVertices};
use tidegraph_types::{Str, Token, Value};

pub(super) struct ScanValues<'p> {
    input: Boxed<'p>,
    out: Slot,
    source: Vertices<'p>,
    columns: &'p [ScanColumn],
    /// Tokens of the columns' keys; `None` for a key that the dictionary lacks.
    tokens: Vec<Option<Token>>,
    keys: Vec<Token>,
    current: Option<Current>,
    /// Whether it is the first scan of its plan, which may be limited to a partition.
    is_first: bool,
    partition: Option<u16>,
    /// Set if only the first vertices by properties are used.
    top: Option<TopVertices<'p>>,
    /// What storage is asked for then, once it is computed.
    wanted: Option<tidegraph_apl::TopVertices>,
}

/// Largest number of first vertices for which storage selects them.
const MAX_TOP: u64 = BATCH_ROWS as u64;

/// The input row that is answered now.
struct Current {
    batch: Batch,
    row: usize,
    /// The position of the row's scan, once it has begun.
    state: Option<ScanState>,
}

impl<'p> ScanValues<'p> {
    pub(super) fn new(
        input: Boxed<'p>,
        out: Slot,
        filter: &'p ScanFilter,
        columns: &'p [ScanColumn],
        is_first: bool,
    ) -> Self {
        let source = Vertices::new(filter);
        let (tokens, keys) = (vec![], vec![]);
        let (current, partition, top, wanted) = (None, None, None, None);
        Self { input, out, source, columns, tokens, keys, current, is_first, partition, top, wanted }
    }

    /// Restricts the scan to the first vertices by properties; it may still yield others.
    pub(super) fn only_top(self, top: TopVertices<'p>) -> Self {
        Self { top: Some(top), ..self }
    }

    /// Returns which first vertices to ask storage for; `None` for all vertices, if too many are wanted.
    fn wanted(&self, ctx: &Context<'_>) -> Result<Option<tidegraph_apl::TopVertices>> {
        let Some(TopVertices { order, skip, limit }) = &self.top else { return Ok(None) };
        let skip = skip.map_or(Ok(0), |skip| compute::count("skip", skip, ctx))?;
        let count = compute::count("limit", limit, ctx)?.saturating_add(skip);
        // A property that the graph never had is null in all vertices.
        let known = |(key, descending): &(&Str, bool)| Some((ctx.view.token(key)?, *descending));
        let order: Vec<_> = order.iter().filter_map(known).collect();
        let count = u32::try_from(count).ok().filter(|count| u64::from(*count) <= MAX_TOP);
        Ok(count.filter(|_| !order.is_empty()).map(|count| tidegraph_apl::TopVertices { order, count }))
    }

    fn resolve(&mut self, ctx: &Context<'_>) {
        self.tokens = self.columns.iter().map(|column| ctx.view.token(&column.key)).collect();
        self.keys = self.tokens.iter().flatten().copied().collect();
    }

    fn batch(&self, current: &Current, found: ScannedValues) -> Batch {
        let len = found.vertices.len();
        let mut out = current.batch.gather(&vec![current.row as u32; len]);
        out.set(self.out, Column::Vertices(found.vertices));
        let mut columns = found.columns.into_iter();
        for (ScanColumn { slot, each, .. }, token) in self.columns.iter().zip(&self.tokens) {
            let column = token.and_then(|_| columns.next());
            let column = column.map(|column| match column {
                ScannedColumn::Integers(integers) => Column::Integers(integers),
                ScannedColumn::Values(mut values) => {
                    values.iter_mut().for_each(|value| of_scan(value, *each));
                    Column::Values(values)
                }
            });
            out.set(*slot, column.unwrap_or(Column::Constant(Value::Null, len)));
        }
        out
    }
}

/// Makes of a value of a scan what its column holds ([`ScanColumn`]).
#[inline]
pub(super) fn of_scan(value: &mut Value, each: bool) {
    match value {
        Value::Set(several) => *value = Value::List(Arc::clone(several)),
        Value::List(_) if each => *value = Value::list(vec![std::mem::take(value)]),
        _ => {}
    }
}

impl Operator for ScanValues<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            let Some(mut current) = self.current.take() else {
                let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
                self.resolve(ctx);
                // The slice above applies to each origin by itself.
                let is_sole = batch.len == 1 && batch.origin.is_none();
                self.wanted = if is_sole && ctx.view.may_digest() { self.wanted(ctx)? } else { None };
                self.current = Some(Current { batch, row: 0, state: None });
                continue;
            };
            if current.row >= current.batch.len {
                continue;
            }
            let wanted = want.wants(current.batch.origin_of(current.row));
            if current.state.is_none() && wanted && self.source.begin(&current.batch, current.row, ctx)? {
                current.state = Some(self.partition.map_or_else(ScanState::default, ScanState::of_partition));
            }
            let Some(state) = current.state.as_mut().filter(|_| wanted) else {
                (current.row, current.state) = (current.row + 1, None);
                self.current = Some(current);
                continue;
            };
            self.source.scan.max_rows = want.rows.clamp(64, BATCH_ROWS) as u32;
            let mut found = ScannedValues::default();
            found.begin(self.keys.len());
            let (scan, keys) = (&self.source.scan, &self.keys);
            let more = match self.wanted.as_ref().filter(|_| self.source.unchecked.is_empty()) {
                Some(top) => ctx.view.top_vertices(scan, keys, top, state, &mut found)?,
                None => ctx.view.scan_values(scan, keys, state, &mut found)?,
            };
            let mut out = (!found.vertices.is_empty()).then(|| self.batch(&current, found));
            for condition in &self.source.unchecked {
                let Some(batch) = out else { break };
                let kept = compute::filter(condition, &batch, ctx)?;
                out = (!kept.is_empty()).then(|| batch.select(&kept));
            }
            if !more {
                (current.row, current.state) = (current.row + 1, None);
            }
            self.current = Some(current);
            if out.is_some() {
                return Ok(out);
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.current = None;
        self.partition = feed.partition.filter(|_| self.is_first);
        self.input.feed(ctx, feed);
    }
}

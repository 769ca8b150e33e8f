//! Scans: for each input row all elements that pass.
//!
//! An answer that does not depend on the row is kept, up to a size and while the request does not write, so that a
//! product of two scans reads the second one once.

use super::{Boxed, Feed, Operator, Want, compute};
use crate::batch::BATCH_ROWS;
use crate::view::ScanState;
use crate::{Batch, Column, Context, Error, Result};
use tidegraph_apl::{OneOf, PropertyPredicate, Test, VertexScan};
use tidegraph_plan::{Expr, ScanFilter, ScanTest, Slot};
use tidegraph_types::{Edge, Gui, Str, Token, Value};

/// Maximum number of elements of an answer that is kept for other rows.
const MAX_KEPT: usize = 1 << 20;

/// The kind of elements of a scan.
pub(super) trait Source: Send {
    /// A vertex or an edge.
    type Item: Copy + Send;
    /// Whether every row gets the same answer.
    fn is_constant(&self) -> bool;
    /// Prepares for a row; returns `false` if nothing can pass.
    fn begin(&mut self, batch: &Batch, row: usize, ctx: &Context<'_>) -> Result<bool>;
    /// Appends elements; returns `false` if there are no more after these.
    fn read(
        &mut self,
        rows: usize,
        state: &mut ScanState,
        ctx: &Context<'_>,
        out: &mut Vec<Self::Item>,
    ) -> Result<bool>;
    /// Makes a column of elements.
    fn column(items: &[Self::Item]) -> Column;
    /// Returns the conditions that storage could not test for the current row.
    fn unchecked(&self) -> &[&Expr] {
        &[]
    }
}

/// A scan: the loop over rows and elements.
pub(super) struct Scan<'p, S: Source> {
    input: Boxed<'p>,
    out: Slot,
    source: S,
    current: Option<Current<S::Item>>,
    /// A complete answer, and the view's generation that it belongs to.
    kept: Option<(Vec<S::Item>, u64)>,
    charged: usize,
    /// Whether it is the first scan of its plan, which may be limited to a partition.
    is_first: bool,
    partition: Option<u16>,
}

/// The input row that is answered now.
struct Current<I> {
    batch: Batch,
    row: usize,
    /// Whether the row's scan has begun.
    begun: bool,
    /// Whether the row is answered from `kept`.
    replay: bool,
    /// Whether all elements of the row were read.
    complete: bool,
    state: ScanState,
    /// The view's generation when the row's scan began.
    generation: u64,
    /// Elements that were read.
    items: Vec<I>,
    at: usize,
    /// All elements of the row, as long as the answer may be kept.
    collected: Option<Vec<I>>,
}

impl<I> Current<I> {
    fn new(batch: Batch) -> Self {
        Self {
            batch,
            row: 0,
            begun: false,
            replay: false,
            complete: false,
            state: ScanState::default(),
            generation: 0,
            items: vec![],
            at: 0,
            collected: None,
        }
    }

    fn next_row(&mut self) {
        self.row += 1;
        self.begun = false;
    }
}

impl<'p, S: Source> Scan<'p, S> {
    fn over(input: Boxed<'p>, out: Slot, source: S) -> Self {
        Self { input, out, source, current: None, kept: None, charged: 0, is_first: false, partition: None }
    }

    fn begin(&mut self, ctx: &Context<'_>) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        current.begun = true;
        current.at = 0;
        current.items.clear();
        current.generation = ctx.view.generation();
        current.replay = matches!(&self.kept, Some((_, generation)) if *generation == current.generation);
        current.complete = current.replay;
        current.collected = None;
        if !current.replay {
            self.kept = None;
            ctx.memory.release(std::mem::take(&mut self.charged));
            current.state = self.partition.map_or_else(ScanState::default, ScanState::of_partition);
            current.complete = !self.source.begin(&current.batch, current.row, ctx)?;
            if self.source.is_constant() && current.batch.len > 1 {
                current.collected = Some(vec![]);
            }
        }
        Ok(())
    }

    fn read(&mut self, ctx: &Context<'_>, rows: usize) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        current.items.clear();
        current.at = 0;
        current.complete = !self.source.read(rows, &mut current.state, ctx, &mut current.items)?;
        if let Some(collected) = &mut current.collected {
            collected.extend_from_slice(&current.items);
            if collected.len() > MAX_KEPT {
                current.collected = None;
            }
        }
        Ok(())
    }

    /// Keeps the answer of the current row if other rows may use it.
    fn keep(&mut self, ctx: &Context<'_>) -> Result<()> {
        if let Some(current) = &mut self.current
            && let Some(collected) = current.collected.take()
            && current.complete
            && current.generation == ctx.view.generation()
        {
            let bytes = collected.len() * size_of::<S::Item>();
            ctx.memory.charge(bytes)?;
            self.charged += bytes;
            self.kept = Some((collected, current.generation));
        }
        Ok(())
    }
}

impl<S: Source> Operator for Scan<'_, S> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            let Some(current) = &mut self.current else {
                let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
                self.current = Some(Current::new(batch));
                continue;
            };
            if current.row >= current.batch.len {
                self.current = None;
                continue;
            }
            if !want.wants(current.batch.origin_of(current.row)) {
                current.next_row();
                continue;
            }
            if !current.begun {
                self.begin(ctx)?;
                continue;
            }
            let items = match &self.kept {
                Some((items, _)) if current.replay => items,
                _ => &current.items,
            };
            let end = items.len().min(current.at + want.rows.min(BATCH_ROWS));
            if current.at < end {
                let rows = vec![current.row as u32; end - current.at];
                let mut out = current.batch.gather(&rows);
                out.set(self.out, S::column(&items[current.at..end]));
                current.at = end;
                for condition in self.source.unchecked() {
                    let kept = compute::filter(condition, &out, ctx)?;
                    out = out.select(&kept);
                    if out.len == 0 {
                        break;
                    }
                }
                if out.len == 0 {
                    continue;
                }
                return Ok(Some(out));
            }
            if current.complete {
                self.keep(ctx)?;
                if let Some(current) = &mut self.current {
                    current.next_row();
                }
                continue;
            }
            self.read(ctx, want.rows.clamp(64, BATCH_ROWS))?;
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.current = None;
        self.partition = feed.partition.filter(|_| self.is_first);
        self.input.feed(ctx, feed);
    }
}

/// Vertices by labels and properties.
pub(super) struct Vertices<'p> {
    filter: &'p ScanFilter,
    constant: bool,
    pub(super) scan: VertexScan,
    pub(super) unchecked: Vec<&'p Expr>,
}

/// Scan of vertices.
pub(super) type ScanVertices<'p> = Scan<'p, Vertices<'p>>;

impl<'p> ScanVertices<'p> {
    pub(super) fn new(input: Boxed<'p>, out: Slot, filter: &'p ScanFilter, is_first: bool) -> Self {
        Self { is_first, ..Self::over(input, out, Vertices::new(filter)) }
    }
}

/// Whether computing an operand may fail for some rows only, or only if there is a row.
fn may_fail(expr: &Expr) -> bool {
    !matches!(expr, Expr::Parameter(_))
}

/// A test with its operands computed.
enum Operands {
    /// Nothing passes.
    Nothing,
    /// Storage cannot test the condition; a filter does.
    Everything,
    Test(Test),
}

fn scalar(value: Value, test: impl FnOnce(Value) -> Test) -> Operands {
    match value {
        v if v.is_null() => Operands::Nothing,
        v if v.is_scalar() => Operands::Test(test(v)),
        _ => Operands::Everything,
    }
}

impl<'p> Vertices<'p> {
    pub(super) fn new(filter: &'p ScanFilter) -> Self {
        let constant = !filter.exprs().into_iter().any(compute::uses_slots);
        Self { filter, constant, scan: VertexScan::default(), unchecked: vec![] }
    }

    /// Computes operands as `operands` does. If that fails, the condition is left to the filter that checks it, so that
    /// it is an error only if there is a vertex.
    fn operands_or_everything(
        &self,
        test: &ScanTest,
        batch: &Batch,
        row: usize,
        ctx: &Context<'_>,
    ) -> Result<Operands> {
        match self.operands(test, batch, row, ctx) {
            Err(Error::Value(_) | Error::Type { .. }) if test.exprs().into_iter().any(may_fail) => {
                Ok(Operands::Everything)
            }
            other => other,
        }
    }

    fn operands(&self, test: &ScanTest, batch: &Batch, row: usize, ctx: &Context<'_>) -> Result<Operands> {
        let eval = |expr: &Expr| match expr {
            Expr::Literal(value) => Ok(value.clone()),
            Expr::Slot(slot) => Ok(batch.value(*slot, row)),
            _ => crate::value::Evaluator::prepare(&[expr], batch, ctx)?.eval(0, row),
        };
        Ok(match test {
            ScanTest::Exists => Operands::Test(Test::Exists),
            ScanTest::Equals(expr) => scalar(eval(expr)?, Test::Equals),
            ScanTest::StartsWith(expr) => match eval(expr)? {
                Value::String(prefix) => Operands::Test(Test::StartsWith(prefix.to_string())),
                value if value.is_null() => Operands::Nothing,
                _ => Operands::Everything,
            },
            ScanTest::Within(expr) => {
                let value = eval(expr)?;
                match value.as_slice() {
                    None if value.is_null() => Operands::Nothing,
                    Some(items) if items.iter().all(|v| v.is_null() || v.is_scalar()) => {
                        let items: OneOf = items.iter().filter(|v| !v.is_null()).cloned().collect();
                        if items.is_empty() { Operands::Nothing } else { Operands::Test(Test::Within(items)) }
                    }
                    _ => Operands::Everything,
                }
            }
            ScanTest::Range { low, high } => {
                let mut bounds = [None, None];
                for (bound, expr) in bounds.iter_mut().zip([low, high]) {
                    let Some((expr, inside)) = expr else { continue };
                    match eval(expr)? {
                        value if value.is_null() => return Ok(Operands::Nothing),
                        value if value.is_scalar() => *bound = Some((value, *inside)),
                        _ => return Ok(Operands::Everything),
                    }
                }
                let [low, high] = bounds;
                Operands::Test(Test::Range { low, high })
            }
        })
    }

    /// Returns the labels of all groups; `None` if the dictionary has no label of a group.
    fn labels(&self, ctx: &Context<'_>) -> Option<Vec<Vec<Token>>> {
        let mut groups = Vec::with_capacity(self.filter.labels.len());
        let mut possible = true;
        for names in &self.filter.labels {
            let group = tokens_of(names, ctx);
            if group.len() < names.len() {
                // A label without a token has no key: only the key of all scans conflicts with its first use.
                ctx.view.record_vertex_scan(None);
            }
            possible &= !group.is_empty();
            groups.push(group);
        }
        possible.then_some(groups)
    }
}

/// Returns the tokens of those names that the dictionary has.
fn tokens_of(names: &[Str], ctx: &Context<'_>) -> Vec<Token> {
    tidegraph_apl::tokens_of(ctx.view.catalog(), names)
}

impl Source for Vertices<'_> {
    type Item = Gui;

    fn is_constant(&self) -> bool {
        self.constant
    }

    fn begin(&mut self, batch: &Batch, row: usize, ctx: &Context<'_>) -> Result<bool> {
        let Some(labels) = self.labels(ctx) else { return Ok(false) };
        let filter = self.filter;
        let mut predicates = Vec::with_capacity(filter.predicates.len() + filter.conditions.len());
        let mut possible = true;
        let mut add = |key: &Str, operands: Operands, sole: bool| {
            match (operands, ctx.view.token(key)) {
                (Operands::Nothing, _) => possible = false,
                (Operands::Everything, _) => return false,
                (Operands::Test(_), None) => {
                    possible = false;
                    for label in labels.iter().flatten() {
                        ctx.view.record_vertex_scan(Some(*label));
                    }
                    if labels.is_empty() {
                        ctx.view.record_vertex_scan(None);
                    }
                }
                (Operands::Test(test), Some(key)) => predicates.push(PropertyPredicate { key, test, sole }),
            }
            true
        };
        for (key, test) in &filter.predicates {
            add(key, self.operands_or_everything(test, batch, row, ctx)?, false);
        }
        let mut unchecked = std::mem::take(&mut self.unchecked);
        unchecked.clear();
        for exact in &filter.conditions {
            if !add(&exact.key, self.operands_or_everything(&exact.test, batch, row, ctx)?, exact.sole) {
                unchecked.push(&exact.condition);
            }
        }
        self.unchecked = unchecked;
        self.scan = VertexScan { labels, predicates, max_rows: 1 };
        Ok(possible)
    }

    fn read(
        &mut self,
        rows: usize,
        state: &mut ScanState,
        ctx: &Context<'_>,
        out: &mut Vec<Gui>,
    ) -> Result<bool> {
        self.scan.max_rows = rows as u32;
        ctx.view.scan_vertices(&self.scan, state, out)
    }

    fn column(items: &[Gui]) -> Column {
        Column::Vertices(items.to_vec())
    }

    fn unchecked(&self) -> &[&Expr] {
        &self.unchecked
    }
}

/// Counts the rows of a scan, without making them if storage can test all conditions.
pub(super) struct CountedScan<'p> {
    input: Boxed<'p>,
    out: Slot,
    source: Vertices<'p>,
    /// The count if it is the same for every row, and the view's generation that it belongs to.
    kept: Option<(u64, u64)>,
    /// Whether it is the first scan of its plan, which may be limited to a partition.
    is_first: bool,
    partition: Option<u16>,
}

impl<'p> CountedScan<'p> {
    pub(super) fn new(input: Boxed<'p>, out: Slot, filter: &'p ScanFilter, is_first: bool) -> Self {
        Self { input, out, source: Vertices::new(filter), kept: None, is_first, partition: None }
    }

    /// Whether it reads properties of vertices.
    pub(super) fn tests_properties(&self) -> bool {
        self.source.filter.tests().next().is_some()
    }

    /// Calls `add` with origin and number of vertices for each row; returns `false` at the end.
    pub(super) fn next(&mut self, ctx: &Context<'_>, mut add: impl FnMut(u32, u64)) -> Result<bool> {
        let Some(batch) = self.input.next(ctx, Want::ALL)? else { return Ok(false) };
        for row in 0..batch.len {
            ctx.check()?;
            let generation = ctx.view.generation();
            let count = match self.kept {
                Some((count, of)) if of == generation => count,
                _ if self.source.begin(&batch, row, ctx)? => self.count(&batch, row, ctx)?,
                _ => 0,
            };
            self.kept = (self.source.constant && self.partition.is_none()).then_some((count, generation));
            add(batch.origin_of(row), count);
        }
        Ok(true)
    }

    fn count(&mut self, batch: &Batch, row: usize, ctx: &Context<'_>) -> Result<u64> {
        if self.source.unchecked.is_empty() {
            return ctx.view.count_vertices(&self.source.scan, self.partition, &|| ctx.check());
        }
        let state = self.partition.map_or_else(ScanState::default, ScanState::of_partition);
        let (mut count, mut state, mut items) = (0, state, vec![]);
        loop {
            ctx.check()?;
            items.clear();
            let more = self.source.read(BATCH_ROWS, &mut state, ctx, &mut items)?;
            let mut out = batch.gather(&vec![row as u32; items.len()]);
            out.set(self.out, Column::Vertices(std::mem::take(&mut items)));
            for condition in &self.source.unchecked {
                if out.len > 0 {
                    let kept = compute::filter(condition, &out, ctx)?;
                    out = out.select(&kept);
                }
            }
            count += out.len as u64;
            if !more {
                return Ok(count);
            }
        }
    }

    pub(super) fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        let partition = feed.partition.filter(|_| self.is_first);
        if std::mem::replace(&mut self.partition, partition) != partition {
            self.kept = None;
        }
        self.input.feed(ctx, feed);
    }
}

/// Edges by label.
pub(super) struct Edges<'p> {
    labels: &'p [Str],
    tokens: Option<Vec<Token>>,
}

/// Scan of edges.
pub(super) type ScanEdges<'p> = Scan<'p, Edges<'p>>;

impl<'p> ScanEdges<'p> {
    pub(super) fn new(input: Boxed<'p>, out: Slot, labels: &'p [Str]) -> Self {
        Self::over(input, out, Edges { labels, tokens: None })
    }
}

impl Source for Edges<'_> {
    type Item = Edge;

    fn is_constant(&self) -> bool {
        true
    }

    fn begin(&mut self, _: &Batch, _: usize, ctx: &Context<'_>) -> Result<bool> {
        let tokens = tokens_of(self.labels, ctx);
        if tokens.len() < self.labels.len() {
            ctx.view.record_edge_scan();
        }
        let possible = self.labels.is_empty() || !tokens.is_empty();
        self.tokens = (!self.labels.is_empty()).then_some(tokens);
        Ok(possible)
    }

    fn read(
        &mut self,
        rows: usize,
        state: &mut ScanState,
        ctx: &Context<'_>,
        out: &mut Vec<Edge>,
    ) -> Result<bool> {
        ctx.view.scan_edges(self.tokens.as_deref(), rows as u32, state, out)
    }

    fn column(items: &[Edge]) -> Column {
        Column::Edges(items.to_vec())
    }
}

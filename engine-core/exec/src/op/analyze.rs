//! Algorithms on the whole graph, whose results are computed properties of the vertices (`view::computed`).
//!
//! The operator reads all rows, so that nothing before it sees the results. Then it reads the vertices and the edges of the graph
//! into lists by number, runs the algorithm on them (`kernels`), and yields the rows.
//!
//! What must never happen: a list grows without a charge, or a loop over vertices or edges does not look at the deadline.

mod kernels;

use super::{Boxed, Feed, Operator, Want, build};
use crate::spill::Queue;
use crate::view::ScanState;
use crate::{Batch, Context, Error, Result};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tidegraph_apl::{VertexRead, VertexRows, VertexScan};
use tidegraph_plan::{Algorithm, Op, Slot};
use tidegraph_types::{Gui, Str, Value};

/// Number of vertices that are read at a time.
const PIECE: usize = 4096;

/// Bytes of a vertex in the table of numbers: a table of twice the size may hold it.
const BYTES_PER_ENTRY: usize = 2 * (size_of::<Gui>() + size_of::<u64>());

/// Runs an algorithm, and yields the rows of its input.
pub(super) struct Analyze<'p> {
    input: Boxed<'p>,
    steps: Boxed<'p>,
    algorithm: Algorithm,
    key: &'p Str,
    weights: Option<Slot>,
    at: Slot,
    edge: Slot,
    rows: Queue,
    ran: bool,
}

/// The bytes that the algorithm holds while it runs.
struct Account<'c, 'a> {
    ctx: &'c Context<'a>,
    charged: usize,
}

impl<'c, 'a> Account<'c, 'a> {
    fn new(ctx: &'c Context<'a>) -> Self {
        Self { ctx, charged: 0 }
    }

    fn charge(&mut self, bytes: usize) -> Result<()> {
        self.ctx.memory.charge(bytes)?;
        self.charged += bytes;
        Ok(())
    }

    /// Makes a list with the same value for a number of vertices.
    fn list<T: Clone>(&mut self, value: T, len: usize) -> Result<Vec<T>> {
        self.charge(len.saturating_mul(size_of::<T>()))?;
        Ok(vec![value; len])
    }

    /// Adds to a list.
    fn push<T>(&mut self, list: &mut Vec<T>, item: T) -> Result<()> {
        if list.len() == list.capacity() {
            let more = list.capacity().max(PIECE);
            self.charge(more.saturating_mul(size_of::<T>()))?;
            list.reserve_exact(more);
        }
        list.push(item);
        Ok(())
    }
}

impl Drop for Account<'_, '_> {
    fn drop(&mut self) {
        self.ctx.memory.release(self.charged);
    }
}

impl<'p> Analyze<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op, measured: bool) -> Result<Self> {
        let Op::Analyze { algorithm, key, weights, steps, at, edge, .. } = op else {
            return Err(Error::Plan("not an algorithm".to_owned()));
        };
        Ok(Self {
            input,
            steps: build(steps, measured)?,
            algorithm: *algorithm,
            key,
            weights: *weights,
            at: *at,
            edge: *edge,
            rows: Queue::default(),
            ran: false,
        })
    }

    fn run(&mut self, ctx: &Context<'_>) -> Result<()> {
        let mut account = Account::new(ctx);
        let mut found: FxHashMap<Gui, f64> = FxHashMap::default();
        let mut slots = None;
        while let Some(batch) = self.input.next(ctx, Want::ALL)? {
            ctx.check()?;
            slots = Some(batch.columns.len());
            if let Some(column) = self.weights.and_then(|slot| batch.column(slot)) {
                for gui in (0..batch.len).filter_map(|row| column.vertex(row)) {
                    if let Some(count) = found.get_mut(&gui) {
                        *count += 1.0;
                    } else {
                        account.charge(BYTES_PER_ENTRY)?;
                        found.insert(gui, 1.0);
                    }
                }
            }
            self.rows.push(batch, ctx)?;
        }
        let Some(slots) = slots else { return Ok(()) };
        let vertices = vertices(&mut account)?;
        let pairs = self.edges(slots, &vertices, &mut account)?;
        let weights = match self.weights {
            Some(_) => {
                let mut weights = account.list(0.0, vertices.len())?;
                for (weight, gui) in weights.iter_mut().zip(&vertices) {
                    *weight = found.get(gui).copied().unwrap_or(0.0);
                }
                Some(weights)
            }
            None => None,
        };
        let values = match self.algorithm {
            Algorithm::PageRank { damping, rounds } => {
                let ranks = kernels::page_rank(&pairs, weights, damping, rounds, &mut account)?;
                table(&vertices, ranks.into_iter().map(Value::Double), ctx)?
            }
            Algorithm::PeerPressure { rounds } => {
                let (ids, order) = ids(&vertices, ctx, &mut account)?;
                let clusters = kernels::peer_pressure(&pairs, weights, &order, rounds, &mut account)?;
                let clusters = named(&clusters, &ids).map(|id| ctx.ids.value(id));
                table(&vertices, clusters, ctx)?
            }
            Algorithm::ConnectedComponent => {
                let (ids, order) = ids(&vertices, ctx, &mut account)?;
                let components = kernels::components(&pairs, &order, &mut account)?;
                // As in TinkerPop, a component is a string, whatever the type of ids.
                let components = named(&components, &ids).map(|id| Value::string(ctx.ids.shown(id)));
                table(&vertices, components, ctx)?
            }
        };
        ctx.view.compute(self.key, values);
        Ok(())
    }

    /// Reads the edges: pairs of the numbers of the vertices where they begin and to which they lead.
    fn edges(
        &mut self,
        slots: usize,
        vertices: &[Gui],
        account: &mut Account<'_, '_>,
    ) -> Result<kernels::Pairs> {
        let ctx = account.ctx;
        let numbers: FxHashMap<Gui, u32> = table(vertices, 0.., ctx)?;
        account.charged += vertices.len() * 2 * size_of::<(Gui, u32)>();
        let mut pairs = vec![];
        self.steps.feed(ctx, Feed::new(Batch::unbound(1, slots), 1));
        while let Some(batch) = self.steps.next(ctx, Want::ALL)? {
            ctx.check()?;
            let (Some(at), Some(edges)) = (batch.column(self.at), batch.column(self.edge)) else { continue };
            for row in 0..batch.len {
                let (Some(from), Some(edge)) = (at.vertex(row), edges.edge(row)) else {
                    return Err(Error::of_type("an algorithm", "an edge", &edges.get(row)));
                };
                let to = if edge.source == from { edge.target } else { edge.source };
                if let (Some(from), Some(to)) = (numbers.get(&from), numbers.get(&to)) {
                    account.push(&mut pairs, (*from, *to))?;
                }
            }
        }
        Ok(kernels::Pairs { vertices: vertices.len(), pairs })
    }
}

/// Reads all vertices.
fn vertices(account: &mut Account<'_, '_>) -> Result<Vec<Gui>> {
    let ctx = account.ctx;
    let scan = VertexScan { max_rows: PIECE as u32, ..VertexScan::default() };
    let (mut state, mut piece, mut all) = (ScanState::default(), vec![], vec![]);
    loop {
        ctx.check()?;
        piece.clear();
        let more = ctx.view.scan_vertices(&scan, &mut state, &mut piece)?;
        for gui in &piece {
            account.push(&mut all, *gui)?;
        }
        if !more {
            break;
        }
    }
    if u32::try_from(all.len()).is_err() {
        return Err(Error::Plan(format!("an algorithm on {} vertices", all.len())));
    }
    Ok(all)
}

/// Reads the ids of vertices, and puts their numbers in the order of the ids.
fn ids(vertices: &[Gui], ctx: &Context<'_>, account: &mut Account<'_, '_>) -> Result<(Vec<Str>, Vec<u32>)> {
    account.charge(vertices.len().saturating_mul(size_of::<Str>() + size_of::<u32>()))?;
    let (mut ids, mut rows) = (Vec::with_capacity(vertices.len()), VertexRows::default());
    for piece in vertices.chunks(PIECE) {
        ctx.check()?;
        rows.clear();
        ctx.view.vertices(&VertexRead { ids: true, ..VertexRead::default() }, piece, &mut rows)?;
        // The results hold them as long as the request runs.
        ctx.memory.charge(rows.ids.iter().map(|id| id.len()).sum())?;
        ids.append(&mut rows.ids);
    }
    account.charge(vertices.len().saturating_mul(size_of::<(&str, u32)>()))?;
    // A heap, because it can be stopped while it sorts.
    let mut heap: BinaryHeap<Reverse<(&str, u32)>> =
        ids.iter().map(Str::as_str).zip(0..).map(Reverse).collect();
    let mut order = Vec::with_capacity(ids.len());
    while let Some(Reverse((_, number))) = heap.pop() {
        ctx.spend(16)?;
        order.push(number);
    }
    Ok((ids, order))
}

/// Returns for each vertex the text of the id of the vertex that stands for it.
fn named<'i>(stands_for: &'i [u32], ids: &'i [Str]) -> impl Iterator<Item = &'i Str> {
    stands_for.iter().map(move |number| &ids[*number as usize])
}

/// Makes the table of the values of vertices.
fn table<V>(
    vertices: &[Gui],
    values: impl Iterator<Item = V>,
    ctx: &Context<'_>,
) -> Result<FxHashMap<Gui, V>> {
    ctx.memory.charge(vertices.len().saturating_mul(2 * size_of::<(Gui, V)>()))?;
    let mut table = FxHashMap::with_capacity_and_hasher(vertices.len(), FxBuildHasher);
    for (gui, value) in vertices.iter().zip(values) {
        ctx.spend(4)?;
        table.insert(*gui, value);
    }
    Ok(table)
}

impl Operator for Analyze<'_> {
    fn next(&mut self, ctx: &Context<'_>, _: Want<'_>) -> Result<Option<Batch>> {
        if !std::mem::replace(&mut self.ran, true) {
            self.run(ctx)?;
        }
        self.rows.pop(ctx)
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.rows.clear(ctx);
        self.ran = false;
        self.input.feed(ctx, feed);
    }
}

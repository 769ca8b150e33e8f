//! Operators: each pulls batches from its input and yields batches.
//!
//! Roles: [`build`] makes the tree of operators of a plan once. [`Operator::next`] pulls a batch. [`Operator::feed`]
//! passes a new outer batch to the leaf of a subplan; so a subplan that was built once runs for many batches.
//!
//! *Order*: the rows of one input row stay together, in the order of the input. Exceptions are `VarExpand`, `QuantifiedPath`, `Repeat`
//! and operators built from them.
//!
//! *Want*: the caller of an operator says how many rows it can use, and from which origins it wants no more rows. An
//! operator passes this on if its rows come from rows of its input. Operators that write never do, because their
//! effects must happen.
//!
//! What must never happen: an operator yields an empty batch, buffers rows without charging them, or loops without
//! checking whether the request must stop.

mod aggregate;
mod analyze;
mod apply;
mod branch;
mod buffer;
mod bulk;
mod choose_paths;
mod collect;
mod compute;
mod count_edges;
mod counted;
mod digest;
mod distinct_values;
mod draw;
mod expand;
mod expand_into;
mod first_rows;
mod held;
mod intersect;
mod labels;
mod lists;
mod load_csv;
mod lookup;
mod measured;
mod merge;
mod nearest;
mod order;
mod pairs;
mod parallel;
mod path_search;
mod procedure;
mod quantified;
mod reach;
mod read_graph;
mod repeat;
mod row;
mod same_inputs;
mod sample;
mod scan;
mod scan_values;
mod shared_counts;
mod shortest;
mod slice;
mod var_expand;
mod walk;
mod write;
mod write_properties;

pub(crate) use buffer::{Buffer, Pieces};

use crate::batch::{BATCH_ROWS, Batch, FIRST_ROWS};
use crate::spill::KeyOrder;
use crate::{Context, Error, Result};
use measured::Measured;
use tidegraph_plan::{BindKind, Expr, Op, SortKey, TopEdges, TopVertices};

/// What the caller of an operator can use.
#[derive(Clone, Copy)]
pub(crate) struct Want<'w> {
    /// Number of rows, at least 1; operators read about as many at once.
    pub(crate) rows: usize,
    /// Origins that need no more rows.
    pub(crate) done: Option<&'w Done>,
}

impl Want<'_> {
    /// All rows, in full batches.
    pub(crate) const ALL: Want<'static> = Want { rows: BATCH_ROWS, done: None };

    /// The same with another number of rows.
    pub(crate) fn rows(self, rows: usize) -> Self {
        Self { rows: rows.max(1), ..self }
    }

    /// Whether rows of an origin are still wanted.
    pub(crate) fn wants(self, origin: u32) -> bool {
        self.done.is_none_or(|done| !done.is_done(origin))
    }
}

/// The origins that have got enough rows.
#[derive(Debug, Default)]
pub(crate) struct Done {
    flags: Vec<bool>,
    left: usize,
}

impl Done {
    pub(crate) fn new(origins: usize) -> Self {
        Self { flags: vec![false; origins], left: origins }
    }

    pub(crate) fn is_done(&self, origin: u32) -> bool {
        self.flags.get(origin as usize).copied().unwrap_or(false)
    }

    /// Marks an origin; returns `false` if it was marked before.
    pub(crate) fn mark(&mut self, origin: u32) -> bool {
        let Some(flag) = self.flags.get_mut(origin as usize) else { return false };
        let fresh = !std::mem::replace(flag, true);
        self.left -= usize::from(fresh);
        fresh
    }

    /// Whether all origins are done.
    pub(crate) fn all(&self) -> bool {
        self.left == 0
    }
}

/// The number of rows to ask for: few at first, so that short queries do little, and then twice as many each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth(usize);

impl Default for Growth {
    fn default() -> Self {
        Self(FIRST_ROWS)
    }
}

impl Growth {
    pub(crate) fn next(&mut self) -> usize {
        let rows = self.0;
        self.0 = (rows * 2).min(BATCH_ROWS);
        rows
    }
}

/// The input of a subplan.
pub(crate) struct Feed {
    /// Outer rows; the rows of the subplan carry their origins.
    pub(crate) batch: Batch,
    /// Number of origins.
    pub(crate) origins: usize,
    /// Whether operators reset their state; `false` between the rounds of a repeat.
    pub(crate) fresh: bool,
    /// Whether more feeds may follow that are not fresh.
    pub(crate) rounds: bool,
    /// The partition to which the first scan is limited.
    pub(crate) partition: Option<u16>,
    /// What operators of several threads have counted, if there are several.
    pub(crate) shared: Option<std::sync::Arc<shared_counts::SharedCounts>>,
}

impl Feed {
    pub(crate) fn new(batch: Batch, origins: usize) -> Self {
        Self { batch, origins, fresh: true, rounds: false, partition: None, shared: None }
    }

    /// Whether it is that of a whole plan: one row without values, once.
    pub(crate) fn is_root(&self) -> bool {
        let is_one = self.batch.len == 1 && self.origins == 1 && self.batch.origin.is_none();
        is_one && !self.rounds && self.partition.is_none() && self.batch.columns.iter().all(Option::is_none)
    }

    /// Makes a feed in which each outer row is its own origin.
    pub(crate) fn each_row(outer: &Batch) -> Self {
        let mut batch = outer.clone();
        batch.origin = (outer.len > 1).then(|| std::sync::Arc::new((0..outer.len as u32).collect()));
        Self::new(batch, outer.len)
    }
}

/// A running operator.
pub(crate) trait Operator: Send {
    /// Returns the next rows, at least one; `None` at the end.
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>>;

    /// Starts again with the feed's rows at the leaf.
    fn feed(&mut self, ctx: &Context<'_>, feed: Feed);
}

/// An operator of any kind, borrowing from the plan.
pub(crate) type Boxed<'p> = Box<dyn Operator + 'p>;

/// The leaf of a plan: yields the rows of its feed.
struct Argument {
    batch: Option<Batch>,
}

impl Operator for Argument {
    fn next(&mut self, _: &Context<'_>, _: Want<'_>) -> Result<Option<Batch>> {
        Ok(self.batch.take())
    }

    fn feed(&mut self, _: &Context<'_>, feed: Feed) {
        self.batch = Some(feed.batch).filter(|batch| batch.len > 0);
    }
}

/// What a sorted slice needs of the operator that reads from storage.
enum Top<'p> {
    Edges(TopEdges<'p>),
    Vertices(TopVertices<'p>),
}

/// Makes operators as [`build`] does, down to one that needs only the first edges or vertices by properties.
fn build_top<'p>(op: &'p Op, top: Top<'p>, measured: bool) -> Result<Boxed<'p>> {
    let operator: Boxed<'p> = match (op, top) {
        (Op::Let { input, bindings }, top) => {
            Box::new(row::Let::new(build_top(input, top, measured)?, bindings))
        }
        (Op::Keep { input, slots }, top) => Box::new(row::Keep::new(build_top(input, top, measured)?, slots)),
        (Op::Expand { input, .. }, Top::Edges(top)) => {
            Box::new(expand::Expand::new(build(input, measured)?, op)?.only_top(top))
        }
        (Op::ScanVertices { input, out, filter, columns }, Top::Vertices(top)) => {
            let input = build(input, measured)?;
            Box::new(scan_values::ScanValues::new(input, *out, filter, columns, true).only_top(top))
        }
        (other, _) => return build(other, measured),
    };
    Ok(if measured { Measured::around(operator, op) } else { operator })
}

/// Makes the operators below a sort with a limit.
fn build_first<'p>(input: &'p Op, keys: &'p [SortKey], measured: bool) -> Result<order::Input<'p>> {
    let Some((key, first)) = keys.first().zip(input.first_key(keys)) else {
        return Ok(order::Input::Rows(build(input, measured)?));
    };
    let order = KeyOrder { order: key.order, descending: key.descending };
    Ok(order::Input::First(Box::new(first_rows::FirstRows::new(first, order, measured)?)))
}

/// Makes the operators of a plan. They yield nothing before they are fed. `measured`: the context has a profile, which
/// counts what they do.
pub(crate) fn build(op: &Op, measured: bool) -> Result<Boxed<'_>> {
    let operator: Boxed<'_> = match op {
        Op::Argument => Box::new(Argument { batch: None }),
        Op::ScanVertices { input, out, filter, columns } => {
            let is_first = matches!(**input, Op::Argument);
            let input = build(input, measured)?;
            if columns.is_empty() {
                Box::new(scan::ScanVertices::new(input, *out, filter, is_first))
            } else {
                Box::new(scan_values::ScanValues::new(input, *out, filter, columns, is_first))
            }
        }
        Op::DigestScan { rows, .. } => Box::new(digest::DigestScan::new(build(rows, measured)?, op)?),
        Op::ScanEdges { input, out, labels } => {
            Box::new(scan::ScanEdges::new(build(input, measured)?, *out, labels))
        }
        Op::LookupVertices { input, ids, out } => {
            Box::new(lookup::Lookup::new(build(input, measured)?, ids, *out, lookup::Kind::Vertices))
        }
        Op::LookupEdges { input, ids, out } => {
            Box::new(lookup::Lookup::new(build(input, measured)?, ids, *out, lookup::Kind::Edges))
        }
        Op::Expand { input, into: true, .. } => {
            Box::new(expand_into::ExpandInto::new(build(input, measured)?, op)?)
        }
        Op::Expand { input, .. } => Box::new(expand::Expand::new(build(input, measured)?, op)?),
        Op::CountEdges { input, .. } => Box::new(count_edges::CountEdges::new(build(input, measured)?, op)?),
        Op::Intersect { input, steps, .. } => {
            Box::new(intersect::Intersect::new(build(input, measured)?, build(steps, measured)?, op)?)
        }
        Op::VarExpand { input, ends_only: true, .. } => {
            Box::new(reach::Reach::new(build(input, measured)?, op)?)
        }
        Op::VarExpand { input, .. } => Box::new(var_expand::VarExpand::new(build(input, measured)?, op)?),
        Op::QuantifiedPath { input, edges, groups, .. } => {
            let made = groups.iter().map(|(_, list)| *list).chain(*edges).collect();
            let path = quantified::QuantifiedPath::new(build(input, measured)?, op, measured)?;
            held::Held::around(Box::new(path), made)
        }
        Op::PathSearch { input, parts, .. } => {
            let lists = |part: &tidegraph_plan::PathPart| {
                let groups: Vec<_> = part.groups.iter().map(|(_, list)| *list).collect();
                groups.into_iter().chain(part.edges)
            };
            let made = parts.iter().flat_map(lists).collect();
            let search = path_search::PathSearch::new(build(input, measured)?, op, measured)?;
            held::Held::around(Box::new(search), made)
        }
        Op::ShortestPath { input, .. } => Box::new(shortest::ShortestPath::new(build(input, measured)?, op)?),
        Op::NearestPath { input, edges, .. } => {
            let path = nearest::NearestPath::new(build(input, measured)?, op, measured)?;
            held::Held::around(Box::new(path), vec![*edges])
        }
        Op::Analyze { input, .. } => Box::new(analyze::Analyze::new(build(input, measured)?, op, measured)?),
        Op::Match { .. } => return Err(Error::Plan("a pattern was not lowered".to_owned())),
        Op::Filter { input, predicate } => {
            Box::new(row::Filter::new(build(input, measured)?, input, predicate))
        }
        Op::Let { input, bindings } => {
            let computed =
                bindings.iter().filter(|(_, expr)| !matches!(expr, Expr::Slot(_) | Expr::Literal(_)));
            let slots = computed.map(|(slot, _)| *slot).collect();
            held::Held::around(Box::new(row::Let::new(build(input, measured)?, bindings)), slots)
        }
        Op::Keep { input, slots } => Box::new(row::Keep::new(build(input, measured)?, slots)),
        Op::CallProcedure { input, procedure, args, yields } => {
            Box::new(procedure::CallProcedure::new(build(input, measured)?, procedure, args, yields))
        }
        Op::LoadCsv { input, out, .. } => {
            held::Held::around(Box::new(load_csv::LoadCsv::new(build(input, measured)?, op)?), vec![*out])
        }
        Op::Unwind { input, list, out } => Box::new(row::Unwind::new(build(input, measured)?, list, *out)),
        Op::Aggregate { .. } => Box::new(aggregate::Aggregate::new(op, measured)?),
        Op::Distinct { input, by } => Box::new(slice::Distinct::new(build(input, measured)?, by)),
        Op::Sort { input, keys } => {
            Box::new(order::Sort::new(order::Input::Rows(build(input, measured)?), keys, None))
        }
        Op::Slice { input, skip, limit } => {
            let below = match &**input {
                // The sort keeps only the rows that the slice needs.
                Op::Sort { input, keys } if limit.is_some() => {
                    let edges = op.top_edges().map(Top::Edges);
                    let below = match edges.or_else(|| op.top_vertices().map(Top::Vertices)) {
                        Some(top) => order::Input::Rows(build_top(input, top, measured)?),
                        None => build_first(input, keys, measured)?,
                    };
                    Box::new(order::Sort::new(below, keys, Some((skip.as_ref(), limit.as_ref()))))
                }
                other => build(other, measured)?,
            };
            Box::new(slice::Slice::new(below, skip.as_ref(), limit.as_ref(), input))
        }
        Op::Top { input, keys, count } => {
            let sampled = op.sampled_scan();
            let below = match sampled {
                Some(_) => order::Input::Rows(build(input, measured)?),
                None => build_first(input, keys, measured)?,
            };
            let sorted = Box::new(order::Sort::new(below, keys, Some((None, Some(count)))));
            match sampled {
                Some(Op::ScanVertices { out, filter, columns, .. }) => {
                    Box::new(sample::SampledScan::new(sorted, *out, filter, columns, count))
                }
                _ => sorted,
            }
        }
        Op::ChoosePaths { input, .. } => {
            Box::new(choose_paths::ChoosePaths::new(build(input, measured)?, op)?)
        }
        Op::Draw { input, drawn, place } => Box::new(draw::Draw::new(build(input, measured)?, drawn, *place)),
        Op::Tail { input, count } => Box::new(order::Tail::new(build(input, measured)?, count)),
        Op::TimeLimit { input, millis } => Box::new(slice::TimeLimit::new(
            build(input, measured)?,
            std::time::Duration::from_millis(*millis),
        )),
        Op::Eager { input } => Box::new(buffer::Eager::new(build(input, measured)?)),
        Op::Each { input, by } => Box::new(collect::Each::new(build(input, measured)?, by)),
        Op::Collect { input, register, what, eager } => {
            Box::new(collect::Collect::new(build(input, measured)?, *register, what, *eager))
        }
        Op::Bulk { input, .. } => Box::new(bulk::Bulk::new(build(input, measured)?, op)?),
        Op::Apply { input, plan, kind } => {
            Box::new(apply::Apply::new(build(input, measured)?, plan, kind, measured)?)
        }
        Op::Bind { input, out, kind, .. } => {
            let bind = Box::new(apply::Bind::new(build(input, measured)?, op, measured)?);
            match kind {
                BindKind::Collect(_) | BindKind::First(_) => held::Held::around(bind, vec![*out]),
                BindKind::Exists | BindKind::Count => bind,
            }
        }
        Op::Union { input, branches } => {
            Box::new(branch::Union::new(build(input, measured)?, branches, measured)?)
        }
        Op::Coalesce { input, branches } => {
            Box::new(branch::Coalesce::new(build(input, measured)?, branches, measured)?)
        }
        Op::Choose { input, branches, otherwise } => {
            Box::new(branch::Choose::new(build(input, measured)?, branches, otherwise.as_deref(), measured)?)
        }
        Op::Repeat { input, .. } => Box::new(repeat::Repeat::new(build(input, measured)?, op, measured)?),
        Op::CreateVertex { input, .. } | Op::CreateEdge { input, .. } => {
            Box::new(write::Create::new(build(input, measured)?, op)?)
        }
        Op::SetProperties { input, element, properties } => {
            Box::new(write_properties::SetProperties::new(build(input, measured)?, element, properties))
        }
        Op::SetPropertyMap { input, element, map, replace, cardinality } => {
            let input = build(input, measured)?;
            Box::new(write_properties::SetPropertyMap::new(input, element, map, *replace, *cardinality))
        }
        Op::SetLabels { input, element, add, remove } => {
            Box::new(write_properties::SetLabels::new(build(input, measured)?, element, add, remove))
        }
        Op::Delete { input, targets, detach } => {
            Box::new(write::Delete::new(build(input, measured)?, targets, *detach))
        }
        Op::ReadGraph { input, .. } => Box::new(read_graph::ReadGraph::new(build(input, measured)?, op)?),
        Op::Merge { input, matching, create } => Box::new(merge::Merge::new(
            build(input, measured)?,
            build(matching, measured)?,
            build(create, measured)?,
        )),
    };
    Ok(if measured { Measured::around(operator, op) } else { operator })
}

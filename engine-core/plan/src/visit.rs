//! Traversal of plans: the inputs, subplans and expressions of each operator, so that passes stay short.

use crate::op::{Drawn, ScanTest};
use crate::passes::keep::{Live, needs_before};
use crate::{BindKind, Expr, Op, PropertyAssignment, ScanFilter, Slot};
use tidegraph_types::Str;

/// Lists the input (if any) and the subplans of an operator, in this order, for shared and mutable traversals. The
/// shared one passes `iter` and `as_deref`, the mutable one their mutable forms and `mut`.
macro_rules! children {
    ($op:expr, $iter:ident, $as_deref:ident $(, $mut:ident)?) => {
        match $op {
            Op::Argument => vec![],
            Op::ScanVertices { input, .. }
            | Op::ScanEdges { input, .. }
            | Op::LookupVertices { input, .. }
            | Op::LookupEdges { input, .. }
            | Op::Expand { input, .. }
            | Op::CountEdges { input, .. }
            | Op::VarExpand { input, .. }
            | Op::ShortestPath { input, .. }
            | Op::Match { input, .. }
            | Op::Filter { input, .. }
            | Op::Let { input, .. }
            | Op::Keep { input, .. }
            | Op::Unwind { input, .. }
            | Op::CallProcedure { input, .. }
            | Op::LoadCsv { input, .. }
            | Op::Aggregate { input, .. }
            | Op::Distinct { input, .. }
            | Op::ChoosePaths { input, .. }
            | Op::Sort { input, .. }
            | Op::Slice { input, .. }
            | Op::Top { input, .. }
            | Op::Draw { input, .. }
            | Op::Tail { input, .. }
            | Op::Eager { input }
            | Op::TimeLimit { input, .. }
            | Op::Each { input, .. }
            | Op::Collect { input, .. }
            | Op::Bulk { input, .. }
            | Op::CreateVertex { input, .. }
            | Op::CreateEdge { input, .. }
            | Op::SetProperties { input, .. }
            | Op::SetPropertyMap { input, .. }
            | Op::SetLabels { input, .. }
            | Op::ReadGraph { input, .. }
            | Op::Delete { input, .. } => vec![&$($mut)? **input],
            Op::Apply { input, plan, .. } | Op::Bind { input, plan, .. } => {
                vec![&$($mut)? **input, &$($mut)? **plan]
            }
            Op::Intersect { input, steps, .. }
            | Op::NearestPath { input, steps, .. }
            | Op::Analyze { input, steps, .. } => vec![&$($mut)? **input, &$($mut)? **steps],
            Op::DigestScan { input, rows, .. } => vec![&$($mut)? **input, &$($mut)? **rows],
            Op::QuantifiedPath { input, body, .. } => vec![&$($mut)? **input, &$($mut)? **body],
            Op::PathSearch { input, parts, .. } => std::iter::once(&$($mut)? **input)
                .chain(parts.$iter().map(|part| &$($mut)? part.body))
                .collect(),
            Op::Union { input, branches } | Op::Coalesce { input, branches } => {
                std::iter::once(&$($mut)? **input).chain(branches.$iter()).collect()
            }
            Op::Choose { input, branches, otherwise } => std::iter::once(&$($mut)? **input)
                .chain(branches.$iter().map(|b| &$($mut)? b.plan))
                .chain(otherwise.$as_deref())
                .collect(),
            Op::Repeat { input, body, until, emit, .. } => [&$($mut)? **input, &$($mut)? **body]
                .into_iter()
                .chain(until.$iter().chain(emit.$iter()).map(|t| &$($mut)? *t.plan))
                .collect(),
            Op::Merge { input, matching, create } => {
                vec![&$($mut)? **input, &$($mut)? **matching, &$($mut)? **create]
            }
        }
    };
}

impl Op {
    /// Returns the operator that feeds this one; `None` for `Argument`.
    #[must_use]
    pub fn input(&self) -> Option<&Op> {
        self.children().into_iter().next()
    }

    /// Returns the subplans of this operator.
    #[must_use]
    pub fn subplans(&self) -> Vec<&Op> {
        self.children().into_iter().skip(1).collect()
    }

    /// Returns the input (if any) and the subplans.
    #[must_use]
    pub fn children(&self) -> Vec<&Op> {
        children!(self, iter, as_deref)
    }

    /// Returns the input (if any) and the subplans, to be rewritten in place.
    pub fn children_mut(&mut self) -> Vec<&mut Op> {
        children!(self, iter_mut, as_deref_mut, mut)
    }

    /// Returns the expressions of this operator, without those of its children.
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Op::ScanVertices { filter, .. } | Op::DigestScan { filter, .. } => filter.exprs(),
            Op::LookupVertices { ids, .. } | Op::LookupEdges { ids, .. } => vec![ids],
            Op::QuantifiedPath { selection, .. } => {
                selection.iter().filter_map(|selection| selection.accept.as_ref()).collect()
            }
            Op::PathSearch { parts, .. } => parts.iter().filter_map(|part| part.check.as_ref()).collect(),
            Op::VarExpand { edge_filter, .. } | Op::ShortestPath { edge_filter, .. } => {
                edge_filter.iter().map(|(_, e)| &**e).collect()
            }
            Op::Match { pattern, .. } => pattern
                .nodes
                .iter()
                .flat_map(|n| &n.properties)
                .chain(pattern.edges.iter().flat_map(|e| &e.properties))
                .map(|(_, e)| e)
                .chain(&pattern.predicate)
                .collect(),
            Op::Filter { predicate, .. } => vec![predicate],
            Op::Let { bindings, .. } => bindings.iter().map(|(_, e)| e).collect(),
            Op::Unwind { list, .. } => vec![list],
            Op::CallProcedure { args, .. } => args.iter().collect(),
            Op::LoadCsv { url, .. } | Op::ReadGraph { url, .. } => vec![url],
            Op::Aggregate { keys, items, .. } => {
                keys.iter().map(|(_, e)| e).chain(items.iter().flat_map(|i| &i.args)).collect()
            }
            Op::Distinct { by, .. } => by.iter().collect(),
            Op::ChoosePaths { by, length, .. } => by.iter().chain([length]).collect(),
            Op::Sort { keys, .. } => keys.iter().map(|k| &k.expr).collect(),
            Op::Slice { skip, limit, .. } => skip.iter().chain(limit).collect(),
            Op::Top { keys, count, .. } => keys.iter().map(|k| &k.expr).chain([count]).collect(),
            Op::Tail { count, .. } => vec![count],
            Op::Draw { drawn, .. } => match drawn {
                Drawn::Shuffled => vec![],
                Drawn::Sample { count, weight } => vec![count, weight],
            },
            Op::Choose { branches, .. } => branches.iter().map(|b| &b.condition).collect(),
            Op::Repeat { times, .. } => times.iter().collect(),
            Op::CreateVertex { id, labels, properties, properties_from, .. } => id
                .iter()
                .chain(labels)
                .chain(properties.iter().flat_map(PropertyAssignment::exprs))
                .chain(properties_from)
                .collect(),
            Op::CreateEdge { id, label, from, to, properties, properties_from, .. } => id
                .iter()
                .chain([label, from, to])
                .chain(properties.iter().flat_map(PropertyAssignment::exprs))
                .chain(properties_from)
                .collect(),
            Op::SetProperties { element, properties, .. } => std::iter::once(element)
                .chain(properties.iter().flat_map(PropertyAssignment::exprs))
                .collect(),
            Op::SetPropertyMap { element, map, .. } => vec![element, map],
            Op::SetLabels { element, add, remove, .. } => {
                std::iter::once(element).chain(add).chain(remove).collect()
            }
            Op::Delete { targets, .. } => targets.iter().collect(),
            Op::Collect { what, .. } => what.exprs(),
            Op::Argument
            | Op::ScanEdges { .. }
            | Op::Expand { .. }
            | Op::CountEdges { .. }
            | Op::Intersect { .. }
            | Op::NearestPath { .. }
            | Op::Analyze { .. }
            | Op::Keep { .. }
            | Op::Eager { .. }
            | Op::TimeLimit { .. }
            | Op::Each { .. }
            | Op::Bulk { .. }
            | Op::Apply { .. }
            | Op::Bind { .. }
            | Op::Union { .. }
            | Op::Coalesce { .. }
            | Op::Merge { .. } => vec![],
        }
    }

    /// Whether this operator or one below it, subplans included, writes to the graph.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.writes_itself() || self.children().into_iter().any(Op::writes)
    }

    /// Whether this operator or one below it, subplans included, reads files.
    #[must_use]
    pub fn reads_files(&self) -> bool {
        matches!(self, Op::LoadCsv { .. } | Op::ReadGraph { .. })
            || self.children().into_iter().any(Op::reads_files)
    }

    /// Whether this operator or one below it, subplans included, changes a register.
    #[must_use]
    pub fn collects(&self) -> bool {
        matches!(self, Op::Collect { .. }) || self.children().into_iter().any(Op::collects)
    }

    /// Whether this operator or one below it, subplans included, changes what later operators read, though nothing is written.
    #[must_use]
    pub fn analyzes(&self) -> bool {
        matches!(self, Op::Analyze { .. }) || self.children().into_iter().any(Op::analyzes)
    }

    /// Whether this operator itself writes to the graph.
    #[must_use]
    pub fn writes_itself(&self) -> bool {
        matches!(
            self,
            Op::CreateVertex { .. }
                | Op::CreateEdge { .. }
                | Op::SetProperties { .. }
                | Op::SetPropertyMap { .. }
                | Op::SetLabels { .. }
                | Op::ReadGraph { .. }
                | Op::Delete { .. }
        )
    }
}

impl ScanFilter {
    /// Returns the operands of all tests.
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        self.tests().flat_map(|(_, test)| test.exprs()).collect()
    }

    /// Returns all tests with their keys.
    pub fn tests(&self) -> impl Iterator<Item = (&Str, &ScanTest)> {
        let conditions = self.conditions.iter().map(|condition| (&condition.key, &condition.test));
        self.predicates.iter().map(|(key, test)| (key, test)).chain(conditions)
    }
}

impl ScanTest {
    /// Returns the operands.
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            ScanTest::Exists => vec![],
            ScanTest::Equals(e) | ScanTest::Within(e) | ScanTest::StartsWith(e) => vec![e],
            ScanTest::Range { low, high } => low.iter().chain(high).map(|(e, _)| e).collect(),
        }
    }
}

impl Op {
    /// Whether storage can count the rows of this operator without returning them. `slot`: the count is of the values
    /// of this slot, which the operator must bind, so that none is null.
    #[must_use]
    pub fn is_counted(&self, slot: Option<crate::Slot>) -> bool {
        let (edge, vertex) = match self {
            Op::ScanVertices { out, .. } => (None, Some(*out)),
            Op::Expand { edge, to, into: false, .. } => (*edge, *to),
            _ => return false,
        };
        slot.is_none_or(|slot| Some(slot) == edge || Some(slot) == vertex)
    }

    /// Whether this operator is an aggregation without keys whose items only count rows that storage can count.
    #[must_use]
    pub fn counts_in_storage(&self) -> bool {
        let Op::Aggregate { input, keys, items } = self else { return false };
        let counts = |item: &crate::AggregateItem| {
            let slot = match (item.kind, &item.args[..]) {
                (crate::AggregateKind::CountRows, []) => None,
                (crate::AggregateKind::Count, [Expr::Slot(slot)]) => Some(*slot),
                _ => return false,
            };
            !item.distinct && !item.empty_is_unbound && !item.weighted && input.is_counted(slot)
        };
        keys.is_empty() && !items.is_empty() && items.iter().all(counts)
    }
}

impl Op {
    /// Returns the filter of the first scan if threads may share the work of this aggregation: each aggregates the rows of
    /// some partitions of that scan. So the operators between make rows of each row on its own, in their order.
    #[must_use]
    pub fn split_scan(&self) -> Option<&ScanFilter> {
        let Op::Aggregate { input, items, .. } = self else { return None };
        // The sum of floats that were told apart would depend on the order of a hash table.
        let merges = |item: &crate::AggregateItem| {
            use crate::AggregateKind::{Average, StdDev, StdDevP, Sum};
            !(item.distinct && matches!(item.kind, Sum | Average | StdDev | StdDevP))
        };
        if !items.iter().all(merges) || self.is_random() || self.writes() || self.reads_files() {
            return None;
        }
        let mut at = &**input;
        loop {
            at = match at {
                Op::ScanVertices { input, filter, .. } if matches!(**input, Op::Argument) => {
                    return Some(filter);
                }
                Op::ScanVertices { input, .. }
                | Op::ScanEdges { input, .. }
                | Op::LookupVertices { input, .. }
                | Op::LookupEdges { input, .. }
                | Op::Expand { input, .. }
                | Op::CountEdges { input, .. }
                | Op::Intersect { input, .. }
                | Op::VarExpand { input, .. }
                | Op::ShortestPath { input, .. }
                | Op::QuantifiedPath { input, .. }
                | Op::PathSearch { input, .. }
                | Op::Filter { input, .. }
                | Op::Let { input, .. }
                | Op::Keep { input, .. }
                | Op::Unwind { input, .. }
                | Op::Bulk { input, .. }
                | Op::Apply { input, .. }
                | Op::Bind { input, .. } => input,
                _ => return None,
            };
        }
    }

    /// Whether this operator or one below it, subplans included, draws random numbers, or reads or changes a register.
    #[must_use]
    pub fn is_random(&self) -> bool {
        matches!(self, Op::Collect { .. } | Op::TimeLimit { .. } | Op::Draw { .. })
            || self.exprs().into_iter().any(Expr::is_random)
            || self.children().into_iter().any(Op::is_random)
    }
}

impl Op {
    /// For a `Bind`: returns the slots of its input on which its value depends; `None` if the value may differ though they
    /// have the same values, or the subplan changes anything.
    #[must_use]
    pub fn bind_inputs(&self) -> Option<Vec<Slot>> {
        let Op::Bind { plan, kind, .. } = self else { return None };
        let after = match kind {
            BindKind::First(slot) | BindKind::Collect(slot) => Live::of([*slot]),
            BindKind::Exists | BindKind::Count => Live::default(),
        };
        let is_fixed = !plan.is_random() && !plan.writes() && !plan.analyzes() && !plan.reads_files();
        is_fixed.then(|| needs_before(plan, after).slots())
    }
}

impl Expr {
    /// Whether the expression may have another value each time, though its slots have the same values.
    #[must_use]
    pub fn is_random(&self) -> bool {
        use crate::Function::{MakeUuid, Rand, RandomUuid, SampleKey, SampleLocal, SeededRand};
        matches!(
            self,
            Expr::Call(MakeUuid | Rand | RandomUuid | SampleKey | SampleLocal | SeededRand, _)
                | Expr::Register(_)
        ) || self.children().into_iter().any(Expr::is_random)
    }
}

/// Lists the expressions directly inside one, as `children` does for operators.
macro_rules! inner {
    ($expr:expr, $iter:ident, $as_deref:ident $(, $mut:ident)?) => {
        match $expr {
            Expr::Literal(_)
            | Expr::Parameter(_)
            | Expr::Slot(_)
            | Expr::Register(_)
            | Expr::IsBound(_)
            | Expr::Unused(..) => vec![],
            Expr::Property(base, _)
            | Expr::Not(base)
            | Expr::IsNull(base)
            | Expr::IsType(base, _)
            | Expr::Negate(base)
            | Expr::HasLabels(base, _)
            | Expr::HasAnyLabel(base, _) => vec![&$($mut)? **base],
            Expr::Index(a, b)
            | Expr::Xor(a, b)
            | Expr::Compare(_, a, b)
            | Expr::In(a, b)
            | Expr::Arithmetic(_, a, b) => vec![&$($mut)? **a, &$($mut)? **b],
            Expr::Slice(base, from, to) => {
                std::iter::once(&$($mut)? **base).chain(from.$as_deref()).chain(to.$as_deref()).collect()
            }
            Expr::And(all) | Expr::Or(all) | Expr::List(all) | Expr::Call(_, all) => all.$iter().collect(),
            Expr::Map(entries) => entries.$iter().map(|(_, e)| e).collect(),
            Expr::Case { branches, otherwise } => branches
                .$iter()
                .flat_map(|(c, r)| [c, r])
                .chain(std::iter::once(&$($mut)? **otherwise))
                .collect(),
            Expr::Comprehension { list, filter, map, .. } => std::iter::once(&$($mut)? **list)
                .chain(filter.$as_deref())
                .chain(map.$as_deref())
                .collect(),
            Expr::Quantified { list, predicate, .. } => vec![&$($mut)? **list, &$($mut)? **predicate],
            Expr::Reduce { start, list, step, .. } => {
                vec![&$($mut)? **start, &$($mut)? **list, &$($mut)? **step]
            }
        }
    };
}

impl Expr {
    /// Returns the expressions directly inside this one.
    #[must_use]
    pub fn children(&self) -> Vec<&Expr> {
        inner!(self, iter, as_deref)
    }

    /// Returns the expressions directly inside this one, to be rewritten in place.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        inner!(self, iter_mut, as_deref_mut, mut)
    }

    /// Calls `visit` for each slot that the value depends on, including local slots of comprehensions.
    pub fn for_each_slot(&self, visit: &mut dyn FnMut(crate::Slot)) {
        match self {
            Expr::Slot(slot) | Expr::IsBound(slot) => visit(*slot),
            Expr::Unused(edge, others) => std::iter::once(edge).chain(others).for_each(|slot| visit(*slot)),
            _ => {}
        }
        for child in self.children() {
            child.for_each_slot(visit);
        }
    }
}

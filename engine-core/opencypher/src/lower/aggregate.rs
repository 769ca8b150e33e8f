//! Aggregating functions: their names, and where in an expression they stand.

use super::Lowering;
use crate::ast::{Expr as Tree, ExprKind};
use crate::fault::{Fault, Result};
use tidegraph_plan::{AggregateItem, AggregateKind, Slot};

/// Returns the aggregate with this name, in upper or lower case.
pub(super) fn kind(name: &str) -> Option<AggregateKind> {
    const NAMES: [(&str, AggregateKind); 10] = [
        ("count", AggregateKind::Count),
        ("sum", AggregateKind::Sum),
        ("avg", AggregateKind::Average),
        ("min", AggregateKind::Min),
        ("max", AggregateKind::Max),
        ("collect", AggregateKind::Collect),
        ("stdev", AggregateKind::StdDev),
        ("stdevp", AggregateKind::StdDevP),
        ("percentilecont", AggregateKind::PercentileCont),
        ("percentiledisc", AggregateKind::PercentileDisc),
    ];
    NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
}

/// Whether the tree itself is an aggregating function.
pub(super) fn is_aggregate(tree: &Tree) -> bool {
    match &tree.kind {
        ExprKind::CountRows => true,
        ExprKind::Call { name, .. } => kind(name).is_some(),
        _ => false,
    }
}

/// Calls `visit` for the outermost aggregates of an expression, which its projection computes. An aggregate in the body
/// of a comprehension would be computed for each item; it is not visited, and refused later.
pub(super) fn for_each<'a>(tree: &'a Tree, visit: &mut dyn FnMut(&'a Tree)) {
    match &tree.kind {
        _ if is_aggregate(tree) => visit(tree),
        ExprKind::Comprehension { list, .. } | ExprKind::Quantified { list, .. } => for_each(list, visit),
        ExprKind::Reduce { start, list, .. } => {
            for_each(start, visit);
            for_each(list, visit);
        }
        ExprKind::PatternComprehension { .. } => {}
        _ => tree.for_each_child(&mut |child| for_each(child, visit)),
    }
}

/// Whether a projection of this expression groups.
pub(super) fn contains(tree: &Tree) -> bool {
    let mut found = false;
    for_each(tree, &mut |_| found = true);
    found
}

pub(super) fn not_allowed(tree: &Tree) -> Fault {
    Fault::syntax(tree.place.0, "aggregation is not allowed here, expected it in an item of WITH or RETURN")
}

impl<'a> Lowering<'a> {
    /// Lowers an aggregate in the scope before the grouping.
    pub(super) fn aggregate(&mut self, tree: &'a Tree, out: Slot) -> Result<AggregateItem> {
        let item = |kind, args, distinct| AggregateItem {
            out,
            kind,
            args,
            distinct,
            empty_is_unbound: false,
            weighted: false,
        };
        let ExprKind::Call { name, distinct, args } = &tree.kind else {
            return Ok(item(AggregateKind::CountRows, vec![], false));
        };
        let Some(kind) = kind(name) else { return Err(not_allowed(tree)) };
        let expected =
            if matches!(kind, AggregateKind::PercentileCont | AggregateKind::PercentileDisc) { 2 } else { 1 };
        if args.len() != expected {
            return Err(super::call::wrong_arguments(tree, name, args.len(), &expected.to_string()));
        }
        if let Some(inner) = args.iter().find(|argument| argument.any(&is_aggregate)) {
            return Err(Fault::syntax(inner.place.0, "aggregation inside an aggregation is not allowed"));
        }
        let random =
            |t: &Tree| matches!(&t.kind, ExprKind::Call { name, .. } if name.eq_ignore_ascii_case("rand"));
        if let Some(argument) = args.iter().find(|argument| argument.any(&random)) {
            return Err(Fault::syntax(argument.place.0, "rand() inside an aggregation is not allowed"));
        }
        let args = args.iter().map(|argument| self.value(argument)).collect::<Result<Vec<_>>>()?;
        Ok(item(kind, args, *distinct))
    }
}

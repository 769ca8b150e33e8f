//! Separates the reads of a request from its writes.
//!
//! Rows flow in batches. Without a barrier, the reads of one batch would see the writes of the batch before. Each
//! clause must see the graph as the previous clause left it. So an `Eager` goes between a read and a later write, and
//! between a write and a later read, unless a barrier (aggregate, sort, top, tail, eager) is there already. One goes
//! between two writes as well, unless their rows may take turns without a difference.

use crate::{Expr, Op, Plan, PropertyAssignment};
use tidegraph_types::{Str, Value};

/// More writes in a row than this get a barrier, so that the comparison of each with all before it stays cheap.
const MAX_WRITES: usize = 64;

/// What happened since the last barrier.
#[derive(Default)]
struct Since {
    reads: bool,
    writes: bool,
    /// The writes whose order matters to writes that are not deletions.
    changes: Vec<Write>,
}

/// A write, as far as it matters to other writes.
struct Write {
    kind: WriteKind,
    /// Whether it computes values from properties or labels of elements.
    reads: bool,
}

enum WriteKind {
    /// Creates elements, which no other row knows.
    Create,
    /// Changes an element.
    Change { element: Expr, what: Change },
    /// Deletes elements, or is a subplan that may do anything.
    Any,
}

#[derive(PartialEq)]
enum Change {
    Properties(Vec<Str>),
    AllProperties,
    Labels(Vec<Str>),
}

impl Write {
    /// Describes an operator that writes itself, or one with a subplan that writes.
    fn of(op: &Op) -> Self {
        let reads = op.exprs().into_iter().any(reads_elements);
        let change = |element: &Expr, what: Change| WriteKind::Change { element: element.clone(), what };
        let kind = match op {
            Op::CreateVertex { .. } | Op::CreateEdge { .. } => WriteKind::Create,
            Op::SetProperties { element, properties, .. } => {
                change(element, keys(properties).map_or(Change::AllProperties, Change::Properties))
            }
            Op::SetPropertyMap { element, .. } => change(element, Change::AllProperties),
            Op::SetLabels { element, add, remove, .. } => {
                let all = add.iter().chain(remove).map(|label| match label {
                    Expr::Literal(Value::String(label)) => Some(label.clone()),
                    _ => None,
                });
                match all.collect() {
                    Some(labels) => change(element, Change::Labels(labels)),
                    None => WriteKind::Any,
                }
            }
            _ => WriteKind::Any,
        };
        Self { kind, reads }
    }

    /// Whether the result may differ if the rows of both writes take turns.
    fn disturbs(&self, later: &Self) -> bool {
        match (&self.kind, &later.kind) {
            (WriteKind::Create, WriteKind::Create) => false,
            (WriteKind::Create, WriteKind::Change { .. }) => self.reads,
            (WriteKind::Change { .. }, WriteKind::Create) => later.reads,
            (WriteKind::Any, _) | (_, WriteKind::Any) => true,
            (WriteKind::Change { element, what }, WriteKind::Change { element: other, what: later_what }) => {
                // The same element gets both writes in the same order from each row.
                self.reads || later.reads || (element != other && what.overlaps(later_what))
            }
        }
    }
}

impl Change {
    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Labels(a), Self::Labels(b)) | (Self::Properties(a), Self::Properties(b)) => {
                a.iter().any(|name| b.contains(name))
            }
            (Self::Labels(_), _) | (_, Self::Labels(_)) => false,
            (Self::AllProperties, _) | (_, Self::AllProperties) => true,
        }
    }
}

/// Returns the keys of assignments; `None` if one is computed.
fn keys(properties: &[PropertyAssignment]) -> Option<Vec<Str>> {
    let key = |assignment: &PropertyAssignment| match &assignment.key {
        Expr::Literal(Value::String(key)) => Some(key.clone()),
        _ => None,
    };
    properties.iter().map(key).collect()
}

/// Inserts the barriers.
pub fn run(plan: &mut Plan) {
    if !plan.root.writes() {
        return;
    }
    let since = insert(&mut plan.root);
    // Answers may hold elements, which are read when the rows leave.
    if since.writes && !plan.columns.is_empty() {
        wrap(&mut plan.root);
    }
}

fn wrap(op: &mut Op) {
    let inner = std::mem::replace(op, Op::Argument);
    *op = Op::Eager { input: Box::new(inner) };
}

/// Returns what this operator and those below it have done since the last barrier.
fn insert(op: &mut Op) -> Since {
    if matches!(op, Op::Argument) {
        return Since::default();
    }
    let (mut own_reads, mut own_writes) = (reads(op), op.writes_itself());
    let write = op.writes_itself().then(|| Write::of(op));
    let is_barrier = matches!(
        op,
        Op::Aggregate { .. }
            | Op::Sort { .. }
            | Op::Top { .. }
            | Op::Eager { .. }
            | Op::Collect { eager: true, .. }
            | Op::Tail { .. }
            | Op::ChoosePaths { .. }
    ) && !own_writes;
    let mut children = op.children_mut().into_iter();
    let Some(input) = children.next() else { return Since::default() };
    for subplan in children {
        let inside = insert(subplan);
        own_reads |= inside.reads || subplan.reads_graph();
        own_writes |= subplan.writes();
    }
    let mut since = insert(input);
    if (own_writes && since.reads) || (own_reads && since.writes) {
        wrap(input);
        since = Since::default();
    }
    if is_barrier {
        return Since::default();
    }
    if own_writes {
        let write = write.unwrap_or(Write { kind: WriteKind::Any, reads: true });
        let any = matches!(write.kind, WriteKind::Any);
        if since.changes.len() >= MAX_WRITES
            || (any && since.writes)
            || since.changes.iter().any(|earlier| earlier.disturbs(&write))
        {
            wrap(input);
            since = Since::default();
        }
        // Elements that are created without reading disturb deletions only.
        if write.reads || !matches!(write.kind, WriteKind::Create) {
            since.changes.push(write);
        }
    }
    Since { reads: since.reads || own_reads, writes: since.writes || own_writes, changes: since.changes }
}

impl Op {
    /// Whether this operator or one below it, subplans included, may read the graph.
    #[must_use]
    pub fn reads_graph(&self) -> bool {
        reads(self) || self.children().into_iter().any(Op::reads_graph)
    }
}

fn reads(op: &Op) -> bool {
    matches!(
        op,
        Op::ScanVertices { .. }
            | Op::ScanEdges { .. }
            | Op::LookupVertices { .. }
            | Op::LookupEdges { .. }
            | Op::Expand { .. }
            | Op::CountEdges { .. }
            | Op::Intersect { .. }
            | Op::DigestScan { .. }
            | Op::VarExpand { .. }
            | Op::ShortestPath { .. }
            | Op::NearestPath { .. }
            | Op::Analyze { .. }
            | Op::Match { .. }
            | Op::Merge { .. }
            | Op::CallProcedure { .. }
    ) || (!op.writes_itself() && op.exprs().into_iter().any(reads_elements))
}

/// Whether the expression may read an element.
fn reads_elements(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Property(..) | Expr::Index(..) | Expr::HasLabels(..) | Expr::HasAnyLabel(..) | Expr::Call(..)
    ) || expr.children().into_iter().any(reads_elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, PropertyAssignment, ScanFilter, Slot};

    fn scan(input: Op, out: u32) -> Op {
        Op::ScanVertices {
            input: Box::new(input),
            out: Slot(out),
            filter: ScanFilter::default(),
            columns: vec![],
        }
    }

    fn set(input: Op, slot: u32, value: Expr) -> Op {
        let assignment = PropertyAssignment {
            key: Expr::literal("k"),
            value,
            cardinality: tidegraph_types::Cardinality::Single,
            meta: vec![],
        };
        Op::SetProperties {
            input: Box::new(input),
            element: Expr::Slot(Slot(slot)),
            properties: vec![assignment],
        }
    }

    fn text(root: Op, answer: bool) -> String {
        let columns = if answer { vec![Column { name: "x".into(), slot: Slot(0) }] } else { vec![] };
        let mut plan = Plan { root, slots: 4, columns, timeout: None, seed: None, references: false };
        run(&mut plan);
        plan.to_string()
    }

    #[test]
    fn a_write_waits_for_the_reads_before_it() {
        let plan = set(scan(Op::Argument, 0), 0, Expr::literal(1));
        assert_eq!(text(plan, false), "scan vertices $0\neager\nset $0 {k: 1i single}\n");
    }

    #[test]
    fn a_read_waits_for_the_writes_before_it() {
        let plan = scan(set(Op::Argument, 0, Expr::literal(1)), 1);
        assert_eq!(text(plan, false), "set $0 {k: 1i single}\neager\nscan vertices $1\n");
    }

    #[test]
    fn an_answer_is_read_after_all_writes() {
        let plan = set(Op::Argument, 0, Expr::literal(1));
        assert!(text(plan, true).ends_with("eager\nanswer x=$0\n"));
    }

    #[test]
    fn a_plan_that_only_reads_stays_as_it_is() {
        assert_eq!(
            text(scan(scan(Op::Argument, 0), 1), true),
            "scan vertices $0\nscan vertices $1\nanswer x=$0\n"
        );
    }

    #[test]
    fn writes_in_subplans_count() {
        let sub = set(Op::Argument, 0, Expr::literal(1));
        let plan = Op::Apply {
            input: Box::new(scan(Op::Argument, 0)),
            plan: Box::new(sub),
            kind: crate::ApplyKind::Discard,
        };
        assert!(text(plan, false).starts_with("scan vertices $0\neager\napply discard\n"));
    }
}

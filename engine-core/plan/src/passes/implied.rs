//! Labels that vertices of a slot have though the pattern at hand does not name them: an earlier clause did, or the edge by
//! which they were reached ends at vertices of one label only, as the statistics show.
//!
//! They serve estimates only. A vertex without the label may be added at any time.

use super::estimate::Estimate;
use crate::{AggregateKind, Expr, Op, Slot};
use tidegraph_types::Str;

/// Operators that are looked at. A plan may be as deep as a query is long.
const MOST: usize = 256;

/// What is looked for, from an operator down to those below it.
#[derive(Clone, Copy)]
enum Wanted {
    /// A vertex.
    Vertex(Slot),
    /// A list of vertices.
    List(Slot),
}

impl Wanted {
    fn slot(self) -> Slot {
        match self {
            Self::Vertex(slot) | Self::List(slot) => slot,
        }
    }

    /// Returns the same of the slot from which the value was copied; `None` if it was not copied.
    fn copied(self, expr: &Expr) -> Option<Self> {
        match (self, expr) {
            (Self::Vertex(_), Expr::Slot(from)) => Some(Self::Vertex(*from)),
            (Self::List(_), Expr::Slot(from)) => Some(Self::List(*from)),
            _ => None,
        }
    }
}

/// Returns labels of the vertices in a slot of an operator's rows; none if nothing tells.
pub(super) fn labels(op: &Op, slot: Slot, estimate: &Estimate<'_>) -> Vec<Str> {
    let (mut op, mut wanted) = (op, Wanted::Vertex(slot));
    let mut named: Vec<Str> = vec![];
    for _ in 0..MOST {
        let slot = wanted.slot();
        match op {
            Op::Filter { predicate, .. } => {
                if let Wanted::Vertex(slot) = wanted {
                    add_labels(predicate, slot, &mut named);
                }
            }
            Op::ScanVertices { out, filter, .. } if *out == slot => {
                named.extend(filter.labels.iter().filter(|group| group.len() == 1).flatten().cloned());
                break;
            }
            Op::Expand { to: Some(to), into: false, labels, direction, .. } if *to == slot => {
                if named.is_empty() {
                    named.extend(estimate.implied(direction.reversed(), labels));
                }
                break;
            }
            // Without a step, it is the vertex where the walk starts.
            Op::VarExpand { to, into: false, labels, direction, length, .. } if *to == slot => {
                if named.is_empty() && length.min > 0 {
                    named.extend(estimate.implied(direction.reversed(), labels));
                }
                break;
            }
            Op::Let { bindings, .. } => {
                if let Some((_, expr)) = bindings.iter().rev().find(|(out, _)| *out == slot) {
                    let Some(copied) = wanted.copied(expr) else { break };
                    wanted = copied;
                }
            }
            Op::Unwind { list, out, .. } if *out == slot => match (wanted, list) {
                (Wanted::Vertex(_), Expr::Slot(list)) => wanted = Wanted::List(*list),
                _ => break,
            },
            Op::Aggregate { keys, items, .. } => {
                let key = keys.iter().find(|(out, _)| *out == slot);
                let item = items.iter().find(|item| item.out == slot);
                wanted = match (key, item) {
                    (Some((_, expr)), _) => match wanted.copied(expr) {
                        Some(copied) => copied,
                        None => break,
                    },
                    (None, Some(item)) => match (wanted, item.kind, &item.args[..]) {
                        (
                            Wanted::List(_),
                            AggregateKind::Collect | AggregateKind::CollectSet,
                            [Expr::Slot(from)],
                        )
                        | (Wanted::Vertex(_), AggregateKind::First, [Expr::Slot(from)]) => {
                            Wanted::Vertex(*from)
                        }
                        _ => break,
                    },
                    _ => break,
                };
            }
            _ => {}
        }
        match op.input() {
            Some(input) => op = input,
            None => break,
        }
    }
    named
}

/// Adds the labels that a condition demands of the vertex in a slot.
fn add_labels(condition: &Expr, slot: Slot, named: &mut Vec<Str>) {
    match condition {
        Expr::And(all) => all.iter().for_each(|part| add_labels(part, slot, named)),
        Expr::HasLabels(base, labels) if **base == Expr::Slot(slot) => named.extend(labels.iter().cloned()),
        _ => {}
    }
}

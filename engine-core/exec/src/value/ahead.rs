//! Computes the data that all operators of a plan together read of the vertices in each slot. Storage on other machines
//! returns these data with the look-up of the vertices. Too much data costs a little time, too little costs a round
//! trip. Neither changes a result.

use super::need::{Need, Needs};
use rustc_hash::FxHashMap;
use tidegraph_apl::{Catalog, Projection, VertexRead};
use tidegraph_plan::{Expr, Op, Plan, Slot};

/// The reads of a plan, by slot.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead(FxHashMap<Slot, Need>);

impl ReadAhead {
    /// Collects the reads of a plan.
    pub fn of(plan: &Plan) -> Self {
        let (mut needs, mut same) = (Needs::default(), Vec::new());
        walk(&plan.root, &mut needs, &mut same);
        let mut of: FxHashMap<Slot, Need> = needs.slots.into_iter().collect();
        // An answer holds all data of a vertex.
        for column in &plan.columns {
            of.entry(column.slot).or_default().merge(Need {
                ids: true,
                labels: true,
                all: true,
                ..Need::default()
            });
        }
        // A read of a slot is a read of the slot that it was copied from. Copies of copies of copies are rare.
        for _ in 0..4 {
            for (slot, from) in &same {
                if let Some(need) = of.get(slot).cloned() {
                    of.entry(*from).or_default().merge(need);
                }
            }
        }
        Self(of)
    }

    /// Returns what to read of the vertices that are looked up for a slot.
    pub fn read(&self, slot: Slot, catalog: &dyn Catalog) -> VertexRead {
        let Some(need) = self.0.get(&slot) else { return VertexRead::default() };
        let properties = match need {
            Need { all: true, .. } => Projection::All,
            Need { keys, .. } if keys.is_empty() => Projection::None,
            Need { keys, .. } => Projection::Keys(keys.iter().filter_map(|key| catalog.token(key)).collect()),
        };
        VertexRead { ids: need.ids, labels: need.labels, meta: need.all, properties }
    }
}

fn walk<'p>(op: &'p Op, needs: &mut Needs<'p>, same: &mut Vec<(Slot, Slot)>) {
    for expr in op.exprs() {
        // A wrong call is refused by its evaluation.
        let _ = needs.add(expr);
    }
    let mut takes_over = |slot: &Slot, expr: &Expr| {
        if let Expr::Slot(from) = expr {
            same.push((*slot, *from));
        }
    };
    let content = Need { labels: true, ..Need::default() };
    match op {
        Op::Let { bindings, .. } => bindings.iter().for_each(|(slot, expr)| takes_over(slot, expr)),
        Op::Aggregate { keys, .. } => keys.iter().for_each(|(slot, expr)| takes_over(slot, expr)),
        Op::SetProperties { element, .. }
        | Op::SetPropertyMap { element, .. }
        | Op::SetLabels { element, .. } => {
            needs.of_slot(element, content);
        }
        Op::Delete { targets, .. } => {
            targets.iter().for_each(|target| needs.of_slot(target, Need { ids: true, ..content.clone() }));
        }
        _ => {}
    }
    op.children().into_iter().for_each(|child| walk(child, needs, same));
}

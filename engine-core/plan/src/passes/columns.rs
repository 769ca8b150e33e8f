//! Lets a scan read the properties that later operators use of its vertices. Storage has them loaded during the scan,
//! so that no look-up of each vertex follows.
//!
//! The pass handles the scan at the start of a plan, and only in plans that change no property, because properties then have
//! the same value whenever they are read. From the scan upwards, `vertex.key` becomes the slot of a column, as long as
//! each operator passes on the rows of the scan with their slots.
//!
//! **Invariant.** A column is read only where its slot is bound and belongs to the same vertex.

use crate::{Expr, Function, Op, Plan, ScanColumn, Slot};
use tidegraph_types::{Str, Value};

/// Moves reads of properties into the scan.
pub fn run(plan: &mut Plan) {
    if plan.root.writes() || plan.root.analyzes() {
        return;
    }
    let mut scan = Scan { out: Slot(0), columns: vec![], slots: plan.slots, in_scope: false };
    scan.rewrite(&mut plan.root);
    if !scan.columns.is_empty() {
        plan.slots = scan.slots;
        scan.bind(&mut plan.root);
    }
}

struct Scan {
    /// The slot of the vertex.
    out: Slot,
    columns: Vec<ScanColumn>,
    /// Number of slots in use.
    slots: u32,
    /// Whether the operator that was rewritten last passes on the vertex and its columns.
    in_scope: bool,
}

impl Scan {
    /// Rewrites from the scan upwards.
    fn rewrite(&mut self, op: &mut Op) {
        if let Op::ScanVertices { input, out, .. } = op
            && matches!(**input, Op::Argument)
        {
            (self.out, self.in_scope) = (*out, true);
            return;
        }
        match op.children_mut().into_iter().next() {
            Some(input) => self.rewrite(input),
            None => return,
        }
        if !self.in_scope {
            return;
        }
        match op {
            Op::Filter { predicate, .. } => self.expr(predicate),
            Op::Let { bindings, .. } => {
                for (slot, expr) in bindings {
                    self.expr(expr);
                    if *slot == self.out {
                        self.in_scope = false;
                        return;
                    }
                }
            }
            Op::Unwind { list, out, .. } => {
                if let Some((slot, key)) = self.values(list) {
                    debug_assert_eq!(slot, self.out);
                    *list = Expr::Slot(self.column(&key, true));
                } else {
                    self.expr(list);
                }
                self.in_scope = *out != self.out;
            }
            Op::Sort { keys, .. } | Op::Top { keys, .. } => {
                keys.iter_mut().for_each(|key| self.expr(&mut key.expr))
            }
            Op::Distinct { by, .. } => by.iter_mut().for_each(|expr| self.expr(expr)),
            Op::Aggregate { keys, items, .. } => {
                keys.iter_mut().for_each(|(_, expr)| self.expr(expr));
                items.iter_mut().flat_map(|item| &mut item.args).for_each(|expr| self.expr(expr));
                self.in_scope = false;
            }
            Op::Keep { slots, .. } => self.in_scope = slots.contains(&self.out),
            Op::Slice { .. } | Op::Tail { .. } | Op::Eager { .. } => {}
            _ => self.in_scope = false,
        }
    }

    /// Returns vertex and key if an expression is the list of all values of one key of the vertex.
    fn values(&self, expr: &Expr) -> Option<(Slot, Str)> {
        let Expr::Call(Function::PropertyValues, args) = expr else { return None };
        let [Expr::Slot(slot), Expr::Literal(Value::String(key))] = &args[..] else { return None };
        (*slot == self.out && is_stored(key)).then(|| (*slot, key.clone()))
    }

    fn expr(&mut self, expr: &mut Expr) {
        if let Expr::Property(base, key) = expr
            && **base == Expr::Slot(self.out)
            && is_stored(key)
        {
            *expr = Expr::Slot(self.column(&key.clone(), false));
            return;
        }
        expr.children_mut().into_iter().for_each(|inner| self.expr(inner));
    }

    fn column(&mut self, key: &Str, each: bool) -> Slot {
        if let Some(known) = self.columns.iter().find(|known| known.key == *key && known.each == each) {
            return known.slot;
        }
        let slot = Slot(self.slots);
        self.slots += 1;
        self.columns.push(ScanColumn { key: key.clone(), slot, each });
        slot
    }

    /// Adds the columns to the scan, and to each `Keep` above it.
    fn bind(&self, op: &mut Op) {
        match op {
            Op::ScanVertices { input, columns, .. } if matches!(**input, Op::Argument) => {
                columns.clone_from(&self.columns);
                return;
            }
            Op::Keep { slots, .. } if slots.contains(&self.out) => {
                slots.extend(self.columns.iter().map(|column| column.slot));
            }
            _ => {}
        }
        if let Some(input) = op.children_mut().into_iter().next() {
            self.bind(input);
        }
    }
}

/// Whether a key is a property; keys with a tilde are not: `~id` is the id.
fn is_stored(key: &Str) -> bool {
    !key.starts_with('~')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AggregateItem, AggregateKind, Column, ScanFilter};

    fn scan() -> Box<Op> {
        Box::new(Op::ScanVertices {
            input: Box::new(Op::Argument),
            out: Slot(0),
            filter: ScanFilter::default(),
            columns: vec![],
        })
    }

    fn property(slot: u32, key: &str) -> Expr {
        Expr::Property(Box::new(Expr::Slot(Slot(slot))), key.into())
    }

    fn optimized(root: Op, slots: u32) -> String {
        let columns = vec![Column { name: "x".into(), slot: Slot(1) }];
        let mut plan = Plan { root, slots, columns, timeout: None, seed: None, references: false };
        run(&mut plan);
        plan.to_string()
    }

    #[test]
    fn properties_in_use_become_columns_of_the_scan() {
        let kept = Op::Keep { input: scan(), slots: vec![Slot(0)] };
        let filter = Op::Filter {
            input: Box::new(kept),
            predicate: Expr::Not(Box::new(Expr::IsNull(Box::new(property(0, "age"))))),
        };
        let count = AggregateItem {
            out: Slot(2),
            kind: AggregateKind::Max,
            args: vec![property(0, "height")],
            distinct: false,
            empty_is_unbound: false,
            weighted: false,
        };
        let keys = vec![(Slot(1), property(0, "age"))];
        let root = Op::Aggregate { input: Box::new(filter), keys, items: vec![count] };
        assert_eq!(
            optimized(root, 3),
            "scan vertices $0 with $3 = $0.age, $4 = $0.height\nkeep [$0, $3, $4]\nfilter not $3 is null\n\
             aggregate by [$1 = $3] to [$2 = Max($4)]\nanswer x=$1\n"
        );
    }

    #[test]
    fn a_slot_that_is_written_again_or_dropped_gets_no_columns() {
        let bindings =
            vec![(Slot(1), property(0, "a")), (Slot(0), property(0, "b")), (Slot(2), property(0, "c"))];
        let root = Op::Let { input: scan(), bindings };
        assert_eq!(
            optimized(root, 3),
            "scan vertices $0 with $3 = $0.a, $4 = $0.b\nlet $1 = $3, $0 = $4, $2 = $0.c\nanswer x=$1\n"
        );
        let dropped = Op::Keep { input: scan(), slots: vec![] };
        let root = Op::Let { input: Box::new(dropped), bindings: vec![(Slot(1), property(0, "a"))] };
        assert!(!optimized(root, 2).contains("with"));
    }

    #[test]
    fn plans_that_write_and_reads_of_ids_get_no_columns() {
        let bindings = vec![(Slot(1), property(0, "~id"))];
        assert!(!optimized(Op::Let { input: scan(), bindings }, 2).contains("with"));
        let bindings = vec![(Slot(1), property(0, "a"))];
        let read = Op::Let { input: scan(), bindings };
        let root = Op::Delete { input: Box::new(read), targets: vec![Expr::Slot(Slot(0))], detach: false };
        assert!(!optimized(root, 2).contains("with"));
    }
}

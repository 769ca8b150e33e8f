//! `tree` and `subgraph`: with a key a side effect, which collects paths or edges; `tree()` reduces the traversers to their tree.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, wrong_arguments};
use crate::ast::{Step, StepName};
use crate::compile::reduce::item;
use tidegraph_plan::{AggregateKind, Collected, Expr, Function, Op, Slot};

impl Compiler {
    /// `tree()`, `tree(key)`, with `by`
    pub(super) fn tree(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        flow.cur(step)?;
        let Some(path) = self.path else { return Err(wrong_arguments(step)) };
        let bys: Vec<&Step<'_>> = cursor.take_all(StepName::By).iter().collect();
        let path = if bys.is_empty() {
            Expr::Slot(path)
        } else {
            self.shortened_path(flow, Expr::Slot(path), &bys)?
        };
        if !step.args.is_empty() {
            let (_, register, side) = self.collected(step)?;
            let (what, eager) = (Collected::Item(path), self.collects_eagerly(step, &side));
            flow.wrap(|input| Op::Collect { input, register, what, eager });
            return Ok(());
        }
        let all = self.fresh();
        let items = vec![item(all, AggregateKind::Collect, vec![path])];
        flow.wrap(|input| Op::Aggregate { input, keys: vec![], items });
        let out = self.or_fresh(dest);
        flow.bind(out, call(Function::MakeTree, vec![Expr::Slot(all)]));
        flow.reduced(out, ObjectKind::Unknown);
        Ok(())
    }

    /// `subgraph(key)`
    pub(super) fn subgraph(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<()> {
        let cur = flow.cur(step)?;
        let (_, register, side) = self.collected(step)?;
        let (what, eager) = (Collected::Item(Expr::Slot(cur)), self.collects_eagerly(step, &side));
        flow.wrap(|input| Op::Collect { input, register, what, eager });
        Ok(())
    }
}

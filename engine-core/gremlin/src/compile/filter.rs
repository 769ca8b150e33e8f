//! Filters: expressions where possible, otherwise subplans.

use super::{
    Compiler, Cursor, EdgeOrigin, Flow, ObjectKind, Result, call, is_infix, is_null, not, text,
    wrong_arguments,
};
use crate::ast::{Arg, ArgKind, Constant, Predicate, PredicateName, Step, StepName};
use crate::compile::by::By;
use crate::compile::has::has_tests;
use crate::compile::predicate::{Operands, label_names, may_lack_answer};
use crate::compile::step::{applied, kind_of};
use crate::fault::Fault;
use tidegraph_plan::{ApplyKind, BindKind, Expr, Function, Op};
use tidegraph_types::{Str, Value};

/// The object that an expression tests or computes from.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) expr: Expr,
    pub(super) kind: ObjectKind,
    pub(super) near: Option<EdgeOrigin>,
}

impl Subject {
    /// Returns the current object of a flow.
    pub(super) fn current(flow: &Flow, step: &Step<'_>) -> Result<Self> {
        Ok(Self { expr: Expr::Slot(flow.cur(step)?), kind: flow.scope.kind, near: flow.scope.near })
    }
}

impl Compiler {
    /// `has*`, `is`, `and`, `or`, `not`, `filter`, `where`
    pub(super) fn filter_step(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
    ) -> Result<()> {
        let at = Subject::current(flow, step)?;
        let modulated = step.name == StepName::Where && cursor.peek().is_some_and(|s| s.name == StepName::By);
        // Inside of `where`, only steps with traversals find labels in another way.
        let tests_object = step.name.properties().has || step.name == StepName::Is;
        if !modulated
            && (tests_object || !flow.scope.inside_where)
            && let Some(test) = self.step_test(step, &at, flow)?
        {
            flow.filter(test);
            return Ok(());
        }
        match (step.name, step.args.as_slice()) {
            (StepName::Where, [Arg { kind: ArgKind::Predicate(predicate), .. }]) => {
                self.where_predicate(flow, cursor, step, None, predicate)
            }
            (
                StepName::Where,
                [start @ Arg { kind: ArgKind::Text(_), .. }, Arg { kind: ArgKind::Predicate(predicate), .. }],
            ) => self.where_predicate(flow, cursor, step, Some(start), predicate),
            (
                StepName::Filter | StepName::Where | StepName::Not,
                [Arg { kind: ArgKind::Traversal(steps), .. }],
            ) => {
                if steps.iter().any(is_infix) {
                    let condition = self.condition(flow, steps)?;
                    flow.filter(if step.name == StepName::Not { self.negated(condition) } else { condition });
                    return Ok(());
                }
                let inside_where =
                    step.name == StepName::Where || (step.name == StepName::Not && flow.scope.inside_where);
                if let Some(condition) = self.count_test(flow, steps, inside_where)? {
                    flow.filter(if step.name == StepName::Not { self.negated(condition) } else { condition });
                    return Ok(());
                }
                let plan = match step.name {
                    StepName::Not => self.rows_or_unknown(flow, steps, inside_where)?,
                    _ => self.rows(flow, steps, inside_where)?,
                };
                let kind = if step.name == StepName::Not { ApplyKind::Anti } else { ApplyKind::Semi };
                flow.wrap(|input| Op::Apply { input, plan: Box::new(plan), kind });
                Ok(())
            }
            (StepName::And | StepName::Or, args) => {
                let mut conditions = vec![];
                for arg in args {
                    let Some(steps) = arg.steps() else { return Err(wrong_arguments(step)) };
                    conditions.push(self.condition(flow, steps)?);
                }
                flow.filter(if step.name == StepName::And {
                    Expr::And(conditions)
                } else {
                    Expr::Or(conditions)
                });
                Ok(())
            }
            _ => Err(wrong_arguments(step)),
        }
    }

    /// Returns an expression that is true if a traversal yields a result for the current object. Subplans that it needs
    /// are bound in the flow.
    pub(super) fn condition(&mut self, flow: &mut Flow, steps: &[Step<'_>]) -> Result<Expr> {
        for (infix, join) in [(StepName::Or, Expr::Or as fn(Vec<Expr>) -> Expr), (StepName::And, Expr::And)] {
            if steps.iter().any(|s| s.name == infix && is_infix(s)) {
                let mut parts = vec![];
                for part in steps.split(|s| s.name == infix && is_infix(s)) {
                    parts.push(self.condition(flow, part)?);
                }
                return Ok(join(parts));
            }
        }
        let Some(first) = steps.first() else { return Ok(Expr::literal(true)) };
        if flow.scope.cur.is_some() && !flow.scope.inside_where {
            let at = Subject::current(flow, first)?;
            if let Some(test) = self.test_expr(steps, &at, flow)? {
                return Ok(test);
            }
        }
        let inside_where = flow.scope.inside_where;
        if let Some(condition) = self.count_test(flow, steps, inside_where)? {
            return Ok(condition);
        }
        let plan = self.rows(flow, steps, inside_where)?;
        let out = self.fresh();
        flow.wrap(|input| Op::Bind { input, plan: Box::new(plan), out, kind: BindKind::Exists });
        Ok(Expr::Slot(out))
    }

    /// `….count().is(…)` at the end of a condition: counts the rows without listing them.
    fn count_test(
        &mut self,
        flow: &mut Flow,
        steps: &[Step<'_>],
        inside_where: bool,
    ) -> Result<Option<Expr>> {
        let Some(index) = steps.iter().rposition(|s| s.name == StepName::Count && s.args.is_empty()) else {
            return Ok(None);
        };
        let (counted, tests) = (&steps[..index], &steps[index + 1..]);
        if tests.iter().any(|s| s.name != StepName::Is) || (tests.is_empty() && index == 0) {
            return Ok(None);
        }
        let plan = self.rows(flow, counted, inside_where)?;
        let out = self.fresh();
        flow.wrap(|input| Op::Bind { input, plan: Box::new(plan), out, kind: BindKind::Count });
        let mut all = vec![];
        for step in tests {
            let at = Subject { expr: Expr::Slot(out), kind: ObjectKind::Scalar, near: None };
            all.extend(self.step_test(step, &at, flow)?);
        }
        Ok(Some(conjunction(all)))
    }

    /// Returns the rows of a child as a subplan. In `where()`, a first `as(label)` selects the label's object, and a
    /// last `as(label)` compares with it.
    pub(super) fn rows(&mut self, flow: &Flow, steps: &[Step<'_>], inside_where: bool) -> Result<Op> {
        Ok(self.rows_flow(flow, steps, inside_where)?.op)
    }

    fn rows_flow(&mut self, flow: &Flow, steps: &[Step<'_>], inside_where: bool) -> Result<Flow> {
        let mut child = flow.child();
        let mut steps = steps;
        let mut end = None;
        if inside_where {
            if let Some((first, rest)) = steps.split_first()
                && first.name == StepName::As
                && let [Arg { kind: ArgKind::Text(label), .. }] = first.args.as_slice()
            {
                let (object, certain, kind) = self.labelled(flow, label, first.at)?;
                let slot = self.slot_of(&mut child, object);
                if !certain {
                    child.filter(not(is_null(Expr::Slot(slot))));
                }
                child.scope.cur = Some(slot);
                child.scope.kind = kind;
                child.scope.near = None;
                steps = rest;
            }
            if let Some((last, rest)) = steps.split_last()
                && last.name == StepName::As
                && let [Arg { kind: ArgKind::Text(label), .. }] = last.args.as_slice()
            {
                let (object, ..) = self.labelled(flow, label, last.at)?;
                end = Some(object);
                steps = rest;
            }
            child.scope.inside_where =
                steps.first().is_some_and(|s| s.name.properties().connective) || steps.iter().any(is_infix);
        }
        self.steps(&mut child, steps, None)?;
        if let (Some(end), Some(cur)) = (end, child.scope.cur) {
            child.filter(Expr::compare(tidegraph_plan::Comparison::Equal, Expr::Slot(cur), end));
        }
        Ok(child)
    }

    /// Returns the rows of a child of `not()`. Tests at its end also pass objects for which they have no answer, so
    /// that `not()` passes none of these.
    fn rows_or_unknown(&mut self, flow: &Flow, steps: &[Step<'_>], inside_where: bool) -> Result<Op> {
        let tests =
            steps.iter().rev().take_while(|s| s.name.properties().has || s.name == StepName::Is).count();
        let (head, tail) = steps.split_at(steps.len() - tests);
        if tail.is_empty() || head.is_empty() || head.last().is_some_and(|s| s.name == StepName::As) {
            return self.rows(flow, steps, inside_where);
        }
        let mut child = self.rows_flow(flow, head, inside_where)?;
        let at = Subject::current(&child, &tail[0])?;
        let mut tests = vec![];
        for step in tail {
            match self.step_test(step, &at, &child)? {
                Some(test) => tests.push(test),
                None => return self.rows(flow, steps, inside_where),
            }
        }
        let test = conjunction(tests);
        child.filter(if self.version.comparisons_have_three_results() && may_lack_answer(&test) {
            not(call(Function::Coalesce, vec![self.negated(test), Expr::literal(false)]))
        } else {
            test
        });
        Ok(child.op)
    }

    /// `where(P)`, `where(label, P)`. The first `by()` applies to the object that is compared, the others to the labels
    /// of `P`.
    fn where_predicate(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        start: Option<&Arg<'_>>,
        predicate: &Predicate<'_>,
    ) -> Result<()> {
        let bys = self.bys(cursor.take_all(StepName::By))?;
        let mut names = vec![];
        label_names(predicate, &mut names);
        let mut objects = vec![];
        let starts =
            start.into_iter().map(Some).chain(std::iter::once(None).take(usize::from(start.is_none())));
        for (index, name) in starts.chain(names.into_iter().map(Some)).enumerate() {
            let (object, kind) = match name {
                None => (Expr::Slot(flow.cur(step)?), flow.scope.kind),
                Some(Arg { kind: ArgKind::Text(label), .. }) => {
                    let (object, _, kind) = self.labelled(flow, label, step.at)?;
                    (object, kind)
                }
                Some(arg) => {
                    return Err(Fault::syntax(arg.at, format!("expected a label, found {}", arg.describe())));
                }
            };
            objects.push(if bys.is_empty() {
                object
            } else {
                let by = &bys[index % bys.len()];
                if matches!(by, By::Identity) { object } else { self.by_value(flow, by, object, kind)?.expr }
            });
        }
        let mut objects = std::collections::VecDeque::from(objects);
        let left = objects.pop_front().unwrap_or(Expr::Literal(Value::Null));
        let test = self.predicate_expr(predicate, &left, &mut Operands::Labels(objects))?;
        flow.filter(test);
        Ok(())
    }

    /// Returns the object of a label, whether there always is one, and its kind. A map's entry comes first, then a side
    /// effect, then the object that `as()` named. Without any of them the value is null or unbound.
    pub(super) fn labelled(&self, flow: &Flow, name: &Str, at: usize) -> Result<(Expr, bool, ObjectKind)> {
        let side = self.side(name, at)?;
        let label = flow.label(name);
        let entry = match flow.scope.cur {
            Some(cur) if flow.scope.kind.may_be_map() => {
                Some(call(Function::MapGet, vec![Expr::Slot(cur), text(name)]))
            }
            _ => None,
        };
        if let Some((value, kind)) = side {
            return Ok(match entry {
                Some(entry) => (call(Function::Coalesce, vec![entry, value]), true, ObjectKind::Unknown),
                None => (value, true, kind),
            });
        }
        Ok(match (entry, label) {
            (None, Some(label)) => (Expr::Slot(label.slot), label.certain, label.kind),
            (Some(entry), Some(label)) => {
                let either = call(Function::Coalesce, vec![entry, Expr::Slot(label.slot)]);
                // If every row has the label, the result is never missing.
                (either, label.certain, ObjectKind::Unknown)
            }
            (Some(entry), None) => (entry, false, ObjectKind::Unknown),
            (None, None) => (Expr::Literal(Value::Unbound), false, ObjectKind::Unknown),
        })
    }

    // ---- filters as expressions

    /// Returns a traversal as a test of an object. `None`: it needs a subplan.
    pub(super) fn test_expr(
        &mut self,
        steps: &[Step<'_>],
        at: &Subject,
        flow: &Flow,
    ) -> Result<Option<Expr>> {
        if steps.iter().any(is_infix) {
            return Ok(None);
        }
        let (at, productive, count) = self.scalars(steps, at, flow)?;
        let rest = &steps[count..];
        let mut all = vec![];
        if let Some((first, tests)) = rest.split_first()
            && first.name == StepName::Values
            && !first.args.is_empty()
        {
            let keys = match self.texts(&first.args) {
                Ok(keys) if !keys.is_empty() => keys,
                _ => return Ok(None),
            };
            if tests.is_empty() && keys.len() == 1 {
                return Ok(Some(call(Function::HasProperty, vec![at.expr, text(&keys[0])])));
            }
            if tests.is_empty() || tests.iter().any(|s| s.name != StepName::Is) {
                return Ok(None);
            }
            let mut args = vec![at.expr];
            args.extend(keys.iter().map(text));
            let list = call(Function::PropertyValues, args);
            return Ok(Some(self.any(list, |c, item| {
                let at = Subject { expr: item.clone(), kind: ObjectKind::Scalar, near: None };
                let mut all = vec![];
                for step in tests {
                    all.extend(c.step_test(step, &at, flow)?);
                }
                Ok(conjunction(all))
            })?));
        }
        if !productive {
            all.push(not(is_null(at.expr.clone())));
        }
        for step in rest {
            match self.step_test(step, &at, flow)? {
                Some(test) => all.push(test),
                None => return Ok(None),
            }
        }
        Ok(Some(conjunction(all)))
    }

    /// Returns a step as a test of an object. `None`: the step is not a filter, or needs a subplan.
    fn step_test(&mut self, step: &Step<'_>, at: &Subject, flow: &Flow) -> Result<Option<Expr>> {
        if step.name.properties().has {
            let mut all = vec![];
            for test in has_tests(step)? {
                all.push(self.has_expr(&test, &at.expr, at.kind, flow)?);
            }
            return Ok(Some(conjunction(all)));
        }
        Ok(match (step.name, step.args.as_slice()) {
            (StepName::Identity | StepName::Barrier, []) => Some(Expr::literal(true)),
            (StepName::Coin, _) => Some(self.coin(step)?),
            (StepName::Is, [Arg { kind: ArgKind::Predicate(predicate), .. }]) => {
                Some(self.predicate_expr(predicate, &at.expr, &mut Operands::Value)?)
            }
            (StepName::Is, [value]) => Some(self.test(
                PredicateName::Eq,
                std::slice::from_ref(value),
                &at.expr,
                &mut Operands::Value,
            )?),
            (StepName::Not, [Arg { kind: ArgKind::Traversal(steps), .. }]) => {
                self.test_expr(steps, at, flow)?.map(|test| self.negated(test))
            }
            (StepName::Filter | StepName::Where, [Arg { kind: ArgKind::Traversal(steps), .. }]) => {
                self.test_expr(steps, at, flow)?
            }
            (StepName::Filter, [Arg { kind: ArgKind::Predicate(predicate), .. }]) => {
                Some(self.predicate_expr(predicate, &at.expr, &mut Operands::Value)?)
            }
            (StepName::And | StepName::Or, args) if !args.is_empty() => {
                let mut all = vec![];
                for arg in args {
                    let Some(steps) = arg.steps() else { return Err(wrong_arguments(step)) };
                    match self.test_expr(steps, at, flow)? {
                        Some(test) => all.push(test),
                        None => return Ok(None),
                    }
                }
                Some(if step.name == StepName::And { conjunction(all) } else { Expr::Or(all) })
            }
            _ => None,
        })
    }

    /// Applies the leading steps that are functions of the object. Returns the object after them, whether there always
    /// is one, and the number of these steps.
    pub(super) fn scalars(
        &mut self,
        steps: &[Step<'_>],
        at: &Subject,
        flow: &Flow,
    ) -> Result<(Subject, bool, usize)> {
        let mut at = at.clone();
        let mut productive = true;
        for (index, step) in steps.iter().enumerate() {
            // Modulators change the meaning of a step.
            if steps.get(index + 1).is_some_and(|s| matches!(s.name, StepName::By | StepName::With)) {
                return Ok((at, productive, index));
            }
            let expr = || at.expr.clone();
            if let Some(function) = applied(step) {
                at = Subject { expr: call(function, vec![expr()]), kind: kind_of(function), near: None };
                continue;
            }
            let (next, kind) = match (step.name, step.args.as_slice()) {
                (StepName::Identity, []) => continue,
                (StepName::InV, []) => (call(Function::EndNode, vec![expr()]), ObjectKind::Vertex),
                (StepName::OutV, []) => (call(Function::StartNode, vec![expr()]), ObjectKind::Vertex),
                (StepName::OtherV, []) if at.near.is_some() => {
                    let from = at.near.map_or(Expr::Literal(Value::Null), |n| Expr::Slot(n.from));
                    (call(Function::OtherNode, vec![expr(), from]), ObjectKind::Vertex)
                }
                (StepName::Constant, [value]) if super::literal(value).is_some_and(|v| !v.is_null()) => {
                    (self.expr(value)?, ObjectKind::Unknown)
                }
                (StepName::Loops, _) => (super::step::loops(flow, step)?, ObjectKind::Scalar),
                (StepName::Count, [Arg { kind: ArgKind::Constant(Constant::Local), .. }]) => {
                    (call(Function::CountLocal, vec![expr()]), ObjectKind::Scalar)
                }
                (StepName::Select, [Arg { kind: ArgKind::Text(label), at: place }])
                    if !at.kind.may_be_map() && self.side(label, *place)?.is_none() =>
                {
                    match flow.label(label) {
                        Some(label) => {
                            productive &= label.certain;
                            (Expr::Slot(label.slot), label.kind)
                        }
                        None => return Ok((at, productive, index)),
                    }
                }
                (StepName::ValueMap, args) => match self.keys_of(args) {
                    Some(keys) => {
                        let mut args = vec![expr(), Expr::literal(false)];
                        args.extend(keys);
                        (call(Function::ValueMap, args), ObjectKind::Map)
                    }
                    None => return Ok((at, productive, index)),
                },
                (StepName::ElementMap, args) => match self.keys_of(args) {
                    Some(keys) => {
                        let mut args = vec![expr()];
                        args.extend(keys);
                        (call(Function::ElementMap, args), ObjectKind::Map)
                    }
                    None => return Ok((at, productive, index)),
                },
                _ => return Ok((at, productive, index)),
            };
            at = Subject { expr: next, kind, near: None };
        }
        Ok((at, productive, steps.len()))
    }

    /// Returns property keys as literals. `None`: they are not all strings.
    fn keys_of(&mut self, args: &[Arg<'_>]) -> Option<Vec<Expr>> {
        args.iter().map(|a| a.text().map(text)).collect()
    }
}

fn conjunction(mut all: Vec<Expr>) -> Expr {
    match all.len() {
        0 => Expr::literal(true),
        1 => all.remove(0),
        _ => all.into_iter().reduce(Expr::and).unwrap_or(Expr::And(vec![])),
    }
}

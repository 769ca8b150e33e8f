//! Steps over many traversers: reductions, groups, order, distinct, slices.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step, StepName};
use crate::compile::by::{self, By, Order};
use crate::compile::filter::Subject;
use crate::compile::local::global;
use crate::compile::property::collect_map;
use crate::compile::step::is_local;
use crate::fault::Fault;
use crate::names::Reduction;
use tidegraph_plan::{
    AggregateItem, AggregateKind, ApplyKind, Arithmetic, BindKind, Comparison, Drawn, Expr, Function, Op,
    Slot, SortKey, TotalOrder,
};
use tidegraph_types::Value;

/// Whether a step keeps state over several traversers.
pub(super) fn is_stateful(step: &Step<'_>) -> bool {
    is_reducing(step) || (step.name.properties().stateful && !is_local(step))
}

/// Whether a step makes one object of all traversers.
pub(super) fn is_reducing(step: &Step<'_>) -> bool {
    match step.name.properties().reduction {
        None if step.name == StepName::Cap => true,
        None if step.name == StepName::Tree => step.args.is_empty(),
        None => false,
        Some(Reduction::Group) => step.args.is_empty(),
        Some(Reduction::Count | Reduction::Fold | Reduction::Value(_)) => !is_local(step),
    }
}

pub(super) fn item(out: Slot, kind: AggregateKind, args: Vec<Expr>) -> AggregateItem {
    AggregateItem { out, kind, args, distinct: false, empty_is_unbound: false, weighted: false }
}

impl Flow {
    /// Makes the result of an aggregate the current object. Labels and path are lost.
    pub(super) fn reduced(&mut self, out: Slot, kind: ObjectKind) {
        self.set_current(out, kind);
        self.scope.labels.clear();
        self.scope.single = true;
        self.scope.path_ended = true;
    }
}

impl Compiler {
    pub(super) fn reduce(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        if step.name == StepName::Fold && !step.args.is_empty() {
            return self.fold_with(flow, step, dest);
        }
        if !global(step).is_empty() {
            return Err(wrong_arguments(step));
        }
        let cur = flow.cur(step)?;
        let out = self.or_fresh(dest);
        let object = vec![Expr::Slot(cur)];
        let (item, result) = match step.name.properties().reduction {
            Some(Reduction::Count) => (item(out, AggregateKind::CountRows, vec![]), ObjectKind::Scalar),
            Some(Reduction::Fold) => (item(out, AggregateKind::CollectAll, object), ObjectKind::List),
            Some(Reduction::Value(kind)) => {
                let kind = self.value_reduction(kind);
                (AggregateItem { empty_is_unbound: true, ..item(out, kind, object) }, ObjectKind::Scalar)
            }
            Some(Reduction::Group) | None => return Err(wrong_arguments(step)),
        };
        flow.wrap(|input| Op::Aggregate { input, keys: vec![], items: vec![item] });
        flow.reduced(out, result);
        Ok(())
    }

    /// Returns the aggregate that computes a value in this version.
    fn value_reduction(&self, kind: AggregateKind) -> AggregateKind {
        match kind {
            AggregateKind::Sum if !self.version.sums_are_long() => AggregateKind::SumOfTypes,
            kind => kind,
        }
    }

    pub(super) fn dedup(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
    ) -> Result<()> {
        let names = self.texts(global(step))?;
        let cur = flow.cur(step)?;
        let by = match self.single_by(step, cursor.take_all(StepName::By))? {
            [] => By::Identity,
            [by, ..] => self.by(by, &by.args)?,
        };
        let mut objects = vec![];
        for name in &names {
            objects.push(self.labelled(flow, name, step.at)?);
        }
        if names.is_empty() {
            objects.push((Expr::Slot(cur), true, flow.scope.kind));
        }
        let mut distinct = vec![];
        for (object, certain, kind) in objects {
            let slot = self.slot_of(flow, object);
            if !certain {
                flow.filter(not(is_null(Expr::Slot(slot))));
            }
            let value = self.by_value(flow, &by, Expr::Slot(slot), kind)?;
            if value.productive {
                distinct.push(value.expr);
            } else {
                let slot = self.slot_of(flow, value.expr);
                flow.filter(not(is_null(Expr::Slot(slot))));
                distinct.push(Expr::Slot(slot));
            }
        }
        flow.wrap(|input| Op::Distinct { input, by: distinct });
        Ok(())
    }

    pub(super) fn order(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
    ) -> Result<()> {
        if !global(step).is_empty() {
            return Err(wrong_arguments(step));
        }
        let cur = flow.cur(step)?;
        let mut keys = vec![];
        // As in TinkerPop, the last order says whether all of them shuffle.
        let mut shuffles = false;
        for by_step in cursor.take_all(StepName::By) {
            let (by, order) = match by_step.args.as_slice() {
                [arg] if by::order(arg).is_some() => (By::Identity, by::order(arg)),
                [by, order] => (self.by(by_step, std::slice::from_ref(by))?, by::order(order)),
                args => (self.by(by_step, args)?, Some(Order::Ascending)),
            };
            let Some(order) = order else { return Err(wrong_arguments(by_step)) };
            shuffles = order == Order::Shuffle;
            if shuffles {
                keys.push(SortKey {
                    expr: call(Function::Rand, vec![]),
                    order: TotalOrder::Gremlin,
                    descending: false,
                });
                continue;
            }
            let value = self.by_value(flow, &by, Expr::Slot(cur), flow.scope.kind)?;
            let expr = if value.productive {
                value.expr
            } else {
                let slot = self.slot_of(flow, value.expr);
                flow.filter(not(is_null(Expr::Slot(slot))));
                Expr::Slot(slot)
            };
            keys.push(SortKey { expr, order: TotalOrder::Gremlin, descending: order == Order::Descending });
        }
        if keys.is_empty() {
            keys.push(SortKey { expr: Expr::Slot(cur), order: TotalOrder::Gremlin, descending: false });
        }
        match self.place_of_draw(step).filter(|_| shuffles) {
            Some(place) => flow.wrap(|input| Op::Draw { input, drawn: Drawn::Shuffled, place }),
            None => flow.wrap(|input| Op::Sort { input, keys }),
        }
        Ok(())
    }

    /// `sample(n)`: the `n` traversers with the largest random keys. A `by()` weights the keys.
    pub(super) fn sample(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
    ) -> Result<()> {
        let [count] = global(step) else { return Err(wrong_arguments(step)) };
        let count = self.sample_size(count)?;
        let cur = flow.cur(step)?;
        let weight = match self.single_by(step, cursor.take_all(StepName::By))? {
            [] => Expr::literal(1.0),
            [by, ..] => {
                let by = self.by(by, &by.args)?;
                let weight = self.by_value(flow, &by, Expr::Slot(cur), flow.scope.kind)?;
                let slot = self.slot_of(flow, weight.expr);
                if !weight.productive {
                    flow.filter(not(is_null(Expr::Slot(slot))));
                }
                Expr::Slot(slot)
            }
        };
        if let Some(place) = self.place_of_draw(step) {
            flow.scope.single |= matches!(&count, Expr::Literal(n) if n.as_i64().is_some_and(|n| n <= 1));
            let drawn = Drawn::Sample { count, weight };
            flow.wrap(|input| Op::Draw { input, drawn, place });
            return Ok(());
        }
        let expr = call(Function::SampleKey, vec![weight]);
        let keys = vec![SortKey { expr, order: TotalOrder::Gremlin, descending: true }];
        flow.scope.single |= matches!(&count, Expr::Literal(n) if n.as_i64().is_some_and(|n| n <= 1));
        flow.wrap(|input| Op::Top { input, keys, count });
        Ok(())
    }

    /// Returns the number of objects that a `sample()` takes.
    pub(super) fn sample_size(&mut self, count: &Arg<'_>) -> Result<Expr> {
        match self.integer(count)? {
            Expr::Literal(n) if n.as_i64().is_some_and(|n| n < 0) => {
                Err(Fault::syntax(count.at, "sample() takes a number that is not negative".into()))
            }
            count => Ok(count),
        }
    }

    /// `limit`, `range`, `skip`, `tail` over the traversers.
    pub(super) fn slice(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<()> {
        flow.cur(step)?;
        let number = |arg: &Arg<'_>| match &arg.kind {
            ArgKind::Value(value) => value.as_i64(),
            _ => None,
        };
        let (skip, limit) = match (step.name, global(step)) {
            (StepName::Tail, args) if args.len() <= 1 => {
                let count = match args {
                    [count] => self.integer(count)?,
                    _ => Expr::literal(1_i64),
                };
                flow.scope.single |= args.first().is_none_or(|a| number(a) == Some(1));
                flow.wrap(|input| Op::Tail { input, count });
                return Ok(());
            }
            (StepName::Limit, [count]) if number(count) == Some(-1) => return Ok(()),
            (StepName::Limit, [count]) => {
                flow.scope.single |= number(count).is_some_and(|n| n <= 1);
                (None, Some(self.integer(count)?))
            }
            (StepName::Skip, [count]) => (Some(self.integer(count)?), None),
            (StepName::Range, [low, high]) => {
                let skip = self.integer(low)?;
                let limit = self.integer(high)?;
                let limit = match (number(low), number(high)) {
                    (_, Some(-1)) => None,
                    (Some(l), Some(h)) if l < 0 || h < l => {
                        return Err(Fault::syntax(step.at, format!("not a legal range: [{l}, {h}]")));
                    }
                    (Some(0), _) => Some(limit),
                    (Some(l), Some(h)) => Some(Expr::literal(h - l)),
                    _ => {
                        Some(Expr::Arithmetic(Arithmetic::Subtract, Box::new(limit), Box::new(skip.clone())))
                    }
                };
                (Some(skip).filter(|_| number(low) != Some(0)), limit)
            }
            _ => return Err(wrong_arguments(step)),
        };
        if skip.is_some() || limit.is_some() {
            flow.wrap(|input| Op::Slice { input, skip, limit });
        }
        Ok(())
    }

    // ---- groups

    pub(super) fn group(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let cur = flow.cur(step)?;
        let kind = flow.scope.kind;
        let mut bys = cursor.take_all(StepName::By);
        if step.name == StepName::GroupCount {
            bys = self.single_by(step, bys)?;
        } else if let [_, _, third, ..] = bys {
            return Err(Fault::syntax(third.at, "group() takes two by() at most".into()));
        }
        let bys = self.bys(bys)?;
        let key = self.by_value(flow, bys.first().unwrap_or(&By::Identity), Expr::Slot(cur), kind)?;
        // The key gets a slot of its own, because computing the values may overwrite others.
        let key_slot = self.fresh();
        flow.bind(key_slot, key.expr);
        if !key.productive {
            flow.filter(not(is_null(Expr::Slot(key_slot))));
        }
        let value = if step.name == StepName::GroupCount {
            let count = self.fresh();
            self.aggregate_by(flow, key_slot, vec![item(count, AggregateKind::CountRows, vec![])]);
            Expr::Slot(count)
        } else {
            match bys.get(1).unwrap_or(&By::Identity) {
                By::Traversal(steps) => self.group_value(flow, steps, key_slot, cur, kind)?,
                by => {
                    let value = self.by_value(flow, by, Expr::Slot(cur), kind)?;
                    let kind = match by {
                        By::Identity => AggregateKind::CollectAll,
                        _ => AggregateKind::Collect,
                    };
                    let all = self.fresh();
                    self.aggregate_by(flow, key_slot, vec![item(all, kind, vec![value.expr])]);
                    Expr::Slot(all)
                }
            }
        };
        let out = self.or_fresh(dest);
        flow.wrap(|input| collect_map(input, Expr::Slot(key_slot), value, out));
        flow.reduced(out, ObjectKind::Map);
        Ok(())
    }

    fn aggregate_by(&mut self, flow: &mut Flow, key: Slot, items: Vec<AggregateItem>) {
        flow.wrap(|input| Op::Aggregate { input, keys: vec![(key, Expr::Slot(key))], items });
        flow.scope.labels.clear();
        flow.scope.near = None;
    }

    /// Computes the value of each group. The steps before the first stateful one run for each element, that step runs
    /// for each group, and the rest runs on its result. Without a stateful step, the value of the last element counts.
    fn group_value(
        &mut self,
        flow: &mut Flow,
        steps: &[Step<'_>],
        key: Slot,
        cur: Slot,
        kind: ObjectKind,
    ) -> Result<Expr> {
        let at = Subject { expr: Expr::Slot(cur), kind, near: flow.scope.near };
        let Some(index) = steps.iter().position(is_stateful) else {
            let value = self.child_value(flow, steps, at)?;
            let (all, last) = (self.fresh(), self.fresh());
            self.aggregate_by(flow, key, vec![item(all, AggregateKind::Collect, vec![value.expr])]);
            flow.bind(last, call(Function::Last, vec![Expr::Slot(all)]));
            flow.filter(not(is_null(Expr::Slot(last))));
            return Ok(Expr::Slot(last));
        };
        let (before, barrier, rest) = (&steps[..index], &steps[index], &steps[index + 1..]);
        // One row for each object that reaches the barrier. An element without any keeps one row, without the mark.
        let (object, mark) = if before.is_empty() {
            (cur, None)
        } else {
            let (object, mark) = (self.fresh(), self.fresh());
            let mut child = flow.child();
            child.scope.alias = false;
            self.steps(&mut child, before, Some(object))?;
            child.bind(mark, Expr::literal(true));
            let plan = Box::new(child.op);
            flow.wrap(|input| Op::Apply { input, plan, kind: ApplyKind::Optional(vec![object, mark]) });
            (object, Some(mark))
        };
        // Without an object the value is unbound, which aggregates skip. A null is an object.
        let present = |value: Expr| match mark {
            None => value,
            Some(mark) => Expr::Case {
                branches: vec![(is_null(Expr::Slot(mark)), Expr::Literal(Value::Unbound))],
                otherwise: Box::new(value),
            },
        };
        let reduction = barrier.name.properties().reduction.filter(|_| global(barrier).is_empty());
        let out = self.fresh();
        let (result, kind) = match reduction {
            Some(Reduction::Count) => {
                let count = match mark {
                    Some(mark) => item(out, AggregateKind::Count, vec![Expr::Slot(mark)]),
                    None => item(out, AggregateKind::CountRows, vec![]),
                };
                self.aggregate_by(flow, key, vec![count]);
                (out, ObjectKind::Scalar)
            }
            Some(Reduction::Fold) => {
                let all = item(out, AggregateKind::CollectAll, vec![present(Expr::Slot(object))]);
                self.aggregate_by(flow, key, vec![all]);
                (out, ObjectKind::List)
            }
            Some(Reduction::Value(kind)) => {
                let kind = self.value_reduction(kind);
                let (count, value) = (self.fresh(), vec![Expr::Slot(object)]);
                let items = vec![item(out, kind, value.clone()), item(count, AggregateKind::Count, value)];
                self.aggregate_by(flow, key, items);
                flow.filter(Expr::compare(Comparison::Greater, Expr::Slot(count), Expr::literal(0_i64)));
                (out, ObjectKind::Scalar)
            }
            Some(Reduction::Group) | None => {
                // The objects of the labels stay with each object, because later steps may read them.
                let labels = flow.scope.labels.clone();
                let mut parts = vec![object];
                parts.extend(labels.iter().map(|(_, label)| label.slot));
                let row = present(if labels.is_empty() {
                    Expr::Slot(object)
                } else {
                    Expr::List(parts.iter().map(|p| Expr::Slot(*p)).collect())
                });
                let all = self.fresh();
                self.aggregate_by(flow, key, vec![item(all, AggregateKind::CollectAll, vec![row])]);
                let is_counted = !self.version.barriers_drop_empty_groups() && rest.iter().any(is_reducing);
                if !is_reducing(barrier) && !is_counted {
                    let size = call(Function::Size, vec![Expr::Slot(all)]);
                    flow.filter(Expr::compare(Comparison::Greater, size, Expr::literal(0_i64)));
                }
                let mut child = flow.child();
                let each = self.fresh();
                child.op = Op::Unwind { input: Box::new(Op::Argument), list: Expr::Slot(all), out: each };
                let each = if labels.is_empty() {
                    each
                } else {
                    let row = each;
                    for (part, index) in parts.iter().zip(0_i64..) {
                        let item = Expr::Index(Box::new(Expr::Slot(row)), Box::new(Expr::literal(index)));
                        child.bind(*part, item);
                    }
                    child.scope.labels = labels;
                    object
                };
                child.scope.cur = Some(each);
                child.scope.kind = ObjectKind::Unknown;
                child.scope.near = None;
                child.scope.single = false;
                self.steps(&mut child, &steps[index..], None)?;
                let end = child.scope.cur.unwrap_or(each);
                let plan = Box::new(child.op);
                flow.wrap(|input| Op::Bind { input, plan, out, kind: BindKind::First(end) });
                flow.filter(Expr::IsBound(out));
                return Ok(Expr::Slot(out));
            }
        };
        if rest.is_empty() {
            return Ok(Expr::Slot(result));
        }
        let at = Subject { expr: Expr::Slot(result), kind, near: None };
        let value = self.child_value(flow, rest, at)?;
        if value.productive {
            return Ok(value.expr);
        }
        let slot = self.slot_of(flow, value.expr);
        flow.filter(not(is_null(Expr::Slot(slot))));
        Ok(Expr::Slot(slot))
    }
}

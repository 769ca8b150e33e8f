//! Steps with local scope, which act on the items of a collection instead of the traversers.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::compile::by::{self, By, Order};
use crate::compile::property::collect_map;
use crate::fault::Fault;
use crate::names::Local;
use tidegraph_plan::{BindKind, Drawn, Expr, Function, Op, Slot, SortKey, TotalOrder};
use tidegraph_types::Value;

impl Compiler {
    pub(super) fn local_scope(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        local: Local,
        dest: Option<Slot>,
    ) -> Result<()> {
        let cur = flow.cur(step)?;
        let args = &step.args[1..];
        let kind = flow.scope.kind;
        let simple = |function| call(function, vec![Expr::Slot(cur)]);
        let one_argument = || match args {
            [arg] => Ok(arg),
            _ => Err(wrong_arguments(step)),
        };
        match local {
            Local::Count | Local::Value(_) | Local::Order if !args.is_empty() => {
                return Err(wrong_arguments(step));
            }
            Local::Count => {
                let out = self.or_fresh(dest);
                flow.bind(out, simple(Function::CountLocal));
                flow.set_current(out, ObjectKind::Scalar);
            }
            Local::Value(function) => {
                let out = self.or_fresh(dest);
                flow.bind(out, simple(function));
                // An empty collection has no value; of nulls alone it is null.
                flow.filter(Expr::IsBound(out));
                flow.set_current(out, ObjectKind::Scalar);
            }
            Local::Dedup => {
                if let Some(by) = cursor.take(StepName::By) {
                    return Err(Fault::unsupported(by.at, "dedup(local).by()"));
                }
                // TinkerPop takes labels here and does not read them.
                self.texts(args)?;
                let out = self.or_fresh(dest);
                flow.bind(out, simple(Function::DedupLocal));
                flow.set_current(out, kind);
            }
            Local::Limit => {
                let count = self.integer(one_argument()?)?;
                self.range_local(flow, cur, Expr::literal(0_i64), count, dest);
            }
            Local::Skip => {
                let low = self.integer(one_argument()?)?;
                self.range_local(flow, cur, low, Expr::literal(-1_i64), dest);
            }
            Local::Range => {
                let [low, high] = args else { return Err(wrong_arguments(step)) };
                let (low, high) = (self.integer(low)?, self.integer(high)?);
                self.range_local(flow, cur, low, high, dest);
            }
            Local::Tail => {
                let count = match args {
                    [] => Expr::literal(1_i64),
                    [count] => self.integer(count)?,
                    _ => return Err(wrong_arguments(step)),
                };
                let one = number(&count) == Some(1);
                let mut args = vec![Expr::Slot(cur), count];
                args.extend(self.keeps_lists());
                let list = call(Function::TailLocal, args);
                self.part(flow, list, one, dest);
            }
            Local::Sample => {
                let count = self.sample_size(one_argument()?)?;
                let out = self.or_fresh(dest);
                let place = self.place_of_draw(step).map(|place| Expr::literal(i64::from(place)));
                let args = [Expr::Slot(cur), count].into_iter().chain(place).collect();
                flow.bind(out, call(Function::SampleLocal, args));
                flow.set_current(out, kind);
            }
            Local::Order => {
                let place = self.place_of_draw(step);
                self.order_local(flow, cursor, cur, place, dest)?;
            }
        }
        Ok(())
    }

    /// The argument of functions that make a part of one item a list.
    fn keeps_lists(&self) -> Option<Expr> {
        (!self.version.unfolds_single_parts()).then(|| Expr::literal(true))
    }

    fn range_local(&mut self, flow: &mut Flow, cur: Slot, low: Expr, high: Expr, dest: Option<Slot>) {
        let one = match (number(&low), number(&high)) {
            (Some(low), Some(high)) => high - low == 1 && high != -1,
            _ => false,
        };
        let mut args = vec![Expr::Slot(cur), low, high];
        args.extend(self.keeps_lists());
        let list = call(Function::RangeLocal, args);
        self.part(flow, list, one, dest);
    }

    /// Makes a part of a collection the current object. In 3.7, a part of one item is the item itself, but
    /// a part of a map stays a map.
    fn part(&mut self, flow: &mut Flow, list: Expr, one: bool, dest: Option<Slot>) {
        let kind = flow.scope.kind;
        let out = self.or_fresh(dest);
        if one && kind != ObjectKind::Map && self.version.unfolds_single_parts() {
            // Unwinding yields the only item of a list, no row for an empty list, and a map unchanged.
            flow.wrap(|input| Op::Unwind { input, list, out });
            flow.set_current(out, ObjectKind::Unknown);
        } else {
            flow.bind(out, list);
            flow.set_current(out, kind);
        }
    }

    fn order_local(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        cur: Slot,
        place: Option<u32>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let steps = cursor.take_all(StepName::By);
        let mut keys = vec![];
        for step in steps {
            keys.push(match step.args.as_slice() {
                [arg] if by::order(arg).is_some() => (By::Identity, by::order(arg)),
                [by, order] => (self.by(step, std::slice::from_ref(by))?, by::order(order)),
                args => (self.by(step, args)?, Some(Order::Ascending)),
            });
        }
        let kind = flow.scope.kind;
        let out = self.or_fresh(dest);
        let of_map = kind == ObjectKind::Map || keys.iter().any(|(by, _)| matches!(by, By::Column(_)));
        if !of_map
            && keys.len() <= 1
            && keys
                .iter()
                .all(|(by, order)| matches!((by, order), (By::Identity, Some(o)) if *o != Order::Shuffle))
        {
            let descending = keys.first().is_some_and(|(_, order)| *order == Some(Order::Descending));
            flow.bind(out, call(Function::OrderLocal, vec![Expr::Slot(cur), Expr::literal(descending)]));
            flow.set_current(out, kind);
            return Ok(());
        }
        if keys.is_empty() {
            keys.push((By::Identity, Some(Order::Ascending)));
        }
        let item = self.fresh();
        let mut child = flow.child();
        let list = call(Function::Unfold, vec![Expr::Slot(cur)]);
        child.op = Op::Unwind { input: Box::new(Op::Argument), list, out: item };
        let mut sort = vec![];
        for ((by, order), step) in keys.iter().zip(steps.iter().map(Some).chain(std::iter::repeat(None))) {
            let Some(order) = order else {
                return Err(
                    step.map_or_else(|| Fault::syntax(0, "expected an order".into()), wrong_arguments)
                );
            };
            let entry = |function| call(function, vec![Expr::Slot(item)]);
            let descending = *order == Order::Descending;
            match by {
                _ if *order == Order::Shuffle => {
                    sort.push(SortKey {
                        expr: call(Function::Rand, vec![]),
                        order: TotalOrder::Gremlin,
                        descending: false,
                    });
                }
                By::Identity if of_map => {
                    sort.push(SortKey {
                        expr: entry(Function::MapKeys),
                        order: TotalOrder::Gremlin,
                        descending,
                    });
                    sort.push(SortKey {
                        expr: entry(Function::MapValues),
                        order: TotalOrder::Gremlin,
                        descending,
                    });
                }
                by => {
                    let value = self.by_value(&mut child, by, Expr::Slot(item), ObjectKind::Unknown)?;
                    let slot = self.slot_of(&mut child, value.expr);
                    if !value.productive {
                        child.filter(not(is_null(Expr::Slot(slot))));
                    }
                    sort.push(SortKey { expr: Expr::Slot(slot), order: TotalOrder::Gremlin, descending });
                }
            }
        }
        let shuffles = keys.last().is_some_and(|(_, order)| *order == Some(Order::Shuffle));
        match place.filter(|_| shuffles) {
            Some(place) => child.wrap(|input| Op::Draw { input, drawn: Drawn::Shuffled, place }),
            None => child.wrap(|input| Op::Sort { input, keys: sort }),
        }
        let bind = if of_map {
            let all = self.fresh();
            let entry = |function| call(function, vec![Expr::Slot(item)]);
            child.wrap(|input| collect_map(input, entry(Function::MapKeys), entry(Function::MapValues), all));
            BindKind::First(all)
        } else {
            BindKind::Collect(item)
        };
        let plan = Box::new(child.op);
        flow.wrap(|input| Op::Bind { input, plan, out, kind: bind });
        flow.set_current(out, if of_map { ObjectKind::Map } else { ObjectKind::List });
        Ok(())
    }
}

fn number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(value) => Value::as_i64(value),
        _ => None,
    }
}

/// Returns the arguments without a leading `global`.
pub(super) fn global<'a, 't>(step: &'a Step<'t>) -> &'a [Arg<'t>] {
    match step.args.split_first() {
        Some((Arg { kind: ArgKind::Constant(Constant::Global), .. }, rest)) => rest,
        _ => &step.args,
    }
}

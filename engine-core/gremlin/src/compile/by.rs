//! `by()` modulators: a value computed from an object.

use super::{Compiler, Flow, ObjectKind, Result, call, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::compile::filter::Subject;
use crate::fault::Fault;
use tidegraph_plan::{BindKind, Expr, Function, Op, Slot};
use tidegraph_types::{Str, Value};

/// The function of a `by()`.
#[derive(Clone, Debug)]
pub(super) enum By<'a, 't> {
    Identity,
    Key(Str),
    /// A key in a parameter.
    Variable(Str),
    Token(Function),
    /// `keys` or `values` of a map or entry.
    Column(Function),
    Traversal(&'a [Step<'t>]),
}

/// The direction of a sort.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Ascending,
    Descending,
    Shuffle,
}

/// The value of a `by()`.
pub(super) struct ByValue {
    pub(super) expr: Expr,
    /// Whether every object has a value. If not, null or unbound means that the object has none.
    pub(super) productive: bool,
}

/// Returns the direction that a constant stands for.
pub(super) fn order(arg: &Arg<'_>) -> Option<Order> {
    match arg.constant()? {
        Constant::Asc | Constant::Incr => Some(Order::Ascending),
        Constant::Desc | Constant::Decr => Some(Order::Descending),
        Constant::Shuffle => Some(Order::Shuffle),
        _ => None,
    }
}

impl Compiler {
    /// Returns the `by()` of a step that has one at most. In 3.7 the last one of several counts.
    pub(super) fn single_by<'a, 't>(&self, step: &Step<'t>, bys: &'a [Step<'t>]) -> Result<&'a [Step<'t>]> {
        match bys {
            [.., last] if self.version.last_by_counts() => Ok(std::slice::from_ref(last)),
            [_, second, ..] => Err(Fault::syntax(second.at, format!("{}() takes one by()", step.name))),
            bys => Ok(bys),
        }
    }

    /// Reads `by()` steps without an order.
    pub(super) fn bys<'a, 't>(&mut self, steps: &'a [Step<'t>]) -> Result<Vec<By<'a, 't>>> {
        steps.iter().map(|s| self.by(s, &s.args)).collect()
    }

    pub(super) fn by<'a, 't>(&mut self, step: &Step<'t>, args: &'a [Arg<'t>]) -> Result<By<'a, 't>> {
        let [arg] = args else {
            return if args.is_empty() { Ok(By::Identity) } else { Err(wrong_arguments(step)) };
        };
        Ok(match &arg.kind {
            ArgKind::Text(key) => By::Key(key.clone()),
            ArgKind::Variable(name) => By::Variable((*name).into()),
            ArgKind::Traversal(steps) => By::Traversal(steps),
            ArgKind::Constant(Constant::Id) => By::Token(Function::Id),
            ArgKind::Constant(Constant::Label) => By::Token(Function::Label),
            ArgKind::Constant(Constant::Key) => By::Token(Function::PropertyKey),
            ArgKind::Constant(Constant::Value) => By::Token(Function::PropertyValue),
            ArgKind::Constant(Constant::Keys) => By::Column(Function::MapKeys),
            ArgKind::Constant(Constant::Values) => By::Column(Function::MapValues),
            ArgKind::Other(name) => return Err(Fault::unsupported(arg.at, name.to_string())),
            _ => return Err(wrong_arguments(step)),
        })
    }

    /// Computes the value of a `by()` for an object. Subplans that it needs are bound in the flow.
    pub(super) fn by_value(
        &mut self,
        flow: &mut Flow,
        by: &By<'_, '_>,
        object: Expr,
        kind: ObjectKind,
    ) -> Result<ByValue> {
        let value = self.value_of(flow, by, object, kind)?;
        let is_left_out = |keys: &Vec<Str>| matches!(by, By::Key(key) if keys.contains(key));
        if value.productive || self.productive_by.as_ref().is_none_or(is_left_out) {
            return Ok(value);
        }
        let or_null = vec![value.expr, Expr::Literal(Value::Null)];
        Ok(ByValue { expr: call(Function::Coalesce, or_null), productive: true })
    }

    fn value_of(
        &mut self,
        flow: &mut Flow,
        by: &By<'_, '_>,
        object: Expr,
        kind: ObjectKind,
    ) -> Result<ByValue> {
        let some = |expr| Ok(ByValue { expr, productive: true });
        match by {
            By::Identity => some(object),
            By::Key(key) => {
                Ok(ByValue { expr: Expr::Property(Box::new(object), key.clone()), productive: false })
            }
            By::Variable(name) => {
                let key = Expr::Parameter(name.clone());
                Ok(ByValue { expr: Expr::Index(Box::new(object), Box::new(key)), productive: false })
            }
            By::Token(function) | By::Column(function) => some(call(*function, vec![object])),
            By::Traversal(steps) => {
                let near =
                    flow.scope.near.filter(|_| Some(&object) == flow.scope.cur.map(Expr::Slot).as_ref());
                let at = Subject { expr: object, kind, near };
                self.child_value(flow, steps, at)
            }
        }
    }

    /// Whether the first result of a child needs no subplan.
    pub(super) fn is_pure(&mut self, flow: &Flow, steps: &[Step<'_>]) -> Result<bool> {
        let at = Subject { expr: Expr::Literal(Value::Null), kind: ObjectKind::Unknown, near: None };
        let (_, _, count) = self.scalars(steps, &at, flow)?;
        Ok(match &steps[count..] {
            [] => true,
            [Step { name: StepName::Values, args, .. }] => {
                matches!(args.as_slice(), [arg] if arg.text().is_some())
            }
            [Step { name: StepName::Unfold, args, .. }] => args.is_empty(),
            _ => false,
        })
    }

    /// Computes the first result of a child traversal for an object.
    pub(super) fn child_value(
        &mut self,
        flow: &mut Flow,
        steps: &[Step<'_>],
        at: Subject,
    ) -> Result<ByValue> {
        let (end, productive, count) = self.scalars(steps, &at, flow)?;
        match &steps[count..] {
            [] => return Ok(ByValue { expr: end.expr, productive }),
            [Step { name: StepName::Unfold, args, .. }] if args.is_empty() => {
                let items = call(Function::Unfold, vec![end.expr]);
                return Ok(ByValue { expr: call(Function::Head, vec![items]), productive: false });
            }
            [Step { name: StepName::Values, args, .. }] if args.len() == 1 => {
                if let Some(key) = args[0].text() {
                    let all = call(Function::PropertyValues, vec![end.expr, text(key)]);
                    return Ok(ByValue { expr: call(Function::Head, vec![all]), productive: false });
                }
            }
            _ => {}
        }
        let cur = match at.expr {
            Expr::Slot(slot) => slot,
            expr => {
                let slot = self.fresh();
                flow.bind(slot, expr);
                slot
            }
        };
        let mut child = flow.child();
        child.scope.cur = Some(cur);
        child.scope.kind = at.kind;
        child.scope.near = at.near;
        let (steps, collected) = match steps.split_last() {
            Some((Step { name: name @ (StepName::Count | StepName::Fold), args, .. }, rest))
                if args.is_empty() =>
            {
                (rest, Some(*name))
            }
            _ => (steps, None),
        };
        let out = self.fresh();
        self.steps(&mut child, steps, None)?;
        let end = child.scope.cur.unwrap_or(cur);
        let kind = match collected {
            Some(StepName::Count) => BindKind::Count,
            Some(_) => BindKind::Collect(end),
            None => BindKind::First(end),
        };
        let plan = Box::new(child.op);
        flow.wrap(|input| Op::Bind { input, plan, out, kind });
        Ok(ByValue { expr: Expr::Slot(out), productive: collected.is_some() })
    }

    /// Returns the slot of a value; binds a new slot unless the value is one.
    pub(super) fn slot_of(&mut self, flow: &mut Flow, expr: Expr) -> Slot {
        match expr {
            Expr::Slot(slot) => slot,
            expr => {
                let slot = self.fresh();
                flow.bind(slot, expr);
                slot
            }
        }
    }

    /// Returns a value as an argument of `MakeMap`: unbound if there is none.
    pub(super) fn optional_value(&mut self, flow: &mut Flow, value: ByValue) -> Expr {
        if value.productive {
            return value.expr;
        }
        // The slot of a subplan without a result is unbound already.
        if matches!(value.expr, Expr::Slot(_)) {
            return value.expr;
        }
        let slot = self.slot_of(flow, value.expr);
        Expr::Case {
            branches: vec![(super::is_null(Expr::Slot(slot)), Expr::Literal(Value::Unbound))],
            otherwise: Box::new(Expr::Slot(slot)),
        }
    }
}

//! `by()` modulators: a value computed from an object.

use super::{Compiler, Flow, Kind, Result, call, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step};
use crate::compile::filter::At;
use crate::error::Failure;
use tidegraph_plan::{BindKind, Expr, Function, Op, Slot};
use tidegraph_types::{Str, Value};

/// What a `by()` asks for.
#[derive(Clone, Debug)]
pub(super) enum By<'a, 't> {
    Identity,
    Key(Str),
    /// A key that the request binds.
    Variable(Str),
    Token(Function),
    /// `keys` or `values` of a map or entry.
    Column(Function),
    Traversal(&'a [Step<'t>]),
}

/// How a sort goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Ascending,
    Descending,
    Shuffle,
}

/// A value that a `by()` gave.
pub(super) struct ByValue {
    pub(super) expr: Expr,
    /// There always is one; else it may be null or unbound, which means that there is none.
    pub(super) productive: bool,
}

/// An order constant.
pub(super) fn order(arg: &Arg<'_>) -> Option<Order> {
    match arg.constant()? {
        "asc" | "incr" => Some(Order::Ascending),
        "desc" | "decr" => Some(Order::Descending),
        "shuffle" => Some(Order::Shuffle),
        _ => None,
    }
}

impl Compiler {
    /// `by()` steps that ask for values, not for an order.
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
            ArgKind::Constant("id") => By::Token(Function::Id),
            ArgKind::Constant("label") => By::Token(Function::Label),
            ArgKind::Constant("key") => By::Token(Function::PropertyKey),
            ArgKind::Constant("value") => By::Token(Function::PropertyValue),
            ArgKind::Constant("keys") => By::Column(Function::MapKeys),
            ArgKind::Constant("values") => By::Column(Function::MapValues),
            ArgKind::Other(name) => return Err(Failure::unsupported(arg.at, name.to_string())),
            _ => return Err(wrong_arguments(step)),
        })
    }

    /// The value of a `by()` for an object; what it takes is bound in the flow.
    pub(super) fn by_value(
        &mut self,
        flow: &mut Flow,
        by: &By<'_, '_>,
        object: Expr,
        kind: Kind,
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
                let at = At { expr: object, kind, near };
                self.child_value(flow, steps, at)
            }
        }
    }

    /// Whether the first result of a child is an expression of the object.
    pub(super) fn is_pure(&mut self, flow: &Flow, steps: &[Step<'_>]) -> Result<bool> {
        let at = At { expr: Expr::Literal(Value::Null), kind: Kind::Unknown, near: None };
        let (_, _, count) = self.scalars(steps, &at, flow)?;
        Ok(match &steps[count..] {
            [] => true,
            [Step { name: "values", args, .. }] => matches!(args.as_slice(), [arg] if arg.text().is_some()),
            [Step { name: "unfold", args, .. }] => args.is_empty(),
            _ => false,
        })
    }

    /// First result of a child traversal for an object.
    pub(super) fn child_value(&mut self, flow: &mut Flow, steps: &[Step<'_>], at: At) -> Result<ByValue> {
        let (end, productive, count) = self.scalars(steps, &at, flow)?;
        match &steps[count..] {
            [] => return Ok(ByValue { expr: end.expr, productive }),
            [Step { name: "unfold", args, .. }] if args.is_empty() => {
                let items = call(Function::Unfold, vec![end.expr]);
                return Ok(ByValue { expr: call(Function::Head, vec![items]), productive: false });
            }
            [Step { name: "values", args, .. }] if args.len() == 1 => {
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
            Some((Step { name: name @ ("count" | "fold"), args, .. }, rest)) if args.is_empty() => {
                (rest, Some(*name))
            }
            _ => (steps, None),
        };
        let out = self.fresh();
        self.steps(&mut child, steps, None)?;
        let end = child.scope.cur.unwrap_or(cur);
        let kind = match collected {
            Some("count") => BindKind::Count,
            Some(_) => BindKind::Collect(end),
            None => BindKind::First(end),
        };
        let plan = Box::new(child.op);
        flow.wrap(|input| Op::Bind { input, plan, out, kind });
        Ok(ByValue { expr: Expr::Slot(out), productive: collected.is_some() })
    }

    /// Binds a value to a slot of its own, unless it is one.
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

    /// As an argument of `MakeMap`: unbound where there is no value.
    pub(super) fn optional_value(&mut self, flow: &mut Flow, value: ByValue) -> Expr {
        if value.productive {
            return value.expr;
        }
        // A slot that a subplan bound is unbound without a result already.
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

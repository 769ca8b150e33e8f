//! The `has` family as tests.

use super::{Compiler, Flow, ObjectKind, Result, call, not, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Predicate, PredicateName, Step, StepName};
use crate::compile::filter::Subject;
use crate::compile::predicate::Operands;
use crate::compile::start::label_group;
use crate::fault::Fault;
use tidegraph_plan::{Expr, Function, Quantifier};
use tidegraph_types::{Str, Value};

/// The right side of a test.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand<'a, 't> {
    /// Equal to one of these.
    Values(&'a [Arg<'t>]),
    /// A predicate.
    Test(&'a Predicate<'t>),
}

/// One test of a `has` step.
#[derive(Clone, Debug)]
pub(super) enum Has<'a, 't> {
    Exists(Str),
    Missing(Str),
    Property(Str, Operand<'a, 't>),
    Child(Str, &'a Step<'t>, &'a [Step<'t>]),
    /// A token and a traversal that tests its value.
    Token(Constant, &'a Step<'t>, &'a [Step<'t>]),
    Label(Operand<'a, 't>),
    Id(Operand<'a, 't>),
    Key(Operand<'a, 't>),
    Value(Operand<'a, 't>),
    /// Nothing passes, as for `has(null)`.
    Never,
}

/// Returns the tests of a `has` step. All must hold.
pub(super) fn has_tests<'a, 't>(step: &'a Step<'t>) -> Result<Vec<Has<'a, 't>>> {
    let args = step.args.as_slice();
    let operand = |args: &'a [Arg<'t>]| match args {
        [Arg { kind: ArgKind::Predicate(p), .. }] => Operand::Test(p),
        _ => Operand::Values(args),
    };
    let key = |arg: &Arg<'t>| match &arg.kind {
        ArgKind::Text(text) => Ok(Some(text.clone())),
        ArgKind::Value(Value::Null) => Ok(None),
        ArgKind::Variable(_) => Err(Fault::unsupported(arg.at, "a variable as a property key of has()")),
        _ => Err(wrong_arguments(step)),
    };
    if let Some((at, name)) = args.iter().find_map(|a| match &a.kind {
        ArgKind::Other(name) => Some((a.at, name)),
        _ => None,
    }) {
        return Err(Fault::unsupported(at, name.to_string()));
    }
    let predicates = args.iter().filter(|a| matches!(a.kind, ArgKind::Predicate(_))).count();
    let wrong = predicates > 1
        || (step.name != StepName::Has && (args.is_empty() || (predicates == 1 && args.len() > 1)));
    if wrong {
        return Err(wrong_arguments(step));
    }
    let one = |test| Ok(vec![test]);
    let exists = |k: Option<Str>| k.map_or(Has::Never, Has::Exists);
    match (step.name, args) {
        (StepName::HasId, _) => one(Has::Id(operand(args))),
        (StepName::HasLabel, _) => one(Has::Label(operand(args))),
        (StepName::HasKey, _) => one(Has::Key(operand(args))),
        (StepName::HasValue, _) => one(Has::Value(operand(args))),
        (StepName::HasNot, [k]) => match key(k)? {
            Some(k) => one(Has::Missing(k)),
            None => Ok(vec![]),
        },
        (StepName::Has, [k]) => one(exists(key(k)?)),
        (StepName::Has, [Arg { kind: ArgKind::Constant(token), .. }, value]) => {
            if let Some(steps) = value.steps() {
                return one(Has::Token(*token, step, steps));
            }
            let operand = operand(&args[1..]);
            one(match *token {
                Constant::Id => Has::Id(operand),
                Constant::Label => Has::Label(operand),
                Constant::Key => Has::Key(operand),
                Constant::Value => Has::Value(operand),
                _ => return Err(wrong_arguments(step)),
            })
        }
        (StepName::Has, [k, value]) => match (key(k)?, value.steps()) {
            (None, _) => one(Has::Never),
            (Some(k), Some(steps)) => one(Has::Child(k, step, steps)),
            (Some(k), None) => one(Has::Property(k, operand(&args[1..]))),
        },
        (StepName::Has, [label, k, _]) => {
            if !matches!(label.kind, ArgKind::Text(_) | ArgKind::Variable(_) | ArgKind::Value(Value::Null)) {
                return Err(wrong_arguments(step));
            }
            let label = Has::Label(Operand::Values(&args[..1]));
            Ok(vec![label, key(k)?.map_or(Has::Never, |k| Has::Property(k, operand(&args[2..])))])
        }
        _ => Err(wrong_arguments(step)),
    }
}

impl Compiler {
    /// Returns a test of an object as an expression.
    pub(super) fn has_expr(
        &mut self,
        test: &Has<'_, '_>,
        cur: &Expr,
        kind: ObjectKind,
        flow: &Flow,
    ) -> Result<Expr> {
        Ok(match test {
            Has::Never => Expr::literal(false),
            Has::Exists(key) => call(Function::HasProperty, vec![cur.clone(), text(key)]),
            Has::Missing(key) => not(call(Function::HasProperty, vec![cur.clone(), text(key)])),
            Has::Property(key, operand) => {
                if kind == ObjectKind::Edge && is_plain(operand) {
                    let value = Expr::Property(Box::new(cur.clone()), key.clone());
                    return self.operand_expr(operand, &value, &mut Operands::Value);
                }
                let list = call(Function::PropertyValues, vec![cur.clone(), text(key)]);
                self.any(list, |c, item| c.operand_expr(operand, item, &mut Operands::Value))?
            }
            Has::Child(_, step, _) if !self.version.has_takes_traversals() => {
                let message = "has() with a key and a traversal is not part of Gremlin 3.8: use where()";
                return Err(Fault::syntax(step.at, message.into()));
            }
            Has::Child(key, step, steps) => {
                let list = call(Function::PropertyValues, vec![cur.clone(), text(key)]);
                self.any(list, |c, item| c.child_test(step, steps, item.clone(), flow))?
            }
            Has::Token(token, step, steps) => {
                let value = |function| call(function, vec![cur.clone()]);
                match token {
                    Constant::Label if matches!(kind, ObjectKind::Vertex | ObjectKind::Unknown) => {
                        // A vertex may have several labels. One must pass.
                        let labels = call(Function::Split, vec![value(Function::Label), Expr::literal("::")]);
                        self.any(labels, |c, item| c.child_test(step, steps, item.clone(), flow))?
                    }
                    Constant::Label => self.child_test(step, steps, value(Function::Label), flow)?,
                    Constant::Id => self.child_test(step, steps, value(Function::Id), flow)?,
                    Constant::Key => self.child_test(step, steps, value(Function::PropertyKey), flow)?,
                    Constant::Value => self.child_test(step, steps, value(Function::PropertyValue), flow)?,
                    _ => return Err(wrong_arguments(step)),
                }
            }
            Has::Label(operand) => self.label_expr(test, operand, cur, kind)?,
            Has::Id(operand) => {
                let id = call(Function::Id, vec![cur.clone()]);
                // Those of properties are numbers.
                let id = match kind {
                    ObjectKind::Vertex | ObjectKind::Edge => id,
                    _ if self.settings.ids.have_types() => id,
                    _ => call(Function::ToText, vec![id]),
                };
                match spread(operand) {
                    // A variable may hold an id or a list of them.
                    Operand::Values(args) if args.iter().any(|a| matches!(a.kind, ArgKind::Variable(_))) => {
                        let test = |arg: &Arg<'_>| match arg.kind {
                            ArgKind::Variable(_) => PredicateName::Within,
                            _ => PredicateName::Eq,
                        };
                        let tests = args
                            .iter()
                            .map(|a| self.test(test(a), std::slice::from_ref(a), &id, &mut Operands::Id));
                        Expr::Or(tests.collect::<Result<_>>()?)
                    }
                    operand => self.operand_expr(&operand, &id, &mut Operands::Id)?,
                }
            }
            Has::Key(operand) => {
                let key = call(Function::PropertyKey, vec![cur.clone()]);
                self.operand_expr(operand, &key, &mut Operands::Value)?
            }
            Has::Value(operand) => {
                let value = call(Function::PropertyValue, vec![cur.clone()]);
                self.operand_expr(operand, &value, &mut Operands::Value)?
            }
        })
    }

    /// Returns the test that a traversal makes of a value.
    fn child_test(&mut self, step: &Step<'_>, steps: &[Step<'_>], value: Expr, flow: &Flow) -> Result<Expr> {
        let at = Subject { expr: value, kind: ObjectKind::Scalar, near: None };
        self.test_expr(steps, &at, flow)?
            .ok_or_else(|| Fault::unsupported(step.at, "has(key, traversal) of this form"))
    }

    fn label_expr(
        &mut self,
        test: &Has<'_, '_>,
        operand: &Operand<'_, '_>,
        cur: &Expr,
        kind: ObjectKind,
    ) -> Result<Expr> {
        if kind == ObjectKind::Property {
            let key = call(Function::PropertyKey, vec![cur.clone()]);
            return self.operand_expr(operand, &key, &mut Operands::Value);
        }
        if let Some(labels) = label_group(test) {
            return Ok(Expr::HasAnyLabel(Box::new(cur.clone()), labels));
        }
        if let Operand::Test(Predicate::Test(name @ (PredicateName::Neq | PredicateName::Without), args)) =
            operand
        {
            let name = if *name == PredicateName::Neq { PredicateName::Eq } else { PredicateName::Within };
            let positive = Predicate::Test(name, args.clone());
            let positive = Has::Label(Operand::Test(&positive));
            if let Some(labels) = label_group(&positive) {
                return Ok(not(Expr::HasAnyLabel(Box::new(cur.clone()), labels)));
            }
        }
        let label = call(Function::Label, vec![cur.clone()]);
        if kind == ObjectKind::Edge {
            return self.operand_expr(operand, &label, &mut Operands::Value);
        }
        // A vertex may have several labels. One must pass.
        let labels = call(Function::Split, vec![label, Expr::literal("::")]);
        self.any(labels, |c, item| c.operand_expr(operand, item, &mut Operands::Value))
    }

    /// Returns the test whether any item of a list passes.
    pub(super) fn any(
        &mut self,
        list: Expr,
        test: impl FnOnce(&mut Self, &Expr) -> Result<Expr>,
    ) -> Result<Expr> {
        let variable = self.fresh();
        let predicate = test(self, &Expr::Slot(variable))?;
        Ok(Expr::Quantified {
            quantifier: Quantifier::Any,
            variable,
            list: Box::new(list),
            predicate: Box::new(predicate),
        })
    }

    pub(super) fn operand_expr(
        &mut self,
        operand: &Operand<'_, '_>,
        left: &Expr,
        operands: &mut Operands,
    ) -> Result<Expr> {
        match operand {
            Operand::Test(predicate) => self.predicate_expr(predicate, left, operands),
            Operand::Values([value]) => {
                self.test(PredicateName::Eq, std::slice::from_ref(value), left, operands)
            }
            Operand::Values(values) => self.test(PredicateName::Within, values, left, operands),
        }
    }
}

/// Replaces a list of ids by its items.
fn spread<'a, 't>(operand: &Operand<'a, 't>) -> Operand<'a, 't> {
    match operand {
        Operand::Values([Arg { kind: ArgKind::List(items), .. }]) => Operand::Values(items),
        other => *other,
    }
}

/// Whether a missing value never passes.
fn is_plain(operand: &Operand<'_, '_>) -> bool {
    match operand {
        Operand::Values(args) => args.iter().all(|a| a.kind != ArgKind::Value(Value::Null)),
        Operand::Test(Predicate::Test(name, args)) => {
            !matches!(*name, PredicateName::Without | PredicateName::Within)
                && args.iter().all(|a| a.kind != ArgKind::Value(Value::Null))
        }
        Operand::Test(_) => false,
    }
}

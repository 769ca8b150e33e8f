//! `P` and `TextP` as expressions.
//!
//! Expressions are three-valued and a filter passes what is true, so that a comparison of types that do not compare drops
//! the traverser, negated or not, as TinkerPop's does.

use super::{Compiler, Result, call, is_null, literal, not, text};
use crate::ast::{Arg, ArgKind, Predicate};
use crate::compile::start::list;
use crate::error::Failure;
use std::collections::VecDeque;
use tidegraph_plan::{Comparison, Expr, Function, Quantifier};
use tidegraph_types::{Str, Value};

/// What the operands of a predicate stand for.
pub(super) enum How {
    /// Values.
    Value,
    /// Ids, which are strings: numbers count as their text.
    Id,
    /// Labels of `where()`: their objects, in the order in which the predicate names them.
    Labels(VecDeque<Expr>),
}

impl Compiler {
    pub(super) fn predicate_expr(
        &mut self,
        predicate: &Predicate<'_>,
        left: &Expr,
        how: &mut How,
    ) -> Result<Expr> {
        Ok(match predicate {
            Predicate::Test(name, args) => self.test(name, args, left, how)?,
            Predicate::And(a, b) => {
                let a = self.predicate_expr(a, left, how)?;
                a.and(self.predicate_expr(b, left, how)?)
            }
            Predicate::Or(a, b) => {
                let a = self.predicate_expr(a, left, how)?;
                Expr::Or(vec![a, self.predicate_expr(b, left, how)?])
            }
            Predicate::Not(a) => never(self.predicate_expr(a, left, how)?),
        })
    }

    /// One named test.
    pub(super) fn test(&mut self, name: &str, args: &[Arg<'_>], left: &Expr, how: &mut How) -> Result<Expr> {
        use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
        let at = args.first().map_or(0, |a| a.at);
        let two = |c: &mut Self, how: &mut How, low: Comparison, high: Comparison| {
            let [a, b] = args else { return Err(Failure::syntax(at, format!("{name}() takes two values"))) };
            let a = Expr::compare(low, left.clone(), c.operand(a, how)?);
            Ok((a, Expr::compare(high, left.clone(), c.operand(b, how)?)))
        };
        Ok(match name {
            "eq" | "neq" => {
                let [arg] = args else {
                    return Err(Failure::syntax(at, format!("{name}() takes one value")));
                };
                let equal = name == "eq";
                if arg.kind == ArgKind::Value(Value::Null) && !matches!(how, How::Labels(_)) {
                    let null = is_null(left.clone());
                    return Ok(if equal { null } else { not(null) });
                }
                let operand = self.operand(arg, how)?;
                if equal {
                    Expr::compare(Comparison::Equal, left.clone(), operand)
                } else if matches!(how, How::Value) && !matches!(left, Expr::Property(..)) {
                    // Another value is not equal to a null, nor a null to it.
                    never(Expr::compare(Comparison::Equal, left.clone(), operand))
                } else {
                    Expr::compare(Comparison::NotEqual, left.clone(), operand)
                }
            }
            "lt" => self.compare(Less, args, left, how)?,
            "lte" => self.compare(LessOrEqual, args, left, how)?,
            "gt" => self.compare(Greater, args, left, how)?,
            "gte" => self.compare(GreaterOrEqual, args, left, how)?,
            "between" => {
                let (low, high) = two(self, how, GreaterOrEqual, Less)?;
                low.and(high)
            }
            "inside" => {
                let (low, high) = two(self, how, Greater, Less)?;
                low.and(high)
            }
            "outside" => {
                let (low, high) = two(self, how, Less, Greater)?;
                Expr::Or(vec![low, high])
            }
            "within" => self.within(args, left, how, false)?,
            "without" => self.within(args, left, how, true)?,
            "startingWith" => self.text_test(Function::StartsWith, args, left, how)?,
            "endingWith" => self.text_test(Function::EndsWith, args, left, how)?,
            "containing" => self.text_test(Function::Contains, args, left, how)?,
            "regex" => self.text_test(Function::Regex, args, left, how)?,
            "notStartingWith" => not(self.text_test(Function::StartsWith, args, left, how)?),
            "notEndingWith" => not(self.text_test(Function::EndsWith, args, left, how)?),
            "notContaining" => not(self.text_test(Function::Contains, args, left, how)?),
            "notRegex" => not(self.text_test(Function::Regex, args, left, how)?),
            other => return Err(Failure::unsupported(at, format!("P.{other}()"))),
        })
    }

    fn compare(&mut self, with: Comparison, args: &[Arg<'_>], left: &Expr, how: &mut How) -> Result<Expr> {
        let [arg] = args else {
            return Err(Failure::syntax(args.first().map_or(0, |a| a.at), "expected one value".into()));
        };
        // A null is neither above nor below another one, and with anything else it does not compare.
        if arg.kind == ArgKind::Value(Value::Null)
            && matches!(with, Comparison::LessOrEqual | Comparison::GreaterOrEqual)
            && !matches!(how, How::Labels(_))
        {
            let null = Expr::Literal(Value::Null);
            return Ok(Expr::Or(vec![is_null(left.clone()), Expr::compare(with, left.clone(), null)]));
        }
        Ok(Expr::compare(with, left.clone(), self.operand(arg, how)?))
    }

    fn text_test(
        &mut self,
        function: Function,
        args: &[Arg<'_>],
        left: &Expr,
        how: &mut How,
    ) -> Result<Expr> {
        let [arg] = args else {
            return Err(Failure::syntax(args.first().map_or(0, |a| a.at), "expected one string".into()));
        };
        if !matches!(arg.kind, ArgKind::Text(_) | ArgKind::Variable(_) | ArgKind::Other(_)) {
            return Err(Failure::syntax(arg.at, format!("expected a string, found {}", arg.describe())));
        }
        Ok(call(function, vec![left.clone(), self.operand(arg, how)?]))
    }

    /// `within` and `without`; a null among the items is found by a null.
    fn within(&mut self, args: &[Arg<'_>], left: &Expr, how: &mut How, negated: bool) -> Result<Expr> {
        let left = || Box::new(left.clone());
        let labels = matches!(how, How::Labels(_));
        let sign = |found: Expr| match negated {
            false => found,
            true if labels => not(found),
            true => never(found),
        };
        match (how, args) {
            (How::Labels(labels), [_]) => {
                let object = labels.pop_front().unwrap_or(Expr::Literal(Value::Null));
                Ok(sign(Expr::In(left(), Box::new(call(Function::Unfold, vec![object])))))
            }
            (How::Labels(labels), _) => {
                let objects = args.iter().filter_map(|_| labels.pop_front()).collect();
                Ok(sign(Expr::In(left(), Box::new(Expr::List(objects)))))
            }
            (how, [Arg { kind: ArgKind::Variable(name), .. }]) => {
                let all = Expr::Parameter((*name).into());
                let all = match how {
                    How::Id => {
                        let variable = self.fresh();
                        Expr::Comprehension {
                            variable,
                            list: Box::new(call(Function::Unfold, vec![all])),
                            filter: None,
                            map: Some(Box::new(call(Function::ToText, vec![Expr::Slot(variable)]))),
                        }
                    }
                    _ => all,
                };
                Ok(sign(Expr::In(left(), Box::new(all))))
            }
            (how, args) => {
                let args = match args {
                    [Arg { kind: ArgKind::List(items) | ArgKind::Set(items), .. }] => items.as_slice(),
                    _ => args,
                };
                let is_null_arg = |a: &&Arg<'_>| a.kind == ArgKind::Value(Value::Null);
                let null = args.iter().any(|a| is_null_arg(&a));
                let mut items = vec![];
                for arg in args.iter().filter(|a| !is_null_arg(a)) {
                    items.push(self.operand(arg, how)?);
                }
                let found = Expr::In(left(), Box::new(list(items)));
                if !null {
                    return Ok(sign(found));
                }
                let null = is_null(*left());
                Ok(if negated { not(found).and(not(null)) } else { Expr::Or(vec![null, found]) })
            }
        }
    }

    fn operand(&mut self, arg: &Arg<'_>, how: &mut How) -> Result<Expr> {
        match how {
            How::Value => self.expr(arg),
            How::Labels(labels) => Ok(labels.pop_front().unwrap_or(Expr::Literal(Value::Null))),
            How::Id => {
                let id = match &arg.kind {
                    ArgKind::Vertex(id) => id,
                    _ => arg,
                };
                match literal(id) {
                    Some(value) => Ok(match value.as_i64() {
                        Some(int) => Expr::Literal(Value::String(Str::from(int.to_string()))),
                        None => Expr::Literal(value),
                    }),
                    None => Ok(call(Function::ToText, vec![self.expr(id)?])),
                }
            }
        }
    }
}

/// Not so: true where a test is false, and where it has no answer neither true nor false, as TinkerPop's ternary logic
/// has it. So the negation goes inwards, down to the comparisons: what cannot be ordered (two types, NaN) is neither
/// above nor below nor not above. Only orders have no answer; what does not compare is not equal.
pub(super) fn never(test: Expr) -> Expr {
    match test {
        Expr::And(all) => Expr::Or(all.into_iter().map(never).collect()),
        Expr::Or(all) => all.into_iter().map(never).reduce(Expr::and).unwrap_or(Expr::literal(true)),
        Expr::Compare(comparison, a, b) if opposite(comparison).is_some() => {
            let opposite = opposite(comparison).unwrap_or(comparison);
            let missing = [missing(&a), missing(&b)];
            or_missing(missing, Expr::Compare(opposite, a, b))
        }
        Expr::Call(
            function @ (Function::StartsWith | Function::EndsWith | Function::Contains | Function::Regex),
            args,
        ) => {
            let missing = args.iter().map(missing).collect::<Vec<_>>();
            or_missing(missing, not(Expr::Call(function, args)))
        }
        Expr::Quantified { quantifier: Quantifier::Any, variable, list, predicate } => Expr::Quantified {
            quantifier: Quantifier::All,
            variable,
            list: Box::new(call(Function::Coalesce, vec![*list, Expr::List(vec![])])),
            predicate: Box::new(never(*predicate)),
        },
        test if is_known(&test) => not(test),
        test => not(call(Function::Coalesce, vec![test, Expr::literal(false)])),
    }
}

/// The order that holds when another one does not, between values that compare.
fn opposite(comparison: Comparison) -> Option<Comparison> {
    match comparison {
        Comparison::Less => Some(Comparison::GreaterOrEqual),
        Comparison::LessOrEqual => Some(Comparison::Greater),
        Comparison::Greater => Some(Comparison::LessOrEqual),
        Comparison::GreaterOrEqual => Some(Comparison::Less),
        Comparison::Equal | Comparison::NotEqual => None,
    }
}

/// Whether a test orders values, which has no answer for some.
pub(super) fn may_lack_answer(test: &Expr) -> bool {
    matches!(test, Expr::Compare(comparison, ..) if opposite(*comparison).is_some())
        || test.children().into_iter().any(may_lack_answer)
}

/// That there is no such property: there is nothing to compare then, and the test is false.
fn missing(operand: &Expr) -> Option<Expr> {
    match operand {
        Expr::Property(base, key) => {
            Some(not(call(Function::HasProperty, vec![(**base).clone(), text(key)])))
        }
        _ => None,
    }
}

fn or_missing(missing: impl IntoIterator<Item = Option<Expr>>, test: Expr) -> Expr {
    let mut all: Vec<Expr> = missing.into_iter().flatten().collect();
    if all.is_empty() {
        return test;
    }
    all.push(test);
    Expr::Or(all)
}

/// Whether a test is never null.
fn is_known(test: &Expr) -> bool {
    match test {
        Expr::HasAnyLabel(..) | Expr::IsNull(_) | Expr::IsBound(_) => true,
        Expr::Literal(value) => !value.is_null(),
        Expr::Call(Function::HasProperty, _) => true,
        Expr::Call(Function::Coalesce, args) => args.last().is_some_and(is_known),
        Expr::Not(inner) => is_known(inner),
        Expr::And(all) | Expr::Or(all) => all.iter().all(is_known),
        _ => false,
    }
}

/// The label names of a `where()` predicate, in order.
pub(super) fn label_names<'a, 't>(predicate: &'a Predicate<'t>, names: &mut Vec<&'a Arg<'t>>) {
    match predicate {
        Predicate::Test(_, args) => match args.as_slice() {
            [Arg { kind: ArgKind::List(items), .. }] => names.extend(items),
            args => names.extend(args),
        },
        Predicate::And(a, b) | Predicate::Or(a, b) => {
            label_names(a, names);
            label_names(b, names);
        }
        Predicate::Not(a) => label_names(a, names),
    }
}

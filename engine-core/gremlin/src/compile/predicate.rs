//! `P` and `TextP` as expressions.
//!
//! Expressions are three-valued, and a filter passes only rows for which its expression is true. So a comparison
//! between types that do not compare drops the traverser; in 3.7 also if it is negated.

use super::{Compiler, Result, call, is_null, literal, not, text};
use crate::Version;
use crate::ast::{Arg, ArgKind, Predicate, PredicateName};
use crate::compile::start::list;
use crate::fault::Fault;
use crate::names::TypeName;
use std::collections::VecDeque;
use tidegraph_plan::{Comparison, Expr, Function, GremlinType, Quantifier};
use tidegraph_types::{Str, Value};

/// The meaning of a predicate's operands.
pub(super) enum Operands {
    /// Values.
    Value,
    /// Ids. If they are strings, a number stands for its text.
    Id,
    /// Labels in `where()`: their objects, in the order in which the predicate names them.
    Labels(VecDeque<Expr>),
}

impl Compiler {
    pub(super) fn negated(&self, test: Expr) -> Expr {
        negated(self.version, test)
    }

    pub(super) fn predicate_expr(
        &mut self,
        predicate: &Predicate<'_>,
        left: &Expr,
        operands: &mut Operands,
    ) -> Result<Expr> {
        Ok(match predicate {
            Predicate::Test(name, args) => self.test(*name, args, left, operands)?,
            Predicate::And(a, b) => {
                let a = self.predicate_expr(a, left, operands)?;
                a.and(self.predicate_expr(b, left, operands)?)
            }
            Predicate::Or(a, b) => {
                let a = self.predicate_expr(a, left, operands)?;
                Expr::Or(vec![a, self.predicate_expr(b, left, operands)?])
            }
            Predicate::Not(a) => {
                let test = self.predicate_expr(a, left, operands)?;
                self.negated(test)
            }
        })
    }

    /// Translates a named test of `left`.
    pub(super) fn test(
        &mut self,
        name: PredicateName,
        args: &[Arg<'_>],
        left: &Expr,
        operands: &mut Operands,
    ) -> Result<Expr> {
        use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
        let at = args.first().map_or(0, |a| a.at);
        let two = |c: &mut Self, operands: &mut Operands, low: Comparison, high: Comparison| {
            let [a, b] = args else { return Err(Fault::syntax(at, format!("{name}() takes two values"))) };
            let a = Expr::compare(low, left.clone(), c.operand(a, operands)?);
            Ok((a, Expr::compare(high, left.clone(), c.operand(b, operands)?)))
        };
        Ok(match name {
            PredicateName::Eq | PredicateName::Neq => {
                let [arg] = args else {
                    return Err(Fault::syntax(at, format!("{name}() takes one value")));
                };
                let equal = name == PredicateName::Eq;
                if arg.kind == ArgKind::Value(Value::Null) && !matches!(operands, Operands::Labels(_)) {
                    let null = is_null(left.clone());
                    return Ok(if equal { null } else { not(null) });
                }
                let operand = self.operand(arg, operands)?;
                if self.productive_by.is_some() && matches!(operands, Operands::Labels(_)) {
                    // Values of by() may be null, and nulls are equal.
                    let both = Expr::And(vec![is_null(left.clone()), is_null(operand.clone())]);
                    let same = Expr::Or(vec![both, Expr::compare(Comparison::Equal, left.clone(), operand)]);
                    let same = call(Function::Coalesce, vec![same, Expr::literal(false)]);
                    return Ok(if equal { same } else { not(same) });
                }
                if equal {
                    Expr::compare(Comparison::Equal, left.clone(), operand)
                } else if matches!(operands, Operands::Value) && !matches!(left, Expr::Property(..)) {
                    // A null and another value are not equal.
                    self.negated(Expr::compare(Comparison::Equal, left.clone(), operand))
                } else {
                    Expr::compare(Comparison::NotEqual, left.clone(), operand)
                }
            }
            PredicateName::Lt => self.compare(Less, args, left, operands)?,
            PredicateName::Lte => self.compare(LessOrEqual, args, left, operands)?,
            PredicateName::Gt => self.compare(Greater, args, left, operands)?,
            PredicateName::Gte => self.compare(GreaterOrEqual, args, left, operands)?,
            PredicateName::Between => {
                let (low, high) = two(self, operands, GreaterOrEqual, Less)?;
                low.and(high)
            }
            PredicateName::Inside => {
                let (low, high) = two(self, operands, Greater, Less)?;
                low.and(high)
            }
            PredicateName::Outside => {
                let (low, high) = two(self, operands, Less, Greater)?;
                Expr::Or(vec![low, high])
            }
            PredicateName::Within => self.within(args, left, operands, false)?,
            PredicateName::Without => self.within(args, left, operands, true)?,
            PredicateName::StartingWith => self.text_test(Function::StartsWith, args, left, operands)?,
            PredicateName::EndingWith => self.text_test(Function::EndsWith, args, left, operands)?,
            PredicateName::Containing => self.text_test(Function::Contains, args, left, operands)?,
            PredicateName::Regex => self.text_test(Function::Regex, args, left, operands)?,
            PredicateName::NotStartingWith => {
                not(self.text_test(Function::StartsWith, args, left, operands)?)
            }
            PredicateName::NotEndingWith => not(self.text_test(Function::EndsWith, args, left, operands)?),
            PredicateName::NotContaining => not(self.text_test(Function::Contains, args, left, operands)?),
            PredicateName::NotRegex => not(self.text_test(Function::Regex, args, left, operands)?),
            PredicateName::TypeOf => type_test(args, at, left)?,
        })
    }

    fn compare(
        &mut self,
        with: Comparison,
        args: &[Arg<'_>],
        left: &Expr,
        operands: &mut Operands,
    ) -> Result<Expr> {
        let [arg] = args else {
            return Err(Fault::syntax(args.first().map_or(0, |a| a.at), "expected one value".into()));
        };
        // Null equals null in an order, and does not compare with other values.
        if arg.kind == ArgKind::Value(Value::Null)
            && matches!(with, Comparison::LessOrEqual | Comparison::GreaterOrEqual)
            && !matches!(operands, Operands::Labels(_))
        {
            let null = Expr::Literal(Value::Null);
            return Ok(Expr::Or(vec![is_null(left.clone()), Expr::compare(with, left.clone(), null)]));
        }
        Ok(Expr::compare(with, left.clone(), self.operand(arg, operands)?))
    }

    fn text_test(
        &mut self,
        function: Function,
        args: &[Arg<'_>],
        left: &Expr,
        operands: &mut Operands,
    ) -> Result<Expr> {
        let [arg] = args else {
            return Err(Fault::syntax(args.first().map_or(0, |a| a.at), "expected one string".into()));
        };
        if !matches!(arg.kind, ArgKind::Text(_) | ArgKind::Variable(_) | ArgKind::Other(_)) {
            return Err(Fault::syntax(arg.at, format!("expected a string, found {}", arg.describe())));
        }
        Ok(call(function, vec![left.clone(), self.operand(arg, operands)?]))
    }

    /// `within` and `without`. A null equals a null among the items.
    fn within(
        &mut self,
        args: &[Arg<'_>],
        left: &Expr,
        operands: &mut Operands,
        without: bool,
    ) -> Result<Expr> {
        let left = || Box::new(left.clone());
        let labels = matches!(operands, Operands::Labels(_));
        let version = self.version;
        let sign = |found: Expr| match without {
            false => found,
            true if labels => not(found),
            true => negated(version, found),
        };
        match (operands, args) {
            (Operands::Labels(labels), [_]) => {
                let object = labels.pop_front().unwrap_or(Expr::Literal(Value::Null));
                Ok(sign(Expr::In(left(), Box::new(call(Function::Unfold, vec![object])))))
            }
            (Operands::Labels(labels), _) => {
                let objects = args.iter().filter_map(|_| labels.pop_front()).collect();
                Ok(sign(Expr::In(left(), Box::new(Expr::List(objects)))))
            }
            (operands, [Arg { kind: ArgKind::Variable(name), .. }]) => {
                let all = Expr::Parameter((*name).into());
                let all = match operands {
                    Operands::Id if self.settings.ids.have_types() => call(Function::Unfold, vec![all]),
                    Operands::Id => {
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
            (operands, args) => {
                let args = match args {
                    [Arg { kind: ArgKind::List(items) | ArgKind::Set(items), .. }] => items.as_slice(),
                    _ => args,
                };
                let is_null_arg = |a: &&Arg<'_>| a.kind == ArgKind::Value(Value::Null);
                let null = args.iter().any(|a| is_null_arg(&a));
                let mut items = vec![];
                for arg in args.iter().filter(|a| !is_null_arg(a)) {
                    items.push(self.operand(arg, operands)?);
                }
                let found = Expr::In(left(), Box::new(list(items)));
                if !null {
                    return Ok(sign(found));
                }
                let null = is_null(*left());
                Ok(if without { not(found).and(not(null)) } else { Expr::Or(vec![null, found]) })
            }
        }
    }

    fn operand(&mut self, arg: &Arg<'_>, operands: &mut Operands) -> Result<Expr> {
        match operands {
            Operands::Value => {
                // A scan tests the same number of 64 bits, and an index finds it.
                let narrow = match literal(arg) {
                    Some(Value::Big(number)) => number.as_i64(),
                    _ => None,
                };
                narrow.map_or_else(|| self.expr(arg), |whole| Ok(Expr::literal(whole)))
            }
            Operands::Labels(labels) => Ok(labels.pop_front().unwrap_or(Expr::Literal(Value::Null))),
            Operands::Id => {
                let id = match &arg.kind {
                    ArgKind::Vertex(id) | ArgKind::Edge(id) => id,
                    _ => arg,
                };
                match literal(id) {
                    Some(value) if self.settings.ids.have_types() => match self.settings.ids.text(&value) {
                        None if !value.is_null() => {
                            let found = id.describe();
                            let message =
                                format!("expected an id: a string, an integer or a UUID, found {found}");
                            Err(Fault::syntax(id.at, message))
                        }
                        _ => Ok(Expr::Literal(value)),
                    },
                    None if self.settings.ids.have_types() => self.expr(id),
                    Some(value) => Ok(Expr::Literal(match (&value, value.as_i64()) {
                        (_, Some(int)) => Value::String(Str::from(int.to_string())),
                        (Value::Uuid(uuid), None) => Value::String(Str::from(uuid.to_string())),
                        (Value::Big(number), None) => Value::String(Str::from(number.to_string())),
                        _ => value,
                    })),
                    None => Ok(call(Function::ToText, vec![self.expr(id)?])),
                }
            }
        }
    }
}

/// `P.typeOf()`, of a type or of its name.
fn type_test(args: &[Arg<'_>], at: usize, left: &Expr) -> Result<Expr> {
    let kind = match args {
        [Arg { kind: ArgKind::Type(kind), .. }] => *kind,
        [Arg { kind: ArgKind::Text(name), .. }] => match TypeName::of(name) {
            Some(name) => *name.properties(),
            None => {
                let message = format!("{} is not the name of a type", crate::lexer::shorten(name));
                return Err(Fault::syntax(at, message));
            }
        },
        [Arg { kind: ArgKind::Other(name), .. }] => return Err(Fault::unsupported(at, name.to_string())),
        _ => return Err(Fault::syntax(at, "typeOf() takes a GType or the name of a type".into())),
    };
    // A missing property is read as a null, but has no type.
    if kind == GremlinType::Null && matches!(left, Expr::Property(..)) {
        return Ok(Expr::literal(false));
    }
    Ok(call(Function::TypeOf(kind), vec![left.clone()]))
}

/// Negates a test. In 3.8, one that has no answer counts as false.
pub(super) fn negated(version: Version, test: Expr) -> Expr {
    match test {
        test if version.comparisons_have_three_results() => ternary_negation(test),
        test if is_known(&test) => not(test),
        test => not(call(Function::Coalesce, vec![test, Expr::literal(false)])),
    }
}

/// Negates a test as the ternary logic of 3.7 does: true where the test is false, and no answer where the test has
/// none. The negation moves inwards to the comparisons: two values without an order (of two types, NaN) are neither
/// above, nor below, nor not above each other. Only orders have no answer; values that do not compare are not equal.
fn ternary_negation(test: Expr) -> Expr {
    match test {
        Expr::And(all) => Expr::Or(all.into_iter().map(ternary_negation).collect()),
        Expr::Or(all) => {
            all.into_iter().map(ternary_negation).reduce(Expr::and).unwrap_or(Expr::literal(true))
        }
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
            predicate: Box::new(ternary_negation(*predicate)),
        },
        test if is_known(&test) => not(test),
        test => not(call(Function::Coalesce, vec![test, Expr::literal(false)])),
    }
}

/// Returns the order that holds between two comparable values if this one does not.
fn opposite(comparison: Comparison) -> Option<Comparison> {
    match comparison {
        Comparison::Less => Some(Comparison::GreaterOrEqual),
        Comparison::LessOrEqual => Some(Comparison::Greater),
        Comparison::Greater => Some(Comparison::LessOrEqual),
        Comparison::GreaterOrEqual => Some(Comparison::Less),
        Comparison::Equal | Comparison::NotEqual => None,
    }
}

/// Whether a test orders values, so that it has no answer for some.
pub(super) fn may_lack_answer(test: &Expr) -> bool {
    matches!(test, Expr::Compare(comparison, ..) if opposite(*comparison).is_some())
        || test.children().into_iter().any(may_lack_answer)
}

/// Returns the test that a property is missing. Without the property, a comparison is false.
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
        Expr::Call(Function::HasProperty | Function::TypeOf(_), _) => true,
        Expr::Call(Function::Coalesce, args) => args.last().is_some_and(is_known),
        Expr::Not(inner) => is_known(inner),
        Expr::And(all) | Expr::Or(all) => all.iter().all(is_known),
        _ => false,
    }
}

/// Collects the label names of a `where()` predicate, in order.
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

//! Label tests of expressions and patterns.

use super::Lowering;
use super::expression::not;
use super::types::Types;
use crate::ast::{Label, LabelTest};
use crate::fault::Result;
use tidegraph_plan::{Comparison, Expr, Function, Quantifier};
use tidegraph_types::{Str, Value};

impl<'a> Lowering<'a> {
    /// Lowers a label test of an element that costs nothing to compute twice.
    pub(super) fn label_test(&mut self, element: &Expr, types: Types, test: &'a LabelTest) -> Result<Expr> {
        self.limits.charge(size_of::<Expr>())?;
        let element = || Box::new(element.clone());
        Ok(match test {
            LabelTest::Has(Label::Name(name)) => Expr::HasLabels(element(), vec![name.clone()]),
            LabelTest::Has(Label::Computed(value, any)) => {
                let value = self.value(value)?;
                let variable = self.slot();
                let held = if types.within(Types::EDGE) {
                    Expr::compare(Comparison::Equal, call(Function::Type, *element()), Expr::Slot(variable))
                } else {
                    let labels = call(Function::Labels, *element());
                    Expr::In(Box::new(Expr::Slot(variable)), Box::new(labels))
                };
                Expr::Quantified {
                    quantifier: if *any { Quantifier::Any } else { Quantifier::All },
                    variable,
                    list: Box::new(call(Function::Unfold, value)),
                    predicate: Box::new(held),
                }
            }
            // The labels joined; empty if there are none.
            LabelTest::Any => {
                let none = Expr::Literal(Value::String(Str::default()));
                Expr::compare(Comparison::NotEqual, call(Function::Label, *element()), none)
            }
            LabelTest::Not(part) => not(self.label_test(&element(), types, part)?),
            LabelTest::And(parts) => match names_of(test) {
                Some(names) if types.within(Types::NODE) => Expr::HasLabels(element(), names),
                _ => Expr::And(self.label_tests(&element(), types, parts)?),
            },
            LabelTest::Or(parts) => Expr::Or(self.label_tests(&element(), types, parts)?),
        })
    }

    fn label_tests(&mut self, element: &Expr, types: Types, parts: &'a [LabelTest]) -> Result<Vec<Expr>> {
        parts.iter().map(|part| self.label_test(element, types, part)).collect()
    }
}

/// Returns the names of a conjunction of labels whose names are known.
fn names_of(test: &LabelTest) -> Option<Vec<Str>> {
    test.all()?.into_iter().map(|label| label.name().cloned()).collect()
}

impl Label {
    /// Returns the name, if the text gives it.
    pub(super) fn name(&self) -> Option<&Str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Computed(..) => None,
        }
    }
}

/// Splits the label test of a node into the labels that the node must have and other tests.
pub(super) fn split(test: &LabelTest) -> (Vec<&Str>, Vec<&LabelTest>) {
    let (mut names, mut others) = (vec![], vec![]);
    let parts = match test {
        LabelTest::And(parts) => &parts[..],
        one => std::slice::from_ref(one),
    };
    for part in parts {
        match part {
            LabelTest::Has(Label::Name(name)) => names.push(name),
            other => others.push(other),
        }
    }
    (names, others)
}

fn call(function: Function, argument: Expr) -> Expr {
    Expr::Call(function, vec![argument])
}

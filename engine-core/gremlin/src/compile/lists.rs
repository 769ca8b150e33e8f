//! Steps over the items of a list: tests of all of them, steps that take another list, and `fold` with an operator.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::compile::filter::Subject;
use crate::compile::predicate::Operands;
use crate::compile::reduce::item;
use crate::compile::sack::combined;
use crate::fault::Fault;
use tidegraph_plan::{
    AggregateKind, Expr, Function, GremlinType, ListFunction, Op, Operator, Quantifier, Slot,
};

impl Compiler {
    /// `all(P)`, `any(P)`, `none(P)`: pass lists and sets. Values of other types do not pass.
    pub(super) fn quantified(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<()> {
        let cur = Expr::Slot(flow.cur(step)?);
        let [Arg { kind: ArgKind::Predicate(predicate), .. }] = step.args.as_slice() else {
            return Err(wrong_arguments(step));
        };
        let variable = self.fresh();
        let test = self.predicate_expr(predicate, &Expr::Slot(variable), &mut Operands::Value)?;
        let (quantifier, test) = match step.name {
            StepName::All => (Quantifier::All, test),
            StepName::Any => (Quantifier::Any, test),
            // Values that are not equal differ; values without an order are neither above nor not above each other.
            _ => (Quantifier::All, self.negated(test)),
        };
        let is_list = call(Function::TypeOf(GremlinType::Collection), vec![cur.clone()]);
        let (list, predicate) = (Box::new(cur), Box::new(test));
        let holds = Expr::Quantified { quantifier, variable, list, predicate };
        let otherwise = Box::new(Expr::literal(false));
        flow.filter(Expr::Case { branches: vec![(is_list, holds)], otherwise });
        Ok(())
    }

    /// `combine`, `difference`, `disjunct`, `intersect`, `merge`, `product`, each with a list or a traversal whose first
    /// result is one.
    pub(super) fn list_step(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let function = match step.name {
            StepName::Combine => ListFunction::Combine,
            StepName::Difference => ListFunction::Difference,
            StepName::Disjunct => ListFunction::Disjunct,
            StepName::Intersect => ListFunction::Intersect,
            StepName::Merge => ListFunction::Merge,
            _ => ListFunction::Product,
        };
        let object = Subject::current(flow, step)?;
        let [arg] = step.args.as_slice() else { return Err(wrong_arguments(step)) };
        let other = match &arg.kind {
            ArgKind::Traversal(steps) => self.child_value(flow, steps, object.clone())?.expr,
            ArgKind::List(_) | ArgKind::Set(_) | ArgKind::Variable(_) => self.expr(arg)?,
            ArgKind::Map(_) if function == ListFunction::Merge => self.expr(arg)?,
            _ => return Err(wrong_arguments(step)),
        };
        let out = self.or_fresh(dest);
        let kind = match function {
            // Of two maps it is a map.
            ListFunction::Merge => ObjectKind::Unknown,
            _ => ObjectKind::List,
        };
        flow.bind(out, call(Function::Lists(function), vec![object.expr, other]));
        flow.set_current(out, kind);
        Ok(())
    }

    /// `conjoin(delimiter)`: the texts of the items that are not null.
    pub(super) fn conjoin(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let cur = Expr::Slot(flow.cur(step)?);
        let delimiter = match step.args.as_slice() {
            [arg @ Arg { kind: ArgKind::Text(_) | ArgKind::Variable(_), .. }] => self.expr(arg)?,
            _ => return Err(wrong_arguments(step)),
        };
        let variable = self.fresh();
        let texts = Expr::Comprehension {
            variable,
            list: Box::new(call(Function::Lists(ListFunction::Items), vec![cur])),
            filter: Some(Box::new(not(is_null(Expr::Slot(variable))))),
            map: Some(Box::new(call(Function::AsText, vec![Expr::Slot(variable)]))),
        };
        let out = self.or_fresh(dest);
        flow.bind(out, call(Function::Join, vec![texts, delimiter]));
        flow.set_current(out, ObjectKind::Scalar);
        Ok(())
    }

    /// `index()`, also with `with(WithOptions.indexer, …)`
    pub(super) fn index(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        if !step.args.is_empty() {
            return Err(wrong_arguments(step));
        }
        let cur = Expr::Slot(flow.cur(step)?);
        let (mut function, mut kind) = (ListFunction::Index, ObjectKind::List);
        for with in cursor.take_all(StepName::With) {
            (function, kind) = match with.args.as_slice() {
                [option, how] if option.constant() == Some(Constant::Indexer) => match how.constant() {
                    Some(Constant::List) => (ListFunction::Index, ObjectKind::List),
                    Some(Constant::Map) => (ListFunction::IndexMap, ObjectKind::Map),
                    _ => return Err(wrong_arguments(with)),
                },
                _ => return Err(Fault::unsupported(with.at, "with() of these options")),
            };
        }
        let out = self.or_fresh(dest);
        flow.bind(out, call(Function::Lists(function), vec![cur]));
        flow.set_current(out, kind);
        Ok(())
    }
    /// `fold(seed, operator)`: joins all traversers, from the seed on.
    pub(super) fn fold_with(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let [seed, operator] = step.args.as_slice() else { return Err(wrong_arguments(step)) };
        let Some(operator) = operator.constant().and_then(operator_of) else {
            return Err(wrong_arguments(step));
        };
        let start = self.expr(seed)?;
        let cur = flow.cur(step)?;
        let all = self.fresh();
        let items = vec![item(all, AggregateKind::CollectAll, vec![Expr::Slot(cur)])];
        flow.wrap(|input| Op::Aggregate { input, keys: vec![], items });
        let joined = combined(self, operator, start, Expr::Slot(all));
        let out = self.or_fresh(dest);
        flow.bind(out, joined);
        flow.reduced(out, ObjectKind::Unknown);
        Ok(())
    }
}

/// Returns the operator that a constant stands for.
pub(super) fn operator_of(constant: Constant) -> Option<Operator> {
    Some(match constant {
        Constant::AddAll => Operator::AddAll,
        Constant::And => Operator::And,
        Constant::Assign => Operator::Assign,
        Constant::Div => Operator::Div,
        Constant::Max => Operator::Max,
        Constant::Min => Operator::Min,
        Constant::Minus => Operator::Minus,
        Constant::Mult => Operator::Mult,
        Constant::Or => Operator::Or,
        Constant::Sum => Operator::Sum,
        Constant::SumLong => Operator::SumLong,
        _ => return None,
    })
}

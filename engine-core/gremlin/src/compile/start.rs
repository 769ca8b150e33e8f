//! `V`, `E` and `inject`. The `has` steps directly after `V()` or `E()` choose between a scan and a look-up. Tests that
//! a scan makes exactly become part of it.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, literal, wrong_arguments};
use crate::ast::{Arg, ArgKind, Predicate, PredicateName, Step, StepName};
use crate::compile::has::{Has, Operand, has_tests};
use tidegraph_plan::{Expr, Op, ScanFilter, ScanTest, Slot};
use tidegraph_types::{Str, Value};

impl Compiler {
    /// `V(ids…)`, `E(ids…)`
    pub(super) fn elements(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let vertices = step.name == StepName::V;
        let kind = if vertices { ObjectKind::Vertex } else { ObjectKind::Edge };
        let mut tests = vec![];
        let mut next = cursor.next;
        while let Some(step) = cursor.steps.get(next).filter(|s| s.name.properties().has) {
            tests.extend(has_tests(step)?);
            next += 1;
        }
        cursor.next = next;
        let mut single = flow.scope.single;
        let ids = if !step.args.is_empty() {
            single &=
                matches!(step.args.as_slice(), [Arg { kind: ArgKind::Text(_) | ArgKind::Value(_), .. }]);
            Some(self.ids(&step.args)?)
        } else if let Some(index) = tests.iter().position(names_ids) {
            let Has::Id(operand) = tests.remove(index) else { return Err(wrong_arguments(step)) };
            let args = match operand {
                Operand::Values(args) => args,
                Operand::Test(Predicate::Test(_, args)) => args.as_slice(),
                Operand::Test(_) => return Err(wrong_arguments(step)),
            };
            single &= matches!(args, [Arg { kind: ArgKind::Text(_) | ArgKind::Value(_), .. }]);
            Some(self.ids(args)?)
        } else {
            single = false;
            None
        };
        let out = self.or_fresh(dest);
        let mut left = vec![];
        match (ids, vertices) {
            (Some(ids), true) => {
                left = tests;
                flow.wrap(|input| Op::LookupVertices { input, ids, out });
            }
            (Some(ids), false) => {
                left = tests;
                flow.wrap(|input| Op::LookupEdges { input, ids, out });
            }
            (None, true) => {
                let mut filter = ScanFilter::default();
                for test in tests {
                    if !self.scan_test(&test, &mut filter)? {
                        left.push(test);
                    }
                }
                flow.wrap(|input| Op::ScanVertices { input, out, filter, columns: vec![] });
            }
            (None, false) => {
                let mut labels = vec![];
                for test in tests {
                    match label_group(&test) {
                        Some(group) if labels.is_empty() && !group.is_empty() => labels = group,
                        _ => left.push(test),
                    }
                }
                flow.wrap(|input| Op::ScanEdges { input, out, labels });
            }
        }
        for test in left {
            let predicate = self.has_expr(&test, &Expr::Slot(out), kind, flow)?;
            flow.filter(predicate);
        }
        flow.scope.single = single;
        flow.set_current(out, kind);
        Ok(())
    }

    /// Returns the ids of `V`, `E` or `hasId`: one value or a flat list.
    fn ids(&mut self, args: &[Arg<'_>]) -> Result<Expr> {
        let mut flat = vec![];
        for arg in args {
            match &arg.kind {
                ArgKind::List(items) | ArgKind::Set(items) => flat.extend(items),
                _ => flat.push(arg),
            }
        }
        if let ([arg], [Arg { kind: ArgKind::Variable(_) | ArgKind::Text(_) | ArgKind::Value(_), .. }]) =
            (flat.as_slice(), args)
        {
            return self.expr(arg);
        }
        let mut values = vec![];
        for arg in flat {
            let id = match &arg.kind {
                ArgKind::Vertex(id) | ArgKind::Edge(id) => id,
                _ => arg,
            };
            values.push(self.expr(id)?);
        }
        Ok(list(values))
    }

    /// Adds a test to a scan. Returns whether the scan tests exactly, so that no filter need follow.
    fn scan_test(&mut self, test: &Has<'_, '_>, filter: &mut ScanFilter) -> Result<bool> {
        if let Some(group) = label_group(test) {
            filter.labels.push(group);
            return Ok(true);
        }
        let (key, operand) = match test {
            Has::Exists(key) => {
                filter.predicates.push((key.clone(), ScanTest::Exists));
                return Ok(true);
            }
            Has::Property(key, operand) => (key, operand),
            _ => return Ok(false),
        };
        let (name, args): (PredicateName, &[Arg<'_>]) = match operand {
            Operand::Values(args) => (PredicateName::Eq, args),
            Operand::Test(Predicate::Test(name, args)) => (*name, args),
            Operand::Test(_) => return Ok(false),
        };
        let args: Vec<&Arg<'_>> = match (name, args) {
            (PredicateName::Within, [Arg { kind: ArgKind::List(items) | ArgKind::Set(items), .. }]) => {
                items.iter().collect()
            }
            (PredicateName::Within, [Arg { kind: ArgKind::Variable(_), .. }]) => return Ok(false),
            _ => args.iter().collect(),
        };
        // A scan compares with scalars. A variable may hold any value: the scan narrows, and a filter tests again.
        let scalar = |a: &&Arg<'_>| literal(a).is_some_and(|v| v.is_scalar());
        let variable = |a: &&Arg<'_>| matches!(a.kind, ArgKind::Variable(_));
        if !args.iter().all(|a| scalar(a) || variable(a)) {
            return Ok(false);
        }
        let exact = args.iter().all(scalar);
        let mut operands = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>>>()?;
        let range = |low, high| ScanTest::Range { low, high };
        let last = operands.pop();
        let test = match (name, operands.pop(), last) {
            (PredicateName::Within, before, last) => {
                operands.extend(before.into_iter().chain(last));
                ScanTest::Within(list(operands))
            }
            (PredicateName::Eq, None, Some(e)) => ScanTest::Equals(e),
            (PredicateName::Gt, None, Some(e)) => range(Some((e, false)), None),
            (PredicateName::Gte, None, Some(e)) => range(Some((e, true)), None),
            (PredicateName::Lt, None, Some(e)) => range(None, Some((e, false))),
            (PredicateName::Lte, None, Some(e)) => range(None, Some((e, true))),
            (PredicateName::Between, Some(low), Some(high)) => range(Some((low, true)), Some((high, false))),
            (PredicateName::Inside, Some(low), Some(high)) => range(Some((low, false)), Some((high, false))),
            (PredicateName::StartingWith, None, Some(e))
                if matches!(args[0].kind, ArgKind::Text(_) | ArgKind::Variable(_)) =>
            {
                ScanTest::StartsWith(e)
            }
            _ => return Ok(false),
        };
        filter.predicates.push((key.clone(), test));
        Ok(exact)
    }

    /// `inject(values…)`. In the middle of a traversal, the values come before the existing objects.
    pub(super) fn inject(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let values = step.args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>>>()?;
        let count = values.len();
        let list = list(values);
        let out = self.or_fresh(dest);
        let Some(cur) = flow.scope.cur else {
            flow.wrap(|input| Op::Unwind { input, list, out });
            flow.scope.single &= count <= 1;
            flow.set_current(out, ObjectKind::Unknown);
            return Ok(());
        };
        let mut injected = Op::Unwind { input: Box::new(Op::Argument), list, out };
        if let Some(path) = self.path {
            // Each injected value starts a path of its own; existing objects keep theirs.
            let begun = super::call(
                tidegraph_plan::Function::PathAppend,
                vec![Expr::Literal(Value::Unbound), Expr::Slot(out)],
            );
            injected = Op::Let { input: Box::new(injected), bindings: vec![(path, begun)] };
        }
        // As the first step of a child, it passes the traverser of the outer step first.
        let is_first = matches!(flow.op, Op::Argument) && !flow.scope.root;
        flow.bind(out, Expr::Slot(cur));
        let stream = std::mem::replace(&mut flow.op, Op::Argument);
        let branches = if is_first { vec![stream, injected] } else { vec![injected, stream] };
        flow.wrap(|input| Op::Union { input, branches });
        for (_, label) in &mut flow.scope.labels {
            label.certain = false;
        }
        flow.scope.single = false;
        flow.set_current(out, ObjectKind::Unknown);
        flow.moved = false;
        Ok(())
    }
}

/// Makes a list, which is a literal if all its items are.
pub(super) fn list(items: Vec<Expr>) -> Expr {
    if items.iter().all(|i| matches!(i, Expr::Literal(_))) {
        let values = items
            .into_iter()
            .filter_map(|i| match i {
                Expr::Literal(value) => Some(value),
                _ => None,
            })
            .collect();
        Expr::Literal(Value::list(values))
    } else {
        Expr::List(items)
    }
}

/// Whether a test lists the ids that pass.
fn names_ids(test: &Has<'_, '_>) -> bool {
    match test {
        Has::Id(Operand::Values(_)) => true,
        Has::Id(Operand::Test(Predicate::Test(name, _))) => {
            matches!(*name, PredicateName::Eq | PredicateName::Within)
        }
        _ => false,
    }
}

/// Returns the labels of which a test requires one. `None`: the test does not list them.
pub(super) fn label_group(test: &Has<'_, '_>) -> Option<Vec<Str>> {
    let Has::Label(operand) = test else { return None };
    let args = match operand {
        Operand::Values(args) => *args,
        Operand::Test(Predicate::Test(PredicateName::Eq | PredicateName::Within, args)) => args.as_slice(),
        Operand::Test(_) => return None,
    };
    let args = match args {
        [Arg { kind: ArgKind::List(items) | ArgKind::Set(items), .. }] => items.as_slice(),
        _ => args,
    };
    args.iter().filter(|a| a.kind != ArgKind::Value(Value::Null)).map(|a| a.text().cloned()).collect()
}

//! Steps with children that make new objects: `union`, `choose`, `coalesce`, `optional`, `local`, `flatMap`, `map`,
//! `sideEffect`.
//!
//! In TinkerPop the branches of `union` and `choose` are part of the stream: a `count()` in a branch counts the
//! traversers of all rows. A subplan works for each outer row, so that all rows are gathered into one before such a
//! branch.

use super::{Compiler, Cursor, Flow, Label, ObjectKind, Result, Scope, call, is_null, not, wrong_arguments};
use crate::Version;
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::compile::filter::Subject;
use crate::compile::predicate::Operands;
use crate::compile::reduce::{is_reducing, is_stateful};
use crate::compile::side_effect::waits;
use crate::fault::Fault;
use crate::names::{Children, End};
use tidegraph_plan::{
    AggregateItem, AggregateKind, ApplyKind, BindKind, Branch, Comparison, Expr, Function, Op, Slot,
};
use tidegraph_types::{Str, Value};

/// The slot of a list of all rows, and the slots that its items restore.
pub(super) struct Gathered {
    list: Slot,
    slots: Vec<Slot>,
}

/// Whether a traversal that is part of the stream has a stateful step.
pub(super) fn stateful(steps: &[Step<'_>], version: Version) -> bool {
    let mut of_branches = false;
    steps.iter().any(|step| {
        // The children of an option belong to the step before it.
        if step.name != StepName::Option {
            of_branches = step.name.properties().children == Children::Streamed;
        }
        let mut children = step.args.iter().filter_map(Arg::steps);
        is_stateful(step) || waits(step, version) || (of_branches && children.any(|s| stateful(s, version)))
    })
}

/// Whether at most one of the conditions holds: they compare one value with different literals.
fn are_exclusive(cases: &[(Expr, &[Step<'_>])]) -> bool {
    let mut seen: Vec<&Value> = vec![];
    cases.iter().all(|(condition, _)| match condition {
        Expr::Compare(Comparison::Equal, _, literal) => match &**literal {
            Expr::Literal(value) if !seen.iter().any(|earlier| may_be_equal(earlier, value)) => {
                seen.push(value);
                true
            }
            _ => false,
        },
        _ => false,
    })
}

/// Whether a value can equal both. Numbers of different types can be equal.
fn may_be_equal(a: &Value, b: &Value) -> bool {
    a == b || (a.as_f64().is_some() && a.as_f64() == b.as_f64())
}

fn child_steps<'a, 't>(step: &'a Step<'t>) -> Result<Vec<&'a [Step<'t>]>> {
    step.args.iter().map(|a| a.steps().ok_or_else(|| wrong_arguments(step))).collect()
}

impl Compiler {
    pub(super) fn union(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let branches = child_steps(step)?;
        let out = self.or_fresh(dest);
        let gathered = self.gather_for(flow, &branches);
        let (mut plans, mut ends) = (vec![], vec![]);
        for steps in branches {
            let mut child = self.branch(flow, gathered.as_ref());
            self.steps(&mut child, steps, Some(out))?;
            ends.push(child.scope);
            plans.push(child.op);
        }
        if plans.is_empty() {
            flow.drop_rows();
            flow.scope.cur = Some(out);
            return Ok(());
        }
        flow.wrap(|input| Op::Union { input, branches: plans });
        join_branches(flow, &ends, out);
        flow.scope.single = false;
        Ok(())
    }

    /// Starts a branch that is part of the stream.
    pub(super) fn branch(&mut self, flow: &Flow, gathered: Option<&Gathered>) -> Flow {
        let mut child = flow.child();
        child.scope.alias = false;
        child.scope.single = flow.scope.single;
        if let Some(gathered) = gathered {
            let item = self.fresh();
            child.wrap(|input| Op::Unwind { input, list: Expr::Slot(gathered.list), out: item });
            for (slot, index) in gathered.slots.iter().zip(0_i64..) {
                child.bind(*slot, Expr::Index(Box::new(Expr::Slot(item)), Box::new(Expr::literal(index))));
            }
            child.scope.single = false;
        }
        child
    }

    /// Gathers the rows into one, if there may be several and a branch is stateful.
    fn gather_for(&mut self, flow: &mut Flow, branches: &[&[Step<'_>]]) -> Option<Gathered> {
        if flow.scope.single || !branches.iter().any(|b| stateful(b, self.version)) {
            return None;
        }
        Some(self.gather(flow, &[]))
    }

    /// Returns the slots that later steps may read, and `more`.
    pub(super) fn live_slots(&self, flow: &Flow, more: &[Slot]) -> Vec<Slot> {
        let mut slots: Vec<Slot> = flow.scope.cur.into_iter().collect();
        slots.extend(flow.scope.labels.iter().map(|(_, l)| l.slot));
        slots.extend(flow.scope.loops.iter().map(|(_, slot)| *slot));
        slots.extend(self.path);
        slots.extend(self.sack);
        slots.extend(flow.scope.near.iter().flat_map(|n| [Some(n.from), n.far]).flatten());
        slots.extend(more);
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    pub(super) fn gather(&mut self, flow: &mut Flow, more: &[Slot]) -> Gathered {
        let slots = self.live_slots(flow, more);
        let list = self.fresh();
        let row = Expr::List(slots.iter().map(|s| Expr::Slot(*s)).collect());
        let item = AggregateItem {
            out: list,
            kind: AggregateKind::Collect,
            args: vec![row],
            distinct: false,
            empty_is_unbound: false,
            weighted: false,
        };
        flow.wrap(|input| Op::Aggregate { input, keys: vec![], items: vec![item] });
        // Without a traverser no branch runs, not even one that counts.
        let count = call(Function::Size, vec![Expr::Slot(list)]);
        flow.filter(Expr::compare(Comparison::Greater, count, Expr::literal(0_i64)));
        Gathered { list, slots }
    }

    pub(super) fn choose<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
        dest: Option<Slot>,
    ) -> Result<()> {
        flow.cur(step)?;
        let first = cursor.next;
        let options = cursor.take_all(StepName::Option);
        let older = self.version.choose_drops_unmatched();
        let pick = |option: &&Step<'_>, wanted: fn(&ArgKind<'_>) -> bool| {
            option.args.first().is_some_and(|key| wanted(&key.kind))
        };
        let is_traversal = |option: &&Step<'_>| pick(option, |key| matches!(key, ArgKind::Traversal(_)));
        if let Some(option) = options.iter().find(is_traversal).filter(|_| !older) {
            let message = "choose() takes no traversal as the pick of an option() in Gremlin 3.8";
            return Err(Fault::syntax(option.at, message.into()));
        }
        // These are not told apart by the value of the choice alone.
        let is_other = |option: &Step<'_>| {
            let any = |key: &ArgKind<'_>| matches!(key, ArgKind::Constant(Constant::Any));
            let none = |key: &ArgKind<'_>| matches!(key, ArgKind::Constant(Constant::Unproductive));
            is_traversal(&option) || pick(&option, any) || older && pick(&option, none)
        };
        if options.iter().any(is_other) {
            cursor.next = first;
            return self.options(flow, cursor, step, !older, dest);
        }
        let mut cases: Vec<(Expr, &[Step<'_>])> = vec![];
        let mut otherwise: Option<&[Step<'_>]> = None;
        // Whether all options that match run, and not only the first one.
        let mut runs_all = false;
        match step.args.as_slice() {
            [condition, then, rest @ ..] if rest.len() <= 1 && options.is_empty() => {
                let then = then.steps().ok_or_else(|| wrong_arguments(step))?;
                let condition = match &condition.kind {
                    ArgKind::Predicate(predicate) => {
                        let at = Subject::current(flow, step)?;
                        self.predicate_expr(predicate, &at.expr, &mut Operands::Value)?
                    }
                    ArgKind::Traversal(steps) => self.condition(flow, steps)?,
                    _ => return Err(wrong_arguments(step)),
                };
                cases.push((condition, then));
                otherwise = Some(match rest {
                    [other] => other.steps().ok_or_else(|| wrong_arguments(step))?,
                    _ => &[],
                });
            }
            [choice] if !options.is_empty() => {
                let at = Subject::current(flow, step)?;
                let value = match &choice.kind {
                    ArgKind::Traversal(steps) => self.child_value(flow, steps, at)?,
                    ArgKind::Constant(_) | ArgKind::Text(_) => {
                        let by = self.by(step, &step.args)?;
                        self.by_value(flow, &by, at.expr, at.kind)?
                    }
                    _ => return Err(wrong_arguments(step)),
                };
                let productive = value.productive;
                let value = self.slot_of(flow, value.expr);
                let mut unproductive: Option<&[Step<'_>]> = None;
                for option in options {
                    let [key, plan] = option.args.as_slice() else { return Err(wrong_arguments(option)) };
                    let Some(plan) = plan.steps() else { return Err(wrong_arguments(option)) };
                    let value = Expr::Slot(value);
                    let condition = match &key.kind {
                        // In 3.8 the first one counts.
                        ArgKind::Constant(Constant::None) => {
                            if self.version.choose_drops_unmatched() {
                                otherwise = Some(plan);
                            }
                            otherwise.get_or_insert(plan);
                            continue;
                        }
                        ArgKind::Constant(Constant::Unproductive)
                            if !self.version.choose_drops_unmatched() =>
                        {
                            unproductive.get_or_insert(plan);
                            continue;
                        }
                        ArgKind::Predicate(p) => self.predicate_expr(p, &value, &mut Operands::Value)?,
                        _ => Expr::compare(Comparison::Equal, value, self.expr(key)?),
                    };
                    cases.push((condition, plan));
                }
                if self.version.choose_drops_unmatched() {
                    runs_all = options.len() > 1;
                } else {
                    otherwise.get_or_insert(&[]);
                    if !productive {
                        cases.insert(0, (is_null(Expr::Slot(value)), unproductive.unwrap_or_default()));
                    }
                }
            }
            [_] => return Err(Fault::unsupported(step.at, "choose() without option()")),
            _ => return Err(wrong_arguments(step)),
        }
        let out = self.or_fresh(dest);
        if runs_all && !are_exclusive(&cases) {
            return self.choose_all(flow, cases, otherwise, out);
        }
        let all: Vec<&[Step<'_>]> = cases.iter().map(|(_, s)| *s).chain(otherwise).collect();
        if !flow.scope.single && all.iter().any(|s| stateful(s, self.version)) {
            return self.choose_gathered(flow, cases, otherwise, out);
        }
        let (mut branches, mut ends) = (vec![], vec![]);
        for (condition, steps) in cases {
            let mut child = self.branch(flow, None);
            self.steps(&mut child, steps, Some(out))?;
            ends.push(child.scope);
            branches.push(Branch { condition, plan: child.op });
        }
        let otherwise = match otherwise {
            Some(steps) => {
                let mut child = self.branch(flow, None);
                self.steps(&mut child, steps, Some(out))?;
                ends.push(child.scope);
                Some(Box::new(child.op))
            }
            None => None,
        };
        flow.wrap(|input| Op::Choose { input, branches, otherwise });
        join_branches(flow, &ends, out);
        Ok(())
    }

    /// `choose` whose options may match together: each one that matches runs.
    fn choose_all(
        &mut self,
        flow: &mut Flow,
        cases: Vec<(Expr, &[Step<'_>])>,
        otherwise: Option<&[Step<'_>]>,
        out: Slot,
    ) -> Result<()> {
        let (mut chosen, mut plans) = (vec![], vec![]);
        for (condition, steps) in cases {
            let slot = self.fresh();
            flow.bind(slot, call(Function::Coalesce, vec![condition, Expr::literal(false)]));
            chosen.push(slot);
            plans.push((Expr::Slot(slot), steps));
        }
        if let Some(steps) = otherwise {
            plans.push((not(Expr::Or(chosen.iter().copied().map(Expr::Slot).collect())), steps));
        }
        let is_gathered = !flow.scope.single && plans.iter().any(|(_, steps)| stateful(steps, self.version));
        let gathered = is_gathered.then(|| self.gather(flow, &chosen));
        self.run_each(flow, plans, gathered.as_ref(), out)
    }

    /// Runs the steps of each branch for the rows that meet its condition. `gathered`: all rows go through a branch together.
    /// A branch without rows does not run, not even to count them.
    pub(super) fn run_each<'a, 't: 'a>(
        &mut self,
        flow: &mut Flow,
        plans: impl IntoIterator<Item = (Expr, &'a [Step<'t>])>,
        gathered: Option<&Gathered>,
        out: Slot,
    ) -> Result<()> {
        let (mut branches, mut ends) = (vec![], vec![]);
        for (condition, steps) in plans {
            let mut child = self.branch(flow, gathered);
            child.filter(condition);
            if stateful(steps, self.version) {
                let chosen = self.gather(&mut child, &[]);
                let mut inner = self.branch(&child, Some(&chosen));
                self.steps(&mut inner, steps, Some(out))?;
                ends.push(inner.scope);
                child.wrap(|input| Op::Union { input, branches: vec![inner.op] });
            } else {
                self.steps(&mut child, steps, Some(out))?;
                ends.push(child.scope);
            }
            branches.push(child.op);
        }
        flow.wrap(|input| Op::Union { input, branches });
        join_branches(flow, &ends, out);
        flow.scope.single = false;
        Ok(())
    }

    /// `choose` with stateful branches: chooses for each row, and then runs each branch over all of its rows.
    fn choose_gathered(
        &mut self,
        flow: &mut Flow,
        cases: Vec<(Expr, &[Step<'_>])>,
        otherwise: Option<&[Step<'_>]>,
        out: Slot,
    ) -> Result<()> {
        let choice = self.fresh();
        let (conditions, mut plans): (Vec<Expr>, Vec<&[Step<'_>]>) = cases.into_iter().unzip();
        let last = i64::try_from(plans.len()).unwrap_or(0);
        let branches = conditions.into_iter().zip(0_i64..).map(|(c, i)| (c, Expr::literal(i))).collect();
        flow.bind(choice, Expr::Case { branches, otherwise: Box::new(Expr::literal(last)) });
        plans.extend(otherwise);
        let gathered = self.gather(flow, &[choice]);
        let is_chosen = |index| Expr::compare(Comparison::Equal, Expr::Slot(choice), Expr::literal(index));
        let plans = (0_i64..).map(is_chosen).zip(plans);
        self.run_each(flow, plans, Some(&gathered), out)
    }

    pub(super) fn coalesce(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        flow.cur(step)?;
        let out = self.or_fresh(dest);
        let children = child_steps(step)?;
        let saved = self.save(flow, &children);
        let (mut branches, mut ends) = (vec![], vec![]);
        for steps in children {
            let mut child = flow.child();
            child.scope.alias = false;
            self.steps(&mut child, steps, Some(out))?;
            if reduces(steps) {
                self.keep_outer(flow, &mut child, out);
            }
            ends.push(child.scope);
            branches.push(child.op);
        }
        if branches.is_empty() {
            flow.drop_rows();
            return Ok(());
        }
        flow.wrap(|input| Op::Coalesce { input, branches });
        join_branches(flow, &ends, out);
        restore(flow, saved);
        flow.moved = true;
        Ok(())
    }

    pub(super) fn optional(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let cur = flow.cur(step)?;
        let [steps] = child_steps(step)?[..] else { return Err(wrong_arguments(step)) };
        let out = self.or_fresh(dest);
        let mut child = flow.child();
        child.scope.alias = false;
        self.steps(&mut child, steps, Some(out))?;
        let mut same = flow.child();
        same.bind(out, Expr::Slot(cur));
        same.scope.cur = Some(out);
        let ends = [child.scope, same.scope];
        flow.wrap(|input| Op::Coalesce { input, branches: vec![child.op, same.op] });
        join_branches(flow, &ends, out);
        Ok(())
    }

    /// `local`, `flatMap`, `map`
    pub(super) fn nested(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let cur = flow.cur(step)?;
        let [steps] = child_steps(step)?[..] else { return Err(wrong_arguments(step)) };
        if step.name == StepName::Map {
            let at = Subject::current(flow, step)?;
            let value = self.child_value(flow, steps, at)?;
            // The slot of a subplan without a result is unbound. A null is a result.
            let bound = matches!(value.expr, Expr::Slot(_));
            let out = match (value.expr, dest) {
                (Expr::Slot(slot), None) => slot,
                (expr, _) => {
                    let out = self.or_fresh(dest);
                    flow.bind(out, expr);
                    out
                }
            };
            if !value.productive {
                let null = || not(super::is_null(Expr::Slot(out)));
                flow.filter(if bound { Expr::IsBound(out) } else { null() });
            }
            flow.set_current(out, ObjectKind::Unknown);
            return Ok(());
        }
        let forgets = step.name == StepName::FlatMap;
        let saved = forgets.then(|| self.save(flow, &[steps]));
        if stateful(steps, self.version) {
            let out = self.or_fresh(dest);
            let mut child = flow.child();
            child.scope.alias = false;
            self.steps(&mut child, steps, Some(out))?;
            if forgets && reduces(steps) {
                self.keep_outer(flow, &mut child, out);
                let kind = child.scope.kind;
                flow.wrap(|input| Op::Apply { input, plan: Box::new(child.op), kind: ApplyKind::Cross });
                flow.scope.single &= child.scope.single;
                flow.set_current(out, kind);
            } else if child.scope.single && (self.path.is_none() || reduces(steps)) && !gives_labels(steps) {
                let plan = Box::new(child.op);
                let kind = child.scope.kind;
                let near = child.scope.near.filter(|near| near.from == cur);
                flow.wrap(|input| Op::Bind { input, plan, out, kind: BindKind::First(out) });
                flow.filter(Expr::IsBound(out));
                flow.set_current(out, kind);
                flow.scope.near = near.map(|near| super::EdgeOrigin { far: None, ..near });
                if !forgets && reduces(steps) {
                    flow.scope.labels.clear();
                    flow.scope.path_ended = true;
                }
            } else {
                let plan = Box::new(child.op);
                flow.wrap(|input| Op::Apply { input, plan, kind: ApplyKind::Cross });
                join_branches(flow, &[child.scope], out);
            }
        } else {
            let alias = std::mem::replace(&mut flow.scope.alias, false);
            let root = std::mem::replace(&mut flow.scope.root, false);
            self.steps(flow, steps, dest)?;
            flow.scope.alias = alias;
            flow.scope.root = root;
        }
        if let Some(saved) = saved {
            restore(flow, saved);
            flow.moved = flow.scope.cur != Some(cur) || !steps.is_empty();
        }
        Ok(())
    }

    /// Saves the path and the labels before children whose own path and labels end with them. Slots that the children
    /// may overwrite are copied.
    fn save(&mut self, flow: &mut Flow, children: &[&[Step<'_>]]) -> Saved {
        let mut given = vec![];
        children.iter().for_each(|steps| given_labels(steps, &mut given));
        let labels = flow.scope.labels.clone();
        let overwritten =
            labels.iter().filter(|(name, _)| given.contains(&name)).map(|(_, label)| label.slot);
        let mut slots: Vec<(Slot, Slot)> =
            self.path.into_iter().chain(overwritten).map(|slot| (slot, self.fresh())).collect();
        slots.dedup_by_key(|(slot, _)| *slot);
        for (slot, copy) in &slots {
            flow.bind(*copy, Expr::Slot(*slot));
        }
        Saved { slots, labels }
    }

    /// Moves a reducing child into a subplan that adds its result to the outer row, because a reduction drops the outer
    /// row.
    fn keep_outer(&mut self, flow: &Flow, child: &mut Flow, out: Slot) {
        let mut kept = flow.child();
        kept.scope.kind = child.scope.kind;
        kept.scope.cur = Some(out);
        kept.scope.single = child.scope.single;
        let plan = Box::new(std::mem::replace(&mut child.op, Op::Argument));
        if child.scope.single {
            kept.wrap(|input| Op::Bind { input, plan, out, kind: BindKind::First(out) });
            kept.filter(Expr::IsBound(out));
        } else {
            let list = self.fresh();
            kept.wrap(|input| Op::Bind { input, plan, out: list, kind: BindKind::Collect(out) });
            kept.wrap(|input| Op::Unwind { input, list: Expr::Slot(list), out });
        }
        *child = kept;
    }

    pub(super) fn side_effect(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<()> {
        flow.cur(step)?;
        let [steps] = child_steps(step)?[..] else { return Err(wrong_arguments(step)) };
        let mut child = flow.child();
        self.steps(&mut child, steps, None)?;
        // Only a write, a failure or a side effect has an effect.
        if child.op.writes() || self.fails || child.op.collects() {
            let plan = Box::new(child.op);
            flow.wrap(|input| Op::Apply { input, plan, kind: ApplyKind::Discard });
        }
        Ok(())
    }
}

/// The path and the labels before children whose own ones end with them.
struct Saved {
    /// Slots with their copies.
    slots: Vec<(Slot, Slot)>,
    labels: Vec<(Str, Label)>,
}

fn restore(flow: &mut Flow, saved: Saved) {
    for (slot, copy) in saved.slots {
        flow.bind(slot, Expr::Slot(copy));
    }
    flow.scope.labels = saved.labels;
}

/// Collects the labels that steps give, at any depth.
fn given_labels<'a>(steps: &'a [Step<'_>], names: &mut Vec<&'a Str>) {
    for step in steps {
        if step.name == StepName::As {
            names.extend(step.args.iter().filter_map(Arg::text));
        }
        step.args.iter().filter_map(Arg::steps).for_each(|steps| given_labels(steps, names));
    }
}

fn gives_labels(steps: &[Step<'_>]) -> bool {
    let mut names = vec![];
    given_labels(steps, &mut names);
    !names.is_empty()
}

/// Whether a step reduces all rows to one, which drops their slots.
fn reduces(steps: &[Step<'_>]) -> bool {
    steps.iter().any(|step| {
        is_reducing(step)
            || (step.name.properties().children != Children::Isolated
                && step.args.iter().filter_map(Arg::steps).any(reduces))
    })
}

/// Sets the scope after branches, which ended in these scopes with their objects in `out`.
pub(super) fn join_branches(flow: &mut Flow, ends: &[Scope], out: Slot) {
    let kind = ends.iter().map(|s| s.kind).reduce(ObjectKind::join).unwrap_or(ObjectKind::Unknown);
    let near = ends.first().and_then(|s| s.near).filter(|near| {
        ends.iter().all(|s| s.near.is_some_and(|n| n.from == near.from)) && kind == ObjectKind::Edge
    });
    let mut labels: Vec<(Str, Label)> = vec![];
    for (name, label) in ends.iter().flat_map(|s| &s.labels) {
        if labels.iter().any(|(n, _)| n == name) {
            continue;
        }
        let mut label = *label;
        for end in ends {
            match end.labels.iter().find(|(n, _)| n == name) {
                Some((_, other)) => {
                    label.certain &= other.certain && other.slot == label.slot;
                    label.kind = label.kind.join(other.kind);
                }
                None => label.certain = false,
            }
        }
        labels.push((name.clone(), label));
    }
    flow.set_current(out, kind);
    flow.moved = false;
    flow.scope.labels = labels;
    flow.scope.near = near.map(|n| super::EdgeOrigin { from: n.from, far: None, across: End::Other });
    flow.scope.single &= ends.iter().all(|s| s.single);
}

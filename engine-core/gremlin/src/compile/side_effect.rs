//! Side effects: `aggregate`, `store`, `cap`, `withSideEffect`, and `group` and `groupCount` with a key.
//!
//! A side effect must exist even if no traverser is left, and every later traverser must see all of it. So the plan is
//! *cut* at a step that collects: the operators so far become a subplan of a single row, which binds their rows as a
//! list. The side effect is computed from that list, and then the rows are unwound again. `cap` keeps the single row
//! and drops the list.
//!
//! **Invariant.** A reader never sees less than in TinkerPop. Only the request's own traversal collects: `aggregate`
//! inside another traversal is refused, and so is a reader after a reduction that dropped the slot.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Predicate, SourceCall, Step, StepName};
use crate::compile::by::By;
use crate::compile::reduce::is_reducing;
use crate::compile::sack;
use crate::compile::step::is_local;
use crate::fault::Fault;
use tidegraph_plan::{ApplyKind, Arithmetic, BindKind, Comparison, Expr, Function, Op, Operator, Slot};
use tidegraph_types::Str;

/// Largest number of cuts of a plan. Each cut makes the plan several operators deeper.
const MAX_CUTS: u32 = 64;

/// A side effect in the scope of a flow.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SideEffect {
    /// Value of the side effect; `None` after a reducing step has dropped the slot.
    value: Option<Expr>,
    kind: ObjectKind,
    /// Whether the request gives the value (`withSideEffect`), and no step has added to it.
    given: bool,
    /// How values are added to one that the request gives; `None` if it gives none.
    operator: Option<Operator>,
}

impl Flow {
    /// Marks collected side effects as lost, because a reducing step drops all slots.
    pub(super) fn lose_side_effects(&mut self) {
        for (_, side) in self.scope.side_effects.iter_mut().filter(|(_, side)| !side.given) {
            side.value = None;
        }
    }

    /// Marks the side effects as lost that were lost in one of these branches.
    pub(super) fn lose_side_effects_of<'a>(&mut self, ends: impl Iterator<Item = &'a [(Str, SideEffect)]>) {
        for end in ends {
            for (name, _) in end.iter().filter(|(_, side)| side.value.is_none()) {
                for (_, side) in self.scope.side_effects.iter_mut().filter(|(n, _)| n == name) {
                    side.value = None;
                }
            }
        }
    }

    /// Returns the slots of collected side effects.
    pub(super) fn side_effect_slots(&self) -> impl Iterator<Item = Slot> {
        self.scope.side_effects.iter().filter_map(|(_, side)| match side.value {
            Some(Expr::Slot(slot)) => Some(slot),
            _ => None,
        })
    }

    /// Returns how values are added to a side effect that the request gives.
    fn operator(&self, name: &str) -> Option<Operator> {
        self.scope.side_effects.iter().find(|(n, _)| n == name).and_then(|(_, side)| side.operator)
    }

    /// Returns the value and kind of the side effect with this name, if there is one.
    pub(super) fn side(&self, name: &str, at: usize) -> Result<Option<(Expr, ObjectKind)>> {
        let Some((_, side)) = self.scope.side_effects.iter().find(|(n, _)| n == name) else {
            return Ok(None);
        };
        match &side.value {
            Some(value) => Ok(Some((value.clone(), side.kind))),
            None => Err(Fault::unsupported(at, format!("the side effect '{name}' after a reducing step"))),
        }
    }
}

/// Cuts a plan at the `Unwind` that writes a slot. Returns the operators before it, and leaves the rest.
fn cut(op: &mut Op, item: Slot) -> Option<Op> {
    if let Op::Unwind { input, out, .. } = op
        && *out == item
    {
        return Some(std::mem::replace(&mut **input, Op::Argument));
    }
    op.children_mut().into_iter().next().and_then(|input| cut(input, item))
}

/// Whether a string occurs anywhere in these steps.
fn mentions(steps: &[Step<'_>], name: &str) -> bool {
    fn in_predicate(predicate: &Predicate<'_>, name: &str) -> bool {
        match predicate {
            Predicate::Test(_, args) => args.iter().any(|a| in_arg(a, name)),
            Predicate::And(a, b) | Predicate::Or(a, b) => in_predicate(a, name) || in_predicate(b, name),
            Predicate::Not(a) => in_predicate(a, name),
        }
    }
    fn in_arg(arg: &Arg<'_>, name: &str) -> bool {
        match &arg.kind {
            ArgKind::Text(text) => text == name,
            ArgKind::List(items) | ArgKind::Set(items) => items.iter().any(|a| in_arg(a, name)),
            ArgKind::Map(entries) => entries.iter().any(|(k, v)| in_arg(k, name) || in_arg(v, name)),
            ArgKind::Predicate(predicate) => in_predicate(predicate, name),
            ArgKind::Traversal(steps) => mentions(steps, name),
            _ => false,
        }
    }
    // The strings of these steps name what they read.
    let in_text = |step: &Step<'_>| {
        matches!(step.name, StepName::Format | StepName::Math)
            && step.args.iter().filter_map(Arg::text).any(|text| text.contains(name))
    };
    steps.iter().any(|step| in_text(step) || step.args.iter().any(|arg| in_arg(arg, name)))
}

impl Compiler {
    /// `g.withSideEffect(key, value)`
    pub(super) fn with_side_effect(&mut self, flow: &mut Flow, call: &Step<'_, SourceCall>) -> Result<()> {
        match call.args.as_slice() {
            [Arg { kind: ArgKind::Text(name), .. }, value, more @ ..] if more.len() <= 1 => {
                let operator = match more {
                    [operator] => sack::operator(operator).ok_or_else(|| wrong_arguments(call))?,
                    _ => Operator::AddAll,
                };
                let value = self.expr(value)?;
                flow.scope.side_effects.retain(|(n, _)| n != name);
                let (kind, operator) = (ObjectKind::Unknown, Some(operator));
                let side = SideEffect { value: Some(value), kind, given: true, operator };
                flow.scope.side_effects.push((name.clone(), side));
                Ok(())
            }
            _ => Err(wrong_arguments(call)),
        }
    }

    /// Splits the plan so far at its last cut, into the operators before the cut and the operators after it.
    fn split(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<(Box<Op>, Box<Op>)> {
        self.cuts += 1;
        if self.cuts > MAX_CUTS {
            let message =
                format!("more than {MAX_CUTS} steps that collect side effects or reduce beside them");
            return Err(Fault::syntax(step.at, message));
        }
        let mut whole = std::mem::replace(&mut flow.op, Op::Argument);
        let base = self.last_cut.and_then(|item| cut(&mut whole, item)).unwrap_or(Op::Argument);
        Ok((Box::new(base), Box::new(whole)))
    }

    /// Returns the key of a step that collects.
    fn side_key(flow: &Flow, cursor: &Cursor<'_, '_>, step: &Step<'_>) -> Result<Str> {
        let (local, args) = match step.args.split_first() {
            Some((
                Arg { kind: ArgKind::Constant(scope @ (Constant::Global | Constant::Local)), .. },
                rest,
            )) if step.name == StepName::Aggregate => (*scope == Constant::Local, rest),
            _ => (step.name == StepName::Store, step.args.as_slice()),
        };
        let [Arg { kind: ArgKind::Text(key), .. }] = args else { return Err(wrong_arguments(step)) };
        if !flow.scope.root {
            return Err(Fault::unsupported(step.at, format!("{}() inside another traversal", step.name)));
        }
        // A side effect that is collected traverser by traverser is complete only at the end. It must not be read
        // before, and no step may stop early.
        let lazy = local || matches!(step.name, StepName::Group | StepName::GroupCount);
        let rest = &cursor.steps[cursor.next..];
        let until =
            rest.iter().position(|s| s.name == StepName::Cap && mentions(std::slice::from_ref(s), key));
        let before = &rest[..until.unwrap_or(rest.len())];
        if lazy && (mentions(before, key) || before.iter().any(|s| s.name.properties().stops_early)) {
            let what = format!("{}() that is read before cap()", step.name);
            return Err(Fault::unsupported(step.at, what));
        }
        Ok(key.clone())
    }

    /// Collects the rows so far into a list in a single row, lets `collect` compute from that list, and unwinds it
    /// again. Each item of the list is a list: the slots that are restored, and then `more`.
    fn collected(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        more: Vec<Expr>,
        collect: impl FnOnce(&mut Self, &mut Flow, Slot, &[Slot]) -> Result<()>,
    ) -> Result<()> {
        let slots = self.live_slots(flow, &[]);
        let row = self.fresh();
        let parts = slots.iter().map(|slot| Expr::Slot(*slot)).chain(more).collect();
        flow.bind(row, Expr::List(parts));
        let (input, plan) = self.split(flow, step)?;
        let rows = self.fresh();
        flow.op = Op::Bind { input, plan, out: rows, kind: BindKind::Collect(row) };
        collect(self, flow, rows, &slots)?;
        let item = self.fresh();
        flow.wrap(|input| Op::Unwind { input, list: Expr::Slot(rows), out: item });
        restore(flow, &slots, item);
        self.last_cut = Some(item);
        Ok(())
    }

    /// `aggregate`, `store`
    pub(super) fn aggregate(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
    ) -> Result<()> {
        let key = Self::side_key(flow, cursor, step)?;
        let cur = flow.cur(step)?;
        let bys = self.bys(cursor.take_all(StepName::By))?;
        let by = match bys.as_slice() {
            [] => &By::Identity,
            [by] => by,
            _ => return Err(Fault::syntax(step.at, format!("{}() takes one by()", step.name))),
        };
        let value = self.by_value(flow, by, Expr::Slot(cur), flow.scope.kind)?;
        let (value, present) = if value.productive {
            (value.expr, Expr::literal(true))
        } else {
            let slot = self.slot_of(flow, value.expr);
            (Expr::Slot(slot), not(is_null(Expr::Slot(slot))))
        };
        let before = flow.side(&key, step.at)?;
        let operator = flow.operator(&key);
        if operator == Some(Operator::Assign) && (step.name == StepName::Store || is_local(step)) {
            let what = format!("{}() into withSideEffect() with assign", step.name);
            return Err(Fault::unsupported(step.at, what));
        }
        let out = self.fresh();
        self.collected(flow, step, vec![value, present], |this, flow, rows, slots| {
            let variable = this.fresh();
            let part = |at: usize| {
                let at = Expr::literal(i64::try_from(at).unwrap_or(i64::MAX));
                Box::new(Expr::Index(Box::new(Expr::Slot(variable)), Box::new(at)))
            };
            let mut list = Expr::Comprehension {
                variable,
                list: Box::new(Expr::Slot(rows)),
                filter: Some(part(slots.len() + 1)),
                map: Some(part(slots.len())),
            };
            if let (Some((before, _)), Some(operator)) = (&before, operator) {
                list = match operator {
                    Operator::AddAll => call(Function::Operate(operator), vec![before.clone(), list]),
                    // All values at once take the place of the one before.
                    Operator::Assign => {
                        let all = this.slot_of(flow, list);
                        let size = call(Function::Size, vec![Expr::Slot(all)]);
                        let some = Expr::compare(Comparison::Greater, size, Expr::literal(0_i64));
                        let otherwise = Box::new(before.clone());
                        Expr::Case { branches: vec![(some, Expr::Slot(all))], otherwise }
                    }
                    _ => sack::combined(this, operator, before.clone(), list),
                };
            } else if let Some((before, _)) = before {
                list = Expr::Arithmetic(Arithmetic::Add, Box::new(before), Box::new(list));
            }
            flow.bind(out, list);
            Ok(())
        })?;
        let kind = if operator.is_none() { ObjectKind::List } else { ObjectKind::Unknown };
        Self::set_side_effect(flow, key, out, kind);
        Ok(())
    }

    /// `group(key)`, `groupCount(key)`
    pub(super) fn group_side<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
    ) -> Result<()> {
        let key = Self::side_key(flow, cursor, step)?;
        flow.cur(step)?;
        if flow.operator(&key).is_some() {
            return Err(Fault::unsupported(step.at, format!("{}() into withSideEffect()", step.name)));
        }
        if flow.side(&key, step.at)?.is_some() {
            return Err(Fault::unsupported(step.at, format!("{}() twice into one key", step.name)));
        }
        let out = self.fresh();
        let mut scope = flow.scope.clone();
        self.collected(flow, step, vec![], |this, flow, rows, slots| {
            let item = this.fresh();
            let mut child = flow.child();
            scope.root = false;
            scope.single = false;
            child.scope = scope;
            child.wrap(|input| Op::Unwind { input, list: Expr::Slot(rows), out: item });
            restore(&mut child, slots, item);
            let plain = Step { at: step.at, name: step.name, args: vec![] };
            this.group(&mut child, cursor, &plain, Some(out))?;
            let plan = Box::new(child.op);
            flow.wrap(|input| Op::Bind { input, plan, out, kind: BindKind::First(out) });
            Ok(())
        })?;
        Self::set_side_effect(flow, key, out, ObjectKind::Map);
        Ok(())
    }

    fn set_side_effect(flow: &mut Flow, key: Str, slot: Slot, kind: ObjectKind) {
        let operator = flow.operator(&key);
        flow.scope.side_effects.retain(|(name, _)| *name != key);
        let side = SideEffect { value: Some(Expr::Slot(slot)), kind, given: false, operator };
        flow.scope.side_effects.push((key, side));
    }

    /// `cap(key…)`
    pub(super) fn cap(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<()> {
        let names = self.texts(&step.args)?;
        if names.is_empty() || names.len() != step.args.len() {
            return Err(wrong_arguments(step));
        }
        if !flow.scope.root {
            return Err(Fault::unsupported(step.at, "cap() inside another traversal"));
        }
        flow.cur(step)?;
        let mut side_effects = vec![];
        for name in &names {
            let side = flow.side(name, step.at)?;
            side_effects.push(
                side.ok_or_else(|| {
                    Fault::syntax(step.at, format!("no step before cap() collects '{name}'"))
                })?,
            );
        }
        let (value, kind) = if side_effects.len() == 1 {
            side_effects.remove(0)
        } else {
            let entries = names.iter().zip(side_effects).flat_map(|(name, (value, _))| [text(name), value]);
            (call(Function::MakeMap, entries.collect()), ObjectKind::Map)
        };
        let (input, plan) = self.split(flow, step)?;
        // The traversers end here, but their writes and failures must happen.
        flow.op = if plan.writes() || self.fails {
            Op::Apply { input, plan, kind: ApplyKind::Discard }
        } else {
            *input
        };
        self.continue_with(flow, Expr::List(vec![value]), kind);
        flow.scope.labels.clear();
        flow.scope.single = true;
        flow.scope.path_ended = true;
        Ok(())
    }

    /// Continues with the items of a list in the single row.
    fn continue_with(&mut self, flow: &mut Flow, list: Expr, kind: ObjectKind) {
        let item = self.fresh();
        flow.wrap(|input| Op::Unwind { input, list, out: item });
        self.last_cut = Some(item);
        flow.set_current(item, kind);
    }

    /// Translates a reducing step of the request's own traversal, and keeps the side effects collected before it.
    pub(super) fn reduce_and_keep_side_effects<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
        index: usize,
    ) -> Result<()> {
        let side_effects = flow.scope.side_effects.clone();
        self.step(flow, cursor, step, index)?;
        let Some(cur) = flow.scope.cur else { return Ok(()) };
        let (input, plan) = self.split(flow, step)?;
        let list = self.fresh();
        flow.op = Op::Bind { input, plan, out: list, kind: BindKind::Collect(cur) };
        let kind = flow.scope.kind;
        self.continue_with(flow, Expr::Slot(list), kind);
        flow.scope.side_effects = side_effects;
        Ok(())
    }
}

/// Whether a step reduces rows that hold collected side effects.
pub(super) fn drops_side_effects(flow: &Flow, step: &Step<'_>) -> bool {
    flow.scope.root && is_reducing(step) && flow.side_effect_slots().next().is_some()
}

/// Binds slots to the items of a list.
fn restore(flow: &mut Flow, slots: &[Slot], item: Slot) {
    for (slot, index) in slots.iter().zip(0_i64..) {
        flow.bind(*slot, Expr::Index(Box::new(Expr::Slot(item)), Box::new(Expr::literal(index))));
    }
}

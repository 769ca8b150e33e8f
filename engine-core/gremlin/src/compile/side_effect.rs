//! Side effects: `aggregate`, `store`, `cap`, `withSideEffect`, and `group` and `groupCount` with a key (`tree` and `subgraph`
//! are in `shape`).
//!
//! A side effect to which steps add is a register of the request ([ADR 0031]). Each statement first looks for the keys that its
//! steps collect, at any depth, so that a step may read a side effect before another one has added to it. `Op::Collect` adds the
//! rows' values, `Expr::Register` reads them. A side effect that only `withSideEffect` gives stays an expression.
//!
//! **Order.** `aggregate`, and in 3.8 a step with a key, adds the values of all traversers before the first one goes on. The other
//! steps add traverser by traverser, and so does a step inside a child that runs for each traverser. If something but a final `cap` may notice this, the
//! side effect is *careful*: `Op::Each` precedes each step that names it, so that rows pass one by one, as in TinkerPop.
//!
//! **Invariant.** A reader sees what it sees in TinkerPop without merged traversers. `group` with a reducing `by` collects rows,
//! which are grouped each time they are read; a reader in the text before it is refused.
//!
//! [ADR 0031]: ../../../../docs/adr/0031-a-traverser-is-a-row.md

use super::{Compiler, Cursor, Flow, Label, ObjectKind, Result, call, is_null, text, wrong_arguments};
use crate::Version;
use crate::ast::{Arg, ArgKind, Constant, Predicate, SourceCall, Step, StepName};
use crate::compile::by::{By, ByValue};
use crate::compile::reduce::item;
use crate::compile::sack;
use crate::compile::step::is_local;
use crate::fault::Fault;
use crate::names::Children;
use std::collections::BTreeMap;
use tidegraph_plan::{AggregateKind, BindKind, Collected, Expr, Function, Op, Operator, Register, Slot};
use tidegraph_types::{Map, Str, Value};

/// Largest number of side effects in one statement. Each is looked for in each step.
const MAX_SIDE_EFFECTS: usize = 64;

/// A side effect of a statement.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SideEffect {
    /// What readers read: of a register, or the value that the request gives.
    value: Expr,
    register: Option<Register>,
    kind: ObjectKind,
    /// How values are added to one that the request gives, if it says so.
    operator: Option<Operator>,
    /// Whether the request gives the first value.
    given: bool,
    /// Whether rows must pass one by one where the side effect is collected or read.
    careful: bool,
    /// Whether something but a last `cap` may notice when values are added.
    noticed: bool,
    /// Whether the register holds rows, of which readers make groups.
    rows: bool,
    /// Whether several steps collect, and whether all of them do the same.
    shared: bool,
    alike: bool,
    /// Makes the groups of the collected rows.
    groups: Option<Groups>,
    /// The slot of the groups for the step that reads them.
    read: Option<Slot>,
}

/// What makes the groups of collected rows.
#[derive(Clone, PartialEq, Debug)]
struct Groups {
    plan: Op,
    /// The slot of its result.
    out: Slot,
    /// What a row holds of each traverser.
    row: Vec<Part>,
}

/// A part of a traverser.
#[derive(Clone, PartialEq, Debug)]
enum Part {
    Current,
    Label(Str),
    /// What has this slot wherever it is read.
    Slot(Slot),
}

impl Part {
    /// Returns the part of the traversers of a flow; `None` if they do not have it.
    fn of(&self, flow: &Flow) -> Option<Expr> {
        match self {
            Self::Current => flow.scope.cur.map(Expr::Slot),
            Self::Label(name) => flow.label(name).map(|label| Expr::Slot(label.slot)),
            Self::Slot(slot) => Some(Expr::Slot(*slot)),
        }
    }
}

/// What the steps of a statement do with one key.
#[derive(Clone, Copy, Debug)]
struct Facts<'a, 't> {
    /// The first step that collects, and its place.
    step: StepName,
    at: usize,
    /// Whether a step adds traverser by traverser.
    lazy: bool,
    /// Whether a step collects inside a child that runs for each traverser.
    nested: bool,
    /// Whether the register holds rows, of which `cap` makes groups.
    rows: bool,
    /// The `by` steps of the first step that collects.
    bys: &'a [Step<'t>],
    /// Whether several steps collect, and whether all of them do the same.
    shared: bool,
    alike: bool,
}

impl Facts<'_, '_> {
    /// Returns the first value of the register.
    fn start(&self) -> Expr {
        Expr::Literal(match self.step {
            StepName::Group | StepName::GroupCount if !self.rows => Value::map(Map::new()),
            _ => Value::list(vec![]),
        })
    }

    /// Returns the side effect in a register, whose first value the request may give.
    fn side_effect(&self, register: Register, given: Option<&SideEffect>, noticed: bool) -> SideEffect {
        let held = Expr::Register(register);
        let value = match self.step {
            StepName::Tree => call(Function::MakeTree, vec![held]),
            StepName::Subgraph => call(Function::MakeGraph, vec![held]),
            _ => held,
        };
        let kind = match self.step {
            _ if given.is_some() => ObjectKind::Unknown,
            StepName::Group | StepName::GroupCount => ObjectKind::Map,
            StepName::Tree | StepName::Subgraph => ObjectKind::Unknown,
            _ => ObjectKind::List,
        };
        SideEffect {
            value,
            register: Some(register),
            kind,
            operator: given.and_then(|given| given.operator),
            given: given.is_some(),
            careful: noticed && (self.lazy || self.nested),
            noticed,
            rows: self.rows,
            shared: self.shared,
            alike: self.alike,
            groups: None,
            read: None,
        }
    }

    /// Whether something but a last `cap` may notice when values are added.
    fn is_noticed(&self, steps: &[Step<'_>], key: &str) -> bool {
        let cap = steps
            .iter()
            .rposition(|step| step.name == StepName::Cap && mentions(std::slice::from_ref(step), key));
        let before_cap = &steps[..cap.unwrap_or(0)];
        self.nested || reads(steps, key, true) || before_cap.iter().any(stops_early)
    }
}

/// Returns the key to which a step adds.
fn collected_key<'a>(step: &'a Step<'_>) -> Option<&'a Str> {
    match (step.name, step.args.as_slice()) {
        (
            StepName::Aggregate,
            [
                Arg { kind: ArgKind::Constant(Constant::Global | Constant::Local), .. },
                Arg { kind: ArgKind::Text(key), .. },
            ],
        )
        | (
            StepName::Aggregate
            | StepName::Group
            | StepName::GroupCount
            | StepName::Store
            | StepName::Subgraph
            | StepName::Tree,
            [Arg { kind: ArgKind::Text(key), .. }],
        ) => Some(key),
        _ => None,
    }
}

/// Whether a step that collects adds traverser by traverser.
fn is_lazy(step: &Step<'_>, version: Version) -> bool {
    match step.name {
        StepName::Aggregate => is_local(step),
        StepName::Store => true,
        _ => version.keyed_steps_are_lazy(),
    }
}

/// Whether a step with a key adds the values of all traversers before the first one goes on.
pub(super) fn waits(step: &Step<'_>, version: Version) -> bool {
    collected_key(step).is_some() && !is_lazy(step, version)
}

/// Where steps run.
#[derive(Clone, Copy, Default)]
struct Place {
    /// For each traverser.
    nested: bool,
    /// In a `local()`, which passes traversers on one by one.
    local: bool,
}

/// Finds the keys that steps collect.
fn find_collected<'a, 't>(
    steps: &'a [Step<'t>],
    version: Version,
    place: Place,
    found: &mut BTreeMap<Str, Facts<'a, 't>>,
) {
    for (at, step) in steps.iter().enumerate() {
        if let Some(key) = collected_key(step) {
            let count = steps[at + 1..].iter().take_while(|step| step.name == StepName::By).count();
            let bys = &steps[at + 1..at + 1 + count];
            let (step_name, at) = (step.name, step.at);
            let (lazy, nested, rows, alike) = (false, false, false, true);
            let shared = found.contains_key(key);
            let none = Facts { step: step_name, at, lazy, nested, rows, bys, shared, alike };
            let facts = found.entry(key.clone()).or_insert(none);
            facts.shared = shared;
            facts.alike &= facts.step == step_name && same_steps(facts.bys, bys);
            facts.lazy |= place.local || is_lazy(step, version);
            facts.nested |= place.nested;
            facts.rows |= step.name == StepName::Group
                && bys.get(1).is_some_and(|by| by.args.iter().any(|arg| arg.steps().is_some()));
        }
        let streamed = step.name.properties().children == Children::Streamed;
        for (index, arg) in step.args.iter().enumerate() {
            // The first argument of `choose` and `branch` is computed for each traverser.
            let is_condition = matches!(step.name, StepName::Choose | StepName::Branch) && index == 0;
            if let Some(steps) = arg.steps() {
                let nested = place.nested || !streamed || is_condition;
                let local = place.local || step.name == StepName::Local;
                find_collected(steps, version, Place { nested, local }, found);
            }
        }
    }
}

/// Whether steps read a side effect, apart from a `cap` of the traversal itself.
fn reads(steps: &[Step<'_>], key: &str, is_root: bool) -> bool {
    steps.iter().any(|step| {
        if step.name == StepName::Cap && is_root {
            return false;
        }
        let is_collected = collected_key(step).is_some_and(|name| name == key);
        let others = step.args.iter().filter(|arg| !is_collected || arg.text().is_none());
        names_in_text(step, key) || others.into_iter().any(|arg| in_arg(arg, key, true))
    })
}

/// Whether a string occurs anywhere in these steps.
fn mentions(steps: &[Step<'_>], name: &str) -> bool {
    steps.iter().any(|step| names_in_text(step, name) || step.args.iter().any(|arg| in_arg(arg, name, false)))
}

/// Whether a step names what it reads inside its string.
fn names_in_text(step: &Step<'_>, name: &str) -> bool {
    matches!(step.name, StepName::Format | StepName::Math)
        && step.args.iter().filter_map(Arg::text).any(|text| text.contains(name))
}

/// Whether a string occurs in an argument. `read`: other than as the key to which a step adds.
fn in_arg(arg: &Arg<'_>, name: &str, read: bool) -> bool {
    match &arg.kind {
        ArgKind::Text(text) => text == name,
        ArgKind::List(items) | ArgKind::Set(items) => items.iter().any(|a| in_arg(a, name, read)),
        ArgKind::Map(entries) => entries.iter().any(|(k, v)| in_arg(k, name, read) || in_arg(v, name, read)),
        ArgKind::Predicate(predicate) => in_predicate(predicate, name, read),
        ArgKind::Traversal(steps) if read => reads(steps, name, false),
        ArgKind::Traversal(steps) => mentions(steps, name),
        _ => false,
    }
}

fn in_predicate(predicate: &Predicate<'_>, name: &str, read: bool) -> bool {
    match predicate {
        Predicate::Test(_, args) => args.iter().any(|a| in_arg(a, name, read)),
        Predicate::And(a, b) | Predicate::Or(a, b) => {
            in_predicate(a, name, read) || in_predicate(b, name, read)
        }
        Predicate::Not(a) => in_predicate(a, name, read),
    }
}

/// Whether steps are the same, wherever they stand in the text.
fn same_steps(a: &[Step<'_>], b: &[Step<'_>]) -> bool {
    let same = |(a, b): (&Step<'_>, &Step<'_>)| a.name == b.name && same_args(&a.args, &b.args);
    a.len() == b.len() && a.iter().zip(b).all(same)
}

fn same_args(a: &[Arg<'_>], b: &[Arg<'_>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_arg(a, b))
}

fn same_arg(a: &Arg<'_>, b: &Arg<'_>) -> bool {
    match (&a.kind, &b.kind) {
        (ArgKind::Traversal(a), ArgKind::Traversal(b)) => same_steps(a, b),
        (ArgKind::List(a), ArgKind::List(b)) | (ArgKind::Set(a), ArgKind::Set(b)) => same_args(a, b),
        (ArgKind::Map(a), ArgKind::Map(b)) => {
            let same = |((k, v), (l, w)): (&(Arg<'_>, Arg<'_>), &(Arg<'_>, Arg<'_>))| {
                same_arg(k, l) && same_arg(v, w)
            };
            a.len() == b.len() && a.iter().zip(b).all(same)
        }
        (ArgKind::Predicate(a), ArgKind::Predicate(b)) => same_predicates(a, b),
        (ArgKind::Vertex(a), ArgKind::Vertex(b)) | (ArgKind::Edge(a), ArgKind::Edge(b)) => same_arg(a, b),
        (a, b) => a == b,
    }
}

fn same_predicates(a: &Predicate<'_>, b: &Predicate<'_>) -> bool {
    match (a, b) {
        (Predicate::Test(a, x), Predicate::Test(b, y)) => a == b && same_args(x, y),
        (Predicate::And(a, x), Predicate::And(b, y)) | (Predicate::Or(a, x), Predicate::Or(b, y)) => {
            same_predicates(a, b) && same_predicates(x, y)
        }
        (Predicate::Not(a), Predicate::Not(b)) => same_predicates(a, b),
        _ => false,
    }
}

/// Whether a step may stop before it has seen every traverser.
fn stops_early(step: &Step<'_>) -> bool {
    (step.name.properties().stops_early && !is_local(step))
        || step.args.iter().filter_map(Arg::steps).any(|steps| steps.iter().any(stops_early))
}

/// Whether a step belongs to the step before it.
fn modulates(step: &Step<'_>) -> bool {
    matches!(
        step.name,
        StepName::By
            | StepName::Option
            | StepName::With
            | StepName::From
            | StepName::To
            | StepName::Until
            | StepName::Emit
            | StepName::Times
    )
}

impl Compiler {
    /// `g.withSideEffect(key, value)`
    pub(super) fn with_side_effect(&mut self, call: &Step<'_, SourceCall>) -> Result<()> {
        match call.args.as_slice() {
            [Arg { kind: ArgKind::Text(name), .. }, value, more @ ..] if more.len() <= 1 => {
                let operator = match more {
                    [operator] => Some(sack::operator(operator).ok_or_else(|| wrong_arguments(call))?),
                    _ => None,
                };
                let side = SideEffect {
                    value: self.expr(value)?,
                    register: None,
                    kind: ObjectKind::Unknown,
                    operator,
                    given: true,
                    careful: false,
                    noticed: false,
                    rows: false,
                    shared: false,
                    alike: true,
                    groups: None,
                    read: None,
                };
                self.side_effects.insert(name.clone(), side);
                Ok(())
            }
            _ => Err(wrong_arguments(call)),
        }
    }

    /// Gives each side effect to which steps add a register, and sets its first value.
    pub(super) fn declare_side_effects(&mut self, flow: &mut Flow, steps: &[Step<'_>]) -> Result<()> {
        self.injects = steps.first().is_some_and(|step| step.name == StepName::Inject);
        let mut found = BTreeMap::new();
        find_collected(steps, self.version, Place::default(), &mut found);
        if found.len() > MAX_SIDE_EFFECTS {
            let at = steps.first().map_or(0, |step| step.at);
            let message = format!("{} side effects; at most {MAX_SIDE_EFFECTS} are allowed", found.len());
            return Err(Fault::syntax(at, message));
        }
        for (key, facts) in found {
            let register = Register(self.registers);
            self.registers += 1;
            let given = self.side_effects.remove(&key);
            let side = facts.side_effect(register, given.as_ref(), facts.is_noticed(steps, &key));
            if given.is_some() && matches!(facts.step, StepName::Tree | StepName::Subgraph) {
                return Err(Fault::unsupported(facts.at, format!("{}() into withSideEffect()", facts.step)));
            }
            let what = Collected::Start(given.map_or_else(|| facts.start(), |given| given.value));
            flow.wrap(|input| Op::Collect { input, register, what, eager: false });
            self.side_effects.insert(key, side);
        }
        Ok(())
    }

    /// Lets rows pass one by one to the first of these steps if it needs that, and binds the groups that it reads. Returns
    /// their keys.
    pub(super) fn before_step(&mut self, flow: &mut Flow, steps: &[Step<'_>]) -> Vec<(Str, Option<Slot>)> {
        let Some((first, rest)) = steps.split_first() else { return vec![] };
        if self.side_effects.values().all(|side| !side.careful && side.groups.is_none()) {
            return vec![];
        }
        let is_loop = modulates(first);
        let own = rest.iter().take_while(|s| modulates(s) || (is_loop && s.name == StepName::Repeat)).count();
        let own = &steps[..=own];
        let named = |key: &str| mentions(own, key);
        if !matches!(flow.op, Op::Each { .. })
            && self.side_effects.iter().any(|(key, side)| side.careful && named(key))
        {
            // Equal values that `inject` begins with are one traverser in TinkerPop.
            let by = if self.injects { self.live_slots(flow, &[]) } else { vec![] };
            flow.wrap(|input| Op::Each { input, by });
        }
        let mut bound = vec![];
        for (key, side) in &self.side_effects {
            if let (Some(Groups { plan, out, .. }), true) =
                (&side.groups, first.name != StepName::Cap && named(key))
            {
                bound.push((key.clone(), side.read, plan.clone(), *out));
            }
        }
        let mut before = vec![];
        for (key, read, plan, result) in bound {
            let out = self.fresh();
            let kind = BindKind::First(result);
            flow.wrap(|input| Op::Bind { input, plan: Box::new(plan), out, kind });
            if let Some(side) = self.side_effects.get_mut(&key) {
                side.read = Some(out);
            }
            before.push((key, read));
        }
        before
    }

    /// Ends what [`Compiler::before_step`] began.
    pub(super) fn after_step(&mut self, groups: Vec<(Str, Option<Slot>)>) {
        for (key, read) in groups {
            if let Some(side) = self.side_effects.get_mut(&key) {
                side.read = read;
            }
        }
    }

    /// Whether the order of rows matters to a side effect of the statement.
    pub(super) fn is_careful(&self) -> bool {
        self.side_effects.values().any(|side| side.careful)
    }

    /// Returns the value and kind of the side effect with this name, if there is one.
    pub(super) fn side(&self, name: &str, at: usize) -> Result<Option<(Expr, ObjectKind)>> {
        let Some(side) = self.side_effects.get(name) else { return Ok(None) };
        match side.read {
            Some(read) => return Ok(Some((Expr::Slot(read), ObjectKind::Map))),
            None if side.rows => {
                let what = format!("reading the side effect '{name}' before the group() that makes it");
                return Err(Fault::unsupported(at, what));
            }
            None => {}
        }
        Ok(Some((side.value.clone(), side.kind)))
    }

    /// Returns the register to which a step adds, with its side effect.
    pub(super) fn collected(&self, step: &Step<'_>) -> Result<(Str, Register, SideEffect)> {
        let key = collected_key(step).ok_or_else(|| wrong_arguments(step))?;
        match self.side_effects.get(key) {
            Some(side @ SideEffect { register: Some(register), .. }) => {
                Ok((key.clone(), *register, side.clone()))
            }
            _ => Err(wrong_arguments(step)),
        }
    }

    /// Whether a step of the side effect adds the values of all traversers before the first one goes on. Where nothing
    /// notices it, traversers need not wait.
    pub(super) fn collects_eagerly(&self, step: &Step<'_>, side: &SideEffect) -> bool {
        match step.name {
            StepName::Aggregate => !is_local(step),
            _ => side.noticed && !is_lazy(step, self.version),
        }
    }

    /// Returns a value that is unbound where the `by()` has none.
    fn value_or_unbound(&mut self, flow: &mut Flow, value: ByValue) -> Expr {
        if value.productive {
            return value.expr;
        }
        let slot = self.slot_of(flow, value.expr);
        Expr::Case {
            branches: vec![(is_null(Expr::Slot(slot)), Expr::Literal(Value::Unbound))],
            otherwise: Box::new(Expr::Slot(slot)),
        }
    }

    /// `aggregate`, `store`
    pub(super) fn aggregate(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
    ) -> Result<()> {
        let (_, register, side) = self.collected(step)?;
        let cur = flow.cur(step)?;
        let by = match self.single_by(step, cursor.take_all(StepName::By))? {
            [] => By::Identity,
            [by, ..] => self.by(by, &by.args)?,
        };
        let value = self.by_value(flow, &by, Expr::Slot(cur), flow.scope.kind)?;
        let value = self.value_or_unbound(flow, value);
        let eager = self.collects_eagerly(step, &side);
        let what = match side.operator {
            None | Some(Operator::AddAll) => Collected::Item(value),
            Some(Operator::Assign) => Collected::Replace(value),
            Some(operator) => Collected::Joined(operator, value),
        };
        flow.wrap(|input| Op::Collect { input, register, what, eager });
        Ok(())
    }

    /// `group(key)`, `groupCount(key)`
    pub(super) fn group_side<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
    ) -> Result<()> {
        let (key, register, side) = self.collected(step)?;
        let cur = flow.cur(step)?;
        if side.operator.is_some() {
            let what = format!("{}() into withSideEffect() with an operator", step.name);
            return Err(Fault::unsupported(step.at, what));
        }
        let first = cursor.next;
        let steps = cursor.take_all(StepName::By);
        let bys = self.bys(steps)?;
        let most = if step.name == StepName::Group { 2 } else { 1 };
        if bys.len() > most {
            return Err(Fault::syntax(step.at, format!("{}() takes {most} by() at most", step.name)));
        }
        if matches!(bys.get(1), Some(By::Traversal(_))) {
            cursor.next = first;
            return self.group_rows(flow, cursor, step, (key, register, side));
        }
        if side.rows {
            return Err(twice(step));
        }
        let kind = flow.scope.kind;
        let by = self.by_value(flow, bys.first().unwrap_or(&By::Identity), Expr::Slot(cur), kind)?;
        let key = self.value_or_unbound(flow, by);
        let what = if step.name == StepName::GroupCount {
            Collected::Count(key)
        } else {
            let by = self.by_value(flow, bys.get(1).unwrap_or(&By::Identity), Expr::Slot(cur), kind)?;
            Collected::Group { key, value: self.value_or_unbound(flow, by) }
        };
        let eager = self.collects_eagerly(step, &side);
        flow.wrap(|input| Op::Collect { input, register, what, eager });
        Ok(())
    }

    /// `group(key).by(…).by(traversal)`: collects the rows, from which `cap` makes groups.
    fn group_rows<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
        (key, register, side): (Str, Register, SideEffect),
    ) -> Result<()> {
        if side.given {
            return Err(Fault::unsupported(step.at, "group() into withSideEffect() with this by()"));
        }
        if side.shared && !side.alike {
            return Err(twice(step));
        }
        let eager = self.collects_eagerly(step, &side);
        let parts = match &side.groups {
            Some(groups) => groups.row.clone(),
            None => self.parts_of(flow, side.shared.then(|| &cursor.steps[cursor.next..])),
        };
        let Some(row) = parts.iter().map(|part| part.of(flow)).collect() else { return Err(twice(step)) };
        let rows = Collected::Item(Expr::List(row));
        if side.groups.is_some() {
            cursor.take_all(StepName::By);
            flow.wrap(|input| Op::Collect { input, register, what: rows, eager });
            return Ok(());
        }
        let (item, out) = (self.fresh(), self.fresh());
        let mut child = flow.child();
        child.scope.single = false;
        child.wrap(|input| Op::Unwind { input, list: Expr::Register(register), out: item });
        if side.shared {
            // Each step that collects has other slots.
            child.scope.labels.clear();
            (child.scope.near, child.scope.kind) = (None, ObjectKind::Unknown);
        }
        for (part, index) in parts.iter().zip(0_i64..) {
            let slot = match part {
                Part::Slot(slot) => *slot,
                Part::Current => {
                    let slot = self.fresh();
                    child.scope.cur = Some(slot);
                    slot
                }
                Part::Label(name) => {
                    let label = Label { slot: self.fresh(), certain: false, kind: ObjectKind::Unknown };
                    child.scope.labels.push((name.clone(), label));
                    label.slot
                }
            };
            child.bind(slot, Expr::Index(Box::new(Expr::Slot(item)), Box::new(Expr::literal(index))));
        }
        let plain = Step { at: step.at, name: step.name, args: vec![] };
        self.group(&mut child, cursor, &plain, Some(out))?;
        flow.wrap(|input| Op::Collect { input, register, what: rows, eager });
        let groups = Groups { plan: child.op, out, row: parts };
        self.side_effects.insert(key, SideEffect { groups: Some(groups), ..side });
        Ok(())
    }

    /// Returns what a row holds of a traverser: all that it has, or what steps that begin with these `by` read.
    fn parts_of(&self, flow: &Flow, shared: Option<&[Step<'_>]>) -> Vec<Part> {
        let Some(steps) = shared else {
            return self.live_slots(flow, &[]).into_iter().map(Part::Slot).collect();
        };
        let count = steps.iter().take_while(|step| step.name == StepName::By).count();
        let bys = &steps[..count];
        let is_read = |name: &&Str| selects_computed(bys) || mentions(bys, name);
        let names = flow.scope.labels.iter().map(|(name, _)| name).filter(is_read);
        let labels = names.map(|name| Part::Label(name.clone()));
        let own = [self.path, self.sack].into_iter().flatten().map(Part::Slot);
        std::iter::once(Part::Current).chain(labels).chain(own).collect()
    }

    /// `cap(key…)`
    pub(super) fn cap(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let names = self.texts(&step.args)?;
        if names.is_empty() || names.len() != step.args.len() {
            return Err(wrong_arguments(step));
        }
        flow.cur(step)?;
        let missing = names.iter().find(|name| !self.side_effects.contains_key(*name));
        if let Some(name) = missing {
            return Err(Fault::syntax(step.at, format!("no step collects the side effect '{name}'")));
        }
        // One row follows all traversers.
        let drained = self.fresh();
        let items = vec![item(drained, AggregateKind::CountRows, vec![])];
        flow.wrap(|input| Op::Aggregate { input, keys: vec![], items });
        let mut values = vec![];
        for name in &names {
            let groups = self.side_effects.get(name).and_then(|side| side.groups.clone());
            values.push(match groups {
                None => {
                    self.side(name, step.at)?.unwrap_or((Expr::Literal(Value::Null), ObjectKind::Unknown))
                }
                Some(Groups { plan, out: result, .. }) => {
                    let out = self.fresh();
                    let kind = BindKind::First(result);
                    flow.wrap(|input| Op::Bind { input, plan: Box::new(plan), out, kind });
                    (Expr::Slot(out), ObjectKind::Map)
                }
            });
        }
        let (value, kind) = if values.len() == 1 {
            values.remove(0)
        } else {
            let entries = names.iter().zip(values).flat_map(|(name, (value, _))| [text(name), value]);
            (call(Function::MakeMap, entries.collect()), ObjectKind::Map)
        };
        let out = self.or_fresh(dest);
        flow.bind(out, value);
        flow.reduced(out, kind);
        Ok(())
    }
}

/// Whether steps select what has a computed name.
fn selects_computed(steps: &[Step<'_>]) -> bool {
    let selects = |step: &Step<'_>| {
        step.args
            .iter()
            .filter_map(Arg::steps)
            .any(|steps| step.name == StepName::Select || selects_computed(steps))
    };
    steps.iter().any(selects)
}

fn twice(step: &Step<'_>) -> Fault {
    Fault::unsupported(step.at, "group() twice into one key with this by()")
}

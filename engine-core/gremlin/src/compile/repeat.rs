//! `repeat` with `until`, `emit` and `times`, before it or after it.
//!
//! The body reads and writes one slot: that of the object before the loop, if nothing else uses it, otherwise a copy.
//!
//! A body of steps that treat each traverser by itself, with a number of rounds and no other condition, is written out: the
//! optimiser then sees a chain of steps.

use super::{Compiler, Cursor, Flow, Label, ObjectKind, Result, step, wrong_arguments};
use crate::Version;
use crate::ast::{Arg, ArgKind, Step, StepName};
use crate::compile::branch::stateful;
use crate::compile::predicate::Operands;
use crate::compile::reduce::is_reducing;
use crate::fault::Fault;
use crate::names::Children;
use tidegraph_plan::{Expr, Op, RepeatTest, Slot};

/// Largest number of rounds that are written out. A chain of more steps costs more to count than rounds of merged rows.
const MAX_ROUNDS: u32 = 8;
/// Largest number of steps in one request that bodies become when they are written out.
const MAX_WRITTEN_OUT: u32 = 128;

/// The steps of one loop.
#[derive(Default)]
struct Loop<'a, 't> {
    body: Option<&'a Step<'t>>,
    index: usize,
    until: Option<(&'a Step<'t>, bool)>,
    emit: Option<(&'a Step<'t>, bool)>,
    times: Option<(&'a Step<'t>, bool)>,
}

impl<'a, 't> Loop<'a, 't> {
    /// Takes the steps of a loop from the cursor; the loop starts at the step `first`.
    fn read(cursor: &mut Cursor<'a, 't>, first: usize) -> Result<Self> {
        let mut read = Self::default();
        cursor.next = first;
        while let Some(step) = cursor.peek() {
            let before = read.body.is_none();
            let part = match step.name {
                StepName::Repeat if before => {
                    read.body = Some(step);
                    read.index = cursor.next;
                    cursor.next += 1;
                    continue;
                }
                StepName::Until => &mut read.until,
                StepName::Emit => &mut read.emit,
                StepName::Times => &mut read.times,
                _ => break,
            };
            // A second one belongs to the next loop.
            if part.is_some() {
                break;
            }
            *part = Some((step, before));
            cursor.next += 1;
        }
        Ok(read)
    }
}

impl Compiler {
    pub(super) fn repeat(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        index: usize,
    ) -> Result<()> {
        let first = &cursor.steps[index];
        let parts = Loop::read(cursor, index)?;
        let Some(repeat) = parts.body else {
            return Err(Fault::syntax(first.at, format!("{}() without repeat()", first.name)));
        };
        if let (Some((until, _)), Some(_)) = (parts.until, parts.times) {
            return Err(Fault::syntax(until.at, "until() and times() modulate the same repeat()".into()));
        }
        let (name, steps) = match repeat.args.as_slice() {
            [Arg { kind: ArgKind::Traversal(steps), .. }] => (None, steps),
            [Arg { kind: ArgKind::Text(name), .. }, Arg { kind: ArgKind::Traversal(steps), .. }] => {
                (Some(name.clone()), steps)
            }
            _ => return Err(wrong_arguments(repeat)),
        };
        if let Some(reducing) = steps.iter().find(|s| is_reducing(s)) {
            // TinkerPop verifies it too.
            let message = format!("{}() cannot stand in a repeat(), because it reduces", reducing.name);
            return Err(Fault::syntax(reducing.at, message));
        }
        let forbidden = |step: &&Step<'_>| matches!(step.name, StepName::Inject | StepName::Cap);
        if let Some(step) = steps.iter().find(forbidden).filter(|_| !self.version.bodies_may_inject()) {
            return Err(Fault::syntax(step.at, format!("{}() cannot stand in a repeat()", step.name)));
        }
        let dest = cursor.dest_of(parts.index);
        let cur = flow.cur(repeat)?;
        if let Some(rounds) = self.rounds_to_write_out(&parts, steps) {
            return self.write_out(flow, steps, rounds, dest);
        }
        let current = match dest {
            Some(slot) => slot,
            None if self.is_named(flow, cur) => self.fresh(),
            None => cur,
        };
        if current != cur {
            flow.bind(current, Expr::Slot(cur));
        }
        let kind = loop_kind(flow.scope.kind, steps, self.version);
        flow.scope.cur = Some(current);
        flow.scope.kind = kind;
        flow.scope.near = None;
        flow.scope.single = false;
        self.declare_labels(flow, steps);

        let loops = self.fresh();
        flow.scope.loops.push((name, loops));
        let mut body = flow.child();
        body.scope.alias = false;
        body.scope.single = false;
        self.steps(&mut body, steps, Some(current))?;
        // The tests use the scope before the body, because labels of the body may be missing in its first round.
        let until = self.repeat_test(flow, parts.until)?;
        let emit = self.repeat_test(flow, parts.emit)?;
        let (times, times_before) = match parts.times {
            Some((step, before)) => {
                let [count] = step.args.as_slice() else { return Err(wrong_arguments(step)) };
                (Some(self.integer(count)?), before)
            }
            None => (None, false),
        };
        let body = Box::new(body.op);
        flow.wrap(|input| Op::Repeat { input, body, until, emit, times, times_before, loops });
        flow.scope.loops.pop();
        Ok(())
    }

    /// Returns the number of rounds if the body can be written out as often.
    fn rounds_to_write_out(&self, parts: &Loop<'_, '_>, steps: &[Step<'_>]) -> Option<u32> {
        let (times, before) = parts.times.filter(|_| parts.until.is_none() && parts.emit.is_none())?;
        let [Arg { kind: ArgKind::Value(count), .. }] = times.args.as_slice() else { return None };
        // Behind the body, `times` is looked at after the first round.
        let rounds = count.as_i64()?.max(i64::from(!before));
        let rounds = u32::try_from(rounds.max(0)).ok().filter(|rounds| *rounds <= MAX_ROUNDS)?;
        let made = rounds.checked_mul(u32::try_from(steps.len()).ok()?)?;
        (self.written_out.checked_add(made)? <= MAX_WRITTEN_OUT && steps.iter().all(is_same_in_each_round))
            .then_some(rounds)
    }

    fn write_out(
        &mut self,
        flow: &mut Flow,
        steps: &[Step<'_>],
        rounds: u32,
        dest: Option<Slot>,
    ) -> Result<()> {
        for round in 1..=rounds {
            self.written_out += u32::try_from(steps.len()).unwrap_or(MAX_WRITTEN_OUT);
            self.steps(flow, steps, dest.filter(|_| round == rounds))?;
        }
        if let (Some(dest), Some(cur), 0) = (dest, flow.scope.cur, rounds) {
            flow.bind(dest, Expr::Slot(cur));
            flow.scope.cur = Some(dest);
        }
        Ok(())
    }

    /// Whether more than the current object uses a slot, so that a loop must not overwrite it.
    fn is_named(&self, flow: &Flow, slot: Slot) -> bool {
        !flow.scope.alias
            || flow.scope.labels.iter().any(|(_, l)| l.slot == slot)
            || flow.scope.near.is_some_and(|n| n.from == slot || n.far == Some(slot))
            || flow.op == Op::Argument
    }

    /// Declares the labels that the body gives, because its second round can read them.
    fn declare_labels(&mut self, flow: &mut Flow, steps: &[Step<'_>]) {
        for step in steps {
            if step.name == StepName::As {
                for name in step.args.iter().filter_map(Arg::text) {
                    let entry = self.labels.get(name).copied().unwrap_or((2, None));
                    let slot = entry.1.unwrap_or_else(|| self.fresh());
                    // Each round gives the label, so that it counts as given more than once.
                    self.labels.insert(name.clone(), (entry.0.max(2), Some(slot)));
                    match flow.scope.labels.iter_mut().find(|(n, _)| n == name) {
                        Some((_, label)) => {
                            if label.slot != slot {
                                flow.op = Op::Let {
                                    input: Box::new(std::mem::replace(&mut flow.op, Op::Argument)),
                                    bindings: vec![(slot, Expr::Slot(label.slot))],
                                };
                            }
                            *label = Label { slot, kind: ObjectKind::Unknown, ..*label };
                        }
                        None => flow
                            .scope
                            .labels
                            .push((name.clone(), Label { slot, certain: false, kind: ObjectKind::Unknown })),
                    }
                }
            }
            if step.name.properties().children != Children::Isolated {
                for steps in step.args.iter().filter_map(Arg::steps) {
                    self.declare_labels(flow, steps);
                }
            }
        }
    }

    fn repeat_test(&mut self, flow: &Flow, part: Option<(&Step<'_>, bool)>) -> Result<Option<RepeatTest>> {
        let Some((step, before)) = part else { return Ok(None) };
        let mut child = flow.child();
        match step.args.as_slice() {
            [] if step.name == StepName::Emit => {}
            [Arg { kind: ArgKind::Predicate(predicate), .. }] => {
                let cur = Expr::Slot(child.cur(step)?);
                let test = self.predicate_expr(predicate, &cur, &mut Operands::Value)?;
                child.filter(test);
            }
            [Arg { kind: ArgKind::Traversal(steps), .. }] => {
                let test = self.condition(&mut child, steps)?;
                child.filter(test);
            }
            _ => return Err(wrong_arguments(step)),
        }
        Ok(Some(RepeatTest { before, plan: Box::new(child.op) }))
    }
}

/// Returns the kind of the current object in a loop: that of the input, if the body makes the same kind.
fn loop_kind(kind: ObjectKind, steps: &[Step<'_>], version: Version) -> ObjectKind {
    let vertex = |s: &Step<'_>| s.name.properties().to_vertex;
    match steps.iter().rfind(|s| step::moves(s)) {
        None => kind,
        Some(last) if vertex(last) && kind == ObjectKind::Vertex && !stateful_end(steps, version) => {
            ObjectKind::Vertex
        }
        Some(_) => ObjectKind::Unknown,
    }
}

fn stateful_end(steps: &[Step<'_>], version: Version) -> bool {
    stateful(steps, version) && steps.iter().any(is_reducing)
}

/// Whether a step of a body does the same in each round, with each traverser by itself.
fn is_same_in_each_round(step: &Step<'_>) -> bool {
    let walks = matches!(
        step.name,
        StepName::Out
            | StepName::In
            | StepName::Both
            | StepName::OutE
            | StepName::InE
            | StepName::BothE
            | StepName::InV
            | StepName::OutV
            | StepName::BothV
            | StepName::OtherV
            | StepName::ToE
            | StepName::ToV
            | StepName::To
    );
    let tests = matches!(
        step.name,
        StepName::Is
            | StepName::And
            | StepName::Or
            | StepName::Not
            | StepName::Filter
            | StepName::Where
            | StepName::SimplePath
            | StepName::CyclicPath
            | StepName::Identity
            | StepName::Barrier
            | StepName::By
    ) || step.name.properties().has;
    let mut children = step.args.iter().filter_map(Arg::steps);
    match step.name {
        StepName::Repeat | StepName::Times => children.all(|steps| steps.iter().all(is_same_in_each_round)),
        _ => (walks || tests) && children.all(is_pure),
    }
}

/// Whether steps of a child do not know the round, and neither name nor write anything.
fn is_pure(steps: &[Step<'_>]) -> bool {
    steps.iter().all(|step| {
        !matches!(
            step.name,
            StepName::As
                | StepName::Loops
                | StepName::SideEffect
                | StepName::Aggregate
                | StepName::Store
                | StepName::Subgraph
                | StepName::Tree
                | StepName::Sack
                | StepName::AddV
                | StepName::AddE
                | StepName::MergeV
                | StepName::MergeE
                | StepName::Property
                | StepName::Drop
        ) && step.args.iter().filter_map(Arg::steps).all(is_pure)
    })
}

//! `repeat` with `until`, `emit` and `times`, before it or after it.
//!
//! The body reads and writes one slot. If the object before the loop has a slot that nothing else names, it is that slot.

use super::{Compiler, Cursor, Flow, Kind, Label, Result, step, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step};
use crate::compile::branch::stateful;
use crate::compile::predicate::How;
use crate::compile::reduce::is_reducing;
use crate::error::Failure;
use tidegraph_plan::{Expr, Op, RepeatTest, Slot};

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
    /// Takes what belongs to the loop from the cursor, which stands after its first step.
    fn read(cursor: &mut Cursor<'a, 't>, first: usize) -> Result<Self> {
        let mut read = Self::default();
        cursor.next = first;
        while let Some(step) = cursor.peek() {
            let before = read.body.is_none();
            let part = match step.name {
                "repeat" if before => {
                    read.body = Some(step);
                    read.index = cursor.next;
                    cursor.next += 1;
                    continue;
                }
                "until" => &mut read.until,
                "emit" => &mut read.emit,
                "times" => &mut read.times,
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
            return Err(Failure::syntax(first.at, format!("{}() without repeat()", first.name)));
        };
        if let (Some((until, _)), Some(_)) = (parts.until, parts.times) {
            return Err(Failure::syntax(until.at, "until() and times() modulate the same repeat()".into()));
        }
        let (name, steps) = match repeat.args.as_slice() {
            [Arg { kind: ArgKind::Traversal(steps), .. }] => (None, steps),
            [Arg { kind: ArgKind::Text(name), .. }, Arg { kind: ArgKind::Traversal(steps), .. }] => {
                (Some(name.clone()), steps)
            }
            _ => return Err(wrong_arguments(repeat)),
        };
        if let Some(reducing) = steps.iter().find(|s| is_reducing(s)) {
            return Err(Failure::unsupported(reducing.at, format!("{}() inside repeat()", reducing.name)));
        }
        let dest = cursor.dest_of(parts.index);
        let cur = flow.cur(repeat)?;
        let current = match dest {
            Some(slot) => slot,
            None if self.is_named(flow, cur) => self.fresh(),
            None => cur,
        };
        if current != cur {
            flow.bind(current, Expr::Slot(cur));
        }
        let kind = loop_kind(flow.scope.kind, steps);
        flow.scope.cur = Some(current);
        flow.scope.kind = kind;
        flow.scope.near = None;
        flow.scope.single = false;
        self.foresee_labels(flow, steps);

        let loops = self.fresh();
        flow.scope.loops.push((name, loops));
        let mut body = flow.child();
        body.scope.alias = false;
        body.scope.single = false;
        self.steps(&mut body, steps, Some(current))?;
        // What the tests see: labels of the body may be missing before its first round.
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

    /// Whether more than the current object stands in a slot, so that a loop must not write to it.
    fn is_named(&self, flow: &Flow, slot: Slot) -> bool {
        !flow.scope.alias
            || flow.scope.labels.iter().any(|(_, l)| l.slot == slot)
            || flow.scope.near.is_some_and(|n| n.from == slot || n.far == Some(slot))
            || flow.op == Op::Argument
    }

    /// Labels that the body gives are there from the second round on.
    fn foresee_labels(&mut self, flow: &mut Flow, steps: &[Step<'_>]) {
        for step in steps {
            if step.name == "as" {
                for name in step.args.iter().filter_map(Arg::text) {
                    let entry = self.labels.get(name).copied().unwrap_or((2, None));
                    let slot = entry.1.unwrap_or_else(|| self.fresh());
                    // More than once: once for each round.
                    self.labels.insert(name.clone(), (entry.0.max(2), Some(slot)));
                    match flow.scope.labels.iter_mut().find(|(n, _)| n == name) {
                        Some((_, label)) => {
                            if label.slot != slot {
                                flow.op = Op::Let {
                                    input: Box::new(std::mem::replace(&mut flow.op, Op::Argument)),
                                    bindings: vec![(slot, Expr::Slot(label.slot))],
                                };
                            }
                            *label = Label { slot, kind: Kind::Unknown, ..*label };
                        }
                        None => flow
                            .scope
                            .labels
                            .push((name.clone(), Label { slot, certain: false, kind: Kind::Unknown })),
                    }
                }
            }
            if matches!(step.name, "local" | "union" | "choose" | "option" | "optional" | "repeat") {
                for steps in step.args.iter().filter_map(Arg::steps) {
                    self.foresee_labels(flow, steps);
                }
            }
        }
    }

    fn repeat_test(&mut self, flow: &Flow, part: Option<(&Step<'_>, bool)>) -> Result<Option<RepeatTest>> {
        let Some((step, before)) = part else { return Ok(None) };
        let mut child = flow.child();
        match step.args.as_slice() {
            [] if step.name == "emit" => {}
            [Arg { kind: ArgKind::Predicate(predicate), .. }] => {
                let cur = Expr::Slot(child.cur(step)?);
                let test = self.predicate_expr(predicate, &cur, &mut How::Value)?;
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

/// What the object of a loop is: what goes in, if the body makes the same of it.
fn loop_kind(kind: Kind, steps: &[Step<'_>]) -> Kind {
    let vertex = |s: &Step<'_>| {
        matches!(s.name, "out" | "in" | "both" | "inV" | "outV" | "bothV" | "otherV" | "toV" | "to" | "V")
    };
    match steps.iter().rfind(|s| step::moves(s)) {
        None => kind,
        Some(last) if vertex(last) && kind == Kind::Vertex && !stateful_end(steps) => Kind::Vertex,
        Some(_) => Kind::Unknown,
    }
}

fn stateful_end(steps: &[Step<'_>]) -> bool {
    stateful(steps) && steps.iter().any(is_reducing)
}

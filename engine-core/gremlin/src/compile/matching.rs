//! `match`: patterns that share variables.
//!
//! A pattern is a walk from one variable, perhaps to another one; a test (`where`, `not`); or patterns of which all (`and`) or one
//! (`or`) must hold. The compiler orders them so that each finds its variables bound: tests as soon as they can be asked,
//! then walks that end in a bound variable or in none, then the others in the order of the text. A walk is a `flatMap` from the
//! object of its variable. It names its end, or compares it with the object that has the name.
//!
//! **Invariant.** A variable is a label: patterns, tests and later steps read it like one that `as()` gave.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_infix, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step, StepName};
use crate::fault::Fault;
use tidegraph_plan::{Comparison, Expr, Function, Op, Slot};
use tidegraph_types::Str;

/// A pattern of `match`.
#[derive(Clone)]
enum Pattern<'a, 't> {
    Walk { at: usize, start: Str, steps: &'a [Step<'t>], end: Option<Str> },
    Test { steps: &'a [Step<'t>], reads: Vec<Str> },
    All(Vec<Self>),
    Any { at: usize, branches: Vec<Vec<Self>> },
}

impl<'a, 't> Pattern<'a, 't> {
    /// Reads a pattern from the traversal of an argument.
    fn of(steps: &'a [Step<'t>], owner: &Step<'t>) -> Result<Self> {
        let Some(first) = steps.first() else { return Err(wrong_arguments(owner)) };
        for infix in [StepName::Or, StepName::And] {
            if !steps.iter().any(|s| s.name == infix && is_infix(s)) {
                continue;
            }
            let parts = steps.split(|s| s.name == infix && is_infix(s)).map(|part| Self::of(part, owner));
            let parts = parts.collect::<Result<Vec<_>>>()?;
            return Ok(Self::joined(infix, parts, first.at));
        }
        match (first.name, steps) {
            (StepName::As, [first, rest @ ..]) => {
                let start = label_of(first)?;
                let (rest, end) = match rest {
                    [rest @ .., last] if last.name == StepName::As => (rest, Some(label_of(last)?)),
                    _ => (rest, None),
                };
                Ok(Self::Walk { at: first.at, start, steps: rest, end })
            }
            (StepName::And | StepName::Or, [only]) => {
                let parts = only.args.iter().map(|arg| match arg.steps() {
                    Some(steps) => Self::of(steps, only),
                    None => Err(wrong_arguments(only)),
                });
                Ok(Self::joined(only.name, parts.collect::<Result<Vec<_>>>()?, only.at))
            }
            (StepName::Where | StepName::Not, [_]) => {
                let mut reads = vec![];
                names_of(steps, &mut reads);
                Ok(Self::Test { steps, reads })
            }
            _ => Err(Fault::syntax(
                first.at,
                format!(
                    "a pattern of match() begins with as(), where(), not(), and() or or(), not {}()",
                    first.name
                ),
            )),
        }
    }

    fn joined(step: StepName, parts: Vec<Self>, at: usize) -> Self {
        if step == StepName::And {
            Self::All(parts)
        } else {
            Self::Any { at, branches: parts.into_iter().map(|part| vec![part]).collect() }
        }
    }

    fn at(&self) -> usize {
        match self {
            Self::Walk { at, .. } | Self::Any { at, .. } => *at,
            Self::Test { steps, .. } => steps.first().map_or(0, |step| step.at),
            Self::All(parts) => parts.first().map_or(0, Self::at),
        }
    }

    /// Calls `visit` with the start and the end of each walk, in the order of the text.
    fn for_each_walk(&self, visit: &mut dyn FnMut(&Str, Option<&Str>)) {
        match self {
            Self::Walk { start, end, .. } => visit(start, end.as_ref()),
            Self::Test { .. } => {}
            Self::All(parts) => parts.iter().for_each(|part| part.for_each_walk(visit)),
            Self::Any { branches, .. } => {
                branches.iter().flatten().for_each(|part| part.for_each_walk(visit));
            }
        }
    }

    /// Whether the pattern finds the variables that it needs.
    fn is_ready(&self, flow: &Flow, variables: &[Str]) -> bool {
        match self {
            Self::Walk { start, .. } => flow.label(start).is_some(),
            Self::Test { reads, .. } => {
                reads.iter().all(|name| flow.label(name).is_some() || !variables.contains(name))
            }
            Self::All(parts) => parts.iter().any(|part| part.is_ready(flow, variables)),
            Self::Any { branches, .. } => {
                branches.iter().all(|parts| parts.iter().any(|part| part.is_ready(flow, variables)))
            }
        }
    }

    /// Returns a smaller number for a pattern that should come earlier.
    fn rank(&self, flow: &Flow) -> u32 {
        match self {
            Self::Test { .. } => 0,
            Self::Walk { end, .. } if end.as_ref().is_none_or(|end| flow.label(end).is_some()) => 1,
            Self::Walk { .. } | Self::All(_) => 2,
            Self::Any { .. } => 3,
        }
    }
}

/// Returns the only label of an `as()`.
fn label_of(step: &Step<'_>) -> Result<Str> {
    match step.args.as_slice() {
        [Arg { kind: ArgKind::Text(name), .. }] => Ok(name.clone()),
        _ => Err(Fault::syntax(step.at, "a variable of match() has one name".into())),
    }
}

/// Collects the names that a test may read: all of its strings that could be labels.
fn names_of(steps: &[Step<'_>], names: &mut Vec<Str>) {
    for step in steps {
        for arg in &step.args {
            match &arg.kind {
                ArgKind::Text(name)
                    if matches!(step.name, StepName::As | StepName::Where | StepName::Select) =>
                {
                    names.push(name.clone());
                }
                ArgKind::Predicate(predicate) if step.name == StepName::Where => {
                    let mut args = vec![];
                    super::predicate::label_names(predicate, &mut args);
                    names.extend(args.iter().filter_map(|arg| arg.text().cloned()));
                }
                ArgKind::Traversal(steps) => names_of(steps, names),
                _ => {}
            }
        }
    }
}

/// Returns the variable that stands for the object before `match`: the start that is an end least often.
fn first_variable(patterns: &[Pattern<'_, '_>]) -> Option<Str> {
    let (mut starts, mut ends) = (vec![], vec![]);
    for pattern in patterns {
        pattern.for_each_walk(&mut |start, end| {
            starts.push(start.clone());
            ends.extend(end.cloned());
        });
    }
    starts.into_iter().min_by_key(|start| ends.iter().filter(|end| *end == start).count())
}

impl Compiler {
    /// `match(pattern…)`
    pub(super) fn match_patterns(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        flow.cur(step)?;
        if self.path.is_some() {
            return Err(Fault::unsupported(step.at, "match() with a step that reads paths"));
        }
        let patterns = step.args.iter().map(|arg| match arg.steps() {
            Some(steps) => Pattern::of(steps, step),
            None => Err(wrong_arguments(step)),
        });
        let patterns = patterns.collect::<Result<Vec<_>>>()?;
        let mut variables: Vec<Str> = vec![];
        let mut any_bound = false;
        for pattern in &patterns {
            pattern.for_each_walk(&mut |start, end| {
                any_bound |= flow.label(start).is_some();
                variables.extend([Some(start), end].into_iter().flatten().cloned());
            });
        }
        let Some(first) = first_variable(&patterns) else {
            return Err(Fault::syntax(step.at, "match() needs a pattern that begins with as()".into()));
        };
        if !any_bound {
            self.name_current(flow, &first, step.at)?;
        }
        variables.sort_unstable();
        variables.dedup();
        self.solve(flow, patterns, &variables)?;
        let mut entries = vec![];
        for name in &variables {
            if let Some(label) = flow.label(name) {
                entries.extend([text(name), Expr::Slot(label.slot)]);
            }
        }
        let out = self.or_fresh(dest);
        flow.bind(out, call(Function::MakeMap, entries));
        flow.set_current(out, ObjectKind::Map);
        Ok(())
    }

    /// Gives the current object a name.
    fn name_current(&mut self, flow: &mut Flow, name: &Str, at: usize) -> Result<()> {
        let label =
            Step { at, name: StepName::As, args: vec![Arg { at, kind: ArgKind::Text(name.clone()) }] };
        let steps = [label];
        let cursor = Cursor { steps: &steps, next: 1, dest: None, labelled: 0 };
        self.name(flow, &cursor, &steps[0], 0)
    }

    /// Appends the patterns in an order in which each finds its variables.
    fn solve(&mut self, flow: &mut Flow, patterns: Vec<Pattern<'_, '_>>, variables: &[Str]) -> Result<()> {
        let mut left: Vec<Pattern<'_, '_>> = vec![];
        for pattern in patterns {
            flatten(pattern, &mut left);
        }
        while !left.is_empty() {
            let ready = left.iter().enumerate().filter(|(_, pattern)| pattern.is_ready(flow, variables));
            let Some((next, _)) = ready.min_by_key(|(index, pattern)| (pattern.rank(flow), *index)) else {
                let at = left.first().map_or(0, Pattern::at);
                return Err(Fault::syntax(
                    at,
                    "no pattern of match() binds the variables of this one".into(),
                ));
            };
            match left.remove(next) {
                Pattern::Walk { at, start, steps, end } => {
                    self.walk_pattern(flow, (&start, at), steps, end.as_ref())?;
                }
                Pattern::Test { steps, .. } => {
                    flow.scope.inside_where = true;
                    self.steps(flow, steps, None)?;
                    flow.scope.inside_where = false;
                }
                Pattern::Any { branches, .. } => self.any_pattern(flow, branches, variables)?,
                Pattern::All(parts) => left.extend(parts),
            }
        }
        Ok(())
    }

    fn walk_pattern(
        &mut self,
        flow: &mut Flow,
        (start, at): (&Str, usize),
        steps: &[Step<'_>],
        end: Option<&Str>,
    ) -> Result<()> {
        let Some(label) = flow.label(start) else { return Ok(()) };
        if !label.certain {
            flow.filter(super::not(super::is_null(Expr::Slot(label.slot))));
        }
        flow.scope.cur = Some(label.slot);
        flow.scope.kind = label.kind;
        flow.scope.near = None;
        let bound = end.and_then(|end| flow.label(end));
        if !steps.is_empty() {
            let arg = Arg { at, kind: ArgKind::Traversal(steps.to_vec()) };
            let step = Step { at, name: StepName::FlatMap, args: vec![arg] };
            self.steps(flow, &[step], None)?;
        }
        let Some(cur) = flow.scope.cur else { return Ok(()) };
        match (end, bound) {
            (Some(_), Some(bound)) if bound.certain => {
                flow.filter(Expr::compare(Comparison::Equal, Expr::Slot(cur), Expr::Slot(bound.slot)));
            }
            (Some(end), Some(_)) => {
                let message = format!("match() with '{end}' bound in some branches of or() only");
                return Err(Fault::unsupported(at, message));
            }
            (Some(end), None) => self.name_current(flow, end, at)?,
            (None, _) => {}
        }
        Ok(())
    }

    /// `or(pattern…)`: the rows of each branch.
    fn any_pattern(
        &mut self,
        flow: &mut Flow,
        branches: Vec<Vec<Pattern<'_, '_>>>,
        variables: &[Str],
    ) -> Result<()> {
        let out = self.fresh();
        let (mut plans, mut ends) = (vec![], vec![]);
        for patterns in branches {
            let mut child = self.branch(flow, None);
            self.solve(&mut child, patterns, variables)?;
            child.bind(out, Expr::literal(true));
            ends.push(child.scope);
            plans.push(child.op);
        }
        flow.wrap(|input| Op::Union { input, branches: plans });
        super::branch::join_branches(flow, &ends, out);
        flow.scope.single = false;
        Ok(())
    }
}

fn flatten<'a, 't>(pattern: Pattern<'a, 't>, into: &mut Vec<Pattern<'a, 't>>) {
    match pattern {
        Pattern::All(parts) => parts.into_iter().for_each(|part| flatten(part, into)),
        other => into.push(other),
    }
}

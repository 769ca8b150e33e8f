//! Syntax tree to plan.
//!
//! **Roles.** [`Compiler`] hands out slots and knows what holds for the whole request (which labels there are, whether
//! paths are needed). A [`Flow`] is a plan under construction: the operators so far, and the [`Scope`], which says where
//! the traverser's current object, its labels and its edge's near end stand. Steps are translated one after the other,
//! each by a function in the file of its family; a step takes its modulators from the [`Cursor`].
//!
//! **Slots.** Each step writes a new slot; a slot is overwritten only at the end of a `repeat` body, by `as()` of a label
//! that is used more than once, and when the path (one slot for the whole request) grows. Where branches meet they write
//! the same slot: the caller names it (`dest`), and the last step of a branch that makes a new object writes there.
//!
//! **Children.** TinkerPop runs some children for each traverser anew (`by`, `where`, `local`, `coalesce` …) and some as
//! part of the stream (`union`, `choose`, `repeat`). A subplan is of the first kind: what is stateful in it works for each
//! outer row. For the second kind `branch` gathers the rows first when a branch holds a stateful step.
//!
//! Nothing here looks at data or evaluates anything; and no step may be skipped because it is not understood.

mod branch;
mod by;
mod filter;
mod has;
mod local;
mod merge;
mod path;
mod predicate;
mod property;
mod reduce;
mod repeat;
mod select;
mod side_effect;
mod start;
mod step;
mod walk;
mod write;

use crate::ast::{Arg, ArgKind, Request, Step};
use crate::error::Failure;
use std::collections::HashMap;
use tidegraph_plan::{Column, Expr, Function, Op, Plan, Slot};
use tidegraph_types::{Str, Symbol, Value};

type Result<T> = std::result::Result<T, Failure>;

/// What is known of the kind of the current object; decides which translations are open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Unknown,
    Vertex,
    Edge,
    Property,
    Map,
    List,
    Scalar,
}

impl Kind {
    fn may_be_map(self) -> bool {
        matches!(self, Self::Map | Self::Unknown)
    }

    /// What both are.
    fn join(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }
}

/// Where an `as()` label's object stands.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Label {
    slot: Slot,
    /// Every row here has it.
    certain: bool,
    kind: Kind,
}

/// What an edge step left for the steps that go on from its edges.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Near {
    /// The vertex that the edge step came from.
    from: Slot,
    /// The other end, if the expand bound it.
    far: Option<Slot>,
    /// Name of the step that goes to the other end (besides `otherV`).
    across: &'static str,
}

/// Where a traverser's parts stand in a row.
#[derive(Clone, Debug)]
struct Scope {
    cur: Option<Slot>,
    kind: Kind,
    labels: Vec<(Str, Label)>,
    /// Side effects by key.
    sides: Vec<(Str, side_effect::Side)>,
    /// The request's own traversal, not one inside it.
    root: bool,
    near: Option<Near>,
    /// Enclosing repeats, innermost last: name and slot of the round's number.
    loops: Vec<(Option<Str>, Slot)>,
    /// At most one row for each outer row.
    single: bool,
    /// `as()` may name the current slot instead of copying it.
    alias: bool,
    /// Directly inside `where()`: first and last `as()` of a child are tests.
    wherein: bool,
    /// A reducing step cut the path off.
    cut: bool,
}

/// A plan under construction.
struct Flow {
    op: Op,
    scope: Scope,
    /// The last step made a new object that the path does not hold yet.
    moved: bool,
}

impl Flow {
    fn new() -> Self {
        let scope = Scope {
            cur: None,
            kind: Kind::Unknown,
            labels: vec![],
            sides: vec![],
            root: true,
            near: None,
            loops: vec![],
            single: true,
            alias: true,
            wherein: false,
            cut: false,
        };
        Self { op: Op::Argument, scope, moved: false }
    }

    /// The start of a subplan for each row of this flow.
    fn child(&self) -> Self {
        let scope = Scope { single: true, alias: true, wherein: false, root: false, ..self.scope.clone() };
        Self { op: Op::Argument, scope, moved: false }
    }

    fn wrap(&mut self, make: impl FnOnce(Box<Op>) -> Op) {
        let input = Box::new(std::mem::replace(&mut self.op, Op::Argument));
        self.op = make(input);
    }

    /// Binds a slot; neighbouring bindings share an operator.
    fn bind(&mut self, slot: Slot, expr: Expr) {
        if let Op::Let { bindings, .. } = &mut self.op {
            bindings.push((slot, expr));
        } else {
            self.wrap(|input| Op::Let { input, bindings: vec![(slot, expr)] });
        }
    }

    fn filter(&mut self, predicate: Expr) {
        if let Op::Filter { predicate: before, .. } = &mut self.op {
            let first = std::mem::replace(before, Expr::And(vec![]));
            *before = first.and(predicate);
        } else {
            self.wrap(|input| Op::Filter { input, predicate });
        }
    }

    /// Makes a slot the current object.
    fn goto(&mut self, slot: Slot, kind: Kind) {
        self.scope.cur = Some(slot);
        self.scope.kind = kind;
        self.scope.near = None;
        self.moved = true;
    }

    /// The current slot; a step that needs it cannot stand first.
    fn cur(&self, step: &Step<'_>) -> Result<Slot> {
        self.scope
            .cur
            .ok_or_else(|| Failure::unsupported(step.at, format!("{}() as the first step", step.name)))
    }

    /// No rows go on.
    fn stop(&mut self) {
        self.filter(Expr::literal(false));
    }

    fn label(&self, name: &str) -> Option<Label> {
        self.scope.labels.iter().find(|(n, _)| n == name).map(|(_, l)| *l)
    }
}

/// The steps of one traversal, and where its result is wanted.
struct Cursor<'a, 't> {
    steps: &'a [Step<'t>],
    next: usize,
    /// The slot that the last new object must be written to, and the step that makes it.
    dest: Option<(usize, Slot)>,
    /// `as()` steps before this index stand in the path already.
    labelled: usize,
}

impl<'a, 't> Cursor<'a, 't> {
    fn peek(&self) -> Option<&'a Step<'t>> {
        self.steps.get(self.next)
    }

    /// Takes the next step if it has this name.
    fn take(&mut self, name: &str) -> Option<&'a Step<'t>> {
        let step = self.peek().filter(|s| s.name == name)?;
        self.next += 1;
        Some(step)
    }

    /// Takes all directly following steps of this name.
    fn take_all(&mut self, name: &str) -> &'a [Step<'t>] {
        let start = self.next;
        while self.take(name).is_some() {}
        &self.steps[start..self.next]
    }

    /// The slot for the result of the step at `index`, if one is asked for.
    fn dest_of(&self, index: usize) -> Option<Slot> {
        self.dest.filter(|(i, _)| *i == index).map(|(_, slot)| slot)
    }
}

/// What holds for the whole request.
struct Compiler {
    slots: u32,
    /// The path's slot, if any step needs paths.
    path: Option<Slot>,
    /// How often each label is given, and its slot if it cannot be an alias.
    labels: HashMap<Str, (u32, Option<Slot>)>,
    /// Where the plan of the request's own traversal was cut last: the slot of the operator that unwinds.
    last_cut: Option<Slot>,
    cuts: u32,
    /// A step was met that refuses traversers.
    fails: bool,
}

/// Translates a request.
pub(crate) fn compile(request: &Request<'_>) -> Result<Plan> {
    let mut compiler =
        Compiler { slots: 0, path: None, labels: HashMap::new(), last_cut: None, cuts: 0, fails: false };
    let mut flow = Flow::new();
    for call in &request.configuration {
        match call.name {
            "withSideEffect" => compiler.with_side_effect(&mut flow, call)?,
            _ => configuration(call)?,
        }
    }
    let mut needs_path = false;
    compiler.survey(&request.steps, &mut needs_path);
    if needs_path {
        compiler.path = Some(compiler.fresh());
    }
    compiler.steps(&mut flow, &request.steps, None)?;
    let answers = match &request.terminal {
        Some(step) => compiler.terminal(&mut flow, step)?,
        None => true,
    };
    let columns = match flow.scope.cur {
        Some(slot) if answers => vec![Column { name: "result".into(), slot }],
        _ => vec![],
    };
    Ok(Plan { root: flow.op, slots: compiler.slots, columns })
}

/// Options of `g.with()` that change nothing about the answer. A time limit is none of them: it would be ignored.
const HARMLESS: &[&str] = &["batchSize", "requestId", "userAgent", "language"];

fn configuration(call: &Step<'_>) -> Result<()> {
    if call.name == "with" {
        let option = call.args.first().and_then(Arg::text);
        if option.is_some_and(|o| HARMLESS.contains(&o.as_str())) {
            return Ok(());
        }
        let option = option.map_or_else(|| "…".into(), |o| format!("'{}'", crate::lexer::shorten(o)));
        return Err(Failure::unsupported(call.at, format!("with({option})")));
    }
    // Paths are there whenever a step needs them.
    if call.name == "withPath" && call.args.is_empty() {
        return Ok(());
    }
    Err(Failure::unsupported(call.at, format!("{}()", call.name)))
}

impl Compiler {
    fn fresh(&mut self) -> Slot {
        self.slots += 1;
        Slot(self.slots - 1)
    }

    fn or_fresh(&mut self, dest: Option<Slot>) -> Slot {
        dest.unwrap_or_else(|| self.fresh())
    }

    /// Counts labels and finds out whether paths are needed.
    fn survey(&mut self, steps: &[Step<'_>], needs_path: &mut bool) {
        for step in steps {
            match step.name {
                "path" | "simplePath" | "cyclicPath" => *needs_path = true,
                "select"
                    if step
                        .args
                        .first()
                        .and_then(Arg::constant)
                        .is_some_and(|c| matches!(c, "first" | "all" | "mixed")) =>
                {
                    *needs_path = true;
                }
                "as" => {
                    for label in step.args.iter().filter_map(Arg::text) {
                        self.labels.entry(label.clone()).or_default().0 += 1;
                    }
                }
                _ => {}
            }
            for mut steps in step.args.iter().filter_map(Arg::steps) {
                if matches!(step.name, "where" | "and" | "or" | "not") {
                    // Here a first or last `as()` compares with a label instead of giving it.
                    if let [Step { name: "as", .. }, rest @ ..] = steps {
                        steps = rest;
                    }
                    if let [rest @ .., Step { name: "as", .. }] = steps {
                        steps = rest;
                    }
                }
                self.survey(steps, needs_path);
            }
        }
    }

    /// Translates the steps of one traversal; its result is left in `dest` if one is given.
    fn steps(&mut self, flow: &mut Flow, steps: &[Step<'_>], dest: Option<Slot>) -> Result<()> {
        if let Some(index) = steps.iter().position(is_infix) {
            return self.infix(flow, steps, index, dest);
        }
        let last = if dest.is_some() { steps.iter().rposition(|s| step::moves(s)) } else { None };
        let mut cursor = Cursor { steps, next: 0, dest: last.zip(dest), labelled: 0 };
        while let Some(step) = cursor.peek() {
            let index = cursor.next;
            cursor.next += 1;
            if side_effect::parts_from_sides(flow, step) {
                self.reduced_beside(flow, &mut cursor, step, index)?;
            } else {
                self.step(flow, &mut cursor, step, index)?;
            }
            if std::mem::take(&mut flow.moved) {
                self.extend_path(flow, &mut cursor);
            }
            if step.name != "and" && step.name != "or" && step.name != "not" {
                flow.scope.wherein = false;
            }
        }
        if let (Some(dest), Some(cur)) = (dest, flow.scope.cur)
            && cur != dest
        {
            flow.bind(dest, Expr::Slot(cur));
            flow.scope.cur = Some(dest);
        }
        Ok(())
    }

    /// `a.and().b`, `a.or().b`: TinkerPop's infix notation, which means `and(a, b)` and `or(a, b)`.
    fn infix(&mut self, flow: &mut Flow, steps: &[Step<'_>], index: usize, dest: Option<Slot>) -> Result<()> {
        // A start step before it is no part of the condition.
        let start = usize::from(flow.scope.cur.is_none() || matches!(steps[0].name, "V" | "E" | "inject"));
        if flow.scope.cur.is_none() && start > index {
            return Err(Failure::syntax(steps[index].at, format!("{}() cannot follow g", steps[index].name)));
        }
        self.steps(flow, &steps[..start], None)?;
        let predicate = self.condition(flow, &steps[start..])?;
        flow.filter(predicate);
        if let (Some(dest), Some(cur)) = (dest, flow.scope.cur) {
            flow.bind(dest, Expr::Slot(cur));
            flow.scope.cur = Some(dest);
        }
        Ok(())
    }

    /// Applies the terminal step; whether the request answers anything.
    fn terminal(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<bool> {
        match (step.name, step.args.as_slice()) {
            ("toList" | "toBulkSet", []) => {}
            ("toSet", []) => {
                let by = flow.scope.cur.map(Expr::Slot).into_iter().collect();
                flow.wrap(|input| Op::Distinct { input, by });
            }
            ("next", []) => {
                flow.wrap(|input| Op::Slice { input, skip: None, limit: Some(Expr::literal(1_i64)) });
            }
            ("next", [count]) => {
                let limit = self.integer(count)?;
                flow.wrap(|input| Op::Slice { input, skip: None, limit: Some(limit) });
            }
            ("iterate", []) => return Ok(false),
            ("explain" | "hasNext" | "tryNext" | "toString", _) => {
                return Err(Failure::unsupported(step.at, format!("{}()", step.name)));
            }
            _ => return Err(wrong_arguments(step)),
        }
        Ok(true)
    }

    // ---- arguments

    /// An argument as an expression.
    fn expr(&mut self, arg: &Arg<'_>) -> Result<Expr> {
        if let Some(value) = literal(arg) {
            return Ok(Expr::Literal(value));
        }
        match &arg.kind {
            ArgKind::Now => Ok(Expr::Call(Function::DateTime, vec![])),
            ArgKind::Variable(name) => Ok(Expr::Parameter((*name).into())),
            ArgKind::List(items) => {
                Ok(Expr::List(items.iter().map(|i| self.expr(i)).collect::<Result<_>>()?))
            }
            ArgKind::Map(entries) => {
                let mut args = Vec::with_capacity(entries.len() * 2);
                for (key, value) in entries {
                    args.push(self.expr(key)?);
                    args.push(self.expr(value)?);
                }
                Ok(Expr::Call(Function::MakeMap, args))
            }
            ArgKind::Set(_) => Err(Failure::unsupported(arg.at, "a set with variables")),
            ArgKind::Traversal(_) => Err(Failure::unsupported(arg.at, "a traversal as a value")),
            ArgKind::Vertex(_) => Err(Failure::unsupported(arg.at, "Vertex() as a value")),
            ArgKind::Other(name) => Err(Failure::unsupported(arg.at, name.to_string())),
            ArgKind::Constant(name) => Err(Failure::unsupported(arg.at, format!("{name} as a value"))),
            ArgKind::Predicate(_) | ArgKind::Cardinality(..) => {
                Err(Failure::syntax(arg.at, format!("expected a value, found {}", arg.describe())))
            }
            ArgKind::Text(_) | ArgKind::Value(_) => Ok(Expr::Literal(Value::Null)),
        }
    }

    /// An integer argument: a literal or a variable.
    fn integer(&mut self, arg: &Arg<'_>) -> Result<Expr> {
        match &arg.kind {
            ArgKind::Value(value) if value.as_i64().is_some() => Ok(Expr::Literal(value.clone())),
            ArgKind::Variable(name) => Ok(Expr::Parameter((*name).into())),
            ArgKind::Other(name) => Err(Failure::unsupported(arg.at, name.to_string())),
            _ => Err(Failure::syntax(arg.at, format!("expected an integer, found {}", arg.describe()))),
        }
    }

    /// Strings (property keys, labels); a null is no key and left out.
    fn texts(&mut self, args: &[Arg<'_>]) -> Result<Vec<Str>> {
        let mut texts = Vec::with_capacity(args.len());
        for arg in args {
            match &arg.kind {
                ArgKind::Text(text) => texts.push(text.clone()),
                ArgKind::Value(Value::Null) => {}
                ArgKind::List(items) if args.len() == 1 => return self.texts(items),
                ArgKind::Variable(_) => {
                    return Err(Failure::unsupported(arg.at, "a variable in place of a key or label here"));
                }
                ArgKind::Other(name) => return Err(Failure::unsupported(arg.at, name.to_string())),
                _ => {
                    return Err(Failure::syntax(
                        arg.at,
                        format!("expected a string, found {}", arg.describe()),
                    ));
                }
            }
        }
        Ok(texts)
    }
}

/// Whether a step is `and()` or `or()` without arguments.
fn is_infix(step: &Step<'_>) -> bool {
    matches!(step.name, "and" | "or") && step.args.is_empty()
}

/// The argument's value, if it is known already.
fn literal(arg: &Arg<'_>) -> Option<Value> {
    match &arg.kind {
        ArgKind::Text(text) => Some(Value::String(text.clone())),
        ArgKind::Value(value) => Some(value.clone()),
        ArgKind::Constant(name) => symbol(name).map(Value::Symbol),
        ArgKind::List(items) => items.iter().map(literal).collect::<Option<Vec<_>>>().map(Value::list),
        ArgKind::Set(items) => {
            let items = items.iter().map(literal).collect::<Option<Vec<_>>>()?;
            let distinct: indexmap::IndexSet<Value> = items.into_iter().collect();
            Some(Value::Set(std::sync::Arc::new(distinct.into_iter().collect())))
        }
        ArgKind::Map(entries) => {
            let mut map = tidegraph_types::Map::with_capacity(entries.len());
            for (key, value) in entries {
                map.insert(literal(key)?, literal(value)?);
            }
            Some(Value::map(map))
        }
        _ => None,
    }
}

/// The constants that can be values.
fn symbol(constant: &str) -> Option<Symbol> {
    Some(match constant {
        "id" => Symbol::Id,
        "label" => Symbol::Label,
        "key" => Symbol::Key,
        "value" => Symbol::Value,
        "OUT" => Symbol::Out,
        "IN" => Symbol::In,
        _ => return None,
    })
}

/// The error for arguments that no form of a step takes.
fn wrong_arguments(step: &Step<'_>) -> Failure {
    if let Some((at, name)) = step.args.iter().find_map(|arg| match &arg.kind {
        ArgKind::Other(name) => Some((arg.at, name)),
        _ => None,
    }) {
        return Failure::unsupported(at, name.to_string());
    }
    let given: Vec<String> = step.args.iter().map(Arg::describe).collect();
    let given = if given.is_empty() { "no arguments".into() } else { given.join(", ") };
    Failure::syntax(step.at, format!("{}() does not take {given}", step.name))
}

fn call(function: Function, args: Vec<Expr>) -> Expr {
    Expr::Call(function, args)
}

fn text(value: &Str) -> Expr {
    Expr::Literal(Value::String(value.clone()))
}

fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

fn is_null(expr: Expr) -> Expr {
    Expr::IsNull(Box::new(expr))
}

//! Syntax tree to plan.
//!
//! **Roles.** [`Compiler`] allocates slots and holds facts about the whole request: its labels, and whether a step
//! needs paths. A [`Flow`] is a plan under construction: the operators so far, and the [`Scope`], which gives the slots
//! of the traverser's current object, of its labels, and of the vertex that the last edge step came from. `step`
//! translates one step at a time, with a function in the file of the step's family. A step takes its modulators from
//! the [`Cursor`].
//!
//! **Slots.** Each step writes a new slot. Three things overwrite a slot: the end of a `repeat` body, `as()` with a
//! label that is used more than once, and the growing path, which has one slot for the whole request. Branches that
//! meet write the same slot: the caller passes it (`dest`), and the last step of a branch that makes a new object
//! writes it.
//!
//! **Children.** TinkerPop runs some children for each traverser (`by`, `where`, `local`, `coalesce` …) and others as
//! part of the stream (`union`, `choose`, `repeat`). A subplan is of the first kind: its stateful operators work for
//! each outer row. For the second kind, `branch` first gathers all rows into one if a branch has a stateful step.
//!
//! **Invariants.** Nothing here reads data or evaluates anything. No step is skipped because the compiler does not know
//! it.

mod analyze;
mod branch;
mod by;
mod element_id;
mod filter;
mod has;
mod io;
mod lists;
mod local;
mod matching;
mod math;
mod merge;
mod merge_map;
mod options;
mod path;
mod predicate;
mod property;
mod reduce;
mod repeat;
mod sack;
mod select;
mod service;
mod shape;
mod shortest;
mod side_effect;
mod start;
mod step;
mod strategies;
mod text;
mod typed;
mod walk;
mod write;

use crate::ast::{Arg, ArgKind, Request, SourceCall, Step, StepName, Terminal};
use crate::fault::Fault;
use crate::names::{End, Pop};
use crate::{Dialect, Version};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;
use tidegraph_plan::{
    AggregateKind, Collected, Column, Comparison, Expr, Function, Limits, Op, Operator, Plan, Procedures,
    Register, Slot, TemporalType,
};
use tidegraph_types::{GremlinSettings, Str, Value};

type Result<T> = std::result::Result<T, Fault>;

/// The kind of the current object, as far as the compiler knows it. Some steps have a translation for each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ObjectKind {
    Unknown,
    Vertex,
    Edge,
    Property,
    Map,
    List,
    Scalar,
}

impl ObjectKind {
    fn may_be_map(self) -> bool {
        matches!(self, Self::Map | Self::Unknown)
    }

    /// Returns the kind if both are equal, otherwise the unknown kind.
    fn join(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }
}

/// The object of an `as()` label.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Label {
    slot: Slot,
    /// Whether every row has the label.
    certain: bool,
    kind: ObjectKind,
}

/// The origin of the current edge, for steps to its ends.
#[derive(Clone, Copy, PartialEq, Debug)]
struct EdgeOrigin {
    /// The vertex that the edge step came from.
    from: Slot,
    /// The other end, if the expand binds it.
    far: Option<Slot>,
    /// The end that is not `from`.
    across: End,
}

/// The slots of a traverser's parts, and facts about the rows.
#[derive(Clone, Debug)]
struct Scope {
    cur: Option<Slot>,
    kind: ObjectKind,
    labels: Vec<(Str, Label)>,
    /// Whether the flow is the request's own traversal and not a child.
    root: bool,
    near: Option<EdgeOrigin>,
    /// Enclosing `repeat`s, innermost last: name and slot of the loop counter.
    loops: Vec<(Option<Str>, Slot)>,
    /// Whether each outer row has at most one row.
    single: bool,
    /// Whether `as()` may name the current slot instead of copying it.
    alias: bool,
    /// Whether the flow is directly inside `where()`: the first and last `as()` of a child are tests.
    inside_where: bool,
    /// Whether a reducing step ended the path, so that the next object starts a new one.
    path_ended: bool,
}

/// A plan under construction.
struct Flow {
    op: Op,
    scope: Scope,
    /// Whether the last step made an object that is not in the path yet.
    moved: bool,
}

impl Flow {
    fn new() -> Self {
        let scope = Scope {
            cur: None,
            kind: ObjectKind::Unknown,
            labels: vec![],
            root: true,
            near: None,
            loops: vec![],
            single: true,
            alias: true,
            inside_where: false,
            path_ended: false,
        };
        Self { op: Op::Argument, scope, moved: false }
    }

    /// Starts a subplan that runs for each row of this flow.
    fn child(&self) -> Self {
        let scope =
            Scope { single: true, alias: true, inside_where: false, root: false, ..self.scope.clone() };
        Self { op: Op::Argument, scope, moved: false }
    }

    fn wrap(&mut self, make: impl FnOnce(Box<Op>) -> Op) {
        let input = Box::new(std::mem::replace(&mut self.op, Op::Argument));
        self.op = make(input);
    }

    /// Binds a slot, in the last operator if that binds too.
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
    fn set_current(&mut self, slot: Slot, kind: ObjectKind) {
        self.scope.cur = Some(slot);
        self.scope.kind = kind;
        self.scope.near = None;
        self.moved = true;
    }

    /// Returns the slot of the current object. Without one, the step is refused as the first step.
    fn cur(&self, step: &Step<'_>) -> Result<Slot> {
        self.scope
            .cur
            .ok_or_else(|| Fault::unsupported(step.at, format!("{}() as the first step", step.name)))
    }

    /// Appends a filter that no row passes.
    fn drop_rows(&mut self) {
        self.filter(Expr::literal(false));
    }

    fn label(&self, name: &str) -> Option<Label> {
        self.scope.labels.iter().find(|(n, _)| n == name).map(|(_, l)| *l)
    }
}

/// A position in the steps of one traversal, and the slot for its result.
struct Cursor<'a, 't> {
    steps: &'a [Step<'t>],
    next: usize,
    /// The step that makes the last new object, and the slot that it must write.
    dest: Option<(usize, Slot)>,
    /// The path already has the labels of the `as()` steps before this index.
    labelled: usize,
}

impl<'a, 't> Cursor<'a, 't> {
    fn peek(&self) -> Option<&'a Step<'t>> {
        self.steps.get(self.next)
    }

    /// Takes the next step if it has this name.
    fn take(&mut self, name: StepName) -> Option<&'a Step<'t>> {
        let step = self.peek().filter(|s| s.name == name)?;
        self.next += 1;
        Some(step)
    }

    /// Takes all steps of this name that follow directly.
    fn take_all(&mut self, name: StepName) -> &'a [Step<'t>] {
        let start = self.next;
        while self.take(name).is_some() {}
        &self.steps[start..self.next]
    }

    /// Returns the slot that the step at `index` must write, if the caller chose one.
    fn dest_of(&self, index: usize) -> Option<Slot> {
        self.dest.filter(|(i, _)| *i == index).map(|(_, slot)| slot)
    }
}

/// A value that a statement computes once.
struct Held {
    /// The value, or the id of an element.
    value: Expr,
    /// The kind of the element.
    kind: Option<ObjectKind>,
    register: Register,
}

/// Facts about the whole request.
struct Compiler {
    /// The version of Gremlin that the request speaks.
    version: Version,
    /// The settings of the graph.
    settings: GremlinSettings,
    /// The registry, which has the services that `call()` may name.
    procedures: Procedures,
    slots: u32,
    /// The slot of the path, if any step needs paths.
    path: Option<Slot>,
    /// The slot of the sack, once a step reads or writes it, and its first value.
    sack: Option<Slot>,
    sack_start: Option<Expr>,
    /// How `barrier()` merges the sacks of traversers that nothing else tells apart.
    sack_merge: Option<Operator>,
    /// Whether traversers that `barrier()` merges count as one.
    one_bulk: bool,
    /// For each label, how often `as()` gives it, and its slot unless it is an alias.
    labels: BTreeMap<Str, (u32, Option<Slot>)>,
    /// The side effects of the statement by key, and the number of registers of all statements.
    side_effects: BTreeMap<Str, side_effect::SideEffect>,
    registers: u32,
    /// Whether the statement begins with `inject`.
    injects: bool,
    /// Number of steps that bodies of `repeat` became when they were written out.
    written_out: u32,
    /// Whether the request has a `fail()` step.
    fails: bool,
    /// With `ProductiveByStrategy`: the keys of `by()` that may lack a value nevertheless.
    productive_by: Option<Vec<Str>>,
    /// The time limit that the request sets for itself.
    timeout: Option<Duration>,
    /// The seed of a `SeedStrategy`.
    seed: Option<u64>,
    /// Whether elements of the answer have no properties.
    references: bool,
    /// What the statement finds out before its first row.
    held: Vec<Held>,
    /// The first step that runs an algorithm, with its place.
    analyzed: Option<(usize, StepName)>,
}

/// Translates the statements of a request. Each one runs when the one before it has ended; the last one answers.
pub(crate) fn compile(
    statements: &[Request<'_>],
    dialect: Dialect,
    procedures: &Procedures,
    limits: &Limits<'_>,
) -> Result<Plan> {
    // The number of steps bounds the rest.
    limits.spend(usize::MAX)?;
    let mut compiler = Compiler {
        version: dialect.version,
        settings: dialect.settings,
        procedures: procedures.clone(),
        slots: 0,
        path: None,
        sack: None,
        sack_start: None,
        sack_merge: None,
        one_bulk: false,
        labels: BTreeMap::new(),
        side_effects: BTreeMap::new(),
        registers: 0,
        injects: false,
        written_out: 0,
        fails: false,
        productive_by: None,
        timeout: None,
        seed: None,
        references: false,
        held: vec![],
        analyzed: None,
    };
    let (mut root, mut columns) = (Op::Argument, vec![]);
    for (index, statement) in statements.iter().enumerate() {
        if index > 0 {
            // One row follows all rows of the statement before, and has none of its slots.
            let ended = reduce::item(compiler.fresh(), AggregateKind::CountRows, vec![]);
            root = Op::Aggregate { input: Box::new(root), keys: vec![], items: vec![ended] };
        }
        (root, columns) = compiler.statement(root, statement)?;
        compiler.check_analyzed(&root, index + 1 == statements.len())?;
    }
    let Compiler { slots, timeout, seed, references, .. } = compiler;
    Ok(Plan { root, slots, columns, timeout, seed, references })
}

/// Options of `g.with()` that do not change the answer.
const HARMLESS: &[&str] = &["batchSize", "requestId", "userAgent", "language"];
/// Options of `g.with()` that set a time limit in milliseconds.
const TIMEOUTS: &[&str] = &["evaluationTimeout", "scriptEvaluationTimeout", "Neptune#queryTimeout"];
/// Neptune's hints begin so. All of them are about how a query runs and not about its answer.
const HINT: &str = "Neptune#";

impl Compiler {
    fn fresh(&mut self) -> Slot {
        self.slots += 1;
        Slot(self.slots - 1)
    }

    /// Translates one statement, whose rows begin with the one row of `before`. Returns its plan and its columns.
    fn statement(&mut self, before: Op, statement: &Request<'_>) -> Result<(Op, Vec<Column>)> {
        self.path = None;
        (self.sack, self.sack_start, self.sack_merge) = (None, None, None);
        self.one_bulk = false;
        self.side_effects.clear();
        self.labels.clear();
        self.held.clear();
        let depth_before = depth(&before);
        let mut flow = Flow { op: before, ..Flow::new() };
        for call in &statement.configuration {
            self.configure(call)?;
        }
        let mut strategies = strategies::Strategies::of(&statement.configuration)?;
        let rewritten = strategies.apply(&statement.steps)?;
        self.productive_by = strategies.productive_by;
        self.seed = self.seed.or(strategies.seed);
        self.references = strategies.references;
        let steps = rewritten.as_deref().unwrap_or(&statement.steps);
        let mut needs_path = false;
        self.survey(steps, &mut needs_path);
        if needs_path {
            self.path = Some(self.fresh());
        }
        self.declare_side_effects(&mut flow, steps)?;
        self.steps(&mut flow, steps, None)?;
        let answers = match &statement.terminal {
            Some(step) => self.terminal(&mut flow, step)?,
            None => true,
        };
        let columns = match flow.scope.cur {
            Some(slot) if answers => vec![Column { name: "result".into(), slot }],
            _ => vec![],
        };
        self.hold_values(&mut flow.op, depth_before);
        Ok((flow.op, columns))
    }

    /// Sets the registers of values that are held, before the first operator of the statement. `depth_before`: the number of
    /// operators before the statement.
    fn hold_values(&mut self, op: &mut Op, depth_before: usize) {
        let mut at = op;
        for _ in depth_before..depth(at) {
            match at.children_mut().into_iter().next() {
                Some(input) => at = input,
                None => return,
            }
        }
        let mut start = Flow { op: std::mem::replace(at, Op::Argument), ..Flow::new() };
        for Held { value, kind, register } in std::mem::take(&mut self.held) {
            let value = match kind {
                Some(ObjectKind::Edge) => self.looked_up_edge(&mut start, value),
                Some(_) => self.looked_up(&mut start, value),
                None => value,
            };
            // An element that is not there equals nothing.
            let what = Collected::Start(call(Function::Coalesce, vec![value, Expr::Literal(Value::Null)]));
            start.wrap(|input| Op::Collect { input, register, what, eager: false });
        }
        *at = start.op;
    }

    /// Returns the register that holds a value, or the element of a kind with this id.
    fn hold(&mut self, value: Expr, kind: Option<ObjectKind>) -> Expr {
        let known = self.held.iter().find(|held| kind.is_some() && held.kind == kind && held.value == value);
        if let Some(held) = known {
            return Expr::Register(held.register);
        }
        let register = Register(self.registers);
        self.registers += 1;
        self.held.push(Held { value, kind, register });
        Expr::Register(register)
    }

    /// Applies a call on `g`.
    fn configure(&mut self, call: &Step<'_, SourceCall>) -> Result<()> {
        let option = call.args.first().and_then(Arg::text);
        match call.name {
            SourceCall::With if let Some(option) = option.filter(|o| TIMEOUTS.contains(&o.as_str())) => {
                self.limit_time(call.at, option, call.args.get(1).filter(|_| call.args.len() == 2))
            }
            SourceCall::With if option.is_some_and(|o| o.starts_with(HINT)) => Ok(()),
            SourceCall::With if option.is_some_and(|o| HARMLESS.contains(&o.as_str())) => Ok(()),
            SourceCall::With => {
                let option = option.map_or_else(|| "…".into(), |o| format!("'{}'", crate::lexer::shorten(o)));
                Err(Fault::unsupported(call.at, format!("with({option})")))
            }
            // Paths are there whenever a step needs them.
            SourceCall::WithPath if call.args.is_empty() => Ok(()),
            SourceCall::WithSideEffect => self.with_side_effect(call),
            SourceCall::WithSack => self.with_sack(call),
            SourceCall::WithStrategies | SourceCall::WithoutStrategies => {
                strategies::check(call)?;
                self.take_options(call)
            }
            SourceCall::WithBulk => match call.args.as_slice() {
                [Arg { kind: ArgKind::Value(Value::Bool(counts)), .. }] => {
                    self.one_bulk = !counts;
                    Ok(())
                }
                _ => Err(wrong_arguments(call)),
            },
            SourceCall::WithPath => Err(wrong_arguments(call)),
        }
    }

    /// Takes the time limits of an `OptionsStrategy`; its other options are for providers, and have no effect.
    fn take_options(&mut self, call: &Step<'_, SourceCall>) -> Result<()> {
        for arg in call.args.iter().filter(|_| call.name == SourceCall::WithStrategies) {
            let ArgKind::Strategy("OptionsStrategy", options) = &arg.kind else { continue };
            for (option, value) in options.iter().filter(|(option, _)| TIMEOUTS.contains(option)) {
                self.limit_time(value.at, option, Some(value))?;
            }
        }
        Ok(())
    }

    /// Takes the time limit of a `with()`. 0 is none, as in Gremlin Server; the shortest of several holds.
    fn limit_time(&mut self, at: usize, option: &str, value: Option<&Arg<'_>>) -> Result<()> {
        let millis = match value.map(|value| &value.kind) {
            Some(ArgKind::Value(value)) => value.as_i64().and_then(|ms| u64::try_from(ms).ok()),
            _ => None,
        };
        let Some(millis) = millis else {
            return Err(Fault::syntax(at, format!("with('{option}') needs a number of milliseconds")));
        };
        if millis > 0 {
            let limit = Duration::from_millis(millis);
            self.timeout = Some(self.timeout.map_or(limit, |before| before.min(limit)));
        }
        Ok(())
    }

    fn or_fresh(&mut self, dest: Option<Slot>) -> Slot {
        dest.unwrap_or_else(|| self.fresh())
    }

    /// Counts labels, and finds out whether a step needs paths.
    fn survey(&mut self, steps: &[Step<'_>], needs_path: &mut bool) {
        for step in steps {
            let pop =
                step.args.first().and_then(Arg::constant).and_then(|constant| constant.properties().pop);
            *needs_path |= step.name.properties().needs_path;
            // Traversers that merge must not lose the vertex that they come from.
            *needs_path |= step.name == StepName::OtherV && (self.sack_merge.is_some() || self.one_bulk);
            *needs_path |= step.name == StepName::Select && pop.is_some_and(|pop| pop != Pop::Last);
            if step.name == StepName::As {
                for label in step.args.iter().filter_map(Arg::text) {
                    self.labels.entry(label.clone()).or_default().0 += 1;
                }
            }
            for mut steps in step.args.iter().filter_map(Arg::steps) {
                if step.name == StepName::Where || step.name.properties().connective {
                    // A first or last `as()` compares with a label here instead of giving it.
                    if let [Step { name: StepName::As, .. }, rest @ ..] = steps {
                        steps = rest;
                    }
                    if let [rest @ .., Step { name: StepName::As, .. }] = steps {
                        steps = rest;
                    }
                }
                self.survey(steps, needs_path);
            }
        }
    }

    /// Translates the steps of one traversal. With `dest`, its result goes there.
    fn steps(&mut self, flow: &mut Flow, steps: &[Step<'_>], dest: Option<Slot>) -> Result<()> {
        if let Some(index) = steps.iter().position(is_infix) {
            return self.infix(flow, steps, index, dest);
        }
        let last = if dest.is_some() { steps.iter().rposition(|s| step::moves(s)) } else { None };
        let mut cursor = Cursor { steps, next: 0, dest: last.zip(dest), labelled: 0 };
        while let Some(step) = cursor.peek() {
            let index = cursor.next;
            cursor.next += 1;
            let groups = self.before_step(flow, &steps[index..]);
            self.step(flow, &mut cursor, step, index)?;
            self.after_step(groups);
            if std::mem::take(&mut flow.moved) {
                self.extend_path(flow, &mut cursor);
            }
            if !step.name.properties().connective {
                flow.scope.inside_where = false;
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
        // A start step before the condition does not belong to the condition.
        let start = usize::from(flow.scope.cur.is_none() || steps[0].name.properties().starts);
        if flow.scope.cur.is_none() && start > index {
            return Err(Fault::syntax(steps[index].at, format!("{}() cannot follow g", steps[index].name)));
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

    /// Applies the call that ends the traversal. Returns whether the request has an answer.
    fn terminal(&mut self, flow: &mut Flow, step: &Step<'_, Terminal>) -> Result<bool> {
        match (step.name, step.args.as_slice()) {
            (Terminal::ToList | Terminal::ToBulkSet, []) => {}
            (Terminal::ToSet, []) => {
                let by = flow.scope.cur.map(Expr::Slot).into_iter().collect();
                flow.wrap(|input| Op::Distinct { input, by });
            }
            // The value if there is one: a response has no other form of an `Optional`.
            (Terminal::Next | Terminal::TryNext, []) => {
                flow.wrap(|input| Op::Slice { input, skip: None, limit: Some(Expr::literal(1_i64)) });
            }
            (Terminal::Next, [count]) => {
                let limit = self.integer(count)?;
                flow.wrap(|input| Op::Slice { input, skip: None, limit: Some(limit) });
            }
            (Terminal::HasNext, []) => {
                flow.wrap(|input| Op::Slice { input, skip: None, limit: Some(Expr::literal(1_i64)) });
                let count = self.fresh();
                let items = vec![reduce::item(count, AggregateKind::CountRows, vec![])];
                flow.wrap(|input| Op::Aggregate { input, keys: vec![], items });
                let out = self.fresh();
                let some = Expr::compare(Comparison::Greater, Expr::Slot(count), Expr::literal(0_i64));
                flow.bind(out, some);
                flow.set_current(out, ObjectKind::Scalar);
            }
            (Terminal::Iterate, []) => return Ok(false),
            (Terminal::Explain | Terminal::ToString, _) => {
                return Err(Fault::unsupported(step.at, format!("{}()", step.name)));
            }
            (
                Terminal::ToList
                | Terminal::ToBulkSet
                | Terminal::ToSet
                | Terminal::Next
                | Terminal::TryNext
                | Terminal::HasNext
                | Terminal::Iterate,
                _,
            ) => return Err(wrong_arguments(step)),
        }
        Ok(true)
    }

    // ---- arguments

    /// Returns an argument as an expression.
    fn expr(&mut self, arg: &Arg<'_>) -> Result<Expr> {
        if let Some(value) = literal(arg) {
            return Ok(Expr::Literal(value));
        }
        match &arg.kind {
            ArgKind::Now => Ok(Expr::Call(Function::Now(TemporalType::DateTime), vec![])),
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
            ArgKind::Set(_) => Err(Fault::unsupported(arg.at, "a set with variables")),
            ArgKind::Traversal(_) => Err(Fault::unsupported(arg.at, "a traversal as a value")),
            ArgKind::Vertex(id) => {
                let id = self.expr(id)?;
                Ok(self.hold(id, Some(ObjectKind::Vertex)))
            }
            ArgKind::Edge(id) => {
                let id = self.expr(id)?;
                Ok(self.hold(id, Some(ObjectKind::Edge)))
            }
            ArgKind::RandomUuid => Ok(self.hold(call(Function::MakeUuid, vec![]), None)),
            ArgKind::Strategy(name, _) => {
                Err(Fault::unsupported(arg.at, format!("the strategy {name} as a value")))
            }
            ArgKind::Other(name) => Err(Fault::unsupported(arg.at, name.to_string())),
            ArgKind::Constant(name) => Err(Fault::unsupported(arg.at, format!("{name} as a value"))),
            ArgKind::Type(_) => Err(Fault::unsupported(arg.at, "a type as a value")),
            ArgKind::Predicate(_) | ArgKind::Cardinality(..) => {
                Err(Fault::syntax(arg.at, format!("expected a value, found {}", arg.describe())))
            }
            ArgKind::Text(_) | ArgKind::Value(_) => Ok(Expr::Literal(Value::Null)),
        }
    }

    /// Returns an integer argument: a literal or a variable.
    fn integer(&mut self, arg: &Arg<'_>) -> Result<Expr> {
        match &arg.kind {
            ArgKind::Value(value) if value.as_i64().is_some() => Ok(Expr::Literal(value.clone())),
            ArgKind::Variable(name) => Ok(Expr::Parameter((*name).into())),
            ArgKind::Other(name) => Err(Fault::unsupported(arg.at, name.to_string())),
            _ => Err(Fault::syntax(arg.at, format!("expected an integer, found {}", arg.describe()))),
        }
    }

    /// Returns strings (property keys, labels). Skips nulls, because a null is not a key.
    fn texts(&mut self, args: &[Arg<'_>]) -> Result<Vec<Str>> {
        let mut texts = Vec::with_capacity(args.len());
        for arg in args {
            match &arg.kind {
                ArgKind::Text(text) => texts.push(text.clone()),
                ArgKind::Value(Value::Null) => {}
                ArgKind::List(items) if args.len() == 1 => return self.texts(items),
                ArgKind::Variable(_) => {
                    return Err(Fault::unsupported(arg.at, "a variable in place of a key or label here"));
                }
                ArgKind::Other(name) => return Err(Fault::unsupported(arg.at, name.to_string())),
                _ => {
                    return Err(Fault::syntax(
                        arg.at,
                        format!("expected a string, found {}", arg.describe()),
                    ));
                }
            }
        }
        Ok(texts)
    }
}

/// Returns how many operators have this one as their end.
fn depth(op: &Op) -> usize {
    std::iter::successors(op.input(), |op| op.input()).count()
}

/// Whether a step is `and()` or `or()` without arguments.
fn is_infix(step: &Step<'_>) -> bool {
    matches!(step.name, StepName::And | StepName::Or) && step.args.is_empty()
}

/// Returns the value of an argument without variables.
fn literal(arg: &Arg<'_>) -> Option<Value> {
    match &arg.kind {
        ArgKind::Text(text) => Some(Value::String(text.clone())),
        ArgKind::Value(value) => Some(value.clone()),
        ArgKind::Constant(constant) => constant.properties().symbol.map(Value::Symbol),
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

/// Returns the error that no form of a step takes these arguments.
fn wrong_arguments<N: Display>(step: &Step<'_, N>) -> Fault {
    if let Some((at, name)) = step.args.iter().find_map(|arg| match &arg.kind {
        ArgKind::Other(name) => Some((arg.at, name)),
        _ => None,
    }) {
        return Fault::unsupported(at, name.to_string());
    }
    let given: Vec<String> = step.args.iter().map(Arg::describe).collect();
    let given = if given.is_empty() { "no arguments".into() } else { given.join(", ") };
    Fault::syntax(step.at, format!("{}() does not take {given}", step.name))
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

//! Syntax tree to plan: names become slots, clauses become operators.
//!
//! **Scope.** [`Lowering::scope`] lists the visible variables, the innermost last. Each clause takes the operators so
//! far as its input and returns its own on top. WITH replaces the scope by the items that it projects. `WITH a AS b`
//! moves no value: the new name gets the old slot, which is sound because no slot of a variable is written twice.
//!
//! **Subqueries.** Expressions hold no plans. A pattern or subquery inside an expression becomes a plan that binds a
//! slot. It waits in [`Lowering::pending`] until the operator that uses the expression is made;
//! [`Lowering::bind_pending`] then puts a `Bind` below that operator.
//!
//! The scope of a subquery begins with the [`Lowering::outer`] variables of the query around it. They stay in scope to
//! its end, whatever its WITH clauses project, and none of them gets a new meaning.
//!
//! **Replacements.** After a projection some expressions already have a slot: grouping keys, aggregates, items that
//! ORDER BY repeats. [`Lowering::replacements`] holds their trees; `expression` looks there first.
//!
//! **Invariant.** A plan has at most [`MAX_OPERATORS`] nested operators, because later passes walk plans by recursion.
//! The operators that the optimiser will make of a pattern count from the start.

mod aggregate;
pub(crate) mod batches;
pub(crate) mod call;
mod call_subquery;
mod clause_order;
mod expression;
mod label;
mod load_csv;
mod matching;
mod pattern;
mod procedure;
mod projection;
mod scope;
mod shortest;
mod subquery;
mod types;
mod update;

use crate::ast::{Clause, ClauseKind, Expr as Tree, Name, Query, SingleQuery};
use crate::fault::{Fault, Result};
use clause_order::Role;
use scope::Scope;
use std::cell::Cell;
use tidegraph_plan::{BindKind, Column, Expr, Limits, Op, Plan, Procedures, Slot};
use tidegraph_types::Str;
use types::Types;

/// Largest depth to which operators nest in one plan: enough for a pattern of 1,200 hops.
pub(crate) const MAX_OPERATORS: u32 = 5_000;
/// Operators that a vertex of a pattern may become: a scan and a filter.
const OPERATORS_OF_NODE: u32 = 2;
/// Operators that an edge of a pattern may become: an expand and a filter.
const OPERATORS_OF_EDGE: u32 = 2;
/// Operators that an edge may become that is of variable length or bound already.
const OPERATORS_OF_OTHER_EDGE: u32 = 6;

/// Lowers a whole request.
pub(crate) fn lower(query: &Query, procedures: &Procedures, limits: &Limits<'_>) -> Result<Plan> {
    let mut lowering = Lowering::new(procedures, limits);
    let (root, columns) = lowering.query(query, Role::Query, None)?;
    let columns = columns.unwrap_or_default();
    let columns = columns.into_iter().map(|c| Column { name: c.name.into(), slot: c.slot }).collect();
    Ok(Plan { root, slots: lowering.slots, columns, timeout: query.timeout, seed: None, references: false })
}

/// A variable in scope.
#[derive(Clone, Debug)]
struct Variable<'a> {
    name: &'a str,
    slot: Slot,
    types: Types,
    origin: Origin,
}

/// The origin of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    /// An earlier clause.
    Clause,
    /// An item of the current projection that hides the earlier meaning of its name.
    Alias,
    /// A comprehension inside this number of subqueries.
    Local(u32),
}

/// An expression that already has a slot.
#[derive(Clone, Debug)]
struct Replacement<'a> {
    tree: &'a Tree,
    slot: Slot,
    types: Types,
}

/// A subquery to be bound.
struct Pending {
    out: Slot,
    plan: Op,
    kind: BindKind,
}

/// A column that RETURN makes.
struct Projected<'a> {
    name: &'a str,
    slot: Slot,
    types: Types,
}

/// An expression with the types that its value may have.
struct Typed {
    expr: Expr,
    types: Types,
}

impl Typed {
    fn new(expr: Expr, types: Types) -> Self {
        Self { expr, types }
    }
}

struct Lowering<'a> {
    /// What `CALL` may name.
    procedures: &'a Procedures,
    limits: &'a Limits<'a>,
    /// Number of slots in use.
    slots: u32,
    /// Upper bound of the depth of nested operators; of subplans side by side only the deepest counts.
    operators: u32,
    /// Offset of the current clause.
    place: u32,
    scope: Scope<'a>,
    /// The slot of edges that CREATE makes and nothing names.
    unnamed: Option<Slot>,
    pending: Vec<Pending>,
    replacements: Vec<Replacement<'a>>,
    /// A reason for the error message why a variable is missing from the scope.
    hint: Option<&'static str>,
    /// Number of open subqueries.
    level: u32,
    /// Number of variables at the start of `scope` that belong to the queries around the current one.
    outer: usize,
    /// Whether a comprehension is lowered in the hope that no subquery uses its variable.
    trying: bool,
    /// Whether a subquery used the variable of a comprehension around it.
    crossed: Cell<bool>,
}

impl<'a> Lowering<'a> {
    fn new(procedures: &'a Procedures, limits: &'a Limits<'a>) -> Self {
        let (scope, unnamed, pending, replacements) = (Scope::default(), None, vec![], vec![]);
        let (slots, operators, place, hint, level, outer) = (0, 0, 0, None, 0, 0);
        let (trying, crossed) = (false, Cell::new(false));
        Self {
            procedures,
            limits,
            slots,
            operators,
            place,
            scope,
            unnamed,
            pending,
            replacements,
            hint,
            level,
            outer,
            trying,
            crossed,
        }
    }

    fn slot(&mut self) -> Slot {
        self.slots += 1;
        Slot(self.slots - 1)
    }

    /// Counts an operator.
    fn op(&mut self, op: Op) -> Result<Op> {
        self.limits.charge(size_of::<Op>())?;
        self.count_operators(1, self.place)?;
        Ok(op)
    }

    /// Counts operators that a later pass will make.
    fn count_operators(&mut self, operators: u32, place: u32) -> Result<()> {
        self.operators += operators;
        if self.operators > MAX_OPERATORS {
            let message = format!("query is too long, expected at most {MAX_OPERATORS} operators");
            return Err(Fault::syntax(place, message));
        }
        Ok(())
    }

    /// Returns the slots of the outer queries' variables. Variables of comprehensions have none in rows.
    fn outer_slots(&self) -> Vec<Slot> {
        let outer = self.scope.iter().take(self.outer);
        let mut slots: Vec<Slot> =
            outer.filter(|v| !matches!(v.origin, Origin::Local(_))).map(|v| v.slot).collect();
        slots.extend(self.scope.outer_record_slots());
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    fn find(&self, name: &str) -> Option<&Variable<'a>> {
        self.scope.find(name)
    }

    fn declare(&mut self, name: &'a str, slot: Slot, types: Types, origin: Origin) {
        self.scope.push(Variable { name, slot, types, origin });
    }

    /// Declares a variable of a clause. No variable in scope may have its name.
    fn declare_new(&mut self, name: &'a Name, types: Types) -> Result<Slot> {
        if self.find(&name.text).is_some() {
            return Err(already_declared(name));
        }
        let slot = self.slot();
        self.declare(&name.text, slot, types, Origin::Clause);
        Ok(slot)
    }

    /// Returns a variable that must be in scope.
    fn resolve(&self, name: &str, offset: u32) -> Result<(Slot, Types)> {
        self.limits.spend(1)?;
        let Some(variable) = self.find(name) else {
            let hint = self.hint.map(|h| format!(" ({h})")).unwrap_or_default();
            return Err(Fault::syntax(offset, format!("variable `{name}` is not defined{hint}")));
        };
        let found = (variable.slot, variable.types);
        if let Origin::Local(level) = variable.origin
            && level < self.level
        {
            self.crossed.set(true);
            let construct = format!("subquery over the variable `{name}` of a comprehension");
            return Err(Fault::unsupported(offset, construct));
        }
        Ok(found)
    }

    /// Returns the operators with all pending subqueries bound on top: those of the expressions lowered since the last
    /// call.
    fn bind_pending(&mut self, mut input: Op) -> Result<Op> {
        for Pending { out, plan, kind } in std::mem::take(&mut self.pending) {
            input = self.op(Op::Bind { input: Box::new(input), plan: Box::new(plan), out, kind })?;
        }
        Ok(input)
    }

    /// Lowers one query, or several that UNION joins, and returns the columns if it ends with RETURN. `imported`: the
    /// variables that a WITH at its start may import.
    fn query(
        &mut self,
        query: &'a Query,
        role: Role,
        imported: Option<&Scope<'a>>,
    ) -> Result<(Op, Option<Vec<Projected<'a>>>)> {
        if let [only] = &query.parts[..] {
            clause_order::check(&only.clauses, role)?;
            return self.single(only, imported);
        }
        self.union(&query.parts, query.union_all, role, imported)
    }

    fn single(
        &mut self,
        query: &'a SingleQuery,
        imported: Option<&Scope<'a>>,
    ) -> Result<(Op, Option<Vec<Projected<'a>>>)> {
        let clauses = match imported {
            Some(imported) => self.import(&query.clauses, imported)?,
            None => &query.clauses[..],
        };
        self.clauses(Op::Argument, clauses)
    }

    /// Lowers clauses in their order. Returns the columns if the last clause is RETURN.
    fn clauses(&mut self, input: Op, clauses: &'a [Clause]) -> Result<(Op, Option<Vec<Projected<'a>>>)> {
        let mut op = input;
        let mut rest = clauses;
        while let [clause, after @ ..] = rest {
            rest = after;
            let place = clause.place.0;
            self.place = place;
            op = match &clause.kind {
                ClauseKind::Match { optional, patterns, predicate } => {
                    self.match_clause(op, *optional, patterns, predicate.as_ref())?
                }
                ClauseKind::Unwind { list, variable } => self.unwind(op, list, variable)?,
                ClauseKind::LoadCsv { headers, url, variable, terminator } => {
                    self.load_csv(op, *headers, url, variable, *terminator)?
                }
                ClauseKind::With(projection) => {
                    let (op, columns) = self.projection(op, projection, place, true)?;
                    self.scope.truncate(self.outer);
                    for Projected { name, slot, types } in columns {
                        // An outer variable stays what it is.
                        if self.find(name).is_none() {
                            self.declare(name, slot, types, Origin::Clause);
                        }
                    }
                    op
                }
                ClauseKind::Return(projection) => {
                    let (op, columns) = self.projection(op, projection, place, false)?;
                    return Ok((op, Some(columns)));
                }
                ClauseKind::Create(_) => {
                    // Several CREATE clauses in a row are lowered as one, see `create`.
                    let patterns = |c: &'a Clause| match &c.kind {
                        ClauseKind::Create(patterns) => Some(&patterns[..]),
                        _ => None,
                    };
                    let run = 1 + after.iter().take_while(|c| patterns(c).is_some()).count();
                    rest = &after[run - 1..];
                    let run = clauses_from(clause, after, run);
                    self.create(op, run.filter_map(patterns).flatten())?
                }
                ClauseKind::Merge { pattern, on_create, on_match } => {
                    self.merge(op, pattern, on_create, on_match)?
                }
                ClauseKind::Set(items) => self.set(op, items)?,
                ClauseKind::Remove(items) => self.remove(op, items)?,
                ClauseKind::Delete { detach, targets } => self.delete(op, *detach, targets)?,
                ClauseKind::Call(call) => {
                    let is_alone = clauses.len() == 1 && self.level == 0;
                    let (op, columns) = self.call_procedure(op, call, is_alone)?;
                    if is_alone {
                        return Ok((op, Some(columns)));
                    }
                    op
                }
                ClauseKind::Subquery(subquery) => self.call_subquery(op, subquery, place)?,
                ClauseKind::Finish => return Ok((op, None)),
                ClauseKind::Foreach { variable, list, body } => self.foreach(op, variable, list, body)?,
            };
        }
        Ok((op, None))
    }

    fn unwind(&mut self, input: Op, list: &'a Tree, variable: &'a Name) -> Result<Op> {
        let list = self.expr(list)?;
        let input = Box::new(self.bind_pending(input)?);
        // Items of a parameter or a constant are never elements.
        let item = expression::item_types(&list);
        let out = self.declare_new(variable, item)?;
        self.op(Op::Unwind { input, list: list.expr, out })
    }

    fn union(
        &mut self,
        parts: &'a [SingleQuery],
        all: bool,
        role: Role,
        imported: Option<&Scope<'a>>,
    ) -> Result<(Op, Option<Vec<Projected<'a>>>)> {
        let part_role = match role {
            Role::Query => Role::UnionPart,
            Role::Subquery => Role::SubqueryPart,
            other => other,
        };
        let scope = self.scope.clone();
        let mut columns: Option<Vec<Projected<'a>>> = None;
        let mut branches = Vec::with_capacity(parts.len());
        for (i, part) in parts.iter().enumerate() {
            clause_order::check(&part.clauses, part_role)?;
            self.scope.clone_from(&scope);
            let (op, projected) = self.single(part, imported)?;
            if i == 0 {
                columns = projected.as_ref().map(|projected| {
                    let slot =
                        |p: &Projected<'a>| Projected { name: p.name, slot: self.slot(), types: p.types };
                    projected.iter().map(slot).collect()
                });
            }
            let columns = match (&mut columns, &projected) {
                (None, None) => {
                    branches.push(op);
                    continue;
                }
                (Some(columns), Some(_)) => columns,
                _ => {
                    let message = "the parts of a UNION must all end with RETURN, or none of them";
                    return Err(Fault::syntax(part.place.0, message));
                }
            };
            let projected = projected.unwrap_or_default();
            let mut bindings = Vec::with_capacity(columns.len());
            for column in columns.iter_mut() {
                match projected.iter().find(|p| p.name == column.name) {
                    Some(p) if projected.len() == bindings.capacity() => {
                        column.types = column.types | p.types;
                        bindings.push((column.slot, Expr::Slot(p.slot)));
                    }
                    _ => {
                        let names = |all: &mut dyn Iterator<Item = &str>| all.collect::<Vec<_>>().join(", ");
                        let message = format!(
                            "the parts of a UNION return different columns: expected {}, found {}",
                            names(&mut columns.iter().map(|c| c.name)),
                            names(&mut projected.iter().map(|p| p.name)),
                        );
                        return Err(Fault::syntax(part.place.0, message));
                    }
                }
            }
            let op = self.op(Op::Let { input: Box::new(op), bindings })?;
            let mut slots: Vec<Slot> = columns.iter().map(|c| c.slot).collect();
            slots.extend(self.outer_slots());
            branches.push(self.op(Op::Keep { input: Box::new(op), slots })?);
        }
        self.scope = scope;
        let mut op = self.op(Op::Union { input: Box::new(Op::Argument), branches })?;
        if let Some(columns) = columns.as_ref().filter(|_| !all) {
            let by = columns.iter().map(|c| Expr::Slot(c.slot)).collect();
            op = self.op(Op::Distinct { input: Box::new(op), by })?;
        }
        Ok((op, columns))
    }
}

/// Returns a clause and the clauses after it, `count` in all.
fn clauses_from<'a>(
    first: &'a Clause,
    after: &'a [Clause],
    count: usize,
) -> impl Iterator<Item = &'a Clause> {
    std::iter::once(first).chain(after.iter().take(count - 1))
}

fn already_declared(name: &Name) -> Fault {
    Fault::syntax(name.place.0, format!("variable `{}` is already declared", name.text))
}

/// A literal string.
fn text(text: &Str) -> Expr {
    Expr::literal(text.clone())
}

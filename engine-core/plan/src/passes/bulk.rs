//! Makes one row of rows that nothing tells apart, with a weight: Gremlin's bulk, for both languages.
//!
//! Walks multiply: in a graph of 3,500 vertices the fifth `out()` has thousand millions of rows, but at most 3,500
//! different ones. An aggregate that counts or adds does not need them one by one. So the pass walks against the flow of rows
//! with what is asked of them ([`Use`]) and with the slots that are read later, and puts an [`Op::Bulk`] before each operator that
//! costs much for each row, if an operator below it multiplies rows. The aggregate gets the weight as an argument.
//!
//! A repeat merges the rows of each round. Where only is asked which rows there are, or for a first one, its body compares
//! with the rows of all rounds too: then the repeat is a breadth-first search, which ends in graphs with cycles.
//!
//! **Invariants.** Rows are merged only if they agree in all slots that are read later. A weight is read by the aggregate that it
//! was made for, and reaches it: operators in between keep slots and treat each row by itself. A search drops a row only if a
//! row that came before leads to the same rows, apart from the path to them if just one is wanted.

use super::ends::ignores_repeats;
use super::keep::{self, Live};
use crate::{AggregateItem, AggregateKind, ApplyKind, BindKind, Expr, Function, Op, Plan, RepeatTest, Slot};
use fixedbitset::FixedBitSet;

/// What is asked of the rows of an operator.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Use {
    /// Each row, by itself.
    Rows,
    /// Which rows there are, however often they come.
    Once,
    /// One row, whichever comes first.
    First,
    /// How many there are of each, which this slot may hold.
    Weighed(Slot),
}

impl Use {
    /// The weight of rows that are merged; `None`: they are not merged.
    fn merges(self) -> Option<Option<Slot>> {
        match self {
            Use::Rows | Use::First => None,
            Use::Once => Some(None),
            Use::Weighed(weight) => Some(Some(weight)),
        }
    }

    /// What is asked of rows that become at least one row each.
    fn multiplied(self) -> Self {
        if self == Use::First { Use::Rows } else { self }
    }
}

/// Merges rows, and makes searches of repeats.
pub fn run(plan: &mut Plan) {
    // Writes must happen for each row, and algorithms count rows.
    if plan.root.writes() || plan.root.analyzes() {
        return;
    }
    let mut pass = Pass { slots: plan.slots, distinct: FixedBitSet::new(), local: FixedBitSet::new() };
    pass.look_at(&plan.root);
    pass.walk(&mut plan.root, Use::Rows, Live::of(plan.columns.iter().map(|column| column.slot)));
    plan.slots = pass.slots;
}

struct Pass {
    slots: u32,
    /// Slots whose values hardly ever come twice: edges and paths.
    distinct: FixedBitSet,
    /// Slots that are bound only while an expression is computed.
    local: FixedBitSet,
}

impl Pass {
    /// Finds out about the slots of operators.
    fn look_at(&mut self, op: &Op) {
        op.exprs().into_iter().for_each(|expr| self.find_local(expr));
        if let Op::VarExpand { edge_filter: Some((slot, _)), .. }
        | Op::ShortestPath { edge_filter: Some((slot, _)), .. } = op
        {
            self.local.grow_and_insert(slot.0 as usize);
        }
        match op {
            Op::Expand { edge: Some(slot), .. }
            | Op::VarExpand { edges: Some(slot), .. }
            | Op::ScanEdges { out: slot, .. }
            | Op::ShortestPath { edges: slot, .. }
            | Op::NearestPath { edges: slot, .. } => self.distinct.grow_and_insert(slot.0 as usize),
            Op::Intersect { arms, .. } => {
                let edges = arms.iter().filter_map(|arm| arm.edge);
                edges.for_each(|slot| self.distinct.grow_and_insert(slot.0 as usize));
            }
            Op::Let { bindings, .. } => {
                for (slot, expr) in bindings {
                    if let Expr::Call(Function::PathAppend | Function::PathLabel | Function::MakePath, _) =
                        expr
                    {
                        self.distinct.grow_and_insert(slot.0 as usize);
                    }
                }
            }
            _ => {}
        }
        op.children().into_iter().for_each(|child| self.look_at(child));
    }

    fn find_local(&mut self, expr: &Expr) {
        match expr {
            Expr::Comprehension { variable, .. } | Expr::Quantified { variable, .. } => {
                self.local.grow_and_insert(variable.0 as usize);
            }
            Expr::Reduce { accumulator, variable, .. } => {
                [accumulator, variable]
                    .into_iter()
                    .for_each(|slot| self.local.grow_and_insert(slot.0 as usize));
            }
            _ => {}
        }
        expr.children().into_iter().for_each(|inner| self.find_local(inner));
    }

    /// Returns those of the slots that rows bind.
    fn of_rows(&self, slots: &Live) -> Vec<Slot> {
        slots.slots().into_iter().filter(|slot| !self.local.contains(slot.0 as usize)).collect()
    }

    /// Walks from an operator down to its leaf; `after` has the slots that are read after it. Returns whether the weight that is
    /// asked for may be bound.
    fn walk(&mut self, op: &mut Op, usage: Use, after: Live) -> bool {
        if matches!(op, Op::Argument) {
            return false;
        }
        let before = keep::step(op, after.clone(), false);
        // Each of equal rows draws its own number.
        let is_random =
            op.exprs().into_iter().any(Expr::is_random) || op.subplans().into_iter().any(Op::is_random);
        if matches!(op, Op::Repeat { .. }) {
            return self.repeat(op, if is_random { Use::Rows } else { usage }, &after, before);
        }
        let Asked { mut input, subplans, is_same_stream } = asked(op, usage);
        let mut weight_of_aggregate = None;
        if let Op::Aggregate { items, .. } = op {
            (input, weight_of_aggregate) = self.of_aggregate(items);
        }
        if is_random {
            input = Use::Rows;
        }
        let mut merged = false;
        let (after_subplans, costs) = (after_subplans(op, &after), costs_much(op));
        let mut children = op.children_mut().into_iter();
        if let Some(below) = children.next() {
            merged |= self.walk(below, input, before.clone());
            if let Some(weight) = input.merges().filter(|_| costs && multiplies(below)) {
                merged |= self.merge(below, before, weight, false);
            }
        }
        let subplans = if is_random { Use::Rows } else { subplans };
        for plan in children {
            let found = self.walk(plan, subplans, after_subplans.clone());
            merged |= is_same_stream && found;
        }
        if let Some(weight) = weight_of_aggregate.filter(|weight| !merged && weight.0 + 1 == self.slots) {
            self.slots = weight.0;
        }
        match (op, weight_of_aggregate, input) {
            (Op::Aggregate { items, .. }, Some(weight), _) => {
                items.iter_mut().filter(|item| merged && !ignores_repeats(item)).for_each(|item| {
                    item.weighted = true;
                    item.args.push(Expr::Slot(weight));
                });
                false
            }
            (Op::Keep { slots, .. }, _, Use::Weighed(weight)) => {
                slots.extend(merged.then_some(weight));
                merged
            }
            _ => merged && matches!(usage, Use::Weighed(_)),
        }
    }

    /// What an aggregate asks of its rows, and the slot of their weight.
    fn of_aggregate(&mut self, items: &[AggregateItem]) -> (Use, Option<Slot>) {
        if items.iter().all(ignores_repeats) {
            return (Use::Once, None);
        }
        // The order of rows matters to lists and maps.
        let adds = |item: &AggregateItem| {
            use AggregateKind::{Average, Count, CountRows, StdDev, StdDevP, Sum, SumOfTypes};
            ignores_repeats(item)
                || !item.weighted
                    && matches!(item.kind, Average | Count | CountRows | StdDev | StdDevP | Sum | SumOfTypes)
        };
        if !items.iter().all(adds) {
            return (Use::Rows, None);
        }
        let weight = Slot(self.slots);
        self.slots += 1;
        (Use::Weighed(weight), Some(weight))
    }

    /// Merges the rows of an operator by the slots that are read later, unless these tell rows apart. Returns whether they then
    /// have a weight.
    fn merge(&self, op: &mut Op, mut live: Live, weight: Option<Slot>, over_rounds: bool) -> bool {
        weight.into_iter().for_each(|weight| live.remove(weight));
        let by = self.of_rows(&live);
        if by.is_empty() || by.iter().any(|slot| self.distinct.contains(slot.0 as usize)) {
            return false;
        }
        wrap(op, by, weight, over_rounds);
        weight.is_some()
    }

    fn repeat(&mut self, op: &mut Op, usage: Use, after: &Live, around: Live) -> bool {
        let search = if usage == Use::First { self.search(op) } else { None };
        let over_rounds = repeats_states(op, after);
        let Op::Repeat { input, body, until, emit, loops, .. } = op else { return false };
        for test in until.iter_mut().chain(emit) {
            self.walk(&mut test.plan, Use::First, Live::default());
        }
        if let Some(Search { vertex, path }) = search {
            let mut by = vec![vertex];
            if let Some(path) = path {
                // Rows with different paths may not go to the same vertices.
                let seed = Slot(self.slots);
                self.slots += 1;
                let rows = Box::new(std::mem::replace(&mut **input, Op::Argument));
                **input = Op::Let { input: rows, bindings: vec![(seed, Expr::Slot(path))] };
                by.push(seed);
            }
            self.walk(body, Use::Rows, around.clone());
            wrap(body, by, None, true);
            self.walk(input, Use::Rows, around);
            return false;
        }
        let merges = usage.merges().filter(|_| treats_rows_alone(body));
        let usage = if merges.is_some() { usage } else { Use::Rows };
        let mut merged = self.walk(body, usage, around.clone());
        if let Some(weight) = merges {
            let mut state = around.clone();
            state.remove(*loops);
            merged |= self.merge(body, state, weight, over_rounds && weight.is_none());
        }
        merged |= self.walk(input, usage, around);
        merged && matches!(usage, Use::Weighed(_))
    }

    /// Returns how a search finds the first row of a repeat. It walks on once from each vertex. That is enough if where a walk
    /// leads depends on its vertex only. `simplePath()` does not change this: a shortest walk comes to no vertex twice.
    fn search(&self, op: &Op) -> Option<Search> {
        let Op::Repeat { body, until, emit, times: None, loops, .. } = op else { return None };
        if !treats_rows_alone(body) {
            return None;
        }
        let mut state = Live::of(keep::needs(body));
        until.iter().chain(emit).for_each(|test| state.extend(&needs(test)));
        let is_random = until.iter().chain(emit).any(|test| test.plan.is_random());
        if is_random || state.contains(*loops) {
            return None;
        }
        let walk = Walk::of(body)?;
        let tests_path =
            |path: Slot| until.iter().chain(emit).any(|test| needs(test).contains(path)) || walk.reads(path);
        let path = walk.path.filter(|path| state.contains(*path));
        if let Some(path) = path {
            if tests_path(path) {
                return None;
            }
            state.remove(path);
        }
        let [vertex] = self.of_rows(&state)[..] else { return None };
        let path = path.filter(|_| walk.is_simple);
        // With paths that hold no object twice, the walk must be one step from vertex to vertex.
        (path.is_none() || walk.is_step_from(vertex)).then_some(Search { vertex, path })
    }
}

/// What an operator asks of others.
struct Asked {
    input: Use,
    subplans: Use,
    /// Whether the rows of the subplans are rows of the operator, with their slots.
    is_same_stream: bool,
}

/// Returns what an operator asks of its input and of its subplans.
fn asked(op: &Op, usage: Use) -> Asked {
    let of = |input, subplans| Asked { input, subplans, is_same_stream: false };
    match op {
        Op::Distinct { .. } => of(Use::Once, Use::Rows),
        Op::Slice { skip: None, limit: Some(Expr::Literal(limit)), .. } if limit.as_i64() == Some(1) => {
            of(Use::First, Use::Rows)
        }
        Op::Let { .. } | Op::Keep { .. } => of(usage, Use::Rows),
        Op::Bind { kind, .. } => {
            let first = matches!(kind, BindKind::First(_) | BindKind::Exists);
            of(usage, if first { Use::First } else { Use::Rows })
        }
        Op::Apply { kind: ApplyKind::Semi | ApplyKind::Anti, .. } => of(usage.multiplied(), Use::First),
        Op::Apply { kind: ApplyKind::Cross | ApplyKind::Optional(_), .. }
        | Op::Union { .. }
        | Op::Coalesce { .. }
        | Op::Choose { .. } => {
            let keeps = op.subplans().into_iter().all(treats_rows_alone);
            let usage = if keeps { usage.multiplied() } else { Use::Rows };
            Asked { input: usage, subplans: usage, is_same_stream: true }
        }
        Op::ScanVertices { .. }
        | Op::ScanEdges { .. }
        | Op::LookupVertices { .. }
        | Op::LookupEdges { .. }
        | Op::Expand { .. }
        | Op::CountEdges { .. }
        | Op::Intersect { .. }
        | Op::VarExpand { .. }
        | Op::QuantifiedPath { .. }
        | Op::ShortestPath { .. }
        | Op::Filter { .. }
        | Op::Unwind { .. }
        | Op::Sort { .. }
        | Op::Eager { .. } => of(usage.multiplied(), Use::Rows),
        _ => of(Use::Rows, Use::Rows),
    }
}

/// Returns the slots that are read after the subplans of an operator.
fn after_subplans(op: &Op, after: &Live) -> Live {
    match op {
        Op::Apply { kind: ApplyKind::Cross | ApplyKind::Optional(_), .. }
        | Op::Union { .. }
        | Op::Coalesce { .. }
        | Op::Choose { .. }
        | Op::Intersect { .. } => after.clone(),
        Op::Bind { kind: BindKind::First(slot) | BindKind::Collect(slot), .. } => Live::of([*slot]),
        Op::NearestPath { edge, distance, .. } => Live::of([*edge, *distance]),
        Op::Analyze { at, edge, .. } => Live::of([*at, *edge]),
        Op::PathSearch { parts, .. } => {
            let of_part = |part: &crate::PathPart| {
                let groups: Vec<Slot> = part.groups.iter().map(|(slot, _)| *slot).collect();
                part.steps.iter().copied().chain(groups).chain([part.last]).collect::<Vec<_>>()
            };
            Live::of(parts.iter().flat_map(of_part))
        }
        Op::QuantifiedPath { steps, groups, last, .. } => {
            Live::of(steps.iter().chain(groups.iter().map(|(slot, _)| slot)).chain([last]).copied())
        }
        _ => Live::default(),
    }
}

/// Whether each row that an operator gets costs much more than to compare it.
fn costs_much(op: &Op) -> bool {
    matches!(
        op,
        Op::Expand { .. }
            | Op::Intersect { .. }
            | Op::VarExpand { .. }
            | Op::QuantifiedPath { .. }
            | Op::PathSearch { .. }
            | Op::ShortestPath { .. }
            | Op::NearestPath { .. }
            | Op::Apply { .. }
            | Op::Bind { .. }
            | Op::Union { .. }
            | Op::Coalesce { .. }
            | Op::Choose { .. }
            | Op::Repeat { .. }
    )
}

/// Whether an operator on the way down makes several rows of one, since rows were merged last.
fn multiplies(op: &Op) -> bool {
    match op {
        Op::Expand { into, .. } => !into || op.input().is_some_and(multiplies),
        Op::Unwind { .. }
        | Op::Intersect { .. }
        | Op::VarExpand { .. }
        | Op::QuantifiedPath { .. }
        | Op::PathSearch { .. }
        | Op::Union { .. }
        | Op::Repeat { .. }
        | Op::Apply { kind: ApplyKind::Cross | ApplyKind::Optional(_), .. } => true,
        Op::Bulk { .. } | Op::Distinct { .. } | Op::Aggregate { .. } => false,
        other => other.input().is_some_and(multiplies),
    }
}

/// Whether the rows of a subplan keep their slots, each is made of one row, and nothing is random: so a row with a weight is
/// as good as equal rows.
fn treats_rows_alone(plan: &Op) -> bool {
    let mut at = Some(plan);
    while let Some(op) = at {
        let alone = match op {
            Op::Aggregate { .. }
            | Op::Distinct { .. }
            | Op::ChoosePaths { .. }
            | Op::Slice { .. }
            | Op::Top { .. }
            | Op::Tail { .. }
            | Op::TimeLimit { .. }
            | Op::Keep { .. }
            | Op::CallProcedure { .. }
            | Op::LoadCsv { .. }
            | Op::Each { .. }
            | Op::Collect { .. }
            | Op::Merge { .. } => false,
            Op::Apply { plan, kind: ApplyKind::Cross | ApplyKind::Optional(_), .. } => {
                treats_rows_alone(plan)
            }
            Op::Repeat { body, .. } => treats_rows_alone(body),
            Op::Union { .. } | Op::Coalesce { .. } | Op::Choose { .. } => {
                op.subplans().into_iter().all(treats_rows_alone)
            }
            _ => true,
        };
        if !alone {
            return false;
        }
        at = op.input();
    }
    !plan.is_random()
}

fn wrap(op: &mut Op, by: Vec<Slot>, weight: Option<Slot>, over_rounds: bool) {
    let input = Box::new(std::mem::replace(op, Op::Argument));
    *op = Op::Bulk { input, by, weight, over_rounds };
}

/// Returns the slots that a test reads.
fn needs(test: &RepeatTest) -> Live {
    Live::of(keep::needs(&test.plan))
}

/// Whether a row that comes again in a later round leads to nothing that the first one does not lead to.
fn repeats_states(op: &Op, after: &Live) -> bool {
    let Op::Repeat { body, until, emit, times, loops, .. } = op else { return false };
    // The last of a number of rounds yields all of its rows. They were yielded before if all rows are.
    let emits_all = emit.as_ref().is_some_and(|emit| *emit.plan == Op::Argument);
    let counts = after.contains(*loops)
        || until.iter().chain(emit).any(|test| needs(test).contains(*loops))
        || keep::needs(body).contains(loops);
    !counts && (times.is_none() || emits_all)
}

/// A repeat of which one row is wanted, as a search for it.
struct Search {
    /// The slot of the vertex at which a row stands.
    vertex: Slot,
    /// The slot of the path, if no object may come twice in it.
    path: Option<Slot>,
}

/// The operators of a body, from the last to the first.
struct Walk<'p> {
    ops: Vec<&'p Op>,
    /// The slot of the path that the body makes longer.
    path: Option<Slot>,
    /// Whether it drops rows whose path holds an object twice.
    is_simple: bool,
}

impl<'p> Walk<'p> {
    fn of(body: &'p Op) -> Option<Self> {
        let (mut ops, mut at) = (vec![], body);
        while let Some(input) = at.input() {
            ops.push(at);
            at = input;
        }
        let mut walk = Self { ops, path: None, is_simple: false };
        for (slot, expr) in walk.bindings() {
            if is_longer(slot, expr) && walk.path.is_none_or(|path| path == slot) {
                walk.path = Some(slot);
            }
        }
        let tests =
            |path: Slot| walk.ops.iter().flat_map(|op| conjuncts(op)).any(|test| is_simple(test, path));
        walk.is_simple = walk.path.is_some_and(tests);
        Some(walk)
    }

    fn bindings(&self) -> Vec<(Slot, &'p Expr)> {
        let bindings = self.ops.iter().filter_map(|op| match op {
            Op::Let { bindings, .. } => Some(bindings),
            _ => None,
        });
        bindings.flatten().map(|(slot, expr)| (*slot, expr)).collect()
    }

    /// Whether the body does more with its path than to make it longer and to test whether it is simple.
    fn reads(&self, path: Slot) -> bool {
        let uses = |expr: &Expr| {
            let mut found = false;
            expr.for_each_slot(&mut |slot| found |= slot == path);
            found
        };
        self.ops.iter().any(|op| match op {
            Op::Let { bindings, .. } => bindings.iter().any(|(slot, expr)| {
                let rest = match expr {
                    Expr::Call(_, args) if *slot == path && is_longer(*slot, expr) => &args[1..],
                    other => std::slice::from_ref(other),
                };
                rest.iter().any(uses)
            }),
            Op::Filter { .. } => conjuncts(op).iter().any(|test| !is_simple(test, path) && uses(test)),
            other => {
                other.exprs().into_iter().any(uses)
                    || other.subplans().into_iter().any(|plan| keep::needs(plan).contains(&path))
            }
        })
    }

    /// Whether the body goes along one edge from the vertex, adds that edge and its end to the path, or one of both, and
    /// stands at the end then.
    fn is_step_from(&self, vertex: Slot) -> bool {
        let mut step = None;
        for op in &self.ops {
            match op {
                Op::Expand { from, edge, to: Some(to), into: false, .. }
                    if *from == vertex && step.is_none() =>
                {
                    step = Some((*edge, *to));
                }
                Op::Filter { .. }
                | Op::Let { .. }
                | Op::Bind { .. }
                | Op::Apply { kind: ApplyKind::Semi | ApplyKind::Anti, .. } => {}
                _ => return false,
            }
        }
        let Some((edge, to)) = step else { return false };
        let moves = |(slot, expr): &(Slot, &Expr)| *slot == vertex && **expr == Expr::Slot(to);
        let stands_at_end = to == vertex || self.bindings().iter().any(moves);
        for (slot, expr) in self.bindings() {
            if is_longer(slot, expr) {
                let Expr::Call(Function::PathAppend, args) = expr else { continue };
                let added = match &args[..] {
                    [_, Expr::Slot(added), ..] => *added == to || Some(*added) == edge || *added == vertex,
                    _ => false,
                };
                if !added {
                    return false;
                }
            } else if slot == to || Some(slot) == edge || slot == vertex && *expr != Expr::Slot(to) {
                return false;
            }
        }
        stands_at_end
    }
}

/// Whether a binding makes the path in its slot longer, or gives its last object labels.
fn is_longer(slot: Slot, expr: &Expr) -> bool {
    matches!(expr, Expr::Call(Function::PathAppend | Function::PathLabel, args) if args.first() == Some(&Expr::Slot(slot)))
}

fn is_simple(test: &Expr, path: Slot) -> bool {
    matches!(test, Expr::Call(Function::PathIsSimple, args) if args[..] == [Expr::Slot(path)])
}

/// Returns the conditions of a filter.
fn conjuncts(op: &Op) -> &[Expr] {
    match op {
        Op::Filter { predicate: Expr::And(all), .. } => all,
        Op::Filter { predicate, .. } => std::slice::from_ref(predicate),
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;
    use tidegraph_types::Direction;

    fn expand(input: Op, from: u32, to: u32) -> Op {
        Op::Expand {
            input: Box::new(input),
            from: Slot(from),
            direction: Direction::Out,
            labels: vec![],
            edge: None,
            to: Some(Slot(to)),
            into: false,
            loops_once: false,
            keep: None,
        }
    }

    fn start() -> Op {
        Op::LookupVertices { input: Box::new(Op::Argument), ids: Expr::literal("a"), out: Slot(0) }
    }

    fn repeat(body: Op, until: Option<Op>, times: Option<i64>) -> Op {
        let until = until.map(|plan| RepeatTest { before: false, plan: Box::new(plan) });
        let (input, body, times) = (Box::new(start()), Box::new(body), times.map(Expr::literal));
        Op::Repeat { input, body, until, emit: None, times, times_before: false, loops: Slot(5) }
    }

    fn aggregate(input: Op, kind: AggregateKind, args: Vec<Expr>) -> Op {
        let item = AggregateItem {
            out: Slot(9),
            kind,
            args,
            distinct: false,
            empty_is_unbound: false,
            weighted: false,
        };
        Op::Aggregate { input: Box::new(input), keys: vec![(Slot(8), property(2))], items: vec![item] }
    }

    fn property(slot: u32) -> Expr {
        Expr::Property(Box::new(Expr::Slot(Slot(slot))), "k".into())
    }

    fn text(root: Op, answer: u32) -> String {
        let columns = vec![Column { name: "r".into(), slot: Slot(answer) }];
        let mut plan = Plan { root, slots: 10, columns, timeout: None, seed: None, references: false };
        run(&mut plan);
        plan.to_string()
    }

    fn first(input: Op) -> Op {
        Op::Slice { input: Box::new(input), skip: None, limit: Some(Expr::literal(1_i64)) }
    }

    #[test]
    fn rows_are_merged_before_a_step_if_they_are_counted() {
        let walk = || expand(expand(start(), 0, 1), 1, 2);
        let counted = text(aggregate(walk(), AggregateKind::CountRows, vec![]), 9);
        assert!(counted.contains("bulk [$1] with weight $10\nexpand $1 -[]-> $2"), "{counted}");
        assert!(counted.contains("CountRows() times $10"), "{counted}");
        // The order of a list, and rows that are answered.
        let listed = text(aggregate(walk(), AggregateKind::Collect, vec![property(2)]), 9);
        assert!(!listed.contains("bulk"), "{listed}");
        assert!(!text(walk(), 2).contains("bulk"));
        // Random numbers are drawn for each row.
        let random = Op::Filter {
            input: Box::new(expand(start(), 0, 1)),
            predicate: Expr::compare(
                crate::Comparison::Less,
                Expr::Call(Function::Rand, vec![]),
                Expr::literal(0.5),
            ),
        };
        let drawn = text(aggregate(expand(random, 1, 2), AggregateKind::CountRows, vec![]), 9);
        let after = drawn.find("filter").map(|at| drawn[..at].contains("bulk"));
        assert_eq!(after, Some(false), "{drawn}");
    }

    #[test]
    fn a_round_merges_its_rows_and_a_search_those_of_all_rounds() {
        let body = || expand(Op::Argument, 2, 2);
        let counted = text(aggregate(repeat(body(), None, Some(3)), AggregateKind::CountRows, vec![]), 9);
        assert!(counted.contains("bulk [$2] with weight $10\n"), "{counted}");
        let distinct = |input| Op::Distinct { input: Box::new(input), by: vec![Expr::Slot(Slot(2))] };
        let test = || Op::Filter { input: Box::new(Op::Argument), predicate: property(2) };
        let ends = text(distinct(repeat(body(), Some(test()), None)), 2);
        assert!(ends.contains("bulk [$2] over all rounds"), "{ends}");
        // A vertex of an early round is not one of the last round.
        let ends = text(distinct(repeat(body(), None, Some(3))), 2);
        assert!(ends.contains("bulk [$2]\n"), "{ends}");
        let loops = Op::Filter { input: Box::new(Op::Argument), predicate: Expr::Slot(Slot(5)) };
        let ends = text(distinct(repeat(body(), Some(loops), None)), 2);
        assert!(ends.contains("bulk [$2]\n"), "{ends}");
    }

    #[test]
    fn a_search_for_one_path_may_drop_others() {
        let longer = |input, added| {
            let path = Expr::Call(Function::PathAppend, vec![Expr::Slot(Slot(6)), Expr::Slot(Slot(added))]);
            Op::Let { input: Box::new(input), bindings: vec![(Slot(6), path)] }
        };
        let simple = |input| Op::Filter {
            input: Box::new(input),
            predicate: Expr::Call(Function::PathIsSimple, vec![Expr::Slot(Slot(6))]),
        };
        let test = || Op::Filter { input: Box::new(Op::Argument), predicate: property(2) };
        let search = |body| text(first(repeat(body, Some(test()), None)), 6);
        let one_step = search(simple(longer(expand(Op::Argument, 2, 2), 2)));
        assert!(
            one_step.contains("let $10 = $6") && one_step.contains("bulk [$2, $10] over all rounds"),
            "{one_step}"
        );
        let any = search(longer(expand(Op::Argument, 2, 2), 2));
        assert!(any.contains("bulk [$2] over all rounds"), "{any}");
        // The way to a vertex decides where two steps may lead.
        let two_steps = longer(expand(longer(expand(Op::Argument, 2, 1), 1), 1, 2), 2);
        assert!(!search(simple(two_steps)).contains("bulk"));
        // Several paths are wanted.
        let all = text(repeat(simple(longer(expand(Op::Argument, 2, 2), 2)), Some(test()), None), 6);
        assert!(!all.contains("bulk"), "{all}");
    }
}

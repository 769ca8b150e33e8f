//! `select` and `project`.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::compile::by::By;
use crate::compile::filter::Subject;
use crate::names::Pop;
use tidegraph_plan::{Comparison, Expr, Function, Slot};
use tidegraph_types::{Str, Value};

impl Compiler {
    pub(super) fn select(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let given = step.args.first().and_then(Arg::constant).and_then(|constant| constant.properties().pop);
        let (pop, args) = match given {
            Some(pop) => (pop, &step.args[1..]),
            None => (Pop::Last, step.args.as_slice()),
        };
        match args {
            [Arg { kind: ArgKind::Constant(column @ (Constant::Keys | Constant::Values)), .. }]
                if step.args.len() == 1 =>
            {
                let cur = flow.cur(step)?;
                let function =
                    if *column == Constant::Keys { Function::MapKeys } else { Function::MapValues };
                // A map gives a list, an entry gives its key or value.
                let kind =
                    if flow.scope.kind == ObjectKind::Map { ObjectKind::List } else { ObjectKind::Unknown };
                let out = self.or_fresh(dest);
                flow.bind(out, call(function, vec![Expr::Slot(cur)]));
                flow.set_current(out, kind);
                Ok(())
            }
            [Arg { kind: ArgKind::Traversal(steps), .. }] => {
                let (cur, object) = (flow.cur(step)?, Subject::current(flow, step)?);
                let key = self.child_value(flow, steps, object)?;
                let key = self.slot_of(flow, key.expr);
                let entry = call(Function::MapGet, vec![Expr::Slot(cur), Expr::Slot(key)]);
                let out = self.or_fresh(dest);
                let mut value = self.computed_label(flow, pop, key, entry);
                let mut test = Expr::IsBound(out);
                if let [by] = self.bys(cursor.take_all(StepName::By))?.as_slice()
                    && !matches!(by, By::Identity)
                {
                    let selected = self.slot_of(flow, value);
                    flow.filter(Expr::IsBound(selected));
                    value = self.by_value(flow, by, Expr::Slot(selected), ObjectKind::Unknown)?.expr;
                    test = not(is_null(Expr::Slot(out)));
                }
                flow.bind(out, value);
                flow.filter(test);
                flow.set_current(out, ObjectKind::Unknown);
                Ok(())
            }
            [_, ..] => {
                // As the first step, it reads side effects.
                let names = self.texts(args)?;
                if names.len() != args.len() {
                    return Err(wrong_arguments(step));
                }
                let bys = self.bys(cursor.take_all(StepName::By))?;
                if let [name] = names.as_slice() {
                    self.select_one(flow, pop, (name, step.at), bys.first(), dest)
                } else {
                    self.select_many(flow, pop, (&names, step.at), &bys, dest)
                }
            }
            [] => Err(wrong_arguments(step)),
        }
    }

    /// Returns the entry of the current map that has a computed name, or else the object or objects with the label that has it.
    fn computed_label(&mut self, flow: &mut Flow, pop: Pop, key: Slot, entry: Expr) -> Expr {
        let mut branches = vec![];
        let found = self.fresh();
        flow.bind(found, entry);
        branches.push((Expr::IsBound(found), Expr::Slot(found)));
        let has_labels = !flow.scope.labels.is_empty();
        match self.path.filter(|_| pop != Pop::Last && has_labels) {
            Some(path) => {
                let name = call(Function::Coalesce, vec![Expr::Slot(key), Expr::literal("")]);
                let all = self.fresh();
                flow.bind(all, call(Function::PathSelectAll, vec![Expr::Slot(path), name]));
                branches.extend(popped_values(pop, all));
            }
            None => {
                let labels = flow.scope.labels.iter();
                branches.extend(labels.map(|(name, label)| {
                    let test = Expr::compare(Comparison::Equal, Expr::Slot(key), text(name));
                    (test, Expr::Slot(label.slot))
                }));
            }
        }
        Expr::Case { branches, otherwise: Box::new(Expr::Literal(Value::Unbound)) }
    }

    fn select_one(
        &mut self,
        flow: &mut Flow,
        pop: Pop,
        (name, place): (&Str, usize),
        by: Option<&By<'_, '_>>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let (object, certain, kind) = self.popped(flow, pop, name, place)?;
        let plain = matches!(by, None | Some(By::Identity));
        if plain
            && certain
            && let Expr::Slot(slot) = object
        {
            // The label's object already has a slot.
            flow.set_current(slot, kind);
            return Ok(());
        }
        let (value, productive, kind) = if plain {
            (object, certain, kind)
        } else {
            let slot = self.slot_of(flow, object);
            if !certain {
                flow.filter(not(is_null(Expr::Slot(slot))));
            }
            let value = match by {
                Some(by) => self.by_value(flow, by, Expr::Slot(slot), kind)?,
                None => return Ok(()),
            };
            (value.expr, value.productive, ObjectKind::Unknown)
        };
        let out = self.or_fresh(dest);
        // A null entry of a map is selected. A `by()` that gives null has no result.
        let test = match &value {
            _ if productive => None,
            Expr::Call(Function::MapGet, _) => Some(Expr::IsBound(out)),
            _ => Some(not(is_null(Expr::Slot(out)))),
        };
        flow.bind(out, value);
        if let Some(test) = test {
            flow.filter(test);
        }
        flow.set_current(out, kind);
        Ok(())
    }

    fn select_many(
        &mut self,
        flow: &mut Flow,
        pop: Pop,
        (names, place): (&[Str], usize),
        bys: &[By<'_, '_>],
        dest: Option<Slot>,
    ) -> Result<()> {
        let mut entries = Vec::with_capacity(names.len() * 2);
        for (index, name) in names.iter().enumerate() {
            let (object, certain, kind) = self.popped(flow, pop, name, place)?;
            // A null entry of a map is selected.
            let entry = matches!(object, Expr::Call(Function::MapGet, _));
            let slot = self.slot_of(flow, object);
            if !certain {
                let null = || not(is_null(Expr::Slot(slot)));
                flow.filter(if entry { Expr::IsBound(slot) } else { null() });
            }
            let value = match bys.get(index % bys.len().max(1)) {
                None | Some(By::Identity) => Expr::Slot(slot),
                Some(by) => {
                    let value = self.by_value(flow, by, Expr::Slot(slot), kind)?;
                    if value.productive {
                        value.expr
                    } else {
                        let slot = self.slot_of(flow, value.expr);
                        flow.filter(not(is_null(Expr::Slot(slot))));
                        Expr::Slot(slot)
                    }
                }
            };
            entries.push(text(name));
            entries.push(value);
        }
        let out = self.or_fresh(dest);
        flow.bind(out, call(Function::MakeMap, entries));
        flow.set_current(out, ObjectKind::Map);
        Ok(())
    }

    /// Returns the object or objects of a label that a `Pop` takes, whether there always is one, and the kind.
    fn popped(
        &mut self,
        flow: &mut Flow,
        pop: Pop,
        name: &Str,
        place: usize,
    ) -> Result<(Expr, bool, ObjectKind)> {
        // A side effect is one value for every `Pop`.
        let from_path = pop != Pop::Last && self.side(name, place)?.is_none();
        let Some(path) = self.path.filter(|_| from_path) else {
            return self.labelled(flow, name, place);
        };
        let all = self.fresh();
        flow.bind(all, call(Function::PathSelectAll, vec![Expr::Slot(path), text(name)]));
        let otherwise = Box::new(Expr::Literal(Value::Unbound));
        let value = match pop {
            Pop::First => call(Function::Head, vec![Expr::Slot(all)]),
            _ => Expr::Case { branches: popped_values(pop, all), otherwise },
        };
        let kind = if pop == Pop::All { ObjectKind::List } else { ObjectKind::Unknown };
        Ok(match flow.scope.cur {
            Some(cur) if flow.scope.kind.may_be_map() => {
                let entry = call(Function::MapGet, vec![Expr::Slot(cur), text(name)]);
                (call(Function::Coalesce, vec![entry, value]), false, ObjectKind::Unknown)
            }
            _ => (value, false, kind),
        })
    }

    pub(super) fn project(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let names = self.texts(&step.args)?;
        if names.is_empty() || names.len() != step.args.len() {
            return Err(wrong_arguments(step));
        }
        let cur = flow.cur(step)?;
        let kind = flow.scope.kind;
        let bys = self.bys(cursor.take_all(StepName::By))?;
        let mut entries = Vec::with_capacity(names.len() * 2);
        for (index, name) in names.iter().enumerate() {
            let by = bys.get(index % bys.len().max(1)).unwrap_or(&By::Identity);
            let value = self.by_value(flow, by, Expr::Slot(cur), kind)?;
            entries.push(text(name));
            entries.push(self.optional_value(flow, value));
        }
        let out = self.or_fresh(dest);
        flow.bind(out, call(Function::MakeMap, entries));
        flow.set_current(out, ObjectKind::Map);
        Ok(())
    }
}

/// Returns what a `Pop` takes of the list of all objects with a label: conditions on the list, and values.
fn popped_values(pop: Pop, all: Slot) -> Vec<(Expr, Expr)> {
    let sized = |comparison, count: i64| {
        Expr::compare(comparison, call(Function::Size, vec![Expr::Slot(all)]), Expr::literal(count))
    };
    let head = call(Function::Head, vec![Expr::Slot(all)]);
    match pop {
        Pop::First => vec![(sized(Comparison::Greater, 0), head)],
        Pop::All => vec![(sized(Comparison::Greater, 0), Expr::Slot(all))],
        // `Last` needs no list.
        Pop::Mixed | Pop::Last => {
            vec![(sized(Comparison::Equal, 1), head), (sized(Comparison::Greater, 1), Expr::Slot(all))]
        }
    }
}

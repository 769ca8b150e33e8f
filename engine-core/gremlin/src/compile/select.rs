//! `select` and `project`.

use super::{Compiler, Cursor, Flow, Kind, Result, call, is_null, not, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step};
use crate::compile::by::By;
use crate::compile::filter::At;
use crate::error::Failure;
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
        let cur = flow.cur(step)?;
        let (pop, args) = match step.args.split_first() {
            Some((Arg { kind: ArgKind::Constant(pop), .. }, rest))
                if matches!(*pop, "first" | "last" | "all" | "mixed") =>
            {
                (*pop, rest)
            }
            _ => ("last", step.args.as_slice()),
        };
        match args {
            [Arg { kind: ArgKind::Constant(column @ ("keys" | "values")), .. }] if step.args.len() == 1 => {
                let function = if *column == "keys" { Function::MapKeys } else { Function::MapValues };
                // Of a map these are lists, of an entry they are what stands in it.
                let kind = if flow.scope.kind == Kind::Map { Kind::List } else { Kind::Unknown };
                let out = self.or_fresh(dest);
                flow.bind(out, call(function, vec![Expr::Slot(cur)]));
                flow.goto(out, kind);
                Ok(())
            }
            [Arg { kind: ArgKind::Traversal(steps), at }] => {
                if pop != "last" {
                    return Err(Failure::unsupported(*at, "select(pop, traversal)"));
                }
                let object = At::cur(flow, step)?;
                let key = self.child_value(flow, steps, object)?;
                let out = self.or_fresh(dest);
                flow.bind(out, call(Function::MapGet, vec![Expr::Slot(cur), key.expr]));
                flow.filter(Expr::IsBound(out));
                flow.goto(out, Kind::Unknown);
                Ok(())
            }
            [_, ..] => {
                let names = self.texts(args)?;
                if names.len() != args.len() {
                    return Err(wrong_arguments(step));
                }
                let bys = self.bys(cursor.take_all("by"))?;
                if let [name] = names.as_slice() {
                    self.select_one(flow, pop, (name, step.at), bys.first(), dest)
                } else {
                    self.select_many(flow, pop, (&names, step.at), &bys, dest)
                }
            }
            [] => Err(wrong_arguments(step)),
        }
    }

    fn select_one(
        &mut self,
        flow: &mut Flow,
        pop: &str,
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
            // The label's object stands in a slot already.
            flow.goto(slot, kind);
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
            (value.expr, value.productive, Kind::Unknown)
        };
        let out = self.or_fresh(dest);
        // Entries of maps may be null and are selected; a `by()` that gives null gives nothing.
        let test = match &value {
            _ if productive => None,
            Expr::Call(Function::MapGet, _) => Some(Expr::IsBound(out)),
            _ => Some(not(is_null(Expr::Slot(out)))),
        };
        flow.bind(out, value);
        if let Some(test) = test {
            flow.filter(test);
        }
        flow.goto(out, kind);
        Ok(())
    }

    fn select_many(
        &mut self,
        flow: &mut Flow,
        pop: &str,
        (names, place): (&[Str], usize),
        bys: &[By<'_, '_>],
        dest: Option<Slot>,
    ) -> Result<()> {
        let mut entries = Vec::with_capacity(names.len() * 2);
        for (index, name) in names.iter().enumerate() {
            let (object, certain, kind) = self.popped(flow, pop, name, place)?;
            // Entries of maps may be null and are selected.
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
        flow.goto(out, Kind::Map);
        Ok(())
    }

    /// The object of a label for a `Pop`, whether there always is one, and its kind.
    fn popped(&mut self, flow: &mut Flow, pop: &str, name: &Str, place: usize) -> Result<(Expr, bool, Kind)> {
        // A side effect is one value, whatever is popped.
        let from_path = pop != "last" && flow.side(name, place)?.is_none();
        let Some(path) = self.path.filter(|_| from_path) else {
            return self.labelled(flow, name, place);
        };
        let all = self.fresh();
        flow.bind(all, call(Function::PathSelectAll, vec![Expr::Slot(path), text(name)]));
        let size = || call(Function::Size, vec![Expr::Slot(all)]);
        let head = || call(Function::Head, vec![Expr::Slot(all)]);
        let sized = |comparison, count: i64| Expr::compare(comparison, size(), Expr::literal(count));
        let null = || Box::new(Expr::Literal(Value::Unbound));
        let (value, kind) = match pop {
            "first" => (head(), Kind::Unknown),
            "all" => {
                let some = (sized(Comparison::Greater, 0), Expr::Slot(all));
                (Expr::Case { branches: vec![some], otherwise: null() }, Kind::List)
            }
            _ => {
                let one = (sized(Comparison::Equal, 1), head());
                let more = (sized(Comparison::Greater, 1), Expr::Slot(all));
                (Expr::Case { branches: vec![one, more], otherwise: null() }, Kind::Unknown)
            }
        };
        Ok(match flow.scope.cur {
            Some(cur) if flow.scope.kind.may_be_map() => {
                let entry = call(Function::MapGet, vec![Expr::Slot(cur), text(name)]);
                (call(Function::Coalesce, vec![entry, value]), false, Kind::Unknown)
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
        let bys = self.bys(cursor.take_all("by"))?;
        let mut entries = Vec::with_capacity(names.len() * 2);
        for (index, name) in names.iter().enumerate() {
            let by = bys.get(index % bys.len().max(1)).unwrap_or(&By::Identity);
            let value = self.by_value(flow, by, Expr::Slot(cur), kind)?;
            entries.push(text(name));
            entries.push(self.optional_value(flow, value));
        }
        let out = self.or_fresh(dest);
        flow.bind(out, call(Function::MakeMap, entries));
        flow.goto(out, Kind::Map);
        Ok(())
    }
}

//! Which function translates which step.

use super::{Compiler, Cursor, Flow, Kind, Label, Result, call, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step};
use crate::error::Failure;
use tidegraph_plan::{Comparison, Expr, Function, Op, Slot};
use tidegraph_types::Value;

/// Whether the first argument says `local`.
pub(super) fn is_local(step: &Step<'_>) -> bool {
    step.args.first().and_then(Arg::constant) == Some("local")
}

/// Whether a step makes a new object (the others test it, name it or act on it).
pub(super) fn moves(step: &Step<'_>) -> bool {
    match step.name {
        "dedup" | "order" | "limit" | "range" | "sample" | "skip" | "tail" => is_local(step),
        "group" | "groupCount" => step.args.is_empty(),
        "to" => matches!(step.args.first().and_then(Arg::constant), Some("IN" | "OUT" | "BOTH")),
        "V" | "E" | "addE" | "addV" | "both" | "bothE" | "bothV" | "choose" | "coalesce" | "constant"
        | "cap" | "count" | "element" | "elementMap" | "flatMap" | "fold" | "id" | "in" | "inE" | "inV"
        | "inject" | "key" | "label" | "local" | "loops" | "map" | "max" | "mean" | "mergeE" | "mergeV"
        | "min" | "optional" | "otherV" | "out" | "outE" | "outV" | "path" | "project" | "properties"
        | "propertyMap" | "repeat" | "select" | "sum" | "toE" | "toV" | "unfold" | "union" | "value"
        | "valueMap" | "values" => true,
        _ => false,
    }
}

impl Compiler {
    /// Translates one step; its modulators are taken from the cursor.
    pub(super) fn step<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
        index: usize,
    ) -> Result<()> {
        let dest = cursor.dest_of(index);
        match step.name {
            "V" | "E" => self.elements(flow, cursor, step, dest),
            "inject" => self.inject(flow, step, dest),
            "out" | "in" | "both" | "outE" | "inE" | "bothE" | "toE" => {
                self.expand(flow, cursor, step, index)
            }
            "to" if moves(step) => self.expand(flow, cursor, step, index),
            "inV" | "outV" | "bothV" | "otherV" | "toV" => self.ends(flow, step, dest),
            "has" | "hasId" | "hasKey" | "hasLabel" | "hasNot" | "hasValue" | "is" | "and" | "or" | "not"
            | "filter" | "where" => self.filter_step(flow, cursor, step),
            "values" | "properties" | "valueMap" | "elementMap" | "propertyMap" => {
                self.property_step(flow, cursor, step, dest)
            }
            "id" => self.simple(flow, step, dest, Function::Id),
            "label" => self.simple(flow, step, dest, Function::Label),
            "key" => self.simple(flow, step, dest, Function::PropertyKey),
            "value" => self.simple(flow, step, dest, Function::PropertyValue),
            "element" => {
                self.simple(flow, step, dest, Function::PropertyOwner)?;
                flow.scope.kind = Kind::Unknown;
                Ok(())
            }
            "loops" => self.loops(flow, step, dest),
            "constant" => self.constant(flow, step, dest),
            "as" => self.name(flow, cursor, step, index),
            "select" => self.select(flow, cursor, step, dest),
            "project" => self.project(flow, cursor, step, dest),
            "path" | "simplePath" | "cyclicPath" => self.path_step(flow, cursor, step, dest),
            "dedup" | "order" | "limit" | "range" | "sample" | "skip" | "tail" if is_local(step) => {
                self.local_scope(flow, cursor, step, dest)
            }
            "dedup" => self.dedup(flow, cursor, step),
            "order" => self.order(flow, cursor, step),
            "sample" => self.sample(flow, cursor, step),
            "coin" => {
                flow.cur(step)?;
                let test = self.coin(step)?;
                flow.filter(test);
                Ok(())
            }
            "limit" | "range" | "skip" | "tail" => self.slice(flow, step),
            "count" | "sum" | "min" | "max" | "mean" if is_local(step) => {
                self.local_scope(flow, cursor, step, dest)
            }
            "count" | "sum" | "min" | "max" | "mean" | "fold" => self.reduce(flow, step, dest),
            "group" | "groupCount" if !step.args.is_empty() => self.group_side(flow, cursor, step),
            "group" | "groupCount" => self.group(flow, cursor, step, dest),
            "aggregate" | "store" => self.aggregate(flow, cursor, step),
            "cap" => self.cap(flow, step),
            "fail" => self.fail(flow, step),
            "unfold" => self.unfold(flow, step, dest),
            "union" => self.union(flow, step, dest),
            "choose" => self.choose(flow, cursor, step, dest),
            "coalesce" => self.coalesce(flow, step, dest),
            "optional" => self.optional(flow, step, dest),
            "local" | "flatMap" | "map" => self.nested(flow, step, dest),
            "repeat" | "emit" | "until" | "times" => self.repeat(flow, cursor, index),
            "addV" => self.add_vertex(flow, cursor, step, dest),
            "addE" => self.add_edge(flow, cursor, step, dest),
            "mergeV" => self.merge_vertex(flow, cursor, step, dest),
            "mergeE" => self.merge_edge(flow, cursor, step, dest),
            "property" => self.set_properties(flow, cursor, index),
            "drop" => self.drop_elements(flow, step),
            "sideEffect" => self.side_effect(flow, step),
            "identity" | "barrier" => self.nothing(step),
            "discard" | "none" if step.args.is_empty() => {
                flow.stop();
                Ok(())
            }
            "with" => Err(Failure::unsupported(step.at, "with() after this step")),
            "by" | "from" | "to" | "option" => {
                Err(Failure::syntax(step.at, format!("{}() modulates no step here", step.name)))
            }
            other => Err(Failure::unsupported(step.at, format!("{other}()"))),
        }
    }

    fn nothing(&mut self, step: &Step<'_>) -> Result<()> {
        match step.args.as_slice() {
            [] => Ok(()),
            [Arg { kind: ArgKind::Value(value), .. }]
                if step.name == "barrier" && value.as_i64().is_some() =>
            {
                Ok(())
            }
            [Arg { kind: ArgKind::Constant("normSack"), .. }] if step.name == "barrier" => {
                Err(Failure::unsupported(step.at, "barrier(normSack)"))
            }
            _ => Err(wrong_arguments(step)),
        }
    }

    /// A step that is a function of the current object.
    fn simple(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        dest: Option<Slot>,
        function: Function,
    ) -> Result<()> {
        if !step.args.is_empty() {
            return Err(wrong_arguments(step));
        }
        let cur = flow.cur(step)?;
        let out = self.or_fresh(dest);
        flow.bind(out, call(function, vec![Expr::Slot(cur)]));
        flow.goto(out, Kind::Scalar);
        Ok(())
    }

    /// `coin(p)`: true in so many cases of 1.
    pub(super) fn coin(&mut self, step: &Step<'_>) -> Result<Expr> {
        let chance = match step.args.as_slice() {
            [arg @ Arg { kind: ArgKind::Variable(_), .. }] => self.expr(arg)?,
            [arg @ Arg { kind: ArgKind::Value(value), .. }] if value.as_f64().is_some() => self.expr(arg)?,
            _ => return Err(wrong_arguments(step)),
        };
        Ok(Expr::compare(Comparison::Less, call(Function::Rand, vec![]), chance))
    }

    fn constant(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let [value] = step.args.as_slice() else { return Err(wrong_arguments(step)) };
        let value = self.expr(value)?;
        flow.cur(step)?;
        let out = self.or_fresh(dest);
        flow.bind(out, value);
        flow.goto(out, Kind::Unknown);
        Ok(())
    }

    /// `fail(message)`: a traverser that comes here ends the request.
    fn fail(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<()> {
        let message = match step.args.as_slice() {
            [] => Expr::literal("fail() step triggered"),
            [Arg { kind: ArgKind::Text(message), .. }] => super::text(message),
            _ => return Err(wrong_arguments(step)),
        };
        flow.cur(step)?;
        self.fails = true;
        flow.filter(call(Function::RequireNotNull, vec![Expr::Literal(Value::Null), message]));
        Ok(())
    }

    fn loops(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let value = loops(flow, step)?;
        let out = self.or_fresh(dest);
        flow.bind(out, value);
        flow.goto(out, Kind::Scalar);
        Ok(())
    }

    fn unfold(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        if !step.args.is_empty() {
            return Err(wrong_arguments(step));
        }
        let cur = Expr::Slot(flow.cur(step)?);
        let list = if flow.scope.kind == Kind::List { cur } else { call(Function::Unfold, vec![cur]) };
        let out = self.or_fresh(dest);
        flow.wrap(|input| Op::Unwind { input, list, out });
        flow.scope.single = false;
        flow.goto(out, Kind::Unknown);
        Ok(())
    }

    /// `as(label…)`
    fn name(
        &mut self,
        flow: &mut Flow,
        cursor: &Cursor<'_, '_>,
        step: &Step<'_>,
        index: usize,
    ) -> Result<()> {
        if step.args.is_empty() {
            return Err(wrong_arguments(step));
        }
        let cur = flow.cur(step)?;
        let names = self.texts(&step.args)?;
        for name in &names {
            let (count, global) = self.labels.get(name).copied().unwrap_or((2, None));
            let slot = if count == 1 && flow.scope.alias {
                cur
            } else {
                let slot = global.unwrap_or_else(|| self.fresh());
                self.labels.insert(name.clone(), (count, Some(slot)));
                flow.bind(slot, Expr::Slot(cur));
                slot
            };
            let label = Label { slot, certain: true, kind: flow.scope.kind };
            flow.scope.labels.retain(|(n, _)| n != name);
            flow.scope.labels.push((name.clone(), label));
        }
        if let Some(path) = self.path
            && index >= cursor.labelled
        {
            let mut args = vec![Expr::Slot(path)];
            args.extend(names.iter().map(super::text));
            flow.bind(path, call(Function::PathLabel, args));
        }
        Ok(())
    }

    /// Adds the current object to the path, with the labels of the `as()` steps that follow directly.
    pub(super) fn extend_path(&mut self, flow: &mut Flow, cursor: &mut Cursor<'_, '_>) {
        let (Some(path), Some(cur)) = (self.path, flow.scope.cur) else { return };
        let before = if std::mem::take(&mut flow.scope.cut) {
            Expr::Literal(tidegraph_types::Value::Unbound)
        } else {
            Expr::Slot(path)
        };
        let mut args = vec![before, Expr::Slot(cur)];
        let named = cursor.steps[cursor.next..].iter().take_while(|s| s.name == "as");
        let mut count = 0;
        for step in named {
            count += 1;
            args.extend(step.args.iter().filter_map(Arg::text).map(super::text));
        }
        cursor.labelled = cursor.next + count;
        flow.bind(path, call(Function::PathAppend, args));
    }
}

/// `loops()` or `loops(name)` as an expression.
pub(super) fn loops(flow: &Flow, step: &Step<'_>) -> Result<Expr> {
    let found = match step.args.as_slice() {
        [] => flow.scope.loops.last(),
        [Arg { kind: ArgKind::Text(name), .. }] => {
            flow.scope.loops.iter().rev().find(|(n, _)| n.as_ref() == Some(name))
        }
        _ => return Err(wrong_arguments(step)),
    };
    match found {
        Some((_, slot)) => Ok(Expr::Slot(*slot)),
        None => Err(Failure::syntax(step.at, "loops() outside of a repeat() that it could count".into())),
    }
}

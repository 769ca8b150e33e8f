//! Steps that read properties.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, text};
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::compile::by::By;
use crate::fault::Fault;
use tidegraph_plan::{
    AggregateItem, AggregateKind, Arithmetic, BindKind, Comparison, Expr, Function, ListFunction, Op, Slot,
    SortKey, TotalOrder,
};
use tidegraph_types::{Str, Symbol, Value};

impl Compiler {
    /// `values`, `properties`
    pub(super) fn property_values(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        function: Function,
        kind: ObjectKind,
        dest: Option<Slot>,
    ) -> Result<()> {
        let mut args = vec![Expr::Slot(flow.cur(step)?)];
        let keys = self.texts(&step.args)?;
        args.extend(keys.iter().map(text));
        let out = self.or_fresh(dest);
        // If all keys are null, no property passes; without keys, every property does.
        let no_key = keys.is_empty() && !step.args.is_empty();
        let list = if no_key { Expr::Literal(Value::list(vec![])) } else { call(function, args) };
        flow.wrap(|input| Op::Unwind { input, list, out });
        flow.scope.single = false;
        flow.set_current(out, kind);
        Ok(())
    }

    pub(super) fn value_map(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let cur = flow.cur(step)?;
        let (tokens, args) = match step.args.split_first() {
            Some((Arg { kind: ArgKind::Value(Value::Bool(tokens)), .. }, rest)) => (*tokens, rest),
            _ => (false, step.args.as_slice()),
        };
        let keys = self.map_keys(step, args)?;
        let tokens = match self.tokens(cursor.take_all(StepName::With))? {
            Value::Bool(false) => Value::Bool(tokens),
            chosen => chosen,
        };
        let mut args = vec![Expr::Slot(cur), Expr::Literal(tokens)];
        args.extend(keys.iter().map(text));
        self.map_step(flow, cursor, call(Function::ValueMap, args), dest)
    }

    /// `elementMap`, `propertyMap`
    pub(super) fn element_map(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        function: Function,
        dest: Option<Slot>,
    ) -> Result<()> {
        let mut args = vec![Expr::Slot(flow.cur(step)?)];
        let keys = self.map_keys(step, &step.args)?;
        if let Some(with) = cursor.peek().filter(|s| s.name == StepName::With) {
            return Err(Fault::unsupported(with.at, format!("{}().with()", step.name)));
        }
        args.extend(keys.iter().map(text));
        self.map_step(flow, cursor, call(function, args), dest)
    }

    /// Returns the keys of a step that makes a map. Empty: all keys.
    fn map_keys(&mut self, step: &Step<'_>, args: &[Arg<'_>]) -> Result<Vec<Str>> {
        let keys = self.texts(args)?;
        if keys.is_empty() && !args.is_empty() {
            return Err(Fault::unsupported(step.at, format!("{}(null)", step.name)));
        }
        Ok(keys)
    }

    /// `with(WithOptions.tokens)`: returns whether the map has all tokens, or the one that it has.
    fn tokens(&mut self, withs: &[Step<'_>]) -> Result<Value> {
        let mut tokens = Value::Bool(false);
        for with in withs {
            let is_tokens = |arg: &Arg<'_>| {
                arg.constant() == Some(Constant::Tokens)
                    || arg.text().is_some_and(|text| text == Constant::Tokens.text())
            };
            let option = |arg: &Arg<'_>| arg.constant().or_else(|| Constant::of(arg.text()?));
            match with.args.as_slice() {
                [arg] if is_tokens(arg) || arg.text().is_some_and(|t| t == "~tinkerpop.valueMap.tokens") => {
                    tokens = Value::Bool(true);
                }
                [arg, which] if is_tokens(arg) => {
                    tokens = match option(which) {
                        Some(Constant::All) => Value::Bool(true),
                        Some(Constant::None) => Value::Bool(false),
                        Some(Constant::Ids) => Value::Symbol(Symbol::Id),
                        Some(Constant::Labels) => Value::Symbol(Symbol::Label),
                        Some(Constant::Keys) => Value::Symbol(Symbol::Key),
                        Some(Constant::Values) => Value::Symbol(Symbol::Value),
                        _ => return Err(Fault::unsupported(with.at, "with() of these options")),
                    }
                }
                _ => return Err(Fault::unsupported(with.at, "with() of these options")),
            }
        }
        Ok(tokens)
    }

    /// Makes a map the current object, after a `by()` has transformed its values.
    fn map_step(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        map: Expr,
        dest: Option<Slot>,
    ) -> Result<()> {
        let bys = cursor.take_all(StepName::By);
        let out = self.or_fresh(dest);
        match bys {
            [] => flow.bind(out, map),
            [by] => {
                let by = self.by(by, &by.args)?;
                let entry = self.fresh();
                let mut child = flow.child();
                child.op = Op::Unwind {
                    input: Box::new(Op::Argument),
                    list: call(Function::Unfold, vec![map]),
                    out: entry,
                };
                let value = self.fresh();
                child.bind(value, call(Function::MapValues, vec![Expr::Slot(entry)]));
                let result = self.by_value(&mut child, &by, Expr::Slot(value), ObjectKind::List)?;
                let slot = self.slot_of(&mut child, result.expr);
                if !result.productive {
                    child.filter(not(is_null(Expr::Slot(slot))));
                }
                let key = call(Function::MapKeys, vec![Expr::Slot(entry)]);
                let all = self.fresh();
                child.wrap(|input| collect_map(input, key, Expr::Slot(slot), all));
                let plan = Box::new(child.op);
                flow.wrap(|input| Op::Bind { input, plan, out, kind: BindKind::First(all) });
            }
            [_, second, ..] if !self.version.last_by_counts() => {
                let message = "valueMap() and propertyMap() take one by() in Gremlin 3.8";
                return Err(Fault::syntax(second.at, message.into()));
            }
            several => {
                let tokens = matches!(&map, Expr::Call(Function::ElementMap, _))
                    || matches!(&map, Expr::Call(Function::ValueMap, args)
                        if args.get(1) != Some(&Expr::literal(false)));
                if tokens {
                    // Tokens have no `by()`, so that the positions of properties would be others.
                    let name = "several by() of a map with tokens";
                    return Err(Fault::unsupported(several[0].at, name));
                }
                let bys = self.bys(several)?;
                self.map_in_turn(flow, &bys, map, out)?;
            }
        }
        flow.set_current(out, ObjectKind::Map);
        Ok(())
    }
}

impl Compiler {
    /// Makes a map whose values several `by()` transform in turn. Each entry runs only its own `by()`.
    fn map_in_turn(&mut self, flow: &mut Flow, bys: &[By<'_, '_>], map: Expr, out: Slot) -> Result<()> {
        let (pair, entry, position) = (self.fresh(), self.fresh(), self.fresh());
        let (value, result) = (self.fresh(), self.fresh());
        let mut child = flow.child();
        let numbered = call(Function::Lists(ListFunction::Index), vec![map]);
        child.op = Op::Unwind { input: Box::new(Op::Argument), list: numbered, out: pair };
        let part = |at: i64| Expr::Index(Box::new(Expr::Slot(pair)), Box::new(Expr::literal(at)));
        child.bind(entry, part(0));
        child.bind(position, part(1));
        child.bind(value, call(Function::MapValues, vec![Expr::Slot(entry)]));
        let count = i64::try_from(bys.len()).unwrap_or(i64::MAX);
        let mut branches = vec![];
        for (by, number) in bys.iter().zip(0_i64..) {
            let mut branch = child.child();
            let modulo = Box::new(Expr::literal(count));
            let turn = Expr::Arithmetic(Arithmetic::Modulo, Box::new(Expr::Slot(position)), modulo);
            branch.filter(Expr::compare(Comparison::Equal, turn, Expr::literal(number)));
            let computed = self.by_value(&mut branch, by, Expr::Slot(value), ObjectKind::List)?;
            branch.bind(result, computed.expr);
            if !computed.productive {
                branch.filter(not(is_null(Expr::Slot(result))));
            }
            branches.push(branch.op);
        }
        child.wrap(|input| Op::Union { input, branches });
        let keys =
            vec![SortKey { expr: Expr::Slot(position), order: TotalOrder::Gremlin, descending: false }];
        child.wrap(|input| Op::Sort { input, keys });
        let all = self.fresh();
        let key = call(Function::MapKeys, vec![Expr::Slot(entry)]);
        child.wrap(|input| collect_map(input, key, Expr::Slot(result), all));
        let plan = Box::new(child.op);
        flow.wrap(|input| Op::Bind { input, plan, out, kind: BindKind::First(all) });
        Ok(())
    }
}

/// Aggregates all rows into one map.
pub(super) fn collect_map(input: Box<Op>, key: Expr, value: Expr, out: Slot) -> Op {
    let item = AggregateItem {
        out,
        kind: AggregateKind::CollectMap,
        args: vec![key, value],
        distinct: false,
        empty_is_unbound: false,
        weighted: false,
    };
    Op::Aggregate { input, keys: vec![], items: vec![item] }
}

//! Steps that read properties.

use super::{Compiler, Cursor, Flow, Kind, Result, call, is_null, not, text};
use crate::ast::{Arg, ArgKind, Step};
use crate::error::Failure;
use tidegraph_plan::{AggregateItem, AggregateKind, BindKind, Expr, Function, Op, Slot};
use tidegraph_types::Value;

impl Compiler {
    /// `values`, `properties`, `valueMap`, `elementMap`, `propertyMap`
    pub(super) fn property_step(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let cur = flow.cur(step)?;
        let (tokens, args) = match step.args.split_first() {
            Some((Arg { kind: ArgKind::Value(Value::Bool(tokens)), .. }, rest))
                if step.name == "valueMap" =>
            {
                (*tokens, rest)
            }
            _ => (false, step.args.as_slice()),
        };
        let keys = self.texts(args)?;
        let no_key = keys.is_empty() && !args.is_empty();
        let mut list = vec![Expr::Slot(cur)];
        match step.name {
            "values" | "properties" => {
                let (function, kind) = if step.name == "values" {
                    (Function::PropertyValues, Kind::Scalar)
                } else {
                    (Function::Properties, Kind::Property)
                };
                list.extend(keys.iter().map(text));
                let out = self.or_fresh(dest);
                let list = if no_key { Expr::Literal(Value::list(vec![])) } else { call(function, list) };
                flow.wrap(|input| Op::Unwind { input, list, out });
                flow.scope.single = false;
                flow.goto(out, kind);
                Ok(())
            }
            _ if no_key => Err(Failure::unsupported(step.at, format!("{}(null)", step.name))),
            "valueMap" => {
                let tokens = self.tokens(cursor.take_all("with"))? || tokens;
                list.push(Expr::literal(tokens));
                list.extend(keys.iter().map(text));
                self.map_step(flow, cursor, call(Function::ValueMap, list), dest)
            }
            name => {
                let function =
                    if name == "elementMap" { Function::ElementMap } else { Function::GremlinPropertyMap };
                if let Some(with) = cursor.peek().filter(|s| s.name == "with") {
                    return Err(Failure::unsupported(with.at, format!("{name}().with()")));
                }
                list.extend(keys.iter().map(text));
                self.map_step(flow, cursor, call(function, list), dest)
            }
        }
    }

    /// `with(WithOptions.tokens)`: whether id and label are wanted too.
    fn tokens(&mut self, withs: &[Step<'_>]) -> Result<bool> {
        let mut tokens = false;
        for with in withs {
            let names: Vec<_> =
                with.args.iter().map(|a| a.constant().or(a.text().map(AsRef::as_ref))).collect();
            match names.as_slice() {
                [Some("tokens" | "~tinkerpop.valueMap.tokens")] | [Some("tokens"), Some("all")] => {
                    tokens = true
                }
                [Some("tokens"), Some("none")] => tokens = false,
                _ => return Err(Failure::unsupported(with.at, "with() of these options")),
            }
        }
        Ok(tokens)
    }

    /// A step that makes a map, with a `by()` for its values.
    fn map_step(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        map: Expr,
        dest: Option<Slot>,
    ) -> Result<()> {
        let bys = cursor.take_all("by");
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
                let result = self.by_value(&mut child, &by, Expr::Slot(value), Kind::List)?;
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
            [_, second, ..] => {
                return Err(Failure::unsupported(second.at, "several by() of a map of properties"));
            }
        }
        flow.goto(out, Kind::Map);
        Ok(())
    }
}

/// One map of all rows.
pub(super) fn collect_map(input: Box<Op>, key: Expr, value: Expr, out: Slot) -> Op {
    let item = AggregateItem {
        out,
        kind: AggregateKind::CollectMap,
        args: vec![key, value],
        distinct: false,
        empty_is_unbound: false,
    };
    Op::Aggregate { input, keys: vec![], items: vec![item] }
}

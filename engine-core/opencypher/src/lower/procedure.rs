//! `CALL` of a procedure.

use super::types::Types;
use super::{Lowering, Projected, Typed};
use crate::ast::{Call, Yield};
use crate::fault::{Fault, Result};
use std::sync::Arc;
use tidegraph_plan::{ApplyKind, Argument, Expr, Field, Op, Procedure, Signature, Slot, TypeTest, ValueType};

/// First names of procedures of other databases: they exist, but not here.
const FAMILIES: [&str; 5] = ["neptune", "db", "dbms", "apoc", "gds"];

impl<'a> Lowering<'a> {
    /// Lowers a call. Returns the columns that it yields, which are its answer if it is the only clause.
    pub(super) fn call_procedure(
        &mut self,
        input: Op,
        call: &'a Call,
        is_alone: bool,
    ) -> Result<(Op, Vec<Projected<'a>>)> {
        let procedure = self.find_procedure(call)?;
        let Signature { name, columns, .. } = procedure.signature();
        let args = self.arguments(procedure.signature(), call, is_alone)?;
        let input = Box::new(self.bind_pending(input)?);
        let mut yields: Vec<(usize, Slot)> = vec![];
        let mut projected = vec![];
        match &call.yields {
            Yield::Columns(named) => {
                for (column, variable) in named {
                    let Some(at) = columns.iter().position(|known| known.name == *column) else {
                        let message = if columns.is_empty() {
                            format!("{name}() yields no {column}: it has no columns")
                        } else {
                            format!("{name}() yields no {column}, expected one of {}", names(columns))
                        };
                        return Err(Fault::syntax(variable.place.0, message));
                    };
                    let types = columns.get(at).map_or(Types::ANY, |field| yielded(&field.types));
                    let slot = self.declare_new(variable, types)?;
                    yields.push((at, slot));
                    projected.push(Projected { name: &variable.text, slot, types });
                }
            }
            Yield::All if !is_alone => {
                let message = "YIELD * in a query with other clauses, expected the names of columns";
                return Err(Fault::syntax(call.name.place.0, message));
            }
            Yield::Omitted if !is_alone => {}
            Yield::All | Yield::Omitted => {
                for (at, Field { name, types }) in columns.iter().enumerate() {
                    let slot = self.slot();
                    yields.push((at, slot));
                    projected.push(Projected { name, slot, types: yielded(types) });
                }
            }
        }
        let optional = call.optional.then(|| yields.iter().map(|(_, slot)| *slot).collect::<Vec<_>>());
        let (input, outer) =
            if optional.is_some() { (Box::new(Op::Argument), Some(input)) } else { (input, None) };
        let procedure = Arc::clone(procedure);
        let mut op = self.op(Op::CallProcedure { input, procedure, args, yields })?;
        if let Some(predicate) = &call.predicate {
            let predicate = self.boolean(predicate)?;
            let input = Box::new(self.bind_pending(op)?);
            op = self.op(Op::Filter { input, predicate })?;
        }
        if let (Some(slots), Some(input)) = (optional, outer) {
            let plan = Box::new(op);
            op = self.op(Op::Apply { input, plan, kind: ApplyKind::Optional(slots) })?;
        }
        Ok((op, projected))
    }

    fn find_procedure(&self, call: &Call) -> Result<&'a Arc<Procedure>> {
        let name = &call.name;
        let family = name.text.split('.').next().unwrap_or_default().to_ascii_lowercase();
        match self.procedures.find(&name.text) {
            Some(procedure) => Ok(procedure),
            None if FAMILIES.contains(&&*family) => {
                Err(Fault::unsupported(name.place.0, format!("CALL {}", name.text)))
            }
            None => Err(Fault::syntax(name.place.0, format!("unknown procedure: {}", name.text))),
        }
    }

    /// Lowers the arguments. A call on its own without parentheses takes the parameters that are called like the arguments.
    fn arguments(&mut self, signature: &Signature, call: &'a Call, is_alone: bool) -> Result<Vec<Expr>> {
        let Signature { name, arguments, .. } = signature;
        let place = call.name.place.0;
        let Some(given) = &call.args else {
            if !is_alone && !arguments.is_empty() {
                let message = format!(
                    "{name} has no arguments in parentheses, which only a query of one CALL may leave out"
                );
                return Err(Fault::syntax(place, message));
            }
            let parameter = |argument: &Argument| Expr::Parameter(argument.field.name.clone());
            return Ok(arguments.iter().filter(|one| one.default.is_none()).map(parameter).collect());
        };
        let (least, most) = (signature.required(), arguments.len());
        if given.len() < least || given.len() > most {
            let expected = if least == most { most.to_string() } else { format!("{least} to {most}") };
            let fields: Vec<&str> = arguments.iter().map(|argument| &*argument.field.name).collect();
            let message =
                format!("{name}() has {} arguments, expected {expected}: {}", given.len(), fields.join(", "));
            return Err(Fault::syntax(place, message.trim_end_matches(": ")));
        }
        let mut args = Vec::with_capacity(given.len());
        for (tree, Argument { field, .. }) in given.iter().zip(arguments) {
            let Typed { expr, types } = self.expr(tree)?;
            if !types.meets(taken(&field.types)) {
                let found = types.describe();
                let message = format!("{name}() has {found} for {}, expected {}", field.name, field.types);
                return Err(Fault::syntax(tree.place.0, message));
            }
            args.push(expr);
        }
        Ok(args)
    }
}

fn names(columns: &[Field]) -> String {
    columns.iter().map(|column| &*column.name).collect::<Vec<_>>().join(", ")
}

/// Returns the types of a column's values.
fn yielded(test: &TypeTest) -> Types {
    let types = test.any_of.iter().map(|(kind, _)| match kind {
        ValueType::Boolean => Types::BOOL,
        ValueType::String => Types::STRING,
        ValueType::Integer => Types::INTEGER,
        ValueType::Float => Types::FLOAT,
        ValueType::Date
        | ValueType::LocalTime
        | ValueType::ZonedTime
        | ValueType::LocalDateTime
        | ValueType::ZonedDateTime
        | ValueType::Duration => Types::TIME,
        ValueType::Point => Types::POINT,
        ValueType::Node => Types::NODE,
        ValueType::Relationship => Types::EDGE,
        ValueType::Path => Types::PATH,
        ValueType::Map => Types::MAP,
        ValueType::List(_) => Types::LIST,
        ValueType::PropertyValue | ValueType::Any | ValueType::Null | ValueType::Nothing => Types::ANY,
    });
    types.reduce(|a, b| a | b).unwrap_or(Types::ANY)
}

/// Returns the types of values that an argument takes: integers also where it takes floats.
fn taken(test: &TypeTest) -> Types {
    let types = yielded(test);
    if types.meets(Types::FLOAT) { types | Types::INTEGER } else { types }
}

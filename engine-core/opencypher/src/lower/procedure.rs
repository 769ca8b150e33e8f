//! `CALL` of a procedure.

use super::types::Types;
use super::{Lowering, Projected};
use crate::ast::{Call, Yield};
use crate::fault::{Fault, Result};
use tidegraph_plan::{ApplyKind, Op, Procedure, Signature, Slot};

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
        let procedure = find(call)?;
        let Signature { name, arguments, columns } = procedure.signature();
        if call.args.len() != arguments.len() {
            let message = format!(
                "{name}() has {} arguments, expected {}: {}",
                call.args.len(),
                arguments.len(),
                arguments.join(", ")
            );
            return Err(Fault::syntax(call.name.place.0, message.trim_end_matches(": ")));
        }
        let args = call.args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>>>()?;
        let input = Box::new(self.bind_pending(input)?);
        let mut yields: Vec<(usize, Slot)> = vec![];
        let mut projected = vec![];
        match &call.yields {
            Yield::Columns(named) => {
                for (column, variable) in named {
                    let Some(at) = columns.iter().position(|known| known == column) else {
                        let message =
                            format!("{name}() yields no {column}, expected one of {}", columns.join(", "));
                        return Err(Fault::syntax(variable.place.0, message));
                    };
                    let slot = self.declare_new(variable, Types::ANY)?;
                    yields.push((at, slot));
                    projected.push(Projected { name: &variable.text, slot, types: Types::ANY });
                }
            }
            Yield::All if !is_alone => {
                let message = "YIELD * in a query with other clauses, expected the names of columns";
                return Err(Fault::syntax(call.name.place.0, message));
            }
            Yield::Omitted if !is_alone => {}
            Yield::All | Yield::Omitted => {
                for (at, column) in columns.iter().enumerate() {
                    let slot = self.slot();
                    yields.push((at, slot));
                    projected.push(Projected { name: column, slot, types: Types::ANY });
                }
            }
        }
        let optional = call.optional.then(|| yields.iter().map(|(_, slot)| *slot).collect::<Vec<_>>());
        let (input, outer) =
            if optional.is_some() { (Box::new(Op::Argument), Some(input)) } else { (input, None) };
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
}

fn find(call: &Call) -> Result<Procedure> {
    let name = &call.name;
    let family = name.text.split('.').next().unwrap_or_default().to_ascii_lowercase();
    match Procedure::of(&name.text) {
        Some(procedure) => Ok(procedure),
        None if FAMILIES.contains(&&*family) => {
            Err(Fault::unsupported(name.place.0, format!("CALL {}", name.text)))
        }
        None => Err(Fault::syntax(name.place.0, format!("unknown procedure: {}", name.text))),
    }
}

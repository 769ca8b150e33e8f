//! What procedures do. The registry (`tidegraph_plan::Procedures`) has their names, arguments and columns.
//!
//! The rows of a call are charged to the request's memory. The operator releases them once they are
//! yielded.

mod schema;

use crate::value::has_type;
use crate::{Context, Error, Result};
use tidegraph_plan::{
    Argument, Body, Builtin, CallError, CallRows, Procedure, Procedures, Signature, TypeTest, ValueType,
};
use tidegraph_types::{Str, Value};

/// Rows of one call, and the bytes that are charged for them.
#[derive(Default)]
pub(crate) struct CallResult {
    pub rows: Vec<Vec<Value>>,
    pub bytes: usize,
}

impl CallResult {
    fn add(&mut self, row: Vec<Value>, ctx: &Context<'_>) -> Result<()> {
        let values: usize = row.iter().map(|value| size_of::<Value>() + value.heap_bytes()).sum();
        let bytes = size_of::<Vec<Value>>() + values;
        ctx.memory.charge(bytes)?;
        self.bytes += bytes;
        self.rows.push(row);
        Ok(())
    }
}

/// Calls a procedure; returns its rows, each with a value for each column. One without columns has one empty row.
pub(crate) fn call(procedure: &Procedure, args: Vec<Value>, ctx: &Context<'_>) -> Result<CallResult> {
    ctx.check()?;
    let mut result = CallResult::default();
    match procedure.body() {
        Body::Builtin(builtin) => {
            for row in builtin_rows(*builtin, ctx)? {
                result.add(row, ctx)?;
            }
        }
        Body::Function(function) => {
            let signature = procedure.signature();
            let args = arguments(signature, args, ctx)?;
            let mut sink = Sink { signature, result: &mut result, ctx, error: None };
            let outcome = function(&args, &mut sink);
            // A function may have gone on after the error.
            if let Some(error) = sink.error {
                return Err(error);
            }
            outcome
                .map_err(|error| Error::Call { name: signature.name.clone(), reason: error.to_string() })?;
            if signature.columns.is_empty() {
                result.add(vec![], ctx)?;
            }
        }
    }
    Ok(result)
}

/// What a function adds its rows to.
struct Sink<'a, 'c> {
    signature: &'a Signature,
    result: &'a mut CallResult,
    ctx: &'a Context<'c>,
    /// Why the function has to end.
    error: Option<Error>,
}

impl Sink<'_, '_> {
    fn try_add(&mut self, row: Vec<Value>) -> Result<()> {
        self.ctx.spend(1)?;
        let Signature { name, columns, .. } = self.signature;
        let wrong = |reason| Error::CallRow { name: name.clone(), reason };
        if columns.is_empty() {
            return Err(wrong("it has no columns".to_owned()));
        }
        if row.len() != columns.len() {
            return Err(wrong(format!("{} values for {} columns", row.len(), columns.len())));
        }
        for (value, column) in row.iter().zip(columns) {
            if !has_type(self.ctx, value, &column.types)? {
                let found = value.for_message();
                return Err(wrong(format!("{found} for column {} :: {}", column.name, column.types)));
            }
        }
        self.result.add(row, self.ctx)
    }

    fn keep(&mut self, result: Result<()>) -> Result<(), CallError> {
        result.map_err(|error| {
            self.error.get_or_insert(error);
            CallError::Stopped
        })
    }
}

impl CallRows for Sink<'_, '_> {
    fn add(&mut self, row: Vec<Value>) -> Result<(), CallError> {
        if self.error.is_some() {
            return Err(CallError::Stopped);
        }
        let added = self.try_add(row);
        self.keep(added)
    }

    fn check(&mut self) -> Result<(), CallError> {
        let checked = self.ctx.check();
        self.keep(checked)
    }
}

/// Checks the arguments of a call, converts integers where floats are wanted, and adds default values.
fn arguments(signature: &Signature, given: Vec<Value>, ctx: &Context<'_>) -> Result<Vec<Value>> {
    let mut given = given.into_iter();
    let argument = |Argument { field, default }: &Argument| -> Result<Value> {
        let wrong = |reason| Error::Call { name: signature.name.clone(), reason };
        let Some(value) = given.next().or_else(|| default.clone()) else {
            return Err(wrong(format!("argument {} is missing", field.name)));
        };
        if has_type(ctx, &value, &field.types)? {
            return Ok(value);
        }
        if let Some(integer) = value.as_i64()
            && takes(&field.types, &ValueType::Float)
        {
            return Ok(Value::Double(integer as f64));
        }
        let found = value.for_message();
        Err(wrong(format!("{found} for argument {}, expected {}", field.name, field.types)))
    };
    signature.arguments.iter().map(argument).collect()
}

fn takes(types: &TypeTest, kind: &ValueType) -> bool {
    types.any_of.iter().any(|(one, _)| one == kind)
}

fn builtin_rows(procedure: Builtin, ctx: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    let column = |names: Vec<Str>| names.into_iter().map(|name| vec![name.into()]).collect();
    Ok(match procedure {
        Builtin::PgSchema => vec![vec![schema::pg_schema(ctx)?]],
        Builtin::Ping => vec![vec![true.into()]],
        Builtin::Labels => column(schema::labels(ctx)?),
        Builtin::EdgeLabels => column(schema::edge_labels(ctx)?),
        Builtin::PropertyKeys => column(schema::property_keys(ctx)?),
        Builtin::Components => {
            let versions = Value::list(vec![env!("CARGO_PKG_VERSION").into()]);
            vec![vec!["Tidegraph".into(), versions, "community".into()]]
        }
        Builtin::Procedures => listed(ctx.procedures),
        Builtin::Indexes => schema::indexes(ctx)?,
        Builtin::SchemaGraph => vec![schema::visualization(ctx)?],
        Builtin::NodeTypes => schema::node_types(ctx)?,
        Builtin::EdgeTypes => schema::edge_types(ctx)?,
    })
}

fn listed(procedures: &Procedures) -> Vec<Vec<Value>> {
    let row = |procedure: &Procedure| {
        let signature = procedure.signature();
        let text = Value::string(signature.to_string());
        vec![signature.name.clone().into(), text, signature.description.clone().into(), "READ".into()]
    };
    procedures.iter().map(row).collect()
}

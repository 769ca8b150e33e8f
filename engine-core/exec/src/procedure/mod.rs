//! What procedures do. The registry (`tidegraph_plan::Procedure`) has their names, arguments and columns.

mod schema;

use crate::{Context, Result};
use tidegraph_plan::Procedure;
use tidegraph_types::{Str, Value};

/// Calls a procedure; returns its rows, each with a value for each column.
pub(crate) fn call(procedure: Procedure, _args: &[Value], ctx: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    let column = |names: Vec<Str>| names.into_iter().map(|name| vec![name.into()]).collect();
    Ok(match procedure {
        Procedure::PgSchema => vec![vec![schema::pg_schema(ctx)?]],
        Procedure::Ping => vec![vec![true.into()]],
        Procedure::Labels => column(schema::labels(ctx)?),
        Procedure::EdgeLabels => column(schema::edge_labels(ctx)?),
        Procedure::PropertyKeys => column(schema::property_keys(ctx)?),
        Procedure::Components => {
            let versions = Value::list(vec![env!("CARGO_PKG_VERSION").into()]);
            vec![vec!["Tidegraph".into(), versions, "community".into()]]
        }
        Procedure::Procedures => {
            let mut all: Vec<Procedure> = Procedure::ALL.into();
            all.sort_unstable_by_key(|procedure| procedure.signature().name);
            let row = |procedure: Procedure| {
                let signature = procedure.signature();
                let text = Value::string(signature.to_string());
                vec![signature.name.into(), text, procedure.description().into(), "READ".into()]
            };
            all.into_iter().map(row).collect()
        }
        Procedure::Indexes => schema::indexes(ctx)?,
        Procedure::SchemaGraph => vec![schema::visualization(ctx)?],
        Procedure::NodeTypes => schema::node_types(ctx)?,
        Procedure::EdgeTypes => schema::edge_types(ctx)?,
    })
}

//! Procedures of scenarios: a step gives a signature and a table with arguments and the row that they yield.

use super::feature::Step;
use super::notation::Expected;
use tidegraph_engine::plan::{Procedure, Procedures, Signature, TypeTest, ValueType};
use tidegraph_types::Value;

const PREFIX: &str = "there exists a procedure ";

/// Whether a step is about a procedure.
pub fn is_about(step: &Step) -> bool {
    step.text.starts_with(PREFIX)
}

/// Returns the registry with the procedures of all steps.
pub fn of(steps: &[Step]) -> Result<Procedures, String> {
    let mut procedures = Procedures::default();
    for step in steps.iter().filter(|step| is_about(step)) {
        procedures = procedures.with(procedure(step)?).map_err(|error| error.to_string())?;
    }
    Ok(procedures)
}

/// Reads `there exists a procedure name(in :: TYPE?) :: (out :: TYPE?):`.
fn procedure(step: &Step) -> Result<Procedure, String> {
    let wrong = || format!("what is this procedure? {}", step.text);
    let text = step.text.strip_prefix(PREFIX).ok_or_else(wrong)?;
    let (name, rest) = text.split_once('(').ok_or_else(wrong)?;
    let (arguments, columns) = rest.split_once(") :: (").ok_or_else(wrong)?;
    let columns = columns.trim_end_matches([':', ' ']).strip_suffix(')').ok_or_else(wrong)?;
    let mut signature = Signature::new(name.trim());
    let mut names = vec![];
    for (name, types) in fields(arguments)? {
        names.push(name.clone());
        signature = signature.argument(name, types);
    }
    let width = names.len();
    for (name, types) in fields(columns)? {
        names.push(name.clone());
        signature = signature.column(name, types);
    }
    let (header, table) = step.table.split_first().ok_or_else(wrong)?;
    if *header != names {
        return Err(format!("the table of {} has the columns {header:?}", signature.name));
    }
    let value = |cell: &String| Expected::parse(cell).map(|value| value.to_value());
    let rows: Vec<Vec<Value>> =
        table.iter().map(|row| row.iter().map(value).collect()).collect::<Result<_, _>>()?;
    Ok(Procedure::new(signature, move |arguments, out| {
        let matching = rows.iter().filter(|row| row[..width] == *arguments && row.len() > width);
        matching.into_iter().try_for_each(|row| out.add(row[width..].to_vec()))
    }))
}

fn fields(text: &str) -> Result<Vec<(String, TypeTest)>, String> {
    let field = |text: &str| {
        let (name, types) = text.split_once("::").ok_or_else(|| format!("what is this field? {text}"))?;
        Ok((name.trim().to_owned(), types_of(types.trim())?))
    };
    text.split(',').filter(|text| !text.trim().is_empty()).map(field).collect()
}

fn types_of(text: &str) -> Result<TypeTest, String> {
    let (name, nullable) = text.strip_suffix('?').map_or((text, false), |name| (name, true));
    let kinds = match name {
        "STRING" => vec![ValueType::String],
        "INTEGER" => vec![ValueType::Integer],
        "FLOAT" => vec![ValueType::Float],
        "NUMBER" => vec![ValueType::Integer, ValueType::Float],
        "BOOLEAN" => vec![ValueType::Boolean],
        _ => return Err(format!("what is this type? {text}")),
    };
    Ok(TypeTest { any_of: kinds.into_iter().map(|kind| (kind, nullable)).collect() })
}

//! Types of values as openCypher names them: `IS :: TYPE` and `valueType()`.

use crate::{Context, Result};
use std::collections::BTreeSet;
use tidegraph_plan::{TypeTest, ValueType};
use tidegraph_types::{Temporal, Value};

/// Whether a value has one of the types.
pub(crate) fn has_type(ctx: &Context<'_>, value: &Value, test: &TypeTest) -> Result<bool> {
    for (kind, nullable) in &test.any_of {
        ctx.spend(1)?;
        if if value.is_null() { is_nullable(kind, *nullable) } else { is_of(ctx, value, kind)? } {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_nullable(kind: &ValueType, nullable: bool) -> bool {
    nullable && *kind != ValueType::Nothing
}

/// Whether a value that is not null has a type.
fn is_of(ctx: &Context<'_>, value: &Value, kind: &ValueType) -> Result<bool> {
    Ok(match kind {
        ValueType::Any => true,
        ValueType::PropertyValue => is_property_value(ctx, value)?,
        ValueType::List(inner) => {
            let Some(items) = value.as_slice() else { return Ok(false) };
            ctx.spend(items.len())?;
            for item in items {
                if !has_type(ctx, item, inner)? {
                    return Ok(false);
                }
            }
            true
        }
        other => type_of(value).as_ref() == Some(other),
    })
}

/// Whether a property can hold the value: a scalar, or a list of scalars of one type.
fn is_property_value(ctx: &Context<'_>, value: &Value) -> Result<bool> {
    ctx.spend(value.as_slice().map_or(1, <[Value]>::len))?;
    Ok(value.is_storable())
}

/// Returns the type of a value that is neither null nor a list.
fn type_of(value: &Value) -> Option<ValueType> {
    Some(match value {
        Value::Bool(_) => ValueType::Boolean,
        Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) => ValueType::Integer,
        Value::Float(_) | Value::Double(_) => ValueType::Float,
        Value::String(_) => ValueType::String,
        Value::DateTime(_) | Value::Temporal(Temporal::DateTime(_)) => ValueType::ZonedDateTime,
        Value::Temporal(Temporal::Date(_)) => ValueType::Date,
        Value::Temporal(Temporal::LocalTime(_)) => ValueType::LocalTime,
        Value::Temporal(Temporal::Time(_)) => ValueType::ZonedTime,
        Value::Temporal(Temporal::LocalDateTime(_)) => ValueType::LocalDateTime,
        Value::Temporal(Temporal::Duration(_)) => ValueType::Duration,
        Value::Point(_) => ValueType::Point,
        Value::Map(_) => ValueType::Map,
        Value::Vertex(_) | Value::VertexData(_) => ValueType::Node,
        Value::Edge(_) | Value::EdgeData(_) => ValueType::Relationship,
        Value::Path(_) => ValueType::Path,
        _ => return None,
    })
}

/// `valueType()`: the name of a value's type, such as `LIST<INTEGER NOT NULL> NOT NULL`.
pub(crate) fn name_of(ctx: &Context<'_>, value: &Value) -> Result<String> {
    if value.is_null() {
        return Ok("NULL".to_owned());
    }
    let Some(items) = value.as_slice() else {
        let name = type_of(value).map_or_else(|| "ANY".to_owned(), |kind| kind.to_string());
        return Ok(format!("{name} NOT NULL"));
    };
    ctx.spend(items.len())?;
    // Few types occur, however long the list is.
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut has_null = false;
    for item in items {
        if item.is_null() {
            has_null = true;
        } else {
            names.insert(name_of(ctx, item)?);
            let bytes = names.iter().map(String::len).sum();
            ctx.memory.ensure(bytes)?;
            ctx.spend(bytes / 16)?;
        }
    }
    let inner = if names.is_empty() {
        if has_null { "NULL".to_owned() } else { "NOTHING".to_owned() }
    } else if has_null {
        let names = names.iter().map(|name| name.strip_suffix(" NOT NULL").unwrap_or(name));
        names.collect::<Vec<_>>().join(" | ")
    } else {
        names.into_iter().collect::<Vec<_>>().join(" | ")
    };
    Ok(format!("LIST<{inner}> NOT NULL"))
}

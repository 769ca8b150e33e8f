//! Properties as elements, which they are in Gremlin. A property of a vertex may have properties itself, its
//! meta-properties; those have none.

use super::elements::Elements;
use super::error::Error;
use super::record::has_token;
use crate::Result;
use std::sync::Arc;
use tidegraph_plan::Function;
use tidegraph_types::element::property_id;
use tidegraph_types::{Map, PropertyRef, Str, Symbol, Value};

/// Returns the meta-properties of a property: those of `keys`, in that order, or all in stored order.
fn meta(elements: &Elements<'_, '_>, property: &PropertyRef, keys: &[Value]) -> Result<Vec<(Str, Value)>> {
    if !property.is_of_vertex() {
        return Ok(vec![]);
    }
    let all = elements.with_owner(&property.owner, |record| Ok(record.meta_of(elements, property)));
    let all = all.unwrap_or_else(|| Ok(vec![]))?;
    if keys.is_empty() {
        return Ok(all);
    }
    let mut chosen: Vec<(Str, Value)> = vec![];
    for key in keys.iter().filter_map(Value::as_str) {
        let found = all.iter().find(|(name, _)| name == key);
        // A repeated key counts once.
        chosen.extend(found.filter(|(name, _)| chosen.iter().all(|(chosen, _)| chosen != name)).cloned());
    }
    Ok(chosen)
}

/// Returns the meta-property of a key; null if there is none.
pub(crate) fn value(elements: &Elements<'_, '_>, property: &PropertyRef, key: &Str) -> Result<Value> {
    let found = meta(elements, property, &[Value::String(key.clone())])?.into_iter().next();
    Ok(found.map_or(Value::Null, |(_, value)| value))
}

/// Calls an element function of a property. `args` are the arguments after the property.
pub(crate) fn call(
    elements: &Elements<'_, '_>,
    function: Function,
    name: &'static str,
    property: &Arc<PropertyRef>,
    args: &[Value],
) -> Result<Value> {
    let id = || -> Result<Value> {
        let owner =
            elements.with_owner(&property.owner, |record| Ok(record.id_text())).unwrap_or(Ok(None))?;
        let owner = owner.unwrap_or_default();
        Ok(Value::Int(property_id(&owner, &property.key, &property.value, property.nth)))
    };
    let statement = |map: &mut Map| -> Result<()> {
        map.insert(Value::Symbol(Symbol::Id), id()?);
        map.insert(Value::Symbol(Symbol::Key), Value::String(property.key.clone()));
        map.insert(Value::Symbol(Symbol::Value), property.value.clone());
        Ok(())
    };
    let as_property = |(key, value): (Str, Value)| {
        Value::Property(Arc::new(PropertyRef {
            owner: Value::Property(Arc::clone(property)),
            key,
            value,
            nth: 0,
        }))
    };
    let entry = |(key, value): (Str, Value)| (Value::String(key), value);
    Ok(match function {
        Function::Id => id()?,
        Function::Label => Value::String(property.key.clone()),
        Function::PropertyValues => {
            Value::list(meta(elements, property, args)?.into_iter().map(|(_, value)| value).collect())
        }
        Function::Properties => {
            Value::list(meta(elements, property, args)?.into_iter().map(as_property).collect())
        }
        Function::HasProperty => match args.first() {
            Some(key @ Value::String(_)) => {
                Value::Bool(!meta(elements, property, std::slice::from_ref(key))?.is_empty())
            }
            _ => Value::Bool(false),
        },
        Function::ValueMap => {
            let mut map = Map::new();
            statement(&mut map)?;
            map.retain(|key, _| matches!(key, Value::Symbol(token) if has_token(args, *token)));
            map.extend(meta(elements, property, args.get(1..).unwrap_or_default())?.into_iter().map(entry));
            Value::map(map)
        }
        Function::ElementMap => {
            let mut map = Map::new();
            statement(&mut map)?;
            map.extend(meta(elements, property, args)?.into_iter().map(entry));
            Value::map(map)
        }
        Function::GremlinPropertyMap => {
            let all = meta(elements, property, args)?.into_iter();
            Value::map(
                all.map(|(key, value)| (Value::String(key.clone()), as_property((key, value)))).collect(),
            )
        }
        _ => {
            let value = Value::Property(Arc::clone(property));
            return Err(Error::of_type(name, "a vertex or edge", &value).into());
        }
    })
}

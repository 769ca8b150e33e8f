//! Elements as drivers see them: labels, and vertex properties with the ids that TinkerPop gives them.

#![expect(clippy::disallowed_types, reason = "looked up and never iterated; its keys are data of users")]

use std::collections::HashMap;
use tidegraph_types::element::property_id;
use tidegraph_types::{Cardinality, PropertyData, PropertyRef, Str, Value, VertexData};

/// A vertex property.
pub(crate) struct VertexProperty<'a> {
    pub(crate) id: i32,
    pub(crate) key: &'a str,
    pub(crate) value: &'a Value,
    pub(crate) meta: Vec<(&'a Str, &'a Value)>,
}

/// Returns the labels as one text.
pub(crate) fn label(labels: &[Str]) -> Str {
    match labels {
        [] => "vertex".into(),
        [one] => one.clone(),
        labels => labels.iter().map(Str::as_str).collect::<Vec<_>>().join("::").into(),
    }
}

/// Returns the properties of a key.
pub(crate) fn properties_of<'a>(data: &'a VertexData, of: &'a PropertyData) -> Vec<VertexProperty<'a>> {
    // Only a list can hold a value more than once.
    let mut seen: HashMap<&Value, u32> = HashMap::new();
    let mut nth = |value| match of.cardinality {
        Cardinality::List if of.values.len() > 1 => {
            let seen = seen.entry(value).or_default();
            *seen += 1;
            *seen - 1
        }
        _ => 0,
    };
    let mut meta = of.meta.iter().peekable();
    (0..)
        .zip(&of.values)
        .map(|(index, value)| VertexProperty {
            id: property_id(&data.id, &of.key, value, nth(value)),
            key: &of.key,
            value,
            meta: std::iter::from_fn(|| meta.next_if(|(at, ..)| *at == index))
                .map(|(_, key, value)| (key, value))
                .collect(),
        })
        .collect()
}

/// Returns a vertex property that an answer has without its vertex.
pub(crate) fn property(property: &PropertyRef) -> VertexProperty<'_> {
    let PropertyRef { owner, key, value, nth } = property;
    let owner_id = if let Value::VertexData(data) = owner { data.id.as_str() } else { "" };
    VertexProperty { id: property_id(owner_id, key, value, *nth), key, value, meta: meta_of(property) }
}

/// Finds the meta-properties of a vertex property in its owner.
fn meta_of(property: &PropertyRef) -> Vec<(&Str, &Value)> {
    let Value::VertexData(data) = &property.owner else { return vec![] };
    let Some(all) = data.properties.iter().find(|p| p.key == property.key && !p.meta.is_empty()) else {
        return vec![];
    };
    let mut equal = all.values.iter().enumerate().filter(|(_, value)| **value == property.value);
    let index = equal.nth(property.nth as usize).map(|(index, _)| index);
    index.map(|index| all.meta_of(index).collect()).unwrap_or_default()
}

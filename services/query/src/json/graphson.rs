//! GraphSON, TinkerPop's JSON: version 3 with types, and the untyped form of versions 1 and 2.

#![expect(clippy::disallowed_types, reason = "looked up and never iterated; its keys are data of users")]

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use smallvec::SmallVec;
use std::collections::HashMap;
use tidegraph_types::{Cardinality, EdgeData, Path, PropertyRef, Str, Value, VertexData};
use xxhash_rust::xxh3::xxh3_64;

/// A value as GraphSON 3.
pub struct Typed<'a>(pub &'a Value);

/// A value as untyped GraphSON.
pub struct Untyped<'a>(pub &'a Value);

/// `{"@type": kind, "@value": value}`.
struct Tagged<T>(&'static str, T);

impl<T: Serialize> Serialize for Tagged<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("@type", self.0)?;
        map.serialize_entry("@value", &self.1)?;
        map.end()
    }
}

/// A list of values, typed.
pub struct TypedList<'a>(pub &'a [Value]);

impl Serialize for TypedList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Tagged("g:List", Items(self.0)).serialize(serializer)
    }
}

/// The first value of each row as a list, typed.
pub struct TypedColumn<'a>(pub &'a [Vec<Value>]);

impl Serialize for TypedColumn<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Firsts<'a>(&'a [Vec<Value>]);
        impl Serialize for Firsts<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.iter().filter_map(|row| row.first().map(Typed)))
            }
        }
        Tagged("g:List", Firsts(self.0)).serialize(serializer)
    }
}

/// The first value of each row as a list, untyped.
pub struct UntypedColumn<'a>(pub &'a [Vec<Value>]);

impl Serialize for UntypedColumn<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter_map(|row| row.first().map(Untyped)))
    }
}

struct Items<'a>(&'a [Value]);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Typed))
    }
}

/// The entries of a map as a list that alternates keys and values.
struct Entries<I>(I);

impl<'a, I: Iterator<Item = (&'a Value, &'a Value)> + Clone> Serialize for Entries<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for (key, value) in self.0.clone() {
            seq.serialize_element(&Typed(key))?;
            seq.serialize_element(&Typed(value))?;
        }
        seq.end()
    }
}

/// A double; NaN and infinities are written as text, because JSON has no numbers for them.
struct Float(f64);

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else if self.0.is_nan() {
            serializer.serialize_str("NaN")
        } else {
            serializer.serialize_str(if self.0 > 0.0 { "Infinity" } else { "-Infinity" })
        }
    }
}

/// Computes the id that TinkerPop's vertex properties have: a hash of owner, key, value, and position among equal
/// values. It is stable and needs no storage.
fn property_id(owner: &str, key: &str, value: &Value, nth: u32) -> i32 {
    let mut bytes: SmallVec<[u8; 128]> = SmallVec::new();
    for part in [owner, key] {
        bytes.extend_from_slice(part.as_bytes());
        bytes.push(0);
    }
    bytes.extend_from_slice(value.type_name().as_bytes());
    bytes.push(0);
    match value {
        Value::String(text) => bytes.extend_from_slice(text.as_bytes()),
        other => match other.as_i64() {
            Some(int) => bytes.extend_from_slice(&int.to_le_bytes()),
            None => bytes.extend_from_slice(format!("{other:?}").as_bytes()),
        },
    }
    if nth > 0 {
        bytes.push(0);
        bytes.extend_from_slice(&nth.to_le_bytes());
    }
    xxh3_64(&bytes) as i32
}

fn vertex_label(data: &VertexData) -> String {
    match &data.labels[..] {
        [] => "vertex".to_owned(),
        labels => labels.iter().map(Str::as_str).collect::<Vec<_>>().join("::"),
    }
}

impl Serialize for Typed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null | Value::Unbound => serializer.serialize_none(),
            Value::Bool(v) => serializer.serialize_bool(*v),
            Value::Byte(v) => Tagged("gx:Byte", v).serialize(serializer),
            Value::Short(v) => Tagged("gx:Int16", v).serialize(serializer),
            Value::Int(v) => Tagged("g:Int32", v).serialize(serializer),
            Value::Long(v) => Tagged("g:Int64", v).serialize(serializer),
            Value::Float(v) if v.is_finite() => Tagged("g:Float", v).serialize(serializer),
            Value::Float(v) => Tagged("g:Float", Float(f64::from(*v))).serialize(serializer),
            Value::Double(v) => Tagged("g:Double", Float(*v)).serialize(serializer),
            Value::String(v) => serializer.serialize_str(v),
            Value::DateTime(v) => Tagged("g:Date", v.as_millisecond()).serialize(serializer),
            Value::List(items) => Tagged("g:List", Items(items)).serialize(serializer),
            Value::Set(items) => Tagged("g:Set", Items(items)).serialize(serializer),
            Value::Map(map) => Tagged("g:Map", Entries(map.iter())).serialize(serializer),
            Value::Entry(entry) => {
                Tagged("g:Map", Entries(std::iter::once((&entry.0, &entry.1)))).serialize(serializer)
            }
            Value::Path(path) => Tagged("g:Path", PathBody(path)).serialize(serializer),
            Value::Property(property) => property_value(property, serializer),
            Value::Symbol(symbol) => {
                use tidegraph_types::Symbol;
                let tag = if matches!(symbol, Symbol::Out | Symbol::In) { "g:Direction" } else { "g:T" };
                Tagged(tag, symbol.as_str()).serialize(serializer)
            }
            // The engine never returns handles. If it did, the number would identify the element.
            Value::Vertex(gui) => Tagged("g:Int64", gui.0 as i64).serialize(serializer),
            Value::Edge(edge) => Tagged("g:Int64", edge.sid.0 as i64).serialize(serializer),
            Value::VertexData(data) => {
                Tagged("g:Vertex", VertexBody { data, typed: true }).serialize(serializer)
            }
            Value::EdgeData(data) => Tagged("g:Edge", EdgeBody { data, typed: true }).serialize(serializer),
        }
    }
}

struct PathBody<'a>(&'a Path);

impl Serialize for PathBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Labels<'a>(&'a Path);
        impl Serialize for Labels<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let none: &[Str] = &[];
                serializer.collect_seq((0..self.0.objects.len()).map(|i| {
                    let labels = self.0.labels.get(i).map_or(none, Vec::as_slice);
                    Tagged("g:Set", labels.iter().map(Str::as_str).collect::<Vec<_>>())
                }))
            }
        }
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("labels", &Tagged("g:List", Labels(self.0)))?;
        map.serialize_entry("objects", &TypedList(&self.0.objects))?;
        map.end()
    }
}

struct PropertyBody<'a> {
    property: &'a PropertyRef,
    typed: bool,
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

/// Meta-properties as a map of keys to values.
struct MetaProperties<'a> {
    meta: &'a [(&'a Str, &'a Value)],
    typed: bool,
}

impl Serialize for MetaProperties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.meta.len()))?;
        for (key, value) in self.meta {
            entry(&mut map, key, value, self.typed)?;
        }
        map.end()
    }
}

fn property_value<S: Serializer>(property: &PropertyRef, serializer: S) -> Result<S::Ok, S::Error> {
    let tag = if property.is_of_vertex() { "g:VertexProperty" } else { "g:Property" };
    Tagged(tag, PropertyBody { property, typed: true }).serialize(serializer)
}

impl Serialize for PropertyBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PropertyRef { owner, key, value, nth } = self.property;
        let mut map = serializer.serialize_map(None)?;
        if self.property.is_of_vertex() {
            let owner_id = if let Value::VertexData(data) = owner { data.id.as_str() } else { "" };
            let id = property_id(owner_id, key, value, *nth);
            entry(&mut map, "id", &Value::Int(id), self.typed)?;
            entry(&mut map, "value", value, self.typed)?;
            map.serialize_entry("label", key.as_str())?;
            meta_properties(&mut map, &meta_of(self.property), self.typed)?;
        } else {
            map.serialize_entry("key", key.as_str())?;
            entry(&mut map, "value", value, self.typed)?;
        }
        map.end()
    }
}

/// Writes the entry `properties` if there are meta-properties.
fn meta_properties<M: SerializeMap>(
    map: &mut M,
    meta: &[(&Str, &Value)],
    typed: bool,
) -> Result<(), M::Error> {
    if meta.is_empty() { Ok(()) } else { map.serialize_entry("properties", &MetaProperties { meta, typed }) }
}

fn entry<M: SerializeMap>(map: &mut M, key: &str, value: &Value, typed: bool) -> Result<(), M::Error> {
    if typed { map.serialize_entry(key, &Typed(value)) } else { map.serialize_entry(key, &Untyped(value)) }
}

struct VertexBody<'a> {
    data: &'a VertexData,
    typed: bool,
}

impl Serialize for VertexBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", self.data.id.as_str())?;
        map.serialize_entry("label", &vertex_label(self.data))?;
        if !self.typed {
            map.serialize_entry("type", "vertex")?;
        }
        if !self.data.properties.is_empty() {
            map.serialize_entry("properties", &VertexProperties { data: self.data, typed: self.typed })?;
        }
        map.end()
    }
}

struct VertexProperties<'a> {
    data: &'a VertexData,
    typed: bool,
}

struct VertexProperty<'a> {
    id: i32,
    key: &'a str,
    value: &'a Value,
    meta: Vec<(&'a Str, &'a Value)>,
    typed: bool,
}

impl Serialize for VertexProperty<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Body<'a>(&'a VertexProperty<'a>);
        impl Serialize for Body<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                entry(&mut map, "id", &Value::Int(self.0.id), self.0.typed)?;
                entry(&mut map, "value", self.0.value, self.0.typed)?;
                if self.0.typed {
                    map.serialize_entry("label", self.0.key)?;
                }
                meta_properties(&mut map, &self.0.meta, self.0.typed)?;
                map.end()
            }
        }
        if self.typed {
            Tagged("g:VertexProperty", Body(self)).serialize(serializer)
        } else {
            Body(self).serialize(serializer)
        }
    }
}

impl Serialize for VertexProperties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.data.properties.iter().map(|p| {
            // Only a list can hold a value more than once.
            let mut seen: HashMap<&Value, u32> = HashMap::new();
            let mut nth = |value| match p.cardinality {
                Cardinality::List if p.values.len() > 1 => {
                    let seen = seen.entry(value).or_default();
                    *seen += 1;
                    *seen - 1
                }
                _ => 0,
            };
            let mut meta = p.meta.iter().peekable();
            let values: Vec<_> = (0..)
                .zip(&p.values)
                .map(|(index, value)| VertexProperty {
                    id: property_id(&self.data.id, &p.key, value, nth(value)),
                    key: &p.key,
                    value,
                    meta: std::iter::from_fn(|| meta.next_if(|(of, ..)| *of == index))
                        .map(|(_, key, value)| (key, value))
                        .collect(),
                    typed: self.typed,
                })
                .collect();
            (p.key.as_str(), values)
        }))
    }
}

struct EdgeBody<'a> {
    data: &'a EdgeData,
    typed: bool,
}

impl Serialize for EdgeBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Properties<'a>(&'a EdgeData, bool);
        impl Serialize for Properties<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                for (key, value) in &self.0.properties {
                    if self.1 {
                        let body = TypedProperty { key, value };
                        map.serialize_entry(key.as_str(), &Tagged("g:Property", body))?;
                    } else {
                        map.serialize_entry(key.as_str(), &Untyped(value))?;
                    }
                }
                map.end()
            }
        }
        let label = |labels: &[Str]| match labels {
            [] => "vertex".to_owned(),
            labels => labels.iter().map(Str::as_str).collect::<Vec<_>>().join("::"),
        };
        let data = self.data;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", data.id.as_str())?;
        map.serialize_entry("label", data.label.as_str())?;
        if !self.typed {
            map.serialize_entry("type", "edge")?;
        }
        map.serialize_entry("inVLabel", &label(&data.target_labels))?;
        map.serialize_entry("outVLabel", &label(&data.source_labels))?;
        map.serialize_entry("inV", data.target_id.as_str())?;
        map.serialize_entry("outV", data.source_id.as_str())?;
        if !data.properties.is_empty() {
            map.serialize_entry("properties", &Properties(data, self.typed))?;
        }
        map.end()
    }
}

struct TypedProperty<'a> {
    key: &'a str,
    value: &'a Value,
}

impl Serialize for TypedProperty<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("key", self.key)?;
        map.serialize_entry("value", &Typed(self.value))?;
        map.end()
    }
}

impl Serialize for Untyped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::VertexData(data) => VertexBody { data, typed: false }.serialize(serializer),
            Value::EdgeData(data) => EdgeBody { data, typed: false }.serialize(serializer),
            Value::DateTime(v) => serializer.serialize_i64(v.as_millisecond()),
            Value::List(items) | Value::Set(items) => serializer.collect_seq(items.iter().map(Untyped)),
            Value::Map(map) => {
                let mut out = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map.iter() {
                    out.serialize_entry(&text_key(key), &Untyped(value))?;
                }
                out.end()
            }
            Value::Entry(pair) => {
                let mut out = serializer.serialize_map(Some(1))?;
                out.serialize_entry(&text_key(&pair.0), &Untyped(&pair.1))?;
                out.end()
            }
            Value::Path(path) => {
                let labels: Vec<&[Str]> = (0..path.objects.len())
                    .map(|i| path.labels.get(i).map_or(&[][..], Vec::as_slice))
                    .collect();
                let mut out = serializer.serialize_map(Some(2))?;
                out.serialize_entry("labels", &labels)?;
                out.serialize_entry("objects", &path.objects.iter().map(Untyped).collect::<Vec<_>>())?;
                out.end()
            }
            Value::Property(property) => PropertyBody { property, typed: false }.serialize(serializer),
            other => super::plain::Plain(other).serialize(serializer),
        }
    }
}

fn text_key(key: &Value) -> String {
    match key {
        Value::String(text) => text.to_string(),
        Value::Symbol(symbol) => symbol.as_str().to_owned(),
        Value::VertexData(data) => data.id.to_string(),
        Value::EdgeData(data) => data.id.to_string(),
        other => serde_json::to_string(&Untyped(other)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::{Gui, PropertyData, Symbol};

    fn typed(value: &Value) -> String {
        serde_json::to_string(&Typed(value)).expect("json")
    }

    #[test]
    fn numbers_carry_their_width() {
        let list = Value::list(vec![
            Value::Byte(1),
            Value::Short(2),
            Value::Int(3),
            Value::Long(4),
            Value::Double(0.5),
        ]);
        assert_eq!(
            typed(&list),
            r#"{"@type":"g:List","@value":[{"@type":"gx:Byte","@value":1},{"@type":"gx:Int16","@value":2},{"@type":"g:Int32","@value":3},{"@type":"g:Int64","@value":4},{"@type":"g:Double","@value":0.5}]}"#
        );
        assert_eq!(typed(&Value::Double(f64::INFINITY)), r#"{"@type":"g:Double","@value":"Infinity"}"#);
    }

    #[test]
    fn maps_are_lists_of_keys_and_values() {
        let map = Value::map(
            [(Value::Symbol(Symbol::Id), "a".into()), ("n".into(), 1.into())].into_iter().collect(),
        );
        assert_eq!(
            typed(&map),
            r#"{"@type":"g:Map","@value":[{"@type":"g:T","@value":"id"},"a","n",{"@type":"g:Int32","@value":1}]}"#
        );
        assert_eq!(serde_json::to_string(&Untyped(&map)).expect("json"), r#"{"id":"a","n":1}"#);
    }

    #[test]
    fn a_path_has_a_set_of_labels_for_each_object() {
        let path = Path { objects: vec!["a".into(), 1.into()], labels: vec![vec!["x".into()], vec![]] };
        assert_eq!(
            typed(&Value::Path(path.into())),
            r#"{"@type":"g:Path","@value":{"labels":{"@type":"g:List","@value":[{"@type":"g:Set","@value":["x"]},{"@type":"g:Set","@value":[]}]},"objects":{"@type":"g:List","@value":["a",{"@type":"g:Int32","@value":1}]}}}"#
        );
    }

    /// Returns a vertex whose `place` has the same value twice, with meta-properties, and that value as a property.
    fn annotated() -> (Value, Value) {
        let place = PropertyData {
            key: "place".into(),
            cardinality: Cardinality::List,
            values: vec!["ulm".into(), "ulm".into()].into(),
            meta: vec![(1, "from".into(), 1999.into()), (1, "kind".into(), "home".into())],
        };
        let data =
            VertexData { gui: Gui(1), id: "a".into(), labels: vec!["P".into()], properties: vec![place] };
        let vertex = Value::VertexData(data.into());
        let property =
            PropertyRef { owner: vertex.clone(), key: "place".into(), value: "ulm".into(), nth: 1 };
        (vertex, Value::Property(property.into()))
    }

    #[test]
    fn vertex_properties_have_properties() {
        let (vertex, property) = annotated();
        let json = |value: &Value| serde_json::to_value(Typed(value)).expect("json");
        let typed = json(&property);
        assert_eq!(typed["@type"], "g:VertexProperty");
        let meta = serde_json::json!({"from": {"@type": "g:Int32", "@value": 1999}, "kind": "home"});
        assert_eq!(typed["@value"]["properties"], meta);
        let of_vertex = &json(&vertex)["@value"]["properties"]["place"];
        assert_eq!(of_vertex[1], typed, "the same in a vertex, with the same id");
        assert!(of_vertex[0]["@value"].get("properties").is_none());
        assert_ne!(of_vertex[0]["@value"]["id"], of_vertex[1]["@value"]["id"]);
        let untyped = serde_json::to_value(Untyped(&property)).expect("json");
        assert_eq!(untyped["properties"], serde_json::json!({"from": 1999, "kind": "home"}));
        let untyped = serde_json::to_value(Untyped(&vertex)).expect("json");
        let of_vertex = &untyped["properties"]["place"][1]["properties"];
        assert_eq!(*of_vertex, serde_json::json!({"from": 1999, "kind": "home"}));
        let meta = PropertyRef { owner: property, key: "from".into(), value: 1999.into(), nth: 0 };
        assert_eq!(
            typed_value(&Value::Property(meta.into())),
            serde_json::json!({"@type": "g:Property", "@value": {"key": "from", "value": {"@type": "g:Int32", "@value": 1999}}})
        );
    }

    fn typed_value(value: &Value) -> serde_json::Value {
        serde_json::from_str(&typed(value)).expect("json")
    }
}

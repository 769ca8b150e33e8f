//! GraphSON, TinkerPop's JSON: version 3 with types, and the untyped form that versions 1 and 2 share.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use smallvec::SmallVec;
use tidegraph_types::{EdgeData, Path, PropertyRef, Str, Value, VertexData};
use xxhash_rust::xxh3::xxh3_64;

/// Writes a value as GraphSON 3.
pub struct Typed<'a>(pub &'a Value);

/// Writes a value as untyped GraphSON.
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

/// Keys and values in turn.
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

/// Doubles that JSON lacks are text inside their tag.
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

/// Vertex properties have ids in TinkerPop. Ours are a hash of owner, key and value: stable, and nothing is stored.
fn property_id(owner: &str, key: &str, value: &Value) -> i32 {
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
            // Handles never leave the engine; should one, its number says which.
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

fn owner_id(owner: &Value) -> Option<&str> {
    match owner {
        Value::VertexData(data) => Some(&data.id),
        _ => None,
    }
}

fn property_value<S: Serializer>(property: &PropertyRef, serializer: S) -> Result<S::Ok, S::Error> {
    let is_vertex = property.owner.as_vertex().is_some();
    let tag = if is_vertex { "g:VertexProperty" } else { "g:Property" };
    Tagged(tag, PropertyBody { property, typed: true }).serialize(serializer)
}

impl Serialize for PropertyBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PropertyRef { owner, key, value } = self.property;
        let mut map = serializer.serialize_map(None)?;
        if owner.as_vertex().is_some() {
            let id = property_id(owner_id(owner).unwrap_or_default(), key, value);
            entry(&mut map, "id", &Value::Int(id), self.typed)?;
            entry(&mut map, "value", value, self.typed)?;
            map.serialize_entry("label", key.as_str())?;
        } else {
            map.serialize_entry("key", key.as_str())?;
            entry(&mut map, "value", value, self.typed)?;
        }
        map.end()
    }
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
            let values: Vec<_> = p
                .values
                .iter()
                .map(|value| VertexProperty {
                    id: property_id(&self.data.id, &p.key, value),
                    key: &p.key,
                    value,
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
    use tidegraph_types::Symbol;

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
}

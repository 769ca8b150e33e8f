//! Writes values.

use crate::element::{self, VertexProperty};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use tidegraph_types::{
    Big, EdgeData, ElementIds, Map, Path, PropertyRef, Str, Subgraph, Symbol, Value, VertexData,
};

/// A version with types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    /// Lists, sets and maps are those of JSON.
    V2,
    /// Lists, sets and maps have types.
    V3,
}

/// How values are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Form {
    pub(crate) version: Version,
    /// Whether elements have their properties.
    pub(crate) properties: bool,
}

/// A value with its types.
pub(crate) struct Typed<'a>(pub(crate) &'a Value, pub(crate) Form);

/// Returns a value with its types, as it is written.
pub(crate) fn typed(value: &Value, version: Version) -> impl Serialize {
    Typed(value, Form { version, properties: true })
}

/// A value as untyped GraphSON.
pub struct Untyped<'a> {
    /// The value.
    pub value: &'a Value,
    /// Whether elements have their properties.
    pub properties: bool,
}

/// `{"@type": kind, "@value": value}`.
pub(crate) struct Tagged<T>(pub(crate) &'static str, pub(crate) T);

impl<T: Serialize> Serialize for Tagged<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("@type", self.0)?;
        map.serialize_entry("@value", &self.1)?;
        map.end()
    }
}

/// A map with no entries; with a type in version 3.
#[derive(Clone, Copy)]
pub(crate) struct Nothing(pub(crate) Option<Version>);

impl Serialize for Nothing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(Version::V3) => Tagged::<[(); 0]>("g:Map", []).serialize(serializer),
            _ => serializer.collect_map(std::iter::empty::<((), ())>()),
        }
    }
}

/// A value of an answer.
pub(crate) struct Item<'a> {
    pub(crate) value: &'a Value,
    /// `None`: without types.
    pub(crate) version: Option<Version>,
    pub(crate) properties: bool,
    /// Whether the value is that of a traverser.
    pub(crate) traversers: bool,
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { value, version, properties, traversers } = *self;
        let Some(version) = version else {
            return Untyped { value, properties }.serialize(serializer);
        };
        let form = Form { version, properties };
        if traversers {
            Tagged("g:Traverser", Traverser { value, form }).serialize(serializer)
        } else {
            Typed(value, form).serialize(serializer)
        }
    }
}

struct Traverser<'a> {
    value: &'a Value,
    form: Form,
}

impl Serialize for Traverser<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("bulk", &Tagged("g:Int64", 1))?;
        map.serialize_entry("value", &Typed(self.value, self.form))?;
        map.end()
    }
}

/// Writes a list: with a type in version 3.
fn list<T: Serialize, S: Serializer>(
    form: Form,
    items: impl Iterator<Item = T> + Clone,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    collection("g:List", form, items, serializer)
}

fn collection<T: Serialize, S: Serializer>(
    tag: &'static str,
    form: Form,
    items: impl Iterator<Item = T> + Clone,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match form.version {
        Version::V2 => serializer.collect_seq(items),
        Version::V3 => Tagged(tag, Items(items)).serialize(serializer),
    }
}

struct Items<I>(I);

impl<T: Serialize, I: Iterator<Item = T> + Clone> Serialize for Items<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

/// Writes a map: in version 3 as a list that alternates keys and values, in version 2 as an object.
fn map<'a, S: Serializer>(
    form: Form,
    entries: impl Iterator<Item = (&'a Value, &'a Value)> + Clone,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    struct Alternating<I>(I, Form);
    impl<'a, I: Iterator<Item = (&'a Value, &'a Value)> + Clone> Serialize for Alternating<I> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut seq = serializer.serialize_seq(None)?;
            for (key, value) in self.0.clone() {
                seq.serialize_element(&Typed(key, self.1))?;
                seq.serialize_element(&Typed(value, self.1))?;
            }
            seq.end()
        }
    }
    match form.version {
        Version::V2 => {
            serializer.collect_map(entries.map(|(key, value)| (text_key(key), Typed(value, form))))
        }
        Version::V3 => Tagged("g:Map", Alternating(entries, form)).serialize(serializer),
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

impl Serialize for Typed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(value, form) = *self;
        let typed = |value| Typed(value, form);
        match value {
            Value::Null | Value::Unbound => serializer.serialize_none(),
            Value::Bool(v) => serializer.serialize_bool(*v),
            Value::Byte(v) => Tagged("gx:Byte", v).serialize(serializer),
            Value::Short(v) => Tagged("gx:Int16", v).serialize(serializer),
            Value::Int(v) => Tagged("g:Int32", v).serialize(serializer),
            Value::Long(v) => Tagged("g:Int64", v).serialize(serializer),
            Value::Float(v) if v.is_finite() => Tagged("g:Float", v).serialize(serializer),
            Value::Float(v) => Tagged("g:Float", Float(f64::from(*v))).serialize(serializer),
            Value::Double(v) => Tagged("g:Double", Float(*v)).serialize(serializer),
            // As text, because many readers of JSON round numbers to doubles.
            Value::Big(v) => {
                let tag = match **v {
                    Big::Integer(_) => "gx:BigInteger",
                    Big::Decimal(_) => "gx:BigDecimal",
                };
                Tagged(tag, v.to_string()).serialize(serializer)
            }
            Value::String(v) => serializer.serialize_str(v),
            Value::DateTime(v) => Tagged("g:Date", v.as_millisecond()).serialize(serializer),
            // Drivers have points in time, but not openCypher's other types: those are texts.
            Value::Temporal(v) => match v.instant() {
                Some(at) => Tagged("g:Date", at.as_millisecond()).serialize(serializer),
                None => serializer.collect_str(v),
            },
            Value::Point(v) => serializer.collect_str(v),
            Value::Uuid(v) => Tagged("g:UUID", v.to_string()).serialize(serializer),
            Value::List(items) => list(form, items.iter().map(typed), serializer),
            Value::Set(items) => collection("g:Set", form, items.iter().map(typed), serializer),
            Value::Map(entries) => map(form, entries.iter(), serializer),
            Value::Entry(entry) => map(form, std::iter::once((&entry.0, &entry.1)), serializer),
            Value::Path(path) => Tagged("g:Path", PathBody(path, form)).serialize(serializer),
            Value::Tree(tree) => Tagged("g:Tree", TreeBody(tree, form)).serialize(serializer),
            Value::Graph(graph) => {
                // A graph is useless without the properties of its elements.
                let form = Form { properties: true, ..form };
                Tagged("tinker:graph", GraphBody(graph, |value| Typed(value, form))).serialize(serializer)
            }
            Value::Property(property) if property.is_of_vertex() => {
                Tagged("g:VertexProperty", TypedVertexProperty(&element::property(property), form))
                    .serialize(serializer)
            }
            Value::Property(property) => TypedProperty::of(property, form).serialize(serializer),
            Value::Symbol(symbol) => {
                let tag = if matches!(symbol, Symbol::Out | Symbol::In) { "g:Direction" } else { "g:T" };
                Tagged(tag, symbol.as_str()).serialize(serializer)
            }
            // The engine never returns handles. If it did, the number would identify the element.
            Value::Vertex(gui) => Tagged("g:Int64", gui.0 as i64).serialize(serializer),
            Value::Edge(edge) => Tagged("g:Int64", edge.sid.0 as i64).serialize(serializer),
            Value::VertexData(data) => Tagged("g:Vertex", TypedVertex(data, form)).serialize(serializer),
            Value::EdgeData(data) => Tagged("g:Edge", TypedEdge(data, form)).serialize(serializer),
        }
    }
}

/// The objects of a tree, each with the tree below it.
struct TreeBody<'a>(&'a Map, Form);

impl Serialize for TreeBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Branch<'a>(&'a Value, &'a Value, Form);
        impl Serialize for Branch<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("key", &Typed(self.0, self.2))?;
                map.serialize_entry("value", &Typed(self.1, self.2))?;
                map.end()
            }
        }
        serializer.collect_seq(self.0.iter().map(|(object, below)| Branch(object, below, self.1)))
    }
}

/// The vertices and edges of a graph, each written as the function says.
struct GraphBody<'a, F>(&'a Subgraph, F);

impl<'a, T: Serialize, F: Fn(&'a Value) -> T> Serialize for GraphBody<'a, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        let elements = |all: &'a [Value]| all.iter().map(&self.1).collect::<Vec<_>>();
        map.serialize_entry("vertices", &elements(&self.0.vertices))?;
        map.serialize_entry("edges", &elements(&self.0.edges))?;
        map.end()
    }
}

struct PathBody<'a>(&'a Path, Form);

impl Serialize for PathBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Labels<'a>(&'a Path, Form);
        impl Serialize for Labels<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let Self(path, form) = *self;
                let all = (0..path.objects.len()).map(|index| LabelsOfOne(labels_at(path, index), form));
                list(form, all, serializer)
            }
        }
        struct LabelsOfOne<'a>(&'a [Str], Form);
        impl Serialize for LabelsOfOne<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                collection("g:Set", self.1, self.0.iter().map(Str::as_str), serializer)
            }
        }
        struct Objects<'a>(&'a Path, Form);
        impl Serialize for Objects<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                list(self.1, self.0.objects.iter().map(|object| Typed(object, self.1)), serializer)
            }
        }
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("labels", &Labels(self.0, self.1))?;
        map.serialize_entry("objects", &Objects(self.0, self.1))?;
        map.end()
    }
}

fn labels_at(path: &Path, index: usize) -> &[Str] {
    path.labels.get(index).map_or(&[], Vec::as_slice)
}

struct TypedVertexProperty<'a>(&'a VertexProperty<'a>, Form);

impl Serialize for TypedVertexProperty<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Meta<'a>(&'a [(&'a Str, &'a Value)], Form);
        impl Serialize for Meta<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|(key, value)| (key.as_str(), Typed(value, self.1))))
            }
        }
        let Self(VertexProperty { id, key, value, meta }, form) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &Tagged("g:Int32", id))?;
        map.serialize_entry("value", &Typed(value, *form))?;
        map.serialize_entry("label", key)?;
        if !meta.is_empty() && form.properties {
            map.serialize_entry("properties", &Meta(meta, *form))?;
        }
        map.end()
    }
}

struct TypedProperty<'a> {
    key: &'a str,
    value: &'a Value,
    form: Form,
}

impl<'a> TypedProperty<'a> {
    fn of(property: &'a PropertyRef, form: Form) -> Tagged<Self> {
        Tagged("g:Property", Self { key: &property.key, value: &property.value, form })
    }
}

impl Serialize for TypedProperty<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("key", &self.key)?;
        map.serialize_entry("value", &Typed(self.value, self.form))?;
        map.end()
    }
}

struct TypedVertex<'a>(&'a VertexData, Form);

impl Serialize for TypedVertex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Properties<'a>(&'a VertexData, Form);
        impl Serialize for Properties<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                struct OfKey<'a>(Vec<VertexProperty<'a>>, Form);
                impl Serialize for OfKey<'_> {
                    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                        let typed = |of| Tagged("g:VertexProperty", TypedVertexProperty(of, self.1));
                        serializer.collect_seq(self.0.iter().map(typed))
                    }
                }
                let Self(data, form) = *self;
                let of_key = |of| OfKey(element::properties_of(data, of), form);
                serializer.collect_map(data.properties.iter().map(|of| (of.key.as_str(), of_key(of))))
            }
        }
        let Self(data, form) = *self;
        let mut map = serializer.serialize_map(None)?;
        id_entry("id", data.ids, &data.id, Some(form), &mut map)?;
        map.serialize_entry("label", &element::label(&data.labels))?;
        if !data.properties.is_empty() && form.properties {
            map.serialize_entry("properties", &Properties(data, form))?;
        }
        map.end()
    }
}

struct TypedEdge<'a>(&'a EdgeData, Form);

impl Serialize for TypedEdge<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Properties<'a>(&'a EdgeData, Form);
        impl Serialize for Properties<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let Self(data, form) = *self;
                serializer.collect_map(data.properties.iter().map(|(key, value)| {
                    (key.as_str(), Tagged("g:Property", TypedProperty { key, value, form }))
                }))
            }
        }
        let Self(data, form) = *self;
        let mut map = serializer.serialize_map(None)?;
        ends_of_edge(data, Some(form), &mut map)?;
        if !data.properties.is_empty() && form.properties {
            map.serialize_entry("properties", &Properties(data, form))?;
        }
        map.end()
    }
}

/// An object of a tree, with the tree below it.
struct UntypedBranch<'a> {
    object: &'a Value,
    below: &'a Value,
    properties: bool,
}

impl Serialize for UntypedBranch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let untyped = |value| Untyped { value, properties: self.properties };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("key", &untyped(self.object))?;
        map.serialize_entry("value", &untyped(self.below))?;
        map.end()
    }
}

/// Writes an entry with an id. Without a form, it has no type.
fn id_entry<M: SerializeMap>(
    key: &str,
    ids: ElementIds,
    text: &Str,
    form: Option<Form>,
    map: &mut M,
) -> Result<(), M::Error> {
    let value = &ids.value(text);
    match form {
        Some(form) => map.serialize_entry(key, &Typed(value, form)),
        None => map.serialize_entry(key, &Untyped { value, properties: false }),
    }
}

/// Writes what an edge has besides properties. Without a form, its ids have no types.
fn ends_of_edge<M: SerializeMap>(data: &EdgeData, form: Option<Form>, map: &mut M) -> Result<(), M::Error> {
    id_entry("id", data.ids, &data.id, form, map)?;
    map.serialize_entry("label", data.label.as_str())?;
    if form.is_none() {
        map.serialize_entry("type", "edge")?;
    }
    map.serialize_entry("inVLabel", &element::label(&data.target_labels))?;
    map.serialize_entry("outVLabel", &element::label(&data.source_labels))?;
    id_entry("inV", data.ids, &data.target_id, form, map)?;
    id_entry("outV", data.ids, &data.source_id, form, map)
}

impl Serialize for Untyped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let properties = self.properties;
        let untyped = |value| Untyped { value, properties };
        match self.value {
            Value::Null | Value::Unbound => serializer.serialize_none(),
            Value::Bool(v) => serializer.serialize_bool(*v),
            Value::Byte(v) => serializer.serialize_i8(*v),
            Value::Short(v) => serializer.serialize_i16(*v),
            Value::Int(v) => serializer.serialize_i32(*v),
            Value::Long(v) => serializer.serialize_i64(*v),
            Value::Float(v) if v.is_finite() => serializer.serialize_f32(*v),
            Value::Float(v) => Float(f64::from(*v)).serialize(serializer),
            Value::Double(v) => Float(*v).serialize(serializer),
            Value::String(v) => serializer.serialize_str(v),
            Value::DateTime(v) => serializer.serialize_i64(v.as_millisecond()),
            Value::Temporal(v) => match v.instant() {
                Some(at) => serializer.serialize_i64(at.as_millisecond()),
                None => serializer.collect_str(v),
            },
            Value::Point(v) => serializer.collect_str(v),
            Value::Uuid(v) => serializer.collect_str(v),
            Value::Big(v) => serializer.collect_str(v),
            Value::Symbol(symbol) => serializer.serialize_str(symbol.as_str()),
            Value::List(items) | Value::Set(items) => serializer.collect_seq(items.iter().map(untyped)),
            Value::Map(map) => {
                serializer.collect_map(map.iter().map(|(key, value)| (text_key(key), untyped(value))))
            }
            Value::Entry(pair) => serializer.collect_map([(text_key(&pair.0), untyped(&pair.1))]),
            Value::Tree(tree) => serializer.collect_map(
                tree.iter()
                    .map(|(object, below)| (text_key(object), UntypedBranch { object, below, properties })),
            ),
            Value::Graph(graph) => {
                GraphBody(graph, |value| Untyped { value, properties: true }).serialize(serializer)
            }
            Value::Path(path) => {
                let labels: Vec<&[Str]> =
                    (0..path.objects.len()).map(|index| labels_at(path, index)).collect();
                let mut out = serializer.serialize_map(Some(2))?;
                out.serialize_entry("labels", &labels)?;
                out.serialize_entry("objects", &path.objects.iter().map(untyped).collect::<Vec<_>>())?;
                out.end()
            }
            Value::Property(property) if property.is_of_vertex() => {
                UntypedVertexProperty { property: &element::property(property), has_label: true, properties }
                    .serialize(serializer)
            }
            Value::Property(property) => {
                let mut out = serializer.serialize_map(Some(2))?;
                out.serialize_entry("key", property.key.as_str())?;
                out.serialize_entry("value", &untyped(&property.value))?;
                out.end()
            }
            // The engine never returns handles. If it did, the number would identify the element.
            Value::Vertex(gui) => serializer.collect_str(gui),
            Value::Edge(edge) => serializer.collect_str(&edge.sid),
            Value::VertexData(data) => untyped_vertex(data, properties, serializer),
            Value::EdgeData(data) => {
                let mut out = serializer.serialize_map(None)?;
                ends_of_edge(data, None, &mut out)?;
                if !data.properties.is_empty() && properties {
                    let all = data.properties.iter().map(|(key, value)| (key.as_str(), untyped(value)));
                    out.serialize_entry("properties", &Entries(all))?;
                }
                out.end()
            }
        }
    }
}

struct Entries<I>(I);

impl<K: Serialize, V: Serialize, I: Iterator<Item = (K, V)> + Clone> Serialize for Entries<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.clone())
    }
}

struct UntypedVertexProperty<'a> {
    property: &'a VertexProperty<'a>,
    has_label: bool,
    properties: bool,
}

impl Serialize for UntypedVertexProperty<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let properties = self.properties;
        let untyped = |value| Untyped { value, properties };
        let VertexProperty { id, key, value, meta } = self.property;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", id)?;
        map.serialize_entry("value", &untyped(value))?;
        if self.has_label {
            map.serialize_entry("label", key)?;
        }
        if !meta.is_empty() && properties {
            let meta = meta.iter().map(|(key, value)| (key.as_str(), untyped(value)));
            map.serialize_entry("properties", &Entries(meta))?;
        }
        map.end()
    }
}

fn untyped_vertex<S: Serializer>(
    data: &VertexData,
    properties: bool,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    struct OfKey<'a>(Vec<VertexProperty<'a>>);
    impl Serialize for OfKey<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(self.0.iter().map(|property| UntypedVertexProperty {
                property,
                has_label: false,
                properties: true,
            }))
        }
    }
    let mut out = serializer.serialize_map(None)?;
    id_entry("id", data.ids, &data.id, None, &mut out)?;
    out.serialize_entry("label", &element::label(&data.labels))?;
    out.serialize_entry("type", "vertex")?;
    if !data.properties.is_empty() && properties {
        let of_key = |of| OfKey(element::properties_of(data, of));
        let all = data.properties.iter().map(|of| (of.key.as_str(), of_key(of)));
        out.serialize_entry("properties", &Entries(all))?;
    }
    out.end()
}

fn text_key(key: &Value) -> String {
    match key {
        Value::String(text) => text.to_string(),
        Value::Symbol(symbol) => symbol.as_str().to_owned(),
        Value::VertexData(data) => data.ids.shown(&data.id).to_owned(),
        Value::EdgeData(data) => data.ids.shown(&data.id).to_owned(),
        other => serde_json::to_string(&Untyped { value: other, properties: true }).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::{Cardinality, Gui, PropertyData};

    const FORM: Form = Form { version: Version::V3, properties: true };

    fn text(value: &Value) -> String {
        serde_json::to_string(&Typed(value, FORM)).expect("json")
    }

    fn untyped(value: &Value) -> Untyped<'_> {
        Untyped { value, properties: true }
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
            text(&list),
            r#"{"@type":"g:List","@value":[{"@type":"gx:Byte","@value":1},{"@type":"gx:Int16","@value":2},{"@type":"g:Int32","@value":3},{"@type":"g:Int64","@value":4},{"@type":"g:Double","@value":0.5}]}"#
        );
        assert_eq!(text(&Value::Double(f64::INFINITY)), r#"{"@type":"g:Double","@value":"Infinity"}"#);
    }

    #[test]
    fn maps_are_lists_of_keys_and_values() {
        let map = Value::map(
            [(Value::Symbol(Symbol::Id), "a".into()), ("n".into(), 1.into())].into_iter().collect(),
        );
        assert_eq!(
            text(&map),
            r#"{"@type":"g:Map","@value":[{"@type":"g:T","@value":"id"},"a","n",{"@type":"g:Int32","@value":1}]}"#
        );
        assert_eq!(serde_json::to_string(&untyped(&map)).expect("json"), r#"{"id":"a","n":1}"#);
        let second = Form { version: Version::V2, ..FORM };
        assert_eq!(
            serde_json::to_string(&Typed(&map, second)).expect("json"),
            r#"{"id":"a","n":{"@type":"g:Int32","@value":1}}"#
        );
    }

    #[test]
    fn a_path_has_a_set_of_labels_for_each_object() {
        let path = Path { objects: vec!["a".into(), 1.into()], labels: vec![vec!["x".into()], vec![]] };
        assert_eq!(
            text(&Value::Path(path.into())),
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
        let data = VertexData {
            gui: Gui(1),
            id: "a".into(),
            ids: ElementIds::Strings,
            labels: vec!["P".into()],
            properties: vec![place],
        };
        let vertex = Value::VertexData(data.into());
        let property =
            PropertyRef { owner: vertex.clone(), key: "place".into(), value: "ulm".into(), nth: 1 };
        (vertex, Value::Property(property.into()))
    }

    #[test]
    fn ids_have_the_type_that_the_graph_gives_them() {
        let (vertex, _) = annotated();
        let Value::VertexData(data) = vertex else { unreachable!() };
        let with = |id: &str, ids| VertexData { id: id.into(), ids, properties: vec![], ..(*data).clone() };
        let both = |id, ids| {
            let value = Value::VertexData(with(id, ids).into());
            let untyped = serde_json::to_value(untyped(&value)).expect("json");
            (
                serde_json::to_value(Typed(&value, FORM)).expect("json")["@value"]["id"].clone(),
                untyped["id"].clone(),
            )
        };
        let tagged = |tag: &str, value: serde_json::Value| serde_json::json!({"@type": tag, "@value": value});
        let uuid = "00112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(both("1", ElementIds::Strings), ("1".into(), "1".into()));
        assert_eq!(both("1", ElementIds::Typed), (tagged("g:Int32", 1.into()), 1.into()));
        assert_eq!(both("1", ElementIds::Longs), (tagged("g:Int64", 1.into()), 1.into()));
        assert_eq!(both("string:1", ElementIds::Typed), ("1".into(), "1".into()));
        assert_eq!(both(uuid, ElementIds::Typed), (tagged("g:UUID", uuid.into()), uuid.into()));
    }

    #[test]
    fn vertex_properties_have_properties() {
        let (vertex, property) = annotated();
        let json = |value: &Value| serde_json::to_value(Typed(value, FORM)).expect("json");
        let typed = json(&property);
        assert_eq!(typed["@type"], "g:VertexProperty");
        let meta = serde_json::json!({"from": {"@type": "g:Int32", "@value": 1999}, "kind": "home"});
        assert_eq!(typed["@value"]["properties"], meta);
        let of_vertex = &json(&vertex)["@value"]["properties"]["place"];
        assert_eq!(of_vertex[1], typed, "the same in a vertex, with the same id");
        assert!(of_vertex[0]["@value"].get("properties").is_none());
        assert_ne!(of_vertex[0]["@value"]["id"], of_vertex[1]["@value"]["id"]);
        let plain = serde_json::to_value(untyped(&property)).expect("json");
        assert_eq!(plain["properties"], serde_json::json!({"from": 1999, "kind": "home"}));
        let plain = serde_json::to_value(untyped(&vertex)).expect("json");
        let of_vertex = &plain["properties"]["place"][1]["properties"];
        assert_eq!(*of_vertex, serde_json::json!({"from": 1999, "kind": "home"}));
        let meta = PropertyRef { owner: property, key: "from".into(), value: 1999.into(), nth: 0 };
        assert_eq!(
            typed_value(&Value::Property(meta.into())),
            serde_json::json!({"@type": "g:Property", "@value": {"key": "from", "value": {"@type": "g:Int32", "@value": 1999}}})
        );
    }

    #[test]
    fn trees_and_graphs() {
        let tree = |entries: Vec<(Value, Value)>| Value::Tree(Map::from_iter(entries).into());
        let two = tree(vec![("a".into(), tree(vec![(1.into(), tree(vec![]))]))]);
        assert_eq!(
            text(&two),
            r#"{"@type":"g:Tree","@value":[{"key":"a","value":{"@type":"g:Tree","@value":[{"key":{"@type":"g:Int32","@value":1},"value":{"@type":"g:Tree","@value":[]}}]}}]}"#
        );
        let plain = serde_json::to_string(&untyped(&two)).expect("json");
        assert_eq!(plain, r#"{"a":{"key":"a","value":{"1":{"key":1,"value":{}}}}}"#);
        let (vertex, _) = annotated();
        let graph = Value::Graph(Subgraph { vertices: vec![vertex.clone()], edges: vec![] }.into());
        let bare = Form { properties: false, ..FORM };
        let typed = serde_json::to_value(Typed(&graph, bare)).expect("json");
        assert_eq!(typed["@type"], "tinker:graph");
        assert_eq!(typed["@value"]["edges"], serde_json::json!([]));
        assert_eq!(typed["@value"]["vertices"][0], typed_value(&vertex), "with properties");
    }

    fn typed_value(value: &Value) -> serde_json::Value {
        serde_json::from_str(&text(value)).expect("json")
    }
}

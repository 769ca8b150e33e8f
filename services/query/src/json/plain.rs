//! Plain JSON as Neptune's openCypher endpoint writes it: elements are objects with `~id` and `~entityType`.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use tidegraph_types::temporal::Iso;
use tidegraph_types::{EdgeData, Point, PropertyData, Str, Value, VertexData};

/// A value as plain JSON.
pub struct Plain<'a>(pub &'a Value);

/// An answer as `{"results": [{column: value}]}`.
pub struct Results<'a> {
    /// Names of the columns.
    pub columns: &'a [Str],
    /// Rows with a value for each column.
    pub rows: &'a [Vec<Value>],
}

impl Serialize for Results<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("results", &Rows { columns: self.columns, rows: self.rows })?;
        map.end()
    }
}

struct Rows<'a> {
    columns: &'a [Str],
    rows: &'a [Vec<Value>],
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows.iter().map(|row| Row { columns: self.columns, row }))
    }
}

/// A row as `{column: value}`.
pub struct Row<'a> {
    /// Names of the columns.
    pub columns: &'a [Str],
    /// A value for each of them.
    pub row: &'a [Value],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.columns.iter().zip(self.row.iter().map(Plain)))
    }
}

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null | Value::Unbound => serializer.serialize_none(),
            Value::Bool(v) => serializer.serialize_bool(*v),
            Value::Byte(v) => serializer.serialize_i8(*v),
            Value::Short(v) => serializer.serialize_i16(*v),
            Value::Int(v) => serializer.serialize_i32(*v),
            Value::Long(v) => serializer.serialize_i64(*v),
            Value::Float(v) => float(f64::from(*v), v.is_finite().then_some(*v), serializer),
            Value::Double(v) => float(*v, v.is_finite().then_some(*v), serializer),
            Value::String(v) => serializer.serialize_str(v),
            Value::DateTime(v) => serializer.collect_str(&Iso(*v)),
            Value::Temporal(v) => serializer.collect_str(v),
            Value::Point(v) => point(v, serializer),
            Value::Uuid(v) => serializer.collect_str(v),
            // As text, because many readers of JSON round numbers to doubles.
            Value::Big(v) => serializer.collect_str(v),
            Value::List(items) | Value::Set(items) => serializer.collect_seq(items.iter().map(Plain)),
            Value::Graph(graph) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("vertices", &graph.vertices.iter().map(Plain).collect::<Vec<_>>())?;
                map.serialize_entry("edges", &graph.edges.iter().map(Plain).collect::<Vec<_>>())?;
                map.end()
            }
            Value::Map(map) | Value::Tree(map) => {
                serializer.collect_map(map.iter().map(|(k, v)| (key(k), Plain(v))))
            }
            Value::Entry(entry) => serializer.collect_map([(key(&entry.0), Plain(&entry.1))]),
            Value::Path(path) => serializer.collect_seq(path.objects.iter().map(Plain)),
            Value::Property(property) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("key", property.key.as_str())?;
                map.serialize_entry("value", &Plain(&property.value))?;
                map.end()
            }
            Value::Symbol(symbol) => serializer.serialize_str(symbol.as_str()),
            // The engine never returns handles. If it did, the number would identify the element.
            Value::Vertex(gui) => serializer.collect_str(gui),
            Value::Edge(edge) => serializer.collect_str(&edge.sid),
            Value::VertexData(data) => vertex(data, serializer),
            Value::EdgeData(data) => edge(data, serializer),
        }
    }
}

/// Writes NaN and infinities as text, as Neptune does, because JSON has no numbers for them.
fn float<S: Serializer, F: Serialize>(
    value: f64,
    finite: Option<F>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match finite {
        Some(v) => v.serialize(serializer),
        None if value.is_nan() => serializer.serialize_str("NaN"),
        None => serializer.serialize_str(if value > 0.0 { "Infinity" } else { "-Infinity" }),
    }
}

/// Writes a point as the map that openCypher's `point()` takes, with its `srid`.
fn point<S: Serializer>(point: &Point, serializer: S) -> Result<S::Ok, S::Error> {
    let names =
        if point.crs().is_geographic() { ["longitude", "latitude", "height"] } else { ["x", "y", "z"] };
    let mut map = serializer.serialize_map(None)?;
    for (name, coordinate) in names.iter().zip(point.coordinates()) {
        map.serialize_entry(name, coordinate)?;
    }
    map.serialize_entry("crs", point.crs().name())?;
    map.serialize_entry("srid", &point.srid())?;
    map.end()
}

/// Converts a map key to a JSON key. Values that are not text become their JSON text.
fn key(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Symbol(symbol) => symbol.as_str().to_owned(),
        Value::VertexData(data) => data.id.to_string(),
        Value::EdgeData(data) => data.id.to_string(),
        other => serde_json::to_string(&Plain(other)).unwrap_or_default(),
    }
}

fn vertex<S: Serializer>(data: &VertexData, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(4))?;
    map.serialize_entry("~id", data.id.as_str())?;
    map.serialize_entry("~entityType", "node")?;
    map.serialize_entry("~labels", &data.labels)?;
    map.serialize_entry("~properties", &VertexProperties(&data.properties))?;
    map.end()
}

struct VertexProperties<'a>(&'a [PropertyData]);

impl Serialize for VertexProperties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|p| (p.key.as_str(), Values(&p.values))))
    }
}

/// A single value, or a list of several.
struct Values<'a>(&'a [Value]);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let [one] = self.0 {
            return Plain(one).serialize(serializer);
        }
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for value in self.0 {
            seq.serialize_element(&Plain(value))?;
        }
        seq.end()
    }
}

fn edge<S: Serializer>(data: &EdgeData, serializer: S) -> Result<S::Ok, S::Error> {
    struct Properties<'a>(&'a [(Str, Value)]);
    impl Serialize for Properties<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(k, v)| (k.as_str(), Plain(v))))
        }
    }
    let mut map = serializer.serialize_map(Some(6))?;
    map.serialize_entry("~id", data.id.as_str())?;
    map.serialize_entry("~entityType", "relationship")?;
    map.serialize_entry("~start", data.source_id.as_str())?;
    map.serialize_entry("~end", data.target_id.as_str())?;
    map.serialize_entry("~type", data.label.as_str())?;
    map.serialize_entry("~properties", &Properties(&data.properties))?;
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::{Cardinality, Gui};

    #[test]
    fn a_vertex_is_written_as_neptune_does() {
        let property = |key: &str, values: Vec<Value>| PropertyData {
            key: key.into(),
            cardinality: Cardinality::Set,
            values: values.into(),
            meta: vec![],
        };
        let data = VertexData {
            gui: Gui(1),
            id: "v1".into(),
            ids: tidegraph_types::ElementIds::Strings,
            labels: vec!["A".into(), "B".into()],
            properties: vec![property("x", vec![1.into()]), property("y", vec!["a".into(), "b".into()])],
        };
        let value = Value::VertexData(data.into());
        assert_eq!(
            serde_json::to_string(&Plain(&value)).expect("json"),
            r#"{"~id":"v1","~entityType":"node","~labels":["A","B"],"~properties":{"x":1,"y":["a","b"]}}"#
        );
    }

    #[test]
    fn numbers_that_json_lacks_are_text() {
        let text = |v: f64| serde_json::to_string(&Plain(&Value::Double(v))).expect("json");
        assert_eq!([text(f64::NAN), text(f64::NEG_INFINITY), text(1.0)], ["\"NaN\"", "\"-Infinity\"", "1.0"]);
    }
}

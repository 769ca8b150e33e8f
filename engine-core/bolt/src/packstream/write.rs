//! Writes values.

use super::tags;
use indexmap::IndexMap;
use tidegraph_types::temporal::{self, OffsetTime};
use tidegraph_types::{EdgeData, Gui, Path, PropertyData, Sid, Str, Temporal, Value, VertexData};

/// What differs between versions of Bolt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dialect {
    /// Whether nodes and relationships have textual ids: since Bolt 5.
    pub element_ids: bool,
    /// Whether points in time are written in UTC: since Bolt 5, or if the client asked for it.
    pub utc: bool,
}

/// Writes a value. What PackStream has no type for becomes its nearest relative: sets become lists, keys of maps text.
pub fn write_value(value: &Value, dialect: Dialect, output: &mut Vec<u8>) {
    match value {
        Value::Null | Value::Unbound => output.push(0xC0),
        Value::Bool(v) => output.push(if *v { 0xC3 } else { 0xC2 }),
        Value::Byte(v) => write_integer(i64::from(*v), output),
        Value::Short(v) => write_integer(i64::from(*v), output),
        Value::Int(v) => write_integer(i64::from(*v), output),
        Value::Long(v) => write_integer(*v, output),
        Value::Float(v) => write_double(f64::from(*v), output),
        Value::Double(v) => write_double(*v, output),
        Value::String(v) => write_text(v, output),
        Value::DateTime(v) => {
            write_structure(if dialect.utc { tags::DATE_TIME } else { tags::LEGACY_DATE_TIME }, 3, output);
            write_seconds(temporal::seconds_and_nanos(*v), output);
            write_integer(0, output);
        }
        Value::Temporal(v) => write_temporal(v, dialect, output),
        Value::Point(point) => {
            let coordinates = point.coordinates();
            let tag = if coordinates.len() == 2 { tags::POINT_2D } else { tags::POINT_3D };
            write_structure(tag, coordinates.len() as u8 + 1, output);
            write_integer(i64::from(point.srid()), output);
            for coordinate in coordinates {
                write_double(*coordinate, output);
            }
        }
        Value::Uuid(uuid) => write_text(&uuid.to_string(), output),
        Value::Big(number) => write_text(&number.to_string(), output),
        Value::List(items) | Value::Set(items) => write_list(items, dialect, output),
        // No query of this protocol makes one.
        Value::Graph(graph) => write_list(&graph.edges, dialect, output),
        Value::Map(map) | Value::Tree(map) => {
            write_map_header(map.len(), output);
            for (key, value) in map.iter() {
                write_key(key, output);
                write_value(value, dialect, output);
            }
        }
        Value::Entry(entry) => {
            write_map_header(1, output);
            write_key(&entry.0, output);
            write_value(&entry.1, dialect, output);
        }
        Value::Property(property) => {
            write_map_header(2, output);
            write_text("key", output);
            write_text(&property.key, output);
            write_text("value", output);
            write_value(&property.value, dialect, output);
        }
        Value::Symbol(symbol) => write_text(symbol.as_str(), output),
        // The engine never returns handles. If it did, the number would identify the element.
        Value::Vertex(gui) => write_gui(*gui, output),
        Value::Edge(edge) => write_sid(edge.sid, output),
        Value::VertexData(data) => write_vertex(data, dialect, output),
        Value::EdgeData(data) => write_edge(data, dialect, output),
        Value::Path(path) => write_path(path, dialect, output),
    }
}

/// Writes seconds and the nanoseconds after them.
fn write_seconds((seconds, nanos): (i64, i32), output: &mut Vec<u8>) {
    write_integer(seconds, output);
    write_integer(i64::from(nanos), output);
}

fn write_temporal(value: &Temporal, dialect: Dialect, output: &mut Vec<u8>) {
    match value {
        Temporal::Date(date) => {
            write_structure(tags::DATE, 1, output);
            write_integer(temporal::epoch_days(*date), output);
        }
        Temporal::LocalTime(time) => {
            write_structure(tags::LOCAL_TIME, 1, output);
            write_integer(temporal::nanos_of_day(*time), output);
        }
        Temporal::Time(OffsetTime { time, offset }) => {
            write_structure(tags::TIME, 2, output);
            write_integer(temporal::nanos_of_day(*time), output);
            write_integer(i64::from(offset.seconds()), output);
        }
        Temporal::LocalDateTime(local) => {
            write_structure(tags::LOCAL_DATE_TIME, 2, output);
            write_seconds(temporal::epoch_seconds(*local), output);
        }
        Temporal::DateTime(zoned) => {
            let name = zoned.time_zone().iana_name();
            let tag = match (dialect.utc, name) {
                (true, None) => tags::DATE_TIME,
                (true, Some(_)) => tags::DATE_TIME_ZONE,
                (false, None) => tags::LEGACY_DATE_TIME,
                (false, Some(_)) => tags::LEGACY_DATE_TIME_ZONE,
            };
            write_structure(tag, 3, output);
            let seconds = if dialect.utc {
                temporal::seconds_and_nanos(zoned.timestamp())
            } else {
                temporal::epoch_seconds(zoned.datetime())
            };
            write_seconds(seconds, output);
            match name {
                Some(name) => write_text(name, output),
                None => write_integer(i64::from(zoned.offset().seconds()), output),
            }
        }
        Temporal::Duration(duration) => {
            write_structure(tags::DURATION, 4, output);
            write_integer(duration.months(), output);
            write_integer(duration.days(), output);
            write_seconds((duration.seconds(), duration.subsec_nanos()), output);
        }
    }
}

/// Writes an integer in as few bytes as it fits into.
fn write_integer(value: i64, output: &mut Vec<u8>) {
    if let Ok(small @ -16..) = i8::try_from(value) {
        output.push(small.cast_unsigned());
    } else if let Ok(small) = i8::try_from(value) {
        output.extend([0xC8, small.cast_unsigned()]);
    } else if let Ok(small) = i16::try_from(value) {
        output.push(0xC9);
        output.extend(small.to_be_bytes());
    } else if let Ok(small) = i32::try_from(value) {
        output.push(0xCA);
        output.extend(small.to_be_bytes());
    } else {
        output.push(0xCB);
        output.extend(value.to_be_bytes());
    }
}

fn write_double(value: f64, output: &mut Vec<u8>) {
    output.push(0xC1);
    output.extend(value.to_be_bytes());
}

/// Writes a length: in its marker, or behind the marker for 1, 2 or 4 bytes.
fn write_length(length: usize, tiny: Option<u8>, first: u8, output: &mut Vec<u8>) {
    match (length, tiny) {
        (0..=0x0F, Some(tiny)) => output.push(tiny | length as u8),
        (0..=0xFF, _) => output.extend([first, length as u8]),
        (0..=0xFFFF, _) => {
            output.push(first + 1);
            output.extend((length as u16).to_be_bytes());
        }
        _ => {
            output.push(first + 2);
            output.extend((length as u32).to_be_bytes());
        }
    }
}

/// Writes a text.
pub(crate) fn write_text(text: &str, output: &mut Vec<u8>) {
    write_length(text.len(), Some(0x80), 0xD0, output);
    output.extend_from_slice(text.as_bytes());
}

/// Writes what comes before the values of a list.
pub(crate) fn write_list_header(values: usize, output: &mut Vec<u8>) {
    write_length(values, Some(0x90), 0xD4, output);
}

/// Writes what comes before the keys and values of a map.
pub(crate) fn write_map_header(entries: usize, output: &mut Vec<u8>) {
    write_length(entries, Some(0xA0), 0xD8, output);
}

pub(crate) fn write_structure(tag: u8, fields: u8, output: &mut Vec<u8>) {
    output.extend([0xB0 | fields, tag]);
}

fn write_list(values: &[Value], dialect: Dialect, output: &mut Vec<u8>) {
    write_list_header(values.len(), output);
    for value in values {
        write_value(value, dialect, output);
    }
}

fn write_key(key: &Value, output: &mut Vec<u8>) {
    match key {
        Value::String(text) => write_text(text, output),
        Value::Symbol(symbol) => write_text(symbol.as_str(), output),
        Value::VertexData(data) => write_text(&data.id, output),
        Value::EdgeData(data) => write_text(&data.id, output),
        other => write_text(&other.for_message(), output),
    }
}

/// Numbers of elements are not negative in Neo4j, but clients only compare them.
fn write_gui(gui: Gui, output: &mut Vec<u8>) {
    write_integer(gui.0.cast_signed(), output);
}

fn write_sid(sid: Sid, output: &mut Vec<u8>) {
    write_integer(sid.0.cast_signed(), output);
}

fn write_vertex(data: &VertexData, dialect: Dialect, output: &mut Vec<u8>) {
    write_structure(tags::NODE, if dialect.element_ids { 4 } else { 3 }, output);
    write_gui(data.gui, output);
    write_list_header(data.labels.len(), output);
    for label in &data.labels {
        write_text(label, output);
    }
    write_vertex_properties(&data.properties, dialect, output);
    if dialect.element_ids {
        write_text(&data.id, output);
    }
}

fn write_vertex_properties(properties: &[PropertyData], dialect: Dialect, output: &mut Vec<u8>) {
    write_map_header(properties.len(), output);
    for property in properties {
        write_text(&property.key, output);
        match &property.values[..] {
            [one] => write_value(one, dialect, output),
            several => write_list(several, dialect, output),
        }
    }
}

fn write_edge_properties(properties: &[(Str, Value)], dialect: Dialect, output: &mut Vec<u8>) {
    write_map_header(properties.len(), output);
    for (key, value) in properties {
        write_text(key, output);
        write_value(value, dialect, output);
    }
}

fn write_edge(data: &EdgeData, dialect: Dialect, output: &mut Vec<u8>) {
    write_structure(tags::RELATIONSHIP, if dialect.element_ids { 8 } else { 5 }, output);
    write_sid(data.edge.sid, output);
    write_gui(data.edge.source, output);
    write_gui(data.edge.target, output);
    write_text(&data.label, output);
    write_edge_properties(&data.properties, dialect, output);
    if dialect.element_ids {
        write_text(&data.id, output);
        write_text(&data.source_id, output);
        write_text(&data.target_id, output);
    }
}

/// Writes a path: its distinct vertices, its distinct edges, and for each step which of them it takes.
fn write_path(path: &Path, dialect: Dialect, output: &mut Vec<u8>) {
    let Some(steps) = Steps::of(path) else {
        // A path of Gremlin through other values.
        return write_list(&path.objects, dialect, output);
    };
    write_structure(tags::PATH, 3, output);
    write_list_header(steps.vertices.len(), output);
    for vertex in steps.vertices.values() {
        write_vertex(vertex, dialect, output);
    }
    write_list_header(steps.edges.len(), output);
    for edge in steps.edges.values() {
        write_structure(tags::UNBOUND_RELATIONSHIP, if dialect.element_ids { 4 } else { 3 }, output);
        write_sid(edge.edge.sid, output);
        write_text(&edge.label, output);
        write_edge_properties(&edge.properties, dialect, output);
        if dialect.element_ids {
            write_text(&edge.id, output);
        }
    }
    write_list_header(steps.indexes.len(), output);
    for index in steps.indexes {
        write_integer(index, output);
    }
}

/// The parts of a path in Bolt's form.
struct Steps<'a> {
    vertices: IndexMap<Gui, &'a VertexData>,
    edges: IndexMap<Sid, &'a EdgeData>,
    /// For each step: the number of its edge, from 1, negative if against its direction; the index of its vertex.
    indexes: Vec<i64>,
}

impl<'a> Steps<'a> {
    /// `None` unless vertices and edges alternate.
    fn of(path: &'a Path) -> Option<Self> {
        let (first, rest) = path.objects.split_first()?;
        let Value::VertexData(first) = first else { return None };
        let mut steps = Self { vertices: IndexMap::new(), edges: IndexMap::new(), indexes: vec![] };
        steps.vertices.insert(first.gui, first);
        let (pairs, []) = rest.as_chunks::<2>() else { return None };
        let mut from = first.gui;
        for pair in pairs {
            let [Value::EdgeData(edge), Value::VertexData(vertex)] = pair else { return None };
            let number = steps.edges.insert_full(edge.edge.sid, edge).0 as i64 + 1;
            let index = steps.vertices.insert_full(vertex.gui, vertex).0 as i64;
            let is_forwards = edge.edge.source == from;
            steps.indexes.extend([if is_forwards { number } else { -number }, index]);
            from = vertex.gui;
        }
        Some(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tidegraph_types::{Edge, Token};

    const NEW: Dialect = Dialect { element_ids: true, utc: true };
    const OLD: Dialect = Dialect { element_ids: false, utc: false };

    fn vertex(gui: u64, id: &str) -> Value {
        let properties = vec![PropertyData {
            key: "k".into(),
            cardinality: tidegraph_types::Cardinality::Set,
            values: if gui == 1 {
                vec![Value::Int(1)].into()
            } else {
                vec![Value::Int(1), Value::Int(2)].into()
            },
            meta: vec![],
        }];
        Value::VertexData(Arc::new(VertexData {
            gui: Gui(gui),
            id: id.into(),
            ids: tidegraph_types::ElementIds::Strings,
            labels: vec!["L".into()],
            properties,
        }))
    }

    fn edge(sid: u64, source: u64, target: u64) -> Value {
        let edge = Edge { sid: Sid(sid), source: Gui(source), target: Gui(target), label: Token(1) };
        let (source_id, target_id) = (format!("v{source}").into(), format!("v{target}").into());
        Value::EdgeData(Arc::new(EdgeData {
            edge,
            id: "e".into(),
            ids: tidegraph_types::ElementIds::Strings,
            label: "E".into(),
            source_id,
            target_id,
            source_labels: vec![],
            target_labels: vec![],
            properties: vec![],
        }))
    }

    fn bytes(value: &Value, dialect: Dialect) -> Vec<u8> {
        let mut bytes = vec![];
        write_value(value, dialect, &mut bytes);
        bytes
    }

    #[test]
    fn elements_have_textual_ids_since_bolt_5() {
        let node =
            [&[0xB4, b'N', 1, 0x91, 0x81, b'L', 0xA1, 0x81, b'k', 1][..], &[0x82, b'v', b'1']].concat();
        assert_eq!(bytes(&vertex(1, "v1"), NEW), node);
        let node = [0xB3, b'N', 2, 0x91, 0x81, b'L', 0xA1, 0x81, b'k', 0x92, 1, 2];
        assert_eq!(bytes(&vertex(2, "v2"), OLD), node);
        let relationship =
            [&[0xB8, b'R', 5, 1, 2, 0x81, b'E', 0xA0, 0x81, b'e', 0x82][..], b"v1", &[0x82], b"v2"];
        assert_eq!(bytes(&edge(5, 1, 2), NEW), relationship.concat());
        assert_eq!(bytes(&edge(5, 1, 2), OLD), [0xB5, b'R', 5, 1, 2, 0x81, b'E', 0xA0]);
    }

    #[test]
    fn a_path_names_each_element_once() {
        let (one, two) = (vertex(1, "v1"), vertex(2, "v2"));
        // v1 → v2, back against the same edge, and again by a second one.
        let objects =
            vec![one.clone(), edge(5, 1, 2), two.clone(), edge(5, 1, 2), one.clone(), edge(6, 1, 2), two];
        let path = Path { objects, labels: vec![] };
        let steps = Steps::of(&path).expect("vertices and edges alternate");
        assert_eq!((steps.vertices.len(), steps.edges.len()), (2, 2));
        assert_eq!(steps.indexes, [1, 1, -1, 0, 2, 1]);
        let single = bytes(&Value::Path(Arc::new(Path { objects: vec![one.clone()], labels: vec![] })), NEW);
        let expected = [&[0xB3, b'P', 0x91][..], &bytes(&one, NEW), &[0x90, 0x90]].concat();
        assert_eq!(single, expected);
        let other = Path { objects: vec![Value::Int(1), Value::Int(2)], labels: vec![] };
        assert_eq!(bytes(&Value::Path(Arc::new(other)), NEW), [0x92, 1, 2]);
    }

    #[test]
    fn a_point_in_time_before_1970_has_nanoseconds_that_count_forwards() {
        let time = Value::DateTime(jiff::Timestamp::new(-1, -500_000_000).unwrap());
        let expected = [&[0xB3, b'I', 0xFE, 0xCA][..], &500_000_000_i32.to_be_bytes(), &[0]].concat();
        assert_eq!(bytes(&time, NEW), expected);
        assert_eq!(bytes(&time, OLD)[1], b'F');
    }
}

//! Writes values.

use super::code;
use crate::element::{self, VertexProperty};
use std::io::{self, Write};
use tidegraph_types::{
    Big, BigInt, EdgeData, ElementIds, Map, Path, PropertyRef, Str, Subgraph, Symbol, Value, VertexData,
};

/// The flag of a value that is there.
const THERE: u8 = 0x00;
const NULL: [u8; 2] = [code::NULL, 0x01];

/// Writes a value with its type. Without `properties`, elements have none.
pub(crate) fn write_value(value: &Value, properties: bool, out: &mut impl Write) -> io::Result<()> {
    let write = |value: &Value, out: &mut _| write_value(value, properties, out);
    match value {
        Value::Null | Value::Unbound => out.write_all(&NULL),
        Value::Bool(v) => out.write_all(&[code::BOOLEAN, THERE, u8::from(*v)]),
        Value::Byte(v) => number(code::BYTE, v.to_be_bytes(), out),
        Value::Short(v) => number(code::SHORT, v.to_be_bytes(), out),
        Value::Int(v) => number(code::INT, v.to_be_bytes(), out),
        Value::Long(v) => number(code::LONG, v.to_be_bytes(), out),
        Value::Float(v) => number(code::FLOAT, v.to_be_bytes(), out),
        Value::Double(v) => number(code::DOUBLE, v.to_be_bytes(), out),
        Value::Big(big) => match &**big {
            Big::Integer(whole) => {
                out.write_all(&[code::BIG_INTEGER, THERE])?;
                write_integer(whole, out)
            }
            Big::Decimal(decimal) => {
                let (digits, scale) = decimal.as_bigint_and_scale();
                number(code::BIG_DECIMAL, i32::try_from(scale).unwrap_or(i32::MAX).to_be_bytes(), out)?;
                write_integer(&digits, out)
            }
        },
        Value::String(text) => typed_text(text, out),
        Value::DateTime(v) => number(code::DATE, v.as_millisecond().to_be_bytes(), out),
        // Drivers have points in time, but not openCypher's other types: those are texts.
        Value::Temporal(v) => match v.instant() {
            Some(at) => number(code::DATE, at.as_millisecond().to_be_bytes(), out),
            None => typed_text(&v.to_string(), out),
        },
        Value::Point(v) => typed_text(&v.to_string(), out),
        Value::Uuid(v) => number(code::UUID, *v.as_bytes(), out),
        Value::List(items) | Value::Set(items) => {
            let code = if matches!(value, Value::List(_)) { code::LIST } else { code::SET };
            out.write_all(&[code, THERE])?;
            write_count(items.len(), out)?;
            items.iter().try_for_each(|item| write(item, out))
        }
        Value::Map(map) => {
            write_map_header(map.len(), out)?;
            map.iter().try_for_each(|(key, value)| {
                write(key, out)?;
                write(value, out)
            })
        }
        Value::Entry(entry) => {
            write_map_header(1, out)?;
            write(&entry.0, out)?;
            write(&entry.1, out)
        }
        Value::Path(path) => write_path(path, properties, out),
        Value::Tree(tree) => {
            out.write_all(&[code::TREE, THERE])?;
            write_tree(tree, properties, out)
        }
        Value::Graph(graph) => write_graph(graph, out),
        Value::Property(property) => write_property(property, properties, out),
        Value::Symbol(symbol) => {
            let is_direction = matches!(symbol, Symbol::Out | Symbol::In);
            out.write_all(&[if is_direction { code::DIRECTION } else { code::T }, THERE])?;
            typed_text(symbol.as_str(), out)
        }
        // The engine never returns handles. If it did, the number would identify the element.
        Value::Vertex(gui) => number(code::LONG, gui.0.to_be_bytes(), out),
        Value::Edge(edge) => number(code::LONG, edge.sid.0.to_be_bytes(), out),
        Value::VertexData(data) => write_vertex(data, properties, out),
        Value::EdgeData(data) => write_edge(data, properties, out),
    }
}

fn number<const N: usize>(code: u8, bytes: [u8; N], out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[code, THERE])?;
    out.write_all(&bytes)
}

/// Writes an integer of any length without a type, as Java's `BigInteger` gives its bytes.
fn write_integer(number: &BigInt, out: &mut impl Write) -> io::Result<()> {
    let bytes = number.to_signed_bytes_be();
    write_count(bytes.len(), out)?;
    out.write_all(&bytes)
}

fn typed_text(text: &str, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[code::STRING, THERE])?;
    write_text(text, out)
}

/// Writes the id of an element with its type.
fn write_id(ids: ElementIds, text: &Str, out: &mut impl Write) -> io::Result<()> {
    write_value(&ids.value(text), false, out)
}

/// Writes a text without a type.
pub(crate) fn write_text(text: &str, out: &mut impl Write) -> io::Result<()> {
    write_count(text.len(), out)?;
    out.write_all(text.as_bytes())
}

/// Writes the head of a map with its type.
fn write_map_header(entries: usize, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[code::MAP, THERE])?;
    write_count(entries, out)
}

/// Writes a number of things.
///
/// # Errors
///
/// If it is too large for the format.
pub(crate) fn write_count(count: usize, out: &mut impl Write) -> io::Result<()> {
    let count = i32::try_from(count).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    out.write_all(&count.to_be_bytes())
}

fn write_path(path: &Path, properties: bool, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[code::PATH, THERE, code::LIST, THERE])?;
    write_count(path.objects.len(), out)?;
    for index in 0..path.objects.len() {
        let labels = path.labels.get(index).map_or(&[][..], Vec::as_slice);
        out.write_all(&[code::SET, THERE])?;
        write_count(labels.len(), out)?;
        labels.iter().try_for_each(|label| typed_text(label, out))?;
    }
    out.write_all(&[code::LIST, THERE])?;
    write_count(path.objects.len(), out)?;
    path.objects.iter().try_for_each(|object| write_value(object, properties, out))
}

/// Writes a tree without its type.
fn write_tree(tree: &Map, properties: bool, out: &mut impl Write) -> io::Result<()> {
    write_count(tree.len(), out)?;
    tree.iter().try_for_each(|(object, below)| {
        write_value(object, properties, out)?;
        match below {
            Value::Tree(below) => write_tree(below, properties, out),
            _ => write_count(0, out),
        }
    })
}

/// Writes a graph. Its elements always have their properties, and the forms of this type: without labels at the ends of edges, and
/// with lists that have no type.
fn write_graph(graph: &Subgraph, out: &mut impl Write) -> io::Result<()> {
    let vertices = graph.vertices.iter().filter_map(|item| match item {
        Value::VertexData(data) => Some(data),
        _ => None,
    });
    let edges = graph.edges.iter().filter_map(|item| match item {
        Value::EdgeData(data) => Some(data),
        _ => None,
    });
    out.write_all(&[code::GRAPH, THERE])?;
    write_count(vertices.clone().count(), out)?;
    for data in vertices {
        write_id(data.ids, &data.id, out)?;
        write_text(&element::label(&data.labels), out)?;
        write_count(data.properties.iter().map(|of| of.values.len()).sum(), out)?;
        for VertexProperty { id, key, value, meta } in
            data.properties.iter().flat_map(|of| element::properties_of(data, of))
        {
            write_value(&Value::Int(id), true, out)?;
            write_text(key, out)?;
            write_value(value, true, out)?;
            out.write_all(&NULL)?;
            write_count(meta.len(), out)?;
            meta.iter().try_for_each(|(key, value)| write_plain_property(key, value, true, out))?;
        }
    }
    write_count(edges.clone().count(), out)?;
    for data in edges {
        write_id(data.ids, &data.id, out)?;
        write_text(&data.label, out)?;
        write_id(data.ids, &data.target_id, out)?;
        out.write_all(&NULL)?;
        write_id(data.ids, &data.source_id, out)?;
        out.write_all(&NULL)?;
        out.write_all(&NULL)?;
        write_count(data.properties.len(), out)?;
        data.properties.iter().try_for_each(|(key, value)| write_plain_property(key, value, true, out))?;
    }
    Ok(())
}

fn write_property(property: &PropertyRef, properties: bool, out: &mut impl Write) -> io::Result<()> {
    if property.is_of_vertex() {
        return write_vertex_property(&element::property(property), properties, out);
    }
    write_plain_property(&property.key, &property.value, properties, out)
}

fn write_plain_property(key: &str, value: &Value, properties: bool, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[code::PROPERTY, THERE])?;
    write_text(key, out)?;
    write_value(value, properties, out)?;
    // Its element.
    out.write_all(&NULL)
}

fn write_vertex_property(
    property: &VertexProperty<'_>,
    properties: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let VertexProperty { id, key, value, meta } = property;
    out.write_all(&[code::VERTEX_PROPERTY, THERE])?;
    write_value(&Value::Int(*id), properties, out)?;
    write_text(key, out)?;
    write_value(value, properties, out)?;
    // Its vertex.
    out.write_all(&NULL)?;
    if meta.is_empty() || !properties {
        return out.write_all(&NULL);
    }
    out.write_all(&[code::LIST, THERE])?;
    write_count(meta.len(), out)?;
    meta.iter().try_for_each(|(key, value)| write_plain_property(key, value, properties, out))
}

fn write_vertex(data: &VertexData, properties: bool, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[code::VERTEX, THERE])?;
    write_id(data.ids, &data.id, out)?;
    write_text(&element::label(&data.labels), out)?;
    if data.properties.is_empty() || !properties {
        return out.write_all(&NULL);
    }
    out.write_all(&[code::LIST, THERE])?;
    write_count(data.properties.iter().map(|of| of.values.len()).sum(), out)?;
    for of in &data.properties {
        for property in element::properties_of(data, of) {
            write_vertex_property(&property, properties, out)?;
        }
    }
    Ok(())
}

fn write_edge(data: &EdgeData, properties: bool, out: &mut impl Write) -> io::Result<()> {
    let end = |id: &Str, labels: &[Str], out: &mut _| {
        write_id(data.ids, id, out)?;
        write_text(&element::label(labels), out)
    };
    out.write_all(&[code::EDGE, THERE])?;
    write_id(data.ids, &data.id, out)?;
    write_text(&data.label, out)?;
    end(&data.target_id, &data.target_labels, out)?;
    end(&data.source_id, &data.source_labels, out)?;
    // Its graph.
    out.write_all(&NULL)?;
    if data.properties.is_empty() || !properties {
        return out.write_all(&NULL);
    }
    out.write_all(&[code::LIST, THERE])?;
    write_count(data.properties.len(), out)?;
    data.properties.iter().try_for_each(|(key, value)| write_plain_property(key, value, properties, out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::{Edge, Gui, Sid, Token};

    fn bytes(value: &Value) -> Vec<u8> {
        let mut out = vec![];
        write_value(value, false, &mut out).expect("a vector takes all");
        out
    }

    #[test]
    fn a_tree_has_trees_without_types() {
        let leaf = Value::Tree(Map::new().into());
        let tree = Value::Tree(Map::from_iter([("a".into(), leaf)]).into());
        let expected = [0x2B, 0, 0, 0, 0, 1, 0x03, 0, 0, 0, 0, 1, b'a', 0, 0, 0, 0];
        assert_eq!(bytes(&tree), expected);
    }

    fn vertex(id: &str, ids: ElementIds) -> VertexData {
        VertexData { gui: Gui(1), id: id.into(), ids, labels: vec!["P".into()], properties: vec![] }
    }

    #[test]
    fn ids_have_the_type_that_the_graph_gives_them() {
        let id = |text, ids| bytes(&Value::VertexData(vertex(text, ids).into()))[2..].to_vec();
        let label = [0, 0, 0, 1, b'P', 0xFE, 0x01];
        let after = |id: &[u8]| [id, &label].concat();
        assert_eq!(id("1", ElementIds::Strings), after(&[0x03, 0, 0, 0, 0, 1, b'1']));
        assert_eq!(id("1", ElementIds::Typed), after(&[0x01, 0, 0, 0, 0, 1]));
        assert_eq!(id("1", ElementIds::Longs), after(&[0x02, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(id("string:1", ElementIds::Typed), after(&[0x03, 0, 0, 0, 0, 1, b'1']));
        let uuid = "00112233-4455-6677-8899-aabbccddeeff";
        let bytes: Vec<u8> = [0x0C, 0].into_iter().chain((0..16).map(|at| at * 0x11)).collect();
        assert_eq!(id(uuid, ElementIds::Typed), after(&bytes));
    }

    #[test]
    fn a_graph_has_elements_of_its_own_form() {
        let vertex = vertex("a", ElementIds::Strings);
        let edge = EdgeData {
            edge: Edge { source: Gui(1), sid: Sid(1), label: Token(1), target: Gui(1) },
            id: "e".into(),
            ids: ElementIds::Strings,
            label: "L".into(),
            source_id: "a".into(),
            target_id: "a".into(),
            source_labels: vec!["P".into()],
            target_labels: vec!["P".into()],
            properties: vec![],
        };
        let graph = Subgraph {
            vertices: vec![Value::VertexData(vertex.into())],
            edges: vec![Value::EdgeData(edge.into())],
        };
        let id = |text| [0x03, 0, 0, 0, 0, 1, text];
        let mut expected = vec![0x10, 0, 0, 0, 0, 1];
        expected.extend(id(b'a'));
        expected.extend([0, 0, 0, 1, b'P', 0, 0, 0, 0]);
        expected.extend([0, 0, 0, 1]);
        expected.extend(id(b'e'));
        expected.extend([0, 0, 0, 1, b'L']);
        for _ in 0..2 {
            expected.extend(id(b'a'));
            expected.extend([0xFE, 0x01]);
        }
        expected.extend([0xFE, 0x01, 0, 0, 0, 0]);
        assert_eq!(bytes(&Value::Graph(graph.into())), expected);
    }
}

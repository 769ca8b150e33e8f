//! Writes values.

use super::code;
use crate::element::{self, VertexProperty};
use std::io::{self, Write};
use tidegraph_types::{EdgeData, Path, PropertyRef, Str, Symbol, Value, VertexData};

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
        Value::String(text) => typed_text(text, out),
        Value::DateTime(v) => number(code::DATE, v.as_millisecond().to_be_bytes(), out),
        // Drivers have points in time, but not openCypher's other types: those are texts.
        Value::Temporal(v) => match v.instant() {
            Some(at) => number(code::DATE, at.as_millisecond().to_be_bytes(), out),
            None => typed_text(&v.to_string(), out),
        },
        Value::Point(v) => typed_text(&v.to_string(), out),
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

fn typed_text(text: &str, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[code::STRING, THERE])?;
    write_text(text, out)
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
    typed_text(&data.id, out)?;
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
        typed_text(id, out)?;
        write_text(&element::label(labels), out)
    };
    out.write_all(&[code::EDGE, THERE])?;
    typed_text(&data.id, out)?;
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

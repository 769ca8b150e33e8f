//! Mutations to bytes and back without messages in between, because loads have millions of them. Each field is written
//! and read by prost's function for its type, as the generated code does it.
//!
//! The messages define the bytes: this module writes the same bytes, and reads only the usual form of the usual kinds.
//! For everything else (an unknown field, a field that comes twice or out of order, a kind that loads do not have) it
//! falls back to the messages.

use super::{decode, encode};
use crate::value;
use crate::{Error, proto};
use prost::Message;
use prost::encoding::{self, DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint};
use tidegraph_types::{Cardinality, Edge, Gui, Mutation, PropertyWrite, Sid, Str, Token, Value};

/// Fields of `Mutation.kind`.
const CREATE_VERTEX: u32 = 1;
const CREATE_EDGE: u32 = 7;

/// Appends a field whose bytes are given.
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a length-delimited field.
pub(crate) fn put_nested<E>(
    out: &mut Vec<u8>,
    field: u32,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    encode_key(field, WireType::LengthDelimited, out);
    // Most lengths take one byte.
    out.push(0);
    let start = out.len();
    fill(out)?;
    let length = out.len() - start;
    if length <= 0x7f {
        out[start - 1] = length as u8;
    } else {
        let mut longer = [0; 10];
        let mut rest = &mut longer[..];
        encode_varint(length as u64, &mut rest);
        let used = 10 - rest.len();
        out.splice(start - 1..start, longer[..used].iter().copied());
    }
    Ok(())
}

/// Appends a number, unless it is zero.
fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    if number != 0 {
        encoding::uint64::encode(field, &number, out);
    }
}

fn put_fixed(out: &mut Vec<u8>, field: u32, number: u64) {
    if number != 0 {
        encoding::fixed64::encode(field, &number, out);
    }
}

fn put_value(out: &mut Vec<u8>, field: u32, value: &Value) -> Result<(), Error> {
    put_nested(out, field, |out| {
        match value {
            Value::Bool(v) => encoding::bool::encode(1, v, out),
            Value::Byte(v) => encoding::sint32::encode(2, &i32::from(*v), out),
            Value::Short(v) => encoding::sint32::encode(3, &i32::from(*v), out),
            Value::Int(v) => encoding::sint32::encode(4, v, out),
            Value::Long(v) => encoding::sint64::encode(5, v, out),
            Value::Float(v) => encoding::float::encode(6, v, out),
            Value::Double(v) => encoding::double::encode(7, v, out),
            Value::String(v) => put_bytes(out, 8, v.as_bytes()),
            other => out.extend_from_slice(&value::encode(other)?.encode_to_vec()),
        }
        Ok(())
    })
}

fn put_edge(out: &mut Vec<u8>, edge: &Edge) -> Result<(), Error> {
    put_nested(out, 1, |out| {
        put_number(out, 1, edge.sid.0);
        put_fixed(out, 2, edge.source.0);
        put_fixed(out, 3, edge.target.0);
        put_number(out, 4, u64::from(edge.label.0));
        Ok(())
    })
}

fn put_vertex(
    out: &mut Vec<u8>,
    gui: Gui,
    id: &str,
    labels: &[Token],
    properties: &[PropertyWrite],
) -> Result<(), Error> {
    put_nested(out, CREATE_VERTEX, |out| {
        put_fixed(out, 1, gui.0);
        if !id.is_empty() {
            put_bytes(out, 2, id.as_bytes());
        }
        if !labels.is_empty() {
            put_nested(out, 3, |out| {
                labels.iter().for_each(|label| encode_varint(u64::from(label.0), out));
                Ok::<(), Error>(())
            })?;
        }
        for write in properties {
            put_nested(out, 4, |out| {
                put_number(out, 1, u64::from(write.key.0));
                put_number(out, 2, value::encode_cardinality(write.cardinality) as u64);
                put_value(out, 3, &write.value)
            })?;
        }
        Ok(())
    })
}

/// Appends the message of a mutation.
///
/// # Errors
///
/// [`Error::NotStorable`] for a value that no property can have. `out` is then unchanged.
pub fn append(out: &mut Vec<u8>, mutation: &Mutation) -> Result<(), Error> {
    let start = out.len();
    let done = match mutation {
        Mutation::CreateVertex { gui, id, labels, properties } => {
            put_vertex(out, *gui, id, labels, properties)
        }
        Mutation::CreateEdge { edge, id, properties } => append_edge(out, edge, id.as_ref(), properties),
        other => encode(other).map(|message| out.extend_from_slice(&message.encode_to_vec())),
    };
    if done.is_err() {
        out.truncate(start);
    }
    done
}

/// Appends the message of the mutation that makes an edge.
///
/// # Errors
///
/// [`Error::NotStorable`] for a value that no property can have. `out` then ends with a part of the message.
pub fn append_edge(
    out: &mut Vec<u8>,
    edge: &Edge,
    id: Option<&Str>,
    properties: &[(Token, Value)],
) -> Result<(), Error> {
    put_nested(out, CREATE_EDGE, |out| {
        put_edge(out, edge)?;
        if let Some(id) = id {
            put_bytes(out, 2, id.as_bytes());
        }
        for (key, value) in properties {
            put_nested(out, 3, |out| {
                put_number(out, 1, u64::from(key.0));
                put_value(out, 2, value)
            })?;
        }
        Ok(())
    })
}

/// Returns the mutation of a message's bytes.
///
/// # Errors
///
/// As decoding the message.
pub fn from_bytes(bytes: &[u8]) -> Result<Mutation, Error> {
    match usual(bytes) {
        Some(mutation) => Ok(mutation),
        None => decode(proto::Mutation::decode(bytes)?),
    }
}

/// The bytes that are left to read.
pub(crate) struct Cursor<'b>(pub &'b [u8]);

impl<'b> Cursor<'b> {
    #[inline]
    pub fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(decode_varint(&mut self.0).ok()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads all fields in order of their numbers. `take` gets the number and the type of each field, and reads it from
    /// the cursor if it knows the field. Only fields above `single` may repeat.
    #[inline]
    fn fields(
        mut self,
        single: u32,
        mut take: impl FnMut(u32, WireType, &mut Self) -> Option<()>,
    ) -> Option<()> {
        let mut last = 0;
        while !self.0.is_empty() {
            let (number, wire) = decode_key(&mut self.0).ok()?;
            if number < last || (number == last && number <= single) {
                return None;
            }
            last = number;
            take(number, wire, &mut self)?;
        }
        Some(())
    }

    /// Returns the bytes of a field, which must have this number.
    #[inline]
    pub fn only(&mut self, field: u32) -> Option<&'b [u8]> {
        let (number, wire) = decode_key(&mut self.0).ok()?;
        if number == field { self.nested(wire) } else { None }
    }

    /// Returns the bytes of a length-delimited field.
    #[inline]
    fn nested(&mut self, wire: WireType) -> Option<&'b [u8]> {
        if wire == WireType::LengthDelimited { self.bytes() } else { None }
    }

    #[inline]
    pub fn text(&mut self, wire: WireType) -> Option<Str> {
        std::str::from_utf8(self.nested(wire)?).ok().map(Str::from)
    }
}

/// Reads a field with prost's function for its type.
macro_rules! read {
    ($kind:ident, $wire:expr, $cursor:expr) => {{
        let mut field = Default::default();
        encoding::$kind::merge($wire, &mut field, &mut $cursor.0, DecodeContext::default()).ok()?;
        field
    }};
}

fn usual_value(bytes: &[u8]) -> Option<Value> {
    let mut cursor = Cursor(bytes);
    let (number, wire) = decode_key(&mut cursor.0).ok()?;
    let value = match number {
        1 => Value::Bool(read!(bool, wire, cursor)),
        2 => Value::Byte(i8::try_from(read!(sint32, wire, cursor)).ok()?),
        3 => Value::Short(i16::try_from(read!(sint32, wire, cursor)).ok()?),
        4 => Value::Int(read!(sint32, wire, cursor)),
        5 => Value::Long(read!(sint64, wire, cursor)),
        6 => Value::Float(read!(float, wire, cursor)),
        7 => Value::Double(read!(double, wire, cursor)),
        8 => Value::String(cursor.text(wire)?),
        _ => return None,
    };
    cursor.0.is_empty().then_some(value)
}

fn usual_write(bytes: &[u8]) -> Option<PropertyWrite> {
    let (mut key, mut cardinality, mut value) = (Token(0), Cardinality::Single, None);
    Cursor(bytes).fields(u32::MAX, |number, wire, field| {
        match number {
            1 => key = Token(read!(uint32, wire, field)),
            2 => cardinality = value::decode_cardinality(read!(int32, wire, field)).ok()?,
            3 => value = Some(usual_value(field.nested(wire)?)?),
            _ => return None,
        }
        Some(())
    })?;
    Some(PropertyWrite { key, cardinality, value: value? })
}

fn usual_property(bytes: &[u8]) -> Option<(Token, Value)> {
    let (mut key, mut value) = (Token(0), None);
    Cursor(bytes).fields(u32::MAX, |number, wire, field| {
        match number {
            1 => key = Token(read!(uint32, wire, field)),
            2 => value = Some(usual_value(field.nested(wire)?)?),
            _ => return None,
        }
        Some(())
    })?;
    Some((key, value?))
}

fn usual_vertex(bytes: &[u8]) -> Option<Mutation> {
    let (mut gui, mut id, mut labels, mut properties) = (Gui(0), None, Vec::new(), Vec::new());
    Cursor(bytes).fields(3, |number, wire, field| {
        match number {
            1 => gui = Gui(read!(fixed64, wire, field)),
            2 => id = Some(field.text(wire)?),
            3 => {
                let mut packed = field.nested(wire)?;
                while !packed.is_empty() {
                    labels.push(Token(u32::try_from(decode_varint(&mut packed).ok()?).ok()?));
                }
            }
            4 => {
                if properties.is_empty() {
                    properties.reserve(8);
                }
                properties.push(usual_write(field.nested(wire)?)?);
            }
            _ => return None,
        }
        Some(())
    })?;
    Some(Mutation::CreateVertex { gui, id: id.unwrap_or_default(), labels, properties })
}

fn usual_ends(bytes: &[u8]) -> Option<Edge> {
    let mut edge = Edge { sid: Sid(0), source: Gui(0), target: Gui(0), label: Token(0) };
    Cursor(bytes).fields(u32::MAX, |number, wire, field| {
        match number {
            1 => edge.sid = Sid(read!(uint64, wire, field)),
            2 => edge.source = Gui(read!(fixed64, wire, field)),
            3 => edge.target = Gui(read!(fixed64, wire, field)),
            4 => edge.label = Token(read!(uint32, wire, field)),
            _ => return None,
        }
        Some(())
    })?;
    Some(edge)
}

fn usual_edge(bytes: &[u8]) -> Option<Mutation> {
    let (mut edge, mut id, mut properties) = (None, None, Vec::new());
    Cursor(bytes).fields(2, |number, wire, field| {
        match number {
            1 => edge = Some(usual_ends(field.nested(wire)?)?),
            2 => id = Some(field.text(wire)?),
            3 => properties.push(usual_property(field.nested(wire)?)?),
            _ => return None,
        }
        Some(())
    })?;
    Some(Mutation::CreateEdge { edge: edge?, id, properties })
}

fn usual(bytes: &[u8]) -> Option<Mutation> {
    let mut cursor = Cursor(bytes);
    let (number, wire) = decode_key(&mut cursor.0).ok()?;
    let message = cursor.nested(wire)?;
    if !cursor.0.is_empty() {
        return None;
    }
    match number {
        CREATE_VERTEX => usual_vertex(message),
        CREATE_EDGE => usual_edge(message),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::tests::any_mutation;
    use proptest::prelude::*;

    fn slow(bytes: &[u8]) -> Option<Mutation> {
        decode(proto::Mutation::decode(bytes).ok()?).ok()
    }

    #[test]
    fn a_refused_value_leaves_the_buffer_unchanged() {
        let edge = Edge { sid: Sid(1), source: Gui(1), target: Gui(2), label: Token(3) };
        let properties = vec![(Token(1), Value::Int(1)), (Token(2), Value::Null)];
        let mut out = vec![7];
        let refused = append(&mut out, &Mutation::CreateEdge { edge, id: None, properties });
        assert!(matches!(refused, Err(Error::NotStorable { type_name: "null" })));
        assert_eq!(out, [7]);
    }

    #[test]
    fn the_usual_mutations_need_no_message() {
        let edge = Edge { sid: Sid(1), source: Gui(1), target: Gui(2), label: Token(3) };
        let write = |value| PropertyWrite { key: Token(9), cardinality: Cardinality::Set, value };
        for mutation in [
            Mutation::CreateEdge {
                edge,
                id: Some("e".into()),
                properties: vec![(Token(1), Value::Long(-9))],
            },
            Mutation::CreateVertex {
                gui: Gui(5),
                id: "x".repeat(300).into(),
                labels: vec![Token(1), Token(300)],
                properties: vec![
                    write(Value::Double(1.5)),
                    write(Value::Bool(false)),
                    write(Value::string("")),
                ],
            },
        ] {
            let mut bytes = Vec::new();
            append(&mut bytes, &mutation).unwrap();
            assert_eq!(usual(&bytes), Some(mutation));
        }
    }

    proptest! {
        #[test]
        fn the_bytes_are_those_of_the_message(mutation in any_mutation()) {
            let mut bytes = vec![1, 2];
            append(&mut bytes, &mutation).unwrap();
            prop_assert_eq!(&bytes[2..], encode(&mutation).unwrap().encode_to_vec());
            // Debug text, because values of different width are equal.
            prop_assert_eq!(format!("{:?}", from_bytes(&bytes[2..]).unwrap()), format!("{mutation:?}"));
        }

        #[test]
        fn damaged_bytes_are_read_as_the_message_reads_them(
            mutation in any_mutation(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = Vec::new();
            append(&mut bytes, &mutation).unwrap();
            for (index, byte) in changes {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                prop_assert_eq!(format!("{:?}", from_bytes(bytes).ok()), format!("{:?}", slow(bytes)));
            }
        }
    }
}

//! Mutations to bytes and back without the messages in between, for what loads have by the million.
//!
//! The bytes are those of the messages, which stay the definition: what is written is the same byte for byte, and what
//! is read here is only the usual form of the usual kinds. Everything else (an unknown field, one that comes twice or out
//! of order, a kind that loads do not have) is left to the messages.

use super::{decode, encode};
use crate::value;
use crate::{Error, proto};
use prost::Message;
use tidegraph_types::{Cardinality, Edge, Gui, Mutation, PropertyWrite, Sid, Str, Token, Value};

/// Wire types.
const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const BYTES: u8 = 2;
const FIXED32: u8 = 5;

/// Fields of `Mutation.kind`.
const CREATE_VERTEX: u8 = 1;
const CREATE_EDGE: u8 = 7;

const fn tag(field: u8, wire: u8) -> u8 {
    field << 3 | wire
}

/// Appends a number in as many groups of seven bits as it needs.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a field of several bytes with its length.
pub(crate) fn put_nested<E>(
    out: &mut Vec<u8>,
    field: u8,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    out.extend_from_slice(&[tag(field, BYTES), 0]);
    let start = out.len();
    fill(out)?;
    let length = out.len() - start;
    if length <= 0x7f {
        out[start - 1] = length as u8;
    } else {
        // It takes more than the one byte that was left for it.
        let (mut groups, mut rest, mut used) = ([0; 10], length, 0);
        while rest > 0 {
            groups[used] = (rest & 0x7f) as u8 | 0x80;
            (rest, used) = (rest >> 7, used + 1);
        }
        groups[used - 1] &= 0x7f;
        out.splice(start - 1..start, groups[..used].iter().copied());
    }
    Ok(())
}

fn put_text(out: &mut Vec<u8>, field: u8, text: &str) {
    out.push(tag(field, BYTES));
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// A number that is left out when it is zero.
fn put_number(out: &mut Vec<u8>, field: u8, number: u64) {
    if number != 0 {
        out.push(tag(field, VARINT));
        put_varint(out, number);
    }
}

fn put_fixed(out: &mut Vec<u8>, field: u8, number: u64) {
    if number != 0 {
        out.push(tag(field, FIXED64));
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn put_value(out: &mut Vec<u8>, field: u8, value: &Value) -> Result<(), Error> {
    put_nested(out, field, |out| {
        let mut varint = |field, number| {
            out.push(tag(field, VARINT));
            put_varint(out, number);
        };
        match value {
            Value::Bool(v) => varint(1, u64::from(*v)),
            Value::Byte(v) => varint(2, zigzag(i64::from(*v))),
            Value::Short(v) => varint(3, zigzag(i64::from(*v))),
            Value::Int(v) => varint(4, zigzag(i64::from(*v))),
            Value::Long(v) => varint(5, zigzag(*v)),
            Value::Float(v) => {
                out.push(tag(6, FIXED32));
                out.extend_from_slice(&v.to_le_bytes());
            }
            Value::Double(v) => {
                out.push(tag(7, FIXED64));
                out.extend_from_slice(&v.to_le_bytes());
            }
            Value::String(v) => put_text(out, 8, v),
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
            put_text(out, 2, id);
        }
        if !labels.is_empty() {
            put_nested(out, 3, |out| {
                labels.iter().for_each(|label| put_varint(out, u64::from(label.0)));
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

/// Appends the message of a mutation; leaves `out` as it was when a value cannot be stored.
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

/// Appends the message of the mutation that makes an edge. After an error `out` has a part of it.
pub fn append_edge(
    out: &mut Vec<u8>,
    edge: &Edge,
    id: Option<&Str>,
    properties: &[(Token, Value)],
) -> Result<(), Error> {
    put_nested(out, CREATE_EDGE, |out| {
        put_edge(out, edge)?;
        if let Some(id) = id {
            put_text(out, 2, id);
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

/// The mutation of a message's bytes.
pub fn from_bytes(bytes: &[u8]) -> Result<Mutation, Error> {
    match usual(bytes) {
        Some(mutation) => Ok(mutation),
        None => decode(proto::Mutation::decode(bytes)?),
    }
}

/// What is left to read.
pub(crate) struct Cursor<'b>(pub &'b [u8]);

/// A field: its number, wire type, and its number or bytes.
enum Field<'b> {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(&'b [u8]),
}

impl<'b> Cursor<'b> {
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for (index, byte) in self.0.iter().enumerate().take(9) {
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.0 = &self.0[index + 1..];
                return Some(number);
            }
        }
        // Ten bytes are left to the message's reader.
        None
    }

    #[inline]
    pub fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    /// The next field with its number, which is below 16.
    #[inline]
    fn field(&mut self) -> Option<(u8, Field<'b>)> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        let field = match first & 7 {
            VARINT => Field::Varint(self.varint()?),
            FIXED64 => Field::Fixed64(self.fixed()?),
            BYTES => Field::Bytes(self.bytes()?),
            FIXED32 => Field::Fixed32(self.fixed()?),
            _ => return None,
        };
        (first < 0x80).then_some((first >> 3, field))
    }

    /// All fields, in order of their numbers: `take` gets each, and says whether it knows it. Only fields above
    /// `single` may come twice.
    #[inline]
    fn fields(mut self, single: u8, mut take: impl FnMut(u8, Field<'b>) -> Option<()>) -> Option<()> {
        let mut last = 0;
        while !self.0.is_empty() {
            let (number, field) = self.field()?;
            if number < last || (number == last && number <= single) {
                return None;
            }
            last = number;
            take(number, field)?;
        }
        Some(())
    }
}

fn narrow(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn text(bytes: &[u8]) -> Option<Str> {
    std::str::from_utf8(bytes).ok().map(Str::from)
}

fn usual_value(bytes: &[u8]) -> Option<Value> {
    let mut cursor = Cursor(bytes);
    let (number, field) = cursor.field()?;
    if !cursor.0.is_empty() {
        return None;
    }
    let int = |number: u64| narrow(number).map(|number| unzigzag(u64::from(number)));
    Some(match (number, field) {
        (1, Field::Varint(v @ 0..=1)) => Value::Bool(v == 1),
        (2, Field::Varint(v)) => Value::Byte(i8::try_from(int(v)?).ok()?),
        (3, Field::Varint(v)) => Value::Short(i16::try_from(int(v)?).ok()?),
        (4, Field::Varint(v)) => Value::Int(i32::try_from(int(v)?).ok()?),
        (5, Field::Varint(v)) => Value::Long(unzigzag(v)),
        (6, Field::Fixed32(v)) => Value::Float(f32::from_le_bytes(v)),
        (7, Field::Fixed64(v)) => Value::Double(f64::from_le_bytes(v)),
        (8, Field::Bytes(v)) => Value::String(text(v)?),
        _ => return None,
    })
}

fn usual_write(bytes: &[u8]) -> Option<PropertyWrite> {
    let (mut key, mut cardinality, mut value) = (Token(0), Cardinality::Single, None);
    Cursor(bytes).fields(u8::MAX, |number, field| {
        match (number, field) {
            (1, Field::Varint(v)) => key = Token(narrow(v)?),
            (2, Field::Varint(v)) => {
                cardinality = value::decode_cardinality(i32::try_from(v).ok()?).ok()?;
            }
            (3, Field::Bytes(v)) => value = Some(usual_value(v)?),
            _ => return None,
        }
        Some(())
    })?;
    Some(PropertyWrite { key, cardinality, value: value? })
}

fn usual_property(bytes: &[u8]) -> Option<(Token, Value)> {
    let (mut key, mut value) = (Token(0), None);
    Cursor(bytes).fields(u8::MAX, |number, field| {
        match (number, field) {
            (1, Field::Varint(v)) => key = Token(narrow(v)?),
            (2, Field::Bytes(v)) => value = Some(usual_value(v)?),
            _ => return None,
        }
        Some(())
    })?;
    Some((key, value?))
}

fn usual_vertex(bytes: &[u8]) -> Option<Mutation> {
    let (mut gui, mut id, mut labels, mut properties) = (Gui(0), None, Vec::new(), Vec::new());
    Cursor(bytes).fields(3, |number, field| {
        match (number, field) {
            (1, Field::Fixed64(v)) => gui = Gui(u64::from_le_bytes(v)),
            (2, Field::Bytes(v)) => id = Some(text(v)?),
            (3, Field::Bytes(v)) => {
                let mut packed = Cursor(v);
                while !packed.0.is_empty() {
                    labels.push(Token(narrow(packed.varint()?)?));
                }
            }
            (4, Field::Bytes(v)) => {
                if properties.is_empty() {
                    properties.reserve(8);
                }
                properties.push(usual_write(v)?);
            }
            _ => return None,
        }
        Some(())
    })?;
    Some(Mutation::CreateVertex { gui, id: id.unwrap_or_default(), labels, properties })
}

fn usual_edge(bytes: &[u8]) -> Option<Mutation> {
    let (mut edge, mut id, mut properties) = (None, None, Vec::new());
    Cursor(bytes).fields(2, |number, field| {
        match (number, field) {
            (1, Field::Bytes(v)) => {
                let mut found = Edge { sid: Sid(0), source: Gui(0), target: Gui(0), label: Token(0) };
                Cursor(v).fields(u8::MAX, |number, field| {
                    match (number, field) {
                        (1, Field::Varint(v)) => found.sid = Sid(v),
                        (2, Field::Fixed64(v)) => found.source = Gui(u64::from_le_bytes(v)),
                        (3, Field::Fixed64(v)) => found.target = Gui(u64::from_le_bytes(v)),
                        (4, Field::Varint(v)) => found.label = Token(narrow(v)?),
                        _ => return None,
                    }
                    Some(())
                })?;
                edge = Some(found);
            }
            (2, Field::Bytes(v)) => id = Some(text(v)?),
            (3, Field::Bytes(v)) => properties.push(usual_property(v)?),
            _ => return None,
        }
        Some(())
    })?;
    Some(Mutation::CreateEdge { edge: edge?, id, properties })
}

fn usual(bytes: &[u8]) -> Option<Mutation> {
    let mut cursor = Cursor(bytes);
    let field = cursor.field()?;
    if !cursor.0.is_empty() {
        return None;
    }
    match field {
        (CREATE_VERTEX, Field::Bytes(vertex)) => usual_vertex(vertex),
        (CREATE_EDGE, Field::Bytes(edge)) => usual_edge(edge),
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
    fn what_cannot_be_stored_leaves_nothing() {
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

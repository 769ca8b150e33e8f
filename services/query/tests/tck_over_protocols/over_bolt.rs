//! A graph behind Bolt.

use crate::client::{
    Client, FAILURE, IGNORED, PULL, RECORD, RESET, RUN, SUCCESS, Server, field, map, message,
};
use crate::suite::{Graph, Refusal, Rows};
use bytes::Bytes;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use tidegraph_bolt::Budget;
use tidegraph_bolt::packstream::Reader;
use tidegraph_engine::Parameters;
use tidegraph_types::{
    Cardinality, Edge, EdgeData, ErrorCode, Gui, Path, PropertyData, Sid, Str, Token, Value, VertexData,
};
use tokio::runtime::Runtime;

pub struct Connection {
    client: RefCell<Client>,
    runtime: Rc<Runtime>,
}

impl Connection {
    fn new(runtime: Rc<Runtime>, address: SocketAddr) -> Self {
        let client = runtime.block_on(Server { address }.client());
        Self { client: client.into(), runtime }
    }
}

impl Graph for Rc<Connection> {
    fn ask(&self, text: &str, parameters: &Parameters) -> Result<Rows, Refusal> {
        let mut client = self.client.borrow_mut();
        let (head, records) = self.runtime.block_on(exchange(&mut client, text, parameters))?;
        let columns = field(&head, "fields").as_slice().unwrap();
        let columns = columns.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        Ok(Rows { columns: Some(columns), rows: records.iter().map(|record| row(record)).collect() })
    }
}

/// Sends RUN and PULL. Returns the summary of RUN, and the records. All messages of the answer are received before one of
/// them is decoded, so that a record that cannot be decoded fails its own scenario only.
async fn exchange(
    client: &mut Client,
    text: &str,
    parameters: &Parameters,
) -> Result<(Value, Vec<Bytes>), Refusal> {
    let parameters: Vec<_> = parameters.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let run = message(RUN, &[text.into(), map(&parameters), map(&[])]);
    let pull = message(PULL, &[map(&[("n", (-1_i64).into())])]);
    client.send(&[run, pull].concat()).await;
    let head = match client.receive().await.unwrap() {
        (SUCCESS, head) => head,
        (FAILURE, failure) => {
            assert_eq!(client.receive().await.unwrap().0, IGNORED);
            return refused(client, &failure).await;
        }
        other => panic!("{other:?} does not answer RUN"),
    };
    let mut records = vec![];
    loop {
        let bytes = client.receive_bytes().await.unwrap();
        match bytes[1] {
            RECORD => records.push(bytes),
            SUCCESS => return Ok((head, records)),
            FAILURE => {
                let failure = Decoder { bytes: &bytes, at: 2 }.value();
                return refused(client, &failure).await;
            }
            other => panic!("{other:#x} does not answer PULL"),
        }
    }
}

/// Makes the connection ready for the next query after a failure.
async fn refused<T>(client: &mut Client, failure: &Value) -> Result<T, Refusal> {
    client.succeeds(RESET, &[]).await;
    let text = |name| field(failure, name).as_str().unwrap().to_owned();
    let name = text("neo4j_code");
    Err(Refusal { code: code(&name), message: text("message") })
}

/// Returns a code that stands for a status code of Neo4j, as far as the kit tells them apart.
fn code(name: &str) -> ErrorCode {
    match name {
        "Neo.ClientError.Statement.SyntaxError" => ErrorCode::MalformedQuery,
        "Neo.ClientError.Statement.UnsupportedOperationError" => ErrorCode::UnsupportedOperation,
        "Neo.ClientError.Statement.ParameterMissing" => ErrorCode::MissingParameter,
        "Neo.ClientError.Statement.ArgumentError" => ErrorCode::InvalidParameter,
        "Neo.ClientError.Statement.TypeError" => ErrorCode::InvalidArgument,
        "Neo.ClientError.Statement.EntityNotFound" => ErrorCode::NotFound,
        "Neo.ClientError.Schema.ConstraintValidationFailed" => ErrorCode::ConstraintViolation,
        other => panic!("{other} is no error that the kit expects"),
    }
}

fn row(record: &[u8]) -> Vec<Value> {
    let mut decoder = Decoder { bytes: record, at: 2 };
    let row = decoder.value();
    assert_eq!(decoder.at, record.len(), "the record goes on after its row");
    row.as_slice().unwrap().to_vec()
}

/// Decodes values of answers. The library reads what clients send, which has no nodes, relationships and paths: they are
/// decoded here, and everything else by the library.
struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Decoder<'_> {
    fn value(&mut self) -> Value {
        let start = self.at;
        let marker = self.bytes[start];
        self.at += 1;
        match marker {
            0x90..=0x9F => return self.list(usize::from(marker & 0x0F)),
            0xA0..=0xAF => return self.map(usize::from(marker & 0x0F)),
            0xD4..=0xD6 => {
                let count = self.length(1 << (marker - 0xD4));
                return self.list(count);
            }
            0xD8..=0xDA => {
                let count = self.length(1 << (marker - 0xD8));
                return self.map(count);
            }
            0xB0..=0xBF => {
                let tag = self.bytes[self.at];
                self.at += 1;
                let fields: Vec<_> = (0..marker & 0x0F).map(|_| self.value()).collect();
                match (tag, &fields[..]) {
                    (b'N', [gui, labels, properties, id]) => return node(gui, labels, properties, id),
                    (b'R', [sid, source, target, label, properties, id, source_id, target_id]) => {
                        let ends = Ends {
                            guis: [source, target].map(|gui| Gui(number(gui))),
                            ids: [source_id, target_id].map(text),
                        };
                        return relationship(sid, label, properties, id, ends);
                    }
                    // It has no ends before a path gives it some.
                    (b'r', [..]) if fields.len() == 4 => return Value::list(fields),
                    (b'P', [nodes, relationships, indexes]) => return path(nodes, relationships, indexes),
                    _ => {}
                }
            }
            0x80..=0x8F => self.at += usize::from(marker & 0x0F),
            0xD0..=0xD2 => self.at += self.length(1 << (marker - 0xD0)),
            0xC1 | 0xCB => self.at += 8,
            0xC8..=0xCA => self.at += 1 << (marker - 0xC8),
            _ => {}
        }
        let mut take = |_| true;
        let mut reader = Reader::new(&self.bytes[start..self.at], Budget::new(&mut take));
        let value = reader.value().unwrap();
        reader.end().unwrap();
        value
    }

    /// Reads a length of 1, 2 or 4 bytes.
    fn length(&mut self, bytes: usize) -> usize {
        let length =
            self.bytes[self.at..][..bytes].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        self.at += bytes;
        length
    }

    fn list(&mut self, count: usize) -> Value {
        Value::list((0..count).map(|_| self.value()).collect())
    }

    fn map(&mut self, count: usize) -> Value {
        let entries: Vec<_> = (0..count).map(|_| (self.value(), self.value())).collect();
        Value::map(entries.into_iter().collect())
    }
}

fn number(value: &Value) -> u64 {
    value.as_i64().unwrap().cast_unsigned()
}

fn text(value: &Value) -> Str {
    value.as_str().unwrap().into()
}

fn properties(value: &Value) -> impl Iterator<Item = (Str, Value)> {
    let Value::Map(map) = value else { panic!("{value:?} is no map of properties") };
    map.iter().map(|(key, value)| (text(key), value.clone()))
}

fn node(gui: &Value, labels: &Value, all: &Value, id: &Value) -> Value {
    let properties = properties(all).map(|(key, value)| PropertyData {
        key,
        cardinality: Cardinality::Single,
        values: [value].into(),
        meta: vec![],
    });
    Value::VertexData(
        VertexData {
            gui: Gui(number(gui)),
            id: text(id),
            ids: tidegraph_types::ElementIds::Strings,
            labels: labels.as_slice().unwrap().iter().map(text).collect(),
            properties: properties.collect(),
        }
        .into(),
    )
}

/// The source and the target of an edge.
struct Ends {
    guis: [Gui; 2],
    ids: [Str; 2],
}

fn relationship(sid: &Value, label: &Value, all: &Value, id: &Value, ends: Ends) -> Value {
    let Ends { guis: [source, target], ids: [source_id, target_id] } = ends;
    Value::EdgeData(
        EdgeData {
            edge: Edge { sid: Sid(number(sid)), source, target, label: Token(0) },
            id: text(id),
            ids: tidegraph_types::ElementIds::Strings,
            label: text(label),
            source_id,
            target_id,
            source_labels: vec![],
            target_labels: vec![],
            properties: properties(all).collect(),
        }
        .into(),
    )
}

/// Puts a path together from its distinct nodes, its distinct relationships, and for each step the number of its
/// relationship, from 1, negative if against its direction, and the index of its node.
fn path(nodes: &Value, relationships: &Value, indexes: &Value) -> Value {
    let [nodes, relationships, indexes] =
        [nodes, relationships, indexes].map(|list| list.as_slice().unwrap());
    let mut objects = vec![nodes[0].clone()];
    let (steps, []) = indexes.as_chunks::<2>() else { panic!("{indexes:?} are no pairs") };
    for [relation, index] in steps {
        let (relation, index) = (relation.as_i64().unwrap(), index.as_i64().unwrap());
        let next = &nodes[usize::try_from(index).unwrap()];
        let here = objects.last().unwrap();
        let (source, target) = if relation > 0 { (here, next) } else { (next, here) };
        let [Value::VertexData(source), Value::VertexData(target)] = [source, target] else {
            panic!("{nodes:?} are no nodes");
        };
        let ends = Ends { guis: [source.gui, target.gui], ids: [source.id.clone(), target.id.clone()] };
        let unbound = &relationships[usize::try_from(relation.unsigned_abs()).unwrap() - 1];
        let [sid, label, properties, id] = unbound.as_slice().unwrap() else {
            panic!("{unbound:?} is no relationship of a path");
        };
        let edge = relationship(sid, label, properties, id, ends);
        objects.extend([edge, next.clone()]);
    }
    Value::Path(Path { objects, labels: vec![] }.into())
}

#[test]
fn tck_over_bolt() {
    super::check(include_str!("expected_failures_over_bolt.txt"), Connection::new);
}

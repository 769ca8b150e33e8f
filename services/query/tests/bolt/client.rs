//! A service over a socket, and a client of it that sends and receives single messages of Bolt.

use bytes::Bytes;
use std::net::SocketAddr;
use std::time::Duration;
use tidegraph_bolt::packstream::{Reader, write_value};
use tidegraph_bolt::{Budget, Dialect, Message, Messages, write_chunks};
use tidegraph_engine::{Database, Options};
use tidegraph_query::server::Protocols;
use tidegraph_query::{admission, http, server, session};
use tidegraph_types::{Map, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Time limit of every wait. It is generous, because other programs may keep the machine busy.
pub const PATIENCE: Duration = Duration::from_secs(120);
pub const NEVER: Duration = Duration::from_secs(1_000_000);

pub const WIDE: server::Limits = server::Limits {
    connections: 1_000,
    head: NEVER,
    body: NEVER,
    idle: NEVER,
    write: NEVER,
    sessions: session::Limits { idle: NEVER, paused: NEVER },
};

pub const HELLO: u8 = 0x01;
pub const GOODBYE: u8 = 0x02;
pub const RESET: u8 = 0x0F;
pub const RUN: u8 = 0x10;
pub const BEGIN: u8 = 0x11;
pub const COMMIT: u8 = 0x12;
pub const ROLLBACK: u8 = 0x13;
pub const DISCARD: u8 = 0x2F;
pub const PULL: u8 = 0x3F;
pub const ROUTE: u8 = 0x66;
pub const LOGON: u8 = 0x6A;
pub const LOGOFF: u8 = 0x6B;
pub const SUCCESS: u8 = 0x70;
pub const RECORD: u8 = 0x71;
pub const IGNORED: u8 = 0x7E;
pub const FAILURE: u8 = 0x7F;

pub struct Server {
    pub address: SocketAddr,
}

impl Server {
    pub async fn start(limits: server::Limits, token: Option<&str>) -> Self {
        Self::with_memory(256 << 20, limits, token).await
    }

    pub async fn with_memory(memory_total_bytes: u64, limits: server::Limits, token: Option<&str>) -> Self {
        Self::of(Options::default(), memory_total_bytes, limits, token).await
    }

    pub async fn of(
        options: Options,
        memory_total_bytes: u64,
        limits: server::Limits,
        token: Option<&str>,
    ) -> Self {
        let queries = http::Limits {
            body_bytes: 1 << 20,
            queries: admission::Limits { memory_total_bytes, ..admission::Limits::default() },
            ..http::Limits::default()
        };
        let service = http::Service::new(Database::open(options).unwrap(), queries);
        let sessions_of = Some(service.sessions(token.map(str::to_owned)));
        Self::speaking(Protocols { http: service.router(), sessions: sessions_of, tls: None }, limits).await
    }

    pub async fn speaking(protocols: Protocols, limits: server::Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(server::serve(listener, protocols, limits, std::future::pending()));
        Self { address }
    }

    /// A client that is let in.
    pub async fn client(&self) -> Client {
        let mut client = self.greeted([0, 0, 8, 5]).await;
        client.succeeds(HELLO, &[map(&[("user_agent", "test".into())])]).await;
        client.succeeds(LOGON, &[map(&[("scheme", "none".into())])]).await;
        client
    }

    /// A client that has agreed on a version.
    pub async fn greeted(&self, version: [u8; 4]) -> Client {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let greeting = [&[0x60, 0x60, 0xB0, 0x17][..], &version, &[0; 12]].concat();
        socket.write_all(&greeting).await.unwrap();
        let mut answer = [0; 4];
        timeout(PATIENCE, socket.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(answer, [0, 0, version[2], version[3]]);
        Client { socket, messages: Messages::default() }
    }

    /// Memory of queries, answers and requests.
    pub async fn memory(&self) -> u64 {
        let mut http = TcpStream::connect(self.address).await.unwrap();
        let ask = b"GET /status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        http.write_all(ask).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, http.read_to_string(&mut answer)).await.unwrap().unwrap();
        let (_, rest) = answer.split_once("\"usedBytes\":").unwrap();
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    }

    /// Waits until no query runs and no memory is held.
    pub async fn becomes_free(&self) {
        let free = async {
            while self.memory().await > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, free).await.unwrap();
    }
}

pub struct Client {
    pub socket: TcpStream,
    pub messages: Messages,
}

pub fn map(entries: &[(&str, Value)]) -> Value {
    Value::map(entries.iter().map(|(key, value)| (Value::from(*key), value.clone())).collect::<Map>())
}

pub fn message(tag: u8, fields: &[Value]) -> Vec<u8> {
    let mut bytes = vec![0xB0 | fields.len() as u8, tag];
    for field in fields {
        write_value(field, Dialect { element_ids: true, utc: true }, &mut bytes);
    }
    let mut chunks = vec![];
    write_chunks(&bytes, &mut chunks).unwrap();
    chunks
}

pub fn run(text: &str) -> Vec<u8> {
    message(RUN, &[text.into(), map(&[]), map(&[])])
}

pub fn pull(n: i64) -> Vec<u8> {
    message(PULL, &[map(&[("n", n.into())])])
}

pub fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    let Value::Map(map) = value else { panic!("{value:?} is not a map") };
    map.get(&Value::from(name)).unwrap_or(&Value::Null)
}

impl Client {
    pub async fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    /// Returns the tag and the field of the next message; `None` if the server has closed the connection.
    pub async fn receive(&mut self) -> Option<(u8, Value)> {
        let bytes = self.receive_bytes().await?;
        let mut take = |_| true;
        let mut reader = Reader::new(&bytes, Budget::new(&mut take));
        let (fields, tag) = reader.structure().unwrap();
        Some((tag, if fields == 0 { Value::Null } else { reader.value().unwrap() }))
    }

    /// Returns the bytes of the next message; `None` if the server has closed the connection.
    pub async fn receive_bytes(&mut self) -> Option<Bytes> {
        loop {
            if let Some(message) = self.messages.next(usize::MAX) {
                let Message::Whole(bytes) = message else { panic!("it has no limit") };
                return Some(bytes);
            }
            // A server that closes before it has read all may reset the connection.
            let read = timeout(PATIENCE, self.socket.read_buf(&mut self.messages.buffer)).await.unwrap();
            if read.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    pub async fn succeeds(&mut self, tag: u8, fields: &[Value]) -> Value {
        self.send(&message(tag, fields)).await;
        self.success().await
    }

    pub async fn success(&mut self) -> Value {
        match self.receive().await {
            Some((SUCCESS, metadata)) => metadata,
            other => panic!("{other:?} is not a success"),
        }
    }

    /// Returns the code of a failure.
    pub async fn failure(&mut self) -> String {
        match self.receive().await {
            Some((FAILURE, metadata)) => field(&metadata, "neo4j_code").as_str().unwrap().to_owned(),
            other => panic!("{other:?} is not a failure"),
        }
    }

    pub async fn ignored(&mut self) {
        assert_eq!(self.receive().await.unwrap().0, IGNORED);
    }

    /// Runs a query and returns its rows and its summary.
    pub async fn rows(&mut self, text: &str) -> (Vec<Value>, Value) {
        self.send(&[run(text), pull(-1)].concat()).await;
        self.success().await;
        self.records().await
    }

    pub async fn records(&mut self) -> (Vec<Value>, Value) {
        let mut rows = vec![];
        loop {
            match self.receive().await {
                Some((RECORD, row)) => rows.push(row),
                Some((SUCCESS, metadata)) => return (rows, metadata),
                other => panic!("{other:?} is neither a record nor a success"),
            }
        }
    }

    pub async fn is_closed(&mut self) {
        assert_eq!(self.receive().await, None);
    }
}

//! Clients of a graph: calls inside this process, and HTTP over loopback to a service in a process of its own.

use super::Flags;
use anyhow::{Context, bail};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tidegraph_engine::{Database, Language, Parameters, PendingAnswer, Query};
use tidegraph_query::admission::INLINE;
use tidegraph_query::json::plain::Plain;
use tidegraph_types::{ErrorCode, Str, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One request of a workload.
#[derive(Clone, Debug)]
pub struct Call {
    /// Language of the text.
    pub language: Language,
    /// Text, which is the same for every call of a kind.
    pub text: &'static str,
    /// Names and values of the parameters.
    pub parameters: Vec<(&'static str, Value)>,
}

impl Call {
    /// Returns a call with a Gremlin traversal.
    pub fn gremlin(text: &'static str, parameters: Vec<(&'static str, Value)>) -> Self {
        Self { language: Language::Gremlin, text, parameters }
    }

    /// Returns a call with an openCypher query.
    pub fn cypher(text: &'static str, parameters: Vec<(&'static str, Value)>) -> Self {
        Self { language: Language::OpenCypher, text, parameters }
    }

    fn parameters(&self) -> Parameters {
        self.parameters.iter().map(|(k, v)| (Str::from(*k), v.clone())).collect()
    }

    /// Runs the call in this process and returns the rows.
    pub fn embedded(&self, database: &Database) -> anyhow::Result<Vec<Vec<Value>>> {
        let parameters = self.parameters();
        Ok(database.query(&Query::new(self.language, self.text, &parameters))?.rows)
    }

    /// Runs the call in this process as the service does, without a thread that waits for the commit, and returns the
    /// rows.
    pub async fn embedded_task(&self, database: &Arc<Database>) -> anyhow::Result<Vec<Vec<Value>>> {
        let parameters = self.parameters();
        let query = Query::new(self.language, self.text, &parameters);
        if let Some(brought) = database.query_inline(&query, INLINE) {
            let PendingAnswer { answer, commit } = brought?;
            let Some(request) = commit else { return Ok(answer.rows) };
            let (ended, end) = tokio::sync::oneshot::channel();
            database.commit_later(request, Box::new(move |committed| drop(ended.send(committed))));
            match end.await? {
                Ok(_) => return Ok(answer.rows),
                Err(error) if error.code() == ErrorCode::ConcurrentModification => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (database, call) = (database.clone(), self.clone());
        tokio::task::spawn_blocking(move || call.embedded(&database)).await?
    }

    /// Returns the parameters as JSON.
    pub fn json_parameters(&self) -> serde_json::Map<String, Json> {
        let one = |(k, v): &(&str, Value)| ((*k).to_owned(), json!(Plain(v)));
        self.parameters.iter().map(one).collect()
    }

    fn write_body(&self, body: &mut Vec<u8>) -> serde_json::Result<()> {
        struct Named<'a>(&'a [(&'static str, Value)]);
        impl Serialize for Named<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|(name, value)| (name, Plain(value))))
            }
        }
        struct Body<'a>(&'a Call);
        impl Serialize for Body<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let (text, parameters) = match self.0.language {
                    Language::Gremlin => ("gremlin", "bindings"),
                    Language::OpenCypher => ("query", "parameters"),
                };
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry(text, self.0.text)?;
                map.serialize_entry(parameters, &Named(&self.0.parameters))?;
                map.end()
            }
        }
        serde_json::to_writer(body, &Body(self))
    }
}

/// A connection that stays open. Client and service share the processor, so it does as little as possible: one write
/// for a request, and it parses only the head of the answer and the sizes of its chunks.
pub struct Connection {
    stream: TcpStream,
    host: String,
    body: Vec<u8>,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    /// Connects to a service.
    pub async fn open(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host: address.to_owned(), body: vec![], request: vec![], answer: vec![] })
    }

    /// Sends a call and returns the body of the answer.
    pub async fn call(&mut self, call: &Call) -> anyhow::Result<&[u8]> {
        let path = match call.language {
            Language::Gremlin => "/gremlin",
            Language::OpenCypher => "/openCypher",
        };
        self.body.clear();
        call.write_body(&mut self.body)?;
        self.exchange("POST", path).await
    }

    /// Sends GET and returns the body of the answer.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<&[u8]> {
        self.body.clear();
        self.exchange("GET", path).await
    }

    /// Sends POST with a JSON body and returns the body of the answer.
    pub async fn post_json(&mut self, path: &str, body: &Json) -> anyhow::Result<&[u8]> {
        self.body.clear();
        serde_json::to_writer(&mut self.body, body)?;
        self.exchange("POST", path).await
    }

    async fn exchange(&mut self, method: &str, path: &str) -> anyhow::Result<&[u8]> {
        self.request.clear();
        let (host, length) = (&self.host, self.body.len());
        write!(
            self.request,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )?;
        self.request.extend_from_slice(&self.body);
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        let (status, start, length) = loop {
            self.read_more().await?;
            if let Some(head) = head(&self.answer)? {
                break head;
            }
        };
        let length = match length {
            Some(length) => {
                self.read_until(start + length).await?;
                length
            }
            None => self.join_chunks(start).await?,
        };
        let body = &self.answer[start..start + length];
        if status != 200 {
            bail!("{status}: {}", String::from_utf8_lossy(body));
        }
        Ok(body)
    }

    /// Reads the chunks of a body that begins at `start`, moves their content together, and returns its length.
    async fn join_chunks(&mut self, start: usize) -> anyhow::Result<usize> {
        let (mut end, mut at) = (start, start);
        loop {
            let (head, size) = loop {
                match httparse::parse_chunk_size(&self.answer[at..]) {
                    Ok(httparse::Status::Complete(found)) => break found,
                    Ok(httparse::Status::Partial) => self.read_more().await?,
                    Err(_) => bail!("the answer has a chunk without a size"),
                }
            };
            let (from, size) = (at + head, usize::try_from(size)?);
            // A line break follows each chunk. The service sends no trailers after the last, which is empty.
            self.read_until(from + size + 2).await?;
            self.answer.copy_within(from..from + size, end);
            (end, at) = (end + size, from + size + 2);
            if size == 0 {
                return Ok(end - start);
            }
        }
    }

    async fn read_until(&mut self, length: usize) -> anyhow::Result<()> {
        while self.answer.len() < length {
            self.read_more().await?;
        }
        Ok(())
    }

    async fn read_more(&mut self) -> anyhow::Result<()> {
        self.answer.reserve(16 << 10);
        if self.stream.read_buf(&mut self.answer).await? == 0 {
            bail!("the service closed the connection");
        }
        Ok(())
    }
}

/// Parses status, start and length of the body; it has no length if it comes in chunks. Returns `None` while the head is
/// incomplete.
fn head(answer: &[u8]) -> anyhow::Result<Option<(u16, usize, Option<usize>)>> {
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = head.parse(answer)? else { return Ok(None) };
    let value = |name: &str| head.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value);
    let length = match value("content-length") {
        Some(length) => Some(std::str::from_utf8(length)?.parse()?),
        None if value("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")) => {
            None
        }
        None => bail!("the answer has neither a length nor chunks"),
    };
    Ok(Some((head.code.unwrap_or_default(), start, length)))
}

/// A service in a process of its own, which ends when this value is dropped.
pub struct ServiceProcess {
    child: Child,
    /// Address of the service: `127.0.0.1:PORT`.
    pub address: String,
}

impl ServiceProcess {
    /// Starts `tidegraph serve` over a directory; it may load the files of a folder.
    pub fn start(flags: &Flags, data: &Path, files: &Path) -> anyhow::Result<Self> {
        Self::start_with(flags, data, &["--load-from".to_owned(), files.display().to_string()])
    }

    /// Starts `tidegraph serve` over a directory with further arguments.
    pub fn start_with(flags: &Flags, data: &Path, arguments: &[String]) -> anyhow::Result<Self> {
        let binary = flags.service()?;
        let mut child = Command::new(&binary)
            .args(["serve", "--port", "0", "--data"])
            .arg(data)
            .args(arguments)
            .env("TIDEGRAPH_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", binary.display()))?;
        let stdout = child.stdout.take().context("the service has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let Some(address) = line.trim().rsplit_once("http://").map(|(_, address)| address.to_owned()) else {
            let _ = child.kill();
            bail!("the service did not start: {line:?}");
        };
        Ok(Self { child, address })
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the processor time that the process has used, in seconds.
    pub fn cpu_seconds(&self) -> Option<f64> {
        super::machine::cpu_seconds(self.child.id())
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Answers each request with the pieces, one write for each.
    async fn answering(pieces: Vec<&'static str>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut request = [0; 4096];
            while stream.read(&mut request).await.unwrap_or_default() > 0 {
                for piece in &pieces {
                    stream.write_all(piece.as_bytes()).await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        });
        address
    }

    #[tokio::test]
    async fn bodies_come_whole_or_in_chunks() {
        let head = "HTTP/1.1 200 OK\r\n";
        let whole = vec![head, "content-length: 5\r\n\r\nab", "cde"];
        let chunks =
            vec![head, "Transfer-Encoding: chunked\r\n\r", "\n3\r\nabc\r\n2", "\r\nde\r\n0\r", "\n\r\n"];
        for pieces in [whole, chunks] {
            let mut connection = Connection::open(&answering(pieces).await).await.unwrap();
            for _ in 0..3 {
                assert_eq!(connection.get("/").await.unwrap(), b"abcde");
            }
        }
        let none = answering(vec![head, "date: today\r\n\r\n"]).await;
        let error = Connection::open(&none).await.unwrap().get("/").await.unwrap_err();
        assert_eq!(error.to_string(), "the answer has neither a length nor chunks");
    }
}

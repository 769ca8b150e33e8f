//! Clients of a graph: embedded calls, and HTTP over loopback to a service in a process of its own.

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tidegraph_engine::{Database, Language, Parameters, Query};
use tidegraph_types::{Str, Value};

/// One request of a workload.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which language.
    pub language: Language,
    /// The text, the same for every call of a kind.
    pub text: &'static str,
    /// Parameters: names and values.
    pub parameters: Vec<(&'static str, Value)>,
}

impl Call {
    /// A traversal.
    pub fn gremlin(text: &'static str, parameters: Vec<(&'static str, Value)>) -> Self {
        Self { language: Language::Gremlin, text, parameters }
    }

    /// An openCypher query.
    pub fn cypher(text: &'static str, parameters: Vec<(&'static str, Value)>) -> Self {
        Self { language: Language::OpenCypher, text, parameters }
    }

    /// Runs it in this process; the rows.
    pub fn embedded(&self, database: &Database) -> anyhow::Result<Vec<Vec<Value>>> {
        let parameters: Parameters =
            self.parameters.iter().map(|(k, v)| (Str::from(*k), v.clone())).collect();
        Ok(database.query(&Query::new(self.language, self.text, &parameters))?.rows)
    }

    /// The parameters as JSON.
    pub fn json_parameters(&self) -> serde_json::Map<String, Json> {
        let one = |(k, v): &(&str, Value)| ((*k).to_owned(), json!(crate::json::plain::Plain(v)));
        self.parameters.iter().map(one).collect()
    }

    fn body(&self) -> Vec<u8> {
        let parameters = self.json_parameters();
        let body = match self.language {
            Language::Gremlin => json!({"gremlin": self.text, "bindings": parameters}),
            Language::OpenCypher => json!({"query": self.text, "parameters": parameters}),
        };
        body.to_string().into_bytes()
    }
}

/// A connection that stays open.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

impl Connection {
    /// Connects to a service.
    pub async fn open(address: &str) -> anyhow::Result<Self> {
        let stream = tokio::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, host: address.to_owned() })
    }

    /// Sends a call and reads the whole answer.
    pub async fn call(&mut self, call: &Call) -> anyhow::Result<Bytes> {
        let path = match call.language {
            Language::Gremlin => "/gremlin",
            Language::OpenCypher => "/openCypher",
        };
        self.post(path, call.body()).await
    }

    /// GET.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Bytes> {
        let request = Request::get(path).header("host", &self.host).body(Full::default())?;
        self.send(request).await
    }

    /// POST of JSON.
    pub async fn post_json(&mut self, path: &str, body: &Json) -> anyhow::Result<Bytes> {
        self.post(path, body.to_string().into_bytes()).await
    }

    async fn post(&mut self, path: &str, body: Vec<u8>) -> anyhow::Result<Bytes> {
        let request = Request::post(path)
            .header("host", &self.host)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))?;
        self.send(request).await
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Bytes> {
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{status}: {}", String::from_utf8_lossy(&bytes));
        }
        Ok(bytes)
    }
}

/// A service in a process of its own, ended with this value.
pub struct ServiceProcess {
    child: Child,
    /// `127.0.0.1:port`.
    pub address: String,
}

impl ServiceProcess {
    /// Starts this program's `serve` over a directory.
    pub fn start(data: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", "--port", "0", "--data"])
            .arg(data)
            .env("TIDEGRAPH_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("the service has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let Some(address) = line.trim().rsplit_once("http://").map(|(_, address)| address.to_owned()) else {
            let _ = child.kill();
            bail!("the service did not start: {line:?}");
        };
        Ok(Self { child, address })
    }

    /// Seconds of processor time that it used so far.
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

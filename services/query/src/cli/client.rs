//! A client of the HTTP service, for the commands that talk to a running service.

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use std::time::Duration;
use tidegraph_platform::read_secret;

/// Flags that say how to reach a service.
#[derive(Args, Clone, Debug)]
pub struct Endpoint {
    /// URL of the service.
    #[arg(long, default_value = "http://127.0.0.1:8182", env = "TIDEGRAPH_ENDPOINT")]
    endpoint: String,
    /// File whose first line is the token of the service.
    #[arg(long)]
    token_file: Option<std::path::PathBuf>,
}

/// A client of one service.
pub struct Client {
    agent: ureq::Agent,
    base: String,
    token: Option<String>,
}

impl Endpoint {
    /// Returns a client. It sends nothing yet.
    ///
    /// # Errors
    ///
    /// If the token file cannot be read, or if every user of the machine can read it.
    pub fn connect(&self) -> anyhow::Result<Client> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(5)))
            .build();
        let read = |path: &std::path::PathBuf| {
            read_secret(path).with_context(|| format!("cannot take a token from {}", path.display()))
        };
        let token = self.token_file.as_ref().map(read).transpose()?;
        Ok(Client { agent: config.into(), base: self.endpoint.trim_end_matches('/').to_owned(), token })
    }
}

impl Client {
    /// Sends GET and returns the JSON of the answer.
    ///
    /// # Errors
    ///
    /// If the service does not answer, answers something other than JSON, or reports a failure: then with its code.
    pub fn get(&self, path: &str) -> anyhow::Result<Value> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.read(request.call())
    }

    /// Sends POST with a JSON body and returns the JSON of the answer.
    ///
    /// # Errors
    ///
    /// The same as [`Client::get`].
    pub fn post(&self, path: &str, body: &Value, accept: &str) -> anyhow::Result<Value> {
        let mut request = self.agent.post(format!("{}{path}", self.base)).header("accept", accept);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.read(request.send_json(body))
    }

    fn read(&self, result: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> anyhow::Result<Value> {
        let mut response = result.with_context(|| format!("no answer from {}", self.base))?;
        let status = response.status();
        let text = response.body_mut().with_config().limit(1 << 30).read_to_string()?;
        let Ok(json) = serde_json::from_str::<Value>(&text) else {
            bail!("{} answered {status}: {text}", self.base);
        };
        if status.is_success() {
            return Ok(json);
        }
        let field = |name: &str| json.get(name).and_then(Value::as_str).unwrap_or_default();
        bail!("{}: {}", field("code"), field("detailedMessage"))
    }
}

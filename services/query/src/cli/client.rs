//! A client of the HTTP service, for the commands that speak to a running one.

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use std::time::Duration;

/// How to reach a service.
#[derive(Args, Clone, Debug)]
pub struct Endpoint {
    /// Where the service listens.
    #[arg(long, default_value = "http://127.0.0.1:8182", env = "TIDEGRAPH_ENDPOINT")]
    endpoint: String,
    /// A file whose first line is the service's token.
    #[arg(long)]
    token_file: Option<std::path::PathBuf>,
}

/// A connection to a service.
pub struct Client {
    agent: ureq::Agent,
    base: String,
    token: Option<String>,
}

impl Endpoint {
    /// Opens it; nothing is sent yet.
    pub fn connect(&self) -> anyhow::Result<Client> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(5)))
            .build();
        let token = match &self.token_file {
            None => None,
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                Some(text.lines().next().unwrap_or_default().trim().to_owned())
            }
        };
        Ok(Client { agent: config.into(), base: self.endpoint.trim_end_matches('/').to_owned(), token })
    }
}

impl Client {
    /// GET, and the JSON that comes back.
    pub fn get(&self, path: &str) -> anyhow::Result<Value> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.read(request.call())
    }

    /// POST of JSON, and the JSON that comes back.
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

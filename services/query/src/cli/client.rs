//! A client of the HTTP service, for the commands that talk to a running service.

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
    /// Name of a user of the service.
    #[arg(long, requires = "password_file", conflicts_with = "token_file")]
    user: Option<String>,
    /// File whose first line is the password of the user.
    #[arg(long, requires = "user", value_name = "FILE")]
    password_file: Option<std::path::PathBuf>,
}

/// A client of one service.
pub struct Client {
    agent: ureq::Agent,
    base: String,
    /// The value of the header `Authorization`.
    authorization: Option<String>,
}

impl Endpoint {
    /// Returns a client. It sends nothing yet.
    ///
    /// # Errors
    ///
    /// If a file with a secret cannot be read, or if every user of the machine can read it.
    pub fn connect(&self) -> anyhow::Result<Client> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(5)))
            .build();
        let read = |path: &std::path::PathBuf| {
            read_secret(path).with_context(|| format!("cannot take a secret from {}", path.display()))
        };
        let authorization = match (&self.token_file, &self.user, &self.password_file) {
            (Some(file), ..) => Some(format!("Bearer {}", read(file)?)),
            (None, Some(user), Some(file)) => {
                Some(format!("Basic {}", STANDARD.encode(format!("{user}:{}", read(file)?))))
            }
            _ => None,
        };
        let base = self.endpoint.trim_end_matches('/').to_owned();
        Ok(Client { agent: config.into(), base, authorization })
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
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
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
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
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

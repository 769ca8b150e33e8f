//! How clients prove to brokers who they are: TLS, certificates, and tokens (SASL/OAUTHBEARER, of which MSK's IAM is one kind).
//!
//! Flow of a token: each client gets its first one when it is made, since one that nobody polls yet would never ask. From
//! then on the client asks again before it ends, while somebody polls it ([`Login`] is the context of all clients). A
//! client that nobody polled for longer than that gets a new one with the next poll, and connects anew.
//!
//! What must never happen: a secret in a log or an error.

use rdkafka::bindings;
use rdkafka::client::{Client, OAuthToken};
use rdkafka::consumer::ConsumerContext;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientConfig, ClientContext};
use std::ffi::{CStr, CString, c_char};
use std::path::PathBuf;
use std::sync::Arc;

/// TLS to the brokers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct KafkaTls {
    /// PEM file with the authorities that brokers' certificates may come from; `None`: those of the system.
    pub authorities: Option<PathBuf>,
    /// PEM files with our certificate and its key, for brokers that ask for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// A token for brokers.
#[derive(Clone)]
pub struct Token {
    /// What is sent.
    pub value: String,
    /// Whose it is.
    pub principal: String,
    /// When it ends, in milliseconds since 1970.
    pub ends_ms: i64,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the value.
        f.debug_struct("Token").field("principal", &self.principal).field("ends_ms", &self.ends_ms).finish()
    }
}

/// Where tokens come from.
pub trait Tokens: Send + Sync {
    /// One that will do for a while. May wait for the network; is called by clients' own threads.
    fn token(&self) -> Result<Token, String>;
}

/// Sets what TLS and tokens need.
pub(super) fn configure(config: &mut ClientConfig, tls: Option<&KafkaTls>, tokens: bool) {
    let protocol = match (tls.is_some(), tokens) {
        (false, false) => return,
        (true, false) => "ssl",
        (false, true) => "sasl_plaintext",
        (true, true) => "sasl_ssl",
    };
    config.set("security.protocol", protocol);
    if tokens {
        config.set("sasl.mechanism", "OAUTHBEARER");
    }
    if let Some(tls) = tls {
        // Without a file of ours the client looks where systems keep theirs.
        let authorities = tls.authorities.as_ref().map_or("probe".into(), |path| path.to_string_lossy());
        config.set("ssl.ca.location", authorities);
        config.set("ssl.endpoint.identification.algorithm", "https");
        if let Some((certificate, key)) = &tls.certificate {
            config.set("ssl.certificate.location", certificate.to_string_lossy());
            config.set("ssl.key.location", key.to_string_lossy());
        }
    }
}

/// What clients ask for tokens.
#[derive(Clone, Default)]
pub(super) struct Login(pub Option<Arc<dyn Tokens>>);

impl Login {
    /// A token, as the client takes it.
    pub fn token(&self) -> Result<OAuthToken, Box<dyn std::error::Error>> {
        let tokens = self.0.as_ref().ok_or("this log has no source of tokens")?;
        let token = tokens.token().inspect_err(|error| {
            tracing::warn!(error, "no token for the brokers");
        })?;
        Ok(OAuthToken { token: token.value, principal_name: token.principal, lifetime_ms: token.ends_ms })
    }

    /// Gives a client its first token.
    pub fn begin<C: ClientContext>(&self, client: &Client<C>) -> Result<(), String> {
        if self.0.is_none() {
            return Ok(());
        }
        let token = self.token().map_err(|error| error.to_string())?;
        let text = |text: String| CString::new(text).map_err(|_| "a token with a zero byte in it".to_owned());
        let (value, principal) = (text(token.token)?, text(token.principal_name)?);
        let mut error: [c_char; 512] = [0; 512];
        // SAFETY: the client lives as long as the reference to it. All texts end with a zero and outlive the call, which
        // copies them; no extensions are passed, and none are counted. The last two are a buffer and its length.
        let code = unsafe {
            bindings::rd_kafka_oauthbearer_set_token(
                client.native_ptr(),
                value.as_ptr(),
                token.lifetime_ms,
                principal.as_ptr(),
                std::ptr::null_mut(),
                0,
                error.as_mut_ptr(),
                error.len(),
            )
        };
        if code == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return Ok(());
        }
        // SAFETY: the buffer held zeros, and the client writes a text with a zero at its end into it.
        let reason = unsafe { CStr::from_ptr(error.as_ptr()) };
        Err(format!("a token was refused: {}", reason.to_string_lossy()))
    }
}

impl ClientContext for Login {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn std::error::Error>> {
        self.token()
    }
}

impl ConsumerContext for Login {}

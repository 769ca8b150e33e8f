//! Authenticates clients to brokers: with TLS, certificates, and tokens (SASL/OAUTHBEARER, which includes MSK's IAM).
//!
//! Flow of a token: a new client gets its first token at once, since a client that is not polled would never ask for
//! one. From then on the client asks again before its token expires, while it is polled ([`Login`] is the context of
//! all clients). A client that was not polled for longer gets a new token with the next poll, and connects again.
//!
//! What must never happen: a secret in a log line or an error.

use crate::error::cause;
use crate::{Cause, KafkaTls, Tokens};
use rdkafka::bindings;
use rdkafka::client::{Client, OAuthToken};
use rdkafka::consumer::ConsumerContext;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientConfig, ClientContext};
use std::ffi::{CStr, CString, c_char};
use std::sync::Arc;

/// Sets the client's settings for TLS and tokens.
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
        // Without a file, the client looks where systems keep theirs.
        let authorities = tls.authorities.as_ref().map_or("probe".into(), |path| path.to_string_lossy());
        config.set("ssl.ca.location", authorities);
        config.set("ssl.endpoint.identification.algorithm", "https");
        if let Some((certificate, key)) = &tls.certificate {
            config.set("ssl.certificate.location", certificate.to_string_lossy());
            config.set("ssl.key.location", key.to_string_lossy());
        }
    }
}

/// The context of all clients: where they get tokens.
#[derive(Clone, Default)]
pub(super) struct Login(pub Option<Arc<dyn Tokens>>);

impl Login {
    /// Returns a token in the form that the client takes.
    pub fn token(&self) -> Result<OAuthToken, Cause> {
        let tokens = self.0.as_ref().ok_or_else(|| cause("this log has no source of tokens"))?;
        let token = tokens.token().inspect_err(|error| {
            tracing::warn!(%error, "no token for the brokers");
        })?;
        Ok(OAuthToken { token: token.value, principal_name: token.principal, lifetime_ms: token.ends_ms })
    }

    /// Gives a client its first token.
    pub fn begin<C: ClientContext>(
        &self,
        client: &Client<C>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if self.0.is_none() {
            return Ok(());
        }
        let token = self.token()?;
        let text = |text: String| CString::new(text).map_err(|_| "the token has a zero byte in it");
        let (value, principal) = (text(token.token)?, text(token.principal_name)?);
        let mut error: [c_char; 512] = [0; 512];
        // SAFETY: the client lives as long as the reference to it. All texts end with a zero and outlive the call,
        // which copies them. No extensions are passed and their count is 0. The last two arguments are a buffer and its
        // length.
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
        // SAFETY: the buffer was filled with zeros, and the client writes a text that ends with a zero into it.
        let reason = unsafe { CStr::from_ptr(error.as_ptr()) };
        Err(format!("the client refused a token: {}", reason.to_string_lossy()).into())
    }
}

impl ClientContext for Login {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn std::error::Error>> {
        Ok(self.token()?)
    }
}

impl ConsumerContext for Login {}

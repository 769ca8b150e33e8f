//! A caller's proof of who it is in AWS: a request `sts:GetCallerIdentity` that it signed and did not send.
//!
//! The caller sends the headers of that request as a token. The receiver sends the request on to STS and learns from its answer
//! who signed it, and nothing else can be done with it. A signed header names the graph, so that a proof for one
//! graph is of no use at another; HashiCorp's Vault and aws-iam-authenticator prove callers in the same way.
//!
//! What must never happen: a request to another address than the configured STS, or another request than this one.

use super::Refusal;
use super::signature::{self, date_of};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tidegraph_types::ErrorCode;

/// The body of the request.
pub(super) const BODY: &str = "Action=GetCallerIdentity&Version=2011-06-15";
/// The type of the body.
pub(super) const BODY_TYPE: &str = "application/x-www-form-urlencoded; charset=utf-8";
/// The header that names the graph.
pub(super) const GRAPH_HEADER: &str = "x-tidegraph-graph";
/// Longest proof, in bytes: tokens of sessions have up to some KiB.
const LONGEST_PROOF: usize = 16 << 10;
/// How long STS takes a request after its date.
const HOLDS: jiff::SignedDuration = jiff::SignedDuration::from_mins(15);
/// How far ahead the clock of a caller may be.
const AHEAD: jiff::SignedDuration = jiff::SignedDuration::from_mins(5);

/// The headers of a request that was signed and not sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Proof {
    #[serde(rename = "Authorization")]
    pub(super) authorization: String,
    #[serde(rename = "Host")]
    pub(super) host: String,
    #[serde(rename = "X-Amz-Date")]
    pub(super) date: String,
    #[serde(rename = "X-Amz-Security-Token", default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<String>,
    #[serde(rename = "X-Tidegraph-Graph")]
    pub(super) graph: String,
}

fn denied(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::AccessDenied, message)
}

/// What a proof has to be for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Scope {
    pub(super) graph: String,
    pub(super) region: String,
    /// Host of STS, with its port if it is not that of the scheme.
    pub(super) host: String,
}

impl Proof {
    /// Reads a proof: the JSON of the headers in Base64 for URLs, without padding.
    pub(super) fn read(text: &str) -> Result<Self, Refusal> {
        let wrong = |problem: &str| {
            denied(format!(
                "the token is not a proof as `tidegraph prove` makes it (the headers of a signed request \
                 sts:GetCallerIdentity as JSON in Base64): {problem}"
            ))
        };
        if text.len() > LONGEST_PROOF {
            return Err(wrong(&format!("it has {} bytes, and at most {LONGEST_PROOF} are read", text.len())));
        }
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|e| wrong(&e.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| wrong(&error.to_string()))
    }

    /// Checks all but the signature, and returns how long the proof holds from `now` on.
    pub(super) fn check(&self, scope: &Scope, now: jiff::Timestamp) -> Result<Duration, Refusal> {
        let claim = signature::Claim::read(&self.authorization)?;
        if claim.service != "sts" {
            return Err(denied("Credential should be scoped to correct service: 'sts'."));
        }
        if claim.region != scope.region {
            let region = claim.region.escape_debug();
            return Err(denied(format!("Credential should be scoped to a valid region, not '{region}'.")));
        }
        if !self.host.eq_ignore_ascii_case(&scope.host) {
            let (host, wanted) = (self.host.escape_debug(), &scope.host);
            return Err(denied(format!("the proof is for '{host}', and this service asks '{wanted}'")));
        }
        if self.graph != scope.graph {
            let (graph, wanted) = (self.graph.escape_debug(), &scope.graph);
            return Err(denied(format!("the proof is for the graph '{graph}', and this is '{wanted}'")));
        }
        let token = self.token.is_some().then_some("x-amz-security-token");
        let needed = || ["host", "x-amz-date", GRAPH_HEADER].into_iter().chain(token);
        for name in needed() {
            if !claim.names.contains(&name) {
                return Err(denied(format!("'{name}' must be a 'SignedHeader' in the AWS Authorization.")));
            }
        }
        let is_sent = |name: &str| name == "content-type" || needed().any(|needed| needed == name);
        if let Some(name) = claim.names.iter().find(|name| !is_sent(name)) {
            let name = name.escape_debug();
            return Err(denied(format!(
                "'{name}' is named as a SignedHeader, and the proof has no such header"
            )));
        }
        let date = date_of(&self.date, claim.date)?;
        if date > now.saturating_add(AHEAD).unwrap_or(now) {
            return Err(denied(format!(
                "Signature not yet current: {} is more than 5 min ahead.",
                self.date
            )));
        }
        let left = HOLDS - now.duration_since(date);
        let left = Duration::try_from(left).ok().filter(|left| !left.is_zero());
        left.ok_or_else(|| denied(format!("Signature expired: {} is more than 15 min ago.", self.date)))
    }

    /// Signs a request for a scope.
    ///
    /// # Errors
    ///
    /// The reason as text, if the scope or the credentials have characters that cannot be in a header.
    pub(super) fn sign(
        scope: &Scope,
        credentials: &Credentials,
        now: jiff::Timestamp,
    ) -> Result<Self, String> {
        let identity = credentials.clone().into();
        let mut settings = SigningSettings::default();
        settings.excluded_headers = None;
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&scope.region)
            .name("sts")
            .time(now.into())
            .settings(settings)
            .build()
            .map_err(|error| error.to_string())?;
        let headers = [("content-type", BODY_TYPE), (GRAPH_HEADER, &scope.graph)];
        let (uri, body) = (format!("https://{}/", scope.host), SignableBody::Bytes(BODY.as_bytes()));
        let request = SignableRequest::new("POST", uri, headers.into_iter(), body);
        let request = request.map_err(|error| error.to_string())?;
        let signed = sign(request, &parameters.into()).map_err(|error| error.to_string())?;
        let (instructions, _) = signed.into_parts();
        let header = |name: &str| {
            let found = instructions.headers().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_owned())
        };
        Ok(Self {
            authorization: header("authorization").unwrap_or_default(),
            host: scope.host.clone(),
            date: header("x-amz-date").unwrap_or_default(),
            token: header("x-amz-security-token"),
            graph: scope.graph.clone(),
        })
    }

    /// Returns the text that a caller sends as its token.
    pub(super) fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }
}

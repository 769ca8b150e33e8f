//! AWS's Signature Version 4 of a request, for the services `neptune-db` and `neptune-graph`.
//!
//! AWS's own crate makes the signature that the request should have, with the secret of the access key that the request
//! names, and it is compared with the one that the request has. The words of refusals are AWS's:
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/signature-v4-troubleshooting.html>.
//!
//! A signature holds for five minutes before and after its date. Within that time a request that somebody recorded can
//! be sent again, as with AWS: use TLS, and idempotency keys for writes.

use super::Refusal;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::time::SystemTime;
use subtle::ConstantTimeEq;
use tidegraph_types::ErrorCode;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The services for which a request may be signed.
const SERVICES: [&str; 2] = ["neptune-db", "neptune-graph"];
const TERMINATOR: &str = "aws4_request";
/// Minutes by which the client's clock and the service's may differ.
const SKEW_MINUTES: i64 = 5;
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
const CONTENT: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const DATE_FORMAT: &str = "%Y%m%dT%H%M%SZ";
/// The path for which Bolt's clients sign.
const BOLT_PATH: &str = "/opencypher";

/// The parts of a request that its signature covers.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query, as they were sent.
    pub target: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
}

/// What a signature must be for, besides one of the [`SERVICES`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    pub(super) region: &'a str,
}

/// A request that is signed correctly, if its signature is right.
#[derive(Debug)]
pub struct Checked {
    credentials: Credentials,
    region: String,
    service: &'static str,
    date: SystemTime,
    /// Names of the signed headers.
    names: Vec<HeaderName>,
    signature: String,
}

/// The header `Authorization`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Claim<'a> {
    id: &'a str,
    date: &'a str,
    region: &'a str,
    service: &'a str,
    names: Vec<&'a str>,
    signature: &'a str,
}

/// Returns the refusal of a request without a signature.
#[must_use]
pub(crate) fn missing() -> Refusal {
    denied("Missing Authentication Token")
}

fn denied(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::AccessDenied, message)
}

fn incomplete(problem: &str) -> Refusal {
    denied(format!("the header Authorization is not one of Signature Version 4: {problem}"))
}

impl<'a> Claim<'a> {
    fn read(text: &'a str) -> Result<Self, Refusal> {
        let rest = text.strip_prefix(ALGORITHM).filter(|rest| rest.starts_with(' '));
        let rest = rest.ok_or_else(|| incomplete("it must begin with AWS4-HMAC-SHA256"))?;
        let (mut credential, mut names, mut signature) = (None, None, None);
        for part in rest.split(',') {
            let place = match part.trim().split_once('=') {
                Some(("Credential", value)) => (&mut credential, value),
                Some(("SignedHeaders", value)) => (&mut names, value),
                Some(("Signature", value)) => (&mut signature, value),
                _ => return Err(incomplete("it has Credential, SignedHeaders and Signature")),
            };
            if place.0.replace(place.1).is_some() {
                return Err(incomplete("it has one of its parts twice"));
            }
        }
        let (Some(credential), Some(names), Some(signature)) = (credential, names, signature) else {
            return Err(incomplete("it has Credential, SignedHeaders and Signature"));
        };
        let mut parts = credential.split('/');
        let next = &mut || parts.next().unwrap_or_default();
        let (id, date, region, service, end) = (next(), next(), next(), next(), next());
        if end != TERMINATOR || parts.next().is_some() {
            return Err(incomplete("Credential is ID/DATE/REGION/SERVICE/aws4_request"));
        }
        Ok(Self { id, date, region, service, names: names.split(';').collect(), signature })
    }
}

/// Returns the text of a header that a request has at most once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match value.to_str() {
        Ok(text) if values.next().is_none() => Ok(Some(text)),
        _ => Err(denied(format!("the request must have one header {name}, of ASCII characters"))),
    }
}

/// Checks all but the signature.
pub(super) fn check(
    signed: &Signed<'_>,
    scope: Scope<'_>,
    now: jiff::Timestamp,
    known: impl FnOnce(&str) -> Option<Credentials>,
) -> Result<Checked, Refusal> {
    let Some(authorization) = one(signed.headers, &header::AUTHORIZATION)? else { return Err(missing()) };
    let claim = Claim::read(authorization)?;
    let service = SERVICES.into_iter().find(|service| *service == claim.service);
    let service = service.ok_or_else(|| {
        denied(format!("Credential should be scoped to correct service: '{}'.", SERVICES.join("' or '")))
    })?;
    if claim.region != scope.region {
        let message =
            format!("Credential should be scoped to a valid region, not '{}'.", claim.region.escape_debug());
        return Err(denied(message));
    }
    let sent = one(signed.headers, &DATE)?
        .ok_or_else(|| denied("Authorization header requires existence of an 'X-Amz-Date' header."))?;
    let date = date(sent, claim.date)?;
    check_date(sent, date, now)?;
    let names = signed_names(&claim.names, signed.headers)?;
    let credentials =
        known(claim.id).ok_or_else(|| denied("The security token included in the request is invalid."))?;
    let token = one(signed.headers, &TOKEN)?.unwrap_or_default();
    if !bool::from(token.as_bytes().ct_eq(credentials.session_token().unwrap_or_default().as_bytes())) {
        return Err(denied("The security token included in the request is invalid."));
    }
    Ok(Checked {
        credentials,
        region: claim.region.to_owned(),
        service,
        date: date.into(),
        names,
        signature: claim.signature.to_owned(),
    })
}

/// Reads the date of a request, which must be on the day of its scope.
fn date(sent: &str, day: &str) -> Result<jiff::Timestamp, Refusal> {
    let date = jiff::civil::DateTime::strptime(DATE_FORMAT, sent)
        .and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC))
        .map_err(|_| denied(format!("Date must be in ISO-8601 'basic format'. Got {sent:?}.")))?;
    let date = date.timestamp();
    // Only one text stands for a time: the one that is signed.
    if basic(date) != sent {
        return Err(denied(format!("Date must be in ISO-8601 'basic format'. Got {sent:?}.")));
    }
    if !sent.starts_with(day) || day.len() != 8 {
        let message = format!(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: {day:?} != \
             {sent:?}."
        );
        return Err(denied(message));
    }
    Ok(date)
}

fn basic(time: jiff::Timestamp) -> String {
    time.strftime(DATE_FORMAT).to_string()
}

fn check_date(sent: &str, date: jiff::Timestamp, now: jiff::Timestamp) -> Result<(), Refusal> {
    let skew = jiff::SignedDuration::from_mins(SKEW_MINUTES);
    let difference = date.duration_since(now);
    if difference.abs() <= skew {
        return Ok(());
    }
    let (words, sign) = if difference.is_negative() {
        ("Signature expired: DATE is now earlier than", '-')
    } else {
        ("Signature not yet current: DATE is still later than", '+')
    };
    let words = words.replace("DATE", sent);
    Err(denied(format!("{words} {} {sign} {SKEW_MINUTES} min.", basic(now))))
}

/// Returns the names of the signed headers. Those that say what the request is, and for whom, must be among them.
fn signed_names(names: &[&str], headers: &HeaderMap) -> Result<Vec<HeaderName>, Refusal> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let known = HeaderName::from_bytes(name.as_bytes()).ok().filter(|known| known.as_str() == *name);
        let known = known.ok_or_else(|| denied(format!("{name:?} is not a header in lower case")))?;
        if !headers.contains_key(&known) {
            let message =
                format!("'{name}' is named as a SignedHeader, but it does not exist in the HTTP request");
            return Err(denied(message));
        }
        if found.contains(&known) {
            return Err(denied(format!("'{name}' is named as a SignedHeader twice")));
        }
        found.push(known);
    }
    let needed = |name: &HeaderName| *name == header::HOST || headers.contains_key(name);
    for name in [header::HOST, DATE, TOKEN, CONTENT].iter().filter(|name| needed(name)) {
        if !found.contains(name) {
            return Err(denied(format!("'{name}' must be a 'SignedHeader' in the AWS Authorization.")));
        }
    }
    Ok(found)
}

impl Checked {
    /// Returns the access key id of a request whose signature is right.
    ///
    /// # Errors
    ///
    /// `AccessDenied` if it is not, or if the body is not the one that was signed.
    pub(super) fn verify(&self, signed: &Signed<'_>, body: &[u8]) -> Result<&str, Refusal> {
        let hash = hexadecimal(&Sha256::digest(body));
        if let Some(claimed) = one(signed.headers, &CONTENT)?
            && !claimed.eq_ignore_ascii_case(&hash)
        {
            return Err(denied(match claimed {
                "UNSIGNED-PAYLOAD" => {
                    "the body of a request must be signed: UNSIGNED-PAYLOAD is not accepted"
                }
                _ => "The provided 'x-amz-content-sha256' header does not match what was computed.",
            }));
        }
        let expected = self.signature_of(signed, hash).ok_or_else(mismatch)?;
        let is_right = bool::from(expected.as_bytes().ct_eq(self.signature.as_bytes()));
        if is_right { Ok(self.credentials.access_key_id()) } else { Err(mismatch()) }
    }

    /// Returns the signature that the request should have; `None` if it is not one that can be signed.
    fn signature_of(&self, signed: &Signed<'_>, hash: String) -> Option<String> {
        // The crate adds these two itself.
        let names = self.names.iter().filter(|name| **name != DATE && **name != TOKEN);
        let mut headers = Vec::with_capacity(self.names.len());
        for name in names {
            for value in signed.headers.get_all(name) {
                headers.push((name.as_str(), value.to_str().ok()?));
            }
        }
        let host = signed.headers.get(header::HOST)?.to_str().ok()?;
        let uri = format!("http://{host}{}", signed.target);
        let body = SignableBody::Precomputed(hash);
        let request = SignableRequest::new(signed.method, uri, headers.into_iter(), body).ok()?;
        let mut settings = SigningSettings::default();
        // What the client signed is signed, whether or not AWS's clients would.
        settings.excluded_headers = None;
        let identity = self.credentials.clone().into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(self.service)
            .time(self.date)
            .settings(settings)
            .build()
            .ok()?;
        let (_, signature) = sign(request, &parameters.into()).ok()?.into_parts();
        Some(signature)
    }
}

fn mismatch() -> Refusal {
    denied(
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access \
         Key and signing method. Consult the service documentation for details.",
    )
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The password of Bolt's clients: JSON with the headers of a request for [`BOLT_PATH`] that they signed.
/// <https://docs.aws.amazon.com/neptune/latest/userguide/access-graph-opencypher-bolt.html>
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BoltPassword {
    authorization: String,
    http_method: String,
    #[serde(rename = "X-Amz-Date")]
    date: String,
    #[serde(rename = "X-Amz-Security-Token")]
    token: Option<String>,
    host: String,
}

/// Returns the method, the target and the headers of the request that a client of Bolt signed.
///
/// # Errors
///
/// `AccessDenied` if the password is not JSON with these headers.
pub fn of_bolt(password: &str) -> Result<(String, &'static str, HeaderMap), Refusal> {
    let sent: BoltPassword = serde_json::from_str(password).map_err(|_| missing())?;
    let mut headers = HeaderMap::new();
    let fields = [
        (header::AUTHORIZATION, Some(sent.authorization)),
        (DATE, Some(sent.date)),
        (header::HOST, Some(sent.host)),
        (TOKEN, sent.token.filter(|token| !token.is_empty())),
    ];
    for (name, value) in fields {
        let Some(value) = value else { continue };
        let wrong = |_| denied(format!("{name} in the password is not the value of a header"));
        headers.insert(name.clone(), HeaderValue::try_from(value).map_err(wrong)?);
    }
    Ok((sent.http_method, BOLT_PATH, headers))
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;

//! AWS's Signature Version 4 of a request, for the services `neptune-db` and `neptune-graph`: in the header
//! `Authorization`, or in the query string (a presigned URL).
//!
//! AWS's own crate makes the signature that the request should have, with the secret of the access key that the request
//! names, and it is compared with the one that the request has. The words of refusals are AWS's:
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/signature-v4-troubleshooting.html>.
//!
//! A signature in the header holds for five minutes before and after its date, and one in the query string as long as its
//! signer says, at most for seven days. Within that time a request that somebody recorded can be sent again, as with
//! AWS: use TLS, and idempotency keys for writes.

use super::Refusal;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign};
use aws_sigv4::sign::v4;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};
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
/// Longest time for which a presigned URL holds, in seconds: a week.
const MOST_EXPIRES: u64 = 7 * 24 * 60 * 60;
/// The parameters of a presigned URL.
const PARAMETERS: [&str; 7] = [
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Security-Token",
    "X-Amz-Signature",
];
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
    /// Of a presigned URL: how long it holds.
    expires: Option<Duration>,
    /// Path and query without the parameters of a presigned URL.
    target: String,
}

/// What a request says of its signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Claim<'a> {
    id: &'a str,
    pub(super) date: &'a str,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) names: Vec<&'a str>,
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
    pub(super) fn read(text: &'a str) -> Result<Self, Refusal> {
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
        Self::of(credential, names, signature)
            .ok_or_else(|| incomplete("Credential is ID/DATE/REGION/SERVICE/aws4_request"))
    }

    /// Reads the parts; `None` if the credential is not one.
    fn of(credential: &'a str, names: &'a str, signature: &'a str) -> Option<Self> {
        let mut parts = credential.split('/');
        let next = &mut || parts.next().unwrap_or_default();
        let (id, date, region, service, end) = (next(), next(), next(), next(), next());
        let is_one = end == TERMINATOR && parts.next().is_none();
        is_one.then(|| Self { id, date, region, service, names: names.split(';').collect(), signature })
    }
}

/// The parameters of a presigned URL.
#[derive(Debug)]
struct Presigned<'a> {
    parameters: BTreeMap<&'static str, Cow<'a, str>>,
    /// Path and query without them.
    target: String,
}

impl<'a> Presigned<'a> {
    /// Reads path and query; `None` if they are not those of a presigned URL.
    fn read(target: &'a str) -> Result<Option<Self>, Refusal> {
        let Some((path, query)) = target.split_once('?') else { return Ok(None) };
        let (mut parameters, mut rest) = (BTreeMap::new(), vec![]);
        for pair in query.split('&') {
            let decoded = form_urlencoded::parse(pair.as_bytes()).next();
            let known = decoded.and_then(|(name, value)| {
                PARAMETERS.into_iter().find(|known| *known == name).map(|known| (known, value))
            });
            match known {
                None => rest.push(pair),
                Some((name, value)) => {
                    if parameters.insert(name, value).is_some() {
                        return Err(denied(format!("the query string has {name} twice")));
                    }
                }
            }
        }
        if parameters.is_empty() {
            return Ok(None);
        }
        let mut target = path.to_owned();
        if !rest.is_empty() {
            let _ = write!(target, "?{}", rest.join("&"));
        }
        Ok(Some(Self { parameters, target }))
    }

    fn get(&self, name: &'static str) -> Result<&str, Refusal> {
        let found = self.parameters.get(name).map(|value| &**value);
        found.ok_or_else(|| {
            denied(format!(
                "AWS query-string parameters must include 'X-Amz-Algorithm', 'X-Amz-Credential', 'X-Amz-Signature', \
                 'X-Amz-SignedHeaders', 'X-Amz-Date' and 'X-Amz-Expires': '{name}' is missing."
            ))
        })
    }

    fn claim(&self) -> Result<Claim<'_>, Refusal> {
        let algorithm = self.get("X-Amz-Algorithm")?;
        if algorithm != ALGORITHM {
            let message = format!("X-Amz-Algorithm only supports {ALGORITHM}, not {algorithm:?}.");
            return Err(denied(message));
        }
        let credential = self.get("X-Amz-Credential")?;
        let claim = Claim::of(credential, self.get("X-Amz-SignedHeaders")?, self.get("X-Amz-Signature")?);
        claim.ok_or_else(|| denied("X-Amz-Credential is ID/DATE/REGION/SERVICE/aws4_request"))
    }

    /// Returns how long the URL holds.
    fn expires(&self) -> Result<Duration, Refusal> {
        let sent = self.get("X-Amz-Expires")?;
        let seconds = sent.parse::<u64>().ok();
        // Only one text stands for a number: the one that is signed.
        match seconds.filter(|seconds| seconds.to_string() == sent) {
            Some(seconds @ 1..=MOST_EXPIRES) => Ok(Duration::from_secs(seconds)),
            Some(_) => {
                Err(denied(format!("X-Amz-Expires must be from 1 to {MOST_EXPIRES} seconds, not {sent}.")))
            }
            None => Err(denied(format!("X-Amz-Expires should be a number of seconds, not {sent:?}."))),
        }
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
    let authorization = one(signed.headers, &header::AUTHORIZATION)?;
    let presigned = Presigned::read(signed.target)?;
    let (claim, expires) = match (authorization, &presigned) {
        (None, None) => return Err(missing()),
        (Some(authorization), None) => (Claim::read(authorization)?, None),
        (None, Some(presigned)) => (presigned.claim()?, Some(presigned.expires()?)),
        (Some(_), Some(_)) => {
            return Err(denied(
                "Only one auth mechanism allowed: the query string has parameters of Signature Version 4, and the \
                 request has the header Authorization",
            ));
        }
    };
    let service = SERVICES.into_iter().find(|service| *service == claim.service);
    let service = service.ok_or_else(|| {
        denied(format!("Credential should be scoped to correct service: '{}'.", SERVICES.join("' or '")))
    })?;
    if claim.region != scope.region {
        let message =
            format!("Credential should be scoped to a valid region, not '{}'.", claim.region.escape_debug());
        return Err(denied(message));
    }
    let sent = match &presigned {
        Some(presigned) => presigned.get("X-Amz-Date")?,
        None => one(signed.headers, &DATE)?
            .ok_or_else(|| denied("Authorization header requires existence of an 'X-Amz-Date' header."))?,
    };
    let date = date_of(sent, claim.date)?;
    check_date(sent, date, expires, now)?;
    let names = signed_names(&claim.names, signed.headers)?;
    let credentials =
        known(claim.id).ok_or_else(|| denied("The security token included in the request is invalid."))?;
    let token = match &presigned {
        Some(presigned) => presigned.parameters.get("X-Amz-Security-Token").map_or("", |token| token),
        None => one(signed.headers, &TOKEN)?.unwrap_or_default(),
    };
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
        expires,
        target: presigned.as_ref().map_or(signed.target, |presigned| &presigned.target).to_owned(),
    })
}

/// Reads the date of a request, which must be on the day of its scope.
pub(super) fn date_of(sent: &str, day: &str) -> Result<jiff::Timestamp, Refusal> {
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

/// Checks that a signature of this date holds now. `expires`: how long a presigned URL holds.
fn check_date(
    sent: &str,
    date: jiff::Timestamp,
    expires: Option<Duration>,
    now: jiff::Timestamp,
) -> Result<(), Refusal> {
    let skew = jiff::SignedDuration::from_mins(SKEW_MINUTES);
    if let Some(expires) = expires
        && date <= now
    {
        let age = Duration::try_from(now.duration_since(date)).unwrap_or(Duration::MAX);
        if age <= expires {
            return Ok(());
        }
        let message = format!(
            "Signature expired: {sent} and {} seconds are now earlier than {}.",
            expires.as_secs(),
            basic(now)
        );
        return Err(denied(message));
    }
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
    /// Returns path and query of the request without the parameters of its signature.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

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
        // The crate adds these two itself, unless they are parameters.
        let is_added = |name: &HeaderName| self.expires.is_none() && (*name == DATE || *name == TOKEN);
        let names = self.names.iter().filter(|name| !is_added(name));
        let mut headers = Vec::with_capacity(self.names.len());
        for name in names {
            for value in signed.headers.get_all(name) {
                headers.push((name.as_str(), value.to_str().ok()?));
            }
        }
        let host = signed.headers.get(header::HOST)?.to_str().ok()?;
        let uri = format!("http://{host}{}", self.target);
        let body = SignableBody::Precomputed(hash);
        let request = SignableRequest::new(signed.method, uri, headers.into_iter(), body).ok()?;
        let mut settings = SigningSettings::default();
        // What the client signed is signed, whether or not AWS's clients would.
        settings.excluded_headers = None;
        if self.expires.is_some() {
            settings.signature_location = SignatureLocation::QueryParams;
            settings.expires_in = self.expires;
        }
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

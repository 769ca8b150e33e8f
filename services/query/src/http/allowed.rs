//! Which web pages may use the service, and under which names.
//!
//! A browser sends requests to this machine for every page that it shows. So a service without a token checks two
//! things. `Host` must be a name of the service: otherwise a page could make a name of its own resolve to this machine
//! (DNS rebinding) and read answers as if they were its own. `Origin` and `Sec-Fetch-Site`, which only browsers send,
//! must not name another site. Other clients send neither of these two headers, and pass.
//!
//! With a token the name is checked only if the operator lists names: a page that was rebound does not know the token.

use super::Failure;
use axum::Router;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::ErrorCode;
use tower_http::cors::{AllowOrigin, CorsLayer};

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// How long a browser may remember the answer to a preflight request.
const PREFLIGHT_MAX_AGE: Duration = Duration::from_secs(600);

/// A name or an address under which clients reach the service, without a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostName(String);

impl HostName {
    fn of(authority: &Authority) -> Self {
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        Self(host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase())
    }
}

impl std::fmt::Display for HostName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is not a [`HostName`].
#[derive(Debug, thiserror::Error)]
#[error(
    "{0:?} is not a host: give a name or an address without scheme, port and path, such as db.example.com"
)]
pub struct NotAHost(String);

impl FromStr for HostName {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<Self, NotAHost> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(address.to_string()));
        }
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        match text.parse::<Authority>() {
            Ok(authority) if text.bytes().all(is_of_name) => Ok(Self::of(&authority)),
            _ => Err(NotAHost(text.to_owned())),
        }
    }
}

/// The origin of a web page: scheme, host and port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageOrigin {
    scheme: &'static str,
    host: HostName,
    port: u16,
}

/// A text that is not a [`PageOrigin`].
#[derive(Debug, thiserror::Error)]
#[error(
    "{0:?} is not an origin: give http or https, a host and perhaps a port, such as https://app.example.com"
)]
pub struct NotAnOrigin(String);

impl FromStr for PageOrigin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let wrong = || NotAnOrigin(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (scheme, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => ("http", 80),
            "https" => ("https", 443),
            _ => return Err(wrong()),
        };
        let authority: Authority = rest.parse().map_err(|_| wrong())?;
        let port = port_of(&authority).map_err(|()| wrong())?;
        Ok(Self { scheme, host: HostName::of(&authority), port: port.unwrap_or(default_port) })
    }
}

impl PageOrigin {
    fn default_port(&self) -> u16 {
        if self.scheme == "http" { 80 } else { 443 }
    }

    /// Whether a page of this origin came from the host and port that a request names. The scheme is unknown: a proxy
    /// may have ended TLS.
    fn is_of(&self, host: &HostName, port: Option<u16>) -> bool {
        self.host == *host && self.port == port.unwrap_or_else(|| self.default_port())
    }

    /// Returns the origin as browsers send it.
    fn header(&self) -> Option<HeaderValue> {
        let HostName(host) = &self.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let port = if self.port == self.default_port() { String::new() } else { format!(":{}", self.port) };
        HeaderValue::try_from(format!("{}://{host}{port}", self.scheme)).ok()
    }
}

/// Returns the port of an authority, or an error if it has a user name, no host, or a port that is not a number.
fn port_of(authority: &Authority) -> Result<Option<u16>, ()> {
    let text = authority.as_str();
    let host = authority.host();
    match text.strip_prefix(host) {
        Some("") if !host.is_empty() => Ok(None),
        Some(rest) if !host.is_empty() => {
            rest.strip_prefix(':').and_then(|port| port.parse().ok()).map(Some).ok_or(())
        }
        _ => Err(()),
    }
}

/// The hosts and origins that a service accepts.
#[derive(Clone, Debug)]
pub struct AllowedClients {
    /// The address that the service listens on.
    pub bound: IpAddr,
    /// Whether requests must prove who sends them.
    pub has_token: bool,
    /// Further names of the service.
    pub hosts: Vec<HostName>,
    /// Origins of other sites whose pages may use the service.
    pub origins: Vec<PageOrigin>,
}

impl AllowedClients {
    /// Adds the checks to a router, and the answers to preflight requests of allowed origins.
    pub fn protect(self, router: Router) -> Router {
        let router = if self.origins.is_empty() { router } else { router.layer(self.cors()) };
        let allowed = Arc::new(self);
        router.layer(middleware::from_fn(move |request: Request, next: Next| {
            let allowed = allowed.clone();
            async move {
                match allowed.check(&request) {
                    Ok(()) => next.run(request).await,
                    Err(failure) => failure.into_response(),
                }
            }
        }))
    }

    fn cors(&self) -> CorsLayer {
        let version = HeaderName::from_static("tidegraph-version");
        let (key, replayed) = (super::idempotency::KEY, super::idempotency::REPLAYED);
        CorsLayer::new()
            .allow_origin(AllowOrigin::list(self.origins.iter().filter_map(PageOrigin::header)))
            .allow_methods([Method::GET, Method::POST, Method::DELETE])
            .allow_headers([
                header::AUTHORIZATION,
                header::CONTENT_TYPE,
                header::CONTENT_ENCODING,
                version.clone(),
                key,
                // A page that signs its requests sends these.
                HeaderName::from_static("x-amz-date"),
                HeaderName::from_static("x-amz-security-token"),
                HeaderName::from_static("x-amz-content-sha256"),
            ])
            .expose_headers([version, replayed, header::RETRY_AFTER])
            .allow_private_network(true)
            .max_age(PREFLIGHT_MAX_AGE)
    }

    fn check(&self, request: &Request) -> Result<(), Failure> {
        let host = one_header(request.headers(), &header::HOST)?;
        let named = match (request.uri().authority(), host) {
            // The target of the request wins over the header (RFC 9112, section 3.2.2).
            (Some(authority), _) => Some(authority.clone()),
            (None, Some(host)) => Some(host.parse::<Authority>().map_err(|_| wrong_host(host))?),
            (None, None) if request.version() >= Version::HTTP_11 => {
                return Err(Failure::new(ErrorCode::BadRequest, "the request has no Host header"));
            }
            (None, None) => None,
        };
        let named = named.map(|authority| match port_of(&authority) {
            Ok(port) => Ok((HostName::of(&authority), port)),
            Err(()) => Err(wrong_host(authority.as_str())),
        });
        let named = named.transpose()?;
        if let Some((host, _)) = &named
            && !self.allows_host(host)
        {
            let HostName(host) = host;
            let message = format!(
                "the Host {host:?} is not a name of this service: use http://localhost, or start the service with \
                 --allow-host {host}"
            );
            return Err(Failure::new(ErrorCode::AccessDenied, message));
        }
        self.check_site(request.headers(), named.as_ref())
    }

    fn allows_host(&self, host: &HostName) -> bool {
        if (self.has_token && self.hosts.is_empty()) || host.0 == "localhost" || self.hosts.contains(host) {
            return true;
        }
        // A name can be made to resolve to this machine, an address cannot.
        host.0.parse::<IpAddr>().is_ok_and(|address| {
            address.is_loopback() || address == self.bound || self.bound.is_unspecified()
        })
    }

    /// Refuses requests that a browser sends for a page of another site.
    fn check_site(
        &self,
        headers: &HeaderMap,
        named: Option<&(HostName, Option<u16>)>,
    ) -> Result<(), Failure> {
        let Some(origin) = one_header(headers, &header::ORIGIN)? else {
            let site = headers.get(SEC_FETCH_SITE).map_or(&b"none"[..], HeaderValue::as_bytes);
            if matches!(site, b"none" | b"same-origin") {
                return Ok(());
            }
            let message = "a web page of another site sent this request (header Sec-Fetch-Site): let the page fetch \
                           it, and start the service with --allow-origin and the page's origin";
            return Err(Failure::new(ErrorCode::AccessDenied, message));
        };
        let is_allowed = origin.parse::<PageOrigin>().is_ok_and(|origin| {
            self.origins.contains(&origin) || named.is_some_and(|(host, port)| origin.is_of(host, *port))
        });
        if is_allowed {
            return Ok(());
        }
        let message = format!(
            "web pages of the origin {origin:?} may not use this service: start it with --allow-origin {origin} if \
             they should"
        );
        Err(Failure::new(ErrorCode::AccessDenied, message))
    }
}

fn wrong_host(host: &str) -> Failure {
    Failure::new(ErrorCode::BadRequest, format!("the Host header is not a host and a port: {host:?}"))
}

/// Returns the text of a header. A request with two such headers, or with other characters than ASCII, is an error.
fn one_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Failure> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match value.to_str() {
        Ok(text) if values.next().is_none() => Ok(Some(text)),
        _ => {
            let message = format!("the request must have one header {name}, of ASCII characters");
            Err(Failure::new(ErrorCode::BadRequest, message))
        }
    }
}

//! The guard before all routes: who asks, whether the path is for this principal, and the record of the request.
//!
//! Queries pass with their principal: the engine knows whether a text reads or writes, and admission records it. For
//! all other paths [`Needs`] says which role they need, and they are recorded here. A path that it does not list needs the
//! role admin.

use super::graphs::PathPrefix;
use super::{Failure, Service, body};
use crate::admission::RequestMemory;
use crate::audit::{Audit, Record, Source};
use crate::authentication::signature::Signed;
use crate::authentication::{Authentication, Refusal, Signers};
use crate::websocket;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::uri::InvalidUri;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::{Arc, Mutex, PoisonError};
use tidegraph_engine::{Principal, Role};
use tidegraph_types::ErrorCode;

/// What a request is about, which its handler adds for the audit log.
#[derive(Clone, Debug, Default)]
pub(super) struct Detail(Arc<Mutex<Option<String>>>);

impl Detail {
    /// Sets what the request is about, such as the sources of a load.
    pub(super) fn set(&self, detail: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(detail);
    }

    fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The code of an answer that failed, for the audit log.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedWith(pub(super) ErrorCode);

/// What a path needs of a principal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Needs {
    /// Nothing here: the engine checks the query, or the handler shows each caller its own queries.
    Query,
    /// Nothing: every known caller may see the health of the service.
    Nothing,
    /// A role.
    Role(Role),
}

impl Needs {
    fn of(method: &Method, path: &str) -> Self {
        let mut parts = path.trim_matches('/').split('/');
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        let is_change = !method.is_safe();
        match (first, second) {
            ("openCypher" | "opencypher" | "gremlin", None | Some("status" | "explain" | "profile"))
            | ("queries", _) => Self::Query,
            ("gremlin", Some("stream")) => Self::Role(Role::Read),
            // No graph of this service: the answer says so.
            ("graph", Some(_)) => Self::Nothing,
            ("status" | "metrics", None) | ("fleet", Some("status")) => Self::Nothing,
            ("loader", _) => Self::Role(Role::Load),
            ("propertygraph" | "pg", Some("statistics")) | ("graphs", _) if is_change => {
                Self::Role(Role::Admin)
            }
            ("propertygraph" | "pg", Some("statistics" | "stream"))
            | ("rdf" | "sparql", Some("statistics"))
            | ("summary", None)
            | ("graphs", Some(_)) => Self::Role(Role::Read),
            _ => Self::Role(Role::Admin),
        }
    }

    /// Whether a request is recorded here: those that run no query, but for looks at the service's health.
    fn is_recorded(self, path: &str) -> bool {
        match self {
            Self::Query => path.contains("/status") || path.starts_with("/queries/"),
            Self::Nothing => false,
            Self::Role(_) => true,
        }
    }
}

/// Adds the guard to a router. It is to be outside of what decompresses bodies: signatures cover what was sent.
pub(super) fn with_guard(router: Router, service: Service, authentication: Authentication) -> Router {
    let guard = Arc::new(Guard { service, authentication });
    router.layer(middleware::from_fn(move |request: Request, next: Next| {
        let guard = guard.clone();
        async move { guard.pass(request, next).await }
    }))
}

struct Guard {
    service: Service,
    authentication: Authentication,
}

/// Who sent a request.
enum Caller {
    Known(Principal),
    /// A driver of Gremlin, which proves itself after the upgrade.
    Later,
}

impl Guard {
    async fn pass(&self, request: Request, next: Next) -> Response {
        let source = request.extensions().get::<Source>().copied().unwrap_or_default();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let asked = format!("{}{path}", prefix(&request));
        // Held until the answer is made.
        let mut memory = RequestMemory::default();
        let (mut request, caller) = match self.prove(request, source, &mut memory).await {
            Ok(proven) => proven,
            Err(failure) => {
                if let Some(audit) = self.service.admission.audit() {
                    audit.refused(failure.name.as_deref(), source, failure.failure.code()).await;
                }
                return failure.failure.into_response();
            }
        };
        let principal = match caller {
            Caller::Known(principal) => {
                match self.authentication.still_known(&principal, &self.service.graph) {
                    Ok(principal) => principal,
                    Err(refusal) => return Failure::new(refusal.code(), refusal.to_string()).into_response(),
                }
            }
            Caller::Later => {
                request.extensions_mut().insert(websocket::Unproven);
                return next.run(request).await;
            }
        };
        let needs = Needs::of(&method, &path);
        let record = match self.record(needs, &method, &path, &asked, &principal, source).await {
            Ok(record) => record,
            Err(failure) => return failure.into_response(),
        };
        let detail = Detail::default();
        let allowed = match needs {
            Needs::Role(role) => principal.ensure(role),
            Needs::Query | Needs::Nothing => Ok(()),
        };
        let answer = match allowed {
            Ok(()) => {
                request.extensions_mut().insert(principal);
                request.extensions_mut().insert(detail.clone());
                next.run(request).await
            }
            Err(error) => Failure::from(error).into_response(),
        };
        drop(memory);
        end(record, &detail, &answer);
        answer
    }

    async fn record(
        &self,
        needs: Needs,
        method: &Method,
        path: &str,
        asked: &str,
        principal: &Principal,
        source: Source,
    ) -> Result<Option<Record>, Failure> {
        let audit = self.service.admission.audit().filter(|_| needs.is_recorded(path));
        let Some(audit): Option<&Audit> = audit else { return Ok(None) };
        let begun = audit.begin(format!("{method} {asked}"), principal, source).await;
        begun.map(Some).map_err(|error| Failure::new(ErrorCode::Unavailable, error.to_string()))
    }

    /// Returns who sent a request. A signed request is read whole for that.
    async fn prove(
        &self,
        request: Request,
        source: Source,
        memory: &mut RequestMemory,
    ) -> Result<(Request, Caller), Refused> {
        let Some(stranger) = self.authentication.refusal_of_strangers() else {
            return Ok((request, Caller::Known(Principal::Anonymous)));
        };
        if let Authentication::SigV4(signers) = &self.authentication {
            return self.prove_signed(signers, request, memory).await;
        }
        let headers = request.headers();
        if !headers.contains_key(header::AUTHORIZATION) {
            let may_come_later =
                self.authentication.takes_passwords_later() && websocket::asks_for_upgrade(&request);
            return if may_come_later { Ok((request, Caller::Later)) } else { Err(stranger.into()) };
        }
        let from = source.address.map(|address| address.ip());
        let proven = match sent(headers) {
            Some(Sent::Token(token)) => {
                self.authentication.token(token, from).await.map_err(|error| (error, None))
            }
            Some(Sent::Password { name, password }) => {
                let proven = self.authentication.password(&name, &password, from).await;
                proven.map_err(|error| (error, Some(name)))
            }
            None => Err((stranger, None)),
        };
        match proven {
            Ok(principal) => Ok((request, Caller::Known(principal))),
            Err((error, name)) => Err(Refused { name, ..error.into() }),
        }
    }

    async fn prove_signed(
        &self,
        signers: &Signers,
        request: Request,
        memory: &mut RequestMemory,
    ) -> Result<(Request, Caller), Refused> {
        let prefix = prefix(&request);
        let (mut parts, sent) = request.into_parts();
        let method = parts.method.clone();
        // What was signed has the name of the graph in it.
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let (target, prefix) = (&*format!("{prefix}{target}"), &*prefix);
        let signed = Signed { method: method.as_str(), target, headers: &parts.headers };
        let checked = signers.check(&signed, self.service.database.now())?;
        let body = body::read_all(&self.service, sent, memory).await?;
        let principal = signers.verify(&checked, &signed, &body)?;
        parts.headers.remove(header::AUTHORIZATION);
        if checked.target() != target {
            let target = checked.target();
            parts.uri = with_target(&parts.uri, target.strip_prefix(prefix).unwrap_or(target))?;
        }
        let request = Request::from_parts(parts, Body::from(Bytes::from(body)));
        Ok((request, Caller::Known(principal)))
    }
}

/// Returns the beginning of the path that a request was sent to, which its path here lacks.
fn prefix(request: &Request) -> String {
    request.extensions().get::<PathPrefix>().map_or_else(String::new, |PathPrefix(prefix)| prefix.clone())
}

/// Returns the URI with another path and query: handlers refuse parameters that they do not know.
fn with_target(uri: &Uri, target: &str) -> Result<Uri, Failure> {
    let unreadable =
        |_| Failure::new(ErrorCode::BadRequest, format!("{target:?} is not a path with a query"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse().map_err(|error: InvalidUri| unreadable(error.to_string()))?);
    Uri::from_parts(parts).map_err(|error| unreadable(error.to_string()))
}

/// Why a request was not let in, and the name of the user that it gave.
struct Refused {
    failure: Failure,
    name: Option<String>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Failure::new(refusal.code(), refusal.to_string()).into()
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, name: None }
    }
}

/// The header `Authorization`.
enum Sent<'a> {
    Token(&'a str),
    Password { name: String, password: String },
}

/// Reads the header; `None` if there are several, or if it is of another scheme.
fn sent(headers: &HeaderMap) -> Option<Sent<'_>> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, rest) = value.to_str().ok()?.split_once(' ')?;
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Some(Sent::Token(rest)),
        "basic" => {
            let text = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
            let (name, password) = text.split_once(':')?;
            Some(Sent::Password { name: name.to_owned(), password: password.to_owned() })
        }
        _ => None,
    }
}

fn end(record: Option<Record>, detail: &Detail, answer: &Response) {
    let Some(mut record) = record else { return };
    if let Some(detail) = detail.take() {
        record.detail(&detail);
    }
    let failed = answer.extensions().get::<FailedWith>().map(|failed| failed.0);
    let is_failed = answer.status() >= StatusCode::BAD_REQUEST;
    record.end(if is_failed { Err(failed.unwrap_or(ErrorCode::Internal)) } else { Ok(()) });
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;

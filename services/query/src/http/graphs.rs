//! The graphs of a service: `/graph/NAME/…` is the API of one of them, and paths without a name are that of the default one.
//!
//! Roles: [`Graphs`] has the state of each graph, which is opened by another thread; its router sends a request on to the
//! router of its graph, without the beginning of the path; sessions of WebSocket and Bolt find their graph through
//! [`Sessions`]. All graphs share slots and memory of queries ([`Capacity`]).
//!
//! What must never happen: a request answered by another graph than the one that it names; a caller that proved nothing
//! learns which graphs there are. So a request for an unknown graph goes to the guard of the default one.

use super::absent::not_open;
use super::{Failure, Limits, Service, metrics};
use crate::admission::Capacity;
use crate::audit::Audit;
use crate::authentication::Authentication;
use crate::session::{self, Find, NoGraph, Sessions};
use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use tidegraph_engine::Database;
use tidegraph_types::{ErrorCode, is_graph_name};

/// The first part of the paths of named graphs.
const FIRST: &str = "/graph/";

/// The beginning of a request's path, `/graph/NAME`, which its handlers do not see.
#[derive(Clone, Debug)]
pub(super) struct PathPrefix(pub(super) String);

/// The graph of a request that named it in its path.
#[derive(Clone, Debug)]
pub(crate) struct NamedGraph(pub(crate) Arc<str>);

/// The graphs of a service. Clones share them.
#[derive(Clone)]
pub struct Graphs(Arc<Inner>);

struct Inner {
    limits: Limits,
    capacity: Capacity,
    authentication: Authentication,
    audit: Option<Audit>,
    default: Arc<str>,
    graphs: BTreeMap<Arc<str>, RwLock<State>>,
}

#[derive(Clone)]
enum State {
    /// Not open yet.
    Absent,
    /// It was dropped, and has not been made again.
    Dropped,
    Open(Arc<Open>),
}

/// An open graph.
struct Open {
    service: Service,
    http: Router,
    sessions: Arc<session::Service>,
}

impl std::fmt::Debug for Graphs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Graphs").field(&self.0.graphs.keys()).finish()
    }
}

/// Why graphs cannot be those of a service.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongGraphs {
    /// A name of no graph.
    #[error(
        "{0:?} cannot be the name of a graph: a name has 1 to 64 letters, digits, '.', '_' and '-', and does not begin with '.'"
    )]
    Name(String),
    /// Two graphs of one name.
    #[error("the graph {0:?} is given twice")]
    Twice(String),
    /// None.
    #[error("a service has at least one graph")]
    None,
    /// A quota of a graph that is not of the service.
    #[error("there is a quota of {0:?}, which is none of the graphs of this service: {1}")]
    Quota(String, String),
    /// A quota where there is one graph.
    #[error("there is a quota of {0:?}, the only graph of this service: a quota is for one graph of several")]
    QuotaOfOne(String),
}

/// Splits a path of a named graph into its name and the rest; `None`: the path names no graph.
fn split(path: &str) -> Option<(&str, &str)> {
    let after = path.strip_prefix(FIRST)?;
    let (name, rest) = after.find('/').map_or((after, ""), |at| after.split_at(at));
    (!name.is_empty()).then_some((name, rest))
}

/// Takes the name of a graph out of a request's path and returns it. Returns `None`, and leaves the path, if it names no
/// graph or one that is not known.
#[cfg(feature = "lambda")]
pub(crate) fn take_graph(
    request: &mut Request,
    is_known: impl FnOnce(&str) -> bool,
) -> Result<Option<Arc<str>>, Failure> {
    let Some((name, rest)) = split(request.uri().path()).filter(|(name, _)| is_known(name)) else {
        return Ok(None);
    };
    let (name, rest) = (Arc::<str>::from(name), rest.to_owned());
    strip(request, &name, &rest)?;
    request.extensions_mut().insert(NamedGraph(name.clone()));
    Ok(Some(name))
}

/// Returns the failure of a path that names a graph that is not of this service; `None` if it names none.
pub(super) fn unknown(path: &str) -> Option<Failure> {
    let (name, _) = split(path)?;
    Some(if is_graph_name(name) {
        Failure::new(ErrorCode::NotFound, format!("there is no graph {name:?}"))
    } else {
        Failure::new(ErrorCode::InvalidParameter, WrongGraphs::Name(name.to_owned()).to_string())
    })
}

impl Graphs {
    /// Makes the graphs of a service, none of which is open. The first one is the default. `limits` may have quotas of
    /// them.
    ///
    /// # Errors
    ///
    /// [`WrongGraphs`].
    pub fn new(
        names: &[String],
        limits: Limits,
        authentication: Authentication,
        audit: Option<Audit>,
    ) -> Result<Self, WrongGraphs> {
        let mut graphs = BTreeMap::new();
        for name in names {
            if !is_graph_name(name) {
                return Err(WrongGraphs::Name(name.clone()));
            }
            if graphs.insert(Arc::from(name.as_str()), RwLock::new(State::Absent)).is_some() {
                return Err(WrongGraphs::Twice(name.clone()));
            }
        }
        for quota in limits.queries.graph_quotas.keys() {
            if !graphs.contains_key(quota) {
                return Err(WrongGraphs::Quota(quota.to_string(), names.join(", ")));
            }
            if graphs.len() == 1 {
                return Err(WrongGraphs::QuotaOfOne(quota.to_string()));
            }
        }
        let default: Arc<str> = names.first().ok_or(WrongGraphs::None)?.as_str().into();
        let capacity = Capacity::new(&limits.queries);
        Ok(Self(Arc::new(Inner { limits, capacity, authentication, audit, default, graphs })))
    }

    /// Answers requests for a graph from a database from now on. Does nothing for a graph that is not of this service.
    pub fn open(&self, name: &str, database: Arc<Database>) {
        let inner = &*self.0;
        let Some((name, _)) = inner.graphs.get_key_value(name) else { return };
        let shared = (inner.graphs.len() > 1).then_some(&inner.capacity);
        let mut service = Service::of_graph(database, inner.limits.clone(), name, shared);
        if let Some(audit) = &inner.audit {
            service =
                service.recorded_in(if shared.is_some() { audit.of_graph(name) } else { audit.clone() });
        }
        let sessions = service.session_service(inner.authentication.clone());
        let http = service.clone().guarded_router(inner.authentication.clone());
        self.set(name, State::Open(Arc::new(Open { service, http, sessions })));
    }

    /// Refuses requests for a graph from now on: it was dropped.
    pub fn close(&self, name: &str) {
        self.set(name, State::Dropped);
    }

    fn set(&self, name: &str, state: State) {
        if let Some(graph) = self.0.graphs.get(name) {
            *graph.write().unwrap_or_else(PoisonError::into_inner) = state;
        }
    }

    fn state(&self, name: &str) -> Option<State> {
        let graph = self.0.graphs.get(name)?;
        Some(graph.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Whether a graph is open.
    #[must_use]
    pub fn is_any_open(&self) -> bool {
        self.any().is_some()
    }

    /// Returns what sessions of Bolt and of WebSocket need.
    #[must_use]
    pub fn sessions(&self) -> Sessions {
        Sessions::new(self.clone())
    }

    /// Returns the routes of all graphs.
    pub fn router(&self) -> Router {
        let graphs = self.clone();
        Router::new().fallback(move |request: Request| {
            let graphs = graphs.clone();
            async move { graphs.answer(request).await }
        })
    }

    async fn answer(&self, mut request: Request) -> Response {
        let path = request.uri().path();
        let named = split(path).and_then(|(name, rest)| match self.state(name)? {
            State::Dropped => None,
            state => Some((Arc::<str>::from(name), rest.to_owned(), state)),
        });
        let state = match named {
            Some((name, rest, state)) => {
                if let Err(failure) = strip(&mut request, &name, &rest) {
                    return failure.into_response();
                }
                request.extensions_mut().insert(NamedGraph(name));
                state
            }
            None => self.state(&self.0.default).unwrap_or(State::Absent),
        };
        let router = match state {
            State::Open(open) => open.http.clone(),
            State::Absent => return not_open(),
            State::Dropped => {
                let message = format!("there is no graph {:?}", self.0.default);
                return Failure::new(ErrorCode::NotFound, message).into_response();
            }
        };
        if request.uri().path() == "/metrics" {
            self.note_health();
        }
        TowerToHyperService::new(router).call(request).await.unwrap_or_else(|never| match never {})
    }

    /// Sets the metrics that nothing else sets: those of all open graphs, and of what they share.
    pub(crate) fn note_metrics(&self) {
        self.note_health();
        let open = self.0.graphs.keys().find_map(|name| match self.state(name)? {
            State::Open(open) => Some(open),
            State::Absent | State::Dropped => None,
        });
        if let Some(open) = open {
            open.service.admission.note_capacity();
        }
    }

    /// Sets the metrics of all open graphs.
    fn note_health(&self) {
        for name in self.0.graphs.keys() {
            if let Some(State::Open(open)) = self.state(name) {
                metrics::note_health(&open.service);
            }
        }
    }
}

/// Takes the name of the graph out of a request's path.
fn strip(request: &mut Request, name: &str, rest: &str) -> Result<(), Failure> {
    let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
    let path = if rest.is_empty() { "/" } else { rest };
    let mut parts = request.uri().clone().into_parts();
    let wrong =
        |error: String| Failure::new(ErrorCode::BadRequest, format!("{path:?} is not a path: {error}"));
    parts.path_and_query = Some(format!("{path}{query}").parse().map_err(|error| wrong(format!("{error}")))?);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|error| wrong(error.to_string()))?;
    request.extensions_mut().insert(PathPrefix(format!("{FIRST}{name}")));
    Ok(())
}

impl Find for Graphs {
    fn find(&self, graph: Option<&str>) -> Result<Arc<session::Service>, NoGraph> {
        let name = graph.unwrap_or(&self.0.default);
        match self.state(name) {
            Some(State::Open(open)) => Ok(open.sessions.clone()),
            Some(State::Absent) => Err(NoGraph::Absent(name.to_owned())),
            Some(State::Dropped) | None => Err(NoGraph::Unknown(name.to_owned())),
        }
    }

    fn any(&self) -> Option<Arc<session::Service>> {
        let names = std::iter::once(&self.0.default).chain(self.0.graphs.keys());
        names.into_iter().find_map(|name| self.find(Some(name)).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_graph_or_not() {
        assert_eq!(split("/graph/a/openCypher"), Some(("a", "/openCypher")));
        assert_eq!(split("/graph/a/"), Some(("a", "/")));
        assert_eq!(split("/graph/a"), Some(("a", "")));
        assert_eq!(split("/graph/a//b"), Some(("a", "//b")));
        for none in ["/", "/graph", "/graph/", "/graph//openCypher", "/graphs/a", "/openCypher"] {
            assert_eq!(split(none), None, "{none}");
        }
    }

    #[test]
    fn wrong_names_are_refused() {
        let graphs = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Graphs::new(&names, Limits::default(), Authentication::Off, None).map(|_| ())
        };
        assert_eq!(graphs(&["a", "b.c", "D_-9"]), Ok(()));
        assert_eq!(graphs(&[]), Err(WrongGraphs::None));
        assert_eq!(graphs(&["a", "b", "a"]), Err(WrongGraphs::Twice("a".into())));
        let quota = |names: &[&str], of: &str| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let mut limits = Limits::default();
            limits.queries.graph_quotas.insert(of.into(), 50);
            Graphs::new(&names, limits, Authentication::Off, None).map(|_| ())
        };
        assert_eq!(quota(&["a", "b"], "b"), Ok(()));
        assert_eq!(quota(&["a", "b"], "c"), Err(WrongGraphs::Quota("c".into(), "a, b".into())));
        assert_eq!(quota(&["a"], "a"), Err(WrongGraphs::QuotaOfOne("a".into())));
        let long = "x".repeat(65);
        for wrong in ["", ".", "..", ".a", "a/b", "a b", "größe", "a%2Fb", &long] {
            assert_eq!(graphs(&["a", wrong]), Err(WrongGraphs::Name(wrong.into())));
        }
    }
}

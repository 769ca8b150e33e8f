//! The HTTP service: one port with an API shaped like Neptune's.
//!
//! Flow of a query: route → `body` (parameters from query string, form or JSON) → [`Admission`] → the engine →
//! JSON, whole or in chunks (`answers`). When a client disconnects, its handler is dropped and the query is cancelled. On shutdown the listener closes,
//! running requests finish, and then the process ends.
//!
//! What must never happen: a long query on a thread that serves sockets; status 500 for a client's mistake; a write by
//! GET, or for a web page that the operator did not allow.

mod absent;
mod allowed;
mod analytics;
mod answers;
mod body;
mod bookmark;
mod errors;
mod explain;
mod graphs;
mod gremlin;
mod guard;
mod gzip;
mod idempotency;
mod loader;
mod metrics;
mod opencypher;
mod queries;
mod statistics;
mod status;
mod stream;
mod system;
mod traced;

pub use allowed::{AllowedClients, HostName, NotAHost, NotAnOrigin, PageOrigin};
pub use errors::Failure;
pub(crate) use graphs::NamedGraph;
#[cfg(feature = "lambda")]
pub(crate) use graphs::take_graph;
pub use graphs::{Graphs, WrongGraphs};
pub use gzip::with_gzip;
pub use queries::{TimeLeft, Whole};

use crate::admission::{self, Admission, Capacity};
use crate::audit::Audit;
use crate::authentication::Authentication;
use crate::session::{self, Only, Sessions};
use axum::Router;
use axum::extract::Request;
use axum::middleware;
use axum::routing::{any, get, post};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tidegraph_engine::Database;
use tidegraph_engine::loads::Allowed;
use tidegraph_types::ErrorCode;

/// The name of the graph of a service that names none.
pub const DEFAULT_GRAPH: &str = "default";

/// Limits of the service.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest request body, in bytes.
    pub body_bytes: usize,
    /// Limits of queries.
    pub queries: admission::Limits,
    /// What loads may read: nothing by default. Queries read what the database's own options allow.
    pub load_from: Allowed,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body_bytes: 16 << 20, queries: admission::Limits::default(), load_from: Allowed::nothing() }
    }
}

/// The state that all handlers share.
#[derive(Clone)]
pub struct Service {
    /// The name of the graph.
    pub(crate) graph: Arc<str>,
    pub(crate) database: Arc<Database>,
    pub(crate) body_bytes: usize,
    pub(crate) load_from: Arc<Allowed>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) started: jiff::Timestamp,
}

impl Service {
    /// Returns a service over an open database.
    #[must_use]
    pub fn new(database: Arc<Database>, limits: Limits) -> Self {
        Self::of_graph(database, limits, &DEFAULT_GRAPH.into(), None)
    }

    /// Returns a service over the open database of one graph. `shared`: what it shares with other graphs.
    pub(crate) fn of_graph(
        database: Arc<Database>,
        limits: Limits,
        graph: &Arc<str>,
        shared: Option<&Capacity>,
    ) -> Self {
        let admission = match shared {
            None => Admission::new(database.clone(), limits.queries),
            Some(capacity) => Admission::of_graph(database.clone(), limits.queries, capacity, graph),
        };
        let started = database.now();
        let load_from = Arc::new(limits.load_from);
        Self { graph: graph.clone(), database, body_bytes: limits.body_bytes, load_from, admission, started }
    }

    /// Records all requests in an audit log.
    #[must_use]
    pub fn recorded_in(self, audit: Audit) -> Self {
        self.admission.record_in(audit);
        self
    }

    /// Returns what sessions of Bolt and of WebSocket need. Their clients prove who they are as those of HTTP.
    #[must_use]
    pub fn sessions(&self, authentication: impl Into<Authentication>) -> Sessions {
        Sessions::new(Only(self.session_service(authentication)))
    }

    pub(crate) fn session_service(&self, authentication: impl Into<Authentication>) -> Arc<session::Service> {
        Arc::new(session::Service {
            graph: self.graph.clone(),
            database: self.database.clone(),
            admission: self.admission.clone(),
            message_bytes: self.body_bytes,
            authentication: authentication.into(),
            bolt_sessions: AtomicU64::default(),
        })
    }

    /// Returns the routes behind the guard, which lets only known callers pass, with gzip.
    pub fn guarded_router(self, authentication: impl Into<Authentication>) -> Router {
        let router = with_gzip(self.clone().router());
        guard::with_guard(router, self, authentication.into())
    }

    /// Returns the routes of the service and installs the recorder of metrics.
    pub fn router(self) -> Router {
        let open_cypher = || get(opencypher::get).post(opencypher::post);
        let status = || get(queries::status).post(queries::status);
        let one = || get(queries::one).delete(queries::cancel);
        let statistics = || get(statistics::get).post(statistics::manage).delete(statistics::delete);
        metrics::install();
        Router::new()
            .route("/openCypher", open_cypher())
            .route("/opencypher", open_cypher())
            .route("/gremlin", get(gremlin::get).post(gremlin::post))
            // Some clients end their paths so.
            .route("/openCypher/", open_cypher())
            .route("/opencypher/", open_cypher())
            .route("/gremlin/", get(gremlin::get).post(gremlin::post))
            .route("/openCypher/status", status())
            .route("/opencypher/status", status())
            .route("/gremlin/status", status())
            .route("/openCypher/status/{id}", one())
            .route("/opencypher/status/{id}", one())
            .route("/gremlin/status/{id}", one())
            .route("/openCypher/explain", get(explain::open_cypher).post(explain::open_cypher))
            .route("/opencypher/explain", get(explain::open_cypher).post(explain::open_cypher))
            .route("/gremlin/explain", get(explain::traversal).post(explain::traversal))
            .route("/gremlin/profile", get(explain::profile).post(explain::profile))
            .route("/propertygraph/stream", get(stream::get))
            .route("/propertygraph/stream/", get(stream::get))
            .route("/pg/stream", get(stream::get))
            .route("/pg/stream/", get(stream::get))
            .route("/gremlin/stream", get(stream::get))
            .route("/gremlin/stream/", get(stream::get))
            .route("/openCypher/{feature}", any(not_yet))
            .route("/opencypher/{feature}", any(not_yet))
            .route("/gremlin/{feature}", any(not_yet))
            .route("/propertygraph/statistics", statistics())
            .route("/pg/statistics", statistics())
            .route("/propertygraph/statistics/summary", get(statistics::summarize))
            .route("/pg/statistics/summary", get(statistics::summarize))
            .route("/summary", get(statistics::summarize_bare))
            .route("/system", post(system::post))
            .route("/system/", post(system::post))
            .route("/queries", post(analytics::run).get(analytics::list))
            .route("/queries/{id}", get(analytics::one).delete(analytics::cancel))
            .route("/graphs/{id}", get(analytics::graph))
            .route("/status", get(status::get))
            .route("/metrics", get(metrics::get))
            .route("/fleet/status", get(status::fleet))
            .route(
                "/loader",
                post(loader::submit).get(loader::list_or_status).delete(loader::cancel_by_query),
            )
            .route("/loader/{id}", get(loader::status).delete(loader::cancel))
            .route_layer(middleware::from_fn(traced::follow))
            .route_layer(middleware::from_fn_with_state(self.clone(), metrics::count))
            .fallback(absent::unknown_path)
            .method_not_allowed_fallback(absent::wrong_method)
            .with_state(self)
    }
}

async fn not_yet(request: Request) -> Failure {
    Failure::new(ErrorCode::UnsupportedOperation, format!("not supported yet: {}", request.uri().path()))
}

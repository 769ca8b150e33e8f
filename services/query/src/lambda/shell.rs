//! Answers the requests of a function. It connects to each graph once and catches up with the newest version before each request.

use super::{Configuration, Responses};
use crate::admission::Capacity;
use crate::http::{Failure, Service, TimeLeft, Whole, take_graph};
use axum::Router;
use axum::body::Body;
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderValue, Method, Request, Response};
use axum::response::IntoResponse;
use futures_util::stream::{self, StreamExt as _};
use http_body_util::{BodyStream, StreamBody};
use lambda_http::RequestExt;
use lambda_http::request::RequestContext;
use lambda_http::tower::ServiceExt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Database, Principal, Roles};
use tidegraph_fleet::Worker;
use tidegraph_fleet::access::Access;
use tidegraph_platform::{Objects, traces};
use tidegraph_types::ErrorCode;
use tokio::sync::Mutex;

/// Time that is reserved for sending the answer.
const FOR_THE_ANSWER: Duration = Duration::from_millis(250);

/// A function.
pub struct Shell {
    configuration: Configuration,
    /// What several graphs share.
    capacity: Option<Capacity>,
    graphs: Vec<OfGraph>,
}

/// A graph of the function.
struct OfGraph {
    name: Arc<str>,
    access: Access,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// `None` until the fleet was reached.
    connected: Option<Connected>,
    /// Whether the graph was there, and was dropped.
    is_dropped: bool,
}

/// The parts that are built once for a graph.
#[derive(Clone)]
struct Connected {
    database: Arc<Database>,
    worker: Arc<Worker>,
    router: Router,
    loads_router: Arc<Mutex<Option<Router>>>,
}

impl std::fmt::Debug for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell").field("configuration", &self.configuration).finish_non_exhaustive()
    }
}

impl Shell {
    /// Returns a function that is not connected yet.
    #[must_use]
    pub fn new(configuration: Configuration) -> Self {
        let of_graph = |access: &Access| OfGraph {
            name: access.graph.as_str().into(),
            access: access.clone(),
            held: Mutex::default(),
        };
        let graphs: Vec<OfGraph> = configuration.graphs.iter().map(of_graph).collect();
        let capacity = (graphs.len() > 1).then(|| Capacity::new(&configuration.limits.queries));
        Self { configuration, capacity, graphs }
    }

    /// Connects to the first graph, unless this happened before. Others are connected to by their first request.
    ///
    /// # Errors
    ///
    /// The reason why the fleet cannot be reached.
    pub async fn connect(&self) -> anyhow::Result<()> {
        match self.graphs.first() {
            Some(first) => self.connected(first).await.map(drop).map_err(Into::into),
            None => Ok(()),
        }
    }

    /// Returns the connection to a graph, and whether this call made it.
    async fn connected(&self, graph: &OfGraph) -> Result<(Connected, bool), NotConnected> {
        let mut held = graph.held.lock().await;
        if let Some(gone) = held.connected.take_if(|connected| connected.worker.is_dropped()) {
            tracing::warn!(graph = &*graph.name, "the graph was dropped");
            held.is_dropped = true;
            gone.close();
        }
        if let Some(connected) = &held.connected {
            return Ok((connected.clone(), false));
        }
        let (configuration, access) = (self.configuration.clone(), graph.access.clone());
        let (name, capacity) = (graph.name.clone(), self.capacity.clone());
        let made = tokio::task::spawn_blocking(move || {
            Connected::make(&configuration, &access, &name, capacity.as_ref())
        });
        match made.await.map_err(anyhow::Error::from).flatten() {
            Ok(made) => {
                *held = Held { connected: Some(made.clone()), is_dropped: false };
                Ok((made, true))
            }
            Err(reason) if held.is_dropped && is_not_found(&reason) => {
                Err(NotConnected::Dropped(graph.name.clone()))
            }
            Err(reason) => Err(NotConnected::Unreachable(reason)),
        }
    }

    /// Answers a request. Failures become answers too.
    pub async fn answer(&self, request: lambda_http::Request) -> Response<Body> {
        let response = match self.routed(request).await {
            Ok(response) => response,
            Err(failure) => failure.into_response(),
        };
        // Lambda freezes the process after the answer.
        if self.configuration.responses == Responses::Stream {
            return response.map(and_spans);
        }
        send_spans().await;
        response
    }

    async fn routed(&self, request: lambda_http::Request) -> Result<Response<Body>, Failure> {
        let mut request = to_router(request, &self.configuration.base_path)?;
        // A path with an unknown graph goes to the first one, whose router says that there is no such path.
        let is_ours = |name: &str| self.graphs.iter().any(|graph| &*graph.name == name);
        let named = take_graph(&mut request, is_ours)?;
        let is_asked = |graph: &&OfGraph| named.as_ref().is_none_or(|name| graph.name == *name);
        let graph = self
            .graphs
            .iter()
            .find(is_asked)
            .ok_or_else(|| Failure::new(ErrorCode::Internal, "the function has no graph".to_owned()))?;
        let is_of_loads = request.uri().path().starts_with("/loader");
        if is_of_loads && (request.method() != Method::GET || self.configuration.bucket.is_none()) {
            let message = "a function loads no files, because Lambda freezes it between requests: put them into the drop folder, or ask a long-lived worker";
            return Err(Failure::new(ErrorCode::UnsupportedOperation, message));
        }
        if request.uri().path().trim_end_matches('/') == "/system" {
            let message = "a function does not reset the graph, because it cannot keep a token for other processes: ask a long-lived worker";
            return Err(Failure::new(ErrorCode::UnsupportedOperation, message));
        }
        let (mut connected, new) = self.connected(graph).await?;
        if !new {
            // Those that ended after the last byte of the answer before.
            tokio::spawn(send_spans());
            let worker = connected.worker.clone();
            // Without a sequencer the function reads at the last known version, as every worker does.
            let looked = tokio::task::spawn_blocking(move || worker.refresh_version()).await;
            looked.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
            // While the process was suspended, the graph may have been dropped, and another one made under its name.
            if connected.worker.is_dropped() {
                (connected, _) = self.connected(graph).await?;
            }
        }
        if let Some(left) = request.extensions().get::<EndsAt>().map(|end| end.left(&connected.database)) {
            request.extensions_mut().insert(TimeLeft(left));
        }
        if self.configuration.responses == Responses::Buffer {
            request.extensions_mut().insert(Whole);
        }
        let router = if is_of_loads { self.loads_router(graph, &connected).await? } else { connected.router };
        router.oneshot(request).await.map_err(|never| match never {})
    }

    /// Returns the router that answers about loads. It is built on first use, because listing jobs would cost the start
    /// a request.
    async fn loads_router(&self, graph: &OfGraph, connected: &Connected) -> Result<Router, Failure> {
        let mut held = connected.loads_router.lock().await;
        if let Some(router) = &*held {
            return Ok(router.clone());
        }
        let (configuration, worker) = (self.configuration.clone(), connected.worker.clone());
        let (name, capacity) = (graph.name.clone(), self.capacity.clone());
        let made = tokio::task::spawn_blocking(move || -> Result<Router, tidegraph_engine::Error> {
            let bucket = configuration.bucket.as_deref().unwrap_or_default();
            let objects = Objects::s3(bucket, None, [])?;
            let objects = match worker.graph().folder() {
                Some(folder) => objects.below(&folder)?,
                None => objects,
            };
            let objects = Arc::new(objects);
            let database = Database::connect(configuration.options, worker, objects)?;
            Ok(Service::of_graph(database, configuration.limits, &name, capacity.as_ref()).router())
        });
        let router = made.await.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))??;
        *held = Some(router.clone());
        Ok(router)
    }
}

impl Connected {
    fn make(
        configuration: &Configuration,
        access: &Access,
        name: &Arc<str>,
        capacity: Option<&Capacity>,
    ) -> anyhow::Result<Self> {
        let worker = access.connect()?;
        // This store stays empty, because only loads need files. A real store would cost the start a client.
        let objects = Arc::new(Objects::memory()?);
        let database = Database::connect(configuration.options.clone(), worker.clone(), objects)?;
        let service = Service::of_graph(database.clone(), configuration.limits.clone(), name, capacity);
        Ok(Self { database, worker, router: service.router(), loads_router: Arc::default() })
    }

    fn close(self) {
        // Both wait for threads.
        tokio::task::spawn_blocking(move || {
            self.database.close();
            self.worker.stop();
        });
    }
}

/// Why a graph cannot be asked.
#[derive(Debug, thiserror::Error)]
enum NotConnected {
    #[error("there is no graph {0:?}")]
    Dropped(Arc<str>),
    #[error("the fleet cannot be reached: {0:#}")]
    Unreachable(anyhow::Error),
}

impl From<NotConnected> for Failure {
    fn from(why: NotConnected) -> Self {
        let code = match why {
            NotConnected::Dropped(_) => ErrorCode::NotFound,
            NotConnected::Unreachable(_) => ErrorCode::Unavailable,
        };
        Self::new(code, why.to_string())
    }
}

/// Whether an error says that there is no such graph.
fn is_not_found(reason: &anyhow::Error) -> bool {
    use tidegraph_fleet::Error;
    let error = reason.downcast_ref::<Error>();
    matches!(error, Some(Error::Map(tidegraph_cluster::Error::NotFound { .. })))
}

/// The time when Lambda ends the request, in milliseconds since 1970.
#[derive(Clone, Copy)]
struct EndsAt(u64);

impl EndsAt {
    fn left(self, database: &Database) -> Duration {
        let now = u64::try_from(database.now().as_millisecond()).unwrap_or_default();
        Duration::from_millis(self.0.saturating_sub(now)).saturating_sub(FOR_THE_ANSWER)
    }
}

/// Sends the spans that have ended, if this process records traces.
async fn send_spans() {
    if traces::is_on()
        && let Err(error) = tokio::task::spawn_blocking(traces::flush).await
    {
        tracing::warn!(%error, "spans were not sent");
    }
}

/// Returns a body that ends once the spans are sent which ended with its last byte. Spans of a thread that is not done by
/// then are sent with the next request.
fn and_spans(body: Body) -> Body {
    if !traces::is_on() {
        return body;
    }
    let sent = stream::once(send_spans()).filter_map(|()| ready(None));
    Body::new(StreamBody::new(BodyStream::new(body).chain(sent)))
}

/// Converts a request for the router: removes the stage and the base path, and adds deadline and principal.
fn to_router(request: lambda_http::Request, base_path: &str) -> Result<Request<Body>, Failure> {
    let bad = |reason: String| Failure::new(ErrorCode::BadRequest, reason);
    let ends = request.lambda_context_ref().map(|context| EndsAt(context.deadline));
    let principal = principal(&request);
    let raw = request.raw_http_path();
    let whole = if raw.is_empty() { request.uri().path() } else { raw };
    let path = match whole.strip_prefix(base_path) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ => whole,
    };
    let path = if path.is_empty() { "/" } else { path };
    let path = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let path: PathAndQuery = path.parse().map_err(|error| bad(format!("{path:?} is not a path: {error}")))?;
    // Lambda's own span of this call, where X-Ray is on; API Gateway's is above it.
    let lambda_span = request.lambda_context_ref().and_then(|context| context.xray_trace_id.clone());
    let (mut parts, body) = request.into_parts();
    parts.uri = Uri::from(path);
    if let Some(Ok(span)) = lambda_span.map(HeaderValue::try_from) {
        parts.headers.insert("x-amzn-trace-id", span);
    }
    let mut request = Request::from_parts(parts, Body::from(body.to_vec()));
    request.extensions_mut().insert(principal);
    if let Some(ends) = ends {
        request.extensions_mut().insert(ends);
    }
    Ok(request)
}

/// The caller as API Gateway authenticated it. A method without IAM authorization has anonymous callers.
fn principal(request: &lambda_http::Request) -> Principal {
    let Some(RequestContext::ApiGatewayV1(context)) = request.request_context_ref() else {
        return Principal::Anonymous;
    };
    match context.identity.user_arn.as_deref() {
        None | Some("") => Principal::Anonymous,
        // IAM policies of methods and paths decided what it may ask.
        Some(arn) => Principal::Iam(arn.into(), Roles::all()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use lambda_http::aws_lambda_events::apigw::ApiGatewayProxyRequestContext;
    use lambda_http::http;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tidegraph_platform::traces::Propagation;

    fn asked(raw: &str, uri: &str, base_path: &str) -> String {
        let request = http::Request::builder().uri(uri).body(lambda_http::Body::Text("x".into())).unwrap();
        let request = request.with_raw_http_path(raw);
        to_router(request, base_path).unwrap().uri().to_string()
    }

    static FLUSHES: AtomicUsize = AtomicUsize::new(0);

    /// Counts how often spans are sent.
    struct Counted;

    impl Propagation for Counted {
        fn context(&self, _: &tracing::Span) -> Option<String> {
            None
        }

        fn adopt(&self, _: &tracing::Span, _: &dyn Fn(&str) -> Option<String>) {}

        fn flush(&self) {
            FLUSHES.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn a_streamed_answer_ends_after_its_spans_are_sent() {
        traces::install(Box::new(Counted));
        let mut body = and_spans(Body::from("rows"));
        let first = body.frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "rows");
        assert_eq!(FLUSHES.load(Ordering::SeqCst), 0, "the last byte leaves before");
        assert!(body.frame().await.is_none());
        assert_eq!(FLUSHES.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn stage_and_base_path_are_removed() {
        assert_eq!(
            asked("/openCypher", "https://h/prod/openCypher?query=RETURN%201", ""),
            "/openCypher?query=RETURN%201"
        );
        assert_eq!(asked("/db/gremlin", "https://h/prod/db/gremlin", "/db"), "/gremlin");
        assert_eq!(asked("/dbx/gremlin", "https://h/dbx/gremlin", "/db"), "/dbx/gremlin");
        assert_eq!(asked("/db", "https://h/prod/db?a=1", "/db"), "/?a=1");
        assert_eq!(asked("", "https://h/status", ""), "/status");
    }

    #[test]
    fn the_principal_is_the_caller_that_iam_authenticated() {
        let of = |arn: Option<&str>| {
            let mut context = ApiGatewayProxyRequestContext::default();
            context.identity.user_arn = arn.map(str::to_owned);
            let request =
                http::Request::builder().uri("https://h/status").body(lambda_http::Body::Empty).unwrap();
            let request = request.with_request_context(RequestContext::ApiGatewayV1(context));
            to_router(request, "").unwrap().extensions().get::<Principal>().cloned()
        };
        let arn = "arn:aws:sts::123456789012:assumed-role/reader/ada";
        assert_eq!(of(Some(arn)), Some(Principal::Iam(arn.into(), Roles::all())));
        assert_eq!([of(None), of(Some(""))], [Some(Principal::Anonymous), Some(Principal::Anonymous)]);
    }
}

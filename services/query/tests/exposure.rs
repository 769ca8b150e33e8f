//! What a web page of another origin can do with a service that has no token.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, header};
use tidegraph_engine::{Database, Options};
use tidegraph_query::http::{Limits, Service};
use tower::ServiceExt;

/// A service over an empty graph in memory.
fn service() -> Router {
    Service::new(Database::open(Options::default()).unwrap(), Limits::default()).router()
}

/// Sends a request and returns the status, the `Allow` header and the body.
async fn ask(router: &Router, request: Request<Body>) -> (u16, String, serde_json::Value) {
    let answer: Response<Body> = router.clone().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let allow = answer.headers().get(header::ALLOW).map_or(String::new(), |v| v.to_str().unwrap().to_owned());
    let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, allow, serde_json::from_slice(&body).unwrap_or_default())
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

/// Counts the vertices of the graph.
async fn vertices(router: &Router) -> serde_json::Value {
    let (status, _, body) =
        ask(router, get("/openCypher?query=MATCH%20(n)%20RETURN%20count(n)%20AS%20n")).await;
    assert_eq!(status, 200, "{body}");
    body["results"][0]["n"].clone()
}

#[tokio::test]
async fn get_never_writes() {
    let router = service();
    let writes = [
        "/openCypher?query=CREATE%20(n)",
        "/opencypher?query=CREATE%20(n)%20RETURN%20n",
        "/openCypher?query=MERGE%20(n:A%20%7Bid:1%7D)%20RETURN%20n",
        "/openCypher?query=CREATE%20INDEX%20FOR%20(n:A)%20ON%20(n.k)",
        "/gremlin?gremlin=g.addV()",
        "/gremlin?gremlin=g.inject(1).addV('A')",
        "/gremlin?gremlin=g.V().drop()",
    ];
    // Each twice: the second one finds its plan in the cache, and is tried on the thread that serves the socket.
    for path in writes.iter().chain(&writes) {
        let (status, allow, body) = ask(&router, get(path)).await;
        assert_eq!((status, allow.as_str()), (405, "POST"), "{path}: {body}");
        assert_eq!(body["code"], "MethodNotAllowedException", "{path}");
        assert!(body["detailedMessage"].as_str().unwrap().contains("POST"), "{body}");
        let head = Request::head(*path).body(Body::empty()).unwrap();
        assert_eq!(ask(&router, head).await.0, 405, "HEAD {path}");
    }
    assert_eq!(vertices(&router).await, 0);
    let posted = Request::post("/openCypher").body(Body::from("query=CREATE%20(n)")).unwrap();
    assert_eq!(ask(&router, posted).await.0, 200);
    assert_eq!(vertices(&router).await, 1);
}

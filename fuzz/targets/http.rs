//! Sends a request to the HTTP service. The first byte chooses the path and the content type, the rest is the body.
#![no_main]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::time::Duration;
use tidegraph_query::admission;
use tidegraph_query::http::{Limits, Service};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

/// Requests after which the graph is made anew: bodies write, and the graph would grow.
const REQUESTS: u32 = 10_000;
const PATHS: [&str; 4] = ["/openCypher", "/gremlin", "/loader", "/openCypher/status"];
const TYPES: [&str; 3] =
    ["application/json", "application/x-www-form-urlencoded", "application/json; charset=utf-8"];
const ANSWER_BYTES: usize = 64 << 20;

struct Running {
    router: Router,
    left: u32,
}

impl Running {
    fn start() -> Self {
        let queries = admission::Limits {
            query_timeout: Duration::from_millis(500),
            memory_total_bytes: 256 << 20,
            ..admission::Limits::default()
        };
        let limits = Limits { body_bytes: 1 << 20, queries, ..Limits::default() };
        Self { router: Service::new(tidegraph_fuzz::database(), limits).router(), left: REQUESTS }
    }
}

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    static SERVICE: RefCell<Running> = RefCell::new(Running::start());
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, body)) = bytes.split_first() else { return };
    let path = PATHS[usize::from(choice % 4)];
    let content_type = TYPES[usize::from(choice / 4 % 3)];
    let router = SERVICE.with_borrow_mut(|service| {
        if service.left == 0 {
            *service = Running::start();
        }
        service.left -= 1;
        service.router.clone()
    });
    let request = Request::post(path)
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, content_type)
        .body(Body::from(body.to_vec()));
    let Ok(request) = request else { return };
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let Ok(answer) = router.oneshot(request).await;
            let status = answer.status();
            let answer = to_bytes(answer.into_body(), ANSWER_BYTES).await;
            let text = answer.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            assert!(status.as_u16() != 500, "a client's mistake is never the service's: {text:?}");
        });
    });
});

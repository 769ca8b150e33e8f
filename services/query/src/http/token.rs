//! The shared token of a service that other machines can reach.

use super::Failure;
use crate::websocket;
use axum::Router;
use axum::extract::Request;
use axum::http::{Version, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use subtle::ConstantTimeEq;
use tidegraph_engine::Principal;
use tidegraph_platform::metric::{self, Protocol};
use tidegraph_types::ErrorCode;

/// Adds a check to a router: only requests with the token pass, as [`Principal::SharedToken`]. The comparison takes the
/// same time whatever part of the token is right.
pub fn with_token(router: Router, token: Option<String>) -> Router {
    let Some(token) = token else { return router };
    let expected: Arc<[u8]> = format!("Bearer {token}").into_bytes().into();
    router.layer(middleware::from_fn(move |request: Request, next: Next| {
        let expected = expected.clone();
        async move { check(&expected, request, next).await }
    }))
}

async fn check(expected: &[u8], mut request: Request, next: Next) -> Response {
    let sent = request.headers().get(header::AUTHORIZATION).map_or(&b""[..], |v| v.as_bytes());
    if bool::from(sent.ct_eq(expected)) {
        request.extensions_mut().insert(Principal::SharedToken);
        return next.run(request).await;
    }
    // Drivers of Gremlin prove themselves after the upgrade, if they did not before.
    if sent.is_empty() && websocket::asks_for_upgrade(&request) {
        request.extensions_mut().insert(websocket::Unproven);
        return next.run(request).await;
    }
    let is_http2 = request.version() == Version::HTTP_2;
    metric::unauthenticated(if is_http2 { Protocol::Http2 } else { Protocol::Http1 });
    Failure::new(ErrorCode::AccessDenied, "the request lacks the service's token").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Extension;
    use axum::body::{Body, to_bytes};
    use axum::routing::get;
    use tower::ServiceExt;

    #[tokio::test]
    async fn only_the_whole_token_passes_and_names_the_principal() {
        let who = |principal: Option<Extension<Principal>>| async move {
            principal.map_or_else(String::new, |Extension(principal)| principal.to_string())
        };
        let router = with_token(Router::new().route("/", get(who)), Some("abc".to_owned()));
        let ask = |value: &'static str| {
            let request =
                Request::builder().header(header::AUTHORIZATION, value).body(Body::empty()).unwrap();
            let router = router.clone();
            async move {
                let answer = router.oneshot(request).await.unwrap();
                (answer.status().as_u16(), to_bytes(answer.into_body(), 1_000).await.unwrap())
            }
        };
        let (status, body) = ask("Bearer abc").await;
        assert_eq!((status, body.as_ref()), (200, b"shared-token".as_slice()));
        for wrong in ["", "Bearer ab", "Bearer abd", "Bearer abcd"] {
            assert_eq!(ask(wrong).await.0, 403, "{wrong:?}");
        }
    }
}

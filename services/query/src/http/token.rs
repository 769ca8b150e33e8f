//! A shared token, for a service that other machines can reach.

use super::Failure;
use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tidegraph_types::ErrorCode;

/// Lets only requests pass that send the token.
pub fn with_token(router: Router, token: Option<String>) -> Router {
    let Some(token) = token else { return router };
    let expected: Arc<[u8]> = format!("Bearer {token}").into_bytes().into();
    router.layer(middleware::from_fn(move |request: Request, next: Next| {
        let expected = expected.clone();
        async move { check(&expected, request, next).await }
    }))
}

async fn check(expected: &[u8], request: Request, next: Next) -> Response {
    let sent = request.headers().get(header::AUTHORIZATION).map_or(&b""[..], |v| v.as_bytes());
    if is_same(sent, expected) {
        return next.run(request).await;
    }
    Failure::new(ErrorCode::AccessDenied, "the request lacks the service's token").into_response()
}

/// Compares in a time that does not tell how much of the token was right.
fn is_same(sent: &[u8], expected: &[u8]) -> bool {
    let difference = sent.iter().zip(expected).fold(0, |sum, (a, b)| sum | (a ^ b));
    sent.len() == expected.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn only_the_whole_token_passes() {
        assert!(is_same(b"Bearer abc", b"Bearer abc"));
        for wrong in [&b""[..], b"Bearer ab", b"Bearer abd", b"Bearer abcd"] {
            assert!(!is_same(wrong, b"Bearer abc"));
        }
    }
}

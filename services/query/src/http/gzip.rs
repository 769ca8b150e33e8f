//! Gzip, both ways: bodies of requests that say so are read, and long answers are compressed for clients that accept it.
//!
//! The limit of a body counts its bytes after decompression, because the layer is outside of what reads it.

use axum::Router;
use axum::body::HttpBody;
use axum::http::Response;
use tower_http::CompressionLevel;
use tower_http::compression::{CompressionLayer, Predicate};
use tower_http::decompression::RequestDecompressionLayer;

/// Shorter answers are sent as they are: within a data centre, compressing them takes longer than it saves.
const LEAST_COMPRESSED_BYTES: u64 = 16 << 10;

/// Adds gzip to a router. A function behind API Gateway does without: API Gateway takes text.
pub fn with_gzip(router: Router) -> Router {
    // Other encodings pass, and are refused where the body is read, in the words of all errors.
    let requests = RequestDecompressionLayer::new().pass_through_unaccepted(true);
    let answers = CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(Long);
    router.layer(requests).layer(answers)
}

/// Whether an answer is long enough to be compressed.
#[derive(Clone, Copy)]
struct Long;

impl Predicate for Long {
    fn should_compress<B: HttpBody>(&self, response: &Response<B>) -> bool {
        response.body().size_hint().exact().is_none_or(|bytes| bytes >= LEAST_COMPRESSED_BYTES)
    }
}

//! Idempotency keys: a client that did not get the answer to a write sends it again under the same key, and the write
//! happens once.
//!
//! The rows of an answer are not kept. The answer to a repeat has none, and a header that says why.

use super::Failure;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use tidegraph_types::ErrorCode;

/// Name of the header with the key in requests.
pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Name of the header in the answer to a repeat.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

const LONGEST_KEY: usize = 255;

/// Returns the key under which a request may be repeated.
///
/// # Errors
///
/// `InvalidParameter` if there are two headers, or if the key is not 1 to 255 visible ASCII characters.
pub fn key(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let mut sent = headers.get_all(KEY).iter();
    let Some(first) = sent.next() else { return Ok(None) };
    if sent.next().is_some() {
        let message = "the request has two headers Idempotency-Key: send one";
        return Err(Failure::new(ErrorCode::InvalidParameter, message));
    }
    let text = String::from_utf8_lossy(first.as_bytes());
    if !(1..=LONGEST_KEY).contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!(
            "header Idempotency-Key must have 1 to {LONGEST_KEY} visible ASCII characters, not {} bytes: {text:?}",
            first.len()
        );
        return Err(Failure::new(ErrorCode::InvalidParameter, message));
    }
    Ok(Some(text.into_owned()))
}

/// Marks the answer to a repeat.
#[must_use]
pub fn with_repeated(mut response: Response, repeated: bool) -> Response {
    if repeated {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_visible_ascii() {
        let read = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(KEY, HeaderValue::from_bytes(value).unwrap());
            }
            key(&headers)
        };
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&[b"order-17!~"]).unwrap().as_deref(), Some("order-17!~"));
        assert_eq!(read(&[&[b'k'; LONGEST_KEY]]).unwrap().map(|key| key.len()), Some(LONGEST_KEY));
        for wrong in [&b""[..], b"a b", b"a\tb", b"\xc3\xa4", b"\xff", &[b'k'; LONGEST_KEY + 1]] {
            let refused = read(&[wrong]).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::InvalidParameter, "{wrong:?}");
        }
        assert!(read(&[b"a", b"a"]).is_err());
    }
}

//! Bookmarks: an answer says which version it is of, and a request may ask to see at least a version.
//!
//! The version of a write is the one that it made. A client that carries the highest version that it has met reads what it wrote, and
//! what others told it of, whichever worker of a fleet it asks.

use super::Failure;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use tidegraph_types::{ErrorCode, Version};

/// The header, in requests and in answers.
pub const VERSION: HeaderName = HeaderName::from_static("tidegraph-version");

/// The version that a request wants to see at least.
pub fn at_least(headers: &HeaderMap) -> Result<Option<Version>, Failure> {
    let mut sent = headers.get_all(VERSION).iter();
    let Some(first) = sent.next() else { return Ok(None) };
    if sent.next().is_some() {
        return Err(Failure::new(ErrorCode::InvalidParameter, "there are two headers Tidegraph-Version"));
    }
    let text = String::from_utf8_lossy(first.as_bytes());
    // Digits and nothing else: a sign or a space would be one who means something else.
    let number = if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
    let number = number.ok_or_else(|| {
        let message = format!("header Tidegraph-Version must be a whole number, not {text:?}");
        Failure::new(ErrorCode::InvalidParameter, message)
    })?;
    Ok(Some(Version(number)))
}

/// Says which version an answer is of.
#[must_use]
pub fn with_version(mut response: Response, version: Version) -> Response {
    response.headers_mut().insert(VERSION, HeaderValue::from(version.0));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_digits() {
        let read = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(VERSION, HeaderValue::from_bytes(value).unwrap());
            }
            at_least(&headers)
        };
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&[b"0"]).unwrap(), Some(Version(0)));
        assert_eq!(read(&[b"18446744073709551615"]).unwrap(), Some(Version(u64::MAX)));
        for wrong in [&b""[..], b"-1", b"+1", b"1.5", b"abc", b"18446744073709551616", b"1 2", b"\xff"] {
            let refused = read(&[wrong]).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::InvalidParameter, "{wrong:?}");
        }
        assert!(read(&[b"1", b"2"]).is_err());
    }
}

//! Bookmarks: an answer names its version, and a request may name the oldest version that it may read.
//!
//! The version of a write is the one that it created. A client that sends the highest version that it has received
//! reads its own writes, and those that other clients told it about, from every worker of a fleet.

use super::Failure;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use tidegraph_types::{ErrorCode, Version};

/// Name of the header in requests and answers.
pub const VERSION: HeaderName = HeaderName::from_static("tidegraph-version");

/// Returns the oldest version that a request may read.
///
/// # Errors
///
/// `InvalidParameter` if there are two headers or the value is not a version.
pub fn at_least(headers: &HeaderMap) -> Result<Option<Version>, Failure> {
    let mut sent = headers.get_all(VERSION).iter();
    let Some(first) = sent.next() else { return Ok(None) };
    if sent.next().is_some() {
        return Err(Failure::new(
            ErrorCode::InvalidParameter,
            "the request has two headers Tidegraph-Version: send one",
        ));
    }
    let text = String::from_utf8_lossy(first.as_bytes());
    // Only digits: a client that sends a sign or a space means something else.
    let number = if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
    let number = number.ok_or_else(|| {
        let message = format!("header Tidegraph-Version must be a non-negative integer, not {text:?}");
        Failure::new(ErrorCode::InvalidParameter, message)
    })?;
    Ok(Some(Version(number)))
}

/// Adds the version to an answer.
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

//! What requests say besides their text: bookmarks, a time limit, and whether they only read.

use super::codes::Failure;
use std::time::Duration;
use tidegraph_types::{ErrorCode, Map, Value, Version};

/// What RUN and BEGIN say besides.
pub(super) struct Extra {
    pub at_least: Option<Version>,
    pub timeout: Option<Duration>,
    pub read_only: bool,
}

impl Extra {
    pub fn read(extra: &Map) -> Result<Self, Failure> {
        if let Some(Value::String(user)) = extra.get(&Value::from("imp_user")) {
            let message =
                format!("the service cannot act as the user {user:?}: impersonation is not supported");
            return Err(Failure::new(ErrorCode::AccessDenied, message));
        }
        let invalid = |name: &str, expected: &str, found: &Value| {
            let message = format!("{name} must be {expected}, not {}", found.for_message());
            Failure::new(ErrorCode::InvalidParameter, message)
        };
        let read_only = match extra.get(&Value::from("mode")) {
            None | Some(Value::Null) => false,
            Some(Value::String(mode)) if mode == "r" => true,
            Some(Value::String(mode)) if mode == "w" => false,
            Some(other) => return Err(invalid("mode", "\"r\" or \"w\"", other)),
        };
        let timeout = match extra.get(&Value::from("tx_timeout")) {
            // 0 is no limit of the client's own.
            None | Some(Value::Null | Value::Long(0)) => None,
            Some(Value::Long(ms @ 1..)) => Some(Duration::from_millis(ms.cast_unsigned())),
            Some(other) => return Err(invalid("tx_timeout", "a number of milliseconds", other)),
        };
        let mut at_least = None;
        for bookmark in extra.get(&Value::from("bookmarks")).and_then(Value::as_slice).unwrap_or_default() {
            let digits = bookmark.as_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let version = digits.and_then(|digits| digits.parse().ok());
            let version = version.ok_or_else(|| Failure::no_bookmark(bookmark))?;
            at_least = at_least.max(Some(Version(version)));
        }
        Ok(Self { at_least, timeout, read_only })
    }
}

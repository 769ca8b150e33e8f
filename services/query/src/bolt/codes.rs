//! Errors under the names that Neo4j's drivers know. By its name a driver decides whether it tries a transaction again:
//! it does so for those that begin with `Neo.TransientError`.
//!
//! Sources: <https://neo4j.com/docs/status-codes/current/errors/all-errors/> for the names,
//! <https://neo4j.com/docs/status-codes/current/errors/gql-errors/> for the states, which Bolt has since 5.7.

use crate::authentication::Refusal;
use tidegraph_bolt::{Reply, Version};
use tidegraph_types::{ErrorCode, Map, Value};

/// A failure of a request.
#[derive(Debug)]
pub(super) struct Failure {
    code: &'static str,
    state: State,
    message: String,
}

/// A state of GQL: its number and its description.
type State = (&'static str, &'static str);

const UNEXPECTED: State = ("50N42", "error: general processing exception - unexpected error");
const SYNTAX: State = ("42001", "error: syntax error or access rule violation - invalid syntax");
const DENIED: State = ("42NFF", "error: syntax error or access rule violation - permission/access denied");
const DATA: State = ("22000", "error: data exception");
const CONNECTION: State = ("08000", "error: connection exception");
const ROLLED_BACK: State = ("40000", "error: transaction rollback");
const TRANSACTION_STATE: State = ("25000", "error: invalid transaction state");
const DEPENDENT: State = ("G1000", "error: dependent object error");
const MEMORY: State =
    ("51N73", "error: system configuration or operation exception - transaction memory limit reached");
const POOL: State =
    ("51N72", "error: system configuration or operation exception - memory pool out of memory");

/// Since this version failures have a state of GQL.
const GQL_FAILURES: Version = Version::new(5, 7);

impl Failure {
    /// A message that the protocol does not allow here.
    pub(super) fn of_protocol(message: impl Into<String>) -> Self {
        Self { code: "Neo.ClientError.Request.Invalid", state: CONNECTION, message: message.into() }
    }

    /// Bytes that are no message.
    pub(super) fn of_format(message: impl Into<String>) -> Self {
        Self { code: "Neo.ClientError.Request.InvalidFormat", state: CONNECTION, message: message.into() }
    }

    /// A client that may not ask.
    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self { code: "Neo.ClientError.Security.Unauthorized", state: DENIED, message: message.into() }
    }

    /// A client that did not prove who it is, or may not try again yet.
    pub(super) fn refused(refusal: &Refusal) -> Self {
        let code = match refusal.code() {
            ErrorCode::TooManyRequests => "Neo.ClientError.Security.AuthenticationRateLimit",
            _ => "Neo.ClientError.Security.Unauthorized",
        };
        Self { code, state: DENIED, message: refusal.to_string() }
    }

    /// A database that does not exist.
    pub(super) fn no_database(name: &str) -> Self {
        let message =
            format!("there is no database {name:?}: the graph is the database \"neo4j\", the default");
        Self { code: "Neo.ClientError.Database.DatabaseNotFound", state: DATA, message }
    }

    /// A bookmark that is not one.
    pub(super) fn no_bookmark(found: &Value) -> Self {
        let message = format!("a bookmark is a version of the graph, in digits, not {}", found.for_message());
        Self { code: "Neo.ClientError.Transaction.InvalidBookmark", state: DATA, message }
    }

    /// A query that its client ended with RESET.
    pub(super) fn terminated() -> Self {
        let message = "the client reset the connection while the query ran".to_owned();
        Self { code: "Neo.TransientError.Transaction.Terminated", state: ROLLED_BACK, message }
    }

    /// An error of the engine, or of the admission of a query.
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let (name, state) = named(code);
        Self { code: name, state, message: message.into() }
    }

    /// Returns the reply that tells it.
    pub(super) fn reply(self, version: Version) -> Reply {
        let Self { code, state: (state, description), message } = self;
        if version < GQL_FAILURES {
            return Reply::Failure(vec![("code", code.into()), ("message", message.as_str().into())]);
        }
        let record: [(&str, &str); 4] = [
            ("OPERATION", ""),
            ("OPERATION_CODE", "0"),
            ("CURRENT_SCHEMA", "/"),
            ("_classification", classification(code)),
        ];
        let record: Map = record.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Reply::Failure(vec![
            ("neo4j_code", code.into()),
            ("message", message.as_str().into()),
            ("gql_status", state.into()),
            ("description", description.into()),
            ("diagnostic_record", Value::map(record)),
        ])
    }
}

fn classification(code: &str) -> &'static str {
    match code.split('.').nth(1) {
        Some("ClientError") => "CLIENT_ERROR",
        Some("TransientError") => "TRANSIENT_ERROR",
        _ => "DATABASE_ERROR",
    }
}

fn named(code: ErrorCode) -> (&'static str, State) {
    match code {
        ErrorCode::MalformedQuery => ("Neo.ClientError.Statement.SyntaxError", SYNTAX),
        ErrorCode::UnsupportedOperation => ("Neo.ClientError.Statement.UnsupportedOperationError", SYNTAX),
        ErrorCode::InvalidParameter => ("Neo.ClientError.Statement.ArgumentError", DATA),
        ErrorCode::MissingParameter => ("Neo.ClientError.Statement.ParameterMissing", DATA),
        ErrorCode::InvalidArgument => ("Neo.ClientError.Statement.TypeError", DATA),
        ErrorCode::BadRequest
        | ErrorCode::RequestTooLarge
        | ErrorCode::IdempotencyKeyReused
        | ErrorCode::PreconditionsFailed
        | ErrorCode::ExpiredStream
        | ErrorCode::LoadQueueFull => ("Neo.ClientError.Request.Invalid", CONNECTION),
        ErrorCode::ConstraintViolation | ErrorCode::UniqueViolation => {
            ("Neo.ClientError.Schema.ConstraintValidationFailed", DEPENDENT)
        }
        ErrorCode::AccessDenied => ("Neo.ClientError.Security.Forbidden", DENIED),
        ErrorCode::Unauthorized => ("Neo.ClientError.Security.Unauthorized", DENIED),
        ErrorCode::NotFound | ErrorCode::BulkLoadIdNotFound | ErrorCode::StreamRecordsNotFound => {
            ("Neo.ClientError.Statement.EntityNotFound", DATA)
        }
        ErrorCode::MethodNotAllowed => ("Neo.ClientError.Statement.AccessMode", TRANSACTION_STATE),
        ErrorCode::ConcurrentModification => ("Neo.TransientError.Transaction.Outdated", ROLLED_BACK),
        ErrorCode::TimeLimitExceeded => ("Neo.ClientError.Transaction.TransactionTimedOut", ROLLED_BACK),
        // Not transient: the same query needs as much again.
        ErrorCode::QueryLimitExceeded => ("Neo.ClientError.General.TransactionOutOfMemoryError", MEMORY),
        ErrorCode::MemoryLimitExceeded => ("Neo.TransientError.General.MemoryPoolOutOfMemoryError", POOL),
        // Drivers do not try this one again, although its name says that it is transient.
        ErrorCode::Cancelled => ("Neo.TransientError.Transaction.Terminated", ROLLED_BACK),
        ErrorCode::TooManyRequests => ("Neo.TransientError.Request.NoThreadsAvailable", UNEXPECTED),
        ErrorCode::Unavailable => ("Neo.TransientError.General.DatabaseUnavailable", UNEXPECTED),
        // Not transient: a second try could write a second time.
        ErrorCode::CommitOutcomeUnknown => {
            ("Neo.DatabaseError.Transaction.TransactionCommitFailed", UNEXPECTED)
        }
        ErrorCode::Corrupt | ErrorCode::Internal => ("Neo.DatabaseError.General.UnknownError", UNEXPECTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::Kind;

    #[test]
    fn drivers_repeat_what_may_succeed_and_nothing_else() {
        for &code in ErrorCode::ALL {
            let (name, _) = named(code);
            let repeats = name.starts_with("Neo.TransientError") && !name.ends_with("Terminated");
            let may_succeed = match code.kind() {
                Kind::Conflict | Kind::Unavailable => true,
                Kind::Throttled => !matches!(code, ErrorCode::QueryLimitExceeded | ErrorCode::LoadQueueFull),
                _ => false,
            };
            assert_eq!(repeats, may_succeed, "{code}: {name}");
        }
    }

    #[test]
    fn failures_have_a_state_since_bolt_5_7() {
        let keys = |version| match Failure::unauthorized("no").reply(version) {
            Reply::Failure(entries) => entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(keys(Version::new(5, 6)), ["code", "message"]);
        let gql = ["neo4j_code", "message", "gql_status", "description", "diagnostic_record"];
        assert_eq!(keys(Version::new(5, 7)), gql);
    }
}

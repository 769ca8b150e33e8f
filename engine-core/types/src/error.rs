//! Coarse error kinds and the stable codes that clients see.
//!
//! `contracts/errors.json` holds the same table; `tests/error_table.rs` compares the two.

use std::fmt;

/// What a caller can do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// The request is wrong; sending it again will not help.
    Invalid,
    /// Something that the request names does not exist.
    NotFound,
    /// Another transaction conflicts; try again.
    Conflict,
    /// A limit was reached; send fewer or smaller requests.
    Throttled,
    /// The service is stopping, is behind, or cannot write; try again later.
    Unavailable,
    /// It is not known whether the request changed something: look before it is sent again.
    Unknown,
    /// The request took longer than allowed.
    Timeout,
    /// Stored bytes are damaged.
    Corrupt,
    /// A defect of Tidegraph.
    Internal,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident => $text:literal, $kind:ident, $status:literal;)*) => {
        /// Stable code of an error as a client sees it: Neptune's name where Neptune has one.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum ErrorCode { $($(#[$doc])* $name,)* }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            /// Returns the text of `code` in an error body.
            #[must_use]
            pub fn as_str(self) -> &'static str { match self { $(Self::$name => $text,)* } }
            /// Returns what a caller can do about the error.
            #[must_use]
            pub fn kind(self) -> Kind { match self { $(Self::$name => Kind::$kind,)* } }
            /// Returns the HTTP status of the answer.
            #[must_use]
            pub fn http_status(self) -> u16 { match self { $(Self::$name => $status,)* } }
        }
    };
}

codes! {
    /// The query does not parse, or names something that cannot exist.
    MalformedQuery => "MalformedQueryException", Invalid, 400;
    /// The query uses a part of the language that is not implemented (LANG-1).
    UnsupportedOperation => "UnsupportedOperationException", Invalid, 400;
    /// A parameter of the request is missing or wrong.
    InvalidParameter => "InvalidParameterException", Invalid, 400;
    /// The request as a whole is wrong.
    BadRequest => "BadRequestException", Invalid, 400;
    /// The request lacks a required parameter.
    MissingParameter => "MissingParameterException", Invalid, 400;
    /// A value is not of a type that the operation accepts.
    InvalidArgument => "InvalidArgumentException", Invalid, 400;
    /// The write would break a rule of the graph (a second vertex of one id, a vertex deleted with edges).
    ConstraintViolation => "ConstraintViolationException", Invalid, 400;
    /// Two vertices would have one value under a uniqueness constraint.
    UniqueViolation => "UniqueConstraintViolationException", Invalid, 400;
    /// Something that the request builds on no longer holds, such as a token that was used or has expired.
    PreconditionsFailed => "PreconditionsFailedException", Invalid, 400;
    /// The service knows users, and the request names none or has a wrong password.
    Unauthorized => "UnauthorizedException", Invalid, 401;
    /// The request lacks the service's token or a valid signature, its principal lacks a role, it names a host or an
    /// origin that is not allowed, or it asks for a load from a place that the service may not read.
    AccessDenied => "AccessDeniedException", Invalid, 403;
    /// The path or the load does not exist.
    NotFound => "NotFoundException", NotFound, 404;
    /// The path does not accept the HTTP method.
    MethodNotAllowed => "MethodNotAllowedException", Invalid, 405;
    /// The change stream has no such change yet.
    StreamRecordsNotFound => "StreamRecordsNotFoundException", NotFound, 404;
    /// The change stream does not have all changes since the asked one.
    ExpiredStream => "ExpiredStreamException", Invalid, 400;
    /// No load has the id.
    BulkLoadIdNotFound => "BulkLoadIdNotFoundException", NotFound, 404;
    /// The request body is larger than the limit.
    RequestTooLarge => "RequestTooLargeException", Invalid, 413;
    /// Another transaction changed what this one read.
    ConcurrentModification => "ConcurrentModificationException", Conflict, 409;
    /// The request's idempotency key belongs to another request.
    IdempotencyKeyReused => "IdempotencyKeyReusedException", Invalid, 422;
    /// The query ran longer than its limit.
    TimeLimitExceeded => "TimeLimitExceededException", Timeout, 408;
    /// The query needed more memory or rows than its limit.
    QueryLimitExceeded => "QueryLimitExceededException", Throttled, 400;
    /// All queries together needed more memory than their limit.
    MemoryLimitExceeded => "MemoryLimitExceededException", Throttled, 503;
    /// The query was cancelled.
    Cancelled => "CancelledByUserException", Invalid, 499;
    /// Too many requests at once.
    TooManyRequests => "TooManyRequestsException", Throttled, 429;
    /// The queue of loads is full.
    LoadQueueFull => "MaxConcurrentLoadLimitBreachedException", Throttled, 400;
    /// Writes are stopped (the disk is full or failing), or the service is stopping.
    Unavailable => "ServiceUnavailableException", Unavailable, 503;
    /// It is not known whether a write was committed. The status is one that SDKs do not retry.
    CommitOutcomeUnknown => "CommitOutcomeUnknownException", Unknown, 520;
    /// Stored bytes are damaged.
    Corrupt => "CorruptDataException", Corrupt, 500;
    /// A defect of Tidegraph.
    Internal => "InternalFailureException", Internal, 500;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

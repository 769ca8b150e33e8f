//! Coarse error kinds and the stable codes that clients see.
//!
//! The table of codes is `contracts/errors.json`; a test here fails when the two part.

use std::fmt;

/// What a caller can do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// The request is wrong; sending it again will not help.
    Invalid,
    /// What it names does not exist.
    NotFound,
    /// Another transaction was in the way; try again.
    Conflict,
    /// A limit was reached; slow down or ask for less.
    Throttled,
    /// Not now; the service is stopping, behind, or cannot write.
    Unavailable,
    /// It took longer than allowed.
    Timeout,
    /// Stored bytes are damaged.
    Corrupt,
    /// A defect of ours.
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
            /// The text in the error body's `code`.
            #[must_use]
            pub fn as_str(self) -> &'static str { match self { $(Self::$name => $text,)* } }
            /// What a caller can do about it.
            #[must_use]
            pub fn kind(self) -> Kind { match self { $(Self::$name => Kind::$kind,)* } }
            /// HTTP status of the answer.
            #[must_use]
            pub fn http_status(self) -> u16 { match self { $(Self::$name => $status,)* } }
        }
    };
}

codes! {
    /// Text that does not parse, or names what cannot be.
    MalformedQuery => "MalformedQueryException", Invalid, 400;
    /// A part of a language that is not there yet.
    UnsupportedOperation => "UnsupportedOperationException", Invalid, 400;
    /// A parameter of the request is missing or wrong.
    InvalidParameter => "InvalidParameterException", Invalid, 400;
    /// The request as a whole is wrong.
    BadRequest => "BadRequestException", Invalid, 400;
    /// The request lacks a required parameter.
    MissingParameter => "MissingParameterException", Invalid, 400;
    /// A value is of a type that the operation does not take.
    InvalidArgument => "InvalidArgumentException", Invalid, 400;
    /// The write would break a rule of the graph (a second vertex of one id, a vertex deleted with edges).
    ConstraintViolation => "ConstraintViolationException", Invalid, 400;
    /// Two vertices would have one value where a constraint says that it is unique.
    UniqueViolation => "UniqueConstraintViolationException", Invalid, 400;
    /// The request lacks the service's token.
    AccessDenied => "AccessDeniedException", Invalid, 403;
    /// No such path or load.
    NotFound => "NotFoundException", NotFound, 404;
    /// The HTTP method is not one that the path takes.
    MethodNotAllowed => "MethodNotAllowedException", Invalid, 405;
    /// The load id is not known.
    BulkLoadIdNotFound => "BulkLoadIdNotFoundException", NotFound, 404;
    /// The request body is larger than the limit.
    RequestTooLarge => "RequestTooLargeException", Invalid, 413;
    /// Another transaction changed what this one read.
    ConcurrentModification => "ConcurrentModificationException", Conflict, 409;
    /// The query ran longer than its limit.
    TimeLimitExceeded => "TimeLimitExceededException", Timeout, 408;
    /// The query needed more memory or rows than its limit.
    QueryLimitExceeded => "QueryLimitExceededException", Throttled, 400;
    /// The query was cancelled.
    Cancelled => "CancelledByUserException", Invalid, 499;
    /// Too many requests at once.
    TooManyRequests => "TooManyRequestsException", Throttled, 429;
    /// The queue of loads is full.
    LoadQueueFull => "MaxConcurrentLoadLimitBreachedException", Throttled, 400;
    /// Writes are stopped (full or failing disk) or the service is going down.
    Unavailable => "ServiceUnavailableException", Unavailable, 503;
    /// Stored bytes are damaged.
    Corrupt => "CorruptDataException", Corrupt, 500;
    /// A defect of ours.
    Internal => "InternalFailureException", Internal, 500;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

//! Errors of encoding and decoding.

use tidegraph_types::ErrorCode;

/// An error of encoding or decoding.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A message has a kind that this version does not know.
    #[error("{message} is of a kind that this version does not know; a newer version may have written it")]
    UnknownKind {
        /// Name of the message.
        message: &'static str,
    },
    /// A required field is absent.
    #[error("{message} lacks its field {field}")]
    Missing {
        /// Name of the message.
        message: &'static str,
        /// Name of the field.
        field: &'static str,
    },
    /// A number is outside the range of its field.
    #[error("{field} {value} is out of range")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// The number.
        value: i128,
    },
    /// A message has fields that no value has.
    #[error("{message} is not valid: {reason}")]
    Invalid {
        /// Name of the message.
        message: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A value has a type that no property can have.
    #[error("a value of type {type_name} cannot be stored")]
    NotStorable {
        /// Name of the type.
        type_name: &'static str,
    },
    /// Bytes are not a message of the expected type.
    #[error("bytes are not a valid message: {0}")]
    Malformed(#[from] prost::DecodeError),
    /// The source ends inside a frame.
    #[error("frame at byte {offset} is cut short: {found} of {expected} bytes are there")]
    Truncated {
        /// Where the frame begins.
        offset: u64,
        /// Number of bytes of the frame that are there.
        found: u64,
        /// Number of bytes that the frame should have; 8 if its header is incomplete.
        expected: u64,
    },
    /// The payload of a frame does not match its checksum.
    #[error("frame at byte {offset} has checksum {found:08x} instead of {expected:08x}")]
    BadChecksum {
        /// Where the frame begins.
        offset: u64,
        /// The checksum in the header.
        expected: u32,
        /// The checksum of the payload.
        found: u32,
    },
    /// A frame is longer than the limit.
    #[error("frame at byte {offset} has {length} bytes, more than the limit of {max}")]
    TooLong {
        /// Where the frame begins; 0 when writing.
        offset: u64,
        /// Length of the payload in bytes.
        length: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// A frame has no payload. Zeros in a file would read as empty frames, so these are not allowed.
    #[error("frame at byte {offset} is empty")]
    EmptyFrame {
        /// Where the frame begins; 0 when writing.
        offset: u64,
    },
    /// A file has another format, or an unknown version of it.
    #[error("not a {expected}: {found}")]
    WrongFormat {
        /// The expected format.
        expected: &'static str,
        /// The format that was found instead.
        found: String,
    },
    /// Columns of a message that belong together differ in length.
    #[error("the column {field} of {message} does not fit the others")]
    Misaligned {
        /// Name of the message.
        message: &'static str,
        /// Name of the column.
        field: &'static str,
    },
    /// A count in the footer of a file differs from what was read.
    #[error("{what}: {found} were read, the footer says {expected}")]
    CountMismatch {
        /// The items that were counted.
        what: &'static str,
        /// The number in the footer.
        expected: u64,
        /// The number read.
        found: u64,
    },
    /// The source or target failed.
    #[error("reading or writing at byte {offset} failed: {source}")]
    Io {
        /// Offset in bytes.
        offset: u64,
        /// The cause.
        source: std::io::Error,
    },
}

impl Error {
    /// Returns the stable code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotStorable { .. } => ErrorCode::InvalidArgument,
            Self::Io { .. } => ErrorCode::Unavailable,
            _ => ErrorCode::Corrupt,
        }
    }
}

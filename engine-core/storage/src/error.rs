//! Errors of checkpoints. Reads and writes of the store report [`tidegraph_apl::Error`].

use tidegraph_types::{ErrorCode, Formats};

/// An error or a sentence that says why an object is damaged.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a checkpoint could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The version cannot be read, or a page that it needs is lost.
    #[error(transparent)]
    Apl(#[from] tidegraph_apl::Error),
    /// The object store failed.
    #[error("object {object}: {source}")]
    Object {
        /// Name of the object.
        object: String,
        /// The error of the object store.
        source: Box<tidegraph_platform::ObjectError>,
    },
    /// The content of an object could not be encoded.
    #[error("cannot encode object {object}: {source}")]
    Encode {
        /// Name of the object.
        object: String,
        /// The error of the encoder.
        source: Box<tidegraph_wire::Error>,
    },
    /// The upload of an object failed.
    #[error("cannot upload object {object}: {source}")]
    Upload {
        /// Name of the object.
        object: String,
        /// The error of the upload.
        source: std::io::Error,
    },
    /// The bytes of an object are not what was written.
    #[error("checkpoint object {object} is damaged at byte {offset}: {reason}")]
    Damaged {
        /// Name of the object.
        object: String,
        /// Offset of the damage, in bytes.
        offset: u64,
        /// What is wrong with the bytes.
        #[source]
        reason: Cause,
    },
    /// The object states a version of the format that this release does not read.
    #[error(
        "checkpoint object {object} has format {found}, this release reads {known}: {}",
        advice(.found, .known)
    )]
    UnknownFormat {
        /// Name of the object.
        object: String,
        /// The version that it states.
        found: u32,
        /// The versions that this release reads.
        known: Formats,
    },
}

impl Error {
    /// Returns whether the object itself is at fault, so that reading it again cannot succeed.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::UnknownFormat { .. })
    }

    /// Returns the code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Apl(error) => error.code(),
            Self::Object { source, .. } => source.code(),
            Self::Encode { .. } => ErrorCode::Internal,
            Self::Upload { .. } => ErrorCode::Unavailable,
            Self::Damaged { .. } | Self::UnknownFormat { .. } => ErrorCode::Corrupt,
        }
    }
}

/// Returns what a person does about an object of another format.
fn advice(found: &u32, known: &Formats) -> &'static str {
    tidegraph_types::UnknownFormat { found: *found, known: *known }.advice()
}

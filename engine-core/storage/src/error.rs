//! What can go wrong in storage: only checkpoints can; what reading can say is in [`tidegraph_apl::Error`].

use crate::checkpoint::Format;
use crate::checkpoint::format::listed;
use tidegraph_types::ErrorCode;

/// The error, or the words, that say why something is damaged.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a checkpoint could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The version cannot be read (any more).
    #[error(transparent)]
    Apl(#[from] tidegraph_apl::Error),
    /// The object store failed.
    #[error("object {object}: {source}")]
    Object {
        /// Name of the object.
        object: String,
        /// What the object store said.
        source: Box<tidegraph_platform::ObjectError>,
    },
    /// The content of an object could not be put into bytes.
    #[error("cannot encode object {object}: {source}")]
    Encode {
        /// Name of the object.
        object: String,
        /// What cannot be encoded.
        source: Box<tidegraph_wire::Error>,
    },
    /// The upload of an object broke off.
    #[error("cannot upload object {object}: {source}")]
    Upload {
        /// Name of the object.
        object: String,
        /// Why.
        source: std::io::Error,
    },
    /// An object's bytes are not what was written.
    #[error("checkpoint object {object} is damaged at byte {offset}: {reason}")]
    Damaged {
        /// Name of the object.
        object: String,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        #[source]
        reason: Cause,
    },
    /// The object states a version of the format that this release does not read.
    #[error("checkpoint object {object} has format {found}, this release reads {}", listed(.known))]
    UnknownFormat {
        /// Name of the object.
        object: String,
        /// The version that it states.
        found: u32,
        /// The versions that this release reads.
        known: &'static [Format],
    },
}

impl Error {
    /// Whether the object itself is at fault, so that reading it again cannot succeed.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::UnknownFormat { .. })
    }

    /// The code that a client sees.
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

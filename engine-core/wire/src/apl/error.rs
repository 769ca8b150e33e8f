//! Errors of the APL: type ↔ message.

use crate::proto::apl_error::Kind;
use crate::{Error, proto};
use tidegraph_apl::Error as AplError;
use tidegraph_types::{Epoch, PartitionId, Version};

pub(super) fn encode(error: &AplError) -> proto::AplError {
    let kind = match error {
        AplError::Behind { applied, asked } => {
            Kind::Behind(proto::BehindError { applied: applied.0, asked: asked.0 })
        }
        AplError::TooOld { oldest, asked } => {
            Kind::TooOld(proto::TooOldError { oldest: oldest.0, asked: asked.0 })
        }
        // A node never answers that it does not know a request that it has decoded.
        AplError::Unavailable(reason) | AplError::NotServed(reason) => Kind::Unavailable(reason.clone()),
        AplError::Corrupt(reason) => Kind::Corrupt(reason.clone()),
        AplError::NotHere { partition, epoch } => {
            Kind::NotHere(proto::NotHereError { partition: u32::from(partition.0), epoch: epoch.0 })
        }
        AplError::WrongEpoch { held, asked } => {
            Kind::WrongEpoch(proto::WrongEpochError { held: held.0, asked: asked.0 })
        }
        AplError::Cancelled => Kind::Cancelled(proto::CancelledError {}),
        AplError::Overdue => Kind::Overdue(proto::OverdueError {}),
        AplError::TooLarge { bytes, limit } => {
            Kind::TooLarge(proto::TooLargeError { bytes: *bytes, limit: *limit })
        }
    };
    proto::AplError { kind: Some(kind) }
}

pub(super) fn decode(message: proto::AplError) -> Result<AplError, Error> {
    Ok(match message.kind.ok_or(Error::UnknownKind { message: "AplError" })? {
        Kind::Behind(m) => AplError::Behind { applied: Version(m.applied), asked: Version(m.asked) },
        Kind::TooOld(m) => AplError::TooOld { oldest: Version(m.oldest), asked: Version(m.asked) },
        Kind::Unavailable(reason) => AplError::Unavailable(reason),
        Kind::Corrupt(reason) => AplError::Corrupt(reason),
        Kind::NotHere(m) => {
            let partition = u16::try_from(m.partition)
                .map_err(|_| Error::OutOfRange { field: "partition", value: i128::from(m.partition) })?;
            AplError::NotHere { partition: PartitionId(partition), epoch: Epoch(m.epoch) }
        }
        Kind::WrongEpoch(m) => AplError::WrongEpoch { held: Epoch(m.held), asked: Epoch(m.asked) },
        Kind::Cancelled(_) => AplError::Cancelled,
        Kind::Overdue(_) => AplError::Overdue,
        Kind::TooLarge(m) => AplError::TooLarge { bytes: m.bytes, limit: m.limit },
    })
}

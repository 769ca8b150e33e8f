//! Records and their bytes. The byte table is `docs/formats/log.md`.

use tidegraph_types::{Changes, Epoch, Mutation, RequestId, ShardId, Sid, Str, Token, Version};
use tidegraph_wire::proto::{self, log_body::Kind};
use tidegraph_wire::{Error, Message, change, mutation};

/// Bytes of a payload before its body: shard, epoch, version, durable end.
pub(crate) const PREFIX_BYTES: usize = 2 + 8 + 8 + 8;

/// One entry of the log.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The shard it belongs to.
    pub shard: ShardId,
    /// Epoch of the sequencer that wrote it.
    pub epoch: Epoch,
    /// Its version. The next record has the next version (LOG-1).
    pub version: Version,
    /// Its content.
    pub body: Body,
}

/// The content of a record.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    /// A committed transaction.
    Commit {
        /// The changes, in order.
        mutations: Vec<Mutation>,
        /// The lowest SID that was not handed out when the record was written.
        next_sid: Sid,
        /// Id of the request, by which it is known when it is sent again (TXN-4).
        request: Option<RequestId>,
        /// What the transaction changed, for the change stream; `None` if the graph had none.
        changes: Option<Changes>,
    },
    /// Tokens assigned to names.
    Tokens {
        /// New entries of the dictionary.
        assigned: Vec<(Token, Str)>,
    },
    /// A bulk load that becomes visible.
    Load {
        /// Id of the load.
        load_id: String,
        /// Paths of its segments in the object store.
        segments: Vec<String>,
        /// The lowest SID that was not handed out when the record was written.
        next_sid: Sid,
    },
    /// A sequencer took over with the epoch of this record.
    EpochStart,
    /// Reserves SIDs for other processes.
    Reserve {
        /// The lowest SID that is not reserved.
        next_sid: Sid,
    },
}

impl Body {
    /// The lowest SID that was not handed out when the record was written; `None` if the record does not have it.
    #[must_use]
    pub fn next_sid(&self) -> Option<Sid> {
        match self {
            Self::Commit { next_sid, .. } | Self::Load { next_sid, .. } | Self::Reserve { next_sid } => {
                Some(*next_sid)
            }
            Self::Tokens { .. } | Self::EpochStart => None,
        }
    }
}

/// A message that is not a record. Only logs of several shards have these.
#[cfg(any(feature = "kafka", feature = "testing", test))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    /// From here on, no message of a lower epoch counts.
    Fence,
    /// Says up to which version all shards have all records.
    Mark,
}

/// The fixed bytes before the body. Recovery needs only these, and not the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prefix {
    pub shard: ShardId,
    pub epoch: Epoch,
    pub version: Version,
    /// Number of bytes of the file that were known to be durable when the record was written (LOG-3). In one shard of
    /// several: the newest version that was known to be in all shards.
    pub durable_bytes: u64,
}

impl Prefix {
    /// Parses the prefix of a payload; `None` if the payload is too short.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let u64_at = |at: usize| payload.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        Some(Self {
            shard: ShardId(payload.get(..2)?.try_into().ok().map(u16::from_le_bytes)?),
            epoch: Epoch(u64_at(2)?),
            version: Version(u64_at(10)?),
            durable_bytes: u64_at(18)?,
        })
    }
}

/// Appends the payload of a record to `out`.
pub(crate) fn encode(record: &Record, durable_bytes: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    encode_part(record, &[], durable_bytes, out)
}

/// Appends the payload of a part of a record. `places` are the indexes of its mutations in the whole record.
pub(crate) fn encode_part(
    record: &Record,
    places: &[u32],
    durable: u64,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let kind = match &record.body {
        Body::Commit { mutations, next_sid, request, changes } => Kind::Commit(proto::CommitBody {
            mutations: mutation::encode_all(mutations)?,
            next_sid: next_sid.0,
            request: request.map_or_else(Vec::new, |request| request.0.to_be_bytes().to_vec()),
            places: places.to_vec(),
            changes: changes.as_ref().map(change::encode).transpose()?,
        }),
        Body::Tokens { assigned } => Kind::Tokens(proto::TokensBody {
            assigned: assigned
                .iter()
                .map(|(token, name)| proto::TokenEntry { token: token.0, name: name.to_string() })
                .collect(),
        }),
        Body::Load { load_id, segments, next_sid } => Kind::Load(proto::LoadBody {
            load_id: load_id.clone(),
            segments: segments.clone(),
            next_sid: next_sid.0,
        }),
        Body::EpochStart => Kind::EpochStart(proto::EpochStartBody {}),
        Body::Reserve { next_sid } => Kind::Reserve(proto::ReserveBody { next_sid: next_sid.0 }),
    };
    let Record { shard, epoch, version, .. } = *record;
    encode_kind(Prefix { shard, epoch, version, durable_bytes: durable }, kind, out)
}

/// Appends the payload of a signal.
#[cfg(any(feature = "kafka", test))]
pub(crate) fn encode_signal(signal: Signal, prefix: Prefix, out: &mut Vec<u8>) -> Result<(), Error> {
    let kind = match signal {
        Signal::Fence => Kind::Fence(proto::FenceBody {}),
        Signal::Mark => Kind::Mark(proto::MarkBody {}),
    };
    encode_kind(prefix, kind, out)
}

fn encode_kind(prefix: Prefix, kind: Kind, out: &mut Vec<u8>) -> Result<(), Error> {
    out.extend_from_slice(&prefix.shard.0.to_le_bytes());
    out.extend_from_slice(&prefix.epoch.0.to_le_bytes());
    out.extend_from_slice(&prefix.version.0.to_le_bytes());
    out.extend_from_slice(&prefix.durable_bytes.to_le_bytes());
    let body = proto::LogBody { kind: Some(kind) };
    out.reserve(body.encoded_len());
    body.encode(out).map_err(|error| Error::TooLong {
        offset: 0,
        length: error.required_capacity() as u64,
        max: error.remaining() as u64,
    })
}

/// Decodes the body after a prefix.
pub(crate) fn decode_body(bytes: &[u8]) -> Result<Body, Error> {
    Ok(decode_part(bytes)?.0)
}

/// Decodes the body of a part, and the indexes of its mutations in the whole record.
pub(crate) fn decode_part(bytes: &[u8]) -> Result<(Body, Vec<u32>), Error> {
    let mut places = Vec::new();
    let body = match decode_kind(bytes)? {
        Kind::Commit(m) => {
            places = m.places;
            Body::Commit {
                mutations: mutation::decode_all(m.mutations)?,
                next_sid: Sid(m.next_sid),
                request: decode_request(&m.request)?,
                changes: m.changes.map(change::decode).transpose()?,
            }
        }
        Kind::Tokens(m) => Body::Tokens {
            assigned: m.assigned.into_iter().map(|e| (Token(e.token), Str::from(e.name))).collect(),
        },
        Kind::Load(m) => Body::Load { load_id: m.load_id, segments: m.segments, next_sid: Sid(m.next_sid) },
        Kind::EpochStart(_) => Body::EpochStart,
        Kind::Reserve(m) => Body::Reserve { next_sid: Sid(m.next_sid) },
        // Signals have no version and are never in the place of a record.
        Kind::Fence(_) | Kind::Mark(_) => return Err(Error::UnknownKind { message: "LogBody" }),
    };
    Ok((body, places))
}

/// Decodes a signal.
#[cfg(any(feature = "kafka", test))]
pub(crate) fn decode_signal(bytes: &[u8]) -> Result<Signal, Error> {
    match decode_kind(bytes)? {
        Kind::Fence(_) => Ok(Signal::Fence),
        Kind::Mark(_) => Ok(Signal::Mark),
        _ => Err(Error::UnknownKind { message: "LogBody" }),
    }
}

fn decode_kind(bytes: &[u8]) -> Result<Kind, Error> {
    proto::LogBody::decode(bytes)?.kind.ok_or(Error::UnknownKind { message: "LogBody" })
}

fn decode_request(bytes: &[u8]) -> Result<Option<RequestId>, Error> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let bytes = bytes
        .try_into()
        .map_err(|_| Error::OutOfRange { field: "length of a request id", value: bytes.len() as i128 })?;
    Ok(Some(RequestId(u128::from_be_bytes(bytes))))
}

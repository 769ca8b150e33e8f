//! What a server does with a request: finds the service, calls it, makes a message of what it says.
//!
//! A frontier is worked through in pieces, between which a request looks whether anybody still waits for it.

use crate::Error;
use crate::services::{CommitOutcome, Committed, LoadRequest, LoadStep, Node, RequestId, Services};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_apl::{At, Error as AplError};
use tidegraph_platform::Clock;
use tidegraph_types::{CommitRequest, Key, MadeVertex, PartitionId, Str, Token, Version};
use tidegraph_wire::Message;
use tidegraph_wire::apl::{Allowance, AnyAnswer, AnyRequest};
use tidegraph_wire::proto::{self, call, reply};

/// Rows of a frontier between two looks at whether anybody still waits.
const PIECE: usize = 8192;
/// Most rows of one answer; a caller who wants more gets a cursor.
const MOST_ROWS: u32 = 1 << 18;

/// When a request is to be given up.
pub(super) struct Stop<'c> {
    pub clock: &'c dyn Clock,
    /// By that clock; `None`: never.
    pub deadline: Option<Duration>,
    pub cancelled: &'c AtomicBool,
}

impl Stop<'_> {
    fn check(&self) -> Result<(), AplError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(AplError::Cancelled);
        }
        match self.deadline {
            Some(deadline) if self.clock.now() >= deadline => Err(AplError::Overdue),
            _ => Ok(()),
        }
    }

    /// How long it may still take, but no more than this.
    fn remaining(&self, at_most: Duration) -> Duration {
        let left = self.deadline.map(|deadline| deadline.saturating_sub(self.clock.now()));
        left.map_or(at_most, |left| left.min(at_most))
    }
}

/// What a request is about to cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cost {
    /// Some microseconds: less than to hand it to another thread.
    Small,
    /// Work for a processor.
    Large,
    /// It waits for something else than a processor.
    Waits,
}

/// Rows of a frontier that are read in less time than another thread takes to wake.
const SMALL_ROWS: usize = 128;

pub(super) fn cost(call: &proto::Call) -> Cost {
    let Some(call::Kind::Apl(apl)) = &call.kind else {
        return match &call.kind {
            Some(
                call::Kind::Commit(_)
                | call::Kind::Intern(_)
                | call::Kind::Status(_)
                | call::Kind::Tokens(_)
                | call::Kind::Pin(_)
                | call::Kind::WatchLoad(_)
                | call::Kind::EndLoad(_)
                | call::Kind::Outcome(_)
                | call::Kind::CommitLoad(_),
            ) => Cost::Waits,
            // Not behind the commits that wait for it.
            _ => Cost::Small,
        };
    };
    let rows = |part: &proto::PartitionCall| part.request.as_ref().and_then(AnyRequest::rows);
    let Some(rows) = apl.parts.iter().map(rows).sum::<Option<usize>>() else { return Cost::Large };
    if rows <= SMALL_ROWS { Cost::Small } else { Cost::Large }
}

/// The bytes of the reply to the bytes of a call, as a server gives it, for what stands for the network. `None`: a partition is behind,
/// and `gives_up` is not said; then the call can be made again.
pub fn answer_once(
    services: &Services,
    call: &[u8],
    clock: &dyn Clock,
    gives_up: bool,
) -> Result<Option<Vec<u8>>, Error> {
    let call = proto::Call::decode(call).map_err(Error::garbage)?;
    let cancelled = AtomicBool::new(false);
    let stop = Stop { clock, deadline: None, cancelled: &cancelled };
    let reply = answer(services, call, &stop, gives_up.then_some(Duration::ZERO));
    Ok(reply.map(|reply| reply.encode_to_vec()))
}

/// The answer to a request; `None`: a partition is behind, and `wait` is not given.
pub(super) fn answer(
    services: &Services,
    call: proto::Call,
    stop: &Stop<'_>,
    wait: Option<Duration>,
) -> Option<proto::Reply> {
    let kind = match call.kind {
        Some(call::Kind::Apl(apl)) => match &services.node {
            Some(node) => partitions(node.as_ref(), apl, stop, wait)?,
            None => Err(Error::Unknown("this node holds no partitions".into())),
        },
        Some(other) => commits(services, other, stop),
        None => Err(Error::Unknown("a request of a kind that this version does not know".into())),
    };
    let kind = kind.unwrap_or_else(|error| reply::Kind::Failure(error.to_failure()));
    Some(proto::Reply { kind: Some(kind) })
}

fn partitions(
    node: &dyn Node,
    call: proto::PartitionsCall,
    stop: &Stop<'_>,
    wait: Option<Duration>,
) -> Option<Result<reply::Kind, Error>> {
    let mut answers = Vec::with_capacity(call.parts.len());
    let mut last = None;
    for part in call.parts {
        let answer = match part_request(part) {
            Ok((partition, at, request)) => {
                last = Some(partition);
                match asked(node, partition, at, &request, stop, wait) {
                    Err(AplError::Behind { .. }) if wait.is_none() => return None,
                    Err(error) => AnyAnswer::Failed(error),
                    Ok(answer) => answer,
                }
            }
            Err(error) => return Some(Err(error)),
        };
        match answer.encode() {
            Ok(message) => answers.push(message),
            Err(error) => return Some(Err(Error::Unavailable(error.to_string()))),
        }
    }
    let applied = last.map_or(0, |partition| node.applied(partition).0);
    Some(Ok(reply::Kind::Apl(proto::PartitionsReply { answers, applied })))
}

fn part_request(part: proto::PartitionCall) -> Result<(PartitionId, At, AnyRequest), Error> {
    let partition = u16::try_from(part.partition)
        .map_err(|_| Error::garbage(format!("partition {} is out of range", part.partition)))?;
    let request = part.request.ok_or_else(|| Error::garbage("a part has no request"))?;
    let (at, request) = AnyRequest::decode(request).map_err(Error::garbage)?;
    Ok((PartitionId(partition), at, request))
}

/// Asks a partition; if it is behind, waits a while and asks again.
fn asked(
    node: &dyn Node,
    partition: PartitionId,
    at: At,
    request: &AnyRequest,
    stop: &Stop<'_>,
    wait: Option<Duration>,
) -> Result<AnyAnswer, AplError> {
    stop.check()?;
    let apl = node.partition(partition, at.epoch)?;
    let check = || stop.check();
    let allowance = Allowance { max_rows: MOST_ROWS, piece_rows: PIECE, check: &check };
    let behind = match request.call(apl.as_ref(), at, &allowance) {
        Err(error @ AplError::Behind { .. }) => error,
        other => return other,
    };
    let Some(wait) = wait else { return Err(behind) };
    if !node.wait_for(partition, at.version, stop.remaining(wait)) {
        return Err(behind);
    }
    // It may have been given away meanwhile.
    let apl = node.partition(partition, at.epoch)?;
    request.call(apl.as_ref(), at, &allowance)
}

fn commits(services: &Services, kind: call::Kind, stop: &Stop<'_>) -> Result<reply::Kind, Error> {
    stop.check().map_err(|_| Error::Overdue)?;
    if let call::Kind::Status(_) = kind {
        let status = services.status.as_ref();
        let status = status.ok_or_else(|| Error::Unknown("this node tells no status".into()))?;
        return Ok(reply::Kind::Status(proto::StatusReply { json: status.status() }));
    }
    if let call::Kind::Pin(m) = kind {
        let node = services.node.as_ref();
        let node = node.ok_or_else(|| Error::Unknown("this node holds no partitions".into()))?;
        node.pin(request_id(&m.holder)?, (m.version > 0).then_some(Version(m.version)))?;
        return Ok(reply::Kind::Noted(proto::NotedReply {}));
    }
    let commits = services.commits.as_ref();
    let commits = commits.ok_or_else(|| Error::NotSequencer("it never will be".into()))?;
    Ok(match kind {
        call::Kind::Commit(m) => {
            let id = request_id(&m.request_id)?;
            let keys = |keys: Vec<u64>| keys.into_iter().map(Key).collect();
            let request = CommitRequest {
                read_version: Version(m.read_version),
                read_keys: keys(m.read_keys),
                write_keys: keys(m.write_keys),
                mutations: tidegraph_wire::mutation::decode_all(m.mutations).map_err(Error::garbage)?,
                // Whoever commits it is told the id beside it.
                request: None,
            };
            let Committed { version, schema } = commits.commit(id, request)?;
            reply::Kind::Commit(proto::CommitReply { version: version.0, schema: schema.0 })
        }
        call::Kind::Outcome(m) => {
            use proto::outcome_reply::State;
            let (state, version) = match commits.outcome(request_id(&m.request_id)?, Version(m.since))? {
                CommitOutcome::Unknown => (State::Unknown, 0),
                CommitOutcome::Committed(version) => (State::Committed, version.0),
                CommitOutcome::Refused => (State::Refused, 0),
            };
            reply::Kind::Outcome(proto::OutcomeReply { state: state.into(), version })
        }
        call::Kind::Intern(m) => {
            let names: Vec<Str> = m.names.into_iter().map(Str::from).collect();
            let tokens = commits.intern(&names)?.into_iter().map(|token| token.0).collect();
            reply::Kind::Intern(proto::InternReply { tokens })
        }
        call::Kind::Allocate(m) => {
            let sids = commits.allocate_sids(m.count)?;
            reply::Kind::Allocate(proto::AllocateReply { first: sids.start, count: sids.end - sids.start })
        }
        call::Kind::Newest(_) => {
            let newest = commits.newest()?;
            reply::Kind::Newest(proto::NewestReply {
                version: newest.version.0,
                epoch: newest.epoch.0,
                newest_load: newest.load.0,
                schema: newest.schema.0,
            })
        }
        call::Kind::Tokens(m) => {
            let (tokens, names) =
                commits.tokens(Token(m.above))?.into_iter().unzip::<Token, Str, Vec<_>, Vec<_>>();
            reply::Kind::Tokens(proto::TokensReply {
                tokens: tokens.into_iter().map(|token| token.0).collect(),
                names: names.into_iter().map(String::from).collect(),
            })
        }
        call::Kind::WatchLoad(m) => {
            let made = commits.watch_load(request_id(&m.request_id)?, m.above.map(Version))?;
            reply::Kind::Made(proto::MadeReply { upto: made.upto.0, vertices: Some(columns(made.vertices)) })
        }
        call::Kind::EndLoad(m) => {
            commits.end_load(request_id(&m.request_id)?)?;
            reply::Kind::Noted(proto::NotedReply {})
        }
        call::Kind::CommitLoad(m) => {
            let load = LoadRequest {
                load_id: m.load_id,
                segments: m.segments,
                read_version: Version(m.read_version),
                read_keys: m.read_keys.into_iter().map(Key).collect(),
                compared: Version(m.compared),
                first_asked: Version(m.first_asked),
            };
            load_step(commits.commit_load(request_id(&m.request_id)?, load)?)
        }
        call::Kind::SettleLoad(m) => {
            let collision = (m.collision > 0).then_some(Version(m.collision));
            commits.report_load_collision(request_id(&m.request_id)?, collision)?;
            reply::Kind::Noted(proto::NotedReply {})
        }
        call::Kind::Apl(_) | call::Kind::Status(_) | call::Kind::Pin(_) => {
            return Err(Error::Unknown("a request without a service".into()));
        }
    })
}

fn load_step(step: LoadStep) -> reply::Kind {
    use proto::load_reply::Kind;
    let kind = match step {
        LoadStep::Committed(version) => Kind::Version(version.0),
        LoadStep::Rest(rest) => Kind::Rest(columns(rest)),
        LoadStep::Ask => Kind::Ask(true),
    };
    reply::Kind::Load(proto::LoadReply { kind: Some(kind) })
}

fn columns(vertices: Vec<MadeVertex>) -> proto::MadeVertices {
    proto::MadeVertices {
        versions: vertices.iter().map(|made| made.version.0).collect(),
        guis: vertices.iter().map(|made| made.gui.0).collect(),
        ids: vertices.into_iter().map(|made| made.id.into()).collect(),
    }
}

fn request_id(bytes: &[u8]) -> Result<RequestId, Error> {
    let id =
        bytes.try_into().map_err(|_| Error::garbage(format!("a request id of {} bytes", bytes.len())))?;
    Ok(RequestId(id))
}

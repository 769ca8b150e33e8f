//! Answers a request: finds the service, calls it, and encodes its answer.
//!
//! A frontier is processed in pieces, between which the request checks whether it was cancelled. APL requests dispatch
//! themselves: see `tidegraph_wire::apl`.

use crate::services::{CommitOutcome, Committed, Earlier, LoadRequest, LoadStep, Node, Services};
use crate::{Error, call_name, is_commit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_apl::{At, Error as AplError};
use tidegraph_platform::{Clock, traces};
use tidegraph_types::{
    CommitRequest, Footprint, Key, LoadChange, LoadChanges, LoadTurn, MadeSince, MadeVertex, PartitionId,
    RequestId, Str, Token, Version,
};
use tidegraph_wire::Message;
use tidegraph_wire::apl::{Allowance, AnyAnswer, AnyRequest};
use tidegraph_wire::proto::{self, call, reply};
use tracing::Span;

/// Rows of a frontier between two checks for cancellation.
const PIECE: usize = 8192;
/// Maximum number of rows of one answer. A caller that needs more gets a cursor.
const MOST_ROWS: u32 = 1 << 18;

/// The deadline and the cancellation of a request.
pub(super) struct RequestContext<'c> {
    pub clock: &'c dyn Clock,
    /// Deadline by that clock; `None`: none.
    pub deadline: Option<Duration>,
    pub cancelled: &'c AtomicBool,
}

impl RequestContext<'_> {
    fn check(&self) -> Result<(), AplError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(AplError::Cancelled);
        }
        match self.deadline {
            Some(deadline) if self.clock.now() >= deadline => Err(AplError::Overdue),
            _ => Ok(()),
        }
    }

    /// Returns the time that is left, at most `at_most`.
    fn remaining(&self, at_most: Duration) -> Duration {
        let left = self.deadline.map(|deadline| deadline.saturating_sub(self.clock.now()));
        left.map_or(at_most, |left| left.min(at_most))
    }
}

/// Expected cost of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cost {
    /// Some microseconds: less than handing it to another thread.
    Small,
    /// Longer use of a processor.
    Large,
    /// Waits for something other than a processor.
    Waits,
    /// Waits for the log, as long as the log does not answer. Never keeps a reader of a connection waiting.
    Commits,
}

/// Rows that are read in less time than another thread takes to wake.
const SMALL_ROWS: usize = 128;

/// Estimates the cost of a request.
pub(super) fn cost(call: &proto::Call) -> Cost {
    let Some(call::Kind::Apl(apl)) = &call.kind else {
        return match &call.kind {
            Some(kind) if is_commit(kind) => Cost::Commits,
            Some(
                call::Kind::Status(_)
                | call::Kind::Tokens(_)
                | call::Kind::Pin(_)
                | call::Kind::Newest(_)
                | call::Kind::Changes(_),
            ) => Cost::Waits,
            // Must not queue behind the commits that wait for it.
            _ => Cost::Small,
        };
    };
    let rows = |part: &proto::PartitionCall| part.request.as_ref().and_then(AnyRequest::rows);
    let Some(rows) = apl.parts.iter().map(rows).sum::<Option<usize>>() else { return Cost::Large };
    if rows <= SMALL_ROWS { Cost::Small } else { Cost::Large }
}

/// Answers an encoded call as a server does, for a simulated network. Returns the encoded reply, or `None` if a
/// partition is behind and `gives_up` is false: then the call can be made again.
///
/// # Errors
///
/// [`Error::Garbage`] if the bytes are not a call.
pub fn answer_once(
    services: &Services,
    call: &[u8],
    clock: &dyn Clock,
    gives_up: bool,
) -> Result<Option<Vec<u8>>, Error> {
    let call = proto::Call::decode(call).map_err(Error::garbage)?;
    let cancelled = AtomicBool::new(false);
    let context = RequestContext { clock, deadline: None, cancelled: &cancelled };
    let reply = answer(services, call, &context, gives_up.then_some(Duration::ZERO));
    Ok(reply.map(|reply| reply.encode_to_vec()))
}

/// Answers a request. `None`: a partition is behind, and `wait` is not given.
pub(super) fn answer(
    services: &Services,
    call: proto::Call,
    context: &RequestContext<'_>,
    wait: Option<Duration>,
) -> Option<proto::Reply> {
    let _span = span(&call).entered();
    let kind = match call.kind {
        Some(call::Kind::Apl(apl)) => match &services.node {
            Some(node) => partitions(node.as_ref(), apl, context, wait)?,
            None => Err(Error::Unknown("this node holds no partitions".into())),
        },
        Some(other) => commits(services, other, context),
        None => Err(Error::Unknown("the request has a kind that this version does not know".into())),
    };
    let kind = kind.unwrap_or_else(|error| reply::Kind::Failure(error.to_failure()));
    Some(proto::Reply { kind: Some(kind) })
}

/// Returns the span of a call, below that of its sender; none if the sender records none.
fn span(call: &proto::Call) -> Span {
    let (Some(kind), true) = (&call.kind, !call.traceparent.is_empty() && traces::is_on()) else {
        return Span::none();
    };
    let span = tracing::debug_span!(parent: None, "answer", otel.kind = "server", call = call_name(kind));
    traces::adopt(&span, |field| (field == "traceparent").then(|| call.traceparent.clone()));
    span
}

fn partitions(
    node: &dyn Node,
    call: proto::PartitionsCall,
    context: &RequestContext<'_>,
    wait: Option<Duration>,
) -> Option<Result<reply::Kind, Error>> {
    let mut answers = Vec::with_capacity(call.parts.len());
    let mut stores = Vec::with_capacity(call.parts.len());
    let mut last = None;
    for part in call.parts {
        let (answer, store) = match part_request(part) {
            Ok(part) => {
                last = Some(part.partition);
                match asked(node, &part, context, wait) {
                    Err(AplError::Behind { .. }) if wait.is_none() => return None,
                    Err(error) => (AnyAnswer::Failed(error), 0),
                    Ok(answered) => answered,
                }
            }
            Err(error) => return Some(Err(error)),
        };
        stores.push(store);
        match answer.encode() {
            Ok(message) => answers.push(message),
            Err(error) => return Some(Err(Error::Unavailable(error.to_string()))),
        }
    }
    let applied = last.map_or(0, |partition| node.applied(partition).0);
    Some(Ok(reply::Kind::Apl(proto::PartitionsReply { answers, applied, stores })))
}

/// A request to one partition.
struct PartRequest {
    partition: PartitionId,
    at: At,
    request: AnyRequest,
    /// Id of the store that gave the position from which the request continues; 0: it has none.
    store: u64,
}

fn part_request(part: proto::PartitionCall) -> Result<PartRequest, Error> {
    let partition = u16::try_from(part.partition)
        .map_err(|_| Error::garbage(format!("partition {} is out of range", part.partition)))?;
    let request = part.request.ok_or_else(|| Error::garbage("a part has no request"))?;
    let (at, request) = AnyRequest::decode(request).map_err(Error::garbage)?;
    Ok(PartRequest { partition: PartitionId(partition), at, request, store: part.store })
}

/// Asks a partition. If it is behind, waits up to `wait` and asks again. Returns the answer, and the id of the store
/// that gave it.
///
/// Holds APL-2: the node must hold the partition by the map of the caller's epoch, have applied the version, and
/// continue from a position only in the store that gave it.
fn asked(
    node: &dyn Node,
    part: &PartRequest,
    context: &RequestContext<'_>,
    wait: Option<Duration>,
) -> Result<(AnyAnswer, u64), AplError> {
    let (partition, at) = (part.partition, part.at);
    context.check()?;
    let check = || context.check();
    let allowance = Allowance { max_rows: MOST_ROWS, piece_rows: PIECE, check: &check };
    let ask = || {
        let served = node.partition(partition, at.epoch)?;
        if part.store != 0 && part.store != served.store {
            let reason = format!(
                "the replica of partition {partition} was restored during a scan, which cannot continue"
            );
            return Err(AplError::Unavailable(reason));
        }
        Ok((part.request.call(served.apl.as_ref(), at, &allowance)?, served.store))
    };
    let behind = match ask() {
        Err(error @ AplError::Behind { .. }) => error,
        other => return other,
    };
    let Some(wait) = wait else { return Err(behind) };
    if !node.wait_for(partition, at.version, context.remaining(wait)) {
        return Err(behind);
    }
    // The partition may have moved away or been restored meanwhile.
    ask()
}

fn commits(
    services: &Services,
    kind: call::Kind,
    context: &RequestContext<'_>,
) -> Result<reply::Kind, Error> {
    context.check().map_err(|_| Error::Overdue)?;
    if let call::Kind::Status(_) = kind {
        let status = services.status.as_ref();
        let status = status.ok_or_else(|| Error::Unknown("this node offers no status".into()))?;
        return Ok(reply::Kind::Status(proto::StatusReply { json: status.status() }));
    }
    if let call::Kind::Pin(m) = kind {
        let node = services.node.as_ref();
        let node = node.ok_or_else(|| Error::Unknown("this node holds no partitions".into()))?;
        node.pin(request_id(&m.holder)?, (m.version > 0).then_some(Version(m.version)))?;
        return Ok(reply::Kind::Noted(proto::NotedReply {}));
    }
    let commits = services.commits.as_ref();
    let commits = commits.ok_or_else(|| Error::NotSequencer("it is no candidate".into()))?;
    Ok(match kind {
        call::Kind::Commit(m) => {
            let id = request_id(&m.request_id)?;
            let keys = |keys: Vec<u64>| keys.into_iter().map(Key).collect();
            let request = CommitRequest {
                read_version: Version(m.read_version),
                read_keys: keys(m.read_keys),
                write_keys: keys(m.write_keys),
                mutations: tidegraph_wire::mutation::decode_all(m.mutations).map_err(Error::garbage)?,
                // The id is passed beside the request.
                request: None,
                first_asked: m.first_asked.map(Version),
                by_key: m.by_key,
                changes: m.changes.map(tidegraph_wire::change::decode).transpose().map_err(Error::garbage)?,
            };
            let Committed { version, schema, newest_token, earlier } = commits.commit(id, request)?;
            let newest_token = newest_token.map(|token| token.0);
            let earlier = match earlier {
                None => proto::commit_reply::Earlier::None,
                Some(Earlier::Same) => proto::commit_reply::Earlier::Same,
                Some(Earlier::OtherRequest) => proto::commit_reply::Earlier::Other,
            };
            reply::Kind::Commit(proto::CommitReply {
                version: version.0,
                schema: schema.0,
                newest_token,
                earlier: earlier.into(),
            })
        }
        call::Kind::Outcome(m) => {
            use proto::outcome_reply::State;
            let (id, since) = (request_id(&m.request_id)?, Version(m.since));
            let found = if m.by_key { commits.outcome_of_key(id, since) } else { commits.outcome(id, since) };
            let (state, version) = match found? {
                CommitOutcome::Unknown => (State::Unknown, 0),
                CommitOutcome::Committed(version) => (State::Committed, version.0),
                CommitOutcome::Refused => (State::Refused, 0),
                CommitOutcome::OtherRequest(version) => (State::OtherRequest, version.0),
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
        call::Kind::Changes(m) => {
            let request = crate::changes::decode_request(&m)?;
            let answer = commits.changes(&request, &|| context.check().is_err())?;
            reply::Kind::Changes(crate::changes::encode_answer(answer)?)
        }
        call::Kind::Newest(_) => {
            let newest = commits.newest()?;
            reply::Kind::Newest(proto::NewestReply {
                version: newest.version.0,
                epoch: newest.epoch.0,
                newest_load: newest.load.0,
                schema: newest.schema.0,
                newest_token: newest.newest_token.0,
                halted: newest.halted.unwrap_or_default().0,
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
            let id = request_id(&m.request_id)?;
            let made = match m.above {
                Some(above) => commits.watch_load(id, Version(above))?,
                None => MadeSince { upto: commits.begin_load(id, m.beginning)?, vertices: vec![] },
            };
            reply::Kind::Made(proto::MadeReply { upto: made.upto.0, vertices: Some(columns(made.vertices)) })
        }
        call::Kind::LoadChanges(m) => {
            let LoadChanges { since, upto, changes } = commits.load_changes(Version(m.above))?;
            let changes = Some(change_columns(&changes));
            reply::Kind::LoadChanges(proto::LoadChangesReply { since: since.0, upto: upto.0, changes })
        }
        call::Kind::LoadTurn(m) => {
            let turn = match m.limit_us {
                0 => None,
                limit => Some(LoadTurn {
                    footprint: Footprint::from_bytes(&m.footprint).map_err(Error::garbage)?,
                    read_keys: m.read_keys.into_iter().map(Key).collect(),
                    limit: Duration::from_micros(limit),
                }),
            };
            let version = commits.load_turn(request_id(&m.request_id)?, turn)?.unwrap_or_default();
            reply::Kind::LoadTurn(proto::LoadTurnReply { version: version.0 })
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
                changes_compared: m.changes_compared.map(Version),
                beginning: m.beginning,
            };
            load_step(commits.commit_load(request_id(&m.request_id)?, load)?)
        }
        call::Kind::SettleLoad(m) => {
            let collision = (m.collision > 0).then_some(Version(m.collision));
            commits.report_load_collision(request_id(&m.request_id)?, m.question, collision)?;
            reply::Kind::Noted(proto::NotedReply {})
        }
        call::Kind::Apl(_) | call::Kind::Status(_) | call::Kind::Pin(_) => {
            return Err(Error::Unknown("no service answers the request".into()));
        }
    })
}

fn load_step(step: LoadStep) -> reply::Kind {
    use proto::load_reply::Kind;
    let (mut changes, mut question) = (None, 0);
    let kind = match step {
        LoadStep::Committed(version) => Kind::Version(version.0),
        LoadStep::Rest(rest) => {
            (changes, question) = (Some(change_columns(&rest.changes)), rest.question);
            Kind::Rest(columns(rest.vertices))
        }
        LoadStep::Ask => Kind::Ask(true),
    };
    reply::Kind::Load(proto::LoadReply { kind: Some(kind), changes, question })
}

fn change_columns(changes: &[(Version, LoadChange)]) -> proto::LoadChanges {
    use proto::load_changes::Kind;
    let split = |change| match change {
        LoadChange::Deleted(gui) => (Kind::Deleted, gui.0),
        LoadChange::EdgeId(hash) => (Kind::EdgeId, hash.0),
        LoadChange::Any => (Kind::Unspecified, 0),
    };
    proto::LoadChanges {
        versions: changes.iter().map(|(version, _)| version.0).collect(),
        kinds: changes.iter().map(|(_, change)| split(*change).0.into()).collect(),
        hashes: changes.iter().map(|(_, change)| split(*change).1).collect(),
    }
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
    Ok(RequestId(u128::from_le_bytes(id)))
}

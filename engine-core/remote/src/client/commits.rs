//! The client of a node's commit service.

use super::RemoteNode;
use crate::Error;
use crate::services::{
    ChangesAnswer, CommitOutcome, Commits, Committed, Earlier, LastChanges, LoadRequest, LoadStep, Newest,
};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::{
    ChangesRequest, CommitRequest, Epoch, Gui, Key, LoadChange, LoadChanges, LoadTurn, MadeSince, MadeVertex,
    RequestId, Str, Token, Version,
};
use tidegraph_wire::proto::{self, call, reply};

/// The client of the sequencer at a node.
#[derive(Clone, Debug)]
pub struct RemoteCommits {
    node: Arc<RemoteNode>,
    at_most: Duration,
}

impl RemoteCommits {
    /// Makes a client that waits for each answer at most `at_most`.
    #[must_use]
    pub fn new(node: Arc<RemoteNode>, at_most: Duration) -> Self {
        Self { node, at_most }
    }

    fn ask(&self, call: call::Kind) -> Result<reply::Kind, Error> {
        self.node.ask(call, self.at_most)
    }

    fn note(&self, call: call::Kind) -> Result<(), Error> {
        match self.ask(call)? {
            reply::Kind::Noted(_) => Ok(()),
            _ => other_kind(),
        }
    }
}

fn other_kind<T>() -> Result<T, Error> {
    Err(Error::garbage("the answer is of another kind than the request"))
}

/// Returns the error of a commit that was sent. If no usable answer came, the outcome is in doubt.
fn in_doubt(error: Error) -> Error {
    match error {
        Error::Lost { .. } | Error::Overdue | Error::Garbage(_) => Error::InDoubt(error.to_string()),
        other => other,
    }
}

fn changed(columns: proto::LoadChanges) -> Result<Vec<(Version, LoadChange)>, Error> {
    use proto::load_changes::Kind;
    let proto::LoadChanges { versions, kinds, hashes } = columns;
    if versions.len() != kinds.len() || versions.len() != hashes.len() {
        return Err(Error::garbage("columns of changes differ in length"));
    }
    let change = |((version, kind), hash): ((u64, i32), u64)| {
        let change = match Kind::try_from(kind) {
            Ok(Kind::Deleted) => LoadChange::Deleted(Gui(hash)),
            Ok(Kind::EdgeId) => LoadChange::EdgeId(Gui(hash)),
            // A kind of a later release may be anything.
            Ok(Kind::Unspecified) | Err(_) => LoadChange::Any,
        };
        (Version(version), change)
    };
    Ok(versions.into_iter().zip(kinds).zip(hashes).map(change).collect())
}

fn made(columns: proto::MadeVertices) -> Result<Vec<MadeVertex>, Error> {
    let proto::MadeVertices { versions, guis, ids } = columns;
    if versions.len() != guis.len() || versions.len() != ids.len() {
        return Err(Error::garbage("columns of vertices differ in length"));
    }
    let rows = versions.into_iter().zip(guis).zip(ids);
    Ok(rows
        .map(|((version, gui), id)| MadeVertex { version: Version(version), gui: Gui(gui), id: id.into() })
        .collect())
}

impl RemoteCommits {
    fn ask_made(&self, id: RequestId, above: Option<Version>, beginning: u64) -> Result<MadeSince, Error> {
        let request_id = id.0.to_le_bytes().to_vec();
        let above = above.map(|version| version.0);
        match self.ask(call::Kind::WatchLoad(proto::WatchLoadCall { request_id, above, beginning }))? {
            reply::Kind::Made(reply) => Ok(MadeSince {
                upto: Version(reply.upto),
                vertices: made(reply.vertices.unwrap_or_default())?,
            }),
            _ => other_kind(),
        }
    }

    fn ask_outcome(&self, id: RequestId, since: Version, by_key: bool) -> Result<CommitOutcome, Error> {
        use proto::outcome_reply::State;
        let call = proto::OutcomeCall { request_id: id.0.to_le_bytes().to_vec(), since: since.0, by_key };
        match self.ask(call::Kind::Outcome(call))? {
            reply::Kind::Outcome(reply) => Ok(match reply.state() {
                State::Unknown => CommitOutcome::Unknown,
                State::Committed => CommitOutcome::Committed(Version(reply.version)),
                State::Refused => CommitOutcome::Refused,
                State::OtherRequest => CommitOutcome::OtherRequest(Version(reply.version)),
            }),
            _ => other_kind(),
        }
    }
}

impl Commits for RemoteCommits {
    /// Without an answer the outcome of the transaction is unknown: [`Error::InDoubt`].
    fn commit(&self, id: RequestId, request: CommitRequest) -> Result<Committed, Error> {
        let keys = |keys: &[Key]| keys.iter().map(|key| key.0).collect();
        let mutations = tidegraph_wire::mutation::encode_all(&request.mutations);
        let changes = request.changes.as_ref().map(tidegraph_wire::change::encode).transpose();
        let call = call::Kind::Commit(proto::CommitCall {
            request_id: id.0.to_le_bytes().to_vec(),
            read_version: request.read_version.0,
            read_keys: keys(&request.read_keys),
            write_keys: keys(&request.write_keys),
            mutations: mutations.map_err(|error| Error::NotAllowed(error.to_string()))?,
            first_asked: request.first_asked.map(|version| version.0),
            by_key: request.by_key,
            changes: changes.map_err(|error| Error::NotAllowed(error.to_string()))?,
        });
        match self.ask(call).map_err(in_doubt)? {
            reply::Kind::Commit(reply) => Ok(Committed {
                earlier: match reply.earlier() {
                    proto::commit_reply::Earlier::None => None,
                    proto::commit_reply::Earlier::Same => Some(Earlier::Same),
                    proto::commit_reply::Earlier::Other => Some(Earlier::OtherRequest),
                },
                version: Version(reply.version),
                schema: Version(reply.schema),
                newest_token: reply.newest_token.map(Token),
            }),
            _ => other_kind(),
        }
    }

    fn outcome(&self, id: RequestId, since: Version) -> Result<CommitOutcome, Error> {
        self.ask_outcome(id, since, false)
    }

    fn outcome_of_key(&self, id: RequestId, since: Version) -> Result<CommitOutcome, Error> {
        self.ask_outcome(id, since, true)
    }

    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        let call =
            call::Kind::Intern(proto::InternCall { names: names.iter().map(Str::to_string).collect() });
        match self.ask(call)? {
            reply::Kind::Intern(reply) if reply.tokens.len() == names.len() => {
                Ok(reply.tokens.into_iter().map(Token).collect())
            }
            _ => other_kind(),
        }
    }

    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        match self.ask(call::Kind::Allocate(proto::AllocateCall { count }))? {
            reply::Kind::Allocate(reply) => Ok(reply.first..reply.first.saturating_add(reply.count)),
            _ => other_kind(),
        }
    }

    fn changes(&self, request: &ChangesRequest, _stop: &dyn Fn() -> bool) -> Result<ChangesAnswer, Error> {
        match self.ask(call::Kind::Changes(crate::changes::encode_request(request)))? {
            reply::Kind::Changes(reply) => crate::changes::decode_answer(reply),
            _ => other_kind(),
        }
    }

    fn newest(&self) -> Result<Newest, Error> {
        match self.ask(call::Kind::Newest(proto::NewestCall {}))? {
            reply::Kind::Newest(reply) => Ok(Newest {
                version: Version(reply.version),
                epoch: Epoch(reply.epoch),
                load: Version(reply.newest_load),
                schema: Version(reply.schema),
                newest_token: Token(reply.newest_token),
                halted: (reply.halted > 0).then_some(Version(reply.halted)),
            }),
            _ => other_kind(),
        }
    }

    fn tokens(&self, above: Token) -> Result<Vec<(Token, Str)>, Error> {
        match self.ask(call::Kind::Tokens(proto::TokensCall { above: above.0 }))? {
            reply::Kind::Tokens(reply) if reply.tokens.len() == reply.names.len() => {
                Ok(reply.tokens.into_iter().map(Token).zip(reply.names.into_iter().map(Str::from)).collect())
            }
            _ => other_kind(),
        }
    }

    fn begin_load(&self, id: RequestId, beginning: u64) -> Result<Version, Error> {
        Ok(self.ask_made(id, None, beginning)?.upto)
    }

    fn watch_load(&self, id: RequestId, above: Version) -> Result<MadeSince, Error> {
        self.ask_made(id, Some(above), 0)
    }

    fn load_changes(&self, above: Version) -> Result<LoadChanges, Error> {
        match self.ask(call::Kind::LoadChanges(proto::LoadChangesCall { above: above.0 }))? {
            reply::Kind::LoadChanges(reply) => Ok(LoadChanges {
                since: Version(reply.since),
                upto: Version(reply.upto),
                changes: changed(reply.changes.unwrap_or_default())?,
            }),
            _ => other_kind(),
        }
    }

    fn load_turn(&self, id: RequestId, turn: Option<LoadTurn>) -> Result<Option<Version>, Error> {
        let mut call =
            proto::LoadTurnCall { request_id: id.0.to_le_bytes().to_vec(), ..proto::LoadTurnCall::default() };
        if let Some(turn) = turn {
            call.limit_us = u64::try_from(turn.limit.as_micros()).unwrap_or(u64::MAX).max(1);
            call.read_keys = turn.read_keys.into_iter().map(|key| key.0).collect();
            call.footprint = turn.footprint.to_bytes();
        }
        match self.ask(call::Kind::LoadTurn(call))? {
            reply::Kind::LoadTurn(reply) => Ok((reply.version > 0).then_some(Version(reply.version))),
            _ => other_kind(),
        }
    }

    fn end_load(&self, id: RequestId) -> Result<(), Error> {
        self.note(call::Kind::EndLoad(proto::EndLoadCall { request_id: id.0.to_le_bytes().to_vec() }))
    }

    /// Without an answer the outcome of the load is unknown: [`Error::InDoubt`].
    fn commit_load(&self, id: RequestId, load: LoadRequest) -> Result<LoadStep, Error> {
        use proto::load_reply::Kind;
        let call = call::Kind::CommitLoad(proto::CommitLoadCall {
            request_id: id.0.to_le_bytes().to_vec(),
            load_id: load.load_id,
            segments: load.segments,
            read_version: load.read_version.0,
            read_keys: load.read_keys.iter().map(|key| key.0).collect(),
            compared: load.compared.0,
            first_asked: load.first_asked.0,
            changes_compared: load.changes_compared.map(|version| version.0),
            beginning: load.beginning,
        });
        let reply = match self.ask(call).map_err(in_doubt)? {
            reply::Kind::Load(reply) => reply,
            _ => return other_kind().map_err(in_doubt),
        };
        match reply.kind {
            Some(Kind::Version(version)) => Ok(LoadStep::Committed(Version(version))),
            Some(Kind::Rest(rest)) => Ok(LoadStep::Rest(LastChanges {
                question: reply.question,
                vertices: made(rest).map_err(in_doubt)?,
                changes: changed(reply.changes.unwrap_or_default()).map_err(in_doubt)?,
            })),
            Some(Kind::Ask(_)) => Ok(LoadStep::Ask),
            None => other_kind().map_err(in_doubt),
        }
    }

    fn report_load_collision(
        &self,
        id: RequestId,
        question: u64,
        collision: Option<Version>,
    ) -> Result<(), Error> {
        let collision = collision.map_or(0, |version| version.0);
        self.note(call::Kind::SettleLoad(proto::SettleLoadCall {
            request_id: id.0.to_le_bytes().to_vec(),
            collision,
            question,
        }))
    }
}

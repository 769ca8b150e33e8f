//! Requests for changes of the change stream, and their answers: engine type ↔ message.

use crate::{ChangesAnswer, Error};
use tidegraph_types::{
    ChangesFrom, ChangesOfCommit, ChangesPage, ChangesRequest, EventId, NoChanges, Version,
};
use tidegraph_wire::change;
use tidegraph_wire::proto::{self, changes_call::From, changes_reply::State};

pub(crate) fn encode_request(request: &ChangesRequest) -> proto::ChangesCall {
    let (from, id) = match request.from {
        ChangesFrom::At(id) => (From::At, id),
        ChangesFrom::After(id) => (From::After, id),
        ChangesFrom::Oldest => (From::Oldest, EventId::default()),
        ChangesFrom::Newest => (From::Newest, EventId::default()),
    };
    proto::ChangesCall {
        from: from.into(),
        commit: id.commit.0,
        op: id.op,
        limit: u32::try_from(request.limit).unwrap_or(u32::MAX),
        bytes: request.bytes as u64,
    }
}

pub(crate) fn decode_request(call: &proto::ChangesCall) -> Result<ChangesRequest, Error> {
    let id = EventId { commit: Version(call.commit), op: call.op };
    let from = match call.from() {
        From::At => ChangesFrom::At(id),
        From::After => ChangesFrom::After(id),
        From::Oldest => ChangesFrom::Oldest,
        From::Newest => ChangesFrom::Newest,
        From::Unspecified => return Err(Error::garbage("a request for changes says not where to begin")),
    };
    let bytes = usize::try_from(call.bytes).unwrap_or(usize::MAX).min(MOST_BYTES);
    Ok(ChangesRequest { from, limit: call.limit as usize, bytes })
}

/// Largest answer that a worker may ask for, below the limit of a reply.
const MOST_BYTES: usize = 16 << 20;

pub(crate) fn encode_answer(answer: ChangesAnswer) -> Result<proto::ChangesReply, Error> {
    let none = |state: State, message| proto::ChangesReply { state: state.into(), message, commits: vec![] };
    Ok(match answer {
        ChangesAnswer::None(NoChanges::NotYet(message)) => none(State::NotYet, message),
        ChangesAnswer::None(NoChanges::Expired(message)) => none(State::Expired, message),
        ChangesAnswer::Busy => none(State::Busy, String::new()),
        ChangesAnswer::Page(page) => {
            let commits = page.commits.iter().map(|part| {
                let changes =
                    change::encode(&part.changes).map_err(|error| Error::NotAllowed(error.to_string()))?;
                let EventId { commit, op } = part.first;
                Ok(proto::ChangesOfCommit {
                    version: commit.0,
                    first_op: op,
                    is_end: part.is_end,
                    changes: Some(changes),
                })
            });
            let commits = commits.collect::<Result<_, Error>>()?;
            proto::ChangesReply { state: State::Found.into(), message: String::new(), commits }
        }
    })
}

pub(crate) fn decode_answer(reply: proto::ChangesReply) -> Result<ChangesAnswer, Error> {
    let state = reply.state();
    let proto::ChangesReply { message, commits, .. } = reply;
    Ok(match state {
        State::NotYet => ChangesAnswer::None(NoChanges::NotYet(message)),
        State::Expired => ChangesAnswer::None(NoChanges::Expired(message)),
        State::Busy => ChangesAnswer::Busy,
        State::Unspecified => return Err(Error::garbage("an answer about changes has an unknown state")),
        State::Found => {
            let commits = commits.into_iter().map(|part| {
                let changes = part.changes.ok_or_else(|| Error::garbage("a commit has no changes"))?;
                Ok(ChangesOfCommit {
                    first: EventId { commit: Version(part.version), op: part.first_op },
                    is_end: part.is_end,
                    changes: change::decode(changes).map_err(Error::garbage)?,
                })
            });
            ChangesAnswer::Page(ChangesPage { commits: commits.collect::<Result<_, Error>>()? })
        }
    })
}

//! The commit service of a node, seen from outside.

use super::RemoteNode;
use crate::Error;
use crate::services::{Commits, Outcome, RequestId};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::{CommitRequest, Epoch, Key, Str, Token, Version};
use tidegraph_wire::proto::{self, call, reply};

/// The sequencer at a node.
#[derive(Clone, Debug)]
pub struct RemoteCommits {
    node: Arc<RemoteNode>,
    at_most: Duration,
}

impl RemoteCommits {
    /// Asks this node, and waits for each answer at most so long.
    #[must_use]
    pub fn new(node: Arc<RemoteNode>, at_most: Duration) -> Self {
        Self { node, at_most }
    }

    fn ask(&self, call: call::Kind) -> Result<reply::Kind, Error> {
        self.node.ask(call, self.at_most)
    }
}

fn other_kind<T>() -> Result<T, Error> {
    Err(Error::garbage("an answer of another kind than the request"))
}

impl Commits for RemoteCommits {
    /// An answer that does not come leaves open what became of the transaction: [`Error::InDoubt`].
    fn commit(&self, id: RequestId, request: CommitRequest) -> Result<Version, Error> {
        let keys = |keys: &[Key]| keys.iter().map(|key| key.0).collect();
        let mutations = tidegraph_wire::mutation::encode_all(&request.mutations);
        let call = call::Kind::Commit(proto::CommitCall {
            request_id: id.0.to_vec(),
            read_version: request.read_version.0,
            read_keys: keys(&request.read_keys),
            write_keys: keys(&request.write_keys),
            mutations: mutations.map_err(|error| Error::NotAllowed(error.to_string()))?,
        });
        match self.ask(call) {
            Ok(reply::Kind::Commit(reply)) => Ok(Version(reply.version)),
            Ok(_) => other_kind(),
            Err(error @ (Error::Lost { .. } | Error::Overdue | Error::Garbage(_))) => {
                Err(Error::InDoubt(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }

    fn outcome(&self, id: RequestId) -> Result<Outcome, Error> {
        use proto::outcome_reply::State;
        match self.ask(call::Kind::Outcome(proto::OutcomeCall { request_id: id.0.to_vec() }))? {
            reply::Kind::Outcome(reply) => Ok(match reply.state() {
                State::Unknown => Outcome::Unknown,
                State::Committed => Outcome::Committed(Version(reply.version)),
                State::Refused => Outcome::Refused,
            }),
            _ => other_kind(),
        }
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

    fn newest(&self) -> Result<(Version, Epoch), Error> {
        match self.ask(call::Kind::Newest(proto::NewestCall {}))? {
            reply::Kind::Newest(reply) => Ok((Version(reply.version), Epoch(reply.epoch))),
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
}

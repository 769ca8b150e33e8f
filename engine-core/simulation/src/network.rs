//! The network between a worker and the nodes: it loses, delays and repeats messages, and plants defects in them.

use crate::run_token::WorkerClock;
use crate::transaction::Strips;
use crate::worker::{Mailbox, NodeLives};
use bytes::Bytes;
use parking_lot::Mutex;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_platform::{Random, SeededRandom};
use tidegraph_remote::{Answer, Error, Network};
use tidegraph_types::Key;
use tidegraph_wire::{Message, proto};

/// One of this many calls of a worker panics inside of a statement, in worlds with panics.
const CALLS_PER_PANIC: u64 = 200;

/// The network, as a worker uses it.
pub(crate) struct SimNetwork {
    pub clock: Arc<WorkerClock>,
    pub lives: NodeLives,
    pub random: SeededRandom,
    pub mailbox: Arc<Mutex<Mailbox>>,
    /// Whether each attempt of a commit gets another id: a planted defect.
    pub renames: bool,
    /// Which keys that they read the commits of statements lose: other planted defects.
    pub strips: Strips,
    /// Whether some calls panic.
    pub panics: bool,
}

/// The panic of a call.
pub(crate) struct Panicked;

/// Returns a call unchanged, except that a commit loses keys that it read.
fn stripped(bytes: Vec<u8>, strips: Strips) -> Vec<u8> {
    if strips == Strips::Nothing {
        return bytes;
    }
    let Ok(mut call) = proto::Call::decode(&bytes[..]) else { return bytes };
    if let Some(proto::call::Kind::Commit(commit)) = &mut call.kind {
        commit.read_keys.retain(|key| strips == Strips::Constraints && *key != Key::constraints().0);
    }
    call.encode_to_vec()
}

/// Returns an answer unchanged, except that it tells a load no changes.
pub(crate) fn without_changes(bytes: Bytes) -> Bytes {
    let Ok(mut reply) = proto::Reply::decode(&bytes[..]) else { return bytes };
    match &mut reply.kind {
        Some(proto::reply::Kind::LoadChanges(told)) => told.changes = None,
        Some(proto::reply::Kind::Load(asked)) => asked.changes = None,
        _ => {}
    }
    reply.encode_to_vec().into()
}

/// Returns a call unchanged, except that a commit gets the id of one attempt.
fn renamed(bytes: Vec<u8>, attempt: u64) -> Vec<u8> {
    let Ok(mut call) = proto::Call::decode(&bytes[..]) else { return bytes };
    if let Some(proto::call::Kind::Commit(commit)) = &mut call.kind {
        commit.request_id.truncate(8);
        commit.request_id.extend(attempt.to_le_bytes());
    }
    call.encode_to_vec()
}

impl Network for SimNetwork {
    fn send(&self, address: &str, call: Vec<u8>, answer: Answer) -> Result<u64, Error> {
        let unreachable = || Error::Unreachable { peer: address.into(), reason: "it does not run".into() };
        let node = address.strip_prefix('n').and_then(|number| number.parse::<usize>().ok());
        let node = node.filter(|node| *node < self.lives.len()).ok_or_else(unreachable)?;
        let life = self.lives[node].load(Ordering::Relaxed);
        // A connection to a node that is gone may look open for a while.
        if !self.clock.process.is_alive() || (life == 0 && self.random.one_in(2)) {
            return Err(unreachable());
        }
        let mut mailbox = self.mailbox.lock();
        mailbox.asked += 1;
        let number = mailbox.asked;
        let in_statement = mailbox.running.is_some();
        if self.panics && in_statement && self.clock.process.is_alive() && self.random.one_in(CALLS_PER_PANIC)
        {
            drop(mailbox);
            self.clock.process.note(format_args!("panics"));
            resume_unwind(Box::new(Panicked));
        }
        let call = if in_statement { stripped(call, self.strips) } else { call };
        let call = if self.renames { renamed(call, number) } else { call };
        mailbox.sent.push((number, node, life, call));
        mailbox.waiting.insert(number, answer);
        Ok(life)
    }

    fn sleep(&self, at_most: Duration) {
        self.clock.rest(at_most, true);
    }
}

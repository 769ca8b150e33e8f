//! What sessions of all protocols share: connections that stay open between requests, of Bolt and of WebSocket.

use crate::admission::Admission;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tidegraph_engine::{Database, Principal};

/// What all sessions share.
pub struct Service {
    pub(crate) database: Arc<Database>,
    pub(crate) admission: Arc<Admission>,
    /// Longest message of a client that is authenticated, in bytes.
    pub(crate) message_bytes: usize,
    /// What clients must send as their password; `None` if anybody may ask.
    pub(crate) token: Option<String>,
    /// Number of sessions of Bolt since the start.
    pub(crate) bolt_sessions: AtomicU64,
}

impl Service {
    /// Returns who sends a token; `None` if it is wrong.
    pub(crate) fn principal(&self, sent: Option<&str>) -> Option<Principal> {
        let Some(token) = &self.token else { return Some(Principal::Anonymous) };
        let is_right = bool::from(sent.unwrap_or_default().as_bytes().ct_eq(token.as_bytes()));
        is_right.then_some(Principal::SharedToken)
    }
}

/// Limits of sessions, of whatever protocol.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time between an answer and the next message.
    pub idle: Duration,
    /// Time between two parts of an answer that a client asks for, and between two requests of a transaction.
    pub paused: Duration,
}

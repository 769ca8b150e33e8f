//! What sessions of all protocols share: connections that stay open between requests, of Bolt and of WebSocket.

use crate::admission::Admission;
use crate::audit::Source;
use crate::authentication::{
    Authentication, Refusal,
    signature::{self, Signed},
};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tidegraph_engine::{Database, Principal};

/// What all sessions share.
pub struct Service {
    pub(crate) database: Arc<Database>,
    pub(crate) admission: Arc<Admission>,
    /// Longest message of a client that is authenticated, in bytes.
    pub(crate) message_bytes: usize,
    /// How clients prove who they are.
    pub(crate) authentication: Authentication,
    /// Number of sessions of Bolt since the start.
    pub(crate) bolt_sessions: AtomicU64,
}

impl Service {
    /// Returns who sends a name and a password, and records it if they are wrong. Where requests are signed, the
    /// password is what a client of Bolt signed.
    pub(crate) async fn password(
        &self,
        name: &str,
        password: &str,
        source: Source,
    ) -> Result<Principal, Refusal> {
        let proven = match &self.authentication {
            Authentication::SigV4(signers) => {
                let now = self.database.now();
                signature::of_bolt(password).and_then(|(method, target, headers)| {
                    let signed = Signed { method: &method, target, headers: &headers };
                    signers.verify(&signers.check(&signed, now)?, &signed, &[])
                })
            }
            others => others.password(name, password, source.address.map(|address| address.ip())).await,
        };
        self.recorded(Some(name), source, proven).await
    }

    /// Returns who sends a token, or nothing, and records it if that is wrong.
    pub(crate) async fn token(&self, token: Option<&str>, source: Source) -> Result<Principal, Refusal> {
        let from = source.address.map(|address| address.ip());
        let proven = match (token, self.authentication.refusal_of_strangers()) {
            (Some(token), _) => self.authentication.token(token, from).await,
            (None, None) => Ok(Principal::Anonymous),
            (None, Some(refusal)) => Err(refusal),
        };
        self.recorded(None, source, proven).await
    }

    async fn recorded(
        &self,
        name: Option<&str>,
        source: Source,
        proven: Result<Principal, Refusal>,
    ) -> Result<Principal, Refusal> {
        if let (Err(refusal), Some(audit)) = (&proven, self.admission.audit()) {
            audit.refused(name, source, refusal.code()).await;
        }
        proven
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

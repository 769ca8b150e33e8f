//! Bolt: sessions of Neo4j's drivers.
//!
//! Roles: [`Service`] is what all sessions share; `Connection` reads and writes messages; `Session` is the state of one
//! connection and answers its messages; `codes` gives errors Neo4j's names.
//!
//! Flow: the listener sees Bolt's first bytes → handshake → HELLO and LOGON → RUN, which goes through [`Admission`] like
//! a query of any protocol → PULL, which sends records of the answer that RUN made.
//!
//! What must never happen: a message is answered out of order; a client that does not read, does not pull or does not
//! authenticate holds memory, a slot or a place for longer than its limit; a query goes on after its RESET or after its
//! connection is gone.

mod codes;
mod connection;
mod session;

use crate::admission::Admission;
use crate::server::Progress;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tidegraph_engine::{Database, Principal};
use tokio::io::{AsyncRead, AsyncWrite};

/// What all sessions share.
pub struct Service {
    pub(crate) database: Arc<Database>,
    pub(crate) admission: Arc<Admission>,
    /// Longest message of a client that is authenticated.
    pub(crate) message_bytes: usize,
    /// What clients must send as their password; `None` if anybody may ask.
    pub(crate) token: Option<String>,
    pub(crate) sessions: AtomicU64,
}

impl Service {
    /// Returns who sends a token; `None` if it is wrong.
    fn principal(&self, sent: Option<&str>) -> Option<Principal> {
        let Some(token) = &self.token else { return Some(Principal::Anonymous) };
        let is_right = bool::from(sent.unwrap_or_default().as_bytes().ct_eq(token.as_bytes()));
        is_right.then_some(Principal::SharedToken)
    }
}

/// Limits of sessions, of whatever protocol.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Time between an answer and the next message.
    pub idle: Duration,
    /// Time between two parts of an answer that a client asks for.
    pub paused: Duration,
}

/// Serves a connection whose client began with Bolt's first bytes, until either side ends it.
///
/// # Errors
///
/// If the connection breaks, or the client does not speak Bolt.
pub(crate) async fn serve(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    service: &Service,
    progress: Arc<Progress>,
    limits: SessionLimits,
    address: &str,
) -> io::Result<()> {
    let mut connection = connection::Connection::new(socket, progress, limits);
    let Some(version) = connection.handshake().await? else { return Ok(()) };
    session::Session::new(connection, service, version, address).run().await
}

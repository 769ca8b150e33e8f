//! Bolt: sessions of Neo4j's drivers.
//!
//! Roles: [`Service`] is what sessions of all protocols share; `Connection` reads and writes messages; `Session` is the state of one
//! connection and answers its messages; `codes` gives errors Neo4j's names.
//!
//! Flow: the listener sees Bolt's first bytes → handshake → HELLO and LOGON → RUN, which goes through [`Admission`](crate::admission::Admission) like
//! a query of any protocol → PULL, which sends records, while the query runs on if it only reads.
//!
//! What must never happen: a message is answered out of order; a client that does not read, does not pull or does not
//! authenticate holds memory, a slot or a place for longer than its limit; a query goes on after its RESET or after its
//! connection is gone.

mod codes;
mod connection;
mod extra;
mod session;

use crate::audit::Source;
use crate::server::Progress;
use crate::session::{Limits, Service, Sessions};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Serves a connection whose client began with Bolt's first bytes, until either side ends it.
///
/// # Errors
///
/// If the connection breaks, or the client does not speak Bolt.
pub(crate) async fn serve(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    sessions: Sessions,
    service: Arc<Service>,
    progress: Arc<Progress>,
    limits: Limits,
    address: &str,
    source: Source,
) -> io::Result<()> {
    let mut connection = connection::Connection::new(socket, progress, limits);
    let Some(version) = connection.handshake().await? else { return Ok(()) };
    session::Session::new(connection, sessions, service, version, address, source).run().await
}

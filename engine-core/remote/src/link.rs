//! A connection as two halves: one thread reads, any thread writes. Plain TCP, or TLS over it.
//!
//! With TLS both halves share the state of the session (`rustls`, which does no input or output itself). A reader waits
//! for the socket without locking the session; a writer holds `order` from encrypting to the end of writing.
//!
//! Must never: wait for the socket while the session is locked, or the two sides could wait for each other.

use parking_lot::Mutex;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// The shortest time limit of a socket: it takes none of zero.
pub(crate) const SHORTEST_LIMIT: Duration = Duration::from_millis(1);
/// Size of the read buffer for TLS in bytes.
const TLS_BYTES: usize = 32 << 10;

/// A connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Link {
    socket: Arc<TcpStream>,
    session: Option<Arc<Session>>,
}

struct Session {
    state: Mutex<Connection>,
    /// Held from encrypting to the end of writing.
    order: Mutex<()>,
}

impl Link {
    /// Makes a connection without TLS.
    pub fn plain(socket: TcpStream) -> Self {
        Self { socket: Arc::new(socket), session: None }
    }

    /// Makes a TLS connection as a client. The socket's time-outs bound the handshake.
    pub fn client(socket: TcpStream, config: Arc<ClientConfig>, name: &str) -> io::Result<Self> {
        let name = rustls::pki_types::ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let state = ClientConnection::new(config, name).map_err(io::Error::other)?;
        Self::shake_hands(socket, state.into())
    }

    /// Makes a TLS connection as a server.
    pub fn server(socket: TcpStream, config: Arc<ServerConfig>) -> io::Result<Self> {
        let state = ServerConnection::new(config).map_err(io::Error::other)?;
        Self::shake_hands(socket, state.into())
    }

    fn shake_hands(mut socket: TcpStream, mut state: Connection) -> io::Result<Self> {
        // Writers bound the bytes that wait to be encrypted.
        state.set_buffer_limit(None);
        while state.is_handshaking() {
            state.complete_io(&mut socket)?;
        }
        let session = Session { state: Mutex::new(state), order: Mutex::new(()) };
        Ok(Self { socket: Arc::new(socket), session: Some(Arc::new(session)) })
    }

    /// Sets how long a read waits.
    pub fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.socket.set_read_timeout(Some(timeout))
    }

    /// Ends both directions: readers and writers get an error or the end.
    pub fn close(&self) {
        // The socket may be closed already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Returns the half that reads. A connection must have only one.
    pub fn reader(&self) -> LinkReader {
        let buffer = if self.session.is_some() { TLS_BYTES } else { 0 };
        LinkReader { link: self.clone(), buffer: vec![0; buffer], start: 0, end: 0 }
    }

    /// Writes all bytes.
    pub fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(session) = &self.session else { return (&*self.socket).write_all(bytes) };
        let _order = session.order.lock();
        let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 64 + 64);
        {
            let mut state = session.state.lock();
            state.writer().write_all(bytes)?;
            while state.wants_write() {
                state.write_tls(&mut out)?;
            }
        }
        (&*self.socket).write_all(&out)
    }
}

/// The half that reads.
pub(crate) struct LinkReader {
    link: Link,
    buffer: Vec<u8>,
    /// Range of the bytes that have arrived and the session has not taken yet.
    start: usize,
    end: usize,
}

impl Read for LinkReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(session) = self.link.session.clone() else { return (&*self.link.socket).read(into) };
        loop {
            let (took, answers) = {
                let mut state = session.state.lock();
                match state.reader().read(into) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    other => return other,
                }
                // Only now the session has room: its decrypted bytes have been taken.
                let mut arrived = &self.buffer[self.start..self.end];
                let took = !arrived.is_empty();
                if took {
                    self.start += state.read_tls(&mut arrived)?;
                    state.process_new_packets().map_err(io::Error::other)?;
                }
                (took, state.wants_write())
            };
            if answers {
                self.link.write_all(&[])?;
            }
            if took {
                // The session may have decrypted bytes now.
                continue;
            }
            let count = (&*self.link.socket).read(&mut self.buffer)?;
            (self.start, self.end) = (0, count);
            if count == 0 {
                // The session knows whether it was closed or cut off.
                let mut state = session.state.lock();
                state.read_tls(&mut io::empty())?;
                state.process_new_packets().map_err(io::Error::other)?;
                return state.reader().read(into);
            }
        }
    }
}

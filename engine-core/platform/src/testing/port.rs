//! Ports for the servers of a test.

use crate::{Random, RealRandom};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::net::TcpListener;

/// The ports that are chosen from: below those that the kernel gives to clients (`ip_local_port_range`), so that no client
/// gets the port of a server that is about to start again.
const FIRST_PORT: u16 = 10_240;
const PORTS: u16 = 22_000;

/// Returns a port of 127.0.0.1 on which nothing listens, and another one at each call: a server takes several ports before it
/// listens on the first.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "it asks whether a port is free, and serves nothing")]
pub fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = FIRST_PORT + RealRandom.below(u64::from(PORTS)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && GIVEN.lock().insert(port) {
            return port;
        }
    }
}

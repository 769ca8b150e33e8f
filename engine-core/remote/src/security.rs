//! Authentication between processes of a fleet: a shared secret, or certificates on both sides.
//!
//! With certificates (mutual TLS) each side shows one that the fleet's own authority signed, and refuses a peer without
//! one. Without TLS the secret travels in the hello in clear text, which is safe only on a private network.
//!
//! A secret can be replaced while the fleet runs ([`TokenSource`]). Flow of a rotation: the source has a new secret and
//! keeps the one before → a process that reads it shows the new one → a server that does not know it reads its source
//! again, at most once a second, and accepts both → a client that is refused reads its source again, and then shows the
//! newest secret or the one before. So nobody has to learn the new secret first, and a server whose source does not
//! answer goes on with the secret before. Open connections stay.
//!
//! Certificates can be replaced too (`certificates.rs`).

use crate::Error;
use crate::certificates::{CertificateSource, Certificates, TLS_FIRST_BYTE, TlsFiles};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::{ClientConfig, ServerConfig};
use serde::{Deserialize, Serialize};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tidegraph_platform::Clock;

/// Time between two reads of a source.
const READ_EVERY: Duration = Duration::from_secs(300);

/// Time from a read that failed to the next.
const READ_AFTER_FAILURE: Duration = Duration::from_secs(30);

/// Least time between two reads that refusals cause, so that strangers cause few of them.
const READ_AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// The secrets of a fleet at one time.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Tokens {
    /// The secret that a process shows. Empty: none is required.
    pub current: String,
    /// The secret before it, which others may still show.
    pub previous: Option<String>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The secrets themselves must not be printed.
        f.debug_struct("Tokens").field("previous", &self.previous.is_some()).finish_non_exhaustive()
    }
}

/// Secrets that stay the same.
impl TokenSource for Tokens {
    fn read(&self) -> Result<Tokens, String> {
        Ok(self.clone())
    }
}

/// A place that has the secrets of a fleet, and may get new ones.
pub trait TokenSource: Send + Sync {
    /// Reads the secrets. It blocks, and must return within seconds.
    ///
    /// # Errors
    ///
    /// Why they cannot be read. The text must not contain a secret.
    fn read(&self) -> Result<Tokens, String>;
}

/// Settings of the authentication between processes.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SecurityConfig {
    /// The secret of the fleet; empty: none is required.
    pub token: String,
    /// TLS on both sides; `None`: plain TCP.
    pub tls: Option<TlsFiles>,
}

impl std::fmt::Debug for SecurityConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The secret itself must not be printed.
        let token = if self.token.is_empty() { "none" } else { "set" };
        f.debug_struct("SecurityConfig").field("token", &token).field("tls", &self.tls).finish()
    }
}

/// The authentication of this process, with its files read and checked.
#[derive(Clone)]
pub struct Security {
    tokens: Arc<Secrets>,
    tls: Option<Arc<Certificates>>,
}

/// The secrets that this process knows.
struct Secrets {
    known: ArcSwap<Tokens>,
    followed: Option<Followed>,
}

/// A source that is read again.
struct Followed {
    source: Arc<dyn TokenSource>,
    clock: Arc<dyn Clock>,
    due: Mutex<Due>,
}

/// When the source may be read again.
struct Due {
    in_any_case: Duration,
    after_refusal: Duration,
}

impl Secrets {
    /// Returns the secrets; reads the source again if it is time, unless another thread does.
    fn known(&self) -> Arc<Tokens> {
        if let Some(followed) = &self.followed
            && let Some(mut due) = followed.due.try_lock()
            && followed.clock.now() >= due.in_any_case
        {
            self.read(followed, &mut due);
        }
        self.known.load_full()
    }

    /// Reads the source again because a secret was refused. Other threads wait for this read.
    fn known_after_refusal(&self) -> Arc<Tokens> {
        if let Some(followed) = &self.followed {
            let mut due = followed.due.lock();
            if followed.clock.now() >= due.after_refusal {
                self.read(followed, &mut due);
                due.after_refusal = followed.clock.now() + READ_AFTER_REFUSAL;
            }
        }
        self.known.load_full()
    }

    fn read(&self, followed: &Followed, due: &mut Due) {
        let wait = match followed.source.read() {
            Ok(tokens) => {
                if tokens != **self.known.load() {
                    tracing::info!("the secret of the fleet was replaced");
                    self.known.store(Arc::new(tokens));
                }
                READ_EVERY
            }
            Err(reason) => {
                tracing::warn!(reason, "the secret of the fleet cannot be read; the known one stays");
                READ_AFTER_FAILURE
            }
        };
        due.in_any_case = followed.clock.now() + wait;
    }
}

/// Returns whether a secret is one of these. The time does not depend on which bytes differ.
fn is_one_of(tokens: &Tokens, found: &str) -> bool {
    let equal = |token: &str| token.as_bytes().ct_eq(found.as_bytes());
    let previous = tokens.previous.as_deref().map_or(0.into(), equal);
    (equal(&tokens.current) | previous).into()
}

impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Security").field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

impl Security {
    /// Uses neither secret nor TLS: for tests, and for machines that others cannot reach.
    #[must_use]
    pub fn none() -> Self {
        Self { tokens: fixed(String::new()), tls: None }
    }

    /// Reads the files once: for tests, and for processes that end soon.
    ///
    /// # Errors
    ///
    /// [`Error::Certificates`] with the path, if a file cannot be read or has no usable certificate or key.
    pub fn load(config: &SecurityConfig) -> Result<Self, Error> {
        let tls = config.tls.as_ref().map(|files| Certificates::fixed(files, !config.token.is_empty()));
        Ok(Self { tokens: fixed(config.token.clone()), tls: tls.transpose()?.map(Arc::new) })
    }

    /// Takes the secret and the certificates from sources, which are read again while the process runs.
    ///
    /// # Errors
    ///
    /// [`Error::Certificates`] with the place, if certificates cannot be read or would be refused by peers;
    /// [`Error::Secret`] if the source of the secret cannot be read.
    pub fn follow(
        tls: Option<Arc<dyn CertificateSource>>,
        source: Arc<dyn TokenSource>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let known = source.read().map_err(Error::Secret)?;
        let has_secret = !known.current.is_empty();
        let tls = match tls {
            Some(certificates) => {
                let certificates = Arc::new(Certificates::follow(certificates, clock.clone(), has_secret)?);
                certificates.watch()?;
                Some(certificates)
            }
            None => None,
        };
        let due = Due { in_any_case: clock.now() + READ_EVERY, after_refusal: Duration::ZERO };
        let followed = Some(Followed { source, clock, due: Mutex::new(due) });
        Ok(Self { tokens: Arc::new(Secrets { known: ArcSwap::from_pointee(known), followed }), tls })
    }

    /// Returns the secret to show.
    pub(crate) fn token(&self) -> String {
        self.tokens.known().current.clone()
    }

    /// Returns the secrets to show to a peer that refused `shown`, the best first.
    pub(crate) fn others(&self, shown: &str) -> Vec<String> {
        let Tokens { current, previous } = (*self.tokens.known_after_refusal()).clone();
        std::iter::once(current).chain(previous).filter(|token| token != shown).collect()
    }

    /// Returns whether a client sent a secret of the fleet.
    pub(crate) fn is_token(&self, found: &str) -> bool {
        is_one_of(&self.tokens.known(), found) || is_one_of(&self.tokens.known_after_refusal(), found)
    }

    /// Returns the TLS configuration for a connection that a client opened; `None`: the connection has no TLS. Waits for
    /// the first byte where both are allowed.
    pub(crate) fn server(&self, socket: &TcpStream) -> std::io::Result<Option<Arc<ServerConfig>>> {
        let Some(tls) = &self.tls else { return Ok(None) };
        if !tls.is_required() {
            let mut first = [0];
            let count = socket.peek(&mut first)?;
            if count == 0 || first[0] != TLS_FIRST_BYTE {
                return Ok(None);
            }
        }
        Ok(Some(tls.server()))
    }

    /// Returns the TLS configuration for the node at an address, and the name that its certificate must contain; `None`:
    /// connections are opened without TLS.
    pub(crate) fn client(&self, address: &str) -> Option<(Arc<ClientConfig>, String)> {
        self.tls.as_ref()?.client(address)
    }
}

fn fixed(token: String) -> Arc<Secrets> {
    let known = ArcSwap::from_pointee(Tokens { current: token, previous: None });
    Arc::new(Secrets { known, followed: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tidegraph_platform::ManualClock;

    /// A source that a test changes.
    #[derive(Default)]
    struct Place {
        tokens: Mutex<Option<Tokens>>,
        reads: AtomicUsize,
    }

    impl Place {
        fn put(&self, current: &str, previous: &str) {
            let previous = Some(previous.to_owned());
            *self.tokens.lock() = Some(Tokens { current: current.to_owned(), previous });
        }

        fn reads(&self) -> usize {
            self.reads.swap(0, Ordering::Relaxed)
        }
    }

    impl TokenSource for Place {
        fn read(&self) -> Result<Tokens, String> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.tokens.lock().clone().ok_or_else(|| "it does not answer".into())
        }
    }

    #[test]
    fn a_source_is_read_on_a_schedule_and_after_a_refusal() {
        let (place, clock) = (Arc::new(Place::default()), Arc::new(ManualClock::default()));
        let follow = || Security::follow(None, place.clone(), clock.clone());
        assert!(matches!(follow(), Err(Error::Secret(reason)) if reason == "it does not answer"));
        place.put("second", "first");
        let security = follow().unwrap();
        assert_eq!((security.token().as_str(), place.reads()), ("second", 2));
        assert!(security.is_token("second") && security.is_token("first"));
        assert_eq!(place.reads(), 0);
        // Strangers cause one read each second.
        for _ in 0..100 {
            assert!(!security.is_token("") && !security.is_token("guess"));
        }
        assert_eq!(place.reads(), 1);
        place.put("third", "second");
        assert!(!security.is_token("third"), "within a second of a stranger");
        clock.advance(READ_AFTER_REFUSAL);
        assert!(security.is_token("third") && security.is_token("second") && !security.is_token("first"));
        assert_eq!((security.others("second"), place.reads()), (vec!["third".to_owned()], 1));
        // The schedule, and a source that does not answer for a while.
        place.put("fourth", "third");
        clock.advance(READ_EVERY);
        assert_eq!((security.token().as_str(), place.reads()), ("fourth", 1));
        *place.tokens.lock() = None;
        clock.advance(READ_EVERY);
        assert_eq!((security.token().as_str(), place.reads()), ("fourth", 1));
        place.put("fifth", "fourth");
        assert_eq!((security.token().as_str(), place.reads()), ("fourth", 0));
        clock.advance(READ_AFTER_FAILURE);
        assert_eq!((security.token().as_str(), place.reads()), ("fifth", 1));
        assert!(!format!("{security:?} {:?}", place.tokens.lock()).contains("fifth"));
    }

    #[test]
    fn a_secret_that_is_given_stays() {
        let security = Security::load(&SecurityConfig { token: "given".into(), tls: None }).unwrap();
        assert!(security.is_token("given") && !security.is_token(""));
        assert_eq!(security.others("given"), Vec::<String>::new());
        assert!(Security::none().is_token(""));
    }
}

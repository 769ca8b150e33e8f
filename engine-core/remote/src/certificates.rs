//! The certificates of a process, which may be replaced while it runs.
//!
//! Flow of a replacement: a thread reads the place of the certificates again and again → texts that changed are parsed
//! and checked as a whole → connections that are opened from then on use them. Open connections stay. Texts that cannot
//! be read, do not fit together, or that no peer would accept change nothing: the certificates before them stay, the
//! reason is logged, and a metric counts it.
//!
//! Flow of a change of the authority: all processes get the new authority beside the old one → they get certificates of
//! the new one → the old one is removed. At each step any two processes accept each other.
//!
//! Certificates and trusted authorities are replaced together, as one configuration of rustls. Its resolvers could replace the
//! certificate alone. Sessions are not resumed, so each connection proves both sides again.

use crate::Error;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegraph_platform::{Clock, metric, read_secret_file};

/// Time between two reads of files.
const READ_FILES_EVERY: Duration = Duration::from_secs(5);

/// Time from a read that failed to the next, unless the usual time is shorter.
const READ_AFTER_FAILURE: Duration = Duration::from_secs(30);

/// Time between two looks of the thread at what is due.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The first byte of a connection that begins with TLS: the type of a handshake's record.
pub(crate) const TLS_FIRST_BYTE: u8 = 0x16;

/// Which connections are encrypted. A fleet without TLS goes from `Accept` over `Prefer` to `Require`; two processes
/// that are one step apart reach each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "args", derive(clap::ValueEnum))]
pub enum TlsMode {
    /// Accepts connections with and without TLS, and opens them without.
    Accept,
    /// Accepts connections with and without TLS, and opens them with it.
    Prefer,
    /// Accepts and opens connections with TLS only.
    #[default]
    Require,
}

/// PEM files for TLS.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// Certificates of the authorities that the fleet trusts.
    pub authorities: PathBuf,
    /// The certificate of this process, followed by the intermediate ones.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Name that the certificates of nodes must contain; `None`: the host in the address.
    #[serde(default)]
    pub server_name: Option<String>,
    /// Which connections are encrypted.
    #[serde(default)]
    pub mode: TlsMode,
}

/// A text in PEM, and where it is from.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The text, which may be a private key.
    pub text: String,
    /// The file, or the secret and its field, for errors.
    pub place: String,
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pem").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Pem {
    fn wrong(&self, problem: impl std::fmt::Display) -> String {
        format!("{}: {problem}", self.place)
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let found = CertificateDer::pem_slice_iter(self.text.as_bytes()).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|error| self.wrong(error))?;
        if found.is_empty() { Err(self.wrong("there is no certificate in it")) } else { Ok(found) }
    }
}

/// The certificates of a process at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateTexts {
    /// Certificates of the authorities that the fleet trusts.
    pub authorities: Pem,
    /// The certificate of this process, followed by the intermediate ones.
    pub certificate: Pem,
    /// Its private key.
    pub key: Pem,
    /// Name that the certificates of nodes must contain; `None`: the host in the address.
    pub server_name: Option<String>,
    /// Which connections are encrypted.
    pub mode: TlsMode,
}

/// A place that has the certificates of a process, and may get new ones.
pub trait CertificateSource: Send + Sync {
    /// Reads the certificates. It blocks, and must return within seconds.
    ///
    /// # Errors
    ///
    /// The place that cannot be read, and why. The text must not contain a key.
    fn read(&self) -> Result<CertificateTexts, String>;

    /// Returns the time between two reads.
    fn every(&self) -> Duration;
}

impl CertificateSource for TlsFiles {
    fn read(&self) -> Result<CertificateTexts, String> {
        Ok(CertificateTexts {
            authorities: file(&self.authorities)?,
            certificate: file(&self.certificate)?,
            key: pem(&self.key, read_secret_file(&self.key))?,
            server_name: self.server_name.clone(),
            mode: self.mode,
        })
    }

    fn every(&self) -> Duration {
        READ_FILES_EVERY
    }
}

#[expect(clippy::disallowed_methods, reason = "the files are those of the operator")]
fn file(path: &Path) -> Result<Pem, String> {
    pem(path, std::fs::read_to_string(path))
}

fn pem(path: &Path, read: std::io::Result<String>) -> Result<Pem, String> {
    let place = path.display().to_string();
    match read {
        Ok(text) => Ok(Pem { text, place }),
        Err(error) => Err(format!("{place}: {error}")),
    }
}

/// The configurations that one set of certificates makes.
struct Tls {
    texts: CertificateTexts,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    verifier: Arc<dyn rustls::server::danger::ClientCertVerifier>,
    chain: Vec<CertificateDer<'static>>,
    /// When the first certificate of the chain expires, in seconds since 1970.
    expires: i64,
}

impl Tls {
    fn new(texts: CertificateTexts) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for authority in texts.authorities.certificates()? {
            roots.add(authority).map_err(|error| texts.authorities.wrong(error))?;
        }
        let roots = Arc::new(roots);
        let chain = texts.certificate.certificates()?;
        let expires = expiry(&chain).map_err(|error| texts.certificate.wrong(error))?;
        let key = PrivateKeyDer::from_pem_slice(texts.key.text.as_bytes());
        let key = key.map_err(|error| texts.key.wrong(error))?;
        let pair = |error| format!("{} and {}: {error}", texts.certificate.place, texts.key.place);
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .build()
            .map_err(|error| texts.authorities.wrong(error))?;
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_client_cert_verifier(verifier.clone())
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(pair)?;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain.clone(), key)
            .map_err(pair)?;
        client.resumption = Resumption::disabled();
        let (client, server) = (Arc::new(client), Arc::new(server));
        Ok(Self { texts, client, server, verifier, chain, expires })
    }

    /// Checks that peers with the same authorities accept the certificate now.
    fn check(&self, clock: &dyn Clock) -> Result<(), String> {
        let Some((certificate, others)) = self.chain.split_first() else { return Ok(()) };
        let since_1970 = u64::try_from(clock.wall().as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(since_1970));
        let verified = self.verifier.verify_client_cert(certificate, others, now);
        verified.map(drop).map_err(|error| {
            let CertificateTexts { certificate, authorities, .. } = &self.texts;
            format!("{}: peers that trust {} would refuse it: {error}", certificate.place, authorities.place)
        })
    }
}

/// Returns when the first certificate of a chain expires, in seconds since 1970.
fn expiry(chain: &[CertificateDer<'_>]) -> Result<i64, String> {
    let ends = chain.iter().map(|one| match x509_parser::parse_x509_certificate(one) {
        Ok((_, parsed)) => Ok(parsed.validity().not_after.timestamp()),
        Err(error) => Err(error.to_string()),
    });
    ends.collect::<Result<Vec<_>, _>>().map(|ends| ends.into_iter().min().unwrap_or_default())
}

/// The certificates that a process uses at present.
pub(crate) struct Certificates {
    current: ArcSwap<Tls>,
    followed: Option<Followed>,
    /// Whether connections may be without TLS: they have a secret to show.
    has_secret: bool,
}

/// A source that is read again.
struct Followed {
    source: Arc<dyn CertificateSource>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    due: Duration,
    /// Why the last read failed; empty if it did not. It is logged once.
    problem: String,
}

impl Certificates {
    /// Reads certificates that stay the same.
    pub fn fixed(source: &dyn CertificateSource, has_secret: bool) -> Result<Self, Error> {
        let tls = source.read().and_then(|texts| usable(texts, has_secret)).map_err(Error::Certificates)?;
        Ok(Self { current: ArcSwap::from_pointee(tls), followed: None, has_secret })
    }

    /// Reads certificates, which must be valid now, and reads them again when it is time.
    pub fn follow(
        source: Arc<dyn CertificateSource>,
        clock: Arc<dyn Clock>,
        has_secret: bool,
    ) -> Result<Self, Error> {
        let mut certificates = Self::fixed(&*source, has_secret)?;
        let current = certificates.current.load_full();
        current.check(&*clock).map_err(Error::Certificates)?;
        let state = Mutex::new(State { due: clock.now() + source.every(), problem: String::new() });
        show(&current, &*clock);
        certificates.followed = Some(Followed { source, clock, state });
        Ok(certificates)
    }

    /// Starts the thread that reads the source on time. It ends when nobody uses the certificates any more.
    pub fn watch(self: &Arc<Self>) -> Result<(), Error> {
        let Some(followed) = &self.followed else { return Ok(()) };
        let (watched, clock) = (Arc::downgrade(self), followed.clock.clone());
        let spawned = tidegraph_platform::spawn("certificates", move || {
            while let Some(certificates) = Weak::upgrade(&watched) {
                drop(certificates.current());
                drop(certificates);
                clock.sleep(LOOK_EVERY);
            }
        });
        spawned.map(drop).map_err(|error| Error::Unavailable(format!("cannot start a thread: {error}")))
    }

    /// Returns the certificates; reads the source again if it is time, unless another thread does.
    fn current(&self) -> Arc<Tls> {
        if let Some(followed) = &self.followed
            && let Some(mut state) = followed.state.try_lock()
        {
            if followed.clock.now() >= state.due {
                self.read(followed, &mut state);
            }
            show(&self.current.load(), &*followed.clock);
        }
        self.current.load_full()
    }

    fn read(&self, followed: &Followed, state: &mut State) {
        let every = followed.source.every();
        let wait = match self.replace(followed) {
            Ok(is_new) => {
                if is_new {
                    let current = self.current.load();
                    let CertificateTexts { certificate, mode, .. } = &current.texts;
                    let certificate = certificate.place.as_str();
                    tracing::info!(
                        certificate,
                        ?mode,
                        expires = current.expires,
                        "new certificates are used"
                    );
                }
                state.problem.clear();
                every
            }
            Err(problem) => {
                metric::certificates_unusable();
                if problem != state.problem {
                    tracing::error!(problem, "new certificates cannot be used; those before them stay");
                    state.problem = problem;
                }
                every.min(READ_AFTER_FAILURE)
            }
        };
        state.due = followed.clock.now() + wait;
    }

    /// Uses what the source has now. Returns whether it is new.
    fn replace(&self, followed: &Followed) -> Result<bool, String> {
        let texts = followed.source.read()?;
        if texts == self.current.load().texts {
            return Ok(false);
        }
        let new = usable(texts, self.has_secret)?;
        new.check(&*followed.clock)?;
        self.current.store(Arc::new(new));
        Ok(true)
    }

    /// Returns whether each connection of a client begins with TLS.
    pub fn is_required(&self) -> bool {
        self.current().texts.mode == TlsMode::Require
    }

    /// Returns the configuration of a server.
    pub fn server(&self) -> Arc<ServerConfig> {
        self.current().server.clone()
    }

    /// Returns the configuration of a client for the node at an address, and the name that its certificate must contain.
    /// `None`: connections are opened without TLS.
    pub fn client(&self, address: &str) -> Option<(Arc<ClientConfig>, String)> {
        let current = self.current();
        if current.texts.mode == TlsMode::Accept {
            return None;
        }
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = current.texts.server_name.clone().unwrap_or_else(|| host.to_owned());
        Some((current.client.clone(), name))
    }
}

/// Parses texts, and refuses a mode in which strangers would be let in.
fn usable(texts: CertificateTexts, has_secret: bool) -> Result<Tls, String> {
    if texts.mode != TlsMode::Require && !has_secret {
        let place = &texts.certificate.place;
        return Err(format!(
            "{place}: without a secret of the fleet each connection needs TLS: the mode has to be require"
        ));
    }
    Tls::new(texts)
}

/// Shows in a metric how long the certificate is valid.
fn show(tls: &Tls, clock: &dyn Clock) {
    metric::certificate_left(tls.expires - clock.wall().as_second());
}

#[cfg(test)]
#[path = "certificates_tests.rs"]
mod tests;

//! TLS of the port: its certificate, which may change while the service runs.

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::read_secret_file;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The first byte of a connection that begins with TLS: the type of a handshake's record.
pub(super) const FIRST_BYTE: u8 = 0x16;
/// The name of HTTP/2 in the handshake (ALPN).
pub(super) const HTTP_2: &[u8] = b"h2";
/// How often the files of the certificate are read again.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// PEM files of a certificate.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The certificate, followed by the intermediate ones.
    pub certificate: PathBuf,
    /// Its private key, which other users of the machine must not be able to read.
    pub key: PathBuf,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct CertificateError {
    file: PathBuf,
    problem: String,
}

impl CertificateError {
    fn new(file: &Path, problem: impl std::fmt::Display) -> Self {
        Self { file: file.to_owned(), problem: problem.to_string() }
    }
}

/// TLS with one certificate.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    certificate: Arc<Certificate>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// The certificate that clients see, with its key.
#[derive(Debug)]
struct Certificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, has no certificate or key, or the key is not the certificate's.
    pub fn load(files: &CertificateFiles) -> Result<Self, CertificateError> {
        Self::new(read(files)?, &files.certificate)
    }

    /// Makes a certificate for names and addresses, and writes it to a file, so that clients can trust it.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, or a name cannot be one of a certificate.
    pub fn self_signed(names: Vec<String>, file: &Path) -> Result<Self, CertificateError> {
        let wrong = |error: &dyn std::fmt::Display| CertificateError::new(file, error);
        let made = rcgen::generate_simple_self_signed(names).map_err(|error| wrong(&error))?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let certified = CertifiedKey::from_der(vec![made.cert.der().clone()], key, &provider());
        let tls = Self::new(certified.map_err(|error| wrong(&error))?, file)?;
        write(file, &made.cert.pem()).map_err(|error| wrong(&error))?;
        Ok(tls)
    }

    fn new(certified: CertifiedKey, file: &Path) -> Result<Self, CertificateError> {
        let certificate = Arc::new(Certificate(ArcSwap::from_pointee(certified)));
        let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|error| CertificateError::new(file, error))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(certificate.clone());
        config.alpn_protocols = vec![HTTP_2.to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificate })
    }

    /// Reads the files again and again, and shows the certificate that they have to new clients. A certificate that
    /// cannot be read changes nothing.
    #[expect(clippy::disallowed_methods, reason = "the edge of the service: files of its operator change")]
    pub async fn follow(self, files: CertificateFiles) {
        let mut last_problem = String::new();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let of_files = files.clone();
            let found = tokio::task::spawn_blocking(move || read(&of_files)).await;
            match found {
                Ok(Ok(new)) => {
                    last_problem.clear();
                    if new.cert != self.certificate.0.load().cert {
                        self.certificate.0.store(Arc::new(new));
                        tracing::info!(file = %files.certificate.display(), "new clients see another certificate");
                    }
                }
                Ok(Err(error)) if error.to_string() != last_problem => {
                    tracing::warn!(%error, "the certificate cannot be read again, and stays as it was");
                    last_problem = error.to_string();
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    pub(super) async fn accept(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.acceptor.accept(socket).await
    }
}

fn read(files: &CertificateFiles) -> Result<CertifiedKey, CertificateError> {
    let CertificateFiles { certificate, key } = files;
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| CertificateError::new(certificate, error))?;
    if chain.is_empty() {
        return Err(CertificateError::new(certificate, "the file has no certificate"));
    }
    let text = read_secret_file(key).map_err(|error| CertificateError::new(key, error))?;
    let private = PrivateKeyDer::from_pem_slice(text.as_bytes());
    let private = private.map_err(|error| CertificateError::new(key, error))?;
    CertifiedKey::from_der(chain, private, &provider()).map_err(|error| CertificateError::new(key, error))
}

#[expect(clippy::disallowed_methods, reason = "the file is one that the operator names")]
fn write(file: &Path, pem: &str) -> io::Result<()> {
    std::fs::write(file, pem)
}

//! Authentication between processes of a fleet: a shared secret, or certificates on both sides.
//!
//! With certificates (mutual TLS) each side shows one that the fleet's own authority signed, and refuses a peer without
//! one. Without TLS the secret travels in the hello in clear text, which is safe only on a private network.

use crate::Error;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subtle::ConstantTimeEq;

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
}

/// The authentication of this process, with its files read and checked.
#[derive(Clone)]
pub struct Security {
    token: String,
    tls: Option<Tls>,
}

#[derive(Clone)]
struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    server_name: Option<String>,
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
        Self { token: String::new(), tls: None }
    }

    /// Reads the files.
    ///
    /// # Errors
    ///
    /// [`Error::Certificates`] with the path, if a file cannot be read or has no usable certificate or key.
    pub fn load(config: &SecurityConfig) -> Result<Self, Error> {
        let tls = config.tls.as_ref().map(load_tls).transpose()?;
        Ok(Self { token: config.token.clone(), tls })
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Returns whether a client sent the secret. The time does not depend on which bytes differ.
    pub(crate) fn is_token(&self, found: &str) -> bool {
        self.token.as_bytes().ct_eq(found.as_bytes()).into()
    }

    pub(crate) fn server(&self) -> Option<Arc<ServerConfig>> {
        self.tls.as_ref().map(|tls| tls.server.clone())
    }

    /// Returns the TLS configuration for the node at an address, and the name that its certificate must contain.
    pub(crate) fn client(&self, address: &str) -> Option<(Arc<ClientConfig>, String)> {
        let tls = self.tls.as_ref()?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Some((tls.client.clone(), tls.server_name.clone().unwrap_or_else(|| host.to_owned())))
    }
}

fn load_tls(files: &TlsFiles) -> Result<Tls, Error> {
    let bad = |path: &Path, error: &dyn std::fmt::Display| {
        Error::Certificates(format!("{}: {error}", path.display()))
    };
    let certificates = |path: &Path| -> Result<Vec<CertificateDer<'static>>, Error> {
        let found = CertificateDer::pem_file_iter(path).map_err(|error| bad(path, &error))?;
        let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| bad(path, &error))?;
        if found.is_empty() { Err(bad(path, &"the file has no certificate")) } else { Ok(found) }
    };
    let mut roots = RootCertStore::empty();
    for authority in certificates(&files.authorities)? {
        roots.add(authority).map_err(|error| bad(&files.authorities, &error))?;
    }
    let roots = Arc::new(roots);
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| bad(&files.key, &error))?;
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let all = |error: &dyn std::fmt::Display| Error::Certificates(error.to_string());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
        .build()
        .map_err(|error| all(&error))?;
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| all(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(|error| all(&error))?;
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| all(&error))?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|error| all(&error))?;
    Ok(Tls { client: Arc::new(client), server: Arc::new(server), server_name: files.server_name.clone() })
}

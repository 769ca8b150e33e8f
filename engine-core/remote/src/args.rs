//! The TLS flags of a fleet's programs, for a command line that flattens them into its own.

use crate::TlsFiles;
use std::path::PathBuf;

/// Certificates that this process presents, and certificates that it requires of others.
/// Without the flags it uses plain TCP.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct TlsArgs {
    /// PEM file with the certificates of the authorities that the fleet trusts.
    #[arg(long, requires_all = ["tls_certificate", "tls_key"])]
    tls_authorities: Option<PathBuf>,
    /// PEM file with the certificate of this process.
    #[arg(long)]
    tls_certificate: Option<PathBuf>,
    /// PEM file with the key of the certificate.
    #[arg(long)]
    tls_key: Option<PathBuf>,
    /// Name that the certificates of other processes must hold. Without it: the host of their address.
    #[arg(long)]
    tls_server_name: Option<String>,
}

impl TlsArgs {
    /// The files, if `--tls-authorities`, `--tls-certificate` and `--tls-key` are given.
    #[must_use]
    pub fn files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            authorities: self.tls_authorities.clone()?,
            certificate: self.tls_certificate.clone()?,
            key: self.tls_key.clone()?,
            server_name: self.tls_server_name.clone(),
        })
    }
}

//! The TLS flags of a fleet's programs, for a command line that flattens them into its own.

use crate::{Error, TlsFiles, TlsMode};
use std::path::PathBuf;
use std::time::Duration;
use tidegraph_platform::read_secret_file;

/// Certificates that this process presents, and certificates that it requires of others.
/// Without the flags it uses plain TCP.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct TlsArgs {
    /// PEM file with the certificates of the authorities that the fleet trusts. This file and the next two are read again
    /// while the process runs.
    #[arg(long, requires_all = ["tls_certificate", "tls_key"])]
    tls_authorities: Option<PathBuf>,
    /// PEM file with the certificate of this process.
    #[arg(long, requires = "tls_authorities")]
    tls_certificate: Option<PathBuf>,
    /// PEM file with the key of the certificate, which other users of the machine must not be able to read.
    #[arg(long, requires = "tls_authorities")]
    tls_key: Option<PathBuf>,
    /// Name that the certificates of other processes must hold. Without it: the host of their address.
    #[arg(long, requires = "tls_authorities")]
    tls_server_name: Option<String>,
    /// Which connections are encrypted. A fleet that has no TLS yet goes from `accept` over `prefer` to `require`, each
    /// when all processes have the one before.
    #[arg(long, requires = "tls_authorities", value_enum, default_value_t)]
    tls_mode: TlsMode,
    /// Name or ARN of a secret in AWS Secrets Manager with the certificates, in place of the files. It is read again while
    /// the process runs.
    #[arg(long, env = "TIDEGRAPH_TLS_SECRET", conflicts_with = "tls_authorities")]
    tls_secret: Option<String>,
    /// Milliseconds between two reads of --tls-secret.
    #[arg(long, env = "TIDEGRAPH_TLS_POLL_MS", default_value_t = 300_000)]
    tls_poll_ms: u64,
}

impl TlsArgs {
    /// Returns the files, if `--tls-authorities`, `--tls-certificate` and `--tls-key` are given.
    ///
    /// # Errors
    ///
    /// [`Error::Certificates`] if the key cannot be read, or if every user of the machine can read it.
    pub fn files(&self) -> Result<Option<TlsFiles>, Error> {
        let (Some(authorities), Some(certificate), Some(key)) =
            (self.tls_authorities.clone(), self.tls_certificate.clone(), self.tls_key.clone())
        else {
            return Ok(None);
        };
        read_secret_file(&key).map_err(|error| Error::Certificates(format!("{}: {error}", key.display())))?;
        let server_name = self.tls_server_name.clone();
        Ok(Some(TlsFiles { authorities, certificate, key, server_name, mode: self.tls_mode }))
    }

    /// Returns the secret with the certificates, if `--tls-secret` is given, and the time between two reads of it.
    #[must_use]
    pub fn secret(&self) -> Option<(String, Duration)> {
        self.tls_secret.clone().map(|id| (id, Duration::from_millis(self.tls_poll_ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
    fn a_key_that_every_user_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key.pem");
        std::fs::write(&key, "a key").unwrap();
        let args = TlsArgs {
            tls_authorities: Some("authorities.pem".into()),
            tls_certificate: Some("certificate.pem".into()),
            tls_key: Some(key.clone()),
            ..TlsArgs::default()
        };
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        let refused = args.files().unwrap_err().to_string();
        assert!(refused.contains("key.pem") && refused.contains("0644"), "{refused}");
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(args.files().unwrap().unwrap().key, key);
        assert!(TlsArgs { tls_key: None, ..args }.files().unwrap().is_none());
    }
}

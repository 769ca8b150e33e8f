//! The TLS flags of a fleet's programs, for a command line that flattens them into its own.

use crate::{Error, TlsFiles};
use std::path::PathBuf;
use tidegraph_platform::read_secret_file;

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
    /// PEM file with the key of the certificate, which other users of the machine must not be able to read.
    #[arg(long)]
    tls_key: Option<PathBuf>,
    /// Name that the certificates of other processes must hold. Without it: the host of their address.
    #[arg(long)]
    tls_server_name: Option<String>,
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
        Ok(Some(TlsFiles { authorities, certificate, key, server_name: self.tls_server_name.clone() }))
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
            tls_server_name: None,
        };
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        let refused = args.files().unwrap_err().to_string();
        assert!(refused.contains("key.pem") && refused.contains("0644"), "{refused}");
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(args.files().unwrap().unwrap().key, key);
        assert!(TlsArgs { tls_key: None, ..args }.files().unwrap().is_none());
    }
}

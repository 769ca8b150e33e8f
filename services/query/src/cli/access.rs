//! Flags about who may ask, and the record of what was asked.

use crate::audit::Audit;
use crate::authentication::{Authentication, Callers, Signers, Sts, Users};
use anyhow::Context;
use clap::Args;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_platform::{Clock, RealClock, read_secret};

/// Flags about who may ask.
#[derive(Args, Debug)]
pub struct Access {
    /// File whose first line is the token. Every request must send it as `Authorization: Bearer TOKEN`; in Bolt it is
    /// the password of any user.
    #[arg(long, conflicts_with_all = ["users", "sigv4_credentials", "iam_callers"])]
    token_file: Option<PathBuf>,
    /// JSON file of users, with their roles and the hashes of their passwords, which `tidegraph user add` edits. Every
    /// request must send a name and a password. The file is read again when it changes.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sigv4_credentials", "iam_callers"])]
    users: Option<PathBuf>,
    /// JSON file of access keys, with their secrets and roles. Every request must be signed with one of them (AWS
    /// Signature Version 4), as Neptune's clients do. The file is read again when it changes.
    #[arg(long, value_name = "FILE", requires = "sigv4_region", conflicts_with = "iam_callers")]
    sigv4_credentials: Option<PathBuf>,
    /// AWS region for which requests are signed, such as eu-central-1.
    #[arg(long, value_name = "REGION", requires = "sigv4_credentials")]
    sigv4_region: Option<String>,
    /// JSON file of IAM users and roles, with what they may do here. Every request must send what `tidegraph prove`
    /// prints, as its token or password; the service asks AWS (STS) who made it. The file is read again when it changes.
    #[arg(long, value_name = "FILE", requires = "proofs")]
    iam_callers: Option<PathBuf>,
    #[command(flatten)]
    proofs: Option<Proofs>,
    /// Listen on other addresses than loopback ones without TLS or without authentication: something else protects the
    /// port, such as a balancer that ends TLS.
    #[arg(long)]
    insecure: bool,
    /// File to which a line of JSON is appended for each request: who asked for what, from where, how long it took, and
    /// what came of it. Requests are refused while it cannot be written.
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// Add the parameters of queries to the audit log.
    #[arg(long, requires = "audit_log")]
    audit_parameters: bool,
}

/// Flags about proofs of callers that AWS knows, the same for services and for `tidegraph prove`.
#[derive(Args, Clone, Debug)]
#[group(id = "proofs")]
pub struct Proofs {
    /// Name that proofs have to be for: one for each graph or service, so that none can use the proofs of another.
    #[arg(long, value_name = "NAME", required = false, requires = "iam_region")]
    iam_graph: String,
    /// AWS region whose STS is asked, such as eu-central-1.
    #[arg(long, value_name = "REGION", required = false, requires = "iam_graph")]
    iam_region: String,
    /// URL of STS, if it is not the one of the region, such as that of an interface endpoint in a VPC.
    #[arg(long, value_name = "URL", requires = "iam_graph")]
    iam_sts_endpoint: Option<String>,
}

impl Proofs {
    /// Returns the STS that is asked.
    ///
    /// # Errors
    ///
    /// If one of the flags is not what it should be.
    pub fn sts(&self) -> anyhow::Result<Sts> {
        let sts = Sts::new(&self.iam_graph, &self.iam_region, self.iam_sts_endpoint.as_deref());
        sts.map_err(anyhow::Error::msg)
    }
}

/// Reads a token: the first line of a file.
///
/// # Errors
///
/// If the file cannot be read, if every user of the machine can read it, or if the token has fewer than 16 characters.
pub fn read_token(path: &Path) -> anyhow::Result<String> {
    let token = read_secret(path).with_context(|| format!("cannot take a token from {}", path.display()))?;
    anyhow::ensure!(token.len() >= 16, "the token in {} has fewer than 16 characters", path.display());
    Ok(token)
}

impl Access {
    /// Returns how requests prove who sends them.
    ///
    /// # Errors
    ///
    /// If a file cannot be used.
    pub fn authentication(&self) -> anyhow::Result<Authentication> {
        if let Some(file) = &self.users {
            let users = Users::read(file, Arc::new(RealClock::new())).context("--users")?;
            return Ok(Authentication::Users(users));
        }
        if let (Some(file), Some(region)) = (&self.sigv4_credentials, &self.sigv4_region) {
            let signers = Signers::read(file, region.clone()).context("--sigv4-credentials")?;
            return Ok(Authentication::SigV4(signers));
        }
        if let (Some(file), Some(proofs)) = (&self.iam_callers, &self.proofs) {
            let callers =
                Callers::read(file, proofs.sts()?, Arc::new(RealClock::new())).context("--iam-callers")?;
            return Ok(Authentication::Aws(callers));
        }
        Ok(self.token_file.as_deref().map(read_token).transpose()?.into())
    }

    /// Checks that a service which other machines can reach has TLS and asks who sends a request.
    ///
    /// # Errors
    ///
    /// If it has not, and the flags do not say that this is meant; the error names the flags that are missing.
    pub fn ensure_safe(&self, host: IpAddr, has_tls: bool, is_authenticated: bool) -> anyhow::Result<()> {
        if host.is_loopback() || self.insecure {
            return Ok(());
        }
        let mut missing = vec![];
        if !is_authenticated {
            missing.push("who asks (--token-file, --users, --sigv4-credentials or --iam-callers)");
        }
        if !has_tls {
            missing.push("TLS (--listen-tls-certificate and --listen-tls-key, or --listen-tls-self-signed)");
        }
        anyhow::ensure!(
            missing.is_empty(),
            "other machines can reach {host}, and the service would not check or have: {}. Add it, or --insecure if \
             something else protects the port",
            missing.join("; ")
        );
        Ok(())
    }

    /// Opens the audit log.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened.
    pub fn audit(&self) -> anyhow::Result<Option<Audit>> {
        let Some(file) = &self.audit_log else { return Ok(None) };
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let opened = Audit::open(file.clone(), self.audit_parameters, clock);
        Ok(Some(opened.with_context(|| format!("--audit-log {}", file.display()))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        access: Access,
    }

    #[test]
    fn flags_about_callers_of_aws_go_together() {
        let of = |flags: &[&str]| Flags::try_parse_from([&["tidegraph"], flags].concat());
        let all = ["--iam-callers", "f", "--iam-graph", "g", "--iam-region", "eu-central-1"];
        assert!(of(&all).unwrap().access.proofs.unwrap().sts().is_ok());
        assert!(of(&[]).unwrap().access.proofs.is_none());
        for some in [&all[..2], &all[..4], &all[4..], &[&all[..], &["--users", "u"]].concat()] {
            assert!(of(some).is_err(), "{some:?}");
        }
        let wrong = of(&[&all[..5], &["eu/central"]].concat()).unwrap().access.proofs.unwrap();
        assert!(wrong.sts().unwrap_err().to_string().contains("eu/central"));
    }

    #[test]
    fn a_port_of_other_machines_needs_tls_and_authentication_or_insecure() {
        let of = |flags: &[&str], host: &str, has_tls, is_authenticated| {
            let Flags { access } = Flags::parse_from([&["tidegraph"], flags].concat());
            let ensured = access.ensure_safe(host.parse().unwrap(), has_tls, is_authenticated);
            ensured.map_err(|error| error.to_string())
        };
        for host in ["127.0.0.1", "::1", "127.1.2.3"] {
            of(&[], host, false, false).unwrap();
        }
        for host in ["0.0.0.0", "::", "10.0.0.1"] {
            of(&[], host, true, true).unwrap();
            of(&["--insecure"], host, false, false).unwrap();
            let neither = of(&[], host, false, false).unwrap_err();
            let without_tls = of(&[], host, false, true).unwrap_err();
            let open = of(&[], host, true, false).unwrap_err();
            assert!(neither.contains("--users") && neither.contains("--listen-tls-certificate"), "{neither}");
            assert!(!without_tls.contains("--users") && without_tls.contains("TLS"), "{without_tls}");
            assert!(open.contains("--users") && !open.contains("TLS"), "{open}");
            assert!([neither, without_tls, open].iter().all(|error| error.contains("--insecure")));
        }
    }
}

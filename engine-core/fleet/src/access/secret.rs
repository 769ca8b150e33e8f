//! Where a process of a fleet has the fleet's secret and its certificates from. Files and Secrets Manager are read again
//! while the process runs, so that both can be replaced without a restart ([`TokenSource`], [`CertificateSource`]).

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::config::retry::RetryConfig;
use aws_sdk_secretsmanager::config::timeout::TimeoutConfig;
use aws_sdk_secretsmanager::config::{BehaviorVersion, Builder, Region};
use aws_sdk_secretsmanager::error::DisplayErrorContext;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tidegraph_platform::{Clock, read_secret_file};
use tidegraph_remote::{
    CertificateSource, CertificateTexts, Error, Pem, Security, SecurityConfig, TlsMode, TokenSource, Tokens,
};
use tokio::runtime::Runtime;

/// Least length of a secret in characters.
pub const LEAST_CHARACTERS: usize = 16;

/// Time limit of one attempt to read a secret, and the number of attempts. A peer waits meanwhile.
const ATTEMPT: Duration = Duration::from_secs(2);
const ATTEMPTS: u32 = 2;

/// Where the fleet's secret is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum SecretPlace {
    /// In the configuration ([`SecurityConfig::token`]), where it stays the same.
    #[default]
    Configuration,
    /// In a file: the secret in the first line, and the one before it, if it is still accepted, in the second.
    File(PathBuf),
    /// In AWS Secrets Manager: the version `AWSCURRENT`, and `AWSPREVIOUS` as the one before.
    SecretsManager(ManagedSecret),
}

/// A secret in AWS Secrets Manager.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ManagedSecret {
    /// Its name or ARN.
    pub id: String,
    /// Endpoint of Secrets Manager, if it is not the one of the region or of the SDK's own variables.
    pub endpoint: Option<String>,
    /// Region, if it and the credentials come from environment variables only.
    pub region_of_environment: Option<String>,
}

/// Certificates in a secret of AWS Secrets Manager: a JSON object with the PEM texts `authorities`, `certificate` and
/// `key`, the name `serverName` that nodes have, and the `mode`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManagedCertificates {
    /// The secret.
    pub secret: ManagedSecret,
    /// Time between two reads of it.
    pub every: Duration,
}

impl SecretPlace {
    /// Returns the authentication of a process with the secret of this place, and with certificates from files
    /// ([`SecurityConfig::tls`]) or from Secrets Manager.
    ///
    /// # Errors
    /// [`Error::Certificates`] if the certificates cannot be used, [`Error::Secret`] if the secret cannot be read.
    pub fn security(
        &self,
        config: &SecurityConfig,
        certificates: Option<&ManagedCertificates>,
        clock: Arc<dyn Clock>,
    ) -> Result<Security, Error> {
        let source: Arc<dyn TokenSource> = match self {
            Self::Configuration => Arc::new(Tokens { current: config.token.clone(), previous: None }),
            Self::File(path) => Arc::new(File(path.clone())),
            Self::SecretsManager(secret) => Arc::new(Manager::open(secret).map_err(Error::Secret)?),
        };
        let tls: Option<Arc<dyn CertificateSource>> = match (certificates, &config.tls) {
            (Some(place), _) => {
                let manager = Manager::open(&place.secret).map_err(Error::Certificates)?;
                Some(Arc::new(Certificates { manager, every: place.every }))
            }
            (None, Some(files)) => Some(Arc::new(files.clone())),
            (None, None) => None,
        };
        Security::follow(tls, source, clock)
    }
}

/// Checks a secret. The error does not contain it.
fn checked(token: &str, place: &str) -> Result<String, String> {
    let token = token.trim();
    let length = token.chars().count();
    if length < LEAST_CHARACTERS {
        return Err(format!("{place} has {length} characters, fewer than {LEAST_CHARACTERS}"));
    }
    Ok(token.to_owned())
}

struct File(PathBuf);

impl TokenSource for File {
    fn read(&self) -> Result<Tokens, String> {
        let path = self.0.display();
        let text = read_secret_file(&self.0).map_err(|error| format!("{path}: {error}"))?;
        let mut lines = text.lines();
        let current = checked(lines.next().unwrap_or_default(), &format!("{path}, line 1,"))?;
        let previous = lines.next().filter(|line| !line.trim().is_empty());
        let previous = previous.map(|line| checked(line, &format!("{path}, line 2,"))).transpose()?;
        Ok(Tokens { current, previous })
    }
}

/// Reads a secret with the SDK, on a runtime of its own.
struct Manager {
    client: Client,
    id: String,
    runtime: Option<Runtime>,
}

impl Manager {
    fn open(secret: &ManagedSecret) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("secret-requests")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let (sender, connected) = mpsc::sync_channel(1);
        let made = secret.clone();
        runtime.spawn(async move {
            // The receiver is gone if the caller's thread is.
            let _ = sender.send(connect(&made).await);
        });
        let client = connected.recv().map_err(|_| "the process is going down".to_owned())?;
        Ok(Self { client, id: secret.id.clone(), runtime: Some(runtime) })
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // Does not block, so that this may be dropped inside another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Manager {
    /// Reads versions of the secret; `None` if it has no such version.
    fn versions<const N: usize>(
        &self,
        stages: [&'static str; N],
    ) -> Result<[Result<Option<String>, String>; N], String> {
        let gone = || "the process is going down".to_owned();
        let runtime = self.runtime.as_ref().ok_or_else(gone)?;
        let answers = stages.map(|stage| {
            let (sender, answer) = mpsc::sync_channel(1);
            let (client, id) = (self.client.clone(), self.id.clone());
            runtime.spawn(async move {
                let _ = sender.send(version(&client, &id, stage).await);
            });
            answer
        });
        Ok(answers.map(|answer| answer.recv().unwrap_or_else(|_| Err(gone()))))
    }

    fn none(&self) -> String {
        format!("{} has no version AWSCURRENT", self.id)
    }
}

impl TokenSource for Manager {
    fn read(&self) -> Result<Tokens, String> {
        let stages = ["AWSCURRENT", "AWSPREVIOUS"];
        let [current, previous] = self.versions(stages)?;
        let check = |text: Option<String>, stage: &str| {
            text.map(|text| checked(&text, &format!("version {stage} of {}", self.id))).transpose()
        };
        let current = check(current?, stages[0])?.ok_or_else(|| self.none())?;
        Ok(Tokens { current, previous: check(previous?, stages[1])? })
    }
}

/// Certificates in a secret.
struct Certificates {
    manager: Manager,
    every: Duration,
}

/// What the secret has. Fields that are unknown are of a later release.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    authorities: String,
    certificate: String,
    key: String,
    server_name: Option<String>,
    mode: TlsMode,
}

impl CertificateSource for Certificates {
    fn read(&self) -> Result<CertificateTexts, String> {
        let [current] = self.manager.versions(["AWSCURRENT"])?;
        parsed(&current?.ok_or_else(|| self.manager.none())?, &self.manager.id)
    }

    fn every(&self) -> Duration {
        self.every
    }
}

fn parsed(text: &str, id: &str) -> Result<CertificateTexts, String> {
    let document: Document = serde_json::from_str(text).map_err(|error| {
        // The text of the error may quote a value.
        format!(
            "{id} is not a document with certificates: wrong in line {}, column {}",
            error.line(),
            error.column()
        )
    })?;
    let pem = |text: String, field: &str| Pem { text, place: format!("{field} of {id}") };
    Ok(CertificateTexts {
        authorities: pem(document.authorities, "authorities"),
        certificate: pem(document.certificate, "certificate"),
        key: pem(document.key, "key"),
        server_name: document.server_name,
        mode: document.mode,
    })
}

/// Reads one version of a secret; `None` if it has no such version.
async fn version(client: &Client, id: &str, stage: &str) -> Result<Option<String>, String> {
    match client.get_secret_value().secret_id(id).version_stage(stage).send().await {
        Ok(answer) => match answer.secret_string() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(format!("version {stage} of {id} is not a text")),
        },
        // The secret exists if its current version does; the first one has no predecessor.
        Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_not_found_exception()) => {
            Ok(None)
        }
        Err(error) => Err(format!("version {stage} of {id}: {}", DisplayErrorContext(error))),
    }
}

async fn connect(secret: &ManagedSecret) -> Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(ATTEMPT)
        .operation_attempt_timeout(ATTEMPT)
        .operation_timeout(ATTEMPT * (ATTEMPTS + 1))
        .build();
    let mut builder = match &secret.region_of_environment {
        Some(region) => Builder::new()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(EnvironmentVariableCredentialsProvider::new())
            .region(Region::new(region.clone())),
        None => Builder::from(&aws_config::load_defaults(BehaviorVersion::latest()).await),
    };
    if let Some(endpoint) = &secret.endpoint {
        builder = builder.endpoint_url(endpoint);
    }
    let retries = RetryConfig::standard().with_max_attempts(ATTEMPTS);
    Client::from_conf(builder.retry_config(retries).timeout_config(timeouts).build())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use tidegraph_platform::RealClock;

    #[test]
    fn a_file_has_the_secret_and_the_one_before() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("token");
        let put = |text: &str| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        };
        let read = || File(path.clone()).read();
        let (new, old) = ("a-new-secret-of-the-fleet", "an-old-secret-of-the-fleet");
        put(&format!("{new}\n"));
        assert_eq!(read().unwrap(), Tokens { current: new.into(), previous: None });
        put(&format!(" {new} \n {old} \nmore\n"));
        assert_eq!(read().unwrap(), Tokens { current: new.into(), previous: Some(old.into()) });
        for (text, line) in
            [("short\n", "line 1, has 5"), (&format!("{new}\nold\n"), "line 2, has 3"), ("", "has 0")]
        {
            put(text);
            let reason = read().unwrap_err();
            assert!(reason.contains(line) && !reason.contains(new), "{reason}");
        }
        std::fs::remove_file(&path).unwrap();
        let place = SecretPlace::File(path.clone());
        let error = place.security(&SecurityConfig::default(), None, Arc::new(RealClock::new())).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }

    #[test]
    fn a_document_has_certificates_and_no_error_has_its_key() {
        let text = r#"{"authorities": "a", "certificate": "c", "key": "private", "serverName": "n", "mode": "prefer",
            "later": 1}"#;
        let found = parsed(text, "arn:x").unwrap();
        assert_eq!((found.mode, found.server_name.as_deref()), (TlsMode::Prefer, Some("n")));
        assert_eq!((found.key.text.as_str(), found.key.place.as_str()), ("private", "key of arn:x"));
        assert!(!format!("{found:?}").contains("private"));
        for wrong in ["", "{}", "private", &text.replace("prefer", "private"), &text.replace("\"c\"", "7")] {
            let error = parsed(wrong, "arn:x").unwrap_err();
            assert!(
                error.contains("arn:x") && error.contains("line") && !error.contains("private"),
                "{error}"
            );
        }
    }
}

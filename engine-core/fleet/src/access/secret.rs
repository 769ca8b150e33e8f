//! Where a process of a fleet has the fleet's secret from. A file and Secrets Manager are read again while the process
//! runs, so that a secret can be replaced without a restart ([`TokenSource`]).

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::config::retry::RetryConfig;
use aws_sdk_secretsmanager::config::timeout::TimeoutConfig;
use aws_sdk_secretsmanager::config::{BehaviorVersion, Builder, Region};
use aws_sdk_secretsmanager::error::DisplayErrorContext;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tidegraph_platform::{Clock, read_secret_file};
use tidegraph_remote::{Error, Security, SecurityConfig, TokenSource, Tokens};
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

impl SecretPlace {
    /// Returns the authentication of a process with the secret of this place.
    ///
    /// # Errors
    /// [`Error::Certificates`] if the certificates cannot be used, [`Error::Secret`] if the secret cannot be read.
    pub fn security(&self, config: &SecurityConfig, clock: Arc<dyn Clock>) -> Result<Security, Error> {
        let source: Arc<dyn TokenSource> = match self {
            Self::Configuration => return Security::load(config),
            Self::File(path) => Arc::new(File(path.clone())),
            Self::SecretsManager(secret) => Arc::new(Manager::open(secret).map_err(Error::Secret)?),
        };
        Security::follow(config.tls.as_ref(), source, clock)
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

impl TokenSource for Manager {
    fn read(&self) -> Result<Tokens, String> {
        let gone = || "the process is going down".to_owned();
        let runtime = self.runtime.as_ref().ok_or_else(gone)?;
        let (sender, answer) = mpsc::sync_channel(1);
        let (client, id) = (self.client.clone(), self.id.clone());
        runtime.spawn(async move {
            let both =
                tokio::join!(version(&client, &id, "AWSCURRENT"), version(&client, &id, "AWSPREVIOUS"),);
            let _ = sender.send(both);
        });
        let (current, previous) = answer.recv().map_err(|_| gone())?;
        let none = || format!("{} has no version AWSCURRENT", self.id);
        Ok(Tokens { current: current?.ok_or_else(none)?, previous: previous? })
    }
}

/// Reads one version of a secret; `None` if it has no such version.
async fn version(client: &Client, id: &str, stage: &str) -> Result<Option<String>, String> {
    match client.get_secret_value().secret_id(id).version_stage(stage).send().await {
        Ok(answer) => {
            let text = answer.secret_string().ok_or_else(|| format!("{id} is not a text"))?;
            Ok(Some(checked(text, &format!("version {stage} of {id}"))?))
        }
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
        let error = place.security(&SecurityConfig::default(), Arc::new(RealClock::new())).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

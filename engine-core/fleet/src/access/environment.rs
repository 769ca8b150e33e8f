//! Reads the configuration of a function from environment variables. Every value is checked before any connection is
//! made; an unknown variable with Tidegraph's prefix is refused, because it is probably misspelt.

use super::{Access, LEAST_CHARACTERS, ManagedCertificates, ManagedSecret, SecretPlace, Table};
use crate::WorkerConfig;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_remote::{SecurityConfig, TlsFiles, TlsMode};

/// Prefix of Tidegraph's variables.
const PREFIX: &str = "TIDEGRAPH_";

/// Variables that Lambda sets. Without them the runtime client would end the process with a less helpful error.
pub const OF_LAMBDA: [&str; 5] = [
    "AWS_REGION",
    "AWS_LAMBDA_RUNTIME_API",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_FUNCTION_VERSION",
];

/// Why the environment cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Invalid {
    /// A required variable is not set.
    #[error("the environment variable {variable} is not set: {reason}")]
    Missing {
        /// Its name.
        variable: String,
        /// Why it is required.
        reason: String,
    },
    /// A variable has an invalid value.
    #[error("the environment variable {variable} is {value:?}, and has to be {expected}")]
    Value {
        /// Its name.
        variable: String,
        /// Its value.
        value: String,
        /// The values that are allowed.
        expected: String,
    },
    /// A variable with Tidegraph's prefix is unknown.
    #[error("the environment variable {variable} is not one of Tidegraph's")]
    Unknown {
        /// Its name.
        variable: String,
    },
    /// A file that a variable names cannot be read.
    #[error("cannot read the file {path} that {variable} names: {source}")]
    File {
        /// The variable.
        variable: String,
        /// The file.
        path: String,
        /// Why not.
        source: Arc<std::io::Error>,
    },
}

/// Environment variables, which are read one by one. Those that are left at the end are unknown.
#[derive(Debug)]
pub struct Variables {
    ours: BTreeMap<String, String>,
    aws: OfAws,
}

impl Variables {
    /// Takes the variables of a function. `instead` says in the error which program runs elsewhere.
    ///
    /// # Errors
    /// [`Invalid::Missing`] if a variable of Lambda is not set.
    pub fn of_function(
        environment: impl IntoIterator<Item = (String, String)>,
        instead: &str,
    ) -> Result<Self, Invalid> {
        let all: BTreeMap<_, _> = environment.into_iter().collect();
        if let Some(variable) = OF_LAMBDA.into_iter().find(|name| !all.contains_key(*name)) {
            let reason = format!("this program runs as a Lambda function; {instead}");
            return Err(Invalid::Missing { variable: variable.into(), reason });
        }
        let aws = OfAws {
            region: all.get("AWS_REGION").cloned(),
            endpoint: endpoint_of_aws(&all, "AWS_ENDPOINT_URL_DYNAMODB"),
            endpoint_of_secrets: endpoint_of_aws(&all, "AWS_ENDPOINT_URL_SECRETS_MANAGER"),
        };
        let ours = all.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
        let mut found = Self { ours, aws };
        // It configures traces, which are set up before.
        found.text("LOG");
        Ok(found)
    }

    /// Reads how the fleet is reached.
    ///
    /// # Errors
    /// The first variable that is invalid or missing.
    pub fn access(&mut self) -> Result<Access, Invalid> {
        let mut worker = WorkerConfig {
            zone: self.text("ZONE").unwrap_or_default(),
            // Each request asks for the version instead: between two requests the process is stopped.
            version_every: Duration::ZERO,
            ..WorkerConfig::default()
        };
        worker.watch.refresh_every = Duration::from_millis(self.number("MAP_POLL_MS", 5_000)?);
        let patience_ms = self.number("WRITE_PATIENCE_MS", worker.patience.as_millis() as u64)?;
        worker.patience = Duration::from_millis(patience_ms);
        let graph = self.text("GRAPH").unwrap_or_else(|| "default".into());
        let (security, secret) = security(self)?;
        let certificates = certificates(self, &security)?;
        Ok(Access { graph, table: table(self)?, security, secret, certificates, worker })
    }

    /// Reads the bucket with segments and jobs, which is the workers' bucket. `None` if it is not set.
    ///
    /// # Errors
    /// [`Invalid::Value`] if it is not an S3 URI of a bucket.
    pub fn bucket(&mut self) -> Result<Option<String>, Invalid> {
        let Some(objects) = self.text("OBJECTS") else { return Ok(None) };
        let bucket = objects.strip_prefix("s3://").map(|bucket| bucket.trim_end_matches('/'));
        match bucket.filter(|bucket| !bucket.is_empty() && !bucket.contains('/')) {
            Some(bucket) => Ok(Some(bucket.to_owned())),
            None => Err(wrong("OBJECTS", &objects, "s3:// and the name of a bucket")),
        }
    }

    /// Checks that no variable is left.
    ///
    /// # Errors
    /// [`Invalid::Unknown`] names the first variable that is left.
    pub fn finish(mut self) -> Result<(), Invalid> {
        match self.ours.pop_first() {
            Some((variable, _)) => Err(Invalid::Unknown { variable }),
            None => Ok(()),
        }
    }

    /// Returns a secret in Secrets Manager.
    fn managed(&self, id: String) -> ManagedSecret {
        ManagedSecret {
            id,
            endpoint: self.aws.endpoint_of_secrets.clone(),
            region_of_environment: self.aws.region.clone(),
        }
    }

    /// Reads a variable; `None` if it is not set or empty.
    pub fn text(&mut self, name: &str) -> Option<String> {
        self.ours.remove(&format!("{PREFIX}{name}")).filter(|value| !value.is_empty())
    }

    /// Reads and parses a variable. `expected` describes the allowed values, for the error.
    ///
    /// # Errors
    /// [`Invalid::Value`] if it cannot be parsed.
    pub fn or<T: FromStr>(&mut self, name: &str, expected: &str, default: T) -> Result<T, Invalid> {
        let Some(value) = self.text(name) else { return Ok(default) };
        value.parse().map_err(|_| wrong(name, &value, expected))
    }

    /// Reads a whole number above 0.
    ///
    /// # Errors
    /// [`Invalid::Value`] for any other value.
    pub fn number(&mut self, name: &str, default: u64) -> Result<u64, Invalid> {
        let found = self.or(name, "a whole number above 0", default)?;
        if found == 0 { Err(wrong(name, "0", "a whole number above 0")) } else { Ok(found) }
    }
}

/// Returns the error for an invalid value of a variable, whose name is given without the prefix.
#[must_use]
pub fn wrong(name: &str, value: &str, expected: &str) -> Invalid {
    Invalid::Value {
        variable: format!("{PREFIX}{name}"),
        value: value.to_owned(),
        expected: expected.to_owned(),
    }
}

/// Values of AWS's own variables.
#[derive(Debug)]
struct OfAws {
    region: Option<String>,
    endpoint: Option<String>,
    endpoint_of_secrets: Option<String>,
}

/// Returns the endpoint of a service from the variables that all AWS SDKs know. To start fast, the clients read no
/// settings except what is passed to them, so these variables are read here.
fn endpoint_of_aws(all: &BTreeMap<String, String>, of_service: &str) -> Option<String> {
    if all.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").is_some_and(|value| value.eq_ignore_ascii_case("true"))
    {
        return None;
    }
    let set = |name: &str| all.get(name).filter(|value| !value.is_empty()).cloned();
    set(of_service).or_else(|| set("AWS_ENDPOINT_URL"))
}

fn table(found: &mut Variables) -> Result<Table, Invalid> {
    let endpoint = found.text("DYNAMODB_ENDPOINT");
    let has_its_own = endpoint.is_some();
    let table = Table {
        prefix: found.text("TABLE_PREFIX").unwrap_or_else(|| "tidegraph-".into()),
        endpoint: endpoint.or_else(|| found.aws.endpoint.clone()),
        local: found.or("DYNAMODB_LOCAL", "true or false", false)?,
        region_of_environment: found.aws.region.clone(),
    };
    if table.local && !has_its_own {
        let reason = "TIDEGRAPH_DYNAMODB_LOCAL is true, and DynamoDB Local has an address of its own";
        let variable = format!("{PREFIX}DYNAMODB_ENDPOINT");
        return Err(Invalid::Missing { variable, reason: reason.into() });
    }
    Ok(table)
}

fn security(found: &mut Variables) -> Result<(SecurityConfig, SecretPlace), Invalid> {
    let names = ["FLEET_TOKEN", "FLEET_TOKEN_FILE", "FLEET_SECRET"];
    let given = names.map(|name| found.text(name));
    if let [Some(_), Some(_), _] | [Some(_), _, Some(_)] | [_, Some(_), Some(_)] = given {
        let which = names.map(|name| format!("{PREFIX}{name}")).join(", ");
        let first = names[given.iter().position(Option::is_some).unwrap_or_default()];
        return Err(wrong(first, "…", &format!("the only one of {which} that is set")));
    }
    let [token, path, secret] = given;
    let token = token.unwrap_or_default();
    if !token.is_empty() && token.chars().count() < LEAST_CHARACTERS {
        // The error does not contain the secret.
        return Err(wrong(names[0], "…", &format!("a secret of at least {LEAST_CHARACTERS} characters")));
    }
    let place = match (path, secret) {
        (Some(path), _) => {
            let path = PathBuf::from(path);
            // A wrong path is reported at the start, and not by each request.
            if let Err(error) = tidegraph_platform::read_secret(&path) {
                let variable = format!("{PREFIX}{}", names[1]);
                let path = path.display().to_string();
                return Err(Invalid::File { variable, path, source: Arc::new(error) });
            }
            SecretPlace::File(path)
        }
        (None, Some(id)) => SecretPlace::SecretsManager(found.managed(id)),
        (None, None) => SecretPlace::Configuration,
    };
    let names = ["TLS_AUTHORITIES", "TLS_CERTIFICATE", "TLS_KEY"];
    let files = names.map(|name| found.text(name).map(PathBuf::from));
    let server_name = found.text("TLS_SERVER_NAME");
    let mode = match found.text("TLS_MODE").as_deref() {
        None | Some("require") => TlsMode::Require,
        Some("prefer") => TlsMode::Prefer,
        Some("accept") => TlsMode::Accept,
        Some(other) => return Err(wrong("TLS_MODE", other, "accept, prefer or require")),
    };
    let tls = match files {
        [Some(authorities), Some(certificate), Some(key)] => {
            Some(TlsFiles { authorities, certificate, key, server_name, mode })
        }
        [None, None, None] => None,
        some => {
            let missing = some.iter().position(Option::is_none).unwrap_or_default();
            let reason = "certificates need an authority, a certificate and its key";
            let variable = format!("{PREFIX}{}", names[missing]);
            return Err(Invalid::Missing { variable, reason: reason.into() });
        }
    };
    Ok((SecurityConfig { token, tls }, place))
}

/// Time between two reads of certificates in Secrets Manager.
const CERTIFICATES_EVERY_MS: u64 = 300_000;

fn certificates(
    found: &mut Variables,
    security: &SecurityConfig,
) -> Result<Option<ManagedCertificates>, Invalid> {
    let every = Duration::from_millis(found.number("TLS_POLL_MS", CERTIFICATES_EVERY_MS)?);
    let Some(id) = found.text("TLS_SECRET") else { return Ok(None) };
    if security.tls.is_some() {
        return Err(wrong("TLS_SECRET", &id, "not set beside the files of certificates"));
    }
    Ok(Some(ManagedCertificates { secret: found.managed(id), every }))
}

//! What the environment variables of a function say. Every value is checked before anything is connected to; a variable of ours
//! that is not known is refused, since it is a known one misspelt.

use super::{Access, Table};
use crate::WorkerConfig;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use tidegraph_remote::{SecurityConfig, TlsFiles};

/// What our variables begin with.
const PREFIX: &str = "TIDEGRAPH_";

/// What Lambda sets; the runtime client ends the process without them, and says less.
pub const OF_LAMBDA: [&str; 5] = [
    "AWS_REGION",
    "AWS_LAMBDA_RUNTIME_API",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_FUNCTION_VERSION",
];

/// Why the environment cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Invalid {
    /// Something is missing.
    #[error("the environment variable {variable} is not set: {reason}")]
    Missing {
        /// Its name.
        variable: String,
        /// What it is for.
        reason: String,
    },
    /// Something is there that cannot be.
    #[error("the environment variable {variable} is {value:?}, and has to be {expected}")]
    Value {
        /// Its name.
        variable: String,
        /// What it says.
        value: String,
        /// What it may say.
        expected: String,
    },
    /// A variable that nobody reads.
    #[error("the environment variable {variable} is not one of Tidegraph's")]
    Unknown {
        /// Its name.
        variable: String,
    },
    /// A file that a variable names.
    #[error("the file {path} that {variable} names cannot be used: {reason}")]
    File {
        /// The variable.
        variable: String,
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
}

/// Variables that are read one after the other; what is left at the end is not known.
#[derive(Debug)]
pub struct Variables {
    ours: BTreeMap<String, String>,
    aws: OfAws,
}

impl Variables {
    /// Those of a function. `instead`: what runs on other machines.
    pub fn of_function(
        environment: impl IntoIterator<Item = (String, String)>,
        instead: &str,
    ) -> Result<Self, Invalid> {
        let all: BTreeMap<_, _> = environment.into_iter().collect();
        if let Some(variable) = OF_LAMBDA.into_iter().find(|name| !all.contains_key(*name)) {
            let reason = format!("this program runs as a Lambda function; {instead}");
            return Err(Invalid::Missing { variable: variable.into(), reason });
        }
        let aws = OfAws { region: all.get("AWS_REGION").cloned(), endpoint: endpoint_of_aws(&all) };
        let ours = all.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
        let mut found = Self { ours, aws };
        // Of the log, which is set up before.
        found.text("LOG");
        Ok(found)
    }

    /// How the fleet is reached.
    pub fn access(&mut self) -> Result<Access, Invalid> {
        let mut worker = WorkerConfig {
            zone: self.text("ZONE").unwrap_or_default(),
            // Asked for with each request instead: between two of them the process stands still.
            version_ms: 0,
            ..WorkerConfig::default()
        };
        worker.watch.poll_ms = self.number("MAP_POLL_MS", 5_000)?;
        worker.patience_ms = self.number("WRITE_PATIENCE_MS", worker.patience_ms)?;
        let graph = self.text("GRAPH").unwrap_or_else(|| "default".into());
        Ok(Access { graph, table: table(self)?, security: security(self)?, worker })
    }

    /// The bucket with segments and jobs, if it is said: that of the workers.
    pub fn bucket(&mut self) -> Result<Option<String>, Invalid> {
        let Some(objects) = self.text("OBJECTS") else { return Ok(None) };
        let bucket = objects.strip_prefix("s3://").map(|bucket| bucket.trim_end_matches('/'));
        match bucket.filter(|bucket| !bucket.is_empty() && !bucket.contains('/')) {
            Some(bucket) => Ok(Some(bucket.to_owned())),
            None => Err(wrong("OBJECTS", &objects, "s3:// and the name of a bucket")),
        }
    }

    /// All were read.
    pub fn finish(mut self) -> Result<(), Invalid> {
        match self.ours.pop_first() {
            Some((variable, _)) => Err(Invalid::Unknown { variable }),
            None => Ok(()),
        }
    }

    /// One that was set and is not empty.
    pub fn text(&mut self, name: &str) -> Option<String> {
        self.ours.remove(&format!("{PREFIX}{name}")).filter(|value| !value.is_empty())
    }

    /// One that says something of a type; `expected` says what, for the error.
    pub fn or<T: FromStr>(&mut self, name: &str, expected: &str, default: T) -> Result<T, Invalid> {
        let Some(value) = self.text(name) else { return Ok(default) };
        value.parse().map_err(|_| wrong(name, &value, expected))
    }

    /// A whole number above 0.
    pub fn number(&mut self, name: &str, default: u64) -> Result<u64, Invalid> {
        let found = self.or(name, "a whole number above 0", default)?;
        if found == 0 { Err(wrong(name, "0", "a whole number above 0")) } else { Ok(found) }
    }
}

/// A variable of ours says what it cannot.
#[must_use]
pub fn wrong(name: &str, value: &str, expected: &str) -> Invalid {
    Invalid::Value {
        variable: format!("{PREFIX}{name}"),
        value: value.to_owned(),
        expected: expected.to_owned(),
    }
}

/// What AWS's own variables say.
#[derive(Debug)]
struct OfAws {
    region: Option<String>,
    endpoint: Option<String>,
}

/// Another endpoint of DynamoDB, by the variables that all of AWS's SDKs know. Ours reads no other settings than the environment's, for the sake of its
/// cold start, and so not these either.
fn endpoint_of_aws(all: &BTreeMap<String, String>) -> Option<String> {
    if all.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").is_some_and(|value| value.eq_ignore_ascii_case("true"))
    {
        return None;
    }
    let set = |name: &str| all.get(name).filter(|value| !value.is_empty()).cloned();
    set("AWS_ENDPOINT_URL_DYNAMODB").or_else(|| set("AWS_ENDPOINT_URL"))
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

fn security(found: &mut Variables) -> Result<SecurityConfig, Invalid> {
    let (name, least) = ("FLEET_TOKEN", 16);
    let token = match (found.text(name), found.text("FLEET_TOKEN_FILE")) {
        (Some(_), Some(_)) => {
            return Err(wrong(name, "…", "left out where TIDEGRAPH_FLEET_TOKEN_FILE is set"));
        }
        (Some(token), None) => token,
        (None, Some(path)) => {
            let variable = format!("{PREFIX}FLEET_TOKEN_FILE");
            let read = std::fs::read_to_string(&path);
            let text = read.map_err(|error| Invalid::File { variable, path, reason: error.to_string() })?;
            text.lines().next().unwrap_or_default().trim().to_owned()
        }
        (None, None) => String::new(),
    };
    if !token.is_empty() && token.len() < least {
        // Not the secret itself.
        return Err(wrong(name, "…", &format!("a secret of at least {least} characters")));
    }
    let names = ["TLS_AUTHORITIES", "TLS_CERTIFICATE", "TLS_KEY"];
    let files = names.map(|name| found.text(name).map(PathBuf::from));
    let server_name = found.text("TLS_SERVER_NAME");
    let tls = match files {
        [Some(authorities), Some(certificate), Some(key)] => {
            Some(TlsFiles { authorities, certificate, key, server_name })
        }
        [None, None, None] => None,
        some => {
            let missing = some.iter().position(Option::is_none).unwrap_or_default();
            let reason = "certificates need an authority, a certificate and its key";
            let variable = format!("{PREFIX}{}", names[missing]);
            return Err(Invalid::Missing { variable, reason: reason.into() });
        }
    };
    Ok(SecurityConfig { token, tls })
}

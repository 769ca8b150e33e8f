//! What the environment variables of a function say. Every value is checked before anything is connected to; a variable of ours
//! that is not known is refused, since it is a known one misspelt.

use crate::access::{Access, Table};
use crate::http::Limits;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tidegraph_engine::Options;
use tidegraph_fleet::WorkerConfig;
use tidegraph_remote::{SecurityConfig, TlsFiles};

/// What our variables begin with.
const PREFIX: &str = "TIDEGRAPH_";

/// What Lambda sets; the runtime client ends the process without them, and says less.
const OF_LAMBDA: [&str; 5] = [
    "AWS_REGION",
    "AWS_LAMBDA_RUNTIME_API",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_FUNCTION_VERSION",
];

/// How answers go back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Responses {
    /// In pieces, as API Gateway takes them with the response transfer mode `STREAM`: up to 200 MB.
    Stream,
    /// As one JSON document, for the transfer mode `BUFFERED`: up to 6 MB.
    Buffer,
}

/// Settings of a function.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// How the fleet is reached.
    pub access: Access,
    /// Limits of requests.
    pub limits: Limits,
    /// Limits of queries.
    pub options: Options,
    /// How answers go back.
    pub responses: Responses,
    /// What stands before our paths where a custom domain maps a base path: empty, or `/name`.
    pub base_path: String,
}

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
struct Variables(BTreeMap<String, String>);

impl Variables {
    /// One that was set and is not empty.
    fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(&format!("{PREFIX}{name}")).filter(|value| !value.is_empty())
    }

    fn or<T: FromStr>(&mut self, name: &str, expected: &str, default: T) -> Result<T, Invalid> {
        let Some(value) = self.text(name) else { return Ok(default) };
        value.parse().map_err(|_| wrong(name, &value, expected))
    }

    fn number(&mut self, name: &str, default: u64) -> Result<u64, Invalid> {
        let found = self.or(name, "a whole number above 0", default)?;
        if found == 0 { Err(wrong(name, "0", "a whole number above 0")) } else { Ok(found) }
    }
}

fn wrong(name: &str, value: &str, expected: &str) -> Invalid {
    Invalid::Value {
        variable: format!("{PREFIX}{name}"),
        value: value.to_owned(),
        expected: expected.to_owned(),
    }
}

impl Configuration {
    /// Reads and checks variables.
    pub fn read(environment: impl IntoIterator<Item = (String, String)>) -> Result<Self, Invalid> {
        let all: BTreeMap<_, _> = environment.into_iter().collect();
        if let Some(variable) = OF_LAMBDA.into_iter().find(|name| !all.contains_key(*name)) {
            let reason =
                "this program runs as a Lambda function; `tidegraph worker` is the one for other machines";
            return Err(Invalid::Missing { variable: variable.into(), reason: reason.into() });
        }
        let aws = OfAws { region: all.get("AWS_REGION").cloned(), endpoint: endpoint_of_aws(&all) };
        let mut found = Variables(all.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect());
        // Of the log, which is set up before.
        found.text("LOG");
        let (limits, defaults) = (Limits::default(), Options::default());
        let timeout_ms = found.number("QUERY_TIMEOUT_MS", defaults.query_timeout_ms)?;
        let options = Options {
            query_timeout_ms: timeout_ms,
            query_memory_bytes: found.number("QUERY_MEMORY_BYTES", defaults.query_memory_bytes)?,
            query_rows: found.number("QUERY_ROWS", defaults.query_rows)?,
            ..defaults
        };
        let limits = Limits { query_timeout: Duration::from_millis(timeout_ms), ..limits };
        let mut worker = WorkerConfig {
            zone: found.text("ZONE").unwrap_or_default(),
            // Asked for with each request instead: between two of them the process stands still.
            version_ms: 0,
            ..WorkerConfig::default()
        };
        worker.watch.poll_ms = found.number("MAP_POLL_MS", 5_000)?;
        worker.patience_ms = found.number("WRITE_PATIENCE_MS", worker.patience_ms)?;
        let graph = found.text("GRAPH").unwrap_or_else(|| "default".into());
        let access =
            Access { graph, table: table(&mut found, aws)?, security: security(&mut found)?, worker };
        let responses = match found.text("RESPONSES").as_deref() {
            None | Some("stream") => Responses::Stream,
            Some("buffer") => Responses::Buffer,
            Some(other) => return Err(wrong("RESPONSES", other, "stream or buffer")),
        };
        let base_path = found.text("BASE_PATH").unwrap_or_default();
        if !base_path.is_empty() && (!base_path.starts_with('/') || base_path.ends_with('/')) {
            return Err(wrong(
                "BASE_PATH",
                &base_path,
                "a path that begins with / and does not end with one",
            ));
        }
        if let Some((variable, _)) = found.0.pop_first() {
            return Err(Invalid::Unknown { variable });
        }
        Ok(Self { access, limits, options, responses, base_path })
    }
}

/// What AWS's own variables say.
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

fn table(found: &mut Variables, aws: OfAws) -> Result<Table, Invalid> {
    let endpoint = found.text("DYNAMODB_ENDPOINT");
    let has_its_own = endpoint.is_some();
    let table = Table {
        prefix: found.text("TABLE_PREFIX").unwrap_or_else(|| "tidegraph-".into()),
        endpoint: endpoint.or(aws.endpoint),
        local: found.or("DYNAMODB_LOCAL", "true or false", false)?,
        region_of_environment: aws.region,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ours: &[(&str, &str)]) -> Result<Configuration, String> {
        let lambda = OF_LAMBDA.map(|name| (name.to_owned(), "1".to_owned()));
        let ours = ours.iter().map(|(name, value)| (format!("{PREFIX}{name}"), (*value).to_owned()));
        Configuration::read(lambda.into_iter().chain(ours)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_set_has_a_default() {
        let found = read(&[]).unwrap();
        assert_eq!(
            (found.access.graph.as_str(), found.access.table.prefix.as_str()),
            ("default", "tidegraph-")
        );
        assert_eq!((found.responses, found.access.worker.version_ms), (Responses::Stream, 0));
        let found = read(&[
            ("GRAPH", "g"),
            ("QUERY_TIMEOUT_MS", "1500"),
            ("RESPONSES", "buffer"),
            ("FLEET_TOKEN", "0123456789abcdef"),
            ("ZONE", ""),
            ("LOG", "debug"),
        ]);
        let found = found.unwrap();
        assert_eq!(found.limits.query_timeout, Duration::from_millis(1500));
        assert_eq!(found.options.query_timeout_ms, 1500);
        assert_eq!(found.access.security.token, "0123456789abcdef");
        assert_eq!((found.responses, found.access.graph.as_str()), (Responses::Buffer, "g"));
    }

    #[test]
    fn the_endpoint_of_dynamodb_is_the_one_that_is_named_most_closely() {
        let of = |variables: &[(&str, &str)]| {
            let lambda = OF_LAMBDA.map(|name| (name.to_owned(), "1".to_owned()));
            let others = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Configuration::read(lambda.into_iter().chain(others)).unwrap().access.table.endpoint
        };
        assert_eq!(of(&[]), None);
        let all = ("AWS_ENDPOINT_URL", "http://all");
        assert_eq!(of(&[all]).as_deref(), Some("http://all"));
        assert_eq!(of(&[("AWS_ENDPOINT_URL", "")]), None);
        let of_service = ("AWS_ENDPOINT_URL_DYNAMODB", "http://table");
        assert_eq!(of(&[all, of_service]).as_deref(), Some("http://table"));
        assert_eq!(of(&[all, of_service, ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "TRUE")]), None);
        let ours = ("TIDEGRAPH_DYNAMODB_ENDPOINT", "http://ours");
        assert_eq!(of(&[all, of_service, ours]).as_deref(), Some("http://ours"));
    }

    #[test]
    fn what_cannot_be_is_named() {
        let says = |ours: &[(&str, &str)], parts: &[&str]| {
            let error = read(ours).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        };
        says(&[("QUERY_TIMEOUT_MS", "soon")], &["TIDEGRAPH_QUERY_TIMEOUT_MS", "soon", "whole number"]);
        says(&[("QUERY_ROWS", "0")], &["TIDEGRAPH_QUERY_ROWS", "above 0"]);
        says(&[("RESPONSES", "both")], &["TIDEGRAPH_RESPONSES", "both", "stream or buffer"]);
        says(&[("GRAHP", "g")], &["TIDEGRAPH_GRAHP", "not one of Tidegraph's"]);
        says(&[("DYNAMODB_LOCAL", "true")], &["TIDEGRAPH_DYNAMODB_ENDPOINT", "not set"]);
        says(&[("DYNAMODB_LOCAL", "yes")], &["TIDEGRAPH_DYNAMODB_LOCAL", "true or false"]);
        says(&[("TLS_KEY", "/k"), ("TLS_AUTHORITIES", "/a")], &["TIDEGRAPH_TLS_CERTIFICATE", "not set"]);
        says(&[("FLEET_TOKEN_FILE", "/nowhere/t")], &["TIDEGRAPH_FLEET_TOKEN_FILE", "/nowhere/t"]);
        says(&[("BASE_PATH", "db/")], &["TIDEGRAPH_BASE_PATH", "db/"]);
        let secret = read(&[("FLEET_TOKEN", "hunter2")]).unwrap_err();
        assert!(secret.contains("16 characters") && !secret.contains("hunter2"), "{secret}");
        let elsewhere = Configuration::read([]).unwrap_err().to_string();
        assert!(elsewhere.contains("AWS_REGION") && elsewhere.contains("tidegraph worker"), "{elsewhere}");
    }
}

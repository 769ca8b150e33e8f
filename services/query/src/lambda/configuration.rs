//! The settings of a function, from its environment variables. All values are checked before the function connects to
//! anything. An unknown variable with the prefix of Tidegraph is refused, because it is most likely a misspelt one.

use crate::http::Limits;
use std::time::Duration;
use tidegraph_engine::Options;
use tidegraph_fleet::access::Access;
use tidegraph_fleet::access::environment::{Variables, wrong};

pub use tidegraph_fleet::access::environment::Invalid;

/// How the function sends answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Responses {
    /// In pieces, for API Gateway's response transfer mode `STREAM`: up to 200 MB.
    Stream,
    /// As one JSON document, for the response transfer mode `BUFFERED`: up to 6 MB.
    Buffer,
}

/// Settings of a function.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// How to reach each graph of the fleet. Paths without a graph are about the first one.
    pub graphs: Vec<Access>,
    /// Limits of requests.
    pub limits: Limits,
    /// Limits of queries.
    pub options: Options,
    /// How the function sends answers.
    pub responses: Responses,
    /// Prefix of all paths where a custom domain maps a base path: empty, or `/name`.
    pub base_path: String,
    /// Bucket with the jobs of loads. Without it the function does not answer about loads.
    pub bucket: Option<String>,
}

impl Configuration {
    /// Reads and checks the variables.
    ///
    /// # Errors
    ///
    /// If a variable is missing, wrong or unknown; the error names it.
    pub fn read(environment: impl IntoIterator<Item = (String, String)>) -> Result<Self, Invalid> {
        let mut found = Variables::of_function(environment, "on other machines run `tidegraph worker`")?;
        let (limits, defaults) = (Limits::default(), Options::default());
        let default_ms = defaults.query_timeout.as_millis() as u64;
        let query_timeout = Duration::from_millis(found.number("QUERY_TIMEOUT_MS", default_ms)?);
        let streams = match found.text("STREAMS").as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => return Err(wrong("STREAMS", other, "true or false")),
        };
        let options = Options {
            streams,
            query_timeout,
            query_memory_bytes: found.number("QUERY_MEMORY_BYTES", defaults.query_memory_bytes)?,
            query_rows: found.number("QUERY_ROWS", defaults.query_rows)?,
            ..defaults
        };
        let mut limits = limits;
        limits.queries.query_timeout = query_timeout;
        let total = limits.queries.memory_total_bytes;
        limits.queries.memory_total_bytes = found.number("QUERY_MEMORY_TOTAL_BYTES", total)?;
        let graphs = found.accesses()?;
        let responses = match found.text("RESPONSES").as_deref() {
            None | Some("stream") => Responses::Stream,
            Some("buffer") => Responses::Buffer,
            Some(other) => return Err(wrong("RESPONSES", other, "stream or buffer")),
        };
        let base_path = found.text("BASE_PATH").unwrap_or_default();
        if !base_path.is_empty() && (!base_path.starts_with('/') || base_path.ends_with('/')) {
            return Err(wrong("BASE_PATH", &base_path, "a path that begins with / and does not end with /"));
        }
        let bucket = found.bucket()?;
        found.finish()?;
        Ok(Self { graphs, limits, options, responses, base_path, bucket })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_fleet::access::environment::OF_LAMBDA;
    use tidegraph_fleet::access::{ManagedSecret, SecretPlace};

    const PREFIX: &str = "TIDEGRAPH_";

    fn read(ours: &[(&str, &str)]) -> Result<Configuration, String> {
        let lambda = OF_LAMBDA.map(|name| (name.to_owned(), "1".to_owned()));
        let ours = ours.iter().map(|(name, value)| (format!("{PREFIX}{name}"), (*value).to_owned()));
        Configuration::read(lambda.into_iter().chain(ours)).map_err(|error| error.to_string())
    }

    #[test]
    fn missing_variables_have_defaults() {
        let found = read(&[]).unwrap();
        let access = &found.graphs[0];
        assert_eq!((access.graph.as_str(), access.table.prefix.as_str()), ("default", "tidegraph-"));
        assert_eq!((found.responses, access.worker.version_every), (Responses::Stream, Duration::ZERO));
        let found = read(&[
            ("GRAPH", "g"),
            ("QUERY_TIMEOUT_MS", "1500"),
            ("RESPONSES", "buffer"),
            ("FLEET_TOKEN", "0123456789abcdef"),
            ("ZONE", ""),
            ("LOG", "debug"),
            ("OBJECTS", "s3://data"),
        ]);
        let found = found.unwrap();
        assert_eq!(found.limits.queries.query_timeout, Duration::from_millis(1500));
        assert_eq!(found.options.query_timeout, Duration::from_millis(1500));
        assert_eq!(found.graphs[0].security.token, "0123456789abcdef");
        assert_eq!((found.responses, found.graphs[0].graph.as_str()), (Responses::Buffer, "g"));
        assert_eq!(found.bucket.as_deref(), Some("data"));
    }

    #[test]
    fn a_function_may_have_several_graphs() {
        let found = read(&[("GRAPH", "orders,eu.people"), ("TABLE_PREFIX", "p-")]).unwrap().graphs;
        let names: Vec<_> = found.iter().map(|of| (of.graph.as_str(), of.table.prefix.as_str())).collect();
        assert_eq!(names, [("orders", "p-"), ("eu.people", "p-")]);
    }

    #[test]
    fn the_most_specific_endpoint_of_dynamodb_wins() {
        let of = |variables: &[(&str, &str)]| {
            let lambda = OF_LAMBDA.map(|name| (name.to_owned(), "1".to_owned()));
            let others = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Configuration::read(lambda.into_iter().chain(others)).unwrap().graphs[0].table.endpoint.clone()
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
    fn the_secret_may_be_in_secrets_manager() {
        let lambda = OF_LAMBDA.map(|name| (name.to_owned(), "1".to_owned()));
        let others = [
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", "http://secrets"),
            ("TIDEGRAPH_FLEET_SECRET", "arn:aws:secretsmanager:x"),
        ];
        let others = others.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let found = Configuration::read(lambda.into_iter().chain(others)).unwrap().graphs.remove(0);
        let secret = ManagedSecret {
            id: "arn:aws:secretsmanager:x".into(),
            endpoint: Some("http://secrets".into()),
            region_of_environment: Some("1".into()),
        };
        assert_eq!(
            (found.secret, found.security.token),
            (SecretPlace::SecretsManager(secret), String::new())
        );
    }

    #[test]
    fn an_error_names_the_wrong_variable() {
        let says = |ours: &[(&str, &str)], parts: &[&str]| {
            let error = read(ours).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        };
        says(&[("QUERY_TIMEOUT_MS", "soon")], &["TIDEGRAPH_QUERY_TIMEOUT_MS", "soon", "whole number"]);
        says(&[("QUERY_ROWS", "0")], &["TIDEGRAPH_QUERY_ROWS", "above 0"]);
        says(&[("RESPONSES", "both")], &["TIDEGRAPH_RESPONSES", "both", "stream or buffer"]);
        for names in ["a,", "a,b,a", "a, b", ".a", "a/b"] {
            says(&[("GRAPH", names)], &["TIDEGRAPH_GRAPH", names, "commas"]);
        }
        says(&[("GRAHP", "g")], &["TIDEGRAPH_GRAHP", "not one of Tidegraph's"]);
        says(&[("DYNAMODB_LOCAL", "true")], &["TIDEGRAPH_DYNAMODB_ENDPOINT", "not set"]);
        says(&[("DYNAMODB_LOCAL", "yes")], &["TIDEGRAPH_DYNAMODB_LOCAL", "true or false"]);
        says(&[("TLS_KEY", "/k"), ("TLS_AUTHORITIES", "/a")], &["TIDEGRAPH_TLS_CERTIFICATE", "not set"]);
        says(&[("FLEET_TOKEN_FILE", "/nowhere/t")], &["TIDEGRAPH_FLEET_TOKEN_FILE", "/nowhere/t"]);
        says(&[("BASE_PATH", "db/")], &["TIDEGRAPH_BASE_PATH", "db/"]);
        says(
            &[("FLEET_TOKEN", "0123456789abcdef"), ("FLEET_SECRET", "fleet")],
            &["TIDEGRAPH_FLEET_TOKEN", "the only one of", "TIDEGRAPH_FLEET_SECRET"],
        );
        let secret = read(&[("FLEET_TOKEN", "hunter2")]).unwrap_err();
        assert!(secret.contains("16 characters") && !secret.contains("hunter2"), "{secret}");
        let elsewhere = Configuration::read([]).unwrap_err().to_string();
        assert!(elsewhere.contains("AWS_REGION") && elsewhere.contains("tidegraph worker"), "{elsewhere}");
    }
}

//! Settings of the function, from environment variables. An unknown `TIDEGRAPH_` variable is refused: it is probably
//! misspelt.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;
use tidegraph_types::is_graph_name;

/// Prefix of the variables.
const PREFIX: &str = "TIDEGRAPH_";

/// Settings of the function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Names of the graphs, at least one. Events without a graph are about the first one.
    pub graphs: Vec<String>,
    /// Prefix of the table's name.
    pub table_prefix: String,
    /// An endpoint instead of the region's.
    pub endpoint: Option<String>,
    /// Whether the endpoint is DynamoDB Local, which takes any credentials.
    pub is_local: bool,
    /// The region, which Lambda sets.
    pub region: Option<String>,
    /// Number of nodes that must be up before the graph is placed for the first time.
    pub nodes: usize,
    /// Maximum number of moves at once.
    pub moves: usize,
    /// Maximum number of restores on one node at once.
    pub restores_per_node: usize,
    /// Time without a heartbeat after which a node is lost.
    pub silence: Duration,
    /// How long the holder relies on a lease after a renewal: longer than a state machine waits between two steps.
    pub lease: Duration,
}

/// Why the environment variables cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Invalid {
    /// A value that is not allowed.
    #[error("the environment variable {variable} is {value:?}, and has to be {expected}")]
    Value {
        /// Its name.
        variable: String,
        /// Its value.
        value: String,
        /// The values that are allowed.
        expected: &'static str,
    },
    /// An unknown variable with the prefix of Tidegraph.
    #[error("the environment variable {variable} is not one of Tidegraph's: check its spelling")]
    Unknown {
        /// Its name.
        variable: String,
    },
}

impl Settings {
    /// Reads and checks variables.
    ///
    /// # Errors
    /// [`Invalid`] for the first variable that is unknown or has a value that is not allowed.
    pub fn read(environment: impl IntoIterator<Item = (String, String)>) -> Result<Self, Invalid> {
        let environment: BTreeMap<String, String> = environment.into_iter().collect();
        let mut region = None;
        let of_aws = endpoint_of_aws(&environment);
        let mut ours = BTreeMap::new();
        for (name, value) in environment {
            if let Some(name) = name.strip_prefix(PREFIX) {
                ours.insert(name.to_owned(), value);
            } else if name == "AWS_REGION" {
                region = Some(value);
            }
        }
        // The variable of the log filter, which `main` reads.
        ours.remove("LOG");
        let text = |ours: &mut BTreeMap<String, String>, name: &str| {
            ours.remove(name).filter(|value| !value.is_empty())
        };
        let number = |ours: &mut BTreeMap<String, String>, name: &str, default: u64, most: u64| {
            let expected = "a whole number above 0 that is not too large";
            let found = parsed(ours, name, expected, default)?;
            match found {
                1.. if found <= most => Ok(found),
                _ => Err(wrong(name, found.to_string(), expected)),
            }
        };
        let found = Self {
            graphs: graphs(text(&mut ours, "GRAPH"))?,
            table_prefix: text(&mut ours, "TABLE_PREFIX").unwrap_or_else(|| "tidegraph-".into()),
            endpoint: text(&mut ours, "DYNAMODB_ENDPOINT").or(of_aws),
            is_local: parsed(&mut ours, "DYNAMODB_LOCAL", "true or false", false)?,
            region,
            nodes: number(&mut ours, "NODES", 1, 10_000)? as usize,
            moves: number(&mut ours, "MOVES", 32, super::MOST_MOVES as u64)? as usize,
            restores_per_node: number(&mut ours, "RESTORES_PER_NODE", 4, 64)? as usize,
            silence: Duration::from_millis(number(&mut ours, "SILENCE_MS", 10_000, 600_000)?),
            lease: Duration::from_millis(number(&mut ours, "LEASE_MS", 120_000, 3_600_000)?),
        };
        match ours.pop_first() {
            Some((name, _)) => Err(Invalid::Unknown { variable: format!("{PREFIX}{name}") }),
            None if found.is_local && found.endpoint.is_none() => {
                let expected = "false where TIDEGRAPH_DYNAMODB_ENDPOINT is not set";
                Err(wrong("DYNAMODB_LOCAL", "true".into(), expected))
            }
            None => Ok(found),
        }
    }
}

/// Reads names of graphs with commas between; without any, the graph `default`.
fn graphs(names: Option<String>) -> Result<Vec<String>, Invalid> {
    let Some(names) = names else { return Ok(vec!["default".into()]) };
    let all: Vec<String> = names.split(',').map(str::to_owned).collect();
    let expected = "names of graphs with commas between, each given once";
    let is_right = |(at, name): (usize, &String)| is_graph_name(name) && !all[..at].contains(name);
    match all.iter().enumerate().all(is_right) {
        true => Ok(all),
        false => Err(wrong("GRAPH", names, expected)),
    }
}

/// The endpoint of DynamoDB in AWS's own variables. The client does not look for them by itself here.
fn endpoint_of_aws(all: &BTreeMap<String, String>) -> Option<String> {
    let set = |name: &str| all.get(name).filter(|value| !value.is_empty()).cloned();
    match all.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") {
        Some(value) if value.eq_ignore_ascii_case("true") => None,
        _ => set("AWS_ENDPOINT_URL_DYNAMODB").or_else(|| set("AWS_ENDPOINT_URL")),
    }
}

fn parsed<T: FromStr>(
    ours: &mut BTreeMap<String, String>,
    name: &str,
    expected: &'static str,
    default: T,
) -> Result<T, Invalid> {
    let Some(value) = ours.remove(name).filter(|value| !value.is_empty()) else { return Ok(default) };
    value.parse().map_err(|_| wrong(name, value, expected))
}

fn wrong(name: &str, value: String, expected: &'static str) -> Invalid {
    Invalid::Value { variable: format!("{PREFIX}{name}"), value, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ours: &[(&str, &str)]) -> Result<Settings, String> {
        let ours = ours.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::read(ours).map_err(|error| error.to_string())
    }

    #[test]
    fn missing_variables_have_defaults() {
        let found =
            read(&[("AWS_REGION", "eu-west-3"), ("PATH", "/bin"), ("TIDEGRAPH_LOG", "debug")]).unwrap();
        assert_eq!((found.graphs, found.nodes, found.moves), (vec!["default".to_owned()], 1, 32));
        assert_eq!(found.region.as_deref(), Some("eu-west-3"));
        let found =
            read(&[("TIDEGRAPH_GRAPH", "g"), ("TIDEGRAPH_NODES", "6"), ("TIDEGRAPH_LEASE_MS", "")]).unwrap();
        assert_eq!((found.graphs, found.nodes, found.lease.as_secs()), (vec!["g".to_owned()], 6, 120));
    }

    #[test]
    fn the_endpoint_comes_from_our_variable_or_aws_s() {
        let of = |ours: &[(&str, &str)]| read(ours).unwrap().endpoint;
        let all = ("AWS_ENDPOINT_URL", "http://all");
        let table = ("AWS_ENDPOINT_URL_DYNAMODB", "http://table");
        assert_eq!(of(&[all]).as_deref(), Some("http://all"));
        assert_eq!(of(&[all, table]).as_deref(), Some("http://table"));
        assert_eq!(of(&[all, table, ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "TRUE")]), None);
        assert_eq!(
            of(&[all, ("TIDEGRAPH_DYNAMODB_ENDPOINT", "http://ours")]).as_deref(),
            Some("http://ours")
        );
        assert_eq!(of(&[("AWS_ENDPOINT_URL", "")]), None);
    }

    #[test]
    fn errors_name_the_wrong_variable() {
        let says = |name: &str, value: &str, part: &str| {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.contains(name) && error.contains(part), "{error}");
        };
        says("TIDEGRAPH_MOVES", "0", "above 0");
        says("TIDEGRAPH_MOVES", "100000", "too large");
        says("TIDEGRAPH_SILENCE_MS", "soon", "soon");
        says("TIDEGRAPH_DYNAMODB_LOCAL", "true", "DYNAMODB_ENDPOINT");
        says("TIDEGRAPH_GRAHP", "g", "not one of");
        for names in ["a,", "a,b,a", "a, b", ".a", "a/b"] {
            says("TIDEGRAPH_GRAPH", names, names);
        }
        assert_eq!(read(&[("TIDEGRAPH_GRAPH", "b,a.c_-")]).unwrap().graphs, ["b", "a.c_-"]);
    }
}

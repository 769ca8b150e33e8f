//! The request for a load.

use serde::{Deserialize, Serialize};
use tidegraph_load::Dialect;
use tidegraph_load::run::Parallelism;

/// Whether a load continues an earlier load of the same source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Mode {
    /// Skips the files that an earlier load of the source has loaded; fails without an earlier load.
    Resume,
    /// Loads all files.
    New,
    /// Acts as `Resume` if there is an earlier load, and as `New` otherwise.
    Auto,
}

/// The request for a load, with the parameters of the loader API.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// `file://` or `s3://` addresses of files or folders, which become visible together.
    pub sources: Vec<String>,
    /// Dialect of the files; `None` to detect it from the header of the first file, as a drop folder does.
    #[serde(rename = "format", with = "stored_format")]
    pub dialect: Option<Dialect>,
    /// Region of the bucket.
    pub region: Option<String>,
    /// Whether the load continues an earlier one.
    pub mode: Mode,
    /// Whether the first refused row fails the load.
    pub fail_on_error: bool,
    /// Number of parse threads.
    pub parallelism: Parallelism,
    /// Whether empty quoted fields are empty strings.
    pub allow_empty_strings: bool,
    /// Whether a new value of a single-cardinality property replaces the old one.
    pub update_single_cardinality_properties: bool,
    /// Whether to queue the load if another one runs.
    pub queue_request: bool,
    /// Ids of loads that must complete before this one begins.
    pub dependencies: Vec<String>,
    /// Whether relationship files of openCypher have a column `:ID`.
    pub user_provided_edge_ids: bool,
    /// Whether to read files in order, without reading their headers first.
    pub edge_only_load: bool,
}

impl LoadSpec {
    /// Makes a request with the loader API's defaults.
    #[must_use]
    pub fn new(sources: Vec<String>, dialect: Option<Dialect>) -> Self {
        Self {
            sources,
            dialect,
            region: None,
            mode: Mode::New,
            fail_on_error: true,
            parallelism: Parallelism::High,
            allow_empty_strings: false,
            update_single_cardinality_properties: false,
            queue_request: true,
            dependencies: vec![],
            user_provided_edge_ids: true,
            edge_only_load: false,
        }
    }
}

/// The dialect as jobs store it: its job name, or `Detect`.
mod stored_format {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use tidegraph_load::Dialect;

    const DETECT: &str = "Detect";

    pub fn serialize<S: Serializer>(dialect: &Option<Dialect>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(dialect.map_or(DETECT, Dialect::job_name))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Dialect>, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == DETECT {
            return Ok(None);
        }
        let unknown = || de::Error::custom(format!("{name:?} is not the format of a job"));
        Dialect::with_job_name(&name).map(Some).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_of_formats_stay() {
        for (dialect, name) in [
            (Some(Dialect::GREMLIN), "GremlinCsv"),
            (Some(Dialect::OPENCYPHER), "OpenCypherCsv"),
            (None, "Detect"),
        ] {
            let spec = LoadSpec::new(vec!["file:///x".into()], dialect);
            let json = serde_json::to_value(&spec).unwrap();
            assert_eq!(json["format"], name);
            assert_eq!(serde_json::from_value::<LoadSpec>(json).unwrap(), spec);
        }
    }
}

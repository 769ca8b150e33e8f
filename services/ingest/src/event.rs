//! Events of the state machine. `contracts/schemas/ingest-event.schema.json` is their schema.

use crate::Error;
use serde::{Deserialize, Deserializer, de};
use tidegraph_engine::loads::{Dialect, LoadSpec, Stage};

/// Limit of tasks of a stage.
const MOST_TASKS: u32 = 10_000;
/// Limit of attempts to commit a load.
const MOST_ROUNDS: u32 = 65_536;
/// Limit of files that an event names.
const MOST_FILES: usize = 1_000;
/// Limit of a key below the source, in bytes.
const LONGEST_FILE: usize = 1_024;

/// A request of the state machine: an event of one graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The graph; `None` for the first one.
    pub graph: Option<String>,
    /// What is to be done.
    pub event: Event,
}

impl Request {
    /// Parses and checks a request, whose field `graph` stands beside those of its event.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if it violates its schema.
    pub fn read(mut request: serde_json::Value) -> Result<Self, Error> {
        let graph = request.as_object_mut().and_then(|fields| fields.remove("graph"));
        let graph = graph.map(String::deserialize).transpose();
        let graph = graph.map_err(|error| Error::invalid(format!("graph: {error}")))?;
        Ok(Self { graph, event: Event::read(request)? })
    }
}

/// An event. An unknown field is refused, because it may be a misspelt one.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Event {
    /// Plans a load.
    Begin {
        /// Id of the load, a UUID.
        load_id: String,
        /// `s3://BUCKET/drop/GRAPH/NAME/`.
        source: String,
        /// Keys below the source; `None` for all files that are not marks.
        #[serde(default)]
        files: Option<Vec<String>>,
        /// Dialect of the files; `None` to detect it from the header of the first file.
        #[serde(rename = "format", deserialize_with = "dialect")]
        dialect: Option<Dialect>,
        /// Whether the first refused row ends the load.
        fail_on_error: bool,
        /// Whether a new value of a single-cardinality property replaces the old one.
        update_single_cardinality_properties: bool,
        /// Whether `""` is a value.
        allow_empty_strings: bool,
        /// Whether relationship files in openCypher's dialect have the column `:ID`.
        user_provided_edge_ids: bool,
        /// A parameter of the loader API without effect here: the steps always read headers first.
        edge_only_load: bool,
    },
    /// Runs a task.
    Work {
        /// Id of the load.
        load_id: String,
        /// Stage.
        stage: Stage,
        /// Number of the attempt to commit that the task is for.
        round: u32,
        /// Number of the task.
        task: u32,
    },
    /// Continues after all tasks of a stage were completed.
    Next {
        /// Id of the load.
        load_id: String,
        /// Stage.
        stage: Stage,
        /// Number of the attempt to commit that the tasks were for.
        round: u32,
    },
    /// Makes the load visible.
    Commit {
        /// Id of the load.
        load_id: String,
        /// Number of the attempt.
        round: u32,
    },
    /// Ends a load after a step failed and retries did not help.
    Abandon {
        /// Id of the load.
        load_id: String,
        /// Name of the error.
        error: String,
        /// Message of the error.
        cause: String,
    },
}

/// Reads a dialect by the loader API's name; `detect` takes that of the first file's header.
fn dialect<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Dialect>, D::Error> {
    const DETECT: &str = "detect";
    let name = String::deserialize(deserializer)?;
    if name == DETECT {
        return Ok(None);
    }
    Dialect::all().find(|dialect| dialect.name() == name).map(Some).ok_or_else(|| {
        let names = Dialect::all().map(Dialect::name).chain([DETECT]);
        let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
        de::Error::custom(format!("unknown format `{name}`, expected one of {}", names.join(", ")))
    })
}

impl Event {
    /// Parses and checks an event.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the event violates its schema.
    pub fn read(event: serde_json::Value) -> Result<Self, Error> {
        let event: Self =
            serde_json::from_value(event).map_err(|error| Error::invalid(format!("the event: {error}")))?;
        event.check()?;
        Ok(event)
    }

    /// Returns the id of the load.
    #[must_use]
    pub fn load_id(&self) -> &str {
        match self {
            Self::Begin { load_id, .. }
            | Self::Work { load_id, .. }
            | Self::Next { load_id, .. }
            | Self::Commit { load_id, .. }
            | Self::Abandon { load_id, .. } => load_id,
        }
    }

    fn check(&self) -> Result<(), Error> {
        let load_id = self.load_id();
        if !is_uuid(load_id) {
            return Err(Error::invalid(format!("loadId {load_id:?} is no UUID in lower case")));
        }
        let below = |what: &str, number: u32, most: u32| {
            let message = || format!("{what} {number} is not below {most}");
            if number < most { Ok(()) } else { Err(Error::invalid(message())) }
        };
        match self {
            Self::Begin { source, files, .. } => {
                let parts = source.strip_prefix("s3://").map(|rest| rest.split('/').collect::<Vec<_>>());
                let is_drop = matches!(parts.as_deref(), Some([bucket, "drop", graph, name, ""])
                    if !bucket.is_empty() && !graph.is_empty() && !name.is_empty());
                if !is_drop {
                    let expected = "s3://BUCKET/drop/GRAPH/NAME/";
                    return Err(Error::invalid(format!("source {source:?} is not of the form {expected}")));
                }
                check_files(files.as_deref())
            }
            Self::Work { round, task, .. } => {
                below("round", *round, MOST_ROUNDS)?;
                below("task", *task, MOST_TASKS)
            }
            Self::Next { round, .. } | Self::Commit { round, .. } => below("round", *round, MOST_ROUNDS),
            Self::Abandon { .. } => Ok(()),
        }
    }
}

fn check_files(files: Option<&[String]>) -> Result<(), Error> {
    let Some(files) = files else { return Ok(()) };
    if files.is_empty() || files.len() > MOST_FILES {
        return Err(Error::invalid(format!("{} files are named; 1 to {MOST_FILES} may be", files.len())));
    }
    for file in files {
        let part_is_bad = |part: &str| matches!(part, "" | "." | "..");
        let is_bad = file.len() > LONGEST_FILE
            || file.split('/').any(part_is_bad)
            || file.chars().any(|c| c.is_control() || c == '\\');
        if is_bad {
            return Err(Error::invalid(format!("the file {file:?} is no key below the source")));
        }
    }
    Ok(())
}

/// Returns the request to the loader API that has the same effect.
pub(crate) fn spec_of(
    source: String,
    dialect: Option<Dialect>,
    [
        fail_on_error,
        update_single_cardinality_properties,
        allow_empty_strings,
        user_provided_edge_ids,
        edge_only_load,
    ]: [bool; 5],
) -> LoadSpec {
    LoadSpec {
        fail_on_error,
        update_single_cardinality_properties,
        allow_empty_strings,
        user_provided_edge_ids,
        edge_only_load,
        ..LoadSpec::new(vec![source], dialect)
    }
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12]
        && groups.concat().bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

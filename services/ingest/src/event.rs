//! What a state machine asks for. `contracts/schemas/ingest-event.schema.json` says the same.

use crate::Error;
use serde::{Deserialize, Deserializer, de};
use tidegraph_engine::loads::{Dialect, LoadSpec, Stage};

/// Most tasks of a stage.
const MOST_TASKS: u32 = 10_000;
/// Most rounds that a state machine can count.
const MOST_ROUNDS: u32 = 65_536;
/// Most files that an event names.
const MOST_FILES: usize = 1_000;
/// Longest key below the source.
const LONGEST_FILE: usize = 1_024;

/// An event. A field that is not known is refused: it is a known one misspelt.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Event {
    /// Plans a load.
    Begin {
        /// Id of the load, a UUID.
        load_id: String,
        /// `s3://BUCKET/drop/GRAPH/NAME/`.
        source: String,
        /// Keys below the source; all that are no marks if it is not there.
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
        /// openCypher: whether relationship files have `:ID`.
        user_provided_edge_ids: bool,
        /// The loader API has it; the steps always look at headers first.
        edge_only_load: bool,
    },
    /// Does a task.
    Work {
        /// Which load.
        load_id: String,
        /// Which stage.
        stage: Stage,
        /// Which try to commit it is for.
        round: u32,
        /// Which task.
        task: u32,
    },
    /// All tasks of a stage are done.
    Next {
        /// Which load.
        load_id: String,
        /// Which stage.
        stage: Stage,
        /// Which try to commit it was for.
        round: u32,
    },
    /// Makes the load visible.
    Commit {
        /// Which load.
        load_id: String,
        /// Which try it is.
        round: u32,
    },
    /// Ends a load of which a step failed for good.
    Abandon {
        /// Which load.
        load_id: String,
        /// The name of the error.
        error: String,
        /// What is known of it.
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
    /// Reads an event, and checks what types do not say.
    pub fn read(event: serde_json::Value) -> Result<Self, Error> {
        let event: Self =
            serde_json::from_value(event).map_err(|error| Error::invalid(format!("the event: {error}")))?;
        event.check()?;
        Ok(event)
    }

    /// Which load it is about.
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

/// What the loader API would be asked for the same.
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

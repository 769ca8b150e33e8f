//! Settings of a database.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use tidegraph_gremlin::Version;
use tidegraph_load::source::Allowed;
use tidegraph_plan::Procedures;
use tidegraph_types::{Cardinality, ElementIds, ErrorCode, GremlinSettings};

/// Settings of a database. `partitions`, `hash_bits`, `ids` and `default_cardinality` are fixed when the graph is made; later
/// the graph decides.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Directory of the graph; `None` for a graph in memory that ends with the process.
    pub data_dir: Option<PathBuf>,
    /// `None`: a write is answered once the disk has it. Otherwise a write is answered once the
    /// operating system has it, and the log is synced this much later. If only the
    /// process dies, nothing is lost; a power failure loses at most the newest writes, those of
    /// this interval and of one sync. Loads and checkpoints are always synced.
    pub sync_log_every: Option<Duration>,
    /// Opens a graph whose directory lost log files if exactly this version is left of it. The error of an open without
    /// it names the version.
    pub accept_loss: Option<u64>,
    /// Memory budget of the graph; `None` for no limit. Properties beyond the budget move to a file in `spill_dir`.
    /// Vertices, edges and indexes stay in memory; if they alone exceed the budget, writes are refused.
    pub memory_budget_bytes: Option<u64>,
    /// Local directory of the file for properties beyond the budget, and of the temporary files of queries; `None` for
    /// one in `data_dir`, or among the system's temporary files if the graph is in memory.
    pub spill_dir: Option<PathBuf>,
    /// Most bytes of all queries together in temporary files, for rows beyond their memory: sorted ones, groups, distinct
    /// ones, and those that wait. 0: none, so that a query fails at its memory limit; `None`: half of what is free.
    pub query_spill_bytes: Option<u64>,
    /// Whether the log says what each transaction changes, by ids and with former values, so that
    /// [`Database::changes`](crate::Database::changes) can tell it. It makes records of the log two to four times as long.
    pub streams: bool,
    /// What `CALL` may name. Programs add their own procedures:
    ///
    /// ```
    /// use tidegraph_engine::plan::{Procedure, Procedures, Signature, TypeTest, ValueType};
    /// use tidegraph_engine::{Database, Language, Options, Parameters, Query};
    /// use tidegraph_types::Value;
    ///
    /// let text = || TypeTest::or_null(ValueType::String);
    /// let signature = Signature::new("text.words").argument("text", text()).column("word", text());
    /// let words = Procedure::new(signature, |arguments, rows| {
    ///     let mut words = arguments[0].as_str().unwrap_or_default().split_whitespace();
    ///     words.try_for_each(|word| rows.add(vec![word.into()]))
    /// });
    /// let options = Options { procedures: Procedures::default().with(words)?, ..Options::default() };
    /// let database = Database::open(options)?;
    /// let query = "CALL text.words('log and graph') YIELD word RETURN collect(word) AS words";
    /// let answer = database.query(&Query::new(Language::OpenCypher, query, &Parameters::default()))?;
    /// assert_eq!(answer.rows, [[Value::list(vec!["log".into(), "and".into(), "graph".into()])]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[serde(skip)]
    pub procedures: Procedures,
    /// What `LOAD CSV` and Gremlin's `io()` may read: nothing by default.
    ///
    /// ```
    /// use tidegraph_engine::loads::Allowed;
    /// use tidegraph_engine::{Database, Language, Options, Parameters, Query};
    /// use tidegraph_types::Value;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let file = folder.path().join("people.csv");
    /// std::fs::write(&file, "name,born\nAda,1815\nGrace,1906\n")?;
    ///
    /// let load_from = Allowed::parse([folder.path().display().to_string()])?;
    /// let database = Database::open(Options { load_from, ..Options::default() })?;
    /// let mut parameters = Parameters::default();
    /// parameters.insert("url".into(), Value::string(format!("file://{}", file.display())));
    /// let text = "LOAD CSV WITH HEADERS FROM $url AS row \
    ///             CREATE (p:Person {name: row.name, born: toInteger(row.born)}) RETURN max(p.born) AS born";
    /// let answer = database.query(&Query::new(Language::OpenCypher, text, &parameters))?;
    /// assert_eq!(answer.rows, [[Value::from(1906_i64)]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[serde(skip)]
    pub load_from: Allowed,
    /// Number of partitions of a new graph: a power of two.
    pub partitions: u16,
    /// The types of ids in Gremlin, of a new graph; `None` for strings. A graph that was made with others is not opened.
    pub ids: Option<ElementIds>,
    /// The cardinality of a vertex property that Gremlin writes without one, of a new graph; `None` for a set. A graph that was
    /// made with another one is not opened.
    pub default_cardinality: Option<Cardinality>,
    /// The version of Gremlin of requests that name none.
    #[serde(with = "gremlin_version")]
    pub gremlin_version: Version,
    /// Time limit of a query.
    pub query_timeout: Duration,
    /// Memory limit of a query: what its operators buffer, its pending writes, and the rows of its answer.
    pub query_memory_bytes: u64,
    /// Most threads of a query, with its own; `None`: as many as there are processors. All queries together have one thread
    /// fewer of them besides their own.
    pub query_threads: Option<usize>,
    /// How long a query runs on its own thread before free threads help it. Starting a thread takes about 50 microseconds.
    pub query_alone: Duration,
    /// Maximum number of rows of an answer.
    pub query_rows: u64,
    /// How often a request runs again after a conflict before the caller gets the error.
    pub conflict_retries: u32,
    /// A checkpoint is written after this many bytes of log, or after as many bytes as the last checkpoint rewrote, if
    /// that is more.
    pub checkpoint_log_bytes: u64,
    /// Number of checkpoints to keep.
    pub checkpoints_kept: usize,
    /// Number of plans to cache, by text.
    pub cached_plans: usize,
    /// Number of bits of the id hash; below 64 only in tests of collisions.
    pub hash_bits: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data_dir: None,
            sync_log_every: None,
            accept_loss: None,
            memory_budget_bytes: None,
            spill_dir: None,
            query_spill_bytes: None,
            streams: false,
            procedures: Procedures::default(),
            load_from: Allowed::nothing(),
            partitions: 8,
            ids: None,
            default_cardinality: None,
            gremlin_version: Version::default(),
            query_timeout: Duration::from_secs(120),
            query_memory_bytes: 1 << 30,
            query_threads: None,
            query_alone: Duration::from_millis(5),
            query_rows: 10_000_000,
            conflict_retries: 16,
            checkpoint_log_bytes: 256 << 20,
            checkpoints_kept: 2,
            cached_plans: 1_024,
            hash_bits: 64,
        }
    }
}

impl Options {
    /// Returns the settings of Gremlin of a new graph.
    pub(crate) fn new_gremlin(&self) -> GremlinSettings {
        let default = GremlinSettings::default();
        GremlinSettings {
            ids: self.ids.unwrap_or(default.ids),
            default_cardinality: self.default_cardinality.unwrap_or(default.default_cardinality),
        }
    }

    /// Refuses settings of Gremlin that are not those of the graph.
    pub(crate) fn check_gremlin(&self, graph: GremlinSettings) -> Result<(), Error> {
        let (has, wanted) = match (self.ids, self.default_cardinality) {
            (Some(ids), _) if ids != graph.ids => (format!("ids {}", graph.ids), ids.to_string()),
            (_, Some(cardinality)) if cardinality != graph.default_cardinality => {
                (format!("the default cardinality {}", graph.default_cardinality), cardinality.to_string())
            }
            _ => return Ok(()),
        };
        let message = format!(
            "the graph was made with {has} and cannot be opened with {wanted}: leave the setting out, or make another graph"
        );
        Err(Error::new(ErrorCode::InvalidParameter, message))
    }
}

/// A version of Gremlin as text.
mod gremlin_version {
    use serde::{Deserialize, Deserializer, Serializer};
    use tidegraph_gremlin::Version;

    pub(super) fn serialize<S: Serializer>(version: &Version, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(version)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Version, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

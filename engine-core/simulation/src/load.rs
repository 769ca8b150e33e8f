//! Bulk loads drawn at random: the rows of their files, and what they do to the items of a graph.
//!
//! A load has vertices of its own, whose ids no other load has, and rows for items that statements write too. Its files
//! are in one of two forms, whose outcome at the version of the load is exact: openCypher CSV keeps the values that the
//! graph has at that version; Gremlin CSV with `updateSingleCardinalityProperties` replaces them.

use crate::items::{LABEL, id_of};
use crate::statement::{CODE, CODES, ITEMS, KEY, KEYS};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_engine::loads::{Dialect, LoadSpec, LoadState, LoadStatus, Parallelism};
use tidegraph_platform::{Random, SeededRandom};
use tidegraph_types::Version;

/// The label that loads give besides [`LABEL`].
pub(crate) const LOADED: &str = "Loaded";
/// The property of vertices and edges with the number of the load.
pub(crate) const LOAD: &str = "load";
/// The label of edges of loads.
pub(crate) const LOAD_EDGE: &str = "LOADS";

/// A row of a vertex file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct VertexRow {
    pub id: String,
    pub code: Option<i64>,
    pub key: Option<i64>,
}

impl VertexRow {
    /// Returns the properties of the row, in a load with a number.
    pub fn properties(&self, number: i64) -> impl Iterator<Item = (&'static str, i64)> {
        let values = [(CODE, self.code), (KEY, self.key), (LOAD, Some(number))];
        values.into_iter().filter_map(|(key, value)| Some((key, value?)))
    }
}

/// The rows of a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LoadPlan {
    pub number: i64,
    /// Whether its values replace those of the graph; otherwise those of the graph stay.
    pub replaces: bool,
    pub vertices: Vec<VertexRow>,
    /// Source and target of each edge.
    pub edges: Vec<(String, String)>,
}

/// How a load ended, as its job says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LoadEnd {
    pub state: LoadState,
    pub version: Option<Version>,
    pub message: Option<String>,
    /// Codes of refused rows.
    pub errors: Vec<String>,
}

impl LoadEnd {
    pub fn of(status: &LoadStatus) -> Self {
        let code = |row: &serde_json::Value| row["errorCode"].as_str().unwrap_or_default().to_owned();
        Self {
            state: status.overall.state,
            version: status.version.map(Version),
            message: status.overall.message.clone(),
            errors: status.errors.iter().map(code).collect(),
        }
    }

    /// What is known of a load whose worker died before the object store took its job: it must not be visible.
    pub fn without_job() -> Self {
        let message = Some("it has no job".to_owned());
        Self { state: LoadState::Failed, version: None, message, errors: vec![] }
    }

    /// Whether the job says that nobody knows the outcome: not yet, or no more, since sequencers forget old requests.
    pub fn is_open(&self) -> bool {
        let unknown = |message: &String| message.contains("it is unknown whether the load is visible");
        !self.state.is_final() || self.message.as_ref().is_some_and(unknown)
    }
}

/// A load that a worker has submitted.
#[derive(Clone, Debug)]
pub(crate) struct SubmittedLoad {
    pub plan: LoadPlan,
    /// The newest version that the worker knew before.
    pub since: Version,
    /// Whether several workers do it in steps.
    pub in_steps: bool,
}

/// All loads that workers have submitted, by their ids.
pub(crate) type SubmittedLoads = Arc<Mutex<BTreeMap<String, SubmittedLoad>>>;

impl LoadPlan {
    /// Draws a load. `writer` is the number of the process, `count` that of its loads and statements so far.
    pub fn draw(random: &SeededRandom, writer: usize, count: i64) -> Self {
        let below = |count: u64| random.below(count) as i64;
        let number = (writer as i64 + 1) * 1_000_000 + count;
        let mut vertices: Vec<VertexRow> = (0..1 + below(3))
            .map(|row| {
                // Mostly a key of its own: otherwise no constraint could be made beside many loads.
                let key = if random.one_in(6) { below(KEYS) } else { 1_000 + 10 * number + row };
                let id = format!("{}L{number}x{row}", &id_of(0)[..1]);
                VertexRow { id, code: Some(below(CODES)), key: random.one_in(2).then_some(key) }
            })
            .collect();
        let own: Vec<String> = vertices.iter().map(|row| row.id.clone()).collect();
        for item in 0..ITEMS {
            if random.one_in(3) {
                let (code, key) = (below(CODES), below(KEYS));
                let code = random.one_in(2).then_some(code);
                vertices.push(VertexRow { id: id_of(item), code, key: random.one_in(8).then_some(key) });
            }
        }
        let mut edges = Vec::new();
        for from in &own {
            let to = &vertices[random.below(vertices.len() as u64) as usize].id;
            edges.push((from.clone(), to.clone()));
            if random.one_in(3) {
                // Perhaps no row of the load: then the graph must have it.
                edges.push((id_of(random.below(ITEMS)), from.clone()));
            }
        }
        Self { number, replaces: random.one_in(2), vertices, edges }
    }

    /// Whether the load has a row for a vertex, or an edge of it.
    pub fn meets(&self, id: &str) -> bool {
        self.vertices.iter().any(|row| row.id == id)
            || self.edges.iter().any(|(from, to)| from == id || to == id)
    }

    /// Returns the load without rows that the graph may refuse.
    pub fn without_risks(mut self) -> Self {
        self.vertices.iter_mut().for_each(|row| row.key = None);
        let own: Vec<&String> = self.vertices.iter().map(|row| &row.id).collect();
        self.edges.retain(|(from, to)| own.contains(&from) && own.contains(&to));
        self
    }

    /// Writes the files of the load below a folder, and returns the request for it.
    pub fn write(&self, folder: &Path) -> std::io::Result<LoadSpec> {
        let folder: PathBuf = folder.join(self.number.to_string());
        let (vertices, edges) = self.files();
        write_files(&folder, &[("vertices.csv", &vertices), ("edges.csv", &edges)])?;
        let dialect = if self.replaces { Dialect::GREMLIN } else { Dialect::OPENCYPHER };
        let sources = vec![format!("file://{}", folder.display())];
        Ok(LoadSpec {
            // One thread parses, so rows come in the order of the files.
            parallelism: Parallelism::Low,
            update_single_cardinality_properties: self.replaces,
            user_provided_edge_ids: self.replaces,
            ..LoadSpec::new(sources, Some(dialect))
        })
    }

    fn files(&self) -> (String, String) {
        let (mut vertices, mut edges) = if self.replaces {
            let vertices = format!("~id,~label,{CODE}:Long(single),{KEY}:Long(single),{LOAD}:Long(single)\n");
            (vertices, format!("~id,~from,~to,~label,{LOAD}:Long\n"))
        } else {
            let vertices = format!(":ID,:LABEL,{CODE}:Long,{KEY}:Long,{LOAD}:Long\n");
            (vertices, format!(":START_ID,:END_ID,:TYPE,{LOAD}:Long\n"))
        };
        let number = self.number;
        let text = |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
        for VertexRow { id, code, key } in &self.vertices {
            let _ = writeln!(vertices, "{id},{LABEL};{LOADED},{},{},{number}", text(*code), text(*key));
        }
        for (row, (from, to)) in self.edges.iter().enumerate() {
            let id = if self.replaces { format!("e{number}x{row},") } else { String::new() };
            let _ = writeln!(edges, "{id}{from},{to},{LOAD_EDGE},{number}");
        }
        (vertices, edges)
    }
}

#[expect(clippy::disallowed_methods, reason = "loads read files of users, which are not behind a trait")]
fn write_files(folder: &Path, files: &[(&str, &str)]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    files.iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
}

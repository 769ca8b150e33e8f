//! What the targets share: a small graph, and services over it.

use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tidegraph_apl::Apl;
use tidegraph_engine::{Database, Language, Options, Parameters, Query};
use tidegraph_platform::ManualClock;
use tidegraph_remote::{Node, ServedPartition};
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Edge, Epoch, GuiHasher, Mutation, PartitionCount, PartitionId, PropertyWrite, Sid, Token,
    Value, Version,
};

/// The newest version of [`store`].
pub const VERSION: Version = Version(3);

/// Returns the settings of [`store`], and of stores that are restored.
#[must_use]
pub fn config() -> StoreConfig {
    StoreConfig { partitions: PartitionCount::ONE, ..StoreConfig::new(Arc::new(ManualClock::default())) }
}

/// Returns a store of one partition with six vertices, their edges, and properties of several types.
///
/// # Panics
///
/// If an index cannot be filled.
#[must_use]
pub fn store() -> Store {
    let store = Store::new(config());
    let hasher = GuiHasher::default();
    let names = ["ada", "bob", "cleo", "dora", "eve", "zoë"];
    let values = [
        Value::string("text"),
        Value::Int(7),
        Value::Long(-1),
        Value::Double(0.5),
        Value::Bool(true),
        Value::string("a longer text that does not fit into a cell"),
    ];
    let vertices: Vec<Mutation> = (1..)
        .zip(names.iter().zip(&values))
        .map(|(number, (name, value))| Mutation::CreateVertex {
            gui: hasher.gui(name),
            id: (*name).into(),
            labels: vec![Token(1 + number % 2)],
            properties: vec![
                PropertyWrite { key: Token(4), cardinality: Cardinality::Single, value: value.clone() },
                PropertyWrite { key: Token(5), cardinality: Cardinality::Set, value: value.clone() },
            ],
        })
        .collect();
    store.apply(Version(1), &vertices);
    let edges: Vec<Mutation> = (0..12_u64)
        .map(|number| {
            let [source, target] =
                [number, number * 5 + 1].map(|at| hasher.gui(names[at as usize % names.len()]));
            Mutation::CreateEdge {
                edge: Edge { sid: Sid(100 + number), source, target, label: Token(3) },
                id: (number % 3 == 0).then(|| format!("e-{number}").into()),
                properties: vec![(Token(6), Value::Long(number as i64))],
            }
        })
        .collect();
    store.apply(Version(2), &edges);
    store.apply(VERSION, &[]);
    store.publish(VERSION);
    store
}

/// A node that holds one partition.
pub struct OneNode(Arc<Store>);

impl OneNode {
    /// Returns a node that holds [`store`].
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(store()))
    }
}

impl Default for OneNode {
    fn default() -> Self {
        Self::new()
    }
}

impl Node for OneNode {
    fn partition(&self, _: PartitionId, _: Epoch) -> Result<ServedPartition, tidegraph_apl::Error> {
        let apl: Arc<dyn Apl> = self.0.clone();
        Ok(ServedPartition { apl, store: 1 })
    }

    fn wait_for(&self, _: PartitionId, version: Version, _: Duration) -> bool {
        version <= VERSION
    }
}

/// The texts that fill [`database`].
const GRAPH: &str = "CREATE (a:Person {name: 'Ada', born: 1815, tags: 'x'}), (b:Person {name: 'Bob', born: 1990}), \
     (c:City {name: 'London'}), (a)-[:KNOWS {since: 2001}]->(b), (a)-[:LIVES_IN]->(c), (b)-[:LIVES_IN]->(c)";

/// Returns a database in memory with a small graph and an index. Its limits are low, so that a text that reaches them
/// is told at once.
///
/// # Panics
///
/// If the database cannot be made.
#[must_use]
pub fn database() -> Arc<Database> {
    let options = Options {
        partitions: 2,
        query_timeout: std::time::Duration::from_millis(500),
        query_memory_bytes: 64 << 20,
        query_rows: 1_000,
        cached_plans: 64,
        ..Options::default()
    };
    let database = Database::open(options).expect("a database in memory");
    for text in [GRAPH, "CREATE INDEX person_name FOR (n:Person) ON (n.name)"] {
        database
            .query(&Query::new(Language::OpenCypher, text, &Parameters::default()))
            .expect("the text is right");
    }
    database
}

/// Explains a text: parses it, lowers it, and plans it.
pub fn explain(language: Language, bytes: &[u8]) {
    static DATABASE: LazyLock<Arc<Database>> = LazyLock::new(database);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // An error is an answer. A panic, an overflow of the stack and a text without end are not.
    let _ = DATABASE.explain(language, text);
}

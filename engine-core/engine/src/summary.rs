//! A summary of the graph: what labels and properties it has, and how often. It comes from the planner's statistics.

use crate::Database;
use std::collections::BTreeMap;
use tidegraph_apl::{Catalog, SetStatistics, Statistics};
use tidegraph_types::{Str, Token};

/// What a graph has, by name. Counts by label are exact; counts of properties and structures are near the truth.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Number of vertices.
    pub vertices: u64,
    /// Number of edges.
    pub edges: u64,
    /// Labels of vertices, in the order of their names, with the number of vertices that have them.
    pub vertex_labels: Vec<(Str, u64)>,
    /// Labels of edges, in the order of their names, with the number of edges.
    pub edge_labels: Vec<(Str, u64)>,
    /// Property keys of vertices, the most frequent first, with the number of vertices that have them.
    pub vertex_keys: Vec<(Str, u64)>,
    /// Property keys of edges, the most frequent first, with the number of edges that have them.
    pub edge_keys: Vec<(Str, u64)>,
    /// Which keys and outgoing edges vertices have together, the most frequent first.
    pub vertex_structures: Vec<VertexStructure>,
    /// Which keys edges have together, the most frequent first.
    pub edge_structures: Vec<EdgeStructure>,
}

/// Vertices with the same property keys, whose labels have the same outgoing edges.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VertexStructure {
    /// Number of vertices.
    pub vertices: u64,
    /// Their property keys, in the order of their names.
    pub keys: Vec<Str>,
    /// Labels of outgoing edges that a sample of vertices with their labels has, in the order of their names.
    pub outgoing: Vec<Str>,
}

/// Edges with the same property keys.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EdgeStructure {
    /// Number of edges.
    pub edges: u64,
    /// Their property keys, in the order of their names.
    pub keys: Vec<Str>,
}

impl Database {
    /// Summarizes the graph from the statistics of its planner, which every write keeps current. In a fleet they are some
    /// seconds old. Does not read the graph, but may ask the nodes of a fleet.
    ///
    /// ```
    /// use tidegraph_engine::{Database, Language, Options, Parameters, Query};
    ///
    /// let database = Database::open(Options::default())?;
    /// let none = Parameters::default();
    /// let create = "CREATE (:Person {name: 'Ada'})-[:KNOWS {since: 1840}]->(:Person {name: 'Grace'})";
    /// database.query(&Query::new(Language::OpenCypher, create, &none))?;
    /// let summary = database.summary();
    /// assert_eq!(summary.vertex_labels, [("Person".into(), 2)]);
    /// assert_eq!(summary.edge_keys, [("since".into(), 1)]);
    /// # Ok::<(), tidegraph_engine::Error>(())
    /// ```
    #[must_use]
    pub fn summary(&self) -> Summary {
        summarize(&self.backend.statistics(), self.backend.catalog())
    }
}

fn summarize(statistics: &Statistics, catalog: &dyn Catalog) -> Summary {
    let mut edge_structures: BTreeMap<Vec<Str>, u64> = BTreeMap::new();
    for set in &statistics.edge_sets {
        *edge_structures.entry(keys_of(set, catalog)).or_default() += set.elements;
    }
    // Edges without properties are in no set.
    let with_rows: u64 = edge_structures.values().sum();
    *edge_structures.entry(Vec::new()).or_default() += statistics.edges.saturating_sub(with_rows);

    let mut vertex_structures: BTreeMap<(Vec<Str>, Vec<Str>), u64> = BTreeMap::new();
    for set in &statistics.sets {
        let structure = (keys_of(set, catalog), outgoing_of(&set.labels, statistics, catalog));
        *vertex_structures.entry(structure).or_default() += set.elements;
    }
    Summary {
        vertices: statistics.vertices,
        edges: statistics.edges,
        vertex_labels: by_name(&statistics.vertices_by_label, catalog),
        edge_labels: by_name(&statistics.edges_by_label, catalog),
        vertex_keys: keys(&statistics.sets, catalog),
        edge_keys: keys(&statistics.edge_sets, catalog),
        vertex_structures: most_first(vertex_structures)
            .into_iter()
            .map(|((keys, outgoing), vertices)| VertexStructure { vertices, keys, outgoing })
            .collect(),
        edge_structures: most_first(edge_structures)
            .into_iter()
            .map(|(keys, edges)| EdgeStructure { edges, keys })
            .collect(),
    }
}

fn by_name(counts: &[(Token, u64)], catalog: &dyn Catalog) -> Vec<(Str, u64)> {
    let there = counts.iter().filter(|(_, count)| *count > 0);
    let mut named: Vec<(Str, u64)> = there.map(|(token, count)| (catalog.name(*token), *count)).collect();
    named.sort_unstable();
    named
}

fn keys(sets: &[SetStatistics], catalog: &dyn Catalog) -> Vec<(Str, u64)> {
    let mut counts: BTreeMap<Token, u64> = BTreeMap::new();
    for set in sets {
        for key in &set.keys {
            *counts.entry(key.key).or_default() += set.elements;
        }
    }
    most_first(counts.into_iter().map(|(key, count)| (catalog.name(key), count)).collect())
}

fn keys_of(set: &SetStatistics, catalog: &dyn Catalog) -> Vec<Str> {
    let mut names: Vec<Str> = set.keys.iter().map(|key| catalog.name(key.key)).collect();
    names.sort_unstable();
    names
}

fn outgoing_of(labels: &[Token], statistics: &Statistics, catalog: &dyn Catalog) -> Vec<Str> {
    // Vertices without a label are only in the counts of all vertices, which say nothing about them.
    let of_labels = statistics.degrees.iter().filter(|of| {
        of.outgoing && of.edges > 0 && of.vertex_label.is_some_and(|label| labels.contains(&label))
    });
    let mut names: Vec<Str> = of_labels.map(|of| catalog.name(of.edge_label)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the entries whose count is not 0, the largest first, and those of one count in order.
fn most_first<K: Ord>(counts: BTreeMap<K, u64>) -> Vec<(K, u64)> {
    let mut list: Vec<(K, u64)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    list.sort_unstable_by(|(a, most), (b, fewer)| fewer.cmp(most).then_with(|| a.cmp(b)));
    list
}

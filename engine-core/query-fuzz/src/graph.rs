//! The graph of the reference evaluators: lists of nodes and edges that every search walks from end to end.

use crate::value::{Val, show_number};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use tidegraph_types::Value;

/// Labels of nodes. The last one is in no random graph.
pub const LABELS: [&str; 4] = ["A", "B", "C", "Z"];
/// Types of edges. The last one is in no random graph.
pub const TYPES: [&str; 4] = ["R", "S", "T", "Y"];
/// Keys with small integers.
pub const INT_KEYS: [&str; 2] = ["a", "b"];
/// Key with short texts.
pub const TEXT_KEY: &str = "s";
/// Key with values of several types.
pub const MIXED_KEY: &str = "m";

/// All keys, in order.
pub const ALL_KEYS: [&str; 4] = ["a", "b", MIXED_KEY, TEXT_KEY];

/// How the id of an element begins whose id the engine chooses.
const CHOSEN_ID: &str = "chosen by the engine: ";

/// Properties by key.
pub type Properties = BTreeMap<String, Val>;

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its id in the engine; empty if a query has created it and the engine chose the id.
    pub id: String,
    /// Its labels.
    pub labels: BTreeSet<String>,
    /// Its properties.
    pub properties: Properties,
}

/// An edge.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Its id in the engine; empty if a query has created it and the engine chose the id.
    pub id: String,
    /// Index of its source.
    pub source: usize,
    /// Index of its target.
    pub target: usize,
    /// Its type.
    pub kind: String,
    /// Its properties.
    pub properties: Properties,
}

/// A graph. Deleted nodes and edges leave holes, so that indexes stay valid.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Nodes by index.
    pub nodes: Vec<Option<Node>>,
    /// Edges by index.
    pub edges: Vec<Option<Edge>>,
}

/// Draws a text.
pub fn random_text(rng: &mut ChaCha8Rng) -> String {
    ["", "x", "xy", "y", "Yx"][rng.random_range(0..5)].to_owned()
}

/// Draws a value that fits a key.
pub fn random_value(rng: &mut ChaCha8Rng, key: &str) -> Val {
    match key {
        TEXT_KEY => Val::Str(random_text(rng)),
        MIXED_KEY => match rng.random_range(0..4) {
            0 => Val::Str(random_text(rng)),
            1 => Val::Bool(rng.random()),
            2 => Val::Float(f64::from(rng.random_range(-2..4)) / 2.0),
            _ => Val::Int(rng.random_range(-1..3)),
        },
        _ => Val::Int(rng.random_range(-2..5)),
    }
}

/// Draws a property key.
pub fn random_key(rng: &mut ChaCha8Rng) -> &'static str {
    [INT_KEYS[0], INT_KEYS[1], TEXT_KEY, MIXED_KEY][rng.random_range(0..4)]
}

fn random_properties(rng: &mut ChaCha8Rng) -> Properties {
    let mut properties = Properties::new();
    for key in [INT_KEYS[0], INT_KEYS[1], TEXT_KEY, MIXED_KEY] {
        if rng.random_bool(0.55) {
            properties.insert(key.to_owned(), random_value(rng, key));
        }
    }
    properties
}

impl Graph {
    /// Draws a graph of at most so many nodes and edges. Loops and parallel edges are likely.
    pub fn random(rng: &mut ChaCha8Rng, max_nodes: usize, max_edges: usize) -> Self {
        let nodes: Vec<Option<Node>> = (0..rng.random_range(0..=max_nodes))
            .map(|index| {
                let labels = LABELS[..3].iter().filter(|_| rng.random_bool(0.4));
                let labels = labels.map(|label| (*label).to_owned()).collect();
                Some(Node { id: format!("n{index}"), labels, properties: random_properties(rng) })
            })
            .collect();
        let count = if nodes.is_empty() { 0 } else { rng.random_range(0..=max_edges) };
        let edges = (0..count)
            .map(|index| {
                let [source, target] = [(); 2].map(|()| rng.random_range(0..nodes.len()));
                let kind = TYPES[rng.random_range(0..3)].to_owned();
                Some(Edge {
                    id: format!("e{index}"),
                    source,
                    target,
                    kind,
                    properties: random_properties(rng),
                })
            })
            .collect();
        Self { nodes, edges }
    }

    /// Returns the nodes that exist, with their indexes.
    pub fn live_nodes(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter_map(|(index, node)| Some((index, node.as_ref()?)))
    }

    /// Returns the edges that exist, with their indexes.
    pub fn live_edges(&self) -> impl Iterator<Item = (usize, &Edge)> {
        self.edges.iter().enumerate().filter_map(|(index, edge)| Some((index, edge.as_ref()?)))
    }

    /// Returns the node; `None` if it was deleted.
    #[must_use]
    pub fn node(&self, index: usize) -> Option<&Node> {
        self.nodes.get(index)?.as_ref()
    }

    /// Returns the edge; `None` if it was deleted.
    #[must_use]
    pub fn edge(&self, index: usize) -> Option<&Edge> {
        self.edges.get(index)?.as_ref()
    }

    /// Returns the id of a node or an edge; null if it was deleted. Elements whose ids the engine chooses have some that
    /// differ, and are shown alike.
    #[must_use]
    pub fn id(&self, of: &Val) -> Val {
        let (id, index) = match of {
            Val::Node(node) => (self.node(*node).map(|node| &node.id), *node),
            Val::Edge(edge) => (self.edge(*edge).map(|edge| &edge.id), *edge),
            _ => (None, 0),
        };
        match id {
            Some(id) if id.is_empty() => Val::Str(format!("{CHOSEN_ID}{index}")),
            Some(id) => Val::Str(id.clone()),
            None => Val::Null,
        }
    }

    /// Returns a property of a node or an edge; null if it has none.
    #[must_use]
    pub fn property(&self, of: &Val, key: &str) -> Val {
        let properties = match of {
            Val::Node(node) => self.node(*node).map(|node| &node.properties),
            Val::Edge(edge) => self.edge(*edge).map(|edge| &edge.properties),
            _ => None,
        };
        properties.and_then(|all| all.get(key)).cloned().unwrap_or(Val::Null)
    }

    /// Deletes a node with its edges.
    pub fn detach_delete(&mut self, node: usize) {
        for edge in &mut self.edges {
            edge.take_if(|edge| edge.source == node || edge.target == node);
        }
        self.nodes[node] = None;
    }

    /// Returns openCypher that creates the graph; `None` if it is empty.
    #[must_use]
    pub fn to_cypher(&self) -> Option<String> {
        let mut parts = vec![];
        for (index, node) in self.live_nodes() {
            let labels: String = node.labels.iter().flat_map(|label| [":", label]).collect();
            parts.push(format!("(v{index}{labels} {})", literal_map(&node.id, &node.properties)));
        }
        for (_, edge) in self.live_edges() {
            let Edge { source, target, kind, .. } = edge;
            let map = literal_map(&edge.id, &edge.properties);
            parts.push(format!("(v{source})-[:{kind} {map}]->(v{target})"));
        }
        (!parts.is_empty()).then(|| format!("CREATE {}", parts.join(", ")))
    }

    /// Makes the graph from the engine's answers to `MATCH (n) RETURN n` and `MATCH ()-[r]->() RETURN r`.
    #[must_use]
    pub fn from_answers(nodes: &[Vec<Value>], edges: &[Vec<Value>]) -> Self {
        let mut graph = Self::default();
        let mut indexes = BTreeMap::new();
        for value in nodes.iter().flatten() {
            if let Value::VertexData(data) = value {
                indexes.insert(data.id.to_string(), graph.nodes.len());
                let first = |values: &[Value]| values.first().map_or(Val::Null, scalar);
                let properties = data.properties.iter().map(|p| (p.key.to_string(), first(&p.values)));
                graph.nodes.push(Some(Node {
                    id: data.id.to_string(),
                    labels: data.labels.iter().map(ToString::to_string).collect(),
                    properties: properties.collect(),
                }));
            }
        }
        for value in edges.iter().flatten() {
            if let Value::EdgeData(data) = value {
                let end = |id: &str| indexes.get(id).copied().unwrap_or(usize::MAX);
                let properties = data.properties.iter().map(|(key, value)| (key.to_string(), scalar(value)));
                graph.edges.push(Some(Edge {
                    id: data.id.to_string(),
                    source: end(&data.source_id),
                    target: end(&data.target_id),
                    kind: data.label.to_string(),
                    properties: properties.collect(),
                }));
            }
        }
        graph
    }

    /// Returns the ids of all nodes and edges.
    #[must_use]
    pub fn ids(&self) -> BTreeSet<String> {
        let nodes = self.live_nodes().map(|(_, node)| node.id.clone());
        nodes.chain(self.live_edges().map(|(_, edge)| edge.id.clone())).collect()
    }

    /// Describes the graph line by line, sorted. Elements whose ids are not `known` show none.
    #[must_use]
    pub fn lines(&self, known: &BTreeSet<String>) -> Vec<String> {
        let name = |index: usize| match self.node(index) {
            Some(node) => {
                let labels: String = node.labels.iter().flat_map(|label| [":", label]).collect();
                format!("({}{labels} {})", shown_id(&node.id, known), self.show_map(&node.properties, known))
            }
            None => "(missing)".to_owned(),
        };
        let nodes = self.live_nodes().map(|(index, _)| name(index));
        let edges = self.live_edges().map(|(_, edge)| {
            let map = self.show_map(&edge.properties, known);
            let id = shown_id(&edge.id, known);
            format!("{}-[{id}:{} {map}]->{}", name(edge.source), edge.kind, name(edge.target))
        });
        let mut lines: Vec<String> = nodes.chain(edges).collect();
        lines.sort();
        lines
    }

    fn show_map(&self, map: &Properties, known: &BTreeSet<String>) -> String {
        let entries = map.iter().map(|(key, value)| format!("{key}: {}", self.show(value, false, known)));
        entries.collect::<Vec<_>>().join(", ")
    }

    /// Formats a value. With `bags`, lists are sorted first.
    #[must_use]
    pub fn show(&self, value: &Val, bags: bool, known: &BTreeSet<String>) -> String {
        let show = |value: &Val| self.show(value, bags, known);
        match value {
            Val::Null => "null".to_owned(),
            Val::Bool(truth) => truth.to_string(),
            Val::Str(text) if text.starts_with(CHOSEN_ID) => "\"\"".to_owned(),
            Val::Str(text) => format!("{text:?}"),
            Val::List(items) => show_list(items.iter().map(show), bags),
            Val::Map(entries) => show_entries(entries.iter().map(|(k, v)| (show(k), show(v)))),
            Val::Node(index) => {
                let id = self.node(*index).map_or("deleted", |node| shown_id(&node.id, known));
                format!("({id})")
            }
            Val::Edge(index) => {
                let id = self.edge(*index).map_or("deleted", |edge| shown_id(&edge.id, known));
                format!("-[{id}]-")
            }
            Val::Path(items) => format!("<{}>", items.iter().map(show).collect::<Vec<_>>().join(", ")),
            Val::Int(_) | Val::Float(_) => show_number(value.number().unwrap_or_default()),
        }
    }
}

/// Formats a value of the engine as [`Graph::show`] does.
#[must_use]
pub fn show_answer(value: &Value, bags: bool, known: &BTreeSet<String>) -> String {
    let show = |value: &Value| show_answer(value, bags, known);
    match value {
        Value::List(items) | Value::Set(items) => show_list(items.iter().map(show), bags),
        Value::Map(map) => show_entries(map.iter().map(|(k, v)| (show(k), show(v)))),
        Value::VertexData(data) => format!("({})", shown_id(&data.id, known)),
        Value::EdgeData(data) => format!("-[{}]-", shown_id(&data.id, known)),
        Value::Path(path) => format!("<{}>", path.objects.iter().map(show).collect::<Vec<_>>().join(", ")),
        Value::Symbol(symbol) => format!("{:?}", symbol.as_str()),
        // The id of an element that another statement has created.
        Value::String(text) if is_generated_id(text) && !known.contains(text.as_str()) => "\"\"".to_owned(),
        Value::Null | Value::Bool(_) | Value::String(_) => Graph::default().show(&scalar(value), bags, known),
        other => match other.as_f64() {
            Some(number) => show_number(number),
            None => format!("{other:?}"),
        },
    }
}

/// Whether a text is an id that the engine chose, which no drawn text is: a UUID, or for an edge 16 digits and a number.
fn is_generated_id(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_hex = |part: &&str| part.chars().all(|c| c.is_ascii_hexdigit());
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    parts.iter().all(is_hex) && matches!(lengths[..], [8, 4, 4, 4, 12] | [16, _])
}

fn shown_id<'a>(id: &'a str, known: &BTreeSet<String>) -> &'a str {
    if known.contains(id) { id } else { "new" }
}

fn show_list(items: impl Iterator<Item = String>, bag: bool) -> String {
    let mut items: Vec<String> = items.collect();
    if bag {
        items.sort();
    }
    format!("[{}]", items.join(", "))
}

fn show_entries(entries: impl Iterator<Item = (String, String)>) -> String {
    let mut entries: Vec<String> = entries.map(|(key, value)| format!("{key}: {value}")).collect();
    entries.sort();
    format!("{{{}}}", entries.join(", "))
}

fn scalar(value: &Value) -> Val {
    match value {
        Value::Bool(truth) => Val::Bool(*truth),
        Value::String(text) => Val::Str(text.to_string()),
        other => match (other.as_i64(), other.as_f64()) {
            (Some(int), _) => Val::Int(int),
            (None, Some(float)) => Val::Float(float),
            _ => Val::Null,
        },
    }
}

/// Writes a value as a literal of openCypher, which is one of Gremlin too if it is a scalar.
#[must_use]
pub fn literal(value: &Val) -> String {
    match value {
        Val::Str(text) => format!("'{text}'"),
        Val::Int(int) => int.to_string(),
        Val::Float(float) => format!("{float:?}"),
        Val::Bool(truth) => truth.to_string(),
        Val::List(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        _ => "null".to_owned(),
    }
}

fn literal_map(id: &str, properties: &Properties) -> String {
    let mut text = format!("{{`~id`: '{id}'");
    for (key, value) in properties {
        let _ = write!(text, ", {key}: {}", literal(value));
    }
    text.push('}');
    text
}

//! A graph in memory for tests of expressions: elements with chosen GUIs, and counts of the requests that read them.

use std::ops::Deref;
use std::sync::atomic::Ordering;
use tidegraph_apl::PropertyCell;
use tidegraph_apl::testing::{MemoryGraph, StoredEdge, StoredVertex};
use tidegraph_types::{Cardinality, Edge, Gui, Sid, Token, Value};

#[derive(Default)]
pub(super) struct Graph {
    graph: MemoryGraph,
    newest: Option<Gui>,
}

impl Deref for Graph {
    type Target = MemoryGraph;

    fn deref(&self) -> &MemoryGraph {
        &self.graph
    }
}

impl Graph {
    fn properties(&self, properties: &[(&str, Value)]) -> Vec<(Token, Value)> {
        properties.iter().map(|(key, value)| (self.tok(key), value.clone())).collect()
    }

    pub fn vertex(&mut self, gui: u64, id: &'static str, labels: &[&str], properties: &[(&str, Value)]) {
        let labels = labels.iter().map(|label| self.tok(label)).collect();
        let cell = |(key, value)| PropertyCell { key, cardinality: Cardinality::Set, value };
        let cells = self.properties(properties).into_iter().map(cell).collect();
        let vertex = StoredVertex { id: id.into(), labels, cells, meta: vec![] };
        self.graph.vertices.insert(Gui(gui), vertex);
        self.newest = Some(Gui(gui));
    }

    /// Adds a meta-property to one value of the newest vertex.
    pub fn annotate(&mut self, cell: usize, key: &str, value: impl Into<Value>) {
        let (meta_key, newest) = (self.tok(key), self.newest.expect("a vertex"));
        let vertex = self.graph.vertices.get_mut(&newest).expect("a vertex");
        let PropertyCell { key, value: of, .. } = vertex.cells[cell].clone();
        vertex.meta.push((key, of, 0, meta_key, value.into()));
    }

    pub fn edge(
        &mut self,
        (sid, id): (u64, &'static str),
        (source, target): (u64, u64),
        label: &str,
        properties: &[(&str, Value)],
    ) -> Edge {
        let label = self.tok(label);
        let edge = Edge { sid: Sid(sid), source: Gui(source), target: Gui(target), label };
        let properties = self.properties(properties);
        self.graph.edges.insert(edge.sid, StoredEdge { edge, id: Some(id.into()), properties });
        edge
    }

    /// Returns the number of calls that read elements since this was called last.
    pub fn take_calls(&self) -> u64 {
        self.element_calls.swap(0, Ordering::Relaxed)
    }
}

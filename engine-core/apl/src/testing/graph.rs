//! A graph made from a seed.

use crate::Draw;
use std::collections::BTreeMap;
use tidegraph_types::element::generated_edge_id;
use tidegraph_types::{Cardinality, Edge, Gui, GuiHasher, Mutation, PropertyWrite, Sid, Str, Token, Value};

/// A graph made from a seed, with the ids that a test can ask for.
#[derive(Clone, Debug, Default)]
pub struct TestGraph {
    /// Ids of vertices, including some that were deleted or never existed.
    pub ids: Vec<Str>,
    /// GUIs of the same vertices.
    pub guis: Vec<Gui>,
    /// Edges, including some that were deleted.
    pub edges: Vec<Edge>,
    /// Ids of edges, chosen and generated, including some that never existed.
    pub edge_ids: Vec<Str>,
    /// Transactions that make the graph, in order. The first has version 1.
    pub transactions: Vec<Vec<Mutation>>,
}

impl TestGraph {
    /// Labels of vertices.
    pub const LABELS: [Token; 3] = [Token(1), Token(2), Token(3)];
    /// Labels of edges.
    pub const EDGE_LABELS: [Token; 3] = [Token(4), Token(5), Token(6)];
    /// Property keys, of vertices and edges.
    pub const KEYS: [Token; 3] = [Token(10), Token(11), Token(12)];

    /// Makes a graph with `vertices` vertices and `edges` edges. One vertex is a hub with a third of the edges. The
    /// last transaction removes some vertices and edges.
    #[must_use]
    pub fn new(seed: u64, hasher: GuiHasher, vertices: usize, edges: usize) -> Self {
        let mut builder =
            Builder { draw: Draw(seed), hasher, graph: Self::default(), taken: BTreeMap::new() };
        builder.vertices(vertices);
        builder.edges(edges);
        builder.changes();
        let mut graph = builder.graph;
        graph.ids.extend((0..5).map(|n| Str::from(format!("nobody {n}"))));
        graph.guis.push(Gui(5));
        graph.edge_ids.extend(["no edge".into(), generated_edge_id(Gui(1), Sid(1)), "e-1".into()]);
        graph
    }
}

struct Builder {
    draw: Draw,
    hasher: GuiHasher,
    graph: TestGraph,
    taken: BTreeMap<Gui, usize>,
}

impl Builder {
    fn below(&mut self, end: usize) -> usize {
        self.draw.below(end as u64) as usize
    }

    fn one_of(&mut self, tokens: [Token; 3]) -> Token {
        tokens[self.below(3)]
    }

    fn value(&mut self) -> Value {
        match self.below(5) {
            0 => Value::string(format!("text {}", self.below(6))),
            1 => Value::Double(self.below(40) as f64 / 4.0),
            2 => Value::Bool(self.below(2) == 0),
            _ => Value::Long(self.below(50) as i64),
        }
    }

    fn write(&mut self) -> PropertyWrite {
        let cardinality = if self.below(4) == 0 { Cardinality::Set } else { Cardinality::Single };
        PropertyWrite { key: self.one_of(TestGraph::KEYS), cardinality, value: self.value() }
    }

    fn vertices(&mut self, count: usize) {
        let mut mutations = Vec::new();
        for number in 0..count {
            let id = Str::from(format!("v{number}"));
            let salted = |salt: u64| self.hasher.salted(&id, salt);
            let salt = (0..).find(|salt| !self.taken.contains_key(&salted(*salt))).unwrap_or(0);
            let gui = salted(salt);
            if salt > 0 {
                mutations.push(Mutation::AddException { id: id.clone(), gui });
            }
            self.taken.insert(gui, number);
            let labels = TestGraph::LABELS.into_iter().filter(|_| self.below(2) == 0).collect();
            let properties = (0..self.below(4)).map(|_| self.write()).collect();
            mutations.push(Mutation::CreateVertex { gui, id: id.clone(), labels, properties });
            self.graph.ids.push(id);
            self.graph.guis.push(gui);
        }
        self.graph.transactions.push(mutations);
    }

    fn edges(&mut self, count: usize) {
        let mut mutations = Vec::new();
        for number in 0..count {
            let mut any = || self.graph.guis[self.draw.below(self.graph.guis.len() as u64) as usize];
            let (mut source, other) = (any(), any());
            let mut target = source;
            // 0: a loop.
            match self.below(10) {
                0 => {}
                1..4 => source = self.graph.guis[0],
                _ => target = other,
            }
            if self.below(3) == 0 {
                std::mem::swap(&mut source, &mut target);
            }
            let sid = Sid(number as u64 + 1);
            let edge = Edge { sid, source, target, label: self.one_of(TestGraph::EDGE_LABELS) };
            let id = (self.below(4) == 0).then(|| Str::from(format!("edge {number}")));
            let mut properties: Vec<(Token, Value)> = Vec::new();
            for key in TestGraph::KEYS {
                if self.below(3) == 0 {
                    properties.push((key, self.value()));
                }
            }
            self.graph.edge_ids.push(id.clone().unwrap_or_else(|| generated_edge_id(source, sid)));
            self.graph.edges.push(edge);
            mutations.push(Mutation::CreateEdge { edge, id, properties });
        }
        // An id that equals the generated id of another edge.
        if let [first, second, ..] = self.graph.edges[..] {
            let edge = Edge { sid: Sid(count as u64 + 1), ..second };
            let id = Some(generated_edge_id(first.source, first.sid));
            self.graph.edges.push(edge);
            mutations.push(Mutation::CreateEdge { edge, id, properties: vec![] });
        }
        self.graph.transactions.push(mutations);
    }

    fn changes(&mut self) {
        let mut mutations = Vec::new();
        for _ in 0..self.graph.edges.len() / 20 {
            let number = self.below(self.graph.edges.len() - 1);
            let edge = self.graph.edges[number];
            let id = self.graph.edge_ids[number].clone();
            let id = (id != generated_edge_id(edge.source, edge.sid)).then_some(id);
            mutations.push(Mutation::DeleteEdge { edge, id });
        }
        for _ in 0..self.graph.guis.len() / 10 {
            let number = self.below(self.graph.guis.len());
            let gui = self.graph.guis[number];
            let write = self.write();
            let value = write.value.clone();
            mutations.push(Mutation::SetVertexProperty { gui, write: write.clone() });
            if self.below(2) == 0 {
                let meta_key = self.one_of(TestGraph::KEYS);
                mutations.push(Mutation::SetMetaProperty {
                    gui,
                    key: write.key,
                    of: value,
                    nth: 0,
                    meta_key,
                    value: Some(Value::Long(7)),
                });
            }
        }
        // The last vertex is deleted with its edges.
        if let Some(&gui) = self.graph.guis.last() {
            for (edge, id) in self.graph.edges.iter().zip(&self.graph.edge_ids) {
                if edge.source == gui || edge.target == gui {
                    let id = (*id != generated_edge_id(edge.source, edge.sid)).then(|| id.clone());
                    mutations.push(Mutation::DeleteEdge { edge: *edge, id });
                }
            }
            mutations.push(Mutation::DeleteVertex { gui, edges_left: false });
        }
        self.graph.transactions.push(mutations);
    }
}

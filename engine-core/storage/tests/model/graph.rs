//! The simplest possible graph, to compare the store with.

use std::collections::{BTreeMap, BTreeSet};
use tidegraph_types::{Cardinality, Direction, Edge, Gui, Mutation, PropertyWrite, Sid, Str, Token, Value};

#[derive(Clone, Debug, Default)]
pub struct Vertex {
    pub id: Str,
    pub labels: Vec<Token>,
    pub properties: BTreeMap<Token, (Cardinality, Vec<Value>)>,
    /// Meta-properties of each of these values.
    pub meta: BTreeMap<Token, Vec<Meta>>,
}

pub type Meta = Vec<(Token, Value)>;

#[derive(Clone, Debug)]
pub struct ModelEdge {
    pub edge: Edge,
    pub id: Option<Str>,
    pub properties: BTreeMap<Token, Value>,
}

#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub vertices: BTreeMap<Gui, Vertex>,
    pub edges: BTreeMap<Sid, ModelEdge>,
}

impl Vertex {
    fn write(&mut self, write: &PropertyWrite) {
        let (cardinality, values) = self.properties.entry(write.key).or_default();
        let meta = self.meta.entry(write.key).or_default();
        match write.cardinality {
            Cardinality::Single => {
                values.clear();
                meta.clear();
            }
            Cardinality::Set => {
                if *cardinality != Cardinality::Set {
                    let mut distinct: Vec<Value> = Vec::new();
                    let mut kept: Vec<Meta> = Vec::new();
                    for (value, meta) in values.drain(..).zip(meta.drain(..)) {
                        if !distinct.contains(&value) {
                            distinct.push(value);
                            kept.push(meta);
                        }
                    }
                    (*values, *meta) = (distinct, kept);
                }
            }
            Cardinality::List => {}
        }
        *cardinality = write.cardinality;
        if write.cardinality != Cardinality::Set || !values.contains(&write.value) {
            values.push(write.value.clone());
            meta.push(Vec::new());
        }
    }

    fn add_labels(&mut self, labels: &[Token]) {
        for label in labels {
            if !self.labels.contains(label) {
                self.labels.push(*label);
            }
        }
    }
}

impl Graph {
    pub fn vertex_of(&self, id: &str) -> Option<Gui> {
        self.vertices.iter().find(|(_, vertex)| vertex.id == id).map(|(gui, _)| *gui)
    }

    pub fn edge_of(&self, id: &str) -> Option<Edge> {
        self.edges.values().find(|edge| edge.id.as_deref() == Some(id)).map(|edge| edge.edge)
    }

    pub fn apply(&mut self, mutation: &Mutation, load: bool) {
        match mutation.clone() {
            Mutation::CreateVertex { gui, id, labels, properties } => {
                let vertex = self.vertices.entry(gui).or_default();
                vertex.id = id;
                vertex.add_labels(&labels);
                properties.iter().for_each(|write| vertex.write(write));
            }
            Mutation::DeleteVertex { gui, .. } => {
                self.vertices.remove(&gui);
                self.edges.retain(|_, edge| edge.edge.source != gui && edge.edge.target != gui);
            }
            Mutation::AddLabels { gui, labels } => {
                if let Some(vertex) = self.vertices.get_mut(&gui) {
                    vertex.add_labels(&labels);
                }
            }
            Mutation::RemoveLabels { gui, labels } => {
                if let Some(vertex) = self.vertices.get_mut(&gui) {
                    vertex.labels.retain(|label| !labels.contains(label));
                }
            }
            Mutation::SetVertexProperty { gui, write } => {
                if let Some(vertex) = self.vertices.get_mut(&gui) {
                    vertex.write(&write);
                }
            }
            Mutation::RemoveVertexProperty { gui, key, value } => {
                let Some(vertex) = self.vertices.get_mut(&gui) else { return };
                let Some((_, values)) = vertex.properties.get_mut(&key) else { return };
                let Some(meta) = vertex.meta.get_mut(&key) else { return };
                match value {
                    None => values.clear(),
                    Some(value) => {
                        if let Some(index) = values.iter().position(|other| *other == value) {
                            values.remove(index);
                            meta.remove(index);
                        }
                    }
                }
                if values.is_empty() {
                    vertex.properties.remove(&key);
                    vertex.meta.remove(&key);
                }
            }
            Mutation::SetMetaProperty { gui, key, of, nth, meta_key, value } => {
                let Some(vertex) = self.vertices.get_mut(&gui) else { return };
                let Some((_, values)) = vertex.properties.get(&key) else { return };
                let equal = values.iter().enumerate().filter(|(_, value)| **value == of);
                let Some((index, _)) = equal.into_iter().nth(nth as usize) else { return };
                let meta = &mut vertex.meta.get_mut(&key).unwrap()[index];
                match (meta.iter().position(|(key, _)| *key == meta_key), value) {
                    (Some(at), Some(value)) => meta[at].1 = value,
                    (Some(at), None) => drop(meta.remove(at)),
                    (None, Some(value)) => meta.push((meta_key, value)),
                    (None, None) => {}
                }
            }
            Mutation::CreateEdge { edge, id, properties } => {
                if !self.vertices.contains_key(&edge.source) || !self.vertices.contains_key(&edge.target) {
                    return;
                }
                let there = id.as_ref().filter(|_| load).and_then(|id| self.edge_of(id));
                let at = match there {
                    Some(there) => {
                        let ends = |edge: &Edge| (edge.source, edge.target, edge.label);
                        if ends(&there) != ends(&edge) {
                            return;
                        }
                        there.sid
                    }
                    None => {
                        self.edges.insert(edge.sid, ModelEdge { edge, id, properties: BTreeMap::new() });
                        edge.sid
                    }
                };
                if let Some(edge) = self.edges.get_mut(&at) {
                    edge.properties.extend(properties);
                }
            }
            Mutation::DeleteEdge { edge, .. } => {
                self.edges.remove(&edge.sid);
            }
            Mutation::SetEdgeProperty { edge, key, value } => {
                if let Some(edge) = self.edges.get_mut(&edge.sid) {
                    edge.properties.insert(key, value);
                }
            }
            Mutation::RemoveEdgeProperty { edge, key } => {
                if let Some(edge) = self.edges.get_mut(&edge.sid) {
                    edge.properties.remove(&key);
                }
            }
            Mutation::AddException { .. } | Mutation::DefineIndex { .. } | Mutation::DropIndex { .. } => {}
            Mutation::Reset => *self = Self::default(),
        }
    }

    /// Returns the edges of a vertex as (neighbour, sid, label, outgoing).
    pub fn expand(
        &self,
        gui: Gui,
        direction: Direction,
        labels: Option<&[Token]>,
        loops_once: bool,
    ) -> BTreeSet<(Gui, Sid, Token, bool)> {
        let mut found = BTreeSet::new();
        for ModelEdge { edge, .. } in self.edges.values() {
            if labels.is_some_and(|labels| !labels.contains(&edge.label)) {
                continue;
            }
            if edge.source == gui && direction != Direction::In {
                found.insert((edge.target, edge.sid, edge.label, true));
            }
            let again = edge.source == gui && loops_once && direction == Direction::Both;
            if edge.target == gui && direction != Direction::Out && !again {
                found.insert((edge.source, edge.sid, edge.label, false));
            }
        }
        found
    }
}

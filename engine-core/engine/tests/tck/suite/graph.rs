//! The contents of a graph, and the changes that a query made to it.

use super::compare::show;
use super::{Graph, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use tidegraph_engine::Parameters;
use tidegraph_types::Value;

/// All elements that count as side effects.
pub struct Contents {
    nodes: BTreeSet<String>,
    relationships: BTreeSet<String>,
    labels: BTreeSet<String>,
    /// Element, key and value.
    properties: BTreeSet<String>,
}

impl Contents {
    /// Reads the whole graph.
    pub fn of(graph: &dyn Graph) -> Result<Self, Refusal> {
        let parameters = Parameters::default();
        let ask = |text| graph.ask(text, &parameters).map(|answer| answer.rows);
        let mut contents = Self {
            nodes: BTreeSet::new(),
            relationships: BTreeSet::new(),
            labels: BTreeSet::new(),
            properties: BTreeSet::new(),
        };
        for value in ask("MATCH (n) RETURN n")?.into_iter().flatten() {
            let Value::VertexData(data) = value else { panic!("a vertex has no data: {value:?}") };
            contents.labels.extend(data.labels.iter().map(ToString::to_string));
            for property in &data.properties {
                let value = show(&Value::List(property.values.to_vec().into()));
                contents.properties.insert(format!("v {} {} {value}", data.id, property.key));
            }
            contents.nodes.insert(data.id.to_string());
        }
        for value in ask("MATCH ()-[r]->() RETURN r")?.into_iter().flatten() {
            let Value::EdgeData(data) = value else { panic!("an edge has no data: {value:?}") };
            for (key, value) in &data.properties {
                contents.properties.insert(format!("e {} {key} {}", data.id, show(value)));
            }
            contents.relationships.insert(data.id.to_string());
        }
        Ok(contents)
    }

    /// Returns the counts under the TCK's names, without those that are 0.
    pub fn changes_since(&self, before: &Self) -> BTreeMap<String, usize> {
        let mut changes = BTreeMap::new();
        let mut count = |name: &str, before: &BTreeSet<String>, after: &BTreeSet<String>| {
            changes.insert(format!("+{name}"), after.difference(before).count());
            changes.insert(format!("-{name}"), before.difference(after).count());
        };
        count("nodes", &before.nodes, &self.nodes);
        count("relationships", &before.relationships, &self.relationships);
        count("labels", &before.labels, &self.labels);
        count("properties", &before.properties, &self.properties);
        changes.retain(|_, n| *n > 0);
        changes
    }
}

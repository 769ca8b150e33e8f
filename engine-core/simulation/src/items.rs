//! The items of a graph: the vertices that statements write, with their names, edges and schema.
//!
//! Roles: [`Items`] is the state of all items in its simplest form; [`ItemLog`] derives it from the log. Names stand
//! where the log has tokens, so an item with a token that has no name is an error.

use crate::invariants::{Invariant, Violation};
use crate::load::{LOAD, LOAD_EDGE, LOADED, LoadPlan, SubmittedLoad};
use std::collections::{BTreeMap, BTreeSet};
use tidegraph_log::{Body, Record};
use tidegraph_types::{
    Edge, Gui, GuiHasher, IndexDefinition, Layout, Mutation, PartitionId, PropertyWrite, Sid, Str, Token,
    Value,
};

/// The label of all items.
pub(crate) const LABEL: &str = "Item";
/// The property with a number that each writing statement draws anew.
pub(crate) const TAG: &str = "tag";
/// Ids of items begin with this letter, those of other vertices do not.
const ID: char = 'i';

/// Returns whether an id is that of an item.
pub(crate) fn is_item(id: &str) -> bool {
    id.starts_with(ID)
}

/// Returns the id of an item by its number.
pub(crate) fn id_of(number: u64) -> String {
    format!("{ID}{number}")
}

/// One item.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Item {
    pub labels: BTreeSet<String>,
    pub properties: BTreeMap<String, i64>,
}

/// An edge between two items.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Link {
    pub source: String,
    pub target: String,
    pub label: String,
    pub properties: BTreeMap<String, i64>,
}

/// All items, by id, and the edges between them, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Items {
    pub items: BTreeMap<String, Item>,
    pub links: Vec<Link>,
}

impl Items {
    /// Returns two items that have the same value under a key, if there are any.
    pub fn duplicate(&self, key: &str) -> Option<(&str, &str)> {
        let mut first: BTreeMap<i64, &str> = BTreeMap::new();
        for (id, item) in &self.items {
            let Some(value) = item.properties.get(key) else { continue };
            if let Some(other) = first.insert(*value, id) {
                return Some((other, id));
            }
        }
        None
    }

    /// Returns whether an item other than `id` has a value under a key.
    pub fn has_other(&self, id: &str, key: &str, value: i64) -> bool {
        let has = |item: &Item| item.properties.get(key) == Some(&value);
        self.items.iter().any(|(other, item)| other != id && has(item))
    }
}

/// The id, the labels and the properties of a vertex.
type LoggedVertex = (Str, BTreeSet<Token>, BTreeMap<Token, i64>);

/// What a log says about items up to a version.
#[derive(Clone, Debug, Default)]
pub(crate) struct ItemLog {
    names: BTreeMap<Token, Str>,
    vertices: BTreeMap<Gui, LoggedVertex>,
    edges: BTreeMap<Sid, (Edge, BTreeMap<Token, i64>)>,
    /// Indexes and constraints, by name.
    pub indexes: BTreeMap<Str, IndexDefinition>,
    /// The loads that workers have submitted. The log has only their ids.
    submitted: BTreeMap<String, SubmittedLoad>,
    /// Number of edges that loads have created.
    loaded_edges: u64,
}

/// What a record does to items.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Effect {
    /// Whether it changes an item or an edge of one.
    pub writes: bool,
    /// Whether it removes all vertices.
    pub resets: bool,
    /// Whether it changes an index or a constraint.
    pub schema: bool,
    /// The tags that it writes.
    pub tags: BTreeSet<i64>,
    /// The load that it makes visible.
    pub load: Option<String>,
}

fn gui_of(id: &str) -> Gui {
    GuiHasher::default().gui(id)
}

pub(crate) fn value_of(value: &Value) -> i64 {
    match value {
        Value::Long(number) => *number,
        // No statement writes this number.
        _ => i64::MIN,
    }
}

impl ItemLog {
    /// Starts with an empty log, in which these loads may become visible.
    pub fn with_loads(submitted: BTreeMap<String, SubmittedLoad>) -> Self {
        Self { submitted, ..Self::default() }
    }

    /// Replaces the loads that may become visible.
    pub fn submit(&mut self, submitted: BTreeMap<String, SubmittedLoad>) {
        self.submitted = submitted;
    }

    fn name(&self, token: Token) -> Result<String, Violation> {
        let unknown = || {
            Violation::new(
                Invariant::Ids1,
                format!("a record uses token {token}, which no earlier one names"),
            )
        };
        self.names.get(&token).map(ToString::to_string).ok_or_else(unknown)
    }

    /// Applies a record.
    ///
    /// # Errors
    /// LOAD-1, if a load becomes visible that no worker has submitted, or whose rows do not fit the graph.
    pub fn apply(&mut self, record: &Record) -> Result<Effect, Violation> {
        let mut effect = Effect::default();
        match &record.body {
            Body::Tokens { assigned } => self.names.extend(assigned.iter().cloned()),
            Body::Commit { mutations, .. } => {
                mutations.iter().for_each(|mutation| self.mutate(mutation, &mut effect));
            }
            Body::Load { load_id, .. } => {
                let wrong = |what: String| {
                    Violation::new(Invariant::Load1, format!("load {load_id} at {}: {what}", record.version))
                };
                let plan = self.submitted.get(load_id).map(|load| load.plan.clone());
                let plan = plan.ok_or_else(|| wrong("no worker has submitted it".into()))?;
                self.load(&plan).map_err(wrong)?;
                effect = Effect { writes: true, load: Some(load_id.clone()), ..effect };
            }
            _ => {}
        }
        Ok(effect)
    }

    /// Applies the rows of a load to the graph as it is.
    fn load(&mut self, plan: &LoadPlan) -> Result<(), String> {
        let token = |name: &str| self.token(name).ok_or_else(|| format!("{name:?} has no token"));
        let labels = [token(LABEL)?, token(LOADED)?];
        let rows: Vec<(&str, Vec<(Token, i64)>)> = plan
            .vertices
            .iter()
            .map(|row| {
                let values = row.properties(plan.number).map(|(key, value)| Ok((token(key)?, value)));
                Ok((row.id.as_str(), values.collect::<Result<_, String>>()?))
            })
            .collect::<Result<_, String>>()?;
        let of_edges = if plan.edges.is_empty() { None } else { Some((token(LOAD_EDGE)?, token(LOAD)?)) };
        for (id, values) in rows {
            let new = || (Str::from(id), BTreeSet::new(), BTreeMap::new());
            let (_, known, properties) = self.vertices.entry(gui_of(id)).or_insert_with(new);
            known.extend(labels);
            for (key, value) in values {
                if plan.replaces {
                    properties.insert(key, value);
                } else {
                    properties.entry(key).or_insert(value);
                }
            }
        }
        let Some((label, key)) = of_edges else { return Ok(()) };
        for (from, to) in &plan.edges {
            let (source, target) = (gui_of(from), gui_of(to));
            if let Some(id) = [(from, source), (to, target)]
                .into_iter()
                .find_map(|(id, gui)| (!self.vertices.contains_key(&gui)).then_some(id))
            {
                return Err(format!("an edge from {from} to {to} is visible where {id} is not"));
            }
            // The log does not have its SID, and no transaction of the world names it.
            let sid = Sid(u64::MAX - self.loaded_edges);
            self.loaded_edges += 1;
            let edge = Edge { sid, source, target, label };
            self.edges.insert(sid, (edge, BTreeMap::from([(key, plan.number)])));
        }
        Ok(())
    }

    fn set(&mut self, gui: Gui, writes: &[PropertyWrite], effect: &mut Effect) {
        let Some((_, _, properties)) = self.vertices.get_mut(&gui) else { return };
        effect.writes = true;
        for write in writes {
            let value = value_of(&write.value);
            properties.insert(write.key, value);
            if self.names.get(&write.key).is_some_and(|name| &**name == TAG) {
                effect.tags.insert(value);
            }
        }
    }

    fn mutate(&mut self, mutation: &Mutation, effect: &mut Effect) {
        match mutation {
            Mutation::CreateVertex { gui, id, labels, properties } if is_item(id) => {
                let new = || (id.clone(), BTreeSet::new(), BTreeMap::new());
                self.vertices.entry(*gui).or_insert_with(new).1.extend(labels);
                self.set(*gui, properties, effect);
            }
            Mutation::SetVertexProperty { gui, write } => self.set(*gui, std::slice::from_ref(write), effect),
            Mutation::AddLabels { gui, labels } => {
                if let Some((_, known, _)) = self.vertices.get_mut(gui) {
                    known.extend(labels);
                    effect.writes = true;
                }
            }
            Mutation::DeleteVertex { gui, .. } => {
                effect.writes |= self.vertices.remove(gui).is_some();
                self.edges.retain(|_, (edge, _)| edge.source != *gui && edge.target != *gui);
            }
            Mutation::CreateEdge { edge, properties, .. } if self.vertices.contains_key(&edge.source) => {
                let properties = properties.iter().map(|(key, value)| (*key, value_of(value))).collect();
                self.edges.insert(edge.sid, (*edge, properties));
                effect.writes = true;
            }
            Mutation::DeleteEdge { edge, .. } => effect.writes |= self.edges.remove(&edge.sid).is_some(),
            Mutation::DefineIndex { index } => {
                self.indexes.insert(index.name.clone(), index.clone());
                effect.schema = true;
            }
            Mutation::DropIndex { name } => {
                self.indexes.remove(name);
                effect.schema = true;
            }
            Mutation::Reset => {
                self.vertices.clear();
                self.edges.clear();
                effect.resets = true;
            }
            // Statements write no other mutations.
            _ => {}
        }
    }

    /// Returns the vertices of a partition: labels and properties by GUI.
    pub fn vertices_of(
        &self,
        partition: PartitionId,
        layout: Layout,
    ) -> BTreeMap<Gui, (BTreeSet<Token>, BTreeMap<Token, i64>)> {
        let here = self.vertices.iter().filter(|(gui, _)| layout.of(**gui) == partition);
        here.map(|(gui, (_, labels, properties))| (*gui, (labels.clone(), properties.clone()))).collect()
    }

    /// Returns the GUIs of all items.
    pub fn vertices(&self) -> impl Iterator<Item = Gui> {
        self.vertices.keys().copied()
    }

    /// Returns all edges between items.
    pub fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.edges.values().map(|(edge, _)| edge)
    }

    /// Returns the token of a name.
    pub fn token(&self, name: &str) -> Option<Token> {
        self.names.iter().find(|(_, known)| &***known == name).map(|(token, _)| *token)
    }

    /// Returns all items. IDS-1: each token of theirs has a name.
    pub fn items(&self) -> Result<Items, Violation> {
        let named = |properties: &BTreeMap<Token, i64>| {
            let named = properties.iter().map(|(key, value)| Ok((self.name(*key)?, *value)));
            named.collect::<Result<BTreeMap<_, _>, Violation>>()
        };
        let mut items = BTreeMap::new();
        for (id, labels, properties) in self.vertices.values() {
            let labels = labels.iter().map(|label| self.name(*label)).collect::<Result<_, _>>()?;
            items.insert(id.to_string(), Item { labels, properties: named(properties)? });
        }
        let id = |gui: &Gui| self.vertices.get(gui).map_or_else(String::new, |(id, ..)| id.to_string());
        let mut links = Vec::new();
        for (edge, properties) in self.edges.values() {
            let (source, target, label) = (id(&edge.source), id(&edge.target), self.name(edge.label)?);
            links.push(Link { source, target, label, properties: named(properties)? });
        }
        links.sort_unstable();
        Ok(Items { items, links })
    }
}

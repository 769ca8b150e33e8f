//! Statements of openCypher and Gremlin, drawn at random, and what they must answer.
//!
//! Each statement has a text for the engine, and [`Statement::run`] does the same to [`Items`]. Every writing statement
//! but `Remove` writes a number that is its own (its tag), by which its record is found in the log.

use crate::items::{Item, Items, LABEL, Link, TAG, id_of};
use std::collections::{BTreeMap, BTreeSet};
use tidegraph_engine::{Language, Parameters};
use tidegraph_platform::{Random, SeededRandom};
use tidegraph_types::{Str, Value};

/// Number of items.
pub(crate) const ITEMS: u64 = 6;
/// Number of values of the property with an index, and of the one with a constraint.
pub(crate) const CODES: u64 = 4;
pub(crate) const KEYS: u64 = 24;
/// Names that several workers bring at about the same time; all other names are each worker's own.
const SHARED_NAMES: u64 = 40;

/// Names of the index and of the constraint.
pub(crate) const INDEX: &str = "item_code";
pub(crate) const CONSTRAINT: &str = "item_key";
/// The properties that they are over.
pub(crate) const CODE: &str = "code";
pub(crate) const KEY: &str = "key";
const HITS: &str = "hits";
/// Properties that may have an index.
pub(crate) const INDEXED: [&str; 2] = [CODE, KEY];

/// A statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Statement {
    /// Creates an item or changes it.
    Put {
        id: String,
        code: i64,
        key: i64,
        tag: i64,
    },
    /// Counts a hit of each item with a code.
    Touch {
        code: i64,
        tag: i64,
    },
    /// Brings a name as label, property key and edge label.
    Name {
        from: String,
        to: String,
        name: String,
        tag: i64,
    },
    /// Deletes an item with its edges.
    Remove {
        id: String,
    },
    /// Reads the items with a code.
    ByCode {
        code: i64,
    },
    /// The same in Gremlin.
    ByCodeGremlin {
        code: i64,
    },
    /// Counts the items whose code is not lower.
    From {
        code: i64,
    },
    /// Reads the items with a key.
    ByKey {
        key: i64,
    },
    /// Reads labels and properties of one item.
    One {
        id: String,
    },
    /// Reads the items with a label.
    Labelled {
        name: String,
    },
    /// Reads all edges.
    Links,
    /// Reads all items.
    All,
    CreateIndex,
    DropIndex,
    CreateConstraint,
    DropConstraint,
    ShowIndexes,
}

/// Rows of an answer in any order, as text.
pub(crate) type Rows = Vec<Vec<String>>;

/// Returns a value as text. Lists and maps are in order.
fn plain(value: &Value) -> String {
    let joined = |mut parts: Vec<String>| {
        parts.sort_unstable();
        format!("[{}]", parts.join(","))
    };
    match value {
        Value::Null => "null".into(),
        Value::Long(number) => number.to_string(),
        Value::String(text) => text.to_string(),
        Value::List(list) => joined(list.iter().map(plain).collect()),
        Value::Map(map) => {
            joined(map.iter().map(|(key, value)| format!("{}:{}", plain(key), plain(value))).collect())
        }
        other => format!("{other:?}"),
    }
}

/// Returns rows as [`Statement::run`] does.
pub(crate) fn rows_of(rows: &[Vec<Value>]) -> Rows {
    let mut rows: Rows = rows.iter().map(|row| row.iter().map(plain).collect()).collect();
    rows.sort_unstable();
    rows
}

fn labels_of(item: &Item) -> String {
    format!("[{}]", item.labels.iter().cloned().collect::<Vec<_>>().join(","))
}

fn properties_of(properties: &BTreeMap<String, i64>) -> String {
    let mut parts: Vec<String> = properties.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    parts.sort_unstable();
    format!("[{}]", parts.join(","))
}

fn property(item: &Item, key: &str) -> String {
    item.properties.get(key).map_or_else(|| "null".into(), ToString::to_string)
}

impl Statement {
    /// Draws a statement. `writer` is the number of the process, `count` that of its statements so far. Beside loads, more
    /// items are removed.
    pub fn draw(random: &SeededRandom, writer: usize, count: i64, beside_loads: bool) -> Self {
        let below = |count: u64| random.below(count) as i64;
        let id = || id_of(random.below(ITEMS));
        let tag = (writer as i64 + 1) * 1_000_000 + count;
        let name = || match random.below(3) {
            0 => format!("N{writer}x{count}"),
            _ => format!("N{}", random.below(SHARED_NAMES)),
        };
        if beside_loads && random.one_in(8) {
            return Self::Remove { id: id() };
        }
        match random.below(44) {
            40..43 | 0..8 => Self::Put { id: id(), code: below(CODES), key: below(KEYS), tag },
            8..13 => Self::Touch { code: below(CODES), tag },
            13..19 => Self::Name { from: id(), to: id(), name: name(), tag },
            19 => Self::Remove { id: id() },
            20..24 => Self::ByCode { code: below(CODES) },
            24 => Self::ByCodeGremlin { code: below(CODES) },
            25 => Self::From { code: below(CODES) },
            26..28 => Self::ByKey { key: below(KEYS) },
            28..30 => Self::One { id: id() },
            30 => Self::Labelled { name: name() },
            31 => Self::Links,
            32 => Self::All,
            33..35 => Self::CreateIndex,
            35 => Self::DropIndex,
            36 | 37 | 43 => Self::CreateConstraint,
            38 => Self::DropConstraint,
            _ => Self::ShowIndexes,
        }
    }

    /// Returns reads that together see all items, through the indexes too.
    pub fn reads() -> Vec<Self> {
        let by_code = (0..CODES as i64).map(|code| Self::ByCode { code });
        let by_key = (0..KEYS as i64).step_by(3).map(|key| Self::ByKey { key });
        [Self::All, Self::Links, Self::From { code: 0 }].into_iter().chain(by_code).chain(by_key).collect()
    }

    /// Returns language, text and parameters for the engine.
    pub fn query(&self) -> (Language, String, Parameters) {
        let mut parameters = Parameters::default();
        let mut with = |key: &str, value: Value| {
            parameters.insert(Str::from(key), value);
        };
        let text = match self {
            Self::Put { id, code, key, tag } => {
                with("id", Value::string(id.as_str()));
                with("code", Value::Long(*code));
                with("key", Value::Long(*key));
                with("tag", Value::Long(*tag));
                "MERGE (n:Item {`~id`: $id}) SET n.code = $code, n.key = $key, n.tag = $tag \
                 RETURN n.code AS code, n.hits AS hits"
                    .into()
            }
            Self::Touch { code, tag } => {
                with("code", Value::Long(*code));
                with("tag", Value::Long(*tag));
                "MATCH (n:Item {code: $code}) SET n.hits = coalesce(n.hits, 0) + 1, n.tag = $tag \
                 RETURN id(n) AS id, n.hits AS hits"
                    .into()
            }
            Self::Name { from, to, name, tag } => {
                with("from", Value::string(from.as_str()));
                with("to", Value::string(to.as_str()));
                with("tag", Value::Long(*tag));
                format!(
                    "MATCH (a:Item {{`~id`: $from}}), (b:Item {{`~id`: $to}}) SET a:{name}, a.{name} = $tag, a.tag = $tag \
                     CREATE (a)-[e:{name} {{{name}: $tag}}]->(b) \
                     RETURN labels(a) AS labels, properties(a) AS properties, type(e) AS type"
                )
            }
            Self::Remove { id } => {
                with("id", Value::string(id.as_str()));
                "MATCH (n:Item {`~id`: $id}) DETACH DELETE n".into()
            }
            Self::ByCode { code } => {
                with("code", Value::Long(*code));
                "MATCH (n:Item {code: $code}) RETURN id(n) AS id, n.key AS key, n.hits AS hits".into()
            }
            Self::ByCodeGremlin { code } => format!("g.V().hasLabel('{LABEL}').has('{CODE}', {code}L).id()"),
            Self::From { code } => {
                with("code", Value::Long(*code));
                "MATCH (n:Item) WHERE n.code >= $code RETURN count(*) AS count".into()
            }
            Self::ByKey { key } => {
                with("key", Value::Long(*key));
                "MATCH (n:Item {key: $key}) RETURN id(n) AS id, n.code AS code".into()
            }
            Self::One { id } => {
                with("id", Value::string(id.as_str()));
                "MATCH (n:Item {`~id`: $id}) RETURN labels(n) AS labels, properties(n) AS properties".into()
            }
            Self::Labelled { name } => format!("MATCH (n:{name}) RETURN id(n) AS id"),
            Self::Links => "MATCH (n:Item)-[e]->(m:Item) \
                            RETURN id(n) AS source, id(m) AS target, type(e) AS label, properties(e) AS properties"
                .into(),
            Self::All => {
                "MATCH (n:Item) RETURN id(n) AS id, labels(n) AS labels, properties(n) AS properties".into()
            }
            Self::CreateIndex => {
                format!("CREATE INDEX {INDEX} IF NOT EXISTS FOR (n:{LABEL}) ON (n.{CODE})")
            }
            Self::DropIndex => format!("DROP INDEX {INDEX} IF EXISTS"),
            Self::CreateConstraint => {
                format!("CREATE CONSTRAINT {CONSTRAINT} IF NOT EXISTS FOR (n:{LABEL}) REQUIRE n.{KEY} IS UNIQUE")
            }
            Self::DropConstraint => format!("DROP CONSTRAINT {CONSTRAINT} IF EXISTS"),
            Self::ShowIndexes => "SHOW INDEXES".into(),
        };
        let language = match self {
            Self::ByCodeGremlin { .. } => Language::Gremlin,
            _ => Language::OpenCypher,
        };
        (language, text, parameters)
    }

    /// Returns whether the statement creates or drops an index or a constraint.
    pub fn changes_schema(&self) -> bool {
        matches!(self, Self::CreateIndex | Self::DropIndex | Self::CreateConstraint | Self::DropConstraint)
    }

    /// Returns whether the statement is about indexes and constraints, and not about items.
    pub fn is_of_schema(&self) -> bool {
        self.changes_schema() || *self == Self::ShowIndexes
    }

    /// Returns the statement's own number.
    pub fn tag(&self) -> Option<i64> {
        match self {
            Self::Put { tag, .. } | Self::Touch { tag, .. } | Self::Name { tag, .. } => Some(*tag),
            _ => None,
        }
    }

    /// Runs the statement on items, and returns its rows. A statement about the schema has none.
    pub fn run(&self, items: &mut Items) -> Rows {
        let mut rows = match self {
            Self::Put { id, code, key, tag } => vec![put(items, id, *code, *key, *tag)],
            Self::Touch { code, tag } => touch(items, *code, *tag),
            Self::Name { from, to, name, tag } => link(items, from, to, name, *tag),
            Self::Remove { id } => {
                items.items.remove(id);
                items.links.retain(|link| link.source != *id && link.target != *id);
                vec![]
            }
            Self::ByCode { code } => of_value(items, CODE, *code)
                .map(|(id, item)| vec![id.clone(), property(item, KEY), property(item, HITS)])
                .collect(),
            Self::ByCodeGremlin { code } => {
                of_value(items, CODE, *code).map(|(id, _)| vec![id.clone()]).collect()
            }
            Self::From { code } => {
                let has = |item: &&Item| item.properties.get(CODE).is_some_and(|value| value >= code);
                vec![vec![items.items.values().filter(has).count().to_string()]]
            }
            Self::ByKey { key } => {
                of_value(items, KEY, *key).map(|(id, item)| vec![id.clone(), property(item, CODE)]).collect()
            }
            Self::One { id } => {
                let found = items.items.get(id).into_iter();
                found.map(|item| vec![labels_of(item), properties_of(&item.properties)]).collect()
            }
            Self::Labelled { name } => {
                let found = items.items.iter().filter(|(_, item)| item.labels.contains(name));
                found.map(|(id, _)| vec![id.clone()]).collect()
            }
            Self::Links => items
                .links
                .iter()
                .map(|link| {
                    let properties = properties_of(&link.properties);
                    vec![link.source.clone(), link.target.clone(), link.label.clone(), properties]
                })
                .collect(),
            Self::All => {
                let row = |(id, item): (&String, &Item)| {
                    vec![id.clone(), labels_of(item), properties_of(&item.properties)]
                };
                items.items.iter().map(row).collect()
            }
            Self::CreateIndex
            | Self::DropIndex
            | Self::CreateConstraint
            | Self::DropConstraint
            | Self::ShowIndexes => vec![],
        };
        rows.sort_unstable();
        rows
    }
}

fn of_value<'i>(items: &'i Items, key: &'i str, value: i64) -> impl Iterator<Item = (&'i String, &'i Item)> {
    items.items.iter().filter(move |(_, item)| item.properties.get(key) == Some(&value))
}

fn put(items: &mut Items, id: &str, code: i64, key: i64, tag: i64) -> Vec<String> {
    let item = items.items.entry(id.to_owned()).or_default();
    item.labels.insert(LABEL.into());
    let values = [(CODE, code), (KEY, key), (TAG, tag)];
    item.properties.extend(values.map(|(key, value)| (key.to_owned(), value)));
    vec![property(item, CODE), property(item, HITS)]
}

fn touch(items: &mut Items, code: i64, tag: i64) -> Rows {
    let found = items.items.iter_mut().filter(|(_, item)| item.properties.get(CODE) == Some(&code));
    found
        .map(|(id, item)| {
            *item.properties.entry(HITS.into()).or_default() += 1;
            item.properties.insert(TAG.into(), tag);
            vec![id.clone(), property(item, HITS)]
        })
        .collect()
}

fn link(items: &mut Items, from: &str, to: &str, name: &str, tag: i64) -> Rows {
    if !items.items.contains_key(to) {
        return vec![];
    }
    let Some(item) = items.items.get_mut(from) else { return vec![] };
    item.labels.insert(name.to_owned());
    item.properties.extend([name, TAG].map(|key| (key.to_owned(), tag)));
    let row = vec![labels_of(item), properties_of(&item.properties), name.to_owned()];
    let properties = BTreeMap::from([(name.to_owned(), tag)]);
    let (source, target, label) = (from.to_owned(), to.to_owned(), name.to_owned());
    items.links.push(Link { source, target, label, properties });
    items.links.sort_unstable();
    vec![row]
}

/// Returns the names of indexes in an answer to `SHOW INDEXES`.
pub(crate) fn shown(rows: &Rows) -> BTreeSet<String> {
    rows.iter().filter_map(|row| row.first().cloned()).collect()
}

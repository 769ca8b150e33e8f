//! Indexes of a graph in a fleet. Each replica has the part of its partition, and fills it by itself.

use super::Shared;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_apl::{
    Apl, Projection, PropertyPredicate, ScanCursor, Test, VertexRead, VertexRows, VertexScan,
};
use tidegraph_engine::Error;
use tidegraph_storage::{Duplicate, IndexState};
use tidegraph_types::{Epoch, ErrorCode, Gui, IndexDefinition, PartitionId, Str, Token, Value, Version};

/// Longest wait for the status of a node.
const ANSWER: Duration = Duration::from_secs(2);
/// Pause between two rounds of requests while indexes are filled.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest wait for replicas that lag.
const PATIENCE: Duration = Duration::from_secs(10);
/// Number of vertices in one scan for duplicates.
const ROWS: u32 = 4_096;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeStatus {
    #[serde(default)]
    map_epoch: u64,
    replicas: Vec<ReplicaStatus>,
}

#[derive(Deserialize)]
struct ReplicaStatus {
    partition: u16,
    ready: bool,
    version: u64,
    indexes: Vec<IndexStatus>,
}

#[derive(Deserialize)]
struct IndexStatus {
    name: String,
    label: u32,
    key: u32,
    unique: bool,
    // A node of an earlier release does not say it.
    #[serde(default)]
    unchecked: bool,
    complete: bool,
    entries: usize,
}

impl Shared {
    /// Asks the nodes that answer reads for their status. Returns the answers with the endpoints.
    fn ask_nodes(&self) -> Vec<(String, Result<String, tidegraph_remote::Error>)> {
        let map = self.watch.map();
        let asked = map.nodes().filter(|(_, node)| node.answers());
        let endpoints: Vec<String> = asked.map(|(_, node)| node.endpoint.clone()).collect();
        let addresses: Vec<Arc<str>> = endpoints.iter().map(|endpoint| endpoint.as_str().into()).collect();
        endpoints.into_iter().zip(self.fleet.statuses(&addresses, ANSWER)).collect()
    }

    /// Returns the map and the status of its nodes as JSON.
    pub(super) fn fleet_status(&self) -> Json {
        let map = self.watch.map();
        let said: BTreeMap<String, Json> = self
            .ask_nodes()
            .into_iter()
            .map(|(endpoint, answer)| {
                let said = match answer {
                    Ok(text) => serde_json::from_str(&text).unwrap_or(Json::Null),
                    Err(error) => json!({ "error": error.to_string() }),
                };
                (endpoint, said)
            })
            .collect();
        let nodes: Vec<Json> = map
            .nodes()
            .map(|(id, node)| {
                json!({
                    "id": id.as_str(),
                    "zone": node.zone,
                    "endpoint": node.endpoint,
                    "state": node.state.to_string(),
                    "says": said.get(&node.endpoint),
                })
            })
            .collect();
        let partitions: Vec<Json> = map
            .partitions()
            .map(|(partition, replicas)| {
                let replicas: Vec<Json> = replicas
                    .iter()
                    .map(|replica| json!({ "node": replica.node.as_str(), "state": replica.state.to_string() }))
                    .collect();
                json!({ "partition": partition.0, "replicas": replicas })
            })
            .collect();
        let halted = self.halted.load(Ordering::Acquire);
        json!({
            "mapEpoch": map.epoch().0,
            "haltedVersion": (halted > 0).then_some(halted),
            "nodes": nodes,
            "partitions": partitions,
            "splits": map.graph().splits,
        })
    }

    /// Returns all indexes as of the newest known version or a later one. An index is complete if it is on every
    /// replica. Waits for replicas that lag, up to [`PATIENCE`].
    pub(super) fn indexes(&self) -> Result<Vec<IndexState>, Error> {
        let (least, end) = (self.read_position().version, self.clock.now() + PATIENCE);
        loop {
            match self.indexes_at(least).and_then(|found| self.with_names(found)) {
                Err(error) if error.code() == ErrorCode::Unavailable && self.clock.now() < end => {
                    self.clock.sleep(PAUSE);
                }
                other => return other,
            }
        }
    }

    /// Makes sure that the names of labels and keys are known: replicas may be ahead of the newest known version.
    fn with_names(&self, found: Vec<IndexState>) -> Result<Vec<IndexState>, Error> {
        let tokens = found.iter().flat_map(|index| [index.definition.label, index.definition.key]);
        self.catalog.cover(Some(tokens.max().unwrap_or_default())).map_err(super::to_engine_error)?;
        Ok(found)
    }

    /// Checks that every replica that answers has applied a version, and that one of each partition answers.
    pub(super) fn applied_everywhere(&self, version: Version) -> Result<(), Error> {
        self.indexes_at(version).map(drop)
    }

    fn indexes_at(&self, least: Version) -> Result<Vec<IndexState>, Error> {
        let map = self.watch.map();
        let (layout, mut newest_map) = (map.graph().layout(), map.epoch());
        let mut seen: BTreeSet<u16> = BTreeSet::new();
        let mut found: BTreeMap<String, (IndexState, BTreeSet<u16>)> = BTreeMap::new();
        for (endpoint, answer) in self.ask_nodes() {
            let Ok(text) = answer else { continue };
            let status: NodeStatus = serde_json::from_str(&text).map_err(|error| {
                Error::new(ErrorCode::Internal, format!("cannot read the status of node {endpoint}: {error}"))
            })?;
            newest_map = newest_map.max(Epoch(status.map_epoch));
            let is_asked = |replica: &ReplicaStatus| {
                replica.ready && layout.number(PartitionId(replica.partition)).is_some()
            };
            for replica in status.replicas.into_iter().filter(is_asked) {
                if Version(replica.version) < least {
                    let (partition, version) = (replica.partition, replica.version);
                    let message = format!(
                        "partition {partition} on {endpoint} is at version {version}, and has to reach {least}"
                    );
                    return Err(Error::new(ErrorCode::Unavailable, message));
                }
                let first = seen.insert(replica.partition);
                for index in replica.indexes {
                    let definition = IndexDefinition {
                        name: Str::from(index.name.as_str()),
                        label: Token(index.label),
                        key: Token(index.key),
                        unique: index.unique,
                        unchecked: index.unchecked,
                    };
                    let new = || (IndexState { definition, complete: true, entries: 0 }, BTreeSet::new());
                    let (state, of) = found.entry(index.name).or_insert_with(new);
                    state.complete &= index.complete;
                    state.definition.unchecked |= index.unchecked;
                    of.insert(replica.partition);
                    if first {
                        state.entries += index.entries;
                    }
                }
            }
        }
        let count = usize::from(layout.count().get());
        if seen.len() < count {
            // The graph may have been split, and nodes have given up the partitions that this process knows.
            if newest_map > map.epoch() {
                self.watch.stale(map.epoch(), ANSWER);
            }
            let message = format!("only {} of {count} partitions answer", seen.len());
            return Err(Error::new(ErrorCode::Unavailable, message));
        }
        let whole = |(mut state, of): (IndexState, BTreeSet<u16>)| {
            state.complete &= of.len() == count;
            state
        };
        Ok(found.into_values().map(whole).collect())
    }

    /// Waits until all indexes are complete.
    pub(super) fn wait_for_indexes(&self, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        while !stop() {
            match self.indexes() {
                Ok(indexes) if indexes.iter().all(|index| index.complete) => return Ok(()),
                Err(error) if error.code() != ErrorCode::Unavailable => return Err(error),
                _ => self.clock.sleep(PAUSE),
            }
        }
        Ok(())
    }

    /// Searches the vertices of an index for two with the same value. Keeps 16 bytes for each vertex: its GUI and a
    /// hash of the value. If two hashes are equal, the values are compared.
    pub(super) fn duplicate(&self, name: &str) -> Result<Option<Duplicate>, Error> {
        let indexes = self.indexes()?;
        let Some(index) = indexes.into_iter().find(|index| index.definition.name == name) else {
            return Ok(None);
        };
        let IndexDefinition { label, key, .. } = index.definition;
        let at = self.read_position();
        let _held = self.readers.begin(at.version, self.clock.now());
        let scan = VertexScan {
            labels: vec![vec![label]],
            predicates: vec![PropertyPredicate::any(key, Test::Exists)],
            max_rows: ROWS,
        };
        let read = VertexRead { ids: true, properties: Projection::Keys(vec![key]), ..VertexRead::default() };
        let mut first: rustc_hash::FxHashMap<u64, Gui> = rustc_hash::FxHashMap::default();
        let (mut guis, mut rows, mut cursor) =
            (Vec::new(), VertexRows::default(), Some(ScanCursor::default()));
        // One view for all pieces, because only it knows the replicas that its cursors name.
        let mut apl = self.fleet.query(None, None);
        while let Some(from) = cursor {
            guis.clear();
            rows.clear();
            // Each piece has a deadline of its own: all of them may take longer than a query may.
            apl.renew(None);
            cursor = apl.scan_vertices(at, &scan, from, &mut guis)?;
            apl.vertices(at, &read, &guis, &mut rows)?;
            for (row, gui) in guis.iter().enumerate() {
                for cell in rows.cells_of(row) {
                    let other = *first.entry(hash(&cell.value)).or_insert(*gui);
                    if other == *gui {
                        continue;
                    }
                    let mut others = VertexRows::default();
                    apl.vertices(at, &read, &[other], &mut others)?;
                    let same = Test::Equals(cell.value.clone());
                    if others.cells_of(0).iter().any(|cell| same.passes(&cell.value)) {
                        let ids = [others.ids[0].clone(), rows.ids[row].clone()];
                        return Ok(Some(Duplicate { ids, value: cell.value.clone() }));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// Hashes a value. Equal numbers have equal hashes, whatever their width.
fn hash(value: &Value) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = xxhash_rust::xxh3::Xxh3Default::new();
    value.hash(&mut hasher);
    hasher.finish()
}

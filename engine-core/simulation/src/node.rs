//! A node of the fleet: the real storage node, candidate and leader's maintenance with
//! their services, driven step by step.

use crate::broker::SimLog;
use crate::items::{ItemLog, LABEL, value_of};
use crate::map::SimMap;
use crate::model::{Seen, number};
use crate::process::Process;
use crate::start::SetupError;
use crate::statement::INDEXED;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{
    Apl, At, Cursor, Error as AplError, Expand, Expansion, Projection, PropertyPredicate, ScanCursor, Test,
    VertexRead, VertexRows, VertexScan,
};
use tidegraph_cluster::{Claim, Graph, NodeId, Registration, Role, WatchConfig};
use tidegraph_fleet::role::{CheckpointRecovery, LeaderMaintenance, MaintenanceConfig, SequencerService};
use tidegraph_fleet::sequencing::{Candidate, CandidateConfig};
use tidegraph_fleet::{NodeConfig, NodeParts, NodeService, StorageNode};
use tidegraph_platform::{Clock, Objects, RealDisk, SeededRandom};
use tidegraph_remote::{Node as _, Services};
use tidegraph_storage::checkpoint::LocalCopies;
use tidegraph_types::{Direction, Epoch, Gui, Layout, PartitionId, Token, Value};

/// The parts of one life of a node.
pub(crate) struct Parts {
    pub graph: Graph,
    pub name: String,
    /// Number of the life.
    pub life: u64,
    pub process: Arc<Process>,
    pub map: Arc<SimMap>,
    pub log: SimLog,
    pub objects: Arc<Objects>,
    pub copies: Option<Arc<LocalCopies>>,
    pub candidate: CandidateConfig,
    pub checkpoint_versions: u64,
    pub seed: u64,
}

/// One life of a node.
pub(crate) struct RunningNode {
    pub process: Arc<Process>,
    pub node: StorageNode,
    pub candidate: Arc<Candidate>,
    pub maintenance: LeaderMaintenance,
    pub service: NodeService,
    pub commits: SequencerService,
    /// The services that its server would offer.
    pub services: Services,
}

impl RunningNode {
    /// Starts a node as the daemon does. After an error the world starts it again, as a supervisor would.
    pub fn start(parts: Parts) -> Result<Self, SetupError> {
        let Parts {
            graph,
            name,
            life,
            process,
            map,
            log,
            objects,
            copies,
            candidate,
            checkpoint_versions,
            seed,
        } = parts;
        let clock: Arc<dyn Clock> = process.clock.clone();
        let config = NodeConfig {
            checkpoint_versions,
            checkpoint_after: Duration::from_secs(3),
            beat: Duration::from_millis(500),
            watch: WatchConfig { refresh_every: Duration::from_millis(100) },
            ..NodeConfig::default()
        };
        let (service, commits) = (NodeService::default(), SequencerService::default());
        let node = NodeParts {
            graph: graph.name.clone(),
            registration: registration(&name)?,
            map_store: map.clone(),
            log: Arc::new(log.clone()),
            objects: objects.clone(),
            clock: clock.clone(),
            random: Arc::new(SeededRandom::new(seed)),
            // Nodes here have no memory budget, so nothing is written to it.
            disk: Arc::new(RealDisk),
            reads: Arc::default(),
            copies,
        };
        let node = StorageNode::without_threads(config, node, &service)?;
        let takeover = CheckpointRecovery {
            graph: graph.name.clone(),
            map_store: map.clone(),
            objects: objects.clone(),
            log: Arc::new(log.clone()),
        };
        let claim =
            Claim { holder: format!("{name}-{life}"), endpoint: name, ttl: Duration::ZERO, above: Epoch(0) };
        let candidate = Candidate::without_thread(
            map.clone(),
            clock.clone(),
            &graph.name,
            claim,
            Arc::new(takeover),
            candidate,
        );
        let candidate = Arc::new(candidate);
        commits.attach(&candidate);
        let care = MaintenanceConfig {
            lost_after: Duration::from_secs(3),
            step: Duration::from_secs(1),
            ..MaintenanceConfig::default()
        };
        let maintenance =
            LeaderMaintenance::without_thread(&graph.name, map, objects, candidate.clone(), clock, care);
        let services = service.services(Some(Arc::new(commits.clone())));
        Ok(Self { process, node, candidate, maintenance, service, commits, services })
    }

    /// Reads a vertex at a version from this node's replica of the partition.
    pub fn read(&self, partition: PartitionId, at: At, list: Token, gui: Gui) -> Result<Seen, AplError> {
        let served = self.service.partition(partition, at.epoch)?;
        see(&*served.apl, at, list, &[gui]).map(|seen| seen.into_iter().next().unwrap_or_default())
    }

    /// Compares the items of a replica with those of the log: read by their GUIs, and found by their label and the
    /// values that have an index. Returns the first difference.
    pub fn check_items(
        &self,
        partition: PartitionId,
        at: At,
        log: &ItemLog,
        layout: Layout,
    ) -> Result<Option<String>, AplError> {
        let served = self.service.partition(partition, at.epoch)?;
        let expected = log.vertices_of(partition, layout);
        let guis: Vec<Gui> = expected.keys().copied().collect();
        let read = VertexRead { labels: true, properties: Projection::All, ..VertexRead::default() };
        let mut rows = VertexRows::default();
        served.apl.vertices(at, &read, &guis, &mut rows)?;
        for (row, (gui, (labels, properties))) in expected.iter().enumerate() {
            let here: BTreeSet<Token> = rows.labels_of(row).iter().copied().collect();
            let cells = rows.cells_of(row).iter().map(|cell| (cell.key, value_of(&cell.value)));
            let values: BTreeMap<Token, i64> = cells.collect();
            if here != *labels || values != *properties {
                return Ok(Some(format!(
                    "{gui:?} has {here:?} and {values:?}, not {labels:?} and {properties:?}"
                )));
            }
        }
        let Some(label) = log.token(LABEL) else { return Ok(None) };
        for key in INDEXED.iter().filter_map(|name| log.token(name)) {
            let values: BTreeSet<i64> =
                expected.values().filter_map(|(_, properties)| properties.get(&key).copied()).collect();
            for value in values {
                let scan = VertexScan {
                    labels: vec![vec![label]],
                    predicates: vec![PropertyPredicate::any(key, Test::Equals(Value::Long(value)))],
                    max_rows: 1_000,
                };
                let (mut found, mut from) = (Vec::new(), Some(ScanCursor::default()));
                while let Some(cursor) = from {
                    from = served.apl.scan_vertices(at, &scan, cursor, &mut found)?;
                }
                found.sort_unstable();
                let has = |properties: &BTreeMap<Token, i64>| properties.get(&key) == Some(&value);
                let those = expected.iter().filter(|(_, (_, properties))| has(properties));
                let those: Vec<Gui> = those.map(|(gui, _)| *gui).collect();
                if found != those {
                    return Ok(Some(format!("{found:?} have {value} under {key:?}, not {those:?}")));
                }
            }
        }
        Ok(None)
    }
}

/// Reads vertices at a version.
pub(crate) fn see(apl: &dyn Apl, at: At, list: Token, guis: &[Gui]) -> Result<Vec<Seen>, AplError> {
    let read = VertexRead { properties: Projection::Keys(vec![list]), ..VertexRead::default() };
    let mut rows = VertexRows::default();
    apl.vertices(at, &read, guis, &mut rows)?;
    let edges = |direction: Direction| -> Result<Vec<Vec<(u64, u64)>>, AplError> {
        let (mut found, mut from) = (Expansion::default(), Some(Cursor::default()));
        while let Some(cursor) = from {
            from = apl.expand(at, &Expand::all(direction), guis, cursor, &mut found)?;
        }
        let mut edges = vec![vec![]; guis.len()];
        for (row, (sid, other)) in found.row.iter().zip(found.sid.iter().zip(&found.neighbour)) {
            edges[*row as usize].push((sid.0, other.0));
        }
        edges.iter_mut().for_each(|of_one| of_one.sort_unstable());
        Ok(edges)
    };
    let ends = edges(Direction::Out)?.into_iter().zip(edges(Direction::In)?);
    Ok(ends
        .enumerate()
        .map(|(row, (outgoing, incoming))| Seen {
            present: rows.present[row],
            list: rows.cells_of(row).iter().map(|cell| number(&cell.value)).collect(),
            outgoing,
            incoming,
        })
        .collect())
}

fn registration(name: &str) -> Result<Registration, SetupError> {
    Ok(Registration {
        id: NodeId::new(name)?,
        zone: "z".into(),
        endpoint: name.into(),
        capacity_bytes: 1 << 30,
        roles: [Role::Storage, Role::Sequencer].into(),
    })
}

//! A node of the fleet: the real storage node, candidate, caretaker and their doors, driven step by step.

use crate::broker::SimLog;
use crate::map::SimMap;
use crate::model::{Seen, number};
use crate::process::Process;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{
    Apl, At, Cursor, Error as AplError, Expand, Expansion, Projection, VertexRead, VertexRows,
};
use tidegraph_cluster::{Claim, Graph, NodeId, Registration, Role, WatchConfig};
use tidegraph_fleet::role::{Caretaker, CaretakerConfig, FromCheckpoints, SequencerDoor};
use tidegraph_fleet::sequencing::{Candidate, CandidateConfig};
use tidegraph_fleet::{Door, NodeConfig, NodeParts, StorageNode};
use tidegraph_platform::{Clock, Objects, RealDisk, SeededRandom};
use tidegraph_remote::{Node as _, Services};
use tidegraph_types::{Direction, Epoch, Gui, PartitionId, Token};

/// What a node is made of.
pub(crate) struct Parts {
    pub graph: Graph,
    pub name: String,
    /// Which life of the node it is.
    pub life: u64,
    pub process: Arc<Process>,
    pub map: Arc<SimMap>,
    pub log: SimLog,
    pub objects: Arc<Objects>,
    pub candidate: CandidateConfig,
    pub checkpoint_versions: u64,
    pub seed: u64,
}

/// One life of a node.
pub(crate) struct RunningNode {
    pub process: Arc<Process>,
    pub node: StorageNode,
    pub candidate: Arc<Candidate>,
    pub caretaker: Caretaker,
    pub door: Door,
    pub commits: SequencerDoor,
    /// What its server would answer from.
    pub services: Services,
}

impl RunningNode {
    /// Starts as the daemon does. An error would end the daemon, and whoever started it would start it again.
    pub fn start(parts: Parts) -> Result<Self, String> {
        let Parts { graph, name, life, process, map, log, objects, candidate, checkpoint_versions, seed } =
            parts;
        let clock: Arc<dyn Clock> = process.clock.clone();
        let config = NodeConfig {
            checkpoint_versions,
            checkpoint_after: Duration::from_secs(3),
            beat: Duration::from_millis(500),
            watch: WatchConfig { poll_ms: 100 },
            ..NodeConfig::default()
        };
        let (door, commits) = (Door::default(), SequencerDoor::default());
        let node = NodeParts {
            graph: graph.name.clone(),
            registration: registration(&name)?,
            map_store: map.clone(),
            log: Arc::new(log.clone()),
            objects: objects.clone(),
            clock: clock.clone(),
            random: Arc::new(SeededRandom::new(seed)),
            // Nothing is written there: nodes here have no memory budget.
            disk: Arc::new(RealDisk),
        };
        let node = StorageNode::without_threads(config, node, &door).map_err(|error| error.to_string())?;
        let takeover = FromCheckpoints {
            graph: graph.name.clone(),
            partitions: graph.partitions,
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
        commits.open(&candidate);
        let care = CaretakerConfig { lost_after: Duration::from_secs(3), step: Duration::from_secs(1) };
        let caretaker = Caretaker::without_thread(
            &graph.name,
            graph.partitions,
            map,
            objects,
            candidate.clone(),
            clock,
            care,
        );
        let services = door.services(Some(Arc::new(commits.clone())));
        Ok(Self { process, node, candidate, caretaker, door, commits, services })
    }

    /// A vertex at a version, as the replica of its partition here has it.
    pub fn read(&self, partition: PartitionId, at: At, list: Token, gui: Gui) -> Result<Seen, AplError> {
        let apl = self.door.partition(partition, at.epoch)?;
        see(&*apl, at, list, &[gui]).map(|seen| seen.into_iter().next().unwrap_or_default())
    }
}

/// Vertices at a version.
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

fn registration(name: &str) -> Result<Registration, String> {
    Ok(Registration {
        id: NodeId::new(name).map_err(|error| error.to_string())?,
        zone: "z".into(),
        endpoint: name.into(),
        capacity_bytes: 1 << 30,
        roles: [Role::Storage, Role::Sequencer].into(),
    })
}

//! Finds nodes that send no heartbeats. Silence is measured by the clock of this
//! process, since clocks of machines differ.

use rustc_hash::FxHashMap;
use std::time::Duration;
use tidegraph_cluster::{Heartbeats, NodeId, NodeState, PartitionMap};

/// The last heartbeat of each node, and when it was first seen here.
#[derive(Debug, Default)]
pub(super) struct FailureDetector(FxHashMap<NodeId, (LifeSign, Duration)>);

/// Generation of a node's registration, and generation and counter of its last heartbeat.
type LifeSign = (u64, Option<(u64, u64)>);

impl FailureDetector {
    /// Forgets all heartbeats, because some time was not observed.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the nodes of a map that sent no heartbeat for `lost_after`, including nodes that died while they started.
    /// `beats` were read after the map. Returns no node if all are silent: then the map probably takes no heartbeats, and
    /// with every node lost no reads would be answered.
    pub fn find_silent(
        &mut self,
        map: &PartitionMap,
        beats: &Heartbeats,
        now: Duration,
        lost_after: Duration,
    ) -> Vec<NodeId> {
        let (mut lost, mut watched) = (Vec::new(), 0);
        for (id, node) in map.nodes().filter(|(_, node)| node.state != NodeState::Gone) {
            watched += 1;
            let sign = (node.generation, beats.get(id).map(|beat| (beat.generation, beat.counter)));
            let (seen, since) = self.0.entry(id.clone()).or_insert((sign, now));
            if *seen != sign {
                (*seen, *since) = (sign, now);
            } else if now.saturating_sub(*since) >= lost_after {
                lost.push(id.clone());
            }
        }
        if watched > 1 && lost.len() == watched {
            tracing::warn!(nodes = watched, "no node sends heartbeats: none is taken for lost");
            lost.clear();
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_cluster::{
        AppliedVersions, Change, Graph, Heartbeat, MapStore, MemoryMap, Registration, Role,
    };
    use tidegraph_types::PartitionCount;

    const GRAPH: &str = "g";

    fn id(n: usize) -> NodeId {
        NodeId::new(&format!("n{n}")).unwrap()
    }

    fn join(map: &MemoryMap, n: usize, up: bool) {
        let registration = Registration {
            id: id(n),
            zone: "zone".into(),
            endpoint: format!("10.0.0.{n}:1"),
            capacity_bytes: 0,
            roles: [Role::Storage].into(),
        };
        map.change(GRAPH, None, &[Change::Register(registration)]).unwrap();
        if up {
            map.change(GRAPH, None, &[Change::SetNode { node: id(n), state: NodeState::Up }]).unwrap();
        }
    }

    fn beat(map: &MemoryMap, n: usize, counter: u64) {
        let generation = map.load(GRAPH, None).unwrap().node(&id(n)).unwrap().generation;
        let applied = AppliedVersions::default();
        let beat = Heartbeat { generation, counter, disk_full: false, used_bytes: 0, applied, stuck: vec![] };
        map.heartbeat(GRAPH, &id(n), &beat).unwrap();
    }

    #[test]
    fn silent_nodes_are_lost_unless_all_are_silent() {
        let map = MemoryMap::default();
        map.create_graph(&Graph {
            name: GRAPH.into(),
            partitions: PartitionCount::new(2).unwrap(),
            shards: 1,
            replication_factor: 2,
            gremlin: Default::default(),
            splits: Default::default(),
            shares_objects: false,
            hash_bits: 64,
        })
        .unwrap();
        // The last node dies while it starts.
        (0..3).for_each(|n| join(&map, n, n < 2));
        let mut detector = FailureDetector::default();
        let mut silent_at = |seconds| {
            let (seen, beats) = (map.load(GRAPH, None).unwrap(), map.heartbeats(GRAPH).unwrap());
            detector.find_silent(&seen, &beats, Duration::from_secs(seconds), Duration::from_secs(10))
        };
        beat(&map, 0, 1);
        beat(&map, 1, 1);
        assert_eq!(silent_at(0), []);
        beat(&map, 0, 2);
        assert_eq!(silent_at(9), []);
        assert_eq!(silent_at(10), [id(1), id(2)]);
        // Now all nodes are silent.
        assert_eq!(silent_at(30), []);
        // A restarting node is not lost.
        join(&map, 1, true);
        beat(&map, 0, 3);
        assert_eq!(silent_at(31), [id(2)]);
    }
}

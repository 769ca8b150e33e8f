//! The leader's maintenance and the snapshot of a large map, in a real table.

use super::servers::Server;
use super::{LEASE, PATIENCE};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::dynamodb::{DynamoMap, DynamoOptions};
use tidegraph_cluster::testing::graph_named;
use tidegraph_cluster::{
    Change, Claim, ElectionConfig, Graph, MapStore, NodeId, Registration, Role, change_all,
};
use tidegraph_fleet::role::{CheckpointRecovery, LeaderMaintenance, MaintenanceConfig};
use tidegraph_fleet::sequencing::{Candidate, CandidateConfig};
use tidegraph_log::testing::SharedLog;
use tidegraph_platform::{Clock, Objects, RealClock, RealRandom};
use tidegraph_types::{Epoch, PartitionId};

fn open(server: &Server) -> Arc<DynamoMap> {
    let options = DynamoOptions {
        attempt_timeout: Duration::from_secs(30),
        ..DynamoOptions::local(format!("http://127.0.0.1:{}", server.port))
    };
    Arc::new(DynamoMap::open(&options, Arc::new(RealClock::new()), Arc::new(RealRandom)).unwrap())
}

/// Returns the requests of a process that starts.
fn requests_of_a_start(server: &Server) -> u64 {
    let starting = open(server);
    starting.load("large", None).unwrap();
    starting.usage().requests
}

fn make_graph(map: &DynamoMap) {
    map.create_tables().unwrap();
    let graph = Graph { replication_factor: 1, ..graph_named("large", 256) };
    map.create_graph(&graph).unwrap();
    let node = NodeId::new("n").unwrap();
    let registered = Change::Register(Registration {
        id: node.clone(),
        zone: "a".into(),
        endpoint: "127.0.0.1:1".into(),
        capacity_bytes: 0,
        roles: [Role::Storage].into(),
    });
    let add = |p| Change::AddReplica { partition: PartitionId(p), node: node.clone() };
    change_all(map, "large", &std::iter::once(registered).chain((0..256).map(add)).collect::<Vec<_>>())
        .unwrap();
}

#[test]
fn the_leader_writes_the_snapshot_of_a_large_map() {
    let server = Server::dynamodb();
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let map = open(&server);
    make_graph(&map);
    let objects = Arc::new(Objects::memory().unwrap());
    let takeover = CheckpointRecovery {
        graph: "large".into(),
        map_store: map.clone(),
        objects: objects.clone(),
        log: Arc::new(SharedLog::new()),
    };
    let claim =
        Claim { holder: "s".into(), endpoint: "127.0.0.1:1".into(), ttl: Duration::ZERO, above: Epoch(0) };
    let election = ElectionConfig { ttl: LEASE, ..ElectionConfig::default() };
    let config = CandidateConfig { election, ..CandidateConfig::default() };
    let candidate =
        Candidate::start(map.clone(), clock.clone(), "large", claim, Arc::new(takeover), config).unwrap();
    let candidate = Arc::new(candidate);
    let care =
        MaintenanceConfig { lost_after: PATIENCE, snapshot_every: PATIENCE, ..MaintenanceConfig::default() };
    let maintenance =
        LeaderMaintenance::without_thread("large", map, objects, candidate.clone(), clock.clone(), care);
    assert_eq!(requests_of_a_start(&server), 3);
    while candidate.leadership().is_none() {
        assert!(clock.now() < PATIENCE, "nobody leads");
        clock.sleep(Duration::from_millis(10));
    }
    maintenance.step();
    assert_eq!(requests_of_a_start(&server), 2);
    // Not before its time.
    let editor = open(&server);
    let state = tidegraph_cluster::ReplicaState::CatchingUp;
    let catch_up =
        |p| Change::SetReplica { partition: PartitionId(p), node: NodeId::new("n").unwrap(), state };
    change_all(&*editor, "large", &(0..200).map(catch_up).collect::<Vec<_>>()).unwrap();
    maintenance.step();
    assert_eq!(requests_of_a_start(&server), 3);
    candidate.close();
}

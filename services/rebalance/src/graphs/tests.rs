//! Requests about several graphs, over a map in memory.

use super::*;
use serde_json::{Value, json};
use tidegraph_cluster::{Change, Graph, MemoryMap, NodeId, NodeState, Registration, Role, change_all};
use tidegraph_platform::ManualClock;
use tidegraph_types::PartitionCount;

const LONG: &str = "a-graph-whose-name-is-longer-than-what-stands-in-a-name";

fn fleet(store: &MemoryMap, graphs: &str) -> Graphs {
    let variables = [("TIDEGRAPH_GRAPH", graphs), ("TIDEGRAPH_NODES", "2")];
    let owned = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let store: Arc<dyn MapStore> = Arc::new(store.clone());
    Graphs::new(Settings::read(owned).unwrap(), &store, Arc::new(ManualClock::default()))
}

fn make(store: &MemoryMap, graph: &str, nodes: usize) {
    let of = Graph {
        name: graph.into(),
        partitions: PartitionCount::new(4).unwrap(),
        shards: 1,
        hash_bits: 64,
        replication_factor: 2,
        gremlin: Default::default(),
        splits: Default::default(),
        shares_objects: true,
    };
    store.create_graph(&of).unwrap();
    for n in 0..nodes {
        let registration = Registration {
            id: id(n),
            zone: format!("z{n}"),
            endpoint: format!("h:{n}"),
            capacity_bytes: 0,
            roles: [Role::Storage].into(),
        };
        change_all(store, graph, &[Change::Register(registration)]).unwrap();
        set(store, graph, n, NodeState::Up);
    }
}

fn id(n: usize) -> NodeId {
    NodeId::new(&format!("node-{n}")).unwrap()
}

fn set(store: &MemoryMap, graph: &str, n: usize, state: NodeState) {
    change_all(store, graph, &[Change::SetNode { node: id(n), state }]).unwrap();
}

fn ask(graphs: &Graphs, request: Value) -> Result<Value, Error> {
    let request = Request::read(request).map_err(Error::Unreadable)?;
    graphs.answer(request).map(|answer| serde_json::to_value(answer).unwrap())
}

#[test]
fn a_request_is_about_the_graph_that_it_names() {
    let store = MemoryMap::default();
    ["a", "b"].into_iter().for_each(|graph| make(&store, graph, 2));
    let graphs = fleet(&store, "a,b");
    let drained = ask(&graphs, json!({ "step": "drain", "node": "node-0", "graph": "b" })).unwrap();
    assert_eq!(drained["state"], "draining");
    let state = |graph| store.load(graph, None).unwrap().node(&id(0)).unwrap().state;
    assert_eq!((state("a"), state("b")), (NodeState::Up, NodeState::Draining));
    ask(&graphs, json!({ "step": "drain", "node": "node-1" })).unwrap();
    assert_eq!(store.load("a", None).unwrap().node(&id(1)).unwrap().state, NodeState::Draining);
    // Each graph has a lease of its own.
    for graph in ["a", "b"] {
        let taken = ask(&graphs, json!({ "step": "acquire", "holder": graph, "graph": graph })).unwrap();
        assert_eq!(taken["ours"], true);
    }
    for (request, why) in [
        (json!({ "step": "silent", "graph": "c" }), "\"c\" is not one of this fleet, which has a, b"),
        (json!({ "step": "detect-all", "graph": "a" }), "takes none"),
        (json!({ "step": "upgrade-end", "holder": "u", "graph": "a" }), "takes none"),
        (json!({ "step": "keep", "node": "node-1", "graph": "a" }), "take none"),
    ] {
        let error = ask(&graphs, request).unwrap_err();
        assert_eq!(error.name(), "Invalid");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn a_look_at_all_graphs_says_what_each_needs() {
    let store = MemoryMap::default();
    make(&store, "a", 2);
    make(&store, LONG, 1);
    let graphs = fleet(&store, &format!("a,nowhere,{LONG}"));
    let looked = ask(&graphs, json!({ "step": "detect-all" })).unwrap();
    let found = looked["graphs"].as_array().unwrap();
    let needed: Vec<_> = found.iter().map(|of| (of["graph"].as_str().unwrap(), &of["needed"])).collect();
    // The second has no map; the third waits for its second node.
    assert_eq!(needed, [("a", &json!("heal")), ("nowhere", &json!("nothing")), (LONG, &json!("nothing"))]);
    assert!(found[1]["error"].as_str().unwrap().contains("nowhere"), "{}", found[1]);
    assert!(found[0]["name"].as_str().unwrap().starts_with("heal-a-"), "{}", found[0]);
    let name = found[2]["name"].as_str().unwrap();
    assert!(name.starts_with("nothing-a-graph-whose-name-is-l-") && name.len() <= 80, "{name}");
    assert_eq!(ask(&graphs, json!({ "step": "graphs" })).unwrap(), json!({ "graphs": ["a", LONG] }));
    let nowhere = fleet(&store, "b,c");
    assert_eq!(ask(&nowhere, json!({ "step": "detect-all" })).unwrap_err().name(), "Map");
    assert_eq!(ask(&nowhere, json!({ "step": "graphs" })).unwrap(), json!({ "graphs": [] }));
}

#[test]
fn a_node_is_drained_of_all_graphs_by_one_execution() {
    let store = MemoryMap::default();
    let names = ["a", "b", "c"];
    names.into_iter().for_each(|graph| make(&store, graph, 3));
    for graph in names {
        for partition in (0..4).map(tidegraph_types::PartitionId) {
            for n in [0, 1] {
                let add = Change::AddReplica { partition, node: id(n) };
                change_all(&store, graph, &[add]).unwrap();
                for state in
                    [tidegraph_cluster::ReplicaState::CatchingUp, tidegraph_cluster::ReplicaState::Serving]
                {
                    let change = Change::SetReplica { partition, node: id(n), state };
                    change_all(&store, graph, &[change]).unwrap();
                }
            }
        }
    }
    // The second graph was emptied before; the others still have replicas on the node that leaves.
    set(&store, "a", 0, NodeState::Draining);
    set(&store, "c", 0, NodeState::Draining);
    let found = ask(&fleet(&store, "a,b,c"), json!({ "step": "detect-all" })).unwrap();
    let told: Vec<_> =
        found["graphs"].as_array().unwrap().iter().map(|of| (&of["needed"], of.get("node"))).collect();
    let (drain, node) = (json!("drain"), json!("node-0"));
    assert_eq!((told[0], told[2]), ((&drain, Some(&node)), (&json!("nothing"), None)));
}

#[test]
fn a_node_that_is_kept_is_kept_for_all_graphs() {
    let store = MemoryMap::default();
    ["a", "c"].into_iter().for_each(|graph| make(&store, graph, 3));
    // The second graph is not made yet, and the third one's drain did not begin.
    set(&store, "a", 0, NodeState::Draining);
    let graphs = fleet(&store, "a,b,c");
    for node in ["node-0", "node-1"] {
        let kept = ask(&graphs, json!({ "step": "keep", "node": node })).unwrap();
        assert_eq!(kept["state"], "up");
    }
    set(&store, "c", 0, NodeState::Draining);
    ask(&graphs, json!({ "step": "keep", "node": "node-0" })).unwrap();
    for graph in ["a", "c"] {
        assert_eq!(store.load(graph, None).unwrap().node(&id(0)).unwrap().state, NodeState::Up);
    }
    let unknown = ask(&graphs, json!({ "step": "keep", "node": "node-9" })).unwrap();
    assert_eq!(unknown["state"], "gone");
}

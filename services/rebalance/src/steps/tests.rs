//! Executions of state machines, step by step, over a map in memory.

use super::*;
use serde_json::{Value, json};
use tidegraph_cluster::{
    AppliedVersions, Change, Graph, Heartbeat, MemoryMap, Registration, ReplicaState, Role, change_all,
};
use tidegraph_platform::ManualClock;
use tidegraph_types::{PartitionCount, PartitionId};

const GRAPH: &str = "g";

struct World {
    store: MemoryMap,
    steps: Steps,
}

impl World {
    fn new(nodes: usize) -> Self {
        let store = MemoryMap::default();
        let graph = Graph {
            name: GRAPH.into(),
            partitions: PartitionCount::new(8).unwrap(),
            shards: 1,
            hash_bits: 64,
            replication_factor: 2,
            gremlin: Default::default(),
            splits: Default::default(),
            shares_objects: false,
        };
        store.create_graph(&graph).unwrap();
        let variables = [("TIDEGRAPH_GRAPH", GRAPH), ("TIDEGRAPH_NODES", "3"), ("TIDEGRAPH_MOVES", "6")];
        let owned = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = Settings::read(owned).unwrap();
        let steps =
            Steps::new(GRAPH, &[], settings, Arc::new(store.clone()), Arc::new(ManualClock::default()));
        let world = Self { store, steps };
        (0..nodes).for_each(|n| world.join(n));
        world
    }

    fn join(&self, n: usize) {
        let registration = Registration {
            id: id(n),
            zone: format!("z{}", n % 3),
            endpoint: format!("h:{n}"),
            capacity_bytes: 0,
            roles: [Role::Storage].into(),
        };
        change_all(&self.store, GRAPH, &[Change::Register(registration)]).unwrap();
        self.set(n, NodeState::Up);
    }

    /// A lost node comes back with what it held.
    fn set_up_again(&self, n: usize) {
        self.join(n);
        self.bring_up();
    }

    fn set(&self, n: usize, state: NodeState) {
        change_all(&self.store, GRAPH, &[Change::SetNode { node: id(n), state }]).unwrap();
    }

    fn beat(&self, n: usize, counter: u64) {
        let generation = self.store.load(GRAPH, None).unwrap().node(&id(n)).unwrap().generation;
        let applied = AppliedVersions(Default::default());
        let beat = Heartbeat { generation, counter, disk_full: false, used_bytes: 0, applied, stuck: vec![] };
        self.store.heartbeat(GRAPH, &id(n), &beat).unwrap();
    }

    /// Answers an event as Lambda does: JSON in, JSON out.
    fn ask(&self, event: Value) -> Result<Value, Error> {
        let event = serde_json::from_value::<Event>(event);
        let event = event.map_err(|error| Error::Invalid { reason: error.to_string() })?;
        self.steps.answer(event).map(|answer| serde_json::to_value(answer).unwrap())
    }

    fn bring_up(&self) {
        let map = self.store.load(GRAPH, None).unwrap();
        for (partition, replicas) in map.partitions() {
            let up = |node: &NodeId| map.node(node).is_some_and(|node| node.state == NodeState::Up);
            for replica in replicas.iter().filter(|one| !one.state.answers() && up(&one.node)) {
                for state in [ReplicaState::CatchingUp, ReplicaState::Serving] {
                    let change = Change::SetReplica { partition, node: replica.node.clone(), state };
                    self.store.change(GRAPH, None, &[change]).unwrap();
                }
            }
        }
    }

    /// Runs an execution as the state machines do, and stops it after `steps` steps.
    fn execute(&self, holder: &str, goal: &str, drain: Option<&str>, mut steps: usize) -> Option<Value> {
        let mut ask = |event: Value| {
            steps = steps.checked_sub(1)?;
            Some(self.ask(event).unwrap())
        };
        assert_eq!(ask(json!({ "step": "acquire", "holder": holder }))?["ours"], true);
        loop {
            let plan = ask(json!({ "step": "plan", "holder": holder, "goal": goal, "drain": drain }))?;
            if plan["done"] == true {
                break;
            }
            for lot in plan["lots"].as_array().unwrap() {
                let mut moves = lot["moves"].clone();
                for _ in 0..10 {
                    let moved = ask(json!({ "step": "move", "holder": holder, "moves": moves }))?;
                    moves = moved["moves"].clone();
                    if moved["done"] == true {
                        break;
                    }
                    self.bring_up();
                }
            }
        }
        let verified = ask(json!({ "step": "verify", "goal": goal, "drain": drain }))?;
        ask(json!({ "step": "release", "holder": holder }))?;
        Some(verified)
    }

    fn needed(&self) -> String {
        // Only the map matters here: no node sends heartbeats, and none is watched long enough to be lost.
        let fleet = FleetState::of(&self.store.load(GRAPH, None).unwrap(), &BTreeMap::new());
        let (needed, node) = self.steps.needed(&fleet);
        let node = node.map(|node| format!(" {node}")).unwrap_or_default();
        format!("{}{node}", serde_json::to_value(needed).unwrap().as_str().unwrap())
    }
}

fn id(n: usize) -> NodeId {
    NodeId::new(&format!("node-{n}")).unwrap()
}

#[test]
fn a_plan_has_at_most_32_lots_and_the_first_moves_come_first() {
    let to = |node: usize| Move {
        partition: PartitionId(node as u16),
        to: Some(id(node)),
        from: None,
        is_begun: false,
        others: 0,
    };
    let moves: Vec<Move> = (0..100).rev().chain((60..100).rev()).map(to).collect();
    let found = super::lots(&moves.iter().collect::<Vec<_>>());
    let sizes: Vec<usize> = found.iter().map(|lot| lot.moves.len()).collect();
    assert_eq!(sizes, [2; 32]);
    let nodes: Vec<usize> = found.iter().map(|lot| usize::from(lot.moves[0].partition.0)).collect();
    assert!(nodes.iter().all(|node| (68..100).contains(node)), "{nodes:?}");
}

#[test]
fn a_graph_is_placed_once_enough_nodes_are_up() {
    let world = World::new(2);
    assert_eq!(world.needed(), "nothing");
    world.join(2);
    assert_eq!(world.needed(), "heal");
    let verified = world.execute("e", "repair", None, 1000).unwrap();
    assert_eq!((&verified["whole"], &verified["wholePartitions"]), (&json!(true), &json!(8)));
    assert_eq!(world.needed(), "nothing");
}

#[test]
fn detect_names_the_needed_machine_until_it_is_done() {
    let world = World::new(4);
    world.execute("e", "balance", None, 1000).unwrap();
    world.set(0, NodeState::Gone);
    assert_eq!(world.needed(), "heal");
    assert_eq!(world.execute("e", "repair", None, 1000).unwrap()["whole"], true);
    world.join(4);
    assert_eq!(world.needed(), "scale-out");
    assert_eq!(world.execute("e", "balance", None, 1000).unwrap()["whole"], true);
    let held = world.store.load(GRAPH, None).unwrap().held_by(&id(1)).count();
    for _ in 0..2 {
        let marked = world.ask(json!({ "step": "drain", "node": "node-1" })).unwrap();
        assert_eq!(marked, json!({ "state": "draining", "held": held }));
    }
    assert_eq!(world.needed(), "drain node-1");
    assert_eq!(world.execute("e", "repair", Some("node-1"), 1000).unwrap()["whole"], true);
    // A node that holds nothing needs no drain.
    assert_eq!(world.store.load(GRAPH, None).unwrap().held_by(&id(1)).count(), 0);
    assert_ne!(world.needed(), "drain node-1");
    let empty = world.ask(json!({ "step": "drain", "node": "node-1" })).unwrap();
    assert_eq!(empty, json!({ "state": "draining", "held": 0 }));
}

#[test]
fn nodes_that_drain_together_are_drained_by_one_execution() {
    let world = World::new(6);
    world.execute("e", "balance", None, 1000).unwrap();
    for node in ["node-1", "node-2"] {
        world.ask(json!({ "step": "drain", "node": node })).unwrap();
    }
    assert_eq!(world.needed(), "drain node-1");
    // A lost node is more urgent.
    world.set(4, NodeState::Gone);
    assert_eq!(world.needed(), "heal");
    world.set_up_again(4);
    assert_eq!(world.needed(), "drain node-1");
    assert_eq!(world.execute("e", "repair", Some("node-2"), 1000).unwrap()["whole"], true);
    let map = world.store.load(GRAPH, None).unwrap();
    assert_eq!([1, 2].map(|n| map.held_by(&id(n)).count()), [0, 0]);
}

#[test]
fn detect_starts_no_second_execution_while_one_moves_replicas() {
    let world = World::new(4);
    world.execute("e", "balance", None, 1000).unwrap();
    world.set(1, NodeState::Draining);
    let detected = |between: &dyn Fn()| {
        let before = world.steps.look().unwrap();
        between();
        world.steps.detect(&before).unwrap().needed
    };
    assert_eq!(detected(&|| {}), Needed::Drain);
    let acquire =
        || assert_eq!(world.ask(json!({ "step": "acquire", "holder": "d" })).unwrap()["ours"], true);
    assert_eq!(detected(&acquire), Needed::Nothing);
    let plan = || drop(world.ask(json!({ "step": "plan", "holder": "d", "goal": "repair" })).unwrap());
    assert_eq!(detected(&plan), Needed::Nothing);
    // It gives no sign any more, or the lease is free.
    assert_eq!(detected(&|| {}), Needed::Drain);
    let release = || drop(world.ask(json!({ "step": "release", "holder": "d" })).unwrap());
    assert_eq!(detected(&release), Needed::Drain);
    // A heal also replaces the machine of a lost node.
    world.set(0, NodeState::Gone);
    assert_eq!(detected(&acquire), Needed::Heal);
}

#[test]
fn another_execution_continues_one_that_was_stopped_at_any_step() {
    for stop in 0..40 {
        let world = World::new(4);
        world.execute("first", "balance", None, 1000).unwrap();
        world.set(0, NodeState::Gone);
        world.execute("stopped", "repair", None, stop);
        // The lease of the stopped execution does not change any more, so the next execution takes it.
        let seen = world.ask(json!({ "step": "acquire", "holder": "next" })).unwrap();
        if seen["ours"] == false {
            let again =
                world.ask(json!({ "step": "acquire", "holder": "next", "seen": seen["lease"] })).unwrap();
            assert_eq!(again["ours"], true, "{again}");
        }
        let verified = world.execute("next", "repair", None, 1000).unwrap();
        assert_eq!(verified["whole"], true, "stopped after {stop}: {verified}");
    }
}

#[test]
fn the_second_of_two_executions_gets_the_name_of_the_holder() {
    let world = World::new(3);
    assert_eq!(world.ask(json!({ "step": "acquire", "holder": "a" })).unwrap()["ours"], true);
    let theirs = world.ask(json!({ "step": "acquire", "holder": "b" })).unwrap();
    assert_eq!((&theirs["ours"], &theirs["lease"]["holder"]), (&json!(false), &json!("a")));
    assert_eq!(theirs["waitSeconds"], 145);
    let error = world.ask(json!({ "step": "plan", "holder": "b", "goal": "repair" })).unwrap_err();
    assert_eq!(error.name(), "NotOurs");
    assert!(error.to_string().contains("of a"), "{error}");
}

#[test]
fn detect_names_the_execution_and_loses_no_node_that_never_sent_a_heartbeat() {
    let world = World::new(3);
    world.execute("e", "repair", None, 1000).unwrap();
    // No node sends heartbeats here, so none is marked as lost.
    let answer = world.ask(json!({ "step": "detect" })).unwrap();
    assert_eq!((&answer["lost"], &answer["needed"]), (&json!([]), &json!("nothing")));
    let named = |answer: &Value| answer["name"].as_str().unwrap().to_owned();
    assert!(named(&answer).starts_with("nothing-"), "{answer}");
    world.set(0, NodeState::Gone);
    let answer = world.ask(json!({ "step": "detect" })).unwrap();
    assert_eq!((&answer["lost"], &answer["needed"]), (&json!([]), &json!("heal")));
    assert!(named(&answer).starts_with("heal-"), "{answer}");
}

#[test]
fn silent_names_lost_nodes_until_their_replicas_are_elsewhere() {
    let world = World::new(4);
    let silent = || world.ask(json!({ "step": "silent" })).unwrap()["nodes"].clone();
    world.execute("e", "balance", None, 1000).unwrap();
    assert_eq!(silent(), json!([]));
    world.set(0, NodeState::Gone);
    assert_eq!(silent(), json!(["node-0"]));
    assert_eq!(world.execute("e", "repair", None, 1000).unwrap()["whole"], true);
    assert_eq!(silent(), json!([]));
    // A node that was emptied in order is not silent.
    world.execute("e", "repair", Some("node-1"), 1000).unwrap();
    world.set(1, NodeState::Gone);
    assert_eq!(silent(), json!([]));
}

#[test]
fn silent_names_lost_nodes_whose_machine_is_in_service_though_others_have_their_replicas() {
    let world = World::new(4);
    world.execute("e", "balance", None, 1000).unwrap();
    let silent = |instances: Value| {
        world.ask(json!({ "step": "silent", "instances": instances })).unwrap()["nodes"].clone()
    };
    let group = |state: &str| json!([instance(0, state, 1), instance(1, "InService", 1)]);
    assert_eq!(silent(group("InService")), json!([]));
    world.set(0, NodeState::Gone);
    world.set(3, NodeState::Gone);
    assert_eq!(world.execute("e", "repair", None, 1000).unwrap()["whole"], true);
    // The machine of node 3 is gone, as those of all nodes that the fleet ever had.
    assert_eq!(silent(group("InService")), json!(["node-0"]));
    assert_eq!(silent(group("InService")), json!(["node-0"]));
    for state in ["Terminating:Wait", "Pending:Wait", "Terminated"] {
        assert_eq!(silent(group(state)), json!([]), "{state}");
    }
    world.join(0);
    assert_eq!(silent(group("InService")), json!([]));
}

#[test]
fn a_lost_node_that_held_nothing_is_healed_so_that_its_machine_is_replaced() {
    let world = World::new(3);
    world.execute("e", "repair", None, 1000).unwrap();
    world.join(3);
    for n in 0..4 {
        world.beat(n, 1);
    }
    let before = world.steps.look().unwrap();
    for n in 0..3 {
        world.beat(n, 2);
    }
    let detected = world.steps.detect(&before).unwrap();
    assert_eq!((detected.lost, detected.needed), (vec![id(3)], Needed::Heal));
    // It was told once.
    let after = world.steps.detect(&world.steps.look().unwrap()).unwrap();
    assert_eq!((after.lost, after.needed), (vec![], Needed::Nothing));
    // The first placement waits for its nodes.
    let unplaced = World::new(2);
    (0..2).for_each(|n| unplaced.beat(n, 1));
    let before = unplaced.steps.look().unwrap();
    unplaced.beat(1, 2);
    let detected = unplaced.steps.detect(&before).unwrap();
    assert_eq!((detected.lost, detected.needed), (vec![id(0)], Needed::Nothing));
}

#[test]
fn an_upgrade_replaces_machines_of_another_launch_template() {
    let world = World::new(3);
    world.execute("e", "repair", None, 1000).unwrap();
    let release = tidegraph_cluster::NodeRelease { generation: 1, release: Release::THIS };
    (0..3).for_each(|n| world.store.note_release(GRAPH, &id(n), &release).unwrap());
    let begin = json!({ "step": "upgrade-begin", "holder": "u", "release": Release::THIS, "desired": 3 });
    assert_eq!(world.ask(begin).unwrap()["ours"], true);
    let ask = |template: Value| {
        let more = json!({ "desired": 3, "template": template });
        next_of(&world, "u", &[0, 1, 2], more).unwrap()
    };
    assert_eq!(ask(launched("1"))["action"], "done");
    let launch = ask(launched("2"));
    assert_eq!((&launch["action"], &launch["left"]), (&json!("launch"), &json!(3)));
    assert_eq!(
        launch["reason"],
        "3 machines are left, 3 of them of this release with another launch template"
    );
    // A group that somebody gave `$Latest` names no version that machines could be compared with.
    assert_eq!(ask(launched("$Latest"))["action"], "done");
}

#[test]
fn an_impossible_drain_is_reported() {
    let world = World::new(2);
    world.execute("e", "repair", None, 1000).unwrap();
    let verified = world.execute("e", "repair", Some("node-1"), 1000).unwrap();
    assert_eq!((&verified["whole"], &verified["dark"]), (&json!(false), &json!(0)));
    assert!(verified["reason"].as_str().unwrap().contains("too few nodes"), "{verified}");
    // A machine that never came up holds nothing.
    let never = world.ask(json!({ "step": "drain", "node": "node-9" })).unwrap();
    assert_eq!(never["state"], "gone");
}

#[test]
fn wrong_events_are_refused_by_name() {
    let world = World::new(1);
    for (event, part) in [
        (json!({ "step": "destroy" }), "destroy"),
        (json!({ "step": "detect", "goal": "repair" }), "goal"),
        (json!({ "step": "plan", "holder": "e", "goal": "chaos" }), "chaos"),
        (json!({ "step": "acquire", "holder": "" }), "1 to 2048"),
        (json!({ "step": "move", "holder": "e", "moves": vec![json!({ "partition": 0 }); 257] }), "257"),
        (json!({}), "step"),
    ] {
        let error = world.ask(event).unwrap_err();
        assert_eq!(error.name(), "Invalid");
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// A machine as Auto Scaling describes it.
fn instance(n: usize, state: &str, version: u32) -> Value {
    json!({
        "InstanceId": id(n), "LifecycleState": state, "AvailabilityZone": "z", "HealthStatus": "Healthy",
        "LaunchTemplate": launched(&version.to_string()),
    })
}

/// A launch template as Auto Scaling names it.
fn launched(version: &str) -> Value {
    json!({ "LaunchTemplateId": "lt-1", "LaunchTemplateName": "nodes", "Version": version })
}

/// What the function answers to `upgrade-next`, for a group whose machines are all in service.
fn next(world: &World, holder: &str, nodes: &[usize], desired: u32) -> Result<Value, Error> {
    next_of(world, holder, nodes, json!({ "desired": desired }))
}

/// Like [`next`], with further fields of the event.
fn next_of(world: &World, holder: &str, nodes: &[usize], more: Value) -> Result<Value, Error> {
    let instances: Vec<Value> = nodes.iter().map(|n| instance(*n, "InService", 1)).collect();
    let mut event = json!({ "step": "upgrade-next", "holder": holder, "instances": instances });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.ask(event)
}

#[test]
fn an_upgrade_replaces_nodes_by_the_drains_of_the_other_machines() {
    let world = World::new(3);
    world.execute("e", "repair", None, 1000).unwrap();
    let begin = |holder: &str| json!({ "step": "upgrade-begin", "holder": holder, "release": Release::THIS, "desired": 3 });
    assert_eq!(world.ask(begin("u")).unwrap()["ours"], true);
    // The nodes state no release, as those of builds before the first one.
    let mut nodes = vec![0, 1, 2];
    let launch = next(&world, "u", &nodes, 3).unwrap();
    assert_eq!((&launch["action"], &launch["capacity"]), (&json!("launch"), &json!(4)));
    for new in 3..6 {
        assert_eq!(next(&world, "u", &nodes, 4).unwrap()["action"], "wait");
        world.join(new);
        let release = tidegraph_cluster::NodeRelease { generation: 1, release: Release::THIS };
        world.store.note_release(GRAPH, &id(new), &release).unwrap();
        nodes.push(new);
        // Nobody moves replicas to the new node but the drain.
        assert_eq!(world.needed(), "scale-out");
        assert_eq!(world.ask(json!({ "step": "detect" })).unwrap()["needed"], "nothing");
        let drain = next(&world, "u", &nodes, 4).unwrap();
        assert_eq!(drain["action"], "drain");
        let node = drain["node"].as_str().unwrap().to_owned();
        assert_eq!(world.execute("d", "repair", Some(&node), 1000).unwrap()["whole"], true);
        let end = next(&world, "u", &nodes, 4).unwrap();
        assert_eq!((&end["action"], &end["node"]), (&json!("end"), &json!(node)));
        assert_eq!((&end["isCanary"], &end["isLast"]), (&json!(new == 3), &json!(new == 5)));
        nodes.retain(|n| id(*n).as_str() != node);
    }
    let done = next(&world, "u", &nodes, 3).unwrap();
    assert_eq!((&done["action"], &done["upgraded"], &done["left"]), (&json!("done"), &json!(3), &json!(0)));
    assert_eq!(world.ask(json!({ "step": "upgrade-end", "holder": "u" })).unwrap()["state"], "finished");
    assert_eq!(next(&world, "v", &nodes, 3).unwrap_err().name(), "NotOurs");
}

#[test]
fn an_upgrade_drains_as_many_nodes_at_once_as_the_event_says() {
    let world = World::new(6);
    world.execute("e", "balance", None, 1000).unwrap();
    let begin = json!({
        "step": "upgrade-begin", "holder": "u", "release": Release::THIS, "desired": 6, "least": 6, "atOnce": 3,
    });
    assert_eq!(world.ask(begin).unwrap()["ours"], true);
    let mut nodes: Vec<usize> = (0..6).collect();
    let ask = |nodes: &[usize], desired: usize, served: bool| {
        let more = json!({ "desired": desired, "atOnce": 3, "served": served });
        next_of(&world, "u", nodes, more).unwrap()
    };
    // One machine, until the execution let it serve.
    assert_eq!(ask(&nodes, 6, false)["capacity"], 7);
    assert_eq!(ask(&nodes, 6, true)["capacity"], 9);
    let release = tidegraph_cluster::NodeRelease { generation: 1, release: Release::THIS };
    for new in 6..9 {
        world.join(new);
        world.store.note_release(GRAPH, &id(new), &release).unwrap();
        nodes.push(new);
    }
    let drain = ask(&nodes, 9, true);
    assert_eq!((&drain["action"], &drain["node"]), (&json!("drain"), &json!("node-0")));
    assert_eq!(drain["reason"], "3 machines more than 6 are up: nodes node-0, node-1, node-2 are replaced");
    assert_eq!(world.needed(), "drain node-0");
    assert_eq!(world.execute("d", "repair", Some("node-0"), 1000).unwrap()["whole"], true);
    for n in 0..3 {
        let end = ask(&nodes, 9, true);
        assert_eq!((&end["action"], &end["node"]), (&json!("end"), &json!(id(n))));
        // The group starts their successors.
        assert_eq!((&end["isCanary"], &end["isLast"]), (&json!(false), &json!(false)));
        nodes.retain(|one| *one != n);
    }
    assert_eq!(ask(&nodes, 9, true)["reason"], "6 of 9 machines are in service");
}

#[test]
fn upgrades_that_cannot_be_are_refused_by_name() {
    let world = World::new(3);
    let begin = |holder: &str, release: &str| {
        world.ask(json!({ "step": "upgrade-begin", "holder": holder, "release": release, "desired": 3 }))
    };
    let ours = Release::THIS.to_string();
    assert_eq!(begin("u", "0.0.0").unwrap_err().name(), "Refused");
    let error = begin("u", "9.9.9").unwrap_err();
    assert_eq!(error.name(), "Refused");
    assert!(error.to_string().contains(&format!("the deployed programs are of release {ours}")), "{error}");
    assert_eq!(begin("u", "9.9").unwrap_err().name(), "Invalid");
    assert_eq!(begin("u", &ours).unwrap()["ours"], true);
    let theirs = begin("v", &ours).unwrap();
    assert_eq!((&theirs["ours"], &theirs["holder"]), (&json!(false), &json!("u")));
    let stopped = world.ask(json!({ "step": "upgrade-end", "holder": "u", "stopped": "alarms: ApiErrors" }));
    assert_eq!(stopped.unwrap()["state"], "stopped");
    assert_eq!(begin("v", &ours).unwrap()["ours"], true);
    let odd = json!({ "step": "upgrade-next", "holder": "v", "desired": 3, "instances": [{ "InstanceId": "i-1" }] });
    assert_eq!(world.ask(odd).unwrap_err().name(), "Invalid");
    let none = json!({ "step": "upgrade-begin", "holder": "v", "release": ours, "desired": 0 });
    assert_eq!(world.ask(none).unwrap_err().name(), "Invalid");
    for (desired, at_once, most) in [(3, 4, 3), (3, 0, 3), (100, 17, 16)] {
        let many = json!({
            "step": "upgrade-begin", "holder": "v", "release": ours, "desired": desired, "atOnce": at_once,
        });
        let error = world.ask(many).unwrap_err();
        assert_eq!(error.name(), "Invalid");
        let reason = format!("atOnce is {at_once}, and has to be from 1 to {most}");
        assert!(error.to_string().ends_with(&reason), "{error}");
    }
    let error = next_of(&world, "v", &[0, 1, 2], json!({ "desired": 3, "atOnce": 17 })).unwrap_err();
    assert!(error.to_string().contains("atOnce is 17"), "{error}");
}

#[test]
fn an_idle_fleet_drains_and_ends_a_node_and_keeps_one_that_cannot_leave() {
    let world = World::new(4);
    world.execute("e", "balance", None, 1000).unwrap();
    let ask = |wanted: &str, most: u32| {
        let ids = [id(0), id(1), id(2), id(3)];
        world.ask(json!({
            "step": "scale-next", "wanted": wanted, "least": 3, "most": most, "desired": 4, "ids": ids,
            "states": ["InService", "InService", "InService", "InService"],
        }))
    };
    assert_eq!(ask("more", 5).unwrap()["capacity"], 5);
    assert_eq!(ask("more", 4).unwrap()["action"], "nothing");
    let error = ask("fewer", 2).unwrap_err();
    assert!(error.name() == "Invalid" && error.to_string().contains("3 to 2 machines"), "{error}");
    let first = ask("fewer", 5).unwrap();
    assert_eq!(first["action"], "drain");
    let node = first["node"].as_str().unwrap();
    // What cannot leave holds replicas again; a machine that never registered holds none.
    assert_eq!(world.ask(json!({ "step": "drain", "node": node })).unwrap()["state"], "draining");
    assert_eq!(world.needed(), format!("drain {node}"));
    assert_eq!(world.ask(json!({ "step": "keep", "node": node })).unwrap()["state"], "up");
    assert_eq!(world.ask(json!({ "step": "keep", "node": "i-unknown" })).unwrap()["state"], "gone");
    assert_eq!(world.needed(), "nothing");
    world.execute("d", "repair", Some(node), 1000).unwrap();
    let last = ask("fewer", 5).unwrap();
    assert_eq!((&last["action"], &last["node"], &last["capacity"]), (&json!("end"), &json!(node), &json!(3)));
}

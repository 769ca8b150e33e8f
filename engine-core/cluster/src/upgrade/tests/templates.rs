//! Upgrades to settings of the same release: the group starts machines from another version of its launch template.

use super::*;

#[test]
fn machines_of_another_template_are_replaced_though_they_run_the_release() {
    for at_once in [1, 2] {
        let mut world = World { at_once, ..World::new(3) };
        world.begin("a").unwrap();
        assert_eq!(world.run("a", 10), ["Done"], "nothing has changed");
        world.upgrades().end("a", None).unwrap();
        world.template = template(2);
        world.begin("b").unwrap();
        let next = world.next("b").unwrap();
        assert_eq!((next.action, next.upgraded, next.left), (Action::Launch, 0, 3));
        assert_eq!(
            next.reason,
            "3 machines are left, 3 of them of this release with another launch template"
        );
        let done = world.run("b", 100);
        assert_eq!(done.last().map(String::as_str), Some("Done"), "{done:?}");
        assert_eq!(done.iter().filter(|one| one.ends_with("(canary)")).count(), 1, "{done:?}");
        assert!(world.machines.iter().all(|one| one.template == Some(template(2))));
        assert_eq!((world.desired, world.machines.len(), world.zones().len()), (3, 3, 3));
        let ended = world.upgrades().end("b", None).unwrap();
        assert_eq!((ended.release, ended.state), (OLD.release, UpgradeState::Finished));
    }
}

#[test]
fn a_release_and_settings_are_one_upgrade() {
    let mut world = World::new(3);
    (world.deployed, world.template) = (NEW, template(2));
    // A machine was lost after the deployment, and one after a deployment of settings alone.
    world.machines[2].template = Some(template(2));
    world.begin("a").unwrap();
    assert_eq!(world.next("a").unwrap().reason, "3 machines are left");
    world.set(&id(2), NodeState::Gone);
    world.join(&id(2), 2).unwrap();
    let next = world.next("a").unwrap();
    assert_eq!((next.upgraded, next.left, next.reason.as_str()), (1, 2, "2 machines are left"));
    world.bring_up();
    world.move_replicas();
    assert_eq!(world.run("a", 100).last().map(String::as_str), Some("Done"));
    assert!(world.is_upgraded());
    assert!(world.machines.iter().all(|one| one.template == Some(template(2))));
}

#[test]
fn another_template_with_the_same_number_counts_and_an_unknown_one_does_not() {
    let mut world = World::new(3);
    world.begin("a").unwrap();
    // CloudFormation made a new launch template, whose versions begin again.
    world.template = MachineTemplate { id: "lt-2".into(), ..template(1) };
    assert_eq!(world.next("a").unwrap().left, 3);
    // The group does not say what a machine was started from: its template was deleted.
    world.template = template(1);
    world.machines[0].template = None;
    assert_eq!(world.next("a").unwrap().left, 1);
    // The group itself names no certain version.
    let unknown = UpgradeGroup { template: None, ..world.group() };
    let next = world.upgrades().next("a", unknown).unwrap();
    assert_eq!((next.action, next.left), (Action::Done, 0));
}

#[test]
fn settings_never_downgrade_a_fleet() {
    let mut world = World::new(3);
    world.deployed = NEW;
    world.begin("a").unwrap();
    world.run("a", 100);
    world.upgrades().end("a", None).unwrap();
    (world.deployed, world.template) = (OLD, template(2));
    let refused = world.begin("b").unwrap_err().to_string();
    assert!(refused.contains("never downgraded"), "{refused}");
}

#[test]
fn a_graph_that_was_added_is_served_by_the_machines_that_replace_those_before_it() {
    let mut world = World::new(3);
    let other = World { graph: new_graph(&world.store, 1), ..world.of(OLD) };
    let others = [other.graph.clone()];
    let next = |world: &World| world.upgrades().with(&others).next("a", world.group()).unwrap();
    world.template = template(2);
    let began = world.upgrades().with(&others).begin("a", OLD.release, size(3), None).unwrap();
    assert!(matches!(began, Began::Ours(_)));
    // No machine knows the graph, and no partition of it has a replica.
    assert_eq!(next(&world).action, Action::Launch);
    world.desired = 4;
    world.fill();
    // A machine that was started afterwards has to serve it.
    assert_eq!(next(&world).reason, "machine i-3 is not up");
    other.join(&id(3), 0).unwrap();
    let drain = next(&world);
    assert_eq!((drain.action, drain.node), (Action::Drain, Some(id(0))));
    // Once it is placed, a replica that it lacks keeps nodes from being drained, as one of the first graph does.
    world.set(&id(0), NodeState::Up);
    let one = Change::AddReplica { partition: PartitionId(0), node: id(3) };
    change_all(&world.store, &other.graph, &[one]).unwrap();
    let waits = next(&world);
    assert_eq!(waits.action, Action::Wait);
    assert!(waits.reason.starts_with(&format!("graph {}: ", other.graph)), "{}", waits.reason);
}

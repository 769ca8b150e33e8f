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
    assert_eq!((next.upgraded, next.left, next.reason.as_str()), (1, 2, "1 moves are left"));
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

//! Checks the rules of placement on many fleets.

use super::*;
use proptest::prelude::*;

fn fleet(zones: &[usize]) -> Vec<Candidate> {
    let node = |zone: usize, n: usize| Candidate {
        node: NodeId::new(&format!("z{zone}-n{n}")).unwrap(),
        zone: format!("z{zone}"),
        weight: 0,
    };
    zones.iter().enumerate().flat_map(|(zone, size)| (0..*size).map(move |n| node(zone, n))).collect()
}

fn loads(candidates: &[Candidate], placed: &[Vec<NodeId>]) -> BTreeMap<NodeId, usize> {
    let mut loads: BTreeMap<NodeId, usize> = candidates.iter().map(|c| (c.node.clone(), 0)).collect();
    for node in placed.iter().flatten() {
        *loads.get_mut(node).unwrap() += 1;
    }
    loads
}

fn differ(loads: impl IntoIterator<Item = usize>) -> usize {
    let loads: Vec<usize> = loads.into_iter().collect();
    loads.iter().max().unwrap_or(&0) - loads.iter().min().unwrap_or(&0)
}

fn check(partitions: u16, replication: u16, candidates: &[Candidate], placed: &[Vec<NodeId>]) {
    let zone = |node: &NodeId| &candidates.iter().find(|c| c.node == *node).unwrap().zone;
    let mut sizes: BTreeMap<&String, usize> = BTreeMap::new();
    candidates.iter().for_each(|c| *sizes.entry(&c.zone).or_default() += 1);
    let replicas = usize::from(replication).min(candidates.len());
    // The minimum number of replicas of one partition that the fullest zone must hold.
    let most = (1..=replicas.max(1))
        .find(|most| sizes.values().map(|size| (*size).min(*most)).sum::<usize>() >= replicas)
        .unwrap();
    assert_eq!(placed.len(), usize::from(partitions));
    for nodes in placed {
        assert_eq!(nodes.len(), replicas);
        assert!(nodes.windows(2).all(|pair| pair[0] < pair[1]), "{nodes:?}");
        for name in sizes.keys() {
            assert!(nodes.iter().filter(|node| zone(node) == *name).count() <= most, "{nodes:?}");
        }
    }
    let loads = loads(candidates, placed);
    for name in sizes.keys() {
        let of_zone = loads.iter().filter(|(node, _)| zone(node) == *name).map(|(_, load)| *load);
        assert!(differ(of_zone) <= 1, "{loads:?}");
    }
    if differ(sizes.values().copied()) == 0 {
        assert!(differ(loads.values().copied()) <= 1, "{loads:?}");
    }
}

#[test]
fn three_zones_get_a_replica_each() {
    let candidates = fleet(&[100, 100, 100]);
    let placed = place(PartitionCount::new(4096).unwrap(), 3, &candidates, &[]);
    check(4096, 3, &candidates, &placed);
    // The reads of a lost node are spread over many other nodes.
    let lost = &candidates[0].node;
    let beside: std::collections::BTreeSet<&NodeId> =
        placed.iter().filter(|nodes| nodes.contains(lost)).flatten().filter(|node| *node != lost).collect();
    assert!(beside.len() > 40, "{}", beside.len());
}

#[test]
fn a_zone_that_is_small_limits_its_nodes_not_the_others() {
    let candidates = fleet(&[1, 5]);
    let placed = place(PartitionCount::new(64).unwrap(), 2, &candidates, &[]);
    check(64, 2, &candidates, &placed);
    let loads = loads(&candidates, &placed);
    assert_eq!(loads[&candidates[0].node], 64);
}

#[test]
fn few_nodes_hold_what_they_can() {
    let count = PartitionCount::new(8).unwrap();
    assert_eq!(place(count, 3, &[], &[]), vec![Vec::<NodeId>::new(); 8]);
    let one = fleet(&[1]);
    assert!(place(count, 3, &one, &[]).iter().all(|nodes| nodes.len() == 1));
    let mut twice = fleet(&[2]);
    twice.extend(fleet(&[2]));
    check(8, 3, &fleet(&[2]), &place(count, 3, &twice, &[]));
}

#[test]
fn what_is_right_stays() {
    let count = PartitionCount::new(256).unwrap();
    let before = fleet(&[2, 2, 2]);
    let placed = place(count, 2, &before, &[]);
    assert_eq!(place(count, 2, &before, &placed), placed);
    // Three nodes join: only the replicas that they receive move.
    let after = fleet(&[3, 3, 3]);
    let next = place(count, 2, &after, &placed);
    check(256, 2, &after, &next);
    let moved: usize =
        placed.iter().zip(&next).map(|(a, b)| b.iter().filter(|node| !a.contains(node)).count()).sum();
    let gets = 256 * 2 * 3 / 9;
    assert!(moved <= gets + 2, "{moved} moved, the new nodes hold {gets}");
}

proptest! {
    #[test]
    fn every_fleet_is_placed_by_the_rules(
        bits in 0_u32..7,
        replication in 1_u16..5,
        before in proptest::collection::vec(0_usize..5, 1..5),
        after in proptest::collection::vec(0_usize..5, 1..5),
        drop_some in proptest::collection::vec(0_usize..8, 64),
    ) {
        let partitions = 1_u16 << bits;
        let count = PartitionCount::new(partitions).unwrap();
        let (before, after) = (fleet(&before), fleet(&after));
        let first = place(count, replication, &before, &[]);
        if !before.is_empty() {
            check(partitions, replication, &before, &first);
        }
        // Nodes join and leave, replicas are lost, and some replicas were never in the right place.
        let mut held = first;
        for (nodes, choice) in held.iter_mut().zip(&drop_some) {
            if *choice < nodes.len() {
                nodes.remove(*choice);
            } else if let (Some(node), 5..) = (before.first(), choice) {
                nodes.push(node.node.clone());
            }
        }
        if !after.is_empty() {
            let next = place(count, replication, &after, &held);
            check(partitions, replication, &after, &next);
            prop_assert_eq!(place(count, replication, &after, &next), next);
        }
    }
}

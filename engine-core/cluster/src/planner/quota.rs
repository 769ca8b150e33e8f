//! Computes the number of partitions that each node should hold, in proportion to its weight as far as zones and the
//! number of partitions allow.
//!
//! Flow: *shares* limit the replicas of one partition in each zone. The zones divide all replicas among them, and the
//! nodes of a zone divide the zone's part. A part above its limit is cut, and the others divide the rest.
//!
//! A remainder goes to nodes that hold it already. So a balanced fleet stays as it is, and a fleet in the middle of a
//! plan continues towards the same target.

/// Maximum number of replicas of one partition in each zone, as equal as the sizes of the zones allow.
pub(super) fn shares(zones: &[usize], replication: usize) -> Vec<usize> {
    let most = (1..=replication)
        .find(|most| zones.iter().map(|size| (*size).min(*most)).sum::<usize>() >= replication)
        .unwrap_or(replication);
    zones.iter().map(|size| (*size).min(most)).collect()
}

/// Number of partitions that each node should hold. `weights` and `loads` are by node, with the nodes of a zone next to
/// each other; `share` is by zone.
pub(super) fn quotas(
    partitions: usize,
    replication: usize,
    zone_of: &[usize],
    share: &[usize],
    weights: &[u64],
    loads: &[usize],
) -> Vec<usize> {
    let of_zone = |zone: usize| (0..zone_of.len()).filter(move |node| zone_of[*node] == zone);
    let zones = 0..share.len();
    let zone_weights: Vec<u64> = zones.clone().map(|zone| of_zone(zone).map(|n| weights[n]).sum()).collect();
    let zone_loads: Vec<usize> = zones.clone().map(|zone| of_zone(zone).map(|n| loads[n]).sum()).collect();
    let zone_caps: Vec<usize> = share.iter().map(|share| share * partitions).collect();
    let of_zones = divide(partitions * replication, &zone_weights, &zone_caps, &zone_loads);
    let mut quota = vec![0; zone_of.len()];
    for (zone, total) in of_zones.into_iter().enumerate() {
        let members: Vec<usize> = of_zone(zone).collect();
        let weights: Vec<u64> = members.iter().map(|node| weights[*node]).collect();
        let loads: Vec<usize> = members.iter().map(|node| loads[*node]).collect();
        let parts = divide(total, &weights, &vec![partitions; members.len()], &loads);
        members.into_iter().zip(parts).for_each(|(node, part)| quota[node] = part);
    }
    quota
}

/// Rounds weights to 64ths of the largest, so that machines that differ by some pages of memory are equal. An unknown
/// weight (0) counts as the average of the others.
pub(super) fn rounded(capacities: &[u64]) -> Vec<u64> {
    let said = || capacities.iter().filter(|capacity| **capacity > 0).map(|capacity| u128::from(*capacity));
    let most = said().max().unwrap_or(1);
    let mean = said().sum::<u128>().checked_div(said().count() as u128).unwrap_or(1);
    let step = |capacity: &u64| {
        let capacity = if *capacity == 0 { mean } else { u128::from(*capacity) };
        // At most 64.
        ((capacity * 64 + most / 2) / most).max(1) as u64
    };
    capacities.iter().map(step).collect()
}

/// Divides a number in proportion to weights, none of which is 0. No part is above its cap. The remainder goes first to
/// parts that hold it already, then to those that lack most.
fn divide(total: usize, weights: &[u64], caps: &[usize], loads: &[usize]) -> Vec<usize> {
    let mut parts = vec![0; weights.len()];
    let mut left = total.min(caps.iter().sum());
    let mut open: Vec<usize> = (0..weights.len()).collect();
    let weight_of = |open: &[usize]| open.iter().map(|one| u128::from(weights[*one])).sum::<u128>();
    loop {
        let weight = weight_of(&open);
        let is_cut = |one: &usize| u128::from(weights[*one]) * left as u128 >= caps[*one] as u128 * weight;
        let Some(at) = open.iter().position(is_cut) else { break };
        let one = open.remove(at);
        parts[one] = caps[one];
        left -= caps[one];
    }
    let weight = weight_of(&open).max(1);
    let mut rests = Vec::with_capacity(open.len());
    let all = left as u128;
    for one in open {
        let exact = u128::from(weights[one]) * all;
        parts[one] = (exact / weight) as usize;
        left -= parts[one];
        rests.push((loads[one] <= parts[one], std::cmp::Reverse(exact % weight), one));
    }
    rests.sort_unstable();
    // The remainder is smaller than the number of parts that were not cut.
    rests.iter().take(left).for_each(|(_, _, one)| parts[*one] += 1);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn weights_divide_and_caps_cut() {
        assert_eq!(divide(12, &[1, 1, 2], &[12, 12, 12], &[0; 3]), [3, 3, 6]);
        assert_eq!(divide(12, &[1, 1, 2], &[12, 12, 4], &[0; 3]), [4, 4, 4]);
        assert_eq!(divide(12, &[1, 1, 2], &[1, 1, 4], &[0; 3]), [1, 1, 4]);
        assert_eq!(divide(7, &[1, 1, 1], &[7; 3], &[0, 0, 5]), [2, 2, 3]);
        assert_eq!(divide(0, &[1], &[7], &[3]), [0]);
        assert_eq!(divide(3, &[], &[], &[]), [0_usize; 0]);
    }

    #[test]
    fn capacities_that_hardly_differ_are_equal() {
        assert_eq!(rounded(&[1 << 35, (1 << 35) + 4096, (1 << 35) - 8192]), [64; 3]);
        assert_eq!(rounded(&[0, 0]), [64, 64]);
        assert_eq!(rounded(&[0, 100, 300]), [43, 21, 64]);
        assert_eq!(rounded(&[1, u64::MAX]), [1, 64]);
    }

    proptest! {
        #[test]
        fn all_is_divided_and_stays(
            all in proptest::collection::vec((1_u64..65, 0_usize..40, 0_usize..40), 1..12),
            part in 0_usize..101,
        ) {
            let weights: Vec<u64> = all.iter().map(|(weight, ..)| *weight).collect();
            let caps: Vec<usize> = all.iter().map(|(_, cap, _)| *cap).collect();
            let loads: Vec<usize> = all.iter().map(|(.., load)| *load).collect();
            let total = caps.iter().sum::<usize>() * part / 100;
            let parts = divide(total, &weights, &caps, &loads);
            prop_assert_eq!(parts.iter().sum::<usize>(), total);
            prop_assert!(parts.iter().zip(&caps).all(|(part, cap)| part <= cap));
            prop_assert_eq!(divide(total, &weights, &caps, &parts), parts);
        }
    }
}

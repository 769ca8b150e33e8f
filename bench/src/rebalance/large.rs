//! A fleet of 100 nodes with 1 TB each: ten more nodes, and a rolling upgrade, on several types of machines.

use super::model::{Limits, Machine, Took, World};
use super::{READS, REQUEST_RATE};
use crate::report::{Figure, Report};
use tidegraph_cluster::Goal;

/// A type of machine: its processors, and the Gbit/s of its network that it always has.
struct MachineType {
    name: &'static str,
    processors: f64,
    gigabits: f64,
}

/// From AWS's list of storage optimized instances.
const MACHINES: [MachineType; 3] = [
    MachineType { name: "i4g.4xlarge", processors: 16.0, gigabits: 9.375 },
    MachineType { name: "i4g.8xlarge", processors: 32.0, gigabits: 18.75 },
    MachineType { name: "i4g.16xlarge", processors: 64.0, gigabits: 37.5 },
];

/// Nodes, bytes of each, partitions and replicas of each partition. A replica has 8.1 GB.
const NODES: usize = 100;
const NODE_BYTES: u64 = 1_000_000_000_000;
const PARTITIONS: usize = 4096;
const REPLICATION: u16 = 3;
const REPLICA_BYTES: u64 = NODE_BYTES * NODES as u64 / (PARTITIONS as u64 * REPLICATION as u64);
/// Nodes that are added.
const MORE: usize = 10;
/// Seconds from a launch of a machine until its daemon is up.
const START_S: f64 = 180.0;
/// Seconds in which the first new node serves before its predecessor ends.
const SOAK_S: f64 = 600.0;
/// Machines that are replaced at once: one after the other, by default for this many nodes, and as many as a deployment
/// may set (`infra/lib/constructs/upgrade.ts`).
const AT_ONCE: [usize; 3] = [1, 6, 16];
/// The most hours that are not days.
const TARGET_HOURS: f64 = 24.0;

/// The settings of a deployment with 100 nodes.
const LIMITS: Limits = Limits { moves: 256, per_node: 16 };

impl MachineType {
    fn network(&self) -> f64 {
        self.gigabits / 8.0 * 1e9
    }

    /// Reads at once by default, and as many as fill the network.
    fn reads(&self) -> Vec<f64> {
        let all = (self.network() / REQUEST_RATE).ceil();
        if all > READS as f64 { vec![READS as f64, all] } else { vec![READS as f64] }
    }

    fn machine(&self, reads: f64, processor: f64) -> Machine {
        Machine {
            network: self.network(),
            request: REQUEST_RATE,
            reads,
            processor,
            restores: self.processors / 2.0,
            start_s: START_S,
        }
    }
}

fn world(machine: Machine) -> anyhow::Result<World> {
    World::new(NODES, PARTITIONS, REPLICATION, REPLICA_BYTES, machine, LIMITS)
}

/// Adds nodes to the fleet.
fn grow(machine: Machine) -> anyhow::Result<Took> {
    let mut world = world(machine)?;
    for number in NODES..NODES + MORE {
        world.add(number, number % 3)?;
    }
    world.run(Goal::Balance)
}

/// Adds the hours to the report. `processor` is what one processor restores in a second, in bytes.
pub fn report(report: &mut Report, processor: f64) -> anyhow::Result<()> {
    for kind in &MACHINES {
        for reads in kind.reads() {
            let machine = kind.machine(reads, processor);
            let name = format!("{}, {reads} reads", kind.name);
            let bounds = machine.bounds().map(|(name, rate)| format!("{name} {:.0} MB/s", rate / 1e6));
            report.parameter(&format!("bounds of {name}"), bounds.join(", "));
            let mut all =
                vec![(format!("{NODES} to {} nodes of 1 TB, {name}", NODES + MORE), grow(machine)?)];
            for at_once in AT_ONCE {
                let upgraded = world(machine)?.upgrade(NODES, NODES, at_once, SOAK_S)?;
                all.push((format!("upgrade of {NODES} nodes of 1 TB, {at_once} at once, {name}"), upgraded));
            }
            for (what, Took { seconds, moves, most_of_a_node, rounds }) in all {
                let told = format!("{moves} moves, at most {most_of_a_node} to one node, {rounds} plans");
                report.parameter(&what, told);
                report.add(Figure::cost(what, "hours", seconds / 3600.0).target(TARGET_HOURS));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one processor restores in a second: half of what two of them restored in `docs/benchmarks/recover.json`.
    const PROCESSOR: f64 = 305e6;

    #[test]
    fn ten_more_nodes_get_their_share_within_hours_on_all_machines() {
        // Each zone holds each partition once, and has 36 or 37 nodes.
        let (least_share, most_share) = (PARTITIONS / 37, PARTITIONS / 36 + 1);
        for kind in &MACHINES {
            for reads in kind.reads() {
                let machine = kind.machine(reads, PROCESSOR);
                let took = grow(machine).unwrap();
                println!("{} with {reads} reads, bound {:?}: {took:?}", kind.name, machine.bound());
                // Each new node gets its share, and no replica moves between old nodes.
                assert!((least_share..=most_share).contains(&took.most_of_a_node), "{took:?}");
                assert!((MORE * least_share..=MORE * most_share).contains(&took.moves), "{took:?}");
                let least = took.most_of_a_node as f64 * REPLICA_BYTES as f64 / machine.bound().1;
                assert!(took.seconds >= least, "{took:?}, at least {least} s");
                assert!(took.seconds < 2.0 * 3600.0, "{took:?}");
            }
        }
    }

    #[test]
    fn each_node_of_an_upgrade_gets_one_terabyte() {
        let machine = MACHINES[0].machine(READS as f64, PROCESSOR);
        // Zones have 33 or 34 nodes, and each holds each partition once.
        let (least_share, most_share) = (PARTITIONS / 34, PARTITIONS / 33 + 1);
        for (count, at_once) in [(2, 1), (7, 6)] {
            let took = world(machine).unwrap().upgrade(NODES, count, at_once, SOAK_S).unwrap();
            println!("{count} of {NODES} nodes, {at_once} at once, bound {:?}: {took:?}", machine.bound());
            assert!((count * least_share..=count * most_share).contains(&took.moves), "{took:?}");
        }
    }

    /// Hours of an upgrade of all nodes, from those of the canary and of the first two batches.
    fn hours(machine: Machine, at_once: usize) -> f64 {
        let seconds = |count| world(machine).unwrap().upgrade(NODES, count, at_once, SOAK_S).unwrap().seconds;
        let (second, third) = (seconds(1 + at_once), seconds(1 + 2 * at_once));
        let others = (NODES - 1).div_ceil(at_once) - 1;
        (second + others as f64 * (third - second)) / 3600.0
    }

    /// Rows of the table of `docs/rebalance.md`. An upgrade of few nodes stands for that of all.
    #[test]
    fn the_page_states_what_the_model_computes() {
        let page = include_str!("../../../docs/rebalance.md");
        let mut wrong = Vec::new();
        for kind in &MACHINES {
            for reads in kind.reads() {
                let machine = kind.machine(reads, PROCESSOR);
                let (bound, rate) = (machine.bound().0.trim_end_matches(" at once"), machine.bound().1 / 1e9);
                let minutes = grow(machine).unwrap().seconds / 60.0;
                let start =
                    format!("| {}, {reads} | {bound}, {rate:.2} GB/s | {minutes:.0} min | ", kind.name);
                let found = AT_ONCE.map(|at_once| hours(machine, at_once));
                println!("{start}{}", found.map(|hours| format!("{hours:.1} h |")).join(" "));
                let end = page.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default();
                let hours_of = |cell: &str| cell.trim().strip_suffix(" h")?.parse::<f64>().ok();
                let stated: Vec<f64> = end.split('|').filter_map(hours_of).collect();
                let is_near = |(hours, stated): (&f64, &f64)| (hours / stated - 1.0).abs() < 0.03;
                if stated.len() != found.len() || !found.iter().zip(&stated).all(is_near) {
                    wrong.push(start);
                }
                // What a deployment does by default takes hours, not days.
                assert!(found[1] < TARGET_HOURS / 2.0, "{} h", found[1]);
            }
        }
        assert!(wrong.is_empty(), "the page has no such rows: {wrong:?}");
    }
}

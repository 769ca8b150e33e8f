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
    world.run(Goal::Balance, None)
}

/// Adds the hours to the report. `processor` is what one processor restores in a second, in bytes.
pub fn report(report: &mut Report, processor: f64) -> anyhow::Result<()> {
    for kind in &MACHINES {
        for reads in kind.reads() {
            let machine = kind.machine(reads, processor);
            let name = format!("{}, {reads} reads", kind.name);
            let bounds = machine.bounds().map(|(name, rate)| format!("{name} {:.0} MB/s", rate / 1e6));
            report.parameter(&format!("bounds of {name}"), bounds.join(", "));
            let upgraded = world(machine)?.upgrade(NODES, NODES, SOAK_S)?;
            let all = [
                (format!("{NODES} to {} nodes of 1 TB, {name}", NODES + MORE), grow(machine)?),
                (format!("upgrade of {NODES} nodes of 1 TB, {name}"), upgraded),
            ];
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
        let (count, bound) = (2, machine.bound());
        let took = world(machine).unwrap().upgrade(NODES, count, SOAK_S).unwrap();
        println!("{count} of {NODES} nodes, bound {bound:?}: {took:?}");
        let of_a_node = PARTITIONS * usize::from(REPLICATION) / NODES;
        assert!((count * of_a_node..=count * (of_a_node + 1)).contains(&took.moves), "{took:?}");
    }

    /// Rows of the table of `docs/rebalance.md`. An upgrade of few nodes stands for that of all.
    #[test]
    fn the_page_states_what_the_model_computes() {
        let page = include_str!("../../../docs/rebalance.md");
        let few = 3;
        for kind in &MACHINES {
            for reads in kind.reads() {
                let machine = kind.machine(reads, PROCESSOR);
                let (bound, rate) = (machine.bound().0.trim_end_matches(" at once"), machine.bound().1 / 1e9);
                let minutes = grow(machine).unwrap().seconds / 60.0;
                let start =
                    format!("| {}, {reads} | {bound}, {rate:.2} GB/s | {minutes:.0} min | ", kind.name);
                let end = page.lines().find_map(|line| line.strip_prefix(&start));
                let stated =
                    end.and_then(|end| end.strip_suffix(" h |")).and_then(|hours| hours.parse().ok());
                let stated: f64 = stated.unwrap_or_else(|| panic!("no row starts with {start:?}"));
                let seconds = world(machine).unwrap().upgrade(NODES, few, SOAK_S).unwrap().seconds;
                let hours = ((seconds - SOAK_S) / few as f64 * NODES as f64 + SOAK_S) / 3600.0;
                println!("{start}{hours:.1} h |, stated: {stated} h");
                assert!((hours / stated - 1.0).abs() < 0.03, "{start}{hours} h, stated: {stated} h");
            }
        }
    }
}

//! `tidegraph-node drop-graph`: removes one graph with all its data, and nothing of the others.
//!
//! Flow: mark the graph in the map → wait until no process gives a sign of life for it → delete the topic of its log →
//! delete its objects → remove its items, the mark last. A run that was stopped anywhere is repeated with the same command.

use crate::connect::{LogArgs, TableArgs, objects, objects_of};
use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::check_graph_name;
use tidegraph_cluster::dynamodb::DynamoMap;
use tidegraph_fleet::backup::FOLDERS;
use tidegraph_platform::{Clock, Objects, RealClock};

/// Time without a sign of life after which nobody serves the graph. Nodes send heartbeats each second, until they have
/// written their last checkpoint, and leases are renewed more often.
const SILENCE: Duration = Duration::from_secs(5);
/// Pause between two looks for signs of life.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Flags of `drop-graph`.
#[derive(Args, Debug)]
pub struct DropGraph {
    /// Name of the graph.
    name: String,
    /// The name once more. What is removed cannot be brought back but from a backup.
    #[arg(long, value_name = "NAME")]
    confirm: String,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    log: LogArgs,
    /// Checkpoints and segments: `s3://bucket`, or a directory that all nodes share.
    #[arg(long, env = "TIDEGRAPH_OBJECTS")]
    objects: String,
    /// Longest time in seconds to wait until the processes of the fleet have left the graph.
    #[arg(long, default_value_t = 120)]
    timeout_s: u64,
}

impl DropGraph {
    pub fn run(self) -> anyhow::Result<()> {
        let name = &self.name;
        check_graph_name(name)?;
        ensure!(
            self.confirm == *name,
            "--confirm {:?} is not the name of the graph: to remove {name:?} with all its data, give --confirm {name}",
            self.confirm
        );
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let map = self.table.open_for_command(&clock)?;
        // Before the mark, so that a wrong flag changes nothing.
        let (log, whole) = (self.log.location(name)?, objects(&self.objects)?);
        let graph = map.begin_drop(name).context("nothing was dropped")?;
        self.wait_for_silence(&map, &*clock)?;
        log.delete().context("the topic of the log cannot be deleted; repeat the command to go on")?;
        let of_graph = objects_of(&whole, &graph)?;
        let removed = remove_objects(&of_graph)
            .context("the objects cannot all be removed; repeat the command to go on")?;
        map.finish_drop(name).context("the map cannot be removed; repeat the command to go on")?;
        #[allow(clippy::print_stdout)] // The output of the command.
        {
            println!("{:#}", json!({ "dropped": name, "objects": removed }));
        }
        Ok(())
    }

    /// Waits until no process raises a counter of the graph any more. Nodes and the sequencer stop when they see the mark.
    fn wait_for_silence(&self, map: &DynamoMap, clock: &dyn Clock) -> anyhow::Result<()> {
        let end = clock.now() + Duration::from_secs(self.timeout_s) + SILENCE;
        let (mut last, mut since) = (map.signs_of_life(&self.name)?, clock.now());
        while clock.now() - since < SILENCE {
            clock.sleep(LOOK_EVERY);
            let signs = map.signs_of_life(&self.name)?;
            if signs != last {
                let moving: Vec<_> = signs.iter().filter(|sign| !last.contains(sign)).collect();
                if clock.now() > end {
                    bail!(
                        "processes still serve graph {:?} after {} s ({moving:?}): stop them, or upgrade them if they are of \
                         an earlier release, and repeat the command. The graph stays marked as being dropped",
                        self.name,
                        self.timeout_s
                    );
                }
                (last, since) = (signs, clock.now());
            }
        }
        Ok(())
    }
}

/// Removes the objects of a graph, and returns how many they were.
fn remove_objects(objects: &Objects) -> anyhow::Result<usize> {
    let mut removed = 0;
    for folder in FOLDERS {
        for object in objects.list(folder)? {
            objects.delete(&object.path)?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objects_of_other_graphs_stay() {
        let whole = Objects::memory().unwrap();
        let (one, two) = (whole.below("graphs/one").unwrap(), whole.below("graphs/two").unwrap());
        for store in [&whole, &one, &two] {
            for path in ["checkpoints/p00001/n-1/data", "loads/l/v.seg", "jobs/l.json", "other"] {
                store.put(path, "x").unwrap();
            }
        }
        assert_eq!(remove_objects(&one).unwrap(), 3);
        assert_eq!(remove_objects(&one).unwrap(), 0);
        assert_eq!((one.list("").unwrap().len(), two.list("").unwrap().len()), (1, 4));
        // The graph that has the root of the store has no part in the folders of others.
        assert_eq!(remove_objects(&whole).unwrap(), 3);
        assert_eq!(two.list("").unwrap().len(), 4);
    }
}

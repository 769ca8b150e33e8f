//! Creating a graph, and distributing it among nodes.

use crate::connect::{LogArgs, MapArgs, objects, objects_of};
use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::dynamodb::DynamoMap;
use tidegraph_cluster::{
    Candidate, Change, Graph, MapStore, NodeState, PartitionMap, Role, change_all, place,
};
use tidegraph_fleet::restart::any_checkpoint;
use tidegraph_log::{LogCopies, LogLocation};
use tidegraph_platform::{Clock, RealClock};
use tidegraph_types::{Cardinality, ElementIds, GremlinSettings, PartitionCount};

/// Flags of `init`.
#[derive(Args, Debug)]
pub struct Init {
    #[command(flatten)]
    map: MapArgs,
    #[command(flatten)]
    log: LogArgs,
    /// Checkpoints and segments: `s3://bucket`, or a directory that all nodes share. With it, a new log is refused also if
    /// only the checkpoints there say that there was a graph.
    #[arg(long, env = "TIDEGRAPH_OBJECTS")]
    pub objects: Option<String>,
    /// Number of partitions of the graph: a power of two. It cannot be changed later.
    #[arg(long, default_value_t = 64)]
    partitions: u16,
    /// Number of shards of the log: partitions of the topic, each for a group of the graph's partitions. It cannot be
    /// changed later.
    #[arg(long, default_value_t = 1)]
    shards: u16,
    /// Number of replicas of each partition.
    #[arg(long, default_value_t = 2)]
    replication: u16,
    /// Types of ids in Gremlin: strings (as in Neptune), typed (strings, integers and UUIDs), or longs (the same, and every
    /// integer is a Long). It cannot be changed later. Default: that of the graph, or strings.
    #[arg(long, env = "TIDEGRAPH_IDS")]
    ids: Option<ElementIds>,
    /// Cardinality of vertex properties that Gremlin writes without one: set (as in Neptune), single (as in TinkerGraph and
    /// JanusGraph) or list. It cannot be changed later. Default: that of the graph, or set.
    #[arg(long, env = "TIDEGRAPH_DEFAULT_CARDINALITY")]
    default_cardinality: Option<Cardinality>,
    /// The object store is that of several graphs: the objects of this one go below `graphs/NAME/`. It cannot be changed
    /// later. Default: as the graph is, or the graph has the store to itself.
    #[arg(long)]
    share_objects: bool,
    /// Create no graph: fail until `restore` has made it. Nodes that run `init` before each start then wait for it.
    #[arg(long, env = "TIDEGRAPH_AWAIT_RESTORE")]
    await_restore: bool,
    /// Create the table of maps too. A deployment creates it in its template.
    #[arg(long)]
    create_tables: bool,
    /// Number of copies of the log.
    #[arg(long, default_value_t = 3)]
    log_replication: u16,
    /// Number of copies of a record that must exist before it is acknowledged.
    #[arg(long, default_value_t = 2)]
    log_in_sync: u16,
}

impl Init {
    pub fn run(self) -> anyhow::Result<()> {
        let map = self.open_map()?;
        if map.is_dropping(&self.map.graph)? {
            let name = &self.map.graph;
            bail!(
                "graph {name:?} is being dropped: `tidegraph-node drop-graph {name}` finishes that, and then it can be made"
            );
        }
        let graph = self.graph_in(&*map)?;
        if self.await_restore
            && let Err(error @ tidegraph_cluster::Error::NotFound { .. }) = map.load(&graph.name, None)
        {
            bail!("{error} yet: `tidegraph-node restore` has to make it of a backup (docs/backup.md)");
        }
        let location = self.log_location()?;
        if location.is_new()? {
            self.check_is_first(&*map, &graph)?;
        }
        location.backend(graph.sharding()?)?.create(self.copies())?;
        map.create_graph(&graph)?;
        Ok(())
    }

    /// Returns the name of the graph.
    pub fn graph_name(&self) -> &str {
        &self.map.graph
    }

    /// Opens the map, and creates its table if the flags say so.
    pub fn open_map(&self) -> anyhow::Result<Arc<DynamoMap>> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let map = self.map.open_for_command(&clock)?;
        if self.create_tables {
            map.create_tables()?;
        }
        Ok(map)
    }

    /// Returns the graph that the flags describe. What they leave open is as in the map, if it has the graph.
    pub fn graph_in(&self, map: &dyn MapStore) -> anyhow::Result<Graph> {
        let mut graph = self.graph()?;
        match map.load(&graph.name, None) {
            Ok(there) => {
                graph.gremlin = self.gremlin(there.graph().gremlin);
                graph.shares_objects |= there.graph().shares_objects;
                if there.graph().unsplit() == graph {
                    // The flags name the number with which it was created.
                    graph = there.graph().clone();
                }
            }
            Err(tidegraph_cluster::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(graph)
    }

    /// Returns the settings of Gremlin that the flags give, and the others as they are.
    pub fn gremlin(&self, others: GremlinSettings) -> GremlinSettings {
        GremlinSettings {
            ids: self.ids.unwrap_or(others.ids),
            default_cardinality: self.default_cardinality.unwrap_or(others.default_cardinality),
        }
    }

    /// Returns the graph that the flags describe.
    pub fn graph(&self) -> anyhow::Result<Graph> {
        let graph = Graph {
            name: self.map.graph.clone(),
            partitions: PartitionCount::new(self.partitions).map_err(anyhow::Error::msg)?,
            shards: self.shards,
            hash_bits: 64,
            replication_factor: self.replication,
            gremlin: self.gremlin(GremlinSettings::default()),
            splits: Default::default(),
            shares_objects: self.share_objects,
        };
        graph.check()?;
        Ok(graph)
    }

    pub fn log_location(&self) -> anyhow::Result<LogLocation> {
        self.log.location(&self.map.graph)
    }

    pub fn copies(&self) -> LogCopies {
        LogCopies { total: self.log_replication, in_sync: self.log_in_sync }
    }

    /// Refuses a new log for a graph that has checkpoints: with an empty log its nodes would go on at other versions than
    /// the sequencer.
    fn check_is_first(&self, map: &dyn MapStore, graph: &Graph) -> anyhow::Result<()> {
        let name = &graph.name;
        let noted = match map.checkpoints(name) {
            Ok(noted) => noted,
            Err(tidegraph_cluster::Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let newest = noted.into_iter().max_by_key(|checkpoint| checkpoint.version);
        let mut found =
            newest.map(|noted| format!("the map, at version {}, below {}", noted.version, noted.prefix));
        if let (None, Some(url)) = (&found, &self.objects) {
            let path = any_checkpoint(&*objects_of(&objects(url)?, graph)?, name)?;
            found = path.map(|path| format!("{url}, {path}"));
        }
        let Some(found) = found else { return Ok(()) };
        bail!(
            "there was a graph {name:?}: it has a checkpoint ({found}). But the topic of its log has no message: the log \
             is lost, or the flags name other brokers or another topic. `tidegraph-node restart-log` starts a new log from \
             the checkpoints and says what that loses (docs/durability.md)"
        );
    }
}

/// Flags of `place`.
#[derive(Args, Debug)]
pub struct Place {
    #[command(flatten)]
    map: MapArgs,
    /// Number of nodes to wait for.
    #[arg(long)]
    nodes: usize,
    /// Longest time in seconds to wait for the nodes and for all replicas to serve.
    #[arg(long, default_value_t = 120)]
    timeout_s: u64,
}

impl Place {
    pub fn run(self) -> anyhow::Result<()> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let store = self.map.open_for_command(&clock)?;
        let name = &self.map.graph;
        let end = clock.now() + Duration::from_secs(self.timeout_s);
        let until =
            |what: &str, is_so: &dyn Fn(&PartitionMap) -> bool| -> anyhow::Result<Arc<PartitionMap>> {
                loop {
                    let map = store.load(name, None).context("the map cannot be loaded")?;
                    if is_so(&map) {
                        return Ok(map);
                    }
                    if clock.now() > end {
                        bail!("there are still not {what} after {} s", self.timeout_s);
                    }
                    clock.sleep(Duration::from_millis(200));
                }
            };
        let map = until(&format!("{} nodes", self.nodes), &|map| candidates(map).len() >= self.nodes)?;
        let layout = map.graph().layout();
        let held: Vec<_> = map
            .partitions()
            .map(|(_, replicas)| replicas.iter().map(|replica| replica.node.clone()).collect::<Vec<_>>())
            .collect();
        let wanted = place(layout.count(), map.graph().replication_factor, &candidates(&map), &held);
        let mut changes = Vec::new();
        for ((partition, nodes), held) in layout.all().zip(&wanted).zip(&held) {
            let new = nodes.iter().filter(|node| !held.contains(node));
            changes.extend(new.map(|node| Change::AddReplica { partition, node: node.clone() }));
        }
        change_all(&*store, name, &changes)?;
        until("as many replicas that serve as there should be", &|map| {
            layout.all().zip(&wanted).all(|(partition, nodes)| {
                let serving = map.serving(partition);
                nodes.iter().all(|node| serving.iter().any(|(id, _)| *id == node))
            })
        })?;
        Ok(())
    }
}

/// Nodes that may hold replicas.
fn candidates(map: &PartitionMap) -> Vec<Candidate> {
    map.nodes()
        .filter(|(_, node)| node.state == NodeState::Up && node.roles.contains(&Role::Storage))
        .map(|(id, node)| Candidate {
            node: id.clone(),
            zone: node.zone.clone(),
            weight: node.capacity_bytes,
        })
        .collect()
}

/// Flags of `map`.
#[derive(Args, Debug)]
pub struct Map {
    #[command(flatten)]
    map: MapArgs,
}

impl Map {
    pub fn run(self) -> anyhow::Result<()> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let map = self.map.open_for_command(&clock)?.load(&self.map.graph, None)?;
        let nodes: Vec<_> = map
            .nodes()
            .map(|(id, node)| json!({ "id": id.as_str(), "state": node.state.to_string(), "endpoint": node.endpoint, "zone": node.zone }))
            .collect();
        let partitions: Vec<_> = map
            .partitions()
            .map(|(partition, replicas)| {
                let replicas = replicas.iter().map(
                    |replica| json!({ "node": replica.node.as_str(), "state": replica.state.to_string() }),
                );
                json!({ "partition": partition.0, "replicas": replicas.collect::<Vec<_>>() })
            })
            .collect();
        let text = json!({
            "epoch": map.epoch().0,
            "nodes": nodes,
            "partitions": partitions,
            "splits": map.graph().splits,
        });
        #[allow(clippy::print_stdout)] // The output of the command.
        {
            println!("{text:#}");
        }
        Ok(())
    }
}

//! Builds worlds, and starts and kills their processes.

use crate::broker::{Broker, SimLog};
use crate::client::Client;
use crate::config::{Bug, Config, Profile};
use crate::copies::NodeDisk;
use crate::load::SubmittedLoads;
use crate::map::{MapFaults, SimMap};
use crate::node::{Parts, RunningNode};
use crate::objects::{FaultyObjects, ObjectFaults, ProcessObjects};
use crate::process::{Process, SkewedClock, Time};
use crate::report::Counts;
use crate::split::Operators;
use crate::stalls::ItemGuide;
use crate::steps::SteppedLoads;
use crate::trace::Trace;
use crate::transaction::{Common, Strips};
use crate::workers::WorkerSlot;
use crate::world::{Event, GRAPH, NodeSlot, World};
use object_store::ObjectStore;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_cluster::testing::graph_named;
use tidegraph_cluster::{Candidate as Place, Change, Graph, MapStore, MemoryMap, NodeId, place};
use tidegraph_fleet::sequencing::CandidateConfig;
use tidegraph_platform::{Objects, Random, SeededRandom};
use tidegraph_storage::checkpoint::LocalCopies;
use tidegraph_txn::SequencerConfig;
use tidegraph_types::{PartitionId, Version};

/// The reason why a world, or a process of it, could not be built.
pub(crate) type SetupError = Box<dyn std::error::Error + Send + Sync>;

impl World {
    pub fn new(config: Config) -> Result<Self, SetupError> {
        let random = SeededRandom::new(config.seed);
        let profile = Profile::draw(&config, &random);
        let trace = Arc::new(Trace::new(config.keep_lines));
        let graph = Graph {
            shards: profile.shards,
            replication_factor: profile.replication,
            ..graph_named(GRAPH, profile.partitions)
        };
        let map = MemoryMap::default();
        map.create_graph(&graph)?;
        let sharding = graph.sharding()?;
        let broker =
            Broker::new(profile.on_disk, sharding, profile.appends_wrong, config.bug, random.next_u64())?;
        let object_faults = ObjectFaults(Arc::default(), profile.splits.is_some());
        let store = FaultyObjects::new(object_faults.clone(), random.next_u64());
        let store: Arc<dyn ObjectStore> = Arc::new(store);
        let objects = Objects::new(store.clone(), "simulated:/")?;
        let map_faults = Arc::new(MapFaults {
            away: AtomicBool::new(false),
            wrong: AtomicU64::new(profile.map_wrong),
            random: SeededRandom::new(random.next_u64()),
        });
        let hides_reads = config.bug == Some(Bug::HideReads);
        let common = Common::new(GRAPH, profile.keys, profile.nodes);
        let renames_commits = config.bug == Some(Bug::RenameCommits);
        let strips = match config.bug {
            Some(Bug::StripReads) => Strips::All,
            Some(Bug::StripConstraints) => Strips::Constraints,
            _ => Strips::Nothing,
        };
        let at_hand = profile.at_hand;
        let resets = profile.resets;
        let common = Arc::new(Common {
            hides_reads,
            renames_commits,
            at_hand,
            resets,
            scans: profile.scans,
            strips,
            hides_changes: config.bug == Some(Bug::HideChanges),
            ..common
        });
        let operators = profile.splits.map(|splits| Operators::new(splits, &graph, config.seed, config.bug));
        let mut world = Self {
            random,
            time: Time::default(),
            queue: BTreeMap::new(),
            events: 0,
            trace,
            graph,
            map,
            map_faults,
            broker,
            objects: Arc::new(objects),
            store,
            object_faults,
            lag: Arc::new(AtomicU64::new(0)),
            slots: Vec::new(),
            clients: Vec::new(),
            wakes: Vec::new(),
            workers: Vec::new(),
            lives: Arc::new((0..profile.nodes).map(|_| AtomicU64::new(0)).collect()),
            common,
            faulty: true,
            done: Vec::new(),
            statements: Vec::new(),
            folder: if profile.loads { Some(tempfile::tempdir()?) } else { None },
            items: ItemGuide::default(),
            loads: SubmittedLoads::default(),
            stepped: SteppedLoads::default(),
            reported: Vec::new(),
            operators: operators.transpose()?,
            lost_checkpoints: vec![],
            counts: Counts::default(),
            bookmark: Version(0),
            names: BTreeMap::new(),
            named: BTreeMap::new(),
            sids: BTreeMap::new(),
            leaders: BTreeMap::new(),
            profile,
            config,
        };
        world.populate()?;
        Ok(world)
    }

    /// Starts nodes, places partitions on them, and starts clients and workers.
    fn populate(&mut self) -> Result<(), SetupError> {
        self.say("world", format_args!("{:?}", self.profile));
        // The map has no faults until the fleet exists.
        let wrong = self.map_faults.wrong.swap(0, Ordering::Relaxed);
        for index in 0..self.profile.nodes {
            let name = format!("n{index}");
            let id = NodeId::new(&name)?;
            let speed = 1000 - self.profile.skew + self.random.below(2 * self.profile.skew + 1);
            let disk = self.profile.copies.then(|| NodeDisk::new(index, self.config.seed));
            self.slots.push(NodeSlot {
                name,
                id,
                life: 0,
                running: None,
                paused_until: 0,
                busy_until: 0,
                cut_off: false,
                inbox: Vec::new(),
                speed,
                disk: disk.transpose()?,
            });
            self.start(index)?;
        }
        let candidates: Vec<Place> = self
            .slots
            .iter()
            .map(|slot| Place { node: slot.id.clone(), zone: "z".into(), weight: 1 })
            .collect();
        let held = vec![vec![]; usize::from(self.profile.partitions)];
        let placed = place(self.graph.partitions, self.profile.replication, &candidates, &held);
        for (partition, nodes) in placed.iter().enumerate() {
            let partition = PartitionId(partition as u16);
            let add = |node: &NodeId| Change::AddReplica { partition, node: node.clone() };
            let changes: Vec<Change> = nodes.iter().map(add).collect();
            self.map.change(GRAPH, None, &changes)?;
        }
        for index in 0..self.profile.clients {
            let process = self.process(&format!("c{index}"), 1000);
            let map = self.map_of(&process);
            let seed = self.random.next_u64();
            self.clients.push(Client::new(index, process, map, self.common.clone(), seed)?);
            self.wakes.push(None);
            self.wake(index, 300_000 + 50_000 * index as u64);
        }
        for index in 0..self.profile.workers {
            self.workers.push(WorkerSlot { life: 0, running: None, paused_until: 0 });
            self.after(300_000 + 50_000 * index as u64, Event::StartWorker(index));
        }
        self.map_faults.wrong.store(wrong, Ordering::Relaxed);
        self.after(1_000_000, Event::Fault);
        if self.profile.workers > 0 {
            self.after(2_000_000, Event::WorkerFault);
        }
        self.begin_splits();
        Ok(())
    }

    pub fn process(&self, name: &str, speed: u64) -> Arc<Process> {
        let offset = Duration::from_millis(self.random.below(100_000));
        Process::new(name, SkewedClock::new(self.time.clone(), offset, speed), self.trace.clone())
    }

    pub fn map_of(&self, process: &Arc<Process>) -> Arc<SimMap> {
        let (inner, faults) = (self.map.clone(), self.map_faults.clone());
        Arc::new(SimMap { inner, process: process.clone(), faults })
    }

    /// Returns the object store as a worker reaches it while its process lives.
    pub fn objects_of(&self, process: &Arc<Process>) -> Result<Arc<Objects>, SetupError> {
        if !self.profile.loads {
            return Ok(self.objects.clone());
        }
        let store = ProcessObjects::new(self.store.clone(), process.clone());
        Ok(Arc::new(Objects::new(Arc::new(store), "simulated:/")?))
    }

    /// Starts the process of a node.
    pub fn start(&mut self, index: usize) -> Result<(), SetupError> {
        let name = self.slots[index].name.clone();
        self.slots[index].life += 1;
        let (life, speed) = (self.slots[index].life, self.slots[index].speed);
        let process = self.process(&name, speed);
        let log = SimLog { broker: self.broker.clone(), process: process.clone(), lag: self.lag.clone() };
        let sequencer = SequencerConfig {
            remembered_keys: self.profile.remembered_keys,
            most_remembered_keys: 4 * self.profile.remembered_keys,
            remembered_requests: self.profile.remembered_requests,
            sids_ahead: 16,
            // There is one thread: a commit that meets a turn is refused.
            turn_wait: Duration::ZERO,
            ..SequencerConfig::default()
        };
        let copies = self.open_copies(index, &process)?;
        let parts = Parts {
            graph: self.graph.clone(),
            name,
            life,
            map: self.map_of(&process),
            process,
            log,
            objects: self.objects.clone(),
            copies,
            candidate: CandidateConfig {
                sequencer,
                unsure: self.profile.unsure,
                asked_again: 16,
                ..CandidateConfig::default()
            },
            checkpoint_versions: self.profile.checkpoint_versions,
            seed: self.random.next_u64(),
        };
        let running = RunningNode::start(parts)?;
        self.slots[index].running = Some(running);
        self.lives[index].store(life, Ordering::Relaxed);
        self.say(&self.slots[index].name, format_args!("starts its life {life}"));
        self.after(self.random.below(5_000), Event::Feed(index, life));
        self.after(self.random.below(50_000), Event::Reconcile(index, life));
        self.after(self.random.below(300_000), Event::Beat(index, life));
        self.after(self.random.below(300_000), Event::Lead(index, life));
        self.after(self.random.below(1_000_000), Event::Maintain(index, life));
        Ok(())
    }

    /// Opens the copies of checkpoints on the disk of a node, after what became of them since its last life.
    fn open_copies(
        &mut self,
        index: usize,
        process: &Arc<Process>,
    ) -> Result<Option<Arc<LocalCopies>>, SetupError> {
        let Some(disk) = &self.slots[index].disk else { return Ok(None) };
        self.counts.damaged_copies += disk.crash()?;
        disk.open(process).map(Some)
    }

    /// Kills the process of a node, with everything in its memory.
    pub fn kill(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.inbox.clear();
        (slot.paused_until, slot.busy_until) = (0, 0);
        let Some(running) = slot.running.take() else { return };
        self.lives[index].store(0, Ordering::Relaxed);
        running.process.note(format_args!("is killed"));
        running.process.alive.store(false, Ordering::Relaxed);
        self.counts.kills += 1;
    }
}

//! A world: processes, a network between them, one time, and one queue of events, all on one thread.
//!
//! Flow: the earliest event runs; its process acts at once and queues new events. Delays are drawn
//! at random. Events for a process that is busy or paused wait, in order, until it continues.
//!
//! What must never happen here: a decision that a second run of the seed would make differently. No code asks the
//! machine's clock, iterates over a hash map, or leaves an order to threads.

use crate::broker::Broker;
use crate::client::{Client, ClientCall, NO_EPOCH, NodeReply};
use crate::config::{Config, Profile};
use crate::copies::NodeDisk;
use crate::invariants::{Invariant, Violation};
use crate::load::SubmittedLoads;
use crate::loads::ReportedLoad;
use crate::map::MapFaults;
use crate::node::RunningNode;
use crate::objects::ObjectFaults;
use crate::process::Time;
use crate::report::{Counts, Report};
use crate::split::Operators;
use crate::stalls::ItemGuide;
use crate::statements::FinishedStatement;
use crate::steps::SteppedLoads;
use crate::trace::Trace;
use crate::transaction::{Common, FinishedTransaction, NAMES};
use crate::worker::{Call, NodeLives};
use crate::workers::{REPORT, WorkerSlot};
use bytes::Bytes;
use object_store::ObjectStore;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tempfile::TempDir;
use tidegraph_apl::At;
use tidegraph_cluster::{Graph, MemoryMap, NodeId};
use tidegraph_platform::{Objects, Random, SeededRandom};
use tidegraph_remote::{Commits, Error, RequestId};
use tidegraph_types::{PartitionId, Str, Token, Version};

pub(crate) const GRAPH: &str = "g";
/// Largest deviation of clocks, in thousandths, at which leases exclude each other.
pub(crate) const CALM_SKEW: u64 = 80;

/// An event in the queue.
pub(crate) enum Event {
    Start(usize),
    Feed(usize, u64),
    Reconcile(usize, u64),
    Beat(usize, u64),
    Lead(usize, u64),
    Maintain(usize, u64),
    /// A node commits the waiting requests as one group.
    Serve(usize, u64),
    ClientCall(usize, ClientCall),
    Answer(usize, u64, NodeReply),
    Overdue(usize, u64),
    Wake(usize),
    LateMessage,
    BrokerUp,
    Fault,
    Heal(crate::faults::Cut),
    /// A worker starts; runs, if it is still in the sleep of that turn; sends a call; receives a reply.
    StartWorker(usize),
    RunWorker(usize, u64, u64),
    Call(Call),
    Reply(usize, u64, u64, Result<Bytes, Error>),
    /// A node gets a replica back that was taken from it.
    GiveBack(PartitionId, usize),
    WorkerFault,
    WorkerHeal(usize),
    /// An operator starts its next command; a command takes its next step.
    StartCommand(usize),
    StepCommand(usize, u64),
}

/// A node, across the lives of its process.
pub(crate) struct NodeSlot {
    pub name: String,
    pub id: NodeId,
    pub life: u64,
    pub running: Option<RunningNode>,
    pub paused_until: u64,
    /// Until when all of its threads for requests are busy.
    pub busy_until: u64,
    /// Whether all messages from and to the node are lost.
    pub cut_off: bool,
    pub inbox: Vec<ClientCall>,
    pub speed: u64,
    /// Its disk, in worlds with copies of checkpoints.
    pub disk: Option<NodeDisk>,
}

pub(crate) struct World {
    pub config: Config,
    pub profile: Profile,
    pub random: SeededRandom,
    pub time: Time,
    pub queue: BTreeMap<(u64, u64), Event>,
    pub events: u64,
    pub trace: Arc<Trace>,
    pub graph: Graph,
    pub map: MemoryMap,
    pub map_faults: Arc<MapFaults>,
    pub broker: Broker,
    pub objects: Arc<Objects>,
    /// What is beneath them.
    pub store: Arc<dyn ObjectStore>,
    pub object_faults: ObjectFaults,
    pub lag: Arc<AtomicU64>,
    pub slots: Vec<NodeSlot>,
    pub clients: Vec<Client>,
    /// When each client continues, in microseconds.
    pub wakes: Vec<Option<u64>>,
    pub workers: Vec<WorkerSlot>,
    pub lives: NodeLives,
    pub common: Arc<Common>,
    pub faulty: bool,
    pub done: Vec<FinishedTransaction>,
    pub statements: Vec<FinishedStatement>,
    /// The folder with the files of loads, in worlds with loads.
    pub folder: Option<TempDir>,
    /// The items as the log has them, to bring about what is rare.
    pub items: ItemGuide,
    pub loads: SubmittedLoads,
    pub stepped: SteppedLoads,
    pub reported: Vec<ReportedLoad>,
    /// Who splits the graph, in worlds with splits.
    pub operators: Option<Operators>,
    /// Versions and paths of checkpoint manifests that were lost.
    pub lost_checkpoints: Vec<(u64, String)>,
    pub counts: Counts,
    /// The newest version that any client was told.
    pub bookmark: Version,
    /// Tokens of all names that a sequencer told.
    pub names: BTreeMap<Str, Token>,
    pub named: BTreeMap<Token, Str>,
    pub sids: BTreeMap<u64, u64>,
    pub leaders: BTreeMap<u64, String>,
}

pub(crate) type Step = Result<(), Violation>;

impl World {
    pub fn say(&self, who: &str, what: std::fmt::Arguments<'_>) {
        self.trace.note(self.time.micros(), who, what);
    }

    /// Queues an event, `micros` from now.
    pub fn after(&mut self, micros: u64, event: Event) {
        self.at(self.time.micros() + micros, event);
    }

    /// Queues an event at a time, in microseconds.
    pub fn at(&mut self, micros: u64, event: Event) {
        self.events += 1;
        self.queue.insert((micros, self.events), event);
    }

    /// Runs the next event.
    pub fn step(&mut self) -> Step {
        let Some(((micros, _), event)) = self.queue.pop_first() else { return Ok(()) };
        self.time.set(micros.max(self.time.micros()));
        self.counts.events += 1;
        match event {
            Event::Start(index) => {
                if self.slots[index].running.is_none()
                    && let Err(error) = self.start(index)
                {
                    self.say(&self.slots[index].name, format_args!("cannot start: {error}"));
                    self.after(300_000, Event::Start(index));
                }
                Ok(())
            }
            Event::Feed(..)
            | Event::Reconcile(..)
            | Event::Beat(..)
            | Event::Lead(..)
            | Event::Maintain(..)
            | Event::Serve(..) => self.of_node(event),
            Event::ClientCall(index, ask) => self.asked(index, ask),
            Event::Answer(client, number, said) => self.answered(client, number, said),
            Event::Overdue(client, number) => {
                let out = self.clients[client].overdue(self.time.micros(), number);
                self.send(client, out)
            }
            Event::Wake(client) => {
                let now = self.time.micros();
                // An earlier wake-up replaced this one.
                if self.wakes[client].take_if(|due| *due <= now).is_none() {
                    return Ok(());
                }
                let out = self.clients[client].wake(now, self.bookmark, self.faulty);
                self.send(client, out)
            }
            Event::LateMessage => {
                self.broker.deliver(self.time.micros());
                self.see_broker();
                Ok(())
            }
            Event::BrokerUp => self.broker_up(),
            Event::Fault => {
                self.draw_fault();
                Ok(())
            }
            Event::Heal(cut) => {
                self.heal(&cut);
                Ok(())
            }
            Event::StartWorker(index) => {
                self.start_worker(index).map_err(|error| Violation::new(Invariant::Flt4, error.to_string()))
            }
            Event::RunWorker(worker, life, turn) => self.run_worker(worker, life, turn),
            Event::Call(call) => self.called(call),
            Event::Reply(worker, life, number, content) => {
                self.replied(worker, life, number, content);
                Ok(())
            }
            Event::GiveBack(partition, node) => {
                self.give_back(partition, node);
                Ok(())
            }
            Event::WorkerFault => self.draw_worker_fault(),
            Event::StartCommand(index) => self.start_command(index),
            Event::StepCommand(index, life) => self.step_command(index, life),
            Event::WorkerHeal(index) => {
                self.heal_worker(index);
                Ok(())
            }
        }
    }

    /// Runs an event of one life of a node: now, later if the node is busy, or never if that life is over.
    fn of_node(&mut self, event: Event) -> Step {
        let (Event::Feed(index, life)
        | Event::Reconcile(index, life)
        | Event::Beat(index, life)
        | Event::Lead(index, life)
        | Event::Maintain(index, life)
        | Event::Serve(index, life)) = event
        else {
            return Ok(());
        };
        let now = self.time.micros();
        let slot = &self.slots[index];
        let Some(running) = slot.running.as_ref().filter(|_| slot.life == life) else { return Ok(()) };
        let ready = slot.paused_until.max(running.process.clock.busy_until());
        if ready > now {
            self.at(ready, event);
            return Ok(());
        }
        if let Some(reason) = running.node.failure() {
            // The daemon ends with its node, and is started again.
            running.process.note(format_args!("fails: {reason}"));
            self.kill(index);
            self.after(20_000 + self.random.below(500_000), Event::Start(index));
            return Ok(());
        }
        if matches!(event, Event::Lead(..) | Event::Maintain(..) | Event::Serve(..))
            && self.awaits_report(index)
        {
            self.after(REPORT, event);
            return Ok(());
        }
        match event {
            Event::Feed(..) => {
                while running.node.poll_log() && !self.random.one_in(8) {}
                self.after(1_000 + self.random.below(15_000), Event::Feed(index, life));
                self.check_replicas(index)
            }
            Event::Reconcile(..) => {
                running.node.reconcile();
                self.after(50_000 + self.random.below(100_000), Event::Reconcile(index, life));
                Ok(())
            }
            Event::Beat(..) => {
                running.node.send_heartbeat();
                self.after(500_000, Event::Beat(index, life));
                Ok(())
            }
            Event::Lead(..) => {
                running.candidate.step();
                let step = 300_000_000 / slot.speed;
                self.after(step + self.random.below(20_000), Event::Lead(index, life));
                self.see_broker();
                self.check_leaders()
            }
            Event::Maintain(..) => {
                running.maintenance.step();
                self.after(1_000_000, Event::Maintain(index, life));
                Ok(())
            }
            _ => self.serve(index),
        }
    }

    /// MAP-3: no epoch has two leaders, and no two processes are sure of the lease.
    fn check_leaders(&mut self) -> Step {
        let mut sure: Vec<&str> = Vec::new();
        for slot in &self.slots {
            let Some(leading) = slot.running.as_ref().and_then(|running| running.candidate.leadership())
            else {
                continue;
            };
            let name = format!("{}-{}", slot.name, slot.life);
            let known = self.leaders.entry(leading.epoch().0).or_insert_with(|| {
                self.trace.note(
                    self.time.micros(),
                    &slot.name,
                    format_args!("leads epoch {}", leading.epoch()),
                );
                self.counts.takeovers += 1;
                name.clone()
            });
            if *known != name {
                let what = format!("epoch {} is of {known} and of {name}", leading.epoch());
                return Err(Violation::new(Invariant::Map3, what));
            }
            if leading.is_sure() {
                sure.push(&slot.name);
            }
        }
        if sure.len() > 1 && self.profile.skew <= CALM_SKEW {
            return Err(Violation::new(Invariant::Map3, format!("{sure:?} are all sure of the lease")));
        }
        Ok(())
    }

    /// FLT-1: no replica is ahead of the log.
    fn check_replicas(&self, index: usize) -> Step {
        let Some(running) = &self.slots[index].running else { return Ok(()) };
        if let Some(what) = self.broker.contradiction() {
            return Err(Violation::new(Invariant::Log4, what));
        }
        let newest = self.broker.newest();
        match running.node.replicas().into_iter().find(|(_, version, _)| *version > newest) {
            Some((partition, version, _)) => {
                let name = &self.slots[index].name;
                let what = format!("partition {partition} on {name} is at {version}, the log at {newest}");
                Err(Violation::new(Invariant::Flt1, what))
            }
            None => Ok(()),
        }
    }

    /// Queues the restart of a broker that went down, and the arrival of late messages.
    pub fn see_broker(&mut self) {
        if !self.broker.is_up() && !self.queue.values().any(|event| matches!(event, Event::BrokerUp)) {
            self.say("log", format_args!("is down"));
            self.counts.broker_crashes += 1;
            self.after(100_000 + self.random.below(1_500_000), Event::BrokerUp);
        }
        // No message arrives while it is down.
        if let Some(due) = self.broker.next_late().filter(|_| self.broker.is_up()) {
            let due = due.max(self.time.micros() + 1);
            if !self.queue.values().any(|event| matches!(event, Event::LateMessage)) {
                self.at(due, Event::LateMessage);
            }
        }
    }

    fn broker_up(&mut self) -> Step {
        let restarted = self.broker.restart();
        self.say("log", format_args!("is up, at {}", self.broker.newest()));
        self.see_broker();
        restarted.map_err(|error| Violation::new(Invariant::Log2, error.to_string()))
    }

    /// Runs all events up to a time, in microseconds.
    pub fn run_until(&mut self, micros: u64) -> Step {
        while self.queue.first_key_value().is_some_and(|((next, _), _)| *next <= micros) {
            self.step()?;
        }
        self.time.set(micros);
        Ok(())
    }

    /// Reads a vertex from a node at a version. Returns `None` if the node does not run, or no token is known.
    pub fn look(
        &self,
        index: usize,
        key: usize,
        version: Version,
    ) -> Option<Result<crate::model::Seen, tidegraph_apl::Error>> {
        let (running, list) = (self.slots[index].running.as_ref()?, *self.names.get(NAMES[0])?);
        let gui = self.common.keys[key].1;
        let at = At { version, epoch: NO_EPOCH };
        Some(running.read(self.layout().of(gui), at, list, gui))
    }

    /// Asks the leader for the outcome of a request. Returns `None` if there is no leader.
    pub fn outcome(&self, id: RequestId) -> Option<Result<tidegraph_remote::CommitOutcome, Error>> {
        let mut running = self.slots.iter().filter_map(|slot| slot.running.as_ref());
        let leader = running.find(|running| running.candidate.leadership().is_some())?;
        debug_assert!((0..self.slots.len()).all(|node| !self.awaits_report(node)));
        Some(leader.commits.outcome(id, Version(0)))
    }
}

/// Runs a world to its end, and reports what happened.
#[must_use]
pub fn run(config: &Config) -> Report {
    let begun = World::new(config.clone());
    let mut world = match begun {
        Ok(world) => world,
        Err(error) => return Report::without_world(config, &error),
    };
    let ended = world
        .run_until(u64::try_from(config.faults.as_micros()).unwrap_or(u64::MAX))
        .and_then(|()| world.come_to_rest());
    Report::new(world, ended.err())
}

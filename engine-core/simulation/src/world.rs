//! A world: processes, a network between them, one time, one queue of events, all on one thread.
//!
//! Flow: the earliest event happens; whoever it happens to does something at once and leaves new events. Chance decides how
//! long everything takes. A process that is busy or paused gets its events when it is back, in their order.
//!
//! What must never happen here: anything that a second run of the seed would do otherwise. Nothing asks the machine's clock, nor
//! goes through a hash map in its own order, nor leaves anything to threads.

use crate::broker::Broker;
use crate::client::{Ask, Client, NO_EPOCH, Said};
use crate::config::{Config, Profile};
use crate::invariants::{FLT_1, FLT_4, MAP_3, Violation};
use crate::map::MapFaults;
use crate::node::RunningNode;
use crate::objects::ObjectFaults;
use crate::process::Time;
use crate::report::{Counts, Report};
use crate::trace::Trace;
use crate::transaction::{Common, Done};
use crate::worker::{Call, Lives};
use crate::workers::WorkerSeat;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tidegraph_apl::At;
use tidegraph_cluster::{Graph, MemoryMap, NodeId};
use tidegraph_platform::{Objects, Random, SeededRandom};
use tidegraph_remote::{Commits, Error, RequestId};
use tidegraph_types::{Token, Version};

pub(crate) const GRAPH: &str = "g";
/// Clocks that differ by no more than this keep leases apart.
pub(crate) const CALM_SKEW: u64 = 80;

/// What happens at a time.
pub(crate) enum Event {
    Start(usize),
    Feed(usize, u64),
    Steward(usize, u64),
    Beat(usize, u64),
    Lead(usize, u64),
    Care(usize, u64),
    /// The commits that wait at a node are served together.
    Serve(usize, u64),
    Ask(usize, Ask),
    Answer(usize, u64, Said),
    Overdue(usize, u64),
    Wake(usize),
    Late,
    BrokerUp,
    Fault,
    Heal(crate::faults::Cut),
    /// A worker starts; has a turn, if it is still in that sleep; calls; hears.
    StartWorker(usize),
    Hand(usize, u64, u64),
    Call(Call),
    Reply(usize, u64, u64, Result<Bytes, Error>),
    WorkerFault,
    WorkerHeal(usize),
}

/// A node and what outlives its lives.
pub(crate) struct Seat {
    pub name: String,
    pub id: NodeId,
    pub life: u64,
    pub running: Option<RunningNode>,
    pub paused_until: u64,
    /// Whether messages from and to it are lost.
    pub cut_off: bool,
    pub inbox: Vec<Ask>,
    pub speed: u64,
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
    pub object_faults: ObjectFaults,
    pub lag: Arc<AtomicU64>,
    pub seats: Vec<Seat>,
    pub clients: Vec<Client>,
    /// When each client goes on.
    pub wakes: Vec<Option<u64>>,
    pub workers: Vec<WorkerSeat>,
    pub lives: Lives,
    pub common: Arc<Common>,
    pub faulty: bool,
    pub done: Vec<Done>,
    /// Manifests of checkpoints that were lost, and their versions.
    pub lost_checkpoints: Vec<(u64, String)>,
    pub counts: Counts,
    /// The newest version that a client was told.
    pub bookmark: Version,
    pub tokens: Option<Vec<Token>>,
    pub sids: BTreeMap<u64, u64>,
    pub leaders: BTreeMap<u64, String>,
}

pub(crate) type Step = Result<(), Violation>;

impl World {
    pub fn say(&self, who: &str, what: std::fmt::Arguments<'_>) {
        self.trace.note(self.time.micros(), who, what);
    }

    /// Something happens after so many microseconds.
    pub fn after(&mut self, micros: u64, event: Event) {
        self.at(self.time.micros() + micros, event);
    }

    pub fn at(&mut self, micros: u64, event: Event) {
        self.events += 1;
        self.queue.insert((micros, self.events), event);
    }

    /// Lets the next event happen.
    pub fn step(&mut self) -> Step {
        let Some(((micros, _), event)) = self.queue.pop_first() else { return Ok(()) };
        self.time.set(micros.max(self.time.micros()));
        self.counts.events += 1;
        match event {
            Event::Start(index) => {
                if self.seats[index].running.is_none()
                    && let Err(error) = self.start(index)
                {
                    self.say(&self.seats[index].name, format_args!("could not start: {error}"));
                    self.after(300_000, Event::Start(index));
                }
                Ok(())
            }
            Event::Feed(..)
            | Event::Steward(..)
            | Event::Beat(..)
            | Event::Lead(..)
            | Event::Care(..)
            | Event::Serve(..) => self.of_node(event),
            Event::Ask(index, ask) => self.asked(index, ask),
            Event::Answer(client, number, said) => self.answered(client, number, said),
            Event::Overdue(client, number) => {
                let out = self.clients[client].overdue(self.time.micros(), number);
                self.send(client, out)
            }
            Event::Wake(client) => {
                let now = self.time.micros();
                // An earlier wish took the place of this one.
                if self.wakes[client].take_if(|due| *due <= now).is_none() {
                    return Ok(());
                }
                let out = self.clients[client].wake(now, self.bookmark, self.faulty);
                self.send(client, out)
            }
            Event::Late => {
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
                self.start_worker(index).map_err(|error| Violation::new(FLT_4, error))
            }
            Event::Hand(worker, life, turn) => self.hand(worker, life, turn),
            Event::Call(call) => self.called(call),
            Event::Reply(worker, life, number, content) => {
                self.replied(worker, life, number, content);
                Ok(())
            }
            Event::WorkerFault => self.draw_worker_fault(),
            Event::WorkerHeal(index) => {
                self.heal_worker(index);
                Ok(())
            }
        }
    }

    /// Something happens to a life of a node: now, later if it is busy, never if it is over.
    fn of_node(&mut self, event: Event) -> Step {
        let (Event::Feed(index, life)
        | Event::Steward(index, life)
        | Event::Beat(index, life)
        | Event::Lead(index, life)
        | Event::Care(index, life)
        | Event::Serve(index, life)) = event
        else {
            return Ok(());
        };
        let now = self.time.micros();
        let seat = &self.seats[index];
        let Some(running) = seat.running.as_ref().filter(|_| seat.life == life) else { return Ok(()) };
        let ready = seat.paused_until.max(running.process.clock.busy_until());
        if ready > now {
            self.at(ready, event);
            return Ok(());
        }
        match event {
            Event::Feed(..) => {
                while running.node.step_feed() && !self.random.one_in(8) {}
                self.after(1_000 + self.random.below(15_000), Event::Feed(index, life));
                self.check_replicas(index)
            }
            Event::Steward(..) => {
                running.node.step();
                self.after(50_000 + self.random.below(100_000), Event::Steward(index, life));
                Ok(())
            }
            Event::Beat(..) => {
                running.node.beat();
                self.after(500_000, Event::Beat(index, life));
                Ok(())
            }
            Event::Lead(..) => {
                running.candidate.step();
                let step = 300_000_000 / seat.speed;
                self.after(step + self.random.below(20_000), Event::Lead(index, life));
                self.see_broker();
                self.check_leaders()
            }
            Event::Care(..) => {
                running.caretaker.step();
                self.after(1_000_000, Event::Care(index, life));
                Ok(())
            }
            _ => self.serve(index),
        }
    }

    /// Two who lead, or one epoch of two.
    fn check_leaders(&mut self) -> Step {
        let mut sure: Vec<&str> = Vec::new();
        for seat in &self.seats {
            let Some(leading) = seat.running.as_ref().and_then(|running| running.candidate.leading()) else {
                continue;
            };
            let name = format!("{}-{}", seat.name, seat.life);
            let known = self.leaders.entry(leading.epoch().0).or_insert_with(|| {
                self.trace.note(
                    self.time.micros(),
                    &seat.name,
                    format_args!("leads epoch {}", leading.epoch()),
                );
                self.counts.takeovers += 1;
                name.clone()
            });
            if *known != name {
                let what = format!("epoch {} is of {known} and of {name}", leading.epoch());
                return Err(Violation::new(MAP_3, what));
            }
            if leading.is_sure() {
                sure.push(&seat.name);
            }
        }
        if sure.len() > 1 && self.profile.skew <= CALM_SKEW {
            return Err(Violation::new(MAP_3, format!("{sure:?} are all sure of the lease")));
        }
        Ok(())
    }

    fn check_replicas(&self, index: usize) -> Step {
        let Some(running) = &self.seats[index].running else { return Ok(()) };
        let newest = self.broker.newest();
        match running.node.replicas().into_iter().find(|(_, version, _)| *version > newest) {
            Some((partition, version, _)) => {
                let name = &self.seats[index].name;
                let what = format!("partition {partition} on {name} is at {version}, the log at {newest}");
                Err(Violation::new(FLT_1, what))
            }
            None => Ok(()),
        }
    }

    /// A broker that went down by itself comes up again; what is late arrives some time.
    pub fn see_broker(&mut self) {
        if !self.broker.is_up() && !self.queue.values().any(|event| matches!(event, Event::BrokerUp)) {
            self.say("log", format_args!("is down"));
            self.counts.broker_crashes += 1;
            self.after(100_000 + self.random.below(1_500_000), Event::BrokerUp);
        }
        // While it is down nothing arrives there.
        if let Some(due) = self.broker.next_late().filter(|_| self.broker.is_up()) {
            let due = due.max(self.time.micros() + 1);
            if !self.queue.values().any(|event| matches!(event, Event::Late)) {
                self.at(due, Event::Late);
            }
        }
    }

    fn broker_up(&mut self) -> Step {
        let restarted = self.broker.restart();
        self.say("log", format_args!("is up, at {}", self.broker.newest()));
        self.see_broker();
        restarted.map_err(|what| Violation::new(crate::invariants::LOG_2, what))
    }

    /// Time passes until a moment.
    pub fn run_until(&mut self, micros: u64) -> Step {
        while self.queue.first_key_value().is_some_and(|((next, _), _)| *next <= micros) {
            self.step()?;
        }
        self.time.set(micros);
        Ok(())
    }

    /// A vertex as a node has it at a version.
    pub fn look(
        &self,
        index: usize,
        key: usize,
        version: Version,
    ) -> Option<Result<crate::model::Seen, String>> {
        let (running, tokens) = (self.seats[index].running.as_ref()?, self.tokens.as_ref()?);
        let gui = self.common.keys[key].1;
        let at = At { version, epoch: NO_EPOCH };
        let seen = running.read(self.graph.partitions.of(gui), at, tokens[0], gui);
        Some(seen.map_err(|error| error.to_string()))
    }

    /// What the node that leads knows of a request.
    pub fn outcome(&self, id: RequestId) -> Option<Result<tidegraph_remote::Outcome, Error>> {
        let mut running = self.seats.iter().filter_map(|seat| seat.running.as_ref());
        let leader = running.find(|running| running.candidate.leading().is_some())?;
        Some(leader.commits.outcome(id, Version(0)))
    }
}

/// Runs a world to its end.
#[must_use]
pub fn run(config: &Config) -> Report {
    let begun = World::new(config.clone());
    let mut world = match begun {
        Ok(world) => world,
        Err(error) => return Report::impossible(config, error),
    };
    let ended = world.run_until(config.faults_ms * 1000).and_then(|()| world.come_to_rest());
    Report::new(world, ended.err())
}

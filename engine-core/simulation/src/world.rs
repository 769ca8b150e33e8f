//! A world: processes, a network between them, one time, one queue of events, all on one thread.
//!
//! Flow: the earliest event happens; whoever it happens to does something at once and leaves new events. Chance decides how
//! long everything takes. A process that is busy or paused gets its events when it is back, in their order.
//!
//! What must never happen here: anything that a second run of the seed would do otherwise. Nothing asks the machine's clock, nor
//! goes through a hash map in its own order, nor leaves anything to threads.

use crate::broker::{Broker, SimLog};
use crate::client::{Ask, Client, Common, Done, NO_EPOCH, Out, Said, What};
use crate::config::{Bug, Config, Profile};
use crate::invariants::{FLT_1, IDS_1, LOG_1, MAP_3, TXN_1, Violation};
use crate::map::{MapFaults, SimMap};
use crate::node::{Parts, RunningNode};
use crate::objects::{FaultyObjects, ObjectFaults};
use crate::process::{Process, SkewedClock, Time};
use crate::report::{Counts, Report};
use crate::trace::Trace;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_apl::At;
use tidegraph_cluster::{Candidate as Place, Change, Graph, MapStore, MemoryMap, NodeId, place};
use tidegraph_fleet::sequencing::CandidateConfig;
use tidegraph_log::Body;
use tidegraph_platform::{Objects, Random, SeededRandom};
use tidegraph_remote::{Commits, Error, RequestId};
use tidegraph_txn::SequencerConfig;
use tidegraph_types::{CommitRequest, PartitionCount, PartitionId, Token, Version};

pub(crate) const GRAPH: &str = "g";
/// Clocks that differ by no more than this keep leases apart.
const CALM_SKEW: u64 = 80;

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
    inbox: Vec<Ask>,
    speed: u64,
}

pub(crate) struct World {
    pub config: Config,
    pub profile: Profile,
    pub random: SeededRandom,
    pub time: Time,
    queue: BTreeMap<(u64, u64), Event>,
    events: u64,
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
    wakes: Vec<Option<u64>>,
    pub common: Arc<Common>,
    pub faulty: bool,
    pub done: Vec<Done>,
    pub counts: Counts,
    /// The newest version that a client was told.
    bookmark: Version,
    tokens: Option<Vec<Token>>,
    sids: BTreeMap<u64, u64>,
    leaders: BTreeMap<u64, String>,
}

type Step = Result<(), Violation>;

impl World {
    pub fn new(config: Config) -> Result<Self, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let random = SeededRandom::new(config.seed);
        let profile = Profile::draw(&config, &random);
        let trace = Arc::new(Trace::new(config.keep_lines));
        let graph = Graph {
            name: GRAPH.into(),
            partitions: PartitionCount::new(profile.partitions)?,
            shards: 1,
            hash_bits: 64,
            replication_factor: profile.replication,
        };
        let map = MemoryMap::default();
        map.create_graph(&graph).map_err(|error| text(&error))?;
        let broker = Broker::new(profile.on_disk, profile.appends_wrong, config.bug, random.next_u64())
            .map_err(|error| text(&error))?;
        let object_faults = ObjectFaults::default();
        let store = FaultyObjects::new(object_faults.clone(), random.next_u64());
        let objects = Objects::new(Arc::new(store), "simulated:/").map_err(|error| text(&error))?;
        let map_faults = Arc::new(MapFaults {
            away: AtomicBool::new(false),
            wrong: AtomicU64::new(profile.map_wrong),
            random: SeededRandom::new(random.next_u64()),
        });
        let hides_reads = config.bug == Some(Bug::HideReads);
        let common = Common::new(GRAPH, graph.partitions, profile.keys, profile.nodes);
        let common = Arc::new(Common { hides_reads, ..common });
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
            object_faults,
            lag: Arc::new(AtomicU64::new(0)),
            seats: Vec::new(),
            clients: Vec::new(),
            wakes: Vec::new(),
            common,
            faulty: true,
            done: Vec::new(),
            counts: Counts::default(),
            bookmark: Version(0),
            tokens: None,
            sids: BTreeMap::new(),
            leaders: BTreeMap::new(),
            profile,
            config,
        };
        world.settle_down()?;
        Ok(world)
    }

    /// Nodes start and get partitions; clients come.
    fn settle_down(&mut self) -> Result<(), String> {
        self.say("world", format_args!("{:?}", self.profile));
        // Nothing goes wrong before there is a fleet.
        let wrong = self.map_faults.wrong.swap(0, Ordering::Relaxed);
        for index in 0..self.profile.nodes {
            let name = format!("n{index}");
            let id = NodeId::new(&name).map_err(|error| error.to_string())?;
            let speed = 1000 - self.profile.skew + self.random.below(2 * self.profile.skew + 1);
            self.seats.push(Seat {
                name,
                id,
                life: 0,
                running: None,
                paused_until: 0,
                cut_off: false,
                inbox: Vec::new(),
                speed,
            });
            self.start(index)?;
        }
        let candidates: Vec<Place> =
            self.seats.iter().map(|seat| Place { node: seat.id.clone(), zone: "z".into() }).collect();
        let held = vec![vec![]; usize::from(self.profile.partitions)];
        let placed = place(self.graph.partitions, self.profile.replication, &candidates, &held);
        for (partition, nodes) in placed.iter().enumerate() {
            let partition = PartitionId(partition as u16);
            let add = |node: &NodeId| Change::AddReplica { partition, node: node.clone() };
            let changes: Vec<Change> = nodes.iter().map(add).collect();
            self.map.change(GRAPH, None, &changes).map_err(|error| error.to_string())?;
        }
        for index in 0..self.profile.clients {
            let process = self.process(&format!("c{index}"), 1000);
            let map = self.map_of(&process);
            let seed = self.random.next_u64();
            self.clients.push(Client::new(index, process, map, self.common.clone(), seed)?);
            self.wakes.push(None);
            self.wake(index, 300_000 + 50_000 * index as u64);
        }
        self.map_faults.wrong.store(wrong, Ordering::Relaxed);
        self.after(1_000_000, Event::Fault);
        Ok(())
    }

    fn process(&self, name: &str, speed: u64) -> Arc<Process> {
        let offset = Duration::from_millis(self.random.below(100_000));
        Process::new(name, SkewedClock::new(self.time.clone(), offset, speed), self.trace.clone())
    }

    fn map_of(&self, process: &Arc<Process>) -> Arc<SimMap> {
        let (inner, faults) = (self.map.clone(), self.map_faults.clone());
        Arc::new(SimMap { inner, process: process.clone(), faults })
    }

    pub fn say(&self, who: &str, what: std::fmt::Arguments<'_>) {
        self.trace.note(self.time.micros(), who, what);
    }

    /// Something happens after so many microseconds.
    pub fn after(&mut self, micros: u64, event: Event) {
        self.at(self.time.micros() + micros, event);
    }

    fn at(&mut self, micros: u64, event: Event) {
        self.events += 1;
        self.queue.insert((micros, self.events), event);
    }

    /// A node starts, if it does not run.
    pub fn start(&mut self, index: usize) -> Result<(), String> {
        let name = self.seats[index].name.clone();
        self.seats[index].life += 1;
        let (life, speed) = (self.seats[index].life, self.seats[index].speed);
        let process = self.process(&name, speed);
        let log = SimLog { broker: self.broker.clone(), process: process.clone(), lag: self.lag.clone() };
        let sequencer = SequencerConfig {
            remembered_keys: self.profile.remembered_keys,
            remembered_requests: self.profile.remembered_requests,
            sids_ahead: 16,
            ..SequencerConfig::default()
        };
        let parts = Parts {
            graph: self.graph.clone(),
            name,
            life,
            map: self.map_of(&process),
            process,
            log,
            objects: self.objects.clone(),
            candidate: CandidateConfig {
                sequencer,
                unsure: self.profile.unsure,
                ..CandidateConfig::default()
            },
            checkpoint_versions: self.profile.checkpoint_versions,
            seed: self.random.next_u64(),
        };
        let running = RunningNode::start(parts)?;
        self.seats[index].running = Some(running);
        self.say(&self.seats[index].name, format_args!("starts its life {life}"));
        self.after(self.random.below(5_000), Event::Feed(index, life));
        self.after(self.random.below(50_000), Event::Steward(index, life));
        self.after(self.random.below(300_000), Event::Beat(index, life));
        self.after(self.random.below(300_000), Event::Lead(index, life));
        self.after(self.random.below(1_000_000), Event::Care(index, life));
        Ok(())
    }

    /// A node's process is gone, with all that it had in memory.
    pub fn kill(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        seat.inbox.clear();
        seat.paused_until = 0;
        let Some(running) = seat.running.take() else { return };
        running.process.note(format_args!("is killed"));
        running.process.alive.store(false, Ordering::Relaxed);
        self.counts.kills += 1;
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

    /// A node answers the commits that wait.
    fn serve(&mut self, index: usize) -> Step {
        let asks = std::mem::take(&mut self.seats[index].inbox);
        let Some(running) = self.seats[index].running.as_ref().filter(|_| !asks.is_empty()) else {
            return Ok(());
        };
        let (commits, process) = (running.commits.clone(), running.process.clone());
        let requests: Vec<(RequestId, CommitRequest)> = asks
            .iter()
            .filter_map(|ask| match &ask.what {
                What::Commit { id, request } => Some((*id, request.clone())),
                _ => None,
            })
            .collect();
        let answers = match commits.commit_together(requests) {
            Ok(answers) => answers,
            Err(error) => asks.iter().map(|_| Err(error.clone())).collect(),
        };
        let busy = process.clock.busy_until() - self.time.micros();
        for (ask, answer) in asks.into_iter().zip(answers) {
            match &answer {
                Ok(version) => {
                    process.note(format_args!("commits {}.{} as {version}", ask.client, ask.number));
                }
                Err(error) => {
                    process.note(format_args!("does not commit {}.{}: {error}", ask.client, ask.number));
                }
            }
            self.answer(index, &ask, busy, Said::Committed(answer));
        }
        self.see_broker();
        Ok(())
    }

    /// A question arrives at a node.
    fn asked(&mut self, index: usize, ask: Ask) -> Step {
        let now = self.time.micros();
        let seat = &self.seats[index];
        let Some(running) = &seat.running else { return Ok(()) };
        let ready = seat.paused_until.max(running.process.clock.busy_until());
        if let What::Commit { .. } = ask.what {
            let life = seat.life;
            let inbox = &mut self.seats[index].inbox;
            inbox.push(ask);
            if inbox.len() > 1 {
                return Ok(());
            }
            let patience = self.random.below(self.profile.batch);
            self.at(ready + patience, Event::Serve(index, life));
            return Ok(());
        }
        if ready > now {
            self.at(ready, Event::Ask(index, ask));
            return Ok(());
        }
        let said = match &ask.what {
            What::Read { partition, at, list, gui } => {
                let seen = running.read(*partition, *at, *list, *gui).map_err(|error| error.to_string());
                running.process.note(format_args!("reads {gui:?} at {}: {seen:?}", at.version));
                Said::Seen(seen)
            }
            What::Newest => Said::Newest(running.commits.newest().map(|(version, _)| version)),
            What::Sids(count) => Said::Sids(running.commits.allocate_sids(*count)),
            What::Intern(names) => Said::Tokens(running.commits.intern(names)),
            What::Commit { .. } => return Ok(()),
        };
        let busy = running.process.clock.busy_until() - now;
        self.check_said(index, &said)?;
        self.answer(index, &ask, busy, said);
        self.see_broker();
        Ok(())
    }

    /// What a sequencer says must be so for everybody, whoever hears it.
    fn check_said(&mut self, index: usize, said: &Said) -> Step {
        match said {
            Said::Newest(Ok(version)) if self.profile.skew <= CALM_SKEW && *version < self.bookmark => {
                let what =
                    format!("{} says {version} is the newest, {} is", self.seats[index].name, self.bookmark);
                Err(Violation::new(TXN_1, what))
            }
            Said::Sids(Ok(range)) => {
                let before = self.sids.range(..range.end).next_back();
                if let Some((start, end)) = before.filter(|(_, end)| **end > range.start) {
                    let what = format!("SIDs {range:?} are handed out, and {start}..{end} were");
                    return Err(Violation::new(IDS_1, what));
                }
                self.sids.insert(range.start, range.end);
                Ok(())
            }
            Said::Tokens(Ok(tokens)) => match &self.tokens {
                Some(known) if known != tokens => {
                    Err(Violation::new(IDS_1, format!("names have tokens {tokens:?}, and had {known:?}")))
                }
                _ => {
                    self.tokens = Some(tokens.clone());
                    Ok(())
                }
            },
            _ => Ok(()),
        }
    }

    /// An answer comes to a client.
    fn answered(&mut self, client: usize, number: u64, said: Said) -> Step {
        let out = self.clients[client].hear(self.time.micros(), number, said);
        self.send(client, out)
    }

    /// What a client wants happens.
    fn send(&mut self, client: usize, out: Out) -> Step {
        let now = self.time.micros();
        for (node, ask) in out.asks {
            let most = if let What::Read { .. } = ask.what { 300_000 } else { 1_200_000 };
            self.at(now + most, Event::Overdue(client, ask.number));
            let cut_off = self.seats[node].cut_off;
            for delay in self.travel(cut_off) {
                self.after(delay, Event::Ask(node, ask.clone()));
            }
        }
        if let Some(wake) = out.wake {
            self.wake(client, wake);
        }
        if let Some(done) = out.done {
            self.finished(done)?;
        }
        Ok(())
    }

    /// A client goes on after so many microseconds, or earlier if it is to.
    fn wake(&mut self, client: usize, micros: u64) {
        let due = self.time.micros() + micros;
        if self.wakes[client].is_none_or(|known| known > due) {
            self.wakes[client] = Some(due);
            self.at(due, Event::Wake(client));
        }
    }

    fn answer(&mut self, node: usize, ask: &Ask, busy: u64, said: Said) {
        let cut_off = self.seats[node].cut_off;
        for delay in self.travel(cut_off) {
            self.after(busy + delay, Event::Answer(ask.client, ask.number, said.clone()));
        }
    }

    /// How long a message takes: once for each time that it comes.
    fn travel(&self, cut_off: bool) -> Vec<u64> {
        let usual = || 100 + self.random.below(2_000);
        if !self.faulty {
            return vec![usual()];
        }
        let fate = self.random.below(1000);
        let Profile { lost, twice, late, .. } = self.profile;
        if cut_off || fate < lost {
            vec![]
        } else if fate < lost + twice {
            vec![usual(), usual() + self.random.below(2_000_000)]
        } else if fate < lost + twice + late {
            vec![usual() + self.random.below(3_000_000)]
        } else {
            vec![usual()]
        }
    }

    /// A transaction is over: what was acknowledged must stand in the log.
    fn finished(&mut self, done: Done) -> Step {
        let Done { transaction, version, id, .. } = &done;
        let (client, ended) = (transaction.client, transaction.ended);
        self.counts.ended(ended);
        let who = &self.clients[client].process.name;
        self.say(who, format_args!("read at {}, {ended:?} as {version:?}: {transaction:?}", done.read_at));
        if let (Some(version), Some(id)) = (version, id) {
            let number = u128::from_le_bytes(id.0);
            let record = self.broker.record(*version);
            let stands = matches!(record.map(|record| record.body),
                Some(Body::Commit { request: Some(found), .. }) if found.0 == number);
            if !stands {
                let what = format!("{who} was told of version {version}, which is not its transaction");
                return Err(Violation::new(LOG_1, what));
            }
            self.bookmark = self.bookmark.max(*version);
        }
        self.done.push(done);
        Ok(())
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
        if let Some(due) = self.broker.next_late() {
            let due = due.max(self.time.micros() + 1);
            if !self.queue.values().any(|event| matches!(event, Event::Late)) {
                self.at(due, Event::Late);
            }
        }
    }

    fn broker_up(&mut self) -> Step {
        let restarted = self.broker.restart();
        self.say("log", format_args!("is up, at {}", self.broker.newest()));
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
        Some(leader.commits.outcome(id))
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

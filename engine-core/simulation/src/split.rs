//! Splits of the graph: operators run the command that raises the number of partitions, stop anywhere, and run it again.
//!
//! Roles: an [`Operator`] runs one command after the other, each as a process of its own, by the steps of the command
//! line ([`SplitRun`], [`Rebalance`]). The first operator splits the graph and repairs what keeps it from being split. The
//! second one, which some worlds have, runs commands beside it: the same split, a repair, or the abort of the split.
//!
//! Flow: a command takes the lease for rebalancing, in most worlds → it takes a step, and pauses → it ends, fails, or its
//! process dies between two calls of the map or within one → the operator runs the next command. Once all faults are
//! over, the first operator goes on until the graph is split and whole, or the split is taken back and the graph whole.
//!
//! What must never happen (MAP-4): readers turn to partitions of which one lacks a replica that serves.

use crate::config::Bug;
use crate::invariants::{Invariant, Violation};
use crate::items::ItemLog;
use crate::model::Model;
use crate::process::Process;
use crate::world::{Event, GRAPH, Step, World};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_cluster::{
    Acquired, Change, Error, Goal, Graph, Lease, MapStore, PartitionMap, Rebalance, SplitRun, SplitStage,
    takeover_wait,
};
use tidegraph_log::Record;
use tidegraph_platform::{Clock, Random, SeededRandom};
use tidegraph_types::{Layout, PartitionCount};

/// How long a command may rely on its lease. Shorter than that of the command line, as worlds are.
const LEASE: Duration = Duration::from_secs(1);
/// Largest numbers of replicas that are restored at the same time: in the graph, and on one node.
const AT_ONCE: (usize, usize) = (16, 4);

/// Settings of the splits of a world, drawn from its seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitProfile {
    /// Number of partitions into which the graph is split.
    pub into: u16,
    /// Whether a second operator runs commands beside the first.
    pub beside: bool,
    /// Whether commands take the lease. Nothing depends on it but work done twice.
    pub leases: bool,
    /// Whether the second operator may take a split back.
    pub may_abort: bool,
    /// Whether the first operator takes the split back at the end, if readers have not turned.
    pub ends_aborted: bool,
    /// Longest time for which nodes keep the former partitions.
    pub readers_ms: u64,
}

/// Chosen so that the other settings of a world do not depend on splits.
const APART: u64 = 0x5b11_7a9e;

impl SplitProfile {
    /// Draws the settings. Two worlds in nine have splits, none of those of seeds that found an earlier defect.
    pub fn draw(seed: u64, partitions: u16) -> Option<Self> {
        let random = SeededRandom::new(seed ^ APART);
        matches!(seed % 9, 1 | 5).then(|| Self {
            into: partitions * if partitions <= 4 && random.one_in(3) { 4 } else { 2 },
            beside: random.one_in(2),
            leases: !random.one_in(3),
            may_abort: random.one_in(3),
            ends_aborted: random.one_in(6),
            readers_ms: [0, 300, 2_000][random.below(3) as usize],
        })
    }
}

/// A command of an operator.
#[derive(Clone, Debug)]
enum Command {
    Split(SplitRun),
    /// Takes the split back.
    Abort,
    /// Restores missing replicas.
    Heal,
}

/// A running command.
struct RunningCommand {
    process: Arc<Process>,
    rebalance: Rebalance,
    holder: String,
    command: Command,
    /// Whether it has the lease, or needs none.
    leads: bool,
    /// The lease of another command, and since when this one has seen it.
    seen: Option<(Lease, Duration)>,
}

/// A person or a script that runs commands.
#[derive(Default)]
pub(crate) struct Operator {
    life: u64,
    running: Option<RunningCommand>,
    /// Whether the last command was a split that was refused, so that a repair comes first.
    was_refused: bool,
}

/// The operators of a world.
pub(crate) struct Operators {
    profile: SplitProfile,
    into: PartitionCount,
    random: SeededRandom,
    all: Vec<Operator>,
    /// The partitions that readers asked when it was last checked.
    asked: PartitionCount,
    /// Whether readers turn at once: the planted defect.
    turns_early: bool,
}

impl Operators {
    /// # Errors
    /// A message if the profile has a number of partitions that cannot be.
    pub fn new(profile: SplitProfile, graph: &Graph, seed: u64, bug: Option<Bug>) -> Result<Self, String> {
        Ok(Self {
            profile,
            into: PartitionCount::new(profile.into)?,
            random: SeededRandom::new(seed ^ APART.rotate_left(7)),
            all: (0..=usize::from(profile.beside)).map(|_| Operator::default()).collect(),
            asked: graph.partitions,
            turns_early: bug == Some(Bug::TurnEarly),
        })
    }

    /// Returns a run of the split. Draws how long it leaves the former partitions to readers.
    fn split(&self) -> Command {
        let readers = Duration::from_millis(self.random.below(self.profile.readers_ms + 1));
        Command::Split(SplitRun::new(self.into, AT_ONCE.0, AT_ONCE.1, readers))
    }

    /// Returns the next command of an operator; `None`: there is nothing left to do.
    fn next(&self, index: usize, map: &PartitionMap, faulty: bool) -> Option<Command> {
        let first = if index == 0 { self.next_of_first(map.graph(), is_whole(map)) } else { None };
        // Once faults are over, the first operator does what is left, and the other one nothing.
        if first.is_some() || !faulty {
            return first;
        }
        // A split that is done is asked for again.
        Some(match self.random.below(4) {
            0 | 1 => self.split(),
            2 if self.profile.may_abort => Command::Abort,
            _ => Command::Heal,
        })
    }

    /// Returns what the first operator has to do for the split; `None`: there is nothing left to do.
    fn next_of_first(&self, graph: &Graph, is_whole: bool) -> Option<Command> {
        let is_split = graph.partitions == self.into;
        match (graph.splits.into, graph.splits.from) {
            (Some(_), _) if self.profile.ends_aborted => Some(Command::Abort),
            (Some(_), _) | (_, Some(_)) => Some(self.split()),
            _ if self.all[0].was_refused => Some(Command::Heal),
            _ if !is_split && !self.profile.ends_aborted => Some(self.split()),
            _ => (!is_whole).then_some(Command::Heal),
        }
    }
}

impl RunningCommand {
    /// Takes the lease, as the command line does. Returns whether the command has it.
    fn acquire(&mut self, now: Duration) -> Result<bool, Error> {
        let other = |lease: &Lease| Error::Refused {
            change: "rebalance".into(),
            reason: format!("{} is rebalancing this graph", lease.holder),
        };
        let theirs = match self.rebalance.acquire(&self.holder, LEASE, None)? {
            Acquired::Ours(_) => return Ok(true),
            Acquired::Theirs(lease) => lease,
        };
        match &self.seen {
            None => self.seen = Some((theirs, now)),
            Some((before, _)) if *before != theirs => return Err(other(&theirs)),
            Some((before, since)) if now.saturating_sub(*since) > takeover_wait(before) => {
                return match self.rebalance.acquire(&self.holder, LEASE, Some(before))? {
                    Acquired::Ours(_) => Ok(true),
                    Acquired::Theirs(lease) => Err(other(&lease)),
                };
            }
            Some(_) => {}
        }
        Ok(false)
    }

    /// Takes one step. Returns whether the command is over.
    fn step(&mut self, leases: bool) -> Result<bool, Error> {
        let now = self.process.clock.now();
        if !self.leads {
            self.leads = self.acquire(now)?;
            return Ok(false);
        }
        if leases {
            self.rebalance.renew(&self.holder)?;
        }
        match &mut self.command {
            Command::Split(run) => {
                let progress = run.step(&self.rebalance, now)?;
                self.process.note(format_args!("{progress:?}"));
                Ok(progress.stage == SplitStage::Done)
            }
            Command::Abort => {
                let aborted = self.rebalance.abort_split()?;
                self.process.note(format_args!("the split is taken back: {aborted}"));
                Ok(true)
            }
            Command::Heal => {
                let plan = self.rebalance.plan(Goal::Repair)?;
                let next: Vec<_> = plan.next(AT_ONCE.0, AT_ONCE.1).into_iter().cloned().collect();
                self.rebalance.advance(&next)?;
                Ok(plan.is_empty() && plan.coming.is_empty())
            }
        }
    }
}

/// Returns whether each partition that readers ask has as many replicas that answer as it should.
fn is_whole(map: &PartitionMap) -> bool {
    let wanted = usize::from(map.graph().replication_factor);
    map.partitions().all(|(partition, _)| map.serving(partition).len() >= wanted)
}

impl World {
    /// The partitions that readers ask.
    pub fn layout(&self) -> Layout {
        self.map.load(GRAPH, None).map_or_else(|_| self.graph.layout(), |map| map.graph().layout())
    }

    /// Queues the first command of each operator.
    pub fn begin_splits(&mut self) {
        let Some(operators) = &self.operators else { return };
        let begins: Vec<u64> = operators.all.iter().map(|_| operators.random.below(9_000_000)).collect();
        for (index, begin) in begins.into_iter().enumerate() {
            self.after(1_000_000 + begin, Event::StartCommand(index));
        }
    }

    /// Starts the next command of an operator.
    pub fn start_command(&mut self, index: usize) -> Step {
        let map = self.map.load(GRAPH, None).map_err(|error| self.is_lost(&error))?;
        let Some(operators) = &self.operators else { return Ok(()) };
        let random = &operators.random;
        if operators.all[index].running.is_some() {
            return Ok(());
        }
        let Some(command) = operators.next(index, &map, self.faulty) else { return Ok(()) };
        let life = operators.all[index].life + 1;
        let process = self.process(&format!("o{index}-{life}"), 1000);
        if self.faulty && random.one_in(2) {
            process.map_calls.store(1 + random.below(60), Ordering::Relaxed);
        }
        process.note(format_args!("begins {command:?}"));
        let running = RunningCommand {
            rebalance: Rebalance::new(self.map_of(&process), GRAPH),
            holder: process.name.clone(),
            process,
            command,
            leads: !operators.profile.leases,
            seen: None,
        };
        if let Some(operators) = &mut self.operators {
            let operator = &mut operators.all[index];
            (operator.life, operator.running) = (life, Some(running));
        }
        self.after(0, Event::StepCommand(index, life));
        Ok(())
    }

    /// Takes the next step of a command.
    pub fn step_command(&mut self, index: usize, life: u64) -> Step {
        let Some(operators) = &mut self.operators else { return Ok(()) };
        let (leases, turns_early) = (operators.profile.leases, operators.turns_early);
        let operator = &mut operators.all[index];
        let Some(running) = operator.running.as_mut().filter(|_| operator.life == life) else {
            return Ok(());
        };
        let stepped = running.step(leases);
        let process = running.process.clone();
        let splits = matches!(running.command, Command::Split(_));
        if turns_early {
            let into = operators.into;
            // Refused before the split has begun.
            let turned = self.map.change(GRAPH, None, &[Change::CompleteSplit { into }]);
            process.note(format_args!("readers turn too early: {turned:?}"));
        }
        self.check_turn()?;
        self.took_step(index, stepped, leases, splits);
        Ok(())
    }

    /// Queues what follows a step of a command: its next step, or the next command of its operator.
    fn took_step(&mut self, index: usize, stepped: Result<bool, Error>, leases: bool, splits: bool) {
        let Some(operators) = &mut self.operators else { return };
        let pause = operators.random.below(400_000);
        let operator = &mut operators.all[index];
        let life = operator.life;
        let Some(running) = operator.running.take() else { return };
        let process = running.process.clone();
        let passes = |error: &Error| error.will_pass() || matches!(error, Error::Stale { .. });
        let next = match stepped {
            _ if !process.is_alive() => {
                self.counts.commands_killed += 1;
                500_000 + 5 * pause
            }
            Ok(true) => {
                operator.was_refused = false;
                if leases {
                    // If the answer is lost, the lease ends by itself.
                    let released = running.rebalance.release(&running.holder);
                    process.note(format_args!("is over; gives the lease back: {released:?}"));
                }
                self.counts.commands += 1;
                100_000 + 5 * pause
            }
            Ok(false) => {
                operator.running = Some(running);
                return self.after(100_000 + pause, Event::StepCommand(index, life));
            }
            Err(error) if passes(&error) => {
                process.note(format_args!("tries again: {error}"));
                operator.running = Some(running);
                return self.after(100_000 + pause, Event::StepCommand(index, life));
            }
            Err(error) => {
                process.note(format_args!("fails: {error}"));
                operator.was_refused = splits && matches!(error, Error::Refused { .. });
                100_000 + pause
            }
        };
        process.alive.store(false, Ordering::Relaxed);
        self.after(next, Event::StartCommand(index));
    }

    /// MAP-4: at the change that makes readers ask other partitions, each of these has its replicas.
    fn check_turn(&mut self) -> Step {
        let map = self.map.load(GRAPH, None).map_err(|error| self.is_lost(&error))?;
        self.broker.set_splitting(map.graph().splits.into.is_some());
        let Some(operators) = &mut self.operators else { return Ok(()) };
        let now = map.graph().partitions;
        let before = std::mem::replace(&mut operators.asked, now);
        if before == now {
            return Ok(());
        }
        self.counts.splits += 1;
        if is_whole(&map) {
            return Ok(());
        }
        let wanted = map.graph().replication_factor;
        let short =
            map.partitions().find(|(partition, _)| map.serving(*partition).len() < usize::from(wanted));
        let what =
            format!("readers turn to {} partitions, and {short:?} has not {wanted} replicas", now.get());
        Err(Violation::new(Invariant::Map4, what))
    }

    fn is_lost(&self, error: &Error) -> Violation {
        Violation::new(Invariant::Flt4, format!("the map of the world does not answer: {error}"))
    }

    /// Lets the commands go on without faults, to the end of the split.
    pub fn finish_splits(&mut self) {
        let Some(operators) = &self.operators else { return };
        for operator in &operators.all {
            if let Some(running) = &operator.running {
                running.process.map_calls.store(u64::MAX, Ordering::Relaxed);
            }
        }
        self.after(0, Event::StartCommand(0));
    }

    /// Returns why the split is not over; `None` if the graph has the new number of partitions or the old one, whole.
    pub fn unrest_of_splits(&self, map: &PartitionMap) -> Option<String> {
        let operators = self.operators.as_ref()?;
        let graph = map.graph();
        if operators.all.iter().any(|operator| operator.running.is_some()) {
            return Some("a command runs".into());
        }
        if graph.splits.into.is_some() || graph.splits.from.is_some() {
            return Some(format!("the split is unfinished: {graph:?}"));
        }
        let is_old = operators.profile.ends_aborted && graph.partitions == self.graph.partitions;
        if graph.partitions != operators.into && !is_old {
            return Some(format!("the graph has {} partitions", graph.partitions.get()));
        }
        let layout = graph.layout();
        let of_nodes = self.slots.iter().filter_map(|slot| slot.running.as_ref());
        let of_nodes = of_nodes.flat_map(|running| running.node.replicas()).map(|(held, ..)| held);
        let mut held = map.held().map(|(held, _)| held).chain(of_nodes);
        if let Some(other) = held.find(|held| layout.number(*held).is_none()) {
            return Some(format!("nodes hold partition {other} of another number of partitions"));
        }
        (!is_whole(map)).then(|| "a partition lacks a replica".to_owned())
    }

    /// FLT-3: each replica counts the vertices that it should have, and their outgoing edges.
    pub fn check_counts(&self, history: &[Record], items: &ItemLog) -> Step {
        let mut model = Model::default();
        history.iter().for_each(|record| model.apply(record));
        let layout = self.layout();
        for slot in &self.slots {
            let Some(running) = &slot.running else { continue };
            let status = running.node.status();
            for replica in status["replicas"].as_array().into_iter().flatten() {
                let Some(partition) = replica["partition"].as_u64() else { continue };
                let here = |gui| u64::from(layout.of(gui).0) == partition;
                let vertices = model.vertices().chain(items.vertices()).filter(|gui| here(*gui)).count();
                let edges = model.edges().chain(items.edges()).filter(|edge| here(edge.source)).count();
                let found = (replica["vertices"].as_u64(), replica["edges"].as_u64());
                if found != (Some(vertices as u64), Some(edges as u64)) {
                    let what = format!(
                        "partition {partition} on {} counts {found:?}, not {vertices} vertices and {edges} edges",
                        slot.name
                    );
                    return Err(Violation::new(Invariant::Flt3, what));
                }
            }
        }
        Ok(())
    }
}

//! Real workers in the world: their turns, and the messages between them and the nodes.

use crate::checker::Ended;
use crate::client::NodeReply;
use crate::invariants::{Invariant, Violation};
use crate::loader::LoadFolder;
use crate::network::without_changes;
use crate::run_token::Yield;
use crate::start::SetupError;
use crate::statement::Statement;
use crate::statements::{FinishedStatement, StatementEnd};
use crate::transaction::TransactionGenerator;
use crate::worker::{self, Call, EndedStatement, SimWorker, Turn, Wish};
use crate::world::{Event, Step, World};
use bytes::Bytes;
use std::sync::atomic::Ordering;
use tidegraph_platform::Random;
use tidegraph_remote::{Error, answer_once};
use tidegraph_types::{Str, Token, Version};
use tidegraph_wire::{Message, proto};

/// Number of the first worker among the clients. Each life of a worker has its own number.
const FIRST: usize = 1000;
/// Numbers that are reserved for the lives of one worker.
const LIVES: usize = 100;
/// Pause before a node checks again whether it has reached a version, in microseconds, and the limit of checks.
const EARLY: (u64, u32) = (2_000, 50);
/// Pause before a node checks again whether a load has reported, in microseconds.
pub(crate) const REPORT: u64 = 1_000;
/// Maximum number of transactions that a worker may try until one succeeds, after all faults are over.
const TRIES: usize = 8;

/// A worker, across the lives of its process.
pub(crate) struct WorkerSlot {
    pub life: u64,
    pub running: Option<SimWorker>,
    pub paused_until: u64,
}

/// Returns whether a client's number belongs to a worker.
pub(crate) fn is_worker(client: usize) -> bool {
    client >= FIRST
}

/// Returns the name of a client or worker by its number.
pub(crate) fn name_of(client: usize) -> String {
    match client.checked_sub(FIRST) {
        Some(worker) => format!("w{}-{}", worker / LIVES, worker % LIVES),
        None => format!("c{client}"),
    }
}

impl World {
    /// Starts a worker, if it does not run.
    pub fn start_worker(&mut self, index: usize) -> Result<(), SetupError> {
        if self.workers[index].running.is_some() {
            return Ok(());
        }
        self.workers[index].life += 1;
        let life = self.workers[index].life;
        let number = FIRST + index * LIVES + life as usize % LIVES;
        let process = self.process(&name_of(number), 1000);
        let generator = TransactionGenerator::new(number, self.common.clone(), self.random.next_u64());
        let parts = worker::Parts {
            index,
            process: process.clone(),
            map: self.map_of(&process),
            lives: self.lives.clone(),
            generator,
            config: worker::config(),
            objects: self.objects_of(&process)?,
            loads: self.folder.as_ref().map(|folder| LoadFolder {
                folder: folder.path().to_owned(),
                submitted: self.loads.clone(),
                stepped: self.stepped.clone(),
            }),
            statements: self.profile.statements,
            panics: self.profile.panics,
            seed: self.random.next_u64(),
        };
        let running = SimWorker::start(parts, life)?;
        let turn = running.turn;
        self.workers[index].running = Some(running);
        self.after(self.random.below(50_000), Event::RunWorker(index, life, turn));
        Ok(())
    }

    /// Runs a worker, if it is still in the sleep of that turn.
    pub fn run_worker(&mut self, index: usize, life: u64, turn: u64) -> Step {
        let slot = &self.workers[index];
        let Some(running) =
            slot.running.as_ref().filter(|running| (running.life, running.turn) == (life, turn))
        else {
            return Ok(());
        };
        if slot.paused_until > self.time.micros() {
            self.at(slot.paused_until, Event::RunWorker(index, life, turn));
            return Ok(());
        }
        if running.rests && !self.faulty {
            return Ok(());
        }
        self.worker_turn(index)
    }

    pub fn worker_turn(&mut self, index: usize) -> Step {
        let Some(running) = &mut self.workers[index].running else { return Ok(()) };
        let Turn { sent, done, statement, load, yielded, wrong } = running.go_on(index, self.bookmark);
        let (life, turn, name) = (running.life, running.turn, running.process.name.clone());
        let runs = running.statement();
        for call in sent {
            let delays = self.travel(self.slots[call.node].cut_off);
            if delays.is_empty() {
                self.breaks(&call);
            }
            let stall = self.draw_stall(&call, runs.as_ref());
            for (nth, delay) in delays.into_iter().enumerate() {
                self.after(stall + delay, Event::Call(Call { copy: nth > 0, ..call.clone() }));
            }
        }
        if let Some(wrong) = wrong {
            return Err(Violation::new(Invariant::Txn1, format!("{name}: {wrong}")));
        }
        if let Some(done) = done {
            self.finished(done)?;
        }
        if let Some(statement) = statement {
            self.ended_statement(&name, statement)?;
        }
        if let Some(load) = load {
            self.ended_load(&name, load)?;
        }
        match yielded {
            Yield::Sleep { micros, .. } => self.after(micros.max(1), Event::RunWorker(index, life, turn)),
            Yield::Idle => self.after(500 + self.random.below(60_000), Event::RunWorker(index, life, turn)),
            Yield::Exit(panic) => {
                let what = format!("{name} ended by itself: {}", panic.unwrap_or_default());
                return Err(Violation::new(Invariant::Flt4, what));
            }
        }
        Ok(())
    }

    /// Delivers a request of a worker to a node.
    pub fn called(&mut self, mut call: Call) -> Step {
        let now = self.time.micros();
        let slot = &self.slots[call.node];
        let Some(running) = slot.running.as_ref().filter(|_| slot.life == call.node_life) else {
            self.breaks(&call);
            return Ok(());
        };
        let ready = slot.paused_until.max(slot.busy_until).max(running.process.clock.busy_until());
        if ready > now {
            self.at(ready, Event::Call(call));
            return Ok(());
        }
        if self.waits_for_report(&call) {
            self.after(REPORT, Event::Call(call));
            return Ok(());
        }
        let clock = running.process.clock.clone();
        let answered = answer_once(&running.services, &call.bytes, &*clock, call.early >= EARLY.1);
        let busy = clock.busy_until() - now;
        let (node, cut_off) = (call.node, slot.cut_off);
        let reply = match answered {
            Ok(Some(reply)) => reply,
            Ok(None) => {
                call.early += 1;
                self.after(EARLY.0, Event::Call(call));
                return Ok(());
            }
            Err(error) => {
                return Err(Violation::new(
                    Invariant::Txn1,
                    format!("a worker sent an invalid call: {error}"),
                ));
            }
        };
        if let Some(outcome) = commit_outcome(&call.bytes, &reply) {
            let (worker, node) = (call.worker, &self.slots[node].name);
            self.say(node, format_args!("answers the commit {} of worker {worker}: {outcome}", call.number));
        }
        if let Some(said) = said(&reply) {
            self.check_said(node, &said)?;
        }
        self.check_names(names_in(&call.bytes, &reply))?;
        let delays = self.travel(cut_off);
        if delays.is_empty() {
            self.breaks(&call);
        }
        for delay in delays.into_iter().filter(|_| !call.copy) {
            let content = Ok(Bytes::from(reply.clone()));
            self.after(busy + delay, Event::Reply(call.worker, call.life, call.number, content));
        }
        self.see_broker();
        self.draw_load_fault(&call)
    }

    /// Breaks the connection of a request whose message is lost. The worker usually learns of it soon.
    fn breaks(&mut self, call: &Call) {
        if call.copy || self.random.one_in(8) {
            return;
        }
        let lost = Error::Lost { peer: self.slots[call.node].name.clone(), reason: "it broke".into() };
        let delay = self.random.below(200_000);
        self.after(delay, Event::Reply(call.worker, call.life, call.number, Err(lost)));
    }

    /// Delivers an answer to a worker.
    pub fn replied(&mut self, index: usize, life: u64, number: u64, content: Result<Bytes, Error>) {
        let Some(running) = self.workers[index].running.as_ref().filter(|running| running.life == life)
        else {
            return;
        };
        let content = if self.common.hides_changes { content.map(without_changes) } else { content };
        if running.hear(number, content) {
            let turn = running.turn;
            self.after(0, Event::RunWorker(index, life, turn));
        }
    }

    /// Kills the process of a worker.
    pub fn kill_worker(&mut self, index: usize) -> Step {
        let Some(mut running) = self.workers[index].running.take() else { return Ok(()) };
        running.process.note(format_args!("is killed"));
        self.workers[index].paused_until = 0;
        let turn = running.kill(index);
        self.counts.kills += 1;
        if let Yield::Exit(Some(panic)) = turn.yielded {
            return Err(Violation::new(
                Invariant::Flt4,
                format!("{} panicked: {panic}", running.process.name),
            ));
        }
        if let Some(statement) = turn.statement {
            let name = running.process.name.clone();
            self.ended_statement(&name, statement)?;
        }
        turn.done.map_or(Ok(()), |done| self.finished(done))
    }

    fn ended_statement(&mut self, name: &str, (statement, since, end): EndedStatement) -> Step {
        let (who, until) = (name.to_owned(), self.broker.newest());
        self.finished_statement(FinishedStatement { who, statement, since, until, end })
    }

    /// Draws a fault of a worker, and queues the next one.
    pub fn draw_worker_fault(&mut self) -> Step {
        if !self.faulty {
            return Ok(());
        }
        let wait = self.profile.fault_ms * 2_000;
        self.after(wait / 2 + self.random.below(wait), Event::WorkerFault);
        let index = self.random.below(self.workers.len() as u64) as usize;
        let for_long = 100_000 + self.random.below(2_000_000);
        match self.random.below(4) {
            0 => {
                self.kill_worker(index)?;
                self.after(for_long, Event::StartWorker(index));
            }
            1 => {
                self.workers[index].paused_until = self.time.micros() + for_long;
                self.counts.pauses += 1;
            }
            _ => {
                let Some(running) = &self.workers[index].running else { return Ok(()) };
                running.process.note(format_args!("cannot reach the map"));
                running.process.no_map.store(true, Ordering::Relaxed);
                self.counts.cuts += 1;
                self.after(for_long, Event::WorkerHeal(index));
            }
        }
        Ok(())
    }

    pub fn heal_worker(&mut self, index: usize) {
        let slot = &mut self.workers[index];
        if let Some(running) = &slot.running {
            running.process.no_map.store(false, Ordering::Relaxed);
        }
        if !self.faulty {
            slot.paused_until = 0;
        }
    }

    /// FLT-4: after all faults are over, each worker completes a transaction.
    pub fn workers_go_on(&mut self) -> Step {
        for index in 0..self.workers.len() {
            let mut tries = 0;
            while !self.gets_through(index)? {
                tries += 1;
                if tries >= TRIES {
                    let what = format!("worker {index} gets no transaction through, though no fault is left");
                    return Err(Violation::new(Invariant::Flt4, what));
                }
            }
            if self.profile.statements {
                self.reads_all(index)?;
            }
        }
        Ok(())
    }

    /// A worker reads all items, also through the indexes.
    fn reads_all(&mut self, index: usize) -> Step {
        for read in Statement::reads() {
            for tries in 1.. {
                let before = self.statements.len();
                if let Some(running) = &self.workers[index].running {
                    running.wish(Wish::Statement(read.clone()));
                }
                self.worker_turn(index)?;
                self.wait_for_rest()?;
                let answered = |done: &FinishedStatement| matches!(done.end, StatementEnd::Answered { .. });
                if self.statements[before..].iter().any(answered) {
                    break;
                }
                if tries >= TRIES {
                    let what = format!("worker {index} gets no answer to {read:?}, though no fault is left");
                    return Err(Violation::new(Invariant::Flt4, what));
                }
            }
        }
        Ok(())
    }

    fn gets_through(&mut self, index: usize) -> Result<bool, Violation> {
        let (before, statements) = (self.done.len(), self.statements.len());
        if let Some(running) = self.workers[index].running.as_ref().filter(|_| self.profile.loads) {
            running.wish(Wish::AnyStatement);
        }
        self.worker_turn(index)?;
        self.wait_for_rest()?;
        let answered = |done: &FinishedStatement| matches!(done.end, StatementEnd::Answered { .. });
        Ok(self.done[before..].iter().any(|done| done.transaction.ended == Ended::Acknowledged)
            || self.statements[statements..].iter().any(answered))
    }
}

/// Returns what a reply says of a commit, if the call is one.
fn commit_outcome(call: &[u8], reply: &[u8]) -> Option<String> {
    let Some(proto::call::Kind::Commit(_)) = proto::Call::decode(call).ok()?.kind else { return None };
    Some(format!("{:?}", proto::Reply::decode(reply).ok()?.kind?))
}

/// Returns the part of a reply that is checked, if any.
fn said(reply: &[u8]) -> Option<NodeReply> {
    use proto::reply::Kind;
    match proto::Reply::decode(reply).ok()?.kind? {
        Kind::Newest(newest) => Some(NodeReply::Newest(Ok(Version(newest.version)))),
        Kind::Allocate(range) => Some(NodeReply::Sids(Ok(range.first..range.first + range.count))),
        _ => None,
    }
}

/// Returns the names that a sequencer told, with their tokens.
fn names_in(call: &[u8], reply: &[u8]) -> Vec<(Token, Str)> {
    let asked = proto::Call::decode(call).ok().and_then(|call| call.kind);
    let told = proto::Reply::decode(reply).ok().and_then(|reply| reply.kind);
    let (tokens, names) = match (asked, told) {
        (Some(proto::call::Kind::Intern(call)), Some(proto::reply::Kind::Intern(reply))) => {
            (reply.tokens, call.names)
        }
        (_, Some(proto::reply::Kind::Tokens(reply))) => (reply.tokens, reply.names),
        _ => return vec![],
    };
    tokens.into_iter().map(Token).zip(names.into_iter().map(Str::from)).collect()
}

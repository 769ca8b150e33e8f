//! The end of a world: heals all faults, lets the fleet come to rest, and compares everything with the log.

use crate::checker::{self, Anomaly, Transaction};
use crate::client::NO_EPOCH;
use crate::eras;
use crate::invariants::{Invariant, Violation};
use crate::items::ItemLog;
use crate::model::Model;
use crate::transaction::FinishedTransaction;
use crate::workers::name_of;
use crate::world::{Event, World};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use tidegraph_apl::At;
use tidegraph_log::{Body, Record};
use tidegraph_platform::Random;
use tidegraph_remote::{CommitOutcome, Commits, RequestId};
use tidegraph_types::{Gui, Version};

/// Time limit for the fleet to come to rest, in microseconds.
const PATIENCE: u64 = 60_000_000;

type Step = Result<(), Violation>;

impl World {
    /// Heals all faults, waits until the fleet is at rest, and compares replicas, reads and answers with the log.
    pub fn come_to_rest(&mut self) -> Step {
        self.heal_all();
        self.finish_splits();
        self.do_without_one()?;
        self.wait_for_rest()?;
        self.workers_go_on()?;
        self.loads_go_on()?;
        let unknown: Vec<FinishedTransaction> =
            self.done.iter().filter(|done| done.version.is_none() && done.id.is_some()).cloned().collect();
        let outcomes: Vec<_> =
            unknown.iter().filter_map(|done| Some((done.id?, self.outcome(done.id?)?))).collect();
        self.wait_for_rest()?;
        self.broker.check_shards().map_err(|what| Violation::new(Invariant::Log4, what))?;
        let history = self.broker.history();
        let requests = check_log(&history)?;
        for (id, outcome) in outcomes {
            let stands = requests.get(&id.0);
            let right = match outcome {
                Ok(CommitOutcome::Committed(version)) => stands == Some(&version),
                Ok(CommitOutcome::Refused) => stands.is_none(),
                Ok(CommitOutcome::Unknown) | Err(_) => true,
                // No client of the simulation names its requests by keys.
                Ok(CommitOutcome::OtherRequest(_)) => false,
            };
            if !right {
                let what =
                    format!("the outcome of a request is {outcome:?}, and the log has it at {stands:?}");
                return Err(Violation::new(Invariant::Txn4, what));
            }
        }
        self.check_reads(&history)?;
        self.check_replicas_equal(&history)?;
        let items = self.check_statements(&history)?;
        self.check_items_equal(&items)?;
        self.check_counts(&history, &items)?;
        // All nodes lose their memory, and recover from checkpoints and the log.
        self.say("world", format_args!("all nodes start again"));
        for node in 0..self.slots.len() {
            self.kill(node);
            self.after(0, Event::Start(node));
        }
        self.run_until(self.time.micros() + 1)?;
        self.wait_for_rest()?;
        let history = self.broker.history();
        let mut lists = self.check_replicas_equal(&history)?;
        self.check_items_equal(&items)?;
        self.check_counts(&history, &items)?;
        let mut transactions: Vec<Transaction> =
            self.done.iter().map(|done| done.transaction.clone()).collect();
        if self.common.resets {
            let keys: Vec<Gui> = self.common.keys[..self.common.lists].iter().map(|(_, gui)| *gui).collect();
            let rewritten = eras::rewrite(&history, &self.done, &requests, &keys);
            (transactions, lists) = (rewritten.transactions, rewritten.lists);
            self.counts.resets = rewritten.resets;
        }
        match checker::check(&transactions, &lists) {
            Some(anomaly @ (Anomaly::Lost(..) | Anomaly::Half(_))) => {
                Err(Violation::new(Invariant::Flt2, anomaly.to_string()))
            }
            Some(anomaly) => Err(Violation::new(Invariant::Txn2, anomaly.to_string())),
            None => Ok(()),
        }
    }

    /// In half of the worlds, one node still cannot reach the log. The lease is stolen, and that node
    /// may be the first to take it afterwards. Another node must still become the leader (FLT-4).
    fn do_without_one(&mut self) -> Step {
        if self.slots.len() < 2 || self.random.one_in(2) {
            return Ok(());
        }
        self.run_until(self.time.micros() + 500_000)?;
        let node = self.random.below(self.slots.len() as u64) as usize;
        let Some(process) = self.slots[node].running.as_ref().map(|running| running.process.clone()) else {
            return Ok(());
        };
        process.note(format_args!("cannot reach the log"));
        process.no_log.store(true, Ordering::Relaxed);
        self.steal();
        let end = self.time.micros() + PATIENCE / 3;
        while !self.some_leader_writes() {
            if self.time.micros() > end {
                let what = format!("no process writes, and only {} cannot reach the log", process.name);
                return Err(Violation::new(Invariant::Flt4, what));
            }
            self.run_until(self.time.micros() + 500_000)?;
        }
        process.no_log.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether any leader can write to the log, which it must do to answer for the outcome of a request.
    fn some_leader_writes(&self) -> bool {
        let free = self.slots.iter().enumerate().filter(|(node, _)| !self.awaits_report(*node));
        let running = free.filter_map(|(_, slot)| slot.running.as_ref());
        let mut leaders = running.filter(|running| running.candidate.leadership().is_some());
        leaders.any(|leader| leader.commits.outcome(RequestId(u128::MAX), Version(0)).is_ok())
    }

    /// FLT-4: waits until the fleet is at rest.
    pub fn wait_for_rest(&mut self) -> Step {
        let end = self.time.micros() + PATIENCE;
        while let Some(unrest) = self.unrest() {
            if self.time.micros() > end {
                return Err(Violation::new(Invariant::Flt4, unrest));
            }
            self.run_until(self.time.micros() + 100_000)?;
        }
        Ok(())
    }

    /// STO-1: every read must have seen the state of the log at its version.
    fn check_reads(&self, history: &[Record]) -> Step {
        let mut reads: Vec<&FinishedTransaction> = self.done.iter().collect();
        reads.sort_by_key(|done| done.read_at);
        let mut model = Model::default();
        let mut rest = history.iter().peekable();
        for done in reads {
            while let Some(record) = rest.next_if(|record| record.version <= done.read_at) {
                model.apply(record);
            }
            for (gui, seen) in &done.seen {
                let expected = model.see(*gui);
                if *seen != expected {
                    let who = name_of(done.transaction.client);
                    let what = format!(
                        "{who} read {gui:?} at {} as {seen:?}, the log says {expected:?}",
                        done.read_at
                    );
                    return Err(Violation::new(Invariant::Sto1, what));
                }
            }
        }
        Ok(())
    }

    /// FLT-3: each replica must have the state of the log. Returns the final lists.
    fn check_replicas_equal(&self, history: &[Record]) -> Result<BTreeMap<u64, Vec<i64>>, Violation> {
        let mut model = Model::default();
        history.iter().for_each(|record| model.apply(record));
        let newest = history.last().map_or(Version(0), |record| record.version);
        let known: Vec<_> = self.common.keys.iter().map(|(_, gui)| *gui).collect();
        if let Some(gui) = model.vertices().find(|gui| !known.contains(gui)) {
            return Err(Violation::new(Invariant::Flt3, format!("no client created vertex {gui:?}")));
        }
        let (layout, mut lists) = (self.layout(), BTreeMap::new());
        for (key, (_, gui)) in self.common.keys.iter().enumerate() {
            let expected = model.see(*gui);
            let partition = layout.of(*gui);
            for (index, slot) in self.slots.iter().enumerate() {
                let replicas = slot.running.iter().flat_map(|running| running.node.replicas());
                if !replicas.into_iter().any(|(held, ..)| held == partition) {
                    continue;
                }
                let seen = self.look(index, key, newest);
                if seen.as_ref().is_some_and(|seen| seen.as_ref().ok() != Some(&expected)) {
                    let what = format!("{} has {gui:?} as {seen:?}, the log says {expected:?}", slot.name);
                    return Err(Violation::new(Invariant::Flt3, what));
                }
            }
            if key < self.common.lists {
                lists.insert(key as u64, expected.list);
            }
        }
        Ok(lists)
    }
}

impl World {
    /// FLT-3: each replica has the items of the log, and finds them by their properties.
    fn check_items_equal(&self, log: &ItemLog) -> Step {
        let (version, layout) = (self.broker.newest(), self.layout());
        for slot in &self.slots {
            let Some(running) = &slot.running else { continue };
            for (partition, ..) in running.node.replicas() {
                let at = At { version, epoch: NO_EPOCH };
                let differs = running
                    .check_items(partition, at, log, layout)
                    .unwrap_or_else(|error| Some(error.to_string()));
                if let Some(what) = differs {
                    let what = format!("partition {partition} on {} at {version}: {what}", slot.name);
                    return Err(Violation::new(Invariant::Flt3, what));
                }
            }
        }
        Ok(())
    }
}

/// LOG-1 and TXN-4: versions have no gaps, epochs never fall, and each request is in the
/// log once. Returns the versions of requests.
fn check_log(history: &[Record]) -> Result<BTreeMap<u128, Version>, Violation> {
    let mut requests = BTreeMap::new();
    for (before, record) in std::iter::once(None).chain(history.iter().map(Some)).zip(history) {
        let follows = before
            .is_none_or(|before| record.version == before.version.next() && record.epoch >= before.epoch);
        if !follows {
            let what = format!("version {} of epoch {} follows {before:?}", record.version, record.epoch);
            return Err(Violation::new(Invariant::Log1, what));
        }
        if let Body::Commit { request: Some(id), .. } = &record.body
            && let Some(first) = requests.insert(id.0, record.version)
        {
            let what = format!("one request is in the log at {first} and at {}", record.version);
            return Err(Violation::new(Invariant::Txn4, what));
        }
    }
    Ok(requests)
}

//! The end of a world: all faults are over, the fleet comes to rest, and everything is compared with the log.

use crate::checker::{self, Transaction};
use crate::invariants::{FLT_3, FLT_4, LOG_1, STO_1, TXN_2, TXN_4, Violation};
use crate::model::Model;
use crate::transaction::Done;
use crate::workers::name_of;
use crate::world::{Event, World};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use tidegraph_log::{Body, Record};
use tidegraph_platform::Random;
use tidegraph_remote::{Commits, Outcome, RequestId};
use tidegraph_types::Version;

/// How long a fleet may take to come to rest, in microseconds.
const PATIENCE: u64 = 60_000_000;

type Step = Result<(), Violation>;

impl World {
    /// Heals all, waits until nothing is left to do, and compares.
    pub fn come_to_rest(&mut self) -> Step {
        self.heal_all();
        self.do_without_one()?;
        self.wait_for_rest()?;
        self.workers_go_on()?;
        let unknown: Vec<Done> =
            self.done.iter().filter(|done| done.version.is_none() && done.id.is_some()).cloned().collect();
        let outcomes: Vec<_> =
            unknown.iter().filter_map(|done| Some((done.id?, self.outcome(done.id?)?))).collect();
        self.wait_for_rest()?;
        let history = self.broker.history();
        let requests = check_log(&history)?;
        for (id, outcome) in outcomes {
            let stands = requests.get(&u128::from_le_bytes(id.0));
            let right = match outcome {
                Ok(Outcome::Committed(version)) => stands == Some(&version),
                Ok(Outcome::Refused) => stands.is_none(),
                Ok(Outcome::Unknown) | Err(_) => true,
            };
            if !right {
                let what = format!("of a request it is said {outcome:?}, and the log has {stands:?}");
                return Err(Violation::new(TXN_4, what));
            }
        }
        self.check_reads(&history)?;
        self.check_replicas_equal(&history)?;
        // What is in memory goes, and comes back from checkpoints and the log.
        self.say("world", format_args!("all nodes start anew"));
        for node in 0..self.seats.len() {
            self.kill(node);
            self.after(0, Event::Start(node));
        }
        self.run_until(self.time.micros() + 1)?;
        self.wait_for_rest()?;
        let history = self.broker.history();
        let lists = self.check_replicas_equal(&history)?;
        let transactions: Vec<Transaction> = self.done.iter().map(|done| done.transaction.clone()).collect();
        match checker::check(&transactions, &lists) {
            Some(anomaly) => Err(Violation::new(TXN_2, anomaly.to_string())),
            None => Ok(()),
        }
    }

    /// In half of the worlds one node still does not reach the log. The lease is stolen, and it may be the first to take it then;
    /// the others must get to it all the same.
    fn do_without_one(&mut self) -> Step {
        if self.seats.len() < 2 || self.random.one_in(2) {
            return Ok(());
        }
        self.run_until(self.time.micros() + 500_000)?;
        let node = self.random.below(self.seats.len() as u64) as usize;
        let Some(process) = self.seats[node].running.as_ref().map(|running| running.process.clone()) else {
            return Ok(());
        };
        process.note(format_args!("does not reach the log"));
        process.no_log.store(true, Ordering::Relaxed);
        self.steal();
        let end = self.time.micros() + PATIENCE / 3;
        while !self.some_leader_writes() {
            if self.time.micros() > end {
                let what = format!("nobody writes, and only {} does not reach the log", process.name);
                return Err(Violation::new(FLT_4, what));
            }
            self.run_until(self.time.micros() + 500_000)?;
        }
        process.no_log.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Whether somebody who leads can write to the log, as he does when he is asked what became of a request.
    fn some_leader_writes(&self) -> bool {
        let running = self.seats.iter().filter_map(|seat| seat.running.as_ref());
        let mut leaders = running.filter(|running| running.candidate.leading().is_some());
        leaders.any(|leader| leader.commits.outcome(RequestId([0xff; 16]), Version(0)).is_ok())
    }

    pub fn wait_for_rest(&mut self) -> Step {
        let end = self.time.micros() + PATIENCE;
        while let Some(unrest) = self.unrest() {
            if self.time.micros() > end {
                return Err(Violation::new(FLT_4, unrest));
            }
            self.run_until(self.time.micros() + 100_000)?;
        }
        Ok(())
    }

    /// Every read must have seen what the log says of its version.
    fn check_reads(&self, history: &[Record]) -> Step {
        let mut reads: Vec<&Done> = self.done.iter().collect();
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
                    return Err(Violation::new(STO_1, what));
                }
            }
        }
        Ok(())
    }

    /// Each replica must have what the log says; answers the lists as they are at the end.
    fn check_replicas_equal(&self, history: &[Record]) -> Result<BTreeMap<u64, Vec<i64>>, Violation> {
        let mut model = Model::default();
        history.iter().for_each(|record| model.apply(record));
        let newest = history.last().map_or(Version(0), |record| record.version);
        let known: Vec<_> = self.common.keys.iter().map(|(_, gui)| *gui).collect();
        if let Some(gui) = model.vertices().find(|gui| !known.contains(gui)) {
            return Err(Violation::new(FLT_3, format!("vertex {gui:?} is of nobody")));
        }
        let mut lists = BTreeMap::new();
        for (key, (_, gui)) in self.common.keys.iter().enumerate() {
            let expected = model.see(*gui);
            let partition = self.graph.partitions.of(*gui);
            for (index, seat) in self.seats.iter().enumerate() {
                let replicas = seat.running.iter().flat_map(|running| running.node.replicas());
                if !replicas.into_iter().any(|(held, ..)| held == partition) {
                    continue;
                }
                let seen = self.look(index, key, newest);
                if seen.as_ref().is_some_and(|seen| seen.as_ref() != Ok(&expected)) {
                    let what = format!("{} has {gui:?} as {seen:?}, the log says {expected:?}", seat.name);
                    return Err(Violation::new(FLT_3, what));
                }
            }
            if key < self.common.lists {
                lists.insert(key as u64, expected.list);
            }
        }
        Ok(lists)
    }
}

/// Versions without a gap, epochs that never fall, each request once; answers where requests stand.
fn check_log(history: &[Record]) -> Result<BTreeMap<u128, Version>, Violation> {
    let mut requests = BTreeMap::new();
    for (before, record) in std::iter::once(None).chain(history.iter().map(Some)).zip(history) {
        let follows = before
            .is_none_or(|before| record.version == before.version.next() && record.epoch >= before.epoch);
        if !follows {
            let what = format!("version {} of epoch {} follows {before:?}", record.version, record.epoch);
            return Err(Violation::new(LOG_1, what));
        }
        if let Body::Commit { request: Some(id), .. } = &record.body
            && let Some(first) = requests.insert(id.0, record.version)
        {
            let what = format!("one request stands at {first} and at {}", record.version);
            return Err(Violation::new(TXN_4, what));
        }
    }
    Ok(requests)
}

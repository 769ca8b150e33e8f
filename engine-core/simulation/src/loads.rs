//! Bulk loads of workers: what their jobs say, compared with the log, and faults at the moments that matter to them.
//!
//! A load becomes visible at one version, as a whole, or not at all (LOAD-1). Its rows are applied to the items of the
//! version before (`items.rs`), so statements and replicas show whether all of them are there. What a job says must hold:
//! a completed load is in the log, any other one that has ended is not, and some worker reports on each load in the end,
//! whether or not the one that ran it lives.

use crate::invariants::{Invariant, Violation};
use crate::load::{LoadEnd, SubmittedLoad};
use crate::statement::{CONSTRAINT, KEY};
use crate::statements::History;
use crate::worker::{Call, EndedLoad, Wish};
use crate::world::{Event, Step, World};
use std::collections::{BTreeMap, BTreeSet};
use tidegraph_engine::loads::LoadState;
use tidegraph_log::Body;
use tidegraph_platform::Random;
use tidegraph_types::Version;
use tidegraph_wire::{Message, proto};

/// One of this many requests for the commit of a load meets a fault.
const FAULTS: u64 = 6;
/// Time after which a job without a worker counts as lost, and some more, in microseconds.
const LOST_AFTER: u64 = 65_000_000;
/// Maximum number of times that a worker is asked for a load, or about one, after all faults are over.
const TRIES: usize = 8;
/// The same, for all steps of a load together.
const MOST_STEPS: usize = 200;

/// What a job said about its load at some time.
#[derive(Clone, Debug)]
pub(crate) struct ReportedLoad {
    pub who: String,
    pub id: String,
    /// The end of the log then.
    pub until: Version,
    pub end: LoadEnd,
}

fn wrong(report: &ReportedLoad, invariant: Invariant, what: &str) -> Violation {
    let ReportedLoad { who, id, end, .. } = report;
    Violation::new(invariant, format!("{who} says of load {id}: {end:?}; {what}"))
}

/// What a request of a worker is for, as far as loads are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Needs no sequencer.
    Data,
    Commit,
    Report,
    Other,
}

fn purpose(bytes: &[u8]) -> Purpose {
    use proto::call::Kind;
    match proto::Call::decode(bytes).ok().and_then(|call| call.kind) {
        Some(Kind::Apl(_) | Kind::Status(_) | Kind::Pin(_)) => Purpose::Data,
        Some(Kind::CommitLoad(_)) => Purpose::Commit,
        Some(Kind::SettleLoad(_)) => Purpose::Report,
        _ => Purpose::Other,
    }
}

impl World {
    /// Returns whether the sequencer of a node waits for the report of a load. What needs the sequencer waits then, and in
    /// this world waits as an event: there is one thread.
    pub fn awaits_report(&self, node: usize) -> bool {
        let running = self.slots[node].running.as_ref();
        let leading = running.and_then(|running| running.candidate.leadership());
        leading.and_then(|leading| leading.sequencer().report_due()).is_some_and(|left| !left.is_zero())
    }

    /// Returns whether a request of a worker has to wait for the report of a load.
    pub fn waits_for_report(&self, call: &Call) -> bool {
        self.awaits_report(call.node) && matches!(purpose(&call.bytes), Purpose::Commit | Purpose::Other)
    }

    /// Draws a fault at the moment at which a node has answered for the commit of a load, or at the report on it.
    pub fn draw_load_fault(&mut self, call: &Call) -> Step {
        let is_commit = self.profile.loads && self.faulty && !call.copy;
        if !is_commit
            || !matches!(purpose(&call.bytes), Purpose::Commit | Purpose::Report)
            || !self.random.one_in(FAULTS)
        {
            return Ok(());
        }
        let for_long = 100_000 + self.random.below(2_000_000);
        match self.random.below(5) {
            0 | 1 => {
                self.kill(call.node);
                self.after(for_long, Event::Start(call.node));
            }
            2 => {
                self.slots[call.node].paused_until = self.time.micros() + for_long;
                self.counts.pauses += 1;
            }
            3 => self.steal(),
            _ => {
                self.kill_worker(call.worker)?;
                self.after(for_long, Event::StartWorker(call.worker));
            }
        }
        Ok(())
    }

    /// Notes what a job says. LOG-1: a load that is said to be visible is in the log.
    pub fn ended_load(&mut self, who: &str, (id, end): EndedLoad) -> Step {
        self.say(who, format_args!("load {id}: {end:?}"));
        let report = ReportedLoad { who: who.to_owned(), id, until: self.broker.newest(), end };
        if report.end.state == LoadState::Completed {
            let version = report.end.version.unwrap_or_default();
            let found = self.broker.record(version).map(|record| record.body);
            if !matches!(&found, Some(Body::Load { load_id, .. }) if *load_id == report.id) {
                return Err(wrong(&report, Invariant::Log1, &format!("the log has {found:?} there")));
            }
            self.bookmark = self.bookmark.max(version);
        }
        self.reported.push(report);
        Ok(())
    }

    /// FLT-4: after all faults are over, each worker completes a load, and some worker reports on each load.
    pub fn loads_go_on(&mut self) -> Step {
        if !self.profile.loads {
            return Ok(());
        }
        for index in 0..self.workers.len() {
            let completes = |report: &ReportedLoad| report.end.state == LoadState::Completed;
            self.until_it_reports(index, TRIES, &Wish::Load, "completes no load", completes)?;
        }
        for id in self.stepped.open() {
            let index = self.any_worker();
            let what = format!("does not get through the steps of load {id}");
            self.until_it_reports(index, MOST_STEPS, &Wish::Step(id), &what, |report| {
                report.end.state.is_final()
            })?;
        }
        let lost = self.unresolved_loads();
        if !lost.is_empty() {
            self.run_until(self.time.micros() + LOST_AFTER)?;
            self.wait_for_rest()?;
            self.counts.loads_lost = lost.len() as u64;
        }
        // A later worker may have told another outcome of a load in steps.
        let stepped =
            self.loads.lock().iter().filter(|(_, load)| load.in_steps).map(|(id, _)| id.clone()).collect();
        for id in [lost, stepped].into_iter().flatten() {
            let index = self.any_worker();
            let what = format!("does not know what became of load {id}");
            self.until_it_reports(index, TRIES, &Wish::Report(id), &what, |report| {
                report.end.state.is_final()
            })?;
        }
        Ok(())
    }

    fn any_worker(&self) -> usize {
        self.random.below(self.workers.len() as u64) as usize
    }

    /// Returns the loads of which no worker has told the outcome.
    fn unresolved_loads(&self) -> Vec<String> {
        let resolved = self.reported.iter().filter(|report| report.end.state.is_final());
        let resolved: BTreeSet<&String> = resolved.map(|report| &report.id).collect();
        let loads = self.loads.lock();
        let of_one = loads.iter().filter(|(_, load)| !load.in_steps);
        of_one.map(|(id, _)| id).filter(|id| !resolved.contains(id)).cloned().collect()
    }

    fn until_it_reports(
        &mut self,
        index: usize,
        tries: usize,
        wish: &Wish,
        fault: &str,
        is_right: impl Fn(&ReportedLoad) -> bool,
    ) -> Step {
        for _ in 0..tries {
            let before = self.reported.len();
            if let Some(running) = &self.workers[index].running {
                running.wish(wish.clone());
            }
            self.worker_turn(index)?;
            self.wait_for_rest()?;
            if self.reported[before..].iter().any(&is_right) {
                return Ok(());
            }
        }
        let last = self.reported.last();
        let what = format!("worker {index} {fault}, though no fault is left; the last report: {last:?}");
        Err(Violation::new(Invariant::Flt4, what))
    }

    /// LOAD-1: compares what jobs said with the log.
    pub(crate) fn check_loads(&self, history: &History) -> Step {
        let submitted = self.loads.lock();
        let last: BTreeMap<&String, usize> =
            self.reported.iter().enumerate().map(|(number, report)| (&report.id, number)).collect();
        for (number, report) in self.reported.iter().enumerate() {
            let logged = history.loads.get(&report.id);
            let in_steps = submitted.get(&report.id).is_some_and(|load| load.in_steps);
            let is_right = match report.end.state {
                _ if report.end.is_open() => true,
                LoadState::Completed => report.end.version.as_ref() == logged,
                // One worker may abandon a load while another one commits it, which then writes the job anew.
                _ if in_steps && last.get(&report.id) != Some(&number) => true,
                _ => logged.is_none(),
            };
            if !is_right {
                return Err(wrong(report, Invariant::Load1, &format!("the log has it at {logged:?}")));
            }
            if let Some(load) = submitted.get(&report.id) {
                check_refusal(report, load, history)?;
            }
        }
        Ok(())
    }

    /// Counts the loads of a world that has ended.
    pub fn count_loads(&mut self) {
        let mut ends: BTreeMap<&str, bool> = BTreeMap::new();
        for report in &self.reported {
            ends.insert(&report.id, report.end.state == LoadState::Completed);
        }
        self.counts.loads = ends.values().filter(|visible| **visible).count() as u64;
        self.counts.loads_failed = ends.len() as u64 - self.counts.loads;
    }
}

/// TXN-3 and LOAD-1: a row is refused for a reason that the log has.
fn check_refusal(report: &ReportedLoad, load: &SubmittedLoad, history: &History) -> Step {
    let versions = || load.since.0..=report.until.0;
    let SubmittedLoad { plan, .. } = load;
    for code in &report.end.errors {
        let holds = match code.as_str() {
            "UNIQUE_CONSTRAINT_VIOLATION" => {
                let keys: Vec<(&str, i64)> =
                    plan.vertices.iter().filter_map(|row| Some((row.id.as_str(), row.key?))).collect();
                let own: BTreeSet<i64> = keys.iter().map(|(_, key)| *key).collect();
                history.some(versions(), |items, indexes| {
                    let others = || keys.iter().any(|(id, key)| items.has_other(id, KEY, *key));
                    indexes.contains_key(CONSTRAINT) && (own.len() < keys.len() || others())
                })
            }
            "FROM_OR_TO_VERTEX_ARE_MISSING" => {
                let own: BTreeSet<&String> = plan.vertices.iter().map(|row| &row.id).collect();
                let ends = plan.edges.iter().flat_map(|(from, to)| [from, to]);
                let others: Vec<&String> = ends.filter(|end| !own.contains(end)).collect();
                history.some(versions(), |items, _| others.iter().any(|end| !items.items.contains_key(*end)))
            }
            _ => false,
        };
        if !holds {
            return Err(wrong(report, Invariant::Load1, &format!("there is no reason for {code}")));
        }
    }
    Ok(())
}

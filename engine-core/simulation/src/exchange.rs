//! Messages between clients and nodes, and checks of their contents.

use crate::checker::Ended;
use crate::client::{ClientActions, ClientCall, ClientRequest, NodeReply};
use crate::config::Profile;
use crate::invariants::{Invariant, Violation};
use crate::node::RunningNode;
use crate::transaction::{FinishedTransaction, NAMES};
use crate::workers::{REPORT, is_worker, name_of};
use crate::world::{CALM_SKEW, Event, Step, World};
use std::sync::Arc;
use tidegraph_log::Body;
use tidegraph_platform::Random;
use tidegraph_remote::{Commits, RequestId};
use tidegraph_types::{CommitRequest, PartitionId, Str, Token, Version};

/// APL-2 and FLT-1: a node that answered a read has a serving replica of the partition,
/// and the replica has reached the version.
fn check_reader(running: &RunningNode, partition: PartitionId, version: Version) -> Step {
    let name = &running.process.name;
    match running.node.replicas().into_iter().find(|(held, ..)| *held == partition) {
        Some((_, applied, true)) if applied >= version => Ok(()),
        Some((_, applied, true)) => {
            let what = format!("{name} answers at {version}, partition {partition} there is at {applied}");
            Err(Violation::new(Invariant::Flt1, what))
        }
        other => {
            let what =
                format!("{name} answers for partition {partition}, which does not serve there: {other:?}");
            Err(Violation::new(Invariant::Apl2, what))
        }
    }
}

impl World {
    /// Commits the waiting requests of a node as one group, and answers them.
    pub fn serve(&mut self, index: usize) -> Step {
        let asks = std::mem::take(&mut self.slots[index].inbox);
        let Some(running) = self.slots[index].running.as_ref().filter(|_| !asks.is_empty()) else {
            return Ok(());
        };
        let (commits, process) = (running.commits.clone(), running.process.clone());
        let requests: Vec<(RequestId, CommitRequest)> = asks
            .iter()
            .filter_map(|ask| match &ask.what {
                ClientRequest::Commit { id, request } => Some((*id, request.clone())),
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
            self.answer(index, &ask, busy, NodeReply::Committed(answer));
        }
        self.see_broker();
        Ok(())
    }

    /// Delivers a request to a node.
    pub fn asked(&mut self, index: usize, ask: ClientCall) -> Step {
        let now = self.time.micros();
        let slot = &self.slots[index];
        let Some(running) = &slot.running else { return Ok(()) };
        let ready = slot.paused_until.max(running.process.clock.busy_until());
        if let ClientRequest::Commit { .. } = ask.what {
            let life = slot.life;
            let inbox = &mut self.slots[index].inbox;
            inbox.push(ask);
            if inbox.len() > 1 {
                return Ok(());
            }
            let patience = self.random.below(self.profile.batch);
            self.at(ready + patience, Event::Serve(index, life));
            return Ok(());
        }
        let ready = ready.max(slot.busy_until);
        if ready > now {
            self.at(ready, Event::ClientCall(index, ask));
            return Ok(());
        }
        if !matches!(ask.what, ClientRequest::Read { .. }) && self.awaits_report(index) {
            self.after(REPORT, Event::ClientCall(index, ask));
            return Ok(());
        }
        let said = match &ask.what {
            ClientRequest::Read { partition, at, list, gui } => {
                let seen = running.read(*partition, *at, *list, *gui).map_err(Arc::new);
                running.process.note(format_args!("reads {gui:?} at {}: {seen:?}", at.version));
                if seen.is_ok() {
                    check_reader(running, *partition, at.version)?;
                }
                NodeReply::Seen(seen)
            }
            ClientRequest::Outcome { id, since } => NodeReply::Outcome(running.commits.outcome(*id, *since)),
            ClientRequest::Newest => NodeReply::Newest(running.commits.newest().map(|newest| newest.version)),
            ClientRequest::Sids(count) => NodeReply::Sids(running.commits.allocate_sids(*count)),
            ClientRequest::Intern(names) => NodeReply::Tokens(running.commits.intern(names)),
            ClientRequest::Commit { .. } => return Ok(()),
        };
        let busy = running.process.clock.busy_until() - now;
        self.check_said(index, &said)?;
        self.answer(index, &ask, busy, said);
        self.see_broker();
        Ok(())
    }

    /// Checks an answer of a sequencer, whether or not it arrives.
    pub fn check_said(&mut self, index: usize, said: &NodeReply) -> Step {
        match said {
            NodeReply::Newest(Ok(version)) if self.profile.skew <= CALM_SKEW && *version < self.bookmark => {
                let what =
                    format!("{} says {version} is the newest, {} is", self.slots[index].name, self.bookmark);
                Err(Violation::new(Invariant::Txn1, what))
            }
            NodeReply::Sids(Ok(range)) => {
                let before = self.sids.range(..range.end).next_back();
                if let Some((start, end)) = before.filter(|(_, end)| **end > range.start) {
                    let what = format!("SIDs {range:?} are handed out, and {start}..{end} were");
                    return Err(Violation::new(Invariant::Ids1, what));
                }
                self.sids.insert(range.start, range.end);
                Ok(())
            }
            NodeReply::Tokens(Ok(tokens)) => {
                let names = NAMES.iter().map(|name| Str::from(*name));
                self.check_names(tokens.iter().copied().zip(names))
            }
            _ => Ok(()),
        }
    }

    /// IDS-1: a name keeps its token, and no other name has it.
    pub fn check_names(&mut self, told: impl IntoIterator<Item = (Token, Str)>) -> Step {
        for (token, name) in told {
            let known = self.names.get(&name).copied().unwrap_or(token);
            let other = self.named.get(&token).filter(|other| **other != name);
            if known != token || other.is_some() {
                let what = format!("{name:?} has token {token}, had {known}, and {token} is of {other:?}");
                return Err(Violation::new(Invariant::Ids1, what));
            }
            self.names.insert(name.clone(), token);
            self.named.insert(token, name);
        }
        Ok(())
    }

    /// Delivers an answer to a client.
    pub fn answered(&mut self, client: usize, number: u64, said: NodeReply) -> Step {
        let out = self.clients[client].hear(self.time.micros(), number, said);
        self.send(client, out)
    }

    /// Carries out the actions of a client.
    pub fn send(&mut self, client: usize, out: ClientActions) -> Step {
        let now = self.time.micros();
        for (node, ask) in out.asks {
            let most = if let ClientRequest::Read { .. } = ask.what { 300_000 } else { 1_200_000 };
            self.at(now + most, Event::Overdue(client, ask.number));
            let cut_off = self.slots[node].cut_off;
            for (nth, delay) in self.travel(cut_off).into_iter().enumerate() {
                self.after(delay, Event::ClientCall(node, ClientCall { copy: nth > 0, ..ask.clone() }));
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

    /// Wakes a client after `micros`, unless an earlier wake-up is queued.
    pub fn wake(&mut self, client: usize, micros: u64) {
        let due = self.time.micros() + micros;
        if self.wakes[client].is_none_or(|known| known > due) {
            self.wakes[client] = Some(due);
            self.at(due, Event::Wake(client));
        }
    }

    fn answer(&mut self, node: usize, ask: &ClientCall, busy: u64, said: NodeReply) {
        let cut_off = self.slots[node].cut_off;
        for delay in self.travel(cut_off).into_iter().filter(|_| !ask.copy) {
            self.after(busy + delay, Event::Answer(ask.client, ask.number, said.clone()));
        }
    }

    /// Draws the delays of a message in microseconds: one for each arrival, none if the message is lost.
    pub fn travel(&self, cut_off: bool) -> Vec<u64> {
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

    /// Notes a finished transaction. LOG-1: an acknowledged one must be in the log.
    pub fn finished(&mut self, done: FinishedTransaction) -> Step {
        let FinishedTransaction { transaction, version, id, mutations, .. } = &done;
        let (client, ended) = (transaction.client, transaction.ended);
        self.counts.ended(ended);
        if let Some(again) = done.scan {
            self.counts.scans += u64::from(ended == Ended::Acknowledged);
            self.counts.scans_again += again;
        }
        self.counts.of_workers += u64::from(is_worker(client) && ended == Ended::Acknowledged);
        let who = name_of(client);
        self.say(&who, format_args!("read at {}, {ended:?} as {version:?}: {transaction:?}", done.read_at));
        if let Some(version) = version {
            let is_named = |found: u128| id.is_none_or(|id| id.0 == found);
            let record = self.broker.record(*version);
            let stands = matches!(record.map(|record| record.body),
                Some(Body::Commit { request: Some(found), mutations: written, .. })
                    if is_named(found.0) && written == *mutations);
            if !stands {
                let what = format!("{who} was told version {version}, which is another transaction");
                return Err(Violation::new(Invariant::Log1, what));
            }
            self.bookmark = self.bookmark.max(*version);
        }
        self.done.push(done);
        Ok(())
    }
}

//! Messages between clients and nodes, and what must be so of what is said in them.

use crate::checker::Ended;
use crate::client::{Ask, Out, Said, What};
use crate::config::Profile;
use crate::invariants::{IDS_1, LOG_1, TXN_1, Violation};
use crate::transaction::Done;
use crate::workers::{is_worker, name_of};
use crate::world::{CALM_SKEW, Event, Step, World};
use tidegraph_log::Body;
use tidegraph_platform::Random;
use tidegraph_remote::{Commits, RequestId};
use tidegraph_types::CommitRequest;

impl World {
    /// A node answers the commits that wait.
    pub fn serve(&mut self, index: usize) -> Step {
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
    pub fn asked(&mut self, index: usize, ask: Ask) -> Step {
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
            What::Outcome { id, since } => Said::Outcome(running.commits.outcome(*id, *since)),
            What::Newest => Said::Newest(running.commits.newest().map(|newest| newest.version)),
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
    pub fn check_said(&mut self, index: usize, said: &Said) -> Step {
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
    pub fn answered(&mut self, client: usize, number: u64, said: Said) -> Step {
        let out = self.clients[client].hear(self.time.micros(), number, said);
        self.send(client, out)
    }

    /// What a client wants happens.
    pub fn send(&mut self, client: usize, out: Out) -> Step {
        let now = self.time.micros();
        for (node, ask) in out.asks {
            let most = if let What::Read { .. } = ask.what { 300_000 } else { 1_200_000 };
            self.at(now + most, Event::Overdue(client, ask.number));
            let cut_off = self.seats[node].cut_off;
            for (nth, delay) in self.travel(cut_off).into_iter().enumerate() {
                self.after(delay, Event::Ask(node, Ask { copy: nth > 0, ..ask.clone() }));
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
    pub fn wake(&mut self, client: usize, micros: u64) {
        let due = self.time.micros() + micros;
        if self.wakes[client].is_none_or(|known| known > due) {
            self.wakes[client] = Some(due);
            self.at(due, Event::Wake(client));
        }
    }

    fn answer(&mut self, node: usize, ask: &Ask, busy: u64, said: Said) {
        let cut_off = self.seats[node].cut_off;
        for delay in self.travel(cut_off).into_iter().filter(|_| !ask.copy) {
            self.after(busy + delay, Event::Answer(ask.client, ask.number, said.clone()));
        }
    }

    /// How long a message takes: once for each time that it comes.
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

    /// A transaction is over: what was acknowledged must stand in the log.
    pub fn finished(&mut self, done: Done) -> Step {
        let Done { transaction, version, id, mutations, .. } = &done;
        let (client, ended) = (transaction.client, transaction.ended);
        self.counts.ended(ended);
        self.counts.of_workers += u64::from(is_worker(client) && ended == Ended::Acknowledged);
        let who = name_of(client);
        self.say(&who, format_args!("read at {}, {ended:?} as {version:?}: {transaction:?}", done.read_at));
        if let Some(version) = version {
            let is_named = |found: u128| id.is_none_or(|id| u128::from_le_bytes(id.0) == found);
            let record = self.broker.record(*version);
            let stands = matches!(record.map(|record| record.body),
                Some(Body::Commit { request: Some(found), mutations: written, .. })
                    if is_named(found.0) && written == *mutations);
            if !stands {
                let what = format!("{who} was told of version {version}, which is not its transaction");
                return Err(Violation::new(LOG_1, what));
            }
            self.bookmark = self.bookmark.max(*version);
        }
        self.done.push(done);
        Ok(())
    }
}

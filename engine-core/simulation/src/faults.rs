//! Faults of a world, and their healing.

use crate::broker::LAG;
use crate::workers::WorkerSlot;
use crate::world::{Event, GRAPH, World};
use std::sync::atomic::Ordering;
use tidegraph_cluster::{Change, Claim, MapStore, NodeState, SEQUENCER};
use tidegraph_platform::Random;
use tidegraph_types::{Epoch, PartitionId, ShardId};

/// A fault that lasts until it is healed.
#[derive(Clone, Debug)]
pub(crate) enum Cut {
    /// A node cannot reach the map.
    Map(usize),
    /// A node cannot reach the log.
    Log(usize),
    /// A node and clients cannot reach each other.
    Clients(usize),
    /// A client cannot reach the map.
    ClientMap(usize),
    /// No process can reach the map.
    MapAway,
    /// Some writes to the object store fail.
    Objects,
    /// Followers of the log receive few records.
    Lag,
    /// Appends are slow.
    Slow,
    /// A shard of the log does not answer.
    ShardAway(ShardId),
    /// Followers of a shard receive few records.
    ShardLag(ShardId),
    /// Appends reach some shards and not others.
    Torn,
}

impl World {
    /// Draws a fault, and queues the next one.
    pub fn draw_fault(&mut self) {
        if !self.faulty {
            return;
        }
        let wait = self.profile.fault_ms * 1000;
        self.after(wait / 2 + self.random.below(wait), Event::Fault);
        let node = self.random.below(self.slots.len() as u64) as usize;
        let leader = self.slots.iter().position(|slot| {
            slot.running.as_ref().is_some_and(|running| running.candidate.leadership().is_some())
        });
        // Half of the faults strike the leader.
        let node = leader.filter(|_| self.random.one_in(2)).unwrap_or(node);
        let most = if self.random.one_in(2) { 800_000 } else { 4_000_000 };
        let for_long = 100_000 + self.random.below(most);
        if self.profile.shards > 1 && self.random.one_in(5) {
            let shard = ShardId(self.random.below(u64::from(self.profile.shards)) as u16);
            return match self.random.below(6) {
                0 | 1 => self.cut(Cut::ShardAway(shard), for_long),
                // Long enough for several take-overs.
                2 => self.cut(Cut::Torn, 2_000_000 + for_long),
                _ => self.cut(Cut::ShardLag(shard), for_long),
            };
        }
        if self.profile.scans && self.random.one_in(3) {
            return self.restore_replica(node);
        }
        if self.profile.panics && self.random.one_in(4) {
            return self.panic(node);
        }
        if self.profile.saturation && self.random.one_in(4) {
            // Its feed, beats and lease go on.
            self.slots[node].busy_until = self.time.micros() + for_long;
            self.counts.saturations += 1;
            self.say(&self.slots[node].name, format_args!("is busy for {} ms", for_long / 1000));
            return;
        }
        match self.random.below(20) {
            0..3 => self.crash(node),
            3 if self.random.one_in(3) => (0..self.slots.len()).for_each(|node| self.crash(node)),
            3..8 => {
                let until = self.time.micros() + for_long;
                let slot = &mut self.slots[node];
                slot.paused_until = slot.paused_until.max(until);
                self.counts.pauses += 1;
                self.say(&self.slots[node].name, format_args!("is paused for {} ms", for_long / 1000));
            }
            8 => self.cut(Cut::Map(node), for_long),
            9 | 10 => self.cut(Cut::Log(node), for_long),
            11 => self.cut(Cut::Clients(node), for_long),
            12 => {
                let client = self.random.below(self.clients.len() as u64) as usize;
                self.cut(Cut::ClientMap(client), for_long);
            }
            13 => self.cut(Cut::MapAway, for_long),
            14 => {
                let in_a_write = self.random.one_in(2);
                self.say("log", format_args!("goes down; in a write: {in_a_write}"));
                self.broker.crash(in_a_write);
                self.see_broker();
            }
            15 => self.steal(),
            16 => self.cut(Cut::Objects, for_long),
            17 => self.cut(Cut::Lag, for_long),
            18 => self.cut(Cut::Slow, for_long),
            _ if self.random.one_in(2) => self.lose_checkpoint(),
            _ => self.move_replica(),
        }
    }

    /// Lets code of a node panic: its feed, or the sequencer when it appends next.
    fn panic(&mut self, node: usize) {
        let Some(running) = &self.slots[node].running else { return };
        let process = &running.process;
        let flag = if self.random.one_in(3) { &process.append_panics } else { &process.read_panics };
        flag.store(true, Ordering::Relaxed);
        self.counts.panics += 1;
    }

    /// Lets a node restore a replica: the map takes it away and gives it back after the node has seen that. A
    /// partition with one replica loses none; then the node starts again.
    fn restore_replica(&mut self, node: usize) {
        let id = self.slots[node].id.clone();
        let Ok(map) = self.map.load(GRAPH, None) else { return };
        let spare = |partition: &PartitionId| map.serving(*partition).len() > 1;
        let held: Vec<PartitionId> = map.held_by(&id).map(|(partition, _)| partition).filter(spare).collect();
        self.counts.restores += 1;
        let Some(partition) = held.get(self.random.below(held.len().max(1) as u64) as usize).copied() else {
            self.kill(node);
            return self.after(10_000, Event::Start(node));
        };
        let change = Change::DropReplica { partition, node: id.clone() };
        let dropped = self.map.change(GRAPH, None, std::slice::from_ref(&change));
        self.say("world", format_args!("{change}: {dropped:?}"));
        if dropped.is_ok() {
            let back = 10_000 + self.random.below(400_000);
            self.after(back, Event::GiveBack(partition, node));
        }
    }

    /// Gives a replica back that [`Self::restore_replica`] took away.
    pub fn give_back(&mut self, partition: PartitionId, node: usize) {
        let change = Change::AddReplica { partition, node: self.slots[node].id.clone() };
        let added = self.map.change(GRAPH, None, std::slice::from_ref(&change));
        self.say("world", format_args!("{change}: {added:?}"));
    }

    /// Ends the process of a node, mostly by a crash, and queues its start.
    fn crash(&mut self, node: usize) {
        if let Some(running) = self.slots[node].running.as_ref().filter(|_| self.random.one_in(5)) {
            running.process.note(format_args!("is told to end"));
            running.candidate.close();
            running.node.stop();
        }
        let most_down = if self.random.one_in(2) { 300_000 } else { 3_000_000 };
        self.kill(node);
        self.after(50_000 + self.random.below(most_down), Event::Start(node));
    }

    fn cut(&mut self, cut: Cut, for_long: u64) {
        self.counts.cuts += 1;
        self.say("world", format_args!("{cut:?} for {} ms", for_long / 1000));
        self.set(&cut, true);
        self.after(for_long, Event::Heal(cut));
    }

    pub fn heal(&mut self, cut: &Cut) {
        self.say("world", format_args!("{cut:?} is over"));
        self.set(cut, false);
    }

    fn set(&mut self, cut: &Cut, is_cut: bool) {
        match cut {
            // A process that restarts is no longer cut off.
            Cut::Map(node) => {
                if let Some(running) = &self.slots[*node].running {
                    running.process.no_map.store(is_cut, Ordering::Relaxed);
                }
            }
            Cut::Log(node) => {
                if let Some(running) = &self.slots[*node].running {
                    running.process.no_log.store(is_cut, Ordering::Relaxed);
                }
            }
            Cut::Clients(node) => self.slots[*node].cut_off = is_cut,
            Cut::ClientMap(client) => {
                self.clients[*client].process.no_map.store(is_cut, Ordering::Relaxed);
            }
            Cut::MapAway => self.map_faults.away.store(is_cut, Ordering::Relaxed),
            Cut::Objects => self.object_faults.0.store(if is_cut { 400 } else { 0 }, Ordering::Relaxed),
            Cut::Lag => self.lag.store(if is_cut { LAG } else { 0 }, Ordering::Relaxed),
            Cut::ShardAway(shard) => self.broker.set_away(*shard, is_cut),
            Cut::ShardLag(shard) => self.broker.set_lagging(*shard, is_cut),
            Cut::Torn => self.broker.set_torn(is_cut),
            Cut::Slow => self.broker.set_slow(if is_cut { 1_500_000 } else { 2_000 }),
        }
    }

    /// Takes the lease without waiting, and does nothing with it.
    pub fn steal(&mut self) {
        let Ok(Some(lease)) = self.map.lease(GRAPH, SEQUENCER) else { return };
        let claim = Claim {
            holder: "thief".into(),
            endpoint: "nowhere".into(),
            ttl: std::time::Duration::from_millis(1500),
            above: Epoch(0),
        };
        let stolen = self.map.take_lease(GRAPH, SEQUENCER, Some(&lease), &claim);
        self.counts.thefts += 1;
        self.say("world", format_args!("the lease of {} is stolen: {stolen:?}", lease.holder));
    }

    /// Deletes the newest manifest of a checkpoint, if an older one and the log suffice for recovery. The log
    /// keeps the records after the second newest checkpoint, so one of two consecutive checkpoints must stay.
    fn lose_checkpoint(&mut self) {
        let Ok(noted) = self.map.checkpoints(GRAPH) else { return };
        let Some(noted) = noted.get(self.random.below(noted.len() as u64) as usize) else { return };
        let Ok(objects) = self.objects.list(&format!("{}/", noted.prefix)) else { return };
        let mut manifests: Vec<(u64, String)> = objects
            .into_iter()
            .filter_map(|object| {
                let (_, number) = object.path.rsplit_once("/manifest-")?;
                Some((number.split('-').next()?.parse().ok()?, object.path))
            })
            .collect();
        manifests.sort_unstable();
        let [.., (older, _), (version, newest)] = &manifests[..] else { return };
        let lost_before = |(at, lost): &(u64, String)| *at > *older && lost.starts_with(&noted.prefix);
        if self.lost_checkpoints.iter().any(lost_before) {
            return;
        }
        if older + 1 >= self.broker.first().0 && self.objects.delete(newest).is_ok() {
            self.lost_checkpoints.push((*version, newest.clone()));
            self.counts.lost_checkpoints += 1;
            self.say("world", format_args!("{newest} is lost"));
        }
    }

    /// Adds a replica of a partition to a node, or drops one if there are more than needed.
    fn move_replica(&mut self) {
        let Ok(map) = self.map.load(GRAPH, None) else { return };
        let layout = map.graph().next_layout().filter(|_| self.random.one_in(2));
        let layout = layout.unwrap_or(map.graph().layout());
        let partition = layout.at(self.random.below(u64::from(layout.count().get())) as u16);
        let node = self.slots[self.random.below(self.slots.len() as u64) as usize].id.clone();
        let replicas = map.replicas(partition);
        let change = if !replicas.iter().any(|replica| replica.node == node) {
            Change::AddReplica { partition, node }
        } else if replicas.len() > usize::from(self.profile.replication) {
            Change::DropReplica { partition, node }
        } else {
            return;
        };
        let changed = self.map.change(GRAPH, None, std::slice::from_ref(&change));
        self.counts.moves += u64::from(changed.is_ok());
        self.say("world", format_args!("{change}: {changed:?}"));
    }

    /// Heals all faults, and draws no further ones.
    pub fn heal_all(&mut self) {
        self.faulty = false;
        self.say("world", format_args!("all faults are over"));
        for node in 0..self.slots.len() {
            self.set(&Cut::Map(node), false);
            self.set(&Cut::Log(node), false);
            self.set(&Cut::Clients(node), false);
            (self.slots[node].paused_until, self.slots[node].busy_until) = (0, 0);
            if let Some(running) = &self.slots[node].running {
                running.process.read_panics.store(false, Ordering::Relaxed);
                running.process.append_panics.store(false, Ordering::Relaxed);
            }
            if self.slots[node].running.is_none() {
                self.after(0, Event::Start(node));
            }
        }
        for client in 0..self.clients.len() {
            self.set(&Cut::ClientMap(client), false);
        }
        for worker in 0..self.workers.len() {
            self.heal_worker(worker);
            self.after(0, Event::StartWorker(worker));
        }
        for shard in (0..self.profile.shards).map(ShardId) {
            self.set(&Cut::ShardAway(shard), false);
            self.set(&Cut::ShardLag(shard), false);
        }
        for cut in [Cut::MapAway, Cut::Objects, Cut::Lag, Cut::Slow, Cut::Torn] {
            self.set(&cut, false);
        }
        self.map_faults.wrong.store(0, Ordering::Relaxed);
        self.broker.set_wrong(0);
        // A crash now reveals torn writes.
        self.broker.crash(false);
        self.see_broker();
    }

    /// Returns why the fleet is not at rest; `None` if it is.
    pub fn unrest(&self) -> Option<String> {
        if let Some(client) = self.clients.iter().find(|client| !client.is_idle()) {
            return Some(format!("{} waits", client.process.name));
        }
        let waits = |slot: &&WorkerSlot| !slot.running.as_ref().is_some_and(|running| running.rests);
        if let Some(slot) = self.workers.iter().find(waits) {
            let Some(running) = &slot.running else { return Some("a worker does not run".into()) };
            return Some(format!("{} waits, and runs {:?}", running.process.name, running.statement()));
        }
        let Ok(map) = self.map.load(GRAPH, None) else { return Some("there is no map".into()) };
        let newest = self.broker.newest();
        let mut leads = false;
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(running) = &slot.running else { return Some(format!("{} does not run", slot.name)) };
            leads |= running.candidate.leadership().is_some();
            if self.awaits_report(index) {
                return Some(format!("{} waits for the report of a load", slot.name));
            }
            if map.node(&slot.id).is_none_or(|node| node.state != NodeState::Up) {
                return Some(format!("{} is not up", slot.name));
            }
            let here = running.node.replicas();
            for (partition, replica) in map.held_by(&slot.id) {
                let found = here.iter().find(|(of, ..)| *of == partition);
                let rests = replica.state.answers()
                    && found.is_some_and(|(_, version, ready)| *version == newest && *ready);
                if !rests {
                    let state = replica.state;
                    return Some(format!(
                        "partition {partition} on {} is {state}: {found:?}, not {newest}",
                        slot.name
                    ));
                }
            }
        }
        if !leads {
            return Some("no process leads".into());
        }
        self.unrest_of_splits(&map)
    }
}

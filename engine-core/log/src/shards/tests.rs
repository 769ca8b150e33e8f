//! Histories of a log of several shards, drawn from seeds: several sequencers that do not
//! know of each other, messages that are late or are lost with their sender, processes
//! that die between any two messages, and followers that begin anywhere.
//!
//! The checks: every later sequencer finds the acknowledged records, and every follower of
//! every shard gets them; all followers of a shard get the same records; a record that one
//! shard hands out is handed out by all shards. Three defects are planted and must be found.

mod shard;

use super::{Message, Shard, ShardedLog};
use crate::acceptor::{FollowerState, Layout};
use crate::testing::{SharedShards, begin};
use crate::{Body, Error, LogStore, Position, Record};
use parking_lot::Mutex;
use shard::TestShard;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_platform::{Random, SeededRandom};
use tidegraph_types::{Epoch, Gui, Mutation, PartitionCount, ShardId, Sharding, Sid, Version};

/// A defect that is planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    /// Acknowledges when the first shard has all parts.
    AcknowledgeEarly,
    /// Sends the fence with the first record, after choosing the last complete version.
    FenceLate,
    /// Takes the lowest end of the shards for the last complete version, whatever epochs their records have.
    LowestEnd,
}

/// Identifies a record: its epoch, and its SID, which no other record has.
type Known = (Epoch, Sid);

struct World {
    random: SeededRandom,
    log: SharedShards,
    sharding: Sharding,
    bug: Option<Bug>,
    trims: bool,
    /// Messages in flight by sender and shard, in order.
    under_way: Mutex<BTreeMap<(u64, u16), VecDeque<Message>>>,
    writers: Mutex<Vec<(Epoch, ShardedLog)>>,
    followers: Mutex<Vec<Follower>>,
    acknowledged: Mutex<BTreeMap<Version, Known>>,
    /// Records that followers received, by shard.
    seen: Mutex<Vec<BTreeMap<Version, Known>>>,
    wrong: Mutex<Option<String>>,
    last_epoch: AtomicU64,
    last_id: AtomicU64,
    /// Depth of nested actions.
    depth: AtomicU64,
    /// Above 0 once faults are over.
    calm: AtomicU64,
    replaced: AtomicU64,
}

struct Follower {
    shard: ShardId,
    following: FollowerState,
    next: usize,
}

fn known(record: &Record) -> Known {
    (record.epoch, record.body.next_sid().unwrap_or_default())
}

impl World {
    fn new(seed: u64, bug: Option<Bug>) -> Arc<Self> {
        let random = SeededRandom::new(seed);
        let sharding = Sharding::new(PartitionCount::new(4).unwrap(), 2 + random.below(3) as u16).unwrap();
        Arc::new(Self {
            log: SharedShards::new(sharding),
            sharding,
            bug,
            trims: random.one_in(4),
            under_way: Mutex::default(),
            writers: Mutex::default(),
            followers: Mutex::default(),
            acknowledged: Mutex::default(),
            seen: Mutex::new(sharding.all().map(|_| BTreeMap::new()).collect()),
            wrong: Mutex::default(),
            last_epoch: AtomicU64::new(0),
            last_id: AtomicU64::new(0),
            depth: AtomicU64::new(0),
            calm: AtomicU64::new(0),
            replaced: AtomicU64::new(0),
            random,
        })
    }

    fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed) > 0
    }

    /// Returns true once in `times` calls on average, and never once faults are over.
    fn strikes(&self, times: u64) -> bool {
        !self.is_calm() && self.random.one_in(times)
    }

    fn say_wrong(&self, what: String) {
        self.wrong.lock().get_or_insert(what);
    }

    /// Lets one of the messages in flight arrive.
    fn deliver(&self) -> bool {
        let mut under_way = self.under_way.lock();
        under_way.retain(|_, messages| !messages.is_empty());
        let which = self.random.below(under_way.len().max(1) as u64) as usize;
        let Some((key, messages)) = under_way.iter_mut().nth(which) else { return false };
        if let Some(message) = messages.pop_front() {
            self.log.shard(ShardId(key.1)).arrive([message]);
        }
        true
    }

    /// Lets other processes act between two steps of a sequencer.
    fn meanwhile(self: &Arc<Self>) {
        (0..self.random.below(3)).for_each(|_| _ = self.deliver());
        if self.is_calm() || self.wrong.lock().is_some() {
            return;
        }
        if self.random.one_in(4) {
            self.follow();
        }
        if self.depth.load(Ordering::Relaxed) < 3 && self.random.one_in(20) {
            self.depth.fetch_add(1, Ordering::Relaxed);
            self.act();
            self.depth.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lets a sequencer act.
    fn act(self: &Arc<Self>) {
        let idle = self.writers.lock().len() as u64;
        if idle == 0 || self.random.one_in(8) {
            self.take_over();
            return;
        }
        let (epoch, mut log) = self.writers.lock().swap_remove(self.random.below(idle) as usize);
        if self.trims && self.random.one_in(6) {
            let below = self.random.below(log.tail().map_or(0, |tail| tail.version.0) + 1);
            // A deposed sequencer also trims complete records.
            log.trim(Version(below)).unwrap();
        }
        if self.append(epoch, &mut log) {
            self.writers.lock().push((epoch, log));
        }
    }

    /// Appends some records. Returns false if the log accepts no more.
    fn append(self: &Arc<Self>, epoch: Epoch, log: &mut ShardedLog) -> bool {
        let mut version = log.tail().map_or(Version(0), |tail| tail.version);
        let records: Vec<Record> = (0..1 + self.random.below(3))
            .map(|_| {
                version = version.next();
                self.record(epoch, version)
            })
            .collect();
        match log.append(&records) {
            Ok(()) => {
                for record in &records {
                    let before = self.acknowledged.lock().insert(record.version, known(record));
                    if let Some(before) = before {
                        let version = record.version;
                        let now = known(record);
                        self.say_wrong(format!("{version} was acknowledged as {before:?} and as {now:?}"));
                    }
                }
                if self.is_calm() || self.random.one_in(2) {
                    log.on_idle();
                }
                true
            }
            Err(Error::Poisoned { .. }) => false,
            Err(error) => {
                self.say_wrong(error.to_string());
                false
            }
        }
    }

    fn record(&self, epoch: Epoch, version: Version) -> Record {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let gui = || Gui(self.random.below(4) << 48 | id);
        let vertex = |_| Mutation::CreateVertex {
            gui: gui(),
            id: id.to_string().into(),
            labels: vec![],
            properties: vec![],
        };
        let mutations = (0..self.random.below(4)).map(vertex).collect();
        let body = Body::Commit { mutations, next_sid: Sid(id), request: None, changes: None };
        Record { shard: ShardId(0), epoch, version, body }
    }

    /// A new sequencer gets the lease under the next epoch, and takes over if it can.
    fn take_over(self: &Arc<Self>) -> bool {
        let epoch = Epoch(self.last_epoch.fetch_add(1, Ordering::Relaxed) + 1);
        let shard =
            |shard| TestShard::new(self.clone(), epoch, shard).map(|shard| Box::new(shard) as Box<dyn Shard>);
        let shards = self.sharding.all().map(shard).collect::<Result<Vec<_>, Error>>();
        let mut log = match shards.and_then(|shards| ShardedLog::open(shards, self.sharding, epoch)) {
            Ok(log) => log,
            Err(Error::Poisoned { .. } | Error::Behind { .. }) => return false,
            Err(error) => {
                self.say_wrong(error.to_string());
                return false;
            }
        };
        self.recover(epoch, &mut log);
        self.meanwhile();
        let goes_on = !self.strikes(6) && self.append(epoch, &mut log);
        if goes_on {
            self.writers.lock().push((epoch, log));
        }
        goes_on
    }

    /// Checks that a new sequencer finds every acknowledged record.
    fn recover(&self, epoch: Epoch, log: &mut ShardedLog) {
        let Some(first) = log.first() else {
            if self.acknowledged.lock().values().any(|known| known.0 < epoch) {
                self.say_wrong(format!("epoch {epoch} finds nothing"));
            }
            return;
        };
        let mut found = BTreeMap::new();
        let records = match log.read_from(first) {
            Ok(records) => records,
            // Another sequencer took over in the meantime. The next attempt sees it.
            Err(Error::Trimmed { .. }) => return,
            Err(error) => return self.say_wrong(error.to_string()),
        };
        for record in records {
            match record {
                Ok(record) => found.insert(record.version, known(&record)),
                Err(error) => return self.say_wrong(format!("epoch {epoch} recovers: {error}")),
            };
        }
        for (version, known) in self.acknowledged.lock().range(first..).filter(|(_, known)| known.0 < epoch) {
            if found.get(version) != Some(known) {
                let found = found.get(version);
                self.say_wrong(format!(
                    "{version} was acknowledged as {known:?}, epoch {epoch} finds {found:?}"
                ));
            }
        }
    }

    /// Starts a follower, or lets one continue reading.
    fn follow(&self) {
        let mut followers = self.followers.lock();
        if followers.len() < 3 || self.random.one_in(20) {
            let shard = ShardId(self.random.below(u64::from(self.sharding.shards())) as u16);
            followers.extend(self.begin(shard));
        }
        if followers.is_empty() {
            return;
        }
        if followers.len() > 12 {
            followers.remove(0);
        }
        let one = self.random.below(followers.len() as u64) as usize;
        let upto = self.random.below(30) as usize;
        if !self.read(&mut followers[one], upto) {
            followers.remove(one);
        }
    }

    /// Starts a follower behind any record that was handed out, or at the beginning of the log.
    fn begin(&self, shard: ShardId) -> Option<Follower> {
        let at = {
            let seen = &self.seen.lock()[usize::from(shard.0)];
            let which = self.random.below(seen.len() as u64 + 1) as usize;
            let record = seen.iter().nth(which);
            record.map_or(Position::default(), |(version, (epoch, _))| Position {
                version: *version,
                epoch: *epoch,
            })
        };
        // Records that were trimmed in the meantime are only in checkpoints.
        let (mut following, mut next) = begin(self.log.shard(shard), at).ok()??;
        let low = self.log.shard(shard).first_number()?;
        if following.at().version > Version(0) && next > low && self.random.one_in(2) {
            // The exact start does not matter, as long as it is not too late.
            next -= self.random.below((next - low) as u64 + 1) as usize;
            following = FollowerState::behind(Layout::Sharded, at);
        }
        Some(Follower { shard, following, next })
    }

    /// Reads some messages. Returns false if they were trimmed.
    fn read(&self, follower: &mut Follower, upto: usize) -> bool {
        let messages = self.log.shard(follower.shard).messages(follower.next);
        if messages.first().is_some_and(|(number, _)| *number > follower.next) {
            return false;
        }
        for (number, message) in messages.into_iter().take(upto) {
            let head = message.head();
            follower.next = number + 1;
            let record = || match message {
                Message::Part { part, .. } => Ok(part.record),
                Message::Signal { .. } => Err("a signal is no record".to_owned()),
            };
            if let Err(reason) = follower.following.accept(head, |reason| reason, record) {
                self.say_wrong(format!("shard {}: {reason}", follower.shard));
                return false;
            }
            while let Some(record) = follower.following.next() {
                let (shard, version, known) = (follower.shard, record.version, known(&record));
                let seen = &mut self.seen.lock()[usize::from(shard.0)];
                let before = seen.insert(version, known);
                if before.is_some_and(|before| before != known) {
                    self.say_wrong(format!(
                        "shard {shard}: {version} was {before:?} for another one, is {known:?}"
                    ));
                }
            }
        }
        true
    }

    /// Ends the faults: a last sequencer takes over, all messages arrive, and all followers read everything.
    fn finish(self: &Arc<Self>) -> Result<u64, String> {
        self.calm.store(1, Ordering::Relaxed);
        while self.deliver() {}
        self.writers.lock().clear();
        if !self.take_over() && self.wrong.lock().is_none() {
            return Err("the last sequencer could not take over".into());
        }
        while self.deliver() {}
        let last = self.writers.lock().pop();
        if let Some(wrong) = self.wrong.lock().take() {
            return Err(wrong);
        }
        let Some((_, mut log)) = last else { return Err("there is no last sequencer".into()) };
        let (Some(first), Some(tail)) = (log.first(), log.tail()) else {
            return Err("the log is empty".into());
        };
        let mut followers = std::mem::take(&mut *self.followers.lock());
        followers.extend(self.sharding.all().filter_map(|shard| {
            let at = Position { version: Version(first.0 - 1), epoch: Epoch(0) };
            let begun = begin(self.log.shard(shard), at).unwrap();
            begun.map(|(following, next)| Follower { shard, following, next })
        }));
        for mut follower in followers {
            let reads = self.read(&mut follower, usize::MAX);
            let at = follower.following.at().version;
            if reads && at != tail.version {
                return Err(format!(
                    "a follower of shard {} came to {at} of {}",
                    follower.shard, tail.version
                ));
            }
        }
        if let Some(wrong) = self.wrong.lock().take() {
            return Err(wrong);
        }
        let written: BTreeMap<Version, Known> = log
            .read_from(first)
            .map_err(|error| error.to_string())?
            .map(|record| record.map(|record| (record.version, known(&record))))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        for (shard, seen) in self.seen.lock().iter().enumerate() {
            let seen: BTreeMap<_, _> = seen.range(first..).map(|(v, known)| (*v, *known)).collect();
            if seen != written {
                return Err(format!("shard {shard} hands out {seen:?}, the log has {written:?}"));
            }
        }
        for (version, known) in self.acknowledged.lock().iter() {
            let handed =
                self.seen.lock().iter().all(|seen| seen.get(version).is_none_or(|seen| seen == known));
            if !handed || *version >= first && written.get(version) != Some(known) {
                return Err(format!("{version} was acknowledged as {known:?} and is another one"));
            }
        }
        Ok(self.acknowledged.lock().len() as u64)
    }
}

/// Counts of a history: acknowledged records, epochs, and shards in which records were replaced.
fn history(seed: u64, bug: Option<Bug>) -> Result<[u64; 3], String> {
    let world = World::new(seed, bug);
    for _ in 0..20 {
        world.meanwhile();
        world.act();
        if world.wrong.lock().is_some() {
            break;
        }
    }
    let ended = match world.wrong.lock().take() {
        Some(wrong) => Err(wrong),
        None => Ok(()),
    };
    let ended = ended.and_then(|()| world.finish());
    // Break the cycle of references between writers and world.
    world.writers.lock().clear();
    let epochs = world.last_epoch.load(Ordering::Relaxed);
    let replaced = world.replaced.load(Ordering::Relaxed);
    ended.map(|acknowledged| [acknowledged, epochs, replaced])
}

#[test]
fn behaves_as_a_log() {
    for shards in [2, 3, 4] {
        let sharding = Sharding::new(PartitionCount::new(4).unwrap(), shards).unwrap();
        crate::testing::log_test_suite(|| Box::new(SharedShards::new(sharding).open(Epoch(1)).unwrap()));
    }
}

/// Shows LOG-2 and LOG-4.
#[test]
fn what_one_shard_hands_out_all_do_and_nothing_acknowledged_is_lost() {
    let mut all = [0; 3];
    for seed in 0..2_000 {
        let counts = history(seed, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    println!("acknowledged, epochs, replaced: {all:?}");
    assert!(all[0] > 50_000 && all[1] > 30_000 && all[2] > 10_000, "too little happened: {all:?}");
}

#[test]
fn planted_defects_are_found() {
    for bug in [Bug::AcknowledgeEarly, Bug::FenceLate, Bug::LowestEnd] {
        let found: Vec<u64> = (0..300).filter(|seed| history(*seed, Some(bug)).is_err()).collect();
        println!("{bug:?} is found by {} of 300 seeds, the first is {:?}", found.len(), found.first());
        assert!(found.len() >= 3, "{bug:?} is found by {found:?}");
    }
}

//! The log of a world: one broker, writers that send it messages, and readers that decide which of them count.
//!
//! Roles: [`Broker`] has the records that count; [`Writer`] is the log as one process has
//! opened it for writing; [`Reader`] follows it. In half of the worlds the records are
//! stored in a real `FileLog`, on a disk that tears writes when the machine crashes. Some worlds have a log of several
//! shards instead: the real `ShardedLog`, whose messages to each shard may be lost, late or repeated; a shard may stop
//! answering, and its followers may fall behind those of other shards.
//!
//! A record counts if its version follows that of the last record that counted and its epoch is not lower (ADR
//! 0008). A writer sends all records of an append as one message. The message may be lost, arrive in part,
//! late or twice, or arrive while its answer is lost; and a late message of another writer may arrive before
//! it. A writer that does not know that all of its records count reports an error, and writes nothing more.
//!
//! What must never happen: a record that readers saw is missing later (LOG-2).

use crate::config::Bug;
use crate::process::Process;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_log::testing::{Carrier, Delivery, ShardsObserver, SharedShards};
use tidegraph_log::{
    Body, Error, FileLogOptions, Follower, LogBackend, LogLocation, LogStore, Position, Record, Records, Tail,
};
use tidegraph_platform::{FaultyDisk, Random, SeededRandom};
use tidegraph_types::{Epoch, ShardId, Sharding, Version};

/// Small, so that the log has several files and trims some.
const FILE_BYTES: u64 = 8 << 10;
/// Share of polls that return no record while followers lag, in thousandths.
pub(crate) const LAG: u64 = 980;

/// The service of the log.
#[derive(Clone)]
pub(crate) struct Broker(Arc<Mutex<State>>);

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").finish_non_exhaustive()
    }
}

struct State {
    /// All records that ever counted, by version from 1, including trimmed ones.
    history: Vec<Record>,
    first: Version,
    disk: Option<(FaultyDisk, Option<Box<dyn LogStore>>)>,
    up: bool,
    /// The shards, if there are several.
    sharded: Option<Sharded>,
    /// Late messages, by time of arrival and number.
    under_way: BTreeMap<(u64, u64), Late>,
    sent: u64,
    random: SeededRandom,
    /// Share of appends that fail in some way, in thousandths.
    wrong: u64,
    /// Longest time of an append, in microseconds.
    slow: u64,
    /// Whether half of the messages to shards are lost, each for itself: appends reach some shards and not others.
    torn: bool,
    bug: Option<Bug>,
    /// Whether the graph is being split, for the planted defect.
    splitting: bool,
}

/// A message that arrives later.
enum Late {
    /// Records for a log of one shard.
    Records(Vec<Record>),
    /// Messages that this shard keeps under the number of the entry.
    Shard(ShardId),
}

/// The shards of a log.
struct Sharded {
    log: SharedShards,
    observer: ShardsObserver,
    /// The first contradiction between shards.
    contradiction: Option<String>,
    /// Shards whose followers receive few records.
    lagging: BTreeSet<ShardId>,
}

impl Broker {
    pub fn new(
        on_disk: bool,
        sharding: Sharding,
        wrong: u64,
        bug: Option<Bug>,
        seed: u64,
    ) -> Result<Self, Error> {
        let sharded = if sharding.shards() > 1 {
            let log = SharedShards::new(sharding);
            let observer = log.observe()?;
            Some(Sharded { log, observer, contradiction: None, lagging: BTreeSet::new() })
        } else {
            None
        };
        let disk = on_disk.then(|| FaultyDisk::new(seed ^ 0xd15c));
        let mut state = State {
            history: Vec::new(),
            first: Version(1),
            disk: disk.map(|disk| (disk, None)),
            up: true,
            sharded,
            under_way: BTreeMap::new(),
            sent: 0,
            random: SeededRandom::new(seed),
            wrong,
            slow: 2_000,
            torn: false,
            bug,
            splitting: false,
        };
        state.open()?;
        Ok(Self(Arc::new(Mutex::new(state))))
    }

    pub fn set_wrong(&self, wrong: u64) {
        self.0.lock().wrong = wrong;
    }

    pub fn set_slow(&self, micros: u64) {
        self.0.lock().slow = micros;
    }

    pub fn set_splitting(&self, splitting: bool) {
        self.0.lock().splitting = splitting;
    }

    pub fn set_torn(&self, torn: bool) {
        self.0.lock().torn = torn;
    }

    /// Returns the version of the last record that counts.
    pub fn newest(&self) -> Version {
        let mut state = self.0.lock();
        state.observe();
        Version(state.history.len() as u64)
    }

    /// Returns how the shards contradict each other, or what readers saw; `None` if they do not (LOG-2, LOG-4).
    pub fn contradiction(&self) -> Option<String> {
        let mut state = self.0.lock();
        state.observe();
        state.sharded.as_ref()?.contradiction.clone()
    }

    /// Reads the shards anew, and compares them with what readers saw.
    pub fn check_shards(&self) -> Result<(), String> {
        let mut state = self.0.lock();
        state.observe();
        let Some(sharded) = &state.sharded else { return Ok(()) };
        if let Some(contradiction) = &sharded.contradiction {
            return Err(contradiction.clone());
        }
        let mut observer = sharded.log.observe().map_err(|error| error.to_string())?;
        let records = observer.look().map_err(|error| error.to_string())?;
        let seen = state.history.len() - records.len().min(state.history.len());
        let differs = state.history[seen..].iter().zip(&records).find(|(seen, here)| seen != here);
        differs
            .map_or(Ok(()), |(seen, here)| Err(format!("readers saw {seen:?}, and the shards have {here:?}")))
    }

    /// Makes a shard stop answering, or answer again.
    pub fn set_away(&self, shard: ShardId, away: bool) {
        if let Some(sharded) = &self.0.lock().sharded {
            sharded.log.shard(shard).set_away(away);
        }
    }

    /// Makes followers of a shard receive few records, or all again.
    pub fn set_lagging(&self, shard: ShardId, lags: bool) {
        if let Some(sharded) = &mut self.0.lock().sharded {
            if lags {
                sharded.lagging.insert(shard);
            } else {
                sharded.lagging.remove(&shard);
            }
        }
    }

    pub fn first(&self) -> Version {
        self.0.lock().first
    }

    /// Returns all records that have ever counted.
    pub fn history(&self) -> Vec<Record> {
        let mut state = self.0.lock();
        state.observe();
        state.history.clone()
    }

    /// Returns the record of a version.
    pub fn record(&self, version: Version) -> Option<Record> {
        let index = usize::try_from(version.0.checked_sub(1)?).ok()?;
        let mut state = self.0.lock();
        state.observe();
        state.history.get(index).cloned()
    }

    /// Returns when the next late message arrives.
    pub fn next_late(&self) -> Option<u64> {
        self.0.lock().under_way.first_key_value().map(|((due, _), _)| *due)
    }

    /// Delivers late messages that are due.
    pub fn deliver(&self, micros: u64) {
        self.0.lock().deliver(micros);
    }

    /// Crashes the broker's machine: now, or with a disk in the middle of one of the next writes if `in_a_write`.
    pub fn crash(&self, in_a_write: bool) {
        let mut state = self.0.lock();
        if in_a_write {
            let operations = state.random.below(3);
            if let Some((disk, _)) = &state.disk {
                disk.crash_after(operations);
                return;
            }
        }
        state.up = false;
    }

    pub fn is_up(&self) -> bool {
        self.0.lock().up
    }

    /// Starts the broker again. An error means that it lost records that readers saw.
    pub fn restart(&self) -> Result<(), Error> {
        let mut state = self.0.lock();
        let state = &mut *state;
        state.up = true;
        let Some((disk, log)) = &mut state.disk else { return Ok(()) };
        // Releases the lock of the earlier process.
        drop(log.take());
        disk.crash();
        state.open()
    }
}

impl State {
    /// Opens the log on disk, and adds its complete records that readers have not seen yet.
    fn open(&mut self) -> Result<(), Error> {
        let Some((disk, log)) = &mut self.disk else { return Ok(()) };
        let options = FileLogOptions { file_bytes: FILE_BYTES, ..FileLogOptions::default() };
        let location = LogLocation::File { disk: Arc::new(disk.clone()), dir: "/log".into(), options };
        let mut opened = location.open(Sharding::ONE, Epoch(0))?;
        let from = opened.first().unwrap_or(Version(1));
        let found: Vec<Record> = opened.read_from(from)?.collect::<Result<_, _>>()?;
        *log = Some(opened);
        let lost = |what: String| Error::poisoned(what);
        for record in &found {
            match self.history.get(record.version.0 as usize - 1) {
                Some(known) if known == record => {}
                Some(_) => return Err(lost(format!("record {} has changed", record.version))),
                None => self.history.push(record.clone()),
            }
        }
        let end = found.last().map_or(from.0 - 1, |record| record.version.0);
        if end < self.history.len() as u64 {
            let seen = self.history.len();
            return Err(lost(format!("readers saw the log up to version {seen}, and it ends at {end}")));
        }
        Ok(())
    }

    /// Adds the records that all shards have by now.
    fn observe(&mut self) {
        let Some(sharded) = self.sharded.as_mut().filter(|sharded| sharded.contradiction.is_none()) else {
            return;
        };
        match sharded.observer.look() {
            Ok(records) => self.history.extend(records),
            Err(error) => sharded.contradiction = Some(error.to_string()),
        }
    }

    fn tail(&self) -> Option<Tail> {
        self.history.last().map(|record| Tail { version: record.version, epoch: record.epoch })
    }

    /// Takes a message. Returns how many of its records count, or `None` if the broker is down.
    fn arrive(&mut self, records: &[Record]) -> Option<usize> {
        if !self.up {
            return None;
        }
        let mut tail = self.tail();
        let skip_epochs = self.bug == Some(Bug::SkipEpochCheck);
        let counts = |record: &&Record| {
            let follows = tail.map_or(record.version == Version(1), |tail| {
                record.version == tail.version.next() && (skip_epochs || record.epoch >= tail.epoch)
            });
            if follows {
                tail = Some(Tail { version: record.version, epoch: record.epoch });
            }
            follows
        };
        let counting: Vec<Record> = records.iter().filter(counts).cloned().collect();
        if let Some((_, log)) = &mut self.disk
            && !counting.is_empty()
            && log.as_mut().is_none_or(|log| log.append(&counting).is_err())
        {
            self.up = false;
            return None;
        }
        let count = counting.len();
        self.history.extend(counting);
        Some(count)
    }

    fn deliver(&mut self, micros: u64) {
        while self.up
            && let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= micros
        {
            let number = entry.key().1;
            match (entry.remove(), &self.sharded) {
                (Late::Records(records), _) => {
                    self.arrive(&records);
                }
                (Late::Shard(shard), Some(sharded)) => sharded.log.shard(shard).deliver(number),
                (Late::Shard(_), None) => {}
            }
        }
    }

    /// Decides what becomes of messages to a shard. Returns also the time of the append in microseconds.
    fn carry(&mut self, shard: ShardId, messages: usize, now: u64, cut: bool) -> (Delivery, u64) {
        let until = if self.random.one_in(8) { u64::MAX } else { now };
        self.deliver(until);
        let took = 200 + self.random.below(self.slow);
        if cut || !self.up {
            return (Delivery::Part(0), took);
        }
        if self.torn && self.random.one_in(2) {
            return (Delivery::Part(0), took);
        }
        // An append fails if one of its shards does.
        let shards = self.sharded.as_ref().map_or(1, |sharded| sharded.log.shards().len() as u64);
        if self.random.below(1000) >= self.wrong.div_ceil(shards) {
            return (Delivery::Arrive, took);
        }
        match self.random.below(7) {
            0 => (Delivery::Part(0), took),
            1 => (Delivery::Unanswered, took),
            2 => (Delivery::Part(self.random.below(messages as u64 + 1) as usize), took),
            3 | 4 => (Delivery::Late(self.later(Late::Shard(shard), now)), took),
            5 => (Delivery::Twice(self.later(Late::Shard(shard), now)), took),
            _ => (Delivery::Arrive, self.random.below(3_000_000)),
        }
    }

    fn send_late(&mut self, records: &[Record], now: u64) {
        self.later(Late::Records(records.to_vec()), now);
    }

    /// Queues a late message, and returns its number.
    fn later(&mut self, late: Late, now: u64) -> u64 {
        // The message often arrives about when another process gets the lease.
        let after = match self.random.below(4) {
            0 => self.random.below(20_000),
            1 => self.random.below(8_000_000),
            _ => 200_000 + self.random.below(1_500_000),
        };
        self.sent += 1;
        self.under_way.insert((now + after, self.sent), late);
        self.sent
    }

    /// Sends an append. Returns how many of its records count, if that is known; its
    /// time in microseconds; and what failed.
    fn send(&mut self, records: &[Record], now: u64, cut: bool) -> (Option<usize>, u64, &'static str) {
        if self.random.one_in(8) {
            // Late messages are faster this time.
            self.deliver(u64::MAX);
        } else {
            self.deliver(now);
        }
        let took = 200 + self.random.below(self.slow);
        if cut {
            return (None, took, "cut off");
        }
        // Long messages fail more often: they can arrive in part, and the late part can follow records of others.
        let wrong = if records.len() > 2 { 3 * self.wrong } else { self.wrong };
        if self.random.below(1000) >= wrong {
            let before = self.tail();
            let counted = self.arrive(records);
            let takes_over = self.tail().map(|tail| tail.epoch) > before.map(|tail| tail.epoch);
            if takes_over && self.random.one_in(2) {
                // Late messages of the deposed sequencer arrive just now.
                self.deliver(u64::MAX);
            }
            return (counted, took, "");
        }
        match self.random.below(7) {
            0 => (None, took, "the message is lost"),
            1 => {
                self.arrive(records);
                (None, took, "the answer is lost")
            }
            2 => {
                let part = self.random.below(records.len() as u64 + 1) as usize;
                self.arrive(&records[..part]);
                if self.random.one_in(2) {
                    self.send_late(&records[part..], now);
                }
                (None, took, "a part arrives")
            }
            3 | 4 => {
                self.send_late(records, now);
                (None, took, "the message is late")
            }
            5 => {
                let counted = self.arrive(records);
                self.send_late(records, now);
                (counted, took, "the message comes twice")
            }
            _ => {
                let counted = self.arrive(records);
                (counted, self.random.below(3_000_000), "the disk is slow")
            }
        }
    }
}

/// The log as one process reaches it.
#[derive(Clone)]
pub(crate) struct SimLog {
    pub broker: Broker,
    pub process: Arc<Process>,
    /// Share of polls that return no record, in thousandths.
    pub lag: Arc<AtomicU64>,
}

impl LogBackend for SimLog {
    fn follow(&self, shard: ShardId, after: Position) -> Box<dyn Follower> {
        if let Some(sharded) = &self.broker.0.lock().sharded {
            let inner = sharded.log.follow(shard, after);
            return Box::new(ShardReader { log: self.clone(), shard, inner });
        }
        let loses = {
            let state = self.broker.0.lock();
            state.splitting && state.bug == Some(Bug::LoseWhileSplitting)
        };
        Box::new(Reader { log: self.clone(), at: after.version, swapped: None, loses })
    }

    fn open(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, Error> {
        let mut state = self.broker.0.lock();
        if !state.up || !self.process.reaches_log() {
            return Err(away());
        }
        if let Some(sharded) = &state.sharded {
            let carrier: Arc<dyn Carrier> = Arc::new(ProcessCarrier(self.clone()));
            let shards = sharded.log.through(&carrier);
            // The carrier takes the lock.
            drop(state);
            let inner = Box::new(shards.open(epoch)?);
            return Ok(Box::new(ShardsWriter { log: self.clone(), inner }));
        }
        state.deliver(self.process.clock.busy_until());
        let tail = state.tail();
        Ok(Box::new(Writer { log: self.clone(), tail, poisoned: None }))
    }
}

/// Carries the messages of one process to the shards.
struct ProcessCarrier(SimLog);

impl std::fmt::Debug for ProcessCarrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessCarrier").finish_non_exhaustive()
    }
}

impl Carrier for ProcessCarrier {
    fn carry(&self, shard: ShardId, messages: usize) -> Delivery {
        let (process, broker) = (&self.0.process, &self.0.broker);
        let now = process.clock.busy_until();
        let (delivery, took) = broker.0.lock().carry(shard, messages, now, !process.reaches_log());
        process.clock.spend(took);
        if delivery != Delivery::Arrive {
            process.note(format_args!("sends {messages} messages to shard {shard}: {delivery:?}"));
        }
        delivery
    }
}

/// A log of several shards as one process has opened it for writing.
struct ShardsWriter {
    log: SimLog,
    inner: Box<dyn LogStore>,
}

impl ShardsWriter {
    fn reach(&self) -> Result<(), Error> {
        let reaches = self.log.broker.is_up() && self.log.process.reaches_log();
        if reaches { Ok(()) } else { Err(away()) }
    }
}

impl LogStore for ShardsWriter {
    fn append(&mut self, records: &[Record]) -> Result<(), Error> {
        let appended = self.inner.append(records);
        self.log.process.panic_if(&self.log.process.append_panics);
        if let (Some(first), Some(last)) = (records.first(), records.last()) {
            let (epoch, ended) = (last.epoch, appended.is_ok());
            self.log.process.note(format_args!(
                "appends {} to {} under epoch {epoch}: {ended}",
                first.version, last.version
            ));
        }
        appended
    }

    fn read_from(&mut self, version: Version) -> Result<Records<'_>, Error> {
        self.reach()?;
        self.inner.read_from(version)
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        self.reach()?;
        // The observer sees all records before they are gone.
        self.log.broker.newest();
        self.inner.trim(below)?;
        let mut state = self.log.broker.0.lock();
        state.first = self.inner.first().unwrap_or(state.first).max(state.first);
        self.log.process.note(format_args!("trims the log below {below}; it begins at {}", state.first));
        Ok(())
    }

    fn tail(&self) -> Option<Tail> {
        self.inner.tail()
    }

    fn first(&self) -> Option<Version> {
        self.inner.first()
    }

    fn on_idle(&mut self) {
        self.inner.on_idle();
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}

/// Follows one shard.
struct ShardReader {
    log: SimLog,
    shard: ShardId,
    inner: Box<dyn Follower>,
}

impl Follower for ShardReader {
    fn next(&mut self, _at_most: Duration) -> Result<Option<Record>, Error> {
        self.log.process.panic_if(&self.log.process.read_panics);
        let state = self.log.broker.0.lock();
        let lagging = state.sharded.as_ref().is_some_and(|sharded| sharded.lagging.contains(&self.shard));
        let lag = self.log.lag.load(Ordering::Relaxed).max(if lagging { LAG } else { 0 });
        if state.random.below(1000) < lag || !state.up || !self.log.process.reaches_log() {
            return Ok(None);
        }
        drop(state);
        self.inner.next(Duration::ZERO)
    }

    fn is_near_end(&mut self, within: u64) -> Result<bool, Error> {
        if !self.log.broker.is_up() || !self.log.process.reaches_log() {
            return Err(away());
        }
        self.inner.is_near_end(within)
    }
}

fn away() -> Error {
    Error::poisoned("the log does not answer")
}

/// The log as one process has opened it for writing.
struct Writer {
    log: SimLog,
    tail: Option<Tail>,
    poisoned: Option<&'static str>,
}

impl LogStore for Writer {
    fn append(&mut self, records: &[Record]) -> Result<(), Error> {
        if let Some(reason) = self.poisoned {
            return Err(Error::poisoned(reason));
        }
        let Some(last) = records.last() else { return Ok(()) };
        let process = &self.log.process;
        let mut state = self.log.broker.0.lock();
        let (counted, took, wrong) = state.send(records, process.clock.busy_until(), !process.reaches_log());
        let early = state.bug == Some(Bug::AcknowledgeEarly);
        drop(state);
        process.clock.spend(took);
        let (first, epoch) = (records[0].version, last.epoch);
        process.note(format_args!(
            "appends {first} to {} under epoch {epoch}: {counted:?} count; {wrong}",
            last.version
        ));
        process.panic_if(&process.append_panics);
        if counted != Some(records.len()) && !early {
            let reason = match counted {
                Some(_) => "another sequencer has written to the log",
                None => "it is not known whether the log has the records",
            };
            self.poisoned = Some(reason);
            return Err(Error::poisoned(reason));
        }
        self.tail = Some(Tail { version: last.version, epoch });
        Ok(())
    }

    fn read_from(&mut self, version: Version) -> Result<Records<'_>, Error> {
        let mut state = self.log.broker.0.lock();
        let state = &mut *state;
        if !state.up || !self.log.process.reaches_log() {
            return Err(away());
        }
        if version < state.first {
            return Err(Error::Trimmed { requested: version, first: state.first });
        }
        let end = self.tail.map_or(0, |tail| tail.version.0);
        let found: Vec<Record> = match &mut state.disk {
            Some((_, Some(log))) => {
                let read = log.read_from(version).and_then(|records| records.collect());
                state.up = read.is_ok();
                read.map_err(|_| away())?
            }
            _ => state.history[version.0 as usize - 1..].to_vec(),
        };
        // The writer learns of later records when it writes.
        Ok(Box::new(found.into_iter().filter(move |record| record.version.0 <= end).map(Ok)))
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        let mut state = self.log.broker.0.lock();
        let state = &mut *state;
        let process = &self.log.process;
        if !state.up || !process.reaches_log() {
            return Err(away());
        }
        match &mut state.disk {
            Some((_, Some(log))) => {
                if log.trim(below).is_err() {
                    state.up = false;
                    return Err(away());
                }
                state.first = log.first().unwrap_or(state.first);
            }
            _ => state.first = state.first.max(below),
        }
        process.note(format_args!("trims the log below {below}; it begins at {}", state.first));
        Ok(())
    }

    fn tail(&self) -> Option<Tail> {
        self.tail
    }

    fn first(&self) -> Option<Version> {
        Some(self.log.broker.first())
    }

    fn bytes(&self) -> u64 {
        0
    }
}

/// Follows the log.
struct Reader {
    log: SimLog,
    at: Version,
    /// Body of the previous record, if the planted defect swaps two.
    swapped: Option<Body>,
    /// Whether the next record has no content: a planted defect.
    loses: bool,
}

impl Follower for Reader {
    fn next(&mut self, _at_most: Duration) -> Result<Option<Record>, Error> {
        self.log.process.panic_if(&self.log.process.read_panics);
        let state = self.log.broker.0.lock();
        let wanted = self.at.next();
        let lags = state.random.below(1000) < self.log.lag.load(Ordering::Relaxed);
        if lags || !state.up || !self.log.process.reaches_log() {
            return Ok(None);
        }
        let of = |version: Version| state.history.get(version.0 as usize - 1);
        let Some(record) = of(wanted) else { return Ok(None) };
        if wanted < state.first {
            return Err(Error::Trimmed { requested: wanted, first: state.first });
        }
        let mut record = record.clone();
        if std::mem::take(&mut self.loses) {
            record.body = Body::Tokens { assigned: vec![] };
        }
        if let Some(body) = self.swapped.take() {
            record.body = body;
        } else if state.bug == Some(Bug::ApplyOutOfOrder)
            && self.log.process.name == "n1"
            && let Some(next) = of(wanted.next())
            && matches!((&record.body, &next.body), (Body::Commit { .. }, Body::Commit { .. }))
        {
            self.swapped = Some(std::mem::replace(&mut record.body, next.body.clone()));
        }
        self.at = wanted;
        Ok(Some(record))
    }

    fn is_near_end(&mut self, within: u64) -> Result<bool, Error> {
        if !self.log.broker.is_up() || !self.log.process.reaches_log() {
            return Err(away());
        }
        let newest = self.log.broker.newest();
        Ok(newest.0.saturating_sub(self.at.0) <= within)
    }
}

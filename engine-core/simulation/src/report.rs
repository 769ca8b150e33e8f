//! What is said of a world that has ended.

use crate::checker::Ended;
use crate::config::Config;
use crate::invariants::Violation;
use crate::world::World;
use std::fmt;

/// What happened in a world, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Events.
    pub events: u64,
    /// Transactions that were acknowledged.
    pub acknowledged: u64,
    /// Transactions that were refused.
    pub refused: u64,
    /// Transactions of which the client never learned what became of them.
    pub unknown: u64,
    /// Of the acknowledged ones, those of real workers.
    pub of_workers: u64,
    /// Epochs that somebody led.
    pub takeovers: u64,
    /// Nodes killed.
    pub kills: u64,
    /// Nodes paused.
    pub pauses: u64,
    /// Connections cut, services away or slow.
    pub cuts: u64,
    /// The log's broker went down.
    pub broker_crashes: u64,
    /// Leases stolen.
    pub thefts: u64,
    /// Checkpoints lost.
    pub lost_checkpoints: u64,
    /// Replicas moved.
    pub moves: u64,
    /// Records in the log at the end.
    pub records: u64,
    /// Records trimmed from the log.
    pub trimmed: u64,
}

impl Counts {
    pub(crate) fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Acknowledged => self.acknowledged += 1,
            Ended::Refused => self.refused += 1,
            Ended::Unknown => self.unknown += 1,
        }
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            events: self.events + other.events,
            acknowledged: self.acknowledged + other.acknowledged,
            refused: self.refused + other.refused,
            unknown: self.unknown + other.unknown,
            of_workers: self.of_workers + other.of_workers,
            takeovers: self.takeovers + other.takeovers,
            kills: self.kills + other.kills,
            pauses: self.pauses + other.pauses,
            cuts: self.cuts + other.cuts,
            broker_crashes: self.broker_crashes + other.broker_crashes,
            thefts: self.thefts + other.thefts,
            lost_checkpoints: self.lost_checkpoints + other.lost_checkpoints,
            moves: self.moves + other.moves,
            records: self.records + other.records,
            trimmed: self.trimmed + other.trimmed,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} events, {} records ({} trimmed), {} acknowledged ({} by workers), {} refused, {} unknown; {} take-overs, {} kills, {} pauses, \
             {} cuts, {} crashes of the log, {} thefts, {} lost checkpoints, {} moves",
            self.events,
            self.records,
            self.trimmed,
            self.acknowledged,
            self.of_workers,
            self.refused,
            self.unknown,
            self.takeovers,
            self.kills,
            self.pauses,
            self.cuts,
            self.broker_crashes,
            self.thefts,
            self.lost_checkpoints,
            self.moves
        )
    }
}

/// How a world ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Hash of the whole trace.
    pub hash: u64,
    /// What was violated, if anything.
    pub violation: Option<Violation>,
    /// What happened.
    pub counts: Counts,
    /// The trace, where it was asked for.
    pub lines: Vec<String>,
}

impl Report {
    pub(crate) fn new(mut world: World, violation: Option<Violation>) -> Self {
        world.counts.records = world.broker.newest().0;
        world.counts.trimmed = world.broker.first().0 - 1;
        if let Some(violation) = &violation {
            world.say("world", format_args!("VIOLATION {violation}"));
        }
        let (hash, _, lines) = world.trace.end();
        let (seed, counts) = (world.config.seed, world.counts);
        // What processes do at their end is no part of the world.
        (0..world.seats.len()).for_each(|node| world.kill(node));
        let ended = (0..world.workers.len()).try_for_each(|worker| world.kill_worker(worker));
        let violation = violation.or(ended.err());
        Self { seed, hash, violation, counts, lines }
    }

    pub(crate) fn impossible(config: &Config, error: String) -> Self {
        let violation = Some(Violation { invariant: "FLT-4", what: format!("no world: {error}") });
        Self { seed: config.seed, hash: 0, violation, counts: Counts::default(), lines: vec![] }
    }
}

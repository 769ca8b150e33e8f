//! The report of a world that has ended.

use crate::checker::Ended;
use crate::config::Config;
use crate::copies::NodeDisk;
use crate::invariants::{Invariant, Violation};
use crate::start::SetupError;
use crate::world::World;
use std::fmt;

/// Counts of what happened in a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Events.
    pub events: u64,
    /// Transactions that were acknowledged.
    pub acknowledged: u64,
    /// Transactions that were refused.
    pub refused: u64,
    /// Transactions whose outcome the client never learned.
    pub unknown: u64,
    /// Acknowledged transactions of real workers.
    pub of_workers: u64,
    /// Statements that were answered.
    pub statements: u64,
    /// Answered statements that create or drop an index or a constraint.
    pub schema_changes: u64,
    /// Loads that became visible.
    pub loads: u64,
    /// Loads that were refused or failed.
    pub loads_failed: u64,
    /// Loads whose worker died, and that another one reported on.
    pub loads_lost: u64,
    /// Names in the dictionary.
    pub names: u64,
    /// Scans of all vertices in small pieces that were answered.
    pub scans: u64,
    /// Scans that ran again because a replica was lost.
    pub scans_again: u64,
    /// Replicas restored by a fault.
    pub restores: u64,
    /// Panics drawn.
    pub panics: u64,
    /// Times that all threads of a node were busy.
    pub saturations: u64,
    /// Epochs that had a leader.
    pub takeovers: u64,
    /// Nodes killed.
    pub kills: u64,
    /// Nodes paused.
    pub pauses: u64,
    /// Connections cut, and services away or slow.
    pub cuts: u64,
    /// Crashes of the log's broker.
    pub broker_crashes: u64,
    /// Leases stolen.
    pub thefts: u64,
    /// Checkpoints lost.
    pub lost_checkpoints: u64,
    /// Reads of copies of checkpoints.
    pub reads_of_copies: u64,
    /// Copies of checkpoints that crashes damaged.
    pub damaged_copies: u64,
    /// Replicas moved.
    pub moves: u64,
    /// Splits after which readers asked the new partitions.
    pub splits: u64,
    /// Commands of operators that ended well.
    pub commands: u64,
    /// Commands whose process died.
    pub commands_killed: u64,
    /// Resets of the graph in the log.
    pub resets: u64,
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

    /// Adds two counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            events: self.events + other.events,
            acknowledged: self.acknowledged + other.acknowledged,
            refused: self.refused + other.refused,
            unknown: self.unknown + other.unknown,
            of_workers: self.of_workers + other.of_workers,
            statements: self.statements + other.statements,
            schema_changes: self.schema_changes + other.schema_changes,
            loads: self.loads + other.loads,
            loads_failed: self.loads_failed + other.loads_failed,
            loads_lost: self.loads_lost + other.loads_lost,
            names: self.names + other.names,
            scans: self.scans + other.scans,
            scans_again: self.scans_again + other.scans_again,
            restores: self.restores + other.restores,
            panics: self.panics + other.panics,
            saturations: self.saturations + other.saturations,
            takeovers: self.takeovers + other.takeovers,
            kills: self.kills + other.kills,
            pauses: self.pauses + other.pauses,
            cuts: self.cuts + other.cuts,
            broker_crashes: self.broker_crashes + other.broker_crashes,
            thefts: self.thefts + other.thefts,
            lost_checkpoints: self.lost_checkpoints + other.lost_checkpoints,
            reads_of_copies: self.reads_of_copies + other.reads_of_copies,
            damaged_copies: self.damaged_copies + other.damaged_copies,
            moves: self.moves + other.moves,
            splits: self.splits + other.splits,
            commands: self.commands + other.commands,
            commands_killed: self.commands_killed + other.commands_killed,
            resets: self.resets + other.resets,
            records: self.records + other.records,
            trimmed: self.trimmed + other.trimmed,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} events, {} records ({} trimmed), {} acknowledged ({} by workers), {} refused, {} unknown; {} statements \
             ({} of the schema), {} loads ({} failed, {} lost), {} names; {} scans ({} again), \
             {} restores, {} panics, {} saturations; {} take-overs, {} kills, {} pauses, \
             {} cuts, {} crashes of the log, {} thefts, {} lost checkpoints, {} reads of copies ({} damaged), {} moves, {} resets, {} splits ({} commands, \
             {} killed)",
            self.events,
            self.records,
            self.trimmed,
            self.acknowledged,
            self.of_workers,
            self.refused,
            self.unknown,
            self.statements,
            self.schema_changes,
            self.loads,
            self.loads_failed,
            self.loads_lost,
            self.names,
            self.scans,
            self.scans_again,
            self.restores,
            self.panics,
            self.saturations,
            self.takeovers,
            self.kills,
            self.pauses,
            self.cuts,
            self.broker_crashes,
            self.thefts,
            self.lost_checkpoints,
            self.reads_of_copies,
            self.damaged_copies,
            self.moves,
            self.resets,
            self.splits,
            self.commands,
            self.commands_killed
        )
    }
}

/// The report of a world.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Hash of the whole trace.
    pub hash: u64,
    /// The violated invariant, if any.
    pub violation: Option<Violation>,
    /// Counts of what happened.
    pub counts: Counts,
    /// The lines of the trace, if they were kept.
    pub lines: Vec<String>,
}

impl Report {
    pub(crate) fn new(mut world: World, violation: Option<Violation>) -> Self {
        world.counts.records = world.broker.newest().0;
        world.counts.names = world.names.len() as u64;
        world.count_loads();
        world.counts.reads_of_copies =
            world.slots.iter().filter_map(|slot| slot.disk.as_ref()).map(NodeDisk::reads).sum();
        world.counts.trimmed = world.broker.first().0 - 1;
        if let Some(violation) = &violation {
            world.say("world", format_args!("VIOLATION {violation}"));
        }
        let (hash, _, lines) = world.trace.end();
        let (seed, counts) = (world.config.seed, world.counts);
        // Actions of processes at their end are not part of the trace.
        (0..world.slots.len()).for_each(|node| world.kill(node));
        let ended = (0..world.workers.len()).try_for_each(|worker| world.kill_worker(worker));
        let violation = violation.or(ended.err());
        Self { seed, hash, violation, counts, lines }
    }

    /// The report of a world that could not be built.
    pub(crate) fn without_world(config: &Config, error: &SetupError) -> Self {
        let violation = Some(Violation::new(Invariant::Flt4, format!("no world: {error}")));
        Self { seed: config.seed, hash: 0, violation, counts: Counts::default(), lines: vec![] }
    }
}

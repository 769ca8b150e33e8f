//! The invariants that a world checks. Their names and statements are those of the table in `ARCHITECTURE.md`.

use std::fmt;

/// The page with the table that contains the statements.
const PAGE: &str = include_str!("../../../ARCHITECTURE.md");

/// An invariant that a world checks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Invariant {
    /// LOG-1: each acknowledged transaction is in the log, whose epochs never fall (`exchange.rs`, `rest.rs`).
    Log1,
    /// LOG-2: the log has every record that readers saw, after each crash of its broker (`world.rs`).
    Log2,
    /// LOG-4: all shards of the log agree about each record, and go on to (`world.rs`, `rest.rs`).
    Log4,
    /// TXN-1: versions grow, and none is given twice (`exchange.rs`, `workers.rs`).
    Txn1,
    /// TXN-2: there is an order of all transactions that explains what clients saw (`checker`, `statements.rs`).
    Txn2,
    /// TXN-3: once the creation of a constraint was answered, it holds (`statements.rs`).
    Txn3,
    /// TXN-4: each request is in the log at most once, and its reported outcome is that of the log (`rest.rs`).
    Txn4,
    /// STO-1: each read sees its version and no other, and edges from both ends (`rest.rs`, `statements.rs`).
    Sto1,
    /// APL-2: only a node that has a serving replica of the partition answers a read (`exchange.rs`).
    Apl2,
    /// IDS-1: no SID is handed out twice, and no token has two names (`exchange.rs`).
    Ids1,
    /// LOAD-1: a load becomes visible at one version, as a whole, if and only if its job says so (`loads.rs`).
    Load1,
    /// FLT-1: a replica is never ahead of the log, and answers at no version that it lacks (`world.rs`, `exchange.rs`).
    Flt1,
    /// FLT-2: after all kills, every acknowledged transaction is in the graph, and none in part (`checker`).
    Flt2,
    /// FLT-3: all replicas equal a model of the log once it is still (`rest.rs`).
    Flt3,
    /// FLT-4: once faults are over, a process leads, all replicas serve, and all clients finish (`rest.rs`,
    /// `workers.rs`).
    Flt4,
    /// MAP-3: no epoch has two leaders, and no two processes are sure of the lease at once (`world.rs`).
    Map3,
    /// MAP-4: when readers turn to the partitions of a split, each of them has its replicas (`split.rs`).
    Map4,
}

impl Invariant {
    /// All invariants that a world checks.
    pub const ALL: [Self; 17] = [
        Self::Log1,
        Self::Log2,
        Self::Log4,
        Self::Txn1,
        Self::Txn2,
        Self::Txn3,
        Self::Txn4,
        Self::Sto1,
        Self::Apl2,
        Self::Ids1,
        Self::Load1,
        Self::Flt1,
        Self::Flt2,
        Self::Flt3,
        Self::Flt4,
        Self::Map3,
        Self::Map4,
    ];

    /// Returns the name in `ARCHITECTURE.md`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Log1 => "LOG-1",
            Self::Log2 => "LOG-2",
            Self::Log4 => "LOG-4",
            Self::Txn1 => "TXN-1",
            Self::Txn2 => "TXN-2",
            Self::Txn3 => "TXN-3",
            Self::Txn4 => "TXN-4",
            Self::Sto1 => "STO-1",
            Self::Apl2 => "APL-2",
            Self::Ids1 => "IDS-1",
            Self::Load1 => "LOAD-1",
            Self::Flt1 => "FLT-1",
            Self::Flt2 => "FLT-2",
            Self::Flt3 => "FLT-3",
            Self::Flt4 => "FLT-4",
            Self::Map3 => "MAP-3",
            Self::Map4 => "MAP-4",
        }
    }

    /// Returns the statement of the invariant in `ARCHITECTURE.md`, or `None` if the page has no such row.
    #[must_use]
    pub fn statement(self) -> Option<&'static str> {
        PAGE.lines().find_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
            (cells.next()? == self.name()).then(|| cells.next()).flatten()
        })
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A violation of an invariant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{invariant}: {what}")]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// What the world found.
    pub what: String,
}

impl Violation {
    pub(crate) fn new(invariant: Invariant, what: impl Into<String>) -> Self {
        Self { invariant, what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_checked_invariant_is_in_the_table_of_the_architecture() {
        for invariant in Invariant::ALL {
            assert!(invariant.statement().is_some_and(|text| !text.is_empty()), "{invariant} has no row");
        }
    }
}

//! What is checked, by name. The names are those of `ARCHITECTURE.md`.

use std::fmt;

/// A transaction is committed if and only if its record stands in the log, whose epochs never fall.
pub(crate) const LOG_1: &str = "LOG-1";
/// What was acknowledged, or seen, is found after a crash of the log.
pub(crate) const LOG_2: &str = "LOG-2";
/// Versions grow, and none is given twice.
pub(crate) const TXN_1: &str = "TXN-1";
/// What clients saw can be put in one order, in which nobody goes back in time.
pub(crate) const TXN_2: &str = "TXN-2";
/// A request that is sent again is committed once.
pub(crate) const TXN_4: &str = "TXN-4";
/// A read at a version sees that version and no other, edges from both sides.
pub(crate) const STO_1: &str = "STO-1";
/// A replica is never ahead of the log.
pub(crate) const FLT_1: &str = "FLT-1";
/// Replicas are equal when the log is still.
pub(crate) const FLT_3: &str = "FLT-3";
/// When all faults are over, a fleet comes to rest: somebody leads, all replicas serve.
pub(crate) const FLT_4: &str = "FLT-4";
/// A lease has one holder under one epoch, and two never believe to have it.
pub(crate) const MAP_3: &str = "MAP-3";
/// No SID is handed out twice, and no token has two meanings.
pub(crate) const IDS_1: &str = "IDS-1";

/// The names of all that is checked.
pub const CHECKED: [&str; 11] = [LOG_1, LOG_2, TXN_1, TXN_2, TXN_4, STO_1, FLT_1, FLT_3, FLT_4, MAP_3, IDS_1];

/// Something that must never happen, and did.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Violation {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// What was found.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

impl Violation {
    pub(crate) fn new(invariant: &'static str, what: impl Into<String>) -> Self {
        Self { invariant, what: what.into() }
    }
}

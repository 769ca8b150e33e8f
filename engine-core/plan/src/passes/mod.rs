//! Rewrites of plans, a file each, and their order.

use crate::Plan;
use tidegraph_apl::{Catalog, Statistics};

/// What the passes may know of the graph.
pub struct Knowledge<'a> {
    /// Counts.
    pub statistics: &'a Statistics,
    /// Names to tokens.
    pub catalog: &'a dyn Catalog,
}

/// Runs every pass.
#[must_use]
pub fn optimize(plan: Plan, knowledge: &Knowledge<'_>) -> Plan {
    let _ = knowledge;
    plan
}

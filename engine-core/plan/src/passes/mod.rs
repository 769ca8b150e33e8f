//! Rewrites of plans, a file each, and their order.

pub mod columns;
pub mod eager;
mod estimate;
pub mod keep;
pub mod match_order;

use crate::Plan;
use tidegraph_apl::{Catalog, Statistics};

/// What the passes may know of the graph.
pub struct Knowledge<'a> {
    /// Counts.
    pub statistics: &'a Statistics,
    /// Names to tokens.
    pub catalog: &'a dyn Catalog,
}

/// Runs every pass: patterns get an order first, since the others look at what they became.
#[must_use]
pub fn optimize(mut plan: Plan, knowledge: &Knowledge<'_>) -> Plan {
    match_order::run(&mut plan, knowledge);
    eager::run(&mut plan);
    columns::run(&mut plan);
    keep::run(&mut plan);
    plan
}

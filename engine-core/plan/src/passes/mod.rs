//! Rewrites of plans, a file each, and their order.

pub mod columns;
pub mod eager;
mod estimate;
pub mod keep;
pub mod match_order;

use crate::Plan;
use tidegraph_apl::{Catalog, Statistics};
use tidegraph_types::{Direction, Str, Token};

/// What the passes may know of the graph.
pub struct Knowledge<'a> {
    /// Counts.
    pub statistics: &'a Statistics,
    /// Names to tokens.
    pub catalog: &'a dyn Catalog,
    /// Asks for single vertices; `None`: nobody can be asked.
    pub instances: Option<&'a dyn Instances>,
}

/// What is known of single vertices. Asked while a query is planned, of the few that its text names: the mean degree says
/// nothing of a hub.
pub trait Instances {
    /// Edges of the vertex with an id, of some labels (`None`: of all), about. `None`: unknown.
    fn degree(&self, id: &Str, direction: Direction, labels: Option<&[Token]>) -> Option<u64>;
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

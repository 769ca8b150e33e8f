//! Records the plan after each pass, to show what the optimiser did.

use super::{Knowledge, optimize};
use crate::{Plan, Stopped};
use std::fmt::{self, Display, Formatter};

/// An optimisation, pass by pass. Prints the plan of the front end, the plan after each pass that changed it, and the
/// plan that runs, each as indented text below a heading.
pub struct Trace {
    /// The plan of the front end.
    pub lowered: Plan,
    /// Names of the passes that changed the plan, in their order, each with the plan that it made.
    pub changes: Vec<(&'static str, Plan)>,
}

impl Trace {
    /// Optimises a plan as [`optimize`] does, and keeps a copy of the plan after each change.
    ///
    /// # Errors
    /// As [`optimize`].
    pub fn of(lowered: Plan, knowledge: &Knowledge<'_>) -> Result<Self, Stopped> {
        let mut trace = Self { lowered: lowered.clone(), changes: vec![] };
        optimize(lowered, knowledge, |pass, plan| {
            if plan != trace.optimized() {
                trace.changes.push((pass, plan.clone()));
            }
        })?;
        Ok(trace)
    }

    /// Returns the plan after all passes.
    #[must_use]
    pub fn optimized(&self) -> &Plan {
        self.changes.last().map_or(&self.lowered, |(_, plan)| plan)
    }
}

impl Display for Trace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_section(f, "lowered", &self.lowered)?;
        for (pass, plan) in &self.changes {
            write_section(f, &format!("after {pass}"), plan)?;
        }
        write_section(f, "final", self.optimized())
    }
}

fn write_section(f: &mut Formatter<'_>, heading: &str, plan: &Plan) -> fmt::Result {
    writeln!(f, "{heading}:")?;
    plan.to_string().lines().try_for_each(|line| writeln!(f, "  {line}"))
}

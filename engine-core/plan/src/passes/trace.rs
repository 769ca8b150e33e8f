//! Records the plan after each pass, to show what the optimiser did.

use super::{EstimatedRows, Knowledge, optimize, shown_rows};
use crate::{Plan, Stopped};
use std::fmt::{self, Display, Formatter};

/// An optimisation, pass by pass. Prints the plan of the front end, the plan after each pass that changed it, and the
/// plan that runs with the rows that its operators are estimated to yield, each as indented text below a heading.
pub struct Trace {
    /// The plan of the front end.
    pub lowered: Plan,
    /// Names of the passes that changed the plan, in their order, each with the plan that it made.
    pub changes: Vec<(&'static str, Plan)>,
    /// The estimated rows of each line of the plan that runs, if it is an operator.
    pub rows: Vec<Option<f64>>,
}

impl Trace {
    /// Optimises a plan as [`optimize`] does, and keeps a copy of the plan after each change.
    ///
    /// # Errors
    /// As [`optimize`].
    pub fn of(lowered: Plan, knowledge: &Knowledge<'_>) -> Result<Self, Stopped> {
        let mut trace = Self { lowered: lowered.clone(), changes: vec![], rows: vec![] };
        optimize(lowered, knowledge, |pass, plan| {
            if plan != trace.optimized() {
                trace.changes.push((pass, plan.clone()));
            }
        })?;
        let estimated = EstimatedRows::of(trace.optimized(), knowledge);
        let of_line = |(_, op): (String, Option<&crate::Op>)| estimated.get(op?);
        trace.rows = trace.optimized().lines().into_iter().map(of_line).collect();
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
        writeln!(f, "final:")?;
        for ((line, _), rows) in self.optimized().lines().into_iter().zip(&self.rows) {
            match rows {
                Some(rows) => writeln!(f, "  {line}  (~{})", shown_rows(*rows))?,
                None => writeln!(f, "  {line}")?,
            }
        }
        Ok(())
    }
}

fn write_section(f: &mut Formatter<'_>, heading: &str, plan: &Plan) -> fmt::Result {
    writeln!(f, "{heading}:")?;
    plan.to_string().lines().try_for_each(|line| writeln!(f, "  {line}"))
}

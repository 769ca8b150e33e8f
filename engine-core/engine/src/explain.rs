//! Explains a text: shows the plans that it becomes, without running it.

use crate::query::{Deadline, schema_command, with_deep_stack};
use crate::{Database, Error, Language, Parameters, Query};
use tidegraph_plan::passes::Trace;

impl Database {
    /// Returns the plans of a text without running it: the plan of the front end, the
    /// plan after each optimiser pass that changed it, and the plan that runs. A command
    /// about indexes or constraints has no plan and is returned as it was parsed.
    ///
    /// The text is planned again, with the current statistics of the graph. Later
    /// requests with this text run that plan.
    ///
    /// # Errors
    /// `MalformedQueryException` and `UnsupportedOperationException` as for [`Database::query`], and errors of reading
    /// the graph's newest version.
    pub fn explain(&self, language: Language, text: &str) -> Result<String, Error> {
        if let Some(command) = schema_command(language, text)? {
            return Ok(command.to_string());
        }
        with_deep_stack(text, || {
            let mut printed = String::new();
            let deadline = Deadline::new(&*self.clock, self.options.query_timeout, None);
            let parameters = Parameters::default();
            let query = Query::new(language, text, &parameters);
            self.plan_anew(&query, &deadline, |plan, knowledge| {
                let trace = Trace::of(plan, knowledge)?;
                printed = trace.to_string();
                Ok(trace.optimized().clone())
            })?;
            Ok(printed)
        })
    }
}

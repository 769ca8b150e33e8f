//! Counts the queries of all protocols, with the time until their answers begin.

use super::{Admission, Error};
use std::sync::OnceLock;
use std::time::Duration;
use tidegraph_platform::metric::{self, Queries, QueryOutcome};
use tidegraph_platform::{Clock, RealClock};
use tidegraph_types::{ErrorCode, Kind};

impl Admission {
    /// Runs a query and counts it. If the future is dropped, because the caller has gone, the query counts as failed.
    pub(super) async fn measured<T>(
        &self,
        query: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        static CLOCK: OnceLock<RealClock> = OnceLock::new();
        let clock = CLOCK.get_or_init(RealClock::new);
        // Not when the admission is made: the recorder may be installed later.
        let queries = self.queries.get_or_init(Queries::new);
        let mut measured = Measured { queries, clock, begun: clock.now(), outcome: QueryOutcome::Failed };
        let result = query.await;
        measured.outcome =
            result.as_ref().map_or_else(|error| of_code(error.code()), |_| QueryOutcome::Answered);
        result
    }

    /// Sets the metrics that the graphs of a process share: memory and slots of queries.
    pub(crate) fn note_capacity(&self) {
        let memory = self.memory.whole();
        metric::query_memory(memory.used_bytes(), memory.limit_bytes(), memory.refusals());
        let (running, waiting) = self.slots.used_and_waiting();
        metric::query_slots(running, waiting);
    }
}

/// A query that runs. Dropping it counts it.
struct Measured<'a> {
    queries: &'a Queries,
    clock: &'a RealClock,
    begun: Duration,
    outcome: QueryOutcome,
}

impl Drop for Measured<'_> {
    fn drop(&mut self) {
        self.queries.ended(self.outcome, self.clock.now().saturating_sub(self.begun));
    }
}

/// Returns the outcome of a query that failed with a code.
fn of_code(code: ErrorCode) -> QueryOutcome {
    match code {
        ErrorCode::TooManyRequests | ErrorCode::MemoryLimitExceeded => QueryOutcome::Refused,
        code => match code.kind() {
            Kind::Unavailable | Kind::Unknown | Kind::Corrupt | Kind::Internal => QueryOutcome::Unavailable,
            Kind::Invalid | Kind::NotFound | Kind::Conflict | Kind::Throttled | Kind::Timeout => {
                QueryOutcome::Failed
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_of_the_service_refuse_and_only_its_faults_make_it_unavailable() {
        let of = |outcome| ErrorCode::ALL.iter().copied().filter(move |code| of_code(*code) == outcome);
        let refused: Vec<_> = of(QueryOutcome::Refused).collect();
        assert_eq!(refused, [ErrorCode::MemoryLimitExceeded, ErrorCode::TooManyRequests]);
        let unavailable: Vec<_> = of(QueryOutcome::Unavailable).map(ErrorCode::http_status).collect();
        assert_eq!(unavailable, [503, 520, 500, 500]);
        assert_eq!(of(QueryOutcome::Answered).count(), 0);
        assert!(of(QueryOutcome::Failed).all(|code| code.http_status() < 500));
    }
}

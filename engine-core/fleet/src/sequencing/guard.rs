//! A log that accepts records only while the lease is held, and acknowledges only what it has (FLT-2).

use super::Unsure;
use std::sync::Arc;
use tidegraph_cluster::Tenure;
use tidegraph_log::{Error, LogStore, Record, Records, Tail};
use tidegraph_types::Version;

/// A log that appends records, and acknowledges them, only while its tenure lasts.
pub struct GuardedLog {
    log: Box<dyn LogStore>,
    tenure: Arc<Tenure>,
    unsure: Unsure,
}

impl std::fmt::Debug for GuardedLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardedLog").field("tenure", &self.tenure).finish_non_exhaustive()
    }
}

impl GuardedLog {
    /// Wraps a log. `unsure` decides when the tenure counts as ended.
    #[must_use]
    pub fn new(log: Box<dyn LogStore>, tenure: Arc<Tenure>, unsure: Unsure) -> Self {
        Self { log, tenure, unsure }
    }

    fn check(&self, written: bool) -> Result<(), Error> {
        let over = match self.unsure {
            Unsure::Stop => !self.tenure.is_sure(),
            Unsure::GoOn => self.tenure.has_ended(),
        };
        if !over {
            return Ok(());
        }
        let when = if written { "while the log was written" } else { "before the log was written" };
        let epoch = self.tenure.epoch();
        Err(Error::poisoned(format!("the lease of epoch {epoch} ended {when}")))
    }
}

impl LogStore for GuardedLog {
    fn append(&mut self, records: &[Record]) -> Result<(), Error> {
        self.check(false)?;
        self.log.append(records)?;
        // The records are in the log; the next sequencer finds them and answers for them (TXN-4).
        self.check(true)
    }

    fn read_from(&mut self, version: Version) -> Result<Records<'_>, Error> {
        self.log.read_from(version)
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        self.log.trim(below)
    }

    fn tail(&self) -> Option<Tail> {
        self.log.tail()
    }

    fn first(&self) -> Option<Version> {
        self.log.first()
    }

    fn on_idle(&mut self) {
        self.log.on_idle();
    }

    fn bytes(&self) -> u64 {
        self.log.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidegraph_log::MemoryLog;
    use tidegraph_log::testing::{commit, log_test_suite};
    use tidegraph_platform::ManualClock;
    use tidegraph_types::{Epoch, ShardId};

    fn guarded(clock: &Arc<ManualClock>) -> GuardedLog {
        let tenure = Arc::new(Tenure::new(Epoch(1), clock.clone(), Duration::from_secs(1)));
        GuardedLog::new(Box::new(MemoryLog::new(ShardId(0))), tenure, Unsure::Stop)
    }

    #[test]
    fn behaves_as_a_log_during_its_tenure() {
        log_test_suite(|| Box::new(guarded(&Arc::default())));
    }

    #[test]
    fn takes_no_records_after_its_tenure() {
        let clock = Arc::new(ManualClock::default());
        let mut log = guarded(&clock);
        log.append(&[commit(1, 1, "a")]).unwrap();
        clock.advance(Duration::from_secs(1));
        assert!(matches!(log.append(&[commit(2, 1, "b")]), Err(Error::Poisoned { .. })));
        assert_eq!(log.tail().map(|tail| tail.version), Some(Version(1)));
    }
}

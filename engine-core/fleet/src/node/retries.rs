//! When replicas that could not be brought up are tried again.
//!
//! What must never happen: replicas that can never be brought up keep others from it (FLT-4). They wait outside of the
//! places of restores, for longer after each failure, and those that failed last come last.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::PartitionId;

/// Pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between two attempts. Each may read gigabytes.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The replicas that could not be brought up.
#[derive(Clone, Default)]
pub(super) struct Retries(Arc<Mutex<FxHashMap<PartitionId, Retry>>>);

struct Retry {
    not_before: Duration,
    pause: Duration,
}

impl Retries {
    /// Notes that a replica could not be brought up. Returns the pause before the next attempt.
    pub fn note_failure(&self, partition: PartitionId, now: Duration) -> Duration {
        let mut all = self.0.lock();
        let pause = all.get(&partition).map_or(FIRST_PAUSE, |last| (last.pause * 2).min(LONGEST_PAUSE));
        all.insert(partition, Retry { not_before: now + pause, pause });
        pause
    }

    /// Forgets the failures of a replica that was brought up.
    pub fn note_success(&self, partition: PartitionId) {
        self.0.lock().remove(&partition);
    }

    /// Forgets the replicas that the node no longer holds.
    pub fn retain(&self, held: &[PartitionId]) {
        self.0.lock().retain(|partition, _| held.contains(partition));
    }

    /// Returns those of some partitions whose replicas may be brought up now, in this order: those that did not fail, then
    /// those that have waited for the longest time.
    pub fn due(&self, mut partitions: Vec<PartitionId>, now: Duration) -> Vec<PartitionId> {
        let all = self.0.lock();
        partitions.retain(|partition| all.get(partition).is_none_or(|retry| retry.not_before <= now));
        let overdue = |partition: &PartitionId| all.get(partition).map(|retry| now - retry.not_before);
        partitions.sort_by_key(|partition| overdue(partition).map(Reverse));
        partitions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_those_that_failed_come_after_the_others() {
        let (retries, all) = (Retries::default(), [0, 1, 2, 3].map(PartitionId).to_vec());
        let due = |seconds: u64| {
            let due = retries.due(all.clone(), Duration::from_secs(seconds));
            due.into_iter().map(|partition| partition.0).collect::<Vec<_>>()
        };
        assert_eq!(due(0), [0, 1, 2, 3]);
        let mut now = Duration::from_secs(10);
        let pauses = (0..7).map(|_| {
            let pause = retries.note_failure(PartitionId(1), now);
            now += pause;
            pause.as_secs()
        });
        assert_eq!(pauses.collect::<Vec<_>>(), [1, 2, 4, 8, 16, 30, 30]);
        // The last pause ends 91 seconds after the first failure.
        assert_eq!(due(100), [0, 2, 3]);
        assert_eq!(due(101), [0, 2, 3, 1]);
        retries.note_failure(PartitionId(0), Duration::from_secs(101));
        assert_eq!(due(101), [2, 3, 1]);
        assert_eq!(due(102), [2, 3, 1, 0]);
        retries.note_success(PartitionId(1));
        assert_eq!(due(102), [1, 2, 3, 0]);
        retries.retain(&all[1..]);
        assert_eq!(due(101), [0, 1, 2, 3]);
        assert_eq!(retries.note_failure(PartitionId(1), now).as_secs(), 1);
    }
}

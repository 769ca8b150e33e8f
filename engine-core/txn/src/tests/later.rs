//! Commits for which no thread waits, and logs that sync later.

use super::loads::load_of;
use super::{in_memory, is_conflict, request, start};
use crate::{Error, Sequencer};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tidegraph_log::{LogStore, MemoryLog, Record, Records, Tail};
use tidegraph_types::{CommitRequest, Version};

/// Time limit of waiting for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn later(sequencer: &Sequencer, request: CommitRequest) -> Receiver<Result<Version, Error>> {
    let (on_answer, end) = channel();
    sequencer.commit_later(request, Box::new(move |answer| on_answer.send(answer).unwrap()));
    end
}

#[test]
fn it_is_answered_when_it_can_be_read() {
    let (sequencer, numbers) = in_memory();
    let version =
        later(&sequencer, request(Version(0), &[], &[(1, 10)])).recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(numbers.read(1, version), 10);
    assert!(is_conflict(
        later(&sequencer, request(Version(0), &[1], &[(1, 11)])).recv_timeout(PATIENCE).unwrap()
    ));
    let nothing = request(version, &[], &[]);
    assert_eq!(later(&sequencer, nothing).recv_timeout(PATIENCE).unwrap().unwrap(), version);
}

/// A log in memory that counts its syncs.
#[derive(Default)]
struct Counted {
    inner: MemoryLog,
    syncs_later: bool,
    syncs: Arc<AtomicU32>,
    /// Number of the first sync that fails; 0 for none.
    fails_from: u32,
}

impl LogStore for Counted {
    fn append(&mut self, records: &[Record]) -> Result<(), tidegraph_log::Error> {
        self.inner.append(records)
    }

    fn sync(&mut self) -> Result<(), tidegraph_log::Error> {
        let count = self.syncs.fetch_add(1, Ordering::SeqCst) + 1;
        if self.fails_from > 0 && count >= self.fails_from {
            return Err(tidegraph_log::Error::poisoned("the disk is broken"));
        }
        Ok(())
    }

    fn syncs_later(&self) -> bool {
        self.syncs_later
    }

    fn read_from(&mut self, version: Version) -> Result<Records<'_>, tidegraph_log::Error> {
        self.inner.read_from(version)
    }

    fn trim(&mut self, below: Version) -> Result<(), tidegraph_log::Error> {
        self.inner.trim(below)
    }

    fn tail(&self) -> Option<Tail> {
        self.inner.tail()
    }

    fn first(&self) -> Option<Version> {
        self.inner.first()
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}

/// No other thread is needed if the log does not wait.
#[test]
fn with_a_late_log_it_is_answered_on_the_callers_thread() {
    let (sequencer, numbers) = start(Counted { syncs_later: true, ..Counted::default() });
    let (on_answer, end) = channel();
    let told =
        move |answer: Result<Version, Error>| on_answer.send((answer, std::thread::current().id())).unwrap();
    sequencer.commit_later(request(Version(0), &[], &[(1, 10)]), Box::new(told));
    let (answer, thread) = end.try_recv().unwrap();
    assert_eq!(thread, std::thread::current().id());
    assert_eq!(numbers.read(1, answer.unwrap()), 10);
}

/// Shows LOG-5.
#[test]
fn a_late_log_is_synced_for_loads_and_when_that_is_asked() {
    for syncs_later in [true, false] {
        let syncs = Arc::new(AtomicU32::new(0));
        let (sequencer, _) = start(Counted { syncs_later, syncs: syncs.clone(), ..Counted::default() });
        let count = || syncs.load(Ordering::SeqCst);
        let version = sequencer.commit(request(Version(0), &[], &[(1, 10)])).unwrap();
        assert_eq!(count(), 0);
        sequencer.sync().unwrap();
        // A log that syncs at once gets no request to sync.
        assert_eq!(count(), u32::from(syncs_later));
        let watch = sequencer.begin_load();
        sequencer.commit_load(&watch, load_of(version, &[])).unwrap();
        assert_eq!(count(), u32::from(syncs_later) + 1);
    }
}

#[test]
fn when_a_late_log_cannot_be_synced_no_more_is_written() {
    let (sequencer, numbers) = start(Counted { syncs_later: true, fails_from: 1, ..Counted::default() });
    let version = sequencer.commit(request(Version(0), &[], &[(1, 10)])).unwrap();
    let error = sequencer.sync().unwrap_err();
    assert!(error.to_string().contains("the disk is broken"), "{error}");
    assert!(!sequencer.is_writable());
    assert!(sequencer.commit(request(version, &[], &[(1, 11)])).is_err());
    assert!(sequencer.sync().is_err());
    assert_eq!(numbers.read(1, version), 10);
}

/// Blocking and non-blocking callers hand the lead to each other.
#[test]
fn those_who_wait_and_those_who_do_not_get_all_their_answers() {
    for syncs_later in [true, false] {
        all_get_their_answers(syncs_later);
    }
}

fn all_get_their_answers(syncs_later: bool) {
    let (sequencer, numbers) = start(Counted { syncs_later, ..Counted::default() });
    let versions = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6_u64)
            .map(|thread| {
                let sequencer = &sequencer;
                scope.spawn(move || {
                    let mut waiting = Vec::new();
                    let mut versions = Vec::new();
                    for number in 0..400_i64 {
                        let write = request(Version(0), &[], &[(thread, number)]);
                        if (number as u64 + thread).is_multiple_of(3) {
                            versions.push(sequencer.commit(write).unwrap());
                        } else {
                            waiting.push(later(sequencer, write));
                        }
                    }
                    versions
                        .extend(waiting.into_iter().map(|end| end.recv_timeout(PATIENCE).unwrap().unwrap()));
                    versions
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(versions.iter().collect::<BTreeSet<_>>().len(), 6 * 400);
    let newest = sequencer.version();
    (0..6).for_each(|thread| assert_eq!(numbers.read(thread, newest), 399));
}

#[test]
fn callers_that_do_not_wait_hear_of_a_defect() {
    let (sequencer, _) = in_memory();
    // This vertex cannot be applied.
    let answer = later(&sequencer, request(Version(0), &[], &[(666, 1)])).recv_timeout(PATIENCE).unwrap();
    assert!(matches!(answer, Err(Error::InDoubt { .. })), "{answer:?}");
    let answer = later(&sequencer, request(Version(0), &[], &[(1, 1)])).recv_timeout(PATIENCE).unwrap();
    assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
}

/// A log that panics: all requests of the group are lost.
struct Broken;

impl LogStore for Broken {
    fn append(&mut self, _: &[Record]) -> Result<(), tidegraph_log::Error> {
        panic!("a defect of the log");
    }

    fn read_from(&mut self, _: Version) -> Result<Records<'_>, tidegraph_log::Error> {
        Ok(Box::new(std::iter::empty()))
    }

    fn trim(&mut self, _: Version) -> Result<(), tidegraph_log::Error> {
        Ok(())
    }

    fn tail(&self) -> Option<Tail> {
        None
    }

    fn first(&self) -> Option<Version> {
        None
    }

    fn bytes(&self) -> u64 {
        0
    }
}

#[test]
fn a_dropped_request_is_answered() {
    let (sequencer, _) = start(Broken);
    let ends: Vec<_> = (0..20).map(|n| later(&sequencer, request(Version(0), &[], &[(n, 1)]))).collect();
    let mut in_doubt = 0;
    for end in ends {
        match end.recv_timeout(PATIENCE).unwrap() {
            Err(Error::InDoubt { .. }) => in_doubt += 1,
            // It came after the sequencer had stopped.
            Err(Error::Unavailable { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(in_doubt > 0);
}

#[test]
fn what_was_asked_before_the_end_is_answered_and_nothing_after_it() {
    let (sequencer, numbers) = start(Counted::default());
    let ends: Vec<_> = (0..50).map(|n| later(&sequencer, request(Version(0), &[], &[(n, 7)]))).collect();
    sequencer.shutdown();
    for (n, end) in ends.into_iter().enumerate() {
        let version = end.recv_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(numbers.read(n as u64, version), 7);
    }
    let answer = later(&sequencer, request(Version(0), &[], &[(1, 1)])).recv_timeout(PATIENCE).unwrap();
    assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
}

/// The last handle may be dropped while requests wait, on any thread.
#[test]
fn the_last_handle_may_go_at_any_moment() {
    for _ in 0..200 {
        let (sequencer, _) = start(Counted::default());
        let ends: Vec<_> = (0..5).map(|n| later(&sequencer, request(Version(0), &[], &[(n, 1)]))).collect();
        drop(sequencer);
        for end in ends {
            assert!(end.recv_timeout(PATIENCE).unwrap().is_ok());
        }
    }
}

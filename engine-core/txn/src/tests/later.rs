//! Commits for which no thread waits.

use super::{in_memory, is_conflict, request, start};
use crate::{Error, Sequencer};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tidegraph_log::{LogStore, MemoryLog, Record, Records, Tail};
use tidegraph_types::{CommitRequest, Version};

/// How long an answer may take here.
const PATIENCE: Duration = Duration::from_secs(20);

fn later(sequencer: &Sequencer, request: CommitRequest) -> Receiver<Result<Version, Error>> {
    let (ended, end) = channel();
    sequencer.commit_later(request, Box::new(move |answer| ended.send(answer).unwrap()));
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

/// Callers that wait and callers that do not hand the lead to each other.
#[test]
fn those_who_wait_and_those_who_do_not_get_all_their_answers() {
    let (sequencer, numbers) = in_memory();
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
fn a_defect_is_told_to_them_too() {
    let (sequencer, _) = in_memory();
    // A vertex that cannot be applied.
    let answer = later(&sequencer, request(Version(0), &[], &[(666, 1)])).recv_timeout(PATIENCE).unwrap();
    assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
    let answer = later(&sequencer, request(Version(0), &[], &[(1, 1)])).recv_timeout(PATIENCE).unwrap();
    assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
}

/// A log that panics: the group is lost, whoever asked for it.
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
fn a_request_that_is_lost_is_answered() {
    let (sequencer, _) = start(Broken);
    let ends: Vec<_> = (0..20).map(|n| later(&sequencer, request(Version(0), &[], &[(n, 1)]))).collect();
    for end in ends {
        let answer = end.recv_timeout(PATIENCE).unwrap();
        assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
    }
}

#[test]
fn what_was_asked_before_the_end_is_answered_and_nothing_after_it() {
    let (sequencer, numbers) = start(MemoryLog::default());
    let ends: Vec<_> = (0..50).map(|n| later(&sequencer, request(Version(0), &[], &[(n, 7)]))).collect();
    sequencer.shutdown();
    for (n, end) in ends.into_iter().enumerate() {
        let version = end.recv_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(numbers.read(n as u64, version), 7);
    }
    let answer = later(&sequencer, request(Version(0), &[], &[(1, 1)])).recv_timeout(PATIENCE).unwrap();
    assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
}

/// The last handle may go while requests wait, on whatever thread that is.
#[test]
fn the_last_handle_may_go_at_any_moment() {
    for _ in 0..200 {
        let (sequencer, _) = in_memory();
        let ends: Vec<_> = (0..5).map(|n| later(&sequencer, request(Version(0), &[], &[(n, 1)]))).collect();
        drop(sequencer);
        for end in ends {
            assert!(end.recv_timeout(PATIENCE).unwrap().is_ok());
        }
    }
}

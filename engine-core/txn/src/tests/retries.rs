//! Requests that are sent again, and SIDs that outlive a sequencer.

use super::{Numbers, open_log, recover, request};
use crate::{Error, Recovered, Sequencer, SequencerConfig};
use std::sync::Arc;
use tidegraph_log::{LogStore, MemoryLog};
use tidegraph_platform::FaultyDisk;
use tidegraph_types::{CommitRequest, Epoch, RequestId, Sid, Version};

fn known_as(id: u128, request: CommitRequest) -> CommitRequest {
    CommitRequest { request: Some(RequestId(id)), ..request }
}

fn start(
    config: SequencerConfig,
    log: impl LogStore + 'static,
    recovered: Recovered,
) -> (Arc<Sequencer>, Numbers) {
    let numbers = Numbers::default();
    let applier = Box::new(numbers.clone());
    (Sequencer::start(config, Box::new(log), recovered, applier), numbers)
}

/// Shows TXN-4.
#[test]
fn a_request_that_is_sent_again_is_answered_as_before() {
    let (sequencer, numbers) = start(SequencerConfig::default(), MemoryLog::default(), Recovered::default());
    let first = known_as(1, request(Version(0), &[1], &[(1, 10)]));
    assert_eq!(sequencer.outcome(RequestId(1), Version(0)).unwrap(), None);
    let version = sequencer.commit(first.clone()).unwrap();
    assert_eq!(sequencer.outcome(RequestId(1), Version(0)).unwrap(), Some(version));
    // The request itself changed what it read. That is not a conflict.
    assert_eq!(sequencer.commit(first.clone()).unwrap(), version);
    sequencer.commit(request(version, &[1], &[(1, 11)])).unwrap();
    assert_eq!(sequencer.commit(first).unwrap(), version);
    assert_eq!(numbers.read(1, sequencer.version()), 11);
    // A refused request was not committed, and may be sent again.
    let refused = known_as(2, request(version, &[1], &[(1, 12)]));
    assert!(matches!(sequencer.commit(refused.clone()), Err(Error::Conflict { .. })));
    assert_eq!(sequencer.outcome(RequestId(2), version).unwrap(), None);
    let newest = sequencer.version();
    let again = CommitRequest { read_version: newest, ..refused };
    assert_eq!(sequencer.commit(again).unwrap(), newest.next());
}

/// Shows TXN-4.
#[test]
fn many_who_send_one_request_commit_it_once() {
    let (sequencer, numbers) = start(SequencerConfig::default(), MemoryLog::default(), Recovered::default());
    for round in 0..50_u64 {
        let base = sequencer.version();
        let count = numbers.read(1, base);
        let once = known_as(u128::from(round), request(base, &[1], &[(1, count + 1)]));
        let versions: Vec<Version> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| sequencer.commit(once.clone()).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
        assert_eq!(numbers.read(1, sequencer.version()), count + 1);
    }
}

#[test]
fn requests_that_come_together_are_one_group() {
    let (sequencer, numbers) = start(SequencerConfig::default(), MemoryLog::default(), Recovered::default());
    let base = sequencer.prove().unwrap();
    let answers = sequencer.commit_together(vec![
        known_as(1, request(base, &[1], &[(1, 10)])),
        // The request before wrote what this one read.
        known_as(2, request(base, &[1], &[(2, 20)])),
        // The same request again.
        known_as(1, request(base, &[1], &[(1, 10)])),
        CommitRequest { read_version: base, ..CommitRequest::default() },
        known_as(3, request(base, &[3], &[(3, 30)])),
    ]);
    let versions: Vec<Option<Version>> = answers.iter().map(|answer| answer.as_ref().ok().copied()).collect();
    let (first, second) = (base.next(), base.next().next());
    assert_eq!(versions, [Some(first), None, Some(first), Some(base), Some(second)]);
    assert!(matches!(answers[1], Err(Error::Conflict { .. })), "{:?}", answers[1]);
    assert_eq!((numbers.read(1, second), numbers.read(3, second)), (10, 30));
    assert_eq!(sequencer.version(), second);
    assert!(sequencer.commit_together(Vec::new()).is_empty());
    // The next request finds no leader.
    assert!(sequencer.commit(request(second, &[1], &[(1, 11)])).is_ok());
}

/// Shows TXN-4.
#[test]
fn ids_outlive_the_sequencer() {
    let disk = FaultyDisk::new(1);
    let config = SequencerConfig::default;
    let (sequencer, _) = start(config(), open_log(&disk), Recovered::default());
    let first = known_as(7, request(Version(0), &[1], &[(1, 1)]));
    let version = sequencer.commit(first.clone()).unwrap();
    sequencer.shutdown();
    drop(sequencer);
    let mut log = open_log(&disk);
    let recovered = recover(&mut log);
    assert_eq!(recovered.requests, [(version, RequestId(7))]);
    let (sequencer, numbers) = start(config(), log, recovered);
    assert_eq!(sequencer.prove().unwrap(), Version(version.0 + 2));
    assert_eq!(sequencer.commit(first).unwrap(), version);
    assert_eq!(sequencer.outcome(RequestId(7), Version(0)).unwrap(), Some(version));
    assert_eq!(sequencer.outcome(RequestId(8), Version(0)).unwrap(), None);
    // It was not applied a second time.
    assert_eq!(numbers.read(1, sequencer.version()), 0);
}

/// Shows TXN-4.
#[test]
fn a_request_that_asks_too_late_is_forgotten() {
    let config = SequencerConfig { remembered_requests: 3, ..SequencerConfig::default() };
    let (sequencer, _) = start(config, MemoryLog::default(), Recovered::default());
    let base = sequencer.commit(known_as(0, request(Version(0), &[], &[(1, 0)]))).unwrap();
    for id in 1..5 {
        sequencer.commit(known_as(id, request(base, &[], &[(1, 1)]))).unwrap();
    }
    let late = sequencer.commit(known_as(0, request(Version(0), &[], &[(1, 0)]))).unwrap_err();
    let forgotten = Version(base.0 + 1);
    assert!(matches!(late, Error::Forgotten { forgotten: found, .. } if found == forgotten), "{late}");
    assert!(matches!(sequencer.outcome(RequestId(0), base), Err(Error::Forgotten { .. })));
    // A request that read after the forgotten versions cannot have been committed in them.
    assert_eq!(sequencer.outcome(RequestId(99), forgotten).unwrap(), None);
    // Nor one that read before them, but was first sent after them.
    let slow = known_as(98, request(base, &[9], &[(9, 1)]));
    assert!(matches!(sequencer.commit(slow.clone()), Err(Error::Forgotten { .. })));
    sequencer.commit(CommitRequest { first_asked: Some(forgotten), ..slow }).unwrap();
    // The next sequencer does not know the ids of versions that a checkpoint holds.
    let recovered = Recovered { version: Version(50), forgotten: Version(50), ..Recovered::default() };
    let (next, _) = start(SequencerConfig::default(), MemoryLog::default(), recovered);
    assert!(matches!(next.outcome(RequestId(0), Version(49)), Err(Error::Forgotten { .. })));
    next.commit(known_as(1, request(Version(50), &[], &[(1, 1)]))).unwrap();
}

/// Shows TXN-4.
#[test]
fn requests_that_the_log_refused_are_not_remembered() {
    let disk = FaultyDisk::new(1);
    let (sequencer, numbers) = start(SequencerConfig::default(), open_log(&disk), Recovered::default());
    let base = sequencer.prove().unwrap();
    disk.set_space(Some(0));
    let first = known_as(1, request(base, &[1], &[(1, 1)]));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(sequencer.commit(first.clone()).is_err()));
        }
    });
    assert!(sequencer.hand_out_sids(10).is_err());
    disk.set_space(None);
    assert_eq!(sequencer.outcome(RequestId(1), base).unwrap(), None);
    let version = sequencer.commit(first).unwrap();
    assert_eq!((version, numbers.read(1, version)), (base.next(), 1));
}

#[test]
fn sids_of_other_processes_are_never_handed_out_again() {
    let disk = FaultyDisk::new(1);
    let config = || SequencerConfig { sids_ahead: 100, ..SequencerConfig::default() };
    let mut highest = 0;
    for life in 1..=4 {
        let mut log = open_log(&disk);
        let recovered = recover(&mut log);
        assert!(recovered.next_sid.0 >= highest, "life {life}");
        let (sequencer, _) = start(config(), log, recovered);
        for count in [1, 60, 60, 1000] {
            let range = sequencer.hand_out_sids(count).unwrap();
            assert!(range.start >= highest && range.end - range.start == count, "{range:?}");
            highest = range.end;
        }
        let own = sequencer.allocate_sids(5);
        assert!(own.start >= highest);
        highest = own.end;
        assert!(sequencer.next_sid() >= Sid(highest));
        if life == 2 {
            // A commit does not lower the reservation.
            sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
        }
        // The SIDs handed out last are never committed: the process crashes.
        drop(sequencer);
        disk.crash();
        highest -= 5;
    }
}

#[test]
fn reserving_costs_the_log_once_for_many() {
    let (sequencer, _) = start(
        SequencerConfig { sids_ahead: 1000, ..SequencerConfig::default() },
        MemoryLog::default(),
        Recovered { next_sid: Sid(1), ..Recovered::default() },
    );
    for _ in 0..100 {
        let _ = sequencer.hand_out_sids(10).unwrap();
    }
    // The start of the epoch, and one reservation.
    assert_eq!(sequencer.prove().unwrap(), Version(3));
    assert_eq!(sequencer.next_sid(), Sid(1001));
}

/// Shows TXN-1.
#[test]
fn an_epoch_that_is_not_above_the_logs_is_refused() {
    let disk = FaultyDisk::new(1);
    let (sequencer, _) = start(SequencerConfig::default(), open_log(&disk), Recovered::default());
    sequencer.prove().unwrap();
    drop(sequencer);
    for (epoch, good) in [(0, false), (1, false), (9, true)] {
        let mut log = open_log(&disk);
        let recovered = recover(&mut log);
        let applier = Box::new(Numbers::default());
        let config = SequencerConfig::default();
        let sequencer = Sequencer::start_in(Epoch(epoch), config, Box::new(log), recovered, applier);
        assert_eq!(sequencer.prove().is_ok(), good, "{epoch}");
    }
}

/// The request `text` under `key`, first sent after version `since`.
fn keyed(key: &str, text: &str, since: Version, request: CommitRequest) -> CommitRequest {
    let id = RequestId::of_key("ann", key, format_args!("{text}"));
    CommitRequest { request: Some(id), first_asked: Some(since), by_key: true, ..request }
}

fn id_of(request: &CommitRequest) -> RequestId {
    request.request.unwrap()
}

/// Shows TXN-4.
#[test]
fn a_request_that_runs_again_under_its_key_is_committed_once() {
    let (sequencer, numbers) = start(SequencerConfig::default(), MemoryLog::default(), Recovered::default());
    let first = keyed("k", "add 1", Version(0), request(Version(0), &[1], &[(1, 1)]));
    let id = id_of(&first);
    assert_eq!(sequencer.outcome_of_key(id, Version(0)).unwrap(), None);
    let version = sequencer.commit(first).unwrap();
    assert_eq!(sequencer.outcome_of_key(id, Version(0)).unwrap(), Some(version));
    // It was run again, and read what it wrote the first time: another transaction with the same id.
    let again = keyed("k", "add 1", Version(0), request(version, &[1], &[(1, 2)]));
    assert!(matches!(sequencer.commit(again), Err(Error::Repeated { version: found }) if found == version));
    let other = keyed("k", "add 2", Version(0), request(version, &[1], &[(1, 3)]));
    let reused = sequencer.outcome_of_key(id_of(&other), Version(0));
    assert!(matches!(reused, Err(Error::KeyReused { version: found }) if found == version), "{reused:?}");
    let reused = sequencer.commit(other);
    assert!(matches!(reused, Err(Error::KeyReused { version: found }) if found == version), "{reused:?}");
    assert_eq!(numbers.read(1, sequencer.version()), 1);
    // Another key, and the same key of another caller.
    sequencer.commit(keyed("l", "add 1", Version(0), request(version, &[1], &[(1, 2)]))).unwrap();
    let of_bob = RequestId::of_key("bob", "k", format_args!("add 1"));
    assert_eq!(sequencer.outcome_of_key(of_bob, Version(0)).unwrap(), None);
}

/// Shows TXN-4.
#[test]
fn repeats_in_one_group_are_told_apart_from_the_commit() {
    let (sequencer, numbers) = start(SequencerConfig::default(), MemoryLog::default(), Recovered::default());
    let base = sequencer.prove().unwrap();
    let ask = |text, number| keyed("k", text, base, request(base, &[], &[(1, number)]));
    let answers = sequencer.commit_together(vec![ask("a", 1), ask("a", 2), ask("b", 3)]);
    let version = base.next();
    assert_eq!(answers[0].as_ref().unwrap(), &version);
    assert!(matches!(answers[1], Err(Error::Repeated { version: found }) if found == version), "{answers:?}");
    assert!(
        matches!(answers[2], Err(Error::KeyReused { version: found }) if found == version),
        "{answers:?}"
    );
    assert_eq!((sequencer.version(), numbers.read(1, version)), (version, 1));
}

/// Shows TXN-4.
#[test]
fn a_forgotten_key_is_not_taken_for_a_new_one() {
    let config = SequencerConfig { remembered_requests: 3, ..SequencerConfig::default() };
    let (sequencer, numbers) = start(config, MemoryLog::default(), Recovered::default());
    let base = sequencer.prove().unwrap();
    let first = keyed("k", "a", base, request(base, &[], &[(1, 1)]));
    let id = id_of(&first);
    sequencer.commit(first).unwrap();
    for id in 0..6 {
        sequencer.commit(known_as(id, request(sequencer.version(), &[], &[(2, 0)]))).unwrap();
    }
    // It is run again at the newest version, and that does not make it new.
    let newest = sequencer.version();
    let again = sequencer.commit(keyed("k", "a", base, request(newest, &[], &[(1, 2)])));
    assert!(matches!(again, Err(Error::Forgotten { read_version, .. }) if read_version == base), "{again:?}");
    assert!(matches!(sequencer.outcome_of_key(id, base), Err(Error::Forgotten { .. })));
    assert_eq!(numbers.read(1, sequencer.version()), 1);
    // A client that saw the newest version before it sent the key knows that it was never committed.
    sequencer.commit(keyed("l", "a", newest, request(newest, &[], &[(1, 3)]))).unwrap();
}

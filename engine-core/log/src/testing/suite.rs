//! The suite of tests that every [`LogStore`] passes.

// A suite reports by failed assertions.
#![allow(clippy::unwrap_used)]

use crate::{Body, Error, LogStore, Record, Tail};
use tidegraph_types::{
    Cardinality, Epoch, Gui, Mutation, PropertyWrite, RequestId, ShardId, Sid, Token, Value, Version,
};

/// Returns a commit of shard 0, identified by its version and `mark`.
pub fn commit(version: u64, epoch: u64, mark: &str) -> Record {
    let write =
        PropertyWrite { key: Token(1), cardinality: Cardinality::Single, value: Value::Long(version as i64) };
    let mutations = vec![
        Mutation::CreateVertex {
            gui: Gui(version),
            id: mark.into(),
            labels: vec![Token(7)],
            properties: vec![write],
        },
        Mutation::DeleteVertex { gui: Gui(version + 1), edges_left: false },
    ];
    Record {
        shard: ShardId(0),
        epoch: Epoch(epoch),
        version: Version(version),
        body: Body::Commit { mutations, next_sid: Sid(version * 10), request: None, changes: None },
    }
}

/// Reads a log from version `from` to its tail.
///
/// # Errors
/// The first error of [`LogStore::read_from`] or of its iterator.
pub fn read_all(log: &mut dyn LogStore, from: u64) -> Result<Vec<Record>, Error> {
    log.read_from(Version(from))?.collect()
}

fn tail(version: u64, epoch: u64) -> Option<Tail> {
    Some(Tail { version: Version(version), epoch: Epoch(epoch) })
}

/// Runs the suite. Each call of `make` returns another empty log of shard 0.
///
/// # Panics
/// When the log does not do what [`LogStore`] promises.
pub fn log_test_suite(make: impl Fn() -> Box<dyn LogStore>) {
    begins_empty(make().as_mut());
    gives_back_what_was_appended(make().as_mut());
    refuses_what_does_not_follow(make().as_mut());
    may_begin_anywhere(make().as_mut());
    forgets_what_is_trimmed(make().as_mut());
    takes_large_records(make().as_mut());
}

fn begins_empty(log: &mut dyn LogStore) {
    assert_eq!((log.tail(), log.first()), (None, None));
    assert!(read_all(log, 1).unwrap().is_empty());
    log.append(&[]).unwrap();
    log.trim(Version(5)).unwrap();
    assert_eq!(log.tail(), None);
}

fn gives_back_what_was_appended(log: &mut dyn LogStore) {
    let with = |version, body| Record { shard: ShardId(0), epoch: Epoch(2), version: Version(version), body };
    let load = Body::Load {
        load_id: "load-1".into(),
        segments: vec!["a/0".into(), "a/1".into()],
        next_sid: Sid(u64::MAX),
    };
    let records = [
        with(1, Body::EpochStart),
        with(2, Body::Tokens { assigned: vec![(Token(0), "knows".into()), (Token(1), "".into())] }),
        commit(3, 2, "a"),
        commit(4, 3, "b"),
        Record { epoch: Epoch(3), ..with(5, load) },
        with(
            6,
            Body::Commit {
                mutations: vec![],
                next_sid: Sid(0),
                request: Some(RequestId(u128::MAX - 1)),
                changes: None,
            },
        ),
        with(7, Body::Reserve { next_sid: Sid(77) }),
    ];
    let mut records = records.to_vec();
    records[5..].iter_mut().for_each(|record| record.epoch = Epoch(9));
    log.append(&records[..1]).unwrap();
    log.append(&records[1..5]).unwrap();
    log.append(&records[5..]).unwrap();
    assert_eq!(log.tail(), tail(7, 9));
    assert_eq!(log.first(), Some(Version(1)));
    for from in 1..=8 {
        assert_eq!(read_all(log, from as u64).unwrap(), records[from - 1..], "from {from}");
    }
    // A caller may drop the iterator in the middle.
    assert!(log.read_from(Version(2)).unwrap().next().is_some());
    assert!(read_all(log, 100).unwrap().is_empty());
}

/// Shows LOG-1.
fn refuses_what_does_not_follow(log: &mut dyn LogStore) {
    log.append(&[commit(1, 5, "a")]).unwrap();
    let other_shard = Record { shard: ShardId(1), ..commit(2, 5, "b") };
    let bad: [Vec<Record>; 6] = [
        vec![commit(1, 5, "again")],
        vec![commit(3, 5, "gap")],
        vec![commit(2, 4, "old epoch")],
        vec![commit(2, 5, "good"), commit(2, 5, "twice")],
        vec![commit(2, 6, "good"), commit(3, 5, "old epoch")],
        vec![other_shard],
    ];
    for records in bad {
        assert!(matches!(log.append(&records), Err(Error::OutOfOrder { .. })), "{records:?}");
        assert_eq!(log.tail(), tail(1, 5));
    }
    log.append(&[commit(2, 5, "b")]).unwrap();
    assert_eq!(read_all(log, 1).unwrap(), [commit(1, 5, "a"), commit(2, 5, "b")]);
}

fn may_begin_anywhere(log: &mut dyn LogStore) {
    assert!(matches!(log.append(&[commit(0, 1, "version 0")]), Err(Error::OutOfOrder { .. })));
    log.append(&[commit(100, 1, "a")]).unwrap();
    log.append(&[commit(101, 1, "b")]).unwrap();
    assert_eq!(log.first(), Some(Version(100)));
    let error = read_all(log, 99).unwrap_err();
    assert!(matches!(error, Error::Trimmed { requested: Version(99), first: Version(100) }));
}

fn forgets_what_is_trimmed(log: &mut dyn LogStore) {
    for version in 1..=50 {
        log.append(&[commit(version, 1, &"x".repeat(100))]).unwrap();
    }
    for below in [0, 10, 10, 30, 51, 1000] {
        log.trim(Version(below)).unwrap();
        assert_eq!(log.tail(), tail(50, 1));
        let first = log.first().unwrap().0;
        assert!(first <= below.max(1), "{first} {below}");
        assert_eq!(read_all(log, first).unwrap().len() as u64, 51 - first);
        if first > 1 {
            assert!(matches!(read_all(log, first - 1), Err(Error::Trimmed { .. })));
        }
    }
    log.append(&[commit(51, 1, "next")]).unwrap();
    assert_eq!(read_all(log, 51).unwrap(), [commit(51, 1, "next")]);
}

fn takes_large_records(log: &mut dyn LogStore) {
    let large = "x".repeat(5 << 20);
    log.append(&[commit(1, 1, &large), commit(2, 1, "small")]).unwrap();
    assert_eq!(read_all(log, 1).unwrap(), [commit(1, 1, &large), commit(2, 1, "small")]);
}

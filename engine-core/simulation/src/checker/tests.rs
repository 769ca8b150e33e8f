//! Histories that are known to be good or bad.

use super::*;

/// A transaction of a client, at times that overlap with all others.
fn transaction(client: usize, reads: &[(u64, &[i64])], appends: &[(u64, i64)]) -> Transaction {
    Transaction {
        client,
        began: 0,
        ended_at: 100,
        ended: Ended::Acknowledged,
        reads: reads.iter().map(|(key, list)| (*key, list.to_vec())).collect(),
        appends: appends.to_vec(),
    }
}

fn lists(lists: &[(u64, &[i64])]) -> BTreeMap<u64, Vec<i64>> {
    lists.iter().map(|(key, list)| (*key, list.to_vec())).collect()
}

fn reasons(found: Option<Anomaly>) -> Vec<Reason> {
    let Some(Anomaly::Cycle(cycle)) = found else { panic!("{found:?}") };
    let mut reasons: Vec<Reason> = cycle.into_iter().map(|(_, reason)| reason).collect();
    reasons.sort_unstable();
    reasons
}

#[test]
fn one_after_the_other_is_right() {
    let history = [
        transaction(0, &[(1, &[])], &[(1, 10)]),
        transaction(1, &[(1, &[10])], &[(1, 11), (2, 20)]),
        transaction(0, &[(1, &[10, 11]), (2, &[20])], &[]),
        // Reads before both, which is allowed for another client.
        transaction(2, &[(1, &[]), (2, &[])], &[]),
    ];
    assert_eq!(check(&history, &lists(&[(1, &[10, 11]), (2, &[20])])), None);
    assert_eq!(check(&[], &lists(&[])), None);
}

#[test]
fn a_lost_update() {
    // Both transactions read the same list and append to it.
    let history = [transaction(0, &[(1, &[])], &[(1, 10)]), transaction(1, &[(1, &[])], &[(1, 11)])];
    let found = reasons(check(&history, &lists(&[(1, &[10, 11])])));
    assert_eq!(found, [Reason::Ww(1), Reason::Rw(1)]);
}

#[test]
fn write_skew() {
    let history = [
        transaction(0, &[(1, &[]), (2, &[])], &[(1, 10)]),
        transaction(1, &[(1, &[]), (2, &[])], &[(2, 20)]),
    ];
    let found = reasons(check(&history, &lists(&[(1, &[10]), (2, &[20])])));
    assert_eq!(found, [Reason::Rw(1), Reason::Rw(2)]);
}

#[test]
fn writes_that_cross() {
    let history = [transaction(0, &[], &[(1, 10), (2, 20)]), transaction(1, &[], &[(1, 11), (2, 21)])];
    let found = reasons(check(&history, &lists(&[(1, &[10, 11]), (2, &[21, 20])])));
    assert_eq!(found, [Reason::Ww(1), Reason::Ww(2)]);
}

#[test]
fn two_who_each_read_the_other() {
    let history = [transaction(0, &[(2, &[20])], &[(1, 10)]), transaction(1, &[(1, &[10])], &[(2, 20)])];
    let found = reasons(check(&history, &lists(&[(1, &[10]), (2, &[20])])));
    assert_eq!(found, [Reason::Wr(1), Reason::Wr(2)]);
}

#[test]
fn a_reader_who_sees_half_of_a_transaction() {
    let history = [transaction(0, &[], &[(1, 10), (2, 20)]), transaction(1, &[(1, &[10]), (2, &[])], &[])];
    let found = reasons(check(&history, &lists(&[(1, &[10]), (2, &[20])])));
    assert_eq!(found, [Reason::Wr(1), Reason::Rw(2)]);
}

#[test]
fn two_readers_who_see_two_orders() {
    let history = [
        transaction(0, &[], &[(1, 10)]),
        transaction(1, &[], &[(2, 20)]),
        transaction(2, &[(1, &[10]), (2, &[])], &[]),
        transaction(3, &[(1, &[]), (2, &[20])], &[]),
    ];
    assert_eq!(reasons(check(&history, &lists(&[(1, &[10]), (2, &[20])]))).len(), 4);
}

#[test]
fn a_client_that_goes_back_in_time() {
    let history = [
        transaction(0, &[], &[(1, 10)]),
        transaction(1, &[(1, &[10])], &[]),
        transaction(1, &[(1, &[])], &[]),
    ];
    let found = reasons(check(&history, &lists(&[(1, &[10])])));
    assert_eq!(found, [Reason::Wr(1), Reason::Rw(1), Reason::Session]);
}

#[test]
fn a_writer_who_comes_after_another_and_before_it() {
    let first = Transaction { ended_at: 10, ..transaction(0, &[], &[(1, 10)]) };
    let second = Transaction { began: 20, ..transaction(1, &[], &[(1, 11)]) };
    let ended = lists(&[(1, &[11, 10])]);
    let found = reasons(check(&[first.clone(), second.clone()], &ended));
    assert_eq!(found, [Reason::Ww(1), Reason::RealTime]);
    let at_once = Transaction { began: 5, ..second };
    assert_eq!(check(&[first, at_once], &ended), None);
}

#[test]
fn what_needs_no_cycle() {
    let one = transaction(0, &[], &[(1, 10), (2, 20)]);
    let with = |ended| Transaction { ended, ..one.clone() };
    let both = lists(&[(1, &[10]), (2, &[20])]);
    assert_eq!(check(std::slice::from_ref(&one), &lists(&[(1, &[10])])), Some(Anomaly::Lost(2, 20)));
    assert_eq!(check(&[with(Ended::Refused)], &both), Some(Anomaly::Aborted(1, 10)));
    assert_eq!(check(&[with(Ended::Unknown)], &lists(&[(2, &[20])])), Some(Anomaly::Half(0)));
    assert_eq!(check(&[with(Ended::Unknown)], &both), None);
    assert_eq!(check(&[with(Ended::Unknown)], &lists(&[])), None);
    let twice = lists(&[(1, &[10, 10]), (2, &[20])]);
    assert_eq!(check(std::slice::from_ref(&one), &twice), Some(Anomaly::Twice(1, 10)));
    assert_eq!(check(&[], &lists(&[(1, &[5])])), Some(Anomaly::Aborted(1, 5)));
    let reader = transaction(1, &[(1, &[7])], &[]);
    assert_eq!(check(&[one, reader], &both), Some(Anomaly::Order(1, vec![7])));
}

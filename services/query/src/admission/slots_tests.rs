//! Who gets a slot, in which order.

use super::*;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tidegraph_engine::Roles;

type Waiting = Pin<Box<dyn Future<Output = Result<Slot, Full>>>>;

/// A connection from a machine, by the last byte of its address and its port.
fn connection(machine: u8, port: u16) -> Caller {
    of(&Principal::Anonymous, machine, port)
}

fn of(principal: &Principal, machine: u8, port: u16) -> Caller {
    let address = Some(SocketAddr::from(([10, 0, 0, machine], port)));
    Caller::new(principal, Source { address, ..Source::default() })
}

fn user(name: &str) -> Principal {
    Principal::User(name.into(), Roles::default())
}

/// Asks for a slot, so that the query has its place in the queue.
fn ask(slots: &Arc<Slots>, caller: Caller) -> Waiting {
    let slots = slots.clone();
    let mut waiting: Waiting = Box::pin(async move { slots.acquire(caller).await });
    match poll(&mut waiting) {
        Poll::Pending => waiting,
        Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
    }
}

fn poll(waiting: &mut Waiting) -> Poll<Result<Slot, Full>> {
    waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn now(waiting: &mut Waiting) -> Slot {
    match poll(waiting) {
        Poll::Ready(Ok(slot)) => slot,
        other => panic!("{other:?}"),
    }
}

/// Gives back one slot after the other, and returns the numbers of the queries in the order in which they got one.
fn order(mut slot: Slot, mut waiting: Vec<Waiting>) -> Vec<usize> {
    let mut order = vec![];
    let mut numbers: Vec<usize> = (0..waiting.len()).collect();
    while !waiting.is_empty() {
        drop(slot);
        let mut got = waiting.iter_mut().enumerate().filter_map(|(at, one)| match poll(one) {
            Poll::Ready(Ok(slot)) => Some((at, slot)),
            Poll::Ready(Err(full)) => panic!("{full:?}"),
            Poll::Pending => None,
        });
        let (at, next) = got.next().expect("a query gets the slot");
        assert!(got.next().is_none(), "two have one slot");
        drop(got);
        drop(waiting.remove(at));
        order.push(numbers.remove(at));
        slot = next;
    }
    order
}

#[test]
fn connections_take_turns() {
    let slots = Slots::new(1, 100, BTreeMap::new());
    let running = now(&mut ask(&slots, connection(1, 1)));
    let callers = [(1, 1), (1, 1), (1, 1), (1, 2), (1, 1), (1, 3), (1, 2)];
    let waiting = callers.iter().map(|(machine, port)| ask(&slots, connection(*machine, *port))).collect();
    assert_eq!(order(running, waiting), [0, 3, 5, 1, 6, 2, 4]);
    assert_eq!((slots.free(), slots.waiting(), slots.state().parties.len()), (1, 0, 0));
}

#[test]
fn machines_and_users_take_turns_whatever_the_number_of_their_connections() {
    let slots = Slots::new(1, 100, BTreeMap::new());
    let running = now(&mut ask(&slots, connection(9, 9)));
    let (ada, eve) = (user("ada"), user("eve"));
    let callers = [
        // Many connections of one machine, and of one user at several machines.
        connection(1, 1),
        connection(1, 2),
        connection(1, 3),
        of(&eve, 2, 1),
        of(&eve, 3, 1),
        of(&ada, 2, 1),
        connection(4, 1),
    ];
    let waiting = callers.into_iter().map(|caller| ask(&slots, caller)).collect();
    assert_eq!(order(running, waiting), [0, 3, 5, 6, 1, 4, 2]);
}

#[test]
fn a_caller_leaves_a_part_of_the_slots_to_others() {
    for caller in [of(&Principal::SharedToken, 1, 1), of(&user("eve"), 1, 1)] {
        let slots = Slots::new(16, 100, BTreeMap::new());
        let mut greedy: Vec<Waiting> = (0..30).map(|_| ask(&slots, caller.clone())).collect();
        assert_eq!((slots.free(), slots.waiting()), (4, 18));
        // Another one is not behind the 18, and leaves a part too.
        let mut others: Vec<Waiting> = (0..10).map(|_| ask(&slots, connection(2, 1))).collect();
        let held: Vec<Slot> = others.iter_mut().take(3).map(now).collect();
        assert_eq!(slots.free(), 1);
        let last = now(&mut ask(&slots, connection(3, 1)));
        drop((held, others, last));
        assert_eq!((slots.free(), slots.waiting()), (4, 18));
        // The slots that the greedy one gives back go on to its next queries.
        for (ended, one) in greedy.iter_mut().enumerate().take(18) {
            drop(now(one));
            assert_eq!((slots.free(), slots.waiting()), (4, 17 - ended));
        }
    }
}

#[test]
fn a_graph_with_a_quota_never_holds_more_slots() {
    let slots = Slots::new(16, 100, BTreeMap::from([("one".into(), 2)]));
    let within = |graph: &str, machine| connection(machine, 1).within(Some(graph.into()));
    let mut one: Vec<Waiting> = (0..4).map(|machine| ask(&slots, within("one", machine))).collect();
    let first = now(&mut one[0]);
    let _second = now(&mut one[1]);
    assert!(poll(&mut one[2]).is_pending());
    assert_eq!((slots.free(), slots.waiting()), (14, 2));
    // Queries of another graph pass those that wait.
    let _other = now(&mut ask(&slots, within("two", 9)));
    drop(first);
    let _third = now(&mut one[2]);
    assert!(poll(&mut one[3]).is_pending());
    assert_eq!((slots.free(), slots.waiting()), (13, 1));
}

#[test]
fn a_graph_leaves_a_part_of_the_slots_to_others_whoever_asks() {
    let slots = Slots::new(16, 100, BTreeMap::new());
    let within = |graph: &str, caller: Caller| caller.within(Some(graph.into()));
    // Each from another machine, all about one graph.
    let mut greedy: Vec<Waiting> =
        (0..30).map(|machine| ask(&slots, within("one", connection(machine, 1)))).collect();
    assert_eq!((slots.free(), slots.waiting()), (4, 18));
    let mut others: Vec<Waiting> =
        (100..110).map(|machine| ask(&slots, within("two", connection(machine, 1)))).collect();
    let held: Vec<Slot> = others.iter_mut().take(3).map(now).collect();
    assert_eq!(slots.free(), 1);
    drop((held, others));
    assert_eq!((slots.free(), slots.waiting()), (4, 18));
    // On one connection a query of another graph does not wait behind those of the graph that may have no more.
    let mixed = connection(0, 1);
    let mut behind = ask(&slots, within("one", mixed.clone()));
    let mut before = ask(&slots, within("two", mixed));
    drop(now(&mut before));
    assert!(poll(&mut behind).is_pending());
    drop(behind);
    for one in greedy.iter_mut().take(12) {
        drop(now(one));
    }
    drop(greedy);
    assert_eq!((slots.free(), slots.waiting(), slots.state().graphs.len()), (16, 0, 0));
}

#[test]
fn few_slots_are_all_given() {
    for count in 1..=3 {
        let slots = Slots::new(count, 100, BTreeMap::new());
        let _held: Vec<Slot> = (0..count).map(|_| now(&mut ask(&slots, connection(1, 1)))).collect();
        assert_eq!(slots.free(), 0);
    }
}

#[test]
fn callers_that_cannot_be_told_apart_may_have_all_slots() {
    let slots = Slots::new(16, 100, BTreeMap::new());
    let unknown = || Caller::new(&Principal::Anonymous, Source::default());
    let _held: Vec<Slot> = (0..16).map(|_| now(&mut ask(&slots, unknown()))).collect();
    // The connections of a machine may too, together.
    let slots = Slots::new(16, 100, BTreeMap::new());
    let _held: Vec<Slot> = (0..16).map(|port| now(&mut ask(&slots, connection(1, port)))).collect();
}

#[test]
fn a_full_queue_refuses_those_that_have_the_most_in_it() {
    let slots = Slots::new(1, 4, BTreeMap::new());
    let _running = now(&mut ask(&slots, connection(9, 9)));
    let mut greedy: Vec<Waiting> = (0..4).map(|_| ask(&slots, connection(1, 1))).collect();
    let refused = poll(&mut ask(&slots, connection(1, 1)));
    assert!(matches!(refused, Poll::Ready(Err(Full { waiting: 4 }))), "{refused:?}");
    // Another connection of the machine, and another machine, each push out the newest of the longest.
    let _same = ask(&slots, connection(1, 2));
    assert!(matches!(poll(&mut greedy[3]), Poll::Ready(Err(Full { .. }))));
    let _other = ask(&slots, connection(2, 1));
    assert!(matches!(poll(&mut greedy[2]), Poll::Ready(Err(Full { .. }))));
    assert_eq!(slots.waiting(), 4);
    assert!(poll(&mut greedy[1]).is_pending());
    // The other machine has one, and as many as the first one then.
    let mut second = ask(&slots, connection(2, 1));
    assert!(poll(&mut second).is_pending() && matches!(poll(&mut greedy[1]), Poll::Ready(Err(_))));
    let refused = poll(&mut ask(&slots, connection(2, 1)));
    assert!(matches!(refused, Poll::Ready(Err(Full { waiting: 4 }))), "{refused:?}");
}

#[test]
fn a_query_whose_caller_has_gone_gets_no_slot() {
    let slots = Slots::new(1, 100, BTreeMap::new());
    let running = now(&mut ask(&slots, connection(1, 1)));
    let (gone, mut next) = (ask(&slots, connection(1, 1)), ask(&slots, connection(2, 1)));
    let mut last = ask(&slots, connection(3, 1));
    drop(gone);
    assert_eq!(slots.waiting(), 2);
    drop(running);
    assert_eq!((slots.free(), slots.waiting()), (0, 1));
    let slot = now(&mut next);
    let given = ask(&slots, connection(2, 1));
    drop(slot);
    drop(now(&mut last));
    // It was given the slot, and its caller goes before it has run.
    assert_eq!((slots.free(), slots.waiting()), (0, 0));
    drop(given);
    assert_eq!((slots.free(), slots.waiting(), slots.state().turns.len()), (1, 0, 0));
}

#[test]
fn a_query_that_had_a_slot_is_not_refused() {
    let slots = Slots::new(1, 1, BTreeMap::new());
    let running = now(&mut ask(&slots, connection(1, 1)));
    let again = |caller| {
        let slots = slots.clone();
        let mut again: Waiting =
            Box::pin(async move { slots.acquire_again(caller).await.ok_or(Full { waiting: 0 }) });
        assert!(poll(&mut again).is_pending());
        again
    };
    let mut first = again(connection(1, 1));
    let mut second = again(connection(1, 1));
    let mut waits = ask(&slots, connection(2, 1));
    assert!(matches!(poll(&mut ask(&slots, connection(3, 1))), Poll::Ready(Err(Full { waiting: 1 }))));
    drop(running);
    let slot = now(&mut first);
    drop(slot);
    let slot = now(&mut waits);
    drop(slot);
    drop(now(&mut second));
}

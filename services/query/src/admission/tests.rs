//! Tests of admission over a database in memory.

use super::*;
use std::io::Write as _;
use std::pin::{Pin, pin};
use std::task::Poll;
use tidegraph_engine::Options;

fn admission(limits: Limits) -> Arc<Admission> {
    Admission::new(Database::open(Options::default()).unwrap(), limits)
}

fn request(id: &str, text: &str) -> Request {
    Request {
        id: id.to_owned(),
        language: Language::OpenCypher,
        text: text.to_owned(),
        parameters: Parameters::default(),
        timeout: None,
        at_least: None,
        read_only: false,
        key: None,
        principal: Principal::Iam("arn:aws:iam::1:user/ada".into()),
        source: Source::default(),
        memory: None,
        frees_slot: false,
        explain: None,
    }
}

fn write(_: &Request, answer: &Answer, output: &mut Output) -> io::Result<()> {
    answer.rows.iter().flatten().try_for_each(|value| write!(output, "{value:?};"))
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// Returns an admission whose only slot is taken.
fn full(queued_queries: usize) -> (Arc<Admission>, tokio::sync::OwnedSemaphorePermit) {
    let admission = admission(Limits { concurrent_queries: 1, queued_queries, ..Limits::default() });
    let slot = admission.slots.clone().try_acquire_owned().unwrap();
    (admission, slot)
}

#[tokio::test]
async fn a_waiting_query_is_listed_and_runs_when_a_slot_is_free() {
    let (admission, slot) = full(8);
    let mut waiting = pin!(admission.run(request("one", "RETURN 1 AS one"), write));
    assert!(poll_once(waiting.as_mut()).await.is_pending());
    let listed = admission.find("one").unwrap();
    assert_eq!((listed.text.as_str(), listed.cancelled), ("RETURN 1 AS one", false));
    assert_eq!(listed.principal.to_string(), "arn:aws:iam::1:user/ada");
    assert_eq!((admission.running(), admission.accepted()), (vec![listed], 0));
    drop(slot);
    assert_eq!(waiting.await.unwrap().body, "Long(1);");
    assert_eq!((admission.running(), admission.accepted()), (vec![], 1));
}

#[tokio::test]
async fn a_second_query_with_the_same_id_is_refused() {
    let (admission, _slot) = full(8);
    let mut waiting = pin!(admission.run(request("one", "RETURN 1"), write));
    assert!(poll_once(waiting.as_mut()).await.is_pending());
    let refused = admission.run(request("one", "RETURN 2"), write).await.unwrap_err();
    assert!(matches!(&refused, Error::DuplicateId { id } if id == "one"), "{refused}");
    assert_eq!(admission.find("one").unwrap().text, "RETURN 1");
}

#[tokio::test]
async fn a_full_queue_refuses_and_forgets_the_query() {
    let (admission, _slot) = full(1);
    let mut waiting = pin!(admission.run(request("one", "RETURN 1"), write));
    assert!(poll_once(waiting.as_mut()).await.is_pending());
    let refused = admission.run(request("two", "RETURN 2"), write).await.unwrap_err();
    assert!(matches!(refused, Error::QueueFull { waiting: 1 }), "{refused}");
    assert_eq!(admission.find("two"), None);
}

#[tokio::test]
async fn a_cancelled_query_ends_with_an_error() {
    let (admission, slot) = full(8);
    assert!(!admission.cancel("one"));
    let mut waiting = pin!(admission.run(request("one", "UNWIND range(1, 1000000) AS n RETURN n"), write));
    assert!(poll_once(waiting.as_mut()).await.is_pending());
    assert!(admission.cancel("one") && admission.find("one").unwrap().cancelled);
    drop(slot);
    match waiting.await {
        Err(Error::Query(error)) => assert_eq!(error.code(), ErrorCode::Cancelled),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_query_whose_caller_has_gone_leaves_list_and_queue() {
    let (admission, _slot) = full(1);
    {
        let mut waiting = pin!(admission.run(request("one", "RETURN 1"), write));
        assert!(poll_once(waiting.as_mut()).await.is_pending());
    }
    assert_eq!((admission.running(), admission.waiting.load(Ordering::Relaxed)), (vec![], 0));
}

#[tokio::test]
async fn a_known_text_needs_no_slot_unless_its_answer_is_long() {
    let admission = admission(Limits { concurrent_queries: 1, ..Limits::default() });
    for _ in 0..2 {
        admission.run(request("one", "RETURN 1 AS one"), write).await.unwrap();
    }
    let _slot = admission.slots.clone().try_acquire_owned().unwrap();
    let mut inline = pin!(admission.run(request("two", "RETURN 1 AS one"), write));
    let Poll::Ready(answer) = poll_once(inline.as_mut()).await else { panic!("it waits for a slot") };
    assert_eq!(answer.unwrap().body, "Long(1);");
    assert_eq!(admission.accepted(), 3);
    let long =
        |_: &Request, _: &Answer, output: &mut Output| output.write_all(&vec![b'x'; INLINE_ANSWER_BYTES + 1]);
    let answer = admission.run(request("three", "RETURN 1 AS one"), long).await.unwrap();
    assert_eq!(answer.body.len(), INLINE_ANSWER_BYTES + 1);
}

#[tokio::test]
async fn what_the_writer_reports_is_the_source_of_the_error() {
    let admission = admission(Limits::default());
    let fail = |_: &Request, _: &Answer, _: &mut Output| Err(io::Error::other("no room"));
    let error = admission.run(request("one", "RETURN 1"), fail).await.unwrap_err();
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no room");
}

#[tokio::test]
async fn an_answer_holds_its_slot_and_its_memory_until_it_is_dropped() {
    let admission = admission(Limits { concurrent_queries: 1, ..Limits::default() });
    let answer = admission.run(request("one", "RETURN 1 AS one"), write).await.unwrap();
    assert_eq!(admission.slots.available_permits(), 0);
    assert!(admission.memory().used_bytes() > 0);
    let part = answer.body.slice(0..2);
    drop(answer);
    assert_eq!(admission.slots.available_permits(), 0);
    drop(part);
    assert_eq!((admission.slots.available_permits(), admission.memory().used_bytes()), (1, 0));
}

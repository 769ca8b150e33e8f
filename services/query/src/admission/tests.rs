//! Tests of admission over a database in memory.

use super::inline::INLINE_ANSWER_BYTES;
use super::*;
use std::io::Write as _;
use std::pin::{Pin, pin};
use std::task::Poll;
use tidegraph_engine::Options;
use tidegraph_engine::plan::{Procedure, Procedures, Signature, TypeTest, ValueType};
use tidegraph_platform::{Clock, RealClock};
use tidegraph_types::Value;

fn admission(limits: Limits) -> Arc<Admission> {
    Admission::new(Database::open(Options::default()).unwrap(), limits)
}

fn request(id: &str, text: &str) -> Request {
    Request {
        id: id.to_owned(),
        language: Language::OpenCypher,
        gremlin_version: None,
        text: text.to_owned(),
        parameters: Parameters::default(),
        timeout: None,
        at_least: None,
        read_only: false,
        key: None,
        principal: Principal::Iam("arn:aws:iam::1:user/ada".into(), tidegraph_engine::Roles::all()),
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

/// Takes a free slot.
fn taken(admission: &Admission) -> Slot {
    let caller = Caller::new(&Principal::Anonymous, Source::default());
    let mut slot = pin!(admission.slots.acquire(caller));
    match slot.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(slot) => slot.unwrap(),
        Poll::Pending => panic!("no slot is free"),
    }
}

/// Returns an admission whose only slot is taken.
fn full(queued_queries: usize) -> (Arc<Admission>, Slot) {
    let admission = admission(Limits { concurrent_queries: 1, queued_queries, ..Limits::default() });
    let slot = taken(&admission);
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
    assert_eq!(waiting.await.unwrap().first.bytes, "Long(1);");
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
async fn a_query_of_another_connection_is_not_behind_all_of_the_first() {
    let (admission, slot) = full(100);
    let from = |id: &str, port: u16| {
        let source = Source { address: Some(([127, 0, 0, 1], port).into()), ..Source::default() };
        admission.run(Request { source, ..request(id, "RETURN 1 AS one") }, write)
    };
    let mut first: Vec<_> = (0..20).map(|number| Box::pin(from(&format!("first {number}"), 1))).collect();
    for query in &mut first {
        assert!(poll_once(query.as_mut()).await.is_pending());
    }
    let mut other = pin!(from("other", 2));
    assert!(poll_once(other.as_mut()).await.is_pending());
    drop(slot);
    drop(first.remove(0).await.unwrap());
    let answer = other.await.unwrap();
    assert_eq!((&answer.first.bytes[..], admission.slots.waiting()), (&b"Long(1);"[..], 19));
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

/// Asks as a principal, and returns what `write` makes of the answer, or the code of the error.
async fn ask(admission: &Arc<Admission>, who: &Principal, text: &str) -> Result<String, ErrorCode> {
    let request = Request { principal: who.clone(), ..request(text, text) };
    let written = admission.run(request, write).await.map_err(|error| error.code())?;
    Ok(String::from_utf8(written.first.bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn a_transaction_is_listed_and_ends_when_its_owner_terminates_it() {
    let admission = admission(Limits::default());
    let roles = || [tidegraph_engine::Role::Write].into_iter().collect();
    let [ada, bob] = ["ada", "bob"].map(|name| Principal::User(name.into(), roles()));
    let begin = || admission.begin(&ada, Source::default(), None, false).unwrap();
    let mut transaction = begin();
    let other = begin();
    let show = "SHOW TRANSACTIONS YIELD transactionId, currentQuery, username RETURN transactionId";
    assert_eq!(
        ask(&admission, &ada, show).await.unwrap(),
        format!(r#"String("transaction-0");String("transaction-1");String({show:?});"#)
    );
    // To others it is as if there were none.
    assert_eq!(ask(&admission, &bob, show).await.unwrap(), format!("String({show:?});"));
    let terminate = "TERMINATE TRANSACTION 'transaction-0' YIELD message";
    assert_eq!(ask(&admission, &bob, terminate).await.unwrap(), r#"String("Transaction not found.");"#);
    (_, transaction) = admission.run_within(transaction, request("one", "CREATE (:T)"), write).await.unwrap();
    assert_eq!(ask(&admission, &ada, terminate).await.unwrap(), r#"String("Transaction terminated.");"#);
    let refused = admission.run_within(transaction, request("two", "RETURN 1"), write).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Cancelled);
    // The other one goes on.
    let (_, other) = admission.run_within(other, request("three", "CREATE (:T)"), write).await.unwrap();
    admission.commit_transaction(other, &ada, Source::default()).await.unwrap();

    let transaction = begin();
    assert_eq!(ask(&admission, &ada, "TERMINATE TRANSACTION 'transaction-2'").await.map(drop), Ok(()));
    let refused = admission.commit_transaction(transaction, &ada, Source::default()).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Cancelled);
    assert_eq!(ask(&admission, &ada, show).await.unwrap(), format!("String({show:?});"), "none is open");
    assert_eq!(ask(&admission, &ada, "MATCH (t:T) RETURN count(t)").await.unwrap(), "Long(1);");
}

#[tokio::test]
async fn commands_about_transactions_are_composed() {
    let admission = admission(Limits::default());
    let who = request("", "").principal;
    let begin = || admission.begin(&who, Source::default(), None, false).unwrap();
    let (mut first, second) = (begin(), begin());
    (_, first) = admission.run_within(first, request("one", "CREATE (:T)"), write).await.unwrap();
    // The text lists itself too: it has a query, and the open transactions have none now.
    let text = "SHOW TRANSACTIONS YIELD transactionId AS id, currentQuery ORDER BY id WHERE currentQuery = '' \
                TERMINATE TRANSACTIONS id YIELD message, transactionId AS ended \
                SHOW TRANSACTIONS ended YIELD status \
                RETURN id = ended AS same, message, status";
    let ended = r#"Bool(true);String("Transaction terminated.");String("Terminated with reason: a client asked for it");"#;
    assert_eq!(ask(&admission, &who, text).await.unwrap(), ended.repeat(2));
    for transaction in [first, second] {
        let refused = admission.commit_transaction(transaction, &who, Source::default()).await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::Cancelled);
    }
    let unknown = "TERMINATE TRANSACTION 'none' YIELD transactionId AS id, message \
                   SHOW TRANSACTIONS id YIELD status RETURN message, status";
    assert_eq!(ask(&admission, &who, unknown).await.unwrap(), "", "nothing is shown for it");
}

#[tokio::test]
async fn a_running_query_of_a_transaction_ends_with_it() {
    let (admission, slot) = full(8);
    let who = request("", "").principal;
    let transaction = admission.begin(&who, Source::default(), None, false).unwrap();
    let long = request("long", "UNWIND range(1, 1000000) AS n RETURN n");
    let mut waiting = pin!(admission.run_within(transaction, long, write));
    assert!(poll_once(waiting.as_mut()).await.is_pending());
    let listed = tidegraph_engine::Running::visible_to(&*admission.running, &who);
    let statement = listed[0].query.as_ref().unwrap();
    assert_eq!((listed.len(), &*listed[0].id, &*statement.id), (1, "transaction-0", "long"));
    // A query of a transaction ends with it, not by its own id.
    let terminate = |id| tidegraph_engine::Running::terminate(&*admission.running, id, &who);
    assert_eq!((terminate("long"), terminate("transaction-0")), (None, Some(who.clone())));
    drop(slot);
    assert_eq!(waiting.await.unwrap_err().code(), ErrorCode::Cancelled);
    assert!(tidegraph_engine::Running::visible_to(&*admission.running, &who).is_empty());
}

#[tokio::test]
async fn ids_of_transactions_are_strings() {
    let admission = admission(Limits::default());
    for text in ["TERMINATE TRANSACTION 1", "SHOW TRANSACTIONS ['a', null]"] {
        assert_eq!(
            ask(&admission, &Principal::Anonymous, text).await,
            Err(ErrorCode::InvalidArgument),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_query_whose_caller_has_gone_leaves_list_and_queue() {
    let (admission, _slot) = full(1);
    {
        let mut waiting = pin!(admission.run(request("one", "RETURN 1"), write));
        assert!(poll_once(waiting.as_mut()).await.is_pending());
    }
    assert_eq!((admission.running(), admission.slots.waiting()), (vec![], 0));
}

#[tokio::test]
async fn a_known_text_needs_no_slot_unless_its_answer_is_long() {
    // A busy machine does not take the time of the try away.
    let inline = InlineLimits { time: Duration::from_secs(60), ..INLINE };
    let admission = admission(Limits { concurrent_queries: 1, inline, ..Limits::default() });
    for _ in 0..2 {
        admission.run(request("one", "RETURN 1 AS one"), write).await.unwrap();
    }
    let _slot = taken(&admission);
    let mut inline = pin!(admission.run(request("two", "RETURN 1 AS one"), write));
    let Poll::Ready(answer) = poll_once(inline.as_mut()).await else { panic!("it waits for a slot") };
    assert_eq!(answer.unwrap().first.bytes, "Long(1);");
    assert_eq!(admission.accepted(), 3);
    let long =
        |_: &Request, _: &Answer, output: &mut Output| output.write_all(&vec![b'x'; INLINE_ANSWER_BYTES + 1]);
    let answer = admission.run(request("three", "RETURN 1 AS one"), long).await.unwrap();
    assert_eq!(answer.first.bytes.len(), INLINE_ANSWER_BYTES + 1);
}

#[tokio::test]
async fn a_short_query_that_lost_its_time_is_tried_again_before_it_waits_for_a_slot() {
    // So long that a quick try ends in time on a busy machine, too.
    let inline = InlineLimits { time: Duration::from_millis(500), ..INLINE };
    // Calls so far, and the call from which on it is quick again.
    let calls = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let told = calls.clone();
    let signature = Signature::new("sometimes.slow").column("n", TypeTest::or_null(ValueType::Any));
    let procedure = Procedure::new(signature, move |_, rows| {
        let [count, quick_from] = &*told;
        let number = count.fetch_add(1, Ordering::Relaxed);
        if number < quick_from.load(Ordering::Relaxed) {
            RealClock::new().sleep(inline.time);
        }
        rows.add(vec![Value::from(1_i64)])
    });
    let procedures = Procedures::default().with(procedure).unwrap();
    let database = Database::open(Options { procedures, ..Options::default() }).unwrap();
    let limits = Limits { concurrent_queries: 1, inline, ..Limits::default() };
    let admission = Admission::new(database, limits);
    let text = "CALL sometimes.slow() YIELD n RETURN n";
    admission.run(request("plans it", text), write).await.unwrap();
    let [count, quick_from] = &*calls;
    let slow =
        |more: u64| quick_from.store(count.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
    // A slot is free: it is tried once, and then runs there.
    slow(1);
    admission.run(request("one", text), write).await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 3);
    // The engine forgets that failure behind successes.
    for _ in 0..3 {
        admission.run(request("quick", text), write).await.unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 6);
    let _slot = taken(&admission);
    slow(2);
    let mut tried = pin!(admission.run(request("two", text), write));
    let Poll::Ready(answer) = poll_once(tried.as_mut()).await else { panic!("it waits for a slot") };
    assert_eq!((answer.unwrap().first.bytes.as_ref(), count.load(Ordering::Relaxed)), (&b"Long(1);"[..], 9));
    // A query that is always long waits.
    slow(u64::MAX);
    let mut long = pin!(admission.run(request("three", text), write));
    assert!(poll_once(long.as_mut()).await.is_pending());
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
    assert_eq!(admission.slots.free(), 0);
    assert!(admission.memory().used_bytes() > 0);
    let part = answer.first.bytes.slice(0..2);
    drop(answer);
    assert_eq!(admission.slots.free(), 0);
    drop(part);
    assert_eq!((admission.slots.free(), admission.memory().used_bytes()), (1, 0));
}

/// Writes each value, and a semicolon.
#[derive(Clone)]
struct Values;

impl Writer for Values {
    fn begin(&mut self, _: &Arc<[Str]>, out: &mut Output) -> io::Result<()> {
        out.write_all(b"[")
    }

    fn row(&mut self, row: &[tidegraph_types::Value], out: &mut Output) -> io::Result<()> {
        row.iter().try_for_each(|value| write!(out, "{value:?};"))?;
        out.cut();
        Ok(())
    }

    fn end(&mut self, out: &mut Output) -> io::Result<()> {
        out.write_all(b"]")
    }
}

/// Fails at the row after `rows` others.
#[derive(Clone)]
struct Fails {
    rows: usize,
}

impl Writer for Fails {
    fn begin(&mut self, _: &Arc<[Str]>, _: &mut Output) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, _: &[tidegraph_types::Value], out: &mut Output) -> io::Result<()> {
        self.rows = self.rows.checked_sub(1).ok_or_else(|| io::Error::other("no room"))?;
        out.write_all(&[b'x'; 1_000])?;
        out.cut();
        Ok(())
    }

    fn end(&mut self, _: &mut Output) -> io::Result<()> {
        Ok(())
    }
}

const ENDLESS: &str = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN a + b";

#[tokio::test]
async fn an_answer_of_many_parts_is_the_same_as_a_whole_one() {
    let admission = admission(Limits::default());
    let text = "UNWIND range(1, 50000) AS n RETURN n";
    let streamed = admission.stream(request("one", text), Values).await.unwrap();
    let (mut bytes, mut more) = (streamed.first.bytes.to_vec(), streamed.more.unwrap());
    assert_eq!(&*streamed.columns, ["n"]);
    let mut parts = 1;
    while let Some(part) = more.next().await {
        bytes.extend(part.unwrap().bytes);
        parts += 1;
    }
    assert!(parts > 5, "{parts}");
    let whole =
        admission.run(request("one", text), |_, answer, out| Values.whole(answer, out)).await.unwrap();
    assert!(bytes == whole.first.bytes, "{} and {} bytes", bytes.len(), whole.first.bytes.len());
    assert!(bytes.ends_with(b"Long(50000);]"));
    drop((whole, more, streamed.first));
    assert_eq!((admission.running(), admission.memory().used_bytes()), (vec![], 0));
}

#[tokio::test]
async fn a_query_that_waits_for_its_client_lets_others_run_and_ends_with_it() {
    let admission = admission(Limits { concurrent_queries: 1, ..Limits::default() });
    let streamed = admission.stream(request("one", ENDLESS), Values).await.unwrap();
    // It holds the only slot until it has waited for a while.
    let other = admission.run(request("two", "RETURN 1 AS one"), write).await.unwrap();
    assert_eq!(other.first.bytes, "Long(1);");
    drop(other);
    assert!(admission.find("one").is_some());
    let mut more = streamed.more.unwrap();
    // A part is shorter if the query's thread was slow to fill it.
    let mut received = 0;
    while received < 10 * (64 << 10) {
        received += more.next().await.unwrap().unwrap().bytes.len();
    }
    drop((more, streamed.first));
    let is_over = || admission.find("one").is_none() && admission.memory().used_bytes() == 0;
    while !is_over() || admission.slots.free() < 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_writer_that_fails_ends_the_query_with_its_error() {
    let admission = admission(Limits::default());
    let failed = admission.stream(request("one", ENDLESS), Fails { rows: 0 }).await.unwrap_err();
    assert!(matches!(&failed, Error::Write(error) if error.to_string() == "no room"), "{failed}");
    let streamed = admission.stream(request("one", ENDLESS), Fails { rows: 500 }).await.unwrap();
    let mut more = streamed.more.unwrap();
    let mut last = None;
    while let Some(part) = more.next().await {
        last = Some(part);
    }
    assert!(matches!(last, Some(Err(Error::Write(_)))), "{last:?}");
}

#[tokio::test]
async fn an_error_before_the_first_part_is_the_answer() {
    let admission = admission(Limits::default());
    let failed =
        admission.stream(request("one", "UNWIND [1, 0] AS n RETURN 1 / n"), Values).await.unwrap_err();
    assert!(matches!(failed, Error::Query(_)), "{failed}");
}

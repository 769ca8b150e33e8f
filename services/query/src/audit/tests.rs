//! Tests of the audit log: its lines, its bounds, and what happens when the file is renamed or cannot be written.

use super::*;
use crate::admission::{Admission, Limits, Output, Request, Writer};
use std::path::Path;
use tidegraph_engine::{Answer, Database, Options, Role, Roles};
use tidegraph_platform::RealClock;
use tidegraph_types::Str;

/// Time limit of every wait. It is generous, because other programs may keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(120);

#[expect(clippy::disallowed_methods, reason = "a test reads its file")]
fn lines(file: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // Behind the last end of a line there is nothing, or a line that is being written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn open(file: &Path, parameters: bool) -> Audit {
    Audit::open(file.to_owned(), parameters, Arc::new(RealClock::new())).unwrap()
}

fn request(id: &str, text: &str) -> Request {
    let parameters = Parameters::from_iter([
        ("name".into(), Value::from("Ada")),
        ("list".into(), Value::list(vec![Value::Long(1), "x".into()])),
        ("long".into(), Value::string("y".repeat(10_000))),
    ]);
    Request {
        id: id.to_owned(),
        language: Language::OpenCypher,
        gremlin_version: None,
        text: text.to_owned(),
        parameters,
        timeout: None,
        at_least: None,
        read_only: false,
        key: None,
        principal: Principal::User("ada".into(), Roles::from_iter([Role::Write])),
        source: Source { address: Some("10.0.0.1:4711".parse().unwrap()), protocol: Protocol::Bolt },
        memory: None,
        frees_slot: false,
        explain: None,
    }
}

fn write(_: &Request, _: &Answer, _: &mut Output) -> io::Result<()> {
    Ok(())
}

fn admission() -> Arc<Admission> {
    Admission::new(Database::open(Options::default()).unwrap(), Limits::default())
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_recorded_with_their_outcome() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("audit.jsonl");
    let (admission, audit) = (admission(), open(&file, false));
    admission.record_in(audit.clone());
    admission.run(request("1", "UNWIND [1, 2, 3] AS n CREATE (a:A) RETURN n"), write).await.unwrap();
    admission.run(request("2", "MATCH (n RETURN n"), write).await.unwrap_err();
    admission.run(request("3", "CREATE INDEX FOR (n:A) ON (n.k)"), write).await.unwrap_err();
    let transaction = admission.begin(&Principal::Anonymous, Source::default(), None, false).unwrap();
    let (_, transaction) =
        admission.run_within(transaction, request("4", "CREATE (:A)"), write).await.unwrap();
    let asked = request("", "");
    admission.commit_transaction(transaction, &asked.principal, asked.source).await.unwrap();
    audit.close(PATIENCE);
    let lines = lines(&file);
    let of = |line: &serde_json::Value| {
        ["operation", "requestId", "verdict", "code", "rows", "wrote"]
            .map(|name| line[name].to_string())
            .join(" ")
    };
    let found: Vec<_> = lines.iter().map(of).collect();
    assert_eq!(
        found,
        [
            "\"query\" \"1\" \"ok\" null 3 true",
            "\"query\" \"2\" \"error\" \"MalformedQueryException\" null null",
            "\"query\" \"3\" \"denied\" \"AccessDeniedException\" null null",
            "\"query\" \"4\" \"ok\" null 0 true",
            "\"commit\" null \"ok\" null null null",
        ]
    );
    for line in &lines {
        assert_eq!(
            (&line["principal"], &line["address"], &line["protocol"]),
            (&"user:ada".into(), &"10.0.0.1:4711".into(), &"bolt".into())
        );
        assert!(line["time"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
        assert!(line["durationMs"].is_u64() && line["parameters"].is_null());
    }
    assert_eq!(lines[1]["text"], "MATCH (n RETURN n");
    // After its end nothing is carried out that cannot be recorded.
    let refused = admission.run(request("5", "RETURN 1"), write).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable);
}

/// Writes 100 bytes for each row.
#[derive(Clone)]
struct Hundreds;

impl Writer for Hundreds {
    fn begin(&mut self, _: &Arc<[Str]>, _: &mut Output) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Value], out: &mut Output) -> io::Result<()> {
        assert!(row[0] != Value::Long(-1), "the row on which a writer panics");
        io::Write::write_all(out, &[b'x'; 100])?;
        out.cut();
        Ok(())
    }

    fn end(&mut self, _: &mut Output) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streamed_answers_are_recorded_once_when_they_end() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("audit.jsonl");
    let (admission, audit) = (admission(), open(&file, false));
    admission.record_in(audit.clone());
    for (id, text) in [
        ("whole", "UNWIND [1, 2, 3] AS n RETURN n"),
        ("parts", "UNWIND range(1, 50000) AS n RETURN n"),
        ("write", "CREATE (a:A) RETURN a.n AS n"),
        ("error", "UNWIND range(1, 50000) AS n RETURN 1 / (40000 - n)"),
        ("panic", "UNWIND range(1, 50000) AS n RETURN CASE n WHEN 40000 THEN -1 ELSE n END"),
    ] {
        let streamed = admission.stream(request(id, text), Hundreds).await.unwrap();
        let Some(mut more) = streamed.more else { continue };
        if text.contains("50000") {
            assert!(lines(&file).iter().all(|line| line["requestId"] != id), "{id} has not ended");
        }
        while let Some(part) = more.next().await {
            assert!(part.is_ok() || ["error", "panic"].contains(&id), "{id}: {part:?}");
        }
    }
    let mut denied = request("denied", "UNWIND range(1, 50000) AS n RETURN n");
    denied.principal = Principal::User("bob".into(), Roles::from_iter([Role::Load]));
    admission.stream(denied, Hundreds).await.unwrap_err();
    let endless = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN a + b";
    let mut left = admission.stream(request("left", endless), Hundreds).await.unwrap().more.unwrap();
    left.next().await.unwrap().unwrap();
    drop(left);
    while admission.find("left").is_some() {
        tokio::task::yield_now().await;
    }
    while lines(&file).len() < 7 {
        tokio::task::yield_now().await;
    }
    audit.close(PATIENCE);
    let of = |line: &serde_json::Value| {
        ["requestId", "verdict", "code", "rows", "wrote"].map(|name| line[name].to_string()).join(" ")
    };
    let found: Vec<_> = lines(&file).iter().map(of).collect();
    assert_eq!(
        found,
        [
            "\"whole\" \"ok\" null 3 false",
            "\"parts\" \"ok\" null 50000 false",
            "\"write\" \"ok\" null 1 true",
            "\"error\" \"error\" \"InvalidArgumentException\" null null",
            "\"panic\" \"error\" \"InternalFailureException\" null null",
            "\"denied\" \"denied\" \"AccessDeniedException\" null null",
            "\"left\" \"abandoned\" null null null",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_recorded_if_asked_for_and_long_ones_are_cut() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("audit.jsonl");
    let (admission, audit) = (admission(), open(&file, true));
    admission.record_in(audit.clone());
    let long = format!("RETURN '{}'", "ä".repeat(TEXT_BYTES));
    admission.run(request("1", &long), write).await.unwrap();
    audit.close(PATIENCE);
    let line = &lines(&file)[0];
    assert_eq!(line["parameters"]["name"], "Ada");
    assert_eq!(line["parameters"]["list"], serde_json::json!([1, "x"]));
    assert_eq!(line["parameters"]["long"].as_str().unwrap().len(), PARAMETER_BYTES + "…".len());
    assert!((TEXT_BYTES - 1..=TEXT_BYTES).contains(&line["text"].as_str().unwrap().len()));
    assert_eq!(line["textBytes"], long.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_whose_caller_has_gone_is_recorded() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("audit.jsonl");
    let audit = open(&file, false);
    drop(audit.begin_query(&request("1", "RETURN 1")).await.unwrap());
    audit.close(PATIENCE);
    assert_eq!(lines(&file)[0]["verdict"], "abandoned");
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "a test renames its file")]
async fn a_renamed_file_is_made_anew() {
    let home = tempfile::tempdir().unwrap();
    let (file, renamed) = (home.path().join("audit.jsonl"), home.path().join("audit.jsonl.1"));
    let audit = open(&file, false);
    let source = Source::default();
    audit.refused(Some("ada"), source, ErrorCode::Unauthorized).await;
    while lines(&file).is_empty() {
        tokio::task::yield_now().await;
    }
    std::fs::rename(&file, &renamed).unwrap();
    audit.reopen();
    audit.refused(None, source, ErrorCode::AccessDenied).await;
    audit.close(PATIENCE);
    assert_eq!(lines(&renamed)[0]["detail"], "user \"ada\"");
    let new = lines(&file);
    assert_eq!(
        (new.len(), &new[0]["verdict"], &new[0]["operation"]),
        (1, &"denied".into(), &"authentication".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_file_cannot_be_written_requests_are_refused_and_no_line_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("logs");
    let make = || {
        #[expect(clippy::disallowed_methods, reason = "a test makes its folder")]
        std::fs::create_dir(&folder).unwrap();
    };
    make();
    let file = folder.join("audit.jsonl");
    let audit = open(&file, false);
    #[expect(clippy::disallowed_methods, reason = "a test removes its folder")]
    std::fs::remove_dir_all(&folder).unwrap();
    let begin = || audit.begin("GET /loader", &Principal::Anonymous, Source::default());
    begin().await.unwrap().end(Ok(()));
    // The line cannot be written: its folder is gone.
    let refused = loop {
        match begin().await {
            Ok(record) => record.end(Ok(())),
            Err(refused) => break refused,
        }
        tokio::task::yield_now().await;
    };
    assert!(refused.to_string().contains("audit.jsonl"), "{refused}");
    make();
    while begin().await.is_err() {
        tokio::task::yield_now().await;
    }
    audit.close(PATIENCE);
    assert!(lines(&file).len() >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_wait_for_room() {
    let home = tempfile::tempdir().unwrap();
    let audit = open(&home.path().join("audit.jsonl"), false);
    let mut held = vec![];
    for _ in 0..MOST_WAITING {
        held.push(audit.begin("GET /loader", &Principal::Anonymous, Source::default()).await.unwrap());
    }
    let mut next = std::pin::pin!(audit.begin("GET /loader", &Principal::Anonymous, Source::default()));
    let polled =
        std::future::poll_fn(|context| std::task::Poll::Ready(next.as_mut().poll(context).is_pending()));
    assert!(polled.await, "there is room for more lines than may wait");
    held.pop();
    next.await.unwrap();
}

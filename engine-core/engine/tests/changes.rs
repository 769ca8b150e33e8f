//! The change stream: order, former values, places to begin at, gaps, restarts.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod support;

use std::path::Path;
use std::sync::Arc;
use support::run;
use tidegraph_engine::{ChangeFeed, Database, Error, Language, Options, Parameters, Query, Transaction};
use tidegraph_log::{Body, LogStore, MemoryLog, Record};
use tidegraph_platform::RealClock;
use tidegraph_types::{
    Change, Changed, Changes, ChangesFrom, ChangesPage, ChangesRequest, Epoch, ErrorCode, EventId, ShardId,
    Sid, Version,
};

fn options() -> Options {
    Options { streams: true, ..Options::default() }
}

fn memory() -> Arc<Database> {
    Database::open(options()).expect("a database in memory")
}

fn page(database: &Database, from: ChangesFrom, limit: usize) -> Result<ChangesPage, Error> {
    database.changes(&ChangesRequest { from, limit, bytes: 100 << 20 }, None)
}

fn lines(database: &Database, page: &ChangesPage) -> Vec<String> {
    let line = |change: &tidegraph_types::Change| {
        let (op, id) = (if change.removed { '-' } else { '+' }, &change.id);
        match &change.what {
            Changed::VertexLabel(label) => {
                let label = label.map(|label| database.name(label)).unwrap_or_default();
                format!("{op}{id}:{label}")
            }
            Changed::VertexProperty(key, value) => format!("{op}{id}.{}={value:?}", database.name(*key)),
            Changed::Edge { label, from, to } => format!("{op}{id}:{} {from}->{to}", database.name(*label)),
            Changed::EdgeProperty(key, value) => format!("{op}{id}.{}={value:?}", database.name(*key)),
        }
    };
    page.commits.iter().flat_map(|part| &part.changes.list).map(line).collect()
}

fn end(page: &ChangesPage) -> EventId {
    let last = page.commits.last().expect("a page is not empty");
    EventId { op: last.first.op + last.changes.list.len() as u64 - 1, ..last.first }
}

/// Runs a text and returns what the stream tells of it.
fn told(database: &Database, text: &str) -> Vec<String> {
    let before = page(database, ChangesFrom::Newest, 1).ok().map(|page| end(&page));
    run(database, text);
    let from = before.map_or(ChangesFrom::Oldest, ChangesFrom::After);
    let found = match page(database, from, 10_000) {
        Ok(found) => found,
        Err(error) if error.code() == ErrorCode::StreamRecordsNotFound => return vec![],
        Err(error) => panic!("{error}"),
    };
    assert!(found.commits.last().is_some_and(|last| last.is_end));
    lines(database, &found)
}

fn code(answer: Result<ChangesPage, Error>) -> ErrorCode {
    answer.expect_err("it is refused").code()
}

#[test]
fn changes_have_ids_and_former_values_in_an_order_that_can_be_applied() {
    let database = memory();
    assert_eq!(
        told(&database, "CREATE (:A:B {`~id`: 'a', n: 1})-[:R {`~id`: 'e', w: 0.5}]->({`~id`: 'b'})"),
        ["+a:A", "+a:B", "+a.n=Long(1)", "+b:", "+e:R a->b", "+e.w=Double(0.5)"]
    );
    assert_eq!(told(&database, "MATCH (n {n: 1}) SET n.n = 2"), ["-a.n=Long(1)", "+a.n=Long(2)"]);
    assert_eq!(told(&database, "MATCH (n {n: 2}) SET n.n = 2"), Vec::<String>::new());
    assert_eq!(told(&database, "MATCH (n {n: 2}) SET n.n = 2.0"), ["-a.n=Long(2)", "+a.n=Double(2.0)"]);
    assert_eq!(
        told(&database, "MATCH ()-[e]->() SET e.w = 'x', e.v = true"),
        ["-e.w=Double(0.5)", "+e.w=String(\"x\")", "+e.v=Bool(true)"]
    );
    assert_eq!(told(&database, "MATCH ()-[e]->() REMOVE e.w"), ["-e.w=String(\"x\")"]);
    assert_eq!(told(&database, "MATCH (b) WHERE id(b) = 'b' SET b:C"), ["+b:C", "-b:"]);
    assert_eq!(told(&database, "MATCH (b:C) REMOVE b:C"), ["+b:", "-b:C"]);
    assert_eq!(
        told(&database, "g.V('b').property(set,'t','x').property(set,'t','y')"),
        ["+b.t=String(\"x\")", "+b.t=String(\"y\")"]
    );
    assert_eq!(told(&database, "g.V('b').properties('t').hasValue('x').drop()"), ["-b.t=String(\"x\")"]);
    assert_eq!(
        told(&database, "MATCH (a:A) DETACH DELETE a"),
        ["-e.v=Bool(true)", "-e:R a->b", "-a.n=Double(2.0)", "-a:A", "-a:B"]
    );
    assert_eq!(told(&database, "g.V().drop()"), ["-b.t=String(\"y\")", "-b:"]);
    assert_eq!(told(&database, "CREATE INDEX FOR (n:A) ON (n.n)"), Vec::<String>::new());
}

#[test]
fn an_element_that_is_made_and_deleted_in_one_transaction_is_not_told() {
    let database = memory();
    assert_eq!(told(&database, "CREATE (n {`~id`: 'a'}) DELETE n"), Vec::<String>::new());
    run(&database, "CREATE ({`~id`: 'b', n: 1})");
    assert_eq!(
        told(&database, "MATCH (n {n: 1}) DELETE n CREATE (:N {`~id`: 'b', n: 2})"),
        ["-b.n=Long(1)", "-b:", "+b:N", "+b.n=Long(2)"]
    );
}

#[test]
fn a_hub_is_deleted_edge_by_edge() {
    let database = memory();
    run(&database, "CREATE (:Hub {`~id`: 'hub'})");
    run(&database, "MATCH (h:Hub) UNWIND range(1, 70000) AS i CREATE (h)-[:R]->(:N)");
    let before = page(&database, ChangesFrom::Newest, 1).expect("a change");
    run(&database, "MATCH (h:Hub) DETACH DELETE h");
    let found = page(&database, ChangesFrom::After(end(&before)), 100_000).expect("changes");
    let lines = lines(&database, &found);
    assert_eq!(lines.len(), 70_001);
    assert!(lines[..70_000].iter().all(|line| line.starts_with('-') && line.contains(" hub->")));
    assert_eq!(lines[70_000], "-hub:Hub");
}

#[test]
fn a_page_ends_within_a_commit_and_the_next_goes_on() {
    let database = memory();
    run(&database, "UNWIND range(1, 10) AS i CREATE ({`~id`: 'n' + toString(i)})");
    run(&database, "UNWIND range(11, 20) AS i CREATE ({`~id`: 'n' + toString(i)})");
    for limit in [1, 3, 10, 15, 100] {
        let (mut all, mut from) = (Vec::new(), ChangesFrom::Oldest);
        while let Ok(found) = page(&database, from, limit) {
            all.extend(lines(&database, &found));
            from = ChangesFrom::After(end(&found));
        }
        let expected: Vec<String> = (1..=20).map(|i| format!("+n{i}:")).collect();
        assert_eq!(all, expected, "limit {limit}");
    }
    let first = page(&database, ChangesFrom::Oldest, 1).expect("a change");
    let EventId { commit, op } = end(&first);
    assert!(op == 1 && !first.commits[0].is_end);
    let at = |op| ChangesFrom::At(EventId { commit, op });
    assert_eq!(lines(&database, &page(&database, at(4), 2).expect("changes")), ["+n4:", "+n5:"]);
    // The number of no change: the next one counts.
    assert_eq!(lines(&database, &page(&database, at(11), 1).expect("a change")), ["+n11:"]);
    let at = ChangesFrom::At(EventId { commit: Version(0), op: 9 });
    assert_eq!(lines(&database, &page(&database, at, 1).expect("a change")), ["+n1:"]);
    // The answer ends with the change that reaches the limit of bytes.
    let request = ChangesRequest { from: ChangesFrom::Oldest, limit: 100, bytes: 200 };
    let found = database.changes(&request, None).expect("changes");
    assert_eq!(lines(&database, &found), ["+n1:", "+n2:"]);
}

#[test]
fn the_end_of_the_stream_is_not_found_until_there_is_more() {
    let database = memory();
    for from in [ChangesFrom::Oldest, ChangesFrom::Newest, ChangesFrom::At(EventId::default())] {
        assert_eq!(code(page(&database, from, 10)), ErrorCode::StreamRecordsNotFound);
    }
    run(&database, "CREATE ({`~id`: 'a'}), ({`~id`: 'b'})");
    let newest = page(&database, ChangesFrom::Newest, 10).expect("the last change");
    assert_eq!(lines(&database, &newest), ["+b:"]);
    let after = ChangesFrom::After(end(&newest));
    assert_eq!(code(page(&database, after, 10)), ErrorCode::StreamRecordsNotFound);
    let future = ChangesFrom::At(EventId { commit: Version(1_000_000), op: 1 });
    assert_eq!(code(page(&database, future, 10)), ErrorCode::StreamRecordsNotFound);
    run(&database, "CREATE ({`~id`: 'c'})");
    assert_eq!(lines(&database, &page(&database, after, 10).expect("a change")), ["+c:"]);
}

#[test]
fn a_transaction_of_several_requests_is_one_commit() {
    let database = memory();
    let none = Parameters::default();
    let mut transaction = Transaction::new(None, None, false);
    for text in ["CREATE (:A {`~id`: 'a', n: 1})", "MATCH (a:A) SET a.n = 2", "CREATE (:B {`~id`: 'b'})"] {
        database.query_within(&mut transaction, &Query::new(Language::OpenCypher, text, &none)).expect(text);
    }
    let version = database.commit_transaction(transaction).expect("it is committed");
    let found = page(&database, ChangesFrom::Oldest, 10).expect("changes");
    assert_eq!(found.commits.len(), 1);
    assert_eq!(found.commits[0].first, EventId { commit: version, op: 1 });
    assert_eq!(lines(&database, &found), ["+a:A", "+a.n=Long(2)", "+b:B"]);
}

#[test]
fn a_former_value_is_the_newest_one_beside_other_writers() {
    let database = Database::open(Options { conflict_retries: 10_000, ..options() }).expect("a database");
    run(&database, "CREATE (:N {`~id`: 'n', n: 0})");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for i in 0..25 {
                    run(&database, &format!("MATCH (n:N) SET n.n = n.n + 1, n.m = {i}"));
                }
            });
        }
    });
    let found = page(&database, ChangesFrom::Oldest, 10_000).expect("changes");
    let values: Vec<String> =
        lines(&database, &found).into_iter().filter(|line| line.contains("n.n=")).collect();
    let mut expected = vec!["+n.n=Long(0)".to_owned()];
    expected.extend((0..100).flat_map(|i| [format!("-n.n=Long({i})"), format!("+n.n=Long({})", i + 1)]));
    assert_eq!(values, expected);
}

#[test]
fn what_the_stream_does_not_tell_ends_it_before() {
    let database = memory();
    run(&database, "CREATE ({`~id`: 'a'})");
    let before = end(&page(&database, ChangesFrom::Newest, 1).expect("a change"));
    let token = database.begin_reset().expect("a token");
    let reset = database.reset(&token).expect("it is reset");
    let expired = page(&database, ChangesFrom::After(before), 10).expect_err("it is refused");
    assert_eq!(expired.code(), ErrorCode::ExpiredStream);
    assert!(expired.to_string().contains(&format!("commit {reset} is a fast reset")), "{expired}");
    let at = |from: fn(EventId) -> ChangesFrom| from(EventId { commit: reset, op: 1 });
    assert_eq!(code(page(&database, at(ChangesFrom::At), 10)), ErrorCode::ExpiredStream);
    assert_eq!(code(page(&database, at(ChangesFrom::After), 10)), ErrorCode::StreamRecordsNotFound);
    assert_eq!(code(page(&database, ChangesFrom::Newest, 10)), ErrorCode::StreamRecordsNotFound);
    run(&database, "CREATE ({`~id`: 'b'})");
    for from in [ChangesFrom::Oldest, ChangesFrom::Newest, at(ChangesFrom::After)] {
        assert_eq!(lines(&database, &page(&database, from, 10).expect("a change")), ["+b:"]);
    }
    assert_eq!(code(page(&database, ChangesFrom::After(before), 10)), ErrorCode::ExpiredStream);
}

#[test]
fn a_graph_without_streams_refuses_and_writes_nothing_more_into_its_log() {
    let database = Database::open(Options::default()).expect("a database in memory");
    run(&database, "CREATE ({`~id`: 'a'})");
    assert_eq!(code(page(&database, ChangesFrom::Oldest, 10)), ErrorCode::UnsupportedOperation);
}

fn open(dir: &Path, streams: bool) -> Arc<Database> {
    let data_dir = Some(dir.to_path_buf());
    Database::open(Options { data_dir, streams, ..Options::default() }).expect("it opens")
}

#[test]
fn a_reader_goes_on_after_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = open(dir.path(), true);
    run(&database, "UNWIND range(1, 5) AS i CREATE ({`~id`: 'n' + toString(i)})");
    let begun = page(&database, ChangesFrom::Oldest, 3).expect("changes");
    database.close();
    drop(database);
    let database = open(dir.path(), true);
    run(&database, "CREATE ({`~id`: 'n6'})");
    let rest = page(&database, ChangesFrom::After(end(&begun)), 10).expect("changes");
    assert_eq!(lines(&database, &rest), ["+n4:", "+n5:", "+n6:"]);
    database.close();
    drop(database);
    // A process without the setting writes what the stream does not tell.
    let database = open(dir.path(), false);
    run(&database, "CREATE ({`~id`: 'n7'})");
    database.close();
    drop(database);
    let database = open(dir.path(), true);
    run(&database, "CREATE ({`~id`: 'n8'})");
    let expired = page(&database, ChangesFrom::After(end(&rest)), 10).expect_err("it is refused");
    assert!(expired.to_string().contains("without streams"), "{expired}");
    let found = page(&database, ChangesFrom::Oldest, 10).expect("changes");
    assert_eq!(lines(&database, &found), ["+n8:"]);
}

/// Returns a record that adds a vertex named after its version.
fn record(version: u64) -> Record {
    let id = format!("n{version}").into();
    let list = vec![Change { removed: false, id, what: Changed::VertexLabel(None) }];
    let changes = Some(Changes { taken_ms: 1, list });
    let body = Body::Commit { mutations: vec![], next_sid: Sid(1), request: None, changes };
    Record { shard: ShardId(0), epoch: Epoch(1), version: Version(version), body }
}

#[test]
fn trimmed_changes_are_expired_and_a_reader_at_the_end_goes_on() {
    let mut log = MemoryLog::new(ShardId(0));
    let feed = ChangeFeed::new(log.readers().expect("readers"), Arc::new(RealClock::new()));
    let ids = |from, upto| {
        let request = ChangesRequest { from, limit: 100, bytes: 1 << 20 };
        let page = feed.page(&request, Version(upto), &|| false).map_err(|error| error.code())?;
        let all = page.commits.into_iter().flat_map(|part| part.changes.list);
        Ok::<_, ErrorCode>(all.map(|change| change.id.to_string()).collect::<Vec<_>>())
    };
    let after = |commit| ChangesFrom::After(EventId { commit: Version(commit), op: 1 });
    log.append(&[1, 2, 3, 4].map(record)).expect("it is appended");
    assert_eq!(ids(ChangesFrom::Oldest, 4), Ok(vec!["n1".into(), "n2".into(), "n3".into(), "n4".into()]));
    assert_eq!(ids(after(2), 4), Ok(vec!["n3".into(), "n4".into()]));
    log.trim(Version(5)).expect("it is trimmed");
    assert_eq!(ids(after(4), 4), Err(ErrorCode::StreamRecordsNotFound));
    log.append(&[5, 6].map(record)).expect("it is appended");
    // The change after which it asks is gone, but it was the last one of its commit.
    assert_eq!(ids(after(4), 6), Ok(vec!["n5".into(), "n6".into()]));
    assert_eq!(ids(after(2), 6), Err(ErrorCode::ExpiredStream));
    assert_eq!(ids(ChangesFrom::Oldest, 6), Ok(vec!["n5".into(), "n6".into()]));
    // Another process does not know what was before.
    let feed = ChangeFeed::new(log.readers().expect("readers"), Arc::new(RealClock::new()));
    let request = |from| ChangesRequest { from, limit: 1, bytes: 1 << 20 };
    let page = |from| feed.page(&request(from), Version(6), &|| false).map_err(|error| error.code());
    assert_eq!(page(after(4)).expect_err("it is refused"), ErrorCode::ExpiredStream);
    assert_eq!(page(ChangesFrom::Oldest).expect("a change").commits[0].first.commit, Version(5));
    let stopped = feed.page(&request(after(5)), Version(7), &|| true).expect_err("it is stopped");
    assert_eq!(stopped.code(), ErrorCode::TimeLimitExceeded);
}

#[test]
fn changes_above_the_newest_version_are_not_told() {
    let mut log = MemoryLog::new(ShardId(0));
    let feed = ChangeFeed::new(log.readers().expect("readers"), Arc::new(RealClock::new()));
    log.append(&[1, 2, 3].map(record)).expect("it is appended");
    let request = ChangesRequest { from: ChangesFrom::Oldest, limit: 100, bytes: 1 << 20 };
    for newest in 1..=3 {
        let page = feed.page(&request, Version(newest), &|| false).expect("changes");
        assert_eq!(page.commits.len() as u64, newest);
    }
}

/// Returns the bytes of the log after some statements.
fn log_bytes(streams: bool, texts: &[&str]) -> u64 {
    let dir = tempfile::tempdir().expect("a directory");
    let database = open(dir.path(), streams);
    texts.iter().for_each(|text| drop(run(&database, text)));
    let files = std::fs::read_dir(dir.path().join("log")).expect("a log");
    files.map(|file| file.expect("a file").metadata().expect("its length").len()).sum()
}

#[test]
fn only_graphs_with_streams_pay_for_them() {
    const MAKE: &str = "UNWIND range(1, 1000) AS i CREATE (:Person {`~id`: 'person-' + toString(i), name: 'name ' + \
                        toString(i), age: i % 90})";
    const LINK: &str =
        "MATCH (a:Person), (b:Person) WHERE b.age = a.age CREATE (a)-[:KNOWS {since: a.age}]->(b)";
    const CHANGE: &str = "MATCH (p:Person) SET p.age = p.age + 1";
    const DELETE: &str = "MATCH (p:Person) DETACH DELETE p";
    let all = [MAKE, LINK, CHANGE, DELETE];
    let mut before = [0, 0];
    for count in 1..=all.len() {
        let bytes = [false, true].map(|streams| log_bytes(streams, &all[..count]));
        let [off, on] = [bytes[0] - before[0], bytes[1] - before[1]];
        println!("{:.60}: {off} bytes without streams, {on} with them", all[count - 1]);
        assert!(off < on && on < 12 * off, "{off} {on}");
        before = bytes;
    }
}

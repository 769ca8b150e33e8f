//! What a graph keeps after restarts and crashes. A crash is a copy of the directory
//! taken while the database is open.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod support;

use std::path::{Path, PathBuf};
use support::{copy, open, run};
use tidegraph_engine::loads::{Dialect, LoadSpec, LoadState};
use tidegraph_engine::{Database, Language, Options, Query};
use tidegraph_types::ErrorCode;

#[test]
fn what_was_acknowledged_is_found_after_a_crash() {
    let home = tempfile::tempdir().expect("a folder");
    let (live, crashed) = (home.path().join("live"), home.path().join("crashed"));
    let database = open(&live);
    for n in 0..50 {
        run(&database, &format!("CREATE (a:T {{n: {n}}})-[:R {{n: {n}}}]->(b:T {{n: {n}}})"));
    }
    copy(&live, &crashed);
    let after = open(&crashed);
    assert_eq!(run(&after, "MATCH (a:T)-[r:R]->(b:T) WHERE a.n = r.n AND r.n = b.n RETURN count(*)"), ["50"]);
    assert!(
        after.status().epoch > database.status().epoch || after.status().version >= database.status().version
    );
    // Ids of new elements do not repeat earlier ones.
    run(&after, "CREATE (:T)-[:R]->(:T)");
    assert_eq!(run(&after, "MATCH ()-[r]->() RETURN count(DISTINCT id(r))"), ["51"]);
}

#[test]
fn a_checkpoint_and_the_log_after_it_give_the_graph() {
    let home = tempfile::tempdir().expect("a folder");
    let (live, crashed) = (home.path().join("live"), home.path().join("crashed"));
    let database = open(&live);
    run(&database, "UNWIND range(1, 1000) AS i CREATE (:A {i: i})");
    database.checkpoint().expect("a checkpoint");
    run(&database, "MATCH (n:A) WHERE n.i > 900 SET n:Late");
    run(&database, "MATCH (n:A {i: 1}) DELETE n");
    copy(&live, &crashed);
    let after = open(&crashed);
    assert!(after.status().checkpoint_version > 0);
    assert_eq!(run(&after, "MATCH (n:A) RETURN count(n), sum(n.i)"), ["999 | 500499"]);
    assert_eq!(run(&after, "MATCH (n:Late) RETURN count(n)"), ["100"]);
}

/// Removes `lost` (a path in the graph's directory) while the graph is closed, by a crash.
fn crashed_without(lost: &str, home: &Path) -> PathBuf {
    let (live, crashed) = (home.join("live"), home.join("crashed"));
    let database = open(&live);
    run(&database, "UNWIND range(1, 25) AS i CREATE (:A {i: i})");
    database.checkpoint().expect("a checkpoint");
    (26..=30).for_each(|i| drop(run(&database, &format!("CREATE (:A {{i: {i}}})"))));
    copy(&live, &crashed);
    std::fs::remove_dir_all(crashed.join(lost)).expect("it is there");
    crashed
}

#[test]
fn a_graph_whose_log_is_missing_is_not_opened_as_if_it_were_whole() {
    let home = tempfile::tempdir().expect("a folder");
    let dir = crashed_without("log", home.path());
    let options = |accept_loss| Options { data_dir: Some(dir.clone()), accept_loss, ..Options::default() };
    let error = Database::open(options(None)).err().expect("the log is missing");
    assert_eq!(error.code(), ErrorCode::Corrupt);
    let text = error.to_string();
    let (_, version) = text.split_once("--accept-loss ").expect("what to do");
    let version: u64 = version.split('`').next().and_then(|text| text.parse().ok()).expect("a version");
    assert!(Database::open(options(Some(version + 1))).is_err(), "another version is not what is left");
    let database = Database::open(options(Some(version))).expect("the loss is accepted");
    assert_eq!(run(&database, "MATCH (n:A) RETURN count(n)"), ["25"]);
    run(&database, "CREATE (:A {i: 31})");
    drop(database);
    assert_eq!(run(&open(&dir), "MATCH (n:A) RETURN count(n)"), ["26"]);
}

#[test]
fn writes_stop_when_the_directory_is_removed() {
    let home = tempfile::tempdir().expect("a folder");
    let dir = home.path().join("live");
    let database = open(&dir);
    run(&database, "CREATE (:A)");
    std::fs::remove_dir_all(&dir).expect("it is there");
    let none = tidegraph_engine::Parameters::default();
    let write = Query::new(Language::OpenCypher, "CREATE (:A)", &none);
    for code in [ErrorCode::CommitOutcomeUnknown, ErrorCode::Unavailable] {
        let error = database.query(&write).expect_err("nobody would find this write");
        assert_eq!(error.code(), code);
        assert!(error.chain().to_string().contains("while it was open"), "{}", error.chain());
    }
    assert!(!database.status().writable);
    assert_eq!(run(&database, "MATCH (n:A) RETURN count(n)"), ["1"], "reads go on");
}

#[test]
fn meta_properties_survive_a_crash_and_a_checkpoint() {
    let home = tempfile::tempdir().expect("a folder");
    let live = home.path().join("live");
    let database = open(&live);
    run(&database, "g.addV('p').property(id,'a').property(single,'name','ann','acl','public')");
    run(
        &database,
        "g.V('a').property(list,'place','ulm','from',1999).property(list,'place','ulm','from',2008)",
    );
    let check = |database: &Database| {
        assert_eq!(run(database, "g.V('a').properties('name').values('acl')"), ["public"]);
        assert_eq!(run(database, "g.V('a').properties('place').values('from')"), ["1999", "2008"]);
    };
    check(&database);
    let crashed = home.path().join("by the log");
    copy(&live, &crashed);
    check(&open(&crashed));
    // Recovers from a checkpoint and the log after it.
    database.checkpoint().expect("a checkpoint");
    for (name, change) in [
        ("by the checkpoint", None),
        ("and a change", Some("g.V('a').properties('place').has('from',1999).property('to',2003)")),
        ("and a removal", Some("g.V('a').properties('place').has('from',2008).drop()")),
    ] {
        if let Some(change) = change {
            run(&database, change);
        }
        let crashed = home.path().join(name);
        copy(&live, &crashed);
        let after = open(&crashed);
        assert!(after.status().checkpoint_version > 0);
        match name {
            "and a removal" => {
                let left = run(&after, "g.V('a').properties('place').valueMap()");
                assert_eq!(left, ["{from: 1999, to: 2003}"]);
            }
            "and a change" => {
                check(&after);
                assert_eq!(run(&after, "g.V('a').properties('place').has('to',2003).count()"), ["1"]);
            }
            _ => check(&after),
        }
    }
}

#[test]
fn a_damaged_checkpoint_is_refused_and_the_one_before_it_is_used() {
    let home = tempfile::tempdir().expect("a folder");
    let (live, crashed) = (home.path().join("live"), home.path().join("crashed"));
    let database = open(&live);
    run(&database, "CREATE (:A {i: 1})");
    database.checkpoint().expect("the first");
    run(&database, "CREATE (:A {i: 2})");
    let newest = database.checkpoint().expect("the second");
    copy(&live, &crashed);
    let mut damaged = 0;
    let folder = crashed.join("checkpoints");
    let name = format!("{:020}", newest.0);
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("read").map(|e| e.expect("entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.display().to_string().contains(&name)
                && entry.display().to_string().contains("data")
            {
                let mut bytes = std::fs::read(&entry).expect("read");
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x10;
                std::fs::write(&entry, bytes).expect("written");
                damaged += 1;
            }
        }
    }
    assert!(damaged > 0, "nothing was damaged");
    let after = open(&crashed);
    assert_eq!(run(&after, "MATCH (n:A) RETURN n.i ORDER BY n.i"), ["1", "2"]);
}

#[test]
fn a_load_survives_a_crash_as_a_whole() {
    let home = tempfile::tempdir().expect("a folder");
    let (live, crashed) = (home.path().join("live"), home.path().join("crashed"));
    let files = home.path().join("files");
    std::fs::create_dir_all(&files).expect("made");
    std::fs::write(files.join("v.csv"), "~id,~label,name\na,P,x\nb,P,y\n").expect("written");
    std::fs::write(files.join("e.csv"), "~id,~from,~to,~label,w:Int\ne1,a,b,KNOWS,3\n").expect("written");
    let database = open(&live);
    run(&database, "CREATE (:P {`~id`: 'a', age: 4})");
    let source = format!("file://{}", files.display());
    let id =
        database.loads().submit(LoadSpec::new(vec![source.clone()], Some(Dialect::GREMLIN))).expect("taken");
    assert_eq!(database.loads().wait(&id).expect("known").overall.state, LoadState::Completed);
    copy(&live, &crashed);
    let after = open(&crashed);
    let question = "MATCH (a)-[r:KNOWS]->(b) RETURN a.name, a.age, id(r), r.w, b.name";
    assert_eq!(run(&after, question), ["x | 4 | e1 | 3 | y"]);
    assert_eq!(after.loads().status(&id).expect("remembered").overall.state, LoadState::Completed);
    // Segments are deleted once two checkpoints follow the load; the graph stays.
    after.checkpoint().expect("one");
    run(&after, "CREATE (:Q)");
    after.checkpoint().expect("two");
    run(&after, "CREATE (:Q)");
    after.checkpoint().expect("three");
    let segments = crashed.join("loads").join(&id);
    let left = std::fs::read_dir(&segments).map_or(0, Iterator::count);
    assert_eq!(left, 0, "segments are left");
    after.close();
    drop(after);
    assert_eq!(run(&open(&crashed), question), ["x | 4 | e1 | 3 | y"]);
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let files = home.path().join("files");
    std::fs::create_dir_all(&files).expect("made");
    std::fs::write(files.join("v.csv"), "~id,~label,n:Int\na,P,1\nb,P,one\n").expect("written");
    let database = open(&home.path().join("data"));
    let source = format!("file://{}", files.display());
    let id =
        database.loads().submit(LoadSpec::new(vec![source.clone()], Some(Dialect::GREMLIN))).expect("taken");
    let status = database.loads().wait(&id).expect("known");
    assert_eq!(status.overall.state, LoadState::Failed);
    assert_eq!(status.errors.len(), 1, "{status:?}");
    assert_eq!(run(&database, "MATCH (n) RETURN count(n)"), ["0"]);
    let mut spec = LoadSpec::new(vec![source], Some(Dialect::GREMLIN));
    spec.fail_on_error = false;
    let id = database.loads().submit(spec).expect("taken");
    let status = database.loads().wait(&id).expect("known");
    assert_eq!(status.overall.state, LoadState::Completed);
    assert_eq!(run(&database, "MATCH (n) RETURN id(n)"), ["a"]);
}

#[test]
fn one_process_at_a_time() {
    let home = tempfile::tempdir().expect("a folder");
    let database = open(home.path());
    let options = Options { data_dir: Some(home.path().to_owned()), ..Options::default() };
    let error = Database::open(options.clone()).err().expect("refused");
    assert!(error.to_string().contains("in use by another process"), "{error}");
    database.close();
    drop(database);
    assert!(Database::open(options).is_ok());
}

#[test]
fn concurrent_counters_lose_nothing() {
    let database = support::empty();
    run(&database, "CREATE (:C {`~id`: 'c', n: 0})");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    run(&database, "MATCH (c) WHERE id(c) = 'c' SET c.n = c.n + 1");
                }
            });
        }
    });
    assert_eq!(run(&database, "MATCH (c:C) RETURN c.n"), ["200"]);
}

#[test]
fn readers_see_whole_transactions_while_a_writer_goes_on() {
    let database = support::empty();
    run(&database, "UNWIND range(1, 20) AS i CREATE (:A {i: i, v: 10})");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..200 {
                let (a, b) = (n % 20 + 1, (n * 7 + 3) % 20 + 1);
                if a != b {
                    run(
                        &database,
                        &format!("MATCH (a:A {{i: {a}}}), (b:A {{i: {b}}}) SET a.v = a.v - 1, b.v = b.v + 1"),
                    );
                }
            }
        });
        while !writer.is_finished() {
            assert_eq!(run(&database, "MATCH (n:A) RETURN sum(n.v)"), ["200"]);
        }
    });
}

//! Tests of loads that run beside transactions.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

use super::job::Job;
use super::{Dialect, LoadSpec, LoadState, SEGMENTS};
use crate::{Database, Language, Options, Parameters, Query};
use jiff::{SignedDuration, Timestamp};
use std::path::Path;
use tidegraph_platform::Objects;
use tidegraph_types::{GuiHasher, Value, Version};

/// Hash bits, so few that many ids share a GUI.
const BITS: u32 = 4;

fn run(database: &Database, text: &str) -> Vec<Vec<Value>> {
    let parameters = Parameters::default();
    database.query(&Query::new(Language::OpenCypher, text, &parameters)).expect(text).rows
}

fn open(data: &Path) -> std::sync::Arc<Database> {
    let options = Options { data_dir: Some(data.to_owned()), hash_bits: BITS, ..Options::default() };
    Database::open(options).expect("a graph")
}

/// Checks that each expected vertex and edge is found by its id, with its own properties and no others.
fn check(database: &Database, meanwhile: &str) {
    let count = run(database, "MATCH (n) RETURN count(n)");
    assert_eq!(count, [[Value::Long(9)]]);
    for n in 0..8 {
        let text = format!(
            "MATCH (a)-[r:L]->(b) WHERE id(a) = 'v{n}' RETURN a.n, id(b), size(labels(a)), labels(a)[0]"
        );
        let next = Value::string(format!("v{}", (n + 1) % 8));
        assert_eq!(run(database, &text), [[Value::Long(n), next, Value::Long(1), Value::string("P")]]);
    }
    let text = format!("MATCH (a) WHERE id(a) = '{meanwhile}' RETURN a.n, labels(a)[0], size(labels(a))");
    assert_eq!(run(database, &text), [[Value::Long(-1), Value::string("Q"), Value::Long(1)]]);
    let edges = run(database, &format!("MATCH (a)-[r]-() WHERE id(a) = '{meanwhile}' RETURN count(r)"));
    assert_eq!(edges, [[Value::Long(0)]]);
}

#[test]
fn a_vertex_made_during_a_load_never_shares_the_gui_of_a_loaded_one() {
    let home = tempfile::tempdir().expect("a folder");
    let (files, data) = (home.path().join("files"), home.path().join("data"));
    std::fs::create_dir_all(&files).expect("made");
    let vertices: String = (0..8).map(|n| format!("v{n},P,{n}\n")).collect();
    let edges: String = (0..8).map(|n| format!("e{n},v{n},v{},L\n", (n + 1) % 8)).collect();
    std::fs::write(files.join("v.csv"), format!("~id,~label,n:Int(single)\n{vertices}")).expect("written");
    std::fs::write(files.join("e.csv"), format!("~id,~from,~to,~label\n{edges}")).expect("written");
    let hasher = GuiHasher::with_bits(BITS);
    let colliding = (0..).map(|n| format!("w{n}")).find(|id| hasher.gui(id) == hasher.gui("v3"));
    let meanwhile = colliding.expect("one of many");

    let database = open(&data);
    // A load takes this lock before it commits, so it waits here as it would for a checkpoint.
    let held = database.loads().shared.commit.lock();
    let source = format!("file://{}", files.display());
    let id = database.loads().submit(LoadSpec::new(vec![source], Some(Dialect::GREMLIN))).expect("taken");
    // The feed counts are complete once all files have been read.
    loop {
        let status = database.loads().status(&id).expect("known");
        assert!(!status.overall.state.is_final(), "it has not been let through: {status:?}");
        if status.feed_count == [("LOAD_COMPLETED", 2)] {
            break;
        }
        std::thread::yield_now();
    }
    run(&database, &format!("CREATE (:Q {{`~id`: '{meanwhile}', n: -1}})"));
    assert_eq!(database.local.as_ref().unwrap().store.exceptions(), [], "the transaction found the GUI free");
    drop(held);
    let status = database.loads().wait(&id).expect("known");
    assert_eq!(status.overall.state, LoadState::Completed, "{status:?}");
    check(&database, &meanwhile);
    // The same holds after a restart.
    drop(database);
    let database = open(&data);
    check(&database, &meanwhile);
}

#[test]
fn segments_go_when_nobody_can_need_them_any_more() {
    let objects = Objects::memory().expect("a store");
    let begun = Timestamp::from_second(1_000_000).expect("a time");
    let job = |id: &str, end: &dyn Fn(&Job)| {
        let spec = LoadSpec::new(vec!["file:///x".into()], Some(Dialect::GREMLIN));
        let job = Job::new(id.into(), 1, spec, None, None, false, begun);
        end(&job);
        objects.put(&super::job_path(id), job.to_bytes(begun).expect("bytes")).expect("written");
        objects.put(&format!("{SEGMENTS}/{id}/0"), "x").expect("written");
    };
    let committed = |version| {
        move |job: &Job| {
            job.committed(Version(version));
            job.end(LoadState::Completed, None, begun);
        }
    };
    job("old", &committed(5));
    job("new", &committed(9));
    job("failed", &|job| job.end(LoadState::Failed, None, begun));
    job("cancelled", &|job| job.end(LoadState::Cancelled, None, begun));
    job("unknown", &|job| job.end_open("nobody knows".into(), begun));
    job("running", &|_| {});
    objects.put(&format!("{SEGMENTS}/nobody/0"), "x").expect("written");
    let left = |version, hours: i64| {
        let now = begun + SignedDuration::from_hours(hours);
        super::sweep_below(&objects, Version(version), now).expect("swept");
        let ids = objects.list(&format!("{SEGMENTS}/")).expect("listed").into_iter();
        let mut ids: Vec<_> = ids.filter_map(|o| Some(o.path.split('/').nth(1)?.to_owned())).collect();
        ids.sort();
        ids.join(" ")
    };
    assert_eq!(left(4, 1), "cancelled failed new nobody old running unknown");
    assert_eq!(left(5, 23), "cancelled failed new nobody running unknown");
    assert_eq!(left(8, 24), "new nobody running unknown");
    assert_eq!(left(9, 1000), "nobody running unknown");
}

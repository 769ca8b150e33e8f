//! Tests of a log that syncs late, on a disk that loses unsynced bytes.

use crate::database::Environment;
use crate::{Database, Language, Options, Parameters, Query};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{FaultyDisk, RealClock, RealRandom};
use tidegraph_types::{ErrorCode, Value};

fn open(dir: &Path, disk: &FaultyDisk) -> Arc<Database> {
    // The interval is so long that the log syncs only where it has to.
    let options = Options {
        data_dir: Some(dir.to_owned()),
        sync_log_every: Some(Duration::from_secs(60)),
        ..Options::default()
    };
    let environment = Environment {
        clock: Arc::new(RealClock::new()),
        random: Arc::new(RealRandom),
        disk: Arc::new(disk.clone()),
    };
    Database::open_with(options, environment).unwrap()
}

fn ask(database: &Database, text: &str) -> Vec<Vec<Value>> {
    database.query(&Query::new(Language::OpenCypher, text, &Parameters::default())).unwrap().rows
}

fn make(database: &Database, numbers: std::ops::Range<i64>) {
    numbers.for_each(|n| drop(ask(database, &format!("CREATE (:N {{n: {n}}})"))));
}

/// Simulates a power failure: the disk loses all unsynced bytes.
fn lose_power(database: Arc<Database>, disk: &FaultyDisk) {
    disk.crash();
    // The database notices the failure, and writes nothing to the disk when it closes.
    assert!(database.checkpoint().is_err());
    drop(database);
}

#[test]
fn a_power_failure_takes_the_last_writes_and_nothing_below_a_checkpoint() {
    let mut lost = 0;
    for seed in 0..12 {
        let (dir, disk) = (tempfile::tempdir().unwrap(), FaultyDisk::new(seed));
        let database = open(dir.path(), &disk);
        make(&database, 0..20);
        database.checkpoint().unwrap();
        make(&database, 20..40);
        lose_power(database, &disk);
        let database = open(dir.path(), &disk);
        let found = ask(&database, "MATCH (a:N) RETURN a.n AS n ORDER BY n");
        assert!((20..=40).contains(&found.len()), "{} found", found.len());
        (0..).zip(&found).for_each(|(n, row)| assert_eq!(row[..], [Value::Long(n)]));
        lost += 40 - found.len();
        // Writing continues after the recovered end.
        make(&database, 100..103);
        assert_eq!(ask(&database, "MATCH (a:N) RETURN count(a)"), [[Value::Long(found.len() as i64 + 3)]]);
    }
    assert!(lost > 20, "only {lost} writes were lost");
}

#[test]
fn a_database_that_is_closed_loses_nothing() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), FaultyDisk::new(1));
    let database = open(dir.path(), &disk);
    make(&database, 0..10);
    database.close();
    drop(database);
    disk.crash();
    assert_eq!(ask(&open(dir.path(), &disk), "MATCH (a:N) RETURN count(a)"), [[Value::Long(10)]]);
}

#[test]
fn intervals_that_make_no_sense_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for interval in [Duration::ZERO, Duration::from_millis(60_001), Duration::MAX] {
        let options = Options {
            data_dir: Some(dir.path().to_owned()),
            sync_log_every: Some(interval),
            ..Options::default()
        };
        let error = Database::open(options).err().unwrap();
        assert_eq!(error.code(), ErrorCode::InvalidParameter);
        assert!(error.to_string().contains(&format!("{interval:?}")), "{error}");
    }
}

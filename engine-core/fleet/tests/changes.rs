//! The change stream of a fleet: at any worker, over take-overs, in a log of one shard and of several.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;
use support::{TestFleet, ask};
use tidegraph_engine::Database;
use tidegraph_engine::Language::OpenCypher;
use tidegraph_fleet::NodeConfig;
use tidegraph_types::{Changed, ChangesFrom, ChangesPage, ChangesRequest, ErrorCode, EventId, Value};

fn page(
    database: &Database,
    from: ChangesFrom,
    limit: usize,
) -> Result<ChangesPage, tidegraph_engine::Error> {
    database.changes(&ChangesRequest { from, limit, bytes: 10 << 20 }, None)
}

fn end(page: &ChangesPage) -> EventId {
    let last = page.commits.last().unwrap();
    EventId { op: last.first.op + last.changes.list.len() as u64 - 1, ..last.first }
}

/// Returns the values of the property `n` that were added, with their removals as negative numbers.
fn numbers(database: &Database, page: &ChangesPage) -> Vec<i64> {
    let all = page.commits.iter().flat_map(|part| &part.changes.list);
    let number = |change: &tidegraph_types::Change| match &change.what {
        Changed::VertexProperty(key, value) if database.name(*key) == "n" => {
            value.as_i64().map(|n| if change.removed { -n } else { n })
        }
        _ => None,
    };
    all.filter_map(number).collect()
}

fn read_all(database: &Database, from: &mut ChangesFrom, limit: usize) -> Vec<i64> {
    let mut found = Vec::new();
    loop {
        match page(database, *from, limit) {
            Ok(page) => {
                assert!(page.commits.iter().all(|part| part.changes.taken_ms > 0));
                found.extend(numbers(database, &page));
                *from = ChangesFrom::After(end(&page));
            }
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::StreamRecordsNotFound, "{error}");
                return found;
            }
        }
    }
}

#[test]
fn every_worker_tells_all_changes_over_take_overs() {
    for shards in [1, 2, 4] {
        let config = NodeConfig { beat: Duration::from_millis(50), ..NodeConfig::default() };
        let mut fleet = TestFleet::start_sharded(shards, 4, 2, 2, 64, config);
        let (one, _worker) = fleet.streaming_worker();
        let (other, _other_worker) = fleet.streaming_worker();
        let mut from = ChangesFrom::Oldest;
        assert_eq!(page(&one, from, 10).unwrap_err().code(), ErrorCode::StreamRecordsNotFound);
        for n in 1..=20 {
            ask(&one, OpenCypher, &format!("CREATE (:N {{`~id`: 'n{n}', n: {n}}})")).unwrap();
        }
        assert_eq!(read_all(&other, &mut from, 7), (1..=20).collect::<Vec<_>>(), "{shards} shards");
        // Reads of a worker may be behind the commits of another one.
        let sees_all = |database: &Database| {
            let answer = ask(database, OpenCypher, "MATCH (a:N) RETURN count(a)");
            answer.is_ok_and(|answer| answer.rows == [[Value::Long(20)]])
        };
        fleet.wait_until("the other worker sees all", |_| sees_all(&other));
        fleet.stop_sequencer();
        fleet.start_sequencer();
        assert!(ask(&other, OpenCypher, "MATCH (a:N {n: 3}) SET a.n = 33").unwrap().wrote);
        assert!(ask(&one, OpenCypher, "MATCH (a:N {n: 4}) DETACH DELETE a").unwrap().wrote);
        assert_eq!(read_all(&one, &mut from, 1), [-3, 33, -4], "{shards} shards");
        let newest = page(&one, ChangesFrom::Newest, 10).unwrap();
        assert_eq!(newest.commits[0].changes.list.len(), 1);
        assert!(newest.commits[0].is_end);
        // What a worker without the setting writes is not told, and nothing before it.
        let (silent, _silent_worker) = fleet.worker();
        ask(&silent, OpenCypher, "CREATE (:N {n: 50})").unwrap();
        let expired = page(&one, ChangesFrom::Oldest, 10).unwrap_err();
        assert_eq!(expired.code(), ErrorCode::StreamRecordsNotFound, "{expired}");
        let expired = page(&one, from, 10).unwrap_err();
        assert_eq!(expired.code(), ErrorCode::ExpiredStream, "{expired}");
        ask(&one, OpenCypher, "CREATE (:N {n: 51})").unwrap();
        assert_eq!(read_all(&other, &mut ChangesFrom::Oldest, 10), [51], "{shards} shards");
        let silent = page(&silent, ChangesFrom::Oldest, 10).unwrap_err();
        assert_eq!(silent.code(), ErrorCode::UnsupportedOperation);
    }
}

//! Readers beside the writer, without a lock.

use super::*;
use rand::Rng;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// STO-1. The writer moves amounts between vertices, and changes a text and a number that must match. At
/// each published version, readers must see the right sum and matching pairs, in whichever row they are.
fn readers_beside_the_writer(table: PageTable, rounds: u64, evicting: bool) {
    const OWNERS: u64 = 8;
    let places: Vec<AtomicU64> = (0..OWNERS).map(|_| AtomicU64::new(0)).collect();
    let (published, oldest, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    // Readers announce the version that they read, so that the writer does not reclaim it.
    let readers: Vec<AtomicU64> = (0..2).map(|_| AtomicU64::new(u64::MAX)).collect();
    let text = |n: u64| Value::string(format!("{n:->width$}", width = (n % 5) as usize * 9));
    let mut pages = PageWriter::default();
    {
        let guard = pin();
        for owner in 0..OWNERS {
            let writes = [(1, Value::Long(100)), (2, Value::Long(0)), (3, text(0))].map(|(key, value)| {
                PropertyWrite { key: Token(key), cardinality: Cardinality::Single, value }
            });
            let place = pages.insert(
                TableView { table: &table, guard: &guard },
                None,
                RowOwner::Vertex(Gui(owner)),
                Some(&Str::new("id")),
                &[Token(1)],
                &Content::of_writes(&writes),
                None,
            );
            places[owner as usize].store(u64::from(place.0), Ordering::Release);
        }
    }
    let read = |owner: u64, version: u64, guard: &Guard| loop {
        let place = RowPlace(places[owner as usize].load(Ordering::Acquire) as u32);
        let row = table.read(RowOwner::Vertex(Gui(owner)), place, Version(version), RowRequest::ALL, guard);
        if let Ok(row) = row {
            let mut values = BTreeMap::new();
            row.expect("every vertex is always there").for_each(RowRequest::ALL, |key, _, value| {
                values.insert(key.0, value);
            });
            return values;
        }
    };
    std::thread::scope(|scope| {
        for mine in &readers {
            scope.spawn(|| {
                let mut checks = 0;
                while !done.load(Ordering::Relaxed) || checks == 0 {
                    // Announces the version first, then checks that this was in time.
                    let version = published.load(Ordering::SeqCst);
                    mine.store(version, Ordering::SeqCst);
                    if oldest.load(Ordering::SeqCst) > version {
                        continue;
                    }
                    let guard = pin();
                    let mut sum = 0;
                    for owner in 0..OWNERS {
                        let values = read(owner, version, &guard);
                        sum += values[&1].as_i64().unwrap();
                        let number = values[&2].as_i64().unwrap() as u64;
                        assert_eq!(values[&3], text(number), "number and text of {owner} at {version}");
                    }
                    assert_eq!(sum, 100 * OWNERS as i64, "sum at {version}");
                    let low = Some((Value::Long(i64::MIN), true));
                    let test = Test::Range { low, high: None };
                    let (labels, predicates) = ([vec![Token(1)]], [PropertyPredicate::any(Token(1), test)]);
                    let mut scan = Scan::new(&labels, &[], &predicates);
                    let mut found = Vec::new();
                    let mut listed = Listed { out: &mut found, limit: 1000 };
                    for page in 0..table.end() {
                        scan.page(&table, page, 0, Version(version), &guard, &mut listed);
                    }
                    found.sort_unstable();
                    assert!(found.iter().map(|gui| gui.0).eq(0..OWNERS), "{found:?} at {version}");
                    mine.store(u64::MAX, Ordering::SeqCst);
                    checks += 1;
                }
            });
        }
        let mut random = StdRng::seed_from_u64(5);
        let mut amounts = [100_i64; OWNERS as usize];
        let mut touched: Vec<(u64, RowPlace)> = Vec::new();
        let mut evicted = 0;
        for version in 1..=rounds {
            let guard = pin();
            let view = TableView { table: &table, guard: &guard };
            let (from, to) = (random.random_range(0..OWNERS), random.random_range(0..OWNERS));
            amounts[from as usize] -= 1;
            amounts[to as usize] += 1;
            let extra = if random.random_bool(0.5) { Value::Int(1) } else { Value::string("moves the row") };
            for (owner, key, value) in [
                (from, 1, Value::Long(amounts[from as usize])),
                (to, 1, Value::Long(amounts[to as usize])),
                (to, 2, Value::Long(version as i64)),
                (to, 3, text(version)),
                (from, 4, extra),
            ] {
                let place = RowPlace(places[owner as usize].load(Ordering::Relaxed) as u32);
                assert!(table.bring_to_write(place.page(), &guard).is_some());
                let (at, single) = (Version(version), Cardinality::Single);
                match pages.write(view, at, place, Token(key), single, &value) {
                    Changed::No => {}
                    Changed::Here => touched.push((version, place)),
                    Changed::Moved(new) => {
                        places[owner as usize].store(u64::from(new.0), Ordering::Release);
                        touched.extend([(version, place), (version, new)]);
                    }
                }
            }
            published.store(version, Ordering::SeqCst);
            let reading =
                |least: u64| readers.iter().map(|reader| reader.load(Ordering::SeqCst)).fold(least, u64::min);
            let pause = evicting && version % 16 == 0;
            if pause {
                // Waits until readers are at this version. Then it is the only version,
                // and pages may be evicted while they read.
                (0..100_000).find(|_| {
                    std::thread::yield_now();
                    reading(version) == version
                });
            }
            if pause || version % 7 == 0 {
                // Announces the limit first, then looks for readers: a later reader sees
                // the limit and moves to a newer version.
                let next = reading(version).max(oldest.load(Ordering::SeqCst));
                oldest.store(next, Ordering::SeqCst);
                let next = reading(next);
                touched.retain(|(at, place)| {
                    if *at <= next {
                        pages.reclaim_row(view, *place, Version(next));
                    }
                    *at > next
                });
            }
            if pause {
                evicted += pages.evict(view, u64::MAX).bytes;
                table.memory().tidy();
            }
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(evicted > 0, evicting);
    });
    let guard = pin();
    let oldest = published.load(Ordering::SeqCst);
    for page in 0..table.end() {
        pages.reclaim_page(
            TableView { table: &table, guard: &guard },
            page,
            Version(oldest),
            &mut Vec::new(),
        );
    }
    assert_eq!(pages.bytes(TableView { table: &table, guard: &guard }).versions, 0);
}

fn rounds(rounds: u64) -> u64 {
    if cfg!(miri) { 60 } else { rounds }
}

#[test]
fn readers_never_see_half_a_version() {
    readers_beside_the_writer(PageTable::default(), rounds(40_000), false);
}

#[test]
fn readers_never_see_half_a_version_of_pages_that_come_and_go() {
    readers_beside_the_writer(spill::rows().0.table, rounds(10_000), true);
}

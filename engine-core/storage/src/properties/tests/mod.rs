//! Rows of one partition: values of every kind and size, many keys, memory. `model` compares random changes with a
//! simple model; `readers` tests readers beside the writer.

mod model;
mod readers;
mod spill;

use super::*;
use crossbeam_epoch::{Guard, pin};
use rand::{SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use tidegraph_apl::{Projection, PropertyPredicate, Reservoir, Sample, Test};
use tidegraph_types::{Cardinality, Gui, PropertyWrite, Sid, Str, Token, Value, Version};

/// The rows of one partition and the places of their owners, as a partition keeps them.
#[derive(Default)]
struct Rows {
    table: PageTable,
    pages: PageWriter,
    places: BTreeMap<u64, RowPlace>,
    /// Rows that can be reclaimed later.
    touched: Vec<(Version, RowPlace)>,
}

impl Rows {
    fn table_view<'g>(table: &'g PageTable, guard: &'g Guard) -> TableView<'g> {
        TableView { table, guard }
    }

    fn create(&mut self, version: u64, owner: u64, id: &str, labels: &[u32], writes: &[PropertyWrite]) {
        let guard = pin();
        let view = Self::table_view(&self.table, &guard);
        let before = self.places.get(&owner).copied();
        let previous =
            before.and_then(|place| Some(Previous { place, ended: self.pages.removed_at(view, place)? }));
        let labels: Vec<Token> = labels.iter().copied().map(Token).collect();
        let place = self.pages.insert(
            view,
            Some(Version(version)),
            RowOwner::Vertex(Gui(owner)),
            Some(&Str::new(id)),
            &labels,
            &Content::of_writes(writes),
            previous,
        );
        self.places.insert(owner, place);
        self.touched.push((Version(version), place));
    }

    /// Evicts all pages that may go.
    fn evict(&mut self) -> spill::Evicted {
        let guard = pin();
        let evicted = self.pages.evict(Self::table_view(&self.table, &guard), u64::MAX);
        self.table.memory().tidy();
        evicted
    }

    fn change(
        &mut self,
        version: u64,
        owner: u64,
        change: impl FnOnce(&mut PageWriter, TableView<'_>, RowPlace) -> Changed,
    ) {
        let guard = pin();
        let place = self.places[&owner];
        assert!(self.table.bring_to_write(place.page(), &guard).is_some());
        let changed = change(&mut self.pages, Self::table_view(&self.table, &guard), place);
        if changed != Changed::No {
            self.touched.push((Version(version), place));
        }
        if let Changed::Moved(new) = changed {
            self.places.insert(owner, new);
            self.touched.push((Version(version), new));
        }
    }

    fn set(&mut self, version: u64, owner: u64, key: u32, cardinality: Cardinality, value: &Value) {
        self.change(version, owner, |pages, view, place| {
            pages.write(view, Version(version), place, Token(key), cardinality, value)
        });
    }

    fn remove(&mut self, version: u64, owner: u64) {
        let guard = pin();
        let place = self.places[&owner];
        assert!(self.table.bring_to_write(place.page(), &guard).is_some());
        self.pages.remove(Self::table_view(&self.table, &guard), Version(version), place);
        self.touched.push((Version(version), place));
    }

    fn reclaim(&mut self, oldest: u64) {
        let guard = pin();
        let (now, later): (Vec<_>, Vec<_>) =
            self.touched.drain(..).partition(|(version, _)| *version <= Version(oldest));
        self.touched = later;
        for (_, place) in now {
            let freed = self.pages.reclaim_row(Self::table_view(&self.table, &guard), place, Version(oldest));
            if let Some(Freed { owner: RowOwner::Vertex(gui), place }) = freed
                && self.places.get(&gui.0) == Some(&place)
            {
                self.places.remove(&gui.0);
            }
        }
    }

    fn see(&self, version: u64, owner: u64) -> Option<Element> {
        let guard = pin();
        let place = *self.places.get(&owner)?;
        let row =
            self.table.read(RowOwner::Vertex(Gui(owner)), place, Version(version), RowRequest::ALL, &guard);
        row.expect("nobody frees rows meanwhile").map(|row| Element::of(&row))
    }

    fn scan(
        &self,
        version: u64,
        labels: &[Vec<Token>],
        predicates: &[PropertyPredicate],
        page: usize,
    ) -> Vec<u64> {
        let guard = pin();
        let mut scan = Scan::new(labels, &[], predicates);
        let mut found = Vec::new();
        let (mut counted, mut sampled) = (Counted(0), Reservoir::new(Sample { count: 3, seed: version }));
        for number in 0..self.table.end() {
            let mut row = 0;
            loop {
                let limit = found.len() + page;
                let mut listed = Listed { out: &mut found, limit };
                match scan.page(&self.table, number, row, Version(version), &guard, &mut listed) {
                    Some(next) => row = next,
                    None => break,
                }
            }
            scan.page(&self.table, number, 0, Version(version), &guard, &mut counted);
            scan.page(&self.table, number, 0, Version(version), &guard, &mut sampled);
        }
        assert_eq!(counted.0, found.len() as u64);
        assert_eq!(sampled.items.len(), found.len().min(3));
        assert!(sampled.items.iter().all(|gui| found.contains(gui)));
        let mut found: Vec<u64> = found.into_iter().map(|gui| gui.0).collect();
        found.sort_unstable();
        found
    }

    fn bytes(&self) -> page_writer::Bytes {
        let guard = pin();
        self.pages.bytes(Self::table_view(&self.table, &guard))
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Element {
    id: String,
    labels: Vec<Token>,
    /// Values as text, which distinguishes NaN, the zeros and the widths of numbers.
    cells: Vec<(Token, Cardinality, String)>,
}

impl Element {
    fn of(row: &Row<'_>) -> Self {
        let mut cells = Vec::new();
        row.for_each(RowRequest::ALL, |key, cardinality, value| {
            cells.push((key, cardinality, format!("{value:?}")))
        });
        let id = row.id().unwrap_or_default().to_string();
        Self { id, labels: row.labels().to_vec(), cells }
    }
}

#[test]
fn damaged_bytes_of_a_page_are_errors_or_other_values() {
    let mut rows = Rows::default();
    for owner in 0..5 {
        let mut random = StdRng::seed_from_u64(owner);
        rows.create(1, owner, "an id", &[1], &[]);
        for key in [11, 12] {
            rows.set(1, owner, key, Cardinality::Single, &Value::string("some text of the page"));
            rows.set(1, owner, key + 5, Cardinality::List, &model::value(&mut random));
        }
    }
    rows.reclaim(1);
    let guard = pin();
    let mut refused = 0;
    for number in 0..rows.table.end() {
        let Ok(bytes) = rows.table.to_bytes(number, &guard) else { continue };
        for at in 0..bytes.len() {
            for bit in [0, 3, 7] {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                refused += usize::from(bytes::Loaded::from_bytes(number, &damaged).is_err());
            }
        }
    }
    assert!(refused > 50, "only {refused} damages were found");
}

#[test]
fn pages_with_versions_are_not_written() {
    let mut rows = Rows::default();
    rows.create(1, 7, "id", &[], &[]);
    rows.create(2, 8, "id", &[], &[]);
    let guard = pin();
    assert!(matches!(rows.table.to_bytes(0, &guard), Err(bytes::Error::Versioned { number: 0 })));
    assert!(matches!(rows.table.to_bytes(9, &guard), Err(bytes::Error::Missing { number: 9 })));
    rows.reclaim(2);
    assert!(rows.table.to_bytes(0, &guard).is_ok());
    assert_eq!(rows.table.modified(0), 2);
}

#[test]
fn rows_that_fill_a_page_at_one_version_have_no_records() {
    let mut rows = Rows::default();
    let write = |n: u64| PropertyWrite {
        key: Token(10),
        cardinality: Cardinality::Single,
        value: Value::Long(n as i64),
    };
    for owner in 0..1500 {
        rows.create(5, owner, "id", &[1], &[write(owner)]);
    }
    // An older state does not contain a change of this version.
    rows.set(5, 7, 10, Cardinality::Single, &Value::Long(-7));
    rows.set(5, 7, 10, Cardinality::Single, &Value::Long(-8));
    assert_eq!(rows.bytes().versions, 0);
    rows.set(5, 8, 11, Cardinality::Single, &Value::Long(1));
    rows.remove(5, 9);
    rows.create(5, 9, "again", &[2], &[]);
    for (version, there) in [(4, 0), (5, 1500), (6, 1500)] {
        assert_eq!(rows.scan(version, &[], &[], 5000).len(), there, "at {version}");
        assert_eq!([7, 8, 9].map(|owner| rows.see(version, owner).is_some()), [there > 0; 3], "at {version}");
    }
    rows.reclaim(5);
    assert_eq!(rows.bytes().versions, 0);
    // A reused place is visible only from the new version on.
    rows.remove(6, 10);
    rows.reclaim(6);
    rows.create(7, 10, "third", &[1], &[write(3)]);
    rows.set(8, 11, 10, Cardinality::Single, &Value::Long(0));
    for (version, there) in [(6, 1499), (7, 1500), (8, 1500)] {
        assert_eq!(rows.scan(version, &[], &[], 5000).len(), there, "at {version}");
    }
    let value = |version| rows.see(version, 11).unwrap().cells[0].2.clone();
    assert_eq!((value(7), value(8)), (format!("{:?}", Value::Long(11)), format!("{:?}", Value::Long(0))));
}

#[test]
fn ids_and_values_of_any_length() {
    let mut rows = Rows::default();
    let ids = [
        String::new(),
        "x".into(),
        "é".repeat(6),
        "y".repeat(13),
        "z".repeat(23),
        "w".repeat(24),
        "v".repeat(65_536),
    ];
    let large = Value::string("m".repeat(if cfg!(miri) { 1 << 12 } else { 16 << 20 }));
    for (owner, id) in (0..).zip(&ids) {
        rows.create(1, owner, id, &[], &[]);
        rows.set(2, owner, 5, Cardinality::Single, &large);
        rows.set(3, owner, 5, Cardinality::Single, &Value::string(""));
    }
    for (owner, id) in (0..).zip(&ids) {
        assert_eq!(rows.see(1, owner).unwrap().cells, []);
        assert_eq!(rows.see(2, owner).unwrap().cells[0].2, format!("{large:?}"));
        assert_eq!(rows.see(3, owner).unwrap().cells[0].2, format!("{:?}", Value::string("")));
        assert_eq!(rows.see(3, owner).unwrap().id, *id);
    }
    rows.reclaim(3);
    assert!(rows.bytes().properties < 1 << 20, "{:?}", rows.bytes());
}

#[test]
fn a_hundred_thousand_keys() {
    const KEYS: u32 = if cfg!(miri) { 300 } else { 100_000 };
    let mut rows = Rows::default();
    for key in 0..KEYS {
        rows.create(1, u64::from(key), "v", &[1], &[]);
        rows.set(2, u64::from(key), 1000 + key, Cardinality::Single, &Value::Int(key as i32));
    }
    // Many of these keys at one vertex.
    let many: Vec<_> = (0..KEYS)
        .map(|key| PropertyWrite {
            key: Token(1000 + key),
            cardinality: Cardinality::Single,
            value: Value::Int(key as i32),
        })
        .collect();
    rows.create(1, u64::from(KEYS), "wide", &[2], &many[..1]);
    let many: Vec<&PropertyWrite> = many.iter().collect();
    rows.change(2, u64::from(KEYS), |pages, view, place| pages.write_all(view, Version(2), place, &many));
    assert!(rows.pages.sets() < 5000, "{}", rows.pages.sets());
    for key in (0..KEYS).step_by(97) {
        let seen = rows.see(2, u64::from(key)).unwrap();
        assert_eq!(
            seen.cells,
            [(Token(1000 + key), Cardinality::Single, format!("{:?}", Value::Int(key as i32)))]
        );
        assert_eq!(rows.see(1, u64::from(key)).unwrap().cells, []);
    }
    let wide = rows.see(2, u64::from(KEYS)).unwrap();
    assert!(wide.cells.iter().map(|(key, ..)| key.0).eq(1000..1000 + KEYS), "keys come in order of writing");
    for key in [0, 5, KEYS / 2, KEYS - 1] {
        let test = Test::Equals(Value::Long(i64::from(key)));
        let predicates = [PropertyPredicate::any(Token(1000 + key), test)];
        assert_eq!(rows.scan(2, &[], &predicates, 10), [u64::from(key), u64::from(KEYS)]);
        assert_eq!(rows.scan(2, &[vec![Token(1)]], &predicates, 10), [u64::from(key)]);
    }
}

#[test]
fn a_key_that_changes_its_type_keeps_its_place() {
    let mut rows = Rows::default();
    rows.create(1, 1, "v", &[], &[]);
    let values = [
        Value::Int(1),
        Value::Double(1.0),
        Value::string("one"),
        Value::list(vec![Value::Int(1)]),
        Value::Bool(true),
        Value::Int(2),
    ];
    rows.set(1, 1, 10, Cardinality::Single, &Value::Int(0));
    rows.set(1, 1, 11, Cardinality::Single, &Value::Int(0));
    for (version, value) in (2..).zip(&values) {
        rows.set(version, 1, 10, Cardinality::Single, value);
    }
    for (version, value) in (2..).zip(&values) {
        let cells = rows.see(version, 1).unwrap().cells;
        assert_eq!(cells[0].2, format!("{value:?}"));
        assert_eq!((cells[0].0, cells[1].0), (Token(10), Token(11)));
    }
}

#[test]
fn memory_returns_to_its_level_after_a_burst() {
    let scale = if cfg!(miri) { 30 } else { 5000 };
    let mut rows = Rows::default();
    let long = |n: u64| Value::string(format!("a text that needs an allocation of its own, number {n}"));
    for owner in 0..scale {
        rows.create(1, owner, "an id with an allocation", &[1], &[]);
        rows.set(1, owner, 10, Cardinality::Single, &long(owner));
    }
    rows.reclaim(1);
    let before = rows.bytes();
    let mut version = 1;
    for round in 0..10 {
        version += 1;
        for owner in 0..scale {
            rows.set(version, owner, 10, Cardinality::Single, &long(owner + round));
            if owner % 3 == 0 {
                rows.set(version, owner, 11, Cardinality::List, &long(round));
            }
        }
        for owner in scale..2 * scale {
            rows.create(version, owner, "another id with an allocation", &[2], &[]);
        }
        version += 1;
        for owner in scale..2 * scale {
            rows.remove(version, owner);
        }
        if round % 4 == 3 {
            rows.reclaim(version);
        }
    }
    let during = rows.bytes();
    assert!(during.versions > before.versions + 100 * scale as usize, "{during:?}");
    version += 1;
    for owner in (0..scale).step_by(3) {
        rows.change(version, owner, |pages, view, place| {
            pages.erase(view, Version(version), place, Token(11), None)
        });
    }
    rows.reclaim(version);
    let after = rows.bytes();
    assert_eq!((after.versions, after.ids), (0, before.ids));
    let (all, least) = (after.vertices + after.properties, before.vertices + before.properties);
    assert!(all < least + least / 4 + 4096, "{before:?} {after:?}");
}

#[test]
fn edges_with_and_without_ids() {
    let guard = pin();
    let (table, mut pages) = (PageTable::default(), PageWriter::default());
    let view = TableView { table: &table, guard: &guard };
    let content = Content::of_properties(&[(Token(1), Value::Double(0.5))]);
    let plain = pages.insert(view, Some(Version(1)), RowOwner::Edge(Sid(4)), None, &[], &content, None);
    let id = Str::new("an edge");
    let named = pages.insert(view, Some(Version(1)), RowOwner::Edge(Sid(5)), Some(&id), &[], &content, None);
    let read = |sid: u64, place: RowPlace| {
        table
            .read(RowOwner::Edge(Sid(sid)), place, Version(1), RowRequest::ALL, &guard)
            .map(|row| row.map(|row| row.id()))
    };
    assert_eq!(read(4, plain), Ok(Some(None)));
    assert_eq!(read(5, named), Ok(Some(Some(id))));
    assert_eq!(read(4, named), Err(Stale));
    assert!(table.is_of(RowOwner::Edge(Sid(4)), plain, &guard));
    assert!(!table.is_of(RowOwner::Vertex(Gui(4)), plain, &guard));
    assert!(!table.is_of(RowOwner::Edge(Sid(4)), RowPlace::new(77, 0), &guard));
    let keys = Projection::Keys(vec![Token(1)]);
    let want = RowRequest { id: false, properties: &keys };
    assert!(table.read(RowOwner::Edge(Sid(4)), plain, Version(0), want, &guard).unwrap().is_none());
}

//! One partition's rows against the simplest model there could be, at random versions, with settling in between; readers
//! beside the writer; memory.

use super::*;
use crossbeam_epoch::{Guard, pin};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidegraph_apl::{Projection, PropertyPredicate, Test};
use tidegraph_types::{Cardinality, Gui, PropertyWrite, Sid, Str, Token, Value, Version};

/// The rows of one partition and where their owners are, as a partition keeps them.
#[derive(Default)]
struct Rows {
    table: PageTable,
    keeper: Keeper,
    places: BTreeMap<u64, Place>,
    /// What is to be settled.
    touched: Vec<(Version, Place)>,
}

impl Rows {
    fn desk<'g>(table: &'g PageTable, guard: &'g Guard) -> Desk<'g> {
        Desk { table, guard }
    }

    fn create(&mut self, version: u64, owner: u64, id: &str, labels: &[u32], writes: &[PropertyWrite]) {
        let guard = pin();
        let desk = Self::desk(&self.table, &guard);
        let before = self.places.get(&owner).copied();
        let previous =
            before.and_then(|place| Some(Previous { place, ended: self.keeper.removed_at(desk, place)? }));
        let labels: Vec<Token> = labels.iter().copied().map(Token).collect();
        let place = self.keeper.insert(
            desk,
            Some(Version(version)),
            Owner::Vertex(Gui(owner)),
            Some(&Str::new(id)),
            &labels,
            &Content::of_writes(writes),
            previous,
        );
        self.places.insert(owner, place);
        self.touched.push((Version(version), place));
    }

    fn change(
        &mut self,
        version: u64,
        owner: u64,
        change: impl FnOnce(&mut Keeper, Desk<'_>, Place) -> Changed,
    ) {
        let guard = pin();
        let place = self.places[&owner];
        let changed = change(&mut self.keeper, Self::desk(&self.table, &guard), place);
        if changed != Changed::No {
            self.touched.push((Version(version), place));
        }
        if let Changed::Moved(new) = changed {
            self.places.insert(owner, new);
            self.touched.push((Version(version), new));
        }
    }

    fn set(&mut self, version: u64, owner: u64, key: u32, cardinality: Cardinality, value: &Value) {
        self.change(version, owner, |keeper, desk, place| {
            keeper.write(desk, Version(version), place, Token(key), cardinality, value)
        });
    }

    fn remove(&mut self, version: u64, owner: u64) {
        let guard = pin();
        let place = self.places[&owner];
        self.keeper.remove(Self::desk(&self.table, &guard), Version(version), place);
        self.touched.push((Version(version), place));
    }

    fn settle(&mut self, oldest: u64) {
        let guard = pin();
        let (now, later): (Vec<_>, Vec<_>) =
            self.touched.drain(..).partition(|(version, _)| *version <= Version(oldest));
        self.touched = later;
        for (_, place) in now {
            let freed = self.keeper.settle(Self::desk(&self.table, &guard), place, Version(oldest));
            if let Some(Freed { owner: Owner::Vertex(gui), place }) = freed
                && self.places.get(&gui.0) == Some(&place)
            {
                self.places.remove(&gui.0);
            }
        }
    }

    fn see(&self, version: u64, owner: u64) -> Option<Element> {
        let guard = pin();
        let place = *self.places.get(&owner)?;
        let row = self.table.read(Owner::Vertex(Gui(owner)), place, Version(version), Want::ALL, &guard);
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
        let mut scan = Scan::new(labels, predicates);
        let mut found = Vec::new();
        for number in 0..self.table.end() {
            let mut row = 0;
            loop {
                let limit = found.len() + page;
                match scan.page(&self.table, number, row, Version(version), &guard, limit, &mut found) {
                    Some(next) => row = next,
                    None => break,
                }
            }
        }
        let mut found: Vec<u64> = found.into_iter().map(|gui| gui.0).collect();
        found.sort_unstable();
        found
    }

    fn bytes(&self) -> write::Bytes {
        let guard = pin();
        self.keeper.bytes(Self::desk(&self.table, &guard))
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Element {
    id: String,
    labels: Vec<Token>,
    /// As text, which tells NaN, the zeros and the widths of numbers apart.
    cells: Vec<(Token, Cardinality, String)>,
}

impl Element {
    fn of(row: &Row<'_>) -> Self {
        let mut cells = Vec::new();
        row.for_each(Want::ALL, |key, cardinality, value| {
            cells.push((key, cardinality, format!("{value:?}")))
        });
        let id = row.id().unwrap_or_default().to_string();
        Self { id, labels: row.labels().to_vec(), cells }
    }
}

/// What the model knows of an element: the values themselves.
#[derive(Clone, Default)]
struct Known {
    id: String,
    labels: Vec<Token>,
    content: Content,
}

impl Known {
    fn values(&self) -> impl Iterator<Item = (Token, Cardinality, Value)> {
        let entries = self.content.entries.iter();
        entries.flat_map(|entry| {
            entry.values.iter().map(|value| (entry.key, entry.cardinality, Value::from(value)))
        })
    }

    fn element(&self) -> Element {
        let cells = self.values().map(|(key, cardinality, value)| (key, cardinality, format!("{value:?}")));
        Element { id: self.id.clone(), labels: self.labels.clone(), cells: cells.collect() }
    }

    fn passes(&self, predicates: &[PropertyPredicate]) -> bool {
        predicates.iter().all(|p| self.values().any(|(key, _, value)| key == p.key && p.test.passes(&value)))
    }
}

type Model = BTreeMap<u64, Known>;

fn value(random: &mut StdRng) -> Value {
    match random.random_range(0..14) {
        0 => Value::Int(random.random_range(0..6)),
        1 => Value::Double(*[0.0, -0.0, f64::NAN, 1.0, 2.5].choose(random).unwrap()),
        2 => Value::Float(*[0.0, -0.0, f32::NAN, 3.0].choose(random).unwrap()),
        3 => Value::string(""),
        4 => Value::string(format!("text {}", random.random_range(0..3))),
        5 => Value::string(format!("a text of twenty bytes {}", random.random_range(0..3))),
        6 => Value::string(format!(
            "a text that is longer than what fits in place {}",
            random.random_range(0..3)
        )),
        7 => Value::Bool(random.random_bool(0.5)),
        8 => Value::Byte(random.random_range(0..6)),
        9 => Value::Short(random.random_range(0..6)),
        10 => Value::list(vec![Value::Long(random.random_range(0..3))]),
        11 => Value::DateTime(jiff::Timestamp::from_second(random.random_range(-3..3)).unwrap()),
        _ => Value::Long(random.random_range(0..6)),
    }
}

fn write(random: &mut StdRng) -> PropertyWrite {
    let cardinality = *[Cardinality::Single, Cardinality::Single, Cardinality::Set, Cardinality::List]
        .choose(random)
        .unwrap();
    PropertyWrite { key: Token(random.random_range(10..16)), cardinality, value: value(random) }
}

fn predicates(random: &mut StdRng) -> Vec<PropertyPredicate> {
    let test = |random: &mut StdRng| match random.random_range(0..5) {
        0 => Test::Exists,
        1 => Test::Equals(value(random)),
        2 => Test::Within((0..3).map(|_| value(random)).collect()),
        3 => Test::StartsWith("a text".into()),
        _ => Test::Range {
            low: Some((value(random), random.random_bool(0.5))),
            high: random.random_bool(0.5).then(|| (value(random), random.random_bool(0.5))),
        },
    };
    let count = random.random_range(0..3);
    (0..count)
        .map(|_| PropertyPredicate { key: Token(random.random_range(10..16)), test: test(random) })
        .collect()
}

fn check(rows: &Rows, versions: &BTreeMap<u64, Model>, random: &mut StdRng) {
    let kept: Vec<u64> = versions.keys().copied().collect();
    let version = *kept.choose(random).unwrap();
    let model = &versions[&version];
    for owner in 0..OWNERS {
        let expected = model.get(&owner).map(Known::element);
        assert_eq!(rows.see(version, owner), expected, "{owner} at {version}");
    }
    let labels = match random.random_range(0..3) {
        0 => vec![],
        1 => vec![vec![Token(1)]],
        _ => vec![vec![Token(1), Token(2)], vec![Token(3)]],
    };
    let tests = predicates(random);
    let page = *[1, 5, 5000].choose(random).unwrap();
    let passing = model.iter().filter(|(_, known)| {
        labels.iter().all(|group| group.iter().any(|label| known.labels.contains(label)))
            && known.passes(&tests)
    });
    let expected: Vec<u64> = passing.map(|(owner, _)| *owner).collect();
    assert_eq!(rows.scan(version, &labels, &tests, page), expected, "{labels:?} {tests:?} at {version}");
}

const OWNERS: u64 = if cfg!(miri) { 8 } else { 60 };

fn run(seed: u64, steps: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut rows = Rows::default();
    let mut newest = Model::default();
    let mut versions: BTreeMap<u64, Model> = std::iter::once((0, Model::default())).collect();
    for version in 1..=steps {
        for _ in 0..random.random_range(1..6) {
            let owner = random.random_range(0..OWNERS);
            let labels: Vec<u32> = (1..4).filter(|_| random.random_bool(0.4)).collect();
            let tokens: Vec<Token> = labels.iter().copied().map(Token).collect();
            let Some(known) = newest.get_mut(&owner) else {
                let writes: Vec<_> = (0..random.random_range(0..5)).map(|_| write(&mut random)).collect();
                let id = format!("the id of {owner}, {}", random.random_range(0..9));
                rows.create(version, owner, &id, &labels, &writes);
                newest.insert(owner, Known { id, labels: tokens, content: Content::of_writes(&writes) });
                continue;
            };
            match random.random_range(0..10) {
                0 => {
                    rows.remove(version, owner);
                    newest.remove(&owner);
                }
                1 => {
                    known.labels = tokens.clone();
                    rows.change(version, owner, |keeper, desk, place| {
                        keeper.relabel(desk, Version(version), place, &tokens)
                    });
                }
                2 | 3 => {
                    let key = Token(random.random_range(10..16));
                    let value = random.random_bool(0.5).then(|| value(&mut random));
                    known.content.remove(key, value.as_ref());
                    rows.change(version, owner, |keeper, desk, place| {
                        keeper.erase(desk, Version(version), place, key, value.as_ref())
                    });
                }
                _ => {
                    let PropertyWrite { key, cardinality, value } = write(&mut random);
                    known.content.write(key, cardinality, &value);
                    rows.set(version, owner, key.0, cardinality, &value);
                }
            }
        }
        versions.insert(version, newest.clone());
        if random.random_bool(0.2) {
            let oldest = random.random_range(*versions.keys().next().unwrap()..=version);
            versions.retain(|version, _| *version >= oldest);
            rows.settle(oldest);
        }
        check(&rows, &versions, &mut random);
    }
    versions.retain(|version, _| *version == steps);
    rows.settle(steps);
    check(&rows, &versions, &mut random);
    assert_eq!(rows.bytes().versions, 0, "seed {seed}");
    assert_eq!(rows.places.len(), newest.len());
    // What is left can be written out and read back, row by row.
    let guard = pin();
    let mut written = 0;
    for number in 0..rows.table.end() {
        let Some(page) = rows.table.get(number, &guard) else { continue };
        let bytes = match rows.table.to_bytes(number, &guard) {
            Ok(bytes) => bytes,
            // No message carries a list yet: only values that the engine refuses are like this.
            Err(bytes::Error::Value(_)) => continue,
            Err(error) => panic!("{error}"),
        };
        written += 1;
        let loaded = bytes::Loaded::from_bytes(number, &bytes).unwrap();
        let back = PageTable::default();
        back.extend();
        back.replace(0, Some(loaded.into_page()));
        assert_eq!(back.to_bytes(0, &guard).unwrap(), bytes);
        for row in (0..page.capacity()).filter(|row| page.is_present(*row)) {
            let owner = Owner::Vertex(Gui(page.owners()[row].load(Ordering::Relaxed)));
            let row =
                back.read(owner, Place::new(0, row), Version(steps), Want::ALL, &guard).unwrap().unwrap();
            assert_eq!(Some(Element::of(&row)), newest.get(&owner.word()).map(Known::element));
        }
        for end in (0..bytes.len()).step_by(7) {
            assert!(bytes::Loaded::from_bytes(number, &bytes[..end]).is_err(), "cut at {end}");
        }
    }
    assert!(written > 0, "seed {seed}");
}

#[test]
fn rows_agree_with_the_model_at_every_version() {
    let (seeds, steps) = if cfg!(miri) { (2, 40) } else { (30, 300) };
    for seed in 0..seeds {
        run(seed, steps);
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
            rows.set(1, owner, key + 5, Cardinality::List, &value(&mut random));
        }
    }
    rows.settle(1);
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
    let guard = pin();
    assert!(matches!(rows.table.to_bytes(0, &guard), Err(bytes::Error::Versioned { number: 0 })));
    assert!(matches!(rows.table.to_bytes(9, &guard), Err(bytes::Error::Missing { number: 9 })));
    rows.settle(1);
    assert!(rows.table.to_bytes(0, &guard).is_ok());
    assert_eq!(rows.table.modified(0), 1);
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
    rows.settle(3);
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
    // And many of them at one vertex.
    let many: Vec<_> = (0..KEYS)
        .map(|key| PropertyWrite {
            key: Token(1000 + key),
            cardinality: Cardinality::Single,
            value: Value::Int(key as i32),
        })
        .collect();
    rows.create(2, u64::from(KEYS), "wide", &[2], &many);
    assert!(rows.keeper.sets() < 5000, "{}", rows.keeper.sets());
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
        let predicates = [PropertyPredicate { key: Token(1000 + key), test }];
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
    rows.settle(1);
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
            rows.settle(version);
        }
    }
    let during = rows.bytes();
    assert!(during.versions > before.versions + 100 * scale as usize, "{during:?}");
    version += 1;
    for owner in (0..scale).step_by(3) {
        rows.change(version, owner, |keeper, desk, place| {
            keeper.erase(desk, Version(version), place, Token(11), None)
        });
    }
    rows.settle(version);
    let after = rows.bytes();
    assert_eq!((after.versions, after.ids), (0, before.ids));
    let (all, least) = (after.vertices + after.properties, before.vertices + before.properties);
    assert!(all < least + least / 4 + 4096, "{before:?} {after:?}");
}

/// The writer moves amounts between vertices, and a text and a number that say the same; readers at published versions
/// must see sums and pairs that agree, whatever row they are in.
#[test]
fn readers_never_see_half_a_version() {
    const OWNERS: u64 = 8;
    let rounds: u64 = if cfg!(miri) { 60 } else { 40_000 };
    let table = PageTable::default();
    let places: Vec<AtomicU64> = (0..OWNERS).map(|_| AtomicU64::new(0)).collect();
    let (published, oldest, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    // Readers announce what they read, so that the writer does not settle it away.
    let readers: Vec<AtomicU64> = (0..2).map(|_| AtomicU64::new(u64::MAX)).collect();
    let text = |n: u64| Value::string(format!("{n:->width$}", width = (n % 5) as usize * 9));
    let mut keeper = Keeper::default();
    {
        let guard = pin();
        for owner in 0..OWNERS {
            let writes = [(1, Value::Long(100)), (2, Value::Long(0)), (3, text(0))].map(|(key, value)| {
                PropertyWrite { key: Token(key), cardinality: Cardinality::Single, value }
            });
            let place = keeper.insert(
                Desk { table: &table, guard: &guard },
                None,
                Owner::Vertex(Gui(owner)),
                Some(&Str::new("id")),
                &[Token(1)],
                &Content::of_writes(&writes),
                None,
            );
            places[owner as usize].store(u64::from(place.0), Ordering::Release);
        }
    }
    let read = |owner: u64, version: u64, guard: &Guard| loop {
        let place = Place(places[owner as usize].load(Ordering::Acquire) as u32);
        let row = table.read(Owner::Vertex(Gui(owner)), place, Version(version), Want::ALL, guard);
        if let Ok(row) = row {
            let mut values = BTreeMap::new();
            row.expect("every vertex is always there").for_each(Want::ALL, |key, _, value| {
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
                    // Announce, then make sure that it was in time.
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
                    let (labels, predicates) =
                        ([vec![Token(1)]], [PropertyPredicate { key: Token(1), test }]);
                    let mut scan = Scan::new(&labels, &predicates);
                    let mut found = Vec::new();
                    for page in 0..table.end() {
                        scan.page(&table, page, 0, Version(version), &guard, 1000, &mut found);
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
        let mut touched: Vec<(u64, Place)> = Vec::new();
        for version in 1..=rounds {
            let guard = pin();
            let desk = Desk { table: &table, guard: &guard };
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
                let place = Place(places[owner as usize].load(Ordering::Relaxed) as u32);
                let (at, single) = (Version(version), Cardinality::Single);
                match keeper.write(desk, at, place, Token(key), single, &value) {
                    Changed::No => {}
                    Changed::Here => touched.push((version, place)),
                    Changed::Moved(new) => {
                        places[owner as usize].store(u64::from(new.0), Ordering::Release);
                        touched.extend([(version, place), (version, new)]);
                    }
                }
            }
            published.store(version, Ordering::SeqCst);
            if version % 7 == 0 {
                let reading = |least: u64| {
                    readers.iter().map(|reader| reader.load(Ordering::SeqCst)).fold(least, u64::min)
                };
                // Say so first, then look again who reads: whoever comes later sees it and goes on to a newer one.
                let next = reading(version).max(oldest.load(Ordering::SeqCst));
                oldest.store(next, Ordering::SeqCst);
                let next = reading(next);
                touched.retain(|(at, place)| {
                    if *at <= next {
                        keeper.settle(desk, *place, Version(next));
                    }
                    *at > next
                });
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let guard = pin();
    let oldest = published.load(Ordering::SeqCst);
    for page in 0..table.end() {
        keeper.settle_page(Desk { table: &table, guard: &guard }, page, Version(oldest), &mut Vec::new());
    }
    assert_eq!(keeper.bytes(Desk { table: &table, guard: &guard }).versions, 0);
}

#[test]
fn edges_with_and_without_ids() {
    let guard = pin();
    let (table, mut keeper) = (PageTable::default(), Keeper::default());
    let desk = Desk { table: &table, guard: &guard };
    let content = Content::of_properties(&[(Token(1), Value::Double(0.5))]);
    let plain = keeper.insert(desk, Some(Version(1)), Owner::Edge(Sid(4)), None, &[], &content, None);
    let id = Str::new("an edge");
    let named = keeper.insert(desk, Some(Version(1)), Owner::Edge(Sid(5)), Some(&id), &[], &content, None);
    let read = |sid: u64, place: Place| {
        table
            .read(Owner::Edge(Sid(sid)), place, Version(1), Want::ALL, &guard)
            .map(|row| row.map(|row| row.id()))
    };
    assert_eq!(read(4, plain), Ok(Some(None)));
    assert_eq!(read(5, named), Ok(Some(Some(id))));
    assert_eq!(read(4, named), Err(Stale));
    assert!(table.is_of(Owner::Edge(Sid(4)), plain, &guard));
    assert!(!table.is_of(Owner::Vertex(Gui(4)), plain, &guard));
    assert!(!table.is_of(Owner::Edge(Sid(4)), Place::new(77, 0), &guard));
    let keys = Projection::Keys(vec![Token(1)]);
    let want = Want { id: false, properties: &keys };
    assert!(table.read(Owner::Edge(Sid(4)), plain, Version(0), want, &guard).unwrap().is_none());
}

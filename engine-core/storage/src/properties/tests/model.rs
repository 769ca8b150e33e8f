//! Compares random changes with a simple model at random versions, with reclaiming in between.

use super::*;
use jiff::tz::{self, TimeZone};
use rand::{Rng, seq::IndexedRandom};
use tidegraph_types::Temporal;
use tidegraph_types::temporal::zoned;

/// A row of the model: the values themselves.
#[derive(Clone, Default)]
struct ModelRow {
    id: String,
    labels: Vec<Token>,
    content: Content,
}

impl ModelRow {
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

type Model = BTreeMap<u64, ModelRow>;

pub(super) fn value(random: &mut StdRng) -> Value {
    match random.random_range(0..17) {
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
        12 => Value::Temporal(Temporal::Date(jiff::civil::date(2024, 2, random.random_range(27..=29)))),
        13 => {
            let second = random.random_range(0..3);
            Value::Temporal(Temporal::LocalDateTime(jiff::civil::date(-1, 1, 1).at(23, 59, second, 0)))
        }
        14 => {
            let zone = TimeZone::fixed(tz::offset(random.random_range(-1..2)));
            let at = jiff::Timestamp::from_second(random.random_range(-3..3)).unwrap();
            zoned(at.to_zoned(zone))
        }
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
    (0..count).map(|_| PropertyPredicate::any(Token(random.random_range(10..16)), test(random))).collect()
}

/// STO-1: encoded and decoded again, the pages of a version hold what the model does, each row once.
fn check_bytes(rows: &Rows, version: u64, model: &Model) {
    let guard = pin();
    let (mut scratch, mut bytes) = (bytes::Scratch::default(), Vec::new());
    let (mut seen, mut all) = (BTreeMap::new(), true);
    for number in 0..rows.table.end() {
        bytes.clear();
        let written = rows.table.append_bytes_at(number, Version(version), &guard, &mut scratch, &mut bytes);
        match written {
            Ok(0) => assert!(bytes.is_empty()),
            Ok(written) => {
                let back = PageTable::default();
                back.extend();
                back.replace(0, Some(bytes::Loaded::from_bytes(number, &bytes).unwrap().into_page()));
                let page = back.get(0, &guard).unwrap();
                let here: Vec<usize> = (0..page.capacity()).filter(|row| page.is_present(*row)).collect();
                assert_eq!(here.len(), written);
                for row in here {
                    let owner = RowOwner::Vertex(Gui(page.owners()[row].load(Ordering::Relaxed)));
                    let found = back.read(owner, RowPlace::new(0, row), Version(0), RowRequest::ALL, &guard);
                    let element = Element::of(&found.unwrap().unwrap());
                    assert_eq!(seen.insert(owner.word(), element), None, "{owner:?} stands there twice");
                }
            }
            // No message carries a list yet.
            Err(bytes::Error::Value(_)) => all = false,
            Err(error) => panic!("{error}"),
        }
    }
    for (owner, element) in &seen {
        assert_eq!(Some(element), model.get(owner).map(ModelRow::element).as_ref(), "{owner} at {version}");
    }
    assert!(!all || seen.len() == model.len());
}

fn check(rows: &Rows, versions: &BTreeMap<u64, Model>, random: &mut StdRng) {
    let kept: Vec<u64> = versions.keys().copied().collect();
    let version = *kept.choose(random).unwrap();
    let model = &versions[&version];
    for owner in 0..OWNERS {
        let expected = model.get(&owner).map(ModelRow::element);
        assert_eq!(rows.see(version, owner), expected, "{owner} at {version}");
    }
    check_bytes(rows, version, model);
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

fn run(seed: u64, steps: u64, spilling: bool) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut rows = if spilling { spill::rows().0 } else { Rows::default() };
    let mut evicted = 0;
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
                newest.insert(owner, ModelRow { id, labels: tokens, content: Content::of_writes(&writes) });
                continue;
            };
            match random.random_range(0..10) {
                0 => {
                    rows.remove(version, owner);
                    newest.remove(&owner);
                }
                1 => {
                    known.labels = tokens.clone();
                    rows.change(version, owner, |pages, view, place| {
                        pages.relabel(view, Version(version), place, &tokens)
                    });
                }
                2 | 3 => {
                    let key = Token(random.random_range(10..16));
                    let value = random.random_bool(0.5).then(|| value(&mut random));
                    known.content.remove(key, value.as_ref());
                    rows.change(version, owner, |pages, view, place| {
                        pages.erase(view, Version(version), place, key, value.as_ref())
                    });
                }
                4 => {
                    let most = if random.random_bool(0.1) { 60 } else { 4 };
                    let writes: Vec<_> =
                        (0..random.random_range(1..most)).map(|_| write(&mut random)).collect();
                    for PropertyWrite { key, cardinality, value } in &writes {
                        known.content.write(*key, *cardinality, value);
                    }
                    let writes: Vec<&PropertyWrite> = writes.iter().collect();
                    rows.change(version, owner, |pages, view, place| {
                        pages.write_all(view, Version(version), place, &writes)
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
            rows.reclaim(oldest);
        }
        if spilling {
            evicted += rows.evict().bytes;
        }
        check(&rows, &versions, &mut random);
    }
    assert_eq!(evicted > 0, spilling, "seed {seed}");
    versions.retain(|version, _| *version == steps);
    rows.reclaim(steps);
    check(&rows, &versions, &mut random);
    assert_eq!(rows.bytes().versions, 0, "seed {seed}");
    assert_eq!(rows.places.len(), newest.len());
    // The rest can be encoded and decoded, row by row.
    let guard = pin();
    let mut written = 0;
    for number in 0..rows.table.end() {
        let Some(page) = rows.table.get(number, &guard) else { continue };
        let bytes = match rows.table.to_bytes(number, &guard) {
            Ok(bytes) => bytes,
            // No message carries a list yet; the engine refuses such values.
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
            let owner = RowOwner::Vertex(Gui(page.owners()[row].load(Ordering::Relaxed)));
            let row = back
                .read(owner, RowPlace::new(0, row), Version(steps), RowRequest::ALL, &guard)
                .unwrap()
                .unwrap();
            assert_eq!(Some(Element::of(&row)), newest.get(&owner.word()).map(ModelRow::element));
        }
        for end in (0..bytes.len()).step_by(7) {
            assert!(bytes::Loaded::from_bytes(number, &bytes[..end]).is_err(), "cut at {end}");
        }
    }
    assert!(written > 0, "seed {seed}");
}

#[test]
fn rows_agree_with_the_model_at_every_version() {
    let (seeds, steps) = if cfg!(miri) { (1, 12) } else { (30, 300) };
    for seed in 0..seeds {
        run(seed, steps, false);
    }
}

#[test]
fn rows_agree_with_the_model_when_pages_come_and_go() {
    let (seeds, steps) = if cfg!(miri) { (1, 12) } else { (30, 300) };
    for seed in 0..seeds {
        run(seed, steps, true);
    }
}

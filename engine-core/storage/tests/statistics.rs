//! Statistics stay near the true values while the graph changes and after it was restored.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use tidegraph_apl::{Apl, DegreeStatistics, SetKey, Statistics};
use tidegraph_platform::{ManualClock, Objects};
use tidegraph_storage::checkpoint::{CheckpointMeta, restore_newest};
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Edge, Gui, GuiHasher, Mutation, PartitionCount, PropertyWrite, Sid, Token, Value, Version,
};

const PERSON: Token = Token(1);
const CITY: Token = Token(2);
const AGE: Token = Token(10);
const NAME: Token = Token(11);
const SINCE: Token = Token(12);
const KNOWS: Token = Token(20);
const LIVES_IN: Token = Token(21);

fn config() -> StoreConfig {
    let mut config = StoreConfig::new(Arc::new(ManualClock::default()));
    config.partitions = PartitionCount::new(4).unwrap();
    config
}

fn gui(id: &str) -> Gui {
    GuiHasher::default().gui(id)
}

fn vertex(id: String, label: Token, values: &[(Token, Value)]) -> Mutation {
    let properties = values
        .iter()
        .map(|(key, value)| PropertyWrite {
            key: *key,
            cardinality: Cardinality::Single,
            value: value.clone(),
        })
        .collect();
    Mutation::CreateVertex { gui: gui(&id), id: id.into(), labels: vec![label], properties }
}

/// Returns 3,000 people of 60 ages and 20 cities. Each person knows 4 others and lives in one city, since some year.
fn graph() -> Vec<Mutation> {
    let mut mutations: Vec<Mutation> = (0..3_000)
        .map(|n| {
            let values = [(AGE, Value::Int(20 + n % 60)), (NAME, Value::string(format!("name {n}")))];
            vertex(format!("p{n}"), PERSON, &values)
        })
        .collect();
    mutations.extend((0..20).map(|n| vertex(format!("c{n}"), CITY, &[(NAME, Value::string("a city"))])));
    let mut sid = 0;
    let mut edge = |source: String, target: String, label, since: Option<i32>| {
        sid += 1;
        let edge = Edge { sid: Sid(sid), source: gui(&source), target: gui(&target), label };
        let properties = since.map(|year| (SINCE, Value::Int(year))).into_iter().collect();
        Mutation::CreateEdge { edge, id: None, properties }
    };
    for n in 0..3_000 {
        for step in 1..5 {
            mutations.push(edge(format!("p{n}"), format!("p{}", (n * 7 + step * 131) % 3_000), KNOWS, None));
        }
        mutations.push(edge(format!("p{n}"), format!("c{}", n % 20), LIVES_IN, Some(1990 + n % 10)));
    }
    mutations
}

fn mean(statistics: &Statistics, label: Option<Token>, edge: Token, outgoing: bool) -> f64 {
    let is_it =
        |of: &&DegreeStatistics| (of.vertex_label, of.edge_label, of.outgoing) == (label, edge, outgoing);
    statistics.degrees.iter().find(is_it).map_or(0.0, |of| {
        assert!(of.histogram.iter().sum::<u64>() <= of.vertices);
        of.edges as f64 / of.vertices as f64
    })
}

fn check(statistics: &Statistics) {
    let set = |label| statistics.sets.iter().find(|set| set.labels == [label]).unwrap();
    assert_eq!((set(PERSON).elements, set(CITY).elements), (3_000, 20));
    let [of_edges] = &statistics.edge_sets[..] else { panic!("{:?}", statistics.edge_sets) };
    assert_eq!((of_edges.labels.len(), of_edges.elements), (0, 3_000));
    assert_eq!(of_edges.keys, [SetKey { key: SINCE, bounds: Some((1990.0, 1999.0)) }]);
    let key = |label, key| set(label).keys.iter().find(|there| there.key == key).copied();
    assert_eq!(key(PERSON, AGE).unwrap().bounds, Some((20.0, 79.0)));
    assert_eq!(key(PERSON, NAME).unwrap().bounds, None);
    assert_eq!(key(CITY, AGE), None);
    let distinct = |key| statistics.distinct.iter().find(|(there, _)| *there == key).unwrap().1 as f64;
    assert!((55.0..=65.0).contains(&distinct(AGE)), "{}", distinct(AGE));
    assert!((2_700.0..=3_300.0).contains(&distinct(NAME)), "{}", distinct(NAME));
    assert_eq!(mean(statistics, Some(PERSON), KNOWS, true), 4.0);
    assert_eq!(mean(statistics, Some(PERSON), LIVES_IN, true), 1.0);
    assert_eq!(mean(statistics, Some(CITY), LIVES_IN, true), 0.0);
    // All cities are looked at, though they are one vertex of 150.
    assert_eq!(mean(statistics, Some(CITY), LIVES_IN, false), 150.0);
    let all = mean(statistics, None, KNOWS, true);
    assert!((3.8..=4.0).contains(&all), "{all}");
}

#[test]
fn loads_transactions_and_restores_tell_the_same() {
    let transactions = Store::new(config());
    for (version, mutations) in (1..).zip(graph().chunks(500)) {
        transactions.apply(Version(version), mutations);
        transactions.publish(Version(version));
    }
    check(&transactions.statistics());
    let loaded = Store::new(config());
    for mutations in graph().chunks(5_000) {
        loaded.apply_load_block(Version(1), mutations);
    }
    loaded.publish(Version(1));
    check(&loaded.statistics());
    let objects = Objects::memory().unwrap();
    loaded.checkpoint(Version(1), &objects, "c", CheckpointMeta::default()).unwrap();
    let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap().store;
    check(&restored.statistics());
}

#[test]
fn bounds_widen_and_rows_go() {
    let store = Store::new(config());
    store.apply(Version(1), &graph());
    store.publish(Version(1));
    let write = PropertyWrite { key: AGE, cardinality: Cardinality::Single, value: Value::Int(-7) };
    store.apply(Version(2), &[Mutation::SetVertexProperty { gui: gui("p1"), write }]);
    let gone: Vec<Mutation> =
        (0..20).map(|n| Mutation::DeleteVertex { gui: gui(&format!("c{n}")), edges_left: true }).collect();
    store.apply(Version(3), &gone);
    store.publish(Version(3));
    let statistics = store.statistics();
    let person = statistics.sets.iter().find(|set| set.labels == [PERSON]).unwrap();
    assert_eq!(person.keys.iter().find(|key| key.key == AGE).unwrap().bounds, Some((-7.0, 79.0)));
    assert_eq!(mean(&statistics, None, LIVES_IN, true), 0.0);
    assert_eq!(statistics.sets.len(), 1, "{:?}", statistics.sets);
}

#[test]
fn an_element_that_moves_to_another_set_is_counted_once() {
    let store = Store::new(config());
    store.apply(Version(1), &graph());
    let write = PropertyWrite { key: SINCE, cardinality: Cardinality::Single, value: Value::Int(1990) };
    store.apply(Version(2), &[Mutation::SetVertexProperty { gui: gui("p1"), write }]);
    store.publish(Version(2));
    // The row in the old set stays until no reader needs the older version; it does not count.
    let people: Vec<(usize, u64)> = store
        .statistics()
        .sets
        .iter()
        .filter(|set| set.labels == [PERSON])
        .map(|set| (set.keys.len(), set.elements))
        .collect();
    assert_eq!(people, [(2, 2_999), (3, 1)]);
}

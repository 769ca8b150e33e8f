//! Tests of the generator: its means, its bytes, and that its files can be read back.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod details;

use super::*;
use crate::generate::files::{TableWriter, file_name};
use crate::{Dialect, Options, Row, RowReader};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

fn spec(graph: Graph, scale: u64, seed: u64) -> Spec {
    Spec { graph, scale, seed }
}

#[derive(Default)]
struct Counts {
    vertices: u64,
    edges: u64,
    values: u64,
    labels: BTreeMap<&'static str, u64>,
}

fn count(spec: &Spec) -> Counts {
    let mut counts = Counts::default();
    let mut ids = BTreeSet::new();
    each::<Error>(spec, |element| {
        let (table, values) = match element {
            Element::Vertex { table, id, values } => {
                assert!(ids.insert(id.to_owned()), "{id} twice");
                counts.vertices += 1;
                (table, values)
            }
            Element::Edge { table, from, to, values, .. } => {
                assert!(ids.contains(from) && ids.contains(to), "{from} -> {to} before its ends");
                counts.edges += 1;
                (table, values)
            }
        };
        assert_eq!(values.len(), spec.keys(table).len());
        counts.values += values.iter().flatten().count() as u64;
        *counts.labels.entry(table.label).or_default() += 1;
        Ok(())
    })
    .unwrap();
    counts
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() < tolerance, "{found}, expected about {expected}");
}

#[test]
fn identity_has_the_documented_means() {
    let n = 4000;
    let counts = count(&spec(Graph::Identity, n, 1));
    assert_eq!(counts.vertices - counts.edges, n);
    let each = |c: u64| c as f64 / n as f64;
    near(each(counts.vertices), 38.3, 0.01);
    near(each(counts.edges), 37.3, 0.01);
    near(each(counts.values), 148.0, 0.01);
    for (label, mean) in [
        ("GoldenEntity", 1.0),
        ("Partner", 5.0),
        ("Cookie", 14.8),
        ("Device", 8.0),
        ("IpAddress", 7.0),
        ("Account", 1.5),
        ("Household", 1.0),
        ("HAS_DEVICE", 3.0),
        ("PROVIDED_DEVICE", 5.0),
        ("HAS_IP_ADDR", 2.0),
        ("PROVIDED_IP_ADDR", 5.0),
        ("PROVIDED_COOKIE", 14.8),
    ] {
        near(each(counts.labels[label]), mean, 0.03);
    }
}

#[test]
fn partner_types_are_mixed_and_distinct_within_an_entity() {
    let mut types: BTreeMap<String, u64> = BTreeMap::new();
    let mut mine = BTreeSet::new();
    each::<Error>(&spec(Graph::Identity, 2000, 5), |element| {
        if let Element::Vertex { table, values, .. } = element {
            if std::ptr::eq(table, &identity::GOLDEN_ENTITY) {
                mine.clear();
            } else if std::ptr::eq(table, &identity::PARTNER) {
                let kind = values[0].as_ref().and_then(Value::as_str).unwrap().to_owned();
                assert!(mine.insert(kind.clone()));
                *types.entry(kind).or_default() += 1;
            }
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(types.len(), 17);
    types.values().for_each(|n| near(*n as f64, 10_000.0 / 17.0, 0.25));
}

#[test]
fn social_is_skewed_and_has_the_documented_degree() {
    let scale = 12;
    let (mut out, mut inward) = (vec![0_u64; 1 << scale], vec![0_u64; 1 << scale]);
    let (mut ages, mut empty, mut fields) = (Vec::new(), 0, 0);
    each::<Error>(&spec(Graph::Social, scale, 3), |element| {
        match element {
            Element::Vertex { values, .. } => {
                ages.push(values[0].as_ref().unwrap().as_i64().unwrap());
                empty += values[6..].iter().filter(|v| v.is_none()).count();
                fields += 3;
            }
            Element::Edge { from, to, .. } => {
                assert_ne!(from, to);
                out[from[1..].parse::<usize>().unwrap()] += 1;
                inward[to[1..].parse::<usize>().unwrap()] += 1;
            }
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(out.iter().sum::<u64>(), 19 << scale);
    for degrees in [&mut out, &mut inward] {
        let first_half: u64 = degrees[..1 << (scale - 1)].iter().sum();
        near(first_half as f64 / (19_u64 << scale) as f64, 0.5, 0.2);
        degrees.sort_unstable();
        let hubs: u64 = degrees[(1 << scale) * 99 / 100..].iter().sum();
        assert!(hubs * 100 > (19 << scale) * 8, "the top 1 % have {hubs} edges");
        assert!(*degrees.last().unwrap() > 19 * 20);
    }
    assert_eq!((ages.iter().min(), ages.iter().max().map(|m| *m <= 112)), (Some(&0), Some(true)));
    ages.sort_unstable();
    assert!(ages[ages.len() / 2] < 40 && ages[ages.len() * 99 / 100] > 80, "young, with a tail");
    assert!(empty * 2 > fields, "{empty} of {fields} text fields are empty");
}

/// Both ends of the edges of each table, as the numbers in their ids.
type Ends = BTreeMap<&'static str, Vec<(u64, u64)>>;

fn network(persons: u64, seed: u64) -> (BTreeMap<&'static str, u64>, Ends) {
    ends(&spec(Graph::Network, persons, seed))
}

fn ends(spec: &Spec) -> (BTreeMap<&'static str, u64>, Ends) {
    let (mut vertices, mut ends) = (BTreeMap::new(), Ends::new());
    let number = |id: &str| id.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
    each::<Error>(spec, |element| {
        match element {
            Element::Vertex { table, .. } => *vertices.entry(table.name).or_default() += 1,
            Element::Edge { table, from, to, .. } => {
                // The name of the table begins and ends with those of the tables of both ends.
                let name = |id: &str| id.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
                assert!(table.name.starts_with(&format!("{}_", name(from))), "{from} in {}", table.name);
                assert!(table.name.ends_with(&format!("_{}", name(to))), "{to} in {}", table.name);
                assert!(table.name.contains(&table.label.to_lowercase()), "{}", table.name);
                ends.entry(table.name).or_default().push((number(from), number(to)));
            }
        }
        Ok(())
    })
    .unwrap();
    (vertices, ends)
}

#[test]
fn a_network_has_the_documented_means() {
    let persons = 1_000;
    let (vertices, ends) = network(persons, 1);
    count(&spec(Graph::Network, 20, 1));
    for (table, number) in [
        ("continent", 6),
        ("country", 110),
        ("city", 1_320),
        ("tag_class", 70),
        ("tag", 16_000),
        ("person", persons),
    ] {
        assert_eq!(vertices[table], number, "{table}");
    }
    let edges = |table: &str| ends[table].len() as f64;
    let each = |number: f64| number / persons as f64;
    near(each(vertices["forum"] as f64), 6.0, 0.001);
    near(each(vertices["post"] as f64), 91.5, 0.05);
    near(each(vertices["comment"] as f64), 201.0, 0.05);
    near(each(edges("person_knows_person")), 18.5, 0.1);
    near(each(edges("person_has_interest_tag")), 25.0, 0.1);
    near(each(edges("forum_has_member_person")), 147.0, 0.1);
    near(each(edges("person_likes_post") + edges("person_likes_comment")), 248.0, 0.1);
    near(edges("comment_reply_of_post") / edges("comment_reply_of_comment"), 1.7, 0.1);
    for (table, of) in [
        ("country_is_part_of_continent", "country"),
        ("city_is_part_of_country", "city"),
        ("tag_has_type_tag_class", "tag"),
        ("person_is_located_in_city", "person"),
        ("forum_has_moderator_person", "forum"),
        ("forum_container_of_post", "post"),
        ("post_has_creator_person", "post"),
        ("comment_has_creator_person", "comment"),
        ("post_is_located_in_country", "post"),
        ("comment_is_located_in_country", "comment"),
    ] {
        assert_eq!(edges(table) as u64, vertices[of], "{table}");
    }
    let replies = edges("comment_reply_of_post") + edges("comment_reply_of_comment");
    assert_eq!(replies as u64, vertices["comment"], "each comment replies once");
}

#[test]
fn a_network_is_skewed_clustered_and_without_parallel_edges() {
    let persons = 1_000;
    let (_, ends) = network(persons, 3);
    for (table, pairs) in &ends {
        assert_eq!(pairs.iter().collect::<BTreeSet<_>>().len(), pairs.len(), "{table}");
    }
    let knows: BTreeSet<_> = ends["person_knows_person"].iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
    assert_eq!(knows.len(), ends["person_knows_person"].len(), "nobody knows another twice");
    assert!(knows.iter().all(|(a, b)| a != b), "nobody knows themselves");
    let mut degrees = vec![0_u64; persons as usize];
    knows.iter().flat_map(|&(a, b)| [a, b]).for_each(|person| degrees[person as usize] += 1);
    let mut triangles = 0;
    for &(a, b) in &knows {
        triangles +=
            (b + 1..persons).filter(|c| knows.contains(&(a, *c)) && knows.contains(&(b, *c))).count();
    }
    let paths: u64 = degrees.iter().map(|d| d * d.saturating_sub(1) / 2).sum();
    assert!(triangles as u64 * 3 * 20 > paths, "{triangles} of {paths} paths close a triangle");
    degrees.sort_unstable();
    let (middle, largest) = (degrees[500], degrees[999]);
    assert!(middle > 0 && largest > 3 * middle, "degrees {middle} and {largest}");
    let mut tagged: BTreeMap<u64, u64> = BTreeMap::new();
    ends["comment_has_tag_tag"].iter().for_each(|(_, tag)| *tagged.entry(*tag).or_default() += 1);
    let uses: u64 = tagged.values().sum();
    assert!(tagged.values().max().unwrap() * 400 > uses && tagged.len() > 10_000, "{} tags", tagged.len());
    // A comment replies only to what came before it.
    assert!(ends["comment_reply_of_comment"].iter().all(|(comment, replied)| replied < comment));
}

/// Returns all files of a graph, in memory.
fn files(spec: &Spec, dialect: Dialect) -> Vec<(String, Vec<u8>)> {
    let mut writers: Vec<_> =
        spec.tables().iter().map(|t| (TableWriter::new(t, spec.keys(t), dialect, Vec::new()), t)).collect();
    writers.iter_mut().for_each(|(w, _)| w.header().unwrap());
    each::<Error>(spec, |element| {
        let table = match element {
            Element::Vertex { table, .. } | Element::Edge { table, .. } => table,
        };
        let (writer, _) = writers.iter_mut().find(|(_, t)| std::ptr::eq(**t, table)).unwrap();
        writer.row(&element).unwrap();
        Ok(())
    })
    .unwrap();
    writers.into_iter().map(|(w, t)| (file_name(t, false), w.into_bytes())).collect()
}

/// Every machine must generate these bytes. If the generator changes on purpose, earlier
/// graphs are no longer comparable; the change log must say so.
#[test]
fn bytes_never_change() {
    let digest = |graph, scale| {
        let files = files(&spec(graph, scale, 42), Dialect::GREMLIN);
        let all: Vec<u8> = files.into_iter().flat_map(|(_, bytes)| bytes).collect();
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&all))
    };
    let graphs = [(Graph::Identity, 50), (Graph::Social, 8), (Graph::Network, 30), (Graph::Snb, 30)];
    assert_eq!(
        graphs.map(|(graph, scale)| digest(graph, scale)),
        ["4836356f32e12dab", "2d158b01f38ad71e", "2014c45ee834b9b0", "191d358f613d0906"]
    );
}

#[test]
fn an_entity_does_not_depend_on_the_scale() {
    let small = files(&spec(Graph::Identity, 3, 9), Dialect::OPENCYPHER);
    let large = files(&spec(Graph::Identity, 30, 9), Dialect::OPENCYPHER);
    for ((name, a), (_, b)) in small.iter().zip(&large) {
        assert!(b.starts_with(a), "{name}");
    }
}

#[test]
fn written_files_are_the_same_compressed_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(Graph::Identity, 20, 1);
    let mut last = (0, 0);
    let plain =
        files::write(&spec, Dialect::GREMLIN, false, &dir.path().join("a"), |d, t| last = (d, t)).unwrap();
    assert_eq!((plain.len(), last), (15, (20, 20)));
    let zipped = files::write(&spec, Dialect::GREMLIN, true, &dir.path().join("b"), |_, _| {}).unwrap();
    for (a, b) in plain.iter().zip(&zipped) {
        assert_eq!(a.rows, b.rows);
        let rows = |path: &std::path::Path| -> Vec<Row> {
            let file = std::fs::File::open(path).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            crate::open(file, &name, None, &Options::default()).unwrap().map(|r| r.unwrap()).collect()
        };
        assert_eq!(rows(&a.path), rows(&b.path));
        assert_eq!(rows(&a.path).len() as u64, a.rows);
    }
    for (graph, scale) in [(Graph::Social, 60), (Graph::Network, network::MAX_SCALE + 1)] {
        let too_large = Spec { graph, scale, seed: 1 };
        assert!(matches!(each::<Error>(&too_large, |_| Ok(())), Err(Error::Parameter { name: "scale", .. })));
    }
}

/// Returns the rows of a reader as text with the names of their keys.
fn shown(mut reader: RowReader) -> Vec<String> {
    let rows: Vec<Row> = reader.by_ref().map(|r| r.unwrap()).collect();
    let name = |n: &crate::Name| reader.names()[n.0 as usize].as_str();
    let values = |p: &[crate::Property]| {
        p.iter().map(|p| format!(" {}={:?}", name(&p.name), p.value)).collect::<String>()
    };
    rows.iter()
        .map(|row| match row {
            Row::Vertex(v) => {
                let labels: Vec<&str> = v.labels.iter().map(name).collect();
                format!("{} {}{}", v.id, labels.join(";"), values(&v.properties))
            }
            Row::Edge(e) => {
                let id = e.id.as_deref().unwrap_or_default();
                format!("{id} {}->{} {}{}", e.from, e.to, name(&e.label), values(&e.properties))
            }
        })
        .collect()
}

/// Returns a value as [`shown`] has it. A list is several values of the key, or one text in the format without arrays.
fn read_back(key: &str, value: &Value, opencypher: bool) -> String {
    let Value::List(values) = value else { return format!(" {key}={value:?}") };
    if opencypher {
        let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        return format!(" {key}={:?}", Value::string(texts.join(";")));
    }
    values.iter().map(|value| format!(" {key}={value:?}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_is_read_back(seed: u64, graph in 0..4_usize, opencypher: bool) {
        let spec = spec([Graph::Social, Graph::Identity, Graph::Network, Graph::Snb][graph], 4, seed);
        let dialect = if opencypher { Dialect::OPENCYPHER } else { Dialect::GREMLIN };
        let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
        each::<Error>(&spec, |element| {
            let (table, start, values) = match element {
                Element::Vertex { table, id, values } => (table, format!("{id} {}", table.label), values),
                Element::Edge { table, id, from, to, values } => {
                    (table, format!("{id} {from}->{to} {}", table.label), values)
                }
            };
            let values = spec.keys(table).iter().zip(values);
            let values = values.filter_map(|((k, _), v)| Some(read_back(k, v.as_ref()?, opencypher)));
            expected.entry(file_name(table, false)).or_default().push(start + &values.collect::<String>());
            Ok(())
        }).unwrap();
        for (name, bytes) in files(&spec, dialect) {
            let reader = crate::open(Cursor::new(bytes), &name, None, &Options::default()).unwrap();
            prop_assert_eq!(reader.header().dialect, dialect);
            prop_assert_eq!(shown(reader), expected.remove(&name).unwrap_or_default());
        }
    }
}

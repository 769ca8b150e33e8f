//! Tests of the reads on a small graph.

use super::*;
use crate::peers::{Kind, texts};

struct Small {
    database: std::sync::Arc<Database>,
    known: Known,
}

impl Small {
    fn load() -> Self {
        let files = tempfile::tempdir().unwrap();
        crate::generated::snb(60, 3, files.path()).unwrap();
        let database = Database::open(Options::default()).unwrap();
        load_embedded(&database, files.path()).unwrap();
        for text in CONSTRAINTS.into_iter().chain(INDEXES) {
            Call::cypher(text, vec![]).embedded(&database).unwrap();
        }
        let known = Known::of(&database).unwrap();
        Self { database, known }
    }

    /// Returns the rows of the first calls of a read.
    fn rows(&self, read: &'static Read) -> Vec<Vec<tidegraph_types::Value>> {
        let (next, mut random) = (next(read, &self.known), driver::random(1));
        let calls = std::iter::repeat_with(|| next(&mut random)).take(30).flatten();
        calls
            .flat_map(|call| {
                call.embedded(&self.database).unwrap_or_else(|error| panic!("{}: {error:#}", read.name))
            })
            .collect()
    }
}

#[test]
fn every_read_is_answered_and_most_have_rows() {
    let small = Small::load();
    for read in &READS {
        let rows = small.rows(read);
        assert!(!rows.is_empty(), "{} finds nothing", read.name);
        assert_eq!(rows, small.rows(read), "{} answers the same again", read.name);
    }
}

#[test]
fn the_reads_are_all_there_and_neo4j_is_asked_the_same() {
    let names: Vec<&str> = READS.iter().map(|read| read.name).collect();
    let expected = (1..=7).map(|n| format!("IS{n}")).chain((1..=14).map(|n| format!("IC{n}")));
    assert_eq!(names, expected.collect::<Vec<_>>());
    for read in &READS {
        assert_eq!(texts::text(Kind::Neo4j, read.name, read.text), Some(read.text), "{}", read.name);
    }
}

#[test]
fn a_graph_without_acquaintances_is_too_small() {
    let files = tempfile::tempdir().unwrap();
    crate::generated::snb(1, 3, files.path()).unwrap();
    let database = Database::open(Options::default()).unwrap();
    load_embedded(&database, files.path()).unwrap();
    let error = Known::of(&database).err().unwrap();
    assert!(error.to_string().contains("--scale"), "{error:#}");
}

//! The mix of the ycsb workload: the records that exist, and the next operation of a client.
//! `scripts/peers/java/cassandra/CassandraPeer.java` has the same mix for its peer.

use crate::clients::Call;
use crate::machine::cpu_seconds;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value as Json;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_types::{Str, Value};

/// Number of properties of a record.
pub const FIELDS: usize = 10;
/// Bytes of each property.
pub const FIELD_BYTES: usize = 200;

/// Names of the properties.
const NAMES: [&str; FIELDS] =
    ["field0", "field1", "field2", "field3", "field4", "field5", "field6", "field7", "field8", "field9"];

const READ: &str = "MATCH (n:Record) WHERE id(n) = $id RETURN n";

const INSERT: &str = "CREATE (:Record {`~id`: $id, field0: $field0, field1: $field1, field2: $field2, \
    field3: $field3, field4: $field4, field5: $field5, field6: $field6, field7: $field7, field8: $field8, \
    field9: $field9})";

const UPDATES: [&str; FIELDS] = [
    "MATCH (n:Record) WHERE id(n) = $id SET n.field0 = $value",
    "MATCH (n:Record) WHERE id(n) = $id SET n.field1 = $value",
    "MATCH (n:Record) WHERE id(n) = $id SET n.field2 = $value",
    "MATCH (n:Record) WHERE id(n) = $id SET n.field3 = $value",
    "MATCH (n:Record) WHERE id(n) = $id SET n.field4 = $value",
    "MATCH (n:Record) WHERE id(n) = $id SET n.field5 = $value",
    "MATCH (n:Record) WHERE id(n) = $id SET n.field6 = $value",
    "MATCH (n:Record) WHERE id(n) = $id SET n.field7 = $value",
    "MATCH (n:Record) WHERE id(n) = $id SET n.field8 = $value",
    "MATCH (n:Record) WHERE id(n) = $id SET n.field9 = $value",
];

const DELETE: &str = "MATCH (n:Record) WHERE id(n) = $id DETACH DELETE n";

/// The records that exist: from the oldest one that was not deleted up to the next one.
#[derive(Debug, Default)]
pub struct Keys {
    gone: AtomicU64,
    next: AtomicU64,
    /// Distance from both ends within which an operation may be in progress: four records for each client.
    margin: AtomicU64,
}

impl Keys {
    /// Returns the records from 0 up to a number.
    pub fn loaded(records: u64) -> Self {
        Self { next: AtomicU64::new(records), ..Self::default() }
    }

    /// Sets the number of clients.
    pub fn serve(&self, clients: usize) {
        self.margin.store(4 * clients as u64, Ordering::Relaxed);
    }

    /// Returns the first record that exists, and the first one that does not exist yet.
    pub fn range(&self) -> (u64, u64) {
        (self.gone.load(Ordering::Relaxed), self.next.load(Ordering::Relaxed))
    }

    /// Sets the range that another driver of the same records reported.
    pub fn set(&self, (gone, next): (u64, u64)) {
        self.gone.store(gone, Ordering::Relaxed);
        self.next.store(next, Ordering::Relaxed);
    }

    fn one(&self, random: &mut ChaCha8Rng) -> u64 {
        let margin = self.margin.load(Ordering::Relaxed);
        let (gone, next) = self.range();
        let from = gone + margin;
        random.random_range(from..next.saturating_sub(margin).max(from + 1))
    }

    /// Returns the next operation: 50 % reads, 40 % inserts, 6 % updates, 4 % deletes.
    pub fn next(&self, random: &mut ChaCha8Rng) -> Call {
        match random.random_range(0..100) {
            0..50 => Call::cypher(READ, vec![("id", id(self.one(random)))]),
            50..90 => insert(self.next.fetch_add(1, Ordering::Relaxed), random),
            90..96 => {
                let text = UPDATES[random.random_range(0..FIELDS)];
                Call::cypher(text, vec![("id", id(self.one(random))), ("value", value(random))])
            }
            _ => Call::cypher(DELETE, vec![("id", id(self.gone.fetch_add(1, Ordering::Relaxed)))]),
        }
    }
}

/// Measures the processor time of making an operation, in microseconds. It is subtracted where clients and database
/// share a process.
pub fn making_us(seed: u64) -> f64 {
    const OPERATIONS: u32 = 50_000;
    let (keys, mut random) = (Keys::loaded(20_000), ChaCha8Rng::seed_from_u64(seed));
    let used = || cpu_seconds(std::process::id()).unwrap_or_default();
    let before = used();
    for _ in 0..OPERATIONS {
        drop(std::hint::black_box(keys.next(&mut random)));
    }
    (used() - before) * 1e6 / f64::from(OPERATIONS)
}

/// Returns the call that inserts a record.
pub fn insert(number: u64, random: &mut ChaCha8Rng) -> Call {
    let fields = NAMES.into_iter().map(|name| (name, value(random)));
    Call::cypher(INSERT, std::iter::once(("id", id(number))).chain(fields).collect())
}

/// Returns whether an answer is one record with all its fields.
pub fn is_record(answer: &[u8]) -> bool {
    let Ok(answer) = serde_json::from_slice::<Json>(answer) else { return false };
    let record = &answer["results"][0]["n"]["~properties"];
    NAMES.iter().all(|name| record[name].as_str().is_some_and(|text| text.len() == FIELD_BYTES))
}

/// Returns the call that reads a record.
pub fn read(number: u64) -> Call {
    Call::cypher(READ, vec![("id", id(number))])
}

/// Converts a number to a key. The keys of consecutive numbers are far apart.
fn id(number: u64) -> Value {
    Value::from(Str::from(format!("user{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))))
}

fn value(random: &mut ChaCha8Rng) -> Value {
    let text: String = (0..FIELD_BYTES).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect();
    Value::from(Str::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_engine::{Database, Options};

    #[test]
    fn every_operation_finds_its_record_and_the_shares_are_as_said() {
        let database = Database::open(Options::default()).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(7);
        for number in 0..50 {
            insert(number, &mut random).embedded(&database).unwrap();
        }
        let keys = Keys::loaded(50);
        keys.serve(1);
        let (mut reads, mut writes) = (0, 0);
        for _ in 0..2_000 {
            let call = keys.next(&mut random);
            let rows = call.embedded(&database).unwrap();
            if call.text == READ {
                reads += 1;
                assert_eq!(rows.len(), 1, "{call:?}");
            } else {
                writes += 1;
            }
        }
        assert!((900..1_100).contains(&reads) && reads + writes == 2_000, "{reads}");
        let (gone, next) = keys.range();
        assert!((50..120).contains(&gone) && (700..950).contains(&next), "{gone} {next}");
        assert_eq!(database.status().vertices, next - gone);
    }
}

//! Rewrites a history with resets for the checker, which knows only lists that grow.
//!
//! An *era* is what lies between two resets. Each list becomes one list for each era, and a reset becomes a transaction
//! that appends to all of them: [`END`] to the lists of the era before it, [`BEGIN`] to those of the era after it. So a
//! transaction that read before a reset and wrote after it is in a cycle with the reset.

use crate::checker::{Ended, Transaction};
use crate::model::{Model, number};
use crate::transaction::FinishedTransaction;
use std::collections::BTreeMap;
use tidegraph_log::{Body, Record};
use tidegraph_types::{Gui, Mutation, Version};

/// More than the keys of a world.
const KEYS: u64 = 1_000;
/// The last number of a list that a reset ended. Clients write positive numbers.
const END: i64 = -1;
/// The first number of a list after a reset.
const BEGIN: i64 = -2;
/// A number that no list has.
const MISSING: i64 = -3;

/// Transactions and final lists, as the checker takes them.
pub(crate) struct Rewritten {
    pub transactions: Vec<Transaction>,
    pub lists: BTreeMap<u64, Vec<i64>>,
    /// Number of resets in the log.
    pub resets: u64,
}

/// What a log says about its eras.
#[derive(Default)]
struct Eras {
    resets: Vec<Version>,
    /// The version that appended each number.
    appended: BTreeMap<i64, Version>,
    lists: BTreeMap<u64, Vec<i64>>,
}

/// Whether mutations are those of a reset.
fn is_reset(mutations: &[Mutation]) -> bool {
    mutations.contains(&Mutation::Reset)
}

impl Eras {
    /// Reads a log. `keys` are the GUIs of the lists.
    fn of(history: &[Record], keys: &[Gui]) -> Self {
        let (mut eras, mut model) = (Self::default(), Model::default());
        for record in history {
            let Body::Commit { mutations, .. } = &record.body else { continue };
            if is_reset(mutations) {
                eras.close(&model, keys);
                eras.resets.push(record.version);
            }
            for mutation in mutations {
                // Items have other numbers.
                let writes = match mutation {
                    Mutation::CreateVertex { gui, properties, .. } if keys.contains(gui) => {
                        properties.as_slice()
                    }
                    Mutation::SetVertexProperty { gui, write } if keys.contains(gui) => {
                        std::slice::from_ref(write)
                    }
                    _ => &[],
                };
                let numbers = writes.iter().map(|write| (number(&write.value), record.version));
                eras.appended.extend(numbers);
            }
            model.apply(record);
        }
        eras.close(&model, keys);
        eras
    }

    /// Notes the lists at the end of the newest era.
    fn close(&mut self, model: &Model, keys: &[Gui]) {
        let era = self.resets.len() as u64;
        for (key, gui) in (0..).zip(keys) {
            self.lists.insert(key + era * KEYS, model.see(*gui).list);
        }
    }

    /// Returns the era of the state at a version.
    fn at(&self, version: Version) -> u64 {
        self.resets.partition_point(|reset| *reset <= version) as u64
    }

    fn begins(era: u64) -> Option<i64> {
        (era > 0).then_some(BEGIN)
    }

    /// Returns what a reset appends; `number` counts resets.
    fn appends(&self, number: u64, keys: u64) -> Vec<(u64, i64)> {
        let of_key = |key| [(key + number * KEYS, END), (key + (number + 1) * KEYS, BEGIN)];
        (0..keys).flat_map(of_key).collect()
    }
}

/// Rewrites a history. `versions` are those of requests by their ids, `keys` the GUIs of the lists.
pub(crate) fn rewrite(
    history: &[Record],
    done: &[FinishedTransaction],
    versions: &BTreeMap<u128, Version>,
    keys: &[Gui],
) -> Rewritten {
    let eras = Eras::of(history, keys);
    let count = keys.len() as u64;
    let last = eras.resets.len() as u64;
    let mut known = vec![false; eras.resets.len()];
    let mut transactions: Vec<Transaction> = Vec::with_capacity(done.len());
    for finished in done {
        let mut transaction = finished.transaction.clone();
        let era = eras.at(finished.read_at);
        for (key, read) in &mut transaction.reads {
            *key += era * KEYS;
            read.splice(0..0, Eras::begins(era));
        }
        for (key, number) in &mut transaction.appends {
            // One that is not in the log is missing in every era.
            let era = eras.appended.get(&*number).map_or(last, |version| eras.at(*version));
            *key += era * KEYS;
        }
        if is_reset(&finished.mutations) {
            let by_id = || versions.get(&finished.id?.0).copied();
            let number =
                finished.version.or_else(by_id).and_then(|version| eras.resets.binary_search(&version).ok());
            match number {
                Some(number) => {
                    known[number] = true;
                    transaction.appends = eras.appends(number as u64, count);
                }
                None if transaction.ended == Ended::Acknowledged => transaction.appends = vec![(0, MISSING)],
                None => {}
            }
        }
        transactions.push(transaction);
    }
    // Those of processes that were killed.
    let client = done.iter().map(|finished| finished.transaction.client).max().map_or(0, |client| client + 1);
    let unknown = (0..).zip(&known).filter(|(_, known)| !**known).map(|(number, _)| Transaction {
        client,
        began: 0,
        ended_at: u64::MAX,
        ended: Ended::Unknown,
        reads: vec![],
        appends: eras.appends(number, count),
    });
    transactions.extend(unknown);
    let mut lists = eras.lists;
    for (key, list) in &mut lists {
        let era = key / KEYS;
        list.splice(0..0, Eras::begins(era));
        list.extend((era < last).then_some(END));
    }
    Rewritten { transactions, lists, resets: last }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::{Anomaly, check};
    use tidegraph_types::{Cardinality, Epoch, PropertyWrite, ShardId, Sid, Token, Value};

    const KEY: Gui = Gui(7);

    fn append(n: i64, creates: bool) -> Mutation {
        let write = PropertyWrite { key: Token(1), cardinality: Cardinality::List, value: Value::Long(n) };
        if creates {
            return Mutation::CreateVertex {
                gui: KEY,
                id: "k".into(),
                labels: vec![],
                properties: vec![write],
            };
        }
        Mutation::SetVertexProperty { gui: KEY, write }
    }

    fn log(mutations: Vec<Mutation>) -> Vec<Record> {
        let body = |mutation| Body::Commit {
            mutations: vec![mutation],
            next_sid: Sid(1),
            request: None,
            changes: None,
        };
        let record = |(version, mutation)| Record {
            shard: ShardId(0),
            epoch: Epoch(1),
            version: Version(version),
            body: body(mutation),
        };
        (1..).zip(mutations).map(record).collect()
    }

    fn done(
        client: usize,
        read_at: u64,
        reads: Option<Vec<i64>>,
        version: Option<u64>,
        mutation: Option<&Mutation>,
    ) -> FinishedTransaction {
        let appends = match mutation {
            Some(Mutation::CreateVertex { properties, .. }) => vec![(0, number(&properties[0].value))],
            Some(Mutation::SetVertexProperty { write, .. }) => vec![(0, number(&write.value))],
            _ => vec![],
        };
        let reads = reads.map(|list| (0, list)).into_iter().collect();
        let transaction =
            Transaction { client, began: 0, ended_at: u64::MAX, ended: Ended::Acknowledged, reads, appends };
        FinishedTransaction {
            transaction,
            read_at: Version(read_at),
            version: version.map(Version),
            id: None,
            mutations: mutation.cloned().into_iter().collect(),
            seen: vec![],
            scan: None,
        }
    }

    fn found(history: &[Record], done: &[FinishedTransaction]) -> Option<Anomaly> {
        let Rewritten { transactions, lists, .. } = rewrite(history, done, &BTreeMap::new(), &[KEY]);
        check(&transactions, &lists)
    }

    #[test]
    fn lists_begin_again_after_a_reset() {
        let changes = [append(1, true), Mutation::Reset, append(2, true), append(3, false)];
        let history = log(changes.to_vec());
        let of = |client, read_at, reads: &[i64], version: u64| {
            done(client, read_at, Some(reads.to_vec()), Some(version), Some(&changes[version as usize - 1]))
        };
        let reset = done(9, 1, None, Some(2), Some(&changes[1]));
        let all = [
            of(1, 0, &[], 1),
            reset,
            of(2, 2, &[], 3),
            of(3, 3, &[2], 4),
            done(4, 4, Some(vec![2, 3]), None, None),
        ];
        assert_eq!(found(&history, &all), None);
        // A killed process made the reset.
        let [first, _, rest @ ..] = all.clone();
        assert_eq!(found(&history, &[&[first][..], &rest[..]].concat()), None);
        // A read after the reset that still saw the list.
        let mut stale = all.clone();
        stale[4] = done(4, 4, Some(vec![1]), None, None);
        assert!(matches!(found(&history, &stale), Some(Anomaly::Order(..))));
        // A transaction that read before the reset and wrote after it.
        let mut late = all.clone();
        late[2] = of(2, 1, &[1], 3);
        assert!(matches!(found(&history, &late), Some(Anomaly::Cycle(_))));
        // A reset that was acknowledged and is not in the log.
        let lost = done(5, 4, None, Some(5), Some(&Mutation::Reset));
        assert!(matches!(found(&history, &[&all[..], &[lost][..]].concat()), Some(Anomaly::Lost(..))));
    }
}

//! A record as its parts, one for each shard.
//!
//! A shard gets the mutations of a transaction that concern a partition of its group; a mutation may concern
//! several groups. Records for all readers (tokens, loads, reserved SIDs, the start of an epoch) go to every shard
//! whole. The id of a request is only in the first shard, because only a reader that joins records needs it. So are the
//! changes for the change stream, whose readers read that shard alone.

use crate::{Body, Record};
use tidegraph_types::{Mutation, ShardId, Sharding, Version};

/// The part of a record in one shard.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Part {
    /// The record with the mutations of this shard.
    pub record: Record,
    /// Indexes of these mutations in the whole transaction, rising. Empty if they were its first ones.
    pub places: Vec<u32>,
}

/// Divides a record into its parts, in order of shard.
pub(crate) fn split(sharding: Sharding, record: &Record) -> Vec<Part> {
    let part = |shard, body, places| Part { record: Record { shard, body, ..record.clone_head() }, places };
    let Body::Commit { mutations, next_sid, request, changes } = &record.body else {
        return sharding.all().map(|shard| part(shard, record.body.clone(), Vec::new())).collect();
    };
    let mut mine: Vec<(Vec<Mutation>, Vec<u32>)> = sharding.all().map(|_| Default::default()).collect();
    for (place, mutation) in (0_u32..).zip(mutations) {
        // No transaction has this many mutations. An index that occurs twice would lose one.
        debug_assert!(place < u32::MAX);
        let mut add = |shard: usize| {
            let (mutations, places) = &mut mine[shard];
            if places.last() != Some(&place) {
                mutations.push(mutation.clone());
                places.push(place);
            }
        };
        let all = mutation.concerns(|gui| {
            add(usize::from(sharding.home(gui).0));
            false
        });
        if all {
            (0..usize::from(sharding.shards())).for_each(add);
        }
    }
    let parts = sharding.all().zip(mine).map(|(shard, (mutations, mut places))| {
        if places.last().is_none_or(|last| *last as usize + 1 == places.len()) {
            places.clear();
        }
        let request = request.filter(|_| shard == ShardId(0));
        let changes = changes.as_ref().filter(|_| shard == ShardId(0)).cloned();
        part(shard, Body::Commit { mutations, next_sid: *next_sid, request, changes }, places)
    });
    parts.collect()
}

/// Joins a record from all its parts, in order of shard. The error says what does not match.
pub(crate) fn join(version: Version, parts: Vec<Part>) -> Result<Record, String> {
    let mut parts = parts.into_iter();
    let Part { record: mut whole, places } = parts.next().ok_or("there are no parts")?;
    if whole.version != version {
        return Err(format!("shard {} has version {} in its place", whole.shard, whole.version));
    }
    let mut placed = Vec::new();
    if let Body::Commit { mutations, .. } = &mut whole.body {
        place(&mut placed, std::mem::take(mutations), &places)?;
    }
    for Part { record, places } in parts {
        let shard = record.shard;
        let differs = |what: &str| Err(format!("the {what} in shard {shard} differs from that in shard 0"));
        if (record.version, record.epoch) != (whole.version, whole.epoch) {
            return differs("version or epoch");
        }
        match (&whole.body, record.body) {
            (Body::Commit { next_sid, .. }, Body::Commit { mutations, next_sid: here, .. }) => {
                if here != *next_sid {
                    return differs("next SID");
                }
                place(&mut placed, mutations, &places)?;
            }
            (all, here) if *all == here => {}
            _ => return differs("body"),
        }
    }
    if let Body::Commit { mutations, .. } = &mut whole.body {
        // A mutation that concerns several shards came from each of them.
        placed.sort_by_key(|(place, _)| *place);
        placed.dedup_by_key(|(place, _)| *place);
        if let Some((missing, _)) = (0..).zip(&placed).find(|(expected, (place, _))| expected != place) {
            return Err(format!("mutation {missing} is in no shard"));
        }
        *mutations = placed.into_iter().map(|(_, mutation)| mutation).collect();
    }
    whole.shard = ShardId(0);
    Ok(whole)
}

fn place(placed: &mut Vec<(u32, Mutation)>, mutations: Vec<Mutation>, places: &[u32]) -> Result<(), String> {
    if places.is_empty() {
        placed.extend((0..).zip(mutations));
    } else if places.len() == mutations.len() {
        placed.extend(places.iter().copied().zip(mutations));
    } else {
        return Err(format!("{} mutations have {} places", mutations.len(), places.len()));
    }
    Ok(())
}

impl Record {
    /// The record without its body.
    fn clone_head(&self) -> Self {
        Self { shard: self.shard, epoch: self.epoch, version: self.version, body: Body::EpochStart }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_platform::{Random, SeededRandom};
    use tidegraph_types::{Edge, Epoch, Gui, PartitionCount, RequestId, Sid, Token};

    fn sharding(shards: u16) -> Sharding {
        Sharding::new(PartitionCount::new(8).unwrap(), shards).unwrap()
    }

    fn commit(mutations: Vec<Mutation>) -> Record {
        let body = Body::Commit { mutations, next_sid: Sid(7), request: Some(RequestId(9)), changes: None };
        Record { shard: ShardId(0), epoch: Epoch(2), version: Version(3), body }
    }

    /// Returns a GUI of a partition.
    fn gui(partition: u64, low: u64) -> Gui {
        Gui(partition << 48 | low)
    }

    fn some(random: &SeededRandom) -> Mutation {
        let any = || gui(random.below(8), random.below(1000));
        let (a, b) = (any(), any());
        let edge = Edge { sid: Sid(random.below(100)), source: a, target: b, label: Token(1) };
        match random.below(8) {
            0 => Mutation::DeleteVertex { gui: a, edges_left: random.one_in(2) },
            1 => Mutation::CreateEdge { edge, id: None, properties: vec![] },
            2 => Mutation::DeleteEdge { edge, id: Some(format!("e{}", random.below(100)).into()) },
            3 => Mutation::RemoveEdgeProperty { edge, key: Token(2) },
            4 => Mutation::DropIndex { name: "i".into() },
            5 => Mutation::Reset,
            _ => Mutation::CreateVertex { gui: a, id: "a".into(), labels: vec![], properties: vec![] },
        }
    }

    /// Shows LOG-4.
    #[test]
    fn parts_join_to_the_same_record() {
        for seed in 0..500 {
            let random = SeededRandom::new(seed);
            let mutations: Vec<Mutation> = (0..random.below(12)).map(|_| some(&random)).collect();
            let sharding = sharding(1 + random.below(8) as u16);
            let record = commit(mutations);
            let parts = split(sharding, &record);
            assert_eq!(parts.len(), usize::from(sharding.shards()));
            // Each partition finds its mutations in its shard, in order, and no shard has mutations of other
            // partitions.
            let Body::Commit { mutations, .. } = &record.body else { unreachable!() };
            for partition in PartitionCount::new(8).unwrap().all() {
                let mine = |mutations: &[Mutation]| -> Vec<Mutation> {
                    let holds = |gui| PartitionCount::new(8).unwrap().of(gui) == partition;
                    mutations.iter().filter(|mutation| mutation.concerns(holds)).cloned().collect()
                };
                let part = &parts[usize::from(sharding.of(partition).0)];
                let Body::Commit { mutations: here, .. } = &part.record.body else { unreachable!() };
                assert_eq!(mine(here), mine(mutations), "seed {seed}");
            }
            for part in &parts {
                let Body::Commit { mutations: here, .. } = &part.record.body else { unreachable!() };
                let home = |gui| sharding.home(gui) == part.record.shard;
                assert!(here.iter().all(|mutation| mutation.concerns(home)), "seed {seed}");
            }
            assert_eq!(join(Version(3), parts).unwrap(), record, "seed {seed}");
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let vertex = |partition| Mutation::DeleteVertex { gui: gui(partition, 1), edges_left: false };
        let record = commit((0..8).map(vertex).collect());
        let parts = split(sharding(4), &record);
        assert!(parts[0].places.is_empty(), "the first ones");
        assert_eq!(parts[2].places, [4, 5]);
        let mut without = parts.clone();
        without.remove(2);
        assert!(join(Version(3), without).unwrap_err().contains("mutation 4"), "{parts:?}");
        let mut other = parts.clone();
        other[3].record.epoch = Epoch(1);
        assert!(join(Version(3), other).unwrap_err().contains("shard 3"));
        let mut other = parts.clone();
        other[1].record.body = Body::EpochStart;
        assert!(join(Version(3), other).unwrap_err().contains("shard 1"));
        let mut other = parts;
        other[1].places.pop();
        assert!(join(Version(3), other).unwrap_err().contains("2 mutations have 1 places"));
    }
}

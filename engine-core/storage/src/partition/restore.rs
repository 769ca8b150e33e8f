//! A partition out of the chunks of a checkpoint. Nothing in them is believed, though their checksums were right.
//!
//! Flow: pages first, then the nodes, which name rows of them, then edge ids; each kind in order of its numbers. Indexes
//! are made once: the one of vertices with the nodes, those of edges at the end. Nobody reads the partition meanwhile.
//!
//! What must never happen: a panic, or a wild address, because of what a chunk says.

use super::image::{Bits, SEVERAL, WHOLE};
use super::{EdgeIdEntry, Open, Tally, sid_hash};
use crate::Store;
use crate::adjacency::{LARGEST_SID, Link};
use crate::properties::{Owner, Place};
use crate::slots::GROUP;
use crossbeam_epoch::pin;
use std::sync::atomic::Ordering;
use tidegraph_types::{Gui, Sid, Token, Version};

/// What is wrong with a chunk, and where in it.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub at: usize,
    pub reason: String,
}

/// What came together.
#[derive(Default)]
pub(crate) struct Rebuilt {
    pub tally: Tally,
    /// Sum over the edges that leave vertices, and over those that arrive, if both ends are in the store: both are the same.
    pub left: u64,
    pub arrived: u64,
}

/// Fills one partition. See the module.
pub(crate) struct Rebuild<'p> {
    partition: Open<'p>,
    rebuilt: Rebuilt,
    vertex_rows: usize,
    links: Vec<Link>,
    /// Lists in of some vertices, one behind the other.
    inward: Vec<Link>,
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn wrong<T>(&self, reason: impl Into<String>) -> Result<T, Wrong> {
        Err(Wrong { at: self.at, reason: reason.into() })
    }

    /// So many numbers of `N` bytes.
    fn column<const N: usize>(&mut self, count: usize, what: &str) -> Result<&'b [[u8; N]], Wrong> {
        let length = count.checked_mul(N);
        let taken = length.and_then(|length| self.bytes.get(self.at..)?.get(..length));
        let Some(taken) = taken else { return self.wrong(format!("{count} {what} do not fit")) };
        self.at += taken.len();
        Ok(taken.as_chunks::<N>().0)
    }

    fn bits(&mut self) -> Result<Bits, Wrong> {
        let bits = self.column::<16>(1, "groups of bits")?;
        Ok(Bits::from_le_bytes(bits[0]))
    }

    fn varint(&mut self) -> Result<u64, Wrong> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let Some(byte) = self.bytes.get(self.at) else { return self.wrong("a number is cut short") };
            self.at += 1;
            let seven = u64::from(byte & 0x7f);
            if seven << shift >> shift != seven {
                break;
            }
            number |= seven << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        self.wrong("a number is too large")
    }

    fn token(&mut self) -> Result<Token, Wrong> {
        match u32::try_from(self.varint()?) {
            Ok(token) => Ok(Token(token)),
            Err(_) => self.wrong("a label has more than 32 bits"),
        }
    }

    /// The entries of a list, in order.
    fn list(&mut self, links: &mut Vec<Link>) -> Result<(), Wrong> {
        links.clear();
        let head = self.varint()?;
        let count = (head >> 2) as usize;
        if count == 0 {
            return if head == 0 { Ok(()) } else { self.wrong("an empty list has marks") };
        }
        // An entry takes 12 bytes at least: nothing is allocated for more.
        if count > self.bytes.len() / 12 {
            return self.wrong(format!("a list of {count} entries does not fit"));
        }
        let mut runs: smallvec::SmallVec<[(Token, usize); 4]> = smallvec::SmallVec::new();
        if head & SEVERAL == 0 {
            runs.push((self.token()?, count));
        } else {
            let mut left = count;
            for _ in 0..self.varint()? {
                let label = self.token()?;
                let length = self.varint()? as usize;
                if length == 0 || length > left {
                    return self.wrong(format!("a run of {length} entries where {left} are left"));
                }
                left -= length;
                runs.push((label, length));
            }
            if left > 0 {
                return self.wrong(format!("{left} entries have no label"));
            }
        }
        let least = if head & WHOLE == 0 { self.varint()? } else { 0 };
        let neighbours = self.column::<8>(count, "neighbours")?;
        let whole = if head & WHOLE > 0 { self.column::<8>(count, "sids")? } else { &[] };
        let above = if head & WHOLE == 0 { self.column::<4>(count, "sids")? } else { &[] };
        let sid = |index: usize| match whole.get(index) {
            Some(whole) => u64::from_le_bytes(*whole),
            None => least.saturating_add(u64::from(u32::from_le_bytes(above[index]))),
        };
        links.reserve(count);
        let mut start = 0;
        for (label, length) in runs {
            let part = start..start + length;
            let pairs = neighbours[part.clone()].iter().zip(part);
            links.extend(pairs.map(|(neighbour, index)| Link {
                neighbour: Gui(u64::from_le_bytes(*neighbour)),
                sid: Sid(sid(index)),
                label,
            }));
            start += length;
        }
        let in_order = links.is_sorted_by(|a, b| (a.label, a.sid) < (b.label, b.sid));
        if !in_order || links.iter().any(|link| link.sid > LARGEST_SID) {
            return self.wrong("a list is not in order, or a sid is too large");
        }
        Ok(())
    }

    fn end(&self) -> Result<(), Wrong> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            more => self.wrong(format!("{more} bytes follow the group")),
        }
    }
}

/// A number that stands for an edge in a sum.
fn mark(source: Gui, target: Gui, link: &Link) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (source.0 ^ target.0.rotate_left(29)).wrapping_mul(ODD)
        ^ (link.sid.0 ^ u64::from(link.label.0) << 40).wrapping_mul(ODD.rotate_left(17));
    (mixed ^ mixed >> 32).wrapping_mul(ODD)
}

/// Slots of a group. What no slot can have as its number becomes one for which there is no room.
fn slots_of(group: u32, bits: Bits) -> impl Iterator<Item = u32> {
    let first = group.saturating_mul(GROUP);
    (0..GROUP).filter(move |slot| bits >> slot & 1 == 1).map(move |slot| first.saturating_add(slot))
}

impl<'p> Rebuild<'p> {
    pub fn new(partition: Open<'p>) -> Self {
        Self { partition, rebuilt: Rebuilt::default(), vertex_rows: 0, links: Vec::new(), inward: Vec::new() }
    }

    /// Makes room for vertices and edge ids, no more than the chunks can hold.
    pub fn reserve(&mut self, vertices: usize, edge_ids: usize) {
        let Open { partition, book } = &mut self.partition;
        partition.by_gui.reserve(&mut book.turn, vertices);
        partition.by_edge_id.reserve(&mut book.turn, edge_ids);
    }

    /// Moves pages out if they take more than they may.
    pub fn make_room(&mut self, store: &Store) {
        store.make_room_anew_in(&mut self.partition);
    }

    pub fn page(&mut self, number: u32, bytes: &[u8]) -> Result<(), Wrong> {
        let guard = pin();
        let (keeper, desk) = self.partition.desk(&guard);
        let adopted = keeper.adopt(desk, number, bytes);
        let adopted = adopted.map_err(|error| Wrong { at: error.offset(), reason: error.to_string() })?;
        if adopted.vertices {
            self.vertex_rows += adopted.rows;
            for label in adopted.labels {
                *self.rebuilt.tally.vertices_by_label.entry(*label).or_default() += adopted.rows as i64;
            }
            let rows = adopted.rows as u64;
            let partition = self.partition.partition;
            partition.distinct.adopt(&partition.rows, number, rows, &guard);
        }
        Ok(())
    }

    pub fn nodes(
        &mut self,
        group: u32,
        bytes: &[u8],
        belongs_here: impl Fn(Gui) -> bool,
        comes_again: impl Fn(Gui) -> bool,
    ) -> Result<(), Wrong> {
        let guard = pin();
        let mut reader = Reader { bytes, at: 0 };
        let bits = reader.bits()?;
        let count = bits.count_ones() as usize;
        let guis = reader.column::<8>(count, "vertices")?;
        let places = reader.column::<4>(count, "places")?;
        let guis = guis.iter().map(|gui| Gui(u64::from_le_bytes(*gui)));
        guis.clone().for_each(|gui| self.partition.prefetch_index(gui, &guard));
        let mut inward_ends = Vec::with_capacity(count);
        for ((slot, gui), place) in slots_of(group, bits).zip(guis).zip(places) {
            let place = Place(u32::from_le_bytes(*place));
            if !belongs_here(gui) {
                return reader.wrong(format!("{gui} belongs to another partition"));
            }
            if !self.partition.rows.holds(Owner::Vertex(gui), place, &guard) {
                return reader.wrong(format!("the row of {gui} is not at its place"));
            }
            if self.partition.slot(gui).is_some() {
                return reader.wrong(format!("vertex {gui} stands there twice"));
            }
            let Open { partition, book } = &mut self.partition;
            if !partition.nodes.claim(slot, &mut book.free_nodes) {
                return reader.wrong(format!("there is no room for slot {slot}"));
            }
            let node = partition.nodes.get(slot);
            node.gui.store(gui.0, Ordering::Relaxed);
            node.row.set(Some(place));
            partition.by_gui.insert(&mut book.turn, gui.0, slot);
            reader.list(&mut self.links)?;
            for link in self.links.iter().filter(|link| comes_again(link.neighbour)) {
                self.rebuilt.left = self.rebuilt.left.wrapping_add(mark(gui, link.neighbour, link));
            }
            for run in self.links.chunk_by(|a, b| a.label == b.label) {
                *self.rebuilt.tally.edges_by_label.entry(run[0].label).or_default() += run.len() as i64;
            }
            self.rebuilt.tally.edges += self.links.len() as i64;
            let oldest = partition.reclaimed();
            partition.links.build(&mut book.turn, &node.out, &self.links, Version(0), oldest);
            reader.list(&mut self.links)?;
            for link in self.links.iter().filter(|link| comes_again(link.neighbour)) {
                self.rebuilt.arrived = self.rebuilt.arrived.wrapping_add(mark(link.neighbour, gui, link));
            }
            self.inward.extend_from_slice(&self.links);
            inward_ends.push((slot, self.inward.len()));
        }
        // Behind those out, as in the order of lists.
        let Open { partition, book } = &mut self.partition;
        let (oldest, mut start) = (partition.reclaimed(), 0);
        for (slot, end) in inward_ends {
            let list = &partition.nodes.get(slot).inward;
            partition.links.build(&mut book.turn, list, &self.inward[start..end], Version(0), oldest);
            start = end;
        }
        self.inward.clear();
        self.rebuilt.tally.vertices += count as i64;
        reader.end()
    }

    pub fn edge_ids(
        &mut self,
        group: u32,
        bytes: &[u8],
        belongs_here: impl Fn(Gui) -> bool,
    ) -> Result<(), Wrong> {
        let mut reader = Reader { bytes, at: 0 };
        let bits = reader.bits()?;
        let count = bits.count_ones() as usize;
        let hashes = reader.column::<8>(count, "hashes")?;
        let sources = reader.column::<8>(count, "sources")?;
        let sids = reader.column::<8>(count, "sids")?;
        let Open { partition, book } = &mut self.partition;
        for (index, slot) in slots_of(group, bits).enumerate() {
            let word = |column: &[[u8; 8]]| u64::from_le_bytes(column[index]);
            let (hash, source, sid) = (word(hashes), Gui(word(sources)), Sid(word(sids)));
            if !belongs_here(Gui(hash)) || sid == Sid(0) || sid > LARGEST_SID {
                return reader.wrong(format!("the edge id of {sid} is not of this partition"));
            }
            if !partition.edge_ids.claim(slot, &mut book.free_edge_ids) {
                return reader.wrong(format!("there is no room for slot {slot}"));
            }
            partition.edge_ids.get(slot).set(EdgeIdEntry { hash, source, sid });
            partition.by_edge_id.insert(&mut book.turn, hash, slot);
        }
        reader.end()
    }

    /// Makes the index of edges and answers what there is, if rows and nodes are as many.
    pub fn finish(self) -> Result<Rebuilt, String> {
        let vertices = self.rebuilt.tally.vertices;
        if self.vertex_rows as i64 != vertices {
            return Err(format!("there are {} rows of {vertices} vertices", self.vertex_rows));
        }
        let guard = pin();
        let Open { partition, mut book } = self.partition;
        let mut edges = 0;
        partition.rows.for_each_edge(&guard, |_, _| edges += 1);
        partition.by_sid.reserve(&mut book.turn, edges);
        partition.rows.for_each_edge(&guard, |sid, place| {
            partition.by_sid.insert(&mut book.turn, sid_hash(Sid(sid)), place.0);
        });
        Ok(self.rebuilt)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Image, Partition};
    use super::*;
    use crate::{Store, StoreConfig};
    use std::sync::Arc;
    use tidegraph_platform::ManualClock;
    use tidegraph_types::{Cardinality, Edge, GuiHasher, Mutation, PartitionCount, PropertyWrite, Value};

    /// Pages, nodes and edge ids of a small graph of one partition.
    fn chunks() -> [Vec<(u32, Vec<u8>)>; 3] {
        let clock = Arc::new(ManualClock::default());
        let store = Store::new(StoreConfig { partitions: PartitionCount::ONE, ..StoreConfig::new(clock) });
        let hasher = GuiHasher::default();
        let gui = |n: u64| hasher.gui(&format!("v{n}"));
        let mut mutations: Vec<Mutation> = Vec::new();
        for n in 0..9 {
            let value = if n % 2 == 0 { Value::Long(7) } else { Value::string("a text of some length") };
            let write = |cardinality| PropertyWrite { key: Token(5), cardinality, value: value.clone() };
            mutations.push(Mutation::CreateVertex {
                gui: gui(n),
                id: format!("v{n}").into(),
                labels: vec![Token(n as u32 % 3)],
                properties: vec![write(Cardinality::List), write(Cardinality::List)],
            });
        }
        for n in 0..40_u64 {
            let sid = if n == 17 { Sid(1 << 40) } else { Sid(n + 1) };
            let edge = Edge { sid, source: gui(n / 9), target: gui(n % 9), label: Token(n as u32 % 2) };
            let id = (n % 4 == 0).then(|| format!("e{n}").into());
            mutations.push(Mutation::CreateEdge {
                edge,
                id,
                properties: vec![(Token(6), Value::Bool(true))],
            });
        }
        store.apply(Version(1), &mutations);
        store.publish(Version(1));
        let partition = &store.partitions()[0];
        let (mut image, mut out) = (Image::default(), [const { Vec::new() }; 3]);
        for number in 0..partition.page_count() {
            let mut bytes = Vec::new();
            partition.append_page(number, Version(1), &mut image, &mut bytes).unwrap();
            out[0].push((number, bytes));
        }
        let mut bytes = Vec::new();
        partition.append_nodes(0, Version(1), &mut image, &mut bytes);
        out[1].push((0, bytes));
        let mut bytes = Vec::new();
        partition.append_edge_ids(0, Version(1), &mut image, &mut bytes, |_| true);
        out[2].push((0, bytes));
        out
    }

    fn rebuild(chunks: &[Vec<(u32, Vec<u8>)>; 3]) -> Result<(i64, bool), String> {
        let partition = Partition::default();
        let mut rebuild = Rebuild::new(partition.open());
        let mut all = || -> Result<(), Wrong> {
            chunks[0].iter().try_for_each(|(number, bytes)| rebuild.page(*number, bytes))?;
            chunks[1]
                .iter()
                .try_for_each(|(number, bytes)| rebuild.nodes(*number, bytes, |_| true, |_| true))?;
            chunks[2].iter().try_for_each(|(number, bytes)| rebuild.edge_ids(*number, bytes, |_| true))
        };
        all().map_err(|wrong| {
            let longest = chunks.iter().flatten().map(|(_, bytes)| bytes.len()).max();
            assert!(Some(wrong.at) <= longest, "{wrong:?}");
            wrong.reason
        })?;
        let rebuilt = rebuild.finish()?;
        Ok((rebuilt.tally.edges, rebuilt.left == rebuilt.arrived))
    }

    #[test]
    fn chunks_with_right_checksums_and_wrong_bytes_never_panic() {
        let whole = chunks();
        assert_eq!(rebuild(&whole), Ok((40, true)));
        let (mut refused, mut taken) = (0, 0);
        for kind in 0..3 {
            for chunk in 0..whole[kind].len() {
                let length = whole[kind][chunk].1.len();
                for at in 0..length {
                    for change in [1, 0x80, 0xff] {
                        let mut damaged = whole.clone();
                        damaged[kind][chunk].1[at] ^= change;
                        match rebuild(&damaged) {
                            Ok(_) => taken += 1,
                            Err(_) => refused += 1,
                        }
                    }
                    let mut damaged = whole.clone();
                    damaged[kind][chunk].1.truncate(at);
                    assert!(rebuild(&damaged).is_err(), "cut at {at} of {length}");
                }
            }
        }
        // Another number or letter is as good as the one that was there.
        assert!(refused > 500 && taken > 500, "{refused} {taken}");
        for number in [1, 3, u32::MAX] {
            let mut damaged = whole.clone();
            damaged[0][0].0 = number;
            assert!(rebuild(&damaged).is_err());
            damaged = whole.clone();
            damaged[1][0].0 = number;
            damaged[2][0].0 = number;
            assert_eq!(rebuild(&damaged).is_ok(), number < 10);
        }
    }
}

//! Groups of nodes and of edge ids of version 2, as [`crate::partition::Image`] writes them.
//!
//! A group begins with 16 bytes that hold one bit for each of its 128 slots. Columns of the records that are there
//! follow, little-endian:
//!
//! | nodes | bytes | edge ids | bytes |
//! |---|---|---|---|
//! | GUIs | 8 each | hashes | 8 each |
//! | places of rows: page, 10 bits of row | 4 each | GUIs of sources | 8 each |
//! | for each, the list out and the list in | … | SIDs | 8 each |
//!
//! A list begins with a head: the number of entries × 4, plus [`SEVERAL`], plus [`WHOLE`]. A list of one label then
//! has the label; a list of several has the number of runs, and a label and a length for each. The least SID follows
//! unless SIDs are whole. All of these are varints. Two columns end the list: neighbours (8 bytes each), and SIDs (8
//! bytes each if whole, else 4 bytes each for the difference to the least). Entries are in order of label and SID.
//!
//! What must never happen: a panic, or an allocation that the bytes do not justify, because of what a chunk says. Its
//! checksum was right, but nothing in it is trusted.

use crate::adjacency::{LARGEST_SID, Link};
use crate::error::Cause;
use crate::partition::{EdgeIdEntry, Misread, Rebuild};
use crate::properties::RowPlace;
use crate::slots::GROUP;
use crossbeam_epoch::pin;
use tidegraph_types::{Gui, Sid, Token};

/// Mark in the head of a list whose SIDs are whole.
pub(crate) const WHOLE: u64 = 1;
/// Mark in the head of a list of several labels.
pub(crate) const SEVERAL: u64 = 2;

/// Bits of a group, one for each slot.
pub(crate) type Bits = u128;
const _: () = assert!(GROUP == Bits::BITS);

struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    fn misread(&self, reason: impl Into<Cause>) -> Misread {
        Misread { at: self.at, reason: reason.into() }
    }

    fn wrong<T>(&self, reason: impl Into<Cause>) -> Result<T, Misread> {
        Err(self.misread(reason))
    }

    /// Takes `count` numbers of `N` bytes each.
    fn column<const N: usize>(&mut self, count: usize, what: &str) -> Result<&'b [[u8; N]], Misread> {
        let length = count.checked_mul(N);
        let taken = length.and_then(|length| self.bytes.get(self.at..)?.get(..length));
        let Some(taken) = taken else { return self.wrong(format!("{count} {what} do not fit")) };
        self.at += taken.len();
        Ok(taken.as_chunks::<N>().0)
    }

    fn bits(&mut self) -> Result<Bits, Misread> {
        let bits = self.column::<16>(1, "groups of bits")?;
        Ok(Bits::from_le_bytes(bits[0]))
    }

    fn varint(&mut self) -> Result<u64, Misread> {
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

    fn token(&mut self) -> Result<Token, Misread> {
        match u32::try_from(self.varint()?) {
            Ok(token) => Ok(Token(token)),
            Err(_) => self.wrong("a label has more than 32 bits"),
        }
    }

    /// Reads the entries of a list, in order, into `links`.
    fn list(&mut self, links: &mut Vec<Link>) -> Result<(), Misread> {
        links.clear();
        let head = self.varint()?;
        let count = (head >> 2) as usize;
        if count == 0 {
            return if head == 0 { Ok(()) } else { self.wrong("an empty list has flags") };
        }
        // An entry takes at least 12 bytes, so nothing is allocated for a larger count.
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
        let whole = if head & WHOLE > 0 { self.column::<8>(count, "SIDs")? } else { &[] };
        let above = if head & WHOLE == 0 { self.column::<4>(count, "SIDs")? } else { &[] };
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
            return self.wrong("a list is out of order, or a SID is too large");
        }
        Ok(())
    }

    /// Checks that the group ends here.
    fn end(&self) -> Result<(), Misread> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            more => self.wrong(format!("{more} bytes follow the group")),
        }
    }
}

/// Returns the slots of a group. A number that no slot can have becomes one for which there is no room.
fn slots_of(group: u32, bits: Bits) -> impl Iterator<Item = u32> {
    let first = group.saturating_mul(GROUP);
    (0..GROUP).filter(move |slot| bits >> slot & 1 == 1).map(move |slot| first.saturating_add(slot))
}

/// Reads a group of nodes.
pub(super) fn nodes(group: u32, bytes: &[u8], rebuild: &mut Rebuild<'_>) -> Result<(), Misread> {
    let guard = pin();
    let mut cursor = Cursor { bytes, at: 0 };
    let bits = cursor.bits()?;
    let count = bits.count_ones() as usize;
    let guis = cursor.column::<8>(count, "vertices")?;
    let places = cursor.column::<4>(count, "places")?;
    let guis = guis.iter().map(|gui| Gui(u64::from_le_bytes(*gui)));
    guis.clone().for_each(|gui| rebuild.prefetch(gui, &guard));
    let mut links = Vec::new();
    for ((slot, gui), place) in slots_of(group, bits).zip(guis).zip(places) {
        let place = RowPlace(u32::from_le_bytes(*place));
        let slot = rebuild.vertex(slot, gui, place, &guard).map_err(|reason| cursor.misread(reason))?;
        cursor.list(&mut links)?;
        match slot {
            Some(slot) => rebuild.out_edges(slot, gui, &links),
            None => rebuild.leave_out(links.len()),
        }
        cursor.list(&mut links)?;
        if let Some(slot) = slot {
            rebuild.in_edges(slot, gui, &links);
        }
    }
    rebuild.end_of_nodes();
    cursor.end()
}

/// Reads the vertices of a group of nodes, and calls `each` with the out-edges of each.
pub(super) fn out_edges(bytes: &[u8], each: &mut dyn FnMut(Gui, &[Link])) -> Result<(), Misread> {
    let mut cursor = Cursor { bytes, at: 0 };
    let count = cursor.bits()?.count_ones() as usize;
    let guis = cursor.column::<8>(count, "vertices")?;
    cursor.column::<4>(count, "places")?;
    let mut links = Vec::new();
    for gui in guis {
        cursor.list(&mut links)?;
        each(Gui(u64::from_le_bytes(*gui)), &links);
        cursor.list(&mut links)?;
    }
    cursor.end()
}

/// Reads a group of edge ids.
pub(super) fn edge_ids(group: u32, bytes: &[u8], rebuild: &mut Rebuild<'_>) -> Result<(), Misread> {
    let mut cursor = Cursor { bytes, at: 0 };
    let bits = cursor.bits()?;
    let count = bits.count_ones() as usize;
    let hashes = cursor.column::<8>(count, "hashes")?;
    let sources = cursor.column::<8>(count, "sources")?;
    let sids = cursor.column::<8>(count, "SIDs")?;
    for (index, slot) in slots_of(group, bits).enumerate() {
        let word = |column: &[[u8; 8]]| u64::from_le_bytes(column[index]);
        let entry = EdgeIdEntry { hash: word(hashes), source: Gui(word(sources)), sid: Sid(word(sids)) };
        rebuild.edge_id(slot, entry).map_err(|reason| cursor.misread(reason))?;
    }
    cursor.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::directory::ChunkKind;
    use crate::checkpoint::format::Format;
    use crate::partition::Image;
    use crate::{Store, StoreConfig};
    use std::sync::Arc;
    use tidegraph_platform::ManualClock;
    use tidegraph_types::{
        Cardinality, Edge, GuiHasher, Mutation, PartitionCount, PropertyWrite, Value, Version,
    };

    fn empty() -> Store {
        let clock = Arc::new(ManualClock::default());
        Store::new(StoreConfig { partitions: PartitionCount::ONE, ..StoreConfig::new(clock) })
    }

    /// Returns the pages, nodes and edge ids of a small graph of one partition.
    fn chunks() -> [Vec<(u32, Vec<u8>)>; 3] {
        let store = empty();
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
        let generation = store.newest();
        let partition = &generation.partitions()[0];
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
        let store = empty();
        let generation = store.newest();
        let mut rebuild = Rebuild::new(&generation, 0, None);
        let mut all = || -> Result<(), Misread> {
            for (kind, chunks) in ChunkKind::ALL.into_iter().zip(chunks) {
                for (number, bytes) in chunks {
                    Format::V2.reader().chunk(kind, *number, bytes, &mut rebuild)?;
                }
            }
            Ok(())
        };
        all().map_err(|wrong| {
            let longest = chunks.iter().flatten().map(|(_, bytes)| bytes.len()).max();
            assert!(Some(wrong.at) <= longest, "{wrong:?}");
            wrong.reason.to_string()
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
        // Some damage only turns one valid number or letter into another, and is accepted.
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

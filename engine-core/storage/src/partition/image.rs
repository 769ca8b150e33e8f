//! Encodes a partition as the chunks of a checkpoint while others read and write it.
//!
//! There are three kinds of numbered chunks: property pages (see [`crate::properties`]), groups of nodes with both of
//! their adjacency lists, and groups of edge ids. A chunk contains what a pinned version sees (STO-1) and keeps the
//! places of rows and slots. A change notes its version for the chunk first, so a chunk without a newer note than an
//! earlier checkpoint is unchanged since then.
//!
//! [`crate::checkpoint::format::v2::groups`] describes the bytes of groups.
//!
//! What must never happen: a chunk that mixes versions; a chunk skipped although a version in between changed it.

use super::{EdgeIdEntry, Partition};
use crate::adjacency::{Each, Labels, Link, Links, List, Run};
use crate::checkpoint::format::v2::groups::{Bits, SEVERAL, WHOLE};
use crate::properties::{self, RowOwner};
use crate::slots::GROUP;
use crossbeam_epoch::{Guard, pin};
use std::sync::atomic::Ordering;
use tidegraph_types::{Gui, Sid, Token, Version};
use tidegraph_wire::Error;

/// At or below this length, whole SIDs are no larger than a least SID and differences to it.
const FEW: usize = 2;

/// Counts of a group of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct NodeCounts {
    pub vertices: u32,
    /// Number of out-edges.
    pub edges: u64,
}

/// Encodes chunks; keeps its buffers from chunk to chunk.
#[derive(Default)]
pub(crate) struct Image {
    page: properties::Scratch,
    slots: Vec<u32>,
    guis: Vec<u64>,
    places: Vec<u32>,
    entries: Vec<EdgeIdEntry>,
    list: Columns,
}

/// One adjacency list at a version, as columns.
#[derive(Default)]
struct Columns {
    neighbours: Vec<u64>,
    sids: Vec<Sid>,
    /// Label and end of each run.
    runs: Vec<(Token, usize)>,
    in_order: bool,
}

impl Columns {
    fn clear(&mut self) {
        self.neighbours.clear();
        self.sids.clear();
        self.runs.clear();
        self.in_order = true;
    }

    fn add(&mut self, run: Run<'_>) {
        let before = self.sids.last().copied();
        let start = self.sids.len();
        self.neighbours.extend_from_slice(run.neighbours);
        run.sids.append_to(&mut self.sids);
        let end = self.sids.len();
        match self.runs.last_mut() {
            Some((label, last)) if *label == run.label => {
                self.in_order &= before < self.sids.get(start).copied();
                *last = end;
            }
            last => {
                self.in_order &= last.is_none_or(|(label, _)| *label < run.label);
                self.runs.push((run.label, end));
            }
        }
    }

    fn read(&mut self, links: &Links, list: &List, at: Version, guard: &Guard) {
        self.clear();
        links.read(list, at, Labels::All, 0, guard, &mut Each(|run: Run<'_>| self.add(run)));
        if !self.in_order {
            self.sort();
        }
    }

    /// Sorts entries of the tail among those of the base.
    fn sort(&mut self) {
        let mut links: Vec<Link> = Vec::with_capacity(self.sids.len());
        let mut start = 0;
        for (label, end) in &self.runs {
            links.extend((start..*end).map(|index| Link {
                neighbour: Gui(self.neighbours[index]),
                sid: self.sids[index],
                label: *label,
            }));
            start = *end;
        }
        links.sort_unstable_by_key(|link| (link.label, link.sid));
        self.clear();
        for link in links {
            self.neighbours.push(link.neighbour.0);
            self.sids.push(link.sid);
            match self.runs.last_mut() {
                Some((label, end)) if *label == link.label => *end += 1,
                _ => self.runs.push((link.label, self.sids.len())),
            }
        }
    }

    fn append_to(&self, out: &mut Vec<u8>) {
        let (mut least, mut most) = (u64::MAX, 0);
        for sid in &self.sids {
            (least, most) = (least.min(sid.0), most.max(sid.0));
        }
        let whole = self.sids.len() <= FEW || most - least > u64::from(u32::MAX);
        let mut head = (self.sids.len() as u64) << 2;
        if self.sids.is_empty() {
            return put_varint(0, out);
        }
        head |= if whole { WHOLE } else { 0 };
        match &self.runs[..] {
            [(label, _)] => {
                put_varint(head, out);
                put_varint(u64::from(label.0), out);
            }
            several => {
                put_varint(head | SEVERAL, out);
                put_varint(several.len() as u64, out);
                let mut start = 0;
                for (label, end) in several {
                    put_varint(u64::from(label.0), out);
                    put_varint((end - start) as u64, out);
                    start = *end;
                }
            }
        }
        if !whole {
            put_varint(least, out);
        }
        put_column(self.neighbours.iter().map(|neighbour| neighbour.to_le_bytes()), out);
        if whole {
            put_column(self.sids.iter().map(|sid| sid.0.to_le_bytes()), out);
        } else {
            put_column(self.sids.iter().map(|sid| ((sid.0 - least) as u32).to_le_bytes()), out);
        }
    }
}

/// Appends a number, 7 bits a byte, low bits first. All bytes but the last have the high bit set.
fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_column<const N: usize>(column: impl ExactSizeIterator<Item = [u8; N]>, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + column.len() * N, 0);
    for (to, bytes) in out[start..].as_chunks_mut::<N>().0.iter_mut().zip(column) {
        *to = bytes;
    }
}

fn bits(first: u32, slots: impl Iterator<Item = u32>) -> Bits {
    slots.fold(0, |bits, slot| bits | 1 << (slot - first))
}

impl Partition {
    /// Returns one more than the highest page number.
    pub fn page_count(&self) -> u32 {
        self.rows.end()
    }

    /// Returns the version of the newest change of a page.
    pub fn page_modified(&self, number: u32) -> Version {
        Version(self.rows.modified(number))
    }

    /// Appends a page as a pinned version sees it; appends nothing if the version sees no row of it.
    pub fn append_page(
        &self,
        number: u32,
        at: Version,
        image: &mut Image,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let written = self.rows.append_bytes_at(number, at, &pin(), &mut image.page, out);
        match written {
            Ok(_) => Ok(()),
            Err(properties::ImageError::Value(error)) => Err(error),
            Err(other) => unreachable!("only values can be refused: {other}"),
        }
    }

    /// Returns the number of groups of nodes.
    pub fn node_groups(&self) -> u32 {
        self.nodes.groups()
    }

    /// Returns the version of the newest change of a group of nodes.
    pub fn nodes_modified(&self, group: u32) -> Version {
        self.nodes.modified(group)
    }

    /// Appends a group of nodes as a pinned version sees it; appends nothing if the version sees none of them.
    pub fn append_nodes(&self, group: u32, at: Version, image: &mut Image, out: &mut Vec<u8>) -> NodeCounts {
        let guard = &pin();
        let first = group * GROUP;
        let Image { slots, guis, places, list, .. } = image;
        slots.clear();
        guis.clear();
        places.clear();
        for slot in first..self.nodes.end().min(first.saturating_add(GROUP)) {
            if let Some((gui, place)) = self.placed_at(slot, at, guard) {
                slots.push(slot);
                guis.push(gui.0);
                places.push(place.0);
            }
        }
        let mut counts = NodeCounts { vertices: slots.len() as u32, edges: 0 };
        if slots.is_empty() {
            return counts;
        }
        out.extend(bits(first, slots.iter().copied()).to_le_bytes());
        put_column(guis.iter().map(|gui| gui.to_le_bytes()), out);
        put_column(places.iter().map(|place| place.to_le_bytes()), out);
        for slot in slots {
            let node = self.nodes.get(*slot);
            self.links.prefetch(&node.inward, true);
            list.read(&self.links, &node.out, at, guard);
            counts.edges += list.sids.len() as u64;
            list.append_to(out);
            list.read(&self.links, &node.inward, at, guard);
            list.append_to(out);
        }
        counts
    }

    /// Returns the vertex of a slot and the place of its row, at a pinned version.
    fn placed_at(&self, slot: u32, at: Version, guard: &Guard) -> Option<(Gui, properties::RowPlace)> {
        let node = self.nodes.get(slot);
        loop {
            let gui = node.gui();
            let place = node.row.get()?;
            // If the row or the slot was reused meanwhile, the node has new content.
            if let Ok(place) = self.rows.place_at(RowOwner::Vertex(gui), place, at, guard) {
                return place.map(|place| (gui, place));
            }
            std::hint::spin_loop();
        }
    }

    /// Returns the number of groups of edge ids.
    pub fn edge_id_groups(&self) -> u32 {
        self.edge_ids.groups()
    }

    /// Returns the version of the newest change of a group of edge ids.
    pub fn edge_ids_modified(&self, group: u32) -> Version {
        self.edge_ids.modified(group)
    }

    /// Appends a group of edge ids as a pinned version sees it; appends nothing if the version sees none of them.
    /// `is_there` returns whether the version sees an edge; it is called only if some edges of the group have ended
    /// or are newer.
    pub fn append_edge_ids(
        &self,
        group: u32,
        at: Version,
        image: &mut Image,
        out: &mut Vec<u8>,
        is_there: impl Fn(&EdgeIdEntry) -> bool,
    ) {
        // Read before the entries: an entry that ended by the version is counted, or free already.
        let ended = match self.edge_ids_ended.capacity() {
            0 => 0,
            _ => self.edge_ids_ended.get(group as usize).load(Ordering::Acquire),
        };
        let first = group * GROUP;
        let (slots, entries) = (&mut image.slots, &mut image.entries);
        slots.clear();
        entries.clear();
        for slot in first..self.edge_ids.end().min(first.saturating_add(GROUP)) {
            let entry = self.edge_ids.get(slot).get();
            if !entry.is_free() {
                slots.push(slot);
                entries.push(entry);
            }
        }
        // Read after the entries: one that was added to the group meanwhile belongs to a newer version.
        if ended > 0 || self.edge_ids.modified(group) > at {
            let mut there = entries.iter().map(&is_there);
            slots.retain(|_| there.next().unwrap_or(false));
            drop(there);
            entries.retain(&is_there);
        }
        if entries.is_empty() {
            return;
        }
        out.extend(bits(first, slots.iter().copied()).to_le_bytes());
        put_column(entries.iter().map(|entry| entry.hash.to_le_bytes()), out);
        put_column(entries.iter().map(|entry| entry.source.0.to_le_bytes()), out);
        put_column(entries.iter().map(|entry| entry.sid.0.to_le_bytes()), out);
    }
}

//! A partition as the chunks of a checkpoint, while it is read and written.
//!
//! Three kinds of chunks, each with a number: property pages (see [`crate::properties`]), groups of nodes with both of
//! their adjacency lists, and groups of edge ids. A chunk says what a pinned version sees, and keeps the places of rows
//! and slots. What changes a chunk notes its version first; so what has no newer note than an earlier checkpoint is as
//! it was there.
//!
//! The bytes of groups are described in [`crate::checkpoint::format::v2::groups`].
//!
//! What must never happen: a chunk that mixes versions; one that is left out though a version in between changed it.

use super::{EdgeIdEntry, Partition};
use crate::adjacency::{Each, Labels, Link, Links, List, Run};
use crate::checkpoint::format::v2::groups::{Bits, SEVERAL, WHOLE};
use crate::properties::{self, Owner};
use crate::slots::GROUP;
use crossbeam_epoch::{Guard, pin};
use std::sync::atomic::Ordering;
use tidegraph_types::{Gui, Sid, Token, Version};
use tidegraph_wire::Error;

/// At or below this length, whole SIDs are no larger than a least SID and differences to it.
const FEW: usize = 2;

/// What a group of nodes holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct NodeCounts {
    pub vertices: u32,
    /// Out-edges.
    pub edges: u64,
}

/// Writes chunks; what it needs for that is kept from chunk to chunk.
#[derive(Default)]
pub(crate) struct Image {
    page: properties::Scratch,
    slots: Vec<u32>,
    guis: Vec<u64>,
    places: Vec<u32>,
    entries: Vec<EdgeIdEntry>,
    list: Columns,
}

/// One list, as it is read.
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

    /// Entries that came later stand behind the settled ones.
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

/// Seven bits a byte, the low ones first; all but the last byte have the high bit.
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
    /// How many numbers of pages there are.
    pub fn page_count(&self) -> u32 {
        self.rows.end()
    }

    /// Version of the newest change of a page.
    pub fn page_modified(&self, number: u32) -> Version {
        Version(self.rows.modified(number))
    }

    /// Appends a page as a pinned version sees it; nothing if it sees no row of it.
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

    /// How many groups of nodes there are.
    pub fn node_groups(&self) -> u32 {
        self.nodes.groups()
    }

    /// Version of the newest change of a group of nodes.
    pub fn nodes_modified(&self, group: u32) -> Version {
        self.nodes.modified(group)
    }

    /// Appends a group of nodes as a pinned version sees it; nothing if it sees none of them.
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

    /// The vertex of a slot and the place of its row, at a pinned version.
    fn placed_at(&self, slot: u32, at: Version, guard: &Guard) -> Option<(Gui, properties::Place)> {
        let node = self.nodes.get(slot);
        loop {
            let gui = node.gui();
            let place = node.row.get()?;
            // Where the row or the slot has gone to somebody else meanwhile, the node says something new.
            if let Ok(place) = self.rows.place_at(Owner::Vertex(gui), place, at, guard) {
                return place.map(|place| (gui, place));
            }
            std::hint::spin_loop();
        }
    }

    /// How many groups of edge ids there are.
    pub fn edge_id_groups(&self) -> u32 {
        self.edge_ids.groups()
    }

    /// Version of the newest change of a group of edge ids.
    pub fn edge_ids_modified(&self, group: u32) -> Version {
        self.edge_ids.modified(group)
    }

    /// Appends a group of edge ids as a pinned version sees it; nothing if it sees none of them. `is_there` tells whether the
    /// version sees an edge; it is asked only where some have ended or are newer.
    pub fn append_edge_ids(
        &self,
        group: u32,
        at: Version,
        image: &mut Image,
        out: &mut Vec<u8>,
        is_there: impl Fn(&EdgeIdEntry) -> bool,
    ) {
        // Before the entries: what ended by the version is counted, or free already.
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
        // After them: what was added to the group meanwhile is of a newer version.
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

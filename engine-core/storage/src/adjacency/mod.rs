//! Adjacency: the edges of one vertex in one direction, contiguous.
//!
//! A list takes 24 bytes inside the vertex's node: empty, one entry inline (no allocation, no further cache miss), a
//! few entries in one allocation, or a [`Hub`] with entries grouped by label. Entries carry a version stamp
//! ([`crate::stamps`]); settled ones cost readers one comparison with zero.
//!
//! Small lists are always read whole, so their order may change; hubs are read in pages and keep theirs.
//!
//! What must never happen: an entry that a kept version can see is moved past a reader's cursor or removed.

mod hub;

pub(crate) use hub::{Hub, visible};

use crate::stamps::{SETTLED, Stamps};
use thin_vec::ThinVec;
use tidegraph_types::{Gui, Sid, Token, Version};

/// Number of entries past which a list becomes a hub. Readers note which entries pass in one word of 64 bits.
pub(crate) const HUB_DEGREE: usize = 64;

/// A byte that is always zero: tells the compiler that the other 255 values are free to mark the other variants of
/// [`Adjacency`], so that the inline entry costs nothing.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Zero {
    Zero = 0,
}

/// One edge seen from one end. SIDs take 56 bits here: ten million a second for two hundred years.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Entry {
    neighbour: u64,
    sid_low: u32,
    sid_mid: u16,
    sid_high: u8,
    zero: Zero,
    label: Token,
    stamp: u32,
}

impl Entry {
    pub fn new(neighbour: Gui, sid: Sid, label: Token, stamp: u32) -> Self {
        debug_assert!(sid.0 >> 56 == 0, "sid {sid} needs more than 56 bits");
        Self {
            neighbour: neighbour.0,
            sid_low: sid.0 as u32,
            sid_mid: (sid.0 >> 32) as u16,
            sid_high: (sid.0 >> 48) as u8,
            zero: Zero::Zero,
            label,
            stamp,
        }
    }

    #[inline]
    pub fn sid(&self) -> Sid {
        Sid(u64::from(self.sid_low) | u64::from(self.sid_mid) << 32 | u64::from(self.sid_high) << 48)
    }

    #[inline]
    pub fn neighbour(&self) -> Gui {
        Gui(self.neighbour)
    }

    #[inline]
    pub fn label(&self) -> Token {
        self.label
    }

    #[inline]
    pub fn stamp(&self) -> u32 {
        self.stamp
    }

    #[inline]
    pub fn link(&self) -> Link {
        Link { neighbour: self.neighbour(), sid: self.sid(), label: self.label, stamp: self.stamp }
    }
}

/// One edge seen from one end, as it is handed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub neighbour: Gui,
    pub sid: Sid,
    pub label: Token,
    pub stamp: u32,
}

/// What became of an entry that was to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// It is kept for older versions and has to be settled later.
    Kept,
    /// Nobody could see it yet: it is gone.
    Gone,
}

/// The list. See the module.
#[derive(Debug, Default)]
pub(crate) enum Adjacency {
    #[default]
    Empty,
    One(Entry),
    Few(ThinVec<Entry>),
    Hub(Box<Hub>),
}

const _: () = assert!(size_of::<Adjacency>() == 24);

impl Adjacency {
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// The entries of a list that is not a hub.
    #[inline]
    pub fn entries(&self) -> &[Entry] {
        match self {
            Self::One(entry) => std::slice::from_ref(entry),
            Self::Few(entries) => entries,
            Self::Empty | Self::Hub(_) => &[],
        }
    }

    /// Asks the processor to fetch what lies outside the node.
    #[inline]
    pub fn prefetch(&self) {
        match self {
            // The address alone: reading the length would be the very miss that this is to hide.
            Self::Few(entries) => crate::prefetch::address(entries.as_ptr()),
            Self::Hub(hub) => crate::prefetch::line(&**hub),
            Self::Empty | Self::One(_) => {}
        }
    }

    /// Asks for the rest of a list whose first line is there already.
    #[inline]
    pub fn prefetch_rest(&self) {
        if let Self::Few(entries) = self {
            const LINE: usize = 64;
            let first: *const u8 = entries.as_ptr().cast();
            for offset in (LINE..entries.len() * size_of::<Entry>()).step_by(LINE) {
                crate::prefetch::address(first.wrapping_add(offset));
            }
        }
    }

    /// Adds an entry with a stamp made at `version`.
    pub fn push(&mut self, link: Link, version: Version, stamps: &Stamps) {
        let Link { neighbour, sid, label, stamp } = link;
        let entry = Entry::new(neighbour, sid, label, stamp);
        match self {
            Self::Empty => *self = Self::One(entry),
            Self::One(first) => {
                let mut entries = ThinVec::with_capacity(3);
                entries.push(*first);
                entries.push(entry);
                *self = Self::Few(entries);
            }
            Self::Few(entries) if entries.len() < HUB_DEGREE => entries.push(entry),
            Self::Few(entries) => {
                let mut hub = Hub::from_entries(entries, stamps);
                hub.push(link, version);
                *self = Self::Hub(Box::new(hub));
            }
            Self::Hub(hub) => hub.push(link, version),
        }
    }

    /// The entry of an edge, dead ones left out.
    pub fn find(&self, sid: Sid) -> Option<Link> {
        match self {
            Self::Hub(hub) => hub.find(sid),
            list => list.entries().iter().find(|entry| entry.sid() == sid).map(Entry::link),
        }
    }

    /// Ends the entry of an edge at `version`; `None` if there is no live one.
    pub fn end(&mut self, sid: Sid, version: Version, stamps: &mut Stamps) -> Option<Ended> {
        if let Self::Hub(hub) = self {
            return hub.end(sid, version, stamps);
        }
        let entry = match self {
            Self::One(entry) => Some(entry),
            Self::Few(entries) => entries.iter_mut().find(|entry| entry.sid() == sid),
            Self::Empty | Self::Hub(_) => None,
        }?;
        if entry.sid() != sid {
            return None;
        }
        if entry.stamp != SETTLED {
            let stamp = stamps.get(entry.stamp);
            if !stamp.live() {
                return None;
            }
            if stamp.begin == version {
                self.retain(|entry| entry.sid() != sid);
                return Some(Ended::Gone);
            }
        }
        entry.stamp = stamps.ended(entry.stamp, version);
        Some(Ended::Kept)
    }

    /// Settles what no version below `oldest` is needed for any more: drops ended entries, frees live ones of stamps.
    pub fn settle(&mut self, oldest: Version, stamps: &Stamps) {
        match self {
            Self::Hub(hub) => {
                hub.settle(oldest, stamps);
                if hub.is_empty() {
                    *self = Self::Empty;
                }
            }
            _ => self.retain(|entry| {
                if entry.stamp == SETTLED {
                    return true;
                }
                let stamp = stamps.get(entry.stamp);
                if stamp.live() && stamp.begin <= oldest {
                    entry.stamp = SETTLED;
                }
                stamp.end > oldest
            }),
        }
    }

    fn retain(&mut self, mut keep: impl FnMut(&mut Entry) -> bool) {
        match self {
            Self::One(entry) => {
                if !keep(entry) {
                    *self = Self::Empty;
                }
            }
            Self::Few(entries) => {
                let before = entries.len();
                entries.retain_mut(keep);
                match entries.len() {
                    0 => *self = Self::Empty,
                    1 => *self = Self::One(entries[0]),
                    now if now < before && now * 4 < entries.capacity() => entries.shrink_to_fit(),
                    _ => {}
                }
            }
            Self::Empty | Self::Hub(_) => {}
        }
    }

    /// Calls `visit` for every entry that is visible at a version.
    pub fn for_each_visible(&self, at: Version, stamps: &Stamps, mut visit: impl FnMut(Link)) {
        match self {
            Self::Hub(hub) => hub.for_each_visible(at, stamps, visit),
            list => {
                for entry in list.entries() {
                    if stamps.visible(entry.stamp, at) {
                        visit(entry.link());
                    }
                }
            }
        }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Empty | Self::One(_) => 0,
            Self::Few(entries) => 16 + entries.capacity() * size_of::<Entry>(),
            Self::Hub(hub) => size_of::<Hub>() + hub.bytes(),
        }
    }
}

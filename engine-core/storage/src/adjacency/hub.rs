//! Adjacency of a vertex with many edges: one group of entries for each label, an index by SID, a queue of what is to
//! be settled.
//!
//! Every entry has a *sequence number* from one counter of the hub; entries of a group stand in its order and never
//! change it, so that a reader can go on after the last entry that it saw whatever was added or dropped in between.
//! Appending, ending and finding an edge take constant time (finding: a binary search at worst); settling takes time
//! for what changed, not for the degree. Counting at a version looks only at what is not settled.
//!
//! What must never happen: two live entries with one SID; an entry that changes its place relative to another.

use super::{Ended, Entry, Link};
use crate::slot_index::SlotIndex;
use crate::stamps::{HIGHEST, SETTLED, Stamps};
use crate::turn::Turn;
use std::collections::VecDeque;
use tidegraph_types::{Gui, Sid, Token, Version};

/// Stamp of an entry that nobody can see, before compaction drops it.
const DEAD: u32 = HIGHEST + 1;
/// Past this sequence number the entries are numbered anew (a scan cursor has 32 bits for it).
const LAST_SEQUENCE: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
pub(crate) struct HubEntry {
    pub neighbour: Gui,
    pub sid: Sid,
    pub sequence: u32,
    pub stamp: u32,
}

#[derive(Debug)]
pub(crate) struct Group {
    pub label: Token,
    entries: Vec<HubEntry>,
    dead: u32,
}

/// A run of entries of one group that one version made, or one entry that it ended.
#[derive(Debug)]
struct Pending {
    version: Version,
    label: Token,
    from: u32,
    to: u32,
    ended: bool,
}

/// See the module.
pub(crate) struct Hub {
    groups: Vec<Group>,
    by_sid: SlotIndex,
    turn: Turn,
    pending: VecDeque<Pending>,
    next_sequence: u32,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("groups", &self.groups).finish_non_exhaustive()
    }
}

fn mix(sid: Sid) -> u64 {
    sid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

impl Group {
    fn new(label: Token) -> Self {
        Self { label, entries: Vec::new(), dead: 0 }
    }

    /// Index of the first entry whose sequence number is not below the given one.
    fn position(&self, sequence: u32) -> usize {
        // Groups that were never mixed with others are dense: the guess is right then.
        let Some(first) = self.entries.first() else { return 0 };
        if sequence <= first.sequence {
            return 0;
        }
        let guess = (sequence - first.sequence) as usize;
        if self.entries.get(guess).is_some_and(|entry| entry.sequence == sequence) {
            return guess;
        }
        let end = self.entries.len().min(guess + 1);
        self.entries[..end].partition_point(|entry| entry.sequence < sequence)
    }

    fn get_mut(&mut self, sequence: u32) -> Option<&mut HubEntry> {
        let position = self.position(sequence);
        self.entries.get_mut(position).filter(|entry| entry.sequence == sequence)
    }

    /// Entries from a sequence number on, dead ones among them.
    fn from(&self, sequence: u32) -> &[HubEntry] {
        &self.entries[self.position(sequence)..]
    }

    /// Entries from a position on, dead ones among them.
    #[inline]
    pub fn tail(&self, position: usize) -> &[HubEntry] {
        self.entries.get(position..).unwrap_or(&[])
    }

    fn live(&self) -> usize {
        self.entries.len() - self.dead as usize
    }

    fn compact_if_worth_it(&mut self) {
        if self.dead as usize * 2 > self.entries.len() {
            self.entries.retain(|entry| entry.stamp != DEAD);
            self.dead = 0;
            if self.entries.capacity() > 4 * self.entries.len().max(16) {
                self.entries.shrink_to(2 * self.entries.len());
            }
        }
    }
}

/// Whether an entry is visible. Kept out of [`Stamps`], which knows nothing of dead entries.
#[inline]
pub(crate) fn visible(stamp: u32, at: Version, stamps: &Stamps) -> bool {
    stamp == SETTLED || (stamp != DEAD && stamps.get(stamp).visible(at))
}

impl Hub {
    /// Takes over the entries of a small list.
    pub fn from_entries(entries: &[Entry], stamps: &Stamps) -> Self {
        let mut hub = Self {
            groups: Vec::new(),
            by_sid: SlotIndex::default(),
            turn: Turn::new(),
            pending: VecDeque::new(),
            next_sequence: 0,
        };
        // The queue has to be in order of versions.
        let mut unsettled = Vec::new();
        for entry in entries {
            let link = entry.link();
            let sequence = hub.append(link);
            if link.stamp != SETTLED {
                let stamp = stamps.get(link.stamp);
                unsettled.push((stamp.begin, link.label, sequence, false));
                if !stamp.live() {
                    unsettled.push((stamp.end, link.label, sequence, true));
                }
            }
        }
        unsettled.sort_unstable();
        for (version, label, sequence, ended) in unsettled {
            hub.pending.push_back(Pending { version, label, from: sequence, to: sequence, ended });
        }
        hub
    }

    fn group_index(&self, label: Token) -> Result<usize, usize> {
        self.groups.binary_search_by_key(&label, |group| group.label)
    }

    /// The group of a label.
    pub fn group(&self, label: Token) -> Option<&Group> {
        self.group_index(label).ok().map(|index| &self.groups[index])
    }

    /// All groups in order of their labels.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn append(&mut self, link: Link) -> u32 {
        let Link { neighbour, sid, label, stamp } = link;
        if self.next_sequence == LAST_SEQUENCE {
            self.renumber();
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let index = self.group_index(label).unwrap_or_else(|index| {
            self.groups.insert(index, Group::new(label));
            index
        });
        self.groups[index].entries.push(HubEntry { neighbour, sid, sequence, stamp });
        self.by_sid.insert(&mut self.turn, mix(sid), sequence);
        sequence
    }

    /// Group and position of the entry after the one with sequence number `after - 1`; the start for 0. `None` if
    /// there is no such entry, which no cursor that came from here names.
    pub fn after(&self, after: u32) -> Option<(usize, usize)> {
        let Some(last) = after.checked_sub(1) else { return Some((0, 0)) };
        self.groups.iter().enumerate().find_map(|(index, group)| {
            let position = group.position(last);
            let there = group.entries.get(position).is_some_and(|entry| entry.sequence == last);
            there.then_some((index, position + 1))
        })
    }

    /// Adds an entry with a stamp made at `version`.
    pub fn push(&mut self, link: Link, version: Version) {
        let Link { label, stamp, .. } = link;
        let sequence = self.append(link);
        if stamp == SETTLED {
            return;
        }
        if let Some(last) = self.pending.back_mut()
            && (last.version, last.label, last.to + 1, last.ended) == (version, label, sequence, false)
        {
            last.to = sequence;
            return;
        }
        self.pending.push_back(Pending { version, label, from: sequence, to: sequence, ended: false });
    }

    fn locate(&self, sid: Sid) -> Option<(usize, usize)> {
        let mut found = None;
        self.by_sid.find(mix(sid), &crossbeam_epoch::pin(), |sequence| {
            found = self.groups.iter().enumerate().find_map(|(index, group)| {
                let position = group.position(sequence);
                group
                    .entries
                    .get(position)
                    .is_some_and(|entry| entry.sequence == sequence && entry.sid == sid)
                    .then_some((index, position))
            });
            found.is_some()
        });
        found
    }

    pub fn find(&self, sid: Sid) -> Option<Link> {
        let (group, position) = self.locate(sid)?;
        let group = &self.groups[group];
        let entry = group.entries[position];
        Some(Link { neighbour: entry.neighbour, sid, label: group.label, stamp: entry.stamp })
    }

    pub fn end(&mut self, sid: Sid, version: Version, stamps: &mut Stamps) -> Option<Ended> {
        let (index, position) = self.locate(sid)?;
        let group = &mut self.groups[index];
        let label = group.label;
        let entry = &mut group.entries[position];
        let sequence = entry.sequence;
        if entry.stamp != SETTLED {
            let stamp = stamps.get(entry.stamp);
            if !stamp.live() {
                return None;
            }
            if stamp.begin == version {
                entry.stamp = DEAD;
                self.bury(index, sid, sequence);
                return Some(Ended::Gone);
            }
        }
        entry.stamp = stamps.ended(entry.stamp, version);
        self.pending.push_back(Pending { version, label, from: sequence, to: sequence, ended: true });
        Some(Ended::Kept)
    }

    /// Accounts for an entry whose stamp was just set to `DEAD`.
    fn bury(&mut self, group: usize, sid: Sid, sequence: u32) {
        self.by_sid.remove(&mut self.turn, mix(sid), sequence);
        let group = &mut self.groups[group];
        group.dead += 1;
        group.compact_if_worth_it();
    }

    pub fn settle(&mut self, oldest: Version, stamps: &Stamps) {
        while let Some(next) = self.pending.front().filter(|next| next.version <= oldest) {
            let (label, from, to, ended) = (next.label, next.from, next.to, next.ended);
            self.pending.pop_front();
            let Ok(index) = self.group_index(label) else { continue };
            let group = &mut self.groups[index];
            if ended {
                let Some(entry) = group.get_mut(from) else { continue };
                entry.stamp = DEAD;
                let sid = entry.sid;
                self.bury(index, sid, from);
            } else {
                let start = group.position(from);
                for entry in &mut group.entries[start..] {
                    if entry.sequence > to {
                        break;
                    }
                    // One that ended later keeps its stamp until that is settled.
                    if entry.stamp != DEAD && entry.stamp != SETTLED && stamps.get(entry.stamp).live() {
                        entry.stamp = SETTLED;
                    }
                }
            }
        }
        if self.pending.is_empty() && self.pending.capacity() > 64 {
            self.pending.shrink_to(16);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.groups.iter().all(|group| group.live() == 0)
    }

    /// Calls `visit` for every entry that is visible at a version.
    pub fn for_each_visible(&self, at: Version, stamps: &Stamps, mut visit: impl FnMut(Link)) {
        for group in &self.groups {
            for entry in &group.entries {
                if visible(entry.stamp, at, stamps) {
                    visit(Link {
                        neighbour: entry.neighbour,
                        sid: entry.sid,
                        label: group.label,
                        stamp: entry.stamp,
                    });
                }
            }
        }
    }

    /// Number of entries that are visible at a version, of these labels or of all.
    pub fn degree(&self, at: Version, labels: Option<&[Token]>) -> u64 {
        let wanted = |label: Token| labels.is_none_or(|labels| labels.contains(&label));
        let mut count: u64 =
            self.groups.iter().filter(|group| wanted(group.label)).map(|group| group.live() as u64).sum();
        for pending in &self.pending {
            if !wanted(pending.label) {
                continue;
            }
            let Some(group) = self.group(pending.label) else { continue };
            let entries = group
                .from(pending.from)
                .iter()
                .take_while(|entry| entry.sequence <= pending.to)
                .filter(|entry| entry.stamp != DEAD);
            if pending.ended {
                // Made and ended by now: not visible. Made later: the run that made it counts it.
                if pending.version <= at {
                    count -= entries.count() as u64;
                }
            } else if pending.version > at {
                count -= entries.count() as u64;
            }
        }
        count
    }

    /// Gives every entry a new sequence number. A cursor of before may then miss or repeat rows; it happens once in
    /// four billion appends to one vertex.
    fn renumber(&mut self) {
        let mut new_of_old = rustc_hash::FxHashMap::default();
        let mut next = 0;
        self.by_sid = SlotIndex::default();
        for group in &mut self.groups {
            group.entries.retain(|entry| entry.stamp != DEAD);
            group.dead = 0;
            for entry in &mut group.entries {
                new_of_old.insert(entry.sequence, next);
                entry.sequence = next;
                self.by_sid.insert(&mut self.turn, mix(entry.sid), next);
                next += 1;
            }
        }
        self.next_sequence = next;
        let runs = std::mem::take(&mut self.pending);
        for run in runs {
            // Runs fall apart into single entries: neighbours in number need no longer be neighbours in time.
            for old in run.from..=run.to {
                if let Some(&new) = new_of_old.get(&old) {
                    self.pending.push_back(Pending { from: new, to: new, ..run });
                }
            }
        }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.groups
            .iter()
            .map(|group| size_of::<Group>() + group.entries.capacity() * size_of::<HubEntry>())
            .sum::<usize>()
            + self.by_sid.bytes()
            + self.pending.capacity() * size_of::<Pending>()
    }
}

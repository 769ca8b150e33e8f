//! The choice of the shortest walks between two vertices, as they are found in the order of their lengths.

use crate::{Context, Result};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use tidegraph_plan::{Length, Selection};
use tidegraph_types::Gui;

/// Bytes to charge for an entry of a map.
const ENTRY_BYTES: usize = 48;

/// A row of the input and a vertex.
type Key = (u32, Gui);

/// The walks chosen so far.
pub(super) struct Chosen<'p> {
    pub(super) selection: &'p Selection,
    /// Whether only walks that reach each vertex first can be chosen, if they do not return to their start.
    first_only: bool,
    /// Whether walks may have an edge twice.
    repeats: bool,
    /// For each end of walks: the number of walks or lengths chosen, and the last length.
    ends: FxHashMap<Key, (u32, u32)>,
    /// The number of repetitions that first reached a vertex.
    reached: FxHashMap<Key, u32>,
    charged: usize,
}

impl<'p> Chosen<'p> {
    /// `steps`: edges of a repetition.
    pub(super) fn new(selection: &'p Selection, length: Length, steps: usize, repeats: bool) -> Self {
        let first_only = selection.count == 1 && selection.accept.is_none() && steps == 1 && length.min <= 1;
        let (ends, reached) = (FxHashMap::default(), FxHashMap::default());
        Self { selection, first_only, repeats, ends, reached, charged: 0 }
    }

    /// Whether no further walk of this length, or a longer one, to this end is chosen.
    pub(super) fn is_full(&self, end: Key, length: u32) -> bool {
        self.ends.get(&end).is_some_and(|(count, last)| {
            *count >= self.selection.count && !(self.selection.groups && *last == length)
        })
    }

    /// Chooses a walk, if there is room; walks come in the order of their lengths.
    pub(super) fn take(&mut self, end: Key, length: u32, ctx: &Context<'_>) -> Result<bool> {
        if self.is_full(end, length) {
            return Ok(false);
        }
        match self.ends.entry(end) {
            Entry::Vacant(entry) => {
                ctx.memory.charge(ENTRY_BYTES)?;
                self.charged += ENTRY_BYTES;
                entry.insert((1, length));
            }
            Entry::Occupied(mut entry) => {
                let (count, last) = entry.get_mut();
                if !(self.selection.groups && *last == length) {
                    *count += 1;
                }
                *last = length;
            }
        }
        Ok(true)
    }

    /// Whether a walk of this length that reaches a vertex can become part of a chosen one. `leaves`: chosen walks end
    /// elsewhere than they start.
    pub(super) fn reach(
        &mut self,
        vertex: Key,
        length: u32,
        leaves: bool,
        ctx: &Context<'_>,
    ) -> Result<bool> {
        // A walk without direction back to its start is closed by two walks that meet at a vertex, unless it may take an
        // edge back.
        if !self.first_only || !(leaves || self.selection.directed || self.repeats) {
            return Ok(true);
        }
        match self.reached.entry(vertex) {
            Entry::Vacant(entry) => {
                ctx.memory.charge(ENTRY_BYTES)?;
                self.charged += ENTRY_BYTES;
                entry.insert(length);
                Ok(true)
            }
            Entry::Occupied(entry) => Ok(self.selection.groups && *entry.get() == length),
        }
    }

    /// Forgets all walks.
    pub(super) fn clear(&mut self, ctx: &Context<'_>) {
        self.ends.clear();
        self.reached.clear();
        ctx.memory.release(std::mem::take(&mut self.charged));
    }
}

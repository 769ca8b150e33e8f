//! The states of a search and how they are linked.

use crate::{Column, Context, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegraph_types::{Edge, Gui};

/// No link, or no end.
pub(super) const NONE: u32 = u32::MAX;
/// Bytes to charge for a state, with its entry in the map and on a waiting list.
const STATE_BYTES: usize = size_of::<State>() + 48;

/// A row of the input, a place in the pattern and a vertex.
pub(super) type Key = (u32, u32, Gui);

/// A row of the subplan of a part: number of the chunk, and row in it.
pub(super) type Step = (u32, u32);

pub(super) struct State {
    pub row: u32,
    pub place: u32,
    pub vertex: Gui,
    /// The number of edges of the shortest walk to it.
    pub first: u32,
    /// Its end, if the pattern ends there.
    pub end: u32,
    pub is_start: bool,
    into: u32,
    out: u32,
}

pub(super) struct Link {
    pub from: u32,
    pub to: u32,
    /// Number of edges: 0 to the next part.
    pub weight: u32,
    /// `None` to the next part.
    pub step: Option<Step>,
    pub next_into: u32,
    pub next_out: u32,
}

/// Rows of the subplan of a part.
pub(super) struct Chunk {
    pub steps: Vec<Arc<Column>>,
    pub groups: Vec<Arc<Column>>,
}

impl Chunk {
    /// Returns the edges of a row.
    pub fn edges(&self, row: u32) -> impl Iterator<Item = Edge> {
        self.steps.iter().filter_map(move |column| column.edge(row as usize))
    }
}

#[derive(Default)]
pub(super) struct Space {
    pub states: Vec<State>,
    pub links: Vec<Link>,
    pub chunks: Vec<Chunk>,
    numbers: FxHashMap<Key, u32>,
    /// States by the length of the walks that reach them first, which were not looked at yet.
    waiting: BTreeMap<u32, Vec<u32>>,
    done: FxHashSet<u32>,
    /// Rows whose paths were not all found.
    pub open_rows: usize,
    charged: usize,
}

impl Space {
    pub fn clear(&mut self, ctx: &Context<'_>) {
        ctx.memory.release(self.charged);
        *self = Self::default();
    }

    pub fn charge(&mut self, bytes: usize, ctx: &Context<'_>) -> Result<()> {
        ctx.memory.charge(bytes)?;
        self.charged += bytes;
        Ok(())
    }

    /// Adds the state where the search of a row starts.
    pub fn add_start(&mut self, row: u32, vertex: Gui, ctx: &Context<'_>) -> Result<()> {
        let state = self.add((row, 0, vertex), 0, ctx)?;
        self.states[state as usize].is_start = true;
        self.waiting.entry(0).or_default().push(state);
        self.open_rows += 1;
        Ok(())
    }

    fn add(&mut self, key: Key, first: u32, ctx: &Context<'_>) -> Result<u32> {
        self.charge(STATE_BYTES, ctx)?;
        let number = self.states.len() as u32;
        let (row, place, vertex) = key;
        let state = State { row, place, vertex, first, end: NONE, is_start: false, into: NONE, out: NONE };
        self.states.push(state);
        self.numbers.insert(key, number);
        Ok(number)
    }

    /// Links a state with another one. `length`: edges of the walk to the other one. Returns its number, and whether the walk is
    /// shorter than those before.
    pub fn link(
        &mut self,
        from: u32,
        key: Key,
        length: u32,
        step: Option<Step>,
        ctx: &Context<'_>,
    ) -> Result<(u32, bool)> {
        self.charge(size_of::<Link>(), ctx)?;
        let (to, is_new) = match self.numbers.get(&key) {
            Some(known) => (*known, false),
            None => (self.add(key, length, ctx)?, true),
        };
        let number = self.links.len() as u32;
        let weight = length - self.states[from as usize].first;
        let next_out = std::mem::replace(&mut self.states[from as usize].out, number);
        let state = &mut self.states[to as usize];
        let next_into = std::mem::replace(&mut state.into, number);
        let is_shorter = is_new || length < state.first;
        state.first = state.first.min(length);
        self.links.push(Link { from, to, weight, step, next_into, next_out });
        Ok((to, is_shorter))
    }

    /// Lets a state wait until walks of this length are looked at.
    pub fn wait(&mut self, state: u32, length: u32) {
        self.waiting.entry(length).or_default().push(state);
    }

    /// Returns the waiting states that walks of this length reach first.
    pub fn take_level(&mut self, length: u32) -> Vec<u32> {
        let mut states = self.waiting.remove(&length).unwrap_or_default();
        // Shorter walks may have reached some since.
        states.retain(|state| self.states[*state as usize].first == length);
        states
    }

    /// Returns the least length for which states wait.
    pub fn next_level(&self) -> Option<u32> {
        self.waiting.keys().next().copied()
    }

    /// Returns the row and the vertex of a state.
    pub fn of(&self, state: u32) -> (u32, Gui) {
        let state = &self.states[state as usize];
        (state.row, state.vertex)
    }

    pub fn add_chunk(
        &mut self,
        steps: Vec<Arc<Column>>,
        groups: Vec<Arc<Column>>,
        ctx: &Context<'_>,
    ) -> Result<u32> {
        let bytes = steps.iter().chain(&groups).map(|column| column.bytes()).sum::<usize>();
        self.charge(bytes + size_of::<Chunk>(), ctx)?;
        self.chunks.push(Chunk { steps, groups });
        Ok(self.chunks.len() as u32 - 1)
    }

    /// Returns the first of the links to a state; the next is `next_into`.
    pub fn first_into(&self, state: u32) -> u32 {
        self.states[state as usize].into
    }

    pub fn links_into(&self, state: u32) -> impl Iterator<Item = &Link> {
        let first = self.links.get(self.states[state as usize].into as usize);
        std::iter::successors(first, |link| self.links.get(link.next_into as usize))
    }

    pub fn links_out(&self, state: u32) -> impl Iterator<Item = &Link> {
        let first = self.links.get(self.states[state as usize].out as usize);
        std::iter::successors(first, |link| self.links.get(link.next_out as usize))
    }

    /// Returns the first of the links from a state; the next is `next_out`.
    pub fn first_out(&self, state: u32) -> u32 {
        self.states[state as usize].out
    }

    pub fn is_done(&self, row: u32) -> bool {
        self.done.contains(&row)
    }

    /// Notes that all paths of a row were found.
    pub fn set_done(&mut self, row: u32) {
        self.open_rows -= usize::from(self.done.insert(row));
    }

    /// Returns the number of different edges, which no walk without repetition is longer than.
    pub fn edges(&mut self, ctx: &Context<'_>) -> Result<u32> {
        ctx.memory.ensure(self.links.len() * 16)?;
        let mut different = FxHashSet::default();
        for (chunk, row) in self.links.iter().filter_map(|link| link.step) {
            ctx.spend(1)?;
            different.extend(self.chunks[chunk as usize].edges(row).map(|edge| edge.sid));
        }
        Ok(different.len() as u32)
    }
}

//! All lengths of walks to each state, up to one that grows.
//!
//! Walks of one length to a state are as many as they like; that there is one is known after a step over the links. So a walk
//! that is followed back by lengths never leads to a state from which the start is not reached in the edges that are left.

use super::space::Space;
use crate::{Context, Result};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Bytes to charge for a state.
const STATE_BYTES: usize = 32;
/// Bytes to charge for a length.
const LENGTH_BYTES: usize = 16;

pub(super) struct Lengths {
    /// For each state, the lengths in ascending order.
    of_state: Vec<SmallVec<[u32; 2]>>,
    /// States by lengths that were not noted yet.
    waiting: BTreeMap<u32, Vec<u32>>,
    /// The states of the last length.
    current: Vec<u32>,
    /// Whether a state is of interest; all are beyond the end.
    useful: Vec<bool>,
}

impl Lengths {
    pub fn new(space: &mut Space, ctx: &Context<'_>) -> Result<Self> {
        space.charge(space.states.len() * STATE_BYTES, ctx)?;
        let starts = (0..space.states.len() as u32).filter(|state| {
            let state = &space.states[*state as usize];
            state.is_start && !space.is_done(state.row)
        });
        let waiting = BTreeMap::from([(0, starts.collect())]);
        let of_state = vec![SmallVec::new(); space.states.len()];
        Ok(Self { of_state, waiting, current: vec![], useful: vec![] })
    }

    /// Notes the lengths of all walks up to one length.
    pub fn up_to(space: &mut Space, length: u32, ctx: &Context<'_>) -> Result<Self> {
        let mut lengths = Self::new(space, ctx)?;
        while let Some(next) = lengths.next().filter(|next| *next <= length) {
            ctx.check()?;
            lengths.collect(space, next, ctx)?;
            if next < length {
                lengths.propagate(space, next, ctx)?;
            }
        }
        if lengths.current.first().is_some_and(|state| !lengths.has(*state, length)) {
            lengths.current.clear();
        }
        Ok(lengths)
    }

    /// Looks at some states only from now on.
    pub fn keep(&mut self, useful: &[bool]) {
        self.useful.clear();
        self.useful.extend_from_slice(useful);
    }

    /// Returns the next length to note.
    pub fn next(&self) -> Option<u32> {
        self.waiting.keys().next().copied()
    }

    /// Returns the states that walks of the last length lead to.
    pub fn current(&self) -> &[u32] {
        &self.current
    }

    /// Whether a walk of this length leads to a state.
    pub fn has(&self, state: u32, length: u32) -> bool {
        self.of_state.get(state as usize).is_some_and(|lengths| lengths.binary_search(&length).is_ok())
    }

    /// Notes the states that walks of a length lead to; no shorter length may be missing.
    pub fn collect(&mut self, space: &mut Space, length: u32, ctx: &Context<'_>) -> Result<()> {
        let new = space.states.len() - self.of_state.len();
        space.charge(new * STATE_BYTES, ctx)?;
        self.of_state.resize(space.states.len(), SmallVec::new());
        self.current.clear();
        let mut states = self.waiting.remove(&length).unwrap_or_default();
        while let Some(state) = states.pop() {
            ctx.spend(1)?;
            let of_state = &mut self.of_state[state as usize];
            let is_useful = self.useful.get(state as usize).is_none_or(|useful| *useful);
            if !is_useful || of_state.last() == Some(&length) || space.is_done(space.of(state).0) {
                continue;
            }
            space.charge(LENGTH_BYTES, ctx)?;
            of_state.push(length);
            self.current.push(state);
            states.extend(space.links_out(state).filter(|link| link.weight == 0).map(|link| link.to));
        }
        Ok(())
    }

    /// Lets the states wait that one more repetition leads to from those of the last length.
    pub fn propagate(&mut self, space: &Space, length: u32, ctx: &Context<'_>) -> Result<()> {
        for state in &self.current {
            for link in space.links_out(*state).filter(|link| link.weight > 0) {
                ctx.spend(1)?;
                self.waiting.entry(length + link.weight).or_default().push(link.to);
            }
        }
        ctx.memory.ensure(self.waiting.values().map(|states| 4 * states.len()).sum())
    }
}

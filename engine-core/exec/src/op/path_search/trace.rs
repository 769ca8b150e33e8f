//! Follows links back from an end to the start.

use super::lengths::Lengths;
use super::places::Places;
use super::space::{Link, NONE, Space};
use crate::{Context, Result};
use rustc_hash::FxHashSet;
use tidegraph_types::{Gui, Sid};

/// A path.
pub(super) struct Found {
    pub row: u32,
    /// The state where it ends.
    pub state: u32,
    /// Number of its edges.
    pub length: u32,
    /// The vertex where each part ends.
    pub ends: Vec<Gui>,
    /// Part, chunk and row of each repetition, from the end to the start.
    pub steps: Vec<(u32, u32, u32)>,
}

impl Found {
    /// Makes a path of links, which are given from the end to the start.
    pub fn of(
        space: &mut Space,
        places: &Places,
        state: u32,
        length: u32,
        links: impl Iterator<Item = u32>,
        ctx: &Context<'_>,
    ) -> Result<Self> {
        let (row, vertex) = space.of(state);
        let parts = places.part(places.last() - 1) + 1;
        let bytes = size_of::<Self>() + parts * size_of::<Gui>() + length as usize * 12;
        space.charge(bytes, ctx)?;
        let (mut ends, mut steps) = (vec![vertex; parts], Vec::with_capacity(length as usize));
        for link in links {
            let link = &space.links[link as usize];
            let from = &space.states[link.from as usize];
            let part = places.part(from.place);
            match link.step {
                Some((chunk, row)) => steps.push((part as u32, chunk, row)),
                None => ends[part] = from.vertex,
            }
        }
        Ok(Self { row, state, length, ends, steps })
    }
}

/// Which walks to follow back.
#[derive(Clone, Copy)]
pub(super) enum By<'l> {
    /// The shortest to each state.
    First,
    /// Those of all lengths.
    Lengths(&'l Lengths),
}

impl By<'_> {
    /// Whether a walk of this length leads to a state.
    fn leads(self, space: &Space, state: u32, length: u32) -> bool {
        match self {
            By::First => space.states[state as usize].first == length,
            By::Lengths(lengths) => lengths.has(state, length),
        }
    }
}

/// The edges of a walk.
pub(super) struct Used {
    edges: FxHashSet<Sid>,
    /// Whether no edge may occur twice.
    trail: bool,
}

impl Used {
    pub fn new(trail: bool) -> Self {
        Self { edges: FxHashSet::default(), trail }
    }

    /// Adds the edges of a link. Returns `false`, and adds none, if the walk has one of them already.
    pub fn add(&mut self, space: &Space, link: &Link) -> bool {
        let Some((chunk, row)) = link.step.filter(|_| self.trail) else { return true };
        let edges = || space.chunks[chunk as usize].edges(row).map(|edge| edge.sid);
        if edges().any(|edge| self.edges.contains(&edge)) {
            return false;
        }
        self.edges.extend(edges());
        true
    }

    pub fn remove(&mut self, space: &Space, link: &Link) {
        if let Some((chunk, row)) = link.step.filter(|_| self.trail) {
            for edge in space.chunks[chunk as usize].edges(row) {
                self.edges.remove(&edge.sid);
            }
        }
    }
}

/// A state on the way back.
struct At {
    state: u32,
    /// Edges from the start.
    left: u32,
    /// The next link to follow.
    next: u32,
}

/// What to look for.
pub(super) struct Wanted<'l> {
    pub state: u32,
    pub length: u32,
    /// The largest number of paths.
    pub most: usize,
    pub by: By<'l>,
    pub trail: bool,
}

/// Adds the paths of a length to a state. Returns their number.
pub(super) fn follow(
    space: &mut Space,
    places: &Places,
    wanted: &Wanted<'_>,
    found: &mut Vec<Found>,
    ctx: &Context<'_>,
) -> Result<usize> {
    let Wanted { state, length, most, by, trail } = *wanted;
    let mut used = Used::new(trail);
    let mut way = vec![At { state, left: length, next: space.first_into(state) }];
    let mut links: Vec<u32> = vec![];
    let mut count = 0;
    while let Some(at) = way.last_mut() {
        ctx.spend(1)?;
        if at.left == 0 && space.states[at.state as usize].is_start {
            at.next = NONE;
            let path = Found::of(space, places, state, length, links.iter().copied(), ctx)?;
            found.push(path);
            count += 1;
            if count >= most {
                break;
            }
        }
        let Some(link) = space.links.get(at.next as usize) else {
            way.pop();
            if let Some(link) = links.pop() {
                used.remove(space, &space.links[link as usize]);
            }
            continue;
        };
        let number = std::mem::replace(&mut at.next, link.next_into);
        let Some(left) = at.left.checked_sub(link.weight) else { continue };
        if by.leads(space, link.from, left) && used.add(space, link) {
            links.push(number);
            way.push(At { state: link.from, left, next: space.first_into(link.from) });
        }
    }
    Ok(count)
}

//! Enumerates all paths without repeated edges, if they are few.
//!
//! In a graph that is nearly a tree, paths are about as many as edges; but in one with a cycle, walks of all lengths lead to
//! its vertices. So an end that wants more paths than there are is done sooner this way.

use super::Search;
use super::space::NONE;
use super::trace::{Found, Used};
use crate::{Context, Result};

/// Steps that are tried for each link, and in any case.
const STEPS_PER_LINK: usize = 4;
const LEAST_STEPS: usize = 1 << 16;

impl Search<'_> {
    /// Finds the paths to all ends that want more, in place of those that were found. Returns `false`, and changes nothing, if
    /// that takes too many steps. `useful`: the states from which such ends are reached.
    pub(super) fn enumerate(&mut self, useful: &[bool], ctx: &Context<'_>) -> Result<bool> {
        let mut steps = LEAST_STEPS + STEPS_PER_LINK * self.space.links.len();
        let mut all = vec![];
        let starts: Vec<u32> = (0..self.space.states.len() as u32)
            .filter(|state| self.space.states[*state as usize].is_start && useful[*state as usize])
            .collect();
        for start in starts {
            if !self.walks_from(start, useful, &mut steps, &mut all, ctx)? {
                return Ok(false);
            }
        }
        let open = |found: &Found| self.ends[self.space.states[found.state as usize].end as usize].open;
        self.found.retain(|found| !open(found));
        all.sort_by_key(|found| (found.state, found.length));
        for end in &mut self.ends {
            end.taken = if end.open { 0 } else { end.taken };
        }
        let mut last = (NONE, 0);
        for found in all {
            let end = &mut self.ends[self.space.states[found.state as usize].end as usize];
            let is_same = self.groups && last == (found.state, found.length);
            if !is_same {
                if end.taken >= self.count {
                    continue;
                }
                end.taken += 1;
            }
            last = (found.state, found.length);
            self.found.push(found);
        }
        self.ends.iter_mut().for_each(|end| end.open = false);
        Ok(true)
    }

    /// Adds the paths from one start to ends that want more. Returns `false` if there are no steps left.
    fn walks_from(
        &mut self,
        start: u32,
        useful: &[bool],
        steps: &mut usize,
        all: &mut Vec<Found>,
        ctx: &Context<'_>,
    ) -> Result<bool> {
        let mut used = Used::new(true);
        let mut way = vec![(start, self.space.first_out(start))];
        let mut links: Vec<u32> = vec![];
        let mut length = 0;
        while let Some((_, next)) = way.last_mut() {
            ctx.spend(1)?;
            if *steps == 0 {
                return Ok(false);
            }
            *steps -= 1;
            let Some(link) = self.space.links.get(*next as usize) else {
                way.pop();
                if let Some(link) = links.pop() {
                    let link = &self.space.links[link as usize];
                    used.remove(&self.space, link);
                    length -= link.weight;
                }
                continue;
            };
            let number = std::mem::replace(next, link.next_out);
            let to = link.to;
            if !useful[to as usize] || !used.add(&self.space, link) {
                continue;
            }
            length += link.weight;
            links.push(number);
            way.push((to, self.space.first_out(to)));
            let end = self.space.states[to as usize].end;
            if self.ends.get(end as usize).is_some_and(|end| end.open) {
                *steps = steps.saturating_sub(links.len());
                let path = links.iter().rev().copied();
                all.push(Found::of(&mut self.space, &self.places, to, length, path, ctx)?);
            }
        }
        Ok(true)
    }
}

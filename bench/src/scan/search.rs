//! Breadth-first searches from one vertex along edges of both directions: over the live graph through the APL, and over
//! compressed sparse rows (CSR), as a program without transactions would do. All searches record a parent for
//! each vertex.
//!
//! The baseline is the search of Beamer, Asanović and Patterson ("Direction-optimizing breadth-first search", SC
//! 2012), implemented here with the thresholds of the GAP benchmark suite: from the frontier down while it is small,
//! and from the unreached vertices up while it is large. As in GAP, the graph has no loops and no parallel edges.

use tidegraph_engine::apl::searches::{Searches, breadth_first};
use tidegraph_engine::apl::{At, Expand};
use tidegraph_types::{Direction, Gui};

/// No parent yet.
const NONE: u32 = u32::MAX;
/// The search turns upwards when the frontier has more than 1/`ALPHA` of the remaining edges.
const ALPHA: usize = 15;
/// The search turns downwards again when the frontier has fewer than 1/`BETA` of the vertices.
const BETA: usize = 18;

/// Searches the live graph and records each vertex with its parent. Returns the number of reached vertices.
pub fn live(apl: &dyn Searches, at: At, start: Gui, tree: &mut Vec<(Gui, Gui)>) -> anyhow::Result<usize> {
    tree.clear();
    breadth_first(apl, at, &Expand::all(Direction::Both), &[start], &mut |found| {
        tree.extend(found.vertices.iter().copied().zip(found.parents.iter().copied()));
        anyhow::Ok(true)
    })?;
    Ok(tree.len() + 1)
}

/// The neighbours of each vertex in both directions: sorted, each once, without the vertex itself.
pub struct Rows {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Rows {
    pub fn of(vertices: usize, edges: &[(u32, u32)]) -> Self {
        let mut starts = vec![0_u32; vertices + 1];
        for (source, target) in edges {
            starts[*source as usize + 1] += 1;
            starts[*target as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            starts[vertex + 1] += starts[vertex];
        }
        let (mut next, mut all) = (starts.clone(), vec![0_u32; edges.len() * 2]);
        for &(source, target) in edges {
            for (from, to) in [(source, target), (target, source)] {
                all[next[from as usize] as usize] = to;
                next[from as usize] += 1;
            }
        }
        let (mut targets, mut ends) = (Vec::with_capacity(all.len()), vec![0_u32]);
        for vertex in 0..vertices {
            let row = &mut all[starts[vertex] as usize..starts[vertex + 1] as usize];
            row.sort_unstable();
            let first = targets.len();
            for &target in row.iter() {
                let twice = targets.len() > first && targets.last() == Some(&target);
                if target as usize != vertex && !twice {
                    targets.push(target);
                }
            }
            ends.push(targets.len() as u32);
        }
        Self { starts: ends, targets }
    }

    fn vertices(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn degree(&self, vertex: u32) -> usize {
        (self.starts[vertex as usize + 1] - self.starts[vertex as usize]) as usize
    }

    fn row(&self, vertex: u32) -> &[u32] {
        &self.targets[self.starts[vertex as usize] as usize..self.starts[vertex as usize + 1] as usize]
    }

    /// Takes one step from the frontier down. Returns the number of edges of the new frontier.
    fn down(&self, frontier: &[u32], parents: &mut [u32], next: &mut Vec<u32>) -> usize {
        let mut edges = 0;
        for &vertex in frontier {
            for &target in self.row(vertex) {
                let parent = &mut parents[target as usize];
                if *parent == NONE {
                    *parent = vertex;
                    next.push(target);
                    edges += self.degree(target);
                }
            }
        }
        edges
    }

    /// Takes one step from the unreached vertices up to the frontier. Returns the number of newly reached vertices.
    fn up(&self, frontier: &[u64], parents: &mut [u32], next: &mut [u64]) -> usize {
        let mut count = 0;
        for (vertex, parent) in parents.iter_mut().enumerate() {
            if *parent != NONE {
                continue;
            }
            let in_frontier = |near: &&u32| frontier[**near as usize / 64] >> (**near % 64) & 1 != 0;
            if let Some(near) = self.row(vertex as u32).iter().find(in_frontier) {
                *parent = *near;
                next[vertex / 64] |= 1 << (vertex % 64);
                count += 1;
            }
        }
        count
    }

    /// Searches downwards only. Returns the number of reached vertices.
    pub fn search_down(&self, start: u32) -> usize {
        let mut parents = vec![NONE; self.vertices()];
        parents[start as usize] = start;
        let (mut frontier, mut next, mut count) = (vec![start], Vec::new(), 1);
        while !frontier.is_empty() {
            self.down(&frontier, &mut parents, &mut next);
            count += next.len();
            std::mem::swap(&mut frontier, &mut next);
            next.clear();
        }
        count
    }

    /// Searches in the direction with less work at each step. Returns the number of reached vertices.
    pub fn search(&self, start: u32) -> usize {
        let vertices = self.vertices();
        let mut parents = vec![NONE; vertices];
        parents[start as usize] = start;
        let (mut frontier, mut next, mut count) = (vec![start], Vec::new(), 1);
        let words = vertices.div_ceil(64);
        let (mut here, mut there) = (vec![0_u64; words], vec![0_u64; words]);
        let (mut left, mut ahead) = (self.targets.len(), self.degree(start));
        while !frontier.is_empty() {
            if ahead > left / ALPHA {
                here.fill(0);
                frontier.iter().for_each(|v| here[*v as usize / 64] |= 1 << (*v % 64));
                let mut awake = frontier.len();
                loop {
                    there.fill(0);
                    let before = std::mem::replace(&mut awake, self.up(&here, &mut parents, &mut there));
                    count += awake;
                    std::mem::swap(&mut here, &mut there);
                    if awake == 0 || (awake < before && awake <= vertices / BETA) {
                        break;
                    }
                }
                frontier.clear();
                for (index, word) in here.iter().enumerate() {
                    let mut word = *word;
                    while word != 0 {
                        frontier.push(index as u32 * 64 + word.trailing_zeros());
                        word &= word - 1;
                    }
                }
                ahead = 1;
            } else {
                left -= ahead.min(left);
                ahead = self.down(&frontier, &mut parents, &mut next);
                count += next.len();
                std::mem::swap(&mut frontier, &mut next);
                next.clear();
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_searches_reach_the_same_vertices_and_no_others() {
        // A ring of 500, a star of 400 leaves at 0, and a pair apart; with loops and parallel edges.
        let mut edges: Vec<(u32, u32)> = (0..500).map(|n| (n, (n + 1) % 500)).collect();
        edges.extend((500..900).map(|n| (n, 0)));
        edges.extend([(900, 901), (3, 3), (4, 5), (5, 4)]);
        let rows = Rows::of(902, &edges);
        assert_eq!((rows.degree(3), rows.degree(4), rows.degree(0)), (2, 2, 402));
        for start in [0, 250, 600] {
            assert_eq!((rows.search(start), rows.search_down(start)), (900, 900));
        }
        assert_eq!((rows.search(901), rows.search_down(901)), (2, 2));
    }
}

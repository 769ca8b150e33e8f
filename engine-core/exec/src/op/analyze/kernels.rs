//! The algorithms, on vertices with numbers. They give what TinkerPop's vertex programs give, round by round.

use super::{Account, PIECE};
use crate::Result;

/// A change of all ranks together that is too small for another round.
const STEADY: f64 = 0.000_01;

/// Edges, each from a vertex to another.
pub(super) struct Pairs {
    pub(super) vertices: usize,
    pub(super) pairs: Vec<(u32, u32)>,
}

/// The vertices at the other ends of the edges of each vertex.
struct Ends {
    /// Where the ends of each vertex begin; one more at the end.
    starts: Vec<usize>,
    ends: Vec<u32>,
}

impl Ends {
    fn of(&self, vertex: usize) -> &[u32] {
        &self.ends[self.starts[vertex]..self.starts[vertex + 1]]
    }
}

impl Pairs {
    /// Lists the vertices to which the edges of each vertex lead, or from which edges lead to it.
    fn ends(&self, backward: bool, account: &mut Account<'_, '_>) -> Result<Ends> {
        let turned = |(from, to): &(u32, u32)| if backward { (*to, *from) } else { (*from, *to) };
        let mut starts = account.list(0_usize, self.vertices + 1)?;
        let mut ends = account.list(0_u32, self.pairs.len())?;
        for piece in self.pairs.chunks(PIECE) {
            account.ctx.spend(piece.len())?;
            piece.iter().for_each(|pair| starts[turned(pair).0 as usize + 1] += 1);
        }
        for vertex in 0..self.vertices {
            starts[vertex + 1] += starts[vertex];
        }
        let mut next = account.list(0_usize, self.vertices)?;
        next.copy_from_slice(&starts[..self.vertices]);
        for piece in self.pairs.chunks(PIECE) {
            account.ctx.spend(piece.len())?;
            for pair in piece {
                let (from, to) = turned(pair);
                let place = &mut next[from as usize];
                ends[*place] = to;
                *place += 1;
            }
        }
        Ok(Ends { starts, ends })
    }
}

/// Computes the rank of each vertex. Without weights, an energy of 1 is spread over all vertices at first; otherwise each vertex
/// begins with its weight.
pub(super) fn page_rank(
    pairs: &Pairs,
    weights: Option<Vec<f64>>,
    damping: f64,
    rounds: u32,
    account: &mut Account<'_, '_>,
) -> Result<Vec<f64>> {
    let edges = pairs.ends(false, account)?;
    let count = pairs.vertices;
    let mut energy = if weights.is_some() { 0.0 } else { 1.0 };
    let mut arrived = match weights {
        Some(weights) => weights,
        None => account.list(0.0, count)?,
    };
    let mut ranks = account.list(0.0_f64, count)?;
    let mut sent = account.list(0.0_f64, count)?;
    for _ in 0..=rounds {
        let share = if energy > 0.0 { energy / count as f64 } else { 0.0 };
        let mut change = 0.0;
        sent.fill(0.0);
        for (vertex, known) in ranks.iter_mut().enumerate() {
            let ends = edges.of(vertex);
            account.ctx.spend(1 + ends.len())?;
            let rank = arrived[vertex] + share;
            // Each vertex takes its share, as in TinkerPop, whose sums have the same last digits then.
            energy -= share;
            change += (rank - *known).abs();
            *known = rank;
            energy += (1.0 - damping) * rank;
            if ends.is_empty() {
                energy += damping * rank;
            }
            let part = damping * rank / ends.len() as f64;
            ends.iter().for_each(|end| sent[*end as usize] += part);
        }
        std::mem::swap(&mut arrived, &mut sent);
        if change < STEADY {
            break;
        }
    }
    Ok(ranks)
}

/// Computes for each vertex the one that its cluster is named for. `order`: the vertices in the order of their names.
pub(super) fn peer_pressure(
    pairs: &Pairs,
    strengths: Option<Vec<f64>>,
    order: &[u32],
    rounds: u32,
    account: &mut Account<'_, '_>,
) -> Result<Vec<u32>> {
    let edges = pairs.ends(true, account)?;
    let count = pairs.vertices;
    let strengths = match strengths {
        Some(strengths) => strengths,
        None => account.list(1.0, count)?,
    };
    let mut places = account.list(0_u32, count)?;
    for (place, vertex) in (0..).zip(order) {
        places[*vertex as usize] = place;
    }
    let mut clusters = account.list(0_u32, count)?;
    for (vertex, cluster) in (0..).zip(&mut clusters) {
        *cluster = vertex;
    }
    let mut next = account.list(0_u32, count)?;
    // The votes for each cluster; those of the vertex in turn are zero again after it.
    let mut votes = account.list(0.0_f64, count)?;
    for _ in 0..rounds {
        let mut is_steady = true;
        for (vertex, joined) in next.iter_mut().enumerate() {
            let voters = edges.of(vertex);
            account.ctx.spend(1 + 2 * voters.len())?;
            let of = |voter: &u32| (clusters[*voter as usize], strengths[*voter as usize]);
            let all = || std::iter::once((clusters[vertex], strengths[vertex])).chain(voters.iter().map(of));
            for (cluster, strength) in all() {
                votes[cluster as usize] += strength;
            }
            let mut best: Option<u32> = None;
            for (cluster, _) in all() {
                let strength = votes[cluster as usize];
                let is_better = best.map_or(strength > 0.0, |best| {
                    let most = votes[best as usize];
                    strength > most || strength == most && places[cluster as usize] < places[best as usize]
                });
                if is_better {
                    best = Some(cluster);
                }
            }
            for (cluster, _) in all() {
                votes[cluster as usize] = 0.0;
            }
            *joined = best.unwrap_or(vertex as u32);
            is_steady &= *joined == clusters[vertex];
        }
        std::mem::swap(&mut clusters, &mut next);
        if is_steady {
            break;
        }
    }
    Ok(clusters)
}

/// Computes for each vertex the first one, in the order of their names, from which edges lead to it.
pub(super) fn components(pairs: &Pairs, order: &[u32], account: &mut Account<'_, '_>) -> Result<Vec<u32>> {
    /// A vertex that no search has reached.
    const NONE: u32 = u32::MAX;
    let edges = pairs.ends(false, account)?;
    let mut components = account.list(NONE, pairs.vertices)?;
    let mut open = Vec::new();
    for first in order {
        if components[*first as usize] != NONE {
            continue;
        }
        components[*first as usize] = *first;
        account.push(&mut open, *first)?;
        while let Some(vertex) = open.pop() {
            let ends = edges.of(vertex as usize);
            account.ctx.spend(1 + ends.len())?;
            for end in ends {
                if components[*end as usize] == NONE {
                    components[*end as usize] = *first;
                    account.push(&mut open, *end)?;
                }
            }
        }
    }
    Ok(components)
}

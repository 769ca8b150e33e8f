//! The Kronecker graph of the GAP benchmark suite and of Graph500, as pairs of numbers. Measurements of storage and
//! search need neither ids nor files.
//!
//! It is an R-MAT graph with a = 0.57 and b = c = 0.19, 16 edges for each vertex, and the vertices in random order.
//! There are loops, parallel edges, and vertices without any edge. Only integers of a ChaCha stream decide the edges,
//! so the graph is the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Edges for each vertex.
pub const EDGES_A_VERTEX: usize = 16;

/// Numbers of the streams of random numbers.
const ORDER: u64 = 0;
const EDGES: u64 = 1;

/// Returns the source and target of each edge. The vertices are the numbers below 2^`scale`, which is at most 31.
#[must_use]
pub fn pairs(seed: u64, scale: u32) -> Vec<(u32, u32)> {
    let vertices = 1_usize << scale;
    let (mut random, mut order) = (stream(seed, ORDER), (0..vertices as u32).collect::<Vec<_>>());
    for index in (1..vertices).rev() {
        order.swap(index, below(&mut random, index as u64 + 1) as usize);
    }
    let mut random = stream(seed, EDGES);
    let mut edge = || {
        let (mut source, mut target) = (0_usize, 0_usize);
        for _ in 0..scale {
            let (s, t) = match below(&mut random, 100) {
                0..57 => (0, 0),
                57..76 => (0, 1),
                76..95 => (1, 0),
                _ => (1, 1),
            };
            (source, target) = (source << 1 | s, target << 1 | t);
        }
        (order[source], order[target])
    };
    (0..vertices * EDGES_A_VERTEX).map(|_| edge()).collect()
}

fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    random
}

/// Returns a number below `bound`; each is equally likely up to 2⁻⁶⁴ of its share.
fn below(random: &mut ChaCha8Rng, bound: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_is_skewed_and_the_same_each_time() {
        let pairs = pairs(42, 12);
        assert_eq!(pairs.len(), 16 << 12);
        assert_eq!(pairs, super::pairs(42, 12));
        assert_ne!(pairs, super::pairs(43, 12));
        let mut degrees = vec![0_u32; 1 << 12];
        for (source, target) in &pairs {
            degrees[*source as usize] += 1;
            degrees[*target as usize] += 1;
        }
        degrees.sort_unstable();
        let isolated = degrees.iter().take_while(|degree| **degree == 0).count();
        let largest: u32 = degrees.iter().rev().take(41).sum();
        // R-MAT with these parameters: about a fifth of 4,096 vertices has no edge, and one in a hundred a sixth of
        // all.
        assert!((400..1600).contains(&isolated), "{isolated}");
        assert!(largest as usize > pairs.len() * 2 / 10, "{largest}");
    }
}

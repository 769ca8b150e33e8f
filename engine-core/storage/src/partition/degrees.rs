//! Samples the degrees of vertices for the planner.

use super::Partition;
use crate::adjacency::{Each, Labels, Run};
use crate::properties::RowRequest;
use crossbeam_epoch::pin;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tidegraph_apl::{DegreeStatistics, Projection};
use tidegraph_types::{Token, Version};

/// Edges of one label and direction at sampled vertices of one label.
#[derive(Default)]
struct DegreeHistogram {
    edges: u64,
    histogram: Vec<u64>,
}

/// Degrees of the vertices sampled so far.
#[derive(Default)]
pub(crate) struct Degrees {
    vertices: FxHashMap<Option<Token>, u64>,
    seen: FxHashMap<(Option<Token>, Token, bool), DegreeHistogram>,
}

impl Degrees {
    fn add(&mut self, labels: &[Token], degrees: &[(Token, bool, u64)]) {
        for label in std::iter::once(None).chain(labels.iter().copied().map(Some)) {
            *self.vertices.entry(label).or_default() += 1;
            for &(edge_label, outgoing, degree) in degrees {
                let seen = self.seen.entry((label, edge_label, outgoing)).or_default();
                seen.edges += degree;
                let bucket = degree.ilog2() as usize;
                if seen.histogram.len() <= bucket {
                    seen.histogram.resize(bucket + 1, 0);
                }
                seen.histogram[bucket] += 1;
            }
        }
    }

    /// Returns the statistics for the planner.
    pub fn finish(self) -> Vec<DegreeStatistics> {
        let vertices = self.vertices;
        let one = |((vertex_label, edge_label, outgoing), seen): (_, DegreeHistogram)| DegreeStatistics {
            vertex_label,
            edge_label,
            outgoing,
            vertices: vertices.get(&vertex_label).copied().unwrap_or(0),
            edges: seen.edges,
            histogram: seen.histogram,
        };
        let mut all: Vec<DegreeStatistics> = self.seen.into_iter().map(one).collect();
        all.sort_unstable_by_key(|of| (of.vertex_label, of.edge_label, of.outgoing));
        all
    }
}

impl Partition {
    /// Samples about `count` vertices, evenly spread, as a version sees them.
    pub fn sample_degrees(&self, count: u32, at: Version, out: &mut Degrees) {
        let step = (self.end() / count.max(1)).max(1) as usize;
        for slot in (0..self.end()).step_by(step) {
            let guard = &pin();
            let want = RowRequest { id: false, properties: &Projection::None };
            let Some(row) = self.read_vertex(slot, at, want, guard) else { continue };
            let node = self.node(slot);
            let mut degrees: SmallVec<[(Token, bool, u64); 8]> = SmallVec::new();
            for (list, outgoing) in [(&node.out, true), (&node.inward, false)] {
                let mut count = Each(|run: Run<'_>| {
                    let edges = run.neighbours.len() as u64;
                    match degrees.iter_mut().find(|(label, out, _)| (*label, *out) == (run.label, outgoing)) {
                        Some((_, _, degree)) => *degree += edges,
                        None if edges > 0 => degrees.push((run.label, outgoing, edges)),
                        None => {}
                    }
                });
                self.links.read(list, at, Labels::All, 0, guard, &mut count);
            }
            out.add(row.labels(), &degrees);
        }
    }
}

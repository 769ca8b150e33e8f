//! Samples the degrees of vertices for the planner.
//!
//! An even sample of all vertices has few or none of a rare label, and rare labels are often those of hubs: countries, tags,
//! types. So each label has a sample of its own if the even one has too few of its vertices.

use super::Partition;
use crate::adjacency::{Each, Labels, Run};
use crate::properties::{RowRequest, Scan};
use crossbeam_epoch::{Guard, pin};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tidegraph_apl::{DegreeStatistics, Projection, Reservoir, Sample};
use tidegraph_types::{Token, Version};

/// Edges of one label and direction at sampled vertices of one label.
#[derive(Default)]
struct DegreeHistogram {
    edges: u64,
    histogram: Vec<u64>,
}

/// Pages of a label in a partition from which its vertices are taken.
const PAGES: usize = 8;

/// The degrees of a vertex: edge label, whether outgoing, number of edges.
type DegreesOfVertex = SmallVec<[(Token, bool, u64); 8]>;

/// Degrees of the vertices sampled so far.
#[derive(Default)]
pub(crate) struct Degrees {
    vertices: FxHashMap<Option<Token>, u64>,
    seen: FxHashMap<(Option<Token>, Token, bool), DegreeHistogram>,
}

impl Degrees {
    fn add(&mut self, label: Option<Token>, degrees: &DegreesOfVertex) {
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

    /// Returns the number of sampled vertices with a label.
    pub fn vertices_of(&self, label: Token) -> u64 {
        self.vertices.get(&Some(label)).copied().unwrap_or_default()
    }

    /// Forgets the vertices with these labels, which get samples of their own.
    pub fn forget(&mut self, labels: &FxHashSet<Token>) {
        let is_kept = |label: &Option<Token>| label.is_none_or(|label| !labels.contains(&label));
        self.vertices.retain(|label, _| is_kept(label));
        self.seen.retain(|(label, ..), _| is_kept(label));
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
            let degrees = self.degrees_of(slot, at, guard);
            out.add(None, &degrees);
            row.labels().iter().for_each(|label| out.add(Some(*label), &degrees));
        }
    }

    /// Samples about `count` vertices of each of some labels, for the degrees of that label alone.
    pub fn sample_degrees_of(&self, labels: &FxHashSet<Token>, count: u32, at: Version, out: &mut Degrees) {
        let table = self.rows();
        let mut pages: FxHashMap<Token, Vec<u32>> = FxHashMap::default();
        for number in 0..table.end() {
            let Some(set) = table.set(number).filter(|set| set.is_of_vertices()) else { continue };
            for label in set.labels.iter().filter(|label| labels.contains(label)) {
                pages.entry(*label).or_default().push(number);
            }
        }
        for (label, pages) in pages {
            let step = pages.len().div_ceil(PAGES);
            let taken = pages.len().div_ceil(step) as u32;
            let group = [vec![label]];
            let mut scan = Scan::new(&group, &[], &[]);
            for number in pages.into_iter().step_by(step) {
                let guard = &pin();
                let sample = Sample { count: count.div_ceil(taken), seed: u64::from(number) };
                let mut found = Reservoir::new(sample);
                scan.page(table, number, 0, at, guard, &mut found);
                for gui in found.items {
                    if let Some(slot) = self.slot(gui, guard) {
                        out.add(Some(label), &self.degrees_of(slot, at, guard));
                    }
                }
            }
        }
    }

    fn degrees_of(&self, slot: u32, at: Version, guard: &Guard) -> DegreesOfVertex {
        let node = self.node(slot);
        let mut degrees = DegreesOfVertex::new();
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
        degrees
    }
}

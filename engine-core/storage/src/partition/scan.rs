//! Scans the out-edges of one partition at a version, list after list in order of slots.
//!
//! A list is copied run by run as it is in its block: neighbours and SIDs as columns, source and label once. Lines of
//! the lists ahead are prefetched meanwhile.

use super::columns::{append_ends, append_few_ends};
use super::read::Filter;
use super::{Node, Partition};
use crate::adjacency::{FastRead, FewEntries, Link, Run, Sids, Sink};
use crate::properties;
use crossbeam_epoch::Guard;
use tidegraph_apl::{EdgeRuns, EdgeScan, Projection, PropertyPredicate};
use tidegraph_types::{Edge, Gui, Sid, Version};

/// Number of nodes in a group; those with edges are selected together.
const GROUP: usize = 128;
/// Distance, in lists, at which the first lines are prefetched. The processor recognizes the sequence after them.
const AHEAD: usize = 8;
const LINES: usize = 3;

/// Destination of a scan of edges.
pub(crate) trait EdgeAnswer {
    /// Appends a run.
    fn run(&mut self, source: Gui, run: Run<'_>);
    /// Appends few entries of one label.
    fn few(&mut self, source: Gui, few: &FewEntries);
    /// Appends one edge.
    fn edge(&mut self, edge: Edge);
    /// Returns the number of edges so far.
    fn len(&self) -> usize;
}

impl EdgeAnswer for EdgeRuns {
    #[inline(always)]
    fn run(&mut self, source: Gui, run: Run<'_>) {
        append_ends(self, run);
        self.end_run(source, run.label);
    }

    #[inline(always)]
    fn few(&mut self, source: Gui, few: &FewEntries) {
        append_few_ends(self, few);
        self.end_run(source, few.label);
    }

    fn edge(&mut self, edge: Edge) {
        self.push(edge);
    }

    #[inline]
    fn len(&self) -> usize {
        self.target.len()
    }
}

impl EdgeAnswer for Vec<Edge> {
    #[inline]
    fn run(&mut self, source: Gui, run: Run<'_>) {
        let edge = |(target, sid): (&u64, Sid)| Edge { sid, source, target: Gui(*target), label: run.label };
        match run.sids {
            Sids::Narrow { least, above } => {
                let sids = above.iter().map(|above| Sid(least + u64::from(*above)));
                self.extend(run.neighbours.iter().zip(sids).map(edge));
            }
            Sids::Wide(sids) => {
                self.extend(run.neighbours.iter().zip(sids.iter().map(|sid| Sid(*sid))).map(edge));
            }
        }
    }

    #[inline]
    fn few(&mut self, source: Gui, few: &FewEntries) {
        let edge = |(target, sid): (&u64, &u64)| Edge {
            sid: Sid(*sid),
            source,
            target: Gui(*target),
            label: few.label,
        };
        self.extend(few.neighbours.iter().zip(&few.sids).take(few.count).map(edge));
    }

    fn edge(&mut self, edge: Edge) {
        self.push(edge);
    }

    #[inline]
    fn len(&self) -> usize {
        self.len()
    }
}

/// Appends entries to an answer if the properties of the edges pass.
struct Scanned<'o, O, P> {
    out: &'o mut O,
    source: Gui,
    /// `None` if all edges pass.
    passes: Option<P>,
    limit: usize,
    /// Number of edges looked at, and its limit.
    looked: usize,
    most: usize,
}

impl<O: EdgeAnswer, P: Fn(&Edge) -> bool> Sink for Scanned<'_, O, P> {
    #[inline]
    fn take(&mut self, run: Run<'_>) {
        self.looked += run.neighbours.len();
        let source = self.source;
        match &self.passes {
            None => self.out.run(source, run),
            Some(passes) => {
                let edges = run.links().map(|link| Edge {
                    sid: link.sid,
                    source,
                    target: link.neighbour,
                    label: link.label,
                });
                edges.filter(passes).for_each(|edge| self.out.edge(edge));
            }
        }
    }

    /// A hub may stop behind a chunk of which nothing passed, if the version sees something of it.
    fn len(&self) -> usize {
        self.looked
    }

    fn full(&self) -> bool {
        self.out.len() >= self.limit || self.looked >= self.most
    }
}

/// The request of a scan of edges, the same for all vertices.
pub(crate) struct EdgeScanRequest<'r> {
    filter: Filter<'r>,
    predicates: &'r [PropertyPredicate],
    keys: Projection,
    at: Version,
    /// Length of the answer at which to stop.
    limit: usize,
}

impl<'r> EdgeScanRequest<'r> {
    pub fn new(scan: &'r EdgeScan, at: Version, limit: usize) -> Self {
        Self {
            filter: Filter::of(scan.labels.as_deref()),
            predicates: &scan.predicates,
            keys: Projection::Keys(scan.predicates.iter().map(|predicate| predicate.key).collect()),
            at,
            limit,
        }
    }
}

impl Partition {
    /// Appends the out-edges that pass. `from` is a slot and the chunk of its hub behind which to continue. Subtracts
    /// the edges and vertices that it looks at from `left`. Stops at slot `end`, when the answer has reached its
    /// limit, or when nothing is left. Returns where to continue.
    pub fn scan_out_edges<O: EdgeAnswer>(
        &self,
        from: (u32, u32),
        end: u32,
        want: &EdgeScanRequest<'_>,
        left: &mut usize,
        guard: &Guard,
        out: &mut O,
    ) -> (u32, u32) {
        let (mut slot, mut after) = from;
        while slot < end && out.len() < want.limit && *left > 0 {
            let nodes = self.nodes.slice(slot..end.min(slot.saturating_add(2 * GROUP as u32)));
            let (group, next) = nodes.split_at(nodes.len().min(GROUP));
            let (done, place) = self.scan_group(group, next, after, want, left, guard, out);
            (slot, after) = (slot + done, place);
        }
        (slot, after)
    }

    /// Like `scan_out_edges` for a group of nodes, while the next group is prefetched. Returns how many nodes are
    /// done, and where to continue in the next one.
    fn scan_group<O: EdgeAnswer>(
        &self,
        nodes: &[Node],
        ahead: &[Node],
        mut after: u32,
        want: &EdgeScanRequest<'_>,
        left: &mut usize,
        guard: &Guard,
        out: &mut O,
    ) -> (u32, u32) {
        // Selects the nodes with edges, without branches that could be mispredicted.
        let (mut some, mut count) = ([0_u8; GROUP], 0);
        for (index, node) in nodes.iter().enumerate() {
            some[count] = index as u8;
            count += usize::from(!node.out.is_empty());
        }
        let some = &some[..count];
        let list = |place: usize| some.get(place).map(|index| &nodes[usize::from(*index)].out);
        (0..AHEAD).filter_map(list).for_each(|list| self.links.prefetch_lines(list, LINES));
        let wanted = properties::RowRequest { id: false, properties: &want.keys };
        let row_passes = |edge: &Edge| {
            let row = self.read_edge(edge, want.at, wanted, guard).flatten();
            row.is_some_and(|row| row.passes(want.predicates))
        };
        let passes = (!want.predicates.is_empty()).then_some(row_passes);
        let labels = want.filter.labels();
        for (place, &index) in some.iter().enumerate() {
            if out.len() >= want.limit || *left == 0 {
                return (u32::from(index), after);
            }
            for node in ahead.iter().skip(place * 2).take(2) {
                crate::hints::prefetch_line(node);
            }
            if let Some(list) = list(place + AHEAD) {
                self.links.prefetch_lines(list, LINES);
            }
            let node = &nodes[usize::from(index)];
            if passes.is_none() {
                let seen = match self.links.fast_read::<true>(&node.out, want.at, guard) {
                    FastRead::Few(few) => {
                        if labels.pass(few.label) {
                            out.few(node.gui(), &few);
                        }
                        Some(few.count)
                    }
                    FastRead::Run(run) => {
                        if labels.pass(run.label) {
                            out.run(node.gui(), run);
                        }
                        Some(run.neighbours.len())
                    }
                    FastRead::One(link) => {
                        if labels.pass(link.label) {
                            let Link { neighbour: target, sid, label } = link;
                            out.edge(Edge { sid, source: node.gui(), target, label });
                        }
                        Some(1)
                    }
                    FastRead::Nothing => Some(0),
                    FastRead::More => None,
                };
                if let Some(seen) = seen {
                    *left = left.saturating_sub(1 + seen);
                    continue;
                }
            }
            let (source, limit, passes) = (node.gui(), want.limit, passes.as_ref());
            let mut edges = Scanned { out, source, passes, limit, looked: 0, most: *left };
            let next = self.links.read(&node.out, want.at, labels, after, guard, &mut edges);
            *left = left.saturating_sub(1 + edges.looked);
            after = next.unwrap_or(0);
            if next.is_some() {
                return (u32::from(index), after);
            }
        }
        *left = left.saturating_sub(nodes.len() - count);
        (nodes.len() as u32, 0)
    }
}

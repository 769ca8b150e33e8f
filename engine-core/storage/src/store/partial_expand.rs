//! Expansions that return only a part of the edges: a sample, or the first by a property.
//!
//! A sample reads the headers of blocks and the entries that it takes. For the first edges by a property, the value
//! of every edge is read, in groups whose cache misses overlap, and nothing else of the edge.

use super::Generation;
use super::pipeline::walk;
use super::read::{prefetch_lists, want};
use super::reading::{GROUP, PIECE, Reading};
use crate::properties;
use tidegraph_apl::{
    Apl, At, Cursor, Error, Expand, Expansion, ExpansionRow, Projection, Reservoir, Sample, TopEdges,
};
use tidegraph_types::{Gui, Value};

/// Edges that one call of `top_edges` looks at.
const MOST_LOOKED: u32 = 1 << 14;

impl Generation {
    /// Implements [`Apl::sample_edges`].
    pub(super) fn sampled_edges(
        &self,
        at: At,
        request: &Expand,
        sample: Sample,
        frontier: &[Gui],
        out: &mut Expansion,
    ) -> Result<(), Error> {
        self.versions.check(at.version)?;
        let want = want(at, request, usize::MAX);
        let mut row = 0;
        for piece in frontier.chunks(PIECE) {
            let reading = self.reading();
            let guard = &reading.epoch;
            walk(
                &reading,
                piece,
                |partition, slot| prefetch_lists(partition, slot, request),
                |_, partition, slot| {
                    if let Some(slot) = slot {
                        let mut taken = Reservoir::new(sample.of_row(row));
                        partition.offer_edges(slot, row as u32, &want, guard, &mut taken);
                        taken.items.into_iter().for_each(|edge| out.append(edge));
                    }
                    row += 1;
                    true
                },
            );
        }
        self.still_readable(at)
    }

    /// Implements [`Apl::top_edges`].
    pub(super) fn edges_on_top(
        &self,
        at: At,
        request: &Expand,
        top: &TopEdges,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        let max_rows = request.max_rows.min(MOST_LOOKED);
        let request = Expand { max_rows, neighbours_only: false, ..request.clone() };
        let mut found = Expansion::default();
        let next = self.expand(at, &request, frontier, from, &mut found)?;
        let keys = Projection::Keys(vec![top.key]);
        let want = properties::RowRequest { id: false, properties: &keys };
        let mut best = top.best::<ExpansionRow>();
        let rows: Vec<usize> = (0..found.len()).collect();
        for piece in rows.chunks(self.piece()) {
            let reading = self.reading();
            for group in piece.chunks(GROUP) {
                offer_by_value(&reading, at, want, frontier, &found, group, &mut best);
            }
            drop(reading);
            self.make_room();
        }
        self.still_readable(at)?;
        best.finish().into_iter().for_each(|row| out.append(row));
        Ok(next)
    }
}

fn offer_by_value(
    reading: &Reading<'_>,
    at: At,
    want: properties::RowRequest<'_>,
    frontier: &[Gui],
    found: &Expansion,
    group: &[usize],
    best: &mut tidegraph_apl::Best<ExpansionRow>,
) {
    let edge = |index: usize| found.edge(index, frontier);
    for &index in group {
        let edge = edge(index);
        reading.of(edge.source).prefetch_edge_index(edge.sid, &reading.epoch);
    }
    for &index in group {
        let edge = edge(index);
        reading.of(edge.source).prefetch_edge(edge.sid, want, &reading.epoch);
    }
    for &index in group {
        let edge = edge(index);
        let mut value = Value::Null;
        if let Some(row) =
            reading.of(edge.source).read_edge(&edge, at.version, want, &reading.epoch).flatten()
        {
            row.for_each(want, |_, _, found| value = found);
        }
        best.offer(found.row[index], value, || found.at(index));
    }
}

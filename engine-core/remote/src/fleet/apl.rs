//! [`Apl`] over a fleet: for each request, how it is split by partition and how the answers are put together.
//!
//! A request with one answer for each item is scattered (`rows.rs`); an expansion
//! follows a frontier piece by piece (`expand.rs`); a scan goes from partition to
//! partition (`scan.rs`); counts and constraints are asked of all partitions.

use super::{FleetApl, unfitting};
use tidegraph_apl::{
    Apl, At, Cursor, EdgeCandidates, EdgePlace, EdgeRead, EdgeRows, EdgeRuns, EdgeScan, EndCounts, Error,
    Expand, Expansion, Grouping, Groups, LookUp, LookedUp, Reservoir, Sample, ScanCursor, ScannedValues,
    Statistics, TopEdges, TopVertices, Traffic, VertexRead, VertexRows, VertexScan, fallback,
};
use tidegraph_types::{Direction, Edge, Gui, Str, Token};
use tidegraph_wire::apl::request;

impl Apl for FleetApl {
    fn is_far(&self) -> bool {
        true
    }

    fn traffic(&self) -> Traffic {
        self.moved()
    }

    fn resolve_vertices(&self, at: At, ids: &[Str], out: &mut Vec<Option<Gui>>) -> Result<(), Error> {
        let ask = |ids| request::ResolveVertices { ids };
        self.scatter_lists(at, ids, |id| self.partition_of_id(id), ask, out)
    }

    fn look_up(&self, at: At, ids: &[Str], wish: &LookUp, out: &mut LookedUp) -> Result<(), Error> {
        self.look_up_in_one_round(at, ids, wish, out)
    }

    fn resolve_edges(&self, at: At, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        self.resolve_candidates(at, ids, out)
    }

    fn edge_candidates(&self, at: At, ids: &[Str], out: &mut EdgeCandidates) -> Result<(), Error> {
        self.gather_candidates(at, ids, out)
    }

    fn find_edges(&self, at: At, places: &[EdgePlace], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        let ask = |places| request::FindEdges { places };
        self.scatter_lists(at, places, |place| self.partition(place.source), ask, out)
    }

    fn place(&self, at: At, ids: &[(Str, u64)], out: &mut Vec<(Gui, u64)>) -> Result<(), Error> {
        let ask = |ids| request::Place { ids };
        self.scatter_lists(at, ids, |(id, _)| self.partition_of_id(id), ask, out)
    }

    fn vertices(
        &self,
        at: At,
        read: &VertexRead,
        frontier: &[Gui],
        out: &mut VertexRows,
    ) -> Result<(), Error> {
        self.gather_vertices(at, read, frontier, out)
    }

    fn edges(&self, at: At, read: &EdgeRead, frontier: &[Edge], out: &mut EdgeRows) -> Result<(), Error> {
        self.gather_edges(at, read, frontier, out)
    }

    fn expand(
        &self,
        at: At,
        request: &Expand,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        self.expand_in_pieces(at, request, None, frontier, from, out)
    }

    fn degrees(&self, at: At, request: &Expand, frontier: &[Gui], out: &mut Vec<u64>) -> Result<(), Error> {
        let ask = |frontier| request::Degrees { expand: request.clone(), frontier };
        self.scatter_lists(at, frontier, |gui| self.partition(*gui), ask, out)
    }

    fn edges_imply_labels(&self, _: At, _: &[Token], _: Direction, _: &[Token]) -> bool {
        // What a node knows of a partition would have to be asked again at every version.
        false
    }

    fn sample_edges(
        &self,
        at: At,
        request: &Expand,
        sample: Sample,
        frontier: &[Gui],
        out: &mut Expansion,
    ) -> Result<(), Error> {
        self.gather_sample(at, request, sample, frontier, out)
    }

    fn top_edges(
        &self,
        at: At,
        request: &Expand,
        top: &TopEdges,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        // Properties are stored with an edge's source, so only the partition of the source can select. And one
        // partition knows the best edges of each vertex, but not the best of all vertices.
        if request.direction == Direction::Out && top.each {
            return self.expand_in_pieces(at, request, Some(*top), frontier, from, out);
        }
        fallback::top_edges(self, at, request, top, frontier, from, out)
    }

    fn scan_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        out: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        let most = scan.max_rows.max(1) as usize;
        let limit = out.len().saturating_add(most);
        let ask = |from| request::ScanVertices { scan: scan.clone(), from };
        self.scan(at, from, most, self.window(), ask, &mut |(found, next)| {
            out.extend(found);
            Ok((next, out.len() >= limit))
        })
    }

    fn scan_values(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        let most = scan.max_rows.max(1) as usize;
        let limit = out.vertices.len().saturating_add(most);
        let ask = |from| request::ScanValues { scan: scan.clone(), keys: keys.to_vec(), from };
        self.scan(at, from, most, self.window(), ask, &mut |(found, next)| {
            if found.columns.len() != keys.len() || out.columns.len() != keys.len() {
                return Err(unfitting());
            }
            out.vertices.extend(found.vertices);
            for (column, more) in out.columns.iter_mut().zip(found.columns) {
                column.extend(more);
            }
            Ok((next, out.vertices.len() >= limit))
        })
    }

    fn top_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        top: &TopVertices,
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        self.gather_top(at, scan, keys, top, from, out)
    }

    fn count_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        count: &mut u64,
    ) -> Result<Option<ScanCursor>, Error> {
        // If a partition is not complete, the counts of those behind it are
        // discarded; the window is then one partition.
        let ask = |from| request::CountVertices { scan: scan.clone(), from };
        self.scan(at, from, usize::MAX, self.window(), ask, &mut |(more, next)| {
            *count += more;
            Ok((next, false))
        })
    }

    fn sample_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        sample: &mut Reservoir<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        // One partition at a time, because the request carries the sample so far.
        let so_far = sample.clone();
        let ask = |from| request::SampleVertices { scan: scan.clone(), from, sample: so_far.clone() };
        self.scan(at, from, usize::MAX, 1, ask, &mut |(more, next)| {
            if more.items.len() > more.count as usize || more.count != sample.count {
                return Err(unfitting());
            }
            *sample = more;
            Ok((next, false))
        })
    }

    fn group_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        grouping: &Grouping,
        from: ScanCursor,
        out: &mut Groups,
    ) -> Result<Option<ScanCursor>, Error> {
        self.gather_groups(at, scan, grouping, from, out)
    }

    fn count_ends(
        &self,
        at: At,
        scan: &VertexScan,
        expand: &Expand,
        from: ScanCursor,
        out: &mut EndCounts,
    ) -> Result<Option<ScanCursor>, Error> {
        self.gather_ends(at, scan, expand, from, out)
    }

    fn scan_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut EdgeRuns,
    ) -> Result<Option<ScanCursor>, Error> {
        let most = scan.max_rows.max(1) as usize;
        let limit = out.len().saturating_add(most);
        let ask = |from| request::ScanEdges { scan: scan.clone(), from };
        self.scan(at, from, most, self.window(), ask, &mut |(found, next)| {
            let mut start = 0;
            for run in &found.runs {
                let rows = start..run.end as usize;
                start = rows.end;
                out.target.extend_from_slice(&found.target[rows.clone()]);
                out.sid.extend_from_slice(&found.sid[rows]);
                out.end_run(run.source, run.label);
            }
            Ok((next, out.len() >= limit))
        })
    }

    fn scan_edge_rows(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut Vec<Edge>,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::scan_edge_rows(self, at, scan, from, out)
    }

    fn unique_keys(&self, at: At) -> Result<Vec<(Token, Token)>, Error> {
        self.known_unique_keys(at)
    }

    fn statistics(&self) -> Statistics {
        Statistics::clone(&self.counts())
    }
}

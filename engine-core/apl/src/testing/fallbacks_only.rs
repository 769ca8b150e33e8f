//! An implementation that composes every answer that can be composed from basic requests.

use crate::{
    Apl, At, Cursor, EdgeCandidates, EdgePlace, EdgeRead, EdgeRows, EdgeRuns, EdgeScan, EndCounts, Error,
    Expand, Expansion, Grouping, Groups, LookUp, LookedUp, Reservoir, Sample, ScanCursor, ScannedValues,
    Statistics, TopEdges, TopVertices, Traffic, VertexRead, VertexRows, VertexScan, fallback,
};
use tidegraph_types::{Direction, Edge, Gui, Str, Token};

/// Forwards the basic requests to another implementation, and answers the others by [`crate::fallback`].
pub struct FallbacksOnly<'a>(pub &'a dyn Apl);

impl std::fmt::Debug for FallbacksOnly<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FallbacksOnly").finish_non_exhaustive()
    }
}

impl Apl for FallbacksOnly<'_> {
    fn is_far(&self) -> bool {
        self.0.is_far()
    }

    fn traffic(&self) -> Traffic {
        self.0.traffic()
    }

    fn resolve_vertices(&self, at: At, ids: &[Str], out: &mut Vec<Option<Gui>>) -> Result<(), Error> {
        self.0.resolve_vertices(at, ids, out)
    }

    fn look_up(&self, at: At, ids: &[Str], wish: &LookUp, out: &mut LookedUp) -> Result<(), Error> {
        fallback::look_up(self, at, ids, wish, out)
    }

    fn resolve_edges(&self, at: At, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        self.0.resolve_edges(at, ids, out)
    }

    fn edge_candidates(&self, at: At, ids: &[Str], out: &mut EdgeCandidates) -> Result<(), Error> {
        fallback::edge_candidates(self, at, ids, out)
    }

    fn find_edges(&self, at: At, places: &[EdgePlace], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        fallback::find_edges(self, at, places, out)
    }

    fn place(&self, at: At, ids: &[(Str, u64)], out: &mut Vec<(Gui, u64)>) -> Result<(), Error> {
        self.0.place(at, ids, out)
    }

    fn vertices(
        &self,
        at: At,
        read: &VertexRead,
        frontier: &[Gui],
        out: &mut VertexRows,
    ) -> Result<(), Error> {
        self.0.vertices(at, read, frontier, out)
    }

    fn edges(&self, at: At, read: &EdgeRead, frontier: &[Edge], out: &mut EdgeRows) -> Result<(), Error> {
        self.0.edges(at, read, frontier, out)
    }

    fn expand(
        &self,
        at: At,
        request: &Expand,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        self.0.expand(at, request, frontier, from, out)
    }

    fn degrees(&self, at: At, request: &Expand, frontier: &[Gui], out: &mut Vec<u64>) -> Result<(), Error> {
        self.0.degrees(at, request, frontier, out)
    }

    fn edges_imply_labels(&self, _: At, _: &[Token], _: Direction, _: &[Token]) -> bool {
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
        fallback::sample_edges(self, at, request, sample, frontier, out)
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
        fallback::top_edges(self, at, request, top, frontier, from, out)
    }

    fn scan_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        out: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        self.0.scan_vertices(at, scan, from, out)
    }

    fn scan_values(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::scan_values(self, at, scan, keys, from, out)
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
        fallback::top_vertices(self, at, scan, keys, top, from, out)
    }

    fn count_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        count: &mut u64,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::count_vertices(self, at, scan, from, count)
    }

    fn sample_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        sample: &mut Reservoir<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::sample_vertices(self, at, scan, from, sample)
    }

    fn group_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        grouping: &Grouping,
        from: ScanCursor,
        out: &mut Groups,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::group_vertices(self, at, scan, grouping, from, out)
    }

    fn count_ends(
        &self,
        at: At,
        scan: &VertexScan,
        expand: &Expand,
        from: ScanCursor,
        out: &mut EndCounts,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::count_ends(self, at, scan, expand, from, out)
    }

    fn scan_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut EdgeRuns,
    ) -> Result<Option<ScanCursor>, Error> {
        self.0.scan_edges(at, scan, from, out)
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
        self.0.unique_keys(at)
    }

    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
}

#[cfg(feature = "searches")]
impl crate::searches::Searches for FallbacksOnly<'_> {
    fn bottom_up(
        &self,
        at: At,
        step: &crate::searches::BottomUp<'_>,
        _: &mut crate::searches::Explored,
        from: ScanCursor,
        out: &mut crate::searches::Parents,
    ) -> Result<Option<ScanCursor>, Error> {
        crate::searches::bottom_up_by_scan(self, at, step, from, out)
    }
}

//! Passes each request on to the generation of its version.

use super::Store;
use tidegraph_apl::{
    Apl, At, Cursor, EdgeCandidates, EdgePlace, EdgeRead, EdgeRows, EdgeRuns, EdgeScan, EndCounts, Error,
    Expand, Expansion, Grouping, Groups, LookUp, LookedUp, Reservoir, Sample, ScanCursor, ScannedValues,
    Statistics, TopEdges, TopVertices, Traffic, VertexRead, VertexRows, VertexScan,
};
use tidegraph_types::{Direction, Edge, Gui, Str, Token};

impl Apl for Store {
    fn is_far(&self) -> bool {
        false
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn resolve_vertices(&self, at: At, ids: &[Str], out: &mut Vec<Option<Gui>>) -> Result<(), Error> {
        self.of_version(at.version).resolve_vertices(at, ids, out)
    }

    fn look_up(&self, at: At, ids: &[Str], wish: &LookUp, out: &mut LookedUp) -> Result<(), Error> {
        // Generations have a method of this name.
        Apl::look_up(&*self.of_version(at.version), at, ids, wish, out)
    }

    fn resolve_edges(&self, at: At, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        self.of_version(at.version).resolve_edges(at, ids, out)
    }

    fn edge_candidates(&self, at: At, ids: &[Str], out: &mut EdgeCandidates) -> Result<(), Error> {
        self.of_version(at.version).edge_candidates(at, ids, out)
    }

    fn find_edges(&self, at: At, places: &[EdgePlace], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        self.of_version(at.version).find_edges(at, places, out)
    }

    fn place(&self, at: At, ids: &[(Str, u64)], out: &mut Vec<(Gui, u64)>) -> Result<(), Error> {
        self.of_version(at.version).place(at, ids, out)
    }

    fn vertices(
        &self,
        at: At,
        read: &VertexRead,
        frontier: &[Gui],
        out: &mut VertexRows,
    ) -> Result<(), Error> {
        self.of_version(at.version).vertices(at, read, frontier, out)
    }

    fn edges(&self, at: At, read: &EdgeRead, frontier: &[Edge], out: &mut EdgeRows) -> Result<(), Error> {
        self.of_version(at.version).edges(at, read, frontier, out)
    }

    fn expand(
        &self,
        at: At,
        request: &Expand,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        self.of_version(at.version).expand(at, request, frontier, from, out)
    }

    fn degrees(&self, at: At, request: &Expand, frontier: &[Gui], out: &mut Vec<u64>) -> Result<(), Error> {
        self.of_version(at.version).degrees(at, request, frontier, out)
    }

    fn edges_imply_labels(
        &self,
        at: At,
        edge_labels: &[Token],
        direction: Direction,
        labels: &[Token],
    ) -> bool {
        self.of_version(at.version).edges_imply_labels(at, edge_labels, direction, labels)
    }

    fn sample_edges(
        &self,
        at: At,
        request: &Expand,
        sample: Sample,
        frontier: &[Gui],
        out: &mut Expansion,
    ) -> Result<(), Error> {
        self.of_version(at.version).sample_edges(at, request, sample, frontier, out)
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
        self.of_version(at.version).top_edges(at, request, top, frontier, from, out)
    }

    fn scan_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        out: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        self.of_version(at.version).scan_vertices(at, scan, from, out)
    }

    fn scan_values(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        self.of_version(at.version).scan_values(at, scan, keys, from, out)
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
        self.of_version(at.version).top_vertices(at, scan, keys, top, from, out)
    }

    fn count_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        count: &mut u64,
    ) -> Result<Option<ScanCursor>, Error> {
        self.of_version(at.version).count_vertices(at, scan, from, count)
    }

    fn sample_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        sample: &mut Reservoir<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        self.of_version(at.version).sample_vertices(at, scan, from, sample)
    }

    fn group_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        grouping: &Grouping,
        from: ScanCursor,
        out: &mut Groups,
    ) -> Result<Option<ScanCursor>, Error> {
        self.of_version(at.version).group_vertices(at, scan, grouping, from, out)
    }

    fn count_ends(
        &self,
        at: At,
        scan: &VertexScan,
        expand: &Expand,
        from: ScanCursor,
        out: &mut EndCounts,
    ) -> Result<Option<ScanCursor>, Error> {
        self.of_version(at.version).count_ends(at, scan, expand, from, out)
    }

    fn scan_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut EdgeRuns,
    ) -> Result<Option<ScanCursor>, Error> {
        self.of_version(at.version).scan_edges(at, scan, from, out)
    }

    fn scan_edge_rows(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut Vec<Edge>,
    ) -> Result<Option<ScanCursor>, Error> {
        self.of_version(at.version).scan_edge_rows(at, scan, from, out)
    }

    fn unique_keys(&self, at: At) -> Result<Vec<(Token, Token)>, Error> {
        Self::unique_keys(self, at.version)
    }

    fn statistics(&self) -> Statistics {
        self.of_version(self.published()).statistics()
    }
}

#[cfg(feature = "searches")]
mod searches {
    use super::{At, Error, ScanCursor, Store};
    use tidegraph_apl::searches::{BottomUp, Explored, Parents, Searches};

    impl Searches for Store {
        fn bottom_up(
            &self,
            at: At,
            step: &BottomUp<'_>,
            explored: &mut Explored,
            from: ScanCursor,
            out: &mut Parents,
        ) -> Result<Option<ScanCursor>, Error> {
            self.of_version(at.version).bottom_up(at, step, explored, from, out)
        }
    }
}

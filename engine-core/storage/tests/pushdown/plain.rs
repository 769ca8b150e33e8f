//! Answers that are composed of others.

use tidegraph_apl::{
    Apl, At, Cursor, EdgeRead, EdgeRows, EdgeRuns, EdgeScan, Error, Expand, Expansion, ScanCursor,
    Statistics, VertexRead, VertexRows, VertexScan,
};
use tidegraph_storage::Store;
use tidegraph_types::{Edge, Gui, Str};

/// A store that offers only the requests from which all other answers can be composed.
pub struct Plain<'s>(pub &'s Store);

impl Apl for Plain<'_> {
    fn resolve_vertices(&self, at: At, ids: &[Str], out: &mut Vec<Option<Gui>>) -> Result<(), Error> {
        self.0.resolve_vertices(at, ids, out)
    }
    fn resolve_edges(&self, at: At, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        self.0.resolve_edges(at, ids, out)
    }
    fn place(&self, at: At, ids: &[(Str, u64)], out: &mut Vec<(Gui, u64)>) -> Result<(), Error> {
        self.0.place(at, ids, out)
    }
    fn vertices(&self, at: At, read: &VertexRead, of: &[Gui], out: &mut VertexRows) -> Result<(), Error> {
        self.0.vertices(at, read, of, out)
    }
    fn edges(&self, at: At, read: &EdgeRead, of: &[Edge], out: &mut EdgeRows) -> Result<(), Error> {
        self.0.edges(at, read, of, out)
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
    fn degrees(&self, at: At, request: &Expand, of: &[Gui], out: &mut Vec<u64>) -> Result<(), Error> {
        self.0.degrees(at, request, of, out)
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
    fn scan_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut EdgeRuns,
    ) -> Result<Option<ScanCursor>, Error> {
        self.0.scan_edges(at, scan, from, out)
    }
    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
}

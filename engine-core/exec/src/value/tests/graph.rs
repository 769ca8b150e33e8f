//! A graph in memory that answers the few requests that expressions make, and counts them.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegraph_apl::{
    Apl, At, Catalog, CellMeta, Cursor, EdgeRead, EdgeRows, EdgeRuns, EdgeScan, Error, Expand, Expansion,
    Projection, PropertyCell, ScanCursor, Statistics, VertexRead, VertexRows, VertexScan,
};
use tidegraph_types::{Cardinality, Edge, Gui, Sid, Str, Token, Value};

struct Vertex {
    gui: Gui,
    id: &'static str,
    labels: Vec<Token>,
    cells: Vec<PropertyCell>,
    /// Which cell, key, value.
    meta: Vec<(usize, Token, Value)>,
}

struct EdgeEntry {
    edge: Edge,
    id: &'static str,
    cells: Vec<PropertyCell>,
}

/// Vertices and edges in order of insertion.
#[derive(Default)]
pub(super) struct Graph {
    vertices: Vec<Vertex>,
    edges: Vec<EdgeEntry>,
    tokens: Mutex<Vec<Str>>,
    /// Calls of `vertices` and `edges`.
    pub calls: AtomicUsize,
    /// Vertices and edges that were asked for in all calls.
    pub asked: AtomicUsize,
}

impl Graph {
    fn make_token(&self, name: &str) -> Token {
        let mut names = self.tokens.lock().expect("not poisoned");
        match names.iter().position(|known| known == name) {
            Some(at) => Token(at as u32),
            None => {
                names.push(name.into());
                Token(names.len() as u32 - 1)
            }
        }
    }

    fn cells(&self, properties: &[(&str, Value)]) -> Vec<PropertyCell> {
        let cell = |(key, value): &(&str, Value)| PropertyCell {
            key: self.make_token(key),
            cardinality: Cardinality::Set,
            value: value.clone(),
        };
        properties.iter().map(cell).collect()
    }

    pub fn vertex(&mut self, gui: u64, id: &'static str, labels: &[&str], properties: &[(&str, Value)]) {
        let labels = labels.iter().map(|label| self.make_token(label)).collect();
        let cells = self.cells(properties);
        self.vertices.push(Vertex { gui: Gui(gui), id, labels, cells, meta: vec![] });
    }

    /// Gives one value of the newest vertex a meta-property.
    pub fn annotate(&mut self, cell: usize, key: &str, value: impl Into<Value>) {
        let meta = (cell, self.make_token(key), value.into());
        self.vertices.last_mut().expect("a vertex").meta.push(meta);
    }

    pub fn edge(
        &mut self,
        (sid, id): (u64, &'static str),
        (source, target): (u64, u64),
        label: &str,
        properties: &[(&str, Value)],
    ) -> Edge {
        let label = self.make_token(label);
        let edge = Edge { sid: Sid(sid), source: Gui(source), target: Gui(target), label };
        let cells = self.cells(properties);
        self.edges.push(EdgeEntry { edge, id, cells });
        edge
    }

    /// Calls since this was asked last.
    pub fn take_calls(&self) -> usize {
        self.calls.swap(0, Ordering::Relaxed)
    }

    fn count(&self, asked: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.asked.fetch_add(asked, Ordering::Relaxed);
    }
}

fn project(cells: &[PropertyCell], projection: &Projection, out: &mut Vec<PropertyCell>) {
    out.extend(
        cells
            .iter()
            .filter(|cell| match projection {
                Projection::None => false,
                Projection::All => true,
                Projection::Keys(keys) => keys.contains(&cell.key),
            })
            .cloned(),
    );
}

impl Apl for Graph {
    fn resolve_vertices(&self, _: At, ids: &[Str], out: &mut Vec<Option<Gui>>) -> Result<(), Error> {
        out.extend(ids.iter().map(|_| None));
        Ok(())
    }

    fn resolve_edges(&self, _: At, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        out.extend(ids.iter().map(|_| None));
        Ok(())
    }

    fn place(&self, _: At, ids: &[(Str, u64)], out: &mut Vec<(Gui, u64)>) -> Result<(), Error> {
        out.extend(ids.iter().map(|(_, salt)| (Gui(0), *salt)));
        Ok(())
    }

    fn vertices(&self, _: At, read: &VertexRead, guis: &[Gui], out: &mut VertexRows) -> Result<(), Error> {
        self.count(guis.len());
        for gui in guis {
            let vertex = self.vertices.iter().find(|vertex| vertex.gui == *gui);
            out.present.push(vertex.is_some());
            if read.ids {
                out.ids.push(vertex.map_or(Str::default(), |v| v.id.into()));
            }
            if read.labels {
                out.labels.extend(vertex.iter().flat_map(|v| &v.labels));
                out.label_ends.push(out.labels.len() as u32);
            }
            if read.properties != Projection::None {
                let first = out.cells.len();
                project(vertex.map_or(&[], |v| &v.cells), &read.properties, &mut out.cells);
                out.cell_ends.push(out.cells.len() as u32);
                if read.meta {
                    assert_eq!(read.properties, Projection::All, "this graph knows no other way");
                    let meta = |(cell, key, value): &(usize, Token, Value)| CellMeta {
                        cell: (first + cell) as u32,
                        key: *key,
                        value: value.clone(),
                    };
                    out.meta.extend(vertex.iter().flat_map(|v| &v.meta).map(meta));
                }
            }
        }
        Ok(())
    }

    fn edges(&self, _: At, read: &EdgeRead, edges: &[Edge], out: &mut EdgeRows) -> Result<(), Error> {
        self.count(edges.len());
        for edge in edges {
            let entry = self.edges.iter().find(|entry| entry.edge.sid == edge.sid);
            out.present.push(entry.is_some());
            if read.ids {
                out.ids.push(entry.map_or(Str::default(), |e| e.id.into()));
            }
            if read.properties != Projection::None {
                project(entry.map_or(&[], |e| &e.cells), &read.properties, &mut out.cells);
                out.cell_ends.push(out.cells.len() as u32);
            }
        }
        Ok(())
    }

    fn expand(
        &self,
        _: At,
        _: &Expand,
        _: &[Gui],
        _: Cursor,
        _: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        Ok(None)
    }

    fn degrees(&self, _: At, _: &Expand, guis: &[Gui], out: &mut Vec<u64>) -> Result<(), Error> {
        out.resize(out.len() + guis.len(), 0);
        Ok(())
    }

    fn scan_vertices(
        &self,
        _: At,
        _: &VertexScan,
        _: ScanCursor,
        _: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        Ok(None)
    }

    fn scan_edges(
        &self,
        _: At,
        _: &EdgeScan,
        _: ScanCursor,
        _: &mut EdgeRuns,
    ) -> Result<Option<ScanCursor>, Error> {
        Ok(None)
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}

impl Catalog for Graph {
    fn token(&self, name: &str) -> Option<Token> {
        let names = self.tokens.lock().expect("not poisoned");
        let at = names.iter().position(|known| known == name);
        at.map(|at| Token(at as u32))
    }

    fn name(&self, token: Token) -> Str {
        self.tokens.lock().expect("not poisoned")[token.0 as usize].clone()
    }

    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        Ok(names.iter().map(|name| self.make_token(name)).collect())
    }

    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        Ok(0..count)
    }
}

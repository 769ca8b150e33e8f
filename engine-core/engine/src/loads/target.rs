//! What a load asks of the graph.

use crate::backend::{Asking, Backend, Reader};
use std::ops::Range;
use tidegraph_apl::{
    At, EdgeRead, EdgeRows, Projection, PropertyPredicate, ScanCursor, Test, VertexRead, VertexRows,
    VertexScan,
};
use tidegraph_load::Error;
use tidegraph_load::run::{Found, LoadTarget};
use tidegraph_types::{Edge, Gui, GuiHasher, PartitionCount, Str, Token, Value};

/// The graph at one version, which the caller has pinned.
pub(super) struct GraphTarget<'a> {
    backend: &'a dyn Backend,
    apl: Reader<'a>,
    at: At,
}

impl<'a> GraphTarget<'a> {
    pub fn new(backend: &'a dyn Backend, at: At) -> Self {
        Self { backend, apl: backend.reader(Asking::default()), at }
    }
}

fn target(error: impl Into<crate::Error>) -> Error {
    let error = error.into();
    Error::target(error.code(), error.to_string())
}

fn unique<T: Copy + Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}

impl LoadTarget for GraphTarget<'_> {
    fn graph(&self) -> &str {
        "graph"
    }

    fn partitions(&self) -> PartitionCount {
        self.backend.partitions()
    }

    fn hasher(&self) -> GuiHasher {
        self.backend.hasher()
    }

    fn is_empty(&self) -> Result<bool, Error> {
        self.backend.is_empty(self.at.version).map_err(target)
    }

    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        self.backend.catalog().intern(names).map_err(target)
    }

    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        self.backend.catalog().allocate_sids(count).map_err(target)
    }

    fn vertices(&self, ids: &[Str]) -> Result<Vec<Found>, Error> {
        let mut guis = Vec::with_capacity(ids.len());
        self.apl.resolve_vertices(self.at, ids, &mut guis).map_err(target)?;
        let absent: Vec<(Str, u64)> =
            ids.iter().zip(&guis).filter(|(_, gui)| gui.is_none()).map(|(id, _)| (id.clone(), 0)).collect();
        let mut places = Vec::with_capacity(absent.len());
        self.apl.place(self.at, &absent, &mut places).map_err(target)?;
        let mut places = places.into_iter();
        let found = guis.into_iter().map(|gui| match gui {
            Some(gui) => Found::Present(gui),
            None if places.next().is_some_and(|(_, salt)| salt > 0) => Found::Taken,
            None => Found::Absent,
        });
        Ok(found.collect())
    }

    fn occupied(&self, guis: &[Gui]) -> Result<Vec<bool>, Error> {
        let mut rows = VertexRows::default();
        self.apl.vertices(self.at, &VertexRead::default(), guis, &mut rows).map_err(target)?;
        Ok(rows.present)
    }

    fn vertex_values(&self, wanted: &[(Gui, Token)]) -> Result<Vec<Vec<Value>>, Error> {
        let read = VertexRead {
            properties: Projection::Keys(unique(wanted.iter().map(|(_, key)| *key))),
            ..VertexRead::default()
        };
        let guis: Vec<Gui> = wanted.iter().map(|(gui, _)| *gui).collect();
        let mut rows = VertexRows::default();
        self.apl.vertices(self.at, &read, &guis, &mut rows).map_err(target)?;
        let values = |(row, (_, key)): (usize, &(Gui, Token))| {
            rows.cells_of(row).iter().filter(|cell| cell.key == *key).map(|cell| cell.value.clone()).collect()
        };
        Ok(wanted.iter().enumerate().map(values).collect())
    }

    fn unique_keys(&self) -> Result<Vec<(Token, Token)>, Error> {
        self.apl.unique_keys().map_err(target)
    }

    fn vertex_labels(&self, guis: &[Gui]) -> Result<Vec<Vec<Token>>, Error> {
        let read = VertexRead { labels: true, ..VertexRead::default() };
        let mut rows = VertexRows::default();
        self.apl.vertices(self.at, &read, guis, &mut rows).map_err(target)?;
        Ok((0..guis.len()).map(|row| rows.labels_of(row).to_vec()).collect())
    }

    fn holders(&self, label: Token, key: Token, value: &Value) -> Result<Vec<Gui>, Error> {
        let test = Test::Equals(value.clone());
        let scan = VertexScan {
            labels: vec![vec![label]],
            predicates: vec![PropertyPredicate::any(key, test)],
            // There is one at most, unless a load of another release made more.
            max_rows: 16,
        };
        let mut guis = Vec::new();
        self.apl.scan_vertices(self.at, &scan, ScanCursor::default(), &mut guis).map_err(target)?;
        Ok(guis)
    }

    fn edges(&self, ids: &[Str]) -> Result<Vec<Option<Edge>>, Error> {
        let mut edges = Vec::with_capacity(ids.len());
        self.apl.resolve_edges(self.at, ids, &mut edges).map_err(target)?;
        Ok(edges)
    }

    fn edge_values(&self, wanted: &[(Edge, Token)]) -> Result<Vec<Option<Value>>, Error> {
        let read = EdgeRead {
            properties: Projection::Keys(unique(wanted.iter().map(|(_, key)| *key))),
            ..EdgeRead::default()
        };
        let edges: Vec<Edge> = wanted.iter().map(|(edge, _)| *edge).collect();
        let mut rows = EdgeRows::default();
        self.apl.edges(self.at, &read, &edges, &mut rows).map_err(target)?;
        let value = |(row, (_, key)): (usize, &(Edge, Token))| {
            rows.cells_of(row).iter().find(|cell| cell.key == *key).map(|cell| cell.value.clone())
        };
        Ok(wanted.iter().enumerate().map(value).collect())
    }
}

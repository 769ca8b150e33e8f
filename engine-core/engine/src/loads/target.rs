//! Answers a load's questions about the graph.

use crate::backend::{Backend, ReadOptions};
use std::ops::Range;
use std::time::Duration;
use tidegraph_apl::{
    Apl, At, EdgeRead, EdgeRows, LookUp, LookedUp, Projection, PropertyPredicate, ScanCursor, Test,
    VertexRead, VertexRows, VertexScan,
};
use tidegraph_load::Error;
use tidegraph_load::run::{Found, LoadTarget};
use tidegraph_platform::Clock;
use tidegraph_types::{Edge, ErrorCode, Gui, GuiHasher, PartitionCount, Str, Token, Value};

/// How often a read that a fleet could not answer is repeated.
const MAX_RETRIES: u32 = 60;
/// Pause before a read is repeated.
const PAUSE: Duration = Duration::from_millis(500);

/// The graph at one version, which the caller has pinned.
///
/// A fleet does not keep a version readable for as long as a load takes, so there each read is at the newest version.
/// The load commits as one that read at the first version, so a change in between counts as a conflict.
pub(super) struct GraphTarget<'a> {
    backend: &'a dyn Backend,
    clock: &'a dyn Clock,
    at: At,
}

impl<'a> GraphTarget<'a> {
    pub fn new(backend: &'a dyn Backend, clock: &'a dyn Clock, at: At) -> Self {
        Self { backend, clock, at }
    }

    /// Reads; in a fleet repeats the read for a while if nodes do not answer.
    fn ask<T>(&self, ask: impl Fn(&dyn Apl, At) -> Result<T, tidegraph_apl::Error>) -> Result<T, Error> {
        if !self.backend.has_replicas() {
            return ask(&*self.backend.reader(ReadOptions::default()), self.at).map_err(target);
        }
        let mut tries = 0;
        loop {
            let mut at = self.backend.snapshot(None).map_err(target)?.at;
            at.version = at.version.max(self.at.version);
            match ask(&*self.backend.reader(ReadOptions::default()), at) {
                Err(error) if error.code() == ErrorCode::Unavailable && tries < MAX_RETRIES => {
                    tracing::debug!(%error, "a read of a load is repeated");
                    tries += 1;
                    self.clock.sleep(PAUSE);
                }
                other => return other.map_err(target),
            }
        }
    }
}

impl GraphTarget<'_> {
    pub(super) fn vertex_rows(&self, read: &VertexRead, guis: &[Gui]) -> Result<VertexRows, Error> {
        self.ask(|apl, at| {
            let mut rows = VertexRows::default();
            apl.vertices(at, read, guis, &mut rows)?;
            Ok(rows)
        })
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
        // `false` is always safe: the load then reads the graph more than it needs to.
        match self.backend.is_empty(self.at.version) {
            Err(error) if self.backend.has_replicas() && error.code() == ErrorCode::Unavailable => Ok(false),
            other => other.map_err(target),
        }
    }

    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        self.backend.catalog().intern(names).map_err(target)
    }

    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        self.backend.catalog().allocate_sids(count).map_err(target)
    }

    fn vertices(&self, ids: &[Str]) -> Result<Vec<Found>, Error> {
        let (guis, places) = self.ask(|apl, at| {
            let mut out = LookedUp::default();
            apl.look_up(at, ids, &LookUp { read: None, places: true }, &mut out)?;
            Ok((out.found, out.places))
        })?;
        let mut places = places.into_iter();
        let found = guis.into_iter().map(|gui| match gui {
            Some(gui) => Found::Present(gui),
            None if places.next().is_some_and(|(_, salt)| salt > 0) => Found::Taken,
            None => Found::Absent,
        });
        Ok(found.collect())
    }

    fn occupied(&self, guis: &[Gui]) -> Result<Vec<bool>, Error> {
        self.ask(|apl, at| {
            let mut rows = VertexRows::default();
            apl.vertices(at, &VertexRead::default(), guis, &mut rows)?;
            Ok(rows.present)
        })
    }

    fn vertex_values(&self, wanted: &[(Gui, Token)]) -> Result<Vec<Vec<Value>>, Error> {
        let read = VertexRead {
            properties: Projection::Keys(unique(wanted.iter().map(|(_, key)| *key))),
            ..VertexRead::default()
        };
        let guis: Vec<Gui> = wanted.iter().map(|(gui, _)| *gui).collect();
        let rows = self.vertex_rows(&read, &guis)?;
        let values = |(row, (_, key)): (usize, &(Gui, Token))| {
            rows.cells_of(row).iter().filter(|cell| cell.key == *key).map(|cell| cell.value.clone()).collect()
        };
        Ok(wanted.iter().enumerate().map(values).collect())
    }

    fn unique_keys(&self) -> Result<Vec<(Token, Token)>, Error> {
        self.ask(|apl, at| apl.unique_keys(at))
    }

    fn vertex_labels(&self, guis: &[Gui]) -> Result<Vec<Vec<Token>>, Error> {
        let read = VertexRead { labels: true, ..VertexRead::default() };
        let rows = self.vertex_rows(&read, guis)?;
        Ok((0..guis.len()).map(|row| rows.labels_of(row).to_vec()).collect())
    }

    fn holders(&self, label: Token, key: Token, value: &Value) -> Result<Vec<Gui>, Error> {
        let test = Test::Equals(value.clone());
        let scan = VertexScan {
            labels: vec![vec![label]],
            predicates: vec![PropertyPredicate::any(key, test)],
            // At most one vertex has the value, unless a load of an older release made more.
            max_rows: 16,
        };
        self.ask(|apl, at| {
            let (mut guis, mut cursor) = (Vec::new(), Some(ScanCursor::default()));
            while let Some(from) = cursor {
                cursor = apl.scan_vertices(at, &scan, from, &mut guis)?;
            }
            Ok(guis)
        })
    }

    fn edges(&self, ids: &[Str]) -> Result<Vec<Option<Edge>>, Error> {
        self.ask(|apl, at| {
            let mut edges = Vec::with_capacity(ids.len());
            apl.resolve_edges(at, ids, &mut edges)?;
            Ok(edges)
        })
    }

    fn edge_values(&self, wanted: &[(Edge, Token)]) -> Result<Vec<Option<Value>>, Error> {
        let read = EdgeRead {
            properties: Projection::Keys(unique(wanted.iter().map(|(_, key)| *key))),
            ..EdgeRead::default()
        };
        let edges: Vec<Edge> = wanted.iter().map(|(edge, _)| *edge).collect();
        let rows = self.ask(|apl, at| {
            let mut rows = EdgeRows::default();
            apl.edges(at, &read, &edges, &mut rows)?;
            Ok(rows)
        })?;
        let value = |(row, (_, key)): (usize, &(Edge, Token))| {
            rows.cells_of(row).iter().find(|cell| cell.key == *key).map(|cell| cell.value.clone())
        };
        Ok(wanted.iter().enumerate().map(value).collect())
    }
}

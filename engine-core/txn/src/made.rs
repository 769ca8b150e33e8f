//! Vertices that transactions make while a bulk load runs.
//!
//! A load gives each new vertex the GUI of its id's hash when nobody had that GUI at its read version. A transaction that
//! is committed meanwhile may give the same GUI to another id; then the load must not be committed as it is. The owner
//! notes what transactions make from before a load's read version on, and asks the load about it when it is to be
//! committed. Nothing is noted while no load runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegraph_log::{Body, Record};
use tidegraph_types::{Gui, Mutation, Str, Version};

/// The vertices that a load makes.
pub trait NewVertices: Send + fmt::Debug {
    /// Whether the load makes a vertex of another id under this GUI.
    fn collides(&self, gui: Gui, id: &str) -> bool;
}

/// Asks the owner to note the vertices that transactions make, for as long as it lives. What a load reads, it reads after
/// it got this.
#[derive(Debug)]
pub struct LoadWatch(Arc<AtomicUsize>);

impl LoadWatch {
    /// One more load runs.
    pub(crate) fn new(running: &Arc<AtomicUsize>) -> Self {
        running.fetch_add(1, Ordering::AcqRel);
        Self(running.clone())
    }
}

impl Drop for LoadWatch {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What the owner noted.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// Everything above this version was noted; `None` while no load runs.
    since: Option<Version>,
    vertices: Vec<(Version, Gui, Str)>,
}

impl Made {
    /// A load begins; `version` is the newest one that is applied.
    pub fn begin(&mut self, version: Version) {
        self.since.get_or_insert(version);
    }

    /// Notes what a durable record makes.
    pub fn note(&mut self, record: &Record) {
        if self.since.is_some() {
            self.vertices.extend(vertices(record).map(|(gui, id)| (record.version, gui, id.clone())));
        }
    }

    /// No load runs.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// A version after `read_version` that gave a GUI of the load to another id, or may have; `before` are records that
    /// come before the load's and were not noted yet.
    pub fn collision(
        &self,
        read_version: Version,
        before: &[Record],
        load: &dyn NewVertices,
    ) -> Option<Version> {
        let Some(since) = self.since.filter(|since| *since <= read_version) else {
            return Some(read_version.next());
        };
        debug_assert!(self.vertices.iter().all(|(version, ..)| *version > since));
        let first = self.vertices.partition_point(|(version, ..)| *version <= read_version);
        let noted = self.vertices[first..].iter().map(|(version, gui, id)| (*version, *gui, id));
        let pending =
            before.iter().flat_map(|record| vertices(record).map(|(gui, id)| (record.version, gui, id)));
        noted.chain(pending).find(|(_, gui, id)| load.collides(*gui, id)).map(|(version, ..)| version)
    }
}

/// The vertices that a transaction makes, or makes more of.
fn vertices(record: &Record) -> impl Iterator<Item = (Gui, &Str)> {
    let mutations = match &record.body {
        Body::Commit { mutations, .. } => mutations.as_slice(),
        _ => &[],
    };
    mutations.iter().filter_map(|mutation| match mutation {
        Mutation::CreateVertex { gui, id, .. } => Some((*gui, id)),
        _ => None,
    })
}

//! Vertices that transactions make while a bulk load runs.
//!
//! A load gives each new vertex the GUI of its id's hash when nobody had that GUI at its read version. A transaction that
//! is committed meanwhile may give the same GUI to another id; then the load must not be committed as it is. The owner
//! notes what transactions make from before a load's read version on, and asks the load about it when it is to be
//! committed. Nothing is noted while no load runs.
//!
//! A load of another process compares most of it by itself before ([`Made::above`]), so that only what came last is asked
//! about while everybody waits; what all of them have compared is forgotten.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegraph_log::{Body, Record};
use tidegraph_types::{Gui, MadeSince, MadeVertex, Mutation, Str, Version};

/// The vertices that a load makes.
pub trait NewVertices: Send + fmt::Debug {
    /// The first of these versions that gave a GUI of the load to another id, or may have. Everybody who commits waits for
    /// the answer.
    fn collision(&self, made: &mut dyn Iterator<Item = (Version, Gui, &Str)>) -> Option<Version>;
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

    /// What was made after a version, as far as `newest` and about `most_bytes`, but at least of one version; `None` if that
    /// was not noted.
    pub fn above(&self, version: Version, newest: Version, most_bytes: usize) -> Option<MadeSince> {
        self.since.filter(|since| *since <= version)?;
        let first = self.vertices.partition_point(|(made, ..)| *made <= version);
        let (mut bytes, mut some) = (0, MadeSince { upto: newest.max(version), vertices: Vec::new() });
        for (made, gui, id) in &self.vertices[first..] {
            if bytes > most_bytes && some.vertices.last().is_some_and(|last| last.version != *made) {
                some.upto = some.vertices.last().map_or(version, |last| last.version);
                break;
            }
            bytes += id.len() + 32;
            some.vertices.push(MadeVertex { version: *made, gui: *gui, id: id.clone() });
        }
        Some(some)
    }

    /// Every load that runs has compared what was made up to here.
    pub fn forget(&mut self, upto: Version) {
        if self.since.is_some_and(|since| since < upto) {
            self.since = Some(upto);
            let first = self.vertices.partition_point(|(version, ..)| *version <= upto);
            self.vertices.drain(..first);
        }
    }

    /// A version after `compared` that gave a GUI of the load to another id, or may have; `before` are records that
    /// come before the load's and were not noted yet.
    pub fn collision(&self, compared: Version, before: &[Record], load: &dyn NewVertices) -> Option<Version> {
        let Some(since) = self.since.filter(|since| *since <= compared) else {
            return Some(compared.next());
        };
        debug_assert!(self.vertices.iter().all(|(version, ..)| *version > since));
        let first = self.vertices.partition_point(|(version, ..)| *version <= compared);
        let noted = self.vertices[first..].iter().map(|(version, gui, id)| (*version, *gui, id));
        let pending =
            before.iter().flat_map(|record| vertices(record).map(|(gui, id)| (record.version, gui, id)));
        load.collision(&mut noted.chain(pending))
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

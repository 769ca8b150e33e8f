//! What transactions create and change while a bulk load runs, as far as loads depend on it.
//!
//! A load gives each new vertex the GUI of its id's hash, if no vertex had that GUI at its read version. A transaction
//! that commits meanwhile may give the same GUI to another id; then the load must not be committed. So the committer
//! records the vertices that transactions create, from before a load's read version on, and asks the load about them
//! when it commits. Nothing is recorded while no load runs.
//!
//! A load in another process compares most of these vertices by itself before it commits ([`CreatedVertices::above`]),
//! so that the committer, for which all writers wait, asks only about the last ones. Vertices that all loads have
//! compared are forgotten.
//!
//! A load also depends on the vertices and edge ids that it found, or did not find, at its read version. So the
//! committer always records which vertices transactions delete and which edge ids they take, as far back as
//! [`MOST_CHANGES`] go, and a load is refused only if it met one of them. [`Key`](tidegraph_types::Key)s cannot tell
//! that: a load meets millions. A load in another process compares most of these changes by itself as well
//! ([`CreatedVertices::changes_above`]).

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegraph_log::{Body, Record};
use tidegraph_platform::Clock;
use tidegraph_types::{
    Gui, GuiHasher, LoadChange, LoadChanges, MadeSince, MadeVertex, Mutation, Str, Version,
};

/// The vertices that a load creates.
pub trait NewVertices: Send + fmt::Debug {
    /// Returns the first of the given versions that gave a GUI of the load to another id,
    /// or may have.
    fn collision(&self, made: &mut dyn Iterator<Item = (Version, Gui, &Str)>) -> Option<Version>;

    /// Returns the first of the given versions whose change concerns the load, or may concern it. Without an own
    /// implementation every change may.
    fn depends_on(&self, changes: &mut dyn Iterator<Item = (Version, LoadChange)>) -> Option<Version> {
        changes.next().map(|(version, _)| version)
    }

    /// Returns one of the given versions with a collision or a change that concerns the load, or may.
    fn conflict(
        &self,
        made: &mut dyn Iterator<Item = (Version, Gui, &Str)>,
        changes: &mut dyn Iterator<Item = (Version, LoadChange)>,
    ) -> Option<Version> {
        self.depends_on(changes).or_else(|| self.collision(made))
    }

    /// Compares the given versions with the load, or asks another process to. All writers wait for this call, so it must
    /// not wait for anything.
    fn compare(
        &self,
        made: &mut dyn Iterator<Item = (Version, Gui, &Str)>,
        changes: &mut dyn Iterator<Item = (Version, LoadChange)>,
    ) -> Comparison {
        self.conflict(made, changes).map_or(Comparison::Free, Comparison::Conflict)
    }
}

/// Result of comparing a load with what transactions made and changed.
#[derive(Clone, Debug)]
pub enum Comparison {
    /// Nothing concerns the load.
    Free,
    /// This version concerns the load, or may.
    Conflict(Version),
    /// Another process compares and [reports](crate::Sequencer::report_load) within this limit. Until then nothing is
    /// committed.
    Asked(ReportLimit),
}

/// How long commits wait for the report of a load.
#[derive(Clone, Debug)]
pub struct ReportLimit {
    /// The clock that measures the time.
    pub clock: Arc<dyn Clock>,
    /// The longest time.
    pub within: Duration,
}

/// Makes the committer record the vertices that transactions create, until it is dropped. A load gets one before it
/// picks its read version.
#[derive(Debug)]
pub struct LoadWatch(Arc<AtomicUsize>);

impl LoadWatch {
    /// Counts one more running load.
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

/// The recorded vertices and changes.
#[derive(Debug)]
pub(crate) struct CreatedVertices {
    /// Vertices of all versions above this one are recorded; `None` while no load runs.
    since: Option<Version>,
    vertices: Vec<(Version, Gui, Str)>,
    /// Changes of all versions above `changes_since`, in order.
    changes: VecDeque<(Version, LoadChange)>,
    changes_since: Version,
}

/// Maximum number of changes that are recorded; they take 24 bytes each.
const MOST_CHANGES: usize = 1 << 20;

impl CreatedVertices {
    /// Starts with nothing: changes up to `version` are unknown.
    pub fn new(version: Version) -> Self {
        Self { since: None, vertices: Vec::new(), changes: VecDeque::new(), changes_since: version }
    }

    /// Starts recording for a load; `version` is the newest applied one.
    pub fn begin(&mut self, version: Version) {
        self.since.get_or_insert(version);
    }

    /// Records the vertices that a durable record creates, and its changes.
    pub fn note(&mut self, record: &Record) {
        if self.since.is_some() {
            self.vertices.extend(vertices(record).map(|(gui, id)| (record.version, gui, id.clone())));
        }
        self.changes.extend(changes(record));
        while self.changes.len() > MOST_CHANGES
            && let Some((version, _)) = self.changes.pop_front()
        {
            self.changes_since = version;
        }
    }

    /// Compares a load with the versions that it has not compared. It has compared vertices up to `compared` and changes
    /// up to `changes_compared`. `may` is the newest version with a change after that. `before` are the records of the
    /// group before the load's, which are not recorded yet.
    pub fn compare(
        &self,
        compared: Version,
        changes_compared: Version,
        may: Option<Version>,
        before: &[Record],
        load: &dyn NewVertices,
    ) -> Comparison {
        let Some(since) = self.since.filter(|since| *since <= compared) else {
            return Comparison::Conflict(compared.next());
        };
        debug_assert!(self.vertices.iter().all(|(version, ..)| *version > since));
        if let Some(may) = may.filter(|_| self.changes_since > changes_compared) {
            return Comparison::Conflict(may);
        }
        let first = self.vertices.partition_point(|(version, ..)| *version <= compared);
        let noted = self.vertices[first..].iter().map(|(version, gui, id)| (*version, *gui, id));
        let pending =
            before.iter().flat_map(|record| vertices(record).map(|(gui, id)| (record.version, gui, id)));
        let first = self.first_change_above(changes_compared);
        let changed = self.changes.range(first..).copied();
        load.compare(&mut noted.chain(pending), &mut changed.chain(before.iter().flat_map(changes)))
    }

    /// The changes after `version` and up to `newest`: about `most` of them, but those of at least one version.
    pub fn changes_above(&self, version: Version, newest: Version, most: usize) -> LoadChanges {
        let mut some =
            LoadChanges { since: self.changes_since, upto: newest.max(version), changes: Vec::new() };
        for (changed, change) in self.changes.range(self.first_change_above(version)..) {
            if let Some((last, _)) = some.changes.last()
                && some.changes.len() >= most
                && last != changed
            {
                some.upto = *last;
                break;
            }
            some.changes.push((*changed, *change));
        }
        some
    }

    fn first_change_above(&self, version: Version) -> usize {
        self.changes.partition_point(|(changed, _)| *changed <= version)
    }

    /// Stops recording: no load runs.
    pub fn end(&mut self) {
        (self.since, self.vertices) = (None, Vec::new());
    }

    /// Vertices created after `version` and up to `newest`: about `most_bytes` of them, but those of at least one
    /// version. `None` if they were not recorded.
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

    /// Drops vertices up to a version that every running load has compared with its own.
    pub fn forget(&mut self, upto: Version) {
        if self.since.is_some_and(|since| since < upto) {
            self.since = Some(upto);
            let first = self.vertices.partition_point(|(version, ..)| *version <= upto);
            self.vertices.drain(..first);
        }
    }
}

/// The changes of a record that loads depend on.
fn changes(record: &Record) -> impl Iterator<Item = (Version, LoadChange)> {
    let (mutations, load) = match &record.body {
        Body::Commit { mutations, .. } => (mutations.as_slice(), None),
        Body::Load { .. } => (&[][..], Some(LoadChange::Any)),
        _ => (&[][..], None),
    };
    load_changes(mutations).chain(load).map(|change| (record.version, change))
}

/// The changes of a transaction that loads depend on.
pub(crate) fn load_changes(mutations: &[Mutation]) -> impl Iterator<Item = LoadChange> {
    mutations.iter().filter_map(|mutation| match mutation {
        Mutation::DeleteVertex { gui, .. } => Some(LoadChange::Deleted(*gui)),
        // All bits of the hash of an edge's id count, however many those of vertices have.
        Mutation::CreateEdge { id: Some(id), .. } => {
            Some(LoadChange::EdgeId(GuiHasher::default().edge_id(id)))
        }
        Mutation::AddException { .. } | Mutation::Reset => Some(LoadChange::Any),
        _ => None,
    })
}

/// The vertices that a transaction creates or adds to.
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

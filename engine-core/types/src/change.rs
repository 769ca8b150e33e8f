//! Changes as the change stream tells them: by the user's ids, with the values that were replaced or removed.
//!
//! A [`Mutation`](crate::Mutation) says what storage has to do, by internal numbers. A [`Change`] says what became
//! different, so that it stays readable after its element is deleted.

use crate::{Str, Token, Value, Version};
use std::fmt;

/// What a transaction changed, for the change stream.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Changes {
    /// When the sequencer's process took the commit, in milliseconds since 1970; 0 before that.
    pub taken_ms: i64,
    /// The changes, in an order in which a reader can apply them.
    pub list: Vec<Change>,
}

/// One thing that a transaction added or removed.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Whether it was removed; otherwise it was added.
    pub removed: bool,
    /// The user's id of the vertex or the edge.
    pub id: Str,
    /// What was added or removed.
    pub what: Changed,
}

/// The part of an element that a change adds or removes.
#[derive(Clone, PartialEq, Debug)]
pub enum Changed {
    /// A label of a vertex; `None`: the vertex has no label.
    VertexLabel(Option<Token>),
    /// A value of a property of a vertex.
    VertexProperty(Token, Value),
    /// An edge.
    Edge {
        /// Label.
        label: Token,
        /// Id of the source vertex.
        from: Str,
        /// Id of the target vertex.
        to: Str,
    },
    /// A property of an edge.
    EdgeProperty(Token, Value),
}

impl Change {
    /// Estimates its bytes in the log and in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        const FIXED: usize = 24;
        let what = match &self.what {
            Changed::VertexLabel(_) => 0,
            Changed::VertexProperty(_, value) | Changed::EdgeProperty(_, value) => {
                value.as_str().map_or(8, str::len)
            }
            Changed::Edge { from, to, .. } => from.len() + to.len(),
        };
        FIXED + self.id.len() + what
    }
}

impl Changes {
    /// Estimates the bytes of all changes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.list.iter().map(Change::bytes).sum()
    }
}

/// The place of a change in the change stream: the version of its commit, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EventId {
    /// Version of the commit.
    pub commit: Version,
    /// Number of the change in the commit, from 1.
    pub op: u64,
}

/// Where to begin to read the change stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangesFrom {
    /// At this change, or at the next one that there is.
    At(EventId),
    /// Behind this change.
    After(EventId),
    /// At the oldest change that is kept.
    Oldest,
    /// At the newest change.
    Newest,
}

/// A request for changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangesRequest {
    /// Where to begin.
    pub from: ChangesFrom,
    /// Maximum number of changes; at least 1.
    pub limit: usize,
    /// The answer ends with the change that reaches this many bytes, by [`Change::bytes`] and 160 bytes for each.
    pub bytes: usize,
}

/// Changes in order; never empty.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ChangesPage {
    /// The commits, or the parts of them that fit.
    pub commits: Vec<ChangesOfCommit>,
}

/// Changes of one commit that follow each other.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangesOfCommit {
    /// Number of the first of them in the commit, from 1.
    pub first: EventId,
    /// Whether the commit has no later changes.
    pub is_end: bool,
    /// The changes, and when the sequencer's process took the commit.
    pub changes: Changes,
}

/// Why there are no changes to answer with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoChanges {
    /// The stream has no such change yet: ask again later.
    NotYet(String),
    /// The stream does not tell all that happened since: copy the graph anew.
    Expired(String),
}

impl fmt::Display for NoChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotYet(message) | Self::Expired(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for NoChanges {}

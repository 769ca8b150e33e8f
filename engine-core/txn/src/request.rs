//! Requests of callers to the committer, and the checks before a request is queued.

use crate::created::{NewVertices, ReportLimit};
use crate::{Error, SequencerConfig};
use std::sync::mpsc::SyncSender;
use tidegraph_types::{CommitRequest, Key, Mutation, PropertyWrite, RequestId, Str, Token, Value, Version};

/// A bulk load that is to become visible.
#[derive(Debug)]
pub struct LoadCommit {
    /// Id of the load.
    pub load_id: String,
    /// Paths of its segments in the object store.
    pub segments: Vec<String>,
    /// The version at which the load checked its input.
    pub read_version: Version,
    /// Keys that it checked besides vertices, edge ids and salted GUIs.
    pub read_keys: Vec<Key>,
    /// The load has compared the vertices that transactions created up to this version with its own: its read version,
    /// or a later one.
    pub compared: Version,
    /// The load has compared the vertices that transactions deleted and the edge ids that they took up to this version
    /// with its own: its read version, or a later one.
    pub changes_compared: Version,
    /// A version that existed before the first attempt to commit this load, if there may be several attempts: then the
    /// load is committed once (TXN-4), by the request id made from its load id ([`RequestId::of_text`]).
    pub first_asked: Option<Version>,
    /// The vertices that it creates.
    pub vertices: Box<dyn NewVertices>,
}

/// Progress of the commit of a bulk load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadProgress {
    /// The load can be read from this version on.
    Committed(Version),
    /// The load was asked to compare itself with the last changes; the number names the question. Commits wait for its
    /// [report](crate::Sequencer::report_load).
    Asked(u64),
}

/// A load that was asked to compare itself with the last changes, and has not reported yet.
pub(crate) struct AskedLoad {
    pub load: LoadCommit,
    pub limit: ReportLimit,
    pub reply: Reply<LoadProgress>,
}

/// Message to a caller that waits.
#[derive(Debug)]
pub(crate) enum Wakeup<T> {
    /// Its answer.
    Answer(Result<T, Error>),
    /// The caller leads now: it commits the waiting requests, its own among them.
    Lead,
}

/// Callback with an answer. The leader calls it, so it must not wait.
pub type OnAnswer<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

/// How a caller gets its answer. A caller that is gone is ignored.
#[derive(Debug)]
pub(crate) enum Reply<T> {
    /// The caller's thread waits and can lead. This is a channel of the standard library: crossbeam's yields the
    /// processor four times before it sleeps, and with many callers that took a third of their time.
    Waits(SyncSender<Wakeup<T>>),
    /// The caller does not wait; a callback receives the answer.
    Callback(Callback<T>),
}

/// The callback of a caller that does not wait. It always runs; if the request is dropped, with [`Error::InDoubt`].
pub(crate) struct Callback<T>(Option<OnAnswer<T>>);

impl<T> Callback<T> {
    pub fn new(on_answer: OnAnswer<T>) -> Self {
        Self(Some(on_answer))
    }

    fn call(&mut self, answer: Result<T, Error>) {
        if let Some(on_answer) = self.0.take() {
            on_answer(answer);
        }
    }
}

impl<T> Drop for Callback<T> {
    fn drop(&mut self) {
        self.call(Err(Error::in_doubt(LOST)));
    }
}

impl<T> std::fmt::Debug for Callback<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callback").finish_non_exhaustive()
    }
}

pub(crate) const LOST: &str = "the sequencer stopped before it answered";

/// Result of making a caller lead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handover {
    /// The caller leads.
    Taken,
    /// The caller is gone, and its request with it.
    Gone,
    /// The caller has no thread to lead with.
    NoThread,
}

impl<T> Reply<T> {
    /// Sends the answer.
    pub fn send(self, answer: Result<T, Error>) {
        match self {
            Self::Waits(caller) => drop(caller.send(Wakeup::Answer(answer))),
            Self::Callback(mut caller) => caller.call(answer),
        }
    }

    fn lead(&self) -> Handover {
        match self {
            Self::Waits(caller) => {
                if caller.send(Wakeup::Lead).is_ok() {
                    Handover::Taken
                } else {
                    Handover::Gone
                }
            }
            Self::Callback(_) => Handover::NoThread,
        }
    }
}

/// One request to the committer.
#[derive(Debug)]
pub(crate) enum Request {
    Commit {
        request: CommitRequest,
        bytes: usize,
        /// Whether it is refused because of the turn of a load, unless it was committed before.
        yields: bool,
        reply: Reply<Version>,
    },
    Load {
        load: LoadCommit,
        /// As for a commit.
        yields: bool,
        reply: Reply<LoadProgress>,
    },
    Intern {
        names: Vec<Str>,
        reply: Reply<Vec<Token>>,
    },
    /// Reserves `count` more SIDs for other processes; 0 to test that the log takes records of this epoch.
    Reserve {
        count: u64,
        reply: Reply<Version>,
    },
    Outcome {
        id: RequestId,
        since: Version,
        /// Whether the id is made from a key of the caller.
        by_key: bool,
        reply: Reply<Option<Version>>,
    },
    Trim {
        below: Version,
        reply: Reply<()>,
    },
    /// Makes all committed records durable.
    Sync {
        reply: Reply<()>,
    },
    Stop {
        reply: Reply<()>,
    },
}

impl Request {
    /// Approximate size of the record in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Commit { bytes, .. } => *bytes,
            Self::Load { load, .. } => load.segments.iter().map(|s| s.len() + 8).sum(),
            Self::Intern { names, .. } => names.iter().map(|n| n.len() + 16).sum(),
            Self::Reserve { .. }
            | Self::Outcome { .. }
            | Self::Trim { .. }
            | Self::Sync { .. }
            | Self::Stop { .. } => 0,
        }
    }

    /// Id under which a commit is known (TXN-4).
    pub fn id(&self) -> Option<RequestId> {
        match self {
            Self::Commit { request, .. } => request.request,
            Self::Load { load, .. } => Some(RequestId::of_text(&load.load_id)),
            _ => None,
        }
    }

    /// Makes a commit yield to the turn of a load.
    pub fn yield_to_load(&mut self) {
        if let Self::Commit { yields, .. } | Self::Load { yields, .. } = self {
            *yields = true;
        }
    }

    /// Answers with an error.
    pub fn refuse(self, error: Error) {
        match self {
            Self::Commit { reply, .. } | Self::Reserve { reply, .. } => reply.send(Err(error)),
            Self::Load { load, reply, .. } => {
                // A caller with an answer may begin the load again at once.
                drop(load);
                reply.send(Err(error));
            }
            Self::Outcome { reply, .. } => reply.send(Err(error)),
            Self::Intern { reply, .. } => reply.send(Err(error)),
            Self::Trim { reply, .. } | Self::Sync { reply } | Self::Stop { reply } => reply.send(Err(error)),
        }
    }

    /// Whether the caller has no thread to lead with and the request takes microseconds where the log does not wait.
    pub fn is_brief(&self) -> bool {
        matches!(self, Self::Commit { reply: Reply::Callback(_), .. })
    }

    /// Makes the caller lead.
    pub fn lead(&self) -> Handover {
        match self {
            Self::Commit { reply, .. } | Self::Reserve { reply, .. } => reply.lead(),
            Self::Load { reply, .. } => reply.lead(),
            Self::Outcome { reply, .. } => reply.lead(),
            Self::Intern { reply, .. } => reply.lead(),
            Self::Trim { reply, .. } | Self::Sync { reply } | Self::Stop { reply } => reply.lead(),
        }
    }
}

/// Checks limits and values of a transaction; returns its approximate size in the log, in bytes.
pub(crate) fn check(request: &CommitRequest, config: &SequencerConfig) -> Result<usize, Error> {
    let count = request.mutations.len();
    if count > config.transaction_mutations {
        return Err(Error::TooLarge { what: "changes", found: count, limit: config.transaction_mutations });
    }
    let mut bytes = 0_usize;
    for mutation in &request.mutations {
        bytes = bytes.saturating_add(mutation_bytes(mutation)?);
    }
    if let Some(changes) = &request.changes {
        bytes = bytes.saturating_add(changes.bytes());
    }
    if bytes > config.transaction_bytes {
        return Err(Error::TooLarge { what: "bytes", found: bytes, limit: config.transaction_bytes });
    }
    Ok(bytes)
}

fn mutation_bytes(mutation: &Mutation) -> Result<usize, Error> {
    const FIXED: usize = 48;
    let write = |w: &PropertyWrite| value_bytes(&w.value);
    Ok(FIXED
        + match mutation {
            Mutation::CreateVertex { id, labels, properties, .. } => {
                let properties: usize = properties.iter().map(write).sum::<Result<_, _>>()?;
                id.len() + 5 * labels.len() + properties
            }
            Mutation::AddLabels { labels, .. } | Mutation::RemoveLabels { labels, .. } => 5 * labels.len(),
            Mutation::SetVertexProperty { write: w, .. } => write(w)?,
            Mutation::RemoveVertexProperty { value, .. } => value.as_ref().map_or(Ok(0), value_bytes)?,
            Mutation::SetMetaProperty { of, value, .. } => {
                value_bytes(of)? + value.as_ref().map_or(Ok(0), value_bytes)?
            }
            Mutation::CreateEdge { id, properties, .. } => {
                let properties: usize =
                    properties.iter().map(|(_, v)| value_bytes(v)).sum::<Result<_, _>>()?;
                id.as_ref().map_or(0, |id| id.len()) + properties
            }
            Mutation::DeleteEdge { id, .. } => id.as_ref().map_or(0, |id| id.len()),
            Mutation::SetEdgeProperty { value, .. } => value_bytes(value)?,
            Mutation::AddException { id, .. } => id.len(),
            Mutation::DefineIndex { index } => index.name.len(),
            Mutation::DropIndex { name } => name.len(),
            Mutation::DeleteVertex { .. } | Mutation::RemoveEdgeProperty { .. } | Mutation::Reset => 0,
        })
}

fn value_bytes(value: &Value) -> Result<usize, Error> {
    if !value.is_storable() {
        return Err(Error::NotStorable { type_name: value.type_name() });
    }
    Ok(24 + value.as_str().map_or_else(|| value.heap_bytes(), str::len))
}

/// Whether a transaction changes what a bulk load checks its input against: which vertices exist, which edge ids are
/// taken, which ids have a salted GUI.
pub(crate) fn is_checked_by_loads(mutations: &[Mutation]) -> bool {
    mutations.iter().any(|mutation| {
        matches!(
            mutation,
            Mutation::DeleteVertex { .. }
                | Mutation::CreateEdge { id: Some(_), .. }
                | Mutation::AddException { .. }
                | Mutation::Reset
        )
    })
}

//! What callers ask the owner, and what can be checked before it is asked.

use crate::made::NewVertices;
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
    /// What it checked besides vertices, edge ids and salted GUIs.
    pub read_keys: Vec<Key>,
    /// Up to here the load has compared the vertices that transactions made with its own: its read version, or a later one.
    pub compared: Version,
    /// A version that was there before this load was asked to be committed for the first time, if that may be asked again: then
    /// it is committed once, by the id that its own one stands for ([`RequestId::of_text`]).
    pub first_asked: Option<Version>,
    /// The vertices that it makes.
    pub vertices: Box<dyn NewVertices>,
}

/// What a caller who waits is told.
#[derive(Debug)]
pub(crate) enum Word<T> {
    /// Its answer.
    Answer(Result<T, Error>),
    /// It is its turn to serve what waits, its own request too.
    Lead,
}

/// What is called with an answer. It must not wait: who leads calls it.
pub type Ended<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

/// Where a caller hears. One that is gone does not matter.
#[derive(Debug)]
pub(crate) enum Reply<T> {
    /// On its thread, which waits and can lead. By a channel of the standard library: crossbeam's gives the processor away four times
    /// before it sleeps, and with many callers that took a third of their time.
    Waits(SyncSender<Word<T>>),
    /// It goes on with something else until it is called.
    Called(Called<T>),
}

/// A caller that does not wait. It is called in any case: when its request is lost, with that.
pub(crate) struct Called<T>(Option<Ended<T>>);

impl<T> Called<T> {
    pub fn new(ended: Ended<T>) -> Self {
        Self(Some(ended))
    }

    fn call(&mut self, answer: Result<T, Error>) {
        if let Some(ended) = self.0.take() {
            ended(answer);
        }
    }
}

impl<T> Drop for Called<T> {
    fn drop(&mut self) {
        self.call(Err(Error::unavailable(LOST)));
    }
}

impl<T> std::fmt::Debug for Called<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Called").finish_non_exhaustive()
    }
}

const LOST: &str = "the sequencer stopped before it answered";

/// What came of telling a caller to lead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// It does.
    Taken,
    /// It is gone, and with it the wish.
    Gone,
    /// It has no thread to do so.
    NoThread,
}

impl<T> Reply<T> {
    /// Answers.
    pub fn send(self, answer: Result<T, Error>) {
        match self {
            Self::Waits(caller) => drop(caller.send(Word::Answer(answer))),
            Self::Called(mut caller) => caller.call(answer),
        }
    }

    fn lead(&self) -> Turn {
        match self {
            Self::Waits(caller) => {
                if caller.send(Word::Lead).is_ok() {
                    Turn::Taken
                } else {
                    Turn::Gone
                }
            }
            Self::Called(_) => Turn::NoThread,
        }
    }
}

/// One request to the owner.
#[derive(Debug)]
pub(crate) enum Request {
    Commit {
        request: CommitRequest,
        bytes: usize,
        reply: Reply<Version>,
    },
    Load {
        load: LoadCommit,
        reply: Reply<Version>,
    },
    Intern {
        names: Vec<Str>,
        reply: Reply<Vec<Token>>,
    },
    /// SIDs for other processes, so many more than were handed out; none, to see that the log takes records of this epoch.
    Reserve {
        count: u64,
        reply: Reply<Version>,
    },
    Outcome {
        id: RequestId,
        since: Version,
        reply: Reply<Option<Version>>,
    },
    Trim {
        below: Version,
        reply: Reply<()>,
    },
    /// Everything that was committed is to be durable.
    Sync {
        reply: Reply<()>,
    },
    Stop {
        reply: Reply<()>,
    },
}

impl Request {
    /// Roughly how many bytes the record will have.
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

    /// Answers with an error.
    pub fn refuse(self, error: Error) {
        match self {
            Self::Commit { reply, .. } | Self::Load { reply, .. } | Self::Reserve { reply, .. } => {
                reply.send(Err(error))
            }
            Self::Outcome { reply, .. } => reply.send(Err(error)),
            Self::Intern { reply, .. } => reply.send(Err(error)),
            Self::Trim { reply, .. } | Self::Sync { reply } | Self::Stop { reply } => reply.send(Err(error)),
        }
    }

    /// Whether its caller has no thread to lead, and it is served within moments where the log does not wait.
    pub fn is_brief(&self) -> bool {
        matches!(self, Self::Commit { reply: Reply::Called(_), .. })
    }

    /// Tells the caller to serve what waits.
    pub fn lead(&self) -> Turn {
        match self {
            Self::Commit { reply, .. } | Self::Load { reply, .. } | Self::Reserve { reply, .. } => {
                reply.lead()
            }
            Self::Outcome { reply, .. } => reply.lead(),
            Self::Intern { reply, .. } => reply.lead(),
            Self::Trim { reply, .. } | Self::Sync { reply } | Self::Stop { reply } => reply.lead(),
        }
    }
}

/// Checks limits and values of a transaction; answers its size in bytes, roughly as the log has it.
pub(crate) fn check(request: &CommitRequest, config: &SequencerConfig) -> Result<usize, Error> {
    let count = request.mutations.len();
    if count > config.transaction_mutations {
        return Err(Error::TooLarge { what: "changes", found: count, limit: config.transaction_mutations });
    }
    let mut bytes = 0_usize;
    for mutation in &request.mutations {
        bytes = bytes.saturating_add(mutation_bytes(mutation)?);
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
            Mutation::DeleteVertex { .. } | Mutation::RemoveEdgeProperty { .. } => 0,
        })
}

fn value_bytes(value: &Value) -> Result<usize, Error> {
    if !value.is_storable() {
        return Err(Error::NotStorable { type_name: value.type_name() });
    }
    Ok(24 + value.as_str().map_or(0, str::len))
}

/// Whether a transaction changes what a bulk load checks its input against: which vertices are there to be
/// referred to, which edge ids are taken, which ids have a salted GUI.
pub(crate) fn is_checked_by_loads(mutations: &[Mutation]) -> bool {
    mutations.iter().any(|mutation| {
        matches!(
            mutation,
            Mutation::DeleteVertex { .. }
                | Mutation::CreateEdge { id: Some(_), .. }
                | Mutation::AddException { .. }
        )
    })
}

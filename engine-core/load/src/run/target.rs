//! The interfaces of a load: to the graph that it loads into, and to its caller.
//!
//! The embedded engine answers from its own store, a load Lambda over the wire; the load knows neither. Every question
//! is about a whole batch.

use crate::error::Error;
use std::ops::Range;
use tidegraph_types::{Edge, Gui, GuiHasher, PartitionCount, Str, Token, Value};

/// Answer of the graph about a vertex id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// The vertex exists, under this GUI.
    Present(Gui),
    /// There is no such vertex, and its unsalted GUI is free.
    Absent,
    /// There is no such vertex, and its unsalted GUI belongs to another id.
    Taken,
}

/// The graph that a load writes to, read at one version. Answers are in the order of the questions.
///
/// The answers must still hold when the load is committed. The committer either refuses a load if a later transaction
/// changed an answer, or blocks such transactions. [`super::VertexIds`] tells which new vertices conflict.
///
/// Every method returns [`Error::Target`] if the graph cannot answer.
pub trait LoadTarget {
    /// Returns the name of the graph, which segments contain.
    fn graph(&self) -> &str;

    /// Returns the partition count of the graph.
    fn partitions(&self) -> PartitionCount;

    /// Returns the hasher that turns ids into GUIs.
    fn hasher(&self) -> GuiHasher;

    /// Whether the graph has no vertex. The load then asks nothing about vertices and edges.
    fn is_empty(&self) -> Result<bool, Error>;

    /// Returns the tokens of labels and keys; assigns new ones.
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error>;

    /// Allocates SIDs that nothing else gets (IDS-1).
    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error>;

    /// Looks up vertex ids.
    fn vertices(&self, ids: &[Str]) -> Result<Vec<Found>, Error>;

    /// Whether any vertex has this GUI.
    fn occupied(&self, guis: &[Gui]) -> Result<Vec<bool>, Error>;

    /// Returns the values of vertex properties; empty where the vertex or the key does not exist.
    fn vertex_values(&self, wanted: &[(Gui, Token)]) -> Result<Vec<Vec<Value>>, Error>;

    /// Returns label and key of each uniqueness constraint: no two vertices of the label may have one value for the
    /// key.
    fn unique_keys(&self) -> Result<Vec<(Token, Token)>, Error> {
        Ok(Vec::new())
    }

    /// Returns the labels of vertices; empty where the vertex does not exist. Called only with uniqueness constraints.
    fn vertex_labels(&self, guis: &[Gui]) -> Result<Vec<Vec<Token>>, Error> {
        Ok(vec![Vec::new(); guis.len()])
    }

    /// Returns the vertices of a label that have a value for the key of a uniqueness constraint.
    fn holders(&self, _label: Token, _key: Token, _value: &Value) -> Result<Vec<Gui>, Error> {
        Ok(Vec::new())
    }

    /// Looks up edge ids, which may be ids that the graph generated.
    fn edges(&self, ids: &[Str]) -> Result<Vec<Option<Edge>>, Error>;

    /// Returns the values of edge properties.
    fn edge_values(&self, wanted: &[(Edge, Token)]) -> Result<Vec<Option<Value>>, Error>;
}

/// Progress of a load.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    /// Bytes read, before decompression.
    pub bytes_read: u64,
    /// Bytes of all files.
    pub bytes_total: u64,
    /// Files read to their end, or failed.
    pub files_done: usize,
    /// Files of the load.
    pub files_total: usize,
    /// Rows read, refused ones included.
    pub rows: u64,
    /// Labels and property values read.
    pub records: u64,
    /// Rows refused.
    pub rejected: u64,
}

/// The caller of a load. The load calls it after each batch of rows, and asks it several times a second whether to end.
pub trait Control: Sync {
    /// Whether to cancel the load.
    fn cancelled(&self) -> bool {
        false
    }

    /// Receives the progress.
    fn progress(&self, _progress: &Progress) {}
}

/// Ignores progress and never cancels.
impl Control for () {}

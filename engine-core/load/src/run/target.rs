//! What a load asks of the graph that it loads into, and of the one who started it.
//!
//! The embedded engine answers from its own store, a load Lambda over the wire; the load knows neither. Every
//! question is about a whole batch.

use crate::error::Error;
use std::ops::Range;
use tidegraph_types::{Edge, Gui, GuiHasher, PartitionCount, Str, Token, Value};

/// What the graph knows of a vertex id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// The vertex exists, under this GUI.
    Present(Gui),
    /// There is no such vertex, and its plain GUI is free.
    Absent,
    /// There is no such vertex, and its plain GUI belongs to another id.
    Taken,
}

/// The graph that is loaded into, read at one version. All answers are in the order of the questions.
///
/// The answers must still hold when the load is committed: the one who commits refuses a load over whose answers a
/// transaction went, or keeps such transactions out. [`super::VertexIds`] tells which new vertices would be in the way.
pub trait LoadTarget {
    /// Name of the graph; segments carry it.
    fn graph(&self) -> &str;

    /// Partition count of the graph.
    fn partitions(&self) -> PartitionCount;

    /// How ids become GUIs.
    fn hasher(&self) -> GuiHasher;

    /// Whether the graph has no vertex at all; then the load asks for none.
    fn is_empty(&self) -> Result<bool, Error>;

    /// Tokens of labels and keys; new ones are assigned.
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error>;

    /// SIDs that nobody else gets.
    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error>;

    /// What there is under these vertex ids.
    fn vertices(&self, ids: &[Str]) -> Result<Vec<Found>, Error>;

    /// Whether any vertex has this GUI.
    fn occupied(&self, guis: &[Gui]) -> Result<Vec<bool>, Error>;

    /// The values of vertex properties; none where the vertex or the key is not there.
    fn vertex_values(&self, wanted: &[(Gui, Token)]) -> Result<Vec<Vec<Value>>, Error>;

    /// Labels with property keys under which no two vertices of the label may have one value.
    fn unique_keys(&self) -> Result<Vec<(Token, Token)>, Error> {
        Ok(Vec::new())
    }

    /// The labels of vertices; none where the vertex is not there. Asked only of a graph with unique keys.
    fn vertex_labels(&self, guis: &[Gui]) -> Result<Vec<Vec<Token>>, Error> {
        Ok(vec![Vec::new(); guis.len()])
    }

    /// The vertices of a label that have a value under a unique key.
    fn holders(&self, _label: Token, _key: Token, _value: &Value) -> Result<Vec<Gui>, Error> {
        Ok(Vec::new())
    }

    /// The edges under these ids, which may be ones that the graph made itself.
    fn edges(&self, ids: &[Str]) -> Result<Vec<Option<Edge>>, Error>;

    /// The values of edge properties.
    fn edge_values(&self, wanted: &[(Edge, Token)]) -> Result<Vec<Option<Value>>, Error>;
}

/// How far a load is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    /// Bytes read, compressed as they are.
    pub bytes_read: u64,
    /// Bytes of all files.
    pub bytes_total: u64,
    /// Files done.
    pub files_done: usize,
    /// Files of the load.
    pub files_total: usize,
    /// Rows read, refused ones too.
    pub rows: u64,
    /// Labels and property values.
    pub records: u64,
    /// Rows refused.
    pub rejected: u64,
}

/// The one who started the load: hears of its progress, may end it. Called after each batch of rows.
pub trait Control {
    /// Whether the load shall end.
    fn cancelled(&self) -> bool {
        false
    }

    /// How far it is.
    fn progress(&self, _progress: &Progress) {}
}

/// Neither listens nor ends.
impl Control for () {}

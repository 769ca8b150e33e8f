//! What a transaction asks the sequencer to commit: logical changes, and the keys it read and wrote.

use crate::{Cardinality, Edge, Gui, GuiHasher, RequestId, Sid, Str, Token, Value, Version};
use std::hash::{Hash, Hasher};

/// One value written to one property key.
#[derive(Clone, PartialEq, Debug)]
pub struct PropertyWrite {
    /// Property key.
    pub key: Token,
    /// Replace, add to the set, or append.
    pub cardinality: Cardinality,
    /// A storable value, never `Null`.
    pub value: Value,
}

/// One logical change of the graph. The log holds these; storage applies them in log order.
///
/// Applying never fails for a reason of the data: what could be refused was refused before the commit. A change of
/// an element that is gone has no effect.
#[derive(Clone, PartialEq, Debug)]
pub enum Mutation {
    /// Makes a vertex. If it exists already (a bulk load merges), labels are added and properties written.
    CreateVertex {
        /// Identifier computed from `id`.
        gui: Gui,
        /// The user's id, or a UUID.
        id: Str,
        /// Labels, in order, distinct.
        labels: Vec<Token>,
        /// Properties.
        properties: Vec<PropertyWrite>,
    },
    /// Removes a vertex. Edges that were not removed by mutations of their own before it go with it.
    DeleteVertex {
        /// The vertex.
        gui: Gui,
        /// Edges may be left that go with it: partitions that hold only their other ends have to look for them.
        edges_left: bool,
    },
    /// Adds labels that are not there.
    AddLabels {
        /// The vertex.
        gui: Gui,
        /// Labels.
        labels: Vec<Token>,
    },
    /// Removes labels that are there.
    RemoveLabels {
        /// The vertex.
        gui: Gui,
        /// Labels.
        labels: Vec<Token>,
    },
    /// Writes one value of a vertex property.
    SetVertexProperty {
        /// The vertex.
        gui: Gui,
        /// Key, cardinality, value.
        write: PropertyWrite,
    },
    /// Removes one value of a vertex property, or all values of the key.
    RemoveVertexProperty {
        /// The vertex.
        gui: Gui,
        /// Property key.
        key: Token,
        /// Only this value; `None`: all.
        value: Option<Value>,
    },
    /// Writes a meta-property: a property of one value of a vertex property.
    SetMetaProperty {
        /// The vertex.
        gui: Gui,
        /// Property key.
        key: Token,
        /// The value of the key that gets it.
        of: Value,
        /// Which of the values that are equivalent to `of`, in order of writing: a list may hold several.
        nth: u32,
        /// Key of the meta-property.
        meta_key: Token,
        /// Its value; `None` removes it.
        value: Option<Value>,
    },
    /// Makes an edge. Goes to the partitions of source, target and, if the user chose an id, of that id's hash.
    CreateEdge {
        /// The edge.
        edge: Edge,
        /// The id that the user chose.
        id: Option<Str>,
        /// Properties, one a key.
        properties: Vec<(Token, Value)>,
    },
    /// Removes an edge, both copies and its id entry.
    DeleteEdge {
        /// The edge.
        edge: Edge,
        /// The id that the user chose.
        id: Option<Str>,
    },
    /// Writes an edge property.
    SetEdgeProperty {
        /// The edge.
        edge: Edge,
        /// Property key.
        key: Token,
        /// The value.
        value: Value,
    },
    /// Removes an edge property.
    RemoveEdgeProperty {
        /// The edge.
        edge: Edge,
        /// Property key.
        key: Token,
    },
    /// Adds an id whose plain hash collided to the graph's exception list.
    AddException {
        /// The colliding id.
        id: Str,
        /// Its salted GUI.
        gui: Gui,
    },
    /// Makes an index over vertices. If one of that name is there, it takes its place.
    DefineIndex {
        /// What it is over.
        index: IndexDefinition,
    },
    /// Removes an index.
    DropIndex {
        /// Its name.
        name: Str,
    },
}

impl Mutation {
    /// Whether it makes or drops an index or a constraint.
    #[must_use]
    pub fn is_of_schema(&self) -> bool {
        matches!(self, Self::DefineIndex { .. } | Self::DropIndex { .. })
    }

    /// Whether it changes something where the GUIs for which `holds` answers true are at home. `holds` is asked for one after the
    /// other until it does; a change of everything asks for none.
    ///
    /// Storage takes its part of a transaction by this, and the log's shards are filled by it.
    pub fn concerns(&self, mut holds: impl FnMut(Gui) -> bool) -> bool {
        match self {
            Self::CreateVertex { gui, .. }
            | Self::AddLabels { gui, .. }
            | Self::RemoveLabels { gui, .. }
            | Self::SetVertexProperty { gui, .. }
            | Self::RemoveVertexProperty { gui, .. }
            | Self::SetMetaProperty { gui, .. }
            | Self::AddException { gui, .. }
            | Self::DeleteVertex { gui, edges_left: false } => holds(*gui),
            Self::SetEdgeProperty { edge, .. } | Self::RemoveEdgeProperty { edge, .. } => holds(edge.source),
            Self::CreateEdge { edge, id, .. } | Self::DeleteEdge { edge, id } => {
                // All bits of the hash of an edge's id count, however many those of vertices have.
                let id_home = || id.as_ref().map(|id| GuiHasher::default().edge_id(id));
                holds(edge.source) || holds(edge.target) || id_home().is_some_and(holds)
            }
            Self::DeleteVertex { edges_left: true, .. }
            | Self::DefineIndex { .. }
            | Self::DropIndex { .. } => true,
        }
    }
}

/// What an index is over: the values of one property key of the vertices that have one label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexDefinition {
    /// Its name; no other index of the graph has it.
    pub name: Str,
    /// Label of the vertices.
    pub label: Token,
    /// Property key.
    pub key: Token,
    /// Whether no two vertices of the label may have one value.
    pub unique: bool,
}

/// A 64-bit hash that stands for something a transaction read or wrote. Two meanings may share a key: that costs
/// a needless retry, never a wrong result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key(pub u64);

impl Key {
    /// Everything. A transaction that reads this conflicts with every later write, and one that writes it with every
    /// read before.
    pub const GRAPH: Key = Key(0);

    fn of(kind: u64, a: u64, b: u64) -> Key {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&a.to_le_bytes());
        bytes[16..].copy_from_slice(&b.to_le_bytes());
        // Zero is taken by `GRAPH`.
        Key(xxhash_rust::xxh3::xxh3_64(&bytes).max(1))
    }

    /// That a vertex exists (or not) under a GUI.
    #[must_use]
    pub fn existence(gui: Gui) -> Key {
        Self::of(1, gui.0, 0)
    }

    /// Labels and properties of a vertex.
    #[must_use]
    pub fn content(gui: Gui) -> Key {
        Self::of(2, gui.0, 0)
    }

    /// Adjacency of a vertex in one direction under one label, or under any (`None`). A writer writes both.
    #[must_use]
    pub fn adjacency(gui: Gui, out: bool, label: Option<Token>) -> Key {
        Self::of(if out { 3 } else { 4 }, gui.0, label.map_or(0, |t| u64::from(t.0) + 1))
    }

    /// An edge: that it exists, and its properties.
    #[must_use]
    pub fn edge(sid: Sid) -> Key {
        Self::of(5, sid.0, 0)
    }

    /// An edge id that the user chose.
    #[must_use]
    pub fn edge_id(hash: Gui) -> Key {
        Self::of(6, hash.0, 0)
    }

    /// The set of vertices with a label, or of all vertices (`None`), and what a scan of it may filter on.
    /// Written when a vertex enters or leaves the set or one in it changes.
    #[must_use]
    pub fn vertex_scan(label: Option<Token>) -> Key {
        Self::of(7, label.map_or(0, |t| u64::from(t.0) + 1), 0)
    }

    /// The set of edges with a label, or of all edges (`None`).
    #[must_use]
    pub fn edge_scan(label: Option<Token>) -> Key {
        Self::of(8, label.map_or(0, |t| u64::from(t.0) + 1), 0)
    }

    /// Which indexes there are. Written and read by whoever makes or drops one.
    #[must_use]
    pub fn schema() -> Key {
        Self::of(9, 0, 0)
    }

    /// That a vertex of a label has a value under a key that must be unique. Equal values have equal keys.
    #[must_use]
    pub fn unique(label: Token, key: Token, value: &Value) -> Key {
        let mut hasher = xxhash_rust::xxh3::Xxh3Default::new();
        value.hash(&mut hasher);
        Self::of(10, u64::from(label.0) << 32 | u64::from(key.0), hasher.finish())
    }

    /// Which constraints there are. Read by whoever writes vertices.
    #[must_use]
    pub fn constraints() -> Key {
        Self::of(12, 0, 0)
    }

    /// That any vertex of a label got a value under a key that must be unique. Transactions write it and do not read it.
    #[must_use]
    pub fn any_unique(label: Token, key: Token) -> Key {
        Self::of(11, u64::from(label.0) << 32 | u64::from(key.0), 0)
    }
}

/// A transaction, ready for the sequencer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CommitRequest {
    /// The version at which everything was read.
    pub read_version: Version,
    /// What the writes rest on. Refused when one was written after `read_version`.
    pub read_keys: Vec<Key>,
    /// What is written.
    pub write_keys: Vec<Key>,
    /// The changes in order.
    pub mutations: Vec<Mutation>,
    /// What it is known by when it is sent again. `None` if it never will be.
    pub request: Option<RequestId>,
}

/// A vertex that a transaction made, or made more of, while a bulk load ran.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MadeVertex {
    /// The version of the transaction.
    pub version: Version,
    /// Its GUI.
    pub gui: Gui,
    /// Its id.
    pub id: Str,
}

/// Vertices that were made after some version, in order of version.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MadeSince {
    /// Up to here these are all. If it is below the newest version, there are more.
    pub upto: Version,
    /// The vertices.
    pub vertices: Vec<MadeVertex>,
}

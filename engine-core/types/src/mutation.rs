//! Commit requests: the logical changes of a transaction, and the keys that it read and wrote.

use crate::{Cardinality, Changes, Edge, Gui, GuiHasher, RequestId, Sid, Str, Token, Value, Version};
use std::hash::{Hash, Hasher};

/// One value written to one property key.
#[derive(Clone, PartialEq, Debug)]
pub struct PropertyWrite {
    /// Property key.
    pub key: Token,
    /// Whether to replace the value, add it to the set, or append it to the list.
    pub cardinality: Cardinality,
    /// A storable value, never `Null`.
    pub value: Value,
}

/// One logical change of the graph. The log holds these; storage applies them in log order.
///
/// Applying a mutation never fails because of the data: whatever could be refused was refused before the commit. A
/// change of an element that no longer exists has no effect.
#[derive(Clone, PartialEq, Debug)]
pub enum Mutation {
    /// Creates a vertex. If it exists already (a bulk load merges), labels are added and properties written.
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
    /// Removes a vertex, and all its edges that no earlier mutation removed.
    DeleteVertex {
        /// The vertex.
        gui: Gui,
        /// Whether the vertex may still have edges. Partitions that hold only the other ends of such edges have to
        /// search for them.
        edges_left: bool,
    },
    /// Adds the labels that the vertex does not have.
    AddLabels {
        /// The vertex.
        gui: Gui,
        /// Labels.
        labels: Vec<Token>,
    },
    /// Removes the labels that the vertex has.
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
        /// The value; `None` for all values.
        value: Option<Value>,
    },
    /// Writes a meta-property: a property of one value of a vertex property.
    SetMetaProperty {
        /// The vertex.
        gui: Gui,
        /// Property key.
        key: Token,
        /// The value of the key that gets the meta-property.
        of: Value,
        /// Index among the values that are equivalent to `of`, in order of writing; a list may hold several.
        nth: u32,
        /// Key of the meta-property.
        meta_key: Token,
        /// Value of the meta-property; `None` to remove it.
        value: Option<Value>,
    },
    /// Creates an edge. It is applied in the partitions of source, target and, if the user chose an id, of the id's
    /// hash.
    CreateEdge {
        /// The edge.
        edge: Edge,
        /// The id that the user chose.
        id: Option<Str>,
        /// Properties, one for each key.
        properties: Vec<(Token, Value)>,
    },
    /// Removes an edge: both copies and the entry of its id.
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
    /// Adds an id whose unsalted hash collided to the exception list of the graph (IDS-1).
    AddException {
        /// The colliding id.
        id: Str,
        /// Its salted GUI.
        gui: Gui,
    },
    /// Creates an index over vertices. It replaces an index of the same name.
    DefineIndex {
        /// Definition of the index.
        index: IndexDefinition,
    },
    /// Removes an index.
    DropIndex {
        /// Its name.
        name: Str,
    },
    /// Removes all vertices and edges at once. Indexes, constraints, exceptions and the dictionary stay.
    Reset,
}

impl Mutation {
    /// Whether the mutation creates or drops an index or a constraint.
    #[must_use]
    pub fn is_of_schema(&self) -> bool {
        matches!(self, Self::DefineIndex { .. } | Self::DropIndex { .. })
    }

    /// Whether the mutation is applied in the partition of any GUI for which `holds` returns true. Mutations that every
    /// partition applies, those of the schema among them, return true without a call of `holds`.
    ///
    /// Partitions and shards of the log select their parts of a transaction with this function.
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
            | Self::DropIndex { .. }
            | Self::Reset => true,
        }
    }
}

/// Definition of an index: over the values of one property key of the vertices with one label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexDefinition {
    /// Name of the index, unique in the graph.
    pub name: Str,
    /// Label of the vertices.
    pub label: Token,
    /// Property key.
    pub key: Token,
    /// Whether the index is a uniqueness constraint: no two vertices of the label may have one value.
    pub unique: bool,
    /// Whether the constraint is still being made: writes keep it, but vertices from before it may not.
    pub unchecked: bool,
}

/// A 64-bit hash of something that a transaction read or wrote. Two things may have one key; that costs a needless
/// retry, never a wrong result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key(pub u64);

impl Key {
    /// The whole graph. A transaction that reads this key conflicts with every later write; one that writes it, with
    /// every earlier read.
    pub const GRAPH: Key = Key(0);

    fn of(kind: u64, a: u64, b: u64) -> Key {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&a.to_le_bytes());
        bytes[16..].copy_from_slice(&b.to_le_bytes());
        // Zero is taken by `GRAPH`.
        Key(xxhash_rust::xxh3::xxh3_64(&bytes).max(1))
    }

    /// Key of something of which a graph has few: 32 bits of a hash behind 32 bits that are set.
    fn of_schema(kind: u64, a: u64, b: u64) -> Key {
        Key(Self::SCHEMA_BITS | (Self::of(kind, a, b).0 & !Self::SCHEMA_BITS))
    }

    const SCHEMA_BITS: u64 = 0xffff_ffff_0000_0000;

    /// Whether this is the key of the set of indexes or of constraints, or of all values of a constraint. A graph has
    /// few of them, so the sequencer can remember them for longer than other keys. One in four billion other keys is
    /// taken for one of them, which does no harm.
    #[must_use]
    pub fn is_of_schema(self) -> bool {
        self.0 & Self::SCHEMA_BITS == Self::SCHEMA_BITS
    }

    /// Key of the existence of a vertex with a GUI.
    #[must_use]
    pub fn existence(gui: Gui) -> Key {
        Self::of(1, gui.0, 0)
    }

    /// Key of the labels and properties of a vertex.
    #[must_use]
    pub fn content(gui: Gui) -> Key {
        Self::of(2, gui.0, 0)
    }

    /// Key of the adjacency of a vertex in one direction, for one label or for any (`None`). A writer writes both.
    #[must_use]
    pub fn adjacency(gui: Gui, out: bool, label: Option<Token>) -> Key {
        Self::of(if out { 3 } else { 4 }, gui.0, label.map_or(0, |t| u64::from(t.0) + 1))
    }

    /// Key of the existence and the properties of an edge.
    #[must_use]
    pub fn edge(sid: Sid) -> Key {
        Self::of(5, sid.0, 0)
    }

    /// Key of an edge id of the user.
    #[must_use]
    pub fn edge_id(hash: Gui) -> Key {
        Self::of(6, hash.0, 0)
    }

    /// Key of the set of vertices with a label, or of all vertices (`None`), with the properties that a scan may filter
    /// on. Written when a vertex enters or leaves the set, or a vertex in it changes.
    #[must_use]
    pub fn vertex_scan(label: Option<Token>) -> Key {
        Self::of(7, label.map_or(0, |t| u64::from(t.0) + 1), 0)
    }

    /// Key of the set of edges with a label, or of all edges (`None`).
    #[must_use]
    pub fn edge_scan(label: Option<Token>) -> Key {
        Self::of(8, label.map_or(0, |t| u64::from(t.0) + 1), 0)
    }

    /// Key of the set of indexes. A transaction that creates or drops an index reads and writes it.
    #[must_use]
    pub fn schema() -> Key {
        Self::of_schema(9, 0, 0)
    }

    /// Key of a value of a uniqueness constraint. Equal values have equal keys.
    #[must_use]
    pub fn unique(label: Token, key: Token, value: &Value) -> Key {
        let mut hasher = xxhash_rust::xxh3::Xxh3Default::new();
        value.hash(&mut hasher);
        Self::of(10, u64::from(label.0) << 32 | u64::from(key.0), hasher.finish())
    }

    /// Key of the set of constraints. A transaction that writes vertices reads it.
    #[must_use]
    pub fn constraints() -> Key {
        Self::of_schema(12, 0, 0)
    }

    /// Key of all values of a uniqueness constraint. Transactions write it; only bulk loads read it.
    #[must_use]
    pub fn any_unique(label: Token, key: Token) -> Key {
        Self::of_schema(11, u64::from(label.0) << 32 | u64::from(key.0), 0)
    }
}

/// A transaction that the sequencer is asked to commit.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CommitRequest {
    /// Version at which the transaction read.
    pub read_version: Version,
    /// Keys that it read. It is refused if one of them was written after `read_version` (TXN-2).
    pub read_keys: Vec<Key>,
    /// Keys that it writes.
    pub write_keys: Vec<Key>,
    /// The changes in order.
    pub mutations: Vec<Mutation>,
    /// Id by which the sequencer recognises the request if it is sent again (TXN-4); `None` if it never is.
    pub request: Option<RequestId>,
    /// A version that was committed before the request was first sent; `None`: `read_version`. If the sequencer has
    /// forgotten ids of later versions, it cannot tell whether it knows the request. So a newer version helps a
    /// transaction that read long ago.
    pub first_asked: Option<Version>,
    /// Whether `request` is made from a key of the caller ([`RequestId::of_key`]). The request is then repeated by
    /// running it again, at another `read_version`.
    pub by_key: bool,
    /// What the transaction changes, for the change stream; `None` if the graph has no stream.
    pub changes: Option<Changes>,
}

impl CommitRequest {
    /// Sets when the sequencer's process took the commit, in milliseconds since 1970.
    #[must_use]
    pub fn taken_at(mut self, now_ms: impl FnOnce() -> i64) -> Self {
        if let Some(changes) = &mut self.changes {
            changes.taken_ms = now_ms();
        }
        self
    }
}

/// A vertex that a transaction created or extended while a bulk load ran.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MadeVertex {
    /// Version of the transaction.
    pub version: Version,
    /// Its GUI.
    pub gui: Gui,
    /// Its id.
    pub id: Str,
}

/// A change of data that a bulk load checks its input against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadChange {
    /// A vertex was deleted.
    Deleted(Gui),
    /// An edge got an id that the user chose, with this hash.
    EdgeId(Gui),
    /// An id got a salted GUI, or another load was committed.
    Any,
}

/// Changes of data that bulk loads check their input against, in order of version.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LoadChanges {
    /// The changes of this version and of earlier ones are unknown.
    pub since: Version,
    /// The list is complete up to this version.
    pub upto: Version,
    /// The changes with their versions.
    pub changes: Vec<(Version, LoadChange)>,
}

/// Vertices that were created or extended after a version, in order of version.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MadeSince {
    /// The list is complete up to this version. If it is below the newest version, there are more vertices.
    pub upto: Version,
    /// The vertices.
    pub vertices: Vec<MadeVertex>,
}

//! The ids that a load has met, and their GUIs.
//!
//! Each vertex that the load has met has one entry: its GUI and a second hash of its id. An id whose GUI has no entry
//! is new. With the same second hash it is the same vertex. With another one, two ids collide (IDS-1): the later one
//! gets a salted GUI and an entry in `moved`, which holds the id itself. Ids that have a salted GUI in the graph are in
//! `moved` as well. Collisions are a handful among billions of ids, so `moved` stays small.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;
use tidegraph_types::{Footprint, Gui, GuiHasher, Str};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Seed of the second hash; independent of the seeds of GUIs.
const CHECK_SEED: u64 = 0x7469_6465_6c6f_6164;

pub(super) struct Ids {
    /// Shared with the threads that read edges.
    vertices: Arc<Met>,
    edges: FxHashMap<u64, u64>,
    /// Vertices of the graph that edges of the load have as ends.
    ends: FxHashSet<u64>,
}

/// The vertices that a load has met, and how ids become GUIs.
#[derive(Clone)]
pub(super) struct Met {
    pub hasher: GuiHasher,
    seen: FxHashMap<u64, u64>,
    moved: FxHashMap<Str, Gui>,
}

impl Met {
    /// Returns the GUI of a vertex that the load has met.
    pub fn get(&self, id: &str) -> Option<Gui> {
        self.find(id, self.hashes(id))
    }

    /// Returns the GUI of an id unless another one has it, and the second hash of the id.
    pub fn hashes(&self, id: &str) -> (Gui, u64) {
        (self.hasher.gui(id), check_of(id))
    }

    /// Returns the GUI of a vertex that the load has met, given the hashes of its id.
    #[inline]
    pub fn find(&self, id: &str, (plain, check): (Gui, u64)) -> Option<Gui> {
        match self.seen.get(&plain.0) {
            Some(known) if *known == check => Some(plain),
            _ if self.moved.is_empty() => None,
            _ => self.moved.get(id).copied(),
        }
    }
}

/// The hash of an edge id that storage uses, and a second one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EdgeHashes {
    pub hash: Gui,
    check: u64,
}

impl EdgeHashes {
    pub fn of(id: &str, hasher: GuiHasher) -> Self {
        Self { hash: hasher.edge_id(id), check: check_of(id) }
    }
}

/// The vertices that a load has met: GUI and second hash of the id, 16 bytes each. The commit of a load checks them
/// against the vertices that transactions created meanwhile. It checks the ends and the ids of the load's edges against
/// what transactions deleted and created.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct VertexIds {
    seen: FxHashMap<u64, u64>,
    edges: EdgesMet,
}

/// What the edges of a load have met: the vertices of the graph that are their ends, and hashes of their ids.
#[derive(Clone, PartialEq, Eq, Default)]
enum EdgesMet {
    /// It was not noted, or is too much for memory.
    #[default]
    Unknown,
    /// A load in one process.
    Tables { ends: FxHashSet<u64>, ids: FxHashMap<u64, u64> },
    /// A load in steps: sorted.
    Lists { ends: Vec<u64>, ids: Vec<u64> },
}

impl VertexIds {
    /// Adds the vertices of a part of the load.
    pub(super) fn extend(&mut self, seen: impl IntoIterator<Item = (u64, u64)>) {
        self.seen.extend(seen);
    }

    /// Sets what the edges of the load have met.
    pub(super) fn set_edges(&mut self, mut ends: Vec<u64>, mut ids: Vec<u64>) {
        for list in [&mut ends, &mut ids] {
            list.sort_unstable();
            list.dedup();
        }
        self.edges = EdgesMet::Lists { ends, ids };
    }

    /// Returns the GUIs.
    pub fn guis(&self) -> impl Iterator<Item = Gui> {
        self.seen.keys().map(|gui| Gui(*gui))
    }

    /// Returns what [`VertexIds::has_vertex`] and [`VertexIds::has_edge_id`] know, in bounded memory.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        match &self.edges {
            EdgesMet::Unknown => Footprint::everything(),
            EdgesMet::Tables { ends, ids } => self.footprint_of(ends.iter().copied(), ids.keys().copied()),
            EdgesMet::Lists { ends, ids } => self.footprint_of(ends.iter().copied(), ids.iter().copied()),
        }
    }

    fn footprint_of(
        &self,
        ends: impl ExactSizeIterator<Item = u64>,
        edge_ids: impl ExactSizeIterator<Item = u64>,
    ) -> Footprint {
        let mut footprint = Footprint::with_capacity(self.seen.len() + ends.len() + edge_ids.len());
        self.seen.keys().copied().chain(ends).for_each(|gui| footprint.add_vertex(Gui(gui)));
        edge_ids.for_each(|hash| footprint.add_edge_id(Gui(hash)));
        footprint
    }

    /// Whether the load has another id under this GUI.
    #[must_use]
    pub fn collides(&self, gui: Gui, id: &str) -> bool {
        self.seen.get(&gui.0).is_some_and(|check| *check != check_of(id))
    }

    /// Whether the load has met a vertex with this GUI, as a row or as the end of an edge, or may have.
    #[must_use]
    pub fn has_vertex(&self, gui: Gui) -> bool {
        self.seen.contains_key(&gui.0)
            || match &self.edges {
                EdgesMet::Unknown => true,
                EdgesMet::Tables { ends, .. } => ends.contains(&gui.0),
                EdgesMet::Lists { ends, .. } => ends.binary_search(&gui.0).is_ok(),
            }
    }

    /// Whether the load has met an edge id with this hash, or may have.
    #[must_use]
    pub fn has_edge_id(&self, hash: Gui) -> bool {
        match &self.edges {
            EdgesMet::Unknown => true,
            EdgesMet::Tables { ids, .. } => ids.contains_key(&hash.0),
            EdgesMet::Lists { ids, .. } => ids.binary_search(&hash.0).is_ok(),
        }
    }
}

impl fmt::Debug for VertexIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VertexIds({})", self.seen.len())
    }
}

/// Vertices with second hashes, sorted by GUI; and ids with salted GUIs.
pub(super) type Noted = (Vec<(u64, u64)>, Vec<(Str, Gui)>);

/// Whether the load has met an edge id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EdgeId {
    New,
    Repeated,
    /// Another id has the same hash. Only the ids in the segments tell whether this one is new.
    Unsure,
}

impl Ids {
    pub fn new(hasher: GuiHasher) -> Self {
        let vertices = Met { hasher, seen: FxHashMap::default(), moved: FxHashMap::default() };
        Self { vertices: Arc::new(vertices), edges: FxHashMap::default(), ends: FxHashSet::default() }
    }

    /// Returns the vertices met so far. While somebody else has them, a new one copies them all.
    pub fn met(&self) -> &Arc<Met> {
        &self.vertices
    }

    /// Returns what turns ids into GUIs.
    pub fn hasher(&self) -> GuiHasher {
        self.vertices.hasher
    }

    /// Returns the GUI of a vertex that the load has met.
    pub fn get(&self, id: &str) -> Option<Gui> {
        self.vertices.get(id)
    }

    /// Whether the load has met a vertex with this GUI.
    pub fn taken(&self, gui: Gui) -> bool {
        self.vertices.seen.contains_key(&gui.0)
    }

    /// Adds a vertex under a GUI that no other id has.
    pub fn insert(&mut self, id: &Str, gui: Gui) {
        let vertices = Arc::make_mut(&mut self.vertices);
        vertices.seen.insert(gui.0, check_of(id));
        if gui != vertices.hasher.gui(id) {
            vertices.moved.insert(id.clone(), gui);
        }
    }

    /// Returns all entries, for other parts of the load.
    pub fn into_noted(self) -> Noted {
        let vertices = Arc::unwrap_or_clone(self.vertices);
        let mut seen: Vec<_> = vertices.seen.into_iter().collect();
        seen.sort_unstable();
        (seen, vertices.moved.into_iter().collect())
    }

    /// Adds the entries of another part of the load.
    pub fn note(
        &mut self,
        seen: impl IntoIterator<Item = (u64, u64)>,
        moved: impl IntoIterator<Item = (Str, Gui)>,
    ) {
        let vertices = Arc::make_mut(&mut self.vertices);
        vertices.seen.extend(seen);
        vertices.moved.extend(moved);
    }

    /// Returns what the commit of the load needs.
    pub fn into_vertices(self) -> VertexIds {
        VertexIds {
            seen: Arc::unwrap_or_clone(self.vertices).seen,
            edges: EdgesMet::Tables { ends: self.ends, ids: self.edges },
        }
    }

    /// Returns what its edges have met, for other parts of the load: ends and hashes of ids.
    pub fn into_edges_met(self) -> [Vec<u64>; 2] {
        [self.ends.into_iter().collect(), self.edges.into_keys().collect()].map(|mut list: Vec<u64>| {
            list.sort_unstable();
            list
        })
    }

    /// Adds a vertex of the graph that an edge of the load has as an end.
    pub fn insert_end(&mut self, gui: Gui) {
        self.ends.insert(gui.0);
    }

    /// Tells whether the load has met an edge id, or another one with its hash. Adds a new one.
    pub fn meet_edge(&mut self, id: EdgeHashes) -> EdgeId {
        match self.edges.entry(id.hash.0) {
            Entry::Vacant(entry) => {
                entry.insert(id.check);
                EdgeId::New
            }
            Entry::Occupied(entry) if *entry.get() == id.check => EdgeId::Repeated,
            Entry::Occupied(_) => EdgeId::Unsure,
        }
    }
}

fn check_of(id: &str) -> u64 {
    xxh3_64_with_seed(id.as_bytes(), CHECK_SEED)
}

//! Ids of this load: which were met, and under which GUI.
//!
//! For each vertex that the load touches there is one entry, GUI → a second hash of its id. A row whose GUI is not there
//! is of a new vertex; if it is there with the same second hash, it is the same vertex; with another, two ids collide,
//! and the later one gets a salted GUI and an entry in `moved`, which keeps the id itself. Ids that the graph has under a
//! salted GUI are in `moved` too. Real collisions are a handful among billions, so `moved` stays small.

use rustc_hash::FxHashMap;
use std::fmt;
use tidegraph_types::{Gui, GuiHasher, Str};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Independent of the seeds with which ids become GUIs.
const CHECK_SEED: u64 = 0x7469_6465_6c6f_6164;

pub(super) struct Ids {
    pub hasher: GuiHasher,
    seen: FxHashMap<u64, u64>,
    moved: FxHashMap<Str, Gui>,
    edges: FxHashMap<u64, u64>,
}

/// The vertices that a load touches: GUI and a hash of the id, 16 bytes each. What is asked when the load is to be
/// committed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct VertexIds(FxHashMap<u64, u64>);

impl VertexIds {
    /// Adds those that a part of the load noted.
    pub(super) fn extend(&mut self, seen: impl IntoIterator<Item = (u64, u64)>) {
        self.0.extend(seen);
    }

    /// The GUIs.
    pub fn guis(&self) -> impl Iterator<Item = Gui> {
        self.0.keys().map(|gui| Gui(*gui))
    }

    /// Whether the load has another id under this GUI.
    #[must_use]
    pub fn collides(&self, gui: Gui, id: &str) -> bool {
        self.0.get(&gui.0).is_some_and(|check| *check != check_of(id))
    }
}

impl fmt::Debug for VertexIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VertexIds({})", self.0.len())
    }
}

/// Vertices with second hashes, sorted by GUI; and ids with other GUIs than their plain ones.
pub(super) type Noted = (Vec<(u64, u64)>, Vec<(Str, Gui)>);

/// What the load knows of an edge id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EdgeId {
    New,
    Repeated,
    /// Another id has the same hash; only the ids themselves tell whether this one was there.
    Unsure,
}

impl Ids {
    pub fn new(hasher: GuiHasher) -> Self {
        Self { hasher, seen: FxHashMap::default(), moved: FxHashMap::default(), edges: FxHashMap::default() }
    }

    /// The GUI of a vertex that the load has touched.
    pub fn get(&self, id: &str) -> Option<Gui> {
        let plain = self.hasher.gui(id);
        match self.seen.get(&plain.0) {
            Some(check) if *check == check_of(id) => Some(plain),
            _ if self.moved.is_empty() => None,
            _ => self.moved.get(id).copied(),
        }
    }

    /// Whether the load has touched a vertex of this GUI.
    pub fn taken(&self, gui: Gui) -> bool {
        self.seen.contains_key(&gui.0)
    }

    /// Enters a vertex under a GUI that no other id has.
    pub fn insert(&mut self, id: &Str, gui: Gui) {
        self.seen.insert(gui.0, check_of(id));
        if gui != self.hasher.gui(id) {
            self.moved.insert(id.clone(), gui);
        }
    }

    /// What a part of a load noted, to be read by others of its parts.
    pub fn into_noted(self) -> Noted {
        let mut seen: Vec<_> = self.seen.into_iter().collect();
        seen.sort_unstable();
        (seen, self.moved.into_iter().collect())
    }

    /// Takes over what another part of the load noted.
    pub fn note(
        &mut self,
        seen: impl IntoIterator<Item = (u64, u64)>,
        moved: impl IntoIterator<Item = (Str, Gui)>,
    ) {
        self.seen.extend(seen);
        self.moved.extend(moved);
    }

    /// What is needed of them after the load.
    pub fn into_vertices(self) -> VertexIds {
        VertexIds(self.seen)
    }

    /// Enters an edge id that is new.
    pub fn insert_edge(&mut self, id: &str) {
        self.edges.insert(self.hasher.edge_id(id).0, check_of(id));
    }

    /// Whether the load has met an edge id, or one with its hash.
    pub fn edge_known(&self, id: &str) -> EdgeId {
        match self.edges.get(&self.hasher.edge_id(id).0) {
            None => EdgeId::New,
            Some(check) if *check == check_of(id) => EdgeId::Repeated,
            Some(_) => EdgeId::Unsure,
        }
    }
}

fn check_of(id: &str) -> u64 {
    xxh3_64_with_seed(id.as_bytes(), CHECK_SEED)
}

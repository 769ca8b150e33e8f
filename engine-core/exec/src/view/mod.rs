//! The graph as one request sees it: storage at one version, with the request's own pending writes applied.
//!
//! Every read of the executor goes through a [`View`]. Reads are batched and shaped like those of [`Apl`]. Without
//! pending writes a read is only the call to storage. If the plan writes (`recording`), the view collects the keys of
//! what was read (`keys`), so that the sequencer can refuse the transaction if another one changed it (TXN-2). Writes
//! go to `pending` (module `write`) and become a commit request at the end (module `commit`).
//!
//! Rule for keys: the view records what an answer depends on before it gives the answer, absent elements included. The
//! creation of an element reads that it did not exist. A vertex's labels decide which scan keys a change of it writes,
//! so a change reads the vertex's content.
//!
//! What must never happen: a read of storage ignores `pending`, or records no key.

mod ahead;
mod changes;
mod commit;
mod computed;
mod keys;
mod overlay;
mod pending;
mod scan;
mod unique;
mod value;
mod write;

pub use commit::Counters;
pub use scan::ScanState;
pub use value::MetaOwner;
pub use write::{NewEdge, NewVertex};

use crate::Result;
use ahead::AnsweredAhead;
use computed::Computed;
use keys::ReadKeys;
use pending::Pending;
use std::cell::{Cell, RefCell};
use tidegraph_apl::{
    Apl, At, Catalog, Cursor, EdgeRead, EdgeRows, Expand, Expansion, LookUp, LookedUp, Projection, TopEdges,
    Traffic, VertexRead, VertexRows,
};
use tidegraph_types::{Direction, Edge, Gui, GuiHasher, Key, Str, Token, element};
use unique::Holders;

/// The graph as one request sees it.
pub struct View<'a> {
    apl: &'a dyn Apl,
    catalog: &'a dyn Catalog,
    at: At,
    keys: Option<RefCell<ReadKeys>>,
    pending: RefCell<Pending>,
    /// Answers read ahead, if storage is on other machines.
    ahead: Option<RefCell<AnsweredAhead>>,
    /// Counts changes of `pending`; 0 means that it is empty. Tested before every read.
    generation: Cell<u64>,
    /// Whether the commit request says what it changes, for the change stream.
    streams: bool,
    /// Properties that the request has computed, and how often it did.
    computed: RefCell<Computed>,
    computations: Cell<u64>,
}

/// Whether a read asks for a key.
fn wants(projection: &Projection, key: Token) -> bool {
    match projection {
        Projection::None => false,
        Projection::All => true,
        Projection::Keys(keys) => keys.contains(&key),
    }
}

/// What a transaction carries from one of its requests to the next: its writes, and the keys of what it has read.
pub struct Carried {
    keys: Option<ReadKeys>,
    pending: Pending,
    generation: u64,
}

impl Carried {
    /// Makes the state of a transaction that has not begun. `recording` must be set if it may write.
    #[must_use]
    pub fn new(recording: bool) -> Self {
        let pending = Pending { holders: recording.then(Holders::default), ..Pending::default() };
        Self { keys: recording.then(ReadKeys::default), pending, generation: 0 }
    }

    /// Estimates its memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pending.bytes + self.keys.as_ref().map_or(0, ReadKeys::bytes)
    }

    /// Returns a number that a write of the transaction changes.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Counts what the transaction has changed so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.pending.counters()
    }
}

impl<'a> View<'a> {
    /// Makes a view of a version. `recording` must be set if the plan writes: the view then records what it reads.
    #[must_use]
    pub fn new(apl: &'a dyn Apl, catalog: &'a dyn Catalog, at: At, recording: bool) -> Self {
        Self {
            apl,
            catalog,
            at,
            keys: recording.then(RefCell::default),
            pending: RefCell::default(),
            ahead: apl.is_far().then(RefCell::default),
            generation: Cell::new(0),
            streams: false,
            computed: RefCell::default(),
            computations: Cell::new(0),
        }
    }

    /// Sets whether the commit request says what it changes, for the change stream of the graph.
    #[must_use]
    pub fn streaming(mut self, streams: bool) -> Self {
        self.streams = streams;
        self
    }

    /// Returns what the view reads at.
    pub(crate) fn at(&self) -> At {
        self.at
    }

    /// Makes a view of the version that an earlier request of the same transaction read, with what that one carried.
    #[must_use]
    pub fn resume(apl: &'a dyn Apl, catalog: &'a dyn Catalog, at: At, carried: Carried) -> Self {
        Self {
            keys: carried.keys.map(RefCell::new),
            pending: RefCell::new(carried.pending),
            generation: Cell::new(carried.generation),
            ..Self::new(apl, catalog, at, false)
        }
    }

    /// Ends the view of a request whose transaction goes on.
    #[must_use]
    pub fn carry(self) -> Carried {
        Carried {
            keys: self.keys.map(RefCell::into_inner),
            pending: self.pending.into_inner(),
            generation: self.generation.into_inner(),
        }
    }

    /// Returns the graph's dictionary.
    #[must_use]
    pub fn catalog(&self) -> &'a dyn Catalog {
        self.catalog
    }

    /// Estimates the bytes of pending writes and read keys.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending.borrow().bytes + self.keys.as_ref().map_or(0, |keys| keys.borrow().bytes())
    }

    /// Counts what the request, and those of its transaction before it, have changed so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.pending.borrow().counters()
    }

    /// Returns a number that changes whenever a write or a computed property may make an earlier read stale.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.get() + self.computations.get()
    }

    /// Whether the request has written since its transaction had this [generation](Carried::generation).
    #[must_use]
    pub fn wrote_since(&self, generation: u64) -> bool {
        self.generation.get() > generation
    }

    fn is_dirty(&self) -> bool {
        self.generation.get() > 0
    }

    fn touch(&self) {
        self.generation.set(self.generation.get() + 1);
    }

    fn record(&self, keys: impl IntoIterator<Item = Key>) {
        if let Some(read) = &self.keys {
            read.borrow_mut().extend(keys);
        }
    }

    /// Whether storage is on other machines, so that fewer and larger requests are better.
    #[must_use]
    pub fn is_far(&self) -> bool {
        self.ahead.is_some()
    }

    /// Returns what the requests of this view have moved between processes so far.
    pub(crate) fn traffic(&self) -> Traffic {
        self.apl.traffic()
    }

    /// Bytes of the answers that were read ahead.
    pub(crate) fn ahead_bytes(&self) -> usize {
        self.ahead.as_ref().map_or(0, |ahead| ahead.borrow().bytes())
    }

    /// Drops the answers that were read ahead.
    pub(crate) fn forget_ahead(&self) {
        if let Some(ahead) = &self.ahead {
            ahead.take();
        }
    }

    /// Resolves ids in storage only. `next` says what the plan reads of the vertices soon.
    fn stored_vertices(
        &self,
        ids: &[Str],
        next: Option<VertexRead>,
        out: &mut Vec<Option<Gui>>,
    ) -> Result<()> {
        match &self.ahead {
            Some(ahead) if ahead::is_worthwhile(ids.len(), next.as_ref()) => {
                let wish = LookUp { read: next, places: self.keys.is_some() };
                let mut answered = LookedUp::default();
                self.apl.look_up(self.at, ids, &wish, &mut answered)?;
                out.extend(ahead.borrow_mut().keep(ids, wish.read, answered));
            }
            _ => self.apl.resolve_vertices(self.at, ids, out)?,
        }
        Ok(())
    }

    /// Reads vertices from storage only.
    fn stored_rows(&self, read: &VertexRead, frontier: &[Gui], out: &mut VertexRows) -> Result<()> {
        if self.ahead.as_ref().is_some_and(|ahead| ahead.borrow().rows(read, frontier, out)) {
            return Ok(());
        }
        Ok(self.apl.vertices(self.at, read, frontier, out)?)
    }

    /// Asks storage for the places of new vertices.
    fn places(&self, ids: &[(Str, u64)], out: &mut Vec<(Gui, u64)>) -> Result<()> {
        if let Some(ahead) = &self.ahead {
            let ahead = ahead.borrow();
            let place = |(id, salt): &(Str, u64)| (*salt == 0).then(|| ahead.place(id)).flatten();
            let places: Option<Vec<(Gui, u64)>> = ids.iter().map(place).collect();
            if let Some(places) = places {
                out.extend(places);
                return Ok(());
            }
        }
        Ok(self.apl.place(self.at, ids, out)?)
    }

    /// Appends the GUI of each id, `None` for an unknown one. `next` says what the plan reads of the vertices soon.
    ///
    /// # Errors
    ///
    /// `Error::Storage`, as for every read of the view: storage does not answer, or not within the request's deadline.
    pub fn resolve_vertices(
        &self,
        ids: &[Str],
        next: Option<VertexRead>,
        out: &mut Vec<Option<Gui>>,
    ) -> Result<()> {
        let start = out.len();
        self.stored_vertices(ids, next, out)?;
        if self.keys.is_some() {
            self.record(out[start..].iter().flatten().map(|gui| Key::existence(*gui)));
            let unknown: Vec<(Str, u64)> = (ids.iter().zip(&out[start..]))
                .filter(|(_, gui)| gui.is_none())
                .map(|(id, _)| (id.clone(), 0))
                .collect();
            if !unknown.is_empty() {
                // A transaction that creates the vertex meanwhile writes the key of the place that it would get now.
                let mut places = vec![];
                self.places(&unknown, &mut places)?;
                self.record(places.into_iter().map(|(gui, _)| Key::existence(gui)));
            }
        }
        if self.is_dirty() {
            self.pending.borrow().patch_resolved_vertices(ids, &mut out[start..]);
        }
        Ok(())
    }

    /// Appends the edge of each id, `None` for an unknown one.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn resolve_edges(&self, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<()> {
        let start = out.len();
        self.apl.resolve_edges(self.at, ids, out)?;
        if self.keys.is_some() {
            let hasher = GuiHasher::default();
            // A text in the form of a generated id may be chosen for another edge.
            self.record(ids.iter().map(|id| Key::edge_id(hasher.edge_id(id))));
            let generated = ids.iter().filter_map(|id| element::parse_generated_edge_id(id));
            self.record(generated.map(|(_, sid)| Key::edge(sid)));
            self.record(out[start..].iter().flatten().map(|edge| Key::edge(edge.sid)));
        }
        if self.is_dirty() {
            self.pending.borrow().patch_resolved_edges(ids, &mut out[start..]);
        }
        Ok(())
    }

    /// Reads ids, labels and properties of vertices: one row for each, absent and deleted ones included. `out` must be
    /// empty.
    ///
    /// A caller whose key or label is unknown to the catalog must ask nevertheless (for `Keys(vec![])`, or for labels).
    /// Another transaction may be writing the first one, and only what was read is checked for conflicts.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn vertices(&self, read: &VertexRead, frontier: &[Gui], out: &mut VertexRows) -> Result<()> {
        let content = read.labels || read.properties != Projection::None;
        self.record(frontier.iter().map(|g| if content { Key::content(*g) } else { Key::existence(*g) }));
        if self.has_computed() {
            let computed = self.computed.borrow();
            if computed.concerns(&read.properties) {
                let mut base = VertexRows::default();
                self.vertices_unrecorded(&computed.rest(read), frontier, &mut base)?;
                computed.add(read, frontier, &base, out);
                return Ok(());
            }
        }
        self.vertices_unrecorded(read, frontier, out)
    }

    fn vertices_unrecorded(&self, read: &VertexRead, frontier: &[Gui], out: &mut VertexRows) -> Result<()> {
        if self.is_dirty() {
            let pending = self.pending.borrow();
            if frontier.iter().any(|gui| pending.vertices.contains_key(gui)) {
                let mut base = VertexRows::default();
                self.stored_rows(read, frontier, &mut base)?;
                overlay::vertices(&pending, read, frontier, &base, out);
                return Ok(());
            }
        }
        self.stored_rows(read, frontier, out)
    }

    /// Reads ids and properties of edges: one row for each, absent and deleted ones included. `out` must be empty.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn edges(&self, read: &EdgeRead, frontier: &[Edge], out: &mut EdgeRows) -> Result<()> {
        self.record(frontier.iter().map(|edge| Key::edge(edge.sid)));
        if self.is_dirty() {
            let pending = self.pending.borrow();
            let touched = |edge: &Edge| pending.edges.contains_key(&edge.sid) || pending.is_detached(edge);
            if frontier.iter().any(touched) {
                let mut base = EdgeRows::default();
                self.apl.edges(self.at, read, frontier, &mut base)?;
                overlay::edges(&pending, read, frontier, &base, out);
                return Ok(());
            }
        }
        Ok(self.apl.edges(self.at, read, frontier, out)?)
    }

    fn record_adjacency(&self, direction: Direction, labels: Option<&[Token]>, frontier: &[Gui]) {
        if self.keys.is_none() {
            return;
        }
        let sides: &[bool] = match direction {
            Direction::Out => &[true],
            Direction::In => &[false],
            Direction::Both => &[true, false],
        };
        let labels: Vec<Option<Token>> = match labels {
            Some(labels) => labels.iter().copied().map(Some).collect(),
            None => vec![None],
        };
        for gui in frontier {
            for side in sides {
                self.record(labels.iter().map(|label| Key::adjacency(*gui, *side, *label)));
            }
        }
    }

    /// Whether the view records what it reads.
    pub(crate) fn is_recording(&self) -> bool {
        self.keys.is_some()
    }

    /// Records a search for edges of a label that the graph does not have yet.
    pub(crate) fn record_unknown_edge_label(&self, direction: Direction, frontier: &[Gui]) {
        self.record_adjacency(direction, None, frontier);
    }

    /// Records a search for vertices of a label; `None` stands for a label that the graph does not have yet.
    pub(crate) fn record_vertex_scan(&self, label: Option<Token>) {
        self.record([Key::vertex_scan(label)]);
    }

    /// Records a scan for edges of a label that the graph does not have yet.
    pub(crate) fn record_edge_scan(&self) {
        self.record([Key::edge_scan(None)]);
    }

    /// Reads the edges of a frontier with their other ends; returns where to continue, `None` at the end. `out` must be
    /// empty.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn expand(
        &self,
        request: &Expand,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>> {
        // A read that continues was recorded when it began.
        if from == Cursor::default() {
            self.record_adjacency(request.direction, request.labels.as_deref(), frontier);
        }
        if self.is_dirty() {
            let pending = self.pending.borrow();
            let rows = frontier.get(from.row as usize..).unwrap_or(&[]);
            if !pending.detached.is_empty() || rows.iter().any(|gui| pending.adjacency.contains_key(gui)) {
                let mut base = Expansion::default();
                // The SID says which of the edges are deleted.
                let all = Expand { neighbours_only: false, ..request.clone() };
                let next = self.apl.expand(self.at, &all, frontier, from, &mut base)?;
                overlay::expand(&pending, request, frontier, from, next, &base, out);
                return Ok(next);
            }
        }
        Ok(self.apl.expand(self.at, request, frontier, from, out)?)
    }

    /// Reads as [`View::expand`] does, but needs to return only the edges that come first by a property; it may return
    /// others. `out` must be empty.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn top_edges(
        &self,
        request: &Expand,
        top: &TopEdges,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>> {
        if self.is_dirty() || self.keys.is_some() {
            // Pending writes change the order, and a recording view must read itself what decides the order.
            return self.expand(request, frontier, from, out);
        }
        Ok(self.apl.top_edges(self.at, request, top, frontier, from, out)?)
    }

    /// Appends for each vertex the number of edges that [`View::expand`] would return.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn degrees(&self, request: &Expand, frontier: &[Gui], out: &mut Vec<u64>) -> Result<()> {
        self.record_adjacency(request.direction, request.labels.as_deref(), frontier);
        let start = out.len();
        if !self.pending.borrow().detached.is_empty() {
            out.resize(start + frontier.len(), 0);
            return self.count_edges(request, frontier, &mut out[start..]);
        }
        self.apl.degrees(self.at, request, frontier, out)?;
        if self.is_dirty() {
            overlay::degrees(&self.pending.borrow(), request, frontier, &mut out[start..]);
        }
        Ok(())
    }

    /// Returns whether storage knows that the other ends of all edges of these labels in a direction have these labels, and
    /// the request's own writes cannot have changed that.
    pub(crate) fn ends_have(&self, direction: Direction, edge_labels: &[Str], labels: &[Str]) -> bool {
        if self.is_dirty() || self.is_recording() || edge_labels.is_empty() {
            return false;
        }
        let [edges, vertices] =
            [edge_labels, labels].map(|names| tidegraph_apl::tokens_of(self.catalog, names));
        // No edge has a label that the graph does not know.
        vertices.len() == labels.len()
            && (edges.is_empty()
                || self.apl.edges_imply_labels(self.at, &edges, direction.reversed(), &vertices))
    }

    /// Counts edge by edge: storage cannot tell which edges were deleted with the vertex at their other end.
    fn count_edges(&self, request: &Expand, frontier: &[Gui], counts: &mut [u64]) -> Result<()> {
        let request = Expand { max_rows: 4096, ..request.clone() };
        let (mut cursor, mut found) = (Some(Cursor::default()), Expansion::default());
        while let Some(from) = cursor {
            found.clear();
            cursor = self.expand(&request, frontier, from, &mut found)?;
            found.row.iter().for_each(|row| counts[*row as usize] += 1);
        }
        Ok(())
    }
}

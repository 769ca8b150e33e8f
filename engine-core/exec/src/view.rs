//! The graph as one request sees it: storage at one version, with the request's own pending writes laid over.
//!
//! Every read of the executor goes through here. Reads are batched like those of [`Apl`], whose shapes they share.
//! Without pending writes a read is the call to storage and nothing else. When the plan writes (`recording`), the keys
//! of what was read are collected (`keys`), so that the sequencer can refuse the transaction if somebody changed it
//! meanwhile. Writes go to `pending` (`write`), and become a commit request at the end (`commit`).
//!
//! Rule for keys: what an answer depends on is recorded before the answer is given, absent elements too; the creation
//! of an element reads that it did not exist. A vertex's labels decide which scan keys its change writes, so a change
//! reads the vertex's content.
//!
//! What must never happen: a read of storage that does not look at `pending`, or that leaves no key behind.

mod ahead;
mod commit;
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
use keys::ReadKeys;
use pending::Pending;
use std::cell::{Cell, RefCell};
use tidegraph_apl::{
    Apl, At, Catalog, Cursor, EdgeRead, EdgeRows, Expand, Expansion, LookUp, LookedUp, TopEdges, VertexRead,
    VertexRows,
};
use tidegraph_types::{Direction, Edge, Gui, GuiHasher, Key, Str, Token, element};

/// The graph as one request sees it.
pub struct View<'a> {
    apl: &'a dyn Apl,
    catalog: &'a dyn Catalog,
    at: At,
    keys: Option<RefCell<ReadKeys>>,
    pending: RefCell<Pending>,
    /// If storage is far.
    ahead: Option<RefCell<AnsweredAhead>>,
    /// Counts changes of `pending`; 0: it is empty. Tested before every read.
    generation: Cell<u64>,
}

impl<'a> View<'a> {
    /// A view of a version. `recording`: the plan writes, so what is read must be remembered.
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
        }
    }

    /// The graph's dictionary.
    #[must_use]
    pub fn catalog(&self) -> &'a dyn Catalog {
        self.catalog
    }

    /// Bytes that pending writes and read keys hold, roughly.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending.borrow().bytes + self.keys.as_ref().map_or(0, |keys| keys.borrow().bytes())
    }

    /// Changes whenever a write may make an earlier read stale.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.get()
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

    /// Whether storage is far away, so that it is better asked for much at once.
    #[must_use]
    pub fn is_far(&self) -> bool {
        self.ahead.is_some()
    }

    /// Bytes of answers that are kept until they are asked for.
    pub(crate) fn ahead_bytes(&self) -> usize {
        self.ahead.as_ref().map_or(0, |ahead| ahead.borrow().bytes())
    }

    /// Lets them go.
    pub(crate) fn forget_ahead(&self) {
        if let Some(ahead) = &self.ahead {
            ahead.take();
        }
    }

    /// As storage knows it. `next`: what is read of the vertices soon.
    fn stored_vertices(
        &self,
        ids: &[Str],
        next: Option<VertexRead>,
        out: &mut Vec<Option<Gui>>,
    ) -> Result<()> {
        match &self.ahead {
            Some(ahead) if ahead::is_worth_it(ids.len(), next.as_ref()) => {
                let wish = LookUp { read: next, places: self.keys.is_some() };
                let mut answered = LookedUp::default();
                self.apl.look_up(self.at, ids, &wish, &mut answered)?;
                out.extend(ahead.borrow_mut().keep(ids, wish.read, answered));
            }
            _ => self.apl.resolve_vertices(self.at, ids, out)?,
        }
        Ok(())
    }

    /// What storage has of vertices.
    fn stored_rows(&self, read: &VertexRead, frontier: &[Gui], out: &mut VertexRows) -> Result<()> {
        if self.ahead.as_ref().is_some_and(|ahead| ahead.borrow().rows(read, frontier, out)) {
            return Ok(());
        }
        Ok(self.apl.vertices(self.at, read, frontier, out)?)
    }

    /// Places for new vertices.
    fn places(&self, ids: &[(Str, u64)], out: &mut Vec<(Gui, u64)>) -> Result<()> {
        if let Some(ahead) = &self.ahead {
            let ahead = ahead.borrow();
            let known = |(id, salt): &(Str, u64)| (*salt == 0).then(|| ahead.place(id)).flatten();
            let known: Option<Vec<(Gui, u64)>> = ids.iter().map(known).collect();
            if let Some(known) = known {
                out.extend(known);
                return Ok(());
            }
        }
        Ok(self.apl.place(self.at, ids, out)?)
    }

    /// GUIs of ids; `None` for unknown ones. Appends one answer for each id. `next`: what is read of the vertices soon.
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
                // Whoever creates the vertex while we run will write the key of the place that it would get now.
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

    /// Edges of ids; `None` for unknown ones. Appends one answer for each id.
    pub fn resolve_edges(&self, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<()> {
        let start = out.len();
        self.apl.resolve_edges(self.at, ids, out)?;
        if self.keys.is_some() {
            let hasher = GuiHasher::default();
            self.record(ids.iter().map(|id| match element::parse_generated_edge_id(id) {
                Some((_, sid)) => Key::edge(sid),
                None => Key::edge_id(hasher.edge_id(id)),
            }));
            self.record(out[start..].iter().flatten().map(|edge| Key::edge(edge.sid)));
        }
        if self.is_dirty() {
            self.pending.borrow().patch_resolved_edges(ids, &mut out[start..]);
        }
        Ok(())
    }

    /// Ids, labels and properties of vertices: a row for each, absent (or deleted) ones too. `out` must be empty.
    ///
    /// When a key or label that the query names is unknown to the catalog, ask all the same (with `Keys(vec![])`, or
    /// labels): somebody may be writing the first one, and only what was read is checked for conflicts.
    pub fn vertices(&self, read: &VertexRead, frontier: &[Gui], out: &mut VertexRows) -> Result<()> {
        let content = read.labels || read.properties != tidegraph_apl::Projection::None;
        self.record(frontier.iter().map(|g| if content { Key::content(*g) } else { Key::existence(*g) }));
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

    /// Ids and properties of edges: a row for each, absent (or deleted) ones too. `out` must be empty.
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

    /// Remembers that edges of a label that the graph does not know yet were looked for.
    pub(crate) fn record_unknown_edge_label(&self, direction: Direction, frontier: &[Gui]) {
        self.record_adjacency(direction, None, frontier);
    }

    /// Remembers that vertices of a label (`None`: of one that the graph does not know yet) were looked for.
    pub(crate) fn record_vertex_scan(&self, label: Option<Token>) {
        self.record([Key::vertex_scan(label)]);
    }

    /// Remembers that edges of a label that the graph does not know yet were looked for.
    pub(crate) fn record_edge_scan(&self) {
        self.record([Key::edge_scan(None)]);
    }

    /// Edges of a frontier with their other ends; returns where to go on. `out` must be empty.
    pub fn expand(
        &self,
        request: &Expand,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>> {
        // A read that goes on was recorded when it began.
        if from == Cursor::default() {
            self.record_adjacency(request.direction, request.labels.as_deref(), frontier);
        }
        if self.is_dirty() {
            let pending = self.pending.borrow();
            let rows = frontier.get(from.row as usize..).unwrap_or(&[]);
            if !pending.detached.is_empty() || rows.iter().any(|gui| pending.adjacency.contains_key(gui)) {
                let mut base = Expansion::default();
                // Which of the edges are deleted says the SID.
                let all = Expand { neighbours_only: false, ..request.clone() };
                let next = self.apl.expand(self.at, &all, frontier, from, &mut base)?;
                overlay::expand(&pending, request, frontier, from, next, &base, out);
                return Ok(next);
            }
        }
        Ok(self.apl.expand(self.at, request, frontier, from, out)?)
    }

    /// As `expand`, but answers no more than the edges that come first by a property, and some others. `out` must be
    /// empty.
    pub fn top_edges(
        &self,
        request: &Expand,
        top: &TopEdges,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>> {
        if self.is_dirty() || self.keys.is_some() {
            // What is pending changes the order, and what decides must be read by whoever has to remember it.
            return self.expand(request, frontier, from, out);
        }
        Ok(self.apl.top_edges(self.at, request, top, frontier, from, out)?)
    }

    /// Number of edges that `expand` would answer for each vertex. Appends one number for each.
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

    /// Degrees, edge by edge: which of them went with a vertex at the other end, storage cannot tell.
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

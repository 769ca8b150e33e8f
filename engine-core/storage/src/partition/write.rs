//! Changes of one partition. Nothing here fails: a change of what is not there has no effect.

use super::reclaim::Touch;
use super::{Body, EdgeIdEntry, EdgeRecord, Node, Partition, sid_hash};
use crate::adjacency::{Adjacency, Ended, Link};
use crate::content::{self, ABSENT, Content, FREE, HISTORY, History, Undo};
use crate::stamps::SETTLED;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use thin_vec::ThinVec;
use tidegraph_types::{Cardinality, Edge, Gui, PropertyWrite, Sid, Str, Token, Value, Version};

/// A load that leaves fewer notes than this gets no sweep.
const FEWEST_FOR_SWEEP: u32 = 256;

/// Changes of the counts, gathered while a batch is applied.
#[derive(Default)]
pub(crate) struct Tally {
    pub vertices: i64,
    pub edges: i64,
    pub vertices_by_label: FxHashMap<Token, i64>,
    pub edges_by_label: FxHashMap<Token, i64>,
}

/// What every change of a batch needs to know.
pub(crate) struct Writer<'t> {
    pub version: Version,
    /// Part of a load: if it touches much, one sweep settles it later instead of one note for each record.
    pub bulk: bool,
    pub tally: &'t mut Tally,
}

impl Writer<'_> {
    fn vertex_labels(&mut self, labels: &[Token], by: i64) {
        for &label in labels {
            *self.tally.vertices_by_label.entry(label).or_default() += by;
        }
    }

    fn edge(&mut self, label: Token, by: i64) {
        self.tally.edges += by;
        *self.tally.edges_by_label.entry(label).or_default() += by;
    }
}

impl Partition {
    fn touch(&mut self, w: &Writer<'_>, touch: Touch) {
        if w.bulk {
            let (version, notes) = self.load_notes;
            match notes.filter(|_| version == w.version) {
                // The load is swept for already.
                None if version == w.version => return,
                Some(notes) if notes > FEWEST_FOR_SWEEP && notes > self.nodes.end() / 2 => {
                    let first = self.touched.partition_point(|(version, _)| *version < w.version);
                    let rest = self.touched.split_off(first);
                    self.touched.extend(rest.into_iter().filter(|(_, t)| matches!(t, Touch::EdgeId(_))));
                    self.touched.push_back((w.version, Touch::Sweep));
                    self.load_notes = (w.version, None);
                    return;
                }
                notes => self.load_notes = (w.version, Some(notes.unwrap_or(0) + 1)),
            }
        }
        if self.touched.back() != Some(&(w.version, touch)) {
            self.touched.push_back((w.version, touch));
        }
    }

    /// Makes room for this many more vertices in the index.
    pub fn reserve(&mut self, vertices: usize) {
        self.by_gui.reserve(&mut self.turn, vertices);
    }

    /// Makes a vertex or merges into the one that is there; true if it was made.
    pub fn create_vertex(
        &mut self,
        w: &mut Writer<'_>,
        gui: Gui,
        id: &Str,
        labels: &[Token],
        properties: &[PropertyWrite],
    ) -> bool {
        let known = self.slot(gui);
        if let Some(slot) = known
            && self.present(slot)
        {
            self.add_labels(w, gui, labels);
            for write in properties {
                self.set_property(w, gui, write);
            }
            return false;
        }
        let distinct: SmallVec<[Token; 4]> = distinct(&[], labels);
        let body = Body { id: Some(id.clone()), cells: content::first_cells(properties) };
        let set = self.label_sets.intern(&distinct);
        let slot = match known {
            Some(slot) => {
                *self.bodies.get_mut(slot) = body;
                let node = self.nodes.get_mut(slot);
                node.labels = set;
                // Older versions may still see what the vertex was before it was removed.
                if node.state == ABSENT {
                    node.state = HISTORY;
                }
                let history = self.histories.entry(slot).or_default();
                history.recreate(w.version);
                slot
            }
            None => {
                let state = self.stamps.created(w.version);
                let slot = self.nodes.insert(Node {
                    gui,
                    out: Adjacency::Empty,
                    inward: Adjacency::Empty,
                    labels: set,
                    state,
                });
                let same = self.bodies.insert(body);
                debug_assert_eq!(slot, same, "nodes and bodies share their slots");
                self.by_gui.insert(&mut self.turn, gui.0, slot);
                slot
            }
        };
        for &label in &distinct {
            self.members.insert(label, slot);
        }
        self.touch(w, Touch::Node(slot));
        w.tally.vertices += 1;
        w.vertex_labels(&distinct, 1);
        true
    }

    /// Edges that a vertex still has, self-loops once.
    pub fn live_edges(&self, gui: Gui) -> Vec<Edge> {
        let mut edges = Vec::new();
        if let Some(slot) = self.slot(gui) {
            let node = self.nodes.get(slot);
            // Nothing has ended at the highest version but what has ended at all.
            let newest = Version(u64::MAX - 1);
            node.out.for_each_visible(newest, &self.stamps, |link| {
                edges.push(Edge { sid: link.sid, source: gui, target: link.neighbour, label: link.label });
            });
            node.inward.for_each_visible(newest, &self.stamps, |link| {
                if link.neighbour != gui {
                    edges.push(Edge {
                        sid: link.sid,
                        source: link.neighbour,
                        target: gui,
                        label: link.label,
                    });
                }
            });
        }
        edges
    }

    pub fn delete_vertex(&mut self, w: &mut Writer<'_>, gui: Gui) {
        let Some(slot) = self.present_slot(gui) else { return };
        let node = self.nodes.get_mut(slot);
        let labels = self.label_sets.get(node.labels);
        w.tally.vertices -= 1;
        w.vertex_labels(labels, -1);
        let body = std::mem::take(self.bodies.get_mut(slot));
        let content = Content { id: body.id, cells: body.cells, labels: node.labels };
        if let Some(history) =
            content::history_for(&mut node.state, slot, &mut self.histories, &self.stamps, w.version)
        {
            history.record(w.version, Undo::Deleted(Box::new(content)));
        }
        node.state = HISTORY;
        let history = self.histories.entry(slot).or_default();
        history.present = false;
        history.stale_labels.extend(labels.iter().copied());
        self.touch(w, Touch::Node(slot));
    }

    pub fn add_labels(&mut self, w: &mut Writer<'_>, gui: Gui, labels: &[Token]) {
        let Some(slot) = self.present_slot(gui) else { return };
        let old = self.nodes.get(slot).labels;
        let before = self.label_sets.get(old);
        let new: SmallVec<[Token; 4]> = distinct(before, labels);
        if new.is_empty() {
            return;
        }
        let all: SmallVec<[Token; 4]> = before.iter().chain(&new).copied().collect();
        for &label in &new {
            self.members.insert(label, slot);
        }
        w.vertex_labels(&new, 1);
        self.set_labels(w, slot, &all);
    }

    pub fn remove_labels(&mut self, w: &mut Writer<'_>, gui: Gui, labels: &[Token]) {
        let Some(slot) = self.present_slot(gui) else { return };
        let old = self.nodes.get(slot).labels;
        let before = self.label_sets.get(old);
        let (gone, kept): (SmallVec<[Token; 4]>, SmallVec<[Token; 4]>) =
            before.iter().copied().partition(|label| labels.contains(label));
        if gone.is_empty() {
            return;
        }
        w.vertex_labels(&gone, -1);
        self.set_labels(w, slot, &kept);
        match self.histories.get_mut(&slot) {
            Some(history) => history.stale_labels.extend(gone),
            // Made at this very version: nobody can have seen the label.
            None => gone.iter().for_each(|&label| self.members.remove(label, slot)),
        }
    }

    fn set_labels(&mut self, w: &mut Writer<'_>, slot: u32, labels: &[Token]) {
        let set = self.label_sets.intern(labels);
        let node = self.nodes.get_mut(slot);
        if let Some(history) =
            content::history_for(&mut node.state, slot, &mut self.histories, &self.stamps, w.version)
        {
            history.record(w.version, Undo::Labels(node.labels));
        }
        node.labels = set;
        self.touch(w, Touch::Node(slot));
    }

    pub fn set_property(&mut self, w: &mut Writer<'_>, gui: Gui, write: &PropertyWrite) {
        self.change_cells(w, gui, |cells| content::write(cells, write.key, write.cardinality, &write.value));
    }

    pub fn remove_property(&mut self, w: &mut Writer<'_>, gui: Gui, key: Token, value: Option<&Value>) {
        self.change_cells(w, gui, |cells| content::remove(cells, key, value));
    }

    fn change_cells(
        &mut self,
        w: &mut Writer<'_>,
        gui: Gui,
        change: impl FnOnce(&mut ThinVec<crate::scalar::Cell>) -> Option<Undo>,
    ) {
        let Some(slot) = self.present_slot(gui) else { return };
        let Some(undo) = change(&mut self.bodies.get_mut(slot).cells) else { return };
        let state = &mut self.nodes.get_mut(slot).state;
        if let Some(history) = content::history_for(state, slot, &mut self.histories, &self.stamps, w.version)
        {
            history.record(w.version, undo);
        }
        self.touch(w, Touch::Node(slot));
    }

    /// Adds the copy of an edge at its target; false if the target is not there.
    pub fn add_in(&mut self, w: &mut Writer<'_>, edge: &Edge) -> bool {
        let Some(slot) = self.present_slot(edge.target) else { return false };
        let stamp = self.stamps.created(w.version);
        let link = Link { neighbour: edge.source, sid: edge.sid, label: edge.label, stamp };
        self.nodes.get_mut(slot).inward.push(link, w.version, &self.stamps);
        self.touch(w, Touch::Node(slot));
        true
    }

    /// Adds an edge at its source, with what it holds; false if the source is not there.
    pub fn add_out(
        &mut self,
        w: &mut Writer<'_>,
        edge: &Edge,
        id: Option<&Str>,
        properties: &[(Token, Value)],
    ) -> bool {
        let Some(slot) = self.present_slot(edge.source) else { return false };
        let stamp = self.stamps.created(w.version);
        let link = Link { neighbour: edge.target, sid: edge.sid, label: edge.label, stamp };
        self.nodes.get_mut(slot).out.push(link, w.version, &self.stamps);
        self.touch(w, Touch::Node(slot));
        if id.is_some() || !properties.is_empty() {
            let record = self.insert_record(EdgeRecord {
                sid: edge.sid,
                state: stamp,
                id: id.cloned(),
                cells: content::first_edge_cells(properties),
            });
            self.touch(w, Touch::Edge(record));
        }
        w.edge(edge.label, 1);
        true
    }

    fn insert_record(&mut self, record: EdgeRecord) -> u32 {
        let sid = record.sid;
        let slot = self.edges.insert(record);
        self.by_sid.insert(&mut self.turn, sid_hash(sid), slot);
        slot
    }

    /// Ends the copy of an edge at its target.
    pub fn remove_in(&mut self, w: &mut Writer<'_>, edge: &Edge) {
        let Some(slot) = self.slot(edge.target) else { return };
        if self.nodes.get_mut(slot).inward.end(edge.sid, w.version, &mut self.stamps).is_some() {
            self.touch(w, Touch::Node(slot));
        }
    }

    /// Ends an edge at its source. `None` if it was not there, else the id that the user chose, if any.
    pub fn remove_out(&mut self, w: &mut Writer<'_>, edge: &Edge) -> Option<Option<Str>> {
        let slot = self.slot(edge.source)?;
        let label = self.nodes.get(slot).out.find(edge.sid)?.label;
        let ended: Ended = self.nodes.get_mut(slot).out.end(edge.sid, w.version, &mut self.stamps)?;
        self.touch(w, Touch::Node(slot));
        w.edge(label, -1);
        let Some(slot) = self.edge_slot(edge.sid) else { return Some(None) };
        let record = self.edges.get_mut(slot);
        let id = record.id.take();
        let content = Content { id: id.clone(), cells: std::mem::take(&mut record.cells), labels: 0 };
        if ended == Ended::Kept
            && let Some(history) = content::history_for(
                &mut record.state,
                slot,
                &mut self.edge_histories,
                &self.stamps,
                w.version,
            )
        {
            history.record(w.version, Undo::Deleted(Box::new(content)));
        }
        record.state = HISTORY;
        self.edge_histories.entry(slot).or_default().present = false;
        self.touch(w, Touch::Edge(slot));
        Some(id)
    }

    pub fn set_edge_property(&mut self, w: &mut Writer<'_>, edge: &Edge, key: Token, value: &Value) {
        self.change_edge(w, edge, true, |cells| content::write(cells, key, Cardinality::Single, value));
    }

    pub fn remove_edge_property(&mut self, w: &mut Writer<'_>, edge: &Edge, key: Token) {
        self.change_edge(w, edge, false, |cells| content::remove(cells, key, None));
    }

    fn change_edge(
        &mut self,
        w: &mut Writer<'_>,
        edge: &Edge,
        make: bool,
        change: impl FnOnce(&mut ThinVec<crate::scalar::Cell>) -> Option<Undo>,
    ) {
        let slot = match self.edge_slot(edge.sid) {
            Some(slot) => slot,
            None if make => {
                // The edge had nothing so far: it gets a record that has been there as long as the edge.
                let link = self
                    .slot(edge.source)
                    .and_then(|slot| self.nodes.get(slot).out.find(edge.sid))
                    .filter(|link| link.stamp == SETTLED || self.stamps.get(link.stamp).live());
                let Some(link) = link else { return };
                self.insert_record(EdgeRecord {
                    sid: edge.sid,
                    state: link.stamp,
                    id: None,
                    cells: ThinVec::new(),
                })
            }
            None => return,
        };
        let record = self.edges.get_mut(slot);
        if !content::present(record.state, slot, &self.edge_histories) {
            return;
        }
        let Some(undo) = change(&mut record.cells) else { return };
        if let Some(history) =
            content::history_for(&mut record.state, slot, &mut self.edge_histories, &self.stamps, w.version)
        {
            history.record(w.version, undo);
        }
        self.touch(w, Touch::Edge(slot));
    }

    /// Whether an edge is there now, and whether its user-chosen id is this one.
    pub fn has_edge_with_id(&self, sid: Sid, id: &str) -> bool {
        self.edge_slot(sid).is_some_and(|slot| {
            content::present(self.edges.get(slot).state, slot, &self.edge_histories)
                && self.edges.get(slot).id.as_deref() == Some(id)
        })
    }

    /// The edge of a SID if it is there now.
    pub fn live_edge(&self, source: Gui, sid: Sid) -> Option<Edge> {
        let link = self.nodes.get(self.slot(source)?).out.find(sid)?;
        (link.stamp == SETTLED || self.stamps.get(link.stamp).live()).then_some(Edge {
            sid,
            source,
            target: link.neighbour,
            label: link.label,
        })
    }

    pub fn add_edge_id(&mut self, hash: u64, source: Gui, sid: Sid) {
        let slot = self.edge_ids.insert(EdgeIdEntry { hash, source, sid });
        self.by_edge_id.insert(&mut self.turn, hash, slot);
    }

    /// Lets the entry of an edge that ended go once no version needs it.
    pub fn remove_edge_id(&mut self, w: &Writer<'_>, hash: u64, sid: Sid) {
        let slot = self.by_edge_id.find(hash, &crossbeam_epoch::pin(), |slot| {
            let entry = self.edge_ids.get(slot);
            entry.hash == hash && entry.sid == sid
        });
        if let Some(slot) = slot {
            // Never left to a sweep: the entry itself does not say that it has ended.
            self.touched.push_back((w.version, Touch::EdgeId(slot)));
        }
    }

    pub(super) fn free_node(&mut self, slot: u32) {
        let gui = self.nodes.get(slot).gui;
        self.by_gui.remove(&mut self.turn, gui.0, slot);
        let empty =
            Node { gui: Gui(0), out: Adjacency::Empty, inward: Adjacency::Empty, labels: 0, state: FREE };
        self.nodes.release(slot, empty);
        self.bodies.release(slot, Body::default());
    }

    pub(super) fn free_edge(&mut self, slot: u32) {
        let sid = self.edges.get(slot).sid;
        self.by_sid.remove(&mut self.turn, sid_hash(sid), slot);
        let empty = EdgeRecord { sid: Sid(0), state: FREE, id: None, cells: ThinVec::new() };
        self.edges.release(slot, empty);
    }

    pub(super) fn free_edge_id(&mut self, slot: u32) {
        let hash = self.edge_ids.get(slot).hash;
        self.by_edge_id.remove(&mut self.turn, hash, slot);
        self.edge_ids.release(slot, EdgeIdEntry { hash: 0, source: Gui(0), sid: Sid(0) });
    }
}

impl History {
    /// The element comes back at `version`.
    fn recreate(&mut self, version: Version) {
        self.present = true;
        self.record(version, Undo::Created);
    }
}

/// Those of `labels` that are not in `before`, each once, in order.
fn distinct(before: &[Token], labels: &[Token]) -> SmallVec<[Token; 4]> {
    let mut new: SmallVec<[Token; 4]> = SmallVec::new();
    for label in labels {
        if !before.contains(label) && !new.contains(label) {
            new.push(*label);
        }
    }
    new
}

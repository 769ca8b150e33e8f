//! Changes one partition. Nothing here fails: a change of something that does not exist has no effect.

use super::reclaim::Touch;
use super::{EdgeIdEntry, Open, sid_hash};
use crate::adjacency::{FoundEntry, Link};
use crate::properties::{Changed, Content, MetaWrite, PageWriter, Previous, RowOwner, RowPlace, TableView};
use crate::slots::GROUP;
use crossbeam_epoch::{Guard, pin};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;
use tidegraph_types::{Cardinality, Edge, Gui, PropertyWrite, Sid, Str, Token, Value, Version};

/// A load that leaves fewer notes than this gets no sweep.
const FEWEST_FOR_SWEEP: u32 = 256;

/// Changes of the counts, collected while a batch is applied.
#[derive(Default)]
pub(crate) struct Tally {
    pub vertices: i64,
    pub edges: i64,
    pub vertices_by_label: FxHashMap<Token, i64>,
    pub edges_by_label: FxHashMap<Token, i64>,
}

impl Tally {
    /// Adds another tally.
    pub fn add(&mut self, other: Self) {
        self.vertices += other.vertices;
        self.edges += other.edges;
        for (label, by) in other.vertices_by_label {
            *self.vertices_by_label.entry(label).or_default() += by;
        }
        for (label, by) in other.edges_by_label {
            *self.edges_by_label.entry(label).or_default() += by;
        }
    }
}

/// The context of all changes of a batch.
pub(crate) struct Writer<'t> {
    pub version: Version,
    /// Whether the batch is a load. A load that touches much is reclaimed by one sweep instead of one note for each
    /// record.
    pub bulk: bool,
    /// Whether single values that elements have stay, except those of these keys.
    pub keeps: Option<&'t [Token]>,
    pub tally: &'t mut Tally,
}

impl Writer<'_> {
    /// Counts vertices of these labels that were added (or removed, below zero).
    pub(super) fn vertex_labels(&mut self, labels: &[Token], by: i64) {
        for &label in labels {
            *self.tally.vertices_by_label.entry(label).or_default() += by;
        }
    }

    /// Counts edges of a label that were added (or removed, below zero).
    pub fn edges(&mut self, label: Token, by: i64) {
        self.tally.edges += by;
        *self.tally.edges_by_label.entry(label).or_default() += by;
    }
}

impl Open<'_> {
    /// Leaves a note for `reclaim`. For a load of many notes, one sweep replaces them.
    pub(super) fn touch(&mut self, w: &Writer<'_>, touch: Touch) {
        if let Touch::Node(slot) = touch {
            self.partition.nodes.modify(slot, w.version);
        }
        if w.bulk {
            let (version, notes) = self.state.load_notes;
            match notes.filter(|_| version == w.version) {
                // A sweep is noted for this load already.
                None if version == w.version => return,
                Some(notes) if notes > FEWEST_FOR_SWEEP && notes > self.partition.nodes.end() / 2 => {
                    let first = self.state.touched.partition_point(|(version, _)| *version < w.version);
                    let rest = self.state.touched.split_off(first);
                    self.state.touched.extend(
                        rest.into_iter()
                            .filter(|(_, t)| matches!(t, Touch::EdgeId(_) | Touch::Row(_) | Touch::Page(_))),
                    );
                    self.state.touched.push_back((w.version, Touch::Sweep));
                    self.state.touched.shrink_to(FEWEST_FOR_SWEEP as usize);
                    self.state.load_notes = (w.version, None);
                    return;
                }
                notes => self.state.load_notes = (w.version, Some(notes.unwrap_or(0) + 1)),
            }
        }
        if self.state.touched.back() != Some(&(w.version, touch)) {
            self.state.touched.push_back((w.version, touch));
        }
    }

    /// Notes a row for `reclaim`, if its page has undo records.
    pub(super) fn touch_row(&mut self, w: &Writer<'_>, place: RowPlace) {
        if self.partition.rows.resident(place.page(), &pin()).is_none_or(|page| page.undo().is_none()) {
            return;
        }
        if !w.bulk {
            self.state.touched.push_back((w.version, Touch::Row(place)));
        } else if self.state.pages.note(place.page(), w.version) {
            self.state.touched.push_back((w.version, Touch::Page(place.page())));
        }
    }

    /// Creates a vertex or merges into an existing one. Returns true if it was created.
    pub fn create_vertex(
        &mut self,
        w: &mut Writer<'_>,
        gui: Gui,
        id: &Str,
        labels: &[Token],
        properties: &[PropertyWrite],
    ) -> bool {
        let guard = pin();
        let known = self.slot(gui);
        let before = known.and_then(|slot| self.partition.nodes.get(slot).row.get());
        let (pages, view) = self.pages(&guard);
        if before.is_some_and(|place| pages.is_present(view, place)) {
            self.add_labels(w, gui, labels);
            let mut writes: SmallVec<[&PropertyWrite; 8]> = properties.iter().collect();
            if let Some(replaced) = w.keeps {
                self.leave_present(gui, replaced, &mut writes);
            }
            self.set_properties(w, gui, &writes);
            return false;
        }
        // Older versions may still see what the vertex was before it was removed.
        let previous =
            before.and_then(|place| pages.removed_at(view, place).map(|ended| Previous { place, ended }));
        let distinct: SmallVec<[Token; 4]> = distinct(&[], labels);
        let content = Content::of_writes(properties);
        let owner = RowOwner::Vertex(gui);
        let place = pages.insert(view, Some(w.version), owner, Some(id), &distinct, &content, previous);
        match known {
            Some(slot) => {
                self.partition.nodes.modify(slot, w.version);
                self.partition.nodes.get(slot).row.set(Some(place));
            }
            None => self.insert_node(gui, place, w.version),
        }
        self.touch_row(w, place);
        self.partition.distinct.note(properties.iter().map(|write| (write.key, &write.value)));
        w.tally.vertices += 1;
        w.vertex_labels(&distinct, 1);
        true
    }

    /// Adds the node of a new vertex to the index.
    pub(super) fn insert_node(&mut self, gui: Gui, place: RowPlace, version: Version) {
        let slot = self.partition.nodes.take(&mut self.state.free_nodes);
        self.partition.nodes.modify(slot, version);
        let node = self.partition.nodes.get(slot);
        node.out.clear();
        node.inward.clear();
        node.gui.store(gui.0, Ordering::Relaxed);
        node.row.set(Some(place));
        self.partition.by_gui.insert(&mut self.state.permit, gui.0, slot);
    }

    /// Returns the edges that a vertex still has, self-loops once.
    pub fn live_edges(&self, gui: Gui) -> Vec<Edge> {
        let mut edges = Vec::new();
        if let Some(slot) = self.slot(gui) {
            let node = self.partition.nodes.get(slot);
            // Above every version, so that it sees exactly what has not ended.
            let newest = Version(u64::MAX - 1);
            let guard = &pin();
            self.partition.links.for_each_visible(&node.out, newest, guard, |link| {
                edges.push(Edge { sid: link.sid, source: gui, target: link.neighbour, label: link.label });
            });
            self.partition.links.for_each_visible(&node.inward, newest, guard, |link| {
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

    /// Returns the edges with a neighbour that has no lists in this partition. Looks at all lists.
    pub fn edges_with(&self, neighbour: Gui) -> Vec<Edge> {
        let mut edges = Vec::new();
        let newest = Version(u64::MAX - 1);
        for slot in 0..self.partition.nodes.end() {
            // One guard for each slot: the walk is long, and replaced memory should be freed meanwhile.
            let guard = &pin();
            let node = self.partition.nodes.get(slot);
            let gui = node.gui();
            self.partition.links.for_each_visible(&node.out, newest, guard, |link| {
                if link.neighbour == neighbour {
                    edges.push(Edge { sid: link.sid, source: gui, target: neighbour, label: link.label });
                }
            });
            self.partition.links.for_each_visible(&node.inward, newest, guard, |link| {
                if link.neighbour == neighbour {
                    edges.push(Edge { sid: link.sid, source: neighbour, target: gui, label: link.label });
                }
            });
        }
        edges
    }

    /// Deletes a vertex; its edges must be deleted already.
    pub fn delete_vertex(&mut self, w: &mut Writer<'_>, gui: Gui) {
        let guard = pin();
        let Some((slot, place)) = self.present_slot(gui, &guard) else { return };
        if !self.bring(place, &guard) {
            return;
        }
        let (pages, view) = self.pages(&guard);
        w.tally.vertices -= 1;
        w.vertex_labels(pages.labels(view, place), -1);
        pages.remove(view, w.version, place);
        self.touch_row(w, place);
        // For adjacency that outlives the row, or to free the node with it.
        self.touch(w, Touch::Node(slot));
    }

    /// Adds labels to a vertex.
    pub fn add_labels(&mut self, w: &mut Writer<'_>, gui: Gui, labels: &[Token]) {
        let guard = pin();
        let Some((slot, place)) = self.present_slot(gui, &guard) else { return };
        let (pages, view) = self.pages(&guard);
        let before = pages.labels(view, place);
        let new: SmallVec<[Token; 4]> = distinct(before, labels);
        if new.is_empty() {
            return;
        }
        let all: SmallVec<[Token; 4]> = before.iter().chain(&new).copied().collect();
        if !self.bring(place, &guard) {
            return;
        }
        w.vertex_labels(&new, 1);
        let (pages, view) = self.pages(&guard);
        let changed = pages.relabel(view, w.version, place, &all);
        self.moved_vertex(w, slot, place, changed);
    }

    /// Removes labels from a vertex.
    pub fn remove_labels(&mut self, w: &mut Writer<'_>, gui: Gui, labels: &[Token]) {
        let guard = pin();
        let Some((slot, place)) = self.present_slot(gui, &guard) else { return };
        let (pages, view) = self.pages(&guard);
        let before = pages.labels(view, place);
        let (gone, kept): (SmallVec<[Token; 4]>, SmallVec<[Token; 4]>) =
            before.iter().copied().partition(|label| labels.contains(label));
        if gone.is_empty() {
            return;
        }
        if !self.bring(place, &guard) {
            return;
        }
        w.vertex_labels(&gone, -1);
        self.note_fewer_labels(slot, &kept);
        let (pages, view) = self.pages(&guard);
        let changed = pages.relabel(view, w.version, place, &kept);
        self.moved_vertex(w, slot, place, changed);
    }

    /// Writes values to a vertex, as one change.
    pub fn set_properties(&mut self, w: &mut Writer<'_>, gui: Gui, writes: &[&PropertyWrite]) {
        if writes.is_empty() {
            return;
        }
        self.partition.distinct.note(writes.iter().map(|write| (write.key, &write.value)));
        self.change_vertex(w, gui, |pages, view, version, place| {
            pages.write_all(view, version, place, writes)
        });
    }

    /// Removes the writes of single values that the vertex has in the newest version, except of the keys in `replaced`.
    fn leave_present(&mut self, gui: Gui, replaced: &[Token], writes: &mut SmallVec<[&PropertyWrite; 8]>) {
        let guard = pin();
        let Some((_, place)) = self.present_slot(gui, &guard) else { return };
        if !self.bring(place, &guard) {
            return;
        }
        let (pages, view) = self.pages(&guard);
        writes.retain(|write| {
            write.cardinality != Cardinality::Single
                || replaced.contains(&write.key)
                || !pages.has_value(view, place, write.key)
        });
    }

    /// Writes or removes meta-properties of a vertex's values, as one change.
    pub fn set_meta_properties(&mut self, w: &mut Writer<'_>, gui: Gui, writes: &[MetaWrite<'_>]) {
        self.change_vertex(w, gui, |pages, view, version, place| {
            pages.annotate(view, version, place, writes)
        });
    }

    /// Removes one value of a vertex's property, or all of them.
    pub fn remove_property(&mut self, w: &mut Writer<'_>, gui: Gui, key: Token, value: Option<&Value>) {
        self.change_vertex(w, gui, |pages, view, version, place| {
            pages.erase(view, version, place, key, value)
        });
    }

    fn change_vertex(
        &mut self,
        w: &mut Writer<'_>,
        gui: Gui,
        change: impl FnOnce(&mut PageWriter, TableView<'_>, Version, RowPlace) -> Changed,
    ) {
        let guard = pin();
        let Some((slot, place)) = self.present_slot(gui, &guard) else { return };
        if !self.bring(place, &guard) {
            return;
        }
        let (pages, view) = self.pages(&guard);
        let changed = change(pages, view, w.version, place);
        self.moved_vertex(w, slot, place, changed);
    }

    /// Updates the reference to a vertex's row after a change.
    fn moved_vertex(&mut self, w: &Writer<'_>, slot: u32, place: RowPlace, changed: Changed) {
        if changed == Changed::No {
            return;
        }
        self.touch_row(w, place);
        if let Changed::Moved(new) = changed {
            self.partition.nodes.modify(slot, w.version);
            self.partition.nodes.get(slot).row.set(Some(new));
            self.touch_row(w, new);
        }
    }

    /// STO-2: adds the copy of an edge at its target; returns false if the target does not exist.
    pub fn add_in(&mut self, w: &mut Writer<'_>, edge: &Edge) -> bool {
        let Some((slot, place)) = self.present_slot(edge.target, &pin()) else { return false };
        self.partition.note_edge(place, edge.label, false);
        let link = Link { neighbour: edge.source, sid: edge.sid, label: edge.label };
        let list = &self.partition.nodes.get(slot).inward;
        self.partition.links.push(&mut self.state.permit, list, link, w.version, self.partition.reclaimed());
        self.touch(w, Touch::Node(slot));
        true
    }

    /// Adds an edge at its source, with id and properties; returns false if the source does not exist.
    pub fn add_out(
        &mut self,
        w: &mut Writer<'_>,
        edge: &Edge,
        id: Option<&Str>,
        properties: &[(Token, Value)],
    ) -> bool {
        let Some((slot, place)) = self.present_slot(edge.source, &pin()) else { return false };
        self.partition.note_edge(place, edge.label, true);
        let link = Link { neighbour: edge.target, sid: edge.sid, label: edge.label };
        let list = &self.partition.nodes.get(slot).out;
        self.partition.links.push(&mut self.state.permit, list, link, w.version, self.partition.reclaimed());
        self.touch(w, Touch::Node(slot));
        self.add_content(w, edge, id, properties);
        true
    }

    /// Counts a new edge, and adds its row if it has an id or properties.
    fn add_content(
        &mut self,
        w: &mut Writer<'_>,
        edge: &Edge,
        id: Option<&Str>,
        properties: &[(Token, Value)],
    ) {
        if id.is_some() || !properties.is_empty() {
            let content = Content::of_properties(properties);
            let place = self.insert_edge(&pin(), Some(w.version), edge.sid, id, &content);
            self.touch_row(w, place);
        }
        w.edges(edge.label, 1);
    }

    /// Adds the row of an edge; without a version it has always been there.
    pub(super) fn insert_edge(
        &mut self,
        guard: &Guard,
        version: Option<Version>,
        sid: Sid,
        id: Option<&Str>,
        content: &Content,
    ) -> RowPlace {
        let (pages, view) = self.pages(guard);
        let place = pages.insert(view, version, RowOwner::Edge(sid), id, &[], content, None);
        self.partition.by_sid.insert(&mut self.state.permit, sid_hash(sid), place.0);
        place
    }

    /// Ends the copy of an edge at its target.
    pub fn remove_in(&mut self, w: &mut Writer<'_>, edge: &Edge) {
        let Some(slot) = self.slot(edge.target) else { return };
        let list = &self.partition.nodes.get(slot).inward;
        let permit = &mut self.state.permit;
        if self
            .partition
            .links
            .end(permit, list, edge.sid, edge.label, w.version, self.partition.reclaimed())
            .is_some()
        {
            self.touch(w, Touch::Node(slot));
        }
    }

    /// Ends an edge at its source. Returns `None` if it did not exist, else its user-chosen id, if any.
    pub fn remove_out(&mut self, w: &mut Writer<'_>, edge: &Edge) -> Option<Option<Str>> {
        let slot = self.slot(edge.source)?;
        let list = &self.partition.nodes.get(slot).out;
        self.partition.links.end(
            &mut self.state.permit,
            list,
            edge.sid,
            edge.label,
            w.version,
            self.partition.reclaimed(),
        )?;
        self.touch(w, Touch::Node(slot));
        w.edges(edge.label, -1);
        let guard = pin();
        let Some(place) = self.edge_place(edge.sid, &guard) else { return Some(None) };
        if !self.bring(place, &guard) {
            return Some(None);
        }
        let (pages, view) = self.pages(&guard);
        if !pages.is_present(view, place) {
            return Some(None);
        }
        let id = pages.id(view, place);
        pages.remove(view, w.version, place);
        self.touch_row(w, place);
        Some(id)
    }

    /// Sets a property of an edge, which gets a row if it has none.
    pub fn set_edge_property(&mut self, w: &mut Writer<'_>, edge: &Edge, key: Token, value: &Value) {
        let guard = pin();
        if self.edge_place(edge.sid, &guard).is_some() {
            let keeps = w.keeps.is_some();
            return self.change_edge(w, edge.sid, |pages, view, version, place| {
                if keeps && pages.has_value(view, place, key) {
                    return Changed::No;
                }
                pages.write(view, version, place, key, Cardinality::Single, value)
            });
        }
        // The edge has no row yet; the adjacency knows since when it exists.
        if self.live_edge(edge.source, edge.sid).is_some() {
            let content = Content::of_properties(&[(key, value.clone())]);
            let place = self.insert_edge(&guard, Some(w.version), edge.sid, None, &content);
            self.touch_row(w, place);
        }
    }

    /// Removes a property of an edge.
    pub fn remove_edge_property(&mut self, w: &mut Writer<'_>, edge: &Edge, key: Token) {
        self.change_edge(w, edge.sid, |pages, view, version, place| {
            pages.erase(view, version, place, key, None)
        });
    }

    fn change_edge(
        &mut self,
        w: &mut Writer<'_>,
        sid: Sid,
        change: impl FnOnce(&mut PageWriter, TableView<'_>, Version, RowPlace) -> Changed,
    ) {
        let guard = pin();
        let Some(place) = self.edge_place(sid, &guard) else { return };
        if !self.bring(place, &guard) {
            return;
        }
        let (pages, view) = self.pages(&guard);
        if !pages.is_present(view, place) {
            return;
        }
        let changed = change(pages, view, w.version, place);
        if changed == Changed::No {
            return;
        }
        self.touch_row(w, place);
        if let Changed::Moved(new) = changed {
            // The new entry first, so that a concurrent reader finds one of them.
            self.partition.by_sid.insert(&mut self.state.permit, sid_hash(sid), new.0);
            self.partition.by_sid.remove(&mut self.state.permit, sid_hash(sid), place.0);
            self.touch_row(w, new);
        }
    }

    /// Returns whether an edge exists now and has this user-chosen id.
    pub fn has_edge_with_id(&self, sid: Sid, id: &str) -> bool {
        let guard = pin();
        let view = TableView { table: &self.partition.rows, guard: &guard };
        self.edge_place(sid, &guard).is_some_and(|place| {
            self.bring(place, &guard)
                && self.state.pages.is_present(view, place)
                && self.state.pages.id(view, place).is_some_and(|stored| stored == id)
        })
    }

    /// Returns the edge of a SID if it exists now.
    pub fn live_edge(&self, source: Gui, sid: Sid) -> Option<Edge> {
        let list = &self.partition.nodes.get(self.slot(source)?).out;
        let link = self.partition.links.find(list, sid, None, &pin()).filter(FoundEntry::live)?.link;
        Some(Edge { sid, source, target: link.neighbour, label: link.label })
    }

    /// Adds the entry of a user-chosen edge id.
    pub fn add_edge_id(&mut self, w: &Writer<'_>, hash: u64, source: Gui, sid: Sid) {
        let slot = self.partition.edge_ids.take(&mut self.state.free_edge_ids);
        self.partition.edge_ids.modify(slot, w.version);
        self.partition.edge_ids.get(slot).set(EdgeIdEntry { hash, source, sid });
        self.partition.by_edge_id.insert(&mut self.state.permit, hash, slot);
    }

    /// Schedules the entry of an ended edge for removal, once no version needs it.
    pub fn remove_edge_id(&mut self, w: &Writer<'_>, hash: u64, sid: Sid) {
        let slot = self.partition.by_edge_id.find(hash, &crossbeam_epoch::pin(), |slot| {
            let entry = self.partition.edge_ids.get(slot).get();
            entry.hash == hash && entry.sid == sid
        });
        if let Some(slot) = slot {
            self.partition.edge_ids.modify(slot, w.version);
            self.ended_in(slot, |ended| ended + 1);
            // Never left to a sweep: the entry does not say that its edge has ended.
            self.state.touched.push_back((w.version, Touch::EdgeId(slot)));
        }
    }

    /// Updates the number of ended edges in the group of a slot.
    fn ended_in(&self, slot: u32, count: impl FnOnce(u32) -> u32) {
        let ended = &self.partition.edge_ids_ended;
        ended.reserve().unwrap_or_else(|error| panic!("edge ids cannot be counted: {error}"));
        let ended = ended.get((slot / GROUP) as usize);
        ended.store(count(ended.load(Ordering::Relaxed)), Ordering::Release);
    }

    /// Frees the node of a vertex that no version sees.
    pub(super) fn free_node(&mut self, slot: u32) {
        let node = self.partition.nodes.get(slot);
        let gui = node.gui();
        self.partition.by_gui.remove(&mut self.state.permit, gui.0, slot);
        node.row.free();
        self.partition.nodes.give_back(&mut self.state.free_nodes, slot, &pin());
    }

    /// Frees the entry of an edge id whose edge no version sees.
    pub(super) fn free_edge_id(&mut self, slot: u32) {
        let hash = self.partition.edge_ids.get(slot).get().hash;
        self.partition.by_edge_id.remove(&mut self.state.permit, hash, slot);
        self.partition.edge_ids.get(slot).free();
        self.ended_in(slot, |ended| ended - 1);
        self.partition.edge_ids.give_back(&mut self.state.free_edge_ids, slot, &pin());
    }
}

/// Returns the labels that are not in `before`, each once, in order.
pub(super) fn distinct(before: &[Token], labels: &[Token]) -> SmallVec<[Token; 4]> {
    let mut new: SmallVec<[Token; 4]> = SmallVec::new();
    for label in labels {
        if !before.contains(label) && !new.contains(label) {
            new.push(*label);
        }
    }
    new
}

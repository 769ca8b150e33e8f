//! Large frontiers over spilled pages: each page is read once.
//!
//! The rows of a frontier come in any order, and there may not be room for all of their pages. So the store sorts the
//! frontier by page, answers it in that order, and restores the requested order. A frontier whose pages are all in
//! memory pays for one look at the places of its rows; a store that never spilled pays nothing.

use super::Generation;
use crossbeam_epoch::pin;
use tidegraph_apl::{Apl, At, CellMeta, EdgeRead, EdgeRows, Error, VertexRead, VertexRows};
use tidegraph_types::{Edge, Gui, Str};

/// Shorter frontiers are read in their own order.
const WORTH_SORTING: usize = 32;

/// A frontier's rows in order of pages.
struct PageOrder {
    /// Rows by position in that order.
    rows: Vec<u32>,
}

impl PageOrder {
    fn apply<T: Clone>(&self, items: &[T]) -> Vec<T> {
        self.rows.iter().map(|&row| items[row as usize].clone()).collect()
    }

    /// Returns the position of each row in that order.
    fn places(&self) -> Vec<u32> {
        let mut places = vec![0; self.rows.len()];
        for (place, &row) in (0..).zip(&self.rows) {
            places[row as usize] = place;
        }
        places
    }

    /// Appends answers that came in page order, in the order of the rows.
    fn restore<T: Clone>(&self, answers: &[T], out: &mut Vec<T>) {
        out.extend(self.places().into_iter().map(|place| answers[place as usize].clone()));
    }
}

/// Appends groups of items in another order of the groups.
fn restore_groups<T: Clone>(
    places: &[u32],
    (ends, items): (&[u32], &[T]),
    (out_ends, out): (&mut Vec<u32>, &mut Vec<T>),
) {
    if ends.is_empty() {
        return;
    }
    for &place in places {
        let start = place.checked_sub(1).map_or(0, |before| ends[before as usize]);
        out.extend_from_slice(&items[start as usize..ends[place as usize] as usize]);
        out_ends.push(out.len() as u32);
    }
}

/// Appends meta-properties in the order of the rows; `first` is the number of the first cell.
fn restore_meta(places: &[u32], rows: &VertexRows, mut first: usize, out: &mut Vec<CellMeta>) {
    if rows.meta.is_empty() {
        return;
    }
    for &place in places {
        let cells = rows.first_cell_of(place as usize)..rows.cell_ends[place as usize] as usize;
        for meta in rows.meta_of(cells.clone()) {
            let cell = (first + meta.cell as usize - cells.start) as u32;
            out.push(CellMeta { cell, ..meta.clone() });
        }
        first += cells.len();
    }
}

impl Generation {
    /// Returns the order of pages, given the page of each row and whether it is spilled; `None` if sorting does not
    /// pay.
    fn order(&self, rows: usize, page: impl Fn(usize) -> Option<(u64, bool)>) -> Option<PageOrder> {
        if rows < WORTH_SORTING || self.page_memory.spilled() == 0 {
            return None;
        }
        let mut any_cold = false;
        let mut keys: Vec<(u64, u32)> = (0..rows)
            .map(|row| {
                let (page, cold) = page(row).unwrap_or_default();
                any_cold |= cold;
                (page, row as u32)
            })
            .collect();
        // A frontier in order is answered as it is, also one that was sorted here.
        if !any_cold || keys.is_sorted() {
            return None;
        }
        keys.sort_unstable();
        Some(PageOrder { rows: keys.into_iter().map(|(_, row)| row).collect() })
    }

    fn page_of_vertex(&self, gui: Gui) -> Option<(u64, bool)> {
        let partition = &self.partitions[self.number(gui)];
        let place = partition.node(partition.slot(gui, &pin())?).row.get()?;
        Some(partition.rows().whereabouts(place.page()))
    }

    fn page_of_edge(&self, edge: &Edge) -> Option<(u64, bool)> {
        let partition = &self.partitions[self.number(edge.source)];
        let place = partition.probable_edge_place(edge.sid, &pin())?;
        Some(partition.rows().whereabouts(place.page()))
    }

    /// Resolves a large frontier of ids page by page; returns `None` if it should be answered as it is.
    pub(super) fn resolve_by_page(
        &self,
        at: At,
        ids: &[Str],
        out: &mut Vec<Option<Gui>>,
    ) -> Option<Result<(), Error>> {
        let order = self.order(ids.len(), |row| self.page_of_vertex(self.config.hasher.gui(&ids[row])))?;
        let mut answers = Vec::with_capacity(ids.len());
        let answered = self.resolve_vertices(at, &order.apply(ids), &mut answers);
        Some(answered.map(|()| order.restore(&answers, out)))
    }

    /// Like [`Self::resolve_by_page`], for the places of new ids.
    pub(super) fn place_by_page(
        &self,
        at: At,
        ids: &[(Str, u64)],
        out: &mut Vec<(Gui, u64)>,
    ) -> Option<Result<(), Error>> {
        let order = self.order(ids.len(), |row| self.page_of_vertex(self.config.hasher.gui(&ids[row].0)))?;
        let mut answers = Vec::with_capacity(ids.len());
        let answered = self.place(at, &order.apply(ids), &mut answers);
        Some(answered.map(|()| order.restore(&answers, out)))
    }

    /// Like [`Self::resolve_by_page`], for the content of vertices.
    pub(super) fn vertices_by_page(
        &self,
        at: At,
        read: &VertexRead,
        frontier: &[Gui],
        out: &mut VertexRows,
    ) -> Option<Result<(), Error>> {
        let order = self.order(frontier.len(), |row| self.page_of_vertex(frontier[row]))?;
        let mut rows = VertexRows::default();
        let answered = self.vertices(at, read, &order.apply(frontier), &mut rows);
        Some(answered.map(|()| {
            let places = order.places();
            order.restore(&rows.present, &mut out.present);
            if read.ids {
                order.restore(&rows.ids, &mut out.ids);
            }
            restore_groups(&places, (&rows.label_ends, &rows.labels), (&mut out.label_ends, &mut out.labels));
            let first = out.cells.len();
            restore_groups(&places, (&rows.cell_ends, &rows.cells), (&mut out.cell_ends, &mut out.cells));
            restore_meta(&places, &rows, first, &mut out.meta);
        }))
    }

    /// Like [`Self::resolve_by_page`], for the content of edges.
    pub(super) fn edges_by_page(
        &self,
        at: At,
        read: &EdgeRead,
        frontier: &[Edge],
        out: &mut EdgeRows,
    ) -> Option<Result<(), Error>> {
        let order = self.order(frontier.len(), |row| self.page_of_edge(&frontier[row]))?;
        let mut rows = EdgeRows::default();
        let answered = self.edges(at, read, &order.apply(frontier), &mut rows);
        Some(answered.map(|()| {
            order.restore(&rows.present, &mut out.present);
            if read.ids {
                order.restore(&rows.ids, &mut out.ids);
            }
            restore_groups(
                &order.places(),
                (&rows.cell_ends, &rows.cells),
                (&mut out.cell_ends, &mut out.cells),
            );
        }))
    }
}

//! Takes over pages of a checkpoint. They keep their numbers, and so do their rows. Of the pages of a larger partition,
//! some rows are taken, which get new places.

use super::bytes::Texts;
use super::bytes::{Error, Loaded};
use super::column::{ColumnType, decode};
use super::overflow::Content;
use super::page::{ROWS, RowPlace};
use super::page_table::{PAGES, PageTable};
use super::page_writer::{PageState, PageWriter, SetPages, TableView};
use super::read::RowOwner;
use super::sets::{Column, ColumnShape, RowKind};
use super::write::{content_of, id_of};
use crossbeam_epoch::Guard;
use std::sync::atomic::Ordering;
use tidegraph_types::{Token, Value};

/// What a page adds to the partition.
pub(crate) struct Adopted<'g> {
    /// Labels of vertices; empty for edges.
    pub labels: &'g [Token],
    /// Number of present rows.
    pub rows: usize,
    pub vertices: bool,
}

impl PageWriter {
    /// Decodes a page and puts it in the table under its number. Numbers must increase; those that are left out
    /// become free.
    pub fn adopt<'g>(
        &mut self,
        view: TableView<'g>,
        number: u32,
        bytes: &[u8],
    ) -> Result<Adopted<'g>, Error> {
        if number < view.table.end() || number as usize >= PAGES {
            return Err(Error::Wrong { at: 0, found: u64::from(number), what: "number of the next page" });
        }
        let page = Loaded::of_set(bytes, |shape| self.sets.adopt(shape).clone())?.into_page();
        while view.table.end() < number {
            self.free_numbers.push(view.table.extend());
        }
        view.table.extend();
        view.table.replace(number, Some(page));
        let set = page.set();
        let used = page.header().used.load(Ordering::Relaxed) as usize;
        let free: Vec<u16> = (0..used).filter(|row| !page.is_present(*row)).map(|row| row as u16).collect();
        let rows = used - free.len();
        view.table.publish_sets(&self.sets);
        set.profile.adopt(rows as u64);
        for (at, column) in (0..).zip(&set.columns) {
            let cells = page.column(at);
            for row in (0..used).filter(|row| page.is_present(*row)) {
                set.profile.widen(at, column.shape.column, cells.load(row));
            }
        }
        let open = !free.is_empty() || used < ROWS;
        if self.page_states.len() <= number as usize {
            self.page_states.resize_with(number as usize + 1, PageState::default);
        }
        self.page_states[number as usize] =
            PageState { set: set.number, kept: rows as u32, free, open, ..PageState::default() };
        let by_set = set.number as usize;
        if self.by_set.len() <= by_set {
            self.by_set.resize_with(by_set + 1, SetPages::default);
        }
        self.by_set[by_set].pages += 1;
        if open {
            self.by_set[by_set].open.push(number);
        }
        Ok(Adopted { labels: &set.labels, rows, vertices: set.kind == RowKind::Vertex })
    }
}

/// A row of a page of a checkpoint, and its new place.
pub(crate) struct TakenRow<'r> {
    pub owner: RowOwner,
    /// Number of the row in the page of the checkpoint.
    pub row: usize,
    pub place: RowPlace,
    pub labels: &'r [Token],
    content: &'r Content,
}

impl TakenRow<'_> {
    /// Returns the values whose key has one value.
    pub fn single_values(&self) -> Vec<(Token, Value)> {
        let single = self.content.entries.iter().filter(|entry| entry.values.len() == 1);
        single.flat_map(|entry| entry.values.iter().map(|value| (entry.key, Value::from(value)))).collect()
    }
}

impl PageWriter {
    /// Decodes a page and adds the rows whose owner `takes` returns true for. They are visible at every version. Calls
    /// `taken` with each.
    pub fn adopt_some(
        &mut self,
        view: TableView<'_>,
        bytes: &[u8],
        takes: impl Fn(RowOwner) -> bool,
        mut taken: impl FnMut(TakenRow<'_>),
    ) -> Result<(), Error> {
        let loaded = Loaded::from_bytes(0, bytes)?;
        let page = loaded.page();
        let set = page.set();
        for row in 0..page.header().used.load(Ordering::Relaxed) as usize {
            let owner = RowOwner::of(set.kind, page.owners()[row].load(Ordering::Relaxed));
            if !page.is_present(row) || !takes(owner) {
                continue;
            }
            // SAFETY: the row is present, and no other thread has the page.
            let (content, id) = unsafe { (content_of(page, row), id_of(page, row)) };
            let place = self.insert(view, None, owner, id.as_ref(), &set.labels, &content, None);
            taken(TakenRow { owner, row, place, labels: &set.labels, content: &content });
        }
        Ok(())
    }
}

impl PageTable {
    /// Calls `each` with all values of a page that are in columns. The partition must not change meanwhile.
    pub fn for_each_value(&self, number: u32, guard: &Guard, mut each: impl FnMut(Token, &Value)) {
        let Some(page) = self.get(number, guard) else { return };
        let used = page.header().used.load(Ordering::Relaxed) as usize;
        for (at, column) in (0..).zip(&page.set().columns) {
            let ColumnShape { key, column, .. } = column.shape;
            if column == ColumnType::Elsewhere {
                continue;
            }
            for row in (0..used).filter(|row| page.is_present(*row)) {
                // SAFETY: the words are a cell of that column, of a present row that does not change.
                let value = unsafe { decode(column, page.load(at, row)) };
                each(key, &Value::from(value));
            }
        }
    }

    /// Returns the keys of a page that have columns.
    pub fn keys(&self, number: u32, guard: &Guard) -> Vec<Token> {
        let columns = self.get(number, guard).map(|page| &page.set().columns);
        let stands = |column: &&Column| column.shape.column != ColumnType::Elsewhere;
        columns.into_iter().flatten().filter(stands).map(|column| column.shape.key).collect()
    }

    /// Returns whether a row is present and belongs to `owner`. For partitions without readers yet.
    pub fn holds(&self, owner: RowOwner, place: RowPlace, guard: &Guard) -> bool {
        // Loads the page even beyond the budget, because many of its rows are asked for.
        self.bring_always(place.page(), guard)
            .is_some_and(|page| page.is_owned_by(owner, place.row()) && page.is_present(place.row()))
    }

    /// Calls `each` with the SID and place of every row of an edge.
    pub fn for_each_edge(&self, guard: &Guard, mut each: impl FnMut(u64, RowPlace)) {
        for number in 0..self.end() {
            let Some(peek) = self.peek(number, Texts::Of(&[]), guard) else { continue };
            let page = peek.page();
            if page.set().kind == RowKind::Vertex {
                continue;
            }
            for row in
                (0..page.header().used.load(Ordering::Relaxed) as usize).filter(|r| page.is_present(*r))
            {
                each(page.owners()[row].load(Ordering::Relaxed), RowPlace::new(number, row));
            }
        }
    }
}

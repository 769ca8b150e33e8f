//! Taking over a page of a checkpoint: it keeps its number, and its rows theirs.

use super::bytes::Texts;
use super::bytes::{Error, Loaded};
use super::column::{ColumnType, decode};
use super::keeper::{Book, Desk, Keeper, SetBook};
use super::page::{Place, ROWS};
use super::page_table::{PAGES, PageTable};
use super::read::Owner;
use super::sets::{Column, ColumnShape, Kind};
use crossbeam_epoch::Guard;
use std::sync::atomic::Ordering;
use tidegraph_types::{Token, Value};

/// What came with a page.
pub(crate) struct Adopted<'g> {
    /// Labels of vertices; none of edges.
    pub labels: &'g [Token],
    /// Rows that are there.
    pub rows: usize,
    pub vertices: bool,
}

impl Keeper {
    /// Puts the page of some bytes in its place. Numbers come in order; those that are left out become free.
    pub fn adopt<'g>(&mut self, desk: Desk<'g>, number: u32, bytes: &[u8]) -> Result<Adopted<'g>, Error> {
        if number < desk.table.end() || number as usize >= PAGES {
            return Err(Error::Wrong { at: 0, found: u64::from(number), what: "number of the next page" });
        }
        let page = Loaded::of_set(bytes, |shape| self.sets.adopt(shape).clone())?.into_page();
        while desk.table.end() < number {
            self.free_numbers.push(desk.table.extend());
        }
        desk.table.extend();
        desk.table.replace(number, Some(page));
        let set = page.set();
        let used = page.header().used.load(Ordering::Relaxed) as usize;
        let free: Vec<u16> = (0..used).filter(|row| !page.is_present(*row)).map(|row| row as u16).collect();
        let rows = used - free.len();
        desk.table.know(&self.sets);
        set.profile.adopt(rows as u64);
        for (at, column) in (0..).zip(&set.columns) {
            let cells = page.column(at);
            for row in (0..used).filter(|row| page.is_present(*row)) {
                set.profile.widen(at, column.shape.column, cells.load(row));
            }
        }
        let open = !free.is_empty() || used < ROWS;
        if self.books.len() <= number as usize {
            self.books.resize_with(number as usize + 1, Book::default);
        }
        self.books[number as usize] =
            Book { set: set.number, kept: rows as u32, free, open, ..Book::default() };
        let by_set = set.number as usize;
        if self.by_set.len() <= by_set {
            self.by_set.resize_with(by_set + 1, SetBook::default);
        }
        self.by_set[by_set].pages += 1;
        if open {
            self.by_set[by_set].open.push(number);
        }
        Ok(Adopted { labels: &set.labels, rows, vertices: set.kind == Kind::Vertex })
    }
}

impl PageTable {
    /// Calls `each` with all values of a page that stand in columns; of a partition that nobody changes.
    pub fn for_each_value(&self, number: u32, guard: &Guard, mut each: impl FnMut(Token, &Value)) {
        let Some(page) = self.get(number, guard) else { return };
        let used = page.header().used.load(Ordering::Relaxed) as usize;
        for (at, column) in (0..).zip(&page.set().columns) {
            let ColumnShape { key, column, .. } = column.shape;
            if column == ColumnType::Elsewhere {
                continue;
            }
            for row in (0..used).filter(|row| page.is_present(*row)) {
                // SAFETY: the words are a cell of that column, of a row that is there and does not change.
                let value = unsafe { decode(column, page.load(at, row)) };
                each(key, &Value::from(value));
            }
        }
    }

    /// Keys of a page that have columns.
    pub fn keys(&self, number: u32, guard: &Guard) -> Vec<Token> {
        let columns = self.get(number, guard).map(|page| &page.set().columns);
        let stands = |column: &&Column| column.shape.column != ColumnType::Elsewhere;
        columns.into_iter().flatten().filter(stands).map(|column| column.shape.key).collect()
    }

    /// Whether a row is there and whose it is: for partitions that nobody reads yet.
    pub fn holds(&self, owner: Owner, place: Place, guard: &Guard) -> bool {
        // Whatever room there is: many rows of one page are asked for.
        self.bring_always(place.page(), guard)
            .is_some_and(|page| page.is_owned_by(owner, place.row()) && page.is_present(place.row()))
    }

    /// Calls `each` with the SID and place of every row of an edge.
    pub fn for_each_edge(&self, guard: &Guard, mut each: impl FnMut(u64, Place)) {
        for number in 0..self.end() {
            let Some(peek) = self.peek(number, Texts::Of(&[]), guard) else { continue };
            let page = peek.page();
            if page.set().kind == Kind::Vertex {
                continue;
            }
            for row in
                (0..page.header().used.load(Ordering::Relaxed) as usize).filter(|r| page.is_present(*r))
            {
                each(page.owners()[row].load(Ordering::Relaxed), Place::new(number, row));
            }
        }
    }
}

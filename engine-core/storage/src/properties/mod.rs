//! Properties, labels and ids: rows in pages of their characteristic set.
//!
//! Roles: `sets` describes labels and keys of rows, `page` their layout, `column` the content of a cell, `overflow`
//! values without a cell, `undo` earlier values. `read` answers for one row at a version; `scan`, `predicate` and
//! `project` for whole pages. `page_writer`, `write`, `load` and `reclaim` form the one writer. `page_table` finds
//! pages by number, `bytes` encodes and decodes pages, and `spill` moves pages to a file and back.
//!
//! A vertex has one row, and so has an edge with an id or properties. The owner of a row knows its place, and the row
//! names its owner. A write that changes labels, keys or the type of a value moves the row to a page of another set.
//! The undo record of the new row leads older versions to the old place.
//!
//! Readers take no lock, but need a pinned epoch. A reader whose version is reclaimed while it reads may get
//! meaningless data, which it must discard, but never freed memory.
//!
//! What must never happen: a row that one version reads in two ways (STO-1); an address followed where something else
//! could stand; a pointer into a page kept longer than the guard.

mod adopt;
mod bytes;
mod column;
mod load;
mod moment;
mod overflow;
mod page;
mod page_table;
mod page_writer;
mod predicate;
mod profile;
mod project;
mod read;
mod reclaim;
mod scalar;
mod scan;
mod sets;
pub(crate) mod spill;
#[cfg(test)]
mod tests;
mod undo;
mod wide;
mod write;

pub(crate) use bytes::{Error as ImageError, Scratch};
pub(crate) use overflow::{Content, MetaWrite};
pub(crate) use page::{ROWS, RowPlace};
pub(crate) use page_table::PageTable;
pub(crate) use page_writer::{Changed, Freed, PageWriter, TableView};
pub(crate) use project::Project;
pub(crate) use read::{PlainRow, Row, RowOwner, RowRequest, Stale};
pub(crate) use scan::{Counted, Listed, Scan, VertexSink};
pub(crate) use undo::Previous;

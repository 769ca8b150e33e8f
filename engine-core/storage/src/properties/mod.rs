//! Properties, labels and ids: rows in pages of their characteristic set.
//!
//! Roles: `sets` says which labels and keys rows have, `page` where they are, `column` what a cell holds, `overflow`
//! what has no cell, `undo` what was before, `read` answers for one row at a version, `scan`, `predicate` and
//! `project` for whole pages, `keeper`, `write`, `load` and `settle` are the one writer, `page_table` finds pages by number,
//! `bytes` turns a page into bytes and back, `spill` moves pages to a file and back.
//!
//! A vertex has one row, and so has an edge with an id or properties; who owns the row knows its place, and the row
//! names its owner. A write that changes labels, keys or the type of a value moves the row to a page of another set,
//! and the new row's undo record leads older versions to the old place.
//!
//! Readers take no lock: they need a pinned epoch. One whose version is settled away while it reads gets nonsense, which
//! it has to throw away, but nothing that is freed.
//!
//! What must never happen: a row that two versions read differently; an address that is followed where something else
//! could stand; a pointer into a page kept beyond the guard.

mod adopt;
mod bytes;
mod column;
mod keeper;
mod load;
mod overflow;
mod page;
mod page_table;
mod predicate;
mod profile;
mod project;
mod read;
mod scalar;
mod scan;
mod sets;
mod settle;
pub(crate) mod spill;
#[cfg(test)]
mod tests;
mod undo;
mod wide;
mod write;

pub(crate) use bytes::{Error as ImageError, Scratch};
pub(crate) use keeper::{Changed, Desk, Freed, Keeper};
pub(crate) use overflow::{Content, MetaWrite};
pub(crate) use page::{Place, ROWS};
pub(crate) use page_table::PageTable;
pub(crate) use project::Project;
pub(crate) use read::{Owner, Row, Stale, Want};
pub(crate) use scan::{Counted, Found, Listed, Scan};
pub(crate) use undo::Previous;

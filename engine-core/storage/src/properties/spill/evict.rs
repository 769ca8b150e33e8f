//! Moving pages out: the writer's round over its pages.

use super::super::bytes;
use super::super::keeper::{Desk, Keeper};
use super::super::page::Page;
use super::super::settle::drop_rows;
use super::super::undo::{Undo, retire_chain};
use std::sync::atomic::Ordering;

/// What one round over some pages did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Evicted {
    /// Bytes of memory that will be free.
    pub bytes: u64,
    /// Pages that were looked at.
    pub looked: u32,
}

impl Keeper {
    /// Moves pages out until so many bytes went, or all pages were looked at twice: the first look takes the mark of use
    /// away.
    pub fn evict(&mut self, desk: Desk<'_>, goal: u64) -> Evicted {
        let mut evicted = Evicted::default();
        let end = desk.table.end();
        desk.table.know(&self.sets);
        while evicted.bytes < goal && evicted.looked < 2 * end {
            let number = self.hand % end;
            self.hand = (number + 1) % end;
            evicted.looked += 1;
            let Some(page) = desk.table.hot(number, desk.guard) else { continue };
            if desk.table.was_used(number) || !self.fold(desk, number, page) {
                continue;
            }
            match self.evict_page(desk, number, page) {
                Some(bytes) => evicted.bytes += bytes,
                None if desk.table.room().stuck().is_some() => break,
                None => {}
            }
        }
        if evicted.bytes > 0 {
            desk.guard.flush();
        }
        evicted
    }

    fn evict_page(&mut self, desk: Desk<'_>, number: u32, page: Page<'_>) -> Option<u64> {
        let (table, room) = (desk.table, desk.table.room());
        let extent = match table.image(number) {
            Some(extent) => extent,
            None => {
                table.recount(page);
                let image = match table.to_bytes(number, desk.guard) {
                    Ok(image) => image,
                    // Values that no image can hold: the page stays.
                    Err(bytes::Error::Value(_)) => return None,
                    Err(error) => unreachable!("the writer's own page without versions: {error}"),
                };
                match room.write(table.owner(number), &image) {
                    Ok(extent) => {
                        *room.stuck.lock() = None;
                        extent?
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a page could not be moved out of memory");
                        *room.stuck.lock() = Some(error);
                        return None;
                    }
                }
            }
        };
        let bytes = table.chill(number, extent);
        let page = page.as_raw();
        // SAFETY: no longer in the table; readers from before are waited for. It has no undo records, and whoever
        // reads it back builds texts of its own.
        unsafe {
            desk.guard.defer_unchecked(move || {
                if let Some(page) = Page::from_raw(page) {
                    drop_rows(page);
                    page.free();
                }
            });
        }
        Some(bytes)
    }

    /// Whether a page has no undo records; or had none but that all of its rows came at one version, which is then said
    /// once for the page. So a load that is larger than memory can leave memory before it is visible.
    pub(in super::super) fn fold(&mut self, desk: Desk<'_>, number: u32, page: Page<'_>) -> bool {
        let Some(heads) = page.undo() else { return true };
        let used = page.header().used.load(Ordering::Relaxed) as usize;
        let (mut version, mut others) = (None, false);
        for (row, head) in heads.iter().enumerate().take(used) {
            // SAFETY: the writer's own records, linked and not cut off.
            let Some(record) = (unsafe { head.load(Ordering::Relaxed).as_ref() }) else {
                others |= page.is_present(row);
                continue;
            };
            let came = matches!(record.undo, Undo::Inserted { previous: None })
                && record.next.load(Ordering::Relaxed).is_null()
                && page.is_present(row);
            if !came || version.is_some_and(|version| version != record.version) {
                return false;
            }
            version = Some(record.version);
        }
        let Some(version) = version.filter(|version| !others || desk.table.begin(number) == *version) else {
            return false;
        };
        // Said before the records go: who finds none reads this.
        desk.table.set_begin(number, version);
        let book = &mut self.books[number as usize];
        book.versioned = 0;
        book.inserted = None;
        let taken = page.header().undo.swap(std::ptr::null_mut(), Ordering::AcqRel);
        for head in heads.iter().take(used) {
            // SAFETY: unlinked with the heads.
            unsafe { retire_chain(page.set(), head.load(Ordering::Relaxed), desk.guard) };
        }
        // SAFETY: taken off the page, so that only readers from before have it.
        unsafe { desk.guard.defer_unchecked(move || drop(Box::from_raw(taken))) };
        true
    }
}

//! Moving pages out: the writer's round over its pages.

use super::super::bytes;
use super::super::keeper::{Desk, Keeper};
use super::super::page::Page;
use super::super::settle::drop_rows;

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
            // Rows of a load that fill their page have no records: it may leave memory before it is visible.
            if desk.table.was_used(number) || page.undo().is_some() {
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
}

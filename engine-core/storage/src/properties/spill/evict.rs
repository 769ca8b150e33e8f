//! Evicts pages: the writer's round over its pages.

use super::super::bytes;
use super::super::page::Page;
use super::super::page_writer::{PageWriter, TableView};
use super::super::reclaim::drop_rows;

/// Result of a round over some pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Evicted {
    /// Bytes of memory that will be freed.
    pub bytes: u64,
    /// Number of pages looked at.
    pub looked: u32,
}

impl PageWriter {
    /// Evicts pages until `goal` bytes are freed, or all pages were looked at twice: the first look clears the mark
    /// of use.
    pub fn evict(&mut self, view: TableView<'_>, goal: u64) -> Evicted {
        let mut evicted = Evicted::default();
        let end = view.table.end();
        view.table.publish_sets(&self.sets);
        while evicted.bytes < goal && evicted.looked < 2 * end {
            let number = self.clock_hand % end;
            self.clock_hand = (number + 1) % end;
            evicted.looked += 1;
            let Some(page) = view.table.resident(number, view.guard) else { continue };
            // Rows of a load that fill their page have no records, so the page may leave memory before it is visible.
            if view.table.was_used(number) || page.undo().is_some() {
                continue;
            }
            match self.evict_page(view, number, page) {
                Some(bytes) => evicted.bytes += bytes,
                None if view.table.memory().stuck().is_some() => break,
                None => {}
            }
        }
        if evicted.bytes > 0 {
            view.guard.flush();
        }
        evicted
    }

    fn evict_page(&mut self, view: TableView<'_>, number: u32, page: Page<'_>) -> Option<u64> {
        let (table, memory) = (view.table, view.table.memory());
        let extent = match table.image(number) {
            Some(extent) => extent,
            None => {
                table.recount(page);
                let image = match table.to_bytes(number, view.guard) {
                    Ok(image) => image,
                    // Values that no image can hold keep the page in memory.
                    Err(bytes::Error::Value(_)) => return None,
                    Err(error) => unreachable!("the writer's own page without versions: {error}"),
                };
                match memory.write(table.owner(number), &image) {
                    Ok(extent) => {
                        *memory.stuck.lock() = None;
                        extent?
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a page could not be moved out of memory");
                        *memory.stuck.lock() = Some(error);
                        return None;
                    }
                }
            }
        };
        let bytes = table.move_to_file(number, extent);
        let page = page.as_raw();
        // SAFETY: no longer in the table, and earlier readers are waited for. It has no undo records, and reading it
        // back makes new texts.
        unsafe {
            view.guard.defer_unchecked(move || {
                if let Some(page) = Page::from_raw(page) {
                    drop_rows(page);
                    page.free();
                }
            });
        }
        Some(bytes)
    }
}

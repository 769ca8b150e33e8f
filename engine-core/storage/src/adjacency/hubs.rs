//! The hubs of a partition by number, so that a list can name one in a word.
//!
//! A hub whose last entry was settled is taken out of its list first; it is freed, and its number given to another, only
//! when every reader is gone that might have loaded the number.

use super::hub::Hub;
use crate::arena::Limbo;
use crate::virtual_array::{VirtualArray, ZeroValid};
use crossbeam_epoch::Guard;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

// SAFETY: all zero bits are the null pointer.
unsafe impl<T> ZeroValid for AtomicPtr<T> {}

/// See the module.
pub(super) struct Hubs {
    table: VirtualArray<AtomicPtr<Hub>>,
    book: Mutex<HubsBook>,
}

#[derive(Default)]
struct HubsBook {
    next: u32,
    free: Vec<u32>,
    limbo: Limbo<u32>,
}

impl Default for Hubs {
    fn default() -> Self {
        Self { table: VirtualArray::new(1 << if cfg!(miri) { 10 } else { 24 }), book: Mutex::default() }
    }
}

impl Drop for Hubs {
    fn drop(&mut self) {
        for number in 0..self.book.get_mut().next {
            self.take(number);
        }
    }
}

impl Hubs {
    /// Frees a hub that nobody looks at any more.
    fn take(&self, number: u32) {
        let hub = self.table.get(number as usize).swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !hub.is_null() {
            // SAFETY: it came from `Box::into_raw` in `insert`, the null in its place says that it is freed once, and
            // no reader is left (the caller's promise).
            drop(unsafe { Box::from_raw(hub) });
        }
    }

    pub fn insert(&self, hub: Hub) -> u32 {
        if let Err(error) = self.table.reserve() {
            panic!("{error}");
        }
        let mut book = self.book.lock();
        let number = book.free.pop().unwrap_or_else(|| {
            book.next += 1;
            book.next - 1
        });
        self.table.get(number as usize).store(Box::into_raw(Box::new(hub)), Ordering::Release);
        number
    }

    pub fn get<'g>(&'g self, number: u32, _: &'g Guard) -> &'g Hub {
        // SAFETY: a hub is stored before a list names its number, and freed only when no guard is left from the time
        // when a list did.
        unsafe { &*self.table.get(number as usize).load(Ordering::Acquire) }
    }

    pub fn retire(&self, number: u32, guard: &Guard) {
        self.book.lock().limbo.push(number, guard);
    }

    pub fn waits(&self) -> bool {
        !self.book.lock().limbo.is_empty()
    }

    pub fn collect(&self, guard: &Guard) {
        let mut book = self.book.lock();
        if !book.limbo.is_empty() {
            book.limbo.seal(guard);
            while let Some(numbers) = book.limbo.pop() {
                for number in numbers {
                    self.take(number);
                    book.free.push(number);
                }
            }
        }
    }

    pub fn bytes(&self, guard: &Guard) -> usize {
        let next = self.book.lock().next;
        (0..next)
            .filter(|number| !self.table.get(*number as usize).load(Ordering::Acquire).is_null())
            .map(|number| self.get(number, guard).bytes(guard))
            .sum()
    }
}

//! The hubs of a partition by number, so that a list can name one in its word.
//!
//! A hub whose last entry has gone is removed from its list first. It is freed, and its number reused, only after
//! every reader that might have loaded the number has gone.

use super::hub::Hub;
use crate::arena::Limbo;
use crate::virtual_array::{VirtualArray, ZeroValid};
use crossbeam_epoch::Guard;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

// SAFETY: all zero bits are the null pointer.
unsafe impl<T> ZeroValid for AtomicPtr<T> {}

/// A table of hubs with stable numbers.
pub(super) struct Hubs {
    table: VirtualArray<AtomicPtr<Hub>>,
    state: Mutex<HubNumbers>,
}

#[derive(Default)]
struct HubNumbers {
    next: u32,
    free: Vec<u32>,
    limbo: Limbo<u32>,
}

impl Default for Hubs {
    fn default() -> Self {
        Self { table: VirtualArray::new(1 << if cfg!(miri) { 10 } else { 24 }), state: Mutex::default() }
    }
}

impl Drop for Hubs {
    fn drop(&mut self) {
        for number in 0..self.state.get_mut().next {
            self.take(number);
        }
    }
}

impl Hubs {
    /// Frees a hub that no reader uses any more.
    fn take(&self, number: u32) {
        let hub = self.table.get(number as usize).swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !hub.is_null() {
            // SAFETY: it came from `Box::into_raw` in `insert`; the null in its place ensures that it is freed once;
            // the caller ensures that no reader is left.
            drop(unsafe { Box::from_raw(hub) });
        }
    }

    /// Adds a hub and returns its number.
    pub fn insert(&self, hub: Hub) -> u32 {
        if let Err(error) = self.table.reserve() {
            panic!("{error}");
        }
        let mut state = self.state.lock();
        let number = state.free.pop().unwrap_or_else(|| {
            state.next += 1;
            state.next - 1
        });
        self.table.get(number as usize).store(Box::into_raw(Box::new(hub)), Ordering::Release);
        number
    }

    /// Returns a hub that a list names.
    pub fn get<'g>(&'g self, number: u32, _: &'g Guard) -> &'g Hub {
        // SAFETY: a hub is stored before a list names its number, and freed only after every guard from the time when
        // a list did has gone.
        unsafe { &*self.table.get(number as usize).load(Ordering::Acquire) }
    }

    /// Schedules a hub, which no list names any more, to be freed.
    pub fn retire(&self, number: u32, guard: &Guard) {
        self.state.lock().limbo.push(number, guard);
    }

    /// Returns whether hubs wait for their last readers.
    pub fn waits(&self) -> bool {
        !self.state.lock().limbo.is_empty()
    }

    /// Frees the hubs that no reader looks at any more.
    pub fn collect(&self, guard: &Guard) {
        let mut state = self.state.lock();
        if !state.limbo.is_empty() {
            state.limbo.seal(guard);
            while let Some(numbers) = state.limbo.pop() {
                for number in numbers {
                    self.take(number);
                    state.free.push(number);
                }
            }
        }
    }

    /// Returns the bytes of all hubs, without their chunks.
    pub fn bytes(&self, guard: &Guard) -> usize {
        let next = self.state.lock().next;
        (0..next)
            .filter(|number| !self.table.get(*number as usize).load(Ordering::Acquire).is_null())
            .map(|number| self.get(number, guard).bytes(guard))
            .sum()
    }
}

//! Collected links of a load, in memory of their own: hundreds of megabytes for a short time.
//!
//! They lie in a reserved range of addresses, so they never move while more are added, and their memory goes back to
//! the kernel as soon as they are written; an allocator would keep it.

use super::PendingLink;
use crate::virtual_array::{VirtualArray, ZeroValid};

/// Largest number of pending links of a partition: 12 GiB, if the kernel grants as many addresses.
const MOST: usize = if cfg!(miri) { 1 << 14 } else { 1 << 29 };

// SAFETY: all fields are numbers, and no thread shares them.
unsafe impl ZeroValid for PendingLink {}

/// The links of one partition that wait to be written.
pub(crate) struct PendingLinks {
    links: VirtualArray<PendingLink>,
    len: usize,
}

impl Default for PendingLinks {
    fn default() -> Self {
        Self { links: VirtualArray::new(MOST), len: 0 }
    }
}

impl PendingLinks {
    /// Adds a link.
    ///
    /// # Panics
    ///
    /// If there is no memory for it.
    #[inline]
    pub fn push(&mut self, link: PendingLink) {
        if self.len >= self.links.capacity() {
            self.first();
        }
        // SAFETY: below the capacity, so inside the mapping, and `&mut self` proves that nobody else has it.
        unsafe { self.links.base().add(self.len).write(link) };
        self.len += 1;
    }

    #[cold]
    fn first(&self) {
        self.links.reserve().unwrap_or_else(|error| panic!("links of a load cannot wait: {error}"));
        let most = self.links.capacity();
        assert!(self.len < most, "no room for more than {most} links that wait");
    }

    /// Returns whether `more` links fit.
    pub fn fits(&self, more: usize) -> bool {
        let most = match self.links.capacity() {
            0 => MOST,
            most => most,
        };
        self.len + more <= most
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn as_mut_slice(&mut self) -> &mut [PendingLink] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: `push` wrote all of them, and `&mut self` proves that nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(self.links.base(), self.len) }
    }

    /// Removes all links and gives their memory back.
    pub fn clear(&mut self) {
        let len = std::mem::take(&mut self.len);
        if len > 0 {
            // SAFETY: nobody else has them, and they are written before they are read again.
            unsafe { self.links.release(0..len) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::{Edge, Gui, Sid, Token};

    #[test]
    fn what_waits_is_there_until_it_is_cleared() {
        let mut pending = PendingLinks::default();
        assert!(pending.is_empty() && pending.as_mut_slice().is_empty() && pending.fits(MOST));
        let edge = |n: u64| Edge { sid: Sid(n), source: Gui(n), target: Gui(n + 1), label: Token(1) };
        for round in 1..4 {
            let links = if cfg!(miri) { 100 } else { 300_000 };
            (0..links).for_each(|n| pending.push(PendingLink::out(n as u32, &edge(n * round))));
            assert_eq!(pending.as_mut_slice().len() as u64, links);
            assert!(pending.fits(1) && !pending.fits(MOST));
            let all = (0..).zip(pending.as_mut_slice().iter());
            all.for_each(|(n, link)| assert_eq!(link.link().sid, Sid(n * round)));
            pending.clear();
            assert!(pending.is_empty());
        }
    }
}

//! Links that wait, in memory of their own: hundreds of megabytes for a large load, for a short time.
//!
//! They lie in a reserved range of addresses, so that they never move while more come, and what they took goes back to
//! the machine as soon as they are written; an allocator would keep it.

use super::Waiting;
use crate::virtual_array::{VirtualArray, ZeroValid};

/// Links of one partition that can wait: 12 GiB of them, where the machine has so many addresses.
const MOST: usize = if cfg!(miri) { 1 << 14 } else { 1 << 29 };

// SAFETY: all of it are numbers, and nobody shares them.
unsafe impl ZeroValid for Waiting {}

/// See the module.
pub(crate) struct Waits {
    links: VirtualArray<Waiting>,
    len: usize,
}

impl Default for Waits {
    fn default() -> Self {
        Self { links: VirtualArray::new(MOST), len: 0 }
    }
}

impl Waits {
    /// Adds a link. Panics where there is no room: like any allocation.
    #[inline]
    pub fn push(&mut self, link: Waiting) {
        if self.len >= self.links.capacity() {
            self.first();
        }
        // SAFETY: below the capacity, so inside of the mapping, and nobody else has it: `&mut self`.
        unsafe { self.links.base().add(self.len).write(link) };
        self.len += 1;
    }

    #[cold]
    fn first(&self) {
        self.links.reserve().unwrap_or_else(|error| panic!("links of a load cannot wait: {error}"));
        let most = self.links.capacity();
        assert!(self.len < most, "no room for more than {most} links that wait");
    }

    /// Whether so many more fit.
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

    pub fn as_mut_slice(&mut self) -> &mut [Waiting] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: all of them were written by `push`, and nobody else has them: `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.links.base(), self.len) }
    }

    /// Forgets all links and gives their memory back.
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
        let mut waits = Waits::default();
        assert!(waits.is_empty() && waits.as_mut_slice().is_empty() && waits.fits(MOST));
        let edge = |n: u64| Edge { sid: Sid(n), source: Gui(n), target: Gui(n + 1), label: Token(1) };
        for round in 1..4 {
            let links = if cfg!(miri) { 100 } else { 300_000 };
            (0..links).for_each(|n| waits.push(Waiting::out(n as u32, &edge(n * round))));
            assert_eq!(waits.as_mut_slice().len() as u64, links);
            assert!(waits.fits(1) && !waits.fits(MOST));
            let all = (0..).zip(waits.as_mut_slice().iter());
            all.for_each(|(n, link)| assert_eq!(link.link().sid, Sid(n * round)));
            waits.clear();
            assert!(waits.is_empty());
        }
    }
}

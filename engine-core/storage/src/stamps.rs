//! Version stamps: what makes an adjacency entry or a new vertex visible to some versions only.
//!
//! A record carries four bytes. Zero means *settled*: visible to every version that can still be read. Anything else
//! names a stamp here, a pair of begin and end version shared by all records with the same pair. Stamps are made in
//! order of writing and dropped in that order, once every record that the writes touched has been settled.
//!
//! What must never happen: a record naming a stamp that was dropped.

use std::collections::VecDeque;
use tidegraph_types::Version;

/// Visible to every version that can be read.
pub(crate) const SETTLED: u32 = 0;
/// Stamp numbers run from 1 to this and then start again, so that records can use higher ones as marks.
pub(crate) const HIGHEST: u32 = u32::MAX - 16;
/// End of what has not ended.
const NEVER: Version = Version(u64::MAX);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp {
    pub begin: Version,
    pub end: Version,
}

impl Stamp {
    #[inline]
    pub fn visible(self, at: Version) -> bool {
        self.begin <= at && at < self.end
    }

    pub fn live(self) -> bool {
        self.end == NEVER
    }

    fn written(self) -> Version {
        if self.live() { self.begin } else { self.end }
    }
}

/// All stamps of a partition that a record may name.
#[derive(Default)]
pub(crate) struct Stamps {
    stamps: VecDeque<Stamp>,
    /// Number of stamps dropped since the start; the number of the first one kept follows from it.
    dropped: u64,
}

impl Stamps {
    fn number(&self, index: usize) -> u32 {
        ((self.dropped + index as u64) % u64::from(HIGHEST)) as u32 + 1
    }

    /// The pair behind a number, which is neither `SETTLED` nor a mark.
    #[inline]
    pub fn get(&self, number: u32) -> Stamp {
        let first = (self.dropped % u64::from(HIGHEST)) as u32;
        let at = number - 1;
        let index = if at >= first { at - first } else { at + (HIGHEST - first) };
        self.stamps[index as usize]
    }

    #[inline]
    pub fn visible(&self, number: u32, at: Version) -> bool {
        number == SETTLED || self.get(number).visible(at)
    }

    /// The stamp of what is made now.
    pub fn created(&mut self, version: Version) -> u32 {
        self.make(Stamp { begin: version, end: NEVER })
    }

    /// The stamp of what ends now, given the one that it had.
    pub fn ended(&mut self, number: u32, version: Version) -> u32 {
        let begin = if number == SETTLED { Version(0) } else { self.get(number).begin };
        self.make(Stamp { begin, end: version })
    }

    fn make(&mut self, stamp: Stamp) -> u32 {
        // The writes of one version make a handful of pairs at most: the last few are worth a look.
        for back in 1..=self.stamps.len().min(4) {
            let index = self.stamps.len() - back;
            if self.stamps[index] == stamp {
                return self.number(index);
            }
        }
        self.stamps.push_back(stamp);
        self.number(self.stamps.len() - 1)
    }

    /// Drops the stamps of writes up to and including `version`: no record names them any more.
    pub fn drop_through(&mut self, version: Version) {
        while self.stamps.front().is_some_and(|stamp| stamp.written() <= version) {
            self.stamps.pop_front();
            self.dropped += 1;
        }
        if self.stamps.is_empty() {
            self.stamps.shrink_to(64);
        }
    }

    pub fn bytes(&self) -> usize {
        self.stamps.capacity() * size_of::<Stamp>()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.stamps.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_drops_and_wrap_around() {
        let mut stamps = Stamps { dropped: u64::from(HIGHEST) - 3, ..Stamps::default() };
        let numbers: Vec<_> = (1..=8).map(|v| (v, stamps.created(Version(v)))).collect();
        assert_eq!(stamps.created(Version(8)), numbers[7].1, "one version shares its stamp");
        assert!(numbers.iter().all(|&(_, n)| (1..=HIGHEST).contains(&n)));
        for &(v, number) in &numbers {
            assert_eq!(stamps.get(number).begin, Version(v));
        }
        stamps.drop_through(Version(5));
        assert_eq!(stamps.len(), 3);
        for &(v, number) in &numbers[5..] {
            assert_eq!(stamps.get(number).begin, Version(v));
        }
        let ended = stamps.ended(numbers[7].1, Version(9));
        assert!(stamps.visible(ended, Version(8)) && !stamps.visible(ended, Version(9)));
        assert!(!stamps.visible(ended, Version(7)));
        let settled = stamps.ended(SETTLED, Version(9));
        assert!(stamps.visible(settled, Version(0)) && !stamps.visible(settled, Version(9)));
    }
}

//! Labels of vertices: interned label sets, and which vertices have a label.
//!
//! A vertex names its ordered set of labels by one number. Sets are never forgotten: there are as many as combinations
//! that were ever used, few in any real graph.
//!
//! The members of a label are a bitmap of slots. It may list a vertex that lost the label until no readable version
//! sees it there, never leave one out, so a scan of any version takes its candidates here and checks them.

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tidegraph_types::Token;

/// Ordered sets of labels by number; 0 is the empty set.
pub(crate) struct LabelSets {
    sets: Vec<Arc<[Token]>>,
    numbers: FxHashMap<Arc<[Token]>, u32>,
}

impl Default for LabelSets {
    fn default() -> Self {
        let empty: Arc<[Token]> = Arc::from([]);
        Self { sets: vec![empty.clone()], numbers: std::iter::once((empty, 0)).collect() }
    }
}

impl LabelSets {
    /// The number of a set.
    pub fn intern(&mut self, labels: &[Token]) -> u32 {
        if let Some(&number) = self.numbers.get(labels) {
            return number;
        }
        let set: Arc<[Token]> = Arc::from(labels);
        let number = self.sets.len() as u32;
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }

    #[inline]
    pub fn get(&self, number: u32) -> &[Token] {
        &self.sets[number as usize]
    }

    pub fn len(&self) -> usize {
        self.sets.len()
    }

    pub fn bytes(&self) -> usize {
        self.sets.iter().map(|set| 64 + size_of_val(&**set)).sum()
    }
}

/// Candidates by label.
#[derive(Default)]
pub(crate) struct Members {
    slots: FxHashMap<Token, RoaringBitmap>,
}

impl Members {
    pub fn insert(&mut self, label: Token, slot: u32) {
        self.slots.entry(label).or_default().insert(slot);
    }

    pub fn remove(&mut self, label: Token, slot: u32) {
        if let Some(slots) = self.slots.get_mut(&label) {
            slots.remove(slot);
            if slots.is_empty() {
                self.slots.remove(&label);
            }
        }
    }

    pub fn count(&self, label: Token) -> u64 {
        self.slots.get(&label).map_or(0, RoaringBitmap::len)
    }

    /// Slots from `first` on that may have one of the labels, in order, each once, at most `most` of them.
    pub fn candidates(&self, labels: &[Token], first: u32, most: usize, out: &mut Vec<u32>) {
        let mut lists: Vec<_> = labels
            .iter()
            .filter_map(|label| self.slots.get(label))
            .map(|slots| slots.range(first..).peekable())
            .collect();
        match &mut lists[..] {
            [] => {}
            [one] => out.extend(one.take(most)),
            _ => {
                while out.len() < most {
                    let Some(next) = lists.iter_mut().filter_map(|list| list.peek().copied()).min() else {
                        break;
                    };
                    for list in &mut lists {
                        list.next_if_eq(&next);
                    }
                    out.push(next);
                }
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.slots.values().map(|slots| slots.serialized_size() + 64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_shared_and_ordered() {
        let mut sets = LabelSets::default();
        let ab = sets.intern(&[Token(1), Token(2)]);
        let ba = sets.intern(&[Token(2), Token(1)]);
        assert_ne!(ab, ba);
        assert_eq!(sets.intern(&[Token(1), Token(2)]), ab);
        assert_eq!(sets.get(ba), [Token(2), Token(1)]);
        assert_eq!(sets.intern(&[]), 0);
    }

    #[test]
    fn candidates_of_several_labels_come_once_in_order() {
        let mut members = Members::default();
        for slot in 0..20 {
            members.insert(Token(slot % 2), slot);
            members.insert(Token(2 + slot % 3), slot);
        }
        let mut out = Vec::new();
        members.candidates(&[Token(0), Token(2)], 3, 5, &mut out);
        assert_eq!(out, [3, 4, 6, 8, 9]);
        members.remove(Token(0), 4);
        out.clear();
        members.candidates(&[Token(0)], 0, 3, &mut out);
        assert_eq!(out, [0, 2, 6]);
    }
}

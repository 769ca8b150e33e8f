//! The conditions of a pattern that are not checked yet, by the slots that they use.
//!
//! A pattern may have thousands of conditions. After each step, the lowering asks for the conditions that became ready
//! and for the conditions that use a slot. Neither answer needs a walk over the other conditions.
//!
//! **Invariant.** A condition is ready if none of its slots is unbound; conditions keep the order in which they came.

use crate::{Expr, Slot};
use std::collections::{BTreeMap, BTreeSet};

/// Conditions by number; numbers grow.
#[derive(Default)]
pub(super) struct Conjuncts {
    waiting: BTreeMap<usize, Conjunct>,
    /// Numbers of the conditions that use a slot. Some of the conditions may be removed already.
    of_slot: BTreeMap<Slot, Vec<usize>>,
    /// Numbers of the conditions whose slots are all bound.
    ready: BTreeSet<usize>,
    next: usize,
}

struct Conjunct {
    expr: Expr,
    slots: BTreeSet<Slot>,
    /// Number of the slots that are not bound yet.
    unbound: usize,
}

impl Conjuncts {
    /// Adds each part of a conjunction.
    pub fn push_all(&mut self, condition: Expr, unbound: &BTreeSet<Slot>) {
        match condition {
            Expr::And(all) => all.into_iter().for_each(|part| self.push_all(part, unbound)),
            other => self.push(other, unbound),
        }
    }

    fn push(&mut self, expr: Expr, unbound: &BTreeSet<Slot>) {
        let number = self.next;
        self.next += 1;
        let mut slots = BTreeSet::new();
        expr.for_each_slot(&mut |slot| {
            slots.insert(slot);
        });
        for slot in &slots {
            self.of_slot.entry(*slot).or_default().push(number);
        }
        let unbound = slots.iter().filter(|slot| unbound.contains(slot)).count();
        if unbound == 0 {
            self.ready.insert(number);
        }
        self.waiting.insert(number, Conjunct { expr, slots, unbound });
    }

    /// Marks a slot as bound. Returns the other slots of the conditions that use it.
    pub fn bind(&mut self, slot: Slot) -> BTreeSet<Slot> {
        let mut others = BTreeSet::new();
        for number in self.of_slot.get(&slot).into_iter().flatten() {
            let Some(conjunct) = self.waiting.get_mut(number) else { continue };
            conjunct.unbound = conjunct.unbound.saturating_sub(1);
            if conjunct.unbound == 0 {
                self.ready.insert(*number);
            }
            others.extend(&conjunct.slots);
        }
        others
    }

    /// Removes and returns the conditions whose slots are all bound.
    pub fn take_ready(&mut self) -> Vec<Expr> {
        let ready = std::mem::take(&mut self.ready);
        ready.iter().filter_map(|number| self.waiting.remove(number)).map(|conjunct| conjunct.expr).collect()
    }

    /// Returns the conditions that use a slot, with their numbers.
    pub fn of(&self, slot: Slot) -> impl Iterator<Item = (usize, &Expr)> {
        let numbers = self.of_slot.get(&slot).into_iter().flatten();
        numbers.filter_map(|number| Some((*number, &self.waiting.get(number)?.expr)))
    }

    /// Returns a condition that was not removed.
    pub fn get(&self, number: usize) -> Option<&Expr> {
        self.waiting.get(&number).map(|conjunct| &conjunct.expr)
    }

    /// Removes a condition.
    pub fn remove(&mut self, number: usize) {
        self.ready.remove(&number);
        self.waiting.remove(&number);
    }
}

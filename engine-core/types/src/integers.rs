//! Integers of one width, without a [`Value`] for each: a fifth of the memory, and nothing to look at when they are dropped.

use crate::Value;
use serde::{Deserialize, Serialize};

/// The width of integers, which both languages keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Width {
    /// [`Value::Int`].
    Int,
    /// [`Value::Long`].
    Long,
}

/// Integers of one width. Those of 32 bits are held as 64.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Integers {
    /// The width of all of them.
    pub width: Width,
    /// The integers, each within the width.
    pub values: Vec<i64>,
}

impl Integers {
    /// Returns an integer as a value; `None` beyond the end.
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> Option<Value> {
        self.values.get(at).map(|value| self.value(*value))
    }

    /// Makes a value of an integer of this width.
    #[inline]
    fn value(&self, integer: i64) -> Value {
        match self.width {
            Width::Int => Value::Int(integer as i32),
            Width::Long => Value::Long(integer),
        }
    }

    /// Returns all as values.
    pub fn iter(&self) -> impl Iterator<Item = Value> {
        self.values.iter().map(|integer| self.value(*integer))
    }
}

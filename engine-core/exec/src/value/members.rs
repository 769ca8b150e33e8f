//! `item IN list` for a long list that many rows ask about: the list becomes a set.
//!
//! Only lists of values that are equal exactly if they are the same value of `types::order` become sets: whole numbers,
//! strings, booleans and elements. Lists with a null, a float or a list in them are compared item by item.

use crate::{Context, Result};
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::sync::Arc;
use tidegraph_types::Value;

/// Shorter lists are compared item by item.
const LEAST_ITEMS: usize = 16;
/// Number of questions about a list before it becomes a set.
const ASKED: u32 = 4;

/// The list that was asked about last.
#[derive(Default)]
pub(super) struct Members(RefCell<Option<Asked>>);

struct Asked {
    list: Arc<Vec<Value>>,
    times: u32,
    /// Its items, if they can be a set and there is memory for it.
    items: Option<FxHashSet<Value>>,
    /// Bytes that the set was charged for.
    bytes: usize,
}

impl Members {
    /// Returns whether a list holds an item; `None` if the caller must compare the items.
    pub fn contains(&self, ctx: &Context<'_>, item: &Value, list: &Value) -> Result<Option<bool>> {
        let (Value::List(items) | Value::Set(items)) = list else { return Ok(None) };
        if items.len() < LEAST_ITEMS || !is_plain(item) {
            return Ok(None);
        }
        let mut last = self.0.borrow_mut();
        let asked = match &mut *last {
            Some(asked) if Arc::ptr_eq(&asked.list, items) => asked,
            other => {
                ctx.memory.release(other.take().map_or(0, |before| before.bytes));
                other.insert(Asked { list: Arc::clone(items), times: 0, items: None, bytes: 0 })
            }
        };
        asked.times = asked.times.saturating_add(1);
        if asked.times == ASKED {
            ctx.spend(items.len())?;
            let bytes = items.len() * 2 * size_of::<Value>();
            if items.iter().all(is_plain) && ctx.memory.charge(bytes).is_ok() {
                asked.bytes = bytes;
                asked.items = Some(items.iter().cloned().collect());
            }
        }
        Ok(asked.items.as_ref().map(|items| items.contains(item)))
    }

    /// Returns the bytes that were charged.
    pub fn bytes(&self) -> usize {
        self.0.borrow().as_ref().map_or(0, |asked| asked.bytes)
    }
}

/// Whether a value equals exactly what has its hash and is the same.
fn is_plain(value: &Value) -> bool {
    matches!(
        value,
        Value::Bool(_)
            | Value::Byte(_)
            | Value::Short(_)
            | Value::Int(_)
            | Value::Long(_)
            | Value::String(_)
            | Value::Vertex(_)
            | Value::Edge(_)
    )
}

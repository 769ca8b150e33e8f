//! Registers: values of the whole request, to which the rows that pass an [`Op::Collect`](tidegraph_plan::Op::Collect) add.
//!
//! A value is charged when it is added, and stays charged until the request ends: any later row may read it.
//!
//! What must never happen: a value grows without a charge; a thread of its own adds to a register, because the registers of its
//! context are not those of the request (`Op::split_scan` leaves such plans to one thread).

use crate::value::{joined, size_of_value};
use crate::{Context, Result};
use std::cell::RefCell;
use std::sync::Arc;
use tidegraph_plan::{Operator, Register};
use tidegraph_types::{Map, Value};

/// Estimated bytes of an entry of a map beside its key and value.
const ENTRY_BYTES: usize = 32;

/// The registers of a request.
#[derive(Default, Debug)]
pub(crate) struct Registers(RefCell<Vec<Value>>);

impl Registers {
    /// Returns the value of a register; unbound if it was never set.
    pub fn get(&self, register: Register) -> Value {
        self.0.borrow().get(register.0 as usize).cloned().unwrap_or(Value::Unbound)
    }

    fn change<R>(&self, register: Register, change: impl FnOnce(&mut Value) -> R) -> R {
        let mut all = self.0.borrow_mut();
        let index = register.0 as usize;
        if all.len() <= index {
            all.resize(index + 1, Value::Unbound);
        }
        change(&mut all[index])
    }

    /// Sets a register.
    pub fn set(&self, register: Register, value: Value, ctx: &Context<'_>) -> Result<()> {
        ctx.memory.charge(size_of_value(&value))?;
        let before = self.change(register, |held| std::mem::replace(held, value));
        if !matches!(before, Value::Unbound) {
            ctx.memory.release(size_of_value(&before));
        }
        Ok(())
    }

    /// Adds values to a list or set.
    pub fn extend(&self, register: Register, values: Vec<Value>, ctx: &Context<'_>) -> Result<()> {
        ctx.memory.charge(values.iter().map(size_of_value).sum())?;
        let rest = self.change(register, |held| match held {
            Value::List(items) => {
                Arc::make_mut(items).extend(values);
                None
            }
            other => Some((std::mem::replace(other, Value::Unbound), values)),
        });
        // An operator may use the context, so that the registers are not borrowed here.
        let Some((held, values)) = rest else { return Ok(()) };
        let value = joined(ctx, Operator::AddAll, &held, &Value::list(values))?;
        self.change(register, |held| *held = value);
        Ok(())
    }

    /// Joins the value of a register with another one.
    pub fn join(
        &self,
        register: Register,
        operator: Operator,
        value: &Value,
        ctx: &Context<'_>,
    ) -> Result<()> {
        let held = self.get(register);
        let value = joined(ctx, operator, &held, value)?;
        self.set(register, value, ctx)
    }

    /// Adds one to the entry of a key.
    pub fn count(&self, register: Register, key: Value, ctx: &Context<'_>) -> Result<()> {
        let one = Value::Long(1);
        let known = self.entry(register, &key);
        let count = match known {
            Some(count) => joined(ctx, Operator::Sum, &count, &one)?,
            None => {
                ctx.memory.charge(size_of_value(&key) + size_of_value(&one) + ENTRY_BYTES)?;
                one
            }
        };
        self.insert(register, key, count)
    }

    /// Adds a value to the list that is the entry of a key.
    pub fn group(&self, register: Register, key: Value, value: Value, ctx: &Context<'_>) -> Result<()> {
        let is_bound = !matches!(value, Value::Unbound);
        ctx.memory.charge(if is_bound { size_of_value(&value) } else { 0 })?;
        let new_key = size_of_value(&key) + ENTRY_BYTES;
        let rest = self.change(register, |held| match held {
            Value::Map(map) => match Arc::make_mut(map).get_mut(&key) {
                Some(Value::List(items)) => {
                    if is_bound {
                        Arc::make_mut(items).push(value);
                    }
                    None
                }
                Some(other) => Some((key, Some(other.clone()), value)),
                None => Some((key, None, value)),
            },
            _ => Some((key, None, value)),
        });
        let Some((key, before, value)) = rest else { return Ok(()) };
        let list = Value::list(if is_bound { vec![value] } else { vec![] });
        let list = match before {
            Some(before) => joined(ctx, Operator::AddAll, &before, &list)?,
            None => {
                ctx.memory.charge(new_key)?;
                list
            }
        };
        self.insert(register, key, list)
    }

    fn entry(&self, register: Register, key: &Value) -> Option<Value> {
        match self.0.borrow().get(register.0 as usize) {
            Some(Value::Map(map)) => map.get(key).cloned(),
            _ => None,
        }
    }

    fn insert(&self, register: Register, key: Value, value: Value) -> Result<()> {
        self.change(register, |held| match held {
            Value::Map(map) => {
                Arc::make_mut(map).insert(key, value);
                Ok(())
            }
            Value::Unbound => {
                *held = Value::map(Map::from_iter([(key, value)]));
                Ok(())
            }
            other => Err(crate::value::not_a_map(other)),
        })
    }
}

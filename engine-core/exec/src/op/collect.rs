//! Rows that change a register of the request, and rows one at a time.

use super::{Boxed, Feed, Operator, Want, compute};
use crate::spill::Queue;
use crate::{Batch, Context, Result};
use tidegraph_plan::{Collected, Expr, Register, Slot};
use tidegraph_types::Value;

/// Changes a register by each row, and yields the rows.
pub(super) struct Collect<'p> {
    input: Boxed<'p>,
    register: Register,
    what: &'p Collected,
    /// The rows of an eager operator, which it yields after the last one has come.
    eager: Option<Eager>,
}

#[derive(Default)]
struct Eager {
    queue: Queue,
    /// The values of the rows, and the keys of those that go into groups.
    values: Vec<Value>,
    keys: Vec<Value>,
    charged: usize,
    drained: bool,
}

impl<'p> Collect<'p> {
    pub(super) fn new(input: Boxed<'p>, register: Register, what: &'p Collected, eager: bool) -> Self {
        Self { input, register, what, eager: eager.then(Eager::default) }
    }

    /// Reads all rows, and then changes the register.
    fn drain(&mut self, ctx: &Context<'_>) -> Result<()> {
        let Some(eager) = &mut self.eager else { return Ok(()) };
        while let Some(batch) = self.input.next(ctx, Want::ALL)? {
            ctx.check()?;
            let mut charge = |value: &Value| {
                let bytes = crate::value::size_of_value(value);
                eager.charged += bytes;
                ctx.memory.charge(bytes)
            };
            if let Collected::Group { key, value } = self.what {
                for (key, value) in pairs(key, value, &batch, ctx)? {
                    charge(&key)?;
                    charge(&value)?;
                    eager.keys.push(key);
                    eager.values.push(value);
                }
            } else {
                for value in values(value_of(self.what), &batch, ctx)? {
                    charge(&value)?;
                    eager.values.push(value);
                }
            }
            eager.queue.push(batch, ctx)?;
        }
        eager.drained = true;
        // The register charges them again.
        ctx.memory.release(std::mem::take(&mut eager.charged));
        let (keys, values) = (std::mem::take(&mut eager.keys), std::mem::take(&mut eager.values));
        if matches!(self.what, Collected::Group { .. }) {
            return group(self.register, keys.into_iter().zip(values), ctx);
        }
        change(self.register, self.what, values, ctx)
    }
}

/// Returns the expression of the value that a row gives.
fn value_of(what: &Collected) -> &Expr {
    match what {
        Collected::Start(value)
        | Collected::Item(value)
        | Collected::Joined(_, value)
        | Collected::Replace(value)
        | Collected::Count(value)
        | Collected::Group { value, .. } => value,
    }
}

/// Computes the values of the rows of a batch, without the unbound ones.
fn values(expr: &Expr, batch: &Batch, ctx: &Context<'_>) -> Result<Vec<Value>> {
    let column = compute::column(expr, batch, ctx)?;
    ctx.spend(batch.len)?;
    let values = (0..batch.len).map(|row| column.get(row));
    Ok(values.filter(|value| !matches!(value, Value::Unbound)).collect())
}

/// Changes a register by the values of rows.
fn change(register: Register, what: &Collected, values: Vec<Value>, ctx: &Context<'_>) -> Result<()> {
    let registers = &ctx.registers;
    match what {
        Collected::Start(_) => values.into_iter().try_for_each(|value| registers.set(register, value, ctx)),
        Collected::Item(_) if values.is_empty() => Ok(()),
        Collected::Item(_) => registers.extend(register, values, ctx),
        Collected::Joined(operator, _) => values.iter().try_for_each(|value| {
            ctx.spend(1)?;
            registers.join(register, *operator, value, ctx)
        }),
        Collected::Replace(_) if values.is_empty() => Ok(()),
        Collected::Replace(_) => registers.set(register, Value::list(values), ctx),
        Collected::Count(_) | Collected::Group { .. } => values.into_iter().try_for_each(|key| {
            ctx.spend(1)?;
            registers.count(register, key, ctx)
        }),
    }
}

/// Computes the keys and values of the rows of a batch, without those whose key is unbound.
fn pairs(key: &Expr, value: &Expr, batch: &Batch, ctx: &Context<'_>) -> Result<Vec<(Value, Value)>> {
    let columns = compute::columns([key, value], batch, ctx)?;
    ctx.spend(batch.len)?;
    let [keys, values] = &columns[..] else { return Ok(vec![]) };
    let pairs = (0..batch.len).map(|row| (keys.get(row), values.get(row)));
    Ok(pairs.filter(|(key, _)| !matches!(key, Value::Unbound)).collect())
}

/// Adds values to the lists of their keys.
fn group(
    register: Register,
    pairs: impl IntoIterator<Item = (Value, Value)>,
    ctx: &Context<'_>,
) -> Result<()> {
    pairs.into_iter().try_for_each(|(key, value)| {
        ctx.spend(1)?;
        ctx.registers.group(register, key, value, ctx)
    })
}

impl Operator for Collect<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        if self.eager.as_ref().is_some_and(|eager| !eager.drained) {
            self.drain(ctx)?;
        }
        if let Some(eager) = &mut self.eager {
            return eager.queue.pop(ctx);
        }
        let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
        match self.what {
            Collected::Group { key, value } => {
                group(self.register, pairs(key, value, &batch, ctx)?, ctx)?;
            }
            what => {
                let mut values = values(value_of(what), &batch, ctx)?;
                if matches!(what, Collected::Replace(_)) {
                    // Each row takes the place of the one before.
                    values.drain(..values.len().saturating_sub(1));
                }
                change(self.register, what, values, ctx)?;
            }
        }
        Ok(Some(batch))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        if let Some(eager) = &mut self.eager {
            eager.queue.clear(ctx);
            eager.values.clear();
            eager.keys.clear();
            ctx.memory.release(std::mem::take(&mut eager.charged));
            eager.drained = false;
        }
        self.input.feed(ctx, feed);
    }
}

/// Yields one row in each batch, or the rows that are equal in some slots.
pub(super) struct Each<'p> {
    input: Boxed<'p>,
    by: &'p [Slot],
    batch: Batch,
    /// The rows of the batch that are left, in groups, the last one first.
    groups: Vec<Vec<u32>>,
    charged: usize,
}

impl<'p> Each<'p> {
    pub(super) fn new(input: Boxed<'p>, by: &'p [Slot]) -> Self {
        Self { input, by, batch: Batch::default(), groups: vec![], charged: 0 }
    }

    fn hold(&mut self, batch: Batch, ctx: &Context<'_>) -> Result<()> {
        self.drop_batch(ctx);
        let bytes = batch.bytes() + batch.len * size_of::<Vec<u32>>();
        ctx.memory.charge(bytes)?;
        self.charged = bytes;
        ctx.spend(batch.len)?;
        let rows = 0..batch.len as u32;
        self.groups = if self.by.is_empty() {
            rows.map(|row| vec![row]).collect()
        } else {
            let mut groups: indexmap::IndexMap<(u32, Vec<Value>), Vec<u32>> = indexmap::IndexMap::new();
            for row in rows {
                let values = self.by.iter().map(|slot| batch.value(*slot, row as usize)).collect();
                groups.entry((batch.origin_of(row as usize), values)).or_default().push(row);
            }
            groups.into_values().collect()
        };
        self.groups.reverse();
        self.batch = batch;
        Ok(())
    }

    fn drop_batch(&mut self, ctx: &Context<'_>) {
        ctx.memory.release(std::mem::take(&mut self.charged));
        self.groups.clear();
        self.batch = Batch::default();
    }
}

impl Operator for Each<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            while let Some(rows) = self.groups.pop() {
                let origin = rows.first().map_or(0, |row| self.batch.origin_of(*row as usize));
                if want.wants(origin) {
                    ctx.spend(rows.len())?;
                    return Ok(Some(self.batch.gather(&rows)));
                }
            }
            match self.input.next(ctx, want)? {
                Some(batch) => self.hold(batch, ctx)?,
                None => {
                    self.drop_batch(ctx);
                    return Ok(None);
                }
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.drop_batch(ctx);
        self.input.feed(ctx, feed);
    }
}

//! Aggregates: one [`Accumulator`] for each aggregate of each group.
//!
//! Null and unbound inputs are skipped. Exceptions: `count(*)` has no input, and the pairs of a map and the list that
//! keeps nulls skip only unbound ones. A weight, if there is one, says how many equal rows a row stands for. An accumulator charges what it keeps to the request's memory as it grows;
//! `finish` releases it.

use super::error::Error;
use super::size::heap_bytes_of_item;
use super::{arithmetic, operate};
use crate::{Column, Context, Result};
use rustc_hash::FxHashSet;
use std::cmp::Ordering;
use std::sync::Arc;
use tidegraph_plan::{AggregateKind, Arithmetic};
use tidegraph_types::temporal::Duration;
use tidegraph_types::{Map, Temporal, Value, order};

/// Bytes of one entry of a hash set or map beyond its values.
const ENTRY_BYTES: usize = 16;

/// The state of one aggregate of one group.
#[derive(Debug)]
pub struct Accumulator {
    kind: AggregateKind,
    distinct: Option<Seen>,
    state: State,
    /// Number of inputs that were not skipped.
    count: u64,
    /// Whether a null was skipped.
    saw_null: bool,
    charged: usize,
    /// Whether the last argument is a weight.
    weighted: bool,
    /// Whether the sum of nulls alone is null.
    null_of_nulls: bool,
}

/// What a distinct aggregate has seen.
#[derive(Debug, Default)]
struct Seen {
    values: FxHashSet<Value>,
    /// The part of the accumulator's bytes that is theirs.
    charged: usize,
    /// Whether new values may wait to be taken when memory is short.
    may_wait: bool,
    /// Once memory was short: values that are not among those above.
    waiting: Option<Vec<Value>>,
}

#[derive(Debug)]
enum State {
    Count,
    Sum(Value),
    Average(f64),
    /// Sum of durations, of which `avg` too is made.
    Lengths(Duration),
    Extreme(Value, Ordering),
    First(Value),
    List(Vec<Value>),
    Set(FxHashSet<Value>, Vec<Value>),
    Map(Map),
    /// Mean, and sum of squared distances from it (Welford's algorithm).
    Deviation(f64, f64),
    /// Values, and the part below the percentile, from the first row.
    Values(Vec<Value>, Option<f64>),
}

impl Accumulator {
    /// Makes an empty accumulator.
    #[must_use]
    pub fn new(kind: AggregateKind, distinct: bool) -> Self {
        let state = match kind {
            AggregateKind::CountRows | AggregateKind::Count => State::Count,
            AggregateKind::Sum | AggregateKind::SumOfTypes => State::Sum(Value::Null),
            AggregateKind::Average | AggregateKind::AverageOfSums => State::Average(0.0),
            AggregateKind::Min => State::Extreme(Value::Null, Ordering::Less),
            AggregateKind::Max => State::Extreme(Value::Null, Ordering::Greater),
            AggregateKind::First => State::First(Value::Null),
            AggregateKind::Collect | AggregateKind::CollectAll => State::List(vec![]),
            AggregateKind::CollectSet => State::Set(FxHashSet::default(), vec![]),
            AggregateKind::CollectMap => State::Map(Map::new()),
            AggregateKind::StdDev | AggregateKind::StdDevP => State::Deviation(0.0, 0.0),
            AggregateKind::PercentileCont | AggregateKind::PercentileDisc => State::Values(vec![], None),
        };
        // A repeated value does not change these.
        let idempotent = matches!(
            kind,
            AggregateKind::CountRows
                | AggregateKind::Min
                | AggregateKind::Max
                | AggregateKind::First
                | AggregateKind::CollectSet
                | AggregateKind::CollectMap
        );
        let distinct = (distinct && !idempotent).then(Seen::default);
        Self {
            kind,
            distinct,
            state,
            count: 0,
            saw_null: false,
            charged: 0,
            weighted: false,
            null_of_nulls: false,
        }
    }

    /// Takes the last argument of each row as the number of rows that it stands for.
    #[must_use]
    pub fn weighted(self, weighted: bool) -> Self {
        Self { weighted, ..self }
    }

    /// Lets values of a distinct aggregate wait if they do not fit into five eighths of the request's memory:
    /// [`Accumulator::take_waiting`] yields them, and each has to be added once, after [`Accumulator::forget_seen`].
    pub(crate) fn let_values_wait(&mut self) {
        if let Some(seen) = &mut self.distinct {
            seen.may_wait = true;
        }
    }

    /// Removes and returns the values that wait. The same value may come several times.
    pub(crate) fn take_waiting(&mut self) -> Vec<Value> {
        let waiting = self.distinct.as_mut().and_then(|seen| seen.waiting.as_mut());
        waiting.map(std::mem::take).unwrap_or_default()
    }

    /// Forgets which values it has seen, so that each value that is added counts.
    pub(crate) fn forget_seen(&mut self, ctx: &Context<'_>) {
        if let Some(seen) = self.distinct.take() {
            self.charged -= seen.charged;
            ctx.memory.release(seen.charged);
        }
    }

    /// Makes the sum of nulls alone null, and not 0.
    #[must_use]
    pub fn null_of_nulls(self, null_of_nulls: bool) -> Self {
        Self { null_of_nulls, ..self }
    }

    /// Whether there was no input, not even a null; `AggregateItem::empty_is_unbound` needs this.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0 && !self.saw_null
    }

    /// Adds one row: no argument for `CountRows`, key and value for `CollectMap`, sum and number for `AverageOfSums`, one
    /// argument otherwise; and then its weight, if rows have one.
    ///
    /// # Errors
    ///
    /// `Error::Memory` if what is kept exceeds the request's limit, `Error::Value` if the aggregate does not take the
    /// value's type.
    pub fn add(&mut self, args: &[Value], ctx: &Context<'_>) -> Result<()> {
        let (args, rows) = match args.split_last() {
            Some((weight, args)) if self.weighted => (args, times(weight)?),
            _ => (args, 1),
        };
        match (self.kind, args) {
            (AggregateKind::CountRows, _) => self.count_rows(rows),
            (AggregateKind::CollectMap, [key, value]) => self.add_pair(key, value, ctx),
            (AggregateKind::AverageOfSums, [sum, values]) => self.add_sum(sum, values),
            (AggregateKind::PercentileCont | AggregateKind::PercentileDisc, [value, part]) => {
                self.set_part(value, part)?;
                self.add_times(value, rows, ctx)
            }
            (_, [value, ..]) => self.add_times(value, rows, ctx),
            (_, []) => Ok(()),
        }
    }

    /// Counts rows that are not skipped.
    fn count_rows(&mut self, rows: i64) -> Result<()> {
        let sum = self.count.checked_add(rows.unsigned_abs());
        self.count = sum.filter(|sum| i64::try_from(*sum).is_ok()).ok_or_else(too_many_rows)?;
        Ok(())
    }

    /// Adds rows of which only the number is known.
    pub(crate) fn add_count(&mut self, rows: u64) {
        self.count += rows;
    }

    /// Adds all rows of a batch, with one column for each argument.
    ///
    /// # Errors
    ///
    /// The same as [`Accumulator::add`].
    pub fn add_all(&mut self, args: &[Arc<Column>], rows: usize, ctx: &Context<'_>) -> Result<()> {
        if self.weighted {
            let mut values: Vec<Value> = Vec::with_capacity(args.len());
            for row in 0..rows {
                values.clear();
                values.extend(args.iter().map(|column| column.get(row)));
                self.add(&values, ctx)?;
            }
            return Ok(());
        }
        match (self.kind, args) {
            (AggregateKind::CountRows, _) => self.count += rows as u64,
            (AggregateKind::CollectMap, [keys, values]) => {
                for row in 0..rows {
                    self.add_pair(&keys.get(row), &values.get(row), ctx)?;
                }
            }
            (AggregateKind::AverageOfSums, [sums, numbers]) => {
                for row in 0..rows {
                    self.add_sum(&sums.get(row), &numbers.get(row))?;
                }
            }
            (AggregateKind::PercentileCont | AggregateKind::PercentileDisc, [values, parts]) => {
                for row in 0..rows {
                    let value = values.get(row);
                    self.set_part(&value, &parts.get(row))?;
                    self.add_value(&value, ctx)?;
                }
            }
            (AggregateKind::Count, [column]) if self.distinct.is_none() => {
                self.count += (0..rows).filter(|row| !column.is_null(*row)).count() as u64;
            }
            (_, [column]) => match &**column {
                Column::Values(values) => {
                    for value in values {
                        self.add_value(value, ctx)?;
                    }
                }
                other => {
                    for row in 0..rows {
                        self.add_value(&other.get(row), ctx)?;
                    }
                }
            },
            _ => {}
        }
        Ok(())
    }

    /// Takes the part of a percentile from the first row that counts.
    fn set_part(&mut self, value: &Value, part: &Value) -> Result<()> {
        let State::Values(_, known) = &mut self.state else { return Ok(()) };
        if known.is_some() || value.is_null() {
            return Ok(());
        }
        let name = percentile_name(self.kind);
        match part.as_f64() {
            Some(part) if (0.0..=1.0).contains(&part) => *known = Some(part),
            Some(_) => return Err(Error::argument(name, "takes a percentile from 0.0 to 1.0", part).into()),
            None => return Err(Error::of_type(name, "a percentile from 0.0 to 1.0", part).into()),
        }
        Ok(())
    }

    fn charge(&mut self, bytes: usize, ctx: &Context<'_>) -> Result<()> {
        ctx.memory.charge(bytes)?;
        self.charged += bytes;
        Ok(())
    }

    fn add_pair(&mut self, key: &Value, value: &Value, ctx: &Context<'_>) -> Result<()> {
        if matches!(key, Value::Unbound) || matches!(value, Value::Unbound) {
            return Ok(());
        }
        self.charge(2 * size_of::<Value>() + ENTRY_BYTES + held(key, ctx)? + held(value, ctx)?, ctx)?;
        self.count += 1;
        if let State::Map(map) = &mut self.state {
            map.insert(key.clone(), value.clone());
        }
        Ok(())
    }

    /// Adds the argument of one row.
    ///
    /// # Errors
    ///
    /// The same as [`Accumulator::add`].
    pub fn add_value(&mut self, value: &Value, ctx: &Context<'_>) -> Result<()> {
        self.add_times(value, 1, ctx)
    }

    /// Adds the argument of equal rows.
    fn add_times(&mut self, value: &Value, rows: i64, ctx: &Context<'_>) -> Result<()> {
        let skipped = match self.kind {
            AggregateKind::CollectAll => matches!(value, Value::Unbound),
            _ => value.is_null(),
        };
        if skipped {
            self.saw_null |= !matches!(value, Value::Unbound);
            return Ok(());
        }
        if let Some(seen) = &mut self.distinct {
            if seen.values.contains(value) {
                return Ok(());
            }
            if let Some(waiting) = &mut seen.waiting {
                waiting.push(value.clone());
                return Ok(());
            }
            let bytes = size_of::<Value>() + ENTRY_BYTES + held(value, ctx)?;
            let is_much = ctx.memory.used() + bytes as u64 > ctx.limits.memory_bytes / 8 * 5;
            let charged = if seen.may_wait && is_much { None } else { Some(ctx.memory.charge(bytes)) };
            match charged {
                Some(Ok(())) => {}
                Some(Err(error)) if !seen.may_wait => return Err(error),
                _ => {
                    seen.waiting = Some(vec![value.clone()]);
                    return Ok(());
                }
            }
            self.charged += bytes;
            seen.charged += bytes;
            seen.values.insert(value.clone());
        }
        let rows = if self.distinct.is_some() { 1 } else { rows };
        if let (
            AggregateKind::Sum | AggregateKind::SumOfTypes | AggregateKind::Average,
            Value::Temporal(Temporal::Duration(length)),
        ) = (self.kind, value)
        {
            return self.add_length(length, rows);
        }
        match &mut self.state {
            State::Count => {}
            State::Lengths(_) => return Err(Error::of_type("a sum of durations", "durations", value).into()),
            State::Sum(sum) => {
                let number = number("sum()", value)?;
                let keeps_types = self.kind == AggregateKind::SumOfTypes;
                let many = match rows {
                    1 => None,
                    _ if keeps_types => Some(operate::times(value, rows)?),
                    _ => Some(arithmetic::apply(Arithmetic::Multiply, value, &Value::Long(rows))?),
                };
                *sum = if self.count == 0 {
                    many.unwrap_or_else(|| value.clone())
                } else if let (Value::Double(so_far), false) = (&*sum, matches!(value, Value::Big(_))) {
                    Value::Double(*so_far + number * rows as f64)
                } else if keeps_types {
                    operate::promoted(Arithmetic::Add, sum, many.as_ref().unwrap_or(value))?
                } else {
                    arithmetic::apply(Arithmetic::Add, sum, many.as_ref().unwrap_or(value))?
                };
            }
            State::Average(sum) => *sum += number("avg()", value)? * rows as f64,
            State::Extreme(extreme, wanted) => {
                if self.count == 0 || order::order(value, extreme) == *wanted {
                    *extreme = value.clone();
                    ctx.memory.release(std::mem::take(&mut self.charged));
                    self.charge(held(value, ctx)?, ctx)?;
                }
            }
            State::First(first) => {
                if self.count == 0 {
                    *first = value.clone();
                    self.charge(held(value, ctx)?, ctx)?;
                }
            }
            State::List(list) => {
                let mut bytes = size_of::<Value>() + held(value, ctx)?;
                for row in 0..rows {
                    if row % 1024 == 1023 {
                        ctx.check()?;
                    }
                    ctx.memory.charge(bytes)?;
                    self.charged += bytes;
                    list.push(value.clone());
                    // The others share what it holds.
                    bytes = size_of::<Value>();
                }
            }
            State::Set(seen, list) => {
                if seen.insert(value.clone()) {
                    list.push(value.clone());
                    self.charge(2 * size_of::<Value>() + ENTRY_BYTES + held(value, ctx)?, ctx)?;
                }
            }
            State::Map(_) => {}
            State::Values(values, _) => {
                number(percentile_name(self.kind), value)?;
                for row in 0..rows {
                    if row % 1024 == 1023 {
                        ctx.check()?;
                    }
                    ctx.memory.charge(size_of::<Value>())?;
                    self.charged += size_of::<Value>();
                    values.push(value.clone());
                }
            }
            State::Deviation(mean, squares) => {
                let number = number("stDev()", value)?;
                let distance = number - *mean;
                *mean += distance * rows as f64 / (self.count as f64 + rows as f64);
                *squares += distance * (number - *mean) * rows as f64;
            }
        }
        self.count_rows(rows)
    }

    /// Adds values to a mean, given their sum and their number.
    fn add_sum(&mut self, sum: &Value, values: &Value) -> Result<()> {
        let values = values.as_i64().and_then(|values| u64::try_from(values).ok()).unwrap_or(0);
        match (&mut self.state, sum) {
            (_, sum) if sum.is_null() => {}
            // A sum of durations is that of one.
            (_, Value::Temporal(Temporal::Duration(length))) => return self.add_length(length, 1),
            (State::Average(so_far), sum) => {
                *so_far += number("avg()", sum)?;
                self.count += values;
            }
            (_, sum) => return Err(Error::of_type("a sum of durations", "durations", sum).into()),
        }
        Ok(())
    }

    fn add_length(&mut self, length: &Duration, rows: i64) -> Result<()> {
        let value = || Value::Temporal(Temporal::Duration(Arc::new(*length)));
        let too_long = || Error::argument("a sum of durations", "is too long with", &value());
        let mut sum = match &self.state {
            State::Lengths(sum) => Some(*sum),
            _ if self.count == 0 => None,
            _ => return Err(Error::of_type("a sum of numbers", "numbers", &value()).into()),
        };
        // The length as often as the bits of the number of rows say.
        let (mut left, mut power) = (rows.unsigned_abs(), *length);
        while left > 0 {
            if left & 1 == 1 {
                sum = Some(match sum {
                    Some(sum) => sum.checked_add(&power).ok_or_else(too_long)?,
                    None => power,
                });
            }
            left >>= 1;
            if left > 0 {
                power = power.checked_add(&power).ok_or_else(too_long)?;
            }
        }
        let Some(sum) = sum else { return Ok(()) };
        self.state = State::Lengths(sum);
        self.count_rows(rows)
    }

    /// Returns the bytes that are charged for it.
    pub(crate) fn charged(&self) -> usize {
        self.charged
    }

    /// Adds the rows of another accumulator of the same aggregate, which came later. Both are charged in the same account.
    ///
    /// # Errors
    ///
    /// The same as [`Accumulator::add`].
    pub(crate) fn merge(&mut self, later: Self, ctx: &Context<'_>) -> Result<()> {
        if self.distinct.is_some() {
            // What both have seen counts once.
            ctx.memory.release(later.charged);
            let seen = match later.state {
                State::List(values) => values,
                State::Values(values, part) => {
                    if let State::Values(_, known) = &mut self.state {
                        *known = known.or(part);
                    }
                    values
                }
                _ => later.distinct.into_iter().flat_map(|seen| seen.values).collect(),
            };
            return seen.iter().try_for_each(|value| self.add_value(value, ctx));
        }
        let (count, later_count) = (self.count, later.count);
        self.count += later_count;
        self.saw_null |= later.saw_null;
        self.charged += later.charged;
        if later_count == 0 {
            return Ok(());
        }
        if count == 0 {
            self.state = later.state;
            return Ok(());
        }
        match (&mut self.state, later.state) {
            (State::Count, State::Count) => {}
            (State::Sum(sum), State::Sum(more)) if self.kind == AggregateKind::SumOfTypes => {
                *sum = operate::promoted(Arithmetic::Add, sum, &more)?;
            }
            (State::Sum(sum), State::Sum(more)) => *sum = arithmetic::apply(Arithmetic::Add, sum, &more)?,
            (State::Average(sum), State::Average(more)) => *sum += more,
            (State::Lengths(sum), State::Lengths(more)) => {
                let value = || Value::Temporal(Temporal::Duration(Arc::new(more)));
                let too_long = || Error::argument("a sum of durations", "is too long with", &value());
                *sum = sum.checked_add(&more).ok_or_else(too_long)?;
            }
            (State::Extreme(extreme, wanted), State::Extreme(more, _))
                if order::order(&more, extreme) == *wanted =>
            {
                *extreme = more;
            }
            (State::List(list), State::List(more)) => list.extend(more),
            (State::Set(seen, list), State::Set(_, more)) => {
                for value in more {
                    if seen.insert(value.clone()) {
                        list.push(value);
                    }
                }
            }
            (State::Map(map), State::Map(more)) => map.extend(more),
            (State::Values(values, part), State::Values(more, later_part)) => {
                values.extend(more);
                *part = part.or(later_part);
            }
            (State::Deviation(mean, squares), State::Deviation(later_mean, later_squares)) => {
                // As Chan, Golub and LeVeque (1979) combine two parts.
                let (here, there) = (count as f64, later_count as f64);
                let distance = later_mean - *mean;
                *mean += distance * there / (here + there);
                *squares += later_squares + distance * distance * here * there / (here + there);
            }
            (State::Lengths(_), State::Sum(number)) => {
                return Err(Error::of_type("a sum of durations", "durations", &number).into());
            }
            (State::Lengths(_), State::Average(number)) => {
                return Err(Error::of_type("a sum of durations", "durations", &Value::Double(number)).into());
            }
            (_, State::Lengths(more)) => {
                let value = Value::Temporal(Temporal::Duration(Arc::new(more)));
                return Err(Error::of_type("a sum of numbers", "numbers", &value).into());
            }
            // Both are of one kind. A first value stays the first.
            _ => {}
        }
        Ok(())
    }

    /// Returns the result and releases the memory.
    #[must_use]
    pub fn finish(self, ctx: &Context<'_>) -> Value {
        ctx.memory.release(self.charged);
        let count = self.count as f64;
        match self.state {
            State::Count => Value::Long(i64::try_from(self.count).unwrap_or(i64::MAX)),
            State::Sum(sum) if self.kind == AggregateKind::SumOfTypes => sum,
            State::Sum(Value::Null) if self.null_of_nulls => Value::Null,
            State::Sum(Value::Null) => Value::Long(0),
            // openCypher and Gremlin 3.7 sum integers of any width to 64 bits.
            State::Sum(sum) => sum.as_i64().map_or(sum, Value::Long),
            State::Lengths(sum) => {
                // The average is not longer than the sum.
                let averages = matches!(self.kind, AggregateKind::Average | AggregateKind::AverageOfSums);
                let length = if averages { sum.divided(count) } else { Some(sum) };
                Value::Temporal(Temporal::Duration(Arc::new(length.unwrap_or(sum))))
            }
            State::Average(sum) if self.count > 0 => Value::Double(sum / count),
            State::Average(_) => Value::Null,
            State::Extreme(extreme, _) => extreme,
            State::First(first) => first,
            State::List(list) => Value::list(list),
            State::Set(_, list) => Value::Set(Arc::new(list)),
            State::Map(map) => Value::map(map),
            State::Values(values, part) => percentile(self.kind, values, part.unwrap_or(0.0)),
            State::Deviation(_, squares) => {
                let divisor = if self.kind == AggregateKind::StdDev { count - 1.0 } else { count };
                Value::Double(if divisor > 0.0 { (squares / divisor).sqrt() } else { 0.0 })
            }
        }
    }
}

/// Returns the number of rows that a row stands for.
pub(crate) fn times(weight: &Value) -> Result<i64> {
    match weight {
        Value::Unbound => Ok(1),
        Value::Long(rows) if *rows > 0 => Ok(*rows),
        other => Err(crate::Error::Plan(format!("a row stands for {other:?} rows"))),
    }
}

/// The error of a number of rows that does not fit in 64 bits.
pub(crate) fn too_many_rows() -> crate::Error {
    Error::Overflow("the number of rows".to_owned()).into()
}

fn percentile_name(kind: AggregateKind) -> &'static str {
    if kind == AggregateKind::PercentileCont { "percentileCont()" } else { "percentileDisc()" }
}

/// Returns the percentile of numbers, in time linear in their count; null if there are none.
fn percentile(kind: AggregateKind, mut values: Vec<Value>, part: f64) -> Value {
    let Some(last) = values.len().checked_sub(1) else { return Value::Null };
    let by_order = |a: &Value, b: &Value| order::order(a, b);
    let at_least = |place: f64| (place as usize).min(last);
    if kind == AggregateKind::PercentileDisc {
        let place = at_least((part * values.len() as f64).ceil() - 1.0);
        return values.select_nth_unstable_by(place, by_order).1.clone();
    }
    let place = part * last as f64;
    let below = at_least(place.floor());
    let (_, low, above) = values.select_nth_unstable_by(below, by_order);
    let low = low.as_f64().unwrap_or(f64::NAN);
    let next = above.iter().min_by(|a, b| order::order(a, b)).and_then(Value::as_f64);
    let share = place - below as f64;
    Value::Double(match next {
        Some(next) if share > 0.0 => low * (1.0 - share) + next * share,
        _ => low,
    })
}

/// The bytes that a value holds.
fn held(value: &Value, ctx: &Context<'_>) -> Result<usize> {
    Ok(heap_bytes_of_item(value, ctx.memory.left())?)
}

fn number(name: &'static str, value: &Value) -> Result<f64, Error> {
    value.as_f64().ok_or_else(|| Error::of_type(name, "numbers", value))
}

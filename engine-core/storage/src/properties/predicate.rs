//! Predicates as loops over one column: for each set, a test becomes bounds in the column's own type.
//!
//! The bounds match [`Test::passes`] exactly: numbers compare by value whatever their width, an integer is never
//! rounded to a double, NaN equals nothing and is in no range, and both zeros are equal.

use super::column::{ColumnType, inline_text, text_head};
use super::moment::{self, Moment};
use super::page::Cells;
use super::wide::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_apl::Test;
use tidegraph_types::Value;

/// How a predicate is tested on the rows of one set.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Kernel {
    /// No row passes.
    Never,
    /// Every row passes.
    Always,
    /// Integers or truth values between two bounds, both included.
    Integers { low: i64, high: i64 },
    /// Floats between two bounds, both included.
    Floats { low: f64, high: f64 },
    /// Pairs of words between two bounds, both included: points in time, and dates with times.
    Times { low: Moment, high: Moment },
    /// The words of a text of up to 12 bytes.
    ShortText([u64; 2]),
    /// The first word of a longer text. Rows that pass need a closer look.
    LongText(u64),
    /// One of a few.
    Any(Vec<Kernel>),
    /// Integers in one of many ranges, which are apart and in order, bounds included.
    IntegersIn(Vec<(i64, i64)>),
    /// Floats in one of many ranges, in order, bounds included.
    FloatsIn(Vec<(f64, f64)>),
    /// The words of one of many short texts, in order.
    ShortTexts(Vec<[u64; 2]>),
    /// The first words of many longer texts, in order. Rows that pass need a closer look.
    LongTexts(Vec<u64>),
    /// Each row needs a look.
    Look,
}

/// Most kernels that are tested one after the other. Several rows are tested at once then; a search in a list tests one.
const FEW: usize = 8;

/// 2⁶³, above all 64-bit integers.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

impl Kernel {
    /// Makes the kernel of a test on a column.
    pub fn of(test: &Test, column: ColumnType) -> Self {
        match test {
            Test::Exists if column != ColumnType::Elsewhere => Self::Always,
            _ if column == ColumnType::Elsewhere => Self::Look,
            Test::Exists => Self::Always,
            Test::Equals(value) => Self::equals(value, column),
            Test::Within(values) => Self::any(values.iter().map(|value| Self::equals(value, column))),
            Test::Range { low, high } => Self::range(low.as_ref(), high.as_ref(), column),
            Test::StartsWith(_) => {
                if column == ColumnType::String {
                    Self::Look
                } else {
                    Self::Never
                }
            }
        }
    }

    /// Returns whether rows that pass need a look one by one.
    pub fn looks(&self) -> bool {
        match self {
            Self::Look | Self::LongText(_) | Self::LongTexts(_) => true,
            Self::Any(kernels) => kernels.iter().any(Self::looks),
            _ => false,
        }
    }

    /// Makes the kernel of rows that pass one of many. A query may list a million values.
    fn any(kernels: impl Iterator<Item = Self>) -> Self {
        let (mut integers, mut floats, mut short, mut long) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut all = Vec::new();
        for kernel in kernels {
            match kernel {
                Self::Never => {}
                Self::Integers { low, high } => integers.push((low, high)),
                Self::Floats { low, high } if low <= high => floats.push((low, high)),
                Self::Floats { .. } => {}
                Self::ShortText(words) => short.push(words),
                Self::LongText(head) => long.push(head),
                other => all.push(other),
            }
        }
        integers.sort_unstable();
        integers.dedup_by(|next, before| {
            let joins = next.0 <= before.1.saturating_add(1);
            before.1 = before.1.max(if joins { next.1 } else { before.1 });
            joins
        });
        floats.sort_unstable_by(|a: &(f64, f64), b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        floats.dedup();
        short.sort_unstable();
        short.dedup();
        long.sort_unstable();
        long.dedup();
        add(&mut all, integers, |(low, high)| Self::Integers { low, high }, Self::IntegersIn);
        add(&mut all, floats, |(low, high)| Self::Floats { low, high }, Self::FloatsIn);
        add(&mut all, short, Self::ShortText, Self::ShortTexts);
        add(&mut all, long, Self::LongText, Self::LongTexts);
        match all.len() {
            0 => Self::Never,
            1 => all.swap_remove(0),
            _ => Self::Any(all),
        }
    }

    fn equals(value: &Value, column: ColumnType) -> Self {
        match (column, value) {
            (ColumnType::String, Value::String(text)) => match inline_text(text) {
                Some(words) => Self::ShortText(words),
                None => Self::LongText(text_head(text)),
            },
            (ColumnType::String, _) => Self::Never,
            // The same instant told in another zone is another value.
            (ColumnType::DateTime, Value::Temporal(_)) => Self::Never,
            _ => {
                let bound = (value.clone(), true);
                Self::range(Some(&bound), Some(&bound), column)
            }
        }
    }

    fn range(low: Option<&(Value, bool)>, high: Option<&(Value, bool)>, column: ColumnType) -> Self {
        match column {
            ColumnType::Bool => {
                let truth = |(value, inside): &(Value, bool)| match value {
                    Value::Bool(value) => Some((i64::from(*value), *inside)),
                    _ => None,
                };
                let low = low.map_or(Some(0), |low| truth(low).map(|(v, inside)| v + i64::from(!inside)));
                let high = high.map_or(Some(1), |high| truth(high).map(|(v, inside)| v - i64::from(!inside)));
                Self::integers(low, high)
            }
            ColumnType::Byte | ColumnType::Short | ColumnType::Int | ColumnType::Long => {
                let low = low.map_or(Some(i64::MIN), |(value, inside)| least_integer(value, *inside));
                let high = high.map_or(Some(i64::MAX), |(value, inside)| greatest_integer(value, *inside));
                Self::integers(low, high)
            }
            ColumnType::Date => Self::integers(moment::first_date(low), moment::last_date(high)),
            ColumnType::DateTime | ColumnType::LocalDateTime => {
                match (moment::first(low, column), moment::last(high, column)) {
                    (Some(low), Some(high)) => Self::Times { low, high },
                    _ => Self::Never,
                }
            }
            ColumnType::Float | ColumnType::Double => {
                let low = low.map_or(Some(f64::NEG_INFINITY), |(value, inside)| least_float(value, *inside));
                let high = high.map_or(Some(f64::INFINITY), |(value, inside)| {
                    least_float(&negated(value)?, *inside).map(|bound| -bound)
                });
                match (low, high) {
                    (Some(low), Some(high)) => Self::Floats { low, high },
                    _ => Self::Never,
                }
            }
            _ => Self::Look,
        }
    }

    fn integers(low: Option<i64>, high: Option<i64>) -> Self {
        match (low, high) {
            (Some(low), Some(high)) if low <= high => Self::Integers { low, high },
            _ => Self::Never,
        }
    }

    /// Clears the bits of rows that do not pass. May also test rows whose bit is clear, which changes nothing.
    pub fn narrow(&self, cells: Cells<'_>, column: ColumnType, bits: &mut [u64]) {
        match (self, cells) {
            (Self::Always | Self::Look, _) => {}
            (Self::Integers { low, high }, Cells::Bytes(cells)) if column == ColumnType::Bool => {
                let span = between(*low, *high, 0, 1);
                mask(cells, bits, |cell| cell.load(Ordering::Relaxed), |v| within(i64::from(v), span));
            }
            (Self::Integers { low, high }, Cells::Bytes(cells)) => {
                let Some((low, high)) = between(*low, *high, i64::from(i8::MIN), i64::from(i8::MAX)) else {
                    return bits.fill(0);
                };
                let (low, span) = (low as i8, (high - low) as u8);
                if Range::Bytes(cells, low as u8, span).narrow(bits) {
                    return;
                }
                let load = |cell: &std::sync::atomic::AtomicU8| cell.load(Ordering::Relaxed) as i8;
                mask(cells, bits, load, |v| v.wrapping_sub(low) as u8 <= span);
            }
            (Self::Integers { low, high }, Cells::Shorts(cells)) => {
                let Some((low, high)) = between(*low, *high, i64::from(i16::MIN), i64::from(i16::MAX)) else {
                    return bits.fill(0);
                };
                let (low, span) = (low as i16, (high - low) as u16);
                if Range::Shorts(cells, low as u16, span).narrow(bits) {
                    return;
                }
                let load = |cell: &std::sync::atomic::AtomicU16| cell.load(Ordering::Relaxed) as i16;
                mask(cells, bits, load, |v| v.wrapping_sub(low) as u16 <= span);
            }
            (Self::Integers { low, high }, Cells::Ints(cells)) => {
                let Some((low, high)) = between(*low, *high, i64::from(i32::MIN), i64::from(i32::MAX)) else {
                    return bits.fill(0);
                };
                let (low, span) = (low as i32, (high - low) as u32);
                if Range::Ints(cells, low as u32, span).narrow(bits) {
                    return;
                }
                let load = |cell: &std::sync::atomic::AtomicU32| cell.load(Ordering::Relaxed) as i32;
                mask(cells, bits, load, |v| v.wrapping_sub(low) as u32 <= span);
            }
            (Self::Integers { low, high }, Cells::Longs(cells)) => {
                let (low, span) = (*low, high.wrapping_sub(*low) as u64);
                if !Range::Longs(cells, low as u64, span).narrow(bits) {
                    mask(cells, bits, longs, |v| (v as i64).wrapping_sub(low) as u64 <= span);
                }
            }
            (Self::Floats { low, high }, Cells::Ints(cells)) => {
                let (low, high) = (least_single(*low), -least_single(-*high));
                if Range::Floats(cells, low, high).narrow(bits) {
                    return;
                }
                let load = |cell: &std::sync::atomic::AtomicU32| f32::from_bits(cell.load(Ordering::Relaxed));
                mask(cells, bits, load, |v| (v >= low) & (v <= high));
            }
            (Self::Floats { low, high }, Cells::Longs(cells)) => {
                if Range::Doubles(cells, *low, *high).narrow(bits) {
                    return;
                }
                let load = |cell: &AtomicU64| f64::from_bits(cell.load(Ordering::Relaxed));
                mask(cells, bits, load, |v| (v >= *low) & (v <= *high));
            }
            (Self::Times { low, high }, Cells::Pairs(cells)) => {
                let load = |pair: &[AtomicU64; 2]| (longs(&pair[0]) as i64, longs(&pair[1]));
                mask(cells, bits, load, |moment| *low <= moment && moment <= *high);
            }
            (Self::ShortText(words), Cells::Pairs(cells)) => {
                let differs =
                    |pair: &[AtomicU64; 2]| (longs(&pair[0]) ^ words[0]) | (longs(&pair[1]) ^ words[1]);
                mask(cells, bits, differs, |v| v == 0);
            }
            (Self::LongText(head), Cells::Pairs(cells)) => {
                mask(cells, bits, |pair| longs(&pair[0]), |v| v == *head);
            }
            (Self::IntegersIn(ranges), Cells::Bytes(cells)) => {
                let load = |cell: &std::sync::atomic::AtomicU8| cell.load(Ordering::Relaxed) as i8;
                mask(cells, bits, load, |v| is_in(ranges, i64::from(v)));
            }
            (Self::IntegersIn(ranges), Cells::Shorts(cells)) => {
                let load = |cell: &std::sync::atomic::AtomicU16| cell.load(Ordering::Relaxed) as i16;
                mask(cells, bits, load, |v| is_in(ranges, i64::from(v)));
            }
            (Self::IntegersIn(ranges), Cells::Ints(cells)) => {
                let load = |cell: &std::sync::atomic::AtomicU32| cell.load(Ordering::Relaxed) as i32;
                mask(cells, bits, load, |v| is_in(ranges, i64::from(v)));
            }
            (Self::IntegersIn(ranges), Cells::Longs(cells)) => {
                mask(cells, bits, longs, |v| is_in(ranges, v as i64));
            }
            (Self::FloatsIn(ranges), Cells::Ints(cells)) => {
                let load = |cell: &std::sync::atomic::AtomicU32| f32::from_bits(cell.load(Ordering::Relaxed));
                mask(cells, bits, load, |v| is_in(ranges, f64::from(v)));
            }
            (Self::FloatsIn(ranges), Cells::Longs(cells)) => {
                let load = |cell: &AtomicU64| f64::from_bits(cell.load(Ordering::Relaxed));
                mask(cells, bits, load, |v| is_in(ranges, v));
            }
            (Self::ShortTexts(texts), Cells::Pairs(cells)) => {
                let words = |pair: &[AtomicU64; 2]| [longs(&pair[0]), longs(&pair[1])];
                mask(cells, bits, words, |v| texts.binary_search(&v).is_ok());
            }
            (Self::LongTexts(heads), Cells::Pairs(cells)) => {
                mask(cells, bits, |pair| longs(&pair[0]), |v| heads.binary_search(&v).is_ok());
            }
            (Self::Any(kernels), cells) => {
                let all = bits.to_vec();
                bits.fill(0);
                let mut some = all.clone();
                for kernel in kernels {
                    some.copy_from_slice(&all);
                    kernel.narrow(cells, column, &mut some);
                    bits.iter_mut().zip(&some).for_each(|(bits, some)| *bits |= some);
                }
            }
            // No value of the column passes this test.
            _ => bits.fill(0),
        }
    }
}

#[inline]
fn longs(cell: &AtomicU64) -> u64 {
    cell.load(Ordering::Relaxed)
}

/// Adds the kernels of values of one type: one for each if there are few of them, else one for all.
fn add<T>(to: &mut Vec<Kernel>, values: Vec<T>, one: impl Fn(T) -> Kernel, many: impl Fn(Vec<T>) -> Kernel) {
    if values.len() <= FEW { to.extend(values.into_iter().map(one)) } else { to.push(many(values)) }
}

/// Whether a value is in one of the ranges, which are in order.
#[inline]
fn is_in<T: PartialOrd + Copy>(ranges: &[(T, T)], value: T) -> bool {
    let place = ranges.partition_point(|(_, high)| *high < value);
    ranges.get(place).is_some_and(|(low, high)| *low <= value && value <= *high)
}

/// Returns the part of a range that a type can hold.
fn between(low: i64, high: i64, least: i64, greatest: i64) -> Option<(i64, i64)> {
    let (low, high) = (low.max(least), high.min(greatest));
    (low <= high).then_some((low, high))
}

#[inline]
fn within(value: i64, span: Option<(i64, i64)>) -> bool {
    span.is_some_and(|(low, high)| low <= value && value <= high)
}

/// Returns the least single that is not below a double.
fn least_single(bound: f64) -> f32 {
    let near = bound as f32;
    if f64::from(near) < bound { near.next_up() } else { near }
}

/// Tests 64 rows at a time. Loading first and testing afterwards lets the compiler vectorize the test.
#[inline]
fn mask<A, T: Copy + Default>(
    cells: &[A],
    bits: &mut [u64],
    load: impl Fn(&A) -> T,
    pass: impl Fn(T) -> bool,
) {
    for (word, cells) in bits.iter_mut().zip(cells.chunks(64)) {
        if *word == 0 {
            continue;
        }
        let mut values = [T::default(); 64];
        for (value, cell) in values.iter_mut().zip(cells) {
            *value = load(cell);
        }
        let mut flags = [0_u8; 64];
        for (flag, value) in flags.iter_mut().zip(values) {
            *flag = u8::from(pass(value));
        }
        let mut passed = 0;
        for (index, flags) in flags.as_chunks::<8>().0.iter().enumerate() {
            // Collects the lowest bits of eight bytes in the highest byte.
            let byte = u64::from_le_bytes(*flags).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            passed |= byte << (8 * index);
        }
        *word &= passed;
    }
}

/// Returns the least integer that is not below a bound; `None` if there is none.
fn least_integer(bound: &Value, inside: bool) -> Option<i64> {
    if let Some(bound) = bound.as_i64() {
        return if inside { Some(bound) } else { bound.checked_add(1) };
    }
    let bound = bound.as_f64().filter(|bound| !bound.is_nan())?;
    if bound >= BEYOND {
        return None;
    }
    if bound < -BEYOND {
        return Some(i64::MIN);
    }
    let whole = bound.ceil();
    if whole >= BEYOND {
        return None;
    }
    if whole == bound && !inside { (whole as i64).checked_add(1) } else { Some(whole as i64) }
}

/// Returns the greatest integer that is not above a bound; `None` if there is none.
fn greatest_integer(bound: &Value, inside: bool) -> Option<i64> {
    if let Some(bound) = bound.as_i64() {
        return if inside { Some(bound) } else { bound.checked_sub(1) };
    }
    let bound = bound.as_f64().filter(|bound| !bound.is_nan())?;
    if bound >= BEYOND {
        return Some(i64::MAX);
    }
    if bound < -BEYOND {
        return None;
    }
    let whole = bound.floor();
    if whole == bound && !inside { (whole as i64).checked_sub(1) } else { Some(whole as i64) }
}

/// Negates a bound exactly, integers in 128 bits.
fn negated(bound: &Value) -> Option<Bound> {
    match bound.as_i64() {
        Some(int) => Some(Bound::Integer(-i128::from(int))),
        None => Some(Bound::Float(-bound.as_f64()?)),
    }
}

enum Bound {
    Integer(i128),
    Float(f64),
}

trait ToBound {
    fn bound(&self) -> Option<Bound>;
}

impl ToBound for Value {
    fn bound(&self) -> Option<Bound> {
        match self.as_i64() {
            Some(int) => Some(Bound::Integer(i128::from(int))),
            None => self.as_f64().map(Bound::Float),
        }
    }
}

impl ToBound for Bound {
    fn bound(&self) -> Option<Bound> {
        Some(match self {
            Self::Integer(int) => Self::Integer(*int),
            Self::Float(float) => Self::Float(*float),
        })
    }
}

/// Returns the least double that is not below a bound; `None` if no double is above it.
fn least_float(bound: &impl ToBound, inside: bool) -> Option<f64> {
    match bound.bound()? {
        Bound::Float(float) if float.is_nan() => None,
        Bound::Float(float) if inside => Some(float),
        Bound::Float(f64::INFINITY) => None,
        Bound::Float(float) => Some(float.next_up()),
        Bound::Integer(int) => {
            let near = int as f64;
            match (near as i128).cmp(&int) {
                std::cmp::Ordering::Less => Some(near.next_up()),
                std::cmp::Ordering::Greater => Some(near),
                std::cmp::Ordering::Equal if inside => Some(near),
                std::cmp::Ordering::Equal => Some(near.next_up()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::column::encode;
    use super::super::page::Page;
    use super::super::scalar::Scalar;
    use super::super::sets::{ColumnShape, RowKind, Set, Shape};
    use super::*;
    use jiff::Timestamp;
    use jiff::civil::{Date, Time, date, time};
    use jiff::tz::{Offset, TimeZone};
    use std::sync::Arc;
    use tidegraph_apl::OneOf;
    use tidegraph_types::temporal::zoned;
    use tidegraph_types::{Cardinality, Temporal, Token};

    fn numbers() -> Vec<Value> {
        let mut values = Vec::new();
        let edges = [
            0,
            1,
            -1,
            2,
            127,
            128,
            -128,
            -129,
            32_767,
            32_768,
            i64::from(i32::MAX),
            i64::from(i32::MIN),
            i64::from(i32::MAX) + 1,
            (1 << 53) - 1,
            1 << 53,
            (1 << 53) + 1,
            -(1 << 53) - 1,
            i64::MAX,
            i64::MAX - 1,
            i64::MIN,
            i64::MIN + 1,
        ];
        for edge in edges {
            values.push(Value::Long(edge));
            values.extend(i32::try_from(edge).ok().map(Value::Int));
            values.extend(i16::try_from(edge).ok().map(Value::Short));
            values.extend(i8::try_from(edge).ok().map(Value::Byte));
            values.extend([Value::Double(edge as f64), Value::Float(edge as f32)]);
        }
        let floats = [0.0, -0.0, 0.5, -0.5, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 5e-324];
        for float in floats {
            values.extend([Value::Double(float), Value::Float(float as f32)]);
        }
        values.extend([Value::Double(0.1), Value::Float(0.1), Value::Double(f64::from(0.1_f32))]);
        values.extend([Value::Bool(false), Value::Bool(true), Value::Null]);
        let texts =
            ["", "a", "twelve bytes", "twelve bytez", "a longer text than that", "a longer text then that"];
        values.extend(texts.map(Value::string));
        values.extend(times());
        values
    }

    /// Dates and times close to each other and at the ends of time, in some zones.
    fn times() -> Vec<Value> {
        let dates =
            [Date::MIN, date(-1, 12, 31), date(0, 1, 1), date(2024, 2, 29), date(2024, 3, 1), Date::MAX];
        let times = [Time::MIN, time(0, 0, 0, 1), time(12, 0, 0, 0), Time::MAX];
        let locals = || dates.iter().flat_map(|date| times.map(|time| date.to_datetime(time)));
        let zones = ["UTC", "Europe/London", "America/New_York", "Asia/Tokyo"];
        let zones = zones.map(|zone| TimeZone::get(zone).unwrap());
        let mut values: Vec<Value> =
            dates.iter().map(|date| Value::Temporal(Temporal::Date(*date))).collect();
        values.extend(locals().map(|local| Value::Temporal(Temporal::LocalDateTime(local))));
        let instants =
            [-1_000_000_001, -1, 0, 1, 1_000_000_000].map(|n| Timestamp::from_nanosecond(n).unwrap());
        let instants =
            instants.into_iter().chain(locals().filter_map(|local| Offset::UTC.to_timestamp(local).ok()));
        let instants = instants.chain([Timestamp::MIN, Timestamp::MAX]);
        values.extend(instants.flat_map(|at| zones.clone().map(|zone| zoned(at.to_zoned(zone)))));
        values.extend(times.map(|time| Value::Temporal(Temporal::LocalTime(time))));
        values
    }

    /// Compares a kernel with its test on every value, each in a column of its type.
    fn check(test: &Test, values: &[Value]) {
        for column in ColumnType::ALL {
            let held: Vec<&Value> =
                values.iter().filter(|value| ColumnType::of(&Scalar::from(*value)) == column).collect();
            if held.is_empty() || column == ColumnType::Elsewhere {
                continue;
            }
            let shape = ColumnShape { key: Token(1), column, cardinality: Cardinality::Single };
            let shape = Shape {
                kind: RowKind::Edge { with_id: false },
                labels: Default::default(),
                columns: std::iter::once(shape).collect(),
                irregular: false,
            };
            let page = Page::allocate(&Arc::new(Set::new(0, &shape)), 256);
            let words: Vec<_> = held.iter().map(|value| encode(&Scalar::from(*value))).collect();
            (0..).zip(&words).for_each(|(row, words)| page.column(0).store(row, *words));
            let kernel = Kernel::of(test, column);
            let mut bits = [u64::MAX; 4];
            kernel.narrow(page.column(0), column, &mut bits);
            for (row, value) in held.iter().enumerate() {
                let passes = bits[row / 64] >> (row % 64) & 1 == 1;
                let expected = test.passes(value);
                let right = if kernel.looks() { passes || !expected } else { passes == expected };
                assert!(right, "{test:?} of {value:?}: {passes}, {kernel:?}");
            }
            // SAFETY: the words and the page belong to this test.
            unsafe {
                words.into_iter().for_each(|words| super::super::undo::drop_words(column, words));
                page.free();
            }
        }
    }

    #[test]
    fn kernels_say_what_the_test_says() {
        let values = numbers();
        check(&Test::Exists, &values);
        check(&Test::StartsWith("a".into()), &values);
        let step = if cfg!(miri) { 29 } else { 1 };
        for value in values.iter().step_by(step) {
            check(&Test::Equals(value.clone()), &values);
            for inside in [false, true] {
                let bound = Some((value.clone(), inside));
                check(&Test::Range { low: bound.clone(), high: None }, &values);
                check(&Test::Range { low: None, high: bound.clone() }, &values);
            }
        }
        for (index, value) in values.iter().enumerate().step_by(3 * step) {
            let other = &values[(index * 7 + 5) % values.len()];
            check(&Test::Within(OneOf::new(vec![value.clone(), other.clone()])), &values);
            let (low, high) = (Some((value.clone(), true)), Some((other.clone(), false)));
            check(&Test::Range { low, high }, &values);
        }
        check(&Test::Within(OneOf::default()), &values);
        // Lists that are searched: all values, every other one, many texts, and numbers that are ranges together.
        check(&Test::Within(OneOf::new(values.clone())), &values);
        for start in [0, 1] {
            check(&Test::Within(values.iter().skip(start).step_by(2).cloned().collect()), &values);
        }
        let texts = |length: usize| (0..40).map(move |i| Value::string(format!("{i:0>length$}")));
        let texts: Vec<Value> = texts(3).chain(texts(30)).collect();
        let listed = |every: usize| Test::Within(texts.iter().step_by(every).cloned().collect());
        check(&listed(2), &texts);
        check(&listed(3), &texts);
        let longs = |every| (-50..50).step_by(every).map(Value::Long).collect::<Vec<_>>();
        check(&Test::Within(OneOf::new(longs(1))), &values);
        check(&Test::Within(OneOf::new(longs(3))), &[longs(1), values].concat());
    }
}

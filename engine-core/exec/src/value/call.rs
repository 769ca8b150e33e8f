//! Calls functions with computed arguments: applies the rules for null, then calls the module of the function's kind.

use super::error::Error;
use super::{
    cast, collection, convert, gremlin_text, list, local, number, operate, path, point, shape, temporal,
    text, two_lists, types,
};
use crate::{Context, Result};
use tidegraph_plan::Function;
use tidegraph_types::{Value, order};

/// Whether the function itself handles null arguments.
fn takes_null(function: Function) -> bool {
    matches!(
        function,
        Function::PathAppend
            | Function::PathIsSimple
            | Function::PathIsSimpleOrCycle
            | Function::PathSelectAll
            | Function::PathPart
            | Function::MapGet
            | Function::MakeMap
            | Function::Unfold
            | Function::CountLocal
            | Function::RequireNotNull
            | Function::NullIf
            | Function::ValueType
            | Function::Concat
            | Function::SplitWhole
            | Function::Lists(_)
            | Function::Operate(_)
            | Function::AsBool
            | Function::TypeOf(_)
            | Function::AsDate
            | Function::DateAdd(_)
            | Function::DateDiff
    )
}

/// Returns the place of a step in the text.
fn place(name: &'static str, place: &Value) -> Result<u32> {
    let number = place.as_i64().and_then(|place| u32::try_from(place).ok());
    number.ok_or_else(|| Error::of_type(name, "the place of a step", place).into())
}

/// Calls a function of values. The number of arguments was checked when the expression was prepared.
pub(crate) fn call(
    ctx: &Context<'_>,
    function: Function,
    name: &'static str,
    args: Vec<Value>,
) -> Result<Value> {
    use Function as F;
    if !takes_null(function) && args.iter().any(Value::is_null) {
        // Unbound stays unbound: a Gremlin `by()` without a result differs from one with a null result.
        let unbound = args.iter().any(|arg| matches!(arg, Value::Unbound));
        return Ok(if unbound { Value::Unbound } else { Value::Null });
    }
    let first = args.first().unwrap_or(&Value::Null);
    if matches!(first, Value::Unbound)
        && matches!(function, F::AsBool | F::AsDate | F::DateAdd(_) | F::DateDiff | F::SplitWhole)
    {
        // These refuse a null, or take one as another argument; without a value they have none.
        return Ok(Value::Unbound);
    }
    Ok(match function {
        F::PropertyKey => match first {
            Value::Property(property) => Value::String(property.key.clone()),
            Value::Entry(entry) => entry.0.clone(),
            other => return Err(Error::of_type(name, "a property", other).into()),
        },
        F::PropertyValue => match first {
            Value::Property(property) => property.value.clone(),
            Value::Entry(entry) => entry.1.clone(),
            other => return Err(Error::of_type(name, "a property", other).into()),
        },
        F::PropertyOwner => match first {
            Value::Property(property) => property.owner.clone(),
            other => return Err(Error::of_type(name, "a property", other).into()),
        },
        F::RequireNotNull => match (first.is_null(), &args[1]) {
            (false, _) => first.clone(),
            (true, Value::String(message)) => return Err(Error::NullValue(message.clone()).into()),
            (true, _) => return Err(Error::of_type(name, "a value", first).into()),
        },
        F::StartNode | F::EndNode | F::OtherNode => ends(function, name, &args)?,
        F::Nodes => path::vertices(name, first)?,
        F::Relationships => path::edges(name, first)?,
        F::Length => path::length(name, first)?,
        F::PathAppend => path::append(name, args)?,
        F::PathLabel => path::add_labels(name, args)?,
        F::PathIsSimple => match first {
            // An empty path.
            Value::Unbound => Value::Bool(true),
            Value::Null => Value::Null,
            other => path::is_simple(name, other, false)?,
        },
        F::PathIsSimpleOrCycle => match first {
            Value::Unbound | Value::Null => first.clone(),
            other => path::is_simple(name, other, true)?,
        },
        F::PathPart => path::part(name, first, &args[1], &args[2])?,
        F::MakeTree => shape::tree(ctx, name, first)?,
        F::MakeGraph => shape::graph(ctx, name, first)?,
        F::MakePath => path::make(name, &args)?,
        F::PathSelectAll => path::select_all(name, first, &args[1])?,
        F::MapGet => local::map_get(first, &args[1]),
        F::MapKeys => local::keys(name, first)?,
        F::MapValues => local::values(name, first)?,
        F::MakeMap => local::make_map(args),
        F::Unfold => match args.into_iter().next() {
            Some(Value::Unbound) | None => Value::Unbound,
            Some(value) => local::unfold(value),
        },
        F::StartsWith | F::EndsWith | F::Contains => text::test(function, first, &args[1]),
        F::Regex | F::MatchesWhole => match (first, &args[1]) {
            (Value::String(subject), Value::String(pattern)) => {
                Value::Bool(ctx.patterns.matches(ctx, name, subject, pattern, function == F::MatchesWhole)?)
            }
            _ => Value::Null,
        },
        F::CountLocal => match first {
            Value::Unbound => Value::Unbound,
            other => local::count(other),
        },
        F::SumLocal | F::MinLocal | F::MaxLocal | F::MeanLocal => local::reduce(function, name, first)?,
        F::DedupLocal => local::dedup(first),
        F::IdTexts => local::id_texts(first),
        F::RangeLocal => local::range(name, &args)?,
        F::TailLocal => local::tail(name, &args)?,
        F::OrderLocal => local::sort(ctx, name, &args)?,
        F::Coalesce => args.into_iter().find(|arg| !arg.is_null()).unwrap_or(Value::Null),
        F::Size => list::size(name, first)?,
        F::Head => list::head(name, first)?,
        F::Last => list::last(name, first)?,
        F::ListTail => list::tail(name, first)?,
        F::Reverse => list::reverse(name, first)?,
        F::Range => range(ctx, name, &args)?,
        F::ToInteger => convert::to_integer(name, first)?,
        F::ToFloat => convert::to_float(name, first)?,
        F::ToText => convert::to_string(name, first)?,
        F::ToBoolean => convert::to_boolean(name, first)?,
        F::ToIntegerOrNull
        | F::ToFloatOrNull
        | F::ToTextOrNull
        | F::ToBooleanOrNull
        | F::ToIntegerList
        | F::ToFloatList
        | F::ToTextList
        | F::ToBooleanList => convert::leniently(function, name, first)?,
        F::IsEmpty => list::is_empty(name, first)?,
        F::IsNaN => match first.as_f64() {
            Some(number) => Value::Bool(number.is_nan()),
            None => return Err(Error::of_type(name, "a number", first).into()),
        },
        F::NullIf if order::equals(first, &args[1]) == Some(true) => Value::Null,
        F::NullIf => first.clone(),
        F::ValueType => Value::string(types::name_of(ctx, first)?),
        F::Normalize => text::normalize(name, first, &args[1])?,
        F::IsNormalized => text::is_normalized(name, first, &args[1])?,
        F::Pi => Value::Double(std::f64::consts::PI),
        F::Euler => Value::Double(std::f64::consts::E),
        F::Rand => Value::Double(ctx.draw_unit()),
        F::SampleKey => match first.as_f64() {
            Some(weight) if weight >= 0.0 => Value::Double(sample_key(weight, ctx.draw_unit())),
            _ => return Err(Error::of_type(name, "a number that is not negative", first).into()),
        },
        F::SeededRand => Value::Double(ctx.seeded(place(name, first)?, |random| random.unit())),
        F::SampleLocal if args.len() == 3 => {
            let place = place(name, &args[2])?;
            ctx.seeded(place, |random| local::seeded_sample(name, &args, random, &|steps| ctx.spend(steps)))?
        }
        F::SampleLocal => local::sample(name, &args, || ctx.draw_unit())?,
        F::RandomUuid => Value::String(ctx.entropy.uuid()),
        F::MakeUuid => ctx.entropy.uuid().parse().map_or(Value::Null, Value::Uuid),
        F::Timestamp => Value::Long(ctx.now.as_millisecond()),
        F::Temporal(kind) => temporal::make(ctx.now, kind, name, first)?,
        F::Now(kind) => temporal::now(ctx.now, kind, name, args.first())?,
        F::Truncate(kind) => temporal::truncate(ctx.now, kind, name, &args)?,
        F::Between(unit) => temporal::between(unit, name, first, &args[1])?,
        F::FromEpoch => temporal::from_epoch(name, &args)?,
        F::FromEpochMillis => temporal::from_epoch_millis(name, first)?,
        F::Point => point::make(name, first)?,
        F::Distance => point::distance(name, &args)?,
        F::WithinBox => point::within_box(name, &args)?,
        F::EpochMillis | F::Year | F::Month | F::Day => convert::part_of_time(function, name, first)?,
        F::Join => collection::join(name, first, &args[1])?,
        F::TextIndexOf => text::index_of(name, &args)?,
        F::RemoveKey => collection::remove_key(name, first, &args[1])?,
        F::MergeMaps => collection::merge(name, &args)?,
        F::ToSet => collection::distinct(name, first)?,
        F::Subtract | F::Intersect => collection::members(name, first, &args[1], function == F::Intersect)?,
        F::SortBy => collection::sort_by(name, &args)?,
        F::Concat => gremlin_text::concat(name, &args)?,
        F::TextLength => gremlin_text::length(name, first)?,
        F::TextPart => gremlin_text::part(name, &args)?,
        F::SplitWhole => gremlin_text::split(name, first, &args[1])?,
        F::ReverseItems => gremlin_text::reversed(first),
        F::Lists(function) => two_lists::call(function, name, first, args.get(1))?,
        F::Operate(operator) => operate::call(ctx, operator, first, &args[1])?,
        F::AsNumber(kind) => cast::to_number(kind, name, first)?,
        F::AsBool => cast::to_bool(name, first)?,
        F::TypeOf(kind) => Value::Bool(cast::has_type(kind, first)),
        F::AsDate => temporal::as_date(name, first)?,
        F::DateAdd(unit) => temporal::date_add(unit, name, first, &args[1])?,
        F::DateDiff => temporal::date_diff(name, first, &args[1])?,
        F::MathOperand | F::MathDivisor => number::of_math(function, name, first)?,
        F::Substring
        | F::Left
        | F::Right
        | F::Trim
        | F::LTrim
        | F::RTrim
        | F::ToLower
        | F::ToUpper
        | F::Replace
        | F::Split => text::call(function, name, &args)?,
        F::Abs
        | F::Ceil
        | F::Floor
        | F::Round
        | F::Sign
        | F::Sqrt
        | F::Exp
        | F::Log
        | F::Log10
        | F::Sin
        | F::Cos
        | F::Tan
        | F::Asin
        | F::Acos
        | F::Atan
        | F::Atan2
        | F::Sinh
        | F::Cosh
        | F::Tanh
        | F::Coth
        | F::Cbrt
        | F::Log1p
        | F::Expm1
        | F::Degrees
        | F::Radians => number::call(function, name, &args)?,
        F::Id
        | F::Labels
        | F::Type
        | F::Label
        | F::Keys
        | F::PropertyMap
        | F::PropertyValues
        | F::Properties
        | F::ValueMap
        | F::ElementMap
        | F::GremlinPropertyMap
        | F::AsText
        | F::HasProperty => return Err(Error::of_type(name, "a vertex or edge", first).into()),
    })
}

/// Returns the key of an item in a weighted sample without replacement (Efraimidis and Spirakis 2006): the logarithm of
/// `u^(1/weight)`.
fn sample_key(weight: f64, unit: f64) -> f64 {
    // `1 - unit` is never 0, whose logarithm would be the same for all weights.
    let key = (1.0 - unit).ln() / weight;
    if key.is_nan() { f64::NEG_INFINITY } else { key }
}

/// Returns the vertices at the ends of an edge.
fn ends(function: Function, name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let edge = args[0].as_edge().ok_or_else(|| Error::of_type(name, "an edge", &args[0]))?;
    Ok(Value::Vertex(match function {
        Function::StartNode => edge.source,
        Function::EndNode => edge.target,
        _ => match args[1].as_vertex() {
            Some(gui) if gui == edge.source => edge.target,
            Some(_) => edge.source,
            None => return Err(Error::of_type(name, "a vertex that the edge was reached from", &args[1])),
        },
    }))
}

/// Computes `range`; charges the memory before it makes the list.
fn range(ctx: &Context<'_>, name: &'static str, args: &[Value]) -> Result<Value> {
    let (start, step, count) = list::range(name, args)?;
    let bytes = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size_of::<Value>());
    // Only checks whether the list fits: the operator that keeps it charges it.
    ctx.memory.ensure(bytes)?;
    ctx.spend(bytes / 64)?;
    let mut numbers = Vec::with_capacity(count as usize);
    let mut next = start;
    for at in 0..count {
        numbers.push(Value::Long(next));
        if at + 1 < count {
            next += step;
        }
    }
    Ok(Value::list(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_apl::Draw;

    const ROUNDS: usize = 20_000;

    fn units() -> impl FnMut() -> f64 {
        let mut draw = Draw(7);
        move || (draw.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn keys_of_samples_win_by_their_weight() {
        let mut unit = units();
        let weights = [0.0, 1.0, 2.0, 5.0];
        let mut won = [0; 4];
        for _ in 0..ROUNDS {
            let keys = weights.map(|weight| sample_key(weight, unit()));
            let best = (0..4).max_by(|a, b| keys[*a].total_cmp(&keys[*b])).unwrap();
            won[best] += 1;
        }
        assert_eq!(won[0], 0, "what has no weight comes after all others");
        for (won, expected) in won[1..].iter().zip([2_500, 5_000, 12_500_i32]) {
            assert!((won - expected).abs() < 300, "{won} instead of {expected}");
        }
        assert_eq!(sample_key(0.0, 0.0), f64::NEG_INFINITY);
        assert!(sample_key(f64::INFINITY, 0.5) > sample_key(1e300, 0.5));
    }

    #[test]
    fn parts_of_collections_are_chosen_evenly() {
        let mut unit = units();
        let items = Value::list((0..5).map(Value::Int).collect());
        let mut taken = [0; 5];
        for _ in 0..ROUNDS {
            let sample = local::sample("sample()", &[items.clone(), Value::Int(2)], &mut unit).unwrap();
            let sample: Vec<i64> = sample.as_slice().unwrap().iter().filter_map(Value::as_i64).collect();
            assert!(sample.len() == 2 && sample[0] < sample[1], "{sample:?}");
            sample.iter().for_each(|item| taken[*item as usize] += 1);
        }
        assert!(taken.iter().all(|taken| (7_700..8_300).contains(taken)), "{taken:?}");
        let all = local::sample("sample()", &[items.clone(), Value::Int(5)], || panic!("none is needed"));
        assert_eq!(all.unwrap(), items);
        assert!(local::sample("sample()", &[items, Value::Int(-1)], || 0.5).is_err());
        assert_eq!(
            local::sample("sample()", &[Value::Int(3), Value::Int(0)], || 0.5).unwrap(),
            Value::Int(3)
        );
    }
}

//! Names of functions as their language writes them, for errors, and how many arguments they take.

use super::error::Error;
use tidegraph_plan::{Between, Function, ListFunction, TemporalType};

/// Returns the name of a function for errors.
pub(crate) fn name(function: Function) -> &'static str {
    signature(function).0
}

/// Refuses a call with too few or too many arguments, so that functions may index their arguments.
pub(crate) fn check(function: Function, given: usize) -> Result<(), Error> {
    let (operation, fewest, most) = signature(function);
    if (fewest..=most).contains(&given) {
        return Ok(());
    }
    let expected = match (fewest, most) {
        (_, ANY) => format!("at least {fewest} argument(s)"),
        (1, 1) => "one argument".to_owned(),
        _ if fewest == most => format!("{fewest} arguments"),
        _ => format!("{fewest} to {most} arguments"),
    };
    Err(Error::ArgumentCount { operation, expected, given })
}

/// No upper bound.
const ANY: usize = usize::MAX;

fn signature(function: Function) -> (&'static str, usize, usize) {
    use Function as F;
    match function {
        F::Id => ("id()", 1, 1),
        F::Labels => ("labels()", 1, 1),
        F::Type => ("type()", 1, 1),
        F::Label => ("label()", 1, 1),
        F::Keys => ("keys()", 1, 1),
        F::PropertyMap => ("properties()", 1, 1),
        F::PropertyValues => ("values()", 1, ANY),
        F::Properties => ("properties()", 1, ANY),
        F::ValueMap => ("valueMap()", 2, ANY),
        F::ElementMap => ("elementMap()", 1, ANY),
        F::GremlinPropertyMap => ("propertyMap()", 1, ANY),
        F::PropertyKey => ("key()", 1, 1),
        F::PropertyValue => ("value()", 1, 1),
        F::PropertyOwner => ("element()", 1, 1),
        F::StartNode => ("startNode()", 1, 1),
        F::EndNode => ("endNode()", 1, 1),
        F::OtherNode => ("otherV()", 2, 2),
        F::HasProperty => ("has()", 2, 2),
        F::RequireNotNull => ("a required value", 2, 2),
        F::Nodes => ("nodes()", 1, 1),
        F::Relationships => ("relationships()", 1, 1),
        F::Length => ("length()", 1, 1),
        F::PathAppend => ("path()", 2, ANY),
        F::PathLabel => ("as()", 1, ANY),
        F::PathIsSimple => ("simplePath()", 1, 1),
        F::MakeTree => ("tree()", 1, 1),
        F::MakeGraph => ("subgraph()", 1, 1),
        F::PathPart => ("path()", 3, 3),
        F::PathIsSimpleOrCycle => ("SIMPLE", 1, 1),
        F::MakePath => ("a path", 0, ANY),
        F::PathSelectAll => ("select()", 2, 2),
        F::MapGet => ("select()", 2, 2),
        F::MapKeys => ("select(keys)", 1, 1),
        F::MapValues => ("select(values)", 1, 1),
        F::MakeMap => ("a map", 0, ANY),
        F::Unfold => ("unfold()", 1, 1),
        F::StartsWith => ("STARTS WITH", 2, 2),
        F::EndsWith => ("ENDS WITH", 2, 2),
        F::Contains => ("CONTAINS", 2, 2),
        F::Regex => ("regex()", 2, 2),
        F::MatchesWhole => ("=~", 2, 2),
        F::CountLocal => ("count(local)", 1, 1),
        F::SumLocal => ("sum(local)", 1, 1),
        F::MinLocal => ("min(local)", 1, 1),
        F::MaxLocal => ("max(local)", 1, 1),
        F::MeanLocal => ("mean(local)", 1, 1),
        F::DedupLocal => ("dedup(local)", 1, 1),
        F::IdTexts => ("ids of a look-up", 1, 1),
        F::RangeLocal => ("range(local)", 3, 4),
        F::TailLocal => ("tail(local)", 2, 3),
        F::OrderLocal => ("order(local)", 2, 2),
        F::Coalesce => ("coalesce()", 1, ANY),
        F::Size => ("size()", 1, 1),
        F::Head => ("head()", 1, 1),
        F::Last => ("last()", 1, 1),
        F::ListTail => ("tail()", 1, 1),
        F::Reverse => ("reverse()", 1, 1),
        F::Range => ("range()", 2, 3),
        F::ToInteger => ("toInteger()", 1, 1),
        F::ToFloat => ("toFloat()", 1, 1),
        F::ToText => ("toString()", 1, 1),
        F::ToBoolean => ("toBoolean()", 1, 1),
        F::Abs => ("abs()", 1, 1),
        F::Ceil => ("ceil()", 1, 1),
        F::Floor => ("floor()", 1, 1),
        F::Round => ("round()", 1, 3),
        F::Sign => ("sign()", 1, 1),
        F::Sqrt => ("sqrt()", 1, 1),
        F::Exp => ("exp()", 1, 1),
        F::Log => ("log()", 1, 1),
        F::Log10 => ("log10()", 1, 1),
        F::Sin => ("sin()", 1, 1),
        F::Cos => ("cos()", 1, 1),
        F::Tan => ("tan()", 1, 1),
        F::Asin => ("asin()", 1, 1),
        F::Acos => ("acos()", 1, 1),
        F::Atan => ("atan()", 1, 1),
        F::Atan2 => ("atan2()", 2, 2),
        F::Degrees => ("degrees()", 1, 1),
        F::Radians => ("radians()", 1, 1),
        F::Pi => ("pi()", 0, 0),
        F::Euler => ("e()", 0, 0),
        F::Rand => ("rand()", 0, 0),
        F::SeededRand => ("coin()", 1, 1),
        F::SampleKey => ("by() of sample()", 1, 1),
        F::SampleLocal => ("sample()", 2, 3),
        F::Substring => ("substring()", 2, 3),
        F::Left => ("left()", 2, 2),
        F::Right => ("right()", 2, 2),
        F::Trim => ("trim()", 1, 2),
        F::LTrim => ("lTrim()", 1, 2),
        F::RTrim => ("rTrim()", 1, 2),
        F::Normalize => ("normalize()", 2, 2),
        F::IsNormalized => ("IS NORMALIZED", 2, 2),
        F::IsEmpty => ("isEmpty()", 1, 1),
        F::IsNaN => ("isNaN()", 1, 1),
        F::ToIntegerOrNull => ("toIntegerOrNull()", 1, 1),
        F::ToFloatOrNull => ("toFloatOrNull()", 1, 1),
        F::ToTextOrNull => ("toStringOrNull()", 1, 1),
        F::ToBooleanOrNull => ("toBooleanOrNull()", 1, 1),
        F::ToIntegerList => ("toIntegerList()", 1, 1),
        F::ToFloatList => ("toFloatList()", 1, 1),
        F::ToTextList => ("toStringList()", 1, 1),
        F::ToBooleanList => ("toBooleanList()", 1, 1),
        F::NullIf => ("nullIf()", 2, 2),
        F::ValueType => ("valueType()", 1, 1),
        F::Sinh => ("sinh()", 1, 1),
        F::Cosh => ("cosh()", 1, 1),
        F::Tanh => ("tanh()", 1, 1),
        F::Coth => ("coth()", 1, 1),
        F::ToLower => ("toLower()", 1, 1),
        F::ToUpper => ("toUpper()", 1, 1),
        F::Replace => ("replace()", 3, 3),
        F::Split => ("split()", 2, 2),
        F::Join => ("join()", 2, 2),
        F::TextIndexOf => ("textIndexOf()", 4, 4),
        F::RemoveKey => ("removeKeyFromMap()", 2, 2),
        F::MergeMaps => ("a map projection", 0, ANY),
        F::ToSet => ("collToSet()", 1, 1),
        F::Subtract => ("collSubtract()", 2, 2),
        F::Intersect => ("collIntersection()", 2, 2),
        F::SortBy => ("a sort of a list", 5, 5),
        F::RandomUuid => ("randomUUID()", 0, 0),
        F::MakeUuid => ("UUID()", 0, 0),
        F::EpochMillis => ("epochmillis()", 1, 1),
        F::Year => ("year()", 1, 1),
        F::Month => ("month()", 1, 1),
        F::Day => ("day()", 1, 1),
        F::Timestamp => ("timestamp()", 0, 0),
        F::Temporal(kind) => (temporal_names(kind).0, 1, 1),
        F::Now(kind) => (temporal_names(kind).0, 0, 1),
        F::Truncate(kind) => (temporal_names(kind).1, 1, 3),
        F::Between(Between::Parts) => ("duration.between()", 2, 2),
        F::Between(Between::Months) => ("duration.inMonths()", 2, 2),
        F::Between(Between::Days) => ("duration.inDays()", 2, 2),
        F::Between(Between::Seconds) => ("duration.inSeconds()", 2, 2),
        F::FromEpoch => ("datetime.fromEpoch()", 1, 2),
        F::FromEpochMillis => ("datetime.fromEpochMillis()", 1, 1),
        F::Point => ("point()", 1, 1),
        F::Distance => ("point.distance()", 2, 2),
        F::WithinBox => ("point.withinBBox()", 3, 3),
        F::AsText => ("asString()", 1, 1),
        F::Concat => ("concat()", 1, ANY),
        F::TextLength => ("length()", 1, 1),
        F::TextPart => ("substring()", 2, 3),
        F::SplitWhole => ("split()", 2, 2),
        F::ReverseItems => ("reverse()", 1, 1),
        F::Lists(function @ (ListFunction::Items | ListFunction::Index | ListFunction::IndexMap)) => {
            (list_name(function), 1, 1)
        }
        F::Lists(function) => (list_name(function), 2, 2),
        F::Operate(_) => ("an operator", 2, 2),
        F::AsNumber(_) => ("asNumber()", 1, 1),
        F::AsBool => ("asBool()", 1, 1),
        F::TypeOf(_) => ("typeOf()", 1, 1),
        F::AsDate => ("asDate()", 1, 1),
        F::DateAdd(_) => ("dateAdd()", 2, 2),
        F::DateDiff => ("dateDiff()", 2, 2),
        F::MathOperand | F::MathDivisor => ("math()", 1, 1),
        F::Cbrt => ("cbrt()", 1, 1),
        F::Log1p => ("log1p()", 1, 1),
        F::Expm1 => ("expm1()", 1, 1),
    }
}

/// Returns the name of the step that uses a function.
fn list_name(function: ListFunction) -> &'static str {
    match function {
        ListFunction::Combine => "combine()",
        ListFunction::Difference => "difference()",
        ListFunction::Disjunct => "disjunct()",
        ListFunction::Intersect => "intersect()",
        ListFunction::Merge => "merge()",
        ListFunction::Product => "product()",
        ListFunction::Items => "conjoin()",
        ListFunction::Index | ListFunction::IndexMap => "index()",
    }
}

/// Returns the names of a type's constructor and of its truncation.
fn temporal_names(kind: TemporalType) -> (&'static str, &'static str) {
    match kind {
        TemporalType::Date => ("date()", "date.truncate()"),
        TemporalType::LocalTime => ("localtime()", "localtime.truncate()"),
        TemporalType::Time => ("time()", "time.truncate()"),
        TemporalType::LocalDateTime => ("localdatetime()", "localdatetime.truncate()"),
        TemporalType::DateTime => ("datetime()", "datetime.truncate()"),
        TemporalType::Duration => ("duration()", "duration()"),
    }
}

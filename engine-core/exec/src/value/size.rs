//! The size of values that a request makes: how many bytes they hold, how deep they nest, and how long work on them
//! takes.
//!
//! A value counts as if nothing in it were shared. `[s, s]` takes the memory of one `s`, but whoever walks it (to
//! compare, to write the answer) meets two; after sixty doublings no walk would end. So the bytes that are charged
//! bound the time of walks as well.

use super::error::Error;
use tidegraph_plan::{Function, ListFunction};
use tidegraph_types::Value;

/// Largest depth to which lists and maps nest. Values are compared, written and dropped by recursion.
const MAX_DEPTH: usize = 256;

/// Measures the bytes that a value holds outside of itself. Stops above `most`, so that the time is bounded too.
///
/// # Errors
///
/// `Error::Argument` if the value nests too deeply.
pub(crate) fn heap_bytes(value: &Value, most: u64) -> Result<usize, Error> {
    measured(value, most, 0)
}

/// As [`heap_bytes`], for an item of a list that is not made yet.
pub(crate) fn heap_bytes_of_item(item: &Value, most: u64) -> Result<usize, Error> {
    measured(item, most, 1)
}

fn measured(value: &Value, most: u64, depth: usize) -> Result<usize, Error> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut measure = Measure { bytes: 0, most };
    measure.add(value, depth)?;
    Ok(measure.bytes)
}

struct Measure {
    bytes: usize,
    most: usize,
}

impl Measure {
    fn add(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value {
            Value::List(items) | Value::Set(items) => {
                self.bytes += 24 + items.len() * size_of::<Value>();
                self.add_all(items.iter(), depth)
            }
            Value::Graph(graph) => {
                self.bytes += 64 + graph.elements().count() * size_of::<Value>();
                self.add_all(graph.elements(), depth)
            }
            Value::Map(map) | Value::Tree(map) => {
                self.bytes += 64 + map.len() * (2 * size_of::<Value>() + 16);
                self.add_all(map.iter().flat_map(|(key, value)| [key, value]), depth)
            }
            Value::Entry(entry) => {
                self.bytes += 2 * size_of::<Value>();
                self.add_all([&entry.0, &entry.1].into_iter(), depth)
            }
            Value::Path(path) => {
                self.bytes += 64 + path.objects.len() * size_of::<Value>() + path.labels.len() * 24;
                self.add_all(path.objects.iter(), depth)
            }
            other => {
                self.bytes += other.heap_bytes();
                Ok(())
            }
        }
    }

    fn add_all<'v>(&mut self, values: impl Iterator<Item = &'v Value>, depth: usize) -> Result<(), Error> {
        if depth == MAX_DEPTH {
            let levels = Value::Long(MAX_DEPTH as i64);
            return Err(Error::argument("a list or map", "nests deeper than the limit of levels", &levels));
        }
        for value in values {
            if self.bytes > self.most {
                break;
            }
            self.add(value, depth + 1)?;
        }
        Ok(())
    }
}

/// The bytes that a value itself holds, without those of its items.
fn own_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::List(items) | Value::Set(items) => items.len() * size_of::<Value>(),
        Value::Map(map) => map.len() * (2 * size_of::<Value>() + 16),
        Value::Path(path) => path.objects.len() * size_of::<Value>(),
        _ => 0,
    }
}

/// Returns the bytes of `a + b` if that is a string or a list.
pub(crate) fn joined_bytes(a: &Value, b: &Value) -> usize {
    match (a, b) {
        (Value::String(_) | Value::List(_) | Value::Set(_), _) | (_, Value::String(_) | Value::List(_)) => {
            let one = |value: &Value| own_bytes(value).max(size_of::<Value>());
            one(a) + one(b)
        }
        _ => 0,
    }
}

/// Returns about how many steps of ten nanoseconds a function needs for these arguments.
pub(crate) fn steps(function: Function, args: &[Value]) -> usize {
    let bytes: usize = args.iter().map(own_bytes).sum();
    match function {
        Function::Regex | Function::MatchesWhole => bytes,
        Function::DedupLocal | Function::OrderLocal | Function::IdTexts => bytes,
        Function::ToSet | Function::Subtract | Function::Intersect | Function::SortBy => bytes,
        Function::Normalize | Function::IsNormalized => bytes,
        Function::Lists(ListFunction::Product) => pairs(args),
        Function::Lists(ListFunction::Combine | ListFunction::Items) => bytes / 16,
        Function::Lists(_) | Function::Operate(_) => bytes,
        Function::Split if matches!(args.get(1), Some(Value::List(_))) => {
            let delimiters = args.get(1).and_then(Value::as_slice).unwrap_or_default();
            bytes.saturating_mul(1 + delimiters.iter().map(own_bytes).sum::<usize>().min(1_000) / 8)
        }
        _ => bytes / 16,
    }
}

/// Returns the number of pairs of items of two lists.
fn pairs(args: &[Value]) -> usize {
    let items = |at: usize| args.get(at).map_or(0, own_bytes) / size_of::<Value>();
    items(0).saturating_mul(items(1))
}

/// Returns about how many bytes the result of a function holds that grows with its arguments; 0 for other functions.
pub(crate) fn result_bytes(function: Function, args: &[Value]) -> usize {
    use Function as F;
    let own = |at: usize| args.get(at).map_or(0, own_bytes);
    let text = |at: usize| args.get(at).and_then(Value::as_str).unwrap_or_default();
    // Characters have at most four bytes.
    let chars = |at: usize| match args.get(at).map(Value::as_i64) {
        Some(Some(count)) => usize::try_from(count).unwrap_or(0).saturating_mul(4),
        _ => usize::MAX,
    };
    match function {
        // The longest decomposition of a character.
        F::Normalize => own(0).saturating_mul(11),
        F::ToIntegerList | F::ToFloatList | F::ToTextList | F::ToBooleanList => own(0).saturating_mul(2),
        F::Split => {
            // With several delimiters, each character may be a part.
            let parts = match text(1) {
                "" => text(0).chars().count(),
                delimiter => text(0).matches(delimiter).count() + 1,
            };
            parts.saturating_mul(size_of::<Value>()).saturating_add(text(0).len())
        }
        F::Replace => {
            let count = text(0).matches(text(1)).count();
            let removed = count.saturating_mul(text(1).len());
            text(0).len().saturating_sub(removed).saturating_add(count.saturating_mul(text(2).len()))
        }
        F::Left | F::Right => own(0).min(chars(1)),
        F::Substring => own(0).min(chars(2)),
        F::ToLower | F::ToUpper | F::Trim | F::LTrim | F::RTrim | F::Reverse | F::ListTail => own(0),
        F::MapKeys | F::MapValues | F::Unfold | F::Nodes | F::Relationships | F::PathSelectAll => own(0),
        F::OrderLocal | F::SampleLocal => own(0),
        F::DedupLocal | F::IdTexts | F::ToSet => own(0).saturating_mul(3),
        F::Subtract | F::Intersect => own(0).saturating_mul(3).saturating_add(own(1).saturating_mul(2)),
        F::SortBy => own(0).saturating_mul(3),
        F::RemoveKey => own(0),
        F::Concat | F::Operate(_) => args.iter().map(own_bytes).sum(),
        F::TextPart | F::ReverseItems => own(0),
        F::SplitWhole => {
            // At most every second character begins a part, unless every character is one.
            let parts = match args.get(1).and_then(Value::as_str) {
                Some("") => text(0).chars().count(),
                Some(separator) => text(0).matches(separator).count() + 1,
                None => text(0).len() / 2 + 1,
            };
            parts.saturating_mul(size_of::<Value>()).saturating_add(text(0).len())
        }
        F::Lists(ListFunction::Items) => own(0),
        F::Lists(ListFunction::Combine) => own(0).saturating_add(own(1)),
        // Each pair is a list of two.
        F::Lists(ListFunction::Product) => pairs(args).saturating_mul(3 * size_of::<Value>() + 40),
        F::Lists(ListFunction::Index | ListFunction::IndexMap) => own(0).saturating_mul(4),
        // The result, and the table of the items that were seen.
        F::Lists(_) => own(0).saturating_add(own(1)).saturating_mul(3),
        F::MergeMaps => args.iter().map(own_bytes).sum(),
        F::Join => match args.first().and_then(Value::as_slice) {
            Some(items) => items.iter().map(|item| own_bytes(item).saturating_add(text(1).len())).sum(),
            None => 0,
        },
        F::MakePath | F::PathAppend | F::PathLabel => {
            args.iter().map(|arg| own_bytes(arg).saturating_mul(2).max(size_of::<Value>())).sum()
        }
        _ => 0,
    }
}

//! Selects the metrics that are written to the log, and the dimensions that they get.
//!
//! CloudWatch bills each combination of a name and dimensions by the month. So the selection is small, and of the labels
//! of a metric at most one becomes a dimension: the series of all paths and graphs are added up.

use metrics::{Key, Label};
use std::str::FromStr;
use tidegraph_platform::metric;

/// The namespace of the metrics, which is also that of the metrics of nodes.
pub(super) const NAMESPACE: &str = "Tidegraph";

/// Most dimensions of a metric that CloudWatch takes.
const MOST_DIMENSIONS: usize = 30;
/// Most characters of the name of a dimension.
const MOST_NAME: usize = 255;
/// Most characters of the value of a dimension.
const MOST_VALUE: usize = 1024;

/// A selected metric.
pub(super) struct Selected {
    pub(super) name: &'static str,
    /// Its unit, as CloudWatch names it.
    pub(super) unit: &'static str,
    by: By,
}

/// What distinguishes the series of a metric.
#[derive(Clone, Copy)]
enum By {
    /// Nothing: all are added up.
    Nothing,
    /// The value of a label.
    Label(&'static str),
    /// The class of the label `status`, such as `2xx`.
    Class,
}

/// The dimension of [`By::Class`].
const CLASS: &str = "class";

const fn selected(name: &'static str, unit: &'static str, by: By) -> Selected {
    Selected { name, unit, by }
}

/// The selected metrics.
pub(super) const SELECTED: [Selected; 10] = [
    selected(metric::HTTP_REQUESTS, "Count", By::Class),
    selected(metric::QUERIES, "Count", By::Label("outcome")),
    selected(metric::QUERY_SECONDS, "Seconds", By::Nothing),
    selected(metric::QUERIES_RUNNING, "Count", By::Nothing),
    selected(metric::QUERIES_WAITING, "Count", By::Nothing),
    selected(metric::QUERY_MEMORY, "Bytes", By::Nothing),
    selected(metric::QUERY_MEMORY_LIMIT, "Bytes", By::Nothing),
    selected(metric::QUERY_MEMORY_REFUSALS, "Count", By::Nothing),
    selected(metric::CONNECTIONS, "Count", By::Label("protocol")),
    selected(metric::UNAUTHENTICATED, "Count", By::Nothing),
];

/// Returns the selected metric of a name.
pub(super) fn find(name: &str) -> Option<&'static Selected> {
    SELECTED.iter().find(|selected| selected.name == name)
}

/// Returns the name and the dimension under which a series is written; `None`: it is not.
pub(super) fn series(key: &Key) -> Option<Key> {
    let selected = find(key.name())?;
    let label = |name: &str| key.labels().find(|label| label.key() == name);
    let labels = match selected.by {
        By::Nothing => Vec::new(),
        By::Label(name) => label(name).cloned().into_iter().collect(),
        By::Class => {
            label("status").map(|status| Label::new(CLASS, class(status.value()))).into_iter().collect()
        }
    };
    Some(Key::from_parts(selected.name, labels))
}

/// Returns the class of a status of HTTP.
fn class(status: &str) -> &'static str {
    match status.as_bytes().first() {
        Some(b'1') => "1xx",
        Some(b'2') => "2xx",
        Some(b'3') => "3xx",
        Some(b'4') => "4xx",
        _ => "5xx",
    }
}

/// A dimension that all metrics of the log get, such as `Deployment=production`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dimension {
    pub(super) name: String,
    pub(super) value: String,
}

/// Why a dimension is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongDimension {
    /// The text has no name, no `=` or no value.
    #[error("{0:?} is not a dimension: write it like Deployment=production")]
    Form(String),
    /// CloudWatch refuses the name.
    #[error(
        "{0:?} cannot be the name of a dimension: it has 1 to 255 printable ASCII characters, and does not begin with ':'"
    )]
    Name(String),
    /// CloudWatch refuses the value.
    #[error(
        "{value:?} cannot be the value of the dimension {name:?}: it has 1 to 1024 printable ASCII characters"
    )]
    Value {
        /// The name of the dimension.
        name: String,
        /// The value.
        value: String,
    },
    /// The events have a member of this name.
    #[error("{0:?} cannot be the name of a dimension: the events of metrics use it themselves")]
    Used(String),
    /// Two dimensions have one name.
    #[error("the dimension {0:?} is given twice")]
    Twice(String),
    /// There are too many.
    #[error("{0} dimensions are too many: give at most 29")]
    TooMany(usize),
}

/// Whether a text has 1 to `most` characters, all of them printable ASCII, and not only spaces.
fn is_printable(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len())
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && !text.trim().is_empty()
}

impl FromStr for Dimension {
    type Err = WrongDimension;

    fn from_str(text: &str) -> Result<Self, WrongDimension> {
        let (name, value) = text.split_once('=').ok_or_else(|| WrongDimension::Form(text.to_owned()))?;
        if !is_printable(name, MOST_NAME) || name.starts_with(':') {
            return Err(WrongDimension::Name(name.to_owned()));
        }
        let of_labels = SELECTED.iter().filter_map(|selected| match selected.by {
            By::Nothing => None,
            By::Label(name) => Some(name),
            By::Class => Some(CLASS),
        });
        if name == "_aws" || find(name).is_some() || of_labels.into_iter().any(|used| used == name) {
            return Err(WrongDimension::Used(name.to_owned()));
        }
        if !is_printable(value, MOST_VALUE) {
            return Err(WrongDimension::Value { name: name.to_owned(), value: value.to_owned() });
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

/// The dimensions that all metrics of the log get.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Dimensions(Vec<Dimension>);

impl Dimensions {
    /// Makes them.
    ///
    /// # Errors
    ///
    /// If two have one name, or there are more than CloudWatch takes together with the one of a label.
    pub fn new(dimensions: Vec<Dimension>) -> Result<Self, WrongDimension> {
        if dimensions.len() >= MOST_DIMENSIONS {
            return Err(WrongDimension::TooMany(dimensions.len()));
        }
        for (index, dimension) in dimensions.iter().enumerate() {
            if dimensions.iter().take(index).any(|before| before.name == dimension.name) {
                return Err(WrongDimension::Twice(dimension.name.clone()));
            }
        }
        Ok(Self(dimensions))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|Dimension { name, value }| (name.as_str(), value.as_str()))
    }
}

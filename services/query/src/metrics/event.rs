//! Events in CloudWatch's embedded metric format.
//!
//! An event is a JSON object in a line: `_aws` says which of its other members are metrics and which are their
//! dimensions. CloudWatch Logs makes metrics of such events wherever they come from:
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>.
//!
//! The values of a histogram are an object `{"Values": […], "Counts": […]}`, as the libraries of AWS write them
//! (ADR 0049).

use super::recorder::{Measure, Snapshot};
use super::selection::{self, Dimensions, NAMESPACE};
use metrics::Label;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Returns an event for each dimension of the snapshot, each in a line of its own.
pub(super) fn lines(snapshot: Snapshot, dimensions: &Dimensions, timestamp_ms: i64) -> Vec<String> {
    let mut events: BTreeMap<Vec<Label>, Map<String, Value>> = BTreeMap::new();
    for (key, measure) in snapshot {
        let (name, labels) = key.into_parts();
        let value = match measure {
            Measure::Growth(growth) => json!(growth),
            Measure::Value(value) => json!(value),
            Measure::Values((values, counts)) => json!({ "Values": values, "Counts": counts }),
        };
        events.entry(labels).or_default().insert(name.as_str().to_owned(), value);
    }
    let line = |(labels, metrics): (Vec<Label>, _)| {
        let own = labels.iter().map(|label| (label.key(), label.value()));
        let of_all: Vec<_> = dimensions.iter().chain(own).collect();
        format!("{}\n", event(&of_all, metrics, timestamp_ms))
    };
    events.into_iter().map(line).collect()
}

/// Returns an event with metrics of the same dimensions.
fn event(dimensions: &[(&str, &str)], metrics: Map<String, Value>, timestamp_ms: i64) -> Value {
    let names: Vec<_> = dimensions.iter().map(|(name, _)| name).collect();
    let definition = |name: &String| {
        let unit = selection::find(name).map_or("None", |selected| selected.unit);
        json!({ "Name": name, "Unit": unit })
    };
    let directive = json!({
        "Namespace": NAMESPACE,
        "Dimensions": [names],
        "Metrics": metrics.keys().map(definition).collect::<Vec<_>>(),
    });
    let about = json!({ "Timestamp": timestamp_ms, "CloudWatchMetrics": [directive] });
    let mut event = Map::from_iter([("_aws".to_owned(), about)]);
    event.extend(dimensions.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    event.extend(metrics);
    Value::Object(event)
}

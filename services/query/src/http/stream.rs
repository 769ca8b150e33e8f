//! `/propertygraph/stream`: Neptune's change records, which this service does not have.

use super::Failure;
use tidegraph_types::ErrorCode;

/// `/propertygraph/stream`: answers as Neptune does when its streams are off.
pub async fn refuse() -> Failure {
    let message = "this service keeps no stream of changes: records of its log hold neither the ids nor the former values \
                   of what a change removes";
    Failure::new(ErrorCode::UnsupportedOperation, message)
}

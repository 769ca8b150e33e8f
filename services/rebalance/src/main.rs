//! `tidegraph-rebalance`: the steps as a Lambda function. It is deployed as `bootstrap`, the name that Lambda starts.

use serde_json::Value;
use std::process::ExitCode;
use std::sync::Arc;
use tidegraph_cluster::MapStore;
use tidegraph_cluster::dynamodb::{DynamoMap, DynamoOptions};
use tidegraph_function::Failure;
use tidegraph_platform::{Clock, RealClock, RealRandom};
use tidegraph_rebalance::{Answer, Error, Graphs, Request, Settings};

fn main() -> ExitCode {
    tidegraph_function::main("tidegraph-rebalance", |variables| {
        let graphs = connected(Settings::read(variables)?)?;
        Ok(move |event| answer(&graphs, event))
    })
}

/// Connects to the map.
fn connected(settings: Settings) -> Result<Graphs, tidegraph_cluster::Error> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let mut options = match &settings.endpoint {
        Some(endpoint) if settings.is_local => DynamoOptions::local(endpoint.as_str()),
        endpoint => DynamoOptions {
            endpoint: endpoint.clone(),
            region: settings.region.clone(),
            from_environment: true,
            ..DynamoOptions::default()
        },
    };
    options.table_prefix.clone_from(&settings.table_prefix);
    let map = DynamoMap::open(&options, clock.clone(), Arc::new(RealRandom))?;
    let map: Arc<dyn MapStore> = Arc::new(map);
    Ok(Graphs::new(settings, &map, clock))
}

fn answer(graphs: &Graphs, event: Value) -> Result<Answer, Failure> {
    let parsed = Request::read(event).map_err(Error::Unreadable);
    parsed.and_then(|request| graphs.answer(request)).map_err(|error| Failure::new(error.name(), &error))
}

//! How a worker reaches its fleet, whichever shell it runs in: a command or a function. The map is in DynamoDB.
//!
//! Roles: [`Access`] is what has to be known; [`environment`] reads it from the environment variables of a function.

pub mod environment;

use crate::{Error, Worker, WorkerConfig, WorkerParts};
use std::sync::Arc;
use tidegraph_cluster::MapStore;
use tidegraph_cluster::dynamodb::{DynamoMap, DynamoOptions};
use tidegraph_platform::{Clock, RealClock, RealRandom};
use tidegraph_remote::{Security, SecurityConfig};

/// Where the map is, and how nodes know the worker.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// Name of the graph.
    pub graph: String,
    /// The table of maps.
    pub table: Table,
    /// The secret, the certificates.
    pub security: SecurityConfig,
    /// Settings of the worker.
    pub worker: WorkerConfig,
}

/// The table of maps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    /// What its name begins with.
    pub prefix: String,
    /// Another endpoint than the region's.
    pub endpoint: Option<String>,
    /// The endpoint is DynamoDB Local, which takes any credentials.
    pub local: bool,
    /// Region and credentials, where they stand in the environment and nowhere else.
    pub region_of_environment: Option<String>,
}

impl Table {
    /// Opens it.
    pub fn open(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn MapStore>, tidegraph_cluster::Error> {
        let mut options = match &self.endpoint {
            Some(endpoint) if self.local => DynamoOptions::local(endpoint.as_str()),
            endpoint => DynamoOptions { endpoint: endpoint.clone(), ..DynamoOptions::default() },
        };
        if let Some(region) = &self.region_of_environment
            && !self.local
        {
            options.region = Some(region.clone());
            options.from_environment = true;
        }
        options.table_prefix.clone_from(&self.prefix);
        Ok(Arc::new(DynamoMap::open(&options, clock.clone(), Arc::new(RealRandom))?))
    }
}

impl Access {
    /// Loads the map and looks for the sequencer.
    pub fn connect(&self) -> Result<Arc<Worker>, Error> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let parts = WorkerParts {
            graph: self.graph.clone(),
            map_store: self.table.open(&clock)?,
            security: Security::load(&self.security)?,
            clock,
            random: Arc::new(RealRandom),
        };
        Ok(Arc::new(Worker::start(self.worker.clone(), parts)?))
    }
}

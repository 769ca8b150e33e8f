//! Connects a worker to its fleet, for workers that run as a command and as a function. The map is in DynamoDB.
//!
//! Roles: [`Access`] is the configuration; [`environment`] reads it from the environment variables of a function;
//! [`SecretPlace`] and [`ManagedCertificates`] say where the fleet's secret and the certificates are, also for nodes.

pub mod environment;
mod secret;

pub use secret::{LEAST_CHARACTERS, ManagedCertificates, ManagedSecret, SecretPlace};

use crate::{Error, Worker, WorkerConfig, WorkerParts};
use std::sync::Arc;
use tidegraph_cluster::MapStore;
use tidegraph_cluster::dynamodb::{DynamoMap, DynamoOptions};
use tidegraph_platform::{Clock, RealClock, RealRandom};
use tidegraph_remote::SecurityConfig;

/// How a worker reaches its fleet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// The graph's name.
    pub graph: String,
    /// The table that holds the map.
    pub table: Table,
    /// Certificates for nodes, and the secret if it is given here.
    pub security: SecurityConfig,
    /// Where the secret is.
    pub secret: SecretPlace,
    /// Certificates in Secrets Manager, in place of those of [`Access::security`].
    pub certificates: Option<ManagedCertificates>,
    /// Settings of the worker.
    pub worker: WorkerConfig,
}

/// The DynamoDB table that holds the map.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    /// Prefix of its name.
    pub prefix: String,
    /// Endpoint of DynamoDB, if it is not the region's.
    pub endpoint: Option<String>,
    /// Whether the endpoint is DynamoDB Local, which accepts any credentials.
    pub local: bool,
    /// Region, if it and the credentials come from environment variables only.
    pub region_of_environment: Option<String>,
}

impl Table {
    /// Opens the map.
    ///
    /// # Errors
    /// The error of the map, if its client cannot be configured.
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
    /// Starts a worker, which loads the map and looks for the sequencer.
    ///
    /// # Errors
    /// [`Error::Map`] if the map cannot be loaded, [`Error::Remote`] if the certificates cannot be used or the secret
    /// cannot be read, [`Error::Thread`] if the system gives no thread.
    pub fn connect(&self) -> Result<Arc<Worker>, Error> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let parts = WorkerParts {
            graph: self.graph.clone(),
            map_store: self.table.open(&clock)?,
            security: self.secret.security(&self.security, self.certificates.as_ref(), clock.clone())?,
            clock,
            random: Arc::new(RealRandom),
        };
        Ok(Arc::new(Worker::start(self.worker.clone(), parts)?))
    }
}

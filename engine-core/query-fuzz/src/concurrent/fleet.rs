//! A fleet in this process for rounds: nodes, a sequencer and two workers, with a log and a map in memory.

// The fleet of the fleet's own tests.
#[path = "../../../fleet/tests/support/mod.rs"]
mod support;

use super::Place;
use super::round::{Round, Schema};
use super::run::Sites;
use crate::graph::Graph;
use std::sync::Arc;
use support::TestFleet;
use tidegraph_engine::{Backend, Database, Error, Language, Parameters, Query};
use tidegraph_fleet::{NodeConfig, Worker};
use tidegraph_types::Version;

/// A fleet, which runs one round after the other.
pub struct Fleet {
    workers: Vec<(Arc<Database>, Arc<Worker>)>,
    schema: Schema,
    _nodes: TestFleet,
}

impl Fleet {
    /// Starts three nodes, a sequencer, and two workers.
    #[must_use]
    pub fn start() -> Self {
        let nodes = TestFleet::start(4, 3, 2, 64, NodeConfig::default());
        let workers = (0..2).map(|_| nodes.worker()).collect();
        Self { workers, schema: Schema::Nothing, _nodes: nodes }
    }

    /// Returns the number of workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Runs a query at a version or a later one.
    fn ask(&self, worker: usize, at_least: Version, text: &str) -> Result<Version, Error> {
        let none = Parameters::default();
        let query = Query { at_least: Some(at_least), ..Query::new(Language::OpenCypher, text, &none) };
        Ok(self.workers[worker].0.query(&query)?.version)
    }

    /// Replaces the graph of the fleet, and returns the database of a worker.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub fn create(&self, graph: &Graph) -> Result<Arc<Database>, Error> {
        self.ask(0, self.newest(), "MATCH (n) DETACH DELETE n")?;
        if let Some(text) = graph.to_cypher() {
            self.ask(0, self.newest(), &text)?;
        }
        Ok(self.workers[0].0.clone())
    }

    /// Returns the newest version that a worker knows.
    fn newest(&self) -> Version {
        let versions = self.workers.iter().map(|(_, worker)| worker.status().version);
        versions.max().unwrap_or_default()
    }
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Place for Fleet {
    fn prepare(&mut self, round: &Round) -> Result<Sites, Error> {
        self.ask(0, self.newest(), "MATCH (n) DETACH DELETE n")?;
        if self.schema != round.schema {
            let (database, _) = &self.workers[0];
            self.schema.drop_from(database)?;
            round.schema.create(database)?;
            self.schema = round.schema;
        }
        if let Some(text) = round.graph.to_cypher() {
            self.ask(0, self.newest(), &text)?;
        }
        let begun = self.newest();
        for worker in 0..self.workers.len() {
            self.ask(worker, begun, "RETURN 1")?;
        }
        let backend = |(_, worker): &(_, Arc<Worker>)| worker.clone() as Arc<dyn Backend>;
        let databases = self.workers.iter().map(|(database, _)| database.clone()).collect();
        Ok(Sites::fleet(databases, self.workers.iter().map(backend).collect(), begun))
    }

    fn tries(&self) -> usize {
        200
    }
}

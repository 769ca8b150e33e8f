//! The graphs of a server, each with its own services and its own threads for requests that wait: if the log of one graph
//! does not answer, the commits of the others have threads.

use super::pool::Pool;
use crate::services::Services;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The services of a server, by the name of their graph. Clones share them. They may change while the server runs: a client
/// gets those of the moment of its hello.
#[derive(Clone, Default)]
pub struct Graphs(Arc<ArcSwap<BTreeMap<String, Arc<Served>>>>);

/// One graph of a server.
pub(super) struct Served {
    graph: String,
    pub services: Services,
    pools: OnceLock<Pools>,
}

/// Threads of one graph.
pub(super) struct Pools {
    pub waiting: Pool,
    pub committing: Pool,
}

impl std::fmt::Debug for Graphs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Graphs").field(&self.names()).finish()
    }
}

impl Graphs {
    /// Makes graphs of which one is served.
    #[must_use]
    pub fn one(graph: &str, services: Services) -> Self {
        let graphs = Self::default();
        graphs.set(graph, services);
        graphs
    }

    /// Serves a graph from now on, in place of earlier services of the same graph.
    pub fn set(&self, graph: &str, services: Services) {
        let served = Arc::new(Served { graph: graph.into(), services, pools: OnceLock::new() });
        self.0.rcu(|graphs| {
            let mut graphs = BTreeMap::clone(graphs);
            graphs.insert(graph.into(), served.clone());
            graphs
        });
    }

    /// Serves a graph no more. New clients are refused; [`Server::end_stale_connections`](super::Server) ends the others.
    pub fn remove(&self, graph: &str) {
        self.0.rcu(|graphs| {
            let mut graphs = BTreeMap::clone(graphs);
            graphs.remove(graph);
            graphs
        });
    }

    /// Returns the names of the graphs, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.load().keys().cloned().collect()
    }

    pub(super) fn find(&self, graph: &str) -> Option<Arc<Served>> {
        self.0.load().get(graph).cloned()
    }

    /// Whether clients of a graph still get these services.
    pub(super) fn is_current(&self, served: &Arc<Served>) -> bool {
        self.0.load().get(&served.graph).is_some_and(|current| Arc::ptr_eq(current, served))
    }
}

impl Served {
    /// Returns the threads of the graph; `waiters` and `committers` are how many there are at most.
    pub fn pools(&self, waiters: usize, committers: usize) -> &Pools {
        self.pools.get_or_init(|| Pools {
            waiting: Pool::new("remote-wait", waiters),
            committing: Pool::new("remote-commit", committers),
        })
    }
}

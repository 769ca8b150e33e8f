//! What sessions of all protocols share: connections that stay open between requests, of Bolt and of WebSocket.

use crate::admission::Admission;
use crate::audit::Source;
use crate::authentication::{
    Authentication, Refusal,
    signature::{self, Signed},
};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tidegraph_engine::{Database, Principal};

/// Why there is no session in a graph.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoGraph {
    /// The service has no graph of this name.
    #[error("there is no graph {0:?}")]
    Unknown(String),
    /// The graph is not open yet.
    #[error("the graph {0:?} is not there yet, or cannot be reached: try again")]
    Absent(String),
}

/// Finds the graphs of a port.
pub(crate) trait Find: Send + Sync {
    /// Returns what sessions in a graph share. `None`: in the default graph.
    fn find(&self, graph: Option<&str>) -> Result<Arc<Service>, NoGraph>;

    /// Returns what sessions in any open graph share, in the default one if it is open.
    fn any(&self) -> Option<Arc<Service>>;
}

/// What sessions in the graphs of a port share.
#[derive(Clone)]
pub struct Sessions(Arc<dyn Find>);

impl Sessions {
    pub(crate) fn new(graphs: impl Find + 'static) -> Self {
        Self(Arc::new(graphs))
    }

    pub(crate) fn find(&self, graph: Option<&str>) -> Result<Arc<Service>, NoGraph> {
        self.0.find(graph)
    }

    pub(crate) fn any(&self) -> Option<Arc<Service>> {
        self.0.any()
    }
}

/// A port with one graph.
pub(crate) struct Only(pub(crate) Arc<Service>);

impl Find for Only {
    fn find(&self, graph: Option<&str>) -> Result<Arc<Service>, NoGraph> {
        match graph {
            Some(name) if *name != *self.0.graph => Err(NoGraph::Unknown(name.to_owned())),
            _ => Ok(self.0.clone()),
        }
    }

    fn any(&self) -> Option<Arc<Service>> {
        Some(self.0.clone())
    }
}

/// What all sessions in a graph share.
pub struct Service {
    /// The name of the graph.
    pub(crate) graph: Arc<str>,
    pub(crate) database: Arc<Database>,
    pub(crate) admission: Arc<Admission>,
    /// Longest message of a client that is authenticated, in bytes.
    pub(crate) message_bytes: usize,
    /// How clients prove who they are.
    pub(crate) authentication: Authentication,
    /// Number of sessions of Bolt since the start.
    pub(crate) bolt_sessions: AtomicU64,
}

impl Service {
    /// Returns a principal with the roles that it has in the graph now.
    pub(crate) fn still_known(&self, principal: &Principal) -> Result<Principal, Refusal> {
        self.authentication.still_known(principal, &self.graph)
    }

    /// Returns who sends a name and a password, and records it if they are wrong. Where requests are signed, the
    /// password is what a client of Bolt signed.
    pub(crate) async fn password(
        &self,
        name: &str,
        password: &str,
        source: Source,
    ) -> Result<Principal, Refusal> {
        let proven = match &self.authentication {
            Authentication::SigV4(signers) => {
                let now = self.database.now();
                signature::of_bolt(password).and_then(|(method, target, headers)| {
                    let signed = Signed { method: &method, target, headers: &headers };
                    signers.verify(&signers.check(&signed, now)?, &signed, &[])
                })
            }
            others => others.password(name, password, source.address.map(|address| address.ip())).await,
        };
        self.recorded(Some(name), source, proven).await
    }

    /// Returns who sends a token, or nothing, and records it if that is wrong.
    pub(crate) async fn token(&self, token: Option<&str>, source: Source) -> Result<Principal, Refusal> {
        let from = source.address.map(|address| address.ip());
        let proven = match (token, self.authentication.refusal_of_strangers()) {
            (Some(token), _) => self.authentication.token(token, from).await,
            (None, None) => Ok(Principal::Anonymous),
            (None, Some(refusal)) => Err(refusal),
        };
        self.recorded(None, source, proven).await
    }

    async fn recorded(
        &self,
        name: Option<&str>,
        source: Source,
        proven: Result<Principal, Refusal>,
    ) -> Result<Principal, Refusal> {
        if let (Err(refusal), Some(audit)) = (&proven, self.admission.audit()) {
            audit.refused(name, source, refusal.code()).await;
        }
        proven
    }
}

/// Limits of sessions, of whatever protocol.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time between an answer and the next message.
    pub idle: Duration,
    /// Time between two parts of an answer that a client asks for, and between two requests of a transaction.
    pub paused: Duration,
}

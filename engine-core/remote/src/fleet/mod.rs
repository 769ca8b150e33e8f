//! APL over many nodes.
//!
//! Roles: [`FleetClient`] is shared by all queries of a process: the nodes, the map, the latencies of answers.
//! [`FleetApl`] is one query's view of it, with a deadline and a way to be cancelled; it is cheap to make. `apl.rs`
//! says for each request how it is split by partition and how answers are merged; `rows.rs`, `expand.rs`, `scan.rs` do
//! that; `gather.rs` asks partitions until each is answered; `statistics.rs` merges counts; `status.rs` asks
//! nodes for their health.
//!
//! A position inside a partition (a cursor) is valid only at the replica that gave it, because replicas lay out the
//! same data differently. So a cursor names its replica and the id of its store (APL-2). If that replica is lost or
//! restored again, the request fails, and the whole query can be run again. Every other request moves to another
//! replica, unnoticed by the caller.

mod apl;
mod digests;
mod expand;
mod gather;
mod hedge;
mod routes;
mod rows;
mod scan;
mod schema;
mod statistics;
mod status;

pub use routes::{Replicas, RouteMap, Routes};

use crate::client::{ClientConfig, Network, RemoteNode};
use crate::security::Security;
use gather::{Answered, Asked, Gather, Pin};
use hedge::Hedges;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use schema::Schema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_apl::{At, Error, Statistics, Traffic};
use tidegraph_platform::{Clock, Random, traces};
use tidegraph_types::{Gui, GuiHasher, Layout, PartitionId, Version};
use tidegraph_wire::apl::{AnyRequest, Request};

/// Age up to which the versions that nodes have applied are not computed anew.
const REACHED_AGE: Duration = Duration::from_millis(1);

/// Settings of access to a fleet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetConfig {
    /// Connections to nodes.
    pub client: ClientConfig,
    /// How often all replicas of a partition may fail before the request fails.
    pub rounds: u32,
    /// Earliest time at which a second replica is asked.
    pub hedge_after: Duration,
    /// How long counts for the planner are kept.
    pub statistics_age: Duration,
    /// Longest time that a query may take; also the deadline of queries that have none.
    pub longest_query: Duration,
}

impl Default for FleetConfig {
    fn default() -> Self {
        Self {
            client: ClientConfig::default(),
            rounds: 8,
            hedge_after: Duration::from_millis(1),
            statistics_age: Duration::from_secs(5),
            longest_query: Duration::from_secs(120),
        }
    }
}

/// Counters of the requests to a fleet.
#[derive(Debug, Default)]
pub struct FleetCounters {
    /// How often a second replica was asked because the first was slow.
    pub hedged: AtomicU64,
    /// How often a node failed and another was asked.
    pub failed_over: AtomicU64,
    /// How often a newer map was loaded.
    pub reloaded: AtomicU64,
}

/// Access to a fleet, shared by the queries of a process.
#[derive(Clone)]
pub struct FleetClient(Arc<Shared>);

struct Shared {
    config: FleetConfig,
    security: Security,
    routes: Arc<dyn Routes>,
    hasher: GuiHasher,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    nodes: RwLock<FxHashMap<Arc<str>, Arc<RemoteNode>>>,
    hedges: Hedges,
    counters: FleetCounters,
    statistics: Mutex<Option<(Duration, Arc<Statistics>)>>,
    schema: Schema,
    /// Newest version that every healthy node has applied, and when it was computed.
    reached: Mutex<(Duration, Option<Version>)>,
    /// Replaces the network; `None`: sockets.
    network: Option<Arc<dyn Network>>,
}

impl std::fmt::Debug for FleetClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetClient").field("counters", &self.0.counters).finish_non_exhaustive()
    }
}

impl FleetClient {
    /// Makes access to the fleet of `routes`, whose caller keeps the map up to date.
    #[must_use]
    pub fn new(
        config: FleetConfig,
        security: Security,
        routes: Arc<dyn Routes>,
        hasher: GuiHasher,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Self {
        Self::over(None, config, security, routes, hasher, clock, random)
    }

    /// Makes access to a fleet whose nodes are reached through `network` instead of sockets, as in a simulation.
    #[must_use]
    pub fn over(
        network: Option<Arc<dyn Network>>,
        config: FleetConfig,
        security: Security,
        routes: Arc<dyn Routes>,
        hasher: GuiHasher,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Self {
        let hedges = Hedges::new(config.hedge_after);
        let (nodes, counters, statistics) = (RwLock::default(), FleetCounters::default(), Mutex::default());
        let schema = Schema::default();
        Self(Arc::new(Shared {
            config,
            security,
            routes,
            hasher,
            clock,
            random,
            nodes,
            hedges,
            counters,
            statistics,
            schema,
            reached: Mutex::default(),
            network,
        }))
    }

    /// Returns one query's view, given the time that is left for the query and a flag that cancels it.
    #[must_use]
    pub fn query(&self, within: Option<Duration>, cancelled: Option<Arc<AtomicBool>>) -> FleetApl {
        let shared = self.0.clone();
        let deadline = shared.deadline(within);
        FleetApl {
            layout: shared.routes.current().layout,
            shared,
            deadline,
            cancelled,
            degree: AtomicU32::new(0),
            window: AtomicU32::new(1),
            digest_window: AtomicU32::new(digests::WINDOW),
            lacks_digests: AtomicBool::new(false),
            pins: Mutex::default(),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            span: traces::current(),
        }
    }

    /// Returns the node at an address, for requests other than APL.
    #[must_use]
    pub fn node(&self, address: &Arc<str>) -> Arc<RemoteNode> {
        self.0.node(address)
    }

    /// Notes that no index or constraint was made or dropped after the version `since`, up to `upto`. Call it before
    /// any read at `upto`.
    pub fn schema_known(&self, since: Version, upto: Version) {
        self.0.schema.know(since, upto);
    }

    /// Returns a version that can be read without waiting, as far as nodes have reported. `None`: no healthy node has
    /// reported lately.
    #[must_use]
    pub fn reached(&self) -> Option<Version> {
        let shared = &self.0;
        let now = shared.clock.now();
        let mut reached = shared.reached.lock();
        if reached.1.is_none() || now.saturating_sub(reached.0) >= REACHED_AGE {
            let nodes = shared.nodes.read();
            let healthy = nodes.values().filter(|node| node.is_healthy());
            *reached = (now, healthy.filter_map(|node| node.applied(now)).min());
        }
        reached.1
    }

    /// Drops the connections to nodes that are no longer in the map.
    pub fn prune(&self) {
        self.0.prune();
    }

    /// Returns the counters of requests so far.
    #[must_use]
    pub fn counters(&self) -> &FleetCounters {
        &self.0.counters
    }
}

impl Shared {
    /// Returns the deadline of a query that begins now.
    fn deadline(&self, within: Option<Duration>) -> Duration {
        let longest = self.config.longest_query;
        self.clock.now() + within.unwrap_or(longest).min(longest)
    }

    fn prune(&self) {
        let map = self.routes.current();
        let known: rustc_hash::FxHashSet<&Arc<str>> = map.addresses().collect();
        self.nodes.write().retain(|address, _| known.contains(address));
    }

    fn node(&self, address: &Arc<str>) -> Arc<RemoteNode> {
        if let Some(node) = self.nodes.read().get(address) {
            return node.clone();
        }
        let make = || {
            let (config, security) = (self.config.client.clone(), self.security.clone());
            let (network, clock) = (self.network.clone(), self.clock.clone());
            RemoteNode::over(network, address, config, security, clock, self.random.clone())
        };
        self.nodes.write().entry(address.clone()).or_insert_with(make).clone()
    }
}

/// One query's view of a fleet: implements [`tidegraph_apl::Apl`] with a deadline and a way to be cancelled.
pub struct FleetApl {
    shared: Arc<Shared>,
    /// The partitions of the graph when the query began. The query asks them even if the graph is split meanwhile,
    /// because its cursors count them.
    layout: Layout,
    /// Deadline by the shared clock.
    deadline: Duration,
    cancelled: Option<Arc<AtomicBool>>,
    /// Moving average of the degree of vertices, in sixteenths; 0: unknown.
    degree: AtomicU32,
    /// Number of partitions that a scan asks at once.
    window: AtomicU32,
    /// Number of partitions that a scan asks at once if nodes answer less than rows.
    digest_window: AtomicU32,
    /// Whether a node of an earlier release refused such a scan.
    lacks_digests: AtomicBool,
    /// The replicas that cursors name. A cursor holds the index plus one.
    pins: Mutex<Vec<Pin>>,
    /// Number of messages to nodes.
    requests: AtomicU64,
    /// Bytes of these messages and of their answers.
    bytes: AtomicU64,
    /// The span of the query, which messages belong to.
    span: tracing::Span,
}

impl std::fmt::Debug for FleetApl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetApl").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl FleetApl {
    /// Sets a new deadline, from now on. Cursors that the view gave stay valid, which those of another view are not.
    pub fn renew(&mut self, within: Option<Duration>) {
        self.deadline = self.shared.deadline(within);
    }

    /// Returns what the query's requests have moved so far.
    fn moved(&self) -> Traffic {
        let requests = self.requests.load(Ordering::Relaxed);
        Traffic { requests, bytes: self.bytes.load(Ordering::Relaxed) }
    }

    /// Fails if the query was cancelled or its deadline passed.
    fn check(&self) -> Result<(), Error> {
        if self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            return Err(Error::Cancelled);
        }
        if self.shared.clock.now() >= self.deadline { Err(Error::Overdue) } else { Ok(()) }
    }

    /// Returns the time that is left, at most `at_most`.
    fn remaining(&self, at_most: Duration) -> Duration {
        self.deadline.saturating_sub(self.shared.clock.now()).min(at_most)
    }

    fn remaining_us(&self) -> u64 {
        u64::try_from(self.remaining(Duration::MAX).as_micros()).unwrap_or(u64::MAX).max(1)
    }

    /// Asks partitions. Returns one answer for each.
    fn gather(&self, at: At, rows: usize, asked: Vec<Asked>) -> Result<Vec<Answered>, Error> {
        self.check()?;
        Gather::new(self, self.shared.routes.current(), at, rows, asked)?.run()
    }

    /// Sends the same request to every partition. Returns one answer for each.
    fn ask_all<R: Request + Clone>(&self, at: At, request: R) -> Result<Vec<R::Answer>, Error> {
        let all = self.layout.all().map(|partition| asked(partition, request.clone())).collect();
        self.gather(at, usize::MAX, all)?.into_iter().map(Answered::to::<R>).collect()
    }

    fn partition(&self, gui: Gui) -> PartitionId {
        self.layout.of(gui)
    }

    /// Returns the number of a replica for cursors (APL-2).
    fn number(&self, pin: &Pin) -> Result<u16, Error> {
        let mut pins = self.pins.lock();
        let index = pins.iter().position(|known| known == pin).unwrap_or_else(|| {
            pins.push(pin.clone());
            pins.len() - 1
        });
        u16::try_from(index + 1)
            .map_err(|_| Error::Unavailable("a query uses more than 65,535 replicas".into()))
    }

    /// Returns the replica that a cursor names; `None` if any replica can continue (APL-2).
    fn pin(&self, replica: u16) -> Result<Option<Pin>, Error> {
        let Some(index) = usize::from(replica).checked_sub(1) else { return Ok(None) };
        let pin = self.pins.lock().get(index).cloned();
        pin.map(Some).ok_or_else(|| Error::Unavailable("the cursor belongs to another query".into()))
    }
}

/// The error for an answer that does not fit its request.
fn unfitting() -> Error {
    Error::Corrupt("a node gave an answer that does not fit the request".into())
}

/// The rows of a frontier by partition.
struct Split {
    /// Each partition with its rows, rising.
    parts: Vec<(PartitionId, Vec<u32>)>,
    /// For each row, the index of its part and its index in the part.
    places: Vec<(u32, u32)>,
}

impl FleetApl {
    /// Splits rows by partition.
    fn split(&self, partitions: impl ExactSizeIterator<Item = PartitionId>) -> Split {
        const NONE: u32 = u32::MAX;
        let rows = partitions.len();
        let mut split = Split { parts: Vec::new(), places: Vec::with_capacity(rows) };
        // A table pays only for many rows; a few are found by searching the parts.
        let table = if rows > 16 { usize::from(self.layout.count().get()) } else { 0 };
        let (mut numbers, share) = (vec![NONE; table], rows / table.max(1) + 4);
        for (row, partition) in partitions.enumerate() {
            let place = self.layout.number(partition).map_or(usize::MAX, usize::from);
            let known = match numbers.get(place) {
                Some(&NONE) => None,
                Some(&number) => Some(number as usize),
                None => split.parts.iter().position(|(of, _)| *of == partition),
            };
            let number = known.unwrap_or_else(|| {
                split.parts.push((partition, Vec::with_capacity(share.min(rows))));
                split.parts.len() - 1
            });
            if let Some(known) = numbers.get_mut(place) {
                *known = number as u32;
            }
            let part = &mut split.parts[number].1;
            split.places.push((number as u32, part.len() as u32));
            part.push(row as u32);
        }
        split
    }
}

/// A request to any replica of a partition.
fn asked(partition: PartitionId, request: impl Into<AnyRequest>) -> Asked {
    Asked { partition, request: request.into(), pin: None }
}

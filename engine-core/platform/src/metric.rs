//! Metrics: the names of all metrics, and the functions that record them.
//!
//! Roles: crates record here, through the `metrics` facade. A service installs a recorder, calls [`describe`] and
//! serves the metrics (`GET /metrics`, `--metrics-listen`). Without a recorder, recording costs one load of an atomic.
//!
//! In a process that serves several graphs, what belongs to one of them has its name in the label `graph`
//! ([`name_graphs`]); in others it has no such label. Names of graphs come from the operator, not from clients.
//!
//! Must never: put a string of a client into a label. Each value of a label is a metric of its own, so a client could
//! fill the memory.

use metrics::{
    Counter, Histogram, Label, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Input of other processes that was refused. Label `what`: see [`Refused`].
pub const REFUSED: &str = "tidegraph_refused_total";
/// Requests over HTTP. Labels `path` (the route), `status`.
pub const HTTP_REQUESTS: &str = "tidegraph_http_requests_total";
/// Time until the answer to a request over HTTP began. Label `path`.
pub const HTTP_SECONDS: &str = "tidegraph_http_request_duration_seconds";
/// Queries of all protocols. Label `outcome`: see [`QueryOutcome`].
pub const QUERIES: &str = "tidegraph_queries_total";
/// Time until the answer to a query began, or its error, of all protocols.
pub const QUERY_SECONDS: &str = "tidegraph_query_duration_seconds";
/// Queries that hold a slot.
pub const QUERIES_RUNNING: &str = "tidegraph_queries_running";
/// Queries that wait for a slot.
pub const QUERIES_WAITING: &str = "tidegraph_queries_waiting";
/// Answered requests of other processes of the fleet, failed ones included.
pub const CALLS: &str = "tidegraph_remote_calls_total";
/// Transactions that a sequencer was asked to commit. Label `outcome`: `committed`, `conflict`, `unavailable`,
/// `refused`.
pub const COMMITS: &str = "tidegraph_commits_total";
/// Time that a commit took.
pub const COMMIT_SECONDS: &str = "tidegraph_commit_duration_seconds";
/// Commits that wait for the turn of a bulk load.
pub const COMMITS_WAITING: &str = "tidegraph_commits_waiting_for_load";
/// Newest readable version. Label `partition` on a storage node.
pub const VERSION: &str = "tidegraph_version";
/// Memory of graph data, without older versions.
pub const MEMORY: &str = "tidegraph_memory_bytes";
/// Memory of graph data in proportion to its budget, if the process has one.
pub const MEMORY_RATIO: &str = "tidegraph_memory_used_ratio";
/// Bytes of properties in the local file because they do not fit into memory.
pub const SPILLED: &str = "tidegraph_spilled_bytes";
/// On a storage node: bytes of its largest replica, in memory and in the local file; 0 if it has none.
pub const LARGEST_REPLICA: &str = "tidegraph_largest_replica_bytes";
/// Gauge: the largest ratio of estimated rows and rows of an operator since the start.
pub const PLAN_WORST_RATIO: &str = "tidegraph_plan_worst_estimate_ratio";
/// Counter: plans that were made again with the rows that were seen, by outcome.
pub const PLANS_REMADE: &str = "tidegraph_plans_remade_total";
/// Bytes that queries wrote into temporary files.
pub const QUERY_SPILLED: &str = "tidegraph_query_spilled_bytes_total";
/// Memory of all running queries and unsent answers.
pub const QUERY_MEMORY: &str = "tidegraph_query_memory_bytes";
/// Limit of that memory.
pub const QUERY_MEMORY_LIMIT: &str = "tidegraph_query_memory_limit_bytes";
/// How often a query could not have the memory that it needed because of that limit.
pub const QUERY_MEMORY_REFUSALS: &str = "tidegraph_query_memory_refusals_total";
/// Bytes of checkpoints that restores read. Label `from`: `objects` (the object store), `copies` (on the local disk).
pub const RESTORED: &str = "tidegraph_restored_bytes_total";
/// Bytes of the copies of checkpoints on the local disk.
pub const COPIES: &str = "tidegraph_checkpoint_copies_bytes";
/// 1 while the process accepts commits, otherwise 0.
pub const WRITABLE: &str = "tidegraph_writable";
/// On the sequencer: version of the record that no replica of a partition can apply, so that writes are stopped; 0 if
/// there is none.
pub const HALTED_VERSION: &str = "tidegraph_halted_version";
/// On the sequencer's node, if it archives the log: for how long the oldest record has waited that is in no archive, in
/// seconds; 0 if there is none, and on other nodes.
pub const ARCHIVE_LAG: &str = "tidegraph_archive_lag_seconds";
/// On a storage node: 1 if the replica of a partition cannot apply its next record, otherwise 0. Label `partition`.
pub const REPLICA_STUCK: &str = "tidegraph_replica_stuck";

/// Open connections of the service's port. Label `protocol`: see [`Protocol`].
pub const CONNECTIONS: &str = "tidegraph_connections";
/// Connections that the service closed. Label `reason`: what their client did not do in time (`head`, `idle`, `paused`,
/// `unread`), or `room`, `resets`, `stopping`.
pub const CONNECTIONS_CLOSED: &str = "tidegraph_connections_closed_total";
/// Open transactions of several requests. Label `protocol`.
pub const TRANSACTIONS: &str = "tidegraph_transactions";
/// Ended transactions of several requests. Labels `protocol`, `outcome`: `committed`, `rolled_back`, `failed`.
pub const TRANSACTIONS_ENDED: &str = "tidegraph_transactions_ended_total";
/// Clients that did not prove who they are. Label `protocol`.
pub const UNAUTHENTICATED: &str = "tidegraph_authentication_failures_total";
/// Seconds until the certificate that the process shows other processes of the fleet expires; negative afterwards.
pub const CERTIFICATE_LEFT: &str = "tidegraph_certificate_left_seconds";
/// Reads of new certificates that could not be used, so that those before them stay.
pub const CERTIFICATES_UNUSABLE: &str = "tidegraph_certificates_unusable_total";

/// Whether metrics name their graph.
static NAMES_GRAPHS: AtomicBool = AtomicBool::new(false);

/// Has the metrics that belong to a graph name it from now on. A process that serves several graphs calls it when it starts.
pub fn name_graphs() {
    NAMES_GRAPHS.store(true, Ordering::Relaxed);
}

/// Returns labels, with that of a graph where metrics name theirs.
fn of_graph<const N: usize>(graph: &str, labels: [(&'static str, String); N]) -> Vec<Label> {
    let own = NAMES_GRAPHS.load(Ordering::Relaxed).then(|| Label::new("graph", graph.to_owned()));
    own.into_iter().chain(labels.map(|(name, value)| Label::new(name, value))).collect()
}

/// What a client of the service's port speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// Gremlin Server's protocol.
    WebSocket,
    /// Neo4j's protocol.
    Bolt,
}

impl Protocol {
    /// Returns the value of the label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
            Self::WebSocket => "websocket",
            Self::Bolt => "bolt",
        }
    }
}

/// An open connection. Dropping it ends the count.
#[derive(Debug)]
pub struct OpenConnection(Protocol);

impl OpenConnection {
    /// Counts a connection as open.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        gauge!(CONNECTIONS, "protocol" => protocol.label()).increment(1.0);
        Self(protocol)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        gauge!(CONNECTIONS, "protocol" => self.0.label()).decrement(1.0);
    }
}

/// Counts a connection that the service closed.
pub fn connection_closed(reason: &'static str) {
    counter!(CONNECTIONS_CLOSED, "reason" => reason).increment(1);
}

/// How a transaction of several requests ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It was committed.
    Committed,
    /// Its client rolled it back.
    RolledBack,
    /// A request of it or its commit failed, it took too long, or its client is gone.
    Failed,
}

/// An open transaction of several requests. Dropping it counts it as ended.
#[derive(Debug)]
pub struct OpenTransaction {
    protocol: Protocol,
    ended: Ended,
}

impl OpenTransaction {
    /// Counts a transaction as open.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        gauge!(TRANSACTIONS, "protocol" => protocol.label()).increment(1.0);
        Self { protocol, ended: Ended::Failed }
    }

    /// Ends the count. Without it the transaction counts as failed.
    pub fn end(mut self, ended: Ended) {
        self.ended = ended;
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        let outcome = match self.ended {
            Ended::Committed => "committed",
            Ended::RolledBack => "rolled_back",
            Ended::Failed => "failed",
        };
        let protocol = self.protocol.label();
        gauge!(TRANSACTIONS, "protocol" => protocol).decrement(1.0);
        counter!(TRANSACTIONS_ENDED, "protocol" => protocol, "outcome" => outcome).increment(1);
    }
}

/// Counts a client that did not prove who it is.
pub fn unauthenticated(protocol: Protocol) {
    counter!(UNAUTHENTICATED, "protocol" => protocol.label()).increment(1);
}

/// Kinds of refused input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// A connection to a port of the fleet that does not speak its protocol or has no valid certificate.
    Connection,
    /// A record of the log: its checksum is wrong or its format is newer.
    LogRecord,
    /// A checkpoint: it is damaged or of another partition.
    Checkpoint,
    /// A local copy of an object of a checkpoint: it is damaged.
    Copy,
    /// An item of the partition map.
    MapItem,
}

impl Refused {
    /// Returns the value of the label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::LogRecord => "log_record",
            Self::Checkpoint => "checkpoint",
            Self::Copy => "copy",
            Self::MapItem => "map_item",
        }
    }
}

/// Counts one refused input.
pub fn refused(what: Refused) {
    counter!(REFUSED, "what" => what.label()).increment(1);
}

/// Counts bytes of checkpoints that a restore read.
pub fn restored(from: &'static str, bytes: u64) {
    counter!(RESTORED, "from" => from).increment(bytes);
}

/// Sets the size of the copies of checkpoints on the local disk.
pub fn copies(graph: &str, bytes: u64) {
    gauge!(COPIES, of_graph(graph, [])).set(bytes as f64);
}

/// Counts a request over HTTP.
pub fn http_request(graph: &str, route: String, status: u16, took: Duration) {
    histogram!(HTTP_SECONDS, of_graph(graph, [("path", route.clone())])).record(took.as_secs_f64());
    counter!(HTTP_REQUESTS, of_graph(graph, [("path", route), ("status", status.to_string())])).increment(1);
}

/// How a query ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueryOutcome {
    /// Its answer began.
    Answered,
    /// It is wrong, conflicts with another one, took too long, or its client is gone.
    Failed,
    /// Too many queries wait, or all queries together hold as much memory as they may.
    Refused,
    /// The service could not answer: nodes or the sequencer are not reachable, writes are stopped, or it has a defect.
    Unavailable,
}

/// The metrics of queries. They are looked up once, because a query may take no more than microseconds.
pub struct Queries {
    answered: Counter,
    failed: Counter,
    refused: Counter,
    unavailable: Counter,
    seconds: Histogram,
}

impl Queries {
    /// Returns the metrics of the recorder that is installed.
    #[must_use]
    pub fn new() -> Self {
        Self {
            answered: counter!(QUERIES, "outcome" => "answered"),
            failed: counter!(QUERIES, "outcome" => "failed"),
            refused: counter!(QUERIES, "outcome" => "refused"),
            unavailable: counter!(QUERIES, "outcome" => "unavailable"),
            seconds: histogram!(QUERY_SECONDS),
        }
    }

    /// Counts a query that ended. `took`: the time until its answer began.
    pub fn ended(&self, outcome: QueryOutcome, took: Duration) {
        let counter = match outcome {
            QueryOutcome::Answered => &self.answered,
            QueryOutcome::Failed => &self.failed,
            QueryOutcome::Refused => &self.refused,
            QueryOutcome::Unavailable => &self.unavailable,
        };
        counter.increment(1);
        self.seconds.record(took.as_secs_f64());
    }
}

impl Default for Queries {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Queries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queries").finish_non_exhaustive()
    }
}

/// Sets the numbers of queries that hold a slot and that wait for one.
pub fn query_slots(running: usize, waiting: usize) {
    gauge!(QUERIES_RUNNING).set(running as f64);
    gauge!(QUERIES_WAITING).set(waiting as f64);
}

/// Counts a request of another process.
pub fn call() {
    counter!(CALLS).increment(1);
}

/// Counts a transaction that a sequencer was asked to commit.
pub fn commit(graph: &str, outcome: &'static str, took: Duration) {
    counter!(COMMITS, of_graph(graph, [("outcome", outcome.to_owned())])).increment(1);
    histogram!(COMMIT_SECONDS, of_graph(graph, [])).record(took.as_secs_f64());
}

/// Sets the number of commits that wait for the turn of a bulk load.
pub fn commits_waiting(count: usize) {
    gauge!(COMMITS_WAITING).set(count as f64);
}

/// Sets the gauges of a process that holds or reads a whole graph.
pub fn health(graph: &str, version: u64, memory: u64, spilled: u64, writable: bool) {
    gauge!(VERSION, of_graph(graph, [])).set(version as f64);
    gauge!(WRITABLE, of_graph(graph, [])).set(f64::from(u8::from(writable)));
    memory_use(graph, memory, spilled);
}

/// Sets the gauges of memory.
pub fn memory_use(graph: &str, memory: u64, spilled: u64) {
    gauge!(MEMORY, of_graph(graph, [])).set(memory as f64);
    gauge!(SPILLED, of_graph(graph, [])).set(spilled as f64);
}

/// Sets the bytes of a node's largest replica.
pub fn largest_replica(graph: &str, bytes: u64) {
    gauge!(LARGEST_REPLICA, of_graph(graph, [])).set(bytes as f64);
}

/// Sets which part of its budget the memory of graph data takes.
pub fn memory_ratio(graph: &str, memory: u64, budget: u64) {
    gauge!(MEMORY_RATIO, of_graph(graph, [])).set(memory as f64 / budget.max(1) as f64);
}

/// Sets the memory of all queries, its limit, and the number of refusals since the start.
pub fn query_memory(used: u64, limit: u64, refusals: u64) {
    gauge!(QUERY_MEMORY).set(used as f64);
    gauge!(QUERY_MEMORY_LIMIT).set(limit as f64);
    counter!(QUERY_MEMORY_REFUSALS).absolute(refusals);
}

/// Sets the largest ratio of estimated rows and rows of an operator since the start.
pub fn plan_worst_ratio(ratio: f64) {
    gauge!(PLAN_WORST_RATIO).set(ratio);
}

/// Counts a plan that was made again with what was seen (`made`), or a new one that was worse (`put_back`).
pub fn plan_remade(outcome: &'static str) {
    counter!(PLANS_REMADE, "outcome" => outcome).increment(1);
}

/// Counts bytes that a query wrote into a temporary file.
pub fn query_spilled(bytes: u64) {
    counter!(QUERY_SPILLED).increment(bytes);
}

/// Sets the version of a replica, and whether it cannot apply its next record.
pub fn replica(graph: &str, partition: u16, version: u64, is_stuck: bool) {
    let labels = || of_graph(graph, [("partition", partition.to_string())]);
    gauge!(VERSION, labels()).set(version as f64);
    gauge!(REPLICA_STUCK, labels()).set(f64::from(u8::from(is_stuck)));
}

/// Sets the version of the record that stops writes; 0 if none does.
pub fn halted(graph: &str, version: u64) {
    gauge!(HALTED_VERSION, of_graph(graph, [])).set(version as f64);
}

/// Sets for how long the oldest record has waited that is in no archive.
pub fn archive_lag(graph: &str, lag: Duration) {
    gauge!(ARCHIVE_LAG, of_graph(graph, [])).set(lag.as_secs_f64());
}

/// Sets the seconds until the certificate of the process expires.
pub fn certificate_left(seconds: i64) {
    gauge!(CERTIFICATE_LEFT).set(seconds as f64);
}

/// Counts a read of certificates that could not be used.
pub fn certificates_unusable() {
    counter!(CERTIFICATES_UNUSABLE).increment(1);
}

/// Describes all metrics to the recorder. Call it once, after the recorder was installed.
pub fn describe() {
    describe_counter!(REFUSED, "input of other processes that was refused");
    describe_gauge!(CONNECTIONS, "open connections of the port");
    describe_counter!(CONNECTIONS_CLOSED, "connections that the service closed");
    describe_gauge!(TRANSACTIONS, "open transactions of several requests");
    describe_counter!(TRANSACTIONS_ENDED, "ended transactions of several requests");
    describe_counter!(UNAUTHENTICATED, "clients that did not prove who they are");
    describe_counter!(HTTP_REQUESTS, "requests over HTTP");
    describe_counter!(QUERY_SPILLED, Unit::Bytes, "rows that queries wrote into temporary files");
    describe_histogram!(HTTP_SECONDS, Unit::Seconds, "time until the answer to a request over HTTP began");
    describe_counter!(QUERIES, "queries of all protocols");
    describe_histogram!(QUERY_SECONDS, Unit::Seconds, "time until the answer to a query began");
    describe_gauge!(QUERIES_RUNNING, "queries that hold a slot");
    describe_gauge!(QUERIES_WAITING, "queries that wait for a slot");
    describe_counter!(CALLS, "requests of other processes of the fleet");
    describe_counter!(COMMITS, "transactions that were to be committed");
    describe_histogram!(COMMIT_SECONDS, Unit::Seconds, "time that a commit took");
    describe_gauge!(COMMITS_WAITING, "commits that wait for the turn of a bulk load");
    describe_gauge!(VERSION, "newest version that can be read");
    describe_gauge!(MEMORY, Unit::Bytes, "memory that graph data takes, older versions apart");
    describe_gauge!(MEMORY_RATIO, "memory of graph data in proportion to its budget");
    describe_gauge!(
        SPILLED,
        Unit::Bytes,
        "properties in the local file, because they did not fit into memory"
    );
    describe_gauge!(LARGEST_REPLICA, Unit::Bytes, "largest replica, in memory and in the local file");
    describe_gauge!(QUERY_MEMORY, Unit::Bytes, "memory of all running queries and unsent answers");
    describe_gauge!(
        PLAN_WORST_RATIO,
        "largest ratio of estimated rows and rows of an operator since the start"
    );
    describe_counter!(PLANS_REMADE, "plans that were made again with the rows that were seen");
    describe_gauge!(QUERY_MEMORY_LIMIT, Unit::Bytes, "limit of the memory of all queries");
    describe_counter!(QUERY_MEMORY_REFUSALS, "queries that could not have memory because of that limit");
    describe_counter!(RESTORED, Unit::Bytes, "bytes of checkpoints that restores read");
    describe_gauge!(COPIES, Unit::Bytes, "copies of checkpoints on the local disk");
    describe_gauge!(WRITABLE, "1 while commits are taken");
    describe_gauge!(HALTED_VERSION, "version of the record that no replica can apply, which stops writes");
    describe_gauge!(
        ARCHIVE_LAG,
        Unit::Seconds,
        "how long the oldest record has waited that is in no archive of the log"
    );
    describe_gauge!(REPLICA_STUCK, "1 if a replica cannot apply its next record");
    describe_gauge!(
        CERTIFICATE_LEFT,
        Unit::Seconds,
        "time until the certificate that other processes see expires"
    );
    describe_counter!(
        CERTIFICATES_UNUSABLE,
        "reads of new certificates that could not be used, so that those before them stay"
    );
}

/// Bounds of the histograms in seconds: from a point read to a query that reaches its time limit.
pub const BUCKETS: [f64; 16] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
    120.0,
];

//! Access pattern language (APL): the only way in which the query side asks the storage side for data.
//!
//! Roles: [`Apl`] is implemented by the embedded store, by the client of a remote one and by the view that lays a
//! transaction's own writes over either; `exec` calls it and knows nothing else of storage. [`Catalog`] is the graph's
//! token dictionary. [`breadth_first`] is made of requests and needs nothing else.
//!
//! Every request names a version ([`At`]) and carries a whole frontier. Answers are columns that the caller owns and
//! reuses, aligned with the frontier by row number. A request that could answer without bound takes a cursor and
//! `max_rows` and returns where to go on, so that memory stays bounded and a cancelled query stops soon.
//!
//! What must never happen (APL-1): an answer that mixes two versions; an allocation, lock or await for each row.

mod answer;
mod bottom_up;
mod breadth_first;
pub mod plain;
mod request;
mod sample;
#[cfg(feature = "testing")]
pub mod testing;
mod top;
mod vertex_set;

pub use answer::{
    CellMeta, DegreeStatistics, EdgeCandidates, EdgeRows, EdgeRun, EdgeRuns, Expansion, ExpansionRow,
    KeyStatistics, LookedUp, PropertyCell, ScannedValues, SetKey, SetStatistics, Statistics, VertexRows,
    value_of,
};
pub use bottom_up::{BottomUp, Explored, Parents};
pub use breadth_first::{Reached, breadth_first};
pub use request::{
    At, Cursor, EdgePlace, EdgeRead, EdgeScan, Expand, LookUp, Projection, PropertyPredicate, ScanCursor,
    Test, VertexRead, VertexScan,
};
pub use sample::{Draw, Reservoir, Sample};
pub use top::{Best, TopEdges};
pub use vertex_set::VertexSet;

use std::ops::Range;
use tidegraph_types::{Direction, Edge, Epoch, ErrorCode, Gui, PartitionId, Str, Token, Version};

/// Why storage did not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The replica has not reached the version; another one may have.
    #[error("storage is at version {applied}, the request asks for {asked}")]
    Behind {
        /// Newest version that can be read.
        applied: Version,
        /// The version asked for.
        asked: Version,
    },
    /// The version is older than the window of versions that are kept.
    #[error("version {asked} is no longer kept, the oldest is {oldest}")]
    TooOld {
        /// Oldest version that can be read.
        oldest: Version,
        /// The version asked for.
        asked: Version,
    },
    /// Storage cannot answer now.
    #[error("storage is unavailable: {0}")]
    Unavailable(String),
    /// Stored bytes are damaged.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// The node that was asked does not hold the partition.
    #[error("partition {partition} is not on this node by the map of epoch {epoch}")]
    NotHere {
        /// The partition.
        partition: PartitionId,
        /// Epoch of the map that the node goes by.
        epoch: Epoch,
    },
    /// The node goes by a map of another epoch, in which something that matters here is different.
    #[error("the node goes by the map of epoch {held}, the request by that of epoch {asked}")]
    WrongEpoch {
        /// Epoch of the map that the node goes by.
        held: Epoch,
        /// Epoch of the map that the request was routed by.
        asked: Epoch,
    },
    /// The caller has cancelled meanwhile.
    #[error("the request was cancelled")]
    Cancelled,
    /// The caller's deadline has passed.
    #[error("the deadline of the request has passed")]
    Overdue,
    /// A request or its answer is too large for one message.
    #[error("a message of {bytes} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// How many bytes it has.
        bytes: u64,
        /// How many it may have.
        limit: u64,
    },
}

impl Error {
    /// The code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Behind { .. }
            | Self::TooOld { .. }
            | Self::Unavailable(_)
            | Self::NotHere { .. }
            | Self::WrongEpoch { .. } => ErrorCode::Unavailable,
            Self::Corrupt(_) => ErrorCode::Corrupt,
            Self::Cancelled => ErrorCode::Cancelled,
            Self::Overdue => ErrorCode::TimeLimitExceeded,
            Self::TooLarge { .. } => ErrorCode::QueryLimitExceeded,
        }
    }
}

/// What storage answers. All methods append to `out`, which the caller has cleared.
pub trait Apl: Send + Sync {
    /// GUIs of ids; `None` for an id that no vertex has at the version. One answer for each id.
    fn resolve_vertices(&self, at: At, ids: &[Str], out: &mut Vec<Option<Gui>>) -> Result<(), Error>;

    /// Whether each request is a way to another machine, so that fewer of them are worth answers that nobody may need.
    fn is_far(&self) -> bool {
        false
    }

    /// Vertices of ids, with what is mostly asked about them next: one way where there would be several.
    fn look_up(&self, at: At, ids: &[Str], wish: &LookUp, out: &mut LookedUp) -> Result<(), Error> {
        plain::look_up(self, at, ids, wish, out)
    }

    /// Edges of ids, user-chosen or generated; `None` for an id that no edge has at the version.
    fn resolve_edges(&self, at: At, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<(), Error>;

    /// Where edges of ids that users chose may be, as the partition of each id's hash knows it. Whether an edge is there at
    /// the version, and has that id, [`Self::find_edges`] answers at its source.
    fn edge_candidates(&self, at: At, ids: &[Str], out: &mut EdgeCandidates) -> Result<(), Error> {
        plain::edge_candidates(self, at, ids, out)
    }

    /// Edges of which source, SID and id are known, if they are there at the version. One answer for each place.
    fn find_edges(&self, at: At, places: &[EdgePlace], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        plain::find_edges(self, at, places, out)
    }

    /// Which GUI a new vertex of an id would get: the first free one whose salt is at least the given one, and its
    /// salt. Salt 0 is the plain hash; any other must be written to the exception list.
    fn place(&self, at: At, ids: &[(Str, u64)], out: &mut Vec<(Gui, u64)>) -> Result<(), Error>;

    /// Ids, labels and properties of vertices, as far as `read` asks for them. One row for each GUI, absent ones too.
    fn vertices(
        &self,
        at: At,
        read: &VertexRead,
        frontier: &[Gui],
        out: &mut VertexRows,
    ) -> Result<(), Error>;

    /// Ids and properties of edges, as far as `read` asks for them. One row for each edge, absent ones too.
    fn edges(&self, at: At, read: &EdgeRead, frontier: &[Edge], out: &mut EdgeRows) -> Result<(), Error>;

    /// Edges of a frontier with their other ends. Returns where to go on when `max_rows` was reached.
    fn expand(
        &self,
        at: At,
        request: &Expand,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error>;

    /// Number of edges that `expand` would answer for each vertex (`max_rows` ignored).
    fn degrees(&self, at: At, request: &Expand, frontier: &[Gui], out: &mut Vec<u64>) -> Result<(), Error>;

    /// Vertices that pass a scan, in no particular order, each once over all calls.
    fn scan_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        out: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error>;

    /// As `scan_vertices`, with the values of these keys (one column for each, which `out` has).
    fn scan_values(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        let mut found = Vec::new();
        let next = self.scan_vertices(at, scan, from, &mut found)?;
        let read = VertexRead { properties: Projection::Keys(keys.to_vec()), ..VertexRead::default() };
        let mut rows = VertexRows::default();
        self.vertices(at, &read, &found, &mut rows)?;
        out.append(&found, &rows, keys);
        Ok(next)
    }

    /// Adds how many vertices pass a scan (`max_rows` ignored), each counted once over all calls.
    fn count_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        count: &mut u64,
    ) -> Result<Option<ScanCursor>, Error> {
        plain::count_vertices(self, at, scan, from, count)
    }

    /// Offers the vertices that pass a scan (`max_rows` ignored) to a sample, each once over all calls.
    fn sample_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        sample: &mut Reservoir<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        plain::sample_vertices(self, at, scan, from, sample)
    }

    /// A uniform sample of the edges that `expand` would answer for each vertex (`max_rows` ignored).
    fn sample_edges(
        &self,
        at: At,
        request: &Expand,
        sample: Sample,
        frontier: &[Gui],
        out: &mut Expansion,
    ) -> Result<(), Error> {
        plain::sample_edges(self, at, request, sample, frontier, out)
    }

    /// As `expand`, but of the edges that one call looks at (about `max_rows`) only those that come first by a property
    /// are answered: best first, and with `TopEdges::each` by row. The best of all are among the answers of all calls.
    fn top_edges(
        &self,
        at: At,
        request: &Expand,
        top: &TopEdges,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        plain::top_edges(self, at, request, top, frontier, from, out)
    }

    /// A step of a search upwards: the vertices that were not reached and have a neighbour that was, each once over all
    /// calls with one such neighbour, in no particular order. Storage may stop before `max_rows`, even without a row, when
    /// it has looked at much. The set must stay as it is until the last call of a step. After an error `explored` is of no
    /// use any more.
    fn bottom_up(
        &self,
        at: At,
        step: &BottomUp<'_>,
        explored: &mut Explored,
        from: ScanCursor,
        out: &mut Parents,
    ) -> Result<Option<ScanCursor>, Error> {
        let _ = explored;
        plain::bottom_up(self, at, step, from, out)
    }

    /// Edges that pass a scan, each once over all calls; those of one source and label mostly together.
    fn scan_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut EdgeRuns,
    ) -> Result<Option<ScanCursor>, Error>;

    /// As `scan_edges`, edge by edge.
    fn scan_edge_rows(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut Vec<Edge>,
    ) -> Result<Option<ScanCursor>, Error> {
        let mut runs = EdgeRuns::default();
        let next = self.scan_edges(at, scan, from, &mut runs)?;
        runs.append_to(out);
        Ok(next)
    }

    /// Labels with property keys under which no two vertices of the label may have one value. The newest: whoever read
    /// before a change of them is refused at its commit. An error where the version has not been reached.
    fn unique_keys(&self, at: At) -> Result<Vec<(Token, Token)>, Error> {
        let _ = at;
        Ok(Vec::new())
    }

    /// Counts for the planner: cheap, and near the truth rather than exact.
    fn statistics(&self) -> Statistics;
}

/// The graph's dictionary of labels, edge labels and property keys, and the source of SIDs.
pub trait Catalog: Send + Sync {
    /// The token of a name; `None` when the graph never had it (so nothing can match).
    fn token(&self, name: &str) -> Option<Token>;

    /// The name of a token. Tokens in answers always have one.
    fn name(&self, token: Token) -> Str;

    /// Tokens of names, made where they are missing. Durable when it returns.
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error>;

    /// SIDs for new edges; never handed out twice.
    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error>;
}

impl Expand {
    /// Every edge in one direction.
    #[must_use]
    pub fn all(direction: Direction) -> Self {
        Self { direction, labels: None, max_rows: u32::MAX, loops_once: false, neighbours_only: false }
    }
}

/// Makes a list of label tokens out of names. Names that the graph does not know match nothing.
pub fn tokens_of(catalog: &dyn Catalog, names: &[Str]) -> Vec<Token> {
    names.iter().filter_map(|name| catalog.token(name)).collect()
}

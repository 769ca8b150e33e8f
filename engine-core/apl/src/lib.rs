//! Access pattern language (APL): the only way in which the query side asks the storage side for data.
//!
//! Roles: [`Apl`] is implemented by the embedded store and by the client of a fleet; `exec` calls it and knows nothing
//! else of storage. [`Catalog`] is the graph's token dictionary. [`fallback`] composes answers to the richer requests
//! from the basic ones.
//!
//! Every request names a version ([`At`]) and carries a whole frontier. Answers are columns that the caller owns and
//! reuses, aligned with the frontier by row number. A request whose answer has no bound takes a cursor and `max_rows`,
//! and returns the cursor to continue from. So memory stays bounded, and a cancelled query stops soon.
//!
//! No method of [`Apl`] has a default. A new request therefore fails to compile until
//! every implementation answers it: an in-process store may call [`fallback`] explicitly;
//! the client of a fleet sends a message of `tidegraph_wire::apl`.
//!
//! What must never happen (APL-1): an answer that mixes two versions; an allocation, lock or await for each row.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "testing")] {
//! use tidegraph_apl::testing::MemoryGraph;
//! use tidegraph_apl::{Apl, At, Cursor, Expand, Expansion};
//! use tidegraph_types::Direction;
//!
//! let mut graph = MemoryGraph::new();
//! let ada = graph.vertex("ada", &["Person"], &[]);
//! let bob = graph.vertex("bob", &["Person"], &[]);
//! graph.edge("ada", "KNOWS", "bob");
//!
//! // One request for the whole frontier; each row of the answer names its row of the frontier.
//! let mut out = Expansion::default();
//! let request = Expand::all(Direction::Out);
//! let next = graph.expand(At::default(), &request, &[bob, ada], Cursor::default(), &mut out)?;
//! assert_eq!((out.row, out.neighbour), (vec![1], vec![bob]));
//! assert_eq!(next, None, "the answer is complete");
//! # }
//! # Ok::<(), tidegraph_apl::Error>(())
//! ```

mod answer;
mod ends;
mod error;
pub mod fallback;
mod groups;
mod request;
mod sample;
mod scanned;
#[cfg(feature = "searches")]
pub mod searches;
#[cfg(feature = "testing")]
pub mod testing;
mod top;

pub use answer::{
    CellMeta, DegreeStatistics, EdgeCandidates, EdgeRows, EdgeRun, EdgeRuns, Expansion, ExpansionRow,
    KeyStatistics, LookedUp, PropertyCell, SetKey, SetStatistics, Statistics, VertexRows, value_of,
};
pub use ends::EndCounts;
pub use error::Error;
pub use groups::{GroupItem, Grouping, Groups, Weight};
pub use request::{
    At, Cursor, EdgePlace, EdgeRead, EdgeScan, Expand, LookUp, OneOf, Projection, PropertyPredicate,
    ScanCursor, Test, Traffic, VertexRead, VertexScan,
};
pub use sample::{Draw, Reservoir, Sample};
pub use scanned::{ScannedColumn, ScannedValues};
pub use top::{Best, TopEdges, TopVertices};

use std::ops::Range;
use tidegraph_types::{Direction, Edge, Gui, Str, Token};

/// The requests that the query side makes of storage.
///
/// Methods append to `out`, which the caller has cleared. After an error the content of `out` is unspecified.
///
/// # Errors
///
/// Every request fails with [`Error::Behind`] or [`Error::TooOld`] if storage cannot read the version, with
/// [`Error::Unavailable`] if it cannot answer now, and with [`Error::Corrupt`] if stored bytes are damaged. A request
/// to other processes also fails with [`Error::NotHere`] or [`Error::WrongEpoch`] if the partition map changed, with
/// [`Error::Cancelled`], [`Error::Overdue`], and with [`Error::TooLarge`] if a message would be too large.
pub trait Apl: Send + Sync {
    /// Returns whether each request goes to another machine. If so, callers combine requests, even at the cost of
    /// answers that they may not need.
    fn is_far(&self) -> bool;

    /// Returns what the requests of this caller have moved between processes so far. Nothing if storage is in this process.
    fn traffic(&self) -> Traffic;

    /// Resolves vertex ids: appends one GUI for each id, or `None` if no vertex has the id at the version.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn resolve_vertices(&self, at: At, ids: &[Str], out: &mut Vec<Option<Gui>>) -> Result<(), Error>;

    /// Resolves vertex ids, and answers what callers mostly ask next about them: one round trip instead of several.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn look_up(&self, at: At, ids: &[Str], wish: &LookUp, out: &mut LookedUp) -> Result<(), Error>;

    /// Resolves edge ids, chosen by users or generated: appends one edge for each id, or `None` if no edge has the id
    /// at the version.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn resolve_edges(&self, at: At, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<(), Error>;

    /// Finds where edges with ids that users chose may be, as the partition of each id's hash knows it.
    /// [`Self::find_edges`] tells whether such an edge exists at the version and has that id.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn edge_candidates(&self, at: At, ids: &[Str], out: &mut EdgeCandidates) -> Result<(), Error>;

    /// Finds edges whose source, SID and id are known: appends one answer for each place, `None` if the edge does not
    /// exist at the version.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn find_edges(&self, at: At, places: &[EdgePlace], out: &mut Vec<Option<Edge>>) -> Result<(), Error>;

    /// Finds the GUI that a new vertex with an id would get: the first free GUI
    /// whose salt is at least the given one. Appends GUI and salt for each id. Salt
    /// 0 is the plain hash; every other salt needs an entry in the exception list.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn place(&self, at: At, ids: &[(Str, u64)], out: &mut Vec<(Gui, u64)>) -> Result<(), Error>;

    /// Reads ids, labels and properties of vertices, as `read` selects them. Appends one row for each GUI, also for
    /// absent vertices.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn vertices(
        &self,
        at: At,
        read: &VertexRead,
        frontier: &[Gui],
        out: &mut VertexRows,
    ) -> Result<(), Error>;

    /// Reads ids and properties of edges, as `read` selects them. Appends one row for each edge, also for absent edges.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn edges(&self, at: At, read: &EdgeRead, frontier: &[Edge], out: &mut EdgeRows) -> Result<(), Error>;

    /// Appends the edges of a frontier with their other ends. Returns the cursor to continue from if the answer reached
    /// `max_rows`.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn expand(
        &self,
        at: At,
        request: &Expand,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error>;

    /// Appends, for each vertex, the number of edges that [`Self::expand`] would answer. Ignores `max_rows`.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn degrees(&self, at: At, request: &Expand, frontier: &[Gui], out: &mut Vec<u64>) -> Result<(), Error>;

    /// Returns whether storage knows that all vertices with an edge of these labels in this direction have all of `labels`:
    /// the sources of the edges with `Out`, the targets with `In`. Then a caller that came to a vertex by such an edge need
    /// not read its labels. `false` says nothing; storage that does not know at once says `false`.
    fn edges_imply_labels(
        &self,
        at: At,
        edge_labels: &[Token],
        direction: Direction,
        labels: &[Token],
    ) -> bool;

    /// Appends a uniform sample of the edges that [`Self::expand`] would answer for each vertex. Ignores `max_rows`.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn sample_edges(
        &self,
        at: At,
        request: &Expand,
        sample: Sample,
        frontier: &[Gui],
        out: &mut Expansion,
    ) -> Result<(), Error>;

    /// Expands like [`Self::expand`], but of the edges that one call looks at (about `max_rows`) answers only those
    /// that come first by a property: best first, or with [`TopEdges::each`] by row. The best edges of all are among
    /// the answers of all calls.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn top_edges(
        &self,
        at: At,
        request: &Expand,
        top: &TopEdges,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error>;

    /// Appends the vertices that pass a scan, in no particular order, each once over all calls. Returns the cursor to
    /// continue from.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn scan_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        out: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error>;

    /// Scans like [`Self::scan_vertices`], and answers the values of some keys: one column for each key, which `out`
    /// has already (see [`ScannedValues::begin`]).
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn scan_values(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error>;

    /// Scans like [`Self::scan_values`], but of the vertices that one call looks at answers only those that come first.
    /// The first vertices of all are among the answers of all calls. `keys` contains the keys of the order.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn top_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        top: &TopVertices,
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error>;

    /// Adds the number of vertices that pass a scan to `count`, each counted once over all calls. Ignores `max_rows`.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn count_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        count: &mut u64,
    ) -> Result<Option<ScanCursor>, Error>;

    /// Offers the vertices that pass a scan to a sample, each once over all calls. Ignores `max_rows`.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn sample_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        sample: &mut Reservoir<Gui>,
    ) -> Result<Option<ScanCursor>, Error>;

    /// Adds the vertices that pass a scan to groups, each once over all calls. Ignores `max_rows`, but one call looks at
    /// a bounded number of vertices.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn group_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        grouping: &Grouping,
        from: ScanCursor,
        out: &mut Groups,
    ) -> Result<Option<ScanCursor>, Error>;

    /// Adds the other ends of the edges that [`Self::expand`] would answer for the vertices that pass a scan, with the
    /// numbers of edges; each vertex of the scan once over all calls. Ignores `max_rows` of both.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors); [`Error::TooLarge`] if one call would answer more than
    /// [`EndCounts::MOST`] ends. Then scan and expand the vertices from that cursor on.
    fn count_ends(
        &self,
        at: At,
        scan: &VertexScan,
        expand: &Expand,
        from: ScanCursor,
        out: &mut EndCounts,
    ) -> Result<Option<ScanCursor>, Error>;

    /// Appends the edges that pass a scan, each once over all calls; those of one source and label mostly together.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn scan_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut EdgeRuns,
    ) -> Result<Option<ScanCursor>, Error>;

    /// Scans like [`Self::scan_edges`], and appends edge by edge.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn scan_edge_rows(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut Vec<Edge>,
    ) -> Result<Option<ScanCursor>, Error>;

    /// Returns pairs of a label and a property key under which no two vertices of the label may share a value at the
    /// version. A pair whose constraint was dropped since may be missing: the commit of a transaction that read before
    /// a change of the constraints is refused.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn unique_keys(&self, at: At) -> Result<Vec<(Token, Token)>, Error>;

    /// Returns counts for the planner: cheap, and near the truth rather than exact.
    fn statistics(&self) -> Statistics;
}

/// The graph's dictionary of labels, edge labels and property keys, and the source of SIDs.
pub trait Catalog: Send + Sync {
    /// Returns the token of a name, or `None` if the graph never had the name (so nothing can match it).
    fn token(&self, name: &str) -> Option<Token>;

    /// Returns the name of a token. Every token in an answer has a name.
    fn name(&self, token: Token) -> Str;

    /// Returns the tokens of names, and makes those that are missing. They are durable when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the tokens cannot be written now; [`Error::Overdue`] if the deadline passed.
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error>;

    /// Returns `count` SIDs for new edges; none of them is ever handed out again.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if SIDs cannot be reserved now; [`Error::Overdue`] if the deadline passed.
    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error>;
}

/// Returns the tokens of those names that the graph knows; the others match nothing.
pub fn tokens_of(catalog: &dyn Catalog, names: &[Str]) -> Vec<Token> {
    names.iter().filter_map(|name| catalog.token(name)).collect()
}

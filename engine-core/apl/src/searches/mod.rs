//! Searches over whole graphs. No query uses them yet: the feature `searches` compiles them, for benchmarks and tests.
//!
//! Roles: [`Searches`] is the request that such a search needs beyond [`Apl`]; [`breadth_first`] is made of requests
//! alone; [`VertexSet`] holds the vertices that it reached.

mod bottom_up;
mod breadth_first;
mod vertex_set;

pub use bottom_up::{BottomUp, Explored, Parents, bottom_up_by_scan};
pub use breadth_first::{Reached, breadth_first};
pub use vertex_set::VertexSet;

use crate::{Apl, At, Error, ScanCursor};

/// What a search over the whole graph asks of storage, beyond [`Apl`].
pub trait Searches: Apl {
    /// Takes a bottom-up step: appends the unreached vertices that have a reached neighbour, each once over all calls
    /// with one such neighbour, in no particular order. Storage may stop before `max_rows`, even without a row, once it
    /// has looked at many vertices. The set must not change until the last call of a step. After an error, `explored`
    /// is no longer valid.
    ///
    /// # Errors
    ///
    /// The errors of [every request](Apl#errors).
    fn bottom_up(
        &self,
        at: At,
        step: &BottomUp<'_>,
        explored: &mut Explored,
        from: ScanCursor,
        out: &mut Parents,
    ) -> Result<Option<ScanCursor>, Error>;
}

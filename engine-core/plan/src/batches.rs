//! `CALL { … } IN TRANSACTIONS`: a request that commits its writes in batches.

use crate::{Expr, Plan};

/// Name of the parameter that carries rows into the second and third part of a [`BatchedPlan`].
pub const ROWS_PARAMETER: &str = " rows";

/// Rows of a batch if the text gives no number.
pub const DEFAULT_BATCH_ROWS: u64 = 1_000;

/// For how long `ON ERROR RETRY` tries a batch again if the text does not say it.
pub const DEFAULT_RETRY_S: i64 = 30;

/// What happens after an error in a batch, whose writes are undone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnError {
    /// The request fails; the batches before stay committed.
    Fail,
    /// The other batches run.
    Continue,
    /// The request ends successfully.
    Break,
}

/// The plans of a request with a subquery `IN TRANSACTIONS`, which run one after the other:
///
/// 1. `input` yields the rows before the subquery;
/// 2. `batch` runs the subquery for some of these rows, and each run is a transaction of its own;
/// 3. `rest` runs the clauses after the subquery over what the batches yielded.
///
/// The second and third read their rows from the parameter [`ROWS_PARAMETER`], a list of lists. A row of the second has a
/// value for each column of `input`, a row of the third one for each column of `batch`, and then the status of its batch
/// if `reports` is set.
#[derive(Clone, PartialEq, Debug)]
pub struct BatchedPlan {
    /// The clauses before the subquery, which only read.
    pub input: Plan,
    /// The subquery. Its columns are those of `input`, and then the subquery's.
    pub batch: Plan,
    /// The clauses after the subquery; `None` if there are none.
    pub rest: Option<Plan>,
    /// Whether the rows of `rest` have the status of their batch.
    pub reports: bool,
    /// The number of rows of a batch, an expression without slots; `None`: [`DEFAULT_BATCH_ROWS`].
    pub size: Option<Expr>,
    /// For how many seconds a batch is tried again after an error that may pass, an expression without slots; `None`: it
    /// is not.
    pub retry_s: Option<Expr>,
    /// What happens after an error.
    pub on_error: OnError,
}

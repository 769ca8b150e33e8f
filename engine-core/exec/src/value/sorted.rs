//! Sorting that a deadline can end.
//!
//! The sort of the standard library cannot be interrupted, so it sorts runs that take some milliseconds. The runs are
//! then merged, with a check of the deadline from time to time.

use crate::{Context, Result};
use std::cmp::Ordering;

/// Maximum number of rows that are sorted between two checks.
const RUN_ROWS: usize = 32 << 10;
/// Maximum number of bytes of the values that are sorted between two checks.
const RUN_BYTES: usize = 8 << 20;

/// Returns the numbers 0 to `rows` in the order of `compare`; stable. `value_bytes` is the size of the largest value that
/// is compared: comparing two values takes time for each of their bytes.
///
/// # Errors
///
/// [`crate::Error::Stopped`] if the request has to end.
pub(crate) fn sorted_rows(
    ctx: &Context<'_>,
    rows: usize,
    value_bytes: usize,
    compare: impl Fn(u32, u32) -> Ordering,
) -> Result<Vec<u32>> {
    let mut sorted: Vec<u32> = (0..rows as u32).collect();
    let mut run_rows = (RUN_BYTES / value_bytes.max(1)).clamp(1, RUN_ROWS);
    if run_rows > 1 {
        for run in sorted.chunks_mut(run_rows) {
            ctx.check()?;
            run.sort_by(|a, b| compare(*a, *b));
        }
    }
    let steps = 1 + value_bytes / 16;
    let mut merged = Vec::new();
    while run_rows < rows {
        merged.reserve_exact(rows);
        for pair in sorted.chunks(2 * run_rows) {
            let (mut left, mut right) = pair.split_at(run_rows.min(pair.len()));
            while let ([first_left, rest_left @ ..], [first_right, rest_right @ ..]) = (left, right) {
                ctx.spend(steps)?;
                // Of equal rows the left one comes first.
                if compare(*first_left, *first_right).is_gt() {
                    merged.push(*first_right);
                    right = rest_right;
                } else {
                    merged.push(*first_left);
                    left = rest_left;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(&mut sorted, &mut merged);
        merged.clear();
        run_rows *= 2;
    }
    Ok(sorted)
}

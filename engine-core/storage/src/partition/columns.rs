//! Copying runs of entries into the columns of an answer.
//!
//! Lists are short, and how short nobody can foretell, so that the branches at the ends of loops cost more than the
//! copying. A run is copied in pieces of a few sizes, the last of which overlaps the one before it, and all columns in
//! one go: the processor then guesses one length wrong for each list, and not one for each column.

use crate::adjacency::{Run, Sids};
use tidegraph_apl::EdgeRuns;
use tidegraph_types::{Gui, Sid};

/// Entries of the largest piece.
const PIECE: usize = 8;

/// Where entries go: a place for each column, with room for as many entries as will be written.
pub(super) trait Columns {
    /// Writes some entries of every column, the first of them at an index.
    ///
    /// # Safety
    ///
    /// There is room for them.
    unsafe fn write<const N: usize>(&self, index: usize, neighbours: [u64; N], sids: [u64; N]);
}

/// Writes all entries of a run, some of them twice, and so all up to their number.
///
/// # Safety
///
/// The columns have room for as many entries as the run has.
#[inline(always)]
pub(super) unsafe fn copy(run: Run<'_>, to: &impl Columns) {
    // SAFETY: the caller's promise.
    unsafe {
        match run.sids {
            Sids::Narrow { least, above } => {
                pieces(run.neighbours, above, |above: u32| least + u64::from(above), to);
            }
            Sids::Wide(sids) => pieces(run.neighbours, sids, |sid: u64| sid, to),
        }
    }
}

/// # Safety
///
/// As [`copy`].
#[inline(always)]
unsafe fn pieces<S: Copy>(neighbours: &[u64], sids: &[S], sid: impl Fn(S) -> u64 + Copy, to: &impl Columns) {
    let count = neighbours.len();
    assert_eq!(count, sids.len(), "as many SIDs as neighbours");
    // SAFETY: each call asks for entries below `count`, which is the length of both, and the caller promises room for
    // as many.
    unsafe {
        if count >= PIECE {
            let mut from = 0;
            while from + PIECE < count {
                piece::<PIECE, S>(from, neighbours, sids, sid, to);
                from += PIECE;
            }
            piece::<PIECE, S>(count - PIECE, neighbours, sids, sid, to);
        } else if count >= 4 {
            piece::<4, S>(0, neighbours, sids, sid, to);
            piece::<4, S>(count - 4, neighbours, sids, sid, to);
        } else if count >= 2 {
            piece::<2, S>(0, neighbours, sids, sid, to);
            piece::<2, S>(count - 2, neighbours, sids, sid, to);
        } else if count == 1 {
            piece::<1, S>(0, neighbours, sids, sid, to);
        }
    }
}

/// # Safety
///
/// Both slices have `N` entries from `from` on, and the columns have room for them.
#[inline(always)]
unsafe fn piece<const N: usize, S: Copy>(
    from: usize,
    neighbours: &[u64],
    sids: &[S],
    sid: impl Fn(S) -> u64,
    to: &impl Columns,
) {
    // SAFETY: the caller's promise. All are loaded before any is written: nobody has to prove that columns are apart.
    unsafe {
        let neighbours = neighbours.as_ptr().add(from).cast::<[u64; N]>().read_unaligned();
        let sids = sids.as_ptr().add(from).cast::<[S; N]>().read_unaligned();
        to.write(from, neighbours, sids.map(sid));
    }
}

struct Ends {
    target: *mut Gui,
    sid: *mut Sid,
}

impl Columns for Ends {
    #[inline(always)]
    unsafe fn write<const N: usize>(&self, index: usize, neighbours: [u64; N], sids: [u64; N]) {
        // SAFETY: the caller's promise.
        unsafe {
            self.target.add(index).cast::<[Gui; N]>().write_unaligned(neighbours.map(Gui));
            self.sid.add(index).cast::<[Sid; N]>().write_unaligned(sids.map(Sid));
        }
    }
}

/// Appends the ends and SIDs of a run; the caller ends the run.
#[inline(always)]
pub(super) fn append_ends(out: &mut EdgeRuns, run: Run<'_>) {
    let (count, before) = (run.neighbours.len(), out.target.len());
    out.target.reserve(count);
    out.sid.reserve(count);
    // SAFETY: room was reserved behind what the columns hold, and all of it is written before their lengths say so.
    unsafe {
        let ends = Ends {
            target: out.target.as_mut_ptr().add(before),
            sid: out.sid.as_mut_ptr().add(out.sid.len()),
        };
        copy(run, &ends);
        out.target.set_len(before + count);
        out.sid.set_len(out.sid.len() + count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::{Edge, Token};

    #[test]
    fn runs_of_all_lengths_are_copied_behind_what_is_there() {
        let neighbours: Vec<u64> = (100..150).collect();
        let above: Vec<u32> = (0..50).map(|n| n * 3).collect();
        let wide: Vec<u64> = above.iter().map(|above| 1000 + u64::from(*above)).collect();
        for count in 0..=above.len() {
            let (mut out, mut expected) = (EdgeRuns::default(), Vec::new());
            let kinds = [Sids::Narrow { least: 1000, above: &above[..count] }, Sids::Wide(&wide[..count])];
            for (source, sids) in [Gui(1), Gui(2)].into_iter().zip(kinds) {
                let label = Token(7);
                append_ends(&mut out, Run { label, neighbours: &neighbours[..count], sids });
                out.end_run(source, label);
                let ends = neighbours.iter().zip(&wide).take(count);
                expected.extend(ends.map(|(target, sid)| Edge {
                    sid: Sid(*sid),
                    source,
                    target: Gui(*target),
                    label,
                }));
            }
            let mut edges = Vec::new();
            out.append_to(&mut edges);
            assert_eq!(edges, expected, "{count} entries");
            assert_eq!(out.runs.len(), if count == 0 { 0 } else { 2 });
        }
    }
}

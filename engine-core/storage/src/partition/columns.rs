//! Copies runs of entries into the columns of an answer.
//!
//! Lists are short and their lengths unpredictable, so the branches at the ends of loops cost more than the copying.
//! A run is copied in pieces of a few sizes, the last of which overlaps the one before it. All columns are copied
//! together, so the processor mispredicts one length for each list instead of one for each column.

use crate::adjacency::{FewEntries, Link, Run, Sids};
use tidegraph_apl::{EdgeRuns, Expansion};
use tidegraph_types::{Gui, Sid, Token};

/// Number of entries in a [`FewEntries`], used or not.
const FEW: usize = crate::adjacency::FEW;
/// Number of entries in the largest piece.
const PIECE: usize = 8;

/// Destination of entries: an address for each column, with room for all entries.
pub(super) trait Columns {
    /// Writes `N` entries of every column, beginning at an index.
    ///
    /// # Safety
    ///
    /// The columns have room for them.
    unsafe fn write<const N: usize>(&self, index: usize, neighbours: [u64; N], sids: [u64; N]);
}

/// Writes all entries of a run, some of them twice.
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
    // SAFETY: the caller's promise. Everything is loaded before anything is written, so columns need not be proven
    // disjoint.
    unsafe {
        let neighbours = neighbours.as_ptr().add(from).cast::<[u64; N]>().read_unaligned();
        let sids = sids.as_ptr().add(from).cast::<[S; N]>().read_unaligned();
        to.write(from, neighbours, sids.map(sid));
    }
}

/// Writes all places of a [`FewEntries`], so that their number is not needed.
///
/// # Safety
///
/// The columns have room for [`FEW`] entries.
#[inline(always)]
unsafe fn copy_few(few: &FewEntries, to: &impl Columns) {
    // SAFETY: the caller's promise.
    unsafe { to.write(0, few.neighbours, few.sids) };
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

/// Appends the targets and SIDs of a run. The caller ends the run.
#[inline(always)]
pub(super) fn append_ends(out: &mut EdgeRuns, run: Run<'_>) {
    let (count, before) = (run.neighbours.len(), out.target.len());
    out.target.reserve(count);
    out.sid.reserve(count);
    // SAFETY: the columns have reserved room for the run, and all of it is written before their lengths say so.
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

/// Like [`append_ends`], for few entries.
#[inline(always)]
pub(super) fn append_few_ends(out: &mut EdgeRuns, few: &FewEntries) {
    let (target, sid) = (room(&mut out.target, FEW), room(&mut out.sid, FEW));
    // SAFETY: the columns have reserved room for as many entries as are written, and grow by no more than that.
    unsafe {
        copy_few(few, &Ends { target, sid });
        grow(&mut out.target, few.count);
        grow(&mut out.sid, few.count);
    }
}

/// Columns of an expansion; with `ALL` also those of the edges.
struct Rows<const ALL: bool> {
    row: *mut u32,
    neighbour: *mut Gui,
    sid: *mut Sid,
    label: *mut Token,
    outgoing: *mut bool,
    /// Row, label and direction, which all rows of the run share.
    same: (u32, Token, bool),
}

impl<const ALL: bool> Rows<ALL> {
    /// Returns the ends of the columns, with room for `count` more rows.
    #[inline(always)]
    fn behind(out: &mut Expansion, count: usize, same: (u32, Token, bool)) -> Self {
        Self {
            row: room(&mut out.row, count),
            neighbour: room(&mut out.neighbour, count),
            sid: if ALL { room(&mut out.sid, count) } else { std::ptr::null_mut() },
            label: if ALL { room(&mut out.label, count) } else { std::ptr::null_mut() },
            outgoing: if ALL { room(&mut out.outgoing, count) } else { std::ptr::null_mut() },
            same,
        }
    }
}

impl<const ALL: bool> Columns for Rows<ALL> {
    #[inline(always)]
    unsafe fn write<const N: usize>(&self, index: usize, neighbours: [u64; N], sids: [u64; N]) {
        let (row, label, outgoing) = self.same;
        // SAFETY: the caller's promise; without `ALL` the other columns are left alone.
        unsafe {
            self.row.add(index).cast::<[u32; N]>().write_unaligned([row; N]);
            self.neighbour.add(index).cast::<[Gui; N]>().write_unaligned(neighbours.map(Gui));
            if ALL {
                self.sid.add(index).cast::<[Sid; N]>().write_unaligned(sids.map(Sid));
                self.label.add(index).cast::<[Token; N]>().write_unaligned([label; N]);
                self.outgoing.add(index).cast::<[bool; N]>().write_unaligned([outgoing; N]);
            }
        }
    }
}

/// Reserves room for `count` more items and returns where they go.
#[inline(always)]
fn room<T>(column: &mut Vec<T>, count: usize) -> *mut T {
    column.reserve(count);
    column.spare_capacity_mut().as_mut_ptr().cast()
}

/// Grows a column by `count` items.
///
/// # Safety
///
/// They were written where `room` said.
#[inline(always)]
unsafe fn grow<T>(column: &mut Vec<T>, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { column.set_len(column.len() + count) };
}

/// Grows the columns of an expansion by `count` rows.
///
/// # Safety
///
/// They were written where [`Rows::behind`] said.
#[inline(always)]
unsafe fn grow_rows<const ALL: bool>(out: &mut Expansion, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        grow(&mut out.row, count);
        grow(&mut out.neighbour, count);
        if ALL {
            grow(&mut out.sid, count);
            grow(&mut out.label, count);
            grow(&mut out.outgoing, count);
        }
    }
}

/// Appends the entries of a run to an expansion. Without `ALL` the SIDs are not read.
#[inline(always)]
pub(super) fn append_rows<const ALL: bool>(out: &mut Expansion, run: Run<'_>, row: u32, outgoing: bool) {
    let count = run.neighbours.len();
    let rows = Rows::<ALL>::behind(out, count, (row, run.label, outgoing));
    // SAFETY: each written column has room for the run, and all of it is written before its length says so.
    unsafe {
        if ALL {
            copy(run, &rows);
        } else {
            // SAFETY: a slice of zero-sized items.
            let nothing = std::slice::from_raw_parts(std::ptr::NonNull::<()>::dangling().as_ptr(), count);
            pieces(run.neighbours, nothing, |()| 0, &rows);
        }
        grow_rows::<ALL>(out, count);
    }
}

/// Like [`append_rows`], for few entries.
#[inline(always)]
pub(super) fn append_few<const ALL: bool>(out: &mut Expansion, few: &FewEntries, row: u32, outgoing: bool) {
    let rows = Rows::<ALL>::behind(out, FEW, (row, few.label, outgoing));
    // SAFETY: the columns have reserved room for as many entries as are written, and grow by no more than that.
    unsafe {
        copy_few(few, &rows);
        grow_rows::<ALL>(out, few.count);
    }
}

/// Like [`append_rows`], for one entry.
#[inline(always)]
pub(super) fn append_one<const ALL: bool>(out: &mut Expansion, link: Link, row: u32, outgoing: bool) {
    out.row.push(row);
    out.neighbour.push(link.neighbour);
    if ALL {
        out.sid.push(link.sid);
        out.label.push(link.label);
        out.outgoing.push(outgoing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_apl::ExpansionRow;
    use tidegraph_types::{Edge, Token};

    #[test]
    fn runs_of_all_lengths_become_rows() {
        let neighbours: Vec<u64> = (100..150).collect();
        let above: Vec<u32> = (0..50).map(|n| n * 3).collect();
        let (mut all, mut some, mut expected) = (Expansion::default(), Expansion::default(), Vec::new());
        for count in 0..=above.len() {
            let sids = Sids::Narrow { least: 1000, above: &above[..count] };
            let run = Run { label: Token(count as u32), neighbours: &neighbours[..count], sids };
            let (row, outgoing) = (count as u32 * 2, count % 2 == 0);
            append_rows::<true>(&mut all, run, row, outgoing);
            append_rows::<false>(&mut some, run, row, outgoing);
            expected.extend(neighbours.iter().zip(&above).take(count).map(|(neighbour, above)| {
                let (neighbour, sid) = (Gui(*neighbour), Sid(1000 + u64::from(*above)));
                ExpansionRow { row, neighbour, sid, label: Token(count as u32), outgoing }
            }));
        }
        assert_eq!((0..all.len()).map(|index| all.at(index)).collect::<Vec<_>>(), expected);
        assert_eq!((&some.row, &some.neighbour), (&all.row, &all.neighbour));
        assert!(some.sid.is_empty() && some.label.is_empty() && some.outgoing.is_empty());
    }

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

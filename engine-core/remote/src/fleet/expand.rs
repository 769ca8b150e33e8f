//! Expansions: a frontier is expanded piece by piece. All partitions answer their part of a piece at the same time, and
//! the answers are merged in the order of the frontier.
//!
//! A piece has about as many vertices as yield the requested rows, by the recent mean degree; each partition may answer
//! twice its share. If a partition stops early, rows behind that point of the frontier are discarded, and the next
//! piece starts there. So memory stays within a few times `max_rows`, and no edge is lost or answered twice.

use super::gather::{Answered, Asked, Pin};
use super::{FleetApl, Split, unfitting};
use std::sync::atomic::Ordering;
use tidegraph_apl::{At, Cursor, Error, Expand, Expansion, Sample, TopEdges};
use tidegraph_types::Gui;
use tidegraph_wire::apl::{AnyAnswer, request};

/// Degree of a vertex while none is known, in sixteenths.
const FIRST_DEGREE: u32 = 4 * 16;

/// Maximum number of rows that one request to a partition asks for.
const MOST_ROWS: usize = 1 << 18;
/// Minimum number of rows that a partition is asked for, unless the caller needs fewer.
const LEAST_ROWS: usize = 16;

/// The answer of a partition, and where it stopped.
struct Part {
    rows: Expansion,
    next: Option<Cursor>,
    by: Pin,
}

impl FleetApl {
    /// Answers [`tidegraph_apl::Apl::expand`], or with `top` [`tidegraph_apl::Apl::top_edges`].
    pub(super) fn expand_in_pieces(
        &self,
        at: At,
        request: &Expand,
        top: Option<TopEdges>,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        let most = request.max_rows.max(1) as usize;
        let limit = out.len().saturating_add(most);
        let mut from = from;
        let mut shrink = 1;
        while (from.row as usize) < frontier.len() {
            let start = from.row as usize;
            let wanted = limit.saturating_sub(out.len()).clamp(1, most);
            let count = (self.piece(wanted).min(frontier.len() - start) / shrink).max(1);
            let share = (wanted.min(MOST_ROWS) / shrink).max(LEAST_ROWS);
            let piece = &frontier[start..start + count];
            let asked = match self.expand_piece(at, request, top, piece, from, share) {
                Err(Error::TooLarge { .. }) if count > 1 || share > LEAST_ROWS => {
                    shrink *= 4;
                    continue;
                }
                other => other?,
            };
            let (split, parts) = asked;
            let looked = parts.iter().map(|part| part.rows.len()).sum::<usize>();
            match merge(&split, &parts, start, request.neighbours_only && top.is_none(), limit, out) {
                // The row that continues is the first of the next piece.
                Some((row, part)) => {
                    let done = row as usize;
                    let next = part.and_then(|part| parts[part].next.map(|next| (next, &parts[part].by)));
                    from = Cursor { row: (start + done) as u32, ..Cursor::default() };
                    if let Some((next, by)) = next
                        && next.offset > 0
                    {
                        from = Cursor { offset: next.offset, replica: self.number(by)?, ..from };
                    }
                    self.learn(looked, done.max(1));
                }
                None => {
                    from = Cursor { row: (start + count) as u32, ..Cursor::default() };
                    self.learn(looked, count);
                }
            }
            if out.len() >= limit && (from.row as usize) < frontier.len() {
                return Ok(Some(from));
            }
        }
        Ok(None)
    }

    /// Estimates how many vertices have `rows` edges together.
    fn piece(&self, rows: usize) -> usize {
        let degree = match self.degree.load(Ordering::Relaxed) {
            0 => FIRST_DEGREE,
            degree => degree,
        };
        (rows.saturating_mul(16) / degree as usize).saturating_add(1)
    }

    /// Updates the mean degree.
    fn learn(&self, rows: usize, vertices: usize) {
        let degree = (rows.saturating_mul(16) / vertices).clamp(1, 1 << 30) as u32;
        let before = self.degree.load(Ordering::Relaxed);
        let mixed = if before == 0 { degree } else { before / 2 + degree.div_ceil(2) };
        self.degree.store(mixed, Ordering::Relaxed);
    }

    fn expand_piece(
        &self,
        at: At,
        request: &Expand,
        top: Option<TopEdges>,
        piece: &[Gui],
        from: Cursor,
        wanted: usize,
    ) -> Result<(Split, Vec<Part>), Error> {
        let split = self.split(piece.iter().map(|gui| self.partition(*gui)));
        let pin = if from.offset > 0 { self.pin(from.replica)? } else { None };
        let mut asked = Vec::with_capacity(split.parts.len());
        for (partition, rows) in &split.parts {
            // The first row of the piece is the first row of its part.
            let goes_on = from.offset > 0 && rows.first() == Some(&0);
            let of_part: Vec<Gui> = rows.iter().map(|row| piece[*row as usize]).collect();
            let share = 2 * wanted * rows.len() / piece.len() + LEAST_ROWS;
            let mut expand = request.clone();
            expand.max_rows = share.min(wanted) as u32;
            let start =
                if goes_on { Cursor { row: 0, offset: from.offset, replica: 0 } } else { Cursor::default() };
            let request = match top {
                None => request::Expand { expand, frontier: of_part, from: start }.into(),
                Some(top) => request::TopEdges { expand, top, frontier: of_part, from: start }.into(),
            };
            let pin = if goes_on { pin.clone() } else { None };
            asked.push(Asked { partition: *partition, request, pin });
        }
        let answers = self.gather(at, wanted.max(piece.len()), asked)?;
        let parts = answers.into_iter().zip(&split.parts).map(|(answered, (_, rows))| {
            let Answered { answer, by } = answered;
            let (found, next) = match (answer, top) {
                (AnyAnswer::Expand(answer), None) | (AnyAnswer::TopEdges(answer), Some(_)) => answer,
                _ => return Err(unfitting()),
            };
            let others = if request.neighbours_only && top.is_none() { None } else { Some(found.len()) };
            if !is_whole(&found, rows.len(), others)
                || next.is_some_and(|next| next.row as usize >= rows.len())
            {
                return Err(unfitting());
            }
            Ok(Part { rows: found, next, by })
        });
        let parts = parts.collect::<Result<Vec<Part>, Error>>()?;
        Ok((split, parts))
    }

    /// Answers [`tidegraph_apl::Apl::sample_edges`].
    pub(super) fn gather_sample(
        &self,
        at: At,
        request: &Expand,
        sample: Sample,
        frontier: &[Gui],
        out: &mut Expansion,
    ) -> Result<(), Error> {
        if frontier.is_empty() {
            return Ok(());
        }
        let split = self.split(frontier.iter().map(|gui| self.partition(*gui)));
        let request = Expand { neighbours_only: false, ..request.clone() };
        let ask = |(partition, rows): &(_, Vec<u32>)| {
            let of_part: Vec<Gui> = rows.iter().map(|row| frontier[*row as usize]).collect();
            // Rows with the same number in two parts must be sampled differently.
            let seed = sample.seed ^ u64::from(rows[0]).rotate_left(17);
            let (expand, sample) = (request.clone(), Sample { seed, ..sample });
            super::asked(*partition, request::SampleEdges { expand, sample, frontier: of_part })
        };
        let answers = self.gather(at, frontier.len(), split.parts.iter().map(ask).collect())?;
        let parts = answers.into_iter().zip(&split.parts).map(|(answered, (_, rows))| {
            let by = answered.by.clone();
            let found = answered.to::<request::SampleEdges>()?;
            let is_whole = is_whole(&found, rows.len(), Some(found.len()));
            if is_whole { Ok(Part { rows: found, next: None, by }) } else { Err(unfitting()) }
        });
        let parts = parts.collect::<Result<Vec<Part>, Error>>()?;
        merge(&split, &parts, 0, false, usize::MAX, out);
        Ok(())
    }
}

/// Returns whether rows rise within a frontier of this length, and the other columns have `others` rows.
fn is_whole(found: &Expansion, frontier: usize, others: Option<usize>) -> bool {
    let in_frontier = found.row.last().is_none_or(|row| (*row as usize) < frontier);
    let complete = others.is_none_or(|rows| found.sid.len() == rows);
    in_frontier && complete && found.row.is_sorted()
}

/// Appends rows in the order of the frontier, whose piece begins at `start`, until a row is incomplete or `limit` is
/// reached. Returns where to continue: a row of the piece, and the part with the cursor if that row is incomplete.
fn merge(
    split: &Split,
    parts: &[Part],
    start: usize,
    neighbours_only: bool,
    limit: usize,
    out: &mut Expansion,
) -> Option<(u32, Option<usize>)> {
    let mut at = vec![0; parts.len()];
    for (row, &(number, local)) in split.places.iter().enumerate() {
        if out.len() >= limit {
            return Some((row as u32, None));
        }
        let number = number as usize;
        let (found, next) = (&parts[number].rows, parts[number].next);
        let ended = next.is_some_and(|next| next.row < local);
        if ended {
            // Its part stopped before this row.
            return Some((row as u32, None));
        }
        let first = at[number];
        let count = found.row[first..].partition_point(|of| *of == local);
        let rows = first..first + count;
        at[number] = rows.end;
        out.row.extend(std::iter::repeat_n((start + row) as u32, count));
        out.neighbour.extend_from_slice(&found.neighbour[rows.clone()]);
        if !neighbours_only {
            out.sid.extend_from_slice(&found.sid[rows.clone()]);
            out.label.extend_from_slice(&found.label[rows.clone()]);
            out.outgoing.extend_from_slice(&found.outgoing[rows]);
        }
        if next.is_some_and(|next| next.row == local) {
            return Some((row as u32, Some(number)));
        }
    }
    None
}

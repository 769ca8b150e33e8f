//! Requests with one answer for each row: split by partition, gathered, and merged in the order of the rows.

use super::gather::Answered;
use super::{Asked, FleetApl, Split, asked, unfitting};
use std::ops::Range;
use tidegraph_apl::{
    Apl as _, At, EdgeCandidates, EdgePlace, EdgeRead, EdgeRows, Error, LookUp, LookedUp, PropertyCell,
    VertexRead, VertexRows,
};
use tidegraph_types::element::{generated_edge_id, parse_generated_edge_id};
use tidegraph_types::{Edge, Gui, PartitionId, Str};
use tidegraph_wire::apl::{AnyAnswer, Request, request};

/// Receives the answers of the parts.
type Take<'t, A> = dyn FnMut(&Split, Vec<A>) -> Result<(), Error> + 't;

impl FleetApl {
    /// Asks about items, each in its partition. Calls `take` with the answers and the place of each item's row in them.
    /// If an answer is too large for a message, calls it for each half of the items instead.
    fn scatter<T: Clone, R: Request>(
        &self,
        at: At,
        items: &[T],
        partition: impl Fn(&T) -> PartitionId + Copy,
        request: impl Fn(Vec<T>) -> R + Copy,
        take: &mut Take<'_, R::Answer>,
    ) -> Result<(), Error> {
        if items.is_empty() {
            return Ok(());
        }
        let split = self.split(items.iter().map(partition));
        let ask = |(partition, rows): &(PartitionId, Vec<u32>)| {
            let of_part = rows.iter().map(|row| items[*row as usize].clone()).collect();
            asked(*partition, request(of_part))
        };
        let all: Vec<Asked> = split.parts.iter().map(ask).collect();
        match self.gather(at, items.len(), all) {
            Ok(answers) => {
                let answers = answers.into_iter().map(Answered::to::<R>);
                take(&split, answers.collect::<Result<_, _>>()?)
            }
            Err(Error::TooLarge { .. }) if items.len() > 1 => {
                let (first, second) = items.split_at(items.len() / 2);
                self.scatter(at, first, partition, request, take)?;
                self.scatter(at, second, partition, request, take)
            }
            Err(error) => Err(error),
        }
    }

    /// Like `scatter`, for answers that are lists with one item for each row.
    pub(super) fn scatter_lists<T: Clone, A: Clone, R: Request<Answer = Vec<A>>>(
        &self,
        at: At,
        items: &[T],
        partition: impl Fn(&T) -> PartitionId + Copy,
        request: impl Fn(Vec<T>) -> R + Copy,
        out: &mut Vec<A>,
    ) -> Result<(), Error> {
        self.scatter(at, items, partition, request, &mut |split, lists: Vec<Vec<A>>| {
            fits(split, &lists, Vec::len)?;
            out.extend(split.places.iter().map(|&(part, row)| lists[part as usize][row as usize].clone()));
            Ok(())
        })
    }

    pub(super) fn partition_of_id(&self, id: &Str) -> PartitionId {
        // The salted GUI of a colliding id is in the same partition.
        self.partition(self.shared.hasher.gui(id))
    }

    /// Looks up ids in one round trip: assumes that each vertex has the GUI that its id hashes to, and asks a place for
    /// every id. Rows of vertices with another GUI, because the hash collided, are read again.
    pub(super) fn look_up_in_one_round(
        &self,
        at: At,
        ids: &[Str],
        wish: &LookUp,
        out: &mut LookedUp,
    ) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let guis: Vec<Gui> = ids.iter().map(|id| self.shared.hasher.gui(id)).collect();
        let split = self.split(guis.iter().map(|gui| self.partition(*gui)));
        let mut all = Vec::new();
        for (partition, rows) in &split.parts {
            let of_part = || rows.iter().map(|row| ids[*row as usize].clone());
            all.push(asked(*partition, request::ResolveVertices { ids: of_part().collect() }));
            if let Some(read) = &wish.read {
                let frontier = rows.iter().map(|row| guis[*row as usize]).collect();
                all.push(asked(*partition, request::Vertices { read: read.clone(), frontier }));
            }
            if wish.places {
                all.push(asked(*partition, request::Place { ids: of_part().map(|id| (id, 0)).collect() }));
            }
        }
        let answers = match self.gather(at, ids.len(), all) {
            Err(Error::TooLarge { .. }) if ids.len() > 1 => {
                let (first, second) = ids.split_at(ids.len() / 2);
                self.look_up_in_one_round(at, first, wish, out)?;
                return self.look_up_in_one_round(at, second, wish, out);
            }
            other => other?,
        };
        let (mut found, mut rows, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for Answered { answer, .. } in answers {
            match answer {
                AnyAnswer::ResolveVertices(list) => found.push(list),
                AnyAnswer::Vertices(list) => rows.push(list),
                AnyAnswer::Place(list) => places.push(list),
                _ => return Err(unfitting()),
            }
        }
        fits(&split, &found, Vec::len)?;
        if wish.places {
            fits(&split, &places, Vec::len)?;
        }
        if let Some(read) = &wish.read {
            fits(&split, &rows, |rows| rows.present.len())?;
            complete(read, &rows)?;
        }
        let mut elsewhere = false;
        for (row, &(part, at)) in split.places.iter().enumerate() {
            let (part, at) = (part as usize, at as usize);
            let gui = found[part][at];
            out.found.push(gui);
            match gui {
                None if wish.places => out.places.push(places[part][at]),
                Some(gui) => elsewhere |= gui != guis[row],
                None => {}
            }
        }
        let Some(read) = &wish.read else { return Ok(()) };
        if elsewhere {
            let found: Vec<Gui> =
                out.found[out.found.len() - ids.len()..].iter().flatten().copied().collect();
            return self.vertices(at, read, &found, &mut out.rows);
        }
        for &(part, at) in &split.places {
            if found[part as usize][at as usize].is_some() {
                out.rows.append(read, &rows[part as usize], at as usize);
            }
        }
        Ok(())
    }

    pub(super) fn gather_candidates(
        &self,
        at: At,
        ids: &[Str],
        out: &mut EdgeCandidates,
    ) -> Result<(), Error> {
        let partition = |id: &Str| self.partition(self.shared.hasher.edge_id(id));
        let ask = |ids| request::EdgeCandidates { ids };
        self.scatter(at, ids, partition, ask, &mut |split, lists| {
            fits(split, &lists, |list| list.ends.len())?;
            for &(part, row) in &split.places {
                for (source, sid) in lists[part as usize].of_row(row as usize) {
                    out.source.push(source);
                    out.sid.push(sid);
                }
                out.end_row();
            }
            Ok(())
        })
    }

    /// Resolves edge ids in two round trips. The partition of the id's hash knows where an edge with a chosen id may
    /// be, and a generated id says it itself; the partition of the source knows whether the edge exists.
    pub(super) fn resolve_candidates(
        &self,
        at: At,
        ids: &[Str],
        out: &mut Vec<Option<Edge>>,
    ) -> Result<(), Error> {
        let mut candidates = EdgeCandidates::default();
        self.edge_candidates(at, ids, &mut candidates)?;
        let (mut places, mut rows) = (Vec::new(), Vec::new());
        for (row, id) in ids.iter().enumerate() {
            // A chosen id takes precedence over a generated id of the same text.
            for (source, sid) in candidates.of_row(row) {
                places.push(EdgePlace { source, sid, id: Some(id.clone()) });
                rows.push(row);
            }
            if let Some((source, sid)) = parse_generated_edge_id(id)
                && generated_edge_id(source, sid) == *id
            {
                places.push(EdgePlace { source, sid, id: None });
                rows.push(row);
            }
        }
        let mut found = Vec::with_capacity(places.len());
        self.find_edges(at, &places, &mut found)?;
        let first = out.len();
        out.resize(first + ids.len(), None);
        for (row, edge) in rows.into_iter().zip(found) {
            let answer = &mut out[first + row];
            *answer = answer.or(edge);
        }
        Ok(())
    }

    pub(super) fn gather_vertices(
        &self,
        at: At,
        read: &VertexRead,
        frontier: &[Gui],
        out: &mut VertexRows,
    ) -> Result<(), Error> {
        let ask = |frontier| request::Vertices { read: read.clone(), frontier };
        self.scatter(at, frontier, |gui| self.partition(*gui), ask, &mut |split, parts| {
            fits(split, &parts, |rows| rows.present.len())?;
            complete(read, &parts)?;
            merge_vertices(split, parts, out);
            Ok(())
        })
    }

    pub(super) fn gather_edges(
        &self,
        at: At,
        read: &EdgeRead,
        frontier: &[Edge],
        out: &mut EdgeRows,
    ) -> Result<(), Error> {
        let ask = |frontier| request::Edges { read: read.clone(), frontier };
        self.scatter(at, frontier, |edge| self.partition(edge.source), ask, &mut |split, mut parts| {
            fits(split, &parts, |rows| rows.present.len())?;
            let complete = |rows: &EdgeRows| {
                let present = rows.present.len();
                let has = |wanted: bool, found: usize| found == if wanted { present } else { 0 };
                let properties = read.properties != tidegraph_apl::Projection::None;
                has(read.ids, rows.ids.len()) && has(properties, rows.cell_ends.len())
            };
            if !parts.iter().all(complete) {
                return Err(unfitting());
            }
            let cells = parts.iter_mut().map(|rows| std::mem::take(&mut rows.cells).into_iter());
            let mut cells: Vec<_> = cells.collect();
            for &(part, row) in &split.places {
                let (rows, row) = (&mut parts[part as usize], row as usize);
                out.present.push(rows.present[row]);
                out.ids.extend(rows.ids.get_mut(row).map(std::mem::take));
                if !rows.cell_ends.is_empty() {
                    let count = range(&rows.cell_ends, row).len();
                    move_cells(&mut cells[part as usize], count, &mut out.cells, &mut out.cell_ends);
                }
            }
            Ok(())
        })
    }
}

/// Refuses answers that do not have one row for each row of the request.
fn fits<L>(split: &Split, lists: &[L], rows: impl Fn(&L) -> usize) -> Result<(), Error> {
    let asked = split.parts.iter().map(|(_, rows)| rows.len());
    if lists.len() == split.parts.len() && asked.eq(lists.iter().map(rows)) {
        Ok(())
    } else {
        Err(unfitting())
    }
}

/// Refuses rows that lack a requested column.
fn complete(read: &VertexRead, parts: &[VertexRows]) -> Result<(), Error> {
    let complete = |rows: &VertexRows| {
        let present = rows.present.len();
        let has = |wanted: bool, found: usize| found == if wanted { present } else { 0 };
        let properties = read.properties != tidegraph_apl::Projection::None;
        has(read.ids, rows.ids.len())
            && has(read.labels, rows.label_ends.len())
            && has(properties, rows.cell_ends.len())
    };
    if parts.iter().all(complete) { Ok(()) } else { Err(unfitting()) }
}

/// Returns the range of a row's items.
fn range(ends: &[u32], row: usize) -> Range<usize> {
    let start = if row == 0 { 0 } else { ends[row - 1] };
    start as usize..ends[row] as usize
}

fn move_cells(
    from: &mut std::vec::IntoIter<PropertyCell>,
    count: usize,
    cells: &mut Vec<PropertyCell>,
    ends: &mut Vec<u32>,
) {
    cells.extend(from.take(count));
    ends.push(cells.len() as u32);
}

/// Appends the rows of parts in the order of the request. Cells are moved from the front of each part, whose rows rise.
fn merge_vertices(split: &Split, mut parts: Vec<VertexRows>, out: &mut VertexRows) {
    let cells = parts.iter_mut().map(|rows| std::mem::take(&mut rows.cells).into_iter());
    let mut cells: Vec<_> = cells.collect();
    let meta = parts.iter_mut().map(|rows| std::mem::take(&mut rows.meta).into_iter().peekable());
    let mut meta: Vec<_> = meta.collect();
    for &(part, row) in &split.places {
        let (number, row) = (part as usize, row as usize);
        let rows = &mut parts[number];
        out.present.push(rows.present[row]);
        out.ids.extend(rows.ids.get_mut(row).map(std::mem::take));
        if !rows.label_ends.is_empty() {
            out.labels.extend_from_slice(&rows.labels[range(&rows.label_ends, row)]);
            out.label_ends.push(out.labels.len() as u32);
        }
        if rows.cell_ends.is_empty() {
            continue;
        }
        let (first, of_row) = (out.cells.len(), range(&rows.cell_ends, row));
        move_cells(&mut cells[number], of_row.len(), &mut out.cells, &mut out.cell_ends);
        while let Some(mut one) = meta[number].next_if(|meta| (meta.cell as usize) < of_row.end) {
            one.cell = (first + (one.cell as usize).saturating_sub(of_row.start)) as u32;
            out.meta.push(one);
        }
    }
}

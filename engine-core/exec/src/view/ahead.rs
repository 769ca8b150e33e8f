//! What storage answered about vertices before it was asked: where each request is a way to another machine, the look-up of ids
//! brings along what the plan reads of the vertices next.
//!
//! Only storage's own data at the version of the view is kept, which never changes; what is pending is laid over it as over
//! any other answer. What must never happen: an answer without a part that was asked for, which is why nothing is taken from here that
//! [`VertexRead::covers`] does not say is there.

use rustc_hash::FxHashMap;
use tidegraph_apl::{LookedUp, Projection, VertexRead, VertexRows};
use tidegraph_types::{Gui, Str, Value};

/// So many ids at most are asked about in advance where properties are read: beyond that a way more or less costs little, and data
/// of vertices that a filter drops much.
const MOST_IDS: usize = 256;
/// So many where they are not.
const MOST_IDS_WITHOUT_PROPERTIES: usize = 4_096;

/// Whether so many ids are asked about in advance.
pub(super) fn is_worth_it(ids: usize, next: Option<&VertexRead>) -> bool {
    let small = next.is_none_or(|read| read.properties == Projection::None);
    ids <= if small { MOST_IDS_WITHOUT_PROPERTIES } else { MOST_IDS }
}

/// The answers to the newest look-ups.
#[derive(Debug, Default)]
pub(super) struct AnsweredAhead {
    read: VertexRead,
    rows: VertexRows,
    row_of: FxHashMap<Gui, u32>,
    places: FxHashMap<Str, (Gui, u64)>,
}

impl AnsweredAhead {
    /// Keeps what was answered about ids, and no older answers.
    pub fn keep(&mut self, ids: &[Str], read: Option<VertexRead>, answered: LookedUp) -> Vec<Option<Gui>> {
        let LookedUp { found, places, rows } = answered;
        let unknown = ids.iter().zip(&found).filter(|(_, gui)| gui.is_none()).map(|(id, _)| id.clone());
        self.places = unknown.zip(places).collect();
        self.row_of.clear();
        if let Some(read) = read {
            self.row_of.extend(found.iter().flatten().copied().zip(0..));
            (self.read, self.rows) = (read, rows);
        }
        found
    }

    /// Appends rows if all of them are here.
    pub fn rows(&self, read: &VertexRead, frontier: &[Gui], out: &mut VertexRows) -> bool {
        if self.row_of.is_empty() || frontier.len() > MOST_IDS_WITHOUT_PROPERTIES || !self.read.covers(read) {
            return false;
        }
        let rows: Option<Vec<u32>> = frontier.iter().map(|gui| self.row_of.get(gui).copied()).collect();
        let Some(rows) = rows else { return false };
        rows.into_iter().for_each(|row| out.append(read, &self.rows, row as usize));
        true
    }

    /// Bytes that the rows hold, roughly. What came from afar is shared with nobody.
    pub fn bytes(&self) -> usize {
        let cells = size_of_val(&*self.rows.cells) + size_of_val(&*self.rows.meta);
        let values = self.rows.cells.iter().map(|cell| &cell.value);
        let values = values.chain(self.rows.meta.iter().map(|meta| &meta.value));
        cells + values.map(Value::heap_bytes).sum::<usize>()
    }

    /// The place of an id that no vertex has.
    pub fn place(&self, id: &Str) -> Option<(Gui, u64)> {
        self.places.get(id).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_apl::{CellMeta, PropertyCell};
    use tidegraph_types::{Cardinality, Token};

    fn rows() -> VertexRows {
        let cell = |key, value| PropertyCell {
            key: Token(key),
            cardinality: Cardinality::Single,
            value: Value::Long(value),
        };
        VertexRows {
            present: vec![true, true],
            ids: vec!["a".into(), "b".into()],
            label_ends: vec![1, 1],
            labels: vec![Token(9)],
            cell_ends: vec![2, 4],
            cells: vec![cell(1, 10), cell(2, 20), cell(1, 11), cell(2, 21)],
            meta: vec![CellMeta { cell: 3, key: Token(5), value: Value::Long(7) }],
        }
    }

    fn kept() -> AnsweredAhead {
        let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: true };
        let mut ahead = AnsweredAhead::default();
        let answered = LookedUp {
            found: vec![Some(Gui(1)), None, Some(Gui(2))],
            places: vec![(Gui(3), 1)],
            rows: rows(),
        };
        ahead.keep(&["a".into(), "nobody".into(), "b".into()], Some(read), answered);
        ahead
    }

    #[test]
    fn rows_have_what_was_asked_for_and_no_more() {
        let ahead = kept();
        let mut out = VertexRows::default();
        let read = VertexRead {
            properties: Projection::Keys(vec![Token(2), Token(8)]),
            meta: true,
            ..VertexRead::default()
        };
        assert!(ahead.rows(&read, &[Gui(2), Gui(1), Gui(2)], &mut out));
        assert_eq!((out.present.len(), out.ids.len(), out.label_ends.len()), (3, 0, 0));
        let values: Vec<Value> = (0..3).map(|row| out.value_of(row, Token(2))).collect();
        assert_eq!(values, [Value::Long(21), Value::Long(20), Value::Long(21)]);
        assert_eq!(out.meta.iter().map(|meta| meta.cell).collect::<Vec<_>>(), [0, 2]);
        let mut out = VertexRows::default();
        assert!(ahead.rows(
            &VertexRead { labels: true, ..VertexRead::default() },
            &[Gui(2), Gui(1)],
            &mut out
        ));
        assert_eq!((out.labels_of(0), out.labels_of(1)), (&[][..], &[Token(9)][..]));
        assert!(out.cell_ends.is_empty());
    }

    #[test]
    fn what_was_not_answered_is_not_here() {
        let mut ahead = kept();
        let mut out = VertexRows::default();
        assert!(!ahead.rows(&VertexRead::default(), &[Gui(1), Gui(7)], &mut out));
        assert_eq!(ahead.place(&"nobody".into()), Some((Gui(3), 1)));
        assert_eq!(ahead.place(&"a".into()), None);
        assert!(ahead.bytes() > 4 * size_of::<PropertyCell>());
        let read = VertexRead { properties: Projection::Keys(vec![Token(1)]), ..VertexRead::default() };
        let answered = LookedUp { found: vec![Some(Gui(1))], places: vec![], rows: rows() };
        ahead.keep(&["a".into()], Some(read.clone()), answered);
        assert!(ahead.rows(&read, &[Gui(1)], &mut out));
        out.clear();
        for more in [
            VertexRead { ids: true, ..read.clone() },
            VertexRead { labels: true, ..read.clone() },
            VertexRead { meta: true, ..read.clone() },
            VertexRead { properties: Projection::All, ..read.clone() },
            VertexRead { properties: Projection::Keys(vec![Token(1), Token(2)]), ..read.clone() },
        ] {
            assert!(!ahead.rows(&more, &[Gui(1)], &mut out), "{more:?}");
        }
        assert!(ahead.rows(&VertexRead { meta: true, ..VertexRead::default() }, &[Gui(1)], &mut out));
        ahead.keep(&["c".into()], None, LookedUp { found: vec![Some(Gui(1))], ..LookedUp::default() });
        assert!(!ahead.rows(&read, &[Gui(1)], &mut out), "the rows of an older look-up are gone");
    }
}

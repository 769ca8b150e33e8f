//! Vertices that were read ahead. If storage is on other machines, a look-up of ids also returns what the plan reads of
//! the vertices next, which saves a round trip.
//!
//! The cache holds only storage's data at the version of the view, which never changes. Pending writes are applied to
//! it as to any other answer.
//!
//! What must never happen: an answer lacks a requested part. So the cache answers only
//! what [`VertexRead::covers`] says that it holds.

use rustc_hash::FxHashMap;
use tidegraph_apl::{LookedUp, Projection, VertexRead, VertexRows};
use tidegraph_types::{Gui, Str, Value};

/// Maximum number of ids that are read ahead with properties. Beyond this a round trip costs little, and properties of
/// vertices that a filter drops cost much.
const MOST_IDS: usize = 256;
/// Maximum number of ids that are read ahead without properties.
const MOST_IDS_WITHOUT_PROPERTIES: usize = 4_096;

/// Whether to read ahead for this number of ids.
pub(super) fn is_worthwhile(ids: usize, next: Option<&VertexRead>) -> bool {
    let small = next.is_none_or(|read| read.properties == Projection::None);
    ids <= if small { MOST_IDS_WITHOUT_PROPERTIES } else { MOST_IDS }
}

/// The answer to the newest look-up.
#[derive(Debug, Default)]
pub(super) struct AnsweredAhead {
    read: VertexRead,
    rows: VertexRows,
    row_of: FxHashMap<Gui, u32>,
    places: FxHashMap<Str, (Gui, u64)>,
}

impl AnsweredAhead {
    /// Replaces the cache by the answer to a look-up of `ids`; returns what was found.
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

    /// Appends the rows of a frontier and returns `true` if the cache holds all of them.
    pub fn rows(&self, read: &VertexRead, frontier: &[Gui], out: &mut VertexRows) -> bool {
        if self.row_of.is_empty() || frontier.len() > MOST_IDS_WITHOUT_PROPERTIES || !self.read.covers(read) {
            return false;
        }
        let rows: Option<Vec<u32>> = frontier.iter().map(|gui| self.row_of.get(gui).copied()).collect();
        let Some(rows) = rows else { return false };
        rows.into_iter().for_each(|row| out.append(read, &self.rows, row as usize));
        true
    }

    /// Estimates the bytes of the rows. Data from other machines is shared with nothing else.
    pub fn bytes(&self) -> usize {
        let cells = size_of_val(&*self.rows.cells) + size_of_val(&*self.rows.meta);
        let values = self.rows.cells.iter().map(|cell| &cell.value);
        let values = values.chain(self.rows.meta.iter().map(|meta| &meta.value));
        cells + values.map(Value::heap_bytes).sum::<usize>()
    }

    /// Returns the place for a new vertex of an id that was looked up and not found.
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

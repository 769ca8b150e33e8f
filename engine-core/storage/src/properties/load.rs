//! Rows of a load. Their set is found by a hash of their shape, and values are written directly into its columns.
//!
//! The rows of a load have few shapes and come in any order. The set of a known shape is found without collecting
//! labels and keys first; the row is written value by value. All other rows (a key twice, several values, types
//! without a column, a new shape) go through [`PageWriter::insert`].

use super::column::{ColumnType, encode, encode_text, text_heap_bytes};
use super::overflow::Content;
use super::page::{RowPlace, store_pair};
use super::page_writer::{PageWriter, TableView};
use super::read::RowOwner;
use super::scalar::Scalar;
use super::sets::{RowKind, Set};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_types::{Cardinality, Str, Temporal, Token, Value, Version};

/// Sets by the hash of the shape of fitting rows.
#[derive(Default)]
pub(super) struct SetCache(FxHashMap<u64, Arc<Set>>);

impl SetCache {
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<(u64, Arc<Set>)>()
    }
}

/// A value of a row.
pub(crate) type Write<'v> = (Token, Cardinality, &'v Value);

fn column_of(value: &Value) -> ColumnType {
    match value {
        Value::Bool(_) => ColumnType::Bool,
        Value::Byte(_) => ColumnType::Byte,
        Value::Short(_) => ColumnType::Short,
        Value::Int(_) => ColumnType::Int,
        Value::Long(_) => ColumnType::Long,
        Value::Float(_) => ColumnType::Float,
        Value::Double(_) => ColumnType::Double,
        Value::String(_) => ColumnType::String,
        Value::DateTime(_) => ColumnType::DateTime,
        Value::Temporal(Temporal::Date(_)) => ColumnType::Date,
        Value::Temporal(Temporal::LocalDateTime(_)) => ColumnType::LocalDateTime,
        _ => ColumnType::Elsewhere,
    }
}

fn hash_of<'v>(kind: RowKind, labels: &[Token], writes: impl Iterator<Item = Write<'v>>) -> u64 {
    let mut hasher = FxHasher::default();
    kind.hash(&mut hasher);
    labels.hash(&mut hasher);
    for (key, cardinality, value) in writes {
        let (cardinality, column) = (cardinality as u32, column_of(value) as u32);
        hasher.write_u64(u64::from(key.0) << 32 | u64::from(cardinality << 8 | column));
    }
    hasher.finish()
}

/// Returns whether the values of a row match the columns of a set one by one, in order.
fn fits<'v>(
    set: &Set,
    kind: RowKind,
    labels: &[Token],
    mut writes: impl ExactSizeIterator<Item = Write<'v>>,
) -> bool {
    set.kind == kind
        && set.overflow.is_none()
        && *set.labels == *labels
        && set.columns.len() == writes.len()
        && set.columns.iter().all(|column| {
            let shape = &column.shape;
            writes.next().is_some_and(|(key, cardinality, value)| {
                shape.key == key && shape.cardinality == cardinality && shape.column == column_of(value)
            })
        })
}

impl PageWriter {
    /// Adds a row that is visible from a version on, like [`PageWriter::insert`]. The labels are distinct.
    pub fn load<'v>(
        &mut self,
        view: TableView<'_>,
        version: Version,
        owner: RowOwner,
        id: Option<&Str>,
        labels: &[Token],
        writes: impl ExactSizeIterator<Item = Write<'v>> + Clone,
    ) -> RowPlace {
        let kind = match owner {
            RowOwner::Vertex(_) => RowKind::Vertex,
            RowOwner::Edge(_) => RowKind::Edge { with_id: id.is_some() },
        };
        let hash = hash_of(kind, labels, writes.clone());
        let known = self.known.0.get(&hash).filter(|set| fits(set, kind, labels, writes.clone())).cloned();
        let Some(set) = known else {
            let content = Content::of(writes.clone());
            let place = self.insert(view, Some(version), owner, id, labels, &content, None);
            let page = view.page(place.page());
            let set = page.set();
            if fits(set, kind, labels, writes) {
                self.known.0.insert(hash, set.clone());
            }
            return place;
        };
        let place = self.claim(view, &set);
        let (page, row) = (view.page(place.page()), place.row());
        self.link_insertion(view, page, place, version, None);
        view.table.modify(place.page(), version.0);
        page.owners()[row].store(owner.word(), Ordering::Release);
        let mut owned = 0;
        if let (Some(ids), Some(id)) = (page.ids(), id) {
            let words = encode_text(id);
            owned += text_heap_bytes(words);
            store_pair(&ids[row], words);
        }
        for (at, (_, _, value)) in (0..).zip(writes) {
            let words = match value {
                Value::String(text) => {
                    let words = encode_text(text);
                    owned += text_heap_bytes(words);
                    words
                }
                other => encode(&Scalar::from(other)),
            };
            set.profile.widen(at, set.columns[usize::from(at)].shape.column, words);
            page.column(at).store(row, words);
        }
        view.table.add_bytes(page, owned);
        let bits = &page.present()[row / 64];
        bits.store(bits.load(Ordering::Relaxed) | 1 << (row % 64), Ordering::Release);
        place
    }
}

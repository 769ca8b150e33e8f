//! Content of an element (id, labels, properties) and its history: newest in place, how to undo it beside.
//!
//! An element carries a 32-bit *state*: settled (present, and every readable version sees the same), the stamp of the
//! version that made it, or a mark that sends the reader to its [`History`], a list of undo steps, each with the
//! version that made it necessary. A reader of version V takes the newest content and undoes the steps above V.
//!
//! A step holds only what one write replaced (the values of one key), never a whole image, so that many writes to one
//! element cost memory in proportion to what they wrote.

use crate::scalar::{Cell, Scalar};
use crate::stamps::{self, SETTLED, Stamps};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use thin_vec::ThinVec;
use tidegraph_types::{Cardinality, PropertyWrite, Str, Token, Value, Version};

/// State of a slot that holds nothing.
pub(crate) const FREE: u32 = stamps::HIGHEST + 1;
/// State of an element that has a history.
pub(crate) const HISTORY: u32 = stamps::HIGHEST + 2;
/// State of an element that is gone for every readable version, but whose slot is still needed.
pub(crate) const ABSENT: u32 = stamps::HIGHEST + 3;

/// What is read together of an element.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// The user's id; edges may have none.
    pub id: Option<Str>,
    pub cells: ThinVec<Cell>,
    /// Number of the label set (vertices).
    pub labels: u32,
}

/// How to undo one write.
#[derive(Debug)]
pub(crate) enum Undo {
    /// It made the element.
    Created,
    /// It removed the element.
    Deleted(Box<Content>),
    /// It changed the labels.
    Labels(u32),
    /// It changed the values of a key.
    Key { key: Token, cells: ThinVec<Cell> },
    /// It appended one value to a key.
    Appended { key: Token },
}

/// Undo steps of one element, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    steps: Vec<(Version, Undo)>,
    /// Whether the newest content is present.
    pub present: bool,
    /// Labels that the element no longer has, but may still be listed under.
    pub stale_labels: SmallVec<[Token; 2]>,
}

/// Histories of the elements of one kind, by slot.
pub(crate) type Histories = FxHashMap<u32, History>;

/// What a version sees of an element.
pub(crate) enum Seen {
    /// The newest content.
    Newest,
    /// An older one.
    Older(Box<Content>),
    /// Nothing.
    Absent,
}

impl History {
    fn made_at(&self, version: Version) -> bool {
        self.steps
            .iter()
            .rev()
            .take_while(|(at, _)| *at == version)
            .any(|(_, undo)| matches!(undo, Undo::Created))
    }

    fn see(&self, at: Version, newest: impl FnOnce() -> Content) -> Seen {
        let first = self.steps.partition_point(|(version, _)| *version <= at);
        let undone = &self.steps[first..];
        if undone.is_empty() {
            return if self.present { Seen::Newest } else { Seen::Absent };
        }
        // Everything above the oldest undone creation or removal is void: start there.
        let whole = undone.iter().position(|(_, undo)| matches!(undo, Undo::Created | Undo::Deleted(_)));
        let (mut content, rest) = match whole {
            Some(index) => match &undone[index].1 {
                Undo::Deleted(content) => ((**content).clone(), &undone[..index]),
                _ => return Seen::Absent,
            },
            None if self.present => (newest(), undone),
            None => return Seen::Absent,
        };
        for (_, undo) in rest.iter().rev() {
            undo.apply(&mut content);
        }
        Seen::Older(Box::new(content))
    }

    pub fn bytes(&self) -> usize {
        let step = |undo: &Undo| match undo {
            Undo::Deleted(content) => size_of::<Content>() + cells_bytes(&content.cells),
            Undo::Key { cells, .. } => cells_bytes(cells),
            Undo::Created | Undo::Labels(_) | Undo::Appended { .. } => 0,
        };
        self.steps.capacity() * size_of::<(Version, Undo)>()
            + self.steps.iter().map(|(_, undo)| step(undo)).sum::<usize>()
    }
}

/// Bytes of a list of cells on the heap.
pub(crate) fn cells_bytes(cells: &ThinVec<Cell>) -> usize {
    if cells.capacity() == 0 {
        return 0;
    }
    16 + cells.capacity() * size_of::<Cell>() + cells.iter().map(Cell::bytes).sum::<usize>()
}

impl Undo {
    fn apply(&self, content: &mut Content) {
        match self {
            // `see` starts after the last of these.
            Self::Created | Self::Deleted(_) => {}
            Self::Labels(labels) => content.labels = *labels,
            Self::Key { key, cells } => {
                replace(&mut content.cells, *key, cells.iter().cloned());
            }
            Self::Appended { key } => {
                if let Some(run) = run_of(&content.cells, *key) {
                    content.cells.remove(run.end - 1);
                }
            }
        }
    }
}

/// What a version sees of an element in a state. `newest` is called only to build an older content.
#[inline]
pub(crate) fn see(
    state: u32,
    slot: u32,
    histories: &Histories,
    stamps: &Stamps,
    at: Version,
    newest: impl FnOnce() -> Content,
) -> Seen {
    match state {
        SETTLED => Seen::Newest,
        HISTORY => histories.get(&slot).map_or(Seen::Absent, |history| history.see(at, newest)),
        FREE | ABSENT => Seen::Absent,
        stamp if stamps.get(stamp).begin <= at => Seen::Newest,
        _ => Seen::Absent,
    }
}

/// Whether the newest content of an element is present.
pub(crate) fn present(state: u32, slot: u32, histories: &Histories) -> bool {
    match state {
        HISTORY => histories.get(&slot).is_some_and(|history| history.present),
        FREE | ABSENT => false,
        _ => true,
    }
}

/// Prepares an element for a change at `version` and returns its history if the change has to be recorded there;
/// `None` when the element was made at this very version, so that nobody can see it without the change.
pub(crate) fn history_for<'h>(
    state: &mut u32,
    slot: u32,
    histories: &'h mut Histories,
    stamps: &Stamps,
    version: Version,
) -> Option<&'h mut History> {
    match *state {
        HISTORY => histories.get_mut(&slot).filter(|history| !history.made_at(version)),
        SETTLED => {
            *state = HISTORY;
            Some(histories.entry(slot).or_insert_with(|| History { present: true, ..History::default() }))
        }
        FREE | ABSENT => None,
        stamp => {
            let begin = stamps.get(stamp).begin;
            if begin == version {
                return None;
            }
            *state = HISTORY;
            let history = histories.entry(slot).or_default();
            history.present = true;
            history.steps.push((begin, Undo::Created));
            Some(history)
        }
    }
}

impl History {
    /// Records how to undo a change.
    pub fn record(&mut self, version: Version, undo: Undo) {
        self.steps.push((version, undo));
    }

    /// Forgets the steps that no version from `oldest` on needs; true when none is needed.
    pub fn forget(&mut self, oldest: Version) -> bool {
        let gone = self.steps.partition_point(|(version, _)| *version <= oldest);
        // Half of them at a time, so that an element that changes all the time costs no more for each change.
        if gone * 2 >= self.steps.len() {
            self.steps.drain(..gone);
        }
        self.steps.is_empty()
    }
}

fn run_of(cells: &[Cell], key: Token) -> Option<std::ops::Range<usize>> {
    let start = cells.iter().position(|cell| cell.key == key)?;
    let length = cells[start..].iter().take_while(|cell| cell.key == key).count();
    Some(start..start + length)
}

/// Puts new values in the place of a key's old ones, which are returned.
fn replace(cells: &mut ThinVec<Cell>, key: Token, new: impl Iterator<Item = Cell>) -> ThinVec<Cell> {
    let run = run_of(cells, key).unwrap_or(cells.len()..cells.len());
    let tail: ThinVec<Cell> = cells.drain(run.end..).collect();
    let old = cells.drain(run.start..).collect();
    cells.extend(new);
    cells.extend(tail);
    old
}

/// Writes one value and returns how to undo that; `None` if the value was there already.
pub(crate) fn write(
    cells: &mut ThinVec<Cell>,
    key: Token,
    cardinality: Cardinality,
    value: &Value,
) -> Option<Undo> {
    let cell = || Cell { value: Scalar::from(value), key, cardinality };
    let Some(run) = run_of(cells, key) else {
        cells.push(cell());
        return Some(Undo::Key { key, cells: ThinVec::new() });
    };
    if cardinality == Cardinality::Single {
        if run.len() == 1 {
            let old = std::mem::replace(&mut cells[run.start], cell());
            return Some(Undo::Key { key, cells: std::iter::once(old).collect() });
        }
        return Some(Undo::Key { key, cells: replace(cells, key, std::iter::once(cell())) });
    }
    let there =
        cardinality == Cardinality::Set && cells[run.clone()].iter().any(|cell| cell.value.equivalent(value));
    if cells[run.start].cardinality == cardinality {
        if there {
            return None;
        }
        cells.insert(run.end, cell());
        return Some(Undo::Appended { key });
    }
    // The newest write's cardinality holds for the key; its values stay, but a set has no value twice.
    let old: ThinVec<Cell> = cells[run].iter().cloned().collect();
    let mut new: ThinVec<Cell> = ThinVec::with_capacity(old.len() + 1);
    for cell in &old {
        let twice = cardinality == Cardinality::Set && {
            let value = Value::from(&cell.value);
            new.iter().any(|other| other.value.equivalent(&value))
        };
        if !twice {
            new.push(Cell { cardinality, ..cell.clone() });
        }
    }
    if !there {
        new.push(cell());
    }
    replace(cells, key, new.into_iter());
    Some(Undo::Key { key, cells: old })
}

/// Removes one value (any equivalent one) or all values of a key and returns how to undo that.
pub(crate) fn remove(cells: &mut ThinVec<Cell>, key: Token, value: Option<&Value>) -> Option<Undo> {
    let run = run_of(cells, key)?;
    let Some(value) = value else {
        return Some(Undo::Key { key, cells: replace(cells, key, std::iter::empty()) });
    };
    let hit = cells[run.clone()].iter().position(|cell| cell.value.equivalent(value))?;
    let old = cells[run.clone()].iter().cloned().collect();
    cells.remove(run.start + hit);
    Some(Undo::Key { key, cells: old })
}

/// The values of a new vertex.
pub(crate) fn first_cells(writes: &[PropertyWrite]) -> ThinVec<Cell> {
    let mut cells = ThinVec::with_capacity(writes.len());
    for one in writes {
        write(&mut cells, one.key, one.cardinality, &one.value);
    }
    cells
}

/// The values of a new edge.
pub(crate) fn first_edge_cells(properties: &[(Token, Value)]) -> ThinVec<Cell> {
    let mut cells = ThinVec::with_capacity(properties.len());
    for (key, value) in properties {
        write(&mut cells, *key, Cardinality::Single, value);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use Cardinality::{List, Set, Single};

    fn put(cells: &mut ThinVec<Cell>, key: u32, cardinality: Cardinality, value: i64) -> Option<Undo> {
        write(cells, Token(key), cardinality, &Value::Long(value))
    }

    fn shown(cells: &ThinVec<Cell>) -> Vec<(u32, i64)> {
        cells.iter().map(|c| (c.key.0, Value::from(&c.value).as_i64().unwrap())).collect()
    }

    #[test]
    fn cardinalities_replace_add_and_append() {
        let mut cells = ThinVec::new();
        put(&mut cells, 1, Single, 1);
        put(&mut cells, 2, Single, 9);
        put(&mut cells, 1, Single, 2);
        assert_eq!(shown(&cells), [(1, 2), (2, 9)]);
        put(&mut cells, 1, Set, 3);
        assert!(put(&mut cells, 1, Set, 2).is_none());
        assert_eq!(shown(&cells), [(1, 2), (1, 3), (2, 9)]);
        put(&mut cells, 1, List, 2);
        assert_eq!(shown(&cells), [(1, 2), (1, 3), (1, 2), (2, 9)]);
        assert!(cells[..3].iter().all(|c| c.cardinality == List));
        put(&mut cells, 1, Set, 5);
        assert_eq!(shown(&cells), [(1, 2), (1, 3), (1, 5), (2, 9)]);
        put(&mut cells, 1, Single, 7);
        assert_eq!(shown(&cells), [(1, 7), (2, 9)]);
    }

    #[test]
    fn undo_steps_lead_back() {
        let mut content = Content::default();
        let mut kept = vec![shown(&content.cells)];
        let mut history = History { present: true, ..History::default() };
        let writes =
            [(1, List, 1), (1, List, 1), (2, Set, 4), (1, Single, 8), (1, Set, 9), (1, Set, 9), (2, List, 4)];
        for (version, &(key, cardinality, value)) in (1..).zip(&writes) {
            if let Some(undo) = put(&mut content.cells, key, cardinality, value) {
                history.record(Version(version), undo);
            }
            kept.push(shown(&content.cells));
        }
        if let Some(undo) = remove(&mut content.cells, Token(1), Some(&Value::Int(8))) {
            history.record(Version(8), undo);
        }
        assert_eq!(shown(&content.cells), [(1, 9), (2, 4), (2, 4)]);
        for (version, expected) in kept.iter().enumerate() {
            let Seen::Older(old) = history.see(Version(version as u64), || content.clone()) else { panic!() };
            let mut old = shown(&old.cells);
            old.sort_by_key(|(key, _)| *key);
            assert_eq!(&old, expected, "version {version}");
        }
        assert!(!history.forget(Version(7)));
        assert!(history.forget(Version(8)));
    }
}

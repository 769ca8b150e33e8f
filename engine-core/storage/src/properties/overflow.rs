//! Values without a column: several values of one key, values with meta-properties, rare types, rare keys. Also the
//! logical content of an element.
//!
//! An [`Overflow`] is immutable and shared. A change makes a new one that shares the values of all other keys with
//! the old one. Long lists of values of one key are appended in place: each reader knows how many of them it may see,
//! so neither an append nor a version copies the list.
//!
//! [`Content`] is what a write edits if it changes more than one cell: keys in order of first writing, each with its
//! values in order of writing.

use super::scalar::Scalar;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tidegraph_types::{Cardinality, PropertyWrite, Token, Value};

/// Number of values up to which an append copies them.
const FEW: usize = 8;
/// Number of keys from which a table pays for look-ups.
const MANY_KEYS: usize = 32;

/// A write or removal of a meta-property.
#[derive(Clone, Copy)]
pub(crate) struct MetaWrite<'m> {
    pub key: Token,
    /// The value that has the meta-property.
    pub of: &'m Value,
    /// The number of that value among equivalent ones.
    pub nth: u32,
    pub meta_key: Token,
    pub value: Option<&'m Value>,
}

/// The values of one key, at least one.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    One(Scalar),
    Few(Arc<[Scalar]>),
    /// The first `len` values of a list to which newer versions may have appended.
    Many {
        list: Arc<boxcar::Vec<Scalar>>,
        len: usize,
    },
}

impl Values {
    pub fn iter(&self) -> impl Iterator<Item = &Scalar> {
        let (few, many): (&[Scalar], _) = match self {
            Self::One(one) => (std::slice::from_ref(one), None),
            Self::Few(few) => (few, None),
            Self::Many { list, len } => (&[], Some((list, *len))),
        };
        let many = many.into_iter().flat_map(|(list, len)| list.iter().take(len).map(|(_, value)| value));
        few.iter().chain(many)
    }

    pub fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Few(few) => few.len(),
            Self::Many { len, .. } => *len,
        }
    }

    /// Makes the variant for a number of values; `None` for none.
    pub fn of(mut values: Vec<Scalar>) -> Option<Self> {
        Some(match values.len() {
            0 => return None,
            1 => Self::One(values.pop()?),
            2..=FEW => Self::Few(values.into()),
            len => Self::Many { list: Arc::new(values.into_iter().collect()), len },
        })
    }

    fn push(&self, value: Scalar) -> Option<Self> {
        if let Self::Many { list, len } = self
            && list.count() == *len
        {
            list.push(value);
            return Some(Self::Many { list: list.clone(), len: len + 1 });
        }
        Self::of(self.iter().cloned().chain([value]).collect())
    }

    fn has(&self, value: &Value) -> bool {
        self.iter().any(|other| other.equivalent(value))
    }

    fn heap_bytes(&self) -> usize {
        let own = match self {
            Self::One(_) => 0,
            Self::Few(few) => 16 + few.len() * size_of::<Scalar>(),
            Self::Many { len, .. } => 64 + len.next_power_of_two() * (size_of::<Scalar>() + 8),
        };
        own + self.iter().map(Scalar::heap_bytes).sum::<usize>()
    }
}

/// A key with its values.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: Token,
    pub cardinality: Cardinality,
    pub values: Values,
}

impl Entry {
    /// Stands for one value without meta-properties.
    pub const PLAIN: Self =
        Self { key: Token(0), cardinality: Cardinality::Single, values: Values::One(Scalar::Bool(false)) };

    /// Returns the key after a write; `None` if the write changes nothing.
    fn written(&self, cardinality: Cardinality, value: &Value) -> Option<Self> {
        let key = self.key;
        if cardinality == Cardinality::Single {
            let there = matches!(&self.values, Values::One(old) if old.is_same(value));
            if there && self.cardinality == cardinality {
                return None;
            }
            return Some(Self { key, cardinality, values: Values::One(Scalar::from(value)) });
        }
        let there = cardinality == Cardinality::Set && self.values.has(value);
        if self.cardinality == cardinality {
            if there {
                return None;
            }
            return Some(Self { key, cardinality, values: self.values.push(Scalar::from(value))? });
        }
        // The cardinality of the newest write applies to the key. Its values stay, but a set keeps no value twice.
        let mut values: Vec<Scalar> = Vec::with_capacity(self.values.len() + 1);
        for old in self.values.iter() {
            let twice = cardinality == Cardinality::Set && {
                let value = Value::from(old);
                values.iter().any(|other| other.equivalent(&value))
            };
            if !twice {
                values.push(old.clone());
            }
        }
        if !there {
            values.push(Scalar::from(value));
        }
        Some(Self { key, cardinality, values: Values::of(values)? })
    }
}

/// Returns the values of a key after writes to meta-properties; `None` if the writes change nothing.
fn annotated(values: &Values, writes: &[MetaWrite<'_>]) -> Option<Values> {
    let mut values: Vec<Scalar> = values.iter().cloned().collect();
    // Positions of equivalent values, if there are many look-ups.
    let mut places: FxHashMap<Value, Vec<usize>> = FxHashMap::default();
    let many = values.len() >= FEW && writes.len() >= FEW;
    if many {
        for (at, value) in values.iter().enumerate() {
            places.entry(Value::from(value)).or_default().push(at);
        }
    }
    let mut changed = false;
    for of_value in writes.chunk_by(|a, b| a.nth == b.nth && a.of == b.of) {
        let MetaWrite { of, nth, .. } = of_value[0];
        let place = if many {
            places.get(of).and_then(|places| places.get(nth as usize)).copied()
        } else {
            let equivalent = values.iter().enumerate().filter(|(_, value)| value.equivalent(of));
            equivalent.into_iter().nth(nth as usize).map(|(at, _)| at)
        };
        let Some(place) = place else { continue };
        let mut meta = values[place].meta().to_vec();
        if write_meta(&mut meta, of_value) {
            values[place] = values[place].clone().annotated(meta);
            changed = true;
        }
    }
    if changed { Values::of(values) } else { None }
}

/// Writes to the meta-properties of one value; returns false if that changes nothing.
fn write_meta(meta: &mut Vec<(Token, Scalar)>, writes: &[MetaWrite<'_>]) -> bool {
    let mut places: FxHashMap<Token, usize> = FxHashMap::default();
    let many = writes.len() >= MANY_KEYS && writes.iter().all(|write| write.value.is_some());
    if many {
        places.extend(meta.iter().zip(0..).map(|((key, _), place)| (*key, place)));
    }
    let mut changed = false;
    for MetaWrite { meta_key, value, .. } in writes {
        let there = if many {
            places.get(meta_key).copied()
        } else {
            meta.iter().position(|(key, _)| key == meta_key)
        };
        match (there, value) {
            (None, None) => continue,
            (Some(there), Some(new)) if meta[there].1.is_same(new) => continue,
            (Some(there), Some(new)) => meta[there].1 = Scalar::from(*new),
            (None, Some(new)) => {
                places.insert(*meta_key, meta.len());
                meta.push((*meta_key, Scalar::from(*new)));
            }
            (Some(there), None) => drop(meta.remove(there)),
        }
        changed = true;
    }
    changed
}

/// The values of a row without columns: of keys that its set knows, and of others.
#[derive(Debug, Default)]
pub(crate) struct Overflow {
    pub entries: Box<[Entry]>,
}

impl Overflow {
    pub fn find(&self, key: Token) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub fn heap_bytes(&self) -> usize {
        16 + size_of_val(&*self.entries) + self.entries.iter().map(|e| e.values.heap_bytes()).sum::<usize>()
    }
}

/// All properties of an element.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub entries: Vec<Entry>,
}

impl Content {
    /// Makes the content of a new vertex.
    pub fn of_writes(writes: &[PropertyWrite]) -> Self {
        Self::of(writes.iter().map(|write| (write.key, write.cardinality, &write.value)))
    }

    /// Makes the content of a new edge.
    pub fn of_properties(properties: &[(Token, Value)]) -> Self {
        Self::of(properties.iter().map(|(key, value)| (*key, Cardinality::Single, value)))
    }

    pub fn of<'v>(writes: impl ExactSizeIterator<Item = (Token, Cardinality, &'v Value)>) -> Self {
        let mut content = Self { entries: Vec::with_capacity(writes.len()) };
        content.write_some(writes, |_| {});
        content
    }

    /// Writes values in order. Returns the keys that changed, possibly with repetitions.
    pub fn write_all(&mut self, writes: &[&PropertyWrite]) -> Vec<Token> {
        let mut changed = Vec::new();
        let writes = writes.iter().map(|write| (write.key, write.cardinality, &write.value));
        self.write_some(writes, |key| changed.push(key));
        changed
    }

    fn write_some<'v>(
        &mut self,
        writes: impl ExactSizeIterator<Item = (Token, Cardinality, &'v Value)>,
        mut changed: impl FnMut(Token),
    ) {
        let many = writes.len() >= MANY_KEYS;
        let mut places: FxHashMap<Token, usize> = FxHashMap::default();
        if many {
            places.extend(self.entries.iter().zip(0..).map(|(entry, place)| (entry.key, place)));
        }
        for (key, cardinality, value) in writes {
            let place = if many { places.get(&key).copied() } else { self.place(key) };
            if many && place.is_none() {
                places.insert(key, self.entries.len());
            }
            if self.write_at(place, key, cardinality, value) {
                changed(key);
            }
        }
    }

    fn place(&self, key: Token) -> Option<usize> {
        self.entries.iter().position(|entry| entry.key == key)
    }

    /// Writes one value; returns false if that changes nothing.
    pub fn write(&mut self, key: Token, cardinality: Cardinality, value: &Value) -> bool {
        self.write_at(self.place(key), key, cardinality, value)
    }

    fn write_at(&mut self, at: Option<usize>, key: Token, cardinality: Cardinality, value: &Value) -> bool {
        let Some(at) = at else {
            self.entries.push(Entry { key, cardinality, values: Values::One(Scalar::from(value)) });
            return true;
        };
        match self.entries[at].written(cardinality, value) {
            Some(entry) => {
                self.entries[at] = entry;
                true
            }
            None => false,
        }
    }

    /// Writes or removes meta-properties in order. Returns the keys that changed, possibly with repetitions. Copies
    /// the values of a key once for a run of writes to it.
    pub fn annotate(&mut self, writes: &[MetaWrite<'_>]) -> Vec<Token> {
        let mut changed = Vec::new();
        for of_key in writes.chunk_by(|a, b| a.key == b.key) {
            let Some(at) = self.place(of_key[0].key) else { continue };
            if let Some(values) = annotated(&self.entries[at].values, of_key) {
                self.entries[at].values = values;
                changed.push(of_key[0].key);
            }
        }
        changed
    }

    /// Removes one value (any equivalent one) or all values of a key; returns false if there is none.
    pub fn remove(&mut self, key: Token, value: Option<&Value>) -> bool {
        let Some(at) = self.place(key) else { return false };
        let Some(value) = value else {
            self.entries.remove(at);
            return true;
        };
        let values = &self.entries[at].values;
        let Some(hit) = values.iter().position(|other| other.equivalent(value)) else { return false };
        let rest = values.iter().enumerate().filter(|(index, _)| *index != hit);
        match Values::of(rest.map(|(_, value)| value.clone()).collect()) {
            Some(values) => self.entries[at].values = values,
            None => drop(self.entries.remove(at)),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Cardinality::{List, Set, Single};

    fn put(content: &mut Content, key: u32, cardinality: Cardinality, value: i64) -> bool {
        content.write(Token(key), cardinality, &Value::Long(value))
    }

    fn shown(content: &Content) -> Vec<(u32, i64)> {
        let all =
            content.entries.iter().flat_map(|entry| entry.values.iter().map(|value| (entry.key.0, value)));
        all.map(|(key, value)| (key, Value::from(value).as_i64().unwrap())).collect()
    }

    #[test]
    fn cardinalities_replace_add_and_append() {
        let mut content = Content::default();
        put(&mut content, 1, Single, 1);
        put(&mut content, 2, Single, 9);
        put(&mut content, 1, Single, 2);
        assert_eq!(shown(&content), [(1, 2), (2, 9)]);
        put(&mut content, 1, Set, 3);
        assert!(!put(&mut content, 1, Set, 2));
        assert_eq!(shown(&content), [(1, 2), (1, 3), (2, 9)]);
        put(&mut content, 1, List, 2);
        assert_eq!(shown(&content), [(1, 2), (1, 3), (1, 2), (2, 9)]);
        assert_eq!(content.entries[0].cardinality, List);
        put(&mut content, 1, Set, 5);
        assert_eq!(shown(&content), [(1, 2), (1, 3), (1, 5), (2, 9)]);
        put(&mut content, 1, Single, 7);
        assert_eq!(shown(&content), [(1, 7), (2, 9)]);
        assert!(content.remove(Token(1), Some(&Value::Int(7))));
        assert!(!content.remove(Token(1), None));
        put(&mut content, 1, List, 4);
        assert_eq!(shown(&content), [(2, 9), (1, 4)], "a key that was gone comes last");
    }

    fn annotate(content: &mut Content, of: i64, nth: u32, meta_key: u32, value: Option<i64>) -> bool {
        let (of, value) = (Value::Long(of), value.map(Value::Long));
        let (key, meta_key) = (Token(1), Token(meta_key));
        !content.annotate(&[MetaWrite { key, of: &of, nth, meta_key, value: value.as_ref() }]).is_empty()
    }

    fn meta(content: &Content) -> Vec<Vec<(u32, i64)>> {
        let of = |value: &Scalar| {
            value.meta().iter().map(|(key, value)| (key.0, Value::from(value).as_i64().unwrap())).collect()
        };
        content.entries.iter().flat_map(|entry| entry.values.iter().map(of)).collect()
    }

    #[test]
    fn meta_properties_go_where_their_value_goes() {
        let mut content = Content::default();
        assert!(!annotate(&mut content, 5, 0, 70, Some(1)), "there is no such value");
        put(&mut content, 1, List, 5);
        put(&mut content, 1, List, 6);
        put(&mut content, 1, List, 5);
        assert!(annotate(&mut content, 5, 1, 70, Some(1)));
        assert!(!annotate(&mut content, 5, 1, 70, Some(1)), "nothing changes");
        assert!(!annotate(&mut content, 5, 2, 70, Some(1)), "there are only two");
        assert!(annotate(&mut content, 6, 0, 71, Some(2)));
        assert!(annotate(&mut content, 6, 0, 70, Some(3)));
        assert_eq!(meta(&content), [vec![], vec![(71, 2), (70, 3)], vec![(70, 1)]]);
        for value in 10..30 {
            put(&mut content, 1, List, value);
        }
        assert_eq!(meta(&content)[..4], [vec![], vec![(71, 2), (70, 3)], vec![(70, 1)], vec![]]);
        assert!(content.remove(Token(1), Some(&Value::Long(5))), "the first of the two");
        assert!(annotate(&mut content, 6, 0, 71, None));
        assert!(!annotate(&mut content, 6, 0, 71, None));
        assert_eq!(meta(&content)[..3], [vec![(70, 3)], vec![(70, 1)], vec![]]);
        assert!(put(&mut content, 1, Set, 5), "the cardinality changes, the value is there");
        assert!(!put(&mut content, 1, Set, 6), "an equal value keeps what it has");
        assert_eq!(meta(&content)[..2], [vec![(70, 3)], vec![(70, 1)]]);
        put(&mut content, 1, Single, 6);
        assert_eq!(meta(&content), [vec![]]);
        assert!(annotate(&mut content, 6, 0, 70, Some(3)));
        assert!(put(&mut content, 1, Single, 6), "the same value anew has none");
        assert_eq!(meta(&content), [vec![]]);
    }

    #[test]
    fn many_meta_properties_are_written_at_once_as_one_by_one() {
        let values: Vec<Value> = (0..40).map(|n| Value::Long(n % 25)).collect();
        let plain = Content::of(values.iter().map(|value| (Token(1), List, value)));
        let numbers: Vec<Value> = (0..50).map(Value::Long).collect();
        let mut writes: Vec<MetaWrite<'_>> = Vec::new();
        for n in 0..if cfg!(miri) { 60_usize } else { 600 } {
            let (of, nth) = (&numbers[n / 8 % 30], n as u32 / 300);
            let value = (n % 11 > 0).then_some(&numbers[n % 50]);
            writes.push(MetaWrite { key: Token(1), of, nth, meta_key: Token(70 + n as u32 % 5), value });
        }
        // One value gets very many of them.
        writes.extend((0..50).map(|n| MetaWrite {
            key: Token(1),
            of: &numbers[3],
            nth: 1,
            meta_key: Token(70 + n % 45),
            value: Some(&numbers[n as usize]),
        }));
        let (mut at_once, mut one_by_one) = (plain.clone(), plain);
        assert!(!at_once.annotate(&writes).is_empty());
        for write in &writes {
            one_by_one.annotate(std::slice::from_ref(write));
        }
        assert_eq!(meta(&at_once), meta(&one_by_one));
        assert_eq!(shown(&at_once), shown(&one_by_one));
        assert!(at_once.annotate(&writes[600..]).is_empty() || meta(&at_once)[28].len() == 45);
    }

    #[test]
    fn long_lists_are_shared_by_their_versions() {
        let mut content = Content::default();
        let mut versions = Vec::new();
        for value in 0..100 {
            put(&mut content, 1, List, value);
            versions.push(content.clone());
        }
        assert!(content.remove(Token(1), Some(&Value::Long(50))));
        put(&mut content, 1, List, -1);
        for (index, version) in versions.iter().enumerate() {
            assert_eq!(version.entries[0].values.len(), index + 1);
            assert!(shown(version).iter().map(|(_, value)| *value).eq(0..=index as i64));
        }
        let expected = (0..100).filter(|value| *value != 50).chain([-1]);
        assert!(shown(&content).iter().map(|(_, value)| *value).eq(expected));
        let Values::Many { list, .. } = &versions[99].entries[0].values else { panic!() };
        assert_eq!(list.count(), 100, "what was removed from is no longer appended to");
    }

    #[test]
    fn many_keys_of_a_new_element_keep_their_order() {
        let writes: Vec<(Token, Value)> =
            (0..500).map(|i| (Token(i * 7 % 250), Value::Long(i64::from(i)))).collect();
        let content = Content::of_properties(&writes);
        assert_eq!(content.entries.len(), 250);
        assert!(content.entries.iter().map(|entry| entry.key.0).eq((0..250).map(|i| i * 7 % 250)));
        assert_eq!(shown(&content)[3], (21, 253));
    }
}

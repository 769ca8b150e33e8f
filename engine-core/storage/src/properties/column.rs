//! Columns: which types have one, and how a value becomes the one or two words of its cell.
//!
//! The cell of a number is the number. The cell of a date has year, month and day, the year highest, so that cells
//! compare like dates; that of a date and time has these with the second of the day, then the nanoseconds; that of a
//! point in time has its seconds since 1970, then the nanoseconds. The cell of a string has two words: first its length and first four bytes;
//! then either the next eight bytes (texts of up to 12 bytes), or the address of the text. Texts of up to 23 bytes
//! have an allocation of their own, longer ones share theirs with answers. The second word alone tells these cases
//! apart and leads to the length, because a reader whose version was reclaimed while it read may hold words of two
//! texts. Its answer is discarded, but until then it must not follow a wrong address.
//!
//! What must never happen: words that own a text dropped twice, or read afterwards. So words are plain numbers here,
//! and functions that follow an address are unsafe.

use super::scalar::Scalar;
use jiff::{Timestamp, civil};
use std::sync::Arc;
use tidegraph_types::Str;
use tidegraph_types::temporal::seconds_and_nanos;

/// Content of a cell. Narrow types use the low bits of the first word.
pub(crate) type Words = [u64; 2];

/// Bytes of the longest text that needs no allocation.
const INLINE: usize = 12;
/// Bytes of the longest text that is copied into answers (a [`Str`] holds it inline); longer ones are shared with
/// them.
const COPIED: usize = 23;

/// Type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(crate) enum ColumnType {
    Bool,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    DateTime,
    String,
    /// No column: the values of the key are in the row's overflow.
    Elsewhere,
    Date,
    LocalDateTime,
}

impl ColumnType {
    pub const ALL: [Self; 12] = [
        Self::Bool,
        Self::Byte,
        Self::Short,
        Self::Int,
        Self::Long,
        Self::Float,
        Self::Double,
        Self::DateTime,
        Self::String,
        Self::Elsewhere,
        Self::Date,
        Self::LocalDateTime,
    ];

    /// Returns the column type for a value; `Elsewhere` if no column can hold it.
    pub fn of(value: &Scalar) -> Self {
        match value {
            Scalar::Bool(_) => Self::Bool,
            Scalar::Byte(_) => Self::Byte,
            Scalar::Short(_) => Self::Short,
            Scalar::Int(_) => Self::Int,
            Scalar::Long(_) => Self::Long,
            Scalar::Float(_) => Self::Float,
            Scalar::Double(_) => Self::Double,
            Scalar::DateTime(_) => Self::DateTime,
            Scalar::String(_) => Self::String,
            Scalar::Date(_) => Self::Date,
            Scalar::LocalDateTime(_) => Self::LocalDateTime,
            Scalar::Other(_) | Scalar::Annotated(_) => Self::Elsewhere,
        }
    }

    /// Returns the bytes of a cell.
    pub fn width(self) -> u32 {
        match self {
            Self::Bool | Self::Byte => 1,
            Self::Short => 2,
            Self::Int | Self::Float | Self::Date => 4,
            Self::Long | Self::Double => 8,
            Self::DateTime | Self::LocalDateTime | Self::String => 16,
            Self::Elsewhere => 0,
        }
    }

    /// Returns whether cells may own memory.
    pub fn owns(self) -> bool {
        self == Self::String
    }
}

/// Encodes a value as a cell. The words own what they point to.
pub(crate) fn encode(value: &Scalar) -> Words {
    match value {
        Scalar::Bool(v) => [u64::from(*v), 0],
        Scalar::Byte(v) => [u64::from(*v as u8), 0],
        Scalar::Short(v) => [u64::from(*v as u16), 0],
        Scalar::Int(v) => [u64::from(*v as u32), 0],
        Scalar::Long(v) => [*v as u64, 0],
        Scalar::Float(v) => [u64::from(v.to_bits()), 0],
        Scalar::Double(v) => [v.to_bits(), 0],
        Scalar::DateTime(v) => {
            // Nanoseconds are not negative, so the words compare like the points in time.
            let (seconds, nanos) = seconds_and_nanos(*v);
            [seconds as u64, nanos as u64]
        }
        Scalar::Date(v) => [u64::from(date_word(*v) as u32), 0],
        Scalar::LocalDateTime(v) => local_words(*v),
        Scalar::String(text) => encode_text(text),
        // These have no column.
        Scalar::Other(_) | Scalar::Annotated(_) => [0; 2],
    }
}

/// Decodes a cell.
///
/// # Safety
///
/// The words are a cell of that type, and what they point to is alive.
pub(crate) unsafe fn decode(column: ColumnType, words: Words) -> Scalar {
    let word = words[0];
    match column {
        ColumnType::Bool => Scalar::Bool(word != 0),
        ColumnType::Byte => Scalar::Byte(word as i8),
        ColumnType::Short => Scalar::Short(word as i16),
        ColumnType::Int => Scalar::Int(word as i32),
        ColumnType::Long => Scalar::Long(word as i64),
        ColumnType::Float => Scalar::Float(f32::from_bits(word as u32)),
        ColumnType::Double => Scalar::Double(f64::from_bits(word)),
        ColumnType::DateTime => {
            Scalar::DateTime(Timestamp::new(word as i64, words[1] as i32).unwrap_or_default())
        }
        ColumnType::Date => Scalar::Date(date_of_word(i64::from(word as i32))),
        ColumnType::LocalDateTime => Scalar::LocalDateTime(local_of_words(words)),
        // SAFETY: the caller's promise.
        ColumnType::String => Scalar::String(unsafe { share_text(words) }),
        ColumnType::Elsewhere => Scalar::Bool(false),
    }
}

/// Bits of the second of a day.
const SECOND_BITS: u32 = 17;

/// Returns a number that compares like the date.
pub(crate) fn date_word(date: civil::Date) -> i32 {
    i32::from(date.year()) << 9 | i32::from(date.month()) << 5 | i32::from(date.day())
}

fn date_of_word(word: i64) -> civil::Date {
    civil::Date::new((word >> 9) as i16, (word >> 5 & 15) as i8, (word & 31) as i8).unwrap_or_default()
}

/// Returns words that compare like the date and time, the first one signed.
pub(crate) fn local_words(local: civil::DateTime) -> Words {
    let (hour, minute) = (i64::from(local.hour()), i64::from(local.minute()));
    let second = hour * 3600 + minute * 60 + i64::from(local.second());
    let first = i64::from(date_word(local.date())) << SECOND_BITS | second;
    [first as u64, local.subsec_nanosecond() as u64]
}

pub(super) fn local_of_words(words: Words) -> civil::DateTime {
    let first = words[0] as i64;
    let second = first & ((1 << SECOND_BITS) - 1);
    let (hour, minute) = ((second / 3600) as i8, (second / 60 % 60) as i8);
    let time = civil::Time::new(hour, minute, (second % 60) as i8, words[1] as i32).unwrap_or_default();
    date_of_word(first >> SECOND_BITS).to_datetime(time)
}

/// Highest byte of a word that is an address. No byte of UTF-8 has this value.
const ADDRESS: u64 = 0xff << 56;
/// Position of the length of a text with an allocation of its own; 0 marks a shared text.
const LENGTH_AT: u32 = 48;

/// The cases of the second word.
enum Stored {
    Inline,
    Own(*mut u8, usize),
    Shared(*mut Arc<str>),
}

#[inline]
fn stored(words: Words) -> Stored {
    if words[1] & ADDRESS != ADDRESS {
        return Stored::Inline;
    }
    let address = (words[1] & ((1 << LENGTH_AT) - 1)) as usize;
    match (words[1] >> LENGTH_AT & 0xff) as usize {
        0 => Stored::Shared(std::ptr::with_exposed_provenance_mut(address)),
        length => Stored::Own(std::ptr::with_exposed_provenance_mut(address), length),
    }
}

fn address_word(address: usize, length: usize) -> u64 {
    assert!(
        address >> LENGTH_AT == 0,
        "an address of more than {LENGTH_AT} bits cannot be stored: {address:#x}"
    );
    ADDRESS | (length as u64) << LENGTH_AT | address as u64
}

fn inline_bytes(words: Words) -> ([u8; INLINE], usize) {
    let mut bytes = [0; INLINE];
    bytes[..4].copy_from_slice(&words[0].to_le_bytes()[4..]);
    bytes[4..].copy_from_slice(&words[1].to_le_bytes());
    (bytes, (words[0] as u32 as usize).min(INLINE))
}

/// Returns length and first four bytes of a text, which are equal for equal texts.
pub(crate) fn text_head(text: &str) -> u64 {
    let mut head = [0; 4];
    let first = text.len().min(4);
    head[..first].copy_from_slice(&text.as_bytes()[..first]);
    u64::from(text.len() as u32) | u64::from(u32::from_le_bytes(head)) << 32
}

/// Returns both words of a text that needs no allocation.
pub(crate) fn inline_text(text: &str) -> Option<Words> {
    if text.len() > INLINE {
        return None;
    }
    let mut tail = [0; 8];
    let rest = text.as_bytes().get(4..).unwrap_or_default();
    tail[..rest.len()].copy_from_slice(rest);
    Some([text_head(text), u64::from_le_bytes(tail)])
}

/// Encodes a text. The words own it; a long text is shared.
pub(crate) fn encode_text(text: &Str) -> Words {
    text_words(text, || Arc::from(text.clone()))
}

/// Encodes a text that is not shared yet.
pub(crate) fn encode_str(text: &str) -> Words {
    text_words(text, || Arc::from(text))
}

fn text_words(text: &str, shared: impl FnOnce() -> Arc<str>) -> Words {
    if let Some(words) = inline_text(text) {
        return words;
    }
    assert!(u32::try_from(text.len()).is_ok(), "a string of {} bytes cannot be stored", text.len());
    let word = if text.len() <= COPIED {
        let own = Box::into_raw(Box::<[u8]>::from(text.as_bytes())).cast::<u8>();
        address_word(own.expose_provenance(), text.len())
    } else {
        address_word(Box::into_raw(Box::new(shared())).expose_provenance(), 0)
    };
    [text_head(text), word]
}

/// Calls `look` with the text of a cell. For words of two texts, it is one of them, or empty.
///
/// # Safety
///
/// If the second word is an address, what it points to is alive.
#[inline]
pub(crate) unsafe fn with_text<R>(words: Words, look: impl FnOnce(&str) -> R) -> R {
    match stored(words) {
        Stored::Inline => {
            let (bytes, length) = inline_bytes(words);
            look(std::str::from_utf8(&bytes[..length]).unwrap_or_default())
        }
        Stored::Own(address, length) => {
            // SAFETY: an allocation of that length with the bytes of a `str` (`encode_text`), never written to, and
            // alive as the caller promises.
            let bytes = unsafe { std::slice::from_raw_parts(address, length) };
            // SAFETY: as above.
            look(unsafe { std::str::from_utf8_unchecked(bytes) })
        }
        // SAFETY: made by `encode_text`, never written to, and alive as the caller promises.
        Stored::Shared(text) => look(unsafe { &*text }),
    }
}

/// Returns the text of a cell; a long one is shared.
///
/// # Safety
///
/// As for [`with_text`].
#[inline]
pub(crate) unsafe fn share_text(words: Words) -> Str {
    match stored(words) {
        // SAFETY: made by `encode_text`, and alive as the caller promises.
        Stored::Shared(text) => Str::from(unsafe { &*text }.clone()),
        // SAFETY: the caller's promise.
        _ => unsafe { with_text(words, |text| Str::new(text)) },
    }
}

/// Returns new words that own the same text.
///
/// # Safety
///
/// The words are of one text, which is alive.
pub(crate) unsafe fn clone_text(words: Words) -> Words {
    match stored(words) {
        Stored::Inline => words,
        // SAFETY: the caller's promise.
        _ => encode_text(&unsafe { share_text(words) }),
    }
}

/// Frees what the words own.
///
/// # Safety
///
/// The words are of one text; they are not used afterwards.
pub(crate) unsafe fn drop_text(words: Words) {
    match stored(words) {
        Stored::Inline => {}
        Stored::Own(address, length) => {
            let bytes = std::ptr::slice_from_raw_parts_mut(address, length);
            // SAFETY: a boxed slice of that length (`encode_text`), owned by these words alone.
            drop(unsafe { Box::from_raw(bytes) });
        }
        // SAFETY: boxed by `encode_text`, owned by these words alone.
        Stored::Shared(text) => drop(unsafe { Box::from_raw(text) }),
    }
}

/// Returns the bytes on the heap that a cell owns.
pub(crate) fn text_heap_bytes(words: Words) -> usize {
    match stored(words) {
        Stored::Inline => 0,
        Stored::Own(_, length) => length,
        // The handle, and the counts before the text.
        Stored::Shared(_) => words[0] as u32 as usize + size_of::<Arc<str>>() + 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::{Temporal, Value};

    #[test]
    fn values_come_back_from_their_words() {
        let long = "x".repeat(100);
        let texts = ["", "a", "four", "five!", "twelve bytes", "thirteen byte", "äöü€äöü€äöü", &long];
        let mut values: Vec<Value> = texts.iter().map(|text| Value::string(*text)).collect();
        values.extend([
            Value::Bool(true),
            Value::Byte(-1),
            Value::Short(-300),
            Value::Int(i32::MIN),
            Value::Long(i64::MIN),
            Value::Float(-0.0),
            Value::Double(f64::NAN),
            Value::DateTime(Timestamp::MIN),
            Value::DateTime(Timestamp::MAX),
            Value::DateTime(Timestamp::from_nanosecond(-1).unwrap()),
        ]);
        let dates = [civil::Date::MIN, civil::date(-1, 12, 31), civil::date(2024, 2, 29), civil::Date::MAX];
        let times = [civil::Time::MIN, civil::time(23, 59, 59, 999_999_999), civil::Time::MAX];
        for date in dates {
            values.push(Value::Temporal(Temporal::Date(date)));
            let locals = times.map(|time| Temporal::LocalDateTime(date.to_datetime(time)));
            values.extend(locals.map(Value::Temporal));
        }
        for value in values {
            let scalar = Scalar::from(&value);
            let column = ColumnType::of(&scalar);
            let words = encode(&scalar);
            // SAFETY: the words are alive until they are dropped at the end, once.
            unsafe {
                let back = Value::from(&decode(column, words));
                assert_eq!(format!("{back:?}"), format!("{value:?}"));
                if column == ColumnType::String {
                    let copy = clone_text(words);
                    drop_text(words);
                    with_text(copy, |text| assert_eq!(Some(text), value.as_str()));
                    drop_text(copy);
                }
            }
        }
    }

    #[test]
    fn words_of_two_texts_are_safe_to_look_at() {
        let long = "l".repeat(50);
        let texts =
            ["", "abc", "twelve bytes", "äöü€äöü", "€€€€", "a text of its own", "another of its own", &long];
        let words: Vec<Words> = texts.iter().map(|text| encode_text(&Str::new(text))).collect();
        for first in &words {
            for second in &words {
                // SAFETY: all texts are alive until the end.
                let length = unsafe { with_text([first[0], second[1]], |text| text.chars().count()) };
                assert!(length <= long.len());
            }
        }
        // SAFETY: dropped once each.
        words.into_iter().for_each(|words| unsafe { drop_text(words) });
    }

    #[test]
    fn times_compare_by_their_words() {
        let words = |nanos: i128| {
            let [seconds, nanos] = encode(&Scalar::DateTime(Timestamp::from_nanosecond(nanos).unwrap()));
            (seconds as i64, nanos)
        };
        let times = [-3_000_000_001, -3_000_000_000, -1, 0, 1, 999_999_999, 1_000_000_000];
        assert!(times.windows(2).all(|pair| words(pair[0]) < words(pair[1])));
        let [early, late] = [civil::time(0, 0, 0, 1), civil::time(23, 59, 59, 0)];
        let dates =
            [civil::date(-2, 12, 31), civil::date(-1, 1, 1), civil::date(0, 1, 31), civil::date(0, 2, 1)];
        let locals = dates.iter().flat_map(|date| [date.to_datetime(early), date.to_datetime(late)]);
        let locals: Vec<_> = locals.map(local_words).map(|[first, nanos]| (first as i64, nanos)).collect();
        assert!(locals.is_sorted_by(|a, b| a < b));
        assert!(dates.map(date_word).is_sorted_by(|a, b| a < b));
    }
}

//! Columns as blocks of bytes: whole numbers of one width, little-endian. On a little-endian machine they are copied
//! unchanged.

use crate::{Error, proto};
use bytes::Bytes;

/// Encodes a column of 64-bit numbers.
pub(super) fn wide_to<T>(items: &[T], number: impl Fn(&T) -> u64) -> Bytes {
    let mut out = vec![0; items.len() * 8];
    for (bytes, item) in out.chunks_exact_mut(8).zip(items) {
        bytes.copy_from_slice(&number(item).to_le_bytes());
    }
    out.into()
}

/// Decodes a column of 64-bit numbers.
pub(super) fn wide_from<T>(
    bytes: &[u8],
    message: &'static str,
    field: &'static str,
    item: impl Fn(u64) -> T,
) -> Result<Vec<T>, Error> {
    let (words, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(Error::Misaligned { message, field });
    }
    Ok(words.iter().map(|word| item(u64::from_le_bytes(*word))).collect())
}

fn narrow_to(numbers: &[u32]) -> Bytes {
    let mut out = vec![0; numbers.len() * 4];
    for (bytes, number) in out.chunks_exact_mut(4).zip(numbers) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    out.into()
}

fn narrow_from(
    bytes: &[u8],
    message: &'static str,
    field: &'static str,
) -> Result<impl ExactSizeIterator<Item = u32>, Error> {
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Error::Misaligned { message, field });
    }
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)))
}

/// Encodes a column of 32-bit numbers, as runs if these are shorter. An empty column is absent.
pub(super) fn numbers_to<T: Copy>(items: &[T], number: impl Fn(T) -> u32) -> Option<proto::NumberColumn> {
    if items.is_empty() {
        return None;
    }
    let numbers: Vec<u32> = items.iter().map(|item| number(*item)).collect();
    let runs = 1 + numbers.windows(2).filter(|pair| pair[0] != pair[1]).count();
    if runs * 2 > numbers.len() {
        return Some(proto::NumberColumn { plain: narrow_to(&numbers), ..Default::default() });
    }
    let (mut values, mut ends) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
    let mut end = 0;
    for run in numbers.chunk_by(|a, b| a == b) {
        end += run.len() as u32;
        values.push(run[0]);
        ends.push(end);
    }
    Some(proto::NumberColumn {
        plain: Bytes::new(),
        run_values: narrow_to(&values),
        run_ends: narrow_to(&ends),
    })
}

/// Decodes a column of 32-bit numbers, which must have `rows` rows. Runs that claim more allocate nothing.
pub(super) fn numbers_from<T: Clone>(
    column: Option<&proto::NumberColumn>,
    rows: usize,
    message: &'static str,
    field: &'static str,
    item: impl Fn(u32) -> T,
) -> Result<Vec<T>, Error> {
    let misaligned = Error::Misaligned { message, field };
    let Some(column) = column else {
        return if rows == 0 { Ok(Vec::new()) } else { Err(misaligned) };
    };
    if column.run_ends.is_empty() {
        let numbers = narrow_from(&column.plain, message, field)?;
        return if numbers.len() == rows { Ok(numbers.map(item).collect()) } else { Err(misaligned) };
    }
    let values = narrow_from(&column.run_values, message, field)?;
    let ends = narrow_from(&column.run_ends, message, field)?;
    if values.len() != ends.len() || !column.plain.is_empty() {
        return Err(misaligned);
    }
    let mut out = Vec::with_capacity(rows);
    for (value, end) in values.zip(ends) {
        let end = end as usize;
        if end <= out.len() || end > rows {
            return Err(misaligned);
        }
        out.resize(end, item(value));
    }
    if out.len() == rows { Ok(out) } else { Err(misaligned) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_column_comes_back(numbers in prop::collection::vec(0_u32..4, 0..200), wide: Vec<u64>) {
            let column = numbers_to(&numbers, |n| n);
            let back = numbers_from(column.as_ref(), numbers.len(), "M", "f", |n| n).unwrap();
            prop_assert_eq!(&back, &numbers);
            prop_assert!(numbers_from(column.as_ref(), numbers.len() + 1, "M", "f", |n| n).is_err());
            let bytes = wide_to(&wide, |n| *n);
            prop_assert_eq!(wide_from(&bytes, "M", "f", |n| n).unwrap(), wide);
        }
    }

    #[test]
    fn runs_that_claim_much_are_refused_before_memory_is_taken() {
        let runs = |values: &[u32], ends: &[u32]| proto::NumberColumn {
            plain: Bytes::new(),
            run_values: narrow_to(values),
            run_ends: narrow_to(ends),
        };
        let decode = |column: proto::NumberColumn| numbers_from(Some(&column), 3, "M", "f", |n| n);
        assert_eq!(decode(runs(&[7, 8], &[1, 3])).unwrap(), [7, 8, 8]);
        for bad in [
            runs(&[7], &[u32::MAX]),
            runs(&[7, 8], &[3, 3]),
            runs(&[7, 8], &[2, 1]),
            runs(&[7], &[2]),
            runs(&[7], &[1, 3]),
            proto::NumberColumn { plain: Bytes::from_static(&[0; 11]), ..Default::default() },
            proto::NumberColumn { plain: Bytes::from_static(&[0; 12]), ..runs(&[7], &[3]) },
        ] {
            assert!(decode(bad).is_err());
        }
    }
}

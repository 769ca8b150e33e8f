//! Property values of a column: numbers in one block, other values as messages.

use crate::{Error, proto, value};
use bytes::Bytes;
use tidegraph_types::Value;

/// Builds a column of values.
#[derive(Default)]
pub(super) struct Writer {
    values: Vec<proto::Value>,
    kinds: Vec<u8>,
    numbers: Vec<u8>,
}

const MESSAGE: u8 = 0;
const LONG: u8 = 1;
const DOUBLE: u8 = 2;
const TRUTH: u8 = 3;
const INT: u8 = 4;

impl Writer {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Appends a value. Fails if no property can have it.
    pub fn push(&mut self, value: &Value) -> Result<(), Error> {
        let (kind, number) = match value {
            Value::Long(number) => (LONG, number.to_le_bytes()),
            Value::Double(number) => (DOUBLE, number.to_le_bytes()),
            Value::Bool(truth) => (TRUTH, u64::from(*truth).to_le_bytes()),
            Value::Int(number) => (INT, i64::from(*number).to_le_bytes()),
            other => {
                self.values.push(value::encode(other)?);
                self.kinds.push(MESSAGE);
                return Ok(());
            }
        };
        self.kinds.push(kind);
        self.numbers.extend_from_slice(&number);
        Ok(())
    }

    /// Returns the values that are not numbers, the kinds, and the numbers.
    pub fn finish(self) -> (Vec<proto::Value>, Bytes, Bytes) {
        let kinds = if self.numbers.is_empty() { Bytes::new() } else { self.kinds.into() };
        (self.values, kinds, self.numbers.into())
    }
}

/// Decodes the values of a column.
pub(super) fn read(
    message: &'static str,
    values: Vec<proto::Value>,
    kinds: &[u8],
    numbers: &[u8],
) -> Result<Vec<Value>, Error> {
    let misaligned = |field| Error::Misaligned { message, field };
    let mut values = values.into_iter();
    if kinds.is_empty() && numbers.is_empty() {
        return values.map(value::decode).collect();
    }
    let (words, rest) = numbers.as_chunks::<8>();
    let mut words = words.iter();
    let mut out = Vec::with_capacity(kinds.len());
    for kind in kinds {
        if *kind == MESSAGE {
            out.push(value::decode(values.next().ok_or(misaligned("values"))?)?);
            continue;
        }
        let word = *words.next().ok_or(misaligned("numbers"))?;
        let number = i64::from_le_bytes(word);
        let out_of_range = || Error::OutOfRange { field: "numbers", value: i128::from(number) };
        out.push(match *kind {
            LONG => Value::Long(number),
            DOUBLE => Value::Double(f64::from_le_bytes(word)),
            TRUTH if number == 0 || number == 1 => Value::Bool(number == 1),
            INT => Value::Int(i32::try_from(number).map_err(|_| out_of_range())?),
            TRUTH => return Err(out_of_range()),
            _ => return Err(Error::UnknownKind { message }),
        });
    }
    if values.next().is_some() || words.next().is_some() || !rest.is_empty() {
        return Err(misaligned("kinds"));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_numbers_that_do_not_fit_are_errors() {
        let text = || value::encode(&Value::string("x")).unwrap();
        let one = 1_u64.to_le_bytes();
        let read = |values, kinds: &[u8], numbers: &[u8]| read("M", values, kinds, numbers);
        assert_eq!(read(vec![text()], &[1, 0], &one).unwrap(), [Value::Long(1), Value::string("x")]);
        for (values, kinds, numbers) in [
            (vec![], vec![0], vec![]),
            (vec![], vec![1], vec![]),
            (vec![text()], vec![1], one.to_vec()),
            (vec![], vec![1], [one, one].concat()),
            (vec![], vec![1], vec![0; 9]),
            (vec![], vec![], one.to_vec()),
            (vec![], vec![9], one.to_vec()),
            (vec![], vec![3], 2_u64.to_le_bytes().to_vec()),
            (vec![], vec![4], u64::from(u32::MAX).to_le_bytes().to_vec()),
        ] {
            assert!(read(values, &kinds, &numbers).is_err(), "{kinds:?} {numbers:?}");
        }
    }
}

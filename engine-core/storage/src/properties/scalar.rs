//! Stored values: 24 bytes instead of the 40 of a [`Value`], because scalars are stored, but for few values.
//!
//! A value carries its meta-properties with it. Values without any pay nothing for them.

use jiff::{Timestamp, civil};
use std::sync::Arc;
use tidegraph_types::{Str, Temporal, Token, Value};

/// A stored value. Strings of up to 23 bytes are inline.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    Bool(bool),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    String(Str),
    DateTime(Timestamp),
    Date(civil::Date),
    LocalDateTime(civil::DateTime),
    /// Types that a later release may store.
    Other(Box<Value>),
    /// Another value with at least one meta-property. Shared by the versions of a list.
    Annotated(Arc<Annotated>),
}

/// A value with its meta-properties, in order of first writing. None of them is annotated itself.
#[derive(Clone, Debug)]
pub(crate) struct Annotated {
    pub value: Scalar,
    pub meta: Vec<(Token, Scalar)>,
}

const _: () = assert!(size_of::<Scalar>() == 24);

impl From<&Value> for Scalar {
    fn from(value: &Value) -> Self {
        match value {
            Value::Bool(v) => Self::Bool(*v),
            Value::Byte(v) => Self::Byte(*v),
            Value::Short(v) => Self::Short(*v),
            Value::Int(v) => Self::Int(*v),
            Value::Long(v) => Self::Long(*v),
            Value::Float(v) => Self::Float(*v),
            Value::Double(v) => Self::Double(*v),
            Value::String(v) => Self::String(v.clone()),
            Value::DateTime(v) => Self::DateTime(*v),
            Value::Temporal(Temporal::Date(v)) => Self::Date(*v),
            Value::Temporal(Temporal::LocalDateTime(v)) => Self::LocalDateTime(*v),
            other => Self::Other(Box::new(other.clone())),
        }
    }
}

impl Annotated {
    /// Returns the value alone. Out of line, because it is rare and its callers are hot.
    #[cold]
    fn plain(&self) -> Value {
        Value::from(&self.value)
    }
}

impl From<&Scalar> for Value {
    #[inline]
    fn from(scalar: &Scalar) -> Self {
        match scalar {
            Scalar::Bool(v) => Self::Bool(*v),
            Scalar::Byte(v) => Self::Byte(*v),
            Scalar::Short(v) => Self::Short(*v),
            Scalar::Int(v) => Self::Int(*v),
            Scalar::Long(v) => Self::Long(*v),
            Scalar::Float(v) => Self::Float(*v),
            Scalar::Double(v) => Self::Double(*v),
            Scalar::String(v) => Self::String(v.clone()),
            Scalar::DateTime(v) => Self::DateTime(*v),
            Scalar::Date(v) => Self::Temporal(Temporal::Date(*v)),
            Scalar::LocalDateTime(v) => Self::Temporal(Temporal::LocalDateTime(*v)),
            Scalar::Other(v) => (**v).clone(),
            Scalar::Annotated(v) => v.plain(),
        }
    }
}

impl From<Scalar> for Value {
    #[inline]
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool(v) => Self::Bool(v),
            Scalar::Byte(v) => Self::Byte(v),
            Scalar::Short(v) => Self::Short(v),
            Scalar::Int(v) => Self::Int(v),
            Scalar::Long(v) => Self::Long(v),
            Scalar::Float(v) => Self::Float(v),
            Scalar::Double(v) => Self::Double(v),
            Scalar::String(v) => Self::String(v),
            Scalar::DateTime(v) => Self::DateTime(v),
            Scalar::Date(v) => Self::Temporal(Temporal::Date(v)),
            Scalar::LocalDateTime(v) => Self::Temporal(Temporal::LocalDateTime(v)),
            Scalar::Other(v) => *v,
            Scalar::Annotated(v) => v.plain(),
        }
    }
}

impl Scalar {
    /// Returns whether two values are equivalent, as in sets: numbers by value whatever their width, NaN equal to
    /// itself.
    pub fn equivalent(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Annotated(a), b) => a.value.equivalent(b),
            (Self::String(a), Value::String(b)) => a == b,
            (Self::String(_), _) | (_, Value::String(_)) => false,
            _ => Value::from(self) == *value,
        }
    }

    /// Returns the meta-properties.
    pub fn meta(&self) -> &[(Token, Scalar)] {
        match self {
            Self::Annotated(annotated) => &annotated.meta,
            _ => &[],
        }
    }

    /// Returns the same value with these meta-properties.
    pub fn annotated(self, meta: Vec<(Token, Self)>) -> Self {
        let value = match self {
            Self::Annotated(annotated) => annotated.value.clone(),
            plain => plain,
        };
        if meta.is_empty() { value } else { Self::Annotated(Arc::new(Annotated { value, meta })) }
    }

    /// Returns whether storing the value would change nothing: same type and same bits. Returns false for types
    /// without a variant of their own, and for values that would lose meta-properties.
    pub fn is_same(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Bool(a), Value::Bool(b)) => a == b,
            (Self::Byte(a), Value::Byte(b)) => a == b,
            (Self::Short(a), Value::Short(b)) => a == b,
            (Self::Int(a), Value::Int(b)) => a == b,
            (Self::Long(a), Value::Long(b)) => a == b,
            (Self::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::String(a), Value::String(b)) => a == b,
            (Self::DateTime(a), Value::DateTime(b)) => a == b,
            (Self::Date(a), Value::Temporal(Temporal::Date(b))) => a == b,
            (Self::LocalDateTime(a), Value::Temporal(Temporal::LocalDateTime(b))) => a == b,
            _ => false,
        }
    }

    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::String(text) if text.is_heap_allocated() => text.len() + 16,
            Self::Other(value) => size_of::<Value>() + value.heap_bytes(),
            Self::Annotated(annotated) => {
                let meta = annotated.meta.iter().map(|(_, value)| value.heap_bytes()).sum::<usize>();
                size_of::<Annotated>()
                    + annotated.value.heap_bytes()
                    + annotated.meta.capacity() * size_of::<(Token, Self)>()
                    + meta
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_storable_value_comes_back_as_it_was() {
        let values = [
            Value::Bool(true),
            Value::Byte(-1),
            Value::Short(300),
            Value::Int(70_000),
            Value::Long(i64::MIN),
            Value::Float(1.5),
            Value::Double(f64::NAN),
            Value::string("short"),
            Value::string("a string that is too long for its place"),
            Value::DateTime(Timestamp::MIN),
            Value::Temporal(Temporal::Date(civil::Date::MIN)),
            Value::Temporal(Temporal::LocalDateTime(civil::DateTime::MAX)),
            Value::Temporal(Temporal::LocalTime(civil::Time::MAX)),
            Value::list(vec![Value::Long(1)]),
        ];
        for value in &values {
            let scalar = Scalar::from(value);
            let back = Value::from(&scalar);
            assert_eq!(&back, value);
            assert_eq!(std::mem::discriminant(&back), std::mem::discriminant(value));
            assert!(scalar.equivalent(value));
            assert_eq!(scalar.is_same(value), !matches!(scalar, Scalar::Other(_)));
        }
        assert!(!Scalar::Int(1).is_same(&Value::Long(1)), "another type is another value to store");
        assert!(!Scalar::Double(0.0).is_same(&Value::Double(-0.0)));
        let annotated = Scalar::Int(1).annotated(vec![(Token(7), Scalar::Bool(true))]);
        assert!(annotated.equivalent(&Value::Long(1)) && annotated.meta().len() == 1);
        assert!(!annotated.is_same(&Value::Int(1)), "it would lose what it carries");
        assert_eq!(Value::from(&annotated).type_name(), "int");
        assert!(annotated.annotated(vec![]).is_same(&Value::Int(1)));
        assert!(Scalar::Int(1).equivalent(&Value::Double(1.0)));
        assert!(!Scalar::Int(1).equivalent(&Value::string("1")));
    }
}

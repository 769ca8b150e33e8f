//! The visible variables, with the innermost last.

use super::Variable;
use std::collections::BTreeMap;
use std::ops::Deref;
use tidegraph_plan::Slot;

/// The slots of what `linenumber()` and `file()` return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CsvRecord {
    /// The number of the record.
    pub number: Slot,
    /// The name of its file.
    pub file: Slot,
}

impl CsvRecord {
    pub fn slots(&self) -> [Slot; 2] {
        [self.number, self.file]
    }
}

/// A list of variables that finds them by name: a long CREATE may name thousands.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope<'a> {
    variables: Vec<Variable<'a>>,
    /// Places of the variables with each name, in ascending order.
    places: BTreeMap<&'a str, Vec<u32>>,
    /// The record of the last LOAD CSV; an aggregation forgets it.
    pub record: Option<CsvRecord>,
    /// The same of the queries around the current one, the innermost last. Their slots stay in rows.
    outer_records: Vec<CsvRecord>,
}

impl<'a> Scope<'a> {
    /// Returns the innermost variable with a name.
    pub fn find(&self, name: &str) -> Option<&Variable<'a>> {
        self.variables.get(*self.places.get(name)?.last()? as usize)
    }

    /// Takes over the records of another scope of the same query.
    pub fn with_records_of(self, other: &Self) -> Self {
        Self { record: other.record, outer_records: other.outer_records.clone(), ..self }
    }

    /// Begins the scope of a subquery.
    pub fn entered(mut self) -> Self {
        if let Some(record) = self.record
            && self.outer_records.last() != Some(&record)
        {
            self.outer_records.push(record);
        }
        self
    }

    /// Forgets the record that an aggregation ends: that of the query around it counts again.
    pub fn forget_record(&mut self) {
        self.record = self.outer_records.last().copied();
    }

    /// Returns the slots of the records that an operator must keep: those of the queries around the current one.
    pub fn outer_record_slots(&self) -> impl Iterator<Item = Slot> {
        self.outer_records.iter().flat_map(CsvRecord::slots)
    }

    pub fn push(&mut self, variable: Variable<'a>) {
        self.places.entry(variable.name).or_default().push(self.variables.len() as u32);
        self.variables.push(variable);
    }

    /// Removes all but the first variables.
    pub fn truncate(&mut self, len: usize) {
        for variable in self.variables.drain(len.min(self.variables.len())..) {
            if let Some(places) = self.places.get_mut(variable.name) {
                places.pop();
                if places.is_empty() {
                    self.places.remove(variable.name);
                }
            }
        }
    }
}

impl<'a> FromIterator<Variable<'a>> for Scope<'a> {
    fn from_iter<I: IntoIterator<Item = Variable<'a>>>(variables: I) -> Self {
        let mut scope = Self::default();
        variables.into_iter().for_each(|variable| scope.push(variable));
        scope
    }
}

impl<'a> Deref for Scope<'a> {
    type Target = [Variable<'a>];

    fn deref(&self) -> &Self::Target {
        &self.variables
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Origin, Types};
    use super::*;

    #[test]
    fn the_innermost_variable_of_a_name_is_found() {
        let variable =
            |name, slot| Variable { name, slot: Slot(slot), types: Types::ANY, origin: Origin::Clause };
        let mut scope: Scope<'_> =
            [variable("a", 0), variable("b", 1), variable("a", 2)].into_iter().collect();
        let slot = |scope: &Scope<'_>, name| scope.find(name).map(|variable| variable.slot.0);
        assert_eq!((slot(&scope, "a"), slot(&scope, "b"), slot(&scope, "c")), (Some(2), Some(1), None));
        scope.truncate(2);
        assert_eq!((slot(&scope, "a"), scope.len()), (Some(0), 2));
        scope.truncate(0);
        assert_eq!((slot(&scope, "a"), slot(&scope, "b")), (None, None));
    }
}

//! LOAD CSV, and the functions about its records.

use super::expression::expect;
use super::scope::CsvRecord;
use super::types::Types;
use super::{Lowering, Typed};
use crate::ast::{Expr as Tree, Name};
use crate::fault::Result;
use tidegraph_plan::{Expr, Op};

impl<'a> Lowering<'a> {
    /// `LOAD CSV WITH HEADERS FROM url AS variable FIELDTERMINATOR terminator`
    pub(super) fn load_csv(
        &mut self,
        input: Op,
        headers: bool,
        url: &'a Tree,
        variable: &'a Name,
        terminator: char,
    ) -> Result<Op> {
        let value = self.expr(url)?;
        expect(&value, Types::STRING, url, "LOAD CSV")?;
        let input = Box::new(self.bind_pending(input)?);
        let out = self.declare_new(variable, if headers { Types::MAP } else { Types::LIST })?;
        let record = CsvRecord { number: self.slot(), file: self.slot() };
        self.scope.record = Some(record);
        let (number, file) = (Some(record.number), Some(record.file));
        self.op(Op::LoadCsv { input, url: value.expr, headers, terminator, out, number, file })
    }

    /// Returns `linenumber()` or `file()` if the name is one of them: null after no LOAD CSV.
    pub(super) fn of_record(&self, name: &str) -> Option<Typed> {
        let record = self.scope.record;
        let (slot, types) = match name {
            "linenumber" => (record.map(|record| record.number), Types::INTEGER),
            "file" => (record.map(|record| record.file), Types::STRING),
            _ => return None,
        };
        Some(Typed::new(slot.map_or_else(super::call::null, Expr::Slot), types))
    }
}
